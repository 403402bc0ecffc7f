/* src/formats/gguf*.c: handmade files for every rule, blocks by the format's words, damage. */
#include "formats/gguf_maker.h"
#include "formats/trees.h"

#include "array/array.h"
#include "base/half.h"
#include "formats/format.h"

#define NAME "test.gguf"

/* ---- files as texts of bytes ---- */

#define U32(low)                          low "\0\0\0"
#define U64(low)                          low "\0\0\0\0\0\0\0"
#define FILE_OF(version, tensors, pairs)  "GGUF" U32(version) U64(tensors) U64(pairs)
#define NAMED(length, name)               U64(length) name
#define PAIR(length, key, type)           NAMED(length, key) U32(type)
#define TENSOR(name, sizes, type, offset) NAMED("\1", name) sizes U32(type) U64(offset)
#define ALIGNMENT                         PAIR("\21", "general.alignment", "\4")
#define BYTES(text)                       text, sizeof text - 1

typedef struct fault_row {
    const char *name, *bytes;
    size_t size;
    const char *message;
} fault_row;

static const fault_row fault_rows[] = {
    {"another beginning", BYTES("GGML\3\0\0\0"), "offset 0: the file must begin with GGUF"},
    {"no beginning", BYTES("GG"), "offset 0: the file is cut short: the beginning needs 4 bytes"},
    {"the first version", BYTES(FILE_OF("\1", "\0", "\0")),
     "offset 4: the version of GGUF must be 2 or 3, but is 1"},
    {"a later version", BYTES(FILE_OF("\4", "\0", "\0")), "must be 2 or 3, but is 4"},
    {"a big-endian file", BYTES("GGUF\0\0\0\3"), "its numbers are big-endian"},
    {"too many pairs", BYTES(FILE_OF("\3", "\0", "\1")),
     "offset 24: the file is cut short: 1 pairs need 13 bytes each, but 0 are left"},
    {"too many tensors", BYTES(FILE_OF("\3", "\1", "\0") "1234567890"),
     "offset 24: the file is cut short: 1 tensors need 25 bytes each, but 10 are left"},
    {"2^63 tensors", BYTES("GGUF" U32("\3") "\0\0\0\0\0\0\0\200" U64("\0")),
     "the file is cut short"},
    {"a key that is longer than the file",
     BYTES(FILE_OF("\3", "\0", "\1") NAMED("\377", "key and value")),
     "offset 32: the file is cut short: a key needs 255 bytes, but 13 are left"},
    {"a key of 2^64 - 1 bytes",
     BYTES(FILE_OF("\3", "\0", "\1") "\377\377\377\377\377\377\377\377abcde"),
     "offset 32: the file is cut short"},
    {"a zero character in a key", BYTES(FILE_OF("\3", "\0", "\1") PAIR("\2", "a\0", "\7") "\1"),
     "offset 32: a key must not have a zero character"},
    {"a value of no type", BYTES(FILE_OF("\3", "\0", "\1") PAIR("\1", "a", "\15") "\1"),
     "offset 33: the type of \"a\" must be below 13, but is 13"},
    {"a list of lists",
     BYTES(FILE_OF("\3", "\0", "\1") PAIR("\1", "a", "\11") U32("\11") U64("\0")),
     "offset 37: the type of a list's values must be that of numbers or texts, but is 9"},
    {"a list that is longer than the file",
     BYTES(FILE_OF("\3", "\0", "\1") PAIR("\1", "a", "\11") U32("\4") "\0\0\0\0\0\0\0\100"),
     "offset 49: the file is cut short: a list of numbers needs"},
    {"texts that end early",
     BYTES(FILE_OF("\3", "\0", "\1") PAIR("\1", "a", "\11") U32("\10") U64("\101") U64("\0")),
     "offset 57: the file is cut short: a text needs 8 bytes, but 0 are left"},
    {"an integer of 64 bits without a sign",
     BYTES(FILE_OF("\3", "\0", "\1") PAIR("\1", "a", "\12") "\0\0\0\0\0\0\0\200"),
     "offset 37: an integer must be below 2^63"},
    {"one in a list",
     BYTES(FILE_OF("\3", "\0", "\1") PAIR("\1", "a", "\11") U32("\12") U64("\2")
               U64("\1") "\0\0\0\0\0\0\0\200"),
     "offset 57: an integer must be below 2^63"},
    {"a key that appears twice",
     BYTES(FILE_OF("\3", "\0", "\2") PAIR("\1", "a", "\7") "\1" PAIR("\1", "a", "\7") "\1"),
     "offset 51: the key \"a\" appears twice"},
    {"an alignment that is no power of two", BYTES(FILE_OF("\3", "\0", "\1") ALIGNMENT U32("\30")),
     "offset 53: general.alignment must be a power of two"},
    {"an alignment of zero", BYTES(FILE_OF("\3", "\0", "\1") ALIGNMENT U32("\0")),
     "must be a power of two up to 65536, of type u32"},
    {"an alignment that would fill a disk", BYTES(FILE_OF("\3", "\0", "\1") ALIGNMENT "\0\0\2\0"),
     "must be a power of two up to 65536, of type u32"},
    {"an alignment that is a bool",
     BYTES(FILE_OF("\3", "\0", "\1") PAIR("\21", "general.alignment", "\7") "\1"), "of type u32"},
    {"five dimensions",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a", U32("\5") U64("\1"), "\0", "\0")),
     "offset 24: tensor \"a\": it may have at most 4 dimensions"},
    {"a tensor without a name",
     BYTES(FILE_OF("\3", "\1", "\0") NAMED("\0", "") U32("\0") U32("\0") U64("\0") "1234"),
     "offset 24: tensor \"\": a name must not be empty"},
    {"sizes whose product overflows",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a",
                                            U32("\2") "\0\0\0\0\1\0\0\0"
                                                      "\0\0\0\0\1\0\0\0",
                                            "\0", "\0")),
     "tensor \"a\": its sizes have more elements than can be counted"},
    {"a size beyond 2^63",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a", U32("\1") "\0\0\0\0\0\0\0\200", "\0", "\0")),
     "more elements than can be counted"},
    {"half of a block",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a", U32("\1") U64("\20"), "\10", "\0")),
     "tensor \"a\": its first size must be a multiple of 32, since its type is q8_0, but is 16"},
    {"a number of a quantised type",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a", U32("\0"), "\14", "\0")),
     "its first size must be a multiple of 256, since its type is q4_K, but is 1"},
    {"data beyond the end",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a", U32("\1") U64("\1"), "\0", "\0") "123"),
     "tensor \"a\": the file is cut short: its 4 bytes begin at offset 64, but the file has 60"},
    {"an offset beyond the end",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a", U32("\1") U64("\0"), "\0", "\40")),
     "its 0 bytes begin at offset 96, but the file has 57"},
    {"an offset beyond 2^63",
     BYTES(FILE_OF("\3", "\1", "\0") NAMED("\1", "a") U32("\0") U32("\0") "\0\0\0\0\0\0\0\200"),
     "its offset is beyond the end of the file"},
    {"an offset that is not aligned",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("a", U32("\1") U64("\0"), "\0", "\10")),
     "its offset must be a multiple of general.alignment"},
    {"a control character in a name",
     BYTES(FILE_OF("\3", "\1", "\0") TENSOR("\33", U32("\1") U64("\0"), "\0", "\0") "12345678"),
     "a name must not have a control character"},
    {"a name that appears twice",
     BYTES(FILE_OF("\3", "\2", "\0") TENSOR("a", U32("\1") U64("\0"), "\0", "\0")
               TENSOR("a", U32("\1") U64("\0"), "\0", "\0") "123456"),
     "offset 57: the name \"a\" appears twice"},
    {"data in two tensors",
     BYTES(FILE_OF("\3", "\2", "\0") TENSOR("a", U32("\1") U64("\1"), "\0", "\0")
               TENSOR("b", U32("\1") U64("\1"), "\0", "\0") "12345678901234567890"),
     "tensor \"b\": its data overlap with another's"},
};
enum { FAULTS = sizeof fault_rows / sizeof *fault_rows };

