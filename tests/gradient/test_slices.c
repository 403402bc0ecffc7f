/* Gradients of slices: side by side they are put together by copies, otherwise added. */
#include "array/array.h"
#include "ops/ops.h"
#include "support/support.h"

enum { MOST_SLICES = 4, LENGTH = 7 };

typedef struct row {
    const char *name;
    int count;
    int64_t slices[MOST_SLICES][2]; /* from, to */
    wb_op op;                       /* of the gradient */
} row;

static const row rows[] = {
    {"three that cover everything are one copy", 3, {{0, 2}, {2, 5}, {5, 7}}, WB_OP_concat},
    {"they may be used backwards", 3, {{5, 7}, {2, 5}, {0, 2}}, WB_OP_concat},
    {"or in any order", 4, {{0, 2}, {3, 5}, {5, 7}, {2, 3}}, WB_OP_concat},
    {"at a distance until one comes between", 3, {{5, 7}, {0, 2}, {2, 5}}, WB_OP_concat},
    {"zeros stay where there is none", 2, {{1, 3}, {3, 6}}, WB_OP_slice_put},
    {"with a gap they are added", 2, {{0, 2}, {4, 7}}, WB_OP_add},
    {"the same slice twice is added", 2, {{0, 7}, {0, 7}}, WB_OP_add},
    {"slices that overlap are added", 2, {{0, 4}, {3, 7}}, WB_OP_add},
    {"neighbours of the same slice twice are added", 3, {{0, 4}, {4, 7}, {0, 4}}, WB_OP_add},
    {"a slice and the whole are added", 2, {{0, 7}, {2, 4}}, WB_OP_add},
};

/* sum of w x^2 over each slice of dimension dim, each with a factor of its own */
static wb_array *slices_of(void *context, int count, wb_array *const *arrays) {
    const row *r = context;
    wb_array *sum = NULL;
    (void)count;
    for (int i = 0; i < r->count; i++) {
        wb_array *part = wb_slice(arrays[0], 1, r->slices[i][0], r->slices[i][1], 1);
        wb_array *term = wb_mul_number(wb_sum(wb_square(part)), i + 1);
        sum = sum ? wb_add(sum, term) : term;
    }
    return sum;
}

static void gradients_are_right(void **state) {
    const row *r = *state;
    double wanted[3 * LENGTH * 2] = {0}, x[3 * LENGTH * 2];
    for (int i = 0; i < 3 * LENGTH * 2; i++) x[i] = i + 1;
    wb_array *whole = array_of(WB_F64, x, 3, (int64_t[]){3, LENGTH, 2}), *g;
    for (int i = 0; i < r->count; i++)
        for (int64_t t = r->slices[i][0]; t < r->slices[i][1]; t++)
            for (int k = 0; k < 3; k++)
                for (int n = 0; n < 2; n++) {
                    const int64_t at = k + 3 * (t + LENGTH * n);
                    wanted[at] += 2 * (i + 1) * x[at];
                }
    assert_int_equal(wb_gradient_of(slices_of((void *)(uintptr_t)r, 1, &whole), 1, &whole, &g),
                     WB_OK);
    if (!wb_is_evaluated(g) && g->op != r->op) /* WEBER_EAGER=1 evaluates it */
        fail_msg("the gradient is made by %s", wb_op_name((wb_op)g->op));
    assert_numbers(g, 3 * LENGTH * 2, wanted, 0);
    if (wb_gradient_check(slices_of, (void *)(uintptr_t)r, 1, &whole, 2, 0) != WB_OK)
        fail_msg("%s", wb_error_message());
}

/* Steps of a sequence: as many copies, and not as many sums over the whole. */
static void a_sequence_is_put_together(void **state) {
    enum { STEPS = 300 };
    (void)state;
    wb_array *x = wb_uniform(WB_F32, 4, STEPS), *sum = NULL, *g;
    for (int t = 0; t < STEPS; t++) {
        wb_array *term = wb_mul_number(wb_sum(wb_slice(x, 1, t, t + 1, 1)), t);
        sum = sum ? wb_add(sum, term) : term;
    }
    assert_int_equal(wb_gradient_of(sum, 1, &x, &g), WB_OK);
    if (!wb_is_evaluated(g)) assert_int_equal(g->ninputs, STEPS);
    wb_array *wanted = wb_iota(WB_F32, 1, 4, STEPS);
    assert_true(wb_approx(g, wanted, 0, 0, NULL, 0));
}

/* Of halves each number is rounded once. */
static void halves_are_put_together_too(void **state) {
    (void)state;
    const double x[] = {1, 2, 3, 4};
    wb_array *whole = array_of(WB_BF16, x, 1, (int64_t[]){4}), *g;
    wb_array *l = wb_add(wb_sum(wb_square(wb_slice(whole, 0, 0, 2, 1))),
                         wb_mul_number(wb_sum(wb_slice(whole, 0, 2, 4, 1)), 3));
    assert_int_equal(wb_gradient_of(l, 1, &whole, &g), WB_OK);
    assert_int_equal(wb_dtype_of(g), WB_BF16);
    assert_values(g, 0, 2, 4, 3, 3);
}

int main(void) {
    struct CMUnitTest tests[sizeof rows / sizeof *rows + 2] = {TEST(a_sequence_is_put_together),
                                                               TEST(halves_are_put_together_too)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tests[i + 2] = TEST_ROW(&rows[i], gradients_are_right);
    return cmocka_run_group_tests_name("slices", tests, NULL, NULL);
}
