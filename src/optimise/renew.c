/* The arrays that a step replaces: parameters, states and counts, each a slot with its new
 * value. */
#include "optimise/renew.h"
#include "array/state.h"

static void exchange(wb_array **slot, wb_array **other) {
    wb_array *old =
        *slot; /* lives on: an input of the new one's recipe, or kept by wb_renewals_keep_old */
    wb_slot_put(slot, *other);
    *other = old;
}

bool wb_renewals_keep_old(const wb_optimiser *o) {
    if (!wb_scope_add(o->count)) return false;
    if (o->scale && (!wb_scope_add(o->scale) || !wb_scope_add(o->streak))) return false;
    for (int64_t i = 0; i < o->cohort_count; i++)
        if (o->cohorts[i].fresh_count && !wb_scope_add(o->cohorts[i].count)) return false;
    for (int64_t i = 0; i < o->member_count; i++)
        if (o->members[i].is_view && !wb_scope_add(*o->members[i].slot)) return false;
    return true;
}

/* Calls tell for each slot that the step renews, with its new array. The last groups come first, as
 * in the backward pass: the plan follows the order of its roots, so it can release what is kept for
 * one layer before it comes to the next. */
typedef void renewal_fn(wb_optimiser *o, wb_array **slot, wb_array **fresh);

static void each_parameter_and_state(wb_optimiser *o, renewal_fn *tell) {
    for (int64_t i = o->group_count - 1; i >= 0; i--) {
        wb_tie_group *group = &o->groups[i];
        wb_array **fresh = o->fresh_states + i * WB_RULE_ALL_STATES;
        if (!o->sums[i]) continue;
        for (int64_t k = group->first; k >= 0; k = o->members[k].next)
            tell(o, o->members[k].slot, &o->members[k].fresh);
        for (int k = 0; k < WB_RULE_ALL_STATES && group->states[k]; k++)
            tell(o, &group->states[k], &fresh[k]);
    }
}

static void each_count(wb_optimiser *o, renewal_fn *tell) {
    for (int64_t i = 0; i < o->cohort_count; i++)
        if (o->cohorts[i].fresh_count) tell(o, &o->cohorts[i].count, &o->cohorts[i].fresh_count);
    tell(o, &o->count, &o->fresh_count);
    if (!o->scale) return;
    tell(o, &o->scale, &o->fresh_scale);
    tell(o, &o->streak, &o->fresh_streak);
}

static void exchange_one(wb_optimiser *o, wb_array **slot, wb_array **fresh) {
    (void)o;
    exchange(slot, fresh);
}

void wb_renewals_swap(wb_optimiser *o) {
    each_parameter_and_state(o, exchange_one);
    each_count(o, exchange_one);
}

static void list_one(wb_optimiser *o, wb_array **slot, wb_array **fresh) {
    (void)slot;
    o->roots[o->settled_count++] = *fresh;
}

/* Each once: members of a group that are not views of the first one share its array. */
static void list_and_flag(wb_optimiser *o, wb_array **slot, wb_array **fresh) {
    if ((*fresh)->flags & WB_NODE_SETTLED) return;
    (*fresh)->flags |= WB_NODE_SETTLED;
    list_one(o, slot, fresh);
}

int wb_renewals_list(wb_optimiser *o) {
    o->settled_count = 0;
    each_parameter_and_state(o, list_and_flag);
    each_count(o, list_one);
    return o->settled_count;
}
