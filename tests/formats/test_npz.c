/* src/formats/npz.c, npz_write.c: handmade files for every rule, trees there and back, damage. */
#include "formats/bson_maker.h"
#include "formats/npy_maker.h"
#include "formats/zip_maker.h"

#define NPZ "test.npz"

/* The array (6) of u8: 1 .. 6. */
static zip_entry u8_entry(const char *name) {
    static unsigned char bytes[128];
    const size_t size = put_npy(bytes, 1, H("'|u1'", "False", "(6,)"), 6);
    return (zip_entry){.name = name, .data = bytes, .size = size};
}

static size_t deflate_all(const unsigned char *bytes, size_t size, unsigned char *out,
                          size_t capacity) {
    z_stream s = {.next_in = (unsigned char *)(uintptr_t)bytes};
    s.avail_in = (uInt)size, s.next_out = out, s.avail_out = (uInt)capacity;
    assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    const size_t written = s.total_out;
    assert_int_equal(deflateEnd(&s), Z_OK);
    return written;
}

static zip_entry deflated_entry(const char *name) {
    static unsigned char out[256];
    zip_entry e = u8_entry(name);
    e.stored = deflate_all(e.data, e.size, out, sizeof out);
    e.data = out, e.method = 8;
    return e;
}

static void write_zip(const zip *z) { write_bytes(NPZ, z->bytes, z->count); }

static void refuses(const zip *z, const char *message) {
    write_zip(z);
    wb_file *file = wb_open(test_path);
    if (file) fail_msg("opened, not: %s", message);
    assert_non_null(strstr(wb_error_message(), "offset "));
    assert_error(WB_ERROR_FORMAT, message);
}

static void stored_and_deflated_entries_are_read(void **state) {
    (void)state;
    zip z;
    zip_entry wide = u8_entry("layers.2.w.npy"), folder = {.name = "folder/"},
              other = {.name = "README", .data = (const unsigned char *)"hello", .size = 5};
    wide.wide = true;
    put_zip(
        &z, 5,
        (zip_entry[]){u8_entry("layers.1.w.npy"), wide, deflated_entry("b.npy"), folder, other});
    write_zip(&z);
    wb_file *file = open_saved();
    const wb_record *root = wb_file_root(file);
    const char *const names[] = {"layers.1.w", "layers.2.w", "b"};
    for (int i = 0; i < 3; i++)
        assert_values(wb_record_array(file, wb_record_get(root, names[i])), 0, 1, 2, 3, 4, 5, 6);
    assert_int_equal(wb_record_count(root), 3);
    assert_string_equal(wb_record_type(wb_record_get(root, "README")), "file");
    assert_memory_equal(wb_record_get(root, "README")->data, "hello", 5);
    wb_free(file);
}

static void a_file_without_entries_is_an_empty_map(void **state) {
    (void)state;
    zip z;
    put_zip(&z, 0, NULL);
    write_zip(&z);
    wb_file *file = open_saved();
    assert_int_equal(wb_record_kind_of(wb_file_root(file)), WB_RECORD_MAP);
    assert_int_equal(wb_record_count(wb_file_root(file)), 0);
    wb_free(file);
}

static void a_comment_at_the_end_is_passed_over(void **state) {
    (void)state;
    zip z;
    put_zip(&z, 1, (zip_entry[]){u8_entry("a.npy")});
    z.bytes[z.count - 2] = 4;
    put_bytes(&z, "PK\5\6", 4);
    write_zip(&z);
    wb_free(open_saved());
}

static void bent_entries_are_refused(void **state) {
    (void)state;
    zip z;
    zip_entry e = u8_entry("a.npy");
    e.crc_flip = 1;
    put_zip(&z, 1, &e), refuses(&z, "a.npy is damaged: it does not match its checksum");
    e = deflated_entry("a.npy"), e.crc_flip = 1;
    put_zip(&z, 1, &e), refuses(&z, "a.npy is damaged: it does not match its checksum");
    e = u8_entry("a.npy"), e.flags = 1;
    put_zip(&z, 1, &e), refuses(&z, "a.npy is encrypted");
    e = u8_entry("a.npy"), e.method = 12;
    put_zip(&z, 1, &e), refuses(&z, "a.npy must be stored (0) or deflated (8), but is compressed "
                                    "by method 12");
    e = u8_entry("a.npy"), e.local_name = "b.npy";
    put_zip(&z, 1, &e), refuses(&z, "a.npy has another name or method in the directory");
    e = u8_entry("a.npy"), e.stored = e.size - 1;
    put_zip(&z, 1, &e), refuses(&z, "a.npy has two different sizes in the file");
    e = deflated_entry("a.npy"), e.size++;
    put_zip(&z, 1, &e), refuses(&z, "a.npy cannot be inflated");
    e = deflated_entry("a.npy"), e.size--;
    put_zip(&z, 1, &e), refuses(&z, "a.npy cannot be inflated");
    e = deflated_entry("a.npy"), e.stored--;
    put_zip(&z, 1, &e), refuses(&z, "a.npy cannot be inflated");
    e = u8_entry("a\x1b.npy");
    put_zip(&z, 1, &e), refuses(&z, "a name must not have a control character");
    e = u8_entry("a\xff.npy");
    put_zip(&z, 1, &e), refuses(&z, "a name is not UTF-8");
    put_zip(&z, 2, (zip_entry[]){u8_entry("a.npy"), u8_entry("a.npy")});
    refuses(&z, "the name \"a\" appears twice");
    e = (zip_entry){.name = "a.npy", .data = (const unsigned char *)"hello", .size = 5};
    put_zip(&z, 1, &e), refuses(&z, "a.npy: an array of NumPy must begin with \\x93NUMPY");
}

