/* Convolutions and attention by cuDNN 9. */
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

/* ---- graphs: of one operation for a convolution (cudnn_graph.c), of 8 or 12 for attention, of up
 * to 24 for its derivative (cudnn_attention.c) ---- */

enum { WB_DNN_PARTS = 128 };

typedef struct wb_dnn_graph {
    dnn_descriptor parts[WB_DNN_PARTS]; /* tensors, what operations do, operations */
    int count;
    dnn_descriptor graph;
} wb_dnn_graph;

/* Finalised. handle: NULL to look at the graph only. The arrays' numbers are their identifiers. */
wb_gpu_outcome wb_dnn_graph_make(const wb_conv_shape *shape, dnn_handle handle,
                                 wb_dnn_graph *graph);
void wb_dnn_graph_release(wb_dnn_graph *graph);

/* A descriptor that the graph releases. */
wb_gpu_outcome wb_dnn_part(wb_dnn_graph *graph, int kind, dnn_descriptor *part);
wb_gpu_outcome wb_dnn_set(dnn_descriptor descriptor, int name, int type, int64_t count,
                          const void *elements);
/* The graph itself, of operations that are its parts. */
wb_gpu_outcome wb_dnn_join(wb_dnn_graph *graph, dnn_handle handle, int count,
                           const dnn_descriptor *operations);
int wb_dnn_type(int dtype);

/* ---- engines (cudnn_plan.c) ---- */

/* Whether what is noted of the configuration's engine may be taken for the shape. */
bool wb_dnn_is_suitable(const wb_conv_shape *shape, dnn_descriptor config);

/* ---- attention (cudnn_attention.c) ---- */

/* One of the arrays of halves; strides in elements, from position to position and along the
 * batch. */
typedef struct wb_attention_sizes {
    int64_t features, heads, length, strides[2];
} wb_attention_sizes;

wb_attention_sizes wb_attention_sizes_of(const wb_attention_shape *shape, int tensor);

/* What the derivative of a run stores at most. */
int64_t wb_dnn_stored_bytes(const wb_attention_shape *shape);
/* Whether a plan of the shape may have such a workspace. */
bool wb_dnn_fits(const wb_conv_shape *shape, int64_t workspace_bytes);

/* Numbers that the graph is given with each run, after the arrays. */
enum { WB_DNN_SCALE = WB_ATTENTION_TENSORS, WB_DNN_LOW, WB_DNN_ONE, WB_DNN_VALUES_END };

wb_gpu_outcome wb_dnn_attention_make(const wb_conv_shape *shape, dnn_handle handle,
                                     wb_dnn_graph *graph);

/* ---- kernels of attention (attention.c) ---- */

bool wb_dnn_takes_attention(wb_gpu_device *device, const wb_call *call);
wb_gpu_answer wb_dnn_lower_attention(wb_gpu_device *device, const wb_call *call,
                                     const wb_program *epilogue, int split, wb_gpu_kernel **kernel);

#endif
