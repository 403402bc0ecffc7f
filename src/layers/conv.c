/* Convolution and cross-correlation. */
#include <string.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_conv_layer {
    wb_layer layer;
    wb_conv_desc desc;
} wb_conv_layer;

static wb_conv_desc *desc_of(wb_layer *layer) { return &((wb_conv_layer *)(void *)layer)->desc; }

/* Adds a hint if the sizes are in the order of other libraries. */
static void hint_at_order(const wb_array *x, int n, int64_t channels) {
    const bool comes_first = x->sizes[1] == channels, comes_last = x->sizes[n + 1] == channels;
    if (n == 2 && (comes_first || comes_last))
        wb_error_add("sizes must be (width, height, channels, batch); if x is (batch, %s), "
                     "wb_permute(x, %s) makes it so",
                     comes_first ? "channels, height, width" : "height, width, channels",
                     comes_first ? "3, 2, 1, 0" : "2, 1, 3, 0");
}

bool wb_check_image(const wb_array *x, int n, int64_t channels) {
    if (x->ndim != n + 2) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "input has %d dimensions in %s, expected %d: %d spatial, channels, batch",
                      x->ndim, wb_text_of(x), n + 2, n);
        if (x->ndim == n + 1 && channels == 1)
            wb_error_add("wb_unsqueeze(x, %d) adds the channel", n);
    } else if (x->sizes[n] != channels) {
        (void)wb_fail(WB_ERROR_SHAPE, "input has %lld channels in %s, expected %lld",
                      (long long)x->sizes[n], wb_text_of(x), (long long)channels);
        hint_at_order(x, n, channels);
    } else
        return true;
    return false;
}

void wb_window_pad(int n, const int64_t *pad, wb_window_desc *window) {
    for (int i = 0; i < n; i++) {
        window->pad[i] = pad[i] ? pad[i] : WB_NONE_;
        window->pad_more[i] = pad[WB_MOST_SIZES + i];
    }
}

static wb_array *forward_window(wb_layer *layer, wb_array *x, bool is_flipped) {
    const wb_conv_desc *c = desc_of(layer);
    const int n = c->given_weight->ndim - 2;
    wb_window_desc window = {.groups = c->groups, .cross_correlation = !is_flipped};
    if (!wb_check_image(x, n, c->in)) return NULL;
    memcpy(window.stride, c->stride, sizeof window.stride);
    memcpy(window.dilation, c->dilation, sizeof window.dilation);
    wb_window_pad(n, c->pad, &window);
    x = wb_convert_input(x, c->given_weight);
    wb_array *y = x ? wb_conv_op_make(x, c->given_weight, window) : NULL;
    if (y && c->given_bias) y = wb_add(y, wb_beside_channels(c->given_bias, y));
    return y && c->activation ? c->activation(y) : y;
}

static wb_array *forward(wb_layer *layer, wb_array *x) { return forward_window(layer, x, true); }
static wb_array *forward_cross(wb_layer *layer, wb_array *x) {
    return forward_window(layer, x, false);
}

/* ---- the classes ---- */

#define PLACE(member) offsetof(wb_conv_layer, desc.member)
enum { MOST = (1 << 20) - 1 };

#define ROWS(torch_weight)                                                                         \
    WB_ROW(wb_conv_layer, kernel, WB_FIELD_SIZES, .low = 1, .high = MOST, .text_only = true),      \
        WB_ROW(wb_conv_layer, in, WB_FIELD_PAIR, .low = 1, .text_only = true,                      \
               .given_by = PLACE(given_weight)),                                                   \
        WB_ROW(wb_conv_layer, activation, WB_FIELD_ACTIVATION, .flux = "σ"),                       \
        WB_ROW_NAMED(wb_conv_layer, given_weight, "weight", WB_FIELD_ARRAY, .trainable = true,     \
                     .torch = torch_weight),                                                       \
        WB_ROW_NAMED(wb_conv_layer, given_bias, "bias", WB_FIELD_ARRAY, .trainable = true,         \
                     .with = PLACE(bias)),                                                         \
        WB_ROW_NAMED(wb_conv_layer, bias, "bias", WB_FIELD_BOOL, .usual = true, .text_only = true, \
                     .rank = 1),                                                                   \
        WB_ROW(wb_conv_layer, stride, WB_FIELD_EACH, .usual = 1, .low = 1, .high = MOST),          \
        WB_ROW(wb_conv_layer, pad, WB_FIELD_PADDING, .high = MOST, .rank = -1,                     \
               .without = PLACE(same_pad)),                                                        \
        WB_ROW(wb_conv_layer, dilation, WB_FIELD_EACH, .usual = 1, .low = 1, .high = MOST)

static const wb_field fields[] = {
    ROWS("weight flip"),
    WB_ROW(wb_conv_layer, groups, WB_FIELD_INTEGER, .usual = 1, .low = 1, .since = 7)};
static const wb_field cross_fields[] = {
    ROWS("weight"),
    WB_ROW(wb_conv_layer, groups, WB_FIELD_INTEGER, .usual = 1, .low = 1, .text_only = true)};

static const wb_field depthwise_fields[] = {ROWS("weight flip")};

void wb_derive_filter(const wb_array *weight, int64_t groups, int64_t *kernel, int64_t *grouped,
                      int64_t *whole) {
    const int n = weight ? weight->ndim - 2 : 0;
    if (n < 1 || n > WB_MOST_SIZES) return;
    const int64_t *sizes = weight->sizes;
    if (kernel[0] == 0) memcpy(kernel, sizes, (size_t)n * sizeof *sizes);
    if (*whole == 0) *whole = sizes[n + 1];
    if (*grouped == 0 && __builtin_mul_overflow(sizes[n], groups ? groups : 1, grouped))
        *grouped = 0;
}

