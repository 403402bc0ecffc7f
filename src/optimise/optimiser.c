/* Making optimisers: slots, ties, state. */
#include <weber/distributed.h>

#include "array/use.h"
#include "optimise/compare.h"
#include "optimise/distributed.h"
#include "optimise/shard.h"
#include "ranks/ranks.h"

#include <math.h>

#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"

/* ---- lifetime ---- */

int64_t wb_optimiser_slots(wb_optimiser *o, wb_array ***slots) {
    int64_t count = 0;
#define TELL(slot)                                                                                 \
    do {                                                                                           \
        if (slots) slots[count] = &(slot);                                                         \
        count++;                                                                                   \
    } while (0)
    for (int64_t i = 0; i < o->group_count; i++)
        for (int k = 0; k < WB_RULE_ALL_STATES; k++)
            if (o->groups[i].states[k]) TELL(o->groups[i].states[k]);
    for (int64_t i = 0; i < o->cohort_count; i++)
        if (o->cohorts[i].count) TELL(o->cohorts[i].count);
    if (o->count) TELL(o->count);
    if (o->scale) TELL(o->scale);
    if (o->streak) TELL(o->streak);
#undef TELL
    return count;
}

static void release_groups(wb_optimiser *o) {
    for (int64_t i = 0; i < o->group_count; i++)
        for (int k = 0; k < WB_RULE_ALL_STATES; k++) wb_unhold(o->groups[i].states[k]);
    wb_release(o->members);
    wb_release(o->groups);
    wb_release(o->fresh_states);
    wb_release(o->sums);
    wb_release(o->roots);
}

static void optimiser_free(void *object) {
    wb_optimiser *o = object;
    wb_optimiser_leaves_turns(o);
    wb_drop_gathered(o);
    release_groups(o);
    for (int64_t i = 0; i < o->cohort_count; i++) wb_unhold(o->cohorts[i].count);
    wb_release(o->cohorts);
    wb_release(o->written);
    wb_unhold(o->count), wb_unhold(o->scale), wb_unhold(o->streak);
    wb_optimiser_forget_loss(o);
    for (int i = 0; i < WB_PATH_RULES; i++) wb_release(o->parts[i].path);
    wb_layer_let_go(o->model);
    wb_object_delete(o, sizeof *o, "optimiser");
}

/* The owner of its model: the two are handed over together. */
static uint32_t *owner_of(const void *object) {
    wb_layer *model = ((const wb_optimiser *)object)->model;
    return model ? &model->owner_ : NULL;
}

static const wb_class optimiser_class = {
    .name = "optimiser",
    .maker = "wb_setup",
    .hand_over = wb_optimiser_hand_over,
    .owner = owner_of,
    .to_other_threads = "call wb_hand_over in that thread to give it to this one with its model",
    .free = optimiser_free,
    .move = wb_optimiser_move,
    .device_of = wb_optimiser_device};

/* ---- ties ---- */

typedef struct slot_list {
    wb_visitor visitor;
    const wb_part_rule *parts;
    wb_member *items;
    int64_t count, capacity;
    int64_t met; /* by add_path */
} slot_list;

/* The place of the first rule whose path matches, or -1. */
static int find_part(const wb_part_rule *parts, const wb_path *path) {
    char text[WB_PATH_BYTES];
    if (!parts[0].path) return -1;
    wb_path_text(path, text, sizeof text);
    for (int i = 0; i < WB_PATH_RULES && parts[i].path; i++)
        if (wb_path_matches(parts[i].path, text)) return i;
    return -1;
}

static bool add_slot(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    slot_list *list = (slot_list *)(void *)visitor;
    if (!trainable || !wb_dtype_is_float((wb_dtype)(*slot)->dtype)) return true;
    if (!WB_GROW(list->items, list->count, list->capacity)) return false;
    list->items[list->count++] = (wb_member){.slot = slot,
                                             .seen = *slot,
                                             .list = path->list,
                                             .place = path->index - 1,
                                             .next = -1,
                                             .part = find_part(list->parts, path)};
    return true;
}

/* The other paths of a layer that is in several places. A walk over all places meets the slots
 * in the order of the first walk, and those that it has met before in between. */
