/* Copies what rank 0 holds to all ranks. */
#include <stdio.h>
#include <string.h>

#include <weber/distributed.h>

#include "array/use.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "ops/build.h"
#include "ops/collective.h"
#include "optimise/compare.h"
#include "optimise/distributed.h"
#include "ranks/facts.h"

static const char function[] = "wb_synchronize";

/* ---- arrays ---- */

static wb_array *of_the_first(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return wb_bcast(x, 0);
}

/* The others wait for this rank's part. */
static wb_status told(wb_status status) {
    if (status != WB_OK) wb_ranks_fail();
    return status;
}

static wb_status synchronize_arrays(wb_layer *model) {
    wb_text facts = {.file = NULL};
    wb_status status = wb_model_tell_arrays(model, &facts) ? WB_OK : wb_error_status();
    if (status == WB_OK)
        status =
            wb_compare_facts("distributed: models must have the same arrays on all ranks", &facts);
    wb_text_release(&facts);
    return status == WB_OK ? wb_walk(of_the_first, NULL, model) : status;
}

wb_status wb_synchronize_arrays(wb_layer *model) {
    if (!wb_ranks_join(function)) return wb_error_status();
    return wb_ranks_count() == 1 ? WB_OK : told(synchronize_arrays(model));
}

static bool replace(wb_array **slot) {
    wb_array *x = wb_bcast(*slot, 0);
    if (!x || wb_evaluate_roots(1, &x) != WB_OK) return false;
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
        const wb_status closed = wb_scope_leave();
        if (status == WB_OK) status = closed;
    }
    wb_release(slots);
    return status;
}

/* ---- numbers of a model ---- */

static wb_status synchronize_numbers(wb_layer *model) {
    const size_t bytes = wb_model_numbers(model, NULL);
    char *numbers = wb_alloc(bytes + 1);
    wb_status status = numbers ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK && bytes > 0) {
        (void)wb_model_numbers(model, numbers);
        status = wb_bcast_now((int64_t)bytes, numbers);
        if (status == WB_OK && !wb_model_set_numbers(model, numbers)) status = wb_error_status();
    }
    wb_release(numbers);
    return status;
}

/* ---- numbers of an optimiser ---- */

/* A rule without its rows: these are code, which every rank has. */
typedef struct rule_numbers {
    double settings[WB_RULE_ALL_SETTINGS];
    int64_t late;
    int64_t steps; /* of a cohort with a count of its own; -1: none */
} rule_numbers;

typedef struct group_numbers {
    int64_t cohort, is_frozen;
} group_numbers;

/* What is sent first; then follow the rule of each cohort and each group. */
typedef struct numbers {
    int64_t step, counted, scale_interval, compare_every, micro_batches, cohorts;
    double clip_norm;
    rule_numbers rule;
} numbers;

static rule_numbers numbers_of_rule(const wb_rule *rule, int64_t steps) {
    rule_numbers n = {.late = rule->late, .steps = steps};
    memcpy(n.settings, rule->settings, sizeof n.settings);
    return n;
}

static numbers numbers_of(const wb_optimiser *o) {
    return (numbers){.step = o->step,
                     .counted = o->counted,
                     .scale_interval = o->scale_interval,
                     .compare_every = o->compare_every,
                     .micro_batches = o->micro_batches,
                     .cohorts = o->cohort_count,
                     .clip_norm = o->clip_norm,
                     .rule = numbers_of_rule(&o->rule, -1)};
}

static void list_numbers(const wb_optimiser *o, rule_numbers *rules, group_numbers *groups) {
    for (int64_t c = 0; c < o->cohort_count; c++) {
        const wb_cohort *cohort = &o->cohorts[c];
        rules[c] = numbers_of_rule(&cohort->rule, cohort->count ? cohort->steps : -1);
    }
    for (int64_t g = 0; g < o->group_count; g++)
        groups[g] = (group_numbers){o->groups[g].cohort, o->groups[g].is_frozen};
}

