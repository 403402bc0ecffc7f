/* Values into units. A unit is a program (elementwise values and reductions over one domain), a
 * library call, or copies.
 *
 * A program has a domain, some of whose dimensions are reduced, and up to four phases, each ending
 * in reductions or stores. Softmax, log-sum-exp, variance and the norms are therefore no kernels
 * of their own: their expansions fuse into one program of two or three phases. An elementwise
 * value joins the latest program among those of its operands if the domain fits and no circle
 * arises; a reduction joins the program of its operand; a row value (one per row) is computed
 * between phases. Two programs that a value brings together become one, maps, or programs with the
 * same rows if their phases suffice: a crossentropy over labels and its gradient read the logits
 * and write theirs, and store nothing between. A reduction of more than 65,536 elements with fewer
 * than eight rows is not followed by another phase in its program: rows are what threads share
 * out.
 *
 * Where the device takes it (side_sum_row, so far the CPU), a program of rows also computes side
 * sums: the loss behind a softmax, the gradients of a layer norm's gain and bias. They are known
 * when the program ends, so that nothing in it reads them.
 *
 * Sinking: The forward pass comes first on the tape, so that a value that only the backward pass
 * needs (1 - tanh^2, the mask of relu) would join the forward program and be stored. It moves to
 * its one user if that stores no more than before; row values, which are few, do not count. */
#include <string.h>

#include "base/memory.h"
#include "evaluate/plan.h"

enum {
    MOST_MEMBERS = 160,
    /* a reduction over more elements than this, with fewer rows than that, is not followed by
     * another phase in its own program: rows are what threads share out */
    LONG_ROW = 1 << 16,
    FEW_ROWS = 8,
};

static int64_t size_at(const wb_value *v, int d) { return d < v->ndim ? v->sizes[d] : 1; }
static int64_t domain_at(const wb_unit *u, int d) { return d < u->ndim ? u->sizes[d] : 1; }

static wb_unit *unit_at(const wb_graph *graph, int32_t u) { return &graph->units[u]; }

static bool matches_full(const wb_unit *u, const wb_value *v) {
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
    return v->kind == WB_VALUE_REDUCE || !matches_full(unit, v);
}

/* ---- units ---- */

static bool is_inline(const wb_value *v) {
    return v->kind == WB_VALUE_CONSTANT || v->kind == WB_VALUE_LATE || v->kind == WB_VALUE_SOURCE;
}

static int32_t new_unit(wb_graph *graph, wb_unit_kind kind, int32_t member) {
    if (!WB_GROW(graph->units, graph->unit_count, graph->unit_capacity)) return -1;
    const int32_t number = (int32_t)graph->unit_count++;
    wb_unit *u = unit_at(graph, number);
    *u = (wb_unit){
        .kind = kind, .last = member, .epilogue = -1, .fused_into = -1, .merged_into = -1};
    if (is_inline(&graph->values[member]))
        wb_unit_put_first(graph, number); /* others read it that are there already */
    else
        wb_unit_put_last(graph, number);
    if (!WB_GROW(u->members, u->member_count, u->member_capacity)) return -1;
    u->members[u->member_count++] = member;
    graph->values[member].unit = number;
    return wb_unit_need_inputs(graph, number, member) ? number : -1;
}

/* Reduced dimensions of size 1 change nothing: they are left out, so that more reductions agree. */
static uint32_t mask_of(const wb_graph *graph, const wb_value *v) {
    const wb_value *x = &graph->values[v->small_inputs[0]];
    uint32_t mask = 0;
    for (int d = 0; d < x->ndim; d++)
        if ((v->attributes[0] >> d & 1) && x->sizes[d] != 1) mask |= 1u << d;
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

static void set_domain(wb_unit *u, const wb_value *v) {
    u->ndim = v->ndim;
    memcpy(u->sizes, v->sizes, sizeof u->sizes);
}

static void note_reader(wb_graph *graph, int32_t unit, const wb_value *v) {
    for (int i = 0; i < v->ninputs; i++) graph->values[v->small_inputs[i]].reader = unit + 1;
}

static int32_t new_program(wb_graph *graph, int32_t member) {
    const int32_t number = new_unit(graph, WB_UNIT_PROGRAM, member);
    if (number < 0) return -1;
    wb_unit *u = unit_at(graph, number);
    wb_value *v = &graph->values[member];
    const bool reduces = v->kind == WB_VALUE_REDUCE;
    set_domain(u, reduces ? &graph->values[v->small_inputs[0]] : v);
    if (reduces) u->reduced = mask_of(graph, v);
    u->phases = 1;
    v->phase = reduces;
    note_reader(graph, number, v);
    return number;
}

/* ---- joining ---- */

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

/* The phase that v has in unit number: row values count the phases that must have ended. */
static int phase_in(const wb_graph *graph, int32_t number, const wb_value *v) {
    int phase = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = wb_value_inputs(v)[i];
        const wb_value *x = &graph->values[input];
        if (x->kind == WB_VALUE_VIEW || wb_unit_find(graph, x->unit) != number) continue;
        if (x->phase > phase) phase = x->phase;
    }
    const bool is_side_sum = wb_value_is_side_sum(graph, unit_at(graph, number), v);
    return v->kind == WB_VALUE_REDUCE && !is_side_sum ? phase + 1 : phase;
}

