/* Sorting: positions are merged in runs that grow (merge_runs, a call for each round), and values
 * are taken at the positions. Attributes of a round: the dimension, and the sizes of runs before
 * and after the round. */
#include "ops/check.h"

enum { FIRST_RUNS = 32, RUNS = 8 /* that a round merges to one */ };

wb_array *wb_keys_of(wb_array *x) {
    const wb_dtype dtype = (wb_dtype)x->dtype;
    if (wb_is_half(dtype)) return wb_cast(x, WB_F32);
    return dtype == WB_U8 || dtype == WB_BOOL ? wb_cast(x, WB_I32) : x;
}

static wb_array *merge_runs(wb_array *keys, wb_array *places, int dim, int64_t run,
                            int64_t merged) {
    if (!keys || !places) return NULL;
    return wb_node_with(WB_OP_merge_runs, WB_I64, keys->ndim, keys->sizes, 2,
                        (wb_array *[]){keys, places}, WB_WORDS(runs, dim, run, merged));
}

static wb_array *ascending(wb_array *x, int dim) {
    wb_array *keys = x ? wb_keys_of(x) : NULL;
    wb_array *places = keys ? wb_iota_make(WB_I64, dim, x->ndim, x->sizes) : NULL;
    const int64_t n = keys ? keys->sizes[dim] : 0;
    for (int64_t run = 1, merged = FIRST_RUNS; run < n; run = merged, merged *= RUNS)
        places = merge_runs(keys, places, dim, run, merged < n ? merged : n);
    return places;
}

/* Read backwards, so that equals stay in order. */
static wb_array *descending(wb_array *x, int dim) {
    wb_array *places = ascending(wb_flip(x, dim), dim);
    const double last = (double)x->sizes[dim] - 1;
    return places ? SUB(NUM(last), wb_flip(places, dim)) : NULL;
}

wb_array *wb_argsort(wb_array *x, int dim, bool is_descending) {
    if (!wb_is_usable(x)) return wb_refuse("argsort", x, "x");
    dim = wb_check_dim_of("argsort", dim, x);
    if (dim < 0) return NULL;
    return is_descending ? descending(x, dim) : ascending(x, dim);
}

/* ---- values at positions ---- */

/* x (inner, size, outer) at positions (inner, count, outer), which are in range, as one list. */
static wb_array *take(wb_array *x, wb_array *index, int dim) {
    const int64_t inner = wb_count_sizes(dim, x->sizes), size = x->sizes[dim];
    const int64_t outer = wb_count_sizes(x->ndim - dim - 1, x->sizes + dim + 1);
    wb_array *lines = wb_reshape(index, inner, index->sizes[dim], outer);
    wb_array *place = ADD(wb_iota(WB_I64, 0, inner, 1, 1),
                          MUL(wb_iota(WB_I64, 2, 1, 1, outer), NUM((double)(inner * size))));
    place = ADD(MUL(lines, NUM((double)inner)), place);
    wb_array *at = wb_reshape(place, wb_count(index));
    wb_array *values = wb_gather(wb_reshape(x, wb_count(x)), at, 0);
    return values ? wb_reshape_make(values, index->ndim, index->sizes) : NULL;
}

static bool fits(const wb_array *x, const wb_array *index, int dim) {
    bool same = x->ndim == index->ndim;
    for (int d = 0; same && d < x->ndim; d++) same = d == dim || x->sizes[d] == index->sizes[d];
    return same;
}

wb_array *wb_take_along(wb_array *x, wb_array *index, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("take_along", x, "x");
    if (!wb_is_usable(index)) return wb_refuse("take_along", index, "index");
    dim = wb_check_dim_of("take_along", dim, x);
    if (dim < 0) return NULL;
    if (wb_dtype_is_float((wb_dtype)index->dtype) || index->dtype == WB_BOOL)
        return wb_fail_null(WB_ERROR_DTYPE,
                            "take_along: the index must have an integer type, got %s: "
                            "wb_cast(index, WB_I32)",
                            wb_dtype_name((wb_dtype)index->dtype));
    if (!fits(x, index, dim))
        return wb_fail_null(WB_ERROR_SHAPE,
                            "take_along: the index must have the sizes of x %s but for dimension "
                            "%d, got %s",
                            wb_text_of(x), dim, wb_text_of(index));
    if (!wb_check_positions("take_along: index", index, x->sizes[dim])) return NULL;
    if (!wb_is_readable(index)) index = wb_guarded_index("take_along", index, x->sizes[dim]);
    index = wb_cast(index, WB_I64);
    return index ? take(x, index, dim) : NULL;
}

wb_array *wb_sort(wb_array *x, int dim, bool is_descending) {
    if (!wb_is_usable(x)) return wb_refuse("sort", x, "x");
    dim = wb_check_dim_of("sort", dim, x);
    wb_array *places = dim < 0 ? NULL : wb_argsort(x, dim, is_descending);
    return places ? take(x, places, dim) : NULL;
}

wb_array *wb_top_k(wb_array *x, int64_t k, int dim, wb_array **positions) {
    if (positions) *positions = NULL;
    if (!wb_is_usable(x)) return wb_refuse("top_k", x, "x");
    dim = wb_check_dim_of("top_k", dim, x);
    if (dim < 0) return NULL;
    if (k < 0 || k > x->sizes[dim])
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "top_k: k must be between 0 and %lld, the size of dimension %d of %s, "
                            "got %lld",
                            (long long)x->sizes[dim], dim, wb_text_of(x), (long long)k);
    wb_array *first = wb_slice(descending(x, dim), dim, 0, k, 1);
    wb_array *values = first ? take(x, first, dim) : NULL;
    if (positions && values) *positions = first;
    return values;
}

/* Positions have no derivative; that of values at them is gather's. */
void wb_vjp_merge_runs(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)o, (void)g, (void)want, (void)out;
}

CHECK(merge_runs, SQUARE(wb_sort(SQUARE(x), 1, true)), 1, {{3, {2, 5, 2}}}, 0.2, 4)
