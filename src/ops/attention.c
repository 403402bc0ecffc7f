/* Attention, and rotary positions: made of products, softmax and selects, from which derivatives
 * of any order follow. The scores (keys, queries, heads, batch) are stored. */
#include <math.h>

#include "base/given.h"
#include "ops/build.h"

/* Sizes; queries of `group` heads share the keys and values of one. */
typedef struct shape {
    int64_t dk, dv, queries, keys, group, kv_heads, batch;
    int nbatch; /* dimensions behind the second */
} shape;

static bool refuse(const char *what) {
    (void)wb_fail(WB_ERROR_SHAPE, "attention: %s", what);
    return false;
}

static bool refuse_pair(const char *must, const wb_array *a, const wb_array *b) {
    (void)wb_fail(WB_ERROR_SHAPE, "attention: %s, got %s and %s", must, wb_text_of(a),
                  wb_text_of(b));
    return false;
}

static bool same_batch(const wb_array *a, const wb_array *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 2; d < a->ndim; d++)
        if (a->sizes[d] != b->sizes[d]) return false;
    return true;
}

static bool check_array(const char *name, wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse("attention", x, name) != NULL;
    if (x->ndim >= 2 && wb_dtype_is_float((wb_dtype)x->dtype)) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "attention: %s must be floating and (features, length, ...), got %s", name,
                  wb_text_of(x));
    return false;
}

static bool divide(const char *name, const wb_array *x, int64_t heads, int64_t *each) {
    *each = x->sizes[0] / heads;
    if (x->sizes[0] % heads == 0 && *each > 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "attention: the features of %s must be divisible by %lld heads, got %lld", name,
                  (long long)heads, (long long)x->sizes[0]);
    return false;
}

static bool read_shape(const wb_attention_desc *d, shape *s) {
    const int64_t heads = d->heads ? d->heads : 1;
    if (!check_array("q", d->q) || !check_array("k", d->k) || !check_array("v", d->v)) return false;
    s->kv_heads = d->kv_heads ? d->kv_heads : heads;
    if (heads < 1 || s->kv_heads < 1 || heads % s->kv_heads != 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "attention: heads must be a multiple of kv_heads, got %lld and %lld",
                      (long long)heads, (long long)s->kv_heads);
        return false;
    }
    s->group = heads / s->kv_heads;
    s->queries = d->q->sizes[1], s->keys = d->k->sizes[1];
    s->nbatch = d->q->ndim - 2, s->batch = 1;
    for (int i = 2; i < d->q->ndim; i++) s->batch *= d->q->sizes[i];
    int64_t dk_of_k;
    if (!divide("q", d->q, heads, &s->dk) || !divide("k", d->k, s->kv_heads, &dk_of_k) ||
        !divide("v", d->v, s->kv_heads, &s->dv))
        return false;
    if (s->dk != dk_of_k)
        return refuse_pair("a head of q and one of k must have the same features", d->q, d->k);
    if (s->keys != d->v->sizes[1])
        return refuse_pair("k and v must have the same length", d->k, d->v);
    if (!same_batch(d->q, d->k) || !same_batch(d->k, d->v))
        return refuse("q, k and v must have the same sizes from the third on");
    if (!(d->dropout >= 0 && d->dropout <= 1)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "attention: dropout must be between 0 and 1, got %g",
                      d->dropout);
        return false;
    }
    return s->nbatch + 3 <= WB_MAX_DIMS || refuse("at most 5 dimensions may follow the length");
}

/* ---- heads apart and together ---- */

/* (features heads, length, ...) as (features, length, group, kv heads, batch). */
static wb_array *apart(wb_array *x, const shape *s, int64_t features, int64_t group) {
    x = wb_reshape(x, features, group, s->kv_heads, x->sizes[1], s->batch);
    return x ? wb_permute(x, 0, 3, 1, 2, 4) : NULL;
}

