/* src/formats/npy.c: handmade files for every rule, arrays there and back, damage. */
#include <sys/resource.h>
#include <sys/stat.h>

#include "formats/npy_maker.h"

#define NPY "test.npy"

static void write_npy(int version, const char *text, size_t data_bytes) {
    unsigned char bytes[4096];
    assert_true(strlen(text) + data_bytes + 12 < sizeof bytes);
    write_bytes(NPY, bytes, put_npy(bytes, version, text, data_bytes));
}

/* A header, and what is wrong. */
typedef struct fault_row {
    const char *name, *text, *message;
} fault_row;

static const fault_row fault_rows[] = {
    {"an empty header", "", "offset 10: the header must be a dictionary"},
    {"a header that is a list", "[]", "the header must be a dictionary"},
    {"a header without its end", "{'descr': '<f4'", "a key is expected"},
    {"an empty dictionary", "{}", "descr, fortran_order or shape is missing"},
    {"a header without shape", "{'descr': '<f4', 'fortran_order': False}", "is missing"},
    {"an unknown key", "{'descr': '<f4', 'color': 1}", "an unknown key"},
    {"a key twice", "{'descr': '<f4', 'descr': '<f4'}", "a key appears twice"},
    {"a key without colon", "{'descr' '<f4'}", "a colon is expected"},
    {"a key without quotes", "{descr: '<f4'}", "a key is expected"},
    {"no comma", "{'descr': '<f4' 'shape': ()}", "a key is expected"},
    {"a type without its end", "{'descr': '<f4", "descr must be a type that Weber knows"},
    {"a structure without its end", "{'descr': [('a', '<f4'",
     "descr must be a type that Weber knows"},
    {"more than it", "{'descr':'<f4','fortran_order':True,'shape':()}1", "unexpected text after"},
};

/* The parts of a header that is otherwise right, the bytes after it, and what is wrong. */
typedef struct part_row {
    const char *name, *descr, *order, *shape;
    size_t data_bytes;
    const char *message;
} part_row;

static const part_row part_rows[] = {
    {"an expression", "'<f4'", "not True", "()", 4, "fortran_order must be True or False"},
    {"a call", "open('x')", "True", "()", 4, "descr must be a type that Weber knows"},
    {"a type with escapes", "'<f\\x34'", "True", "()", 4, "descr must be a type that Weber knows"},
    {"a shape that is a list", "'<f4'", "True", "[1]", 4, "shape must be a tuple"},
    {"a shape that is a number", "'<f4'", "True", "1", 4, "shape must be a tuple"},
    {"a number in parentheses", "'<f4'", "True", "(1)", 4,
     "shape must be a tuple, but is a "
     "number"},
    {"a shape without a comma", "'<f4'", "True", "(1 1)", 4, "a comma is expected in shape"},
    {"a negative size", "'<f4'", "True", "(-1,)", 4, "each size in shape must be a whole number"},
    {"a size with a fraction", "'<f4'", "True", "(1.0,)", 4, "a comma is expected in shape"},
    {"a size in hexadecimal", "'<f4'", "True", "(0x1,)", 4, "a comma is expected in shape"},
    {"a size of 67 bits", "'<f4'", "True", "(99999999999999999999,)", 4,
     "each size in shape must be a whole number"},
    {"an overflow", "'<f4'", "True", "(4294967296, 4294967296)", 4, "more elements than can be"},
    {"fewer bytes than elements", "'<f4'", "True", "(2,)", 7, "fewer elements than"},
    {"bytes after its last element", "'<f4'", "True", "(2,)", 9, "bytes after its last"},
};

static void assert_refused(const char *text, size_t data_bytes, const char *message) {
    for (int version = 1; version <= 3; version++) {
        write_npy(version, text, data_bytes);
        assert_null(wb_open(test_path));
        assert_non_null(strstr(wb_error_message(), test_path));
        assert_non_null(strstr(wb_error_message(), "offset "));
        assert_error(WB_ERROR_FORMAT, version == 1 ? message : "");
    }
}

static void is_refused(void **state) {
    const fault_row *row = *state;
    assert_refused(row->text, 0, row->message);
}

static void part_is_refused(void **state) {
    const part_row *row = *state;
    char text[200];
    (void)snprintf(text, sizeof text, H("%s", "%s", "%s"), row->descr, row->order, row->shape);
    assert_refused(text, row->data_bytes, row->message);
}

