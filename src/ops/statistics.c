/* Standard deviations, norms, dot products, any and all: made of reductions. */
#include <math.h>

#include "base/memory.h"
#include "ops/build.h"
#include "ops/custom.h"

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

/* The type of what is computed of x in wb_wide(x). */
static wb_dtype result_of(const wb_array *x) {
    return wb_dtype_is_float((wb_dtype)x->dtype) ? (wb_dtype)x->dtype : WB_F32;
}

static wb_array *deviation(wb_array *x, bool corrected, const dims *d) {
    if (!check("std", x, d)) return NULL;
    wb_array *w = wb_wide(x);
    wb_array *v = d->total ? wb_var(w, corrected) : wb_var_make(w, corrected, d->ndim, d->list);
    return v ? wb_cast(power(v, 0.5), result_of(x)) : NULL;
}

wb_array *wb_std(wb_array *x, bool corrected) { return deviation(x, corrected, &all_of_them); }

wb_array *wb_std_make(wb_array *x, bool corrected, int ndim, const int64_t *list) {
    return deviation(x, corrected, &(dims){.ndim = ndim, .list = list});
}

/* ---- norms ---- */

static wb_array *largest(wb_array *x, const dims *d) {
    return d->total ? wb_maximum(x) : wb_maximum_make(x, d->ndim, d->list);
}

static wb_array *smallest(wb_array *x, const dims *d) {
    return d->total ? wb_minimum(x) : wb_minimum_make(x, d->ndim, d->list);
}

bool wb_fits_f64(const wb_array *x) {
    return x->dtype != WB_F64 && wb_device_has_f64(wb_node_device(x));
}

/* g x / n; 0 if n is 0. */
static void pull_length(void *context, wb_array *n, wb_array *g, const bool *want, wb_array **out) {
    (void)context, (void)want;
    out[1] = MUL(g, DIV(n->inputs[1], SELECT(EQ(n, NUM(0)), NUM(1), n)));
}

/* sqrt(sum(x^2)) of f32: in f64 no square overflows or loses digits, and one pass will do. */
static wb_array *length(wb_array *x, const dims *d) {
    wb_array *squares = SQUARE(wb_cast(x, WB_F64));
    wb_array *n = squares ? wb_cast(SQRT(sum(squares, d)), WB_F32) : NULL;
    return n ? wb_custom_node(n, 1, &x, pull_length, NULL, NULL) : NULL;
}

/* ---- of another order ---- */

/* A divisor of the absolute values, and the ratios to it, so that powers of the ratios neither
 * overflow nor vanish: the largest value (p > 0) or the smallest one (p < 0), so that the largest
 * power is 1. The divisor is 1 if the powers are within range anyway, and for 0, infinity and
 * NaN. */
static wb_array *unit_of(wb_array *size, double p, const dims *d) {
    const double most = exp2((size->dtype == WB_F64 ? 511 : 63) / fabs(p));
    wb_array *m = wb_stop_gradient((p > 0 ? largest : smallest)(size, d));
    wb_array *is_far = OR(GT(m, NUM(most)), LT(m, NUM(1 / most)));
    wb_array *is_number = AND(GT(m, NUM(0)), LT(m, NUM((double)INFINITY)));
    return SELECT(AND(is_far, is_number), m, NUM(1));
}

static wb_array *raised(wb_array *x, double p) { return p == 2 ? SQUARE(x) : power(x, p); }

/* The order of a norm and its dimensions, in memory of their own. */
typedef struct order {
    double p;
    dims dims;
    int64_t list[WB_MAX_DIMS];
} order;

static order *order_of(double p, const dims *d) {
    order *o = wb_alloc(sizeof *o);
    if (!o) return NULL;
    o->p = p, o->dims = *d;
    for (int i = 0; i < d->ndim; i++) o->list[i] = d->list[i];
    o->dims.list = o->list;
    return o;
}

/* g sign(x) (|x| / n)^(p - 1), made of the ratios because n / |x| is too coarse for a large p; 0
 * where x is. */
static void pull_norm(void *context, wb_array *n, wb_array *g, const bool *want, wb_array **out) {
    const order *o = context;
    (void)want;
    wb_array *x = n->inputs[1], *size = ABS(x);
    wb_array *ratio = DIV(size, unit_of(size, o->p, &o->dims));
    wb_array *total = power(sum(raised(ratio, o->p), &o->dims), 1 / o->p - 1);
    wb_array *slope = o->p == 2 ? ratio : power(ratio, o->p - 1);
    out[1] = SELECT(EQ(x, NUM(0)), NUM(0), MUL(g, MUL(SIGN(x), MUL(slope, total))));
}

static wb_array *finite_norm(wb_array *x, wb_array *size, double p, const dims *d) {
    if (p == 2 && wb_fits_f64(x)) return length(x, d);
    wb_array *unit = unit_of(size, p, d);
    wb_array *total = sum(raised(DIV(size, unit), p), d);
    wb_array *n = MUL(unit, power(total, 1 / p));
    order *context = n ? order_of(p, d) : NULL;
    return context ? wb_custom_node(n, 1, &x, pull_norm, context, wb_release) : NULL;
}

/* From this |p| on the norm equals the largest absolute value, or the smallest one, to the last
 * digit, since n^(1 / p) rounds to 1 for any number n of elements. */
static bool is_like_infinity(double p, const wb_array *x) {
    return fabs(p) >= (x->dtype == WB_F64 ? 0x1p60 : 0x1p30);
}

static wb_array *norm_of(wb_array *x, double p, const dims *d) {
    wb_array *size = ABS(x);
    if (!size || wb_count(x) == 0 || p == 1) return size ? sum(size, d) : NULL;
    if (p == 0) return wb_cast(sum(NE(x, NUM(0)), d), (wb_dtype)x->dtype);
    if (!is_like_infinity(p, x)) return finite_norm(x, size, p, d);
    return (p > 0 ? largest : smallest)(size, d);
}

static wb_array *norm(wb_array *x, double p, const dims *d) {
    if (!check("norm", x, d)) return NULL;
    if (isnan(p)) return wb_fail_null(WB_ERROR_ARGUMENT, "norm: p must be a number, got nan");
    wb_array *w = wb_wide(x);
    return w ? wb_cast(norm_of(w, p, d), result_of(x)) : NULL;
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
