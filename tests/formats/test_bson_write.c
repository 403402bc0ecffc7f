/* src/formats/bson_write.c: what is written is what a second decoder (bson_decoder.h) and the
 * reader find; ties, limits, refusals. */
#include "base/memory.h"
#include "formats/bson_decoder.h"
#include "formats/bson_memory.h"

/* ---- records by hand ---- */

static wb_arena arena;

static int open_arena(void **state) { return open_scope(state); }

static int close_arena(void **state) {
    wb_arena_release(&arena);
    return close_scope(state);
}

#define ARENA_TEST(function) cmocka_unit_test_setup_teardown(function, open_arena, close_arena)

static wb_record *map_of(int count, const char *const *names, wb_record *const *children) {
    wb_record *map = wb_record_new(&arena, WB_RECORD_MAP);
    assert_true(wb_record_room(&arena, map, count, true));
    for (int i = 0; i < count; i++) map->names[i] = names[i], map->children[i] = children[i];
    return map;
}

static wb_record *list_of(int count, wb_record *const *children) {
    wb_record *list = wb_record_new(&arena, WB_RECORD_LIST);
    assert_true(wb_record_room(&arena, list, count, false));
    for (int i = 0; i < count; i++) list->children[i] = children[i];
    return list;
}

#define NAMED_1(name, child) map_of(1, (const char *[]){name}, (wb_record *[]){child})

static wb_record *data_of(wb_dtype dtype, const void *data, int ndim, const int64_t *sizes) {
    wb_record *r = wb_record_new(&arena, WB_RECORD_ARRAY);
    r->dtype = (uint8_t)dtype;
    r->ndim = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) r->sizes[d] = sizes[d];
    r->data = data;
    r->data_bytes = wb_count_sizes(ndim, sizes) * (int64_t)wb_dtype_size(dtype);
    return r;
}

static wb_record *array_record(wb_array *x) {
    wb_record *r = wb_record_new(&arena, WB_RECORD_ARRAY);
    r->array = x;
    return r;
}

static wb_record *integer(int64_t x) {
    wb_record *r = wb_record_new(&arena, WB_RECORD_INTEGER);
    r->integer = x;
    return r;
}

static wb_record *real(double x) {
    wb_record *r = wb_record_new(&arena, WB_RECORD_REAL);
    r->real = x;
    return r;
}

static wb_record *text(const char *x) {
    wb_record *r = wb_record_new(&arena, WB_RECORD_TEXT);
    r->text = x;
    return r;
}

static wb_record *boolean(bool x) {
    wb_record *r = wb_record_new(&arena, WB_RECORD_BOOL);
    r->boolean = x;
    return r;
}

/* ---- what is written ---- */

typedef struct written {
    char *bytes;
    size_t size;
    wb_status status;
} written;

static written write_records(const wb_record *root, const wb_record *metadata) {
    written w = {0};
    wb_text out = {.path = "out.bson"};
    w.status = wb_format_bson.write(root, metadata, &out);
    w.bytes = out.data, w.size = out.size;
    return w;
}

static void assert_written(const wb_record *root, const wb_record *metadata, const char *julia,
                           size_t entries) {
    size_t backrefs;
    const written w = write_records(root, metadata);
    if (w.status != WB_OK) fail_msg("%s", wb_error_message());
    char *decoded = decode_bson(w.bytes, w.size, &backrefs);
    assert_string_equal(decoded, julia);
    assert_int_equal(backrefs, entries);
    free(decoded);
    free(w.bytes);
}

static void assert_refused(const wb_record *root, wb_status status, const char *message) {
    const written w = write_records(root, NULL);
    assert_int_equal(w.status, status);
    assert_int_equal(w.size, 0);
    assert_error(status, message);
    free(w.bytes);
}

static const float ones[] = {1, 1, 1, 1};

/* Julia's file has the type's name as ["Main", "Core", "Float32"], as Julia wrote it then; Weber
 * writes ["Core", "Float32"], as it does now. Without that one element, and the 12 bytes in the
 * lengths around it, the two are the same. */
