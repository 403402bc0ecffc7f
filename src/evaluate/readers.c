/* The readers of each value: one list for the whole graph, which all later stages use. */
#include "base/memory.h"
#include "evaluate/graph.h"

/* A view that shows memory reads none; one that is a copy does. */
static bool reads(const wb_graph *graph, int32_t v) { return graph->values[v].base == v; }

bool wb_graph_list_readers(wb_graph *graph) {
    int64_t total = 0;
    graph->reader_start = wb_alloc(sizeof *graph->reader_start * (size_t)(graph->count + 2));
    if (!graph->reader_start) return false;
    int64_t *start = graph->reader_start + 1; /* counted one place on: filling them moves it back */
    for (int32_t v = 0; v < graph->count; v++)
        for (int i = 0; reads(graph, v) && i < graph->values[v].ninputs; i++, total++)
            start[wb_value_base(graph, wb_value_inputs(&graph->values[v])[i])]++;
    for (int64_t v = 0, before = 0; v < graph->count; v++) {
        const int64_t readers = start[v];
        start[v] = before, before += readers;
    }
    graph->readers = wb_alloc(sizeof *graph->readers * (size_t)(total + 1));
    if (!graph->readers) return false;
    for (int32_t v = 0; v < graph->count; v++)
        for (int i = 0; reads(graph, v) && i < graph->values[v].ninputs; i++)
            graph->readers[start[wb_value_base(graph, wb_value_inputs(&graph->values[v])[i])]++] =
                v;
    return true;
}
