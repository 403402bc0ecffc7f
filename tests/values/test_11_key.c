/* Rule 11: a plan is found by what it does: a table of pairs that share one, and of pairs that must
 * not. */
#include "support/naive.h"
#include "values/modes.h"

typedef wb_array *builder(void);

static wb_array *vector_of(int64_t n, double first) {
    double numbers[64];
    assert_true(n <= 64);
    for (int64_t i = 0; i < n; i++) numbers[i] = first + 0.25 * (double)i;
    return array_of(WB_F32, numbers, 1, &n);
}
static wb_array *matrix_of(wb_dtype dtype, double first) {
    double numbers[12];
    for (int i = 0; i < 12; i++) numbers[i] = first + i;
    return array_of(dtype, numbers, 2, (const int64_t[]){3, 4});
}
static wb_array *f(wb_array *x) { return wb_sum(wb_exp(wb_mul_number(x, 0.5))); }

static wb_array *of_seven(void) { return f(vector_of(7, 1)); }
static wb_array *of_seven_others(void) { return f(vector_of(7, -2)); }
static wb_array *of_eight(void) { return f(vector_of(8, 1)); }
static wb_array *of_a_part(void) { return f(wb_slice(vector_of(20, 1), 0, 6, 13, 1)); }
static wb_array *of_every_second(void) { return f(wb_slice(vector_of(20, 1), 0, 0, 14, 2)); }
static wb_array *of_doubles(void) { return f(wb_cast(vector_of(7, 1), WB_F64)); }
static wb_array *with_another_constant(void) {
    return wb_sum(wb_exp(wb_mul_number(vector_of(7, 1), 0.25)));
}
static wb_array *with_another_operation(void) {
    return wb_sum(wb_sin(wb_mul_number(vector_of(7, 1), 0.5)));
}

static wb_array *times_late_2(void) { return wb_mul(vector_of(5, 1), wb_late(2)); }
static wb_array *times_late_3(void) { return wb_mul(vector_of(5, 1), wb_late(3)); }
static wb_array *negated_times_2(void) { return wb_mul(wb_neg(vector_of(5, 1)), wb_number(2)); }
static wb_array *negated_times_late_2(void) { return wb_mul(wb_neg(vector_of(5, 1)), wb_late(2)); }

static wb_array *plus_itself(void) {
    wb_array *x = vector_of(5, 1);
    return wb_mul(wb_add(x, x), x);
}
static wb_array *plus_another(void) {
    wb_array *x = vector_of(5, 1);
    return wb_mul(wb_add(x, vector_of(5, 1)), x);
}
static wb_array *minus(void) {
    wb_array *x = vector_of(5, 1), *y = vector_of(5, 3);
    return wb_mul(wb_sub(x, y), x);
}
static wb_array *minus_turned(void) {
    wb_array *x = vector_of(5, 1), *y = vector_of(5, 3);
    return wb_mul(wb_sub(y, x), x);
}

static wb_array *sum_of_columns(void) { return wb_sum_dims(matrix_of(WB_F32, 1), 0); }
static wb_array *sum_of_rows(void) { return wb_sum_dims(matrix_of(WB_F32, 1), 1); }
static wb_array *sum_of_integers(void) { return wb_sum_dims(matrix_of(WB_I32, 1), 0); }
static wb_array *part_from_one(void) {
    return wb_exp(wb_slice(wb_neg(matrix_of(WB_F32, 1)), 0, 1, 3, 1));
}
static wb_array *part_from_zero(void) {
    return wb_exp(wb_slice(wb_neg(matrix_of(WB_F32, 1)), 0, 0, 2, 1));
}
static wb_array *turned_memory(void) {
    wb_array *x = wb_permute(matrix_of(WB_F32, 1), 1, 0);
    assert_int_equal(wb_eval(x), WB_OK);
    return wb_sum_dims(x, 0);
}
static wb_array *dense_memory(void) {
    wb_array *x = wb_copy(wb_permute(matrix_of(WB_F32, 1), 1, 0));
    return wb_sum_dims(x, 0);
}

static wb_array *normal(uint64_t seed) {
    wb_seed(seed);
    return wb_mul_number(wb_normal(WB_F64, 5), 2);
}
static wb_array *normal_of_seed_1(void) { return normal(1); }
static wb_array *normal_of_seed_2(void) { return normal(2); }

static wb_array *unkept(void) { return wb_sum(wb_exp(wb_neg(vector_of(6, 0)))); }
static wb_array *kept_middle;
static wb_array *kept(void) {
    kept_middle = wb_keep(wb_exp(wb_neg(vector_of(6, 0))));
    return wb_sum(kept_middle);
}

/* What was computed without being stored is stored by the next plan, which is another one. */
static wb_array *computed_before(void) {
    wb_array *y = wb_exp(wb_neg(vector_of(6, 0)));
    (void)wb_item(wb_maximum(y));
    return wb_sum(y);
}

