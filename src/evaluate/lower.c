/* From nodes to values: macros are expanded, operations offered to the device, each node written as
 * values.
 *
 * Callables: While nodes are lowered the backend is offered, by name, each macro of class CALLABLE
 * in ops.def (relu, gelu, the steps of optimisers' rules), each elementwise operation, and each
 * call of class OFFERED_CALL (takes). A call that is not taken is planned as its expansion. The
 * others are always expanded, and their values take part in fusion, donation and epilogues. For
 * those that were taken the graph notes which values they read and computed, and the program that
 * contains these lists them (wb_callable): name, numbers, operands and results, and whether it does
 * anything else. The CPU takes Adam's step, which runs as one loop if the program has nothing else;
 * cuBLASLt takes a bias, relu and gelu after a product; other backends take none and run the
 * instructions, which compute the same.
 *
 * Reads the tape. Writes the graph's values, layouts and callables, and the value of each node. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array/thread.h"
#include "base/memory.h"
#include "evaluate/emit.h"
#include "ops/build.h"
#include "ops/step.h"
#include "ops/trace.h"

enum {
    PARTS = 16 /* of an expansion: at most nine results, of a step, and what it tells of itself */
};

/* A node of the lowering walk: the tape's nodes and those that expansions make. */
typedef struct entry {
    wb_array *node;
    int32_t parts; /* what a macro was expanded to: its first place in the list of parts; -1 */
    int32_t value; /* -1: not lowered yet */
    int32_t next;  /* child to look at */
    bool expands;  /* a macro, or a call that the device does not take */
    bool is_step;  /* an optimiser's step, or made by its expansion */
} entry;

typedef struct lowering {
    wb_graph *graph;
    uint64_t stamp;
    entry *entries;
    int64_t count, capacity;
    wb_array **parts; /* of macros, PARTS each, NULL after the last */
    int64_t part_count, part_capacity;
    int32_t *stack;
    int64_t depth, stack_capacity;
    wb_values out;
    uint8_t taken[WB_OP_COUNT]; /* elementwise operations that the device takes; 0: not asked yet */
} lowering;

static wb_value *value_at(const lowering *l, int32_t v) { return &l->out.at[v]; }

/* ---- elementwise nodes ---- */

/* An input that only repeats elements is replaced by what it repeats: elementwise values
 * broadcast. */
static int32_t without_expand(const lowering *l, int32_t v) {
    while (value_at(l, v)->kind == WB_VALUE_VIEW && value_at(l, v)->op == WB_OP_expand)
        v = value_at(l, v)->small_inputs[0];
    return v;
}

/* The type in which an elementwise operation computes: its result's, or for comparisons that of its
 * operands. */
static wb_dtype operand_type(const wb_array *node) {
    if (wb_op_rows[node->op].type_class != WB_CLASS_COMPARE) return (wb_dtype)node->dtype;
    const wb_array *x = node->inputs[0], *y = node->inputs[1];
    const bool x_weak = x->flags & WB_NODE_WEAK, y_weak = y->flags & WB_NODE_WEAK;
    double number;
    if (x_weak == y_weak) return wb_promote((wb_dtype)x->dtype, (wb_dtype)y->dtype);
    const wb_array *weak = x_weak ? x : y, *strong = x_weak ? y : x;
    if (wb_dtype_is_float((wb_dtype)strong->dtype)) return (wb_dtype)strong->dtype;
    return wb_constant_value(weak, &number) ? (wb_dtype)strong->dtype : WB_F32;
}

/* A cast of the sizes of its operand, or of more: operands are not repeated. */
static int32_t lower_cast(lowering *l, const wb_array *node, int32_t input) {
    const wb_value *x = value_at(l, input);
    if (x->ndim == node->ndim && memcmp(x->sizes, node->sizes, sizeof *x->sizes * x->ndim) == 0)
        return wb_round_value(&l->out, input, (wb_dtype)node->dtype);
    wb_value v = wb_blank_value(node, WB_VALUE_ELEMENT);
    v.ninputs = 1, v.small_inputs[0] = input;
    v.attributes.cast.rounds = wb_is_half(node->dtype);
    return wb_add_element(&l->out, &v);
}

/* Halves are rounded before a comparison, so that it gives the same whether they were stored or
 * not. This is not needed for the sign of bf16, which rounding does not change. */
