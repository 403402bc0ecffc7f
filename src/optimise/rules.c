/* Rules as values: defaults, chains, checks. */
#include "optimise/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/step.h"
#include "optimise/row.h"

/* ---- making ---- */

static double value_in(const void *desc, const wb_rule_setting *setting) {
    const char *at = (const char *)desc + setting->offset;
    if (setting->kind == WB_SETTING_FLAG) return *(const bool *)at;
    const double value = setting->kind == WB_SETTING_COUNT
                             ? (double)*(const int64_t *)(const void *)at
                             : *(const double *)(const void *)at;
    return value != 0 ? value : setting->fallback;
}

wb_rule wb_rule_make(const wb_rule_row *row, const void *desc) {
    wb_rule rule = {.links = {row}};
    if (!row || !desc || !row->step) {
        const char *missing = !row ? "the row" : desc ? "its step" : "desc";
        (void)wb_fail_argument_null("wb_rule_make", missing);
        return (wb_rule){.is_broken = true};
    }
    for (int i = 0; i < wb_rule_settings(row); i++)
        rule.settings[i] = value_in(desc, &row->settings[i]);
    return rule;
}

wb_rule wb_rule_of_desc(const wb_rule_row *row, const void *desc) {
    if (!wb_check_start(row->name, *(const char *)desc)) return (wb_rule){.is_broken = true};
    return wb_rule_make(row, desc);
}

int wb_rule_links(const wb_rule *rule) {
    int count = 0;
    while (count < WB_RULE_LINKS && rule->links[count]) count++;
    return count;
}

static int count_settings(const wb_rule *rule) {
    int count = 0;
    for (int i = 0; i < wb_rule_links(rule); i++) count += wb_rule_settings(rule->links[i]);
    return count;
}

int wb_rule_states(const wb_rule *rule) {
    int count = 0;
    for (int i = 0; i < wb_rule_links(rule); i++) count += wb_rule_row_states(rule->links[i]);
    return count;
}

static wb_rule join(const char *function, int64_t count, const wb_rule *rules) {
    wb_rule chain = {.is_broken = false};
    int links = 0, settings = 0, states = 0;
    int64_t taken = 0;
    for (int64_t i = 0; i < count && !chain.is_broken; i++) {
        taken++;
        const int more = wb_rule_links(&rules[i]), numbers = count_settings(&rules[i]);
        states += wb_rule_states(&rules[i]);
        chain.is_broken = rules[i].is_broken || links + more > WB_RULE_LINKS ||
                          settings + numbers > WB_RULE_ALL_SETTINGS || states > WB_RULE_ALL_STATES;
        if (chain.is_broken) break;
        memcpy(chain.links + links, rules[i].links, (size_t)more * sizeof *chain.links);
        memcpy(chain.settings + settings, rules[i].settings,
               (size_t)numbers * sizeof *chain.settings);
        links += more, settings += numbers;
    }
    if (chain.is_broken && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: at most %d rules, %d settings and %d states fit; "
                      "the first %lld have more",
                      function, WB_RULE_LINKS, WB_RULE_ALL_SETTINGS, WB_RULE_ALL_STATES,
                      (long long)taken);
    return chain;
}

/* Fails if a row that must be the last is not. */
static wb_rule check_last(const char *function, wb_rule chain) {
    for (int i = 0; i + 1 < wb_rule_links(&chain) && !chain.is_broken; i++) {
        if (!chain.links[i]->is_last) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: %s must be the last rule of a chain, but %s follows it", function,
                      chain.links[i]->name, chain.links[i + 1]->name);
        chain.is_broken = true;
    }
    return chain;
}

static wb_rule fail_inside(const char *function) {
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: MixedPrecision must be around the whole rule, not inside it: "
                  "wb_mixed_precision(wb_rule_chain(...))",
                  function);
    return (wb_rule){.is_broken = true};
}

wb_rule wb_rule_chain_make(int64_t count, const wb_rule *rules) {
    if (!wb_check_list("wb_rule_chain", count, rules)) return (wb_rule){.is_broken = true};
    for (int64_t i = 0; i < count; i++)
        if (rules[i].links[0] == &wb_mixed_precision_row) return fail_inside("wb_rule_chain");
    return check_last("wb_rule_chain", join("wb_rule_chain", count, rules));
}

wb_rule wb_mixed_precision(wb_rule rule) {
    static const char function[] = "wb_mixed_precision";
    if (rule.links[0] == &wb_mixed_precision_row) return fail_inside(function);
    return join(function, 2, (wb_rule[]){{.links = {&wb_mixed_precision_row}}, rule});
}

/* ---- walking ---- */

bool wb_rule_next(const wb_rule *rule, wb_rule_place *at) {
    if (at->row && (++at->value, ++at->setting < wb_rule_settings(at->row))) return true;
    while (at->link < WB_RULE_LINKS && rule->links[at->link]) {
        at->row = rule->links[at->link++], at->setting = 0;
        if (wb_rule_settings(at->row) > 0) return true;
    }
    return false;
}

const wb_rule_state *wb_rule_state_of(const wb_rule *rule, int number, wb_rule_place *place) {
    *place = (wb_rule_place){.row = NULL};
    for (int i = 0; i < wb_rule_links(rule); i++) {
        const int count = wb_rule_row_states(rule->links[i]);
        place->row = rule->links[i], place->link = i;
        if (number < count) return &rule->links[i]->states[number];
        number -= count;
        place->value += wb_rule_settings(rule->links[i]);
    }
    return NULL;
}

