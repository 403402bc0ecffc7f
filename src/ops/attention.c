/* Attention, and rotary positions. Attention is a call that a backend may take, which then works in
 * tiles and stores no scores. It is also an expression of products, softmax and selects, which
 * gives derivatives of any order. */
#include <math.h>
#include <string.h>

#include "array/use.h"
#include "ops/check.h"

/* Sizes; queries of `group` heads share the keys and values of one. */
typedef struct shape {
    int64_t dk, dv, queries, keys, group, kv_heads, batch;
    int nbatch; /* dimensions after the second */
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
    const int64_t heads = d->heads;
    if (!wb_check_start("attention", d->start_) || !check_array("q", d->q) ||
        !check_array("k", d->k) || !check_array("v", d->v) ||
        !wb_may_use_given("attention", d->mask, "mask") ||
        !wb_may_use_given("attention", d->bias, "bias"))
        return false;
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

/* Back to the sizes of `like`, but for the first, which follows. */
static wb_array *together(wb_array *x, const wb_array *like) {
    if (!x) return NULL;
    int64_t sizes[WB_MAX_DIMS] = {x->sizes[0] * x->sizes[2] * x->sizes[3]};
    for (int d = 1; d < like->ndim; d++) sizes[d] = like->sizes[d];
    x = wb_permute(x, 0, 2, 3, 1, 4);
    return x ? wb_reshape_make(x, like->ndim, sizes) : NULL;
}

/* (keys, queries, group, kv heads, batch) as (keys, queries, heads, batch), and back. */
static wb_array *joined(wb_array *a, const shape *s) {
    return a ? wb_reshape(a, s->keys, s->queries, s->group * s->kv_heads, s->batch) : NULL;
}
static wb_array *grouped(wb_array *a, const shape *s) {
    return a ? wb_reshape(a, s->keys, s->queries, s->group, s->kv_heads, s->batch) : NULL;
}

/* ---- masks and biases ---- */

/* The scores have x's sizes where x is broadcast to them. */
static bool fits(const char *name, const wb_array *x, int ndim, const int64_t *scores) {
    bool good = x->ndim <= ndim;
    for (int d = 0; good && d < x->ndim; d++) good = x->sizes[d] == 1 || x->sizes[d] == scores[d];
    if (good) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "attention: %s must broadcast to (keys, queries, heads, ...) = %s, got %s", name,
                  wb_sizes_text(ndim, scores), wb_text_of(x));
    return false;
}

/* x, which fits, as (keys, queries, heads, batch), each of these sizes or 1. */
static wb_array *in_four(wb_array *x, int ndim, const int64_t *scores) {
    int64_t sizes[WB_MAX_DIMS], batch = 1;
    for (int d = 0; d < WB_MAX_DIMS; d++) sizes[d] = d < x->ndim ? x->sizes[d] : 1;
    for (int d = 3; d < ndim; d++) batch *= sizes[d];
    if (batch != 1) {
        batch = wb_count_sizes(ndim - 3, scores + 3);
        for (int d = 3; d < ndim; d++) sizes[d] = scores[d];
        x = wb_expand_make(x, ndim, sizes);
    }
    return x ? wb_reshape(x, sizes[0], sizes[1], sizes[2], batch) : NULL;
}

/* Checks mask and bias and makes them arrays of four dimensions. */
static bool take_mask_and_bias(wb_attention_desc *d, const shape *s) {
    int64_t scores[WB_MAX_DIMS] = {s->keys, s->queries, s->group * s->kv_heads};
    const int ndim = s->nbatch + 3;
    for (int i = 2; i < d->q->ndim; i++) scores[i + 1] = d->q->sizes[i];
    if (d->bias && !fits("bias", d->bias, ndim, scores)) return false;
    if (d->mask && !fits("mask", d->mask, ndim, scores)) return false;
    if (d->bias && d->bias->dtype == WB_BOOL) {
        (void)wb_fail(WB_ERROR_DTYPE,
                      "attention: bias is added to the scores, but %s is bool: give it as .mask, "
                      "true where a query may see a key",
                      wb_text_of(d->bias));
        return false;
    }
    if (d->mask && d->mask->dtype != WB_BOOL) {
        (void)wb_fail(WB_ERROR_DTYPE, "attention: mask must be bool, got %s %s",
                      wb_dtype_name((wb_dtype)d->mask->dtype), wb_text_of(d->mask));
        return false;
    }
    return (!d->bias || (d->bias = in_four(d->bias, ndim, scores))) &&
           (!d->mask || (d->mask = in_four(d->mask, ndim, scores)));
}

