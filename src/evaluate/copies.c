/* Avoids copies: a value that a program computes, and only a concat reads, is stored where the
 * concat would put it; so is a value that only a reordering copy reads.
 *
 * Reads values, readers and units. Writes holders, and layouts of placements. */
#include "base/memory.h"
#include "evaluate/graph.h"

/* Least number of elements that lie side by side in the copy: a program that scatters shorter runs
 * is slower than the copy. */
enum { LEAST_RUN = 16 };

/* True if the copy reads v once, as a whole, and nobody else but v's own program reads it. */
static bool is_alone(const wb_graph *graph, int32_t v, int32_t copy) {
    const int32_t unit = graph->units.of[v].unit;
    int64_t count;
    const int32_t *readers = wb_value_readers(graph, v, &count);
    int times = 0;
    for (int64_t i = 0; i < count; i++) {
        if (readers[i] == copy)
            times++;
        else if (graph->units.of[readers[i]].unit != unit)
            return false;
    }
    return times == 1;
}

static bool may_move(const wb_graph *graph, int32_t number, int32_t copy) {
    const wb_value *v = &graph->values[number];
    const wb_placement *place = &graph->places.of[number];
    const int32_t unit = graph->units.of[number].unit;
    return v->kind == WB_VALUE_ELEMENT && v->base == number && v->layout < 0 && place->output < 0 &&
           place->holder < 0 && unit >= 0 && graph->units.at[unit].kind == WB_UNIT_PROGRAM &&
           v->dtype == graph->values[copy].dtype && is_alone(graph, number, copy);
}

static bool is_in_runs(const wb_value *v, const wb_layout *layout) {
    int64_t run = 1;
    for (int d = 0; d < v->ndim && (v->sizes[d] == 1 || layout->strides[d] == run); d++)
        run *= v->sizes[d];
    return run >= LEAST_RUN;
}

/* False when out of memory. */
static bool move(wb_graph *graph, int32_t number, int32_t copy, const wb_layout *layout) {
    const wb_value *v = &graph->values[number];
    wb_placements *places = &graph->places;
    if (!may_move(graph, number, copy) || !is_in_runs(v, layout)) return true;
    if (!WB_GROW(places->layouts, places->layout_count, places->layout_capacity)) return false;
    places->of[number].holder = copy;
    places->of[number].layout = (int32_t)places->layout_count;
    places->layouts[places->layout_count++] = *layout;
    return true;
}

static bool move_parts(wb_graph *graph, int32_t concat) {
    const wb_value *v = &graph->values[concat];
    const int dim = (int)v->attributes.along.dim;
    const wb_layout whole = wb_layout_dense(v->ndim, v->sizes);
    int64_t start = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t from = wb_value_inputs(v)[i];
        const int64_t size = graph->values[from].sizes[dim];
        wb_layout part;
        wb_layout_slice(&whole, dim, start, size, 1, &part);
        if (!move(graph, from, concat, &part)) return false;
        start += size;
    }
    return true;
}

/* The layout that a value needs so that its view, a permutation of its dimensions, is dense. False:
 * the view is not a permutation. */
static bool unpermuted(const wb_value *v, const wb_layout *view, wb_layout *out) {
    const wb_layout own = wb_layout_dense(v->ndim, v->sizes),
                    wanted = wb_layout_dense(view->ndim, view->sizes);
    int64_t count = 1;
    *out = own;
    for (int d = 0; d < view->ndim; d++) {
        if (view->sizes[d] == 1) continue;
        int e = 0;
        while (e < v->ndim && (v->sizes[e] != view->sizes[d] || own.strides[e] != view->strides[d]))
            e++;
        if (e == v->ndim) return false;
        out->strides[e] = wanted.strides[d];
        count *= view->sizes[d];
    }
    return view->offset == 0 && count == wb_value_count(v);
}

static bool move_into_order(wb_graph *graph, int32_t copy) {
    const wb_value *view = &graph->values[graph->values[copy].small_inputs[0]];
    const wb_layout layout = wb_value_layout(graph, view);
    wb_layout wanted;
    if (!unpermuted(&graph->values[view->base], &layout, &wanted)) return true;
    return move(graph, view->base, copy, &wanted);
}

bool wb_graph_spare_copies(wb_graph *graph) {
    for (int32_t n = 0; graph->fuse && n < graph->count; n++) {
        const wb_value *v = &graph->values[n];
        const bool is_copy = v->kind == WB_VALUE_VIEW && v->base == n;
        if (v->op == WB_OP_concat && v->kind == WB_VALUE_JOIN && !move_parts(graph, n))
            return false;
        if (is_copy && graph->units.of[n].unit >= 0 && !move_into_order(graph, n)) return false;
    }
    return true;
}
