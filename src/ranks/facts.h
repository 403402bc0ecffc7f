/* What has to be the same on all ranks, as facts that have names: where they differ, the message
 * says which rank has what. */
#ifndef WB_RANKS_FACTS_H
#define WB_RANKS_FACTS_H

#include "base/text.h"

/* Adds "name is value" to a list, which is a text. */
void wb_fact_add(wb_text *facts, const char *name, const char *value);

/* Gives all ranks the lists of all, while nothing else is on its way, and writes "TITLE, but NAME
 * is VALUE on rank 0, VALUE on rank 1; ..." of the facts that differ; "" where none does. All ranks
 * come here together, and get the same message. */
wb_status wb_facts_exchange(const char *title, const wb_text *facts, char *message, size_t size);

/* The same of lists that are here. */
void wb_facts_tell(const char *title, int ranks, const char *const *lists, char *message,
                   size_t size);

#endif
