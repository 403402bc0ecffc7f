/* Rematerialisation: cheap values are computed again where they are read.
 *
 * A value that programs other than its own read would be stored by the one and loaded by the
 * others. If it takes only a few cheap operations on one array that lies in memory anyway, and on
 * numbers for its rows, each of these programs loads that array instead and computes the value
 * itself. So a half that is widened to f32 is not stored a second time, in twice the memory, and
 * the backward pass of a norm reads its input instead of copies of it without the mean.
 *
 * Reads the tape's marks and readers. Adds values, and writes members of programs; what nobody
 * reads any more leaves its program. */
#include <string.h>

#include "base/memory.h"
#include "evaluate/graph.h"

enum {
    MOST_OPERATIONS = 4, /* from the array in memory to the value */
    ROW_SHARE = 16,      /* a small operand has at most 1 / ROW_SHARE of the value's elements */
    NOWHERE = -1,
};

typedef struct origin {
    int32_t array;   /* the value in memory from which it is computed; itself: it is in memory;
                        NOWHERE: it cannot be computed again */
    int8_t steps;    /* operations from there */
    bool is_renewed; /* other programs compute it again, and none loads it */
} origin;

typedef struct renewer {
    wb_graph *graph;
    origin *of;     /* of each value there was */
    bool *is_named; /* a callable's, or a result: it stays where it is */
    int32_t *made;  /* of each value there was, the one made for `unit`, if at least `first` */
    int32_t unit, first;
    wb_value *values;
    int64_t count, capacity;
} renewer;

static const wb_value *value_at(const renewer *r, int32_t v) { return &r->graph->values[v]; }
static int32_t unit_of(const renewer *r, int32_t v) { return r->graph->units.of[v].unit; }

/* ---- what can be computed again ---- */

static bool is_cheap(const wb_value *v) {
    static const bool cheap[WB_OP_COUNT] = {
        [WB_OP_cast] = true, [WB_OP_add] = true, [WB_OP_sub] = true, [WB_OP_mul] = true,
        [WB_OP_neg] = true,  [WB_OP_max] = true, [WB_OP_min] = true, [WB_OP_square] = true,
    };
    return v->kind == WB_VALUE_ELEMENT && cheap[v->op] && !v->is_step && !v->is_told;
}

/* A leaf that a later reader would keep from giving its memory to a result. */
static bool may_be_overwritten(const renewer *r, const wb_value *leaf) {
    return r->graph->tape->at[leaf->tape].marks & WB_TAPE_DONATED;
}

/* A number, or numbers for rows. */
static bool is_small(const renewer *r, int32_t input, const wb_value *v) {
    const wb_value *x = value_at(r, input), *base = value_at(r, x->base);
    if (x->kind == WB_VALUE_CONSTANT || x->kind == WB_VALUE_LATE) return true;
    if (x->kind == WB_VALUE_SOURCE || x->is_told) return false;
    if (base->kind == WB_VALUE_LEAF && may_be_overwritten(r, base)) return false;
    return wb_value_count(x) <= wb_value_count(v) / ROW_SHARE;
}

/* True if some reader loads the value from memory, whatever becomes of programs. */
static bool is_loaded(const renewer *r, int32_t v) {
    int64_t count;
    const int32_t *readers = wb_value_readers(r->graph, v, &count);
    for (int64_t i = 0; i < count; i++) {
        if (!wb_value_is_fused(value_at(r, readers[i]))) return true;
        for (int k = 0; k < value_at(r, readers[i])->ninputs; k++) {
            const int32_t input = wb_value_inputs(value_at(r, readers[i]))[k];
            if (input != v && wb_value_base(r->graph, input) == v) return true; /* by a view */
        }
    }
    return false;
}

static bool is_read_outside(const renewer *r, int32_t v, int32_t unit) {
    int64_t count;
    const int32_t *readers = wb_value_readers(r->graph, v, &count);
    for (int64_t i = 0; i < count; i++)
        if (unit_of(r, readers[i]) != unit) return true;
    return false;
}

/* True if x is in memory even if no other program loads it for the sake of v. A call's result that
 * only its epilogue reads need not be; a leaf may be overwritten by the plan. */
static bool stays_in_memory(const renewer *r, int32_t x, int32_t v) {
    const wb_value *value = value_at(r, x);
    const wb_unit *u = &r->graph->units.at[unit_of(r, v)];
    switch ((wb_value_kind)value->kind) {
    case WB_VALUE_LEAF:
        return !may_be_overwritten(r, value);
    case WB_VALUE_CALL:
    case WB_VALUE_RESULT:
        return value->op != WB_OP_collective &&
               (u->reduced || is_read_outside(r, x, unit_of(r, v)));
    case WB_VALUE_ELEMENT:
        return r->of[x].array == x;
    default:
        return false;
    }
}

/* A half that its own program computes with the digits of f32: who loads it gets others. */
static bool is_rounded_by_storing(const renewer *r, int32_t x, int32_t v) {
    const wb_value *value = value_at(r, x);
    const bool is_rounded = value->op == WB_OP_cast && value->attributes.cast.rounds;
    return value->kind == WB_VALUE_ELEMENT && wb_is_half(value->dtype) && !is_rounded &&
           unit_of(r, x) == unit_of(r, v);
}

