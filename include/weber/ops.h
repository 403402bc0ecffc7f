/* weber/ops.h: the operations.
 *
 * Elementwise operations broadcast as in Julia: sizes agree or are 1, and missing trailing
 * dimensions count as 1. The type of the result is wb_promote of the inputs' types. NULL in, NULL
 * out.
 *
 * A C number (a wb_number, or a double argument of a function) has no element type. It is stored as
 * a double, so integers up to 2^53 are exact; larger ones are i64 arrays (wb_whole_number).
 * Together with a floating array it is rounded to the array's type. Together with an integer array
 * (u8, i32, i64; bool counts as i64):
 *
 *   - a number with a fraction, an infinity or NaN makes the result f32, as an f32 array would;
 *   - a number without a fraction keeps the array's type. In arithmetic, and where it is stored
 *     (select, full, pad, slice_set), it is WB_ERROR_ARGUMENT if it is outside the type's range: u8
 *     and 300, or -1;
 *   - comparisons (eq to ge) use its exact value, fractions too: no u8 is below -1. So do bounds
 *     (max, min, clamp): wb_clamp(x, -1, 300) changes no u8. But it is an error if the result would
 *     be a bound outside the type's range, as in wb_max(x, wb_number(300)) for u8;
 *   - a wb_late, or a number computed from numbers only, may have any value: the result is f32.
 *
 *     wb_array *y = wb_tanh(wb_add(wb_matmul(W, x), b));
 *     wb_array *l = wb_mean(wb_square(wb_sub(y, t)));
 *
 * The table of operations, with formulas, is weber/ops.def; docs/operations.md shows it. */
#ifndef WEBER_OPS_H
#define WEBER_OPS_H

#include "array.h"
#include "calls.h"