static bool compares_rounded(const lowering *l, wb_dtype dtype, const int32_t *inputs) {
    if (!wb_is_half(dtype)) return false;
    for (int i = 0; i < 2 && dtype == WB_BF16; i++) {
        const wb_value *x = value_at(l, inputs[i]);
        if (x->kind == WB_VALUE_CONSTANT && x->constant == 0) return false;
    }
    return true;
}

static int32_t lower_element(lowering *l, const wb_array *node, const int32_t *inputs) {
    if (node->op == WB_OP_cast) return lower_cast(l, node, without_expand(l, inputs[0]));
    wb_value v = wb_blank_value(node, WB_VALUE_ELEMENT);
    const wb_dtype dtype = operand_type(node);
    const bool rounds =
        wb_op_rows[node->op].type_class == WB_CLASS_COMPARE && compares_rounded(l, dtype, inputs);
    v.ninputs = node->ninputs;
    for (int i = 0; i < node->ninputs; i++) {
        int32_t input = without_expand(l, inputs[i]);
        const bool is_number = value_at(l, input)->kind == WB_VALUE_CONSTANT;
        if (!(node->op == WB_OP_select && i == 0))
            input = rounds && !is_number ? wb_round_value(&l->out, input, dtype)
                                         : wb_cast_value(&l->out, input, dtype);
        if (input < 0) return -1;
        v.small_inputs[i] = input;
    }
    return wb_add_element(&l->out, &v);
}

/* ---- the other kinds ---- */

static int32_t lower_source(lowering *l, const wb_array *node, int32_t tape) {
    if (node->op == WB_OP_full) {
        wb_value v = wb_blank_value(node, WB_VALUE_CONSTANT);
        memset(&v.attributes, 0, sizeof v.attributes);
        v.constant = wb_constant_as((wb_dtype)v.dtype, node->attributes.number.value);
        return wb_add_value(&l->out, v);
    }
    wb_value v = wb_blank_value(node, node->op == WB_OP_late ? WB_VALUE_LATE : WB_VALUE_SOURCE);
    v.tape = node->op == WB_OP_iota ? -1 : tape;
    return wb_add_value(&l->out, v);
}

static bool set_layout(lowering *l, wb_value *v, const wb_layout *layout) {
    wb_graph *graph = l->graph;
    wb_values *out = &l->out;
    v->layout = -1;
    if (layout->offset == 0 && wb_layout_is_dense(layout)) return true;
    if (!WB_GROW(out->layouts, graph->layout_count, out->layout_capacity)) return false;
    graph->layouts = out->layouts;
    v->layout = (int32_t)graph->layout_count;
    out->layouts[graph->layout_count++] = *layout;
    return true;
}

/* The layout of a view, seen from the memory of what it looks at; dense where it has to be a
 * copy. */
static bool layout_of_view(lowering *l, wb_value *v) {
    const wb_layout from = wb_value_layout(l->graph, value_at(l, v->small_inputs[0]));
    wb_layout layout;
    wb_array node = {.op = v->op, .ndim = v->ndim};
    memcpy(node.sizes, v->sizes, sizeof node.sizes);
    node.attributes = v->attributes;
    if (wb_view_layout(&node, &from, &layout)) return set_layout(l, v, &layout);
    v->layout = -1;
    v->op = WB_OP_data; /* a copy */
    return true;
}

/* Calls read dense operands; matrix products also transposed ones and columns further apart, and
 * attention q, k and v whose positions lie further apart. */
static bool reads(const lowering *l, const wb_array *call, int number, const wb_layout *layout) {
    if (call->op == WB_OP_matmul) return wb_matmul_reads(layout);
    if (wb_layout_is_dense(layout)) return true;
    return wb_call_row_for(call->op).shape == WB_SHAPE_attention && number < 3 &&
           l->graph->tape->device->info.reads_parts && wb_attention_reads(layout);
}

/* The call's input of this number, or a copy. */
static int32_t readable(lowering *l, const wb_array *call, int number, int32_t input) {
    const wb_value *x = value_at(l, input);
    if (x->kind != WB_VALUE_LEAF && x->kind != WB_VALUE_VIEW) return input;
    const wb_layout layout = wb_value_layout(l->graph, x);
    if (reads(l, call, number, &layout)) return input;
    wb_value v = *x;
    v.kind = WB_VALUE_VIEW, v.op = WB_OP_data, v.ninputs = 1, v.tape = -1, v.input_list = NULL;
    v.small_inputs[0] = input;
    v.layout = -1;
    return wb_add_value(&l->out, v);
}

