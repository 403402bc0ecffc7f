/* Of the functions of math_functions.h those that are a few operations: bits, signs, roots,
 * rounding, extremes. */
#ifndef WB_CPU_MATH_SIMPLE_H
#define WB_CPU_MATH_SIMPLE_H

#include <stdint.h>
#include <string.h>

#if defined(__FMA__) || defined(__aarch64__)
#define WB_K_HAS_FMA 1
#else
#define WB_K_HAS_FMA 0
#endif

#if defined(__SSE4_1__) || defined(__aarch64__)
#define WB_K_HAS_FLOOR 1
#else
#define WB_K_HAS_FLOOR 0
#endif

/* Adding it rounds |x| < 2^22 (2^51) to an integer, to nearest even, which then is in the low
 * bits. */
#define WB_K_ROUND_F32 0x1.8p23f
#define WB_K_ROUND_F64 0x1.8p52

/* -- bits -------------------------------------------------------------------------------------- */

static inline uint32_t k_bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint64_t k_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float k_from_bits_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double k_from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define WB_K_INF_F32 k_from_bits_f32(0x7f800000u)
#define WB_K_NAN_F32 k_from_bits_f32(0x7fc00000u)
#define WB_K_INF_F64 k_from_bits_f64(0x7ff0000000000000u)
#define WB_K_NAN_F64 k_from_bits_f64(0x7ff8000000000000u)

/* x (not negative) with the sign of y. */
static inline float k_with_sign_f32(float x, float y) {
    return k_from_bits_f32(k_bits_f32(x) | (k_bits_f32(y) & 0x80000000u));
}

static inline double k_with_sign_f64(double x, double y) {
    return k_from_bits_f64(k_bits_f64(x) | (k_bits_f64(y) & 0x8000000000000000u));
}

/* 2^n, -126 <= n <= 127. */
static inline float k_power2_f32(int32_t n) { return k_from_bits_f32(((uint32_t)n + 127u) << 23); }

/* 2^n for a whole number -1022 <= n <= 1023. Takes a double: below AVX-512 there is neither a
 * conversion from 64-bit integers nor an arithmetic shift of them. */
static inline double k_power2_f64(double n) {
    return k_from_bits_f64((k_bits_f64(n + WB_K_ROUND_F64) + 1023u) << 52);
}

/* -- simple ones ------------------------------------------------------------------------------- */

static inline float k_abs_f32(float x) { return __builtin_fabsf(x); }
static inline double k_abs_f64(double x) { return __builtin_fabs(x); }

static inline float k_sqrt_f32(float x) { return __builtin_sqrtf(x); }
static inline double k_sqrt_f64(double x) { return __builtin_sqrt(x); }

static inline float k_recip_f32(float x) { return 1.0f / x; }
static inline double k_recip_f64(double x) { return 1.0 / x; }

/* -inf at -0, as 1 / sqrt(-0). */
static inline float k_rsqrt_f32(float x) { return 1.0f / k_sqrt_f32(x); }
static inline double k_rsqrt_f64(double x) { return 1.0 / k_sqrt_f64(x); }

/* -1, 1; x itself where it is 0, -0 or NaN. */
static inline float k_sign_f32(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
static inline double k_sign_f64(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }

/* A NaN wins; of equals the first. */
static inline float k_max_f32(float x, float y) { return ((x < y) | (y != y)) ? y : x; }
static inline double k_max_f64(double x, double y) { return ((x < y) | (y != y)) ? y : x; }
static inline float k_min_f32(float x, float y) { return ((x > y) | (y != y)) ? y : x; }
static inline double k_min_f64(double x, double y) { return ((x > y) | (y != y)) ? y : x; }

/* NaN stays NaN: the comparisons are one instruction each in this order. */
static inline float k_clamp_f32(float x, float low, float high) {
    x = x > high ? high : x;
    return x < low ? low : x;
}

static inline double k_clamp_f64(double x, double low, double high) {
    x = x > high ? high : x;
    return x < low ? low : x;
}

static inline float k_floor_f32(float x) {
#if WB_K_HAS_FLOOR
    return __builtin_floorf(x);
#else
    const float size = k_abs_f32(x);
    const float nearest = k_with_sign_f32((size + 0x1p23f) - 0x1p23f, x);
    const float below = nearest > x ? nearest - 1.0f : nearest;
    return size < 0x1p23f ? below : x;
#endif
}

static inline double k_floor_f64(double x) {
#if WB_K_HAS_FLOOR
    return __builtin_floor(x);
#else
    const double size = k_abs_f64(x);
    const double nearest = k_with_sign_f64((size + 0x1p52) - 0x1p52, x);
    const double below = nearest > x ? nearest - 1.0 : nearest;
    return size < 0x1p52 ? below : x;
#endif
}

/* To the nearest integer, of two the even one: what adding 2^23 (2^52) rounds to. */
static inline float k_round_f32(float x) {
    const float size = k_abs_f32(x);
    const float nearest = k_with_sign_f32((size + 0x1p23f) - 0x1p23f, x);
    return size < 0x1p23f ? nearest : x;
}

static inline double k_round_f64(double x) {
    const double size = k_abs_f64(x);
    const double nearest = k_with_sign_f64((size + 0x1p52) - 0x1p52, x);
    return size < 0x1p52 ? nearest : x;
}

/* c - a b with one rounding (without FMA: Dekker 1971, exact for |a|, |b|, |a b| < 2^995). */
static inline double k_minus_product(double c, double a, double b) {
#if WB_K_HAS_FMA
    return __builtin_fma(-a, b, c);
#else
    const double a_wide = a * 0x1.0000002p27, a_high = a_wide - (a_wide - a), a_low = a - a_high;
    const double b_wide = b * 0x1.0000002p27, b_high = b_wide - (b_wide - b), b_low = b - b_high;
    const double product = a * b;
    const double rest =
        a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
    return (c - product) - rest;
#endif
}

#endif
