/* Convolution and cross-correlation. */
#include <stdio.h>
#include <string.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_conv_layer {
    wb_layer layer;
    wb_array *weight, *bias; /* (kernel..., in / groups, out), (out) or NULL */
    wb_activation *activation;
    wb_window_desc window;
    int nspatial;
    bool same_pad;
} wb_conv_layer;

static const wb_conv_layer *conv_of(const wb_layer *layer) {
    return (const wb_conv_layer *)(const void *)layer;
}

static int64_t groups_of(const wb_conv_layer *c) { return c->window.groups; }
static int64_t in_of(const wb_conv_layer *c) {
    return c->weight->sizes[c->nspatial] * groups_of(c);
}

static bool check_input(const wb_conv_layer *c, const wb_array *x) {
    const int wanted = c->nspatial + 2;
    if (x->ndim != wanted)
        (void)wb_fail(WB_ERROR_SHAPE,
                      "input has %d dimensions in %s, %d wanted: %d spatial, channels, batch",
                      x->ndim, wb_text_of(x), wanted, c->nspatial);
    else if (x->sizes[c->nspatial] != in_of(c))
        (void)wb_fail(WB_ERROR_SHAPE, "input has %lld channels in %s",
                      (long long)x->sizes[c->nspatial], wb_text_of(x));
    else
        return true;
    return false;
}

/* The bias (out) beside channels: (1, ..., out). */
static wb_array *add_bias(const wb_conv_layer *c, wb_array *y) {
    int64_t sizes[4] = {1, 1, 1, 1};
    sizes[c->nspatial] = c->bias->sizes[0];
    return wb_add(y, wb_reshape_make(c->bias, c->nspatial + 1, sizes));
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_conv_layer *c = conv_of(layer);
    if (!check_input(c, x)) return NULL;
    x = wb_convert_input(x, c->weight);
    wb_array *y = x ? wb_conv_forward_make(x, c->weight, c->window) : NULL;
    if (y && c->bias) y = add_bias(c, y);
    return y && c->activation ? c->activation(y) : y;
}

/* ---- printing ---- */

static bool all_equal(const int64_t *numbers, int count, int64_t value) {
    for (int i = 0; i < count; i++)
        if (numbers[i] != value) return false;
    return true;
}

static size_t append(char *text, size_t size, const char *what, const char *value) {
    const int written = snprintf(text, size, "%s%s", what, value);
    return (size_t)written < size ? (size_t)written : size - 1;
}

static size_t settings(const wb_conv_layer *c, char *text, size_t size) {
    size_t used = 0;
    char numbers[96];
    const int n = c->nspatial;
    if (!all_equal(c->window.pad, n, 0) || !all_equal(c->window.pad_more, n, 0)) {
        wb_pad_text(n, c->window.pad, c->window.pad_more, numbers, sizeof numbers);
        used += append(text + used, size - used, ", pad=", numbers);
    }
    if (!all_equal(c->window.stride, n, 1)) {
        wb_numbers_text(n, c->window.stride, true, numbers, sizeof numbers);
        used += append(text + used, size - used, ", stride=", numbers);
    }
    if (!all_equal(c->window.dilation, n, 1)) {
        wb_numbers_text(n, c->window.dilation, true, numbers, sizeof numbers);
        used += append(text + used, size - used, ", dilation=", numbers);
    }
    if (groups_of(c) > 1) {
        (void)snprintf(numbers, sizeof numbers, "%lld", (long long)groups_of(c));
        used += append(text + used, size - used, ", groups=", numbers);
    }
    return used + append(text + used, size - used, c->bias ? "" : ", bias=false", "");
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    const wb_conv_layer *c = conv_of(layer);
    char kernel[64];
    wb_numbers_text(c->nspatial, c->weight->sizes, false, kernel, sizeof kernel);
    const char *activation = brief ? "" : wb_activation_text(c->activation);
    char all[300] = "";
    if (!brief) (void)settings(c, all, sizeof all);
    (void)snprintf(text, size, "%s(%s, %lld => %lld%s%s%s)", layer->class_->name, kernel,
                   (long long)in_of(c), (long long)c->weight->sizes[c->nspatial + 1],
                   *activation ? ", " : "", activation, all);
}

static const wb_field fields[] = {
    WB_ARRAY_FIELD(wb_conv_layer, weight),
    WB_ARRAY_FIELD(wb_conv_layer, bias),
    WB_VALUE_FIELD(wb_conv_layer, activation),
    WB_VALUE_FIELD(wb_conv_layer, window),
};
const wb_layer_class wb_conv_class = {"Conv", sizeof(wb_conv_layer), fields, 4, forward, describe};
const wb_layer_class wb_cross_cor_class = {"CrossCor", sizeof(wb_conv_layer), fields, 4, forward,
                                           describe};

/* ---- making ---- */

static int spatial_dims(const int64_t *kernel) {
    int n = 0;
    while (n < 3 && kernel[n] != 0) n++;
    return n;
}

static void with_defaults(wb_conv_desc *d) {
    wb_repeat_last(spatial_dims(d->kernel), d->stride);
    wb_repeat_last(spatial_dims(d->kernel), d->dilation);
    for (int i = 0; i < 3; i++) {
        if (d->stride[i] == 0) d->stride[i] = 1;
        if (d->dilation[i] == 0) d->dilation[i] = 1;
    }
    if (d->groups == 0) d->groups = 1;
    if (!d->init) d->init = wb_glorot_uniform;
}

