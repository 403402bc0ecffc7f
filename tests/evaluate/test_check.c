/* The check of a plan says what is wrong with one that was damaged. */
#include "evaluate/small.h"

static wb_array *w, *x; /* f32 (64, 64), (64, 32) */

static wb_array *rows(void) { return wb_softmax(wb_matmul(w, x)); }
static wb_array *products(void) { return wb_matmul(w, wb_matmul(w, wb_matmul(w, x))); }
static wb_array *beside(void) {
    return wb_add(wb_matmul(w, wb_matmul(w, x)), wb_matmul(wb_matmul(w, w), x));
}
static wb_array *joined(void) { return wb_concat(1, wb_neg(x), wb_matmul(w, x)); }

/* ---- damage ---- */

/* The first value of this operation. */
static int32_t first_of(const wb_graph *g, wb_op op) {
    for (int32_t v = 0; v < g->count; v++)
        if (g->values[v].op == op) return v;
    fail_msg("the graph has no %s", wb_op_name(op));
    return -1;
}

static void nothing(wb_graph *g) { (void)g; }

static void phase_too_late(wb_graph *g) { g->units.of[first_of(g, WB_OP_exp)].phase = 2; }
static void phase_too_early(wb_graph *g) { g->units.of[first_of(g, WB_OP_exp)].phase = 0; }
static void another_units_member(wb_graph *g) { g->units.of[first_of(g, WB_OP_exp)].unit = 0; }

static void other_order(wb_graph *g) {
    const int32_t first = g->order.units[0], last = g->order.units[g->order.count - 1];
    g->order.units[0] = last, g->units.at[last].position = 0;
    g->order.units[g->order.count - 1] = first;
    g->units.at[first].position = (int32_t)g->order.count - 1;
}

static void not_stored(wb_graph *g) { g->places.of[first_of(g, WB_OP_matmul)].stored = false; }

/* All products of the workspace in one place. */
static void one_place(wb_graph *g) {
    for (int64_t v = 0; v < g->count; v++)
        if (g->values[v].op == WB_OP_matmul && g->places.of[v].output < 0)
            g->places.of[v].offset_bytes = 0;
}

/* The result is written over a leaf that is read in another order. */
static void over_a_leaf(wb_graph *g) {
    g->places.of[g->places.outputs[0]].memory = g->places.of[first_of(g, WB_OP_data)].memory;
}

static const struct {
    const char *name;
    wb_array *(*make)(void);
    void (*damage)(wb_graph *graph);
    const char *fault; /* NULL: there is none */
} damages[] = {
    {"rows of a product are right", rows, nothing, NULL},
    {"products in a chain are right", products, nothing, NULL},
    {"two ways that meet are right", beside, nothing, NULL},
    {"parts of a copy are right", joined, nothing, NULL},
    {"a value is computed after a phase that reads it", rows, phase_too_late, "later phase"},
    {"a value is computed before what it reads", rows, phase_too_early, "later phase"},
    {"a value belongs to another unit", rows, another_units_member, "another unit"},
    {"units run in another order", products, other_order, "not in memory"},
    {"what another unit reads is not stored", rows, not_stored, "not in memory"},
    {"a unit writes over what it reads", products, one_place, "is overwritten by the unit"},
    {"a value is overwritten before it is read", beside, one_place, "is overwritten by the unit"},
    {"a product is written over a leaf", products, over_a_leaf, "is overwritten by the unit"},
};

static void damaged_plans_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        small s;
        small_order(&s, damages[i].make());
        small_place(&s);
        damages[i].damage(&s.graph);
        const bool is_right = wb_graph_check(&s.graph);
        if (is_right != !damages[i].fault) fail_msg("%s: %d", damages[i].name, is_right);
        if (!is_right) assert_error(WB_ERROR_INTERNAL, damages[i].fault);
        small_end(&s);
    }
}

static int setup(void **state) {
    if (open_scope(state) != 0) return -1;
    w = wb_uniform(WB_F32, 64, 64), x = wb_uniform(WB_F32, 64, 32);
    return wb_evaluate_roots(2, (wb_array *[]){w, x}) == WB_OK ? 0 : -1;
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damaged_plans_are_found, setup, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_check", tests, NULL, NULL);
}
