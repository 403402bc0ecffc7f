/* ZeRO stage 1 (Rajbhandari and others 2020): each rank keeps a part of the states, and computes
 * that part of the step.
 *
 * For rules with elementwise steps, arrays are cut: rank r has the r-th of N ranges of each, padded
 * with zeros, so that the ranges of several arrays are the columns of one matrix, whose
 * reduce-scatter and all-gather they are. For other rules each whole array belongs to one rank, the
 * one that has the fewest elements so far. A rule without states is not divided. */
#include "optimise/shard.h"

#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "ops/build.h"
#include "ranks/ranks.h"

/* Elements of a bucket of new parameters: 25 MiB of f32. */
enum { BUCKET_ELEMENTS = 25 << 18 };

/* ---- which rank has what ---- */

static bool is_elementwise(const wb_rule *rule) {
    for (int i = 0; i < WB_RULE_LINKS && rule->links[i]; i++)
        if (!rule->links[i]->is_elementwise) return false;
    return true;
}

/* The rank with fewest elements of whole arrays, the first of several. */
static int emptiest(const wb_optimiser *o, int64_t groups) {
    int best = 0;
    int64_t least = INT64_MAX;
    for (int r = 0; r < wb_ranks_count(); r++) {
        int64_t load = 0;
        for (int64_t i = 0; i < groups; i++)
            if (o->groups[i].division == WB_DIVIDED_WHOLE && o->groups[i].owner == r)
                load += wb_count(o->members[o->groups[i].first].seen);
        if (load < least) best = r, least = load;
    }
    return best;
}

void wb_divide(const wb_optimiser *o, int64_t groups, const wb_rule *rule, const wb_array *x,
               wb_tie_group *group) {
    group->division = WB_DIVIDED_NOT;
    if (!o->is_divided || wb_rule_states(rule) == 0 || wb_count(x) == 0) return;
    group->division = is_elementwise(rule) ? WB_DIVIDED_CUT : WB_DIVIDED_WHOLE;
    if (group->division == WB_DIVIDED_WHOLE) group->owner = emptiest(o, groups);
}

bool wb_keeps_state(const wb_tie_group *group) {
    return group->division != WB_DIVIDED_WHOLE || group->owner == wb_ranks_own();
}

static int64_t elements_of_part(const wb_array *x) {
    return (wb_count(x) + wb_ranks_count() - 1) / wb_ranks_count();
}

int wb_state_sizes(const wb_tie_group *group, const wb_array *x, int64_t *sizes) {
    if (group->division == WB_DIVIDED_CUT) {
        sizes[0] = elements_of_part(x);
        return 1;
    }
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
    return x->ndim;
}

/* ---- parts ---- */

wb_array *wb_columns_of(wb_array *x) {
    const int64_t count = wb_count(x), rows = elements_of_part(x), ranks = wb_ranks_count();
    const int64_t missing = rows * ranks - count;
    wb_array *flat = wb_reshape_make(x, 1, &count);
    if (missing > 0)
        flat = wb_concat(0, flat, wb_beside(x, wb_full_make((wb_dtype)x->dtype, 0, 1, &missing)));
    return wb_reshape(flat, rows, ranks);
}

/* Back from columns to the sizes of `like`. */
static wb_array *of_columns(wb_array *columns, const wb_array *like) {
    const int64_t count = wb_count(like), all = columns ? wb_count(columns) : 0;
    wb_array *flat = wb_slice(wb_reshape_make(columns, 1, &all), 0, 0, count, 1);
    return wb_reshape_make(flat, like->ndim, like->sizes);
}

wb_array *wb_part_of(const wb_tie_group *group, wb_array *x) {
    if (group->division != WB_DIVIDED_CUT) return x;
    const int64_t own = wb_ranks_own(), count = elements_of_part(x);
    return wb_reshape_make(wb_slice(wb_columns_of(x), 1, own, own + 1, 1), 1, &count);
}

/* ---- new parameters ---- */

typedef struct bucket {
    wb_optimiser *o;
    wb_array *good;  /* one bool: whether there is a step */
    int64_t *groups; /* of one type */
    wb_array **pieces;
    int64_t count;
} bucket;

static wb_array **fresh_of(const bucket *b, int64_t i) {
    return &b->o->members[b->o->groups[b->groups[i]].first].fresh;
}

/* Computed, and no view of what was sent: so that it takes the old one's place. */
static wb_array *settled(const bucket *b, wb_array *fresh, wb_array *old) {
    return SELECT(b->good, fresh, old);
}

static bool join_bucket(bucket *b) {
    for (int64_t i = 0; i < b->count; i++) {
        wb_array *part = *fresh_of(b, i);
        b->pieces[i] = wb_reshape(part, wb_count(part), 1);
    }
    wb_array *all = wb_allgather(wb_concat_make(0, (int)b->count, b->pieces));
    for (int64_t i = 0, at = 0; i < b->count; i++) {
        wb_array **fresh = fresh_of(b, i);
        wb_array *old = *b->o->members[b->o->groups[b->groups[i]].first].slot;
        const int64_t rows = wb_count(*fresh);
        *fresh = settled(b, of_columns(wb_slice(all, 0, at, at + rows, 1), old), old);
        at += rows;
    }
    b->count = 0;
    return !wb_failed();
}

