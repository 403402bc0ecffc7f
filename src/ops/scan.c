/* Scans: checks, tracing the body, and the results with the dimension of steps in its place. */
#include <stdio.h>
#include <weber/scan.h>

#include "array/thread.h"
#include "base/memory.h"
#include "ops/trace.h"

enum { FEW = 16 };

typedef struct scan {
    wb_scan_fn *body;
    void *context;
    int ncarries, ninputs, noutputs;
    wb_array **carries, **outputs;
    wb_array **first;  /* carries and inputs as the node takes them */
    wb_array **result; /* of one step: carries and outputs */
    int64_t steps;
    wb_scan_desc desc;
} scan;

/* ---- what the caller gives ---- */

/* An array as an operand: weak numbers are f32 from here on. */
static wb_array *operand(wb_array *x, const char *what, int number) {
    char name[32];
    (void)snprintf(name, sizeof name, "%s %d", what, number);
    if (!wb_is_usable(x)) return wb_refuse("scan", x, name);
    return x->flags & WB_NODE_WEAK ? wb_cast(x, WB_F32) : x;
}

/* desc.dim of an array with ndim dimensions; -1 with the error recorded. */
static int dim_of(const scan *s, const char *what, int number, int ndim) {
    const int64_t wanted = s->desc.dim, dim = wanted < 0 ? wanted + ndim : wanted;
    if (dim >= 0 && dim < ndim) return (int)dim;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "scan: .dim must be a dimension of %s %d, from %d to %d, that of the steps included, got "
        "%lld",
        what, number, -ndim, ndim - 1, (long long)wanted);
    return -1;
}

/* x with dimension `from` at place `to`. */
static wb_array *move_dim(wb_array *x, int from, int to) {
    int64_t dims[WB_MAX_DIMS];
    if (from == to) return x;
    for (int d = 0, next = 0; d < x->ndim; d++) {
        if (next == from) next++;
        dims[d] = d == to ? from : next++;
    }
    return wb_permute_make(x, x->ndim, dims);
}

static wb_array *steps_last(scan *s, int k, wb_array *input) {
    wb_array *x = operand(input, "input", k);
    const int dim = x ? dim_of(s, "input", k, x->ndim) : -1;
    if (dim < 0) return NULL;
    const int64_t steps = x->sizes[dim];
    if (s->steps < 0) s->steps = steps;
    if (steps != s->steps)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "scan: input %d has %lld steps, in dimension %d of %s, but %lld are "
                            "expected, from %s",
                            k, (long long)steps, dim, wb_text_of(x), (long long)s->steps,
                            s->desc.steps >= 0 ? ".steps" : "input 0");
    return move_dim(x, dim, x->ndim - 1);
}

static bool take_operands(scan *s, wb_array *const *inputs) {
    s->steps = s->desc.steps;
    if (s->steps < -1) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "scan: .steps must not be negative, got %lld",
                      (long long)s->desc.steps);
        return false;
    }
    for (int i = 0; i < s->ncarries; i++)
        if (!(s->first[i] = operand(s->carries[i], "carry", i))) return false;
    for (int k = 0; k < s->ninputs; k++)
        if (!(s->first[s->ncarries + k] = steps_last(s, k, inputs[k]))) return false;
    if (s->steps >= 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "scan: .steps is needed, since there are no inputs");
    return false;
}

/* ---- what the body gives ---- */

static wb_array *result_of(const scan *s, int r) {
    const bool is_carry = r < s->ncarries;
    const char *what = is_carry ? "carry" : "output";
    const int number = is_carry ? r : r - s->ncarries;
    wb_array *x = s->result[r];
    if (!x && !wb_failed())
        return wb_fail_null(WB_ERROR_ARGUMENT, "scan: the body gave NULL as %s %d", what, number);
    char name[48];
    (void)snprintf(name, sizeof name, "the body's %s %d", what, number);
    if (!wb_is_usable(x)) return wb_refuse("scan", x, name);
    const wb_array *first = is_carry ? s->first[r] : NULL;
    if (!(x->flags & WB_NODE_WEAK)) return x;
    return wb_stored_as("scan", x, first ? (wb_dtype)first->dtype : WB_F32);
}

static bool fits(const scan *s, int r, const wb_array *x) {
    if (r >= s->ncarries) {
        const int number = r - s->ncarries;
        if (x->ndim < WB_MAX_DIMS) return dim_of(s, "output", number, x->ndim + 1) >= 0;
        (void)wb_fail(
            WB_ERROR_SHAPE,
            "scan: output %d is %s in each step; with the dimension of the steps it would "
            "have more than %d dimensions",
            number, wb_text_of(x), WB_MAX_DIMS);
        return false;
    }
    const wb_array *first = s->first[r];
    if (x->dtype == first->dtype && wb_same_sizes(x, first)) return true;
    (void)wb_fail(
        x->dtype == first->dtype ? WB_ERROR_SHAPE : WB_ERROR_DTYPE,
        "scan: carry %d is %s %s, so the body must give %s %s for the next step, but gave "
        "%s %s",
        r, wb_dtype_name((wb_dtype)first->dtype), wb_text_of(first),
        wb_dtype_name((wb_dtype)first->dtype), wb_text_of(first), wb_dtype_name((wb_dtype)x->dtype),
        wb_text_of(x));
    return false;
}

