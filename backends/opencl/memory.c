/* Memory and copies. A handle is a cl_mem; OpenCL counts references, so that what queued commands
 * use outlives its release. */
#include <stdlib.h>

#include "device.h"

/* ---- allocation ---- */

/* Drivers delay the real allocation until the first use, when a failure would be too late to
 * handle. */
static bool is_there(wb_cl_device *device, cl_mem mem) {
    cl_event event = NULL;
    cl_int code = cl.EnqueueMigrateMemObjects(
        device->helper, 1, &mem, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, &event);
    if (code != CL_SUCCESS) return false;
    (void)cl.Flush(device->helper);
    code = cl.WaitForEvents(1, &event);
    (void)cl.ReleaseEvent(event);
    return code == CL_SUCCESS;
}

/* True if the device can hold that much more, which is then counted. A driver that uses the host's
 * memory would continue until none is left. */
static bool reserve(wb_cl_device *device, size_t size_bytes) {
    if (size_bytes > device->most_bytes) return false;
    const uint64_t before = atomic_fetch_add(&device->allocated_bytes, size_bytes);
    if (before + size_bytes <= device->memory_bytes) return true;
    atomic_fetch_sub(&device->allocated_bytes, size_bytes);
    return false;
}

void *wb_cl_alloc(void *any, size_t size_bytes) {
    wb_cl_device *device = any;
    cl_int code = CL_SUCCESS;
    if (!reserve(device, size_bytes)) return NULL;
    cl_mem mem = cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, size_bytes ? size_bytes : 1,
                                 NULL, &code);
    if (mem && is_there(device, mem)) return mem;
    if (mem) (void)cl.ReleaseMemObject(mem);
    atomic_fetch_sub(&device->allocated_bytes, size_bytes);
    return NULL;
}

void wb_cl_free(void *any, void *handle, size_t size_bytes) {
    wb_cl_device *device = any;
    if (!handle) return;
    (void)cl.ReleaseMemObject(handle);
    atomic_fetch_sub(&device->allocated_bytes, size_bytes);
}

/* ---- pinned host memory ---- */

void *wb_cl_alloc_pinned(void *any, size_t size_bytes) {
    wb_cl_device *device = any;
    cl_int code = CL_SUCCESS;
    wb_cl_pinned *pinned = wb_cl_host->alloc(sizeof *pinned);
    if (!pinned) return NULL;
    pinned->mem = cl.CreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                  size_bytes ? size_bytes : 1, NULL, &code);
    if (pinned->mem)
        pinned->address =
            cl.EnqueueMapBuffer(device->helper, pinned->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                size_bytes ? size_bytes : 1, 0, NULL, NULL, &code);
    if (!pinned->address) {
        if (pinned->mem) (void)cl.ReleaseMemObject(pinned->mem);
        wb_cl_host->release(pinned);
        return NULL;
    }
    void *address = pinned->address; /* from here on the list's */
    pthread_mutex_lock(&device->lock);
    pinned->next = device->pinned;
    device->pinned = pinned;
    pthread_mutex_unlock(&device->lock);
    return address;
}

static wb_cl_pinned *unlink_pinned(wb_cl_device *device, const void *address) {
    pthread_mutex_lock(&device->lock);
    wb_cl_pinned **link = &device->pinned;
    while (*link && (*link)->address != address) link = &(*link)->next;
    wb_cl_pinned *found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&device->lock);
    return found;
}

void wb_cl_free_pinned(void *any, void *memory, size_t size_bytes) {
    (void)size_bytes;
    wb_cl_device *device = any;
    wb_cl_pinned *pinned = memory ? unlink_pinned(device, memory) : NULL;
    if (!pinned) return;
    (void)cl.EnqueueUnmapMemObject(device->helper, pinned->mem, pinned->address, 0, NULL, NULL);
    (void)cl.Flush(device->helper);
    (void)cl.ReleaseMemObject(pinned->mem);
    wb_cl_host->release(pinned);
}

/* ---- copies ---- */

static bool overlap(wb_memory a, wb_memory b, size_t size_bytes) {
    const int64_t distance = a.offset_bytes - b.offset_bytes;
    return a.handle == b.handle && llabs(distance) < (long long)size_bytes;
}

static cl_int copy_once(cl_command_queue queue, cl_mem to, int64_t to_offset, cl_mem from,
                        int64_t from_offset, size_t size_bytes, cl_event *event) {
    return cl.EnqueueCopyBuffer(queue, from, to, (size_t)from_offset, (size_t)to_offset, size_bytes,
                                0, NULL, event);
}

