/* What messages and events say of a node: its operation, layer and direction. */
#include "array/origin.h"
#include "evaluate/tape.h"

const wb_array *wb_maker_of(const wb_array *x) { return x->op == WB_OP_result ? x->inputs[0] : x; }

static bool is_step(const wb_array *maker) {
    return maker->op == WB_OP_step || maker->op == WB_OP_step_numbers;
}

/* The layer that made x; for casts and views, the one that made their input. */
static const char *layer_behind(const wb_array *x) {
    while (!*wb_origin_layer(x->origin) && x->ninputs == 1) x = x->inputs[0];
    return wb_origin_layer(x->origin);
}

const char *wb_layer_of(const wb_array *x) {
    const wb_array *maker = wb_maker_of(x);
    const char *layer = wb_origin_layer(x->origin);
    for (int i = 0; is_step(maker) && !*layer && i < maker->ninputs; i++)
        layer = layer_behind(maker->inputs[i]);
    return layer;
}

const char *wb_direction_of(const wb_array *x) {
    if (is_step(wb_maker_of(x))) return "update";
    return wb_origin_is_backward(x->origin) ? "backward" : "forward";
}

const char *wb_operation_of(const wb_array *x) { return wb_op_name((wb_op)wb_maker_of(x)->op); }
