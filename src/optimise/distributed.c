/* What the ranks of a group share in a step: one mean over all their observations.
 *
 * Rank r has a mean l_r over n_r observations; the loss of one process over all of them is
 * (n_1 l_1 + n_2 l_2 + ...) / (n_1 + n_2 + ...). So losses are differentiated times n_r, and each
 * bucket is an all-reduced list: n_r, then arrays times n_r. */
#include "optimise/distributed.h"

#include <string.h>

#include "array/state.h"
#include "array/thread.h"
#include "base/memory.h"
#include "ops/build.h"
#include "ops/collective.h"

/* 1 MiB of f32, so that something is on its way soon, then 25, as PyTorch's DistributedDataParallel
 * has them. */
enum { FIRST_ELEMENTS = 1 << 18, BUCKET_ELEMENTS = 25 << 18 };

/* Arrays, and where their means go. */
typedef struct shared {
    wb_array *x, **mean; /* NULL: nowhere else */
    wb_array **slot;     /* of a state; NULL: none */
    wb_weighting weighting;
} shared;

typedef struct averaging {
    wb_array *weight; /* n_r */
    int64_t terms;    /* what the ranks compare beside sizes: the settings of the step */
    shared *items;
    int64_t count, capacity;
    wb_array **pieces; /* of a bucket */
} averaging;

static bool add(averaging *a, const shared *item) {
    if (!WB_GROW(a->items, a->count, a->capacity)) return false;
    a->items[a->count++] = *item;
    return true;
}

/* ---- buckets ---- */

static wb_dtype type_of(const wb_array *x) { return x->dtype == WB_F64 ? WB_F64 : WB_F32; }

static wb_array *flat(wb_array *x, wb_dtype dtype) {
    const int64_t count = wb_count(x);
    return wb_reshape_make(wb_cast(x, dtype), 1, &count);
}

/* The means of some items of one type. */
static bool average_bucket(averaging *a, wb_dtype dtype, int64_t count, shared *const *items) {
    wb_array *weight = flat(a->weight, dtype);
    a->pieces[0] = weight;
    for (int64_t i = 0; i < count; i++) {
        wb_array *own = flat(items[i]->x, dtype);
        a->pieces[i + 1] = items[i]->weighting == WB_WEIGHTED_NOT ? MUL(own, weight) : own;
    }
    wb_array *sum = wb_allreduce_told(wb_concat_make(0, (int)count + 1, a->pieces), a->terms);
    wb_array *total = wb_slice(sum, 0, 0, 1, 1);
    for (int64_t i = 0, at = 1; i < count; i++) {
        const wb_array *x = items[i]->x;
        const int64_t end = at + wb_count(x);
        wb_array *mean = wb_slice(sum, 0, at, end, 1);
        if (items[i]->weighting != WB_WEIGHTED_BY_SHARE) mean = DIV(mean, total);
        mean = wb_cast(wb_reshape_make(mean, x->ndim, x->sizes), (wb_dtype)x->dtype);
        if (!mean) return false;
        if (items[i]->mean) *items[i]->mean = mean;
        if (items[i]->slot && wb_state_write(items[i]->slot, mean) != WB_OK) return false;
        at = end;
    }
    return true;
}

/* In order: the same buckets on all ranks, since all have the same lists. */
static bool average_type(averaging *a, wb_dtype dtype, shared **bucket) {
    int64_t count = 0, elements = 0, most = FIRST_ELEMENTS;
    for (int64_t i = 0; i < a->count; i++) {
        if (type_of(a->items[i].x) != dtype) continue;
        const int64_t more = wb_count(a->items[i].x);
        if (count && elements + more > most) {
            if (!average_bucket(a, dtype, count, bucket)) return false;
            count = elements = 0, most = BUCKET_ELEMENTS;
        }
        bucket[count++] = &a->items[i];
        elements += more;
    }
    return count == 0 || average_bucket(a, dtype, count, bucket);
}

static bool average_items(averaging *a) {
    shared **bucket = wb_alloc(sizeof *bucket * (size_t)(a->count + 1));
    a->pieces = wb_alloc(sizeof *a->pieces * (size_t)(a->count + 1));
    const bool done =
        bucket && a->pieces && average_type(a, WB_F32, bucket) && average_type(a, WB_F64, bucket);
    wb_release(bucket);
    wb_release(a->pieces);
    return done;
}

/* ---- lists ---- */

typedef struct state_collector {
    wb_visitor visitor;
    averaging *averaging;
} state_collector;

/* What a layer wrote in this step, as BatchNorm its running statistics. */
static bool collect_state(wb_visitor *visitor, const wb_path *path, wb_array **slot,
                          bool trainable) {
    (void)path;
    const wb_array *x = *slot;
    if (trainable || !wb_dtype_is_float((wb_dtype)x->dtype) || !wb_state_is_written(slot))
        return true;
    averaging *a = ((state_collector *)(void *)visitor)->averaging;
    return add(a, &(shared){.x = *slot, .slot = slot});
}

/* FNV-1a over what must be the same on all ranks for one step to be one step. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ b[i]) * 0x100000001b3ull;
    return hash;
}

static uint64_t mix_rule(uint64_t hash, const wb_rule *rule) {
    for (int i = 0; i < WB_RULE_LINKS && rule->links[i]; i++)
        hash = mix(hash, rule->links[i]->name, strlen(rule->links[i]->name) + 1);
    return mix(hash, rule->settings, sizeof rule->settings);
}

/* A rule, and what it moves in this step; 0: nothing. Added up, since cohorts have no order. */
static uint64_t terms_of_cohort(const wb_optimiser *o, int64_t cohort) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < o->group_count; i++) {
        if (o->groups[i].cohort != cohort || !o->sums[i]) continue;
        if (!hash) hash = mix_rule(0xcbf29ce484222325ull, &o->cohorts[cohort].rule);
        hash = mix(hash, &i, sizeof i);
    }
    return hash;
}

