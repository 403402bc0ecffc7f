/* Numbers that Weber, torch and the loops by hand make alike: weights, inputs, labels. */
#ifndef BENCH_NUMBERS_H
#define BENCH_NUMBERS_H

#include <stdint.h>
#include <weber.h>

/* Sequences: weights of layer l from 1, inputs and labels of batch k. */
enum {
    SEQUENCE_WEIGHT = 0,
    SEQUENCE_INPUT = 100,
    SEQUENCE_LABEL = 200,
    SEQUENCE_TRANSFORMER = 1000, /* its weights, in order */
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
/* The target of case a. */
void bench_target(int64_t count, const float *x, float *y);

/* The same as arrays: f32; labels i32. NULL, with Weber's error pending, on failure. */
wb_array *bench_array(uint32_t sequence, float low, float high, int ndim, const int64_t *sizes);
wb_array *bench_label_array(uint32_t sequence, int64_t classes, int ndim, const int64_t *sizes);
wb_array *bench_weight_array(uint32_t sequence, float bound, int64_t out, int64_t in);

/* sum |x|. */
double bench_sum_of_magnitudes(wb_array *x);

/* What a step of a case that learns nothing computes: outputs, or a loss and a gradient. */
typedef struct bench_values_of_step {
    wb_array *value, *gradient; /* gradient NULL: there is none */
} bench_values_of_step;

#endif
