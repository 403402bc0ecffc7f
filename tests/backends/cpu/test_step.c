/* Adam's step as plans have it runs as one loop: asked of the programs themselves, by a backend
 * that is the CPU and looks at what it is given. */
#include <weber/device.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>

#include "adam.h"
#include "device/device.h"
#include "support/scoped.h"
#include "support/support.h"

static wb_backend spy;
static const wb_device *spied;
static int loops; /* programs that are the loop */

static void look_at(const wb_program *program) {
    wb_cpu_adam adam;
    loops += program && wb_cpu_find_adam(program, &adam);
}

static void *kernel(void *context, const wb_program *program) {
    look_at(program);
    return wb_cpu_backend.kernel(context, program);
}

static void *lower(void *context, const wb_call *call, const wb_program *epilogue, int split) {
    look_at(epilogue);
    return wb_cpu_backend.lower(context, call, epilogue, split);
}

/* How often a step of the rule asks for the loop. Another size is another plan. */
static int loops_of(wb_rule rule, wb_dtype dtype, int64_t rows, int64_t columns) {
    wb_array *w = wb_to(spied, wb_ones(dtype, rows, columns), .eltype = WB_ELTYPE_PRESERVE);
    wb_layer *model = wb_tree(w);
    wb_optimiser *o = wb_setup(rule, model);
    loops = 0;
    wb_array *x = wb_to(spied, wb_ones(dtype, columns, 4), .eltype = WB_ELTYPE_PRESERVE);
    wb_array *l = wb_sum(wb_square(wb_matmul(wb_get(model, "1"), x)));
    assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
    wb_free(o), wb_free(model);
    return loops;
}

static void adams_step_is_one_loop(void **state) {
    (void)state;
    const struct {
        const char *name;
        wb_rule rule;
        wb_dtype dtype;
        int loops;
    } rows[] = {
        {"Adam", wb_adam(), WB_F32, 1},
        {"AdamW", wb_adamw(.lambda = 0.1), WB_F32, 1},
        {"AdamW, decoupled", wb_adamw(.lambda = 0.1, .decoupled = true), WB_F32, 1},
        {"Adam in f64", wb_adam(), WB_F64, 0},
        {"Adam of f16", wb_adam(), WB_F16, 0},
        {"Momentum", wb_momentum(), WB_F32, 0},
        {"Descent", wb_descent(), WB_F32, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int found = loops_of(rows[i].rule, rows[i].dtype, 5 + (int64_t)i, 3);
        if (found != rows[i].loops) fail_msg("%s: %d, not %d", rows[i].name, found, rows[i].loops);
    }
}

static wb_array *square_of_product(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_square(wb_matmul(wb_get(model, "1"), batch->x)));
}

/* Weights after three steps that compute in bf16. With `apart` their gradients are arrays before
 * steps begin; else what makes f32 of them is part of the programs. */
static wb_array *weights_after(bool apart) {
    wb_seed(7);
    wb_array *w = wb_to(spied, wb_normal(WB_F32, 64, 16));
    const wb_batch batch = {.x = wb_to(spied, wb_cast(wb_normal(WB_F32, 16, 6), WB_BF16))};
    wb_layer *model = wb_tree(w);
    wb_optimiser *o = wb_setup(wb_adam(), model, .compute = WB_BF16);
    for (int step = 0; step < 3; step++) {
        wb_gradients *g = NULL;
        loops = 0;
        if (apart) {
            (void)wb_withgradient_for(o, square_of_product, model, &batch, NULL, &g);
            wb_eval(wb_gradients_get(g, "1"));
            assert_int_equal(wb_update(o, model, g), WB_OK);
        } else {
            assert_non_null(wb_train_step(square_of_product, model, &batch, NULL, o));
        }
        if (step == 0) assert_int_equal(loops, 1);
    }
    w = wb_get(model, "1");
    wb_free(o), wb_free(model);
    return w;
}

static void what_makes_the_gradient_may_be_part_of_it(void **state) {
    (void)state;
    assert_same_bits(weights_after(false), weights_after(true), "weights");
}

/* It does not become one program with the numbers that all steps are told. */
static void nor_is_one_element_anything_else(void **state) {
    (void)state;
    assert_int_equal(loops_of(wb_adam(), WB_F32, 1, 1), 1);
    assert_int_equal(loops_of(wb_adamw(.lambda = 0.1), WB_F32, 1, 1), 1);
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    spy = wb_cpu_backend;
    spy.name = "Spy", spy.kernel = kernel, spy.lower = lower;
    spied = wb_device_new(&spy, 0);
    if (!spied) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(adams_step_is_one_loop, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(what_makes_the_gradient_may_be_part_of_it, open_scope,
                                        close_scope),
        cmocka_unit_test_setup_teardown(nor_is_one_element_anything_else, open_scope, close_scope),
    };
    return cmocka_run_group_tests_name("backends/cpu/test_step", tests, NULL, NULL);
}
