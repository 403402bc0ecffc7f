/* Where everything goes: epilogues, donated buffers, the order of the units, memory. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "evaluate/plan.h"

enum { ALIGNMENT = 64 };

static int64_t bytes_of(const wb_value *v) {
    return wb_value_count(v) * (int64_t)wb_dtype_size((wb_dtype)v->dtype);
}
static int64_t rounded(int64_t bytes) {
    return (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1);
}
static bool is_live(const wb_unit *u) { return u->merged_into < 0; }

/* ---- the memory table ---- */

static bool number_leaves(wb_graph *graph) {
    graph->leaves = wb_alloc(sizeof *graph->leaves * (size_t)(graph->count + 1));
    graph->late = wb_alloc(sizeof *graph->late * 2 * (size_t)(graph->count + 1));
    graph->outputs = wb_alloc(sizeof *graph->outputs * (size_t)(graph->count + 1));
    if (!graph->leaves || !graph->late || !graph->outputs) return false;
    for (int64_t i = 0; i < graph->count; i++) {
        wb_value *v = &graph->values[i];
        if (v->kind == WB_VALUE_LEAF) {
            v->memory = graph->leaf_count;
            graph->leaves[graph->leaf_count++] = v->tape;
        } else if (v->tape >= 0) { /* a late number, or key and counter of a random source */
            v->late = graph->late_count;
            graph->late[graph->late_count++] = v->tape << 1;
            if (v->kind == WB_VALUE_SOURCE) graph->late[graph->late_count++] = v->tape << 1 | 1;
        }
    }
    return true;
}

static void number_marked(wb_graph *graph, uint8_t mask, uint8_t wanted) {
    const wb_tape *tape = graph->tape;
    for (int64_t i = 0; i < tape->count; i++) {
        if ((tape->marks[i] & mask) != wanted || graph->of_tape[i] < 0) continue;
        const int32_t base = wb_value_base(graph, graph->of_tape[i]);
        wb_value *v = &graph->values[base];
        if (v->kind == WB_VALUE_LEAF || v->output >= 0) continue;
        v->output = graph->output_count;
        graph->outputs[graph->output_count++] = base;
    }
}

/* Parameters and states before all others: these may choose their donors first. */
static void number_outputs(wb_graph *graph) {
    const uint8_t settled = WB_TAPE_STORED | WB_TAPE_SETTLED;
    number_marked(graph, settled, settled);
    graph->settled_count = graph->output_count;
    number_marked(graph, settled, WB_TAPE_STORED);
}

/* ---- epilogues ---- */

static bool takes_epilogue(const wb_value *call, bool reduced) {
    return call->op == WB_OP_matmul ||
           (!reduced && (call->op == WB_OP_conv_forward || call->op == WB_OP_conv_data));
}

static bool same_domain(const wb_unit *u, const wb_value *v) {
    const int ndim = u->ndim > v->ndim ? u->ndim : v->ndim;
    for (int d = 0; d < ndim; d++)
        if ((d < u->ndim ? u->sizes[d] : 1) != (d < v->ndim ? v->sizes[d] : 1)) return false;
    return u->ndim >= v->ndim;
}

/* True if nothing that the program reads, but the call's own result, has to wait for the call. */
static bool only_waits_for(wb_graph *graph, int32_t program, int32_t call) {
    const wb_unit *u = &graph->units[program];
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &graph->values[u->members[m]];
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t input = wb_value_inputs(v)[i], unit = wb_value_unit(graph, input);
            if (unit < 0 || unit == program) continue;
            if (unit == call) {
                if (graph->values[input].kind != WB_VALUE_CALL)
                    return false; /* a view of it: other elements */
            } else if (wb_unit_depends(graph, unit, call))
                return false;
        }
    }
    return true;
}

/* Programs that add up along the columns of a product go behind those that are still alone. */
static void fuse_behind(wb_graph *graph, int32_t program, bool reduced) {
    wb_unit *u = &graph->units[program];
    if (u->kind != WB_UNIT_PROGRAM || (u->reduced != 0) != reduced || u->phases != 1 ||
        u->is_postponed)
        return;
    if (reduced && u->reduced & 1) return;
    for (int64_t m = u->member_count - 1; m >= 0; m--) {
        const wb_value *v = &graph->values[u->members[m]];
        for (int i = v->ninputs - 1; i >= 0; i--) {
            const int32_t input = wb_value_inputs(v)[i];
            const wb_value *x = &graph->values[input];
            const int32_t call = wb_value_unit(graph, input);
            if (x->kind != WB_VALUE_CALL || !takes_epilogue(x, reduced) || !same_domain(u, x))
                continue;
            wb_unit *c = &graph->units[call];
            if (c->epilogue >= 0 || !only_waits_for(graph, program, call)) continue;
            c->epilogue = program;
            u->fused_into = call;
            return;
        }
    }
}

