/* What the parts of a step share: one mean over all of them.
 *
 * A part is a micro-batch of a rank. Part g has a loss l_g that was divided by w_g: its noted
 * divisor (array/divisor.h), else its number of observations. The loss of one process over all of
 * them is (w_1 l_1 + w_2 l_2 + ...) / (w_1 + w_2 + ...). So losses are differentiated times w_g.
 * States of layers are means over observations. These sums are made in the order of the parts'
 * numbers, by the tree that weber/distributed.h describes.
 *
 * With ranks alone all of it is one plan: buckets are all-reduced during the backward pass.
 * Micro-batches are computed one after another, each by the same plan, which only computes the
 * terms of the sums; the sums over a rank's micro-batches, the sums over the ranks, and the step
 * are separate plans, since how a sum is rounded depends on what it is fused with. So the results
 * do not depend on which rank computes which part. If the number of micro-batches is a power of
 * two, both trees form one, and the bits depend on the number of parts alone. */
#include "optimise/mean.h"
#include "optimise/parts.h"
#include "optimise/shard.h"

#include <string.h>

#include <weber/distributed.h>

#include "array/state.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "ops/build.h"
#include "ops/collective.h"

/* The first bucket has 1 MiB of f32, so that sending begins early, the others 25 MiB, as in
 * PyTorch's DistributedDataParallel. */
enum { FIRST_ELEMENTS = 1 << 18, BUCKET_ELEMENTS = 25 << 18 };

/* The totals by which means are divided: the first items of the list. */
enum { BY_OBSERVATIONS, BY_WEIGHT, TOTALS };

/* An array, and where its mean goes. A state of integers or bools (is_integer) has none: all parts
 * must write the same. Then x has its elements v and -1 - v as i64, of which the largest are
 * taken. */
typedef struct shared {
    wb_array *x;     /* weighted, f32 or f64; then the sum of the parts' */
    wb_array *total; /* of their weights, in x's type */
    wb_array **mean; /* NULL: nowhere else */
    wb_array **slot; /* of a state; NULL: none */
    int by;
    wb_weighting weighting;
    wb_dtype dtype; /* of the mean */
    bool is_integer;
    bool is_gradient;
    bool is_cut; /* each rank needs only its range of the sum (shard.c) */
} shared;

/* All that is to be a mean, after the totals. */
typedef struct wb_sharing {
    wb_dtype send;            /* bf16: gradients of f32 are rounded to it on their way */
    bool is_empty;            /* this part has no observations: a mean over them may be NaN */
    int64_t terms;            /* what the ranks compare beside sizes: the settings of the step */
    wb_array *totals[TOTALS]; /* over the ranks, from the first bucket */
    shared *items;
    int64_t count, capacity;
    wb_array **pieces; /* of a bucket */
} wb_sharing;

static wb_dtype type_of(const wb_array *x) { return x->dtype == WB_F64 ? WB_F64 : WB_F32; }

static bool append(wb_sharing *s, const shared *item) {
    if (!item->x || !WB_GROW(s->items, s->count, s->capacity)) return false;
    s->items[s->count++] = *item;
    return true;
}

static bool begin(wb_sharing *s, const wb_gradients *g) {
    wb_array *weight = wb_gradients_weight(g);
    s->is_empty = g->observations == 0;
    if (weight) weight = wb_cast(weight, type_of(weight));
    return append(s, &(shared){.x = wb_cast(wb_late((double)g->observations), WB_F32)}) &&
           append(s, &(shared){.x = weight});
}

static wb_array *weighted(const wb_sharing *s, const shared *item) {
    wb_array *x = item->x;
    const wb_dtype dtype = (wb_dtype)x->dtype;
    if (s->is_empty) return wb_beside(x, wb_full_make(dtype, 0, x->ndim, x->sizes));
    return MUL(x, wb_cast(s->items[item->by].x, dtype));
}

static bool add(wb_sharing *s, const shared *item) {
    shared own = *item;
    /* gradients stay in f32, because fusion decides whether they are rounded to halves in
     * between */
    own.dtype = item->is_gradient ? type_of(own.x) : (wb_dtype)own.x->dtype;
    own.x = wb_cast(own.x, type_of(own.x));
    if (own.x && own.weighting == WB_WEIGHTED_NOT) own.x = weighted(s, &own);
    return append(s, &own);
}

/* ---- integers ---- */

static wb_array *half_of(const shared *item, int which) {
    const int64_t n = item->x->sizes[0] / 2;
    return wb_slice(item->x, 0, which * n, (which + 1) * n, 1);
}

