/* Opens the OpenCL loader by dlopen, finds its functions, and turns OpenCL's error codes into names
 * and messages. */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>

#include "../common/library.h"
#include "platform/memory.h"

/* LLVM, which PoCL uses, ends the process if it runs out of memory. */
enum { OPENED_IN = 1 << 30 };

const wb_host *wb_cl_host;
wb_cl_functions cl;

static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so",
                                    "/System/Library/Frameworks/OpenCL.framework/OpenCL", NULL};

/* ---- opening ---- */

static const wb_library loader = {
    .variable = "WEBER_OPENCL_LIBRARY",
    .names = names,
    .missing = "the OpenCL loader libOpenCL.so.1 is not installed (Debian: ocl-icd-libopencl1; and "
               "a driver, pocl-opencl-icd for the CPU)"};

static const wb_symbol symbols[] = {
#define X(name, result, parameters) {"cl" #name, offsetof(wb_cl_functions, name)},
    CL_FUNCTION_LIST(X)
#undef X
};

static bool open_loader(char *reason, size_t reason_bytes) {
    const char *missing = NULL;
    if (!wb_platform_has_address_space(OPENED_IN)) {
        (void)snprintf(reason, reason_bytes,
                       "OpenCL needs %d MiB of address space, and fewer are left (ulimit -v)",
                       OPENED_IN >> 20);
        return false;
    }
    void *library = wb_library_open(&loader, reason, reason_bytes);
    if (!library) return false;
    if (wb_library_find(library, symbols, sizeof symbols / sizeof *symbols, &cl, &missing))
        return true;
    (void)snprintf(reason, reason_bytes, "the OpenCL library has no %s: 1.2 is needed", missing);
    (void)dlclose(library);
    return false;
}

bool wb_cl_load(char *reason, size_t reason_bytes) {
    static wb_opened opened = WB_NOT_OPENED;
    return wb_library_open_once(&opened, open_loader, reason, reason_bytes);
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
