/* Training by several ranks: private side of weber/distributed.h and of wb_setup's .distributed. */
#ifndef WB_OPTIMISE_DISTRIBUTED_H
#define WB_OPTIMISE_DISTRIBUTED_H

#include "optimise/optimiser.h"

/* Whether the optimiser's steps are made of several parts: ranks, micro-batches, or both. */
static inline bool wb_is_of_parts(const wb_optimiser *o) {
    return o->is_distributed || o->micro_batches > 0;
}

/* Set how the loss of a part is weighted before it is differentiated, so that the parts add up to
 * the gradient of the common mean, and a collective inside the loss has the derivative that it has
 * in one process. by_count: by the part's weight (its divisor), for a step that is made from it at
 * once. by_share: by its share in the weights of all ranks. They do nothing if there is one
 * part. */
void wb_weigh_by_count(const wb_optimiser *o, const wb_batch *batch, wb_precision *precision);
void wb_weigh_by_share(const wb_optimiser *o, wb_precision *precision);

/* Sets gradients that another rank has, and this one lacks, to zeros, if the optimiser allows it
 * (may_miss). */
bool wb_fill_missing(wb_optimiser *o);

/* Between the two, random numbers depend on the seed, the step and the numbers of the observations
 * among those of all parts; this part is the rank's micro-batch `number`. wb_draws_end goes back to
 * the sequence that was in use before. */
typedef struct wb_draws {
    uint64_t counter;
} wb_draws;
wb_draws wb_draws_begin(const wb_optimiser *o, const wb_batch *whole, const wb_batch *part,
                        int64_t number);
void wb_draws_end(const wb_optimiser *o, wb_draws left);

/* Copies the arrays of rank 0's model to each rank (synchronize.c). A collective. */
wb_status wb_synchronize_arrays(wb_layer *model);

#endif
