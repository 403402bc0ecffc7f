/* Makes a plan through all stages, with its commands and results; and releases it.
 *
 * Reads the graph. Writes the plan's key, outputs, views and sizes. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "evaluate/builder.h"

static bool enabled(const char *variable) {
    const char *text = getenv(variable);
    return !text || strcmp(text, "0") != 0;
}

/* ---- results ---- */

/* The operation as the caller knows it: the macro, not the operation that it expands to. */
static const char *tag_of(const wb_array *x) {
    return wb_op_name((wb_op)(x->op == WB_OP_result ? x->inputs[0]->op : x->op));
}

static bool list_results(wb_builder *b) {
    wb_graph *graph = &b->graph;
    wb_plan *plan = b->plan;
    const wb_tape *tape = graph->tape;
    plan->outputs = wb_alloc(sizeof *plan->outputs * (size_t)(graph->places.output_count + 1));
    plan->views = wb_alloc(sizeof *plan->views * (size_t)(tape->count + 1));
    if (!plan->outputs || !plan->views) return false;
    for (int32_t o = 0; o < graph->places.output_count; o++) {
        const wb_value *v = &graph->values[graph->places.outputs[o]];
        const int32_t memory = graph->places.of[graph->places.outputs[o]].memory;
        plan->outputs[plan->output_count++] = (wb_plan_output){
            .memory = memory,
            .is_donated = memory < graph->places.leaf_count,
            .tag = wb_op_name((wb_op)v->op),
            .size_bytes = (size_t)wb_value_count(v) * wb_dtype_size((wb_dtype)v->dtype)};
    }
    for (int32_t i = 0; i < tape->count; i++) {
        if (!(tape->at[i].marks & WB_TAPE_STORED) || graph->of_tape[i] < 0) continue;
        const int32_t n = graph->of_tape[i];
        const wb_placement *base = &graph->places.of[wb_value_base(graph, n)];
        plan->views[plan->view_count++] =
            (wb_plan_view){.tape = i, .memory = base->memory, .layout = wb_placed_layout(graph, n)};
        if (base == &graph->places.of[n] && base->output >= 0)
            plan->outputs[base->output].tag = tag_of(tape->at[i].node);
    }
    return true;
}

/* Of a body: which output holds each result. */
static bool list_body_results(wb_builder *b, const wb_body *body) {
    const wb_graph *graph = &b->graph;
    b->plan->results = wb_alloc(sizeof *b->plan->results * (size_t)(body->nresults + 1));
    if (!b->plan->results) return false;
    for (int32_t r = 0; r < body->nresults; r++) {
        const int32_t value = graph->of_tape[body->results[r]->index];
        b->plan->results[r] = graph->places.of[wb_value_base(graph, value)].output;
    }
    return true;
}

/* ---- memory for what commands keep ---- */

/* In a body: after the memory that all commands share. */
static void place_in_workspace(wb_builder *b) {
    const wb_plan *plan = b->plan;
    const wb_argument scratch = wb_scratch_argument(b);
    const int64_t first = scratch.offset_bytes + wb_scratch_aligned(b->scratch_bytes);
    for (int32_t i = 0; i < plan->keeper_count; i++) {
        const wb_command *command = &plan->keepers[i];
        wb_argument *kept =
            &plan->arguments[command->arguments - plan->arguments + command->narguments - 2];
        kept->memory = scratch.memory, kept->offset_bytes += first;
    }
    b->scratch_bytes = wb_plus(wb_scratch_aligned(b->scratch_bytes), b->kept_bytes);
}

/* Else in memory of the plan's own. */
static bool place_apart(wb_builder *b) {
    wb_plan *plan = b->plan;
    plan->kept = wb_alloc(sizeof *plan->kept * (size_t)plan->keeper_count);
    plan->kept_memory = plan->kept ? wb_device_alloc(plan->device, wb_bytes(b->kept_bytes)) : NULL;
    if (!plan->kept_memory) return false;
    plan->kept_bytes = (size_t)b->kept_bytes;
    for (int32_t i = 0; i < plan->keeper_count; i++) /* the weights of a convolution */
        plan->kept[i].leaf = (int32_t)plan->keepers[i].arguments[1].memory;
    return true;
}

