/* A backend that computes nothing, as a plugin. It is compiled under several names, with and
 * without a fault, and the environment steers it, CUDA's fake by FAKE_CUDA_...:
 *
 *   LOAD=text     load fails, for this reason
 *   COUNT=n       devices; 1 without it
 *   WHY=text      the reason for no devices
 *   NAMES=a|b     what they are called; NVIDIA GeForce GTX 1650 without it
 *   GPUS=01       whether each is a GPU; all are without it
 *   CLOSED=n      device number n cannot be opened */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weber/plugin.h>

#ifndef FAKE_ABI
#define FAKE_ABI WB_PLUGIN_ABI
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(wb_backend)
#endif

static const wb_host *host;

static const char *setting(const char *name) {
    char variable[64];
    (void)snprintf(variable, sizeof variable, "FAKE_%s_%s", FAKE_NAME, name);
    return getenv(variable);
}

static bool load(char *reason, size_t reason_bytes) {
    const char *text = setting("LOAD");
    if (text) (void)snprintf(reason, reason_bytes, "%s", text);
    return text == NULL;
}

static int count(char *reason, size_t reason_bytes) {
    const char *text = setting("COUNT"), *why = setting("WHY");
    const int n = text ? atoi(text) : 1;
    if (n == 0 && why) (void)snprintf(reason, reason_bytes, "%s", why);
    return n;
}

static wb_status info(int index, wb_device_info *i) {
    const char *name = setting("NAMES"), *gpus = setting("GPUS");
    if (!name) name = "NVIDIA GeForce GTX 1650";
    for (int n = 0; n < index && strchr(name, '|'); n++) name = strchr(name, '|') + 1;
    *i = (wb_device_info){.memory_bytes = (int64_t)4 << 30, .compute_units = 14, .has_f64 = true};
    (void)snprintf(i->name, sizeof i->name, "%.*s", (int)strcspn(name, "|"), name);
    (void)snprintf(i->driver, sizeof i->driver, "fake driver 1.0");
    i->is_gpu = !gpus || gpus[index] == '1';
    return WB_OK;
}

static bool part(const char *name, char *reason, size_t reason_bytes) {
    const bool works = strcmp(name, "cuDNN") == 0;
    if (!works) (void)snprintf(reason, reason_bytes, "there is no part %s", name);
    return works;
}

static void *open_device(int index) {
    static int opened;
    const char *closed = setting("CLOSED");
    if (!closed || atoi(closed) != index) return &opened;
    (void)host->fail(WB_ERROR_DEVICE, "the driver is busy");
    return NULL;
}

static void close_device(void *device) { (void)device; }

static void *alloc(void *device, size_t size_bytes) {
    (void)device;
    return host->alloc_aligned(size_bytes);
}

static void release_memory(void *device, void *handle, size_t size_bytes) {
    (void)device, (void)size_bytes;
    host->release_aligned(handle);
}

static void *kernel(void *device, const wb_program *program) {
    (void)device, (void)program;
    (void)host->fail(WB_ERROR_UNSUPPORTED, "a fake computes nothing");
    return NULL;
}

static void *lower(void *device, const wb_call *call, const wb_program *epilogue, int split) {
    (void)device, (void)call, (void)epilogue, (void)split;
    (void)host->fail(WB_ERROR_UNSUPPORTED, "a fake computes nothing");
    return NULL;
}

static size_t scratch_bytes(const void *k) {
    (void)k;
    return 0;
}

static void release(void *k) { (void)k; }

static wb_status copy(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                      size_t size_bytes) {
    (void)device, (void)queue, (void)kind;
    memcpy((char *)to.handle + to.offset_bytes, (char *)from.handle + from.offset_bytes,
           size_bytes);
    return WB_OK;
}

#ifndef FAKE_NO_RUN
static wb_status run(void *device, void *queue, const wb_command *commands, int n,
                     const wb_memory *memory, const uint64_t *late) {
    (void)device, (void)queue, (void)commands, (void)n, (void)memory, (void)late;
    return WB_OK;
}
#endif

static wb_status sync_queue(void *device, void *queue) {
    (void)device, (void)queue;
    return WB_OK;
}

static const wb_backend backend = {.abi = FAKE_ABI,
                                   .size_bytes = FAKE_SIZE,
                                   .name = FAKE_NAME,
                                   .load = load,
                                   .count = count,
                                   .info = info,
                                   .part = part,
                                   .open = open_device,
                                   .close = close_device,
                                   .alloc = alloc,
                                   .free = release_memory,
                                   .kernel = kernel,
                                   .lower = lower,
                                   .scratch_bytes = scratch_bytes,
                                   .release = release,
                                   .copy = copy,
#ifndef FAKE_NO_RUN
                                   .run = run,
#endif
                                   .sync = sync_queue};

WB_API const wb_backend *weber_plugin(const wb_host *h);
const wb_backend *weber_plugin(const wb_host *h) {
    host = h;
    const wb_backend *given = &backend;
#ifdef FAKE_REFUSES
    (void)h->fail(WB_ERROR_UNSUPPORTED, "too old for me");
    given = NULL;
#endif
    return given;
}
