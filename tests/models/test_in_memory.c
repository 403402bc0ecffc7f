/* Files in memory: src/models/save.c, load.c and load_named.c, src/formats/file.c. */
#include <weber/state.h>

#include "models/model_files.h"

static const char *const names[] = {"m.npz", "m.bson", "m.safetensors"};

static wb_layer *small_model(void) {
    return wb_chain(wb_dense(2, 3, wb_tanh), wb_batchnorm(3), wb_dense(3, 1));
}

/* Counts what is released; the bytes are malloc's. */
static int released;

static void release_bytes(void *context, void *bytes) {
    assert_ptr_equal(context, &released);
    released++;
    free(bytes);
}

/* A file over bytes that were copied elsewhere. */
static wb_file *sent(wb_file *saved, const char *name) {
    const size_t size = (size_t)wb_file_size(saved);
    void *bytes = malloc(size);
    memcpy(bytes, wb_file_bytes(saved), size);
    wb_free(saved);
    return wb_open_memory(name, bytes, size, release_bytes, &released);
}

static void bytes_in_memory_are_those_of_the_file(void **state) {
    (void)state;
    wb_layer *model = small_model();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_save_named(path_of(names[i]), {"model", model}), WB_OK);
        wb_file *file = wb_open(path_of(names[i]));
        wb_file *memory = wb_save_memory(names[i], {"model", model});
        assert_non_null(memory);
        assert_int_equal(wb_file_size(memory), wb_file_size(file));
        assert_memory_equal(wb_file_bytes(memory), wb_file_bytes(file), wb_file_size(file));
        assert_string_equal(wb_file_format(memory), wb_file_format(file));
        wb_free(file), wb_free(memory);
    }
    wb_free(model);
}

static void a_model_is_made_of_bytes(void **state) {
    (void)state;
    wb_layer *model = small_model(), *other = small_model();
    wb_array *x = wb_normal(WB_F32, 2, 5);
    for (int i = 0; i < 3; i++) {
        released = 0;
        wb_file *file = sent(wb_save_memory(names[i], {"model", model}), names[i]);
        wb_layer *again = wb_file_model(file, "model", NULL);
        assert_non_null(again);
        assert_true(wb_approx(wb_apply(again, x), wb_apply(model, x), 0, 0, NULL, 0));
        assert_int_equal(wb_load_from(other, file), WB_OK);
        assert_true(wb_approx(wb_apply(other, x), wb_apply(model, x), 0, 0, NULL, 0));
        wb_free(again), wb_free(file);
        assert_int_equal(released, 1);
    }
    wb_free(model), wb_free(other);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_square(wb_apply(model, batch->x)));
}

static void training_goes_on_from_bytes(void **state) {
    (void)state;
    wb_layer *model = small_model();
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = {.x = wb_normal(WB_F32, 2, 5)};
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    wb_file *file =
        sent(wb_save_memory("run.npz", {"model", model}, {"o", o}, {"random", wb_random_state()}),
             "run.npz");
    double losses[2];
    for (int i = 0; i < 2; i++) {
        assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
        losses[i] = wb_item(wb_train_step(loss, model, &batch, NULL, o));
        assert_int_equal(
            wb_load_named_from(file, {"model", model}, {"o", o}, {"random", wb_random_state()}),
            WB_OK);
    }
    assert_true(losses[0] == losses[1]);
    wb_free(file), wb_free(o), wb_free(model);
}

static void bytes_live_as_long_as_arrays_of_them(void **state) {
    (void)state;
    released = 0;
    wb_scope_open();
    wb_array *x = wb_iota(WB_F32, 0, 1000);
    wb_file *file = sent(wb_save_memory("x.safetensors", {"x", x}), "x.safetensors");
    wb_array *y = wb_keep(wb_file_array(file, "x"));
    wb_free(file);
    assert_true(wb_item(wb_sum(y)) == 499500);
    wb_free(y);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(released, 1);
}

static void what_is_no_file_is_refused_and_released(void **state) {
    (void)state;
    released = 0;
    char *bytes = calloc(1, 100);
    assert_null(wb_open_memory("junk.npz", bytes, 100, release_bytes, &released));
    assert_error(WB_ERROR_FORMAT, "junk.npz");
    assert_null(wb_open_memory(NULL, malloc(1), 1, release_bytes, &released));
    assert_error(WB_ERROR_ARGUMENT, "wb_open_memory: the name is NULL");
    assert_int_equal(released, 2);
    wb_layer *model = small_model();
    assert_null(wb_save_memory("m.txt", {"model", model}));
    assert_error(WB_ERROR_FORMAT, "m.txt: the name must end in .bson");
    wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bytes_in_memory_are_those_of_the_file),
        TEST(a_model_is_made_of_bytes),
        TEST(training_goes_on_from_bytes),
        TEST(bytes_live_as_long_as_arrays_of_them),
        TEST(what_is_no_file_is_refused_and_released),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
