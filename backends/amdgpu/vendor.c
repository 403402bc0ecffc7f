/* AMD: HIP and hipRTC. The rest of this plugin is backends/cuda. */
#include "../cuda/vendor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "platform/library.h"

/* ---- functions ---- */

typedef struct hip_functions {
#define X(result, name, parameters) result(*name) parameters;
    GPU_HIP_LIST(X)
#undef X
} hip_functions;

static hip_functions hip;

#define GPU_NAME(cuda, hip) #hip
static const wb_symbol driver_symbols[] = {GPU_DRIVER_LIST(GPU_DRIVER_SYMBOL)};
static const wb_symbol compiler_symbols[] = {GPU_COMPILER_LIST(GPU_COMPILER_SYMBOL)};

static const wb_symbol hip_symbols[] = {
#define X(result, name, parameters) {"hip" #name, offsetof(hip_functions, name)},
    GPU_HIP_LIST(X)
#undef X
};

enum { HIP_SYMBOLS = sizeof hip_symbols / sizeof *hip_symbols };

/* ---- libraries ---- */

static const char *const driver_names[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                           "libamdhip64.so.5", "libamdhip64.so", NULL};

/* Up to ROCm 5 the compiler is part of the runtime's library. */
static const char *const *compiler_names(void) {
    static const char *const names[] = {"libhiprtc.so.7",   "libhiprtc.so.6", "libhiprtc.so.5",
                                        "libamdhip64.so.5", "libhiprtc.so",   NULL};
    return names;
}

static const char *const generator_names[] = {"libamd_comgr.so.3", "libamd_comgr.so.2",
                                              "libamd_comgr.so", NULL};

