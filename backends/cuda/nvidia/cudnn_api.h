/* cuDNN 9's backend interface: own declarations, so that no toolkit is needed to build
 * (docs.nvidia.com/deeplearning/cudnn). A test compares them with the toolkit's own, where there is
 * one: it gives the types itself, and WB_CUDNN_TYPES. */
#ifndef WB_CUDNN_API_H
#define WB_CUDNN_API_H

#include "../driver.h"

#ifndef WB_CUDNN_TYPES
typedef int dnn_code; /* cudnnStatus_t */
typedef struct dnn_handle_object *dnn_handle;
typedef void *dnn_descriptor;
typedef int dnn_kind, dnn_name,
    dnn_type; /* of a descriptor; of an attribute, and of its elements */
typedef gpu_stream dnn_stream;
#endif

/* X(name here, cuDNN's, number) */
#define DNN_NUMBER_LIST(X)                                                                         \
    X(DNN_SUCCESS, CUDNN_STATUS_SUCCESS, 0)                                                        \
    X(DNN_F32, CUDNN_DATA_FLOAT, 0)                                                                \
    X(DNN_F64, CUDNN_DATA_DOUBLE, 1)                                                               \
    X(DNN_F16, CUDNN_DATA_HALF, 2)                                                                 \
    X(DNN_BF16, CUDNN_DATA_BFLOAT16, 9)                                                            \
    X(DNN_I32, CUDNN_DATA_INT32, 4)                                                                \
    X(DNN_BOOL, CUDNN_DATA_BOOLEAN, 11)                                                            \
    X(DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION, 1)                                           \
    X(DNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE, 0)                                                       \
    X(DNN_TYPE_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1)                                                 \
    X(DNN_TYPE_INT64, CUDNN_TYPE_INT64, 3)                                                         \
    X(DNN_TYPE_FLOAT, CUDNN_TYPE_FLOAT, 4)                                                         \
    X(DNN_TYPE_DOUBLE, CUDNN_TYPE_DOUBLE, 5)                                                       \
    X(DNN_TYPE_POINTER, CUDNN_TYPE_VOID_PTR, 6)                                                    \
    X(DNN_TYPE_CONVOLUTION_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 7)                                   \
    X(DNN_TYPE_HEURISTIC, CUDNN_TYPE_HEUR_MODE, 8)                                                 \
    X(DNN_TYPE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 11)                                      \
    X(DNN_TYPE_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                      \
    X(DNN_CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                                    \
    X(DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                              \
    X(DNN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                    \
    X(DNN_HEURISTIC, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                       \
    X(DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                        \
    X(DNN_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)                     \
    X(DNN_FILTER, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11)              \
    X(DNN_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)                  \
    X(DNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                      \
    X(DNN_VARIANT_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                 \
    X(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                             \
    X(DNN_CONVOLUTION_COMPUTE, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                              \
    X(DNN_CONVOLUTION_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                                 \
    X(DNN_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                            \
    X(DNN_CONVOLUTION_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                         \
    X(DNN_CONVOLUTION_PAD_AFTER, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                        \
    X(DNN_CONVOLUTION_PAD_BEFORE, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                        \
    X(DNN_CONVOLUTION_SPATIAL, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                           \
    X(DNN_HEURISTIC_MODE, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                         \
    X(DNN_HEURISTIC_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                             \
    X(DNN_HEURISTIC_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                   \
    X(DNN_CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                         \
    X(DNN_GRAPH_ENGINES, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 802)                       \
    X(DNN_ENGINE_GRAPH, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 1300)                                   \
    X(DNN_ENGINE_NUMBER, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                                     \
    X(DNN_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                      \
    X(DNN_PLAN_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                               \
    X(DNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                           \
    X(DNN_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                      \
    X(DNN_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                        \
    X(DNN_FORWARD_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)            \
    X(DNN_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                              \
    X(DNN_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                              \
    X(DNN_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                              \
    X(DNN_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                        \
    X(DNN_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                          \
    X(DNN_DATA_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)              \
    X(DNN_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                                \
    X(DNN_DATA_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)                               \
    X(DNN_DATA_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                               \
    X(DNN_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)                    \
    X(DNN_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                      \
    X(DNN_FILTER_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)          \
    X(DNN_FILTER_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                           \
    X(DNN_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)                            \
    X(DNN_FILTER_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                           \
    X(DNN_GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                                     \
    X(DNN_GRAPH_OPERATIONS, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                    \
    X(DNN_TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                 \
    X(DNN_TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                           \
    X(DNN_TENSOR_SIZES, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                         \
    X(DNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES, 903)                                          \
    X(DNN_TENSOR_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                             \
    X(DNN_PACK_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                                      \
    X(DNN_PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                              \
    X(DNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                                 \
    X(DNN_TYPE_BOOLEAN, CUDNN_TYPE_BOOLEAN, 2)                                                     \
    X(DNN_TYPE_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 14)                                      \
    X(DNN_TYPE_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 18)                         \
    X(DNN_TENSOR_IS_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                    \
    X(DNN_TENSOR_IS_VALUE, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 908)                                     \
    X(DNN_POINTWISE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                                        \
    X(DNN_MATMUL, CUDNN_BACKEND_MATMUL_DESCRIPTOR, 18)                                             \
    X(DNN_REDUCTION, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 21)                                       \
    X(DNN_DO_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                          \
    X(DNN_DO_MATMUL, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                                \
    X(DNN_DO_REDUCTION, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)                          \
    X(DNN_DO_RESHAPE, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)                              \
    X(DNN_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE, 0)                                            \
    X(DNN_POINTWISE_COMPUTE, CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                    \
    X(DNN_POINTWISE_AXIS, CUDNN_ATTR_POINTWISE_AXIS, 9)                                            \
    X(DNN_DO_POINTWISE_WHAT, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                    \
    X(DNN_DO_POINTWISE_X, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                               \
    X(DNN_DO_POINTWISE_B, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                               \
    X(DNN_DO_POINTWISE_Y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                               \
    X(DNN_DO_POINTWISE_T, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 758)                               \
    X(DNN_MATMUL_COMPUTE, CUDNN_ATTR_MATMUL_COMP_TYPE, 1500)                                       \
    X(DNN_DO_MATMUL_A, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1520)                                    \
    X(DNN_DO_MATMUL_B, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 1521)                                    \
    X(DNN_DO_MATMUL_C, CUDNN_ATTR_OPERATION_MATMUL_CDESC, 1522)                                    \
    X(DNN_DO_MATMUL_WHAT, CUDNN_ATTR_OPERATION_MATMUL_DESC, 1523)                                  \
    X(DNN_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_OPERATOR, 1600)                                 \
    X(DNN_REDUCTION_COMPUTE, CUDNN_ATTR_REDUCTION_COMP_TYPE, 1601)                                 \
    X(DNN_DO_REDUCTION_X, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 1610)                              \
    X(DNN_DO_REDUCTION_Y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 1611)                              \
    X(DNN_DO_REDUCTION_WHAT, CUDNN_ATTR_OPERATION_REDUCTION_DESC, 1612)                            \
    X(DNN_DO_RESHAPE_X, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 2200)                                  \
    X(DNN_DO_RESHAPE_Y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 2201)                                  \
    X(DNN_REDUCE_ADD, CUDNN_REDUCE_TENSOR_ADD, 0)                                                  \
    X(DNN_REDUCE_MAX, CUDNN_REDUCE_TENSOR_MAX, 3)                                                  \
    X(DNN_ADD, CUDNN_POINTWISE_ADD, 0)                                                             \
    X(DNN_MUL, CUDNN_POINTWISE_MUL, 1)                                                             \
    X(DNN_DIV, CUDNN_POINTWISE_DIV, 6)                                                             \
    X(DNN_SUB, CUDNN_POINTWISE_SUB, 9)                                                             \
    X(DNN_EXP, CUDNN_POINTWISE_EXP, 13)                                                            \
    X(DNN_LOG, CUDNN_POINTWISE_LOG, 15)                                                            \
    X(DNN_NOT_BELOW, CUDNN_POINTWISE_CMP_GE, 303)                                                  \
    X(DNN_INDEX, CUDNN_POINTWISE_GEN_INDEX, 501)                                                   \
    X(DNN_SELECT, CUDNN_POINTWISE_BINARY_SELECT, 601)                                              \
    X(DNN_ENGINE_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                                    \
    X(DNN_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                   \
    X(DNN_NOTE_DOWN_CONVERT, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                          \
    X(DNN_NOTE_REDUCED_REDUCTION, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)             \
    X(DNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)                         \
    X(DNN_NOTE_FFT, CUDNN_NUMERICAL_NOTE_FFT, 3)                                                   \
    X(DNN_NOTE_WINOGRAD_4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, 6)                              \
    X(DNN_NOTE_WINOGRAD_6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, 7)                              \
    X(DNN_NOTE_WINOGRAD_13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, 8)                           \
    X(DNN_MODE_B, CUDNN_HEUR_MODE_B, 1)                                                            \
    X(DNN_MODE_FALLBACK, CUDNN_HEUR_MODE_FALLBACK, 2)                                              \
    X(DNN_MODE_A, CUDNN_HEUR_MODE_A, 3)

enum {
#define X(name, cudnn, number) name = number,
    DNN_NUMBER_LIST(X)
#undef X
};

/* X(result, name, parameters): cudnnName. */
#define DNN_FUNCTION_LIST(X)                                                                       \
    X(size_t, GetVersion, (void))                                                                  \
    X(const char *, GetErrorString, (dnn_code code))                                               \
    X(dnn_code, Create, (dnn_handle * handle))                                                     \
    X(dnn_code, Destroy, (dnn_handle handle))                                                      \
    X(dnn_code, SetStream, (dnn_handle handle, dnn_stream stream))                                 \
    X(dnn_code, BackendCreateDescriptor, (dnn_kind kind, dnn_descriptor * descriptor))             \
    X(dnn_code, BackendDestroyDescriptor, (dnn_descriptor descriptor))                             \
    X(dnn_code, BackendFinalize, (dnn_descriptor descriptor))                                      \
    X(dnn_code, BackendSetAttribute,                                                               \
      (dnn_descriptor descriptor, dnn_name name, dnn_type type, int64_t count,                     \
       const void *elements))                                                                      \
    X(dnn_code, BackendGetAttribute,                                                               \
      (dnn_descriptor descriptor, dnn_name name, dnn_type type, int64_t wanted, int64_t * count,   \
       void *elements))                                                                            \
    X(dnn_code, BackendExecute, (dnn_handle handle, dnn_descriptor plan, dnn_descriptor pack))

#endif
