/* src/data/onehot.c */
#include <math.h>
#include <string.h>

#include <weber/data.h>
#include <weber/ops.h>

#include "support/scoped.h"

static void assert_i64(wb_array *x, int count, const int64_t *wanted) {
    assert_non_null(x);
    assert_int_equal(wb_dtype_of(x), WB_I64);
    assert_int_equal(wb_count(x), count);
    int64_t values[16];
    assert_int_equal(wb_read(x, values, (size_t)count * sizeof *values), WB_OK);
    for (int i = 0; i < count; i++) assert_int_equal(values[i], wanted[i]);
}

static void cold_gives_back_what_hot_was_made_of(void **state) { /* J10 */
    (void)state;
    wb_array *labels = wb_from(WB_I64, ((const int64_t[]){1, 0, 2}), 3),
             *hot = wb_onehot(labels, 3);
    assert_int_equal(wb_dtype_of(hot), WB_BOOL);
    assert_int_equal(wb_ndim(hot), 2);
    const uint8_t wanted[9] = {0, 1, 0, 1, 0, 0, 0, 0, 1};
    uint8_t values[9];
    assert_int_equal(wb_read(hot, values, sizeof values), WB_OK);
    assert_memory_equal(values, wanted, sizeof wanted);
    assert_i64(wb_onecold(hot), 3, (const int64_t[]){1, 0, 2});
}

static void every_integer_type_is_a_label(void **state) {
    (void)state;
    wb_array *labels = wb_from(WB_U8, ((const uint8_t[]){3, 0, 1, 2}), 2, 2);
    const wb_dtype dtypes[] = {WB_U8, WB_I32, WB_I64};
    for (int i = 0; i < 3; i++) {
        wb_array *hot = wb_onehot(wb_cast(labels, dtypes[i]), 4);
        assert_int_equal(wb_ndim(hot), 3);
        assert_i64(wb_onecold(hot), 4, (const int64_t[]){3, 0, 1, 2});
    }
    wb_array *one = wb_onehot(wb_scalar(WB_I64, 2), 3);
    assert_int_equal(wb_ndim(one), 1);
    assert_true(wb_at(one, 2) == 1 && wb_item(wb_sum(one)) == 1);
}

static void cold_is_the_place_of_the_first_largest(void **state) { /* J10, from 0 */
    (void)state;
    const float y[] = {1, 2, 3, 2, 20, 7, 9, 1, 5, 6, 10, 14};
    assert_i64(wb_onecold(wb_from(WB_F32, y, 4, 3)), 3, (const int64_t[]){2, 0, 3});
    assert_i64(wb_onecold(wb_vector(1, 2, 5, 3)), 1, (const int64_t[]){2});
    assert_int_equal(wb_ndim(wb_onecold(wb_vector(1, 2, 5, 3))), 0);
    assert_i64(wb_onecold(wb_vector(4, 7, 7)), 1, (const int64_t[]){1});
    assert_i64(wb_onecold(wb_vector(4, NAN, 7)), 1, (const int64_t[]){1});
}

static void a_matrix_times_a_hot_vector_is_a_column(void **state) { /* J10 */
    (void)state;
    const float a[] = {1, 2, 3, 4, 5, 6};
    wb_array *A = wb_from(WB_F32, a, 2, 3),
             *hot = wb_cast(wb_onehot(wb_scalar(WB_I64, 1), 3), WB_F32);
    assert_true(wb_approx(wb_matmul(A, hot), wb_vector(3, 4), 0, 0, NULL, 0));
    assert_null(wb_matmul(A, wb_cast(wb_onehot(wb_scalar(WB_I64, 1), 4), WB_F32)));
    assert_error(WB_ERROR_SHAPE, "(2, 3)");
}

static void bad_labels_are_refused(void **state) { /* J10 */
    (void)state;
    assert_null(wb_onehot(wb_from(WB_I32, ((const int32_t[]){0, 1, 10, 2}), 4), 10));
    assert_error(WB_ERROR_ARGUMENT, "label 10 at place 2 of (4) is outside 0 to 9");
    assert_null(wb_onehot(wb_from(WB_I32, ((const int32_t[]){-1}), 1), 10));
    assert_error(WB_ERROR_ARGUMENT, "label -1");
    assert_null(wb_onehot(wb_vector(1, 2), 10));
    assert_error(WB_ERROR_DTYPE, "got f32");
    assert_null(wb_onehot(wb_scalar(WB_I32, 0), 0));
    assert_error(WB_ERROR_ARGUMENT, "at least one class, got 0");
    assert_null(wb_onehot(NULL, 3));
    assert_error(WB_ERROR_ARGUMENT, "labels is NULL");
    assert_null(wb_onecold(NULL));
    assert_error(WB_ERROR_ARGUMENT, "y is NULL");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(cold_gives_back_what_hot_was_made_of),
        TEST(every_integer_type_is_a_label),
        TEST(cold_is_the_place_of_the_first_largest),
        TEST(a_matrix_times_a_hot_vector_is_a_column),
        TEST(bad_labels_are_refused),
    };
    return cmocka_run_group_tests_name("onehot", tests, NULL, NULL);
}
