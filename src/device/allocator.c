/* The caching allocator: one per device. Freed memory is kept for the next array of its size class.
 * Work is queued in order, so memory may be reused while commands that used it are still queued. */
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/object.h"
#include "device/buffer.h"

/* Sizes come in classes, four to each power of two, so that a freed piece serves a slightly
 * different size. */
enum { SMALLEST = 64 };

/* ---- size classes ---- */

/* Sizes that no memory has are one more class, of as many bytes. */
static int class_of(size_t size_bytes, size_t *class_bytes) {
    if (size_bytes < SMALLEST) size_bytes = SMALLEST;
    if (size_bytes > (size_t)WB_MOST_BYTES) size_bytes = (size_t)WB_MOST_BYTES + 1;
    const int power = 63 - __builtin_clzll((unsigned long long)size_bytes);
    const size_t quarter = (size_t)1 << (power - 2);
    const size_t steps = (size_bytes - ((size_t)1 << power) + quarter - 1) / quarter; /* 0 .. 4 */
    *class_bytes = ((size_t)1 << power) + steps * quarter;
    return 4 * power + (int)steps; /* 4 steps: the next power's class 0 */
}

/* ---- the cache ---- */

static void count_live(wb_device *device, int64_t change) {
    device->live += change;
    if (device->live + device->workspace > device->peak)
        device->peak = device->live + device->workspace;
}

/* Merges two heaps into one with the lowest address on top (skew heaps: Sleator and Tarjan,
 * 1986). */
static wb_buffer *meld(wb_buffer *a, wb_buffer *b) {
    wb_buffer *top = NULL, **place = &top;
    while (a && b) {
        wb_buffer *lower = (uintptr_t)a->handle < (uintptr_t)b->handle ? a : b;
        b = lower == a ? b : a;
        a = lower->more;
        *place = lower;
        lower->more = lower->next;
        place = &lower->next;
    }
    *place = a ? a : b;
    return top;
}

/* Takes the lowest address, so that the choice depends on what is free and not on the order in
 * which it was freed: a plan that runs again gets the same memory, and so the graphs that were made
 * for it (backends/cuda/graph.c). */
static wb_buffer *take_cached(wb_device *device, int class) {
    wb_buffer *buffer = device->free[class];
    if (!buffer) return NULL;
    device->free[class] = meld(buffer->next, buffer->more);
    device->cached -= (int64_t)buffer->size_bytes;
    return buffer;
}

static wb_buffer *take_header(wb_device *device) {
    wb_buffer *buffer = device->blank;
    if (buffer) device->blank = buffer->next;
    return buffer ? buffer : wb_alloc(sizeof *buffer);
}

static void give_header(wb_device *device, wb_buffer *buffer) {
    buffer->next = device->blank;
    device->blank = buffer;
}

static void drop_cache(wb_device *device) {
    for (int class = 0; class < WB_SIZE_CLASSES; class ++) {
        for (wb_buffer *buffer; (buffer = take_cached(device, class));) {
            device->backend->free(device->context, buffer->handle, buffer->size_bytes);
            give_header(device, buffer);
        }
    }
}

/* ---- holders of memory ---- */

static void enlist(wb_device *device, wb_buffer *buffer) {
    buffer->next = device->holders, buffer->link = &device->holders;
    if (device->holders) device->holders->link = &buffer->next;
    device->holders = buffer;
}

static void strike_off(wb_buffer *buffer) {
    *buffer->link = buffer->next;
    if (buffer->next) buffer->next->link = buffer->link;
}

