/* A derivative that a node brings along: what operation `custom` has beside its inputs. */
#ifndef WB_ARRAY_CUSTOM_H
#define WB_ARRAY_CUSTOM_H

#include "array/array.h"
#include "array/payload.h"

/* The node o stands for its first input, y, whatever y is made of; its further inputs are the
 * arrays that get cotangents: out[k] for want[k], k > 0. It may fail. */
typedef void wb_custom_pull(void *context, wb_array *o, wb_array *g, const bool *want,
                            wb_array **out);

typedef struct wb_custom {
    wb_payload payload;
    wb_custom_pull *pull;
    void *context;
    void (*release)(void *context); /* NULL: nothing */
} wb_custom;

/* Of operation `custom`. */
static inline wb_custom *wb_custom_of(const wb_array *x) { return (wb_custom *)(void *)x->payload; }

#endif
