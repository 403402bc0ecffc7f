/* The reference's elementwise operations, from their formulas. */
#include <math.h>

#include "ops/ops.h"
#include "support/naive_rules.h"

static bool is_integer(wb_dtype t) { return t == WB_I32 || t == WB_I64 || t == WB_U8; }

static long double floored(long double x, long double y, bool integer) {
    if (!integer) {
        const long double left = fmodl(x, y);
        return left != 0 && (left < 0) != (y < 0) ? left + y : left;
    }
    const int64_t a = (int64_t)x, b = (int64_t)y;
    if (b == 0 || b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static long double smaller(long double x, long double y) {
    return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
}
static long double logistic(long double x) { return 1 / (1 + expl(-x)); }
static long double softplus(long double x) { return naive_larger(x, 0) + log1pl(expl(-fabsl(x))); }

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
    case WB_OP_softsign:
        return isinf(x) ? copysignl(1, x) : x / (1 + fabsl(x));
    case WB_OP_floor:
        return floorl(x);
    case WB_OP_ceil:
        return ceill(x);
    case WB_OP_trunc:
        return truncl(x);
    case WB_OP_round:
        return rintl(x);
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
        return integer ? (long double)naive_wrap_add((int64_t)x, (int64_t)y) : x + y;
    case WB_OP_excess:
        return x == y ? 0 : x - y;
    case WB_OP_sub:
        return integer ? (long double)naive_wrap_add((int64_t)x, wrap_mul((int64_t)y, -1)) : x - y;
    case WB_OP_mul:
        return integer ? (long double)wrap_mul((int64_t)x, (int64_t)y) : x * y;
    case WB_OP_mul_no_nan:
        return y == 0 ? 0 : x * y;
    case WB_OP_div:
        return x / y;
    case WB_OP_pow:
        return powl(x, y);
    case WB_OP_max:
        return naive_larger(x, y);
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

static long double mul_no_nan(long double x, long double y) { return y == 0 ? 0 : x * y; }

/* Rows of one input with a parameter, from their formulas. */
static long double activation(int op, long double x, long double a) {
    const long double scale = 1.0507009873554805L, root = 0.79788456080286535588L;
    switch (op) {
    case WB_OP_relu:
        return naive_larger(x, 0);
    case WB_OP_leakyrelu:
        return isnan(x) ? x : x > 0 ? x : a * x;
    case WB_OP_relu6:
        return smaller(naive_larger(x, 0), a);
    case WB_OP_elu:
        return x > 0 ? x : a * expm1l(x);
    case WB_OP_celu:
        return x > 0 ? x : a * expm1l(x / a);
    case WB_OP_selu:
        return scale * (x > 0 ? x : a * expm1l(x));
    case WB_OP_gelu:
        return mul_no_nan(x / 2, 1 + tanhl(root * (x + a * x * x * x)));
    case WB_OP_gelu_erf:
        return mul_no_nan(x / 2, 1 + erfl(x / sqrtl(2)));
    case WB_OP_swish:
        return mul_no_nan(x, logistic(x));
    case WB_OP_hardsigmoid:
        return naive_larger(0, smaller(1, (x + a) / (2 * a)));
    case WB_OP_hardswish:
        return mul_no_nan(x, naive_larger(0, smaller(1, (x + a) / (2 * a))));
    case WB_OP_hardtanh:
        return naive_larger(-a, smaller(a, x));
    case WB_OP_mish:
        return mul_no_nan(x, tanhl(softplus(x)));
    case WB_OP_logsigmoid:
        return -softplus(-x);
    case WB_OP_logcosh:
        return fabsl(x) + log1pl(expl(-2 * fabsl(x))) - logl(2);
    case WB_OP_lisht:
        return x * tanhl(x);
    case WB_OP_trelu:
        return x <= a ? 0 : x;
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

void naive_elementwise(naive *o, naive *const *in) {
    const wb_op_row *row = &wb_op_rows[o->node->op];
    const bool integer = is_integer(o->dtype), compares = row->type_class == WB_CLASS_COMPARE;
    for (int64_t i = 0; i < o->count; i++) {
        long double x = naive_spread(in[0], i, o->ndim, o->sizes);
        long double y = row->arity == 2 ? naive_spread(in[1], i, o->ndim, o->sizes) : 0;
        if (compares)
            x = compared(in[0], in[1], x), y = compared(in[1], in[0], y);
        else
            x = naive_round(o->dtype, x), y = naive_round(o->dtype, y);
        if (row->expand)
            x = activation(o->node->op, x, o->node->attributes.number.value);
        else
            x = row->arity == 2 ? binary(o->node->op, x, y, integer)
                                : unary(o->node->op, x, integer);
        o->values[i] = x;
    }
}

void naive_select_or_cast(naive *o, naive *const *in) {
    for (int64_t i = 0; i < o->count; i++) {
        const long double first = naive_spread(in[0], i, o->ndim, o->sizes);
        o->values[i] = o->node->op == WB_OP_cast
                           ? first
                           : naive_spread(in[first != 0 ? 1 : 2], i, o->ndim, o->sizes);
    }
}