static void other_versions_and_lengths_are_refused(void **state) {
    (void)state;
    const struct {
        const char *bytes;
        size_t size;
        const char *message;
    } rows[] = {
        {"", 0, "offset 0: an array of NumPy must begin with \\x93NUMPY"},
        {"\x93NUMPx\1\0\0\0", 10, "offset 0: an array of NumPy must begin"},
        {"\x93NUMPY\1\0", 8, "offset 8: it is cut short: it ends within its header"},
        {"\x93NUMPY\1\0\1", 9, "offset 9: it is cut short: it ends within its header"},
        {"\x93NUMPY\1\0\1\0", 10,
         "offset 8: it is cut short: its header should be longer than all of it"},
        {"\x93NUMPY\2\0\1\0\0", 11, "offset 11: it is cut short: it ends within its header"},
        {"\x93NUMPY\2\0\xff\xff\xff\xff{}", 14, "offset 8: it is cut short: its header"},
        {"\x93NUMPY\4\0\1\0\0\0{", 13, "offset 6: its version must be"},
        {"\x93NUMPY\1\1\1\0{", 11, "offset 6: its version must be"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_bytes(NPY, rows[i].bytes, rows[i].size);
        assert_null(wb_open(test_path));
        assert_error(WB_ERROR_FORMAT, rows[i].message);
    }
}

static void both_orders_are_read_without_a_copy(void **state) {
    (void)state;
    write_npy(1, H("'|u1'", "False", "(2, 3)"), 6);
    wb_file *file = open_saved();
    const wb_record *r = wb_file_root(file);
    assert_true(r->ndim == 2 && r->sizes[0] == 3 && r->sizes[1] == 2);
    assert_ptr_equal(r->data, file->map.bytes + r->offset);
    wb_array *x = wb_record_array(file, r);
    wb_free(file);
    assert_values(x, 0, 1, 2, 3, 4, 5, 6);
    write_npy(3, "{\"shape\": (2L,3L),\"fortran_order\":True,\"descr\":\"|u1\"}   \n", 6);
    file = open_saved();
    assert_sizes(wb_record_array(file, wb_file_root(file)), 2, 3);
    wb_free(file);
}

static void big_endian_numbers_are_turned_around(void **state) {
    (void)state;
    write_npy(1, H("'>i4'", "False", "(2,)"), 8);
    wb_file *file = open_saved();
    wb_array *x = wb_record_array(file, wb_file_root(file));
    wb_free(file);
    assert_values(x, 0, 0x01020304, 0x05060708);
    write_npy(1, H("'>i8'", "False", "()"), 8);
    file = open_saved();
    assert_value(wb_record_array(file, wb_file_root(file)), (double)0x0102030405060708, 0);
    wb_free(file);
}

static void all_types_are_read(void **state) {
    (void)state;
    const struct {
        const char *descr;
        wb_record_kind kind;
        int dtype, size;
        const char *type;
    } rows[] = {{"<f4", WB_RECORD_ARRAY, WB_F32, 4, ""},
                {"<f8", WB_RECORD_ARRAY, WB_F64, 8, ""},
                {"=f2", WB_RECORD_ARRAY, WB_F16, 2, ""},
                {"<V2", WB_RECORD_ARRAY, WB_BF16, 2, ""},
                {"|V2", WB_RECORD_ARRAY, WB_BF16, 2, ""},
                {"<i4", WB_RECORD_ARRAY, WB_I32, 4, ""},
                {"<i8", WB_RECORD_ARRAY, WB_I64, 8, ""},
                {"|u1", WB_RECORD_ARRAY, WB_U8, 1, ""},
                {"|b1", WB_RECORD_ARRAY, WB_BOOL, 1, ""},
                {"<c8", WB_RECORD_OPAQUE, 0, 8, "numpy <c8 (complex)"},
                {"<U12", WB_RECORD_OPAQUE, 0, 48, "numpy <U12"},
                {"|O", WB_RECORD_OPAQUE, 0, 7, "numpy |O"},
                {"f4", WB_RECORD_OPAQUE, 0, 4, "numpy f4"},
                {"\x1b[2J", WB_RECORD_OPAQUE, 0, 4, "numpy ?[2J"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, H("'%s'", "False", "(1,)"), rows[i].descr);
        write_npy(1, text, (size_t)rows[i].size);
        wb_file *file = open_saved();
        const wb_record *r = wb_file_root(file);
        assert_int_equal(r->kind, rows[i].kind);
        if (r->kind == WB_RECORD_ARRAY) assert_int_equal(r->dtype, rows[i].dtype);
        assert_string_equal(wb_record_type(r), rows[i].type);
        assert_int_equal(r->data_bytes, rows[i].size);
        wb_free(file);
    }
    write_npy(1, H("[('a', '<f4'), ('b]', [('c', '|u1', (2,))])]", "False", "(1,)"), 6);
    wb_file *file = open_saved();
    assert_string_equal(wb_record_type(wb_file_root(file)),
                        "numpy [('a', '<f4'), ('b]', [('c', '|u1', (2,))])]");
    wb_free(file);
    write_npy(1, H("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4);
    file = open_saved();
    assert_string_equal(wb_record_type(wb_file_root(file)), "numpy <f4 of 9 dimensions");
    wb_free(file);
}

/* Elements 1, 2, ... as bytes; the expected values are those of the bytes. */
static void whole_numbers_are_read_into_what_holds_them(void **state) {
    (void)state;
    const struct {
        const char *descr, *bytes;
        int dtype, size;
        double first, second;
    } rows[] = {
        {"|i1", "\x01\xfe", WB_I32, 1, 1, -2},
        {"<i2", "\x02\x01\xfe\xff", WB_I32, 2, 258, -2},
        {">i2", "\x01\x02\xff\xfe", WB_I32, 2, 258, -2},
        {"<u2", "\x02\x01\xfe\xff", WB_I32, 2, 258, 65534},
        {">u4", "\0\0\1\2\xff\xff\xff\xfe", WB_I64, 4, 258, 4294967294},
        {"<u8", "\2\1\0\0\0\0\0\0\0\0\0\0\1\0\0\0", WB_I64, 8, 258, 4294967296},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        unsigned char bytes[256];
        (void)snprintf(text, sizeof text, H("'%s'", "False", "(2,)"), rows[i].descr);
        const size_t header = put_npy(bytes, 1, text, 0), data = 2 * (size_t)rows[i].size;
        memcpy(bytes + header, rows[i].bytes, data);
        write_bytes(NPY, bytes, header + data);
        wb_file *file = open_saved();
        assert_non_null(file);
        wb_array *x = wb_record_array(file, wb_file_root(file));
        assert_int_equal(wb_dtype_of(x), rows[i].dtype);
        assert_values(x, 0, rows[i].first, rows[i].second);
        wb_free(file);
    }
}

static void a_number_beyond_i64_is_refused(void **state) {
    (void)state;
    unsigned char bytes[256];
    const size_t header = put_npy(bytes, 1, H("'<u8'", "False", "(2,)"), 0);
    memset(bytes + header, 0, 16);
    bytes[header + 15] = 0x80;
    write_bytes(NPY, bytes, header + 16);
    assert_null(wb_open(test_path));
    char message[100];
    (void)snprintf(message, sizeof message,
                   "offset %zu: an element of U64 is 2^63 or more, which i64 cannot hold",
                   header + 8);
    assert_error(WB_ERROR_FORMAT, message);
}

static void random_arrays_come_back(void **state) {
    (void)state;
    test_random random = {test_seed()};
    for (int i = 0; i < 200; i++) {
        wb_arena arena = {.blocks = NULL};
        wb_record *x = random_array(&random, &arena);
        assert_int_equal(save_record(&wb_format_npy, NPY, x, NULL), WB_OK);
        wb_file *file = open_saved();
        assert_same_tree(x, wb_file_root(file));
        assert_int_equal(wb_file_root(file)->offset % 64, 0);
        wb_free(file);
        wb_arena_release(&arena);
    }
}

static void headers_are_written_as_numpy_does(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t sizes[] = {3, 4};
    const char *const wanted[] = {"{'descr': '<f4', 'fortran_order': True, 'shape': (), }",
                                  "{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }",
                                  "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }"};
    for (int ndim = 0; ndim < 3; ndim++) {
        char header[WB_NPY_MOST_HEADER];
        const wb_record *x = data_of(&arena, WB_F32, ndim, sizes,
                                     "123456789012345678901234567890123456789012345678");
        assert_int_equal(wb_npy_header(x, header, "p", "n"), 128);
        assert_memory_equal(header, "\x93NUMPY\1\0\x76\0", 10);
        assert_memory_equal(header + 10, wanted[ndim], strlen(wanted[ndim]));
        assert_int_equal(header[127], '\n');
    }
    const int64_t huge[] = {0, PTRDIFF_MAX / 64, 1, 1, 1, 1, 1, 1};
    char header[WB_NPY_MOST_HEADER];
    wb_record *x = record_of(&arena, WB_RECORD_ARRAY);
    x->ndim = 8;
    memcpy(x->sizes, huge, sizeof huge);
    assert_int_equal(wb_npy_header(x, header, "p", "n"), 128);
    x->sizes[0] = 1;
    assert_int_equal(wb_npy_header(x, header, "p", "n"), 0);
    assert_error(WB_ERROR_ARGUMENT, "p: \"n\"");
    wb_arena_release(&arena);
}

static void only_one_array_fits(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t three = 3;
    const char *const names[] = {"model", "other"};
    wb_record *x = data_of(&arena, WB_U8, 1, &three, "abc");
    assert_int_equal(save_record(&wb_format_npy, NPY, map_of(&arena, 1, names, &x), NULL), WB_OK);
    wb_file *file = open_saved();
    assert_same_tree(x, wb_file_root(file));
    wb_free(file);
    wb_record *two = map_of(&arena, 2, names, (wb_record *[]){x, x});
    assert_int_equal(save_record(&wb_format_npy, NPY, two, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, ".npy holds one array; .npz holds several");
    assert_int_equal(save_record(&wb_format_npy, NPY, text_of(&arena, "x"), NULL),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, ".npy holds one array; .npz holds several");
    wb_arena_release(&arena);
}

static size_t small_npy(unsigned char *bytes) {
    return put_npy(bytes, 1, H("'>f4'", "False", "(2, 3)"), 24);
}

static void every_truncation_is_noticed(void **state) {
    (void)state;
    unsigned char bytes[256];
    every_prefix(NPY, bytes, small_npy(bytes));
}

static void every_flipped_byte_is_an_error_or_a_tree(void **state) {
    (void)state;
    unsigned char bytes[256];
    const size_t size = small_npy(bytes);
    assert_true(every_flipped_byte(NPY, bytes, size) >= 24 * 6);
}

/* A file without blocks on the disk: reading all of it would take memory. */
static void large_files_are_mapped(void **state) {
    (void)state;
    enum { GIBIBYTE = 1 << 30 };
    struct rusage before, after;
    write_npy(1, H("'<f4'", "False", "(268435456,)"), 4);
    struct stat info;
    assert_int_equal(stat(test_path, &info), 0);
    assert_int_equal(truncate(test_path, info.st_size - 4 + GIBIBYTE), 0);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    wb_file *file = open_saved();
    wb_array *x = wb_record_array(file, wb_file_root(file));
    assert_true(wb_count(x) == GIBIBYTE / 4 && wb_at(x, GIBIBYTE / 4 - 1) == 0);
    wb_free(file);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true(after.ru_maxrss - before.ru_maxrss < (GIBIBYTE >> 10) / 4);
    assert_int_equal(unlink(test_path), 0);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(other_versions_and_lengths_are_refused),
        TEST(both_orders_are_read_without_a_copy),
        TEST(big_endian_numbers_are_turned_around),
        TEST(all_types_are_read),
        TEST(whole_numbers_are_read_into_what_holds_them),
        TEST(a_number_beyond_i64_is_refused),
        TEST(random_arrays_come_back),
        TEST(headers_are_written_as_numpy_does),
        TEST(only_one_array_fits),
        TEST(large_files_are_mapped),
        TEST(every_truncation_is_noticed),
        TEST(every_flipped_byte_is_an_error_or_a_tree),
    };
    ADD_ROWS(&tests, fault_rows, is_refused);
    ADD_ROWS(&tests, part_rows, part_is_refused);
    ADD_TESTS(&tests, others);
    return run_test_list("formats/test_npy", &tests, make_folder, remove_folder);
}
