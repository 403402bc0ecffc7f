/* Bytes between devices. A copy is queued with the work of its device, so that it comes after what made its numbers and before what reads
 * them; the host waits only when it wants to read. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "device/device.h"

enum { MOST_IN_FLIGHT = 256 };

bool wb_buffer_is_host(const wb_buffer *buffer) { return buffer->device->info.is_host_memory; }

/* ---- host memory that queued copies read ---- */

/* Holds the buffer until the device is next in step; true where it is time for that. */
static bool hold_in_flight(wb_device *device, wb_buffer *buffer) {
    const bool failed_before = wb_failed();
    pthread_mutex_lock(&device->mutex);
    const bool room =
        WB_GROW(device->in_flight, device->in_flight_count, device->in_flight_capacity);
    if (room) device->in_flight[device->in_flight_count++] = wb_buffer_ref(buffer);
    const bool full = !room || device->in_flight_count >= MOST_IN_FLIGHT;
    pthread_mutex_unlock(&device->mutex);
    if (!room && !failed_before) wb_clear_error(); /* waiting now does as well */
    return full;
}

/* What other threads queue meanwhile is not in the list that is let go. */
wb_status wb_device_sync(const wb_device *where) {
    wb_device *device = wb_device_mutable(where);
    if (device == wb_cpu_device()) return WB_OK;
    if (wb_device_check(device) != WB_OK) return WB_ERROR_DEVICE;
    pthread_mutex_lock(&device->mutex);
    wb_buffer **list = device->in_flight;
    const int64_t count = device->in_flight_count;
    device->in_flight = NULL;
    device->in_flight_count = device->in_flight_capacity = 0;
    pthread_mutex_unlock(&device->mutex);
    const wb_status status = wb_device_note(device, device->backend->sync(device->context, NULL));
    for (int64_t i = 0; i < count; i++) wb_buffer_unref(list[i]);
    wb_release(list);
    return status;
}

/* ---- copies ---- */

static wb_status queue_copy(const wb_device *device, wb_copy_kind kind, wb_memory to,
                            wb_memory from, size_t size_bytes) {
    if (wb_device_check(device) != WB_OK) return WB_ERROR_DEVICE;
    return wb_device_note(device,
                          device->backend->copy(device->context, NULL, kind, to, from, size_bytes));
}

static wb_status upload(wb_buffer *to, int64_t to_bytes, wb_buffer *from, int64_t from_bytes,
                        size_t size_bytes) {
    wb_status status = queue_copy(to->device, WB_COPY_UPLOAD, (wb_memory){to->handle, to_bytes},
                                  (wb_memory){from->handle, from_bytes}, size_bytes);
    if (hold_in_flight(wb_device_mutable(to->device), from) && status == WB_OK)
        status = wb_device_sync(to->device);
    return status;
}

wb_status wb_buffer_read(const wb_buffer *from, int64_t from_bytes, void *to, size_t size_bytes) {
    const wb_device *device = from->device;
    if (size_bytes == 0) return WB_OK;
    if (!wb_buffer_is_host(from)) {
        const wb_status status = queue_copy(device, WB_COPY_DOWNLOAD, (wb_memory){to, 0},
                                            (wb_memory){from->handle, from_bytes}, size_bytes);
        return status == WB_OK ? wb_device_sync(device) : status;
    }
    const wb_status status = wb_device_sync(device);
    if (status == WB_OK) memcpy(to, (const char *)from->handle + from_bytes, size_bytes);
    return status;
}

/* From device to device by way of the host. */
static wb_status relay(wb_buffer *to, int64_t to_bytes, wb_buffer *from, int64_t from_bytes,
                       size_t size_bytes) {
    wb_buffer *staging = wb_buffer_new(wb_cpu_device(), size_bytes, "staging");
    if (!staging) return wb_error_status();
    wb_status status = wb_buffer_read(from, from_bytes, staging->handle, size_bytes);
    if (status == WB_OK) status = upload(to, to_bytes, staging, 0, size_bytes);
    wb_buffer_unref(staging);
    return status;
}

