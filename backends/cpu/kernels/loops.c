/* The loops of loops.h, made from the rows of ops.def: the same text that other backends
 * compile. */
#include "loops.h"

#include <string.h>

#include "math_functions.h"
#include "math_table.h"
#include "pairs.h"
#include "simd.h"
#include "vectorise.h"

/* ---- integers ---- */

static inline int32_t k_abs_i32(int32_t x) { return x < 0 ? (int32_t)(0u - (uint32_t)x) : x; }
static inline int64_t k_abs_i64(int64_t x) { return x < 0 ? (int64_t)(0u - (uint64_t)x) : x; }
static inline int32_t k_sign_i32(int32_t x) { return (x > 0) - (x < 0); }
static inline int64_t k_sign_i64(int64_t x) { return (x > 0) - (x < 0); }
static inline int32_t k_max_i32(int32_t x, int32_t y) { return x < y ? y : x; }
static inline int64_t k_max_i64(int64_t x, int64_t y) { return x < y ? y : x; }
static inline int32_t k_min_i32(int32_t x, int32_t y) { return x > y ? y : x; }
static inline int64_t k_min_i64(int64_t x, int64_t y) { return x > y ? y : x; }

/* The sign of y, as Julia's mod; 0 where y is 0, as nothing may trap. f64 has vectors of quotients
 * and digits enough: what x / y lacks to a whole number is no less than 1 / |y|. */
static inline int32_t k_mod_i32(int32_t x, int32_t y) {
    const double divisor = y == 0 ? 1.0 : (double)y;
    return (int32_t)((double)x - divisor * k_floor_f64((double)x / divisor));
}

static inline int64_t k_mod_i64(int64_t x, int64_t y) {
    if (y == 0 || y == -1) return 0;
    const int64_t r = x % y;
    return r != 0 && (r ^ y) < 0 ? r + y : r;
}

#define BY_TYPE(x, name)                                                                           \
    _Generic((x), float                                                                            \
             : k_##name##_f32, double                                                              \
             : k_##name##_f64, int32_t                                                             \
             : k_##name##_i32, int64_t                                                             \
             : k_##name##_i64)
#define BY_FLOAT(x, name) _Generic((x), float : k_##name##_f32, double : k_##name##_f64)

#define k_abs(x)      BY_TYPE(x, abs)(x)
#define k_sign(x)     BY_TYPE(x, sign)(x)
#define k_max(x, y)   BY_TYPE(x, max)(x, y)
#define k_min(x, y)   BY_TYPE(x, min)(x, y)
#define k_mod(x, y)   BY_TYPE(x, mod)(x, y)
#define k_exp(x)      BY_FLOAT(x, exp)(x)
#define k_log(x)      BY_FLOAT(x, log)(x)
#define k_expm1(x)    BY_FLOAT(x, expm1)(x)
#define k_log1p(x)    BY_FLOAT(x, log1p)(x)
#define k_sqrt(x)     BY_FLOAT(x, sqrt)(x)
#define k_rsqrt(x)    BY_FLOAT(x, rsqrt)(x)
#define k_sin(x)      BY_FLOAT(x, sin)(x)
#define k_cos(x)      BY_FLOAT(x, cos)(x)
#define k_tanh(x)     BY_FLOAT(x, tanh)(x)
#define k_erf(x)      BY_FLOAT(x, erf)(x)
#define k_sigmoid(x)  BY_FLOAT(x, sigmoid)(x)
#define k_softplus(x) BY_FLOAT(x, softplus)(x)
#define k_floor(x)    BY_FLOAT(x, floor)(x)
#define k_round(x)    BY_FLOAT(x, round)(x)
#define k_pow(x, y)   BY_FLOAT(x, pow)(x, y)

/* ---- element loops ---- */

/* Integers wrap (-fwrapv). X and Y are the operands: xp[i], or x0 where one number serves all
 * elements. */
#define LOOP(loop, T, R, arity_y, X, Y, expression)                                                \
    static inline void loop(int64_t n, void *o, const void *xs, const void *ys, const void *zs) {  \
        const T *xp = xs, *yp = arity_y ? ys : xs;                                                 \
        const T x0 = xp[0], y0 = yp[0];                                                            \
        R *op = o;                                                                                 \
        (void)zs, (void)yp, (void)x0, (void)y0;                                                    \
        WB_INDEPENDENT for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i++) {                     \
            const T x = X, y = Y;                                                                  \
            (void)x, (void)y;                                                                      \
            op[i] = (R)(expression);                                                               \
        }                                                                                          \
    }

