/* Units as programs: instructions, how arrays are walked, dimensions that become one, names. */
#include "evaluate/emit.h"
#include "evaluate/small.h"

static wb_array *x, *b, *u; /* f32 (4, 3), f32 (4), u8 (4, 3) */

static wb_array *sum(void) { return wb_add(x, x); }
static wb_array *with_bias(void) { return wb_add(x, b); }
static wb_array *transposed(void) { return wb_neg(wb_transpose(x)); }
static wb_array *every_second(void) { return wb_neg(wb_slice(x, 0, 1, 4, 2)); }
static wb_array *softmax(void) { return wb_softmax(x); }
static wb_array *all_beside(void) { return wb_sum(wb_mul(wb_softmax(x), x)); }
static wb_array *rows_beside(void) { return wb_sum_dims(wb_softmax(x), 1); }
static wb_array *bytes(void) { return wb_add(u, u); }
static wb_array *counted(void) { return wb_iota(WB_F32, 1, 4, 3); }
static wb_array *late(void) { return wb_mul(x, wb_late(2)); }

static const struct {
    const char *name;
    wb_array *(*make)(void);
    const char *program;
} rows[] = {
    {"dense arrays are walked as one dimension", sum, "(12) load[1] add store[1] "},
    {"a bias repeats", with_bias, "(4,3) load[1,4] load[1,0] add store[1,4] "},
    {"a transpose is a way to walk", transposed, "(3,4) load[4,1] neg store[1,3] "},
    {"so is a slice", every_second, "(6) load[2] neg store[1] "},
    {"rows have phases, their values are spread", softmax,
     "(4,3) load[1,4] max_reduce spread excess exp sum recip spread mul "
     "store[1,4] "},
    {"a sum of all elements beside the rows", all_beside,
     "(4,3) load[1,4] max_reduce spread excess exp sum recip spread mul mul "
     "side_sum[0,0] "},
    {"a sum over the rows beside them", rows_beside,
     "(4,3) load[1,4] max_reduce spread excess exp sum recip spread mul "
     "side_sum[1,0] "},
    {"bytes wrap", bytes, "(12) load[1] add constant mod store[1] "},
    {"positions are counted", counted, "(4,3) iota[0,1] store[1,4] "},
    {"late numbers are read late", late, "(12) load[1] late mul store[1] "},
};

static const char *name_of(int code) {
    static const char *const names[] = {
#define WB_UNARY(name, ...)  #name,
#define WB_BINARY(name, ...) #name,
#include <weber/ops.def>
        "select",  "cast",   "load", "store",      "constant", "late",    "iota",
        "uniform", "normal", "sum",  "max_reduce", "spread",   "side_sum"};
    return names[code];
}

static void plan_ordered(small *s) {
    s->graph.fuse = true;
    assert_true(wb_graph_lower(&s->graph, &s->tape) && wb_graph_list_readers(&s->graph) &&
                wb_graph_fuse(&s->graph) && wb_graph_place(&s->graph));
}

/* The program of the plan's last unit. */
static wb_emitted emit(small *s) {
    wb_emitted emitted;
    static int32_t places[256];
    assert_true(s->graph.count <= (int64_t)(sizeof places / sizeof *places));
    const wb_unit *unit = &s->graph.units.at[s->graph.order.units[s->graph.order.count - 1]];
    assert_int_equal(unit->kind, WB_UNIT_PROGRAM);
    assert_true(wb_emit_program(&s->graph, places, unit, 0, &emitted));
    return emitted;
}

static void say_list(small *s, const int64_t *list, int count, char open, char close) {
    for (int d = 0; d < count; d++) small_say(s, "%c%lld", d ? ',' : open, (long long)list[d]);
    small_say(s, "%c", close);
}

static void say_program(small *s, const wb_program *p) {
    say_list(s, p->sizes, p->ndim, '(', ')');
    for (int32_t k = 0; k < p->ninstructions; k++) {
        const wb_instruction *at = &p->instructions[k];
        small_say(s, " %s", name_of(at->code));
        if (at->code != WB_CODE_load && at->code != WB_CODE_store && at->code != WB_CODE_iota &&
            at->code != WB_CODE_side_sum)
            continue;
        const wb_access *a = &p->accesses[at->index];
        say_list(s, a->strides, p->ndim, '[', ']');
        if (a->offset) small_say(s, "+%lld", (long long)a->offset);
    }
    small_say(s, " ");
}

