/* Calls of every kind for test_render_call.c: rows of sizes, and the cases made of them, calls with
 * their arrays. */
#ifndef WB_TESTS_CALL_CASES_H
#define WB_TESTS_CALL_CASES_H

#include <weber/plugin.h>

#include "support/support.h"

enum { MOST_CASES = 160, MOST_ARGUMENTS = WB_CALL_ARGUMENTS };

/* ---- cases: calls with their arrays ---- */

typedef struct argument {
    wb_dtype dtype;
    int64_t count;
    bool is_result;
} argument;

typedef struct call_case {
    char name[160];
    wb_call call;
    argument arguments[MOST_ARGUMENTS];
    int narguments;
    int64_t terms;      /* of a sum of the result */
    int64_t indices;    /* argument 1 or 0 holds indices below this */
    int index_argument; /* -1: none */
    bool has_bad_index;
    int64_t *offsets; /* of batches; freed with the case */
} call_case;

static call_case cases[MOST_CASES];
static int case_count;

static call_case *new_case(wb_call_kind kind, wb_dtype dtype, const char *name) {
    assert_true(case_count < MOST_CASES);
    call_case *c = &cases[case_count++];
    *c = (call_case){.call = {.kind = kind, .dtype = dtype}, .terms = 1, .index_argument = -1};
    static const char *const kinds[] = {
#define WB_CALL(name, ...) #name,
#include <weber/ops.def>
    };
    (void)snprintf(c->name, sizeof c->name, "%s of %s, %s", kinds[kind], wb_dtype_name(dtype),
                   name);
    return c;
}

static void add_argument(call_case *c, wb_dtype dtype, int64_t count, bool is_result) {
    c->arguments[c->narguments++] = (argument){dtype, count, is_result};
}

static void forget_cases(void) {
    for (int i = 0; i < case_count; i++) free(cases[i].offsets);
    case_count = 0;
}

/* ---- matrix products ---- */

enum { IRREGULAR = -1 /* as a step: matrices lie in no order */ };

typedef struct product_row {
    const char *name;
    wb_dtype dtype;
    const char *transposes;               /* "tn": A is transposed */
    int sizes[3];                         /* m, n, k */
    int more;                             /* leading dimensions are larger by this */
    int batch[3], steps_a[3], steps_b[3]; /* up to three dimensions, or none; steps in matrices */
} product_row;

static const product_row products[] = {
    {"tiny", WB_F32, "nn", {3, 2, 4}, 0, {0}, {0}, {0}},
    {"one element", WB_F32, "nn", {1, 1, 1}, 0, {0}, {0}, {0}},
    {"places that 32 bits cannot hold", WB_F32, "nn", {5, 1, 1}, 1 << 30, {0}, {0}, {0}},
    {"without terms", WB_F32, "nn", {5, 3, 0}, 0, {0}, {0}, {0}},
    {"without rows", WB_F32, "nn", {0, 3, 2}, 0, {0}, {0}, {0}},
    {"without columns", WB_F32, "nn", {4, 0, 2}, 0, {0}, {0}, {0}},
    {"whole tiles", WB_F32, "nn", {96, 64, 64}, 0, {0}, {0}, {0}},
    {"ragged, A transposed", WB_F32, "tn", {101, 67, 45}, 3, {0}, {0}, {0}},
    {"ragged, B transposed", WB_F32, "nt", {101, 67, 45}, 3, {0}, {0}, {0}},
    {"ragged, both transposed", WB_F32, "tt", {53, 70, 131}, 1, {0}, {0}, {0}},
    {"more terms than one pass has", WB_F32, "nn", {50, 20, 1100}, 2, {0}, {0}, {0}},
    {"more terms than one pass, A transposed", WB_F32, "tn", {50, 20, 1100}, 0, {0}, {0}, {0}},
    {"many small tiles", WB_F32, "nn", {20, 24, 30}, 0, {3, 2}, {1, 3}, {0, 1}},
    {"a batch that repeats A", WB_F32, "nt", {7, 9, 5}, 0, {4}, {0}, {1}},
    {"a batch in three dimensions", WB_F32, "tn", {6, 5, 7}, 0, {2, 3, 2}, {1, 0, 2}, {0, 1, 3}},
    {"a batch in no order", WB_F32, "nn", {6, 5, 7}, 0, {7}, {IRREGULAR}, {IRREGULAR}},
    {"a row", WB_F32, "nn", {1, 83, 37}, 0, {0}, {0}, {0}},
    {"a row, both transposed", WB_F32, "tt", {1, 83, 37}, 0, {0}, {0}, {0}},
    {"a column, A transposed", WB_F32, "tn", {83, 1, 37}, 2, {0}, {0}, {0}},
    {"few rows", WB_F32, "nn", {10, 150, 64}, 0, {0}, {0}, {0}},
    {"few columns", WB_F32, "nn", {150, 10, 64}, 0, {0}, {0}, {0}},
    {"tiles of 128", WB_F32, "nn", {1100, 2049, 17}, 0, {0}, {0}, {0}},
    {"ragged", WB_F64, "nn", {61, 35, 29}, 1, {0}, {0}, {0}},
    {"ragged, transposed", WB_F64, "tt", {61, 35, 29}, 1, {0}, {0}, {0}},
    {"ragged", WB_F16, "nn", {61, 35, 29}, 1, {0}, {0}, {0}},
    {"more terms than one pass, B transposed", WB_F16, "nt", {61, 19, 600}, 0, {0}, {0}, {0}},
    {"ragged, A transposed", WB_BF16, "tn", {49, 35, 29}, 1, {0}, {0}, {0}},
    {"a batch", WB_BF16, "nn", {5, 6, 7}, 0, {3}, {1}, {1}},
};

