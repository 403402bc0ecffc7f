/* Known models of images, by the layers of torchvision 0.14 (torchvision/models): the order of
 * layers is that of its state_dicts. */
#include <weber/initialisers.h>
#include <weber/layers.h>
#include <weber/ops.h>

#include "layers/vision.h"

enum { MOST_LAYERS = 32 };

/* ---- parts of several ---- */

/* A convolution that keeps the size but for the stride, and its norm. */
typedef struct unit {
    int64_t kernel, in, out, stride, groups;
    wb_activation *activation;
    double eps, momentum; /* of the norm; 0: as in BatchNorm */
} unit;

static wb_layer *normed(unit u) {
    const int64_t pad = u.kernel / 2;
    const double momentum = u.momentum > 0 ? u.momentum : 0.1;
    wb_layer *conv = wb_cross_cor({u.kernel, u.kernel}, u.in, u.out, .stride = {u.stride},
                                  .pad = WB_EACH(pad, pad), .groups = u.groups, .bias = false,
                                  .init = wb_kaiming_normal);
    return wb_chain(conv, wb_batchnorm(u.out, u.activation, .eps = u.eps, .momentum = momentum));
}

static wb_layer *plain(int64_t kernel, int64_t in, int64_t out, int64_t stride,
                       wb_activation *activation) {
    return normed(
        (unit){.kernel = kernel, .in = in, .out = out, .stride = stride, .activation = activation});
}

/* The chain of a body and, unless there are no classes, of a Dense of its features. */
static wb_layer *with_head(int64_t count, wb_layer **layers, int64_t features, double dropout,
                           int64_t classes) {
    if (classes && dropout != 0) layers[count++] = wb_dropout(dropout);
    if (classes) layers[count++] = wb_dense(features, classes);
    return wb_chain_make(count, layers);
}

/* Adds the mean of each channel as a feature. */
static void add_means(int64_t *count, wb_layer **layers) {
    layers[(*count)++] = wb_global_meanpool(), layers[(*count)++] = wb_flatten();
}

bool wb_vision_may_make(const char *function, wb_start start, int64_t channels, int64_t classes) {
    if (!wb_check_start(function, start)) return false;
    if (channels > 0 && classes >= 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: channels must be positive and classes not negative, got %lld and %lld",
                  function, (long long)channels, (long long)classes);
    return false;
}

bool wb_vision_check_chance(const char *function, const char *name, double chance) {
    if (chance >= 0 && chance <= 1) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be from 0 to 1, got %g", function, name, chance);
    return false;
}

wb_layer *wb_vision_finish(const char *function, uint64_t errors, wb_layer *model) {
    if (!model) wb_error_prefix(errors, "%s: ", function);
    return model;
}

/* ---- ResNet ---- */

static const struct {
    int64_t depth;
    int blocks[4];
    bool narrows; /* blocks of three convolutions, the one in the middle narrower */
} resnets[] = {{18, {2, 2, 2, 2}, false},
               {34, {3, 4, 6, 3}, false},
               {50, {3, 4, 6, 3}, true},
               {101, {3, 4, 23, 3}, true},
               {152, {3, 8, 36, 3}, true}};

static wb_layer *residual(int64_t in, int64_t width, int64_t stride, bool narrows) {
    const int64_t out = narrows ? 4 * width : width;
    wb_layer *block =
        narrows ? wb_chain(plain(1, in, width, 1, wb_relu), plain(3, width, width, stride, wb_relu),
                           plain(1, width, out, 1, NULL))
                : wb_chain(plain(3, in, width, stride, wb_relu), plain(3, width, out, 1, NULL));
    wb_layer *sum = in == out && stride == 1
                        ? wb_skip(block, wb_connect_add)
                        : wb_parallel(wb_connect_add, block, plain(1, in, out, stride, NULL));
    return wb_chain(sum, wb_fn(wb_relu));
}

/* Of several blocks, the first of which has the stride. */
static wb_layer *residuals(int count, int64_t in, int64_t width, int64_t stride, bool narrows) {
    wb_layer *blocks[36];
    for (int i = 0; i < count; i++)
        blocks[i] =
            residual(i ? (narrows ? 4 * width : width) : in, width, i ? 1 : stride, narrows);
    return wb_chain_make(count, blocks);
}

