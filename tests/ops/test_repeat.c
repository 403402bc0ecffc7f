/* Roll, repeat, tile. */
#include "support/support.h"

static wb_array *data(void) { return wb_matrix(3, {1, 2, 3}, {4, 5, 6}); } /* 1 4 2 5 3 6 */

static void what_leaves_comes_back(void **state) {
    (void)state;
    assert_values(wb_roll(wb_vector(1, 2, 3, 4), 1, 0), 0, 4, 1, 2, 3);
    assert_values(wb_roll(wb_vector(1, 2, 3, 4), -1, 0), 0, 2, 3, 4, 1);
    assert_values(wb_roll(wb_vector(1, 2, 3, 4), 9, 0), 0, 4, 1, 2, 3);
    assert_values(wb_roll(wb_vector(1, 2, 3), INT64_MIN, 0), 0, 3, 1, 2);
    assert_values(wb_roll(data(), 1, -1), 0, 3, 6, 1, 4, 2, 5);
    assert_values(wb_roll(data(), 1, 0), 0, 4, 1, 5, 2, 6, 3);
    assert_values(wb_roll(data(), 3, 1), 0, 1, 4, 2, 5, 3, 6);
    assert_int_equal(wb_count(wb_roll(wb_zeros(WB_F32, 0, 2), 1, 0)), 0);
}

static void elements_are_repeated(void **state) {
    (void)state;
    assert_values(wb_repeat(wb_vector(1, 2), 2, 0), 0, 1, 1, 2, 2);
    assert_values(wb_repeat(data(), 2, 0), 0, 1, 1, 4, 4, 2, 2, 5, 5, 3, 3, 6, 6);
    assert_values(wb_repeat(data(), 2, 1), 0, 1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6);
    assert_sizes(wb_repeat(data(), 2, 1), 2, 6);
    assert_sizes(wb_repeat(data(), 0, 1), 2, 0);
    assert_int_equal(wb_dtype_of(wb_repeat(wb_ones(WB_U8, 2), 3, 0)), WB_U8);
}

static void arrays_are_repeated(void **state) {
    (void)state;
    assert_values(wb_tile(wb_vector(1, 2), 2), 0, 1, 2, 1, 2);
    assert_values(wb_tile(data(), 2), 0, 1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6);
    assert_values(wb_tile(data(), 1, 2), 0, 1, 4, 2, 5, 3, 6, 1, 4, 2, 5, 3, 6);
    assert_values(wb_tile(wb_vector(1, 2), 1, 2), 0, 1, 2, 1, 2);
    assert_sizes(wb_tile(wb_vector(1, 2), 3, 2, 4), 6, 2, 4);
    assert_sizes(wb_tile(data(), 1, 0), 2, 0);
    assert_sizes(wb_tile(wb_ones(WB_F32, 1, 1, 1, 1, 1, 1, 1, 2), 1, 1, 1, 1, 1, 1, 1, 3), 1, 1, 1,
                 1, 1, 1, 1, 6);
}

static void mistakes_are_named(void **state) {
    (void)state;
    assert_null(wb_roll(data(), 1, 2));
    assert_error(WB_ERROR_ARGUMENT, "roll: dimension 2 is outside an array of 2 dimensions");
    assert_null(wb_repeat(data(), -1, 0));
    assert_error(WB_ERROR_ARGUMENT, "repeat: times must be at least 0, got -1");
    assert_null(wb_repeat(data(), INT64_MAX, 0));
    assert_error(WB_ERROR_SHAPE, "has more elements than memory can hold");
    assert_null(wb_repeat(data(), 1, -3));
    assert_error(WB_ERROR_ARGUMENT, "repeat: dimension -3 is outside an array of 2 dimensions");
    assert_null(wb_tile(data(), 2, -1));
    assert_error(WB_ERROR_ARGUMENT, "tile: times must be at least 0, got -1");
    assert_null(wb_tile(data(), 1, 1, 1, 1, 1, 1, 1, 1, 2));
    assert_error(WB_ERROR_ARGUMENT, "tile: at most 8 dimensions are possible, got 9");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(what_leaves_comes_back), TEST(elements_are_repeated),
                                       TEST(arrays_are_repeated), TEST(mistakes_are_named)};
    return cmocka_run_group_tests_name("ops/test_repeat", tests, NULL, NULL);
}