/* A part without observations contributes nothing. */
static bool add_integers(wb_sharing *s, wb_array **slot) {
    const int64_t count = wb_count(*slot);
    wb_array *v = wb_reshape_make(wb_cast(*slot, WB_I64), 1, &count);
    wb_array *both[] = {v, SUB(wb_scalar(WB_I64, -1), v)};
    wb_array *is_seen = GT(s->items[BY_OBSERVATIONS].x, NUM(0));
    shared item = {.slot = slot, .is_integer = true, .dtype = (wb_dtype)(*slot)->dtype};
    item.x = SELECT(is_seen, wb_concat_make(0, 2, both), wb_scalar(WB_I64, -0x1p63));
    return append(s, &item);
}

/* Reads whether the parts have written the same. */
static bool agrees(wb_layer *model, const shared *item) {
    wb_array *differ = NE(ADD(half_of(item, 0), half_of(item, 1)), wb_scalar(WB_I64, -1));
    const double differing = wb_item(wb_sum(differ));
    if (wb_failed()) return false;
    if (differing == 0) return true;
    char path[WB_PATH_BYTES];
    wb_slot_path(model, item->slot, path);
    return wb_fail_null(WB_ERROR_ARGUMENT,
                        "a state of %s has no mean: all micro-batches and ranks of a step must "
                        "write the same to %s, but %.0f of %lld elements differ",
                        wb_dtype_name(item->dtype), path, differing,
                        (long long)wb_count(*item->slot)) != NULL;
}

static bool all_agree(const wb_sharing *s, wb_layer *model) {
    for (int64_t i = TOTALS; i < s->count; i++)
        if (s->items[i].is_integer && !agrees(model, &s->items[i])) return false;
    return true;
}

static bool join_integers(const wb_sharing *s) {
    for (int64_t i = TOTALS; i < s->count; i++) {
        shared *item = &s->items[i];
        if (!item->is_integer) continue;
        item->x = wb_allreduce_told(item->x, WB_REDUCE_MAX, s->terms);
        if (!item->x) return false;
    }
    return true;
}

/* ---- means ---- */

/* 0 where nothing counts in any part, as the library's losses have it. */
static wb_array *mean_of(const shared *item) {
    if (item->is_integer)
        return wb_reshape_make(half_of(item, 0), (*item->slot)->ndim, (*item->slot)->sizes);
    if (item->weighting == WB_WEIGHTED_BY_SHARE) return item->x;
    return DIV(item->x, SELECT(EQ(item->total, NUM(0)), NUM(1), item->total));
}

static bool put_mean(const shared *item) {
    wb_array *mean = wb_cast(mean_of(item), item->dtype);
    if (!mean || (item->slot && wb_state_write(item->slot, mean) != WB_OK)) return false;
    if (item->mean) *item->mean = mean;
    return true;
}

/* Writes the state so that the step's guard can take it back, computed or not. */
static bool put_means(const wb_sharing *s) {
    const int64_t begin = wb_state_begin();
    bool good = true;
    for (int64_t i = TOTALS; i < s->count && good; i++) good = put_mean(&s->items[i]);
    wb_state_end(begin, good);
    return good;
}

/* ---- buckets ---- */

static wb_array *flat(wb_array *x, wb_dtype dtype) {
    const int64_t count = wb_count(x);
    return wb_reshape_make(wb_cast(x, dtype), 1, &count);
}

static wb_dtype sent_as(const wb_sharing *s, const shared *item) {
    const wb_dtype dtype = (wb_dtype)item->x->dtype;
    return item->is_gradient && dtype == WB_F32 ? s->send : dtype;
}

/* The sums of some items of one type, with the totals before them, so that a bucket needs no other
 * one; halves could not hold the totals, so buckets of halves use those of the first bucket. */
static bool sum_bucket(wb_sharing *s, wb_dtype dtype, int64_t count, shared *const *items) {
    const int totals = wb_is_half(dtype) ? 0 : TOTALS;
    for (int t = 0; t < totals; t++) s->pieces[t] = flat(s->items[t].x, dtype);
    for (int64_t i = 0; i < count; i++) s->pieces[i + totals] = flat(items[i]->x, dtype);
    wb_array *sum = wb_concat_make(0, (int)count + totals, s->pieces), *total[TOTALS];
    sum = wb_allreduce_told(sum, WB_REDUCE_SUM, s->terms);
    for (int t = 0; t < TOTALS; t++) {
        total[t] = totals ? wb_reshape_make(wb_slice(sum, 0, t, t + 1, 1), 0, NULL) : s->totals[t];
        if (!s->totals[t]) s->totals[t] = total[t];
    }
    for (int64_t i = 0, at = totals; i < count; i++) {
        const wb_array *x = items[i]->x;
        const int64_t end = at + wb_count(x);
        wb_array *own = wb_reshape_make(wb_slice(sum, 0, at, end, 1), x->ndim, x->sizes);
        items[i]->x = wb_cast(own, (wb_dtype)x->dtype);
        items[i]->total = wb_cast(total[items[i]->by], (wb_dtype)x->dtype);
        at = end;
    }
    return !wb_failed();
}

