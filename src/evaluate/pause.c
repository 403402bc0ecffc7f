/* A plan's commands and, between them, what the host does: bodies of scans, and collectives. Those
 * are listed by their thread as they are made; wb_evaluate_roots makes the list roots of the next
 * plan, in that order.
 *
 * Reads the plan. */
#include "base/events.h"
#include "base/memory.h"
#include "evaluate/plan.h"
#include "ops/collective.h"
#include "ranks/ranks.h"

static void tell_node(const char *kind, const wb_array *node, int64_t run, double began) {
    if (began <= 0) return;
    const wb_event_info info = {.kind = kind,
                                .what = wb_operation_of(node),
                                .layer = wb_layer_of(node),
                                .direction = wb_direction_of(node),
                                .run = (double)run};
    wb_event_told(&info, began, wb_clock());
}

/* node: what it computes, or NULL. */
static void tell_command(const wb_plan *plan, int32_t number, const char *kind,
                         const wb_array *node, int64_t run, double began) {
    const wb_cost cost = plan->costs ? plan->costs[number] : (wb_cost){.operations = 0};
    const wb_event_info info = {.kind = kind,
                                .what = node ? wb_operation_of(node) : plan->commands[number].what,
                                .layer = node ? wb_layer_of(node) : "",
                                .direction = node ? wb_direction_of(node) : "forward",
                                .run = (double)run,
                                .operations = cost.operations,
                                .read_bytes = cost.read_bytes,
                                .written_bytes = cost.written_bytes};
    wb_event_told(&info, began, wb_clock());
    if (!plan->device->info.is_host_memory) wb_note_device_time(plan->device, &info, began);
}

/* Runs commands one by one, and records an event for each; on an asynchronous device, for queueing
 * it. */
static wb_status tell_commands(const wb_plan *plan, const wb_tape *tape, int32_t from, int32_t to,
                               const wb_memory *memory, const uint64_t *late, int64_t run) {
    const wb_device *device = plan->device;
    const char *kind = device->info.is_host_memory ? "command" : "queued command";
    wb_status status = WB_OK;
    for (int32_t i = from; status == WB_OK && i < to; i++) {
        const wb_command *command = &plan->commands[i];
        const int32_t place = plan->sources ? plan->sources[i] : -1;
        const double began = wb_event_begin();
        status = device->backend->run(device->context, NULL, command, 1, memory, late);
        if (began > 0 && status == WB_OK)
            tell_command(plan, i, kind, place < 0 ? NULL : tape->at[place].node, run, began);
    }
    return status;
}

static wb_status run_commands(const wb_plan *plan, const wb_tape *tape, int32_t from, int32_t to,
                              const wb_memory *memory, const uint64_t *late, wb_scan_room *room) {
    const wb_device *device = plan->device;
    if (from == to) return WB_OK;
    const wb_status ran = wb_are_events_told()
                              ? tell_commands(plan, tape, from, to, memory, late, room->run)
                              : device->backend->run(device->context, NULL, plan->commands + from,
                                                     to - from, memory, late);
    const wb_status status = wb_device_note(device, ran);
    if (status != WB_ERROR_MEMORY) room->has_run = true;
    room->kernels += to - from;
    return status;
}

/* ---- collectives ---- */

wb_status wb_plan_copy(const wb_device *device, wb_copy_kind kind, wb_memory to, wb_memory from,
                       int64_t size_bytes) {
    return wb_device_note(
        device, device->backend->copy(device->context, NULL, kind, to, from, (size_t)size_bytes));
}

/* By way of memory of the host: down, over the ranks, up. */
static wb_status run_staged(const wb_device *device, const wb_collective *c, wb_memory from,
                            int64_t from_bytes, wb_memory to, int64_t to_bytes) {
    char *down = wb_alloc_aligned((size_t)from_bytes + 1),
         *up = wb_alloc_aligned((size_t)to_bytes + 1);
    wb_status status = down && up ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK)
        status = wb_plan_copy(device, WB_COPY_DOWNLOAD, (wb_memory){down, 0}, from, from_bytes);
    if (status == WB_OK) status = wb_device_sync(device);
    if (status == WB_OK) status = wb_ranks_run(c, down, up);
    const wb_memory summed = {up, 0};
    if (status == WB_OK) status = wb_plan_copy(device, WB_COPY_UPLOAD, to, summed, to_bytes);
    if (status == WB_OK) status = wb_device_sync(device);
    wb_release_aligned(down);
    wb_release_aligned(up);
    return status;
}

/* From device to device, without the host. */
static wb_status run_carried(const wb_collective *c, wb_memory from, wb_memory to, bool is_begun) {
    const wb_status status = wb_ranks_begin_on_device(c, from, to);
    return status == WB_OK && !is_begun ? wb_ranks_finish(0) : status;
}

/* Results that take over the memory of what they replace are written after the last collective
 * (place.c): when one fails, nothing is lost. */
static wb_status run_collective(const wb_plan *plan, const wb_plan_pause *pause,
                                const wb_array *node, const wb_memory *memory, wb_scan_room *room) {
    const wb_collective c = wb_collective_of(node);
    const wb_memory from = wb_plan_place(memory, &pause->from);
    const wb_memory to = wb_plan_place(memory, &pause->to);
    const wb_device *device = plan->device;
    wb_status status;
    if (device->info.is_host_memory) {
        const char *given = (const char *)from.handle + from.offset_bytes;
        char *taken = (char *)to.handle + to.offset_bytes;
        status = wb_device_sync(device);
        if (status == WB_OK)
            status =
                pause->is_begun ? wb_ranks_begin(&c, given, taken) : wb_ranks_run(&c, given, taken);
    } else if (wb_ranks_carry(device))
        status = run_carried(&c, from, to, pause->is_begun);
    else
        status = run_staged(device, &c, from, wb_bytes_of(node->inputs[0]), to, wb_bytes_of(node));
    if (status != WB_OK) room->has_run = false;
    return status;
}

/* ---- the whole ---- */

static wb_status wait_for(const wb_plan_pause *pause, wb_scan_room *room) {
    const wb_status status = wb_ranks_finish(pause->left);
    if (status != WB_OK) room->has_run = false;
    return status;
}

static wb_status run_pause(const wb_plan *plan, const wb_plan_pause *pause, const wb_array *node,
                           const wb_memory *memory, wb_scan_room *room, int64_t draws) {
    const double began = wb_event_begin();
    const wb_status status = pause->is_wait ? wait_for(pause, room)
                             : pause->scan.body
                                 ? wb_scan_run(&pause->scan, node, memory, room, draws)
                                 : run_collective(plan, pause, node, memory, room);
    const char *kind = pause->is_wait ? "wait for collectives" : wb_operation_of(node);
    tell_node(kind, node, room->run, began);
    return status;
}

wb_status wb_plan_run(const wb_plan *plan, const wb_tape *tape, const wb_memory *memory,
                      const uint64_t *late, wb_scan_room *room, int64_t draws) {
    wb_status status = WB_OK;
    int32_t next = 0;
    for (int32_t i = 0; status == WB_OK && i < plan->pause_count; i++) {
        const wb_plan_pause *pause = &plan->pauses[i];
        const wb_array *node = tape->at[pause->tape].node;
        status = run_commands(plan, tape, next, pause->before, memory, late, room);
        next = pause->before;
        if (status == WB_OK) status = run_pause(plan, pause, node, memory, room, draws);
    }
    if (status == WB_OK)
        return run_commands(plan, tape, next, plan->command_count, memory, late, room);
    if (plan->has_collectives) (void)wb_ranks_finish(0); /* what was begun uses the memory yet */
    return status;
}
