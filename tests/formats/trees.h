/* What the tests of the formats share: files of given bytes, random trees of records and their
 * comparison, damage. */
#ifndef WB_TESTS_FORMATS_TREES_H
#define WB_TESTS_FORMATS_TREES_H

#include <unistd.h>

#include "base/memory.h"
#include "formats/record.h"
#include "support/support.h"

static char test_folder[] = "/tmp/weber-state-XXXXXX";
static char test_path[256];

static inline int make_folder(void **state) {
    (void)state;
    return mkdtemp(test_folder) ? 0 : 1;
}

static inline int remove_folder(void **state) {
    char command[300];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -r '%s'", test_folder);
    return system(command);
}

static inline void write_bytes(const char *name, const void *bytes, size_t size) {
    (void)snprintf(test_path, sizeof test_path, "%s/%s", test_folder, name);
    FILE *file = fopen(test_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- trees ---- */

static inline wb_record *record_of(wb_arena *arena, wb_record_kind kind) {
    wb_record *r = wb_record_new(arena, kind);
    assert_non_null(r);
    return r;
}

static inline wb_record *map_of(wb_arena *arena, int64_t count, const char *const *names,
                                wb_record *const *children) {
    wb_record *r = record_of(arena, WB_RECORD_MAP);
    assert_true(wb_record_room(arena, r, count, true));
    for (int64_t i = 0; i < count; i++) r->names[i] = names[i], r->children[i] = children[i];
    return r;
}

static inline wb_record *text_of(wb_arena *arena, const char *text) {
    wb_record *r = record_of(arena, WB_RECORD_TEXT);
    r->text = text;
    return r;
}

static inline wb_record *data_of(wb_arena *arena, wb_dtype dtype, int ndim, const int64_t *sizes,
                                 const void *data) {
    wb_record *r = record_of(arena, WB_RECORD_ARRAY);
    r->dtype = (uint8_t)dtype, r->ndim = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) r->sizes[d] = sizes[d];
    r->data_bytes = wb_count_sizes(ndim, sizes) * (int64_t)wb_dtype_size(dtype);
    unsigned char *copy = wb_arena_take(arena, (size_t)r->data_bytes + 1);
    assert_non_null(copy);
    if (r->data_bytes) memcpy(copy, data, (size_t)r->data_bytes);
    r->data = copy;
    return r;
}

static inline wb_record *random_array(test_random *r, wb_arena *arena) {
    unsigned char bytes[8 * 81];
    int64_t sizes[4];
    const int ndim = (int)random_below(r, 5);
    const wb_dtype dtype = (wb_dtype)random_below(r, WB_DTYPE_COUNT);
    for (int d = 0; d < ndim; d++) sizes[d] = random_below(r, 4);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(random_bits(r) & (dtype == WB_BOOL ? 1 : 255));
    return data_of(arena, dtype, ndim, sizes, bytes);
}

static inline wb_record *random_value(test_random *r, wb_arena *arena) {
    static const double reals[] = {0.1, -0.0, 1e300, 5e-324, HUGE_VAL, -HUGE_VAL, NAN, 3};
    static const int64_t integers[] = {0, -1, 9007199254740992, INT64_MAX, INT64_MIN, 1234567};
    static const char *const texts[] = {"", "relu", "a \"b\" \\ / \n\t\x01", "σ ≤ 日本 𝄞", "1"};
    static const wb_record_kind kinds[] = {WB_RECORD_NULL, WB_RECORD_BOOL, WB_RECORD_INTEGER,
                                           WB_RECORD_REAL, WB_RECORD_TEXT};
    wb_record *value = record_of(arena, kinds[random_below(r, 5)]);
    if (value->kind == WB_RECORD_BOOL) value->boolean = random_bits(r) & 1;
    if (value->kind == WB_RECORD_INTEGER) value->integer = integers[random_below(r, 6)];
    if (value->kind == WB_RECORD_REAL) value->real = reals[random_below(r, 8)];
    if (value->kind == WB_RECORD_TEXT) value->text = texts[random_below(r, 5)];
    return value;
}

enum { MADE = 64 };

/* A tree, and what was made on the way: any of it may stand in a second place. */
typedef struct maker {
    test_random *random;
    wb_arena *arena;
    bool has_values; /* else arrays alone, in lists and in maps whose names are in order */
    wb_record *made[MADE];
    int count;
} maker;

static inline wb_record *random_record(maker *m, int depth);

static inline wb_record *random_container(maker *m, int depth) {
    /* in order */
    static const char *const names[] = {"2",       "02",     "10",   "a",      "a b",
                                        "a-",      "ba\\ck", "bias", "layer9", "layer10",
                                        "q\"uote", "weight", "σ",    "σσ"};
    static const wb_record_kind kinds[] = {WB_RECORD_MAP, WB_RECORD_LIST, WB_RECORD_STRUCT};
    const int64_t count = random_below(m->random, 5) + !m->has_values,
                  first = random_below(m->random, 14 - 2 * count);
    wb_record *r = record_of(m->arena, depth ? kinds[random_below(m->random, 2 + m->has_values)]
                                             : WB_RECORD_MAP);
    const bool has_names = r->kind == WB_RECORD_MAP, is_turned = m->has_values && first % 2;
    assert_true(wb_record_room(m->arena, r, count, has_names));
    if (r->kind == WB_RECORD_STRUCT) r->type = "Flux.Dense";
    for (int64_t i = 0; i < count; i++) {
        if (has_names) r->names[i] = names[first + 2 * (is_turned ? count - 1 - i : i)];
        r->children[i] = random_record(m, depth + 1);
    }
    return r;
}

static inline wb_record *random_record(maker *m, int depth) {
    const int64_t choice = random_below(m->random, 10);
    if (choice == 0 && m->count) return m->made[random_below(m->random, m->count)];
    if (choice > 6 && m->has_values) return random_value(m->random, m->arena);
    wb_record *r =
        choice < 4 && depth < 5 ? random_container(m, depth) : random_array(m->random, m->arena);
    if (m->count < MADE) m->made[m->count++] = r;
    return r;
}

/* Fails unless b says what a says, the same records shared; numbers of a's records are used. */
static inline void assert_same_record(wb_record *a, const wb_record *b, wb_record **seen_a,
                                      const wb_record **seen_b, int *count) {
    for (int i = 0; i < *count; i++)
        if (seen_a[i] == a || seen_b[i] == b) {
            assert_ptr_equal(seen_a[i], a);
            assert_ptr_equal(seen_b[i], b);
            return;
        }
    assert_true(*count < 1024);
    seen_a[*count] = a, seen_b[(*count)++] = b;
    assert_int_equal(a->kind, b->kind);
    assert_string_equal(wb_record_type(a), wb_record_type(b));
    assert_int_equal(a->number, 0);
    assert_int_equal(b->number, 0);
    assert_int_equal(a->boolean, b->boolean);
    assert_int_equal(a->integer, b->integer);
    assert_memory_equal(&a->real, &b->real, sizeof a->real);
    if (a->text) assert_string_equal(a->text, b->text);
    assert_int_equal(a->ndim, b->ndim);
    assert_int_equal(a->dtype, b->dtype);
    assert_memory_equal(a->sizes, b->sizes, sizeof a->sizes);
    assert_int_equal(a->data_bytes, b->data_bytes);
    if (a->data_bytes) assert_memory_equal(a->data, b->data, (size_t)a->data_bytes);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->names && a->count, b->names && b->count);
    for (int64_t i = 0; i < a->count; i++) {
        if (a->names) assert_string_equal(a->names[i], b->names[i]);
        assert_same_record(a->children[i], b->children[i], seen_a, seen_b, count);
    }
}

