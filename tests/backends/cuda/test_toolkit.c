/* Our declarations of the vendors' libraries beside the toolkit's own: a number, a size or a parameter that is another one does not compile. */
#include <cmocka.h>
#include <stdbool.h>

#ifdef __has_include
#if __has_include(<cublasLt.h>)
#define HAS_CUBLASLT 1
#endif
#if __has_include(<cudnn.h>)
#define HAS_CUDNN 1
#endif
#endif

#define TYPES_MATCH(a, b) __builtin_types_compatible_p(__typeof__(a), b)

#ifdef HAS_CUBLASLT
#include <cublasLt.h>

#define WB_CUBLASLT_TYPES 1
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
#include "nvidia/cublaslt_api.h"

#define X(name, toolkit, number) _Static_assert(name == (int)toolkit, #toolkit);
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

static void cublaslt_is_declared_as_in_the_toolkit(void **state) {
    (void)state;
#ifndef HAS_CUBLASLT
    print_message("there is no cublasLt.h here: nothing was compared\n");
    skip();
#endif
}

static void cudnn_is_declared_as_in_the_toolkit(void **state) {
    (void)state;
#ifndef HAS_CUDNN
    print_message("there is no cudnn.h here: nothing was compared\n");
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cublaslt_is_declared_as_in_the_toolkit),
                                       cmocka_unit_test(cudnn_is_declared_as_in_the_toolkit)};
    return cmocka_run_group_tests_name("backends/cuda/test_toolkit", tests, NULL, NULL);
}
