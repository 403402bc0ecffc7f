/* Where rules and schedules follow Optimisers.jl, ParameterSchedulers.jl or a paper, and torch does
 * something else: docs/edges.md. Each is held against the source's formula in plain C, and away
 * from torch's. */
#include <math.h>

#include <weber.h>

#include "support/support.h"

enum { MOST = 8 };

/* What both formulas make of x after each gradient. */
typedef void formula(int count, const double *g, double *ours, double *torch_s);

/* v is trusted from rho > 4 on (Liu and others 2020; Optimisers.jl), in torch above 5. */
static void radam(int count, const double *g, double *ours, double *theirs) {
    const double eta = .1, b1 = .9, b2 = .9, last = 2 / (1 - b2) - 1;
    double m = 0, v = 0, x[2] = {1, 1};
    for (int t = 1; t <= count; t++) {
        m = b1 * m + (1 - b1) * g[t - 1], v = b2 * v + (1 - b2) * g[t - 1] * g[t - 1];
        const double mean = m / (1 - pow(b1, t)), root = sqrt(v / (1 - pow(b2, t)));
        const double rho = last - 2 * t * pow(b2, t) / (1 - pow(b2, t));
        const double r = sqrt((rho - 4) * (rho - 2) * last / ((last - 4) * (last - 2) * rho));
        x[0] -= eta * mean * (rho > 4 ? r / (root + 1e-8) : 1);
        x[1] -= eta * mean * (rho > 5 ? r / (root + 1e-8) : 1);
        ours[t - 1] = x[0], theirs[t - 1] = x[1];
    }
}

/* epsilon is added to the largest |g| (Optimisers.jl), in torch to |g| before the maximum. */
static void adamax(int count, const double *g, double *ours, double *theirs) {
    const double eta = .1, b1 = .9, b2 = .5, epsilon = .25;
    double m = 0, u[2] = {0, 0}, x[2] = {1, 1};
    for (int t = 1; t <= count; t++) {
        m = b1 * m + (1 - b1) * g[t - 1];
        u[0] = fmax(b2 * u[0], fabs(g[t - 1])), u[1] = fmax(b2 * u[1], fabs(g[t - 1]) + epsilon);
        x[0] -= eta / (1 - pow(b1, t)) * m / (u[0] + epsilon);
        x[1] -= eta / (1 - pow(b1, t)) * m / u[1];
        ours[t - 1] = x[0], theirs[t - 1] = x[1];
    }
}

/* eta is inside v (Optimisers.jl), in torch outside: after the third step it is a tenth. */
static void momentum(int count, const double *g, double *ours, double *theirs) {
    double v[2] = {0, 0}, x[2] = {1, 1};
    for (int t = 1; t <= count; t++) {
        const double eta = t > 3 ? .01 : .1;
        v[0] = .9 * v[0] + eta * g[t - 1], v[1] = .9 * v[1] + g[t - 1];
        x[0] -= v[0], x[1] -= eta * v[1];
        ours[t - 1] = x[0], theirs[t - 1] = x[1];
    }
}

/* A first size above the largest one stays until a sign agrees (Optimisers.jl); torch clamps it. */
static void rprop(int count, const double *g, double *ours, double *theirs) {
    double size[2] = {.3, .3}, before[2] = {0, 0}, x[2] = {1, 1};
    for (int t = 1; t <= count; t++)
        for (int k = 0; k < 2; k++) {
            double gradient = g[t - 1];
            const double agreed = gradient * before[k];
            if (agreed > 0) size[k] = fmin(size[k] * 1.2, .2);
            if (agreed < 0) size[k] = fmax(size[k] * .5, 1e-6), gradient = 0;
            if (k == 1) size[k] = fmin(size[k], .2);
            x[k] -= size[k] * (double)((gradient > 0) - (gradient < 0)), before[k] = gradient;
            (k ? theirs : ours)[t - 1] = x[k];
        }
}

static const struct row {
    const char *name;
    formula *formula;
    double g[MOST];
} rows[] = {
    {"RAdam trusts v from 4 on", radam, {2, 2, 2, 2, 2, 2, 1, -1}},
    {"AdaMax adds epsilon outside of the maximum", adamax, {1, .1, .1, .05, -1, .2, .2, .1}},
    {"Momentum's eta is inside of v", momentum, {1, 2, -1, 1, .5, .5, 1, 1}},
    {"Rprop's first size may be above the largest", rprop, {1, -1, 1, 1, 1, -1, -1, -1}},
};

static wb_rule rule_of(formula *f) {
    return f == radam      ? wb_radam(.eta = .1, .beta2 = .9)
           : f == adamax   ? wb_adamax(.eta = .1, .beta2 = .5, .epsilon = .25)
           : f == momentum ? wb_momentum(.eta = .1)
                           : wb_rprop(.eta = .3, .gamma2 = .2);
}

static void a_rule_is_that_of_its_source(void **state) {
    const struct row *r = *state;
    double ours[MOST], theirs[MOST], apart = 0;
    r->formula(MOST, r->g, ours, theirs);
    wb_layer *model = wb_tree(wb_ones(widest(), 1));
    wb_optimiser *o = wb_setup(rule_of(r->formula), model);
    for (int t = 0; t < MOST; t++) {
        if (r->formula == momentum && t == 3) assert_int_equal(wb_adjust(o, .01), WB_OK);
        wb_array *l = wb_sum(wb_mul_number(wb_get(model, "1"), r->g[t]));
        assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
        assert_value(wb_get(model, "1"), ours[t], coarse(1e-12, 1e-5));
        apart = fmax(apart, fabs(ours[t] - theirs[t]));
    }
    assert_true(apart > 1e-3); /* the row shows the difference */
    wb_free(o), wb_free(model);
}

/* As the other schedules, which begin with their first value at step 1, it has its largest value a
 * step after those that rise, and its last one after all n steps (ParameterSchedulers.jl); torch's
 * has them one step earlier, which one step less gives here. */
static void one_cycle_has_its_largest_value_after_the_rise(void **state) {
    (void)state;
    wb_schedule *s = wb_schedule_one_cycle(10, 1, .percent = .3, .last = .1);
    assert_true(wb_schedule_at(s, 1) == 1. / 25 && wb_schedule_at(s, 4) == 1);
    assert_true(wb_schedule_at(s, 3) < 1 && wb_schedule_at(s, 10) > .1);
    assert_true(wb_schedule_at(s, 11) == .1 && wb_schedule_at(s, 1000) == .1);
    wb_free(s);
    s = wb_schedule_one_cycle(9, 1, .percent = .2, .last = .1); /* OneCycleLR: 10 steps, .3 */
    assert_true(wb_schedule_at(s, 3) == 1 && wb_schedule_at(s, 10) == .1);
    wb_free(s);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {TEST(one_cycle_has_its_largest_value_after_the_rise)};
    ADD_ROWS(&tests, rows, a_rule_is_that_of_its_source);
    ADD_TESTS(&tests, others);
    return run_test_list("optimise/test_definitions", &tests, NULL, NULL);
}
