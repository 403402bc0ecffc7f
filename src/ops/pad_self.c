/* Padding with elements of x itself, by a gather, so that the gradients of elements that are used
 * twice add up. */
#include "array/use.h"
#include "ops/build.h"
#include "ops/check.h"

/* Positions in 0 ... n - 1 for positions left and right of them, too. */
typedef wb_array *source_fn(wb_array *i, int64_t n);

static wb_array *number(int64_t n) { return NUM((double)n); }

static wb_array *edge(wb_array *i, int64_t n) { return wb_clamp(i, 0, (double)(n - 1)); }

static wb_array *wrap(wb_array *i, int64_t n) { return MOD(i, number(n)); }

/* The first position again and again, then backwards: periods of 2 n - 2. */
static wb_array *reflect(wb_array *i, int64_t n) {
    const int64_t period = n > 1 ? 2 * n - 2 : 1;
    i = MOD(i, number(period));
    return MIN(i, SUB(number(period), i));
}

static wb_array *symmetric(wb_array *i, int64_t n) {
    i = MOD(i, number(2 * n));
    return MIN(i, SUB(number(2 * n - 1), i));
}

static bool check(const char *function, const wb_array *x, int dim, int64_t lo, int64_t hi,
                  int64_t *whole) {
    wb_status status = WB_OK;
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
    if (lo < 0 || hi < 0)
        status = wb_fail(WB_ERROR_ARGUMENT,
                         "%s: paddings must not be negative, got %lld before and %lld after",
                         function, (long long)lo, (long long)hi);
    else if (sizes[dim] == 0 && (lo > 0 || hi > 0))
        status = wb_fail(WB_ERROR_SHAPE,
                         "%s: dimension %d of %s is empty, so that no element can fill %lld "
                         "places before and %lld after",
                         function, dim, wb_text_of(x), (long long)lo, (long long)hi);
    else if (__builtin_add_overflow(sizes[dim], lo, &sizes[dim]) ||
             __builtin_add_overflow(sizes[dim], hi, &sizes[dim]))
        sizes[dim] = INT64_MAX;
    *whole = sizes[dim];
    return status == WB_OK && wb_check_sizes(function, x->ndim, sizes);
}

static wb_array *padded(const char *function, wb_array *x, int dim, int64_t lo, int64_t hi,
                        source_fn *source) {
    int64_t whole;
    if (!wb_is_usable(x)) return wb_refuse(function, x, "x");
    dim = wb_check_dim_of(function, dim, x);
    if (dim < 0 || !check(function, x, dim, lo, hi, &whole)) return NULL;
    if (lo == 0 && hi == 0) return x;
    wb_array *place = SUB(wb_iota(WB_I64, 0, whole), number(lo));
    return wb_gather(x, wb_beside(x, source(place, x->sizes[dim])), dim);
}

wb_array *wb_pad_edge(wb_array *x, int dim, int64_t lo, int64_t hi) {
    return padded("pad_edge", x, dim, lo, hi, edge);
}
wb_array *wb_pad_reflect(wb_array *x, int dim, int64_t lo, int64_t hi) {
    return padded("pad_reflect", x, dim, lo, hi, reflect);
}
wb_array *wb_pad_symmetric(wb_array *x, int dim, int64_t lo, int64_t hi) {
    return padded("pad_symmetric", x, dim, lo, hi, symmetric);
}
wb_array *wb_pad_wrap(wb_array *x, int dim, int64_t lo, int64_t hi) {
    return padded("pad_wrap", x, dim, lo, hi, wrap);
}
