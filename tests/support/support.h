/* What the tests of arrays, operations and evaluation share. Each test runs in a scope and leaves
 * nothing behind (scoped.h):
 *
 *     int main(void) {
 *         const struct CMUnitTest tests[] = {TEST(sums_of_nothing_are_zero)};
 *         return cmocka_run_group_tests(tests, NULL, NULL);
 *     }
 *
 * Random tests print their seed; WEBER_TEST_SEED=n runs them with that one. */
#ifndef WB_TESTS_SUPPORT_H
#define WB_TESTS_SUPPORT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_scope, close_scope)

/* A row of a table as a test: its name is a sentence, its function gets the row by *state. */
#define TEST_ROW(row, function)                                                                    \
    (struct CMUnitTest) { (row)->name, function, open_row, close_row, (void *)(uintptr_t)(row) }
int open_row(void **state);
int close_row(void **state);

/* The tests of a program that has tables: int main(void) { static test_list tests; ADD_ROWS(&tests,
 * rows, a_row_is_right); ... } */
typedef struct test_list {
    struct CMUnitTest tests[256];
    size_t count;
} test_list;

#define ADD_ROWS(list, rows, function)                                                             \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++)                                     \
    add_test(list, TEST_ROW(&(rows)[i], function))
#define ADD_TESTS(list, array)                                                                     \
    for (size_t i = 0; i < sizeof(array) / sizeof *(array); i++) add_test(list, (array)[i])
void add_test(test_list *list, struct CMUnitTest test);
int run_test_list(const char *name, const test_list *list, CMFixtureFunction set_up,
                  CMFixtureFunction tear_down);

/* Under an emulator: WEBER_TEST_BRIEF leaves out what takes long and is like the rest. */
static inline bool is_brief(void) { return getenv("WEBER_TEST_BRIEF") != NULL; }

/* ---- random numbers for tests ---- */

/* The seed of this run, printed at the first call. */
uint64_t test_seed(void);

typedef struct test_random {
    uint64_t state;
} test_random;

uint64_t random_bits(test_random *r);
int64_t random_below(test_random *r, int64_t n); /* 0 .. n - 1 */
double random_between(test_random *r, double low, double high);

/* ---- numbers in memory ---- */

/* Element i of memory of a type; x is cut and rounded as C does (halves: to nearest even). */
void number_put(wb_dtype dtype, void *memory, int64_t i, double x);
double number_get(wb_dtype dtype, const void *memory, int64_t i);

/* ---- arrays ---- */

/* count numbers as an array of dtype in memory, as number_put has them. */
wb_array *array_of(wb_dtype dtype, const double *numbers, int ndim, const int64_t *sizes);
/* The same with random numbers between low and high. */
wb_array *array_random(test_random *r, wb_dtype dtype, double low, double high, int ndim,
                       const int64_t *sizes);

/* As bytes, dense; to be freed. */
void *bytes_of(wb_array *x, size_t *size_bytes);

/* Fails unless the two have the same sizes, type and bits. */
void assert_same_bits(wb_array *a, wb_array *b, const char *what);

/* ---- processes ---- */

/* Runs `run` in a child process whose environment has name=value; returns what it returned (0:
 * passed). A child that a signal ends counts as 1. To be called before anything of Weber. */
int run_with(const char *name, const char *value, int (*run)(void));

#endif
