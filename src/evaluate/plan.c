/* The finished plan: kernels and commands in order. */
#include <stdlib.h>
#include <string.h>

#include "array/origin.h"
#include "base/events.h"
#include "base/memory.h"
#include "evaluate/plan.h"

typedef struct builder {
    wb_graph graph;
    wb_plan *plan;
    const wb_backend *backend;
    int64_t command_capacity, argument_count, argument_capacity, offset_capacity, pause_capacity;
    int64_t *first_argument; /* of each command: arguments[] moves while it grows */
    int64_t first_capacity, source_capacity, cost_capacity;
    int32_t *tape_of; /* of each value, its place on the tape, or -1; NULL: nobody asks */
    int64_t scratch_bytes, kept_bytes;
    int64_t keeper_capacity;
    wb_kernels kernels;
    /* collectives that were begun and not waited for: units' results, in order */
    int32_t *under_way;
    int64_t under_way_count, under_way_capacity;
} builder;

static bool enabled(const char *variable) {
    const char *text = getenv(variable);
    return !text || strcmp(text, "0") != 0;
}

/* ---- commands ---- */

static bool add_arguments(builder *b, const wb_argument *arguments, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!WB_GROW(b->plan->arguments, b->argument_count, b->argument_capacity)) return false;
        b->plan->arguments[b->argument_count++] = arguments[i];
    }
    return true;
}

/* Behind the arrays of the workspace, and aligned for any library. */
static int64_t scratch_offset(const wb_graph *graph) {
    return (graph->workspace_bytes + WB_SCRATCH_ALIGNMENT - 1) / WB_SCRATCH_ALIGNMENT *
           WB_SCRATCH_ALIGNMENT;
}

static wb_argument scratch_argument(const builder *b) {
    return (wb_argument){.memory = (uint32_t)(b->graph.leaf_count + b->graph.output_count),
                         .offset_bytes = scratch_offset(&b->graph)};
}

static int64_t aligned(int64_t bytes) {
    return (bytes + WB_SCRATCH_ALIGNMENT - 1) / WB_SCRATCH_ALIGNMENT * WB_SCRATCH_ALIGNMENT;
}

/* What a kernel wants; negative with an error where no memory has so much. */
static int64_t wanted_of(size_t bytes) {
    const int64_t wanted = bytes > PTRDIFF_MAX ? INT64_MAX : (int64_t)bytes;
    return wb_check_bytes(wanted) ? wanted : -1;
}

/* The next command's place for what it keeps, if it does. */
static bool add_kept(builder *b, void *kernel) {
    wb_plan *plan = b->plan;
    const int64_t bytes = b->backend->prepare ? wanted_of(b->backend->kept_bytes(kernel)) : 0;
    if (bytes == 0) return true;
    int64_t count = plan->keeper_count;
    if (!WB_GROW(plan->keepers, count, b->keeper_capacity)) return false;
    plan->keepers[plan->keeper_count++] = (wb_command){.narguments = plan->command_count};
    const wb_argument kept = {.memory = scratch_argument(b).memory + 1,
                              .offset_bytes = b->kept_bytes};
    b->kept_bytes = wb_plus(b->kept_bytes, aligned(bytes));
    return wb_check_bytes(b->kept_bytes) && add_arguments(b, &kept, 1);
}

/* In a body: behind the memory that all commands share. */
static void place_in_workspace(builder *b) {
    const wb_plan *plan = b->plan;
    const wb_argument scratch = scratch_argument(b);
    const int64_t first = scratch.offset_bytes + aligned(b->scratch_bytes);
    for (int32_t i = 0; i < plan->keeper_count; i++) {
        const wb_command *command = &plan->keepers[i];
        wb_argument *kept =
            &plan->arguments[command->arguments - plan->arguments + command->narguments - 2];
        kept->memory = scratch.memory, kept->offset_bytes += first;
    }
    b->scratch_bytes = wb_plus(aligned(b->scratch_bytes), b->kept_bytes);
}

