/* Views, and joining: reshape, permute, slice, expand, concat, stack, pad. */
#include <stdlib.h>
#include <string.h>

#include "array/view.h"
#include "base/memory.h"
#include "base/table.h"
#include "ops/check.h"

/* ---- reshape ---- */

static bool complete_sizes(const wb_array *x, int ndim, const int64_t *wanted, int64_t *sizes) {
    int64_t known = 1, unknown = -1;
    for (int d = 0; d < ndim; d++) {
        sizes[d] = wanted[d];
        if (wanted[d] == -1 && unknown < 0)
            unknown = d;
        else if (__builtin_mul_overflow(known, wanted[d], &known))
            return false;
    }
    const int64_t count = wb_count(x);
    if (unknown >= 0) {
        if (known == 0 || count % known != 0) return false;
        sizes[unknown] = count / known;
    }
    return wb_count_sizes(ndim, sizes) == count;
}

wb_array *wb_reshape_make(wb_array *x, int ndim, const int64_t *wanted) {
    if (!wb_is_usable(x)) return wb_refuse("reshape", x, "x");
    if (ndim < 0 || ndim > WB_MAX_DIMS) {
        (void)wb_check_sizes("reshape", ndim, wanted);
        return NULL;
    }
    if (!wb_check_list("reshape", ndim, wanted)) return NULL;
    int64_t sizes[WB_MAX_DIMS];
    if (!complete_sizes(x, ndim, wanted, sizes))
        return wb_fail_null(WB_ERROR_SHAPE, "reshape: %s has %lld elements and cannot become %s",
                            wb_text_of(x), (long long)wb_count(x), wb_sizes_text(ndim, wanted));
    return wb_view_share(wb_node_new(WB_OP_reshape, (wb_dtype)x->dtype, ndim, sizes, 1, &x));
}

void wb_vjp_reshape(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    out[0] = wb_reshape_make(g, o->inputs[0]->ndim, o->inputs[0]->sizes);
}

wb_array *wb_flatten_batch(wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse("flatten", x, "x");
    if (x->ndim == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "flatten: a scalar has no batch dimension");
    const int64_t batch = x->sizes[x->ndim - 1];
    const int64_t features = wb_count_sizes(x->ndim - 1, x->sizes);
    return wb_reshape_make(x, 2, (const int64_t[]){features, batch});
}

wb_array *wb_unsqueeze(wb_array *x, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("unsqueeze", x, "x");
    dim = wb_check_dim("unsqueeze", dim, x->ndim + 1);
    if (dim < 0) return NULL;
    int64_t sizes[WB_MAX_DIMS + 1];
    for (int d = 0; d <= x->ndim; d++)
        sizes[d] = d < dim ? x->sizes[d] : d == dim ? 1 : x->sizes[d - 1];
    if (!wb_check_sizes("unsqueeze", x->ndim + 1, sizes)) return NULL;
    return wb_reshape_make(x, x->ndim + 1, sizes);
}

wb_array *wb_squeeze(wb_array *x, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("squeeze", x, "x");
    dim = wb_check_dim("squeeze", dim, x->ndim);
    if (dim < 0) return NULL;
    if (x->sizes[dim] != 1)
        return wb_fail_null(WB_ERROR_SHAPE, "squeeze: dimension %d of %s must have size 1", dim,
                            wb_text_of(x));
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d + 1 < x->ndim; d++) sizes[d] = x->sizes[d < dim ? d : d + 1];
    return wb_reshape_make(x, x->ndim - 1, sizes);
}

/* ---- permute ---- */

static wb_array *permute(wb_array *x, const int *dims) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[dims[d]];
    const int64_t packed = wb_permutation_pack(x->ndim, dims);
    return wb_view_share(
        wb_node_with(WB_OP_permute, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x, 1, &packed));
}

