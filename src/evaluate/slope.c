/* What the backward pass reads of an activation: its slope, which the forward program has beside
 * the result, or its argument, from which the backward program makes the slope again. */
#include <string.h>

#include "base/memory.h"
#include "evaluate/plan.h"

static const wb_value *value_at(const wb_graph *graph, int32_t v) { return &graph->values[v]; }

static bool is_member(const wb_unit *u, int32_t v) {
    for (int64_t m = 0; m < u->member_count; m++)
        if (u->members[m] == v) return true;
    return false;
}

/* The program behind a matrix product that alone reads what unit `from` stores as v; -1: there is
 * no such. */
static int32_t reader_of(const wb_graph *graph, int32_t from, int32_t v) {
    int32_t reader = -1;
    int64_t count;
    const int32_t *readers = wb_value_readers(graph, v, &count);
    for (int64_t n = 0; n < count; n++) {
        const wb_value *x = value_at(graph, readers[n]);
        const int32_t unit = wb_unit_find(graph, x->unit);
        if (unit == from) continue;
        if ((reader >= 0 && reader != unit) || graph->units[unit].fused_into < 0) return -1;
        reader = unit;
        for (int i = 0; i < x->ninputs; i++) /* not as it is, but through a view */
            if (wb_value_inputs(x)[i] != v && wb_value_base(graph, wb_value_inputs(x)[i]) == v)
                return -1;
    }
    if (reader < 0) return -1;
    const wb_unit *product = &graph->units[graph->units[reader].fused_into];
    return value_at(graph, product->members[0])->op == WB_OP_matmul ? reader : -1;
}

static bool is_alike(const wb_value *a, const wb_value *b) {
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->sizes, b->sizes, sizeof *a->sizes * a->ndim) == 0;
}

/* Lists the members that make `slope` of `argument` and constants. 0: it is made of more. */
static int64_t list_way(const wb_graph *graph, const wb_unit *u, int32_t slope, int32_t argument,
                        int32_t *way) {
    const wb_value *like = value_at(graph, slope);
    int64_t count = 1;
    bool reaches = false;
    way[0] = slope;
    for (int64_t done = 0; done < count; done++) {
        const wb_value *v = value_at(graph, way[done]);
        if (v->kind != WB_VALUE_ELEMENT || !is_alike(v, like)) return 0;
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t input = wb_value_inputs(v)[i];
            bool known = input == argument || value_at(graph, input)->kind == WB_VALUE_CONSTANT;
            reaches = reaches || input == argument;
            if (!known && (!is_member(u, input) || value_at(graph, input)->stored)) return 0;
            for (int64_t k = 0; k < count && !known; k++) known = way[k] == input;
            if (!known) way[count++] = input;
        }
    }
    return reaches ? count : 0;
}

static void sort(int32_t *list, int64_t count) {
    for (int64_t i = 1; i < count; i++)
        for (int64_t k = i; k > 0 && list[k - 1] > list[k]; k--) {
            const int32_t swapped = list[k];
            list[k] = list[k - 1], list[k - 1] = swapped;
        }
}

/* ---- which ---- */

static int32_t product_of(const wb_graph *graph, const wb_unit *u) {
    return graph->units[u->fused_into].members[0];
}

/* True if v, of the program or the product before it, can take the place of the slope: in its
 * memory, or in some that lasts. */
static bool may_be_left(const wb_graph *graph, const wb_unit *u, int32_t v, int32_t slope) {
    const wb_value *value = value_at(graph, v);
    if (!is_alike(value, value_at(graph, slope))) return false;
    if (value->output >= 0 || !value->stored) return true;
    return v == product_of(graph, u) && wb_is_private(graph, v, (int32_t)(u - graph->units));
}

/* Of what the program stores something that it need not: the argument is the first that all ways to
 * it lead through. */
