/* MIOpen's library. */
#include "miopen.h"

#include <dlfcn.h>
#include <stdio.h>

wb_miopen_functions mi;

static const wb_symbol symbols[] = {
#define X(result, name, parameters) {"miopen" #name, offsetof(wb_miopen_functions, name)},
    MI_FUNCTION_LIST(X)
#undef X
};

/* One name with every ROCm. */
static const char *const names[] = {"libMIOpen.so.1", "libMIOpen.so", NULL};

static wb_gpu_library library = {
    .library = {.variable = "WEBER_MIOPEN_LIBRARY",
                .names = names,
                .missing = "there is no libMIOpen.so: Weber's own convolutions are used (ROCm's "
                           "package miopen-hip)"},
    .name = "MIOpen",
    .oldest = "ROCm 6.0",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &mi};

/* What must be known about the open library; asked once. */
static struct {
    size_t major, minor, patch;
    bool has_other_runtime;
} known;

/* A library of another ROCm loads a second runtime, which knows nothing of the objects of the
 * first. */
static bool has_other_runtime(void) {
    union {
        const char *(*function)(mi_code code);
        void *address;
    } own = {.function = mi.GetErrorString};
    union {
        gpu_code (*function)(unsigned flags);
        void *address;
    } init = {.function = gpu.Init};
    Dl_info info;
    void *handle =
        dladdr(own.address, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!handle) return false;
    const void *its = dlsym(handle, "hipInit"); /* of the runtime that it uses */
    (void)dlclose(handle);
    return its && its != init.address;
}

static void look(void) {
    (void)mi.GetVersion(&known.major, &known.minor, &known.patch);
    known.has_other_runtime = has_other_runtime();
}

static bool is_since(size_t major, size_t minor) {
    return known.major > major || (known.major == major && known.minor >= minor);
}

bool wb_miopen_load(char *reason, size_t reason_bytes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!wb_gpu_library_open(&library, reason, reason_bytes)) return false;
    (void)pthread_once(&once, look);
    const bool is_old = !is_since(3, 0);
    (void)snprintf(reason, reason_bytes, "MIOpen %zu.%zu.%zu%s", known.major, known.minor,
                   known.patch,
                   is_old                    ? ": ROCm 6.0 or later is needed"
                   : known.has_other_runtime ? " uses the runtime of another ROCm"
                                             : "");
    return !is_old && !known.has_other_runtime;
}

/* Gradients of the filter by composable kernels did not before (ROCm/MIOpen, pull request 3487, of
 * February 2025). */
bool wb_miopen_repeats(wb_call_kind kind) { return kind != WB_CALL_conv_filter || is_since(3, 5); }

wb_gpu_outcome wb_miopen_outcome(const char *call, mi_code code) {
    return (wb_gpu_outcome){.call = call,
                            .error = code == MI_SUCCESS ? NULL : mi.GetErrorString(code)};
}
