/* Copies graphs, with some nodes replaced, and traces functions. Tracing copies what the function
 * made; an array from outside that it used becomes a placeholder as well (captured). */
#include "ops/trace.h"

#include <string.h>

#include "array/payload.h"
#include "array/thread.h"
#include "base/memory.h"

/* ---- copies of graphs ---- */

struct wb_copier_visit {
    wb_array *node;
    int32_t next; /* input to look at */
};

static uint64_t key_of(const wb_array *x) { return (uint64_t)(uintptr_t)x; }

/* What stands for x, or NULL: x was not met yet. */
static wb_array *copy_of(const wb_copier *copier, const wb_array *x) {
    const int64_t number = wb_table_find(&copier->table, key_of(x));
    return number < 0 ? NULL : copier->copies[number];
}

bool wb_copier_set(wb_copier *copier, const wb_array *x, wb_array *copy) {
    const int64_t number = copier->table.count;
    if (!WB_GROW(copier->copies, number, copier->capacity)) return false;
    if (!wb_table_add(&copier->table, key_of(x))) return false;
    copier->copies[number] = copy;
    return true;
}

static wb_array *copy_with(const wb_copier *copier, const wb_array *x, wb_array *const *inputs) {
    wb_array *copy = wb_node_with((wb_op)x->op, (wb_dtype)x->dtype, x->ndim, x->sizes, x->ninputs,
                                  inputs, x->nattributes, x->attributes.words);
    if (!copy) return NULL;
    memcpy(copy->late, x->late, sizeof copy->late);
    if (x->op == WB_OP_scan) copy->late[0] += copier->draws;
    if (x->op == WB_OP_uniform || x->op == WB_OP_normal) copy->late[1] += copier->draws;
    copy->flags |= x->flags & (WB_NODE_WEAK | WB_NODE_UNTIED);
    copy->payload = wb_payload_ref(x->payload);
    return copy;
}

/* The inputs are copied. */
static wb_array *copy_node(wb_copier *copier, const wb_array *x) {
    wb_array *few[WB_INLINE_INPUTS] = {NULL}, **inputs = few;
    if (x->ninputs > WB_INLINE_INPUTS) inputs = wb_alloc((size_t)x->ninputs * sizeof *inputs);
    if (!inputs) return NULL;
    for (int i = 0; i < x->ninputs; i++) inputs[i] = copy_of(copier, x->inputs[i]);
    wb_array *copy = copy_with(copier, x, inputs);
    if (inputs != few) wb_release(inputs);
    return copy && wb_copier_set(copier, x, copy) ? copy : NULL;
}

/* True if x needs no visit: it has a copy, or something stands for it now. *failed: an error. */
static bool is_settled(wb_copier *copier, wb_array *x, bool *failed) {
    if (copy_of(copier, x)) return true;
    wb_array *other = copier->stand_in(copier->context, x);
    *failed = other ? !wb_copier_set(copier, x, other) : wb_failed();
    return other != NULL;
}

wb_array *wb_copier_run(wb_copier *copier, wb_array *root) {
    int64_t depth = 0;
    bool failed = false;
    if (is_settled(copier, root, &failed)) return failed ? NULL : copy_of(copier, root);
    if (failed || !WB_GROW(copier->stack, depth, copier->stack_capacity)) return NULL;
    copier->stack[depth++] = (struct wb_copier_visit){root, 0};
    while (depth > 0) {
        struct wb_copier_visit *top = &copier->stack[depth - 1];
        if (top->next == top->node->ninputs) {
            if (!copy_node(copier, top->node)) return NULL;
            depth--;
            continue;
        }
        wb_array *input = top->node->inputs[top->next++];
        if (is_settled(copier, input, &failed) && !failed) continue;
        if (failed || !WB_GROW(copier->stack, depth, copier->stack_capacity)) return NULL;
        copier->stack[depth++] = (struct wb_copier_visit){input, 0};
    }
    return copy_of(copier, root);
}

void wb_copier_end(wb_copier *copier) {
    wb_table_release(&copier->table);
    wb_release(copier->copies);
    wb_release(copier->stack);
    copier->copies = NULL, copier->stack = NULL;
}

/* ---- traces ---- */

static wb_array *capture(void *context, wb_array *x);