/* A piece moved within its buffer goes through another one. */
static cl_int copy_local(wb_cl_device *device, cl_command_queue queue, wb_memory to, wb_memory from,
                         size_t size_bytes, cl_event *event) {
    if (!overlap(to, from, size_bytes))
        return copy_once(queue, to.handle, to.offset_bytes, from.handle, from.offset_bytes,
                         size_bytes, event);
    cl_mem between = wb_cl_alloc(device, size_bytes);
    if (!between) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    cl_int code = copy_once(queue, between, 0, from.handle, from.offset_bytes, size_bytes, NULL);
    if (code == CL_SUCCESS)
        code = copy_once(queue, to.handle, to.offset_bytes, between, 0, size_bytes, event);
    wb_cl_free(device, between, size_bytes);
    return code;
}

static char *address_of(wb_memory memory) { return (char *)memory.handle + memory.offset_bytes; }

wb_status wb_cl_copy(void *any, void *which, wb_copy_kind kind, wb_memory to, wb_memory from,
                     size_t size_bytes) {
    static const char *const names[] = {
        [WB_COPY_UPLOAD] = "upload", [WB_COPY_DOWNLOAD] = "download", [WB_COPY_LOCAL] = "copy"};
    wb_cl_device *device = any;
    wb_cl_queue *queue = wb_cl_queue_of(device, which);
    cl_event event = NULL;
    cl_int code;
    if (size_bytes == 0) return WB_OK;
    pthread_mutex_lock(&device->lock);
    if (kind == WB_COPY_UPLOAD)
        code = cl.EnqueueWriteBuffer(queue->queue, to.handle, CL_FALSE, (size_t)to.offset_bytes,
                                     size_bytes, address_of(from), 0, NULL, &event);
    else if (kind == WB_COPY_DOWNLOAD)
        code = cl.EnqueueReadBuffer(queue->queue, from.handle, CL_FALSE, (size_t)from.offset_bytes,
                                    size_bytes, address_of(to), 0, NULL, &event);
    else
        code = copy_local(device, queue->queue, to, from, size_bytes, &event);
    if (code == CL_SUCCESS) wb_cl_watch(queue, event, names[kind]);
    if (code == CL_SUCCESS) code = cl.Flush(queue->queue);
    pthread_mutex_unlock(&device->lock);
    return code == CL_SUCCESS ? WB_OK : wb_cl_fail(names[kind], "the command was refused", code);
}

/* ---- between devices ---- */

/* Within a platform: after what is in the other device's own queue, which continues when the copy
 * is done. */
static cl_int copy_within(wb_cl_device *device, wb_cl_queue *queue, wb_memory to,
                          wb_cl_device *from_device, wb_memory from, size_t size_bytes) {
    cl_event before = NULL, done = NULL;
    cl_int code = wb_cl_mark(&from_device->own, &before);
    if (code == CL_SUCCESS) code = wb_cl_wait_for(device, queue, before, from_device);
    if (code == CL_SUCCESS)
        code = copy_once(queue->queue, to.handle, to.offset_bytes, from.handle, from.offset_bytes,
                         size_bytes, &done);
    if (code == CL_SUCCESS) code = cl.Flush(queue->queue);
    if (code == CL_SUCCESS) code = wb_cl_wait_for(from_device, &from_device->own, done, device);
    if (before) (void)cl.ReleaseEvent(before);
    if (done) wb_cl_watch(queue, done, "copy between devices");
    return code;
}

/* Between platforms: through the host, at once. */
static cl_int copy_through_host(wb_cl_queue *queue, wb_memory to, wb_cl_device *from_device,
                                wb_memory from, size_t size_bytes) {
    void *between = wb_cl_host->alloc_aligned(size_bytes);
    if (!between) return CL_OUT_OF_HOST_MEMORY;
    cl_int code =
        cl.EnqueueReadBuffer(from_device->own.queue, from.handle, CL_TRUE,
                             (size_t)from.offset_bytes, size_bytes, between, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = cl.EnqueueWriteBuffer(queue->queue, to.handle, CL_TRUE, (size_t)to.offset_bytes,
                                     size_bytes, between, 0, NULL, NULL);
    wb_cl_host->release_aligned(between);
    return code;
}

wb_status wb_cl_copy_peer(void *any, void *which, wb_memory to, void *other, wb_memory from,
                          size_t size_bytes) {
    wb_cl_device *device = any, *from_device = other;
    wb_cl_queue *queue = wb_cl_queue_of(device, which);
    if (size_bytes == 0) return WB_OK;
    pthread_mutex_lock(&device->lock);
    const cl_int code = device->context == from_device->context
                            ? copy_within(device, queue, to, from_device, from, size_bytes)
                            : copy_through_host(queue, to, from_device, from, size_bytes);
    pthread_mutex_unlock(&device->lock);
    return code == CL_SUCCESS ? WB_OK
                              : wb_cl_fail("copy between devices", "the command was refused", code);
}
