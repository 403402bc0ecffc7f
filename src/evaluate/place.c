/* Places everything: epilogues, donated buffers, the order of the units, memory.
 *
 * Epilogues: A matrix product or convolution calls back for each finished tile of its result, while
 * it is in cache; an elementwise program over the same domain is run there. This is one mechanism
 * for bias, activation, and for the optimiser's step after the weight gradient: Adam reads and
 * writes a weight tile while the tile of its gradient is in the L1 cache.
 *
 * Donation: A new parameter takes over the old one's buffer if the old value cannot be read
 * afterwards: only the plan refers to its node, none of its readers can be read later, and every
 * other reader runs before. A program of several phases writes such a result in its last one,
 * because all of them read the old value. Gradients that can still be read are results of the plan,
 * too; wb_train_step, and so wb_train, releases them before. wb_withgradient and wb_update close an
 * inner scope before the plan is made, so that this holds; in a loop written by hand two pooled
 * buffers alternate.
 *
 * Reads the tape's marks, values and readers. Writes placements, the order, and of units their
 * epilogues and positions; a takeover adds to what a unit needs. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "evaluate/emit.h"
#include "evaluate/gaps.h"

enum { ALIGNMENT = 64 };

static int64_t rounded(int64_t bytes) {
    return (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1);
}
static bool is_live(const wb_unit *u) { return u->merged_into < 0 && u->member_count > 0; }

/* ---- the memory table ---- */

/* The late words of a late number, or key and counter of a random source. */
static void number_late(const wb_value *v, wb_placements *places, wb_placement *place) {
    place->late = places->late_count;
    places->late[places->late_count++] = v->tape << 1;
    if (v->kind == WB_VALUE_SOURCE) places->late[places->late_count++] = v->tape << 1 | 1;
}

static bool number_leaves(const wb_graph *graph, wb_placements *places) {
    const size_t room = (size_t)(graph->count + 1);
    places->leaves = wb_alloc(sizeof *places->leaves * room);
    places->late = wb_alloc(sizeof *places->late * 2 * room);
    places->outputs = wb_alloc(sizeof *places->outputs * room);
    if (!places->leaves || !places->late || !places->outputs) return false;
    for (int64_t i = 0; i < graph->count; i++) {
        const wb_value *v = &graph->values[i];
        if (v->kind == WB_VALUE_LEAF) {
            places->of[i].memory = places->leaf_count;
            places->leaves[places->leaf_count++] = v->tape;
        } else if (v->tape >= 0 && v->kind != WB_VALUE_CALL)
            number_late(v, places, &places->of[i]);
    }
    return true;
}

static void number_marked(const wb_graph *graph, wb_placements *places, uint8_t mask,
                          uint8_t wanted) {
    const wb_tape *tape = graph->tape;
    for (int64_t i = 0; i < tape->count; i++) {
        if ((tape->at[i].marks & mask) != wanted || graph->of_tape[i] < 0) continue;
        const int32_t base = wb_value_base(graph, graph->of_tape[i]);
        if (graph->values[base].kind == WB_VALUE_LEAF || places->of[base].output >= 0) continue;
        places->of[base].output = places->output_count;
        places->outputs[places->output_count++] = base;
    }
}

/* Parameters and states before all others: these may choose their donors first. */
static void number_outputs(const wb_graph *graph, wb_placements *places) {
    const uint8_t settled = WB_TAPE_STORED | WB_TAPE_SETTLED;
    number_marked(graph, places, settled, settled);
    places->settled_count = places->output_count;
    number_marked(graph, places, settled, WB_TAPE_STORED);
}

/* ---- epilogues ---- */

static bool same_domain(const wb_unit *u, const wb_value *v) {
    const int ndim = u->ndim > v->ndim ? u->ndim : v->ndim;
    for (int d = 0; d < ndim; d++)
        if ((d < u->ndim ? u->sizes[d] : 1) != (d < v->ndim ? v->sizes[d] : 1)) return false;
    return u->ndim >= v->ndim;
}

/* True if the program can run with the call: it reads the call's result as it is, and its other
 * operands can be computed before. */
static bool may_follow(wb_graph *graph, int32_t program, int32_t call, wb_question *q) {
    const wb_unit *u = &graph->units.at[program];
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &graph->values[u->members[m]];
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t input = wb_value_inputs(v)[i];
            if (wb_value_unit(graph, input) == call && graph->values[input].kind != WB_VALUE_CALL)
                return false; /* a view of it: other elements */
        }
    }
    return wb_may_unite(&graph->units, call, program, q);
}