static int64_t terms_of(const wb_optimiser *o) {
    uint64_t hash = mix(0xcbf29ce484222325ull, &o->clip_norm, sizeof o->clip_norm);
    hash = mix(hash, &o->first_scale, sizeof o->first_scale);
    hash = mix(hash, &o->scale_interval, sizeof o->scale_interval);
    for (int64_t c = 0; c < o->cohort_count; c++) hash += terms_of_cohort(o, c);
    return (int64_t)(hash >> 1) | 1;
}

wb_array *wb_average_over_ranks(wb_optimiser *o, const wb_gradients *g) {
    wb_array *own = wb_gradients_watched(g), *watched = NULL;
    averaging a = {.weight = wb_late((double)g->observations), .terms = terms_of(o)};
    state_collector states = {.visitor = {.array = collect_state}, .averaging = &a};
    o->mean_loss = NULL;
    bool done = a.weight && own && add(&a, &(shared){.x = own, .mean = &watched});
    if (g->loss && g->loss != own)
        done = done && add(&a, &(shared){.x = g->loss, .mean = &o->mean_loss});
    done = done && wb_visit(&states.visitor, o->model);
    for (int64_t i = o->group_count - 1; done && i >= 0; i--)
        if (o->sums[i]) done = add(&a, &(shared){o->sums[i], &o->sums[i], NULL, g->weighting});
    done = done && average_items(&a);
    wb_release(a.items);
    if (done && !o->mean_loss) o->mean_loss = watched;
    return done ? watched : NULL;
}

/* ---- weights ---- */

bool wb_weigh_by_share(const wb_optimiser *o, const wb_batch *batch, wb_precision *precision) {
    if (!o->is_distributed) return true;
    wb_array *own = wb_late((double)wb_observations_of(batch));
    precision->weight = DIV(own, wb_allreduce(own, WB_REDUCE_SUM));
    precision->weighting = WB_WEIGHTED_BY_SHARE;
    return precision->weight != NULL;
}

/* Numbers in f16 are to be no larger than in one process. */
static bool has_f16(const wb_optimiser *o) {
    bool found = o->scale || o->compute == WB_F16;
    for (int64_t i = 0; i < o->member_count && !found; i++)
        found = (*o->members[i].slot)->dtype == WB_F16;
    return found;
}

bool wb_weigh_by_count(const wb_optimiser *o, const wb_batch *batch, wb_precision *precision) {
    if (!o->is_distributed) return true;
    if (has_f16(o)) return wb_weigh_by_share(o, batch, precision);
    precision->weight = wb_late((double)wb_observations_of(batch));
    precision->weighting = WB_WEIGHTED_BY_COUNT;
    return precision->weight != NULL;
}

/* ---- random numbers ---- */

wb_draws wb_draws_begin(const wb_optimiser *o) {
    wb_thread *thread = wb_thread_get(); /* there: the optimiser's arrays are its */
    const wb_draws left = {thread->counter};
    if (!o->is_distributed) return left;
    thread->stream = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)wb_ranks_own();
    thread->counter = (uint64_t)(o->step + 1) << 32; /* blocks: more than a step can draw */
    return left;
}

void wb_draws_end(const wb_optimiser *o, wb_draws left) {
    wb_thread *thread = wb_thread_get();
    if (!o->is_distributed) return;
    thread->stream = 0, thread->counter = left.counter;
}

/* ---- the same on all ranks ---- */

static wb_array *of_the_first(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return wb_bcast(x, 0);
}

static bool replace(wb_array **slot) {
    wb_array *x = wb_bcast(*slot, 0);
    if (!x || wb_evaluate_hook(1, &x) != WB_OK) return false;
    wb_hold(x);
    wb_unhold(*slot);
    *slot = x;
    return true;
}

static wb_status synchronize_states(wb_optimiser *o) {
    const int64_t count = wb_optimiser_slots(o, NULL);
    wb_array ***slots = wb_alloc(sizeof *slots * (size_t)(count + 1));
    wb_status status = slots && wb_scope_begin() ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK) {
        (void)wb_optimiser_slots(o, slots);
        for (int64_t i = 0; i < count && status == WB_OK; i++)
            if (!replace(slots[i])) status = wb_error_status();
        for (int64_t i = 0; i < o->member_count; i++) o->members[i].seen = *o->members[i].slot;
        const wb_status closed = wb_scope_close_leaving(0, NULL);
        if (status == WB_OK) status = closed;
    }
    wb_release(slots);
    return status;
}

wb_status wb_synchronize(void *object) {
    static const char function[] = "wb_synchronize";
    if (!wb_ranks_join(function)) return wb_error_status();
    wb_optimiser *o = wb_is_optimiser(object) ? object : NULL;
    wb_layer *model = o ? o->model : object;
    if (!wb_check_layer(function, model)) return WB_ERROR_ARGUMENT;
    if (wb_ranks_count() == 1) return WB_OK;
    const wb_status status = wb_walk(of_the_first, NULL, model);
    return status == WB_OK && o ? synchronize_states(o) : status;
}
