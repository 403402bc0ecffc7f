/* Dense: y = activation(W x + b). */
#include <stdio.h>

#include "layers/layer.h"

typedef struct wb_dense_layer {
    wb_layer layer;
    wb_array *weight, *bias; /* (out, in), (out) or NULL */
    wb_activation *activation;
} wb_dense_layer;

static const wb_dense_layer *dense_of(const wb_layer *layer) {
    return (const wb_dense_layer *)(const void *)layer;
}

/* For x (in, N) or (in). */
static wb_array *forward_matrix(const wb_dense_layer *d, wb_array *x) {
    wb_array *y = wb_matmul(d->weight, x);
    if (d->bias) y = wb_add(y, d->bias);
    return y && d->activation ? d->activation(y) : y;
}

/* For x with more dimensions: all but the first are the batch. The activation sees a matrix, as
 * Flux's does, and is fused with the product. */
static wb_array *forward_batches(const wb_dense_layer *d, wb_array *x) {
    int64_t sizes[WB_MAX_DIMS];
    const int ndim = x->ndim;
    for (int i = 0; i < ndim; i++) sizes[i] = x->sizes[i];
    int64_t columns = 1;
    for (int i = 1; i < ndim; i++) columns *= sizes[i];
    wb_array *y = forward_matrix(d, wb_reshape(x, sizes[0], columns));
    sizes[0] = d->weight->sizes[0];
    return y ? wb_reshape_make(y, ndim, sizes) : NULL;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_dense_layer *d = dense_of(layer);
    if (x->ndim == 0) return wb_fail_null(WB_ERROR_SHAPE, "input is a number without dimensions");
    if (x->sizes[0] != d->weight->sizes[1])
        return wb_fail_null(WB_ERROR_SHAPE, "input has %lld features in %s", (long long)x->sizes[0],
                            wb_text_of(x));
    x = wb_convert_input(x, d->weight);
    if (!x) return NULL;
    return x->ndim <= 2 ? forward_matrix(d, x) : forward_batches(d, x);
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    const wb_dense_layer *d = dense_of(layer);
    const char *activation = brief ? "" : wb_activation_text(d->activation);
    (void)snprintf(text, size, "Dense(%lld => %lld%s%s%s)", (long long)d->weight->sizes[1],
                   (long long)d->weight->sizes[0], *activation ? ", " : "", activation,
                   brief || d->bias ? "" : "; bias=false");
}

static const wb_field fields[] = {
    WB_ARRAY_FIELD(wb_dense_layer, weight),
    WB_ARRAY_FIELD(wb_dense_layer, bias),
    WB_VALUE_FIELD(wb_dense_layer, activation),
};
const wb_layer_class wb_dense_class = {"Dense", sizeof(wb_dense_layer), fields, 3, forward,
                                       describe};

/* ---- making ---- */

static bool check(const wb_dense_desc *desc) {
    if (!desc->weight && (desc->in <= 0 || desc->out <= 0))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_dense: %lld => %lld features; both are positive",
                      (long long)desc->in, (long long)desc->out);
    else if (desc->no_bias && desc->bias)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_dense: no_bias, but a bias %s was given",
                      wb_text_of(desc->bias));
    else
        return true;
    return false;
}

static bool check_given(const wb_dense_desc *desc, const wb_array *weight) {
    if (weight->ndim != 2 || !wb_dtype_is_float((wb_dtype)weight->dtype))
        (void)wb_fail(WB_ERROR_SHAPE, "wb_dense: the weight is %s %s, not floating (out, in)",
                      wb_dtype_name((wb_dtype)weight->dtype), wb_text_of(weight));
    else if ((desc->in && desc->in != weight->sizes[1]) ||
             (desc->out && desc->out != weight->sizes[0]))
        (void)wb_fail(WB_ERROR_SHAPE, "wb_dense: %lld => %lld features, but a weight %s",
                      (long long)desc->in, (long long)desc->out, wb_text_of(weight));
    else if (desc->bias && (desc->bias->ndim != 1 || desc->bias->sizes[0] != weight->sizes[0]))
        (void)wb_fail(WB_ERROR_SHAPE, "wb_dense: a bias %s for a weight %s", wb_text_of(desc->bias),
                      wb_text_of(weight));
    else
        return true;
    return false;
}

static bool fill(wb_dense_layer *d, const wb_dense_desc *desc) {
    const int64_t sizes[2] = {desc->out, desc->in};
    wb_init *init = desc->init ? desc->init : wb_glorot_uniform;
    wb_array *weight = desc->weight ? desc->weight : init(2, sizes, desc->dtype);
    d->weight = wb_hold(weight);
    d->activation = desc->activation;
    if (!weight || !check_given(desc, weight)) return false;
    if (desc->no_bias) return true;
    wb_array *bias =
        desc->bias ? desc->bias : wb_zeros_init(1, weight->sizes, (wb_dtype)weight->dtype);
    d->bias = wb_hold(bias);
    return bias != NULL;
}

wb_dense_desc wb_dense_desc_of(const wb_layer *layer) {
    const wb_dense_layer *d = dense_of(layer);
    return (wb_dense_desc){.in = d->weight->sizes[1],
                           .out = d->weight->sizes[0],
                           .activation = d->activation,
                           .no_bias = !d->bias};
}

wb_layer *wb_dense_make(wb_dense_desc desc) {
    if (!check(&desc) || !wb_scope_begin()) return NULL;
    wb_dense_layer *d = (wb_dense_layer *)(void *)wb_layer_new(&wb_dense_class);
    const bool failed = !d || !fill(d, &desc);
    return wb_layer_finish(d ? &d->layer : NULL, failed);
}
