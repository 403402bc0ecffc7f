/* Rules and their defaults. */
#include <math.h>

#include "optimise/optimiser.h"

/* 0 is not given; WB_ZERO, which has the sign, is 0. */
static double or_else(double value, double otherwise) {
    if (value != 0) return value;
    return signbit(value) ? 0 : otherwise;
}

wb_rule wb_descent_make(wb_descent_desc desc) {
    return (wb_rule){.kind = WB_DESCENT, .eta = or_else(desc.eta, 0.1)};
}

wb_rule wb_momentum_make(wb_momentum_desc desc) {
    return (wb_rule){
        .kind = WB_MOMENTUM, .eta = or_else(desc.eta, 0.01), .rho = or_else(desc.rho, 0.9)};
}

wb_rule wb_adam_make(wb_adam_desc desc) {
    return (wb_rule){.kind = WB_ADAM,
                     .eta = or_else(desc.eta, 0.001),
                     .beta1 = or_else(desc.beta1, 0.9),
                     .beta2 = or_else(desc.beta2, 0.999),
                     .epsilon = or_else(desc.epsilon, 1e-8)};
}

wb_rule wb_adamw_make(wb_adam_desc desc) {
    wb_rule rule = wb_adam_make(desc);
    rule.kind = WB_ADAMW;
    rule.lambda = or_else(desc.lambda, 0);
    rule.decoupled = desc.decoupled;
    return rule;
}

#define REAL(field) WB_SAVED_FIELD(wb_rule, field, WB_SAVED_REAL)
static const wb_saved_number descent[] = {REAL(eta)}, momentum[] = {REAL(eta), REAL(rho)},
                             adam[] = {REAL(eta), REAL(beta1), REAL(beta2), REAL(epsilon)},
                             adamw[] = {
                                 REAL(eta),    REAL(beta1),
                                 REAL(beta2),  REAL(epsilon),
                                 REAL(lambda), WB_SAVED_FIELD(wb_rule, decoupled, WB_SAVED_BOOL)};
#undef REAL

static const wb_rule_row rows[] = {
    [WB_DESCENT] = {"Descent", {NULL}, descent, 1},
    [WB_MOMENTUM] = {"Momentum", {"v"}, momentum, 2},
    [WB_ADAM] = {"Adam", {"m", "v"}, adam, 4},
    [WB_ADAMW] = {"AdamW", {"m", "v"}, adamw, 6},
};

const wb_rule_row *wb_rule_row_of(const wb_rule *rule) { return &rows[rule->kind]; }

int wb_rule_states(const wb_rule *rule) {
    int count = 0;
    while (count < WB_MAX_STATES && rows[rule->kind].states[count]) count++;
    return count;
}

wb_status wb_rule_check(const char *function, const wb_rule *rule) {
    if (!(rule->eta >= 0))
        return wb_fail(WB_ERROR_ARGUMENT, "%s: the learning rate %g is negative", function,
                       rule->eta);
    if (!(rule->rho >= 0 && rule->rho < 1) || !(rule->beta1 >= 0 && rule->beta1 < 1) ||
        !(rule->beta2 >= 0 && rule->beta2 < 1))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: rho %g, beta1 %g, beta2 %g: each is at least 0 and below 1", function,
                       rule->rho, rule->beta1, rule->beta2);
    if (!(rule->epsilon >= 0) || !(rule->lambda >= 0))
        return wb_fail(WB_ERROR_ARGUMENT, "%s: epsilon %g and lambda %g are not negative", function,
                       rule->epsilon, rule->lambda);
    return WB_OK;
}
