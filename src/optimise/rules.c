/* Rules and their defaults. */
#include "optimise/optimiser.h"

static double or_else(double value, double otherwise) { return value != 0 ? value : otherwise; }

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
    rule.lambda = desc.lambda;
    rule.decoupled = desc.decoupled;
    return rule;
}

int wb_rule_states(const wb_rule *rule) {
    switch (rule->kind) {
    case WB_DESCENT:
        return 0;
    case WB_MOMENTUM:
        return 1;
    case WB_ADAM:
    case WB_ADAMW:
        return 2;
    }
    return 0;
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
