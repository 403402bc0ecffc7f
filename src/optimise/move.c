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

/* States and counts on the device, evaluated, each held; false on failure. */
static bool move_all(const wb_to_desc *desc, int64_t count, wb_array **const *slots,
                     wb_array **moved) {
    for (int64_t i = 0; i < count; i++) {
        moved[i] = wb_hold(wb_move_array(desc->device, *slots[i], type_of_state(desc->eltype)));
        if (!moved[i]) return false;
    }
    return wb_evaluate_roots((int)count, moved) == WB_OK;
}

/* Exchanges what the optimiser holds with these. */
static void exchange(wb_optimiser *o, int64_t count, wb_array **const *slots, wb_array **moved) {
    for (int64_t i = 0; i < count; i++) {
        wb_array *old = *slots[i];
        *slots[i] = moved[i];
        moved[i] = old;
    }
    wb_optimiser_see(o);
}

wb_status wb_optimiser_move(const wb_to_desc *desc) {
    wb_optimiser *o = desc->x;
    if (wb_optimiser_follow(o) != WB_OK) return wb_error_status();
    const int64_t count = wb_optimiser_slots(o, NULL);
    wb_array ***slots = wb_alloc(sizeof *slots * (size_t)(count + 1));
    wb_array **moved = wb_alloc(sizeof *moved * (size_t)(count + 1));
    if (!slots || !moved || !wb_scope_begin()) {
        wb_release(slots);
        wb_release(moved);
        return WB_ERROR_MEMORY;
    }
    (void)wb_optimiser_slots(o, slots);
    const wb_to_desc model = {.device = desc->device, .x = o->model, .eltype = desc->eltype};
    const bool good = move_all(desc, count, slots, moved) && wb_move_make(model) == WB_OK;
    if (good) exchange(o, count, slots, moved);
    if (good) wb_optimiser_forget_loss(o); /* arrays handed out stay there */
    for (int64_t i = 0; i < count; i++) wb_unhold(moved[i]);
    wb_release(slots);
    wb_release(moved);
    const wb_status closed = wb_scope_leave();
    return good ? closed : wb_error_status();
}

static bool share(wb_array **slot) {
    wb_array *shared = wb_node_share(*slot);
    if (!shared) return false;
    wb_unhold(*slot);
    *slot = wb_hold(shared);
    return true;
}

wb_status wb_optimiser_hand_over(void *object) {
    wb_optimiser *o = object;
    wb_optimiser_leaves_turns(o);
    if (wb_optimiser_follow(o) != WB_OK) return wb_error_status();
    const int64_t count = wb_optimiser_slots(o, NULL);
    wb_array ***slots = wb_alloc(sizeof *slots * (size_t)(count + 1));
    if (!slots || !wb_scope_begin()) {
        wb_release(slots);
        return WB_ERROR_MEMORY;
    }
    (void)wb_optimiser_slots(o, slots);
    wb_status status = wb_layer_hand_over(o->model);
    for (int64_t i = 0; i < count && status == WB_OK; i++)
        if (!share(slots[i])) status = wb_error_status();
    wb_optimiser_see(o);
    wb_optimiser_forget_loss(o);
    wb_release(slots);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

const wb_device *wb_optimiser_device(const void *optimiser) {
    const wb_optimiser *o = optimiser;
    const wb_device *device = wb_device_of(o->model);
    for (int64_t i = 0; i < o->group_count && device; i++) {
        const wb_array *state = o->groups[i].states[0];
        if (!state || state->device == device) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_device_of: the model is on %s, its optimiser's state on %s",
                      wb_device_name(device), wb_device_name(state->device));
        return NULL;
    }
    return device;
}
