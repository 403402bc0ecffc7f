/* src/formats/jld2*.c: what is refused, and damage. */
#include "formats/jld2_values.h"

/* ---- what is refused ---- */

static uint64_t a_missing_object(jld2 *j) { return put_references(j, 1, &(uint64_t){7000}); }

static uint64_t no_object(jld2 *j) { return put_references(j, 1, &(uint64_t){24}); }

static uint64_t far_away(jld2 *j) { return put_references(j, 1, &(uint64_t){UINT64_MAX - 3}); }

static uint64_t too_few_bytes(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(3, 2), DATA(1, 2, 3, 4)});
}

static uint64_t sizes_that_overflow(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(INT64_MAX, 2), DATA(1, 2, 3, 4)});
}

static uint64_t bytes_that_overflow(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_f32), SIZES(INT64_MAX / 2), DATA(1, 2, 3, 4)});
}

static uint64_t a_bool_of_two(jld2 *j) {
    return put_dataset(j, (dataset){TYPE(t_bool), SIZES(2), DATA(1, 2)});
}

static uint64_t damaged_deflate(jld2 *j) {
    return put_filtered(j, "abc", 3, BYTES_OF("\2\1" FILTER_DEFLATE));
}

static uint64_t shuffled_by_nothing(jld2 *j) {
    return put_filtered(j, six, sizeof six, BYTES_OF("\2\1\2\0\0\0\0\0"));
}

static uint64_t another_class(jld2 *j) {
    static const unsigned char type[] = {0x3b, 0, 0, 0, 1, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1)});
}

static uint64_t another_version(jld2 *j) {
    static const unsigned char type[] = {0x70, 0, 0, 0, 1, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1)});
}

static uint64_t deep_datatypes(jld2 *j) {
    chunk type = {.count = 0};
    for (int i = 0; i < 40; i++) add(&type, "\x39\0\0\0\20\0\0\0", 8);
    return put_dataset(j, (dataset){.type = type.bytes, .type_bytes = type.count, DATA(1)});
}

static uint64_t a_member_beyond_its_struct(jld2 *j) {
    static const unsigned char type[] = {0x36, 1, 0, 0, 4, 0, 0, 0, 'a', 0,  0, 0x30,
                                         8,    0, 0, 8, 0, 0, 0, 0, 0,   64, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1, 2, 3, 4)});
}

static uint64_t more_members_than_bytes(jld2 *j) {
    static const unsigned char type[] = {0x36, 255, 255, 0, 4, 0, 0, 0};
    return put_dataset(j, (dataset){TYPE(type), DATA(1, 2, 3, 4)});
}

static uint64_t a_name_of_no_member(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}};
    chunk type = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared = commit(j,
                                   (committed){.name = "Main.T",
                                               .fields = 1,
                                               .names = (const char *const[]){"b"},
                                               .field_types = (uint64_t[]){0}},
                                   type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 2, 3, 4, 5, 6, 7, 8)});
}

static uint64_t a_field_without_a_type(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}};
    chunk type = {.count = 0};
    add_compound(&type, 1, members);
    const uint64_t shared = commit(j,
                                   (committed){.name = "Main.T",
                                               .fields = 2,
                                               .names = (const char *const[]){"a", "b"},
                                               .field_types = (uint64_t[]){0, 0}},
                                   type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 2, 3, 4, 5, 6, 7, 8)});
}

static uint64_t a_type_of_another_size(jld2 *j) {
    const member members[] = {{MEMBER("a", t_i64, 8)}};
    chunk type = {.count = 0};
    const uint64_t symbol = symbol_type(j);
    add_compound(&type, 1, members);
    const uint64_t shared =
        commit(j, (committed){.name = "Main.T", .fields = 1, .field_types = (uint64_t[]){symbol}},
               type.bytes, type.count);
    return put_dataset(j, (dataset){.shared = shared, DATA(1, 2, 3, 4, 5, 6, 7, 8)});
}