static void a_matrix_is_what_julia_writes_byte_by_byte(void **state) {
    (void)state;
    unsigned char julia[256];
    FILE *file = fopen(WB_TESTS_DIR "/formats/fixtures/bson/bsonjl_matrix_float32.bson", "rb");
    assert_non_null(file);
    assert_int_equal(fread(julia, 1, sizeof julia, file), 180);
    (void)fclose(file);
    static const int lengths[] = {0x00, 0x07, 0x20, 0x49}; /* file, array, its type, the name */
    for (int i = 0; i < 4; i++) {
        assert_true(julia[lengths[i]] > 12);
        julia[lengths[i]] = (unsigned char)(julia[lengths[i]] - 12);
    }
    assert_memory_equal(julia + 0x4d,
                        "\2"
                        "0\0\5\0\0\0Main\0",
                        12);
    memmove(julia + 0x4d, julia + 0x59, 180 - 0x59);
    julia[0x4e] = '0', julia[0x5a] = '1';
    const written w =
        write_records(NAMED_1("a", data_of(WB_F32, ones, 2, (int64_t[]){2, 2})), NULL);
    assert_int_equal(w.status, WB_OK);
    assert_int_equal(w.size, 168);
    assert_memory_equal(w.bytes, julia, 168);
    free(w.bytes);
}

static void values_are_julias(void **state) {
    (void)state;
    wb_record *values[] = {integer(-3),   real(1.5),      text("σ"),
                           boolean(true), boolean(false), wb_record_new(&arena, WB_RECORD_NULL),
                           text(NULL)};
    const char *names[] = {"i", "r", "t", "yes", "no", "n", "empty"};
    assert_written(map_of(7, names, values), NULL,
                   "{i: -3, r: 1.5, t: \"σ\", yes: true, no: false, n: nothing, empty: \"\"}", 0);
    assert_written(NAMED_1("l", list_of(7, values)), NULL,
                   "{l: (-3, 1.5, \"σ\", true, false, nothing, \"\")}", 0);
    assert_written(NAMED_1("m", map_of(7, names, values)), NULL,
                   "{m: (i = -3, r = 1.5, t = \"σ\", yes = true, no = false, n = nothing, empty = "
                   "\"\")}",
                   0);
    assert_written(map_of(0, NULL, NULL), NULL, "{}", 0);
    assert_written(
        NAMED_1("e", list_of(2, (wb_record *[]){list_of(0, NULL), map_of(0, NULL, NULL)})), NULL,
        "{e: ((), ())}", 0);
}

static void arrays_have_julias_types(void **state) {
    (void)state;
    const int64_t sizes[] = {2, 1};
    const int32_t i32[] = {1, -2};
    const int64_t i64[] = {3, -4};
    const double f64[] = {0.5, 2};
    const uint16_t f16[] = {0x3c00, 0xc000};
    const uint8_t u8[] = {1, 0};
    wb_record *values[] = {
        data_of(WB_F32, ones, 2, sizes), data_of(WB_F64, f64, 2, sizes),
        data_of(WB_F16, f16, 2, sizes),  data_of(WB_I32, i32, 2, sizes),
        data_of(WB_I64, i64, 2, sizes),  data_of(WB_U8, u8, 2, sizes),
        data_of(WB_BOOL, u8, 2, sizes),  data_of(WB_U8, u8, 1, sizes),
        data_of(WB_F32, ones, 0, sizes), data_of(WB_F32, NULL, 1, (int64_t[]){0})};
    assert_written(
        NAMED_1("a", map_of(10, (const char *[]){"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"},
                            values)),
        NULL,
        "{a: (a = Float32(2, 1)[1, 1], b = Float64(2, 1)[0.5, 2], c = Float16(2, "
        "1)[0x3c00, 0xc000], d = Int32(2, 1)[1, -2], e = Int64(2, 1)[3, -4], f = UInt8(2, "
        "1)[1, 0], g = Bool(2, 1)[1, 0], h = UInt8(2)[1, 0], i = Float32()[1], j = "
        "Float32(0)[])}",
        0);
}