/* The code generator, which runtime and compiler open by themselves. */
static void *open_generator(void *unused) {
    void *library = NULL;
    (void)unused;
    for (int i = 0; !library && generator_names[i]; i++)
        library = dlopen(generator_names[i], RTLD_NOW | RTLD_NOLOAD);
    for (int i = 0; !library && generator_names[i]; i++)
        library = dlopen(generator_names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void try_generator(void *unused) { (void)open_generator(unused); }

static bool load(void *driver, void *compiler, char *reason, size_t reason_bytes) {
    const char *missing = NULL;
    (void)compiler;
    if (wb_library_find(driver, hip_symbols, HIP_SYMBOLS, &hip, &missing)) return true;
    (void)snprintf(reason, reason_bytes, "there is no %s: ROCm 5.0 or later is needed", missing);
    return false;
}

static bool can_begin(char *reason, size_t reason_bytes) {
    if (wb_platform_is_loaded("libamd_comgr") || !wb_platform_is_loaded("libLLVM") ||
        wb_library_survives(try_generator, NULL))
        return true;
    (void)snprintf(reason, reason_bytes,
                   "libamd_comgr conflicts with another library of this process that uses LLVM, "
                   "such as PoCL (WEBER_BACKENDS=amdgpu leaves OpenCL out)");
    return false;
}

/* ---- errors ---- */

static const char *error_name(gpu_code code) {
    return hip.GetErrorName ? hip.GetErrorName(code) : NULL;
}

/* hipInit of 5.2 answers so, where hipGetDeviceCount says what is meant. */
static bool is_no_device(gpu_code code) {
    return code == GPU_NO_DEVICE || code == GPU_INVALID_DEVICE;
}

/* ---- devices: named by their ordinals everywhere ---- */

static wb_gpu_outcome enter(int ordinal, gpu_context context) {
    (void)context;
    return wb_gpu_outcome_of("hipSetDevice", hip.SetDevice(ordinal));
}

static wb_gpu_outcome retain(int ordinal, gpu_context *context) {
    *context = NULL;
    return enter(ordinal, NULL);
}

static void release(int ordinal) { (void)ordinal; }

static gpu_code enable_peer(int ordinal, gpu_context context) {
    (void)context;
    return hip.DeviceEnablePeerAccess(ordinal, 0);
}

/* ---- what to compile for ---- */

enum { NAME_BYTES = 256, PROPERTIES_BYTES = 1 << 14 };

/* The struct of properties begins with the device's name; the rest has changed from version to
 * version. The architecture is the only text in it that begins with "gfx". */
static bool read_architecture(int ordinal, char *architecture, size_t size_bytes, gpu_code *code) {
    static const char start[] = "gfx";
    char *properties = wb_gpu_host->alloc(PROPERTIES_BYTES);
    const char *found = NULL;
    *code = properties ? hip.GetDeviceProperties(properties, ordinal) : GPU_OUT_OF_MEMORY;
    if (*code == GPU_SUCCESS)
        for (size_t i = NAME_BYTES; !found && i < PROPERTIES_BYTES - size_bytes; i++)
            if (memcmp(properties + i, start, sizeof start - 1) == 0) found = properties + i;
    if (found) (void)snprintf(architecture, size_bytes, "%s", found);
    wb_gpu_host->release(properties);
    return found;
}

typedef int comgr_count_fn(size_t *count);
typedef int comgr_name_fn(size_t index, const char **name);

/* "gfx90a:sramecc+:xnack-" is asked for as "amdgcn-amd-amdhsa--gfx90a". */
static bool is_isa_of(const char *isa, const char *architecture) {
    const char *name = strstr(isa, "gfx");
    const size_t length = strcspn(architecture, ":");
    return name && strlen(name) == length && strncmp(name, architecture, length) == 0;
}

/* hipRTC uses this library, which (seen with 5.2) ends the process if it is asked for an
 * architecture that it does not know. */
static bool compiler_knows(const char *architecture) {
    void *library = open_generator(NULL);
    union {
        void *symbol;
        comgr_count_fn *function;
    } count_of = {library ? dlsym(library, "amd_comgr_get_isa_count") : NULL};
    union {
        void *symbol;
        comgr_name_fn *function;
    } name_of = {library ? dlsym(library, "amd_comgr_get_isa_name") : NULL};
    size_t count = 0;
    bool knows = false;
    if (count_of.symbol && name_of.symbol && count_of.function(&count) == 0)
        for (size_t i = 0; !knows && i < count; i++) {
            const char *isa = NULL;
            knows = name_of.function(i, &isa) == 0 && isa && is_isa_of(isa, architecture);
        }
    return knows; /* libraries that use LLVM are not closed again */
}

static bool target(int ordinal, wb_gpu_target *t, char *reason, size_t reason_bytes) {
    int major = 0, minor = 0;
    gpu_code code;
    if (!read_architecture(ordinal, t->architecture, sizeof t->architecture, &code)) {
        (void)snprintf(reason, reason_bytes,
                       "hipGetDeviceProperties does not tell its architecture (%s)",
                       wb_gpu_error_name(code));
        return false;
    }
    (void)snprintf(t->option, sizeof t->option, "--offload-arch=%s", t->architecture);
    if (compiler_knows(t->architecture)) return true;
    (void)rtc.Version(&major, &minor);
    (void)snprintf(reason, reason_bytes, "hipRTC %d.%d does not support %s: a newer ROCm is needed",
                   major, minor, t->architecture);
    return false;
}

const wb_gpu_vendor wb_gpu_vendor_table = {
    .backend = "AMDGPU",
    .language = "HIP",
    .platform = "HIP",
    .compiler = "hipRTC",
    .oldest = "ROCm 5.0",
    .driver_library = {.variable = "WEBER_HIP_LIBRARY",
                       .names = driver_names,
                       .missing = "there is no libamdhip64.so: ROCm is not installed (Debian: "
                                  "libamdhip64-5)"},
    .compiler_library = {.variable = "WEBER_HIPRTC_LIBRARY",
                         .missing = "there is no libhiprtc.so (Debian: libamdhip64-5, "
                                    "libhiprtc-builtins5)"},
    .driver_symbols = driver_symbols,
    .driver_symbol_count = sizeof driver_symbols / sizeof *driver_symbols,
    .compiler_symbols = compiler_symbols,
    .compiler_symbol_count = sizeof compiler_symbols / sizeof *compiler_symbols,
    .options = {"-w", "-fwrapv"},
    .hiding = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
    .most_threads = UINT32_MAX,
    .uses_graphs = false, /* off: graphs were never tested on an AMD GPU */
    .attribute_units = 63,
    .compiler_names = compiler_names,
    .load = load,
    .can_begin = can_begin,
    .error_name = error_name,
    .is_no_device = is_no_device,
    .retain = retain,
    .release = release,
    .enter = enter,
    .enable_peer = enable_peer,
    .target = target,
};
