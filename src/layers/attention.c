/* MultiHeadAttention: queries, keys and values by a Dense each, attention for each head, and a
 * Dense over all heads. */
#include <string.h>

#include "array/state.h"
#include "gradient/mode.h"
#include "layers/layer.h"
#include "ops/ops.h"

enum { Q, K, V, OUT, PROJECTIONS };

typedef struct wb_attention_layer {
    wb_layer layer;
    wb_multi_head_attention_desc desc;
    wb_layer *proj[PROJECTIONS]; /* Dense layers */
    wb_layer *attn_drop;         /* a Dropout, which says whether dropout is active */
    wb_positions positions;
    wb_array *keys, *values; /* (features, length, ...) of a cache; NULL: a sequence begins */
} wb_attention_layer;

static wb_attention_layer *attention_of(wb_layer *layer) {
    return (wb_attention_layer *)(void *)layer;
}

static int64_t kv_heads(const wb_multi_head_attention_desc *d) {
    return d->kv_heads ? d->kv_heads : d->heads;
}

/* ---- applying ---- */

/* (q), (q, kv), (q, k, v) or (q, k, v, bias), and perhaps a bool mask as the last one. */
static bool take_inputs(int count, wb_array *const *inputs, wb_attention_desc *d) {
    if (count > 0 && wb_dtype_of(inputs[count - 1]) == WB_BOOL) d->mask = inputs[--count];
    if (count < 1 || count > 4) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "expected (q), (q, kv), (q, k, v) or (q, k, v, bias), and perhaps a bool "
                      "mask as the last one, got %d arrays",
                      count + (d->mask != NULL));
        return false;
    }
    d->q = inputs[0], d->k = inputs[count > 1 ? 1 : 0];
    d->v = count > 2 ? inputs[2] : d->k;
    if (count > 3) d->bias = inputs[3];
    return true;
}

/* ---- with a cache ---- */

/* A new cache, for x's features and batch. */
static wb_array *empty(const wb_array *x, int64_t length) {
    int64_t sizes[WB_MAX_DIMS];
    memcpy(sizes, x->sizes, sizeof sizes);
    sizes[1] = length;
    return wb_full_make((wb_dtype)x->dtype, 0, x->ndim, sizes);
}

/* The cache with x at the positions from `first` on, in a plan whose key does not depend on
 * `first`. */
static wb_array *put(wb_array **cache, wb_array *x, int64_t first, int64_t length) {
    if (!x) return NULL;
    wb_array *before = *cache ? *cache : empty(x, length);
    const double count = (double)x->sizes[1];
    wb_array *place = wb_sub(wb_iota(WB_I32, 0, length), wb_late_position(first));
    wb_array *is_new = wb_and(wb_ge(place, wb_constant(0)), wb_lt(place, wb_constant(count)));
    if (x->sizes[1] != 1) x = wb_gather(x, wb_clamp(place, 0, count - 1), 1);
    wb_array *after = wb_select(is_new ? wb_unsqueeze(is_new, 0) : NULL, x, before);
    return after && wb_state_write(cache, after) == WB_OK ? after : NULL;
}

static bool same_batch(const wb_array *a, const wb_array *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 2; d < a->ndim; d++)
        if (a->sizes[d] != b->sizes[d]) return false;
    return true;
}

/* Rotates q and k by their positions. */
static bool rotate(const wb_attention_layer *l, wb_attention_desc *d, wb_array *positions) {
    const wb_multi_head_attention_desc *s = &l->desc;
    if (s->rotary == 0) return true;
    wb_rotary_desc r =
        WB_DESC(rotary, d->q, .heads = s->heads, .base = s->rotary, .positions = positions,
                .factor = s->rotary_factor, .low = s->rotary_low, .high = s->rotary_high,
                .length = s->rotary_length);
    d->q = wb_rotary_make(r);
    r.x = d->k, r.heads = kv_heads(s);
    d->k = wb_rotary_make(r);
    return d->q && d->k;
}

/* (keys, queries): whether each query sees each key, by the positions of both. */
static wb_array *visible(const wb_multi_head_attention_desc *d, int64_t keys, wb_array *queries) {
    if (!queries) return NULL;
    wb_array *key = wb_iota(WB_I32, 0, keys, queries->sizes[0]), *at = wb_unsqueeze(queries, 0);
    const double window = (double)d->window;
    wb_array *before = d->causal ? wb_le(key, at) : wb_lt(key, wb_add_number(at, window));
    if (d->window == 0) return before;
    return wb_and(before, wb_gt(key, wb_add_number(at, -window)));
}

/* Without a cache, where the last query is at the last key; joins a mask that is given. */
static bool look_around(const wb_attention_layer *l, wb_attention_desc *d) {
    if (l->desc.window == 0 || d->q->ndim < 2 || d->k->ndim < 2) return true;
    const int64_t count = d->q->sizes[1], keys = d->k->sizes[1];
    if (count <= l->desc.window && keys <= l->desc.window) return true;
    wb_array *queries = wb_add_number(wb_iota(WB_I32, 0, count), (double)(keys - count));
    wb_array *mask = visible(&l->desc, keys, queries);
    d->mask = d->mask ? wb_and(d->mask, mask) : mask;
    d->causal = false;
    return d->mask != NULL;
}

