/* Attention and its derivative in cuDNN's terms: graphs of products and of what lies between them,
 * which its engines recognise and compute in tiles. Which operations there are, their order and
 * the types between them are as in NVIDIA's cudnn-frontend
 * (scaled_dot_product_flash_attention.h). */
#include <string.h>

#include "cudnn.h"

enum { MOST_OPERATIONS = 32 };

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

/* ---- sizes ---- */

wb_attention_sizes wb_attention_sizes_of(const wb_attention_shape *a, int tensor) {
    const bool is_k = tensor == WB_ATTENTION_K || tensor == WB_ATTENTION_DK,
               of_keys = is_k || tensor == WB_ATTENTION_V || tensor == WB_ATTENTION_DV,
               of_dk = is_k || tensor == WB_ATTENTION_Q || tensor == WB_ATTENTION_DQ;
    const int64_t *const given[WB_ATTENTION_TENSORS] = {[WB_ATTENTION_Q] = a->q_strides,
                                                        [WB_ATTENTION_K] = a->k_strides,
                                                        [WB_ATTENTION_V] = a->v_strides};
    wb_attention_sizes s = {.features = of_dk ? a->dk : a->dv,
                            .heads = of_keys ? a->kv_heads : a->heads,
                            .length = of_keys ? a->keys : a->queries};
    s.strides[0] = s.features * (of_keys ? a->all_kv_heads : a->all_heads);
    s.strides[1] = s.strides[0] * s.length;
    if (given[tensor]) memcpy(s.strides, given[tensor], sizeof s.strides);
    return s;
}

enum { QUERIES_TILE = 64, KEYS_TILE = 128, STORED_BESIDE_BYTES = 1 << 20 };

static int64_t in_tiles(int64_t n, int64_t tile) { return (n + tile - 1) / tile * tile; }

/* The scores' cotangent in halves, in whole tiles; and the gradients of each head before those that
 * share keys are added. */
int64_t wb_dnn_stored_bytes(const wb_attention_shape *a) {
    const int64_t scores = in_tiles(a->queries, QUERIES_TILE) * in_tiles(a->keys, KEYS_TILE),
                  parts = a->heads == a->kv_heads ? 0 : a->keys * (a->dk + a->dv);
    return 2 * a->batch * a->heads * (scores + parts);
}

/* An engine with less than the scores' cotangent does not store it, but adds to dq in no fixed
 * order, and cuDNN 9.19 does not note that. */
