/* Rule 9: a plan that fails before it ran has changed nothing; what it was writing when it failed is marked lost. */
#include "array/array.h"
#include "base/memory.h"
#include "support/support.h"

static wb_array *gather_badly(void) {
    return wb_gather(wb_vector(1, 2, 3), wb_from(WB_I32, ((const int32_t[]){0, 3}), 2), 0);
}

static void a_position_out_of_range_is_an_error(void **state) {
    (void)state;
    double out[2];
    wb_array *y = gather_badly();
    assert_non_null(y);
    assert_int_not_equal(wb_read_f64(y, out, 2), WB_OK);
    assert_error(WB_ERROR_ARGUMENT, "gather");
    assert_true(isnan(wb_item(wb_sum(y)))); /* again, with the error again */
    assert_error(WB_ERROR_ARGUMENT, "gather");
}

static void what_was_being_overwritten_is_lost(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_copy(wb_vector(1, 2, 3)), *y = wb_mul_number(x, 2), *bad = wb_sum(gather_badly());
    wb_array *leaving[2] = {y, bad};
    assert_int_equal(wb_scope_close_leaving(2, leaving), WB_OK);
    assert_int_not_equal(wb_eval(y, bad), WB_OK);
    wb_clear_error();
    assert_int_not_equal(wb_eval(y), WB_OK);
    assert_error(WB_ERROR_LOST, "the values of (3) were lost in an earlier device error");
}

static void what_was_only_read_is_not(void **state) {
    (void)state;
    wb_array *x = wb_copy(wb_vector(1, 2, 3)), *y = wb_mul_number(x, 2), *bad = wb_sum(gather_badly());
    assert_int_not_equal(wb_eval(y, bad), WB_OK);
    wb_clear_error();
    assert_values(x, 0, 1, 2, 3);
    assert_values(y, 0, 2, 4, 6);
}

static void a_failed_allocation_changes_nothing(void **state) {
    (void)state;
    for (int64_t n = 1; n < 200; n++) {
        wb_scope_open();
        wb_array *x = wb_copy(wb_vector(1, 2, 3));
        /* the second result is large and new: its memory is asked for while x is about to be taken over */
        wb_array *leaving[2] = {wb_mul_number(x, 2), wb_full(WB_F32, (double)n, 3000 + n, 7)};
        leaving[1] = wb_add_number(leaving[1], 1);
        assert_int_equal(wb_scope_close_leaving(2, leaving), WB_OK);
        (void)wb_fail_allocation(n);
        const wb_status status = wb_eval_make(2, leaving);
        (void)wb_fail_allocation(0);
        if (status != WB_OK) {
            assert_int_equal(status, WB_ERROR_MEMORY);
            wb_clear_error();
        }
        assert_values(leaving[0], 0, 2, 4, 6);
        if (status == WB_OK) return;
    }
    fail_msg("never succeeded");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(a_position_out_of_range_is_an_error), TEST(what_was_being_overwritten_is_lost),
                                       TEST(what_was_only_read_is_not), TEST(a_failed_allocation_changes_nothing)};
    return cmocka_run_group_tests_name("values 9", tests, NULL, NULL);
}
