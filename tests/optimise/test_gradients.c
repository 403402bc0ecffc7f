/* src/optimise/gradients.c */
#include <string.h>

#include <weber/gradient.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>

#include "support/numbers.h"
#include "support/scoped.h"

typedef struct ActorCritic {
    wb_layer layer;
    wb_layer *actor;
    wb_layer *critic;
} ActorCritic;
WB_FUNCTOR(ActorCritic, NULL, WB_CHILD_FIELD(ActorCritic, actor),
           WB_FROZEN_FIELD(ActorCritic, critic));

static void gradients_by_path(void **state) {
    (void)state;
    wb_layer *model =
        wb_chain(wb_dense(2, 1, .init = wb_ones_init), wb_dense(1, 1, .init = wb_ones_init));
    wb_array *l = wb_sum(wb_apply(model, wb_vector(3, 4)));
    wb_gradients *g = wb_gradient(l, model);
    assert_values(wb_gradients_get(g, "layers.1.weight"), 0, 3, 4);
    assert_values(wb_gradients_get(g, "layers.2.weight"), 0, 7);
    assert_values(wb_gradients_get(g, "layers.2.bias"), 0, 1);
    assert_null(wb_gradients_get(g, "layers.3.bias"));
    assert_error(WB_ERROR_ARGUMENT,
                 "it has layers.1.weight, layers.1.bias, layers.2.weight, layers.2.bias");
    assert_int_equal(wb_gradients_set(g, "layers.1.bias", wb_vector(5)), WB_OK);
    assert_values(wb_gradients_get(g, "layers.1.bias"), 0, 5);
    assert_int_equal(wb_gradients_set(g, "layers.1.weight", wb_vector(5)), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE,
                 "wb_gradients_set: layers.1.weight has sizes (1, 2), the gradient (1)");
    wb_free(model);
}

static void what_the_loss_does_not_see_has_none(void **state) {
    (void)state;
    ActorCritic *m = wb_new(ActorCritic);
    m->actor = wb_chain(wb_dense(2, 2), wb_dense(2, 2)), m->critic = wb_dense(2, 1);
    wb_layer *first = wb_get_layer(&m->layer, "actor.layers.1");
    wb_gradients *g = wb_gradient(wb_sum(wb_apply(first, wb_vector(1, 2))), &m->layer);
    assert_non_null(wb_gradients_get(g, "actor.layers.1.weight"));
    assert_null(wb_gradients_get(g, "actor.layers.2.weight"));
    assert_false(wb_failed());
    assert_null(wb_gradients_get(g, "critic.weight"));
    assert_error(WB_ERROR_ARGUMENT, "\"critic.weight\" is not trainable");
    wb_free(m);
}

static void reading_the_loss_first_changes_nothing(void **state) { /* values 1 */
    (void)state;
    wb_layer *model = wb_dense(2, 1, wb_tanh);
    wb_array *l = wb_sum(wb_square(wb_apply(model, wb_vector(1, 2))));
    wb_array *g = wb_gradients_get(wb_gradient(l, model), "weight");
    wb_array *k = wb_sum(wb_square(wb_apply(model, wb_vector(1, 2))));
    (void)wb_item(k);
    assert_true(wb_approx(g, wb_gradients_get(wb_gradient(k, model), "weight"), 1e-6, 0, NULL, 0));
    wb_free(model);
}

typedef struct seen {
    bool training;
    int calls;
} seen;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    seen *s = user;
    s->calls++;
    s->training = wb_training(true);
    (void)wb_training(s->training);
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void withgradient_is_in_training_mode(void **state) { /* values 18 */
    (void)state;
    wb_layer *model = wb_dense(2, 1, .init = wb_ones_init);
    wb_batch batch = {.x = wb_ones(WB_F32, 2, 4), .y = wb_ones(WB_F32, 1, 4)};
    seen s = {0};
    wb_gradients *g;
    wb_array *l = wb_withgradient(loss, model, &batch, &s, &g);
    assert_true(s.training);
    assert_int_equal(s.calls, 1);
    assert_false(wb_training(false));
    assert_value(l, 1, 1e-6);
    assert_values(wb_gradients_get(g, "weight"), 1e-6, 2, 2);
    assert_values(wb_gradients_get(g, "bias"), 1e-6, 2);
    wb_free(model);
}

