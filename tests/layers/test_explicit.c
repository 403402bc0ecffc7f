/* src/layers/explicit.c: parameters and states beside the model. */
#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_layer *small_model(void) {
    return wb_chain(wb_dense(3, 4, wb_tanh), wb_batchnorm(4), wb_flatten(),
                    wb_skip(wb_dense(4, 4), wb_connect_add));
}

static double distance(wb_array *a, wb_array *b) {
    return wb_item(wb_maximum(wb_abs(wb_sub(a, b))));
}

static void trees_have_the_models_paths(void **state) {
    (void)state;
    wb_layer *model = small_model(), *ps = wb_parameter_tree(model), *st = wb_state_tree(model);
    int parameters = 0, states = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) {
        assert_ptr_equal(wb_get(p.is_trainable ? ps : st, p.path), p.array);
        *(p.is_trainable ? &parameters : &states) += 1;
    }
    assert_int_equal(parameters, 6);
    assert_int_equal(states, 2);
    assert_int_equal(wb_parameter_count(ps), wb_parameter_count(model));
    wb_free(ps), wb_free(st), wb_free(model);
    model = wb_flatten(); /* nothing in it */
    ps = wb_parameter_tree(model);
    assert_non_null(ps);
    assert_int_equal(wb_parameter_count(ps), 0);
    wb_free(ps), wb_free(model);
}

/* In training mode: the states come out, and the model's own stay. */
static void applying_changes_nothing_of_the_model(void **state) {
    (void)state;
    wb_layer *model = small_model(), *twin = wb_clone(model), *next = NULL;
    wb_layer *ps = wb_parameter_tree(model), *st = wb_state_tree(model);
    wb_array *x = wb_normal(WB_F32, 3, 5), *before = wb_copy(wb_get(model, "layers.2.μ"));
    const bool training = wb_training(true);
    wb_array *y = wb_apply_tree(model, x, ps, st, &next), *wanted = wb_apply(twin, x);
    assert_true(distance(y, wanted) == 0);
    assert_true(distance(wb_get(next, "layers.2.μ"), wb_get(twin, "layers.2.μ")) == 0);
    assert_true(distance(wb_get(next, "layers.2.σ²"), wb_get(twin, "layers.2.σ²")) == 0);
    assert_true(distance(wb_get(model, "layers.2.μ"), before) == 0);
    assert_true(distance(wb_get(st, "layers.2.μ"), before) == 0);
    assert_true(distance(wb_get(next, "layers.2.μ"), before) > 0);
    wb_layer *after = NULL; /* a second step goes on from there */
    y = wb_apply_tree(model, x, ps, next, &after), wanted = wb_apply(twin, x);
    assert_true(distance(wb_get(after, "layers.2.μ"), wb_get(twin, "layers.2.μ")) == 0);
    (void)wb_training(training);
    wb_free(next), wb_free(after), wb_free(ps), wb_free(st), wb_free(model), wb_free(twin);
}

typedef struct run {
    wb_layer *model, *st, *next;
} run;

static wb_array *explicit_loss(wb_layer *ps, const wb_batch *batch, void *user) {
    run *r = user;
    wb_array *y = wb_apply_tree(r->model, batch->x, ps, r->st, &r->next);
    return wb_mse(y, batch->y);
}

static wb_array *usual_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* Ten steps on trees come to the bits of ten steps on the model. */
static void training_is_the_same(void **state) {
    (void)state;
    wb_layer *model = small_model(), *twin = wb_clone(model);
    run r = {.model = model, .st = wb_state_tree(model)};
    wb_layer *ps = wb_parameter_tree(model);
    wb_optimiser *a = wb_setup(wb_adam(), ps), *b = wb_setup(wb_adam(), twin);
    const wb_batch batch = {.x = wb_normal(WB_F32, 3, 5), .y = wb_normal(WB_F32, 4, 5), .size = 5};
    wb_array *first = wb_copy(wb_get(model, "layers.1.weight"));
    for (int i = 0; i < 10; i++) {
        assert_non_null(wb_train_step(explicit_loss, ps, &batch, &r, a));
        assert_non_null(wb_train_step(usual_loss, twin, &batch, NULL, b));
        wb_free(r.st), r.st = r.next;
    }
    assert_true(distance(wb_get(ps, "layers.1.weight"), wb_get(twin, "layers.1.weight")) == 0);
    assert_true(
        distance(wb_get(ps, "layers.4.layers.bias"), wb_get(twin, "layers.4.layers.bias")) == 0);
    assert_true(distance(wb_get(r.st, "layers.2.μ"), wb_get(twin, "layers.2.μ")) == 0);
    assert_true(distance(wb_get(model, "layers.1.weight"), first) == 0);
    wb_free(a), wb_free(b), wb_free(ps), wb_free(r.st), wb_free(model), wb_free(twin);
}

