#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const wb_host *wb_cl_host;
wb_cl_functions cl;

static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so",
                                    "/System/Library/Frameworks/OpenCL.framework/OpenCL"};

/* ---- opening ---- */

static void *open_any(char *reason, size_t reason_bytes) {
    const char *chosen = getenv("WEBER_OPENCL_LIBRARY");
    if (chosen && chosen[0]) {
        void *library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            (void)snprintf(reason, reason_bytes, "WEBER_OPENCL_LIBRARY=%s does not open: %s",
                           chosen, dlerror());
        return library;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
    }
    (void)snprintf(reason, reason_bytes,
                   "the OpenCL loader %s is not installed (Debian: ocl-icd-libopencl1; and a "
                   "driver, pocl-opencl-icd for the CPU)",
                   names[0]);
    return NULL;
}

static bool find_functions(void *library, char *reason, size_t reason_bytes) {
    static const struct {
        size_t offset;
        const char *name;
    } rows[] = {
#define X(name, result, parameters) {offsetof(wb_cl_functions, name), "cl" #name},
        CL_FUNCTION_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *function = dlsym(library, rows[i].name);
        if (!function) {
            (void)snprintf(reason, reason_bytes, "the OpenCL library has no %s: 1.2 is needed",
                           rows[i].name);
            return false;
        }
        memcpy((char *)&cl + rows[i].offset, &function, sizeof function);
    }
    return true;
}

bool wb_cl_load(char *reason, size_t reason_bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_open;
    pthread_mutex_lock(&lock);
    if (!is_open) {
        void *library = open_any(reason, reason_bytes);
        is_open = library && find_functions(library, reason, reason_bytes);
        if (library && !is_open) (void)dlclose(library);
    }
    const bool result = is_open;
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- errors ---- */

const char *wb_cl_error_name(cl_int code) {
    static _Thread_local char unknown[24];
    switch (code) {
#define X(name, number)                                                                            \
    case CL_##name:                                                                                \
        return "CL_" #name;
        CL_ERROR_LIST(X)
#undef X
    default:
        (void)snprintf(unknown, sizeof unknown, "error %d", (int)code);
        return unknown;
    }
}

wb_status wb_cl_fail(const char *what, const char *call, cl_int code) {
    return wb_cl_host->fail(WB_ERROR_DEVICE, "%s: %s: %s", what, call, wb_cl_error_name(code));
}
