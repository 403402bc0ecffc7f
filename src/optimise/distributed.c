/* Ranks that train one model: the weights of their losses, and their random numbers. */
#include "optimise/distributed.h"

#include "array/state.h"
#include "array/thread.h"
#include "array/use.h"
#include "base/memory.h"
#include "ops/build.h"
#include "ops/collective.h"

/* ---- weights ---- */

void wb_weigh_by_share(const wb_optimiser *o, wb_precision *precision) {
    if (!o->is_distributed) return;
    precision->weighting = WB_WEIGHTED_BY_SHARE, precision->is_distributed = true;
}

/* In f16 the numbers must not be larger than in one process. */
static bool has_f16(const wb_optimiser *o) {
    bool found = o->scale || o->compute == WB_F16;
    for (int64_t i = 0; i < o->member_count && !found; i++)
        found = (*o->members[i].slot)->dtype == WB_F16;
    return found;
}

void wb_weigh_by_count(const wb_optimiser *o, const wb_batch *batch, wb_precision *precision) {
    if (!wb_is_of_parts(o)) return;
    precision->weighting = WB_WEIGHTED_BY_COUNT, precision->is_distributed = o->is_distributed;
    if (!has_f16(o)) return;
    precision->parts = o->micro_batches ? o->micro_batches : 1;
    precision->of_all = wb_observations_of(batch);
}

/* ---- gradients that a rank lacks ---- */

static bool fill(wb_optimiser *o, const float *is_somewhere) {
    for (int64_t i = 0; i < o->group_count; i++) {
        if (o->sums[i] || o->groups[i].is_frozen || is_somewhere[i] == 0) continue;
        const wb_array *p = *o->members[o->groups[i].first].slot;
        o->sums[i] = wb_beside(p, wb_full_make((wb_dtype)p->dtype, 0, p->ndim, p->sizes));
        if (!o->sums[i]) return false;
    }
    return true;
}

/* This must be known before the step is built, so all ranks wait for the answer. */
bool wb_fill_missing(wb_optimiser *o) {
    if (!o->may_miss || !o->is_distributed || o->group_count == 0) return true;
    float *is_there = wb_alloc((size_t)o->group_count * sizeof *is_there);
    if (!is_there) return false;
    for (int64_t i = 0; i < o->group_count; i++) is_there[i] = o->sums[i] != NULL;
    wb_array *own = wb_from_make(WB_F32, is_there, 1, &o->group_count);
    wb_array *all = own ? wb_allreduce(own, WB_REDUCE_MAX) : NULL;
    const bool is_known = all && wb_read_f32(all, is_there, o->group_count) == WB_OK;
    const bool is_full = is_known && fill(o, is_there);
    wb_release(is_there);
    return is_full;
}

/* ---- random numbers ---- */

/* All ranks have batches of the same size, except the last one of an epoch. */
wb_draws wb_draws_begin(const wb_optimiser *o, const wb_batch *whole, const wb_batch *part,
                        int64_t number) {
    wb_thread *thread = wb_thread_get(); /* there: the device of the optimiser's arrays */
    const wb_draws left = {thread->counter};
    if (!o->draws_for_all) return left;
    const int64_t rank = o->is_distributed ? wb_ranks_own() : 0;
    const int64_t parts = o->micro_batches ? o->micro_batches : 1;
    const bool has_x = whole && whole->x;
    const int64_t size = !has_x ? 0 : whole->full_ ? whole->full_ : wb_numobs(whole->x);
    thread->drawing = (wb_drawing){
        .is_shared = true,
        .key = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(o->step + 1),
        .part = rank * parts + number,
        .first = rank * size + number * ((size + parts - 1) / parts),
        .count = has_x ? wb_numobs(part->x) : -1,
    };
    thread->counter = 0;
    return left;
}

void wb_draws_end(const wb_optimiser *o, wb_draws left) {
    wb_thread *thread = wb_thread_get();
    if (!o->draws_for_all) return;
    thread->drawing = (wb_drawing){.is_shared = false}, thread->counter = left.counter;
}
