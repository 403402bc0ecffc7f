#include "transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

bool bench_transformer_parse(const char *text, bench_transformer *s) {
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_BF16, WB_F16};
    long long n[6];
    char name[8] = "";
    if (sscanf(text, "%lld,%lld,%lld,%lld,%lld,%lld,%7s", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5],
               name) != 7)
        return false;
    for (int i = 0; i < 6; i++)
        if (n[i] < 1) return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, wb_dtype_name(types[i])) == 0) {
            const wb_dtype stream = types[i] == WB_F64 ? WB_F64 : WB_F32;
            *s = (bench_transformer){n[0], n[1], n[2], n[3], n[4], n[5], stream, types[i]};
            return n[1] % n[2] == 0;
        }
    return false;
}

/* ---- linear: y = W x + b in the type of x ---- */

typedef struct linear {
    wb_layer layer;
    wb_array *weight, *bias; /* (out, in), (out) */
} linear;

/* x  (in, N)     y  (out, N) */
static wb_array *apply_linear(wb_layer *layer, wb_array *x) {
    const linear *l = (const linear *)(const void *)layer;
    const wb_dtype dtype = wb_dtype_of(x);
    return wb_add(wb_matmul(wb_cast(l->weight, dtype), x), wb_cast(l->bias, dtype));
}
WB_FUNCTOR(linear, apply_linear, WB_ARRAY_FIELD(linear, weight), WB_ARRAY_FIELD(linear, bias));

/* ---- norm: (x - mean) / sqrt(var + eps) gain + bias, over the features ---- */

typedef struct norm {
    wb_layer layer;
    wb_array *gain, *bias; /* (features) */
} norm;

static wb_array *apply_norm(wb_layer *layer, wb_array *x) {
    const norm *n = (const norm *)(const void *)layer;
    return wb_add(wb_mul(wb_normalise(x, 1e-5, 0), n->gain), n->bias);
}
WB_FUNCTOR(norm, apply_norm, WB_ARRAY_FIELD(norm, gain), WB_ARRAY_FIELD(norm, bias));

/* ---- block, over columns: one for each place of each sequence ---- */

typedef struct block {
    wb_layer layer;
    wb_layer *norm1, *qkv, *out, *norm2, *up, *down;
    int64_t heads, context;
    wb_dtype compute;
} block;

/* Number i of q, k, v, which lie one after the other: (C, T, N) of (3 C, T N). */
static wb_array *part_of(const block *b, wb_array *qkv, int i) {
    const int64_t width = wb_size(qkv, 0) / 3;
    return wb_reshape(wb_slice(qkv, 0, i * width, (i + 1) * width, 1), width, b->context, -1);
}

/* x  (C, T N)     y  (C, T N) */
static wb_array *attention(const block *b, wb_array *x) {
    wb_array *qkv = wb_apply(b->qkv, x);
    wb_array *y = wb_attention(part_of(b, qkv, 0), part_of(b, qkv, 1), part_of(b, qkv, 2),
                               .heads = b->heads, .causal = true);
    return wb_apply(b->out, wb_reshape(y, wb_size(x, 0), wb_size(x, 1)));
}

static wb_array *apply_block(wb_layer *layer, wb_array *x) {
    const block *b = (const block *)(const void *)layer;
    x = wb_add(x, attention(b, wb_cast(wb_apply(b->norm1, x), b->compute)));
    wb_array *wide = wb_apply(b->up, wb_cast(wb_apply(b->norm2, x), b->compute));
    return wb_add(x, wb_apply(b->down, wb_gelu(wide)));
}
WB_FUNCTOR(block, apply_block, WB_CHILD_FIELD(block, norm1), WB_CHILD_FIELD(block, qkv),
           WB_CHILD_FIELD(block, out), WB_CHILD_FIELD(block, norm2), WB_CHILD_FIELD(block, up),
           WB_CHILD_FIELD(block, down));

/* ---- decoder ---- */

typedef struct decoder {
    wb_layer layer;
    wb_array *token, *place; /* (C, symbols), (C, T) */
    wb_layer *blocks, *norm;
    wb_dtype compute;
} decoder;

