/* Inside the tests' reference (naive.h): each operation's rule fills in the values of o, and of its
 * further results. */
#ifndef WB_TESTS_NAIVE_RULES_H
#define WB_TESTS_NAIVE_RULES_H

#include <math.h>

#include "support/naive.h"

typedef void naive_rule(naive *o, naive *const *in);

/* ---- naive_elementwise.c ---- */

naive_rule naive_elementwise, naive_select_or_cast;

/* ---- naive_windows.c: also the operations that go back ---- */

naive_rule naive_matmul, naive_conv, naive_maxpool, naive_pool_scatter, naive_pool_gather,
    naive_meanpool, naive_unfold;

/* ---- what they share (naive.c) ---- */

/* That many zeros. */
long double *naive_numbers(int64_t count);

void naive_unravel(int64_t linear, int ndim, const int64_t *sizes, int64_t *index);
int64_t naive_ravel(int ndim, const int64_t *sizes, const int64_t *index);

/* The element of x that element number i of an array of these sizes meets when x is broadcast to
 * it. */
long double naive_spread(const naive *x, int64_t i, int ndim, const int64_t *sizes);

static inline int64_t naive_wrap_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline long double naive_larger(long double x, long double y) {
    return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
}

#endif
