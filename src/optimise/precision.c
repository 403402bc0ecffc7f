/* Losses computed in halves, and losses that are scaled so that gradients in f16 do not vanish. */
#include <weber/distributed.h>

#include "ops/build.h"
#include "optimise/optimiser.h"

enum { LARGEST_SCALE = 1 << 24 };

/* ---- parameters in halves, while a loss is built ---- */

static bool make_casts(wb_gradients *g, wb_dtype compute) {
    bool good = true;
    for (int64_t k = 0; k < g->distinct; k++) {
        wb_array *x = g->arrays[k];
        const bool is_cast = good && compute != WB_F32 && x->dtype == WB_F32;
        g->leaving[k] = is_cast ? wb_hold(wb_cast(x, compute)) : NULL;
        good = good && (g->leaving[k] || !is_cast);
    }
    return good;
}

/* Slots hold the casts; the old arrays are still held. */
static void put_casts_in(wb_gradients *g) {
    for (int64_t i = 0; i < g->count; i++) {
        wb_array *cast = g->leaving[g->array_of[i]];
        if (cast) *g->slots[i] = wb_hold(cast);
    }
}

static void take_casts_out(wb_gradients *g) {
    for (int64_t i = 0; i < g->count; i++) {
        wb_array *cast = g->leaving[g->array_of[i]], *x = g->arrays[g->array_of[i]];
        if (!cast) continue;
        if (*g->slots[i] == cast) {
            *g->slots[i] = x;
            wb_unhold(cast);
        } else /* the loss has put another one in */
            wb_unhold(x);
    }
}

wb_array *wb_precision_call(const wb_precision *p, wb_gradients *g, wb_loss_fn *loss,
                            const wb_batch *batch, void *user) {
    if (!p || p->compute == WB_F32) return loss(g->model, batch, user);
    wb_array *l = NULL;
    const bool made = make_casts(g, p->compute);
    if (made) {
        put_casts_in(g);
        l = loss(g->model, batch, user);
        take_casts_out(g);
    }
    for (int64_t k = 0; k < g->distinct; k++) wb_unhold(g->leaving[k]);
    if (!l || !wb_is_half(l->dtype)) return l;
    const bool was_wide = l->op == WB_OP_cast && l->inputs[0]->dtype == WB_F32;
    return was_wide ? l->inputs[0] : wb_cast(l, WB_F32); /* losses are computed in f32 */
}

/* ---- the scale and the weight ---- */

static wb_array *divided(wb_array *x, wb_array *by) {
    return DIV(x, SELECT(EQ(by, NUM(0)), NUM(1), by));
}

/* An estimate of the total weight of all parts, the same on all ranks: the number of observations,
 * if it is known before the other parts are computed; else as if all parts weighed as much as this
 * one. */
static wb_array *weights_of_all(const wb_precision *p, const wb_gradients *g, wb_array *weight) {
    wb_array *own = weight;
    if (p->parts && g->divisor) own = MUL(weight, NUM((double)p->parts));
    if (p->parts && !g->divisor) own = wb_late((double)p->of_all);
    own = wb_cast(own, (wb_dtype)weight->dtype);
    return p->is_distributed ? wb_allreduce(own, WB_REDUCE_SUM) : own;
}

/* The factor of a part's loss: its weight, or its share in the weights of all ranks. If gradients
 * times a weight would overflow f16, an estimate of its share in all parts; the rest is multiplied
 * later. */
static wb_array *factor_of(wb_precision *p, const wb_gradients *g, wb_dtype dtype) {
    wb_array *weight = wb_cast(wb_gradients_weight(g), dtype);
    if (!weight || (p->weighting == WB_WEIGHTED_BY_COUNT && !p->parts)) return weight;
    wb_array *all = weights_of_all(p, g, weight);
    if (p->weighting == WB_WEIGHTED_BY_COUNT) p->reference = all;
    return divided(weight, all);
}

wb_array *wb_precision_scaled(wb_precision *p, const wb_gradients *g, wb_array *l) {
    if (!p || (!p->scale && p->weighting == WB_WEIGHTED_NOT)) return l;
    if (wb_is_half(l->dtype)) l = wb_cast(l, WB_F32);
    if (l && p->weighting != WB_WEIGHTED_NOT) l = MUL(l, factor_of(p, g, (wb_dtype)l->dtype));
    return l && p->scale ? MUL(l, wb_cast(p->scale, (wb_dtype)l->dtype)) : l;
}

static wb_array *wide(wb_array *x) { return wb_is_half(x->dtype) ? wb_cast(x, WB_F32) : x; }

/* 0, or NaN where an element of a gradient is not finite. */
static wb_array *fault_of_all(const wb_gradients *g) {
    wb_array *fault = wb_scalar(WB_F32, 0);
    for (int64_t k = 0; k < g->distinct; k++) {
        wb_array *x = g->values[k] ? wide(g->values[k]) : NULL;
        if (x) fault = ADD(fault, wb_cast(wb_sum(SUB(x, x)), WB_F32));
    }
    return wb_failed() ? NULL : fault;
}

static bool multiply(wb_gradients *g, wb_array *factor) {
    for (int64_t k = 0; k < g->distinct && factor; k++) {
        wb_array *x = g->values[k] ? wide(g->values[k]) : NULL;
        if (!x) continue;
        x = MUL(x, wb_cast(factor, (wb_dtype)x->dtype));
        if (!x) return false;
        wb_gradients_put(g, k, x);
    }
    return factor != NULL;
}

/* The factor includes the check for non-finite gradients. So each step waits for the sums over all
 * gradients, and no part of it is fused with these sums and stored. */
bool wb_precision_unscale(const wb_precision *p, wb_gradients *g) {
    if (!p || (!p->scale && !p->reference)) return true;
    if (!p->scale) return multiply(g, p->reference);
    wb_array *fault = fault_of_all(g), *factor = fault ? ADD(DIV(NUM(1), p->scale), fault) : NULL;
    if (factor && p->reference) factor = MUL(factor, p->reference);
    wb_array *watched = factor ? ADD(wide(g->loss), fault) : NULL;
    if (!watched || !multiply(g, factor)) return false;
    wb_gradients_watch(g, watched);
    return true;
}

/* ---- the scale from step to step ---- */

bool wb_optimiser_next_scale(wb_optimiser *o, wb_array *watched) {
    if (!o->scale) return true;
    if (watched->ndim > 0) watched = wb_reshape_make(watched, 0, NULL);
    wb_array *good = watched ? EQ(SUB(watched, watched), NUM(0)) : NULL;
    wb_array *streak = ADD(o->streak, NUM(1));
    wb_array *grows = GE(streak, NUM((double)o->scale_interval));
    wb_array *more = MIN(MUL(o->scale, NUM(2)), NUM(LARGEST_SCALE));
    wb_array *less = MAX(MUL(o->scale, NUM(0.5)), NUM(1));
    o->fresh_scale = SELECT(good, SELECT(grows, more, o->scale), less);
    o->fresh_streak = wb_cast(SELECT(AND(good, wb_not(grows)), streak, NUM(0)), WB_I32);
    return o->fresh_scale && o->fresh_streak;
}

wb_array *wb_loss_scale(wb_optimiser *optimiser) {
    if (!wb_optimiser_check("wb_loss_scale", optimiser)) return NULL;
    return optimiser->scale ? wb_scope_add(optimiser->scale) : NULL;
}