bool wb_trace_begin(wb_trace *trace, wb_array *(*stand_in)(void *context, wb_array *x),
                    void *context) {
    wb_thread *thread = wb_thread_get();
    *trace = (wb_trace){.copier = {.stand_in = stand_in, .context = context}};
    if (!stand_in) trace->copier.stand_in = capture, trace->copier.context = trace;
    if (!thread) return false;
    if (thread->depth == UINT8_MAX) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "scan: at most %d scans can be inside one another",
                      UINT8_MAX);
        return false;
    }
    if (wb_scope_open() != WB_OK) return false;
    thread->depth++;
    trace->counter = thread->counter;
    wb_user_call_begin(&trace->call, "the body of the scan");
    return trace->is_open = true;
}

wb_array *wb_trace_given(wb_trace *trace, wb_given kind, wb_array *outer) {
    const int ndim = outer->ndim - (kind == WB_GIVEN_SLICE);
    if (!WB_GROW(trace->given, trace->count, trace->capacity)) return NULL;
    wb_array *x = wb_node_with(WB_OP_placeholder, (wb_dtype)outer->dtype, ndim, outer->sizes, 0,
                               NULL, WB_WORDS(part, 0)); /* its number, once all are known */
    if (!x || !wb_copier_set(&trace->copier, x, x)) return NULL;
    x->device = outer->device;
    if (kind == WB_GIVEN_CAPTURED) x->flags |= outer->flags & WB_NODE_WEAK;
    trace->given[trace->count++] = (struct wb_trace_given){x, wb_ref(outer), kind};
    return x;
}

/* The array that x is a slice of; NULL: x is none. */
static wb_array *whole_of(const wb_trace *trace, const wb_array *x) {
    for (int64_t i = 0; i < trace->count; i++) {
        const struct wb_trace_given *g = &trace->given[i];
        if (g->placeholder == x) return g->kind == WB_GIVEN_SLICE ? g->outer : NULL;
    }
    return NULL;
}

/* A weak number is copied, since its type depends on what it meets, unless its recipe is gone. */
static bool is_weak_recipe(const wb_array *x) {
    return (x->flags & WB_NODE_WEAK) && x->op != WB_OP_data;
}

/* The same holds for one of several results of an operation that was made outside, even if it was
 * asked for inside. */
static bool is_outside(const wb_array *x) {
    const wb_array *maker = x->op == WB_OP_result ? x->inputs[0] : x;
    return !is_weak_recipe(x) && (wb_is_evaluated(x) || maker->depth < wb_thread_get()->depth);
}

/* W times the slices of all steps, side by side in one matrix. */
static wb_array *product_of_all(const wb_array *x, wb_array *slices) {
    const wb_array *slice = x->inputs[1];
    const int64_t steps = slices->sizes[slices->ndim - 1];
    wb_array *all = wb_reshape(slices, slice->sizes[0], slice->sizes[1] * steps);
    wb_array *y =
        all ? wb_matmul_transposed(x->inputs[0], all,
                                   x->attributes.product.flags & WB_MATMUL_TRANSPOSE_A, false)
            : NULL;
    return y ? wb_reshape(y, x->sizes[0], x->sizes[1], steps) : NULL;
}

/* A matrix from outside times a slice of an input becomes a slice of one larger product before the
 * loop. NULL: x is not such a product, or an error is recorded. */
static wb_array *before_the_loop(wb_trace *trace, const wb_array *x) {
    const bool is_product = x->op == WB_OP_matmul && x->ndim == 2 && x->inputs[1]->ndim == 2 &&
                            !(x->attributes.product.flags & WB_MATMUL_TRANSPOSE_B) &&
                            !(x->flags & WB_NODE_REPEATED) && is_outside(x->inputs[0]);
    if (!is_product) return NULL;
    const wb_array *slice = x->inputs[1];
    if (slice->op == WB_OP_reshape) slice = slice->inputs[0];
    wb_array *slices = whole_of(trace, slice);
    if (!slices) return NULL;
    wb_trace_step_out();
    wb_array *y = product_of_all(x, slices);
    wb_trace_step_in();
    return y ? wb_trace_given(trace, WB_GIVEN_SLICE, y) : NULL;
}