static bool add_path(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    slot_list *list = (slot_list *)(void *)visitor;
    (void)trainable;
    if (list->met < list->count && list->items[list->met].slot == slot) return ++list->met, true;
    for (int64_t i = 0; i < list->met; i++)
        if (list->items[i].slot == slot && list->items[i].part < 0)
            list->items[i].part = find_part(list->parts, path);
    return true;
}

static bool list_slots(slot_list *list, wb_layer *model) {
    list->visitor = (wb_visitor){.array = add_slot};
    const bool is_listed = wb_visit(&list->visitor, model);
    if (!is_listed || !list->parts[0].path) return is_listed;
    list->visitor = (wb_visitor){.array = add_path, .everywhere = true};
    return wb_visit(&list->visitor, model);
}

/* False with an error where two share memory and are not tied. */
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

static void note_array(wb_tie_group *group, const wb_array *x) {
    group->state_type = state_type(x), group->ndim = x->ndim;
    for (int d = 0; d < x->ndim; d++) group->sizes[d] = x->sizes[d];
}

/* The answer is the same on all ranks, also on those without the states. */
static bool fits(const wb_tie_group *group, const wb_array *x) {
    bool same = group->ndim == x->ndim && group->state_type == state_type(x);
    for (int d = 0; same && d < x->ndim; d++) same = group->sizes[d] == x->sizes[d];
    return same;
}

/* Whether an old member is of this slot, also where the slot has moved with the items of a list. */
static bool is_same(const wb_member *old, const wb_member *member) {
    return old->slot == member->slot ||
           (member->list && wb_list_had(member->list, member->place, old->slot));
}

/* The group among the old ones that this slot was in, most often at the same place. */
static const wb_tie_group *old_group(const wb_optimiser *o, const wb_member *member,
                                     int64_t place) {
    int64_t i = place < o->member_count && is_same(&o->members[place], member) ? place : 0;
    while (i < o->member_count && !is_same(&o->members[i], member)) i++;
    return i == o->member_count ? NULL : &o->groups[o->members[i].group];
}

static bool states_fit(const wb_optimiser *o, const wb_tie_group *old, const wb_array *x) {
    return wb_rule_states(wb_group_rule(o, old)) == 0 || fits(old, x);
}

/* ---- cohorts ---- */

wb_array *wb_optimiser_new_count(int64_t steps, const wb_array *beside) {
    wb_array *count = wb_scalar(WB_I32, (double)steps);
    if (count && beside) count->device = beside->device;
    return count;
}

/* The cohort of a parameter that has taken no step: -1 on failure. */
static int64_t new_cohort(wb_optimiser *o, const wb_rule *rule, const wb_array *x) {
    const bool is_first = o->step == 0;
    for (int64_t i = 0; i < o->cohort_count && is_first; i++)
        if (!o->cohorts[i].count && wb_rule_equal(&o->cohorts[i].rule, rule)) return i;
    wb_array *count = is_first ? NULL : wb_optimiser_new_count(0, x);
    if (!is_first && (!count || wb_evaluate_roots(1, &count) != WB_OK)) return -1;
    if (!WB_GROW(o->cohorts, o->cohort_count, o->cohort_capacity)) return -1;
    o->cohorts[o->cohort_count] = (wb_cohort){.rule = *rule, .count = wb_hold(count)};
    return o->cohort_count++;
}

/* ---- groups ---- */

static wb_array *start_of(const wb_rule *rule, int number, const wb_tie_group *group, wb_array *x) {
    wb_rule_place place;
    int64_t sizes[WB_MAX_DIMS];
    const wb_rule_state *state = wb_rule_state_of(rule, number, &place);
    if (state->start == WB_START_X)
        return wb_cast(wb_stop_gradient(wb_part_of(group, x)), state_type(x));
    const double start = wb_rule_start_of(rule, state, &place);
    const int ndim = wb_state_sizes(group, x, sizes);
    wb_array *array = wb_full_make(state_type(x), start, ndim, sizes);
    if (array) array->device = x->device;
    return array;
}

