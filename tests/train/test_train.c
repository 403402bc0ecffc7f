/* src/train/train.c */
#include <math.h>
#include <string.h>

#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/train.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *regression(wb_layer *model, const wb_batch *batch, void *user) {
    if (user) ++*(int *)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_array *sum_until_51(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *l = wb_sum(wb_apply(model, batch->x));
    return ++*(int *)user == 51 ? wb_mul_number(l, (double)NAN) : l;
}

static void a_loss_that_is_nan_ends_it(void **state) { /* A37 */
    (void)state;
    int calls = 0;
    wb_layer *model = wb_dense(1, 1, .init = wb_zeros_init);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 1, 100));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    assert_int_equal(wb_train(sum_until_51, model, data, o, .user = &calls), WB_ERROR_NUMBER);
    assert_error(WB_ERROR_NUMBER, "loss is nan at batch 51 of epoch 1");
    assert_int_equal(calls, 51);
    assert_int_equal(wb_step_count(o), 50);
    assert_values(wb_get(model, "weight"), 1e-5, -5);
    wb_free(data), wb_free(o), wb_free(model);
}

typedef struct counts {
    int steps, epochs, stop_at;
    double first, last;
} counts;

static bool count_step(const wb_train_event *event) {
    counts *c = event->user;
    assert_non_null(event->loss);
    return ++c->steps != c->stop_at;
}

static bool count_epoch(const wb_train_event *event) {
    counts *c = event->user;
    c->last = event->mean_loss;
    if (c->epochs++ == 0) c->first = event->mean_loss;
    return true;
}

static bool fail_epoch(const wb_train_event *event) {
    (void)event;
    return !wb_add(wb_vector(1, 2), wb_vector(1, 2, 3)); /* true: go on */
}

static wb_array *plain_regression(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return regression(model, batch, NULL);
}

static void an_error_of_the_last_epoch_is_not_lost(void **state) {
    (void)state;
    wb_layer *model = wb_dense(1, 1);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 1, 4), .y = wb_ones(WB_F32, 1, 4));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    assert_int_equal(wb_train(plain_regression, model, data, o, .on_epoch = fail_epoch),
                     WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "add: sizes (2) and (3)");
    wb_free(data), wb_free(o), wb_free(model);
}

static void training_learns(void **state) {
    (void)state;
    wb_seed(1);
    wb_array *x = wb_uniform(WB_F32, 1, 200), *y = wb_mul(x, wb_square(x));
    wb_layer *model = wb_chain(wb_dense(1, 32, wb_tanh), wb_dense(32, 1));
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 32, .shuffle = true);
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.01), model);
    counts c = {0};
    assert_int_equal(wb_train(plain_regression, model, data, o, .epochs = 20, .on_step = count_step,
                              .on_epoch = count_epoch, .user = &c),
                     WB_OK);
    assert_int_equal(c.steps, 20 * 7);
    assert_int_equal(c.epochs, 20);
    assert_int_equal(wb_step_count(o), 140);
    assert_true(c.last < 0.3 * c.first);
    c = (counts){.stop_at = 3};
    assert_int_equal(wb_train(plain_regression, model, data, o, .on_step = count_step,
                              .on_epoch = count_epoch, .user = &c),
                     WB_OK);
    assert_int_equal(c.steps, 3);
    assert_int_equal(c.epochs, 0);
    wb_free(data), wb_free(o), wb_free(model);
}

static wb_array *classification(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* 8 x 8 images: class 0 grows along the first dimension, class 1 along the second, under noise. */
static void a_convolutional_network_learns(void **state) {
    (void)state;
    wb_seed(2);
    int32_t labels[64];
    for (int i = 0; i < 64; i++) labels[i] = i % 2;
    wb_array *y = wb_from(WB_I32, labels, 64);
    wb_array *is_one = wb_eq(wb_reshape(y, 1, 1, 1, 64), wb_number(1));
    wb_array *x = wb_add(wb_select(is_one, wb_iota(WB_F32, 1, 8, 8), wb_iota(WB_F32, 0, 8, 8)),
                         wb_mul_number(wb_normal(WB_F32, 8, 8, 1, 64), 0.5));
    x = wb_mul_number(x, 0.125);
    wb_layer *model = wb_chain(wb_conv({3, 3}, 1, 4, wb_relu), wb_maxpool({2, 2}), wb_flatten(),
                               wb_dropout(.p = 0.1), wb_dense(36, 2));
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 16, .shuffle = true);
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.01), model, .clip_total_norm = 5);
    assert_int_equal(wb_train(classification, model, data, o, .epochs = 20), WB_OK);
    assert_true(wb_item(wb_accuracy(wb_apply(model, x), y)) > 0.95);
    wb_free(data), wb_free(o), wb_free(model);
}