static int phases_with(const wb_graph *graph, const wb_unit *u, const wb_value *v, int phase) {
    const bool row = wb_value_is_row(u, v) && !wb_value_is_side_sum(graph, u, v);
    const int needed = row ? phase : phase + 1;
    return needed > u->phases ? needed : u->phases;
}

/* Every input of v that is computed in the unit itself is at a place that v may read. NULL, or why
 * not. */
static const char *inputs_misfit(const wb_graph *graph, int32_t number, const wb_value *v,
                                 bool as_row) {
    const wb_unit *u = unit_at(graph, number);
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = wb_value_inputs(v)[i];
        const wb_value *x = &graph->values[input];
        if (wb_value_unit(graph, input) != number) continue;
        if (x->kind == WB_VALUE_VIEW || x->kind == WB_VALUE_RESULT)
            return "a view needs the whole of it";
        if (wb_value_is_side_sum(graph, u, x)) return "a side sum is known at the end";
        if (as_row && !wb_value_is_row(u, x)) return "a row value reads full ones";
        if (v->kind == WB_VALUE_REDUCE && wb_value_is_row(u, x))
            return "its rows are reduced again";
        /* a row value is spread along the reduced dimensions, and along no others */
        if (!as_row && wb_value_is_row(u, x) && !matches_row(u, x))
            return "its rows are spread otherwise";
    }
    return NULL;
}

/* Every other input of v is computed before the unit. */
static bool inputs_come_before(wb_graph *graph, int32_t number, const wb_value *v) {
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t unit = wb_value_unit(graph, wb_value_inputs(v)[i]);
        if (unit >= 0 && unit != number && !wb_unit_comes_before(graph, unit, number)) return false;
    }
    return true;
}

/* NULL if v may join the unit; else why not, for WEBER_DEBUG=plan. */
static const char *why_apart(wb_graph *graph, int32_t number, const wb_value *v) {
    const wb_unit *u = unit_at(graph, number);
    if (u->kind != WB_UNIT_PROGRAM) return "a call or copy comes between";
    if (u->member_count >= MOST_MEMBERS) return "the program is long enough";
    bool as_row = false;
    uint32_t reduced = u->reduced;
    if (v->kind == WB_VALUE_REDUCE) {
        const uint32_t mask = mask_of(graph, v);
        if (!matches_full(u, &graph->values[v->small_inputs[0]])) return "another domain";
        if (u->reduced != mask && (u->reduced != 0 || mask == 0) && !may_be_side_sum(graph, u, v))
            return "other dimensions are reduced";
        if (!reduced) reduced = mask;
    } else {
        as_row = !matches_full(u, v);
        if (as_row && !matches_row(u, v)) return "another domain";
    }
    const char *misfit = inputs_misfit(graph, number, v, as_row);
    if (misfit) return misfit;
    if (!phases_fit(u, reduced, phases_with(graph, u, v, phase_in(graph, number, v))))
        return "too many phases, or rows too long and too few for another";
    return inputs_come_before(graph, number, v) ? NULL : "an operand has to wait for it";
}

static bool join(wb_graph *graph, int32_t number, int32_t member) {
    wb_unit *u = unit_at(graph, number);
    wb_value *v = &graph->values[member];
    if (!WB_GROW(u->members, u->member_count, u->member_capacity)) return false;
    u->members[u->member_count++] = member;
    u->last = member;
    v->unit = number;
    note_reader(graph, number, v);
    v->phase = (uint8_t)phase_in(graph, number, v);
    if (!u->reduced && v->kind == WB_VALUE_REDUCE) u->reduced = mask_of(graph, v);
    u->phases = phases_with(graph, u, v, v->phase);
    return wb_unit_need_inputs(graph, number, member);
}

/* The unit of an input, unless the input is a number that steps are told: a step of one element
 * would become one program with all of these numbers, and no longer be the loop that a backend has
 * for it. */
