/* Micro-batches, and the hidden states of layers in them. */
#ifndef WB_OPTIMISE_PARTS_H
#define WB_OPTIMISE_PARTS_H

#include "optimise/optimiser.h"

/* A micro-batch, and which observations of the batch's it is a view of. */
typedef struct wb_part {
    wb_batch batch;
    int64_t all, start, stop;
} wb_part;

/* How many of a batch's micro-batches are computed. On ranks all, for the sake of collectives
 * inside the loss; else those after the end of a short batch, which add nothing, are left out. */
int64_t wb_micro_batches_to_run(const wb_optimiser *o, const wb_batch *batch);

/* The micro-batch with this number of the optimiser's; those after the end of a short batch have
 * none of its observations. False with an error. */
bool wb_micro_batch(const wb_optimiser *o, const wb_batch *batch, int64_t number, wb_part *part);

/* False, with an error, if the model has a cache of keys and values: what it holds is of one
 * sequence of batches. */
bool wb_check_uncached(const wb_optimiser *o);

/* ---- hidden states: each part has its observations' columns ---- */

/* Before the loss of a part, inside what takes its writes back: hidden states become those of its
 * observations. */
bool wb_hidden_give(wb_optimiser *o, const wb_part *part);
/* After it: what the loss has left there becomes the part's. */
bool wb_hidden_take(wb_optimiser *o, const wb_part *part);
/* The arrays of the newest part, which are to be computed with it, into the list unless that is
 * NULL; how many at most. */
int64_t wb_hidden_to_keep(const wb_optimiser *o, wb_array **list);
/* Once they are: holds them. */
void wb_hidden_keep(wb_optimiser *o);
/* In a step that is being made: writes what the parts have left, one beside the other. */
bool wb_hidden_join(wb_optimiser *o);
void wb_hidden_drop(wb_optimiser *o);

#endif
