/* MIOpen's immediate mode: own declarations, so that no toolkit is needed to build. From the
 * headers of these versions, which agree in all of it:
 *   ROCm/MIOpen, include/miopen/miopen.h, 3f329dff
 *   ROCm/rocm-libraries, projects/miopen/include/miopen/miopen.h, 01d724c5 */
#ifndef WB_MIOPEN_API_H
#define WB_MIOPEN_API_H

#include "../cuda/driver.h"

typedef int mi_code; /* miopenStatus_t */
typedef struct mi_handle_object *mi_handle;
typedef struct mi_tensor_object *mi_tensor;           /* miopenTensorDescriptor_t */
typedef struct mi_convolution_object *mi_convolution; /* miopenConvolutionDescriptor_t */
typedef int mi_type, mi_mode, mi_attribute, mi_algorithm;
typedef gpu_stream mi_stream;

typedef struct mi_solution { /* miopenConvSolution_t */
    float milliseconds;
    size_t workspace_bytes;
    uint64_t id;
    mi_algorithm algorithm;
} mi_solution;

/* X(name here, MIOpen's, number) */
#define MI_NUMBER_LIST(X)                                                                          \
    X(MI_SUCCESS, miopenStatusSuccess, 0)                                                          \
    X(MI_BAD_PARAMETER, miopenStatusBadParm, 3)                                                    \
    X(MI_NOT_IMPLEMENTED, miopenStatusNotImplemented, 6)                                           \
    X(MI_UNKNOWN_ERROR, miopenStatusUnknownError, 7)                                               \
    X(MI_F16, miopenHalf, 0)                                                                       \
    X(MI_F32, miopenFloat, 1)                                                                      \
    X(MI_BF16, miopenBFloat16, 5)                                                                  \
    X(MI_CROSS_CORRELATION, miopenConvolution, 0)                                                  \
    X(MI_DETERMINISTIC, MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC, 1)                                \
    X(MI_GEMM, miopenConvolutionAlgoGEMM, 0)                                                       \
    X(MI_DIRECT, miopenConvolutionAlgoDirect, 1)                                                   \
    X(MI_FFT, miopenConvolutionAlgoFFT, 2)                                                         \
    X(MI_WINOGRAD, miopenConvolutionAlgoWinograd, 3)                                               \
    X(MI_IMPLICIT_GEMM, miopenConvolutionAlgoImplicitGEMM, 5)

enum {
#define X(name, miopen, number) name = number,
    MI_NUMBER_LIST(X)
#undef X
};

/* Solutions that MIOpen itself calls naive: forward, of the data, of the filter. A solution's
 * number is its place in the list of src/solver.cpp, which nothing leaves; MIOpenDriver prints
 * "85/ConvDirectNaiveConvFwd". */
enum { MI_FIRST_NAIVE = 85, MI_LAST_NAIVE = 87 };

/* Of each direction: the two arrays that are read, then the one that is written. */
#define MI_DIRECTION_LIST(X, direction)                                                            \
    X(mi_code, Convolution##direction##GetSolution,                                                \
      (mi_handle handle, mi_tensor first, mi_tensor second, mi_convolution convolution,            \
       mi_tensor result, size_t most, size_t * count, mi_solution * solutions))                    \
    X(mi_code, Convolution##direction##CompileSolution,                                            \
      (mi_handle handle, mi_tensor first, mi_tensor second, mi_convolution convolution,            \
       mi_tensor result, uint64_t id))                                                             \
    X(mi_code, Convolution##direction##Immediate,                                                  \
      (mi_handle handle, mi_tensor first, const void *first_at, mi_tensor second,                  \
       const void *second_at, mi_convolution convolution, mi_tensor result, void *result_at,       \
       void *workspace, size_t workspace_bytes, uint64_t id))

/* X(result, name, parameters): miopenName. */
#define MI_FUNCTION_LIST(X)                                                                        \
    X(mi_code, GetVersion, (size_t * major, size_t * minor, size_t * patch))                       \
    X(const char *, GetErrorString, (mi_code code))                                                \
    X(mi_code, Create, (mi_handle * handle))                                                       \
    X(mi_code, Destroy, (mi_handle handle))                                                        \
    X(mi_code, SetStream, (mi_handle handle, mi_stream stream))                                    \
    X(mi_code, CreateTensorDescriptor, (mi_tensor * tensor))                                       \
    X(mi_code, SetTensorDescriptor,                                                                \
      (mi_tensor tensor, mi_type type, int count, const int *sizes, const int *strides))           \
    X(mi_code, DestroyTensorDescriptor, (mi_tensor tensor))                                        \
    X(mi_code, CreateConvolutionDescriptor, (mi_convolution * convolution))                        \
    X(mi_code, InitConvolutionNdDescriptor,                                                        \
      (mi_convolution convolution, int spatial, const int *pads, const int *strides,               \
       const int *dilations, mi_mode mode))                                                        \
    X(mi_code, SetConvolutionGroupCount, (mi_convolution convolution, int groups))                 \
    X(mi_code, SetConvolutionAttribute,                                                            \
      (mi_convolution convolution, mi_attribute attribute, int value))                             \
    X(mi_code, DestroyConvolutionDescriptor, (mi_convolution convolution))                         \
    MI_DIRECTION_LIST(X, Forward)                                                                  \
    MI_DIRECTION_LIST(X, BackwardData)                                                             \
    MI_DIRECTION_LIST(X, BackwardWeights)

#endif
