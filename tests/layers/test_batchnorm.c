/* src/layers/batchnorm.c */
#include <math.h>
#include <stdlib.h>

#include <weber/device.h>
#include <weber/gradient.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/train.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *one_to_six(void) {
    return wb_from(WB_F64, ((const double[]){1, 2, 3, 4, 5, 6}), 2, 3);
}

static void training_takes_the_batch_and_moves_the_running_ones(void **state) { /* G1, G2 */
    (void)state;
    wb_layer *norm = wb_batchnorm(2, .dtype = WB_F64);
    wb_train_mode(norm);
    const double s = 2 / sqrt(8.0 / 3 + 1e-5);
    assert_values(wb_apply(norm, one_to_six()), 1e-12, -s, -s, 0, 0, s, s);
    assert_values(wb_get(norm, "μ"), 1e-12, 0.3, 0.4);
    assert_values(wb_get(norm, "σ²"), 1e-12, 1.3, 1.3);
    wb_test_mode(norm);
    assert_true(fabs(wb_at(wb_apply(norm, one_to_six()), 0, 0) - 0.7 / sqrt(1.3 + 1e-5)) < 1e-12);
    wb_free(norm);
}

static wb_array *pair(wb_dtype dtype, double first, double second) {
    return wb_cast(wb_from(WB_F64, ((const double[]){first, second}), 2), dtype);
}

/* All numbers are exact in halves, which are rounded once. */
static void test_mode_takes_the_running_ones(void **state) {
    static const struct {
        wb_dtype dtype;
        double tolerance;
    } rows[] = {{WB_F64, 1e-12}, {WB_F32, 1e-5}, {WB_F16, 1e-2}, {WB_BF16, 7e-2}};
    const double mean[2] = {10, -0.5}, variance[2] = {4, 0.25}, gamma[2] = {-1.5, 2},
                 beta[2] = {0.75, -3};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const wb_dtype dtype = rows[r].dtype;
        wb_layer *norm = wb_batchnorm(2, wb_relu, .given_mean = pair(dtype, mean[0], mean[1]),
                                      .given_variance = pair(dtype, variance[0], variance[1]),
                                      .given_gamma = pair(dtype, gamma[0], gamma[1]),
                                      .given_beta = pair(dtype, beta[0], beta[1]));
        wb_array *y =
            wb_apply(wb_test_mode(norm) == WB_OK ? norm : NULL, wb_cast(one_to_six(), dtype));
        assert_int_equal(wb_dtype_of(y), dtype);
        for (int i = 0; i < 6; i++) {
            const int c = i % 2;
            const double scaled = (i + 1 - mean[c]) / sqrt(variance[c] + 1e-5) * gamma[c] + beta[c];
            assert_true(fabs(wb_at(y, c, i / 2) - fmax(scaled, 0)) <= rows[r].tolerance);
        }
        wb_free(norm);
    }
}

static void one_number_for_each_channel_is_no_batch(void **state) { /* G3 */
    (void)state;
    wb_layer *norm = wb_batchnorm(1);
    assert_values(wb_apply(norm, wb_zeros(WB_F32, 1, 1)), 0, 0);
    wb_train_mode(norm);
    assert_null(wb_apply(norm, wb_zeros(WB_F32, 1, 1)));
    assert_error(WB_ERROR_ARGUMENT,
                 "BatchNorm(1): input (1, 1) has 1 number for each channel; training needs two");
    assert_int_equal(wb_count(wb_apply(norm, wb_zeros(WB_F32, 1, 0))), 0);
    assert_values(wb_get(norm, "μ"), 0, 0);
    assert_values(wb_get(norm, "σ²"), 0, 1);
    wb_free(norm);
}

static void what_is_trained(void **state) { /* G4 */
    (void)state;
    wb_layer *norm = wb_batchnorm(10), *plain = wb_batchnorm(10, .affine = false);
    assert_int_equal(wb_parameter_count(norm), 20);
    assert_int_equal(wb_parameter_count(plain), 0);
    assert_non_null(wb_get(plain, "μ"));
    wb_free(norm), wb_free(plain);
}

