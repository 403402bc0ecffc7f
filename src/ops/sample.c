/* Random arrays made from uniform ones. */
#include <math.h>

#include "ops/build.h"

/* ---- more bits than those of one uniform number ---- */

/* Uniform in (0, 1) and fine near 0: those of f32 have steps of 2^-48 there, not of 2^-24. */
static wb_array *fine_uniform(wb_dtype dtype, int ndim, const int64_t *sizes) {
    wb_array *u = wb_uniform_make(dtype, ndim, sizes);
    if (dtype == WB_F64) return MAX(u, NUM(0x1p-54));
    wb_array *rest = wb_uniform_make(dtype, ndim, sizes);
    return wb_clamp(ADD(u, MUL(rest, NUM(0x1p-24))), 0x1p-49, 1 - 0x1p-24);
}

/* Uniform numbers have steps of 2^-24. So an event that is rarer than 2^-12 is drawn as two
 * independent ones: one of probability 2^-12, and the rest. */
static wb_array *chance(double p, int ndim, const int64_t *sizes) {
    wb_array *u = wb_uniform_make(WB_F32, ndim, sizes);
    if (p == 0 || p >= 0x1p-12) return LT(u, NUM(p));
    return AND(LT(u, NUM(0x1p-12)), chance(p * 0x1p12, ndim, sizes));
}

wb_array *wb_bernoulli_make(double p, int ndim, const int64_t *sizes) {
    if (!(p >= 0 && p <= 1))
        return wb_fail_null(WB_ERROR_ARGUMENT, "bernoulli: p must be between 0 and 1, got %g", p);
    const bool is_almost_sure = p < 1 && 1 - p < 0x1p-12;
    return is_almost_sure ? wb_not(chance(1 - p, ndim, sizes)) : chance(p, ndim, sizes);
}

/* ---- truncated normal ---- */

/* The sum of c[i] x^(count - 1 - i). */
static wb_array *polynomial(wb_array *x, int count, const double *c) {
    wb_array *p = ADD(MUL(x, NUM(c[0])), NUM(c[1]));
    for (int i = 2; i < count; i++) p = ADD(MUL(p, x), NUM(c[i]));
    return p;
}

/* The inverse of erf at y >= 0, to 1e-6 of its value, for w = -log(1 - y^2) up to 36: y times a
 * polynomial of w, or of sqrt(w) where that is large (the form is that of Giles 2010; Chebyshev
 * fits of our own). */
static wb_array *inverse_erf(wb_array *y, wb_array *w) {
    static const double low[] = {-8.93192597024e-9, 2.33359671957e-8,  4.68131348055e-7,
                                 -3.46398526763e-6, -4.97241968945e-6, 0.00021834938624,
                                 -0.00125272639177, -0.0041773928752,  0.246640279055,
                                 1.50140936045};
    static const double high[] = {-3.6612428323e-7,  -2.249930898e-6,    2.40674133415e-5,
                                  -6.13143474011e-5, 6.26104555811e-5,   -7.52751377589e-5,
                                  0.000300794319943, -0.000892814875097, 0.0012705643493,
                                  1.00949680484,     3.83978302137};
    enum { LOW = sizeof low / sizeof *low, HIGH = sizeof high / sizeof *high };
    wb_array *factor = SELECT(LT(w, NUM(5)), polynomial(SUB(w, NUM(2.5)), LOW, low),
                              polynomial(SUB(SQRT(w), NUM(4)), HIGH, high));
    return MUL(y, factor);
}

/* The same for larger w, to 1e-6: z^2 is w - log(w) / 2 plus a function of 1 / w. */
static wb_array *inverse_erf_far(wb_array *w) {
    static const double rest[] = {-19063.7719, 1518.88698, -49.1573585, 0.94082699, 0.120971305};
    enum { REST = sizeof rest / sizeof *rest };
    wb_array *about = SUB(w, MUL(LOG(w), NUM(0.5)));
    return SQRT(ADD(about, polynomial(wb_recip(w), REST, rest)));
}

static const double far_from = 36;

/* The inverse of erfc for values from 0 to 1, given the logarithm of the value: far out erfc
 * underflows. */
static wb_array *inverse_erfc(wb_array *log_share, bool goes_far) {
    wb_array *y = NEG(EXPM1(log_share));
    wb_array *w = NEG(ADD(log_share, wb_log1p(y)));
    wb_array *z = inverse_erf(y, w);
    return goes_far ? SELECT(LT(w, NUM(far_from)), z, inverse_erf_far(w)) : z;
}

