/* C numbers as operands: what weber/ops.h makes of wb_add(x, 1). */
#include "support/support.h"

typedef wb_array *binary(wb_array *x, wb_array *y);

typedef struct row {
    const char *name;
    wb_array *(*right)(wb_array *x), *(*left)(wb_array *x);
    binary *function;
} row;

/* A row of ops.def without its macro in weber/ops.h does not compile here: 3 is no pointer. */
#define WB_BINARY(name, type_class, text, dx, dy, lo, hi, doc)                                     \
    static wb_array *right_##name(wb_array *x) { return wb_##name(x, 3); }                         \
    static wb_array *left_##name(wb_array *x) { return wb_##name(2.5, x); }
#include <weber/ops.def>

static const row rows[] = {
#define WB_BINARY(name, type_class, text, dx, dy, lo, hi, doc)                                     \
    {#name, right_##name, left_##name, wb_##name},
#include <weber/ops.def>
};

static void expect_the_same(const row *r, wb_array *y, wb_array *wanted) {
    char where[100];
    if (!y && !wanted) { /* wb_and, wb_or: bool alone */
        wb_clear_error();
        return;
    }
    assert_int_equal(wb_dtype_of(y), wb_dtype_of(wanted));
    if (!wb_approx(y, wanted, 0, 0, where, sizeof where)) fail_msg("%s: %s", r->name, where);
}

static void every_row_takes_numbers_on_either_side(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        wb_array *x[] = {wb_vector(1, 2, 3, 4), wb_vector_of(WB_I32, 1, 2, 3)};
        for (int k = 0; k < 2; k++) {
            expect_the_same(r, r->right(x[k]), r->function(x[k], wb_number(3)));
            expect_the_same(r, r->left(x[k]), r->function(wb_number(2.5), x[k]));
        }
    }
}

/* Doubles have gaps beyond 2^53; long and long long do not. */
static void large_whole_numbers_are_exact(void **state) {
    (void)state;
    const int64_t gap = (INT64_C(1) << 53) + 1;
    int64_t got[2];
    wb_array *x = wb_vector_of(WB_I64, gap, gap - 1), *y = wb_add(x, gap);
    assert_int_equal(wb_read(y, got, sizeof got), WB_OK);
    assert_true(got[0] == 2 * gap && got[1] == 2 * gap - 1);
    assert_values(wb_eq(x, gap), 0, 1, 0);
    assert_values(wb_eq((unsigned long long)gap, x), 0, 1, 0);
    assert_values(wb_lt(wb_neg(x), -gap + 1), 0, 1, 0);
    assert_values(wb_sub(wb_sub(x, INT64_MAX), -INT64_MAX + gap), 0, 0, -1);
    assert_values(wb_sub(wb_whole_number(INT64_MIN), wb_whole_number(INT64_MIN + 1)), 0, -1);
    assert_int_equal(wb_dtype_of(wb_add(wb_vector(1, 2), gap)), WB_F32);
    assert_int_equal(wb_dtype_of(wb_add(wb_vector_of(WB_I32, 1, 2), gap)), WB_I64);
    wb_array *truths = wb_vector_of(WB_BOOL, 0, 1);
    assert_values(wb_and(truths, gap), 0, 0, 1);
    assert_values(wb_or(INT64_MIN, truths), 0, 1, 1);
    assert_null(wb_add(wb_vector_of(WB_I32, 1, 2), gap - 2)); /* a number without a type */
    assert_error(WB_ERROR_ARGUMENT, "i32 holds whole numbers");
}

static void numbers_of_every_type_are_operands(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2);
    const int64_t two = 2;
    const float half = 0.5f;
    assert_values(wb_add(x, 0), 0, 1, 2); /* no null pointer */
    assert_values(wb_mul(x, true), 0, 1, 2);
    assert_values(wb_add(x, 'a' - 'a'), 0, 1, 2);
    assert_values(wb_sub(1, wb_mul((double)half, wb_max(x, (uint8_t)two))), 0, 0, 0);
    assert_values(wb_add(wb_vector_of(WB_U8, 250), 5u), 0, 255);
    assert_values(wb_select(wb_gt(x, 1), x, 0), 0, 0, 2);
    assert_values(wb_select(wb_gt(x, 1), 7, x), 0, 1, 7);
    assert_values(wb_slice_set(x, 9, 0, 1, 2, 1), 0, 1, 9);
    assert_values(wb_sub_number(x, 0.5), 0, 0.5, 1.5);
    assert_values(wb_div_number(x, 4), 0, 0.25, 0.5);
}

static void of_logic_a_number_is_whether_it_differs_from_zero(void **state) {
    (void)state;
    wb_array *x = wb_vector_of(WB_BOOL, true, false);
    assert_values(wb_and(x, 2), 0, 1, 0);
    assert_values(wb_and(x, 0), 0, 0, 0);
    assert_values(wb_and(true, x), 0, 1, 0);
    assert_values(wb_or(-0.5, x), 0, 1, 1);
    assert_values(wb_or(x, wb_number(0)), 0, 1, 0);
    assert_int_equal(wb_dtype_of(wb_or(x, 1)), WB_BOOL);
}

static void arrays_stay_what_they_are(void **state) {
    (void)state;
    wb_array *const x = wb_vector(1, 2);
    void *any = x;
    binary *add = wb_add;
    assert_values(add(x, any), 0, 2, 4);
    assert_values(wb_add(any, x), 0, 2, 4);
    assert_null(wb_add(x, NULL));
    assert_error(WB_ERROR_ARGUMENT, "add: y is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_row_takes_numbers_on_either_side),
        TEST(large_whole_numbers_are_exact),
        TEST(numbers_of_every_type_are_operands),
        TEST(of_logic_a_number_is_whether_it_differs_from_zero),
        TEST(arrays_stay_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