static int32_t unit_to_join(const wb_graph *graph, int32_t input) {
    return graph->values[input].is_told ? WB_NO_UNIT : wb_value_unit(graph, input);
}

/* A sum of what a program only reads may be a side sum of the one that read it last. */
static int32_t reader_to_join(wb_graph *graph, const wb_value *v) {
    if (v->kind != WB_VALUE_REDUCE) return WB_NO_UNIT;
    const int32_t reader = graph->values[v->small_inputs[0]].reader - 1;
    const int32_t unit = reader < 0 ? WB_NO_UNIT : wb_unit_find(graph, reader);
    const bool is_side_sum = unit >= 0 && wb_value_is_side_sum(graph, unit_at(graph, unit), v);
    return is_side_sum && !why_apart(graph, unit, v) ? unit : WB_NO_UNIT;
}

/* The latest unit among those of v's inputs that v may join; WB_NO_UNIT. */
static int32_t best_unit(wb_graph *graph, wb_value *v) {
    int32_t best = WB_NO_UNIT;
    if (!graph->fuse) v->apart = "WEBER_FUSE=0";
    for (int i = 0; graph->fuse && i < v->ninputs; i++) {
        const int32_t unit = unit_to_join(graph, wb_value_inputs(v)[i]);
        if (unit < 0 || unit == best ||
            (best >= 0 && unit_at(graph, best)->last > unit_at(graph, unit)->last))
            continue;
        v->apart = why_apart(graph, unit, v);
        if (!v->apart) best = unit;
    }
    return graph->fuse && best < 0 ? reader_to_join(graph, v) : best;
}

/* ---- merging two programs that a value brought together ---- */

static bool same_domain(const wb_unit *a, const wb_unit *b) {
    const int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = 0; d < ndim; d++)
        if (domain_at(a, d) != domain_at(b, d)) return false;
    return true;
}

static bool may_merge(wb_graph *graph, int32_t into, int32_t from) {
    const wb_unit *a = unit_at(graph, into), *b = unit_at(graph, from);
    if (b->kind != WB_UNIT_PROGRAM || !same_domain(a, b) || a->reduced != b->reduced) return false;
    if (a->member_count + b->member_count > MOST_MEMBERS) return false;
    /* what reads the other as a view cannot be one with it */
    if (wb_unit_reads_view(graph, into, from) || wb_unit_reads_view(graph, from, into))
        return false;
    return wb_units_may_unite(graph, into, from);
}

/* The members of both, in order; NULL when out of memory. */
static int32_t *members_of_both(const wb_unit *a, const wb_unit *b) {
    const int64_t total = a->member_count + b->member_count;
    int32_t *members = wb_alloc(sizeof *members * (size_t)total);
    for (int64_t i = 0, x = 0, y = 0; members && i < total; i++) {
        const bool first =
            y == b->member_count || (x < a->member_count && a->members[x] < b->members[y]);
        members[i] = first ? a->members[x++] : b->members[y++];
    }
    return members;
}

/* Gives the members of a unit that is two in one the phases that they have there: values of one
 * half may wait for row values of the other. False: there are too many, or some value cannot be
 * computed beside one that it reads. */
static bool set_phases(wb_graph *graph, int32_t number) {
    wb_unit *u = unit_at(graph, number);
    u->phases = 1;
    for (int64_t m = 0; m < u->member_count; m++) {
        wb_value *v = &graph->values[u->members[m]];
        const bool as_row = v->kind != WB_VALUE_REDUCE && wb_value_is_row(u, v);
        if (inputs_misfit(graph, number, v, as_row)) return false;
        v->phase = (uint8_t)phase_in(graph, number, v);
        u->phases = phases_with(graph, u, v, v->phase);
    }
    return phases_fit(u, u->reduced, u->phases);
}

/* The phases that members had in their own units: inputs there come before them. */
static void restore_phases(wb_graph *graph, int32_t number) {
    const wb_unit *u = unit_at(graph, number);
    for (int64_t m = 0; m < u->member_count; m++) {
        wb_value *v = &graph->values[u->members[m]];
        v->phase = (uint8_t)phase_in(graph, number, v);
    }
}

/* False when out of memory. */
static bool merge(wb_graph *graph, int32_t into, int32_t from) {
    wb_unit *a = unit_at(graph, into), *b = unit_at(graph, from);
    const wb_unit before = *a;
    int32_t *members = members_of_both(a, b);
    if (!members) return false;
    a->members = members, a->member_count = a->member_capacity = a->member_count + b->member_count;
    b->merged_into = into;
    if (a->reduced && !set_phases(graph, into)) {
        wb_release(members);
        *a = before;
        b->merged_into = -1;
        restore_phases(graph, into);
        restore_phases(graph, from);
        return true;
    }
    wb_release(before.members);
    a->last = members[a->member_count - 1];
    b->member_count = 0;
    return wb_unit_absorb(graph, into, from);
}

