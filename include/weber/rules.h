/* weber/rules.h: the rules by which optimisers change parameters, and how to write one.
 *
 *     wb_optimiser *o = wb_setup(wb_rmsprop(.eta = 1e-3), model);
 *     wb_optimiser *p = wb_setup(wb_rule_chain(wb_momentum(), sign(0.01)), model);
 *
 * A rule is a plain value: rows, and numbers for their settings. A row says which settings and
 * states the rule has, and what it subtracts from a parameter, as a function that calls operations:
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
    const char *name; /* in files, for wb_adjust_named, and the desc's member; NULL: none */
    wb_setting_kind kind;
    double fallback; /* value if the desc's member is 0; 0 if its maker sets the defaults */
    size_t offset;   /* of the desc's member */
    /* in wb_show, as in Flux: a name; "!name": a flag that is its negation; NULL: `name` */
    const char *flux;
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

/* One parameter at one step: the argument of a row's function. Arrays are recipes: nothing is
 * computed while the function runs, and it is called once for each plan, not in each step. It must
 * not read a value, and may use nothing but this struct. */
typedef struct wb_rule_at {
    wb_array *x; /* the parameter, f32 for f16 and bf16. A row may replace it, as weight decay does:
                    the last row's result is subtracted from x as that row left it */
    wb_array *g; /* the gradient, or the result of the row before */
    wb_array *t; /* the step's number, from 1; a row may replace it for the next rows */
    wb_array *good; /* one bool: if false, neither parameter nor state changes; a row may replace
                       it for the next rows */
    wb_array *state[WB_RULE_STATES]; /* the row replaces them by their new values */
    /* Do not set these. The library's own rows put numbers here for a backend that computes the
     * rule with this row's name in one loop (weber/plugin.h). */
    wb_array *told[WB_RULE_TOLD];
    const void *link_;
} wb_rule_at;

/* Returns what is to be subtracted from x, and what the next row gets as g: an array of x's sizes,
 * or one number. New states have the sizes of the old ones, or are one number. Returns NULL if an
 * operation has failed: the update then fails with that error. */
typedef wb_array *wb_rule_step(wb_rule_at *at);

/* Rows, and everything that they point to, must be static: plans identify a row by its address. */
typedef struct wb_rule_row {
    const char *name; /* in files, and for wb_show */
    wb_rule_setting settings[WB_RULE_SETTINGS];
    wb_rule_state states[WB_RULE_STATES];
    wb_rule_step *step;
    bool is_last; /* it uses g as the change of x: an error if another row follows */
    /* each element of its results depends only on the same element of x, g and states, and on
     * numbers: then .zero of wb_setup may divide arrays among ranks */
    bool is_elementwise;
} wb_rule_row;

/* The value s of a setting, as a number for operations; _rest: 1 - s; _unbiased: 1 - s^t, for
 * settings that are fractions. An unknown name is an error. */
WB_API wb_array *wb_setting(const wb_rule_at *at, const char *name);
WB_API wb_array *wb_setting_rest(const wb_rule_at *at, const char *name);
WB_API wb_array *wb_setting_unbiased(const wb_rule_at *at, const char *name);
WB_API bool wb_setting_is(const wb_rule_at *at, const char *name); /* of a flag */

/* ---- rules ---- */

/* A plain value, made by the macros below. */
typedef struct wb_rule {
    const wb_rule_row *links[WB_RULE_LINKS]; /* in order; NULL after the last */
    double settings[WB_RULE_ALL_SETTINGS];   /* of the first link, then of the next one */
    uint32_t late;  /* bit i: setting i was adjusted, so its value is a late number */
    bool is_broken; /* its maker has failed */
} wb_rule;

/* The rule of a row with the settings of its desc. */
WB_API wb_rule wb_rule_make(const wb_rule_row *row, const void *desc);

/* Several rules in order: the gradient of each is what the rule before it would subtract from the
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

/* v = rho v + eta g;  x -= v. So a new eta (wb_adjust) applies to later gradients only;
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
    double eta WB_DEFAULT(0.001); /* the first step size of each element */
    double ell1 WB_DEFAULT(0.5), ell2
        WB_DEFAULT(1.2); /* factors if the sign of g changes, and if not */
    double gamma1 WB_DEFAULT(1e-6), gamma2 WB_DEFAULT(50); /* least and largest step size */
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
    /* order of the norm; INFINITY: the largest |g|, -INFINITY: the smallest, 0: how many are not
     * 0. wb_adjust_named can change it unless it is 2 */
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
 * Step sizes start as eta. The limits gamma1 and gamma2 apply once two signs have been compared,
 * and adjusting eta later has no effect. */
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

/* Variants of Adam, with its m and v, and its defaults except where noted:
 *   wb_adamax    u + epsilon instead of the root + epsilon, u = max(beta2 u, |g|)
 *                                                                         (Kingma and Ba 2015)
 *   wb_nadam     with Nesterov's momentum, as Flux has it                    (Dozat 2016)
 *   wb_radam     only momentum while v is unreliable, the paper's rho <= 4  (Liu and others 2020)
 *   wb_amsgrad   the largest v so far, no bias corrections; states start as epsilon
 *                                                               (Reddi and others 2018)
 *   wb_oadam     2 s - s_before, where s is Adam's step; beta 0.5, 0.9
 *                                                               (Daskalakis and others 2018)
 *   wb_adabelief v of g - m, not g; epsilon 1e-16, also added to v (Zhuang and others 2020) */
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

