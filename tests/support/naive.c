#include "support/naive.h"

#include <math.h>

#include "ops/ops.h"
#include "support/support.h"

struct naive_table {
    naive *buckets[256];
};

/* ---- types ---- */

static long double round_bits(long double x, int precision, int least_exponent,
                              long double largest) {
    if (x == 0 || isnan(x) || isinf(x)) return x;
    int exponent;
    (void)frexpl(x, &exponent);
    const int last = (exponent < least_exponent ? least_exponent : exponent) - precision;
    const long double rounded = ldexpl(rintl(ldexpl(x, -last)), last);
    return fabsl(rounded) > largest ? copysignl(INFINITY, x) : rounded;
}

long double naive_round(wb_dtype dtype, long double x) {
    switch (dtype) {
    case WB_F32:
        return (long double)(float)x;
    case WB_F64:
        return (long double)(double)x;
    case WB_F16:
        return round_bits(x, 11, -13, 65504);
    case WB_BF16:
        return round_bits((long double)(float)x, 8, -125, 0x1.fep127L);
    case WB_I32:
        return (long double)(int32_t)(uint32_t)(uint64_t)(int64_t)x;
    case WB_I64:
        return (long double)(int64_t)x;
    case WB_U8:
        return (long double)(uint8_t)(int64_t)x;
    default:
        return x != 0;
    }
}

/* ---- the table ---- */

naive_table *naive_new(void) {
    naive_table *table = calloc(1, sizeof *table);
    assert_non_null(table);
    return table;
}

void naive_free(naive_table *table) {
    for (int b = 0; b < 256; b++)
        while (table->buckets[b]) {
            naive *n = table->buckets[b];
            table->buckets[b] = n->next;
            if (n->values != n->results[0]) free(n->values);
            for (int i = 0; i < NAIVE_RESULTS; i++) free(n->results[i]);
            free(n);
        }
    free(table);
}

bool naive_is_coarse(const naive_table *table) {
    for (int b = 0; b < 256; b++)
        for (const naive *n = table->buckets[b]; n; n = n->next)
            if (wb_dtype_is_float(n->dtype) && n->dtype != WB_F64) return true;
    return false;
}

static naive **bucket_of(naive_table *table, const wb_array *x) {
    return &table->buckets[(uintptr_t)x / 64 % 256];
}

static long double *numbers(int64_t count) {
    long double *list = calloc((size_t)count + 1, sizeof *list);
    assert_non_null(list);
    return list;
}

/* ---- places ---- */

static void unravel(int64_t linear, int ndim, const int64_t *sizes, int64_t *index) {
    for (int d = 0; d < WB_MAX_DIMS; d++) index[d] = 0;
    for (int d = 0; d < ndim; d++) {
        index[d] = linear % sizes[d];
        linear /= sizes[d];
    }
}

static int64_t ravel(int ndim, const int64_t *sizes, const int64_t *index) {
    int64_t linear = 0, stride = 1;
    for (int d = 0; d < ndim; d++) {
        linear += index[d] * stride;
        stride *= sizes[d];
    }
    return linear;
}

/* The element of x that element number i of an array of these sizes meets when x is broadcast to it. */
static long double spread(const naive *x, int64_t i, int ndim, const int64_t *sizes) {
    int64_t index[WB_MAX_DIMS];
    unravel(i, ndim, sizes, index);
    for (int d = 0; d < x->ndim; d++)
        if (x->sizes[d] == 1) index[d] = 0;
    return x->values[ravel(x->ndim, x->sizes, index)];
}

/* ---- elementwise ---- */

static bool is_integer(wb_dtype t) { return t == WB_I32 || t == WB_I64 || t == WB_U8; }

