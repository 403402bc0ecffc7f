/* src/layers/dense.c */
#include <math.h>
#include <string.h>

#include <weber/layers.h>

#include "support/numbers.h"
#include "support/scoped.h"

static int warnings;
static void count_warning(void *context, wb_log_level level, const char *line) {
    (void)context, (void)line;
    if (level == WB_LOG_WARN) warnings++;
}

/* D5; first: the warning is said once */
static void another_type_is_converted_with_one_warning(void **state) {
    (void)state;
    wb_layer *dense = wb_dense(2, 3);
    warnings = 0;
    wb_log_to(count_warning, NULL);
    wb_array *y = wb_apply(dense, wb_ones(WB_F64, 2, 4));
    assert_int_equal(wb_dtype_of(y), WB_F32);
    assert_int_equal(warnings, 1);
    assert_int_equal(wb_dtype_of(wb_apply(dense, wb_ones(WB_I32, 2, 4))), WB_F32);
    wb_log_to(NULL, NULL);
    assert_int_equal(warnings, 1);
    wb_free(dense);
}

static void tanh_of_sums(void **state) { /* D1 */
    (void)state;
    wb_layer *dense =
        wb_dense(.given_weight = wb_ones(WB_F64, 2, 5), .activation = wb_tanh, .bias = false);
    wb_array *y = wb_apply(dense, wb_ones(WB_F64, 5));
    assert_sizes(y, 2);
    assert_values(y, 1e-12, 0.9999092042625951, 0.9999092042625951);
    wb_free(dense);
}

static void columns_are_a_batch(void **state) { /* D2 */
    (void)state;
    wb_layer *dense = wb_dense(10, 2, .init = wb_ones_init);
    wb_array *one = wb_ones(WB_F32, 10, 1);
    wb_array *y = wb_apply(dense, wb_concat(1, one, wb_mul_number(one, 2)));
    assert_sizes(y, 2, 2);
    assert_values(y, 1e-6, 10, 10, 20, 20);
    wb_free(dense);
}

static int64_t kernels_for(wb_layer *layer, wb_array *x, wb_array **y) {
    (void)wb_eval(x);
    *y = wb_apply(layer, x);
    const int64_t before = wb_plan_status().kernels;
    assert_int_equal(wb_eval(*y), WB_OK);
    return wb_plan_status().kernels - before;
}

static void further_dimensions_cost_no_kernel(void **state) {
    (void)state;
    wb_activation *const activations[] = {wb_gelu, wb_softmax};
    for (int i = 0; i < 2; i++) {
        wb_layer *dense = wb_dense(6, 5, activations[i]);
        wb_array *x = wb_normal(WB_F32, 6, 4, 3), *y, *flat;
        const int64_t kernels = kernels_for(dense, x, &y);
        assert_sizes(y, 5, 4, 3);
        assert_true(kernels <= kernels_for(dense, wb_reshape(x, 6, 12), &flat));
        assert_value(wb_sum(wb_ne(wb_reshape(y, 5, 12), flat)), 0, 0);
        wb_free(dense);
    }
}

static void starts_as_glorot_uniform_and_zeros(void **state) { /* D3 */
    (void)state;
    wb_layer *dense = wb_dense(10, 100);
    wb_array *weight = wb_get(dense, "weight"), *bias = wb_get(dense, "bias");
    assert_sizes(weight, 100, 10);
    assert_sizes(bias, 100);
    assert_value(wb_sum(wb_abs(bias)), 0, 0);
    const double largest = wb_item(wb_maximum(wb_abs(weight))), bound = sqrt(6.0 / 110);
    assert_true(largest <= bound * 1.000001 && largest > 0.9 * bound);
    assert_true(fabs(wb_item(wb_mean(weight))) < 0.05 * bound * 2);
    wb_free(dense);
}

static void wrong_features_name_the_layer(void **state) { /* D4 */
    (void)state;
    wb_layer *dense = wb_dense(10, 5);
    assert_null(wb_apply(dense, wb_ones(WB_F32, 1)));
    assert_error(WB_ERROR_SHAPE, "Dense(10 => 5): input has 1 features in (1), expected 10");
    assert_null(wb_apply(dense, wb_ones(WB_F32, 11)));
    assert_error(WB_ERROR_SHAPE, "Dense(10 => 5): input has 11 features in (11)");
    assert_null(wb_apply(dense, wb_scalar(WB_F32, 1)));
    assert_error(WB_ERROR_SHAPE, "without dimensions");
    assert_sizes(wb_apply(dense, wb_ones(WB_F32, 10, 2, 3, 4)), 5, 2, 3, 4);
    assert_sizes(wb_apply(dense, wb_ones(WB_F32, 10)), 5);
    wb_free(dense);
}

static void bad_makers_say_why(void **state) {
    (void)state;
    wb_layer *empty = wb_dense(.given_weight = wb_ones(WB_F32, 0, 3));
    assert_sizes(wb_apply(empty, wb_ones(WB_F32, 3, 2)), 0, 2);
    wb_free(empty);
    wb_layer *dense = wb_dense(3, 4);
    assert_null(wb_apply(dense, NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_apply: x is NULL");
    wb_free(dense);
}

static void the_weights_outlive_their_scope(void **state) {
    (void)state;
    wb_scope_open();
    wb_layer *dense = wb_dense(3, 4, wb_sigmoid, .dtype = WB_F64);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_dtype_of(wb_apply(dense, wb_ones(WB_F64, 3))), WB_F64);
    wb_free(dense);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(another_type_is_converted_with_one_warning),
        TEST(tanh_of_sums),
        TEST(columns_are_a_batch),
        TEST(further_dimensions_cost_no_kernel),
        TEST(starts_as_glorot_uniform_and_zeros),
        TEST(wrong_features_name_the_layer),
        TEST(bad_makers_say_why),
        TEST(the_weights_outlive_their_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
