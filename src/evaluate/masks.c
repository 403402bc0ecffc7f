/* Masks: where relu's argument was positive, noted by the product that makes it for the product
 * whose program reads relu's result backward. What they look like only the backend knows; who makes
 * no use of them reads the result, which is stored for the weight's gradient anyway. */
#include <string.h>

#include "base/memory.h"
#include "evaluate/plan.h"

static bool is_zero(const wb_graph *graph, int32_t v) {
    const wb_value *value = &graph->values[v];
    return value->kind == WB_VALUE_CONSTANT && value->constant == 0;
}

static bool is_matrix_like(const wb_value *a, const wb_value *b) {
    return a->ndim == 2 && b->ndim == 2 && memcmp(a->sizes, b->sizes, 2 * sizeof *a->sizes) == 0;
}

/* The matrix product that program unit u stands behind; -1: none. */
static int32_t product_before(const wb_graph *graph, int32_t u) {
    if (u < 0 || graph->units[u].kind != WB_UNIT_PROGRAM) return -1;
    const int32_t call = graph->units[u].fused_into;
    if (call < 0 || graph->values[graph->units[call].members[0]].op != WB_OP_matmul) return -1;
    return call;
}

/* True if v is y > 0, y being relu's result of another product. */
static bool reads_relu(const wb_graph *graph, const wb_value *v, wb_mask *mask) {
    if (v->kind != WB_VALUE_ELEMENT || v->op != WB_OP_gt || !is_zero(graph, v->small_inputs[1]))
        return false;
    mask->value = v->small_inputs[0];
    const wb_value *y = &graph->values[mask->value];
    if (y->kind != WB_VALUE_ELEMENT || y->op != WB_OP_max || !y->stored) return false;
    mask->from = product_before(graph, wb_value_unit(graph, mask->value));
    return mask->from >= 0 && mask->from != mask->to &&
           (is_zero(graph, y->small_inputs[0]) || is_zero(graph, y->small_inputs[1])) &&
           is_matrix_like(y, &graph->values[graph->units[mask->from].members[0]]) &&
           is_matrix_like(y, &graph->values[graph->units[mask->to].members[0]]) &&
           !wb_graph_mask(graph, mask->from) && !wb_graph_mask(graph, mask->to);
}

bool wb_graph_find_masks(wb_graph *graph) {
    if (!graph->fuse || !graph->tape->device->info.fuses_backward) return true;
    for (int32_t i = 0; i < graph->unit_count; i++) {
        const wb_unit *u = &graph->units[i];
        wb_mask mask = {.to = u->merged_into < 0 ? product_before(graph, i) : -1};
        bool found = false;
        for (int64_t m = 0; mask.to >= 0 && m < u->member_count && !found; m++)
            found = reads_relu(graph, &graph->values[u->members[m]], &mask);
        if (!found) continue;
        if (!WB_GROW(graph->masks, graph->mask_count, graph->mask_capacity)) return false;
        graph->masks[graph->mask_count++] = mask;
        graph->units[mask.from].mask = graph->units[mask.to].mask = (int32_t)graph->mask_count;
    }
    return true;
}

wb_mask *wb_graph_mask(const wb_graph *graph, int32_t call) {
    const int32_t number = graph->units[call].mask;
    return number ? &graph->masks[number - 1] : NULL;
}

int64_t wb_mask_bytes(const wb_graph *graph, const wb_mask *mask) {
    enum { ROWS = 128, BYTES = ROWS / 8 };
    const int64_t *sizes = graph->values[mask->value].sizes;
    return (sizes[0] + ROWS - 1) / ROWS * BYTES * sizes[1];
}
