/* Rule 5: a scope's reference alone forces no store; what wb_keep, a slot or a reader holds is
 * stored. */
#include "values/modes.h"

static void what_only_a_scope_holds_fuses_away(void **state) {
    (void)state;
    if (!is_planned()) skip();
    wb_array *x = wb_uniform(WB_F32, 50, 40);
    assert_int_equal(wb_eval(x), WB_OK);
    wb_array *a = wb_exp(x), *b = wb_mul(a, x), *c = wb_tanh(wb_add(a, b)), *l = wb_sum(c);
    const int64_t buffers = live_now().buffers, kernels = wb_plan_status().kernels;
    assert_true(isfinite(wb_item(l)));
    assert_false(wb_is_evaluated(a) || wb_is_evaluated(b) || wb_is_evaluated(c));
    assert_int_equal(live_now().buffers, buffers + 1);
    assert_int_equal(wb_plan_status().kernels, kernels + 1);
}

static void what_is_kept_is_stored_by_the_plan_that_needs_it(void **state) {
    (void)state;
    wb_array *x = wb_uniform(WB_F32, 50, 40), *a = wb_keep(wb_exp(x)), *b = wb_mul(a, x);
    (void)wb_item(wb_sum(wb_tanh(b)));
    assert_true(wb_is_evaluated(a));
    if (is_planned()) assert_false(wb_is_evaluated(b));
    const int64_t evaluations = wb_plan_status().evaluations;
    assert_true(isfinite(wb_at(a, 3, 2)));
    assert_int_equal(wb_plan_status().evaluations, evaluations);
    wb_free(a);
}

static void what_a_slot_holds_is_stored(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_ones(WB_F32, 3));
    assert_int_equal(wb_set(model, "1", wb_exp(wb_vector(0, 1, 2))), WB_OK);
    wb_array *held = wb_get(model, "1");
    (void)wb_item(wb_sum(wb_square(held)));
    assert_true(wb_is_evaluated(held));
    wb_free(model);
}

static void what_is_read_is_stored(void **state) {
    (void)state;
    wb_array *x = wb_uniform(WB_F64, 6), *a = wb_exp(x), *b = wb_log(a);
    double numbers[6];
    assert_int_equal(wb_read_f64(b, numbers, 6), WB_OK);
    assert_true(wb_is_evaluated(b));
    if (is_planned()) assert_false(wb_is_evaluated(a));
    assert_true(wb_approx(b, x, 1e-12, 1e-14, NULL, 0));
}

/* Two roots of one plan are both stored, and what lies between them is not. */
static void roots_are_stored_and_nothing_else(void **state) {
    (void)state;
    wb_array *x = wb_uniform(WB_F32, 64), *a = wb_exp(x), *b = wb_sin(a), *c = wb_cos(b);
    assert_int_equal(wb_eval(a, c), WB_OK);
    assert_true(wb_is_evaluated(a) && wb_is_evaluated(c));
    if (is_planned()) assert_false(wb_is_evaluated(b));
}

static wb_array *wide_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* In a step the gradients, the loss and the parameters are stored: nothing that is as large as the
 * batch. */
static void a_step_leaves_nothing_of_its_middle(void **state) {
    (void)state;
    if (!is_planned()) skip();
    wb_layer *model = wb_chain(wb_dense(4, 8, wb_tanh), wb_dense(8, 2));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    const wb_batch batch = {.x = wb_uniform(WB_F32, 4, 100), .y = wb_uniform(WB_F32, 2, 100)};
    assert_int_equal(wb_eval(batch.x, batch.y), WB_OK);
    const int64_t before = live_now().buffers;
    wb_scope_open();
    wb_gradients *g;
    wb_array *l = wb_withgradient(wide_loss, model, &batch, NULL, &g);
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_true(isfinite(wb_item(l)));
    assert_true(live_now().buffers <= before + 4 + 1); /* four gradients, one loss */
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(live_now().buffers, before);
    wb_free(o), wb_free(model);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_only_a_scope_holds_fuses_away),
        TEST(what_is_kept_is_stored_by_the_plan_that_needs_it),
        TEST(what_a_slot_holds_is_stored),
        TEST(what_is_read_is_stored),
        TEST(roots_are_stored_and_nothing_else),
        TEST(a_step_leaves_nothing_of_its_middle),
    };
    return cmocka_run_group_tests_name("values 5", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