/* Arrays that were made outside, and data in memory, are captured. */
static wb_array *capture(void *context, wb_array *x) {
    wb_trace *trace = context;
    if (is_weak_recipe(x)) return NULL;
    if (is_outside(x)) return wb_trace_given(trace, WB_GIVEN_CAPTURED, x);
    if (x->op == WB_OP_placeholder)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "scan: the body uses %s, which exists only inside another body; return "
                            "it there as an output",
                            wb_text_of(x));
    if (x->op == WB_OP_move)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "scan: the body moves %s between devices; move arrays before the scan",
                            wb_text_of(x->inputs[0]));
    return before_the_loop(trace, x);
}

static bool copy_results(wb_trace *trace, int32_t nresults, wb_array *const *results,
                         wb_array **copies) {
    for (int32_t r = 0; r < nresults; r++)
        if (!(copies[r] = wb_copier_run(&trace->copier, results[r]))) return false;
    return true;
}

/* Numbers the placeholders: carries, slices, captured arrays. */
static void give(const wb_trace *trace, wb_body *body) {
    int32_t *counts[WB_GIVEN_COUNT] = {&body->ncarries, &body->nslices, &body->ncaptured};
    int32_t number = 0;
    for (int kind = 0; kind < WB_GIVEN_COUNT; kind++)
        for (int64_t i = 0; i < trace->count; i++) {
            if ((int)trace->given[i].kind != kind) continue;
            body->given[number] = wb_ref(trace->given[i].placeholder);
            body->given[number]->attributes.part.number = number;
            number++, ++*counts[kind];
        }
}

static wb_body *body_of(const wb_trace *trace, int32_t nresults, wb_array *const *results) {
    wb_body *body = wb_body_new((int32_t)trace->count, nresults);
    if (!body) return NULL;
    give(trace, body);
    body->nresults = nresults;
    for (int32_t r = 0; r < nresults; r++) body->results[r] = wb_ref(results[r]);
    body->draws = (int64_t)(wb_thread_get()->counter - trace->counter);
    return body;
}

wb_body *wb_trace_close(wb_trace *trace, int32_t nresults, wb_array *const *results) {
    wb_array **copies = wb_alloc((size_t)(nresults + 1) * sizeof *copies);
    const bool copied = copies && copy_results(trace, nresults, results, copies);
    wb_body *body = copied ? body_of(trace, nresults, copies) : NULL;
    wb_release(copies);
    return body;
}

wb_array **wb_trace_inputs(const wb_trace *trace) {
    wb_array **inputs = wb_alloc((size_t)(trace->count + 1) * sizeof *inputs);
    for (int64_t i = 0; inputs && i < trace->count; i++)
        inputs[trace->given[i].placeholder->attributes.part.number] = trace->given[i].outer;
    return inputs;
}

void wb_trace_step_out(void) { wb_thread_get()->depth--; }
void wb_trace_step_in(void) { wb_thread_get()->depth++; }

void wb_trace_leave(wb_trace *trace) {
    if (!trace->is_open) return;
    wb_thread *thread = wb_thread_get();
    trace->is_open = false;
    thread->depth--;
    wb_user_call_leave(&trace->call);
    (void)wb_scope_leave();
}

void wb_trace_end(wb_trace *trace) {
    wb_trace_leave(trace);
    wb_copier_end(&trace->copier);
    for (int64_t i = 0; trace->given && i < trace->count; i++) wb_unref(trace->given[i].outer);
    wb_release(trace->given);
    trace->given = NULL, trace->count = 0;
}

/* ---- the node of a scan ---- */

wb_array *wb_scan_node(wb_body *body, wb_array *const *inputs, int64_t steps, bool reverse) {
    const int64_t none = 0;
    wb_array *node =
        inputs ? wb_node_with(WB_OP_scan, WB_F32, 1, &none, wb_body_given(body), inputs,
                              WB_WORDS(scan, steps, reverse, body->ncarries, body->nslices))
               : NULL;
    if (!node) {
        wb_body_unref(body);
        return NULL;
    }
    node->payload = &body->payload;
    node->late[0] = 0;
    return node;
}

wb_array *wb_scan_result(wb_array *scan, int32_t r) {
    const wb_body *body = wb_body_of(scan);
    const wb_array *step = body->results[r];
    int64_t sizes[WB_MAX_DIMS];
    int ndim = step->ndim;
    for (int d = 0; d < ndim; d++) sizes[d] = step->sizes[d];
    if (r >= body->ncarries) sizes[ndim++] = scan->attributes.scan.steps;
    return wb_result_of(scan, r, (wb_dtype)step->dtype, ndim, sizes);
}
