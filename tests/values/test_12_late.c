/* Rule 12: a number in C is a constant unless wb_late made it; late numbers are one only if they
 * are the same array. */
#include "values/modes.h"

/* A formula with late numbers a and b at x = (1, 2, 4), and the same in C. It is evaluated
 * twice: first where a late number could be mistaken for something else, then where it must not
 * have been. */
typedef struct row {
    const char *name;
    wb_array *(*fn)(wb_array *x, wb_array *a, wb_array *b);
    double (*wanted)(double x, double a, double b);
    double first[2], second[2];
} row;

static wb_array *beside_a_constant(wb_array *x, wb_array *a, wb_array *b) {
    (void)b;
    return wb_add(wb_mul(x, a), wb_mul(wb_square(x), wb_number(0.5)));
}
static double c_beside_a_constant(double x, double a, double b) {
    return x * a + x * x * 0.5 + 0 * b;
}

static wb_array *two_rates(wb_array *x, wb_array *a, wb_array *b) {
    return wb_sub(wb_mul(x, a), wb_mul(wb_square(x), b));
}
static double c_two_rates(double x, double a, double b) { return x * a - x * x * b; }

static wb_array *difference(wb_array *x, wb_array *a, wb_array *b) {
    return wb_mul(x, wb_sub(a, b));
}
static double c_difference(double x, double a, double b) { return x * (a - b); }

static wb_array *power(wb_array *x, wb_array *a, wb_array *b) { return wb_mul(wb_pow(x, a), b); }
static double c_power(double x, double a, double b) { return pow(x, a) * b; }

static wb_array *neutral(wb_array *x, wb_array *a, wb_array *b) { return wb_add(wb_mul(x, a), b); }
static double c_neutral(double x, double a, double b) { return x * a + b; }

static wb_array *quotient(wb_array *x, wb_array *a, wb_array *b) {
    return wb_div(wb_add(x, a), wb_sub(b, wb_number(3)));
}
static double c_quotient(double x, double a, double b) { return (x + a) / (b - 3); }

static wb_array *choice(wb_array *x, wb_array *a, wb_array *b) {
    return wb_select(wb_gt(x, a), b, wb_mul_number(b, -1));
}
static double c_choice(double x, double a, double b) { return x > a ? b : -b; }

static wb_array *among_numbers(wb_array *x, wb_array *a, wb_array *b) {
    return wb_mul(x, wb_sqrt(wb_add(wb_square(a), wb_mul(b, wb_number(2)))));
}
static double c_among_numbers(double x, double a, double b) { return x * sqrt(a * a + b * 2); }

static wb_array *repeated(wb_array *x, wb_array *a, wb_array *b) {
    wb_array *wide = wb_expand(wb_reshape(a, 1), 3);
    return wb_add(wb_mul(x, wide), wb_sum(wb_mul(wide, b)));
}
static double c_repeated(double x, double a, double b) { return x * a + 3 * a * b; }

static const row rows[] = {
    {"a rate that equals a constant", beside_a_constant, c_beside_a_constant, {0.5, 0}, {0.25, 0}},
    {"two rates that are equal now", two_rates, c_two_rates, {0.1, 0.1}, {0.1, 0.7}},
    {"a difference that is 0 now", difference, c_difference, {3, 3}, {3, 1}},
    {"pow(x, late 2) is no square", power, c_power, {2, 1}, {3, 2}},
    {"pow(x, late -1) is no reciprocal", power, c_power, {-1, 1}, {1, 1}},
    {"pow(x, late 1) is not x", power, c_power, {1, 1}, {0.5, 4}},
    {"x late 1 + late 0 is not x", neutral, c_neutral, {1, 0}, {2, 5}},
    {"x late 0 is not 0", neutral, c_neutral, {0, 0}, {2, 0}},
    {"late numbers in a quotient", quotient, c_quotient, {0, 4}, {1, 5}},
    {"a late threshold", choice, c_choice, {2, 1}, {0, 7}},
    {"arithmetic among late numbers is late", among_numbers, c_among_numbers, {1, 4}, {3, 0}},
    {"a late number repeated", repeated, c_repeated, {2, 2}, {2, 5}},
};

static void assert_formula(const row *r, const double *late) {
    const double x[] = {1, 2, 4};
    double wanted[3];
    for (int i = 0; i < 3; i++) wanted[i] = r->wanted(x[i], late[0], late[1]);
    wb_array *y =
        r->fn(array_of(widest(), x, 1, (const int64_t[]){3}), wb_late(late[0]), wb_late(late[1]));
    assert_numbers(y, 3, wanted, coarse(1e-12, 1e-6));
}

static void late_numbers_are_read_at_each_run(void **state) {
    const row *r = *state;
    assert_formula(r, r->first);
    const int64_t misses = wb_plan_status().misses;
    assert_formula(r, r->second);
    if (!is_eager()) assert_int_equal(wb_plan_status().misses, misses); /* and it costs no plan */
    assert_formula(r, r->first);
}

