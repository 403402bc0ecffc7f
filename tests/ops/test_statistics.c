/* Deviations, norms, dot products, any and all. */
#include "support/support.h"

#define INF ((double)INFINITY)

static void deviations(void **state) {
    (void)state;
    wb_array *x = wb_matrix(2, {2, 1}, {4, 1}, {6, 1}); /* (3, 2) */
    assert_value(wb_std(wb_vector(2, 4, 4, 4, 5, 5, 7, 9), false), 2, 1e-6);
    assert_values(wb_std_dims(x, true, 0), 1e-6, 2, 0);
    assert_values(wb_std_dims(x, false, 1), 1e-6, 0.5, 1.5, 2.5);
    assert_sizes(wb_std_dims(x, true, 0), 1, 2);
    assert_int_equal(wb_ndim(wb_std(x, true)), 0);
    wb_array *g[1];
    assert_int_equal(wb_gradient_of(wb_sum(wb_std_dims(x, true, 0)), 1, &x, g), WB_OK);
    assert_values(g[0], 1e-6, -0.5, 0, 0.5, 0, 0, 0); /* none of equal numbers */
    assert_value(wb_std(wb_vector(1, NAN), true), (double)NAN, 0);
}

static const struct norm_row {
    const char *name;
    double p, y;
} norms[] = {{"the norm of order 2 is a length", 2, 13},
             {"that of order 1 is a sum of sizes", 1, 19},
             {"that of order 3", 3, 12.20705495},
             {"that of order 1/2", 0.5, 51.78460969},
             {"that of order -1", -1, 0},
             {"that of order infinity is the largest size", INF, 12},
             {"that of order minus infinity is the smallest", -INF, 0},
             {"that of order 0 counts", 0, 3}};

static void norm_is(void **state) {
    const struct norm_row *row = *state;
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_I32};
    wb_array *x = wb_vector(3, -4, 0, 12), *twice = wb_stack(1, x, wb_zeros(WB_F32, 4));
    for (int k = 0; k < 4; k++) {
        wb_array *y = wb_norm(wb_cast(x, types[k]), row->p);
        assert_value(y, row->y, k == 2 ? 1e-3 : 1e-6);
        assert_int_equal(wb_dtype_of(y), k == 3 ? WB_F32 : types[k]);
    }
    assert_values(wb_norm_dims(twice, row->p, 0), 1e-6, row->y, 0);
    assert_sizes(wb_norm_dims(twice, row->p, 0), 1, 2);
    assert_value(wb_norm(wb_zeros(WB_F32, 0), row->p), 0, 0);
    assert_value(wb_norm(wb_full(WB_F16, 300, 4), 2), 600, 1e-3); /* whose squares are no f16 */
    wb_array *g[1];
    assert_int_equal(wb_gradient_of(wb_sum(wb_norm_dims(twice, row->p, 0)), 1, &twice, g), WB_OK);
    if (row->p == 0) return; /* it does not depend on the numbers */
    for (int i = 2; i < 8 && isfinite(row->p); i++)
        if (i != 3) assert_true(wb_at(g[0], i % 4, i / 4) == 0);
}

/* Of (s, -s / 2): s times the norm of (1, -1/2), and its gradient. (torch: linalg.vector_norm) */
static const struct far_row {
    const char *name;
    double p, n, g[2];
} far[] = {{"far from 1, the norm of order 3", 3, 1.0400419115, {.9244816992, -.2311204248}},
           {"far from 1, that of order 50", 50, 1.0, {1, 0}},
           {"far from 1, that of order 1e10", 1e10, 1.0, {1, 0}},
           {"far from 1, that of order 1e300", 1e300, 1.0, {1, 0}},
           {"far from 1, that of order -2", -2, .4472135955, {.0894427191, -.7155417528}},
           {"far from 1, that of order -50", -50, .5, {0, -1}},
           {"far from 1, that of order -1e300", -1e300, .5, {0, -1}},
           {"far from 1, that of order 1/2", .5, 2.9142135624, {1.7071067812, -2.4142135624}}};