/* False when out of memory. */
static bool fuse_behind(wb_graph *graph, int32_t program) {
    enum { MOST_TRIES = 8 }; /* a sum of many products would try each of them */
    wb_unit *u = &graph->units.at[program];
    wb_question q;
    if (u->kind != WB_UNIT_PROGRAM || u->reduced || u->phases != 1 || u->is_postponed) return true;
    int tries = 0;
    for (int64_t m = u->member_count - 1; m >= 0; m--) {
        const wb_value *v = &graph->values[u->members[m]];
        for (int i = v->ninputs - 1; i >= 0; i--) {
            const int32_t input = wb_value_inputs(v)[i];
            const wb_value *x = &graph->values[input];
            const int32_t call = wb_value_unit(graph, input);
            if (x->kind != WB_VALUE_CALL || !same_domain(u, x)) continue;
            if (!(wb_call_row_for(x->op).uses & WB_CALL_TILES)) continue;
            wb_unit *c = &graph->units.at[call];
            if (c->epilogue >= 0) continue;
            if (tries++ == MOST_TRIES) return true;
            if (!may_follow(graph, program, call, &q)) continue;
            c->epilogue = program;
            u->fused_into = call;
            return wb_unite(&q, call, program);
        }
    }
    return true;
}

/* False when out of memory. */
static bool find_epilogues(wb_graph *graph) {
    if (!graph->fuse) return true;
    for (int64_t i = graph->units.count - 1; i >= 0; i--)
        if (is_live(&graph->units.at[i]) && !fuse_behind(graph, (int32_t)i)) return false;
    return true;
}

bool wb_is_private(const wb_graph *graph, int32_t call, int32_t reader) {
    if (graph->places.of[call].output >= 0) return false;
    int64_t count;
    const int32_t *readers = wb_value_readers(graph, call, &count);
    for (int64_t i = 0; i < count; i++)
        if (graph->units.of[readers[i]].unit != reader) return false;
    return true;
}

/* ---- donation ---- */

/* The writer takes over the memory of leaf. So all other units that read it must run before, and so
 * must the last collective: if that fails, all ranks keep what they had. Asks whether this order is
 * possible, or notes that it is needed. */
typedef struct takeover {
    wb_graph *graph;
    int32_t writer;
    wb_question *q; /* NULL: it is noted */
} takeover;

static bool comes_first(const takeover *t, int32_t unit) {
    wb_units *units = &t->graph->units;
    unit = wb_unit_runs_with(units, unit);
    if (unit == t->writer) return true;
    return t->q ? wb_may_come(t->q, unit) : wb_unit_need(units, t->writer, unit, false);
}

static bool all_come_first(const takeover *t, int32_t leaf) {
    wb_graph *graph = t->graph;
    int64_t count;
    const int32_t *readers = wb_value_readers(graph, leaf, &count);
    for (int64_t i = 0; i < count; i++) {
        const int32_t unit = graph->units.of[readers[i]].unit;
        if (unit >= 0 && !comes_first(t, unit)) return false;
    }
    if (graph->last_collective < 0) return true;
    const int32_t last = wb_value_unit(graph, graph->last_collective);
    return last != t->writer && comes_first(t, last);
}

/* A leaf read by the program element by element, as the output is written. A call's own operands
 * are read as a whole. */
static bool read_alike(const wb_graph *graph, const wb_unit *u, int32_t leaf,
                       const wb_value *output) {
    const wb_value *x = &graph->values[leaf];
    if (x->ndim != output->ndim ||
        wb_dtype_size((wb_dtype)x->dtype) != wb_dtype_size((wb_dtype)output->dtype))
        return false;
    if (memcmp(x->sizes, output->sizes, sizeof *x->sizes * x->ndim) != 0) return false;
    bool read = false;
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &graph->values[u->members[m]];
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t input = wb_value_inputs(v)[i];
            if (input == leaf)
                read = true;
            else if (wb_value_base(graph, input) == leaf)
                return false; /* also through a view */
        }
    }
    return read;
}

static bool call_reads(const wb_graph *graph, int32_t call, int32_t leaf) {
    const wb_value *v = &graph->values[graph->units.at[call].members[0]];
    for (int i = 0; i < v->ninputs; i++)
        if (wb_value_base(graph, wb_value_inputs(v)[i]) == leaf) return true;
    return false;
}

