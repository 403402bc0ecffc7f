/* Models as trees of records, in the shape of Flux.state. */
#ifndef WB_STATE_TREE_H
#define WB_STATE_TREE_H

#include "layers/layer.h"
#include "state/record.h"

/* An array or layer that was met, and its record: what is met again is shared. */
typedef struct wb_met {
    const void *object;
    wb_record *record;
} wb_met;

/* Makes trees in its arena; start with {.is_for_file = ...}. */
typedef struct wb_tree_maker {
    bool
        is_for_file; /* arrays are copied to the host, dense; else the records have the arrays themselves */
    wb_arena arena;
    wb_met *met;
    int64_t count, capacity;
    int depth;
} wb_tree_maker;

/* The records' arrays belong to the scope. NULL on failure. */
wb_record *wb_tree_of_array(wb_tree_maker *maker, wb_array *x);
wb_record *wb_tree_of_layer(wb_tree_maker *maker, wb_layer *layer);
void wb_tree_maker_release(wb_tree_maker *maker);

#endif
