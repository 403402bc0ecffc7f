/* Settings that change between steps. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "optimise/optimiser.h"

/* The groups of a cohort: those that an adjustment affects, and the others. */
typedef struct share {
    int64_t marked, others;
} share;

static share share_of(const wb_optimiser *o, int64_t cohort) {
    share found = {0, 0};
    for (int64_t i = 0; i < o->group_count; i++) {
        if (o->groups[i].cohort != cohort) continue;
        found.marked += o->groups[i].is_marked;
        found.others += !o->groups[i].is_marked;
    }
    return found;
}

static wb_status fail_unknown(const char *function, const wb_rule *rule, const char *name) {
    char names[WB_MESSAGE_BYTES / 2];
    wb_rule_list_settings(rule, names, sizeof names);
    return wb_fail(WB_ERROR_ARGUMENT, "%s: there is no setting \"%s\"; there are: %s", function,
                   name, names);
}

/* Adds what has the setting in a rule to *found; changes nothing. */
static wb_status try_rule(const char *function, const wb_rule *rule, const char *name, double value,
                          int *found) {
    wb_rule copy = *rule;
    return wb_rule_set(function, &copy, name, value, found);
}

/* ---- the whole model ---- */

static wb_status adjust_all(const char *function, wb_optimiser *o, const char *name, double value) {
    int found = 0;
    wb_status status = try_rule(function, &o->rule, name, value, &found);
    for (int64_t i = 0; i < o->cohort_count && status == WB_OK; i++)
        status = try_rule(function, &o->cohorts[i].rule, name, value, &found);
    if (status != WB_OK) return status;
    if (!found) return fail_unknown(function, &o->rule, name);
    (void)wb_rule_set(function, &o->rule, name, value, &found);
    for (int64_t i = 0; i < o->cohort_count; i++)
        (void)wb_rule_set(function, &o->cohorts[i].rule, name, value, &found);
    return WB_OK;
}

/* ---- a part of it ---- */

/* If only some groups of a cohort are marked, moves these to a new cohort with the same history,
 * for which there is room. Returns the number of the cohort that they are in. */
static int64_t leave(wb_optimiser *o, int64_t cohort) {
    if (share_of(o, cohort).others == 0) return cohort;
    wb_cohort own = o->cohorts[cohort];
    own.count = own.count ? wb_hold(own.count) : NULL;
    own.numbers = own.fresh_count = NULL;
    o->cohorts[o->cohort_count] = own;
    for (int64_t i = 0; i < o->group_count; i++)
        if (o->groups[i].cohort == cohort && o->groups[i].is_marked)
            o->groups[i].cohort = o->cohort_count;
    return o->cohort_count++;
}

/* Checks everything and makes room, and changes nothing. */
static wb_status prepare(const char *function, wb_optimiser *o, const char *name, double value) {
    int found = 0;
    int64_t more = 0;
    const wb_rule *first = &o->rule;
    for (int64_t c = o->cohort_count - 1; c >= 0; c--) {
        const share s = share_of(o, c);
        if (!s.marked) continue;
        first = &o->cohorts[c].rule;
        more += s.others > 0;
        const wb_status status = try_rule(function, first, name, value, &found);
        if (status != WB_OK) return status;
    }
    if (!found) return fail_unknown(function, first, name);
    return wb_optimiser_reserve_cohorts(o, o->cohort_count + more) ? WB_OK : WB_ERROR_MEMORY;
}

static wb_status adjust_part(const char *function, wb_optimiser *o, const char *path,
                             const char *name, double value) {
    wb_status status = wb_optimiser_mark(function, o, path);
    if (status == WB_OK) status = prepare(function, o, name, value);
    const int64_t count = o->cohort_count;
    for (int64_t c = 0; c < count && status == WB_OK; c++) {
        int found = 0;
        if (share_of(o, c).marked == 0) continue;
        (void)wb_rule_set(function, &o->cohorts[leave(o, c)].rule, name, value, &found);
    }
    return status;
}

