/* Our declarations of NVIDIA's libraries beside the toolkit's own: a number, a size or a parameter
 * that is another one does not compile. And the toolkit's libraries have all the functions, by
 * these names. */
#include <cmocka.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "support/leaks.h"

LEAKS_OF_OTHERS(LEAKS_OF_VENDORS);

#ifdef __has_include
#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)
#define HAS_DRIVER 1
#endif
#if __has_include(<cublasLt.h>)
#define HAS_CUBLASLT 1
#endif
#if __has_include(<cudnn.h>)
#define HAS_CUDNN 1
#endif
#endif

#define TYPES_MATCH(a, b) __builtin_types_compatible_p(__typeof__(a), b)

#ifdef HAS_DRIVER
#include <cuda.h>
#include <nvrtc.h>
#include <stdint.h>

#define WB_DRIVER_TYPES 1
typedef CUresult gpu_code;
typedef nvrtcResult rtc_code;
typedef CUdevice_attribute gpu_attribute;
typedef CUstreamCaptureMode gpu_capture_mode;
typedef CUuuid gpu_uuid;
typedef CUdeviceptr gpu_pointer;
typedef CUcontext gpu_context;
typedef CUstream gpu_stream;
typedef CUevent gpu_event;
typedef CUmodule gpu_module;
typedef CUfunction gpu_function;
typedef CUgraph gpu_graph;
typedef CUgraphExec gpu_graph_exec;
typedef nvrtcProgram gpu_program;
#endif
#include "driver.h"