/* NumPy's own savez_compressed of zeros, as masks often are. */
static void zeros_are_read_however_small_they_became(void **state) {
    (void)state;
    enum { SIZE = 8 << 20 };
    zip z;
    unsigned char *npy = calloc(1, SIZE + 200);
    static unsigned char out[16384];
    assert_non_null(npy);
    const size_t size = put_npy(npy, 1, H("'|b1'", "False", "(8388608,)"), 0) + SIZE;
    zip_entry e = {.name = "a.npy", .data = out, .method = 8, .size = size};
    e.stored = deflate_all(npy, size, out, sizeof out);
    put_zip(&z, 1, &e);
    write_bytes(NPZ, z.bytes, z.count);
    wb_file *file = open_saved();
    assert_non_null(file);
    assert_int_equal(wb_count(wb_record_array(file, wb_record_get(wb_file_root(file), "a"))), SIZE);
    wb_free(file);
    free(npy);
}

static void what_inflates_too_much_is_refused(void **state) {
    (void)state;
    zip z;
    static unsigned char zeros[8 << 20], out[16384];
    zip_entry e = {.name = "a.npy", .data = out, .method = 8, .size = sizeof zeros};
    e.stored = deflate_all(zeros, sizeof zeros, out, sizeof out);
    setenv("WEBER_INFLATE_MIB", "7", 1);
    put_zip(&z, 1, &e);
    refuses(&z, "with a.npy the file inflates to 8388608 bytes; at most 7340032 are allowed "
                "(WEBER_INFLATE_MIB sets the limit, in mebibytes)");
    unsetenv("WEBER_INFLATE_MIB");
    e.size = sizeof zeros * 8;
    put_zip(&z, 1, &e), refuses(&z, "a.npy cannot inflate to 67108864 bytes");
    e.size = 0xFFFFFFFFFFFF, e.wide = true;
    put_zip(&z, 1, &e), refuses(&z, "cannot inflate to");
    e.size = SIZE_MAX;
    put_zip(&z, 1, &e), refuses(&z, "the extra field of an entry is damaged");
}

