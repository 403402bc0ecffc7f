/* OpenCL 1.2, as much of it as the backend uses: own declarations, so that neither headers nor
 * library are needed to build. Names, numbers and types are those of the specification
 * (registry.khronos.org/OpenCL). */
#ifndef WB_OPENCL_CL_H
#define WB_OPENCL_CL_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_ulong, cl_bitfield;
typedef struct cl_platform_object *cl_platform_id;
typedef struct cl_device_object *cl_device_id;
typedef struct cl_context_object *cl_context;
typedef struct cl_queue_object *cl_command_queue;
typedef struct cl_memory_object *cl_mem;
typedef struct cl_program_object *cl_program;
typedef struct cl_kernel_object *cl_kernel;
typedef struct cl_event_object *cl_event;

/* Error codes: CL_NAME = -number. */
#define CL_ERROR_LIST(X)                                                                           \
    X(DEVICE_NOT_FOUND, 1)                                                                         \
    X(DEVICE_NOT_AVAILABLE, 2)                                                                     \
    X(COMPILER_NOT_AVAILABLE, 3)                                                                   \
    X(MEM_OBJECT_ALLOCATION_FAILURE, 4)                                                            \
    X(OUT_OF_RESOURCES, 5)                                                                         \
    X(OUT_OF_HOST_MEMORY, 6)                                                                       \
    X(PROFILING_INFO_NOT_AVAILABLE, 7)                                                             \
    X(MEM_COPY_OVERLAP, 8)                                                                         \
    X(BUILD_PROGRAM_FAILURE, 11)                                                                   \
    X(MAP_FAILURE, 12)                                                                             \
    X(MISALIGNED_SUB_BUFFER_OFFSET, 13)                                                            \
    X(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, 14)                                               \
    X(COMPILE_PROGRAM_FAILURE, 15)                                                                 \
    X(LINKER_NOT_AVAILABLE, 16)                                                                    \
    X(LINK_PROGRAM_FAILURE, 17)                                                                    \
    X(INVALID_VALUE, 30)                                                                           \
    X(INVALID_DEVICE_TYPE, 31)                                                                     \
    X(INVALID_PLATFORM, 32)                                                                        \
    X(INVALID_DEVICE, 33)                                                                          \
    X(INVALID_CONTEXT, 34)                                                                         \
    X(INVALID_QUEUE_PROPERTIES, 35)                                                                \
    X(INVALID_COMMAND_QUEUE, 36)                                                                   \
    X(INVALID_HOST_PTR, 37)                                                                        \
    X(INVALID_MEM_OBJECT, 38)                                                                      \
    X(INVALID_BINARY, 42)                                                                          \
    X(INVALID_BUILD_OPTIONS, 43)                                                                   \
    X(INVALID_PROGRAM, 44)                                                                         \
    X(INVALID_PROGRAM_EXECUTABLE, 45)                                                              \
    X(INVALID_KERNEL_NAME, 46)                                                                     \
    X(INVALID_KERNEL_DEFINITION, 47)                                                               \
    X(INVALID_KERNEL, 48)                                                                          \
    X(INVALID_ARG_INDEX, 49)                                                                       \
    X(INVALID_ARG_VALUE, 50)                                                                       \
    X(INVALID_ARG_SIZE, 51)                                                                        \
    X(INVALID_KERNEL_ARGS, 52)                                                                     \
    X(INVALID_WORK_DIMENSION, 53)                                                                  \
    X(INVALID_WORK_GROUP_SIZE, 54)                                                                 \
    X(INVALID_WORK_ITEM_SIZE, 55)                                                                  \
    X(INVALID_GLOBAL_OFFSET, 56)                                                                   \
    X(INVALID_EVENT_WAIT_LIST, 57)                                                                 \
    X(INVALID_EVENT, 58)                                                                           \
    X(INVALID_OPERATION, 59)                                                                       \
    X(INVALID_BUFFER_SIZE, 61)                                                                     \
    X(INVALID_GLOBAL_WORK_SIZE, 63)                                                                \
    X(PLATFORM_NOT_FOUND_KHR, 1001)

enum {
    CL_SUCCESS = 0,
#define X(name, number) CL_##name = -(number),
    CL_ERROR_LIST(X)
#undef X
};

enum { CL_FALSE = 0, CL_TRUE = 1 };

enum {
    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_DEVICE_TYPE_GPU = 1 << 2,
    CL_DEVICE_TYPE_ACCELERATOR = 1 << 3,

    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_ALLOC_HOST_PTR = 1 << 4,