static void a_state_has_the_shape_of_flux(void **state) {
    (void)state;
    const char *names[] = {"weight", "bias", "σ"};
    wb_record *w = data_of(WB_F32, ones, 2, (int64_t[]){2, 2});
    wb_record *dense = map_of(3, names, (wb_record *[]){w, boolean(false), list_of(0, NULL)});
    wb_record *model = NAMED_1("layers", list_of(2, (wb_record *[]){dense, list_of(0, NULL)}));
    assert_written(
        map_of(2, (const char *[]){"model", "epoch"}, (wb_record *[]){model, integer(3)}), NULL,
        "{model: (layers = ((weight = Float32(2, 2)[1, 1, 1, 1], bias = false, σ = ()), "
        "())), epoch: 3}",
        0);
}

static void arrays_are_read_where_they_are(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 2, 3);
    wb_record *values[] = {array_record(x), array_record(wb_permute(x, 1, 0)),
                           array_record(wb_mul(wb_number(2), wb_vector(1, 2)))};
    assert_written(map_of(3, (const char *[]){"a", "b", "c"}, values), NULL,
                   "{a: Float32(2, 3)[1, 2, 3, 4, 5, 6], b: Float32(3, 2)[1, 3, 5, 2, 4, 6], c: "
                   "Float32(2)[2, 4]}",
                   0);
}

static void metadata_are_a_document(void **state) {
    (void)state;
    wb_record *metadata = map_of(2, (const char *[]){"structure", "x"},
                                 (wb_record *[]){text("Chain(...)"), text("")});
    assert_written(NAMED_1("a", integer(1)), metadata,
                   "{a: 1, metadata: {structure: \"Chain(...)\", x: \"\"}}", 0);
    const written w = write_records(NAMED_1("a", integer(1)), metadata);
    memory_file m;
    memory_open(&m, w.bytes, w.size);
    assert_int_equal(m.status, WB_OK);
    assert_string_equal(wb_record_text(wb_record_get(m.file.metadata, "structure")), "Chain(...)");
    memory_close(&m);
    free(w.bytes);
    assert_written(NAMED_1("metadata", integer(1)), map_of(0, NULL, NULL), "{metadata: 1}", 0);
}

/* ---- ties ---- */

static void ties_are_kept(void **state) {
    (void)state;
    wb_record *w = data_of(WB_F32, ones, 1, (int64_t[]){2});
    wb_record *same = NAMED_1("w", w), *both = list_of(2, (wb_record *[]){same, w});
    wb_record *root = map_of(3, (const char *[]){"a", "b", "c"}, (wb_record *[]){both, both, same});
    assert_written(root, NULL,
                   "{a: ((w = Float32(2)[1, 1]), Float32(2)[1, 1]), b: ((w = Float32(2)[1, 1]), "
                   "Float32(2)[1, 1]), c: (w = Float32(2)[1, 1])}",
                   3);
    const written out = write_records(root, NULL);
    memory_file m;
    memory_open(&m, out.bytes, out.size);
    assert_int_equal(m.status, WB_OK);
    const wb_record *read = m.file.root;
    assert_ptr_equal(wb_record_at(read, 0), wb_record_at(read, 1));
    assert_ptr_equal(wb_record_at(wb_record_at(read, 0), 0), wb_record_at(read, 2));
    assert_ptr_equal(wb_record_get(read, "a.2"), wb_record_get(read, "c.w"));
    memory_close(&m);
    free(out.bytes);
}

/* ---- refusals ---- */

