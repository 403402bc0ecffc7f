/* The functions, types and numbers of cuBLASLt and hipBLASLt: own declarations, so that no toolkit
 * is needed to build. Which of the two it is is known where this is compiled: WB_HIP says
 * hipBLASLt. They agree in what is done, in what order and with which functions, and hardly in a
 * number.
 *
 * cuBLASLt's are from docs.nvidia.com/cuda/cublas; a test compares them with the toolkit's own,
 * where there is one: it gives the types itself, and WB_LT_TYPES. hipBLASLt's are from the headers
 * of these versions (its header is C++, so that nothing compares them):
 *   ROCm/hipBLASLt, library/include/hipblaslt/hipblaslt.h, 4a8a7875 (0.14), and
 *   library/include/hipblaslt.h, 592518e7: the same in both ROCm/rocm-libraries,
 *   projects/hipblaslt/library/include/hipblaslt/hipblaslt.h, 006d2e0f (1.5): the same there
 *   ROCm/hipBLAS-common, library/include/hipblas-common.h, 6b7748e2: hipblasStatus_t,
 *   hipblasOperation_t, hipblasComputeType_t ROCm/HIP, include/hip/library_types.h as of ROCm 6:
 *   hipDataType */
#ifndef WB_LT_API_H
#define WB_LT_API_H

#include "../driver.h"

#ifdef WB_HIP
#define LT_LIBRARY                 "hipBLASLt"
#define LT_PREFIX                  "hipblasLt"
#define LT_NAME(name)              hipblasLt##name
#define LT_CHOOSE(cublas, hipblas) hipblas
#else
#define LT_LIBRARY                 "cuBLASLt"
#define LT_PREFIX                  "cublasLt"
#define LT_NAME(name)              cublasLt##name
#define LT_CHOOSE(cublas, hipblas) cublas
#endif

#ifndef WB_LT_TYPES
typedef int lt_code; /* cublasStatus_t, hipblasStatus_t */
typedef struct lt_handle_object *lt_handle;
typedef struct lt_desc_object *lt_desc; /* cublasLtMatmulDesc_t */
typedef struct lt_layout_object *lt_layout;
typedef struct lt_preference_object *lt_preference;
typedef int lt_compute,
    lt_type; /* cublasComputeType_t, cudaDataType; hipblasComputeType_t, hipDataType */
typedef int lt_desc_attribute, lt_layout_attribute, lt_preference_attribute;
typedef gpu_stream lt_stream;

typedef struct lt_algorithm { /* uint64_t[8]; hipBLASLt's are uint8_t[16] and a size_t */
    uint64_t data[LT_CHOOSE(8, 3)];
} lt_algorithm;

typedef struct lt_choice { /* cublasLtMatmulHeuristicResult_t, hipblasLtMatmulHeuristicResult_t */
    lt_algorithm algorithm;
    size_t workspace_bytes;
    lt_code state;
    float waves;
    int reserved[4];
} lt_choice;
#endif

