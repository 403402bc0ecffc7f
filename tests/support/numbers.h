/* Numbers of tests: comparing an array's with a list, and those of descs. */
#ifndef WB_TESTS_NUMBERS_H
#define WB_TESTS_NUMBERS_H

#include <math.h>

#include <weber/array.h>

#include "support/scoped.h"

enum { MOST_NUMBERS = 1024 };

/* A padding that may be 0, as a desc has it. */
static inline int64_t padding(int64_t n) { return n ? n : WB_NONE_; }

/* NaN is NaN, and infinities are equal. */
static inline bool is_near(double value, double wanted, double tolerance) {
    if (isnan(wanted)) return isnan(value);
    return value == wanted || fabs(value - wanted) <= tolerance * (1 + fabs(wanted));
}

static inline void assert_numbers(wb_array *x, int64_t count, const double *wanted,
                                  double tolerance) {
    double values[MOST_NUMBERS];
    if (!x) fail_msg("no array: %s", wb_error_message());
    assert_int_equal(wb_count(x), count);
    assert_true(count <= MOST_NUMBERS);
    assert_int_equal(wb_read_f64(x, values, count), WB_OK);
    for (int64_t i = 0; i < count; i++)
        if (!is_near(values[i], wanted[i], tolerance))
            fail_msg("number %lld is %.17g, not %.17g", (long long)i, values[i], wanted[i]);
}

/* assert_values(x, tolerance, 1, 2, 3) */
#define assert_values(x, tolerance, ...)                                                           \
    assert_numbers(x, (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),           \
                   (const double[]){__VA_ARGS__}, tolerance)

static inline void assert_value(wb_array *x, double wanted, double tolerance) {
    assert_numbers(x, 1, &wanted, tolerance);
}

/* assert_sizes(x, 3, 4) */
#define assert_sizes(x, ...) assert_sizes_make(x, WB_INTS(__VA_ARGS__))
static inline void assert_sizes_make(const wb_array *x, int ndim, const int64_t *sizes) {
    if (!x) fail_msg("no array: %s", wb_error_message());
    assert_int_equal(wb_ndim(x), ndim);
    for (int i = 0; i < ndim; i++) assert_int_equal(wb_size(x, i), sizes[i]);
}

#endif
