/* Units as programs: instructions, how arrays are walked, dimensions that become one, names. */
#include "evaluate/small.h"

static wb_array *x, *b, *u; /* f32 (4, 3), f32 (4), u8 (4, 3) */

static wb_array *sum(void) { return wb_add(x, x); }
static wb_array *with_bias(void) { return wb_add(x, b); }
static wb_array *transposed(void) { return wb_neg(wb_transpose(x)); }
static wb_array *every_second(void) { return wb_neg(wb_slice(x, 0, 1, 4, 2)); }
static wb_array *softmax(void) { return wb_softmax(x); }
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
     "(4,3) load[1,4] max_reduce spread eq sub constant select exp sum recip spread mul "
     "store[1,4] "},
    {"bytes wrap", bytes, "(12) load[1] add constant mod store[1] "},
    {"positions are counted", counted, "(4,3) iota[0,1] store[1,4] "},
    {"late numbers are read late", late, "(12) load[1] late mul store[1] "},
};

static const char *name_of(int code) {
    static const char *const names[] = {
#define WB_UNARY(name, ...)  #name,
#define WB_BINARY(name, ...) #name,
#include <weber/ops.def>
        "select", "cast",    "load",   "store", "constant",   "late",
        "iota",   "uniform", "normal", "sum",   "max_reduce", "spread"};
    return names[code];
}

static void plan(small *s, wb_array *root) {
    small_order(s, root);
    s->graph.fuse = true;
    assert_true(wb_graph_lower(&s->graph, &s->tape) && wb_graph_separate(&s->graph) &&
                wb_graph_list_readers(&s->graph) && wb_graph_fuse(&s->graph) &&
                wb_graph_place(&s->graph));
}

/* The program of the plan's last unit. */
static wb_emitted emit(small *s) {
    wb_emitted emitted;
    const wb_unit *unit = &s->graph.units[s->graph.order[s->graph.order_count - 1]];
    assert_int_equal(unit->kind, WB_UNIT_PROGRAM);
    assert_true(wb_emit_program(&s->graph, unit, 0, &emitted));
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
        if (at->code != WB_CODE_load && at->code != WB_CODE_store && at->code != WB_CODE_iota)
            continue;
        const wb_access *a = &p->accesses[at->index];
        say_list(s, a->strides, p->ndim, '[', ']');
        if (a->offset) small_say(s, "+%lld", (long long)a->offset);
    }
    small_say(s, " ");
}

static void units_become_programs(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        small s;
        plan(&s, rows[k].make());
        wb_emitted emitted = emit(&s);
        say_program(&s, &emitted.program);
        small_check(&s, rows[k].name, rows[k].program);
        wb_emitted_release(&emitted);
        small_end(&s);
    }
}

static void programs_name_their_callables(void **state) {
    (void)state;
    small s;
    plan(&s, wb_neg(wb_gelu(wb_add(wb_relu(x), b))));
    wb_emitted emitted = emit(&s);
    const wb_program *p = &emitted.program;
    assert_int_equal(p->ncallables, 2);
    const wb_callable *relu = &p->callables[0], *gelu = &p->callables[1];
    assert_string_equal(relu->name, "relu");
    assert_string_equal(gelu->name, "gelu");
    assert_int_equal(p->instructions[relu->in[0]].code, WB_CODE_load);
    assert_int_equal(p->instructions[relu->out[0]].code, WB_CODE_max);
    assert_int_equal(p->instructions[gelu->in[0]].code, WB_CODE_add);
    assert_int_equal(p->instructions[gelu->in[0]].in[0], relu->out[0]);
    assert_int_equal(p->instructions[gelu->out[0] + 1].code, WB_CODE_neg);
    assert_int_equal(p->instructions[gelu->out[0] + 1].in[0], gelu->out[0]);
    assert_int_equal(gelu->in[1], WB_NO_VALUE);
    wb_emitted_release(&emitted);
    small_end(&s);
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
        cmocka_unit_test_setup_teardown(programs_name_their_callables, setup, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_emit", tests, NULL, NULL);
}
