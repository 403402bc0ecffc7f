/* Convolutions in MIOpen's terms, in its immediate mode: which solution is taken, and how it runs.
 * Finding by trial runs is not used: it needs memory and the device's time, and may find another
 * solution each time. */
#include "miopen.h"

#include <stdint.h>

enum { MOST_SOLUTIONS = 64 };

/* MIOpen's part of a plan. */
typedef struct mi_plan {
    mi_tensor tensors[WB_CONV_TENSORS];
    mi_convolution convolution;
    uint64_t solution;
} mi_plan;

/* What a device keeps. Setting the stream of a handle makes MIOpen ask for the device's properties
 * again, so this is done only when the stream changes. */
typedef struct mi_device {
    mi_handle handle;
    gpu_stream stream;
    bool has_stream;
} mi_device;

/* ---- directions ---- */

typedef mi_code ask_fn(mi_handle, mi_tensor, mi_tensor, mi_convolution, mi_tensor, size_t, size_t *,
                       mi_solution *);
typedef mi_code compile_fn(mi_handle, mi_tensor, mi_tensor, mi_convolution, mi_tensor, uint64_t);
typedef mi_code run_fn(mi_handle, mi_tensor, const void *, mi_tensor, const void *, mi_convolution,
                       mi_tensor, void *, void *, size_t, uint64_t);

typedef struct direction {
    int first, second, result; /* numbers of the arrays */
    const char *ask_name, *run_name;
    ask_fn *ask;
    compile_fn *compile;
    run_fn *run;
} direction;

#define DIRECTION(name)                                                                            \
    "miopenConvolution" #name "GetSolution", "miopenConvolution" #name "Immediate",                \
        mi.Convolution##name##GetSolution, mi.Convolution##name##CompileSolution,                  \
        mi.Convolution##name##Immediate

static direction direction_of(int32_t kind) {
    const direction forward = {WB_CONV_W, WB_CONV_X, WB_CONV_Y, DIRECTION(Forward)};
    const direction data = {WB_CONV_Y, WB_CONV_W, WB_CONV_X, DIRECTION(BackwardData)};
    const direction filter = {WB_CONV_Y, WB_CONV_X, WB_CONV_W, DIRECTION(BackwardWeights)};
    return kind == WB_CALL_conv_forward ? forward : kind == WB_CALL_conv_data ? data : filter;
}

/* ---- which convolutions ---- */

/* Padding is the same on both sides: the padding at the end may be more than any window reaches,
 * but must not give one more output. */
static bool is_evenly_padded(const wb_conv_shape *s, int d) {
    const int64_t reach = s->dilation[d] * (s->kernel[d] - 1) + 1;
    const int64_t room = s->in[d] + 2 * s->pad[d] - reach; /* below 0: not even one window fits */
    return room >= 0 && room / s->stride[d] + 1 == s->out[d];
}

/* Its numbers are of 32 bits. */
static bool is_small_array(const wb_conv_shape *s, int tensor) {
    int64_t sizes[5], strides[5];
    (void)wb_conv_sizes(s, tensor, sizes, strides);
    return strides[0] <= INT32_MAX / sizes[0];
}

static bool is_small_window(const wb_conv_shape *s, int d) {
    return s->stride[d] <= INT32_MAX && s->dilation[d] <= INT32_MAX && s->pad[d] <= INT32_MAX;
}

static bool is_for_it(const wb_conv_shape *s) {
    bool fits = s->dtype != WB_F64 && wb_miopen_repeats((wb_call_kind)s->kind);
    for (int d = 0; d < 3; d++) /* groups are not dilated, as miopen.h says */
        fits = fits && is_evenly_padded(s, d) && is_small_window(s, d) &&
               (s->groups == 1 || s->dilation[d] == 1);
    for (int t = 0; t < WB_CONV_TENSORS; t++) fits = fits && is_small_array(s, t);
    return fits;
}

/* ---- descriptors ---- */

static wb_gpu_outcome make_tensor(const wb_conv_shape *s, int which, mi_tensor *tensor) {
    static const mi_type types[WB_DTYPE_COUNT] = {
        [WB_F32] = MI_F32, [WB_F16] = MI_F16, [WB_BF16] = MI_BF16};
    int64_t sizes[5], strides[5];
    int narrow_sizes[5], narrow_strides[5];
    const int count = wb_conv_sizes(s, which, sizes, strides);
    for (int d = 0; d < count; d++)
        narrow_sizes[d] = (int)sizes[d], narrow_strides[d] = (int)strides[d];
    const wb_gpu_outcome o = MI_TRY(CreateTensorDescriptor, tensor);
    return o.error ? o
                   : MI_TRY(SetTensorDescriptor, *tensor, types[s->dtype], count, narrow_sizes,
                            narrow_strides);
}

static void narrow(const wb_conv_shape *s, const int64_t values[3], int *reversed) {
    int64_t wide[3];
    wb_conv_reverse(s, values, wide);
    for (int d = 0; d < wb_conv_spatial(s); d++) reversed[d] = (int)wide[d];
}