#ifdef __cplusplus
extern "C" {
#endif

/* wb_neg wb_abs wb_sign wb_exp wb_log wb_expm1 wb_log1p wb_sqrt wb_rsqrt wb_sin wb_cos wb_tanh
 * wb_erf wb_sigmoid wb_softplus wb_softsign wb_floor wb_ceil wb_trunc wb_round wb_recip wb_square
 * wb_not: of one array. wb_add wb_sub wb_excess wb_mul wb_mul_no_nan wb_div wb_pow wb_max wb_min
 * wb_mod, wb_eq wb_ne wb_lt wb_le wb_gt wb_ge, wb_and wb_or: of two. wb_relu wb_leakyrelu wb_relu6
 * wb_elu wb_celu wb_selu wb_gelu wb_gelu_erf wb_swish wb_hardsigmoid wb_hardswish wb_hardtanh
 * wb_mish wb_logsigmoid wb_logcosh wb_lisht wb_trelu wb_softshrink wb_tanhshrink: activations;
 * those with a parameter have a second form, wb_elu_with(x, a). At infinity activations and their
 * derivatives have the values of their limits. */
#define WB_UNARY(name, class, text, dx, lo, hi, doc) WB_API wb_array *wb_##name(wb_array *x);
#define WB_BINARY(name, class, text, dx, dy, lo, hi, doc)                                          \
    WB_API wb_array *(wb_##name)(wb_array * x, wb_array * y);
#define WB_MACRO(name, class, a_default, expansion, dx, lo, hi, doc)                               \
    WB_API wb_array *wb_##name(wb_array *x);                                                       \
    WB_API wb_array *wb_##name##_with(wb_array *x, double a);
#include "ops.def"

/* Returns x; for use as an activation. */
WB_API wb_array *wb_identity(wb_array *x);

/* The elements of yes where condition (bool) is true, else those of no. If yes and no are both
 * numbers (wb_number), the result is f64, or f32 on a device without f64. */
WB_API wb_array *wb_select(wb_array *condition, wb_array *yes, wb_array *no);

/* x + c, x - c, x c, x / c, x^c with a constant c; c - x, c / x, c^x. */
WB_API wb_array *wb_add_number(wb_array *x, double c);
WB_API wb_array *wb_sub_number(wb_array *x, double c);
WB_API wb_array *wb_mul_number(wb_array *x, double c);
WB_API wb_array *wb_div_number(wb_array *x, double c);
WB_API wb_array *wb_pow_number(wb_array *x, double c);
WB_API wb_array *wb_number_sub(double c, wb_array *x);
WB_API wb_array *wb_number_div(double c, wb_array *x);
WB_API wb_array *wb_number_pow(double c, wb_array *x);

/* In C11 operands may be C numbers, on either side: wb_add(x, 1), wb_sub(1, x), wb_max(x, 0) are
 * wb_add(x, wb_number(1)) and so on, long and long long by wb_whole_number; wb_and and wb_or take a
 * number as true if it differs from 0. Complex numbers and pointers to anything but an array do not
 * compile. In C99 and C++, and through a pointer to the function, operands are arrays. */
#if !defined(__cplusplus) && __STDC_VERSION__ >= 201112L
static inline wb_array *wb_operand_(wb_array *x) { return x; }
static inline wb_array *wb_unsigned_(unsigned long long x) {
    return x <= INT64_MAX ? wb_whole_number((int64_t)x) : wb_number((double)x);
}
#define WB_OPERAND(x)                                                                              \
    _Generic((x), wb_array * : wb_operand_, void * : wb_operand_, float _Complex : wb_operand_,    \
             double _Complex : wb_operand_, long double _Complex : wb_operand_,                    \
             long : wb_whole_number, long long : wb_whole_number, unsigned long : wb_unsigned_,    \
             unsigned long long : wb_unsigned_, default : wb_number)(x)
/* Only whether a number is 0 matters, and a double tells that of any number. */
#define WB_TRUTH_(x)                                                                               \
    _Generic((x), wb_array * : wb_operand_, void * : wb_operand_, float _Complex : wb_operand_,    \
             double _Complex : wb_operand_, long double _Complex : wb_operand_,                    \
             default : wb_number)(x)
#define wb_add(x, y)                  wb_add(WB_OPERAND(x), WB_OPERAND(y))
#define wb_sub(x, y)                  wb_sub(WB_OPERAND(x), WB_OPERAND(y))
#define wb_excess(x, y)               wb_excess(WB_OPERAND(x), WB_OPERAND(y))
#define wb_mul(x, y)                  wb_mul(WB_OPERAND(x), WB_OPERAND(y))
#define wb_mul_no_nan(x, y)           wb_mul_no_nan(WB_OPERAND(x), WB_OPERAND(y))
#define wb_div(x, y)                  wb_div(WB_OPERAND(x), WB_OPERAND(y))
#define wb_pow(x, y)                  wb_pow(WB_OPERAND(x), WB_OPERAND(y))
#define wb_max(x, y)                  wb_max(WB_OPERAND(x), WB_OPERAND(y))
#define wb_min(x, y)                  wb_min(WB_OPERAND(x), WB_OPERAND(y))
#define wb_mod(x, y)                  wb_mod(WB_OPERAND(x), WB_OPERAND(y))
#define wb_eq(x, y)                   wb_eq(WB_OPERAND(x), WB_OPERAND(y))
#define wb_ne(x, y)                   wb_ne(WB_OPERAND(x), WB_OPERAND(y))
#define wb_lt(x, y)                   wb_lt(WB_OPERAND(x), WB_OPERAND(y))
#define wb_le(x, y)                   wb_le(WB_OPERAND(x), WB_OPERAND(y))
#define wb_gt(x, y)                   wb_gt(WB_OPERAND(x), WB_OPERAND(y))
#define wb_ge(x, y)                   wb_ge(WB_OPERAND(x), WB_OPERAND(y))
#define wb_and(x, y)                  wb_and(WB_TRUTH_(x), WB_TRUTH_(y))
#define wb_or(x, y)                   wb_or(WB_TRUTH_(x), WB_TRUTH_(y))
#define wb_select(condition, yes, no) wb_select(condition, WB_OPERAND(yes), WB_OPERAND(no))
#define wb_slice_set(x, y, dim, start, stop, step)                                                 \
    wb_slice_set(x, WB_OPERAND(y), dim, start, stop, step)
#endif

/* x clamped to low ... high; NaN stays NaN. An infinite bound means no bound; for integers, bounds
 * count by value (top of this file). The gradient passes where low <= x <= high. Fails with
 * WB_ERROR_ARGUMENT unless low <= high. */
WB_API wb_array *wb_clamp(wb_array *x, double low, double high);

/* bool: whether each element is NaN, infinite, or neither; integers are always finite. */
WB_API wb_array *wb_isnan(wb_array *x);
WB_API wb_array *wb_isinf(wb_array *x);
WB_API wb_array *wb_isfinite(wb_array *x);

/* x log x, and x log y; 0 where x is 0 (unless y is NaN). */
WB_API wb_array *wb_xlogx(wb_array *x);
WB_API wb_array *wb_xlogy(wb_array *x, wb_array *y);

/* x above 0, a x below. In training (wb_training, wb_withgradient) a is drawn from [low, high) for
 * each element; otherwise a is (low + high) / 2. wb_rrelu has NNlib's bounds, 1/8 and 1/3. Fails
 * with WB_ERROR_ARGUMENT unless low <= high, both finite. (Xu et al. 2015) */
WB_API wb_array *wb_rrelu(wb_array *x);
WB_API wb_array *wb_rrelu_with(wb_array *x, double low, double high);

/* The first half of x along dim times the sigmoid of the second half; wb_glu: along dimension 0.
 * Fails with WB_ERROR_SHAPE if the size along dim is odd. (Dauphin et al. 2017) */
WB_API wb_array *wb_glu(wb_array *x);
WB_API wb_array *wb_glu_dim(wb_array *x, int dim);

/* ---- reductions ---- */

/* Over all elements, with a result without dimensions; or along dimensions, which keep size 1
 * (Julia's dims =): wb_sum_dims(x, 0, 2). Sums of integers and bool are i64, means are floating.
 * The maximum or minimum of no elements is an error. wb_var is the sum of squared distances from
 * the mean divided by n, or by n - 1 if corrected (NaN for n = 1, as in NumPy and PyTorch). It
 * takes two passes, of which the second corrects the rounded mean, so that the variance of equal
 * numbers is 0. */
WB_API wb_array *wb_sum(wb_array *x);
WB_API wb_array *wb_maximum(wb_array *x);
WB_API wb_array *wb_minimum(wb_array *x);
WB_API wb_array *wb_mean(wb_array *x);
WB_API wb_array *wb_var(wb_array *x, bool corrected);
#define wb_sum_dims(x, ...)            wb_sum_make(x, WB_INTS(__VA_ARGS__))
#define wb_maximum_dims(x, ...)        wb_maximum_make(x, WB_INTS(__VA_ARGS__))
#define wb_minimum_dims(x, ...)        wb_minimum_make(x, WB_INTS(__VA_ARGS__))
#define wb_mean_dims(x, ...)           wb_mean_make(x, WB_INTS(__VA_ARGS__))
#define wb_var_dims(x, corrected, ...) wb_var_make(x, corrected, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_sum_make(wb_array *x, int ndim, const int64_t *dims);
WB_API wb_array *wb_maximum_make(wb_array *x, int ndim, const int64_t *dims);
WB_API wb_array *wb_minimum_make(wb_array *x, int ndim, const int64_t *dims);
WB_API wb_array *wb_mean_make(wb_array *x, int ndim, const int64_t *dims);
WB_API wb_array *wb_var_make(wb_array *x, bool corrected, int ndim, const int64_t *dims);

/* Standard deviation: the square root of wb_var. The gradient is 0 where the result is 0. */
WB_API wb_array *wb_std(wb_array *x, bool corrected);
#define wb_std_dims(x, corrected, ...) wb_std_make(x, corrected, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_std_make(wb_array *x, bool corrected, int ndim, const int64_t *dims);

/* Products; 1 for no elements. Integers and bool give i64. Computed pairwise: the first n / 2
 * numbers times the second n / 2, and so on; a number left over is multiplied at the end. The
 * gradient is taken through these products, so it is also right where numbers are 0. */
WB_API wb_array *wb_prod(wb_array *x);
#define wb_prod_dims(x, ...) wb_prod_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_prod_make(wb_array *x, int ndim, const int64_t *dims);

/* bool: wb_any is true if at least one element differs from 0, wb_all if all elements do (of no
 * elements: false, true). A NaN differs from 0. */
WB_API wb_array *wb_any(wb_array *x);
WB_API wb_array *wb_all(wb_array *x);
#define wb_any_dims(x, ...) wb_any_make(x, WB_INTS(__VA_ARGS__))
#define wb_all_dims(x, ...) wb_all_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_any_make(wb_array *x, int ndim, const int64_t *dims);
WB_API wb_array *wb_all_make(wb_array *x, int ndim, const int64_t *dims);

/* Norm of order p, of the elements as one vector: (sum of |x|^p)^(1 / p). p INFINITY: the largest
 * |x|; -INFINITY: the smallest; 0: how many elements differ from 0. Integers are converted to f32,
 * f16 and bf16 are added in f32; of no elements the norm is 0. Where powers would overflow or
 * underflow, x is first divided by the largest |x| (for p < 0 by the smallest): the 2-norm of
 * (1e20, 1) is 1e20. For |p| >= 2^30 (f64: 2^60) it equals the norm of p = +-INFINITY to the last
 * digit. The gradient is 0 where x or the norm is 0. Fails with WB_ERROR_ARGUMENT if p is NaN. */
WB_API wb_array *wb_norm(wb_array *x, double p);
#define wb_norm_dims(x, p, ...) wb_norm_make(x, p, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_norm_make(wb_array *x, double p, int ndim, const int64_t *dims);

/* Sum of x y, a number without dimensions; i64 for integers. Fails with WB_ERROR_SHAPE unless the
 * sizes are equal: nothing is broadcast. */
WB_API wb_array *wb_dot(wb_array *x, wb_array *y);

/* Position (i64, from 0) of the first largest or smallest element along dim, which keeps size 1; if
 * there is a NaN, the position of the first one. */
WB_API wb_array *wb_argmax(wb_array *x, int dim);
WB_API wb_array *wb_argmin(wb_array *x, int dim);

/* Along dimension 0, or the given ones. Infinities are treated as limits: softmax of (3, inf) is
 * (0, 1). */
WB_API wb_array *wb_softmax(wb_array *x);
WB_API wb_array *wb_logsoftmax(wb_array *x);
WB_API wb_array *wb_logsumexp(wb_array *x);
#define wb_softmax_dims(x, ...)    wb_softmax_make(x, WB_INTS(__VA_ARGS__))
#define wb_logsoftmax_dims(x, ...) wb_logsoftmax_make(x, WB_INTS(__VA_ARGS__))
#define wb_logsumexp_dims(x, ...)  wb_logsumexp_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_softmax_make(wb_array *x, int ndim, const int64_t *dims);
WB_API wb_array *wb_logsoftmax_make(wb_array *x, int ndim, const int64_t *dims);
WB_API wb_array *wb_logsumexp_make(wb_array *x, int ndim, const int64_t *dims);

/* (x - mean) / sqrt(var + eps) along the dimensions: a layer norm for leading dimensions, a batch
 * norm for all dimensions but the channels. */
#define wb_normalise(x, eps, ...) wb_normalise_make(x, eps, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_normalise_make(wb_array *x, double eps, int ndim, const int64_t *dims);

/* ---- contractions ---- */

/* A (m, k, batch...) times B (k, n, batch...) is (m, n, batch...); a B of one dimension (k) gives
 * (m). Batch sizes broadcast. wb_matmul_transposed takes A as (k, m) if transpose_a, and B as (n,
 * k) if transpose_b. Floating types only. */
WB_API wb_array *wb_matmul(wb_array *a, wb_array *b);
WB_API wb_array *wb_matmul_transposed(wb_array *a, wb_array *b, bool transpose_a, bool transpose_b);

typedef struct wb_attention_desc {
    WB_START_MEMBER;
    wb_array *q, *k, *v;         /* required */
    int64_t heads WB_DEFAULT(1); /* of q */
    int64_t kv_heads;   /* of k and v; must divide heads; default heads (Ainslie et al. 2023) */
    wb_array *mask;     /* bool, true: the query sees the key; broadcast to a */
    wb_array *bias;     /* added to the scores; broadcast to a */
    bool causal;        /* the last query sees all keys, the one before all but the last, ... */
    double dropout;     /* probability that a weight becomes 0; others are scaled; default 0 */
    wb_array **weights; /* if not NULL: a, after dropout, is written there */
} wb_attention_desc;

/* Scaled dot-product attention (Vaswani et al. 2017), for each head and each entry of the batch:
 *
 *     a = softmax(k' q / sqrt(dk) + bias) over the keys, 0 where the mask is false;  y = v a
 *
 * q  (dk heads, queries, ...)   k  (dk kv_heads, keys, ...)   v  (dv kv_heads, keys, ...)
 * a  (keys, queries, heads, ...)   y  (dv heads, queries, ...)
 *
 * wb_attention(q, k, v, .heads = 8, .causal = true). Head h reads k and v of head h / (heads /
 * kv_heads). A score of -inf hides its key, as the mask does; a query that sees no key gives zeros,
 * and no gradient. A key that a query does not see has weight 0, and 0 times NaN is NaN, so a NaN
 * in a hidden v reaches y (except for v that .causal hides, where the CPU computes in tiles).
 * Dropout is applied whenever it is not 0: pass 0 outside of training. On the CPU memory grows with
 * keys plus queries (in tiles: Dao 2022); on other devices, and with dropout, .weights or the
 * gradient of a bias, it grows with keys times queries. Fails with WB_ERROR_SHAPE or
 * WB_ERROR_ARGUMENT on sizes that do not fit, with WB_ERROR_DTYPE on a mask that is not bool. */
#define wb_attention(...) WB_MAKE(wb_attention_make, attention, __VA_ARGS__)
WB_API wb_array *wb_attention_make(wb_attention_desc desc);

typedef struct wb_rotary_desc {
    WB_START_MEMBER;
    wb_array *x; /* required */
    int64_t heads WB_DEFAULT(1);
    double base WB_DEFAULT(10000); /* positive, finite */
    int64_t first;                 /* position of the first column; default 0 */
    wb_array *positions;           /* instead of first, first + 1, ...: numbers (length) */
    /* for sequences longer than those in training; 0: not used */
    double factor;    /* angles are divided by it */
    double low, high; /* with these, only angles that turn slowly are (below) */
    int64_t length;   /* of the sequences in training; required with low and high */
} wb_rotary_desc;

/* Rotary positions (Su et al. 2021): at position p, features i and i + d/2 of each head's d
 * features are rotated, as a pair, by the angle p base^(-2 i / d). x and the result (d heads,
 * length, ...); for q and k before wb_attention.
 *
 * .factor = 8 divides all angles by 8 (position interpolation: Chen et al. 2023). With .low = 1 and
 * .high = 4 as well, a pair that makes n turns in .length positions keeps its angle if n is above
 * high, has it divided if n is below low, and in between gets the mean of both with the weights (n
 * - low) / (high - low) and the rest (Llama 3.1). Fails with WB_ERROR_SHAPE or WB_ERROR_ARGUMENT if
 * d is odd, heads do not divide the features, or low is not below high. */
#define wb_rotary(...) WB_MAKE(wb_rotary_make, rotary, __VA_ARGS__)
WB_API wb_array *wb_rotary_make(wb_rotary_desc desc);

/* Sinusoidal positions (features, length) to be added to embeddings: with h = features / 2 and w_i
 * = 10000^(-i / (h - 1)), row i < h at position p is sqrt(2 / features) sin(p w_i), and row h + i
 * the same with cos (Lux). features must be even and at least 4; else WB_ERROR_ARGUMENT. */
WB_API wb_array *wb_sinusoidal(wb_dtype dtype, int64_t features, int64_t length);
/* The same for the given positions p, an array of numbers (length). */
WB_API wb_array *wb_sinusoidal_at(wb_dtype dtype, int64_t features, wb_array *positions);

/* Einstein summation: text has a letter for each dimension of each array and, after ->, the letters
 * of the result in its order; letters that the result lacks are summed over. wb_einsum("ij,jk->ik",
 * A, B) is a matrix product, "ii->i" a diagonal, "ij->" a sum, "bij,bjk->bik" a batch of matrix
 * products. Without -> the result has the letters that occur once, in ASCII order. Blanks are
 * ignored. Arrays are multiplied from left to right by wb_matmul (integers and bool by products and
 * sums in i64, the result's type); at most 8 dimensions at once. Fails with WB_ERROR_ARGUMENT or
 * WB_ERROR_SHAPE, naming the letter, on texts and sizes that do not fit. */
#define wb_einsum(text, ...) wb_einsum_make(text, WB_ARRAYS(__VA_ARGS__))
WB_API wb_array *wb_einsum_make(const char *text, int count, wb_array *const *arrays);

/* How matrix products and convolutions of f32 are computed, by all threads, if they are made from
 * now on:
 *
 *   "highest"  in f32; the default
 *   "high"     a device may round the operands to TF32 (10 bits of mantissa), which is several
 *              times faster on NVIDIA's GPUs since Ampere; sums stay f32
 *   "medium"   as "high"; in addition a CPU with AVX512_BF16 rounds the operands of large products
 *              to bf16 (7 bits): up to twice as fast, with AMX several times; sums and results stay
 *              f32 (docs/accuracy.md)
 *
 * Devices without such arithmetic compute in f32; so do convolutions and attention on the CPU.
 * Products of f16 and bf16 are added up in f32 everywhere. Fails with WB_ERROR_ARGUMENT on another
 * text. */
WB_API wb_status wb_matmul_precision(const char *precision);

/* x (m), y (n): the products x_i y_j (m, n). Fails with WB_ERROR_SHAPE unless both are vectors. */
WB_API wb_array *wb_outer(wb_array *x, wb_array *y);

/* x (m, n, batch...) with zeros above (tril) or below (triu) diagonal k; k is 0 for the main
 * diagonal, 1 for the one above it, -1 for the one below. tril keeps x_ij where j <= i + k, triu
 * where j >= i + k. Fails with WB_ERROR_SHAPE where x has fewer than 2 dimensions. */
WB_API wb_array *wb_tril(wb_array *x, int64_t k);
WB_API wb_array *wb_triu(wb_array *x, int64_t k);

/* For a matrix (m, n) a view of its diagonal k; for a vector (n) a matrix (n + |k|, n + |k|) with
 * the vector on diagonal k and zeros elsewhere. Fails with WB_ERROR_SHAPE on other arrays. */
WB_API wb_array *wb_diag(wb_array *x, int64_t k);

/* A window over 1 to 3 spatial dimensions. Zero means default. The last number given in kernel,
 * stride and dilation is used for the remaining dimensions, too: .stride = {2} is {2, 2}. A 0
 * before another number, and more numbers than spatial dimensions, are WB_ERROR_ARGUMENT. */
typedef struct wb_window_desc {
    WB_START_MEMBER;
    int64_t kernel[3]; /* pools, unfold and fold only: window sizes; default 1 */
    int64_t stride[3]; /* default 1; for pools the kernel */
    /* padding on both sides: WB_ALL(1) in all dimensions, WB_EACH(1, 0) in each; default 0 */
    int64_t pad[3];
    int64_t pad_more[3];    /* added to the padding after x; may be negative */
    int64_t dilation[3];    /* default 1 */
    int64_t groups;         /* convolutions only; default 1 */
    bool cross_correlation; /* false: the kernel is flipped, as in Flux's Conv */
} wb_window_desc;

/* Calls of f(x, settings) and f(x, w, settings), where settings may be missing: wb_maxpool_op(x),
 * wb_maxpool_op(x, .kernel = {2, 2}). */
#define WB_WITH_WINDOW(f, x, ...)      WB_MAKE_OF(f, x, window, __VA_ARGS__)
#define WB_WITH_WINDOW_2(f, x, w, ...) WB_QUIET_(f(x, w, WB_GIVEN_(window, __VA_ARGS__)))

/* x (W, [H, [D,]] C, N) with w (kw, [kh, [kd,]] C / groups, K) gives (W', ..., K, N),
 * W' = floor((W + paddings - dilation (kw - 1) - 1) / stride) + 1.
 * wb_conv_data_make and wb_conv_filter_make are its adjoints: the cotangent of x, of sizes x_sizes,
 * and that of w, of sizes w_sizes, for the cotangent y. */
#define wb_conv_op(x, ...) WB_WITH_WINDOW_2(wb_conv_op_make, x, __VA_ARGS__, WB_NO_MORE)
WB_API wb_array *wb_conv_op_make(wb_array *x, wb_array *w, wb_window_desc desc);
WB_API wb_array *wb_conv_data_make(wb_array *y, wb_array *w, const int64_t *x_sizes,
                                   wb_window_desc desc);
WB_API wb_array *wb_conv_filter_make(wb_array *x, wb_array *y, const int64_t *w_sizes,
                                     wb_window_desc desc);

/* ---- windows ---- */

/* Pools over the spatial dimensions of x (W, [H, [D,]] C, N). Max: padding is ignored, and the
 * first maximum in memory order gets the gradient. Mean: over the full window, padding counted as
 * zeros (Flux). */
#define wb_maxpool_op(...)  WB_WITH_WINDOW(wb_maxpool_op_make, __VA_ARGS__, WB_NO_MORE)
#define wb_meanpool_op(...) WB_WITH_WINDOW(wb_meanpool_op_make, __VA_ARGS__, WB_NO_MORE)
WB_API wb_array *wb_maxpool_op_make(wb_array *x, wb_window_desc desc);
WB_API wb_array *wb_meanpool_op_make(wb_array *x, wb_window_desc desc);

/* wb_lppool_op(x, 2, .kernel = {2, 2}): (sum of |x|^p over the window)^(1 / p), padding counted as
 * zeros; p INFINITY: the largest |x|. As in wb_norm the gradient is 0 where the result or x is 0,
 * and f16 and bf16 are added in f32. x must be floating. Unlike wb_norm it does not scale: where
 * |x|^p overflows (in f32 for p = 2 above 1.8e19) the result is infinity, as in PyTorch. PyTorch's
 * LPPool and NNlib's lpnormpool compute x^p, not |x|^p, which gives NaN or an error for odd p and
 * negative x. (Gulcehre et al. 2013) Fails with WB_ERROR_ARGUMENT unless p > 0. */
#define wb_lppool_op(x, ...) WB_WITH_WINDOW_2(wb_lppool_op_make, x, __VA_ARGS__, WB_NO_MORE)
WB_API wb_array *wb_lppool_op_make(wb_array *x, double p, wb_window_desc desc);

/* wb_unfold: x (W, ..., C, N) gives the elements of each window, (W' H' D', kw kh kd C, N);
 * wb_fold_make is its adjoint, which adds them up into an array of sizes x_sizes. */
#define wb_unfold(...) WB_WITH_WINDOW(wb_unfold_make, __VA_ARGS__, WB_NO_MORE)
WB_API wb_array *wb_unfold_make(wb_array *x, wb_window_desc desc);
WB_API wb_array *wb_fold_make(wb_array *columns, int ndim, const int64_t *x_sizes,
                              wb_window_desc desc);

/* ---- places between elements ---- */

typedef struct wb_grid_sample_desc {
    WB_START_MEMBER;
    bool nearest; /* the nearest element; false: linear between neighbours */
    int padding;  /* wb_grid_padding (weber/calls.h); default zeros */
    /* -1 and 1 are the centres of the first and last element; false: their outer edges */
    bool align_corners WB_DEFAULT(true);
} wb_grid_sample_desc;

/* x (W, [H, [D,]] C, N) at the places of grid (dims, W', [H', [D',]] N) gives (W', [H', [D',]] C,
 * N): grid(0, ...) is the coordinate along W, grid(1, ...) along H. -1 is the beginning of x and 1
 * its end; .align_corners says where exactly these are. wb_grid_sample(x, grid), wb_grid_sample(x,
 * grid, .padding = WB_GRID_BORDER). Where a coordinate is NaN, or infinite with
 * WB_GRID_REFLECTION, the result is NaN, and adds nothing to the gradient of x; but with
 * .align_corners a dimension of size 1 has one place, which every number means, infinities too.
 * The grid's gradient is 0 with .nearest, and where .padding moved the place to the border.
 * (Spatial transformers, Jaderberg et al. 2015. Defaults are NNlib's grid_sample; PyTorch's
 * align_corners is false.)
 * Fails with WB_ERROR_SHAPE unless sizes fit as above. */
#define WB_WITH_GRID(f, x, grid, ...) WB_QUIET_(f(x, grid, WB_GIVEN_(grid_sample, __VA_ARGS__)))
#define wb_grid_sample(x, ...)        WB_WITH_GRID(wb_grid_sample_make, x, __VA_ARGS__, WB_NO_MORE)
WB_API wb_array *wb_grid_sample_make(wb_array *x, wb_array *grid, wb_grid_sample_desc desc);

/* y_i = x_0 + ... + x_i along dimension dim, added in this order; y has x's sizes. Integers and
 * bool give i64. Julia's cumsum(x; dims). */
WB_API wb_array *wb_cumsum(wb_array *x, int dim);

/* y_i = the product of x_0 to x_i along dimension dim. Integers and bool give i64; f16 and bf16 are
 * computed in f32. Takes log2(n) rounds, which multiply numbers that are 1, 2, 4 ... positions
 * apart. The gradient is also right where numbers are 0. */
WB_API wb_array *wb_cumprod(wb_array *x, int dim);

/* ---- indexing ---- */

/* The slices of x at positions index (i32 or i64, from 0) of dimension dim: the result has x's
 * sizes, with the sizes of index in place of that dimension. Embedding: wb_gather(table, tokens,
 * 1). A position out of range is an error. */
WB_API wb_array *wb_gather(wb_array *x, wb_array *index, int dim);

/* Elements of x along dim at the positions in index, which has x's sizes except along dim: y(.., i,
 * ..) = x(.., index(.., i, ..), ..). A position out of range is an error. NumPy's take_along_axis,
 * PyTorch's gather. */
WB_API wb_array *wb_take_along(wb_array *x, wb_array *index, int dim);

/* Positions of the elements that differ from 0: i64 (ndim, found), a column for each, in memory
 * order. Since their number depends on the values, the condition is computed and read at once; so
 * wb_where is an error in the body of a scan. NumPy's argwhere, PyTorch's nonzero. */
WB_API wb_array *wb_where(wb_array *condition);

/* base, with each slice of updates added at its position along dim, in the order of index: slice k
 * of updates goes to position index[k]. */
WB_API wb_array *wb_scatter_add(wb_array *base, wb_array *index, wb_array *updates, int dim);

/* The same with the maximum, the minimum, or the product of base's slice and all updates for its
 * position; slices of base without an update stay. If one of the numbers is NaN, so is the result.
 * Equal maxima or minima, base included, share the gradient; the gradient of products is also right
 * where numbers are 0 (PyTorch's scatter_reduce). Takes log2(n) rounds over n sorted positions. */
WB_API wb_array *wb_scatter_max(wb_array *base, wb_array *index, wb_array *updates, int dim);
WB_API wb_array *wb_scatter_min(wb_array *base, wb_array *index, wb_array *updates, int dim);
WB_API wb_array *wb_scatter_mul(wb_array *base, wb_array *index, wb_array *updates, int dim);

/* ---- order ---- */

/* x sorted along dim, smallest first, or largest first if descending; wb_argsort: the positions
 * (i64) of these elements in x. Equal elements keep their order in both directions, -0 and 0 are
 * equal, and a NaN is larger than every number: last, or first if descending. The gradient of a
 * sorted value goes to the element that it came from; positions have no gradient. */
WB_API wb_array *wb_sort(wb_array *x, int dim, bool descending);
WB_API wb_array *wb_argsort(wb_array *x, int dim, bool descending);

/* The k largest elements along dim, largest first: the first k of the descending order. If
 * positions is not NULL, their positions are written there (NULL on failure). Fails with
 * WB_ERROR_ARGUMENT unless 0 <= k <= size. */
WB_API wb_array *wb_top_k(wb_array *x, int64_t k, int dim, wb_array **positions);

#ifdef __cplusplus
}
#endif
#endif
