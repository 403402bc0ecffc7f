/* src/ops/scatter.c: the largest, the smallest, the product, against PyTorch's scatter_reduce and
 * plain loops. */
#include <weber/gradient.h>

#include "support/support.h"

typedef wb_array *scatter_fn(wb_array *base, wb_array *index, wb_array *updates, int dim);

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }
static double product(double a, double b) { return a * b; }

static struct row {
    const char *name;
    scatter_fn *scatter;
    double (*one)(double a, double b);
    /* PyTorch 1.13: of base (1, 5, 2, 7) with (5, 3, 9, -1, 5) at (1, 1, 3, 0, 1); gradients of
     * the sum weighted by 1, 2, 3, 4 */
    double wanted[4], base[4], updates[5];
} rows[] = {
    {"max", wb_scatter_max, larger, {1, 5, 2, 9}, {1, 2. / 3, 3, 0}, {2. / 3, 0, 4, 0, 2. / 3}},
    {"min", wb_scatter_min, smaller, {-1, 3, 2, 7}, {0, 0, 3, 4}, {0, 2, 0, 1, 0}},
    {"mul", wb_scatter_mul, product, {-1, 375, 2, 63}, {-1, 150, 3, 36}, {150, 250, 28, 1, 150}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void assert_near(const char *name, wb_array *y, const double *wanted, int64_t n) {
    char where[100] = "";
    if (!wb_approx(y, wb_from(WB_F64, wanted, n), 1e-6, 0, where, sizeof where))
        fail_msg("%s: %s %s", name, where, wb_error_message());
}

static void results_and_gradients_are_pytorchs(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        wb_array *base = wb_vector(1, 5, 2, 7), *u = wb_vector(5, 3, 9, -1, 5);
        wb_array *index = wb_vector_of(WB_I32, 1, 1, 3, 0, 1), *both[] = {base, u}, *g[2];
        wb_array *y = rows[i].scatter(base, index, u, 0);
        assert_near(rows[i].name, y, rows[i].wanted, 4);
        wb_array *l = wb_sum(wb_mul(y, wb_vector(1, 2, 3, 4)));
        assert_int_equal(wb_gradient_of(l, 2, both, g), WB_OK);
        assert_near(rows[i].name, g[0], rows[i].base, 4);
        assert_near(rows[i].name, g[1], rows[i].updates, 5);
    }
    wb_array *base = wb_vector(2, 0), *u = wb_vector(0, 3, 4, 5), *both[] = {base, u}, *g[2];
    wb_array *y = wb_scatter_mul(base, wb_vector_of(WB_I64, 0, 0, 1, 1), u, 0);
    assert_int_equal(wb_gradient_of(wb_sum(y), 2, both, g), WB_OK); /* right where numbers are 0 */
    assert_values(g[0], 0, 0, 20);
    assert_values(g[1], 0, 6, 0, 0, 0);
}

static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};

/* Of 1 and 2, so that products are exact in each type. */
static void one_case(const struct row *row, wb_dtype dtype, int64_t n, int64_t m) {
    double base[2 * 4 * 3], updates[2 * 6 * 3];
    int32_t index[6];
    uint32_t seed = (uint32_t)(n * 31 + m);
    for (int i = 0; i < 24; i++) base[i] = 1 + ((seed = seed * 1664525 + 1013904223) >> 31);
    for (int i = 0; i < 36; i++) updates[i] = 1 + ((seed = seed * 1664525 + 1013904223) >> 31);
    for (int i = 0; i < 6; i++)
        index[i] = (int32_t)((seed = seed * 1664525 + 1013904223) >> 8) % (int32_t)n;
    wb_array *b = wb_cast(wb_from(WB_F64, base, 2, n, 3), dtype);
    wb_array *u = wb_cast(wb_from(WB_F64, updates, 2, m, 3), dtype);
    wb_array *at = wb_from(WB_I32, index, m);
    for (int64_t k = 0; k < 3; k++)
        for (int64_t j = 0; j < m; j++)
            for (int64_t i = 0; i < 2; i++) {
                double *to = &base[i + 2 * (index[j] + n * k)];
                *to = row->one(*to, updates[i + 2 * (j + m * k)]);
            }
    wb_array *y = row->scatter(b, at, u, 1);
    assert_int_equal(wb_dtype_of(y), dtype);
    assert_sizes(y, 2, n, 3);
    char where[100] = "";
    if (!wb_approx(y, wb_from(WB_F64, base, 2, n, 3), 0, 0, where, sizeof where))
        fail_msg("%s of %s, %d and %d: %s %s", row->name, wb_dtype_name(dtype), (int)n, (int)m,
                 where, wb_error_message());
}