static wb_gpu_outcome make_convolution(const wb_conv_shape *s, mi_convolution *c) {
    int pads[3], strides[3], dilations[3];
    narrow(s, s->pad, pads);
    narrow(s, s->stride, strides);
    narrow(s, s->dilation, dilations);
    wb_gpu_outcome o = MI_TRY(CreateConvolutionDescriptor, c);
    if (!o.error)
        o = MI_TRY(InitConvolutionNdDescriptor, *c, wb_conv_spatial(s), pads, strides, dilations,
                   MI_CROSS_CORRELATION);
    if (!o.error) o = MI_TRY(SetConvolutionGroupCount, *c, (int)s->groups);
    return o.error ? o : MI_TRY(SetConvolutionAttribute, *c, MI_DETERMINISTIC, 1);
}

/* ---- solutions ---- */

/* Not taken: solutions that end the process on cards for which rocBLAS's build has no kernels
 * (ROCm/rocm-libraries, issue 7026); in f32, those that lose digits to large transforms; those
 * slower than our own; and those that need too much memory. */
static bool is_forbidden(const wb_conv_shape *shape, const mi_solution *s) {
    const bool is_whole = shape->dtype == WB_F32 && !shape->fast;
    return s->algorithm == MI_GEMM ||
           (is_whole && (s->algorithm == MI_FFT || s->algorithm == MI_WINOGRAD)) ||
           (s->id >= MI_FIRST_NAIVE && s->id <= MI_LAST_NAIVE) ||
           s->workspace_bytes > WB_CONV_MOST_WORKSPACE_BYTES;
}

/* The first solution that suits and compiles: the fastest come first. */
static wb_gpu_outcome choose(mi_handle handle, wb_conv_plan *plan, mi_plan *p, bool *found) {
    const direction d = direction_of(plan->shape.kind);
    const mi_tensor first = p->tensors[d.first], second = p->tensors[d.second],
                    result = p->tensors[d.result];
    mi_solution solutions[MOST_SOLUTIONS];
    size_t count = 0;
    const wb_gpu_outcome o =
        wb_miopen_outcome(d.ask_name, d.ask(handle, first, second, p->convolution, result,
                                            MOST_SOLUTIONS, &count, solutions));
    for (size_t i = 0; !o.error && !*found && i < count && i < MOST_SOLUTIONS; i++) {
        const mi_solution *s = &solutions[i];
        if (is_forbidden(&plan->shape, s)) continue;
        *found = d.compile(handle, first, second, p->convolution, result, s->id) == MI_SUCCESS;
        if (*found) p->solution = s->id, plan->workspace_bytes = (int64_t)s->workspace_bytes;
    }
    return o;
}

/* ---- plans ---- */

static void release_plan(void *by) {
    mi_plan *p = by;
    if (p->convolution) (void)mi.DestroyConvolutionDescriptor(p->convolution);
    for (int t = 0; t < WB_CONV_TENSORS; t++)
        if (p->tensors[t]) (void)mi.DestroyTensorDescriptor(p->tensors[t]);
    wb_gpu_host->release(p);
}

static wb_gpu_outcome make(void *kept, wb_conv_plan *plan) {
    const mi_device *device = kept;
    wb_gpu_outcome o = {.error = NULL};
    bool found = false;
    if (!is_for_it(&plan->shape)) return o;
    mi_plan *p = wb_gpu_host->alloc(sizeof *p);
    if (!p) return (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
    for (int t = 0; t < WB_CONV_TENSORS && !o.error; t++)
        o = make_tensor(&plan->shape, t, &p->tensors[t]);
    if (!o.error) o = make_convolution(&plan->shape, &p->convolution);
    if (!o.error) o = choose(device->handle, plan, p, &found);
    if (found)
        plan->by = p;
    else
        release_plan(p);
    return o;
}

/* ---- running ---- */

static wb_gpu_outcome use_stream(mi_device *device, gpu_stream stream) {
    if (device->has_stream && device->stream == stream) return (wb_gpu_outcome){.error = NULL};
    const wb_gpu_outcome o = MI_TRY(SetStream, device->handle, stream);
    device->stream = stream, device->has_stream = !o.error;
    return o;
}

static wb_gpu_outcome run(void *kept, const wb_conv_plan *plan, const gpu_pointer *at,
                          gpu_pointer workspace, gpu_stream stream) {
    mi_device *device = kept;
    const mi_plan *p = plan->by;
    const direction d = direction_of(plan->shape.kind);
    const size_t bytes = (size_t)plan->workspace_bytes;
    const wb_gpu_outcome o = use_stream(device, stream);
    if (o.error) return o;
    return wb_miopen_outcome(d.run_name,
                             d.run(device->handle, p->tensors[d.first], (const void *)at[d.first],
                                   p->tensors[d.second], (const void *)at[d.second], p->convolution,
                                   p->tensors[d.result], (void *)at[d.result],
                                   bytes ? (void *)workspace : NULL, bytes, p->solution));
}

/* ---- the library ---- */

static wb_gpu_outcome open_device(void **kept) {
    mi_device *device = wb_gpu_host->alloc(sizeof *device);
    if (!device) return (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
    const wb_gpu_outcome o = MI_TRY(Create, &device->handle);
    if (o.error)
        wb_gpu_host->release(device);
    else
        *kept = device;
    return o;
}

static void close_device(void *kept) {
    mi_device *device = kept;
    (void)mi.Destroy(device->handle);
    wb_gpu_host->release(device);
}

const wb_conv_library wb_conv_library_table = {
    .name = "MIOpen",
    .cannot_be_captured = true, /* runs may ask the device (ROCm/rocm-libraries, issue 12121) */
    .load = wb_miopen_load,
    .open = open_device,
    .close = close_device,
    .make = make,
    .drop = release_plan,
    .run = run,
};