const char *wb_rule_state_name(const wb_rule *rule, int number, char text[WB_STATE_NAME_BYTES]) {
    wb_rule_place place;
    const char *name = wb_rule_state_of(rule, number, &place)->name;
    (void)snprintf(text, WB_STATE_NAME_BYTES, "%s", name);
    for (int i = 0; i < number; i++) {
        wb_rule_place earlier;
        if (strcmp(wb_rule_state_of(rule, i, &earlier)->name, name) == 0)
            (void)snprintf(text, WB_STATE_NAME_BYTES, "%s_%d", name, place.link + 1);
    }
    return text;
}

double wb_rule_start_of(const wb_rule *rule, const wb_rule_state *state,
                        const wb_rule_place *place) {
    if (state->start == WB_START_ONE) return 1;
    for (int i = 0; state->start == WB_START_SETTING && i < wb_rule_settings(place->row); i++)
        if (strcmp(place->row->settings[i].name, state->setting) == 0)
            return rule->settings[place->value + i];
    return 0;
}

/* ---- checks ---- */

static const char *wanted(wb_setting_kind kind, double value) {
    switch (kind) {
    case WB_SETTING_RATE:
        return value >= 0 && !isinf(value) ? NULL : "at least 0, and finite";
    case WB_SETTING_FRACTION:
        return value >= 0 && value < 1 ? NULL : "at least 0 and below 1";
    case WB_SETTING_COUNT:
        return value >= 1 && value == floor(value) && value < 0x1p53
                   ? NULL
                   : "a whole number from 1 to 2^53";
    case WB_SETTING_FLAG:
        return value == 0 || value == 1 ? NULL : "0 or 1";
    default:
        return isnan(value) ? "a number" : NULL;
    }
}

wb_status wb_setting_check(const char *function, const wb_rule_row *row, int setting,
                           double value) {
    const char *what = wanted(row->settings[setting].kind, value);
    return what ? wb_fail(WB_ERROR_ARGUMENT, "%s: %s: %s must be %s, got %g", function, row->name,
                          row->settings[setting].name, what, value)
                : WB_OK;
}

static bool has_setting(const wb_rule_row *row, const char *name, int count) {
    for (int i = 0; name && i < count; i++)
        if (strcmp(row->settings[i].name, name) == 0) return true;
    return false;
}

/* Checks the names by which files, messages and plans know a row: all are there, and all differ. */
static wb_status check_row(const char *function, const wb_rule_row *row) {
    if (!row->name) return wb_fail(WB_ERROR_ARGUMENT, "%s: a rule's row has no name", function);
    const int settings = wb_rule_settings(row);
    for (int i = 0; i < settings; i++)
        if (has_setting(row, row->settings[i].name, i))
            return wb_fail(WB_ERROR_ARGUMENT, "%s: %s: two settings are called %s", function,
                           row->name, row->settings[i].name);
    for (int k = 0; k < wb_rule_row_states(row); k++) {
        const wb_rule_state *s = &row->states[k];
        if (s->start == WB_START_SETTING && !has_setting(row, s->setting, settings))
            return wb_fail(
                WB_ERROR_ARGUMENT,
                "%s: %s: state %s starts with the setting %s, which the rule does not have",
                function, row->name, s->name, s->setting ? s->setting : "NULL");
    }
    return WB_OK;
}

wb_status wb_rule_check(const char *function, const wb_rule *rule) {
    if (rule->is_broken && wb_failed()) return wb_error_status();
    if (rule->is_broken)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: the rule could not be made", function);
    if (!rule->links[0])
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: the rule is empty: make it by wb_adam() or another of weber/rules.h",
                       function);
    for (int i = 0; i < wb_rule_links(rule); i++)
        if (check_row(function, rule->links[i]) != WB_OK) return WB_ERROR_ARGUMENT;
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);) {
        const wb_status status =
            wb_setting_check(function, at.row, at.setting, rule->settings[at.value]);
        if (status != WB_OK) return status;
    }
    return WB_OK;
}

/* "eta, rho": the names of the rule's settings, each once. */
void wb_rule_list_settings(const wb_rule *rule, char *text, size_t size) {
    size_t length = 0;
    text[0] = 0;
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);) {
        const int n = snprintf(text + length, size - length, "%s%s", length ? ", " : "",
                               at.row->settings[at.setting].name);
        if (n < 0 || (length += (size_t)n) >= size) return;
    }
}

wb_status wb_rule_set(const char *function, wb_rule *rule, const char *name, double value,
                      int *found) {
    for (wb_rule_place at = {.row = NULL}; wb_rule_next(rule, &at);) {
        if (strcmp(at.row->settings[at.setting].name, name) != 0) continue;
        const wb_status status = wb_setting_check(function, at.row, at.setting, value);
        if (status != WB_OK) return status;
        rule->settings[at.value] = value;
        if (at.row->settings[at.setting].kind != WB_SETTING_FLAG)
            rule->late |= UINT32_C(1) << at.value;
        ++*found;
    }
    return WB_OK;
}

bool wb_rule_equal(const wb_rule *a, const wb_rule *b) {
    return memcmp(a->links, b->links, sizeof a->links) == 0 &&
           memcmp(a->settings, b->settings, sizeof a->settings) == 0;
}