static void find_epilogues(wb_graph *graph) {
    if (!graph->fuse) return;
    for (int64_t i = 0; i < graph->unit_count; i++)
        graph->units[i].high = INT32_MAX; /* fused pairs know no order */
    for (int reduced = 0; reduced <= graph->tape->device->info.fuses_backward; reduced++)
        for (int64_t i = graph->unit_count - 1; i >= 0; i--)
            if (is_live(&graph->units[i])) fuse_behind(graph, (int32_t)i, reduced);
}

bool wb_is_private(const wb_graph *graph, int32_t call, int32_t reader) {
    if (graph->values[call].output >= 0) return false;
    for (int32_t n = 0; n < graph->unit_count; n++) {
        const wb_unit *u = &graph->units[n];
        for (int64_t m = 0; m < u->member_count && n != reader; m++) {
            const wb_value *v = &graph->values[u->members[m]];
            for (int i = 0; i < v->ninputs; i++)
                if (wb_value_base(graph, wb_value_inputs(v)[i]) == call) return false;
        }
    }
    return true;
}

/* ---- donation ---- */

static int32_t runs_with(const wb_graph *graph, int32_t unit) {
    return unit >= 0 && graph->units[unit].fused_into >= 0 ? graph->units[unit].fused_into : unit;
}

static bool add_after(wb_graph *graph, int32_t unit, int32_t before) {
    wb_unit *u = &graph->units[unit];
    if (!WB_GROW(u->after, u->after_count, u->after_capacity)) return false;
    u->after[u->after_count++] = before;
    return true;
}

/* Lists the units, other than `writer`, that read the memory of leaf. False: one of them cannot run
 * before the writer. */
static bool readers_come_first(wb_graph *graph, int32_t leaf, int32_t writer, bool apply) {
    for (int32_t n = 0; n < graph->count; n++) {
        const wb_value *v = &graph->values[n];
        if (v->kind == WB_VALUE_VIEW && v->base != n) continue; /* reads nothing itself */
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t input = wb_value_inputs(v)[i];
            if (wb_value_base(graph, input) != leaf) continue;
            const int32_t reader = runs_with(graph, wb_value_unit(graph, n));
            if (reader < 0 || reader == writer) continue;
            if (apply ? !add_after(graph, writer, reader) : wb_unit_depends(graph, reader, writer))
                return false;
        }
    }
    return true;
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
    const wb_value *v = &graph->values[graph->units[call].members[0]];
    for (int i = 0; i < v->ninputs; i++)
        if (wb_value_base(graph, wb_value_inputs(v)[i]) == leaf) return true;
    return false;
}

static int32_t find_donor(wb_graph *graph, const wb_unit *u, int32_t writer, const wb_value *output,
                          const bool *taken) {
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &graph->values[u->members[m]];
        for (int i = 0; i < v->ninputs; i++) {
            const int32_t leaf = wb_value_inputs(v)[i];
            const wb_value *x = &graph->values[leaf];
            if (x->kind != WB_VALUE_LEAF || taken[x->memory]) continue;
            if (!(graph->tape->marks[x->tape] & WB_TAPE_DONATED) ||
                !read_alike(graph, u, leaf, output))
                continue;
            if (graph->units[writer].kind == WB_UNIT_CALL && call_reads(graph, writer, leaf))
                continue;
            if (readers_come_first(graph, leaf, writer, false)) return leaf;
        }
    }
    return -1;
}

/* True if the unit reads nothing at an element after it has written v there: later phases would. */
static bool is_written_last(const wb_unit *u, const wb_value *v) {
    return !u->reduced || (!wb_value_is_row(u, v) && v->phase == u->phases - 1);
}

/* A leaf that a result shows, as a view of it, is needed beyond the plan. */
static void take_shown_leaves(const wb_graph *graph, bool *taken) {
    for (int64_t i = 0; i < graph->tape->count; i++) {
        if (!(graph->tape->marks[i] & WB_TAPE_STORED) || graph->of_tape[i] < 0) continue;
        const wb_value *base = &graph->values[wb_value_base(graph, graph->of_tape[i])];
        if (base->kind == WB_VALUE_LEAF) taken[base->memory] = true;
    }
}

