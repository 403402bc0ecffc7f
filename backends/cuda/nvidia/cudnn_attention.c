/* Attention in cuDNN's terms: the graph of products, a softmax and, if causal, a selection between
 * them, which its engines recognise and compute in tiles (the names and the order of the operations
 * are those of NVIDIA's cudnn-frontend, scaled_dot_product_flash_attention.h). */
#include <math.h>

#include "cudnn.h"

enum { MOST_OPERATIONS = 16 };

typedef struct builder {
    wb_dnn_graph *graph;
    wb_gpu_outcome outcome; /* the first error; nothing is done after it */
    dnn_descriptor operations[MOST_OPERATIONS];
    int count;
    int64_t next; /* identifier of a value between operations */
} builder;

static dnn_descriptor begin(builder *b, int kind) {
    dnn_descriptor made = NULL;
    if (!b->outcome.error) b->outcome = wb_dnn_part(b->graph, kind, &made);
    return made;
}

static void set(builder *b, dnn_descriptor d, int name, int type, int64_t count,
                const void *elements) {
    if (!b->outcome.error) b->outcome = wb_dnn_set(d, name, type, count, elements);
}

static void set_one(builder *b, dnn_descriptor d, int name, int type, int value) {
    set(b, d, name, type, 1, &value);
}

static void set_part(builder *b, dnn_descriptor d, int name, dnn_descriptor part) {
    if (part) set(b, d, name, DNN_TYPE_DESCRIPTOR, 1, &part);
}

static dnn_descriptor finish(builder *b, dnn_descriptor d) {
    if (!b->outcome.error) b->outcome = DNN_TRY(BackendFinalize, d);
    return d;
}

/* ---- tensors: (batch, heads, rows, columns) ---- */

typedef enum tensor_place {
    ARRAY,
    BETWEEN,
    VALUE
} tensor_place; /* in memory, in no memory, on the host */

