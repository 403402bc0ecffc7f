/* Bytes between devices. A copy is queued with the work of its device, so that it runs after the
 * commands that made its numbers and before those that read them; the host waits only when it
 * reads. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "device/device.h"

enum { MOST_IN_FLIGHT = 256 };

bool wb_buffer_is_host(const wb_buffer *buffer) { return buffer->device->info.is_host_memory; }

/* ---- host memory that queued copies read ---- */

/* Holds the buffer until the device is next in step; true if it is time to wait for that now. */
static bool hold_in_flight(wb_device *device, wb_buffer *buffer) {
    const bool failed_before = wb_failed();
    pthread_mutex_lock(&device->mutex);
    const bool room =
        WB_GROW(device->in_flight, device->in_flight_count, device->in_flight_capacity);
    if (room) device->in_flight[device->in_flight_count++] = wb_buffer_ref(buffer);
    const bool full = !room || device->in_flight_count >= MOST_IN_FLIGHT;
    pthread_mutex_unlock(&device->mutex);
    if (!room && !failed_before) wb_clear_error(); /* waiting now serves the same purpose */
    return full;
}

typedef struct flight {
    wb_buffer **list;
    int64_t count;
} flight;

static flight take_flight(wb_device *device) {
    pthread_mutex_lock(&device->mutex);
    const flight taken = {device->in_flight, device->in_flight_count};
    device->in_flight = NULL;
    device->in_flight_count = device->in_flight_capacity = 0;
    pthread_mutex_unlock(&device->mutex);
    return taken;
}

static void release_flight(flight taken) {
    for (int64_t i = 0; i < taken.count; i++) wb_buffer_unref(taken.list[i]);
    wb_release(taken.list);
}

void wb_device_let_go(wb_device *device) {
    const flight taken = take_flight(device);
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    (void)device->backend->sync(device->context, NULL); /* it may read and write them yet */
    wb_clear_error();
    wb_error_bring_back(&aside);
    release_flight(taken);
}

/* ---- errors that come late ---- */

void wb_buffers_doubt(const wb_device *where, int count, wb_buffer *const *buffers,
                      bool is_queued) {
    wb_device *device = wb_device_mutable(where);
    pthread_mutex_lock(&device->mutex);
    for (int i = 0; i < count; i++) {
        wb_buffer *b = buffers[i];
        b->doubted = device->syncs + 1; /* the sync to come */
        __atomic_store_n(&device->last_doubt, b->doubted, __ATOMIC_RELAXED);
        if (!is_queued)
            b->doubted_from = b->doubted;
        else if (device->last_bad >= b->doubted_from)
            wb_buffer_lose(b);
    }
    pthread_mutex_unlock(&device->mutex);
}

bool wb_buffer_is_doubted(const wb_buffer *buffer) {
    wb_device *device = wb_device_mutable(buffer->device);
    if (__atomic_load_n(&device->last_doubt, __ATOMIC_RELAXED) == 0) return false;
    pthread_mutex_lock(&device->mutex);
    const bool is_doubted = buffer->doubted > device->last_good;
    pthread_mutex_unlock(&device->mutex);
    return is_doubted;
}

/* If a sync reports a bad index, all buffers marked since the last good sync are lost. */
static void tell(wb_device *device, int64_t number, wb_status status) {
    pthread_mutex_lock(&device->mutex);
    for (wb_buffer *b = status == WB_OK ? NULL : device->holders; b; b = b->next)
        if (b->doubted > device->last_good) wb_buffer_lose(b);
    int64_t *last = status == WB_OK ? &device->last_good : &device->last_bad;
    if (number > *last) *last = number;
    pthread_mutex_unlock(&device->mutex);
}

/* If the device was given up during the wait, the wait ended without the results. */
static wb_status sync_queue(wb_device *device) {
    pthread_mutex_lock(&device->mutex);
    const int64_t number = ++device->syncs;
    pthread_mutex_unlock(&device->mutex);
    wb_status status = device->backend->sync(device->context, NULL);
    if (status == WB_OK) status = wb_device_check(device);
    status = wb_device_note(device, status);
    tell(device, number, status);
    return status;
}

/* An error that was kept came before the one that is pending. */
static wb_status take_kept(wb_device *device, wb_status status) {
    pthread_mutex_lock(&device->mutex);
    const wb_status kept = device->late;
    if (kept != WB_OK) {
        wb_clear_error();
        (void)wb_fail(kept, "%s", device->late_text);
    }
    device->late = WB_OK;
    pthread_mutex_unlock(&device->mutex);
    return kept == WB_OK ? status : kept;
}

/* Takes the list first, so that what other threads queue meanwhile is not released. */
wb_status wb_device_sync(const wb_device *where) {
    if (!where)
        return (void)wb_fail_argument_null("wb_device_sync", "the device"), wb_error_status();
    wb_device *device = wb_device_mutable(where);
    if (device == wb_cpu_device()) return WB_OK;
    if (wb_device_check(device) != WB_OK) {
        wb_device_let_go(device);
        return WB_ERROR_DEVICE;
    }
    wb_error_aside older;
    wb_error_put_aside(&older);
    const flight taken = take_flight(device);
    wb_status status = sync_queue(device);
    release_flight(taken);
    if (status != WB_ERROR_DEVICE) status = take_kept(device, status);
    wb_error_bring_back(&older);
    return status;
}

