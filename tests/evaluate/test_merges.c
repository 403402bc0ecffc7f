/* Programs whose parts try to merge and may not: gradients of gradients through norms, the loss
 * read before its gradient, pending arrays that are set in part. Every derivative is held against
 * differences. */
#include <weber.h>

#include "support/scoped.h"
#include "support/support.h"

static bool reads_first; /* the loss is read before its gradient is taken */

static wb_array *as_read(wb_array *loss) {
    if (reads_first && loss) (void)wb_item(loss);
    return loss;
}

/* A critic of Dense, LayerNorm and Dense, and its gradient's distance from norm 1 (Gulrajani and
 * others 2017). */
static wb_array *gradient_penalty(void *context, int count, wb_array *const *in) {
    wb_array *x = in[0], *w = in[1], *b = in[2], *gain = in[3], *bias = in[4], *last = in[5], *g;
    (void)context, (void)count;
    wb_array *hidden = wb_add(wb_matmul(w, x), b);
    wb_array *normal = wb_tanh(wb_add(wb_mul(wb_normalise(hidden, 1e-5, 0), gain), bias));
    wb_array *y = wb_matmul(last, normal);
    if (wb_gradient_of(wb_sum(y), 1, &x, &g) != WB_OK) return NULL;
    wb_array *norm = wb_sqrt(wb_sum_dims(wb_square(g), 0));
    wb_array *penalty = wb_mean(wb_square(wb_add_number(norm, -1)));
    return as_read(wb_add(wb_mean(y), wb_mul_number(penalty, 10)));
}

static wb_array *sum_of_squares(wb_array *x) { return wb_mean(wb_square(x)); }

static wb_array *several_norms(void *context, int count, wb_array *const *in) {
    wb_array *x = in[0], *k = wb_cos(wb_normalise(x, 0.1, 1));
    (void)context, (void)count;
    wb_array *a = sum_of_squares(wb_add(wb_sigmoid(k), wb_softplus(x)));
    wb_array *b = sum_of_squares(wb_mul(k, x));
    return as_read(wb_add(wb_add(a, b), sum_of_squares(wb_softmax_dims(k, 1))));
}

static wb_array *normal_gradient(void *context, int count, wb_array *const *in) {
    wb_array *x = in[0], *gain = in[1], *bias = in[2], *first[3];
    (void)context, (void)count;
    wb_array *y = wb_tanh(wb_add(wb_mul(wb_normalise(x, 0.1, 0), gain), bias));
    if (wb_pullback(y, wb_sin(y), 3, (wb_array *[]){x, gain, bias}, first) != WB_OK) return NULL;
    wb_array *loss = wb_sum(wb_cos(first[0]));
    for (int i = 1; i < 3; i++) loss = wb_add(loss, wb_sum(wb_cos(first[i])));
    return as_read(loss);
}

static const struct {
    const char *name;
    wb_array_fn *fn;
    int count;
    struct {
        int ndim;
        int64_t sizes[3];
    } in[6];
} rows[] = {
    {"gradient penalty through a norm",
     gradient_penalty,
     6,
     {{2, {2, 6}}, {2, {8, 2}}, {1, {8}}, {1, {8}}, {1, {8}}, {2, {1, 8}}}},
    {"gradient penalty, wide",
     gradient_penalty,
     6,
     {{2, {11, 6}}, {2, {13, 11}}, {1, {13}}, {1, {13}}, {1, {13}}, {2, {1, 13}}}},
    {"several norms of one row", several_norms, 1, {{2, {1, 6}}}},
    {"several norms of rows", several_norms, 1, {{2, {5, 6}}}},
    {"second derivatives of a norm", normal_gradient, 3, {{3, {5, 3, 2}}, {1, {5}}, {1, {5}}}},
    {"second derivatives of a norm of pairs",
     normal_gradient,
     3,
     {{2, {2, 7}}, {1, {2}}, {1, {2}}}},
};

static void check_gradients(bool reads) {
    if (widest() != WB_F64) skip();
    reads_first = reads;
    wb_seed(5);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        wb_array *in[6];
        wb_scope_open();
        for (int i = 0; i < rows[k].count; i++)
            in[i] = wb_copy(wb_normal_make(WB_F64, rows[k].in[i].ndim, rows[k].in[i].sizes));
        if (wb_gradient_check(rows[k].fn, NULL, rows[k].count, in, 1, 1e-5) != WB_OK)
            fail_msg("%s: %s", rows[k].name, wb_error_message());
        wb_scope_close();
    }
}

static void gradients_are_those_of_differences(void **state) {
    (void)state;
    check_gradients(false);
}

static void so_they_are_when_the_loss_was_read_first(void **state) {
    (void)state;
    check_gradients(true);
}

/* ---- pending arrays, set in part ---- */

static void is_three(wb_array *y, double a, double b, double c) {
    const double wanted[] = {a, b, c};
    double have[3];
    assert_int_equal(wb_read_f64(y, have, 3), WB_OK);
    for (int i = 0; i < 3; i++) assert_true(have[i] == wanted[i]);
}

static void a_pending_array_is_set_by_its_own_numbers(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *y = wb_mul(x, x);
    is_three(wb_slice_set(y, y, 0, 0, 3, 1), 1, 4, 9);
    y = wb_mul(x, x);
    is_three(wb_slice_set(y, wb_slice(y, 0, 0, 1, 1), 0, 2, 3, 1), 1, 4, 1);
    y = wb_mul(x, x);
    is_three(wb_slice_set(y, wb_mul_number(wb_slice(y, 0, 0, 1, 1), 2), 0, 1, 2, 1), 1, 2, 9);
}

/* ---- what a program read that is part of another one by now ---- */

/* Two programs that normalise rows become one by the sum of what they give; the sum of x over its
 * rows then joins that one, not the program that was the last to read x. */
static void a_sum_over_rows_joins_what_became_of_the_reader(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 6), 2, 2), *y = wb_vector(4, 6);
    (void)wb_eval(x, y);
    y = wb_expand(wb_unsqueeze(y, 1), 2, 2);
    wb_array *a = wb_mul(x, wb_sum_dims(x, 0)), *b = wb_mul(y, wb_sum_dims(y, 0));
    wb_array *both = wb_add(a, b), *rows = wb_sum_dims(x, 1);
    assert_int_equal(wb_eval(both, rows), WB_OK);
    assert_values(rows, 0, 4, 8);
    assert_values(both, 0, 43, 66, 67, 114);
}

/* The sum of all is known when the program has ended, which sums the columns beside it. */
static void a_sum_beside_others_is_not_read_in_their_program(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 6), 2, 2);
    assert_int_equal(wb_eval(x), WB_OK);
    wb_array *columns = wb_sum_dims(x, 0), *both = wb_mul(columns, wb_sum(x));
    assert_int_equal(wb_eval(columns, both), WB_OK);
    assert_values(columns, 0, 3, 9);
    assert_values(both, 0, 36, 108);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gradients_are_those_of_differences, open_scope,
                                        close_scope),
        cmocka_unit_test_setup_teardown(so_they_are_when_the_loss_was_read_first, open_scope,
                                        close_scope),
        cmocka_unit_test_setup_teardown(a_pending_array_is_set_by_its_own_numbers, open_scope,
                                        close_scope),
        TEST(a_sum_over_rows_joins_what_became_of_the_reader),
        TEST(a_sum_beside_others_is_not_read_in_their_program)};
    return cmocka_run_group_tests_name("evaluate/test_merges", tests, NULL, NULL);
}
