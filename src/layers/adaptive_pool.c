/* AdaptiveMaxPool and AdaptiveMeanPool: pools whose results have given sizes. */
#include "layers/layer.h"

typedef struct wb_adaptive_pool_layer {
    wb_layer layer;
    wb_adaptive_pool_desc desc;
} wb_adaptive_pool_layer;

static bool window_for(const wb_layer *layer, const wb_array *x, wb_window_desc *window) {
    int n;
    const int64_t *out = wb_layer_sizes(layer, &n);
    bool good = x->ndim == n + 2;
    for (int i = 0; good && i < n; i++) {
        good = x->sizes[i] >= out[i];
        window->stride[i] = x->sizes[i] / out[i];
        window->kernel[i] = x->sizes[i] - (out[i] - 1) * window->stride[i];
    }
    if (!good)
        (void)wb_fail(WB_ERROR_SHAPE,
                      "input must have %d spatial dimensions, at least %s, channels and batch, "
                      "got %s",
                      n, wb_sizes_text(n, out), wb_text_of(x));
    return good;
}

static wb_array *max_forward(wb_layer *layer, wb_array *x) {
    wb_window_desc window = {.start_ = 0};
    return window_for(layer, x, &window) ? wb_maxpool_op_make(x, window) : NULL;
}

static wb_array *mean_forward(wb_layer *layer, wb_array *x) {
    wb_window_desc window = {.start_ = 0};
    return window_for(layer, x, &window) ? wb_meanpool_op_make(x, window) : NULL;
}

static const wb_field fields[] = {WB_ROW(wb_adaptive_pool_layer, out, WB_FIELD_SIZES, .low = 1)};

#define CLASS(name_, forward_)                                                                     \
    { .name = name_, WB_LAYER_ROWS(wb_adaptive_pool_layer, fields), .forward = forward_ }
const wb_layer_class wb_adaptive_maxpool_class = CLASS("AdaptiveMaxPool", max_forward);
const wb_layer_class wb_adaptive_meanpool_class = CLASS("AdaptiveMeanPool", mean_forward);

wb_layer *wb_adaptive_maxpool_make(wb_adaptive_pool_desc desc) {
    return wb_layer_of_desc(&wb_adaptive_maxpool_class, &desc, sizeof desc);
}
wb_layer *wb_adaptive_meanpool_make(wb_adaptive_pool_desc desc) {
    return wb_layer_of_desc(&wb_adaptive_meanpool_class, &desc, sizeof desc);
}
