/* src/formats/safetensors*.c: handmade files for every rule, trees there and back, damage. */
#include "formats/trees.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array/array.h"
#include "platform/memory.h"

#define FORMAT (&wb_format_safetensors)
#define NAME   "test.safetensors"

/* A file: the header's length, the header, that many bytes 1, 2, 3, ... */
static size_t put_file(unsigned char *bytes, const char *header, size_t data_bytes) {
    const uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++) bytes[8 + length + i] = (unsigned char)(i + 1);
    return 8 + length + data_bytes;
}

static void write_header(const char *header, size_t data_bytes) {
    unsigned char *bytes = malloc(strlen(header) + data_bytes + 8);
    assert_non_null(bytes);
    write_bytes(NAME, bytes, put_file(bytes, header, data_bytes));
    free(bytes);
}

/* ---- what is refused ---- */

typedef struct fault_row {
    const char *name, *header;
    size_t data_bytes;
    const char *message;
} fault_row;

#define F32_1 "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
#define SHAPE(shape, offsets)                                                                      \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define SHARED(text) "{\"__metadata__\":{\"weber.shared\":\"" text "\"},\"a\":" F32_1 "}"

static const fault_row fault_rows[] = {
    {"an empty header", "", 0, "offset 8: the header must begin with {"},
    {"a header that begins with a space", " {}", 0, "offset 8: the header must begin with {"},
    {"a header that is a list", "[]", 0, "offset 8: the header must begin with {"},
    {"a header without its end", "{\"a\":" F32_1, 4, "this is not valid JSON"},
    {"a bracket too many", "{}}", 0, "offset 10: this is not valid JSON"},
    {"something behind the header's end", "{} 1", 0, "offset 11: this is not valid JSON"},
    {"a text without its end", "{\"a:1}", 0, "this is not valid JSON"},
    {"a comma too many", "{\"a\":" F32_1 ",}", 4, "this is not valid JSON"},
    {"a header that is no UTF-8", "{\"\xff\":" F32_1 "}", 4,
     "offset 10: a byte is not valid UTF-8"},
    {"a UTF-8 surrogate", "{\"\xed\xa0\x80\":" F32_1 "}", 4,
     "offset 10: a byte is not valid UTF-8"},
    {"an overlong UTF-8 character", "{\"\xc0\xaf\":" F32_1 "}", 4, "a byte is not valid UTF-8"},
    {"a zero character in a name", "{\"a\\u0000b\":" F32_1 "}", 4,
     "tensor \"a\": a name must not have a zero character"},
    {"a zero character in metadata", "{\"__metadata__\":{\"a\":\"\\u0000\"}}", 0,
     "a map of texts is expected"},
    {"a control character in a name", "{\"a\\u001bb\":" F32_1 "}", 4,
     "must not have a control character"},
    {"a bare control character in a name", "{\"a\nb\":" F32_1 "}", 4,
     "offset 11: this is not valid JSON: a control character within a text"},
    {"brackets in brackets in brackets", SHAPE("[[1]]", "[0,4]"), 4,
     "each size must be an integer"},
    {"a tensor that is a number", "{\"a\":3}", 0, "an object with dtype, shape and data_offsets"},
    {"a tensor without dtype", "{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, "no dtype"},
    {"a tensor without shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape"},
    {"a tensor without place", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4,
     "data_offsets is missing"},
    {"a dtype that is a number", "{\"a\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "no dtype"},
    {"a dtype that is no name",
     "{\"a\":{\"dtype\":\"\\u001b\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "its dtype must be a text"},
    {"a shape said twice",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "offset 40: the name \"shape\" appears twice"},
    {"a size that is broken", SHAPE("[0.5]", "[0,4]"), 4, "each size must be an integer"},
    {"a negative size", SHAPE("[-1]", "[0,4]"), 4, "each size must be an integer from 0 on"},
    {"a size that is a text", SHAPE("[\"1\"]", "[0,4]"), 4, "each size must be an integer"},
    {"a size beyond 64 bits", SHAPE("[9223372036854775808]", "[0,4]"), 4,
     "each size must be an integer"},
    {"a size beyond doubles", SHAPE("[1e999]", "[0,4]"), 4, "a number beyond the range of f64"},
    {"sizes whose product overflows", SHAPE("[4294967296,4294967296,16]", "[0,4]"), 4,
     "more elements than can be counted"},
    {"sizes whose product overflows beside a zero",
     SHAPE("[4294967296,4294967296,4294967296,0]", "[0,0]"), 0,
     "more elements than can be counted"},
    {"a shape that needs more bytes", SHAPE("[2]", "[0,4]"), 4,
     "2 elements of F32 need 8 bytes, but data_offsets give 4"},
    {"a shape that needs fewer bytes", SHAPE("[1]", "[0,8]"), 8, "but data_offsets give 8"},
    {"one offset", SHAPE("[1]", "[0]"), 4, "data_offsets must be two integers"},
    {"three offsets", SHAPE("[1]", "[0,4,8]"), 4, "data_offsets must be two integers"},
    {"a negative offset", SHAPE("[1]", "[-4,0]"), 4,
     "the first of data_offsets must not be above the second"},
    {"offsets in the wrong order", SHAPE("[1]", "[4,0]"), 4,
     "the first of data_offsets must not be above the second"},
    {"an offset beyond the file", SHAPE("[1]", "[0,4]"), 3, "data_offsets reach beyond the file"},
    {"an offset far beyond the file", SHAPE("[1]", "[0,9007199254740991]"), 4, "reach beyond"},
    {"a hole before the first", SHAPE("[1]", "[4,8]"), 8,
     "the bytes before its data belong to no tensor"},
    {"a hole between two",
     "{\"a\":" F32_1 ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[5,6]}}", 6,
     "tensor \"b\": the bytes before its data belong to no tensor"},
    {"an overlap",
     "{\"a\":" F32_1 ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}", 5,
     "tensor \"b\": its data overlap with another's"},
    {"two tensors in one place", "{\"a\":" F32_1 ",\"b\":" F32_1 "}", 4, "its data overlap"},
    {"bytes after the last tensor", "{\"a\":" F32_1 "}", 5,
     "there are bytes after the last tensor"},
    {"data without tensors", "{}", 1, "offset 10: there are bytes after the last tensor"},
    {"half a byte", "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1,
     "3 elements of F4"},
    {"two tensors of one name",
     "{\"a\":" F32_1 ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
     "the name \"a\" appears twice"},
    {"metadata that is a list", "{\"__metadata__\":[]}", 0, "a map of texts is expected"},
    {"metadata with a number", "{\"__metadata__\":{\"a\":1}}", 0, "a map of texts is expected"},
    {"metadata said twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "appears twice"},
    {"a name twice in metadata", "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0,
     "the name \"a\" appears twice"},
    {"a tie to nothing", SHARED("{\\\"b\\\":\\\"c\\\"}"), 4, "\"b\" should be the same as \"c\""},
    {"a tie to a tie", SHARED("{\\\"b\\\":\\\"a\\\",\\\"c\\\":\\\"b\\\"}"), 4, "which is missing"},
    {"a tie that is a number", SHARED("{\\\"b\\\":1}"), 4, "is damaged"},
    {"a tie where an array is", SHARED("{\\\"a\\\":\\\"a\\\"}"), 4, "the name \"a\" appears twice"},
    {"a tie with what contains it",
     "{\"__metadata__\":{\"weber.shared\":\"{\\\"m.x\\\":\\\"m\\\"}\"},\"m.a\":" F32_1 "}", 4,
     "contains itself"},
    {"two ties that contain each other",
     "{\"__metadata__\":{\"weber.shared\":\"{\\\"m.x\\\":\\\"n\\\",\\\"n.x\\\":\\\"m\\\"}\"},"
     "\"m.a\":" F32_1 "}",
     4, "contains itself"},
};

static void is_refused(void **state) {
    const fault_row *row = *state;
    write_header(row->header, row->data_bytes);
    assert_null(wb_open(test_path));
    assert_non_null(strstr(wb_error_message(), test_path));
    assert_non_null(strstr(wb_error_message(), "offset "));
    assert_error(WB_ERROR_FORMAT, row->message);
}

static void lengths_of_the_header_are_checked(void **state) {
    (void)state;
    const uint64_t lengths[] = {3, 100000001, UINT64_MAX, 1ull << 63};
    for (int i = 0; i < 4; i++) {
        unsigned char bytes[10] = {0};
        memcpy(bytes, &lengths[i], 8);
        bytes[8] = '{', bytes[9] = '}';
        write_bytes(NAME, bytes, sizeof bytes);
        assert_null(wb_open(test_path));
        assert_error(WB_ERROR_FORMAT, "offset 0: the header");
    }
    write_bytes(NAME, "", 0);
    assert_null(wb_open(test_path));
    assert_error(WB_ERROR_FORMAT, "offset 0: the file is cut short: it ends before its header");
}

static void brackets_without_an_end_are_no_stack(void **state) {
    (void)state;
    enum { COUNT = 1000000 };
    static char header[COUNT + 8] = "{\"a\":";
    memset(header + 5, '[', COUNT);
    static unsigned char bytes[COUNT + 64];
    write_bytes(NAME, bytes, put_file(bytes, header, 0));
    assert_null(wb_open(test_path));
    assert_error(WB_ERROR_FORMAT, "JSON may be nested at most 64 deep here");
}

static void names_that_nest_too_deep_are_refused(void **state) {
    (void)state;
    char header[8192] = "{\"a";
    for (int i = 0; i < 400; i++) strcat(header, ".a");
    strcat(header, "\":" F32_1 "}");
    write_header(header, 4);
    assert_null(wb_open(test_path));
    assert_error(WB_ERROR_FORMAT, "nested at most 256 deep");
}

/* ---- what is read ---- */

static void shapes_are_read_backwards_and_data_stays_where_it_is(void **state) {
    (void)state;
    write_header("{\"w\":{\"dtype\":\"U8\",\"shape\":[2,3],\"data_offsets\":[0,6]},"
                 "\"b\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[6,10]},"
                 "\"none\":{\"dtype\":\"F64\",\"shape\":[2,0],\"data_offsets\":[10,10]}}  ",
                 10);
    wb_file *file = open_saved();
    const wb_record *w = wb_record_get(wb_file_root(file), "w");
    assert_true(w->ndim == 2 && w->sizes[0] == 3 && w->sizes[1] == 2);
    assert_ptr_equal(w->data, file->map.bytes + w->offset);
    wb_array *x = wb_record_array(file, w),
             *b = wb_record_array(file, wb_record_get(wb_file_root(file), "b"));
    wb_array *none = wb_record_array(file, wb_record_get(wb_file_root(file), "none"));
    wb_free(file); /* arrays hold what they need */
    assert_values(x, 0, 1, 2, 3, 4, 5, 6);
    assert_value(b, 7 + 256 * 8 + 65536 * 9 + 16777216. * 10, 0);
    assert_sizes(none, 0, 2);
}

static void all_types_are_read(void **state) {
    (void)state;
    const char *const names[] = {"F32", "F64", "F16", "BF16", "I32", "I64", "U8", "BOOL"};
    for (int i = 0; i < WB_DTYPE_COUNT; i++) {
        char header[200];
        const int size = (int)wb_dtype_size((wb_dtype)i);
        (void)snprintf(header, sizeof header,
                       "{\"a\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,%d]}}", names[i],
                       size);
        write_header(header, (size_t)size);
        wb_file *file = open_saved();
        const wb_record *a = wb_record_get(wb_file_root(file), "a");
        assert_int_equal(a->kind, WB_RECORD_ARRAY);
        assert_int_equal(a->dtype, i);
        wb_free(file);
    }
}

static void other_types_are_opaque(void **state) {
    (void)state;
    write_header("{\"a\":{\"dtype\":\"I16\",\"shape\":[3,1],\"data_offsets\":[0,6]},"
                 "\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[6,7]},"
                 "\"c\":{\"dtype\":\"Q7\",\"shape\":[1000],\"data_offsets\":[7,9]},"
                 "\"d\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[9,11]}}",
                 11);
    wb_file *file = open_saved();
    const wb_record *root = wb_file_root(file);
    const char *const types[] = {"I16", "F8_E4M3", "Q7", "U8 of 9 dimensions"};
    for (int i = 0; i < 4; i++) {
        const wb_record *r = wb_record_at(root, i);
        assert_int_equal(wb_record_kind_of(r), WB_RECORD_OPAQUE);
        assert_string_equal(wb_record_type(r), types[i]);
    }
    assert_null(wb_record_array(file, wb_record_at(root, 0)));
    wb_clear_error();
    assert_int_equal(save_record(FORMAT, "again.safetensors", root, NULL), WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED, "safetensors holds named arrays, but \"c\" is Q7; .npz and");
    wb_free(file);
}

static void opaque_arrays_are_written_as_they_came(void **state) {
    (void)state;
    write_header("{\"a\":{\"dtype\":\"I16\",\"shape\":[3,1],\"data_offsets\":[0,6]}}", 6);
    wb_file *file = open_saved();
    assert_int_equal(save_record(FORMAT, "again.safetensors", wb_file_root(file), NULL), WB_OK);
    wb_file *again = open_saved();
    const wb_record *a = wb_record_get(wb_file_root(again), "a");
    assert_string_equal(wb_record_type(a), "I16");
    assert_memory_equal(a->data, "\1\2\3\4\5\6", 6);
    assert_true(a->sizes[0] == 1 && a->sizes[1] == 3);
    wb_free(file), wb_free(again);
}

static void names_with_dots_are_nested_in_order_of_their_numbers(void **state) {
    (void)state;
    write_header("{\"layers.10.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                 "\"layers.2.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                 "\"layers.2.bias\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
                 "\"a..b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]},"
                 "\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}",
                 5);
    wb_file *file = open_saved();
    const wb_record *root = wb_file_root(file), *layers = wb_record_get(root, "layers");
    assert_int_equal(wb_record_count(root), 3);
    assert_int_equal(wb_record_kind_of(layers), WB_RECORD_MAP);
    assert_string_equal(wb_record_name(layers, 0), "2");
    assert_string_equal(wb_record_name(layers, 1), "10");
    assert_string_equal(wb_record_name(wb_record_at(layers, 0), 0), "bias");
    assert_value(wb_record_array(file, wb_record_get(root, "layers.10.weight")), 1, 0);
    assert_string_equal(wb_record_name(root, 0), "");
    assert_string_equal(wb_record_name(wb_record_at(root, 1), 0), "");
    wb_free(file);
}

static void what_is_below_a_tensor_keeps_its_dots(void **state) {
    (void)state;
    write_header("{\"m.a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                 "\"m.a.b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                 "\"m.a.b.c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
                 "\"m.a-b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}",
                 4);
    wb_file *file = open_saved();
    const wb_record *m = wb_record_get(wb_file_root(file), "m");
    const char *const names[] = {"a", "a.b", "a.b.c", "a-b"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(wb_record_name(m, i), names[i]);
        assert_value(wb_record_array(file, wb_record_get(m, names[i])), i + 1, 0);
    }
    wb_free(file);
}

static void metadata_is_a_map_of_texts(void **state) {
    (void)state;
    write_header("{\"__metadata__\":{\"format\":\"pt\",\"\\u03c3\":\"\\\"\\n\"},\"a\":" F32_1 "}",
                 4);
    wb_file *file = open_saved();
    assert_int_equal(wb_record_count(file->metadata), 2);
    assert_string_equal(wb_record_text(wb_record_get(file->metadata, "format")), "pt");
    assert_string_equal(wb_record_text(wb_record_get(file->metadata, "σ")), "\"\n");
    assert_int_equal(save_record(FORMAT, "again.safetensors", wb_file_root(file), file->metadata),
                     WB_OK);
    wb_file *again = open_saved();
    assert_same_tree(file->metadata, again->metadata);
    wb_free(file), wb_free(again);
}

/* ---- what costs ---- */

/* Each of them looked up in a list of all would take minutes. */
static void many_ties_are_opened_soon(void **state) {
    (void)state;
    enum { COUNT = 100000, BYTES = 24 };
    char *header = malloc((size_t)COUNT * BYTES + 200);
    assert_non_null(header);
    size_t used = (size_t)sprintf(header, "{\"__metadata__\":{\"weber.shared\":\"{");
    for (int i = 0; i < COUNT; i++)
        used += (size_t)sprintf(header + used, "%s\\\"b%d\\\":\\\"a\\\"", i ? "," : "", i);
    (void)sprintf(header + used, "}\"},\"a\":" F32_1 "}");
    write_header(header, 4);
    free(header);
    wb_file *file = open_saved();
    assert_int_equal(wb_record_count(wb_file_root(file)), COUNT + 1);
    assert_ptr_equal(wb_record_get(wb_file_root(file), "b99999"),
                     wb_record_get(wb_file_root(file), "a"));
    wb_free(file);
}

/* In a process of its own: values take 20 times such a header, and may have 16 to 32 MiB. */
static void memory_that_json_lacks_is_no_fault_of_the_file(void **state) {
    (void)state;
    enum { SIZE = 2 << 20, NO_LIMITS = 77 };
    if (wb_platform_heap_bytes() == 0) skip(); /* a sanitizer needs its own memory */
    char *header = malloc(SIZE + 100);
    assert_non_null(header);
    size_t used = (size_t)sprintf(header, "{\"a\":[1");
    while (used < SIZE) used += (size_t)sprintf(header + used, ",1");
    (void)sprintf(header + used, "]}");
    write_header(header, 0);
    const pid_t child = fork();
    if (child == 0) {
        const rlim_t step = 16 << 20;
        rlim_t limit = 0;
        do {
            limit += step;
            (void)setrlimit(RLIMIT_AS, &(struct rlimit){limit, RLIM_INFINITY});
            struct rlimit now;
            if (getrlimit(RLIMIT_AS, &now) || now.rlim_cur != limit) _exit(NO_LIMITS);
        } while (!wb_platform_has_address_space(step));
        const bool is_open = wb_open(test_path) != NULL;
        _exit(is_open || wb_error_status() != WB_ERROR_MEMORY);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    free(header);
    if (WEXITSTATUS(status) == NO_LIMITS) skip(); /* qemu hands none on */
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_pipe_is_no_file(void **state) {
    (void)state;
    write_header("{}", 0);
    assert_int_equal(unlink(test_path), 0);
    assert_int_equal(mkfifo(test_path, 0600), 0);
    assert_null(wb_open(test_path)); /* and does not wait for a writer */
    assert_error(WB_ERROR_IO, "not a regular file");
    assert_int_equal(unlink(test_path), 0);
}

/* ---- weights of PyTorch: its definitions, on its memory ---- */

enum { IN = 3, OUT = 2, BATCH = 4, SIDE = 4, KERNEL = 3, WIDE = SIDE - KERNEL + 1 };

static wb_array *record_as_array(const char *header, const float *data, size_t count) {
    unsigned char bytes[4096];
    size_t size = put_file(bytes, header, 0);
    memcpy(bytes + size, data, count * sizeof *data);
    write_bytes(NAME, bytes, size + count * sizeof *data);
    wb_file *file = open_saved();
    wb_array *x = wb_record_array(file, wb_record_get(wb_file_root(file), "weight"));
    wb_free(file);
    return x;
}

/* Small integers: every sum is exact. */
static float fill(int64_t i) { return (float)((i * 7 + 3) % 11 - 5); }

static void a_linear_weight_is_transposed(void **state) {
    (void)state;
    float w[OUT][IN], x[BATCH][IN];
    double y[BATCH][OUT];
    for (int i = 0; i < OUT * IN; i++) w[i / IN][i % IN] = fill(i);
    for (int i = 0; i < BATCH * IN; i++) x[i / IN][i % IN] = fill(i + 5);
    for (int n = 0; n < BATCH; n++)
        for (int o = 0; o < OUT; o++) {
            y[n][o] = 0;
            for (int i = 0; i < IN; i++) y[n][o] += (double)(w[o][i] * x[n][i]);
        }
    wb_array *weight =
        record_as_array("{\"weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
                        &w[0][0], OUT * IN);
    assert_sizes(weight, IN, OUT);
    weight = wb_to(wb_default_device(), weight); /* what comes from a file is on the CPU */
    wb_layer *dense = wb_dense(.given_weight = wb_transpose(weight));
    wb_array *result = wb_apply(dense, wb_from(WB_F32, x, IN, BATCH));
    assert_sizes(result, OUT, BATCH);
    assert_numbers(result, OUT * BATCH, &y[0][0], 0);
    wb_free(dense);
}

static void a_convolution_is_not_transposed(void **state) {
    (void)state;
    static float w[OUT][IN][KERNEL][KERNEL], x[BATCH][IN][SIDE][SIDE];
    static double y[BATCH][OUT][WIDE][WIDE];
    const int weights = OUT * IN * KERNEL * KERNEL;
    for (int i = 0; i < weights; i++) (&w[0][0][0][0])[i] = fill(i);
    for (int i = 0; i < BATCH * IN * SIDE * SIDE; i++) (&x[0][0][0][0])[i] = fill(i + 5);
    for (int at = 0; at < BATCH * OUT * WIDE * WIDE; at++) {
        const int n = at / (OUT * WIDE * WIDE), o = at / (WIDE * WIDE) % OUT;
        const int row = at / WIDE % WIDE, column = at % WIDE;
        for (int k = 0; k < IN * KERNEL * KERNEL; k++) {
            const int c = k / (KERNEL * KERNEL), r = k / KERNEL % KERNEL, s = k % KERNEL;
            y[n][o][row][column] += (double)(w[o][c][r][s] * x[n][c][row + r][column + s]);
        }
    }
    wb_array *weight = record_as_array(
        "{\"weight\":{\"dtype\":\"F32\",\"shape\":[2,3,3,3],\"data_offsets\":[0,216]}}",
        &w[0][0][0][0], (size_t)weights);
    assert_sizes(weight, KERNEL, KERNEL, IN, OUT);
    weight = wb_to(wb_default_device(), weight);
    wb_array *image = wb_from(WB_F32, x, SIDE, SIDE, IN, BATCH);
    wb_layer *cross = wb_cross_cor(.kernel = {KERNEL, KERNEL}, .in = IN, .out = OUT);
    assert_int_equal(wb_set(cross, "weight", weight), WB_OK);
    assert_numbers(wb_apply(cross, image), BATCH * OUT * WIDE * WIDE, &y[0][0][0][0], 0);
    wb_layer *conv = wb_conv(.kernel = {KERNEL, KERNEL}, .in = IN, .out = OUT);
    wb_array *flipped = wb_slice(wb_slice(weight, 0, KERNEL - 1, -1, -1), 1, KERNEL - 1, -1, -1);
    assert_int_equal(wb_set(conv, "weight", flipped), WB_OK);
    assert_numbers(wb_apply(conv, image), BATCH * OUT * WIDE * WIDE, &y[0][0][0][0], 0);
    wb_free(cross), wb_free(conv);
}

/* ---- what is written ---- */

static void a_file_is_aligned_and_ordered_by_width(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t three = 3;
    const char *const names[] = {"d", "f", "h", "u"};
    wb_record *arrays[] = {data_of(&arena, WB_F64, 1, &three, "0123456789abcdefghijklmn"),
                           data_of(&arena, WB_F32, 1, &three, "0123456789ab"),
                           data_of(&arena, WB_F16, 1, &three, "012345"),
                           data_of(&arena, WB_U8, 1, &three, "abc")};
    assert_int_equal(save_record(FORMAT, NAME, map_of(&arena, 4, names, arrays), NULL), WB_OK);
    unsigned char bytes[4096];
    const size_t size = read_saved(bytes, sizeof bytes);
    uint64_t length;
    memcpy(&length, bytes, 8);
    assert_int_equal(length % 8, 0);
    assert_int_equal(size, 8 + length + 24 + 12 + 6 + 3);
    bytes[8 + length] = 0;
    const char *const header = (const char *)bytes + 8;
    assert_non_null(
        strstr(header, "\"d\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24]}"));
    assert_non_null(
        strstr(header, "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[42,45]}"));
    assert_null(strstr(header, "__metadata__"));
    wb_file *file = open_saved();
    for (int i = 0; i < 4; i++) {
        const wb_record *r = wb_record_get(wb_file_root(file), names[i]);
        assert_int_equal((uintptr_t)r->data % wb_dtype_size((wb_dtype)r->dtype), 0);
    }
    wb_free(file);
    wb_arena_release(&arena);
}

static void arrays_are_written_from_memory_whatever_their_strides(void **state) {
    (void)state;
    if (!is_on_host()) skip();
    wb_arena arena = {.blocks = NULL};
    wb_array *x = wb_from(WB_F32, ((float[]){1, 2, 3, 4, 5, 6}), 3, 2), *y = wb_transpose(x);
    assert_true(wb_at(y, 1, 0) == 4);
    const char *const names[] = {"x", "y"};
    wb_record *arrays[] = {record_of(&arena, WB_RECORD_ARRAY), record_of(&arena, WB_RECORD_ARRAY)};
    arrays[0]->array = x, arrays[1]->array = y;
    assert_int_equal(save_record(FORMAT, NAME, map_of(&arena, 2, names, arrays), NULL), WB_OK);
    wb_file *file = open_saved();
    wb_array *back = wb_record_array(file, wb_record_get(wb_file_root(file), "y"));
    assert_sizes(back, 2, 3);
    assert_values(back, 0, 1, 4, 2, 5, 3, 6);
    assert_values(wb_record_array(file, wb_record_get(wb_file_root(file), "x")), 0, 1, 2, 3, 4, 5,
                  6);
    wb_free(file);
    wb_arena_release(&arena);
}

static void random_trees_come_back(void **state) {
    (void)state;
    round_trips(FORMAT, NAME, 300);
}

static void a_tie_is_written_once(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t many = 100;
    char data[100] = {0};
    wb_record *w = data_of(&arena, WB_U8, 1, &many, data);
    const char *const names[] = {"decoder", "encoder"};
    wb_record *root = map_of(&arena, 2, names, (wb_record *[]){w, w});
    assert_int_equal(save_record(FORMAT, NAME, root, NULL), WB_OK);
    unsigned char bytes[4096];
    assert_true(read_saved(bytes, sizeof bytes) < 400);
    wb_file *file = open_saved();
    assert_ptr_equal(wb_record_get(wb_file_root(file), "encoder"),
                     wb_record_get(wb_file_root(file), "decoder"));
    assert_same_tree(root, wb_file_root(file));
    wb_free(file);
    wb_arena_release(&arena);
}

static void what_cannot_be_said_is_refused(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t one = 1;
    wb_record *x = data_of(&arena, WB_U8, 1, &one, "x"), *y = data_of(&arena, WB_U8, 1, &one, "y");
    assert_int_equal(save_record(FORMAT, NAME, x, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "this format holds values by name");
    const struct {
        const char *names[2], *message;
    } rows[] = {{{"", "b"}, "a name in \"\" is empty"},
                {{"a", "a"}, "two values cannot have one name, but both would be \"a\""},
                {{"a", "a.b"}, "the name \"a.b\" would be read as a part of \"a\""},
                {{"\xff", "b"}, "is not UTF-8"},
                {{"a\nb", "b"}, "must not have a control character"},
                {{"__metadata__", "b"}, "cannot be called \"__metadata__\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const wb_record *root = map_of(&arena, 2, rows[i].names, (wb_record *[]){x, y});
        assert_int_equal(save_record(FORMAT, NAME, root, NULL), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, rows[i].message);
    }
    wb_record *cycle = map_of(&arena, 1, &rows[2].names[0], &x);
    cycle->children[0] = cycle;
    assert_int_equal(save_record(FORMAT, NAME, cycle, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "\"a\" contains itself");
    wb_record *text = map_of(&arena, 1, &rows[2].names[0], (wb_record *[]){text_of(&arena, "x")});
    assert_int_equal(save_record(FORMAT, NAME, text, NULL), WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED, "safetensors holds named arrays, but \"a\" is a text");
    assert_int_equal(save_record(FORMAT, NAME, map_of(&arena, 1, &rows[2].names[0], &x), cycle),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "metadata must be a map of texts");
    wb_arena_release(&arena);
}

static void flat_names_with_dots_come_back_nested(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t one = 1;
    const char *const names[] = {"layers.2.weight", "layers.1.weight"};
    wb_record *arrays[] = {data_of(&arena, WB_U8, 1, &one, "x"),
                           data_of(&arena, WB_U8, 1, &one, "y")};
    assert_int_equal(save_record(FORMAT, NAME, map_of(&arena, 2, names, arrays), NULL), WB_OK);
    wb_file *file = open_saved();
    assert_value(wb_record_array(file, wb_record_get(wb_file_root(file), "layers.2.weight")), 'x',
                 0);
    assert_int_equal(wb_record_count(wb_record_get(wb_file_root(file), "layers")), 2);
    wb_free(file);
    wb_arena_release(&arena);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    FILE *full = fopen("/dev/full", "wb");
    if (!full) skip();
    (void)setvbuf(full, NULL, _IONBF, 0);
    wb_arena arena = {.blocks = NULL};
    const int64_t one = 1;
    const char *const names[] = {"a"};
    wb_record *x = data_of(&arena, WB_U8, 1, &one, "x");
    wb_text out = {.file = full, .path = "full"};
    assert_int_equal(FORMAT->write(map_of(&arena, 1, names, &x), NULL, &out), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "full: cannot be written: No space left");
    (void)fclose(full);
    wb_arena_release(&arena);
}

/* ---- damage ---- */

static size_t small_file(unsigned char *bytes, size_t capacity) {
    wb_arena arena = {.blocks = NULL};
    const int64_t sizes[] = {2, 3, 1};
    const char *const names[] = {"list", "tied", "w"}, *const note = "note";
    wb_record *w = data_of(&arena, WB_F32, 2, sizes, "abcdefghijklmnopqrstuvwx");
    wb_record *list = record_of(&arena, WB_RECORD_LIST), *text = text_of(&arena, "hello");
    assert_true(wb_record_room(&arena, list, 2, false));
    list->children[0] = w;
    list->children[1] = data_of(&arena, WB_F32, 2, sizes + 1, "abcdefghijkl");
    wb_record *root = map_of(&arena, 3, names, (wb_record *[]){list, list, w});
    assert_int_equal(save_record(FORMAT, NAME, root, map_of(&arena, 1, &note, &text)), WB_OK);
    wb_arena_release(&arena);
    return read_saved(bytes, capacity);
}

static void every_truncation_is_noticed(void **state) {
    (void)state;
    unsigned char bytes[4096];
    const size_t size = small_file(bytes, sizeof bytes);
    every_prefix(NAME, bytes, size);
}

static void every_flipped_byte_is_an_error_or_a_tree(void **state) {
    (void)state;
    unsigned char bytes[4096];
    const size_t size = small_file(bytes, sizeof bytes);
    const int trees = every_flipped_byte(NAME, bytes, size);
    assert_true(trees >= 6 * 24); /* the data itself */
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    unsigned char bytes[4096];
    every_allocation_may_fail(NAME, bytes, small_file(bytes, sizeof bytes));
}

int main(void) {
    enum { FAULTS = sizeof fault_rows / sizeof *fault_rows };
    static struct CMUnitTest faults[FAULTS];
    const struct CMUnitTest tests[] = {
        TEST(lengths_of_the_header_are_checked),
        TEST(brackets_without_an_end_are_no_stack),
        TEST(names_that_nest_too_deep_are_refused),
        TEST(shapes_are_read_backwards_and_data_stays_where_it_is),
        TEST(all_types_are_read),
        TEST(other_types_are_opaque),
        TEST(opaque_arrays_are_written_as_they_came),
        TEST(names_with_dots_are_nested_in_order_of_their_numbers),
        TEST(what_is_below_a_tensor_keeps_its_dots),
        TEST(metadata_is_a_map_of_texts),
        TEST(a_linear_weight_is_transposed),
        TEST(a_convolution_is_not_transposed),
        TEST(a_file_is_aligned_and_ordered_by_width),
        TEST(many_ties_are_opened_soon),
        TEST(memory_that_json_lacks_is_no_fault_of_the_file),
        TEST(a_pipe_is_no_file),
        TEST(arrays_are_written_from_memory_whatever_their_strides),
        TEST(random_trees_come_back),
        TEST(a_tie_is_written_once),
        TEST(what_cannot_be_said_is_refused),
        TEST(flat_names_with_dots_come_back_nested),
        TEST(a_full_disk_is_an_error),
        TEST(every_truncation_is_noticed),
        TEST(every_flipped_byte_is_an_error_or_a_tree),
        TEST(allocations_that_fail_are_errors),
    };
    if (make_folder(NULL)) return 1;
    for (int i = 0; i < FAULTS; i++) faults[i] = TEST_ROW(&fault_rows[i], is_refused);
    const int failed = cmocka_run_group_tests_name("what is refused", faults, NULL, NULL) +
                       cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
    return remove_folder(NULL) || failed;
}
