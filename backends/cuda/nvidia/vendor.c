/* NVIDIA: the CUDA driver and NVRTC. */
#include "../vendor.h"

#include <stdio.h>

/* ---- functions ---- */

typedef struct cuda_functions {
#define X(name, parameters) gpu_code(*name) parameters;
    GPU_CUDA_LIST(X)
#undef X
} cuda_functions;

typedef struct nvrtc_functions {
#define X(name, parameters) rtc_code(*name) parameters;
    GPU_NVRTC_LIST(X)
#undef X
} nvrtc_functions;

static cuda_functions cu;
static nvrtc_functions nvrtc;

#define GPU_NAME(cuda, hip) #cuda
static const wb_symbol driver_symbols[] = {GPU_DRIVER_LIST(GPU_DRIVER_SYMBOL)};
static const wb_symbol compiler_symbols[] = {GPU_COMPILER_LIST(GPU_COMPILER_SYMBOL)};

static const wb_symbol cuda_symbols[] = {
#define X(name, parameters) {"cu" #name, offsetof(cuda_functions, name)},
    GPU_CUDA_LIST(X)
#undef X
};

static const wb_symbol nvrtc_symbols[] = {
#define X(name, parameters) {"nvrtc" #name, offsetof(nvrtc_functions, name)},
    GPU_NVRTC_LIST(X)
#undef X
};

enum {
    CUDA_SYMBOLS = sizeof cuda_symbols / sizeof *cuda_symbols,
    NVRTC_SYMBOLS = sizeof nvrtc_symbols / sizeof *nvrtc_symbols,
};

static bool load(void *driver, void *compiler, char *reason, size_t reason_bytes) {
    const char *missing = NULL;
    if (wb_library_find(driver, cuda_symbols, CUDA_SYMBOLS, &cu, &missing) &&
        wb_library_find(compiler, nvrtc_symbols, NVRTC_SYMBOLS, &nvrtc, &missing))
        return true;
    (void)snprintf(reason, reason_bytes, "there is no %s: CUDA 11.4 or later is needed", missing);
    return false;
}

/* ---- libraries ---- */

static const char *const driver_names[] = {"libcuda.so.1", "libcuda.so", NULL};

/* From 13, 12 or 11: a driver may refuse what a compiler of a later major version makes. */
static const char *const *compiler_names(void) {
    static const char *const names[] = {"libnvrtc.so.13",
                                        "libnvrtc.so.12",
                                        "libnvrtc.so.11.2",
                                        "libnvrtc.so",
                                        "libnvrtc.so.13",
                                        "libnvrtc.so.12",
                                        NULL};
    int version = 0;
    if (gpu.DriverGetVersion(&version) != GPU_SUCCESS || version >= 13000) return names;
    return names + (version >= 12000 ? 1 : 2);
}

/* ---- errors ---- */

/* For a library that is not a driver, and does not know its own codes. */
static const char *name_without_driver(gpu_code code) {
    switch (code) {
    case GPU_NOT_INITIALIZED:
        return "CUDA_ERROR_NOT_INITIALIZED";
    case GPU_STUB_LIBRARY:
        return "CUDA_ERROR_STUB_LIBRARY: this is the toolkit's stub, not the driver";
    case GPU_NO_DEVICE:
        return "CUDA_ERROR_NO_DEVICE";
    default:
        return NULL;
    }
}

static const char *error_name(gpu_code code) {
    const char *name = NULL;
    if (cu.GetErrorName && cu.GetErrorName(code, &name) == GPU_SUCCESS && name) return name;
    return name_without_driver(code);
}

static bool is_no_device(gpu_code code) { return code == GPU_NO_DEVICE; }

/* ---- devices ---- */

static wb_gpu_outcome retain(int ordinal, gpu_context *context) {
    return wb_gpu_outcome_of("cuDevicePrimaryCtxRetain",
                             cu.DevicePrimaryCtxRetain(context, ordinal));
}

static void release(int ordinal) { (void)cu.DevicePrimaryCtxRelease_v2(ordinal); }

static wb_gpu_outcome enter(int ordinal, gpu_context context) {
    (void)ordinal;
    return wb_gpu_outcome_of("cuCtxSetCurrent", cu.CtxSetCurrent(context));
}

static gpu_code uuid(int ordinal, gpu_uuid *to) { return cu.DeviceGetUuid_v2(to, ordinal); }

