/* Sinking: values computed where they are used.
 *
 * The forward pass comes first on the tape, so that a value that only the backward pass needs (1 -
 * tanh^2, the mask of relu) joined the forward program, and would be stored. It moves to its one
 * user if that stores no more than before; row values, which are few, do not count. A user needs
 * what the value's unit needs already, so that no cycle can arise.
 *
 * Reads the tape's marks and values. Writes members of units, memberships, and at last phases. */
#include "base/memory.h"
#include "evaluate/graph.h"

static wb_unit *unit_at(const wb_graph *graph, int32_t u) { return &graph->units.at[u]; }
static int32_t unit_of(const wb_graph *graph, int32_t v) { return graph->units.of[v].unit; }

/* Of each value the one unit that uses it; WB_NO_UNIT: none; SEVERAL: more, or not as an
 * operand. */
enum { SEVERAL = -2 };

static void list_consumers(const wb_graph *graph, int32_t *of) {
    for (int32_t v = 0; v < graph->count; v++) of[v] = WB_NO_UNIT;
    for (int32_t v = 0; v < graph->count; v++) {
        const wb_value *value = &graph->values[v];
        const int32_t unit = unit_of(graph, v);
        for (int i = 0; i < value->ninputs; i++) {
            int32_t *seen = &of[wb_value_inputs(value)[i]];
            const bool is_told = graph->values[wb_value_inputs(value)[i]].is_told;
            const bool is_other = *seen != WB_NO_UNIT && *seen != unit;
            *seen = !wb_value_is_fused(value) || is_told || is_other ? SEVERAL : unit;
        }
    }
    for (int64_t i = 0; i < graph->tape->count; i++)
        if ((graph->tape->at[i].marks & WB_TAPE_STORED) && graph->of_tape[i] >= 0)
            of[graph->of_tape[i]] = SEVERAL;
}

/* The number of full operands of v that its unit would have to store if v moved, and does not store
 * already; row values do not count, because they are small. */
static int newly_stored(const wb_graph *graph, int32_t member, const int32_t *of) {
    const wb_value *v = &graph->values[member];
    const int32_t unit = unit_of(graph, member);
    int count = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = v->small_inputs[i];
        const wb_value *x = &graph->values[input];
        const bool inside = x->kind != WB_VALUE_VIEW && unit_of(graph, input) == unit;
        if (inside && of[input] == unit && !wb_value_is_row(unit_at(graph, unit), x)) count++;
    }
    return count;
}

/* Operands of v of its own size. */
static int full_operands(const wb_graph *graph, const wb_unit *u, const wb_value *v) {
    int count = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const wb_value *x = &graph->values[v->small_inputs[i]];
        count += !wb_value_is_inline(x) && wb_value_is_full(u, x);
    }
    return count;
}

static bool may_sink(const wb_graph *graph, int32_t member, const int32_t *of) {
    const wb_value *v = &graph->values[member];
    const int32_t to = of[member], own = unit_of(graph, member);
    if (v->kind != WB_VALUE_ELEMENT || to < 0 || to == own) return false;
    const wb_unit *from = unit_at(graph, own), *u = unit_at(graph, to);
    if (from->member_count < 2 || wb_value_is_row(from, v)) return false;
    if (u->kind != WB_UNIT_PROGRAM || u->member_count >= WB_MOST_MEMBERS) return false;
    if (!wb_value_is_full(u, v)) return false;
    /* not past a reduction if reading the operands again costs more than storing v */
    if (graph->units.of[member].phase > 0 && full_operands(graph, from, v) > 1) return false;
    return newly_stored(graph, member, of) <= 1;
}

static bool is_read_in(const wb_graph *graph, int32_t unit, int32_t value) {
    const wb_unit *u = unit_at(graph, unit);
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *x = &graph->values[u->members[m]];
        for (int k = 0; k < x->ninputs; k++)
            if (wb_value_inputs(x)[k] == value) return true;
    }
    return false;
}

static void insert_member(wb_unit *u, int32_t member) {
    int64_t at = u->member_count++;
    for (; at > 0 && u->members[at - 1] > member; at--) u->members[at] = u->members[at - 1];
    u->members[at] = member;
}

/* Moves v to the unit that uses it; what only v used is now used there alone. */
static bool sink(wb_graph *graph, int32_t v, int32_t *of) {
    const wb_value *value = &graph->values[v];
    wb_unit *to = unit_at(graph, of[v]);
    if (!WB_GROW(to->members, to->member_count, to->member_capacity)) return false;
    const int32_t from = unit_of(graph, v);
    wb_unit_remove(&graph->units, v);
    insert_member(to, v);
    graph->units.of[v].unit = of[v];
    for (int i = 0; i < value->ninputs; i++) {
        const int32_t input = value->small_inputs[i];
        if (of[input] == from) of[input] = is_read_in(graph, from, input) ? SEVERAL : of[v];
    }
    return true;
}

/* Members come after what they read: their phases follow from those. */
static void set_phases(const wb_graph *graph, int32_t unit) {
    wb_unit *u = unit_at(graph, unit);
    u->phases = 1;
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &graph->values[u->members[m]];
        if (!wb_value_is_fused(v)) continue;
        const int phase = wb_phase_in(graph, unit, v);
        graph->units.of[u->members[m]].phase = (uint8_t)phase;
        u->phases = wb_phases_with(graph, u, v, phase);
    }
}

void wb_graph_set_phases(wb_graph *graph) {
    for (int32_t u = 0; u < graph->units.count; u++)
        if (graph->units.at[u].kind == WB_UNIT_PROGRAM) set_phases(graph, u);
}

bool wb_graph_sink(wb_graph *graph) {
    int32_t *of = wb_alloc(sizeof *of * (size_t)(graph->count + 1));
    bool done = of != NULL;
    if (done) list_consumers(graph, of);
    for (int32_t v = (int32_t)graph->count - 1; done && v >= 0; v--)
        if (may_sink(graph, v, of)) done = sink(graph, v, of);
    wb_release(of);
    return done;
}
