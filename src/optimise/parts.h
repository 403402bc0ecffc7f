/* Micro-batches, and the hidden states of layers in them. */
#ifndef WB_OPTIMISE_PARTS_H
#define WB_OPTIMISE_PARTS_H

#include "optimise/optimiser.h"

/* A micro-batch, and the range of the batch's observations that it is a view of. */
typedef struct wb_part {
    wb_batch batch;
    int64_t all, start, stop;
} wb_part;

/* How many micro-batches of a batch are computed. With several ranks all are, since the loss may
 * have collectives; else those after the end of a short batch, which add nothing, are left out. */
int64_t wb_micro_batches_to_run(const wb_optimiser *o, const wb_batch *batch);

/* Makes micro-batch `number`; those after the end of a short batch have no observations. False with
 * an error. */
bool wb_micro_batch(const wb_optimiser *o, const wb_batch *batch, int64_t number, wb_part *part);

/* False, with an error, if the model has a cache of keys and values, since that cannot be split
 * into parts. */
bool wb_check_uncached(const wb_optimiser *o);

/* ---- hidden states: each part has its observations' columns ---- */

/* Before the loss of a part, after wb_state_begin: sets hidden states to those of its
 * observations. */
bool wb_hidden_give(wb_optimiser *o, const wb_part *part);
/* After the loss: keeps the hidden states that it left as the part's. */
bool wb_hidden_take(wb_optimiser *o, const wb_part *part);
/* Lists the hidden arrays of the newest part, which must be computed with it, unless list is NULL.
 * Returns how many there are at most. */
int64_t wb_hidden_to_keep(const wb_optimiser *o, wb_array **list);
/* Once they are computed: holds them. */
void wb_hidden_keep(wb_optimiser *o);
/* While the step is made: joins the hidden states of the parts, and writes them. */
bool wb_hidden_join(wb_optimiser *o);
void wb_hidden_drop(wb_optimiser *o);

#endif
