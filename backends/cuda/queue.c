/* Queues: what they keep beside their stream, and errors that come late. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

wb_gpu_queue *wb_gpu_queue_of(wb_gpu_device *device, void *queue) {
    return queue ? (wb_gpu_queue *)queue : &device->own;
}

/* ---- life ---- */

bool wb_gpu_queue_init(wb_gpu_device *device, wb_gpu_queue *queue) {
    gpu_stream stream = NULL;
    wb_gpu_outcome o = wb_gpu_enter(device);
    if (!o.error) o = GPU_TRY(StreamCreate, &stream, GPU_STREAM_NON_BLOCKING);
    if (wb_gpu_report(wb_gpu_vendor_table.backend, o) != WB_OK) return false;
    queue->stream = stream;
    return true;
}

void wb_gpu_queue_release(wb_gpu_queue *queue) {
    if (!queue->stream) return;
    (void)gpu.StreamSynchronize(queue->stream);
    wb_gpu_graphs_drop(queue, NULL);
    wb_gpu_ring_release(&queue->ring);
    wb_gpu_landing_release(&queue->landing);
    if (queue->late) (void)gpu.MemFree(queue->late);
    if (queue->status.words) (void)gpu.MemFree(queue->status.words);
    if (queue->status.mirror) (void)gpu.MemFreeHost(queue->status.mirror);
    free(queue->key);
    (void)gpu.StreamDestroy(queue->stream);
    queue->stream = NULL;
}

void *wb_gpu_queue_new(void *device) {
    wb_gpu_queue *queue = wb_gpu_host->alloc(sizeof *queue);
    if (!queue) return NULL;
    (void)pthread_mutex_init(&queue->lock, NULL);
    if (wb_gpu_queue_init(device, queue)) return queue;
    wb_gpu_queue_free(device, queue);
    return NULL;
}

void wb_gpu_queue_free(void *any, void *which) {
    wb_gpu_device *device = any;
    wb_gpu_queue *queue = which;
    if (!queue) return;
    wb_gpu_begin_release(device); /* its ring and its words are memory */
    wb_gpu_queue_release(queue);
    wb_gpu_end_release(device);
    (void)pthread_mutex_destroy(&queue->lock);
    wb_gpu_host->release(queue);
}

/* ---- late values ---- */

/* The copy is in the stream, so it comes after all commands that read the values of the last
 * run. */
wb_gpu_outcome wb_gpu_queue_late(wb_gpu_queue *queue, const uint64_t *late, int count,
                                 gpu_pointer *at) {
    const size_t bytes = (size_t)count * sizeof *late;
    wb_gpu_outcome o = {.error = NULL};
    void *slot = NULL;
    if (!queue->late) {
        gpu_pointer made = 0;
        o = GPU_TRY(MemAlloc, &made, WB_GPU_LATE_WORDS * sizeof *late);
        if (!o.error) queue->late = made;
    }
    if (!o.error) o = wb_gpu_ring_take(&queue->ring, queue->stream, bytes, &slot);
    if (o.error) return o;
    memcpy(slot, late, bytes);
    *at = queue->late;
    return GPU_TRY(MemcpyHtoDAsync, queue->late, slot, bytes, queue->stream);
}

/* ---- status words ---- */

static wb_gpu_outcome make_status(wb_gpu_queue *queue) {
    wb_gpu_status *status = &queue->status;
    gpu_pointer words = 0;
    void *mirror = NULL;
    const size_t bytes = WB_GPU_STATUS_SLOTS * WB_STATUS_BYTES;
    wb_gpu_outcome o = GPU_TRY(MemAlloc, &words, bytes);
    if (o.error) return o;
    o = GPU_TRY(MemHostAlloc, &mirror, bytes, GPU_HOST_PORTABLE);
    if (!o.error) {
        status->mirror = mirror;
        o = GPU_TRY(MemsetD8Async, words, 0, bytes, queue->stream);
    }
    if (!o.error) {
        status->words = words;
        return o;
    }
    (void)gpu.MemFree(words);
    if (status->mirror) (void)gpu.MemFreeHost(status->mirror);
    status->mirror = NULL;
    return o;
}