wb_array *wb_permute_make(wb_array *x, int ndim, const int64_t *wanted) {
    if (!wb_is_usable(x)) return wb_refuse("permute", x, "x");
    if (!wb_check_list("permute", ndim, wanted)) return NULL;
    int dims[WB_MAX_DIMS];
    unsigned seen = 0;
    for (int d = 0; ndim == x->ndim && d < ndim; d++) {
        const int64_t dim = wanted[d] < 0 ? wanted[d] + ndim : wanted[d];
        if (dim >= 0 && dim < ndim) seen |= 1u << dim;
        dims[d] = (int)dim;
    }
    if (ndim != x->ndim || seen != (1u << ndim) - 1)
        return wb_fail_null(
            WB_ERROR_ARGUMENT, "permute: %s must name each of the %d dimensions of %s once",
            wb_sizes_text(ndim < WB_MAX_DIMS ? ndim : WB_MAX_DIMS, wanted), x->ndim, wb_text_of(x));
    return permute(x, dims);
}

void wb_vjp_permute(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    int dims[WB_MAX_DIMS], inverse[WB_MAX_DIMS];
    wb_permutation_unpack(o->attributes[0], o->ndim, dims);
    for (int d = 0; d < o->ndim; d++) inverse[dims[d]] = d;
    out[0] = g ? permute(g, inverse) : NULL;
}

wb_array *wb_transpose(wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse("transpose", x, "x");
    if (x->ndim < 2) return wb_reshape_make(x, 2, (const int64_t[]){1, wb_count(x)});
    int dims[WB_MAX_DIMS] = {1, 0, 2, 3, 4, 5, 6, 7};
    return permute(x, dims);
}

/* ---- slice ---- */

static wb_array *slice(wb_array *x, int dim, int64_t start, int64_t count, int64_t step) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == dim ? count : x->sizes[d];
    return wb_view_share(wb_node_with(WB_OP_slice, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x, 3,
                                      (const int64_t[]){dim, start, step}));
}

/* How many elements; -1 with the error recorded where they are not in x. */
static int64_t slice_count(const char *function, const wb_array *x, int dim, int64_t start,
                           int64_t stop, int64_t step) {
    const int64_t size = x->sizes[dim];
    if (step == 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the step must not be 0", function);
        return -1;
    }
    if (stop == WB_END) stop = step > 0 ? size : -1;
    const bool fits = step > 0 ? start >= 0 && start <= stop && stop <= size
                               : start < size && stop >= -1 && start >= stop;
    if (!fits) {
        (void)wb_fail(
            WB_ERROR_ARGUMENT, "%s: start %lld, stop %lld, step %lld do not fit dimension %d of %s",
            function, (long long)start, (long long)stop, (long long)step, dim, wb_text_of(x));
        return -1;
    }
    const int64_t span = step > 0 ? stop - start : start - stop;
    const uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    return span > 0 ? (int64_t)((uint64_t)(span - 1) / stride) + 1 : 0;
}

wb_array *wb_slice(wb_array *x, int dim, int64_t start, int64_t stop, int64_t step) {
    if (!wb_is_usable(x)) return wb_refuse("slice", x, "x");
    dim = wb_check_dim("slice", dim, x->ndim);
    if (dim < 0) return NULL;
    const int64_t count = slice_count("slice", x, dim, start, stop, step);
    return count < 0 ? NULL : slice(x, dim, start, count, count > 1 ? step : 1);
}

/* True along dim at start, start + step, ... count times. */
static wb_array *slice_mask(const wb_array *x, int dim, int64_t start, int64_t count,
                            int64_t step) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == dim ? x->sizes[d] : 1;
    const int64_t last = start + (count - 1) * step, low = step > 0 ? start : last;
    const int64_t high = start + last - low;
    wb_array *place = wb_iota_make(WB_I64, dim, x->ndim, sizes);
    wb_array *inside = AND(GE(place, NUM((double)low)), LE(place, NUM((double)high)));
    if (step == 1 || step == -1) return inside;
    wb_array *rest = MOD(SUB(place, NUM((double)low)), NUM((double)(step > 0 ? step : -step)));
    return AND(inside, EQ(rest, NUM(0)));
}