wb_layer *wb_resnet_make(wb_resnet_desc d) {
    wb_layer *layers[MOST_LAYERS];
    int64_t n = 0, in = 64;
    size_t k = 0;
    if (!wb_vision_may_make("wb_resnet", d.start_, d.channels, d.classes)) return NULL;
    while (k < sizeof resnets / sizeof *resnets && resnets[k].depth != d.depth) k++;
    if (k == sizeof resnets / sizeof *resnets)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "wb_resnet: depth must be 18, 34, 50, 101 or 152, got %lld",
                            (long long)d.depth);
    layers[n++] = plain(7, d.channels, 64, 2, wb_relu);
    layers[n++] = wb_maxpool({3, 3}, .stride = {2}, .pad = WB_ALL(1));
    for (int s = 0; s < 4; s++) {
        const int64_t width = (int64_t)64 << s;
        layers[n++] = residuals(resnets[k].blocks[s], in, width, s ? 2 : 1, resnets[k].narrows);
        in = resnets[k].narrows ? 4 * width : width;
    }
    add_means(&n, layers);
    return with_head(n, layers, in, 0, d.classes);
}

/* ---- VGG ---- */

static const struct {
    int64_t depth;
    int convs[5]; /* at each size */
} vggs[] = {
    {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};

static wb_layer *vgg_conv(int64_t in, int64_t out, bool has_norm) {
    wb_layer *conv = wb_cross_cor({3, 3}, in, out, has_norm ? NULL : wb_relu, .pad = WB_ALL(1),
                                  .init = wb_kaiming_normal);
    return has_norm ? wb_chain(conv, wb_batchnorm(out, wb_relu)) : conv;
}

wb_layer *wb_vgg_make(wb_vgg_desc d) {
    static const int64_t widths[] = {64, 128, 256, 512, 512};
    enum { SIDE = 7, HIDDEN = 4096 };
    wb_layer *layers[MOST_LAYERS];
    int64_t n = 0, in = d.channels;
    size_t k = 0;
    if (!wb_vision_may_make("wb_vgg", d.start_, d.channels, d.classes)) return NULL;
    while (k < sizeof vggs / sizeof *vggs && vggs[k].depth != d.depth) k++;
    if (k == sizeof vggs / sizeof *vggs)
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_vgg: depth must be 11, 13, 16 or 19, got %lld",
                            (long long)d.depth);
    for (int s = 0; s < 5; s++) {
        for (int i = 0; i < vggs[k].convs[s]; i++, in = widths[s])
            layers[n++] = vgg_conv(in, widths[s], d.norm);
        layers[n++] = wb_maxpool({2, 2});
    }
    layers[n++] = wb_adaptive_meanpool({SIDE, SIDE}), layers[n++] = wb_flatten();
    layers[n++] = wb_dense(SIDE * SIDE * in, HIDDEN, wb_relu), layers[n++] = wb_dropout(d.dropout);
    layers[n++] = wb_dense(HIDDEN, HIDDEN, wb_relu);
    return with_head(n, layers, HIDDEN, d.dropout, d.classes);
}

/* ---- blocks that are wider inside ---- */

typedef struct inverted {
    int64_t kernel, in, wide, out, stride;
    int64_t squeezed; /* channels of squeeze and excitation; 0: without */
    wb_activation *activation, *squeeze, *gate;
    double eps, momentum; /* of the norms */
    double dropout;       /* of the whole block, in training */
} inverted;

/* x times the sigmoid or hardsigmoid of what two small layers say of the channels' means. (Hu et
 * al. 2017) */
static wb_layer *excitation(const inverted *b) {
    return wb_skip(
        wb_chain(wb_global_meanpool(),
                 wb_cross_cor({1, 1}, b->wide, b->squeezed, b->squeeze, .init = wb_kaiming_normal),
                 wb_cross_cor({1, 1}, b->squeezed, b->wide, b->gate, .init = wb_kaiming_normal)),
        wb_connect_mul);
}

