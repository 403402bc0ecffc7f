/* Reductions and the row operations made of them. A mask says which dimensions are reduced:
 * attribute 0; attribute 1 is 1 where the result has no dimensions (the reduction of
 * everything). */
#include "ops/check.h"

bool wb_dims_mask(const char *function, const wb_array *x, int ndim, const int64_t *dims,
                  int64_t *mask) {
    *mask = 0;
    if (!wb_check_list(function, ndim, dims)) return false;
    for (int i = 0; i < ndim; i++) {
        const int64_t dim = dims[i] < 0 ? dims[i] + x->ndim : dims[i];
        if (dim < 0 || dim >= x->ndim) {
            (void)wb_fail(WB_ERROR_ARGUMENT,
                          "%s: dimension %lld is outside an array of %d dimensions, %s", function,
                          (long long)dims[i], x->ndim, wb_text_of(x));
            return false;
        }
        *mask |= 1 << dim;
    }
    return true;
}

static int64_t all_dims(const wb_array *x) { return (1 << x->ndim) - 1; }

static int64_t reduced_count(const wb_array *x, int64_t mask) {
    int64_t count = 1;
    for (int d = 0; d < x->ndim; d++)
        if (mask >> d & 1) count *= x->sizes[d];
    return count;
}

/* A node over x whose masked dimensions have size 1, or which has no dimensions at all. */
static wb_array *reduce(wb_op op, wb_array *x, wb_dtype dtype, int64_t mask, bool total) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = mask >> d & 1 ? 1 : x->sizes[d];
    return wb_node_with(op, dtype, total ? 0 : x->ndim, sizes, 1, &x,
                        WB_WORDS(reduce, .dims = mask, .is_total = total));
}

static wb_dtype float_of(const wb_array *x) {
    return wb_dtype_is_float((wb_dtype)x->dtype) ? (wb_dtype)x->dtype : WB_F32;
}

/* ---- sum ---- */

static wb_array *sum(wb_array *x, int64_t mask, bool total) {
    const wb_dtype dtype = wb_dtype_is_float((wb_dtype)x->dtype) ? (wb_dtype)x->dtype : WB_I64;
    return reduce(WB_OP_sum, x, dtype, mask, total);
}

wb_array *wb_sum(wb_array *x) {
    return wb_is_usable(x) ? sum(x, all_dims(x), true) : wb_refuse("sum", x, "x");
}

wb_array *wb_sum_make(wb_array *x, int ndim, const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("sum", x, "x");
    return wb_dims_mask("sum", x, ndim, dims, &mask) ? sum(x, mask, false) : NULL;
}

wb_array *wb_sum_to(wb_array *g, int ndim, const int64_t *sizes) {
    if (!g) return NULL;
    int64_t mask = 0;
    bool same = g->ndim == ndim;
    for (int d = 0; d < g->ndim; d++) {
        const int64_t size = d < ndim ? sizes[d] : 1;
        if (size == g->sizes[d] && d < ndim) continue;
        same = false;
        if (size == 1 && g->sizes[d] != 1) mask |= 1 << d;
    }
    if (same) return g;
    if (mask) {
        g = sum(g, mask, ndim == 0);
        if (ndim == 0) return g;
    }
    if (!g || g->ndim == ndim) return g;
    return g->ndim > ndim ? wb_reshape_make(g, ndim, sizes)
                          : g; /* fewer dimensions: still to be expanded */
}

void wb_vjp_sum(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)o, (void)want;
    out[0] = g; /* broadcasts */
}

/* ---- largest, smallest ---- */

static wb_array *maximum(const char *function, wb_array *x, int64_t mask, bool total) {
    if (reduced_count(x, mask) == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "%s: x must have at least one element, got %s",
                            function, wb_text_of(x));
    return reduce(WB_OP_max_reduce, x, (wb_dtype)x->dtype, mask, total);
}

