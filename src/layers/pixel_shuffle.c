/* PixelShuffle: channels become pixels. */
#include "layers/layer.h"

typedef struct wb_pixel_shuffle_layer {
    wb_layer layer;
    int64_t r;
} wb_pixel_shuffle_layer;

/* (W, H, r^2 C, N) as (W, H, r, r, C, N), turned to (r, W, r, H, C, N), as (r W, r H, C, N). */
static wb_array *forward(wb_layer *layer, wb_array *x) {
    const int64_t r = ((const wb_pixel_shuffle_layer *)(const void *)layer)->r;
    const int n = x->ndim - 2;
    int64_t split[WB_MAX_DIMS], dims[WB_MAX_DIMS], sizes[WB_MAX_DIMS], pixels = 1;
    for (int i = 0; i < n; i++) pixels *= r;
    if (n < 1 || n > WB_MOST_SIZES || x->sizes[n] % pixels)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "input must have 1 to 3 spatial dimensions, a multiple of r^d channels "
                            "and batch, got %s",
                            wb_text_of(x));
    for (int i = 0; i < n; i++) {
        split[i] = x->sizes[i], split[n + i] = r;
        dims[2 * i] = n + i, dims[2 * i + 1] = i;
        sizes[i] = wb_times(r, x->sizes[i]);
    }
    split[2 * n] = sizes[n] = x->sizes[n] / pixels;
    split[2 * n + 1] = sizes[n + 1] = x->sizes[n + 1];
    dims[2 * n] = 2 * n, dims[2 * n + 1] = 2 * n + 1;
    wb_array *y = wb_permute_make(wb_reshape_make(x, 2 * n + 2, split), 2 * n + 2, dims);
    return wb_reshape_make(y, n + 2, sizes);
}

static const wb_field fields[] = {WB_SETTING(wb_pixel_shuffle_layer, r, WB_FIELD_INTEGER, .low = 1,
                                             .high = 1 << 10, .positional = true)};
const wb_layer_class wb_pixel_shuffle_class = {
    .name = "PixelShuffle", WB_LAYER_ROWS(wb_pixel_shuffle_layer, fields), .forward = forward};

wb_layer *wb_pixel_shuffle(int64_t r) {
    return wb_layer_make(&wb_pixel_shuffle_class, &r, sizeof r);
}