static void is_refused(void **state) {
    const fault_row *row = *state;
    write_bytes(NAME, row->bytes, row->size);
    assert_null(wb_open(test_path));
    assert_error(WB_ERROR_FORMAT, row->message);
}

/* ---- a file with everything ---- */

static void put_everything(builder *b) {
    static const uint64_t sizes[] = {32, 2}, wide[] = {256}, few[] = {2, 3};
    put(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, 10);
    put_u64(b, 9);
    put_pair(b, "general.architecture", 8), put_text(b, "llama");
    put_pair(b, "llama.block_count", 4), put_u32(b, 22);
    put_pair(b, "short", 3), put(b, "\xfe\xff", 2);
    put_pair(b, "real", 6), put(b, "\0\0\0\x3f", 4);
    put_pair(b, "yes", 7), put(b, "\1", 1);
    put_pair(b, "words", 9), put_u32(b, 8), put_u64(b, 2), put_text(b, "a"), put_text(b, "");
    put_pair(b, "types", 9), put_u32(b, 1), put_u64(b, 3), put(b, "\1\377\3", 3);
    put_pair(b, "many", 9), put_u32(b, 8), put_u64(b, 65);
    for (int i = 0; i < 65; i++) put_text(b, "w");
    put_pair(b, "none", 9), put_u32(b, 6), put_u64(b, 0);
    put_tensor(b, "blk.0.q.weight", 2, sizes, 8, 68);
    put_tensor(b, "blk.1.q.weight", 2, sizes, 2, 36);
    put_tensor(b, "blk.1.q.bias", 2, few, 0, 24);
    put_tensor(b, "k4", 1, wide, 12, 144);
    put_tensor(b, "k6", 1, wide, 14, 210);
    put_tensor(b, "older", 1, sizes, 3, 20);
    put_tensor(b, "newer", 1, sizes, 99, 0);
    put_tensor(b, "number", 0, NULL, 30, 2);
    put_tensor(b, "small", 1, few, 24, 2);
    put_tensor(b, "last", 2, sizes, 1, 128);
    put_data(b, 0);
}