/* Else in memory of the plan's own. */
static bool place_apart(builder *b) {
    wb_plan *plan = b->plan;
    plan->kept = wb_alloc(sizeof *plan->kept * (size_t)plan->keeper_count);
    plan->kept_memory = plan->kept ? wb_device_alloc(plan->device, wb_bytes(b->kept_bytes)) : NULL;
    if (!plan->kept_memory) return false;
    plan->kept_bytes = (size_t)b->kept_bytes;
    for (int32_t i = 0; i < plan->keeper_count; i++) /* the weights of a convolution */
        plan->kept[i].leaf = (int32_t)plan->keepers[i].arguments[1].memory;
    return true;
}

static bool place_kept(builder *b) {
    wb_plan *plan = b->plan;
    if (plan->keeper_count == 0) return true;
    for (int32_t i = 0; i < plan->keeper_count; i++)
        plan->keepers[i] = plan->commands[plan->keepers[i].narguments];
    if (!b->graph.tape->body) return place_apart(b);
    place_in_workspace(b);
    return true;
}

/* The kernel's scratch memory is the last argument, shared by all commands. */
static bool add_command(builder *b, void *kernel, const wb_argument *arguments, int64_t count,
                        const wb_emitted *epilogue, const char *what) {
    wb_plan *plan = b->plan;
    const int64_t first = b->argument_count;
    const wb_argument scratch = scratch_argument(b);
    if (!kernel) return false;
    int64_t commands = plan->command_count;
    if (!WB_GROW(plan->commands, commands, b->command_capacity) ||
        !WB_GROW(b->first_argument, commands, b->first_capacity))
        return false;
    if (!add_arguments(b, arguments, count) ||
        (epilogue && !add_arguments(b, epilogue->arguments, epilogue->argument_count)) ||
        !add_kept(b, kernel) || !add_arguments(b, &scratch, 1))
        return false;
    const int64_t wanted = wanted_of(b->backend->scratch_bytes(kernel));
    if (wanted < 0) return false;
    if (wanted > b->scratch_bytes) b->scratch_bytes = wanted;
    b->first_argument[plan->command_count] = first;
    plan->commands[plan->command_count++] = (wb_command){
        .kernel = kernel, .narguments = (int32_t)(b->argument_count - first), .what = what};
    return true;
}

/* Of the last command, which does the call, the program, or both. */
static bool note_cost(builder *b, const wb_call *call, const wb_emitted *emitted) {
    const int64_t last = b->plan->command_count - 1;
    if (!b->tape_of) return true;
    if (!WB_GROW(b->plan->costs, last, b->cost_capacity)) return false;
    b->plan->costs[last] = wb_cost_of_command(call, emitted ? &emitted->program : NULL);
    return true;
}

static bool add_program(builder *b, wb_emitted *emitted, const char *what) {
    void *kernel = wb_kernel_of_program(&b->kernels, b->plan->device, &emitted->program);
    const bool added =
        add_command(b, kernel, emitted->arguments, emitted->argument_count, NULL, what) &&
        note_cost(b, NULL, emitted);
    wb_emitted_release(emitted);
    return added;
}

static const char *name_of(const builder *b, const wb_unit *u) {
    return wb_op_name((wb_op)b->graph.values[u->members[u->member_count - 1]].op);
}

static bool plan_program(builder *b, const wb_unit *u) {
    wb_emitted emitted;
    if (!wb_emit_program(&b->graph, u, 0, &emitted)) return false;
    emitted.program.is_update = u->is_update;
    return add_program(b, &emitted, name_of(b, u));
}

static bool keep_offsets(builder *b, int64_t *offsets) {
    if (!offsets) return true;
    int64_t count = b->plan->offset_count;
    if (!WB_GROW(b->plan->offsets, count, b->offset_capacity)) {
        wb_release(offsets);
        return false;
    }
    b->plan->offsets[b->plan->offset_count++] = offsets;
    return true;
}

/* Leading dimensions of the result that make up the rows of a call: m, or the positions of a
 * plane. */
static int rows_of(const wb_value *v) { return v->op == WB_OP_matmul ? 1 : v->ndim - 2; }

/* A leaf begins anywhere, and so does the result of a body: one step of many. */
static bool is_aligned(const builder *b, const wb_argument *a) {
    const int32_t outputs = b->graph.tape->body ? b->graph.output_count : 0;
    return a->memory >= (uint32_t)(b->graph.leaf_count + outputs) && a->offset_bytes % 64 == 0;
}

