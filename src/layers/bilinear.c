/* Bilinear: z_k = activation(x' W_k y + b_k). */
#include "layers/layer.h"

typedef struct wb_bilinear_layer {
    wb_layer layer;
    wb_bilinear_desc desc;
} wb_bilinear_layer;

static wb_bilinear_desc *desc_of(wb_layer *layer) {
    return &((wb_bilinear_layer *)(void *)layer)->desc;
}

static bool check_inputs(const wb_bilinear_desc *d, const wb_array *x, const wb_array *y) {
    const bool has_features = (x->ndim == 1 || x->ndim == 2) && x->ndim == y->ndim &&
                              x->sizes[0] == d->in && y->sizes[0] == d->in2;
    if (!has_features)
        (void)wb_fail(WB_ERROR_SHAPE, "inputs must be (%lld, N) and (%lld, N), got %s and %s",
                      (long long)d->in, (long long)d->in2, wb_text_of(x), wb_text_of(y));
    else if (x->ndim == 2 && x->sizes[1] != y->sizes[1])
        (void)wb_fail(WB_ERROR_SHAPE, "inputs must have equally many columns, got %s and %s",
                      wb_text_of(x), wb_text_of(y));
    else
        return true;
    return false;
}

/* W y as (out, in, N), times x as (in, 1, N). */
static wb_array *product(const wb_bilinear_desc *d, wb_array *x, wb_array *y) {
    const int64_t n = x->ndim == 2 ? x->sizes[1] : 1;
    wb_array *w = wb_reshape(d->given_weight, d->out * d->in, d->in2);
    wb_array *wy = wb_reshape(wb_matmul(w, wb_reshape(y, d->in2, n)), d->out, d->in, n);
    wb_array *z = wb_matmul(wy, wb_reshape(x, d->in, 1, n));
    return x->ndim == 2 ? wb_reshape(z, d->out, n) : wb_reshape(z, d->out);
}

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_bilinear_desc *d = desc_of(layer);
    if (count > 2) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "takes one array or two, got %d", count);
        return 0;
    }
    wb_array *x = inputs[0], *y = inputs[count - 1];
    if (!check_inputs(d, x, y)) return 0;
    x = wb_convert_input(x, d->given_weight), y = wb_convert_input(y, d->given_weight);
    wb_array *z = x && y ? product(d, x, y) : NULL;
    if (z && d->given_bias) z = wb_add(z, d->given_bias);
    results[0] = z && d->activation ? d->activation(z) : z;
    return results[0] != NULL;
}

static const wb_field fields[] = {
    WB_ROW(wb_bilinear_layer, in, WB_FIELD_PAIR, .low = 1, .form = "(in, in2) => out",
           .text_only = true, .given_by = offsetof(wb_bilinear_layer, desc.given_weight)),
    WB_ROW_NAMED(wb_bilinear_layer, given_weight, "weight", WB_FIELD_ARRAY, .trainable = true,
                 .torch = "weight permute 2,1,0"),
    WB_ROW_NAMED(wb_bilinear_layer, given_bias, "bias", WB_FIELD_ARRAY, .trainable = true,
                 .with = offsetof(wb_bilinear_layer, desc.bias)),
    WB_ROW_NAMED(wb_bilinear_layer, bias, "bias", WB_FIELD_BOOL, .usual = true, .text_only = true),
    WB_ROW(wb_bilinear_layer, activation, WB_FIELD_ACTIVATION, .flux = "σ"),
};

static bool complete(wb_layer *layer) {
    wb_bilinear_desc *d = desc_of(layer);
    wb_init *init = d->init ? d->init : wb_glorot_uniform;
    const int64_t sizes[3] = {d->out, d->in, d->in2};
    return wb_layer_fill(layer, &d->given_weight, init, d->dtype, 3, sizes) &&
           wb_layer_fill(layer, &d->given_bias, wb_zeros_init, (wb_dtype)d->given_weight->dtype, 1,
                         &d->out);
}

const wb_layer_class wb_bilinear_class = {.name = "Bilinear",
                                          WB_LAYER_ROWS(wb_bilinear_layer, fields),
                                          .forward_many = forward,
                                          .complete = complete,
                                          .before_keys = "; "};

wb_layer *wb_bilinear_make(wb_bilinear_desc desc) {
    return wb_layer_of_desc(&wb_bilinear_class, &desc, sizeof desc);
}
