/* Collectives of numbers that are not arrays: computed when they are called. */
#include <string.h>

#include "base/memory.h"
#include "ops/collective.h"

/* Runs after the collectives that were made before. */
static wb_status run(wb_collective c, const void *from, void *to) {
    c.number = wb_ranks_number();
    if (c.number < 0) return wb_error_status();
    const wb_status status = wb_settle_effects();
    return status == WB_OK ? wb_ranks_run(&c, from, to) : status;
}

wb_status wb_allgather_now(int64_t count, const int64_t *own, int64_t *all) {
    if (wb_ranks_count() > 1)
        return run(
            (wb_collective){.kind = WB_COLLECTIVE_ALLGATHER, .count = count, .dtype = WB_I64}, own,
            all);
    memcpy(all, own, (size_t)count * sizeof *all);
    return WB_OK;
}

wb_status wb_bcast_now(int64_t count, void *bytes) {
    if (wb_ranks_count() == 1 || count == 0) return WB_OK;
    void *result = wb_alloc((size_t)count);
    wb_status status = result ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK)
        status = run((wb_collective){.kind = WB_COLLECTIVE_BCAST, .count = count, .dtype = WB_U8},
                     bytes, result);
    if (status == WB_OK) memcpy(bytes, result, (size_t)count);
    wb_release(result);
    return status;
}