/* How v is computed from what is in memory; the value is no smaller than what is loaded for it. */
static origin find_origin(const renewer *r, int32_t number) {
    const origin none = {NOWHERE, 0, false};
    const wb_value *v = value_at(r, number);
    origin found = none;
    if (!is_cheap(v) || r->is_named[number]) return none;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = v->small_inputs[i];
        const wb_value *x = value_at(r, input);
        if (is_small(r, input, v)) continue;
        if (found.array >= 0 || !wb_value_has_sizes_of(x, v) || x->base != input) return none;
        const bool is_there = stays_in_memory(r, input, number);
        if (is_there && is_rounded_by_storing(r, input, number)) return none;
        if (is_there)
            found = (origin){input, 1, false};
        else if (unit_of(r, input) >= 0 && unit_of(r, input) == unit_of(r, number))
            found = (origin){r->of[input].array, (int8_t)(r->of[input].steps + 1), false};
        if (found.array < 0 || found.steps > MOST_OPERATIONS) return none;
    }
    if (found.array >= 0 && wb_value_bytes(value_at(r, found.array)) > wb_value_bytes(v))
        return none;
    return found;
}

/* A half that a program computes, and a cast widens, may be stored in the wide one's place. */
static bool is_widened_half(const renewer *r, int32_t number, int32_t *half) {
    const wb_value *v = value_at(r, number);
    *half = v->ninputs == 1 ? v->small_inputs[0] : NOWHERE;
    return v->kind == WB_VALUE_ELEMENT && v->op == WB_OP_cast && !r->is_named[number] &&
           v->dtype == WB_F32 && wb_is_half(value_at(r, *half)->dtype) &&
           value_at(r, *half)->kind == WB_VALUE_ELEMENT && unit_of(r, *half) >= 0 &&
           unit_of(r, *half) == unit_of(r, number) && !is_rounded_by_storing(r, *half, number);
}

/* True if each program that reads v besides its own can compute it, for each of its elements. */
static bool all_can_renew(const renewer *r, int32_t v) {
    int64_t count;
    const int32_t *readers = wb_value_readers(r->graph, v, &count);
    for (int64_t i = 0; i < count; i++) {
        const int32_t unit = unit_of(r, readers[i]);
        if (unit == unit_of(r, v)) continue;
        const wb_unit *u = unit >= 0 ? &r->graph->units.at[unit] : NULL;
        if (!u || u->kind != WB_UNIT_PROGRAM || !wb_value_is_full(u, value_at(r, v))) return false;
        if (u->member_count + MOST_OPERATIONS > WB_MOST_MEMBERS) return false;
        if (value_at(r, readers[i])->is_step) return false;
    }
    return true;
}

static void decide(renewer *r, int32_t v) {
    const wb_value *value = value_at(r, v);
    int32_t half;
    r->of[v] = (origin){NOWHERE, 0, false};
    if (value->kind != WB_VALUE_ELEMENT || unit_of(r, v) < 0) return;
    r->of[v] = find_origin(r, v);
    const bool loaded = r->is_named[v] || is_loaded(r, v);
    if (!loaded && !is_read_outside(r, v, unit_of(r, v))) return;
    const bool renews = !loaded && all_can_renew(r, v);
    if (renews && r->of[v].array < 0 && is_widened_half(r, v, &half)) {
        r->of[half] = (origin){half, 0, false};
        r->of[v] = (origin){half, 1, false};
    }
    if (renews && r->of[v].array >= 0)
        r->of[v].is_renewed = true;
    else
        r->of[v] = (origin){v, 0, false};
}

/* ---- computing it again ---- */

/* The value as it is computed for the unit. NOWHERE: out of memory. */
static int32_t renew(renewer *r, int32_t number, int64_t *at) {
    if (r->made[number] >= r->first) return r->made[number];
    wb_value v = *value_at(r, number);
    for (int i = 0; i < v.ninputs; i++) {
        const int32_t input = v.small_inputs[i];
        const bool is_on_the_way =
            input != r->of[number].array && !is_small(r, input, value_at(r, number));
        if (is_on_the_way && (v.small_inputs[i] = renew(r, input, at)) < 0) return NOWHERE;
    }
    wb_unit *u = &r->graph->units.at[r->unit];
    if (!WB_GROW(r->values, r->count, r->capacity)) return NOWHERE;
    if (!WB_GROW(u->members, u->member_count, u->member_capacity)) return NOWHERE;
    const int32_t made = (int32_t)r->count++;
    v.base = made, v.callable = 0;
    r->values[made] = v;
    r->made[number] = made;
    for (int64_t m = u->member_count++; m > *at; m--) u->members[m] = u->members[m - 1];
    u->members[(*at)++] = made;
    return made;
}