static wb_layer *invert(const inverted *b) {
    wb_layer *layers[5];
    int n = 0;
    unit u = {.kernel = 1,
              .in = b->in,
              .out = b->wide,
              .stride = 1,
              .activation = b->activation,
              .eps = b->eps,
              .momentum = b->momentum};
    if (b->wide != b->in) layers[n++] = normed(u);
    u.kernel = b->kernel, u.in = b->wide, u.stride = b->stride, u.groups = b->wide;
    layers[n++] = normed(u);
    if (b->squeezed) layers[n++] = excitation(b);
    u.kernel = 1, u.out = b->out, u.stride = 1, u.groups = 1, u.activation = NULL;
    layers[n++] = normed(u);
    const bool is_sum = b->stride == 1 && b->in == b->out;
    if (is_sum && b->dropout != 0) layers[n++] = wb_dropout(b->dropout, .dims = WB_DIM(3));
    wb_layer *block = wb_chain_make(n, layers);
    return is_sum ? wb_skip(block, wb_connect_add) : block;
}

/* Adds so many blocks, each `times` as wide inside; the first one has b's in and stride. */
static void invert_all(wb_layer **layers, int64_t *n, inverted b, int64_t times, int count) {
    for (int i = 0; i < count; i++, b.in = b.out, b.stride = 1) {
        b.wide = times * b.in;
        layers[(*n)++] = invert(&b);
    }
}

wb_layer *wb_mobilenet_v2_make(wb_mobilenet_desc d) {
    static const struct {
        int64_t times, out, stride;
        int count;
    } rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 2, 3}, {6, 64, 2, 4},
                {6, 96, 1, 3}, {6, 160, 2, 3}, {6, 320, 1, 1}};
    wb_layer *layers[MOST_LAYERS];
    int64_t n = 0, in = 32;
    if (!wb_vision_may_make("wb_mobilenet_v2", d.start_, d.channels, d.classes)) return NULL;
    layers[n++] = plain(3, d.channels, in, 2, wb_relu6);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; in = rows[r++].out)
        invert_all(layers, &n,
                   (inverted){.kernel = 3,
                              .in = in,
                              .out = rows[r].out,
                              .stride = rows[r].stride,
                              .activation = wb_relu6},
                   rows[r].times, rows[r].count);
    layers[n++] = plain(1, in, 1280, 1, wb_relu6);
    add_means(&n, layers);
    return with_head(n, layers, 1280, d.dropout, d.classes);
}

/* ---- MobileNet V3 ---- */

typedef struct row_v3 {
    int64_t kernel, wide, out;
    bool squeezes, is_hard; /* hardswish, else relu */
    int64_t stride;
} row_v3;

static const row_v3 small_v3[] = {
    {3, 16, 16, 1, 0, 2},  {3, 72, 24, 0, 0, 2},  {3, 88, 24, 0, 0, 1},  {5, 96, 40, 1, 1, 2},
    {5, 240, 40, 1, 1, 1}, {5, 240, 40, 1, 1, 1}, {5, 120, 48, 1, 1, 1}, {5, 144, 48, 1, 1, 1},
    {5, 288, 96, 1, 1, 2}, {5, 576, 96, 1, 1, 1}, {5, 576, 96, 1, 1, 1}};
static const row_v3 large_v3[] = {
    {3, 16, 16, 0, 0, 1},   {3, 64, 24, 0, 0, 2},   {3, 72, 24, 0, 0, 1},   {5, 72, 40, 1, 0, 2},
    {5, 120, 40, 1, 0, 1},  {5, 120, 40, 1, 0, 1},  {3, 240, 80, 0, 1, 2},  {3, 200, 80, 0, 1, 1},
    {3, 184, 80, 0, 1, 1},  {3, 184, 80, 0, 1, 1},  {3, 480, 112, 1, 1, 1}, {3, 672, 112, 1, 1, 1},
    {5, 672, 160, 1, 1, 2}, {5, 960, 160, 1, 1, 1}, {5, 960, 160, 1, 1, 1}};

/* The multiple of 8 that is nearest, and not below nine tenths. */
static int64_t of_eights(int64_t n) {
    const int64_t rounded = n < 12 ? 8 : (n + 4) / 8 * 8;
    return 10 * rounded < 9 * n ? rounded + 8 : rounded;
}

