/* Pixelwise: a layer of features, applied to the channels of each pixel. */
#include "layers/layer.h"
#include "ops/ops.h"

typedef struct pixelwise_layer {
    wb_layer layer;
    wb_layer *inner;
} pixelwise_layer;

static wb_layer *inner_of(const wb_layer *layer) {
    return ((const pixelwise_layer *)(const void *)layer)->inner;
}

/* The channels come first: (W, H, C, N) becomes (C, W, H, N). */
static wb_array *channels_first(wb_array *x) {
    int64_t dims[WB_MAX_DIMS] = {x->ndim - 2};
    for (int d = 1; d < x->ndim; d++) dims[d] = d == x->ndim - 1 ? d : d - 1;
    return wb_permute_make(x, x->ndim, dims);
}

static wb_array *channels_last(wb_array *x) {
    int64_t dims[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) dims[d] = d == x->ndim - 1 ? d : d + 1;
    dims[x->ndim - 2] = 0;
    return wb_permute_make(x, x->ndim, dims);
}

/* All sizes but the first, the number of channels, must stay. */
static bool has_pixels_of(const wb_array *x, const wb_array *y) {
    bool good = x->ndim == y->ndim;
    for (int d = 1; good && d < x->ndim; d++) good = x->sizes[d] == y->sizes[d];
    if (!good)
        (void)wb_fail(WB_ERROR_SHAPE,
                      "the layer must keep all sizes of its input %s but the first, got %s",
                      wb_sizes_text(x->ndim, x->sizes), wb_text_of(y));
    return good;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    if (x->ndim < 3)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "input must have spatial dimensions, channels and batch, got %s",
                            wb_text_of(x));
    wb_array *pixels = channels_first(x);
    wb_array *y = pixels ? wb_apply(inner_of(layer), pixels) : NULL;
    return y && has_pixels_of(pixels, y) ? channels_last(y) : NULL;
}

static const wb_field fields[] = {{.name = "layer",
                                   .offset = offsetof(pixelwise_layer, inner),
                                   .kind = WB_FIELD_CHILD,
                                   .trainable = true,
                                   .positional = true,
                                   .counted = true}};

static bool complete(wb_layer *layer) {
    if (inner_of(layer)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "Pixelwise: the layer is NULL");
    return false;
}

const wb_layer_class wb_pixelwise_class = {.name = "Pixelwise",
                                           WB_LAYER_ROWS(pixelwise_layer, fields),
                                           .forward = forward,
                                           .complete = complete};

wb_layer *wb_pixelwise(wb_layer *layer) {
    const wb_contents contents = {.count = 1, .layers = &layer};
    return wb_layer_complete(wb_wrapper_new("wb_pixelwise", &wb_pixelwise_class, &contents));
}
