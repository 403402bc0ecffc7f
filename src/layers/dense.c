/* Dense: y = activation(W x + b), perhaps with an adapter of low rank beside W. */
#include "layers/lora.h"

typedef struct wb_dense_layer {
    wb_layer layer;
    wb_dense_desc desc;
    wb_layer *adapter; /* a wb_lora_layer, or NULL */
} wb_dense_layer;

static wb_dense_layer *dense_of(wb_layer *layer) { return (wb_dense_layer *)(void *)layer; }
static wb_dense_desc *desc_of(wb_layer *layer) { return &dense_of(layer)->desc; }

wb_layer **wb_dense_adapter(wb_layer *layer) {
    return layer->class_ == &wb_dense_class ? &dense_of(layer)->adapter : NULL;
}

/* For x (in, N) or (in). */
static wb_array *forward_matrix(const wb_dense_layer *l, wb_array *x) {
    const wb_dense_desc *d = &l->desc;
    wb_array *y = wb_matmul(d->given_weight, x);
    if (l->adapter) y = wb_add(y, wb_apply(l->adapter, x));
    if (d->given_bias) y = wb_add(y, d->given_bias);
    return y && d->activation ? d->activation(y) : y;
}

/* For x with more dimensions: all but the first are the batch. The activation sees a matrix, as
 * Flux's does, and is fused with the product. */
static wb_array *forward_batches(const wb_dense_layer *l, wb_array *x) {
    int64_t sizes[WB_MAX_DIMS];
    const int ndim = x->ndim;
    for (int i = 0; i < ndim; i++) sizes[i] = x->sizes[i];
    int64_t columns = 1;
    for (int i = 1; i < ndim; i++) columns *= sizes[i];
    wb_array *y = forward_matrix(l, wb_reshape(x, sizes[0], columns));
    sizes[0] = l->desc.given_weight->sizes[0];
    return y ? wb_reshape_make(y, ndim, sizes) : NULL;
}

/* Adds a hint for images and other arrays that only have to be flattened. */
static wb_array *fail_features(const wb_array *x, int64_t wanted) {
    const int64_t batch = x->sizes[x->ndim - 1], flat = batch ? wb_count(x) / batch : 0;
    (void)wb_fail(WB_ERROR_SHAPE, "input has %lld features in %s, expected %lld",
                  (long long)x->sizes[0], wb_text_of(x), (long long)wanted);
    if (x->ndim >= 4 || (x->ndim == 3 && flat == wanted))
        wb_error_add("wb_flatten() before this layer makes it (%lld, %lld)", (long long)flat,
                     (long long)batch);
    return NULL;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_dense_layer *l = dense_of(layer);
    const wb_dense_desc *d = &l->desc;
    if (x->ndim == 0) return wb_fail_null(WB_ERROR_SHAPE, "input is a number without dimensions");
    if (x->sizes[0] != d->given_weight->sizes[1])
        return fail_features(x, d->given_weight->sizes[1]);
    x = wb_convert_input(x, d->given_weight);
    if (!x) return NULL;
    return x->ndim <= 2 ? forward_matrix(l, x) : forward_batches(l, x);
}

/* ---- the class ---- */

static const wb_field fields[] = {
    WB_ROW(wb_dense_layer, in, WB_FIELD_PAIR, .low = 1, .text_only = true,
           .given_by = offsetof(wb_dense_layer, desc.given_weight)),
    WB_ROW_NAMED(wb_dense_layer, given_weight, "weight", WB_FIELD_ARRAY, .trainable = true,
                 .torch = "weight transpose|weight"),
    WB_ROW_NAMED(wb_dense_layer, given_bias, "bias", WB_FIELD_ARRAY, .trainable = true,
                 .with = offsetof(wb_dense_layer, desc.bias)),
    WB_ROW_NAMED(wb_dense_layer, bias, "bias", WB_FIELD_BOOL, .usual = true, .text_only = true),
    WB_ROW(wb_dense_layer, activation, WB_FIELD_ACTIVATION, .flux = "σ"),
    WB_FIELD_(wb_dense_layer, adapter, WB_FIELD_CHILD, .trainable = true, .text_only = true,
              .part = &wb_lora_class, .optional = true),
};

static bool adapter_fits(wb_dense_layer *l) {
    const wb_array *w = l->desc.given_weight;
    if (!l->adapter) return true;
    const wb_lora_layer *adapter = (const wb_lora_layer *)(const void *)l->adapter;
    if (adapter->a->sizes[1] == w->sizes[1] && adapter->b->sizes[0] == w->sizes[0]) return true;
    return wb_fail_null(WB_ERROR_SHAPE, "Dense: an adapter of a %s and b %s does not fit weight %s",
                        wb_text_of(adapter->a), wb_text_of(adapter->b), wb_text_of(w)) != NULL;
}

static bool complete(wb_layer *layer) {
    wb_dense_desc *d = desc_of(layer);
    wb_init *init = d->init ? d->init : wb_glorot_uniform;
    return wb_layer_fill(layer, &d->given_weight, init, d->dtype, 2, (int64_t[]){d->out, d->in}) &&
           wb_layer_fill(layer, &d->given_bias, wb_zeros_init, (wb_dtype)d->given_weight->dtype, 1,
                         &d->out) &&
           adapter_fits(dense_of(layer));
}

const wb_layer_class wb_dense_class = {.name = "Dense",
                                       WB_LAYER_ROWS(wb_dense_layer, fields),
                                       .forward = forward,
                                       .complete = complete,
                                       .before_keys = "; "};

wb_layer *wb_dense_make(wb_dense_desc desc) {
    return wb_layer_of_desc(&wb_dense_class, &desc, sizeof desc);
}