static const struct row {
    const char *name;
    builder *first, *second;
    bool shared;
} rows[] = {
    {"other memory is no other plan", of_seven, of_seven_others, true},
    {"a part of a buffer is no other plan", of_seven, of_a_part, true},
    {"another late number is no other plan", times_late_2, times_late_3, true},
    {"another seed is no other plan", normal_of_seed_1, normal_of_seed_2, true},
    {"other sizes are another plan", of_seven, of_eight, false},
    {"strides are part of it", of_seven, of_every_second, false},
    {"a transpose in memory is another plan", dense_memory, turned_memory, false},
    {"types are part of it", of_seven, of_doubles, false},
    {"integers are not floats", sum_of_columns, sum_of_integers, false},
    {"a constant is part of it", of_seven, with_another_constant, false},
    {"so is an operation", of_seven, with_another_operation, false},
    {"late is not constant", negated_times_2, negated_times_late_2, false},
    {"x + x is not x + y", plus_itself, plus_another, false},
    {"x - y is not y - x", minus, minus_turned, false},
    {"dimensions of a sum are part of it", sum_of_columns, sum_of_rows, false},
    {"places of a slice are part of it", part_from_zero, part_from_one, false},
    {"what is visible is part of it", unkept, kept, false},
    {"what was computed before is part of it", unkept, computed_before, false},
};

static void assert_is_right(wb_array *x, const char *what) {
    naive_table *table = naive_new();
    assert_as_naive(table, x, 1e-5, what);
    naive_free(table);
}

static void plans_are_found_by_what_they_do(void **state) {
    const struct row *row = *state;
    wb_array *first = row->first();
    assert_int_equal(wb_eval(first), WB_OK);
    wb_array *second = row->second();
    const int64_t misses = wb_plan_status().misses;
    assert_int_equal(wb_eval(second), WB_OK);
    const int64_t more = wb_plan_status().misses - misses;
    if (row->shared) assert_int_equal(more, 0);
    if (!row->shared && !is_eager()) assert_int_equal(more, 1);
    assert_is_right(first, row->name);
    assert_is_right(second, row->name);
    /* and back: the first is still there */
    wb_array *again = row->first();
    const int64_t before = wb_plan_status().misses;
    assert_int_equal(wb_eval(again), WB_OK);
    assert_int_equal(wb_plan_status().misses, before);
    assert_same_bits(again, first, row->name);
    wb_free(kept_middle);
    kept_middle = NULL;
}

/* Donation is part of it: a plan that may write over its argument is never run on one that has to
 * stay. */
static void what_may_be_overwritten_is_part_of_it(void **state) {
    (void)state;
    wb_array *results[3];
    for (int i = 0; i < 3; i++) { /* free to be overwritten, held, free */
        wb_array *x = vector_of(40, 1), *held = i == 1 ? wb_keep(x) : NULL;
        wb_scope_open();
        results[i] = wb_exp(wb_neg(x));
        assert_int_equal(wb_scope_close_leaving(1, &results[i]), WB_OK);
        if (!held) wb_free(x);
        assert_int_equal(wb_eval(results[i]), WB_OK);
        if (held) assert_true(wb_approx(held, vector_of(40, 1), 0, 0, NULL, 0));
        wb_free(held);
    }
    assert_same_bits(results[1], results[0], "held");
    assert_same_bits(results[2], results[0], "free again");
}

/* Two arrays that overlap in memory, where the same plan ran on two that do not. */
static void overlapping_arguments_give_right_results(void **state) {
    (void)state;
    wb_array *a = vector_of(20, 1), *b = vector_of(20, 5);
    wb_array *apart = wb_add(wb_slice(a, 0, 0, 12, 1), wb_slice(b, 0, 3, 15, 1));
    wb_array *overlapping = wb_add(wb_slice(a, 0, 0, 12, 1), wb_slice(a, 0, 3, 15, 1));
    assert_int_equal(wb_eval(apart), WB_OK);
    assert_int_equal(wb_eval(overlapping), WB_OK);
    assert_is_right(apart, "apart");
    assert_is_right(overlapping, "overlapping");
}

/* Many keys in one table: every one of them is found again, and none is taken for another. */
static void a_thousand_plans_are_kept_apart(void **state) {
    (void)state;
    enum { PLANS = 1000 };
    wb_array *x = wb_vector(1, 2, 3);
    for (int round = 0; round < 2; round++) {
        const int64_t misses = wb_plan_status().misses;
        for (int i = 0; i < PLANS; i++) {
            wb_scope_open();
            const double c = i + 0.5;
            assert_true(wb_item(wb_sum(wb_mul_number(x, c))) == 6 * c);
            assert_int_equal(wb_scope_close(), WB_OK);
        }
        if (round == 1) assert_int_equal(wb_plan_status().misses, misses);
    }
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(what_may_be_overwritten_is_part_of_it),
        TEST(overlapping_arguments_give_right_results),
        TEST(a_thousand_plans_are_kept_apart),
    };
    ADD_ROWS(&tests, rows, plans_are_found_by_what_they_do);
    ADD_TESTS(&tests, others);
    return run_test_list("values 11", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
