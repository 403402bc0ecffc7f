/* Collectives as nodes: private side of weber/distributed.h. */
#ifndef WB_OPS_COLLECTIVE_H
#define WB_OPS_COLLECTIVE_H

#include "array/array.h"
#include "ranks/ranks.h"

wb_collective wb_collective_of(const wb_array *node);

/* wb_allreduce of an array that is not f16. The ranks also compare `terms`, a hash of what else
 * must be the same. */
wb_array *wb_allreduce_told(wb_array *x, wb_reduction reduction, int64_t terms);

/* ---- computed at once, in host memory (collective_now.c) ---- */

/* all[r * count + i] = own[i] of rank r. */
wb_status wb_allgather_now(int64_t count, const int64_t *own, int64_t *all);
/* Copies the bytes of rank 0 to all ranks. */
wb_status wb_bcast_now(int64_t count, void *bytes);

#endif