/* Between devices of one backend: both sides have to be in step. */
static wb_status copy_peer(wb_buffer *to, int64_t to_bytes, const wb_buffer *from,
                           int64_t from_bytes, size_t size_bytes) {
    const wb_device *there = to->device;
    wb_status status = wb_device_sync(from->device);
    if (status != WB_OK || (status = wb_device_check(there)) != WB_OK) return status;
    status = wb_device_note(
        there, there->backend->copy_peer(there->context, NULL, (wb_memory){to->handle, to_bytes},
                                         from->device->context,
                                         (wb_memory){from->handle, from_bytes}, size_bytes));
    return status == WB_OK ? wb_device_sync(there) : status;
}

wb_status wb_buffer_copy(wb_buffer *to, int64_t to_bytes, wb_buffer *from, int64_t from_bytes,
                         size_t size_bytes) {
    const wb_device *here = from->device, *there = to->device;
    if (size_bytes == 0) return WB_OK;
    if (here == there)
        return queue_copy(there, WB_COPY_LOCAL, (wb_memory){to->handle, to_bytes},
                          (wb_memory){from->handle, from_bytes}, size_bytes);
    if (wb_buffer_is_host(to)) {
        const wb_status status = wb_device_sync(there);
        return status == WB_OK
                   ? wb_buffer_read(from, from_bytes, (char *)to->handle + to_bytes, size_bytes)
                   : status;
    }
    if (wb_buffer_is_host(from)) {
        const wb_status status = wb_device_sync(here);
        return status == WB_OK ? upload(to, to_bytes, from, from_bytes, size_bytes) : status;
    }
    if (here->backend == there->backend && there->backend->copy_peer)
        return copy_peer(to, to_bytes, from, from_bytes, size_bytes);
    return relay(to, to_bytes, from, from_bytes, size_bytes);
}

/* ---- copies beside the computation ---- */

bool wb_copy_queue_open(wb_copy_queue *q, const wb_device *device) {
    *q = (wb_copy_queue){.device = device};
    if (wb_device_check(device) != WB_OK) return false;
    if (!device->backend->queue_new) return true;
    q->queue = device->backend->queue_new(device->context);
    return q->queue != NULL;
}

void wb_copy_queue_close(wb_copy_queue *q) {
    if (q->queue) q->device->backend->queue_free(q->device->context, q->queue);
    *q = (wb_copy_queue){.device = NULL};
}

/* What comes next on the queue comes after all that the device's own has been given so far. */
static wb_status follow(const wb_copy_queue *q) {
    const wb_backend *backend = q->device->backend;
    void *context = q->device->context;
    if (!q->queue) return WB_OK;
    void *event = backend->record(context, NULL);
    if (!event) return wb_error_status();
    const wb_status status = backend->wait(context, q->queue, event);
    backend->release_event(context, event);
    return status;
}

wb_status wb_copy_queue_upload(const wb_copy_queue *q, wb_buffer *to, const void *from,
                               size_t size_bytes) {
    union {
        const void *read;
        void *handle; /* only read */
    } memory = {.read = from};
    wb_status status = wb_device_check(q->device);
    if (status == WB_OK) status = follow(q);
    if (status == WB_OK)
        status = q->device->backend->copy(q->device->context, q->queue, WB_COPY_UPLOAD,
                                          (wb_memory){to->handle, 0}, (wb_memory){memory.handle, 0},
                                          size_bytes);
    return wb_device_note(q->device, status);
}

wb_status wb_copy_queue_sync(const wb_copy_queue *q) {
    if (wb_device_check(q->device) != WB_OK) return WB_ERROR_DEVICE;
    return wb_device_note(q->device, q->device->backend->sync(q->device->context, q->queue));
}
