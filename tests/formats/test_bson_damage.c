/* Julia's BSON cut short and with wrong bytes: an error that says where, or a sound tree. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "formats/bson_memory.h"

static const char *const names[] = {"bsonjl_matrix_float32.bson", "bsonjl_complex_and_string.bson",
                                    "bsonjl_dict_32bit.bson",     "bsonjl_dict_64bit.bson",
                                    "bsonjl_dataframe.bson",      "flux_docs_mymodel.bson",
                                    "flux_docs_checkpoint.bson",  "flux_cnn_mnist.bson"};
enum { NAMES = sizeof names / sizeof *names, SMALL = 5000 };

typedef struct content {
    unsigned char *bytes;
    size_t size;
} content;

static content load(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/formats/fixtures/bson/%s", WB_TESTS_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    content c = {malloc(1 << 17), 0};
    c.size = fread(c.bytes, 1, 1 << 17, file);
    assert_true(c.size > 0 && c.size < 1 << 17);
    assert_int_equal(fclose(file), 0);
    return c;
}

/* ---- what a sound tree is ---- */

static void assert_within(const wb_mapping *map, const wb_record *r) {
    const unsigned char *data = r->data;
    assert_true(r->data_bytes >= 0);
    assert_true(data >= map->bytes && data + r->data_bytes <= map->bytes + map->size_bytes);
    if (r->kind != WB_RECORD_ARRAY) return;
    const int64_t size = (int64_t)wb_dtype_size((wb_dtype)r->dtype);
    assert_true(r->dtype < WB_DTYPE_COUNT && r->ndim <= WB_MAX_DIMS);
    assert_int_equal(wb_count_sizes(r->ndim, r->sizes) * size, r->data_bytes);
}

static void assert_sound(const wb_mapping *map, const wb_record *r, int depth) {
    assert_non_null(r);
    assert_true(depth + r->depth <= WB_RECORD_DEPTH);
    assert_int_equal(r->number, 0);
    assert_true(r->offset >= 0 && r->offset < map->size_bytes);
    assert_true(r->kind != WB_RECORD_TEXT || r->text);
    assert_true((r->kind != WB_RECORD_STRUCT && r->kind != WB_RECORD_OPAQUE) || r->type);
    assert_int_equal(r->kind == WB_RECORD_MAP && r->count > 0, r->names && r->count > 0);
    if (r->data || r->kind == WB_RECORD_ARRAY) assert_within(map, r);
    for (int64_t i = 0; i < r->count; i++) {
        assert_true(!r->names || r->names[i]);
        assert_sound(map, r->children[i], depth + 1);
    }
}

/* True if there is a tree. */
static bool is_read(const unsigned char *bytes, size_t size) {
    memory_file m;
    memory_open(&m, bytes, size);
    assert_true(m.file.arena.used_bytes <= m.file.arena.limit_bytes);
    if (m.status == WB_OK) {
        assert_false(wb_failed());
        assert_sound(&m.file.map, m.file.root, 0);
    } else {
        assert_non_null(strstr(wb_error_message(), "memory, offset "));
        assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_FORMAT);
    }
    memory_close(&m);
    return m.status == WB_OK;
}

/* ---- damage ---- */

static void every_truncation_is_an_error(void **state) { /* L8 */
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        const content c = load(names[i]);
        for (size_t cut = 0; cut < c.size; cut++) assert_false(is_read(c.bytes, cut));
        assert_true(is_read(c.bytes, c.size));
        free(c.bytes);
    }
}

/* The same, as it is with a liar: the length at the beginning is that of the rest, whose last byte
 * is zero. */
static void truncations_that_are_made_up_are_survived(void **state) {
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        const content c = load(names[i]);
        for (size_t cut = c.size - 1; cut >= 5; cut -= c.size > SMALL ? 97 : 1) {
            const uint32_t size = (uint32_t)cut;
            memcpy(c.bytes, &size, 4);
            c.bytes[cut - 1] = 0;
            (void)is_read(c.bytes, cut);
            if (cut < 102 && c.size > SMALL) break;
        }
        free(c.bytes);
    }
}

static void every_wrong_byte_is_survived(void **state) {
    (void)state;
    static const unsigned char flips[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff};
    for (int i = 0; i < NAMES; i++) {
        const content c = load(names[i]);
        for (size_t at = 0; c.size <= SMALL && at < c.size; at++)
            for (size_t f = 0; f < sizeof flips; f++) {
                c.bytes[at] ^= flips[f];
                (void)is_read(c.bytes, c.size);
                c.bytes[at] ^= flips[f];
            }
        free(c.bytes);
    }
}

/* ---- wrong lengths ---- */

typedef struct lengths {
    const unsigned char *bytes;
    size_t places[256]; /* of the four bytes of each document's, text's and data's length */
    int count;
} lengths;