static void bent_directories_are_refused(void **state) {
    (void)state;
    static const struct {
        int place; /* from the directory, or from the end if negative: -22 is the end's record */
        unsigned char value;
        const char *message;
    } rows[] = {
        {-22, 0, "the file must end with a zip directory; it may be cut short"},
        {-18, 1, "a zip file in several parts"},
        {-14, 3, "a zip file in several parts"},
        {-9, 255, "the zip directory is not in the file"},
        {-5, 255, "the zip directory is not in the file"},
        {-2, 1, "the file must end with a zip directory; it may be cut short"},
        {0, 0, "an entry of the zip directory is expected"},
        {29, 1, "an entry reaches beyond the directory"},
        {31, 1, "an entry reaches beyond the directory"},
        {33, 1, "an entry reaches beyond the directory"},
        {42, 1, "a.npy must begin where the directory says"},
        {45, 1, "a.npy must begin where the directory says"},
        {46, 0, "a name must not contain a zero byte"},
        {46, 'x', "x.npy has another name or method in the directory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        zip z;
        put_zip(&z, 2, (zip_entry[]){u8_entry("a.npy"), u8_entry("b.npy")});
        const size_t base = rows[i].place < 0 ? z.count : z.directory;
        z.bytes[base + (size_t)rows[i].place] = rows[i].value;
        refuses(&z, rows[i].message);
    }
    zip z;
    put_zip(&z, 2, (zip_entry[]){u8_entry("a.npy"), u8_entry("a.npy")});
    memset(z.bytes + z.directory + 51 + 42, 0, 4); /* both at the first place */
    refuses(&z, "a.npy overlaps with a.npy");
    put_zip(&z, 2, (zip_entry[]){u8_entry("a.npy"), u8_entry("b.npy")});
    z.bytes[z.end + 8] = z.bytes[z.end + 10] = 1;
    refuses(&z, "bytes follow the last entry of the zip directory");
    z.bytes[z.end + 8] = z.bytes[z.end + 10] = 200;
    refuses(&z, "the zip directory is too short for its entries");
    put_zip(&z, 2, (zip_entry[]){u8_entry("a.npy"), u8_entry("b.npy")});
    memset(z.bytes + 28, 255, 2); /* the extra field before the data */
    refuses(&z, "a.npy reaches into the directory");
}

static void put_end64(zip *z, uint64_t place) {
    const size_t end = z->count = z->end;
    put(z, 0x06064b50, 4), put(z, 44, 8), put(z, 45, 2), put(z, 45, 2), put(z, 0, 8);
    put(z, 1, 8), put(z, 1, 8), put(z, end - z->directory, 8), put(z, z->directory, 8);
    put(z, 0x07064b50, 4), put(z, 0, 4), put(z, place ? place : end, 8), put(z, 1, 4);
    put(z, 0x06054b50, 4), put(z, 0, 4);
    put(z, 0xFFFF, 2), put(z, 0xFFFF, 2), put(z, 0xFFFFFFFF, 4), put(z, 0xFFFFFFFF, 4),
        put(z, 0, 2);
}

static void directories_of_64_bits_are_read(void **state) {
    (void)state;
    zip z;
    put_zip(&z, 1, (zip_entry[]){u8_entry("a.npy")});
    put_end64(&z, 0);
    write_zip(&z);
    wb_free(open_saved());
    z.bytes[z.end + 55] = 0x80; /* where the directory begins */
    refuses(&z, "the zip directory is not in the file");
    z.bytes[z.end + 55] = 0, z.bytes[z.end + 24 + 7] = z.bytes[z.end + 32 + 7] = 0x80;
    refuses(&z, "the zip directory is too short for its entries");
    put_end64(&z, z.end + 1);
    refuses(&z, "the end of the zip directory is missing");
    put_end64(&z, UINT64_MAX);
    refuses(&z, "the end of the zip directory is missing");
}

static void random_trees_come_back(void **state) {
    (void)state;
    round_trips(&wb_format_npz, NPZ, 300);
}

static void metadata_comes_back(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const char *const names[] = {"format", "σ"};
    wb_record *metadata =
        map_of(&arena, 2, names, (wb_record *[]){text_of(&arena, "wb"), text_of(&arena, "\"\n")});
    assert_int_equal(save_record(&wb_format_npz, NPZ, map_of(&arena, 0, NULL, NULL), metadata),
                     WB_OK);
    wb_file *file = open_saved();
    assert_same_tree(metadata, file->metadata);
    assert_int_equal(wb_record_count(wb_file_root(file)), 0);
    wb_free(file);
    wb_arena_release(&arena);
}

static void arrays_in_it_are_aligned(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t three = 3;
    const char *const names[] = {"a", "b.c",
                                 "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"};
    wb_record *x = data_of(&arena, WB_U8, 1, &three, "abc"),
              *y = data_of(&arena, WB_U8, 1, &three, "abc"),
              *z = data_of(&arena, WB_U8, 1, &three, "abc");
    assert_int_equal(
        save_record(&wb_format_npz, NPZ, map_of(&arena, 3, names, (wb_record *[]){x, y, z}), NULL),
        WB_OK);
    wb_file *file = open_saved();
    for (int i = 0; i < 3; i++) {
        const wb_record *r = wb_record_get(wb_file_root(file), names[i]);
        assert_int_equal(r->offset % 64, 0);
        assert_ptr_equal(r->data, file->map.bytes + r->offset);
    }
    wb_free(file);
    wb_arena_release(&arena);
}

static void many_entries_need_a_directory_of_64_bits(void **state) {
    (void)state;
    enum { MANY = 66000 };
    wb_arena arena = {.blocks = NULL};
    wb_record *list = record_of(&arena, WB_RECORD_LIST);
    const char *const name = "list";
    assert_true(wb_record_room(&arena, list, MANY, false));
    for (int i = 0; i < MANY; i++) list->children[i] = data_of(&arena, WB_I32, 0, NULL, &i);
    assert_int_equal(save_record(&wb_format_npz, NPZ, map_of(&arena, 1, &name, &list), NULL),
                     WB_OK);
    wb_file *file = open_saved();
    const wb_record *back = wb_record_get(wb_file_root(file), "list");
    assert_int_equal(wb_record_count(back), MANY);
    for (int i = 0; i < MANY; i++) assert_memory_equal(wb_record_at(back, i)->data, &i, 4);
    wb_free(file);
    wb_arena_release(&arena);
    assert_int_equal(remove(test_path), 0);
}

#define TYPE        "{tag: 'datatype', params: [], name: ['Weber', 'Array']}"
#define ARRAY(name) "{tag: 'struct', type: " TYPE ", data: ['" name "']}"

/* The entry that says what arrays cannot. */
static zip_entry tree_entry(const char *bson) {
    static bson_maker maker;
    make_bson(&maker, bson);
    return (zip_entry){.name = "weber.bson", .data = maker.bytes, .size = maker.used};
}

static size_t small_npz(unsigned char *bytes) {
    zip z;
    const zip_entry tree =
        tree_entry("{tree: {c: [" ARRAY("a") ", 7], b: " ARRAY("b") ", d: " ARRAY("a") "}}");
    put_zip(&z, 3, (zip_entry[]){u8_entry("a.npy"), deflated_entry("b.npy"), tree});
    memcpy(bytes, z.bytes, z.count);
    return z.count;
}

static void a_tree_has_its_arrays_by_name(void **state) {
    (void)state;
    unsigned char bytes[4096];
    write_bytes(NPZ, bytes, small_npz(bytes));
    wb_file *file = open_saved();
    const wb_record *root = wb_file_root(file);
    assert_values(wb_record_array(file, wb_record_get(root, "b")), 0, 1, 2, 3, 4, 5, 6);
    assert_int_equal(wb_record_integer(wb_record_get(root, "c.2")), 7);
    assert_ptr_equal(wb_record_get(root, "c.1"), wb_record_get(root, "d"));
    wb_free(file);
}

static void bent_trees_are_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{tree: 1}", "weber.bson has no tree"},
        {"{metadata: {}}", "weber.bson has no tree"},
        {"{tree: {a: " ARRAY("b") "}}", "it has no array \"b\""},
        {"{tree: {}}", "the name \"a\" appears twice, or has no place in weber.bson"},
        {"{tree: {a: " ARRAY("a") "}, metadata: {x: 1}}", "metadata must be a map of texts"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        zip z;
        put_zip(&z, 2, (zip_entry[]){u8_entry("a.npy"), tree_entry(rows[i][0])});
        refuses(&z, rows[i][1]);
    }
    zip z;
    const zip_entry tree = tree_entry("{tree: {a: " ARRAY("a") "}}");
    put_zip(&z, 3, (zip_entry[]){u8_entry("a.npy"), u8_entry("a.npy"), tree});
    refuses(&z, "the name \"a\" appears twice");
    put_zip(&z, 3, (zip_entry[]){tree, u8_entry("a.npy"), tree});
    refuses(&z, "weber.bson appears twice");
    z.bytes[z.directory - tree.size] = 0; /* its first length */
    refuses(&z, "weber.bson is damaged: it does not match its checksum");
}

