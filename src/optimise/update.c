/* One step: new parameters and state as recipes, computed together with loss and gradients in one
 * plan. */
#include "array/state.h"
#include "ops/step.h"

#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "ops/ops.h"
#include "optimise/compare.h"
#include "optimise/distributed.h"
#include "optimise/guard.h"
#include "optimise/mean.h"
#include "optimise/parts.h"
#include "optimise/renew.h"
#include "optimise/shard.h"
#include "ranks/ranks.h"

/* ---- checks ---- */

static bool same_slots(const wb_optimiser *o, const wb_gradients *g) {
    if (o->member_count != g->count) return false;
    for (int64_t i = 0; i < g->count; i++)
        if (o->members[i].slot != g->slots[i]) return false;
    return true;
}

/* Values that the loss has set are pending, and computed with the step; they may end a tie. */
static bool unchanged(const wb_optimiser *o) {
    for (int64_t i = 0; i < o->group_count; i++) {
        const int64_t first = o->groups[i].first;
        const bool is_alone = o->members[first].next < 0;
        for (int64_t k = first; k >= 0; k = o->members[k].next) {
            const wb_member *m = &o->members[k];
            if (*m->slot != m->seen && !(is_alone && wb_state_is_written(m->slot))) return false;
        }
    }
    return true;
}

/* A loss function may not take a step of the optimiser that calls it. */
static bool is_between_steps(const char *function, const wb_optimiser *o) {
    if (!o->is_stepping) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: this optimiser is in the middle of a step: its loss function must not take "
                  "another one",
                  function);
    return false;
}

static wb_status check(const char *function, wb_optimiser *o, const wb_layer *model,
                       const wb_gradients *g) {
    if (wb_is_tracing(function)) return WB_ERROR_ARGUMENT;
    if (!wb_optimiser_check(function, o) || !wb_check_model(function, model) ||
        !wb_gradients_check(function, g))
        return WB_ERROR_ARGUMENT;
    if (o->model != model || g->model != model)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: the %s belong%s to another model", function,
                       o->model != model ? "optimiser" : "gradients", o->model != model ? "s" : "");
    const bool has_places = o->list_moves == wb_list_moves(); /* else some may be frozen by now */
    if (has_places && same_slots(o, g) && unchanged(o)) return WB_OK;
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

/* Scales all gradients so that their common norm is at most clip_norm; what is watched is then
 * finite if the norm is, too. */
static wb_array *clip(wb_optimiser *o, wb_array *watched) {
    wb_array *norm = wb_common_norm(o->group_count, o->sums);
    if (!norm) return watched;
    /* in a plan of its own, so that the sum is always rounded in the same way */
    if (o->sharing && wb_evaluate_roots(1, &norm) != WB_OK) return NULL;
    for (int64_t i = 0; i < o->group_count; i++)
        if (o->sums[i]) o->sums[i] = wb_shortened(o->sums[i], norm, wb_constant(o->clip_norm));
    return wb_add(watched, norm);
}

/* The norms that rules scale arrays by (wb_clip_norm) are watched, too. The list of roots is not
 * yet in use. */
static wb_array *watch_clipped(wb_optimiser *o, wb_array *watched) {
    int64_t count = 0;
    for (int64_t i = 0; i < o->group_count; i++)
        if (o->sums[i] && wb_rule_clips_norm(wb_group_rule(o, &o->groups[i])))
            o->roots[count++] = o->sums[i];
    wb_array *norm = wb_common_norm(count, o->roots);
    return norm ? wb_add(watched, wb_cast(norm, (wb_dtype)watched->dtype)) : watched;
}

/* ---- cohorts ---- */

/* Groups of a cohort without a gradient become a cohort of their own, which does not count this
 * step. */
