/* Joining: pad, concat, stack; slices put side by side. */
#include <stdlib.h>
#include <string.h>

#include "array/use.h"
#include "base/memory.h"
#include "base/table.h"
#include "ops/check.h"

/* ---- pad, concat, stack ---- */

wb_array *wb_pad(wb_array *x, int dim, int64_t lo, int64_t hi, double value) {
    if (!wb_is_usable(x)) return wb_refuse("pad", x, "x");
    dim = wb_check_dim_of("pad", dim, x);
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
    if (!wb_check_sizes("pad", x->ndim, sizes) ||
        !wb_check_number("pad", (wb_dtype)x->dtype, value))
        return NULL;
    return wb_node_with(WB_OP_pad, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x,
                        WB_WORDS(pad, dim, lo, value));
}

void wb_vjp_pad(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const int dim = (int)o->attributes.pad.dim;
    out[0] = g ? wb_slice_node(g, dim, o->attributes.pad.start, o->inputs[0]->sizes[dim], 1) : NULL;
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
                          "concat: all sizes but that of dimension %d must be equal, but array 0 "
                          "is %s and array %d %s",
                          dim, wb_text_of(first), i, wb_text_of(x));
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
    return wb_may_use_arrays(function, count, arrays);
}

wb_array *wb_concat_make(int dim, int count, wb_array *const *arrays) {
    if (!check_list("concat", count, arrays)) return NULL;
    dim = wb_check_dim_of("concat", dim, arrays[0]);
    int64_t sizes[WB_MAX_DIMS];
    wb_dtype dtype;
    if (dim < 0 || !join_sizes(dim, count, arrays, sizes, &dtype)) return NULL;
    if (count == 1) return arrays[0];
    return wb_node_with(WB_OP_concat, dtype, arrays[0]->ndim, sizes, count, arrays,
                        WB_WORDS(along, dim));
}

/* ---- gradients of slices side by side ---- */

bool wb_is_slice_put(const wb_array *x) {
    return x->op == WB_OP_slice_put && x->attributes.slice.step == 1 && !wb_is_evaluated(x);
}

static int64_t start_of(const wb_array *put) { return put->attributes.slice.start; }
static int64_t end_of(const wb_array *put) {
    return start_of(put) + put->inputs[0]->sizes[put->attributes.slice.dim];
}

static int by_start(const void *a, const void *b) {
    const wb_array *x = *(wb_array *const *)a, *y = *(wb_array *const *)b;
    if (x->attributes.slice.dim != y->attributes.slice.dim)
        return x->attributes.slice.dim < y->attributes.slice.dim ? -1 : 1;
    if (start_of(x) != start_of(y)) return start_of(x) < start_of(y) ? -1 : 1;
    return (end_of(x) > end_of(y)) - (end_of(x) < end_of(y));
}

/* Adjacent slices, as one. */
static wb_array *join_run(int count, wb_array *const *run, wb_array **parts) {
    const wb_array *first = run[0];
    const int dim = (int)first->attributes.slice.dim;
    if (count == 1) return run[0];
    for (int i = 0; i < count; i++) parts[i] = run[i]->inputs[0];
    wb_array *joined = wb_concat_make(dim, count, parts);
    if (!joined || joined->sizes[dim] == first->sizes[dim]) return joined;
    return wb_slice_put(joined, first->ndim, first->sizes, dim, start_of(first), 1);
}

/* Which run each slice belongs to: one whose last slice ends where it starts, or a new one. */
static int number_runs(int count, wb_array *const *puts, int *run_of) {
    wb_table ends = {.count = 0}; /* the slices so far at whose end no other slice begins */
    int runs = 0;
    for (int i = 0; i < count; i++) {
        const uint64_t dim = wb_table_mix(0, (uint64_t)puts[i]->attributes.slice.dim);
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
    int *run_of = wb_alloc(sizeof *run_of * 2 * (size_t)count); /* another begins at its end */
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
    const int dim = (int)o->attributes.along.dim;
    int64_t start = 0;
    for (int i = 0; i < o->ninputs; i++) {
        const int64_t count = o->inputs[i]->sizes[dim];
        if (want[i] && g) out[i] = wb_slice_node(g, dim, start, count, 1);
        start += count;
    }
}

wb_array *wb_stack_make(int dim, int count, wb_array *const *arrays) {
    if (!check_list("stack", count, arrays)) return NULL;
    dim = wb_check_dim("stack", dim, arrays[0]->ndim + 1);
    wb_array **parts = dim < 0 ? NULL : wb_alloc_list(count, sizeof *parts);
    if (!parts) return NULL;
    bool made = true;
    for (int i = 0; made && i < count; i++)
        made = (parts[i] = wb_unsqueeze(arrays[i], dim)) != NULL;
    wb_array *joined = made ? wb_concat_make(dim, count, parts) : NULL;
    wb_release(parts);
    return joined;
}

wb_status wb_unstack(wb_array *x, int dim, int count, wb_array **parts) {
    if (!wb_check_list("unstack", count, parts)) return wb_error_status();
    for (int i = 0; i < count; i++) parts[i] = NULL;
    if (!wb_is_usable(x)) return wb_refuse("unstack", x, "x"), wb_error_status();
    dim = wb_check_dim_of("unstack", dim, x);
    if (dim < 0) return wb_error_status();
    if (count != x->sizes[dim])
        return wb_fail(WB_ERROR_SHAPE, "unstack: count must be %lld, dimension %d of %s, got %d",
                       (long long)x->sizes[dim], dim, wb_text_of(x), count);
    bool made = true;
    for (int i = 0; made && i < count; i++)
        made = (parts[i] = wb_squeeze(wb_slice_node(x, dim, i, 1, 1), dim)) != NULL;
    for (int i = 0; !made && i < count; i++) parts[i] = NULL;
    return made ? WB_OK : wb_error_status();
}

/* ---- examples for the gradient checker ---- */

CHECK(pad, SQUARE(wb_pad(SQUARE(x), 1, 1, 2, 0.5)), 1, {{2, {2, 3}}}, -2, 2)
CHECK(concat, SQUARE(wb_concat(1, SQUARE(x), y, x)), 2, {{2, {2, 3}}, {2, {2, 1}}}, -2, 2)
