/* Arrays between devices. */
#include "ops/ops.h"

wb_array *wb_move_node(const wb_device *device, wb_array *x) {
    wb_array *node = wb_node_new(WB_OP_move, (wb_dtype)x->dtype, x->ndim, x->sizes, 1, &x);
    if (node) node->device = device;
    return node;
}

/* By default f64 becomes f32 where it leaves the host, or could not be. */
static bool narrows(const wb_device *device, const wb_array *x) {
    const wb_device *here = wb_node_device(x);
    if (x->dtype != WB_F64 || here == device) return false;
    return here == wb_cpu_device() || !wb_device_has_f64(device);
}

/* The type that x has after the move. */
static wb_dtype type_there(const wb_device *device, const wb_array *x, wb_eltype eltype) {
    const wb_dtype dtype = (wb_dtype)x->dtype;
    if (!wb_dtype_is_float(dtype) || eltype == WB_ELTYPE_PRESERVE) return dtype;
    if (eltype != WB_ELTYPE_DEFAULT) return (wb_dtype)(eltype - WB_ELTYPE_F32);
    return narrows(device, x) ? WB_F32 : dtype;
}

wb_array *wb_cast_for(const wb_device *device, wb_array *x, wb_eltype eltype) {
    return wb_cast(x, type_there(device, x, eltype));
}

wb_array *wb_move_array(const wb_device *device, wb_array *x, wb_eltype eltype) {
    if (x) x = wb_cast_for(device, x, eltype);
    return !x || x->device == device ? x : wb_move_node(device, x);
}

wb_array *wb_beside(const wb_array *like, wb_array *x) {
    const bool is_elsewhere = like->device && like->device != wb_default_device();
    return x && !x->device && is_elsewhere ? wb_move_node(like->device, x) : x;
}

/* Back to where x came from. */
void wb_vjp_move(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_device *back = wb_node_device(o->inputs[0]);
    if (want[0]) out[0] = g->device ? wb_move_array(back, g, WB_ELTYPE_PRESERVE) : g;
}

static wb_array *call_move(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return wb_move_node(wb_cpu_device(), arrays[0]);
}

const wb_check *wb_check_move(void) {
    static const wb_check check = {
        .count = 1, .inputs = {{2, {3, 2}}}, .lo = -2, .hi = 2, .call = call_move};
    return &check;
}
