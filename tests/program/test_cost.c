/* src/program/cost.c: operations and bytes counted by hand. */
#include "program/cost.h"

#include <weber/dtype.h>

#include "support/support.h"

static void assert_cost(const char *name, wb_cost cost, double operations, double read,
                        double written) {
    if (cost.operations == operations && cost.read_bytes == read && cost.written_bytes == written)
        return;
    fail_msg("%s: %g operations, %g and %g bytes, not %g, %g and %g", name, cost.operations,
             cost.read_bytes, cost.written_bytes, operations, read, written);
}

typedef struct call_row {
    const char *name;
    wb_call call;
    double operations, read, written;
} call_row;

static void assert_costs(const call_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_cost(rows[i].name, wb_cost_of_call(&rows[i].call), rows[i].operations, rows[i].read,
                    rows[i].written);
}

static void products_and_gathers_have_costs(void **state) {
    (void)state;
    const call_row rows[] = {
        {"a product",
         {.kind = WB_CALL_matmul, .dtype = WB_F32, .matmul = {.m = 3, .n = 4, .k = 5, .batch = 2}},
         240,
         280,
         96},
        {"a product of halves",
         {.kind = WB_CALL_matmul, .dtype = WB_F16, .matmul = {.m = 3, .n = 4, .k = 5, .batch = 1}},
         120,
         70,
         24},
        {"a gather",
         {.kind = WB_CALL_gather,
          .dtype = WB_F32,
          .index = {.inner = 4, .size = 9, .outer = 2, .count = 3}},
         0,
         96,
         96},
    };
    assert_costs(rows, sizeof rows / sizeof *rows);
}

static void convolutions_have_costs(void **state) {
    (void)state;
    const wb_window_call conv = {.in = {6, 5, 1},
                                 .out = {4, 3, 1},
                                 .kernel = {3, 3, 1},
                                 .channels = 4,
                                 .filters = 8,
                                 .groups = 2,
                                 .batch = 10};
    const double x = 6 * 5 * 4 * 10 * 4, y = 4 * 3 * 8 * 10 * 4, w = 3 * 3 * 2 * 8 * 4;
    const double products = 2. * (4 * 3 * 8 * 10) * (3 * 3 * 2);
    const call_row rows[] = {
        {"a convolution",
         {.kind = WB_CALL_conv_forward, .dtype = WB_F32, .window = conv},
         products,
         x + w,
         y},
        {"in the data",
         {.kind = WB_CALL_conv_data, .dtype = WB_F32, .window = conv},
         products,
         y + w,
         x},
        {"in the filter",
         {.kind = WB_CALL_conv_filter, .dtype = WB_F32, .window = conv},
         products,
         x + y,
         w},
    };
    assert_costs(rows, sizeof rows / sizeof *rows);
}

static void attention_has_costs(void **state) {
    (void)state;
    const wb_attention_call attention = {
        .dk = 4, .dv = 6, .queries = 5, .keys = 7, .heads = 2, .kv_heads = 1, .batch = 3};
    const double scores = 2. * 2 * 3 * 5 * 7 * (4 + 6);
    const double q = 4 * 2 * 5 * 3 * 4, kv = (4 + 6) * 7 * 3 * 4, out = 6 * 2 * 5 * 3 * 4;
    const call_row rows[] = {
        {"attention",
         {.kind = WB_CALL_attention, .dtype = WB_F32, .attention = attention},
         scores,
         q + kv,
         out},
        {"its derivative",
         {.kind = WB_CALL_attention_backward, .dtype = WB_F32, .attention = attention},
         2.5 * scores,
         q + kv + 2 * out,
         q + kv},
    };
    assert_costs(rows, sizeof rows / sizeof *rows);
}

/* y = exp(x) + b over (10, 3), b a row of 10; s the sums of y along dimension 0. */
static void programs_read_and_write_once(void **state) {
    (void)state;
    wb_access accesses[] = {{.dtype = WB_F32, .strides = {1, 10}},
                            {.dtype = WB_F32, .strides = {1, 0}},
                            {.dtype = WB_F64, .strides = {1, 10}},
                            {.dtype = WB_F32, .strides = {0, 1}}};
    wb_instruction instructions[] = {
        {.code = WB_CODE_load, .index = 0},
        {.code = WB_CODE_exp},
        {.code = WB_CODE_load, .index = 1},
        {.code = WB_CODE_add},
        {.code = WB_CODE_load, .index = 0},
        {.code = WB_CODE_sum, .row = true},
        {.code = WB_CODE_neg, .row = true},
        {.code = WB_CODE_store, .index = 2},
        {.code = WB_CODE_store, .index = 3, .row = true},
    };
    const wb_program p = {.ndim = 2,
                          .reduced = 1,
                          .sizes = {10, 3},
                          .phases = 1,
                          .ninstructions = sizeof instructions / sizeof *instructions,
                          .naccesses = 4,
                          .instructions = instructions,
                          .accesses = accesses};
    assert_cost("a program", wb_cost_of_program(&p), 3 * 30 + 3, 120 + 40, 240 + 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(products_and_gathers_have_costs),
        TEST(convolutions_have_costs),
        TEST(attention_has_costs),
        TEST(programs_read_and_write_once),
    };
    return cmocka_run_group_tests_name("program/test_cost", tests, NULL, NULL);
}