static wb_file *open_everything(void) {
    builder b = {.size = 0};
    put_everything(&b);
    write_bytes(NAME, b.bytes, b.size);
    return open_saved();
}

static void a_tree_has_the_tensors_and_the_metadata(void **state) {
    (void)state;
    char text[1000] = "";
    wb_file *file = open_everything();
    assert_string_equal(wb_file_format(file), "GGUF");
    say(wb_file_root(file), text, sizeof text);
    assert_string_equal(
        text, "(blk=(0=(q=(weight=f32 (32, 2))) 1=(q=(bias=f32 (2, 3) weight=f32 (32, 2)))) "
              "k4=f32 (256) k6=f32 (256) last=f16 (32, 2) newer=type 99 of GGUF number=bf16 () "
              "older=q4_1 small=i32 (2))");
    *text = 0;
    say(wb_file_metadata(file), text, sizeof text);
    assert_string_equal(text,
                        "(general.architecture='llama' llama.block_count=22 short=-2 real=0.5 "
                        "yes=true words=('a' '') types=i32 (3) many=65 texts none=f32 (0))");
    assert_string_equal(wb_record_type(wb_record_get(wb_file_root(file), "k4")), "q4_K");
    assert_string_equal(wb_record_type(wb_record_get(wb_file_root(file), "last")), "");
    wb_free(file);
}

static float element(const wb_file *file, const char *name, int64_t i) {
    wb_scope_open();
    wb_array *x = wb_record_array(file, wb_record_get(wb_file_root(file), name));
    assert_non_null(x);
    const float *data = wb_read_begin(x);
    const float value = data[i];
    wb_read_end(x);
    wb_scope_close();
    return value;
}

static float half_of(unsigned bits) {
    const int exponent = (int)(bits >> 10), fraction = (int)(bits & 1023);
    return exponent ? ldexpf((float)(1024 + fraction), exponent - 25)
                    : ldexpf((float)fraction, -24);
}