#define LOOPS_1(name, T, R, text) LOOP(name, T, R, 0, xp[i], xp[i], text)
#define LOOPS_2(name, T, R, text)                                                                  \
    LOOP(name, T, R, 1, xp[i], yp[i], text)                                                        \
    LOOP(name##_by_number, T, R, 1, xp[i], y0, text)                                               \
    LOOP(name##_of_number, T, R, 1, x0, yp[i], text)

#define LOOPS_FLOAT(name, arity, text)                                                             \
    LOOPS_##arity(f32_##name, float, float, text) LOOPS_##arity(f64_##name, double, double, text)
#define LOOPS_NUMBER(name, arity, text)                                                            \
    LOOPS_FLOAT(name, arity, text)                                                                 \
    LOOPS_##arity(i32_##name, int32_t, int32_t, text)                                              \
        LOOPS_##arity(i64_##name, int64_t, int64_t, text)
#define LOOPS_COMPARE(name, arity, text)                                                           \
    LOOPS_##arity(f32_##name, float, int32_t, text)                                                \
        LOOPS_##arity(f64_##name, double, int32_t, text)                                           \
            LOOPS_##arity(i32_##name, int32_t, int32_t, text)                                      \
                LOOPS_##arity(i64_##name, int64_t, int32_t, text)
#define LOOPS_LOGIC(name, arity, text) LOOPS_##arity(bool_##name, int32_t, int32_t, text)

#define WB_UNARY(name, class, text, dx, lo, hi, doc)      LOOPS_##class(name, 1, text)
#define WB_BINARY(name, class, text, dx, dy, lo, hi, doc) LOOPS_##class(name, 2, text)
#include <weber/ops.def>

/* Large arguments of sine and cosine take another way, which the math table knows. */
#define LOOP_PERIODIC(name)                                                                        \
    static void full_f32_##name(int64_t n, void *o, const void *x, const void *y, const void *z) { \
        (void)y, (void)z;                                                                          \
        WB_ISA_NAME(math).name##_f32(n, x, o);                                                     \
    }                                                                                              \
    static void full_f64_##name(int64_t n, void *o, const void *x, const void *y, const void *z) { \
        (void)y, (void)z;                                                                          \
        WB_ISA_NAME(math).name##_f64(n, x, o);                                                     \
    }
LOOP_PERIODIC(sin)
LOOP_PERIODIC(cos)

#if WB_SIMD && defined(__AVX512F__)
/* k_exp_f32 with its bits and half its instructions: one scales by 2^n whatever n is, and minimum
 * and maximum give their second operand where one is NaN. */
WB_INLINE wb_f32v wide_exp(wb_f32v at) {
    const wb_f32v low = wb_f32v_set(WB_K_EXP_LOW_F32), high = wb_f32v_set(WB_K_EXP_HIGH_F32);
    const wb_f32v x = _mm512_min_ps(high, _mm512_max_ps(low, at));
    const wb_f32v power = (x * (float)WB_K_LOG2E + WB_K_ROUND_F32) - WB_K_ROUND_F32;
    const wb_f32v rest = (x - power * WB_K_LN2_HI_F32) - power * WB_K_LN2_LO_F32;
    return _mm512_scalef_ps(WB_K_EXP_POLY_F32(rest), power);
}
static void wide_f32_exp(int64_t n, void *o, const void *xs, const void *ys, const void *zs) {
    (void)ys, (void)zs;
    for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i += WB_LANES)
        wb_f32v_store((float *)o + i, wide_exp(wb_f32v_load((const float *)xs + i)));
}
WB_INLINE wb_f32v wide_exp_of_excess(wb_f32v x, wb_f32v y) {
    return wide_exp(_mm512_maskz_sub_ps(_mm512_cmp_ps_mask(x, y, _CMP_NEQ_UQ), x, y));
}
#define f32_exp wide_f32_exp
#endif

