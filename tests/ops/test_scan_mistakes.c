/* Scans whose body, operands or gradient are not what they must be. */
#include "support/support.h"

static void add_up(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context;
    outputs[0] = carries[0] = wb_add(carries[0], inputs[0]);
}

enum {
    WIDER,
    OTHER_TYPE,
    NO_CARRY,
    NO_OUTPUT,
    READS,
    EVALUATES,
    KEEPS,
    SEEDS,
    SETS,
    CLOSES,
    OPENS,
    LEAKS,
    FAILS
};

static wb_array *leaked;
static wb_layer *model;

static void wrong(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    outputs[0] = inputs[0];
    switch (*(const int *)context) {
    case WIDER:
        carries[0] = wb_concat(0, carries[0], inputs[0]);
        break;
    case OTHER_TYPE:
        carries[0] = wb_cast(carries[0], WB_I32);
        break;
    case NO_CARRY:
        carries[0] = NULL;
        break;
    case NO_OUTPUT:
        outputs[0] = NULL;
        break;
    case READS:
        carries[0] = wb_mul_number(carries[0], wb_at(inputs[0], 0));
        break;
    case EVALUATES:
        wb_eval(inputs[0]);
        break;
    case KEEPS:
        wb_keep(carries[0]);
        break;
    case SEEDS:
        wb_seed(1);
        break;
    case SETS:
        (void)wb_set(model, "1", carries[0]);
        break;
    case CLOSES:
        (void)wb_scope_close();
        break;
    case OPENS:
        (void)wb_scope_open();
        break;
    case LEAKS:
        leaked = wb_exp(inputs[0]);
        break;
    default:
        carries[0] = wb_add(carries[0], wb_ones(WB_F32, 7));
    }
}

static const struct mistake {
    const char *name;
    int what;
    wb_status status;
    const char *message;
} mistakes[] = {
    {"a carry that grows", WIDER, WB_ERROR_SHAPE,
     "scan: carry 0 is f32 (2), so the body must give f32 (2) for the next step, but gave f32 (4)"},
    {"a carry that changes its type", OTHER_TYPE, WB_ERROR_DTYPE,
     "scan: carry 0 is f32 (2), so the body must give f32 (2) for the next step, but gave i32 (2)"},
    {"a carry that is NULL", NO_CARRY, WB_ERROR_ARGUMENT, "scan: the body gave NULL as carry 0"},
    {"an output that is NULL", NO_OUTPUT, WB_ERROR_ARGUMENT,
     "scan: the body gave NULL as output 0"},
    {"reading in a body", READS, WB_ERROR_ARGUMENT,
     "at: cannot be called inside the body of a scan"},
    {"evaluating in a body", EVALUATES, WB_ERROR_ARGUMENT,
     "eval: cannot be called inside the body of a scan"},
    {"keeping in a body", KEEPS, WB_ERROR_ARGUMENT,
     "wb_keep: cannot be called inside the body of a scan"},
    {"seeding in a body", SEEDS, WB_ERROR_ARGUMENT,
     "wb_seed: cannot be called inside the body of a scan"},
    {"setting a state in a body", SETS, WB_ERROR_ARGUMENT,
     "wb_set: cannot be called inside the body of a scan"},
    {"closing a scope that the body has not opened", CLOSES, WB_ERROR_ARGUMENT,
     "wb_scope_close: the body of the scan has no scope open"},
    {"opening a scope and not closing it", OPENS, WB_ERROR_ARGUMENT,
     "the body of the scan opened a scope and did not close it"},
    {"an operation that fails in a body", FAILS, WB_ERROR_SHAPE, "add: sizes (2) and (7)"},
};

static void a_mistake_is_named(void **state) {
    const struct mistake *m = *state;
    int what = m->what;
    wb_array *x = wb_ones(WB_F32, 2, 3), *h = wb_ones(WB_F32, 2), *y = x;
    wb_seed(1);
    model = wb_tree(wb_vector(5, 6));
    assert_int_equal(wb_scan(wrong, &what, 1, &h, 1, &x, 1, &y), m->status);
    assert_error(m->status, m->message);
    assert_true(!h && !y);
    assert_values(wb_get(model, "1"), 0, 5, 6);
    wb_free(model);
    wb_array *z = wb_vector(1, 2); /* the thread is as before */
    assert_true(wb_item(wb_sum(z)) == 3);
}

