/* The graph of units: what each needs, and an order in which every unit comes after what it needs.
 *
 * The order is a list with labels (Dietz and Sleator 1987, in its simplest form): comparing two
 * labels tells which of two units comes first. To find whether some units can run before a unit U,
 * the search goes from them to the units that they need, but not to units before U; all that it
 * finds must be moved before U (Pearce and Kelly 2006 do the same for a new edge). So only the part
 * of the list in between is searched, and at most WB_MOST_LOOKS units; if the search is given up,
 * the answer is no, which is always safe. What only one other unit needs can run as late as that
 * one, and nothing is searched: labels are prepared before a long model, and used by its loss.
 *
 * A question changes nothing. Its answer is valid until a unit is moved, and lists the units to
 * move; an answer need not be used.
 *
 * Reads values, to see what a unit needs. Writes the units' needs and order. */
#include <stdlib.h>

#include "base/memory.h"
#include "evaluate/graph.h"

static const int64_t GAP = (int64_t)1 << 32, LAST_LABEL = (int64_t)1 << 62;

static wb_unit *unit_at(const wb_units *units, int32_t u) { return &units->at[u]; }

int32_t wb_unit_find(const wb_units *units, int32_t u) {
    while (unit_at(units, u)->merged_into >= 0) {
        wb_unit *unit = unit_at(units, u);
        const int32_t next = unit_at(units, unit->merged_into)->merged_into;
        if (next >= 0) unit->merged_into = next; /* shorter ways for the next ones */
        u = unit->merged_into;
    }
    return u;
}

int32_t wb_unit_runs_with(const wb_units *units, int32_t u) {
    const int32_t call = unit_at(units, u)->fused_into;
    return call >= 0 ? call : u;
}

/* ---- what a unit needs ---- */

int32_t wb_unit_needed(const wb_units *units, const wb_unit *unit, int64_t i) {
    return wb_unit_runs_with(units, wb_unit_find(units, unit->needs[i] >> 1));
}

bool wb_unit_need(wb_units *units, int32_t unit, int32_t needed, bool by_view) {
    enum { LOOK_BACK = 4 };
    wb_unit *u = unit_at(units, unit);
    const int32_t need = needed << 1 | by_view;
    for (int64_t i = u->need_count; i > 0 && i > u->need_count - LOOK_BACK; i--)
        if (u->needs[i - 1] == need) return true;
    if (!WB_GROW(u->needs, u->need_count, u->need_capacity)) return false;
    u->needs[u->need_count++] = need;
    unit_at(units, wb_unit_runs_with(units, wb_unit_find(units, needed)))->user_count++;
    return true;
}

bool wb_unit_need_inputs(wb_graph *graph, int32_t unit, int32_t member) {
    const wb_value *v = &graph->values[member];
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = wb_value_inputs(v)[i], needed = wb_value_unit(graph, input);
        const bool by_view = graph->values[input].kind == WB_VALUE_VIEW;
        if (needed < 0 || needed == unit) continue;
        if (!wb_unit_need(&graph->units, unit, needed, by_view)) return false;
    }
    return true;
}

bool wb_unit_reads_view(const wb_units *units, int32_t unit, int32_t of) {
    const wb_unit *u = unit_at(units, unit);
    for (int64_t i = 0; i < u->need_count; i++)
        if ((u->needs[i] & 1) && wb_unit_find(units, u->needs[i] >> 1) == of) return true;
    return false;
}

void wb_unit_remove(wb_units *units, int32_t member) {
    wb_unit *u = unit_at(units, units->of[member].unit);
    int64_t kept = 0;
    for (int64_t m = 0; m < u->member_count; m++)
        if (u->members[m] != member) u->members[kept++] = u->members[m];
    u->member_count = kept;
    if (kept > 0) u->last = u->members[kept - 1];
    units->of[member].unit = WB_NO_UNIT;
}

bool wb_units_list_needs(wb_graph *graph) {
    const wb_units *units = &graph->units;
    for (int64_t i = 0; i < units->count; i++)
        units->at[i].need_count = units->at[i].user_count = 0;
    for (int64_t i = 0; i < units->count; i++)
        for (int64_t m = 0; m < units->at[i].member_count; m++)
            if (!wb_unit_need_inputs(graph, (int32_t)i, units->at[i].members[m])) return false;
    return true;
}

/* ---- the order ---- */

static void link_after(wb_units *units, int32_t unit, int32_t before) {
    wb_unit *u = unit_at(units, unit);
    const int32_t after = before >= 0 ? unit_at(units, before)->after : units->first;
    u->before = before, u->after = after;
    *(before >= 0 ? &unit_at(units, before)->after : &units->first) = unit;
    *(after >= 0 ? &unit_at(units, after)->before : &units->last) = unit;
}

static void unlink_unit(wb_units *units, int32_t unit) {
    const wb_unit *u = unit_at(units, unit);
    *(u->before >= 0 ? &unit_at(units, u->before)->after : &units->first) = u->after;
    *(u->after >= 0 ? &unit_at(units, u->after)->before : &units->last) = u->before;
}

static int64_t label_of(const wb_units *units, int32_t unit) { return unit_at(units, unit)->label; }

void wb_unit_put_first(wb_units *units, int32_t unit) {
    link_after(units, unit, -1);
    const int32_t after = unit_at(units, unit)->after;
    unit_at(units, unit)->label = (after >= 0 ? label_of(units, after) : 0) - GAP;
}

