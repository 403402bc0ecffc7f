#include "device/device.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/object.h"
#include "device/buffer.h"

/* Sizes come in classes, four to each power of two, so that a freed piece serves a slightly different size. */
enum { SMALLEST = 64 };

const wb_host wb_builtin_host = {.abi = WB_PLUGIN_ABI,
                                 .size_bytes = sizeof(wb_host),
                                 .alloc = wb_alloc,
                                 .release = wb_release,
                                 .alloc_aligned = wb_alloc_aligned,
                                 .release_aligned = wb_release_aligned,
                                 .fail = wb_fail};

static wb_device cpu = {
    .name = "CPU",
    .backend = &wb_cpu_backend,
    .info = {.has_f64 = true, .is_host_memory = true},
    .mutex = PTHREAD_MUTEX_INITIALIZER
};

wb_device *wb_device_new(const wb_backend *backend, int index) {
    static int32_t made; /* guarded by the registry's lock */
    wb_device *device = wb_alloc(sizeof *device);
    if (!device) return NULL;
    *device = (wb_device){.backend = backend, .index = index};
    if (backend->info(index, &device->info) != WB_OK || !(device->context = backend->open(index))) {
        wb_release(device);
        return NULL;
    }
    (void)snprintf(device->name, sizeof device->name, "%s(%d)", backend->name, index);
    device->number = ++made;
    (void)pthread_mutex_init(&device->mutex, NULL);
    return device;
}

const wb_device *wb_cpu_device(void) { return &cpu; }
const char *wb_device_name(const wb_device *device) { return device ? device->name : "no device"; }
const wb_backend *wb_device_backend(const wb_device *device) { return device->backend; }
int wb_threads(void) { return wb_cpu_threads(); }
void wb_set_threads(int threads) { wb_cpu_set_threads(threads); }

/* Devices are handed out const: their users do not change them, their allocator does. */
static wb_device *mutable(const wb_device *device) {
    union {
        const wb_device *from;
        wb_device *to;
    } cast = {.from = device};
    return cast.to;
}

/* ---- size classes ---- */

static int class_of(size_t size_bytes, size_t *class_bytes) {
    if (size_bytes < SMALLEST) size_bytes = SMALLEST;
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

static wb_buffer *take_cached(wb_device *device, int class) {
    wb_buffer *buffer = device->free[class];
    if (!buffer) return NULL;
    device->free[class] = buffer->next;
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

static void *alloc_or_flush(wb_device *device, size_t size_bytes) {
    void *handle = device->backend->alloc(device->context, size_bytes);
    if (handle) return handle;
    drop_cache(device);
    wb_clear_error();
    handle = device->backend->alloc(device->context, size_bytes);
    if (handle) return handle;
    wb_clear_error();
    return wb_fail_null(WB_ERROR_MEMORY,
                        "%s: out of memory: %zu bytes wanted; %lld live, %lld cached, %lld peak",
                        device->name, size_bytes, (long long)device->live,
                        (long long)device->cached, (long long)device->peak);
}

static wb_buffer *new_piece(wb_device *device, size_t class_bytes) {
    wb_buffer *buffer = take_header(device);
    if (!buffer) return NULL;
    const bool failed_before = wb_failed();
    buffer->handle = failed_before ? device->backend->alloc(device->context, class_bytes)
                                   : alloc_or_flush(device, class_bytes);
    buffer->size_bytes = class_bytes;
    if (buffer->handle) return buffer;
    give_header(device, buffer);
    return NULL;
}

wb_buffer *wb_buffer_new(const wb_device *where, size_t size_bytes) {
    wb_device *device = mutable(where);
    size_t class_bytes;
    const int class = class_of(size_bytes, &class_bytes);
    pthread_mutex_lock(&device->mutex);
    wb_buffer *buffer = take_cached(device, class);
    if (!buffer) buffer = new_piece(device, class_bytes);
    if (buffer) count_live(device, (int64_t)class_bytes);
    pthread_mutex_unlock(&device->mutex);
    if (!buffer) return NULL;
    buffer->refs = 1;
    buffer->read_only = false;
    buffer->device = device;
    buffer->release = NULL;
    wb_live_buffers(1);
    return buffer;
}

wb_buffer *wb_buffer_foreign(const wb_device *where, void *data, size_t size_bytes, bool read_only,
                             wb_release_fn *release, void *context) {
    wb_device *device = mutable(where);
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

wb_buffer *wb_buffer_ref(wb_buffer *buffer) {
    (void)__atomic_add_fetch(&buffer->refs, 1, __ATOMIC_RELAXED);
    return buffer;
}

enum { CACHE_LIMIT = 1 << 30 };

void wb_buffer_unref(wb_buffer *buffer) {
    if (!buffer || __atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    wb_device *device = mutable(buffer->device);
    wb_live_buffers(-1);
    const bool is_foreign = buffer->is_foreign;
    if (is_foreign && buffer->release) buffer->release(buffer->release_context, buffer->handle);
    pthread_mutex_lock(&device->mutex);
    if (is_foreign) {
        buffer->is_foreign = false;
        give_header(device, buffer);
    } else {
        size_t class_bytes;
        const int class = class_of(buffer->size_bytes, &class_bytes);
        device->live -= (int64_t)buffer->size_bytes;
        if (device->cached > CACHE_LIMIT) drop_cache(device);
        buffer->next = device->free[class];
        device->free[class] = buffer;
        device->cached += (int64_t)buffer->size_bytes;
    }
    pthread_mutex_unlock(&device->mutex);
}

/* ---- workspace and counts ---- */

void *wb_device_alloc(const wb_device *where, size_t size_bytes) {
    wb_device *device = mutable(where);
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
    wb_device *device = mutable(where);
    pthread_mutex_lock(&device->mutex);
    device->backend->free(device->context, handle, size_bytes);
    device->workspace -= (int64_t)size_bytes;
    pthread_mutex_unlock(&device->mutex);
}

wb_memory_info wb_memory_status(const wb_device *where) {
    wb_device *device = mutable(where);
    pthread_mutex_lock(&device->mutex);
    const wb_memory_info info = {.live = device->live,
                                 .cached = device->cached,
                                 .peak = device->peak,
                                 .workspace = device->workspace};
    pthread_mutex_unlock(&device->mutex);
    return info;
}

void wb_memory_reclaim(const wb_device *where) {
    wb_device *device = mutable(where);
    pthread_mutex_lock(&device->mutex);
    drop_cache(device);
    pthread_mutex_unlock(&device->mutex);
}