static bool find(const wb_graph *graph, wb_slope *s, int32_t *way, int64_t *count) {
    const wb_unit *u = &graph->units[s->program];
    for (int64_t m = u->member_count - 1; m >= 0; m--) {
        const wb_value *v = value_at(graph, u->members[m]);
        if (!v->stored || v->output >= 0) continue;
        s->slope = u->members[m];
        s->reader = reader_of(graph, s->program, s->slope);
        for (int64_t k = -1; s->reader >= 0 && k < m; k++) {
            s->argument = k < 0 ? product_of(graph, u) : u->members[k];
            if (!may_be_left(graph, u, s->argument, s->slope)) continue;
            *count = list_way(graph, u, s->slope, s->argument, way);
            if (*count > 0) return true;
        }
    }
    return false;
}

/* ---- the change ---- */

/* The members that what is stored is made of, in a list of their own. */
static bool keep_needed(const wb_graph *graph, wb_unit *u) {
    const wb_unit before = *u;
    u->members = wb_alloc(sizeof *u->members * (size_t)before.member_count);
    u->member_count = 0, u->member_capacity = before.member_count;
    if (!u->members) return false;
    for (int64_t m = before.member_count - 1; m >= 0; m--) {
        const int32_t member = before.members[m];
        bool wanted = value_at(graph, member)->stored;
        for (int64_t k = 0; k < u->member_count && !wanted; k++) {
            const wb_value *x = value_at(graph, u->members[k]);
            for (int i = 0; i < x->ninputs; i++) wanted = wanted || wb_value_inputs(x)[i] == member;
        }
        if (wanted) u->members[u->member_count++] = member;
    }
    sort(u->members, u->member_count);
    return true;
}

/* Its members and those of the way, in a list of their own. */
static bool add_way(wb_unit *u, const int32_t *way, int64_t count) {
    const wb_unit before = *u;
    u->members = wb_alloc(sizeof *u->members * (size_t)(before.member_count + count));
    if (!u->members) return false;
    memcpy(u->members, before.members, sizeof *way * (size_t)before.member_count);
    memcpy(u->members + before.member_count, way, sizeof *way * (size_t)count);
    u->member_count = u->member_capacity = before.member_count + count;
    sort(u->members, u->member_count);
    return true;
}

static bool exchange(wb_graph *graph, wb_slope *s, const int32_t *way, int64_t count) {
    wb_value *slope = &graph->values[s->slope], *argument = &graph->values[s->argument];
    s->program_before = graph->units[s->program], s->reader_before = graph->units[s->reader];
    s->slope_before = *slope, s->argument_before = *argument;
    slope->stored = false, argument->stored = argument->is_left = true;
    if (argument->output < 0)
        argument->memory = slope->memory, argument->offset_bytes = slope->offset_bytes;
    const bool kept = keep_needed(graph, &graph->units[s->program]);
    const bool added = add_way(&graph->units[s->reader], way, count);
    if (!kept || !added) wb_slope_settle(graph, s, false);
    return kept && added;
}

bool wb_slope_exchange(wb_graph *graph, int32_t program, wb_slope *s) {
    const wb_unit *u = &graph->units[program];
    int64_t count = 0;
    if (u->reduced) return false;
    int32_t *way = wb_alloc(sizeof *way * (size_t)u->member_count);
    *s = (wb_slope){.program = program};
    const bool done = way && find(graph, s, way, &count) && exchange(graph, s, way, count);
    wb_release(way);
    return done;
}

void wb_slope_settle(wb_graph *graph, wb_slope *s, bool taken) {
    wb_unit *program = &graph->units[s->program], *reader = &graph->units[s->reader];
    wb_release(taken ? s->program_before.members : program->members);
    wb_release(taken ? s->reader_before.members : reader->members);
    if (taken) return;
    *program = s->program_before, *reader = s->reader_before;
    graph->values[s->slope] = s->slope_before, graph->values[s->argument] = s->argument_before;
}
