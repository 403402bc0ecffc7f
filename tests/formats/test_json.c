/* src/formats/json.c: the cases of JSON that parsers disagree about, damage, large files. */
#include "formats/json.h"

#include <float.h>
#include <math.h>

#include "formats/trees.h"

#define NAME "test.json"

static wb_file *open_text(const void *text, size_t size, const wb_json **root) {
    write_bytes(NAME, text, size);
    return wb_json_open(test_path, root);
}

static wb_file *open_json(const char *text, const wb_json **root) {
    wb_file *file = open_text(text, strlen(text), root);
    if (!file) fail_msg("%s: %s", text, wb_error_message());
    return file;
}

/* ---- what is refused ---- */

typedef struct fault_row {
    const char *name, *text, *message;
} fault_row;

static const fault_row fault_rows[] = {
    {"nothing", "", "offset 0: this is not valid JSON: the text ends where a value is expected"},
    {"space alone", " \n", "offset 2: this is not valid JSON: the text ends"},
    {"a byte order mark", "\xEF\xBB\xBF{}",
     "offset 0: this is not valid JSON: it begins with a "
     "byte order mark"},
    {"two values", "1 2", "offset 2: this is not valid JSON: something follows its end"},
    {"a comma after all", "[1],", "offset 3: this is not valid JSON: something follows its end"},
    {"a bracket too many", "[]]", "offset 2: this is not valid JSON: something follows its end"},
    {"a brace that closes a list", "[1}", "offset 2: this is not valid JSON: a comma or ]"},
    {"a bracket that closes an object", "{\"a\":1]", "offset 6: this is not valid JSON: a comma"},
    {"a list without its end", "[1", "offset 2: this is not valid JSON: a comma or ]"},
    {"an object without its end", "{\"a\":1", "offset 6: this is not valid JSON: a comma or }"},
    {"an open bracket", "[", "offset 1: this is not valid JSON: the text ends"},
    {"an open brace", "{", "offset 1: this is not valid JSON: a name in quotes"},
    {"a trailing comma in a list", "[1,]",
     "offset 3: this is not valid JSON: a comma before the "
     "end"},
    {"a trailing comma in an object", "{\"a\":1,}",
     "offset 7: this is not valid JSON: a comma "
     "before the end"},
    {"a comma alone", "[,]", "offset 1: this is not valid JSON: a value is expected"},
    {"two commas", "[1,,2]", "offset 3: this is not valid JSON: a value is expected"},
    {"no comma", "[1 2]", "offset 3: this is not valid JSON: a comma or ] is expected"},
    {"no colon", "{\"a\" 1}", "offset 5: this is not valid JSON: a colon is expected"},
    {"two colons", "{\"a\"::1}", "offset 5: this is not valid JSON: a value is expected"},
    {"a name without a value", "{\"a\":}", "offset 5: this is not valid JSON: a value is expected"},
    {"a name that is a number", "{1:1}", "offset 1: this is not valid JSON: a name in quotes"},
    {"a name without quotes", "{a:1}", "offset 1: this is not valid JSON: a name in quotes"},
    {"apostrophes", "['a']", "offset 1: this is not valid JSON: a value is expected"},
    {"a comment", "[1/*one*/]", "offset 2: this is not valid JSON: a comma or ] is expected"},
    {"NaN", "[NaN]", "offset 1: this is not valid JSON: NaN and Infinity"},
    {"Infinity", "[Infinity]", "NaN and Infinity, which JSON does not have"},
    {"-Infinity", "[-Infinity]", "NaN and Infinity, which JSON does not have"},
    {"nan", "[nan]", "a value is expected"},
    {"True", "[True]", "a value is expected"},
    {"half a word", "[tru]", "a value is expected"},
    {"a word and more", "[nullx]", "offset 5: this is not valid JSON: a comma or ]"},
    {"a number with a zero in front", "[01]",
     "offset 1: this is not valid JSON: a number that "
     "begins with a zero"},
    {"a negative one", "[-01]", "a number that begins with a zero"},
    {"a plus", "[+1]", "a value is expected"},
    {"a minus alone", "[-]", "a value is expected"},
    {"two minuses", "[--1]", "a value is expected"},
    {"a point in front", "[.5]", "a value is expected"},
    {"a point at the end", "[1.]", "offset 3: this is not valid JSON: a digit is expected after"},
    {"a point before an exponent", "[1.e1]", "a digit is expected after the point"},
    {"an exponent without digits", "[1e]", "a digit is expected in the exponent"},
    {"an exponent with a sign alone", "[1e+]", "a digit is expected in the exponent"},
    {"hexadecimal", "[0x1]", "offset 2: this is not valid JSON: a comma or ] is expected"},
    {"a number beyond f64", "[1e400]",
     "offset 1: this is not valid JSON: a number beyond the "
     "range of f64"},
    {"a text without its end", "[\"a", "offset 1: this is not valid JSON: a text without its end"},
    {"a text that ends in a backslash", "\"\\", "an unknown escape"},
    {"a quote that is escaped", "\"a\\\"", "a text without its end"},
    {"a tab in a text", "[\"\t\"]", "offset 2: this is not valid JSON: a control character"},
    {"a line in a text", "[\"\n\"]", "a control character within a text"},
    {"an unknown escape", "[\"\\x41\"]", "offset 3: this is not valid JSON: an unknown escape"},
    {"\\u with three digits", "[\"\\u123\"]", "\\u needs four hexadecimal digits"},
    {"\\u with a sign", "[\"\\u+123\"]", "\\u needs four hexadecimal digits"},
    {"\\U", "[\"\\U0041\"]", "an unknown escape"},
    {"the first half of a pair", "[\"\\ud83d\"]",
     "offset 2: this is not valid JSON: half of a "
     "surrogate pair"},
    {"the first half twice", "[\"\\ud83d\\ud83d\"]", "half of a surrogate pair"},
    {"the second half", "[\"\\ude00\"]", "half of a surrogate pair"},
    {"a half and a character", "[\"\\ud83d\\u0041\"]", "half of a surrogate pair"},
    {"a byte that is not UTF-8", "[\"\xff\"]", "offset 2: a byte is not valid UTF-8"},
    {"a surrogate in UTF-8", "[\"\xed\xa0\x80\"]", "offset 2: a byte is not valid UTF-8"},
    {"an overlong character", "[\"\xc0\xaf\"]", "offset 2: a byte is not valid UTF-8"},
    {"a no-break space outside of a text",
     "[1,\xc2\xa0"
     "2]",
     "a value is expected"},
    {"a name twice", "{\"a\":1,\"b\":2,\"a\":3}", "offset 13: the name \"a\" appears twice"},
    {"a name twice, once escaped", "{\"a\":1,\"\\u0061\":3}", "the name \"a\" appears twice"},
    {"an empty name twice", "{\"\":1,\"\":3}", "the name \"\" appears twice"},
};

