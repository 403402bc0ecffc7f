/* Texts to modules: from the disk cache, else through the vendor's compiler, which needs no headers
 * for them. */
#include <stdio.h>
#include <string.h>

#include "kernel.h"

enum { LOG_BYTES = 600, LOG_LINES = 6, NAME_BYTES = 64 };

static const wb_gpu_vendor *const vendor = &wb_gpu_vendor_table;

/* What the driver is given. */
typedef struct image {
    char *data;
    size_t size_bytes;
} image;

/* ---- the compiler ---- */

/* The log's first lines; the whole of it to the host's log. */
static void read_log(gpu_program program, char text[LOG_BYTES]) {
    size_t size = 0;
    text[0] = 0;
    if (rtc.GetLogSize(program, &size) != GPU_SUCCESS) return;
    char *log = wb_gpu_host->alloc(size + 1);
    if (log && rtc.GetLog(program, log) == GPU_SUCCESS) {
        if (size > 2) wb_gpu_host->log(WB_LOG_DEBUG, "%s: %s", vendor->compiler, log);
        (void)snprintf(text, LOG_BYTES, "%s", log);
    }
    wb_gpu_host->release(log);
    char *end = text;
    for (int line = 0; line < LOG_LINES && end; line++) end = strchr(end + (line > 0), '\n');
    if (end) *end = 0;
}

static wb_gpu_outcome rtc_outcome_of(const char *call, rtc_code code) {
    return (wb_gpu_outcome){.call = call,
                            .error = code == GPU_SUCCESS ? NULL : rtc.GetErrorString(code)};
}

#define RTC_TRY(function, ...) rtc_outcome_of(RTC_CALL(function), rtc.function(__VA_ARGS__))

static wb_gpu_outcome compile(const wb_gpu_device *device, gpu_program program) {
    const char *options[WB_GPU_MOST_OPTIONS + 1] = {device->target.option};
    int count = 1;
    for (int i = 0; vendor->options[i]; i++) options[count++] = vendor->options[i];
    return RTC_TRY(CompileProgram, program, count, options);
}

/* made->data is NULL, with the error recorded, when out of memory. */
static wb_gpu_outcome take_image(const wb_gpu_device *device, gpu_program program, image *made) {
    const bool portable = device->target.is_portable;
    size_t size = 0;
    const wb_gpu_outcome o =
        portable ? rtc_outcome_of("nvrtcGetPTXSize", vendor->portable_size(program, &size))
                 : RTC_TRY(GetBinarySize, program, &size);
    if (o.error) return o;
    made->data = wb_gpu_host->alloc(size + 1);
    made->size_bytes = size;
    if (!made->data) return o;
    return portable ? rtc_outcome_of("nvrtcGetPTX", vendor->portable_text(program, made->data))
                    : RTC_TRY(GetBinary, program, made->data);
}

static char *join(const wb_gpu_device *device, const wb_source *source) {
    const size_t first = strlen(device->dialect.prelude), second = strlen(source->text);
    char *text = wb_gpu_host->alloc(first + second + 1);
    if (!text) return NULL;
    memcpy(text, device->dialect.prelude, first);
    memcpy(text + first, source->text, second + 1);
    return text;
}

/* False with an error recorded. */
static bool translate(const wb_gpu_device *device, const wb_source *source, image *made) {
    gpu_program program = NULL;
    char log[LOG_BYTES] = "";
    char *text = join(device, source);
    if (!text) return false;
    wb_gpu_outcome o = RTC_TRY(CreateProgram, &program, text, "weber", 0, NULL, NULL);
    if (!o.error) {
        o = compile(device, program);
        read_log(program, log);
        if (!o.error) o = take_image(device, program, made);
        (void)rtc.DestroyProgram(&program);
    }
    wb_gpu_host->release(text);
    if (!o.error) return made->data;
    wb_gpu_host->log(WB_LOG_DEBUG, "%s: the source that does not compile: %s", vendor->backend,
                     source->text);
    (void)wb_gpu_host->fail(WB_ERROR_DEVICE, "%s: %s: %s%s%s", source->launches[0].entry, o.call,
                            o.error, log[0] ? ": " : "", log);
    return false;
}

/* ---- the disk cache ---- */

static void name_of(const wb_gpu_device *device, uint64_t key, char name[NAME_BYTES]) {
    (void)snprintf(name, NAME_BYTES, "%016llx-%016llx", (unsigned long long)key,
                   (unsigned long long)device->compiler);
}

/* NULL: the driver does not accept it. */
static gpu_module load(const char *data, const char *entry) {
    gpu_module module = NULL;
    gpu_function function = NULL;
    if (gpu.ModuleLoadData(&module, data) != GPU_SUCCESS) return NULL;
    if (gpu.ModuleGetFunction(&function, module, entry) == GPU_SUCCESS) return module;
    (void)gpu.ModuleUnload(module);
    return NULL;
}

static gpu_module from_cache(const wb_source *source, const char *name) {
    void *data = NULL;
    size_t size = 0;
    if (!wb_gpu_host->cache_read(vendor->backend, name, &data, &size)) return NULL;
    gpu_module module = load(data, source->launches[0].entry);
    if (!module)
        wb_gpu_host->log(WB_LOG_DEBUG, "%s: the cached binary %s cannot be used", vendor->backend,
                         name);
    wb_gpu_host->release(data);
    return module;
}

/* ---- for wb_texts ---- */

static gpu_module from_text(const wb_gpu_device *device, const wb_source *source,
                            const char *name) {
    image made = {.data = NULL};
    gpu_module module = NULL;
    if (translate(device, source, &made)) {
        const wb_gpu_outcome o = GPU_TRY(ModuleLoadData, &module, made.data);
        if (wb_gpu_report(source->launches[0].entry, o) != WB_OK)
            module = NULL;
        else
            wb_gpu_host->cache_write(vendor->backend, name, made.data, made.size_bytes);
    }
    wb_gpu_host->release(made.data);
    return module;
}

void *wb_gpu_module_build(void *any, const wb_source *source) {
    wb_gpu_device *device = any;
    char name[NAME_BYTES];
    if (wb_gpu_report(source->launches[0].entry, wb_gpu_enter(device)) != WB_OK) return NULL;
    name_of(device, source->key, name);
    gpu_module module = from_cache(source, name);
    return module ? module : from_text(device, source, name);
}

void wb_gpu_module_drop(void *any, void *module) {
    wb_gpu_begin_release(any);
    (void)gpu.ModuleUnload(module);
    wb_gpu_end_release(any);
}
