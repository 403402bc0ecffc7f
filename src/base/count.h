/* Arithmetic with counts of elements and bytes: a result that is too large is INT64_MAX, a count
 * that no memory has. */
#ifndef WB_BASE_COUNT_H
#define WB_BASE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

static inline int64_t wb_plus(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static inline int64_t wb_times(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Whether x is a whole number that fits into an int64_t; then *n is that number. */
static inline bool wb_is_whole(double x, int64_t *n) {
    if (!(x >= -0x1p63 && x < 0x1p63)) return false; /* a cast of any other number is undefined */
    *n = (int64_t)x;
    return (double)*n == x;
}

#endif