/* log erfc(z), z >= 0; the continued fraction is Laplace's (DLMF 7.9.1). */
static double log_erfc(double z) {
    if (z < 5) return log(erfc(z));
    double f = 0;
    for (int k = 100; k > 0; k--) f = k / 2.0 / (z + f);
    return -z * z - log((z + f) * 1.7724538509055160);
}

/* A side of the mean: how far |x - mean| goes, in sqrt(2) deviations. erfc of that is uniform
 * between erfc(near) and erfc(near) ratio. */
typedef struct side {
    double log_near, ratio;
} side;

/* So far out that all samples equal the nearer bound. */
static const double farthest = 1e6;

static side side_of(double near, double far) {
    const double log_near = log_erfc(fmin(near, farthest));
    return (side){log_near, exp(fmin(log_erfc(far) - log_near, 0))};
}

static wb_array *log_share(const side *s, wb_array *u) {
    return ADD(LOG(ADD(MUL(u, NUM(1 - s->ratio)), NUM(s->ratio))), NUM(s->log_near));
}

static bool goes_far(const side *s) {
    return -(s->log_near + log(fmax(s->ratio, 0x1p-54))) > far_from;
}

/* (x - mean) / (sqrt(2) std), between low < 0 and high > 0: the side by its share, then the
 * distance. */
static wb_array *on_both_sides(wb_array *u, double low, double high) {
    const side below = side_of(0, -low), above = side_of(0, high);
    wb_array *is_above = wb_bernoulli_make(erf(high) / (erf(high) - erf(low)), u->ndim, u->sizes);
    wb_array *share = log_share(&above, u);
    if (high != -low) share = SELECT(is_above, share, log_share(&below, u));
    wb_array *z = inverse_erfc(share, goes_far(&below) || goes_far(&above));
    return SELECT(is_above, z, NEG(z));
}

static wb_array *on_one_side(wb_array *u, double near, double far) {
    const side s = side_of(near, far);
    return inverse_erfc(log_share(&s, u), goes_far(&s));
}

static wb_array *standard_between(wb_array *u, double low, double high) {
    if (low >= 0) return on_one_side(u, low, high);
    if (high <= 0) return NEG(on_one_side(u, -high, -low));
    return on_both_sides(u, low, high);
}

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
    const double unit = std * 1.4142135623730951;
    wb_array *u = fine_uniform(wb_is_half(dtype) ? WB_F32 : dtype, ndim, sizes);
    if (!u || std == 0)
        return u ? wb_full_make(dtype, fmin(fmax(mean, low), high), ndim, sizes) : NULL;
    wb_array *z = standard_between(u, (low - mean) / unit, (high - mean) / unit);
    wb_array *x = ADD(NUM(mean), MUL(NUM(unit), z));
    return x ? wb_cast(wb_clamp(x, low, high), dtype) : NULL;
}

/* ---- categorical ---- */

/* The index; where a logit is NaN it is out of range, which each device finds. */
static wb_array *unless_nan(wb_array *index, wb_array *logits, int dim) {
    const int64_t count = logits->sizes[dim];
    wb_array *is_bad = wb_maximum_dims(wb_cast(NE(logits, logits), WB_I32), dim);
    wb_array *looked_at = SELECT(EQ(is_bad, NUM(0)), index, NUM((double)count));
    looked_at = wb_cast(looked_at, WB_I64);
    return wb_guarded_index("categorical: a logit is NaN: class", looked_at, count);
}

/* The largest of logits plus Gumbel noise is one of these (Maddison, Tarlow and Minka 2014). Rare
 * classes are drawn by the largest noise, where the uniform number is near 0. */
wb_array *wb_categorical(wb_array *logits, int dim) {
    if (!wb_is_usable(logits)) return wb_refuse("categorical", logits, "logits");
    dim = wb_check_dim_of("categorical", dim, logits);
    if (dim < 0) return NULL;
    if (logits->sizes[dim] == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "categorical: there must be at least one logit, got %s",
                            wb_text_of(logits));
    const wb_dtype dtype = logits->dtype == WB_F64 ? WB_F64 : WB_F32;
    wb_array *u = fine_uniform(dtype, logits->ndim, logits->sizes);
    wb_array *noise = NEG(LOG(NEG(wb_log1p(NEG(u)))));
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
