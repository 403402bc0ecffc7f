/* src/layers/frozen.c */
#include <string.h>

#include <weber.h>

#include "support/scoped.h"

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_layer *model_of(void) {
    wb_seed(3);
    return wb_chain(wb_dense(3, 4, .activation = wb_tanh), wb_layernorm({4}), wb_dense(4, 2));
}

static const wb_batch *data(void) {
    static wb_batch batch;
    batch = (wb_batch){.x = wb_uniform(WB_F32, 3, 8), .y = wb_uniform(WB_F32, 2, 8)};
    return &batch;
}

static bool equal(wb_array *a, wb_array *b) { return wb_approx(a, b, 0, 0, NULL, 0); }

static int trainable(wb_layer *model) {
    int count = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) count += p.is_trainable;
    return count;
}

static void paths_say_which_layers(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int trainable;
        int64_t numbers;
    } rows[] = {{NULL, 0, 0},     {"layers.1", 4, 18}, {"layers", 0, 0},   {"layers.2", 4, 26},
                {"*diag", 4, 26}, {"layers.*", 0, 0},  {"layers.3", 4, 24}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_layer *model = model_of();
        assert_int_equal(wb_set_trainable(model, rows[i].path, false), WB_OK);
        assert_int_equal(trainable(model), rows[i].trainable);
        assert_int_equal(wb_parameter_count(model), rows[i].numbers);
        wb_layer *copy = wb_clone(model);
        assert_int_equal(trainable(copy), rows[i].trainable);
        assert_int_equal(wb_set_trainable(model, NULL, true), WB_OK);
        assert_int_equal(trainable(model), 6);
        wb_free(model), wb_free(copy);
    }
}

static void only_trainable_layers_change(void **state) {
    (void)state;
    wb_layer *model = model_of();
    assert_int_equal(wb_set_trainable(model, NULL, false), WB_OK);
    assert_int_equal(wb_set_trainable(model, "layers.3", true), WB_OK);
    wb_array *first = wb_get(model, "layers.1.weight"), *last = wb_get(model, "layers.3.weight");
    const wb_batch *batch = data();
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss, model, batch, NULL, &g));
    assert_null(wb_gradients_get(g, "layers.1.weight"));
    wb_clear_error();
    assert_non_null(wb_gradients_get(g, "layers.3.weight"));
    wb_optimiser *adam = wb_setup(wb_adam(), model);
    assert_null(wb_optimiser_get(adam, "layers.1.weight", "m"));
    wb_clear_error();
    assert_non_null(wb_train_step(loss, model, batch, NULL, adam));
    assert_ptr_equal(wb_get(model, "layers.1.weight"), first);
    assert_false(equal(wb_get(model, "layers.3.weight"), last));
    wb_free(adam), wb_free(model);
}

static void an_optimiser_follows(void **state) {
    (void)state;
    wb_layer *model = model_of();
    wb_optimiser *adam = wb_setup(wb_adam(), model);
    const wb_batch *batch = data();
    assert_non_null(wb_train_step(loss, model, batch, NULL, adam));
    assert_int_equal(wb_set_trainable(model, "layers.1", false), WB_OK);
    wb_array *first = wb_get(model, "layers.1.weight"), *last = wb_get(model, "layers.3.weight");
    assert_non_null(wb_train_step(loss, model, batch, NULL, adam));
    assert_ptr_equal(wb_get(model, "layers.1.weight"), first);
    assert_false(equal(wb_get(model, "layers.3.weight"), last));
    assert_int_equal(wb_set_trainable(model, "layers.1", true), WB_OK);
    assert_non_null(wb_train_step(loss, model, batch, NULL, adam));
    assert_false(equal(wb_get(model, "layers.1.weight"), first));
    wb_free(adam), wb_free(model);
}

static void gradients_of_what_is_frozen_by_now_are_an_error(void **state) {
    (void)state;
    wb_layer *model = model_of();
    wb_optimiser *adam = wb_setup(wb_adam(), model);
    wb_gradients *g;
    wb_array *first = wb_get(model, "layers.1.weight");
    assert_non_null(wb_withgradient(loss, model, data(), NULL, &g));
    assert_int_equal(wb_set_trainable(model, "layers.1", false), WB_OK);
    (void)wb_update(adam, model, g);
    assert_error(WB_ERROR_ARGUMENT, "the model has changed since its gradients were made");
    assert_ptr_equal(wb_get(model, "layers.1.weight"), first);
    assert_non_null(wb_train_step(loss, model, data(), NULL, adam));
    assert_ptr_equal(wb_get(model, "layers.1.weight"), first);
    wb_free(adam), wb_free(model);
}

/* An array that is in a frozen layer, too, changes only where it is trained. */
static void a_frozen_layer_keeps_its_numbers(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(3, 3), wb_dense(3, 3));
    assert_int_equal(wb_tie(model, "layers.2.weight", wb_get(model, "layers.1.weight")), WB_OK);
    assert_int_equal(wb_set_trainable(model, "layers.1", false), WB_OK);
    wb_array *before = wb_get(model, "layers.1.weight");
    const wb_batch batch = {.x = wb_uniform(WB_F32, 3, 8), .y = wb_uniform(WB_F32, 3, 8)};
    wb_optimiser *adam = wb_setup(wb_adam(), model);
    assert_non_null(wb_train_step(loss, model, &batch, NULL, adam));
    assert_ptr_equal(wb_get(model, "layers.1.weight"), before);
    assert_false(equal(wb_get(model, "layers.2.weight"), before));
    wb_free(adam), wb_free(model);
}

static void arrays_in_lists_freeze_too(void **state) {
    (void)state;
    wb_layer *tree = wb_tree(wb_ones(WB_F32, 2), wb_chain(wb_dense(1, 1)));
    assert_int_equal(wb_parameter_count(tree), 4);
    assert_int_equal(wb_set_trainable(tree, NULL, false), WB_OK);
    assert_int_equal(wb_parameter_count(tree), 0);
    assert_int_equal(wb_set_trainable(tree, "2", true), WB_OK);
    assert_int_equal(wb_parameter_count(tree), 2);
    wb_free(tree);
}

static void wrong_paths_are_errors(void **state) {
    (void)state;
    wb_layer *model = model_of();
    (void)wb_set_trainable(model, "layers.4", false);
    assert_error(WB_ERROR_ARGUMENT, "wb_set_trainable: no \"layers.4\" in Chain; it has layers.1");
    (void)wb_set_trainable(NULL, NULL, false);
    assert_error(WB_ERROR_ARGUMENT, "wb_set_trainable: the model is NULL");
    assert_int_equal(trainable(model), 6);
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(paths_say_which_layers),
        TEST(only_trainable_layers_change),
        TEST(an_optimiser_follows),
        TEST(a_frozen_layer_keeps_its_numbers),
        TEST(gradients_of_what_is_frozen_by_now_are_an_error),
        TEST(wrong_paths_are_errors),
        TEST(arrays_in_lists_freeze_too),
    };
    return cmocka_run_group_tests_name("layers/test_frozen", tests, NULL, NULL);
}