static void derive(wb_layer *layer) {
    wb_conv_desc *d = desc_of(layer);
    wb_derive_filter(d->given_weight, d->groups, d->kernel, &d->in, &d->out);
}

void wb_pad_to_same(const int64_t *kernel, const int64_t *dilation, int64_t *pad) {
    for (int i = 0; i < WB_MOST_SIZES && kernel[i] > 0; i++) {
        const int64_t all = (dilation ? dilation[i] : 1) * (kernel[i] - 1);
        pad[i] = (all + 1) / 2, pad[WB_MOST_SIZES + i] = all / 2 - pad[i];
    }
}

static bool complete(wb_layer *layer) {
    wb_conv_desc *d = desc_of(layer);
    int64_t sizes[WB_MAX_DIMS];
    int n;
    memcpy(sizes, wb_layer_sizes(layer, &n), sizeof d->kernel);
    if (!wb_check_groups(layer, d->groups, d->in, d->out)) return false;
    if (d->same_pad) wb_pad_to_same(d->kernel, d->dilation, d->pad);
    sizes[n] = d->in / d->groups, sizes[n + 1] = d->out;
    wb_init *init = d->init ? d->init : wb_glorot_uniform;
    return wb_layer_fill(layer, &d->given_weight, init, d->dtype, n + 2, sizes) &&
           wb_layer_fill(layer, &d->given_bias, wb_zeros_init, (wb_dtype)d->given_weight->dtype, 1,
                         &d->out);
}

/* Flux had DepthwiseConv as a struct until 0.12, with a weight (kernel..., out / in, in); in Weber
 * it becomes a Conv, too. */
static void derive_depthwise(wb_layer *layer) {
    wb_conv_desc *d = desc_of(layer);
    const int n = d->given_weight ? d->given_weight->ndim - 2 : 0;
    const bool is_old = n >= 1 && n <= WB_MOST_SIZES && d->groups == 0 && d->in == 0;
    if (is_old && wb_count(d->given_weight) > 0) {
        int64_t sizes[WB_MAX_DIMS] = {0};
        memcpy(sizes, d->given_weight->sizes, (size_t)n * sizeof *sizes);
        d->in = d->given_weight->sizes[n + 1], sizes[n] = 1;
        sizes[n + 1] = d->in * d->given_weight->sizes[n];
        wb_array *weight = wb_hold(wb_reshape_make(d->given_weight, n + 2, sizes));
        if (weight) wb_unhold(d->given_weight), d->given_weight = weight;
    }
    if (d->groups == 0) d->groups = d->in;
    derive(layer);
}

static bool complete_depthwise(wb_layer *layer) {
    const wb_conv_desc *d = desc_of(layer);
    if (d->in > 0 && d->groups == d->in && wb_check_groups(layer, d->groups, d->in, d->out)) {
        layer->class_ = &wb_conv_class;
        return complete(layer);
    }
    if (!wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "DepthwiseConv: groups must be as many as channels, %lld, got %lld",
                      (long long)d->in, (long long)d->groups);
    return false;
}

#define CLASS(name_, fields_, forward_)                                                            \
    {                                                                                              \
        .name = name_, WB_LAYER_ROWS(wb_conv_layer, fields_), .forward = forward_,                 \
        .derive = derive, .complete = complete, .has_channels = true                               \
    }
const wb_layer_class wb_conv_class = CLASS("Conv", fields, forward);
const wb_layer_class wb_cross_cor_class = CLASS("CrossCor", cross_fields, forward_cross);

const wb_layer_class wb_depthwise_conv_class = {.name = "DepthwiseConv",
                                                WB_LAYER_ROWS(wb_conv_layer, depthwise_fields),
                                                .forward = forward,
                                                .has_channels = true,
                                                .derive = derive_depthwise,
                                                .complete = complete_depthwise};

void wb_hint_at_braces(const int64_t *kernel, int64_t in, int64_t out, const wb_array *weight) {
    int n = 0;
    while (n < WB_MOST_SIZES && kernel[n]) n++;
    if (out == 0 && (in == 0 || n == WB_MOST_SIZES) && !weight)
        wb_error_add("the kernel is %s: write its sizes in braces, ({3, 3}, 1, 16)",
                     wb_sizes_text(n, kernel));
}

bool wb_check_pads(const wb_layer_class *k, const int64_t *pad, bool same_pad) {
    for (int i = 0; same_pad && i < WB_MOST_SIZES; i++) {
        if (pad[i] == 0) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: .pad and .same_pad must not both be given: same_pad computes pad",
                      k->name);
        return false;
    }
    return true;
}

static wb_layer *make(const wb_layer_class *k, const wb_conv_desc *d) {
    if (!wb_check_pads(k, d->pad, d->same_pad)) return NULL;
    wb_layer *layer = wb_layer_of_desc(k, d, sizeof *d);
    if (!layer) wb_hint_at_braces(d->kernel, d->in, d->out, d->given_weight);
    return layer;
}

wb_layer *wb_depthwise_conv_make(wb_conv_desc desc) {
    return make(&wb_depthwise_conv_class, &desc);
}

wb_layer *wb_conv_make(wb_conv_desc desc) { return make(&wb_conv_class, &desc); }

wb_layer *wb_cross_cor_make(wb_conv_desc desc) { return make(&wb_cross_cor_class, &desc); }
