/* Networks of many nodes with next to nothing to compute, planned anew in each step: case p.
 *
 *     transformer,LAYERS   that of transformer.h, width 16
 *     lstm,STEPS           an LSTM of 4 cells, each step with nodes of its own
 *     chain,BLOCKS         x = tanh(W x) + x, BLOCKS times */
#ifndef BENCH_FIRST_H
#define BENCH_FIRST_H

#include "transformer.h"

typedef struct bench_first {
    enum { FIRST_TRANSFORMER, FIRST_LSTM, FIRST_CHAIN } kind;
    int64_t count; /* layers, steps, blocks */
} bench_first;

/* "lstm,400". False if it is something else. */
bool bench_first_parse(const char *text, bench_first *first);

/* NULL, with Weber's error pending, on failure. */
wb_layer *bench_first_make(const bench_first *first);
/* Batch number k. */
void bench_first_batch(const bench_first *first, uint32_t k, wb_array **x, wb_array **y);
/* Another recipe at each call: constants are part of a plan's key. */
wb_array *bench_first_loss(wb_layer *model, const wb_batch *batch, void *user);

#endif