/* By the words of the format; all bits are compared in peers_gguf.py. */
static void blocks_are_unpacked(void **state) {
    (void)state;
    wb_file *file = open_everything();
    const float scale = half_of(0x0201);
    assert_float_equal(element(file, "blk.0.q.weight", 0), 3 * scale, 0);
    assert_float_equal(element(file, "blk.0.q.weight", 31), 34 * scale, 0);
    assert_float_equal(element(file, "blk.1.q.weight", 0), (3 - 8) * scale, 0);
    assert_float_equal(element(file, "blk.1.q.weight", 31), (1 - 8) * scale, 0);
    /* bytes 5 to 16 are scales and minima: 5 and 9 are the first ones, 0 and 1 the last */
    const float minima = half_of(0x0403);
    assert_float_equal(element(file, "k4", 0), scale * 5 * 1 - minima * 9, 0);
    assert_float_equal(element(file, "k4", 32), scale * 6 * 1 - minima * 10, 0);
    assert_float_equal(element(file, "k4", 255), scale * 0 * 9 - minima * 1, 0);
    /* low bits 1, high ones 129 & 3 = 1; the scale is byte 193 as i8 */
    const float scale6 = half_of(0xd2d1 & 0x7fff) * -1;
    assert_float_equal(element(file, "k6", 0), scale6 * (float)(int8_t)193 * (float)(1 + 16 - 32),
                       0);
    wb_free(file);
}

static void arrays_are_read_in_place_where_they_can(void **state) {
    (void)state;
    wb_file *file = open_everything();
    wb_scope_open();
    const wb_record *last = wb_record_get(wb_file_root(file), "last");
    wb_array *x = wb_record_array(file, last);
    assert_ptr_equal(wb_read_begin(x), last->data);
    wb_read_end(x);
    wb_scope_close();
    wb_free(file);
}

/* ---- other formats ---- */

static void what_is_packed_can_be_converted(void **state) {
    static const char *const ends[] = {"safetensors", "npz", "bson"};
    (void)state;
    builder b = {.size = 0};
    char from[300], to[300];
    put_everything(&b);
    write_bytes(NAME, b.bytes, b.size);
    (void)snprintf(from, sizeof from, "%s", test_path);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(to, sizeof to, "%s/to.%s", test_folder, ends[i]);
        if (wb_convert(from, to) != WB_OK) fail_msg("%s: %s", ends[i], wb_error_message());
        wb_file *old = wb_open(from), *new = wb_open(to);
        assert_non_null(new);
        assert_float_equal(element(new, "k4", 77), element(old, "k4", 77), 0);
        assert_float_equal(element(new, "blk.1.q.weight", 33), element(old, "blk.1.q.weight", 33),
                           0);
        assert_string_equal(
            wb_record_text(wb_record_get(wb_file_metadata(new), "llama.block_count")), "22");
        wb_free(old), wb_free(new);
    }
}

static void a_file_is_recognised_by_any_name(void **state) {
    (void)state;
    static const char *const names[] = {"a.bin", "a.safetensors", "a"};
    builder b = {.size = 0};
    put_everything(&b);
    for (int i = 0; i < 3; i++) {
        write_bytes(names[i], b.bytes, b.size);
        wb_file *file = open_saved();
        assert_string_equal(wb_file_format(file), "GGUF");
        wb_free(file);
    }
}

/* ---- writing ---- */

/* Where the text stands, it and what follows until the next space are cut out. */
static void cut(char *text, const char *from, size_t bytes) {
    char *at = strstr(text, from);
    assert_non_null(at);
    memmove(at, at + bytes, strlen(at + bytes) + 1);
}

static void what_is_written_comes_back(void **state) {
    (void)state;
    static const char newer[] = "newer=type 99 of GGUF ";
    static unsigned char first[8192], second[8192];
    char from[200], to[200], again[200], text[2][1000] = {"", ""};
    builder b = {.size = 0};
    put_everything(&b);
    write_bytes(NAME, b.bytes, b.size);
    (void)snprintf(from, sizeof from, "%.100s/%s", test_folder, NAME);
    (void)snprintf(to, sizeof to, "%s/to.gguf", test_folder);
    (void)snprintf(again, sizeof again, "%s/again.gguf", test_folder);
    if (wb_convert(from, to) != WB_OK || wb_convert(to, again) != WB_OK)
        fail_msg("%s", wb_error_message());
    wb_file *files[] = {wb_open(from), wb_open(to)};
    for (int i = 0; i < 2; i++) {
        assert_non_null(files[i]);
        say(wb_file_root(files[i]), text[i], sizeof text[i]);
        say(wb_file_metadata(files[i]), text[i], sizeof text[i]);
        wb_free(files[i]);
    }
    cut(text[0], newer, sizeof newer - 1);
    assert_string_equal(text[0], text[1]);
    (void)snprintf(test_path, sizeof test_path, "%s", to);
    const size_t size = read_saved(first, sizeof first);
    (void)snprintf(test_path, sizeof test_path, "%s", again);
    assert_int_equal(read_saved(second, sizeof second), size);
    assert_memory_equal(first, second, size);
}