#ifdef HAS_DRIVER
#define X(name, cuda, hip, number) _Static_assert(name == (int)cuda, #cuda);
GPU_NUMBER_LIST(X)
#undef X
#define X(name, cuda, number) _Static_assert(name == (int)cuda, #cuda);
GPU_CUDA_NUMBER_LIST(X)
#undef X
#define X(name, cuda, hip, parameters)                                                             \
    _Static_assert(TYPES_MATCH(cuda, gpu_code parameters), #cuda);
GPU_DRIVER_LIST(X)
#undef X
#define X(name, parameters) _Static_assert(TYPES_MATCH(cu##name, gpu_code parameters), "cu" #name);
GPU_CUDA_LIST(X)
#undef X
#define X(result, name, nvrtc, hiprtc, parameters)                                                 \
    _Static_assert(TYPES_MATCH(nvrtc, result parameters), #nvrtc);
GPU_COMPILER_LIST(X)
#undef X
#define X(name, parameters)                                                                        \
    _Static_assert(TYPES_MATCH(nvrtc##name, rtc_code parameters), "nvrtc" #name);
GPU_NVRTC_LIST(X)
#undef X
_Static_assert(sizeof(CUdeviceptr) == sizeof(uintptr_t), "addresses");
_Static_assert(TYPES_MATCH((CUdevice)0, int), "devices are int");
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(nvrtcResult) == sizeof(int) &&
                   sizeof(CUdevice_attribute) == sizeof(int) &&
                   sizeof(CUstreamCaptureMode) == sizeof(int),
               "enums are int");
_Static_assert(NVRTC_SUCCESS == 0, "success");
#endif

#ifdef HAS_CUBLASLT
#include <cublasLt.h>

#define WB_LT_TYPES 1
typedef cublasStatus_t lt_code;
typedef cublasLtHandle_t lt_handle;
typedef cublasLtMatmulDesc_t lt_desc;
typedef cublasLtMatrixLayout_t lt_layout;
typedef cublasLtMatmulPreference_t lt_preference;
typedef cublasComputeType_t lt_compute;
typedef cudaDataType lt_type;
typedef cublasLtMatmulDescAttributes_t lt_desc_attribute;
typedef cublasLtMatrixLayoutAttribute_t lt_layout_attribute;
typedef cublasLtMatmulPreferenceAttributes_t lt_preference_attribute;
typedef cudaStream_t lt_stream;
typedef cublasLtMatmulAlgo_t lt_algorithm;
typedef cublasLtMatmulHeuristicResult_t lt_choice;
#include "lt/api.h"

#define X(name, toolkit, number, hipblas, other) _Static_assert(name == (int)toolkit, #toolkit);
LT_NUMBER_LIST(X)
#undef X
#define X(result, name, parameters)                                                                \
    _Static_assert(TYPES_MATCH(cublasLt##name, result parameters), "cublasLt" #name);
LT_FUNCTION_LIST(X)
#undef X

/* lt_choice as it is declared where there is no toolkit. */
typedef struct own_choice {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} own_choice;
_Static_assert(sizeof(own_choice) == sizeof(cublasLtMatmulHeuristicResult_t), "size");
_Static_assert(offsetof(own_choice, workspace_bytes) ==
                   offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize),
               "workspaceSize");
_Static_assert(offsetof(own_choice, state) == offsetof(cublasLtMatmulHeuristicResult_t, state),
               "state");
_Static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int),
               "enums are int");
#endif

#ifdef HAS_CUDNN
#include <cudnn.h>

#define WB_CUDNN_TYPES 1
typedef cudnnStatus_t dnn_code;
typedef cudnnHandle_t dnn_handle;
typedef cudnnBackendDescriptor_t dnn_descriptor;
typedef cudnnBackendDescriptorType_t dnn_kind;
typedef cudnnBackendAttributeName_t dnn_name;
typedef cudnnBackendAttributeType_t dnn_type;
typedef cudaStream_t dnn_stream;
#include "nvidia/cudnn_api.h"

#define X(name, toolkit, number) _Static_assert(name == (int)toolkit, #toolkit);
DNN_NUMBER_LIST(X)
#undef X
#define X(result, name, parameters)                                                                \
    _Static_assert(TYPES_MATCH(cudnn##name, result parameters), "cudnn" #name);
DNN_FUNCTION_LIST(X)
#undef X
_Static_assert(sizeof(cudnnDataType_t) == sizeof(int) &&
                   sizeof(cudnnBackendNumericalNote_t) == sizeof(int),
               "enums are int");
#endif

static void skip_without(bool there, const char *header) {
    if (there) return;
    print_message("there is no %s here: nothing was compared\n", header);
    skip();
}

static void the_driver_and_nvrtc_are_declared_as_in_the_toolkit(void **state) {
    (void)state;
#ifdef HAS_DRIVER
    print_message("compared with CUDA %d.%d\n", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    skip_without(true, "");
#else
    skip_without(false, "cuda.h with an nvrtc.h");
#endif
}

static void cublaslt_is_declared_as_in_the_toolkit(void **state) {
    (void)state;
#ifdef HAS_CUBLASLT
    print_message("compared with cuBLASLt %d\n", CUBLAS_VERSION);
    skip_without(true, "");
#else
    skip_without(false, "cublasLt.h");
#endif
}

static void cudnn_is_declared_as_in_the_toolkit(void **state) {
    (void)state;
#ifdef HAS_CUDNN
    print_message("compared with cuDNN %d\n", CUDNN_VERSION);
    skip_without(true, "");
#else
    skip_without(false, "cudnn.h");
#endif
}

/* ---- names ---- */

static void expect_functions(const char *library, const char *const *names) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    int missing = 0;
    if (!handle) {
        print_message("%s\n", dlerror());
        skip();
    }
    for (; *names; names++)
        if (!dlsym(handle, *names)) {
            print_error("%s has no %s\n", library, *names);
            missing++;
        }
    (void)dlclose(handle);
    assert_int_equal(missing, 0);
}

/* The toolkit's stub lists all that a driver exports. */
static void the_driver_has_the_functions(void **state) {
    static const char *const names[] = {
#define X(name, cuda, hip, parameters) #cuda,
        GPU_DRIVER_LIST(X)
#undef X
#define X(name, parameters) "cu" #name,
            GPU_CUDA_LIST(X)
#undef X
                NULL};
    (void)state;
    expect_functions(CUDA_STUB, names);
}

static void nvrtc_has_the_functions(void **state) {
    static const char *const names[] = {
#define X(result, name, nvrtc, hiprtc, parameters) #nvrtc,
        GPU_COMPILER_LIST(X)
#undef X
#define X(name, parameters) "nvrtc" #name,
            GPU_NVRTC_LIST(X)
#undef X
                NULL};
    (void)state;
    expect_functions("libnvrtc.so", names);
}

/* ---- attributes of cuBLASLt, which need no GPU: what we set is what it has afterwards, in our
 * size ---- */

#ifdef HAS_CUBLASLT
typedef struct lt_functions {
#define X(result, name, parameters) result(*name) parameters;
    LT_FUNCTION_LIST(X)
#undef X
    lt_code (*MatmulDescGetAttribute)(lt_desc, lt_desc_attribute, void *, size_t, size_t *);
    lt_code (*MatrixLayoutGetAttribute)(lt_layout, lt_layout_attribute, void *, size_t, size_t *);
    lt_code (*MatmulPreferenceGetAttribute)(lt_preference, lt_preference_attribute, void *, size_t,
                                            size_t *);
} lt_functions;

static lt_functions lt;

static bool find_all(void *library) {
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define X(result, name, parameters) {"cublasLt" #name, offsetof(lt_functions, name)},
        LT_FUNCTION_LIST(X)
#undef X
            {"cublasLtMatmulDescGetAttribute", offsetof(lt_functions, MatmulDescGetAttribute)},
        {"cublasLtMatrixLayoutGetAttribute", offsetof(lt_functions, MatrixLayoutGetAttribute)},
        {"cublasLtMatmulPreferenceGetAttribute",
         offsetof(lt_functions, MatmulPreferenceGetAttribute)},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function) return false;
        memcpy((char *)&lt + symbols[i].offset, &function, sizeof function);
    }
    return true;
}

typedef struct attribute {
    enum { DESC, LAYOUT, PREFERENCE } of;
    int number;
    size_t bytes;
    uint64_t value;
} attribute;

static const attribute attributes[] = {
    {DESC, LT_TRANSPOSE_A, sizeof(int32_t), LT_TRANSPOSED},
    {DESC, LT_TRANSPOSE_B, sizeof(int32_t), LT_TRANSPOSED},
    {DESC, LT_EPILOGUE, sizeof(int32_t), LT_EPILOGUE_BIAS},
    {DESC, LT_EPILOGUE, sizeof(int32_t), LT_EPILOGUE_GELU | LT_EPILOGUE_BIAS},
    {DESC, LT_EPILOGUE, sizeof(int32_t), LT_EPILOGUE_RELU | LT_EPILOGUE_BIAS},
    {DESC, LT_BIAS_POINTER, sizeof(gpu_pointer), 0x700000000100},
    {LAYOUT, LT_BATCH_COUNT, sizeof(int32_t), 12},
    {LAYOUT, LT_BATCH_STRIDE, sizeof(int64_t), (uint64_t)1 << 40},
    {PREFERENCE, LT_WORKSPACE_BYTES, sizeof(size_t), 32 << 20},
    {PREFERENCE, LT_REDUCTIONS, sizeof(uint32_t), LT_REDUCTIONS_COMPUTED},
    {PREFERENCE, LT_ALIGNMENT_A, sizeof(uint32_t), 2},
    {PREFERENCE, LT_ALIGNMENT_B, sizeof(uint32_t), 4},
    {PREFERENCE, LT_ALIGNMENT_C, sizeof(uint32_t), 8},
    {PREFERENCE, LT_ALIGNMENT_D, sizeof(uint32_t), 16},
};

static lt_code set_and_get(const attribute *a, lt_desc desc, lt_layout layout,
                           lt_preference preference, uint64_t *got, size_t *bytes) {
    const lt_desc_attribute of_desc = (lt_desc_attribute)a->number;
    const lt_layout_attribute of_layout = (lt_layout_attribute)a->number;
    const lt_preference_attribute of_preference = (lt_preference_attribute)a->number;
    const void *value = &a->value; /* its first bytes, which are its lowest */
    lt_code code;
    switch (a->of) {
    case DESC:
        code = lt.MatmulDescSetAttribute(desc, of_desc, value, a->bytes);
        return code ? code : lt.MatmulDescGetAttribute(desc, of_desc, got, a->bytes, bytes);
    case LAYOUT:
        code = lt.MatrixLayoutSetAttribute(layout, of_layout, value, a->bytes);
        return code ? code : lt.MatrixLayoutGetAttribute(layout, of_layout, got, a->bytes, bytes);
    default:
        code = lt.MatmulPreferenceSetAttribute(preference, of_preference, value, a->bytes);
        return code ? code
                    : lt.MatmulPreferenceGetAttribute(preference, of_preference, got, a->bytes,
                                                      bytes);
    }
}

static void cublaslt_takes_the_attributes(void **state) {
    (void)state;
    void *library = dlopen("libcublasLt.so", RTLD_LAZY | RTLD_LOCAL);
    lt_desc desc = NULL;
    lt_layout layout = NULL;
    lt_preference preference = NULL;
    if (!library) {
        print_message("%s\n", dlerror());
        skip();
    }
    assert_true(find_all(library));
    assert_int_equal(lt.MatmulDescCreate(&desc, (lt_compute)LT_COMPUTE_F32, (lt_type)LT_F32), 0);
    assert_int_equal(lt.MatrixLayoutCreate(&layout, (lt_type)LT_BF16, 64, 32, 64), 0);
    assert_int_equal(lt.MatmulPreferenceCreate(&preference), 0);
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        uint64_t got = 0;
        size_t bytes = 0;
        const lt_code code = set_and_get(&attributes[i], desc, layout, preference, &got, &bytes);
        if (code || bytes != attributes[i].bytes || got != attributes[i].value)
            fail_msg("row %zu: %s, %zu bytes, %llx", i, lt.GetStatusName(code), bytes,
                     (unsigned long long)got);
        attribute half = attributes[i];
        half.bytes /= 2;
        if (set_and_get(&half, desc, layout, preference, &got, &bytes) == CUBLAS_STATUS_SUCCESS)
            fail_msg("row %zu: half its size is taken, too", i);
    }
    assert_int_equal(lt.MatmulPreferenceDestroy(preference), 0);
    assert_int_equal(lt.MatrixLayoutDestroy(layout), 0);
    assert_int_equal(lt.MatmulDescDestroy(desc), 0);
}
#else
static void cublaslt_takes_the_attributes(void **state) {
    (void)state;
    skip_without(false, "cublasLt.h");
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_and_nvrtc_are_declared_as_in_the_toolkit),
        cmocka_unit_test(cublaslt_is_declared_as_in_the_toolkit),
        cmocka_unit_test(cudnn_is_declared_as_in_the_toolkit),
        cmocka_unit_test(the_driver_has_the_functions),
        cmocka_unit_test(nvrtc_has_the_functions),
        cmocka_unit_test(cublaslt_takes_the_attributes),
    };
    return cmocka_run_group_tests_name("backends/cuda/test_toolkit", tests, NULL, NULL);
}