/* ---- as products and a softmax, whose scores are stored ---- */

/* The arguments that both calls have. */
typedef struct operands {
    wb_array *q, *k, *v, *mask, *bias; /* the last two of four dimensions, or NULL */
    bool causal;
} operands;

/* Query i sees the keys up to i + keys - queries: the last query sees all of them. */
static wb_array *causal_mask(const shape *s) {
    wb_array *key = wb_iota(WB_I64, 0, s->keys, s->queries);
    wb_array *query = wb_iota(WB_I64, 1, s->keys, s->queries);
    return LE(SUB(key, query), NUM((double)(s->keys - s->queries)));
}

static wb_array *whole_mask(const operands *o, const shape *s) {
    wb_array *causal = o->causal ? causal_mask(s) : NULL;
    return o->mask && causal ? wb_and(o->mask, causal) : o->mask ? o->mask : causal;
}

/* A number so far below all scores that its exponential is 0, and finite, so that a query without
 * any key has finite weights, which are set to 0 after the softmax. */
static double low_number(int dtype) { return dtype == WB_F16 ? -6e4 : -1e30; }

/* (keys, queries, heads, batch); *mask is given the mask, NULL without one. */
static wb_array *scores_of(const operands *o, const shape *s, wb_array **mask) {
    wb_array *q = apart(wb_mul_number(o->q, 1 / sqrt((double)s->dk)), s, s->dk, s->group),
             *k = apart(o->k, s, s->dk, 1);
    wb_array *scores = q && k ? joined(wb_matmul_transposed(k, q, true, false), s) : NULL;
    if (!scores) return NULL;
    if (o->bias) scores = wb_add(scores, wb_cast(o->bias, (wb_dtype)scores->dtype));
    *mask = whole_mask(o, s);
    return *mask ? SELECT(*mask, scores, NUM(low_number(scores->dtype))) : scores;
}

/* A score of -inf hides its key, as the mask does. */
static wb_array *weights_of(const operands *o, const shape *s) {
    wb_array *mask = NULL, *scores = scores_of(o, s, &mask);
    wb_array *is_seen = scores ? NE(scores, NUM(-(double)INFINITY)) : NULL;
    if (mask) is_seen = AND(mask, is_seen);
    return scores ? SELECT(is_seen, wb_softmax(scores), NUM(0)) : NULL;
}

static wb_array *values_of(const operands *o, const shape *s, wb_array *weights) {
    wb_array *v = apart(o->v, s, s->dv, 1);
    return v ? together(wb_matmul(v, grouped(weights, s)), o->q) : NULL;
}

static wb_array *dropped(wb_array *a, double p) {
    if (p == 0 || !a) return a;
    wb_array *stays = wb_bernoulli_make(1 - p, a->ndim, a->sizes);
    return wb_select(stays, wb_mul_number(a, p < 1 ? 1 / (1 - p) : 0), wb_constant(0));
}

/* A sum over the heads of a group: (features, keys, group, ...) to (features, keys, 1, ...). */
static wb_array *over_group(wb_array *x, const shape *s) {
    return x && s->group > 1 ? wb_sum_dims(x, 2) : x;
}

/* The cotangents of q, k and v into d, and that of the scores (keys, queries, heads, batch), which
 * is the bias's; NULL where it fails. */
