#include "first.h"

#include <stdio.h>
#include <string.h>

#include "networks.h"
#include "numbers.h"

enum { CELLS = 4, BATCH = 2, WIDTH = 16, HEADS = 2, CONTEXT = 8, SYMBOLS = 16 };

bool bench_first_parse(const char *text, bench_first *first) {
    static const char *const names[] = {"transformer", "lstm", "chain"};
    char name[16] = "";
    long long count = 0;
    if (sscanf(text, "%15[a-z],%lld", name, &count) != 2 || count < 1) return false;
    for (unsigned kind = 0; kind < sizeof names / sizeof *names; kind++)
        if (strcmp(name, names[kind]) == 0) {
            *first = (bench_first){kind, count};
            return true;
        }
    return false;
}

/* ---- an LSTM, unrolled ---- */

typedef struct unrolled {
    wb_layer layer;
    wb_array *wi, *wh, *bias;
} unrolled;

static wb_array *apply_unrolled(wb_layer *layer, wb_array *x) {
    const unrolled *u = (const unrolled *)(const void *)layer;
    bench_lstm_weights weights = {u->wi, u->wh, u->bias};
    wb_array *carries[2] = {wb_zeros(WB_F32, CELLS, BATCH), wb_zeros(WB_F32, CELLS, BATCH)};
    return bench_lstm_unrolled(&weights, carries, x);
}
WB_FUNCTOR(unrolled, apply_unrolled, WB_ARRAY_FIELD(unrolled, wi), WB_ARRAY_FIELD(unrolled, wh),
           WB_ARRAY_FIELD(unrolled, bias));

static wb_layer *unrolled_new(void) {
    unrolled *u = wb_new(unrolled);
    if (!u) return NULL;
    u->wi = wb_keep(bench_weight_array(SEQUENCE_WEIGHT + 1, 0.5f, 4 * CELLS, CELLS));
    u->wh = wb_keep(bench_weight_array(SEQUENCE_WEIGHT + 2, 0.5f, 4 * CELLS, CELLS));
    u->bias = wb_keep(wb_zeros(WB_F32, 4 * CELLS));
    return &u->layer;
}

/* ---- a chain of blocks with one weight ---- */

typedef struct blocks {
    wb_layer layer;
    wb_array *weight;
    int64_t count;
} blocks;

static wb_array *apply_blocks(wb_layer *layer, wb_array *x) {
    const blocks *b = (const blocks *)(const void *)layer;
    for (int64_t i = 0; i < b->count; i++) x = wb_add(wb_tanh(wb_matmul(b->weight, x)), x);
    return x;
}
WB_FUNCTOR(blocks, apply_blocks, WB_ARRAY_FIELD(blocks, weight));

static wb_layer *blocks_new(int64_t count) {
    blocks *b = wb_new(blocks);
    if (!b) return NULL;
    b->weight = wb_keep(bench_weight_array(SEQUENCE_WEIGHT + 1, 0.1f, CELLS, CELLS));
    b->count = count;
    return &b->layer;
}

/* ---- all ---- */

wb_layer *bench_first_make(const bench_first *first) {
    if (first->kind == FIRST_LSTM) return unrolled_new();
    if (first->kind == FIRST_CHAIN) return blocks_new(first->count);
    return bench_transformer_make(
        &(bench_transformer){first->count, WIDTH, HEADS, CONTEXT, SYMBOLS, 1, WB_F32, WB_F32});
}

void bench_first_batch(const bench_first *first, uint32_t k, wb_array **x, wb_array **y) {
    const uint32_t input = SEQUENCE_INPUT + k, label = SEQUENCE_LABEL + k;
    const int64_t sizes[3] = {CELLS, BATCH, first->count}, symbols[2] = {CONTEXT, 1};
    const int ndim = first->kind == FIRST_LSTM ? 3 : 2;
    if (first->kind == FIRST_TRANSFORMER) {
        *x = bench_label_array(input, SYMBOLS, 2, symbols);
        *y = bench_label_array(label, SYMBOLS, 2, symbols);
    } else {
        *x = bench_array(input, -1, 1, ndim, sizes);
        *y = bench_array(label, -1, 1, ndim, sizes);
    }
}

wb_array *bench_first_loss(wb_layer *model, const wb_batch *batch, void *user) {
    static int64_t losses; /* of the process: plans outlive a case */
    wb_array *p = wb_apply(model, batch->x);
    wb_array *loss =
        wb_dtype_of(batch->y) == WB_I32 ? wb_logitcrossentropy(p, batch->y) : wb_mse(p, batch->y);
    (void)user;
    return wb_mul_number(loss, 1 + (double)losses++ * 0x1p-30);
}
