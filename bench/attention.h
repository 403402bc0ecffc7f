/* Causal attention with heads of 64 features: case k. */
#ifndef BENCH_ATTENTION_H
#define BENCH_ATTENTION_H

#include "numbers.h"

enum { BENCH_ATTENTION_FEATURES = 64, BENCH_ATTENTION_QUERIES = 16384 };

typedef struct bench_attention {
    int64_t length, heads;
    bool has_gradient; /* of sum(y d) in q, k and v */
    wb_dtype type;     /* of q, k and v */
} bench_attention;

/* "512", "2048,gradient", "2048,bf16", "2048,gradient,bf16": the length, of 16,384 queries in all.
 * False if it is something else. */
bool bench_attention_parse(const char *text, bench_attention *attention);

/* What is evaluated in one step: y, or, with a gradient, the loss sum(y d) and what it gives for k.
 * x has q, k and v side by side in its last dimension. NULL, with Weber's error pending, on
 * failure. */
bench_values_of_step bench_attention_step(const bench_attention *attention, wb_array *x,
                                          wb_array *d);

#endif