static bool merge_inputs(wb_graph *graph, int32_t number, const wb_value *v) {
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t unit = unit_to_join(graph, wb_value_inputs(v)[i]);
        if (unit < 0 || unit == number || !may_merge(graph, number, unit)) continue;
        if (!merge(graph, number, unit)) return false;
    }
    return true;
}

static bool fuse_value(wb_graph *graph, int32_t member) {
    wb_value *v = &graph->values[member];
    const int32_t unit = best_unit(graph, v);
    if (unit < 0) return new_program(graph, member) >= 0;
    return join(graph, unit, member) && merge_inputs(graph, unit, &graph->values[member]);
}

/* ---- sinking: values computed where they are used ---- */

/* Of each value the one unit that uses it; WB_NO_UNIT: none; SEVERAL: more, or not as an
 * operand. */
enum { SEVERAL = -2 };

static void list_consumers(const wb_graph *graph, int32_t *of) {
    for (int32_t v = 0; v < graph->count; v++) of[v] = WB_NO_UNIT;
    for (int32_t v = 0; v < graph->count; v++) {
        const wb_value *value = &graph->values[v];
        const int32_t unit = wb_unit_find(graph, value->unit);
        const bool whole = value->kind != WB_VALUE_ELEMENT && value->kind != WB_VALUE_REDUCE;
        for (int i = 0; i < value->ninputs; i++) {
            int32_t *seen = &of[wb_value_inputs(value)[i]];
            const bool is_told = graph->values[wb_value_inputs(value)[i]].is_told;
            if (whole || is_told || (*seen != WB_NO_UNIT && *seen != unit))
                *seen = SEVERAL;
            else
                *seen = unit;
        }
    }
    for (int64_t i = 0; i < graph->tape->count; i++)
        if ((graph->tape->at[i].marks & WB_TAPE_STORED) && graph->of_tape[i] >= 0)
            of[graph->of_tape[i]] = SEVERAL;
}

/* Full operands of v that its unit would have to store for another one, and does not store anyway:
 * row values are few. */
static int newly_stored(const wb_graph *graph, const wb_value *v, const int32_t *of) {
    int count = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = v->small_inputs[i], unit = wb_unit_find(graph, v->unit);
        const wb_value *x = &graph->values[input];
        const bool inside = x->kind != WB_VALUE_VIEW && wb_unit_find(graph, x->unit) == unit;
        if (inside && of[input] == unit && !wb_value_is_row(unit_at(graph, unit), x)) count++;
    }
    return count;
}

static void insert_member(wb_unit *u, int32_t member) {
    int64_t at = u->member_count++;
    for (; at > 0 && u->members[at - 1] > member; at--) u->members[at] = u->members[at - 1];
    u->members[at] = member;
}

static void remove_member(wb_unit *u, int32_t member) {
    int64_t kept = 0;
    for (int64_t m = 0; m < u->member_count; m++)
        if (u->members[m] != member) u->members[kept++] = u->members[m];
    u->member_count = kept;
    u->last = u->members[kept - 1];
}

/* Operands of v of its own size. */
static int full_operands(const wb_graph *graph, const wb_value *v) {
    const wb_unit *u = unit_at(graph, wb_unit_find(graph, v->unit));
    int count = 0;
    for (int i = 0; i < v->ninputs; i++) {
        const wb_value *x = &graph->values[v->small_inputs[i]];
        count += !is_inline(x) && matches_full(u, x);
    }
    return count;
}