static void channels_last_but_one_in_any_number_of_dimensions(void **state) { /* G5 */
    (void)state;
    static const int64_t sizes[5] = {4, 3, 2, 5, 6};
    for (int ndim = 3; ndim <= 5; ndim++) {
        wb_layer *a = wb_batchnorm(sizes[ndim - 2], .dtype = WB_F64);
        wb_layer *b = wb_batchnorm(sizes[ndim - 2], .dtype = WB_F64);
        wb_train_mode(a), wb_train_mode(b);
        wb_array *x = wb_normal_make(WB_F64, ndim, sizes);
        int64_t turned[5] = {ndim - 2}; /* channels first, then all others as one */
        for (int d = 1; d < ndim; d++) turned[d] = d - 1 < ndim - 2 ? d - 1 : ndim - 1;
        wb_array *y = wb_permute_make(wb_apply(a, x), ndim, turned);
        wb_array *flat = wb_reshape(wb_permute_make(x, ndim, turned), sizes[ndim - 2],
                                    wb_count(x) / sizes[ndim - 2]);
        assert_true(wb_approx(wb_reshape(y, sizes[ndim - 2], wb_count(x) / sizes[ndim - 2]),
                              wb_apply(b, flat), 1e-12, 1e-12, NULL, 0));
        assert_true(wb_approx(wb_get(a, "σ²"), wb_get(b, "σ²"), 1e-12, 1e-12, NULL, 0));
        wb_free(a), wb_free(b);
    }
}

static void settings(void **state) {
    (void)state;
    wb_layer *norm = wb_batchnorm(2, wb_relu, .momentum = 0.5, .eps = 1, .dtype = WB_F64);
    wb_train_mode(norm);
    assert_values(wb_apply(norm, one_to_six()), 1e-12, 0, 0, 0, 0, 2 / sqrt(11.0 / 3),
                  2 / sqrt(11.0 / 3));
    assert_values(wb_get(norm, "μ"), 1e-12, 1.5, 2);
    assert_values(wb_get(norm, "σ²"), 1e-12, 2.5, 2.5);
    wb_free(norm);

    norm = wb_batchnorm(2, .track_stats = false, .affine = false);
    const double s = 2 / sqrt(8.0 / 3 + 1e-5);
    wb_array *x = wb_cast(one_to_six(), WB_F32);
    assert_values(wb_apply(norm, x), 1e-6, -s, -s, 0, 0, s, s);
    wb_train_mode(norm);
    assert_values(wb_apply(norm, x), 1e-6, -s, -s, 0, 0, s, s);
    wb_free(norm);

    norm = wb_batchnorm(1, .affine = false, .eps = 1);
    wb_set(norm, "μ", wb_vector(2)), wb_set(norm, "σ²", wb_vector(3));
    assert_values(wb_apply(norm, wb_reshape(wb_vector(4, 0), 1, 2)), 1e-6, 1, -1);
    wb_free(norm);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* After a hundred steps the running ones are those of the data, and both modes agree. */
static void a_training_leaves_the_statistics_of_the_data(void **state) {
    (void)state;
    wb_seed(3);
    wb_layer *model = wb_chain(wb_batchnorm(4), wb_dense(4, 1));
    wb_array *x = wb_add_number(wb_mul_number(wb_normal(WB_F32, 4, 64), 3), 5);
    wb_loader *data =
        wb_loader_new(.x = x, .y = wb_sum_dims(x, 0), .batchsize = 64, .background = false);
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.05), model);
    assert_int_equal(wb_train(loss, model, data, adam, .epochs = 150), WB_OK);
    wb_array *mean = wb_mean_dims(x, 1), *variance = wb_var_dims(x, true, 1);
    assert_true(wb_approx(wb_get(model, "layers.1.μ"), wb_reshape(mean, 4), 1e-3, 1e-3, NULL, 0));
    assert_true(
        wb_approx(wb_get(model, "layers.1.σ²"), wb_reshape(variance, 4), 1e-3, 1e-3, NULL, 0));
    wb_array *y = wb_apply(model, x);
    wb_train_mode(model);
    assert_true(wb_approx(wb_apply(model, x), y, 0.05, 0.05, NULL, 0));
    wb_free(adam), wb_free(data), wb_free(model);
}

/* The statistics of a batch that holds a NaN are none to go on with: wb_train stops, and the model
 * is as it was. */
static void a_batch_that_is_not_finite_leaves_the_running_ones(void **state) {
    (void)state;
    float numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    numbers[6] = NAN;
    wb_layer *model = wb_chain(wb_batchnorm(2), wb_dense(2, 1));
    wb_loader *data = wb_loader_new(.x = wb_from(WB_F32, numbers, 2, 6),
                                    .y = wb_zeros(WB_F32, 1, 6), .batchsize = 3);
    wb_optimiser *adam = wb_setup(wb_adam(), model);
    assert_int_equal(wb_train(loss, model, data, adam), WB_ERROR_NUMBER);
    assert_error(WB_ERROR_NUMBER, "loss is nan at batch 2 of epoch 1");
    /* those of the first batch, in both channels */
    assert_values(wb_get(model, "layers.1.μ"), 1e-6, 0.3, 0.4);
    assert_values(wb_get(model, "layers.1.σ²"), 1e-6, 1.3, 1.3);
    wb_free(adam), wb_free(data), wb_free(model);
}

