/* Integers in host memory are checked before they are used, so that an error can name the call, the
 * layer and the place. For others, the device reports a bad one when it computes. */
#include <stdio.h>
#include <weber/device.h>

#include "ops/ops.h"

bool wb_is_readable(const wb_array *x) {
    return wb_is_evaluated(x) && x->device == wb_cpu_device() && wb_node_is_dense(x);
}

int64_t wb_whole_in(const void *data, wb_dtype dtype, int64_t i) {
    switch (dtype) {
    case WB_I32:
        return ((const int32_t *)data)[i];
    case WB_I64:
        return ((const int64_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

int64_t wb_whole_at(const wb_array *x, int64_t i) {
    const wb_dtype dtype = (wb_dtype)x->dtype;
    const int64_t before = x->offset * (int64_t)wb_dtype_size(dtype);
    return wb_whole_in((const char *)x->buffer->handle + before, dtype, i);
}

/* "place 3" of a vector, "(1, 2)" of others. */
static void place_text(const wb_array *x, int64_t i, char *text, size_t size_bytes) {
    int64_t place[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) place[d] = i % x->sizes[d], i /= x->sizes[d];
    if (x->ndim == 1)
        (void)snprintf(text, size_bytes, "place %lld", (long long)place[0]);
    else
        (void)snprintf(text, size_bytes, "%s", wb_sizes_text(x->ndim, place));
}

bool wb_check_positions(const char *what, const wb_array *index, int64_t size) {
    char place[WB_MAX_DIMS * 24];
    const int64_t count = wb_is_readable(index) ? wb_count(index) : 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t position = wb_whole_at(index, i);
        if (position >= 0 && position < size) continue;
        place_text(index, i, place, sizeof place);
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s %lld at %s is not in 0 .. %lld", what,
                      (long long)position, place, (long long)size - 1);
        return false;
    }
    return true;
}
