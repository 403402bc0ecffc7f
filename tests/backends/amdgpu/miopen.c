/* A library that stands for MIOpen's immediate mode over the fake driver's memory: convolutions of
 * f32, nothing of halves. It proposes solutions that must not be taken first, and refuses what its
 * header does not allow. It proves that convolutions are described rightly, and nothing about
 * speed. */
#include <limits.h>
#include <stdio.h>

#include "amdgpu/miopen_api.h"
#include "backends/cuda/convolve.h"

enum { WORKSPACE = 100, WORKSPACE_ALIGNMENT = 64 };
enum { MOST_DIMENSIONS = 5 };

struct mi_handle_object {
    mi_stream stream;
    bool has_stream;
};

struct mi_tensor_object {
    mi_type type;
    int count;
    int64_t sizes[MOST_DIMENSIONS];
};

struct mi_convolution_object {
    int spatial, groups, is_deterministic;
    int64_t pads[3], strides[3], dilations[3];
};

/* live objects, solutions asked for (of halves), questions that the header does not allow,
 * convolutions, streams set; read by the test */
extern long fake_mi_live, fake_mi_asked, fake_mi_halves, fake_mi_wrong, fake_mi_convolutions,
    fake_mi_streams;
long fake_mi_live, fake_mi_asked, fake_mi_halves, fake_mi_wrong, fake_mi_convolutions,
    fake_mi_streams;

/* set by the test: the n-th call from now on fails (0: none); the version, 3.5 being 35 */
extern long fake_mi_fail, fake_mi_version;
long fake_mi_fail, fake_mi_version = 35;

#define X_(result, name, parameters) result miopen##name parameters;
MI_FUNCTION_LIST(X_)
#undef X_

#ifdef OWN_RUNTIME /* as of another ROCm */
gpu_code hipInit(unsigned flags);
gpu_code hipInit(unsigned flags) { return (gpu_code)flags; }
#endif

__attribute__((destructor)) static void tell(void) {
    (void)fprintf(stderr, "MIOpen's stand-in: %ld convolutions\n", fake_mi_convolutions);
}

static bool fails(void) { return fake_mi_fail > 0 && --fake_mi_fail == 0; }
#define MAY_FAIL                                                                                   \
    if (fails()) return MI_UNKNOWN_ERROR

mi_code miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
    *major = (size_t)fake_mi_version / 10, *minor = (size_t)fake_mi_version % 10, *patch = 0;
    return MI_SUCCESS;
}
const char *miopenGetErrorString(mi_code code) {
    return code == MI_BAD_PARAMETER ? "miopenStatusBadParm" : "miopenStatusUnknownError";
}

static mi_code made(size_t bytes, void **object) {
    MAY_FAIL;
    fake_mi_live++;
    *object = calloc(1, bytes);
    return MI_SUCCESS;
}

static mi_code dropped(void *object) {
    fake_mi_live--;
    free(object);
    return MI_SUCCESS;
}

mi_code miopenCreate(mi_handle *handle) { return made(sizeof **handle, (void **)handle); }
mi_code miopenDestroy(mi_handle handle) { return dropped(handle); }

mi_code miopenSetStream(mi_handle handle, mi_stream stream) {
    MAY_FAIL;
    fake_mi_streams++;
    handle->stream = stream, handle->has_stream = true;
    return MI_SUCCESS;
}

/* ---- descriptors ---- */

mi_code miopenCreateTensorDescriptor(mi_tensor *tensor) {
    return made(sizeof **tensor, (void **)tensor);
}
mi_code miopenDestroyTensorDescriptor(mi_tensor tensor) { return dropped(tensor); }

mi_code miopenSetTensorDescriptor(mi_tensor tensor, mi_type type, int count, const int *sizes,
                                  const int *strides) {
    int64_t step = 1;
    MAY_FAIL;
    if (count < 4 || count > MOST_DIMENSIONS) return MI_BAD_PARAMETER;
    tensor->type = type, tensor->count = count;
    for (int d = count - 1; d >= 0; d--) {
        if (sizes[d] < 1 || strides[d] != step) return MI_BAD_PARAMETER;
        tensor->sizes[d] = sizes[d];
        step *= sizes[d];
    }
    return step <= INT_MAX ? MI_SUCCESS : MI_BAD_PARAMETER;
}

