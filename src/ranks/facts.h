/* What must be the same on all ranks, as facts with names: if they differ, the message says which
 * rank has which value. */
#ifndef WB_RANKS_FACTS_H
#define WB_RANKS_FACTS_H

#include "base/text.h"

/* Adds "name is value" to a list, which is a text. */
void wb_fact_add(wb_text *facts, const char *name, const char *value);

/* Exchanges the lists of all ranks, while no collective is under way, and writes "TITLE, but NAME
 * is VALUE on rank 0, VALUE on rank 1; ..." for the facts that differ; "" if none does. All ranks
 * must call it together, and get the same message. */
wb_status wb_facts_exchange(const char *title, const wb_text *facts, char *message, size_t size);

/* The same for lists that this process has. */
void wb_facts_tell(const char *title, int ranks, const char *const *lists, char *message,
                   size_t size);

#endif