static wb_body *trace_body(scan *s, wb_trace *trace) {
    wb_array *few[FEW] = {NULL}, **slices = few;
    if (s->ninputs > FEW) slices = wb_alloc((size_t)s->ninputs * sizeof *slices);
    bool ready = slices != NULL;
    for (int i = 0; ready && i < s->ncarries; i++)
        ready = (s->result[i] = wb_trace_given(trace, WB_GIVEN_CARRY, s->first[i])) != NULL;
    for (int k = 0; ready && k < s->ninputs; k++)
        ready =
            (slices[k] = wb_trace_given(trace, WB_GIVEN_SLICE, s->first[s->ncarries + k])) != NULL;
    const int nresults = s->ncarries + s->noutputs;
    if (ready) s->body(s->context, s->result, slices, s->result + s->ncarries);
    if (slices != few) wb_release(slices);
    for (int r = 0; ready && r < nresults; r++)
        ready = (s->result[r] = result_of(s, r)) && fits(s, r, s->result[r]);
    ready = wb_user_call_is_kept(&trace->call, NULL) && ready;
    return ready && !wb_failed() ? wb_trace_close(trace, nresults, s->result) : NULL;
}

/* ---- the results ---- */

static wb_array *no_steps(const wb_array *step) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < step->ndim; d++) sizes[d] = step->sizes[d];
    sizes[step->ndim] = 0;
    return wb_full_make((wb_dtype)step->dtype, 0, step->ndim + 1, sizes);
}

/* node is NULL where there are no steps. */
static bool give_results(scan *s, const wb_body *body, wb_array *node) {
    for (int i = 0; i < s->ncarries; i++)
        if (!(s->carries[i] = node ? wb_scan_result(node, i) : s->first[i])) return false;
    for (int j = 0; j < s->noutputs; j++) {
        const int32_t r = s->ncarries + j;
        wb_array *y = node ? wb_scan_result(node, r) : no_steps(body->results[r]);
        const int dim = y ? dim_of(s, "output", j, y->ndim) : -1;
        if (dim < 0 || !(s->outputs[j] = move_dim(y, y->ndim - 1, dim))) return false;
    }
    return true;
}

static bool run(scan *s, wb_trace *trace) {
    wb_body *body = wb_trace_begin(trace, NULL, NULL) ? trace_body(s, trace) : NULL;
    wb_trace_leave(trace);
    if (!body) return false;
    wb_thread_get()->counter = trace->counter + (uint64_t)body->draws * (uint64_t)s->steps;
    if (s->steps == 0) {
        const bool done = give_results(s, body, NULL);
        wb_body_unref(body);
        return done;
    }
    wb_array **inputs = wb_trace_inputs(trace);
    wb_array *node = wb_scan_node(body, inputs, s->steps, s->desc.reverse);
    wb_release(inputs);
    return node && give_results(s, wb_body_of(node), node);
}

static bool has_lists(const scan *s, wb_array *const *inputs) {
    if (s->body && s->ncarries >= 0 && s->ninputs >= 0 && s->noutputs >= 0 &&
        (s->carries || !s->ncarries) && (inputs || !s->ninputs) && (s->outputs || !s->noutputs))
        return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "scan: %s",
                  s->body ? "a list is NULL or its length negative" : "the body is NULL");
    return false;
}

static void give_nothing(const scan *s) {
    for (int i = 0; s->carries && i < s->ncarries; i++) s->carries[i] = NULL;
    for (int j = 0; s->outputs && j < s->noutputs; j++) s->outputs[j] = NULL;
}

wb_status wb_scan_make(wb_scan_fn *body, void *context, int ncarries, wb_array **carries,
                       int ninputs, wb_array *const *inputs, int noutputs, wb_array **outputs,
                       wb_scan_desc desc) {
    scan s = {.body = body,
              .context = context,
              .ncarries = ncarries,
              .ninputs = ninputs,
              .noutputs = noutputs,
              .carries = carries,
              .outputs = outputs,
              .desc = desc};
    wb_trace trace = {.count = 0};
    wb_error_aside older;
    wb_error_put_aside(&older);
    bool done = wb_check_start("wb_scan", desc.start_) && has_lists(&s, inputs);
    if (done) {
        s.first = wb_alloc((size_t)(ncarries + ninputs + 1) * sizeof *s.first);
        s.result = wb_alloc((size_t)(ncarries + noutputs + 1) * sizeof *s.result);
        done = s.first && s.result && take_operands(&s, inputs) && run(&s, &trace);
    }
    if (!done) give_nothing(&s);
    wb_trace_end(&trace);
    wb_release(s.first);
    wb_release(s.result);
    const wb_status status = done ? WB_OK : wb_error_status();
    wb_error_bring_back(&older);
    return status;
}