bool wb_dnn_fits(const wb_conv_shape *s, int64_t workspace_bytes) {
    const wb_attention_shape *a = &s->attention;
    if (s->kind != WB_CALL_attention_backward)
        return workspace_bytes <= WB_CONV_MOST_WORKSPACE_BYTES;
    return workspace_bytes >= 2 * a->batch * a->heads * a->queries * a->keys &&
           workspace_bytes <= wb_dnn_stored_bytes(a) + STORED_BESIDE_BYTES;
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

/* An array (features heads, length, batch) of ours, or its heads' transposes. A graph of some of
 * the heads steps over the others. */
static dnn_descriptor heads_of(builder *b, const wb_conv_shape *s, int64_t id, bool transposed) {
    const wb_attention_shape *a = &s->attention;
    const wb_attention_sizes of = wb_attention_sizes_of(a, (int)id);
    const int64_t sizes[] = {a->batch, of.heads, transposed ? of.features : of.length,
                             transposed ? of.length : of.features};
    const int64_t strides[] = {of.strides[1], of.features, transposed ? 1 : of.strides[0],
                               transposed ? of.strides[0] : 1};
    return tensor(b, ARRAY, id, wb_dnn_type(s->dtype), sizes, strides);
}

/* A matrix for each head, dense. */
static dnn_descriptor dense(builder *b, const wb_attention_shape *a, int type, int64_t n,
                            int64_t columns) {
    const int64_t sizes[] = {a->batch, a->heads, n, columns};
    const int64_t strides[] = {a->heads * n * columns, n * columns, columns, 1};
    return tensor(b, BETWEEN, b->next++, type, sizes, strides);
}

/* `columns` numbers for each query. */
static dnn_descriptor between(builder *b, const wb_attention_shape *a, int type, int64_t columns) {
    return dense(b, a, type, a->queries, columns);
}

/* A number for each query, in an array of as many heads as said. */
static dnn_descriptor of_queries(builder *b, const wb_attention_shape *a, int64_t id,
                                 int64_t heads) {
    const int64_t sizes[] = {a->batch, a->heads, a->queries, 1};
    const int64_t strides[] = {heads * a->queries, a->queries, 1, 1};
    return tensor(b, ARRAY, id, DNN_F32, sizes, strides);
}

static dnn_descriptor sums_of(builder *b, const wb_attention_shape *a) {
    return of_queries(b, a, WB_ATTENTION_SUMS, a->all_heads);
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

/* The same numbers in another order. */
static dnn_descriptor reshape(builder *b, dnn_descriptor x, dnn_descriptor result) {
    dnn_descriptor operation = begin(b, DNN_DO_RESHAPE);
    set_part(b, operation, DNN_DO_RESHAPE_X, x);
    set_part(b, operation, DNN_DO_RESHAPE_Y, result);
    add_operation(b, operation);
    return result;
}

/* ---- scores ---- */

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
    (void)point(b, DNN_ADD, (pointwise){.x = largest, .y = log}, sums_of(b, a));
    return point(b, DNN_DIV, (pointwise){.x = e, .y = sum},
                 between(b, a, wb_dnn_type(s->dtype), a->keys));
}

static dnn_descriptor scaled(builder *b, const wb_attention_shape *a, dnn_descriptor x,
                             dnn_descriptor scale) {
    return point(b, DNN_MUL, (pointwise){.x = x, .y = scale}, between(b, a, DNN_F32, a->keys));
}

/* Products of q and k, times the scale. */
static dnn_descriptor scores_of(builder *b, const wb_attention_shape *a, dnn_descriptor q,
                                dnn_descriptor k, dnn_descriptor scale) {
    dnn_descriptor products = between(b, a, DNN_F32, a->keys);
    multiply(b, q, k, products);
    return scaled(b, a, products, scale);
}

static void attend(builder *b, const wb_conv_shape *s) {
    const wb_attention_shape *a = &s->attention;
    dnn_descriptor scores =
        scores_of(b, a, heads_of(b, s, WB_ATTENTION_Q, false), heads_of(b, s, WB_ATTENTION_K, true),
                  number(b, WB_DNN_SCALE));
    if (a->is_causal) scores = hide_later(b, a, scores);
    dnn_descriptor weights = softmax(b, s, scores);
    multiply(b, weights, heads_of(b, s, WB_ATTENTION_V, false),
             heads_of(b, s, WB_ATTENTION_Y, false));
}

/* ---- the derivative ---- */

/* For each query the sum of y dy. That array is the caller's, too: engines want it in memory. */
static dnn_descriptor means_of(builder *b, const wb_attention_shape *a, dnn_descriptor y,
                               dnn_descriptor dy) {
    dnn_descriptor products = between(b, a, DNN_F32, a->dv), sum = between(b, a, DNN_F32, 1);
    (void)point(b, DNN_MUL, (pointwise){.x = dy, .y = y}, products);
    reduce(b, DNN_REDUCE_ADD, products, sum);
    return point(b, DNN_MUL, (pointwise){.x = sum, .y = number(b, WB_DNN_ONE)},
                 of_queries(b, a, WB_ATTENTION_MEANS, a->heads));
}

/* The weights of the softmax once more, from the scores and the logarithms of their sums. */
static dnn_descriptor weights_of(builder *b, const wb_attention_shape *a, dnn_descriptor scores) {
    dnn_descriptor x = point(b, DNN_SUB, (pointwise){.x = scores, .y = sums_of(b, a)},
                             between(b, a, DNN_F32, a->keys));
    if (a->is_causal) x = hide_later(b, a, x);
    return point(b, DNN_EXP, (pointwise){.x = x}, between(b, a, DNN_F32, a->keys));
}

/* d = x' y for each head, of numbers x for each query and key; heads that share keys are added. */
static void add_over_queries(builder *b, const wb_conv_shape *s, dnn_descriptor x, dnn_descriptor y,
                             int64_t id) {
    const wb_attention_shape *a = &s->attention;
    const int type = wb_dnn_type(s->dtype);
    const int64_t sizes[] = {a->batch, a->heads, a->keys, a->queries},
                  strides[] = {a->heads * a->queries * a->keys, a->queries * a->keys, 1, a->keys};
    dnn_descriptor turned = reshape(b, x, tensor(b, BETWEEN, b->next++, type, sizes, strides));
    dnn_descriptor d = heads_of(b, s, id, false);
    if (a->heads == a->kv_heads) {
        multiply(b, turned, y, d);
        return;
    }
    dnn_descriptor each = dense(b, a, type, a->keys, id == WB_ATTENTION_DK ? a->dk : a->dv);
    multiply(b, turned, y, each);
    reduce(b, DNN_REDUCE_ADD, each, d);
}

/* The transposes of k transposed. */
static dnn_descriptor k_again(builder *b, const wb_conv_shape *s, dnn_descriptor k) {
    const wb_attention_shape *a = &s->attention;
    const wb_attention_sizes of = wb_attention_sizes_of(a, WB_ATTENTION_K);
    const int64_t sizes[] = {a->batch, of.heads, of.length, of.features},
                  strides[] = {of.strides[1], of.features, of.strides[0], 1};
    return reshape(b, k, tensor(b, BETWEEN, b->next++, wb_dnn_type(s->dtype), sizes, strides));
}

/* The product that makes dq writes it itself: parts of it that other groups add would come in any
 * order. So the cotangent of the scores is stored, in the engine's workspace. */
static void differentiate(builder *b, const wb_conv_shape *s) {
    const wb_attention_shape *a = &s->attention;
    dnn_descriptor q = heads_of(b, s, WB_ATTENTION_Q, false),
                   k = heads_of(b, s, WB_ATTENTION_K, true),
                   y = heads_of(b, s, WB_ATTENTION_Y, false),
                   dy = heads_of(b, s, WB_ATTENTION_DY, false), scale = number(b, WB_DNN_SCALE);
    dnn_descriptor means = means_of(b, a, y, dy);
    dnn_descriptor weights = weights_of(b, a, scores_of(b, a, q, k, scale));
    add_over_queries(b, s, weights, dy, WB_ATTENTION_DV);
    dnn_descriptor slopes = between(b, a, DNN_F32, a->keys);
    multiply(b, dy, heads_of(b, s, WB_ATTENTION_V, true), slopes);
    dnn_descriptor x =
        point(b, DNN_SUB, (pointwise){.x = slopes, .y = means}, between(b, a, DNN_F32, a->keys));
    x = point(b, DNN_MUL, (pointwise){.x = x, .y = weights}, between(b, a, DNN_F32, a->keys));
    x = scaled(b, a, x, scale);
    add_over_queries(b, s, x, q, WB_ATTENTION_DK);
    multiply(b, x, k_again(b, s, k), heads_of(b, s, WB_ATTENTION_DQ, false));
}

wb_gpu_outcome wb_dnn_attention_make(const wb_conv_shape *s, dnn_handle handle, wb_dnn_graph *g) {
    builder b = {.graph = g, .next = WB_DNN_VALUES_END};
    (s->kind == WB_CALL_attention ? attend : differentiate)(&b, s);
    return b.outcome.error ? b.outcome : wb_dnn_join(g, handle, b.count, b.operations);
}
