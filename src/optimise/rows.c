/* The rows of weber/rules.h. Settings are in the order in which files have them. */
#include <weber/rules.h>

#include <math.h>

#include "base/error.h"
#include "optimise/gradients.h"
#include "optimise/row.h"
#include "optimise/rules.h"

/* ---- descent ---- */

#define DESC wb_descent_desc
static wb_array *descent(wb_rule_at *at) { return MUL(G, S(eta)); }

static const wb_rule_row descent_row = {
    .name = "Descent", .settings = {RATE(eta)}, .step = descent, .is_elementwise = true};

wb_rule wb_descent_make(wb_descent_desc desc) { return wb_rule_of_desc(&descent_row, &desc); }
#undef DESC

#define DESC wb_momentum_desc
static wb_array *momentum(wb_rule_at *at) {
    return at->state[0] = ADD(MUL(at->state[0], S(rho)), MUL(G, S(eta)));
}

static const wb_rule_row momentum_row = {.name = "Momentum",
                                         .settings = {RATE(eta), FRACTION(rho)},
                                         .states = {STATE(v)},
                                         .step = momentum,
                                         .is_elementwise = true};

wb_rule wb_momentum_make(wb_momentum_desc desc) { return wb_rule_of_desc(&momentum_row, &desc); }
#undef DESC

/* ---- Adam and its variants ---- */

#define DESC          wb_adam_desc
#define ADAM_SETTINGS RATE(eta), FRACTION(beta1), FRACTION(beta2), RATE(epsilon)

/* States 0 and 1 become the averages of g and of its square. */
static void average_moments(wb_rule_at *at) {
    at->state[0] = AVERAGE(beta1, at->state[0], G);
    at->state[1] = AVERAGE(beta2, at->state[1], SQUARE(G));
}

/* Numbers that are the same for all elements are computed once, in f64 if the device has it. */
static wb_array *adam(wb_rule_at *at) {
    average_moments(at);
    wb_array *m = at->state[0], *v = at->state[1];
    wb_array *rate = DIV(S(eta), UNBIASED(beta1)), *correction = DIV(NUM(1), UNBIASED(beta2));
    at->told[0] = rate, at->told[1] = correction;
    return DIV(MUL(m, rate), ADD(SQRT(MUL(v, correction)), S(epsilon)));
}

static const wb_rule_row adam_row = {.name = "Adam",
                                     .settings = {ADAM_SETTINGS},
                                     .states = {STATE(m), STATE(v)},
                                     .step = adam,
                                     .is_elementwise = true};

/* The rule of a row that has neither lambda nor decoupled. */
static wb_rule without_decay(const wb_rule_row *row, const wb_adam_desc *desc) {
    if (desc->lambda == 0 && !desc->decoupled) return wb_rule_of_desc(row, desc);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: has no lambda and no decoupled: use wb_adamw, or chain wb_weight_decay",
                  row->name);
    return (wb_rule){.is_broken = true};
}

wb_rule wb_adam_make(wb_adam_desc desc) { return without_decay(&adam_row, &desc); }

static wb_array *adamw(wb_rule_at *at) {
    wb_array *step = adam(at);
    wb_array *decay = wb_setting_is(at, "decoupled") ? S(lambda) : MUL(S(eta), S(lambda));
    X = SUB(X, MUL(X, decay));
    at->told[2] = decay;
    return step;
}

static const wb_rule_row adamw_row = {
    .name = "AdamW",
    .settings = {ADAM_SETTINGS, RATE(lambda), FLAG(decoupled, "!couple")},
    .states = {STATE(m), STATE(v)},
    .step = adamw,
    .is_elementwise = true};

wb_rule wb_adamw_make(wb_adam_desc desc) { return wb_rule_of_desc(&adamw_row, &desc); }
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
    .settings = {RATE(eta), FRACTION(rho), RATE(epsilon), FLAG(centred, NULL)},
    .states = {STATE(quad), STATE(lin)},
    .step = rmsprop,
    .is_elementwise = true};

wb_rule wb_rmsprop_make(wb_rmsprop_desc desc) { return wb_rule_of_desc(&rmsprop_row, &desc); }
#undef DESC

