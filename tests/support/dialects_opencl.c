/* OpenCL, opened at run time: the first device of the first platform. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dialects.h"
#include "support/leaks.h"

#define FUNCTIONS(X)                                                                               \
    X(int, GetPlatformIDs, (unsigned, void **, unsigned *))                                        \
    X(int, GetDeviceIDs, (void *, uint64_t, unsigned, void **, unsigned *))                        \
    X(void *, CreateContext, (const intptr_t *, unsigned, void **, void *, void *, int *))         \
    X(void *, CreateCommandQueue, (void *, void *, uint64_t, int *))                               \
    X(void *, CreateProgramWithSource, (void *, unsigned, const char **, const size_t *, int *))   \
    X(int, BuildProgram, (void *, unsigned, void **, const char *, void *, void *))                \
    X(int, GetProgramBuildInfo, (void *, void *, unsigned, size_t, void *, size_t *))              \
    X(int, ReleaseProgram, (void *))                                                               \
    X(void *, CreateKernel, (void *, const char *, int *))                                         \
    X(int, SetKernelArg, (void *, unsigned, size_t, const void *))                                 \
    X(int, ReleaseKernel, (void *))                                                                \
    X(void *, CreateBuffer, (void *, uint64_t, size_t, void *, int *))                             \
    X(int, ReleaseMemObject, (void *))                                                             \
    X(int, EnqueueReadBuffer,                                                                      \
      (void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *))                \
    X(int, EnqueueNDRangeKernel,                                                                   \
      (void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned, void *, \
       void *))                                                                                    \
    X(int, Finish, (void *))

#define X(result, name, parameters) static result(*cl##name) parameters;
FUNCTIONS(X)
#undef X

enum {
    DEVICE_ALL = -1,
    BUILD_LOG = 0x1183,
    COPY_HOST = 1 << 5,
    READ_WRITE = 1 << 0,
};

static void *device, *context, *queue;

LEAKS_OF_OTHERS("leak:libpocl\nleak:libOpenCL\n");

static const char *open_library(void) {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "libOpenCL.so.1 is not installed (Debian: ocl-icd-libopencl1)";
#define X(result, name, parameters)                                                                \
    *(void **)&cl##name = dlsym(library, "cl" #name);                                              \
    if (!cl##name) return "libOpenCL.so.1 lacks cl" #name;
    FUNCTIONS(X)
#undef X
    return NULL;
}

static const char *open_device(void) {
    const char *missing = open_library();
    void *platform;
    unsigned count = 0;
    int code;
    if (missing) return missing;
    if (clGetPlatformIDs(1, &platform, &count) != 0 || count == 0 ||
        clGetDeviceIDs(platform, (uint32_t)DEVICE_ALL, 1, &device, &count) != 0 || count == 0)
        return "no OpenCL device (Debian: pocl-opencl-icd)";
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (context) queue = clCreateCommandQueue(context, device, 0, &code);
    return queue ? NULL : "no OpenCL queue";
}

bool opencl_is_there(char *reason, size_t reason_bytes) {
    static bool is_open;
    static const char *missing;
    if (!is_open) missing = open_device();
    is_open = true;
    if (missing) (void)snprintf(reason, reason_bytes, "%s", missing);
    return !missing;
}

bool opencl_build(dialect_unit *unit, char log[DIALECT_LOG]) {
    if (!opencl_is_there(log, DIALECT_LOG)) return false;
    int code;
    char *text = dialect_join(unit->kind, unit->sources, unit->count);
    const char *texts[] = {text};
    unit->handle = clCreateProgramWithSource(context, 1, texts, NULL, &code);
    if (unit->handle)
        code = clBuildProgram(unit->handle, 1, &device, "-cl-std=CL1.2 -w", NULL, NULL);
    if (code != 0 && unit->handle) {
        (void)snprintf(log, DIALECT_LOG, "error %d", code);
        (void)clGetProgramBuildInfo(unit->handle, device, BUILD_LOG, DIALECT_LOG, log, NULL);
        (void)clReleaseProgram(unit->handle);
    }
    free(text);
    return code == 0;
}

typedef struct run {
    const wb_source *source;
    void **buffers; /* the last ones: scratch memory, status */
    int count;
    int64_t *block;
} run;

