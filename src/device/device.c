/* Devices: what a backend opened, and the table that backends get. */
#include "device/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/gone.h"
#include "platform/locks.h"
#include "program/cache.h"
#include "program/call.h"
#include "program/render.h"

static void log_line(wb_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void log_line(wb_log_level level, const char *format, ...) {
    char line[WB_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    wb_log_line(level, "%s", line);
}

static const wb_backend *builtin(const char *name) {
    return strcmp(name, wb_cpu_backend.name) == 0 ? &wb_cpu_backend : NULL;
}

const wb_host wb_builtin_host = {.abi = WB_PLUGIN_ABI,
                                 .size_bytes = sizeof(wb_host),
                                 .alloc = wb_alloc,
                                 .release = wb_release,
                                 .alloc_aligned = wb_alloc_aligned,
                                 .release_aligned = wb_release_aligned,
                                 .fail = wb_fail,
                                 .log = log_line,
                                 .render = wb_render,
                                 .render_call = wb_render_call,
                                 .has_text = wb_call_has_text,
                                 .release_source = wb_source_release,
                                 .cache_read = wb_cache_read,
                                 .cache_write = wb_cache_write,
                                 .cache_wanted = wb_cache_wanted,
                                 .builtin = builtin};

static wb_device cpu = {.name = "CPU",
                        .backend = &wb_cpu_backend,
                        .info = {.name = "CPU",
                                 .has_f64 = true,
                                 .reads_parts = true,
                                 .side_sum_row = WB_CPU_SIDE_SUM_ROW,
                                 .is_host_memory = true},
                        .mutex = PTHREAD_MUTEX_INITIALIZER};

const wb_device *wb_cpu_device(void) { return &cpu; }
const char *wb_device_name(const wb_device *device) { return device ? device->name : "no device"; }
int wb_threads(void) { return wb_cpu_threads(); }
void wb_set_threads(int threads) {
    if (threads >= 0)
        wb_cpu_set_threads(threads);
    else
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_set_threads: must not be negative, got %d", threads);
}
int wb_hold_threads(int threads) { return wb_cpu_hold_threads(threads); }

/* ---- fork: what a device works on is its parent's ---- */

static wb_device *opened;

static void before_fork(void) {
    pthread_mutex_lock(&cpu.mutex);
    for (wb_device *device = opened; device; device = device->next)
        pthread_mutex_lock(&device->mutex);
}

static void after_fork(void) {
    for (wb_device *device = opened; device; device = device->next)
        pthread_mutex_unlock(&device->mutex);
    pthread_mutex_unlock(&cpu.mutex);
}

static void in_child(void) {
    pthread_mutex_init(&cpu.mutex, NULL);
    for (wb_device *device = opened; device; device = device->next) {
        pthread_mutex_init(&device->mutex, NULL);
        pthread_mutex_init(&device->relay.mutex, NULL);
        (void)snprintf(device->failure, sizeof device->failure,
                       "this process is a fork of the one that opened it");
        device->has_failed = true;
        device->backend = wb_gone_backend(device);
        device->context = device;
    }
}

__attribute__((constructor)) static void watch_forks(void) {
    static const wb_fork_hooks hooks = {before_fork, after_fork, in_child};
    wb_lock_on_fork(WB_LOCK_DEVICES, &hooks);
}

/* Waits at exit for what is queued: after that, libraries free what a driver's threads would still
 * use. */
static void finish_queues(void) {
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    for (wb_device *device = opened; device; device = device->next)
        if (!__atomic_load_n(&device->has_failed, __ATOMIC_ACQUIRE))
            (void)device->backend->sync(device->context, NULL);
    wb_clear_error();
    wb_error_bring_back(&aside);
}

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
    (void)pthread_mutex_init(&device->mutex, NULL);
    (void)pthread_mutex_init(&device->relay.mutex, NULL);
    wb_lock_take(WB_LOCK_DEVICES);
    device->next = opened;
    opened = device;
    device->number = ++made;
    wb_lock_give(WB_LOCK_DEVICES);
    (void)atexit(finish_queues); /* exit calls the newest first: before this driver's own */
    return device;
}

wb_device *wb_device_mutable(const wb_device *device) {
    union {
        const wb_device *from;
        wb_device *to;
    } cast = {.from = device};
    return cast.to;
}

/* ---- the default device ---- */

static const wb_device *default_device; /* NULL: the CPU; __atomic */
_Thread_local const wb_device *wb_device_of_context;

const wb_device *wb_default_device(void) {
    if (wb_device_of_context) return wb_device_of_context;
    const wb_device *device = __atomic_load_n(&default_device, __ATOMIC_RELAXED);
    return device ? device : &cpu;
}

void wb_set_default_device(const wb_device *device) {
    __atomic_store_n(&default_device, device, __ATOMIC_RELAXED);
}

/* ---- failure ---- */

wb_status wb_device_check(const wb_device *device) {
    if (!__atomic_load_n(&device->has_failed, __ATOMIC_ACQUIRE)) return WB_OK;
    return wb_fail(WB_ERROR_DEVICE, "%s failed earlier: %s", device->name, device->failure);
}

void wb_device_give_up(wb_device *device) {
    pthread_mutex_lock(&device->mutex);
    if (!device->has_failed) {
        (void)snprintf(device->failure, sizeof device->failure, "%s", wb_error_text());
        __atomic_store_n(&device->has_failed, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&device->mutex);
}

wb_status wb_device_note(const wb_device *where, wb_status status) {
    if (status != WB_ERROR_DEVICE || where == &cpu) return status;
    wb_device *device = wb_device_mutable(where);
    wb_device_give_up(device);
    wb_device_let_go(device);
    return status;
}
