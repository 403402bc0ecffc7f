/* Dropout: y = x mask / (1 - p) in training. */
#include "array/thread.h"
#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_dropout_layer {
    wb_layer layer;
    wb_dropout_desc desc;
} wb_dropout_layer;

static wb_array *mask_for(const wb_dropout_desc *d, const wb_array *x) {
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++)
        sizes[i] = !d->dims || (d->dims & WB_DIM(i)) ? x->sizes[i] : 1;
    bool *is_common = &wb_thread_get()->drawing.is_common;
    const bool before = *is_common;
    *is_common = x->ndim > 0 && d->dims && !(d->dims & WB_DIM(x->ndim - 1));
    wb_array *mask = wb_bernoulli_make(1 - d->p, x->ndim, sizes);
    *is_common = before;
    return mask;
}

static wb_array *dropped(const wb_dropout_desc *d, wb_array *x) {
    if (!x || d->p == 0) return x;
    const double scale = d->p < 1 ? 1 / (1 - d->p) : 0;
    return wb_select(mask_for(d, x), wb_mul_number(x, scale), wb_constant(0));
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    x = wb_floating(x);
    if (!x || wb_is_passed_on(layer, x)) return x;
    return dropped(&((const wb_dropout_layer *)(const void *)layer)->desc, x);
}

static const wb_field fields[] = {
    WB_ROW(wb_dropout_layer, p, WB_FIELD_REAL, .high = 1, .positional = true),
    WB_ROW(wb_dropout_layer, dims, WB_FIELD_DIMS, .since = 3),
    {.name = "active", .kind = WB_FIELD_MODE},
    {.name = "rng", .kind = WB_FIELD_OTHER, .since = 4},
};
const wb_layer_class wb_dropout_class = {
    .name = "Dropout", WB_LAYER_ROWS(wb_dropout_layer, fields), .forward = forward};

wb_layer *wb_dropout_make(wb_dropout_desc desc) {
    return wb_layer_of_desc(&wb_dropout_class, &desc, sizeof desc);
}

wb_array *wb_dropout_op_make(wb_array *x, wb_dropout_desc desc) {
    if (!wb_is_usable(x)) return wb_refuse("dropout", x, "x");
    if (!(desc.p >= 0 && desc.p <= 1))
        return wb_fail_null(WB_ERROR_ARGUMENT, "dropout: p must be from 0 to 1, got %g", desc.p);
    return dropped(&desc, wb_floating(x));
}
