/* Memory and copies. The host's allocator keeps what is freed, so these are called rarely.
 *
 * Memory comes from the library's allocator, which keeps what is freed in the order of the
 * device's queue; on a GPU all of its memory may be cache. The workspace that a vendor's library
 * wants is the kernel's scratch memory, part of the plan's one workspace, and so counted with it.
 * Uploads from pageable memory go through a pinned ring of 8 MiB for each queue, whose pieces are
 * written again when the event after their copy has happened; small downloads go through pinned
 * memory, too. */
#include <string.h>

#include "device.h"

/* ---- device memory ---- */

void *wb_gpu_alloc(void *any, size_t size_bytes) {
    wb_gpu_device *device = any;
    gpu_pointer made = 0;
    wb_gpu_outcome o = wb_gpu_enter(device);
    if (!o.error) o = GPU_TRY(MemAlloc, &made, size_bytes ? size_bytes : 1);
    if (!o.error) return (void *)made;
    if (!o.is_out_of_memory) (void)wb_gpu_report("memory", o);
    return NULL;
}

/* Queued commands of any stream may still use the memory. */
void wb_gpu_free(void *any, void *handle, size_t size_bytes) {
    (void)size_bytes;
    if (!handle) return;
    wb_gpu_begin_release(any);
    (void)gpu.MemFree((gpu_pointer)handle);
    wb_gpu_end_release(any);
}

/* ---- pinned host memory ---- */

void *wb_gpu_alloc_pinned(void *any, size_t size_bytes) {
    wb_gpu_device *device = any;
    void *memory = NULL;
    wb_gpu_outcome o = wb_gpu_enter(device);
    wb_gpu_pinned *pinned = o.error ? NULL : wb_gpu_host->alloc(sizeof *pinned);
    if (!pinned) return NULL;
    o = GPU_TRY(MemHostAlloc, &memory, size_bytes ? size_bytes : 1, GPU_HOST_PORTABLE);
    if (o.error) {
        wb_gpu_host->release(pinned);
        return NULL;
    }
    *pinned = (wb_gpu_pinned){.memory = memory, .size_bytes = size_bytes};
    pthread_mutex_lock(&device->pinned_lock);
    pinned->next = device->pinned;
    device->pinned = pinned;
    pthread_mutex_unlock(&device->pinned_lock);
    return memory;
}

static wb_gpu_pinned *unlink_pinned(wb_gpu_device *device, const void *memory) {
    pthread_mutex_lock(&device->pinned_lock);
    wb_gpu_pinned **link = &device->pinned;
    while (*link && (*link)->memory != memory) link = &(*link)->next;
    wb_gpu_pinned *found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&device->pinned_lock);
    return found;
}

void wb_gpu_free_pinned(void *any, void *memory, size_t size_bytes) {
    (void)size_bytes;
    wb_gpu_device *device = any;
    wb_gpu_pinned *pinned = memory ? unlink_pinned(device, memory) : NULL;
    if (!pinned) return;
    wb_gpu_begin_release(device);
    (void)gpu.MemFreeHost(memory);
    wb_gpu_end_release(device);
    wb_gpu_host->release(pinned);
}

static bool is_pinned(wb_gpu_device *device, const char *memory, size_t size_bytes) {
    pthread_mutex_lock(&device->pinned_lock);
    const wb_gpu_pinned *p = device->pinned;
    while (p && !(memory >= p->memory && memory + size_bytes <= p->memory + p->size_bytes))
        p = p->next;
    pthread_mutex_unlock(&device->pinned_lock);
    return p;
}

/* ---- copies ---- */

/* From memory that is not pinned: in pieces through the ring, so that the driver copies while the
 * next piece is written. */
static wb_gpu_outcome upload_staged(wb_gpu_queue *queue, gpu_pointer to, const char *from,
                                    size_t size_bytes) {
    wb_gpu_outcome o = {.error = NULL};
    for (size_t done = 0, piece; !o.error && done < size_bytes; done += piece) {
        void *slot = NULL;
        piece = size_bytes - done < WB_GPU_PIECE_BYTES ? size_bytes - done : WB_GPU_PIECE_BYTES;
        o = wb_gpu_ring_take(&queue->ring, queue->stream, piece, &slot);
        if (o.error) return o;
        memcpy(slot, from + done, piece);
        o = GPU_TRY(MemcpyHtoDAsync, to + done, slot, piece, queue->stream);
    }
    return o;
}

static wb_gpu_outcome upload(wb_gpu_device *device, wb_gpu_queue *queue, gpu_pointer to,
                             const char *from, size_t size_bytes) {
    if (!is_pinned(device, from, size_bytes)) return upload_staged(queue, to, from, size_bytes);
    return GPU_TRY(MemcpyHtoDAsync, to, from, size_bytes, queue->stream);
}

static bool overlap(gpu_pointer a, gpu_pointer b, size_t size_bytes) {
    return (a > b ? a - b : b - a) < size_bytes;
}

/* A piece moved within itself goes by way of other memory. */
static wb_gpu_outcome copy_local(wb_gpu_queue *queue, gpu_pointer to, gpu_pointer from,
                                 size_t size_bytes) {
    if (!overlap(to, from, size_bytes))
        return GPU_TRY(MemcpyDtoDAsync, to, from, size_bytes, queue->stream);
    gpu_pointer between = 0;
    wb_gpu_outcome o = GPU_TRY(MemAlloc, &between, size_bytes);
    if (o.error) return o;
    o = GPU_TRY(MemcpyDtoDAsync, between, from, size_bytes, queue->stream);
    if (!o.error) o = GPU_TRY(MemcpyDtoDAsync, to, between, size_bytes, queue->stream);
    if (!o.error) o = GPU_TRY(StreamSynchronize, queue->stream);
    (void)gpu.MemFree(between);
    return o;
}

