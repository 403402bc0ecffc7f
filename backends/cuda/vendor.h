/* What the two vendors do not have in common: backends/cuda/nvidia/vendor.c is NVIDIA's table,
 * backends/amdgpu/vendor.c AMD's. All other files of backends/cuda are the same source for both
 * plugins. */
#ifndef WB_CUDA_VENDOR_H
#define WB_CUDA_VENDOR_H

#include <weber/plugin.h>

#include "../common/library.h"
#include "driver.h"

/* Set once by weber_plugin, before anything else is called. */
extern const wb_host *wb_gpu_host;

/* The functions, under the names of the lists: gpu.LaunchKernel is cuLaunchKernel or
 * hipModuleLaunchKernel. Set by wb_gpu_load. */
typedef struct wb_gpu_driver {
#define X(name, cuda, hip, parameters) gpu_code(*name) parameters;
    GPU_DRIVER_LIST(X)
#undef X
} wb_gpu_driver;
extern wb_gpu_driver gpu;

typedef struct wb_gpu_compiler {
#define X(result, name, nvrtc, hiprtc, parameters) result(*name) parameters;
    GPU_COMPILER_LIST(X)
#undef X
} wb_gpu_compiler;
extern wb_gpu_compiler rtc;

/* The outcome of a call: its name and, unless it succeeded, that of its error. The caller, who
 * knows the operation, records it. */
typedef struct wb_gpu_outcome {
    const char *call, *error; /* error NULL: success */
    bool is_out_of_memory;
} wb_gpu_outcome;

enum {
    WB_GPU_ARCHITECTURE_BYTES = 64,
    WB_GPU_MOST_OPTIONS = 4,
    WB_GPU_WARP = 32,              /* the makers' warps are 32 or 64 wide */
    WB_GPU_GROUP = 256,            /* all registers are there for it */
    WB_GPU_LONG_ROW_GROUP = 512,   /* with 128 registers each: those of a multiprocessor */
    WB_GPU_PARAMETER_BYTES = 4096, /* of a launch; 32,764 since CUDA 12.1 on Volta and later */
};

/* What to ask the compiler for. */
typedef struct wb_gpu_target {
    char architecture
        [WB_GPU_ARCHITECTURE_BYTES]; /* "sm_90", "gfx90a:sramecc+:xnack-": the device's */
    char option[WB_GPU_ARCHITECTURE_BYTES + 32]; /* "--gpu-architecture=compute_90" */
    bool is_portable; /* the compiler knows no such device: text for the driver to finish (PTX) */
} wb_gpu_target;

typedef struct wb_gpu_vendor {
    const char *backend;  /* "CUDA" */
    const char *language; /* "CUDA C", for messages */
    const char *platform; /* "CUDA", what versions are of */
    const char *compiler; /* "NVRTC": the part's name too */
    const char *oldest;   /* the first version that has all functions, for messages */
    wb_library driver_library, compiler_library;
    const wb_symbol *driver_symbols, *compiler_symbols;
    size_t driver_symbol_count, compiler_symbol_count;
    const char *options[WB_GPU_MOST_OPTIONS]; /* of every compilation; ended by NULL */
    const char *hiding[4];                    /* variables that hide devices; ended by NULL */
    int64_t most_threads;                     /* of a launch */
    bool uses_graphs;                         /* unless WEBER_GRAPHS says otherwise */
    int attribute_units; /* number of the attribute that counts multiprocessors */

    /* Where to look for the compiler, now that the driver is there. */
    const char *const *(*compiler_names)(void);
    /* The vendor's own functions. False with the reason. */
    bool (*load)(void *driver, void *compiler, char *reason, size_t reason_bytes);
    /* Optional: before the driver's first call. False with the reason. */
    bool (*can_begin)(char *reason, size_t reason_bytes);
    /* "CUDA_ERROR_OUT_OF_MEMORY"; NULL for a code without a name. */
    const char *(*error_name)(gpu_code code);
    /* True where a driver without devices answers its first call so. */
    bool (*is_no_device)(gpu_code code);
    /* The contexts of devices: enter makes one the calling thread's, release ends what retain
     * began. */
    wb_gpu_outcome (*retain)(int ordinal, gpu_context *context);
    void (*release)(int ordinal);
    wb_gpu_outcome (*enter)(int ordinal, gpu_context context);
    gpu_code (*enable_peer)(int ordinal, gpu_context context); /* the peer's */
    /* Optional: 16 bytes that no other device has. */
    gpu_code (*uuid)(int ordinal, gpu_uuid *uuid);
    /* What to compile for. False with the reason: the compiler has nothing that suits. */
    bool (*target)(int ordinal, wb_gpu_target *target, char *reason, size_t reason_bytes);
    /* The program as text for the driver, where the target is portable. */
    rtc_code (*portable_size)(gpu_program program, size_t *bytes);
    rtc_code (*portable_text)(gpu_program program, char *text);
} wb_gpu_vendor;

extern const wb_gpu_vendor wb_gpu_vendor_table;

/* Rows of the table's symbols: GPU_DRIVER_LIST(GPU_DRIVER_SYMBOL). A vendor defines GPU_NAME(cuda,
 * hip), which takes its own name. */
#define GPU_DRIVER_SYMBOL(name, cuda, hip, parameters)                                             \
    {GPU_NAME(cuda, hip), offsetof(wb_gpu_driver, name)},
#define GPU_COMPILER_SYMBOL(result, name, nvrtc, hiprtc, parameters)                               \
    {GPU_NAME(nvrtc, hiprtc), offsetof(wb_gpu_compiler, name)},

/* The vendor's name of a function of the driver: GPU_CALL(LaunchKernel) is "cuLaunchKernel" or
 * "hipModuleLaunchKernel". */
enum {
#define X(name, cuda, hip, parameters) GPU_INDEX_##name,
    GPU_DRIVER_LIST(X)
#undef X
};
enum {
#define X(result, name, nvrtc, hiprtc, parameters) RTC_INDEX_##name,
    GPU_COMPILER_LIST(X)
#undef X
};
#define RTC_CALL(function) (wb_gpu_vendor_table.compiler_symbols[RTC_INDEX_##function].name)
#define GPU_CALL(function) (wb_gpu_vendor_table.driver_symbols[GPU_INDEX_##function].name)

/* "CUDA_ERROR_LAUNCH_FAILED"; "error -9999" for a code without a name. The text belongs to the
 * thread's next call. */
const char *wb_gpu_error_name(gpu_code code);

wb_gpu_outcome wb_gpu_outcome_of(const char *call, gpu_code code);

/* wb_gpu_outcome o = GPU_TRY(StreamWaitEvent, stream, event, 0) */
#define GPU_TRY(function, ...) wb_gpu_outcome_of(GPU_CALL(function), gpu.function(__VA_ARGS__))

/* Records "what: call: CUDA_ERROR_LAUNCH_FAILED", if that is what became of it: WB_ERROR_DEVICE, or
 * WB_ERROR_MEMORY. */
wb_status wb_gpu_report(const char *what, wb_gpu_outcome outcome);

#endif
