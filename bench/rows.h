/* Softmax and layer norm over the rows of a matrix: case l. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "numbers.h"

typedef struct bench_rows {
    int64_t length, count; /* elements of a row, rows */
    bool is_norm;          /* layer norm, with gain 1 and bias 0; else softmax */
    bool has_gradient;     /* of sum(y d) in x, and in gain and bias */
} bench_rows;

/* "softmax,1024,4096", "layernorm,1024,4096,gradient". False if it is something else. */
bool bench_rows_parse(const char *text, bench_rows *rows);

/* What is evaluated in one step: y, or, with a gradient, the loss sum(y d) and what it gives for x.
 * NULL, with Weber's error pending, on failure. */
bench_values_of_step bench_rows_step(const bench_rows *rows, wb_array *x, wb_array *d);

#endif
