/* Triangles, diagonals, identity matrices, outer products. */
#include "support/support.h"

static void triangles(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, 6}); /* in memory 1 4 2 5 3 6 */
    assert_values(wb_tril(x, 0), 0, 1, 4, 0, 5, 0, 0);
    assert_values(wb_tril(x, 1), 0, 1, 4, 2, 5, 0, 6);
    assert_values(wb_tril(x, -1), 0, 0, 4, 0, 0, 0, 0);
    assert_values(wb_triu(x, 0), 0, 1, 0, 2, 5, 3, 6);
    assert_values(wb_triu(x, 1), 0, 0, 0, 2, 0, 3, 6);
    assert_values(wb_triu(x, -1), 0, 1, 4, 2, 5, 3, 6);
    assert_values(wb_triu(x, INT64_MIN), 0, 1, 4, 2, 5, 3, 6);
    assert_values(wb_triu(x, INT64_MAX), 0, 0, 0, 0, 0, 0, 0);
    assert_values(wb_tril(x, INT64_MAX), 0, 1, 4, 2, 5, 3, 6);
    wb_array *batch = wb_stack(2, x, wb_mul_number(x, 2));
    assert_values(wb_tril(batch, 0), 0, 1, 4, 0, 5, 0, 0, 2, 8, 0, 10, 0, 0);
    assert_int_equal(wb_dtype_of(wb_tril(wb_ones(WB_BOOL, 2, 2), 0)), WB_BOOL);
    assert_values(wb_tril(wb_full(WB_F32, NAN, 2, 2), -1), 0, 0, NAN, 0, 0);
    assert_int_equal(wb_count(wb_tril(wb_zeros(WB_F32, 0, 2), 0)), 0);
}

static void diagonals(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, 6});
    assert_values(wb_diag(x, 0), 0, 1, 5);
    assert_values(wb_diag(x, 1), 0, 2, 6);
    assert_values(wb_diag(x, 2), 0, 3);
    assert_values(wb_diag(x, -1), 0, 4);
    assert_int_equal(wb_count(wb_diag(x, 3)), 0);
    assert_int_equal(wb_count(wb_diag(x, -2)), 0);
    assert_values(wb_diag(wb_transpose(x), 1), 0, 4);
    assert_values(wb_diag(wb_vector(1, 2), 0), 0, 1, 0, 0, 2);
    assert_values(wb_diag(wb_vector(1, 2), 1), 0, 0, 0, 0, 1, 0, 0, 0, 2, 0);
    assert_values(wb_diag(wb_vector(1, 2), -1), 0, 0, 1, 0, 0, 0, 2, 0, 0, 0);
    for (int64_t k = -3; k < 4; k++)
        assert_values(wb_diag(wb_diag(wb_vector(1, 2, 3), k), k), 0, 1, 2, 3);
    assert_sizes(wb_diag(wb_zeros(WB_I32, 0), 0), 0, 0);
}

static void identities(void **state) {
    (void)state;
    assert_values(wb_eye(WB_F32, 2, 2), 0, 1, 0, 0, 1);
    assert_values(wb_eye(WB_I64, 2, 3), 0, 1, 0, 0, 1, 0, 0);
    assert_int_equal(wb_dtype_of(wb_eye(WB_F16, 2, 2)), WB_F16);
    assert_sizes(wb_eye(WB_BOOL, 0, 3), 0, 3);
    wb_array *a = wb_matrix(2, {1, 2}, {3, 4});
    assert_values(wb_matmul(wb_eye(WB_F32, 2, 2), a), 0, 1, 3, 2, 4);
}

static void outer_products(void **state) {
    (void)state;
    assert_values(wb_outer(wb_vector(1, 2), wb_vector(3, 4, 5)), 0, 3, 6, 4, 8, 5, 10);
    assert_sizes(wb_outer(wb_vector(1, 2), wb_vector(3, 4, 5)), 2, 3);
    assert_int_equal(wb_dtype_of(wb_outer(wb_ones(WB_I32, 2), wb_ones(WB_F64, 2))), WB_F64);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(triangles), TEST(diagonals), TEST(identities),
                                       TEST(outer_products)};
    return cmocka_run_group_tests_name("ops/test_matrix", tests, NULL, NULL);
}