/* A further result of the call, in the type in which the backend gives it. */
static int32_t result_of(lowering *l, const wb_array *node, int number, int32_t call) {
    wb_array result = {.op = WB_OP_result, .nattributes = 1, .attributes.part.number = number};
    wb_call_result(node, number, &result);
    wb_value v = wb_blank_value(&result, WB_VALUE_RESULT);
    if (wb_is_half(v.dtype)) v.dtype = value_at(l, call)->dtype; /* halves, or f32 */
    v.ninputs = 1, v.small_inputs[0] = call;
    return wb_add_value(&l->out, v);
}

/* Most library calls compute in f32 and f64: halves are converted before and after. */
static bool takes_halves(const lowering *l, const wb_array *node) {
    const int uses = wb_call_row_for(node->op).uses;
    const wb_device *device = l->graph->tape->device;
    return uses & WB_CALL_COPIES || (uses & WB_CALL_PRODUCTS && device->info.takes_halves) ||
           wb_is_taken_in_halves(device, node);
}

/* Room for the inputs of a value. NULL when out of memory. */
static int32_t *input_list(wb_value *v) {
    if (v->ninputs <= 3) return v->small_inputs;
    return v->input_list = wb_alloc(sizeof *v->input_list * (size_t)v->ninputs);
}

/* False for input number i of a scan if its body does not read it, because all work on its slices
 * was moved before the loop. */
static bool is_read(const wb_array *node, int i) {
    const wb_body *body = wb_body_of(node);
    if (!body) return true;
    return wb_tape_place(body->tape, body->given[i]) >= 0;
}

/* The inputs as calls read them, the halves as f32 if converts. */
static bool read_inputs(lowering *l, const wb_array *node, const int32_t *inputs, bool converts,
                        wb_value *v) {
    int32_t *list = input_list(v);
    for (int i = 0; list && i < node->ninputs; i++) {
        list[i] = converts && wb_is_half(value_at(l, inputs[i])->dtype)
                      ? wb_cast_value(&l->out, inputs[i], WB_F32)
                      : inputs[i];
        if (list[i] >= 0 && is_read(node, i)) list[i] = readable(l, node, i, list[i]);
        if (list[i] >= 0) continue;
        wb_release(v->input_list);
        return false;
    }
    return list != NULL;
}

static int32_t lower_call(lowering *l, const wb_array *node, const int32_t *inputs) {
    wb_value v = wb_blank_value(node, WB_VALUE_CALL);
    const bool converts = wb_is_half(node->dtype) && !takes_halves(l, node);
    const int results = wb_call_result_count(node->op);
    v.ninputs = node->ninputs;
    if (!read_inputs(l, node, inputs, converts, &v)) return -1;
    if (converts) v.dtype = WB_F32;
    const int32_t call = wb_add_value(&l->out, v);
    for (int r = 1; call >= 0 && r < results; r++)
        if (result_of(l, node, r, call) < 0) return -1;
    /* the parts of a call of several results are converted one by one */
    return call >= 0 && converts && results == 1
               ? wb_cast_value(&l->out, call, (wb_dtype)node->dtype)
               : call;
}

/* A collective also has the one before it as an operand: not for its numbers, but so that all ranks
 * run them in the order in which they were made. */
static int32_t lower_collective(lowering *l, const wb_array *node, int32_t input, int32_t tape) {
    wb_value v = wb_blank_value(node, WB_VALUE_CALL);
    v.tape = tape;
    v.small_inputs[v.ninputs++] = readable(l, node, 0, input);
    if (l->graph->last_collective >= 0) v.small_inputs[v.ninputs++] = l->graph->last_collective;
    return l->graph->last_collective = v.small_inputs[0] < 0 ? -1 : wb_add_value(&l->out, v);
}

/* ---- scans ---- */