/* Fills a group of `new`, whose first `groups` groups are filled; o has the old ones. */
static bool fill_group(wb_optimiser *o, const wb_optimiser *new, int64_t groups,
                       wb_tie_group *group) {
    const wb_member *member = &new->members[group->first];
    const wb_tie_group *old = old_group(o, member, group->first);
    wb_array *x = member->seen;
    const wb_rule *own = old                ? wb_group_rule(o, old)
                         : member->part < 0 ? &o->rule
                                            : &o->parts[member->part].rule;
    group->is_frozen = old && old->is_frozen;
    if (old && !states_fit(o, old, x)) old = NULL; /* its settings stay, its states start again */
    group->cohort = old ? old->cohort : new_cohort(o, own, x);
    if (group->cohort < 0) return false;
    note_array(group, x);
    const wb_rule *rule = wb_group_rule(o, group);
    if (old)
        group->division = old->division, group->owner = old->owner;
    else
        wb_divide(new, groups, rule, x, group);
    for (int k = 0; k < wb_rule_states(rule) && wb_keeps_state(group); k++) {
        wb_array *state = old ? old->states[k] : start_of(rule, k, group, x);
        if (!state) return false;
        group->states[k] = wb_hold(state);
    }
    return true;
}

static bool fill_groups(wb_optimiser *old, wb_optimiser *new) {
    for (int64_t i = new->member_count - 1; i >= 0; i--)
        new->groups[new->members[i].group].first = i;
    wb_array **roots = new->roots;
    int count = 0;
    for (int64_t g = 0; g < new->group_count; g++) {
        wb_tie_group *group = &new->groups[g];
        if (!fill_group(old, new, g, group)) return false;
        for (int k = 0; k < WB_RULE_ALL_STATES && group->states[k]; k++)
            roots[count++] = group->states[k];
    }
    return wb_evaluate_roots(count, roots) == WB_OK;
}

static void *items(int64_t count, size_t bytes) { return wb_alloc((size_t)(count + 1) * bytes); }

static bool make_lists(wb_optimiser *o) {
    const int64_t states = WB_RULE_ALL_STATES * o->group_count;
    o->groups = items(o->group_count, sizeof *o->groups);
    o->fresh_states = items(states, sizeof *o->fresh_states);
    o->sums = items(o->group_count, sizeof *o->sums);
    o->root_room = states;
    o->roots = items(o->root_room, sizeof *o->roots);
    return o->groups && o->fresh_states && o->sums && o->roots;
}

/* Slots are leaves by right: what they hold has no recipe. */
static void detach_slots(const wb_optimiser *o) {
    for (int64_t i = 0; i < o->member_count; i++) wb_node_detach(*o->members[i].slot);
}

wb_status wb_optimiser_group(wb_optimiser *o) {
    slot_list list = {.parts = o->parts};
    wb_status status = WB_ERROR_MEMORY;
    wb_optimiser new = *o;
    new.list_moves = wb_list_moves();
    new.groups = NULL, new.fresh_states = NULL, new.sums = NULL, new.roots = NULL;
    new.group_count = 0;
    const bool opened = wb_scope_begin();
    bool good = opened && wb_model_evaluate(o->model) == WB_OK && list_slots(&list, o->model);
    new.members = list.items, new.member_count = list.count;
    if (good) new.group_count = find_groups(list.items, list.count);
    if (new.group_count < 0) new.group_count = 0, good = false;
    good = good && make_lists(&new) && fill_groups(o, &new);
    if (opened && wb_scope_leave() != WB_OK) good = false;
    if (good) {
        release_groups(o);
        new.cohorts = o->cohorts, new.cohort_count = o->cohort_count;
        new.cohort_capacity = o->cohort_capacity;
        *o = new;
        detach_slots(o);
        return WB_OK;
    }
    if (wb_failed()) status = wb_error_status();
    if (!new.groups) new.group_count = 0;
    release_groups(&new);
    return status;
}

void wb_optimiser_see(wb_optimiser *o) {
    for (int64_t i = 0; i < o->member_count; i++) o->members[i].seen = *o->members[i].slot;
    for (int64_t i = 0; i < o->group_count; i++)
        note_array(&o->groups[i], o->members[o->groups[i].first].seen);
}

wb_status wb_optimiser_follow(wb_optimiser *o) {
    return o->list_moves == wb_list_moves() ? WB_OK : wb_optimiser_group(o);
}

/* ---- making ---- */

