/* Units, what each needs, and an order in which every unit comes behind what it needs.
 *
 * The order is a list with labels (Dietz and Sleator 1987, in its simplest form): to ask which of
 * two units comes first is to compare two numbers. Two units may become one unless a third lies on
 * a way between them. That is found by walking from the later one to what it needs, no further back
 * than the earlier one, and by moving what was found before the earlier one. So only the stretch
 * between the two is looked at (Pearce and Kelly 2006 do the same for a new edge), and of that no
 * more than MOST_LOOKS: where the walk is given up the two stay apart, which is never wrong. */
#include <stdlib.h>

#include "base/memory.h"
#include "evaluate/plan.h"

enum { MOST_LOOKS = 128 };

static const int64_t GAP = (int64_t)1 << 32, LAST_LABEL = (int64_t)1 << 62;

static wb_unit *unit_at(const wb_graph *graph, int32_t u) { return &graph->units[u]; }

int32_t wb_unit_find(const wb_graph *graph, int32_t u) {
    while (u >= 0 && unit_at(graph, u)->merged_into >= 0) {
        wb_unit *unit = unit_at(graph, u);
        const int32_t next = unit_at(graph, unit->merged_into)->merged_into;
        if (next >= 0) unit->merged_into = next; /* shorter ways for the next ones */
        u = unit->merged_into;
    }
    return u;
}

int32_t wb_unit_runs_with(const wb_graph *graph, int32_t u) {
    u = wb_unit_find(graph, u);
    return u >= 0 && unit_at(graph, u)->fused_into >= 0 ? unit_at(graph, u)->fused_into : u;
}

int32_t wb_value_unit(const wb_graph *graph, int32_t v) {
    return wb_unit_find(graph, graph->values[wb_value_base(graph, v)].unit);
}

/* ---- what a unit needs ---- */

bool wb_unit_need(wb_graph *graph, int32_t unit, int32_t needed, bool by_view) {
    enum { LOOK_BACK = 4 };
    wb_unit *u = unit_at(graph, unit);
    const int32_t need = needed << 1 | by_view;
    for (int64_t i = u->need_count; i > 0 && i > u->need_count - LOOK_BACK; i--)
        if (u->needs[i - 1] == need) return true;
    if (!WB_GROW(u->needs, u->need_count, u->need_capacity)) return false;
    u->needs[u->need_count++] = need;
    return true;
}

bool wb_unit_need_inputs(wb_graph *graph, int32_t unit, int32_t member) {
    const wb_value *v = &graph->values[member];
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = wb_value_inputs(v)[i], needed = wb_value_unit(graph, input);
        const bool by_view = graph->values[input].kind == WB_VALUE_VIEW;
        if (needed < 0 || needed == unit) continue;
        if (!wb_unit_need(graph, unit, needed, by_view)) return false;
    }
    return true;
}

bool wb_unit_reads_view(const wb_graph *graph, int32_t unit, int32_t of) {
    const wb_unit *u = unit_at(graph, unit);
    for (int64_t i = 0; i < u->need_count; i++)
        if ((u->needs[i] & 1) && wb_unit_find(graph, u->needs[i] >> 1) == of) return true;
    return false;
}

static bool take_needs(wb_graph *graph, int32_t into, int32_t from) {
    const wb_unit *u = unit_at(graph, from);
    for (int64_t i = 0; i < u->need_count; i++)
        if (!wb_unit_need(graph, into, u->needs[i] >> 1, u->needs[i] & 1)) return false;
    return true;
}

/* ---- the order ---- */

static void link_behind(wb_graph *graph, int32_t unit, int32_t before) {
    wb_unit *u = unit_at(graph, unit);
    const int32_t behind = before >= 0 ? unit_at(graph, before)->behind : graph->first_unit;
    u->before = before, u->behind = behind;
    *(before >= 0 ? &unit_at(graph, before)->behind : &graph->first_unit) = unit;
    *(behind >= 0 ? &unit_at(graph, behind)->before : &graph->last_unit) = unit;
}

static void unlink_unit(wb_graph *graph, int32_t unit) {
    const wb_unit *u = unit_at(graph, unit);
    *(u->before >= 0 ? &unit_at(graph, u->before)->behind : &graph->first_unit) = u->behind;
    *(u->behind >= 0 ? &unit_at(graph, u->behind)->before : &graph->last_unit) = u->before;
}

static int64_t label_of(const wb_graph *graph, int32_t unit) { return unit_at(graph, unit)->label; }

void wb_unit_put_first(wb_graph *graph, int32_t unit) {
    link_behind(graph, unit, -1);
    const int32_t behind = unit_at(graph, unit)->behind;
    unit_at(graph, unit)->label = (behind >= 0 ? label_of(graph, behind) : 0) - GAP;
}

void wb_unit_put_last(wb_graph *graph, int32_t unit) {
    link_behind(graph, unit, graph->last_unit);
    const int32_t before = unit_at(graph, unit)->before;
    unit_at(graph, unit)->label = (before >= 0 ? label_of(graph, before) : 0) + GAP;
}

/* Spreads the labels around a unit whose next label is taken: those of the smallest aligned range
 * that is sparse enough, so that n insertions relabel O(n log n) units (Bender and others 2002). */
