/* Which values get memory: those that calls and copies read, those that a unit reads from another
 * one, and the results of the plan. */
#include "evaluate/graph.h"

/* Sources that were computed in line get a program of their own. */
static bool store(wb_graph *graph, int32_t v) {
    v = wb_value_base(graph, v);
    wb_value *value = &graph->values[v];
    if (value->kind == WB_VALUE_LEAF) return true;
    value->stored = true;
    return !wb_value_is_inline(value) || value->unit >= 0 || wb_unit_new_program(graph, v) >= 0;
}

/* True if v reads input number i where it lies in memory. */
static bool reads_memory(const wb_graph *graph, const wb_value *v, int32_t input) {
    const wb_value *x = &graph->values[input];
    if (!wb_value_is_fused(v)) return true;
    if (x->kind == WB_VALUE_VIEW) return true;
    return !wb_value_is_inline(x) && wb_value_unit(graph, input) != v->unit;
}

static bool store_inputs(wb_graph *graph, int32_t number) {
    const uint8_t kind = graph->values[number].kind;
    const bool shows = kind == WB_VALUE_VIEW && graph->values[number].base != number;
    if (shows || kind == WB_VALUE_RESULT) return true;
    for (int i = 0; i < graph->values[number].ninputs; i++) {
        const wb_value *v = &graph->values[number];
        const int32_t input = wb_value_inputs(v)[i];
        if (reads_memory(graph, v, input) && !store(graph, input)) return false;
    }
    return true;
}

/* Results of calls, and copies, are made in memory. */
static bool is_made_in_memory(const wb_value *v, int32_t number) {
    return v->kind == WB_VALUE_CALL || v->kind == WB_VALUE_RESULT || v->kind == WB_VALUE_JOIN ||
           (v->kind == WB_VALUE_VIEW && v->base == number);
}

bool wb_graph_store(wb_graph *graph) {
    const wb_tape *tape = graph->tape;
    const int32_t count = (int32_t)graph->count;
    for (int32_t v = 0; v < count; v++)
        if (is_made_in_memory(&graph->values[v], v)) graph->values[v].stored = true;
    for (int32_t v = 0; v < count; v++)
        if (!store_inputs(graph, v)) return false;
    for (int64_t i = 0; i < tape->count; i++)
        if ((tape->at[i].marks & WB_TAPE_STORED) && graph->of_tape[i] >= 0 &&
            !store(graph, graph->of_tape[i]))
            return false;
    return true;
}
