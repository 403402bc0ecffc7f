/* Rule 3: x = f(x) a thousand times, looking at it each time: the work grows linearly. */
#include "values/modes.h"

enum { STEPS = 1000 };

typedef wb_array *step_fn(wb_array *x);

static wb_array *elementwise(wb_array *x) { return wb_sin(wb_add_number(x, 0.1)); }
static wb_array *product(wb_array *x) {
    return wb_mul_number(wb_matmul(wb_full(WB_F32, 0.01, 8, 8), x), 0.9);
}
static wb_array *rows(wb_array *x) { return wb_softmax(wb_mul_number(x, 1.1)); }
static wb_array *reduced(wb_array *x) { return wb_sub(x, wb_mul_number(wb_mean_dims(x, 0), 0.5)); }
static wb_array *turned(wb_array *x) { return wb_tanh(wb_transpose(x)); }
static wb_array *pooled(wb_array *x) {
    return wb_reshape(wb_maxpool_op(wb_reshape(wb_concat(0, x, x), 16, 8, 1, 1), .kernel = {2, 1}),
                      8, 8);
}

static const struct row {
    const char *name;
    step_fn *fn;
} steps[] = {{"elementwise steps are not computed again", elementwise},
             {"products are not computed again", product},
             {"softmax is not computed again", rows},
             {"means are not computed again", reduced},
             {"views are not computed again", turned},
             {"pools are not computed again", pooled}};

static void work_grows_linearly(void **state) {
    const struct row *row = *state;
    wb_array *x = wb_uniform(WB_F32, 8, 8);
    wb_plan_counts at[5];
    for (int i = 0; i < STEPS; i++) {
        if (i % (STEPS / 4) == 0) at[i / (STEPS / 4)] = wb_plan_status();
        x = row->fn(x);
        assert_true(isfinite(wb_item(wb_sum(x))));
    }
    at[4] = wb_plan_status();
    const int64_t early = at[2].kernels - at[1].kernels, late = at[4].kernels - at[3].kernels;
    if (late > early) fail_msg("%lld kernels, and later %lld", (long long)early, (long long)late);
    const int64_t most = (is_planned() ? 8 : 40) * (STEPS / 4);
    if (late > most) fail_msg("%lld kernels in %d steps", (long long)late, STEPS / 4);
    const int64_t misses = at[4].misses - at[1].misses;
    if (misses > 0) fail_msg("%lld new plans in steps that are alike", (long long)misses);
}

/* The same through a graph that grows: each step's sum is added to the one before. */
static void a_growing_sum_is_linear(void **state) {
    (void)state;
    wb_array *x = wb_uniform(WB_F32, 100), *total = wb_sum(x);
    int64_t kernels[2] = {0, 0};
    for (int i = 0; i < STEPS; i++) {
        const int64_t before = wb_plan_status().kernels;
        x = wb_cos(x);
        total = wb_add(total, wb_sum(wb_square(x)));
        (void)wb_item(total);
        kernels[i >= STEPS / 2] += wb_plan_status().kernels - before;
    }
    assert_true(kernels[1] <= kernels[0] + 10);
}

/* A product that somebody holds is there after the first plan that came by. */
static void products_and_sums_are_stored_at_once(void **state) {
    (void)state;
    wb_array *a = wb_uniform(WB_F32, 16, 16);
    wb_array *product = wb_matmul(a, a), *sums = wb_sum_dims(wb_exp(a), 0), *plain = wb_exp(a);
    wb_array *seen = wb_add(wb_sum(product), wb_add(wb_sum(wb_square(sums)), wb_sum(plain)));
    (void)wb_item(seen);
    assert_true(wb_is_evaluated(product));
    assert_true(wb_is_evaluated(sums));
    if (is_planned()) assert_false(wb_is_evaluated(plain));
    (void)wb_item(wb_maximum(plain));
    assert_true(wb_is_evaluated(plain)); /* it was computed before: the second plan stores it */
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

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(a_growing_sum_is_linear),
        TEST(products_and_sums_are_stored_at_once),
        TEST(looking_twice_runs_nothing),
        TEST(a_third_look_at_a_part_costs_nothing),
    };
    ADD_ROWS(&tests, steps, work_grows_linearly);
    ADD_TESTS(&tests, others);
    return run_test_list("values 3", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