static void is_refused(void **state) {
    const fault_row *row = *state;
    const wb_json *root;
    assert_null(open_text(row->text, strlen(row->text), &root));
    assert_non_null(strstr(wb_error_message(), test_path));
    assert_error(WB_ERROR_FORMAT, row->message);
}

static void a_zero_byte_is_refused(void **state) {
    (void)state;
    const wb_json *root;
    assert_null(open_text("[1]\0", 4, &root));
    assert_error(WB_ERROR_FORMAT, "offset 3: this is not valid JSON: something follows its end");
    assert_null(open_text("[\"\0\"]", 5, &root));
    assert_error(WB_ERROR_FORMAT, "offset 2: this is not valid JSON: a control character");
}

static void nesting_has_an_end(void **state) {
    (void)state;
    const wb_json *root;
    char text[2 * WB_JSON_DEPTH + 2] = "";
    memset(text, '[', WB_JSON_DEPTH);
    memset(text + WB_JSON_DEPTH, ']', WB_JSON_DEPTH);
    wb_free(open_json(text, &root));
    memset(text, '[', WB_JSON_DEPTH + 1);
    assert_null(open_text(text, strlen(text), &root));
    assert_error(WB_ERROR_FORMAT, "offset 64: JSON may be nested at most 64 deep here");
}

