/* Views: reshape, permute, slice, expand. */
#include "array/view.h"
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
    dim = wb_check_dim_of("squeeze", dim, x);
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
    return wb_view_share(wb_node_with(WB_OP_permute, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x,
                                      WB_WORDS(permute, packed)));
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
    wb_permutation_unpack(o->attributes.permute.order, o->ndim, dims);
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

wb_array *wb_slice_node(wb_array *x, int dim, int64_t start, int64_t count, int64_t step) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == dim ? count : x->sizes[d];
    return wb_view_share(wb_node_with(WB_OP_slice, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x,
                                      WB_WORDS(slice, dim, start, step)));
}

/* The first element of a slice and how many there are. start and stop are from the beginning here;
 * given_start and given_stop are the caller's, for the message. */
typedef struct slice_range {
    int64_t start, count;
} slice_range;

static bool slice_range_of(const char *function, const wb_array *x, int dim, int64_t given_start,
                           int64_t given_stop, int64_t step, slice_range *range) {
    const int64_t size = x->sizes[dim], start = given_start + (given_start < 0 ? size : 0);
    if (step == 0)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: the step must not be 0", function) == WB_OK;
    if (given_stop == WB_END) given_stop = step > 0 ? size : -1;
    /* backwards, -1 is what comes before the first */
    const int64_t stop = given_stop + (given_stop < 0 && step > 0 ? size : 0);
    const bool fits = step > 0 ? start >= 0 && start <= stop && stop <= size
                               : start < size && stop >= -1 && start >= stop;
    if (!fits) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: start %lld, stop %lld, step %lld do not fit dimension %d of %s",
                      function, (long long)given_start, (long long)given_stop, (long long)step, dim,
                      wb_text_of(x));
        return false;
    }
    const int64_t span = step > 0 ? stop - start : start - stop;
    const uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    range->start = start;
    range->count = span > 0 ? (int64_t)((uint64_t)(span - 1) / stride) + 1 : 0;
    return true;
}

wb_array *wb_slice(wb_array *x, int dim, int64_t start, int64_t stop, int64_t step) {
    if (!wb_is_usable(x)) return wb_refuse("slice", x, "x");
    dim = wb_check_dim_of("slice", dim, x);
    if (dim < 0) return NULL;
    slice_range r;
    if (!slice_range_of("slice", x, dim, start, stop, step, &r)) return NULL;
    return wb_slice_node(x, dim, r.start, r.count, r.count > 1 ? step : 1);
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

wb_array *(wb_slice_set)(wb_array *x, wb_array *y, int dim, int64_t start, int64_t stop,
                         int64_t step) {
    if (!wb_is_usable(x)) return wb_refuse("slice_set", x, "x");
    if (!wb_is_usable(y)) return wb_refuse("slice_set", y, "y");
    dim = wb_check_dim_of("slice_set", dim, x);
    slice_range r;
    if (dim < 0 || !slice_range_of("slice_set", x, dim, start, stop, step, &r)) return NULL;
    int64_t sizes[WB_MAX_DIMS], both[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == dim ? r.count : x->sizes[d];
    const int ndim = wb_broadcast(y->ndim, y->sizes, x->ndim, sizes, both);
    bool fits = ndim == x->ndim;
    for (int d = 0; fits && d < ndim; d++) fits = both[d] == sizes[d];
    if (!fits)
        return wb_fail_null(WB_ERROR_SHAPE, "slice_set: y must be %s or broadcast to it, got %s",
                            wb_sizes_text(x->ndim, sizes), wb_text_of(y));
    if (r.count == 0) return x;
    step = r.count > 1 ? step : 1;
    y = wb_expand_make(wb_stored_as("slice_set", y, (wb_dtype)x->dtype), x->ndim, sizes);
    return SELECT(slice_mask(x, dim, r.start, r.count, step),
                  wb_slice_put(y, x->ndim, x->sizes, dim, r.start, step), x);
}

wb_array *wb_flip(wb_array *x, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("flip", x, "x");
    dim = wb_check_dim_of("flip", dim, x);
    const int64_t size = dim < 0 ? 0 : x->sizes[dim];
    return dim < 0 ? NULL : wb_slice_node(x, dim, size ? size - 1 : 0, size, -1);
}

wb_array *wb_slice_put(wb_array *x, int ndim, const int64_t *sizes, int dim, int64_t start,
                       int64_t step) {
    if (!x) return NULL;
    return wb_node_with(WB_OP_slice_put, (wb_dtype)x->dtype, ndim, sizes, 1, &x,
                        WB_WORDS(slice, dim, start, step));
}

void wb_vjp_slice(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const wb_array *x = o->inputs[0];
    out[0] = wb_slice_put(g, x->ndim, x->sizes, (int)o->attributes.slice.dim,
                          o->attributes.slice.start, o->attributes.slice.step);
}

void wb_vjp_slice_put(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const int dim = (int)o->attributes.slice.dim;
    const int64_t start = o->attributes.slice.start, step = o->attributes.slice.step;
    out[0] = g ? wb_slice_node(g, dim, start, o->inputs[0]->sizes[dim], step) : NULL;
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

/* ---- examples for the gradient checker ---- */

CHECK(reshape, SQUARE(wb_reshape(SQUARE(x), 3, -1)), 1, {{3, {2, 3, 2}}}, -2, 2)
CHECK(permute, SQUARE(wb_permute(SQUARE(x), 2, 0, 1)), 1, {{3, {2, 3, 2}}}, -2, 2)
CHECK(slice, SQUARE(wb_slice(SQUARE(x), 1, 4, -1, -2)), 1, {{2, {2, 5}}}, -2, 2)
CHECK(expand, SQUARE(wb_expand(SQUARE(x), 3, 2, 4)), 1, {{2, {3, 1}}}, -2, 2)
CHECK(slice_put, SQUARE(wb_slice_put(SQUARE(x), 2, (const int64_t[]){2, 7}, 1, 1, 2)), 1,
      {{2, {2, 3}}}, -2, 2)
