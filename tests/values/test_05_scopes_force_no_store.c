/* Rule 5: the scope's reference alone stores nothing; holds do. */
#include "array/array.h"
#include "support/support.h"

static void named_intermediates_fuse_away(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *a = wb_exp(x), *b = wb_mul(a, x), *l = wb_sum(b);
    const wb_plan_counts before = wb_plan_status();
    (void)wb_item(l);
    assert_int_equal(wb_plan_status().kernels - before.kernels, 1);
    assert_false(wb_is_evaluated(a));
    assert_false(wb_is_evaluated(b));
    assert_true(wb_is_evaluated(l));
}

static void a_kept_intermediate_is_stored_with_the_rest(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *a = wb_exp(x), *b = wb_keep(wb_mul(a, x)), *l = wb_sum(b);
    const wb_plan_counts before = wb_plan_status();
    (void)wb_item(l);
    assert_int_equal(wb_plan_status().evaluations - before.evaluations, 1);
    assert_false(wb_is_evaluated(a));
    assert_true(wb_is_evaluated(b));
    assert_true(fabs(wb_at(b, 1) - 2 * exp(2)) < 1e-4);
    assert_int_equal(wb_plan_status().evaluations - before.evaluations, 1);
    wb_free(b);
}

static void a_let_go_array_is_no_longer_stored(void **state) {
    (void)state;
    wb_array *a = wb_keep(wb_exp(wb_vector(1, 2, 3))), *l = wb_sum(a);
    wb_free(a); /* the scope still refers to it */
    (void)wb_item(l);
    assert_false(wb_is_evaluated(a));
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(named_intermediates_fuse_away), TEST(a_kept_intermediate_is_stored_with_the_rest),
                                       TEST(a_let_go_array_is_no_longer_stored)};
    return cmocka_run_group_tests_name("values 5", tests, NULL, NULL);
}
