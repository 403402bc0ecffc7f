/* AlphaDropout: dropout that keeps mean and variance after selu. */
#include <math.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_alpha_dropout_layer {
    wb_layer layer;
    double p;
} wb_alpha_dropout_layer;

/* y = A (kept ? x : alpha) + B, where alpha is selu's limit at minus infinity and A and B make mean
 * 0 and variance 1 what they were. */
static wb_array *forward(wb_layer *layer, wb_array *x) {
    static const double alpha = -1.7580993408473766;
    const double p = ((const wb_alpha_dropout_layer *)(const void *)layer)->p;
    x = wb_floating(x);
    if (!x || wb_is_passed_on(layer, x) || p == 0) return x;
    wb_array *keep = wb_bernoulli_make(1 - p, x->ndim, x->sizes);
    if (p == 1) return wb_select(keep, x, wb_constant(0));
    const double a = 1 / sqrt((1 - p) * (1 + p * alpha * alpha)), b = -a * alpha * p;
    return wb_add_number(wb_mul_number(wb_select(keep, x, wb_constant(alpha)), a), b);
}

static const wb_field fields[] = {
    WB_SETTING(wb_alpha_dropout_layer, p, WB_FIELD_REAL, .high = 1, .positional = true),
    {.name = "active", .kind = WB_FIELD_MODE},
    {.name = "rng", .kind = WB_FIELD_OTHER, .since = 3},
};
const wb_layer_class wb_alpha_dropout_class = {
    .name = "AlphaDropout", WB_LAYER_ROWS(wb_alpha_dropout_layer, fields), .forward = forward};

wb_layer *wb_alpha_dropout(double p) {
    return wb_layer_make(&wb_alpha_dropout_class, &p, sizeof p);
}