static wb_status fail_impossible(void) {
    return wb_fail(WB_ERROR_LOST, "%s: rank 0 has sent invalid numbers for an optimiser", function);
}

static bool is_possible(const wb_optimiser *o, const numbers *n) {
    const bool has_steps = n->counted >= 0 && n->step >= n->counted && n->step <= INT32_MAX;
    return has_steps && n->cohorts >= 0 && n->cohorts <= o->group_count && n->clip_norm >= 0 &&
           n->scale_interval > 0 && n->micro_batches >= 0;
}

static wb_status take_rule(wb_rule *rule, const rule_numbers *n) {
    memcpy(rule->settings, n->settings, sizeof n->settings);
    rule->late = (uint32_t)n->late;
    return wb_rule_check(function, rule);
}

/* The cohorts as rank 0 has them: the rows of a rule are those of its groups here. */
static wb_status plan_cohorts(const wb_optimiser *o, const numbers *n, const rule_numbers *rules,
                              const group_numbers *groups, wb_cohort *cohorts) {
    wb_status status = WB_OK;
    for (int64_t g = 0; g < o->group_count; g++) {
        if (groups[g].cohort < 0 || groups[g].cohort >= n->cohorts) return fail_impossible();
        cohorts[groups[g].cohort].rule = *wb_group_rule(o, &o->groups[g]);
    }
    for (int64_t c = 0; c < n->cohorts && status == WB_OK; c++) {
        status = take_rule(&cohorts[c].rule, &rules[c]);
        if (status != WB_OK || rules[c].steps < 0) continue;
        if (rules[c].steps > n->counted) return fail_impossible();
        cohorts[c].steps = rules[c].steps;
        cohorts[c].count = wb_optimiser_new_count(rules[c].steps, o->count);
        status = cohorts[c].count ? wb_evaluate_roots(1, &cohorts[c].count) : wb_error_status();
    }
    return status;
}

static wb_status take_numbers(wb_optimiser *o, const numbers *n, const rule_numbers *rules,
                              const group_numbers *groups, wb_cohort *cohorts) {
    wb_rule rule = o->rule;
    wb_array *count = wb_optimiser_new_count(n->counted, o->count);
    wb_status status = count ? wb_evaluate_roots(1, &count) : wb_error_status();
    if (status == WB_OK) status = take_rule(&rule, &n->rule);
    if (status == WB_OK) status = plan_cohorts(o, n, rules, groups, cohorts);
    if (status == WB_OK && !wb_optimiser_reserve_cohorts(o, n->cohorts)) status = WB_ERROR_MEMORY;
    if (status != WB_OK) return status;
    o->rule = rule, o->step = n->step, o->clip_norm = n->clip_norm;
    o->scale_interval = n->scale_interval, o->compare_every = n->compare_every;
    o->micro_batches = n->micro_batches;
    for (int64_t g = 0; g < o->group_count; g++) {
        o->groups[g].cohort = groups[g].cohort;
        o->groups[g].is_frozen = groups[g].is_frozen != 0;
    }
    wb_optimiser_set_cohorts(o, count, n->cohorts, cohorts);
    return WB_OK;
}

static wb_status send_numbers(wb_optimiser *o, rule_numbers *rules, group_numbers *groups,
                              wb_cohort *cohorts) {
    wb_status status = wb_optimiser_count(o);
    numbers n = numbers_of(o);
    const int64_t room = o->group_count * (int64_t)sizeof *rules;
    if (status == WB_OK) list_numbers(o, rules, groups);
    if (status == WB_OK) status = wb_bcast_now(sizeof n, &n);
    if (status == WB_OK && room > 0) status = wb_bcast_now(room, rules);
    if (status == WB_OK && room > 0)
        status = wb_bcast_now(o->group_count * (int64_t)sizeof *groups, groups);
    if (status != WB_OK || wb_ranks_own() == 0) return status;
    return is_possible(o, &n) ? take_numbers(o, &n, rules, groups, cohorts) : fail_impossible();
}

