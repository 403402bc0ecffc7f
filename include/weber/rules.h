/* weber/rules.h: the rules by which optimisers change parameters, and how to write one.
 *
 *     wb_optimiser *o = wb_setup(wb_rmsprop(.eta = 1e-3), model);
 *     wb_optimiser *p = wb_setup(wb_rule_chain(wb_momentum(), sign(0.01)), model);
 *
 * A rule is a plain value: rows, and numbers for their settings. A row says which settings and
 * states the rule has, and what it takes off a parameter, as an expression in operations:
 *
 *     typedef struct sign_desc {
 *         double eta;
 *     } sign_desc;
 *
 *     static wb_array *sign_step(wb_rule_at *at) { // x -= eta sign(g)
 *         return wb_mul(wb_sign(at->g), wb_setting(at, "eta"));
 *     }
 *     static const wb_rule_row sign_row = {
 *         .name = "Sign",
 *         .settings = {{"eta", WB_SETTING_RATE, .offset = offsetof(sign_desc, eta)}},
 *         .step = sign_step};
 *
 *     static wb_rule sign(double eta) { return wb_rule_make(&sign_row, &(sign_desc){eta}); }
 *
 * Such a rule is chained, saved, loaded, shown, moved and adjusted by name like the others. */
#ifndef WEBER_RULES_H
#define WEBER_RULES_H

#include "array.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rows ---- */

enum {
    WB_RULE_LINKS = 6,         /* rows of a chain */
    WB_RULE_STATES = 4,        /* arrays of state of a row */
    WB_RULE_SETTINGS = 8,      /* of a row */
    WB_RULE_ALL_SETTINGS = 24, /* of a chain */
    WB_RULE_ALL_STATES = 8,
    WB_RULE_TOLD = 4
};

typedef enum wb_setting_kind {
    WB_SETTING_RATE,     /* double, at least 0, finite */
    WB_SETTING_FRACTION, /* double, at least 0 and below 1 */
    WB_SETTING_NUMBER,   /* double, any but NaN */
    WB_SETTING_COUNT,    /* int64_t, at least 1 */
    WB_SETTING_FLAG      /* bool, false by default; the only kind whose change makes a new plan */
} wb_setting_kind;

typedef struct wb_rule_setting {
    const char *name; /* in files, for wb_adjust_named, and of the desc's member; NULL: none */
    wb_setting_kind kind;
    double fallback;  /* where the desc's member is 0; 0 where its maker writes the defaults */
    size_t offset;    /* of the desc's member */
    const char *flux; /* what wb_show calls it, as Flux does; "!name": its opposite; NULL: name */
} wb_rule_setting;

typedef enum wb_rule_start {
    WB_START_ZERO,
    WB_START_ONE,
    WB_START_X,      /* a copy of the parameter */
    WB_START_SETTING /* the value of the setting named by `setting` */
} wb_rule_start;

/* An array of the parameter's sizes; f32 for f16 and bf16 parameters, else of their type. */
typedef struct wb_rule_state {
    const char *name; /* NULL: none */
    wb_rule_start start;
    const char *setting;
} wb_rule_state;

/* One parameter at one step, as a row sees it. Arrays are recipes: nothing is computed while the
 * row's function runs, and it is called once for each plan, not in each step. It must not read a
 * value, and must depend on nothing but this struct. */
typedef struct wb_rule_at {
    wb_array *x; /* the parameter, f32 for f16 and bf16. A row may replace it, as weight decay does:
                    what the last row returns is subtracted from the x that the last row leaves */
    wb_array *g; /* the gradient, or what the row before has returned */
    wb_array *t; /* one number: this step's, from 1; a row may replace it for the next ones */
    wb_array *good; /* one bool: where it is false neither parameter nor state changes; a row may
                       replace it for the next ones */
    wb_array *state[WB_RULE_STATES]; /* replaced by their new values */
    /* Leave these alone: numbers for a backend that has the rule, by its row's name, as one loop
     * (weber/plugin.h). What stands here promises that the step is exactly that rule's. */
    wb_array *told[WB_RULE_TOLD];
    const void *link_;
} wb_rule_at;

