/* Case a by hand: four arrays, three loops, everything in the first cache. */
#include <math.h>
#include <stdlib.h>

#include "floor_math.h"
#include "floors.h"

enum { N = A_BATCH, H = A_HIDDEN };

typedef struct network {
    float w1[H], b1[H], w2[H], b2;
    float m[4][H], v[4][H];
    float h[N][H], x[BENCH_INPUTS][N], y[BENCH_INPUTS][N];
    int64_t steps;
    double loss;
} network;

static void *open_network(int threads) {
    (void)threads;
    network *n = aligned_alloc(64, (sizeof *n + 63) / 64 * 64);
    if (!n) return NULL;
    *n = (network){0};
    bench_weight(SEQUENCE_WEIGHT + 1, H, 1, n->w1);
    bench_weight(SEQUENCE_WEIGHT + 2, 1, H, n->w2);
    for (uint32_t k = 0; k < BENCH_INPUTS; k++) {
        bench_values(SEQUENCE_INPUT + k, -1.5f, 1.5f, N, n->x[k]);
        bench_target(N, n->x[k], n->y[k]);
    }
    return n;
}

static void step(void *state) {
    network *n = state;
    const float *x = n->x[n->steps % BENCH_INPUTS], *y = n->y[n->steps % BENCH_INPUTS];
    float error[N], g1[H] = {0}, gb[H] = {0}, g2[H] = {0}, sum = 0, total = 0;
    for (int i = 0; i < N; i++) {
        float out = 0;
        for (int j = 0; j < H; j++) n->h[i][j] = floor_tanh(n->w1[j] * x[i] + n->b1[j]);
        float lanes[16] = {0};
        for (int j = 0; j < H; j += 16)
            for (int l = 0; l < 16; l++) lanes[l] += n->w2[j + l] * n->h[i][j + l];
        for (int l = 0; l < 16; l++) out += lanes[l];
        const float difference = out + n->b2 - y[i];
        error[i] = 2 * difference / N;
        total += difference * difference;
        sum += error[i];
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < H; j++) {
            const float h = n->h[i][j], back = error[i] * n->w2[j] * (1 - h * h);
            g2[j] += error[i] * h;
            gb[j] += back;
            g1[j] += back * x[i];
        }
    n->loss = (double)total / N;
    const double t = (double)++n->steps;
    const float rate = (float)(1e-3 / (1 - pow(0.9, t)));
    const float correction = (float)(1 / (1 - pow(0.999, t)));
    for (int j = 0; j < H; j++) {
        floor_adam(&n->w1[j], g1[j], &n->m[0][j], &n->v[0][j], rate, correction);
        floor_adam(&n->b1[j], gb[j], &n->m[1][j], &n->v[1][j], rate, correction);
        floor_adam(&n->w2[j], g2[j], &n->m[2][j], &n->v[2][j], rate, correction);
    }
    floor_adam(&n->b2, sum, &n->m[3][0], &n->v[3][0], rate, correction);
}

static bench_result result(void *state) {
    const network *n = state;
    bench_result r = {.loss = n->loss, .checksum = fabs((double)n->b2)};
    for (int j = 0; j < H; j++)
        r.checksum += fabs((double)n->w1[j]) + fabs((double)n->b1[j]) + fabs((double)n->w2[j]);
    return r;
}

const bench_floor bench_floor_a = {"fused loops, own tanh", open_network, step, result, free};