static wb_array *together(wb_array *y, const shape *s, const wb_array *q) {
    int64_t sizes[WB_MAX_DIMS] = {s->dv * s->group * s->kv_heads, s->queries};
    for (int d = 2; d < q->ndim; d++) sizes[d] = q->sizes[d];
    y = wb_permute(y, 0, 2, 3, 1, 4);
    return y ? wb_reshape_make(y, q->ndim, sizes) : NULL;
}

/* (keys, queries, group, kv heads, batch) as (keys, queries, heads, batch...), and back. */
static wb_array *with_batch(wb_array *a, const shape *s, const wb_array *q) {
    int64_t sizes[WB_MAX_DIMS] = {s->keys, s->queries, s->group * s->kv_heads};
    for (int d = 2; d < q->ndim; d++) sizes[d + 1] = q->sizes[d];
    return a ? wb_reshape_make(a, q->ndim + 1, sizes) : NULL;
}

/* ---- weights ---- */

/* The scores have x's sizes where x is broadcast to them. */
static bool fits(const char *name, wb_array *x, const wb_array *scores) {
    if (!wb_is_usable(x)) return wb_refuse("attention", x, name) != NULL;
    bool good = x->ndim <= scores->ndim;
    for (int d = 0; good && d < x->ndim; d++)
        good = x->sizes[d] == 1 || x->sizes[d] == scores->sizes[d];
    if (good) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "attention: %s must broadcast to (keys, queries, heads, ...) = %s, got %s", name,
                  wb_sizes_text(scores->ndim, scores->sizes), wb_text_of(x));
    return false;
}

/* Query i sees the keys up to i + keys - queries: the last query sees all of them. */
static wb_array *causal_mask(const shape *s) {
    wb_array *key = wb_iota(WB_I64, 0, s->keys, s->queries);
    wb_array *query = wb_iota(WB_I64, 1, s->keys, s->queries);
    return LE(SUB(key, query), NUM((double)(s->keys - s->queries)));
}

static wb_array *whole_mask(const wb_attention_desc *d, const shape *s, const wb_array *scores) {
    if (d->mask && !fits("mask", d->mask, scores)) return NULL;
    if (d->mask && d->mask->dtype != WB_BOOL)
        return wb_fail_null(WB_ERROR_DTYPE, "attention: mask must be bool, got %s",
                            wb_text_of(d->mask));
    wb_array *causal = d->causal ? causal_mask(s) : NULL;
    return d->mask && causal ? wb_and(d->mask, causal) : d->mask ? d->mask : causal;
}

/* A number so far below all scores that its exponential is 0, and finite, so that a query without
 * any key has weights, which are made 0 behind the softmax. */
static wb_array *masked_softmax(wb_array *scores, wb_array *mask) {
    const double low = scores->dtype == WB_F16 ? -6e4 : -1e30;
    wb_array *a = wb_softmax(wb_select(mask, scores, wb_number(low)));
    return wb_select(mask, a, wb_number(0));
}

static wb_array *weights_of(const wb_attention_desc *d, const shape *s, wb_array *scores) {
    if (d->bias && !fits("bias", d->bias, scores)) return NULL;
    if (d->bias) scores = wb_add(scores, wb_cast(d->bias, (wb_dtype)scores->dtype));
    if (!scores || (!d->mask && !d->causal)) return scores ? wb_softmax(scores) : NULL;
    wb_array *mask = whole_mask(d, s, scores);
    return mask ? masked_softmax(scores, mask) : NULL;
}

static wb_array *dropped(wb_array *a, double p) {
    if (p == 0) return a;
    wb_array *stays = wb_bernoulli_make(1 - p, a->ndim, a->sizes);
    return wb_select(stays, wb_mul_number(a, p < 1 ? 1 / (1 - p) : 0), wb_number(0));
}