void wb_unit_put_last(wb_units *units, int32_t unit) {
    link_after(units, unit, units->last);
    const int32_t before = unit_at(units, unit)->before;
    unit_at(units, unit)->label = (before >= 0 ? label_of(units, before) : 0) + GAP;
}

/* Spreads the labels around a unit whose next label is taken: those of the smallest aligned range
 * that is sparse enough, so that n insertions relabel O(n log n) units (Bender and others 2002). */
static void make_room(wb_units *units, int32_t unit) {
    const int64_t label = label_of(units, unit);
    int32_t first = unit, last = unit;
    int64_t count = 1, base = label;
    double most = 1;
    for (int64_t size = 2; size <= LAST_LABEL; size *= 2) {
        base = label & ~(size - 1), most *= 4.0 / 3;
        for (int32_t u = unit_at(units, first)->before; u >= 0 && label_of(units, u) >= base;
             u = unit_at(units, u)->before)
            first = u, count++;
        for (int32_t u = unit_at(units, last)->after; u >= 0 && label_of(units, u) - base < size;
             u = unit_at(units, u)->after)
            last = u, count++;
        if ((double)count > most) continue;
        const int64_t step = size / count;
        for (int32_t u = first;; u = unit_at(units, u)->after, base += step) {
            unit_at(units, u)->label = base;
            if (u == last) return;
        }
    }
}

static void insert_before(wb_units *units, int32_t unit, int32_t first) {
    const int32_t before = unit_at(units, first)->before;
    if (before < 0) {
        wb_unit_put_first(units, unit);
        return;
    }
    const int64_t least = label_of(units, before), gap = label_of(units, first) - least;
    link_after(units, unit, before);
    unit_at(units, unit)->label = least + gap / 2;
    if (gap < 2) make_room(units, unit); /* until then it shares one with its neighbour */
}

/* ---- questions ---- */

void wb_ask_before(wb_units *units, int32_t unit, wb_question *q) {
    q->units = units, q->first = wb_unit_runs_with(units, unit);
    q->mark = ++units->search_mark;
    q->count = q->looks = 0;
    q->goes_later = false;
}

/* Notes a unit that comes after the first one. False: it is that one, or the search is given up. */
static bool look(wb_question *q, int32_t unit) {
    wb_unit *u = unit_at(q->units, unit);
    if (unit == q->first || ++q->looks > WB_MOST_LOOKS) return false;
    if (u->label < label_of(q->units, q->first) || u->mark == q->mark) return true;
    u->mark = q->mark;
    q->found[q->count++] = unit;
    return true;
}

bool wb_may_come(wb_question *q, int32_t unit) {
    int32_t done = q->count;
    if (!look(q, wb_unit_runs_with(q->units, unit))) return false;
    for (; done < q->count; done++) {
        const wb_unit *u = unit_at(q->units, q->found[done]);
        for (int64_t i = 0; i < u->need_count; i++)
            if (!look(q, wb_unit_needed(q->units, u, i))) return false;
    }
    return true;
}

/* True if only the later one needs the earlier one, which then can run as late as that one,
 * whatever is between them. */
static bool is_only_user(const wb_units *units, int32_t later, int32_t earlier) {
    const wb_unit *u = unit_at(units, later);
    int64_t entries = 0;
    for (int64_t i = 0; i < u->need_count; i++) entries += wb_unit_needed(units, u, i) == earlier;
    return entries > 0 && entries == unit_at(units, earlier)->user_count;
}

bool wb_may_unite(wb_units *units, int32_t a, int32_t b, wb_question *q) {
    a = wb_unit_runs_with(units, a), b = wb_unit_runs_with(units, b);
    const bool in_order = label_of(units, a) < label_of(units, b);
    const int32_t later = in_order ? b : a;
    const wb_unit *u = unit_at(units, later);
    wb_ask_before(units, in_order ? a : b, q);
    for (int64_t i = 0; i < u->need_count; i++) {
        const int32_t needed = wb_unit_needed(units, u, i);
        if (needed == q->first || needed == later || wb_may_come(q, needed)) continue;
        q->count = 0;
        return q->goes_later = is_only_user(units, later, q->first);
    }
    return true;
}

static _Thread_local const wb_units *sorted_units;

static int by_label(const void *a, const void *b) {
    const int64_t x = label_of(sorted_units, *(const int32_t *)a),
                  y = label_of(sorted_units, *(const int32_t *)b);
    return (x > y) - (x < y);
}

void wb_move_before(wb_question *q) {
    if (q->count == 0) return;
    sorted_units = q->units;
    qsort(q->found, (size_t)q->count, sizeof *q->found, by_label);
    for (int32_t i = 0; i < q->count; i++) unlink_unit(q->units, q->found[i]);
    for (int32_t i = 0; i < q->count; i++) insert_before(q->units, q->found[i], q->first);
}

/* `into` takes over what `from` needs, and stands where one of the two stood. */
bool wb_unite(wb_question *q, int32_t into, int32_t from) {
    wb_units *units = q->units;
    const wb_unit *u = unit_at(units, from);
    for (int64_t i = 0; i < u->need_count; i++)
        if (!wb_unit_need(units, into, u->needs[i] >> 1, u->needs[i] & 1)) return false;
    wb_move_before(q);
    unit_at(units, into)->user_count += u->user_count;
    if ((label_of(units, from) < label_of(units, into)) != q->goes_later) {
        unlink_unit(units, into);
        link_after(units, into, from);
        unit_at(units, into)->label = label_of(units, from);
    }
    unlink_unit(units, from);
    return true;
}