static bool takes_part(const wb_optimiser *o, int64_t i, wb_division division) {
    return o->sums[i] && o->groups[i].division == division;
}

/* In the order in which gradients are computed: the last layers first. */
static bool join_type(bucket *b, wb_dtype dtype) {
    int64_t elements = 0;
    for (int64_t i = b->o->group_count - 1; i >= 0; i--) {
        const wb_array *x = *b->o->members[b->o->groups[i].first].slot;
        if (x->dtype != dtype || !takes_part(b->o, i, WB_DIVIDED_CUT)) continue;
        if (b->count && elements + wb_count(x) > BUCKET_ELEMENTS) {
            if (!join_bucket(b)) return false;
            elements = 0;
        }
        b->groups[b->count++] = i;
        elements += wb_count(x);
    }
    return b->count == 0 || join_bucket(b);
}

static bool send_whole(const bucket *b) {
    wb_optimiser *o = b->o;
    for (int64_t i = o->group_count - 1; i >= 0; i--) {
        if (!takes_part(o, i, WB_DIVIDED_WHOLE)) continue;
        wb_member *first = &o->members[o->groups[i].first];
        first->fresh = settled(b, wb_bcast(first->fresh, o->groups[i].owner), *first->slot);
        if (!first->fresh) return false;
    }
    return true;
}

static wb_array *is_finite(wb_array *x) {
    if (x->ndim > 0) x = wb_reshape_make(x, 0, NULL);
    return x ? EQ(SUB(x, x), NUM(0)) : NULL;
}

bool wb_join_parts(wb_optimiser *o, wb_array *watched) {
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16};
    bucket b = {.o = o,
                .good = is_finite(watched),
                .groups = wb_alloc((size_t)(o->group_count + 1) * sizeof *b.groups),
                .pieces = wb_alloc((size_t)(o->group_count + 1) * sizeof *b.pieces)};
    bool good = b.good && b.groups && b.pieces;
    for (int t = 0; t < 4 && good; t++) good = join_type(&b, types[t]);
    wb_release(b.groups), wb_release(b.pieces);
    return good && send_whole(&b);
}

/* ---- whole states ---- */

/* The array that a rank without the state passes to a broadcast. */
static wb_array *placeholder(const wb_array *x) {
    const wb_dtype dtype = x->dtype == WB_F64 ? WB_F64 : WB_F32;
    return wb_beside(x, wb_full_make(dtype, 0, x->ndim, x->sizes));
}

wb_array *wb_whole_state(const wb_optimiser *o, const wb_tie_group *group, int k) {
    const wb_array *x = *o->members[group->first].slot;
    wb_array *own = group->states[k];
    if (group->division == WB_DIVIDED_NOT) return wb_scope_add(own);
    if (group->division == WB_DIVIDED_WHOLE)
        return wb_bcast(own ? own : placeholder(x), group->owner);
    return of_columns(wb_allgather(wb_reshape(own, wb_count(own), 1)), x);
}

void wb_drop_gathered(wb_optimiser *o) {
    for (int64_t i = 0; i < o->gathered_count; i++) wb_unhold(o->gathered[i]);
    wb_release(o->gathered);
    o->gathered = NULL, o->gathered_count = 0;
}

static wb_status gather_one(wb_optimiser *o, int64_t i, int k) {
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    wb_array *whole = wb_whole_state(o, &o->groups[i], k);
    const wb_status status = whole ? wb_evaluate_roots(1, &whole) : wb_error_status();
    if (status == WB_OK && wb_ranks_own() == 0)
        o->gathered[i * WB_RULE_ALL_STATES + k] = wb_hold(whole);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

bool wb_has_whole_states(const wb_optimiser *o) { return !o->is_divided || wb_ranks_own() == 0; }

wb_array *wb_state_for_file(const wb_optimiser *o, int64_t i, int k) {
    return o->gathered ? o->gathered[i * WB_RULE_ALL_STATES + k] : o->groups[i].states[k];
}

bool wb_sums_are_cut(const wb_optimiser *o) {
    return o->is_divided && o->clip_norm == 0 && o->micro_batches == 0;
}

wb_status wb_gather_states(wb_optimiser *o) {
    if (!o->is_divided || o->gathered) return WB_OK;
    wb_status status = wb_optimiser_group(o);
    const int64_t count = o->group_count * WB_RULE_ALL_STATES;
    if (status == WB_OK && !(o->gathered = wb_alloc((size_t)(count + 1) * sizeof *o->gathered)))
        status = WB_ERROR_MEMORY;
    o->gathered_count = status == WB_OK ? count : 0;
    for (int64_t i = 0; i < o->group_count && status == WB_OK; i++)
        for (int k = 0; k < wb_rule_states(wb_group_rule(o, &o->groups[i])) && status == WB_OK; k++)
            status = gather_one(o, i, k);
    if (status != WB_OK) {
        wb_drop_gathered(o);
        wb_ranks_fail(); /* the others wait for this rank's part */
    }
    return status;
}
