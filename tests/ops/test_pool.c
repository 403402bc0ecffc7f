/* Pools, unfold and fold: cases E19, E20, E22, ties, and random ones against the naive
 * evaluator. */
#include <weber/gradient.h>

#include "support/naive.h"
#include "support/support.h"

static wb_array *counting(int64_t w, int64_t h) {
    return wb_reshape(wb_add_number(wb_iota(WB_F64, 0, w * h), 1), w, h, 1, 1);
}
static wb_array *line(int64_t n) {
    return wb_reshape(wb_add_number(wb_iota(WB_F64, 0, n), 1), n, 1, 1);
}

static wb_array *gradient(wb_array *y, wb_array *x) {
    wb_array *g[1];
    assert_int_equal(wb_pullback(y, wb_stop_gradient(y), 1, &x, g), WB_OK);
    return g[0];
}

static void largest_of_windows(void **state) { /* E19 */
    (void)state;
    wb_array *x = counting(5, 4), *y = wb_maxpool_op(x, .kernel = {2, 2});
    assert_values(y, 0, 7, 9, 17, 19);
    assert_values(gradient(y, x), 0, 0, 0, 0, 0, 0, 0, 7, 0, 9, 0, 0, 0, 0, 0, 0, 0, 17, 0, 19, 0);
    assert_values(wb_maxpool_op(x, .kernel = {2, 2}, .stride = {1, 1}), 0, 7, 8, 9, 10, 12, 13, 14,
                  15, 17, 18, 19, 20);
    assert_values(wb_maxpool_op(x, .kernel = {2, 2}, .pad = {1, 1}), 0, 1, 3, 5, 11, 13, 15, 16, 18,
                  20);
}

static void largest_on_a_line(void **state) { /* E20 */
    (void)state;
    wb_array *x = line(5), *y = wb_maxpool_op(x, .kernel = {2});
    assert_values(y, 0, 2, 4);
    assert_values(gradient(y, x), 0, 0, 2, 0, 4, 0);
    y = wb_maxpool_op(x, .kernel = {2}, .stride = {1});
    assert_values(y, 0, 2, 3, 4, 5);
    assert_values(gradient(y, x), 0, 0, 2, 3, 4, 5);
    y = wb_maxpool_op(x, .kernel = {2}, .pad = {1});
    assert_values(y, 0, 1, 3, 5);
    assert_values(gradient(y, x), 0, 1, 0, 3, 0, 5);
}

static void mean_of_windows(void **state) { /* E22 */
    (void)state;
    wb_array *x = counting(5, 4), *y = wb_meanpool_op(x, .kernel = {2, 2});
    assert_values(y, 1e-12, 4, 6, 14, 16);
    assert_values(gradient(y, x), 1e-12, 1, 1, 1.5, 1.5, 0, 1, 1, 1.5, 1.5, 0, 3.5, 3.5, 4, 4, 0,
                  3.5, 3.5, 4, 4, 0);
    assert_values(wb_meanpool_op(x, .kernel = {2, 2}, .stride = {1, 1}), 1e-12, 4, 5, 6, 7, 9, 10,
                  11, 12, 14, 15, 16, 17);
    assert_values(wb_meanpool_op(x, .kernel = {2, 2}, .pad = {1, 1}), 1e-12, .25, 1.25, 2.25, 4.25,
                  10, 12, 4, 8.75, 9.75);
}

static void the_first_of_equals_gets_the_gradient(void **state) {
    (void)state;
    wb_array *x = wb_full(WB_F32, 3, 4, 2, 1, 1), *y = wb_maxpool_op(x, .kernel = {2, 2}), *g[1];
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &x, g), WB_OK);
    assert_values(g[0], 0, 1, 0, 1, 0, 0, 0, 0, 0);
}

static void negative_numbers_beat_the_padding(void **state) {
    (void)state;
    wb_array *x = wb_full(WB_F32, -5, 3, 1, 1);
    assert_values(wb_maxpool_op(x, .kernel = {3}, .stride = {1}, .pad = {1}), 0, -5, -5, -5);
    assert_true(wb_item(wb_maxpool_op(wb_full(WB_F32, -(double)INFINITY, 2, 1, 1),
                                      .kernel = {2})) == -(double)INFINITY);
}

static void nan_is_the_largest(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(1, NAN, 3, 4, 5, 6), 6, 1, 1);
    wb_array *y = wb_maxpool_op(x, .kernel = {3});
    assert_true(isnan(wb_at(y, 0, 0, 0)) && wb_at(y, 1, 0, 0) == 6);
}

/* The same for a later look: the result was read before the gradient was asked for, once and
 * twice. */
static void gradients_after_reading(void **state) {
    (void)state;
    wb_array *x = wb_exp(wb_mul_number(counting(6, 4), 0.1)),
             *y = wb_maxpool_op(x, .kernel = {2, 2}), *g[1], *h[1];
    assert_int_equal(wb_eval(y), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(y)), 1, &x, g), WB_OK);
    assert_int_equal(wb_eval(g[0]), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(wb_mul(y, wb_square(y))), 1, &x, h), WB_OK);
    naive_table *t = naive_new();
    assert_as_naive(t, g[0], 1e-12, "the first gradient");
    assert_as_naive(t, h[0], 1e-12, "the second gradient");
    naive_free(t);
}

