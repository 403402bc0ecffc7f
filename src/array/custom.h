/* A derivative that a node brings along: what operation `custom` has beside its inputs. */
#ifndef WB_ARRAY_CUSTOM_H
#define WB_ARRAY_CUSTOM_H

#include "array/array.h"

/* The node o stands for its first input, y, whatever y is made of; behind it are those inputs that
 * get cotangents: out[k] for want[k], k > 0. It may fail. */
typedef void wb_custom_pull(void *context, wb_array *o, wb_array *g, const bool *want,
                            wb_array **out);

typedef struct wb_custom {
    int32_t refs; /* nodes; those of one thread */
    wb_custom_pull *pull;
    void *context;
    void (*release)(void *context); /* NULL: nothing */
} wb_custom;

/* Nodes of operations that have one, which have to be copied with it. */
wb_custom *wb_custom_ref(wb_custom *custom);
void wb_custom_unref(wb_custom *custom);

#endif