static long double floored(long double x, long double y, bool integer) {
    if (!integer) return x - y * floorl(x / y);
    const int64_t a = (int64_t)x, b = (int64_t)y;
    if (b == 0 || b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static long double larger(long double x, long double y) {
    return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
}
static long double smaller(long double x, long double y) {
    return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
}
static long double logistic(long double x) { return 1 / (1 + expl(-x)); }
static long double softplus(long double x) { return larger(x, 0) + log1pl(expl(-fabsl(x))); }

static int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static long double unary(int op, long double x, bool integer) {
    switch (op) {
    case WB_OP_neg:
        return integer ? (long double)wrap_mul((int64_t)x, -1) : -x;
    case WB_OP_abs:
        return integer && x < 0 ? (long double)wrap_mul((int64_t)x, -1) : fabsl(x);
    case WB_OP_sign:
        return x > 0 ? 1 : x < 0 ? -1 : x;
    case WB_OP_exp:
        return expl(x);
    case WB_OP_log:
        return logl(x);
    case WB_OP_expm1:
        return expm1l(x);
    case WB_OP_log1p:
        return log1pl(x);
    case WB_OP_sqrt:
        return sqrtl(x);
    case WB_OP_rsqrt:
        return 1 / sqrtl(x);
    case WB_OP_sin:
        return sinl(x);
    case WB_OP_cos:
        return cosl(x);
    case WB_OP_tanh:
        return tanhl(x);
    case WB_OP_erf:
        return erfl(x);
    case WB_OP_sigmoid:
        return logistic(x);
    case WB_OP_softplus:
        return softplus(x);
    case WB_OP_floor:
        return floorl(x);
    case WB_OP_recip:
        return 1 / x;
    case WB_OP_square:
        return integer ? (long double)wrap_mul((int64_t)x, (int64_t)x) : x * x;
    default:
        return x == 0; /* not */
    }
}

static long double binary(int op, long double x, long double y, bool integer) {
    switch (op) {
    case WB_OP_add:
        return integer ? (long double)wrap_add((int64_t)x, (int64_t)y) : x + y;
    case WB_OP_sub:
        return integer ? (long double)wrap_add((int64_t)x, wrap_mul((int64_t)y, -1)) : x - y;
    case WB_OP_mul:
        return integer ? (long double)wrap_mul((int64_t)x, (int64_t)y) : x * y;
    case WB_OP_div:
        return x / y;
    case WB_OP_pow:
        return powl(x, y);
    case WB_OP_max:
        return larger(x, y);
    case WB_OP_min:
        return smaller(x, y);
    case WB_OP_mod:
        return floored(x, y, integer);
    case WB_OP_eq:
        return x == y;
    case WB_OP_ne:
        return x != y;
    case WB_OP_lt:
        return x < y;
    case WB_OP_le:
        return x <= y;
    case WB_OP_gt:
        return x > y;
    case WB_OP_ge:
        return x >= y;
    case WB_OP_and:
        return x != 0 && y != 0;
    default:
        return x != 0 || y != 0;
    }
}

/* Rows of one input with a parameter, from their formulas. */
static long double activation(int op, long double x, long double a) {
    const long double scale = 1.0507009873554805L, root = 0.79788456080286535588L;
    switch (op) {
    case WB_OP_relu:
        return larger(x, 0);
    case WB_OP_leakyrelu:
        return isnan(x) ? x : x > 0 ? x : a * x;
    case WB_OP_relu6:
        return smaller(larger(x, 0), a);
    case WB_OP_elu:
        return x > 0 ? x : a * expm1l(x);
    case WB_OP_celu:
        return x > 0 ? x : a * expm1l(x / a);
    case WB_OP_selu:
        return scale * (x > 0 ? x : a * expm1l(x));
    case WB_OP_gelu:
        return x / 2 * (1 + tanhl(root * (x + a * x * x * x)));
    case WB_OP_gelu_erf:
        return x / 2 * (1 + erfl(x / sqrtl(2)));
    case WB_OP_swish:
        return x * logistic(x);
    case WB_OP_hardsigmoid:
        return larger(0, smaller(1, (x + a) / (2 * a)));
    case WB_OP_hardswish:
        return x * larger(0, smaller(1, (x + a) / (2 * a)));
    case WB_OP_hardtanh:
        return larger(-a, smaller(a, x));
    case WB_OP_mish:
        return x * tanhl(softplus(x));
    case WB_OP_softsign:
        return x / (1 + fabsl(x));
    case WB_OP_logsigmoid:
        return -softplus(-x);
    case WB_OP_logcosh:
        return fabsl(x) + log1pl(expl(-2 * fabsl(x))) - logl(2);
    case WB_OP_lisht:
        return x * tanhl(x);
    case WB_OP_trelu:
        return x > a ? x : 0;
    case WB_OP_softshrink:
        return isnan(x) ? x : x > a ? x - a : x < -a ? x + a : 0;
    default:
        return x - tanhl(x); /* tanhshrink */
    }
}

/* A weak number beside a float takes its type before it is compared. */
static long double compared(const naive *x, const naive *other, long double value) {
    const bool weak = (x->node->flags & WB_NODE_WEAK) && !(other->node->flags & WB_NODE_WEAK);
    if (weak && wb_dtype_is_float(other->dtype)) return naive_round(other->dtype, value);
    if (!weak && wb_dtype_is_float(other->dtype) && !(other->node->flags & WB_NODE_WEAK))
        return naive_round(wb_promote(x->dtype, other->dtype), value);
    return value;
}

static void elementwise(naive *o, naive *const *in) {
    const wb_row *row = &wb_rows[o->node->op];
    const bool integer = is_integer(o->dtype), compares = row->type_class == WB_CLASS_COMPARE;
    for (int64_t i = 0; i < o->count; i++) {
        long double x = spread(in[0], i, o->ndim, o->sizes);
        long double y = row->arity == 2 ? spread(in[1], i, o->ndim, o->sizes) : 0;
        if (compares)
            x = compared(in[0], in[1], x), y = compared(in[1], in[0], y);
        else
            x = naive_round(o->dtype, x), y = naive_round(o->dtype, y);
        if (row->kind == WB_KIND_MACRO)
            x = activation(o->node->op, x, wb_value_of(o->node->attributes[0]));
        else
            x = row->arity == 2 ? binary(o->node->op, x, y, integer)
                                : unary(o->node->op, x, integer);
        o->values[i] = x;
    }
}

static void select_or_cast(naive *o, naive *const *in) {
    for (int64_t i = 0; i < o->count; i++) {
        const long double first = spread(in[0], i, o->ndim, o->sizes);
        o->values[i] = o->node->op == WB_OP_cast
                           ? first
                           : spread(in[first != 0 ? 1 : 2], i, o->ndim, o->sizes);
    }
}

/* ---- movement ---- */

static void move(naive *o, const naive *x) {
    const wb_array *node = o->node;
    for (int64_t i = 0; i < o->count; i++) {
        int64_t index[WB_MAX_DIMS], from[WB_MAX_DIMS] = {0};
        unravel(i, o->ndim, o->sizes, index);
        int64_t place = i;
        if (node->op == WB_OP_permute) {
            for (int d = 0; d < o->ndim; d++) from[node->attributes[0] >> (4 * d) & 15] = index[d];
            place = ravel(x->ndim, x->sizes, from);
        } else if (node->op == WB_OP_slice) {
            index[node->attributes[0]] =
                node->attributes[1] + index[node->attributes[0]] * node->attributes[2];
            place = ravel(x->ndim, x->sizes, index);
        }
        o->values[i] =
            node->op == WB_OP_expand ? spread(x, i, o->ndim, o->sizes) : x->values[place];
    }
}

/* x written into o along dimension dim, beginning at start, step apart. */
static void put(naive *o, const naive *x, int dim, int64_t start, int64_t step) {
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[WB_MAX_DIMS];
        unravel(i, x->ndim, x->sizes, index);
        index[dim] = start + index[dim] * step;
        o->values[ravel(o->ndim, o->sizes, index)] = x->values[i];
    }
}

static void join(naive *o, naive *const *in) {
    const wb_array *node = o->node;
    const int dim = (int)node->attributes[0];
    if (node->op == WB_OP_slice_put) {
        put(o, in[0], dim, node->attributes[1], node->attributes[2]);
        return;
    }
    if (node->op == WB_OP_pad)
        for (int64_t i = 0; i < o->count; i++) o->values[i] = wb_value_of(node->attributes[2]);
    int64_t start = node->op == WB_OP_pad ? node->attributes[1] : 0;
    for (int k = 0; k < node->ninputs; k++) {
        put(o, in[k], dim, start, 1);
        start += in[k]->sizes[dim];
    }
}

/* ---- reductions ---- */

/* Which row of the reduction over mask element i of x belongs to. */
static int64_t row_of(const naive *x, int64_t mask, int64_t i) {
    int64_t index[WB_MAX_DIMS], sizes[WB_MAX_DIMS];
    unravel(i, x->ndim, x->sizes, index);
    for (int d = 0; d < x->ndim; d++) {
        sizes[d] = mask >> d & 1 ? 1 : x->sizes[d];
        if (mask >> d & 1) index[d] = 0;
    }
    return ravel(x->ndim, sizes, index);
}

static void sum_rows(naive *o, const naive *x, int64_t mask) {
    const bool integer = !wb_dtype_is_float(o->dtype);
    for (int64_t i = 0; i < x->count; i++) {
        long double *to = &o->values[row_of(x, mask, i)];
        *to = integer ? (long double)wrap_add((int64_t)*to, (int64_t)x->values[i])
                      : *to + x->values[i];
    }
    if (o->node->op != WB_OP_mean) return;
    for (int64_t i = 0; i < o->count; i++)
        o->values[i] /= (long double)x->count / (long double)o->count;
}

static void largest_rows(naive *o, const naive *x, int64_t mask) {
    for (int64_t i = 0; i < o->count; i++) o->values[i] = -INFINITY;
    for (int64_t i = 0; i < x->count; i++) {
        long double *to = &o->values[row_of(x, mask, i)];
        *to = larger(*to, x->values[i]);
    }
}

static void argmax(naive *o, const naive *x, int64_t mask) {
    int dim = 0;
    while (!(mask >> dim & 1)) dim++;
    long double *best = numbers(o->count);
    for (int64_t i = 0; i < o->count; i++) o->values[i] = -1;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[WB_MAX_DIMS];
        unravel(i, x->ndim, x->sizes, index);
        const int64_t row = row_of(x, mask, i);
        const bool better =
            o->values[row] < 0 ||
            (!isnan(best[row]) && (x->values[i] > best[row] || isnan(x->values[i])));
        if (better) o->values[row] = (long double)index[dim], best[row] = x->values[i];
    }
    free(best);
}

