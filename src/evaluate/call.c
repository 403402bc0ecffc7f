/* Describes a value that is a library call as a wb_call.
 *
 * Reads the graph. Writes calls with their arguments. */
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "evaluate/emit.h"

/* ---- rows ---- */

enum { RESULT = -1, NONE = -2 }; /* of a row's x and y */

/* The number of the call's kind, from 1 on; 0: not a call of ops.def (a scan, which plans run
 * themselves). */
static const uint8_t kinds[WB_OP_COUNT] = {
#define WB_CALL(name, ...) [WB_OP_##name] = 1 + WB_CALL_##name,
#include <weber/ops.def>
};

size_t wb_call_member(wb_call_kind kind, size_t *size_bytes) {
    static const struct {
        size_t at, size_bytes;
    } members[] = {
#define WB_SHAPE(name) {offsetof(wb_call, name), sizeof(wb_##name##_call)},
        WB_CALL_SHAPES(WB_SHAPE)
#undef WB_SHAPE
    };
    const wb_call_shape shape = wb_call_row_of(kind).shape;
    *size_bytes = members[shape].size_bytes;
    return members[shape].at;
}

/* Takes from the node's payload all that is known of the call before its operands have memory. */
static void take_payload(wb_call *call, const wb_payload *payload) {
    size_t size_bytes;
    const size_t at = wb_call_member(call->kind, &size_bytes);
    if (payload) memcpy((char *)call + at, wb_payload_words(payload), size_bytes);
}

static bool is_attention(const wb_array *node) {
    return wb_call_row_for(node->op).shape == WB_SHAPE_attention;
}

static bool takes(const wb_device *device, const wb_array *node, wb_dtype dtype) {
    const wb_backend *backend = device->backend;
    wb_call call = {.kind = (wb_call_kind)(kinds[node->op] - 1), .dtype = dtype};
    take_payload(&call, node->payload);
    return backend->takes && backend->takes(device->context, wb_op_name((wb_op)node->op), &call);
}

bool wb_is_taken_in_halves(const wb_device *device, const wb_array *node) {
    const bool asks = device->info.takes_halves ? is_attention(node) : node->op == WB_OP_matmul;
    return asks && wb_is_half(node->dtype) && takes(device, node, (wb_dtype)node->dtype);
}

bool wb_is_taken(const wb_device *device, const wb_array *node) {
    return takes(device, node, wb_is_half(node->dtype) ? WB_F32 : (wb_dtype)node->dtype) ||
           wb_is_taken_in_halves(device, node);
}

wb_call_row wb_call_row_for(int op) {
    return kinds[op] ? wb_call_row_of((wb_call_kind)(kinds[op] - 1))
                     : (wb_call_row){.x = NONE, .y = NONE};
}

static const wb_value *array_of(const wb_graph *graph, const wb_value *v, int which) {
    return which == RESULT ? v : &graph->values[wb_value_inputs(v)[which]];
}

/* ---- matrix products ---- */

/* Leading dimension of a matrix stored column by column, or of its transpose. False: neither. */
static bool as_columns(const wb_layout *l, bool *transposed, int64_t *ld) {
    const int64_t rows = l->sizes[0], columns = l->sizes[1], down = l->strides[0],
                  across = l->strides[1];
    const int64_t least = rows > 1 ? rows : 1, least_t = columns > 1 ? columns : 1;
    if ((down == 1 || rows <= 1) && (across >= least || columns <= 1)) {
        *transposed = false, *ld = columns <= 1 ? least : across;
        return true;
    }
    if ((across == 1 || columns <= 1) && (down >= least_t || rows <= 1)) {
        *transposed = true, *ld = rows <= 1 ? least_t : down;
        return true;
    }
    return false;
}

bool wb_matmul_reads(const wb_layout *layout) {
    bool transposed;
    int64_t ld;
    return as_columns(layout, &transposed, &ld);
}

/* Where each matrix of the batch begins, in elements; sizes of 1 repeat. */
static void batch_offsets(const wb_value *result, const wb_layout *l, int64_t batch,
                          int64_t *offsets) {
    for (int64_t b = 0; b < batch; b++) {
        int64_t rest = b, offset = 0;
        for (int d = 2; d < result->ndim; d++) {
            const int64_t i = rest % result->sizes[d];
            rest /= result->sizes[d];
            if (d < l->ndim && l->sizes[d] != 1) offset += i * l->strides[d];
        }
        offsets[b] = offset;
    }
}

