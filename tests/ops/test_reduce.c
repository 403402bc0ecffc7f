/* Sums, largest, means, variances, positions: all dimensions, all layouts, nothing, NaN, ties,
 * accuracy; onecold of J10. */
#include "support/naive.h"
#include "support/support.h"

static void sizes_of_1_stay(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3, 4);
    assert_sizes(wb_sum_dims(x, 0, 2), 1, 3, 1);
    assert_sizes(wb_sum_dims(x, -1), 2, 3, 1);
    assert_int_equal(wb_ndim(wb_sum(x)), 0);
    assert_values(wb_sum_dims(x, 0, 2), 0, 8, 8, 8);
    assert_values(wb_sum_dims(x, 1, 1), 0, 3, 3, 3, 3, 3, 3, 3, 3);
    assert_null(wb_sum_dims(x, 3));
    assert_error(WB_ERROR_ARGUMENT, "sum: dimension 3 is outside an array of 3 dimensions");
    assert_null(wb_sum_dims(x, (int64_t)1 << 32));
    assert_true(wb_failed());
    wb_clear_error();
}

static void nothing(void **state) {
    (void)state;
    wb_array *x = wb_zeros(WB_F32, 0, 3);
    assert_value(wb_sum(x), 0, 0);
    assert_values(wb_sum_dims(x, 0), 0, 0, 0, 0);
    assert_int_equal(wb_count(wb_sum_dims(x, 1)), 0);
    assert_true(isnan(wb_item(wb_mean(x))));
    assert_null(wb_maximum(x));
    assert_error(WB_ERROR_SHAPE, "maximum: x must have at least one element, got (0, 3)");
    assert_null(wb_minimum_dims(x, 0));
    assert_error(WB_ERROR_SHAPE, "x must have at least one element, got (0, 3)");
    assert_int_equal(wb_count(wb_maximum_dims(x, 1)), 0);
    assert_null(wb_argmax(x, 0));
    assert_error(WB_ERROR_SHAPE, "argmax: x must have at least one element, got (0, 3)");
}

static void positions(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 2, 20, 7, 9, 1, 5, 6, 10, 14), 4, 3);
    assert_values(wb_argmax(x, 1), 0, 1, 1, 2,
                  2); /* J10: [3 1 4] along columns of its transpose, from 1 */
    assert_values(wb_argmax(wb_reshape(wb_vector(1, 2, 3, 2, 20, 7, 9, 1, 5, 6, 10, 14), 4, 3), 0),
                  0, 2, 0, 3);
    assert_values(wb_argmax(wb_vector(1, 2, 5, 3), 0), 0, 2);
    assert_values(wb_argmax(wb_vector(4, 4, 4), 0), 0, 0);
    assert_values(wb_argmax(wb_vector(1, NAN, 9, NAN), 0), 0, 1);
    assert_values(wb_argmax(wb_vector(-INFINITY, -INFINITY), 0), 0, 0);
    const uint8_t bits[3] = {0, 1, 1};
    assert_values(wb_argmax(wb_from(WB_BOOL, bits, 3), 0), 0, 1);
    assert_int_equal(wb_dtype_of(wb_argmax(x, 0)), WB_I64);
}

static void positions_of_the_smallest(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {5, 1, 3}, {2, 1, 4});
    assert_values(wb_argmin(x, 0), 0, 1, 0, 0);
    assert_values(wb_argmin(x, -1), 0, 1, 1);
    assert_values(wb_argmin(wb_vector(1, NAN, 0, NAN), 0), 0, 1);
    assert_values(wb_argmin(wb_vector_of(WB_U8, 3, 0, 255), 0), 0, 1);
    assert_values(wb_argmin(wb_vector_of(WB_I64, INT64_MAX, INT64_MIN, 0), 0), 0, 1);
    assert_values(wb_argmin(wb_vector_of(WB_BOOL, 1, 0, 0), 0), 0, 1);
    assert_int_equal(wb_dtype_of(wb_argmin(x, 0)), WB_I64);
    assert_null(wb_argmin(x, 2));
    assert_error(WB_ERROR_ARGUMENT, "argmin: dimension 2 is outside an array of 2 dimensions");
}

static void nan_is_kept(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, NAN, 3);
    assert_true(isnan(wb_item(wb_maximum(x))) && isnan(wb_item(wb_minimum(x))) &&
                isnan(wb_item(wb_sum(x))));
    static float many[5000];
    for (int place = 0; place < 5000; place += 613) {
        memset(many, 0, sizeof many);
        many[place] = NAN;
        assert_true(isnan(wb_item(wb_maximum(wb_from(WB_F32, many, 5000)))));
    }
    assert_value(wb_maximum(wb_from(WB_I32, ((const int32_t[]){-7, -3, -9}), 3)), -3, 0);
    assert_value(wb_minimum(wb_from(WB_I64, ((const int64_t[]){7, INT64_C(-9000000000), 9}), 3)),
                 -9e9, 0);
    assert_value(wb_minimum(wb_from(WB_U8, ((const uint8_t[]){7, 3, 9}), 3)), 3, 0);
    assert_value(wb_minimum(wb_from(WB_U8, ((const uint8_t[]){7, 0, 9}), 3)), 0, 0);
    assert_value(wb_minimum(wb_from(WB_BOOL, ((const uint8_t[]){1, 0}), 2)), 0, 0);
    assert_true(wb_item(wb_maximum(wb_vector(-INFINITY, -INFINITY))) == -(double)INFINITY);
}

