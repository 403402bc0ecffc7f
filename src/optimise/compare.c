/* Ranks exchange hashes of settings, parameters and states, a few numbers each. Only if these
 * differ do they exchange the facts themselves, to name what differs. If the processors differ too,
 * different parameters are a warning: other processors round differently. */
#include "optimise/compare.h"

#include <stdio.h>
#include <string.h>

#include <weber/device.h>
#include <weber/distributed.h>

#include "base/memory.h"
#include "layers/layer.h"
#include "ops/collective.h"
#include "ops/ops.h"
#include "ranks/facts.h"

/* The hardware that the bits of a step depend on, beside the program. */
static uint64_t processor_of(const wb_device *device) {
    const wb_properties p = wb_device_properties(device);
    const uint64_t name = wb_hash_of(3, p.name, strlen(p.name));
    return wb_hash_of(name, p.driver, strlen(p.driver));
}

/* ---- comparing ---- */

enum { SETTINGS, PLACE, STEP, PARAMETERS, STATES, PROCESSOR, NUMBERS };

/* What is compared, and described if it differs. */
typedef struct comparison {
    const char *title;
    const wb_text *settings, *place;
    int64_t own[NUMBERS];
    int64_t *all;
} comparison;

static bool is_common(const int64_t *all, int count, int number) {
    for (int r = 1; r < wb_ranks_count(); r++)
        if (all[r * count + number] != all[number]) return false;
    return true;
}

/* All ranks have found that something differs, so all fail. */
static wb_status fail(const char *title, const wb_text *facts) {
    char message[WB_MESSAGE_BYTES];
    const wb_status status = wb_facts_exchange(title, facts, message, sizeof message);
    if (status != WB_OK) return status;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s", message[0] ? message : title);
    wb_ranks_fail_alike();
    return WB_ERROR_ARGUMENT;
}

static int64_t hash_of_text(const wb_text *t) {
    return t->size ? (int64_t)wb_hash_of(4, t->data, t->size) : 0;
}

static wb_status fail_held(wb_optimiser *o, const comparison *c) {
    wb_text facts = {.file = NULL};
    wb_model_hash unused;
    char text[32];
    wb_text_bytes(&facts, c->place->data, c->place->size);
    (void)snprintf(text, sizeof text, "%lld", (long long)c->own[STEP]);
    wb_fact_add(&facts, "the step of the optimiser", text);
    wb_status status = wb_hash_parameters(o, &facts, &unused) ? WB_OK : wb_error_status();
    (void)snprintf(text, sizeof text, "of hash %08llx", (unsigned long long)c->own[STATES] >> 32);
    wb_fact_add(&facts, "the state of the rule", text);
    if (status == WB_OK) status = wb_text_status(&facts);
    if (status == WB_OK) status = fail(c->title, &facts);
    wb_text_release(&facts);
    return status;
}

typedef struct measure {
    wb_visitor visitor;
    double largest;
    char name[WB_PATH_BYTES];
} measure;

static bool measure_array(wb_visitor *visitor, const wb_path *path, wb_array **slot,
                          bool trainable) {
    measure *m = (measure *)(void *)visitor;
    if (!trainable || !wb_scope_begin()) return !trainable;
    wb_array *x = wb_stop_gradient(*slot);
    wb_array *gap = wb_sub(wb_allreduce(x, WB_REDUCE_MAX), wb_allreduce(x, WB_REDUCE_MIN));
    const double most = wb_count(x) ? wb_item(wb_maximum(wb_cast(gap, WB_F64))) : 0;
    if (!(most <= m->largest)) {
        m->largest = most;
        wb_path_text(path, m->name, sizeof m->name);
    }
    return wb_scope_leave() == WB_OK && !wb_failed();
}

