/* A step whose loss or gradients are not finite leaves states as they were. The device selects the
 * old or the new value of each pending write, so that the host need not wait. Where there is no old
 * value of the same sizes, the write is taken back once the number is known. */
#include "optimise/guard.h"

#include <math.h>

#include "array/state.h"
#include "ops/build.h"

static wb_array *guarded(void *good, wb_array *before, wb_array *now) {
    if (before == now) return now;
    if (!before || wb_is_lost(before) || before->dtype != now->dtype ||
        !wb_same_sizes(before, now) || wb_node_device(before) != wb_node_device(now))
        return NULL;
    return SELECT((wb_array *)good, now, before);
}

bool wb_guard_states(wb_array *watched, int64_t *rest) {
    *rest = 0;
    if (!wb_state_is_any_written()) return true;
    if (watched->ndim > 0) watched = wb_reshape_make(watched, 0, NULL);
    wb_array *good = watched ? EQ(SUB(watched, watched), NUM(0)) : NULL;
    *rest = good ? wb_state_rewrite(guarded, good) : -1;
    return *rest >= 0;
}

wb_status wb_guard_rest(wb_array *watched, int64_t rest) {
    if (rest == 0) return WB_OK;
    const double value = wb_item(watched);
    if (wb_failed()) return wb_error_status();
    if (!isfinite(value)) wb_state_undo_rest();
    return WB_OK;
}
