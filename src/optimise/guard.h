/* The guard of a step, for states that layers and losses write. */
#ifndef WB_OPTIMISE_GUARD_H
#define WB_OPTIMISE_GUARD_H

#include "array/array.h"

/* Changes each pending write of a state so that it keeps the old value if the watched number is not
 * finite, as parameters do. *rest: how many writes could not be changed, since the old value is
 * missing or has other sizes. False with the error recorded. */
bool wb_guard_states(wb_array *watched, int64_t *rest);
/* After the evaluation: takes the rest back if the watched number is not finite. */
wb_status wb_guard_rest(wb_array *watched, int64_t rest);

#endif
