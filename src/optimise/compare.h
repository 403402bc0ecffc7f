/* What the ranks of a distributed optimiser must have in common: compared by hashes; errors name
 * what differs. */
#ifndef WB_OPTIMISE_COMPARE_H
#define WB_OPTIMISE_COMPARE_H

#include "base/text.h"
#include "optimise/optimiser.h"

/* Before a step: compares the settings if they were not compared yet, and parameters, states and
 * the number of steps if that is due. A collective. */
wb_status wb_compare_if_due(wb_optimiser *optimiser);
/* The same, due or not, together with facts about the place in a training. Messages are "TITLE, but
 * ...". NULL: without these facts, and with a default title. */
wb_status wb_compare_held(wb_optimiser *optimiser, const char *title, const wb_text *place);
/* Compares facts alone. A collective. */
wb_status wb_compare_facts(const char *title, const wb_text *facts);

/* After a failed step: if the pending error is that the ranks' steps differ, adds how they do. */
void wb_explain_difference(wb_optimiser *optimiser);

/* ---- what is compared ---- */

/* Adds facts about rules, settings of layers, sizes and what is frozen (tell.c); with has_gradients
 * also which parameters have a gradient in the current step. */
wb_status wb_tell_settings(wb_optimiser *optimiser, bool has_gradients, wb_text *facts);

/* hash.c: a hash of bytes; of the model's trainable arrays, with the device of the last one, and a
 * fact for each unless facts is NULL; of the optimiser's states, unless they are divided among the
 * ranks. False with the error recorded. */
typedef struct wb_model_hash {
    uint64_t hash;
    const wb_device *device;
} wb_model_hash;
uint64_t wb_hash_of(uint64_t seed, const void *bytes, size_t count);
bool wb_hash_parameters(wb_optimiser *optimiser, wb_text *facts, wb_model_hash *hash);
bool wb_hash_states(wb_optimiser *optimiser, uint64_t *hash);

#endif
