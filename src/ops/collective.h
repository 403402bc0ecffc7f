/* Collectives as nodes: private side of weber/distributed.h. */
#ifndef WB_OPS_COLLECTIVE_H
#define WB_OPS_COLLECTIVE_H

#include "array/array.h"
#include "ranks/ranks.h"

wb_collective wb_collective_of(const wb_array *node);

/* wb_allreduce of an array that is not f16, by ranks that compare `terms`, too: a hash of what else
 * has to be the same. */
wb_array *wb_allreduce_told(wb_array *x, wb_reduction reduction, int64_t terms);

/* ---- at once, of the host's memory (collective_now.c) ---- */

/* all[r * count + i] = own[i] of rank r. */
wb_status wb_allgather_now(int64_t count, const int64_t *own, int64_t *all);
/* The bytes of rank 0 become those of all. */
wb_status wb_bcast_now(int64_t count, void *bytes);

#endif
