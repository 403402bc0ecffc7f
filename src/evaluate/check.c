/* A plan is checked before it is emitted: every value is read after it was written, and before its
 * memory is overwritten.
 *
 * This stage does not rely on the ones before. It goes through the units in the order in which they
 * will run. If an operand is not in memory then, or members cannot be computed in their phases,
 * that is a bug of the library, not of its user. To notice overwritten values costs more, so
 * release builds do it only with WEBER_DEBUG=check.
 *
 * Reads the whole graph. Writes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/switch.h"
#include "evaluate/graph.h"

typedef struct checker {
    const wb_graph *graph;
    /* the members below are used only if memory is watched */
    bool *is_lost;    /* of each value: something else has overwritten its memory */
    int32_t *written; /* of each unit: a value that it writes; -1: none */
    int32_t *sibling; /* of each value: another one that its unit writes; -1: none */
    int32_t *owners;  /* what lies in each leaf, each output, each cell of the workspace; -1:
                         nothing */
    int64_t *cuts;    /* where the cells begin, in order */
    int64_t cut_count;
} checker;

static const wb_value *value_at(const checker *c, int32_t v) { return &c->graph->values[v]; }
static const wb_placement *place_at(const checker *c, int32_t v) { return &c->graph->places.of[v]; }
static int phase_of(const wb_graph *graph, int32_t v) { return graph->units.of[v].phase; }

static bool fault(const checker *c, int32_t v, const char *what) {
    const wb_value *x = value_at(c, v);
    (void)wb_fail(WB_ERROR_INTERNAL,
                  "evaluate: the plan is wrong, and was not run: value %d (%s %s) %s; "
                  "WEBER_FUSE=0 plans without fusion",
                  v, wb_op_name((wb_op)x->op), wb_sizes_text(x->ndim, x->sizes), what);
    return false;
}

/* Records what is wrong with an operand at the place where it is read. */
static bool fault_in(const checker *c, int32_t operand, const char *what, int32_t reader) {
    char text[160];
    (void)snprintf(text, sizeof text, "%s where value %d (%s) reads it", what, reader,
                   wb_op_name((wb_op)value_at(c, reader)->op));
    return fault(c, operand, text);
}

/* ---- inside a unit ---- */

/* False for a member whose phase its program does not have. */
static bool has_phase(const wb_graph *graph, const wb_unit *u, int32_t member) {
    const wb_value *v = &graph->values[member];
    const int phase = phase_of(graph, member);
    if (!u->reduced) return phase == 0 && v->kind != WB_VALUE_REDUCE;
    const bool is_side_sum = wb_value_is_side_sum(graph, u, v);
    const bool is_row = wb_value_is_row(u, v) && !is_side_sum;
    if (v->kind == WB_VALUE_REDUCE && !is_side_sum && phase == 0) return false;
    return phase < u->phases + is_row;
}

/* NULL, or why the member may not read another one: a row value of phase p is ready before that
 * phase, a full one in it; a reduction gives a row value of the next phase. */
static const char *why_unreadable(const wb_graph *graph, const wb_unit *u, int32_t member,
                                  int32_t other) {
    const wb_value *v = &graph->values[member], *x = &graph->values[other];
    const bool is_side_sum = wb_value_is_side_sum(graph, u, v);
    const bool reduces = v->kind == WB_VALUE_REDUCE;
    const bool is_row = wb_value_is_row(u, v) && !reduces, from_row = wb_value_is_row(u, x);
    const int computed_in = phase_of(graph, member) - (reduces && !is_side_sum);
    if (wb_value_is_side_sum(graph, u, x)) return "is known when their program ends";
    if (is_row && !from_row) return "has too many elements for a row";
    if (reduces && from_row) return "is reduced already";
    return phase_of(graph, other) > computed_in ? "is computed in a later phase" : NULL;
}

/* ---- memory, where it is watched ---- */

/* The value whose memory v is written to: the copy that it is part of, or itself. */
static int32_t holder_of(const checker *c, int32_t v) {
    return place_at(c, v)->holder >= 0 ? place_at(c, v)->holder : v;
}

static bool overlap(const checker *c, int32_t a, int32_t b) {
    a = holder_of(c, a), b = holder_of(c, b);
    const wb_placement *x = place_at(c, a), *y = place_at(c, b);
    return x->memory == y->memory &&
           x->offset_bytes < y->offset_bytes + wb_value_bytes(value_at(c, b)) &&
           y->offset_bytes < x->offset_bytes + wb_value_bytes(value_at(c, a));
}

/* Something else has overwritten the memory of the value: it is lost, and so are the parts that it
 * consists of. */
static void lose(checker *c, int32_t owner) {
    const wb_value *v = value_at(c, owner);
    c->is_lost[owner] = true;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t part = value_at(c, wb_value_inputs(v)[i])->base;
        if (place_at(c, part)->holder == owner) c->is_lost[part] = true;
    }
}

