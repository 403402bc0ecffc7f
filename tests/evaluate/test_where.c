/* Positions of what is true. */
#include "support/support.h"

static void positions_are_columns(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {0, 2, 0}, {-1, 0, NAN});
    wb_array *at = wb_where(x);
    assert_sizes(at, 2, 3);
    assert_int_equal(wb_dtype_of(at), WB_I64);
    assert_values(at, 0, 1, 0, 0, 1, 1, 2);
    assert_values(wb_where(wb_gt(x, wb_number(1))), 0, 0, 1);
    assert_values(wb_where(wb_vector(0, 1, 1, 0)), 0, 1, 2);
    assert_values(wb_where(wb_flip(wb_vector(0, 1, 1, 0, 0), 0)), 0, 2, 3);
    assert_sizes(wb_where(wb_vector_of(WB_I32, 0, 0)), 1, 0);
    assert_sizes(wb_where(wb_zeros(WB_BOOL, 3, 0, 2)), 3, 0);
    assert_sizes(wb_where(wb_number(1)), 0, 1);
    wb_array *y = wb_vector(5, -6, 7, -8);
    assert_values(wb_gather(y, wb_reshape(wb_where(wb_lt(y, wb_number(0))), -1), 0), 0, -6, -8);
    assert_null(wb_where(NULL));
    assert_error(WB_ERROR_ARGUMENT, "where: condition is NULL");
}

static void find(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context, (void)carries;
    outputs[0] = wb_where(inputs[0]);
}

static void the_body_of_a_scan_has_no_values(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3), *y[1];
    assert_int_not_equal(wb_scan(find, NULL, 0, NULL, 1, &x, 1, y), WB_OK);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_where: cannot be called inside the body of a scan or the step of a rule");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(positions_are_columns),
                                       TEST(the_body_of_a_scan_has_no_values)};
    return cmocka_run_group_tests_name("evaluate/test_where", tests, NULL, NULL);
}