static wb_argument operand(const wb_graph *graph, int32_t v) {
    wb_argument argument = wb_argument_of(graph, v);
    argument.offset_bytes += wb_placed_layout(graph, v).offset *
                             (int64_t)wb_dtype_size((wb_dtype)graph->values[v].dtype);
    return argument;
}

static bool matmul_call(const wb_graph *graph, int32_t number, wb_matmul_call *call,
                        int64_t **offsets) {
    const wb_value *v = &graph->values[number];
    const int32_t a = v->small_inputs[0], b = v->small_inputs[1];
    const bool flip_a = v->attributes.product.flags & WB_MATMUL_TRANSPOSE_A,
               flip_b = v->attributes.product.flags & WB_MATMUL_TRANSPOSE_B;
    const wb_layout layout_a = wb_placed_layout(graph, a), layout_b = wb_placed_layout(graph, b),
                    layout_c = wb_placed_layout(graph, number);
    bool stored_a = false, stored_b = false;
    (void)as_columns(&layout_a, &stored_a, &call->lda);
    (void)as_columns(&layout_b, &stored_b, &call->ldb);
    call->transpose_a = flip_a != stored_a;
    call->transpose_b = flip_b != stored_b;
    call->m = v->sizes[0], call->n = v->sizes[1];
    call->k = layout_a.sizes[flip_a ? 0 : 1];
    call->ldc = call->m > 1 ? call->m : 1;
    call->batch = wb_count_sizes(v->ndim - 2, v->sizes + 2);
    if (call->batch == 1) return true;
    *offsets = wb_alloc(sizeof **offsets * 3 * (size_t)(call->batch + 1));
    if (!*offsets) return false;
    int64_t *list = *offsets;
    batch_offsets(v, &layout_a, call->batch, list);
    batch_offsets(v, &layout_b, call->batch, list + call->batch);
    batch_offsets(v, &layout_c, call->batch, list + 2 * call->batch);
    call->offset_a = list, call->offset_b = list + call->batch,
    call->offset_c = list + 2 * call->batch;
    return true;
}

/* ---- attention ---- */

/* Strides from position to position and along the batch, which is the dimensions from the third
 * on. */
static bool as_heads(const wb_layout *l, int64_t strides[2]) {
    int64_t size = 1;
    strides[0] = l->sizes[1] > 1 ? l->strides[1] : l->sizes[0];
    strides[1] = strides[0] * l->sizes[1];
    if ((l->sizes[0] > 1 && l->strides[0] != 1) || strides[0] < l->sizes[0]) return false;
    for (int d = 2; d < l->ndim; d++) {
        if (l->sizes[d] == 1) continue;
        if (size == 1) strides[1] = l->strides[d];
        if (l->strides[d] != strides[1] * size || l->strides[d] < 0) return false;
        size *= l->sizes[d];
    }
    return true;
}

bool wb_attention_reads(const wb_layout *layout) {
    int64_t strides[2];
    return as_heads(layout, strides);
}

/* Offsets and strides of q, k and v, from their layouts. */
static void set_strides(const wb_graph *graph, const wb_value *v, wb_attention_call *call) {
    int64_t *const strides[] = {call->q_strides, call->k_strides, call->v_strides};
    for (int i = 0; i < 3; i++) {
        const wb_layout layout = wb_placed_layout(graph, wb_value_inputs(v)[i]);
        (void)as_heads(&layout, strides[i]);
    }
}

/* ---- indices ---- */

static void index_call(const wb_graph *graph, const wb_value *v, wb_index_call *call) {
    const int dim = (int)v->attributes.along.dim;
    const wb_call_row row = wb_call_row_for(v->op);
    const wb_value *x = array_of(graph, v, row.x);
    call->inner = wb_count_sizes(dim, x->sizes);
    call->size = x->sizes[dim];
    call->outer = wb_count_sizes(x->ndim - dim - 1, x->sizes + dim + 1);
    if (v->op == WB_OP_argmax) call->run = v->attributes.runs.run, call->index_dtype = x->dtype;
    if (row.y == NONE) return;
    if (v->op == WB_OP_merge_runs)
        call->run = v->attributes.runs.run, call->merged = v->attributes.runs.merged;
    const wb_value *index = array_of(graph, v, row.y);
    call->count = wb_value_count(index);
    call->index_dtype = index->dtype;
}