static inline void assert_same_tree(wb_record *a, const wb_record *b) {
    static wb_record *seen_a[1024];
    static const wb_record *seen_b[1024];
    int count = 0;
    assert_same_record(a, b, seen_a, seen_b, &count);
}

/* ---- files ---- */

static inline wb_status save_record(const wb_format *format, const char *name,
                                    const wb_record *root, const wb_record *metadata) {
    (void)snprintf(test_path, sizeof test_path, "%s/%s", test_folder, name);
    FILE *file = fopen(test_path, "wb");
    assert_non_null(file);
    wb_text out = {.file = file, .path = test_path};
    const wb_status status = format->write(root, metadata, &out);
    assert_int_equal(fclose(file), 0);
    return status;
}

static inline wb_file *open_saved(void) {
    wb_file *file = wb_open(test_path);
    if (!file) fail_msg("not opened: %s", wb_error_message());
    return file;
}

static inline size_t read_saved(unsigned char *bytes, size_t capacity) {
    FILE *file = fopen(test_path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, capacity, file);
    assert_true(size < capacity);
    assert_int_equal(fclose(file), 0);
    return size;
}

static inline void round_trips(const wb_format *format, const char *name, int rounds) {
    test_random random = {test_seed()};
    for (int i = 0; i < rounds; i++) {
        wb_arena arena = {.blocks = NULL};
        maker m = {.random = &random, .arena = &arena, .has_values = format->has_values};
        wb_record *root = random_container(&m, 0);
        if (save_record(format, name, root, NULL) != WB_OK)
            fail_msg("not written: %s", wb_error_message());
        wb_file *file = open_saved();
        assert_same_tree(root, wb_file_root(file));
        wb_free(file);
        wb_arena_release(&arena);
    }
}