/* The node's place on the tape is how its body is found. */
static int32_t lower_scan(lowering *l, const wb_array *node, const int32_t *inputs, int32_t tape) {
    wb_value v = wb_blank_value(node, WB_VALUE_CALL);
    v.tape = tape;
    v.ninputs = node->ninputs;
    return read_inputs(l, node, inputs, false, &v) ? wb_add_value(&l->out, v) : -1;
}

/* Result r of the scan. */
static int32_t result_of_scan(lowering *l, const wb_array *scan, int32_t r, int32_t call) {
    const wb_body *body = wb_body_of(scan);
    const wb_array *step = body->results[r];
    wb_value v = wb_blank_value(step, WB_VALUE_RESULT);
    v.op = WB_OP_result, v.ninputs = 1;
    v.small_inputs[0] = call;
    memset(&v.attributes, 0, sizeof v.attributes);
    v.attributes.part.number = r;
    if (r >= body->ncarries) v.sizes[v.ndim++] = scan->attributes.scan.steps;
    return wb_add_value(&l->out, v);
}

/* A carry that is an output, too, is that output's last step. */
static int32_t lower_scan_result(lowering *l, const wb_array *node, int32_t call) {
    const wb_array *scan = node->inputs[0];
    const wb_body *body = wb_body_of(scan);
    const int32_t r = (int32_t)node->attributes.part.number, same = wb_body_same(body, r);
    const int32_t result = result_of_scan(l, scan, same, call);
    if (result < 0 || r >= body->ncarries || same < body->ncarries) return result;
    wb_value v = wb_blank_value(node, WB_VALUE_VIEW);
    v.op = WB_OP_slice, v.ninputs = 1;
    v.small_inputs[0] = result;
    wb_layout layout = wb_layout_dense(node->ndim, node->sizes);
    const int64_t steps = scan->attributes.scan.steps;
    layout.offset = scan->attributes.scan.reverse ? 0 : (steps - 1) * wb_count(node);
    return set_layout(l, &v, &layout) ? wb_add_value(&l->out, v) : -1;
}

static int32_t lower_result(lowering *l, const wb_array *node, int32_t call) {
    const wb_array *whole = node->inputs[0];
    const int number = (int)node->attributes.part.number;
    if (whole->op == WB_OP_scan) return lower_scan_result(l, node, call);
    const int32_t result = number == 0 ? call : result_of(l, whole, number, call);
    return result < 0 ? -1 : wb_cast_value(&l->out, result, (wb_dtype)node->dtype);
}

/* The sum or largest of one element each: the elements themselves, in the result's sizes. */
static int32_t reduce_nothing(lowering *l, int32_t input, const wb_value *result) {
    if (wb_stands_for(&l->out, input, result)) return input;
    wb_value v = *result;
    v.kind = WB_VALUE_VIEW, v.op = WB_OP_reshape;
    memset(&v.attributes, 0, sizeof v.attributes);
    return layout_of_view(l, &v) ? wb_add_value(&l->out, v) : -1;
}

static bool reduces_nothing(const wb_value *x, int64_t mask) {
    for (int d = 0; d < x->ndim; d++)
        if ((mask >> d & 1) && x->sizes[d] != 1) return false;
    return true;
}

static int32_t lower_reduce(lowering *l, const wb_array *node, const int32_t *inputs) {
    wb_value v = wb_blank_value(node, WB_VALUE_REDUCE);
    v.ninputs = 1;
    /* bool and u8 are summed as i64; the halves in f32, rounded once at the end */
    const bool half = wb_is_half(node->dtype);
    v.small_inputs[0] = wb_cast_value(&l->out, inputs[0], half ? WB_F32 : (wb_dtype)node->dtype);
    if (v.small_inputs[0] < 0) return -1;
    if (half) v.dtype = WB_F32;
    const bool trivial = reduces_nothing(value_at(l, v.small_inputs[0]), v.attributes.reduce.dims);
    const int32_t sum =
        trivial ? reduce_nothing(l, v.small_inputs[0], &v) : wb_add_value(&l->out, v);
    return half ? wb_cast_value(&l->out, sum, (wb_dtype)node->dtype) : sum;
}

static int32_t lower_join(lowering *l, const wb_array *node, const int32_t *inputs) {
    wb_value v = wb_blank_value(node, WB_VALUE_JOIN);
    v.ninputs = node->ninputs;
    int32_t *list = input_list(&v);
    if (!list) return -1;
    for (int i = 0; i < node->ninputs; i++) list[i] = inputs[i];
    return wb_add_value(&l->out, v);
}