static void names_that_mean_something_else_are_refused(void **state) {
    (void)state;
    assert_refused(NAMED_1("tag", integer(1)), WB_ERROR_ARGUMENT,
                   "out.bson: tag: BSON reserves this name");
    assert_refused(NAMED_1("_backrefs", integer(1)), WB_ERROR_ARGUMENT, "_backrefs: BSON reserves");
    assert_written(NAMED_1("a", NAMED_1("tag", integer(1))), NULL, "{a: (tag = 1)}", 0);
    const written w = write_records(NAMED_1("metadata", integer(1)), NAMED_1("x", text("y")));
    free(w.bytes);
    assert_true(w.status == WB_ERROR_ARGUMENT && w.size == 0);
    assert_error(WB_ERROR_ARGUMENT, "metadata: the file's metadata has this name");
    wb_record *twice = map_of(2, (const char *[]){"x", "x"}, (wb_record *[]){real(1), real(2)});
    assert_refused(NAMED_1("a", twice), WB_ERROR_ARGUMENT, "a: two values have the same name");
    assert_refused(integer(1), WB_ERROR_ARGUMENT, "must have names");
}

static void what_julia_lacks_is_refused_by_name(void **state) {
    (void)state;
    wb_record *x = data_of(WB_BF16, ones, 1, (int64_t[]){2});
    wb_record *layers = list_of(2, (wb_record *[]){integer(1), NAMED_1("weight", x)});
    assert_refused(NAMED_1("model", NAMED_1("layers", layers)), WB_ERROR_DTYPE,
                   "out.bson: model.layers.2.weight: Julia has no such type as bf16; .safetensors");
    wb_record *dense = wb_record_new(&arena, WB_RECORD_STRUCT);
    dense->type = "Flux.Dense";
    assert_refused(NAMED_1("model", dense), WB_ERROR_UNSUPPORTED,
                   "model: a value of Julia's type Flux.Dense");
    x = data_of(WB_F32, ones, 1, (int64_t[]){2});
    x->data_bytes = 9;
    assert_refused(NAMED_1("x", x), WB_ERROR_ARGUMENT, "x: its sizes do not fit its data");
}

/* Nothing of the arrays is looked at before the sizes are known. */
static void files_over_2_gib_are_refused_before_a_byte(void **state) {
    (void)state;
    NEEDS_64_BITS();
    const int64_t sizes[] = {INT32_MAX, INT32_MAX / 2 + 1};
    for (int i = 0; i < 2; i++) {
        wb_record *x = data_of(WB_U8, ones, 1, &sizes[i]), *y = data_of(WB_U8, ones, 1, &sizes[i]);
        assert_refused(map_of(2, (const char *[]){"x", "y"}, (wb_record *[]){x, y}),
                       WB_ERROR_UNSUPPORTED, ".safetensors has no such limit");
    }
    const int64_t huge[] = {(int64_t)1 << 40};
    assert_refused(NAMED_1("x", data_of(WB_U8, ones, 1, huge)), WB_ERROR_UNSUPPORTED,
                   "2,147,483,647");
}

static void trees_without_an_end_are_refused(void **state) {
    (void)state;
    wb_record *list = list_of(1, (wb_record *[]){NULL}), *root = NAMED_1("a", list);
    assert_refused(root, WB_ERROR_ARGUMENT, "a.1: there is nothing to save");
    list->children[0] = list;
    assert_refused(root, WB_ERROR_ARGUMENT, "a.1: it is part of itself");
    list->children[0] = root;
    assert_refused(root, WB_ERROR_ARGUMENT, "a.1: it is part of itself");
    assert_int_equal(list->number, 0);
}

static void what_is_too_deep_to_be_read_is_refused(void **state) {
    (void)state;
    wb_record *deep = data_of(WB_F32, ones, 1, (int64_t[]){2});
    for (int i = 0; i < WB_RECORD_DEPTH - 1; i++)
        deep = i % 2 ? NAMED_1("x", deep) : list_of(1, &deep);
    const written w = write_records(NAMED_1("a", deep), NULL);
    assert_int_equal(w.status, WB_OK);
    memory_file m;
    memory_open(&m, w.bytes, w.size);
    assert_int_equal(m.status, WB_OK);
    assert_int_equal(m.file.root->depth, WB_RECORD_DEPTH);
    memory_close(&m);
    size_t backrefs;
    char *julia = decode_bson(w.bytes, w.size, &backrefs);
    assert_non_null(strstr(julia, "{a: ((x = ((x = "));
    free(julia);
    free(w.bytes);
    assert_refused(NAMED_1("a", list_of(1, &deep)), WB_ERROR_ARGUMENT, "nested too deep");
}

