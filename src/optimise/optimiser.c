/* Making optimisers: slots, ties, state. */
#include "optimise/optimiser.h"

#include <math.h>

#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"

/* ---- lifetime ---- */

static void release_groups(wb_optimiser *o) {
    for (int64_t i = 0; i < o->group_count; i++)
        for (int k = 0; k < WB_MAX_STATES; k++) wb_unhold(o->groups[i].states[k]);
    wb_release(o->members);
    wb_release(o->groups);
    wb_release(o->fresh_states);
    wb_release(o->sums);
    wb_release(o->roots);
}

static void optimiser_free(void *object) {
    wb_optimiser *o = object;
    release_groups(o);
    wb_free(o->model);
    wb_object_delete(o, sizeof *o, "optimiser");
}

/* That of its model: the two go together. */
static uint32_t *owner_of(void *object) {
    wb_layer *model = ((wb_optimiser *)object)->model;
    return model ? &model->owner_ : NULL;
}

static const wb_class optimiser_class = {.name = "optimiser",
                                         .maker = "wb_setup",
                                         .hand_over = wb_optimiser_hand_over,
                                         .owner = owner_of,
                                         .free = optimiser_free,
                                         .move = wb_optimiser_move,
                                         .device_of = wb_optimiser_device};

/* ---- ties ---- */

typedef struct slot_list {
    wb_visitor visitor;
    wb_member *items;
    int64_t count, capacity;
} slot_list;

static bool add_slot(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    (void)path;
    slot_list *list = (slot_list *)(void *)visitor;
    if (!trainable || !wb_dtype_is_float((wb_dtype)(*slot)->dtype)) return true;
    if (!WB_GROW(list->items, list->count, list->capacity)) return false;
    list->items[list->count++] = (wb_member){.slot = slot, .seen = *slot, .next = -1};
    return true;
}

/* False with an error where two share memory and are no tie. */
static bool check_overlaps(const wb_ties *ties) {
    int64_t first, second;
    const int found = wb_find_overlap(ties, &first, &second);
    if (found > 0)
        (void)wb_fail(
            WB_ERROR_ARGUMENT,
            "wb_setup: parameters %lld %s and %lld %s share a part of their memory; a tie "
            "shares all of it",
            (long long)first + 1, wb_text_of(ties->arrays[first]), (long long)second + 1,
            wb_text_of(ties->arrays[second]));
    return found == 0;
}

/* Appends i to the group of k. */
static void join(wb_member *members, int64_t i, int64_t k) {
    members[i].group = members[k].group;
    while (members[k].next >= 0) k = members[k].next;
    members[k].next = i;
}

/* Numbers the groups; how many there are, or -1. */
static int64_t number_groups(wb_member *members, int64_t count, wb_ties *ties) {
    int64_t groups = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = wb_ties_find(ties, members[i].seen);
        if (!wb_ties_add(ties, members[i].seen)) return -1;
        if (first < 0) {
            members[i].group = groups++;
            continue;
        }
        join(members, i, first);
        members[i].is_view = members[i].seen != members[first].seen;
    }
    return check_overlaps(ties) ? groups : -1;
}

static int64_t find_groups(wb_member *members, int64_t count) {
    wb_ties ties = {.capacity = 0};
    const int64_t groups = number_groups(members, count, &ties);
    wb_ties_release(&ties);
    return groups;
}

/* ---- state ---- */

static wb_dtype state_type(const wb_array *x) { return x->dtype == WB_F64 ? WB_F64 : WB_F32; }

static bool fits(const wb_array *state, const wb_array *x) {
    bool same = state->ndim == x->ndim && state->dtype == state_type(x);
    for (int d = 0; same && d < x->ndim; d++) same = state->sizes[d] == x->sizes[d];
    return same;
}

/* The group among the old ones that this slot was in, most often at the same place, if its state
 * fits. */
static const wb_tie_group *old_group(const wb_optimiser *o, const wb_member *member,
                                     int64_t place) {
    int64_t i = place < o->member_count && o->members[place].slot == member->slot ? place : 0;
    while (i < o->member_count && o->members[i].slot != member->slot) i++;
    if (i == o->member_count) return NULL;
    const wb_tie_group *group = &o->groups[o->members[i].group];
    return !group->states[0] || fits(group->states[0], member->seen) ? group : NULL;
}

static bool fill_group(const wb_optimiser *o, const wb_member *member, wb_tie_group *group) {
    const wb_tie_group *old = old_group(o, member, group->first);
    const wb_array *x = member->seen;
    if (old) group->steps = old->steps;
    for (int k = 0; k < wb_rule_states(&o->rule); k++) {
        wb_array *state = old ? old->states[k] : wb_full_make(state_type(x), 0, x->ndim, x->sizes);
        if (!state) return false;
        if (!old) state->device = x->device;
        group->states[k] = wb_hold(state);
    }
    return true;
}

