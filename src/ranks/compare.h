/* What ranks compare. Data of other ranks may be from another version, damaged, or forged, so no
 * field is trusted to have a valid value. */
#ifndef WB_RANKS_COMPARE_H
#define WB_RANKS_COMPARE_H

#include "ranks/ranks.h"

/* Checks that the wb_collective of all ranks, all[r], are equal; else fails with the same error on
 * all ranks. */
wb_status wb_collectives_check(const void *const *all, int size);

/* True if all of them are part of a step, for which a more detailed message can be made. */
bool wb_collectives_have_terms(const void *const *all, int size);

#endif