static gpu_pointer device_address(wb_memory m) {
    return (gpu_pointer)m.handle + (gpu_pointer)m.offset_bytes;
}

static char *host_address(wb_memory m) { return (char *)m.handle + m.offset_bytes; }

static wb_gpu_outcome copy(wb_gpu_device *device, wb_gpu_queue *queue, wb_copy_kind kind,
                           wb_memory to, wb_memory from, size_t size_bytes) {
    const wb_gpu_outcome o = wb_gpu_enter(device);
    if (o.error) return o;
    switch (kind) {
    case WB_COPY_UPLOAD:
        return upload(device, queue, device_address(to), host_address(from), size_bytes);
    case WB_COPY_DOWNLOAD:
        return wb_gpu_land(&queue->landing, queue->stream, host_address(to), device_address(from),
                           size_bytes);
    default:
        return copy_local(queue, device_address(to), device_address(from), size_bytes);
    }
}

wb_status wb_gpu_copy(void *any, void *which, wb_copy_kind kind, wb_memory to, wb_memory from,
                      size_t size_bytes) {
    static const char *const names[] = {
        [WB_COPY_UPLOAD] = "upload", [WB_COPY_DOWNLOAD] = "download", [WB_COPY_LOCAL] = "copy"};
    wb_gpu_device *device = any;
    wb_gpu_queue *queue = wb_gpu_queue_of(device, which);
    if (size_bytes == 0) return WB_OK;
    pthread_mutex_lock(&queue->lock);
    const wb_gpu_outcome o = copy(device, queue, kind, to, from, size_bytes);
    wb_gpu_queue_note(queue, names[kind]);
    pthread_mutex_unlock(&queue->lock);
    return wb_gpu_report(names[kind], o);
}

/* ---- between devices ---- */

/* True if `device`, the thread's, may read the other's memory, which is then in reach of its
 * copies. */
static bool can_reach(wb_gpu_device *device, const wb_gpu_device *peer) {
    const uint64_t bit = (uint64_t)1 << (peer->ordinal & 63);
    int can = 0;
    if (atomic_load(&device->peers) & bit) return true;
    if (gpu.DeviceCanAccessPeer(&can, device->ordinal, peer->ordinal) != GPU_SUCCESS || !can)
        return false;
    const gpu_code code = wb_gpu_vendor_table.enable_peer(peer->ordinal, peer->context);
    if (code != GPU_SUCCESS && code != GPU_PEER_ACCESS_ALREADY_ENABLED) return false;
    atomic_fetch_or(&device->peers, bit);
    return true;
}

/* The piece is in the slot when this returns, and its device is no longer the thread's. */
static wb_gpu_outcome fetch(wb_gpu_device *from_device, gpu_pointer from, void *slot,
                            size_t size_bytes) {
    const gpu_stream stream = from_device->own.stream;
    wb_gpu_outcome o = wb_gpu_enter(from_device);
    if (!o.error) o = GPU_TRY(MemcpyDtoHAsync, slot, from, size_bytes, stream);
    if (!o.error) o = GPU_TRY(StreamSynchronize, stream);
    return o;
}

/* By way of the host, at once. */
static wb_gpu_outcome relay(wb_gpu_device *device, wb_gpu_queue *queue, gpu_pointer to,
                            wb_gpu_device *from_device, gpu_pointer from, size_t size_bytes) {
    wb_gpu_outcome o = {.error = NULL};
    for (size_t done = 0, piece; !o.error && done < size_bytes; done += piece) {
        void *slot = NULL;
        piece = size_bytes - done < WB_GPU_PIECE_BYTES ? size_bytes - done : WB_GPU_PIECE_BYTES;
        o = wb_gpu_ring_take(&queue->ring, queue->stream, piece, &slot);
        if (!o.error) o = fetch(from_device, from + done, slot, piece);
        if (!o.error) o = wb_gpu_enter(device);
        if (!o.error) o = GPU_TRY(MemcpyHtoDAsync, to + done, slot, piece, queue->stream);
    }
    return o;
}

/* Both sides are in step when the host calls this. */
wb_status wb_gpu_copy_peer(void *any, void *which, wb_memory to, void *other, wb_memory from,
                           size_t size_bytes) {
    static const char name[] = "copy between devices";
    wb_gpu_device *device = any, *from_device = other;
    wb_gpu_queue *queue = wb_gpu_queue_of(device, which);
    if (size_bytes == 0) return WB_OK;
    pthread_mutex_lock(&queue->lock);
    wb_gpu_outcome o = wb_gpu_enter(device);
    if (!o.error && can_reach(device, from_device))
        o = GPU_TRY(MemcpyDtoDAsync, device_address(to), device_address(from), size_bytes,
                    queue->stream);
    else if (!o.error)
        o = relay(device, queue, device_address(to), from_device, device_address(from), size_bytes);
    wb_gpu_queue_note(queue, name);
    pthread_mutex_unlock(&queue->lock);
    return wb_gpu_report(name, o);
}
