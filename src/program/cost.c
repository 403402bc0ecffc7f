/* Counts the arithmetic of a command and the bytes that it has to move, as if each array were read
 * or written once. A multiplication and an addition are two operations. */
#include "program/cost.h"

#include <weber/dtype.h>

/* ---- programs ---- */

/* Points of the domain, or of what is left of it when the reduced dimensions are gone. */
static double points(const wb_program *p, bool rows) {
    double count = 1;
    for (int d = 0; d < p->ndim; d++)
        if (!rows || !(p->reduced >> d & 1)) count *= (double)p->sizes[d];
    return count;
}

static double bytes_of(const wb_program *p, const wb_access *a) {
    double count = (double)wb_dtype_size((wb_dtype)a->dtype);
    for (int d = 0; d < p->ndim; d++)
        if (a->strides[d] != 0) count *= (double)p->sizes[d];
    return count;
}

static bool computes(int code) {
    return code < WB_CODE_cast || code == WB_CODE_uniform || code == WB_CODE_normal ||
           code == WB_CODE_sum || code == WB_CODE_max_reduce || code == WB_CODE_side_sum;
}

/* Whether an earlier instruction of that kind goes to the same access. */
static bool is_repeated(const wb_program *p, int number) {
    const wb_instruction *i = &p->instructions[number];
    for (int k = 0; k < number; k++)
        if (p->instructions[k].code == i->code && p->instructions[k].index == i->index) return true;
    return false;
}

wb_cost wb_cost_of_program(const wb_program *p) {
    wb_cost cost = {.operations = 0};
    for (int n = 0; n < p->ninstructions; n++) {
        const wb_instruction *i = &p->instructions[n];
        const bool is_sum = i->code == WB_CODE_sum || i->code == WB_CODE_max_reduce;
        if (computes(i->code)) cost.operations += points(p, i->row && !is_sum);
        const bool is_stored = i->code == WB_CODE_store || i->code == WB_CODE_side_sum;
        if (i->code != WB_CODE_load && !is_stored) continue;
        if (is_repeated(p, n)) continue;
        const double bytes = bytes_of(p, &p->accesses[i->index]);
        *(i->code == WB_CODE_load ? &cost.read_bytes : &cost.written_bytes) += bytes;
    }
    return cost;
}

/* ---- calls ---- */

static double product(const int64_t sizes[3]) {
    return (double)sizes[0] * (double)sizes[1] * (double)sizes[2];
}

/* Numbers read and written, of one size. */
static wb_cost moved(const wb_call *call, double operations, double read, double written) {
    const double element = (double)wb_dtype_size(call->dtype);
    return (wb_cost){operations, element * read, element * written};
}

static wb_cost of_matmul(const wb_call *call) {
    const wb_matmul_call *m = &call->matmul;
    const double rows = (double)m->m, columns = (double)m->n, depth = (double)m->k,
                 batch = (double)m->batch;
    return moved(call, 2 * rows * columns * depth * batch, (rows + columns) * depth * batch,
                 rows * columns * batch);
}

static wb_cost of_window(const wb_call *call) {
    const wb_window_call *w = &call->window;
    const double x = product(w->in) * (double)w->channels * (double)w->batch;
    const double filters = w->filters ? (double)w->filters : (double)w->channels;
    const double y = product(w->out) * filters * (double)w->batch, taps = product(w->kernel);
    const double depth = (double)w->channels / (double)(w->groups ? w->groups : 1);
    const double products = 2 * y * taps * depth, filter = taps * depth * filters;
    switch (call->kind) {
    case WB_CALL_conv_forward:
        return moved(call, products, x + filter, y);
    case WB_CALL_conv_data:
        return moved(call, products, y + filter, x);
    case WB_CALL_conv_filter:
        return moved(call, products, x + y, filter);
    case WB_CALL_maxpool:
    case WB_CALL_meanpool:
        return moved(call, y * taps, x, y);
    case WB_CALL_unfold:
        return moved(call, 0, x, product(w->out) * taps * (double)w->channels * (double)w->batch);
    case WB_CALL_fold:
        return moved(call, 0, product(w->out) * taps * (double)w->channels * (double)w->batch, x);
    case WB_CALL_pool_gather:
        return moved(call, 0, y, y);
    default:
        return moved(call, call->kind == WB_CALL_meanpool_data ? y * taps : 0, y, x);
    }
}

static wb_cost of_index(const wb_call *call) {
    const wb_index_call *i = &call->index;
    const double count = i->count ? (double)i->count : (double)i->size;
    const double all = (double)i->inner * count * (double)i->outer;
    const bool adds = call->kind == WB_CALL_scatter_add || call->kind == WB_CALL_cumsum;
    return moved(call, adds ? all : 0, all, all);
}

/* Scores and their sums of values; backward, five products of that size instead of two. */
static wb_cost of_attention(const wb_call *call) {
    const wb_attention_call *a = &call->attention;
    const double heads = (double)a->heads * (double)a->batch;
    const double q = heads * (double)a->dk * (double)a->queries;
    const double y = heads * (double)a->dv * (double)a->queries;
    const double kv =
        (double)a->kv_heads * (double)a->batch * (double)(a->dk + a->dv) * (double)a->keys;
    const double both = 2 * heads * (double)a->queries * (double)a->keys * (double)(a->dk + a->dv);
    const double seen = a->is_causal ? 0.5 : 1;
    if (call->kind == WB_CALL_attention) return moved(call, seen * both, q + kv, y);
    return moved(call, 2.5 * seen * both, q + kv + 2 * y, q + kv);
}

/* Each result of two neighbours along each dimension. */
static wb_cost of_grid(const wb_call *call) {
    const wb_grid_call *g = &call->grid;
    const double planes = (double)g->channels * (double)g->batch;
    const double x = product(g->in) * planes, y = product(g->out) * planes;
    const double grid = product(g->out) * (double)g->batch * (double)g->dims;
    const double products = 2 * y * (g->nearest ? 1 : (double)(1 << g->dims));
    return call->kind == WB_CALL_grid_sample ? moved(call, products, x + grid, y)
                                             : moved(call, products, y + grid, x);
}

wb_cost wb_cost_of_call(const wb_call *call) {
    switch (wb_call_row_of(call->kind).shape) {
    case WB_SHAPE_matmul:
        return of_matmul(call);
    case WB_SHAPE_window:
        return of_window(call);
    case WB_SHAPE_index:
        return of_index(call);
    case WB_SHAPE_grid:
        return of_grid(call);
    default:
        return of_attention(call);
    }
}

/* ---- both ---- */

wb_cost wb_cost_of_command(const wb_call *call, const wb_program *program) {
    const wb_cost none = {.operations = 0};
    const wb_cost c = call ? wb_cost_of_call(call) : none;
    const wb_cost p = program ? wb_cost_of_program(program) : none;
    const double passed_on = program ? c.written_bytes : 0;
    const bool is_written = call && !(program && call->is_result_private);
    return (wb_cost){c.operations + p.operations, c.read_bytes + p.read_bytes - passed_on,
                     (is_written ? c.written_bytes : 0) + p.written_bytes};
}
