/* src/optimise/rows.c, rules.c: each rule against numbers. */
#include <math.h>

#include <weber/optimise.h>

#include "support/scoped.h"

enum { MOST_STEPS = 6 };

/* x after each step along the gradients, from x0. Sources: A: acceptance cases, calculated from the
 * formulas of Optimisers.jl, as the others are. */
typedef struct row {
    const char *name;
    wb_rule rule;
    double x0;
    int steps;
    double g[MOST_STEPS], x[MOST_STEPS];
} row;

/* The gradient of sum(x g) is g. */
static double step(wb_optimiser *o, wb_layer *model, double g) {
    wb_array *x = wb_get(model, "1");
    wb_array *l = wb_sum(wb_mul_number(x, g));
    assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
    return wb_item(wb_get(model, "1"));
}

static void follow(const row *r, wb_dtype dtype, double tolerance) {
    wb_layer *model = wb_tree(wb_mul_number(wb_ones(dtype, 1), r->x0));
    wb_optimiser *o = wb_setup(r->rule, model);
    for (int t = 0; t < r->steps; t++) {
        const double x = step(o, model, r->g[t]);
        if (!(fabs(x - r->x[t]) <= tolerance))
            fail_msg("%s: step %d gives %.12g, not %.12g", r->name, t + 1, x, r->x[t]);
    }
    wb_free(o), wb_free(model);
}

#define THREE                                                                                      \
    3, { 0.5, -0.3, 0.8 }
#define HALVES                                                                                     \
    3, { 1, -0.5, 0.25 }

static void each_rule_takes_its_steps(void **state) {
    (void)state;
    const row rows[] = {
        {"Descent (A1)", wb_descent(), 1, THREE, {0.95, 0.98, 0.90}},
        {"Momentum (A2)", wb_momentum(), 1, THREE, {0.995, 0.9935, 0.98415}},
        {"Adam (A7)", wb_adam(), 1, THREE, {0.99900000002, 0.998808501989, 0.998204965637}},
        {"AdamW, coupled (A8)",
         wb_adamw(.lambda = 0.01),
         1,
         THREE,
         {0.99899000002, 0.998788512089, 0.998174987852}},
        {"AdamW, decoupled (A9)",
         wb_adamw(.lambda = 0.01, .decoupled = true),
         1,
         THREE,
         {0.98900000002, 0.978918501989, 0.968525780617}},
        {"RMSProp (A4)", wb_rmsprop(), 1, THREE, {0.99683772254, 0.998528030954, 0.995895511903}},
        {"RMSProp", wb_rmsprop(), 2, HALVES, {1.996837722440, 1.998312141958, 1.997557505590}},
        {"RMSProp, centred",
         wb_rmsprop(.centred = true),
         2,
         HALVES,
         {1.996666666778, 1.998151451411, 1.997383687556}},
        {"a chain of one (A23)", wb_rule_chain(wb_descent()), 2, HALVES, {1.9, 1.95, 1.925}},
        {"a chain of two",
         wb_rule_chain(wb_momentum(.eta = 1, .rho = WB_ZERO), wb_descent()),
         2,
         HALVES,
         {1.9, 1.95, 1.925}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        follow(&rows[i], WB_F64, 2e-11);
        follow(&rows[i], WB_F32, 1e-6);
    }
}

static void a_chain_that_is_too_long_is_refused(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_ones(WB_F32, 1));
    const wb_rule d = wb_descent();
    const wb_rule chain = wb_rule_chain(d, d, d, d, d, d, d);
    assert_null(wb_setup(chain, model));
    char text[256];
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_ARGUMENT);
    assert_non_null(strstr(text, "wb_rule_chain: a chain has at most 6 rules"));
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(each_rule_takes_its_steps),
        TEST(a_chain_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests_name("optimise/test_rules", tests, NULL, NULL);
}