/* gcc makes jumps of conditions on a number that is the same for all elements. */
static void vector_f64_pow_of_number(int64_t n, void *o, const void *x, const void *y,
                                     const void *z) {
    double xs[WB_LANES];
    (void)z;
    for (int k = 0; k < WB_LANES; k++) xs[k] = *(const double *)x;
    for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i += WB_LANES)
        WB_ISA_NAME(math).pow_f64(WB_LANES, xs, (const double *)y + i, (double *)o + i);
}

#define LOOP_SELECT_AS(name, T, X, Y)                                                              \
    static void name(int64_t n, void *o, const void *cs, const void *xs, const void *ys) {         \
        const int32_t *c = cs;                                                                     \
        const T *x = xs, *y = ys, x0 = x[0], y0 = y[0];                                            \
        T *op = o;                                                                                 \
        (void)x0, (void)y0;                                                                        \
        WB_INDEPENDENT for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i++) {                     \
            const T yes = X, no = Y;                                                               \
            op[i] = c[i] ? yes : no;                                                               \
        }                                                                                          \
    }
#define LOOP_SELECT(type, T)                                                                       \
    LOOP_SELECT_AS(type##_select, T, x[i], y[i])                                                   \
    LOOP_SELECT_AS(type##_select_by_number, T, x[i], y0)                                           \
    LOOP_SELECT_AS(type##_select_of_number, T, x0, y[i])
LOOP_SELECT(f32, float)
LOOP_SELECT(f64, double)
LOOP_SELECT(i32, int32_t)
LOOP_SELECT(i64, int64_t)

/* ---- two steps in one: what takes functions; the rest is in pairs.c ---- */

#define LOOPS_EXP_OF_EXCESS(name, T)                                                               \
    static WB_LOOP_OF_TWO(name, T, yp[i], xp[i], k_exp(x == y ? 0 : x - y)) static WB_LOOP_OF_TWO( \
        name##_by, T, y0, xp[i], k_exp(x == y ? 0 : x - y))
LOOPS_EXP_OF_EXCESS(f64_exp_of_excess, double)
#if WB_SIMD && defined(__AVX512F__)
static void f32_exp_of_excess(int64_t n, void *o, const void *xs, const void *ys, const void *zs) {
    (void)zs;
    for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i += WB_LANES)
        wb_f32v_store((float *)o + i, wide_exp_of_excess(wb_f32v_load((const float *)xs + i),
                                                         wb_f32v_load((const float *)ys + i)));
}
static void f32_exp_of_excess_by(int64_t n, void *o, const void *xs, const void *ys,
                                 const void *zs) {
    const wb_f32v y = wb_f32v_set(*(const float *)ys);
    (void)zs;
    for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i += WB_LANES)
        wb_f32v_store((float *)o + i, wide_exp_of_excess(wb_f32v_load((const float *)xs + i), y));
}
#else
LOOPS_EXP_OF_EXCESS(f32_exp_of_excess, float)
#endif

/* ---- casts ---- */

/* Floats to integers cut towards zero; what does not fit, and NaN, becomes the smallest integer on
 * every instruction set. */
static inline int32_t cut_i32(double x) {
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
static inline int64_t cut_i64(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

#define CAST(from, to, T, R, expression)                                                           \
    WB_APART static void from##_to_##to(int64_t n, void *o, const void *xs, const void *ys,        \
                                        const void *zs) {                                          \
        const T *xp = xs;                                                                          \
        R *op = o;                                                                                 \
        (void)ys, (void)zs;                                                                        \
        WB_INDEPENDENT for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i++) {                     \
            const T x = xp[i];                                                                     \
            op[i] = expression;                                                                    \
        }                                                                                          \
    }
CAST(f32, f64, float, double, (double)x)
CAST(f32, i32, float, int32_t, cut_i32((double)x))
CAST(f32, bool, float, int32_t, x != 0)
CAST(f64, f32, double, float, (float)x)
CAST(f64, i32, double, int32_t, cut_i32(x))
CAST(f64, i64, double, int64_t, cut_i64(x))
CAST(f64, bool, double, int32_t, x != 0)
#if defined(__aarch64__)
/* By way of f64, which has instructions for vectors; in one loop gcc leaves f64 out. */
static void f32_to_i64(int64_t n, void *o, const void *xs, const void *ys, const void *zs) {
    double wide[4 * WB_LANES];
    for (int64_t i = 0, count = 4 * WB_LANES; i < n / WB_LANES * WB_LANES; i += count) {
        if (count > n - i) count = n - i;
        f32_to_f64(count, wide, (const float *)xs + i, ys, zs);
        f64_to_i64(count, (int64_t *)o + i, wide, ys, zs);
    }
}
#else
CAST(f32, i64, float, int64_t, cut_i64((double)x))
#endif
CAST(i32, f32, int32_t, float, (float)x)
CAST(i32, f64, int32_t, double, (double)x)
CAST(i32, i64, int32_t, int64_t, x)
CAST(i32, bool, int32_t, int32_t, x != 0)
CAST(i64, f32, int64_t, float, (float)x)
CAST(i64, f64, int64_t, double, (double)x)
CAST(i64, i32, int64_t, int32_t, (int32_t)(uint32_t)(uint64_t)x)
CAST(i64, bool, int64_t, int32_t, x != 0)
CAST(i32, i32, int32_t, int32_t, x) /* bool to i32, u8 to i32 */
CAST(f32, f32, float, float, x)     /* the halves */

/* ---- memory to register and back ---- */

#define MOVE(name, T, R, expression)                                                               \
    static void name(int64_t n, const void *from, void *to) {                                      \
        const T *xp = from;                                                                        \
        R *op = to;                                                                                \
        WB_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                           \
            const T x = xp[i];                                                                     \
            op[i] = (R)(expression);                                                               \
        }                                                                                          \
    }
MOVE(move_4, uint32_t, uint32_t, x)
MOVE(move_8, uint64_t, uint64_t, x)
MOVE(load_u8, uint8_t, int32_t, x)
MOVE(load_bool, uint8_t, int32_t, x != 0)
MOVE(store_u8, int32_t, uint8_t, x)
MOVE(store_bool, int32_t, uint8_t, x != 0)

#define REPEAT(name, T)                                                                            \
    static void name(int64_t n, const void *from, void *to) {                                      \
        const T x = *(const T *)from;                                                              \
        T *op = to;                                                                                \
        WB_INDEPENDENT for (int64_t i = 0; i < n; i++) { op[i] = x; }                              \
    }
REPEAT(repeat_4, uint32_t)
REPEAT(repeat_8, uint64_t)

/* In whole vectors: elements written beyond a row are overwritten by the next row, or lie in the
 * unused end of the register. */
#define REPEAT_ROWS(name, T)                                                                       \
    static void name(int64_t inner, int64_t outer, const void *from, void *to) {                   \
        enum { EACH = WB_REGISTER_REST / sizeof(T) };                                              \
        T *op = to;                                                                                \
        for (int64_t o = 0; o < outer; o++, op += inner)                                           \
            for (int64_t i = 0; i < inner; i += EACH) {                                            \
                const T x = ((const T *)from)[o];                                                  \
                WB_INDEPENDENT for (int k = 0; k < EACH; k++) op[i + k] = x;                       \
            }                                                                                      \
    }
REPEAT_ROWS(repeat_rows_4, uint32_t)
REPEAT_ROWS(repeat_rows_8, uint64_t)

static void load_f16(int64_t n, const void *from, void *to) {
    WB_ISA_NAME(math).f16_to_f32(n, from, to);
}
static void load_bf16(int64_t n, const void *from, void *to) {
    WB_ISA_NAME(math).bf16_to_f32(n, from, to);
}
static void store_f16(int64_t n, const void *from, void *to) {
    WB_ISA_NAME(math).f32_to_f16(n, from, to);
}
static void store_bf16(int64_t n, const void *from, void *to) {
    WB_ISA_NAME(math).f32_to_bf16(n, from, to);
}

#define ROUND(name, store, load)                                                                   \
    static void name(int64_t n, void *o, const void *x, const void *y, const void *z) {            \
        (void)y, (void)z;                                                                          \
        for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i += WB_LANES) {                          \
            uint16_t halves[WB_LANES];                                                             \
            store(WB_LANES, (const float *)x + i, halves);                                         \
            load(WB_LANES, halves, (float *)o + i);                                                \
        }                                                                                          \
    }
