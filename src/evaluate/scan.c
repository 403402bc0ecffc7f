/* Bodies of scans. A body is a plan like any other, made once for all lengths; it runs once for
 * each step, on a memory table that changes from step to step. Slices and outputs advance by their
 * stride. A carry stays in place if the body writes it in place; else it advances with an output
 * that has the same numbers, or alternates between two places. A backend may prepare a matrix of a
 * product that is the same in all steps: the CPU packs it before the first step (prepare), into
 * memory after the body's other scratch memory.
 *
 * Reads the graph and the body's plan. Writes a scan's places and starts. */
#include "base/memory.h"
#include "evaluate/emit.h"
#include "evaluate/plan.h"
#include "ops/trace.h"

enum { ALIGNMENT = 64 };

typedef struct placer {
    const wb_graph *graph;
    int32_t call; /* the scan's value */
    const wb_array *node;
    const wb_body *body;
    const wb_plan *plan; /* the body's */
    wb_argument scratch;
    int64_t used_bytes; /* of the scratch memory */
    int64_t steps;
    bool reverse;
    wb_scan_memory *results; /* of the body's results, those that hold their own */
    wb_plan_scan *scan;
} placer;

static wb_argument take_scratch(placer *p, int64_t bytes) {
    wb_argument a = p->scratch;
    a.offset_bytes = wb_plus(a.offset_bytes, p->used_bytes);
    p->used_bytes = wb_plus(p->used_bytes, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    return a;
}

static wb_scan_memory fixed(wb_argument a) { return (wb_scan_memory){a, {a, a}, 0}; }

/* Slices of an array whose last dimension is the steps' dimension. */
static wb_scan_memory sliced(const placer *p, wb_argument a, int64_t bytes) {
    if (p->reverse) a.offset_bytes += (p->steps - 1) * bytes;
    wb_scan_memory place = fixed(a);
    place.stride_bytes = p->reverse ? -bytes : bytes;
    return place;
}

/* The value outside that has result r; -1: it is not used. */
static int32_t outside_of(const placer *p, int32_t r) {
    int64_t count;
    const int32_t *readers = wb_value_readers(p->graph, p->call, &count);
    for (int64_t i = 0; i < count; i++) {
        const wb_value *v = &p->graph->values[readers[i]];
        if (v->kind == WB_VALUE_RESULT && v->attributes.part.number == r) return readers[i];
    }
    return -1;
}

/* The body writes the next carry where it read this one. */
static bool is_in_place(const placer *p, int32_t r) {
    return p->plan->outputs[p->plan->results[r]].is_donated;
}

/* Two places in turn, `last` in the last step. */
static wb_scan_memory in_turn(const placer *p, wb_argument last, wb_argument other) {
    wb_scan_memory place = fixed(last);
    place.even[p->steps & 1] = other;
    place.first = place.even[0];
    return place;
}

static wb_scan_memory place_of_result(placer *p, int32_t r) {
    const int64_t bytes = wb_bytes_of(p->body->results[r]);
    const int32_t outside = outside_of(p, r);
    const bool is_output = r >= p->body->ncarries;
    if (outside >= 0 && is_output) return sliced(p, wb_argument_of(p->graph, outside), bytes);
    const wb_argument last =
        outside >= 0 ? wb_argument_of(p->graph, outside) : take_scratch(p, bytes);
    if (is_in_place(p, r)) return fixed(last);
    return in_turn(p, last, take_scratch(p, bytes));
}

/* From the second step on: the place where the step before has left it. */
static wb_scan_memory place_of_carry(const placer *p, int32_t i, wb_argument first) {
    const int32_t same = wb_body_same(p->body, i);
    wb_scan_memory place = p->results[same];
    if (is_in_place(p, same)) {
        p->scan->starts[p->scan->start_count++] =
            (wb_scan_start){first, place.first, wb_bytes_of(p->body->given[i])};
        return place;
    }
    const wb_argument even = place.even[0];
    place.first = first;
    place.even[0] = place.even[1], place.even[1] = even;
    for (int k = 0; k < 2; k++) place.even[k].offset_bytes -= place.stride_bytes;
    return place;
}

static wb_scan_memory place_of_given(const placer *p, int32_t number) {
    const wb_body *body = p->body;
    const int32_t input = wb_value_inputs(&p->graph->values[p->call])[number];
    const wb_value *v = &p->graph->values[input];
    wb_argument a = wb_argument_of(p->graph, input);
    a.offset_bytes +=
        wb_placed_layout(p->graph, input).offset * (int64_t)wb_dtype_size((wb_dtype)v->dtype);
    if (number < body->ncarries) return place_of_carry(p, number, a);
    if (number >= body->ncarries + body->nslices) return fixed(a);
    return sliced(p, a, wb_bytes_of(body->given[number]));
}

static bool place_all(placer *p, wb_scan_memory *places) {
    const wb_plan *plan = p->plan;
    const wb_tape *tape = p->body->tape;
    places[plan->leaf_count + plan->output_count] =
        fixed(take_scratch(p, (int64_t)plan->workspace_bytes));
    p->results = wb_alloc(sizeof *p->results * (size_t)(p->body->nresults + 1));
    if (!p->results) return false;
    for (int32_t r = 0; r < p->body->nresults; r++) {
        if (wb_body_same(p->body, r) != r) continue;
        p->results[r] = place_of_result(p, r);
        places[plan->leaf_count + plan->results[r]] = p->results[r];
    }
    for (int32_t i = 0; i < plan->leaf_count; i++)
        places[i] =
            place_of_given(p, (int32_t)tape->at[plan->leaves[i]].node->attributes.part.number);
    wb_release(p->results);
    return true;
}

bool wb_scan_plan(const wb_graph *graph, int32_t value, wb_argument scratch, wb_plan_scan *scan,
                  int64_t *scratch_bytes) {
    const wb_array *node = graph->tape->at[graph->values[value].tape].node;
    wb_body *body = wb_body_of(node);
    wb_plan *plan = wb_plan_of_body(body, graph->tape->device);
    if (!plan) return false;
    const size_t entries = (size_t)(plan->leaf_count + plan->output_count + 1);
    *scan = (wb_plan_scan){.steps = node->attributes.scan.steps,
                           .body = plan,
                           .places = wb_alloc(sizeof *scan->places * entries),
                           .starts = wb_alloc(sizeof *scan->starts * (size_t)(body->ncarries + 1))};
    placer p = {.graph = graph,
                .call = value,
                .node = node,
                .body = body,
                .plan = plan,
                .scratch = scratch,
                .steps = scan->steps,
                .reverse = node->attributes.scan.reverse != 0,
                .scan = scan};
    /* on failure the plan releases them */
    if (!scan->places || !scan->starts || !place_all(&p, scan->places)) return false;
    *scratch_bytes = p.used_bytes;
    return wb_check_bytes(p.used_bytes);
}

void wb_scan_release(wb_plan_scan *scan) {
    wb_plan_unref(scan->body);
    wb_release(scan->places);
    wb_release(scan->starts);
}

/* ---- running ---- */

static void bind_step(const wb_plan_scan *scan, int64_t step, const wb_memory *outside,
                      wb_memory *memory) {
    const int32_t entries = scan->body->leaf_count + scan->body->output_count + 1;
    for (int32_t i = 0; i < entries; i++) {
        const wb_scan_memory *place = &scan->places[i];
        const wb_argument *a = step == 0 ? &place->first : &place->even[step & 1];
        const int64_t moved = step * place->stride_bytes;
        memory[i] = (wb_memory){outside[a->memory].handle,
                                outside[a->memory].offset_bytes + a->offset_bytes + moved};
    }
}

static wb_status start_carries(const wb_plan_scan *scan, const wb_memory *outside,
                               wb_scan_room *room) {
    wb_status status = WB_OK;
    for (int32_t i = 0; status == WB_OK && i < scan->start_count; i++) {
        const wb_scan_start *s = &scan->starts[i];
        if (s->size_bytes == 0) continue;
        status = wb_plan_copy(scan->body->device, WB_COPY_LOCAL, wb_plan_place(outside, &s->to),
                              wb_plan_place(outside, &s->from), s->size_bytes);
        room->has_run = true;
    }
    return status;
}

/* What commands keep over the steps is made from arrays whose memory is fixed. */
static wb_status prepare(const wb_plan *plan, const wb_memory *memory) {
    const wb_device *device = plan->device;
    if (plan->keeper_count == 0) return WB_OK;
    return wb_device_note(device, device->backend->prepare(device->context, NULL, plan->keepers,
                                                           plan->keeper_count, memory));
}

static bool is_random(const wb_array *x) { return x->op == WB_OP_uniform || x->op == WB_OP_normal; }

static void bind_late(const wb_plan *plan, const wb_tape *tape, int64_t draws, uint64_t *late) {
    for (int32_t i = 0; i < plan->late_count; i++) {
        const wb_array *x = tape->at[plan->late[i] >> 1].node;
        const int word = plan->late[i] & 1;
        late[i] = (uint64_t)(x->late[word] + (word == 1 && is_random(x) ? draws : 0));
    }
}

wb_status wb_scan_run(const wb_plan_scan *scan, const wb_array *node, const wb_memory *memory,
                      wb_scan_room *room, int64_t draws) {
    const wb_plan *plan = scan->body;
    const wb_body *body = wb_body_of(node);
    wb_scan_room inner = {.memory = room->memory + plan->leaf_count + plan->output_count + 1,
                          .late = room->late ? room->late + plan->late_count : NULL};
    wb_status status = start_carries(scan, memory, room);
    draws += node->late[0];
    for (int64_t step = 0; status == WB_OK && step < scan->steps; step++, draws += body->draws) {
        bind_step(scan, step, memory, room->memory);
        if (step == 0 && (status = prepare(plan, room->memory)) != WB_OK) break;
        bind_late(plan, body->tape, draws, room->late);
        status = wb_plan_run(plan, body->tape, room->memory, room->late, &inner, draws);
    }
    room->kernels += inner.kernels;
    room->has_run = room->has_run || inner.has_run;
    return status;
}
