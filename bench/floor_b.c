/* Case b by hand: the project's matrix products, and fused loops between them. */
#include <math.h>
#include <stdlib.h>

#include "floor_math.h"
#include "floors.h"
#include "gemm.h"

enum { N = B_BATCH, IN = B_IN, H = B_HIDDEN, OUT = CLASSES };

typedef struct parameter {
    float *p, *g, *m, *v;
    int64_t count;
} parameter;

typedef struct network {
    parameter w1, b1, w2, b2;
    float *x[BENCH_INPUTS], *h, *dh, *out;
    int32_t y[BENCH_INPUTS][N];
    wb_gemm forward1, forward2, back2, weight2, weight1;
    void *scratch;
    int64_t steps;
    double loss;
} network;

static float *numbers(int64_t count) {
    float *memory = aligned_alloc(64, ((size_t)count * sizeof *memory + 63) / 64 * 64);
    if (!memory) abort();
    for (int64_t i = 0; i < count; i++) memory[i] = 0;
    return memory;
}

static parameter parameter_of(int64_t count) {
    return (parameter){numbers(count), numbers(count), numbers(count), numbers(count), count};
}

static wb_gemm product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k) {
    return (wb_gemm){.dtype = WB_F32,
                     .transpose_a = transpose_a,
                     .transpose_b = transpose_b,
                     .m = m,
                     .n = n,
                     .k = k,
                     .lda = transpose_a ? k : m,
                     .ldb = transpose_b ? n : k,
                     .ldc = m,
                     .batch = 1};
}

static void *open_network(int threads) {
    (void)threads; /* those of the products, which the caller has set */
    network *n = calloc(1, sizeof *n);
    if (!n) return NULL;
    n->w1 = parameter_of(H * IN), n->b1 = parameter_of(H);
    n->w2 = parameter_of(OUT * H), n->b2 = parameter_of(OUT);
    bench_weight(SEQUENCE_WEIGHT + 1, H, IN, n->w1.p);
    bench_weight(SEQUENCE_WEIGHT + 2, OUT, H, n->w2.p);
    n->h = numbers(H * N), n->dh = numbers(H * N), n->out = numbers(OUT * N);
    for (uint32_t k = 0; k < BENCH_INPUTS; k++) {
        n->x[k] = numbers(IN * N);
        bench_values(SEQUENCE_INPUT + k, 0, 1, IN * N, n->x[k]);
        bench_labels(SEQUENCE_LABEL + k, CLASSES, N, n->y[k]);
    }
    n->forward1 = product(false, false, H, N, IN);
    n->forward2 = product(false, false, OUT, N, H);
    n->back2 = product(true, false, H, N, OUT);
    n->weight2 = product(false, true, OUT, H, N);
    n->weight1 = product(false, true, H, IN, N);
    const wb_gemm *all[] = {&n->forward1, &n->forward2, &n->back2, &n->weight2, &n->weight1};
    size_t most = 64;
    for (int i = 0; i < 5; i++) {
        const size_t wanted = (size_t)wb_cpu_gemm_scratch(all[i]);
        if (wanted > most) most = wanted;
    }
    n->scratch = aligned_alloc(64, (most + 63) / 64 * 64);
    return n;
}

/* Loss of one column of logits, which become their gradient. */
static float cross_entropy(float *logits, int32_t label) {
    float most = logits[0], sum = 0;
    for (int c = 1; c < OUT; c++) most = logits[c] > most ? logits[c] : most;
    const float wanted = logits[label] - most;
    for (int c = 0; c < OUT; c++) sum += logits[c] = floor_exp(logits[c] - most);
    for (int c = 0; c < OUT; c++) logits[c] *= 1 / (sum * N);
    logits[label] -= 1.0f / N;
    return logf(sum) - wanted;
}

static void update(parameter *p, float rate, float correction) {
    float *restrict values = p->p, *restrict m = p->m, *restrict v = p->v;
    const float *restrict g = p->g;
    for (int64_t i = 0; i < p->count; i++)
        floor_adam(&values[i], g[i], &m[i], &v[i], rate, correction);
}

static void forward(network *n, const float *x) {
    wb_cpu_gemm(&n->forward1, n->w1.p, x, n->h, n->scratch, NULL, NULL);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < H; j++) {
            const float z = n->h[i * H + j] + n->b1.p[j];
            n->h[i * H + j] = z > 0 ? z : 0;
        }
    wb_cpu_gemm(&n->forward2, n->w2.p, n->h, n->out, n->scratch, NULL, NULL);
}

static void backward(network *n, const float *x, const int32_t *labels) {
    float total = 0;
    for (int c = 0; c < OUT; c++) n->b2.g[c] = 0;
    for (int j = 0; j < H; j++) n->b1.g[j] = 0;
    for (int i = 0; i < N; i++) {
        float *logits = n->out + i * OUT;
        for (int c = 0; c < OUT; c++) logits[c] += n->b2.p[c];
        total += cross_entropy(logits, labels[i]);
        for (int c = 0; c < OUT; c++) n->b2.g[c] += logits[c];
    }
    n->loss = (double)total / N;
    wb_cpu_gemm(&n->weight2, n->out, n->h, n->w2.g, n->scratch, NULL, NULL);
    wb_cpu_gemm(&n->back2, n->w2.p, n->out, n->dh, n->scratch, NULL, NULL);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < H; j++) {
            const float d = n->h[i * H + j] > 0 ? n->dh[i * H + j] : 0;
            n->dh[i * H + j] = d;
            n->b1.g[j] += d;
        }
    wb_cpu_gemm(&n->weight1, n->dh, x, n->w1.g, n->scratch, NULL, NULL);
}

static void step(void *state) {
    network *n = state;
    const int64_t k = n->steps++ % BENCH_INPUTS;
    forward(n, n->x[k]);
    backward(n, n->x[k], n->y[k]);
    const double t = (double)n->steps;
    const float rate = (float)(1e-3 / (1 - pow(0.9, t)));
    const float correction = (float)(1 / (1 - pow(0.999, t)));
    update(&n->w1, rate, correction), update(&n->b1, rate, correction);
    update(&n->w2, rate, correction), update(&n->b2, rate, correction);
}

static double sum_of(const parameter *p) {
    double sum = 0;
    for (int64_t i = 0; i < p->count; i++) sum += fabs((double)p->p[i]);
    return sum;
}

static bench_result result(void *state) {
    const network *n = state;
    return (bench_result){n->loss,
                          sum_of(&n->w1) + sum_of(&n->b1) + sum_of(&n->w2) + sum_of(&n->b2)};
}

static void release(parameter *p) { free(p->p), free(p->g), free(p->m), free(p->v); }

static void close_network(void *state) {
    network *n = state;
    release(&n->w1), release(&n->b1), release(&n->w2), release(&n->b2);
    for (int k = 0; k < BENCH_INPUTS; k++) free(n->x[k]);
    free(n->h), free(n->dh), free(n->out), free(n->scratch);
    free(n);
}

const bench_floor bench_floor_b = {"own matrix products, fused loops", open_network, step, result,
                                   close_network};