static bool same_place(const wb_argument *a, const wb_argument *b) {
    return a->memory == b->memory && a->offset_bytes == b->offset_bytes;
}

/* What the backend may know of the program behind the call; result is the call's. */
static void tell_result(const builder *b, const wb_unit *u, const wb_argument *result,
                        const wb_emitted *epilogue, wb_call *call) {
    call->is_result_private = wb_is_private(&b->graph, u->members[0], u->epilogue);
    call->aligned_arguments = 0;
    for (int64_t i = 0; i < epilogue->argument_count; i++) {
        const wb_argument *a = &epilogue->arguments[i];
        if (same_place(a, result)) call->result_argument = (uint16_t)i;
        if (is_aligned(b, a) && i < 64) call->aligned_arguments |= (uint64_t)1 << i;
    }
}

/* The call with its program behind it. NULL: the backend does not fuse here, or an error is
 * recorded. */
static void *lower_fused(builder *b, const wb_unit *u, wb_call *call, const wb_argument *result,
                         wb_emitted *emitted) {
    const wb_value *v = &b->graph.values[u->members[0]];
    if (!wb_emit_program(&b->graph, &b->graph.units[u->epilogue], rows_of(v), emitted)) return NULL;
    tell_result(b, u, result, emitted, call);
    void *kernel =
        wb_kernel_of_call(&b->kernels, b->plan->device, call, &emitted->program, emitted->split);
    if (!kernel) wb_emitted_release(emitted);
    return kernel;
}

static bool call_with_epilogue(builder *b, const wb_unit *u, wb_call *call, wb_argument *arguments,
                               int count) {
    const wb_value *v = &b->graph.values[u->members[0]];
    const char *what = wb_index_name((wb_op)v->op, v->attributes);
    wb_emitted emitted;
    const wb_argument result = wb_argument_of(&b->graph, u->members[0]);
    void *kernel = u->epilogue < 0 ? NULL : lower_fused(b, u, call, &result, &emitted);
    if (kernel) {
        const bool added = add_command(b, kernel, arguments, count, &emitted, what) &&
                           note_cost(b, call, &emitted);
        wb_emitted_release(&emitted);
        return added;
    }
    if (wb_failed()) return false;
    /* the backend does not fuse here: one after the other */
    kernel = wb_kernel_of_call(&b->kernels, b->plan->device, call, NULL, 0);
    return add_command(b, kernel, arguments, count, NULL, what) && note_cost(b, call, NULL) &&
           (u->epilogue < 0 || plan_program(b, &b->graph.units[u->epilogue]));
}