static bool may_sink(const wb_graph *graph, int32_t member, const int32_t *of) {
    const wb_value *v = &graph->values[member];
    const int32_t from = wb_unit_find(graph, v->unit), to = of[member];
    if (v->kind != WB_VALUE_ELEMENT || to < 0 || to == from ||
        unit_at(graph, from)->member_count < 2)
        return false;
    const wb_unit *u = unit_at(graph, to);
    if (u->kind != WB_UNIT_PROGRAM || u->member_count >= MOST_MEMBERS || !matches_full(u, v))
        return false;
    if (wb_value_is_row(unit_at(graph, from), v)) return false;
    /* behind a reduction nothing is read again that would cost more than v itself */
    if (v->phase > 0 && full_operands(graph, v) > 1) return false;
    return newly_stored(graph, v, of) <= 1;
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

/* Moves v to the unit that uses it; what only v used is now used there alone. */
static bool sink(wb_graph *graph, int32_t v, int32_t *of) {
    wb_value *value = &graph->values[v];
    wb_unit *to = unit_at(graph, of[v]);
    if (!WB_GROW(to->members, to->member_count, to->member_capacity)) return false;
    const int32_t from = wb_unit_find(graph, value->unit);
    remove_member(unit_at(graph, from), v);
    insert_member(to, v);
    value->unit = of[v];
    value->phase = (uint8_t)phase_in(graph, of[v], value);
    for (int i = 0; i < value->ninputs; i++) {
        const int32_t input = value->small_inputs[i];
        if (of[input] == from) of[input] = is_read_in(graph, from, input) ? SEVERAL : value->unit;
    }
    return true;
}

/* A value that only a later program uses is computed there, if that stores no more: what is stored
 * is then an operand that is stored anyway, or nothing more than before. Row values, which are few,
 * do not count. */
static bool sink_values(wb_graph *graph) {
    int32_t *of = wb_alloc(sizeof *of * (size_t)(graph->count + 1));
    bool done = of != NULL;
    if (done) list_consumers(graph, of);
    for (int32_t v = (int32_t)graph->count - 1; done && v >= 0; v--)
        if (may_sink(graph, v, of)) done = sink(graph, v, of);
    wb_release(of);
    return done;
}

/* ---- memory for what leaves its unit ---- */

/* v gets memory; sources that were computed in line get a program of their own. */
static bool store(wb_graph *graph, int32_t v) {
    v = wb_value_base(graph, v);
    wb_value *value = &graph->values[v];
    if (value->kind == WB_VALUE_LEAF) return true;
    value->stored = true;
    return !is_inline(value) || value->unit >= 0 || new_program(graph, v) >= 0;
}

/* A view whose strides cannot say what it shows is a copy. */
static bool copy_view(wb_graph *graph, int32_t number) {
    if (graph->values[number].base != number) return true;
    return new_unit(graph, WB_UNIT_COPY, number) >= 0 &&
           store(graph, graph->values[number].small_inputs[0]);
}

static bool make_unit(wb_graph *graph, int32_t number) {
    wb_value *v = &graph->values[number];
    switch ((wb_value_kind)v->kind) {
    case WB_VALUE_ELEMENT:
    case WB_VALUE_REDUCE:
        return fuse_value(graph, number);
    case WB_VALUE_VIEW:
        return copy_view(graph, number);
    case WB_VALUE_JOIN:
        return new_unit(graph, WB_UNIT_COPY, number) >= 0;
    case WB_VALUE_CALL:
        return new_unit(graph, WB_UNIT_CALL, number) >= 0;
    case WB_VALUE_RESULT:
        v->unit = graph->values[v->small_inputs[0]].unit;
        v->stored = true;
        return true;
    default:
        return true;
    }
}

/* Which inputs of v have to lie in memory: all those of calls and copies, and those that another
 * unit computes. */
static bool store_inputs(wb_graph *graph, int32_t number) {
    const uint8_t kind = graph->values[number].kind;
    const bool whole = kind == WB_VALUE_CALL || kind == WB_VALUE_JOIN;
    if (kind == WB_VALUE_VIEW || kind == WB_VALUE_RESULT) return true;
    for (int i = 0; i < graph->values[number].ninputs; i++) {
        const int32_t input = wb_value_inputs(&graph->values[number])[i];
        const bool is_view = graph->values[input].kind == WB_VALUE_VIEW;
        if (!whole && !is_view && is_inline(&graph->values[input])) continue;
        const bool outside =
            wb_value_unit(graph, input) != wb_unit_find(graph, graph->values[number].unit);
        if ((whole || is_view || outside) && !store(graph, input)) return false;
    }
    return true;
}

bool wb_graph_fuse(wb_graph *graph) {
    const int64_t count = graph->count;
    graph->first_unit = graph->last_unit = -1;
    for (int32_t v = 0; v < count; v++)
        if (!make_unit(graph, v)) return false;
    if (graph->fuse && !sink_values(graph)) return false;
    for (int32_t v = 0; v < count; v++)
        if (!store_inputs(graph, v)) return false;
    for (int64_t i = 0; i < graph->tape->count; i++)
        if ((graph->tape->at[i].marks & WB_TAPE_STORED) && graph->of_tape[i] >= 0 &&
            !store(graph, graph->of_tape[i]))
            return false;
    for (int64_t i = 0; i < graph->unit_count; i++) {
        const wb_unit *u = &graph->units[i];
        if (u->kind != WB_UNIT_PROGRAM) graph->values[u->members[0]].stored = true;
    }
    return wb_units_list_needs(graph);
}
