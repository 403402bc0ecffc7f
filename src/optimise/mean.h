/* A step whose gradients are those of several parts: ranks, and micro-batches of a rank. */
#ifndef WB_OPTIMISE_MEAN_H
#define WB_OPTIMISE_MEAN_H

#include "optimise/optimiser.h"

/* While a step is made: replaces the gradients of the groups, and the states that layers wrote, by
 * their means over the observations of all ranks. The mean of the loss is in o->mean_loss; returns
 * the mean of what is watched. NULL on failure. */
wb_array *wb_mean_over_ranks(wb_optimiser *o, const wb_gradients *g);

/* ---- micro-batches ---- */

/* Closes the scope of a micro-batch: computes what the mean is made of, and keeps it with that of
 * earlier ones. */
wb_status wb_part_keep(wb_optimiser *o, const wb_gradients *g);
/* Adds up what is kept: all, or as far as the fixed tree of sums allows before more parts come. */
wb_status wb_parts_join(wb_optimiser *o, bool all);
/* Adds up all parts, over the ranks, too. */
wb_status wb_parts_sum(wb_optimiser *o);
/* Afterwards, while the step is made, the same as wb_mean_over_ranks. */
wb_array *wb_mean_of_parts(wb_optimiser *o);
/* Releases the parts of a step that is done, or has failed. */
void wb_parts_drop(wb_optimiser *o);

#endif