/* The record as a text: "(a=1 b=(2 'x'))", with types in front of structs. */
static inline void say(const wb_record *r, char *text, size_t room) {
    const size_t used = strlen(text);
    char *at = text + used;
    room -= used;
    switch ((wb_record_kind)r->kind) {
    case WB_RECORD_NULL:
        (void)snprintf(at, room, "none");
        return;
    case WB_RECORD_BOOL:
        (void)snprintf(at, room, r->boolean ? "true" : "false");
        return;
    case WB_RECORD_INTEGER:
        (void)snprintf(at, room, "%lld", (long long)r->integer);
        return;
    case WB_RECORD_REAL:
        (void)snprintf(at, room, "%g", r->real);
        return;
    case WB_RECORD_TEXT:
        (void)snprintf(at, room, "'%s'", r->text);
        return;
    case WB_RECORD_ARRAY:
        (void)snprintf(at, room, "%s %s", wb_dtype_name((wb_dtype)r->dtype),
                       wb_sizes_text(r->ndim, r->sizes));
        return;
    default:
        (void)snprintf(at, room, "%s%s", r->type ? r->type : "",
                       r->kind == WB_RECORD_OPAQUE && !r->count ? "" : "(");
        break;
    }
    for (int64_t i = 0; i < r->count; i++) {
        const size_t end = strlen(text);
        (void)snprintf(text + end, room + used - end, "%s%s%s", i ? " " : "",
                       r->names ? r->names[i] : "", r->names ? "=" : "");
        say(r->children[i], text, room + used);
    }
    if (r->kind != WB_RECORD_OPAQUE || r->count) strcat(text, ")");
}

static inline unsigned touch_packed(const wb_record *r) {
    unsigned char *elements = malloc((size_t)r->data_bytes);
    unsigned sum = 0;
    assert_non_null(elements);
    r->packed->unpack(r->packed->bytes, wb_count_sizes(r->ndim, r->sizes), elements);
    for (int64_t i = 0; i < r->data_bytes; i++) sum += elements[i];
    free(elements);
    return sum;
}

/* Every byte of what arrays say they have. */
static inline unsigned touch(const wb_record *r) {
    unsigned sum = r->packed ? touch_packed(r) : r->kind;
    const unsigned char *bytes = r->data;
    for (int64_t i = 0; !r->packed && i < r->data_bytes; i++) sum += bytes[i];
    if (r->text) sum += (unsigned)strlen(r->text);
    for (int64_t i = 0; i < r->count; i++) sum += touch(r->children[i]);
    return sum;
}

static inline void release_copy(void *context, void *bytes) {
    (void)context;
    free(bytes);
}

/* Opens what may be damaged: an error with its place, or a tree. True for a tree. From memory of
 * its size, which is quicker than a file, and where sanitizers notice a read past the end. */
static inline bool open_damaged(const char *name, const unsigned char *bytes, size_t size) {
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size) memcpy(copy, bytes, size);
    wb_file *file = wb_open_memory(name, copy, size, release_copy, NULL);
    if (!file) {
        assert_non_null(strstr(wb_error_message(), name));
        assert_error(WB_ERROR_FORMAT, "offset ");
        return false;
    }
    volatile unsigned sum = touch(wb_file_root(file));
    (void)sum;
    assert_true(file->arena.used_bytes <= (int64_t)size * 64 + (1 << 20));
    wb_free(file);
    return true;
}

static inline void every_prefix(const char *name, const unsigned char *bytes, size_t size) {
    for (size_t cut = 0; cut < size; cut++) assert_false(open_damaged(name, bytes, cut));
    assert_true(open_damaged(name, bytes, size));
}

/* Returns how many of the damaged files were still trees. */
static inline int every_flipped_byte(const char *name, unsigned char *bytes, size_t size) {
    static const unsigned char flips[] = {0x01, 0x02, 0x10, 0x20, 0x80, 0xFF};
    int trees = 0;
    for (size_t i = 0; i < size; i++)
        for (size_t k = 0; k < sizeof flips; k++) {
            bytes[i] ^= flips[k];
            trees += open_damaged(name, bytes, size);
            bytes[i] ^= flips[k];
        }
    return trees;
}

/* Opens a file of these bytes until no allocation of it fails. */
static inline void every_allocation_may_fail(const char *name, const void *bytes, size_t size) {
    wb_file *file = NULL;
    write_bytes(name, bytes, size);
    for (int64_t n = 1; !file; n++) {
        (void)wb_fail_allocation(n);
        file = wb_open(test_path);
        (void)wb_fail_allocation(0);
        if (!file) assert_error(WB_ERROR_MEMORY, "");
        assert_true(n < 1000);
    }
    wb_free(file);
}

#endif