/* Types would repeat all that is below each; beyond a size they are Any. */
static void types_do_not_explode(void **state) {
    (void)state;
    wb_record *r = real(1);
    for (int i = 0; i < 100; i++) r = map_of(2, (const char *[]){"x", "y"}, (wb_record *[]){r, r});
    const written w = write_records(NAMED_1("a", r), NULL);
    assert_int_equal(w.status, WB_OK);
    assert_true(w.size < 8 << 20);
    free(w.bytes);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    FILE *full = fopen("/dev/full", "wb");
    if (!full) skip();
    (void)setvbuf(full, NULL, _IONBF, 0);
    const wb_record *root = NAMED_1("a", data_of(WB_F32, ones, 1, (int64_t[]){4}));
    wb_text out = {.file = full, .path = "out.bson"};
    assert_int_equal(wb_format_bson.write(root, NULL, &out), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "out.bson: cannot be written: No space left");
    (void)fclose(full);
}

static void failing_allocations_are_errors(void **state) {
    (void)state;
    wb_record *w = data_of(WB_F32, ones, 1, (int64_t[]){4});
    const wb_record *root = NAMED_1("a", list_of(2, (wb_record *[]){w, NAMED_1("b", w)}));
    for (int64_t n = 1; n < 100; n++) {
        (void)wb_fail_allocation(n);
        const written out = write_records(root, NULL);
        (void)wb_fail_allocation(0);
        free(out.bytes);
        assert_int_equal(w->number, 0);
        if (out.status == WB_OK) return;
        assert_int_equal(out.status, WB_ERROR_MEMORY);
        assert_error(WB_ERROR_MEMORY, "a test asked for this failure");
    }
    fail_msg("a hundred allocations");
}

/* ---- random trees ---- */

enum { MOST_RECORDS = 40 };

typedef struct forest {
    test_random random;
    wb_record *made[MOST_RECORDS]; /* any of them may be reached again */
    int count;
} forest;

static wb_record *random_array(forest *f) {
    static const wb_dtype dtypes[] = {WB_F32, WB_F64, WB_F16, WB_I32, WB_I64, WB_U8, WB_BOOL};
    const wb_dtype dtype = dtypes[random_below(&f->random, 7)];
    const int ndim = (int)random_below(&f->random, 4);
    int64_t sizes[4];
    for (int d = 0; d < ndim; d++) sizes[d] = random_below(&f->random, 4);
    const int64_t size = wb_count_sizes(ndim, sizes) * (int64_t)wb_dtype_size(dtype);
    unsigned char *data = wb_arena_take(&arena, (size_t)size);
    for (int64_t i = 0; i < size; i++)
        data[i] = (unsigned char)(random_bits(&f->random) & (dtype == WB_BOOL ? 1 : 255));
    return data_of(dtype, data, ndim, sizes);
}

static wb_record *random_leaf(forest *f) {
    static const char *const texts[] = {"", "x", "a longer text with σ"};
    switch (random_below(&f->random, 8)) {
    case 0:
        return integer((int64_t)random_bits(&f->random));
    case 1:
        return real(random_between(&f->random, -1e9, 1e9));
    case 2:
        return text(texts[random_below(&f->random, 3)]);
    case 3:
        return boolean(random_below(&f->random, 2) == 1);
    case 4:
        return wb_record_new(&arena, WB_RECORD_NULL);
    default:
        return random_array(f);
    }
}

static wb_record *random_record(forest *f) {
    static const char *const names[] = {"weight", "bias", "σ", "tag", "_backrefs", "0.1"};
    wb_record *children[6];
    const int count = (int)random_below(&f->random, 7);
    if (f->count < 4 || random_below(&f->random, 2) == 0) return random_leaf(f);
    for (int i = 0; i < count; i++) children[i] = f->made[random_below(&f->random, f->count)];
    return random_below(&f->random, 2) ? list_of(count, children) : map_of(count, names, children);
}