/* logsumexp (into o), or softmax and logsoftmax, of rows; infinities as limits. */
static void soft_rows(naive *o, const naive *x, int64_t mask) {
    const int op = o->node->op;
    long double *largest = numbers(x->count), *sum = numbers(x->count);
    for (int64_t i = 0; i < x->count; i++) largest[i] = -INFINITY;
    for (int64_t i = 0; i < x->count; i++)
        largest[row_of(x, mask, i)] = larger(largest[row_of(x, mask, i)], x->values[i]);
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t row = row_of(x, mask, i);
        sum[row] += x->values[i] == largest[row] ? 1 : expl(x->values[i] - largest[row]);
    }
    for (int64_t i = 0; i < (op == WB_OP_logsumexp ? o->count : x->count); i++) {
        const int64_t row = op == WB_OP_logsumexp ? i : row_of(x, mask, i);
        const long double distance = x->values[i] == largest[row] ? 0 : x->values[i] - largest[row];
        o->values[i] = op == WB_OP_softmax      ? expl(distance) / sum[row]
                       : op == WB_OP_logsoftmax ? distance - logl(sum[row])
                                                : largest[row] + logl(sum[row]);
    }
    free(largest);
    free(sum);
}

/* ---- contractions ---- */

static void matmul(naive *o, const naive *a, const naive *b) {
    const bool ta = o->node->attributes[0] & 1, tb = o->node->attributes[0] & 2;
    const int64_t inner = a->sizes[ta ? 0 : 1];
    for (int64_t i = 0; i < o->count; i++) {
        int64_t at[WB_MAX_DIMS], pa[WB_MAX_DIMS], pb[WB_MAX_DIMS];
        unravel(i, o->ndim, o->sizes, at);
        for (int d = 0; d < WB_MAX_DIMS; d++) {
            pa[d] = d < a->ndim && a->sizes[d] == 1 ? 0 : at[d];
            pb[d] = d < b->ndim && b->sizes[d] == 1 ? 0 : at[d];
        }
        for (int64_t k = 0; k < inner; k++) {
            pa[0] = ta ? k : at[0], pa[1] = ta ? at[0] : k;
            pb[0] = tb ? at[1] : k, pb[1] = tb ? k : at[1];
            o->values[i] +=
                a->values[ravel(a->ndim, a->sizes, pa)] * b->values[ravel(b->ndim, b->sizes, pb)];
        }
    }
}