wb_array *wb_maximum(wb_array *x) {
    return wb_is_usable(x) ? maximum("maximum", x, all_dims(x), true)
                           : wb_refuse("maximum", x, "x");
}

wb_array *wb_maximum_make(wb_array *x, int ndim, const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("maximum", x, "x");
    return wb_dims_mask("maximum", x, ndim, dims, &mask) ? maximum("maximum", x, mask, false)
                                                         : NULL;
}

wb_array *wb_turned(wb_array *x) {
    if (!x) return NULL;
    if (x->dtype == WB_BOOL) return wb_not(x);
    if (wb_dtype_is_float((wb_dtype)x->dtype)) return NEG(x);
    return SUB(NUM(x->dtype == WB_U8 ? 255 : -1), x);
}

static wb_array *minimum(wb_array *x, int64_t mask, bool total) {
    wb_array *y = wb_turned(x);
    return y ? wb_turned(maximum("minimum", y, mask, total)) : NULL;
}

wb_array *wb_minimum(wb_array *x) {
    return wb_is_usable(x) ? minimum(x, all_dims(x), true) : wb_refuse("minimum", x, "x");
}

wb_array *wb_minimum_make(wb_array *x, int ndim, const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("minimum", x, "x");
    return wb_dims_mask("minimum", x, ndim, dims, &mask) ? minimum(x, mask, false) : NULL;
}

void wb_vjp_max_reduce(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    wb_array *x = o->inputs[0];
    /* not o: if o was read before, x is computed again here, and its sums may be rounded
     * differently */
    wb_array *most =
        reduce(WB_OP_max_reduce, x, (wb_dtype)x->dtype, o->attributes.reduce.dims, false);
    wb_array *ties = EQ(x, most);
    wb_array *count =
        ties ? sum(ties, o->attributes.reduce.dims, o->attributes.reduce.is_total) : NULL;
    out[0] = SELECT(ties, DIV(g, count ? wb_cast(count, (wb_dtype)x->dtype) : NULL), NUM(0));
}

/* ---- mean, variance ---- */

static wb_array *mean(wb_array *x, int64_t mask, bool total) {
    return reduce(WB_OP_mean, x, float_of(x), mask, total);
}

wb_array *wb_mean(wb_array *x) {
    return wb_is_usable(x) ? mean(x, all_dims(x), true) : wb_refuse("mean", x, "x");
}

wb_array *wb_mean_make(wb_array *x, int ndim, const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("mean", x, "x");
    return wb_dims_mask("mean", x, ndim, dims, &mask) ? mean(x, mask, false) : NULL;
}

static double count_of(const wb_array *o) {
    return (double)reduced_count(o->inputs[0], o->attributes.reduce.dims);
}

/* The input in the type that a macro is computed in: f32 for the halves, whose sums would
 * overflow. */
static wb_array *float_input(wb_array *node) {
    return wb_cast(node->inputs[0], wb_is_half(node->dtype) ? WB_F32 : (wb_dtype)node->dtype);
}

bool wb_expand_mean(wb_array *node, wb_array **parts) {
    wb_array *x = float_input(node);
    wb_array *total =
        x ? sum(x, node->attributes.reduce.dims, node->attributes.reduce.is_total) : NULL;
    return (parts[0] = DIV(total, NUM(count_of(node)))) != NULL;
}

void wb_vjp_mean(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    out[0] = MUL(g, NUM(1 / count_of(o)));
}

/* In two passes over x: the one-pass variance loses half its digits where the mean is large. The
 * mean m is rounded, so that the second pass finds the sum of c = x - m beside that of c^2, and the
 * mean is m + d with d = sum(c) / n, which is exact if all numbers are equal. (The corrected
 * two-pass algorithm of Chan, Golub and LeVeque 1983.) */
typedef struct passes {
    wb_array *mean, *rest, *squares; /* m + d, sum(c), sum(c^2) */
} passes;

