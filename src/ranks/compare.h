/* What ranks compare. What the others have given may be of another version, damaged, or forged:
 * nothing in it is trusted to be one of the values that there are. */
#ifndef WB_RANKS_COMPARE_H
#define WB_RANKS_COMPARE_H

#include "ranks/ranks.h"

/* all[r]: the wb_collective that rank r has given. An error, the same on all ranks, where they
 * differ. */
wb_status wb_collectives_check(const void *const *all, int size);

/* All of them are part of a step, of which more can be told. */
bool wb_collectives_have_terms(const void *const *all, int size);

#endif
