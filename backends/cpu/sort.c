/* merge_runs: of the heads of all runs the least comes next, of equals the one of the earliest
 * run. */
#include "calls.h"
#include "math_functions.h"
#include "pool.h"

enum { MOST_RUNS = 32 /* that are merged to one */, LEAST_WORK = 4096 /* elements of a piece */ };

/* Keys as integers in their order: -0 equals 0, a NaN is above all. */
static int64_t order_f32(float x) {
    const int32_t bits = (int32_t)k_bits_f32(x + 0.0f);
    return x != x ? INT32_MAX : bits ^ (bits >> 31 & INT32_MAX);
}

static int64_t order_f64(double x) {
    const int64_t bits = (int64_t)k_bits_f64(x + 0.0);
    return x != x ? INT64_MAX : bits ^ (bits >> 63 & INT64_MAX);
}

static int64_t key_at(uint8_t dtype, const char *x, int64_t at) {
    switch (dtype) {
    case WB_F32:
        return order_f32(((const float *)(const void *)x)[at]);
    case WB_F64:
        return order_f64(((const double *)(const void *)x)[at]);
    case WB_I32:
        return ((const int32_t *)(const void *)x)[at];
    default:
        return ((const int64_t *)(const void *)x)[at];
    }
}

/* One row of x: elements INNER apart. */
typedef struct row {
    uint8_t dtype;
    const char *x;
    int64_t inner;
    const int64_t *from;
    int64_t *to;
    int64_t first; /* place of element 0 */
} row;

static int64_t position_at(const row *r, int64_t s) { return r->from[r->first + s * r->inner]; }

static int64_t key_of(const row *r, int64_t s) {
    return key_at(r->dtype, r->x, r->first + position_at(r, s) * r->inner);
}

/* Runs of one: insertion. */
static void sort_few(const row *r, int64_t begin, int64_t end) {
    int64_t keys[MOST_RUNS], positions[MOST_RUNS];
    int count = 0;
    for (int64_t s = begin; s < end; s++, count++) {
        const int64_t key = key_of(r, s), position = position_at(r, s);
        int at = count;
        for (; at > 0 && key < keys[at - 1]; at--)
            keys[at] = keys[at - 1], positions[at] = positions[at - 1];
        keys[at] = key, positions[at] = position;
    }
    for (int i = 0; i < count; i++) r->to[r->first + (begin + i) * r->inner] = positions[i];
}

/* Without branches, which would be mispredicted. */
static int least_of(int count, const int64_t *keys) {
    int64_t key = keys[0];
    int least = 0;
    for (int k = 1; k < count; k++) {
        const bool is_less = keys[k] < key;
        least = is_less ? k : least;
        key = is_less ? keys[k] : key;
    }
    return least;
}

/* Places begin .. end - 1, which are runs of `run`. */
static void merge(const row *r, int64_t run, int64_t begin, int64_t end) {
    int64_t keys[MOST_RUNS], head[MOST_RUNS], stop[MOST_RUNS];
    int count = 0;
    for (int64_t at = begin; at < end; at += run, count++) {
        head[count] = at, stop[count] = at + run < end ? at + run : end;
        keys[count] = key_of(r, at);
    }
    for (int64_t s = begin; s < end; s++) {
        const int k = least_of(count, keys);
        r->to[r->first + s * r->inner] = position_at(r, head[k]);
        if (++head[k] < stop[k]) {
            keys[k] = key_of(r, head[k]);
            continue;
        }
        count--; /* the others keep their order */
        for (int i = k; i < count; i++)
            keys[i] = keys[i + 1], head[i] = head[i + 1], stop[i] = stop[i + 1];
    }
}

static int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t merges_of_a_piece(const wb_index_call *k) { return ceil_of(LEAST_WORK, k->merged); }

static void run_piece(void *context, int64_t piece, int worker) {
    const wb_cpu_call *c = context;
    const wb_index_call *k = &c->call->index;
    const int64_t blocks = ceil_of(k->size, k->merged), each = merges_of_a_piece(k);
    const int64_t all = k->inner * k->outer * blocks, last = (piece + 1) * each;
    (void)worker;
    for (int64_t n = piece * each; n < (last < all ? last : all); n++) {
        const int64_t block = n % blocks, line = n / blocks;
        const int64_t begin = block * k->merged, end = begin + k->merged;
        const row r = {.dtype = (uint8_t)k->index_dtype,
                       .x = c->a[0],
                       .inner = k->inner,
                       .from = (const int64_t *)(const void *)c->a[1],
                       .to = (int64_t *)(void *)c->a[2],
                       .first = line / k->inner * k->size * k->inner + line % k->inner};
        if (k->run == 1)
            sort_few(&r, begin, end < k->size ? end : k->size);
        else
            merge(&r, k->run, begin, end < k->size ? end : k->size);
    }
}

wb_status wb_cpu_call_merge_runs(const wb_cpu_call *c) {
    const wb_index_call *k = &c->call->index;
    const int64_t merges = k->inner * k->outer * ceil_of(k->size, k->merged);
    wb_cpu_parallel(ceil_of(merges, merges_of_a_piece(k)), run_piece, (void *)(uintptr_t)c);
    return WB_OK;
}
