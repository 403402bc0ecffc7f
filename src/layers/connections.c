/* Connections: functions from several arrays to one. */
#include "array/use.h"
#include "layers/layer.h"

static bool check(const char *function, int count, wb_array *const *arrays) {
    if (!wb_may_use_arrays(function, count, arrays)) return false;
    if (count > 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: needs at least one array", function);
    return false;
}

static wb_array *fold(const char *function, int count, wb_array *const *arrays,
                      wb_array *(*join)(wb_array *x, wb_array *y)) {
    if (!check(function, count, arrays)) return NULL;
    wb_array *y = arrays[0];
    for (int i = 1; i < count && y; i++) y = join(y, arrays[i]);
    return y;
}

wb_array *wb_connect_add(int count, wb_array *const *arrays) {
    return fold("connect_add", count, arrays, wb_add);
}

wb_array *wb_connect_mul(int count, wb_array *const *arrays) {
    return fold("connect_mul", count, arrays, wb_mul);
}

wb_array *wb_connect_vcat(int count, wb_array *const *arrays) {
    return check("connect_vcat", count, arrays) ? wb_concat_make(0, count, arrays) : NULL;
}

wb_array *wb_connect_hcat(int count, wb_array *const *arrays) {
    return check("connect_hcat", count, arrays) ? wb_concat_make(1, count, arrays) : NULL;
}

wb_array *wb_connect_channels(int count, wb_array *const *arrays) {
    if (!check("connect_channels", count, arrays)) return NULL;
    if (arrays[0]->ndim >= 2) return wb_concat_make(arrays[0]->ndim - 2, count, arrays);
    return wb_fail_null(WB_ERROR_SHAPE, "channels: arrays must have at least 2 dimensions, got %s",
                        wb_text_of(arrays[0]));
}