/* The program of the root as planned for the device that s supposes. */
static void check_program(small *s, const char *name, const char *program) {
    plan_ordered(s);
    wb_emitted emitted = emit(s);
    say_program(s, &emitted.program);
    small_check(s, name, program);
    wb_emitted_release(&emitted);
    small_end(s);
}

static void units_become_programs(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        small s;
        small_order(&s, rows[k].make());
        check_program(&s, rows[k].name, rows[k].program);
    }
}

static void a_device_without_side_sums_adds_up_apart(void **state) {
    (void)state;
    small s;
    small_order(&s, all_beside());
    small_suppose_plain_device(&s);
    check_program(&s, "a sum of all elements", "(12) load[1] sum store[0] ");
}

static void say_operand(small *s, const wb_program *p, wb_operand o) {
    if (o.kind == WB_OPERAND_ARRAY)
        small_say(s, "@%d", (int)p->accesses[o.index].argument);
    else
        small_say(s, o.kind == WB_OPERAND_NUMBER ? "#%d" : "%%%d", (int)o.index);
}

static void say_operands(small *s, const wb_program *p, const wb_operand *list, int count) {
    for (int i = 0; i < count && list[i].kind; i++) {
        if (i > 0) small_say(s, ",");
        say_operand(s, p, list[i]);
    }
}

static wb_array *one_name(void) { return wb_relu(x); }
static wb_array *three_names(void) { return wb_neg(wb_gelu(wb_add(wb_relu(x), b))); }
static wb_array *with_a_number(void) { return wb_gelu(wb_add(x, wb_late(2))); }
static wb_array *nameless_beside(void) { return wb_relu(wb_swish(x)); }
static wb_array *rows_and_names(void) { return wb_relu(wb_sub(x, wb_sum_dims(x, 1))); }
static wb_array *five_names(void) { return wb_neg(wb_exp(wb_neg(wb_exp(wb_neg(x))))); }

/* @ an argument, # a number, % a value of the program; ! the callables are all that it does, + and
 * what they read. */
static const struct {
    const char *name;
    wb_array *(*make)(void);
    const char *callables;
} named_rows[] = {
    {"arrays in and out", one_name, "relu(@0)=@1 !"},
    {"a chain of values", three_names, "relu(@0)=%2 add(%2,@1)=%4 gelu(%4)=%17 neg(%17)=@2 !"},
    {"a late number", with_a_number, "add(@0,#1)=%2 gelu(%2)=@1 !"},
    {"a macro has no name", nameless_beside, "relu(%2)=@1 +"},
    {"names beside a reduction are not all", rows_and_names, "sub(@0,%2)=%3 relu(%3)=@2 "},
    {"four at most", five_names, "neg(@0)=%1 exp(%1)=%2 neg(%2)=%3 exp(%3)=%4 "},
};

static void programs_name_their_callables(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof named_rows / sizeof *named_rows; k++) {
        small s;
        small_order(&s, named_rows[k].make());
        small_take_any(&s);
        plan_ordered(&s);
        wb_emitted emitted = emit(&s);
        const wb_program *p = &emitted.program;
        for (int i = 0; i < p->ncallables; i++) {
            const wb_callable *c = &p->callables[i];
            small_say(&s, "%s(", c->name);
            say_operands(&s, p, c->in, WB_CALLABLE_INPUTS);
            small_say(&s, ")=");
            say_operands(&s, p, c->out, WB_CALLABLE_RESULTS);
            small_say(&s, " ");
        }
        if (p->is_fed) small_say(&s, p->is_named ? "!" : "+");
        small_check(&s, named_rows[k].name, named_rows[k].callables);
        wb_emitted_release(&emitted);
        small_end(&s);
    }
}

static int setup(void **state) {
    if (open_scope(state) != 0) return -1;
    x = wb_uniform(WB_F32, 4, 3), b = wb_uniform(WB_F32, 4);
    u = wb_cast(wb_mul_number(x, 200), WB_U8);
    return wb_evaluate_roots(3, (wb_array *[]){x, b, u}) == WB_OK ? 0 : -1;
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(units_become_programs, setup, close_scope),
        cmocka_unit_test_setup_teardown(a_device_without_side_sums_adds_up_apart, setup,
                                        close_scope),
        cmocka_unit_test_setup_teardown(programs_name_their_callables, setup, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_emit", tests, NULL, NULL);
}