static wb_array *composed_backward(const operands *o, const shape *s, wb_array *dy, wb_array **d) {
    const double scale = 1 / sqrt((double)s->dk);
    wb_array *a = weights_of(o, s), *of_y = apart(dy, s, s->dv, s->group);
    wb_array *q = apart(wb_mul_number(o->q, scale), s, s->dk, s->group),
             *k = apart(o->k, s, s->dk, 1), *v = apart(o->v, s, s->dv, 1);
    if (!a || !of_y || !q || !k || !v) return NULL;
    wb_array *of_a = joined(wb_matmul_transposed(v, of_y, true, false), s);
    wb_array *of_scores = of_a ? MUL(a, SUB(of_a, wb_sum_dims(MUL(a, of_a), 0))) : NULL;
    wb_array *in_groups = grouped(of_scores, s);
    if (!in_groups) return NULL;
    d[0] = together(wb_mul_number(wb_matmul(k, in_groups), scale), o->q);
    d[1] = together(over_group(wb_matmul_transposed(q, in_groups, false, true), s), o->k);
    d[2] = together(over_group(wb_matmul_transposed(of_y, grouped(a, s), false, true), s), o->v);
    return d[0] && d[1] && d[2] ? of_scores : NULL;
}

static wb_array *composed(const operands *o, const shape *s, const wb_attention_desc *d) {
    wb_array *a = dropped(weights_of(o, s), d->dropout);
    if (!a || !d->weights) return a ? values_of(o, s, a) : NULL;
    int64_t sizes[WB_MAX_DIMS] = {s->keys, s->queries, s->group * s->kv_heads};
    for (int i = 2; i < o->q->ndim; i++) sizes[i + 1] = o->q->sizes[i];
    *d->weights = wb_reshape_make(a, o->q->ndim + 1, sizes);
    return *d->weights ? values_of(o, s, a) : NULL;
}

/* ---- as one call ---- */

/* Strides of a dense mask or bias, 0 along dimensions of size 1. */
static void strides_of(const wb_array *x, int64_t strides[4]) {
    int64_t stride = 1;
    for (int d = 0; x && d < 4; d++) {
        strides[d] = x->sizes[d] != 1 ? stride : 0;
        stride *= x->sizes[d];
    }
}

static wb_attention_call call_of(const operands *o, const shape *s) {
    wb_attention_call c = {.dk = s->dk,
                           .dv = s->dv,
                           .queries = s->queries,
                           .keys = s->keys,
                           .heads = s->group * s->kv_heads,
                           .kv_heads = s->kv_heads,
                           .batch = s->batch,
                           .is_causal = o->causal,
                           .has_mask = o->mask != NULL,
                           .has_bias = o->bias != NULL};
    strides_of(o->mask, c.mask_strides);
    strides_of(o->bias, c.bias_strides);
    c.q_strides[0] = c.dk * c.heads, c.q_strides[1] = c.q_strides[0] * c.queries;
    c.k_strides[0] = c.dk * c.kv_heads, c.k_strides[1] = c.k_strides[0] * c.keys;
    c.v_strides[0] = c.dv * c.kv_heads, c.v_strides[1] = c.v_strides[0] * c.keys;
    return c;
}

static wb_array *attention_node(const operands *o, const shape *s) {
    const wb_attention_call call = call_of(o, s);
    wb_payload *payload = wb_payload_of_words(&call, sizeof call);
    if (!payload) return NULL;
    wb_array *inputs[5] = {o->q, o->k, o->v};
    int count = 3;
    if (o->mask) inputs[count++] = o->mask;
    if (o->bias) inputs[count++] = o->bias;
    int64_t sizes[WB_MAX_DIMS] = {s->dv * call.heads};
    for (int d = 1; d < o->q->ndim; d++) sizes[d] = o->q->sizes[d];
    wb_array *node = wb_node_described(WB_OP_attention, (wb_dtype)o->q->dtype, o->q->ndim, sizes,
                                       count, inputs, 0, NULL, payload);
    return wb_result_of(node, 0, (wb_dtype)o->q->dtype, o->q->ndim, sizes);
}

enum { Y = 3, SUMS, DY, FORWARD_INPUTS = 3, BACKWARD_INPUTS = 6 }; /* and mask and bias */