static void every_type_and_size_is_that_of_plain_loops(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++)
        for (int t = 0; t < 7; t++)
            for (int64_t n = 1; n <= 4; n++)
                for (int64_t m = 0; m <= 6; m++) one_case(&rows[i], types[t], n, m);
}

static void positions_have_any_shape(void **state) {
    (void)state;
    wb_array *index = wb_from(WB_I32, ((const int32_t[]){0, 2, 2, 0}), 2, 2);
    wb_array *u = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6, 7, 8), 2, 2, 2);
    wb_array *y = wb_scatter_max(wb_full(WB_F32, 2.5, 2, 3), index, u, 1);
    assert_values(y, 0, 7, 8, 2.5, 2.5, 5, 6);
    assert_values(wb_scatter_min(wb_vector(3, NAN, 2), wb_vector_of(WB_U8, 2, 1, 0),
                                 wb_vector(NAN, 1, -INFINITY), 0),
                  0, -INFINITY, NAN, NAN);
}

/* Its numbers in the middle are beyond those of f16. */
static void products_of_halves_are_f32_in_the_middle(void **state) {
    (void)state;
    const wb_dtype halves[] = {WB_F16, WB_BF16};
    for (int i = 0; i < 2; i++) {
        wb_array *x = wb_cast(wb_vector(1, 1), halves[i]);
        wb_array *u = wb_cast(wb_vector(512, 256, 0.25, 3, 0.125), halves[i]);
        wb_array *y = wb_scatter_mul(x, wb_vector_of(WB_I32, 0, 0, 0, 1, 0), u, 0);
        assert_int_equal(wb_dtype_of(y), halves[i]);
        assert_values(y, 0, 4096, 3);
    }
}

static wb_array *scattered(void *row, int count, wb_array *const *arrays) {
    (void)count;
    wb_array *index = wb_vector_of(WB_I32, 2, 0, 2, 2, 0);
    const struct row *r = row;
    return wb_square(r->scatter(wb_square(arrays[0]), index, wb_square(arrays[1]), 1));
}

static void gradients_are_those_of_differences(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        wb_array *arrays[] = {wb_normal(WB_F64, 2, 4), wb_normal(WB_F64, 2, 5)};
        if (wb_gradient_check(scattered, &rows[i], 2, arrays, 2, 1e-5) != WB_OK)
            fail_msg("%s: %s", rows[i].name, wb_error_message());
    }
}

static void bad_input_is_named(void **state) {
    (void)state;
    wb_array *base = wb_vector(1, 2), *one = wb_vector(1), *index = wb_vector_of(WB_I32, 2);
    assert_null(wb_scatter_max(base, wb_vector(1), one, 0));
    assert_error(WB_ERROR_DTYPE, "scatter_max: the index must have an integer type, got f32");
    assert_null(wb_scatter_mul(base, index, base, 0));
    assert_error(
        WB_ERROR_SHAPE,
        "scatter_mul: base is (2) and index (1) along dimension 0, so updates must be (1), "
        "got (2)");
    assert_null(wb_scatter_min(wb_zeros(WB_BOOL, 2), index, one, 0));
    assert_error(WB_ERROR_DTYPE, "scatter_min: base must not be bool");
    if (wb_default_device() == wb_cpu_device()) { /* where it can be looked at */
        assert_null(wb_scatter_max(base, index, one, 0));
        assert_error(WB_ERROR_ARGUMENT, "scatter_max: index 2 at place 0 is not in 0 .. 1");
    }
    wb_array *computed = wb_add_number(index, 1); /* not readable at the call */
    assert_true(isnan(wb_at(wb_scatter_max(base, computed, one, 0), 0)));
    assert_error(WB_ERROR_ARGUMENT, "3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(results_and_gradients_are_pytorchs), TEST(every_type_and_size_is_that_of_plain_loops),
        TEST(positions_have_any_shape),           TEST(products_of_halves_are_f32_in_the_middle),
        TEST(gradients_are_those_of_differences), TEST(bad_input_is_named)};
    return cmocka_run_group_tests_name("ops/test_scatter", tests, NULL, NULL);
}
