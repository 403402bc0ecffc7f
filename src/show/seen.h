/* What has been seen of a model while it is applied: arrays, and places of layers. */
#ifndef WB_SHOW_SEEN_H
#define WB_SHOW_SEEN_H

#include "array/array.h"
#include "base/table.h"

/* Arrays, numbered from 0 in the order they were added. Holds a reference to each, so that no later
 * array gets its address. Initialise with {0}. */
typedef struct wb_seen {
    wb_table table;
    wb_array **arrays;
    int64_t capacity;
} wb_seen;

/* Adds x, even if it is there already. False when out of memory, with the error recorded. */
bool wb_seen_add(wb_seen *seen, wb_array *x);

/* The latest number of x; -1: it was not added. */
int64_t wb_seen_find(const wb_seen *seen, const wb_array *x);

void wb_seen_release(wb_seen *seen);

/* True if the layer at path inner, "layers.1.cell", is inside of the one at outer, "layers.1"; ""
 * is the whole model. */
bool wb_path_is_inside(const char *inner, const char *outer);

#endif