/* Windows: calls visit(context, place in x, place in y, tap) for each place of y and each tap that meets x; spatial places. */
typedef struct window_walk {
    wb_window_geometry w;
    int64_t x_sizes[3], y_sizes[3], taps, x_count, y_count;
} window_walk;

static window_walk walk_of(const wb_array *node, const naive *x, const naive *y) {
    window_walk k = {.w = wb_window_of(node), .taps = 1, .x_count = 1, .y_count = 1};
    for (int i = 0; i < 3; i++) {
        const bool used = i < k.w.nspatial;
        k.x_sizes[i] = used ? x->sizes[i] : 1;
        const int64_t reach = k.w.dilation[i] * (k.w.kernel[i] - 1) + 1;
        k.y_sizes[i] =
            !used ? 1
            : y   ? y->sizes[i]
                  : (x->sizes[i] + 2 * k.w.pad[i] + k.w.pad_more[i] - reach) / k.w.stride[i] + 1;
        k.taps *= k.w.kernel[i], k.x_count *= k.x_sizes[i], k.y_count *= k.y_sizes[i];
    }
    return k;
}

/* The spatial place of x under tap t of place p of y; -1: in the padding. */
static int64_t place_under(const window_walk *k, int64_t p, int64_t t) {
    int64_t at[WB_MAX_DIMS], tap[WB_MAX_DIMS], x[3];
    unravel(p, 3, k->y_sizes, at);
    unravel(t, 3, k->w.kernel, tap);
    for (int i = 0; i < 3; i++) {
        x[i] = at[i] * k->w.stride[i] + tap[i] * k->w.dilation[i] - k->w.pad[i];
        if (x[i] < 0 || x[i] >= k->x_sizes[i]) return -1;
    }
    return ravel(3, k->x_sizes, x);
}

