/* Values into units. A unit is a program (elementwise values and reductions over one domain), a
 * library call, or copies.
 *
 * A program has a domain, some of whose dimensions are reduced, and up to four phases, each ending
 * in reductions or stores. So softmax, log-sum-exp, variance and the norms need no kernels of their
 * own: their expansions fuse into one program of two or three phases. An elementwise value joins
 * the latest program among those of its operands if the domain fits and no cycle arises; a
 * reduction joins the program of its operand; a row value (one per row) is computed between phases.
 * Two programs that a value brings together become one, maps, or programs with the same rows if
 * their phases suffice: a crossentropy over labels and its gradient read the logits and write
 * theirs, and store nothing between. A reduction of more than 65,536 elements with fewer than eight
 * rows is not followed by another phase in its program: the threads divide the rows among them.
 *
 * Where the device takes it (side_sum_row, so far the CPU), a program of rows also computes side
 * sums: the loss after a softmax, the gradients of a layer norm's gain and bias. They are known
 * when the program ends, so that nothing in it reads them.
 *
 * Before a value joins, or two programs become one, this file checks shapes and phases without
 * changing any value, and asks the graph of units whether another unit is between them. Only if all
 * answers are yes is the graph changed.
 *
 * Reads the tape's device and values. Writes units, and the membership of each value. */
#include <string.h>

#include "base/memory.h"
#include "evaluate/graph.h"

enum {
    /* a reduction over more elements than this, with fewer rows than that, is not followed by
     * another phase in its own program: rows are what threads share out */
    LONG_ROW = 1 << 16,
    FEW_ROWS = 8,
};

static int64_t size_at(const wb_value *v, int d) { return d < v->ndim ? v->sizes[d] : 1; }
static int64_t domain_at(const wb_unit *u, int d) { return d < u->ndim ? u->sizes[d] : 1; }

static wb_unit *unit_at(const wb_graph *graph, int32_t u) { return &graph->units.at[u]; }
static wb_membership *membership(const wb_graph *graph, int32_t v) { return &graph->units.of[v]; }

bool wb_value_is_full(const wb_unit *u, const wb_value *v) {
    const int ndim = u->ndim > v->ndim ? u->ndim : v->ndim;
    for (int d = 0; d < ndim; d++)
        if (size_at(v, d) != domain_at(u, d)) return false;
    return true;
}

static bool matches_row(const wb_unit *u, const wb_value *v) {
    const int ndim = u->ndim > v->ndim ? u->ndim : v->ndim;
    for (int d = 0; d < ndim; d++)
        if (size_at(v, d) != (u->reduced >> d & 1 ? 1 : domain_at(u, d))) return false;
    return u->reduced != 0;
}

bool wb_value_is_row(const wb_unit *unit, const wb_value *v) {
    return v->kind == WB_VALUE_REDUCE || !wb_value_is_full(unit, v);
}

/* ---- units ---- */

static int32_t new_unit(wb_graph *graph, wb_unit_kind kind, int32_t member) {
    wb_units *units = &graph->units;
    if (!WB_GROW(units->at, units->count, units->capacity)) return -1;
    const int32_t number = (int32_t)units->count++;
    wb_unit *u = unit_at(graph, number);
    *u = (wb_unit){
        .kind = kind, .last = member, .epilogue = -1, .fused_into = -1, .merged_into = -1};
    if (wb_value_is_inline(&graph->values[member]))
        wb_unit_put_first(units, number); /* other values of the program read it already */
    else
        wb_unit_put_last(units, number);
    if (!WB_GROW(u->members, u->member_count, u->member_capacity)) return -1;
    u->members[u->member_count++] = member;
    units->of[member].unit = number;
    return wb_unit_need_inputs(graph, number, member) ? number : -1;
}

/* Reduced dimensions of size 1 change nothing: they are left out, so that more reductions agree. */
static uint32_t mask_of(const wb_graph *graph, const wb_value *v) {
    const wb_value *x = &graph->values[v->small_inputs[0]];
    uint32_t mask = 0;
    for (int d = 0; d < x->ndim; d++)
        if ((v->attributes.reduce.dims >> d & 1) && x->sizes[d] != 1) mask |= 1u << d;
    return mask;
}

bool wb_value_is_side_sum(const wb_graph *graph, const wb_unit *unit, const wb_value *v) {
    return v->kind == WB_VALUE_REDUCE && unit->reduced && unit->reduced != mask_of(graph, v);
}