/* Returns what is subtracted from x, which the next row gets as g: an array of x's sizes, or one
 * number. The states that it leaves have the sizes that they had, or are one number. NULL if an
 * operation has failed: the error then comes out of the update. */
typedef wb_array *wb_rule_step(wb_rule_at *at);

/* Rows, and all that they refer to, must be static: plans know a row by its address. */
typedef struct wb_rule_row {
    const char *name; /* in files, and for wb_show */
    wb_rule_setting settings[WB_RULE_SETTINGS];
    wb_rule_state states[WB_RULE_STATES];
    wb_rule_step *step;
    bool is_last; /* it takes what it is given as what x changes by: an error before another row */
    /* what it leaves at an element depends on that element alone, of x, g and states, and on
     * numbers: then .zero of wb_setup may cut arrays (others it leaves whole) */
    bool is_elementwise;
} wb_rule_row;

/* The setting s; _rest: 1 - s; _unbiased: 1 - s^t (for settings that are fractions): numbers, for
 * operations. An unknown name is an error. */
WB_API wb_array *wb_setting(const wb_rule_at *at, const char *name);
WB_API wb_array *wb_setting_rest(const wb_rule_at *at, const char *name);
WB_API wb_array *wb_setting_unbiased(const wb_rule_at *at, const char *name);
WB_API bool wb_setting_is(const wb_rule_at *at, const char *name); /* of a flag */

/* ---- rules ---- */

/* A plain value, made by the macros below. */
typedef struct wb_rule {
    const wb_rule_row *links[WB_RULE_LINKS]; /* in order; NULL after the last */
    double settings[WB_RULE_ALL_SETTINGS];   /* of the first link, then of the next one */
    uint32_t late;  /* bit by bit: settings that were adjusted, whose value is not part of a plan */
    bool is_broken; /* its maker has failed */
} wb_rule;

/* The rule of a row with the settings of its desc. */
WB_API wb_rule wb_rule_make(const wb_rule_row *row, const void *desc);

/* Several rules in order: each gets as its gradient what the one before would subtract from the
 * parameter. Fails for more than WB_RULE_LINKS rows; wb_setup then gives NULL. */
#define wb_rule_chain(...)                                                                         \
    wb_rule_chain_make((int64_t)(sizeof((wb_rule[]){__VA_ARGS__}) / sizeof(wb_rule)),              \
                       (wb_rule[]){__VA_ARGS__})
WB_API wb_rule wb_rule_chain_make(int64_t count, const wb_rule *rules);

/* The rules of Optimisers.jl. x parameter, g gradient, t step from 1. */
typedef struct wb_descent_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.1); /* learning rate */
} wb_descent_desc;
typedef struct wb_momentum_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.01);
    double rho WB_DEFAULT(0.9);
} wb_momentum_desc;
typedef struct wb_adam_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001);
    double beta1 WB_DEFAULT(0.9), beta2 WB_DEFAULT(0.999);
    double epsilon WB_DEFAULT(1e-8);
    double lambda;  /* decay. This and the next: wb_adamw only, else an error */
    bool decoupled; /* decays by lambda x instead of eta lambda x */
} wb_adam_desc;

/* x -= eta g */
#define wb_descent(...) WB_MAKE(wb_descent_make, descent, __VA_ARGS__)
WB_API wb_rule wb_descent_make(wb_descent_desc desc);

/* v = rho v + eta g;  x -= v. So a new eta (wb_adjust) applies to gradients from then on only;
 * PyTorch multiplies v by eta instead, so that a new one applies to all of v. */
#define wb_momentum(...) WB_MAKE(wb_momentum_make, momentum, __VA_ARGS__)
WB_API wb_rule wb_momentum_make(wb_momentum_desc desc);

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 * x -= eta m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)      (Kingma and Ba 2015)
 * wb_adamw also takes eta lambda x off (Loshchilov and Hutter 2019), or lambda x if decoupled. */
#define wb_adam(...)  WB_MAKE(wb_adam_make, adam, __VA_ARGS__)
#define wb_adamw(...) WB_MAKE(wb_adamw_make, adam, __VA_ARGS__)
WB_API wb_rule wb_adam_make(wb_adam_desc desc);
WB_API wb_rule wb_adamw_make(wb_adam_desc desc);

