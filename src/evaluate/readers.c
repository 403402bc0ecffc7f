/* The readers of each value: one list for the whole graph, which all later stages use.
 *
 * Reads values. Writes wb_readers. */
#include "base/memory.h"
#include "evaluate/graph.h"

/* A view that shows memory reads none; one that is a copy does. */
static bool reads(const wb_graph *graph, int32_t v) { return graph->values[v].base == v; }

bool wb_graph_list_readers(wb_graph *graph) {
    int64_t total = 0;
    wb_readers *readers = &graph->readers;
    wb_release(readers->start);
    wb_release(readers->list);
    *readers = (wb_readers){NULL, NULL};
    readers->start = wb_alloc(sizeof *readers->start * (size_t)(graph->count + 2));
    if (!readers->start) return false;
    int64_t *start = readers->start + 1; /* counted one place on: filling them moves it back */
    for (int32_t v = 0; v < graph->count; v++)
        for (int i = 0; reads(graph, v) && i < graph->values[v].ninputs; i++, total++)
            start[wb_value_base(graph, wb_value_inputs(&graph->values[v])[i])]++;
    for (int64_t v = 0, before = 0; v < graph->count; v++) {
        const int64_t own = start[v];
        start[v] = before, before += own;
    }
    readers->list = wb_alloc(sizeof *readers->list * (size_t)(total + 1));
    if (!readers->list) return false;
    for (int32_t v = 0; v < graph->count; v++)
        for (int i = 0; reads(graph, v) && i < graph->values[v].ninputs; i++)
            readers->list[start[wb_value_base(graph, wb_value_inputs(&graph->values[v])[i])]++] = v;
    return true;
}