static void a_model_is_saved_and_made_again(void **state) {
    (void)state;
    (void)snprintf(test_path, sizeof test_path, "%s/model.gguf", test_folder);
    wb_layer *model = wb_chain(wb_dense(3, 4, wb_relu), wb_dense(4, 2));
    assert_int_equal(wb_save(test_path, model), WB_OK);
    wb_layer *again = wb_load_model(test_path, NULL);
    if (!again) fail_msg("%s", wb_error_message());
    wb_scope_open();
    wb_array *x = wb_normal(WB_F32, 3, 5), *y = wb_apply(model, x), *z = wb_apply(again, x);
    assert_float_equal(wb_item(wb_maximum(wb_abs(wb_sub(y, z)))), 0, 0);
    wb_scope_close();
    wb_free(model), wb_free(again);
}

/* ggml's loops, dequantize_row_q4_K and dequantize_row_q6_K, with scales of 1. */
static void unpack_k4(const unsigned char *b, float *y) {
    const unsigned char *s = b + 4, *q = b + 16;
    for (int is = 0; is < 8; is += 2, q += 32)
        for (int half = 0; half < 2; half++) {
            const int j = is + half;
            const int d = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
            const int m = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
            for (int l = 0; l < 32; l++) *y++ = (float)(d * (half ? q[l] >> 4 : q[l] & 15) - m);
        }
}

static void unpack_k6(const unsigned char *b, float *y) {
    const unsigned char *low = b, *high = b + 128, *scales = b + 192;
    for (int n = 0; n < 256; n += 128, y += 128, low += 64, high += 32, scales += 8)
        for (int l = 0; l < 32; l++)
            for (int k = 0; k < 4; k++) {
                const int byte = low[l + k % 2 * 32], four = k < 2 ? byte & 15 : byte >> 4;
                const int q = (four | (((high[l] >> (2 * k)) & 3) << 4)) - 32;
                y[l + 32 * k] = (float)((int8_t)scales[l / 16 + 2 * k] * q);
            }
}