static bool split(wb_optimiser *o, int64_t cohort, int64_t taking_part) {
    if (taking_part > 0) {
        if (!WB_GROW(o->cohorts, o->cohort_count, o->cohort_capacity)) return false;
        o->cohorts[o->cohort_count] = (wb_cohort){.rule = o->cohorts[cohort].rule,
                                                  .count = wb_hold(o->cohorts[cohort].count)};
        for (int64_t i = 0; i < o->group_count; i++)
            if (o->groups[i].cohort == cohort && !o->sums[i]) o->groups[i].cohort = o->cohort_count;
        cohort = o->cohort_count++;
    }
    wb_cohort *absent = &o->cohorts[cohort];
    if (!absent->count) absent->count = wb_hold(o->count);
    return true;
}

/* Splits cohorts so that either all groups of one have a gradient or none has. */
static bool split_cohorts(wb_optimiser *o) {
    for (int64_t c = o->cohort_count - 1; c >= 0; c--) {
        int64_t groups = 0, taking_part = 0;
        for (int64_t i = 0; i < o->group_count; i++) {
            if (o->groups[i].cohort != c) continue;
            groups++;
            taking_part += o->sums[i] != NULL;
        }
        o->cohorts[c].numbers = NULL, o->cohorts[c].fresh_count = NULL;
        if (taking_part < groups && !split(o, c, taking_part)) return false;
    }
    return true;
}

/* The numbers of a cohort's step, made when its first group needs them. */
static wb_array *numbers_of(wb_optimiser *o, wb_cohort *c, wb_array *watched) {
    if (c->numbers) return c->numbers;
    c->numbers = wb_step_numbers(&c->rule, watched, c->count ? c->count : o->count);
    if (c->count)
        c->fresh_count = wb_step_counted(c->numbers);
    else if (!o->fresh_count)
        o->fresh_count = wb_step_counted(c->numbers);
    return c->numbers;
}

static wb_status apply_rule(wb_optimiser *o, int64_t index, wb_array *watched) {
    const wb_tie_group *group = &o->groups[index];
    wb_cohort *cohort = &o->cohorts[group->cohort];
    wb_array *p = *o->members[group->first].slot, *g = o->sums[index];
    wb_array *out[1 + WB_RULE_ALL_STATES] = {NULL};
    if (group->states[0] && group->states[0]->device != p->device)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_update: a parameter %s is on %s, its state on %s; "
                       "wb_move(device, optimiser) moves both",
                       wb_text_of(p), wb_device_name(p->device),
                       wb_device_name(group->states[0]->device));
    wb_array *numbers = numbers_of(o, cohort, watched);
    if (!numbers) return wb_error_status();
    o->members[group->first].fresh = p;
    if (!wb_keeps_state(group)) return WB_OK; /* another rank takes the step */
    p = wb_part_of(group, p);
    if (!wb_sums_are_cut(o)) g = wb_part_of(group, g);
    if (!p || !g) return wb_error_status();
    int states = 0;
    while (states < WB_RULE_ALL_STATES && group->states[states]) states++;
    const wb_status status = wb_step_make(numbers, p, g, states, group->states, out);
    if (status == WB_OK && !out[0]) return wb_error_status();
    o->members[group->first].fresh = out[0];
    for (int k = 0; k < WB_RULE_ALL_STATES; k++)
        o->fresh_states[index * WB_RULE_ALL_STATES + k] = out[k + 1];
    return status;
}

/* Sets what the other members of a group will hold. */
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

/* The gradients of all groups. A first step without any gradient is probably a mistake. */
static wb_status sum_groups(wb_optimiser *o, const wb_gradients *g) {
    bool is_any = o->group_count == 0; /* wb_setup has warned */
    for (int64_t i = 0; i < o->group_count; i++) {
        const bool is_frozen = o->groups[i].is_frozen;
        o->sums[i] = is_frozen ? NULL : sum_of_group(o, g, &o->groups[i]);
        if (!o->sums[i] && wb_failed()) return wb_error_status();
        is_any = is_any || is_frozen || o->sums[i];
    }
    if (!is_any && o->step == 0)
        wb_log_line(WB_LOG_WARN, "the loss depends on no parameter of %s: nothing is trained",
                    o->model->class_->name);
    return WB_OK;
}

