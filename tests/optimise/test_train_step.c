/* wb_train_step is wb_withgradient and wb_update, whose gradients nobody reads. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

enum { STEPS = 12, BATCH = 6 };

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static wb_batch batch_of(int k) {
    float points[BATCH][3];
    int32_t labels[BATCH];
    for (int i = 0; i < BATCH; i++) {
        labels[i] = (i + k) % 4;
        for (int j = 0; j < 3; j++) points[i][j] = (float)((i * 3 + j * 5 + k) % 7) / 7;
    }
    return (wb_batch){.x = wb_from(WB_F32, points, 3, BATCH), .y = wb_from(WB_I32, labels, BATCH)};
}

/* ---- the same steps ---- */

static wb_array *step_apart(wb_layer *model, const wb_batch *batch, wb_optimiser *o) {
    wb_gradients *gradients;
    wb_array *l = wb_withgradient(loss, model, batch, NULL, &gradients);
    assert_int_equal(wb_update(o, model, gradients), WB_OK);
    return l;
}

static wb_layer *with_state(void) {
    return wb_chain(wb_dense(3, 8, wb_tanh), wb_batchnorm(8), wb_dropout(.p = 0.3), wb_dense(8, 4));
}

static wb_layer *with_tie(void) {
    wb_layer *model = wb_chain(wb_dense(3, 3, wb_tanh), wb_dense(3, 3), wb_dense(3, 4));
    assert_int_equal(wb_tie(model, "layers.2.weight", wb_get(model, "layers.1.weight")), WB_OK);
    return model;
}

typedef struct row {
    const char *name;
    wb_layer *(*make)(void);
    wb_rule rule;
    double clip_norm;
} row;