#define DESC wb_adagrad_desc
static wb_array *adagrad(wb_rule_at *at) {
    wb_array *acc = at->state[0] = ADD(at->state[0], SQUARE(G));
    return DIV(MUL(G, S(eta)), ADD(SQRT(acc), S(epsilon)));
}

static const wb_rule_row adagrad_row = {.name = "AdaGrad",
                                        .settings = {RATE(eta), RATE(epsilon)},
                                        .states = {STATE_FROM(acc, epsilon)},
                                        .step = adagrad,
                                        .is_elementwise = true};

wb_rule wb_adagrad_make(wb_adagrad_desc desc) { return wb_rule_of_desc(&adagrad_row, &desc); }
#undef DESC

#define DESC wb_adadelta_desc
static wb_array *adadelta(wb_rule_at *at) {
    wb_array *acc = at->state[0] = AVERAGE(rho, at->state[0], SQUARE(G));
    wb_array *size = SQRT(ADD(at->state[1], S(epsilon))); /* of steps so far */
    wb_array *u = DIV(MUL(G, size), SQRT(ADD(acc, S(epsilon))));
    at->state[1] = AVERAGE(rho, at->state[1], SQUARE(u));
    return u;
}

static const wb_rule_row adadelta_row = {.name = "AdaDelta",
                                         .settings = {FRACTION(rho), RATE(epsilon)},
                                         .states = {STATE(acc), STATE(delta)},
                                         .step = adadelta,
                                         .is_elementwise = true};

wb_rule wb_adadelta_make(wb_adadelta_desc desc) { return wb_rule_of_desc(&adadelta_row, &desc); }
#undef DESC

#define DESC wb_rprop_desc
static wb_array *rprop(wb_rule_at *at) {
    wb_array *agreed = MUL(G, at->state[0]), *size = at->state[1];
    wb_array *grown = MIN(MUL(size, S(ell2)), S(gamma2));
    wb_array *shrunk = MAX(MUL(size, S(ell1)), S(gamma1));
    size = SELECT(GT(agreed, NUM(0)), grown, SELECT(LT(agreed, NUM(0)), shrunk, size));
    at->state[0] = SELECT(LT(agreed, NUM(0)), NUM(0), G);
    at->state[1] = size;
    return MUL(size, SIGN(at->state[0]));
}

static const wb_rule_row rprop_row = {
    .name = "Rprop",
    .settings = {RATE(eta), RATE(ell1), RATE(ell2), RATE(gamma1), RATE(gamma2)},
    .states = {STATE(g), STATE_FROM(size, eta)},
    .step = rprop,
    .is_elementwise = true};

wb_rule wb_rprop_make(wb_rprop_desc desc) {
    if (!(desc.gamma1 > desc.gamma2)) return wb_rule_of_desc(&rprop_row, &desc);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "Rprop: gamma1, the least size, must be at most gamma2, got %g and %g",
                  desc.gamma1, desc.gamma2);
    return (wb_rule){.is_broken = true};
}
#undef DESC

#define DESC wb_nesterov_desc
static wb_array *nesterov(wb_rule_at *at) {
    wb_array *v = at->state[0], *step = MUL(G, S(eta)), *rho = S(rho);
    at->state[0] = SUB(MUL(v, rho), step);
    return SUB(MUL(step, ADD(NUM(1), rho)), MUL(v, SQUARE(rho)));
}

static const wb_rule_row nesterov_row = {.name = "Nesterov",
                                         .settings = {RATE(eta), FRACTION(rho)},
                                         .states = {STATE(v)},
                                         .step = nesterov,
                                         .is_elementwise = true};

wb_rule wb_nesterov_make(wb_nesterov_desc desc) { return wb_rule_of_desc(&nesterov_row, &desc); }
#undef DESC

#define DESC wb_lion_desc
static wb_array *lion(wb_rule_at *at) {
    wb_array *m = at->state[0];
    at->state[0] = AVERAGE(beta2, m, G);
    return MUL(SIGN(AVERAGE(beta1, m, G)), S(eta));
}

