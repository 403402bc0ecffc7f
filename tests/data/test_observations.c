/* src/data/observations.c */
#include <math.h>
#include <string.h>

#include <weber/data.h>
#include <weber/ops.h>

#include "array/array.h"
#include "support/scoped.h"

static void observations_are_the_last_dimension(void **state) {
    (void)state;
    assert_int_equal(wb_numobs(wb_zeros(WB_F32, 2, 3, 5)), 5);
    assert_int_equal(wb_numobs(wb_vector(1, 2, 3)), 3);
    assert_int_equal(wb_numobs(wb_scalar(WB_F32, 1)), 0);
    assert_int_equal(wb_numobs(NULL), 0);
}

static void observations_are_views(void **state) {
    (void)state;
    const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    wb_array *x = wb_from(WB_F32, values, 2, 4), *y = wb_getobs(x, 1, 3);
    assert_int_equal(wb_ndim(y), 2);
    assert_true(wb_approx(y, wb_reshape(wb_vector(3, 4, 5, 6), 2, 2), 0, 0, NULL, 0));
    assert_ptr_equal(y->buffer, x->buffer);
    assert_int_equal(wb_count(wb_getobs(x, 4, 4)), 0);
    assert_null(wb_getobs(x, 3, 5));
    assert_error(WB_ERROR_ARGUMENT, "getobs: 0 <= start <= stop <= 4 must hold for x (2, "
                                    "4), got start 3 and stop 5");
}

/* the sizes of the parts of n observations */
static void assert_split(int64_t n, int count, const double *fractions, const int64_t *wanted) {
    wb_array *x = wb_zeros(WB_F32, 2, n), *parts[4];
    assert_int_equal(wb_eval(x), WB_OK);
    assert_int_equal(wb_splitobs_make(x, parts, count, fractions), WB_OK);
    for (int i = 0; i <= count; i++) {
        assert_int_equal(wb_numobs(parts[i]), wanted[i]);
        if (wanted[i]) assert_ptr_equal(parts[i]->buffer, x->buffer);
    }
}

static void splits_are_rounded_views(void **state) {
    (void)state;
    assert_split(10, 1, (const double[]){0.7}, (const int64_t[]){7, 3});
    assert_split(10, 2, (const double[]){0.5, 0.3}, (const int64_t[]){5, 3, 2});
    assert_split(11, 1, (const double[]){0.25}, (const int64_t[]){3, 8});
    assert_split(3, 3, (const double[]){0.5, 0.5, 0}, (const int64_t[]){2, 1, 0, 0});
    assert_split(1, 1, (const double[]){0}, (const int64_t[]){0, 1});
    assert_split(5, 1, (const double[]){1}, (const int64_t[]){5, 0});
    wb_array *parts[2];
    assert_int_equal(wb_splitobs(wb_vector(1, 2, 3, 4), parts, 0.5), WB_OK);
    assert_true(wb_approx(parts[1], wb_vector(3, 4), 0, 0, NULL, 0));
}

static void bad_fractions_are_refused(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3, 4), *parts[3] = {x, x, x};
    assert_int_equal(wb_splitobs(x, parts, 0.7, 0.5), WB_ERROR_ARGUMENT);
    assert_null(parts[0]);
    assert_null(parts[2]);
    assert_error(WB_ERROR_ARGUMENT, "fraction 1 is 0.5, the sum up to it 1.2");
    assert_int_equal(wb_splitobs(x, parts, -0.1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "fraction 0 is -0.1");
    assert_int_equal(wb_splitobs(x, parts, NAN), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "fraction 0 is");
    assert_int_equal(wb_splitobs(NULL, parts, 0.5), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "splitobs: x is NULL");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(observations_are_the_last_dimension),
        TEST(observations_are_views),
        TEST(splits_are_rounded_views),
        TEST(bad_fractions_are_refused),
    };
    return cmocka_run_group_tests_name("observations", tests, NULL, NULL);
}
