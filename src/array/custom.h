/* The payload of operation `custom`: a derivative that comes with the node. */
#ifndef WB_ARRAY_CUSTOM_H
#define WB_ARRAY_CUSTOM_H

#include "array/array.h"
#include "array/payload.h"

/* The node o has the value of its first input, y, whatever y is made of. Its further inputs are the
 * arrays that get cotangents: out[k] of input k where want[k], k > 0; g is the cotangent of o. It
 * may fail. */
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
