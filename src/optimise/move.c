/* An optimiser to another device: its state, and the model that it belongs to. */
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "ops/ops.h"
#include "optimise/optimiser.h"

/* State is kept in f32 for all narrower types. */
static wb_eltype type_of_state(wb_eltype eltype) {
    return eltype == WB_ELTYPE_F16 || eltype == WB_ELTYPE_BF16 ? WB_ELTYPE_F32 : eltype;
}

/* The states on the device, evaluated, each held; false on failure. */
static bool make_states(const wb_optimiser *o, const wb_to_desc *desc, wb_array **states) {
    const int each = wb_rule_states(&o->rule);
    int count = 0;
    for (int64_t i = 0; i < o->group_count; i++)
        for (int k = 0; k < each; k++) {
            wb_array *state =
                wb_move_array(desc->device, o->groups[i].states[k], type_of_state(desc->eltype));
            states[count++] = wb_hold(state);
            if (!state) return false;
        }
    return wb_evaluate(count, states) == WB_OK;
}

/* Exchanges the optimiser's states with these. */
static void exchange(wb_optimiser *o, wb_array **states) {
    const int each = wb_rule_states(&o->rule);
    int count = 0;
    for (int64_t i = 0; i < o->group_count; i++)
        for (int k = 0; k < each; k++, count++) {
            wb_array *old = o->groups[i].states[k];
            o->groups[i].states[k] = states[count];
            states[count] = old;
        }
    for (int64_t i = 0; i < o->member_count; i++) o->members[i].seen = *o->members[i].slot;
}

wb_status wb_optimiser_move(const wb_to_desc *desc) {
    wb_optimiser *o = desc->x;
    const int64_t count = o->group_count * WB_MAX_STATES;
    wb_array **states = wb_alloc(sizeof *states * (size_t)(count + 1));
    if (!states || !wb_scope_begin()) {
        wb_release(states);
        return WB_ERROR_MEMORY;
    }
    const wb_to_desc model = {.device = desc->device, .x = o->model, .eltype = desc->eltype};
    const bool moved = make_states(o, desc, states) && wb_move_make(model) == WB_OK;
    if (moved) exchange(o, states);
    for (int64_t i = 0; i < count; i++) wb_unhold(states[i]);
    wb_release(states);
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    return moved ? closed : wb_error_status();
}

wb_status wb_optimiser_hand_over(void *object) {
    wb_optimiser *o = object;
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    wb_status status = wb_layer_hand_over(o->model);
    for (int64_t i = 0; i < o->group_count && status == WB_OK; i++)
        for (int k = 0; k < wb_rule_states(&o->rule); k++) {
            wb_array **state = &o->groups[i].states[k];
            wb_array *shared = *state ? wb_node_share(*state) : NULL;
            if (*state && !shared) status = wb_error_status();
            if (!shared) continue;
            wb_unhold(*state);
            *state = wb_hold(shared);
        }
    for (int64_t i = 0; i < o->member_count; i++) o->members[i].seen = *o->members[i].slot;
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    return status == WB_OK ? closed : status;
}

const wb_device *wb_optimiser_device(const void *optimiser) {
    const wb_optimiser *o = optimiser;
    const wb_device *device = wb_device_of(o->model);
    for (int64_t i = 0; i < o->group_count && device; i++) {
        const wb_array *state = o->groups[i].states[0];
        if (!state || state->device == device) continue;
        (void)wb_fail(WB_ERROR_DEVICE,
                      "wb_device_of: the model is on %s, its optimiser's state on %s",
                      wb_device_name(device), wb_device_name(state->device));
        return NULL;
    }
    return device;
}