static int set_arguments(const run *r, void *kernel) {
    int code = 0;
    for (int i = 0; i < r->count; i++)
        code |= clSetKernelArg(kernel, (unsigned)i, sizeof(void *), &r->buffers[i]);
    const size_t words = (size_t)(r->source->word_count > 0 ? r->source->word_count : 1);
    return code | clSetKernelArg(kernel, (unsigned)r->count, words * sizeof *r->block, r->block);
}

static int launch(const dialect_unit *unit, const run *r, const wb_launch *l) {
    const size_t group = (size_t)dialect_of(unit->kind)->group, items = (size_t)l->groups * group;
    int code;
    void *kernel = clCreateKernel(unit->handle, l->entry, &code);
    if (!kernel) return code;
    code = set_arguments(r, kernel);
    if (code == 0)
        code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL);
    (void)clReleaseKernel(kernel);
    return code;
}

static void *buffer_of(void *data, size_t size) {
    int code;
    const uint64_t flags = data ? READ_WRITE | COPY_HOST : READ_WRITE;
    return clCreateBuffer(context, flags, size ? size : 8, size ? data : NULL, &code);
}

/* One buffer for each address; the rest are aliases. */
static void fill_buffers(run *r, void *const *arguments, const size_t *sizes, int narguments) {
    for (int i = 0; i < narguments; i++)
        for (int k = 0; k <= i; k++) {
            if (arguments[k] != arguments[i]) continue;
            r->buffers[i] =
                k < i ? r->buffers[k] : buffer_of(sizes[i] ? arguments[i] : NULL, sizes[i]);
            break;
        }
}

bool opencl_run(const dialect_unit *unit, const wb_source *s, void *const *arguments,
                const size_t *sizes, const uint64_t *late, int64_t *status, char log[DIALECT_LOG]) {
    const bool has_scratch = s->scratch_bytes > 0;
    const int narguments = s->buffer_count - has_scratch;
    run r = {.source = s, .count = s->buffer_count + s->uses_status};
    r.buffers = calloc((size_t)r.count + 1, sizeof *r.buffers);
    int64_t *offsets = calloc((size_t)r.count + 1, sizeof *offsets);
    r.block = dialect_block(s, offsets, late);
    fill_buffers(&r, arguments, sizes, narguments);
    if (has_scratch) r.buffers[narguments] = buffer_of(NULL, s->scratch_bytes);
    if (s->uses_status) r.buffers[s->buffer_count] = buffer_of(status, 4 * sizeof *status);
    int code = 0;
    for (int i = 0; i < s->launch_count && code == 0; i++) code = launch(unit, &r, &s->launches[i]);
    if (code == 0) code = clFinish(queue);
    for (int i = 0; i < narguments; i++)
        if (sizes[i] && code == 0)
            code = clEnqueueReadBuffer(queue, r.buffers[i], 1, 0, sizes[i], arguments[i], 0, NULL,
                                       NULL);
    if (s->uses_status && code == 0)
        code = clEnqueueReadBuffer(queue, r.buffers[s->buffer_count], 1, 0, 4 * sizeof *status,
                                   status, 0, NULL, NULL);
    for (int i = 0; i < r.count; i++) {
        bool is_alias = false;
        for (int k = 0; k < i; k++) is_alias = is_alias || r.buffers[k] == r.buffers[i];
        if (!is_alias && clReleaseMemObject(r.buffers[i]) != 0) code = code ? code : 1;
    }
    if (code != 0) (void)snprintf(log, DIALECT_LOG, "OpenCL: error %d", code);
    free(r.buffers);
    free(r.block);
    free(offsets);
    return code == 0;
}

void opencl_release(dialect_unit *unit) {
    if (unit->handle) (void)clReleaseProgram(unit->handle);
}