wb_layer *wb_mobilenet_v3_make(wb_mobilenet_v3_desc d) {
    static const double eps = 1e-3, momentum = 0.01;
    const row_v3 *rows = d.small ? small_v3 : large_v3;
    const int count =
        d.small ? sizeof small_v3 / sizeof *small_v3 : sizeof large_v3 / sizeof *large_v3;
    const int64_t last = 6 * rows[count - 1].out, hidden = d.small ? 1024 : 1280;
    wb_layer *layers[MOST_LAYERS];
    int64_t n = 0, in = 16;
    if (!wb_vision_may_make("wb_mobilenet_v3", d.start_, d.channels, d.classes)) return NULL;
    unit u = {.kernel = 3,
              .in = d.channels,
              .out = in,
              .stride = 2,
              .activation = wb_hardswish,
              .eps = eps,
              .momentum = momentum};
    layers[n++] = normed(u);
    for (int r = 0; r < count; in = rows[r++].out)
        layers[n++] =
            invert(&(inverted){.kernel = rows[r].kernel,
                               .in = in,
                               .wide = rows[r].wide,
                               .out = rows[r].out,
                               .stride = rows[r].stride,
                               .squeezed = rows[r].squeezes ? of_eights(rows[r].wide / 4) : 0,
                               .activation = rows[r].is_hard ? wb_hardswish : wb_relu,
                               .squeeze = wb_relu,
                               .gate = wb_hardsigmoid,
                               .eps = eps,
                               .momentum = momentum});
    u.kernel = 1, u.in = in, u.out = last, u.stride = 1;
    layers[n++] = normed(u);
    add_means(&n, layers);
    layers[n++] = wb_dense(last, hidden, wb_hardswish);
    return with_head(n, layers, hidden, d.dropout, d.classes);
}

/* ---- EfficientNet ---- */

wb_layer *wb_efficientnet_make(wb_efficientnet_desc d) {
    static const struct {
        int64_t times, kernel, stride, out;
        int count;
    } rows[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
    enum { BLOCKS = 16 };
    wb_layer *layers[MOST_LAYERS];
    int64_t n = 0, in = 32;
    if (!wb_vision_may_make("wb_efficientnet", d.start_, d.channels, d.classes)) return NULL;
    if (!wb_vision_check_chance("wb_efficientnet", "block_dropout", d.block_dropout)) return NULL;
    layers[n++] = plain(3, d.channels, in, 2, wb_swish);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < rows[r].count; i++, in = rows[r].out, n++)
            layers[n] = invert(&(inverted){.kernel = rows[r].kernel,
                                           .in = in,
                                           .wide = rows[r].times * in,
                                           .out = rows[r].out,
                                           .stride = i ? 1 : rows[r].stride,
                                           .squeezed = in / 4,
                                           .activation = wb_swish,
                                           .squeeze = wb_swish,
                                           .gate = wb_sigmoid,
                                           .dropout = d.block_dropout * (double)(n - 1) / BLOCKS});
    layers[n++] = plain(1, in, 1280, 1, wb_swish);
    add_means(&n, layers);
    return with_head(n, layers, 1280, d.dropout, d.classes);
}

/* ---- U-Net ---- */

static wb_layer *twice(int64_t in, int64_t out) {
    return wb_chain(plain(3, in, out, 1, wb_relu), plain(3, out, out, 1, wb_relu));
}

wb_layer *wb_unet_make(wb_unet_desc d) {
    if (!wb_vision_may_make("wb_unet", d.start_, d.channels, d.classes)) return NULL;
    if (d.classes == 0)
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_unet: classes must be positive, got 0");
    if (d.width < 1 || d.width > 4096 || d.levels < 1 || d.levels > 10)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "wb_unet: width must be from 1 to 4096 and levels from 1 to 10, got "
                            "%lld and %lld",
                            (long long)d.width, (long long)d.levels);
    const int64_t deepest = d.width << d.levels;
    wb_layer *inner = twice(deepest / 2, deepest);
    for (int64_t wide = deepest / 2; wide >= d.width; wide /= 2) {
        wb_layer *below = wb_chain(
            wb_maxpool({2, 2}), inner,
            wb_conv_transpose({2, 2}, 2 * wide, wide, .stride = {2}, .init = wb_kaiming_normal));
        inner = wb_chain(twice(wide > d.width ? wide / 2 : d.channels, wide),
                         wb_skip(below, wb_connect_channels), twice(2 * wide, wide));
    }
    return wb_chain(inner, wb_cross_cor({1, 1}, d.width, d.classes, .init = wb_kaiming_normal));
}