static int64_t entries(const wb_graph *graph) {
    return graph->places.leaf_count + graph->places.output_count;
}

static bool is_in_workspace(const wb_graph *graph, int32_t v) {
    return graph->places.of[v].memory == entries(graph);
}

/* The cell that begins at the offset, which is one of the cuts. */
static int64_t cell_at(const checker *c, int64_t offset) {
    int64_t low = 0, high = c->cut_count;
    while (low + 1 < high) {
        const int64_t middle = (low + high) / 2;
        *(c->cuts[middle] <= offset ? &low : &high) = middle;
    }
    return low;
}

static void own(checker *c, int64_t place, int32_t owner) {
    if (c->owners[place] >= 0 && c->owners[place] != owner) lose(c, c->owners[place]);
    c->owners[place] = owner;
}

static void write(checker *c, int32_t v) {
    const int32_t owner = holder_of(c, v);
    const wb_placement *whole = place_at(c, owner);
    const int64_t size_bytes = wb_value_bytes(value_at(c, owner));
    if (size_bytes == 0) return;
    if (!is_in_workspace(c->graph, owner)) {
        own(c, whole->memory, owner);
        return;
    }
    const int64_t end = whole->offset_bytes + size_bytes;
    for (int64_t i = cell_at(c, whole->offset_bytes); i < c->cut_count && c->cuts[i] < end; i++)
        own(c, entries(c->graph) + i, owner);
}

/* A leaf that the program reads element by element may become its result. */
static bool takes_over(const checker *c, int32_t result, int32_t operand) {
    const wb_value *v = value_at(c, result), *x = value_at(c, operand);
    return x->kind == WB_VALUE_LEAF && wb_value_has_sizes_of(v, x) &&
           place_at(c, result)->memory == place_at(c, operand)->memory;
}

/* ---- units in order ---- */

/* The unit and the program that runs with it. */
typedef struct pair {
    const wb_unit *units[2];
    int count;
    int32_t position;
} pair;

static pair runs_together(const wb_graph *graph, int64_t position) {
    const wb_unit *u = &graph->units.at[graph->order.units[position]];
    pair p = {.units = {u}, .count = 1, .position = (int32_t)position};
    if (u->epilogue >= 0) p.units[p.count++] = &graph->units.at[u->epilogue];
    return p;
}

static bool is_in(const checker *c, const wb_unit *u, int32_t v) {
    const int32_t unit = c->graph->units.of[v].unit;
    return unit >= 0 && &c->graph->units.at[unit] == u;
}

/* The call's result is there when the program after it runs. */
static bool is_made_together(const checker *c, const pair *p, const wb_unit *reader, int32_t v) {
    return p->count == 2 && reader == p->units[1] && is_in(c, p->units[0], v);
}

/* Written by a unit that runs earlier, and not overwritten; a leaf is there from the beginning. */
static bool is_there(const checker *c, const pair *p, int32_t base) {
    const wb_units *units = &c->graph->units;
    const int32_t unit = units->of[base].unit;
    if (c->is_lost && c->is_lost[base]) return false;
    if (value_at(c, base)->kind == WB_VALUE_LEAF) return true;
    return place_at(c, base)->stored && unit >= 0 && units->at[unit].position < p->position;
}

static bool check_operand(const checker *c, const pair *p, const wb_unit *u, int32_t member,
                          int32_t operand) {
    const wb_value *v = value_at(c, member), *x = value_at(c, operand);
    if (wb_value_is_fused(v) && wb_value_is_fused(x) && is_in(c, u, operand)) {
        const bool is_map =
            !u->reduced && phase_of(c->graph, member) == 0 && phase_of(c->graph, operand) == 0;
        const char *why = is_map ? NULL : why_unreadable(c->graph, u, member, operand);
        return !why || fault_in(c, operand, why, member);
    }
    const wb_value *base = value_at(c, x->base);
    if (wb_value_is_inline(base) && !place_at(c, x->base)->stored) return true;
    if (is_there(c, p, x->base) || is_made_together(c, p, u, x->base)) return true;
    return fault_in(c, operand, "is not in memory", member);
}

static bool check_member(const checker *c, const pair *p, const wb_unit *u, int32_t member) {
    const wb_value *v = value_at(c, member);
    if (!is_in(c, u, member)) return fault(c, member, "is listed by another unit");
    if (wb_value_is_fused(v) && !has_phase(c->graph, u, member))
        return fault(c, member, "has a phase that its program lacks");
    for (int i = 0; i < v->ninputs; i++)
        if (!check_operand(c, p, u, member, wb_value_inputs(v)[i])) return false;
    return true;
}

