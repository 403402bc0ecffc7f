/* ReshapeLayer: other sizes for each observation. */
#include "layers/layer.h"

typedef struct wb_reshape_layer_layer {
    wb_layer layer;
    wb_reshape_layer_desc desc;
} wb_reshape_layer_layer;

static wb_array *forward(wb_layer *layer, wb_array *x) {
    int64_t sizes[WB_MAX_DIMS], wanted = 1, given = 1;
    int n;
    const int64_t *dims = wb_layer_sizes(layer, &n);
    for (int i = 0; i < n; i++) {
        sizes[i] = dims[i];
        if (__builtin_mul_overflow(wanted, dims[i], &wanted)) wanted = -1;
    }
    for (int i = 0; i + 1 < x->ndim; i++) given *= x->sizes[i];
    if (x->ndim < 1 || wanted != given)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "observations must have as many elements as %s, got input %s",
                            wb_sizes_text(n, dims), wb_text_of(x));
    sizes[n] = x->sizes[x->ndim - 1];
    return wb_reshape_make(x, n + 1, sizes);
}

static const wb_field fields[] = {
    WB_ROW(wb_reshape_layer_layer, dims, WB_FIELD_SIZES, .low = 1, .most = WB_MAX_DIMS - 1)};

const wb_layer_class wb_reshape_layer_class = {
    .name = "ReshapeLayer", WB_LAYER_ROWS(wb_reshape_layer_layer, fields), .forward = forward};

wb_layer *wb_reshape_layer_make(wb_reshape_layer_desc desc) {
    return wb_layer_of_desc(&wb_reshape_layer_class, &desc, sizeof desc);
}
