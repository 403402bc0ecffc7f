/* Queues: commands under way, their outcomes, and events between queues. */
#include "device.h"
#include "program.h"

wb_cl_queue *wb_cl_queue_of(wb_cl_device *device, void *queue) {
    return queue ? (wb_cl_queue *)queue : &device->own;
}

bool wb_cl_queue_init(wb_cl_device *device, wb_cl_queue *queue) {
    cl_int code = CL_SUCCESS;
    queue->queue = cl.CreateCommandQueue(device->context, device->id, 0, &code);
    if (!queue->queue) (void)wb_cl_fail("OpenCL", "clCreateCommandQueue", code);
    return queue->queue;
}

void wb_cl_queue_release(wb_cl_queue *queue) {
    if (!queue->queue) return;
    (void)cl.Finish(queue->queue);
    for (int i = 0; i < queue->watched_count; i++)
        (void)cl.ReleaseEvent(queue->watched[(queue->first_watched + i) % WB_CL_WATCHED].event);
    for (int i = 0; i < WB_CL_SLOTS && queue->slots[i].words; i++)
        (void)cl.ReleaseMemObject(queue->slots[i].words);
    (void)cl.ReleaseCommandQueue(queue->queue);
    queue->queue = NULL;
}

void *wb_cl_queue_new(void *device) {
    wb_cl_queue *queue = wb_cl_host->alloc(sizeof *queue);
    if (queue && wb_cl_queue_init(device, queue)) return queue;
    wb_cl_host->release(queue);
    return NULL;
}

void wb_cl_queue_free(void *device, void *any) {
    (void)device;
    wb_cl_queue *queue = any;
    if (!queue) return;
    wb_cl_queue_release(queue);
    wb_cl_host->release(queue);
}

/* ---- commands that are watched ---- */

/* The oldest one, when it is done. */
static void look_at_oldest(wb_cl_queue *queue) {
    wb_cl_watched *oldest = &queue->watched[queue->first_watched];
    cl_int state = CL_COMPLETE;
    (void)cl.WaitForEvents(1, &oldest->event);
    const cl_int code = cl.GetEventInfo(oldest->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                        sizeof state, &state, NULL);
    if (code != CL_SUCCESS || state < 0)
        wb_late_error_keep(&queue->error, WB_ERROR_DEVICE, "%s: the device could not finish it: %s",
                           oldest->what, wb_cl_error_name(code != CL_SUCCESS ? code : state));
    (void)cl.ReleaseEvent(oldest->event);
    queue->first_watched = (queue->first_watched + 1) % WB_CL_WATCHED;
    queue->watched_count--;
}

void wb_cl_watch(wb_cl_queue *queue, cl_event event, const char *what) {
    if (queue->watched_count == WB_CL_WATCHED) { /* the device has enough work */
        (void)cl.Flush(queue->queue);
        look_at_oldest(queue);
    }
    const int at = (queue->first_watched + queue->watched_count++) % WB_CL_WATCHED;
    queue->watched[at] = (wb_cl_watched){event, what};
}

/* ---- status words ---- */

/* Reads the used slots, then clears them, in the queue's order. */
static cl_int read_slots(wb_cl_queue *queue, int64_t words[WB_CL_SLOTS][WB_STATUS_WORDS]) {
    static const int64_t zero;
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < queue->used_slots && code == CL_SUCCESS; i++) {
        const cl_mem slot = queue->slots[i].words;
        code = cl.EnqueueReadBuffer(queue->queue, slot, CL_FALSE, 0, WB_STATUS_BYTES, words[i], 0,
                                    NULL, NULL);
        if (code == CL_SUCCESS)
            code = cl.EnqueueFillBuffer(queue->queue, slot, &zero, sizeof zero, 0, WB_STATUS_BYTES,
                                        0, NULL, NULL);
    }
    return code;
}

/* Checks all that was queued. The lock is held, so that nothing new is queued meanwhile. */
static void settle(wb_cl_queue *queue) {
    int64_t words[WB_CL_SLOTS][WB_STATUS_WORDS] = {{0}};
    cl_int code = read_slots(queue, words);
    const cl_int finished = cl.Finish(queue->queue);
    while (queue->watched_count > 0) look_at_oldest(queue);
    if (code == CL_SUCCESS) code = finished;
    if (code != CL_SUCCESS)
        wb_late_error_keep(&queue->error, WB_ERROR_DEVICE, "OpenCL: clFinish: %s",
                           wb_cl_error_name(code));
    for (int i = 0; i < queue->used_slots; i++)
        wb_late_error_note(&queue->error, queue->slots[i].what, words[i]);
    queue->used_slots = 0;
}