typedef struct wb_rmsprop_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001);
    double rho WB_DEFAULT(0.9);
    double epsilon WB_DEFAULT(1e-8);
    bool centred; /* the variance of g instead of the mean of its square */
} wb_rmsprop_desc;

/* quad = rho quad + (1 - rho) g^2;  lin = rho lin + (1 - rho) g, which only the centred one uses
 * x -= eta g / (sqrt(quad) + epsilon), or with quad - lin^2 in the root      (Tieleman and Hinton
 * 2012) */
#define wb_rmsprop(...) WB_MAKE(wb_rmsprop_make, rmsprop, __VA_ARGS__)
WB_API wb_rule wb_rmsprop_make(wb_rmsprop_desc desc);

typedef struct wb_nesterov_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001);
    double rho WB_DEFAULT(0.9);
} wb_nesterov_desc;
typedef struct wb_rprop_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001); /* where the sizes of steps start */
    double ell1 WB_DEFAULT(0.5), ell2
        WB_DEFAULT(1.2); /* factors where the sign of g turns, and where not */
    double gamma1 WB_DEFAULT(1e-6), gamma2 WB_DEFAULT(50); /* least and largest size */
} wb_rprop_desc;
typedef struct wb_adagrad_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.1);
    double epsilon WB_DEFAULT(1e-8);
} wb_adagrad_desc;
typedef struct wb_adadelta_desc {
    WB_START_MEMBER;
    double rho WB_DEFAULT(0.9);
    double epsilon WB_DEFAULT(1e-8);
} wb_adadelta_desc;
typedef struct wb_lion_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001);
    double beta1 WB_DEFAULT(0.9), beta2 WB_DEFAULT(0.99);
} wb_lion_desc;
typedef struct wb_decay_desc {
    WB_START_MEMBER;
    double lambda WB_DEFAULT(5e-4);
} wb_decay_desc;
typedef struct wb_sign_decay_desc {
    WB_START_MEMBER;
    double lambda WB_DEFAULT(1e-3);
} wb_sign_decay_desc;
typedef struct wb_clip_grad_desc {
    WB_START_MEMBER;
    double delta WB_DEFAULT(10);
} wb_clip_grad_desc;
typedef struct wb_clip_norm_desc {
    WB_START_MEMBER;
    double omega WB_DEFAULT(10);
    /* which norm; INFINITY: the largest |g|, -INFINITY: the smallest, 0: how many are not 0. A
     * setting to adjust unless it is 2 */
    double p WB_DEFAULT(2);
} wb_clip_norm_desc;
typedef struct wb_accum_grad_desc {
    WB_START_MEMBER;
    int64_t n WB_DEFAULT(1); /* at least 1 */
} wb_accum_grad_desc;

/* x -= (1 + rho) eta g - rho^2 v;  v = rho v - eta g, in this order */
#define wb_nesterov(...) WB_MAKE(wb_nesterov_make, nesterov, __VA_ARGS__)
WB_API wb_rule wb_nesterov_make(wb_nesterov_desc desc);

/* Each element has a step size of its own, which the signs of g change (Riedmiller and Braun 1993).
 * Sizes start with eta; the limits do not touch it before a sign agrees or turns, and adjusting eta
 * later changes nothing. */
#define wb_rprop(...) WB_MAKE(wb_rprop_make, rprop, __VA_ARGS__)
WB_API wb_rule wb_rprop_make(wb_rprop_desc desc);

typedef struct wb_oadam_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001);
    double beta1 WB_DEFAULT(0.5), beta2 WB_DEFAULT(0.9);
    double epsilon WB_DEFAULT(1e-8);
} wb_oadam_desc;
typedef struct wb_adabelief_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001);
    double beta1 WB_DEFAULT(0.9), beta2 WB_DEFAULT(0.999);
    double epsilon WB_DEFAULT(1e-16);
} wb_adabelief_desc;

