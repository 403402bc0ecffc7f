/* Convolutions by cuDNN 9. */
#ifndef WB_CUDNN_H
#define WB_CUDNN_H

#include "../conv/conv.h"
#include "cudnn_api.h"

typedef struct wb_dnn_functions {
#define X(result, name, parameters) result(*name) parameters;
    DNN_FUNCTION_LIST(X)
#undef X
} wb_dnn_functions;
extern wb_dnn_functions dnn;

/* Opens the library; once, from any thread. The reason says why not, or which version there is. */
bool wb_dnn_load(char *reason, size_t reason_bytes);

/* wb_gpu_outcome o = DNN_TRY(Create, &handle) */
wb_gpu_outcome wb_dnn_outcome(const char *call, dnn_code code);
#define DNN_TRY(function, ...) wb_dnn_outcome("cudnn" #function, dnn.function(__VA_ARGS__))

/* ---- one convolution as a graph of one operation (cudnn_graph.c) ---- */

typedef struct wb_dnn_graph {
    dnn_descriptor tensors[WB_CONV_TENSORS], convolution, operation, graph;
} wb_dnn_graph;

/* Finalised. handle: NULL to look at the graph only. The arrays' numbers are their identifiers. */
wb_gpu_outcome wb_dnn_graph_make(const wb_conv_shape *shape, dnn_handle handle,
                                 wb_dnn_graph *graph);
void wb_dnn_graph_release(wb_dnn_graph *graph);

#endif