/* Losses of some steps, and what the model gives for a batch at the end. */
static void train(const row *r, bool whole, double *losses, float *outputs) {
    wb_seed(1);
    wb_layer *model = r->make();
    wb_optimiser *o = wb_setup(r->rule, model, .clip_total_norm = r->clip_norm);
    for (int k = 0; k < STEPS; k++) {
        wb_scope_open();
        const wb_batch batch = batch_of(k);
        wb_array *l =
            whole ? wb_train_step(loss, model, &batch, NULL, o) : step_apart(model, &batch, o);
        losses[k] = wb_item(l);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_int_equal(wb_step_count(o), STEPS);
    assert_int_equal(wb_read_f32(wb_apply(model, batch_of(0).x), outputs, 4 * BATCH), WB_OK);
    wb_free(o), wb_free(model);
}

static void steps_are_the_same(void **state) {
    (void)state;
    const row rows[] = {
        {"descent", with_state, wb_descent(.eta = 0.1), 0},
        {"momentum", with_state, wb_momentum(.eta = 0.1), 0},
        {"Adam", with_state, wb_adam(.eta = 0.01), 0},
        {"AdamW, clipped", with_state, wb_adamw(.eta = 0.01), 0.1},
        {"Adam with a tie", with_tie, wb_adam(.eta = 0.01), 0},
        {"descent, tied, clipped", with_tie, wb_descent(.eta = 0.1), 0.1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double whole[STEPS], apart[STEPS];
        float y_whole[4 * BATCH], y_apart[4 * BATCH];
        train(&rows[i], true, whole, y_whole);
        train(&rows[i], false, apart, y_apart);
        for (int k = 0; k < STEPS; k++)
            if (!(fabs(whole[k] - apart[k]) <= 1e-5))
                fail_msg("%s: step %d: %.9g, not %.9g", rows[i].name, k, whole[k], apart[k]);
        for (int k = 0; k < 4 * BATCH; k++)
            if (!(fabsf(y_whole[k] - y_apart[k]) <= 1e-4F))
                fail_msg("%s: output %d: %.9g, not %.9g", rows[i].name, k, (double)y_whole[k],
                         (double)y_apart[k]);
    }
}

/* ---- memory ---- */

/* Live memory after the second step, while its scope is open. */
static int64_t live_behind(bool whole) {
    wb_seed(1);
    wb_layer *model = wb_chain(wb_dense(3, 8, wb_tanh), wb_dense(8, 4));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const int64_t missed = wb_plan_status().missed_donations;
    int64_t live = 0;
    for (int k = 0; k < 2; k++) {
        wb_scope_open();
        const wb_batch batch = batch_of(k);
        (void)wb_item(whole ? wb_train_step(loss, model, &batch, NULL, o)
                            : step_apart(model, &batch, o));
        live = wb_memory_status(wb_default_device()).live;
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_int_equal(wb_plan_status().missed_donations, missed);
    wb_free(o), wb_free(model);
    return live;
}

static void gradients_are_not_kept(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER") || getenv("WEBER_FUSE")) skip();
    const int64_t parameters = 4 * (8 * 3 + 8 + 4 * 8 + 4); /* bytes */
    assert_true(live_behind(false) - live_behind(true) >= parameters);
}

static void a_held_array_keeps_its_value(void **state) {
    (void)state;
    wb_layer *model = with_state();
    wb_array *old = wb_keep(wb_get(model, "layers.1.weight"));
    wb_array *copy = wb_keep(wb_add_number(old, 0));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    const wb_batch batch = batch_of(0);
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    assert_true(wb_approx(old, copy, 0, 0, NULL, 0));
    assert_false(wb_approx(old, wb_get(model, "layers.1.weight"), 0, 0, NULL, 0));
    wb_free(old), wb_free(copy), wb_free(o), wb_free(model);
}

/* ---- what goes wrong ---- */

static wb_array *no_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_apply(model, wb_transpose(batch->x));
}
static wb_array *many_losses(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_apply(model, batch->x);
}
static wb_array *not_a_number(wb_layer *model, const wb_batch *batch, void *user) {
    return wb_mul_number(loss(model, batch, user), (double)NAN);
}

static void a_failed_step_changes_nothing(void **state) {
    (void)state;
    wb_layer *model = with_tie(), *other = with_tie(), *before = wb_clone(model);
    wb_optimiser *o = wb_setup(wb_adam(), model), *others = wb_setup(wb_adam(), other);
    const struct {
        wb_loss_fn *loss;
        wb_layer *model;
        wb_optimiser *optimiser;
        wb_status status;
        const char *message;
    } rows[] = {
        {NULL, model, o, WB_ERROR_ARGUMENT, "wb_train_step: the loss function"},
        {loss, NULL, o, WB_ERROR_ARGUMENT, "wb_train_step: "},
        {loss, model, NULL, WB_ERROR_ARGUMENT, "wb_train_step: the optimiser"},
        {loss, model, others, WB_ERROR_ARGUMENT,
         "wb_train_step: the optimiser belongs to another model"},
        {no_loss, model, o, WB_ERROR_SHAPE, "Dense(3 => 3"},
        {many_losses, model, o, WB_ERROR_SHAPE, "wb_train_step: the loss is "},
    };
    const wb_batch batch = batch_of(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(wb_train_step(rows[i].loss, rows[i].model, &batch, NULL, rows[i].optimiser));
        assert_error(rows[i].status, rows[i].message);
    }
    wb_array *l = wb_train_step(not_a_number, model, &batch, NULL, o);
    assert_true(isnan(wb_item(l)));
    assert_true(wb_approx(wb_apply(model, batch.x), wb_apply(before, batch.x), 0, 0, NULL, 0));
    wb_free(o), wb_free(others), wb_free(model), wb_free(other), wb_free(before);
}

/* ---- a network that makes the weight of another one ---- */

static wb_array *generated(wb_layer *model, const wb_batch *batch, void *is_wrong) {
    wb_array *w = wb_apply(wb_get_layer(model, "maker"), wb_ones(WB_F32, 3, 1));
    (void)wb_set(model, "net.weight", wb_reshape(w, 1, 3));
    wb_array *y = wb_apply(wb_get_layer(model, "net"), batch->x);
    return wb_mse(y, is_wrong ? batch->x : wb_ones(WB_F32, 1, BATCH));
}

static void a_loss_may_set_a_parameter(void **state) {
    (void)state;
    wb_layer *model = wb_tree_named({"maker", wb_dense(3, 3)}, {"net", wb_dense(3, 1)});
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.1), model);
    const wb_batch batch = batch_of(0);
    double losses[10];
    for (int i = 0; i < 10; i++) {
        wb_scope_open();
        losses[i] = wb_item(wb_train_step(generated, model, &batch, NULL, o));
        if (i > 0) assert_true(losses[i] < losses[i - 1]);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    wb_array *made = wb_keep(wb_get(model, "net.weight"));
    assert_null(wb_train_step(generated, model, &batch, o, o));
    assert_error(WB_ERROR_SHAPE, "mse: ");
    assert_ptr_equal(wb_get(model, "net.weight"), made);
    wb_free(made), wb_free(o), wb_free(model);
}

static wb_array *doubles(wb_layer *model, const wb_batch *batch, void *user) {
    (void)wb_set(model, "bias", wb_mul_number(wb_get(model, "bias"), 2));
    return loss(model, batch, user);
}

/* Of the two new values one would be lost; and of the parts of a step each would set another. */
static void what_a_loss_sets_is_not_moved_as_well(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 4), *before = wb_clone(model);
    wb_optimiser *whole = wb_setup(wb_adam(), model);
    wb_optimiser *parts = wb_setup(wb_adam(), model, .micro_batches = 2);
    const wb_batch batch = batch_of(0);
    assert_null(wb_train_step(doubles, model, &batch, NULL, whole));
    assert_error(WB_ERROR_ARGUMENT, "the loss function set bias, a parameter that has a gradient");
    assert_null(wb_train_step(doubles, model, &batch, NULL, parts));
    assert_error(WB_ERROR_ARGUMENT, "the loss function set bias, a parameter: each part of a step");
    assert_true(wb_approx(wb_apply(model, batch.x), wb_apply(before, batch.x), 0, 0, NULL, 0));
    wb_free(whole), wb_free(parts), wb_free(model), wb_free(before);
}

