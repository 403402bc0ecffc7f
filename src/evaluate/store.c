/* Which values get memory: those that calls and copies read, those that a unit reads from another
 * one, and the results of the plan.
 *
 * Reads the tape's marks, values and memberships. Writes which placements are stored, and a unit
 * for a source that is. */
#include "base/memory.h"
#include "evaluate/graph.h"

/* Sources that were computed in line get a program of their own. */
static bool store(wb_graph *graph, int32_t v) {
    v = wb_value_base(graph, v);
    const wb_value *value = &graph->values[v];
    if (value->kind == WB_VALUE_LEAF) return true;
    graph->places.of[v].stored = true;
    return !wb_value_is_inline(value) || graph->units.of[v].unit >= 0 ||
           wb_unit_new_program(graph, v) >= 0;
}

/* True if v reads the input where it lies in memory. */
static bool reads_memory(const wb_graph *graph, int32_t number, int32_t input) {
    const wb_value *v = &graph->values[number], *x = &graph->values[input];
    if (!wb_value_is_fused(v)) return true;
    if (x->kind == WB_VALUE_VIEW) return true;
    return !wb_value_is_inline(x) && wb_value_unit(graph, input) != graph->units.of[number].unit;
}

static bool store_inputs(wb_graph *graph, int32_t number) {
    const uint8_t kind = graph->values[number].kind;
    const bool shows = kind == WB_VALUE_VIEW && graph->values[number].base != number;
    if (shows || kind == WB_VALUE_RESULT) return true;
    for (int i = 0; i < graph->values[number].ninputs; i++) {
        const int32_t input = wb_value_inputs(&graph->values[number])[i];
        if (reads_memory(graph, number, input) && !store(graph, input)) return false;
    }
    return true;
}

/* Results of calls, and copies, are made in memory. */
static bool is_made_in_memory(const wb_value *v, int32_t number) {
    return v->kind == WB_VALUE_CALL || v->kind == WB_VALUE_RESULT || v->kind == WB_VALUE_JOIN ||
           (v->kind == WB_VALUE_VIEW && v->base == number);
}

/* Nothing has a place. */
static bool begin(wb_placements *places, int64_t count) {
    places->of = wb_alloc(sizeof *places->of * (size_t)(count + 1));
    for (int64_t v = 0; places->of && v < count; v++)
        places->of[v] = (wb_placement){.output = -1, .memory = -1, .holder = -1};
    return places->of != NULL;
}

bool wb_graph_store(wb_graph *graph) {
    const wb_tape *tape = graph->tape;
    const int32_t count = (int32_t)graph->count;
    if (!begin(&graph->places, count)) return false;
    for (int32_t v = 0; v < count; v++)
        if (is_made_in_memory(&graph->values[v], v)) graph->places.of[v].stored = true;
    for (int32_t v = 0; v < count; v++)
        if (!store_inputs(graph, v)) return false;
    for (int64_t i = 0; i < tape->count; i++)
        if ((tape->at[i].marks & WB_TAPE_STORED) && graph->of_tape[i] >= 0 &&
            !store(graph, graph->of_tape[i]))
            return false;
    return true;
}