static bool copy_base(builder *b, int32_t number) {
    const wb_value *v = &b->graph.values[number];
    const wb_layout layout = wb_value_layout(&b->graph, v);
    wb_emitted emitted;
    return wb_emit_copy(&b->graph, v->small_inputs[0], number, &layout, &emitted) &&
           add_program(b, &emitted, "copy");
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* NULL when out of memory. */
static wb_plan_pause *add_pause(builder *b, int32_t number) {
    wb_plan *plan = b->plan;
    int64_t count = plan->pause_count;
    if (!WB_GROW(plan->pauses, count, b->pause_capacity)) return NULL;
    wb_plan_pause *pause = &plan->pauses[plan->pause_count++];
    *pause = (wb_plan_pause){.before = plan->command_count, .tape = b->graph.values[number].tape};
    return pause;
}

static bool plan_scan(builder *b, int32_t number) {
    wb_plan *plan = b->plan;
    wb_plan_pause *pause = add_pause(b, number);
    int64_t wanted;
    if (!pause || !wb_scan_plan(&b->graph, number, scratch_argument(b), &pause->scan, &wanted))
        return false;
    if (wanted > b->scratch_bytes) b->scratch_bytes = wanted;
    const wb_plan *body = pause->scan.body;
    const int64_t entries = body->leaf_count + body->output_count + 1;
    plan->body_entries = larger(plan->body_entries, entries + body->body_entries);
    plan->body_late = larger(plan->body_late, body->late_count + body->body_late);
    plan->checks_indices = plan->checks_indices || body->checks_indices;
    return true;
}

/* ---- collectives ----
 *
 * A collective begins where its input is ready, and the plan waits for it, and so for those before
 * it, where somebody reads its result, and before anything is written in place. */

/* Waits until the first `count` of those under way are done. */
static bool wait_for_first(builder *b, int64_t count) {
    if (count == 0) return true;
    wb_plan *plan = b->plan;
    wb_plan_pause *last = &plan->pauses[plan->pause_count - 1];
    const int64_t left = b->under_way_count - count;
    if (b->under_way_count == 1 && last->is_begun && last->before == plan->command_count) {
        last->is_begun = false; /* nothing goes on meanwhile */
    } else {
        const int32_t number = b->under_way[0];
        wb_plan_pause *pause = add_pause(b, number);
        if (!pause) return false;
        pause->is_wait = true, pause->left = (int32_t)left;
    }
    memmove(b->under_way, b->under_way + count, sizeof *b->under_way * (size_t)left);
    b->under_way_count = left;
    return true;
}

/* How many of those under way have to be done before the value is read. */
static int64_t waits_of(const builder *b, int32_t value) {
    const int32_t base = wb_value_base(&b->graph, value);
    if (b->graph.values[base].op != WB_OP_collective) return 0;
    for (int64_t i = b->under_way_count; i > 0; i--)
        if (b->under_way[i - 1] == base) return i;
    return 0;
}

static int64_t waits_of_unit(const builder *b, const wb_unit *u) {
    int64_t wanted = 0;
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &b->graph.values[u->members[m]];
        const int32_t base = wb_value_base(&b->graph, u->members[m]);
        const bool in_place = v->stored && b->graph.values[base].memory < b->graph.leaf_count;
        if (in_place) return b->under_way_count;
        /* the second operand of a collective is the one before it, for the order alone */
        const int inputs = v->op == WB_OP_collective ? 1 : v->ninputs;
        for (int i = 0; i < inputs; i++)
            wanted = larger(wanted, waits_of(b, wb_value_inputs(v)[i]));
    }
    return wanted;
}

/* Before the unit runs, with the program behind it. */
static bool wait_before(builder *b, const wb_unit *u) {
    if (b->under_way_count == 0) return true;
    int64_t wanted = waits_of_unit(b, u);
    if (u->epilogue >= 0) wanted = larger(wanted, waits_of_unit(b, &b->graph.units[u->epilogue]));
    return wait_for_first(b, wanted);
}

static bool plan_collective(builder *b, int32_t number) {
    const int32_t input = b->graph.values[number].small_inputs[0];
    const wb_value *x = &b->graph.values[input];
    const int64_t offset = wb_value_layout(&b->graph, x).offset;
    wb_plan_pause *pause = add_pause(b, number);
    if (!pause) return false;
    pause->from = wb_argument_of(&b->graph, input);
    pause->from.offset_bytes += offset * (int64_t)wb_dtype_size((wb_dtype)x->dtype);
    pause->to = wb_argument_of(&b->graph, number);
    pause->is_begun = b->plan->has_collectives = true;
    if (!WB_GROW(b->under_way, b->under_way_count, b->under_way_capacity)) return false;
    b->under_way[b->under_way_count++] = number;
    return true;
}

static bool plan_call(builder *b, const wb_unit *u) {
    const int32_t number = u->members[0];
    if (b->graph.values[number].op == WB_OP_scan) return plan_scan(b, number);
    if (b->graph.values[number].op == WB_OP_collective) return plan_collective(b, number);
    wb_call call;
    wb_argument arguments[WB_CALL_ARGUMENTS];
    int count;
    int64_t *offsets = NULL;
    const wb_call_row row = wb_call_row_for(b->graph.values[number].op);
    if (row.uses & WB_CALL_BASE && !copy_base(b, number)) return false;
    if (!wb_emit_call(&b->graph, number, &call, arguments, &count, &offsets)) return false;
    call.is_aligned = true;
    for (int i = 0; i < count; i++)
        call.is_aligned = call.is_aligned && is_aligned(b, &arguments[i]);
    if (row.shape == WB_SHAPE_index && call.index.count > 0) b->plan->checks_indices = true;
    return keep_offsets(b, offsets) && call_with_epilogue(b, u, &call, arguments, count);
}

