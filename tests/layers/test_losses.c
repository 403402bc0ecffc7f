/* src/layers/losses.c */
#include <math.h>
#include <string.h>

#include <weber/gradient.h>
#include <weber/losses.h>
#include <weber/ops.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *f64(int64_t count, const double *values) { return wb_from(WB_F64, values, count); }
#define F64(...)                                                                                   \
    f64((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),                         \
        (const double[]){__VA_ARGS__})

static void differences(void **state) { /* B1, B22 */
    (void)state;
    wb_array *p = F64(.9, .1, .1, .9), *y = F64(1, 1, 0, 0);
    assert_value(wb_mse(p, y), 0.41, 1e-12);
    assert_value(wb_mae(p, y), 0.5, 1e-12);
    wb_array *q = wb_vector(1.1f, 1.9f, 3.1f), *z = wb_vector(1, 2, 3);
    assert_value(wb_mae(q, z), 0.1, 1e-5);
    assert_value(wb_mse(q, z), 0.01, 1e-5);
}

static void two_classes(void **state) { /* B3, B4 */
    (void)state;
    const int32_t classes[] = {1, 1, 0, 0};
    wb_array *p = wb_reshape(F64(.1, .9, .9, .1, .9, .1, .1, .9), 2, 4),
             *labels = wb_from(WB_I32, classes, 4);
    wb_array *hot = wb_eq(wb_iota(WB_I32, 0, 2, 4), wb_unsqueeze(labels, 0));
    assert_value(wb_crossentropy(p, hot), 1.203972804325936, 1e-12);
    assert_value(wb_crossentropy(p, labels), 1.203972804325936, 1e-12);
    const double v = log(.1 / .9);
    wb_array *logits = wb_reshape(F64(v, 0, 0, v, 0, v, v, 0), 2, 4);
    assert_value(wb_logitcrossentropy(logits, hot), 1.203972804325936, 1e-12);
    assert_value(wb_logitcrossentropy(logits, wb_cast(hot, WB_F64)), 1.203972804325936, 1e-12);
    assert_value(wb_logitcrossentropy(logits, labels), 1.203972804325936, 1e-12);
    assert_value(wb_logitcrossentropy(logits, wb_cast(labels, WB_U8)), 1.203972804325936, 1e-12);
    assert_value(wb_accuracy(logits, labels), 0.5, 1e-6);
    assert_value(wb_accuracy(p, hot), 0.5, 1e-6);
}

static void nothing_times_log_of_nothing(void **state) { /* B5 */
    (void)state;
    wb_array *p = F64(.1, 0, .9), *q = F64(.1, .9);
    assert_value(wb_crossentropy(p, p), wb_item(wb_crossentropy(q, q)), 1e-12);
    wb_array *masked = F64(0, -INFINITY);
    assert_value(wb_logitcrossentropy(masked, F64(1, 0)), 0, 0);
}

static void binary(void **state) { /* B19 */
    (void)state;
    const double wanted = -(log(.1) + log(.2) + log(.9)) / 3;
    wb_array *p = F64(.1, .2, .9);
    assert_value(wb_binarycrossentropy(p, wb_number(1)), wanted, 1e-9);
    assert_value(wb_binarycrossentropy(p, wb_ones(WB_F64, 3)), wanted, 1e-9);
    wb_array *logit = wb_log(wb_div(p, wb_sub(wb_number(1), p)));
    assert_value(wb_logitbinarycrossentropy(logit, wb_ones(WB_F64, 3)), wanted, 1e-9);
    assert_value(wb_logitbinarycrossentropy(logit, wb_zeros(WB_F64, 3)),
                 -(log(.9) + log(.8) + log(.1)) / 3, 1e-9);
}

typedef wb_array *loss_fn(wb_array *p, wb_array *y);
static loss_fn *const all[] = {wb_mse,
                               wb_mae,
                               wb_crossentropy,
                               wb_logitcrossentropy,
                               wb_binarycrossentropy,
                               wb_logitbinarycrossentropy};
enum { LOSSES = sizeof all / sizeof *all };