static wb_layer *deep_model(int norms) {
    wb_layer *layers[200];
    layers[0] = wb_dense(2, 2);
    for (int i = 1; i <= norms; i++) layers[i] = wb_batchnorm(2, wb_tanh);
    layers[norms + 1] = wb_dense(2, 1);
    return wb_chain_make(norms + 2, layers);
}

/* The running ones come out of the step's own plan, and nothing of a step outlives it. */
static void a_step_is_one_plan_that_leaves_nothing_behind(void **state) {
    (void)state;
    static const int norms[] = {2, 150};
    for (int n = 0; n < 4; n++) {
        wb_layer *model = deep_model(norms[n % 2]);
        const wb_batch batch = {.x = wb_copy(wb_normal(WB_F32, 2, 8)), .y = wb_zeros(WB_F32, 1, 8)};
        wb_optimiser *descent = wb_setup(wb_descent(), model);
        wb_live_counts live = {0};
        wb_plan_counts before = {0};
        for (int step = 0; step < 9; step++) {
            wb_gradients *gradients;
            if (step == 4) live = wb_live(), before = wb_plan_status();
            wb_scope_open();
            if (n < 2) {
                (void)wb_withgradient(loss, model, &batch, NULL, &gradients);
                assert_int_equal(wb_update(descent, model, gradients), WB_OK);
            } else {
                assert_non_null(wb_train_step(loss, model, &batch, NULL, descent));
            }
            assert_int_equal(wb_scope_close(), WB_OK);
        }
        if (!getenv("WEBER_EAGER")) {
            assert_int_equal(wb_plan_status().evaluations - before.evaluations, 5);
            assert_int_equal(wb_plan_status().missed_donations, before.missed_donations);
        }
        assert_int_equal(wb_live().arrays, live.arrays);
        assert_int_equal(wb_live().buffers, live.buffers);
        wb_free(descent), wb_free(model);
    }
}

/* Within the scope, too: a callback may save the model, and a test follows a step. */
static void whoever_asks_gets_what_was_just_taken_in(void **state) {
    (void)state;
    wb_layer *norm = wb_batchnorm(2, .dtype = WB_F64);
    wb_train_mode(norm);
    (void)wb_apply(norm, one_to_six());
    wb_layer *copy = wb_clone(norm);
    assert_values(wb_get(copy, "μ"), 1e-12, 0.3, 0.4);
    (void)wb_apply(norm, one_to_six());
    wb_set(norm, "μ", wb_cast(wb_vector(7, 8), WB_F64));
    assert_int_equal(wb_scope_open(), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(wb_get(norm, "μ"), 0, 7, 8);
    assert_values(wb_get(norm, "σ²"), 1e-12, 0.9 * 1.3 + 0.1 * 4, 0.9 * 1.3 + 0.1 * 4);
    wb_free(copy), wb_free(norm);
}

static void the_running_ones_keep_their_type(void **state) {
    (void)state;
    wb_layer *norm = wb_batchnorm(2, .given_gamma = wb_ones(WB_F64, 2));
    wb_train_mode(norm);
    assert_non_null(wb_apply(norm, one_to_six()));
    assert_int_equal(wb_dtype_of(wb_get(norm, "μ")), WB_F32);
    assert_values(wb_get(norm, "σ²"), 1e-6, 1.3, 1.3);
    wb_free(norm);
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_flatten(), wb_batchnorm(5));
    assert_null(wb_apply(model, wb_ones(WB_F32, 4, 3)));
    assert_error(WB_ERROR_SHAPE, "BatchNorm(5), layer 2 of Chain: the last dimension but "
                                 "one must be the 5 channels, got (4, 3)");
    wb_layer *shared = wb_share(model);
    wb_train_mode(shared);
    assert_null(wb_apply(shared, wb_ones(WB_F32, 5, 3)));
    assert_error(WB_ERROR_ARGUMENT, "a shared model is read-only");
    wb_free(shared), wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(training_takes_the_batch_and_moves_the_running_ones),
        TEST(test_mode_takes_the_running_ones),
        TEST(one_number_for_each_channel_is_no_batch),
        TEST(what_is_trained),
        TEST(channels_last_but_one_in_any_number_of_dimensions),
        TEST(settings),
        TEST(a_training_leaves_the_statistics_of_the_data),
        TEST(a_batch_that_is_not_finite_leaves_the_running_ones),
        TEST(a_step_is_one_plan_that_leaves_nothing_behind),
        TEST(whoever_asks_gets_what_was_just_taken_in),
        TEST(the_running_ones_keep_their_type),
        TEST(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
