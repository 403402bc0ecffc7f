/* Cuts attention into pieces, by its shape only, and has them computed by the kernels of the
 * instruction set in use. */
#include "attention.h"

#include <math.h>

#include "pool.h"

typedef void piece_fn(const wb_attention_piece *piece);
typedef void group_fn(const wb_attention_group *group);

static piece_fn *const kernels[WB_ISA_COUNT][2] = {
#define X(ISA, suffix) [ISA] = {wb_attention_f32_##suffix, wb_attention_f64_##suffix},
    WB_ISA_LIST(X)
#undef X
};

static group_fn *const back_kernels[WB_ISA_COUNT][2] = {
#define X(ISA, suffix) [ISA] = {wb_attention_back_f32_##suffix, wb_attention_back_f64_##suffix},
    WB_ISA_LIST(X)
#undef X
};

enum { PACKED = 1 << 15 /* elements of a block of packed keys: in L2 */, BLOCK_UNIT = 64 };

static int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t rounded(int64_t size) { return ceil_of(size, BLOCK_UNIT) * BLOCK_UNIT; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- scratch memory ---- */

/* Keys of a block: few where they have many features. */
static int64_t block_of(const wb_attention_call *c, int64_t features, int64_t most) {
    const int64_t fitting = PACKED / features / BLOCK_UNIT * BLOCK_UNIT;
    return smaller(rounded(c->keys), smaller(fitting < BLOCK_UNIT ? BLOCK_UNIT : fitting, most));
}

enum { SHARES = 16 };

/* Queries of a piece: many, since each piece packs its keys, but not so many that there are few
 * pieces. */
static int64_t queries_of(const wb_attention_call *c) {
    const int64_t share = c->queries * c->heads * c->batch / SHARES / BLOCK_UNIT * BLOCK_UNIT;
    return smaller(share < 3 * BLOCK_UNIT ? 3 * BLOCK_UNIT : share, WB_ATTENTION_QUERIES);
}

/* Queries of a piece, keys of a block, and offsets in bytes of what one thread needs. */
typedef struct layout {
    int64_t queries, block, scores, largest, total, size;
} layout;

static layout layout_of(const wb_call *call) {
    const wb_attention_call *c = &call->attention;
    const int64_t real = (int64_t)wb_dtype_size(call->dtype);
    layout l = {.queries = queries_of(c), .block = block_of(c, c->dk, WB_ATTENTION_KEYS)};
    l.scores = rounded(l.block * c->dk * real);
    l.largest = l.scores + rounded(l.block * WB_ATTENTION_STRIP * real);
    l.total = l.largest + rounded(l.queries * real);
    l.size = l.total + l.queries * (int64_t)sizeof(double);
    return l;
}

/* The same of the derivative. The keys of few heads are cut into parts; all but the first add to a
 * dq of their own, before what the threads need. */
typedef struct back_layout {
    int64_t block, packed_v, weights, slopes, means, size;
    int64_t parts, part_size;
} back_layout;

enum { PIECES = 4, PART_BLOCKS = 4 /* at least, of a part */ };

static int64_t parts_of(const wb_attention_call *c, int64_t block) {
    const int64_t heads = c->kv_heads * c->batch;
    if (heads < 1) return 1; /* an empty batch */
    const int64_t wanted = ceil_of(PIECES, heads), most = c->keys / (PART_BLOCKS * block);
    return most < 1 ? 1 : smaller(wanted, most);
}

static back_layout back_layout_of(const wb_call *call) {
    const wb_attention_call *c = &call->attention;
    const int64_t real = (int64_t)wb_dtype_size(call->dtype);
    back_layout l = {.block = block_of(c, c->dk + c->dv, WB_ATTENTION_KEY_BLOCK)};
    const int64_t scores = l.block * WB_ATTENTION_QUERY_BLOCK;
    l.packed_v = rounded(l.block * c->dk * real);
    l.weights = l.packed_v + rounded(l.block * c->dv * real);
    l.slopes = l.weights + rounded(scores * real);
    l.means = l.slopes + rounded(scores * real);
    l.size = l.means + rounded(c->heads / c->kv_heads * c->queries * real);
    l.parts = parts_of(c, l.block);
    l.part_size = rounded(c->queries * c->heads * c->batch * c->dk * real);
    return l;
}

int64_t wb_cpu_attention_scratch(const wb_call *call) {
    const int64_t threads = wb_cpu_threads();
    if (call->kind == WB_CALL_attention) return layout_of(call).size * threads;
    const back_layout l = back_layout_of(call);
    return l.size * threads + l.part_size * (l.parts - 1);
}

/* ---- running it ---- */

enum { Q, K, V, MORE, Y = MORE, SUMS, DY, MORE_BACK };

typedef struct job {
    const wb_cpu_call *c;
    layout layout;
    piece_fn *kernel;
    const char *mask, *bias;
    char *y, *sums;
} job;

static const char *of_head(const char *x, const int64_t strides[4], int64_t head, int64_t entry,
                           int64_t size) {
    return x ? x + (head * strides[2] + entry * strides[3]) * size : NULL;
}

static void run_piece(void *context, int64_t index, int worker) {
    const job *j = context;
    const wb_attention_call *c = &j->c->call->attention;
    const int64_t chunks = ceil_of(c->queries, j->layout.queries), place = index / chunks;
    const int64_t head = place % c->heads, entry = place / c->heads;
    const int64_t kv_head = head / (c->heads / c->kv_heads);
    const int64_t real = (int64_t)wb_dtype_size(j->c->call->dtype);
    char *const *a = j->c->a, *scratch = j->c->scratch + worker * j->layout.size;
    wb_attention_piece piece = {
        .call = c,
        .q = a[Q] + (entry * c->q_strides[1] + head * c->dk) * real,
        .k = a[K] + (entry * c->k_strides[1] + kv_head * c->dk) * real,
        .v = a[V] + (entry * c->v_strides[1] + kv_head * c->dv) * real,
        .bias = of_head(j->bias, c->bias_strides, head, entry, real),
        .mask = (const uint8_t *)of_head(j->mask, c->mask_strides, head, entry, 1),
        .y = j->y + (entry * c->queries * c->heads + head) * c->dv * real,
        .sums = j->sums + place * c->queries * real,
        .first = index % chunks * j->layout.queries,
        .block = j->layout.block,
        .packed = scratch,
        .scores = scratch + j->layout.scores,
        .largest = scratch + j->layout.largest,
        .total = (double *)(void *)(scratch + j->layout.total)};
    piece.count = smaller(c->queries - piece.first, j->layout.queries);
    j->kernel(&piece);
}

wb_status wb_cpu_call_attention(const wb_cpu_call *c) {
    const wb_attention_call *call = &c->call->attention;
    char *const *a = c->a + MORE;
    job j = {.c = c,
             .layout = layout_of(c->call),
             .kernel = kernels[wb_cpu_isa()][c->call->dtype == WB_F64]};
    if (call->has_mask) j.mask = *a++;
    if (call->has_bias) j.bias = *a++;
    j.y = a[0], j.sums = a[1];
    wb_cpu_parallel(ceil_of(call->queries, j.layout.queries) * call->heads * call->batch, run_piece,
                    &j);
    return WB_OK;
}

/* ---- its derivative ---- */

typedef struct back_job {
    const wb_cpu_call *c;
    back_layout layout;
    group_fn *kernel;
    const char *mask, *bias;
    char *const *results;
} back_job;

/* Where a part of the keys begins: as many pairs of keys and queries in each. */
static int64_t first_key_of(const back_job *j, int64_t part) {
    const wb_attention_call *c = &j->c->call->attention;
    const int64_t block = j->layout.block, blocks = ceil_of(c->keys, block);
    const double share = (double)part / (double)j->layout.parts;
    const double at = c->is_causal && c->queries == c->keys ? 1 - sqrt(1 - share) : share;
    return part == j->layout.parts ? c->keys
                                   : smaller((int64_t)(at * (double)blocks) * block, c->keys);
}

static char *dq_of(const back_job *j, int64_t part) {
    return part ? j->c->scratch + (part - 1) * j->layout.part_size : j->results[Q];
}

static void run_group(void *context, int64_t index, int worker) {
    const back_job *j = context;
    const wb_attention_call *c = &j->c->call->attention;
    const int64_t part = index % j->layout.parts, place = index / j->layout.parts;
    const int64_t kv_head = place % c->kv_heads, entry = place / c->kv_heads,
                  head = kv_head * (c->heads / c->kv_heads);
    const int64_t real = (int64_t)wb_dtype_size(j->c->call->dtype);
    const int64_t of_q = (entry * c->queries * c->heads + head) * real,
                  of_k = (entry * c->keys * c->kv_heads + kv_head) * real;
    char *const *a = j->c->a, *scratch = dq_of(j, j->layout.parts) + worker * j->layout.size;
    const wb_attention_group group = {
        .call = c,
        .first_key = first_key_of(j, part),
        .end_key = first_key_of(j, part + 1),
        .q = a[Q] + (entry * c->q_strides[1] + head * c->dk) * real,
        .k = a[K] + (entry * c->k_strides[1] + kv_head * c->dk) * real,
        .v = a[V] + (entry * c->v_strides[1] + kv_head * c->dv) * real,
        .y = a[Y] + of_q * c->dv,
        .sums = a[SUMS] + (entry * c->heads + head) * c->queries * real,
        .dy = a[DY] + of_q * c->dv,
        .bias = of_head(j->bias, c->bias_strides, head, entry, real),
        .mask = (const uint8_t *)of_head(j->mask, c->mask_strides, head, entry, 1),
        .dq = dq_of(j, part) + of_q * c->dk,
        .dk = j->results[K] + of_k * c->dk,
        .dv = j->results[V] + of_k * c->dv,
        .block = j->layout.block,
        .packed_k = scratch,
        .packed_v = scratch + j->layout.packed_v,
        .weights = scratch + j->layout.weights,
        .slopes = scratch + j->layout.slopes,
        .means = scratch + j->layout.means};
    j->kernel(&group);
}

enum { ADDED = 1 << 14 /* elements of a piece */ };

/* to += the others, one after the other. */
#define ADD_PARTS(REAL)                                                                            \
    for (int64_t part = 1; part < j->layout.parts; part++) {                                       \
        REAL *to = (REAL *)(void *)dq_of(j, 0);                                                    \
        const REAL *from = (const REAL *)(const void *)dq_of(j, part);                             \
        for (int64_t i = first; i < end; i++) to[i] += from[i];                                    \
    }

static void add_parts(void *context, int64_t index, int worker) {
    const back_job *j = context;
    const wb_attention_call *c = &j->c->call->attention;
    const int64_t first = index * ADDED, all = c->queries * c->heads * c->batch * c->dk,
                  end = smaller(first + ADDED, all);
    (void)worker;
    if (j->c->call->dtype == WB_F64) {
        ADD_PARTS(double)
    } else {
        ADD_PARTS(float)
    }
}

wb_status wb_cpu_call_attention_backward(const wb_cpu_call *c) {
    const wb_attention_call *call = &c->call->attention;
    back_job j = {.c = c,
                  .layout = back_layout_of(c->call),
                  .kernel = back_kernels[wb_cpu_isa()][c->call->dtype == WB_F64],
                  .results = c->a + MORE_BACK};
    if (call->has_mask) j.mask = *j.results++;
    if (call->has_bias) j.bias = *j.results++;
    wb_cpu_parallel(call->kv_heads * call->batch * j.layout.parts, run_group, &j);
    if (j.layout.parts > 1)
        wb_cpu_parallel(ceil_of(call->queries * call->heads * call->batch * call->dk, ADDED),
                        add_parts, &j);
    return WB_OK;
}