static cl_mem new_slot(wb_cl_device *device, wb_cl_queue *queue, cl_int *code) {
    static const int64_t zero;
    cl_mem words = cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, WB_STATUS_BYTES, NULL, code);
    if (words)
        *code = cl.EnqueueFillBuffer(queue->queue, words, &zero, sizeof zero, 0, WB_STATUS_BYTES, 0,
                                     NULL, NULL);
    return words;
}

wb_status wb_cl_slot_take(wb_cl_device *device, wb_cl_queue *queue, const char *what,
                          cl_mem *words) {
    if (queue->used_slots == WB_CL_SLOTS) settle(queue);
    wb_cl_slot *slot = &queue->slots[queue->used_slots];
    cl_int code = CL_SUCCESS;
    if (!slot->words) slot->words = new_slot(device, queue, &code);
    if (code != CL_SUCCESS) return wb_cl_fail(what, "status words", code);
    slot->what = what;
    *words = slot->words;
    queue->used_slots++;
    return WB_OK;
}

/* ---- waiting ---- */

/* Waits without the lock first, so that other threads are not held up by a long computation. */
wb_status wb_cl_sync(void *any, void *which) {
    wb_cl_device *device = any;
    wb_cl_queue *queue = wb_cl_queue_of(device, which);
    (void)cl.Finish(queue->queue);
    pthread_mutex_lock(&device->lock);
    settle(queue);
    const wb_late_error error = queue->error;
    queue->error.status = WB_OK;
    pthread_mutex_unlock(&device->lock);
    if (error.status != WB_OK) return wb_cl_host->fail(error.status, "%s", error.text);
    wb_cl_programs_save(device);
    return WB_OK;
}

/* ---- events ---- */

/* A handle of the host: the marker, and the queue that it belongs to. */
typedef struct event {
    cl_event marker;
    const wb_cl_device *device;
} event;

cl_int wb_cl_mark(const wb_cl_queue *queue, cl_event *marker) {
    const cl_int code = cl.EnqueueMarkerWithWaitList(queue->queue, 0, NULL, marker);
    return code == CL_SUCCESS ? cl.Flush(queue->queue) : code; /* another queue waits for it */
}

cl_int wb_cl_wait_for(const wb_cl_device *device, const wb_cl_queue *queue, cl_event marker,
                      const wb_cl_device *of) {
    if (device->context != of->context || (device != of && device->waits_on_host))
        return cl.WaitForEvents(1, &marker);
    return cl.EnqueueBarrierWithWaitList(queue->queue, 1, &marker, NULL);
}

void *wb_cl_record(void *any, void *which) {
    wb_cl_device *device = any;
    event *e = wb_cl_host->alloc(sizeof *e);
    if (!e) return NULL;
    e->device = device;
    const cl_int code = wb_cl_mark(wb_cl_queue_of(device, which), &e->marker);
    if (code == CL_SUCCESS) return e;
    (void)wb_cl_fail("OpenCL", "clEnqueueMarkerWithWaitList", code);
    wb_cl_release_event(device, e);
    return NULL;
}

wb_status wb_cl_wait(void *any, void *which, void *what) {
    wb_cl_device *device = any;
    const event *e = what;
    const cl_int code = wb_cl_wait_for(device, wb_cl_queue_of(device, which), e->marker, e->device);
    return code == CL_SUCCESS ? WB_OK : wb_cl_fail("OpenCL", "clEnqueueBarrierWithWaitList", code);
}

void wb_cl_release_event(void *device, void *what) {
    (void)device;
    event *e = what;
    if (e && e->marker) (void)cl.ReleaseEvent(e->marker);
    wb_cl_host->release(e);
}

wb_status wb_cl_is_done(void *device, void *what, bool *is_done) {
    const event *e = what;
    cl_int state = CL_COMPLETE;
    (void)device;
    const cl_int code =
        cl.GetEventInfo(e->marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    *is_done = state <= CL_COMPLETE; /* below: it has failed */
    return code == CL_SUCCESS ? WB_OK : wb_cl_fail("OpenCL", "clGetEventInfo", code);
}
