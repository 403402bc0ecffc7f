/* The guard of a step over what layers and losses have written. */
#ifndef WB_OPTIMISE_GUARD_H
#define WB_OPTIMISE_GUARD_H

#include "array/array.h"

/* Where the watched number is not finite, each state whose write is pending is to keep its value,
 * as parameters do. *rest: how many writes cannot be selected on the device, since nothing of their
 * sizes was there before. False with an error. */
bool wb_guard_states(wb_array *watched, int64_t *rest);
/* Once all is computed: takes the rest back if the watched number is not finite. */
wb_status wb_guard_rest(wb_array *watched, int64_t rest);

#endif