static void every_truncation_of_npz_is_noticed(void **state) {
    (void)state;
    unsigned char bytes[4096];
    every_prefix(NPZ, bytes, small_npz(bytes));
}

static void every_flipped_byte_of_npz_is_an_error_or_a_tree(void **state) {
    (void)state;
    unsigned char bytes[4096];
    const size_t size = small_npz(bytes);
    (void)every_flipped_byte(NPZ, bytes, size);
}

static void allocations_that_fail_are_errors(void **state) {
    (void)state;
    unsigned char bytes[4096];
    every_allocation_may_fail(NPZ, bytes, small_npz(bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(stored_and_deflated_entries_are_read),
        TEST(a_file_without_entries_is_an_empty_map),
        TEST(a_comment_at_the_end_is_passed_over),
        TEST(bent_entries_are_refused),
        TEST(zeros_are_read_however_small_they_became),
        TEST(what_inflates_too_much_is_refused),
        TEST(bent_directories_are_refused),
        TEST(directories_of_64_bits_are_read),
        TEST(arrays_in_it_are_aligned),
        TEST(a_tree_has_its_arrays_by_name),
        TEST(bent_trees_are_refused),
        TEST(random_trees_come_back),
        TEST(metadata_comes_back),
        TEST(many_entries_need_a_directory_of_64_bits),
        TEST(every_truncation_of_npz_is_noticed),
        TEST(every_flipped_byte_of_npz_is_an_error_or_a_tree),
        TEST(allocations_that_fail_are_errors),
    };
    if (make_folder(NULL)) return 1;
    const int failed = cmocka_run_group_tests_name("npz", tests, NULL, NULL);
    return remove_folder(NULL) || failed;
}
