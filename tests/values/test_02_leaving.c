/* Rule 2: what survives a closing scope is evaluated then, in one plan. */
#include "values/modes.h"

static void kept_arrays_are_computed_in_one_plan(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *kept[4];
    const wb_plan_counts before = wb_plan_status();
    wb_scope_open();
    for (int i = 0; i < 4; i++) kept[i] = wb_keep(wb_mul_number(wb_exp(x), i));
    assert_int_equal(wb_scope_close(), WB_OK);
    const wb_plan_counts after = wb_plan_status();
    if (!is_eager()) assert_int_equal(after.evaluations - before.evaluations, 1);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(wb_at(kept[i], 1) - i * exp(2)) < 1e-4);
        wb_free(kept[i]);
    }
    assert_int_equal(wb_plan_status().evaluations,
                     after.evaluations); /* nothing was left to be computed */
}

static void a_recurrent_state_stays_one_array(void **state) {
    (void)state;
    wb_array *w = wb_full(WB_F32, 0.5, 2, 2), *h = wb_keep(wb_ones(WB_F32, 2, 3));
    wb_live_counts first = {0};
    for (int t = 0; t < 200; t++) {
        wb_scope_open();
        wb_array *next = wb_keep(wb_tanh(wb_matmul(w, h)));
        wb_free(h);
        h = next;
        assert_int_equal(wb_scope_close(), WB_OK);
        const wb_live_counts live = live_now();
        if (t == 1) first = live;
        if (t > 1 && (live.arrays != first.arrays || live.buffers != first.buffers))
            fail_msg("step %d: %lld arrays, %lld buffers", t, (long long)live.arrays,
                     (long long)live.buffers);
    }
    wb_free(h);
}

static void a_sum_over_an_epoch_stays_one_array(void **state) {
    (void)state;
    wb_array *total = wb_keep(wb_scalar(WB_F64, 0));
    int64_t arrays = 0;
    for (int t = 0; t < 100; t++) {
        wb_scope_open();
        wb_array *l = wb_mean(wb_square(wb_iota(WB_F64, 0, 5)));
        wb_array *next = wb_keep(wb_add(total, l));
        wb_free(total);
        total = next;
        assert_int_equal(wb_scope_close(), WB_OK);
        if (t == 2) arrays = live_now().arrays;
    }
    assert_int_equal(live_now().arrays, arrays);
    assert_true(wb_item(total) == 600);
    wb_free(total);
}

static void a_kept_view_keeps_its_numbers(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_exp(wb_reshape(wb_iota(WB_F64, 0, 6), 2, 3));
    wb_array *turned = wb_keep(wb_flip(wb_transpose(x), 0)),
             *row = wb_keep(wb_slice(x, 1, 2, -1, -2));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(turned, 1e-12, exp(4), exp(2), 1, exp(5), exp(3), exp(1));
    assert_values(row, 1e-12, exp(4), exp(5), 1, exp(1));
    wb_free(turned), wb_free(row);
}

static void kept_sources_survive(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *kept[] = {wb_keep(wb_ones(WB_F32, 3)),    wb_keep(wb_iota(WB_I32, 0, 3)),
                        wb_keep(wb_number(2)),          wb_keep(wb_late(5)),
                        wb_keep(wb_uniform(WB_F32, 3)), wb_keep(wb_vector(1, 2, 3))};
    const int64_t count = (int64_t)(sizeof kept / sizeof *kept);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(kept[0], 0, 1, 1, 1);
    assert_values(kept[1], 0, 0, 1, 2);
    assert_value(kept[2], 2, 0);
    assert_value(kept[3], 5, 0);
    assert_values(kept[5], 0, 1, 2, 3);
    for (int64_t i = 0; i < count; i++) wb_free(kept[i]);
}