static bool fill_groups(const wb_optimiser *old, wb_optimiser *new) {
    for (int64_t i = new->member_count - 1; i >= 0; i--)
        new->groups[new->members[i].group].first = i;
    wb_array **roots = new->roots;
    int count = 0;
    for (int64_t g = 0; g < new->group_count; g++) {
        wb_tie_group *group = &new->groups[g];
        if (!fill_group(old, &new->members[group->first], group)) return false;
        for (int k = 0; k < wb_rule_states(&new->rule); k++) roots[count++] = group->states[k];
    }
    return wb_evaluate(count, roots) == WB_OK;
}

static void *items(int64_t count, size_t bytes) { return wb_alloc((size_t)(count + 1) * bytes); }

static bool make_lists(wb_optimiser *o) {
    const int64_t states = WB_MAX_STATES * o->group_count;
    o->groups = items(o->group_count, sizeof *o->groups);
    o->fresh_states = items(states, sizeof *o->fresh_states);
    o->sums = items(o->group_count, sizeof *o->sums);
    o->root_room = 2 * o->member_count + states + 1, o->state_room = 0;
    o->roots = items(o->root_room, sizeof *o->roots);
    return o->groups && o->fresh_states && o->sums && o->roots;
}

/* Slots are leaves by right: what they hold has no recipe. */
static void detach_slots(const wb_optimiser *o) {
    for (int64_t i = 0; i < o->member_count; i++) wb_node_detach(*o->members[i].slot);
}

wb_status wb_optimiser_group(wb_optimiser *o) {
    slot_list list = {.visitor = {.array = add_slot}};
    wb_status status = WB_ERROR_MEMORY;
    wb_optimiser new = *o;
    new.groups = NULL, new.fresh_states = NULL, new.sums = NULL, new.roots = NULL;
    new.group_count = 0;
    const bool opened = wb_scope_begin();
    bool good = opened && wb_model_evaluate(o->model) == WB_OK && wb_visit(&list.visitor, o->model);
    new.members = list.items, new.member_count = list.count;
    if (good) new.group_count = find_groups(list.items, list.count);
    if (new.group_count < 0) new.group_count = 0, good = false;
    good = good && make_lists(&new) && fill_groups(o, &new);
    if (opened && wb_scope_close_leaving(0, NULL) != WB_OK) good = false;
    if (good) {
        release_groups(o);
        *o = new;
        detach_slots(o);
        return WB_OK;
    }
    if (wb_failed()) status = wb_error_status();
    if (!new.groups) new.group_count = 0;
    release_groups(&new);
    return status;
}

/* ---- making ---- */

static bool check(const wb_setup_desc *desc) {
    if (!wb_check_layer("wb_setup", desc->model)) return false;
    if (wb_rule_check("wb_setup", &desc->rule) != WB_OK) return false;
    if (desc->model->shared_)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_setup: the model comes from wb_share, which is not trained");
    else if (!(desc->clip_norm >= 0))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: clip_norm %g is negative", desc->clip_norm);
    else
        return true;
    return false;
}

wb_optimiser *wb_setup_make(wb_setup_desc desc) {
    if (!check(&desc)) return NULL;
    wb_optimiser *o = wb_object_new(&optimiser_class, sizeof *o);
    if (!o) return NULL;
    o->rule = desc.rule;
    o->clip_norm = desc.clip_norm;
    o->model = wb_retain(desc.model);
    if (wb_optimiser_group(o) != WB_OK) {
        wb_free(o);
        return NULL;
    }
    if (o->member_count == 0)
        wb_log_line(WB_LOG_WARN, "wb_setup: %s has nothing to train", desc.model->class_->name);
    return o;
}

int64_t wb_step(const wb_optimiser *optimiser) { return optimiser ? optimiser->step : 0; }

wb_status wb_adjust(wb_optimiser *optimiser, double eta) {
    if (!wb_optimiser_check("wb_adjust", optimiser)) return WB_ERROR_ARGUMENT;
    if (!(eta >= 0) || isinf(eta))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_adjust: the learning rate %g is negative or not finite", eta);
    optimiser->rule.eta = eta;
    return WB_OK;
}

bool wb_optimiser_check(const char *function, const wb_optimiser *optimiser) {
    return wb_object_check(function, optimiser, &optimiser_class, "the optimiser");
}

bool wb_is_optimiser(const void *object) {
    return object && ((const wb_object *)object)->klass == &optimiser_class;
}

void wb_optimiser_uncount(wb_optimiser *optimiser) {
    for (int64_t g = 0; g < optimiser->group_count; g++)
        if (optimiser->sums[g]) optimiser->groups[g].steps--;
    optimiser->step--;
}