static void the_least_integers_are_the_smallest(void **state) { /* -x would wrap there */
    (void)state;
    const int64_t wide[3] = {INT64_MAX, INT64_MIN, 0};
    int64_t least = 0;
    assert_int_equal(wb_read(wb_minimum(wb_from(WB_I64, wide, 3)), &least, sizeof least), WB_OK);
    assert_true(least == INT64_MIN);
    assert_value(wb_minimum(wb_from(WB_I32, ((const int32_t[]){5, INT32_MIN, 7}), 3)), INT32_MIN,
                 0);
    assert_int_equal(wb_dtype_of(wb_minimum(wb_ones(WB_BOOL, 2))), WB_BOOL);
    assert_int_equal(wb_dtype_of(wb_minimum(wb_ones(WB_U8, 2))), WB_U8);
}

static void equals_share_the_gradient(void **state) {
    (void)state;
    wb_array *x = wb_vector(3, 1, 3, 2), *g[1];
    assert_int_equal(wb_gradient_of(wb_maximum(x), 1, &x, g), WB_OK);
    assert_values(g[0], 0, .5, 0, .5, 0);
    assert_int_equal(wb_gradient_of(wb_minimum(x), 1, &x, g), WB_OK);
    assert_values(g[0], 0, 0, 1, 0, 0);
    /* the largest of something computed: equal numbers are equal in whatever program they are
     * computed */
    for (int read = 0; read < 2; read++) {
        wb_array *y = wb_add(wb_mul(wb_exp(x), wb_sin(x)), wb_mul_number(x, 0.1)),
                 *largest = wb_maximum(y);
        if (read) (void)wb_item(largest);
        assert_int_equal(wb_gradient_of(largest, 1, &x, g), WB_OK);
        naive_table *t = naive_new();
        assert_as_naive(t, g[0], 1e-4, "the gradient of the largest");
        naive_free(t);
    }
}

static void means_and_variances(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(90, 100, 110, 130, 70), 5);
    assert_value(wb_mean(x), 100, 0);
    assert_value(wb_var(x, false), 400, 1e-6);
    assert_value(wb_var(x, true), 500, 1e-6);
    assert_values(wb_normalise(x, 0, 0), 1e-6, -.5, 0, .5, 1.5, -1.5);
    assert_value(wb_var(wb_add_number(x, 1e4), true), 500, 1e-4); /* two passes */
    assert_value(wb_var(wb_vector(3), true), NAN, 0);
    assert_value(wb_mean(wb_from(WB_I32, ((const int32_t[]){1, 2}), 2)), 1.5, 0);
}

static void long_sums_are_accurate(void **state) {
    (void)state;
    enum { N = 3000000 };
    assert_value(wb_sum(wb_full(WB_F32, 0.1, N)), N * (double)0.1f, 1e-6);
    assert_values(wb_sum_dims(wb_full(WB_F32, 0.1, 2, N / 2), 1), 5e-6, N / 2 * (double)0.1f,
                  N / 2 * (double)0.1f);
    assert_value(wb_mean(wb_add_number(wb_iota(WB_F32, 0, 1 << 20), 0.5)), 524288, 1e-6);
    assert_value(wb_sum(wb_iota(WB_I64, 0, N)), 0.5 * N * (N - 1.0), 0);
}

static void all_layouts_and_dimensions(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int i = 0; i < cases_of(150); i++) {
        const int ndim = 1 + (int)random_below(&r, 4);
        int64_t sizes[4], order[4], dims[4];
        int count = 0;
        for (int d = 0; d < ndim; d++) {
            sizes[d] = 1 + random_below(&r, random_below(&r, 6) == 0 ? 70 : 6);
            order[d] = (d + i) % ndim;
            if (random_below(&r, 2)) dims[count++] = d;
        }
        const wb_dtype dtype = random_below(&r, 2) ? WB_F64 : WB_F32;
        wb_array *x = wb_permute_make(array_random(&r, dtype, -1, 1, ndim, sizes), ndim, order);
        if (i % 3 == 0) x = wb_flip(x, i % ndim);
        naive_table *t = naive_new();
        const double tolerance = dtype == WB_F64 ? 1e-12 : 2e-5;
        assert_as_naive(t, wb_sum_make(x, count, dims), tolerance, "a sum");
        assert_as_naive(t, wb_maximum_make(wb_mul(x, x), count, dims), tolerance, "a largest");
        assert_as_naive(t, wb_var_make(x, false, count, dims), tolerance, "a variance");
        assert_as_naive(t, wb_normalise_make(x, 0.01, count, dims), 10 * tolerance, "normalised");
        assert_as_naive(t, wb_argmax(x, i % ndim), 0, "a position");
        naive_free(t);
    }
}

/* A value that is wanted before and after a reduction over several tiles is computed twice, by
 * another register's leave. */
static void values_on_both_sides_of_a_reduction(void **state) {
    (void)state;
    test_random r = {test_seed()};
    wb_array *x = array_random(&r, WB_F64, -4, 4, 3, (const int64_t[]){2, 2, 3});
    wb_array *b = wb_ge(x, x), *c = wb_ge(b, x);
    wb_array *d = wb_div(wb_add(x, x), wb_add_number(wb_square(c), 0.5));
    wb_array *m = wb_mean_dims(d, 0, 2), *o = wb_add(m, wb_cast(b, WB_F64));
    naive_table *t = naive_new();
    assert_as_naive(t, o, 1e-6, "a mean and what it is made of");
    naive_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(sizes_of_1_stay),
                                       TEST(nothing),
                                       TEST(positions),
                                       TEST(positions_of_the_smallest),
                                       TEST(nan_is_kept),
                                       TEST(the_least_integers_are_the_smallest),
                                       TEST(equals_share_the_gradient),
                                       TEST(means_and_variances),
                                       TEST(long_sums_are_accurate),
                                       TEST(values_on_both_sides_of_a_reduction),
                                       TEST(all_layouts_and_dimensions)};
    return cmocka_run_group_tests_name("ops/test_reduce", tests, NULL, NULL);
}
