/* The reference of the tests: an evaluator of recipes that shares nothing with src/evaluate, the
 * programs or the kernels. It walks node->inputs by recursion, element by element, in long double,
 * and rounds each node's values to its type.
 *
 *     naive_table *table = naive_new();
 *     const naive *y = naive_of(table, x); // of x and of all that it is made of, kept
 *     naive_free(table);
 *
 * Random sources are read from memory: they are the one thing that is evaluated by Weber. */
#ifndef WB_TESTS_NAIVE_H
#define WB_TESTS_NAIVE_H

#include "array/array.h"

enum { NAIVE_RESULTS = 3 };

typedef struct naive {
    const wb_array *node;
    wb_dtype dtype;
    int ndim;
    int64_t sizes[WB_MAX_DIMS], count;
    long double *values; /* dense, first dimension fastest; exact for i64 too */
    long double
        *results[NAIVE_RESULTS]; /* of operations of several results; values is results[0] */
    struct naive *next;
} naive;

typedef struct naive_table naive_table;

naive_table *naive_new(void);
void naive_free(naive_table *table);
const naive *naive_of(naive_table *table, wb_array *x);

/* True if something computed so far is of a type narrower than f64: its rounding is felt by all
 * that follows. */
bool naive_is_coarse(const naive_table *table);

/* x rounded, cut or wrapped to what dtype can hold. */
long double naive_round(wb_dtype dtype, long double x);

/* Where WEBER_TEST_DUMP is set: prints the recipe of x, each node with its first values. */
void naive_dump(naive_table *table, wb_array *x);

/* Fails unless x's values, computed by Weber, are those of the reference, within tolerance times (1
 * + its size + the largest size / 16). */
void assert_as_naive(naive_table *table, wb_array *x, double tolerance, const char *what);

#endif
