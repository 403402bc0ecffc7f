/* Warns, once, of two optimisers that train the same parameters in turn, each with its own
 * states. */
#include "array/thread.h"
#include "layers/layer.h"
#include "optimise/optimiser.h"

void wb_optimiser_leaves_turns(const wb_optimiser *o) {
    if (wb_room_get(WB_ROOM_OPTIMISER) == o) wb_room_set(WB_ROOM_OPTIMISER, NULL);
}

/* True if this slot took part in the optimiser's last step. */
static bool has_trained(const wb_optimiser *o, wb_array *const *slot) {
    for (int64_t i = 0; i < o->member_count; i++)
        if (o->members[i].slot == slot) return o->sums[o->members[i].group] != NULL;
    return false;
}

static void say(const wb_optimiser *o, wb_array **slot) {
    char path[WB_PATH_BYTES];
    wb_slot_path(o->model, slot, path);
    wb_log_line(
        WB_LOG_WARN,
        "%s of %s is trained by two optimisers in turn, each with its own state; use one optimiser "
        "with a rule for each of .paths, or freeze (wb_freeze) in each what the other trains",
        path, o->model->class_->name);
}

/* In the first step after another one's, when both have made steps before. */
void wb_optimiser_takes_turn(wb_optimiser *o) {
    const wb_optimiser *other = wb_room_get(WB_ROOM_OPTIMISER);
    const bool is_first = !o->has_stepped;
    wb_room_set(WB_ROOM_OPTIMISER, o);
    o->has_stepped = true;
    if (is_first || o->is_compared || !other || other == o) return;
    o->is_compared = true;
    for (int64_t i = 0; i < o->member_count; i++) {
        wb_array **slot = o->members[i].slot;
        if (!o->sums[o->members[i].group] || !has_trained(other, slot)) continue;
        say(o, slot);
        return;
    }
}