mi_code miopenCreateConvolutionDescriptor(mi_convolution *convolution) {
    const mi_code code = made(sizeof **convolution, (void **)convolution);
    if (code == MI_SUCCESS) (*convolution)->groups = 1;
    return code;
}
mi_code miopenDestroyConvolutionDescriptor(mi_convolution convolution) {
    return dropped(convolution);
}

mi_code miopenInitConvolutionNdDescriptor(mi_convolution convolution, int spatial, const int *pads,
                                          const int *strides, const int *dilations, mi_mode mode) {
    MAY_FAIL;
    if (mode != MI_CROSS_CORRELATION || spatial < 2 || spatial > 3) return MI_BAD_PARAMETER;
    convolution->spatial = spatial;
    for (int d = 0; d < spatial; d++) {
        if (pads[d] < 0 || strides[d] < 1 || dilations[d] < 1) return MI_BAD_PARAMETER;
        convolution->pads[d] = pads[d], convolution->strides[d] = strides[d];
        convolution->dilations[d] = dilations[d];
    }
    return MI_SUCCESS;
}

mi_code miopenSetConvolutionGroupCount(mi_convolution convolution, int groups) {
    MAY_FAIL;
    if (convolution->spatial == 0 || groups < 1) return MI_BAD_PARAMETER; /* after Init */
    convolution->groups = groups;
    return MI_SUCCESS;
}

mi_code miopenSetConvolutionAttribute(mi_convolution convolution, mi_attribute attribute,
                                      int value) {
    MAY_FAIL;
    if (attribute != MI_DETERMINISTIC) return MI_BAD_PARAMETER;
    convolution->is_deterministic = value;
    return MI_SUCCESS;
}

/* ---- solutions ---- */

enum { BROKEN = 30, GOOD = 140, UNCHANGING = 141 };

static const mi_solution proposals[] = {
    {1, 0, 91, MI_GEMM},
    {2, 0, 53, MI_WINOGRAD},
    {3, 0, 33, MI_FFT},
    {4, (size_t)1 << 40, 60, MI_IMPLICIT_GEMM},
    {5, WORKSPACE, MI_FIRST_NAIVE, MI_DIRECT},
    {6, WORKSPACE, MI_LAST_NAIVE, MI_DIRECT},
    {7, 0, BROKEN, MI_DIRECT},
    {8, WORKSPACE, GOOD, MI_IMPLICIT_GEMM},
    {9, 0, UNCHANGING, MI_IMPLICIT_GEMM},
};

/* The sizes belong together. */
static bool is_whole(const walk *k, const struct mi_convolution_object *c) {
    bool fits = k->sizes[X][0] == k->sizes[Y][0] && k->sizes[Y][1] == k->sizes[W][0] &&
                k->sizes[X][1] == k->sizes[W][1] * c->groups && k->sizes[W][0] % c->groups == 0;
    for (int d = 0; d < c->spatial; d++) {
        const int64_t reach = c->dilations[d] * (k->sizes[W][2 + d] - 1) + 1;
        const int64_t padded = k->sizes[X][2 + d] + 2 * c->pads[d];
        fits = fits && (c->groups == 1 || c->dilations[d] == 1) &&
               (padded - reach) / c->strides[d] + 1 == k->sizes[Y][2 + d];
    }
    return fits;
}

/* tensors: x, w, y */
static mi_code describe(const mi_tensor tensors[ARRAYS], mi_convolution c, int result, walk *k) {
    *k = (walk){.spatial = c->spatial,
                .result = result,
                .stride = c->strides,
                .dilation = c->dilations,
                .pad = c->pads};
    for (int t = 0; t < ARRAYS; t++) {
        if (tensors[t]->type != tensors[X]->type || tensors[t]->count != c->spatial + 2)
            return MI_BAD_PARAMETER;
        k->sizes[t] = tensors[t]->sizes;
    }
    return c->is_deterministic == 1 && is_whole(k, c) ? MI_SUCCESS : MI_BAD_PARAMETER;
}

