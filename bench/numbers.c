#include "numbers.h"

#include <math.h>
#include <stdlib.h>

float bench_uniform(uint32_t sequence, uint32_t i) {
    uint32_t h = i * 2654435761u + sequence * 40503u + 12345u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    h *= 3266489917u;
    h ^= h >> 16;
    return (float)(h >> 8) * 0x1p-24f;
}

void bench_matrix(uint32_t sequence, float bound, int64_t out, int64_t in, float *w) {
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            const float u = bench_uniform(sequence, (uint32_t)(o * in + i));
            w[o + out * i] = (2 * u - 1) * bound;
        }
}

void bench_weight(uint32_t sequence, int64_t out, int64_t in, float *w) {
    bench_matrix(sequence, sqrtf(6.0f / (float)(in + out)), out, in, w);
}

void bench_values(uint32_t sequence, float low, float high, int64_t count, float *x) {
    for (int64_t i = 0; i < count; i++)
        x[i] = low + (high - low) * bench_uniform(sequence, (uint32_t)i);
}

void bench_labels(uint32_t sequence, int64_t classes, int64_t count, int32_t *labels) {
    for (int64_t i = 0; i < count; i++)
        labels[i] = (int32_t)(bench_uniform(sequence, (uint32_t)i) * (float)classes);
}

void bench_target(int64_t count, const float *x, float *y) {
    for (int64_t i = 0; i < count; i++) y[i] = x[i] * (2 - x[i] * x[i]);
}

static int64_t count_of(int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    return count;
}

wb_array *bench_array(uint32_t sequence, float low, float high, int ndim, const int64_t *sizes) {
    const int64_t count = count_of(ndim, sizes);
    float *data = malloc((size_t)count * sizeof *data);
    if (!data) return NULL;
    bench_values(sequence, low, high, count, data);
    wb_array *x = wb_from_make(WB_F32, data, ndim, sizes);
    free(data);
    return x;
}

wb_array *bench_label_array(uint32_t sequence, int64_t classes, int ndim, const int64_t *sizes) {
    const int64_t count = count_of(ndim, sizes);
    int32_t *labels = malloc((size_t)count * sizeof *labels);
    if (!labels) return NULL;
    bench_labels(sequence, classes, count, labels);
    wb_array *y = wb_from_make(WB_I32, labels, ndim, sizes);
    free(labels);
    return y;
}

wb_array *bench_weight_array(uint32_t sequence, float bound, int64_t out, int64_t in) {
    float *w = malloc((size_t)(in * out) * sizeof *w);
    if (!w) return NULL;
    bench_matrix(sequence, bound, out, in, w);
    wb_array *x = wb_from(WB_F32, w, out, in);
    free(w);
    return x;
}

double bench_sum_of_magnitudes(wb_array *x) {
    const int64_t count = wb_count(x);
    double *values = malloc((size_t)count * sizeof *values + 1), sum = 0;
    if (values && wb_read_f64(x, values, count) == WB_OK)
        for (int64_t i = 0; i < count; i++) sum += fabs(values[i]);
    free(values);
    return sum;
}