static bool check(const wb_setup_desc *desc) {
    if (!wb_check_start("wb_setup", desc->start_)) return false;
    if (!wb_check_model("wb_setup", desc->model)) return false;
    if (wb_rule_check("wb_setup", &desc->rule) != WB_OK) return false;
    if (desc->model->shared_)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_setup: the model comes from wb_share, which is not trained");
    else if (!(desc->clip_total_norm >= 0))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: clip_total_norm must be at least 0, got %g",
                      desc->clip_total_norm);
    else if (desc->compute != WB_F32 && !wb_is_half(desc->compute))
        (void)wb_fail(WB_ERROR_DTYPE, "wb_setup: compute must be f16 or bf16, got %s",
                      wb_dtype_name(desc->compute));
    else if (!(desc->loss_scale == 0 || (desc->loss_scale >= 1 && desc->loss_scale <= 0x1p24)))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: loss_scale must be from 1 to 2^24, got %g",
                      desc->loss_scale);
    else if (!(desc->micro_batches >= 0 && desc->micro_batches <= INT32_MAX))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: micro_batches must be at least 1, got %lld",
                      (long long)desc->micro_batches);
    else if (desc->send != WB_F32 && desc->send != WB_BF16)
        (void)wb_fail(WB_ERROR_DTYPE, "wb_setup: send must be bf16 or f32, got %s",
                      wb_dtype_name(desc->send));
    else if (desc->send != WB_F32 && !desc->distributed)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: send is the type in which ranks send "
                                         "gradients, so it needs .distributed = true");
    else if (desc->zero != 0 && desc->zero != 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: zero must be 0 or 1, got %d", desc->zero);
    else if (desc->zero && !desc->distributed)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: zero divides states among ranks, so it needs "
                                         ".distributed = true");
    else if (desc->may_miss && !desc->distributed)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: may_miss is for gradients that some ranks "
                                         "lack, so it needs .distributed = true");
    else if (desc->may_miss && desc->micro_batches > 0)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_setup: may_miss and micro_batches cannot be used together");
    else if (desc->compare_every < 0)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: compare_every must not be negative, got %lld",
                      (long long)desc->compare_every);
    else if (desc->loss_scale_interval < 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: loss_scale_interval must be positive, got %lld",
                      (long long)desc->loss_scale_interval);
    else
        return true;
    return false;
}

/* The rules of parts of the model, with texts of their own. */
static bool take_parts(wb_optimiser *o, const wb_setup_desc *desc) {
    for (int i = 0; i < WB_PATH_RULES; i++) {
        const wb_path_rule *given = &desc->paths[i];
        if (!given->path && !given->rule.links[0] && !given->rule.is_broken) break;
        if (!given->path) return wb_fail_argument_null("wb_setup", "the path of a rule") != NULL;
        if (wb_rule_check("wb_setup", &desc->paths[i].rule) != WB_OK) return false;
        o->parts[i].rule = desc->paths[i].rule;
        if (!(o->parts[i].path = wb_copy_text(desc->paths[i].path))) return false;
    }
    return true;
}

static bool check_parts(const wb_optimiser *o) {
    for (int i = 0; i < WB_PATH_RULES && o->parts[i].path; i++) {
        int64_t m = 0;
        while (m < o->member_count && o->members[m].part != i) m++;
        if (m < o->member_count) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_setup: \"%s\" matches no trainable array of %s%s",
                      o->parts[i].path, o->model->class_->name,
                      i ? " that an earlier path left" : "");
        wb_error_add_paths(o->model);
        return false;
    }
    return true;
}

static bool begin_scale(wb_optimiser *o, const wb_array *beside) {
    if (o->first_scale == 0) return true;
    wb_array *both[2] = {wb_scalar(WB_F32, o->first_scale), wb_optimiser_new_count(0, beside)};
    if (!both[0] || !both[1]) return false;
    if (beside) both[0]->device = beside->device;
    if (wb_evaluate_roots(2, both) != WB_OK) return false;
    wb_optimiser_set_scale(o, both[0], both[1]);
    return true;
}

static bool begin_count(wb_optimiser *o) {
    if (!wb_scope_begin()) return false;
    const wb_array *beside = o->member_count ? o->members[0].seen : NULL;
    wb_array *count = wb_optimiser_new_count(0, beside);
    bool made = count && wb_evaluate_roots(1, &count) == WB_OK;
    if (made) o->count = wb_hold(count);
    made = made && begin_scale(o, beside);
    return wb_scope_leave() == WB_OK && made;
}

/* All ranks begin with rank 0's parameters. Settings are not copied, but compared at the first
 * step, because a difference is a mistake that the user should know of. With one rank the plans are
 * those of an optimiser that is not distributed. */
