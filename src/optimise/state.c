/* The state that a rule keeps for a parameter, read and set by path. */
#include <string.h>

#include "array/thread.h"
#include "array/use.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "ops/ops.h"
#include "optimise/shard.h"

static wb_tie_group *find_group(const char *function, wb_optimiser *o, const char *path) {
    if (wb_optimiser_group(o) != WB_OK) return NULL;
    wb_array **slot = wb_slot_at(function, o->model, path);
    for (int64_t i = 0; slot && i < o->member_count; i++)
        if (o->members[i].slot == slot) return &o->groups[o->members[i].group];
    if (slot) (void)wb_fail(WB_ERROR_ARGUMENT, "%s: \"%s\" is not trainable", function, path);
    return NULL;
}

static void list_states(const wb_rule *rule, char *text, size_t size) {
    size_t length = 0;
    text[0] = 0;
    for (int k = 0; k < wb_rule_states(rule) && length + WB_STATE_NAME_BYTES < size; k++) {
        char name[WB_STATE_NAME_BYTES];
        (void)wb_rule_state_name(rule, k, name);
        if (k) text[length++] = ',', text[length++] = ' ';
        memcpy(text + length, name, strlen(name) + 1);
        length += strlen(name);
    }
}

/* The group, and the number of the state in it; NULL with an error that lists the names. */
static wb_tie_group *find_state(const char *function, wb_optimiser *o, const char *path,
                                const char *name, int *number) {
    if (!wb_optimiser_check(function, o)) return NULL;
    if (!path || !name)
        return wb_fail_argument_null(function, path ? "the state's name" : "the path");
    wb_tie_group *group = find_group(function, o, path);
    if (!group) return NULL;
    const wb_rule *rule = wb_group_rule(o, group);
    for (int k = 0; k < wb_rule_states(rule); k++) {
        char text[WB_STATE_NAME_BYTES];
        *number = k;
        if (strcmp(wb_rule_state_name(rule, k, text), name) == 0) return group;
    }
    char names[WB_MESSAGE_BYTES / 2];
    list_states(rule, names, sizeof names);
    return wb_fail_null(WB_ERROR_ARGUMENT, "%s: there is no state \"%s\" of %s; there are: %s",
                        function, name, path, names[0] ? names : "none");
}

wb_array *wb_optimiser_get(wb_optimiser *optimiser, const char *path, const char *state) {
    int k;
    const wb_tie_group *group = find_state("wb_optimiser_get", optimiser, path, state, &k);
    return group ? wb_whole_state(optimiser, group, k) : NULL;
}

/* x as data in the state's type. */
static wb_array *as_state(const wb_array *old, wb_array *x) {
    x = wb_beside(old, wb_cast(wb_stop_gradient(x), (wb_dtype)old->dtype));
    if (!x || wb_evaluate_roots(1, &x) != WB_OK) return NULL;
    return x;
}

wb_status wb_optimiser_set(wb_optimiser *optimiser, const char *path, const char *state,
                           wb_array *x) {
    static const char function[] = "wb_optimiser_set";
    if (!wb_may_use_array(function, x, "x") || wb_is_tracing(function)) return wb_error_status();
    int k;
    wb_tie_group *group = find_state(function, optimiser, path, state, &k);
    if (!group) return wb_error_status();
    const wb_array *whole = *optimiser->members[group->first].slot;
    if (!wb_same_sizes(whole, x))
        return wb_fail(WB_ERROR_SHAPE, "%s: %s of %s has sizes %s, the new array %s", function,
                       state, path, wb_text_of(whole), wb_text_of(x));
    if (!wb_keeps_state(group)) return WB_OK;
    wb_array **slot = &group->states[k];
    x = wb_part_of(group, x);
    if (!x) return wb_error_status();
    wb_array *fresh = as_state(*slot, x);
    if (!fresh) return wb_error_status();
    if (wb_node_device(fresh) != wb_node_device(*slot))
        return wb_fail(WB_ERROR_ARGUMENT, "%s: %s of %s is on %s, the new array on %s", function,
                       state, path, wb_device_name(wb_node_device(*slot)),
                       wb_device_name(wb_node_device(fresh)));
    wb_array *old = *slot;
    *slot = wb_hold(fresh);
    wb_unhold(old);
    return WB_OK;
}
