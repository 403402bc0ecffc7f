/* One step: new parameters and state as recipes, computed together with loss and gradients in one
 * plan. */
#include "ops/update.h"
#include "array/state.h"

#include <math.h>

#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "optimise/optimiser.h"

/* ---- checks ---- */

static bool same_slots(const wb_optimiser *o, const wb_gradients *g) {
    if (o->member_count != g->count) return false;
    for (int64_t i = 0; i < g->count; i++)
        if (o->members[i].slot != g->slots[i]) return false;
    return true;
}

static bool unchanged(const wb_optimiser *o) {
    for (int64_t i = 0; i < o->member_count; i++)
        if (*o->members[i].slot != o->members[i].seen) return false;
    return true;
}

static wb_status check(const char *function, wb_optimiser *o, const wb_layer *model,
                       const wb_gradients *g) {
    if (!wb_optimiser_check(function, o) || !wb_check_layer(function, model) ||
        !wb_gradients_check(function, g))
        return WB_ERROR_ARGUMENT;
    if (o->model != model || g->model != model)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: the %s belong%s to another model", function,
                       o->model != model ? "optimiser" : "gradients", o->model != model ? "s" : "");
    if (same_slots(o, g) && unchanged(o)) return WB_OK;
    const wb_status status = wb_optimiser_group(o);
    if (status != WB_OK || same_slots(o, g)) return status;
    return wb_fail(WB_ERROR_ARGUMENT, "%s: the model has changed since its gradients were made",
                   function);
}

/* ---- the parts of a step ---- */

/* The sum of the gradients of a group's members, as the first one sees it; NULL: there is none. */
static wb_array *sum_of_group(const wb_optimiser *o, const wb_gradients *g,
                              const wb_tie_group *group) {
    const wb_array *first = *o->members[group->first].slot;
    wb_array *sum = wb_gradients_at(g, group->first);
    for (int64_t i = o->members[group->first].next; i >= 0; i = o->members[i].next) {
        wb_array *more = o->members[i].is_view ? wb_gradients_at(g, i) : NULL;
        if (!more) continue;
        more = wb_through_memory(*o->members[i].slot, more, first);
        sum = sum && more ? wb_add(sum, more) : more;
    }
    return sum;
}

/* True where x is neither infinite nor NaN. */
static wb_array *is_finite(wb_array *x) { return wb_eq(wb_sub(x, x), wb_number(0)); }

/* Scales all gradients so that their common norm is at most clip_norm; the guard then looks at the
 * norm, too. */
static wb_array *clip(wb_optimiser *o, wb_array *guard) {
    wb_array *squares = NULL;
    for (int64_t i = 0; i < o->group_count; i++) {
        wb_array *g = o->sums[i];
        if (!g) continue;
        if (g->dtype != WB_F64) g = wb_cast(g, WB_F32);
        wb_array *square = wb_sum(wb_square(g));
        squares = squares ? wb_add(squares, square) : square;
    }
    if (!squares) return guard;
    wb_array *norm = wb_sqrt(squares);
    wb_array *scale = wb_min(wb_number(1), wb_div(wb_number(o->clip_norm), norm));
    for (int64_t i = 0; i < o->group_count; i++)
        if (o->sums[i])
            o->sums[i] = wb_mul(o->sums[i], wb_cast(scale, (wb_dtype)o->sums[i]->dtype));
    wb_array *finite = is_finite(norm);
    return guard ? wb_and(guard, finite) : finite;
}

/* Sets the late numbers for a group's next step; groups in step share them. */
static bool set_rates(wb_optimiser *o, int64_t steps) {
    if (o->late_steps == steps) return true;
    const wb_rule *rule = &o->rule;
    const bool adam = rule->kind == WB_ADAM || rule->kind == WB_ADAMW;
    const double t = (double)steps;
    o->rate = wb_late(adam ? rule->eta / (1 - pow(rule->beta1, t)) : rule->eta);
    o->correction = adam ? wb_late(1 / (1 - pow(rule->beta2, t))) : NULL;
    o->decay = rule->kind == WB_ADAMW && rule->lambda > 0
                   ? wb_late(rule->decoupled ? rule->lambda : rule->eta * rule->lambda)
                   : NULL;
    o->late_steps = steps;
    return o->rate && (!adam || o->correction);
}