/* The keys and values of x join those before, and each query sees its own and what came before. */
static bool go_on(wb_attention_layer *l, wb_attention_desc *d) {
    const int64_t length = l->positions.length, count = d->q->sizes[1];
    int64_t first;
    if (l->keys && !same_batch(l->keys, d->k)) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "the cache %s was filled by another batch, got keys %s: call wb_reset before "
                      "a new sequence",
                      wb_text_of(l->keys), wb_text_of(d->k));
        return false;
    }
    if (!wb_pass_positions(&l->layer, d->q, &first)) return false;
    wb_array *positions = wb_add(wb_iota(WB_I32, 0, count), wb_late_position(first));
    if (!rotate(l, d, positions)) return false;
    d->k = put(&l->keys, d->k, first, length), d->v = put(&l->values, d->v, first, length);
    d->mask = visible(&l->desc, length, positions);
    d->causal = false;
    return d->k && d->v && d->mask;
}

static bool has_cache(const wb_attention_layer *l) {
    return l->positions.length > 0 && !wb_is_sizing();
}

static int64_t most_positions(const wb_layer *layer) {
    return ((const wb_attention_layer *)(const void *)layer)->desc.causal ? INT64_MAX : 0;
}

static bool takes_alone(int count) {
    if (count == 1) return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "with a cache it takes one array, x, got %d; wb_cache(model, 0) removes the cache", count);
    return false;
}

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    wb_attention_layer *l = attention_of(layer);
    wb_attention_desc d = WB_DESC(attention, NULL, .heads = l->desc.heads,
                                  .kv_heads = kv_heads(&l->desc), .causal = l->desc.causal);
    if (has_cache(l) && !takes_alone(count)) return 0;
    if (!take_inputs(count, inputs, &d)) return 0;
    if (wb_is_active(l->attn_drop)) d.dropout = l->desc.dropout;
    d.q = wb_apply(l->proj[Q], d.q);
    d.k = d.q ? wb_apply(l->proj[K], d.k) : NULL;
    d.v = d.k ? wb_apply(l->proj[V], d.v) : NULL;
    if (!d.v) return 0;
    const bool has_before = has_cache(l) && d.q->ndim >= 2;
    if (!(has_before ? go_on(l, &d) : rotate(l, &d, NULL) && look_around(l, &d))) return 0;
    wb_array *y = wb_attention_make(d);
    results[0] = y ? wb_apply(l->proj[OUT], y) : NULL;
    return results[0] != NULL;
}

/* ---- settings ---- */

#define CHILD(name_, number, torch_)                                                               \
    {                                                                                              \
        .name = name_, .offset = offsetof(wb_attention_layer, proj[number]),                       \
        .kind = WB_FIELD_CHILD, .trainable = true, .part = &wb_dense_class, .torch = torch_        \
    }
#define ROW(name, member, ...) WB_ROW_NAMED(wb_attention_layer, member, name, __VA_ARGS__)

static const char *const sizes[] = {"in", "k_in", "v_in", "qk", "v", "out"};

static const wb_field fields[] = {
    ROW("in", in, WB_FIELD_PAIR, .usual = -1, .low = 1, .form = "(q, k, v) => (qk, v) => out",
        .choices = sizes, .text_only = true),
    ROW("nheads", heads, WB_FIELD_INTEGER, .usual = 8, .low = 1, .zero_counts = true),
    ROW("kv_heads", kv_heads, WB_FIELD_INTEGER, .text_only = true),
    CHILD("q_proj", Q, "in_proj_* part 1/3|q_proj_*|* part 1/3"),
    CHILD("k_proj", K, "in_proj_* part 2/3|k_proj_*|* part 2/3"),
    CHILD("v_proj", V, "in_proj_* part 3/3|v_proj_*|* part 3/3"),
    {.name = "attn_drop",
     .offset = offsetof(wb_attention_layer, attn_drop),
     .kind = WB_FIELD_CHILD,
     .part = &wb_dropout_class},
    CHILD("out_proj", OUT, NULL),
    ROW("bias", bias, WB_FIELD_BOOL, .text_only = true),
    ROW("out_bias", out_bias, WB_FIELD_BOOL, .usual = 1, .text_only = true),
    ROW("dropout_prob", dropout, WB_FIELD_REAL, .high = 1, .text_only = true),
    ROW("causal", causal, WB_FIELD_BOOL, .text_only = true),
    ROW("window", window, WB_FIELD_INTEGER, .text_only = true),
    ROW("rotary", rotary, WB_FIELD_REAL, .text_only = true),
    ROW("rotary_factor", rotary_factor, WB_FIELD_REAL, .text_only = true),
    ROW("rotary_low", rotary_low, WB_FIELD_REAL, .text_only = true),
    ROW("rotary_high", rotary_high, WB_FIELD_REAL, .text_only = true),
    ROW("rotary_length", rotary_length, WB_FIELD_INTEGER, .text_only = true),
    WB_HIDDEN_FIELD(wb_attention_layer, keys),
    WB_HIDDEN_FIELD(wb_attention_layer, values),
};