/* In a body the memory of a carry is for the next one alone. */
static bool may_donate(const wb_graph *graph, const wb_value *leaf, int32_t output) {
    const wb_tape *tape = graph->tape;
    if (!(tape->at[leaf->tape].marks & WB_TAPE_DONATED)) return false;
    if (!tape->body) return true;
    const wb_array *next = tape->body->results[tape->at[leaf->tape].node->attributes.part.number];
    const int64_t at = wb_tape_place(tape, next);
    return at >= 0 && graph->of_tape[at] == graph->places.outputs[output];
}

static bool can_donate(wb_graph *graph, const wb_unit *u, const takeover *t, int32_t leaf,
                       int32_t number) {
    const wb_value *output = &graph->values[graph->places.outputs[number]];
    if (!may_donate(graph, &graph->values[leaf], number) || !read_alike(graph, u, leaf, output))
        return false;
    if (graph->units.at[t->writer].kind == WB_UNIT_CALL && call_reads(graph, t->writer, leaf))
        return false;
    wb_ask_before(&graph->units, t->writer, t->q);
    return all_come_first(t, leaf);
}

/* Of several candidates the first on the tape. A rule's parameter and states are there in the order
 * of their new values, so each takes over its own memory, and the next step finds all of them where
 * they were. */
static int32_t find_donor(wb_graph *graph, const wb_unit *u, int32_t writer, int32_t number,
                          const bool *taken, wb_question *q) {
    const takeover t = {graph, writer, q};
    int32_t donor = -1;
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &graph->values[u->members[m]];
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t leaf = wb_value_inputs(v)[i];
            const wb_value *x = &graph->values[leaf];
            if (x->kind != WB_VALUE_LEAF || taken[graph->places.of[leaf].memory]) continue;
            if (donor >= 0 && graph->values[donor].tape <= x->tape) continue;
            if (can_donate(graph, u, &t, leaf, number)) donor = leaf;
        }
    }
    return donor;
}

/* True if the unit can read an element before it writes v there: row values are written while
 * others are read. What takes over memory is stored in the last phase (emit.c). */
static bool may_be_written_last(const wb_unit *u, const wb_value *v) {
    return !u->reduced || !wb_value_is_row(u, v);
}

/* A leaf that a result shows, as a view of it, is needed beyond the plan. */
static void take_shown_leaves(const wb_graph *graph, bool *taken) {
    for (int64_t i = 0; i < graph->tape->count; i++) {
        if (!(graph->tape->at[i].marks & WB_TAPE_STORED) || graph->of_tape[i] < 0) continue;
        const int32_t base = wb_value_base(graph, graph->of_tape[i]);
        if (graph->values[base].kind == WB_VALUE_LEAF) taken[graph->places.of[base].memory] = true;
    }
}

/* The output takes over the buffer of a leaf that is not needed any more, if there is one. */
static bool donate_to(wb_graph *graph, int32_t number, bool *taken) {
    const int32_t output = graph->places.outputs[number];
    const wb_value *v = &graph->values[output];
    wb_placement *place = &graph->places.of[output];
    const int32_t unit = wb_value_unit(graph, output);
    const wb_unit *u = unit >= 0 ? &graph->units.at[unit] : NULL;
    wb_question q;
    place->memory = graph->places.leaf_count + number;
    if (!u || u->kind != WB_UNIT_PROGRAM || !may_be_written_last(u, v)) return true;
    const int32_t writer = wb_unit_runs_with(&graph->units, unit);
    const int32_t donor = find_donor(graph, u, writer, number, taken, &q);
    if (donor < 0) return true;
    place->memory = graph->places.of[donor].memory;
    taken[place->memory] = true;
    wb_move_before(&q);
    return all_come_first(&(takeover){graph, writer, NULL}, donor);
}

static bool donate(wb_graph *graph) {
    bool *taken = wb_alloc(sizeof *taken * (size_t)(graph->places.leaf_count + 1));
    bool done = taken != NULL;
    if (done) take_shown_leaves(graph, taken);
    for (int32_t o = 0; done && o < graph->places.output_count; o++)
        done = donate_to(graph, o, taken);
    wb_release(taken);
    return done;
}

static void count_missed(wb_graph *graph) {
    for (int64_t i = 0; i < graph->tape->count; i++) {
        if (!(graph->tape->at[i].marks & WB_TAPE_SETTLED) || graph->of_tape[i] < 0) continue;
        const int32_t base = wb_value_base(graph, graph->of_tape[i]);
        const wb_value *v = &graph->values[base];
        if (graph->places.of[base].memory < graph->places.leaf_count || wb_value_bytes(v) == 0)
            continue;
        graph->places.missed_donations++;
        if (graph->explain)
            wb_log_always("plan: no operand's buffer can be reused for the result of %s %s",
                          wb_op_name((wb_op)v->op), wb_sizes_text(v->ndim, v->sizes));
    }
}