static dnn_descriptor tensor(builder *b, tensor_place where, int64_t id, int type,
                             const int64_t sizes[4], const int64_t strides[4]) {
    const int64_t alignment = WB_CONV_ALIGNED_BYTES;
    const bool yes = true;
    dnn_descriptor t = begin(b, DNN_TENSOR);
    set_one(b, t, DNN_TENSOR_TYPE, DNN_TYPE_DATA_TYPE, type);
    set(b, t, DNN_TENSOR_SIZES, DNN_TYPE_INT64, 4, sizes);
    set(b, t, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 4, strides);
    set(b, t, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id);
    set(b, t, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    if (where == BETWEEN) set(b, t, DNN_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &yes);
    if (where == VALUE) set(b, t, DNN_TENSOR_IS_VALUE, DNN_TYPE_BOOLEAN, 1, &yes);
    return finish(b, t);
}

/* An array (features heads, length, batch) of ours, or its heads' transposes. */
static dnn_descriptor heads_of(builder *b, const wb_conv_shape *s, int64_t id, bool transposed) {
    const wb_attention_shape *a = &s->attention;
    const bool of_keys = id == WB_ATTENTION_K || id == WB_ATTENTION_V;
    const int64_t features = id == WB_ATTENTION_Q || id == WB_ATTENTION_K ? a->dk : a->dv;
    const int64_t length = of_keys ? a->keys : a->queries, heads = of_keys ? a->kv_heads : a->heads,
                  step = features * heads;
    const int64_t sizes[] = {a->batch, heads, transposed ? features : length,
                             transposed ? length : features};
    const int64_t strides[] = {step * length, features, transposed ? 1 : step,
                               transposed ? step : 1};
    return tensor(b, ARRAY, id, wb_dnn_type(s->dtype), sizes, strides);
}

/* A number for each query and key, or for each query; dense. */
static dnn_descriptor rows(builder *b, const wb_attention_shape *a, tensor_place where, int64_t id,
                           int type, int64_t columns) {
    const int64_t sizes[] = {a->batch, a->heads, a->queries, columns};
    const int64_t strides[] = {a->heads * a->queries * columns, a->queries * columns, columns, 1};
    return tensor(b, where, id, type, sizes, strides);
}

static dnn_descriptor between(builder *b, const wb_attention_shape *a, int type, int64_t columns) {
    return rows(b, a, BETWEEN, b->next++, type, columns);
}

static dnn_descriptor number(builder *b, int64_t id) {
    const int64_t ones[] = {1, 1, 1, 1};
    return tensor(b, VALUE, id, DNN_F32, ones, ones);
}

/* ---- operations ---- */

static void add_operation(builder *b, dnn_descriptor operation) {
    b->operations[b->count++] = finish(b, operation);
}

static void multiply(builder *b, dnn_descriptor x, dnn_descriptor y, dnn_descriptor result) {
    dnn_descriptor what = begin(b, DNN_MATMUL);
    set_one(b, what, DNN_MATMUL_COMPUTE, DNN_TYPE_DATA_TYPE, DNN_F32);
    (void)finish(b, what);
    dnn_descriptor operation = begin(b, DNN_DO_MATMUL);
    set_part(b, operation, DNN_DO_MATMUL_WHAT, what);
    set_part(b, operation, DNN_DO_MATMUL_A, x);
    set_part(b, operation, DNN_DO_MATMUL_B, y);
    set_part(b, operation, DNN_DO_MATMUL_C, result);
    add_operation(b, operation);
}

static void reduce(builder *b, int operator_, dnn_descriptor x, dnn_descriptor result) {
    dnn_descriptor what = begin(b, DNN_REDUCTION);
    set_one(b, what, DNN_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION_OPERATOR, operator_);
    set_one(b, what, DNN_REDUCTION_COMPUTE, DNN_TYPE_DATA_TYPE, DNN_F32);
    (void)finish(b, what);
    dnn_descriptor operation = begin(b, DNN_DO_REDUCTION);
    set_part(b, operation, DNN_DO_REDUCTION_WHAT, what);
    set_part(b, operation, DNN_DO_REDUCTION_X, x);
    set_part(b, operation, DNN_DO_REDUCTION_Y, result);
    add_operation(b, operation);
}

/* What an elementwise operation has beside its mode. */
typedef struct pointwise {
    dnn_descriptor x, y, chosen_by; /* y and chosen_by may be NULL */
    int compute;                    /* 0: f32 */
    int64_t axis;                   /* of DNN_INDEX */
} pointwise;

static dnn_descriptor point(builder *b, int mode, pointwise p, dnn_descriptor result) {
    dnn_descriptor what = begin(b, DNN_POINTWISE);
    set_one(b, what, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, mode);
    set_one(b, what, DNN_POINTWISE_COMPUTE, DNN_TYPE_DATA_TYPE, p.compute);
    if (mode == DNN_INDEX) set(b, what, DNN_POINTWISE_AXIS, DNN_TYPE_INT64, 1, &p.axis);
    (void)finish(b, what);
    dnn_descriptor operation = begin(b, DNN_DO_POINTWISE);
    set_part(b, operation, DNN_DO_POINTWISE_WHAT, what);
    set_part(b, operation, DNN_DO_POINTWISE_X, p.x);
    set_part(b, operation, DNN_DO_POINTWISE_B, p.y);
    set_part(b, operation, DNN_DO_POINTWISE_T, p.chosen_by);
    set_part(b, operation, DNN_DO_POINTWISE_Y, result);
    add_operation(b, operation);
    return result;
}

/* ---- the graph ---- */

/* Keys after the query's own place get a score below all others. */
static dnn_descriptor hide_later(builder *b, const wb_attention_shape *a, dnn_descriptor scores) {
    dnn_descriptor query = between(b, a, DNN_I32, a->keys), key = between(b, a, DNN_I32, a->keys);
    dnn_descriptor is_seen = between(b, a, DNN_BOOL, a->keys);
    (void)point(b, DNN_INDEX, (pointwise){.x = scores, .axis = 2}, query);
    (void)point(b, DNN_INDEX, (pointwise){.x = scores, .axis = 3}, key);
    (void)point(b, DNN_NOT_BELOW, (pointwise){.x = query, .y = key, .compute = DNN_BOOL}, is_seen);
    return point(b, DNN_SELECT,
                 (pointwise){.x = scores, .y = number(b, WB_DNN_LOW), .chosen_by = is_seen},
                 between(b, a, DNN_F32, a->keys));
}

/* The weights, in the arrays' type, and the logarithm of each query's sum. */
static dnn_descriptor softmax(builder *b, const wb_conv_shape *s, dnn_descriptor scores) {
    const wb_attention_shape *a = &s->attention;
    dnn_descriptor largest = between(b, a, DNN_F32, 1), sum = between(b, a, DNN_F32, 1);
    reduce(b, DNN_REDUCE_MAX, scores, largest);
    dnn_descriptor below =
        point(b, DNN_SUB, (pointwise){.x = scores, .y = largest}, between(b, a, DNN_F32, a->keys));
    dnn_descriptor e = point(b, DNN_EXP, (pointwise){.x = below}, between(b, a, DNN_F32, a->keys));
    reduce(b, DNN_REDUCE_ADD, e, sum);
    dnn_descriptor log = point(b, DNN_LOG, (pointwise){.x = sum}, between(b, a, DNN_F32, 1));
    (void)point(b, DNN_ADD, (pointwise){.x = largest, .y = log},
                rows(b, a, ARRAY, WB_ATTENTION_SUMS, DNN_F32, 1));
    return point(b, DNN_DIV, (pointwise){.x = e, .y = sum},
                 between(b, a, wb_dnn_type(s->dtype), a->keys));
}

wb_gpu_outcome wb_dnn_attention_make(const wb_conv_shape *s, dnn_handle handle, wb_dnn_graph *g) {
    const wb_attention_shape *a = &s->attention;
    builder b = {.graph = g, .next = WB_DNN_VALUES_END};
    dnn_descriptor products = between(&b, a, DNN_F32, a->keys);
    multiply(&b, heads_of(&b, s, WB_ATTENTION_Q, false), heads_of(&b, s, WB_ATTENTION_K, true),
             products);
    dnn_descriptor scores =
        point(&b, DNN_MUL, (pointwise){.x = products, .y = number(&b, WB_DNN_SCALE)},
              between(&b, a, DNN_F32, a->keys));
    if (a->is_causal) scores = hide_later(&b, a, scores);
    dnn_descriptor weights = softmax(&b, s, scores);
    multiply(&b, weights, heads_of(&b, s, WB_ATTENTION_V, false),
             heads_of(&b, s, WB_ATTENTION_Y, false));
    return b.outcome.error ? b.outcome : wb_dnn_join(g, handle, b.count, b.operations);
}