static passes two_passes(wb_array *x, int64_t mask) {
    const double n = (double)reduced_count(x, mask);
    wb_array *all = sum(x, mask, false), *m = MUL(all, NUM(1 / n)), *c = SUB(x, m);
    wb_array *rest = c ? sum(c, mask, false) : NULL, *squares = SQUARE(c);
    squares = squares ? sum(squares, mask, false) : NULL;
    return (passes){ADD(m, MUL(rest, NUM(1 / n))), rest, squares};
}

/* (sum(c^2) - sum(c) d) / n, which is 0 if all numbers are equal, because the quotient is exact
 * then. */
static wb_moments moments(wb_array *x, int64_t mask) {
    const double n = (double)reduced_count(x, mask);
    const passes p = two_passes(x, mask);
    wb_array *v = SUB(p.squares, MUL(p.rest, DIV(p.rest, NUM(n))));
    return (wb_moments){p.mean, MUL(MAX(v, NUM(0)), NUM(1 / n))};
}

wb_moments wb_moments_make(wb_array *x, int ndim, const int64_t *dims) {
    int64_t mask;
    wb_array *w = NULL;
    if (wb_is_usable(x) && wb_dims_mask("moments", x, ndim, dims, &mask)) w = wb_wide(x);
    const wb_moments m = w ? moments(w, mask) : (wb_moments){NULL, NULL};
    if (!m.mean || !m.variance || w == x) return m;
    return (wb_moments){wb_cast(m.mean, (wb_dtype)x->dtype),
                        wb_cast(m.variance, (wb_dtype)x->dtype)};
}

/* The corrected variance of one number is 0 inf = NaN. */
static wb_array *variance(wb_array *x, int64_t mask, bool total, bool corrected) {
    const double n = (double)reduced_count(x, mask);
    wb_array *w = wb_wide(x), *v = w ? moments(w, mask).variance : NULL;
    if (corrected) v = MUL(v, NUM(n / (n - 1)));
    if (v && total) v = wb_reshape_make(v, 0, NULL);
    return v ? wb_cast(v, float_of(x)) : NULL;
}

wb_array *wb_var(wb_array *x, bool corrected) {
    return wb_is_usable(x) ? variance(x, all_dims(x), true, corrected) : wb_refuse("var", x, "x");
}

wb_array *wb_var_make(wb_array *x, bool corrected, int ndim, const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("var", x, "x");
    return wb_dims_mask("var", x, ndim, dims, &mask) ? variance(x, mask, false, corrected) : NULL;
}

/* ---- normalise: x, and gain and bias or neither ---- */

static wb_array *normalise(wb_array *x, double eps, int ndim, const int64_t *dims, wb_array *gain,
                           wb_array *bias) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("normalise", x, "x");
    if (!wb_dims_mask("normalise", x, ndim, dims, &mask)) return NULL;
    return wb_node_with(WB_OP_normalise, float_of(x), x->ndim, x->sizes, gain ? 3 : 1,
                        (wb_array *[]){x, gain, bias}, WB_WORDS(reduce, .dims = mask, .eps = eps));
}

wb_array *wb_normalise_make(wb_array *x, double eps, int ndim, const int64_t *dims) {
    return normalise(x, eps, ndim, dims, NULL, NULL);
}

wb_array *wb_normalise_with(wb_array *x, double eps, int ndim, const int64_t *dims, wb_array *gain,
                            wb_array *bias) {
    return gain && bias ? normalise(x, eps, ndim, dims, gain, bias) : NULL;
}

/* The mean, and what deviations from it are multiplied by. sum(c^2) / n stands for the variance: it
 * is larger by d^2, which counts only where the deviations, too, are no larger than the rounding of
 * the mean; of equal numbers they are 0. */
typedef struct scaling {
    wb_array *mean, *scale;
} scaling;