static wb_array *apply_decoder(wb_layer *layer, wb_array *symbols) {
    const decoder *d = (const decoder *)(const void *)layer;
    wb_array *x = wb_add(wb_gather(d->token, symbols, 1), d->place);
    x = wb_apply(d->blocks, wb_reshape(x, wb_size(x, 0), -1));
    x = wb_cast(wb_apply(d->norm, x), d->compute);
    wb_array *logits = wb_matmul_transposed(wb_cast(d->token, d->compute), x, true, false);
    logits = wb_reshape(logits, wb_size(d->token, 1), wb_size(symbols, 0), wb_size(symbols, 1));
    return wb_cast(logits, wb_dtype_of(d->token)); /* the loss of a half would be one, too */
}
WB_FUNCTOR(decoder, apply_decoder, WB_ARRAY_FIELD(decoder, token), WB_ARRAY_FIELD(decoder, place),
           WB_CHILD_FIELD(decoder, blocks), WB_CHILD_FIELD(decoder, norm));

/* ---- making ---- */

/* Numbers the weights in the order of the parameters. */
typedef struct maker {
    const bench_transformer *sizes;
    uint32_t weights;
} maker;

/* (out, in) from torch's memory order (out, in row by row), or as that memory is where `embeds`:
 * (width, count). */
static wb_array *weight(maker *m, int64_t out, int64_t in, bool embeds) {
    float *w = malloc((size_t)(out * in) * sizeof *w);
    if (!w) return NULL;
    const float bound = 0.0346410162f; /* 0.02 sqrt(3) */
    const uint32_t sequence = SEQUENCE_TRANSFORMER + m->weights++;
    bench_matrix(sequence, bound, embeds ? 1 : out, embeds ? out * in : in, w);
    wb_array *x = wb_cast(wb_from(WB_F32, w, out, in), m->sizes->stream);
    free(w);
    return wb_keep(x);
}

static wb_layer *linear_new(maker *m, int64_t in, int64_t out) {
    linear *l = wb_new(linear);
    if (!l) return NULL;
    l->weight = weight(m, out, in, false);
    l->bias = wb_keep(wb_zeros(m->sizes->stream, out));
    return &l->layer;
}

static wb_layer *norm_new(const maker *m) {
    norm *n = wb_new(norm);
    if (!n) return NULL;
    n->gain = wb_keep(wb_ones(m->sizes->stream, m->sizes->width));
    n->bias = wb_keep(wb_zeros(m->sizes->stream, m->sizes->width));
    return &n->layer;
}

static wb_layer *block_new(maker *m) {
    const int64_t width = m->sizes->width;
    block *b = wb_new(block);
    if (!b) return NULL;
    b->heads = m->sizes->heads, b->context = m->sizes->context, b->compute = m->sizes->compute;
    b->norm1 = norm_new(m);
    b->qkv = linear_new(m, width, 3 * width);
    b->out = linear_new(m, width, width);
    b->norm2 = norm_new(m);
    b->up = linear_new(m, width, 4 * width);
    b->down = linear_new(m, 4 * width, width);
    return &b->layer;
}

static wb_layer *blocks_new(maker *m) {
    wb_layer **blocks = calloc((size_t)m->sizes->layers, sizeof(wb_layer *));
    if (!blocks) return NULL;
    for (int64_t i = 0; i < m->sizes->layers; i++) blocks[i] = block_new(m);
    wb_layer *chain = wb_chain_make(m->sizes->layers, blocks);
    free(blocks);
    return chain;
}

wb_layer *bench_transformer_make(const bench_transformer *sizes) {
    maker m = {.sizes = sizes};
    wb_scope_open();
    decoder *d = wb_new(decoder);
    if (d) {
        d->compute = sizes->compute;
        d->token = weight(&m, sizes->width, sizes->symbols, true);
        d->place = weight(&m, sizes->width, sizes->context, true);
        d->blocks = blocks_new(&m);
        d->norm = norm_new(&m);
    }
    if (wb_scope_close() == WB_OK && !wb_failed()) return &d->layer;
    wb_free(d);
    return NULL;
}