wb_array *wb_slice_set(wb_array *x, wb_array *y, int dim, int64_t start, int64_t stop,
                       int64_t step) {
    if (!wb_is_usable(x)) return wb_refuse("slice_set", x, "x");
    if (!wb_is_usable(y)) return wb_refuse("slice_set", y, "y");
    dim = wb_check_dim("slice_set", dim, x->ndim);
    const int64_t count = dim < 0 ? -1 : slice_count("slice_set", x, dim, start, stop, step);
    if (count < 0) return NULL;
    int64_t sizes[WB_MAX_DIMS], both[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == dim ? count : x->sizes[d];
    const int ndim = wb_broadcast(y->ndim, y->sizes, x->ndim, sizes, both);
    bool fits = ndim == x->ndim;
    for (int d = 0; fits && d < ndim; d++) fits = both[d] == sizes[d];
    if (!fits)
        return wb_fail_null(WB_ERROR_SHAPE, "slice_set: y must be %s or broadcast to it, got %s",
                            wb_sizes_text(x->ndim, sizes), wb_text_of(y));
    if (count == 0) return x;
    step = count > 1 ? step : 1;
    y = wb_expand_make(wb_cast(y, (wb_dtype)x->dtype), x->ndim, sizes);
    return SELECT(slice_mask(x, dim, start, count, step),
                  wb_slice_put(y, x->ndim, x->sizes, dim, start, step), x);
}

wb_array *wb_flip(wb_array *x, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("flip", x, "x");
    dim = wb_check_dim("flip", dim, x->ndim);
    return dim < 0 ? NULL : slice(x, dim, x->sizes[dim] ? x->sizes[dim] - 1 : 0, x->sizes[dim], -1);
}

wb_array *wb_slice_put(wb_array *x, int ndim, const int64_t *sizes, int dim, int64_t start,
                       int64_t step) {
    if (!x) return NULL;
    return wb_node_with(WB_OP_slice_put, (wb_dtype)x->dtype, ndim, sizes, 1, &x, 3,
                        (const int64_t[]){dim, start, step});
}

void wb_vjp_slice(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const wb_array *x = o->inputs[0];
    out[0] = wb_slice_put(g, x->ndim, x->sizes, (int)o->attributes[0], o->attributes[1],
                          o->attributes[2]);
}

void wb_vjp_slice_put(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const int dim = (int)o->attributes[0];
    out[0] = g ? slice(g, dim, o->attributes[1], o->inputs[0]->sizes[dim], o->attributes[2]) : NULL;
}

/* ---- expand ---- */

wb_array *wb_expand_make(wb_array *x, int ndim, const int64_t *sizes) {
    if (!wb_is_usable(x)) return wb_refuse("expand", x, "x");
    if (!wb_check_sizes("expand", ndim, sizes)) return NULL;
    bool fits = ndim >= x->ndim;
    for (int d = 0; fits && d < x->ndim; d++) fits = x->sizes[d] == sizes[d] || x->sizes[d] == 1;
    if (!fits)
        return wb_fail_null(WB_ERROR_SHAPE, "expand: %s cannot be repeated to %s", wb_text_of(x),
                            wb_sizes_text(ndim, sizes));
    return wb_view_share(wb_node_new(WB_OP_expand, (wb_dtype)x->dtype, ndim, sizes, 1, &x));
}

void wb_vjp_expand(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    out[0] = wb_sum_to(g, o->inputs[0]->ndim, o->inputs[0]->sizes);
}

/* ---- pad, concat, stack ---- */

wb_array *wb_pad(wb_array *x, int dim, int64_t lo, int64_t hi, double value) {
    if (!wb_is_usable(x)) return wb_refuse("pad", x, "x");
    dim = wb_check_dim("pad", dim, x->ndim);
    if (dim < 0) return NULL;
    if (lo < 0 || hi < 0)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "pad: paddings must not be negative, got %lld before and %lld after",
                            (long long)lo, (long long)hi);
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
    if (__builtin_add_overflow(sizes[dim], lo, &sizes[dim]) ||
        __builtin_add_overflow(sizes[dim], hi, &sizes[dim]))
        sizes[dim] = INT64_MAX;
    if (!wb_check_sizes("pad", x->ndim, sizes)) return NULL;
    return wb_node_with(WB_OP_pad, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x, 3,
                        (const int64_t[]){dim, lo, wb_bits_of(value)});
}

