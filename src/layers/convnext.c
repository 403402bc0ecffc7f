/* ConvNeXt, with the layers of torchvision 0.14 (models/convnext.py). Norms and products over the
 * channels are Pixelwise: convolutions with a kernel of 1 are slower on the CPU. */
#include <string.h>
#include <weber/ops.h>

#include "layers/vision.h"

enum { STAGES = 4, MOST_BLOCKS = 1024 };
static const double eps = 1e-6, layer_scale = 1e-6;

static wb_layer *conv(int64_t kernel, int64_t in, int64_t out, int64_t stride) {
    return wb_cross_cor({kernel, kernel}, in, out, .stride = {stride}, .init = wb_small_normal);
}

static wb_layer *norm(int64_t width) { return wb_pixelwise(wb_layernorm({width}, .eps = eps)); }

static wb_layer *block(int64_t width, double dropout) {
    wb_layer *layers[4];
    int n = 0;
    layers[n++] = wb_cross_cor({7, 7}, width, width, .pad = WB_ALL(3), .groups = width,
                               .init = wb_small_normal);
    layers[n++] =
        wb_pixelwise(wb_chain(wb_layernorm({width}, .eps = eps),
                              wb_dense(width, 4 * width, wb_gelu_erf, .init = wb_small_normal),
                              wb_dense(4 * width, width, .init = wb_small_normal)));
    layers[n++] = wb_scale(.bias = false, .given_scale = wb_full(WB_F32, layer_scale, 1, 1, width));
    if (dropout != 0) layers[n++] = wb_dropout(dropout, .dims = WB_DIM(3));
    return wb_skip(wb_chain_make(n, layers), wb_connect_add);
}

/* Of all blocks, these are begin, begin + 1, ...; the probability of dropout rises to the last. */
static wb_layer *stage(const wb_convnext_desc *d, int s, int64_t begin, int64_t all) {
    wb_layer *blocks[MOST_BLOCKS];
    for (int64_t i = 0; i < d->depths[s]; i++)
        blocks[i] = block(d->width << s,
                          all > 1 ? d->block_dropout * (double)(begin + i) / (double)(all - 1) : 0);
    return wb_chain_make(d->depths[s], blocks);
}

static bool check(const char *function, const wb_convnext_desc *d) {
    enum { MOST_WIDTH = 1 << 16 };
    for (int s = 0; s < STAGES; s++) {
        if (d->depths[s] >= 1 && d->depths[s] <= MOST_BLOCKS) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: depths must be %d numbers from 1 to %d, got %s",
                      function, STAGES, MOST_BLOCKS, wb_sizes_text(STAGES, d->depths));
        return false;
    }
    if (d->width >= 1 && d->width <= MOST_WIDTH)
        return wb_vision_check_chance(function, "block_dropout", d->block_dropout);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: width must be from 1 to %d, got %lld", function,
                  MOST_WIDTH, (long long)d->width);
    return false;
}

wb_layer *wb_convnext_make(wb_convnext_desc d) {
    static const char function[] = "wb_convnext";
    static const int64_t tiny[STAGES] = {3, 3, 9, 3};
    static const int64_t none[STAGES] = {0};
    wb_layer *layers[2 * STAGES + 4];
    int64_t n = 0, begin = 0, all = 0;
    if (memcmp(d.depths, none, sizeof none) == 0) memcpy(d.depths, tiny, sizeof tiny);
    if (!wb_vision_may_make(function, d.start_, d.channels, d.classes) || !check(function, &d))
        return NULL;
    const uint64_t errors = wb_error_count();
    const int64_t last = d.width << (STAGES - 1);
    for (int s = 0; s < STAGES; s++) all += d.depths[s];
    layers[n++] = wb_chain(conv(4, d.channels, d.width, 4), norm(d.width));
    for (int s = 0; s < STAGES; begin += d.depths[s++]) {
        if (s)
            layers[n++] =
                wb_chain(norm(d.width << (s - 1)), conv(2, d.width << (s - 1), d.width << s, 2));
        layers[n++] = stage(&d, s, begin, all);
    }
    layers[n++] = wb_global_meanpool(), layers[n++] = wb_flatten();
    layers[n++] = wb_layernorm({last}, .eps = eps);
    if (d.classes) layers[n++] = wb_dense(last, d.classes, .init = wb_small_normal);
    return wb_vision_finish(function, errors, wb_chain_make(n, layers));
}