static int by_size(const void *a, const void *b) {
    const wb_memory_holder *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

enum { TAGS = 64 };

/* Live memory by tag, largest first; how many tags there are, those beyond TAGS left out. */
static int list_holders(const wb_device *device, wb_memory_holder *holders) {
    int count = 0;
    for (const wb_buffer *b = device->holders; b; b = b->next) {
        int i = 0;
        while (i < count && strcmp(holders[i].tag, b->tag) != 0) i++;
        if (i == TAGS) continue;
        if (i == count) holders[count++] = (wb_memory_holder){.tag = b->tag};
        holders[i].arrays++;
        holders[i].bytes += (int64_t)b->size_bytes;
    }
    qsort(holders, (size_t)count, sizeof *holders, by_size);
    return count;
}

static void *out_of_memory(const wb_device *device, size_t size_bytes) {
    wb_memory_holder holders[TAGS];
    const int count = list_holders(device, holders);
    char text[256] = "";
    size_t used = 0;
    for (int i = 0; i < count && i < 3; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s (%lld, %lld bytes)",
                                 i ? "," : "; most in", holders[i].tag,
                                 (long long)holders[i].arrays, (long long)holders[i].bytes);
    char limit[64] = "";
    if (device->limit)
        (void)snprintf(limit, sizeof limit, ", limit %lld", (long long)device->limit);
    return wb_fail_null(WB_ERROR_MEMORY,
                        "%s: out of memory: %zu bytes cannot be allocated; %lld live, %lld "
                        "workspace, %lld cached, %lld peak%s%s",
                        device->name, size_bytes, (long long)device->live,
                        (long long)device->workspace, (long long)device->cached,
                        (long long)device->peak, limit, text);
}

/* ---- asking the backend ---- */

static bool is_over_limit(const wb_device *device, size_t size_bytes) {
    if (size_bytes > (size_t)WB_MOST_BYTES) return true;
    return device->limit &&
           device->live + device->cached + device->workspace + (int64_t)size_bytes > device->limit;
}

static void *try_alloc(wb_device *device, size_t size_bytes) {
    if (is_over_limit(device, size_bytes)) return NULL;
    return device->backend->alloc(device->context, size_bytes);
}

/* Waits for what is queued; the lock is released during the wait. */
static wb_status finish_queued(wb_device *device) {
    pthread_mutex_unlock(&device->mutex);
    const wb_status status = wb_device_finish(device);
    pthread_mutex_lock(&device->mutex);
    return status;
}

/* If the backend has no memory left: finishes what is queued, returns the cache to the backend, and
 * asks again. */
static void *alloc_or_flush(wb_device *device, size_t size_bytes) {
    const bool failed_before = wb_failed();
    void *handle = try_alloc(device, size_bytes);
    if (handle || failed_before) return handle;
    wb_clear_error();
    if (finish_queued(device) != WB_OK) return NULL;
    drop_cache(device);
    handle = try_alloc(device, size_bytes);
    if (handle) return handle;
    wb_clear_error();
    return out_of_memory(device, size_bytes);
}

static wb_buffer *new_piece(wb_device *device, size_t class_bytes) {
    wb_buffer *buffer = take_header(device);
    if (!buffer) return NULL;
    buffer->handle = alloc_or_flush(device, class_bytes);
    buffer->size_bytes = class_bytes;
    if (buffer->handle) return buffer;
    give_header(device, buffer);
    return NULL;
}

/* ---- buffers ---- */

/* Its contents are unknown from now on. */
static void begin_life(wb_buffer *buffer) {
    buffer->refs = 1;
    buffer->read_only = buffer->is_lost = false;
    buffer->contents = 0;
    buffer->doubted_from = buffer->doubted = 0;
    buffer->release = NULL;
}

wb_buffer *wb_buffer_new(const wb_device *where, size_t size_bytes, const char *tag) {
    wb_device *device = wb_device_mutable(where);
    if (wb_device_check(device) != WB_OK) return NULL;
    size_t class_bytes;
    const int class = class_of(size_bytes, &class_bytes);
    pthread_mutex_lock(&device->mutex);
    wb_buffer *buffer = take_cached(device, class);
    if (!buffer) buffer = new_piece(device, class_bytes);
    if (buffer) {
        buffer->tag = tag;
        buffer->device = device;
        begin_life(buffer);
        enlist(device, buffer);
        count_live(device, (int64_t)class_bytes);
    }
    pthread_mutex_unlock(&device->mutex);
    if (buffer) wb_live_buffers(1);
    return buffer;
}

wb_buffer *wb_buffer_renew(wb_buffer *buffer) {
    wb_device *device = wb_device_mutable(buffer->device);
    if (__atomic_load_n(&buffer->refs, __ATOMIC_ACQUIRE) > 1) {
        wb_buffer *other = wb_buffer_new(device, buffer->size_bytes, buffer->tag);
        wb_buffer_unref(buffer);
        return other;
    }
    pthread_mutex_lock(&device->mutex);
    begin_life(buffer);
    pthread_mutex_unlock(&device->mutex);
    return buffer;
}

wb_buffer *wb_buffer_foreign(const wb_device *where, void *data, size_t size_bytes, bool read_only,
                             wb_release_fn *release, void *context) {
    wb_device *device = wb_device_mutable(where);
    pthread_mutex_lock(&device->mutex);
    wb_buffer *buffer = take_header(device);
    pthread_mutex_unlock(&device->mutex);
    if (!buffer) return NULL;
    *buffer = (wb_buffer){.refs = 1,
                          .read_only = read_only,
                          .is_foreign = true,
                          .device = device,
                          .handle = data,
                          .size_bytes = size_bytes,
                          .release = release,
                          .release_context = context};
    wb_live_buffers(1);
    return buffer;
}

void wb_buffer_lose(wb_buffer *buffer) {
    __atomic_store_n(&buffer->is_lost, true, __ATOMIC_RELAXED);
}

uint64_t wb_buffer_contents(wb_buffer *buffer) {
    static uint64_t newest;
    if (buffer->is_foreign) return 0;
    uint64_t contents = __atomic_load_n(&buffer->contents, __ATOMIC_RELAXED);
    if (contents) return contents;
    const uint64_t number = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
    const bool is_first = __atomic_compare_exchange_n(&buffer->contents, &contents, number, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return is_first ? number : contents; /* another thread's */
}

wb_buffer *wb_buffer_ref(wb_buffer *buffer) {
    (void)__atomic_add_fetch(&buffer->refs, 1, __ATOMIC_RELAXED);
    return buffer;
}

/* All of a GPU's memory may be used; host memory is shared with other programs. */
static int64_t cache_limit(const wb_device *device) {
    return device->info.is_gpu ? device->info.memory_bytes : (int64_t)1 << 30;
}

static void give_back(wb_device *device, wb_buffer *buffer) {
    size_t class_bytes;
    const int class = class_of(buffer->size_bytes, &class_bytes);
    strike_off(buffer);
    device->live -= (int64_t)buffer->size_bytes;
    if (device->cached > cache_limit(device)) drop_cache(device);
    buffer->next = buffer->more = NULL;
    device->free[class] = meld(device->free[class], buffer);
    device->cached += (int64_t)buffer->size_bytes;
}

void wb_buffer_unref(wb_buffer *buffer) {
    if (!buffer || __atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    wb_device *device = wb_device_mutable(buffer->device);
    wb_live_buffers(-1);
    const bool is_foreign = buffer->is_foreign;
    if (is_foreign && buffer->release) buffer->release(buffer->release_context, buffer->handle);
    pthread_mutex_lock(&device->mutex);
    if (is_foreign) {
        buffer->is_foreign = false;
        give_header(device, buffer);
    } else
        give_back(device, buffer);
    pthread_mutex_unlock(&device->mutex);
}

/* ---- workspace ---- */

void *wb_device_alloc(const wb_device *where, size_t size_bytes) {
    wb_device *device = wb_device_mutable(where);
    if (wb_device_check(device) != WB_OK) return NULL;
    pthread_mutex_lock(&device->mutex);
    void *handle = alloc_or_flush(device, size_bytes);
    if (handle) {
        device->workspace += (int64_t)size_bytes;
        count_live(device, 0);
    }
    pthread_mutex_unlock(&device->mutex);
    return handle;
}

void wb_device_free(const wb_device *where, void *handle, size_t size_bytes) {
    if (!handle) return;
    wb_device *device = wb_device_mutable(where);
    pthread_mutex_lock(&device->mutex);
    device->backend->free(device->context, handle, size_bytes);
    device->workspace -= (int64_t)size_bytes;
    pthread_mutex_unlock(&device->mutex);
}

/* ---- questions ---- */

wb_memory_info wb_memory_status(const wb_device *where) {
    if (!where) return (wb_memory_info){0};
    wb_device *device = wb_device_mutable(where);
    pthread_mutex_lock(&device->mutex);
    const wb_memory_info info = {.live = device->live,
                                 .cached = device->cached,
                                 .peak = device->peak,
                                 .workspace = device->workspace,
                                 .limit = device->limit};
    pthread_mutex_unlock(&device->mutex);
    return info;
}

int wb_memory_holders(const wb_device *where, int capacity, wb_memory_holder *holders) {
    if (!where || capacity <= 0 || !holders) return 0;
    wb_device *device = wb_device_mutable(where);
    wb_memory_holder all[TAGS];
    pthread_mutex_lock(&device->mutex);
    const int count = list_holders(device, all);
    pthread_mutex_unlock(&device->mutex);
    memcpy(holders, all, sizeof *all * (size_t)(count < capacity ? count : capacity));
    return count;
}

wb_status wb_memory_limit(const wb_device *where, int64_t bytes) {
    if (!where) return wb_fail(WB_ERROR_ARGUMENT, "wb_memory_limit: the device is NULL");
    if (bytes < 0)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_memory_limit: bytes must not be negative, got %lld",
                       (long long)bytes);
    wb_device *device = wb_device_mutable(where);
    pthread_mutex_lock(&device->mutex);
    device->limit = bytes;
    pthread_mutex_unlock(&device->mutex);
    return WB_OK;
}

void wb_memory_reclaim(const wb_device *where) {
    if (!where) return;
    wb_device *device = wb_device_mutable(where);
    pthread_mutex_lock(&device->mutex);
    drop_cache(device);
    pthread_mutex_unlock(&device->mutex);
}