/* Outputs take over the buffers of leaves that nobody needs any more. */
static bool donate(wb_graph *graph) {
    bool *taken = wb_alloc(sizeof *taken * (size_t)(graph->leaf_count + 1));
    bool done = taken != NULL;
    if (done) take_shown_leaves(graph, taken);
    for (int32_t o = 0; done && o < graph->output_count; o++) {
        wb_value *v = &graph->values[graph->outputs[o]];
        const int32_t unit = wb_value_unit(graph, graph->outputs[o]);
        const wb_unit *u = unit >= 0 ? &graph->units[unit] : NULL;
        int32_t donor = -1;
        const int32_t writer = runs_with(graph, unit);
        if (u && u->kind == WB_UNIT_PROGRAM && is_written_last(u, v))
            donor = find_donor(graph, u, writer, v, taken);
        if (donor >= 0) {
            taken[graph->values[donor].memory] = true;
            v->memory = graph->values[donor].memory;
            done = readers_come_first(graph, donor, writer, true);
        } else
            v->memory = graph->leaf_count + o;
    }
    wb_release(taken);
    return done;
}

static void count_missed(wb_graph *graph) {
    for (int64_t i = 0; i < graph->tape->count; i++) {
        if (!(graph->tape->marks[i] & WB_TAPE_SETTLED) || graph->of_tape[i] < 0) continue;
        const wb_value *v = &graph->values[wb_value_base(graph, graph->of_tape[i])];
        if (v->memory < graph->leaf_count || bytes_of(v) == 0) continue;
        graph->missed_donations++;
        if (graph->explain)
            wb_log_always("plan: no buffer to take over for %s %s", wb_op_name((wb_op)v->op),
                          wb_sizes_text(v->ndim, v->sizes));
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

static bool push_members(sorter *s, const wb_unit *u) {
    for (int64_t m = u->member_count - 1; m >= 0; m--) {
        const wb_value *v = &s->graph->values[u->members[m]];
        for (int i = v->ninputs - 1; i >= 0; i--)
            if (!push(s, runs_with(s->graph, wb_value_unit(s->graph, wb_value_inputs(v)[i]))))
                return false;
    }
    return true;
}

static bool push_needed(sorter *s, int32_t unit) {
    const wb_unit *u = &s->graph->units[unit];
    for (int64_t i = 0; i < u->after_count; i++)
        if (!push(s, runs_with(s->graph, u->after[i]))) return false;
    if (u->epilogue >= 0 && !push_members(s, &s->graph->units[u->epilogue])) return false;
    return push_members(s, u);
}

static bool visit(sorter *s, int32_t unit) {
    if (!push(s, unit)) return false;
    while (s->depth > 0) {
        const int32_t top = s->stack[s->depth - 1];
        if (s->state[top] == 0) {
            s->state[top] = 1;
            if (!push_needed(s, top)) return false;
            continue;
        }
        s->depth--;
        if (s->state[top] == 2) continue;
        s->state[top] = 2;
        s->graph->units[top].position = (int32_t)s->graph->order_count;
        s->graph->order[s->graph->order_count++] = top;
    }
    return true;
}

static bool order_units(wb_graph *graph) {
    sorter s = {.graph = graph, .state = wb_alloc((size_t)graph->unit_count + 1)};
    graph->order = wb_alloc(sizeof *graph->order * (size_t)(graph->unit_count + 1));
    int64_t postponed_count;
    wb_unit **postponed = wb_graph_postponed(graph, &postponed_count);
    bool ordered = s.state && graph->order && postponed;
    for (int32_t i = 0; ordered && i < graph->unit_count; i++) {
        const wb_unit *u = &graph->units[i];
        if (is_live(u) && u->fused_into < 0 && !u->is_postponed) ordered = visit(&s, i);
    }
    for (int64_t i = 0; ordered && i < postponed_count; i++)
        ordered = visit(&s, (int32_t)(postponed[i] - graph->units));
    wb_release(postponed);
    wb_release(s.stack);
    wb_release(s.state);
    for (int64_t i = 0; i < graph->unit_count; i++) {
        wb_unit *u = &graph->units[i];
        if (u->fused_into >= 0) u->position = graph->units[u->fused_into].position;
    }
    return ordered;
}

/* ---- workspace ---- */

typedef struct block {
    int64_t offset, size;
    int32_t until; /* position of the last reader */
} block;

typedef struct lifetime {
    int32_t value, from, until;
} lifetime;

static int by_start(const void *a, const void *b) {
    const lifetime *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                              : (x->value > y->value) - (x->value < y->value);
}

static bool needs_workspace(const wb_graph *graph, int32_t n) {
    const wb_value *v = &graph->values[n];
    return v->stored && v->kind != WB_VALUE_LEAF && v->base == n && v->output < 0 &&
           wb_value_unit(graph, n) >= 0;
}

/* First gap between the blocks in use, which are kept in order of their offsets. */
static bool place_block(block **blocks, int64_t *count, int64_t *capacity, const lifetime *life,
                        int64_t size, int64_t *offset) {
    int64_t kept = 0;
    for (int64_t i = 0; i < *count; i++)
        if ((*blocks)[i].until >= life->from) (*blocks)[kept++] = (*blocks)[i];
    *count = kept;
    int64_t at = 0, place = 0;
    for (; place < *count && (*blocks)[place].offset - at < size; place++)
        at = (*blocks)[place].offset + (*blocks)[place].size;
    if (!WB_GROW(*blocks, *count, *capacity)) return false;
    memmove(*blocks + place + 1, *blocks + place, sizeof **blocks * (size_t)(*count - place));
    (*blocks)[place] = (block){at, size, life->until};
    (*count)++;
    *offset = at;
    return true;
}

/* Masks are numbered behind the values. */
static lifetime *lifetimes(const wb_graph *graph, int64_t *count) {
    lifetime *lives = wb_alloc(sizeof *lives * (size_t)(graph->count + graph->mask_count + 1));
    int32_t *last = wb_alloc(sizeof *last * (size_t)(graph->count + 1));
    *count = 0;
    for (int32_t n = 0; lives && last && n < graph->count; n++) {
        const wb_value *v = &graph->values[n];
        const int32_t unit = wb_value_unit(graph, n);
        if (v->base == n && unit >= 0)
            for (int i = 0; i < v->ninputs; i++) {
                int32_t *l = &last[wb_value_base(graph, wb_value_inputs(v)[i])];
                if (graph->units[unit].position > *l) *l = graph->units[unit].position;
            }
    }
    for (int32_t n = 0; lives && last && n < graph->count; n++) {
        if (!needs_workspace(graph, n)) continue;
        const int32_t from = graph->units[wb_value_unit(graph, n)].position;
        lives[(*count)++] = (lifetime){n, from, last[n] > from ? last[n] : from};
    }
    for (int64_t i = 0; lives && last && i < graph->mask_count; i++)
        lives[(*count)++] =
            (lifetime){(int32_t)(graph->count + i), graph->units[graph->masks[i].from].position,
                       graph->units[graph->masks[i].to].position};
    wb_release(last);
    if (!last) {
        wb_release(lives);
        return NULL;
    }
    return lives;
}

/* Where to write down what is placed, and how large it is. */
static int64_t *place_of(wb_graph *graph, int32_t number, int64_t *size) {
    if (number >= graph->count) {
        wb_mask *mask = &graph->masks[number - graph->count];
        *size = wb_mask_bytes(graph, mask);
        return &mask->offset_bytes;
    }
    wb_value *v = &graph->values[number];
    *size = bytes_of(v);
    v->memory = graph->leaf_count + graph->output_count;
    return &v->offset_bytes;
}

static bool place_workspace(wb_graph *graph) {
    int64_t count, block_count = 0, block_capacity = 0;
    block *blocks = NULL;
    lifetime *lives = lifetimes(graph, &count);
    bool placed = lives != NULL;
    if (placed) qsort(lives, (size_t)count, sizeof *lives, by_start);
    for (int64_t i = 0; placed && i < count; i++) {
        int64_t bytes, *offset = place_of(graph, lives[i].value, &bytes);
        const int64_t size = rounded(bytes) + ALIGNMENT;
        placed = place_block(&blocks, &block_count, &block_capacity, &lives[i], size, offset);
        if (placed && *offset + size > graph->workspace_bytes)
            graph->workspace_bytes = *offset + size;
    }
    wb_release(blocks);
    wb_release(lives);
    return placed;
}

bool wb_graph_place(wb_graph *graph) {
    if (!number_leaves(graph)) return false;
    number_outputs(graph);
    if (!wb_graph_find_updates(graph)) return false;
    find_epilogues(graph);
    if (!donate(graph)) return false;
    count_missed(graph);
    return order_units(graph) && wb_graph_find_masks(graph) && place_workspace(graph);
}