/* The description of a node; `count` inputs come before mask and bias. */
static void read_node(const wb_array *node, int count, operands *o, shape *s) {
    const wb_attention_call *c = wb_attention_of(node);
    wb_array *const *in = node->inputs;
    *o = (operands){.q = in[0], .k = in[1], .v = in[2], .causal = c->is_causal};
    if (c->has_mask) o->mask = in[count++];
    if (c->has_bias) o->bias = in[count];
    *s = (shape){.dk = c->dk,
                 .dv = c->dv,
                 .queries = c->queries,
                 .keys = c->keys,
                 .group = c->heads / c->kv_heads,
                 .kv_heads = c->kv_heads,
                 .batch = c->batch,
                 .nbatch = o->q->ndim - 2};
}

static wb_dtype sum_type(const wb_array *node) { return node->dtype == WB_F64 ? WB_F64 : WB_F32; }

void wb_call_result(const wb_array *node, int number, wb_array *part) {
    const wb_array *like = node->op == WB_OP_attention_backward ? node->inputs[number] : node;
    part->dtype = like == node ? WB_I32 : node->dtype, part->ndim = like->ndim;
    memcpy(part->sizes, like->sizes, sizeof part->sizes);
    if (node->op != WB_OP_attention) return;
    part->dtype = (uint8_t)sum_type(node), part->ndim = 3;
    const wb_attention_call *c = wb_attention_of(node);
    part->sizes[0] = c->queries, part->sizes[1] = c->heads, part->sizes[2] = c->batch;
}

bool wb_expand_attention(wb_array *node, wb_array **parts) {
    operands o;
    shape s;
    read_node(node, FORWARD_INPUTS, &o, &s);
    wb_array *mask = NULL, *scores = scores_of(&o, &s, &mask), *a = weights_of(&o, &s);
    if (!scores || !a) return false;
    parts[0] = values_of(&o, &s, a);
    wb_array *sums = wb_logsumexp(wb_cast(scores, sum_type(node)));
    /* a query that sees no key has only the number below all scores, or -inf */
    const double low = mask ? low_number(scores->dtype) / 2 : -(double)INFINITY;
    sums = SELECT(LE(sums, NUM(low)), NUM((double)INFINITY), sums);
    parts[1] = sums ? wb_reshape(sums, s.queries, s.group * s.kv_heads, s.batch) : NULL;
    return parts[0] && parts[1];
}

bool wb_expand_attention_backward(wb_array *node, wb_array **parts) {
    operands o;
    shape s;
    read_node(node, BACKWARD_INPUTS, &o, &s);
    return composed_backward(&o, &s, node->inputs[DY], parts) != NULL;
}

static wb_array *backward_node(wb_array *o, wb_array *g) {
    wb_array *inputs[WB_INLINE_INPUTS] = {o->inputs[0], o->inputs[1], o->inputs[2]}, sums = {0};
    int count = BACKWARD_INPUTS;
    wb_call_result(o, 1, &sums);
    inputs[Y] = wb_result_of(o, 0, (wb_dtype)o->dtype, o->ndim, o->sizes);
    inputs[SUMS] = wb_result_of(o, 1, (wb_dtype)sums.dtype, sums.ndim, sums.sizes);
    inputs[DY] = g;
    if (!inputs[Y] || !inputs[SUMS]) return NULL;
    for (int i = FORWARD_INPUTS; i < o->ninputs; i++) inputs[count++] = o->inputs[i];
    const wb_array *q = inputs[0];
    return wb_node_described(WB_OP_attention_backward, (wb_dtype)q->dtype, q->ndim, q->sizes, count,
                             inputs, 0, NULL, wb_payload_ref(o->payload));
}

/* The cotangent of a bias is that of the scores, which is stored in this case. */
void wb_vjp_attention(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    operands all;
    shape s;
    read_node(o, FORWARD_INPUTS, &all, &s);
    const int bias = o->ninputs - 1;
    if (all.bias && want[bias]) {
        wb_array *d[3] = {NULL};
        out[bias] = composed_backward(&all, &s, g, d);
        for (int i = 0; i < 3; i++) out[i] = want[i] ? d[i] : NULL;
        return;
    }
    wb_array *node = backward_node(o, g);
    for (int i = 0; node && i < 3; i++) {
        const wb_array *x = o->inputs[i];
        if (want[i]) out[i] = wb_result_of(node, i, (wb_dtype)x->dtype, x->ndim, x->sizes);
    }
}