void wb_vjp_pad(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const int dim = (int)o->attributes[0];
    out[0] = g ? slice(g, dim, o->attributes[1], o->inputs[0]->sizes[dim], 1) : NULL;
}

static bool join_sizes(int dim, int count, wb_array *const *arrays, int64_t *sizes,
                       wb_dtype *dtype) {
    const wb_array *first = arrays[0];
    for (int d = 0; d < first->ndim; d++) sizes[d] = first->sizes[d];
    *dtype = (wb_dtype)first->dtype;
    for (int i = 1; i < count; i++) {
        const wb_array *x = arrays[i];
        bool fits = x->ndim == first->ndim;
        for (int d = 0; fits && d < x->ndim; d++) fits = d == dim || x->sizes[d] == first->sizes[d];
        if (!fits) {
            (void)wb_fail(WB_ERROR_SHAPE,
                          "concat: array %d is %s, which does not join %s along dimension %d", i,
                          wb_text_of(x), wb_text_of(first), dim);
            return false;
        }
        if (__builtin_add_overflow(sizes[dim], x->sizes[dim], &sizes[dim])) sizes[dim] = INT64_MAX;
        *dtype = wb_promote(*dtype, (wb_dtype)x->dtype);
    }
    return wb_check_sizes("concat", first->ndim, sizes);
}

static bool check_list(const char *function, int count, wb_array *const *arrays) {
    if (count < 1) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: needs at least one array", function);
        return false;
    }
    if (!wb_check_list(function, count, arrays)) return false;
    for (int i = 0; i < count; i++) {
        if (arrays[i]) continue;
        if (!wb_failed()) (void)wb_fail(WB_ERROR_ARGUMENT, "%s: array %d is NULL", function, i);
        return false;
    }
    return true;
}

wb_array *wb_concat_make(int dim, int count, wb_array *const *arrays) {
    if (!check_list("concat", count, arrays)) return NULL;
    dim = wb_check_dim("concat", dim, arrays[0]->ndim);
    int64_t sizes[WB_MAX_DIMS];
    wb_dtype dtype;
    if (dim < 0 || !join_sizes(dim, count, arrays, sizes, &dtype)) return NULL;
    if (count == 1) return arrays[0];
    const int64_t attribute = dim;
    return wb_node_with(WB_OP_concat, dtype, arrays[0]->ndim, sizes, count, arrays, 1, &attribute);
}

/* ---- gradients of slices side by side ---- */

bool wb_is_slice_put(const wb_array *x) {
    return x->op == WB_OP_slice_put && x->attributes[2] == 1 && !wb_is_evaluated(x);
}

static int64_t start_of(const wb_array *put) { return put->attributes[1]; }
static int64_t end_of(const wb_array *put) {
    return start_of(put) + put->inputs[0]->sizes[put->attributes[0]];
}

static int by_start(const void *a, const void *b) {
    const wb_array *x = *(wb_array *const *)a, *y = *(wb_array *const *)b;
    if (x->attributes[0] != y->attributes[0]) return x->attributes[0] < y->attributes[0] ? -1 : 1;
    if (start_of(x) != start_of(y)) return start_of(x) < start_of(y) ? -1 : 1;
    return (end_of(x) > end_of(y)) - (end_of(x) < end_of(y));
}

/* Slices one behind the other, as one. */
static wb_array *join_run(int count, wb_array *const *run, wb_array **parts) {
    const wb_array *first = run[0];
    const int dim = (int)first->attributes[0];
    if (count == 1) return run[0];
    for (int i = 0; i < count; i++) parts[i] = run[i]->inputs[0];
    wb_array *joined = wb_concat_make(dim, count, parts);
    if (!joined || joined->sizes[dim] == first->sizes[dim]) return joined;
    return wb_slice_put(joined, first->ndim, first->sizes, dim, start_of(first), 1);
}

