/* Dropout: y = x mask / (1 - p) in training. */
#include <stdio.h>

#include "layers/layer.h"

typedef struct wb_dropout_layer {
    wb_layer layer;
    double p;
    unsigned dims;
} wb_dropout_layer;

static const wb_dropout_layer *dropout_of(const wb_layer *layer) {
    return (const wb_dropout_layer *)(const void *)layer;
}

static wb_array *mask_for(const wb_dropout_layer *d, const wb_array *x) {
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++)
        sizes[i] = !d->dims || (d->dims & WB_DIM(i)) ? x->sizes[i] : 1;
    return wb_bernoulli_make(1 - d->p, x->ndim, sizes);
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_dropout_layer *d = dropout_of(layer);
    if (!wb_is_active(layer)) {
        if (layer->mode_ == WB_MODE_AUTO && !wb_is_leaf(x)) x->flags |= WB_NODE_UNTIED;
        return x;
    }
    if (d->p == 0) return x;
    const double scale = d->p < 1 ? 1 / (1 - d->p) : 0;
    return wb_select(mask_for(d, x), wb_mul_number(x, scale), wb_number(0));
}

int wb_dims_numbers(unsigned dims, int64_t *numbers) {
    int count = 0;
    for (int i = 0; i < WB_MAX_DIMS; i++)
        if (dims & WB_DIM(i)) numbers[count++] = i + 1;
    return count;
}

void wb_dims_text(unsigned dims, char *text, size_t size) {
    int64_t numbers[WB_MAX_DIMS];
    char list[120];
    const int count = wb_dims_numbers(dims, numbers);
    *text = 0;
    if (!count) return;
    wb_numbers_text(count, numbers, count == 1, list, sizeof list);
    (void)snprintf(text, size, ", dims=%s", list);
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    const wb_dropout_layer *d = dropout_of(layer);
    char dims[128];
    wb_dims_text(d->dims, dims, sizeof dims);
    (void)snprintf(text, size, "Dropout(%g%s)", d->p, brief ? "" : dims);
}

static const wb_field fields[] = {
    WB_VALUE_FIELD(wb_dropout_layer, p),
    WB_VALUE_FIELD(wb_dropout_layer, dims),
};
const wb_layer_class wb_dropout_class = {"Dropout", sizeof(wb_dropout_layer), fields, 2, forward,
                                         describe};

wb_layer *wb_dropout_make(wb_dropout_desc desc) {
    if (!(desc.p >= 0 && desc.p <= 1))
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_dropout: p = %g is no probability", desc.p);
    wb_dropout_layer *d = (wb_dropout_layer *)(void *)wb_layer_new(&wb_dropout_class);
    if (!d) return NULL;
    d->p = desc.p, d->dims = desc.dims;
    return &d->layer;
}

wb_dropout_desc wb_dropout_desc_of(const wb_layer *layer) {
    return (wb_dropout_desc){.p = dropout_of(layer)->p, .dims = dropout_of(layer)->dims};
}
