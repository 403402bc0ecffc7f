/* The driver's and the compiler's functions, by both vendors' names: own declarations, so that no
 * toolkit is needed to build.
 *
 * CUDA's driver API and HIP have the same functions here, with the same parameters in the same
 * order; HIP's enums have the numbers of CUDA's wherever this folder uses them. What is
 * different has lists of its own at the end, and its place in vendor.h. Sources:
 * docs.nvidia.com/cuda/cuda-driver-api, docs.nvidia.com/cuda/nvrtc,
 * rocm.docs.amd.com/projects/HIP. */
#ifndef WB_CUDA_DRIVER_H
#define WB_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifndef WB_DRIVER_TYPES
typedef int gpu_code;                        /* CUresult, hipError_t; 0: success */
typedef int rtc_code;                        /* nvrtcResult, hiprtcResult; 0: success */
typedef int gpu_attribute, gpu_capture_mode; /* CUdevice_attribute, CUstreamCaptureMode */
typedef struct gpu_uuid {
    char bytes[16];
} gpu_uuid;                    /* CUuuid */
typedef uintptr_t gpu_pointer; /* CUdeviceptr; void * of HIP */
typedef struct gpu_context_object *gpu_context;
typedef struct gpu_stream_object *gpu_stream;
typedef struct gpu_event_object *gpu_event;
typedef struct gpu_module_object *gpu_module;
typedef struct gpu_function_object *gpu_function;
typedef struct gpu_graph_object *gpu_graph;
typedef struct gpu_graph_exec_object *gpu_graph_exec;
typedef struct gpu_program_object *gpu_program; /* the compiler's */
#endif

/* X(name here, CUDA's, HIP's, number) */
#define GPU_NUMBER_LIST(X)                                                                         \
    X(GPU_SUCCESS, CUDA_SUCCESS, hipSuccess, 0)                                                    \
    X(GPU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory, 2)                         \
    X(GPU_NO_DEVICE, CUDA_ERROR_NO_DEVICE, hipErrorNoDevice, 100)                                  \
    X(GPU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE, hipErrorInvalidDevice, 101)                   \
    X(GPU_NOT_READY, CUDA_ERROR_NOT_READY, hipErrorNotReady, 600)                                  \
    X(GPU_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,                     \
      hipErrorPeerAccessAlreadyEnabled, 704)                                                       \
    X(GPU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, hipHostMallocPortable, 1)                       \
    X(GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, hipStreamNonBlocking, 1)                    \
    X(GPU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING, hipEventDisableTiming, 2)                      \
    X(GPU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,                               \
      hipStreamCaptureModeThreadLocal, 1)

/* X(name here, CUDA's, number): constants that HIP lacks or has with another number. */
#define GPU_CUDA_NUMBER_LIST(X)                                                                    \
    X(GPU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED, 3)                                          \
    X(GPU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY, 34)                                               \
    X(GPU_CUDA_UNITS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                \
    X(GPU_CUDA_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                            \
    X(GPU_CUDA_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)

enum {
#define X(name, cuda, hip, number) name = number,
    GPU_NUMBER_LIST(X)
#undef X
#define X(name, cuda, number) name = number,
        GPU_CUDA_NUMBER_LIST(X)
#undef X
};

/* X(name here, CUDA's, HIP's, parameters); all give a gpu_code. */
#define GPU_DRIVER_LIST(X)                                                                         \
    X(Init, cuInit, hipInit, (unsigned flags))                                                     \
    X(DriverGetVersion, cuDriverGetVersion, hipDriverGetVersion, (int *version))                   \
    X(DeviceGetCount, cuDeviceGetCount, hipGetDeviceCount, (int *count))                           \
    X(DeviceGet, cuDeviceGet, hipDeviceGet, (int *device, int index))                              \
    X(DeviceGetName, cuDeviceGetName, hipDeviceGetName, (char *name, int bytes, int device))       \
    X(DeviceGetAddress, cuDeviceGetPCIBusId, hipDeviceGetPCIBusId,                                 \
      (char *address, int bytes, int device))                                                      \
    X(DeviceTotalMem, cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t * bytes, int device))        \
    X(DeviceGetAttribute, cuDeviceGetAttribute, hipDeviceGetAttribute,                             \
      (int *value, gpu_attribute attribute, int device))                                           \
    X(DeviceCanAccessPeer, cuDeviceCanAccessPeer, hipDeviceCanAccessPeer,                          \
      (int *can, int device, int peer))                                                            \
    X(CtxSynchronize, cuCtxSynchronize, hipDeviceSynchronize, (void))                              \
    X(MemAlloc, cuMemAlloc_v2, hipMalloc, (gpu_pointer * pointer, size_t bytes))                   \
    X(MemFree, cuMemFree_v2, hipFree, (gpu_pointer pointer))                                       \
    X(MemHostAlloc, cuMemHostAlloc, hipHostMalloc, (void **memory, size_t bytes, unsigned flags))  \
    X(MemFreeHost, cuMemFreeHost, hipHostFree, (void *memory))                                     \
    X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,                                   \
      (gpu_pointer to, const void *from, size_t bytes, gpu_stream stream))                         \
    X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,                                   \
      (void *to, gpu_pointer from, size_t bytes, gpu_stream stream))                               \
    X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync,                                   \
      (gpu_pointer to, gpu_pointer from, size_t bytes, gpu_stream stream))                         \
    X(MemsetD8Async, cuMemsetD8Async, hipMemsetD8Async,                                            \
      (gpu_pointer to, unsigned char value, size_t bytes, gpu_stream stream))                      \
    X(StreamCreate, cuStreamCreate, hipStreamCreateWithFlags,                                      \
      (gpu_stream * stream, unsigned flags))                                                       \
    X(StreamDestroy, cuStreamDestroy_v2, hipStreamDestroy, (gpu_stream stream))                    \
    X(StreamSynchronize, cuStreamSynchronize, hipStreamSynchronize, (gpu_stream stream))           \
    X(StreamWaitEvent, cuStreamWaitEvent, hipStreamWaitEvent,                                      \
      (gpu_stream stream, gpu_event event, unsigned flags))                                        \
    X(StreamBeginCapture, cuStreamBeginCapture_v2, hipStreamBeginCapture,                          \
      (gpu_stream stream, gpu_capture_mode mode))                                                  \
    X(StreamEndCapture, cuStreamEndCapture, hipStreamEndCapture,                                   \
      (gpu_stream stream, gpu_graph * graph))                                                      \
    X(EventCreate, cuEventCreate, hipEventCreateWithFlags, (gpu_event * event, unsigned flags))    \
    X(EventRecord, cuEventRecord, hipEventRecord, (gpu_event event, gpu_stream stream))            \
    X(EventQuery, cuEventQuery, hipEventQuery, (gpu_event event))                                  \
    X(EventSynchronize, cuEventSynchronize, hipEventSynchronize, (gpu_event event))                \
    X(EventDestroy, cuEventDestroy_v2, hipEventDestroy, (gpu_event event))                         \
    X(EventElapsedTime, cuEventElapsedTime, hipEventElapsedTime,                                   \
      (float *milliseconds, gpu_event from, gpu_event to))                                         \
    X(ModuleLoadData, cuModuleLoadData, hipModuleLoadData,                                         \
      (gpu_module * module, const void *image))                                                    \
    X(ModuleUnload, cuModuleUnload, hipModuleUnload, (gpu_module module))                          \
    X(ModuleGetFunction, cuModuleGetFunction, hipModuleGetFunction,                                \
      (gpu_function * function, gpu_module module, const char *name))                              \
    X(LaunchKernel, cuLaunchKernel, hipModuleLaunchKernel,                                         \
      (gpu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, gpu_stream stream,               \
       void **parameters, void **extra))                                                           \
    X(GraphInstantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,                 \
      (gpu_graph_exec * exec, gpu_graph graph, unsigned long long flags))                          \
    X(GraphLaunch, cuGraphLaunch, hipGraphLaunch, (gpu_graph_exec exec, gpu_stream stream))        \
    X(GraphDestroy, cuGraphDestroy, hipGraphDestroy, (gpu_graph graph))                            \
    X(GraphExecDestroy, cuGraphExecDestroy, hipGraphExecDestroy, (gpu_graph_exec exec))