/* A leaf that is cast before it is reshaped is reshaped first: so a norm's gain, which has one
 * dimension, is cast in the program that uses it, and not in one of its own. -1: x is no such
 * cast. */
static int32_t leaf_of_cast(const lowering *l, int32_t x) {
    const wb_value *v = value_at(l, x);
    if (v->kind != WB_VALUE_ELEMENT || v->op != WB_OP_cast) return -1;
    const wb_value *leaf = value_at(l, v->small_inputs[0]);
    const bool is_it = leaf->kind == WB_VALUE_LEAF && wb_value_has_sizes_of(leaf, v);
    return is_it ? v->small_inputs[0] : -1;
}

static int32_t lower_view(lowering *l, const wb_array *node, int32_t input) {
    wb_value v = wb_blank_value(node, WB_VALUE_VIEW);
    if (wb_stands_for(&l->out, input, &v) && node->op != WB_OP_permute && node->op != WB_OP_slice)
        return input;
    const int32_t leaf = node->op == WB_OP_reshape ? leaf_of_cast(l, input) : -1;
    v.ninputs = 1, v.small_inputs[0] = leaf >= 0 ? leaf : input;
    if (leaf >= 0) v.dtype = value_at(l, leaf)->dtype;
    const int32_t view = layout_of_view(l, &v) ? wb_add_value(&l->out, v) : -1;
    return leaf >= 0 ? wb_round_value(&l->out, view, (wb_dtype)node->dtype) : view;
}

static int32_t lower_leaf(lowering *l, const wb_array *node, int32_t tape) {
    wb_value v = wb_blank_value(node, WB_VALUE_LEAF);
    memset(&v.attributes, 0, sizeof v.attributes);
    v.op = WB_OP_data;
    v.tape = tape;
    wb_layout layout = wb_layout_of(node);
    layout.offset = 0; /* bound with the address */
    return set_layout(l, &v, &layout) ? wb_add_value(&l->out, v) : -1;
}

/* ---- the walk ---- */

static bool expands(const lowering *l, const wb_array *node) {
    const wb_op_row *row = &wb_op_rows[node->op];
    if (!row->expand || wb_is_plan_leaf(node)) return false;
    return row->kind != WB_KIND_CALL || !wb_is_taken(l->graph->tape->device, node);
}

static int32_t entry_of(lowering *l, wb_array *node) {
    if (node->stamp == l->stamp) return (int32_t)node->index;
    if (!WB_GROW(l->entries, l->count, l->capacity)) return -1;
    const bool is_step = node->op == WB_OP_step || node->op == WB_OP_step_numbers;
    node->stamp = l->stamp;
    node->index = (uint32_t)l->count;
    l->entries[l->count] = (entry){
        .node = node, .parts = -1, .value = -1, .is_step = is_step, .expands = expands(l, node)};
    return (int32_t)l->count++;
}

/* Node number `next` of those that must be lowered before this one; NULL: there are no more. */
static wb_array *child(const lowering *l, const entry *e) {
    const wb_array *node = e->node;
    if (wb_is_plan_leaf(node)) return NULL;
    if (e->expands) return e->next < PARTS ? l->parts[e->parts + e->next] : NULL;
    return e->next < node->ninputs ? node->inputs[e->next] : NULL;
}

static bool expand_macro(lowering *l, int32_t number) {
    entry *e = &l->entries[number];
    if (!e->expands || e->parts >= 0) return true;
    const int64_t first = l->part_count;
    for (int k = 0; k < PARTS; k++) {
        if (!WB_GROW(l->parts, l->part_count, l->part_capacity)) return false;
        l->parts[l->part_count++] = NULL;
    }
    e->parts = (int32_t)first;
    return wb_op_rows[e->node->op].expand(e->node, l->parts + first);
}

static int32_t value_of(const lowering *l, const wb_array *node) {
    return l->entries[node->index].value;
}

