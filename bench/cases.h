/* The cases that Weber is measured by: a small network, two larger ones, a convolutional one,
 * elementwise work, inference, images with norms, rows.
 *
 *     bench_case *c = bench_case_open('b', 0);
 *     for (int64_t i = 0; i < 100; i++) bench_case_step(c);
 *     bench_result r = bench_case_result(c); // the peer's or the floor's is beside it
 *     bench_case_close(c);
 *
 * A step is forward, backward and optimiser (g, k, l: forward and gradient; h, j: forward),
 * everything evaluated, with the next input of a few that were made beforehand. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weber.h>

#include "attention.h"
#include "rows.h"
#include "transformer.h"

/* a tiny MLP 1-256-1, tanh, batch 16, mse, Adam       b MLP 784-256-10, relu, batch 64,
 *                                                     cross-entropy, Adam
 * c MLP 784-1024-1024-10, batch 256                   d conv 3x3 32 - conv 3x3 64 - maxpool 2 - 128
 *                                                     - 10, batch 64
 * e decoder of transformer.h: 4 layers, width 256, 4 heads, context 128, 96 symbols, batch 16,
 * AdamW
 * g sum((tanh(x) x + exp(-x x))^2) over 10 million    h inference of b, batch 1
 * i images of 32 x 32: convs 3x3 of 64, 64, 128, 128, 256 filters with BatchNorm and relu,
 * maxpool 2 behind each pair, meanpool 8 - 10, batch 32
 * j inference of i                                    k attention.h            l rows.h */
#define BENCH_CASES "abcdeghijkl"

/* What both sides compare: the last loss, and sum |p| over the parameters and running statistics
 * (g, k, l with a gradient: over the gradient in x; h, j, k, l without one: over the outputs). */
typedef struct bench_result {
    double loss, checksum;
} bench_result;

/* The networks, which their C loops need too. */
enum {
    BENCH_INPUTS = 16, /* different batches, used in turn */
    A_BATCH = 16,
    A_HIDDEN = 256,
    B_BATCH = 64,
    B_IN = 784,
    B_HIDDEN = 256,
    C_BATCH = 256,
    C_HIDDEN = 1024,
    D_BATCH = 64,
    D_SIDE = 28,
    I_BATCH = 32,
    I_SIDE = 32,
    CLASSES = 10,
    G_COUNT = 10000000,
    G_INPUTS = 2,
};

/* Number i of sequence `sequence`, in [0, 1): the same in peer_torch.py. */
float bench_uniform(uint32_t sequence, uint32_t i);

/* A weight of torch's memory order (out, in), uniform within bound, transposed into memory where
 * the outputs are fastest; bench_weight: within sqrt(6 / (in + out)). */
void bench_matrix(uint32_t sequence, float bound, int64_t out, int64_t in, float *w);
void bench_weight(uint32_t sequence, int64_t out, int64_t in, float *w);
/* Batch number k: x uniform in [low, high), labels 0 to classes - 1. */
void bench_values(uint32_t sequence, float low, float high, int64_t count, float *x);
void bench_labels(uint32_t sequence, int64_t classes, int64_t count, int32_t *labels);
/* The same as an array, f32. */
wb_array *bench_array(uint32_t sequence, float low, float high, int ndim, const int64_t *sizes);
/* The target of case a. */
void bench_target(int64_t count, const float *x, float *y);

/* Sequences: weights of layer l from 1, inputs and labels of batch k. */
enum {
    SEQUENCE_WEIGHT = 0,
    SEQUENCE_INPUT = 100,
    SEQUENCE_LABEL = 200,
    SEQUENCE_TRANSFORMER = 1000, /* its weights, in order */
};

/* WEBER_DEVICE=backend[:index] puts everything there: call it first. False, with Weber's error
 * pending, if it is not to be had. */
bool bench_choose_device(void);

typedef struct bench_case bench_case;

/* tiny: the same graph with sizes of 1 or 2, so that what is left is the host's work. NULL, with
 * Weber's error pending, on failure. */
bench_case *bench_case_open(char letter, bool tiny);
/* The same, with n instead of the case's batch size (a, b, c, d, i, j). */
bench_case *bench_case_open_batch(char letter, bool tiny, int64_t batch);
/* Each step computes the same: nothing is learnt. */
bool bench_case_is_fixed(char letter);
/* Case e in other sizes. */
bench_case *bench_case_open_transformer(const bench_transformer *sizes);
/* Case k of another length, or with a gradient. */
bench_case *bench_case_open_attention(const bench_attention *attention);
/* Case l of other operations or sizes. */
bench_case *bench_case_open_rows(const bench_rows *rows);
void bench_case_step(bench_case *c);
bench_result bench_case_result(bench_case *c);
void bench_case_close(bench_case *c);

/* Of an array of f32: its checksum. */
double bench_sum_of_magnitudes(wb_array *x);

/* The parts of a step, for programs that look between them. */
wb_layer *bench_case_model(const bench_case *c);
wb_optimiser *bench_case_optimiser(const bench_case *c);
wb_loss_fn *bench_case_loss(const bench_case *c);
void bench_case_batch(const bench_case *c, int64_t k, wb_batch *batch);
/* other sizes from the next step on, new inputs */
void bench_case_set_batch(bench_case *c, int64_t batch);

#endif