static scaling scaling_of(wb_array *x, const wb_array *node) {
    const double eps = node->attributes.reduce.eps;
    const double n = (double)reduced_count(x, node->attributes.reduce.dims);
    const passes p = two_passes(x, node->attributes.reduce.dims);
    return (scaling){p.mean, wb_rsqrt(ADD(MUL(p.squares, NUM(1 / n)), NUM(eps)))};
}

/* The gain is the same for all numbers that are normalised together, as BatchNorm's is. */
static bool has_one_gain(const wb_array *node) {
    const wb_array *gain = node->ninputs > 1 ? node->inputs[1] : NULL;
    for (int d = 0; gain && d < gain->ndim; d++)
        if (node->attributes.reduce.dims >> d & 1 && gain->sizes[d] != 1) return false;
    return gain != NULL;
}

bool wb_expand_normalise(wb_array *node, wb_array **parts) {
    wb_array *x = float_input(node);
    if (!x) return false;
    const scaling s = scaling_of(x, node);
    wb_array *scale = s.scale, *y = SUB(x, s.mean);
    if (has_one_gain(node)) scale = MUL(scale, node->inputs[1]);
    y = MUL(y, scale);
    if (node->ninputs > 1 && !has_one_gain(node)) y = MUL(y, node->inputs[1]);
    if (node->ninputs > 1) y = ADD(y, node->inputs[2]);
    return (parts[0] = y) != NULL;
}

/* With c = x - mean, d = g gain and scale s: s (d - mean d - c s^2 mean(d c)), where a gain that is
 * one for all goes out of the brackets. c has the opposite sign here, which cancels: as x - mean it
 * would be the forward pass's value and be stored for the backward pass, which computes it as fast
 * as it reads it. */
void wb_vjp_normalise(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const int64_t mask = o->attributes.reduce.dims;
    wb_array *x = float_input(o), *gain = o->ninputs > 1 ? o->inputs[1] : NULL;
    (void)want;
    wb_array *d = x ? wb_cast(g, (wb_dtype)x->dtype) : NULL;
    if (!d) return;
    const bool one_gain = has_one_gain(o);
    const scaling s = scaling_of(x, o);
    wb_array *scale = s.scale, *c = SUB(s.mean, x);
    if (gain) out[2] = d;
    if (gain && !one_gain) out[1] = MUL(d, MUL(c, NEG(scale))), d = MUL(d, gain);
    wb_array *dc = MUL(d, c), *total = dc ? sum(dc, mask, false) : NULL;
    if (!total) return;
    if (one_gain) out[1] = wb_count(x) ? MUL(total, NEG(scale)) : total; /* without elements: 0 */
    wb_array *slope = MUL(MUL(mean(dc, mask, false), scale), scale);
    wb_array *rest = SUB(SUB(d, mean(d, mask, false)), MUL(c, slope));
    if (one_gain) scale = MUL(scale, gain);
    out[0] = wb_cast(MUL(scale, rest), (wb_dtype)o->inputs[0]->dtype);
}

/* ---- softmax and related functions ---- */

static wb_array *row_operation(const char *function, wb_op op, wb_array *x, int ndim,
                               const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse(function, x, "x");
    if (!wb_dims_mask(function, x, ndim, dims, &mask)) return NULL;
    return wb_node_with(op, float_of(x), x->ndim, x->sizes, 1, &x, WB_WORDS(reduce, .dims = mask));
}

static const int64_t first_dim[1] = {0};

wb_array *wb_softmax(wb_array *x) { return wb_softmax_make(x, 1, first_dim); }
wb_array *wb_logsoftmax(wb_array *x) { return wb_logsoftmax_make(x, 1, first_dim); }
wb_array *wb_logsumexp(wb_array *x) { return wb_logsumexp_make(x, 1, first_dim); }

wb_array *wb_softmax_make(wb_array *x, int ndim, const int64_t *dims) {
    return row_operation("softmax", WB_OP_softmax, x, ndim, dims);
}

wb_array *wb_logsoftmax_make(wb_array *x, int ndim, const int64_t *dims) {
    return row_operation("logsoftmax", WB_OP_logsoftmax, x, ndim, dims);
}