static int64_t batch_of(const product_row *r) {
    int64_t batch = 1;
    for (int d = 0; d < 3 && r->batch[d]; d++) batch *= r->batch[d];
    return batch;
}

/* Number of the matrix of a batch entry. */
static int64_t matrix_of(const product_row *r, const int steps[3], int64_t entry) {
    if (steps[0] == IRREGULAR) return entry * entry * 3 % 7;
    int64_t matrix = 0;
    for (int d = 0; d < 3 && r->batch[d]; d++) {
        matrix += entry % r->batch[d] * steps[d];
        entry /= r->batch[d];
    }
    return matrix;
}

/* Elements from the first of a stored matrix to its last. */
static int64_t extent(int64_t ld, int64_t rows, int64_t columns) {
    return rows > 0 && columns > 0 ? ld * (columns - 1) + rows : 0;
}

static void add_product(const product_row *r) {
    call_case *c = new_case(WB_CALL_matmul, r->dtype, r->name);
    wb_matmul_call *p = &c->call.matmul;
    *p = (wb_matmul_call){.transpose_a = r->transposes[0] == 't',
                          .transpose_b = r->transposes[1] == 't',
                          .m = r->sizes[0],
                          .n = r->sizes[1],
                          .k = r->sizes[2],
                          .batch = batch_of(r)};
    p->lda = (p->transpose_a ? p->k : p->m) + r->more, p->lda += p->lda == 0;
    p->ldb = (p->transpose_b ? p->n : p->k) + r->more, p->ldb += p->ldb == 0;
    p->ldc = p->m > 1 ? p->m : 1;
    const int64_t a = extent(p->lda, p->transpose_a ? p->k : p->m, p->transpose_a ? p->m : p->k),
                  b = extent(p->ldb, p->transpose_b ? p->n : p->k, p->transpose_b ? p->k : p->n);
    int64_t matrices[2] = {1, 1};
    if (p->batch > 1) {
        c->offsets = calloc((size_t)(3 * p->batch), sizeof *c->offsets);
        p->offset_a = c->offsets, p->offset_b = c->offsets + p->batch,
        p->offset_c = c->offsets + 2 * p->batch;
        for (int64_t i = 0; i < p->batch; i++) {
            const int64_t of_a = matrix_of(r, r->steps_a, i), of_b = matrix_of(r, r->steps_b, i);
            c->offsets[i] = of_a * a;
            c->offsets[p->batch + i] = of_b * b;
            c->offsets[2 * p->batch + i] =
                (r->steps_a[0] == IRREGULAR ? p->batch - 1 - i : i) * p->ldc * p->n;
            if (of_a >= matrices[0]) matrices[0] = of_a + 1;
            if (of_b >= matrices[1]) matrices[1] = of_b + 1;
        }
    }
    add_argument(c, r->dtype, a * matrices[0], false);
    add_argument(c, r->dtype, b * matrices[1], false);
    add_argument(c, r->dtype, p->ldc * p->n * p->batch, true);
    c->terms = p->k;
}

/* ---- windows ---- */

/* Zeros stand for the usual: size 1, stride 1, dilation 1, as many filters as channels. */
typedef struct window_row {
    const char *name;
    int in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    int counts[4]; /* channels, filters, groups, images */
    bool flip;
} window_row;

