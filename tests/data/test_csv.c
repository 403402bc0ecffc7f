/* src/data/csv.c, on files that the test writes. */
#include <locale.h>
#include <weber/csv.h>
#include <zlib.h>

#include "support/files.h"
#include "support/support.h"

static const char *file_of(const char *text) {
    const char *path = path_of("table.csv");
    write_file(path, text, strlen(text));
    return path;
}

static void columns_have_types(void **state) {
    (void)state;
    const char *path = file_of("\xEF\xBB\xBFid,size,kind\r\n1,0.5,b\r\n\r\n-2,1e3,a\r\n3,2,b");
    wb_csv *csv = wb_read_csv(path);
    assert_int_equal(wb_csv_rows(csv), 3);
    assert_int_equal(wb_csv_columns(csv), 3);
    assert_string_equal(wb_csv_name(csv, 2), "kind");
    assert_null(wb_csv_name(csv, 3));
    assert_string_equal(wb_csv_text(csv, 1, 1), "1e3");
    assert_null(wb_csv_text(csv, 3, 0));
    wb_array *id = wb_csv_column(csv, "id"), *size = wb_csv_column(csv, "size");
    assert_int_equal(wb_dtype_of(id), WB_I64);
    assert_true(wb_at(id, 1) == -2);
    assert_int_equal(wb_dtype_of(size), WB_F64);
    assert_true(wb_at(size, 1) == 1000);
    int64_t classes;
    wb_array *kind = wb_csv_labels(csv, "kind", &classes);
    assert_int_equal(classes, 2);
    assert_true(wb_at(kind, 0) == 1 && wb_at(kind, 1) == 0);
    assert_string_equal(wb_csv_label(csv, "kind", 1), "b");
    assert_null(wb_csv_label(csv, "kind", 2));
    const char *names[] = {"size", "id"};
    wb_array *x = wb_csv_matrix(csv, 2, names);
    assert_int_equal(wb_size(x, 0), 2);
    assert_int_equal(wb_dtype_of(x), WB_F32);
    assert_true(wb_at(x, 1, 2) == 3);
    wb_free(csv);
}

static void a_vocabulary_numbers_another_table(void **state) {
    (void)state;
    wb_csv *csv = wb_read_csv(file_of("kind\nb\nd\na\nb\n"));
    wb_text_entry *vocabulary = wb_csv_vocabulary(csv, "kind");
    const char *names = wb_text_of_entry(vocabulary);
    int64_t classes;
    assert_non_null(wb_csv_labels(csv, "kind", &classes));
    assert_int_equal(wb_vocabulary_size(names), classes);
    assert_int_equal(wb_vocabulary_size(NULL), 0);
    assert_int_equal(wb_vocabulary_size(""), 0);
    assert_string_equal(names, "a\nb\nd");
    wb_csv *test = wb_read_csv(file_of("kind\nd\nb\n"));
    assert_values(wb_csv_labels(test, "kind", NULL), 0, 1, 0);
    assert_values(wb_csv_labels_in(test, "kind", names), 0, 2, 1);
    assert_values(wb_csv_labels_in(csv, "kind", names), 0, 1, 2, 0, 1);
    assert_values(wb_csv_labels_in(test, "kind", "d\nc\nb"), 0, 0, 2);
    assert_null(wb_csv_labels_in(test, "kind", "a\nd"));
    assert_error(WB_ERROR_FORMAT, "line 3, column \"kind\": the vocabulary lacks \"b\"");
    assert_null(wb_csv_labels_in(test, "kind", NULL));
    assert_error(WB_ERROR_ARGUMENT, "csv_labels_in: the vocabulary is NULL");
    wb_free(csv), wb_free(test);
    csv = wb_read_csv(file_of("kind\n\"b\nc\"\n"));
    assert_null(wb_csv_vocabulary(csv, "kind"));
    assert_error(WB_ERROR_UNSUPPORTED, "has a line end");
    wb_free(csv);
    csv = wb_read_csv(file_of("kind\ncaf\xe9\n"));
    assert_null(wb_csv_vocabulary(csv, "kind"));
    assert_error(WB_ERROR_ARGUMENT,
                 "csv_vocabulary: column \"kind\": wb_text: a text must be UTF-8");
    wb_free(csv);
}

static void quotes_hold_anything(void **state) {
    (void)state;
    wb_csv *csv = wb_read_csv(file_of("a;b\n\"x;\"\"y\"\"\nz\";2\n;\n"), .separator = ';');
    assert_int_equal(wb_csv_rows(csv), 2);
    assert_string_equal(wb_csv_text(csv, 0, 0), "x;\"y\"\nz");
    assert_string_equal(wb_csv_text(csv, 1, 1), "");
    assert_null(wb_csv_column(csv, "b"));
    assert_error(WB_ERROR_FORMAT,
                 "line 4, column \"b\": the value is missing: \"\"; .missing_is_nan makes it NaN");
    assert_null(wb_csv_column(csv, "a"));
    assert_error(WB_ERROR_FORMAT, "line 2, column \"a\": this is not a number");
    wb_free(csv);
}