/* In a scope, where the counts of cohorts are made. */
static wb_status synchronize_optimiser(wb_optimiser *o) {
    const size_t most = (size_t)o->group_count + 1;
    rule_numbers *rules = wb_alloc(sizeof *rules * most);
    group_numbers *groups = wb_alloc(sizeof *groups * most);
    wb_cohort *cohorts = wb_alloc(sizeof *cohorts * most);
    wb_status status = rules && groups && cohorts && wb_scope_begin() ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK) {
        status = send_numbers(o, rules, groups, cohorts);
        const wb_status closed = wb_scope_leave();
        if (status == WB_OK) status = closed;
    }
    wb_release(rules), wb_release(groups), wb_release(cohorts);
    return status;
}

/* ---- structure ---- */

/* Rows of one name may have different settings. */
static void tell_settings(wb_text *facts, const char *name, const wb_rule *rule) {
    char what[80], names[400] = "";
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);) {
        const size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                       at.row->settings[at.setting].name);
    }
    (void)snprintf(what, sizeof what, "the list of settings of %s", name);
    wb_fact_add(facts, what, names);
}

static void tell_rows(wb_text *facts, const char *name, const wb_rule *rule) {
    char names[200] = "";
    for (int i = 0; i < wb_rule_links(rule); i++) {
        const size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                       rule->links[i]->name);
    }
    wb_fact_add(facts, name, names);
    tell_settings(facts, name, rule);
}

static void tell_optimiser(const wb_optimiser *o, wb_text *facts) {
    tell_rows(facts, "the rule", &o->rule);
    for (int64_t g = 0; g < o->group_count; g++) {
        char name[48];
        (void)snprintf(name, sizeof name, "the rule of parameter %lld", (long long)g + 1);
        tell_rows(facts, name, wb_group_rule(o, &o->groups[g]));
    }
    wb_fact_add(facts, "the scale of the loss", o->scale ? "there" : "not there");
    wb_fact_add(facts, ".zero", o->is_divided ? "true" : "false");
}

/* Checks that what is sent has the same meaning on all ranks. */
static wb_status compare_structure(wb_layer *model, const wb_optimiser *o) {
    wb_text facts = {.file = NULL};
    wb_status status = WB_OK;
    if (o) tell_optimiser(o, &facts);
    if (!wb_model_tell_structure(model, &facts)) status = wb_error_status();
    if (status == WB_OK)
        status = wb_compare_facts("wb_synchronize: objects must have the same structure on all "
                                  "ranks",
                                  &facts);
    wb_text_release(&facts);
    return status;
}

/* ---- all of it ---- */

static wb_status synchronize(wb_layer *model, wb_optimiser *o) {
    wb_status status = o ? wb_optimiser_group(o) : WB_OK;
    if (status == WB_OK) status = compare_structure(model, o);
    if (status == WB_OK) status = wb_walk(of_the_first, NULL, model);
    if (status == WB_OK) status = synchronize_numbers(model);
    if (status != WB_OK || !o) return status;
    status = synchronize_optimiser(o);
    if (status == WB_OK && !o->is_divided) status = synchronize_states(o);
    wb_optimiser_see(o);
    o->compared_at = -1;
    return status;
}

/* An array never changes its numbers, but a place in a tree can get another array. */
static bool check(const void *object) {
    if (!wb_may_use_any(function, object, NULL)) return false;
    if (((const wb_object *)object)->klass != &wb_array_class) return true;
    return wb_fail(WB_ERROR_ARGUMENT,
                   "%s: an array cannot be changed in place: use x = wb_bcast(x, 0), or put x into "
                   "a tree, whose arrays are replaced",
                   function) == WB_OK;
}

wb_status wb_synchronize(void *object) {
    if (!check(object) || !wb_ranks_join(function)) return wb_error_status();
    wb_optimiser *o = wb_is_optimiser(object) ? object : NULL;
    wb_layer *model = o ? o->model : object;
    if (!wb_check_model(function, model)) return WB_ERROR_ARGUMENT;
    return wb_ranks_count() == 1 ? WB_OK : told(synchronize(model, o));
}