/* A sum of all elements, or of all rows: plugin.h says which ones the device takes. */
static bool may_be_side_sum(const wb_graph *graph, const wb_unit *u, const wb_value *v) {
    const uint32_t mask = mask_of(graph, v);
    const int64_t longest = graph->tape->device->info.side_sum_row;
    uint32_t all = 0;
    for (int d = 0; d < u->ndim; d++)
        if (u->sizes[d] != 1) all |= 1u << d;
    if (v->op != WB_OP_sum || longest == 0 || mask == 0) return false;
    return mask == all || (u->reduced == 1 && mask == (all & ~1u) && u->sizes[0] <= longest);
}

static void note_reader(wb_graph *graph, int32_t unit, const wb_value *v) {
    for (int i = 0; i < v->ninputs; i++) graph->units.of[v->small_inputs[i]].reader = unit + 1;
}

int32_t wb_unit_new_program(wb_graph *graph, int32_t member) {
    const int32_t number = new_unit(graph, WB_UNIT_PROGRAM, member);
    if (number < 0) return -1;
    wb_unit *u = unit_at(graph, number);
    const wb_value *v = &graph->values[member];
    const bool reduces = v->kind == WB_VALUE_REDUCE;
    const wb_value *domain = reduces ? &graph->values[v->small_inputs[0]] : v;
    u->ndim = domain->ndim;
    memcpy(u->sizes, domain->sizes, sizeof u->sizes);
    if (reduces) u->reduced = mask_of(graph, v);
    u->phases = 1;
    membership(graph, member)->phase = reduces;
    note_reader(graph, number, v);
    return number;
}

/* ---- a program in the making ---- */

/* A unit, and what would be a part of it: a value that no member reads, or all of another unit. */
typedef struct trial {
    const wb_graph *graph;
    const wb_unit *unit; /* whose domain and reduced dimensions it has */
    int32_t a, b;        /* the units whose members it has */
    uint8_t *phases;     /* of values, where the two units' members have others; NULL: theirs */
} trial;

static trial trial_of(const wb_graph *graph, int32_t unit) {
    return (trial){.graph = graph, .unit = unit_at(graph, unit), .a = unit, .b = unit};
}

static bool is_inside(const trial *t, int32_t v) {
    const int32_t unit = membership(t->graph, v)->unit;
    return wb_value_is_fused(&t->graph->values[v]) && (unit == t->a || unit == t->b);
}

static int phase_in(const trial *t, const wb_value *v) {
    int phase = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = wb_value_inputs(v)[i];
        const int of_input = t->phases ? t->phases[input] : membership(t->graph, input)->phase;
        if (of_input > phase && is_inside(t, input)) phase = of_input;
    }
    const bool is_side_sum = wb_value_is_side_sum(t->graph, t->unit, v);
    return v->kind == WB_VALUE_REDUCE && !is_side_sum ? phase + 1 : phase;
}

int wb_phase_in(const wb_graph *graph, int32_t unit, const wb_value *v) {
    const trial t = trial_of(graph, unit);
    return phase_in(&t, v);
}

/* How many phases end before v is computed. */
static int phases_of(const wb_graph *graph, const wb_unit *u, const wb_value *v, int phase) {
    return wb_value_is_row(u, v) && !wb_value_is_side_sum(graph, u, v) ? phase : phase + 1;
}

int wb_phases_with(const wb_graph *graph, const wb_unit *u, const wb_value *v, int phase) {
    const int needed = phases_of(graph, u, v, phase);
    return needed > u->phases ? needed : u->phases;
}

/* Whether v may read x, which is computed in the same program. NULL, or why not. */
static const char *input_misfit(const trial *t, const wb_value *v, const wb_value *x, bool as_row) {
    const wb_unit *u = t->unit;
    if (wb_value_is_side_sum(t->graph, u, x))
        return "it needs a side sum, which is known only at the end";
    if (as_row && !wb_value_is_row(u, x))
        return "one number for each row needs all of the row's elements";
    if (v->kind == WB_VALUE_REDUCE && wb_value_is_row(u, x))
        return "it reduces numbers that belong to rows already";
    /* a row value is spread along the reduced dimensions, and along no others */
    if (!as_row && wb_value_is_row(u, x) && !matches_row(u, x))
        return "its rows lie along other dimensions";
    return NULL;
}

static const char *inputs_misfit(const trial *t, const wb_value *v, bool as_row) {
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = wb_value_inputs(v)[i];
        const wb_value *x = &t->graph->values[input];
        const int32_t unit = wb_value_unit(t->graph, input);
        if (unit < 0 || (unit != t->a && unit != t->b)) continue;
        if (!wb_value_is_fused(x)) return "a view needs all of an operand";
        const char *misfit = input_misfit(t, v, x, as_row);
        if (misfit) return misfit;
    }
    return NULL;
}