static const window_row convolutions[] = {
    {"a small network's", {12, 11}, {3, 3}, {0}, {0}, {0}, {0}, {3, 10, 1, 3}, true},
    {"padded", {9, 7}, {3, 3}, {0}, {0}, {1, 1}, {1, 1}, {17, 9, 1, 2}, true},
    {"uneven pads, groups", {9, 10}, {3, 2}, {2, 3}, {0}, {0, 1}, {2, 0}, {6, 4, 2, 2}, true},
    {"1-D, dilated", {23}, {4}, {0}, {3}, {5}, {2}, {2, 3, 1, 2}, false},
    {"3-D", {6, 5, 4}, {2, 3, 2}, {1, 2, 1}, {2, 1, 1}, {1, 0, 1}, {0}, {2, 3, 1, 2}, true},
    {"channels in groups", {6, 6}, {3, 3}, {0}, {0}, {1, 1}, {1, 1}, {5, 5, 5, 3}, true},
    {"one place", {3, 3}, {3, 3}, {0}, {0}, {0}, {0}, {4, 20, 1, 30}, true},
    {"1 x 1", {5, 4}, {1, 1}, {0}, {0}, {0}, {0}, {20, 12, 1, 2}, false},
    {"1 x 1, as matrices", {13, 11}, {1, 1}, {0}, {0}, {0}, {0}, {6, 10, 2, 3}, false},
    {"no image", {5, 4}, {3, 3}, {0}, {0}, {0}, {0}, {2, 3, 1, 0}, true},
    {"8 x 5", {16, 15}, {8, 5}, {1, 2}, {0}, {3, 2}, {4, 2}, {2, 3, 1, 2}, true},
    {"8 x 5, dilated", {30, 15}, {8, 5}, {2, 1}, {3, 2}, {7, 0}, {2, 3}, {1, 9, 1, 1}, true},
    {"pads wider than that", {4, 4}, {2, 2}, {0}, {0}, {3, 2}, {2, 3}, {2, 2, 1, 2}, false},
};

static const window_row pools[] = {
    {"2 x 2", {8, 6}, {2, 2}, {2, 2}, {0}, {0}, {0}, {3, 0, 1, 2}, false},
    {"3 x 2, overlapping", {9, 8}, {3, 2}, {2, 1}, {0}, {1, 0}, {0, 1}, {2, 0, 1, 2}, true},
    {"1-D, dilated", {21}, {3}, {2}, {2}, {2}, {3}, {2, 0, 1, 2}, false},
    {"3-D", {4, 5, 6}, {2, 2, 3}, {2, 1, 3}, {0}, {0}, {0}, {2, 0, 1, 1}, false},
    {"windows in the padding", {4, 3}, {2, 2}, {1, 2}, {0}, {3, 3}, {3, 3}, {1, 0, 1, 2}, false},
    {"a large kernel", {9, 12}, {6, 6}, {2, 3}, {0}, {2, 5}, {5, 0}, {2, 0, 1, 1}, false},
    {"no image", {4, 4}, {2, 2}, {2, 2}, {0}, {0}, {0}, {2, 0, 1, 0}, false},
};

static int64_t or_one(int value) { return value ? value : 1; }

static wb_window_call window_of(const window_row *r) {
    wb_window_call w = {.channels = r->counts[0],
                        .filters = r->counts[1] ? r->counts[1] : r->counts[0],
                        .groups = r->counts[2],
                        .batch = r->counts[3],
                        .flip = r->flip};
    for (int d = 0; d < 3; d++) {
        w.in[d] = or_one(r->in[d]);
        w.kernel[d] = or_one(r->kernel[d]);
        w.stride[d] = or_one(r->stride[d]);
        w.dilation[d] = or_one(r->dilation[d]);
        w.pad[d] = r->pad[d];
        const int64_t room =
            w.in[d] + r->pad[d] + r->pad_end[d] - w.dilation[d] * (w.kernel[d] - 1);
        w.out[d] = (room - 1) / w.stride[d] + 1;
    }
    return w;
}

