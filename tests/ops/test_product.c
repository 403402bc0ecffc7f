/* Products and running products, with their derivatives at zeros. */
#include "support/support.h"

static void products(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, -6});
    assert_value(wb_prod(x), -720, 0);
    assert_values(wb_prod_dims(x, 0), 0, 4, 10, -18);
    assert_values(wb_prod_dims(x, -1), 0, 6, -120);
    assert_values(wb_prod_dims(x, 0, 1), 0, -720);
    assert_sizes(wb_prod_dims(x, 0, 1), 1, 1);
    assert_int_equal(wb_ndim(wb_prod(x)), 0);
    assert_value(wb_prod(wb_zeros(WB_F32, 0)), 1, 0);
    assert_values(wb_prod_dims(wb_zeros(WB_F32, 0, 2), 0), 0, 1, 1);
    assert_value(wb_prod(wb_vector_of(WB_U8, 200, 200)), 40000, 0);
    assert_int_equal(wb_dtype_of(wb_prod(wb_vector_of(WB_I32, 2, 3))), WB_I64);
    assert_value(wb_prod(wb_gt(x, wb_number(0))), 0, 0);
    assert_value(wb_prod(wb_scalar(WB_F32, 7)), 7, 0);
}

static void running_products(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, -6});
    assert_values(wb_cumprod(x, 1), 0, 1, 4, 2, 20, 6, -120);
    assert_values(wb_cumprod(x, 0), 0, 1, 4, 2, 10, 3, -18);
    assert_values(wb_cumprod(wb_vector_of(WB_U8, 1, 2, 3, 4, 5, 6), 0), 0, 1, 2, 6, 24, 120, 720);
    assert_values(wb_cumprod(wb_cast(wb_vector(1, 2, 3, 4), WB_F16), 0), 0, 1, 2, 6, 24);
    assert_values(wb_cumprod(wb_vector(2, 0, 3), 0), 0, 2, 0, 0);
    assert_int_equal(wb_count(wb_cumprod(wb_zeros(WB_F32, 0, 3), 0)), 0);
}

/* The last running product is the product, and both are what a loop gives. */
static void lengths_of_all_kinds(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int64_t n = 1; n < 70; n += cases_of(10) < 10 ? 11 : 1) {
        const int64_t sizes[3] = {2, n, 3};
        wb_array *x = array_random(&r, WB_F64, -1.5, 1.5, 3, sizes), *y = wb_cumprod(x, 1);
        double in[2 * 70 * 3], out[2 * 70 * 3];
        assert_int_equal(wb_read_f64(x, in, 6 * n), WB_OK);
        assert_int_equal(wb_read_f64(y, out, 6 * n), WB_OK);
        for (int64_t row = 0; row < 6; row++) {
            double product = 1;
            for (int64_t i = 0; i < n; i++) {
                const int64_t at = row % 2 + 2 * (i + n * (row / 2));
                product *= in[at];
                assert_true(is_near(out[at], product, 1e-13));
            }
        }
        char where[128];
        if (!wb_approx(wb_prod_dims(x, 1), wb_slice(y, 1, n - 1, n, 1), 1e-12, 1e-12, where,
                       sizeof where))
            fail_msg("the product of %lld: %s", (long long)n, where);
    }
}

/* d prod / d x_i is the product of the others. */
static void zeros_have_derivatives(void **state) {
    (void)state;
    wb_array *one = wb_vector(2, 0, 3, 5), *two = wb_vector(0, 4, 0), *g[1];
    assert_int_equal(wb_gradient_of(wb_prod(one), 1, &one, g), WB_OK);
    assert_values(g[0], 0, 0, 30, 0, 0);
    assert_int_equal(wb_gradient_of(wb_prod(two), 1, &two, g), WB_OK);
    assert_values(g[0], 0, 0, 0, 0);
    assert_int_equal(wb_gradient_of(wb_sum(wb_cumprod(one, 0)), 1, &one, g), WB_OK);
    assert_values(g[0], 0, 1, 2 + 6 + 30, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(products), TEST(running_products),
                                       TEST(lengths_of_all_kinds), TEST(zeros_have_derivatives)};
    return cmocka_run_group_tests_name("ops/test_product", tests, NULL, NULL);
}
