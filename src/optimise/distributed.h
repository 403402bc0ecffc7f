/* Training by several ranks: private side of weber/distributed.h and of wb_setup's .distributed. */
#ifndef WB_OPTIMISE_DISTRIBUTED_H
#define WB_OPTIMISE_DISTRIBUTED_H

#include "optimise/optimiser.h"

/* The loss of this batch is to be differentiated as a part of the ranks' common one, which is the
 * mean over all their observations: so a collective inside it has the derivative that it has in one
 * process. By the observations where a step is built of it at once, else by their share in those of
 * all ranks. Nothing where the optimiser has one rank; false on failure. */
bool wb_weigh_by_count(const wb_optimiser *o, const wb_batch *batch, wb_precision *precision);
bool wb_weigh_by_share(const wb_optimiser *o, const wb_batch *batch, wb_precision *precision);

/* In a step that is being made: the gradients of the groups, and what layers wrote to states,
 * become the means over all ranks' observations; so do the loss, in o->mean_loss, and what is
 * watched, which it returns. NULL on failure. */
wb_array *wb_average_over_ranks(wb_optimiser *o, const wb_gradients *g);

/* What the loss draws in a step of several ranks follows from the seed, the step and the rank
 * alone. wb_draws_end goes on with the sequence that wb_draws_begin has left. */
typedef struct wb_draws {
    uint64_t counter;
} wb_draws;
wb_draws wb_draws_begin(const wb_optimiser *o);
void wb_draws_end(const wb_optimiser *o, wb_draws left);

#endif
