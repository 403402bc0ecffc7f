/* From nodes to values: what is expanded, folded, merged and dropped. */
#include "evaluate/small.h"

static wb_array *x, *y, *h, *i; /* f32 (2, 3) twice, f16 (2, 3), i32 (2, 3) */

static wb_array *plus_zero(void) { return wb_add(x, wb_number(0)); }
static wb_array *times_one(void) { return wb_mul(wb_number(1), wb_neg(x)); }
static wb_array *times_zero(void) { return wb_mul(x, wb_number(0)); }
static wb_array *squared(void) { return wb_pow(x, wb_number(2)); }
static wb_array *inverted(void) { return wb_pow(x, wb_number(-1)); }
static wb_array *there_and_back(void) { return wb_cast(wb_cast(x, WB_F64), WB_F32); }
static wb_array *twice_the_same(void) { return wb_mul(wb_add(x, y), wb_add(x, y)); }
static wb_array *in_other_order(void) { return wb_mul(wb_sub(x, y), wb_sub(y, x)); }
static wb_array *random_numbers(void) {
    return wb_add(wb_uniform(WB_F32, 2, 3), wb_uniform(WB_F32, 2, 3));
}
static wb_array *numbers(void) {
    return wb_mul(x, wb_add(wb_mul(wb_number(2), wb_number(3)), wb_number(1)));
}
static wb_array *relu(void) { return wb_relu(x); }
static wb_array *mean(void) { return wb_mean_dims(x, 0); }
static wb_array *sum_of_ones(void) { return wb_sum_dims(wb_reshape(wb_neg(x), 1, 6), 0); }
static wb_array *repeated(void) { return wb_neg(wb_expand(wb_slice(x, 0, 0, 1, 1), 2, 3)); }
static wb_array *halves_added_up(void) { return wb_sum_dims(h, 0); }
static wb_array *compared(void) { return wb_gt(i, wb_number(2)); }
static wb_array *compared_with_half(void) { return wb_gt(i, wb_number(2.5)); }
static wb_array *transposed(void) { return wb_matmul(wb_transpose(x), y); }
static wb_array *of_parts(void) {
    wb_array *both = wb_neg(x), *q = wb_slice(both, 0, 0, 1, 1), *k = wb_slice(both, 0, 1, 2, 1);
    return wb_attention(q, k, k);
}
static wb_array *of_every_other(void) {
    wb_array *q = wb_slice(wb_transpose(wb_neg(x)), 0, 0, 3, 2);
    return wb_attention(q, q, q);
}
static wb_array *stopped(void) { return wb_neg(wb_stop_gradient(x)); }

static const struct {
    const char *name;
    wb_array *(*make)(void);
    const char *values;
} rows[] = {
    {"x + 0 is x", plus_zero, "data full full "},
    {"1 x is x", times_one, "full data neg full "},
    {"0 x is not 0: it may be NaN", times_zero, "data full full mul "},
    {"x to the power 2 is a square", squared, "data full full square "},
    {"x to the power -1 is an inverse", inverted, "data full full recip "},
    {"a cast there and back is two", there_and_back, "data cast cast "},
    {"equal values are one", twice_the_same, "data data add mul "},
    {"operands in another order are another value", in_other_order, "data data sub sub mul "},
    {"random numbers belong to their call", random_numbers, "uniform uniform add "},
    {"numbers are folded", numbers, "data full full full full full full mul "},
    {"macros are expanded", relu, "data full full max "},
    {"a mean is a sum and a quotient", mean, "data sum full full div "},
    {"a sum of one element each is what it adds up", sum_of_ones, "data neg reshape "},
    {"what is only repeated is not", repeated, "data expand neg "},
    {"halves are added up in f32", halves_added_up, "data cast sum cast "},
    {"integers are compared as integers", compared, "data full full gt "},
    {"with a fraction, too", compared_with_half, "data full full gt "},
    {"a product reads a transpose", transposed, "data permute data matmul "},
    {"attention reads parts of an array", of_parts, "data neg slice slice attention result "},
    {"but not apart in their features", of_every_other,
     "data neg permute slice data attention result "},
    {"a stopped gradient is nothing to a plan", stopped, "data neg "},
};

static void lower(small *s, wb_array *root) {
    small_order(s, root);
    assert_true(wb_graph_lower(&s->graph, &s->tape));
}

static void check_values(small *s, const char *name, const char *values) {
    for (int64_t v = 0; v < s->graph.count; v++)
        small_say(s, "%s ", wb_op_name((wb_op)s->graph.values[v].op));
    small_check(s, name, values);
    small_end(s);
}

static void nodes_become_values(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        small s;
        lower(&s, rows[k].make());
        check_values(&s, rows[k].name, rows[k].values);
    }
}

static void a_device_that_reads_whole_arrays_gets_copies(void **state) {
    (void)state;
    small s;
    small_order(&s, of_parts());
    small_suppose_plain_device(&s);
    assert_true(wb_graph_lower(&s.graph, &s.tape));
    check_values(&s, "attention of parts", "data neg slice slice data data attention result ");
}

static void callables_note_what_they_read_and_gave(void **state) {
    (void)state;
    small s;
    wb_array *in = wb_neg(x);
    wb_array *out = wb_gelu(in);
    small_order(&s, wb_exp(out));
    small_take_any(&s);
    assert_true(wb_graph_lower(&s.graph, &s.tape));
    assert_int_equal(s.graph.callable_count, 3); /* neg and exp, too */
    const wb_named_node *named = &s.graph.callables[1];
    assert_string_equal(named->name, "gelu");
    assert_true(named->numbers[0] == 0.044715);
    assert_int_equal(named->in[0], s.graph.of_tape[in->index]);
    assert_int_equal(named->out[0], s.graph.of_tape[out->index]);
    assert_int_equal(named->out[1], -1);
    assert_int_equal(s.graph.values[named->out[0]].callable, 2);
    assert_string_equal(s.graph.callables[2].name, "exp");
    assert_int_equal(s.graph.callables[2].in[0], named->out[0]);
    small_end(&s);
}

static void what_a_device_does_not_take_has_no_name(void **state) {
    (void)state;
    small s;
    lower(&s, wb_exp(wb_gelu(x)));
    assert_int_equal(s.graph.callable_count, 0);
    small_end(&s);
}

static int setup(void **state) {
    if (open_scope(state) != 0) return -1;
    x = wb_uniform(WB_F32, 2, 3), y = wb_uniform(WB_F32, 2, 3);
    h = wb_cast(x, WB_F16), i = wb_cast(wb_mul_number(x, 4), WB_I32);
    return wb_evaluate_roots(4, (wb_array *[]){x, y, h, i}) == WB_OK ? 0 : -1;
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_become_values, setup, close_scope),
        cmocka_unit_test_setup_teardown(a_device_that_reads_whole_arrays_gets_copies, setup,
                                        close_scope),
        cmocka_unit_test_setup_teardown(callables_note_what_they_read_and_gave, setup, close_scope),
        cmocka_unit_test_setup_teardown(what_a_device_does_not_take_has_no_name, setup,
                                        close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_lower", tests, NULL, NULL);
}