static uint64_t a_dataset_as_datatype(jld2 *j) {
    return put_dataset(j, (dataset){.shared = a_bool(j), DATA(1)});
}

static uint64_t no_object_in_the_heap(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "a");
    store_bits(c.bytes + 12, 2, 4);
    return put_dataset(j, (dataset){TYPE(t_text), VALUE(c)});
}

static uint64_t a_text_of_another_length(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "a");
    store_bits(c.bytes, 2, 4);
    return put_dataset(j, (dataset){TYPE(t_text), VALUE(c)});
}

static uint64_t elements_that_overflow(jld2 *j) {
    static const unsigned char type[] = {0x39, 0, 0, 0, 16,   0,    0,    0,
                                         0x35, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    chunk c = {.count = 0};
    add_text(j, &c, "a");
    store_bits(c.bytes, UINT32_MAX, 4);
    return put_dataset(j, (dataset){TYPE(type), VALUE(c)});
}

static uint64_t no_heap(jld2 *j) {
    chunk c = {.count = 0};
    add_bits(&c, 1, 4), add_bits(&c, 8, 8), add_bits(&c, 1, 4);
    return put_dataset(j, (dataset){TYPE(t_text), VALUE(c)});
}

static uint64_t a_very_long_tuple(jld2 *j) {
    const uint64_t parameters[] = {put_integer(j, 1 << 30), put_julia(j, "Core.Nothing", 0, NULL)};
    return put_nothing(j, commit_empty(j, "NTuple", 2, parameters));
}

/* Each list refers twice to the one before: 2^40 values. */
static uint64_t values_that_repeat_themselves(jld2 *j) {
    uint64_t list = put_integer(j, 1);
    for (int i = 0; i < 40; i++) list = put_references(j, 2, (uint64_t[]){list, list});
    return list;
}

static uint64_t deep_values(jld2 *j) {
    uint64_t list = put_integer(j, 1);
    for (int i = 0; i < 257; i++) list = put_references(j, 1, &list);
    return list;
}

/* The same, the innermost part read first. */
static uint64_t deep_values_in_parts(jld2 *j) {
    uint64_t list = put_integer(j, 1);
    for (int i = 0; i < 200; i++) list = put_references(j, 1, &list);
    const uint64_t inner = list;
    for (int i = 0; i < 100; i++) list = put_references(j, 1, &list);
    return put_references(j, 2, (uint64_t[]){inner, list});
}

/* A type whose parameter is itself. */
static uint64_t a_type_in_itself(jld2 *j) {
    chunk c = {.count = 0};
    add_text(j, &c, "Tuple");
    const size_t before = j->count;
    add_in_heap(j, &c, &(uint64_t){0}, 1, 8);
    const uint64_t type = put_dataset(j, (dataset){.shared = j->types, VALUE(c)});
    store_bits(j->bytes + before + 32, type, 8);
    return put_nothing(j, commit_empty(j, "Tuple", 1, &type));
}

static const struct {
    uint64_t (*make)(jld2 *j);
    const char *message;
} faults[] = {
    {a_missing_object, "bytes at the address 7000 are expected"},
    {no_object, "an object header of version 2 is expected"},
    {far_away, "bytes at the address 18446744073709551612 are expected"},
    {too_few_bytes, "6 elements of 4 bytes are expected, but the data has 4 bytes"},
    {sizes_that_overflow, "the product of the sizes of an array is too large"},
    {bytes_that_overflow, "4611686018427387903 elements of 4 bytes are too many"},
    {a_bool_of_two, "an array of Bool must hold only 0 and 1"},
    {damaged_deflate, "3 bytes cannot be inflated to 24"},
    {shuffled_by_nothing, "24 bytes cannot be shuffled back to 24"},
    {another_class, "a datatype of class 11 is not known"},
    {another_version, "a datatype of version 0 to 5 is expected, not 7"},
    {deep_datatypes, "datatypes may be nested at most 32 deep"},
    {a_member_beyond_its_struct, "member a has 8 bytes at 0 of a datatype of 4 bytes"},
    {more_members_than_bytes, "a datatype should have 65535 members"},
    {a_name_of_no_member, "member a of a datatype is none of its fields"},
    {a_field_without_a_type, "field b has neither data nor a type"},
    {a_type_of_another_size, "field a has 8 bytes, but its type has 16"},
    {a_dataset_as_datatype, "a committed datatype is expected"},
    {no_object_in_the_heap, "object 2 of the heap"},
    {elements_that_overflow, "4294967295 elements of 4294967295 bytes are expected in the heap"},
    {a_text_of_another_length, "2 elements of 1 bytes are expected in the heap"},
    {no_heap, "a heap is expected"},
    {a_very_long_tuple, "a tuple without data should have 1073741824 elements"},
    {values_that_repeat_themselves, "references repeat what is here"},
    {deep_values, "values may be nested at most 256 deep"},
    {deep_values_in_parts, "values may be nested at most 256 deep"},
    {a_type_in_itself, "values may be nested at most 256 deep"},
};

static void assert_refused(const char *message) {
    wb_file *file = wb_open(test_path);
    if (file) fail_msg("opened, without \"%s\"", message);
    if (wb_error_status() != WB_ERROR_FORMAT || !strstr(wb_error_message(), message) ||
        !strstr(wb_error_message(), ", offset "))
        fail_msg("\"%s\", not \"%s\"", wb_error_message(), message);
    wb_clear_error();
}

static void other_objects_are_refused(void **state) {
    (void)state;
    static jld2 j;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        begin_jld2(&j, JLD2_NEW);
        end_jld2(&j, put_group(&j, 1, &(entry){"x", faults[i].make(&j)}));
        write_bytes(JLD2, j.bytes, j.count);
        assert_refused(faults[i].message);
    }
}