static int64_t row_length(const wb_unit *u, uint32_t reduced, int64_t *rows) {
    int64_t length = 1;
    *rows = 1;
    for (int d = 0; d < u->ndim; d++) {
        if (reduced >> d & 1)
            length *= u->sizes[d];
        else
            *rows *= u->sizes[d];
    }
    return length;
}

static bool phases_fit(const wb_unit *u, uint32_t reduced, int phases) {
    int64_t rows;
    if (phases <= 1) return true;
    const int64_t length = row_length(u, reduced, &rows);
    return phases <= WB_MOST_PHASES && !(length > LONG_ROW && rows < FEW_ROWS);
}

/* ---- joining ---- */

/* The dimensions that the unit reduces once v is in it; NULL, or why v does not fit. */
static const char *domain_misfit(const wb_graph *graph, const wb_unit *u, const wb_value *v,
                                 uint32_t *reduced) {
    *reduced = u->reduced;
    if (v->kind != WB_VALUE_REDUCE)
        return wb_value_is_full(u, v) || matches_row(u, v) ? NULL : "it has other sizes";
    const uint32_t mask = mask_of(graph, v);
    if (!wb_value_is_full(u, &graph->values[v->small_inputs[0]])) return "it has other sizes";
    if (u->reduced != mask && (u->reduced != 0 || mask == 0) && !may_be_side_sum(graph, u, v))
        return "it reduces other dimensions";
    if (!u->reduced) *reduced = mask;
    return NULL;
}

/* Every input of v that other units compute can come before the unit. */
static bool inputs_may_come(wb_graph *graph, int32_t number, const wb_value *v, wb_question *q) {
    wb_ask_before(&graph->units, number, q);
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t unit = wb_value_unit(graph, wb_value_inputs(v)[i]);
        if (unit >= 0 && unit != number && !wb_may_come(q, unit)) return false;
    }
    return true;
}

/* NULL if v may join the unit; then the question lists what must be moved for it. Else the reason,
 * for WEBER_DEBUG=plan. */
static const char *why_apart(wb_graph *graph, int32_t number, const wb_value *v, wb_question *q) {
    const wb_unit *u = unit_at(graph, number);
    const trial t = trial_of(graph, number);
    uint32_t reduced;
    if (u->kind != WB_UNIT_PROGRAM) return "a call or copy comes between";
    if (u->member_count >= WB_MOST_MEMBERS) return "the program has its most instructions";
    const char *misfit = domain_misfit(graph, u, v, &reduced);
    const bool as_row = v->kind != WB_VALUE_REDUCE && !wb_value_is_full(u, v);
    if (!misfit) misfit = inputs_misfit(&t, v, as_row);
    if (misfit) return misfit;
    if (!phases_fit(u, reduced, wb_phases_with(graph, u, v, phase_in(&t, v))))
        return "too many phases, or too few and too long rows for another phase";
    return inputs_may_come(graph, number, v, q) ? NULL : "an operand is computed only after it";
}

/* After why_apart said NULL. False when out of memory. */
static bool join(wb_graph *graph, int32_t number, int32_t member, wb_question *q) {
    wb_unit *u = unit_at(graph, number);
    const wb_value *v = &graph->values[member];
    if (!WB_GROW(u->members, u->member_count, u->member_capacity)) return false;
    wb_move_before(q);
    const int phase = wb_phase_in(graph, number, v);
    u->members[u->member_count++] = member;
    u->last = member;
    membership(graph, member)->unit = number;
    membership(graph, member)->phase = (uint8_t)phase;
    note_reader(graph, number, v);
    if (!u->reduced && v->kind == WB_VALUE_REDUCE) u->reduced = mask_of(graph, v);
    u->phases = wb_phases_with(graph, u, v, phase);
    return wb_unit_need_inputs(graph, number, member);
}

/* The unit of an input, unless the input is a number for an optimiser's steps: otherwise a step of
 * one element would join the program of these numbers, and no longer be the loop that a backend has
 * for it. */
static int32_t unit_to_join(const wb_graph *graph, int32_t input) {
    return graph->values[input].is_told ? WB_NO_UNIT : wb_value_unit(graph, input);
}

/* The program that last read the operand of v, a reduction, if v would be a side sum there. */
static int32_t reader_to_join(const wb_graph *graph, const wb_value *v) {
    if (v->kind != WB_VALUE_REDUCE) return WB_NO_UNIT;
    const int32_t reader = graph->units.of[v->small_inputs[0]].reader - 1;
    if (reader < 0) return WB_NO_UNIT;
    const int32_t unit = wb_unit_find(&graph->units, reader);
    return wb_value_is_side_sum(graph, unit_at(graph, unit), v) ? unit : WB_NO_UNIT;
}

