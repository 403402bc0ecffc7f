/* Random arrays made of uniform ones. */
#include <math.h>

#include "ops/build.h"

/* ---- truncated normal ---- */

/* The sum of c[i] x^(count - 1 - i). */
static wb_array *polynomial(wb_array *x, int count, const double *c) {
    wb_array *p = ADD(MUL(x, NUM(c[0])), NUM(c[1]));
    for (int i = 2; i < count; i++) p = ADD(MUL(p, x), NUM(c[i]));
    return p;
}

/* The inverse of erf, to 1e-6 of its value: x times a polynomial of w = -log(1 - x^2), or of
 * sqrt(w) where that is large (the form is that of Giles 2010; Chebyshev fits of our own). */
static wb_array *inverse_erf(wb_array *x) {
    static const double low[] = {-8.93192597024e-9, 2.33359671957e-8,  4.68131348055e-7,
                                 -3.46398526763e-6, -4.97241968945e-6, 0.00021834938624,
                                 -0.00125272639177, -0.0041773928752,  0.246640279055,
                                 1.50140936045};
    static const double high[] = {-3.6612428323e-7,  -2.249930898e-6,    2.40674133415e-5,
                                  -6.13143474011e-5, 6.26104555811e-5,   -7.52751377589e-5,
                                  0.000300794319943, -0.000892814875097, 0.0012705643493,
                                  1.00949680484,     3.83978302137};
    enum { LOW = sizeof low / sizeof *low, HIGH = sizeof high / sizeof *high };
    wb_array *w = NEG(LOG(MUL(SUB(NUM(1), x), ADD(NUM(1), x))));
    wb_array *factor = SELECT(LT(w, NUM(5)), polynomial(SUB(w, NUM(2.5)), LOW, low),
                              polynomial(SUB(SQRT(w), NUM(4)), HIGH, high));
    return MUL(x, factor);
}

/* 2 P - 1 with P the share of normal numbers below x. */
static double share_below(double x) { return erf(x * 0.70710678118654752); }

static bool check_truncated(double mean, double std, double low, double high) {
    if (isfinite(mean) && isfinite(std) && std >= 0 && low <= high) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "truncated_normal: mean and std must be finite, std not negative, low not above "
                  "high, got mean %g, std %g, low %g, high %g",
                  mean, std, low, high);
    return false;
}

wb_array *wb_truncated_normal_make(wb_dtype dtype, double mean, double std, double low, double high,
                                   int ndim, const int64_t *sizes) {
    if (!check_truncated(mean, std, low, high)) return NULL;
    wb_array *u = wb_uniform_make(wb_is_half(dtype) ? WB_F32 : dtype, ndim, sizes);
    if (!u || std == 0)
        return u ? wb_full_make(dtype, fmin(fmax(mean, low), high), ndim, sizes) : NULL;
    const double first = share_below((low - mean) / std), last = share_below((high - mean) / std);
    const double edge = dtype == WB_F64 ? 1 - 0x1p-53 : 1 - 0x1p-24;
    wb_array *share = wb_clamp(ADD(NUM(first), MUL(NUM(last - first), u)), -edge, edge);
    wb_array *x = ADD(NUM(mean), MUL(NUM(std * 1.4142135623730951), inverse_erf(share)));
    return x ? wb_cast(wb_clamp(x, low, high), dtype) : NULL;
}

/* ---- categorical ---- */

/* The index; where a logit is NaN it is out of range, which each device finds. */
static wb_array *unless_nan(wb_array *index, wb_array *logits, int dim) {
    const int64_t count = logits->sizes[dim];
    wb_array *is_bad = wb_maximum_dims(wb_cast(NE(logits, logits), WB_I32), dim);
    wb_array *looked_at = SELECT(EQ(is_bad, NUM(0)), index, NUM((double)count));
    return ADD(index, wb_gather(wb_zeros(WB_I64, count), wb_cast(looked_at, WB_I64), 0));
}

/* The largest of logits plus Gumbel noise is one of these (Maddison, Tarlow and Minka 2014). */
wb_array *wb_categorical(wb_array *logits, int dim) {
    if (!wb_is_usable(logits)) return wb_refuse("categorical", logits, "logits");
    dim = wb_check_dim("categorical", dim, logits->ndim);
    if (dim < 0) return NULL;
    if (logits->sizes[dim] == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "categorical: there must be at least one logit, got %s",
                            wb_text_of(logits));
    const wb_dtype dtype = logits->dtype == WB_F64 ? WB_F64 : WB_F32;
    wb_array *u = wb_uniform_make(dtype, logits->ndim, logits->sizes);
    wb_array *noise = NEG(LOG(NEG(LOG(u))));
    wb_array *sum = ADD(wb_cast(logits, dtype), noise);
    return sum ? unless_nan(wb_argmax(sum, dim), logits, dim) : NULL;
}

/* ---- permutation ---- */

/* Twice: equal random numbers, which stay in order, are in another order in the other list. */
wb_array *wb_permutation(int64_t n) {
    if (!wb_check_sizes("permutation", 1, &n)) return NULL;
    wb_array *one = wb_argsort(wb_uniform(WB_F32, n), 0, false);
    wb_array *other = one ? wb_argsort(wb_uniform(WB_F32, n), 0, false) : NULL;
    return other ? wb_gather(one, other, 0) : NULL;
}
