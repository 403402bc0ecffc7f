/* MultiHeadAttention: queries, keys and values by a Dense each, attention for each head, and a
 * Dense over all heads. */
#include "layers/layer.h"

enum { Q, K, V, OUT, PROJECTIONS };

typedef struct wb_attention_layer {
    wb_layer layer;
    wb_multi_head_attention_desc desc;
    wb_layer *proj[PROJECTIONS]; /* Dense layers */
    wb_layer *attn_drop;         /* a Dropout, which says whether dropout is active */
} wb_attention_layer;

static wb_attention_layer *attention_of(wb_layer *layer) {
    return (wb_attention_layer *)(void *)layer;
}

/* ---- applying ---- */

/* q; q and kv; q, k and v; these and a bias; behind all of them a mask, which is bool. */
static bool take_inputs(int count, wb_array *const *inputs, wb_attention_desc *d) {
    if (count > 0 && wb_dtype_of(inputs[count - 1]) == WB_BOOL) d->mask = inputs[--count];
    if (count < 1 || count > 4) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "takes q, k, v, a bias and a mask, of which q is needed, got %d arrays",
                      count + (d->mask != NULL));
        return false;
    }
    d->q = inputs[0], d->k = inputs[count > 1 ? 1 : 0];
    d->v = count > 2 ? inputs[2] : d->k;
    if (count > 3) d->bias = inputs[3];
    return true;
}

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_attention_layer *l = attention_of(layer);
    wb_attention_desc d = {.heads = l->desc.heads, .causal = l->desc.causal};
    if (!take_inputs(count, inputs, &d)) return 0;
    if (wb_is_active(l->attn_drop)) d.dropout = l->desc.dropout;
    d.q = wb_apply(l->proj[Q], d.q);
    d.k = d.q ? wb_apply(l->proj[K], d.k) : NULL;
    d.v = d.k ? wb_apply(l->proj[V], d.v) : NULL;
    wb_array *y = d.v ? wb_attention_make(d) : NULL;
    results[0] = y ? wb_apply(l->proj[OUT], y) : NULL;
    return results[0] != NULL;
}

/* ---- settings ---- */

#define CHILD(name_, number)                                                                       \
    {                                                                                              \
        .name = name_, .offset = offsetof(wb_attention_layer, proj[number]),                       \
        .kind = WB_FIELD_CHILD, .trainable = true, .part = &wb_dense_class                         \
    }
#define ROW(name, member, ...) WB_ROW_NAMED(wb_attention_layer, member, name, __VA_ARGS__)

static const wb_field fields[] = {
    ROW("in", in, WB_FIELD_PROJECTIONS, .low = 1, .text_only = true),
    ROW("nheads", heads, WB_FIELD_INTEGER, .usual = 8, .low = 1),
    CHILD("q_proj", Q),
    CHILD("k_proj", K),
    CHILD("v_proj", V),
    {.name = "attn_drop",
     .offset = offsetof(wb_attention_layer, attn_drop),
     .kind = WB_FIELD_CHILD,
     .part = &wb_dropout_class},
    CHILD("out_proj", OUT),
    ROW("bias", with_bias, WB_FIELD_WITH, .text_only = true),
    ROW("dropout_prob", dropout, WB_FIELD_REAL, .high = 1, .text_only = true),
    ROW("causal", causal, WB_FIELD_BOOL, .text_only = true),
};

/* (out, in) of a Dense, or NULL. */
static const wb_array *weight_of(wb_layer *dense) {
    wb_array **slot = dense ? wb_slot_at("MultiHeadAttention", dense, "weight") : NULL;
    return slot && *slot && (*slot)->ndim == 2 ? *slot : NULL;
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
        d->v = v->sizes[0], d->out = out->sizes[0];
    wb_array **bias = wb_slot_at("MultiHeadAttention", l->proj[Q], "bias");
    if (bias && *bias) d->with_bias = true;
}

static bool fill(wb_attention_layer *l, int number, int64_t in, int64_t out) {
    static const char *const names[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    const wb_multi_head_attention_desc *d = &l->desc;
    wb_layer **at = &l->proj[number];
    if (!*at) *at = wb_dense(in, out, .no_bias = !d->with_bias, .init = d->init, .dtype = d->dtype);
    const wb_array *w = weight_of(*at);
    if (w && w->sizes[0] == out && w->sizes[1] == in) return true;
    if (w)
        (void)wb_fail(WB_ERROR_SHAPE, "MultiHeadAttention: %s must be (%lld, %lld), got %s",
                      names[number], (long long)out, (long long)in, wb_text_of(w));
    return false;
}

static bool divides(const char *name, int64_t size, int64_t heads) {
    if (size % heads == 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "MultiHeadAttention: %s must be divisible by nheads, got %lld and %lld", name,
                  (long long)size, (long long)heads);
    return false;
}

static bool complete(wb_layer *layer) {
    wb_attention_layer *l = attention_of(layer);
    const wb_multi_head_attention_desc *d = &l->desc;
    if (!divides("qk", d->qk, d->heads) || !divides("v", d->v, d->heads)) return false;
    if (!l->attn_drop && !(l->attn_drop = wb_dropout(d->dropout))) return false;
    return fill(l, Q, d->in, d->qk) && fill(l, K, d->k_in, d->qk) && fill(l, V, d->v_in, d->v) &&
           fill(l, OUT, d->v, d->out);
}

const wb_layer_class wb_multi_head_attention_class = {.name = "MultiHeadAttention",
                                                      .size_bytes = sizeof(wb_attention_layer),
                                                      .fields = fields,
                                                      .field_count = sizeof fields / sizeof *fields,
                                                      .forward_many = forward,
                                                      .derive = derive,
                                                      .complete = complete,
                                                      .before_keys = "; "};

wb_layer *wb_multi_head_attention_make(wb_multi_head_attention_desc desc) {
    return wb_layer_make(&wb_multi_head_attention_class, &desc, sizeof desc);
}