static const wb_rule_row lion_row = {.name = "Lion",
                                     .settings = {RATE(eta), FRACTION(beta1), FRACTION(beta2)},
                                     .states = {STATE(m)},
                                     .step = lion,
                                     .is_elementwise = true};

wb_rule wb_lion_make(wb_lion_desc desc) { return wb_rule_of_desc(&lion_row, &desc); }
#undef DESC

/* ---- more variants of Adam ---- */

#define DESC wb_adam_desc
static wb_array *adamax(wb_rule_at *at) {
    wb_array *m = at->state[0] = AVERAGE(beta1, at->state[0], G);
    wb_array *u = at->state[1] = MAX(MUL(at->state[1], S(beta2)), ABS(G));
    return DIV(MUL(m, DIV(S(eta), UNBIASED(beta1))), ADD(u, S(epsilon)));
}

static const wb_rule_row adamax_row = {.name = "AdaMax",
                                       .settings = {ADAM_SETTINGS},
                                       .states = {STATE(m), STATE(u)},
                                       .step = adamax,
                                       .is_elementwise = true};

wb_rule wb_adamax_make(wb_adam_desc desc) { return without_decay(&adamax_row, &desc); }

/* 1 - beta^(t + 1) = 1 - beta + beta (1 - beta^t) */
static wb_array *nadam(wb_rule_at *at) {
    average_moments(at);
    wb_array *m = at->state[0], *v = at->state[1];
    wb_array *now = UNBIASED(beta1), *next = ADD(REST(beta1), MUL(S(beta1), now));
    wb_array *mean = ADD(MUL(m, DIV(S(beta1), next)), MUL(G, DIV(REST(beta1), now)));
    wb_array *correction = DIV(S(beta2), UNBIASED(beta2));
    return DIV(MUL(mean, S(eta)), ADD(SQRT(MUL(v, correction)), S(epsilon)));
}

static const wb_rule_row nadam_row = {.name = "NAdam",
                                      .settings = {ADAM_SETTINGS},
                                      .states = {STATE(m), STATE(v)},
                                      .step = nadam,
                                      .is_elementwise = true};

wb_rule wb_nadam_make(wb_adam_desc desc) { return without_decay(&nadam_row, &desc); }

/* rho = last - 2 t beta2^t / (1 - beta2^t), last = 2 / (1 - beta2) - 1 */
static wb_array *radam(wb_rule_at *at) {
    wb_array *step = adam(at), *last = SUB(DIV(NUM(2), REST(beta2)), NUM(1));
    wb_array *unbiased = UNBIASED(beta2), *power = SUB(NUM(1), unbiased);
    wb_array *rho = SUB(last, DIV(MUL(MUL(NUM(2), at->t), power), unbiased));
    wb_array *top = MUL(MUL(SUB(rho, NUM(4)), SUB(rho, NUM(2))), last);
    wb_array *below = MUL(MUL(SUB(last, NUM(4)), SUB(last, NUM(2))), rho);
    wb_array *trusted = GT(rho, NUM(4)), *scale = SQRT(MAX(DIV(top, below), NUM(0)));
    return SELECT(trusted, MUL(step, scale), MUL(at->state[0], DIV(S(eta), UNBIASED(beta1))));
}

static const wb_rule_row radam_row = {.name = "RAdam",
                                      .settings = {ADAM_SETTINGS},
                                      .states = {STATE(m), STATE(v)},
                                      .step = radam,
                                      .is_elementwise = true};

wb_rule wb_radam_make(wb_adam_desc desc) { return without_decay(&radam_row, &desc); }

static wb_array *amsgrad(wb_rule_at *at) {
    average_moments(at);
    wb_array *m = at->state[0], *v = at->state[1];
    wb_array *most = at->state[2] = MAX(at->state[2], v);
    return DIV(MUL(m, S(eta)), ADD(SQRT(most), S(epsilon)));
}

static const wb_rule_row amsgrad_row = {
    .name = "AMSGrad",
    .settings = {ADAM_SETTINGS},
    .states = {STATE_FROM(m, epsilon), STATE_FROM(v, epsilon), STATE_FROM(most, epsilon)},
    .step = amsgrad,
    .is_elementwise = true};