/* ---- joins ---- */

static bool copy_into(builder *b, int32_t from, int32_t to, const wb_layout *layout) {
    wb_emitted emitted;
    return wb_emit_copy(&b->graph, from, to, layout, &emitted) &&
           add_program(b, &emitted, wb_op_name((wb_op)b->graph.values[to].op));
}

static bool fill(builder *b, int32_t to, double number) {
    wb_emitted emitted;
    return wb_emit_fill(&b->graph, to, number, &emitted) && add_program(b, &emitted, "fill");
}

static bool plan_join(builder *b, int32_t number) {
    const wb_value *v = &b->graph.values[number];
    const int dim = (int)v->attributes[0];
    if (v->op == WB_OP_pad && !fill(b, number, wb_value_of(v->attributes[2]))) return false;
    if (v->op == WB_OP_slice_put && !fill(b, number, 0)) return false;
    int64_t start = v->op == WB_OP_concat ? 0 : v->attributes[1];
    const wb_layout whole = wb_value_layout(&b->graph, v);
    const int64_t step = v->op == WB_OP_slice_put ? v->attributes[2] : 1;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t from = wb_value_inputs(v)[i];
        const int64_t size = b->graph.values[from].sizes[dim];
        wb_layout part;
        wb_layout_slice(&whole, dim, start, size, step, &part);
        if (b->graph.values[from].holder != number && !copy_into(b, from, number, &part))
            return false;
        start += size;
    }
    return true;
}

static bool plan_unit(builder *b, const wb_unit *u) {
    const int32_t first = u->members[0];
    switch (u->kind) {
    case WB_UNIT_PROGRAM:
        return plan_program(b, u);
    case WB_UNIT_CALL:
        return plan_call(b, u);
    default:
        break;
    }
    const wb_value *v = &b->graph.values[first];
    if (v->kind == WB_VALUE_JOIN) return plan_join(b, first);
    const wb_value *x = &b->graph.values[v->small_inputs[0]];
    if (b->graph.values[x->base].holder == first) return true;
    const wb_layout dense = wb_layout_dense(x->ndim, x->sizes); /* the same order in x's sizes */
    return copy_into(b, v->small_inputs[0], first, &dense);
}

/* ---- what commands compute, for events ---- */

static bool list_places(builder *b) {
    const wb_graph *graph = &b->graph;
    if (!wb_are_events_told()) return true;
    b->tape_of = wb_alloc(sizeof *b->tape_of * (size_t)(graph->count + 1));
    if (!b->tape_of) return false;
    for (int64_t v = 0; v < graph->count; v++) b->tape_of[v] = -1;
    for (int32_t i = 0; i < graph->tape->count; i++)
        if (graph->of_tape[i] >= 0) b->tape_of[graph->of_tape[i]] = i;
    return true;
}

/* The last node with a layer that the unit computes, or the last node; -1: there is none. */
static int32_t source_of(const builder *b, const wb_unit *u) {
    int32_t any = -1;
    for (int64_t m = u->member_count - 1; m >= 0; m--) {
        const int32_t place = b->tape_of[u->members[m]];
        if (place >= 0 && b->graph.tape->at[place].node->origin) return place;
        if (any < 0) any = place;
    }
    return any;
}

/* Of the commands from `first` on, which are the unit's. */
static bool note_sources(builder *b, const wb_unit *u, int64_t first) {
    for (int64_t i = first; b->tape_of && i < b->plan->command_count; i++) {
        if (!WB_GROW(b->plan->sources, i, b->source_capacity)) return false;
        b->plan->sources[i] = source_of(b, u);
    }
    return true;
}

static bool plan_units(builder *b) {
    const wb_graph *graph = &b->graph;
    int64_t first = 0;
    if (!list_places(b)) return false;
    for (int64_t i = 0; i < graph->order_count; i++) {
        const int32_t command = b->plan->command_count;
        const wb_unit *u = &graph->units[graph->order[i]];
        if (!wait_before(b, u) || !plan_unit(b, u) || !note_sources(b, u, command)) return false;
        if (wb_graph_is_concurrent(graph, i, &first))
            b->plan->commands[command].is_concurrent = true;
    }
    return wait_for_first(b, b->under_way_count);
}

