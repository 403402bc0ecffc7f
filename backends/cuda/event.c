/* Events between queues. Released events are used again. A wait that is queued already is not
 * affected: it waits for what was recorded when it was queued. */
#include "device.h"

static wb_gpu_outcome take(wb_gpu_device *device, gpu_event *event) {
    *event = NULL;
    pthread_mutex_lock(&device->events_lock);
    if (device->spare_count > 0) *event = device->spare_events[--device->spare_count];
    pthread_mutex_unlock(&device->events_lock);
    if (*event) return (wb_gpu_outcome){.error = NULL};
    return GPU_TRY(EventCreate, event, GPU_EVENT_NO_TIMING);
}

/* False: there are enough. */
static bool give(wb_gpu_device *device, gpu_event event) {
    pthread_mutex_lock(&device->events_lock);
    const bool has_room = device->spare_count < WB_GPU_SPARE_EVENTS;
    if (has_room) device->spare_events[device->spare_count++] = event;
    pthread_mutex_unlock(&device->events_lock);
    return has_room;
}

void *wb_gpu_record(void *any, void *which) {
    wb_gpu_device *device = any;
    wb_gpu_queue *queue = wb_gpu_queue_of(device, which);
    gpu_event event = NULL;
    pthread_mutex_lock(&queue->lock);
    wb_gpu_outcome o = wb_gpu_enter(device);
    if (!o.error) o = take(device, &event);
    if (!o.error) {
        o = GPU_TRY(EventRecord, event, queue->stream);
        if (o.error) (void)gpu.EventDestroy(event);
    }
    pthread_mutex_unlock(&queue->lock);
    return wb_gpu_report("event", o) == WB_OK ? event : NULL;
}

wb_status wb_gpu_wait(void *any, void *which, void *event) {
    wb_gpu_device *device = any;
    wb_gpu_queue *queue = wb_gpu_queue_of(device, which);
    pthread_mutex_lock(&queue->lock);
    wb_gpu_outcome o = wb_gpu_enter(device);
    if (!o.error) o = GPU_TRY(StreamWaitEvent, queue->stream, event, 0);
    pthread_mutex_unlock(&queue->lock);
    return wb_gpu_report("event", o);
}

void wb_gpu_release_event(void *device, void *event) {
    if (!event || give(device, event)) return;
    (void)wb_gpu_enter(device);
    (void)gpu.EventDestroy(event);
}

wb_status wb_gpu_is_done(void *any, void *event, bool *is_done) {
    wb_gpu_outcome o = wb_gpu_enter(any);
    const gpu_code code = o.error ? GPU_SUCCESS : gpu.EventQuery(event);
    *is_done = code != GPU_NOT_READY;
    if (!o.error && *is_done) o = wb_gpu_outcome_of(GPU_CALL(EventQuery), code);
    return wb_gpu_report("event", o);
}

void wb_gpu_events_release(wb_gpu_device *device) {
    while (device->spare_count > 0)
        (void)gpu.EventDestroy(device->spare_events[--device->spare_count]);
}