/* The members of one program read what they compute themselves. False when out of memory. */
static bool renew_in(renewer *r, int32_t unit) {
    wb_unit *u = &r->graph->units.at[unit];
    const int64_t old_count = r->graph->count;
    r->unit = unit, r->first = (int32_t)r->count;
    for (int64_t m = 0; m < u->member_count; m++) {
        const int32_t member = u->members[m];
        if (member >= old_count || !wb_value_is_fused(value_at(r, member))) continue;
        for (int i = 0; i < value_at(r, member)->ninputs; i++) {
            const int32_t input = value_at(r, member)->small_inputs[i];
            if (!r->of[input].is_renewed || unit_of(r, input) == unit) continue;
            const int32_t made = renew(r, input, &m);
            if (made < 0) return false;
            r->values[member].small_inputs[i] = made;
        }
    }
    return true;
}

/* ---- what nobody reads any more ---- */

/* Values that are computed elsewhere now, and those that only these read, leave their programs.
 * old_count: how many values there were. False when out of memory. */
static bool drop_unread(renewer *r, int64_t old_count) {
    const wb_graph *graph = r->graph;
    int32_t *uses = wb_alloc(sizeof *uses * (size_t)(graph->count + 1));
    if (!uses) return false;
    for (int64_t v = 0; v < graph->count; v++)
        for (int i = 0; i < graph->values[v].ninputs; i++)
            uses[wb_value_inputs(&graph->values[v])[i]]++;
    for (int64_t i = 0; i < graph->tape->count; i++)
        if ((graph->tape->at[i].marks & WB_TAPE_STORED) && graph->of_tape[i] >= 0)
            uses[graph->of_tape[i]]++;
    for (int32_t v = (int32_t)old_count - 1; v >= 0; v--) {
        wb_value *value = &r->values[v];
        if (uses[v] > 0 || value->kind != WB_VALUE_ELEMENT || unit_of(r, v) < 0 || r->is_named[v])
            continue;
        wb_unit_remove(&r->graph->units, v);
        for (int i = 0; i < value->ninputs; i++) uses[value->small_inputs[i]]--;
        value->ninputs = 0;
    }
    wb_release(uses);
    return true;
}

/* ---- the stage ---- */

static bool begin(renewer *r) {
    const wb_graph *graph = r->graph;
    const size_t room = (size_t)graph->count + 1;
    r->of = wb_alloc(sizeof *r->of * room);
    r->is_named = wb_alloc(room);
    r->made = wb_alloc(sizeof *r->made * room);
    if (!r->of || !r->is_named || !r->made) return false;
    for (int64_t i = 0; i < graph->callable_count; i++) {
        const wb_named_node *named = &graph->callables[i];
        for (int k = 0; k < WB_CALLABLE_INPUTS; k++)
            if (named->in[k] >= 0) r->is_named[named->in[k]] = true;
        for (int k = 0; k < WB_CALLABLE_RESULTS; k++)
            if (named->out[k] >= 0) r->is_named[named->out[k]] = true;
    }
    for (int64_t i = 0; i < graph->tape->count; i++)
        if ((graph->tape->at[i].marks & WB_TAPE_STORED) && graph->of_tape[i] >= 0)
            r->is_named[wb_value_base(graph, graph->of_tape[i])] = true;
    return true;
}

/* The graph with the values that were made. False when out of memory. */
static bool take_over(renewer *r) {
    wb_graph *graph = r->graph;
    const int64_t old_count = graph->count;
    wb_membership *of = wb_alloc(sizeof *of * (size_t)(r->count + 1));
    if (!of) {
        wb_release(r->values);
        return false;
    }
    memcpy(of, graph->units.of, sizeof *of * (size_t)old_count);
    wb_release(graph->units.of);
    graph->units.of = of;
    wb_release((void *)(uintptr_t)graph->values);
    graph->values = r->values, graph->count = r->count;
    for (int64_t v = old_count; v < r->count; v++) of[v].unit = WB_NO_UNIT;
    for (int32_t u = 0; u < graph->units.count; u++)
        for (int64_t m = 0; m < graph->units.at[u].member_count; m++)
            of[graph->units.at[u].members[m]].unit = u;
    return drop_unread(r, old_count) && wb_graph_list_readers(graph);
}

static bool renew_all(renewer *r) {
    const wb_graph *graph = r->graph;
    bool any = false, done = true;
    for (int32_t v = 0; v < graph->count; v++) {
        decide(r, v);
        any = any || r->of[v].is_renewed;
    }
    if (!any) return true;
    r->count = graph->count;
    if (!wb_reserve((void **)&r->values, &r->capacity, sizeof *r->values, r->count + 1))
        return false;
    memcpy(r->values, graph->values, sizeof *r->values * (size_t)r->count);
    for (int32_t u = 0; done && u < graph->units.count; u++)
        if (graph->units.at[u].kind == WB_UNIT_PROGRAM) done = renew_in(r, u);
    if (done) return take_over(r);
    wb_release(r->values);
    return false;
}

bool wb_graph_rematerialise(wb_graph *graph) {
    renewer r = {.graph = graph};
    const bool done = begin(&r) && renew_all(&r);
    wb_release(r.of);
    wb_release(r.is_named);
    wb_release(r.made);
    return done;
}