static gpu_code enable_peer(int ordinal, gpu_context context) {
    (void)ordinal;
    return cu.CtxEnablePeerAccess(context, 0);
}

/* ---- what to compile for ---- */

enum { MOST_ARCHITECTURES = 128 };

/* The newest architecture that NVRTC knows and that is not newer than the device's; 0: none; the
 * device's own, if NVRTC does not list them. */
static int best_architecture(int wanted) {
    int list[MOST_ARCHITECTURES], count = 0, best = 0;
    if (nvrtc.GetNumSupportedArchs(&count) != GPU_SUCCESS || count <= 0 ||
        count > MOST_ARCHITECTURES || nvrtc.GetSupportedArchs(list) != GPU_SUCCESS)
        return wanted;
    for (int i = 0; i < count; i++)
        if (list[i] <= wanted && list[i] > best) best = list[i];
    return best;
}

static void explain(gpu_code code, const char *architecture, char *reason, size_t reason_bytes) {
    int major = 0, minor = 0;
    (void)rtc.Version(&major, &minor);
    if (code != GPU_SUCCESS)
        (void)snprintf(reason, reason_bytes,
                       "the driver does not tell its compute capability (cuDeviceGetAttribute: %s)",
                       wb_gpu_error_name(code));
    else
        (void)snprintf(reason, reason_bytes,
                       "NVRTC %d.%d no longer supports %s: an older one is needed", major, minor,
                       architecture);
}

static bool target(int ordinal, wb_gpu_target *t, char *reason, size_t reason_bytes) {
    int major = 0, minor = 0;
    gpu_code code = gpu.DeviceGetAttribute(&major, GPU_CUDA_MAJOR, ordinal);
    if (code == GPU_SUCCESS) code = gpu.DeviceGetAttribute(&minor, GPU_CUDA_MINOR, ordinal);
    const int wanted = 10 * major + minor, best = best_architecture(wanted);
    (void)snprintf(t->architecture, sizeof t->architecture, "sm_%d", wanted);
    t->is_portable = best != wanted;
    (void)snprintf(t->option, sizeof t->option, "--gpu-architecture=%s_%d",
                   t->is_portable ? "compute" : "sm", best);
    if (code == GPU_SUCCESS && best) return true;
    explain(code, t->architecture, reason, reason_bytes);
    return false;
}

static rtc_code portable_size(gpu_program program, size_t *bytes) {
    return nvrtc.GetPTXSize(program, bytes);
}

static rtc_code portable_text(gpu_program program, char *text) {
    return nvrtc.GetPTX(program, text);
}

const wb_gpu_vendor wb_gpu_vendor_table = {
    .backend = "CUDA",
    .language = "CUDA C",
    .platform = "CUDA",
    .compiler = "NVRTC",
    .oldest = "CUDA 11.4",
    .driver_library = {.variable = "WEBER_CUDA_LIBRARY",
                       .names = driver_names,
                       .missing =
                           "there is no libcuda.so.1: no NVIDIA driver is installed (Debian: "
                           "nvidia-driver, libcuda1; section non-free)"},
    .compiler_library = {.variable = "WEBER_NVRTC_LIBRARY",
                         .missing = "there is no libnvrtc.so: the CUDA toolkit's compiler is not "
                                    "installed (Debian: libnvrtc11.2; section non-free)"},
    .driver_symbols = driver_symbols,
    .driver_symbol_count = sizeof driver_symbols / sizeof *driver_symbols,
    .compiler_symbols = compiler_symbols,
    .compiler_symbol_count = sizeof compiler_symbols / sizeof *compiler_symbols,
    .options = {"--std=c++17", "--disable-warnings"},
    .hiding = {"CUDA_VISIBLE_DEVICES"},
    .most_threads = (int64_t)INT32_MAX * WB_GPU_GROUP, /* INT32_MAX groups */
    .uses_graphs = true,
    .attribute_units = GPU_CUDA_UNITS,
    .compiler_names = compiler_names,
    .load = load,
    .error_name = error_name,
    .is_no_device = is_no_device,
    .retain = retain,
    .release = release,
    .enter = enter,
    .enable_peer = enable_peer,
    .uuid = uuid,
    .target = target,
    .portable_size = portable_size,
    .portable_text = portable_text,
};
