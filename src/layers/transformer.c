/* TransformerEncoderBlock and TransformerDecoderBlock (Vaswani et al. 2017): attention and a
 * feed-forward part, each with a skip connection and a norm. */
#include "layers/layer.h"

typedef struct block_layer {
    wb_layer layer;
    wb_layer *attention, *norm1;
    wb_layer *cross_attention, *cross_norm; /* of decoders */
    wb_layer *feed_forward, *last_norm;
    wb_layer *dropout;
    bool norm_first;
} block_layer;

enum { MOST_MORE = 2, MOST_INPUTS = 3 + MOST_MORE }; /* q, k, v; a bias, a mask */

static block_layer *block_of(wb_layer *layer) { return (block_layer *)(void *)layer; }

/* ---- applying ---- */

/* A sum would also take sizes that broadcast with x's. */
static bool has_sizes_of(const wb_array *x, const wb_array *y) {
    if (wb_same_sizes(x, y)) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "feed_forward must give the sizes of its input, %s, got %s",
                  wb_sizes_text(x->ndim, x->sizes), wb_sizes_text(y->ndim, y->sizes));
    return false;
}

/* norm(x + dropout(part(x))), or x + dropout(part(norm(x))). An input of part that is NULL means x;
 * without inputs, part takes x alone. */
static wb_array *around(const block_layer *b, wb_layer *norm, wb_layer *part, wb_array *x,
                        int count, wb_array *const *given) {
    wb_array *inputs[MOST_INPUTS], *y[1];
    wb_array *h = b->norm_first && x ? wb_apply(norm, x) : x;
    for (int i = 0; i < count; i++) inputs[i] = given[i] ? given[i] : h;
    if (count == 0) inputs[count++] = h;
    if (!h || wb_apply_many(part, count, inputs, 1, y) != 1) return NULL;
    if (part == b->feed_forward && !has_sizes_of(x, y[0])) return NULL;
    y[0] = wb_add(x, wb_apply(b->dropout, y[0]));
    return b->norm_first || !y[0] ? y[0] : wb_apply(norm, y[0]);
}

static bool check_count(int count, int least, const char *what) {
    if (count >= least && count <= least + MOST_MORE) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "expected %s, and perhaps a bias and a mask, got %d arrays",
                  what, count);
    return false;
}

/* The results: y, then the other arrays that came with x. */
static int results_of(wb_array *y, int count, wb_array *const *inputs, wb_array **results) {
    results[0] = y;
    for (int i = 1; i < count; i++) results[i] = inputs[i];
    return y ? count : 0;
}

/* x is queries, keys and values. */
static int forward_encoder(wb_layer *layer, int count, wb_array *const *inputs,
                           wb_array **results) {
    const block_layer *b = block_of(layer);
    if (!check_count(count, 1, "x")) return 0;
    wb_array *given[MOST_INPUTS] = {NULL};
    for (int i = 1; i < count; i++) given[2 + i] = inputs[i];
    wb_array *x = around(b, b->norm1, b->attention, inputs[0], count == 1 ? 0 : 2 + count, given);
    x = around(b, b->last_norm, b->feed_forward, x, 0, NULL);
    return results_of(x, count, inputs, results);
}

/* cross_attention takes its keys and values from memory; the bias and the mask are for
 * cross_attention. */
static int forward_decoder(wb_layer *layer, int count, wb_array *const *inputs,
                           wb_array **results) {
    const block_layer *b = block_of(layer);
    if (!check_count(count, 2, "x and memory")) return 0;
    wb_array *given[MOST_INPUTS] = {NULL, inputs[1], inputs[1]};
    for (int i = 2; i < count; i++) given[1 + i] = inputs[i];
    wb_array *x = around(b, b->norm1, b->attention, inputs[0], 0, NULL);
    x = around(b, b->cross_norm, b->cross_attention, x, 1 + count, given);
    x = around(b, b->last_norm, b->feed_forward, x, 0, NULL);
    return results_of(x, count, inputs, results);
}

/* ---- the classes ---- */

#define CHILD(member, name_, ...)                                                                  \
    {                                                                                              \
        .name = name_, .offset = offsetof(block_layer, member), .kind = WB_FIELD_CHILD,            \
        .trainable = true, .counted = true, __VA_ARGS__                                            \
    }
#define ATTENTION                                                                                  \
    CHILD(attention, "attention", .torch = "self_attn"), CHILD(norm1, "norm1", .torch = NULL)
#define REST(norm)                                                                                 \
    CHILD(feed_forward, "feed_forward", .torch = NULL), CHILD(last_norm, norm, .torch = NULL),     \
        CHILD(dropout, "dropout", .torch = NULL),                                                  \
        WB_SETTING(block_layer, norm_first, WB_FIELD_BOOL)