/* X(result, name here, NVRTC's, hipRTC's, parameters): the compilers. */
#define GPU_COMPILER_LIST(X)                                                                       \
    X(rtc_code, Version, nvrtcVersion, hiprtcVersion, (int *major, int *minor))                    \
    X(rtc_code, CreateProgram, nvrtcCreateProgram, hiprtcCreateProgram,                            \
      (gpu_program * program, const char *text, const char *name, int headers,                     \
       const char *const *header_texts, const char *const *header_names))                          \
    X(rtc_code, CompileProgram, nvrtcCompileProgram, hiprtcCompileProgram,                         \
      (gpu_program program, int options, const char *const *option_texts))                         \
    X(rtc_code, DestroyProgram, nvrtcDestroyProgram, hiprtcDestroyProgram,                         \
      (gpu_program * program))                                                                     \
    X(rtc_code, GetLogSize, nvrtcGetProgramLogSize, hiprtcGetProgramLogSize,                       \
      (gpu_program program, size_t * bytes))                                                       \
    X(rtc_code, GetLog, nvrtcGetProgramLog, hiprtcGetProgramLog, (gpu_program program, char *log)) \
    X(rtc_code, GetBinarySize, nvrtcGetCUBINSize, hiprtcGetCodeSize,                               \
      (gpu_program program, size_t * bytes))                                                       \
    X(rtc_code, GetBinary, nvrtcGetCUBIN, hiprtcGetCode, (gpu_program program, char *binary))      \
    X(const char *, GetErrorString, nvrtcGetErrorString, hiprtcGetErrorString, (rtc_code code))

/* X(name, parameters): what each vendor has of its own, cuName, nvrtcName, hipName. */
#define GPU_CUDA_LIST(X)                                                                           \
    X(DevicePrimaryCtxRetain, (gpu_context * context, int device))                                 \
    X(DevicePrimaryCtxRelease_v2, (int device))                                                    \
    X(DeviceGetUuid_v2, (gpu_uuid * uuid, int device))                                             \
    X(CtxSetCurrent, (gpu_context context))                                                        \
    X(CtxEnablePeerAccess, (gpu_context peer, unsigned flags))                                     \
    X(GetErrorName, (gpu_code code, const char **name))

#define GPU_NVRTC_LIST(X)                                                                          \
    X(GetNumSupportedArchs, (int *count))                                                          \
    X(GetSupportedArchs, (int *architectures))                                                     \
    X(GetPTXSize, (gpu_program program, size_t * bytes))                                           \
    X(GetPTX, (gpu_program program, char *text))

/* X(result, name, parameters). */
#define GPU_HIP_LIST(X)                                                                            \
    X(gpu_code, SetDevice, (int device))                                                           \
    X(gpu_code, DeviceEnablePeerAccess, (int peer, unsigned flags))                                \
    X(gpu_code, GetDeviceProperties, (void *properties, int device))                               \
    X(const char *, GetErrorName, (gpu_code code))

#endif
