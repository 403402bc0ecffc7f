/* The last step of planning: epilogues, the order of units, memory that is taken over, places in
 * the workspace. */
#include "evaluate/small.h"

static wb_array *w, *x, *b; /* f32 (64, 64), (64, 32), (64) */

static wb_array *layer(wb_array *y) { return wb_relu(wb_add(wb_matmul(w, y), b)); }

static wb_array *one_layer(void) { return layer(x); }
static wb_array *three_layers(void) { return layer(layer(layer(x))); }
static wb_array *products_in_a_chain(void) {
    wb_array *y = x;
    for (int i = 0; i < 6; i++) y = wb_matmul(w, y);
    return y;
}
static wb_array *read_at_the_end(void) {
    wb_array *first = wb_matmul(w, x);
    return wb_matmul(wb_transpose(first), wb_matmul(w, wb_matmul(w, first)));
}
static wb_array *rows_behind_a_product(void) { return wb_softmax(wb_matmul(w, x)); }
static wb_array *a_slice_of_a_product(void) {
    return wb_matmul(w, wb_slice(wb_matmul(w, x), 1, 4, 20, 1));
}
static wb_array *no_workspace(void) { return wb_neg(x); }
static wb_array *two_readers(void) {
    wb_array *y = wb_matmul(w, x);
    return wb_matmul(wb_matmul(w, wb_neg(y)), wb_matmul(wb_transpose(y), w));
}

/* Units in order (a call + has an epilogue); how many values lie in the workspace, at how many
 * places. */
static const struct {
    const char *name;
    wb_array *(*make)(void);
    const char *plan;
} rows[] = {
    {"bias and activation run behind the product", one_layer, "call+ 1 at 1"},
    {"a layer has its input, a product and a result", three_layers, "call+ call+ call+ 5 at 3"},
    {"products in a chain take two places in turn", products_in_a_chain,
     "call call call call call call 5 at 2"},
    {"what is read again at the end stays", read_at_the_end, "call call call call 3 at 3"},
    {"a program over rows runs by itself", rows_behind_a_product, "call program 1 at 1"},
    {"a slice is a view of what it shows", a_slice_of_a_product, "call call 1 at 1"},
    {"a result has memory of its own", no_workspace, "program 0 at 0"},
    {"a value stays until its last reader", two_readers, "call+ call call call 4 at 3"},
};

static bool is_placed(const wb_graph *graph, int32_t n) {
    const wb_value *v = &graph->values[n];
    const wb_placements *places = &graph->places;
    return places->of[n].stored && v->base == n &&
           places->of[n].memory == places->leaf_count + places->output_count;
}

/* Where in the order a value is computed; -1: it is there before. */
static int position_of(const wb_graph *graph, int32_t n) {
    const int32_t unit = wb_value_unit(graph, n);
    if (unit < 0) return -1;
    const int32_t runs = wb_unit_runs_with(&graph->units, unit);
    for (int64_t i = 0; i < graph->order.count; i++)
        if (graph->order.units[i] == runs) return (int)i;
    fail_msg("the unit of value %d is not in the order", (int)n);
    return -1;
}

/* The position of the last one that reads n, itself or through views; each comes after n. */
static int last_reader(const wb_graph *graph, int32_t n) {
    const int made = position_of(graph, n);
    int last = made;
    for (int32_t k = 0; k < graph->count; k++) {
        const wb_value *v = &graph->values[k];
        if (v->base != k) continue; /* a view reads nothing */
        for (int i = 0; i < v->ninputs; i++) {
            if (wb_value_base(graph, wb_value_inputs(v)[i]) != n) continue;
            const int read = position_of(graph, k);
            if (read < 0) continue;
            assert_true(read >= made);
            if (read > last) last = read;
        }
    }
    return last;
}

static int64_t bytes_of(const wb_value *v) {
    return wb_value_count(v) * (int64_t)wb_dtype_size((wb_dtype)v->dtype);
}

/* Where the value's bytes begin and end. */
static int64_t begin_of(const wb_graph *graph, int32_t v) {
    return graph->places.of[v].offset_bytes;
}
static int64_t end_of(const wb_graph *graph, int32_t v) {
    return begin_of(graph, v) + bytes_of(&graph->values[v]);
}

/* Two values that lie at the same bytes do not live at once. */
static void check_lives(const wb_graph *graph) {
    for (int32_t a = 0; a < graph->count; a++) {
        if (!is_placed(graph, a)) continue;
        assert_true(begin_of(graph, a) >= 0 && end_of(graph, a) <= graph->places.workspace_bytes);
        for (int32_t c = 0; c < graph->count; c++) {
            if (c == a || !is_placed(graph, c) || begin_of(graph, a) >= end_of(graph, c) ||
                begin_of(graph, c) >= end_of(graph, a))
                continue;
            const bool apart = last_reader(graph, a) < position_of(graph, c) ||
                               last_reader(graph, c) < position_of(graph, a);
            if (!apart) fail_msg("values %d and %d share memory", (int)a, (int)c);
        }
    }
}

