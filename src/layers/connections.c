/* From several arrays to one. */
#include "layers/layer.h"

static wb_array *fold(int count, wb_array *const *arrays,
                      wb_array *(*join)(wb_array *x, wb_array *y)) {
    wb_array *y = arrays[0];
    for (int i = 1; i < count && y; i++) y = join(y, arrays[i]);
    return y;
}

wb_array *wb_connect_add(int count, wb_array *const *arrays) { return fold(count, arrays, wb_add); }
wb_array *wb_connect_mul(int count, wb_array *const *arrays) { return fold(count, arrays, wb_mul); }
wb_array *wb_connect_vcat(int count, wb_array *const *arrays) {
    return wb_concat_make(0, count, arrays);
}
wb_array *wb_connect_hcat(int count, wb_array *const *arrays) {
    return wb_concat_make(1, count, arrays);
}
wb_array *wb_connect_channels(int count, wb_array *const *arrays) {
    if (arrays[0]->ndim >= 2) return wb_concat_make(arrays[0]->ndim - 2, count, arrays);
    return wb_fail_null(WB_ERROR_SHAPE, "channels: arrays must have at least 2 dimensions, got %s",
                        wb_text_of(arrays[0]));
}
