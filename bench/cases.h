/* The cases that Weber is measured by, as rows of one table.
 *
 *     bench_case *c = bench_case_open("b");
 *     for (int64_t i = 0; i < 100; i++) bench_case_step(c);
 *     bench_result r = bench_case_result(c); // the peer's or the floor's is beside it
 *     bench_case_close(c);
 *
 * A step is forward, backward and optimiser (g, k, l: forward and gradient; h, j, m, q: forward),
 * everything evaluated, with the next input of a few that were made beforehand. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weber.h>

#include "attention.h"
#include "first.h"
#include "networks.h"
#include "numbers.h"
#include "rows.h"
#include "transformer.h"

/* Its name is a letter, and after a colon sizes instead of the case's own: "e",
 * "e:12,768,12,1024,50257,8,bf16", "b:128", "c:256,bf16", or "a:tiny": the same graph with sizes of
 * 1 or 2, so that what is left is the host's work. ",medium" after the sizes, as in
 * "c:256,f32,medium": products of f32 at that precision (wb_matmul_precision).
 *
 *     case                                           sizes
 * a   curve_mlp of networks.h, mse, Adam             BATCH[,TYPE]: a type computes in it
 * b   mlp, cross-entropy, Adam                       the same
 * c   wide_mlp                                       the same
 * d   cnn                                            the same
 * e   transformer.h, AdamW                           LAYERS,WIDTH,HEADS,CONTEXT,SYMBOLS,BATCH,TYPE
 * f   lstm, mse, Adam                                INPUTS,CELLS,LENGTH,BATCH
 * g   sum((tanh(x) x + exp(-x x))^2), 10 million     (none)
 * h   inference of b, batch 1                        BATCH
 * i   vgg                                            BATCH[,TYPE]
 * j   inference of i                                 BATCH
 * k   attention.h                                    LENGTH[,gradient][,TYPE]
 * l   rows.h                                         softmax|layernorm,LENGTH,COUNT[,gradient]
 * m   product of two square matrices                 SIZE,TYPE
 * n   resnet                                         BATCH[,TYPE]
 * o   e with GPT-2's 12 layers of width 768          as e
 * p   first.h, planned anew in each step             transformer|lstm|chain,COUNT
 * q   inference of n, batch 1                        BATCH
 * r   mobilenet                                      BATCH[,TYPE]
 * s   resnet50, images of 224                        BATCH[,TYPE] */
#define BENCH_CASES "abcdefghijklmnopqrs"

/* What both sides compare: the last loss, and sum |p| over the parameters and running statistics
 * (g, k and l with a gradient: over that in x; h, j, m, q, k and l without: over the outputs). */
typedef struct bench_result {
    double loss, checksum;
} bench_result;

enum {
    BENCH_INPUTS = 16, /* different batches, used in turn */
    G_COUNT = 10000000,
    G_INPUTS = 2,
};

/* WEBER_DEVICE=backend[:index] puts everything there: call it first. False, with Weber's error
 * pending, if it is not to be had. */
bool bench_choose_device(void);

typedef struct bench_case bench_case;

/* NULL if there is no such case or, with Weber's error pending, on failure. */
bench_case *bench_case_open(const char *name);
void bench_case_step(bench_case *c);
bench_result bench_case_result(bench_case *c);
void bench_case_close(bench_case *c);

/* Each step computes the same: nothing is learnt. */
bool bench_case_is_fixed(const bench_case *c);
/* Nodes that the plan of the next step orders and looks up, leaves among them; 1 if that plan is
 * known. The step is done. */
int64_t bench_case_nodes(bench_case *c);

/* The parts of a step, for programs that look between them. */
wb_layer *bench_case_model(const bench_case *c);
wb_optimiser *bench_case_optimiser(const bench_case *c);
wb_loss_fn *bench_case_loss(const bench_case *c);
int64_t bench_case_batch_size(const bench_case *c);
void bench_case_batch(const bench_case *c, int64_t k, wb_batch *batch);
/* other sizes from the next step on, new inputs */
void bench_case_set_batch(bench_case *c, int64_t batch);

#endif
