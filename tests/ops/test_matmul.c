/* Matrix products: all layouts, transposes and batches against the naive evaluator, sizes 0 and 1,
 * messages. */
#include "support/naive.h"
#include "support/support.h"

static void vectors_and_matrices(void **state) {
    (void)state;
    wb_array *a = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 2, 3);
    assert_values(wb_matmul(a, wb_vector(1, 0, 2)), 0, 11, 14);
    assert_sizes(wb_matmul(a, wb_vector(1, 0, 2)), 2);
    assert_values(wb_matmul_transposed(a, wb_vector(1, 1), true, false), 0, 3, 7, 11);
    assert_values(wb_matmul(wb_reshape(wb_vector(1, 2), 2, 1), wb_reshape(wb_vector(3, 4), 1, 2)),
                  0, 3, 6, 4, 8);
}

static void nothing_sums_to_zeros(void **state) {
    (void)state;
    assert_values(wb_matmul(wb_ones(WB_F32, 2, 0), wb_ones(WB_F32, 0, 2)), 0, 0, 0, 0, 0);
    assert_sizes(wb_matmul(wb_ones(WB_F32, 0, 3), wb_ones(WB_F32, 3, 2)), 0, 2);
    assert_int_equal(wb_eval(wb_matmul(wb_ones(WB_F32, 0, 3), wb_ones(WB_F32, 3, 2))), WB_OK);
    assert_values(wb_add_number(wb_matmul(wb_ones(WB_F32, 2, 0), wb_ones(WB_F32, 0, 1)), 3), 0, 3,
                  3);
}

static void nan_and_infinity_go_through(void **state) {
    (void)state;
    wb_array *a = wb_reshape(wb_vector(0, 1, NAN, 0), 2, 2);
    wb_array *y = wb_matmul(a, wb_reshape(wb_vector(1, 0), 2, 1));
    assert_true(isnan(wb_at(y, 0, 0)) && wb_at(y, 1, 0) == 1);
    assert_true(isnan(
        wb_item(wb_matmul(wb_full(WB_F32, 0, 1, 1), wb_full(WB_F32, (double)INFINITY, 1, 1)))));
}

static wb_array *in_some_layout(test_random *r, wb_dtype dtype, int ndim, const int64_t *sizes) {
    int64_t larger[4];
    switch (random_below(r, 5)) {
    case 0: { /* the transpose of a matrix in memory */
        for (int d = 0; d < ndim; d++) larger[d] = sizes[d == 0 ? 1 : d == 1 ? 0 : d];
        return wb_transpose(array_random(r, dtype, -1, 1, ndim, larger));
    }
    case 1: /* columns further apart */
        for (int d = 0; d < ndim; d++) larger[d] = sizes[d] + (d == 0 ? 3 : 0);
        return wb_slice(array_random(r, dtype, -1, 1, ndim, larger), 0, 1, 1 + sizes[0], 1);
    case 2: /* every second row */
        for (int d = 0; d < ndim; d++) larger[d] = sizes[d] * (d == 0 ? 2 : 1);
        return wb_slice(array_random(r, dtype, -1, 1, ndim, larger), 0, 0, larger[0], 2);
    case 3:
        return wb_flip(array_random(r, dtype, -1, 1, ndim, sizes), (int)random_below(r, ndim));
    default:
        return array_random(r, dtype, -1, 1, ndim, sizes);
    }
}