ROUND(round_f16, store_f16, load_f16)
ROUND(round_bf16, store_bf16, load_bf16)

/* ---- reductions ---- */

#define PLUS(x, y) ((x) + (y))

/* Sixteen numbers as one, by halves. Apart: inside the loops below gcc takes the numbers one by
 * one. */
#define BY_HALVES(name, A, merge)                                                                  \
    WB_APART static A name(const A *part) {                                                        \
        A half[8], quarter[4];                                                                     \
        for (int k = 0; k < 8; k++) half[k] = merge(part[k], part[k + 8]);                         \
        for (int k = 0; k < 4; k++) quarter[k] = merge(half[k], half[k + 4]);                      \
        return merge(merge(quarter[0], quarter[2]), merge(quarter[1], quarter[3]));                \
    }
BY_HALVES(meet_f64, double, PLUS)
BY_HALVES(meet_i64, int64_t, PLUS)
BY_HALVES(most_i64, int64_t, k_max_i64)

/* Each file below makes one kind of reduction for one type. NUMBER: the type of the elements;
 * TOTAL: that of partial results where they meet, and FIELD their member of wb_accumulator;
 * COMBINE: two numbers as one; START: what an empty sum is; MEET: sixteen numbers as one;
 * EACH_LANE: in front of a loop over partial results. */
