/* Max, mean and lp pooling. */
#include <string.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_pool_layer {
    wb_layer layer;
    wb_pool_desc desc;
} wb_pool_layer;

typedef struct wb_lppool_layer {
    wb_layer layer;
    wb_lppool_desc desc;
} wb_lppool_layer;

static bool window_of(const wb_layer *layer, const wb_array *x, const int64_t *stride,
                      const int64_t *pad, wb_window_desc *window) {
    int n;
    memcpy(window->kernel, wb_layer_sizes(layer, &n), sizeof window->kernel);
    memcpy(window->stride, stride, sizeof window->stride);
    wb_window_pad(n, pad, window);
    if (x->ndim == n + 2) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "input has %d dimensions in %s, expected %d: %d spatial, channels, batch",
                  x->ndim, wb_text_of(x), n + 2, n);
    return false;
}

static bool window_for(const wb_layer *layer, const wb_array *x, wb_window_desc *window) {
    const wb_pool_desc *p = &((const wb_pool_layer *)(const void *)layer)->desc;
    return window_of(layer, x, p->stride, p->pad, window);
}

static wb_array *max_forward(wb_layer *layer, wb_array *x) {
    wb_window_desc window = {.start_ = 0};
    return window_for(layer, x, &window) ? wb_maxpool_op_make(x, window) : NULL;
}

static wb_array *mean_forward(wb_layer *layer, wb_array *x) {
    wb_window_desc window = {.start_ = 0};
    return window_for(layer, x, &window) ? wb_meanpool_op_make(x, window) : NULL;
}

static wb_array *lp_forward(wb_layer *layer, wb_array *x) {
    const wb_lppool_desc *p = &((const wb_lppool_layer *)(const void *)layer)->desc;
    wb_window_desc window = {.start_ = 0};
    return window_of(layer, x, p->stride, p->pad, &window) ? wb_lppool_op_make(x, p->p, window)
                                                           : NULL;
}

enum { MOST = (1 << 20) - 1 };

#define POOL_ROWS(type)                                                                            \
    WB_ROW(type, kernel, WB_FIELD_SIZES, .flux = "k", .low = 1, .high = MOST),                     \
        WB_ROW(type, pad, WB_FIELD_PADDING, .high = MOST,                                          \
               .without = offsetof(type, desc.same_pad)),                                          \
        WB_ROW(type, stride, WB_FIELD_EACH, .usual = -1, .low = 1, .high = MOST)

static const wb_field fields[] = {POOL_ROWS(wb_pool_layer)};

static bool complete(wb_layer *layer) {
    wb_pool_desc *p = &((wb_pool_layer *)(void *)layer)->desc;
    if (p->same_pad) wb_pad_to_same(p->kernel, NULL, p->pad);
    return true;
}

const wb_layer_class wb_maxpool_class = {.name = "MaxPool",
                                         WB_LAYER_ROWS(wb_pool_layer, fields),
                                         .forward = max_forward,
                                         .complete = complete};
const wb_layer_class wb_meanpool_class = {.name = "MeanPool",
                                          WB_LAYER_ROWS(wb_pool_layer, fields),
                                          .forward = mean_forward,
                                          .complete = complete};

static wb_layer *make(const wb_layer_class *k, const wb_pool_desc *d) {
    return wb_check_pads(k, d->pad, d->same_pad) ? wb_layer_of_desc(k, d, sizeof *d) : NULL;
}

wb_layer *wb_maxpool_make(wb_pool_desc desc) { return make(&wb_maxpool_class, &desc); }
wb_layer *wb_meanpool_make(wb_pool_desc desc) { return make(&wb_meanpool_class, &desc); }

static const wb_field lp_fields[] = {
    POOL_ROWS(wb_lppool_layer),
    WB_ROW(wb_lppool_layer, p, WB_FIELD_REAL, .usual = 2, .is_above = true, .zero_counts = true),
};

static bool lp_complete(wb_layer *layer) {
    wb_lppool_desc *p = &((wb_lppool_layer *)(void *)layer)->desc;
    if (p->same_pad) wb_pad_to_same(p->kernel, NULL, p->pad);
    return true;
}

const wb_layer_class wb_lppool_class = {.name = "LPPool",
                                        WB_LAYER_ROWS(wb_lppool_layer, lp_fields),
                                        .forward = lp_forward,
                                        .complete = lp_complete};

wb_layer *wb_lppool_make(wb_lppool_desc desc) {
    if (!wb_check_pads(&wb_lppool_class, desc.pad, desc.same_pad)) return NULL;
    return wb_layer_of_desc(&wb_lppool_class, &desc, sizeof desc);
}