/* ---- order ---- */

typedef struct sorter {
    wb_graph *graph;
    int32_t *stack;
    int64_t depth, capacity;
    uint8_t *state; /* 0 unseen, 1 open, 2 placed */
} sorter;

static bool push(sorter *s, int32_t unit) {
    if (unit < 0 || s->state[unit] != 0) return true;
    if (!WB_GROW(s->stack, s->depth, s->capacity)) return false;
    s->stack[s->depth++] = unit;
    return true;
}

static bool push_needs(sorter *s, const wb_unit *u) {
    for (int64_t i = u->need_count - 1; i >= 0; i--)
        if (!push(s, wb_unit_needed(&s->graph->units, u, i))) return false;
    return true;
}

static bool visit(sorter *s, int32_t unit) {
    if (!push(s, unit)) return false;
    while (s->depth > 0) {
        const int32_t top = s->stack[s->depth - 1];
        if (s->state[top] == 0) {
            s->state[top] = 1;
            if (!push_needs(s, &s->graph->units.at[top])) return false;
            continue;
        }
        s->depth--;
        if (s->state[top] == 2) continue;
        s->state[top] = 2;
        s->graph->units.at[top].position = (int32_t)s->graph->order.count;
        s->graph->order.units[s->graph->order.count++] = top;
    }
    return true;
}

static bool order_units(wb_graph *graph) {
    sorter s = {.graph = graph, .state = wb_alloc((size_t)graph->units.count + 1)};
    graph->order.units = wb_alloc(sizeof *graph->order.units * (size_t)(graph->units.count + 1));
    int64_t postponed_count;
    wb_unit **postponed = wb_graph_postponed(graph, &postponed_count);
    bool ordered = s.state && graph->order.units && postponed;
    for (int32_t i = 0; ordered && i < graph->units.count; i++) {
        const wb_unit *u = &graph->units.at[i];
        if (is_live(u) && u->fused_into < 0 && !u->is_postponed) ordered = visit(&s, i);
    }
    for (int64_t i = 0; ordered && i < postponed_count; i++)
        ordered = visit(&s, (int32_t)(postponed[i] - graph->units.at));
    wb_release(postponed);
    wb_release(s.stack);
    wb_release(s.state);
    for (int64_t i = 0; i < graph->units.count; i++) {
        wb_unit *u = &graph->units.at[i];
        if (u->fused_into >= 0) u->position = graph->units.at[u->fused_into].position;
    }
    return ordered;
}

/* ---- workspace ---- */

typedef struct lifetime {
    int32_t value, from, until; /* positions of units: the first and the last that use the value */
} lifetime;

static int by_start(const void *a, const void *b) {
    const lifetime *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                              : (x->value > y->value) - (x->value < y->value);
}

static bool needs_workspace(const wb_graph *graph, int32_t n) {
    const wb_value *v = &graph->values[n];
    const wb_placement *place = &graph->places.of[n];
    return place->stored && v->kind != WB_VALUE_LEAF && v->base == n && place->output < 0 &&
           place->holder < 0 && wb_value_unit(graph, n) >= 0;
}

/* A collective reads its input until it is waited for: at the first unit that reads its result, or
 * at the end. */
static void stay_for_collectives(const wb_graph *graph, int32_t *last) {
    for (int32_t n = 0; graph->last_collective >= 0 && n < graph->count; n++) {
        if (graph->values[n].op != WB_OP_collective) continue;
        int64_t readers;
        const int32_t *reader = wb_value_readers(graph, n, &readers);
        int32_t until = (int32_t)graph->order.count - 1;
        for (int64_t i = 0; i < readers; i++) {
            const int32_t unit = wb_value_unit(graph, reader[i]);
            if (graph->values[reader[i]].op == WB_OP_collective || unit < 0) continue;
            if (graph->units.at[unit].position < until) until = graph->units.at[unit].position;
        }
        int32_t *l = &last[wb_value_base(graph, wb_value_inputs(&graph->values[n])[0])];
        if (until > *l) *l = until;
    }
}

/* The position of the first unit that writes what n holds. */
static int32_t first_written(const wb_graph *graph, int32_t n) {
    const wb_value *v = &graph->values[n];
    int32_t first = graph->units.at[wb_value_unit(graph, n)].position;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t input = wb_value_base(graph, wb_value_inputs(v)[i]);
        if (graph->places.of[input].holder != n) continue;
        const int32_t position = graph->units.at[wb_value_unit(graph, input)].position;
        if (position < first) first = position;
    }
    return first;
}

