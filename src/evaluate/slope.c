/* What the backward pass reads of an activation: its slope, which the forward program has beside the result, or its argument, from which the
 * backward program makes the slope again. */
#include <string.h>

#include "base/memory.h"
#include "evaluate/plan.h"

static const wb_value *value_at(const wb_graph *graph, int32_t v) { return &graph->values[v]; }

static bool is_member(const wb_unit *u, int32_t v) {
    for (int64_t m = 0; m < u->member_count; m++)
        if (u->members[m] == v) return true;
    return false;
}

static bool reads(const wb_graph *graph, const wb_unit *u, int32_t v, bool *as_it_is) {
    bool read = false;
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *x = value_at(graph, u->members[m]);
        for (int i = 0; i < x->ninputs; i++) {
            const int32_t input = wb_value_inputs(x)[i];
            if (wb_value_base(graph, input) != v) continue;
            read = true;
            if (input != v) *as_it_is = false;
        }
    }
    return read;
}

/* The program behind a matrix product that alone reads what unit `from` stores as v; -1: there is no such. */
static int32_t reader_of(const wb_graph *graph, int32_t from, int32_t v) {
    int32_t reader = -1;
    bool as_it_is = true;
    for (int32_t i = 0; i < graph->unit_count; i++) {
        const wb_unit *u = &graph->units[i];
        if (i == from || u->merged_into >= 0 || !reads(graph, u, v, &as_it_is)) continue;
        if (reader >= 0 || u->fused_into < 0) return -1;
        reader = i;
    }
    if (reader < 0 || !as_it_is) return -1;
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

/* The members that what is stored is made of. */
static int64_t list_needed(const wb_graph *graph, const wb_slope *s, int32_t *needed) {
    int64_t count = 0;
    for (int64_t m = s->member_count - 1; m >= 0; m--) {
        const int32_t member = s->members[m];
        bool wanted = value_at(graph, member)->stored;
        for (int64_t k = 0; k < count && !wanted; k++) {
            const wb_value *x = value_at(graph, needed[k]);
            for (int i = 0; i < x->ninputs; i++) wanted = wanted || wb_value_inputs(x)[i] == member;
        }
        if (wanted) needed[count++] = member;
    }
    sort(needed, count);
    return count;
}

/* True if v can take the place of the slope: it gets its memory, or it has some that lasts. */
static bool may_be_left(const wb_value *v, const wb_value *slope) {
    return is_alike(v, slope) && (!v->stored || v->output >= 0);
}

/* What is stored beside a result; the argument is the first that all ways to it lead through. */
static bool find(const wb_graph *graph, wb_slope *s) {
    const wb_unit *u = &graph->units[s->program];
    if (u->reduced) return false;
    for (int64_t m = u->member_count - 1; m > 0; m--) {
        const wb_value *v = value_at(graph, u->members[m]);
        if (!v->stored || v->output >= 0) continue;
        s->slope = u->members[m];
        s->reader = reader_of(graph, s->program, s->slope);
        for (int64_t k = 0; s->reader >= 0 && k < m; k++) {
            s->argument = u->members[k];
            if (!may_be_left(value_at(graph, s->argument), v)) continue;
            s->count = list_way(graph, u, s->slope, s->argument, s->way);
            if (s->count > 0) return true;
        }
    }
    return false;
}

static void release(const wb_slope *s) {
    wb_release(s->way);
    wb_release(s->members);
    wb_release(s->joined);
}

/* The reader's members with those that make the slope. */
static bool join(const wb_graph *graph, wb_slope *s) {
    const wb_unit *u = &graph->units[s->reader];
    s->joined = wb_alloc(sizeof *s->joined * (size_t)(u->member_count + s->count));
    if (!s->joined) return false;
    memcpy(s->joined, u->members, sizeof *s->joined * (size_t)u->member_count);
    memcpy(s->joined + u->member_count, s->way, sizeof *s->joined * (size_t)s->count);
    sort(s->joined, u->member_count + s->count);
    return true;
}

bool wb_slope_exchange(wb_graph *graph, int32_t program, wb_slope *s) {
    wb_unit *u = &graph->units[program];
    const size_t bytes = sizeof *s->way * (size_t)u->member_count;
    *s = (wb_slope){.program = program, .way = wb_alloc(bytes), .members = wb_alloc(bytes)};
    if (!s->way || !s->members || !find(graph, s) || !join(graph, s)) {
        release(s);
        return false;
    }
    wb_value *slope = &graph->values[s->slope], *argument = &graph->values[s->argument];
    s->was_stored = argument->stored;
    if (!s->was_stored)
        argument->memory = slope->memory, argument->offset_bytes = slope->offset_bytes;
    slope->stored = false, argument->stored = true;
    s->member_count = u->member_count;
    memcpy(s->members, u->members, bytes);
    u->member_count = list_needed(graph, s, u->members);
    return true;
}

static void make_in_reader(wb_graph *graph, wb_slope *s) {
    wb_unit *u = &graph->units[s->reader];
    wb_release(u->members);
    u->members = s->joined;
    u->member_count = u->member_capacity = u->member_count + s->count;
    s->joined = NULL;
}

static void put_back(wb_graph *graph, const wb_slope *s) {
    wb_unit *u = &graph->units[s->program];
    memcpy(u->members, s->members, sizeof *u->members * (size_t)s->member_count);
    u->member_count = s->member_count;
    graph->values[s->slope].stored = true;
    graph->values[s->argument].stored = s->was_stored;
}

void wb_slope_settle(wb_graph *graph, wb_slope *s, bool taken) {
    if (taken)
        make_in_reader(graph, s);
    else
        put_back(graph, s);
    release(s);
}