static uint32_t number_at_place(const unsigned char *bytes) {
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/* A document of a sound file, by the format alone; returns where it ends. */
static size_t find_lengths(lengths *l, size_t at) {
    const size_t end = at + number_at_place(l->bytes + at);
    l->places[l->count++] = at;
    for (at += 4; at + 1 < end;) {
        const int type = l->bytes[at++];
        at += strlen((const char *)l->bytes + at) + 1;
        if (type == 3 || type == 4) {
            at = find_lengths(l, at);
            continue;
        }
        if (type == 2 || type == 5) {
            l->places[l->count++] = at;
            at += 4 + (type == 5) + number_at_place(l->bytes + at);
        } else
            at += type == 1 || type == 0x12 ? 8 : type == 0x10 ? 4 : type == 8;
    }
    assert_int_equal(at + 1, end);
    assert_true(l->count < 200);
    return end;
}

static void every_wrong_length_is_an_error(void **state) { /* L8 */
    (void)state;
    for (int i = 0; i < 4; i++) {
        const content c = load(names[i]);
        lengths l = {.bytes = c.bytes};
        assert_int_equal(find_lengths(&l, 0), c.size);
        for (int n = 0; n < l.count; n++)
            for (size_t at = l.places[n]; at < l.places[n] + 4; at++)
                for (int flip = 1; flip < 256; flip++) {
                    c.bytes[at] ^= (unsigned char)flip;
                    if (is_read(c.bytes, c.size))
                        fail_msg("%s: byte %zu with %02x is read", names[i], at, (unsigned)flip);
                    c.bytes[at] ^= (unsigned char)flip;
                }
        free(c.bytes);
    }
}

/* Several wrong bytes at once, among them what a length or a type may become. */
static void random_damage_is_survived(void **state) {
    (void)state;
    static const unsigned char likely[] = {0, 1, 2, 3, 4, 5, 8, 10, 16, 18, 127, 128, 255};
    test_random r = {test_seed()};
    for (int i = 0; i < NAMES; i++) {
        const content c = load(names[i]);
        unsigned char *bytes = malloc(c.size);
        for (int n = 0; n < (c.size > SMALL ? 100 : 2000); n++) {
            memcpy(bytes, c.bytes, c.size);
            for (int64_t k = random_below(&r, 4); k >= 0; k--)
                bytes[random_below(&r, (int64_t)c.size)] =
                    likely[random_below(&r, (int64_t)sizeof likely)];
            (void)is_read(bytes, c.size);
        }
        free(bytes);
        free(c.bytes);
    }
}

/* ---- memory and files ---- */

static void failing_allocations_are_errors(void **state) {
    (void)state;
    const content c = load("flux_cnn_mnist.bson");
    for (int64_t n = 1; n < 100; n++) {
        memory_file m;
        (void)wb_fail_allocation(n);
        memory_open(&m, c.bytes, c.size);
        (void)wb_fail_allocation(0);
        memory_close(&m);
        if (m.status == WB_OK) {
            free(c.bytes);
            return;
        }
        assert_int_equal(m.status, WB_ERROR_MEMORY);
        assert_error(WB_ERROR_MEMORY, "a test asked for this failure");
    }
    fail_msg("a hundred allocations for one small file");
}

/* The tree takes a small multiple of the file's size, and the file is mapped, not read. */
static void little_memory_is_taken(void **state) {
    (void)state;
    const content c = load("flux_cnn_mnist.bson");
    memory_file m;
    memory_open(&m, c.bytes, c.size);
    assert_int_equal(m.status, WB_OK);
    assert_true(m.file.arena.used_bytes < (int64_t)c.size / 2);
    memory_close(&m);
    free(c.bytes);
}

static void a_text_is_no_bson(void **state) {
    (void)state;
    char path[] = "/tmp/weber-bson-XXXXXX.bson", wanted[128];
    const int descriptor = mkstemps(path, 5);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, "hello, I am a text\n", 19), 19);
    assert_int_equal(close(descriptor), 0);
    assert_null(wb_open(path));
    (void)snprintf(wanted, sizeof wanted,
                   "%s, offset 0: this is a text, not BSON, which begins with its length", path);
    assert_error(WB_ERROR_FORMAT, wanted);
    assert_int_equal(unlink(path), 0);
}

static void a_cut_file_names_itself_and_the_place(void **state) {
    (void)state;
    const content c = load("bsonjl_matrix_float32.bson");
    char path[] = "/tmp/weber-bson-XXXXXX.bson";
    const int descriptor = mkstemps(path, 5);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, c.bytes, 100), 100);
    assert_int_equal(close(descriptor), 0);
    assert_null(wb_open(path));
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted,
                   "%s, offset 0: the document should have 180 bytes, but the file has 100", path);
    assert_error(WB_ERROR_FORMAT, wanted);
    assert_int_equal(unlink(path), 0);
    free(c.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_truncation_is_an_error),
        TEST(truncations_that_are_made_up_are_survived),
        TEST(every_wrong_byte_is_survived),
        TEST(every_wrong_length_is_an_error),
        TEST(random_damage_is_survived),
        TEST(failing_allocations_are_errors),
        TEST(a_text_is_no_bson),
        TEST(little_memory_is_taken),
        TEST(a_cut_file_names_itself_and_the_place),
    };
    return cmocka_run_group_tests_name("bson damage", tests, NULL, NULL);
}