wb_array *wb_logsumexp_make(wb_array *x, int ndim, const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("logsumexp", x, "x");
    if (!wb_dims_mask("logsumexp", x, ndim, dims, &mask)) return NULL;
    if (reduced_count(x, mask) == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "logsumexp: x must have at least one element, got %s",
                            wb_text_of(x));
    return reduce(WB_OP_logsumexp, x, float_of(x), mask, false);
}

static wb_array *largest_of(wb_array *x, wb_array *node) {
    return x ? maximum(wb_op_name((wb_op)node->op), x, node->attributes.reduce.dims, false) : NULL;
}

static wb_array *sum_like(wb_array *x, wb_array *node) {
    return x ? sum(x, node->attributes.reduce.dims, false) : NULL;
}

/* Rows without elements have no maximum: their result is empty, too. */
static bool expand_empty(wb_array *node, wb_array **parts) {
    parts[0] = wb_full_make((wb_dtype)node->dtype, 0, node->ndim, node->sizes);
    return parts[0] != NULL;
}

bool wb_expand_logsumexp(wb_array *node, wb_array **parts) {
    wb_array *x = float_input(node), *largest = largest_of(x, node);
    return (parts[0] = ADD(largest, LOG(sum_like(EXP(EXCESS(x, largest)), node)))) != NULL;
}

bool wb_expand_softmax(wb_array *node, wb_array **parts) {
    if (wb_count(node) == 0) return expand_empty(node, parts);
    wb_array *x = float_input(node), *e = EXP(EXCESS(x, largest_of(x, node)));
    return (parts[0] = MUL(e, wb_recip(sum_like(e, node)))) != NULL;
}

bool wb_expand_logsoftmax(wb_array *node, wb_array **parts) {
    if (wb_count(node) == 0) return expand_empty(node, parts);
    wb_array *x = float_input(node), *d = EXCESS(x, largest_of(x, node));
    return (parts[0] = SUB(d, LOG(sum_like(EXP(d), node)))) != NULL;
}

void wb_vjp_logsumexp(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    int64_t dims[WB_MAX_DIMS];
    int count = 0;
    (void)want;
    for (int d = 0; d < o->inputs[0]->ndim; d++)
        if (o->attributes.reduce.dims >> d & 1) dims[count++] = d;
    out[0] = MUL(g, wb_softmax_make(o->inputs[0], count, dims));
}

void wb_vjp_softmax(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    out[0] = MUL(o, SUB(g, sum_like(MUL(g, o), o)));
}

void wb_vjp_logsoftmax(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    out[0] = SUB(g, MUL(EXP(o), sum_like(g, o)));
}

/* ---- examples for the gradient checker ---- */

CHECK(sum, SQUARE(wb_sum_dims(SQUARE(x), 0, 2)), 1, {{3, {2, 3, 2}}}, -2, 2)
CHECK(max_reduce, SQUARE(wb_maximum_dims(SQUARE(x), 1)), 1, {{2, {2, 4}}}, 0.5, 3)
CHECK(mean, SQUARE(wb_mean_dims(SQUARE(x), 1)), 1, {{3, {2, 3, 2}}}, -2, 2)
CHECK(normalise, MUL(wb_normalise_with(x, 0.1, 1, (const int64_t[]){1}, y, SQUARE(y)), x), 2,
      {{3, {2, 4, 2}}, {2, {2, 1}}}, -2, 2)
CHECK(logsumexp, SQUARE(wb_logsumexp(SQUARE(x))), 1, {{2, {4, 3}}}, -2, 2)
CHECK(softmax, SQUARE(wb_softmax(SQUARE(x))), 1, {{2, {4, 3}}}, -2, 2)
CHECK(logsoftmax, SQUARE(wb_logsoftmax_dims(x, 1)), 1, {{2, {2, 4}}}, -2, 2)