static const wb_field encoder_fields[] = {ATTENTION, REST("norm2")};
static const wb_field decoder_fields[] = {
    ATTENTION, CHILD(cross_attention, "cross_attention", .torch = "multihead_attn"),
    CHILD(cross_norm, "norm2", .torch = NULL), REST("norm3")};

static bool complete(wb_layer *layer) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        if (f->kind != WB_FIELD_CHILD || *wb_field_child(layer, f)) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be a layer, but is missing",
                      layer->class_->name, f->name);
        return false;
    }
    return true;
}

#define CLASS(variable, name_, rows, function)                                                     \
    const wb_layer_class variable = {.name = name_,                                                \
                                     WB_LAYER_ROWS(block_layer, rows),                             \
                                     .forward_many = function,                                     \
                                     .complete = complete}
CLASS(wb_transformer_encoder_class, "TransformerEncoderBlock", encoder_fields, forward_encoder);
CLASS(wb_transformer_decoder_class, "TransformerDecoderBlock", decoder_fields, forward_decoder);

/* ---- makers ---- */

static bool check_positive(const wb_layer_class *k, const char *name, int64_t number) {
    if (number > 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be positive, got %lld", k->name, name,
                  (long long)number);
    return false;
}

static bool check_desc(const char *function, const wb_layer_class *k,
                       wb_transformer_block_desc *d) {
    if (d->feed_forward && !wb_check_layer(function, d->feed_forward)) return false;
    if (d->attention && !wb_check_layer(function, d->attention)) return false;
    if (d->attention && (d->causal || d->rotary != 0)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: attention is given, so %s must not be", k->name,
                      d->causal ? "causal" : "rotary");
        return false;
    }
    if (d->feed_forward && (d->hidden != 0 || d->activation)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: feed_forward is given, so %s must not be", k->name,
                      d->activation ? "activation" : "hidden");
        return false;
    }
    if (!check_positive(k, "in", d->in)) return false;
    if (d->hidden == 0 && __builtin_mul_overflow(d->in, (int64_t)4, &d->hidden)) d->hidden = -1;
    if (!check_positive(k, "hidden", d->hidden)) return false;
    if (d->dropout >= 0 && d->dropout <= 1) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: dropout must be from 0 to 1, got %g", k->name,
                  d->dropout);
    return false;
}

static wb_layer *attention_of(const wb_transformer_block_desc *d, bool is_causal, double rotary) {
    return wb_multi_head_attention(d->in, .heads = d->heads, .bias = d->bias, .dropout = d->dropout,
                                   .causal = is_causal, .rotary = rotary, .init = d->init,
                                   .dtype = d->dtype);
}

static wb_layer *feed_forward_of(const wb_transformer_block_desc *d) {
    if (d->feed_forward) return d->feed_forward;
    wb_activation *activation = d->activation ? d->activation : wb_relu;
    return wb_chain(
        wb_dense(d->in, d->hidden, activation, .bias = d->bias, .init = d->init, .dtype = d->dtype),
        wb_dropout(d->dropout),
        wb_dense(d->hidden, d->in, .bias = d->bias, .init = d->init, .dtype = d->dtype));
}

static wb_layer *norm_of(const wb_transformer_block_desc *d) {
    if (d->rms) return wb_rmsnorm({d->in}, .eps = d->eps, .dtype = d->dtype);
    return wb_layernorm({d->in}, .eps = d->eps, .bias = d->bias, .dtype = d->dtype);
}

static wb_layer *make(const char *function, const wb_layer_class *k, wb_transformer_block_desc d) {
    wb_layer *layers[7];
    int n = 0;
    const bool runs = !wb_failed(); /* a part whose maker failed is not one that is not given */
    if (!runs) (void)wb_not_run(function);
    if (!runs || !wb_check_start(function, d.start_) || !check_desc(function, k, &d)) {
        if (d.feed_forward) wb_drop_given_layer(d.feed_forward);
        if (d.attention && d.attention != d.feed_forward) wb_drop_given_layer(d.attention);
        return NULL;
    }
    layers[n++] = d.attention ? d.attention : attention_of(&d, d.causal, d.rotary);
    layers[n++] = norm_of(&d);
    if (k == &wb_transformer_decoder_class)
        layers[n++] = attention_of(&d, false, 0), layers[n++] = norm_of(&d);
    layers[n++] = feed_forward_of(&d), layers[n++] = norm_of(&d);
    layers[n++] = wb_dropout(d.dropout);
    wb_layer *block = wb_wrapper_new(function, k, &(wb_contents){.count = n, .layers = layers});
    if (block) block_of(block)->norm_first = d.norm_first;
    return wb_layer_complete(block);
}

wb_layer *wb_transformer_encoder_make(wb_transformer_block_desc desc) {
    return make("wb_transformer_encoder", &wb_transformer_encoder_class, desc);
}

wb_layer *wb_transformer_decoder_make(wb_transformer_block_desc desc) {
    return make("wb_transformer_decoder", &wb_transformer_decoder_class, desc);
}