enum { TO_Y, TO_X, TO_W };

static void convolve(int to, const wb_array *node, naive *x, naive *w, naive *y) {
    const window_walk k = walk_of(node, x, y);
    const int s = k.w.nspatial;
    const int64_t channels = x->sizes[s], per_group = channels / k.w.groups, filters = y->sizes[s],
                  batch = x->sizes[s + 1];
    for (int64_t n = 0; n < batch; n++)
        for (int64_t f = 0; f < filters; f++)
            for (int64_t c = 0; c < per_group; c++)
                for (int64_t p = 0; p < k.y_count; p++)
                    for (int64_t t = 0; t < k.taps; t++) {
                        const int64_t place = place_under(&k, p, t);
                        if (place < 0) continue;
                        const int64_t channel = f / (filters / k.w.groups) * per_group + c;
                        const int64_t tap = k.w.flip ? k.taps - 1 - t : t;
                        long double *xv = &x->values[place + k.x_count * (channel + channels * n)];
                        long double *wv = &w->values[tap + k.taps * (c + per_group * f)];
                        long double *yv = &y->values[p + k.y_count * (f + filters * n)];
                        if (to == TO_Y)
                            *yv += *xv * *wv;
                        else if (to == TO_X)
                            *xv += *yv * *wv;
                        else
                            *wv += *xv * *yv;
                    }
}

static int64_t planes_of(const naive *x, int nspatial) {
    return x->sizes[nspatial] * x->sizes[nspatial + 1];
}

static void maxpool(naive *o, const naive *x) {
    const window_walk k = walk_of(o->node, x, o);
    o->results[1] = numbers(o->count);
    for (int64_t c = 0; c < planes_of(x, k.w.nspatial); c++)
        for (int64_t p = 0; p < k.y_count; p++) {
            int64_t best = -1;
            for (int64_t place = 0; place < k.x_count; place++) { /* memory order */
                bool inside = false;
                for (int64_t t = 0; t < k.taps && !inside; t++)
                    inside = place_under(&k, p, t) == place;
                if (!inside) continue;
                const long double v = x->values[place + k.x_count * c],
                                  b = best < 0 ? 0 : x->values[best + k.x_count * c];
                if (best < 0 || (!isnan(b) && (v > b || isnan(v)))) best = place;
            }
            o->values[p + k.y_count * c] = best < 0 ? -INFINITY : x->values[best + k.x_count * c];
            o->results[1][p + k.y_count * c] = (long double)best;
        }
}

