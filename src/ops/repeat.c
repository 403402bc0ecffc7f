/* Roll, repeat, tile: slices, expansions and reshapes. */
#include "ops/build.h"

wb_array *wb_roll(wb_array *x, int64_t shift, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("roll", x, "x");
    dim = wb_check_dim_of("roll", dim, x);
    if (dim < 0) return NULL;
    const int64_t n = x->sizes[dim], rest = n ? shift % n : 0, by = rest < 0 ? rest + n : rest;
    if (by == 0) return x;
    return wb_concat(dim, wb_slice(x, dim, n - by, n, 1), wb_slice(x, dim, 0, n - by, 1));
}

/* The sizes with dimension dim this many times as long; false: an error. */
static bool longer(const char *function, const wb_array *x, int dim, int64_t times,
                   int64_t *sizes) {
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
    if (times < 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: times must be at least 0, got %lld", function,
                      (long long)times);
        return false;
    }
    if (__builtin_mul_overflow(sizes[dim], times, &sizes[dim])) sizes[dim] = INT64_MAX;
    return wb_check_sizes(function, x->ndim, sizes);
}

/* x (..., dim, ...) as (run, rest), each run this many times, in other sizes. */
static wb_array *each_run(wb_array *x, int64_t run, int64_t times, const int64_t *sizes) {
    const int64_t rest = run ? wb_count(x) / run : 0;
    if (wb_count_sizes(x->ndim, sizes) == 0)
        return wb_full_make((wb_dtype)x->dtype, 0, x->ndim, sizes);
    wb_array *runs = wb_expand(wb_reshape(x, run, 1, rest), run, times, rest);
    return runs ? wb_reshape_make(runs, x->ndim, sizes) : NULL;
}

wb_array *wb_repeat(wb_array *x, int64_t times, int dim) {
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("repeat", x, "x");
    dim = wb_check_dim_of("repeat", dim, x);
    if (dim < 0 || !longer("repeat", x, dim, times, sizes)) return NULL;
    return each_run(x, wb_count_sizes(dim, x->sizes), times, sizes);
}

wb_array *wb_tile_make(wb_array *x, int ndim, const int64_t *times) {
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("tile", x, "x");
    if (!wb_check_list("tile", ndim, times)) return NULL;
    if (ndim < 0 || ndim > WB_MAX_DIMS)
        return wb_fail_null(WB_ERROR_ARGUMENT, "tile: at most %d dimensions are possible, got %d",
                            WB_MAX_DIMS, ndim);
    for (int d = 0; d < ndim; d++) sizes[d] = d < x->ndim ? x->sizes[d] : 1;
    if (ndim > x->ndim) x = wb_reshape_make(x, ndim, sizes);
    for (int d = 0; x && d < ndim; d++) {
        if (!longer("tile", x, d, times[d], sizes)) return NULL;
        if (times[d] != 1) x = each_run(x, wb_count_sizes(d + 1, x->sizes), times[d], sizes);
    }
    return x;
}
