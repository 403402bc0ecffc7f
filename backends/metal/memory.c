/* Memory and copies. A handle is an MTLBuffer; command buffers retain what they use, so that it
 * outlives its release.
 *
 * Memory that the host sees too is written and read by the host while the queue is idle. Else what
 * is uploaded goes through a buffer of its own, copied in the queue's order; a download waits. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "program.h"

/* ---- allocation ---- */

/* True if the device can hold that much more, which is then counted: Metal hands out more than
 * there is, and tells when commands use it. */
static bool reserve(wb_metal_device *device, size_t size_bytes) {
    if (size_bytes > device->most_bytes) return false;
    const uint64_t before = atomic_fetch_add(&device->allocated_bytes, size_bytes);
    if (before + size_bytes <= device->memory_bytes) return true;
    atomic_fetch_sub(&device->allocated_bytes, size_bytes);
    return false;
}

static mtl_id new_buffer(wb_metal_device *device, size_t size_bytes, mtl_uint storage) {
    enum { LEAST = 256 }; /* Metal makes no empty buffers */
    return mtl_new_buffer(device->id, size_bytes < LEAST ? LEAST : size_bytes, storage);
}

void *wb_metal_alloc(void *any, size_t size_bytes) {
    WB_METAL_POOL(pool);
    wb_metal_device *device = any;
    if (!reserve(device, size_bytes)) return NULL;
    const mtl_id buffer = new_buffer(device, size_bytes,
                                     device->is_unified ? MTL_STORAGE_SHARED : MTL_STORAGE_PRIVATE);
    if (!buffer) atomic_fetch_sub(&device->allocated_bytes, size_bytes);
    return buffer;
}

void wb_metal_free(void *any, void *handle, size_t size_bytes) {
    wb_metal_device *device = any;
    if (!handle) return;
    WB_METAL_POOL(pool);
    mtl_release(handle);
    atomic_fetch_sub(&device->allocated_bytes, size_bytes);
}

mtl_id wb_metal_shared(wb_metal_device *device, size_t size_bytes, const char *what) {
    const mtl_id buffer = new_buffer(device, size_bytes, MTL_STORAGE_SHARED);
    if (!buffer)
        (void)wb_metal_host->fail(WB_ERROR_MEMORY,
                                  "%s: no memory for %zu bytes that host and "
                                  "device share",
                                  what, size_bytes);
    return buffer;
}

/* ---- copies on the device ---- */

/* On some GPUs blits need offsets and sizes in multiples of 4; this copy takes any. Items copy 16
 * bytes each where all is a multiple of 16. */
static const char copying[] =
    "struct copy_block { wb_u64 to, from, size; };\n"
    "WB_KERNEL(k_copy, 256)(WB_BUFFER(0, to), WB_BUFFER(1, from), WB_BLOCK(2, copy_block, b)) {\n"
    "    const wb_u64 first = (wb_u64)WB_GROUP * 256 + WB_LANE, all = (wb_u64)WB_GROUPS * 256;\n"
    "    if ((b.to | b.from | b.size) % 16 == 0) {\n"
    "        device uint4 *t = (device uint4 *)(to + b.to);\n"
    "        const device uint4 *f = (const device uint4 *)(from + b.from);\n"
    "        for (wb_u64 i = first; i < b.size / 16; i += all) t[i] = f[i];\n"
    "    } else {\n"
    "        for (wb_u64 i = first; i < b.size; i += all) to[b.to + i] = from[b.from + i];\n"
    "    }\n"
    "}\n";

static mtl_id copying_pipeline(wb_metal_device *device) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char *text = NULL;
    pthread_mutex_lock(&lock);
    if (!device->copying && (text = wb_metal_host->alloc(sizeof copying))) {
        memcpy(text, copying, sizeof copying);
        const wb_source source = {.text = text,
                                  .key = wb_text_hash_on(WB_TEXT_HASH, copying),
                                  .launch_count = 1,
                                  .launches = {{.entry = "k_copy"}}};
        device->copying = wb_texts_get(&device->texts, &source);
    }
    wb_metal_host->release(text);
    pthread_mutex_unlock(&lock);
    return device->copying ? ((const wb_metal_program *)device->copying->binary)->pipelines[0]
                           : NULL;
}

/* Queues a copy between buffers that do not overlap. */
static wb_status copy_once(wb_metal_device *device, wb_metal_queue *queue, wb_memory to,
                           wb_memory from, size_t size_bytes, const char *what) {
    enum { ITEMS = 256, MOST_GROUPS = 4096 };
    const uint64_t block[] = {(uint64_t)to.offset_bytes, (uint64_t)from.offset_bytes, size_bytes};
    const size_t pieces = (size_bytes + 16 * ITEMS - 1) / (16 * ITEMS);
    const mtl_id pipeline = copying_pipeline(device);
    const mtl_id encoder = pipeline ? wb_metal_encoder(queue, what, 1) : NULL;
    if (!encoder) return WB_ERROR_DEVICE;
    mtl_set_pipeline(encoder, pipeline);
    mtl_set_buffer(encoder, to.handle, 0, 0);
    mtl_set_buffer(encoder, from.handle, 0, 1);
    mtl_set_bytes(encoder, block, sizeof block, 2);
    mtl_dispatch(encoder, (mtl_size){pieces < MOST_GROUPS ? pieces : MOST_GROUPS, 1, 1},
                 (mtl_size){ITEMS, 1, 1});
    return WB_OK;
}