static void add_a_number(void *context, wb_array **carries, wb_array *const *inputs,
                         wb_array **outputs) {
    (void)inputs, (void)outputs;
    carries[0] = wb_add(carries[0], context);
}

/* Its recipe is gone, but it still takes the type of what it meets. */
static void a_kept_number_is_one_in_a_body(void **state) {
    (void)state;
    assert_int_equal(wb_scope_open(), WB_OK);
    wb_array *six = wb_keep(wb_mul(wb_number(2), wb_number(3)));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_array *h = wb_zeros(WB_F32, 2);
    assert_int_equal(wb_scan(add_a_number, six, 1, &h, 0, NULL, 0, NULL, .steps = 2), WB_OK);
    assert_int_equal(wb_dtype_of(h), WB_F32);
    assert_values(h, 0, 12, 12);
    wb_free(six);
}

static void grow_by(void *context, wb_array **carries, wb_array *const *inputs,
                    wb_array **outputs) {
    (void)inputs, (void)outputs;
    carries[0] = wb_add(carries[0], wb_exp(wb_mul(carries[0], context)));
}

static void a_gradient_needs_a_dimension_for_the_steps(void **state) {
    (void)state;
    wb_array *w = wb_copy(wb_full(WB_F32, 0.5, 1)), *g[1];
    wb_array *h = wb_zeros(WB_F32, 2, 1, 1, 1, 1, 1, 1, 2);
    assert_int_equal(wb_scan(grow_by, w, 1, &h, 0, NULL, 0, NULL, .steps = 2), WB_OK);
    wb_array *l = wb_sum(h);
    assert_int_not_equal(wb_gradient_of(l, 1, &w, g), WB_OK);
    assert_error(WB_ERROR_SHAPE, "scan: the gradient keeps (2, 1, 1, 1, 1, 1, 1, 2) of each step");
    assert_value(l, 4 * (1 + exp(0.5)), 1e-5); /* the scan is as it was */
}

static void what_leaves_a_body_has_no_value(void **state) {
    (void)state;
    int what = LEAKS;
    wb_array *x = wb_ones(WB_F32, 2, 3), *h = wb_ones(WB_F32, 2), *y;
    assert_int_equal(wb_scan(wrong, &what, 1, &h, 1, &x, 1, &y), WB_OK);
    assert_values(h, 0, 1, 1);
}

static void operands_that_do_not_fit(void **state) {
    (void)state;
    wb_array *x[2] = {wb_ones(WB_F32, 2, 3), wb_ones(WB_F32, 2, 4)}, *h = wb_ones(WB_F32, 2), *y;
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 2, x, 1, &y), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "scan: input 1 has 4 steps, in dimension 1 of (2, 4), but 3 are "
                                 "expected, from input 0");
    h = wb_ones(WB_F32, 2);
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, x, 1, &y, .steps = 7), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "but 7 are expected, from .steps");
    h = wb_ones(WB_F32, 2);
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 0, NULL, 1, &y), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "scan: .steps is needed, since there are no inputs");
    h = wb_ones(WB_F32, 2);
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, x, 1, &y, .dim = 2), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "scan: .dim must be a dimension of input 0, from -2 to 1");
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, x, 1, &y), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "carry 0 is NULL");
    h = wb_ones(WB_F32, 2);
    assert_int_equal(wb_scan(NULL, NULL, 1, &h, 1, x, 1, &y), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "scan: the body is NULL");
    h = wb_ones(WB_F32, 2);
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, x, 1, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "scan: a list is NULL or its length negative");
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, mistakes, a_mistake_is_named);
    const struct CMUnitTest others[] = {
        TEST(a_kept_number_is_one_in_a_body), TEST(a_gradient_needs_a_dimension_for_the_steps),
        TEST(what_leaves_a_body_has_no_value), TEST(operands_that_do_not_fit)};
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_scan_mistakes", &tests, NULL, NULL);
}
