/* The units of a plan as commands, in order, and what the host does between them.
 *
 * Reads the graph. Writes the plan's commands, their arguments, costs and sources, what they keep,
 * and pauses. */
#include <string.h>

#include "array/origin.h"
#include "base/memory.h"
#include "evaluate/builder.h"

/* ---- commands ---- */

static bool add_arguments(wb_builder *b, const wb_argument *arguments, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!WB_GROW(b->plan->arguments, b->argument_count, b->argument_capacity)) return false;
        b->plan->arguments[b->argument_count++] = arguments[i];
    }
    return true;
}

/* The scratch memory that a kernel needs; negative, with an error, if no memory is that large. */
static int64_t wanted_of(size_t bytes) {
    const int64_t wanted = bytes > PTRDIFF_MAX ? INT64_MAX : (int64_t)bytes;
    return wb_check_bytes(wanted) ? wanted : -1;
}

/* Adds a place for what the next command keeps, if it keeps anything. */
static bool add_kept(wb_builder *b, void *kernel) {
    wb_plan *plan = b->plan;
    const int64_t bytes = b->backend->prepare ? wanted_of(b->backend->kept_bytes(kernel)) : 0;
    if (bytes == 0) return true;
    int64_t count = plan->keeper_count;
    if (!WB_GROW(plan->keepers, count, b->keeper_capacity)) return false;
    plan->keepers[plan->keeper_count++] = (wb_command){.narguments = plan->command_count};
    const wb_argument kept = {.memory = wb_scratch_argument(b).memory + 1,
                              .offset_bytes = b->kept_bytes};
    b->kept_bytes = wb_plus(b->kept_bytes, wb_scratch_aligned(bytes));
    return wb_check_bytes(b->kept_bytes) && add_arguments(b, &kept, 1);
}