static void files_that_are_not_there_are_named(void **state) {
    (void)state;
    const wb_json *root;
    assert_null(wb_json_open("none.json", &root));
    assert_error(WB_ERROR_IO, "none.json: cannot be opened");
    assert_null(wb_json_open("/", &root));
    assert_error(WB_ERROR_IO, "/: not a regular file");
}

/* ---- what is read ---- */

static void values_are_read(void **state) {
    (void)state;
    const wb_json *root;
    wb_file *file = open_json(" {\"a\": [null, true, false, 1, 2.5, \"x\", [], {}],\r\n\t\"\": {"
                              "\"b\":-7}} ",
                              &root);
    assert_int_equal(root->kind, WB_JSON_OBJECT);
    assert_int_equal(root->count, 2);
    const wb_json *a = wb_json_get(root, "a");
    static const uint8_t kinds[] = {WB_JSON_NULL, WB_JSON_BOOL, WB_JSON_BOOL, WB_JSON_INTEGER,
                                    WB_JSON_REAL, WB_JSON_TEXT, WB_JSON_LIST, WB_JSON_OBJECT};
    assert_int_equal(a->count, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(a->items[i].kind, kinds[i]);
    bool is_true = false, is_false = true;
    int64_t integer = 0;
    double real = 0;
    assert_true(wb_json_bool(&a->items[1], &is_true) && is_true);
    assert_true(wb_json_bool(&a->items[2], &is_false) && !is_false);
    assert_true(wb_json_integer(&a->items[3], &integer) && integer == 1);
    assert_true(wb_json_number(&a->items[4], &real) && real == 2.5);
    assert_string_equal(wb_json_text(&a->items[5]), "x");
    assert_true(wb_json_is(&a->items[5], "x") && !wb_json_is(&a->items[5], "y"));
    assert_int_equal(a->items[5].offset, 35);
    assert_string_equal(wb_json_noun(a), "a list");
    assert_true(wb_json_integer(wb_json_get(wb_json_get(root, ""), "b"), &integer));
    assert_int_equal(integer, -7);
    assert_null(wb_json_get(root, "c"));
    assert_null(wb_json_get(a, "c"));
    assert_null(wb_json_get(NULL, "c"));
    assert_false(wb_json_integer(NULL, &integer) || wb_json_number(a, &real) ||
                 wb_json_bool(NULL, &is_true) || wb_json_text(a) || wb_json_is(NULL, ""));
    wb_free(file);
}

static void a_value_by_itself_is_a_text(void **state) {
    (void)state;
    const wb_json *root;
    wb_file *file = open_json("\"x\"", &root);
    assert_true(wb_json_is(root, "x"));
    wb_free(file);
    file = open_json("null", &root);
    assert_int_equal(root->kind, WB_JSON_NULL);
    wb_free(file);
}

typedef struct number_row {
    const char *name, *text;
    bool is_integer;
    int64_t integer;
    double real;
} number_row;

static const number_row number_rows[] = {
    {"zero", "0", true, 0, 0},
    {"the largest integer", "9223372036854775807", true, INT64_MAX, 0x1p63},
    {"the smallest integer", "-9223372036854775808", true, INT64_MIN, -0x1p63},
    {"an integer beyond doubles", "9007199254740993", true, 9007199254740993, 9007199254740992},
    {"an integer beyond 64 bits", "9223372036854775808", false, 0, 0x1p63},
    {"a negative one", "-9223372036854775809", false, 0, -0x1p63},
    {"an integer with an exponent", "1e3", true, 1000, 1000},
    {"an integer with a point", "-2.0", true, -2, -2},
    {"a whole number beyond the exact", "1e16", false, 0, 1e16},
    {"a fraction", "0.5", false, 0, .5},
    {"a capital exponent", "25E-1", false, 0, 2.5},
    {"an exponent with a plus", "25e+1", true, 250, 250},
    {"the largest double", "1.7976931348623157e308", false, 0, DBL_MAX},
    {"the smallest double", "5e-324", false, 0, 0x1p-1074},
    {"less than any double", "1e-400", true, 0, 0},
    {"a fraction of many digits", "0.1000000000000000055511151231257827021181583404541015625",
     false, 0, .1},
};

static void number_is_read(void **state) {
    const number_row *row = *state;
    const wb_json *root;
    int64_t integer = 0;
    double real = NAN;
    wb_file *file = open_json(row->text, &root);
    assert_true(wb_json_integer(root, &integer) == row->is_integer);
    if (row->is_integer) assert_true(integer == row->integer);
    assert_true(wb_json_number(root, &real) && real == row->real);
    wb_free(file);
}

static void minus_zero_keeps_its_sign(void **state) {
    (void)state;
    const wb_json *root;
    double real = 0;
    int64_t integer = 1;
    wb_file *file = open_json("-0", &root);
    assert_true(wb_json_number(root, &real) && signbit(real));
    assert_true(wb_json_integer(root, &integer) && integer == 0);
    wb_free(file);
}

static void escapes_are_decoded(void **state) {
    (void)state;
    const wb_json *root;
    wb_file *file = open_json("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20AC"
                              "\\uD83D\\ude00\\uffff\", \"σ\\u03c3\", \"\x7f\"]",
                              &root);
    assert_string_equal(wb_json_text(&root->items[0]), "\"\\/\b\f\n\r\t");
    assert_string_equal(wb_json_text(&root->items[1]), "Aé€\xF0\x9F\x98\x80\xEF\xBF\xBF");
    assert_string_equal(wb_json_text(&root->items[2]), "σσ");
    assert_string_equal(wb_json_text(&root->items[3]), "\x7f");
    wb_free(file);
}

static void zero_characters_are_kept(void **state) {
    (void)state;
    const wb_json *root;
    wb_file *file = open_json("{\"a\\u0000b\": \"c\\u0000d\", \"a\": 1, \"a\\u0000\": 2}", &root);
    const wb_json *value = wb_json_find(root, "a\0b", 3);
    assert_int_equal(value->count, 3);
    assert_memory_equal(value->text, "c\0d", 4);
    assert_null(wb_json_text(value));
    assert_false(wb_json_is(value, "c"));
    assert_int_equal(wb_json_get(root, "a")->integer, 1);
    wb_free(file);
}

static void what_is_quoted_comes_back(void **state) {
    (void)state;
    char all[128] = "";
    for (int i = 1; i < 128; i++) all[i - 1] = (char)i;
    wb_text out = {.data = NULL};
    wb_json_quote(&out, all);
    const wb_json *root;
    wb_file *file = open_json(out.data, &root);
    assert_string_equal(wb_json_text(root), all);
    wb_free(file);
    wb_text_release(&out);
}

/* ---- large files, and what costs ---- */

static void members_of_large_objects_are_found(void **state) {
    (void)state;
    enum { COUNT = 200000 };
    char name[32];
    wb_text out = {.data = NULL};
    for (int i = 0; i < COUNT; i++) wb_text_add(&out, "%s\"n%d\":%d", i ? "," : "{", i, i);
    wb_text_byte(&out, '}');
    const wb_json *root;
    wb_file *file = open_json(out.data, &root);
    assert_int_equal(root->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        const wb_json *item = wb_json_get(root, name);
        assert_true(item == &root->items[i] && item->integer == i);
    }
    assert_null(wb_json_get(root, "n-1"));
    assert_true(file->arena.used_bytes < 32 * (int64_t)out.size);
    wb_free(file);
    out.data[out.size - 1] = 0;
    wb_text_put(&out, ""); /* the last member stands twice */
    wb_text again = {.data = NULL};
    wb_text_add(&again, "%s,\"n7\":1}", out.data);
    assert_null(open_text(again.data, again.size, &root));
    assert_error(WB_ERROR_FORMAT, "the name \"n7\" appears twice");
    wb_text_release(&out);
    wb_text_release(&again);
}

static void values_take_a_bounded_memory(void **state) {
    (void)state;
    enum { SIZE = 300000 };
    static const char *const parts[] = {"1,", "[],", "{},", "[1],", "\"\",", "{\"\":1},"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        wb_text out = {.data = NULL};
        wb_text_byte(&out, '[');
        while (out.size < SIZE) wb_text_put(&out, parts[k]);
        wb_text_put(&out, "1]");
        const wb_json *root;
        wb_file *file = open_json(out.data, &root);
        assert_true(file->arena.used_bytes < 32 * (int64_t)out.size);
        wb_free(file);
        wb_text_release(&out);
    }
}

/* ---- damage ---- */

static const char small[] =
    "{\"a\":[1,-2.5e3,true,null,{\"b\":\"\\u00e9\\ud83d\\ude00\"}],\"c\":\"\\n\",\"d\":{\"1\":1,"
    "\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9}}";

static void every_prefix_is_an_error(void **state) {
    (void)state;
    const wb_json *root;
    for (size_t size = 0; size < sizeof small - 1; size++) {
        assert_null(open_text(small, size, &root));
        assert_error(WB_ERROR_FORMAT, "offset ");
    }
    wb_free(open_json(small, &root));
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    const wb_json *root;
    wb_file *file = NULL;
    write_bytes(NAME, small, sizeof small - 1);
    for (int64_t n = 1; !file; n++) {
        (void)wb_fail_allocation(n);
        file = wb_json_open(test_path, &root);
        (void)wb_fail_allocation(0);
        if (!file) assert_error(WB_ERROR_MEMORY, "");
        assert_true(n < 100);
    }
    wb_free(file);
}

int main(void) {
    enum { FAULTS = sizeof fault_rows / sizeof *fault_rows };
    enum { NUMBERS = sizeof number_rows / sizeof *number_rows };
    static struct CMUnitTest faults[FAULTS], numbers[NUMBERS];
    const struct CMUnitTest tests[] = {
        TEST(a_zero_byte_is_refused),
        TEST(nesting_has_an_end),
        TEST(files_that_are_not_there_are_named),
        TEST(values_are_read),
        TEST(a_value_by_itself_is_a_text),
        TEST(minus_zero_keeps_its_sign),
        TEST(escapes_are_decoded),
        TEST(zero_characters_are_kept),
        TEST(what_is_quoted_comes_back),
        TEST(members_of_large_objects_are_found),
        TEST(values_take_a_bounded_memory),
        TEST(every_prefix_is_an_error),
        TEST(allocations_that_fail_are_errors),
    };
    if (make_folder(NULL)) return 1;
    for (int i = 0; i < FAULTS; i++) faults[i] = TEST_ROW(&fault_rows[i], is_refused);
    for (int i = 0; i < NUMBERS; i++) numbers[i] = TEST_ROW(&number_rows[i], number_is_read);
    const int failed = cmocka_run_group_tests_name("what is refused", faults, NULL, NULL) +
                       cmocka_run_group_tests_name("numbers", numbers, NULL, NULL) +
                       cmocka_run_group_tests_name("JSON", tests, NULL, NULL);
    return remove_folder(NULL) || failed;
}