static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static void add_window(const window_row *r, wb_call_kind kind, wb_dtype dtype) {
    call_case *c = new_case(kind, dtype, r->name);
    const wb_window_call w = c->call.window = window_of(r);
    const int64_t taps = volume(w.kernel), x = volume(w.in) * w.channels * w.batch,
                  y = volume(w.out) * w.filters * w.batch, columns = y * taps,
                  weights = taps * w.channels / w.groups * w.filters;
    const struct {
        int64_t counts[3], terms;
    } rows[] = {
        [WB_CALL_conv_forward] = {{x, weights, y}, taps * w.channels / w.groups},
        [WB_CALL_conv_data] = {{y, weights, x}, taps * w.filters / w.groups},
        [WB_CALL_conv_filter] = {{x, y, weights}, volume(w.out) * w.batch},
        [WB_CALL_maxpool] = {{x, y, y}, 1},
        [WB_CALL_pool_scatter] = {{y, y, x}, taps},
        [WB_CALL_pool_gather] = {{x, y, y}, 1},
        [WB_CALL_meanpool] = {{x, y, -1}, taps},
        [WB_CALL_meanpool_data] = {{y, x, -1}, taps},
        [WB_CALL_unfold] = {{x, columns, -1}, 1},
        [WB_CALL_fold] = {{columns, x, -1}, taps},
    };
    const bool has_index = kind == WB_CALL_pool_scatter || kind == WB_CALL_pool_gather;
    const int last = rows[kind].counts[2] < 0 ? 1 : 2;
    for (int i = 0; i <= last; i++) {
        const bool is_index = (has_index && i == 1) || (kind == WB_CALL_maxpool && i == 2);
        add_argument(c, is_index ? WB_I32 : dtype, rows[kind].counts[i],
                     i == last || (kind == WB_CALL_maxpool && i == 1));
    }
    c->terms = rows[kind].terms;
}

/* ---- indices ---- */

typedef struct index_row {
    const char *name;
    int inner, size, outer, count;
    bool has_bad_index;
} index_row;

static const index_row indices[] = {
    {"rows of a matrix", 7, 5, 1, 12, false},  {"elements", 1, 33, 1, 400, false},
    {"a middle dimension", 3, 4, 5, 6, false}, {"one row", 1, 1, 1, 1, false},
    {"no index", 4, 3, 2, 0, false},           {"nothing to add to", 0, 3, 2, 4, false},
    {"many rows", 2, 3000, 1, 700, false},     {"a bad index", 3, 4, 2, 300, true},
};

static void add_index(const index_row *r, wb_call_kind kind, wb_dtype dtype, wb_dtype index_dtype) {
    call_case *c = new_case(kind, dtype, r->name);
    c->call.index = (wb_index_call){.inner = r->inner,
                                    .size = r->size,
                                    .outer = r->outer,
                                    .count = r->count,
                                    .index_dtype = (uint8_t)index_dtype};
    const int64_t x = (int64_t)r->inner * r->size * r->outer,
                  y = (int64_t)r->inner * r->count * r->outer;
    const bool gathers = kind == WB_CALL_gather;
    c->index_argument = gathers ? 1 : 0;
    if (gathers) add_argument(c, dtype, x, false);
    add_argument(c, index_dtype, r->count, false);
    add_argument(c, dtype, y, gathers);
    if (!gathers) add_argument(c, dtype, x, true);
    c->indices = r->size, c->has_bad_index = r->has_bad_index;
    c->terms = r->count;
}

/* Runs of one are in order whatever the positions are, which need not be different ones. */
static void add_merge(const index_row *r, wb_dtype key, int64_t merged) {
    call_case *c = new_case(WB_CALL_merge_runs, WB_I64, r->name);
    const int64_t count = (int64_t)r->inner * r->size * r->outer;
    c->call.index = (wb_index_call){.inner = r->inner,
                                    .size = r->size,
                                    .outer = r->outer,
                                    .count = count,
                                    .run = 1,
                                    .merged = merged,
                                    .index_dtype = (uint8_t)key};
    c->index_argument = 1, c->indices = r->size;
    add_argument(c, key, count, false);
    add_argument(c, WB_I64, count, false);
    add_argument(c, WB_I64, count, true);
}

static void add_argmax(const index_row *r, wb_dtype key, int64_t run) {
    call_case *c = new_case(WB_CALL_argmax, WB_I64, r->name);
    c->call.index = (wb_index_call){.inner = r->inner,
                                    .size = r->size,
                                    .outer = r->outer,
                                    .run = run,
                                    .index_dtype = (uint8_t)key};
    add_argument(c, key, (int64_t)r->inner * r->size * r->outer, false);
    add_argument(c, WB_I64, (int64_t)r->inner * r->outer * ((r->size + run - 1) / run), true);
}

