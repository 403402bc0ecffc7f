/* A table of functions for the devices of a forked child. A driver does not work after a fork, so
 * the child must not call it: whatever releases something does nothing here, and all else is an
 * error. */
#include "device/gone.h"

static void *no_memory(void *device, size_t size_bytes) {
    (void)size_bytes;
    (void)wb_device_check(device);
    return NULL;
}

static void keep_memory(void *device, void *handle, size_t size_bytes) {
    (void)device, (void)handle, (void)size_bytes;
}

static void *no_kernel(void *device, const wb_program *program) {
    (void)program;
    (void)wb_device_check(device);
    return NULL;
}

static void *no_call(void *device, const wb_call *call, const wb_program *epilogue, int split) {
    (void)call, (void)epilogue, (void)split;
    (void)wb_device_check(device);
    return NULL;
}

static size_t no_scratch(const void *kernel) {
    (void)kernel;
    return 0;
}

static void keep_kernel(void *kernel) { (void)kernel; }
static void close_nothing(void *device) { (void)device; }

static void *no_queue(void *device) {
    (void)wb_device_check(device);
    return NULL;
}

static void *no_event(void *device, void *queue) {
    (void)queue;
    (void)wb_device_check(device);
    return NULL;
}

static void keep(void *device, void *handle) { (void)device, (void)handle; }

static wb_status no_wait(void *device, void *queue, void *event) {
    (void)queue, (void)event;
    return wb_device_check(device);
}

static wb_status no_copy(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                         size_t size_bytes) {
    (void)queue, (void)kind, (void)to, (void)from, (void)size_bytes;
    return wb_device_check(device);
}

static wb_status no_run(void *device, void *queue, const wb_command *commands, int count,
                        const wb_memory *memory, const uint64_t *late) {
    (void)queue, (void)commands, (void)count, (void)memory, (void)late;
    return wb_device_check(device);
}

static wb_status no_sync(void *device, void *queue) {
    (void)queue;
    return wb_device_check(device);
}

static wb_status is_done(void *device, void *event, bool *is_done) {
    (void)event;
    *is_done = false;
    return wb_device_check(device);
}

static wb_status no_preparation(void *device, void *queue, const wb_command *commands, int count,
                                const wb_memory *memory) {
    (void)queue, (void)commands, (void)count, (void)memory;
    return wb_device_check(device);
}

const wb_backend *wb_gone_backend(wb_device *device) {
    device->gone = (wb_backend){.abi = WB_PLUGIN_ABI,
                                .size_bytes = sizeof(wb_backend),
                                .name = device->backend->name,
                                .close = close_nothing,
                                .alloc = no_memory,
                                .free = keep_memory,
                                .free_pinned = keep_memory,
                                .kernel = no_kernel,
                                .lower = no_call,
                                .scratch_bytes = no_scratch,
                                .release = keep_kernel,
                                .queue_new = no_queue,
                                .queue_free = keep,
                                .record = no_event,
                                .wait = no_wait,
                                .release_event = keep,
                                .copy = no_copy,
                                .run = no_run,
                                .sync = no_sync,
                                .is_done = is_done,
                                .kept_bytes = no_scratch,
                                .prepare = no_preparation};
    return &device->gone;
}