/* Different processors round differently. */
static wb_status warn(wb_optimiser *o) {
    measure m = {.visitor = {.array = measure_array}};
    if (!wb_visit(&m.visitor, o->model)) return wb_error_status();
    if (wb_ranks_own() == 0)
        wb_log_line(WB_LOG_WARN,
                    "distributed: the ranks have different processors, and at step %lld their "
                    "parameters differ by up to %g (%s)",
                    (long long)o->step, m.largest, m.name[0] ? m.name : "states alone");
    return WB_OK;
}

static wb_status judge(wb_optimiser *o, const comparison *c) {
    bool is_same[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) is_same[i] = is_common(c->all, NUMBERS, i);
    if (!is_same[SETTINGS])
        return fail("distributed: settings must be the same on all ranks", c->settings);
    if (!is_same[PLACE] || !is_same[STEP]) return fail_held(o, c);
    if (is_same[PARAMETERS] && is_same[STATES]) return WB_OK;
    return is_same[PROCESSOR] ? fail_held(o, c) : warn(o);
}

static wb_status compare(wb_optimiser *o, comparison *c) {
    wb_model_hash parameters;
    uint64_t states;
    if (!wb_hash_parameters(o, NULL, &parameters) || !wb_hash_states(o, &states))
        return wb_error_status();
    c->own[SETTINGS] = hash_of_text(c->settings), c->own[PLACE] = hash_of_text(c->place);
    c->own[STEP] = o->step;
    c->own[PARAMETERS] = (int64_t)parameters.hash, c->own[STATES] = (int64_t)states;
    c->own[PROCESSOR] = (int64_t)processor_of(parameters.device);
    c->all = wb_alloc(sizeof c->own * (size_t)wb_ranks_count());
    wb_status status = c->all ? wb_allgather_now(NUMBERS, c->own, c->all) : WB_ERROR_MEMORY;
    if (status == WB_OK) status = judge(o, c);
    wb_release(c->all);
    return status;
}

static const char held_title[] = "distributed: parameters and states must be the same on all ranks";

wb_status wb_compare_held(wb_optimiser *o, const char *title, const wb_text *place) {
    const wb_text none = {.file = NULL};
    comparison c = {
        .title = title ? title : held_title, .settings = &none, .place = place ? place : &none};
    return o->is_distributed ? compare(o, &c) : WB_OK;
}

wb_status wb_compare_facts(const char *title, const wb_text *facts) {
    int64_t own = hash_of_text(facts), all[WB_MOST_RANKS];
    wb_status status = wb_text_status(facts);
    if (status == WB_OK) status = wb_allgather_now(1, &own, all);
    return status == WB_OK && !is_common(all, 1, 0) ? fail(title, facts) : status;
}

static bool is_due(const wb_optimiser *o) {
    if (o->compared_at < 0) return true;
    return o->compare_every != 0 && o->step - o->compared_at >= o->compare_every;
}

wb_status wb_compare_if_due(wb_optimiser *o) {
    wb_text settings = {.file = NULL};
    if (!o->is_distributed || !is_due(o)) return WB_OK;
    comparison c = {.title = held_title, .settings = &settings, .place = &(wb_text){.file = NULL}};
    wb_status status = o->compared_at < 0 ? wb_tell_settings(o, false, &settings) : WB_OK;
    if (status == WB_OK) status = compare(o, &c);
    wb_text_release(&settings);
    if (status == WB_OK) o->compared_at = o->step;
    return status;
}

/* ---- steps that differ ---- */

void wb_explain_difference(wb_optimiser *o) {
    char before[WB_MESSAGE_BYTES], message[WB_MESSAGE_BYTES];
    wb_text facts = {.file = NULL};
    if (!o->is_distributed || !wb_ranks_may_explain()) return;
    const wb_status status = wb_take_error(before, sizeof before);
    const char *title = "distributed: rules, their settings and what is trained must be the same "
                        "on all ranks";
    if (wb_tell_settings(o, true, &facts) != WB_OK ||
        wb_facts_exchange(title, &facts, message, sizeof message) != WB_OK)
        message[0] = 0;
    wb_text_release(&facts);
    wb_clear_error();
    (void)wb_fail(status, "%s", message[0] ? message : before);
}