wb_array *wb_attention_make(wb_attention_desc d) {
    shape s;
    if (d.weights) *d.weights = NULL;
    if (!read_shape(&d, &s)) return NULL;
    wb_array *q = apart(wb_mul_number(d.q, 1 / sqrt((double)s.dk)), &s, s.dk, s.group),
             *k = apart(d.k, &s, s.dk, 1), *v = apart(d.v, &s, s.dv, 1);
    wb_array *scores = with_batch(wb_matmul_op(k, q, true, false), &s, d.q);
    wb_array *a = scores ? weights_of(&d, &s, scores) : NULL;
    a = a ? dropped(a, d.dropout) : NULL;
    if (!a) return NULL;
    if (d.weights) *d.weights = a;
    wb_array *y = wb_matmul(v, wb_reshape(a, s.keys, s.queries, s.group, s.kv_heads, s.batch));
    return y ? together(y, &s, d.q) : NULL;
}

/* ---- positions ---- */

static wb_dtype table_type(const wb_array *x) { return x->dtype == WB_F64 ? WB_F64 : WB_F32; }

/* (n, length): position times rate^-i. */
static wb_array *angles(wb_dtype dtype, int64_t n, int64_t length, int64_t first, double log_rate) {
    wb_array *i = wb_iota(dtype, 0, n, length), *p = wb_iota(dtype, 1, n, length);
    wb_array *rate = wb_exp(wb_mul_number(i, -log_rate));
    return wb_mul(wb_add_number(p, (double)first), rate);
}

wb_array *wb_rotary_make(wb_rotary_desc d) {
    if (!wb_is_usable(d.x)) return wb_refuse("rotary", d.x, "x");
    const int64_t heads = d.heads ? d.heads : 1;
    const wb_dtype dtype = (wb_dtype)d.x->dtype;
    if (d.x->ndim < 2 || d.x->ndim >= WB_MAX_DIMS || !wb_dtype_is_float(dtype))
        return wb_fail_null(WB_ERROR_SHAPE,
                            "rotary: x must be floating and (features, length, ...), got %s",
                            wb_text_of(d.x));
    if (heads < 1 || d.x->sizes[0] % (2 * heads) != 0)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "rotary: features must be even for each of %lld heads, got %lld",
                            (long long)heads, (long long)d.x->sizes[0]);
    if (!(wb_given_or(d.base, 1e4) > 0))
        return wb_fail_null(WB_ERROR_ARGUMENT, "rotary: base must be positive, got %g", d.base);
    const int64_t half = d.x->sizes[0] / heads / 2;
    wb_array *a = angles(table_type(d.x), half, d.x->sizes[1], d.first,
                         log(wb_given_or(d.base, 1e4)) / (double)half);
    /* (half, 2, heads, length, rest) */
    wb_array *x = wb_reshape(d.x, half, 2, heads, d.x->sizes[1], -1);
    a = a ? wb_reshape(a, half, 1, 1, d.x->sizes[1]) : NULL;
    if (!x || !a) return NULL;
    wb_array *x1 = wb_slice(x, 1, 0, 1, 1), *x2 = wb_slice(x, 1, 1, 2, 1);
    wb_array *c = wb_cos(a), *s = wb_sin(a);
    wb_array *y = wb_concat(1, SUB(MUL(x1, c), MUL(x2, s)), ADD(MUL(x2, c), MUL(x1, s)));
    y = y ? wb_reshape_make(y, d.x->ndim, d.x->sizes) : NULL;
    return y ? wb_cast(y, dtype) : NULL;
}

wb_array *wb_sinusoidal(wb_dtype dtype, int64_t features, int64_t length) {
    if (!wb_check_dtype("sinusoidal", dtype)) return NULL;
    if (features < 4 || features % 2 != 0 || length < 0 || !wb_dtype_is_float(dtype))
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "sinusoidal: features must be even and at least 4, length at least 0, "
                            "the type floating, got %lld, %lld and %s",
                            (long long)features, (long long)length, wb_dtype_name(dtype));
    const int64_t half = features / 2;
    wb_array *a =
        angles(dtype == WB_F64 ? WB_F64 : WB_F32, half, length, 0, log(1e4) / (double)(half - 1));
    wb_array *y = a ? wb_concat(0, wb_sin(a), wb_cos(a)) : NULL;
    return y ? wb_cast(wb_mul_number(y, sqrt(2 / (double)features)), dtype) : NULL;
}