/* Kin of Adam, with its m, v and, but for these two, defaults:
 *   wb_adamax    u = max(beta2 u, |g|) in place of the root, and epsilon beside it
 *                                                                         (Kingma and Ba 2015)
 *   wb_nadam     with Nesterov's momentum, as Flux has it                    (Dozat 2016)
 *   wb_radam     plain momentum until v can be trusted: while rho <= 4       (Liu and others 2020)
 *   wb_amsgrad   the largest v so far, no bias corrections, states from epsilon on
 *                                                               (Reddi and others 2018)
 *   wb_oadam     2 s - s_before, s Adam's step; beta 0.5, 0.9     (Daskalakis and others 2018)
 *   wb_adabelief v of g - m; epsilon 1e-16 in v, too              (Zhuang and others 2020) */
#define wb_adamax(...)    WB_MAKE(wb_adamax_make, adam, __VA_ARGS__)
#define wb_nadam(...)     WB_MAKE(wb_nadam_make, adam, __VA_ARGS__)
#define wb_radam(...)     WB_MAKE(wb_radam_make, adam, __VA_ARGS__)
#define wb_amsgrad(...)   WB_MAKE(wb_amsgrad_make, adam, __VA_ARGS__)
#define wb_oadam(...)     WB_MAKE(wb_oadam_make, oadam, __VA_ARGS__)
#define wb_adabelief(...) WB_MAKE(wb_adabelief_make, adabelief, __VA_ARGS__)
WB_API wb_rule wb_adamax_make(wb_adam_desc desc);
WB_API wb_rule wb_nadam_make(wb_adam_desc desc);
WB_API wb_rule wb_radam_make(wb_adam_desc desc);
WB_API wb_rule wb_amsgrad_make(wb_adam_desc desc);
WB_API wb_rule wb_oadam_make(wb_oadam_desc desc);
WB_API wb_rule wb_adabelief_make(wb_adabelief_desc desc);

/* acc += g^2, from epsilon on;  x -= eta g / (sqrt(acc) + epsilon)   (Duchi and others 2011) */
#define wb_adagrad(...) WB_MAKE(wb_adagrad_make, adagrad, __VA_ARGS__)
WB_API wb_rule wb_adagrad_make(wb_adagrad_desc desc);

/* acc = rho acc + (1 - rho) g^2;  u = g sqrt(delta + epsilon) / sqrt(acc + epsilon)
 * delta = rho delta + (1 - rho) u^2;  x -= u      (Zeiler 2012; there is no eta) */
#define wb_adadelta(...) WB_MAKE(wb_adadelta_make, adadelta, __VA_ARGS__)
WB_API wb_rule wb_adadelta_make(wb_adadelta_desc desc);

/* x -= eta sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g   (Chen and others 2023).
 * Optimisers.jl has the betas of m the other way round. */
#define wb_lion(...) WB_MAKE(wb_lion_make, lion, __VA_ARGS__)
WB_API wb_rule wb_lion_make(wb_lion_desc desc);

/* Rules for chains. Each changes the gradient g for the next rule; as the last rule of a
 * chain, or alone, it subtracts what it makes of g from the parameter.
 *   wb_weight_decay  g + lambda x            wb_sign_decay  g + lambda sign(x)
 *   wb_clip_grad     g between -delta and delta
 *   wb_clip_norm     g min(omega / |g|, 1), |g| the p-norm of this array alone, (sum |g|^p)^(1/p)
 *                    (wb_setup's clip_total_norm is the 2-norm of all). Where the 2-norm of an
 *                    array's gradient is not finite, the whole step is skipped, and counted by
 *                    wb_skipped, as with clip_total_norm
 *   wb_accum_grad    passes the mean of n gradients on at each n-th step; at the others neither
 *                    parameter nor the states of the rules after it change */
