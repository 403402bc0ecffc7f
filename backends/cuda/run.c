/* Running lists of commands.
 *
 * The optimiser's step: a program that only settles parameters and states is an update. Small ones
 * (up to 2^18 elements) come last in a plan, alike ones side by side, and are marked as what may
 * run at once (wb_command.is_concurrent): commands with the same text then become the jobs of one
 * launch, whose parameters are a table with a row for each (WB_JOBS); the groups look up which
 * job is theirs. Adam has room for 18 arrays in the 4 KiB that every driver takes. Large ones fill
 * a card by themselves; they run right after their gradient, while that is in the second cache.
 * The multi-layer perceptron of case b has 12 commands to launch in a step instead of 15, GPT-2
 * 124M 6 for its 98 biases and gains instead of 98. */
#include "kernel.h"

/* Allocates what a list needs before its first command, so that nothing is queued yet if memory
 * runs out. */
static wb_gpu_outcome prepare(wb_gpu_run *run, const wb_command *commands, int count,
                              const uint64_t *late) {
    wb_gpu_outcome o = {.error = NULL};
    int32_t late_count = 0;
    for (int i = 0; i < count && !o.error; i++) {
        const wb_gpu_kernel *kernel = commands[i].kernel;
        gpu_pointer words;
        if (kernel->late_count > late_count) late_count = kernel->late_count;
        if (kernel->uses_status) o = wb_gpu_queue_status(run->queue, commands[i].what, &words);
    }
    if (!o.error && late_count > 0) o = wb_gpu_queue_late(run->queue, late, late_count, &run->late);
    return o;
}

wb_gpu_outcome wb_gpu_launch_all(const wb_gpu_run *run, const wb_command *commands, int count,
                                 int *at) {
    wb_gpu_outcome o = {.error = NULL};
    wb_gpu_run one = *run;
    for (int i = 0; i < count && !o.error; i += one.joined) {
        const wb_gpu_kernel *kernel = commands[i].kernel;
        one.joined = wb_gpu_joined(commands + i, count - i);
        o = kernel->run(kernel, &one, &commands[ *at = i]);
        /* each command is waited for, so that a fault has its name */
        if (!o.error && run->device->waits_always) o = GPU_TRY(StreamSynchronize, run->stream);
    }
    return o;
}

static wb_status run_locked(wb_gpu_run *run, const wb_command *commands, int count,
                            const uint64_t *late) {
    const wb_gpu_device *device = run->device;
    bool done = false;
    int at = 0;
    wb_gpu_outcome o = wb_gpu_enter(device);
    if (!o.error) o = prepare(run, commands, count, late);
    if (o.error) return wb_gpu_report(commands[0].what, o);
    if (device->uses_graphs && run->queue == &device->own)
        o = wb_gpu_graph_run(run, commands, count, &done);
    if (!o.error && !done) o = wb_gpu_launch_all(run, commands, count, &at);
    o.is_out_of_memory = false; /* NULL would mean that nothing was queued */
    return wb_gpu_report(commands[at].what, o);
}

wb_status wb_gpu_run_commands(void *any, void *which, const wb_command *commands, int count,
                              const wb_memory *memory, const uint64_t *late) {
    wb_gpu_device *device = any;
    wb_gpu_queue *queue = wb_gpu_queue_of(device, which);
    if (count == 0) return WB_OK;
    pthread_mutex_lock(&queue->lock);
    wb_gpu_run run = {.device = device, .queue = queue, .stream = queue->stream, .memory = memory};
    const wb_status status = run_locked(&run, commands, count, late);
    for (int i = 0; i < count && status == WB_OK; i++) wb_gpu_queue_note(queue, commands[i].what);
    pthread_mutex_unlock(&queue->lock);
    return status;
}
