/* Training by several ranks: private side of weber/distributed.h and of wb_setup's .distributed. */
#ifndef WB_OPTIMISE_DISTRIBUTED_H
#define WB_OPTIMISE_DISTRIBUTED_H

#include "optimise/optimiser.h"

/* Whether the optimiser's steps are made of several parts: ranks, micro-batches, or both. */
static inline bool wb_is_of_parts(const wb_optimiser *o) {
    return o->is_distributed || o->micro_batches > 0;
}

/* The loss of a part is to be differentiated as a part of a common one, which is the mean over all
 * that its parts were divided by: so a collective inside it has the derivative that it has in one
 * process. By its weight, as a part of this rank's batch, where a step is built of it at once, else
 * by its share in all ranks'. Nothing where there is one part. */
void wb_weigh_by_count(const wb_optimiser *o, const wb_batch *batch, wb_precision *precision);
void wb_weigh_by_share(const wb_optimiser *o, wb_precision *precision);

/* A sum that another rank has, and this one lacks, becomes zeros, where the optimiser allows that.
 */
bool wb_fill_missing(wb_optimiser *o);

/* What the loss draws in a step that parts share follows from the seed, the step and the numbers of
 * the observations among those of all parts, of which this is the rank's micro-batch `number`.
 * wb_draws_end goes on with the sequence that wb_draws_begin has left. */
typedef struct wb_draws {
    uint64_t counter;
} wb_draws;
wb_draws wb_draws_begin(const wb_optimiser *o, const wb_batch *whole, const wb_batch *part,
                        int64_t number);
void wb_draws_end(const wb_optimiser *o, wb_draws left);

/* The arrays of rank 0's model into that of each rank (synchronize.c). A collective. */
wb_status wb_synchronize_arrays(wb_layer *model);

#endif
