/* Opens the driver and the run-time compiler by the names in the vendor's table (vendor.c).
 * Libraries that may be missing, such as cuDNN, are looked for once, when they are first needed.
 * Error codes become names and messages here. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

const wb_host *wb_gpu_host;
wb_gpu_driver gpu;
wb_gpu_compiler rtc;

static const wb_gpu_vendor *const vendor = &wb_gpu_vendor_table;

/* ---- opening ---- */

static bool explain_missing(const char *whose, const char *missing, char *reason,
                            size_t reason_bytes) {
    (void)snprintf(reason, reason_bytes, "%s has no %s: %s or later is needed", whose, missing,
                   vendor->oldest);
    return false;
}

static void *open_driver(char *reason, size_t reason_bytes) {
    const char *missing = NULL;
    void *driver = wb_library_open(&vendor->driver_library, reason, reason_bytes);
    if (!driver || wb_library_find(driver, vendor->driver_symbols, vendor->driver_symbol_count,
                                   &gpu, &missing))
        return driver;
    (void)explain_missing("the driver's library", missing, reason, reason_bytes);
    (void)dlclose(driver);
    return NULL;
}

static void *open_compiler(char *reason, size_t reason_bytes) {
    const char *missing = NULL;
    wb_library library = vendor->compiler_library;
    library.names = vendor->compiler_names();
    void *compiler = wb_library_open(&library, reason, reason_bytes);
    if (!compiler || wb_library_find(compiler, vendor->compiler_symbols,
                                     vendor->compiler_symbol_count, &rtc, &missing))
        return compiler;
    (void)explain_missing(vendor->compiler, missing, reason, reason_bytes);
    (void)dlclose(compiler);
    return NULL;
}

static bool open_all(char *reason, size_t reason_bytes) {
    void *driver = open_driver(reason, reason_bytes);
    void *compiler = driver ? open_compiler(reason, reason_bytes) : NULL;
    if (compiler && vendor->load(driver, compiler, reason, reason_bytes)) return true;
    if (compiler) (void)dlclose(compiler);
    if (driver) (void)dlclose(driver);
    return false;
}

bool wb_gpu_load(char *reason, size_t reason_bytes) {
    static wb_opened opened = WB_NOT_OPENED;
    return wb_library_open_once(&opened, open_all, reason, reason_bytes);
}

/* ---- libraries that may be missing ---- */

static void look_for(wb_gpu_library *l) {
    const char *missing = NULL;
    void *handle = wb_library_open(&l->library, l->reason, sizeof l->reason);
    l->state = WB_GPU_MISSING;
    if (!handle) return;
    if (wb_library_find(handle, l->symbols, l->symbol_count, l->table, &missing)) {
        l->state = WB_GPU_OPEN;
        return;
    }
    (void)snprintf(l->reason, sizeof l->reason, "%s has no %s: %s or later is needed", l->name,
                   missing, l->oldest);
    (void)dlclose(handle);
}

bool wb_gpu_library_open(wb_gpu_library *library, char *reason, size_t reason_bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (library->state == WB_GPU_UNASKED) look_for(library);
    const bool is_open = library->state == WB_GPU_OPEN;
    pthread_mutex_unlock(&lock);
    if (!is_open) (void)snprintf(reason, reason_bytes, "%s", library->reason);
    return is_open;
}

/* ---- errors ---- */

const char *wb_gpu_error_name(gpu_code code) {
    static _Thread_local char unknown[24];
    const char *name = vendor->error_name(code);
    if (name) return name;
    (void)snprintf(unknown, sizeof unknown, "error %d", code);
    return unknown;
}

wb_gpu_outcome wb_gpu_outcome_of(const char *call, gpu_code code) {
    return (wb_gpu_outcome){.call = call,
                            .error = code == GPU_SUCCESS ? NULL : wb_gpu_error_name(code),
                            .is_out_of_memory = code == GPU_OUT_OF_MEMORY};
}

wb_status wb_gpu_report(const char *what, wb_gpu_outcome o) {
    if (!o.error) return WB_OK;
    return wb_gpu_host->fail(o.is_out_of_memory ? WB_ERROR_MEMORY : WB_ERROR_DEVICE, "%s: %s: %s",
                             what, o.call, o.error);
}