/* A count on the device where the loss is computed. If only the model was moved, the count is still
 * on the old device; a rule without states does not mind. One that was lost in a device error
 * starts from the steps made. */
static bool bring_count(const wb_optimiser *o, const wb_device *device, wb_array **count) {
    const bool is_lost = wb_is_lost(*count);
    if (!is_lost && (*count)->device == device) return true;
    wb_array *here = is_lost ? wb_optimiser_new_count(o->step, NULL) : wb_move_node(device, *count);
    if (!here) return false;
    here->device = device;
    if (wb_evaluate_roots(1, &here) != WB_OK) return false;
    wb_unhold(*count);
    *count = wb_hold(here);
    return true;
}

static bool bring_counts(wb_optimiser *o, const wb_device *device) {
    bool good = bring_count(o, device, &o->count);
    for (int64_t i = 0; i < o->cohort_count && good; i++)
        good = !o->cohorts[i].count || bring_count(o, device, &o->cohorts[i].count);
    return good;
}

/* If only the model was moved, the scale is still on the old device; a scale that was lost begins
 * again. */
static bool bring_scale(wb_optimiser *o, const wb_device *device) {
    if (!o->scale) return true;
    const bool is_lost = wb_is_lost(o->scale) || wb_is_lost(o->streak);
    if (!is_lost && o->scale->device == device) return true;
    wb_array *here[2] = {
        is_lost ? wb_scalar(WB_F32, o->first_scale) : wb_move_node(device, o->scale),
        is_lost ? wb_optimiser_new_count(0, NULL) : wb_move_node(device, o->streak)};
    if (!here[0] || !here[1]) return false;
    here[0]->device = here[1]->device = device;
    if (wb_evaluate_roots(2, here) != WB_OK) return false;
    wb_optimiser_set_scale(o, here[0], here[1]);
    return true;
}

bool wb_optimiser_precision(wb_optimiser *o, wb_precision *precision) {
    const wb_device *device = o->member_count ? (*o->members[0].slot)->device : NULL;
    if (device && !bring_scale(o, device)) return false;
    *precision = (wb_precision){.compute = o->compute, .scale = o->scale};
    return true;
}

/* A parameter that the loss has set must not be moved by the step, too: one of the two new values
 * would be lost. */
static bool is_set_by_loss(const wb_optimiser *o, const wb_tie_group *group) {
    char path[WB_PATH_BYTES];
    for (int64_t i = group->first; i >= 0; i = o->members[i].next) {
        if (!wb_state_is_written(o->members[i].slot)) continue;
        wb_slot_path(o->model, o->members[i].slot, path);
        (void)wb_fail(
            WB_ERROR_ARGUMENT,
            "the loss function set %s, a parameter that has a gradient: a step would move "
            "it, too; set it from other arrays, or freeze it (wb_freeze)",
            path);
        return true;
    }
    return false;
}

/* The step of each group, and the number of steps, which counts where no group does. */
static wb_status build_steps(wb_optimiser *o, wb_array *watched) {
    if (watched->device && !bring_counts(o, watched->device)) return wb_error_status();
    if (!split_cohorts(o)) return WB_ERROR_MEMORY;
    const bool any_written = wb_state_is_any_written();
    o->fresh_count = NULL;
    for (int64_t i = 0; i < o->group_count; i++) {
        o->members[o->groups[i].first].fresh = NULL;
        if (!o->sums[i]) continue;
        if (any_written && is_set_by_loss(o, &o->groups[i])) return WB_ERROR_ARGUMENT;
        const wb_status status = apply_rule(o, i, watched);
        if (status != WB_OK) return status;
    }
    if (o->is_divided && !wb_join_parts(o, watched)) return wb_error_status();
    for (int64_t i = 0; i < o->group_count; i++) {
        const wb_status status = o->sums[i] ? spread(o, &o->groups[i]) : WB_OK;
        if (status != WB_OK) return status;
    }
    if (!o->fresh_count)
        o->fresh_count = wb_step_counted(wb_step_numbers(&o->rule, watched, o->count));
    if (!wb_optimiser_next_scale(o, watched)) return wb_error_status();
    return o->fresh_count ? WB_OK : wb_error_status();
}