static void the_type_is_that_of_the_prediction(void **state) { /* B20 */
    (void)state;
    const wb_dtype types[] = {WB_F32, WB_F64};
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < LOSSES; i++) {
            wb_array *p = wb_full(types[t], 0.25, 3, 2), *g;
            wb_array *l = all[i](p, wb_full(WB_F64, 0.5, 3, 2));
            assert_int_equal(wb_dtype_of(l), types[t]);
            assert_int_equal(wb_ndim(l), 0);
            assert_int_equal(wb_gradient_of(l, 1, &p, &g), WB_OK);
            assert_int_equal(wb_dtype_of(g), types[t]);
            assert_true(isfinite(wb_item(wb_sum(g))));
        }
}

static void nothing_is_broadcast(void **state) { /* B21 */
    (void)state;
    for (int i = 0; i < LOSSES; i++) {
        assert_null(all[i](wb_ones(WB_F32, 3, 1), wb_ones(WB_F32, 3)));
        assert_error(WB_ERROR_SHAPE, "the prediction has sizes (3, 1), the target ");
    }
    assert_null(wb_mse(wb_ones(WB_F32, 3, 1), wb_ones(WB_F32, 3)));
    assert_error(WB_ERROR_SHAPE,
                 "mse: the prediction has sizes (3, 1), the target (3); losses do not broadcast");
}

static void labels_out_of_range(void **state) {
    (void)state;
    const int64_t labels[] = {0, 2, 10, -1};
    wb_array *y = wb_from(WB_I64, labels, 4), *p = wb_ones(WB_F32, 10, 4);
    wb_array *l = wb_logitcrossentropy(p, y);
    if (is_on_host()) { /* labels elsewhere are not read for a check */
        assert_null(l);
        assert_error(
            WB_ERROR_ARGUMENT,
            "logitcrossentropy: label 10 at position 2 is out of range: 10 classes, 0 to 9");
    } else
        assert_true(isnan(wb_item(l)));
    l = wb_logitcrossentropy(p, wb_add(y, y)); /* pending: seen when computed */
    assert_true(isnan(wb_item(l)));
    wb_clear_error(); /* with WEBER_EAGER=1 nothing is pending: an error at the call, too */
}

static void pending_labels_are_as_good(void **state) {
    (void)state;
    const int64_t good[] = {0, 2, 4, 1};
    wb_array *z = wb_from(WB_I64, good, 4), *p = wb_ones(WB_F32, 10, 4);
    assert_value(wb_logitcrossentropy(p, wb_add(z, z)), log(10), 1e-5);
}

static void bad_arguments(void **state) {
    (void)state;
    assert_null(wb_mse(wb_ones(WB_F32, 3, 0), wb_ones(WB_F32, 3, 0)));
    assert_error(WB_ERROR_SHAPE, "mse: the batch is empty: the prediction has sizes (3, 0)");
    assert_null(wb_mse(wb_ones(WB_I32, 3), wb_ones(WB_I32, 3)));
    assert_error(WB_ERROR_DTYPE, "mse: the prediction (3) is i32");
    assert_null(wb_mae(NULL, wb_ones(WB_F32, 3)));
    assert_error(WB_ERROR_ARGUMENT, "mae: the prediction is NULL");
    assert_null(wb_crossentropy(wb_ones(WB_F32, 3), NULL));
    assert_error(WB_ERROR_ARGUMENT, "crossentropy: the target is NULL");
    assert_null(wb_accuracy(wb_ones(WB_F32, 3, 2), wb_ones(WB_I32, 3)));
    assert_error(WB_ERROR_SHAPE,
                 "accuracy: the prediction has sizes (3, 2), the target i32 of (3)");
}

static void sequences_of_classes(void **state) {
    (void)state;
    const int32_t labels[] = {0, 1, 2, 2, 1, 0};
    wb_array *p = wb_normal(WB_F64, 3, 2, 3), *y = wb_from(WB_I32, labels, 2, 3);
    wb_array *flat = wb_logitcrossentropy(wb_reshape(p, 3, 6), wb_reshape(y, 6));
    assert_value(wb_logitcrossentropy(p, y), wb_item(flat), 1e-12);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(differences),
        TEST(two_classes),
        TEST(nothing_times_log_of_nothing),
        TEST(binary),
        TEST(the_type_is_that_of_the_prediction),
        TEST(nothing_is_broadcast),
        TEST(labels_out_of_range),
        TEST(pending_labels_are_as_good),
        TEST(bad_arguments),
        TEST(sequences_of_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
