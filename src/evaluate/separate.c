/* Separate memory for results that are equal but were requested as different arrays.
 *
 * Reads the tape and values. Adds values, and writes which value a node has. */
#include "base/memory.h"
#include "evaluate/graph.h"

/* The array that x is a view of, or x. */
static const wb_array *origin_of(const wb_array *x) {
    while (!wb_is_plan_leaf(x) && wb_op_rows[x->op].kind == WB_KIND_VIEW) x = x->inputs[0];
    return x;
}

/* Makes the value a second time: a constant is made again, any other value is copied. */
static int32_t again(wb_values *values, int32_t number) {
    const wb_value same = values->at[number];
    const int32_t made = wb_append_value(values, &same);
    if (made < 0) return -1;
    wb_value *v = &values->at[made];
    v->base = made;
    v->layout = -1;
    if (v->kind == WB_VALUE_CONSTANT || v->kind == WB_VALUE_SOURCE) return made;
    v->kind = WB_VALUE_VIEW, v->op = WB_OP_data, v->tape = -1;
    v->ninputs = 1, v->input_list = NULL, v->payload = NULL;
    v->small_inputs[0] = number;
    return made;
}

/* True if the value's memory is its own, and all of it. */
static bool is_whole(const wb_graph *graph, int32_t number) {
    const wb_value *v = &graph->values[number], *base = &graph->values[v->base];
    return base->kind != WB_VALUE_LEAF && v->layout < 0 &&
           wb_value_count(v) == wb_value_count(base);
}

bool wb_values_separate(wb_values *values) {
    const wb_graph *graph = values->graph;
    const wb_tape *tape = graph->tape;
    const wb_array **owner = wb_alloc(sizeof *owner * (size_t)(graph->count + 1));
    bool done = owner != NULL;
    for (int64_t i = 0; done && i < tape->count; i++) {
        int32_t *result = &values->of_tape[i];
        if (!(tape->at[i].marks & WB_TAPE_STORED) || *result < 0) continue;
        const int32_t base = wb_value_base(graph, *result);
        const wb_value *x = &graph->values[base];
        if (tape->at[i].node->op == WB_OP_copy && x->kind == WB_VALUE_LEAF) {
            done = (*result = again(values, *result)) >= 0;
            continue;
        }
        if (!tape->body && (x->kind == WB_VALUE_LEAF || x->kind == WB_VALUE_LATE)) continue;
        /* each result of a body has memory of its own, dense */
        const wb_array *origin = tape->body ? tape->at[i].node : origin_of(tape->at[i].node);
        if (tape->body && !is_whole(graph, *result)) {
            done = (*result = again(values, *result)) >= 0;
            continue;
        }
        if (!owner[base]) owner[base] = origin;
        if (owner[base] != origin) done = (*result = again(values, *result)) >= 0;
    }
    wb_release(owner);
    return done;
}
