/* Averages of parameters: rules that keep one, and the averaged model. */
#include <string.h>

#include "layers/layer.h"
#include "ops/ops.h"
#include "optimise/row.h"
#include "optimise/shard.h"

#define AVERAGE_OF_X                                                                               \
    { "average", WB_START_X, NULL }

/* ---- rows ---- */

#define DESC wb_ema_desc
static wb_array *ema(wb_rule_at *at) {
    at->state[0] = AVERAGE(decay, at->state[0], SUB(X, G));
    return G;
}

static const wb_rule_row ema_row = {.name = "EMA",
                                    .settings = {FRACTION(decay)},
                                    .states = {AVERAGE_OF_X},
                                    .step = ema,
                                    .is_elementwise = true,
                                    .is_last = true};

wb_rule wb_ema_make(wb_ema_desc desc) { return wb_rule_of_desc(&ema_row, &desc); }
#undef DESC

/* The share of step t in the average of z: the square of its rate's share over the sum of all
 * squares so far, which are 1 / W, 2 / W, ... until step W of the warm-up, and then 1. */
static wb_array *share_of_step(wb_rule_at *at, wb_array *rising) {
    wb_array *W = S(warm_up), *n = MIN(at->t, W);
    wb_array *squares = DIV(MUL(MUL(n, ADD(n, NUM(1))), ADD(ADD(n, n), NUM(1))), NUM(6));
    wb_array *sum = ADD(DIV(squares, SQUARE(W)), MAX(SUB(at->t, W), NUM(0)));
    return DIV(SQUARE(rising), sum);
}

#define DESC wb_schedule_free_desc
static wb_array *schedule_free(wb_rule_at *at) {
    wb_array *v = at->state[1] = AVERAGE(beta2, at->state[1], SQUARE(G));
    wb_array *root = SQRT(MUL(v, DIV(NUM(1), UNBIASED(beta2))));
    wb_array *u = ADD(DIV(G, ADD(root, S(epsilon))), MUL(X, S(lambda)));
    wb_array *rising = MIN(DIV(at->t, S(warm_up)), NUM(1));
    wb_array *c = share_of_step(at, rising);
    wb_array *z = at->state[0] = SUB(at->state[0], MUL(u, MUL(S(eta), rising)));
    wb_array *x = at->state[2] = ADD(MUL(at->state[2], SUB(NUM(1), c)), MUL(z, c));
    return SUB(X, ADD(MUL(z, REST(beta1)), MUL(x, S(beta1))));
}

static const wb_rule_row schedule_free_row = {
    .name = "ScheduleFreeAdamW",
    .settings = {RATE(eta),
                 FRACTION(beta1),
                 FRACTION(beta2),
                 RATE(epsilon),
                 RATE(lambda),
                 {"warm_up", WB_SETTING_COUNT, 1, offsetof(DESC, warm_up), NULL}},
    .states = {{"z", WB_START_X, NULL}, STATE(v), AVERAGE_OF_X},
    .step = schedule_free,
    .is_elementwise = true};

wb_rule wb_schedule_free_make(wb_schedule_free_desc desc) {
    return wb_rule_of_desc(&schedule_free_row, &desc);
}
#undef DESC

/* ---- the model ---- */

static wb_array *average_of(const wb_optimiser *o, const wb_member *member) {
    const wb_tie_group *group = &o->groups[member->group];
    const wb_rule *rule = wb_group_rule(o, group);
    int found = -1;
    for (int k = 0; k < wb_rule_states(rule); k++) {
        wb_rule_place place;
        if (strcmp(wb_rule_state_of(rule, k, &place)->name, "average") == 0) found = k;
    }
    wb_array *average = found < 0 ? NULL : wb_whole_state(o, group, found);
    if (!average || !member->is_view) return average;
    return wb_through_memory(*o->members[group->first].slot, average, *member->slot);
}

typedef struct averaging {
    const wb_optimiser *optimiser;
    int64_t found;
} averaging;

static wb_array *averaged(void *user, const char *path, wb_array *x) {
    averaging *a = user;
    const wb_optimiser *o = a->optimiser;
    (void)path;
    for (int64_t i = 0; i < o->member_count; i++) {
        wb_array *average = *o->members[i].slot == x ? average_of(o, &o->members[i]) : NULL;
        if (!average) continue;
        a->found++;
        return wb_data_copy(wb_cast(average, (wb_dtype)x->dtype));
    }
    return wb_data_copy(x);
}

wb_layer *wb_averaged(wb_optimiser *optimiser) {
    averaging a = {.optimiser = optimiser};
    if (!wb_optimiser_check("wb_averaged", optimiser)) return NULL;
    if (wb_optimiser_group(optimiser) != WB_OK) return NULL;
    wb_layer *model = wb_map(averaged, &a, optimiser->model);
    if (!model || a.found) return model;
    wb_free(model);
    return wb_fail_null(WB_ERROR_ARGUMENT,
                        "wb_averaged: no rule of the optimiser keeps an average: chain wb_ema() "
                        "or use wb_schedule_free()");
}
