/* All objects that can be saved, as trees of records. */
#include <string.h>

#include "base/saved.h"
#include "models/tree.h"
#include "ops/step.h"
#include "optimise/shard.h"

/* ---- numbers ---- */

static wb_record *record_of_number(wb_tree_maker *b, const wb_saved_number *number,
                                   const void *numbers) {
    static const wb_record_kind kinds[] = {[WB_SAVED_INTEGER] = WB_RECORD_INTEGER,
                                           [WB_SAVED_REAL] = WB_RECORD_REAL,
                                           [WB_SAVED_BOOL] = WB_RECORD_BOOL,
                                           [WB_SAVED_TEXT] = WB_RECORD_TEXT};
    wb_record *r = wb_record_new(&b->arena, kinds[number->kind]);
    const char *at = (const char *)numbers + number->offset;
    if (r && number->kind == WB_SAVED_INTEGER) memcpy(&r->integer, at, sizeof r->integer);
    if (r && number->kind == WB_SAVED_REAL) memcpy(&r->real, at, sizeof r->real);
    if (r && number->kind == WB_SAVED_BOOL) memcpy(&r->boolean, at, sizeof r->boolean);
    if (r && number->kind == WB_SAVED_TEXT) r->text = at;
    return r;
}

/* A map with these numbers, and room for `more` entries after them. */
static wb_record *record_of_numbers(wb_tree_maker *b, int count, const wb_saved_number *numbers,
                                    const void *object, int more) {
    wb_record *r = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!r || !wb_record_room(&b->arena, r, count + more, true)) return NULL;
    for (int i = 0; i < count; i++) {
        r->names[i] = numbers[i].name;
        if (!(r->children[i] = record_of_number(b, &numbers[i], object))) return NULL;
    }
    return r;
}

static wb_record *record_of_saved(wb_tree_maker *b, const wb_saved *saved, const void *object) {
    void *numbers = wb_arena_take(&b->arena, saved->size_bytes);
    if (!numbers) return NULL;
    saved->get(object, numbers);
    return record_of_numbers(b, saved->count, saved->numbers, numbers, 0);
}

/* ---- optimisers ---- */

static const wb_tie_group *group_of(const wb_optimiser *o, wb_array *const *slot) {
    for (int64_t i = 0; i < o->member_count; i++)
        if (o->members[i].slot == slot) return &o->groups[o->members[i].group];
    return NULL;
}

static wb_record *record_of_text(wb_tree_maker *b, const char *text) {
    wb_record *r = wb_record_new(&b->arena, WB_RECORD_TEXT);
    if (r) r->text = text;
    return r;
}

/* {eta: 0.001, ..., name: "Adam"} */
static wb_record *record_of_link(wb_tree_maker *b, const wb_rule_row *row, const double *values) {
    const int count = wb_rule_settings(row);
    wb_record *r = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!r || !wb_record_room(&b->arena, r, count + 1, true)) return NULL;
    for (int i = 0; i < count; i++) {
        const bool is_flag = row->settings[i].kind == WB_SETTING_FLAG;
        wb_record *value = wb_record_new(&b->arena, is_flag ? WB_RECORD_BOOL : WB_RECORD_REAL);
        if (!value) return NULL;
        if (is_flag)
            value->boolean = values[i] != 0;
        else
            value->real = values[i];
        r->names[i] = row->settings[i].name, r->children[i] = value;
    }
    r->names[count] = "name";
    return (r->children[count] = record_of_text(b, row->name)) ? r : NULL;
}

/* The record of its only row, or {name: "OptimiserChain", 1: {...}, 2: {...}}. */
static wb_record *record_of_rule(wb_tree_maker *b, const wb_rule *rule) {
    static const char *const numbers[WB_RULE_LINKS] = {"1", "2", "3", "4", "5", "6"};
    const int links = wb_rule_links(rule);
    const double *values = rule->settings;
    if (links == 1) return record_of_link(b, rule->links[0], values);
    wb_record *r = wb_record_new(&b->arena, WB_RECORD_MAP);
    if (!r || !wb_record_room(&b->arena, r, links + 1, true)) return NULL;
    r->names[0] = "name";
    if (!(r->children[0] = record_of_text(b, "OptimiserChain"))) return NULL;
    for (int i = 0; i < links; i++) {
        r->names[i + 1] = numbers[i];
        if (!(r->children[i + 1] = record_of_link(b, rule->links[i], values))) return NULL;
        values += wb_rule_settings(rule->links[i]);
    }
    return r;
}

/* {steps: 12, m: ..., v: ...} of the group that has the slot, with its rule where that is not the
 * optimiser's: the same record for tied ones; nothing where nothing is trained. */