/* Builds all recipes from the gradients or, if there are micro-batches, from their sums; changes no
 * slot. */
static wb_status build(wb_optimiser *o, const wb_gradients *g) {
    wb_array *watched;
    if (o->sharing) {
        watched = wb_hidden_join(o) ? wb_mean_of_parts(o) : NULL;
    } else {
        if (sum_groups(o, g) != WB_OK || !wb_fill_missing(o)) return wb_error_status();
        watched = o->is_distributed ? wb_mean_over_ranks(o, g) : wb_gradients_watched(g);
    }
    if (watched) watched = watch_clipped(o, watched);
    if (watched && o->clip_norm > 0) watched = clip(o, watched);
    if (!watched || build_steps(o, watched) != WB_OK) return wb_error_status();
    if (!wb_guard_states(watched, &o->rest)) return wb_error_status();
    o->watched = o->rest ? watched : NULL;
    return WB_OK;
}

/* ---- the roots ---- */

/* Adds the number that the guard of states watches to the roots, if no step computes it. */
static int list_watched(const wb_optimiser *o, const wb_gradients *g, wb_array **root) {
    if (!o->watched || o->watched == wb_gradients_watched(g)) return 0;
    *root = o->watched;
    return 1;
}

/* Everything that the step computes: all in one plan. */
static int list_roots(const wb_optimiser *o, const wb_gradients *g, int count) {
    for (int64_t k = g->distinct - 1; k >= 0; k--)
        if (g->values[k]) o->roots[count++] = g->values[k];
    count += wb_gradients_list_loss(g, o->roots + count);
    count += list_watched(o, g, o->roots + count);
    return count + wb_state_pending((int)(o->root_room - count), o->roots + count);
}

/* Room for all roots of the step; layers' state writes, as many as there are, are computed with the
 * rest. */
static bool reserve_roots(wb_optimiser *o) {
    const int64_t wanted = 2 * o->member_count + WB_RULE_ALL_STATES * o->group_count +
                           o->cohort_count + 4 + WB_OF_LOSS + wb_state_pending(0, NULL);
    if (wanted <= o->root_room) return true;
    wb_array **roots = wb_resize(o->roots, (size_t)wanted * sizeof *roots);
    if (!roots) return false;
    o->roots = roots, o->root_room = wanted;
    return true;
}

/* ---- the whole ---- */

static void count_step(wb_optimiser *o) {
    for (int64_t i = 0; i < o->member_count; i++) o->members[i].seen = *o->members[i].slot;
    o->step++;
    wb_optimiser_takes_turn(o);
}

static wb_status abandon(wb_status status) {
    (void)wb_scope_leave();
    return status;
}

/* The same, with what the loss has written. */
static wb_status abandon_all(wb_status status) {
    wb_state_undo();
    return abandon(status);
}

/* Computes a step whose scope was closed: only the plan's roots are referred to then, so that it
 * works in place. */
static wb_status compute(wb_optimiser *o, const wb_gradients *g, int settled) {
    if (!wb_renewals_keep_old(o) || !reserve_roots(o)) return wb_error_status();
    wb_renewals_swap(o);
    const wb_status status = wb_evaluate_roots(list_roots(o, g, settled), o->roots);
    if (status != WB_OK) {
        wb_renewals_swap(o);
        wb_state_undo();
        return status;
    }
    count_step(o);
    if (!o->sharing) wb_optimiser_hold_aux(o, g);
    wb_optimiser_hold_divisor(o, g);
    const wb_status guarded = wb_guard_rest(o->watched, o->rest);
    const wb_status settled_states = wb_state_settle(); /* which finds them computed */
    return guarded == WB_OK ? settled_states : guarded;
}