/* ---- results ---- */

/* The operation that the caller knows: what a macro ends in is not it. */
static const char *tag_of(const wb_array *x) {
    return wb_op_name((wb_op)(x->op == WB_OP_result ? x->inputs[0]->op : x->op));
}

static bool list_results(builder *b) {
    wb_graph *graph = &b->graph;
    wb_plan *plan = b->plan;
    const wb_tape *tape = graph->tape;
    plan->outputs = wb_alloc(sizeof *plan->outputs * (size_t)(graph->output_count + 1));
    plan->views = wb_alloc(sizeof *plan->views * (size_t)(tape->count + 1));
    if (!plan->outputs || !plan->views) return false;
    for (int32_t o = 0; o < graph->output_count; o++) {
        const wb_value *v = &graph->values[graph->outputs[o]];
        plan->outputs[plan->output_count++] = (wb_plan_output){
            .memory = v->memory,
            .is_donated = v->memory < graph->leaf_count,
            .tag = wb_op_name((wb_op)v->op),
            .size_bytes = (size_t)wb_value_count(v) * wb_dtype_size((wb_dtype)v->dtype)};
    }
    for (int32_t i = 0; i < tape->count; i++) {
        if (!(tape->at[i].marks & WB_TAPE_STORED) || graph->of_tape[i] < 0) continue;
        const int32_t n = graph->of_tape[i];
        const wb_value *base = &graph->values[wb_value_base(graph, n)];
        plan->views[plan->view_count++] = (wb_plan_view){
            .tape = i, .memory = base->memory, .layout = wb_value_layout(graph, &graph->values[n])};
        if (base == &graph->values[n] && base->output >= 0)
            plan->outputs[base->output].tag = tag_of(tape->at[i].node);
    }
    return true;
}

/* Of a body: which output holds each result. */
static bool list_body_results(builder *b, const wb_body *body) {
    const wb_graph *graph = &b->graph;
    b->plan->results = wb_alloc(sizeof *b->plan->results * (size_t)(body->nresults + 1));
    if (!b->plan->results) return false;
    for (int32_t r = 0; r < body->nresults; r++) {
        const int32_t value = graph->of_tape[body->results[r]->index];
        b->plan->results[r] = graph->values[wb_value_base(graph, value)].output;
    }
    return true;
}

/* ---- the whole ---- */

static bool build(builder *b, const wb_tape *tape, bool fuse) {
    wb_graph *graph = &b->graph;
    graph->fuse = fuse;
    graph->explain = wb_plan_is_explained();
    if (!wb_graph_lower(graph, tape) || !wb_graph_separate(graph) ||
        !wb_graph_list_readers(graph) || !wb_graph_fuse(graph) || !wb_graph_place(graph) ||
        !wb_graph_check(graph))
        return false;
    wb_plan *plan = b->plan;
    if (!plan_units(b) || !list_results(b) || (tape->body && !list_body_results(b, tape->body)) ||
        !wb_kernels_hand_over(&b->kernels, &plan->kernels, &plan->kernel_count))
        return false;
    for (int32_t i = 0; i < plan->command_count; i++)
        plan->commands[i].arguments = plan->arguments + b->first_argument[i];
    if (!place_kept(b)) return false;
    const int64_t workspace = wb_plus(scratch_offset(graph), b->scratch_bytes);
    if (!wb_check_bytes(workspace)) return false;
    plan->workspace_bytes = (size_t)workspace;
    plan->leaf_count = graph->leaf_count, plan->late_count = graph->late_count;
    plan->leaves = graph->leaves, plan->late = graph->late;
    graph->leaves = graph->late = NULL;
    plan->missed_donations = graph->missed_donations;
    if (graph->explain) wb_plan_explain(graph, plan);
    return true;
}

static bool copy_key(wb_plan *plan, const wb_tape *tape, uint64_t hash) {
    plan->hash = hash;
    plan->words = tape->words;
    plan->key = wb_alloc(sizeof *plan->key * (size_t)(tape->words + 1));
    if (plan->key) memcpy(plan->key, tape->key, sizeof *plan->key * (size_t)tape->words);
    return plan->key != NULL;
}