#define COMBINE PLUS
#define EACH_LANE

#define TYPE(name) sum_f32_##name
#define NUMBER     float
#define TOTAL      double
#define FIELD      f
#define START      0
#define MEET       meet_f64
#include "reduce.h"

#define TYPE(name) sum_f64_##name
#define NUMBER     double
#define TOTAL      double
#define FIELD      f
#define START      0
#define MEET       meet_f64
#include "reduce.h"

#define TYPE(name) sum_i32_##name
#define NUMBER     int32_t
#define TOTAL      int64_t
#define FIELD      i
#define START      0
#define MEET       meet_i64
#include "reduce.h"

#define TYPE(name) sum_i64_##name
#define NUMBER     int64_t
#define TOTAL      int64_t
#define FIELD      i
#define START      0
#define MEET       meet_i64
#include "reduce.h"

#undef COMBINE
#undef EACH_LANE

#define COMBINE   k_max
#define EACH_LANE WB_ROLLED

#define TYPE(name)   max_f32_##name
#define NUMBER       float
#define TOTAL        double
#define FIELD        f
#define VECTOR(name) wb_f32v##name
#define LANES        WB_F32_LANES
#include "reduce_max_real.h"

#define TYPE(name)   max_f64_##name
#define NUMBER       double
#define TOTAL        double
#define FIELD        f
#define VECTOR(name) wb_f64v##name
#define LANES        WB_F64_LANES
#include "reduce_max_real.h"

#define TYPE(name) max_i32_##name
#define NUMBER     int32_t
#define TOTAL      int64_t
#define FIELD      i
#define START      INT32_MIN
#define MEET       most_i64
#include "reduce.h"

#define TYPE(name) max_i64_##name
#define NUMBER     int64_t
#define TOTAL      int64_t
#define FIELD      i
#define START      INT64_MIN
#define MEET       most_i64
#include "reduce.h"

#undef COMBINE
#undef EACH_LANE

#define REAL       float
#define TYPE(name) dot_f32_##name
#include "dot_real.h"

#define REAL       double
#define TYPE(name) dot_f64_##name
#include "dot_real.h"

#define REAL         float
#define TYPE(name)   moment_f32_##name
#define VECTOR(name) wb_f32v##name
#define LANES        WB_F32_LANES
#include "moments_real.h"

#define REAL         double
#define TYPE(name)   moment_f64_##name
#define VECTOR(name) wb_f64v##name
#define LANES        WB_F64_LANES
#include "moments_real.h"

/* ---- random numbers ---- */

#define FILL(name, T)                                                                              \
    static void name(void *out, int64_t first, int64_t n, uint64_t key, uint64_t counter) {        \
        WB_ISA_NAME(math).fill_##name((T *)out, first, n, key, counter);                           \
    }
FILL(uniform_f32, float)
FILL(uniform_f64, double)
FILL(normal_f32, float)
FILL(normal_f64, double)

/* ---- the table ---- */