static void make_room(wb_graph *graph, int32_t unit) {
    const int64_t label = label_of(graph, unit);
    int32_t first = unit, last = unit;
    int64_t count = 1, base = label;
    double most = 1;
    for (int64_t size = 2; size <= LAST_LABEL; size *= 2) {
        base = label & ~(size - 1), most *= 4.0 / 3;
        for (int32_t u = unit_at(graph, first)->before; u >= 0 && label_of(graph, u) >= base;
             u = unit_at(graph, u)->before)
            first = u, count++;
        for (int32_t u = unit_at(graph, last)->behind; u >= 0 && label_of(graph, u) - base < size;
             u = unit_at(graph, u)->behind)
            last = u, count++;
        if ((double)count > most) continue;
        const int64_t step = size / count;
        for (int32_t u = first;; u = unit_at(graph, u)->behind, base += step) {
            unit_at(graph, u)->label = base;
            if (u == last) return;
        }
    }
}

static void insert_before(wb_graph *graph, int32_t unit, int32_t first) {
    const int32_t before = unit_at(graph, first)->before;
    if (before < 0) {
        wb_unit_put_first(graph, unit);
        return;
    }
    const int64_t least = label_of(graph, before), gap = label_of(graph, first) - least;
    link_behind(graph, unit, before);
    unit_at(graph, unit)->label = least + gap / 2;
    if (gap < 2) make_room(graph, unit); /* until then it shares one with its neighbour */
}

/* ---- the walk ---- */

typedef struct search {
    wb_graph *graph;
    int32_t *found; /* units to be moved */
    int64_t count, looks, from;
    int32_t first;
    bool is_refused;
} search;

static void look(search *s, int32_t unit) {
    unit = wb_unit_runs_with(s->graph, unit);
    if (unit < 0 || s->is_refused) return;
    wb_unit *u = unit_at(s->graph, unit);
    s->is_refused = unit == s->first || ++s->looks > MOST_LOOKS;
    if (s->is_refused || u->label < s->from || u->mark == s->graph->search_mark) return;
    u->mark = s->graph->search_mark;
    s->found[s->count++] = unit;
}

static _Thread_local const wb_graph *sorted_graph;

static int by_label(const void *a, const void *b) {
    const int64_t x = unit_at(sorted_graph, *(const int32_t *)a)->label,
                  y = unit_at(sorted_graph, *(const int32_t *)b)->label;
    return (x > y) - (x < y);
}

/* Moves what was found before the first one; false where the walk was refused. */
static bool walk(search *s) {
    wb_graph *graph = s->graph;
    for (int64_t done = 0; done < s->count && !s->is_refused; done++) {
        const wb_unit *u = unit_at(graph, s->found[done]);
        for (int64_t i = 0; i < u->need_count && !s->is_refused; i++) look(s, u->needs[i] >> 1);
    }
    if (s->is_refused || s->count == 0) return !s->is_refused;
    sorted_graph = graph;
    qsort(s->found, (size_t)s->count, sizeof *s->found, by_label);
    for (int64_t i = 0; i < s->count; i++) unlink_unit(graph, s->found[i]);
    for (int64_t i = 0; i < s->count; i++) insert_before(graph, s->found[i], s->first);
    return true;
}

static search start(wb_graph *graph, int32_t first, int32_t *found) {
    graph->search_mark++;
    return (search){
        .graph = graph, .found = found, .first = first, .from = unit_at(graph, first)->label};
}

bool wb_unit_comes_before(wb_graph *graph, int32_t unit, int32_t first) {
    int32_t found[MOST_LOOKS];
    first = wb_unit_runs_with(graph, first);
    unit = wb_unit_runs_with(graph, unit);
    if (unit_at(graph, unit)->label < unit_at(graph, first)->label) return true;
    search s = start(graph, first, found);
    look(&s, unit);
    return walk(&s);
}

bool wb_units_may_unite(wb_graph *graph, int32_t a, int32_t b) {
    int32_t found[MOST_LOOKS];
    a = wb_unit_runs_with(graph, a), b = wb_unit_runs_with(graph, b);
    const bool in_order = unit_at(graph, a)->label < unit_at(graph, b)->label;
    const int32_t first = in_order ? a : b;
    const wb_unit *later = unit_at(graph, in_order ? b : a);
    search s = start(graph, first, found);
    for (int64_t i = 0; i < later->need_count; i++) {
        const int32_t needed = wb_unit_runs_with(graph, later->needs[i] >> 1);
        if (needed != first && needed != (in_order ? b : a)) look(&s, needed);
    }
    return walk(&s);
}

bool wb_unit_absorb(wb_graph *graph, int32_t into, int32_t from) {
    if (!take_needs(graph, into, from)) return false;
    if (unit_at(graph, from)->label < unit_at(graph, into)->label) {
        unlink_unit(graph, into);
        link_behind(graph, into, from);
        unit_at(graph, into)->label = unit_at(graph, from)->label;
    }
    unlink_unit(graph, from);
    return true;
}

bool wb_units_list_needs(wb_graph *graph) {
    for (int64_t i = 0; i < graph->unit_count; i++) graph->units[i].need_count = 0;
    for (int64_t i = 0; i < graph->unit_count; i++)
        for (int64_t m = 0; m < graph->units[i].member_count; m++)
            if (!wb_unit_need_inputs(graph, (int32_t)i, graph->units[i].members[m])) return false;
    return true;
}
