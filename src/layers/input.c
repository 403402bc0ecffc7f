/* What several layers do with their input. */
#include "array/thread.h"
#include "layers/layer.h"
#include "ops/ops.h"

wb_array *wb_convert_input(wb_array *x, const wb_array *like) {
    if (x->dtype == like->dtype) return x;
    static bool warned;                           /* __atomic */
    const bool is_meant = like->op == WB_OP_cast; /* a step that is computed in halves */
    if (!is_meant && !__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
        wb_log_line(
            WB_LOG_WARN,
            "a layer with %s weights was given %s input, which it converts; wb_cast the data once "
            "to avoid that (this warning is shown once)",
            wb_dtype_name((wb_dtype)like->dtype), wb_dtype_name((wb_dtype)x->dtype));
    return wb_cast(x, (wb_dtype)like->dtype);
}

bool wb_check_first_sizes(const wb_layer *layer, const wb_array *x, int *n) {
    const int64_t *size = wb_layer_sizes(layer, n);
    bool good = x->ndim >= *n;
    for (int i = 0; good && i < *n; i++) good = x->sizes[i] == size[i];
    if (!good)
        (void)wb_fail(WB_ERROR_SHAPE, "input must begin with the sizes %s, got %s",
                      wb_sizes_text(*n, size), wb_text_of(x));
    return good;
}

wb_array *wb_numbers_beside(const wb_array *x, wb_array *numbers) {
    const wb_device *device = wb_device_of(x);
    return device ? wb_to(device, numbers, .eltype = WB_ELTYPE_PRESERVE) : numbers;
}

wb_array *wb_beside_channels(wb_array *numbers, const wb_array *x) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == x->ndim - 2 ? x->sizes[d] : 1;
    return wb_reshape_make(numbers, x->ndim, sizes);
}

bool wb_is_passed_on(const wb_layer *layer, wb_array *x) {
    if (wb_is_active(layer)) return false;
    if (layer->mode_ == WB_MODE_AUTO && !wb_is_leaf(x)) x->flags |= WB_NODE_UNTIED;
    return true;
}

bool wb_check_groups(const wb_layer *layer, int64_t groups, int64_t in, int64_t out) {
    if (in % groups == 0 && out % groups == 0) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: %lld groups do not divide %lld => %lld channels",
                  layer->class_->name, (long long)groups, (long long)in, (long long)out);
    return false;
}