static void random_products(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int i = 0; i < cases_of(200); i++) {
        const bool large = random_below(&r, 12) == 0;
        int64_t a[4], b[4];
        const int64_t m = random_below(&r, large ? 70 : 9), k = random_below(&r, large ? 90 : 9),
                      n = random_below(&r, large ? 70 : 9);
        const bool ta = random_below(&r, 2), tb = random_below(&r, 2);
        a[0] = ta ? k : m, a[1] = ta ? m : k, b[0] = tb ? n : k, b[1] = tb ? k : n;
        a[2] = 1 + random_below(&r, 3), a[3] = 1 + random_below(&r, 2);
        b[2] = random_below(&r, 2) ? a[2] : 1, b[3] = random_below(&r, 2) ? a[3] : 1;
        const wb_dtype dtype = (const wb_dtype[]){WB_F32, widest(), WB_BF16}[random_below(&r, 3)];
        wb_array *x = in_some_layout(&r, dtype, 2 + (int)random_below(&r, 3), a),
                 *y = in_some_layout(&r, dtype, 2 + (int)random_below(&r, 3), b);
        wb_array *o = wb_matmul_transposed(x, y, ta, tb), *g[2];
        if (!o) fail_msg("%s", wb_error_message());
        if (i % 3 == 0)
            o = wb_tanh(wb_add(o, array_random(&r, dtype, -1, 1, 1, (const int64_t[]){m})));
        naive_table *t = naive_new();
        const double tolerance = dtype == WB_BF16 ? 0x1p-6 : dtype == WB_F32 ? 3e-5 : 1e-12;
        assert_as_naive(t, o, tolerance, "a product");
        if (!large) {
            assert_int_equal(wb_gradient_of(wb_sum(wb_square(o)), 2, (wb_array *[]){x, y}, g),
                             WB_OK);
            assert_as_naive(t, g[0], 20 * tolerance, "its gradient in A");
            assert_as_naive(t, g[1], 20 * tolerance, "its gradient in B");
        }
        naive_free(t);
    }
}

static void types_meet(void **state) {
    (void)state;
    assert_int_equal(wb_dtype_of(wb_matmul(wb_ones(WB_F32, 2, 2), wb_ones(WB_F64, 2, 2))), WB_F64);
    assert_int_equal(wb_dtype_of(wb_matmul(wb_ones(WB_F16, 2, 2), wb_ones(WB_F16, 2, 2))), WB_F16);
    assert_int_equal(wb_dtype_of(wb_matmul(wb_ones(WB_F32, 2, 2), wb_ones(WB_I32, 2, 2))), WB_F32);
    assert_values(wb_matmul(wb_full(WB_F16, 0.5, 2, 3), wb_full(WB_BF16, 2, 3, 1)), 0, 3, 3);
}

static void precision_is_one_of_three_words(void **state) {
    (void)state;
    assert_int_equal(wb_matmul_precision("high"), WB_OK);
    assert_values(wb_matmul(wb_full(WB_F32, 0.5, 2, 3), wb_full(WB_F32, 2, 3, 1)), 0, 3, 3);
    assert_int_equal(wb_matmul_precision("highest"), WB_OK);
}

/* Both operands rounded to bf16, by half a unit of 2^-8 at most, and no more. */
static void medium_is_near_and_leaves_no_trace(void **state) {
    (void)state;
    enum { SIZE = 64 };
    static const char *const words[] = {"highest", "medium", "highest"};
    float products[3][SIZE * SIZE];
    wb_array *a = wb_uniform(WB_F32, SIZE, SIZE), *b = wb_uniform(WB_F32, SIZE, SIZE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_matmul_precision(words[i]), WB_OK);
        assert_int_equal(wb_read_f32(wb_matmul(a, b), products[i], SIZE * SIZE), WB_OK);
    }
    for (int i = 0; i < SIZE * SIZE; i++) {
        const float error = products[1][i] - products[0][i];
        assert_true(fabsf(error) <= products[0][i] * 0x1p-7f);
    }
    assert_memory_equal(products[0], products[2], sizeof products[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(vectors_and_matrices),
                                       TEST(nothing_sums_to_zeros),
                                       TEST(nan_and_infinity_go_through),
                                       TEST(random_products),
                                       TEST(types_meet),
                                       TEST(precision_is_one_of_three_words),
                                       TEST(medium_is_near_and_leaves_no_trace)};
    return cmocka_run_group_tests_name("ops/test_matmul", tests, NULL, NULL);
}
