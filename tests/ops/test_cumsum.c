/* Running sums. */
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *data(int64_t rows, int64_t columns) {
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    return wb_from(WB_F32, numbers, rows, columns);
}

static void sums_run_along_a_dimension(void **state) {
    (void)state;
    assert_values(wb_cumsum(data(2, 3), 0), 0, 1, 3, 3, 7, 5, 11);
    assert_values(wb_cumsum(data(2, 3), 1), 0, 1, 2, 4, 6, 9, 12);
    assert_values(wb_cumsum(wb_transpose(data(2, 3)), 0), 0, 1, 4, 9, 2, 6, 12);
    assert_values(wb_cumsum(wb_gt(data(6, 1), wb_number(2)), 0), 0, 0, 0, 1, 2, 3, 4);
    assert_values(wb_cumsum(wb_cast(data(2, 3), WB_F16), 1), 0, 1, 2, 4, 6, 9, 12);
    assert_values(wb_cumsum(wb_cast(data(2, 3), WB_I32), 1), 0, 1, 2, 4, 6, 9, 12);
    assert_int_equal(wb_count(wb_cumsum(wb_zeros(WB_F32, 0, 3), 0)), 0);
}

/* The last of the running sums is the sum, and their differences are the numbers. */
static void sums_end_with_the_sum(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {5, 7, 3}, {70, 300, 2}, {1, 1000, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t n = sizes[i][1];
        wb_array *x = wb_normal(WB_F64, sizes[i][0], n, sizes[i][2]), *y = wb_cumsum(x, 1);
        char where[256];
        if (!wb_approx(wb_slice(y, 1, n - 1, n, 1), wb_sum_dims(x, 1), 1e-10, 1e-10, where,
                       sizeof where))
            fail_msg("the last one of %lld: %s", (long long)n, where);
        if (n > 1 && !wb_approx(wb_sub(wb_slice(y, 1, 1, n, 1), wb_slice(y, 1, 0, n - 1, 1)),
                                wb_slice(x, 1, 1, n, 1), 1e-10, 1e-10, where, sizeof where))
            fail_msg("a difference of %lld: %s", (long long)n, where);
    }
}

static void mistakes_are_named(void **state) {
    (void)state;
    assert_null(wb_cumsum(NULL, 0));
    assert_non_null(strstr(wb_error_message(), "cumsum: x is NULL"));
    wb_clear_error();
    assert_null(wb_cumsum(data(2, 3), 2));
    assert_non_null(strstr(wb_error_message(), "cumsum"));
    wb_clear_error();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_run_along_a_dimension, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(sums_end_with_the_sum, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(mistakes_are_named, open_scope, close_scope)};
    return cmocka_run_group_tests_name("ops/test_cumsum", tests, NULL, NULL);
}
