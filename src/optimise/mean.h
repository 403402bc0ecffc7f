/* A step whose gradients are those of several parts: ranks, and micro-batches of a rank. */
#ifndef WB_OPTIMISE_MEAN_H
#define WB_OPTIMISE_MEAN_H

#include "optimise/optimiser.h"

/* In a step that is being made: the gradients of the groups, and what layers wrote to states,
 * become the means over all ranks' observations; so do the loss, in o->mean_loss, and what is
 * watched, which it returns. NULL on failure. */
wb_array *wb_mean_over_ranks(wb_optimiser *o, const wb_gradients *g);

/* ---- micro-batches ---- */

/* In the scope of a micro-batch, which it closes: computes what is to be a mean, and keeps it
 * beside that of earlier ones. */
wb_status wb_part_keep(wb_optimiser *o, const wb_gradients *g);
/* Adds up what is kept, as far as the tree allows before more parts come, or all. */
wb_status wb_parts_join(wb_optimiser *o, bool all);
/* Adds up all of it, over the ranks, too. */
wb_status wb_parts_sum(wb_optimiser *o);
/* Then, in a step that is being made, the same as wb_mean_over_ranks. */
wb_array *wb_mean_of_parts(wb_optimiser *o);
/* Forgets the parts of a step that is done, or has failed. */
void wb_parts_drop(wb_optimiser *o);

#endif