wb_rule wb_amsgrad_make(wb_adam_desc desc) { return without_decay(&amsgrad_row, &desc); }

#undef DESC
#define DESC wb_oadam_desc
static wb_array *oadam(wb_rule_at *at) {
    wb_array *before = at->state[2];
    wb_array *step = at->state[2] = adam(at);
    return SUB(MUL(step, NUM(2)), before);
}

static const wb_rule_row oadam_row = {.name = "OAdam",
                                      .settings = {ADAM_SETTINGS},
                                      .states = {STATE(m), STATE(v), STATE(step)},
                                      .step = oadam,
                                      .is_elementwise = true};

wb_rule wb_oadam_make(wb_oadam_desc desc) { return wb_rule_of_desc(&oadam_row, &desc); }
#undef DESC

#define DESC wb_adabelief_desc
static wb_array *adabelief(wb_rule_at *at) {
    wb_array *m = at->state[0] = AVERAGE(beta1, at->state[0], G);
    wb_array *s = ADD(AVERAGE(beta2, at->state[1], SQUARE(SUB(G, m))), S(epsilon));
    at->state[1] = s;
    wb_array *rate = DIV(S(eta), UNBIASED(beta1)), *correction = DIV(NUM(1), UNBIASED(beta2));
    return DIV(MUL(m, rate), ADD(SQRT(MUL(s, correction)), S(epsilon)));
}

static const wb_rule_row adabelief_row = {
    .name = "AdaBelief",
    .settings = {RATE(eta), FRACTION(beta1), FRACTION(beta2), RATE(epsilon)},
    .states = {STATE(m), STATE(s)},
    .step = adabelief,
    .is_elementwise = true};

wb_rule wb_adabelief_make(wb_adabelief_desc desc) { return wb_rule_of_desc(&adabelief_row, &desc); }
#undef DESC

#define DESC wb_lamb_desc
static wb_array *norm_of(wb_array *x) { return SQRT(wb_sum(SQUARE(x))); }

static wb_array *lamb(wb_rule_at *at) {
    average_moments(at);
    wb_array *m = at->state[0], *v = at->state[1];
    wb_array *mean = MUL(m, DIV(NUM(1), UNBIASED(beta1)));
    wb_array *root = SQRT(MUL(v, DIV(NUM(1), UNBIASED(beta2))));
    wb_array *u = ADD(DIV(mean, ADD(root, S(epsilon))), MUL(X, S(lambda)));
    wb_array *size = norm_of(X), *of_step = norm_of(u);
    wb_array *both = GT(MUL(size, of_step), NUM(0));
    return MUL(u, MUL(SELECT(both, DIV(size, of_step), NUM(1)), S(eta)));
}

static const wb_rule_row lamb_row = {
    .name = "Lamb",
    .settings = {RATE(eta), FRACTION(beta1), FRACTION(beta2), RATE(epsilon), RATE(lambda)},
    .states = {STATE(m), STATE(v)},
    .step = lamb};

wb_rule wb_lamb_make(wb_lamb_desc desc) { return wb_rule_of_desc(&lamb_row, &desc); }
#undef DESC

/* ---- links of chains ---- */

#define DESC wb_decay_desc
static wb_array *weight_decay(wb_rule_at *at) { return ADD(G, MUL(X, S(lambda))); }

static const wb_rule_row weight_decay_row = {.name = "WeightDecay",
                                             .settings = {RATE(lambda)},
                                             .step = weight_decay,
                                             .is_elementwise = true};

wb_rule wb_weight_decay_make(wb_decay_desc desc) {
    return wb_rule_of_desc(&weight_decay_row, &desc);
}

static wb_array *sign_decay(wb_rule_at *at) { return ADD(G, MUL(SIGN(X), S(lambda))); }

static const wb_rule_row sign_decay_row = {
    .name = "SignDecay", .settings = {RATE(lambda)}, .step = sign_decay, .is_elementwise = true};

wb_rule wb_sign_decay_make(wb_sign_decay_desc desc) {
    return wb_rule_of_desc(&sign_decay_row, &desc);
}
#undef DESC