wb_gpu_outcome wb_gpu_queue_status(wb_gpu_queue *queue, const char *what, gpu_pointer *words) {
    wb_gpu_status *status = &queue->status;
    wb_gpu_outcome o = {.error = NULL};
    if (!status->words) o = make_status(queue);
    if (o.error) return o;
    int slot = 0;
    while (slot < status->used && status->what[slot] != what) slot++;
    if (slot == WB_GPU_STATUS_SLOTS)
        status->what[--slot] = "gather or scatter"; /* shared by all that came last */
    else if (slot == status->used)
        status->what[status->used++] = what;
    status->is_touched = true;
    *words = status->words + (gpu_pointer)slot * WB_STATUS_BYTES;
    return o;
}

/* Copies them to the host, after all that was queued. */
static wb_gpu_outcome fetch_status(wb_gpu_queue *queue) {
    wb_gpu_status *status = &queue->status;
    if (!status->is_touched) return (wb_gpu_outcome){.error = NULL};
    return GPU_TRY(MemcpyDtoHAsync, status->mirror, status->words,
                   (size_t)status->used * WB_STATUS_BYTES, queue->stream);
}

static wb_gpu_outcome look_at_status(wb_gpu_queue *queue) {
    wb_gpu_status *status = &queue->status;
    bool is_set = false;
    for (int i = 0; status->is_touched && i < status->used; i++) {
        is_set = is_set || status->mirror[i][0];
        wb_late_error_note(&queue->error, status->what[i], status->mirror[i]);
    }
    status->is_touched = false;
    if (!is_set) return (wb_gpu_outcome){.error = NULL};
    return GPU_TRY(MemsetD8Async, status->words, 0, (size_t)status->used * WB_STATUS_BYTES,
                   queue->stream);
}

/* ---- waiting ---- */

void wb_gpu_queue_note(wb_gpu_queue *queue, const char *what) {
    if (queue->queued++ == 0) queue->first_what = what;
    queue->ever_queued++;
    queue->last_what = what;
}

/* A fault on the device names no kernel; only the range of commands is known. */
static void keep_fault(wb_gpu_queue *queue, wb_gpu_outcome o) {
    if (queue->queued > 1)
        wb_late_error_keep(&queue->error, WB_ERROR_DEVICE,
                           "%s ... %s (one of %lld commands; WEBER_SYNC=1 tells which): %s: %s",
                           queue->first_what, queue->last_what, (long long)queue->queued, o.call,
                           o.error);
    else
        wb_late_error_keep(&queue->error, WB_ERROR_DEVICE, "%s: %s: %s",
                           queue->queued ? queue->first_what : wb_gpu_vendor_table.backend, o.call,
                           o.error);
}

/* The fetched data is there; takes the outcome of the wait. */
static void look(wb_gpu_queue *queue, wb_gpu_outcome o) {
    wb_gpu_landing_empty(&queue->landing, o.error);
    if (!o.error) o = look_at_status(queue);
    if (o.error) keep_fault(queue, o);
    queue->queued = 0;
}

/* Fetches, and waits without the lock, so that other threads are not held up by a long computation;
 * what they have queued meanwhile is fetched once more, with the lock. */
static void wait_and_look(wb_gpu_queue *queue) {
    wb_gpu_outcome o = fetch_status(queue);
    const int64_t before = queue->ever_queued;
    pthread_mutex_unlock(&queue->lock);
    if (!o.error) o = GPU_TRY(StreamSynchronize, queue->stream);
    pthread_mutex_lock(&queue->lock);
    if (!o.error && queue->ever_queued != before) {
        o = fetch_status(queue);
        if (!o.error) o = GPU_TRY(StreamSynchronize, queue->stream);
    }
    look(queue, o);
}

wb_status wb_gpu_sync(void *any, void *which) {
    wb_gpu_device *device = any;
    wb_gpu_queue *queue = wb_gpu_queue_of(device, which);
    const wb_gpu_outcome o = wb_gpu_enter(device);
    pthread_mutex_lock(&queue->lock);
    if (o.error)
        wb_gpu_landing_empty(&queue->landing, true);
    else
        wait_and_look(queue);
    const wb_late_error error = queue->error;
    if (!o.error) queue->error.status = WB_OK;
    pthread_mutex_unlock(&queue->lock);
    if (o.error) return wb_gpu_report("sync", o);
    return error.status == WB_OK ? WB_OK : wb_gpu_host->fail(error.status, "%s", error.text);
}

void *wb_gpu_native_queue(void *any, void *which) {
    wb_gpu_device *device = any;
    const wb_gpu_outcome o = wb_gpu_enter(device);
    return wb_gpu_report("queue", o) == WB_OK ? wb_gpu_queue_of(device, which)->stream : NULL;
}