static void pool_scatter(naive *x, const naive *y, const naive *index) {
    const int s = x->ndim - 2;
    const int64_t y_plane = y->count / (planes_of(y, s) ? planes_of(y, s) : 1);
    const int64_t x_plane = x->count / (planes_of(x, s) ? planes_of(x, s) : 1);
    for (int64_t i = 0; i < y->count; i++)
        x->values[i / y_plane * x_plane + (int64_t)index->values[i]] += y->values[i];
}

static void pool_gather(naive *y, const naive *x, const naive *index) {
    const int s = x->ndim - 2;
    const int64_t y_plane = y->count / (planes_of(y, s) ? planes_of(y, s) : 1);
    const int64_t x_plane = x->count / (planes_of(x, s) ? planes_of(x, s) : 1);
    for (int64_t i = 0; i < y->count; i++)
        y->values[i] = x->values[i / y_plane * x_plane + (int64_t)index->values[i]];
}

static void mean_windows(bool backwards, const wb_array *node, naive *x, naive *y) {
    const window_walk k = walk_of(node, x, y);
    for (int64_t c = 0; c < planes_of(x, k.w.nspatial); c++)
        for (int64_t p = 0; p < k.y_count; p++)
            for (int64_t t = 0; t < k.taps; t++) {
                const int64_t place = place_under(&k, p, t);
                if (place < 0) continue;
                long double *xv = &x->values[place + k.x_count * c],
                            *yv = &y->values[p + k.y_count * c];
                if (backwards)
                    *xv += *yv / (long double)k.taps;
                else
                    *yv += *xv / (long double)k.taps;
            }
}

/* columns (places of y, taps of each channel, batch) */
static void unfold(bool backwards, const wb_array *node, naive *x, naive *columns) {
    const window_walk k = walk_of(node, x, NULL);
    for (int64_t c = 0; c < planes_of(x, k.w.nspatial); c++)
        for (int64_t t = 0; t < k.taps; t++)
            for (int64_t p = 0; p < k.y_count; p++) {
                const int64_t place = place_under(&k, p, t);
                const int64_t tap = k.w.flip ? k.taps - 1 - t : t;
                long double *to = &columns->values[p + k.y_count * (tap + k.taps * c)];
                if (place < 0) continue;
                if (backwards)
                    x->values[place + k.x_count * c] += *to;
                else
                    *to = x->values[place + k.x_count * c];
            }
}

/* ---- indexing ---- */

static void gather(naive *o, const naive *x, const naive *index) {
    const int dim = (int)o->node->attributes[0];
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < dim; d++) inner *= x->sizes[d];
    for (int d = dim + 1; d < x->ndim; d++) outer *= x->sizes[d];
    for (int64_t q = 0; q < outer; q++)
        for (int64_t p = 0; p < index->count; p++)
            for (int64_t i = 0; i < inner; i++)
                o->values[i + inner * (p + index->count * q)] =
                    x->values[i + inner * ((int64_t)index->values[p] + x->sizes[dim] * q)];
}

static void scatter_add(naive *o, const naive *base, const naive *index, const naive *updates) {
    const int dim = (int)o->node->attributes[0];
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < dim; d++) inner *= o->sizes[d];
    for (int d = dim + 1; d < o->ndim; d++) outer *= o->sizes[d];
    for (int64_t i = 0; i < o->count; i++) o->values[i] = base->values[i];
    for (int64_t q = 0; q < outer; q++)
        for (int64_t p = 0; p < index->count; p++)
            for (int64_t i = 0; i < inner; i++)
                o->values[i + inner * ((int64_t)index->values[p] + o->sizes[dim] * q)] +=
                    updates->values[i + inner * (p + index->count * q)];
}

/* ---- sources, leaves, optimisers ---- */

static void source(naive *o) {
    const wb_array *x = o->node;
    for (int64_t i = 0; i < o->count; i++) {
        int64_t index[WB_MAX_DIMS];
        unravel(i, o->ndim, o->sizes, index);
        o->values[i] = x->op == WB_OP_full   ? wb_value_of(x->attributes[0])
                       : x->op == WB_OP_late ? wb_value_of(x->late[0])
                                             : (long double)index[x->attributes[0]];
    }
}

