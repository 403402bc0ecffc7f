/* wb_convert: the same arrays in another format, under other names. */
#include "models/torch_file.h"

static const char *path_of(const char *name) {
    static char paths[4][300];
    static int turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", test_folder, name);
    return path;
}

static const char *const convert_names[] = {"c.bson", "c.safetensors", "c.npz"};

/* Renamed and turned into each format, and from each into each other: the same numbers under the
 * same names. */
static void a_file_is_converted(void **state) {
    (void)state;
    static const char *const places[] = {"model.layers.1.weight", "model.layers.1.bias",
                                         "model.layers.2.weight"};
    write_torch("torch.npz");
    for (int i = 0; i < 9; i++) {
        const char *from = path_of(convert_names[i / 3]), *to = path_of(convert_names[i % 3]);
        assert_int_equal(wb_convert(path_of("torch.npz"), from,
                                    .rename = "0.weight -> model.layers.1.weight flip\n"
                                              "0.bias -> model.layers.1.bias\n"
                                              "3.weight -> model.layers.2.weight transpose"),
                         WB_OK);
        assert_int_equal(wb_convert(from, to), WB_OK);
        wb_file *file = wb_open(to);
        const wb_record *root = wb_file_root(file);
        assert_int_equal(wb_record_kind_of(wb_record_get(root, "model.layers")), WB_RECORD_LIST);
        assert_values(wb_record_array(file, wb_record_get(root, places[0])), 0, 4, 3, 2, 1, 8, 7, 6,
                      5);
        assert_values(wb_record_array(file, wb_record_get(root, places[1])), 0, 9);
        assert_values(wb_record_array(file, wb_record_get(root, places[2])), 0, 1, 4, 2, 5, 3, 6);
        wb_free(file);
    }
}

/* The text of its structure stands in the tree or in the metadata, as the format has it: a model
 * can be built from either. */
static void a_converted_model_can_be_built(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_conv({3, 3}, 1, 2, wb_relu), wb_flatten(), wb_dense(8, 3));
    for (int i = 0; i < 9; i++) {
        const char *from = path_of(convert_names[i / 3]), *to = path_of(convert_names[i % 3]);
        assert_int_equal(wb_save(from, model), WB_OK);
        assert_int_equal(wb_convert(from, to), WB_OK);
        wb_layer *built = wb_load_model(to, NULL);
        assert_same_bits(wb_get(model, "layers.3.weight"), wb_get(built, "layers.3.weight"), to);
        wb_free(built);
    }
    wb_free(model);
}

static void texts_about_a_file_come_along(void **state) {
    (void)state;
    wb_arena arena = {.blocks = NULL};
    const int64_t one = 1;
    const char *const names[] = {"x"}, *const texts[] = {"format"};
    wb_record *x = data_of(&arena, WB_F32, 1, &one, numbers), *text = text_of(&arena, "pt");
    assert_int_equal(save_record(&wb_format_npz, "m.npz", map_of(&arena, 1, names, &x),
                                 map_of(&arena, 1, texts, &text)),
                     WB_OK);
    wb_arena_release(&arena);
    const char *const way[] = {"m.npz", "m.bson", "m2.bson", "m.safetensors"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(wb_convert(path_of(way[i]), path_of(way[i + 1])), WB_OK);
    wb_file *file = wb_open(path_of("m.safetensors"));
    const wb_record *format = wb_record_get(wb_file_metadata(file), "format");
    assert_string_equal(wb_record_text(format), "pt");
    assert_int_equal(wb_record_count(wb_file_root(file)), 1);
    wb_free(file);
}

static void ties_are_converted(void **state) {
    (void)state;
    wb_layer *shared = wb_dense(2, 2);
    wb_layer *model = wb_chain(shared, wb_keep_layer(shared));
    assert_int_equal(wb_save(path_of("t.bson"), model), WB_OK);
    assert_int_equal(wb_convert(path_of("t.bson"), path_of("t.safetensors")), WB_OK);
    assert_int_equal(
        wb_convert(path_of("t.safetensors"), path_of("t.npz"), .rename = "model.** -> **"), WB_OK);
    wb_file *file = wb_open(path_of("t.npz"));
    const wb_record *root = wb_file_root(file);
    assert_ptr_equal(wb_record_get(root, "layers.1.weight"),
                     wb_record_get(root, "layers.2.weight"));
    wb_free(file), wb_free(model);
}

/* A state that Flux wrote, with `missing` where functions were. */
static void a_state_of_flux_stays_what_it_is(void **state) {
    (void)state;
    const char *from = WB_TESTS_DIR "/formats/fixtures/bson/flux_docs_checkpoint.bson";
    static const char *const ways[] = {"f.npz", "f.bson", "g.bson"};
    wb_file *file = wb_open(from);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_convert(i ? path_of(ways[i - 1]) : from, path_of(ways[i])), WB_OK);
        wb_file *again = wb_open(path_of(ways[i]));
        assert_same_tree(file->root, again->root);
        wb_free(again);
    }
    wb_free(file);
}

static void what_cannot_be_converted_leaves_the_old_file(void **state) {
    (void)state;
    write_torch("torch.npz");
    write_bytes("old.npy", "old", 3);
    assert_int_equal(wb_convert(path_of("torch.npz"), path_of("old.npy")), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, ".npz holds several by name");
    char bytes[8];
    assert_int_equal(read_saved((unsigned char *)bytes, sizeof bytes), 3);
    assert_int_equal(wb_convert(path_of("torch.npz"), path_of("x.txt")), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "x.txt: the name must end in .bson");
    assert_int_equal(wb_convert(path_of("none.npz"), path_of("x.npz")), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "none.npz: cannot be opened");
    assert_int_equal(wb_convert(NULL, path_of("x.npz")), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_convert");
}

static void a_file_is_converted_onto_itself(void **state) {
    (void)state;
    write_torch("torch.npz");
    assert_int_equal(
        wb_convert(path_of("torch.npz"), path_of("torch.npz"), .rename = "**.weight -> **.w"),
        WB_OK);
    wb_file *file = wb_open(path_of("torch.npz"));
    assert_values(wb_record_array(file, wb_record_get(wb_file_root(file), "3.w")), 0, 1, 2, 3, 4, 5,
                  6);
    wb_free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_converted),
        TEST(a_converted_model_can_be_built),
        TEST(texts_about_a_file_come_along),
        TEST(ties_are_converted),
        TEST(a_state_of_flux_stays_what_it_is),
        TEST(what_cannot_be_converted_leaves_the_old_file),
        TEST(a_file_is_converted_onto_itself),
    };
    if (make_folder(NULL)) return 1;
    const int failed = cmocka_run_group_tests_name("converting", tests, NULL, NULL);
    return remove_folder(NULL) || failed;
}