static void a_text_among_numbers_may_mean_none(void **state) {
    (void)state;
    wb_csv *csv = wb_read_csv(file_of("a\n1\nNA\n"));
    assert_null(wb_csv_column(csv, "a"));
    assert_error(WB_ERROR_FORMAT,
                 "line 3, column \"a\": this is not a number: \"NA\"; wb_csv_labels reads names; "
                 ".missing says which text means no value");
    wb_free(csv);
    csv = wb_read_csv(file_of("a\n1\nNA\n"), .missing = "NA");
    assert_null(wb_csv_column(csv, "a"));
    assert_error(WB_ERROR_FORMAT, "line 3, column \"a\": the value is missing: \"NA\"");
    wb_free(csv);
}

static void missing_values_can_be_nan(void **state) {
    (void)state;
    wb_csv *csv = wb_read_csv(file_of("1,2\nNA,3\n,4\n"), .header = false, .missing = "NA",
                              .missing_is_nan = true);
    assert_int_equal(wb_csv_rows(csv), 3);
    wb_array *x = wb_csv_column(csv, "1"), *all = wb_csv_matrix(csv, 0, NULL);
    assert_true(wb_at(x, 0) == 1 && isnan(wb_at(x, 1)) && isnan(wb_at(x, 2)));
    assert_int_equal(wb_size(all, 0), 2);
    assert_null(wb_csv_labels(csv, "1", NULL));
    assert_error(WB_ERROR_FORMAT, "line 2, column \"1\": the value is missing: \"NA\"");
    wb_free(csv);
}

static const struct mistake {
    const char *name, *text, *message;
} mistakes[] = {
    {"a line with fewer fields", "a,b\n1,2\n\n3\n", "line 4 has 1 fields, but line 1 has 2"},
    {"a line with more fields", "a,b\n1,2,3\n", "line 2 has 3 fields, but line 1 has 2"},
    {"a quote that is not closed", "a,b\n1,\"2\n3", "line 2: a quote is not closed"},
    {"text behind a quote", "a\n\"1\"2\n", "line 2: there is text after a closing quote"},
    {"two columns of one name", "a,b,a\n", "columns 1 and 3 are both called \"a\""},
    {"an empty file", "\n\n", "the file has no lines"},
};

static void mistakes_are_named(void **state) {
    const struct mistake *m = *state;
    assert_null(wb_read_csv(file_of(m->text)));
    assert_error(WB_ERROR_FORMAT, m->message);
}

static const struct number {
    const char *name, *text;
    bool is_number;
    double value;
} numbers[] = {
    {"a point", "1.5", true, 1.5},
    {"nothing before the point", "-.5", true, -.5},
    {"an exponent", "+2.E-1", true, .2},
    {"blanks around", " \t7 ", true, 7},
    {"inf", "-Inf", true, -(double)INFINITY},
    {"a small one", "1e-400", true, 0},
    {"hexadecimal", "0x10", false, 0},
    {"too large", "1e999", false, 0},
    {"nan with text", "nan(abc)", false, 0},
    {"a comma", "1,5", false, 0},
    {"no digits", ".", false, 0},
    {"no exponent", "1e", false, 0},
    {"a blank within", "1 5", false, 0},
    {"blanks alone", "  ", false, 0},
};

/* As old spreadsheets wrote them. */
static void lines_may_end_with_cr(void **state) {
    (void)state;
    wb_csv *csv = wb_read_csv(file_of("a,b\r1,\"x\ry\"\r\r3,4\r"));
    assert_int_equal(wb_csv_rows(csv), 2);
    assert_string_equal(wb_csv_name(csv, 1), "b");
    assert_string_equal(wb_csv_text(csv, 0, 1), "x\ry");
    assert_string_equal(wb_csv_text(csv, 1, 0), "3");
    assert_null(wb_csv_column(csv, "b"));
    assert_error(WB_ERROR_FORMAT, "line 2, column \"b\"");
    wb_free(csv);
    csv = wb_read_csv(file_of("a,b\n1,x\ry\n")); /* a CR among lines of LF is text */
    assert_string_equal(wb_csv_text(csv, 0, 1), "x\ry");
    wb_free(csv);
}