static void read_memory(naive *o, wb_array *x) {
    double *list = malloc(((size_t)o->count + 1) * sizeof *list);
    assert_non_null(list);
    assert_int_equal(wb_read_f64(x, list, o->count), WB_OK);
    for (int64_t i = 0; i < o->count; i++) o->values[i] = list[i];
    free(list);
}

static bool guard_is_false(const naive *guard) { return guard && guard->values[0] == 0; }

static void adam(naive *o, naive *const *in) {
    const wb_array *node = o->node;
    const long double beta1 = wb_value_of(node->attributes[0]),
                      beta2 = wb_value_of(node->attributes[1]);
    const naive *decay = node->attributes[3] & 2 ? in[6] : NULL;
    const naive *guard = node->attributes[3] & 1 ? in[decay ? 7 : 6] : NULL;
    o->results[1] = numbers(o->count), o->results[2] = numbers(o->count);
    for (int64_t i = 0; i < o->count; i++) {
        const long double g = in[1]->values[i], p = in[0]->values[i];
        const long double m = beta1 * in[2]->values[i] + (1 - beta1) * g,
                          v = beta2 * in[3]->values[i] + (1 - beta2) * g * g;
        const long double root = sqrtl(v * in[5]->values[0]) + wb_value_of(node->attributes[2]);
        const long double step = m * in[4]->values[0] / root + (decay ? p * decay->values[0] : 0);
        const bool kept = guard_is_false(guard);
        o->values[i] = kept ? p : p - step;
        o->results[1][i] = kept ? in[2]->values[i] : m,
        o->results[2][i] = kept ? in[3]->values[i] : v;
    }
}

static void momentum(naive *o, naive *const *in) {
    const naive *guard = o->node->attributes[1] ? in[4] : NULL;
    o->results[1] = numbers(o->count);
    for (int64_t i = 0; i < o->count; i++) {
        const long double v = wb_value_of(o->node->attributes[0]) * in[2]->values[i] +
                              in[3]->values[0] * in[1]->values[i];
        o->values[i] = guard_is_false(guard) ? in[0]->values[i] : in[0]->values[i] - v;
        o->results[1][i] = guard_is_false(guard) ? in[2]->values[i] : v;
    }
}

static void descent(naive *o, naive *const *in) {
    const naive *guard = o->node->attributes[0] ? in[3] : NULL;
    for (int64_t i = 0; i < o->count; i++)
        o->values[i] =
            in[0]->values[i] - (guard_is_false(guard) ? 0 : in[2]->values[0] * in[1]->values[i]);
}

/* ---- the walk ---- */

static void compute(naive *o, naive *const *in, wb_array *x) {
    const int64_t mask = x->attributes[0];
    switch (x->op) {
    case WB_OP_data:
    case WB_OP_uniform:
    case WB_OP_normal:
        read_memory(o, x);
        break;
    case WB_OP_full:
    case WB_OP_late:
    case WB_OP_iota:
        source(o);
        break;
    case WB_OP_select:
    case WB_OP_cast:
        select_or_cast(o, in);
        break;
    case WB_OP_stop_gradient:
    case WB_OP_reshape:
    case WB_OP_permute:
    case WB_OP_slice:
    case WB_OP_expand:
        move(o, in[0]);
        break;
    case WB_OP_slice_put:
    case WB_OP_pad:
    case WB_OP_concat:
        join(o, in);
        break;
    case WB_OP_sum:
    case WB_OP_mean:
        sum_rows(o, in[0], mask);
        break;
    case WB_OP_max_reduce:
        largest_rows(o, in[0], mask);
        break;
    case WB_OP_argmax:
        argmax(o, in[0], mask);
        break;
    case WB_OP_logsumexp:
    case WB_OP_softmax:
    case WB_OP_logsoftmax:
        soft_rows(o, in[0], mask);
        break;
    case WB_OP_matmul:
        matmul(o, in[0], in[1]);
        break;
    case WB_OP_conv_forward:
        convolve(TO_Y, x, in[0], in[1], o);
        break;
    case WB_OP_conv_data:
        convolve(TO_X, x, o, in[1], in[0]);
        break;
    case WB_OP_conv_filter:
        convolve(TO_W, x, in[0], o, in[1]);
        break;
    case WB_OP_maxpool:
        maxpool(o, in[0]);
        break;
    case WB_OP_pool_scatter:
        pool_scatter(o, in[0], in[1]);
        break;
    case WB_OP_pool_gather:
        pool_gather(o, in[0], in[1]);
        break;
    case WB_OP_meanpool:
        mean_windows(false, x, in[0], o);
        break;
    case WB_OP_meanpool_data:
        mean_windows(true, x, o, in[0]);
        break;
    case WB_OP_unfold:
        unfold(false, x, in[0], o);
        break;
    case WB_OP_fold:
        unfold(true, x, o, in[0]);
        break;
    case WB_OP_gather:
        gather(o, in[0], in[1]);
        break;
    case WB_OP_scatter_add:
        scatter_add(o, in[0], in[1], in[2]);
        break;
    case WB_OP_adam:
        adam(o, in);
        break;
    case WB_OP_momentum:
        momentum(o, in);
        break;
    case WB_OP_descent:
        descent(o, in);
        break;
    case WB_OP_part:
        for (int64_t i = 0; i < o->count; i++) o->values[i] = in[0]->results[x->attributes[0]][i];
        break;
    default:
        elementwise(o, in);
        break;
    }
}