static wb_status apply_rule(wb_optimiser *o, int64_t index, wb_array *guard) {
    const wb_tie_group *group = &o->groups[index];
    wb_array *p = *o->members[group->first].slot, *g = o->sums[index], *out[3] = {NULL, NULL, NULL};
    if (group->states[0] && group->states[0]->device != p->device)
        return wb_fail(WB_ERROR_DEVICE,
                       "wb_update: a parameter %s is on %s, its state on %s; "
                       "wb_move(device, optimiser) moves both",
                       wb_text_of(p), wb_device_name(p->device),
                       wb_device_name(group->states[0]->device));
    if (!set_rates(o, group->steps + 1)) return WB_ERROR_MEMORY;
    wb_status status = WB_OK;
    if (o->rule.kind == WB_DESCENT) {
        status = wb_step_descent(p, g, o->rate, guard, out);
    } else if (o->rule.kind == WB_MOMENTUM) {
        status = wb_step_momentum(p, g, group->states[0], o->rule.rho, o->rate, guard, out);
    } else {
        const wb_adam_step step = {p,
                                   g,
                                   group->states[0],
                                   group->states[1],
                                   o->rule.beta1,
                                   o->rule.beta2,
                                   o->rule.epsilon,
                                   o->rate,
                                   o->correction,
                                   o->decay,
                                   guard};
        status = wb_step_adam(&step, out);
    }
    if (status == WB_OK && !out[0]) return wb_error_status();
    o->members[group->first].fresh = out[0];
    for (int k = 0; k < WB_MAX_STATES; k++) o->fresh_states[index * WB_MAX_STATES + k] = out[k + 1];
    return status;
}

/* What the other members of a group will hold. */
static wb_status spread(wb_optimiser *o, const wb_tie_group *group) {
    wb_array *fresh = o->members[group->first].fresh;
    const wb_array *first = *o->members[group->first].slot;
    for (int64_t i = o->members[group->first].next; i >= 0; i = o->members[i].next) {
        wb_member *m = &o->members[i];
        m->fresh = m->is_view ? wb_through_memory(first, fresh, *m->slot) : fresh;
        if (!m->fresh) return wb_error_status();
    }
    return WB_OK;
}

/* The gradients of all groups. A first step without any is hardly meant. */
static wb_status sum_groups(wb_optimiser *o, const wb_gradients *g) {
    bool is_any = o->group_count == 0; /* wb_setup has warned */
    for (int64_t i = 0; i < o->group_count; i++) {
        o->sums[i] = sum_of_group(o, g, &o->groups[i]);
        if (!o->sums[i] && wb_failed()) return wb_error_status();
        is_any = is_any || o->sums[i];
    }
    if (!is_any && o->step == 0)
        wb_log_line(WB_LOG_WARN, "the loss depends on no parameter of %s: nothing is trained",
                    o->model->class_->name);
    return WB_OK;
}

/* Builds all recipes; changes no slot. */
static wb_status build(wb_optimiser *o, const wb_gradients *g) {
    if (sum_groups(o, g) != WB_OK) return wb_error_status();
    wb_array *guard = g->loss ? is_finite(g->loss) : NULL;
    if (g->loss && !guard) return wb_error_status();
    if (guard && guard->ndim) guard = wb_reshape_make(guard, 0, NULL);
    if (o->clip_norm > 0) guard = clip(o, guard);
    o->late_steps = 0;
    for (int64_t i = 0; i < o->group_count; i++) {
        o->members[o->groups[i].first].fresh = NULL;
        if (!o->sums[i]) continue;
        wb_status status = apply_rule(o, i, guard);
        if (status == WB_OK) status = spread(o, &o->groups[i]);
        if (status != WB_OK) return status;
    }
    return WB_OK;
}

/* ---- the exchange ---- */

static void exchange(wb_array **slot, wb_array **other) {
    wb_array *old = *slot;
    *slot = wb_hold(*other);
    wb_unhold(old); /* lives on: an input of the new one's recipe, or kept by keep_views */
    *other = old;
}

/* The scope keeps old views, which are no inputs of the new ones, should the step be taken back. */
static bool keep_views(const wb_optimiser *o) {
    for (int64_t i = 0; i < o->member_count; i++)
        if (o->members[i].is_view && !wb_scope_add(*o->members[i].slot)) return false;
    return true;
}

/* Exchanges what slots and states hold with what is fresh; calling it again takes that back. */
static void swap(wb_optimiser *o) {
    for (int64_t i = 0; i < o->group_count; i++) {
        if (!o->sums[i]) continue;
        wb_tie_group *group = &o->groups[i];
        for (int64_t k = group->first; k >= 0; k = o->members[k].next)
            exchange(o->members[k].slot, &o->members[k].fresh);
        for (int k = 0; k < wb_rule_states(&o->rule); k++)
            exchange(&group->states[k], &o->fresh_states[i * WB_MAX_STATES + k]);
    }
}