static void random_pools(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int i = 0; i < cases_of(100); i++) {
        const int spatial = 1 + (int)random_below(&r, 3), ndim = spatial + 2;
        int64_t x[5];
        wb_window_desc desc = {.start_ = 0};
        for (int d = 0; d < spatial; d++) {
            desc.kernel[d] = 1 + random_below(&r, 3);
            desc.stride[d] = d > 0 && desc.stride[d - 1] == 0 ? 0 : random_below(&r, 4);
            desc.pad[d] = padding(random_below(&r, desc.kernel[d]));
            desc.pad_more[d] = random_below(&r, 2) && desc.pad[d] != WB_NONE_ ? -1 : 0;
            x[d] = desc.kernel[d] + random_below(&r, 5);
        }
        x[spatial] = 1 + random_below(&r, 3), x[spatial + 1] = random_below(&r, 3);
        const wb_dtype dtype = random_below(&r, 2) ? WB_F32 : WB_F64;
        wb_array *a = array_random(&r, dtype, -1, 1, ndim, x), *g[1];
        if (random_below(&r, 3) == 0) a = wb_flip(a, (int)random_below(&r, ndim));
        wb_array *made[3] = {wb_maxpool_op_make(a, desc), wb_meanpool_op_make(a, desc),
                             wb_unfold_make(a, desc)};
        for (int k = 0; k < 3; k++) {
            if (!made[k]) fail_msg("%s", wb_error_message());
            naive_table *t = naive_new();
            const double tolerance = dtype == WB_F32 ? 1e-5 : 1e-12;
            assert_as_naive(t, made[k], tolerance, "a pool");
            assert_int_equal(wb_gradient_of(wb_sum(wb_square(made[k])), 1, &a, g), WB_OK);
            assert_as_naive(t, g[0], tolerance, "its gradient");
            naive_free(t);
        }
    }
}

/* Unfolding and multiplying is convolving. */
static void unfold_is_half_a_convolution(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int flip = 0; flip < 2; flip++) {
        const int64_t x_sizes[4] = {6, 5, 3, 2}, w_sizes[4] = {3, 2, 3, 4};
        wb_array *x = array_random(&r, WB_F64, -1, 1, 4, x_sizes),
                 *w = array_random(&r, WB_F64, -1, 1, 4, w_sizes);
        wb_array *columns =
            wb_unfold(x, .kernel = {3, 2}, .pad = WB_EACH(1, 0), .cross_correlation = flip != 0);
        wb_array *product = wb_reshape(wb_matmul(columns, wb_reshape(w, 18, 4)), 6, 4, 4, 2);
        wb_array *y = wb_conv_op(x, w, .pad = WB_EACH(1, 0), .cross_correlation = flip != 0);
        assert_true(wb_approx(product, y, 1e-12, 1e-12, NULL, 0));
        wb_array *back = wb_fold_make(columns, 4, x_sizes,
                                      (wb_window_desc){.kernel = {3, 2},
                                                       .pad = WB_EACH(1, 0),
                                                       .cross_correlation = flip != 0});
        assert_true(wb_at(back, 2, 0, 0, 0) == 3 * wb_at(x, 2, 0, 0, 0));
    }
}

static wb_array *pooled(void *p, int count, wb_array *const *arrays) {
    (void)count;
    return wb_square(
        wb_lppool_op(arrays[0], *(double *)p, .kernel = {3}, .stride = {2}, .pad = {1}));
}

static void norms_of_windows(void **state) { /* PyTorch 1.13: lp_pool1d */
    (void)state;
    wb_array *x = line(4), *y = wb_lppool_op(x, 2, .kernel = {2});
    assert_values(y, 1e-9, sqrt(5), 5);
    assert_values(wb_lppool_op(x, 3, .kernel = {3}, .stride = {1}), 1e-9, cbrt(36), cbrt(99));
    assert_values(wb_lppool_op(wb_neg(x), 1, .kernel = {2}), 1e-9, 3, 7);
    assert_values(wb_lppool_op(wb_neg(x), (double)INFINITY, .kernel = {2}), 0, 2, 4);
    assert_values(
        wb_lppool_op(counting(2, 2), 2, .kernel = {2, 2}, .pad = {1, 1}, .stride = {1, 1}), 1e-9, 1,
        sqrt(5), 2, sqrt(10), sqrt(30), sqrt(20), 3, 5, 4);
    y = wb_lppool_op(wb_full(WB_F16, 300, 4, 1, 1), 2, .kernel = {4}); /* 300^2 is no f16 */
    assert_int_equal(wb_dtype_of(y), WB_F16);
    assert_values(y, 0, 600);
    const double orders[] = {1, 2, 2.5, 3};
    for (int i = 0; i < 4; i++) {
        double p = orders[i];
        wb_array *random = wb_normal(WB_F64, 5, 2, 2);
        if (wb_gradient_check(pooled, &p, 1, &random, 2, 0) != WB_OK)
            fail_msg("%g: %s", p, wb_error_message());
        wb_array *zeros = wb_zeros(WB_F64, 4, 1, 1);
        assert_values(gradient(wb_add_number(wb_lppool_op(zeros, p, .kernel = {2}), 1), zeros), 0,
                      0, 0, 0, 0);
    }
    assert_null(wb_lppool_op(x, 0, .kernel = {2}));
    assert_error(WB_ERROR_ARGUMENT, "lppool: p must be above 0, got 0");
    assert_null(wb_lppool_op(x, 2, .kernel = {6}));
    assert_error(WB_ERROR_SHAPE, "lppool: the window covers 6 elements of dimension 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(largest_of_windows),
                                       TEST(largest_on_a_line),
                                       TEST(mean_of_windows),
                                       TEST(the_first_of_equals_gets_the_gradient),
                                       TEST(negative_numbers_beat_the_padding),
                                       TEST(nan_is_the_largest),
                                       TEST(gradients_after_reading),
                                       TEST(random_pools),
                                       TEST(unfold_is_half_a_convolution),
                                       TEST(norms_of_windows)};
    return cmocka_run_group_tests_name("ops/test_pool", tests, NULL, NULL);
}