/* The divisor of the loss is that of all parts, and so a further root. Returns how many roots there
 * are. */
static int show_divisor(const wb_optimiser *o, wb_gradients *g, wb_array **root) {
    if (!wb_is_of_parts(o)) return 0;
    wb_gradients_put_divisor(g, o->mean_divisor);
    *root = g->divisor;
    return 1;
}

static wb_status run(wb_optimiser *o, wb_gradients *g) {
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    wb_status status = build(o, g);
    if (status == WB_OK && !reserve_roots(o)) status = WB_ERROR_MEMORY;
    if (status != WB_OK) return abandon_all(status);
    const int settled = wb_renewals_list(o);
    int left = settled + show_divisor(o, g, o->roots + settled);
    left += list_watched(o, g, o->roots + left);
    status = wb_scope_close_leaving(left, o->roots);
    return status == WB_OK ? compute(o, g, settled) : status;
}

/* The others wait for this rank's part of the step. */
static wb_status tell_ranks(wb_optimiser *o, wb_status status) {
    if (status == WB_OK || !o->is_distributed) return status;
    wb_explain_difference(o);
    wb_ranks_fail();
    return status;
}

wb_status wb_update(wb_optimiser *optimiser, wb_layer *model, wb_gradients *gradients) {
    wb_status status = check("wb_update", optimiser, model, gradients);
    if (status == WB_OK && !is_between_steps("wb_update", optimiser)) return WB_ERROR_ARGUMENT;
    if (status != WB_OK) return wb_is_optimiser(optimiser) ? tell_ranks(optimiser, status) : status;
    /* the recipes of the new arrays, which then only the slots hold */
    if (!wb_scope_begin()) return tell_ranks(optimiser, WB_ERROR_MEMORY);
    wb_error_aside older;
    wb_error_put_aside(&older);
    status = wb_compare_if_due(optimiser);
    if (status == WB_OK) status = run(optimiser, gradients);
    (void)tell_ranks(optimiser, status);
    wb_error_bring_back(&older);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

/* The loss of the step is the loss over all parts. */
static void show_mean(const wb_optimiser *o, wb_gradients *g) {
    wb_array *own = g->loss;
    g->loss = wb_ref(o->mean_loss);
    if (own) wb_unref(own);
}

/* A call of wb_train_step. */
typedef struct call {
    wb_loss_fn *loss;
    const wb_batch *batch;
    void *user;
} call;

/* The loss of a micro-batch, and its gradients. */
static wb_status make_part(wb_optimiser *o, wb_gradients *g, const call *c, int64_t number) {
    static const char function[] = "wb_train_step";
    wb_precision precision;
    wb_part part;
    const wb_batch *batch = o->micro_batches ? &part.batch : c->batch;
    /* before the loss, too: groups are made again with all arrays computed, states among them */
    const wb_status status = check(function, o, g->model, g);
    if (status != WB_OK) return status;
    const bool is_part = batch != c->batch;
    if (is_part && !(wb_micro_batch(o, c->batch, number, &part) && wb_hidden_give(o, &part)))
        return wb_error_status();
    if (!wb_optimiser_precision(o, &precision)) return wb_error_status();
    wb_weigh_by_count(o, c->batch, &precision);
    const wb_draws left = wb_draws_begin(o, c->batch, batch, number);
    wb_array *l = wb_gradients_make(function, g, c->loss, batch, c->user, &precision);
    wb_draws_end(o, left);
    if (!l || (is_part && !wb_hidden_take(o, &part))) return wb_error_status();
    return check(function, o, g->model, g);
}

/* States that layers write become part of the sums; the next part begins with the old states. */
static wb_status add_part(wb_optimiser *o, wb_gradients *g, const call *c, int64_t number) {
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    const int64_t states = wb_state_begin();
    wb_status status = make_part(o, g, c, number);
    if (status == WB_OK) status = sum_groups(o, g);
    status = status == WB_OK ? wb_part_keep(o, g) : abandon(status);
    wb_state_end(states, false);
    /* a short batch's last parts may have no observations */
    if (status == WB_OK && (g->observations > 0 || number == 0)) wb_optimiser_hold_aux(o, g);
    wb_gradients_clear(g);
    return status;
}

/* Computes each micro-batch in a scope that holds the only references to its gradients. */
static wb_status add_parts(wb_optimiser *o, wb_gradients *g, const call *c) {
    wb_status status = WB_OK;
    if (o->micro_batches && !wb_check_uncached(o)) return wb_error_status();
    const int64_t count = o->micro_batches ? wb_micro_batches_to_run(o, c->batch) : 0;
    for (int64_t i = 0; i < count && status == WB_OK; i++) {
        if (!wb_scope_begin()) return WB_ERROR_MEMORY;
        status = add_part(o, g, c, i);
        const wb_status closed = wb_scope_leave();
        if (status == WB_OK) status = closed;
        if (status == WB_OK) status = wb_parts_join(o, false);
    }
    return status == WB_OK && o->micro_batches ? wb_parts_sum(o) : status;
}

/* Makes the step, including the loss unless micro-batches have computed it; releases the gradients
 * as soon as the step is built. */
static wb_status run_whole(wb_optimiser *o, wb_gradients *g, const call *c) {
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    wb_status status = o->micro_batches ? WB_OK : make_part(o, g, c, 0);
    if (status == WB_OK) status = build(o, g);
    if (status == WB_OK && !reserve_roots(o)) status = WB_ERROR_MEMORY;
    if (status != WB_OK) return abandon_all(status);
    const int settled = wb_renewals_list(o);
    if (wb_is_of_parts(o)) show_mean(o, g);
    (void)show_divisor(o, g, o->roots + settled);
    wb_gradients_drop(g);
    int left = settled + wb_gradients_list_loss(g, o->roots + settled);
    left += list_watched(o, g, o->roots + left);
    status = wb_scope_close_leaving(left, o->roots);
    return status == WB_OK ? compute(o, g, settled) : status;
}

wb_array *wb_train_step(wb_loss_fn *loss, wb_layer *model, const wb_batch *batch, void *user,
                        wb_optimiser *optimiser) {
    if (!loss) return wb_fail_argument_null("wb_train_step", "the loss function");
    if (!wb_optimiser_check("wb_train_step", optimiser)) return NULL;
    if (!wb_check_model("wb_train_step", model)) return NULL;
    if (!is_between_steps("wb_train_step", optimiser)) return NULL;
    wb_gradients *g = wb_gradients_new(model);
    if (!g) {
        (void)tell_ranks(optimiser, wb_error_status());
        return NULL;
    }
    wb_error_aside older;
    wb_error_put_aside(&older);
    optimiser->is_stepping = true;
    wb_status status = wb_scope_begin() ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK) {
        const call c = {loss, batch, user};
        status = wb_optimiser_follow(optimiser);
        if (status == WB_OK) status = wb_compare_if_due(optimiser);
        if (status == WB_OK) status = add_parts(optimiser, g, &c);
        if (status == WB_OK) status = run_whole(optimiser, g, &c);
        wb_parts_drop(optimiser);
        (void)tell_ranks(optimiser, status);
        const wb_status closed = wb_scope_close_leaving(status == WB_OK, &g->loss);
        if (status == WB_OK) status = closed;
    }
    optimiser->is_stepping = false;
    wb_array *l = status == WB_OK ? g->loss : NULL;
    wb_error_bring_back(&older);
    wb_free(g);
    return l;
}