/* What the slots will hold, flagged as data of their own; how many. */
static int list_settled(const wb_optimiser *o) {
    int count = 0;
    for (int64_t i = 0; i < o->group_count; i++) {
        if (!o->sums[i]) continue;
        const wb_tie_group *group = &o->groups[i];
        for (int64_t k = group->first; k >= 0; k = o->members[k].next)
            if (k == group->first || o->members[k].is_view) o->roots[count++] = o->members[k].fresh;
        for (int k = 0; k < wb_rule_states(&o->rule); k++)
            o->roots[count++] = o->fresh_states[i * WB_MAX_STATES + k];
    }
    for (int i = 0; i < count; i++) o->roots[i]->flags |= WB_NODE_SETTLED;
    return count;
}

/* Everything that the step computes: all in one plan. */
static int list_roots(const wb_optimiser *o, const wb_gradients *g, int count) {
    for (int64_t k = 0; k < g->distinct; k++)
        if (g->values[k]) o->roots[count++] = g->values[k];
    if (g->loss) o->roots[count++] = g->loss;
    return count + wb_state_pending(o->state_room, o->roots + count);
}

/* Layers' state writes, as many as there are, are computed with the rest. */
static bool reserve_states(wb_optimiser *o) {
    const int states = wb_state_pending(0, NULL);
    if (states <= o->state_room) return true;
    wb_array **roots = wb_resize(o->roots, (size_t)(o->root_room + states) * sizeof *roots);
    if (!roots) return false;
    o->roots = roots, o->state_room = states;
    return true;
}

static void count_step(wb_optimiser *o) {
    for (int64_t i = 0; i < o->group_count; i++)
        if (o->sums[i]) o->groups[i].steps++;
    for (int64_t i = 0; i < o->member_count; i++) o->members[i].seen = *o->members[i].slot;
    o->step++;
}

static wb_status abandon(wb_status status) {
    (void)wb_scope_close_leaving(0, NULL);
    return status;
}

/* Closes the scope in which the step was built, so that only the plan's roots are referred to and
 * it may work in place; and computes it. */
static wb_status compute(wb_optimiser *o, const wb_gradients *g, int settled, int leaving) {
    const wb_status closed = wb_scope_close_leaving(leaving, o->roots);
    if (closed != WB_OK || !keep_views(o) || !reserve_states(o)) return wb_error_status();
    swap(o);
    const wb_status status = wb_evaluate(list_roots(o, g, settled), o->roots);
    if (status != WB_OK) {
        swap(o);
        wb_state_undo();
        return status;
    }
    count_step(o);
    return wb_state_settle(); /* which finds them computed */
}

static wb_status run(wb_optimiser *o, const wb_gradients *g) {
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    const wb_status status = build(o, g);
    if (status != WB_OK) return abandon(status);
    const int settled = list_settled(o);
    return compute(o, g, settled, settled);
}

wb_status wb_update(wb_optimiser *optimiser, wb_layer *model, wb_gradients *gradients) {
    wb_status status = check("wb_update", optimiser, model, gradients);
    if (status != WB_OK) return status;
    if (!wb_scope_begin())
        return WB_ERROR_MEMORY; /* of the new arrays, which then belong to the slots alone */
    wb_error_aside older;
    wb_error_put_aside(&older);
    status = run(optimiser, gradients);
    wb_error_bring_back(&older);
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    return status == WB_OK ? closed : status;
}

/* From the loss on; the gradients are dropped as soon as the step is built of them. */
static wb_status run_whole(wb_optimiser *o, wb_gradients *g, wb_loss_fn *loss,
                           const wb_batch *batch, void *user) {
    static const char function[] = "wb_train_step";
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    wb_array *l = wb_gradients_make(function, g, loss, batch, user);
    wb_status status = l ? check(function, o, g->model, g) : wb_error_status();
    if (status == WB_OK) status = build(o, g);
    if (status != WB_OK) return abandon(status);
    const int settled = list_settled(o);
    o->roots[settled] = l;
    wb_gradients_drop(g);
    return compute(o, g, settled, settled + 1);
}

wb_array *wb_train_step(wb_loss_fn *loss, wb_layer *model, const wb_batch *batch, void *user,
                        wb_optimiser *optimiser) {
    if (!loss) return wb_fail_argument_null("wb_train_step", "the loss function");
    if (!wb_optimiser_check("wb_train_step", optimiser)) return NULL;
    if (!wb_check_layer("wb_train_step", model)) return NULL;
    wb_gradients *g = wb_gradients_new(model);
    if (!g) return NULL;
    wb_error_aside older;
    wb_error_put_aside(&older);
    wb_status status = wb_scope_begin() ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK) {
        status = run_whole(optimiser, g, loss, batch, user);
        const wb_status closed = wb_scope_close_leaving(status == WB_OK, &g->loss);
        if (status == WB_OK) status = closed;
    }
    wb_array *l = status == WB_OK ? g->loss : NULL;
    wb_error_bring_back(&older);
    wb_free(g);
    return l;
}