/* The precision that the program had asked for when it made the node. */
static bool is_fast(const wb_value *v) {
    return wb_call_row_for(v->op).uses & WB_CALL_PRODUCTS &&
           v->attributes.product.flags & WB_MATMUL_FAST;
}

int wb_call_result_count(int op) {
    const int uses = wb_call_row_for(op).uses;
    return uses & WB_CALL_TWO_RESULTS ? 2 : uses & WB_CALL_THREE_RESULTS ? 3 : 1;
}

/* A further result of the call: its value was made right after the call, or after the values that
 * the result before it is made of. */
static int32_t result_of(const wb_graph *graph, int32_t call, int number) {
    for (int32_t i = call + 1; i < graph->count; i++) {
        const wb_value *v = &graph->values[i];
        if (v->kind == WB_VALUE_RESULT && v->small_inputs[0] == call &&
            v->attributes.part.number == number)
            return i;
    }
    return call;
}

/* In a body: an array from outside that is neither a carry nor a slice. */
static bool is_captured(const wb_graph *graph, const wb_argument *a) {
    const wb_body *body = graph->tape->body;
    if (!body || a->memory >= (uint32_t)graph->places.leaf_count) return false;
    const wb_array *given = graph->tape->at[graph->places.leaves[a->memory]].node;
    return given->attributes.part.number >= body->ncarries + body->nslices;
}

/* True if no result of the plan overwrites it. */
static bool is_unwritten_leaf(const wb_graph *graph, const wb_argument *a) {
    if (a->memory >= (uint32_t)graph->places.leaf_count) return false;
    for (int32_t o = 0; o < graph->places.output_count; o++)
        if (graph->places.of[graph->places.outputs[o]].memory == (int32_t)a->memory) return false;
    return true;
}

/* Whether the matrix of a product, or the weights of a convolution, stay the same. In the body of a
 * scan: over all steps, if they come from outside. In another plan: from run to run, if the plan
 * does not write them; this is used for the weights of convolutions only, because keeping a matrix
 * would save little for its memory. */
static bool is_fixed(const wb_graph *graph, wb_call_kind kind, const wb_argument *arguments) {
    const bool is_product = kind == WB_CALL_matmul;
    if (!is_product && kind != WB_CALL_conv_forward && kind != WB_CALL_conv_data) return false;
    if (!graph->tape->device->backend->prepare) return false;
    if (graph->tape->body) return is_captured(graph, &arguments[is_product ? 0 : 1]);
    return !is_product && is_unwritten_leaf(graph, &arguments[1]);
}

bool wb_emit_call(const wb_graph *graph, int32_t number, wb_call *call, wb_argument *arguments,
                  int *count, int64_t **offsets) {
    const wb_value *v = &graph->values[number];
    const wb_call_row row = wb_call_row_for(v->op);
    const int first = row.uses & WB_CALL_BASE ? 1 : 0;
    memset(call, 0, sizeof *call);
    call->kind = (wb_call_kind)(kinds[v->op] - 1);
    call->dtype = (wb_dtype)v->dtype;
    *count = 0;
    for (int i = first; i < v->ninputs; i++)
        arguments[(*count)++] = operand(graph, wb_value_inputs(v)[i]);
    arguments[(*count)++] = wb_argument_of(graph, number);
    for (int r = 1; r < wb_call_result_count(v->op); r++)
        arguments[(*count)++] = wb_argument_of(graph, result_of(graph, number, r));
    call->is_fast = is_fast(v);
    call->may_round_to_bf16 =
        row.shape == WB_SHAPE_matmul && v->attributes.product.flags & WB_MATMUL_BF16;
    call->is_fixed = is_fixed(graph, call->kind, arguments);
    take_payload(call, v->payload);
    if (row.shape == WB_SHAPE_matmul) return matmul_call(graph, number, &call->matmul, offsets);
    if (row.shape == WB_SHAPE_attention) set_strides(graph, v, &call->attention);
    if (row.shape == WB_SHAPE_index) index_call(graph, v, &call->index);
    return true;
}
