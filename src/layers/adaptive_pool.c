/* AdaptiveMaxPool and AdaptiveMeanPool: pools whose results have given sizes. */
#include <weber/ops.h>

#include "base/memory.h"
#include "layers/layer.h"

typedef struct wb_adaptive_pool_layer {
    wb_layer layer;
    wb_adaptive_pool_desc desc;
} wb_adaptive_pool_layer;

typedef wb_array *combiner(wb_array *a, wb_array *b);

static wb_array *mean_of(wb_array *a, wb_array *b) { return wb_mul(wb_add(a, b), 0.5); }
static wb_array *max_of(wb_array *a, wb_array *b) { return wb_max(a, b); }

/* Along a dimension of n < m: window i is from floor(i n / m) to ceil((i + 1) n / m), which is one
 * element or two. */
static wb_array *enlarge(wb_array *x, int dim, int64_t m, combiner *combine) {
    const int64_t n = x->sizes[dim];
    int64_t *first = wb_alloc_list(m, sizeof *first), *last = wb_alloc_list(m, sizeof *last);
    wb_array *y = NULL;
    for (int64_t i = 0; first && last && i < m; i++) {
        first[i] = i * n / m;
        last[i] = ((i + 1) * n - 1) / m;
    }
    if (first && last) {
        wb_array *a = wb_gather(x, wb_numbers_beside(x, wb_from(WB_I64, first, m)), dim);
        y = combine(a, wb_gather(x, wb_numbers_beside(x, wb_from(WB_I64, last, m)), dim));
    }
    wb_release(first), wb_release(last);
    return y;
}

static bool may_pool(const wb_array *x, int n, const int64_t *out) {
    bool good = x->ndim == n + 2;
    for (int i = 0; good && i < n; i++) good = x->sizes[i] > 0;
    if (!good)
        (void)wb_fail(WB_ERROR_SHAPE,
                      "input must have %d spatial dimensions that are not empty, channels and "
                      "batch for a result of %s, got %s",
                      n, wb_sizes_text(n, out), wb_text_of(x));
    return good;
}

/* What the pool with the window makes the result of; NULL with the error recorded. */
static wb_array *prepare(const wb_layer *layer, wb_array *x, combiner *combine,
                         wb_window_desc *window) {
    int n;
    const int64_t *out = wb_layer_sizes(layer, &n);
    if (!may_pool(x, n, out)) return NULL;
    for (int i = 0; x && i < n; i++) {
        if (x->sizes[i] < out[i]) x = enlarge(x, i, out[i], combine);
        if (!x) return NULL;
        window->stride[i] = x->sizes[i] / out[i];
        window->kernel[i] = x->sizes[i] - (out[i] - 1) * window->stride[i];
    }
    return x;
}

static wb_array *max_forward(wb_layer *layer, wb_array *x) {
    wb_window_desc window = {.start_ = 0};
    x = prepare(layer, x, max_of, &window);
    return x ? wb_maxpool_op_make(x, window) : NULL;
}

static wb_array *mean_forward(wb_layer *layer, wb_array *x) {
    wb_window_desc window = {.start_ = 0};
    x = prepare(layer, x, mean_of, &window);
    return x ? wb_meanpool_op_make(x, window) : NULL;
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