static void say(small *s) {
    const wb_graph *graph = &s->graph;
    static const char *const kinds[] = {"program", "call", "copy"};
    for (int64_t i = 0; i < graph->order.count; i++) {
        const wb_unit *u = &graph->units.at[graph->order.units[i]];
        small_say(s, "%s%s ", kinds[u->kind], u->epilogue >= 0 ? "+" : "");
    }
    int count = 0, places = 0;
    for (int32_t n = 0; n < graph->count; n++) {
        if (!is_placed(graph, n)) continue;
        count++, places++;
        for (int32_t k = 0; k < n; k++)
            if (is_placed(graph, k) &&
                graph->places.of[k].offset_bytes == graph->places.of[n].offset_bytes) {
                places--;
                break;
            }
    }
    small_say(s, "%d at %d", count, places);
}

static void units_have_an_order_and_values_memory(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        small s;
        small_order(&s, rows[k].make());
        small_place(&s);
        check_lives(&s.graph);
        say(&s);
        small_check(&s, rows[k].name, rows[k].plan);
        small_end(&s);
    }
}

/* ---- memory that is taken over ---- */

static wb_array *negated(wb_array *y) { return wb_neg(y); }
static wb_array *added_to_itself(wb_array *y) { return wb_add(y, wb_mul_number(y, 2)); }
static wb_array *transposed(wb_array *y) { return wb_neg(wb_transpose(y)); }
static wb_array *reversed(wb_array *y) { return wb_add(y, wb_flip(y, 0)); }
static wb_array *halved(wb_array *y) { return wb_cast(y, WB_F16); }
static wb_array *summed(wb_array *y) { return wb_sub(y, wb_sum_dims(y, 1)); }
static wb_array *a_sum(wb_array *y) { return wb_sum_dims(y, 1); }
static wb_array *product(wb_array *y) { return wb_add(wb_matmul(w, y), b); }
static wb_array *beside_a_product(wb_array *y) { return wb_add(wb_matmul(w, x), y); }
static wb_array *read_by_a_product_before(wb_array *y) { return wb_add(y, wb_matmul(w, y)); }

static const struct {
    const char *name;
    wb_array *(*make)(wb_array *y);
    bool takes; /* y's memory */
} taken[] = {
    {"element by element", negated, true},
    {"an array that is read twice, alike", added_to_itself, true},
    {"not where it is read in another order", transposed, false},
    {"not where it is read in the other direction, too", reversed, false},
    {"not by elements of another size", halved, false},
    {"by what is written in the last phase", summed, true},
    {"not by one of each row", a_sum, false},
    {"not by a product that reads it", product, false},
    {"by what is behind a product", beside_a_product, true},
    {"not behind a product that reads it", read_by_a_product_before, false},
};

/* The graph of a recipe over y, whose memory nobody needs afterwards if the marks say so. */
static void place_over(small *s, wb_array *root, const wb_array *y, bool is_donated) {
    small_order(s, root);
    for (int64_t i = 0; i < s->tape.count; i++)
        if (s->tape.at[i].node == y && is_donated) s->tape.at[i].marks |= WB_TAPE_DONATED;
    small_place(s);
}

static bool takes_over(const small *s) {
    assert_int_equal(s->graph.places.output_count, 1);
    return s->graph.places.of[s->graph.places.outputs[0]].memory < s->graph.places.leaf_count;
}

static void memory_is_taken_over(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++) {
        for (int needed = 0; needed < 2; needed++) {
            wb_array *y = wb_uniform(WB_F32, 64, 32), *root = taken[k].make(y);
            assert_int_equal(wb_eval(y), WB_OK); /* after its views, which stay recipes so */
            small s;
            place_over(&s, root, y, !needed);
            check_lives(&s.graph);
            if (takes_over(&s) != (taken[k].takes && !needed))
                fail_msg("%s%s", taken[k].name, needed ? ", needed afterwards" : "");
            small_end(&s);
        }
    }
}

static int setup(void **state) {
    if (open_scope(state) != 0) return -1;
    w = wb_uniform(WB_F32, 64, 64), x = wb_uniform(WB_F32, 64, 32), b = wb_uniform(WB_F32, 64);
    return wb_evaluate_roots(3, (wb_array *[]){w, x, b}) == WB_OK ? 0 : -1;
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(units_have_an_order_and_values_memory, setup, close_scope),
        cmocka_unit_test_setup_teardown(memory_is_taken_over, setup, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_place", tests, NULL, NULL);
}
