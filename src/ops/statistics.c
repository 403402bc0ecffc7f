/* Deviations, norms, dot products, any and all: made of reductions. */
#include <math.h>

#include "ops/build.h"

/* What is reduced: all dimensions to none, or the listed ones to size 1. */
typedef struct dims {
    bool total;
    int ndim;
    const int64_t *list;
} dims;

static const dims all_of_them = {.total = true};

static bool check(const char *function, wb_array *x, const dims *d) {
    int64_t mask;
    if (wb_is_usable(x)) return d->total || wb_dims_mask(function, x, d->ndim, d->list, &mask);
    (void)wb_refuse(function, x, "x");
    return false;
}

static wb_array *sum(wb_array *x, const dims *d) {
    return d->total ? wb_sum(x) : wb_sum_make(x, d->ndim, d->list);
}

/* ---- deviation ---- */

/* x^p, with a derivative of 0 where x is 0. */
static wb_array *power(wb_array *x, double p) {
    wb_array *is_zero = EQ(x, NUM(0)), *y = SELECT(is_zero, NUM(1), x);
    return SELECT(is_zero, NUM(p > 0 ? 0 : (double)INFINITY), p == 0.5 ? SQRT(y) : POW(y, NUM(p)));
}

wb_array *wb_std(wb_array *x, bool corrected) {
    return check("std", x, &all_of_them) ? power(wb_var(x, corrected), 0.5) : NULL;
}

wb_array *wb_std_make(wb_array *x, bool corrected, int ndim, const int64_t *list) {
    const dims d = {.ndim = ndim, .list = list};
    return check("std", x, &d) ? power(wb_var_make(x, corrected, ndim, list), 0.5) : NULL;
}

/* ---- norms ---- */

static wb_array *norm_of(wb_array *x, double p, const dims *d) {
    wb_array *size = ABS(x);
    if (wb_count(x) == 0 || p == 1) return sum(size, d);
    if (p == 2) return power(sum(SQUARE(x), d), 0.5);
    if (p == 0) return wb_cast(sum(NE(x, NUM(0)), d), (wb_dtype)x->dtype);
    if (!isinf(p)) return power(sum(power(size, p), d), 1 / p);
    if (p > 0) return d->total ? wb_maximum(size) : wb_maximum_make(size, d->ndim, d->list);
    return d->total ? wb_minimum(size) : wb_minimum_make(size, d->ndim, d->list);
}

static wb_array *norm(wb_array *x, double p, const dims *d) {
    if (!check("norm", x, d)) return NULL;
    if (isnan(p)) return wb_fail_null(WB_ERROR_ARGUMENT, "norm: p must be a number, got nan");
    const wb_dtype dtype = wb_dtype_is_float((wb_dtype)x->dtype) ? (wb_dtype)x->dtype : WB_F32;
    x = wb_cast(x, wb_is_half(dtype) ? WB_F32 : dtype);
    return x ? wb_cast(norm_of(x, p, d), dtype) : NULL;
}

wb_array *wb_norm(wb_array *x, double p) { return norm(x, p, &all_of_them); }

wb_array *wb_norm_make(wb_array *x, double p, int ndim, const int64_t *list) {
    return norm(x, p, &(dims){.ndim = ndim, .list = list});
}

wb_array *wb_dot(wb_array *x, wb_array *y) {
    if (!wb_is_usable(x)) return wb_refuse("dot", x, "x");
    if (!wb_is_usable(y)) return wb_refuse("dot", y, "y");
    if (!wb_same_sizes(x, y))
        return wb_fail_null(WB_ERROR_SHAPE, "dot: x is %s, so y must be too, got %s", wb_text_of(x),
                            wb_text_of(y));
    return wb_sum(MUL(wb_widened(x), wb_widened(y)));
}

/* ---- any, all ---- */

static wb_array *any(wb_array *x, const dims *d) {
    if (!check("any", x, d)) return NULL;
    return NE(sum(x->dtype == WB_BOOL ? x : NE(x, NUM(0)), d), NUM(0));
}

static wb_array *all(wb_array *x, const dims *d) {
    if (!check("all", x, d)) return NULL;
    return EQ(sum(x->dtype == WB_BOOL ? wb_not(x) : EQ(x, NUM(0)), d), NUM(0));
}

wb_array *wb_any(wb_array *x) { return any(x, &all_of_them); }
wb_array *wb_all(wb_array *x) { return all(x, &all_of_them); }

wb_array *wb_any_make(wb_array *x, int ndim, const int64_t *list) {
    return any(x, &(dims){.ndim = ndim, .list = list});
}

wb_array *wb_all_make(wb_array *x, int ndim, const int64_t *list) {
    return all(x, &(dims){.ndim = ndim, .list = list});
}