/* ---- what a loss hands out ---- */

static wb_array *with_parts(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *p = wb_aux("p", wb_apply(model, batch->x));
    wb_array *error = wb_aux("error", wb_mse(p, batch->y));
    return wb_add(error, wb_aux("extra", wb_mean(batch->x)));
}

typedef struct parts {
    int epochs;
    double sum; /* of the errors of this epoch's observations */
    int64_t observations;
} parts;

static bool add_part(const wb_train_event *event) {
    parts *s = event->user;
    assert_int_equal(event->aux_count, 2);
    assert_string_equal(event->aux[0].name, "error");
    assert_string_equal(event->aux[1].name, "extra");
    assert_value(wb_optimiser_aux(event->optimiser, "error"), event->aux[0].value, 0);
    assert_value(event->loss, event->aux[0].value + event->aux[1].value, 1e-6);
    assert_sizes(wb_optimiser_aux(event->optimiser, "p"), 1, event->batch->size);
    if (event->step == 1) s->sum = 0, s->observations = 0;
    s->sum += event->aux[0].value * (double)event->batch->size;
    s->observations += event->batch->size;
    assert_true(event->aux[0].mean == s->sum / (double)s->observations);
    return true;
}

static bool look_at_parts(const wb_train_event *event) {
    parts *s = event->user;
    s->epochs++;
    assert_int_equal(event->aux_count, 2);
    assert_int_equal(s->observations, 10);
    assert_true(event->aux[0].mean == s->sum / (double)s->observations);
    return true;
}

static void numbers_that_a_loss_hands_out_are_averaged(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 1);
    wb_loader *data =
        wb_loader_new(.x = wb_uniform(WB_F32, 2, 10), .y = wb_ones(WB_F32, 1, 10), .batchsize = 4);
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.1), model);
    parts s = {0};
    assert_int_equal(wb_train(with_parts, model, data, o, .epochs = 3, .on_step = add_part,
                              .on_epoch = look_at_parts, .validation = data, .user = &s),
                     WB_OK);
    assert_int_equal(s.epochs, 3);
    wb_free(data), wb_free(o), wb_free(model);
}

static void errors_come_through(void **state) {
    (void)state;
    int calls = 0;
    wb_layer *model = wb_dense(2, 1);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 1, 4), .y = wb_ones(WB_F32, 1, 4));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    assert_int_equal(wb_train(regression, model, data, o, .user = &calls), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "Dense(2 => 1): input has 1 features");
    assert_int_equal(calls, 1);
    assert_int_equal(wb_train(regression, NULL, data, o), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: the model is NULL");
    assert_int_equal(wb_train(regression, model, data, o, .epochs = -1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: epochs must not be negative, got -1");
    assert_int_equal(wb_train(regression, model, data, o, .cb = fail_epoch), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "cb is no longer a callback"); /* A38 */
    wb_schedule *s = wb_schedule_constant(0.1);
    assert_int_equal(
        wb_train(regression, model, data, o, .schedules = {{NULL, s, NULL}, {"eta", s, NULL}}),
        WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: entry 1 of .schedules has no setting");
    assert_int_equal(wb_train(regression, model, data, o, .early_stopping = {.min_delta = 1}),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: early_stopping: min_delta needs a patience");
    wb_free(s);
    wb_free(data), wb_free(o), wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(a_loss_that_is_nan_ends_it),
        TEST(training_learns),
        TEST(an_error_of_the_last_epoch_is_not_lost),
        TEST(a_convolutional_network_learns),
        TEST(numbers_that_a_loss_hands_out_are_averaged),
        TEST(errors_come_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
