/* Opening and closing a device. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include <backends/cuda/prelude.txt.h>

static const wb_gpu_vendor *const vendor = &wb_gpu_vendor_table;

/* ---- the thread's device ---- */

wb_gpu_outcome wb_gpu_enter(const wb_gpu_device *device) {
    return vendor->enter(device->ordinal, device->context);
}

/* They are made under this lock. */
void wb_gpu_pause_graphs(wb_gpu_device *device) { pthread_mutex_lock(&device->own.lock); }
void wb_gpu_resume_graphs(wb_gpu_device *device) { pthread_mutex_unlock(&device->own.lock); }

void wb_gpu_begin_release(wb_gpu_device *device) {
    wb_gpu_pause_graphs(device);
    if (!wb_gpu_enter(device).error)
        (void)gpu.CtxSynchronize(); /* the next sync reports a fault as well */
}

void wb_gpu_end_release(wb_gpu_device *device) { wb_gpu_resume_graphs(device); }

/* ---- the compiler ---- */

static void set_compiler(wb_gpu_device *device) {
    int major = 0, minor = 0, driver = 0;
    char versions[64];
    (void)rtc.Version(&major, &minor);
    (void)gpu.DriverGetVersion(&driver);
    (void)snprintf(versions, sizeof versions, "%d.%d %d", major, minor, driver);
    device->compiler = wb_text_hash_on(WB_TEXT_HASH, versions);
    device->compiler = wb_text_hash_on(device->compiler, device->target.option);
    for (int i = 0; vendor->options[i]; i++)
        device->compiler = wb_text_hash_on(device->compiler, vendor->options[i]);
    device->dialect = (wb_dialect){.name = vendor->language,
                                   .prelude = prelude_text,
                                   .group = WB_GPU_GROUP,
                                   .most_group = WB_GPU_LONG_ROW_GROUP,
                                   .warp = WB_GPU_WARP,
                                   .job_bytes = WB_GPU_PARAMETER_BYTES,
                                   .has_f64 = true};
}

/* ---- opening ---- */

/* "0" and "1" decide. */
static bool option(const char *variable, bool otherwise) {
    const char *value = getenv(variable);
    return value && value[0] ? strcmp(value, "0") != 0 : otherwise;
}

/* WEBER_TUNE: milliseconds for each shape; -1: not set. */
static int64_t tune_ms(void) {
    enum { MOST_MS = 1000000 };
    const char *value = getenv("WEBER_TUNE");
    char *end = NULL;
    if (!value || !value[0]) return -1;
    const long long ms = strtoll(value, &end, 10);
    if (!*end && ms >= 0) return ms < MOST_MS ? ms : MOST_MS;
    wb_gpu_host->log(WB_LOG_WARN,
                     "WEBER_TUNE must be a whole number of milliseconds (0: no measuring), got %s",
                     value);
    return 0;
}

static bool open_context(wb_gpu_device *device) {
    gpu_context context = NULL;
    const wb_gpu_outcome o = vendor->retain(device->ordinal, &context);
    if (wb_gpu_report(vendor->backend, o) != WB_OK) return false;
    device->context = context;
    device->is_retained = true;
    return true;
}

static bool open_parts(wb_gpu_device *device) {
    gpu_stream stream = NULL;
    wb_gpu_outcome o = wb_gpu_enter(device);
    if (!o.error) o = GPU_TRY(StreamCreate, &stream, GPU_STREAM_NON_BLOCKING);
    if (wb_gpu_report(vendor->backend, o) != WB_OK) return false;
    device->capture = stream;
    if (!wb_gpu_queue_init(device, &device->own)) return false;
    device->dummy = (gpu_pointer)wb_gpu_alloc(device, 64);
    if (device->dummy) return true;
    (void)wb_gpu_host->fail(WB_ERROR_MEMORY, "%s: its memory is full", vendor->backend);
    return false;
}

void *wb_gpu_open(int index) {
    wb_gpu_found found;
    if (!wb_gpu_find(index, &found)) return NULL;
    wb_gpu_device *device = wb_gpu_host->alloc(sizeof *device);
    if (!device) return NULL;
    device->ordinal = found.ordinal;
    device->target = found.target;
    device->waits_always = option("WEBER_SYNC", false);
    device->tune_ms = tune_ms();
    device->uses_graphs = option("WEBER_GRAPHS", vendor->uses_graphs) && !device->waits_always;
    (void)pthread_mutex_init(&device->pinned_lock, NULL);
    (void)pthread_mutex_init(&device->own.lock, NULL);
    (void)pthread_mutex_init(&device->events_lock, NULL);
    (void)pthread_mutex_init(&device->libraries_lock, NULL);
    device->texts = (wb_texts){.host = wb_gpu_host,
                               .context = device,
                               .build = wb_gpu_module_build,
                               .drop = wb_gpu_module_drop};
    wb_texts_init(&device->texts);
    set_compiler(device);
    if (open_context(device) && open_parts(device)) return device;
    wb_gpu_close(device);
    return NULL;
}

void wb_gpu_close(void *any) {
    wb_gpu_device *device = any;
    if (!device) return;
    if (device->is_retained) {
        wb_gpu_begin_release(device);
        wb_gpu_end_release(device);
        for (int i = 0; wb_gpu_parts[i]; i++)
            if (wb_gpu_parts[i]->close) wb_gpu_parts[i]->close(device);
    }
    wb_gpu_queue_release(&device->own);
    wb_texts_release(&device->texts);
    wb_gpu_events_release(device);
    while (device->pinned) wb_gpu_free_pinned(device, device->pinned->memory, 0);
    if (device->dummy) (void)gpu.MemFree(device->dummy);
    if (device->capture) (void)gpu.StreamDestroy(device->capture);
    if (device->is_retained) vendor->release(device->ordinal);
    (void)pthread_mutex_destroy(&device->libraries_lock);
    (void)pthread_mutex_destroy(&device->events_lock);
    (void)pthread_mutex_destroy(&device->own.lock);
    (void)pthread_mutex_destroy(&device->pinned_lock);
    wb_gpu_host->release(device);
}