/* This rank's ranges of the sums, as columns one below another; the totals are those of the first
 * bucket. */
static bool scatter_bucket(wb_sharing *s, wb_dtype dtype, int64_t count, shared *const *items) {
    for (int64_t i = 0; i < count; i++) s->pieces[i] = wb_columns_of(wb_cast(items[i]->x, dtype));
    wb_array *sum = wb_reduce_scatter(wb_concat_make(0, (int)count, s->pieces), WB_REDUCE_SUM);
    for (int64_t i = 0, at = 0; i < count && s->pieces[i]; i++) {
        const int64_t rows = s->pieces[i]->sizes[0];
        const wb_dtype own = (wb_dtype)items[i]->x->dtype;
        wb_array *part = wb_reshape_make(wb_slice(sum, 0, at, at + rows, 1), 1, &rows);
        items[i]->x = wb_cast(part, own);
        items[i]->total = wb_cast(s->totals[items[i]->by], own);
        at += rows;
    }
    return !wb_failed();
}

typedef bool bucket_fn(wb_sharing *s, wb_dtype dtype, int64_t count, shared *const *items);

/* In order: the same buckets on all ranks, since all have the same lists. */
static bool sum_type(wb_sharing *s, wb_dtype dtype, bool is_cut, shared **bucket) {
    bucket_fn *sum = is_cut ? scatter_bucket : sum_bucket;
    int64_t count = 0, elements = 0, most = FIRST_ELEMENTS;
    for (int64_t i = TOTALS; i < s->count; i++) {
        if (s->items[i].is_integer || sent_as(s, &s->items[i]) != dtype) continue;
        if (s->items[i].is_cut != is_cut) continue;
        const int64_t more = wb_count(s->items[i].x);
        if (count && elements + more > most) {
            if (!sum(s, dtype, count, bucket)) return false;
            count = elements = 0, most = BUCKET_ELEMENTS;
        }
        bucket[count++] = &s->items[i];
        elements += more;
    }
    return count == 0 || sum(s, dtype, count, bucket);
}

static bool sum_types(wb_sharing *s, shared **bucket) {
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_BF16};
    for (int is_cut = 0; is_cut < 2; is_cut++)
        for (int t = 0; t < 3; t++)
            if (!sum_type(s, types[t], is_cut, bucket)) return false;
    return true;
}

static bool sum_over_ranks(wb_sharing *s) {
    shared **bucket = wb_alloc(sizeof *bucket * (size_t)(s->count + 1));
    s->pieces = wb_alloc(sizeof *s->pieces * (size_t)(s->count + TOTALS));
    const bool done = bucket && s->pieces && sum_types(s, bucket);
    wb_release(bucket);
    wb_release(s->pieces);
    return done;
}

/* ---- lists ---- */

typedef struct state_collector {
    wb_visitor visitor;
    wb_sharing *sharing;
    wb_optimiser *optimiser;
} state_collector;

/* For a message, if other ranks write others. */
static bool note_written(wb_optimiser *o, wb_array **slot) {
    if (!WB_GROW(o->written, o->written_count, o->written_room)) return false;
    o->written[o->written_count++] = slot;
    return true;
}