static bool overlap(wb_memory a, wb_memory b, size_t size_bytes) {
    const int64_t distance = a.offset_bytes - b.offset_bytes;
    return a.handle == b.handle && llabs(distance) < (long long)size_bytes;
}

/* A piece moved within its buffer goes through another one. */
static wb_status copy_local(wb_metal_device *device, wb_metal_queue *queue, wb_memory to,
                            wb_memory from, size_t size_bytes) {
    if (!overlap(to, from, size_bytes))
        return copy_once(device, queue, to, from, size_bytes, "copy");
    const wb_memory between = {wb_metal_alloc(device, size_bytes), 0};
    if (!between.handle)
        return wb_metal_host->fail(WB_ERROR_MEMORY, "copy: no memory for %zu bytes", size_bytes);
    wb_status status = copy_once(device, queue, between, from, size_bytes, "copy");
    if (status == WB_OK) status = copy_once(device, queue, to, between, size_bytes, "copy");
    wb_metal_free(device, between.handle, size_bytes);
    return status;
}

/* ---- copies between host and device ---- */

static char *host_address(wb_memory m) { return (char *)m.handle + m.offset_bytes; }

/* Where the host finds it; NULL where it cannot. */
static char *seen_address(const wb_metal_device *device, wb_memory m) {
    return device->is_unified ? (char *)mtl_contents(m.handle) + m.offset_bytes : NULL;
}

static wb_status upload(wb_metal_device *device, wb_metal_queue *queue, wb_memory to,
                        wb_memory from, size_t size_bytes) {
    char *seen = seen_address(device, to);
    if (seen && wb_metal_is_idle(queue)) {
        memcpy(seen, host_address(from), size_bytes);
        return WB_OK;
    }
    const mtl_id between = wb_metal_shared(device, size_bytes, "upload");
    if (!between) return WB_ERROR_MEMORY;
    memcpy(mtl_contents(between), host_address(from), size_bytes);
    const wb_status status =
        copy_once(device, queue, to, (wb_memory){between, 0}, size_bytes, "upload");
    mtl_release(between);
    return status;
}

/* If a command queued before it went wrong, the next sync reports that. */
static wb_status download(wb_metal_device *device, wb_metal_queue *queue, wb_memory to,
                          wb_memory from, size_t size_bytes) {
    const char *seen = seen_address(device, from);
    mtl_id between = NULL;
    if (!seen) {
        between = wb_metal_shared(device, size_bytes, "download");
        if (!between) return WB_ERROR_MEMORY;
        const wb_status status =
            copy_once(device, queue, (wb_memory){between, 0}, from, size_bytes, "download");
        if (status != WB_OK) {
            mtl_release(between);
            return status;
        }
        wb_metal_commit(queue);
        seen = mtl_contents(between);
    }
    wb_metal_settle(queue);
    memcpy(host_address(to), seen, size_bytes);
    mtl_release(between);
    return WB_OK;
}

wb_status wb_metal_copy(void *any, void *which, wb_copy_kind kind, wb_memory to, wb_memory from,
                        size_t size_bytes) {
    wb_metal_device *device = any;
    wb_metal_queue *queue = wb_metal_queue_of(device, which);
    if (size_bytes == 0) return WB_OK;
    WB_METAL_POOL(pool);
    pthread_mutex_lock(&queue->lock);
    const wb_status status = kind == WB_COPY_UPLOAD ? upload(device, queue, to, from, size_bytes)
                             : kind == WB_COPY_DOWNLOAD
                                 ? download(device, queue, to, from, size_bytes)
                                 : copy_local(device, queue, to, from, size_bytes);
    wb_metal_commit(queue);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* By way of the host, at once: devices of one Mac share no memory. Both sides are in step when the
 * host calls this. */
wb_status wb_metal_copy_peer(void *any, void *which, wb_memory to, void *other, wb_memory from,
                             size_t size_bytes) {
    if (size_bytes == 0) return WB_OK;
    const wb_memory between = {wb_metal_host->alloc_aligned(size_bytes), 0};
    if (!between.handle) return WB_ERROR_MEMORY;
    wb_status status = wb_metal_copy(other, NULL, WB_COPY_DOWNLOAD, between, from, size_bytes);
    if (status == WB_OK)
        status = wb_metal_copy(any, which, WB_COPY_UPLOAD, to, between, size_bytes);
    wb_metal_host->release_aligned(between.handle);
    return status;
}