static bool share_model(wb_optimiser *o, bool zero) {
    if (wb_synchronize_arrays(o->model) != WB_OK) return false;
    o->is_distributed = wb_ranks_count() > 1;
    o->is_divided = o->is_distributed && zero;
    return true;
}

wb_optimiser *wb_setup_make(wb_setup_desc desc) {
    if (!check(&desc)) return NULL;
    wb_optimiser *o = wb_object_new(&optimiser_class, sizeof *o);
    if (!o) return NULL;
    o->rule = desc.rule;
    o->clip_norm = desc.clip_total_norm;
    o->compute = desc.compute;
    o->send = desc.send;
    o->may_miss = desc.may_miss;
    o->first_scale = desc.loss_scale;
    o->scale_interval = desc.loss_scale_interval;
    o->micro_batches = desc.micro_batches;
    o->draws_for_all = desc.distributed || desc.micro_batches > 0;
    o->counted_at = -1;
    o->compare_every = desc.compare_every;
    o->compared_at = -1;
    o->model = wb_layer_hold(desc.model);
    if ((desc.distributed && !share_model(o, desc.zero)) || !take_parts(o, &desc) ||
        wb_optimiser_group(o) != WB_OK || !check_parts(o) || !begin_count(o)) {
        wb_free(o);
        return NULL;
    }
    wb_tell_unlisted("wb_setup", desc.model, false);
    if (o->member_count == 0)
        wb_log_line(WB_LOG_WARN, "wb_setup: %s has nothing to train", desc.model->class_->name);
    return o;
}

/* ---- counts ---- */

static bool read_count(wb_array *count, int64_t *steps) {
    double number;
    if (wb_read_f64(count, &number, 1) != WB_OK) return false;
    *steps = (int64_t)number;
    return true;
}

wb_status wb_optimiser_count(wb_optimiser *o) {
    bool good = read_count(o->count, &o->counted);
    for (int64_t i = 0; i < o->cohort_count && good; i++) {
        wb_cohort *c = &o->cohorts[i];
        c->steps = o->counted;
        good = !c->count || read_count(c->count, &c->steps);
    }
    if (good) o->counted_at = o->step;
    return good ? WB_OK : wb_error_status();
}

bool wb_optimiser_reserve_cohorts(wb_optimiser *o, int64_t count) {
    return count <= o->cohort_capacity ||
           wb_grow_list((void **)&o->cohorts, &o->cohort_capacity, sizeof *o->cohorts, count);
}

void wb_optimiser_set_cohorts(wb_optimiser *o, wb_array *count, int64_t cohort_count,
                              const wb_cohort *cohorts) {
    for (int64_t i = 0; i < o->cohort_count; i++) wb_unhold(o->cohorts[i].count);
    for (int64_t i = 0; i < cohort_count; i++) {
        o->cohorts[i] = cohorts[i];
        if (cohorts[i].count) (void)wb_hold(cohorts[i].count);
    }
    o->cohort_count = cohort_count;
    wb_unhold(o->count);
    o->count = wb_hold(count);
    o->counted_at = -1;
}

void wb_optimiser_set_scale(wb_optimiser *o, wb_array *scale, wb_array *streak) {
    (void)wb_hold(scale), (void)wb_hold(streak);
    wb_unhold(o->scale), wb_unhold(o->streak);
    o->scale = scale, o->streak = streak;
}

/* This only asks: a pending error stays as it is. */
int64_t wb_skipped(wb_optimiser *o) {
    if (!o || !wb_optimiser_check("wb_skipped", o)) return 0;
    wb_error_aside older;
    wb_error_put_aside(&older);
    const bool known = o->counted_at == o->step || wb_optimiser_count(o) == WB_OK;
    wb_error_bring_back(&older);
    return known ? o->step - o->counted : 0;
}

int64_t wb_step_count(wb_optimiser *optimiser) {
    if (!optimiser || !wb_optimiser_check("wb_step_count", optimiser)) return 0;
    return optimiser->step - wb_skipped(optimiser);
}

void wb_optimiser_uncount(wb_optimiser *o) { o->step--; }

bool wb_optimiser_check(const char *function, const wb_optimiser *optimiser) {
    return wb_may_use(function, optimiser, &optimiser_class, "the optimiser");
}

bool wb_is_optimiser(const void *object) {
    return object && ((const wb_object *)object)->klass == &optimiser_class;
}