static lifetime *lifetimes(const wb_graph *graph, int64_t *count) {
    lifetime *lives = wb_alloc(sizeof *lives * (size_t)(graph->count + 1));
    int32_t *last = wb_alloc(sizeof *last * (size_t)(graph->count + 1));
    *count = 0;
    for (int32_t n = 0; lives && last && n < graph->count; n++) {
        const wb_value *v = &graph->values[n];
        const int32_t unit = wb_value_unit(graph, n);
        if (v->base == n && unit >= 0)
            for (int i = 0; i < v->ninputs; i++) {
                int32_t *l = &last[wb_value_base(graph, wb_value_inputs(v)[i])];
                if (graph->units.at[unit].position > *l) *l = graph->units.at[unit].position;
            }
    }
    if (lives && last) stay_for_collectives(graph, last);
    for (int32_t n = 0; lives && last && n < graph->count; n++) {
        if (!needs_workspace(graph, n)) continue;
        const int32_t from = first_written(graph, n);
        lives[(*count)++] = (lifetime){n, from, last[n] > from ? last[n] : from};
    }
    wb_release(last);
    if (!last) {
        wb_release(lives);
        return NULL;
    }
    return lives;
}

/* Where to write down what is placed, and how large it is. */
static int64_t *place_of(wb_graph *graph, int32_t number, int64_t *size) {
    wb_placements *places = &graph->places;
    *size = wb_value_bytes(&graph->values[number]);
    places->of[number].memory = places->leaf_count + places->output_count;
    return &places->of[number].offset_bytes;
}

static int by_end(const void *a, const void *b) {
    const lifetime *x = a, *y = b;
    return (x->until > y->until) - (x->until < y->until);
}

static int64_t padded(int64_t bytes) { return rounded(bytes) + ALIGNMENT; }

/* Puts each value into the first gap between the values that are alive when it is made. */
static bool place_lives(wb_graph *graph, const lifetime *lives, const lifetime *ends,
                        int64_t count) {
    wb_gaps gaps;
    bool placed = wb_gaps_begin(&gaps);
    for (int64_t i = 0, ended = 0; placed && i < count; i++) {
        int64_t bytes, *offset;
        for (; placed && ended < count && ends[ended].until < lives[i].from; ended++) {
            offset = place_of(graph, ends[ended].value, &bytes);
            placed = wb_gaps_give(&gaps, *offset, padded(bytes));
        }
        if (!placed) break;
        offset = place_of(graph, lives[i].value, &bytes);
        if (wb_plus(graph->places.workspace_bytes, padded(bytes)) == INT64_MAX)
            placed = wb_check_bytes(INT64_MAX); /* does not fit even after the others */
        if (!placed) break;
        *offset = wb_gaps_take(&gaps, padded(bytes));
        if (*offset + padded(bytes) > graph->places.workspace_bytes)
            graph->places.workspace_bytes = *offset + padded(bytes);
        placed = wb_check_bytes(graph->places.workspace_bytes);
    }
    wb_gaps_end(&gaps);
    return placed;
}

static bool place_workspace(wb_graph *graph) {
    int64_t count = 0;
    lifetime *lives = lifetimes(graph, &count);
    lifetime *ends = lives ? wb_alloc(sizeof *ends * (size_t)(count + 1)) : NULL;
    if (ends) {
        memcpy(ends, lives, sizeof *ends * (size_t)count);
        qsort(lives, (size_t)count, sizeof *lives, by_start);
        qsort(ends, (size_t)count, sizeof *ends, by_end);
    }
    const bool placed = ends && place_lives(graph, lives, ends, count);
    wb_release(ends);
    wb_release(lives);
    return placed;
}

/* Values in copies, whose places are known now. */
static void place_held(wb_placements *places, int64_t count) {
    for (int64_t v = 0; v < count; v++) {
        wb_placement *place = &places->of[v];
        if (place->holder < 0) continue;
        place->memory = places->of[place->holder].memory;
        place->offset_bytes = places->of[place->holder].offset_bytes;
    }
}

bool wb_graph_place(wb_graph *graph) {
    if (!number_leaves(graph, &graph->places)) return false;
    number_outputs(graph, &graph->places);
    if (!wb_graph_spare_copies(graph)) return false;
    if (!wb_graph_find_updates(graph)) return false;
    if (!find_epilogues(graph) || !donate(graph)) return false;
    count_missed(graph);
    if (!order_units(graph) || !place_workspace(graph)) return false;
    place_held(&graph->places, graph->count);
    return true;
}
