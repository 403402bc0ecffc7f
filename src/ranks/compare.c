/* Before a collective all ranks exchange a description of it. Where two differ, the ranks run
 * different programs, and the message shows both descriptions. */
#include "ranks/compare.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static const char *const kind_names[] = {"allreduce",
                                         "reduce",
                                         "bcast",
                                         "allgather",
                                         "reduce_scatter",
                                         "barrier",
                                         "wb_distributed_initialize for devices"};
static const char *const reduction_names[] = {"sum", "mean", "max", "min"};

static const char *const type_names[] = {
#define X(NAME, name, bytes, type) #name,
    WB_DTYPE_LIST(X)
#undef X
};

/* The numbers are another rank's. */
#define NAME_OF(names, number) name_of(names, (int)(sizeof(names) / sizeof *(names)), number)
static const char *name_of(const char *const *names, int count, int number) {
    return number >= 0 && number < count ? names[number] : "unknown";
}

static void describe(const wb_collective *c, char *text, size_t size) {
    const bool reduces = c->kind == WB_COLLECTIVE_ALLREDUCE || c->kind == WB_COLLECTIVE_REDUCE ||
                         c->kind == WB_COLLECTIVE_REDUCE_SCATTER;
    const bool has_root = c->kind == WB_COLLECTIVE_BCAST || c->kind == WB_COLLECTIVE_REDUCE;
    int used = snprintf(text, size, "%s", NAME_OF(kind_names, c->kind));
    if (c->kind >= WB_COLLECTIVE_BARRIER) return;
    used += snprintf(text + used, size - (size_t)used, " of %lld %s", (long long)c->count,
                     NAME_OF(type_names, c->dtype));
    if (reduces)
        used += snprintf(text + used, size - (size_t)used, ", %s",
                         NAME_OF(reduction_names, c->reduction));
    if (has_root) used += snprintf(text + used, size - (size_t)used, ", root %d", c->root);
    if (c->by_device) (void)snprintf(text + used, size - (size_t)used, ", of a device's memory");
}

wb_status wb_collectives_check(const void *const *all, int size) {
    for (int r = 1; r < size; r++) {
        wb_collective first, other;
        char one[128], two[128];
        if (memcmp(all[0], all[r], sizeof first) == 0) continue;
        memcpy(&first, all[0], sizeof first);
        memcpy(&other, all[r], sizeof other);
        if (first.count == other.count && first.terms != other.terms && first.terms && other.terms)
            return wb_fail(WB_ERROR_ARGUMENT,
                           "distributed: rules, their settings and what is frozen must be the same "
                           "on all ranks, but those of rank %d differ from rank 0's",
                           r);
        describe(&first, one, sizeof one);
        describe(&other, two, sizeof two);
        return wb_fail(WB_ERROR_ARGUMENT,
                       "distributed: ranks must make the same collectives in the same order, but "
                       "number %lld of rank 0 is %s, number %lld of rank %d is %s",
                       (long long)first.number, one, (long long)other.number, r, two);
    }
    return WB_OK;
}

bool wb_collectives_have_terms(const void *const *all, int size) {
    for (int r = 0; r < size; r++) {
        wb_collective c;
        memcpy(&c, all[r], sizeof c);
        if (!c.terms) return false;
    }
    return true;
}