/* acc += g^2, where acc starts as epsilon;  x -= eta g / (sqrt(acc) + epsilon)
 * (Duchi and others 2011) */
#define wb_adagrad(...) WB_MAKE(wb_adagrad_make, adagrad, __VA_ARGS__)
WB_API wb_rule wb_adagrad_make(wb_adagrad_desc desc);

/* acc = rho acc + (1 - rho) g^2;  u = g sqrt(delta + epsilon) / sqrt(acc + epsilon)
 * delta = rho delta + (1 - rho) u^2;  x -= u      (Zeiler 2012; there is no eta) */
#define wb_adadelta(...) WB_MAKE(wb_adadelta_make, adadelta, __VA_ARGS__)
WB_API wb_rule wb_adadelta_make(wb_adadelta_desc desc);

/* x -= eta sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g   (Chen and others 2023).
 * In Optimisers.jl beta1 and beta2 are exchanged in the formula of m. */
#define wb_lion(...) WB_MAKE(wb_lion_make, lion, __VA_ARGS__)
WB_API wb_rule wb_lion_make(wb_lion_desc desc);

/* Rules for chains. Each changes the gradient g for the next rule; if there is no next rule, the
 * changed g is subtracted from the parameter.
 *   wb_weight_decay  g + lambda x            wb_sign_decay  g + lambda sign(x)
 *   wb_clip_grad     g clipped to -delta ... delta
 *   wb_clip_norm     g min(omega / |g|, 1), |g| the p-norm of only this array, (sum |g|^p)^(1/p)
 *                    (wb_setup's clip_total_norm is the 2-norm of all). Where the 2-norm of an
 *                    array's gradient is not finite, the whole step is skipped, and counted by
 *                    wb_skipped, as with clip_total_norm
 *   wb_accum_grad    passes the mean of n gradients on in each n-th step; in other steps neither
 *                    the parameter nor the states of the rules after it change */
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

/* u = Adam's step without eta, plus lambda x;  x -= eta u |x| / |u|, with norms of the whole array;
 * the ratio is 1 if one of them is 0      (You and others 2020) */
#define wb_lamb(...) WB_MAKE(wb_lamb_make, lamb, __VA_ARGS__)
WB_API wb_rule wb_lamb_make(wb_lamb_desc desc);

typedef struct wb_muon_desc {
    WB_START_MEMBER;
    double eta WB_DEFAULT(0.02);
    double rho WB_DEFAULT(0.95); /* momentum */
    double lambda;               /* decay */
    bool as_adamw; /* steps as large as AdamW's: 0.2 sqrt(max(out, in)), not the root below */
} wb_muon_desc;

/* For matrices (out, in) and convolutions, as (k in, out). Give other arrays another rule
 * (wb_setup's .paths), or the first step fails:
 *   b = rho b + g;  u = g + rho b, divided by its norm, then with singular values made close to 1
 *   x -= eta lambda x + eta sqrt(max(1, out / in)) u      (Jordan and others 2024) */
#define wb_muon(...) WB_MAKE(wb_muon_make, muon, __VA_ARGS__)
WB_API wb_rule wb_muon_make(wb_muon_desc desc);

/* Applies the rule to an f32 copy of the parameter (the state "master"); the f16 or bf16 parameter
 * is the copy rounded, so that steps that are too small for its digits add up (Micikevicius and
 * others 2018). It must be the outermost rule; inside a chain it is an error. If you set the
 * parameter, set "master", too (wb_optimiser_set), or the next step brings the old value back. */
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
    double eta WB_DEFAULT(0.0025); /* constant */
    double beta1 WB_DEFAULT(0.9), beta2 WB_DEFAULT(0.999);
    double epsilon WB_DEFAULT(1e-8);
    double lambda;   /* decay */
    int64_t warm_up; /* steps in which the rate rises from 0; 0 and 1: none */
} wb_schedule_free_desc;

/* AdamW without a schedule: the trained model is an average x of its steps z. Gradients are taken
 * at the model's parameter y; wb_averaged gives the model with x:
 *   u = g / (sqrt(v / (1 - beta2^t)) + epsilon) + lambda y;  z -= r u, r = eta min(1, t / warm_up)
 *   x = (1 - c) x + c z, c = r^2 / sum of all r^2;  y = (1 - beta1) z + beta1 x
 * (Defazio and others 2024). Statistics of BatchNorm are those of the model with y. */
#define wb_schedule_free(...) WB_MAKE(wb_schedule_free_make, schedule_free, __VA_ARGS__)
WB_API wb_rule wb_schedule_free_make(wb_schedule_free_desc desc);

#ifdef __cplusplus
}
#endif
#endif