static void a_wrong_separator_is_named(void **state) {
    (void)state;
    assert_null(wb_read_csv(file_of("a;b\n1,5;2\n")));
    assert_error(WB_ERROR_FORMAT, "line 1 has one field, \"a;b\": perhaps .separator = ';'");
    wb_csv *csv = wb_read_csv(file_of("a\tb\n1\t2\n"));
    assert_null(wb_csv_column(csv, "a"));
    assert_error(WB_ERROR_ARGUMENT, "perhaps .separator = '\\t'");
    wb_free(csv);
}

static void gzipped_tables_are_read(void **state) {
    (void)state;
    const char *path = path_of("table.csv.gz");
    for (int i = 0; i < 2; i++) { /* two members */
        gzFile file = gzopen(path, i ? "ab" : "wb");
        assert_true(file && gzputs(file, i ? "3,4\n" : "a,b\n1,2\n") > 0);
        assert_int_equal(gzclose(file), Z_OK);
    }
    wb_csv *csv = wb_read_csv(path);
    assert_int_equal(wb_csv_rows(csv), 2);
    assert_true(wb_at(wb_csv_column(csv, "b"), 1) == 4);
    wb_free(csv);
}

static void numbers_are_decimal(void **state) {
    const struct number *n = *state;
    static const char *const locales[] = {"C", "de_DE.UTF-8"}; /* the second one perhaps is there */
    for (int i = 0; i < 2; i++) {
        char text[80];
        (void)setlocale(LC_NUMERIC, locales[i]);
        snprintf(text, sizeof text, "a;b\n%s;0.5\n", n->text);
        wb_csv *csv = wb_read_csv(file_of(text), .separator = ';');
        wb_array *x = wb_csv_column(csv, "a");
        wb_array *half = n->is_number ? wb_csv_column(csv, "b") : NULL;
        (void)setlocale(LC_NUMERIC, "C");
        if (n->is_number) {
            assert_true(wb_item(x) == n->value);
            assert_true(wb_item(half) == .5);
        } else
            assert_error(WB_ERROR_FORMAT, "line 2, column \"a\": this is not a number");
        wb_free(csv);
    }
}

static void files_of_many_mebibytes_are_read(void **state) {
    enum { ROWS = 1000 * 1000 };
    (void)state;
    const char *path = path_of("large.csv");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs("place,half,text\n", file);
    for (int i = 0; i < ROWS; i++) fprintf(file, "%d,%d.5,row %d\n", i, i, i);
    fclose(file); /* 25 MiB */
    wb_csv *csv = wb_read_csv(path);
    assert_int_equal(wb_csv_rows(csv), ROWS);
    assert_string_equal(wb_csv_text(csv, ROWS - 1, 2), "row 999999");
    wb_array *half = wb_csv_column(csv, "half");
    assert_true(wb_item(wb_sum(half)) == ROWS * (ROWS / 2.));
    wb_free(csv);
}

static void files_and_names_are_checked(void **state) {
    (void)state;
    assert_null(wb_read_csv(path_of("nowhere.csv")));
    assert_error(WB_ERROR_IO, "No such file");
    write_file(path_of("wide.csv"), "a,b\n1,2\n3\0,4\n", 13);
    assert_null(wb_read_csv(path_of("wide.csv")));
    assert_error(WB_ERROR_FORMAT, "line 3: text must have no zero bytes (is it UTF-16?)");
    assert_null(wb_read_csv(file_of("a,b\n1,2\n"), .separator = '"'));
    assert_error(WB_ERROR_ARGUMENT, "separator must not be a quote or a line end, got byte 34");
    wb_csv *csv = wb_read_csv(file_of("a,b\n1,2\n"));
    assert_null(wb_csv_column(csv, "c"));
    assert_error(WB_ERROR_ARGUMENT, "there is no column \"c\"; there are a, b");
    assert_null(wb_csv_column(csv, NULL));
    assert_error(WB_ERROR_ARGUMENT, "csv_column: the name is NULL");
    assert_null(wb_csv_matrix(csv, 1, NULL));
    assert_error(WB_ERROR_ARGUMENT, "csv_matrix: without names count must be 0, got 1");
    wb_free(csv);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, mistakes, mistakes_are_named);
    ADD_ROWS(&tests, numbers, numbers_are_decimal);
    const struct CMUnitTest others[] = {
        TEST(columns_have_types),        TEST(a_vocabulary_numbers_another_table),
        TEST(quotes_hold_anything),      TEST(a_text_among_numbers_may_mean_none),
        TEST(missing_values_can_be_nan), TEST(files_of_many_mebibytes_are_read),
        TEST(lines_may_end_with_cr),     TEST(a_wrong_separator_is_named),
        TEST(gzipped_tables_are_read),   TEST(files_and_names_are_checked)};
    ADD_TESTS(&tests, others);
    return run_test_list("data/test_csv", &tests, make_folder, drop_folder);
}