static void pad_to_same(wb_conv_desc *d) {
    for (int i = 0; i < 3 && d->kernel[i] > 0; i++) {
        const int64_t all = d->dilation[i] * (d->kernel[i] - 1);
        d->pad[i] = (all + 1) / 2, d->pad_more[i] = all / 2 - d->pad[i];
    }
}

static bool check(const char *name, const wb_conv_desc *d) {
    bool positive = d->kernel[0] > 0 && d->in > 0 && d->out > 0 && d->groups > 0;
    for (int i = 0; i < 3; i++)
        positive = positive && wb_window_takes(d->kernel[i], 0) &&
                   wb_window_takes(d->stride[i], 1) && wb_window_takes(d->dilation[i], 1) &&
                   wb_window_takes(d->pad[i], 0) && wb_window_takes(d->pad_more[i], -d->pad[i]);
    if (!positive)
        (void)wb_fail(
            WB_ERROR_ARGUMENT,
            "%s: kernel %s, %lld => %lld channels: kernel, in, out, stride, dilation and groups "
            "are positive, padding is not negative; a window's numbers are below 2^20",
            name, wb_sizes_text(3, d->kernel), (long long)d->in, (long long)d->out);
    else if (d->in % d->groups || d->out % d->groups)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %lld groups do not divide %lld => %lld channels", name,
                      (long long)d->groups, (long long)d->in, (long long)d->out);
    else if (d->no_bias && d->bias)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: no_bias, but a bias %s was given", name,
                      wb_text_of(d->bias));
    else
        return true;
    return false;
}

static bool check_given(const char *name, const wb_conv_desc *d, int ndim, const int64_t *sizes) {
    const wb_array *w = d->weight, *b = d->bias;
    if (w && (w->ndim != ndim || memcmp(w->sizes, sizes, (size_t)ndim * sizeof *sizes) != 0))
        (void)wb_fail(WB_ERROR_SHAPE, "%s: the weight is %s, not %s", name, wb_text_of(w),
                      wb_sizes_text(ndim, sizes));
    else if (w && !wb_dtype_is_float((wb_dtype)w->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "%s: the weight is %s, not floating", name,
                      wb_dtype_name((wb_dtype)w->dtype));
    else if (b && (b->ndim != 1 || b->sizes[0] != d->out))
        (void)wb_fail(WB_ERROR_SHAPE, "%s: the bias is %s for %lld channels", name, wb_text_of(b),
                      (long long)d->out);
    else
        return true;
    return false;
}

static bool fill(const char *name, wb_conv_layer *c, const wb_conv_desc *d, bool cross) {
    const int n = c->nspatial = spatial_dims(d->kernel);
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < 3; i++) {
        sizes[i] = d->kernel[i];
        c->window.stride[i] = d->stride[i], c->window.dilation[i] = d->dilation[i];
        c->window.pad[i] = i < n ? d->pad[i] : 0;
        c->window.pad_more[i] = i < n ? d->pad_more[i] : 0;
    }
    c->window.exact_ = true, c->window.groups = d->groups, c->window.cross_correlation = cross;
    c->activation = d->activation, c->same_pad = d->same_pad;
    sizes[n] = d->in / d->groups, sizes[n + 1] = d->out;
    c->weight = wb_hold(d->weight ? d->weight : d->init(n + 2, sizes, d->dtype));
    if (!c->weight || !check_given(name, d, n + 2, sizes)) return false;
    if (d->no_bias) return true;
    c->bias = wb_hold(d->bias ? d->bias : wb_zeros_init(1, &d->out, (wb_dtype)c->weight->dtype));
    return c->bias != NULL;
}

static wb_layer *make(const char *name, const wb_layer_class *layer_class, wb_conv_desc desc) {
    with_defaults(&desc);
    if (!desc.exact_ && !wb_check_padding(name, spatial_dims(desc.kernel), desc.pad)) return NULL;
    if (!check(name, &desc)) return NULL;
    if (desc.same_pad) pad_to_same(&desc);
    if (!wb_scope_begin()) return NULL;
    wb_conv_layer *c = (wb_conv_layer *)(void *)wb_layer_new(layer_class);
    const bool failed = !c || !fill(name, c, &desc, layer_class == &wb_cross_cor_class);
    return wb_layer_finish(c ? &c->layer : NULL, failed);
}

wb_conv_desc wb_conv_desc_of(const wb_layer *layer) {
    const wb_conv_layer *c = conv_of(layer);
    wb_conv_desc d = {.in = in_of(c),
                      .out = c->weight->sizes[c->nspatial + 1],
                      .activation = c->activation,
                      .groups = groups_of(c),
                      .same_pad = c->same_pad,
                      .no_bias = !c->bias};
    for (int i = 0; i < c->nspatial; i++) {
        d.kernel[i] = c->weight->sizes[i];
        d.stride[i] = c->window.stride[i], d.dilation[i] = c->window.dilation[i];
        d.pad[i] = c->window.pad[i], d.pad_more[i] = c->window.pad_more[i];
    }
    return d;
}

wb_layer *wb_conv_make(wb_conv_desc desc) { return make("wb_conv", &wb_conv_class, desc); }
wb_layer *wb_cross_cor_make(wb_conv_desc desc) {
    return make("wb_cross_cor", &wb_cross_cor_class, desc);
}
