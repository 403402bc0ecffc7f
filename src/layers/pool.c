/* Max and mean pooling. */
#include <stdio.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_pool_layer {
    wb_layer layer;
    wb_window_desc window;
    int nspatial;
} wb_pool_layer;

static const wb_pool_layer *pool_of(const wb_layer *layer) {
    return (const wb_pool_layer *)(const void *)layer;
}

static bool check_input(const wb_pool_layer *p, const wb_array *x) {
    if (x->ndim == p->nspatial + 2) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "input has %d dimensions in %s, %d wanted: %d spatial, channels, batch", x->ndim,
                  wb_text_of(x), p->nspatial + 2, p->nspatial);
    return false;
}

static wb_array *max_forward(wb_layer *layer, wb_array *x) {
    const wb_pool_layer *p = pool_of(layer);
    return check_input(p, x) ? wb_maxpool_make_op(x, p->window) : NULL;
}

static wb_array *mean_forward(wb_layer *layer, wb_array *x) {
    const wb_pool_layer *p = pool_of(layer);
    return check_input(p, x) ? wb_meanpool_make_op(x, p->window) : NULL;
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    const wb_pool_layer *p = pool_of(layer);
    const int n = p->nspatial;
    char kernel[64], stride[64] = "", pad[140] = "";
    wb_numbers_text(n, p->window.kernel, false, kernel, sizeof kernel);
    bool default_stride = true, default_pad = true;
    for (int i = 0; i < n; i++) {
        default_stride = default_stride && p->window.stride[i] == p->window.kernel[i];
        default_pad = default_pad && p->window.pad[i] == 0 && p->window.pad_more[i] == 0;
    }
    if (!default_pad) wb_pad_text(n, p->window.pad, p->window.pad_more, pad, sizeof pad);
    if (!default_stride) wb_numbers_text(n, p->window.stride, true, stride, sizeof stride);
    (void)snprintf(text, size, "%s(%s%s%s%s%s)", layer->class_->name, kernel,
                   *pad && !brief ? ", pad=" : "", brief ? "" : pad,
                   *stride && !brief ? ", stride=" : "", brief ? "" : stride);
}

static const wb_field fields[] = {WB_VALUE_FIELD(wb_pool_layer, window)};
const wb_layer_class wb_maxpool_class = {"MaxPool", sizeof(wb_pool_layer), fields,
                                         1,         max_forward,           describe};
const wb_layer_class wb_meanpool_class = {"MeanPool", sizeof(wb_pool_layer), fields,
                                          1,          mean_forward,          describe};

static bool check(const char *name, const wb_pool_desc *d) {
    bool good = d->kernel[0] > 0;
    for (int i = 0; i < 3; i++)
        good = good && wb_window_takes(d->kernel[i], 0) && wb_window_takes(d->stride[i], 0) &&
               wb_window_takes(d->pad[i], 0) && wb_window_takes(d->pad_more[i], -d->pad[i]);
    if (!good)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: kernel %s, stride %s, pad %s: the kernel is positive, the rest not "
                      "negative; all are below 2^20",
                      name, wb_sizes_text(3, d->kernel), wb_sizes_text(3, d->stride),
                      wb_sizes_text(3, d->pad));
    return good;
}

static wb_layer *make(const char *name, const wb_layer_class *layer_class, wb_pool_desc d) {
    int n = 0;
    while (n < 3 && d.kernel[n] > 0) n++;
    wb_repeat_last(n, d.stride);
    if ((!d.exact_ && !wb_check_padding(name, n, d.pad)) || !check(name, &d)) return NULL;
    wb_pool_layer *p = (wb_pool_layer *)(void *)wb_layer_new(layer_class);
    if (!p) return NULL;
    p->nspatial = n, p->window.exact_ = true;
    for (int i = 0; i < p->nspatial; i++) {
        p->window.kernel[i] = d.kernel[i];
        p->window.stride[i] = d.stride[i] ? d.stride[i] : d.kernel[i];
        p->window.pad[i] = d.same_pad ? d.kernel[i] / 2 : d.pad[i];
        p->window.pad_more[i] =
            d.same_pad ? (d.kernel[i] - 1) / 2 - d.kernel[i] / 2 : d.pad_more[i];
    }
    return &p->layer;
}

wb_layer *wb_maxpool_make(wb_pool_desc desc) { return make("wb_maxpool", &wb_maxpool_class, desc); }
wb_layer *wb_meanpool_make(wb_pool_desc desc) {
    return make("wb_meanpool", &wb_meanpool_class, desc);
}

wb_pool_desc wb_pool_desc_of(const wb_layer *layer) {
    const wb_pool_layer *p = pool_of(layer);
    wb_pool_desc d = {.start_ = 0};
    for (int i = 0; i < p->nspatial; i++) {
        d.kernel[i] = p->window.kernel[i], d.stride[i] = p->window.stride[i];
        d.pad[i] = p->window.pad[i], d.pad_more[i] = p->window.pad_more[i];
    }
    return d;
}