/* The units of v's inputs, each once, the latest first. */
static int units_to_join(const wb_graph *graph, const wb_value *v, int32_t *list) {
    int count = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t unit = unit_to_join(graph, v->small_inputs[i]);
        int at = count;
        for (int k = 0; k < count && unit >= 0; k++)
            if (list[k] == unit) at = -1;
        if (unit < 0 || at < 0) continue;
        for (; at > 0 && unit_at(graph, list[at - 1])->last < unit_at(graph, unit)->last; at--)
            list[at] = list[at - 1];
        list[at] = unit;
        count++;
    }
    return count;
}

/* Numbers for the rows of a program belong there, and not with the smaller programs of what they
 * are computed from, which then become a part of it. Moves such a program to the front. */
static void put_rows_first(const wb_graph *graph, const wb_value *v, int32_t *list, int count) {
    if (v->kind != WB_VALUE_ELEMENT || wb_value_count(v) == 1) return;
    for (int i = 1; i < count; i++) {
        const wb_unit *u = unit_at(graph, list[i]);
        if (!u->reduced || wb_value_is_full(u, v)) continue;
        if (!matches_row(u, v)) continue;
        const int32_t unit = list[i];
        for (; i > 0; i--) list[i] = list[i - 1];
        list[0] = unit;
        return;
    }
}

/* The unit that v may join, or WB_NO_UNIT; the question lists what must be moved for it. */
static int32_t best_unit(wb_graph *graph, int32_t member, wb_question *q) {
    const wb_value *v = &graph->values[member];
    wb_membership *own = membership(graph, member);
    int32_t list[4];
    if (!graph->fuse) {
        own->apart = "WEBER_FUSE=0";
        return WB_NO_UNIT;
    }
    const int count = units_to_join(graph, v, list);
    put_rows_first(graph, v, list, count);
    for (int i = 0; i < count; i++) {
        own->apart = why_apart(graph, list[i], v, q);
        if (!own->apart) return list[i];
    }
    const int32_t reader = reader_to_join(graph, v);
    return reader >= 0 && !why_apart(graph, reader, v, q) ? reader : WB_NO_UNIT;
}

/* ---- merging two programs that a value brought together ---- */

typedef struct fuser {
    wb_graph *graph;
    uint8_t *phases;  /* of values, while two units are tried as one */
    int32_t *members; /* of such two, in order: WB_MOST_MEMBERS */
} fuser;

static bool same_domain(const wb_unit *a, const wb_unit *b) {
    const int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = 0; d < ndim; d++)
        if (domain_at(a, d) != domain_at(b, d)) return false;
    return true;
}

/* True for a map over the rows of a: its values can be a's row values. */
static bool is_map_of_rows(const wb_graph *graph, const wb_unit *a, const wb_unit *b) {
    if (b->reduced || b->phases != 1) return false;
    for (int64_t m = 0; m < b->member_count; m++) {
        const wb_value *v = &graph->values[b->members[m]];
        if (!wb_value_is_fused(v) || wb_value_is_full(a, v) || !matches_row(a, v)) return false;
    }
    return true;
}

static void list_members(fuser *f, const wb_unit *a, const wb_unit *b) {
    int64_t x = 0, y = 0;
    for (int64_t i = 0; i < a->member_count + b->member_count; i++) {
        const bool first =
            y == b->member_count || (x < a->member_count && a->members[x] < b->members[y]);
        f->members[i] = first ? a->members[x++] : b->members[y++];
    }
}

/* The phases that the members of two units would have as one: values of one half may wait for row
 * values of the other. 0: there are too many, or some value cannot be computed beside one that it
 * reads. */
static int phases_as_one(fuser *f, int32_t a, int32_t b) {
    const wb_graph *graph = f->graph;
    const wb_unit *u = unit_at(graph, a);
    const trial t = {.graph = graph, .unit = u, .a = a, .b = b, .phases = f->phases};
    const int64_t count = u->member_count + unit_at(graph, b)->member_count;
    int phases = 1;
    for (int64_t m = 0; m < count; m++) {
        const int32_t member = f->members[m];
        const wb_value *v = &graph->values[member];
        if (inputs_misfit(&t, v, v->kind != WB_VALUE_REDUCE && wb_value_is_row(u, v))) return 0;
        const int phase = phase_in(&t, v), needed = phases_of(graph, u, v, phase);
        f->phases[member] = (uint8_t)phase;
        if (needed > phases) phases = needed;
        if (!phases_fit(u, u->reduced, phases)) return 0;
    }
    return phases;
}

