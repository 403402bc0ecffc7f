/* Scale: y = activation(scale x + bias), element by element. */
#include "layers/layer.h"

typedef struct wb_scale_layer {
    wb_layer layer;
    wb_scale_desc desc;
} wb_scale_layer;

wb_scale_desc *wb_scale_desc_of(wb_layer *layer) {
    if (layer->class_ == &wb_scale_class) return &((wb_scale_layer *)(void *)layer)->desc;
    return wb_fail_null(WB_ERROR_ARGUMENT, "a Scale is expected, got %s", layer->class_->name);
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_scale_desc *d = wb_scale_desc_of(layer);
    x = wb_convert_input(x, d->given_scale);
    wb_array *y = wb_mul(x, d->given_scale);
    if (d->given_bias) y = wb_add(y, d->given_bias);
    return y && d->activation ? d->activation(y) : y;
}

static const wb_field fields[] = {
    WB_ROW(wb_scale_layer, size, WB_FIELD_SIZES, .low = 1, .spread = true, .most = WB_MAX_DIMS,
           .text_only = true, .given_by = offsetof(wb_scale_layer, desc.given_scale)),
    WB_ROW_NAMED(wb_scale_layer, given_scale, "scale", WB_FIELD_ARRAY,
                 .torch = "weight|layer_scale", .trainable = true),
    WB_ROW_NAMED(wb_scale_layer, given_bias, "bias", WB_FIELD_ARRAY, .trainable = true,
                 .with = offsetof(wb_scale_layer, desc.bias)),
    WB_ROW_NAMED(wb_scale_layer, bias, "bias", WB_FIELD_BOOL, .usual = true, .text_only = true),
    WB_ROW(wb_scale_layer, activation, WB_FIELD_ACTIVATION, .flux = "σ", .since = 3),
};

static bool complete(wb_layer *layer) {
    wb_scale_desc *d = wb_scale_desc_of(layer);
    int n;
    const int64_t *sizes = wb_layer_sizes(layer, &n);
    return wb_layer_fill(layer, &d->given_scale, d->init ? d->init : wb_ones_init, d->dtype, n,
                         sizes) &&
           wb_layer_fill(layer, &d->given_bias, wb_zeros_init, (wb_dtype)d->given_scale->dtype, n,
                         sizes);
}

const wb_layer_class wb_scale_class = {.name = "Scale",
                                       .former = "Diagonal",
                                       WB_LAYER_ROWS(wb_scale_layer, fields),
                                       .forward = forward,
                                       .complete = complete,
                                       .before_keys = "; "};

wb_layer *wb_scale_make(wb_scale_desc desc) {
    return wb_layer_of_desc(&wb_scale_class, &desc, sizeof desc);
}