#define wb_weight_decay(...) WB_MAKE(wb_weight_decay_make, decay, __VA_ARGS__)
#define wb_sign_decay(...)   WB_MAKE(wb_sign_decay_make, sign_decay, __VA_ARGS__)
#define wb_clip_grad(...)    WB_MAKE(wb_clip_grad_make, clip_grad, __VA_ARGS__)
#define wb_clip_norm(...)    WB_MAKE(wb_clip_norm_make, clip_norm, __VA_ARGS__)
#define wb_accum_grad(...)   WB_MAKE(wb_accum_grad_make, accum_grad, __VA_ARGS__)
WB_API wb_rule wb_weight_decay_make(wb_decay_desc desc);
WB_API wb_rule wb_sign_decay_make(wb_sign_decay_desc desc);
WB_API wb_rule wb_clip_grad_make(wb_clip_grad_desc desc);
WB_API wb_rule wb_clip_norm_make(wb_clip_norm_desc desc);
WB_API wb_rule wb_accum_grad_make(wb_accum_grad_desc desc);

typedef struct wb_lamb_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.001);
    double beta1 WB_DEFAULT(0.9), beta2 WB_DEFAULT(0.999);
    double epsilon WB_DEFAULT(1e-6);
    double lambda; /* decay */
} wb_lamb_desc;

/* u = Adam's step without eta, and lambda x;  x -= eta u |x| / |u|, norms of the whole array, their
 * ratio 1 where one is 0      (You and others 2020) */
#define wb_lamb(...) WB_MAKE(wb_lamb_make, lamb, __VA_ARGS__)
WB_API wb_rule wb_lamb_make(wb_lamb_desc desc);

typedef struct wb_muon_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.02);
    double rho WB_DEFAULT(0.95); /* momentum */
    double lambda;               /* decay */
    bool as_adamw; /* steps as large as AdamW's: 0.2 sqrt(max(out, in)) in the place of the root */
} wb_muon_desc;

/* For matrices (out, in) and convolutions, as (k in, out); others have a rule of their own
 * (wb_setup's .paths), or the first step fails:
 *   b = rho b + g;  u = g + rho b, divided by its length, with its singular values brought near 1
 *   x -= eta lambda x + eta sqrt(max(1, out / in)) u      (Jordan and others 2024) */
#define wb_muon(...) WB_MAKE(wb_muon_make, muon, __VA_ARGS__)
WB_API wb_rule wb_muon_make(wb_muon_desc desc);

/* The rule on a copy of the parameter in f32 (the state "master"); an f16 or bf16 parameter is its
 * rounded value, so that steps that are too small for its digits add up (Micikevicius and others
 * 2018). It goes around the whole rule; inside of a chain it is an error. If you set the parameter,
 * set "master", too (wb_optimiser_set), or the next step brings the old value back. */
WB_API wb_rule wb_mixed_precision(wb_rule rule);

/* ---- averages of parameters ---- */

typedef struct wb_ema_desc {
    WB_START_MEMBER;
    double decay WB_DEFAULT(0.999);
} wb_ema_desc;

/* average = decay average + (1 - decay) x, where x is the parameter after the step; before the
 * first step the average is the parameter. The last rule of a chain: wb_rule_chain(wb_adam(),
 * wb_ema()). wb_averaged gives the model. */
#define wb_ema(...) WB_MAKE(wb_ema_make, ema, __VA_ARGS__)
WB_API wb_rule wb_ema_make(wb_ema_desc desc);

typedef struct wb_schedule_free_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.0025); /* stays the same */
    double beta1 WB_DEFAULT(0.9), beta2 WB_DEFAULT(0.999);
    double epsilon WB_DEFAULT(1e-8);
    double lambda;   /* decay */
    int64_t warm_up; /* steps in which the rate rises from 0; 0 and 1: none */
} wb_schedule_free_desc;

/* AdamW that needs no schedule, since the model to use is an average. Gradients are taken at the
 * parameter y; wb_averaged gives the model with x:
 *   u = g / (sqrt(v / (1 - beta2^t)) + epsilon) + lambda y;  z -= r u, r = eta min(1, t / warm_up)
 *   x = (1 - c) x + c z, c = r^2 / sum of all r^2;  y = (1 - beta1) z + beta1 x
 * (Defazio and others 2024). Statistics of BatchNorm are of the model with y. */
#define wb_schedule_free(...) WB_MAKE(wb_schedule_free_make, schedule_free, __VA_ARGS__)
WB_API wb_rule wb_schedule_free_make(wb_schedule_free_desc desc);

#ifdef __cplusplus
}
#endif
#endif
