/* Collectives as nodes: private side of weber/distributed.h. */
#ifndef WB_OPS_COLLECTIVE_H
#define WB_OPS_COLLECTIVE_H

#include "array/array.h"
#include "ranks/ranks.h"

/* Attributes of the node; its first late word is its number. */
enum {
    WB_COLLECTIVE_KIND,
    WB_COLLECTIVE_REDUCTION,
    WB_COLLECTIVE_ROOT,
    WB_COLLECTIVE_ATTRIBUTES,
};

wb_collective wb_collective_of(const wb_array *node);

#endif
