/* Which carries the body of a scan writes in place, and what that saves. */
#include <weber.h>

#include "evaluate/plan.h"
#include "support/support.h"

static void add(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context, (void)outputs;
    carries[0] = wb_add(carries[0], inputs[0]);
}

static void add_and_show(void *context, wb_array **carries, wb_array *const *inputs,
                         wb_array **outputs) {
    add(context, carries, inputs, outputs);
    outputs[0] = carries[0];
}

static void show_and_add(void *context, wb_array **carries, wb_array *const *inputs,
                         wb_array **outputs) {
    outputs[0] = carries[0];
    add(context, carries, inputs, outputs);
}

static void multiply(void *context, wb_array **carries, wb_array *const *inputs,
                     wb_array **outputs) {
    (void)outputs;
    carries[0] = wb_add(wb_matmul(context, carries[0]), inputs[0]);
}

/* Two products of the same matrix, which the CPU packs before the first step. */
static void there_and_back(void *context, wb_array **carries, wb_array *const *inputs,
                           wb_array **outputs) {
    (void)outputs;
    wb_array *w = context, *back = wb_matmul_transposed(w, carries[0], true, false);
    carries[0] = wb_add(wb_matmul(w, back), inputs[0]);
}

static void add_all(void *context, wb_array **carries, wb_array *const *inputs,
                    wb_array **outputs) {
    (void)context, (void)outputs;
    carries[0] = wb_add(wb_sub(carries[0], wb_sum(carries[0])), inputs[0]);
}

static void change_places(void *context, wb_array **carries, wb_array *const *inputs,
                          wb_array **outputs) {
    (void)context, (void)inputs, (void)outputs;
    wb_array *first = carries[0];
    carries[0] = carries[1], carries[1] = first;
}

static void fibonacci(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    (void)context, (void)inputs, (void)outputs;
    wb_array *sum = wb_add(carries[0], carries[1]);
    carries[0] = carries[1], carries[1] = sum;
}

static void both(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context, (void)outputs;
    carries[0] = wb_add(carries[0], inputs[0]);
    carries[1] = wb_mul(carries[1], wb_add(carries[0], wb_number(1)));
}

/* Each new carry is what the other one was, and a little more. */
static void crossed(void *context, wb_array **carries, wb_array *const *inputs,
                    wb_array **outputs) {
    (void)context, (void)outputs;
    wb_array *first = carries[0];
    carries[0] = wb_add(carries[1], inputs[0]), carries[1] = wb_sub(first, inputs[0]);
}

enum { STEPS = 5, SIZE = 6 };

static const struct {
    const char *name;
    wb_scan_fn *step;
    int carries, outputs, in_place;
} rows[] = {
    {"a sum", add, 1, 0, 1},
    {"an output has a place for each step", add_and_show, 1, 1, 0},
    {"an output of what was there before is a copy", show_and_add, 1, 1, 1},
    {"a product reads the whole carry", multiply, 1, 0, 0},
    {"so does a sum of it", add_all, 1, 0, 1},
    {"carries that change places", change_places, 2, 0, 0},
    {"one that becomes the other, and a sum", fibonacci, 2, 0, 1},
    {"two of them", both, 2, 0, 2},
    {"the memory of a carry is for the next one alone", crossed, 2, 0, 0},
};

static int in_place(const wb_array *part) {
    wb_plan *plan = wb_plan_of_body(wb_body_of(part->inputs[0]), wb_default_device());
    assert_non_null(plan);
    int count = 0;
    for (int32_t o = 0; o < plan->output_count; o++) count += plan->outputs[o].is_donated;
    wb_plan_unref(plan);
    return count;
}

static void carries_are_written_in_place(void **state) {
    (void)state;
    wb_array *inputs = wb_uniform(WB_F32, SIZE, STEPS), *w = wb_uniform(WB_F32, SIZE, SIZE);
    assert_int_equal(wb_eval(inputs, w), WB_OK);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        wb_array *start[2] = {wb_ones(WB_F32, SIZE), wb_full(WB_F32, 2, SIZE)};
        assert_int_equal(wb_eval(start[0], start[1]), WB_OK);
        wb_array *carries[2] = {start[0], start[1]}, *loop[2] = {start[0], start[1]}, *shown;
        assert_int_equal(
            wb_scan(rows[k].step, w, rows[k].carries, carries, 1, &inputs, rows[k].outputs, &shown),
            WB_OK);
        const int found = in_place(carries[0]);
        if (found != rows[k].in_place)
            fail_msg("%s: %d in place, not %d", rows[k].name, found, rows[k].in_place);
        for (int64_t t = 0; t < STEPS; t++) {
            wb_array *slice = wb_squeeze(wb_slice(inputs, 1, t, t + 1, 1), 1), *last;
            rows[k].step(w, loop, &slice, &last);
        }
        for (int i = 0; i < rows[k].carries; i++)
            assert_same_bits(carries[i], loop[i], rows[k].name);
        /* what they began with is as it was */
        assert_same_bits(start[0], wb_ones(WB_F32, SIZE), rows[k].name);
        assert_same_bits(start[1], wb_full(WB_F32, 2, SIZE), rows[k].name);
    }
}

