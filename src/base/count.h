/* Counts of elements and bytes: what comes out of them is INT64_MAX, which no memory has, where it
 * would be larger. */
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

/* Whether x is a whole number that an int64_t can have; then it is *n. */
static inline bool wb_is_whole(double x, int64_t *n) {
    if (!(x >= -0x1p63 && x < 0x1p63)) return false; /* a cast of any other has no meaning */
    *n = (int64_t)x;
    return (double)*n == x;
}

#endif