static int32_t lower_inputs(lowering *l, const wb_array *node, int32_t tape) {
    int32_t few[WB_INLINE_INPUTS] = {0}, *inputs = few, value = -1;
    if (node->ninputs > WB_INLINE_INPUTS) inputs = wb_alloc(sizeof *inputs * (size_t)node->ninputs);
    if (!inputs) return -1;
    for (int i = 0; i < node->ninputs; i++) inputs[i] = value_of(l, node->inputs[i]);
    switch (wb_op_rows[node->op].kind) {
    case WB_KIND_SOURCE:
        value = lower_source(l, node, tape);
        break;
    case WB_KIND_ELEMENT:
        value = lower_element(l, node, inputs);
        break;
    case WB_KIND_VIEW:
        value = lower_view(l, node, inputs[0]);
        break;
    case WB_KIND_JOIN:
        value = lower_join(l, node, inputs);
        break;
    case WB_KIND_REDUCE:
        value = lower_reduce(l, node, inputs);
        break;
    case WB_KIND_CALL:
        value = node->op == WB_OP_scan         ? lower_scan(l, node, inputs, tape)
                : node->op == WB_OP_collective ? lower_collective(l, node, inputs[0], tape)
                                               : lower_call(l, node, inputs);
        break;
    default:
        break;
    }
    if (inputs != few) wb_release(inputs);
    return value;
}

/* An operand as the expansion reads it, which may be a number of another type; -1: it does not. */
static int32_t callable_input(lowering *l, const wb_array *node, const wb_array *input) {
    const int32_t v = input->stamp == l->stamp ? value_of(l, input) : -1;
    if (v < 0) return -1;
    const uint8_t kind = value_at(l, v)->kind;
    const wb_dtype dtype = wb_is_half(node->dtype) ? WB_F32 : (wb_dtype)node->dtype;
    const bool is_number = kind == WB_VALUE_CONSTANT || kind == WB_VALUE_LATE;
    return is_number || (input->flags & WB_NODE_WEAK) ? wb_cast_value(&l->out, v, dtype)
                                                      : without_expand(l, v);
}

_Static_assert((int)WB_OFFER_INPUTS == (int)WB_CALLABLE_INPUTS &&
                   (int)WB_OFFER_RESULTS == (int)WB_CALLABLE_RESULTS &&
                   (int)WB_OFFER_NUMBERS == (int)WB_CALLABLE_NUMBERS,
               "an offer is a callable");

/* True if the device has the operation as one thing. */
static bool takes(const lowering *l, const char *name) {
    const wb_device *device = l->graph->tape->device;
    return device->backend->takes && device->backend->takes(device->context, name, NULL);
}

/* False when out of memory. */
static bool add_named(wb_values *out, const wb_named_node *named) {
    wb_graph *graph = out->graph;
    if (!WB_GROW(out->callables, graph->callable_count, out->callable_capacity)) return false;
    graph->callables = out->callables;
    out->callables[graph->callable_count++] = *named;
    out->at[named->out[0]].callable = (int32_t)graph->callable_count;
    return true;
}

/* Offers a callable to the device, and notes what it was expanded to. False when out of memory. */
static bool offer_callable(lowering *l, const entry *e) {
    wb_array **parts = l->parts + e->parts;
    wb_offer offer;
    if (!wb_describe_callable(e->node, parts, &offer)) return true;
    wb_named_node named = {.name = offer.name};
    memcpy(named.numbers, offer.numbers, sizeof named.numbers);
    for (int i = 0; i < WB_CALLABLE_INPUTS; i++) {
        named.in[i] = i < offer.input_count ? callable_input(l, e->node, offer.in[i]) : -1;
        if (wb_failed()) return false;
        wb_value *v = named.in[i] < 0 ? NULL : value_at(l, named.in[i]);
        if (v && v->kind == WB_VALUE_ELEMENT && wb_count_sizes(v->ndim, v->sizes) == 1)
            v->is_told = v->is_step;
    }
    for (int i = 0; i < WB_CALLABLE_RESULTS; i++)
        named.out[i] = i < offer.result_count ? value_of(l, parts[i]) : -1;
    return !takes(l, named.name) || add_named(&l->out, &named);
}