static void a_number_of_an_outer_scope_outlives_inner_ones(void **state) {
    (void)state;
    wb_array *number = wb_number(1.25), *x = wb_vector(1, 2);
    wb_scope_open();
    for (int i = 0; i < 1000; i++)
        (void)wb_number(i + 0.5); /* more than any cache of constants holds */
    assert_int_equal(wb_scope_close(), WB_OK);
    for (int i = 0; i < 100; i++) (void)wb_vector((float)i, 0);
    assert_values(wb_mul(x, number), 0, 1.25, 2.5);
}

static void a_scope_inside_a_scope_leaves_to_it(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2);
    wb_scope_open();
    wb_scope_open();
    wb_array *y = wb_keep(wb_square(x));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_array *z = wb_keep(wb_add(y, x));
    wb_free(y);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(z, 0, 2, 6);
    wb_free(z);
}

/* Nothing that a scope leaves behind hangs on what the scope held. */
static void what_was_kept_holds_nothing_else(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_exp(wb_uniform(WB_F32, 1000)), *y = wb_tanh(x);
    wb_array *kept = wb_keep(wb_sum(wb_mul(x, y)));
    const wb_live_counts inside = live_now();
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_true(wb_is_evaluated(kept));
    assert_int_equal(kept->ninputs, 0);
    assert_true(live_now().arrays < inside.arrays);
    wb_free(kept);
}

/* Work that nobody reads is evaluated past a budget, with its recipe kept; inside training it is
 * not. */
static void pending_work_has_a_budget(void **state) {
    (void)state;
    enum { BEYOND = 300000 }; /* the budget is 262,144 nodes */
    if (is_eager() || (!is_planned() && !is_on_host()))
        skip(); /* a device would have a kernel for each */
    for (int training = 0; training < 2; training++) {
        wb_training(training != 0);
        const int64_t before = wb_plan_status().evaluations;
        wb_array *first = wb_vector(1), *x = first, *gradient;
        for (int i = 0; i < BEYOND; i++) x = wb_neg(x);
        const int64_t evaluations = wb_plan_status().evaluations - before;
        wb_training(false);
        assert_int_equal(evaluations > 0, training == 0);
        assert_int_equal(wb_gradient_of(x, 1, &first, &gradient), WB_OK);
        assert_true(wb_item(gradient) == 1);
    }
}

/* Twenty thousand pending additions, none of them read: one recipe, and a gradient all the way. */
static void pending_work_is_never_cut(void **state) {
    (void)state;
    wb_array *x = wb_scalar(WB_F64, 0), *first = x, *g[1];
    for (int i = 0; i < 20000; i++) x = wb_add_number(x, 1);
    assert_int_equal(wb_gradient_of(x, 1, &first, g), WB_OK);
    assert_value(g[0], 1, 0);
    assert_value(x, 20000, 0);
}

static void slots_are_data_after_the_scope(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_scope_open();
    assert_int_equal(wb_set(model, "1", wb_exp(wb_vector(0, 0))), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_array *held = wb_get(model, "1");
    assert_true(wb_is_evaluated(held));
    assert_int_equal(held->ninputs, 0);
    assert_values(held, 1e-6, 1, 1);
    wb_free(model);
}

static int run(void) {
    const struct CMUnitTest tests[] = {TEST(kept_arrays_are_computed_in_one_plan),
                                       TEST(a_recurrent_state_stays_one_array),
                                       TEST(a_sum_over_an_epoch_stays_one_array),
                                       TEST(a_kept_view_keeps_its_numbers),
                                       TEST(kept_sources_survive),
                                       TEST(a_number_of_an_outer_scope_outlives_inner_ones),
                                       TEST(a_scope_inside_a_scope_leaves_to_it),
                                       TEST(what_was_kept_holds_nothing_else),
                                       TEST(pending_work_is_never_cut),
                                       TEST(pending_work_has_a_budget),
                                       TEST(slots_are_data_after_the_scope)};
    return cmocka_run_group_tests_name("values 2", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
