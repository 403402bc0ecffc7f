/* ConvTranspose: the adjoint of a convolution. */
#include <string.h>

#include "layers/layer.h"

typedef struct wb_conv_transpose_layer {
    wb_layer layer;
    wb_conv_transpose_desc desc;
} wb_conv_transpose_layer;

static wb_conv_transpose_desc *desc_of(wb_layer *layer) {
    return &((wb_conv_transpose_layer *)(void *)layer)->desc;
}

static void result_sizes(const wb_conv_transpose_desc *d, int n, const wb_array *x,
                         int64_t *sizes) {
    for (int i = 0; i < n; i++)
        sizes[i] = wb_plus(wb_times(d->stride[i], x->sizes[i] - 1),
                           d->dilation[i] * (d->kernel[i] - 1) + 1 - 2 * d->pad[i] -
                               d->pad_more[i] + d->outpad[i]);
    sizes[n] = d->out, sizes[n + 1] = x->sizes[n + 1];
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* A convolution of this stride may ignore up to stride - 1 places at the end of its input. An
 * outpad beyond that reduces the padding at the end; if that is too small, the rest is zeros, whose
 * number is *beyond. */
static void take_outpad(const wb_conv_transpose_desc *d, int n, int64_t *sizes,
                        wb_window_desc *window, int64_t *beyond) {
    for (int i = 0; i < n; i++) {
        const int64_t rest = larger(0, d->outpad[i] - (d->stride[i] - 1));
        beyond[i] = larger(0, rest - (d->pad[i] + d->pad_more[i]));
        window->pad_more[i] -= rest - beyond[i];
        sizes[i] -= beyond[i];
    }
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_conv_transpose_desc *d = desc_of(layer);
    const int n = d->given_weight->ndim - 2;
    wb_window_desc window = {.groups = d->groups};
    int64_t sizes[WB_MAX_DIMS], beyond[WB_MOST_SIZES];
    if (!wb_check_image(x, n, d->in)) return NULL;
    result_sizes(d, n, x, sizes);
    memcpy(window.stride, d->stride, sizeof window.stride);
    memcpy(window.dilation, d->dilation, sizeof window.dilation);
    wb_window_pad(n, d->pad, &window);
    take_outpad(d, n, sizes, &window, beyond);
    x = wb_convert_input(x, d->given_weight);
    wb_array *y = x ? wb_conv_data_make(x, d->given_weight, sizes, window) : NULL;
    for (int i = 0; y && i < n; i++)
        if (beyond[i] > 0) y = wb_pad(y, i, 0, beyond[i], 0);
    if (y && d->given_bias) y = wb_add(y, wb_beside_channels(d->given_bias, y));
    return y && d->activation ? d->activation(y) : y;
}

enum { MOST = (1 << 20) - 1 };
#define ROW(member, ...) WB_ROW(wb_conv_transpose_layer, member, __VA_ARGS__)
#define PLACE(member)    offsetof(wb_conv_transpose_layer, desc.member)

static const wb_field fields[] = {
    ROW(kernel, WB_FIELD_SIZES, .low = 1, .high = MOST, .text_only = true),
    ROW(in, WB_FIELD_PAIR, .low = 1, .text_only = true, .given_by = PLACE(given_weight)),
    ROW(activation, WB_FIELD_ACTIVATION, .flux = "σ"),
    WB_ROW_NAMED(wb_conv_transpose_layer, given_weight, "weight", WB_FIELD_ARRAY, .trainable = true,
                 .torch = "weight flip"),
    WB_ROW_NAMED(wb_conv_transpose_layer, given_bias, "bias", WB_FIELD_ARRAY, .trainable = true,
                 .with = PLACE(bias)),
    WB_ROW_NAMED(wb_conv_transpose_layer, bias, "bias", WB_FIELD_BOOL, .usual = true,
                 .text_only = true, .rank = 1),
    ROW(stride, WB_FIELD_EACH, .usual = 1, .low = 1, .high = MOST),
    ROW(pad, WB_FIELD_PADDING, .high = MOST, .rank = -1, .without = PLACE(same_pad)),
    ROW(outpad, WB_FIELD_EACH, .high = MOST, .since = 8, .rank = 1),
    ROW(dilation, WB_FIELD_EACH, .usual = 1, .low = 1, .high = MOST),
    ROW(groups, WB_FIELD_INTEGER, .usual = 1, .low = 1, .since = 7),
};

static void derive(wb_layer *layer) {
    wb_conv_transpose_desc *d = desc_of(layer);
    wb_derive_filter(d->given_weight, d->groups, d->kernel, &d->out, &d->in);
}

/* The result of a kernel as long as the stride is size * stride without padding. */
static bool pad_to_same(wb_conv_transpose_desc *d, int n) {
    int64_t rest[WB_MOST_SIZES] = {0};
    for (int i = 0; i < n; i++) {
        rest[i] = d->kernel[i] - d->stride[i] + 1;
        if (rest[i] >= 1) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "ConvTranspose: with same_pad the kernel must be at least the stride %s, got "
                      "%s",
                      wb_sizes_text(n, d->stride), wb_sizes_text(n, d->kernel));
        return false;
    }
    wb_pad_to_same(rest, d->dilation, d->pad);
    return true;
}

static bool complete(wb_layer *layer) {
    wb_conv_transpose_desc *d = desc_of(layer);
    int64_t sizes[WB_MAX_DIMS];
    int n;
    memcpy(sizes, wb_layer_sizes(layer, &n), sizeof d->kernel);
    if (!wb_check_groups(layer, d->groups, d->in, d->out)) return false;
    if (d->same_pad && !pad_to_same(d, n)) return false;
    sizes[n] = d->out / d->groups, sizes[n + 1] = d->in;
    wb_init *init = d->init ? d->init : wb_glorot_uniform;
    return wb_layer_fill(layer, &d->given_weight, init, d->dtype, n + 2, sizes) &&
           wb_layer_fill(layer, &d->given_bias, wb_zeros_init, (wb_dtype)d->given_weight->dtype, 1,
                         &d->out);
}

const wb_layer_class wb_conv_transpose_class = {.name = "ConvTranspose",
                                                .has_channels = true,
                                                WB_LAYER_ROWS(wb_conv_transpose_layer, fields),
                                                .forward = forward,
                                                .derive = derive,
                                                .complete = complete};

wb_layer *wb_conv_transpose_make(wb_conv_transpose_desc desc) {
    if (!wb_check_pads(&wb_conv_transpose_class, desc.pad, desc.same_pad)) return NULL;
    wb_layer *layer = wb_layer_of_desc(&wb_conv_transpose_class, &desc, sizeof desc);
    if (!layer) wb_hint_at_braces(desc.kernel, desc.in, desc.out, desc.given_weight);
    return layer;
}