/* The kernel's scratch memory is the last argument, shared by all commands. */
static bool add_command(wb_builder *b, void *kernel, const wb_argument *arguments, int64_t count,
                        const wb_emitted *epilogue, const char *what) {
    wb_plan *plan = b->plan;
    const int64_t first = b->argument_count;
    const wb_argument scratch = wb_scratch_argument(b);
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
static bool note_cost(wb_builder *b, const wb_call *call, const wb_emitted *emitted) {
    const int64_t last = b->plan->command_count - 1;
    if (!b->tape_of) return true;
    if (!WB_GROW(b->plan->costs, last, b->cost_capacity)) return false;
    b->plan->costs[last] = wb_cost_of_command(call, emitted ? &emitted->program : NULL);
    return true;
}

static bool add_program(wb_builder *b, wb_emitted *emitted, const char *what) {
    void *kernel = wb_kernel_of_program(&b->kernels, b->plan->device, &emitted->program);
    const bool added =
        add_command(b, kernel, emitted->arguments, emitted->argument_count, NULL, what) &&
        note_cost(b, NULL, emitted);
    wb_emitted_release(emitted);
    return added;
}

static const char *name_of(const wb_builder *b, const wb_unit *u) {
    return wb_op_name((wb_op)b->graph.values[u->members[u->member_count - 1]].op);
}

static bool plan_program(wb_builder *b, const wb_unit *u) {
    wb_emitted emitted;
    if (!wb_emit_program(&b->graph, b->places, u, 0, &emitted)) return false;
    emitted.program.is_update = u->is_update;
    return add_program(b, &emitted, name_of(b, u));
}

static bool keep_offsets(wb_builder *b, int64_t *offsets) {
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

/* Leaves may begin at any address, and so may results of a body, which are one step of many. */
static bool is_aligned(const wb_builder *b, const wb_argument *a) {
    const int32_t outputs = b->graph.tape->body ? b->graph.places.output_count : 0;
    return a->memory >= (uint32_t)(b->graph.places.leaf_count + outputs) &&
           a->offset_bytes % 64 == 0;
}

static bool same_place(const wb_argument *a, const wb_argument *b) {
    return a->memory == b->memory && a->offset_bytes == b->offset_bytes;
}

/* Tells the backend about the call's epilogue; result is the value of the call. */
static void tell_result(const wb_builder *b, const wb_unit *u, const wb_argument *result,
                        const wb_emitted *epilogue, wb_call *call) {
    call->is_result_private = wb_is_private(&b->graph, u->members[0], u->epilogue);
    call->aligned_arguments = 0;
    for (int64_t i = 0; i < epilogue->argument_count; i++) {
        const wb_argument *a = &epilogue->arguments[i];
        if (same_place(a, result)) call->result_argument = (uint16_t)i;
        if (is_aligned(b, a) && i < 64) call->aligned_arguments |= (uint64_t)1 << i;
    }
}

/* The call with its epilogue. NULL: the backend does not fuse here, or an error is recorded. */
static void *lower_fused(wb_builder *b, const wb_unit *u, wb_call *call, const wb_argument *result,
                         wb_emitted *emitted) {
    const wb_value *v = &b->graph.values[u->members[0]];
    if (!wb_emit_program(&b->graph, b->places, &b->graph.units.at[u->epilogue], rows_of(v),
                         emitted))
        return NULL;
    tell_result(b, u, result, emitted, call);
    void *kernel =
        wb_kernel_of_call(&b->kernels, b->plan->device, call, &emitted->program, emitted->split);
    if (!kernel) wb_emitted_release(emitted);
    return kernel;
}

static bool call_with_epilogue(wb_builder *b, const wb_unit *u, wb_call *call,
                               wb_argument *arguments, int count) {
    const wb_value *v = &b->graph.values[u->members[0]];
    const char *what = wb_index_name((wb_op)v->op, &v->attributes);
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
           (u->epilogue < 0 || plan_program(b, &b->graph.units.at[u->epilogue]));
}

static bool copy_base(wb_builder *b, int32_t number) {
    const int32_t from = b->graph.values[number].small_inputs[0];
    const wb_layout layout = wb_placed_layout(&b->graph, number);
    wb_emitted emitted;
    return wb_emit_copy(&b->graph, b->places, from, number, &layout, &emitted) &&
           add_program(b, &emitted, "copy");
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* NULL when out of memory. */
static wb_plan_pause *add_pause(wb_builder *b, int32_t number) {
    wb_plan *plan = b->plan;
    int64_t count = plan->pause_count;
    if (!WB_GROW(plan->pauses, count, b->pause_capacity)) return NULL;
    wb_plan_pause *pause = &plan->pauses[plan->pause_count++];
    *pause = (wb_plan_pause){.before = plan->command_count, .tape = b->graph.values[number].tape};
    return pause;
}

static bool plan_scan(wb_builder *b, int32_t number) {
    wb_plan *plan = b->plan;
    wb_plan_pause *pause = add_pause(b, number);
    int64_t wanted;
    if (!pause || !wb_scan_plan(&b->graph, number, wb_scratch_argument(b), &pause->scan, &wanted))
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
 * A collective begins when its input is ready. The plan waits for it, and so for all earlier ones,
 * before its result is read, and before anything is written in place. */

/* Waits until the first `count` of the collectives under way are done. */
static bool wait_for_first(wb_builder *b, int64_t count) {
    if (count == 0) return true;
    wb_plan *plan = b->plan;
    wb_plan_pause *last = &plan->pauses[plan->pause_count - 1];
    const int64_t left = b->under_way_count - count;
    if (b->under_way_count == 1 && last->is_begun && last->before == plan->command_count) {
        last->is_begun = false; /* no collective runs meanwhile */
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

/* How many of the collectives under way must be done before the value is read. */
static int64_t waits_of(const wb_builder *b, int32_t value) {
    const int32_t base = wb_value_base(&b->graph, value);
    if (b->graph.values[base].op != WB_OP_collective) return 0;
    for (int64_t i = b->under_way_count; i > 0; i--)
        if (b->under_way[i - 1] == base) return i;
    return 0;
}

static int64_t waits_of_unit(const wb_builder *b, const wb_unit *u) {
    const wb_placements *places = &b->graph.places;
    int64_t wanted = 0;
    for (int64_t m = 0; m < u->member_count; m++) {
        const wb_value *v = &b->graph.values[u->members[m]];
        const int32_t base = wb_value_base(&b->graph, u->members[m]);
        const bool in_place =
            places->of[u->members[m]].stored && places->of[base].memory < places->leaf_count;
        if (in_place) return b->under_way_count;
        /* the second operand of a collective is the collective before it: it only fixes the
         * order */
        const int inputs = v->op == WB_OP_collective ? 1 : v->ninputs;
        for (int i = 0; i < inputs; i++)
            wanted = larger(wanted, waits_of(b, wb_value_inputs(v)[i]));
    }
    return wanted;
}

/* Before the unit and its epilogue run. */
static bool wait_before(wb_builder *b, const wb_unit *u) {
    if (b->under_way_count == 0) return true;
    int64_t wanted = waits_of_unit(b, u);
    if (u->epilogue >= 0)
        wanted = larger(wanted, waits_of_unit(b, &b->graph.units.at[u->epilogue]));
    return wait_for_first(b, wanted);
}

static bool plan_collective(wb_builder *b, int32_t number) {
    const int32_t input = b->graph.values[number].small_inputs[0];
    const wb_value *x = &b->graph.values[input];
    const int64_t offset = wb_placed_layout(&b->graph, input).offset;
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

static bool plan_call(wb_builder *b, const wb_unit *u) {
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

static bool copy_into(wb_builder *b, int32_t from, int32_t to, const wb_layout *layout) {
    wb_emitted emitted;
    return wb_emit_copy(&b->graph, b->places, from, to, layout, &emitted) &&
           add_program(b, &emitted, wb_op_name((wb_op)b->graph.values[to].op));
}

static bool fill(wb_builder *b, int32_t to, double number) {
    wb_emitted emitted;
    return wb_emit_fill(&b->graph, to, number, &emitted) && add_program(b, &emitted, "fill");
}

static bool plan_join(wb_builder *b, int32_t number) {
    const wb_value *v = &b->graph.values[number];
    const int dim = (int)v->attributes.along.dim;
    if (v->op == WB_OP_pad && !fill(b, number, v->attributes.pad.value)) return false;
    if (v->op == WB_OP_slice_put && !fill(b, number, 0)) return false;
    int64_t start = v->op == WB_OP_concat ? 0 : v->attributes.slice.start;
    const wb_layout whole = wb_placed_layout(&b->graph, number);
    const int64_t step = v->op == WB_OP_slice_put ? v->attributes.slice.step : 1;
    for (int i = 0; i < v->ninputs; i++) {
        const int32_t from = wb_value_inputs(v)[i];
        const int64_t size = b->graph.values[from].sizes[dim];
        wb_layout part;
        wb_layout_slice(&whole, dim, start, size, step, &part);
        if (b->graph.places.of[from].holder != number && !copy_into(b, from, number, &part))
            return false;
        start += size;
    }
    return true;
}

static bool plan_unit(wb_builder *b, const wb_unit *u) {
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
    if (b->graph.places.of[x->base].holder == first) return true;
    const wb_layout dense = wb_layout_dense(x->ndim, x->sizes); /* the same order in x's sizes */
    return copy_into(b, v->small_inputs[0], first, &dense);
}

/* ---- what commands compute, for events ---- */

static bool list_places(wb_builder *b) {
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
static int32_t source_of(const wb_builder *b, const wb_unit *u) {
    int32_t any = -1;
    for (int64_t m = u->member_count - 1; m >= 0; m--) {
        const int32_t place = b->tape_of[u->members[m]];
        if (place >= 0 && b->graph.tape->at[place].node->origin) return place;
        if (any < 0) any = place;
    }
    return any;
}

/* Of the commands from `first` on, which are the unit's. */
static bool note_sources(wb_builder *b, const wb_unit *u, int64_t first) {
    for (int64_t i = first; b->tape_of && i < b->plan->command_count; i++) {
        if (!WB_GROW(b->plan->sources, i, b->source_capacity)) return false;
        b->plan->sources[i] = source_of(b, u);
    }
    return true;
}

bool wb_plan_units(wb_builder *b) {
    const wb_graph *graph = &b->graph;
    int64_t first = 0;
    b->places = wb_alloc(sizeof *b->places * (size_t)(graph->count + 1));
    if (!b->places || !list_places(b)) return false;
    for (int64_t i = 0; i < graph->order.count; i++) {
        const int32_t command = b->plan->command_count;
        const wb_unit *u = &graph->units.at[graph->order.units[i]];
        if (!wait_before(b, u) || !plan_unit(b, u) || !note_sources(b, u, command)) return false;
        if (wb_graph_is_concurrent(graph, i, &first))
            b->plan->commands[command].is_concurrent = true;
    }
    return wait_for_first(b, b->under_way_count);
}
