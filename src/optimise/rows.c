/* The rows of weber/rules.h. Settings stand in the order in which files have them. */
#include <weber/rules.h>

#include "ops/build.h"

#define X              at->x
#define G              at->g
#define S(name)        wb_setting(at, #name)
#define REST(name)     wb_setting_rest(at, #name)     /* 1 - name */
#define UNBIASED(name) wb_setting_unbiased(at, #name) /* 1 - name^t */

/* Rows of settings over the desc named DESC. */
#define RATE(name, value)                                                                          \
    { #name, WB_SETTING_RATE, value, offsetof(DESC, name), NULL }
#define FRACTION(name, value)                                                                      \
    { #name, WB_SETTING_FRACTION, value, offsetof(DESC, name), NULL }
#define STATE(name)                                                                                \
    { #name, WB_START_ZERO, NULL }
#define FLAG(name, flux)                                                                           \
    { #name, WB_SETTING_FLAG, 0, offsetof(DESC, name), flux }

/* decay old + (1 - decay) new */
#define AVERAGE(decay, old, new) ADD(MUL(old, S(decay)), MUL(new, REST(decay)))

/* ---- descent ---- */

#define DESC wb_descent_desc
static wb_array *descent(wb_rule_at *at) { return MUL(G, S(eta)); }

static const wb_rule_row descent_row = {
    .name = "Descent", .settings = {RATE(eta, 0.1)}, .step = descent};

wb_rule wb_descent_make(wb_descent_desc desc) { return wb_rule_make(&descent_row, &desc); }
#undef DESC

#define DESC wb_momentum_desc
static wb_array *momentum(wb_rule_at *at) {
    return at->state[0] = ADD(MUL(at->state[0], S(rho)), MUL(G, S(eta)));
}

static const wb_rule_row momentum_row = {.name = "Momentum",
                                         .settings = {RATE(eta, 0.01), FRACTION(rho, 0.9)},
                                         .states = {STATE(v)},
                                         .step = momentum};

wb_rule wb_momentum_make(wb_momentum_desc desc) { return wb_rule_make(&momentum_row, &desc); }
#undef DESC

/* ---- Adam and its kin ---- */

#define DESC wb_adam_desc
#define ADAM_SETTINGS                                                                              \
    RATE(eta, 0.001), FRACTION(beta1, 0.9), FRACTION(beta2, 0.999), RATE(epsilon, 1e-8)

/* Numbers that are the same for all elements are computed once, in f64 where there is that. */
static wb_array *adam(wb_rule_at *at) {
    wb_array *m = at->state[0] = AVERAGE(beta1, at->state[0], G);
    wb_array *v = at->state[1] = AVERAGE(beta2, at->state[1], SQUARE(G));
    wb_array *rate = DIV(S(eta), UNBIASED(beta1)), *correction = DIV(NUM(1), UNBIASED(beta2));
    at->told[0] = rate, at->told[1] = correction;
    return DIV(MUL(m, rate), ADD(SQRT(MUL(v, correction)), S(epsilon)));
}

static const wb_rule_row adam_row = {
    .name = "Adam", .settings = {ADAM_SETTINGS}, .states = {STATE(m), STATE(v)}, .step = adam};

wb_rule wb_adam_make(wb_adam_desc desc) { return wb_rule_make(&adam_row, &desc); }

static wb_array *adamw(wb_rule_at *at) {
    wb_array *step = adam(at);
    wb_array *decay = wb_setting_is(at, "decoupled") ? S(lambda) : MUL(S(eta), S(lambda));
    X = SUB(X, MUL(X, decay));
    at->told[2] = decay;
    return step;
}

static const wb_rule_row adamw_row = {
    .name = "AdamW",
    .settings = {ADAM_SETTINGS, RATE(lambda, 0), FLAG(decoupled, "!couple")},
    .states = {STATE(m), STATE(v)},
    .step = adamw};

wb_rule wb_adamw_make(wb_adam_desc desc) { return wb_rule_make(&adamw_row, &desc); }
#undef DESC

/* ---- steps by the size of the gradient ---- */

#define DESC wb_rmsprop_desc
static wb_array *rmsprop(wb_rule_at *at) {
    wb_array *quad = at->state[0] = AVERAGE(rho, at->state[0], SQUARE(G));
    if (wb_setting_is(at, "centred")) {
        wb_array *lin = at->state[1] = AVERAGE(rho, at->state[1], G);
        quad = MAX(SUB(quad, SQUARE(lin)), NUM(0)); /* rounding may take it below */
    }
    return DIV(MUL(G, S(eta)), ADD(SQRT(quad), S(epsilon)));
}

static const wb_rule_row rmsprop_row = {
    .name = "RMSProp",
    .settings = {RATE(eta, 0.001), FRACTION(rho, 0.9), RATE(epsilon, 1e-8), FLAG(centred, NULL)},
    .states = {STATE(quad), STATE(lin)},
    .step = rmsprop};

wb_rule wb_rmsprop_make(wb_rmsprop_desc desc) { return wb_rule_make(&rmsprop_row, &desc); }
#undef DESC