/* The phases of the two as one program, or 0: they stay two; the question lists what must be moved
 * for it. */
static int may_merge(fuser *f, int32_t into, int32_t from, wb_question *q) {
    wb_graph *graph = f->graph;
    const wb_unit *a = unit_at(graph, into), *b = unit_at(graph, from);
    if (b->kind != WB_UNIT_PROGRAM) return 0;
    const bool is_alike = same_domain(a, b) && a->reduced == b->reduced;
    if (!is_alike && !is_map_of_rows(graph, a, b)) return 0;
    if (a->member_count + b->member_count > WB_MOST_MEMBERS) return 0;
    /* a unit that reads the other one through a view cannot be merged with it */
    if (wb_unit_reads_view(&graph->units, into, from) ||
        wb_unit_reads_view(&graph->units, from, into))
        return 0;
    list_members(f, a, b);
    const int phases = phases_as_one(f, into, from);
    return phases > 0 && wb_may_unite(&graph->units, into, from, q) ? phases : 0;
}

/* After may_merge said how many phases. False when out of memory. */
static bool merge(fuser *f, int32_t into, int32_t from, int phases, wb_question *q) {
    wb_unit *a = unit_at(f->graph, into), *b = unit_at(f->graph, from);
    const int64_t total = a->member_count + b->member_count;
    if (!wb_reserve((void **)&a->members, &a->member_capacity, sizeof *a->members, total) ||
        !wb_unite(q, into, from))
        return false;
    memcpy(a->members, f->members, sizeof *a->members * (size_t)total);
    for (int64_t m = 0; m < total; m++) {
        wb_membership *own = membership(f->graph, a->members[m]);
        own->unit = into;
        own->phase = f->phases[a->members[m]];
    }
    a->member_count = total, a->last = a->members[total - 1], a->phases = phases;
    b->member_count = 0, b->merged_into = into;
    return true;
}

static bool merge_inputs(fuser *f, int32_t number, const wb_value *v) {
    wb_question q;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t unit = unit_to_join(f->graph, wb_value_inputs(v)[i]);
        if (unit < 0 || unit == number) continue;
        const int phases = may_merge(f, number, unit, &q);
        if (phases > 0 && !merge(f, number, unit, phases, &q)) return false;
    }
    return true;
}

static bool fuse_value(fuser *f, int32_t member) {
    wb_question q;
    const int32_t unit = best_unit(f->graph, member, &q);
    if (unit < 0) return wb_unit_new_program(f->graph, member) >= 0;
    return join(f->graph, unit, member, &q) && merge_inputs(f, unit, &f->graph->values[member]);
}

/* ---- all values ---- */

static bool make_unit(fuser *f, int32_t number) {
    wb_graph *graph = f->graph;
    const wb_value *v = &graph->values[number];
    switch ((wb_value_kind)v->kind) {
    case WB_VALUE_ELEMENT:
    case WB_VALUE_REDUCE:
        return fuse_value(f, number);
    case WB_VALUE_VIEW: /* a view that strides cannot express is a copy */
        return v->base != number || new_unit(graph, WB_UNIT_COPY, number) >= 0;
    case WB_VALUE_JOIN:
        return new_unit(graph, WB_UNIT_COPY, number) >= 0;
    case WB_VALUE_CALL:
        return new_unit(graph, WB_UNIT_CALL, number) >= 0;
    case WB_VALUE_RESULT:
        membership(graph, number)->unit = membership(graph, v->small_inputs[0])->unit;
        return true;
    default:
        return true;
    }
}

/* No value belongs to a unit. */
static bool begin(wb_units *units, int64_t count) {
    units->first = units->last = -1;
    units->of = wb_alloc(sizeof *units->of * (size_t)(count + 1));
    for (int64_t v = 0; units->of && v < count; v++) units->of[v].unit = WB_NO_UNIT;
    return units->of != NULL;
}

bool wb_graph_fuse(wb_graph *graph) {
    fuser f = {.graph = graph,
               .phases = wb_alloc((size_t)graph->count + 1),
               .members = wb_alloc(sizeof *f.members * WB_MOST_MEMBERS)};
    bool done = f.phases && f.members && begin(&graph->units, graph->count);
    for (int32_t v = 0; done && v < graph->count; v++) done = make_unit(&f, v);
    wb_release(f.phases);
    wb_release(f.members);
    if (done && graph->fuse) {
        done = wb_graph_sink(graph) && wb_graph_rematerialise(graph);
        if (done) wb_graph_set_phases(graph);
    }
    return done && wb_graph_store(graph) && wb_units_list_needs(graph);
}