wb_status wb_device_finish(wb_device *device) {
    wb_error_aside older;
    wb_error_put_aside(&older);
    const wb_status status = wb_device_sync(device);
    char text[sizeof device->late_text];
    const bool is_late = status != WB_OK && status != WB_ERROR_DEVICE;
    const wb_status late = is_late ? wb_take_error(text, sizeof text) : WB_OK;
    wb_error_bring_back(&older);
    if (!is_late) return status;
    pthread_mutex_lock(&device->mutex);
    if (device->late == WB_OK) memcpy(device->late_text, text, sizeof text);
    if (device->late == WB_OK) device->late = late;
    pthread_mutex_unlock(&device->mutex);
    return WB_OK;
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
    if (status == WB_OK && hold_in_flight(wb_device_mutable(to->device), from))
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

/* ---- by way of the host ---- */

/* The source's pieces of host memory, from which copies are fast where its backend has such. Made
 * once. */
static bool equip_relay(wb_device *here) {
    for (int i = 0; i < WB_RELAY_PIECES; i++) {
        void **piece = &here->relay.pieces[i];
        if (!*piece && here->backend->alloc_pinned)
            *piece = here->backend->alloc_pinned(here->context, WB_RELAY_BYTES);
        if (!*piece) {
            wb_clear_error(); /* ordinary memory works, too */
            *piece = wb_alloc_aligned(WB_RELAY_BYTES);
        }
        if (!*piece) return false;
    }
    return true;
}

/* Waits until the last relay's pieces are read. */
static void finish_relay(wb_device *here) {
    wb_device *there = here->relay.to;
    if (!there) return;
    pthread_mutex_lock(&there->mutex);
    const bool is_done =
        there->last_good >= here->relay.sync || there->last_bad >= here->relay.sync;
    pthread_mutex_unlock(&there->mutex);
    if (!is_done) (void)wb_device_finish(there);
    here->relay.to = NULL;
}

/* One piece is uploaded while the next one is downloaded. The last upload is still under way when
 * this returns. */
static wb_status relay(wb_buffer *to, int64_t to_bytes, const wb_buffer *from, int64_t from_bytes,
                       int64_t size_bytes) {
    wb_device *here = wb_device_mutable(from->device), *there = wb_device_mutable(to->device);
    wb_status status = WB_OK;
    for (int64_t done = 0, k = 0; status == WB_OK && done < size_bytes; k++) {
        void *piece = here->relay.pieces[k % WB_RELAY_PIECES];
        const int64_t left = size_bytes - done,
                      bytes = left < WB_RELAY_BYTES ? left : WB_RELAY_BYTES;
        status = wb_buffer_read(from, from_bytes + done, piece, (size_t)bytes);
        if (status == WB_OK && k > 0) status = wb_device_finish(there);
        if (status == WB_OK)
            status = queue_copy(there, WB_COPY_UPLOAD, (wb_memory){to->handle, to_bytes + done},
                                (wb_memory){piece, 0}, (size_t)bytes);
        done += bytes;
    }
    here->relay.to = there;
    pthread_mutex_lock(&there->mutex);
    here->relay.sync = there->syncs + 1;
    pthread_mutex_unlock(&there->mutex);
    return status;
}

wb_status wb_buffer_relay(wb_buffer *to, int64_t to_bytes, const wb_buffer *from,
                          int64_t from_bytes, size_t size_bytes) {
    wb_device *here = wb_device_mutable(from->device);
    wb_error_aside older;
    wb_error_put_aside(&older);
    pthread_mutex_lock(&here->relay.mutex);
    finish_relay(here);
    const wb_status status = equip_relay(here)
                                 ? relay(to, to_bytes, from, from_bytes, (int64_t)size_bytes)
                                 : WB_ERROR_MEMORY;
    pthread_mutex_unlock(&here->relay.mutex);
    wb_error_bring_back(&older);
    return status;
}

/* Between devices of one backend, both of which must be synchronised. */
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
    return wb_buffer_relay(to, to_bytes, from, from_bytes, size_bytes);
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

wb_status wb_copy_queue_follow(const wb_copy_queue *q) {
    const wb_backend *backend = q->device->backend;
    void *context = q->device->context;
    wb_status status = wb_device_check(q->device);
    if (!q->queue || status != WB_OK) return status;
    void *event = backend->record(context, NULL);
    status = event ? backend->wait(context, q->queue, event) : wb_error_status();
    if (event) backend->release_event(context, event);
    return wb_device_note(q->device, status);
}

wb_status wb_copy_queue_upload(const wb_copy_queue *q, wb_buffer *to, const void *from,
                               size_t size_bytes) {
    union {
        const void *read;
        void *handle; /* only read */
    } memory = {.read = from};
    if (wb_device_check(q->device) != WB_OK) return WB_ERROR_DEVICE;
    return wb_device_note(q->device,
                          q->device->backend->copy(q->device->context, q->queue, WB_COPY_UPLOAD,
                                                   (wb_memory){to->handle, 0},
                                                   (wb_memory){memory.handle, 0}, size_bytes));
}

wb_status wb_copy_queue_sync(const wb_copy_queue *q) {
    if (wb_device_check(q->device) != WB_OK) return WB_ERROR_DEVICE;
    return wb_device_note(q->device, q->device->backend->sync(q->device->context, q->queue));
}
