/* Cross-correlations of f32 and f64 in device memory, for libraries that stand for a vendor's: (N,
 * C, [D,] H, W), the fastest last. */
#ifndef WB_TESTS_CUDA_CONVOLVE_H
#define WB_TESTS_CUDA_CONVOLVE_H

#include <stdint.h>

#include "backends/cuda/on_device.h"

enum { X, W, Y, ARRAYS };

typedef struct walk {
    int spatial;
    bool is_f64;
    int result; /* X, W or Y, from the two others */
    const int64_t *sizes[ARRAYS];
    const int64_t *stride, *dilation, *pad;
    char *data[ARRAYS];
} walk;

static double get(const walk *k, int which, int64_t i) {
    return k->is_f64 ? ((double *)(void *)k->data[which])[i]
                     : (double)((float *)(void *)k->data[which])[i];
}

static void add(const walk *k, int64_t i, double value) {
    if (k->is_f64)
        ((double *)(void *)k->data[k->result])[i] += value;
    else
        ((float *)(void *)k->data[k->result])[i] += (float)value;
}

static int64_t volume(const int64_t *sizes, int count) {
    int64_t product = 1;
    for (int i = 0; i < count; i++) product *= sizes[i];
    return product;
}

static int64_t plane(const walk *k, int which) { return volume(k->sizes[which] + 2, k->spatial); }

/* The place in x's plane that a tap at a place of y's plane meets; -1: padding. */
static int64_t meets(const walk *k, int64_t place, int64_t tap) {
    const int64_t *x = k->sizes[X] + 2, *w = k->sizes[W] + 2, *y = k->sizes[Y] + 2;
    int64_t at = 0, step = 1;
    for (int d = k->spatial - 1; d >= 0; d--) {
        const int64_t i = place % y[d] * k->stride[d] - k->pad[d] + tap % w[d] * k->dilation[d];
        if (i < 0 || i >= x[d]) return -1;
        at += i * step;
        step *= x[d];
        place /= y[d], tap /= w[d];
    }
    return at;
}

static void meet(const walk *k, int64_t n, int64_t filter, int64_t channel, int64_t place,
                 int64_t tap) {
    const int64_t *x = k->sizes[X], *w = k->sizes[W], *y = k->sizes[Y];
    const int64_t met = meets(k, place, tap), group = filter / (w[0] / (x[1] / w[1]));
    if (met < 0) return;
    const int64_t at[ARRAYS] = {(n * x[1] + group * w[1] + channel) * plane(k, X) + met,
                                (filter * w[1] + channel) * plane(k, W) + tap,
                                (n * y[1] + filter) * plane(k, Y) + place};
    double product = 1;
    for (int t = 0; t < ARRAYS; t++)
        if (t != k->result) product *= get(k, t, at[t]);
    add(k, at[k->result], product);
}

static void convolve(const walk *k) {
    for (int64_t n = 0; n < k->sizes[X][0]; n++)
        for (int64_t f = 0; f < k->sizes[W][0]; f++)
            for (int64_t c = 0; c < k->sizes[W][1]; c++)
                for (int64_t p = 0; p < plane(k, Y); p++)
                    for (int64_t t = 0; t < plane(k, W); t++) meet(k, n, f, c, p, t);
}

/* False: the driver did not. */
static bool convolve_at(walk *k, gpu_stream stream, void *const pointers[ARRAYS]) {
    size_t bytes[ARRAYS];
    bool done = true;
    for (int t = 0; t < ARRAYS; t++) {
        bytes[t] = (size_t)volume(k->sizes[t], k->spatial + 2) * (k->is_f64 ? 8 : 4);
        done = fetch(stream, pointers[t], bytes[t], &k->data[t]) && done;
    }
    if (done) {
        memset(k->data[k->result], 0, bytes[k->result]);
        convolve(k);
        done = put_back(stream, pointers[k->result], k->data[k->result], bytes[k->result]);
    }
    for (int t = 0; t < ARRAYS; t++) free(k->data[t]);
    return done;
}

#endif