/* X(name here, cuBLASLt's, number, hipBLASLt's, number) */
#define LT_NUMBER_LIST(X)                                                                          \
    X(LT_SUCCESS, CUBLAS_STATUS_SUCCESS, 0, HIPBLAS_STATUS_SUCCESS, 0)                             \
    X(LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE, 7, HIPBLAS_STATUS_INVALID_VALUE, 3)           \
    X(LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED, 13, HIPBLAS_STATUS_EXECUTION_FAILED, 5) \
    X(LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, 15, HIPBLAS_STATUS_NOT_SUPPORTED, 7)          \
    X(LT_F32, CUDA_R_32F, 0, HIP_R_32F, 0)                                                         \
    X(LT_F64, CUDA_R_64F, 1, HIP_R_64F, 1)                                                         \
    X(LT_F16, CUDA_R_16F, 2, HIP_R_16F, 2)                                                         \
    X(LT_BF16, CUDA_R_16BF, 14, HIP_R_16BF, 14)                                                    \
    X(LT_COMPUTE_F32, CUBLAS_COMPUTE_32F, 68, HIPBLAS_COMPUTE_32F, 2)                              \
    X(LT_COMPUTE_F64, CUBLAS_COMPUTE_64F, 70, HIPBLAS_COMPUTE_64F, 7)                              \
    X(LT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, 77, HIPBLAS_COMPUTE_32F_FAST_TF32, 6)         \
    X(LT_TRANSPOSED, CUBLAS_OP_T, 1, HIPBLAS_OP_T, 112)                                            \
    X(LT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5, HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT,  \
      0)                                                                                           \
    X(LT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6,                             \
      HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 1)                                             \
    X(LT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA, 3, HIPBLASLT_MATMUL_DESC_TRANSA, 0)             \
    X(LT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB, 4, HIPBLASLT_MATMUL_DESC_TRANSB, 1)             \
    X(LT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE, 7, HIPBLASLT_MATMUL_DESC_EPILOGUE, 2)            \
    X(LT_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8, HIPBLASLT_MATMUL_DESC_BIAS_POINTER,   \
      3)                                                                                           \
    X(LT_BIAS_TYPE, LT_NONE, LT_NONE, HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 4)                     \
    X(LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU, 2, HIPBLASLT_EPILOGUE_RELU, 2)                     \
    X(LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS, 4, HIPBLASLT_EPILOGUE_BIAS, 4)                     \
    X(LT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU, 32, HIPBLASLT_EPILOGUE_GELU, 32)                   \
    X(LT_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1,                             \
      HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                                                \
    X(LT_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3, LT_NONE, LT_NONE)              \
    X(LT_REDUCTIONS_COMPUTED, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2, LT_NONE, 0)               \
    X(LT_REDUCTIONS_ALL, CUBLASLT_REDUCTION_SCHEME_MASK, 7, LT_NONE, 0)                            \
    X(LT_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5, LT_NONE, LT_NONE)             \
    X(LT_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6, LT_NONE, LT_NONE)             \
    X(LT_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7, LT_NONE, LT_NONE)             \
    X(LT_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8, LT_NONE, LT_NONE)

enum {
    LT_NONE = -1, /* the library has no such thing */
#define X(name, cublas, number, hipblas, other) name = LT_CHOOSE(number, other),
    LT_NUMBER_LIST(X)
#undef X
};

/* X(result, name, parameters): cublasLtName, hipblasLtName. */
#ifdef WB_HIP
#define LT_OWN_LIST(X) X(lt_code, GetVersion, (lt_handle handle, int *version))
#else
#define LT_OWN_LIST(X)                                                                             \
    X(size_t, GetVersion, (void))                                                                  \
    X(const char *, GetStatusName, (lt_code code))
#endif

#define LT_FUNCTION_LIST(X)                                                                        \
    LT_OWN_LIST(X)                                                                                 \
    X(lt_code, Create, (lt_handle * handle))                                                       \
    X(lt_code, Destroy, (lt_handle handle))                                                        \
    X(lt_code, MatmulDescCreate, (lt_desc * desc, lt_compute compute, lt_type scale))              \
    X(lt_code, MatmulDescDestroy, (lt_desc desc))                                                  \
    X(lt_code, MatmulDescSetAttribute,                                                             \
      (lt_desc desc, lt_desc_attribute attribute, const void *value, size_t bytes))                \
    X(lt_code, MatrixLayoutCreate,                                                                 \
      (lt_layout * layout, lt_type type, uint64_t rows, uint64_t columns, int64_t leading))        \
    X(lt_code, MatrixLayoutDestroy, (lt_layout layout))                                            \
    X(lt_code, MatrixLayoutSetAttribute,                                                           \
      (lt_layout layout, lt_layout_attribute attribute, const void *value, size_t bytes))          \
    X(lt_code, MatmulPreferenceCreate, (lt_preference * preference))                               \
    X(lt_code, MatmulPreferenceDestroy, (lt_preference preference))                                \
    X(lt_code, MatmulPreferenceSetAttribute,                                                       \
      (lt_preference preference, lt_preference_attribute attribute, const void *value,             \
       size_t bytes))                                                                              \
    X(lt_code, MatmulAlgoGetHeuristic,                                                             \
      (lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c, lt_layout d,         \
       lt_preference preference, int wanted, lt_choice *choices, int *count))                      \
    X(lt_code, Matmul,                                                                             \
      (lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout a_layout,       \
       const void *b, lt_layout b_layout, const void *beta, const void *c, lt_layout c_layout,     \
       void *d, lt_layout d_layout, const lt_algorithm *algorithm, void *workspace,                \
       size_t workspace_bytes, lt_stream stream))

#endif