/* (out, in) of a Dense, or NULL. */
static const wb_array *weight_of(wb_layer *dense) {
    wb_array **slot = dense ? wb_slot_at("MultiHeadAttention", dense, "weight") : NULL;
    return slot && *slot && (*slot)->ndim == 2 ? *slot : NULL;
}

static bool has_bias(wb_layer *dense) {
    wb_array **bias = dense ? wb_slot_at("MultiHeadAttention", dense, "bias") : NULL;
    return bias && *bias;
}

static void derive(wb_layer *layer) {
    wb_attention_layer *l = attention_of(layer);
    wb_multi_head_attention_desc *d = &l->desc;
    const wb_array *q = weight_of(l->proj[Q]), *k = weight_of(l->proj[K]),
                   *v = weight_of(l->proj[V]), *out = weight_of(l->proj[OUT]);
    if (l->attn_drop && d->dropout == 0)
        d->dropout = *(const double *)wb_field_at(l->attn_drop, &wb_dropout_class.fields[0]);
    if (!q || !k || !v || !out) return;
    if (d->in == 0)
        d->in = q->sizes[1], d->k_in = k->sizes[1], d->v_in = v->sizes[1], d->qk = q->sizes[0],
        d->v = out->sizes[1], d->out = out->sizes[0];
    if (d->kv_heads == 0 && k->sizes[0] < q->sizes[0] && d->heads > 0 && d->heads <= q->sizes[0])
        d->kv_heads = k->sizes[0] / (q->sizes[0] / d->heads);
    if (has_bias(l->proj[Q])) d->bias = true, d->out_bias = has_bias(l->proj[OUT]);
}

static bool fill(wb_attention_layer *l, int number, int64_t in, int64_t out) {
    static const char *const names[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    const wb_multi_head_attention_desc *d = &l->desc;
    wb_layer **at = &l->proj[number];
    const bool bias = d->bias && (number != OUT || d->out_bias);
    if (!*at) *at = wb_dense(in, out, .bias = bias, .init = d->init, .dtype = d->dtype);
    const wb_array *w = weight_of(*at);
    if (w && w->sizes[0] == out && w->sizes[1] == in) return true;
    if (w)
        (void)wb_fail(WB_ERROR_SHAPE, "MultiHeadAttention: %s must be (%lld, %lld), got %s",
                      names[number], (long long)out, (long long)in, wb_text_of(w));
    return false;
}

static bool divides(const char *name, int64_t size, int64_t heads) {
    if (size % heads == 0) return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "MultiHeadAttention: %s must be divisible by heads, got %lld features and %lld heads", name,
        (long long)size, (long long)heads);
    return false;
}

/* What each number alone may be, the rows say. */
static bool check_settings(const wb_multi_head_attention_desc *d) {
    if (d->rotary != 0 && d->qk / d->heads % 2 != 0)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "MultiHeadAttention: with rotary each head must have an even number of "
                      "features, got %lld / %lld",
                      (long long)d->qk, (long long)d->heads);
    else if (d->heads % kv_heads(d) != 0)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "MultiHeadAttention: kv_heads must divide heads, got %lld and %lld",
                      (long long)d->kv_heads, (long long)d->heads);
    else
        return d->rotary == 0 || wb_check_rotary("MultiHeadAttention", d->rotary_factor,
                                                 d->rotary_low, d->rotary_high, d->rotary_length);
    return false;
}

static bool complete(wb_layer *layer) {
    wb_attention_layer *l = attention_of(layer);
    wb_multi_head_attention_desc *d = &l->desc;
    if (!divides("qk", d->qk, d->heads) || !divides("v", d->v, d->heads)) return false;
    if (!check_settings(d)) return false;
    if (d->kv_heads == d->heads) d->kv_heads = 0;
    if (!l->attn_drop && !(l->attn_drop = wb_dropout(d->dropout))) return false;
    const int64_t k = d->qk / d->heads * kv_heads(d), v = d->v / d->heads * kv_heads(d);
    return fill(l, Q, d->in, d->qk) && fill(l, K, d->k_in, k) && fill(l, V, d->v_in, v) &&
           fill(l, OUT, d->v, d->out);
}

const wb_layer_class wb_multi_head_attention_class = {.name = "MultiHeadAttention",
                                                      WB_LAYER_ROWS(wb_attention_layer, fields),
                                                      .forward_many = forward,
                                                      .derive = derive,
                                                      .complete = complete,
                                                      .positions =
                                                          offsetof(wb_attention_layer, positions),
                                                      .most_positions = most_positions,
                                                      .before_keys = "; "};

wb_layer *wb_multi_head_attention_make(wb_multi_head_attention_desc desc) {
    return wb_layer_of_desc(&wb_multi_head_attention_class, &desc, sizeof desc);
}