/* Adds states that layers wrote in this step, such as BatchNorm's running statistics. */
static bool collect_state(wb_visitor *visitor, const wb_path *path, wb_array **slot,
                          bool trainable) {
    char text[WB_PATH_BYTES];
    if (!wb_state_is_written(slot)) return true;
    if (trainable) {
        wb_path_text(path, text, sizeof text);
        return wb_fail(WB_ERROR_ARGUMENT,
                       "the loss function set %s, a parameter: each part of a step "
                       "(.micro_batches, .distributed) would set it differently",
                       text) == WB_OK;
    }
    const state_collector *c = (state_collector *)(void *)visitor;
    wb_sharing *s = c->sharing;
    if (!note_written(c->optimiser, slot)) return false;
    if (!wb_dtype_is_float((wb_dtype)(*slot)->dtype)) return add_integers(s, slot);
    return add(s, &(shared){.x = *slot, .slot = slot, .by = BY_OBSERVATIONS});
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
    hash = mix(hash, &o->micro_batches, sizeof o->micro_batches);
    hash = mix(hash, &o->is_divided, sizeof o->is_divided);
    hash = mix(hash, &o->send, sizeof o->send);
    hash = mix(hash, &o->may_miss, sizeof o->may_miss);
    hash = mix(hash, &o->compute, sizeof o->compute);
    for (int64_t c = 0; c < o->cohort_count; c++) hash += terms_of_cohort(o, c);
    return (int64_t)(hash >> 1) | 1;
}

/* The lists are the same in all parts of a step. */
static bool list_all(wb_sharing *s, wb_optimiser *o, const wb_gradients *g) {
    wb_array *own = wb_gradients_watched(g);
    state_collector states = {.visitor = {.array = collect_state}, .sharing = s, .optimiser = o};
    o->written_count = 0;
    bool done = begin(s, g) && own &&
                add(s, &(shared){.x = own, .mean = &o->mean_watched, .by = BY_WEIGHT});
    if (g->loss && g->loss != own)
        done = done && add(s, &(shared){.x = g->loss, .mean = &o->mean_loss, .by = BY_WEIGHT});
    done = done && wb_visit(&states.visitor, o->model);
    for (int64_t i = o->group_count - 1; done && i >= 0; i--) {
        wb_array **sum = &o->sums[i];
        shared item = {.x = *sum, .mean = sum, .by = BY_WEIGHT, .weighting = g->weighting};
        item.is_gradient = true;
        item.is_cut = wb_sums_are_cut(o) && o->groups[i].division == WB_DIVIDED_CUT;
        if (*sum) done = add(s, &item);
    }
    return done;
}

static wb_array *hand_over_means(wb_optimiser *o, const wb_sharing *s) {
    o->mean_loss = o->mean_watched = NULL;
    if (!put_means(s)) return NULL;
    if (!o->mean_loss) o->mean_loss = o->mean_watched;
    return o->mean_watched;
}

wb_array *wb_mean_over_ranks(wb_optimiser *o, const wb_gradients *g) {
    wb_sharing s = {.send = o->send, .terms = terms_of(o)};
    const bool done =
        list_all(&s, o, g) && join_integers(&s) && all_agree(&s, o->model) && sum_over_ranks(&s);
    wb_array *watched = done ? hand_over_means(o, &s) : NULL;
    o->mean_divisor = s.totals[BY_WEIGHT];
    wb_release(s.items);
    return watched;
}

/* ---- parts, one after another ---- */

static void drop_newest(wb_optimiser *o) {
    wb_partial *p = &o->partials[--o->partial_count];
    for (int64_t i = 0; i < p->count; i++) wb_unhold(p->arrays[i]);
    wb_release(p->arrays);
}

void wb_parts_drop(wb_optimiser *o) {
    while (o->partial_count > 0) drop_newest(o);
    if (o->sharing) wb_release(o->sharing->items);
    wb_release(o->sharing);
    o->sharing = NULL;
    wb_hidden_drop(o);
}

static bool reserve(wb_optimiser *o, int64_t count) {
    if (count <= o->root_room) return true;
    wb_array **roots = wb_resize(o->roots, (size_t)count * sizeof *roots);
    if (roots) o->roots = roots, o->root_room = count;
    return roots != NULL;
}

/* Computes the first roots of the optimiser, closes their scope, and keeps the roots that are sums
 * over some parts. */
static wb_status keep(wb_optimiser *o, int64_t roots, int64_t parts) {
    const int64_t count = o->sharing->count;
    wb_status status = wb_scope_close_leaving((int)roots, o->roots);
    if (status == WB_OK) status = wb_evaluate_roots((int)roots, o->roots);
    if (status != WB_OK) return status;
    wb_array **arrays = wb_alloc((size_t)count * sizeof *arrays);
    if (!arrays) return WB_ERROR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        arrays[i] = wb_hold(o->roots[i]);
        if (wb_is_evaluated(arrays[i])) wb_node_detach(arrays[i]);
    }
    o->partials[o->partial_count++] = (wb_partial){arrays, count, parts};
    return WB_OK;
}