#define DESC wb_clip_grad_desc
static wb_array *clip_grad(wb_rule_at *at) { return MAX(MIN(G, S(delta)), NEG(S(delta))); }

static const wb_rule_row clip_grad_row = {
    .name = "ClipGrad", .settings = {RATE(delta)}, .step = clip_grad, .is_elementwise = true};

wb_rule wb_clip_grad_make(wb_clip_grad_desc desc) { return wb_rule_of_desc(&clip_grad_row, &desc); }
#undef DESC

#define DESC wb_clip_norm_desc
/* The optimiser skips the step where the norm of a gradient is not finite. An earlier rule may make
 * the gradient infinite all the same: then parameter and later states stay as they are. */
static wb_array *clip_to(wb_rule_at *at, wb_array *norm) {
    at->good = AND(at->good, EQ(SUB(norm, norm), NUM(0)));
    return wb_shortened(G, norm, S(omega));
}

static wb_array *clip_norm(wb_rule_at *at) { return clip_to(at, wb_norm(G, 2)); }

static const wb_rule_row clip_norm_row = {
    .name = "ClipNorm", .settings = {RATE(omega)}, .step = clip_norm};

/* p is a late number once it is adjusted, so the kind of norm is chosen on the device. */
static wb_array *clip_p_norm(wb_rule_at *at) {
    wb_array *p = S(p), *size = ABS(G);
    wb_array *count = wb_sum(wb_cast(NE(G, NUM(0)), (wb_dtype)G->dtype));
    wb_array *most = wb_maximum(size), *least = wb_minimum(size);
    /* of the ratios to it the powers are at most 1 */
    wb_array *unit = SELECT(GT(p, NUM(0)), most, least);
    wb_array *is_number = AND(GT(unit, NUM(0)), LT(unit, NUM((double)INFINITY)));
    unit = SELECT(is_number, unit, NUM(1));
    wb_array *norm = MUL(unit, POW(wb_sum(POW(DIV(size, unit), p)), DIV(NUM(1), p)));
    norm = SELECT(EQ(p, NUM(0)), count, norm);
    norm = SELECT(EQ(p, NUM((double)INFINITY)), most, norm);
    return clip_to(at, SELECT(EQ(p, NUM(-(double)INFINITY)), least, norm));
}

static const wb_rule_row clip_p_norm_row = {
    .name = "ClipNorm",
    .settings = {RATE(omega), {"p", WB_SETTING_NUMBER, 0, offsetof(DESC, p), NULL}},
    .step = clip_p_norm};

bool wb_rule_clips_norm(const wb_rule *rule) {
    bool found = false;
    for (int i = 0; i < WB_RULE_LINKS && rule->links[i]; i++)
        found = found || rule->links[i] == &clip_norm_row || rule->links[i] == &clip_p_norm_row;
    return found;
}

wb_rule wb_clip_norm_make(wb_clip_norm_desc desc) {
    const bool is_usual = desc.p == 2;
    return wb_rule_of_desc(is_usual ? &clip_norm_row : &clip_p_norm_row, &desc);
}
#undef DESC

/* The rules after it in a chain see n steps as one. */
#define DESC wb_accum_grad_desc
static wb_array *accum_grad(wb_rule_at *at) {
    wb_array *n = S(n), *place = wb_mod(at->t, n); /* 1, 2, ..., 0 */
    wb_array *share = DIV(G, n);
    wb_array *sum = at->state[0] = SELECT(EQ(place, NUM(1)), share, ADD(at->state[0], share));
    at->good = AND(at->good, wb_cast(EQ(place, NUM(0)), WB_BOOL)); /* not a number any more */
    at->t = FLOOR(DIV(at->t, n));
    return sum;
}

static const wb_rule_row accum_grad_row = {
    .name = "AccumGrad",
    .settings = {{"n", WB_SETTING_COUNT, 0, offsetof(DESC, n), NULL}},
    .states = {STATE(sum)},
    .step = accum_grad,
    .is_elementwise = true};

wb_rule wb_accum_grad_make(wb_accum_grad_desc desc) {
    return wb_rule_of_desc(&accum_grad_row, &desc);
}
#undef DESC