const naive *naive_of(naive_table *table, wb_array *x) {
    naive **bucket = bucket_of(table, x);
    for (naive *n = *bucket; n; n = n->next)
        if (n->node == x) return n;
    naive *in[64] = {NULL};
    assert_true(x->ninputs <= 64);
    for (int k = 0; k < x->ninputs; k++) in[k] = (naive *)(uintptr_t)naive_of(table, x->inputs[k]);
    naive *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->node = x, o->dtype = (wb_dtype)x->dtype, o->ndim = x->ndim, o->count = wb_count(x);
    for (int d = 0; d < x->ndim; d++) o->sizes[d] = x->sizes[d];
    o->values = o->results[0] = numbers(o->count);
    compute(o, in, x);
    for (int r = 0; r < NAIVE_RESULTS; r++)
        for (int64_t i = 0; o->results[r] && i < o->count; i++)
            if (r == 0 || x->op != WB_OP_maxpool)
                o->results[r][i] = naive_round(o->dtype, o->results[r][i]);
    o->next = *bucket;
    return *bucket = o;
}

static void dump_node(naive_table *table, wb_array *x, int depth) {
    const naive *n = naive_of(table, x);
    print_error("%*s%s %s %s [", 2 * depth, "", wb_op_name((wb_op)x->op), wb_dtype_name(n->dtype),
                wb_text_of(x));
    for (int64_t i = 0; i < n->count && i < 6; i++) print_error(" %.6Lg", n->values[i]);
    print_error(" ]%s\n", wb_is_evaluated(x) ? " evaluated" : "");
    for (int k = 0; k < x->ninputs; k++) dump_node(table, x->inputs[k], depth + 1);
}

void naive_dump(naive_table *table, wb_array *x) {
    if (getenv("WEBER_TEST_DUMP")) dump_node(table, x, 0);
}

void assert_as_naive(naive_table *table, wb_array *x, double tolerance, const char *what) {
    const naive *n = naive_of(table, x);
    double *list = malloc(((size_t)n->count + 1) * sizeof *list);
    assert_non_null(list);
    if (wb_read_f64(x, list, n->count) != WB_OK) fail_msg("%s: %s", what, wb_error_message());
    double largest = 0; /* sums of large numbers that cancel are not better than these */
    for (int64_t i = 0; i < n->count; i++)
        if (isfinite(n->values[i])) largest = fmax(largest, fabs((double)n->values[i]));
    for (int64_t i = 0; i < n->count; i++) {
        const double wanted = (double)n->values[i],
                     allowed = tolerance * (1 + fabs(wanted) + largest / 16);
        const bool same = isnan(wanted)   ? isnan(list[i])
                          : isinf(wanted) ? list[i] == wanted
                                          : fabs(list[i] - wanted) <= allowed;
        if (!same) naive_dump(table, x);
        if (!same)
            fail_msg("%s: element %lld of %s %s is %.17g, the reference says %.17g", what,
                     (long long)i, wb_op_name((wb_op)x->op), wb_text_of(x), list[i], wanted);
    }
    free(list);
}
