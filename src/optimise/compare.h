/* What the ranks of a distributed optimiser must have in common, compared by hashes, and named
 * where it differs. */
#ifndef WB_OPTIMISE_COMPARE_H
#define WB_OPTIMISE_COMPARE_H

#include "base/text.h"
#include "optimise/optimiser.h"

/* Before a step: settings where none has been compared, then parameters, states and the number of
 * steps where that is due. A collective. */
wb_status wb_compare_if_due(wb_optimiser *optimiser);
/* The same, due or not, and with it a place in a training, which is facts: "TITLE, but ...". NULL:
 * no place, and a title of its own. */
wb_status wb_compare_held(wb_optimiser *optimiser, const char *title, const wb_text *place);
/* Facts alone. A collective. */
wb_status wb_compare_facts(const char *title, const wb_text *facts);

/* After a step that failed: the pending error, if it is that steps differ, says in what. */
void wb_explain_difference(wb_optimiser *optimiser);

/* ---- what is compared ---- */

/* Rules, settings of layers, sizes and what is frozen (tell.c); has_gradients: and what has a
 * gradient in the step that is being made. */
wb_status wb_tell_settings(wb_optimiser *optimiser, bool has_gradients, wb_text *facts);

/* hash.c: of bytes; of all that is trainable in the model, and where the last of it is, with a fact
 * for each array unless facts is NULL; of what the optimiser holds, unless that is divided among
 * the ranks. False with the error recorded. */
typedef struct wb_model_hash {
    uint64_t hash;
    const wb_device *device;
} wb_model_hash;
uint64_t wb_hash_of(uint64_t seed, const void *bytes, size_t count);
bool wb_hash_parameters(wb_optimiser *optimiser, wb_text *facts, wb_model_hash *hash);
bool wb_hash_states(wb_optimiser *optimiser, uint64_t *hash);

#endif
