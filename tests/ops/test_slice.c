/* Slices to the end and from the end; assignment to slices as values. */
#include "support/support.h"

static void slices_go_to_the_end(void **state) {
    (void)state;
    wb_array *x = wb_vector(0, 1, 2, 3, 4);
    assert_values(wb_slice(x, 0, 2, WB_END, 1), 0, 2, 3, 4);
    assert_values(wb_slice(x, 0, 1, WB_END, 2), 0, 1, 3);
    assert_values(wb_slice(x, 0, 3, WB_END, -2), 0, 3, 1);
    assert_int_equal(wb_count(wb_slice(x, 0, 5, WB_END, 1)), 0);
    assert_null(wb_slice(x, 0, 6, WB_END, 1));
    assert_error(WB_ERROR_ARGUMENT, "slice: start 6, stop 5, step 1 do not fit dimension 0 of (5)");
}

static void negative_numbers_count_from_the_end(void **state) {
    (void)state;
    wb_array *x = wb_vector(0, 1, 2, 3, 4);
    assert_values(wb_slice(x, 0, -3, WB_END, 1), 0, 2, 3, 4);
    assert_values(wb_slice(x, 0, -3, -1, 1), 0, 2, 3);
    assert_values(wb_slice(x, 0, 1, -1, 2), 0, 1, 3);
    assert_values(wb_slice(x, 0, -2, -1, -1), 0, 3, 2, 1,
                  0); /* backwards, -1 is before the first */
    assert_values(wb_slice(x, 0, -1, 2, -1), 0, 4, 3);
    assert_values(wb_slice_set(x, wb_number(9), 0, -2, WB_END, 1), 0, 0, 1, 2, 9, 9);
    assert_true(wb_at(x, -1) == 4 && wb_at(x, -5) == 0);
    assert_null(wb_slice(x, 0, -6, WB_END, 1));
    assert_error(WB_ERROR_ARGUMENT,
                 "slice: start -6, stop 5, step 1 do not fit dimension 0 of (5)");
    assert_null(wb_slice(x, 0, 0, -6, 1));
    assert_error(WB_ERROR_ARGUMENT,
                 "slice: start 0, stop -6, step 1 do not fit dimension 0 of (5)");
    assert_null(wb_slice(x, 0, 4, -2, -1));
    assert_error(WB_ERROR_ARGUMENT,
                 "slice: start 4, stop -2, step -1 do not fit dimension 0 of (5)");
    assert_true(isnan(wb_at(x, -6)));
    assert_error(WB_ERROR_ARGUMENT, "at: there is no element (-6) in (5)");
}

static void slices_are_assigned(void **state) {
    (void)state;
    wb_array *x = wb_matrix(4, {1, 2, 3, 4}, {5, 6, 7, 8}); /* in memory 1 5 2 6 3 7 4 8 */
    wb_array *y = wb_matrix(2, {10, 20}, {30, 40});
    assert_values(wb_slice_set(x, y, 1, 1, 3, 1), 0, 1, 5, 10, 30, 20, 40, 4, 8);
    assert_values(wb_slice_set(x, y, 1, 1, WB_END, 2), 0, 1, 5, 10, 30, 3, 7, 20, 40);
    assert_values(wb_slice_set(x, y, 1, 3, WB_END, -3), 0, 20, 40, 2, 6, 3, 7, 10, 30);
    assert_values(wb_slice_set(x, y, 1, 2, 0, -1), 0, 1, 5, 20, 40, 10, 30, 4, 8);
    assert_values(wb_slice_set(x, wb_number(0), 0, 1, 2, 1), 0, 1, 0, 2, 0, 3, 0, 4, 0);
    wb_array *column = wb_vector(0, 9);
    assert_values(wb_slice_set(x, column, 1, 0, WB_END, 1), 0, 0, 9, 0, 9, 0, 9, 0, 9);
    assert_values(wb_slice_set(x, wb_number(9), 1, 1, 1, 1), 0, 1, 5, 2, 6, 3, 7, 4, 8);
    assert_values(x, 0, 1, 5, 2, 6, 3, 7, 4, 8);
    assert_values(wb_slice_set(wb_vector(NAN, 1), wb_number(2), 0, 0, 1, 1), 0, 2, 1);
    static const wb_dtype types[] = {WB_F16, WB_I32, WB_U8, WB_BOOL};
    for (int t = 0; t < 4; t++) {
        wb_array *z = wb_slice_set(wb_zeros(types[t], 3), wb_vector(1), 0, 1, 2, 1);
        assert_values(z, 0, 0, 1, 0);
        assert_int_equal(wb_dtype_of(z), types[t]);
    }
    assert_null(wb_slice_set(x, wb_ones(WB_F32, 3), 1, 1, 3, 1));
    assert_error(WB_ERROR_SHAPE, "slice_set: y must be (2, 2) or broadcast to it, got (3)");
    assert_null(wb_slice_set(x, wb_ones(WB_F32, 2, 2, 2), 1, 1, 3, 1));
    assert_error(WB_ERROR_SHAPE, "slice_set: y must be (2, 2) or broadcast to it, got (2, 2, 2)");
    assert_null(wb_slice_set(x, y, 1, 1, 5, 1));
    assert_error(WB_ERROR_ARGUMENT,
                 "slice_set: start 1, stop 5, step 1 do not fit dimension 1 of (2, 4)");
    assert_null(wb_slice_set(x, y, 1, 1, 3, 0));
    assert_error(WB_ERROR_ARGUMENT, "slice_set: the step must not be 0");
    assert_null(wb_slice_set(x, y, 2, 1, 3, 1));
    assert_error(WB_ERROR_ARGUMENT, "slice_set: dimension 2 is outside an array of 2 dimensions");
    assert_null(wb_slice_set(x, NULL, 1, 1, 3, 1));
    assert_error(WB_ERROR_ARGUMENT, "slice_set: y is NULL");
    assert_null(wb_slice_set(NULL, y, 1, 1, 3, 1));
    assert_error(WB_ERROR_ARGUMENT, "slice_set: x is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(slices_go_to_the_end),
                                       TEST(negative_numbers_count_from_the_end),
                                       TEST(slices_are_assigned)};
    return cmocka_run_group_tests_name("ops/test_slice", tests, NULL, NULL);
}