static bool place_kept(wb_builder *b) {
    wb_plan *plan = b->plan;
    if (plan->keeper_count == 0) return true;
    for (int32_t i = 0; i < plan->keeper_count; i++)
        plan->keepers[i] = plan->commands[plan->keepers[i].narguments];
    if (!b->graph.tape->body) return place_apart(b);
    place_in_workspace(b);
    return true;
}

/* ---- the whole ---- */

static bool build(wb_builder *b, const wb_tape *tape, bool fuse) {
    wb_graph *graph = &b->graph;
    graph->fuse = fuse;
    graph->explain = wb_plan_is_explained();
    if (!wb_graph_lower(graph, tape) || !wb_graph_list_readers(graph) || !wb_graph_fuse(graph) ||
        !wb_graph_place(graph) || !wb_graph_check(graph))
        return false;
    wb_plan *plan = b->plan;
    if (!wb_plan_units(b) || !list_results(b) ||
        (tape->body && !list_body_results(b, tape->body)) ||
        !wb_kernels_hand_over(&b->kernels, &plan->kernels, &plan->kernel_count))
        return false;
    for (int32_t i = 0; i < plan->command_count; i++)
        plan->commands[i].arguments = plan->arguments + b->first_argument[i];
    if (!place_kept(b)) return false;
    const int64_t workspace = wb_plus(wb_scratch_offset(graph), b->scratch_bytes);
    if (!wb_check_bytes(workspace)) return false;
    plan->workspace_bytes = (size_t)workspace;
    plan->leaf_count = graph->places.leaf_count, plan->late_count = graph->places.late_count;
    plan->leaves = graph->places.leaves, plan->late = graph->places.late;
    graph->places.leaves = graph->places.late = NULL;
    plan->missed_donations = graph->places.missed_donations;
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
static size_t bytes_of_plan(const wb_builder *b) {
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

/* Lists that only their writer may change. */
static void release_read(const void *list) { wb_release((void *)(uintptr_t)list); }

void wb_graph_release(wb_graph *graph) {
    for (int64_t i = 0; i < graph->count; i++) {
        wb_release(graph->values[i].input_list);
        wb_payload_unref(graph->values[i].payload);
    }
    for (int64_t i = 0; i < graph->units.count; i++) {
        wb_release(graph->units.at[i].members);
        wb_release(graph->units.at[i].needs);
    }
    release_read(graph->values);
    release_read(graph->layouts);
    release_read(graph->callables);
    release_read(graph->of_tape);
    wb_release(graph->readers.start);
    wb_release(graph->readers.list);
    wb_release(graph->units.at);
    wb_release(graph->units.of);
    wb_release(graph->order.units);
    wb_release(graph->places.of);
    wb_release(graph->places.layouts);
    wb_release(graph->places.leaves);
    wb_release(graph->places.late);
    wb_release(graph->places.outputs);
}

static void release_build(wb_builder *b) {
    wb_kernels_end(&b->kernels, b->backend);
    wb_graph_release(&b->graph);
    wb_release(b->first_argument);
    wb_release(b->under_way);
    wb_release(b->places);
    wb_release(b->tape_of);
}

/* Makes the plan without fusion, because the backend has no kernel for a fused program. */
static bool build_again(wb_builder *b, const wb_tape *tape) {
    wb_plan *plan = b->plan;
    release_build(b);
    release_parts(plan);
    *plan = (wb_plan){.refs = 1,
                      .hash = plan->hash,
                      .key = plan->key,
                      .words = plan->words,
                      .device = plan->device};
    *b = (wb_builder){.plan = plan, .backend = b->backend};
    return build(b, tape, false);
}

wb_plan *wb_plan_new(const wb_tape *tape, uint64_t hash) {
    wb_plan *plan = wb_alloc(sizeof *plan);
    if (!plan) return NULL;
    plan->refs = 1;
    plan->device = tape->device;
    wb_builder b = {.plan = plan, .backend = plan->device->backend};
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