static void add_cumsum(const index_row *r, wb_dtype dtype) {
    call_case *c = new_case(WB_CALL_cumsum, dtype, r->name);
    const int64_t count = (int64_t)r->inner * r->size * r->outer;
    c->call.index = (wb_index_call){.inner = r->inner, .size = r->size, .outer = r->outer};
    c->terms = r->size;
    add_argument(c, dtype, count, false);
    add_argument(c, dtype, count, true);
}

/* ---- attention ---- */

typedef struct attention_row {
    const char *name;
    wb_dtype dtype;
    int dk, dv, heads, kv_heads, queries, keys, batch;
    bool causal;
    const char *mask, *bias; /* "kqhb": dimensions that are not 1; NULL: there is none */
    int gap;                 /* between the columns of q; k has twice as much, v three times */
} attention_row;

static const attention_row attentions[] = {
    {"one key", WB_F32, 1, 1, 1, 1, 1, 1, 1, false, NULL, NULL, 0},
    {"without queries", WB_F32, 1, 1, 1, 1, 0, 5, 1, false, NULL, NULL, 0},
    {"causal, grouped", WB_F32, 16, 8, 4, 2, 70, 130, 2, true, NULL, NULL, 0},
    {"causal, queries that see none", WB_F32, 16, 8, 1, 1, 70, 50, 2, true, NULL, NULL, 0},
    {"ragged, a bias", WB_F32, 19, 35, 2, 1, 101, 77, 2, false, NULL, "kqhb", 0},
    {"a mask", WB_F32, 8, 8, 2, 2, 40, 200, 2, true, "kq", NULL, 0},
    {"a mask of keys", WB_F32, 8, 8, 2, 2, 40, 60, 2, true, "kb", NULL, 0},
    {"a bias of heads, a mask", WB_F32, 8, 128, 2, 2, 40, 70, 2, false, "kqh", "h", 0},
    {"f64", WB_F64, 19, 35, 2, 2, 65, 77, 1, true, "kq", "kq", 0},
    {"parts of wider arrays", WB_F32, 16, 8, 4, 2, 70, 130, 2, true, NULL, NULL, 5},
};

/* Elements of a mask or bias. */
static int64_t read_dims(const char *dims, const int64_t sizes[4], int64_t strides[4]) {
    int64_t count = 1;
    for (int d = 0; d < 4; d++) {
        if (!strchr(dims, "kqhb"[d])) continue;
        strides[d] = count, count *= sizes[d];
    }
    return count;
}

/* q, k or v: columns that are so far apart. */
static void add_columns(call_case *c, int64_t step, int64_t columns, int64_t strides[2]) {
    strides[0] = step, strides[1] = step * columns;
    add_argument(c, c->call.dtype, strides[1] * c->call.attention.batch, false);
}

static void add_attention(const attention_row *r, wb_call_kind kind) {
    call_case *c = new_case(kind, r->dtype, r->name);
    const bool forward = kind == WB_CALL_attention;
    wb_attention_call *a = &c->call.attention;
    *a = (wb_attention_call){.dk = r->dk,
                             .dv = r->dv,
                             .queries = r->queries,
                             .keys = r->keys,
                             .heads = r->heads,
                             .kv_heads = r->kv_heads,
                             .batch = r->batch,
                             .is_causal = r->causal,
                             .has_mask = r->mask != NULL,
                             .has_bias = r->bias != NULL};
    const int64_t of_q = a->queries * a->heads * a->batch, of_k = a->keys * a->kv_heads * a->batch;
    const int64_t sizes[] = {a->keys, a->queries, a->heads, a->batch};
    add_columns(c, a->dk * a->heads + r->gap, a->queries, a->q_strides);
    add_columns(c, a->dk * a->kv_heads + 2 * r->gap, a->keys, a->k_strides);
    add_columns(c, a->dv * a->kv_heads + 3 * r->gap, a->keys, a->v_strides);
    if (!forward) {
        add_argument(c, r->dtype, of_q * a->dv, false);
        add_argument(c, r->dtype, of_q, false);
        add_argument(c, r->dtype, of_q * a->dv, false);
    }
    if (r->mask) add_argument(c, WB_BOOL, read_dims(r->mask, sizes, a->mask_strides), false);
    if (r->bias) add_argument(c, r->dtype, read_dims(r->bias, sizes, a->bias_strides), false);
    add_argument(c, r->dtype, of_q * (forward ? a->dv : a->dk), true);
    add_argument(c, r->dtype, forward ? of_q : of_k * a->dk, true);
    if (!forward) add_argument(c, r->dtype, of_k * a->dv, true);
    c->terms = a->keys + a->queries * a->heads;
}