    CL_MAP_READ = 1 << 0,
    CL_MAP_WRITE = 1 << 1,

    CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED = 1 << 1,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
};

/* What the info functions are asked for. */
enum {
    CL_PLATFORM_NAME = 0x0902,
    CL_CONTEXT_PLATFORM = 0x1084,

    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102B,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,

    CL_PROGRAM_NUM_DEVICES = 0x1162,
    CL_PROGRAM_DEVICES = 0x1163,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,

    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_COMPLETE = 0x0,
};
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFFu

typedef void cl_context_notify(const char *text, const void *data, size_t size, void *user);
typedef void cl_program_notify(cl_program program, void *user);

/* X(name, result, parameters): clName. One a line, so that each is beside its page of the
 * specification. */
#define CL_FUNCTION_LIST(X)                                                                        \
    X(GetPlatformIDs, cl_int, (cl_uint, cl_platform_id *, cl_uint *))                              \
    X(GetPlatformInfo, cl_int, (cl_platform_id, cl_uint, size_t, void *, size_t *))                \
    X(GetDeviceIDs, cl_int, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))     \
    X(GetDeviceInfo, cl_int, (cl_device_id, cl_uint, size_t, void *, size_t *))                    \
    X(CreateContext, cl_context,                                                                   \
      (const intptr_t *, cl_uint, const cl_device_id *, cl_context_notify *, void *, cl_int *))    \
    X(ReleaseContext, cl_int, (cl_context))                                                        \
    X(CreateCommandQueue, cl_command_queue, (cl_context, cl_device_id, cl_bitfield, cl_int *))     \
    X(ReleaseCommandQueue, cl_int, (cl_command_queue))                                             \
    X(Flush, cl_int, (cl_command_queue))                                                           \
    X(Finish, cl_int, (cl_command_queue))                                                          \
    X(CreateBuffer, cl_mem, (cl_context, cl_bitfield, size_t, void *, cl_int *))                   \
    X(ReleaseMemObject, cl_int, (cl_mem))                                                          \
    X(EnqueueReadBuffer, cl_int,                                                                   \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *,       \
       cl_event *))                                                                                \
    X(EnqueueWriteBuffer, cl_int,                                                                  \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *, \
       cl_event *))                                                                                \
    X(EnqueueCopyBuffer, cl_int,                                                                   \
      (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *,        \
       cl_event *))                                                                                \
    X(EnqueueFillBuffer, cl_int,                                                                   \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *,  \
       cl_event *))                                                                                \
    X(EnqueueMapBuffer, void *,                                                                    \
      (cl_command_queue, cl_mem, cl_bool, cl_bitfield, size_t, size_t, cl_uint, const cl_event *,  \
       cl_event *, cl_int *))                                                                      \
    X(EnqueueUnmapMemObject, cl_int,                                                               \
      (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))                   \
    X(EnqueueMigrateMemObjects, cl_int,                                                            \
      (cl_command_queue, cl_uint, const cl_mem *, cl_bitfield, cl_uint, const cl_event *,          \
       cl_event *))                                                                                \
    X(EnqueueMarkerWithWaitList, cl_int,                                                           \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                   \
    X(EnqueueBarrierWithWaitList, cl_int,                                                          \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                   \
    X(EnqueueNDRangeKernel, cl_int,                                                                \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,       \
       cl_uint, const cl_event *, cl_event *))                                                     \
    X(WaitForEvents, cl_int, (cl_uint, const cl_event *))                                          \
    X(GetEventInfo, cl_int, (cl_event, cl_uint, size_t, void *, size_t *))                         \
    X(ReleaseEvent, cl_int, (cl_event))                                                            \
    X(CreateProgramWithSource, cl_program,                                                         \
      (cl_context, cl_uint, const char **, const size_t *, cl_int *))                              \
    X(CreateProgramWithBinary, cl_program,                                                         \
      (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **,          \
       cl_int *, cl_int *))                                                                        \
    X(BuildProgram, cl_int,                                                                        \
      (cl_program, cl_uint, const cl_device_id *, const char *, cl_program_notify *, void *))      \
    X(GetProgramInfo, cl_int, (cl_program, cl_uint, size_t, void *, size_t *))                     \
    X(GetProgramBuildInfo, cl_int, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))  \
    X(ReleaseProgram, cl_int, (cl_program))                                                        \
    X(CreateKernel, cl_kernel, (cl_program, const char *, cl_int *))                               \
    X(SetKernelArg, cl_int, (cl_kernel, cl_uint, size_t, const void *))                            \
    X(ReleaseKernel, cl_int, (cl_kernel))

#endif