/* ---- by a factor ---- */

static int scale_rule(wb_rule *rule, const char *name, double factor, double least) {
    int found = 0;
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);) {
        double *value = &rule->settings[at.value];
        if (strcmp(at.row->settings[at.setting].name, name) != 0) continue;
        *value = fmin(*value, fmax(*value * factor, least));
        found++;
        rule->late |= UINT32_C(1) << at.value;
    }
    return found;
}

wb_status wb_optimiser_scale(const char *function, wb_optimiser *o, const char *name, double factor,
                             double least) {
    int found = scale_rule(&o->rule, name, factor, least);
    for (int64_t i = 0; i < o->cohort_count; i++)
        found += scale_rule(&o->cohorts[i].rule, name, factor, least);
    return found ? WB_OK : fail_unknown(function, &o->rule, name);
}

/* ---- all settings at once ---- */

static void take_settings(wb_rule *to, const wb_rule *from) {
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(to, &at);) {
        const bool is_flag = at.row->settings[at.setting].kind == WB_SETTING_FLAG;
        double *value = &to->settings[at.value];
        if (*value == from->settings[at.value]) continue;
        *value = from->settings[at.value];
        if (!is_flag) to->late |= UINT32_C(1) << at.value;
    }
}

void wb_optimiser_take_settings(wb_optimiser *o, const wb_rule *rule) {
    take_settings(&o->rule, rule);
    for (int64_t i = 0; i < o->cohort_count; i++) take_settings(&o->cohorts[i].rule, rule);
}

/* ---- functions ---- */

wb_status wb_adjust(wb_optimiser *optimiser, double eta) {
    if (!wb_optimiser_check("wb_adjust", optimiser)) return WB_ERROR_ARGUMENT;
    return adjust_all("wb_adjust", optimiser, "eta", eta);
}

wb_status wb_adjust_named(wb_optimiser *optimiser, const char *setting, double value) {
    if (!wb_optimiser_check("wb_adjust_named", optimiser)) return WB_ERROR_ARGUMENT;
    if (setting) return adjust_all("wb_adjust_named", optimiser, setting, value);
    (void)wb_fail_argument_null("wb_adjust_named", "the setting's name");
    return WB_ERROR_ARGUMENT;
}

wb_status wb_adjust_path(wb_optimiser *optimiser, const char *path, const char *setting,
                         double value) {
    static const char function[] = "wb_adjust_path";
    if (!wb_optimiser_check(function, optimiser)) return WB_ERROR_ARGUMENT;
    if (path && setting) return adjust_part(function, optimiser, path, setting, value);
    (void)wb_fail_argument_null(function, path ? "the setting's name" : "the path");
    return WB_ERROR_ARGUMENT;
}

/* ---- reading ---- */

static const double *value_in(const wb_rule *rule, const char *name) {
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);)
        if (strcmp(at.row->settings[at.setting].name, name) == 0) return &rule->settings[at.value];
    return NULL;
}

double wb_optimiser_setting(wb_optimiser *optimiser, const char *path, const char *setting) {
    static const char function[] = "wb_optimiser_setting";
    const wb_optimiser *o = optimiser;
    if (!wb_optimiser_check(function, o)) return (double)NAN;
    if (!setting) return (void)wb_fail_argument_null(function, "the setting's name"), (double)NAN;
    if (wb_optimiser_mark(function, optimiser, path) != WB_OK) return (double)NAN;
    const double *value = path ? NULL : value_in(&o->rule, setting);
    const wb_rule *first = path ? NULL : &o->rule;
    for (int64_t i = 0; i < o->group_count && !value; i++) {
        if (!o->groups[i].is_marked) continue;
        if (!first) first = wb_group_rule(o, &o->groups[i]);
        value = value_in(wb_group_rule(o, &o->groups[i]), setting);
    }
    if (value) return *value;
    (void)fail_unknown(function, first, setting);
    return (double)NAN;
}