/* ---- sampling ---- */

static void add_grid(wb_call_kind kind, wb_dtype dtype, int variant) {
    call_case *c = new_case(kind, dtype, "a grid");
    const int dims = 1 + variant % 3;
    wb_grid_call *g = &c->call.grid;
    *g = (wb_grid_call){.in = {5, dims > 1 ? 4 : 1, dims > 2 ? 3 : 1},
                        .out = {7, dims > 1 ? 3 : 1, dims > 2 ? 2 : 1},
                        .channels = 3,
                        .batch = 2,
                        .dims = dims,
                        .padding = variant % 3,
                        .align_corners = variant % 2,
                        .slopes = variant / 6};
    const int64_t out = g->out[0] * g->out[1] * g->out[2], planes = g->channels * g->batch;
    const int64_t x = g->in[0] * g->in[1] * g->in[2] * planes, y = out * planes;
    const bool samples = kind == WB_CALL_grid_sample;
    add_argument(c, dtype, samples ? x : y, false);
    add_argument(c, dtype, out * dims * g->batch, false);
    add_argument(c, dtype, samples ? y : x, true);
    c->terms = samples ? 8 : out;
}

/* ---- the cases of a test ---- */

/* Compilers that cannot run anything here are slow, and differ little: they see fewer rows. */
static bool sees_few;

static void add_products(void) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (!sees_few || i % 2 == 1 || products[i].dtype != WB_F32) add_product(&products[i]);
}

static void add_convolutions(void) {
    static const wb_dtype others[] = {WB_F64, WB_F16, WB_BF16};
    const size_t count = sees_few ? 4 : sizeof convolutions / sizeof *convolutions;
    for (size_t i = 0; i < count; i++)
        for (wb_call_kind kind = WB_CALL_conv_forward; kind <= WB_CALL_conv_filter; kind++) {
            add_window(&convolutions[i], kind, WB_F32);
            if (i == 2) add_window(&convolutions[i], kind, others[(i + kind) % 3]);
        }
}

static void add_pools(void) {
    static const wb_dtype others[] = {WB_F64, WB_F16, WB_BF16};
    const size_t count = sees_few ? 2 : sizeof pools / sizeof *pools;
    for (size_t i = 0; i < count; i++)
        for (wb_call_kind kind = WB_CALL_maxpool; kind <= WB_CALL_fold; kind++) {
            add_window(&pools[i], kind, WB_F32);
            if (i == 1) add_window(&pools[i], kind, others[kind % 3]);
        }
}

static void add_attentions(void) {
    const size_t count = sizeof attentions / sizeof *attentions;
    for (size_t i = 0; i < count; i++) {
        if (sees_few && i % 4 != 0) continue;
        add_attention(&attentions[i], WB_CALL_attention);
        add_attention(&attentions[i], WB_CALL_attention_backward);
    }
}

static void add_grids(void) {
    for (int variant = 0; variant < (sees_few ? 3 : 12); variant++)
        for (wb_call_kind kind = WB_CALL_grid_sample; kind <= WB_CALL_grid_put; kind++)
            add_grid(kind, variant % 4 == 3 ? WB_F64 : WB_F32, variant);
}

static void add_indices(void) {
    static const wb_dtype all[] = {WB_F32, WB_F64, WB_I32, WB_I64, WB_U8, WB_F16, WB_BF16, WB_BOOL};
    const size_t count = sees_few ? 1 : sizeof indices / sizeof *indices;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < (i == 0 ? 8 : 2); k++) {
            const wb_dtype dtype = all[k], index = (i + (size_t)k) % 2 ? WB_I32 : WB_I64;
            add_index(&indices[i], WB_CALL_gather, dtype, index);
            if (dtype != WB_BOOL) add_index(&indices[i], WB_CALL_scatter_add, dtype, index);
        }
    static const wb_dtype keys[] = {WB_F32, WB_F64, WB_I32, WB_I64};
    for (size_t i = 0; i < 4 && i < count; i++)
        for (int k = 0; k < 4; k++) {
            add_merge(&indices[i], keys[k], i % 2 ? 32 : indices[i].size);
            add_argmax(&indices[i], keys[k], i % 2 ? 3 : indices[i].size);
            add_cumsum(&indices[i], keys[k]);
        }
}

#endif
