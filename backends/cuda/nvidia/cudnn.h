/* Convolutions by cuDNN 9. Dense arrays (W, H, C, N) of ours are its NCHW, so that nothing is converted. */
#ifndef WB_CUDNN_H
#define WB_CUDNN_H

#include "../kernel.h"
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

enum { WB_DNN_ALIGNED_BYTES = 16 }; /* of all arrays */

/* Numbers of the arrays, by which a run names their memory. */
enum { WB_DNN_X = 1, WB_DNN_W, WB_DNN_Y };

/* All that a plan depends on; compared as bytes: fill zeroed memory. Cross-correlations: the fast engines know nothing else. */
typedef struct wb_dnn_shape {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t channels, filters, groups, batch;
    int32_t kind, dtype, fast, unused; /* wb_call_kind, wb_dtype */
} wb_dnn_shape;

enum { WB_DNN_TENSORS = 3 };

typedef struct wb_dnn_graph {
    dnn_descriptor tensors[WB_DNN_TENSORS], convolution, operation, graph;
} wb_dnn_graph;

/* False: not a convolution for cuDNN: empty, or one that takes input away instead of padding it. */
bool wb_dnn_shape_of(const wb_call *call, wb_dnn_shape *shape);

/* Finalised. handle: NULL to look at the graph only. */
wb_gpu_outcome wb_dnn_graph_make(const wb_dnn_shape *shape, dnn_handle handle, wb_dnn_graph *graph);
void wb_dnn_graph_release(wb_dnn_graph *graph);

/* ---- how it is computed (cudnn_plan.c) ---- */

/* The same shape gets the same plan until the device is closed. */
typedef struct wb_dnn_plan {
    struct wb_dnn_plan *next;
    wb_dnn_shape shape;
    wb_dnn_graph graph;
    dnn_descriptor config, plan;
    int64_t workspace_bytes;
    int references;
} wb_dnn_plan;

/* NULL with the outcome, which has no error where cuDNN has no engine for the shape. */
wb_dnn_plan *wb_dnn_plan_get(wb_gpu_device *device, const wb_dnn_shape *shape,
                             wb_gpu_outcome *outcome);
void wb_dnn_plan_put(wb_gpu_device *device, wb_dnn_plan *plan);
/* at: x, w, y */
wb_gpu_outcome wb_dnn_plan_run(wb_gpu_device *device, const wb_dnn_plan *plan,
                               const gpu_pointer at[WB_DNN_TENSORS], gpu_pointer workspace,
                               gpu_stream stream);
void wb_dnn_device_close(wb_gpu_device *device);

/* ---- kernels (cudnn.c) ---- */

wb_gpu_answer wb_dnn_lower(wb_gpu_device *device, const wb_call *call, const wb_program *epilogue,
                           int split, wb_gpu_kernel **kernel);

#endif