#define ROW_FLOAT(name, suffix)                                                                    \
    [WB_CODE_##name] = {[WB_R_F32] = f32_##name##suffix, [WB_R_F64] = f64_##name##suffix},
#define ROW_NUMBER(name, suffix)                                                                   \
    [WB_CODE_##name] = {[WB_R_F32] = f32_##name##suffix,                                           \
                        [WB_R_F64] = f64_##name##suffix,                                           \
                        [WB_R_I32] = i32_##name##suffix,                                           \
                        [WB_R_I64] = i64_##name##suffix},
#define ROW_COMPARE(name, suffix)                                                                  \
    [WB_CODE_##name] = {[WB_R_F32] = f32_##name##suffix,                                           \
                        [WB_R_F64] = f64_##name##suffix,                                           \
                        [WB_R_I32] = i32_##name##suffix,                                           \
                        [WB_R_I64] = i64_##name##suffix,                                           \
                        [WB_R_BOOL] = i32_##name##suffix},
#define ROW_LOGIC(name, suffix) [WB_CODE_##name] = {[WB_R_BOOL] = bool_##name##suffix},
#define ROW_SELECT(suffix)                                                                         \
    [WB_CODE_select] = {f32_select##suffix, f64_select##suffix, i32_select##suffix,                \
                        i64_select##suffix, i32_select##suffix},
#define f32_sin           full_f32_sin
#define f64_sin           full_f64_sin
#define f32_cos           full_f32_cos
#define f64_cos           full_f64_cos
#define f64_pow_of_number vector_f64_pow_of_number

const wb_loops WB_ISA_NAME(loops) = {
    .element =
        {
#define WB_UNARY(name, class, ...)  ROW_##class(name, )
#define WB_BINARY(name, class, ...) ROW_##class(name, )
#include <weber/ops.def>
            ROW_SELECT()},
    .by_number =
        {
#define WB_BINARY(name, class, ...) ROW_##class(name, _by_number)
#include <weber/ops.def>
            ROW_SELECT(_by_number)},
    .of_number =
        {
#define WB_BINARY(name, class, ...) ROW_##class(name, _of_number)
#include <weber/ops.def>
            ROW_SELECT(_of_number)},
    .cast = {[WB_R_F32] = {f32_to_f32, f32_to_f64, f32_to_i32, f32_to_i64, f32_to_bool},
             [WB_R_F64] = {f64_to_f32, NULL, f64_to_i32, f64_to_i64, f64_to_bool},
             [WB_R_I32] = {i32_to_f32, i32_to_f64, i32_to_i32, i32_to_i64, i32_to_bool},
             [WB_R_I64] = {i64_to_f32, i64_to_f64, i64_to_i32, NULL, i64_to_bool},
             [WB_R_BOOL] = {i32_to_f32, i32_to_f64, i32_to_i32, i32_to_i64, i32_to_i32}},
    .round_f16 = round_f16,
    .round_bf16 = round_bf16,
    .fused = {[WB_PRODUCT_ADDED] = WB_PAIR_ROWS(product_added),
              [WB_PRODUCT_SUBTRACTED] = WB_PAIR_ROWS(product_subtracted),
              [WB_PRODUCT_NEGATED] = WB_PAIR_ROWS(product_negated),
              [WB_DIFFERENCE_TIMES] = WB_PAIR_ROWS(difference_times),
              [WB_EXP_OF_EXCESS] = {{f32_exp_of_excess, f64_exp_of_excess},
                                    {f32_exp_of_excess_by, f64_exp_of_excess_by}}},
    .load = {move_4, move_8, load_f16, load_bf16, move_4, move_8, load_u8, load_bool},
    .store = {move_4, move_8, store_f16, store_bf16, move_4, move_8, store_u8, store_bool},
    .reduce_rows = {{sum_f32_rows, sum_f64_rows, sum_i32_rows, sum_i64_rows, sum_i32_rows},
                    {max_f32_rows, max_f64_rows, max_i32_rows, max_i64_rows, max_i32_rows}},
    .reduce_columns = {{sum_f32_columns, sum_f64_columns, sum_i32_columns, sum_i64_columns,
                        sum_i32_columns},
                       {max_f32_columns, max_f64_columns, max_i32_columns, max_i64_columns,
                        max_i32_columns}},
    .repeat = {repeat_4, repeat_8},
    .repeat_rows = {repeat_rows_4, repeat_rows_8},
    .dot_rows = {dot_f32_rows, dot_f64_rows},
    .dot_columns = {dot_f32_columns, dot_f64_columns},
    .moment_rows = {moment_f32_rows, moment_f64_rows},
    .moment_columns = {moment_f32_columns, moment_f64_columns},
    .uniform = {uniform_f32, uniform_f64},
    .normal = {normal_f32, normal_f64},
};