/* A carry of 4 MiB takes no more than itself and what it begins with. */
static void a_carry_in_place_needs_no_second_place(void **state) {
    (void)state;
    enum { LARGE = 1 << 20 };
    wb_array *inputs = wb_uniform(WB_F32, 1, STEPS), *sum = wb_ones(WB_F32, LARGE);
    assert_int_equal(wb_eval(inputs, sum), WB_OK);
    assert_int_equal(wb_scan(add, NULL, 1, &sum, 1, &inputs, 0, NULL), WB_OK);
    const wb_memory_info before = wb_memory_status(wb_default_device());
    assert_int_equal(wb_eval(sum), WB_OK);
    const wb_memory_info after = wb_memory_status(wb_default_device());
    assert_int_equal(after.live - before.live, LARGE * 4);
    assert_true(after.workspace - before.workspace < LARGE * 4);
}

/* A scan of its own in each step, over the same inputs, whose matrix is another one each time. */
static void scan_inside(void *context, wb_array **carries, wb_array *const *inputs,
                        wb_array **outputs) {
    wb_array *all = context;
    outputs[0] = inputs[0];
    (void)wb_scan(there_and_back, carries[0], 1, outputs, 1, &all, 0, NULL);
    carries[0] = wb_mul(carries[0], wb_number(0.5));
}

static void so_within_a_body(void **state) {
    (void)state;
    wb_array *inputs = wb_uniform(WB_F32, 515, 3, STEPS), *w = wb_uniform(WB_F32, 515, 40);
    assert_int_equal(wb_eval(inputs, w), WB_OK);
    wb_array *carry = w, *y;
    assert_int_equal(wb_scan(scan_inside, inputs, 1, &carry, 1, &inputs, 1, &y), WB_OK);
    for (int64_t t = 0; t < STEPS; t++) {
        wb_array *h = wb_squeeze(wb_slice(inputs, 2, t, t + 1, 1), 2);
        assert_int_equal(wb_scan(there_and_back, w, 1, &h, 1, &inputs, 0, NULL), WB_OK);
        assert_same_bits(wb_squeeze(wb_slice(y, 2, t, t + 1, 1), 2), h, "a scan in a scan");
        w = wb_mul(w, wb_number(0.5));
    }
}

/* What a product keeps over the steps is made anew in each run: the plan and its memory are the
 * same, but not the matrix. */
static void what_products_keep_is_never_old(void **state) {
    (void)state;
    enum { ROWS = 515, COLUMNS = 40 };
    wb_array *inputs = wb_uniform(WB_F32, ROWS, 3, STEPS), *start = wb_ones(WB_F32, ROWS, 3);
    assert_int_equal(wb_eval(inputs, start), WB_OK);
    for (int run = 0; run < 4; run++) {
        wb_array *w = wb_uniform(WB_F32, ROWS, COLUMNS), *carry = start, *loop = start;
        assert_int_equal(wb_eval(w), WB_OK);
        if (run == 3) w = wb_slice(wb_concat(0, w, w), 0, 0, ROWS, 1);
        assert_int_equal(wb_scan(there_and_back, w, 1, &carry, 1, &inputs, 0, NULL), WB_OK);
        wb_plan *plan = wb_plan_of_body(wb_body_of(carry->inputs[0]), wb_default_device());
        assert_non_null(plan);
        if (wb_default_device()->backend->prepare && !getenv("WEBER_BLAS"))
            assert_int_equal(plan->keeper_count, 2);
        wb_plan_unref(plan);
        for (int64_t t = 0; t < STEPS; t++) {
            wb_array *slice = wb_squeeze(wb_slice(inputs, 2, t, t + 1, 1), 2);
            there_and_back(w, &loop, &slice, NULL);
        }
        assert_same_bits(carry, loop, "a product that keeps its matrix");
    }
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    const struct CMUnitTest tests[] = {
        TEST(carries_are_written_in_place), TEST(a_carry_in_place_needs_no_second_place),
        TEST(what_products_keep_is_never_old), TEST(so_within_a_body)};
    return cmocka_run_group_tests_name("evaluate/test_scan", tests, NULL, NULL);
}