/* Which run each slice belongs to: one whose last slice ends where it starts, or a new one. */
static int number_runs(int count, wb_array *const *puts, int *run_of) {
    wb_table ends = {.count = 0}; /* of the slices so far, those that no other one goes on from */
    int runs = 0;
    for (int i = 0; i < count; i++) {
        const uint64_t dim = wb_table_mix(0, (uint64_t)puts[i]->attributes[0]);
        int64_t before = wb_table_find(&ends, wb_table_mix(dim, (uint64_t)start_of(puts[i])));
        while (before >= 0 && run_of[count + before]) before = wb_table_next(&ends, before);
        run_of[i] = before < 0 ? runs++ : run_of[before];
        if (before >= 0) run_of[count + before] = true;
        if (!wb_table_add(&ends, wb_table_mix(dim, (uint64_t)end_of(puts[i])))) runs = 0;
        if (runs == 0) break;
    }
    wb_table_release(&ends);
    return runs;
}

int wb_join_puts(int count, wb_array **puts) {
    qsort(puts, (size_t)count, sizeof *puts, by_start);
    int *run_of = wb_alloc(sizeof *run_of * 2 * (size_t)count); /* and whether another goes on */
    wb_array **run = wb_alloc(sizeof(wb_array *) * 2 * (size_t)count);
    const int runs = run_of && run ? number_runs(count, puts, run_of) : 0;
    int *size = runs ? wb_alloc(sizeof *size * ((size_t)runs + 1)) : NULL;
    bool done = size != NULL;
    if (done) { /* the slices run by run */
        for (int i = 0; i < count; i++) size[run_of[i] + 1]++;
        for (int r = 0; r < runs; r++) size[r + 1] += size[r];
        for (int i = 0; i < count; i++) run[size[run_of[i]]++] = puts[i];
    }
    for (int r = 0; done && r < runs; r++) {
        const int first = r ? size[r - 1] : 0;
        done = (puts[r] = join_run(size[r] - first, run + first, run + count)) != NULL;
    }
    wb_release(size);
    wb_release(run);
    wb_release(run_of);
    return done ? runs : 0;
}

void wb_vjp_concat(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const int dim = (int)o->attributes[0];
    int64_t start = 0;
    for (int i = 0; i < o->ninputs; i++) {
        const int64_t count = o->inputs[i]->sizes[dim];
        if (want[i] && g) out[i] = slice(g, dim, start, count, 1);
        start += count;
    }
}

wb_array *wb_stack_make(int dim, int count, wb_array *const *arrays) {
    if (!check_list("stack", count, arrays)) return NULL;
    dim = wb_check_dim("stack", dim, arrays[0]->ndim + 1);
    wb_array **parts = dim < 0 ? NULL : wb_alloc((size_t)count * sizeof *parts);
    if (!parts) return NULL;
    bool made = true;
    for (int i = 0; made && i < count; i++)
        made = (parts[i] = wb_unsqueeze(arrays[i], dim)) != NULL;
    wb_array *joined = made ? wb_concat_make(dim, count, parts) : NULL;
    wb_release(parts);
    return joined;
}

/* ---- examples for the gradient checker ---- */

CHECK(reshape, SQUARE(wb_reshape(SQUARE(x), 3, -1)), 1, {{3, {2, 3, 2}}}, -2, 2)
CHECK(permute, SQUARE(wb_permute(SQUARE(x), 2, 0, 1)), 1, {{3, {2, 3, 2}}}, -2, 2)
CHECK(slice, SQUARE(wb_slice(SQUARE(x), 1, 4, -1, -2)), 1, {{2, {2, 5}}}, -2, 2)
CHECK(expand, SQUARE(wb_expand(SQUARE(x), 3, 2, 4)), 1, {{2, {3, 1}}}, -2, 2)
CHECK(slice_put, SQUARE(wb_slice_put(SQUARE(x), 2, (const int64_t[]){2, 7}, 1, 1, 2)), 1,
      {{2, {2, 3}}}, -2, 2)
CHECK(pad, SQUARE(wb_pad(SQUARE(x), 1, 1, 2, 0.5)), 1, {{2, {2, 3}}}, -2, 2)
CHECK(concat, SQUARE(wb_concat(1, SQUARE(x), y, x)), 2, {{2, {2, 3}}, {2, {2, 1}}}, -2, 2)