/* True where the call does what was asked; weights and dropout are left to the composed form. */
static bool suits(const wb_attention_desc *d, const shape *s) {
    return !d->weights && d->dropout == 0 && s->keys > 0 && d->q->dtype == d->k->dtype &&
           d->q->dtype == d->v->dtype;
}

wb_array *wb_attention_make(wb_attention_desc d) {
    shape s;
    if (d.weights) *d.weights = NULL;
    if (!read_shape(&d, &s) || !take_mask_and_bias(&d, &s)) return NULL;
    operands o = {.q = d.q, .k = d.k, .v = d.v, .mask = d.mask, .bias = d.bias, .causal = d.causal};
    if (!suits(&d, &s)) return composed(&o, &s, &d);
    if (o.bias && !(o.bias = wb_cast(o.bias, sum_type(d.q)))) return NULL;
    return attention_node(&o, &s);
}

/* ---- positions ---- */

static wb_dtype table_type(const wb_array *x) { return x->dtype == WB_F64 ? WB_F64 : WB_F32; }

static wb_array *places(wb_dtype dtype, int64_t length, int64_t first) {
    wb_array *place = wb_iota(dtype, 0, length);
    return first ? wb_add_number(place, (double)first) : place;
}

/* (n, 1): e^(-i log_rate). */
static wb_array *rates(wb_dtype dtype, int64_t n, double log_rate) {
    return wb_exp(wb_mul_number(wb_iota(dtype, 0, n, 1), -log_rate));
}

/* (n, length): position times rate. */
static wb_array *angles(wb_array *rate, wb_array *positions) {
    wb_array *p = rate ? wb_cast(positions, (wb_dtype)rate->dtype) : NULL;
    return p ? wb_mul(wb_reshape(p, 1, -1), rate) : NULL;
}

static bool check_positions(const char *function, wb_array *x, int64_t length) {
    if (!wb_is_usable(x)) return wb_refuse(function, x, "positions") != NULL;
    if (x->ndim == 1 && x->dtype != WB_BOOL && (length < 0 || x->sizes[0] == length)) return true;
    if (length < 0)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: positions must be numbers (length), got %s", function,
                      wb_text_of(x));
    else
        (void)wb_fail(WB_ERROR_SHAPE, "%s: positions must be numbers (%lld), got %s", function,
                      (long long)length, wb_text_of(x));
    return false;
}

bool wb_check_rotary(const char *name, double factor, double low, double high, int64_t length) {
    const bool by_turns = low != 0 || high != 0 || length != 0;
    if (!(factor >= 0 && isfinite(factor)) || (by_turns && factor == 0))
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: factor must be positive and finite, or 0 without low, high and length, "
                      "got %g",
                      name, factor);
    else if (by_turns && !(0 <= low && low < high && isfinite(high) && length > 0))
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: low must be below high, and length positive, got %g, %g and %lld", name,
                      low, high, (long long)length);
    else
        return true;
    return false;
}

/* The rates of d for sequences longer than those in training. */
static wb_array *slowed(wb_array *rate, const wb_rotary_desc *d) {
    if (!rate || d->factor == 0) return rate;
    wb_array *slow = wb_mul_number(rate, 1 / d->factor);
    if (d->high == 0) return slow;
    wb_array *turns = wb_mul_number(rate, (double)d->length / 6.283185307179586);
    wb_array *kept = wb_mul_number(wb_add_number(turns, -d->low), 1 / (d->high - d->low));
    return ADD(slow, MUL(wb_clamp(kept, 0, 1), SUB(rate, slow)));
}