static size_t bytes_of_pauses(const wb_plan *plan) {
    size_t bytes = sizeof *plan->pauses * (size_t)plan->pause_count;
    for (int32_t i = 0; i < plan->pause_count; i++) {
        const wb_plan *body = plan->pauses[i].scan.body;
        const int32_t entries = body ? body->leaf_count + body->output_count + 1 : 0;
        bytes += sizeof *plan->pauses->scan.places * (size_t)entries;
    }
    return bytes;
}

/* What the plan holds in memory. A backend's kernels are not asked: they are taken to be of the
 * size of the CPU's. */
static size_t bytes_of_plan(const builder *b) {
    enum { KERNEL = 3072, INSTRUCTION = 128, ACCESS = 96 };
    const wb_plan *plan = b->plan;
    const int64_t kernels = plan->kernel_count * KERNEL +
                            b->kernels.instruction_count * INSTRUCTION +
                            b->kernels.access_count * ACCESS;
    return sizeof *plan + (size_t)kernels + sizeof *plan->key * (size_t)plan->words +
           sizeof *plan->commands * (size_t)b->command_capacity +
           sizeof *plan->arguments * (size_t)b->argument_capacity +
           sizeof *plan->views * (size_t)plan->view_count +
           sizeof *plan->outputs * (size_t)plan->output_count +
           3 * sizeof *plan->leaves * (size_t)b->graph.count + bytes_of_pauses(plan);
}

/* Everything of the plan but its key. */
static void release_parts(wb_plan *plan) {
    const wb_backend *backend = plan->device->backend;
    for (int64_t i = 0; i < plan->kernel_count; i++) backend->release(plan->kernels[i]);
    wb_release(plan->kernels);
    for (int32_t i = 0; i < plan->offset_count; i++) wb_release(plan->offsets[i]);
    wb_release(plan->offsets);
    wb_release(plan->commands);
    wb_release(plan->keepers);
    wb_release(plan->kept);
    wb_device_free(plan->device, plan->kept_memory, plan->kept_bytes);
    wb_release(plan->sources);
    wb_release(plan->costs);
    wb_release(plan->arguments);
    wb_release(plan->outputs);
    wb_release(plan->views);
    wb_release(plan->leaves);
    wb_release(plan->late);
    for (int32_t i = 0; i < plan->pause_count; i++) wb_scan_release(&plan->pauses[i].scan);
    wb_release(plan->pauses);
    wb_release(plan->results);
}

static void release_build(builder *b) {
    wb_kernels_end(&b->kernels, b->backend);
    wb_graph_release(&b->graph);
    wb_release(b->first_argument);
    wb_release(b->under_way);
    wb_release(b->tape_of);
}

/* The plan without fusion, after one with it asked too much of the backend's kernels. */
static bool build_again(builder *b, const wb_tape *tape) {
    wb_plan *plan = b->plan;
    release_build(b);
    release_parts(plan);
    *plan = (wb_plan){.refs = 1,
                      .hash = plan->hash,
                      .key = plan->key,
                      .words = plan->words,
                      .device = plan->device};
    *b = (builder){.plan = plan, .backend = b->backend};
    return build(b, tape, false);
}

wb_plan *wb_plan_new(const wb_tape *tape, uint64_t hash) {
    wb_plan *plan = wb_alloc(sizeof *plan);
    if (!plan) return NULL;
    plan->refs = 1;
    plan->device = tape->device;
    builder b = {.plan = plan, .backend = plan->device->backend};
    bool built = copy_key(plan, tape, hash) && build(&b, tape, enabled("WEBER_FUSE"));
    if (!built && plan->key && !wb_failed()) built = build_again(&b, tape);
    if (built) plan->size_bytes = bytes_of_plan(&b);
    release_build(&b);
    if (built) return plan;
    wb_plan_unref(plan);
    return NULL;
}

void wb_plan_unref(wb_plan *plan) {
    if (!plan || --plan->refs > 0) return;
    release_parts(plan);
    wb_release(plan->key);
    wb_release(plan);
}