static mi_code ask(const mi_tensor tensors[ARRAYS], mi_convolution c, int result, size_t most,
                   size_t *count, mi_solution *solutions) {
    enum { PROPOSALS = sizeof proposals / sizeof *proposals };
    walk k;
    MAY_FAIL;
    const bool is_half = tensors[X]->type == MI_F16 || tensors[X]->type == MI_BF16;
    if (describe(tensors, c, result, &k) != MI_SUCCESS ||
        (!is_half && tensors[X]->type != MI_F32)) {
        fake_mi_wrong++;
        return MI_BAD_PARAMETER;
    }
    fake_mi_asked++, fake_mi_halves += is_half;
    *count = is_half ? 0 : PROPOSALS < most ? PROPOSALS : most;
    memcpy(solutions, proposals, *count * sizeof *solutions);
    return MI_SUCCESS;
}

static mi_code compile(uint64_t id) {
    MAY_FAIL;
    return id == BROKEN ? MI_NOT_IMPLEMENTED : MI_SUCCESS;
}

static mi_code run(mi_handle handle, const mi_tensor tensors[ARRAYS], mi_convolution c, int result,
                   void *const pointers[ARRAYS], const void *workspace, size_t bytes, uint64_t id) {
    walk k;
    MAY_FAIL;
    const mi_code code = describe(tensors, c, result, &k);
    const size_t wanted = id == GOOD ? WORKSPACE : 0;
    if (code != MI_SUCCESS || (id != GOOD && id != UNCHANGING) || !handle->has_stream ||
        bytes < wanted || (bytes > 0) != (workspace != NULL) ||
        (uintptr_t)workspace % WORKSPACE_ALIGNMENT != 0)
        return MI_BAD_PARAMETER;
    fake_mi_convolutions++;
    return convolve_at(&k, handle->stream, pointers) ? MI_SUCCESS : MI_UNKNOWN_ERROR;
}

/* A direction's functions: which of x, w and y are its first, second and result. */
#define DIRECTION(name, first, second, result)                                                     \
    mi_code miopenConvolution##name##GetSolution(mi_handle handle, mi_tensor a, mi_tensor b,       \
                                                 mi_convolution c, mi_tensor r, size_t most,       \
                                                 size_t *count, mi_solution *solutions) {          \
        const mi_tensor tensors[ARRAYS] = {[first] = a, [second] = b, [result] = r};               \
        (void)handle;                                                                              \
        return ask(tensors, c, result, most, count, solutions);                                    \
    }                                                                                              \
    mi_code miopenConvolution##name##CompileSolution(mi_handle handle, mi_tensor a, mi_tensor b,   \
                                                     mi_convolution c, mi_tensor r, uint64_t id) { \
        (void)handle, (void)a, (void)b, (void)c, (void)r;                                          \
        return compile(id);                                                                        \
    }                                                                                              \
    mi_code miopenConvolution##name##Immediate(                                                    \
        mi_handle handle, mi_tensor a, const void *a_at, mi_tensor b, const void *b_at,            \
        mi_convolution c, mi_tensor r, void *r_at, void *workspace, size_t bytes, uint64_t id) {   \
        const mi_tensor tensors[ARRAYS] = {[first] = a, [second] = b, [result] = r};               \
        void *const pointers[ARRAYS] = {[first] = (void *)(uintptr_t)a_at,                         \
                                        [second] = (void *)(uintptr_t)b_at,                        \
                                        [result] = r_at};                                          \
        return run(handle, tensors, c, result, pointers, workspace, bytes, id);                    \
    }
DIRECTION(Forward, W, X, Y)
DIRECTION(BackwardData, Y, W, X)
DIRECTION(BackwardWeights, Y, X, W)
