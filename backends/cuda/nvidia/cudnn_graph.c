/* cuDNN's library, graphs, and a convolution in its terms. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cudnn.h"

wb_dnn_functions dnn;

/* ---- the library ---- */

static const wb_symbol symbols[] = {
#define X(result, name, parameters) {"cudnn" #name, offsetof(wb_dnn_functions, name)},
    DNN_FUNCTION_LIST(X)
#undef X
};

static const char *const names[] = {"libcudnn.so.9", NULL};

static wb_gpu_library library = {
    .library = {.variable = "WEBER_CUDNN_LIBRARY",
                .names = names,
                .missing = "there is no libcudnn.so.9: Weber's own convolutions are used"},
    .name = "cuDNN",
    .oldest = "cuDNN 9.0",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &dnn};

/* libcudnn.so.9 opens these when they are needed, and ends the process where one is missing. */
static const char *const parts[] = {
    "graph", "ops", "cnn", "heuristic", "engines_precompiled", "engines_runtime_compiled"};

static const char *missing_part(void) {
    Dl_info library_info;
    union {
        size_t (*function)(void);
        void *address;
    } version = {.function = dnn.GetVersion};
    if (!dladdr(version.address, &library_info) || !strchr(library_info.dli_fname, '/'))
        return NULL;
    const int folder = (int)(strrchr(library_info.dli_fname, '/') - library_info.dli_fname);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%.*s/libcudnn_%s.so.9", folder, library_info.dli_fname,
                       parts[i]);
        if (access(path, R_OK) != 0) return parts[i];
    }
    return NULL;
}

/* 91900 is 9.19.0 */
bool wb_dnn_load(char *reason, size_t reason_bytes) {
    if (!wb_gpu_library_open(&library, reason, reason_bytes)) return false;
    const char *missing = missing_part();
    const unsigned long version = dnn.GetVersion();
    if (missing)
        (void)snprintf(reason, reason_bytes, "cuDNN is incomplete: libcudnn_%s.so.9 is missing",
                       missing);
    else
        (void)snprintf(reason, reason_bytes, "cuDNN %lu.%lu.%lu", version / 10000,
                       version / 100 % 100, version % 100);
    return !missing;
}

wb_gpu_outcome wb_dnn_outcome(const char *call, dnn_code code) {
    return (wb_gpu_outcome){.call = call,
                            .error = code == DNN_SUCCESS ? NULL : dnn.GetErrorString(code)};
}

/* ---- descriptors ---- */

wb_gpu_outcome wb_dnn_part(wb_dnn_graph *g, int kind, dnn_descriptor *part) {
    const wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, (dnn_kind)kind, part);
    if (!o.error) g->parts[g->count++] = *part;
    return o;
}

wb_gpu_outcome wb_dnn_set(dnn_descriptor descriptor, int name, int type, int64_t count,
                          const void *elements) {
    return DNN_TRY(BackendSetAttribute, descriptor, (dnn_name)name, (dnn_type)type, count,
                   elements);
}

int wb_dnn_type(int dtype) {
    static const int types[WB_DTYPE_COUNT] = {
        [WB_F32] = DNN_F32, [WB_F64] = DNN_F64, [WB_F16] = DNN_F16, [WB_BF16] = DNN_BF16};
    return types[dtype];
}

