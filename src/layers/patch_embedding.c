/* PatchEmbedding: an image as a sequence of tokens, a projection of each of its patches. */
#include <string.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_patch_embedding_layer {
    wb_layer layer;
    wb_patch_embedding_desc desc;
} wb_patch_embedding_layer;

static wb_patch_embedding_desc *desc_of(wb_layer *layer) {
    return &((wb_patch_embedding_layer *)(void *)layer)->desc;
}

/* Patches must cover x, and it must be the image that the layer is made for. */
static bool check_sizes(const wb_patch_embedding_desc *d, const wb_array *x, int n) {
    for (int i = 0; i < n; i++) {
        if (d->image[i] && x->sizes[i] != d->image[i]) {
            (void)wb_fail(WB_ERROR_SHAPE, "images must be %s, got %s", wb_sizes_text(n, d->image),
                          wb_text_of(x));
            return false;
        }
        if (x->sizes[i] % d->patch[i] == 0) continue;
        (void)wb_fail(WB_ERROR_SHAPE, "sizes of images must be multiples of the patch %s, got %s",
                      wb_sizes_text(n, d->patch), wb_text_of(x));
        return false;
    }
    return true;
}

/* (W, H, out, N) as (out, W H, N). */
static wb_array *tokens_of(wb_array *y) {
    const int n = y->ndim - 2;
    int64_t dims[WB_MAX_DIMS] = {n}, count = 1;
    for (int i = 0; i < n; i++) dims[i + 1] = i, count *= y->sizes[i];
    dims[n + 1] = n + 1;
    const int64_t sizes[] = {y->sizes[n], count, y->sizes[n + 1]};
    return wb_reshape_make(wb_permute_make(y, y->ndim, dims), 3, sizes);
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_patch_embedding_desc *d = desc_of(layer);
    const int n = d->given_weight->ndim - 2;
    wb_window_desc window = {.groups = 1, .cross_correlation = true};
    if (!wb_check_image(x, n, d->in) || !check_sizes(d, x, n)) return NULL;
    memcpy(window.stride, d->patch, sizeof window.stride);
    x = wb_convert_input(x, d->given_weight);
    wb_array *y = x ? wb_conv_op_make(x, d->given_weight, window) : NULL;
    y = y ? tokens_of(y) : NULL;
    return y ? wb_add(y, d->given_bias) : NULL;
}

#define PLACE(member) offsetof(wb_patch_embedding_layer, desc.member)
enum { MOST = (1 << 20) - 1 };

static const wb_field fields[] = {
    WB_ROW(wb_patch_embedding_layer, patch, WB_FIELD_SIZES, .low = 1, .high = MOST),
    WB_ROW(wb_patch_embedding_layer, in, WB_FIELD_PAIR, .low = 1, .given_by = PLACE(given_weight)),
    WB_ROW_NAMED(wb_patch_embedding_layer, given_weight, "weight", WB_FIELD_ARRAY,
                 .trainable = true),
    WB_ROW_NAMED(wb_patch_embedding_layer, given_bias, "bias", WB_FIELD_ARRAY, .trainable = true),
    WB_ROW(wb_patch_embedding_layer, image, WB_FIELD_EACH, .high = MOST),
};

static void derive(wb_layer *layer) {
    wb_patch_embedding_desc *d = desc_of(layer);
    wb_derive_filter(d->given_weight, 1, d->patch, &d->in, &d->out);
}

static bool complete(wb_layer *layer) {
    wb_patch_embedding_desc *d = desc_of(layer);
    int64_t sizes[WB_MAX_DIMS];
    int n;
    memcpy(sizes, wb_layer_sizes(layer, &n), sizeof d->patch);
    for (int i = 0; i < n; i++) {
        if (d->image[i] % d->patch[i] == 0) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "PatchEmbedding: image must be a multiple of the patch %s, got %s",
                      wb_sizes_text(n, d->patch), wb_sizes_text(n, d->image));
        return false;
    }
    sizes[n] = d->in, sizes[n + 1] = d->out;
    return wb_layer_fill(layer, &d->given_weight, d->init ? d->init : wb_glorot_uniform, d->dtype,
                         n + 2, sizes) &&
           wb_layer_fill(layer, &d->given_bias, wb_zeros_init, (wb_dtype)d->given_weight->dtype, 1,
                         &d->out);
}

const wb_layer_class wb_patch_embedding_class = {.name = "PatchEmbedding",
                                                 WB_LAYER_ROWS(wb_patch_embedding_layer, fields),
                                                 .forward = forward,
                                                 .has_channels = true,
                                                 .derive = derive,
                                                 .complete = complete,
                                                 .before_keys = "; "};

wb_layer *wb_patch_embedding_make(wb_patch_embedding_desc desc) {
    return wb_layer_of_desc(&wb_patch_embedding_class, &desc, sizeof desc);
}
