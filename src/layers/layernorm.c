/* LayerNorm: each observation with mean 0 and variance 1 over its first dimensions, then scaled and
 * shifted. */
#include <string.h>

#include "layers/layer.h"

typedef struct wb_layernorm_layer {
    wb_layer layer;
    wb_layernorm_desc desc;
    wb_layer *diag; /* a Scale, or NULL */
} wb_layernorm_layer;

static wb_layernorm_layer *norm_of(wb_layer *layer) { return (wb_layernorm_layer *)(void *)layer; }

static wb_array *forward(wb_layer *layer, wb_array *x) {
    static const int64_t dims[WB_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    const wb_layernorm_layer *l = norm_of(layer);
    int n;
    if (!wb_check_first_sizes(layer, x, &n)) return NULL;
    if (l->diag) x = wb_convert_input(x, wb_scale_desc_of(l->diag)->given_scale);
    wb_array *y = x ? wb_normalise_make(x, l->desc.eps, n, dims) : NULL;
    if (y && l->diag) y = wb_apply(l->diag, y);
    return y && l->desc.activation ? l->desc.activation(y) : y;
}

#define ROW(member, ...) WB_ROW(wb_layernorm_layer, member, __VA_ARGS__, .since = 5)

static const wb_field fields[] = {
    ROW(activation, WB_FIELD_ACTIVATION, .flux = "λ", .rank = 1),
    {.name = "diag",
     .offset = offsetof(wb_layernorm_layer, diag),
     .kind = WB_FIELD_CHILD,
     .trainable = true,
     .part = &wb_scale_class,
     .with = offsetof(wb_layernorm_layer, desc.affine)},
    ROW(eps, WB_FIELD_REAL, .flux = "ϵ", .usual = 1e-5, .is_above = true),
    ROW(size, WB_FIELD_SIZES, .low = 1, .spread = true, .most = WB_MAX_DIMS),
    WB_ROW_NAMED(wb_layernorm_layer, affine, "affine", WB_FIELD_BOOL, .usual = true, .since = 5,
                 .rank = -1),
    WB_ROW_NAMED(wb_layernorm_layer, bias, "bias", WB_FIELD_BOOL, .usual = true, .text_only = true,
                 .rank = -1),
};

/* Flux's Scale holds λ, too, since 0.13; before 0.12 there is nothing but a Diagonal. */
static bool complete(wb_layer *layer) {
    wb_layernorm_layer *l = norm_of(layer);
    wb_layernorm_desc *d = &l->desc;
    wb_scale_desc made = WB_DESC(scale, .dtype = d->dtype, .bias = d->bias);
    memcpy(made.size, d->size, sizeof made.size);
    if (!l->diag && d->affine && !(l->diag = wb_scale_make(made))) return false;
    wb_scale_desc *scale = l->diag ? wb_scale_desc_of(l->diag) : &made;
    if (!scale) return false;
    scale->activation = NULL;
    if (memcmp(scale->size, d->size, sizeof d->size) == 0) return true;
    int n;
    const int64_t *size = wb_layer_sizes(layer, &n);
    (void)wb_fail(WB_ERROR_SHAPE, "LayerNorm: diag must be %s, got %s", wb_sizes_text(n, size),
                  wb_text_of(scale->given_scale));
    return false;
}

static void derive(wb_layer *layer) {
    wb_layernorm_layer *l = norm_of(layer);
    const wb_scale_desc *scale = l->diag ? wb_scale_desc_of(l->diag) : NULL;
    if (scale && !scale->given_bias) l->desc.bias = false;
    if (scale && !l->desc.size[0]) memcpy(l->desc.size, scale->size, sizeof scale->size);
}

const wb_layer_class wb_layernorm_class = {.name = "LayerNorm",
                                           WB_LAYER_ROWS(wb_layernorm_layer, fields),
                                           .forward = forward,
                                           .derive = derive,
                                           .complete = complete};

wb_layer *wb_layernorm_make(wb_layernorm_desc desc) {
    return wb_layer_of_desc(&wb_layernorm_class, &desc, sizeof desc);
}