wb_array *wb_rotary_make(wb_rotary_desc d) {
    if (!wb_check_start("rotary", d.start_)) return NULL;
    if (!wb_is_usable(d.x)) return wb_refuse("rotary", d.x, "x");
    const int64_t heads = d.heads;
    const wb_dtype dtype = (wb_dtype)d.x->dtype;
    if (d.x->ndim < 2 || d.x->ndim >= WB_MAX_DIMS || !wb_dtype_is_float(dtype))
        return wb_fail_null(WB_ERROR_SHAPE,
                            "rotary: x must be floating and (features, length, ...), got %s",
                            wb_text_of(d.x));
    if (heads < 1 || d.x->sizes[0] % heads != 0 || d.x->sizes[0] / heads % 2 != 0)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "rotary: features must be even for each of %lld heads, got %lld",
                            (long long)heads, (long long)d.x->sizes[0]);
    if (!(d.base > 0 && isfinite(d.base)))
        return wb_fail_null(WB_ERROR_ARGUMENT, "rotary: base must be positive and finite, got %g",
                            d.base);
    if (!wb_check_rotary("rotary", d.factor, d.low, d.high, d.length)) return NULL;
    if (d.positions && !check_positions("rotary", d.positions, d.x->sizes[1])) return NULL;
    const int64_t half = d.x->sizes[0] / heads / 2;
    wb_array *at = d.positions ? d.positions : places(table_type(d.x), d.x->sizes[1], d.first);
    wb_array *rate = rates(table_type(d.x), half, log(d.base) / (double)half);
    wb_array *a = at ? angles(slowed(rate, &d), at) : NULL;
    /* (half, 2, heads, length, rest) */
    const int64_t rest = wb_count_sizes(d.x->ndim - 2, d.x->sizes + 2);
    wb_array *x = wb_reshape(d.x, half, 2, heads, d.x->sizes[1], rest);
    a = a ? wb_reshape(a, half, 1, 1, d.x->sizes[1]) : NULL;
    if (!x || !a) return NULL;
    wb_array *x1 = wb_slice(x, 1, 0, 1, 1), *x2 = wb_slice(x, 1, 1, 2, 1);
    wb_array *c = wb_cos(a), *s = wb_sin(a);
    wb_array *y = wb_concat(1, SUB(MUL(x1, c), MUL(x2, s)), ADD(MUL(x2, c), MUL(x1, s)));
    y = y ? wb_reshape_make(y, d.x->ndim, d.x->sizes) : NULL;
    return y ? wb_cast(y, dtype) : NULL;
}

static bool check_sinusoidal(wb_dtype dtype, int64_t features, int64_t length) {
    if (!wb_check_dtype("sinusoidal", dtype)) return false;
    if (features >= 4 && features % 2 == 0 && length >= 0 && wb_dtype_is_float(dtype)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "sinusoidal: features must be even and at least 4, length at least 0, the type "
                  "floating, got %lld, %lld and %s",
                  (long long)features, (long long)length, wb_dtype_name(dtype));
    return false;
}

wb_array *wb_sinusoidal(wb_dtype dtype, int64_t features, int64_t length) {
    if (!check_sinusoidal(dtype, features, length)) return NULL;
    return wb_sinusoidal_at(dtype, features, places(WB_I32, length, 0));
}

wb_array *wb_sinusoidal_at(wb_dtype dtype, int64_t features, wb_array *positions) {
    if (!check_positions("sinusoidal", positions, -1) || !check_sinusoidal(dtype, features, 0))
        return NULL;
    const int64_t half = features / 2;
    const wb_dtype type = dtype == WB_F64 ? WB_F64 : WB_F32;
    wb_array *a = angles(rates(type, half, log(1e4) / (double)(half - 1)), positions);
    wb_array *y = a ? wb_concat(0, wb_sin(a), wb_cos(a)) : NULL;
    return y ? wb_cast(wb_mul_number(y, sqrt(2 / (double)features)), dtype) : NULL;
}

/* ---- an example for the gradient checker ---- */

static wb_array *attend(wb_array *q, wb_array *k, wb_array *v) {
    return wb_attention(q, k, v, .heads = 2, .kv_heads = 1, .causal = true);
}

CHECK(attention, attend(SQUARE(x), y, arrays[2]), 3, {{2, {4, 3}}, {2, {2, 3}}, {2, {3, 3}}}, -1, 1)