static void a_tie_is_one_parameter(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 2), wb_dense(2, 2)), *next;
    assert_int_equal(wb_tie(model, "layers.2.weight", wb_get(model, "layers.1.weight")), WB_OK);
    wb_layer *ps = wb_parameter_tree(model), *st = wb_state_tree(model);
    assert_int_equal(wb_parameter_count(ps), 4 + 2 + 2);
    assert_non_null(wb_apply_tree(model, wb_ones(WB_F32, 2, 3), ps, st, &next));
    wb_free(next), wb_free(ps), wb_free(st), wb_free(model);
}

static void hidden_states_begin_anew(void **state) {
    (void)state;
    wb_layer *model = wb_recur(wb_rnn_cell(2, 3));
    wb_array *x = wb_ones(WB_F32, 2, 4), *first = wb_apply(model, x);
    wb_layer *ps = wb_parameter_tree(model), *st = wb_state_tree(model);
    for (int i = 0; i < 2; i++)
        assert_true(distance(wb_apply_tree(model, x, ps, st, NULL), first) == 0);
    assert_true(distance(wb_apply(model, x), first) > 0); /* the model's own goes on */
    wb_free(ps), wb_free(st), wb_free(model);
}

static void mistakes_name_path_and_sizes(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3)), *next = model, *st = wb_state_tree(model);
    wb_array *x = wb_ones(WB_F32, 2, 3);
    wb_layer *other = wb_chain(wb_dense(2, 4)), *ps = wb_parameter_tree(other);
    assert_null(wb_apply_tree(model, x, ps, st, &next));
    assert_null(next);
    assert_error(WB_ERROR_SHAPE, "wb_apply_tree: layers.1.weight must be (3, 2), as in the model, "
                                 "got (4, 2)");
    assert_null(wb_apply_tree(model, x, st, st, &next));
    assert_error(WB_ERROR_ARGUMENT, "wb_apply_tree: no \"layers.1.weight\" in Tree; it has no ");
    assert_null(wb_apply_tree(NULL, x, ps, st, &next));
    assert_error(WB_ERROR_ARGUMENT, "wb_apply_tree: model is NULL");
    assert_null(wb_apply_tree(model, x, NULL, st, &next));
    assert_error(WB_ERROR_ARGUMENT, "wb_apply_tree: ps is NULL");
    assert_null(wb_apply_tree(model, x, ps, NULL, &next));
    assert_error(WB_ERROR_ARGUMENT, "wb_apply_tree: st is NULL");
    wb_layer *own = wb_parameter_tree(model);
    assert_null(wb_apply_tree(model, wb_ones(WB_F32, 5, 3), own, st, &next));
    assert_error(WB_ERROR_SHAPE, "Dense(2 => 3)");
    assert_null(next);
    assert_non_null(wb_apply(model, x)); /* has its own arrays again */
    wb_free(own), wb_free(ps), wb_free(st), wb_free(other), wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(trees_have_the_models_paths), TEST(applying_changes_nothing_of_the_model),
        TEST(training_is_the_same),        TEST(a_tie_is_one_parameter),
        TEST(hidden_states_begin_anew),    TEST(mistakes_name_path_and_sizes),
    };
    return cmocka_run_group_tests_name("layers/test_explicit", tests, NULL, NULL);
}