static wb_array *generated_nan(wb_layer *model, const wb_batch *batch, void *user) {
    return wb_mul_number(generated(model, batch, user), (double)NAN);
}

static void a_skipped_step_keeps_what_the_loss_would_set(void **state) {
    (void)state;
    wb_layer *model = wb_tree_named({"maker", wb_dense(3, 3)}, {"net", wb_dense(3, 1)});
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = batch_of(0);
    wb_array *before = wb_copy(wb_get(model, "net.weight"));
    assert_int_equal(wb_eval(before), WB_OK);
    assert_non_null(wb_train_step(generated_nan, model, &batch, NULL, o));
    assert_true(wb_approx(wb_get(model, "net.weight"), before, 0, 0, NULL, 0));
    wb_free(o), wb_free(model);
}

static wb_array *steps_itself(wb_layer *model, const wb_batch *batch, void *optimiser) {
    return wb_train_step(loss, model, batch, NULL, optimiser);
}

static wb_array *updates_itself(wb_layer *model, const wb_batch *batch, void *optimiser) {
    wb_gradients *g;
    wb_array *l = wb_withgradient(loss, model, batch, NULL, &g);
    return wb_update(optimiser, model, g) == WB_OK ? l : NULL;
}

static void a_loss_must_not_take_the_step_itself(void **state) {
    (void)state;
    wb_layer *model = with_tie();
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = batch_of(0);
    assert_null(wb_train_step(steps_itself, model, &batch, o, o));
    assert_error(WB_ERROR_ARGUMENT, "wb_train_step: this optimiser is in the middle of a step");
    assert_null(wb_train_step(updates_itself, model, &batch, o, o));
    assert_error(WB_ERROR_ARGUMENT, "wb_update: this optimiser is in the middle of a step");
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    wb_free(o), wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {TEST(steps_are_the_same),
                                       TEST(gradients_are_not_kept),
                                       TEST(a_held_array_keeps_its_value),
                                       TEST(a_failed_step_changes_nothing),
                                       TEST(a_loss_may_set_a_parameter),
                                       TEST(what_a_loss_sets_is_not_moved_as_well),
                                       TEST(a_skipped_step_keeps_what_the_loss_would_set),
                                       TEST(a_loss_must_not_take_the_step_itself)};
    return cmocka_run_group_tests_name("optimise/test_train_step", tests, NULL, NULL);
}
