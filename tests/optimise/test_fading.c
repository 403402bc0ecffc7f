/* In the steps of all rules numbers below 1.2e-38 are zero, where the processor can do that: they
 * would slow a step down a hundred times. */
#include <math.h>
#include <string.h>

#include <weber/device.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>

#include "support/scoped.h"

typedef struct row {
    const char *name;
    wb_rule rule;
    double x, g;   /* the step of x along g ends, or goes, below 1.2e-38 */
    double wanted; /* |x| then */
} row;

static double step(const row *r) {
    wb_layer *model = wb_tree(wb_mul_number(wb_ones(WB_F32, 1000), r->x));
    wb_optimiser *o = wb_setup(r->rule, model);
    wb_array *g = wb_mul_number(wb_ones(WB_F32, 1000), r->g);
    wb_array *l = wb_sum(wb_mul(wb_get(model, "1"), g));
    assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
    const double x = wb_item(wb_sum(wb_abs(wb_get(model, "1"))));
    wb_free(o), wb_free(model);
    return x;
}

static void faded_numbers_are_zero(void **state) {
    (void)state;
    const row rows[] = {
        {"Descent", wb_descent(), 3e-38, 2e-37, 0},
        {"Momentum", wb_momentum(), 3e-38, 2e-36, 0},
        {"Adam", wb_adam(), 0, 1e-37, 0},
        {"AdamW, coupled", wb_adamw(), 0, 1e-37, 0},
        {"AdamW, decoupled", wb_adamw(.decoupled = true), 0, 1e-37, 0},
        /* squares of a norm are scaled before, and do not fade */
        {"ClipNorm", wb_rule_chain(wb_clip_norm(.omega = 1e-25), wb_descent(.eta = 1e20)), 0, 1e-20,
         3.16227766e-7},
        /* and the quotient of limit and norm does not, either */
        {"ClipNorm of large numbers", wb_rule_chain(wb_clip_norm(.omega = 1), wb_descent(.eta = 1)),
         0, 1e37, 0.0316227766},
        {"ClipNorm of order 3",
         wb_rule_chain(wb_clip_norm(.omega = 1, .p = 3), wb_descent(.eta = 1)), 0, 1e37, 0.1},
        {"ClipNorm of order -2",
         wb_rule_chain(wb_clip_norm(.omega = 1, .p = -2), wb_descent(.eta = 1)), 0, 1e37,
         31.6227766},
    };
#if defined(__x86_64__)
    const char *backend = wb_device_backend_name(wb_default_device());
    if (strcmp(backend, "CPU") != 0 && strcmp(backend, "checked") != 0) skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double x = step(&rows[i]);
        if (fabs(x - 1000 * rows[i].wanted) > rows[i].wanted)
            fail_msg("%s: the sum is %g, not %g", rows[i].name, x, 1000 * rows[i].wanted);
    }
#else
    (void)rows, (void)step;
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(faded_numbers_are_zero, open_scope, close_scope)};
    return cmocka_run_group_tests_name("optimise/test_fading", tests, NULL, NULL);
}
