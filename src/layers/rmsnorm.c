/* RMSNorm: each observation divided by the root of its mean square. */
#include "layers/layer.h"

typedef struct wb_rmsnorm_layer {
    wb_layer layer;
    wb_rmsnorm_desc desc;
} wb_rmsnorm_layer;

static wb_rmsnorm_desc *desc_of(wb_layer *layer) {
    return &((wb_rmsnorm_layer *)(void *)layer)->desc;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    static const int64_t dims[WB_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    const wb_rmsnorm_desc *d = desc_of(layer);
    int n;
    if (!wb_check_first_sizes(layer, x, &n)) return NULL;
    x = wb_convert_input(x, d->given_scale);
    wb_array *square = x ? wb_mean_make(wb_square(x), n, dims) : NULL;
    return square ? wb_mul(wb_mul(x, wb_rsqrt(wb_add_number(square, d->eps))), d->given_scale)
                  : NULL;
}

static const wb_field fields[] = {
    WB_ROW_NAMED(wb_rmsnorm_layer, given_scale, "scale", WB_FIELD_ARRAY, .torch = "weight",
                 .trainable = true),
    WB_ROW(wb_rmsnorm_layer, eps, WB_FIELD_REAL, .flux = "ϵ", .usual = 1e-5, .is_above = true),
    WB_ROW(wb_rmsnorm_layer, size, WB_FIELD_SIZES, .low = 1, .spread = true, .most = WB_MAX_DIMS),
};

static bool complete(wb_layer *layer) {
    wb_rmsnorm_desc *d = desc_of(layer);
    int n;
    const int64_t *size = wb_layer_sizes(layer, &n);
    return wb_layer_fill(layer, &d->given_scale, wb_ones_init, d->dtype, n, size);
}

const wb_layer_class wb_rmsnorm_class = {.name = "RMSNorm",
                                         WB_LAYER_ROWS(wb_rmsnorm_layer, fields),
                                         .forward = forward,
                                         .complete = complete};

wb_layer *wb_rmsnorm_make(wb_rmsnorm_desc desc) {
    return wb_layer_of_desc(&wb_rmsnorm_class, &desc, sizeof desc);
}