/* Changes in the superblock, with its checksum made right. */
static void other_superblocks_are_refused(void **state) {
    (void)state;
    static jld2 j;
    static const struct {
        size_t at;
        int bytes;
        uint64_t value;
        const char *message;
    } rows[] = {
        {8, 1, 0, "a superblock of version 2 or 3 is expected, but this has 0"},
        {9, 1, 4, "offsets and lengths of 8 bytes are expected, not of 4 and 8"},
        {12, 8, 0, "addresses should count from here, but count from 0"},
        {28, 8, 0, "the file was not closed"},
        {28, 8, 1 << 20, "the file is cut short: it should have 1048576 bytes"},
        {36, 8, 48, "the root must be a group"},
        {44, 4, 1, "do not match their checksum"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin_jld2(&j, JLD2_NEW);
        const uint64_t x = put_integer(&j, 1);
        end_jld2(&j, put_group(&j, 1, &(entry){"x", x}));
        store_bits(j.bytes + JLD2_BASE + rows[i].at, rows[i].at == 36 ? x : rows[i].value,
                   rows[i].bytes);
        if (rows[i].at < 44) sum_up(&j, JLD2_BASE, JLD2_BASE + 44);
        write_bytes(JLD2, j.bytes, j.count);
        assert_refused(rows[i].message);
    }
}

static void the_name_says_nothing(void **state) {
    (void)state;
    static jld2 j;
    static const char *const names[] = {"x.jld", "x.h5", "x.bson", "x.npz", "nothing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin_jld2(&j, i % 2 ? JLD2_NEW : "Julia data file (HDF5), version 0.2.0");
        end_jld2(&j, put_group(&j, 1, &(entry){"a", put_integer(&j, 3)}));
        write_bytes(names[i], j.bytes, j.count);
        wb_file *file = wb_open(test_path);
        if (!file) fail_msg("%s: %s", names[i], wb_error_message());
        assert_string_equal(wb_file_format(file), "JLD2");
        assert_int_equal(wb_record_get(wb_file_root(file), "a")->integer, 3);
        wb_free(file);
    }
    wb_layer *layer = wb_dense(1, 1);
    assert_int_equal(wb_save("x.jld2", layer), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "files of JLD2 are read, and not written; .bson can be read");
    wb_free(layer);
}

/* A header may go on elsewhere, as after a second jldopen. */
static void headers_are_continued(void **state) {
    (void)state;
    static jld2 j;
    begin_jld2(&j, JLD2_NEW);
    const uint64_t x = put_integer(&j, 4);
    chunk link = {.count = 0}, messages = {.count = 0}, group = {.count = 0}, place = {.count = 0};
    add(&link, "\1\x10\1\1x", 5);
    add_bits(&link, x, 8);
    message(&messages, 0x06, 0, link.bytes, link.count);
    const size_t from = j.count;
    (void)put(&j, "OCHK", 4);
    (void)put(&j, messages.bytes, messages.count);
    const size_t to = j.count;
    (void)put(&j, "\0\0\0\0", 4);
    note_sum(&j, from, to);
    add_bits(&place, from - JLD2_BASE, 8);
    add_bits(&place, j.count - from, 8);
    message(&group, 0x02, 0, "\0\0\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0\0", 18);
    message(&group, 0x10, 0, place.bytes, place.count);
    end_jld2(&j, put_header(&j, &group));
    write_bytes(JLD2, j.bytes, j.count);
    wb_file *file = wb_open(test_path);
    if (!file) fail_msg("%s", wb_error_message());
    assert_int_equal(wb_record_get(wb_file_root(file), "x")->integer, 4);
    wb_free(file);
}

/* ---- damage ---- */

/* A little of everything. */
static void make_small(jld2 *j, bool is_old) {
    begin_jld2(j, is_old ? JLD2_OLD : JLD2_NEW);
    if (is_old) {
        const entry entries[] = {{"s", an_old_struct(j)}, {"n", an_old_named_tuple(j)}};
        end_jld2(j, put_group(j, 2, entries));
        return;
    }
    const entry entries[] = {
        {"s", a_struct(j)}, {"d", a_dictionary(j)}, {"z", a_deflated_array(j)}};
    end_jld2(j, put_group(j, 3, entries));
}

static void sum_all_up(jld2 *j) {
    for (int i = 0; i < j->sum_count; i++) sum_up(j, j->sums[i][0], j->sums[i][1]);
}

/* Each byte behind the text in front changed, with the checksums made right. */
static void flip_with_right_sums(jld2 *j) {
    static const unsigned char flips[] = {0x01, 0x02, 0x10, 0x20, 0x80, 0xFF};
    for (size_t i = JLD2_BASE; i < j->count; i++)
        for (size_t k = 0; k < sizeof flips; k++) {
            j->bytes[i] ^= flips[k];
            sum_all_up(j);
            (void)open_damaged(JLD2, j->bytes, j->count);
            j->bytes[i] ^= flips[k];
        }
    sum_all_up(j);
}

static void damaged_files_are_errors_or_trees(void **state) {
    (void)state;
    static jld2 j;
    for (int old = 0; old < 2; old++) {
        make_small(&j, old);
        every_prefix(JLD2, j.bytes, j.count);
        (void)every_flipped_byte(JLD2, j.bytes, j.count);
        flip_with_right_sums(&j);
        every_allocation_may_fail(JLD2, j.bytes, j.count);
    }
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {
        TEST(other_objects_are_refused),
        TEST(other_superblocks_are_refused),
        TEST(the_name_says_nothing),
        TEST(headers_are_continued),
        TEST(damaged_files_are_errors_or_trees),
    };
    ADD_TESTS(&tests, all);
    return run_test_list("formats/test_jld2_damage", &tests, make_folder, remove_folder);
}