/* Offers an elementwise operation of the tape. False when out of memory. */
static bool offer_element(lowering *l, const wb_array *node, int32_t number) {
    enum { YES = 1, NO };
    const wb_value *v = &l->graph->values[number];
    if (v->kind != WB_VALUE_ELEMENT || v->op != node->op || v->callable) return true;
    const char *name = wb_op_name((wb_op)node->op);
    if (!l->taken[v->op]) l->taken[v->op] = takes(l, name) ? YES : NO;
    if (l->taken[v->op] == NO) return true;
    wb_named_node named = {.name = name};
    memset(named.in, -1, sizeof named.in), memset(named.out, -1, sizeof named.out);
    for (int i = 0; i < v->ninputs; i++) named.in[i] = wb_value_inputs(v)[i];
    named.out[0] = number;
    return add_named(&l->out, &named);
}

/* A macro stands for what it was expanded to, and its result r for result r of that. */
static int32_t lower_node(lowering *l, const entry *e, int32_t tape) {
    const wb_array *node = e->node;
    if (wb_is_plan_leaf(node)) return lower_leaf(l, node, tape);
    if (e->expands)
        return offer_callable(l, e)
                   ? wb_cast_value(&l->out, value_of(l, l->parts[e->parts]), (wb_dtype)node->dtype)
                   : -1;
    if (node->op != WB_OP_result) {
        const int32_t value = lower_inputs(l, node, tape);
        return value < 0 || tape < 0 || offer_element(l, node, value) ? value : -1;
    }
    const wb_array *whole = node->inputs[0];
    const entry *parent = &l->entries[whole->index];
    if (parent->expands) return value_of(l, l->parts[parent->parts + node->attributes.part.number]);
    return lower_result(l, node, parent->value);
}

static bool lower_from(lowering *l, wb_array *root) {
    const int32_t first = entry_of(l, root);
    if (first < 0 || l->entries[first].value >= 0) return first >= 0;
    if (!WB_GROW(l->stack, l->depth, l->stack_capacity)) return false;
    l->stack[l->depth++] = first;
    while (l->depth > 0) {
        const int32_t top = l->stack[l->depth - 1];
        if (!expand_macro(l, top)) return false;
        wb_array *next = child(l, &l->entries[top]);
        if (!next) {
            /* the tape's nodes were entered first: an entry's number is its place on the tape */
            const int32_t tape = top < l->graph->tape->count ? top : -1;
            const entry done = l->entries[top];
            l->out.is_step = done.is_step;
            l->entries[top].value = lower_node(l, &done, tape);
            if (l->entries[top].value < 0) return false;
            l->depth--;
            continue;
        }
        l->entries[top].next++;
        const int32_t below = entry_of(l, next);
        if (below < 0) return false;
        if (l->entries[below].value >= 0) continue;
        /* entries that an expansion made come after those of the tape's nodes */
        if (below >= l->graph->tape->count) l->entries[below].is_step = l->entries[top].is_step;
        if (!WB_GROW(l->stack, l->depth, l->stack_capacity)) return false;
        l->stack[l->depth++] = below;
    }
    return true;
}

static bool lower_tape(lowering *l) {
    const wb_tape *tape = l->graph->tape;
    for (int64_t i = 0; i < tape->count; i++)
        if (entry_of(l, tape->at[i].node) < 0) return false;
    for (int64_t i = 0; i < tape->count; i++)
        if ((tape->at[i].marks & WB_TAPE_STORED) && !lower_from(l, tape->at[i].node)) return false;
    for (int64_t i = 0; i < tape->count; i++) l->out.of_tape[i] = l->entries[i].value;
    return true;
}

bool wb_graph_lower(wb_graph *graph, const wb_tape *tape) {
    wb_thread *thread = wb_thread_get();
    graph->tape = tape;
    graph->last_collective = -1;
    int32_t *of_tape = wb_alloc(sizeof *of_tape * (size_t)(tape->count + 1));
    lowering l = {
        .graph = graph, .stamp = ++thread->stamp, .out = {.graph = graph, .of_tape = of_tape}};
    graph->of_tape = of_tape;
    if (wb_scope_open() != WB_OK) return false; /* for the nodes that expansions make */
    thread->is_walking = true;
    const bool lowered = of_tape && lower_tape(&l) && wb_values_separate(&l.out);
    thread->is_walking = false;
    for (int64_t i = 0; i < tape->count; i++)
        tape->at[i].node->index = (uint32_t)i; /* as the walk left them */
    (void)wb_scope_leave();
    wb_table_release(&l.out.table);
    wb_release(l.entries);
    wb_release(l.parts);
    wb_release(l.stack);
    return lowered;
}