/* A unit may write over what it reads only element by element, in a program. */
static bool check_written(const checker *c, const pair *p, int32_t result) {
    for (int k = 0; k < p->count; k++)
        for (int64_t m = 0; m < p->units[k]->member_count; m++) {
            const int32_t member = p->units[k]->members[m];
            for (int i = 0; i < value_at(c, member)->ninputs; i++) {
                const int32_t operand = wb_value_inputs(value_at(c, member))[i];
                const int32_t base = value_at(c, operand)->base;
                if (!is_there(c, p, base) || !overlap(c, base, result)) continue;
                if (holder_of(c, base) == holder_of(c, result)) continue; /* parts of one copy */
                if (p->units[k]->kind == WB_UNIT_PROGRAM && takes_over(c, result, operand))
                    continue;
                return fault_in(c, operand, "is overwritten by the unit", member);
            }
        }
    return true;
}

/* What the unit writes. */
static bool watch(checker *c, const pair *p) {
    for (int k = 0; k < p->count; k++)
        for (int32_t v = c->written[p->units[k] - c->graph->units.at]; v >= 0; v = c->sibling[v])
            if (!check_written(c, p, v)) return false;
    for (int k = 0; k < p->count; k++)
        for (int32_t v = c->written[p->units[k] - c->graph->units.at]; v >= 0; v = c->sibling[v])
            write(c, v);
    return true;
}

static bool check_position(checker *c, int64_t position) {
    const pair p = runs_together(c->graph, position);
    for (int k = 0; k < p.count; k++)
        for (int64_t m = 0; m < p.units[k]->member_count; m++)
            if (!check_member(c, &p, p.units[k], p.units[k]->members[m])) return false;
    return !c->is_lost || watch(c, &p);
}

/* ---- the whole plan ---- */

/* In debug builds, in those with tests, and with WEBER_DEBUG=check. */
static bool watches_memory(void) {
#if defined(NDEBUG) && !defined(WB_WATCHES_PLANS)
    static wb_switch check = {.variable = "WEBER_DEBUG", .word = "check"};
    return wb_is_on(&check);
#else
    return true;
#endif
}

static int by_offset(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Cuts the workspace where values begin and end. */
static void cut(checker *c) {
    const wb_graph *graph = c->graph;
    int64_t kept = 0;
    for (int32_t v = 0; v < graph->count; v++) {
        const wb_placement *place = place_at(c, v);
        if (!is_in_workspace(graph, v) || place->holder >= 0) continue;
        c->cuts[c->cut_count++] = place->offset_bytes;
        c->cuts[c->cut_count++] = place->offset_bytes + wb_value_bytes(value_at(c, v));
    }
    qsort(c->cuts, (size_t)c->cut_count, sizeof *c->cuts, by_offset);
    for (int64_t i = 0; i < c->cut_count; i++)
        if (kept == 0 || c->cuts[kept - 1] != c->cuts[i]) c->cuts[kept++] = c->cuts[i];
    c->cut_count = kept;
}

static void list_written(checker *c) {
    const wb_graph *graph = c->graph;
    for (int32_t v = 0; v < graph->count; v++) {
        const wb_value *value = value_at(c, v);
        const int32_t unit = graph->units.of[v].unit;
        if (value->kind == WB_VALUE_LEAF)
            write(c, v);
        else if (value->base == v && place_at(c, v)->stored && unit >= 0) {
            c->sibling[v] = c->written[unit];
            c->written[unit] = v;
        }
    }
}

/* All -1. NULL when out of memory. */
static int32_t *list_of_none(int64_t count) {
    int32_t *list = wb_alloc(sizeof *list * (size_t)(count + 1));
    if (list) memset(list, 0xff, sizeof *list * (size_t)(count + 1));
    return list;
}

static bool begin_to_watch(checker *c) {
    const wb_graph *graph = c->graph;
    c->is_lost = wb_alloc((size_t)graph->count + 1);
    c->cuts = wb_alloc(sizeof *c->cuts * 2 * (size_t)(graph->count + 1));
    c->sibling = list_of_none(graph->count);
    c->written = list_of_none(graph->units.count);
    c->owners = list_of_none(entries(graph) + 2 * graph->count);
    if (!c->is_lost || !c->cuts || !c->sibling || !c->written || !c->owners) return false;
    cut(c);
    list_written(c);
    return true;
}

static void end(checker *c) {
    wb_release(c->is_lost);
    wb_release(c->written);
    wb_release(c->sibling);
    wb_release(c->owners);
    wb_release(c->cuts);
}

/* The results of the plan are in memory when it has run. */
static bool check_outputs(const checker *c) {
    const pair all = {.position = (int32_t)c->graph->order.count};
    for (int32_t o = 0; o < c->graph->places.output_count; o++) {
        const int32_t v = c->graph->places.outputs[o];
        if (!is_there(c, &all, v)) return fault(c, v, "leaves the plan, but is not in memory");
    }
    return true;
}

bool wb_graph_check(const wb_graph *graph) {
    checker c = {.graph = graph};
    bool is_right = !watches_memory() || begin_to_watch(&c);
    for (int64_t i = 0; is_right && i < graph->order.count; i++) is_right = check_position(&c, i);
    is_right = is_right && check_outputs(&c);
    end(&c);
    return is_right;
}
