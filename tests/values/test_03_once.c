/* Rule 3: x = f(x) a thousand times, looking at it each time: the work grows linearly. */
#include "values/modes.h"

enum { STEPS = 1000 };

typedef wb_array *step_fn(wb_array *x);

static wb_array *elementwise(wb_array *x) { return wb_sin(wb_add_number(x, 0.1)); }
static wb_array *product(wb_array *x) { return wb_mul_number(wb_matmul(wb_full(WB_F32, 0.01, 8, 8), x), 0.9); }
static wb_array *rows(wb_array *x) { return wb_softmax(wb_mul_number(x, 1.1)); }
static wb_array *reduced(wb_array *x) { return wb_sub(x, wb_mul_number(wb_mean_dims(x, 0), 0.5)); }
static wb_array *turned(wb_array *x) { return wb_tanh(wb_transpose(x)); }
static wb_array *pooled(wb_array *x) {
    return wb_reshape(wb_maxpool_op(wb_reshape(wb_concat(0, x, x), 16, 8, 1, 1), .kernel = {2, 1}), 8, 8);
}

static const struct row {
    const char *name;
    step_fn *fn;
} steps[] = {{"elementwise steps are not computed again", elementwise}, {"products are not computed again", product},
             {"softmax is not computed again", rows},                   {"means are not computed again", reduced},
             {"views are not computed again", turned},                  {"pools are not computed again", pooled}};

static void work_grows_linearly(void **state) {
    const struct row *row = *state;
    wb_array *x = wb_uniform(WB_F32, 8, 8);
    wb_plan_counts at[2];
    for (int i = 0; i < STEPS; i++) {
        x = row->fn(x);
        assert_true(isfinite(wb_item(wb_sum(x))));
        if (i == STEPS / 2) at[0] = wb_plan_status();
    }
    at[1] = wb_plan_status();
    const int64_t kernels = at[1].kernels - at[0].kernels, misses = at[1].misses - at[0].misses;
    if (kernels > 8 * STEPS / 2) fail_msg("%lld kernels in %d steps", (long long)kernels, STEPS / 2);
    if (misses > 0) fail_msg("%lld new plans in %d steps that are alike", (long long)misses, STEPS / 2);
}

static void looking_twice_runs_nothing(void **state) {
    (void)state;
    wb_array *l = wb_sum(wb_exp(wb_vector(1, 2, 3)));
    const double first = wb_item(l);
    const int64_t evaluations = wb_plan_status().evaluations;
    assert_true(wb_item(l) == first);
    assert_int_equal(wb_plan_status().evaluations, evaluations);
}

static void a_third_look_at_a_part_costs_nothing(void **state) {
    (void)state;
    wb_array *y = wb_exp(wb_vector(1, 2, 3));
    (void)wb_item(wb_sum(y));
    (void)wb_item(wb_maximum(y));
    const int64_t evaluations = wb_plan_status().evaluations;
    assert_true(fabs(wb_at(y, 2) - exp(3)) < 1e-4);
    assert_int_equal(wb_plan_status().evaluations, evaluations);
}

int main(void) {
    enum { ROWS = sizeof steps / sizeof *steps };
    struct CMUnitTest tests[ROWS + 2];
    for (int i = 0; i < ROWS; i++) tests[i] = TEST_ROW(&steps[i], work_grows_linearly);
    tests[ROWS] = (struct CMUnitTest)TEST(looking_twice_runs_nothing);
    tests[ROWS + 1] = (struct CMUnitTest)TEST(a_third_look_at_a_part_costs_nothing);
    return cmocka_run_group_tests_name("values 3", tests, NULL, NULL);
}
