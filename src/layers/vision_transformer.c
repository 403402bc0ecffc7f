/* The Vision Transformer, with the layers of torchvision 0.14 (models/vision_transformer.py). */
#include <weber/initialisers.h>
#include <weber/ops.h>

#include "layers/vision.h"

enum { MOST_BLOCKS = 1024, OTHERS = 7, MOST_SIDE = (1 << 20) - 1 };
static const double eps = 1e-6;

/* Attention has no dropout of its own. */
static wb_layer *block(const wb_vit_desc *d) {
    wb_layer *attention = wb_multi_head_attention(d->features, .heads = d->heads, .bias = true);
    return wb_transformer_encoder(d->features, .hidden = d->hidden, .activation = wb_gelu_erf,
                                  .dropout = d->dropout, .norm_first = true, .eps = eps,
                                  .attention = attention);
}

static bool check(const char *function, const wb_vit_desc *d) {
    if (d->features < 1 || d->heads < 1 || d->hidden < 0)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: features and heads must be positive and hidden not negative, got %lld, "
                      "%lld and %lld",
                      function, (long long)d->features, (long long)d->heads, (long long)d->hidden);
    else if (d->features % d->heads)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: heads must divide features, got %lld and %lld",
                      function, (long long)d->heads, (long long)d->features);
    else if (d->layers < 1 || d->layers > MOST_BLOCKS)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: layers must be from 1 to %d, got %lld", function,
                      MOST_BLOCKS, (long long)d->layers);
    else if (d->image < 1 || d->image > MOST_SIDE || d->patch < 1 || d->image % d->patch)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: image must be from 1 to %d and a multiple of patch, got %lld and %lld",
                      function, MOST_SIDE, (long long)d->image, (long long)d->patch);
    else
        return wb_vision_check_chance(function, "dropout", d->dropout);
    return false;
}

wb_layer *wb_vit_make(wb_vit_desc d) {
    static const char function[] = "wb_vit";
    wb_layer *layers[MOST_BLOCKS + OTHERS];
    int64_t n = 0;
    if (!wb_vision_may_make(function, d.start_, d.channels, d.classes) || !check(function, &d))
        return NULL;
    const int64_t side = d.image / d.patch;
    const uint64_t errors = wb_error_count();
    layers[n++] = wb_patch_embedding({d.patch, d.patch}, d.channels, d.features,
                                     .image = {d.image, d.image}, .init = wb_kaiming_normal);
    layers[n++] = wb_class_token(d.features);
    layers[n++] = wb_position_embedding(side * side + 1, d.features);
    layers[n++] = wb_dropout(d.dropout);
    for (int64_t i = 0; i < d.layers; i++) layers[n++] = block(&d);
    layers[n++] = wb_layernorm({d.features}, .eps = eps);
    layers[n++] = wb_first_token();
    if (d.classes) layers[n++] = wb_dense(d.features, d.classes);
    return wb_vision_finish(function, errors, wb_chain_make(n, layers));
}
