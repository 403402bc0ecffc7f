/* Rule 6: a buffer is overwritten only if nothing outside the plan reads the old value. */
#include "support/support.h"

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    wb_array *p = wb_get(model, "1");
    return wb_sum(wb_square(wb_add_number(p, 1)));
}

static void a_pending_reader_sees_the_old_numbers(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 3));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.5), model);
    wb_array *doubled = wb_mul_number(wb_get(model, "1"), 2);
    wb_array *further = wb_add_number(wb_flip(doubled, 0), 1); /* reads it through others */
    const int64_t missed = wb_plan_status().missed_donations;
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss, model, NULL, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, -1, -1, -1);
    assert_int_equal(wb_plan_status().missed_donations - missed, 1);
    assert_values(doubled, 0, 2, 4, 6);
    assert_values(further, 0, 7, 5, 3);
    wb_free(o), wb_free(model);
}

static void nothing_is_missed_with_withgradient(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_ones(WB_F32, 50, 20), wb_ones(WB_F32, 50));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    wb_plan_counts before = {0};
    for (int i = 0; i < 12; i++) {
        wb_scope_open();
        wb_gradients *g;
        assert_non_null(wb_withgradient(loss, model, NULL, NULL, &g));
        assert_int_equal(wb_update(o, model, g), WB_OK);
        assert_int_equal(wb_scope_close(), WB_OK);
        if (i == 5) before = wb_plan_status();
    }
    assert_int_equal(wb_plan_status().missed_donations, before.missed_donations);
    assert_int_equal(wb_plan_status().misses, before.misses);
    wb_free(o), wb_free(model);
}

static void a_loop_by_hand_allocates_nothing(void **state) {
    (void)state;
    wb_array *p = wb_keep(wb_ones(WB_F32, 1000));
    int64_t live = 0, pieces = 0;
    for (int i = 0; i < 30; i++) {
        wb_scope_open();
        wb_array *g[1];
        assert_int_equal(wb_gradient_of(wb_sum(wb_square(p)), 1, &p, g), WB_OK);
        wb_array *next = wb_keep(wb_sub(p, wb_mul_number(g[0], 0.01)));
        wb_free(p);
        p = next;
        assert_int_equal(wb_scope_close(), WB_OK);
        const wb_memory_info memory = wb_memory_status(wb_cpu_device());
        if (i == 10) live = memory.live + memory.cached;
        if (i > 10) assert_int_equal(memory.live + memory.cached, live);
        if (i == 10) pieces = wb_live().buffers;
    }
    assert_int_equal(wb_live().buffers, pieces);
    assert_true(fabs(wb_at(p, 7) - pow(0.98, 30)) < 1e-5);
    wb_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(a_pending_reader_sees_the_old_numbers), TEST(nothing_is_missed_with_withgradient),
                                       TEST(a_loop_by_hand_allocates_nothing)};
    return cmocka_run_group_tests_name("values 6", tests, NULL, NULL);
}