static void norm_is_scaled(void **state) {
    const struct far_row *row = *state;
    static const double scales[] = {1, 1e-39, 2e-38, 1e38, 1e-310, 1e300};
    for (int i = 0; i < 6; i++) {
        const bool fits_f32 = i < 4;
        if (!is_computed_by_cpu() && i > 0) continue; /* whose f32 has denormals, too */
        const double s = scales[i];
        wb_array *x = wb_vector_of(WB_F64, s, -s / 2), *g;
        if (fits_f32) x = wb_cast(x, WB_F32);
        wb_array *n = wb_norm_dims(x, row->p, 0);
        assert_int_equal(wb_gradient_of(wb_sum(n), 1, &x, &g), WB_OK);
        const double digits = s < 1e-38 ? 1e-5 : 1e-6;
        assert_true(fabs(wb_item(wb_cast(n, WB_F64)) / s - row->n) < digits * row->n);
        assert_values(g, 1e-5, row->g[0], row->g[1]);
    }
    const bool is_largest = row->p > 0;
    assert_value(wb_norm(wb_vector(1, INFINITY), row->p), is_largest ? INF : 1, 0);
    assert_value(wb_norm(wb_vector(1, NAN), row->p), (double)NAN, 0);
    assert_value(wb_norm(wb_vector(0, 1), row->p), is_largest, 0);
}

static void the_largest_two_share_the_gradient(void **state) {
    (void)state;
    wb_array *x = wb_vector(3, -3, 1), *g;
    for (double p = 1e6; p <= 1e9; p *= 10) {
        assert_int_equal(wb_gradient_of(wb_norm(x, p), 1, &x, &g), WB_OK);
        assert_values(g, 1e-5, .5, -.5, 0);
    }
}

static wb_array *norm_of_order_100(void *unused, int count, wb_array *const *x) {
    (void)unused, (void)count;
    return wb_norm(x[0], 100);
}

/* Which the ratios to the largest have, too: 40 is far from 1 for this order. */
static void norms_have_second_derivatives(void **state) {
    (void)state;
    if (widest() != WB_F64) skip();
    wb_array *x = wb_vector_of(WB_F64, 40, -39.5, 38);
    assert_int_equal(wb_gradient_check(norm_of_order_100, NULL, 1, &x, 2, 1e-4), WB_OK);
}

static void dot_products(void **state) {
    (void)state;
    assert_value(wb_dot(wb_vector(1, 2, 3), wb_vector(4, -5, 6)), 12, 0);
    assert_value(wb_dot(wb_ones(WB_F64, 2, 3), wb_full(WB_F32, 2, 2, 3)), 12, 0);
    assert_int_equal(wb_dtype_of(wb_dot(wb_ones(WB_I32, 2), wb_ones(WB_I32, 2))), WB_I64);
    assert_value(wb_dot(wb_zeros(WB_F32, 0), wb_zeros(WB_F32, 0)), 0, 0);
}

static void any_and_all(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {0, 0, 1}, {0, 2, NAN});
    assert_values(wb_any_dims(x, 0), 0, 0, 1, 1);
    assert_values(wb_all_dims(x, 0), 0, 0, 0, 1);
    assert_values(wb_any_dims(wb_gt(x, wb_number(1)), 1), 0, 0, 1);
    assert_values(wb_all_dims(wb_lt(x, wb_number(1)), 1), 0, 0, 0);
    assert_value(wb_any(x), 1, 0);
    assert_value(wb_all(x), 0, 0);
    assert_int_equal(wb_dtype_of(wb_any(x)), WB_BOOL);
    assert_int_equal(wb_dtype_of(wb_all_dims(x, 1)), WB_BOOL);
    assert_value(wb_any(wb_zeros(WB_I32, 0)), 0, 0);
    assert_value(wb_all(wb_zeros(WB_I32, 0)), 1, 0);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {TEST(deviations), TEST(dot_products), TEST(any_and_all),
                                        TEST(the_largest_two_share_the_gradient),
                                        TEST(norms_have_second_derivatives)};
    ADD_ROWS(&tests, norms, norm_is);
    ADD_ROWS(&tests, far, norm_is_scaled);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_statistics", &tests, NULL, NULL);
}
