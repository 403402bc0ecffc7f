/* Updates: programs that give parameters and states their new values, and that no other unit of the
 * plan needs.
 *
 * A device that joins them (wb_device_info.joins_updates) gets the small ones at the end of the
 * plan, similar ones side by side, instead of each right after its gradient. Large ones stay next
 * to their gradient: they are worth a launch of their own, and the gradient is in cache.
 *
 * Reads values, outputs and units. Writes which units are updates. */
#include <stdlib.h>

#include "base/memory.h"
#include "evaluate/graph.h"

enum { SMALL = 1 << 18 /* elements */ };

static void mark_needed(const wb_graph *graph, bool *needed) {
    for (int32_t n = 0; n < graph->count; n++) {
        const wb_value *v = &graph->values[n];
        const int32_t unit = wb_value_unit(graph, n);
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t from = wb_value_unit(graph, wb_value_inputs(v)[i]);
            if (from >= 0 && from != unit) needed[from] = true;
        }
    }
}

/* True if the program stores parameters or states, and nothing that other units of the plan
 * read. */
static bool settles(const wb_graph *graph, const wb_unit *u) {
    bool settles = false;
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_placement *place = &graph->places.of[u->members[m]];
        if (place->stored && place->output < 0) return false;
        settles = settles || (place->stored && place->output < graph->places.settled_count);
    }
    return settles;
}

bool wb_graph_find_updates(wb_graph *graph) {
    if (!graph->fuse || !graph->tape->device->info.joins_updates) return true;
    bool *needed = wb_alloc((size_t)graph->units.count + 1);
    if (!needed) return false;
    mark_needed(graph, needed);
    for (int64_t i = 0; i < graph->units.count; i++) {
        wb_unit *u = &graph->units.at[i];
        u->is_update = u->kind == WB_UNIT_PROGRAM && u->merged_into < 0 && !u->reduced &&
                       u->phases == 1 && !needed[i] && settles(graph, u);
        u->is_postponed = u->is_update && wb_count_sizes(u->ndim, u->sizes) <= SMALL;
    }
    wb_release(needed);
    return true;
}

static int by_likeness(const void *a, const void *b) {
    const wb_unit *x = *(const wb_unit *const *)a, *y = *(const wb_unit *const *)b;
    if (x->member_count != y->member_count)
        return (x->member_count > y->member_count) - (x->member_count < y->member_count);
    return (x > y) - (x < y);
}

wb_unit **wb_graph_postponed(const wb_graph *graph, int64_t *count) {
    wb_unit **list = wb_alloc(sizeof *list * (size_t)(graph->units.count + 1));
    *count = 0;
    for (int64_t i = 0; list && i < graph->units.count; i++)
        if (graph->units.at[i].is_postponed) list[(*count)++] = &graph->units.at[i];
    if (list) qsort(list, (size_t)*count, sizeof(wb_unit *), by_likeness);
    return list;
}

bool wb_graph_is_concurrent(const wb_graph *graph, int64_t position, int64_t *first) {
    const wb_unit *u = &graph->units.at[graph->order.units[position]];
    bool joins =
        u->is_update && position > 0 && graph->units.at[graph->order.units[position - 1]].is_update;
    for (int64_t i = 0; joins && i < u->need_count; i++)
        joins = graph->units.at[wb_unit_needed(&graph->units, u, i)].position < *first;
    if (!joins) *first = position;
    return joins;
}