static wb_gpu_outcome make_tensor(const wb_conv_shape *s, int64_t id, wb_dnn_graph *g,
                                  dnn_descriptor *tensor) {
    const int type = wb_dnn_type(s->dtype);
    const int64_t alignment = WB_CONV_ALIGNED_BYTES;
    int64_t sizes[5], strides[5];
    const int count = wb_conv_sizes(s, (int)id, sizes, strides);
    wb_gpu_outcome o = wb_dnn_part(g, DNN_TENSOR, tensor);
    if (!o.error) o = wb_dnn_set(*tensor, DNN_TENSOR_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
    if (!o.error) o = wb_dnn_set(*tensor, DNN_TENSOR_SIZES, DNN_TYPE_INT64, count, sizes);
    if (!o.error) o = wb_dnn_set(*tensor, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, count, strides);
    if (!o.error) o = wb_dnn_set(*tensor, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id);
    if (!o.error) o = wb_dnn_set(*tensor, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    return o.error ? o : DNN_TRY(BackendFinalize, *tensor);
}

static wb_gpu_outcome set_spatial(const wb_conv_shape *s, dnn_descriptor convolution, int name,
                                  const int64_t values[3]) {
    int64_t reversed[3];
    wb_conv_reverse(s, values, reversed);
    return wb_dnn_set(convolution, name, DNN_TYPE_INT64, wb_conv_spatial(s), reversed);
}

static wb_gpu_outcome make_convolution(const wb_conv_shape *s, wb_dnn_graph *g, dnn_descriptor *c) {
    const int64_t count = wb_conv_spatial(s);
    const int64_t after[3] = {wb_conv_pad_after(s, 0), wb_conv_pad_after(s, 1),
                              wb_conv_pad_after(s, 2)};
    const int compute = s->dtype == WB_F64 ? DNN_F64 : DNN_F32, mode = DNN_CROSS_CORRELATION;
    wb_gpu_outcome o = wb_dnn_part(g, DNN_CONVOLUTION, c);
    if (!o.error) o = wb_dnn_set(*c, DNN_CONVOLUTION_SPATIAL, DNN_TYPE_INT64, 1, &count);
    if (!o.error) o = wb_dnn_set(*c, DNN_CONVOLUTION_COMPUTE, DNN_TYPE_DATA_TYPE, 1, &compute);
    if (!o.error) o = wb_dnn_set(*c, DNN_CONVOLUTION_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    if (!o.error) o = set_spatial(s, *c, DNN_CONVOLUTION_PAD_BEFORE, s->pad);
    if (!o.error) o = set_spatial(s, *c, DNN_CONVOLUTION_PAD_AFTER, after);
    if (!o.error) o = set_spatial(s, *c, DNN_CONVOLUTION_STRIDES, s->stride);
    if (!o.error) o = set_spatial(s, *c, DNN_CONVOLUTION_DILATIONS, s->dilation);
    return o.error ? o : DNN_TRY(BackendFinalize, *c);
}

/* The names of the attributes of each kind of operation. */
typedef struct operation_names {
    int kind, alpha, beta, convolution, tensors[WB_CONV_TENSORS];
} operation_names;

static const operation_names *names_of(int32_t kind) {
    static const operation_names forward = {DNN_FORWARD,
                                            DNN_FORWARD_ALPHA,
                                            DNN_FORWARD_BETA,
                                            DNN_FORWARD_CONVOLUTION,
                                            {DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y}};
    static const operation_names data = {DNN_DATA,
                                         DNN_DATA_ALPHA,
                                         DNN_DATA_BETA,
                                         DNN_DATA_CONVOLUTION,
                                         {DNN_DATA_X, DNN_DATA_W, DNN_DATA_Y}};
    static const operation_names filter = {DNN_FILTER,
                                           DNN_FILTER_ALPHA,
                                           DNN_FILTER_BETA,
                                           DNN_FILTER_CONVOLUTION,
                                           {DNN_FILTER_X, DNN_FILTER_W, DNN_FILTER_Y}};
    return kind == WB_CALL_conv_forward ? &forward : kind == WB_CALL_conv_data ? &data : &filter;
}

static wb_gpu_outcome set_scale(const wb_conv_shape *s, dnn_descriptor operation, int name,
                                float value) {
    const double wide = (double)value;
    if (s->dtype == WB_F64) return wb_dnn_set(operation, name, DNN_TYPE_DOUBLE, 1, &wide);
    return wb_dnn_set(operation, name, DNN_TYPE_FLOAT, 1, &value);
}

static wb_gpu_outcome make_operation(const wb_conv_shape *s, const dnn_descriptor *tensors,
                                     dnn_descriptor convolution, wb_dnn_graph *g,
                                     dnn_descriptor *operation) {
    const operation_names *n = names_of(s->kind);
    wb_gpu_outcome o = wb_dnn_part(g, n->kind, operation);
    if (!o.error) o = wb_dnn_set(*operation, n->convolution, DNN_TYPE_DESCRIPTOR, 1, &convolution);
    for (int t = 0; t < WB_CONV_TENSORS && !o.error; t++)
        o = wb_dnn_set(*operation, n->tensors[t], DNN_TYPE_DESCRIPTOR, 1, &tensors[t]);
    if (!o.error) o = set_scale(s, *operation, n->alpha, 1);
    if (!o.error) o = set_scale(s, *operation, n->beta, 0);
    return o.error ? o : DNN_TRY(BackendFinalize, *operation);
}

wb_gpu_outcome wb_dnn_join(wb_dnn_graph *g, dnn_handle handle, int count,
                           const dnn_descriptor *operations) {
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_GRAPH, &g->graph);
    if (!o.error && handle) o = wb_dnn_set(g->graph, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    if (!o.error)
        o = wb_dnn_set(g->graph, DNN_GRAPH_OPERATIONS, DNN_TYPE_DESCRIPTOR, count, operations);
    return o.error ? o : DNN_TRY(BackendFinalize, g->graph);
}

static wb_gpu_outcome make_conv(const wb_conv_shape *s, dnn_handle handle, wb_dnn_graph *g) {
    dnn_descriptor tensors[WB_CONV_TENSORS], convolution = NULL, operation = NULL;
    wb_gpu_outcome o = {.error = NULL};
    for (int t = 0; t < WB_CONV_TENSORS && !o.error; t++) o = make_tensor(s, t, g, &tensors[t]);
    if (!o.error) o = make_convolution(s, g, &convolution);
    if (!o.error) o = make_operation(s, tensors, convolution, g, &operation);
    return o.error ? o : wb_dnn_join(g, handle, 1, &operation);
}

wb_gpu_outcome wb_dnn_graph_make(const wb_conv_shape *s, dnn_handle handle, wb_dnn_graph *g) {
    memset(g, 0, sizeof *g);
    return wb_conv_is_attention(s) ? wb_dnn_attention_make(s, handle, g) : make_conv(s, handle, g);
}

static void drop(dnn_descriptor descriptor) {
    if (descriptor) (void)dnn.BackendDestroyDescriptor(descriptor);
}

void wb_dnn_graph_release(wb_dnn_graph *g) {
    drop(g->graph);
    while (g->count > 0) drop(g->parts[--g->count]);
    memset(g, 0, sizeof *g);
}