static wb_record *record_of_state(wb_tree_maker *b, wb_array *const *slot) {
    static const wb_saved_number steps[] = {WB_SAVED_FIELD(wb_cohort, steps, WB_SAVED_INTEGER)};
    const wb_optimiser *o = b->owner;
    const wb_tie_group *group = group_of(o, slot);
    if (!group) return wb_record_new(&b->arena, WB_RECORD_NULL);
    wb_record *r = wb_tree_known(b, group);
    if (r) return r;
    const wb_cohort *cohort = &o->cohorts[group->cohort];
    const int count = wb_rule_states(&cohort->rule);
    const bool is_own = !wb_rule_equal(&cohort->rule, &o->rule);
    if (!(r = record_of_numbers(b, 1, steps, cohort, count + is_own + group->is_frozen)))
        return NULL;
    for (int k = 0; k < count; k++) {
        char *name = wb_arena_take(&b->arena, WB_STATE_NAME_BYTES);
        if (!name) return NULL;
        r->names[k + 1] = wb_rule_state_name(&cohort->rule, k, name);
        wb_array *state = wb_state_for_file(o, group - o->groups, k);
        if (!(r->children[k + 1] = wb_tree_of_array(b, state))) return NULL;
    }
    if (is_own) {
        r->names[count + 1] = "rule";
        if (!(r->children[count + 1] = record_of_rule(b, &cohort->rule))) return NULL;
    }
    if (group->is_frozen) {
        const int last = count + is_own + 1;
        r->names[last] = "frozen", r->children[last] = wb_record_new(&b->arena, WB_RECORD_BOOL);
        if (!r->children[last]) return NULL;
        r->children[last]->boolean = true;
    }
    return wb_tree_remember(b, group, r);
}

/* The fifth and sixth entry: the loss scale, and the number of good steps since it last changed. */
static bool add_scale(wb_tree_maker *b, wb_record *r, wb_optimiser *o) {
    static const char *const names[] = {"loss_scale", "loss_scale_steps"};
    wb_array *const numbers[] = {o->scale, o->streak};
    for (int i = 0; i < 2; i++) {
        wb_record *number = wb_record_new(&b->arena, WB_RECORD_REAL);
        if (!number || wb_read_f64(numbers[i], &number->real, 1) != WB_OK) return false;
        r->names[4 + i] = names[i], r->children[4 + i] = number;
    }
    return true;
}

/* {step: 12, clip_norm: 0.0, rule: {eta: 0.001, ..., name: "Adam"}, state: {layers: ...}}, and how
 * many steps were skipped, if any; state as Optimisers.jl has it: a tree like the model's. */
static wb_record *record_of_optimiser(wb_tree_maker *b, wb_optimiser *o) {
    static const wb_saved_number numbers[] = {
        WB_SAVED_FIELD(wb_optimiser, counted, WB_SAVED_INTEGER),
        WB_SAVED_FIELD(wb_optimiser, clip_norm, WB_SAVED_REAL)};
    if (wb_optimiser_group(o) != WB_OK || wb_optimiser_count(o) != WB_OK) return NULL;
    const bool is_skipped = o->step != o->counted;
    wb_record *r = record_of_numbers(b, 2, numbers, o, 2 + is_skipped + 2 * (o->scale != NULL));
    if (!r) return NULL;
    r->names[0] = "step";
    b->owner = o, b->leaf = record_of_state;
    r->names[2] = "rule", r->children[2] = record_of_rule(b, &o->rule);
    r->names[3] = "state", r->children[3] = wb_tree_of_layer(b, o->model);
    b->owner = NULL, b->leaf = NULL;
    if (!r->children[2] || !r->children[3]) return NULL;
    if (o->scale && !add_scale(b, r, o)) return NULL;
    if (!is_skipped) return r;
    const int last = o->scale ? 6 : 4;
    r->names[last] = "skipped", r->children[last] = wb_record_new(&b->arena, WB_RECORD_INTEGER);
    if (r->children[last]) r->children[last]->integer = o->step - o->counted;
    return r->children[last] ? r : NULL;
}

/* ---- whatever has a record ---- */

wb_record *wb_tree_of_object(wb_tree_maker *b, const wb_named *named) {
    const wb_class *klass = ((const wb_object *)named->object)->klass;
    if (wb_is_layer(named->object)) return wb_tree_of_layer(b, named->object);
    if (klass == &wb_array_class) return wb_tree_of_array(b, named->object);
    if (wb_is_file(named->object)) return wb_tree_of_file(b, named->object);
    if (wb_is_optimiser(named->object)) return record_of_optimiser(b, named->object);
    if (klass && klass->saved) return record_of_saved(b, klass->saved, named->object);
    return wb_fail_null(WB_ERROR_ARGUMENT, "wb_save: \"%s\" has the type %s, which cannot be saved",
                        named->name, klass && klass->name ? klass->name : "thing");
}