/* How many records there are if each is written as often as it is reached. */
static int64_t expanded(const wb_record *r) {
    int64_t sum = 1;
    for (int64_t i = 0; i < r->count; i++) sum += expanded(r->children[i]);
    return sum;
}

static wb_record *random_tree(forest *f) {
    for (f->count = 0; f->count < MOST_RECORDS; f->count++) {
        wb_record *r = random_record(f);
        f->made[f->count] = expanded(r) > 3000 ? integer(1) : r;
    }
    const char *names[] = {"model", "optimiser", "x", "y"};
    wb_record *children[4];
    for (int i = 0; i < 4; i++) children[i] = f->made[MOST_RECORDS - 1 - i * 2];
    return map_of(4, names, children);
}

static bool is_scalar(const wb_record *r) { return r->kind < WB_RECORD_ARRAY; }

static void assert_same_scalar(const wb_record *a, const wb_record *b) {
    assert_int_equal(a->boolean, b->boolean);
    assert_int_equal(a->integer, b->integer);
    assert_memory_equal(&a->real, &b->real, sizeof a->real);
    assert_string_equal(a->text ? a->text : "", b->text ? b->text : "");
}

/* Same values, and the same records are reached twice: partners have the same number. */
static void assert_same(wb_record *a, wb_record *b, int64_t *numbers) {
    assert_int_equal(a->kind, b->kind);
    if (is_scalar(a)) {
        assert_same_scalar(a, b);
        return;
    }
    assert_int_equal(a->number, b->number);
    if (a->number) return;
    a->number = b->number = ++*numbers;
    if (a->kind == WB_RECORD_ARRAY) {
        assert_true(a->dtype == b->dtype && a->ndim == b->ndim);
        assert_memory_equal(a->sizes, b->sizes, sizeof a->sizes);
        assert_int_equal(a->data_bytes, b->data_bytes);
        if (a->data_bytes) assert_memory_equal(a->data, b->data, (size_t)a->data_bytes);
    }
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        if (a->names) assert_string_equal(a->names[i], b->names[i]);
        assert_same(a->children[i], b->children[i], numbers);
    }
}

static void random_trees_come_back_with_their_ties(void **state) {
    (void)state;
    forest f = {.random = {test_seed()}};
    for (int i = 0; i < 300; i++) {
        wb_record *root = random_tree(&f);
        const written w = write_records(root, NULL);
        if (w.status != WB_OK) fail_msg("%s", wb_error_message());
        size_t backrefs;
        char *julia = decode_bson(w.bytes, w.size, &backrefs);
        if (strncmp(julia, "error", 5) == 0) fail_msg("tree %d: %s", i, julia);
        free(julia);
        memory_file m;
        memory_open(&m, w.bytes, w.size);
        if (m.status != WB_OK) fail_msg("tree %d: %s", i, wb_error_message());
        int64_t numbers = 0;
        assert_same(root, m.file.root, &numbers);
        memory_close(&m);
        free(w.bytes);
        wb_arena_release(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ARENA_TEST(a_matrix_is_what_julia_writes_byte_by_byte),
        ARENA_TEST(values_are_julias),
        ARENA_TEST(arrays_have_julias_types),
        ARENA_TEST(a_state_has_the_shape_of_flux),
        ARENA_TEST(arrays_are_read_where_they_are),
        ARENA_TEST(metadata_are_a_document),
        ARENA_TEST(ties_are_kept),
        ARENA_TEST(names_that_mean_something_else_are_refused),
        ARENA_TEST(what_julia_lacks_is_refused_by_name),
        ARENA_TEST(files_over_2_gib_are_refused_before_a_byte),
        ARENA_TEST(trees_without_an_end_are_refused),
        ARENA_TEST(what_is_too_deep_to_be_read_is_refused),
        ARENA_TEST(types_do_not_explode),
        ARENA_TEST(a_full_disk_is_an_error),
        ARENA_TEST(failing_allocations_are_errors),
        ARENA_TEST(random_trees_come_back_with_their_ties),
    };
    return cmocka_run_group_tests_name("bson write", tests, NULL, NULL);
}
