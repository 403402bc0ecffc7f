/* softmax, logsoftmax, logsumexp: cases C6 to C8, infinities as limits, empty arrays, long rows. */
#include "support/naive.h"
#include "support/support.h"

#define INF ((double)INFINITY)

static void assert_like(wb_array *x, int64_t count, const double *wanted, double tolerance) {
    double values[64];
    if (!x) fail_msg("no array: %s", wb_error_message());
    assert_int_equal(wb_count(x), count);
    assert_int_equal(wb_read_f64(x, values, count), WB_OK);
    for (int64_t i = 0; i < count; i++) {
        const bool same = isnan(wanted[i])   ? isnan(values[i])
                          : isinf(wanted[i]) ? values[i] == wanted[i]
                                             : fabs(values[i] - wanted[i]) <= tolerance;
        if (!same) fail_msg("number %lld is %.9g, not %.9g", (long long)i, values[i], wanted[i]);
    }
}
#define assert_row(x, tolerance, ...)                                                              \
    assert_like(x, (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),              \
                (const double[]){__VA_ARGS__}, tolerance)

/* (2, 2) by rows */
static wb_array *square(float a, float b, float c, float d) {
    return wb_reshape(wb_vector(a, c, b, d), 2, 2);
}

static void large_numbers(void **state) { /* C6 */
    (void)state;
    const int32_t zeros[2] = {0, 0};
    assert_row(wb_softmax(wb_from(WB_I32, zeros, 2)), 0, .5, .5);
    assert_row(wb_softmax(wb_vector(-1e5f, -1e5f)), 0, .5, .5);
    assert_row(wb_logsoftmax(wb_vector(1, 2, 3000)), 0, -2999, -2998, 0);
    wb_array *x = wb_reshape(wb_vector(1, 1000, 2, 2000, 3, 3000), 2, 3);
    assert_row(wb_logsoftmax(x), 0, -999, 0, -1998, 0, -2997, 0);
    assert_row(wb_logsumexp(x), 0, 1000, 2000, 3000);
    assert_row(wb_softmax(wb_vector(-3e38f, 3e38f)), 0, 0, 1);
}

static void infinities_are_limits(void **state) { /* C7 */
    (void)state;
    assert_row(wb_softmax(square(1, 2, 3, INFINITY)), 1e-7, 0.11920292, 0.880797, 0, 1);
    assert_row(wb_softmax(square(1, INFINITY, 3, INFINITY)), 1e-7, 0.11920292, 0.880797, .5, .5);
    assert_row(wb_softmax(square(1, NAN, 3, 2)), 1e-7, 0.11920292, 0.880797, NAN, NAN);
    assert_row(wb_softmax_dims(square(1, 2, 3, INFINITY), 1), 1e-7, 0.26894143, 0, 0.7310586, 1);
    assert_row(wb_softmax_dims(square(1, 2, 3, INFINITY), 0, 1), 0, 0, 0, 0, 1);
    assert_row(wb_softmax(wb_vector(-INFINITY, 1)), 0, 0, 1);
    assert_row(wb_logsoftmax(wb_vector(-INFINITY, 1)), 0, -INF, 0);
    assert_row(wb_logsumexp(wb_vector(-INFINITY, -INFINITY)), 0, -INF);
    assert_row(wb_logsumexp(wb_vector(INFINITY, 1)), 0, INF);
    assert_row(wb_logsumexp(wb_vector(NAN, 1)), 0, NAN);
}

static void gradients_of_ones(void **state) { /* C8 */
    (void)state;
    wb_array *x = wb_reshape(wb_vector(1, 1000, 2, 2000, 3, 3000), 2, 3), *g[1];
    assert_int_equal(wb_gradient_of(wb_sum(wb_logsoftmax(x)), 1, &x, g), WB_OK);
    assert_row(g[0], 0, 1, -1, 1, -1, 1, -1);
    assert_int_equal(wb_gradient_of(wb_sum(wb_softmax(x)), 1, &x, g), WB_OK);
    assert_row(g[0], 0, 0, 0, 0, 0, 0, 0);
    assert_int_equal(wb_gradient_of(wb_sum(wb_logsumexp(x)), 1, &x, g), WB_OK);
    assert_row(g[0], 0, 0, 1, 0, 1, 0, 1);
}

static void equal_numbers_are_uniform(void **state) {
    (void)state;
    assert_row(wb_softmax(wb_vector(7, 7, 7, 7)), 0, .25, .25, .25, .25);
}

static void nothing_gives_nothing(void **state) {
    (void)state;
    assert_int_equal(
        wb_eval(wb_softmax(wb_zeros(WB_F32, 0, 3)), wb_logsoftmax(wb_zeros(WB_F32, 3, 0))), WB_OK);
    assert_sizes(wb_softmax(wb_zeros(WB_F32, 0, 3)), 0, 3);
    assert_sizes(wb_logsumexp(wb_zeros(WB_F32, 3, 0)), 1, 0);
}

static void rows_of_all_lengths(void **state) {
    (void)state;
    test_random r = {test_seed()};
    static const int64_t lengths[] = {1, 2, 7, 15, 16, 17, 33, 100, 255, 256, 257, 1000, 4099};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int dim = 0; dim < 2; dim++) {
            const int64_t sizes[2] = {dim ? 3 : lengths[i], dim ? lengths[i] : 3};
            for (int k = 0; k < 2; k++) {
                wb_array *x = array_random(&r, k ? widest() : WB_F32, -5, 5, 2, sizes), *g[1];
                wb_array *y = wb_softmax_dims(x, dim),
                         *l = wb_sum(wb_mul(wb_logsoftmax_dims(x, dim), wb_cos(x)));
                naive_table *t = naive_new();
                const bool exact = wb_dtype_of(x) == WB_F64;
                assert_as_naive(t, y, exact ? 1e-13 : 1e-6, "softmax");
                assert_int_equal(wb_gradient_of(l, 1, &x, g), WB_OK);
                assert_as_naive(t, g[0], exact ? 1e-9 : 5e-4, "its gradient");
                assert_true(fabs(wb_item(wb_sum(y)) - 3) < 1e-5);
                naive_free(t);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(large_numbers),         TEST(infinities_are_limits),
                                       TEST(gradients_of_ones),     TEST(equal_numbers_are_uniform),
                                       TEST(nothing_gives_nothing), TEST(rows_of_all_lengths)};
    return cmocka_run_group_tests_name("ops/test_softmax", tests, NULL, NULL);
}
