/* Case g by hand: one pass that reads x once and writes the gradient once.
 *
 *     f = tanh(x) x + exp(-x x)     f' = (1 - tanh(x)^2) x + tanh(x) - 2 x exp(-x x)     gradient =
 *                                   2 f f' */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "floor_math.h"
#include "floors.h"

enum { BLOCK = 2048, MOST_THREADS = 16 };

typedef struct work {
    float *x[G_INPUTS], *gradient;
    int threads;
    int64_t steps;
    double sum;
} work;

typedef struct part {
    const float *x;
    float *gradient;
    int64_t count;
    double sum;
} part;

static void *open_work(int threads) {
    work *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    const size_t bytes = ((size_t)G_COUNT * sizeof(float) + 63) / 64 * 64;
    for (uint32_t k = 0; k < G_INPUTS; k++) {
        w->x[k] = aligned_alloc(64, bytes);
        if (!w->x[k]) abort();
        bench_values(SEQUENCE_INPUT + k, -2, 2, G_COUNT, w->x[k]);
    }
    w->gradient = aligned_alloc(64, bytes);
    return w;
}

static float block(const float *restrict x, float *restrict gradient, int64_t count) {
    float lanes[32] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 32 <= count; i += 32)
        for (int l = 0; l < 32; l++) {
            const float v = x[i + l], t = floor_tanh(v), e = floor_exp(-v * v);
            const float f = t * v + e, slope = (1 - t * t) * v + t - 2 * v * e;
            lanes[l] += f * f;
            gradient[i + l] = 2 * f * slope;
        }
    for (; i < count; i++) {
        const float v = x[i], t = floor_tanh(v), e = floor_exp(-v * v);
        const float f = t * v + e, slope = (1 - t * t) * v + t - 2 * v * e;
        sum += f * f;
        gradient[i] = 2 * f * slope;
    }
    for (int l = 0; l < 32; l++) sum += lanes[l];
    return sum;
}

static void *run(void *context) {
    part *p = context;
    for (int64_t i = 0; i < p->count; i += BLOCK) {
        const int64_t count = p->count - i < BLOCK ? p->count - i : BLOCK;
        p->sum += (double)block(p->x + i, p->gradient + i, count);
    }
    return NULL;
}

static void step(void *state) {
    work *w = state;
    const float *x = w->x[w->steps++ % G_INPUTS];
    part parts[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    const int64_t share = (G_COUNT / w->threads + 63) / 64 * 64;
    for (int i = 0; i < w->threads; i++) {
        const int64_t start = i * share, left = G_COUNT - start;
        parts[i] = (part){x + start, w->gradient + start, left < share ? left : share, 0};
        if (i > 0) pthread_create(&threads[i], NULL, run, &parts[i]);
    }
    run(&parts[0]);
    w->sum = parts[0].sum;
    for (int i = 1; i < w->threads; i++) {
        pthread_join(threads[i], NULL);
        w->sum += parts[i].sum;
    }
}

static bench_result result(void *state) {
    const work *w = state;
    bench_result r = {.loss = w->sum};
    for (int64_t i = 0; i < G_COUNT; i++) r.checksum += fabs((double)w->gradient[i]);
    return r;
}

static void close_work(void *state) {
    work *w = state;
    for (int k = 0; k < G_INPUTS; k++) free(w->x[k]);
    free(w->gradient);
    free(w);
}

const bench_floor bench_floor_g = {"one pass, own exp and tanh", open_work, step, result,
                                   close_work};