static void the_same_late_array_is_one_number(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *a = wb_late(2), *b = wb_late(2);
    wb_array *same = wb_sub(wb_mul(x, a), wb_mul(wb_neg(x), a));
    wb_array *other = wb_sub(wb_mul(x, a), wb_mul(wb_neg(x), b));
    assert_values(same, 0, 4, 8, 12);
    const int64_t misses = wb_plan_status().misses;
    assert_values(other, 0, 4, 8, 12);
    if (!is_eager()) assert_int_equal(wb_plan_status().misses, misses + 1); /* another key */
}

static void a_constant_that_changes_is_planned_anew(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3);
    assert_values(wb_mul(x, wb_number(2.5)), 0, 2.5, 5, 7.5);
    const int64_t misses = wb_plan_status().misses;
    assert_values(wb_mul(x, wb_number(3.5)), 0, 3.5, 7, 10.5);
    assert_int_equal(wb_plan_status().misses, misses + 1);
}

/* Two dropouts whose keys and counters are equal now: one plan, and it does not take them for
 * one. */
static void masks_with_equal_counters_are_two(void **state) {
    (void)state;
    wb_array *x = wb_copy(wb_ones(WB_F32, 64, 8));
    double differing[2];
    int64_t misses = 0;
    for (int i = 0; i < 2; i++) {
        wb_seed(5);
        wb_array *first = wb_mul(x, wb_uniform(WB_F32, 64, 8));
        wb_seed(i ? 6 : 5);
        wb_array *second = wb_mul(x, wb_uniform(WB_F32, 64, 8));
        if (i) misses = wb_plan_status().misses;
        wb_array *unequal = wb_cast(wb_ne(first, second), WB_F32);
        differing[i] = wb_item(wb_sum(unequal));
    }
    assert_true(differing[0] == 0);
    assert_true(differing[1] > 500);
    if (!is_eager()) assert_int_equal(wb_plan_status().misses, misses);
}

static void two_dropouts_of_one_model_differ(void **state) {
    (void)state;
    wb_layer *a = wb_dropout(.p = 0.5), *b = wb_dropout(.p = 0.5);
    assert_int_equal(wb_train_mode(a) | wb_train_mode(b), WB_OK);
    wb_array *x = wb_ones(WB_F32, 32, 32);
    wb_array *unequal = wb_ne(wb_apply(a, x), wb_apply(b, x));
    assert_true(wb_item(wb_sum(unequal)) > 300);
    wb_free(a), wb_free(b);
}

/* A late number read, kept, cast and compared is its value. */
static void late_numbers_are_arrays(void **state) {
    (void)state;
    for (int i = 2; i < 4; i++) {
        wb_array *late = wb_late(i);
        assert_true(wb_item(late) == i);
        assert_value(wb_cast(wb_late(i + 0.75), WB_I32), i, 0);
        assert_value(wb_eq(wb_late(i), wb_number(3)), i == 3, 0);
        assert_value(wb_sum(wb_gt(wb_iota(WB_F32, 0, 5), wb_late(i))), 4 - i, 0);
    }
}

/* ---- a learning rate ---- */

static wb_array *sum_of(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_get(model, "1"));
}

/* x -= eta: rates that equal 1, 0, and the rule's own constants, all by one plan. */
static void a_rate_that_changes_costs_no_plan(void **state) {
    (void)state;
    const double rates[] = {0.1, 0.3, 1, 0, 0.9, 0.5, 1e-8, 0.1};
    enum { STEPS = sizeof rates / sizeof *rates };
    wb_layer *model = wb_tree(wb_cast(wb_vector(1, 2), WB_F64));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1, .rho = 0.5), model);
    double x = 1, v = 0;
    int64_t misses = 0;
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(wb_adjust(o, rates[i]), WB_OK);
        wb_scope_open();
        const wb_batch batch = {0};
        wb_gradients *g;
        assert_non_null(wb_withgradient(sum_of, model, &batch, NULL, &g));
        assert_int_equal(wb_update(o, model, g), WB_OK);
        assert_int_equal(wb_scope_close(), WB_OK);
        if (i == 1) misses = wb_plan_status().misses; /* the second step writes in place */
        v = 0.5 * v + rates[i];
        x -= v;
    }
    assert_int_equal(wb_plan_status().misses, misses);
    assert_values(wb_get(model, "1"), 1e-12, x, x + 1);
    wb_free(o), wb_free(model);
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(the_same_late_array_is_one_number), TEST(a_constant_that_changes_is_planned_anew),
        TEST(masks_with_equal_counters_are_two), TEST(two_dropouts_of_one_model_differ),
        TEST(late_numbers_are_arrays),           TEST(a_rate_that_changes_costs_no_plan),
    };
    ADD_ROWS(&tests, rows, late_numbers_are_read_at_each_run);
    ADD_TESTS(&tests, others);
    return run_test_list("values 12", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