static bool list_part(wb_optimiser *o, const wb_gradients *g) {
    if (!o->sharing && !(o->sharing = wb_alloc(sizeof *o->sharing))) return false;
    wb_sharing *s = o->sharing;
    s->count = 0, s->terms = terms_of(o), s->send = o->send;
    for (int t = 0; t < TOTALS; t++) s->totals[t] = NULL;
    if (!list_all(s, o, g) || !reserve(o, s->count + WB_AUX + wb_hidden_to_keep(o, NULL)))
        return false;
    for (int64_t i = 0; i < s->count; i++) o->roots[i] = s->items[i].x;
    for (int i = 0; i < g->aux.count; i++) o->roots[s->count + i] = g->aux.items[i].x;
    return true;
}

wb_status wb_part_keep(wb_optimiser *o, const wb_gradients *g) {
    if (!list_part(o, g)) {
        (void)wb_scope_leave();
        return wb_error_status();
    }
    const int64_t count = o->sharing->count + g->aux.count;
    const wb_status status = keep(o, count + wb_hidden_to_keep(o, o->roots + count), 1);
    if (status == WB_OK) wb_hidden_keep(o);
    return status;
}

/* The newest two sums become one, which takes over their memory. */
static bool add_two(wb_optimiser *o) {
    const wb_partial *newer = &o->partials[o->partial_count - 1], *older = newer - 1;
    bool fits = newer->count == older->count;
    for (int64_t i = 0; i < newer->count && fits; i++) {
        fits = wb_same_sizes(older->arrays[i], newer->arrays[i]);
        wb_array *a = older->arrays[i], *b = newer->arrays[i];
        if (fits && !(o->roots[i] = o->sharing->items[i].is_integer ? MAX(a, b) : ADD(a, b)))
            return false;
    }
    if (fits) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "wb_train_step: a loss must have gradients of the same arrays, and write the "
                  "same states, in all micro-batches of a step");
    return false;
}

/* In two scopes, as every part: the inner one ends what the sums are made of, the outer one what
 * was computed. */
static wb_status join_two(wb_optimiser *o) {
    const int64_t parts =
        o->partials[o->partial_count - 1].parts + o->partials[o->partial_count - 2].parts;
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    wb_status status = wb_scope_begin() ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK && !add_two(o)) {
        status = wb_error_status();
        (void)wb_scope_leave();
    } else if (status == WB_OK) {
        drop_newest(o), drop_newest(o);
        status = keep(o, o->sharing->count, parts);
    }
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

wb_status wb_parts_join(wb_optimiser *o, bool all) {
    wb_status status = WB_OK;
    while (status == WB_OK && o->partial_count > 1) {
        const wb_partial *newest = &o->partials[o->partial_count - 1];
        if (!all && newest->parts != newest[-1].parts) break;
        status = join_two(o);
    }
    return status;
}

static void take_sums(const wb_optimiser *o) {
    const wb_partial *sums = &o->partials[o->partial_count - 1];
    for (int64_t i = 0; i < sums->count; i++) o->sharing->items[i].x = sums->arrays[i];
}

static wb_status sum_parts_over_ranks(wb_optimiser *o) {
    wb_sharing *s = o->sharing;
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    take_sums(o);
    if (!join_integers(s) || !sum_over_ranks(s)) {
        (void)wb_scope_leave();
        return wb_error_status();
    }
    for (int64_t i = TOTALS; i < s->count; i++) o->roots[i] = s->items[i].x;
    for (int t = 0; t < TOTALS; t++)
        o->roots[t] = wb_cast(s->totals[t], (wb_dtype)s->items[t].x->dtype);
    drop_newest(o);
    return keep(o, s->count, 1);
}

wb_status wb_parts_sum(wb_optimiser *o) {
    wb_status status = wb_parts_join(o, true);
    if (status != WB_OK || !o->is_distributed) return status;
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    status = sum_parts_over_ranks(o);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

wb_array *wb_mean_of_parts(wb_optimiser *o) {
    const wb_sharing *s = o->sharing;
    take_sums(o);
    if (!all_agree(s, o->model)) return NULL;
    o->mean_divisor = wb_scope_add(s->items[BY_WEIGHT].x);
    for (int64_t i = TOTALS; i < s->count; i++) {
        shared *item = &s->items[i];
        if (!item->is_integer)
            item->total = wb_cast(s->items[item->by].x, (wb_dtype)item->x->dtype);
        item->x = wb_scope_add(item->x); /* a sum may be the mean itself */
    }
    wb_array *watched = hand_over_means(o, s);
    drop_newest(o);
    return watched;
}