static void a_failing_loss_gives_nothing(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 1);
    wb_batch batch = {.x = wb_ones(WB_F32, 2, 4), .y = wb_ones(WB_F32, 1, 4)};
    seen s = {0};
    wb_gradients *g = (wb_gradients *)(void *)&s;
    assert_null(wb_withgradient(loss, model, &batch, &s, &g));
    assert_null(g);
    assert_error(WB_ERROR_SHAPE, "Dense(3 => 1): input has 2 features in (2, 4)");
    assert_false(wb_training(false));
    assert_null(wb_withgradient(NULL, model, &batch, NULL, &g));
    assert_error(WB_ERROR_ARGUMENT, "wb_withgradient: the loss function is NULL");
    assert_null(wb_gradient(wb_apply(model, wb_ones(WB_F32, 3, 2)), model));
    assert_error(WB_ERROR_SHAPE, "wb_gradient: the loss is (1, 2), not one number");
    wb_free(model);
}

/* What a scope of the loss's own cut off is as lost when it was put into the model. */
static wb_array *set_in_a_scope(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_scope_open();
    (void)wb_set(model, "weight", wb_mul_number(wb_get(model, "weight"), 2));
    (void)wb_scope_close();
    return wb_sum(wb_apply(model, batch->x));
}

static void a_weight_set_in_a_closed_scope_is_an_error(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 1, .init = wb_ones_init);
    wb_batch batch = {.x = wb_vector(3, 4)};
    wb_gradients *g;
    assert_null(wb_withgradient(set_in_a_scope, model, &batch, NULL, &g));
    assert_error(WB_ERROR_GRADIENT, "(1, 2) of type f32 lost its recipe when its scope was closed, "
                                    "so the gradient does not reach array 0");
    assert_values(wb_get(model, "weight"), 0, 1, 1);
    wb_free(model);
}

/* But what is in the model when the loss is over is data, whoever computed it. */
static wb_array *norm_in_a_scope(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_scope_open();
    (void)wb_apply(model, batch->x); /* writes μ and σ² */
    (void)wb_scope_close();
    return wb_sum(wb_mul(wb_get(model, "γ"), batch->y));
}

static void a_state_set_in_a_closed_scope_is_data_later(void **state) {
    (void)state;
    wb_layer *model = wb_batchnorm(2);
    wb_batch batch = {.x = wb_matrix(2, {3, 4}, {5, 7}), .y = wb_vector(1, 2)};
    wb_gradients *g;
    wb_array *before = wb_get(model, "μ"), *none;
    wb_scope_open();
    assert_non_null(wb_withgradient(norm_in_a_scope, model, &batch, NULL, &g));
    assert_values(wb_gradients_get(g, "γ"), 0, 1, 2);
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_array *after = wb_get(model, "μ");
    assert_true(wb_at(after, 0) != 0);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(after)), 1, &before, &none), WB_OK);
    assert_null(none);
    wb_free(model);
}

static void gradients_outlive_their_model(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 1, .init = wb_ones_init);
    wb_gradients *g = wb_gradient(wb_sum(wb_apply(model, wb_vector(3, 4))), model);
    wb_free(model);
    assert_values(wb_gradients_get(g, "weight"), 0, 3, 4);
    wb_free(g);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(gradients_by_path),
        TEST(what_the_loss_does_not_see_has_none),
        TEST(reading_the_loss_first_changes_nothing),
        TEST(withgradient_is_in_training_mode),
        TEST(a_failing_loss_gives_nothing),
        TEST(a_weight_set_in_a_closed_scope_is_an_error),
        TEST(a_state_set_in_a_closed_scope_is_data_later),
        TEST(gradients_outlive_their_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