static void every_bit_of_a_block_counts(void **state) {
    (void)state;
    static const uint64_t wide[] = {256};
    builder b = {.size = 0};
    float wanted[2][256];
    uint32_t random = 5;
    put(&b, "GGUF", 4), put_u32(&b, 3), put_u64(&b, 2), put_u64(&b, 0);
    put_tensor(&b, "k4", 1, wide, 12, 144);
    unsigned char *k4 = b.data, *k6 = b.data + b.data_size;
    put_tensor(&b, "k6", 1, wide, 14, 210);
    for (size_t i = 0; i < b.data_size; i++)
        b.data[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
    memcpy(k4, "\0\x3c\0\x3c", 4), memcpy(k6 + 208, "\0\x3c", 2);
    unpack_k4(k4, wanted[0]), unpack_k6(k6, wanted[1]);
    put_data(&b, 0);
    write_bytes(NAME, b.bytes, b.size);
    wb_file *file = open_saved();
    for (int64_t i = 0; i < 256; i++) {
        assert_float_equal(element(file, "k4", i), wanted[0][i], 0);
        assert_float_equal(element(file, "k6", i), wanted[1][i], 0);
    }
    wb_free(file);
}

static void save_floats(const char *name, const float *values, int64_t count) {
    (void)snprintf(test_path, sizeof test_path, "%s/%s", test_folder, name);
    wb_scope_open();
    wb_array *x = wb_from(WB_F32, values, count, 1);
    assert_int_equal(wb_save_named(test_path, {"x", x}), WB_OK);
    wb_scope_close();
}

/* By the definition: scale max / 127, halves away from zero. */
static void floats_are_quantised(void **state) {
    (void)state;
    float values[32] = {0};
    char to[300];
    values[0] = 127, values[1] = -127, values[2] = 0.5F, values[3] = -1.5F, values[4] = 63.4F;
    save_floats("in.safetensors", values, 32);
    (void)snprintf(to, sizeof to, "%s/out.gguf", test_folder);
    assert_int_equal(wb_convert(test_path, to, .type = "q8_0"), WB_OK);
    wb_file *file = wb_open(to);
    assert_non_null(file);
    const wb_record *x = wb_record_get(wb_file_root(file), "x");
    static const float wanted[] = {127, -127, 1, -2, 63, 0};
    assert_string_equal(wb_record_type(x), "q8_0");
    for (int64_t i = 0; i < 6; i++) assert_float_equal(element(file, "x", i), wanted[i], 0);
    wb_free(file);
}

static void what_cannot_be_quantised_is_said(void **state) {
    (void)state;
    float values[32] = {0};
    char to[300];
    (void)snprintf(to, sizeof to, "%s/out.gguf", test_folder);
    for (int i = 0; i < 2; i++) {
        values[7] = i ? 127 * 65520.0F : NAN;
        save_floats("in.safetensors", values, 32);
        assert_int_equal(wb_convert(test_path, to, .type = "q8_0"), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT,
                     "\"x\" has a number that is not finite, or too large, which q8_0 cannot hold");
    }
    values[7] = 127 * 65504.0F;
    save_floats("in.safetensors", values, 32);
    assert_int_equal(wb_convert(test_path, to, .type = "q8_0"), WB_OK);
    save_floats("in.safetensors", values, 32);
    assert_int_equal(wb_convert(test_path, to, .type = "q4_0"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, ".type must be \"q8_0\", but is \"q4_0\"");
    assert_int_equal(wb_convert(test_path, "x.npz", .type = "q8_0"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "x.npz: .type is for names that end in .gguf");
}

/* f16 by base/half.h, as NumPy rounds: known values on both sides of each step. */
static void halves_have_the_right_bits(void **state) {
    (void)state;
    static const struct {
        float value;
        uint16_t bits;
    } rows[] = {{0, 0},
                {-0.0F, 0x8000},
                {1, 0x3c00},
                {-2, 0xc000},
                {65504, 0x7bff},
                {65520, 0x7c00},
                {1e30F, 0x7c00},
                {6.1035156e-5F, 0x0400},
                {6.097555e-5F, 0x03ff},
                {5.9604645e-8F, 1},
                {2.9802322e-8F, 0},
                {8.9406967e-8F, 2},
                {1.00048828F, 0x3c00},
                {1.00146484F, 0x3c02}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(wb_to_f16(rows[i].value), rows[i].bits);
}

/* ---- damage ---- */

static void every_truncation_is_noticed(void **state) {
    (void)state;
    builder b = {.size = 0};
    put_everything(&b);
    every_prefix(NAME, b.bytes, b.size);
}

static void every_flipped_byte_is_an_error_or_a_tree(void **state) {
    (void)state;
    builder b = {.size = 0};
    put_everything(&b);
    assert_true(every_flipped_byte(NAME, b.bytes, b.size) > 1000);
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    builder b = {.size = 0};
    put_everything(&b);
    every_allocation_may_fail(NAME, b.bytes, b.size);
}

int main(void) {
    struct CMUnitTest faults[FAULTS];
    const struct CMUnitTest tests[] = {
        TEST(a_tree_has_the_tensors_and_the_metadata),
        TEST(blocks_are_unpacked),
        TEST(arrays_are_read_in_place_where_they_can),
        TEST(what_is_packed_can_be_converted),
        TEST(a_file_is_recognised_by_any_name),
        TEST(what_is_written_comes_back),
        TEST(a_model_is_saved_and_made_again),
        TEST(every_bit_of_a_block_counts),
        TEST(floats_are_quantised),
        TEST(what_cannot_be_quantised_is_said),
        TEST(halves_have_the_right_bits),
        TEST(every_truncation_is_noticed),
        TEST(every_flipped_byte_is_an_error_or_a_tree),
        TEST(allocations_that_fail_are_errors),
    };
    if (make_folder(NULL)) return 1;
    for (int i = 0; i < FAULTS; i++) faults[i] = TEST_ROW(&fault_rows[i], is_refused);
    const int failed = cmocka_run_group_tests_name("what is refused", faults, NULL, NULL) +
                       cmocka_run_group_tests_name("GGUF", tests, NULL, NULL);
    return remove_folder(NULL) || failed;
}
