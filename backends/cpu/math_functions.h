/* Elementwise functions for the CPU kernels: scalar, branch-free, no table, no call, so that gcc
 * and clang turn a loop over them into vector code for whatever instruction set the file is built
 * for:
 *
 *     for (int64_t i = 0; i < n; i++) o[i] = k_exp_f32(x[i]);
 *
 * Build with -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math, never -ffast-math:
 * infinities, NaN, signed zeros and denormals are handled, and the magic-number roundings must
 * not be reassociated. Errors and speeds stand in docs/accuracy.md;
 * tests/backends/cpu/test_math.c measures them. Ready loops, one per function and instruction
 * set: math_table.h. (Not named math.h: this folder is on include paths.)
 *
 * The polynomials are minimax fits (Remez) made for these files, in relative error of the result,
 * unless a source is named. Horner's rule: one multiply-add per coefficient, and the elements of
 * a loop are independent, so latency hides itself. */
#ifndef WB_CPU_MATH_FUNCTIONS_H
#define WB_CPU_MATH_FUNCTIONS_H

#include "math_simple.h"

/* ln 2 and pi in parts; the first parts are short, so that their product with an integer (8, 11
 * or 21 bits) is exact. */
#define WB_K_LN2_HI_F32 0x1.62e4p-1f
#define WB_K_LN2_LO_F32 0x1.7f7d1cp-20f
#define WB_K_LN2_HI_F64 0x1.62e42fefa2p-1
#define WB_K_LN2_LO_F64 0x1.9ef35793c7673p-41
#define WB_K_PI_1       0x1.921fb544p+1
#define WB_K_PI_2       0x1.0b4611a6p-33
#define WB_K_PI_3       0x1.3198a2e037073p-68
#define WB_K_LOG2E      0x1.71547652b82fep0
#define WB_K_INV_PI     0x1.45f306dc9c883p-2

/* k_sin and k_cos hold for |x| up to it; beyond it they return some number (NaN for infinities).
 * The loops of math_table.h hold everywhere. */
#define WB_K_SIN_LIMIT 0x1p20

/* -- exponentials ------------------------------------------------------------------------------ */

/* x = n ln 2 + rest, |rest| <= 0.35. */
typedef struct k_split_f32 {
    int32_t n;
    float rest;
} k_split_f32;

static inline k_split_f32 k_split_ln2_f32(float x) {
    const float shifted = x * (float)WB_K_LOG2E + WB_K_ROUND_F32, n = shifted - WB_K_ROUND_F32;
    const uint32_t bits = k_bits_f32(shifted) - k_bits_f32(WB_K_ROUND_F32);
    return (k_split_f32){(int32_t)bits, (x - n * WB_K_LN2_HI_F32) - n * WB_K_LN2_LO_F32};
}

/* exp(r), |r| <= 0.35, to 2^-28; of a number, or of each lane of a vector. */
#define WB_K_EXP_POLY_F32(r)                                                                       \
    ((((((0x1.6a19bep-10f * (r) + 0x1.123fcp-7f) * (r) + 0x1.555918p-5f) * (r) + 0x1.55548ap-3f) * \
           (r) +                                                                                   \
       0x1.fffffcp-2f) *                                                                           \
          (r) +                                                                                    \
      1.0f) *                                                                                      \
         (r) +                                                                                     \
     1.0f)
static inline float k_exp_poly_f32(float r) { return WB_K_EXP_POLY_F32(r); }

/* exp(r) - 1, |r| <= 0.35, to 2^-31. */
static inline float k_expm1_poly_f32(float r) {
    float p = 0x1.a0330cp-13f;
    p = p * r + 0x1.6d78d4p-10f;
    p = p * r + 0x1.11118ep-7f;
    p = p * r + 0x1.5554aap-5f;
    p = p * r + 0x1.555554p-3f;
    p = p * r + 0.5f;
    return r + r * r * p;
}

/* exp(r) - 1, |r| <= 0.35, to 2^-61. */
static inline double k_expm1_poly_f64(double r) {
    double p = 0x1.1ee88ff54db78p-29;
    p = p * r + 0x1.af636d8f50811p-26;
    p = p * r + 0x1.27e538760d0cp-22;
    p = p * r + 0x1.71ddf5daa3bc8p-19;
    p = p * r + 0x1.a01a01799604cp-16;
    p = p * r + 0x1.a01a01b0c8564p-13;
    p = p * r + 0x1.6c16c16c1fb4ep-10;
    p = p * r + 0x1.111111110f4b6p-7;
    p = p * r + 0x1.555555555553cp-5;
    p = p * r + 0x1.5555555555559p-3;
    p = p * r + 0.5;
    return r + r * r * p;
}

/* Below it exp is 0, above it infinite. */
#define WB_K_EXP_LOW_F32  (-104.0f)
#define WB_K_EXP_HIGH_F32 89.0f

/* 2^n is applied in two factors: one alone reaches neither denormals nor the largest numbers. */
static inline float k_exp_f32(float x) {
    const k_split_f32 split = k_split_ln2_f32(k_clamp_f32(x, WB_K_EXP_LOW_F32, WB_K_EXP_HIGH_F32));
    const int32_t half = split.n >> 1;
    return k_exp_poly_f32(split.rest) * k_power2_f32(half) * k_power2_f32(split.n - half);
}

/* The same of x < 88, with fewer instructions: 0 below -87.68, where exp is a denormal number. */
static inline float k_exp_low_f32(float x) {
    const k_split_f32 split = k_split_ln2_f32(x < -88.0f ? -88.0f : x);
    return k_exp_poly_f32(split.rest) * k_power2_f32(split.n); /* 2^-127 has the bits of 0 */
}

/* exp(x + low) for |low| much below |x|. */
static inline double k_exp_sum_f64(double x, double low) {
    x = k_clamp_f64(x, -746.0, 710.0);
    const double n = (x * WB_K_LOG2E + WB_K_ROUND_F64) - WB_K_ROUND_F64;
    const double half = (n * 0.5 + WB_K_ROUND_F64) - WB_K_ROUND_F64;
    const double rest = (x - n * WB_K_LN2_HI_F64) - (n * WB_K_LN2_LO_F64 - low);
    return (1.0 + k_expm1_poly_f64(rest)) * k_power2_f64(half) * k_power2_f64(n - half);
}

static inline double k_exp_f64(double x) { return k_exp_sum_f64(x, 0.0); }

/* exp(x) - 1 = 2^n (exp(rest) - 1) + (2^n - 1), computed by halves so that n = 128 fits. */
static inline float k_expm1_f32(float x) {
    const k_split_f32 split = k_split_ln2_f32(k_clamp_f32(x, -20.0f, 89.0f));
    const float scale = k_power2_f32(split.n - 1);
    const float half = k_expm1_poly_f32(split.rest) * scale + (scale - 0.5f);
    return k_abs_f32(x) < 0x1p-25f ? x : half + half;
}

static inline double k_expm1_f64(double x) {
    const double y = k_clamp_f64(x, -40.0, 710.0);
    const double n = (y * WB_K_LOG2E + WB_K_ROUND_F64) - WB_K_ROUND_F64;
    const double rest = (y - n * WB_K_LN2_HI_F64) - n * WB_K_LN2_LO_F64;
    const double scale = k_power2_f64(n - 1.0);
    const double half = k_expm1_poly_f64(rest) * scale + (scale - 0.5);
    return k_abs_f64(x) < 0x1p-54 ? x : half + half;
}

/* t / (t + 2) with t = exp(2 |x|) - 1: one division, and exact where |x| is small. */
static inline float k_tanh_f32(float x) {
    const float twice = k_abs_f32(x) + k_abs_f32(x);
    const k_split_f32 split = k_split_ln2_f32(twice > 20.0f ? 20.0f : twice);
    const float scale = k_power2_f32(split.n);
    const float t = k_expm1_poly_f32(split.rest) * scale + (scale - 1.0f);
    return k_with_sign_f32(t / (t + 2.0f), x);
}

static inline double k_tanh_f64(double x) {
    const double twice = k_abs_f64(x) + k_abs_f64(x), y = twice > 44.0 ? 44.0 : twice;
    const double n = (y * WB_K_LOG2E + WB_K_ROUND_F64) - WB_K_ROUND_F64;
    const double rest = (y - n * WB_K_LN2_HI_F64) - n * WB_K_LN2_LO_F64;
    const double scale = k_power2_f64(n);
    const double t = k_expm1_poly_f64(rest) * scale + (scale - 1.0);
    return k_with_sign_f64(t / (t + 2.0), x);
}

/* 1 / (1 + exp(-x)); the exponent is never positive, so the left tail keeps its digits. */
static inline float k_sigmoid_f32(float x) {
    const float e = k_exp_f32(-k_abs_f32(x));
    return (x >= 0 ? 1.0f : e) / (1.0f + e);
}

static inline double k_sigmoid_f64(double x) {
    const double e = k_exp_f64(-k_abs_f64(x));
    return (x >= 0 ? 1.0 : e) / (1.0 + e);
}

/* -- logarithms -------------------------------------------------------------------------------- */

/* n ln 2 + log(1 + f), |f| <= 1/3. */
static inline float k_log_sum_f32(float n, float f) {
    float p = -0x1.08267cp-3f;
    p = p * f + 0x1.1e8934p-3f;
    p = p * f + -0x1.f303bap-4f;
    p = p * f + 0x1.1ed0b6p-3f;
    p = p * f + -0x1.559e38p-3f;
    p = p * f + 0x1.99d082p-3f;
    p = p * f + -0x1.fffeeep-3f;
    p = p * f + 0x1.555506p-2f;
    const float square = f * f;
    const float tail = (f * square) * p + n * WB_K_LN2_LO_F32;
    return n * WB_K_LN2_HI_F32 + (f + (tail - 0.5f * square));
}

/* The same for sqrt(1/2) <= 1 + f <= sqrt(2), through log(1 + f) = 2 atanh(s), s = f / (2 + f),
 * in the arrangement of fdlibm's e_log.c (Sun Microsystems 1993). */
static inline double k_log_sum_f64(double n, double f) {
    const double s = f / (2.0 + f), z = s * s;
    double p = 0x1.2f2a2f6b89b5fp-3;
    p = p * z + 0x1.399e3dff07e51p-3;
    p = p * z + 0x1.74665fcca9eefp-3;
    p = p * z + 0x1.c71c5171c4ecbp-3;
    p = p * z + 0x1.24924942a0607p-2;
    p = p * z + 0x1.999999997f22fp-2;
    p = p * z + 0x1.5555555555594p-1;
    const double half_square = 0.5 * f * f;
    const double tail = s * (half_square + z * p) + n * WB_K_LN2_LO_F64;
    return n * WB_K_LN2_HI_F64 - ((half_square - tail) - f);
}

/* x = 2^n m with m from sqrt(1/2) (f32: 2/3) to twice that: the bits of x + the bias hold n +
 * 1023 and, as mantissa, the bits of m counted from its lower end. */
#define WB_K_LOG_LOW_F32  0x3f2aaaabu         /* 2/3 */
#define WB_K_LOG_LOW_F64  0x3fe6a09e667f3bcdu /* sqrt(1/2) */
#define WB_K_LOG_BIAS_F64 (0x3ff0000000000000u - WB_K_LOG_LOW_F64)

/* n and m of biased bits; see WB_K_LOG_BIAS_F64. */
static inline double k_log_exponent_f64(uint64_t biased) {
    return k_from_bits_f64((biased >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
}

static inline double k_log_mantissa_f64(uint64_t biased, uint64_t low) {
    return k_from_bits_f64((biased & 0x000fffffffffffffu) + low);
}

static inline float k_log_f32(float x) {
    const float scaled = x < 0x1p-126f ? x * 0x1p24f : x;
    const uint32_t bits = k_bits_f32(scaled) - WB_K_LOG_LOW_F32;
    const float m = k_from_bits_f32((bits & 0x7fffffu) + WB_K_LOG_LOW_F32);
    const float n = (float)((int32_t)bits >> 23) - (x < 0x1p-126f ? 24.0f : 0.0f);
    const float y = k_log_sum_f32(n, m - 1.0f);
    const float edge = x == 0 ? -WB_K_INF_F32 : WB_K_NAN_F32;
    return x > 0 ? (x < WB_K_INF_F32 ? y : x) : edge;
}

static inline double k_log_f64(double x) {
    const double scaled = x < 0x1p-1022 ? x * 0x1p54 : x;
    const uint64_t biased = k_bits_f64(scaled) + WB_K_LOG_BIAS_F64;
    const double n = k_log_exponent_f64(biased) - (x < 0x1p-1022 ? 54.0 : 0.0);
    const double y = k_log_sum_f64(n, k_log_mantissa_f64(biased, WB_K_LOG_LOW_F64) - 1.0);
    const double edge = x == 0 ? -WB_K_INF_F64 : WB_K_NAN_F64;
    return x > 0 ? (x < WB_K_INF_F64 ? y : x) : edge;
}

/* 1 + x = 2^n (1 + f): n comes from the rounded sum, f = 2^-n x + (2^-n - 1) from x itself, so
 * nothing of x is lost. Where 2^-n would be a denormal, x alone decides. */
static inline float k_log1p_f32(float x) {
    const uint32_t bits = k_bits_f32(1.0f + x) - WB_K_LOG_LOW_F32;
    const float scale = k_from_bits_f32(0x3f800000u - (bits & 0xff800000u));
    const float m = k_from_bits_f32((bits & 0x7fffffu) + WB_K_LOG_LOW_F32);
    const float f = x > 0x1p60f ? m - 1.0f : x * scale + (scale - 1.0f);
    const float y = k_log_sum_f32((float)((int32_t)bits >> 23), f);
    const float edge = x == -1.0f ? -WB_K_INF_F32 : WB_K_NAN_F32;
    const float inside = k_abs_f32(x) < 0x1p-25f ? x : y;
    return x > -1.0f ? (x < WB_K_INF_F32 ? inside : x) : edge;
}

static inline double k_log1p_f64(double x) {
    const uint64_t biased = k_bits_f64(1.0 + x) + WB_K_LOG_BIAS_F64;
    const double scale = k_from_bits_f64(0x7fe0000000000000u - (biased & 0xfff0000000000000u));
    const double m = k_log_mantissa_f64(biased, WB_K_LOG_LOW_F64);
    const double f = x > 0x1p60 ? m - 1.0 : x * scale + (scale - 1.0);
    const double y = k_log_sum_f64(k_log_exponent_f64(biased), f);
    const double edge = x == -1.0 ? -WB_K_INF_F64 : WB_K_NAN_F64;
    const double inside = k_abs_f64(x) < 0x1p-54 ? x : y;
    return x > -1.0 ? (x < WB_K_INF_F64 ? inside : x) : edge;
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)); the second sum lies in [1, 2]. */
static inline float k_softplus_f32(float x) {
    const float e = k_exp_f32(-k_abs_f32(x));
    const float f = e > 0x1.555554p-2f ? (e - 1.0f) * 0.5f : e;
    const float n = e > 0x1.555554p-2f ? 1.0f : 0.0f;
    return (x > 0 ? x : 0.0f) + k_log_sum_f32(n, f);
}

static inline double k_softplus_f64(double x) {
    const double e = k_exp_f64(-k_abs_f64(x));
    const double f = e > 0x1.a8p-2 ? (e - 1.0) * 0.5 : e;
    const double n = e > 0x1.a8p-2 ? 1.0 : 0.0;
    return (x > 0 ? x : 0.0) + k_log_sum_f64(n, f);
}

/* -- sine and cosine --------------------------------------------------------------------------- */

/* sin(r), |r| <= pi / 2; the rounding may pass 1, hence the clamp. */
static inline float k_sin_poly_f32(float r) {
    const float square = r * r;
    float p = -0x1.9a5e46p-26f;
    p = p * square + 0x1.71700ep-19f;
    p = p * square + -0x1.a017d6p-13f;
    p = p * square + 0x1.11110cp-7f;
    p = p * square + -0x1.555556p-3f;
    return k_clamp_f32(r + r * (square * p), -1.0f, 1.0f);
}

static inline double k_sin_poly_f64(double r) {
    const double square = r * r;
    double p = 0x1.882307bb58bacp-49;
    p = p * square + -0x1.ae42e01cc3250p-41;
    p = p * square + 0x1.6123ca41d2230p-33;
    p = p * square + -0x1.ae6454c7d49b3p-26;
    p = p * square + 0x1.71de3a52804d0p-19;
    p = p * square + -0x1.a01a01a0147adp-13;
    p = p * square + 0x1.11111111110c0p-7;
    p = p * square + -0x1.5555555555555p-3;
    return k_clamp_f64(r + r * (square * p), -1.0, 1.0);
}

/* (-1)^n (x - (n - shift) pi) with the n that makes it smallest; shift is 0 for sin(x) = sin(that),
 * 1/2 for cos(x) = sin(that). Exact up to the last two subtractions (Cody and Waite 1980). One
 * polynomial over [-pi/2, pi/2] is cheaper than two over half of it and a choice between them. */
static inline double k_reduce_pi(double x, double shift) {
    const double shifted = (x * WB_K_INV_PI + shift) + WB_K_ROUND_F64;
    const double n = (shifted - WB_K_ROUND_F64) - shift;
    const double rest = ((x - n * WB_K_PI_1) - n * WB_K_PI_2) - n * WB_K_PI_3;
    return k_from_bits_f64(k_bits_f64(rest) ^ (k_bits_f64(shifted) << 63));
}

static inline float k_sin_f32(float x) {
    const float y = k_sin_poly_f32((float)k_reduce_pi((double)x, 0.0));
    return k_abs_f32(x) < 0x1p-12f ? x : y; /* keeps -0 */
}

static inline double k_sin_f64(double x) {
    const double y = k_sin_poly_f64(k_reduce_pi(x, 0.0));
    return k_abs_f64(x) < 0x1p-27 ? x : y;
}

static inline float k_cos_f32(float x) {
    const float y = k_sin_poly_f32((float)k_reduce_pi((double)x, 0.5));
    return k_abs_f32(x) < 0x1p-12f ? 1.0f : y; /* the polynomial may miss 1 by its last bit */
}

static inline double k_cos_f64(double x) {
    const double y = k_sin_poly_f64(k_reduce_pi(x, 0.5));
    return k_abs_f64(x) < 0x1p-27 ? 1.0 : y;
}

/* -- error function ---------------------------------------------------------------------------- */

/* Near 0: x + x P(x^2). From 0.9 on: 1 - exp(-q(|x|)), q = -log(erfc), fitted in absolute error
 * of erf. */
static inline float k_erf_f32(float x) {
    const float size = k_abs_f32(x), a = size > 3.95f ? 3.95f : size, square = a * a;
    float near = 0x1.6511b6p-14f;
    near = near * square + -0x1.aca3dcp-11f;
    near = near * square + 0x1.550a4cp-8f;
    near = near * square + -0x1.b81524p-6f;
    near = near * square + 0x1.ce2e54p-4f;
    near = near * square + -0x1.812744p-2f;
    near = near * square + 0x1.06eba8p-3f; /* 2 / sqrt(pi) - 1 */
    float q = -0x1.9d7c26p-13f;
    q = q * a + 0x1.907bfap-9f;
    q = q * a + -0x1.6cfa6ep-6f;
    q = q * a + 0x1.aa21e2p-4f;
    q = q * a + 0x1.462cdcp-1f;
    q = q * a + 0x1.20b426p+0f;
    q = q * a + 0x1.748fccp-13f;
    const k_split_f32 split = k_split_ln2_f32(-q);
    const float far = 1.0f - k_exp_poly_f32(split.rest) * k_power2_f32(split.n);
    return k_with_sign_f32(a < 0.9f ? a + a * near : far, x);
}

/* The same with the border at 1, q in |x| - 1: around |x| = 1 it needs all digits. Even and odd
 * powers apart: 19 steps in a row would be too many to hide. */
static inline double k_erf_f64(double x) {
    const double size = k_abs_f64(x), a = size > 5.95 ? 5.95 : size, square = a * a;
    double near = 0x1.0579ed53de064p-34;
    near = near * square + -0x1.386ad8b72fa0bp-30;
    near = near * square + 0x1.f7a419b347561p-27;
    near = near * square + -0x1.5f1d376f8fa8cp-23;
    near = near * square + 0x1.b9def1b1af283p-20;
    near = near * square + -0x1.f4d1df3ac5b5bp-17;
    near = near * square + 0x1.f9a321a130929p-14;
    near = near * square + -0x1.c02db3d8edbe9p-11;
    near = near * square + 0x1.565bcd0db0315p-8;
    near = near * square + -0x1.b82ce3128499ep-6;
    near = near * square + 0x1.ce2f21a042b20p-4;
    near = near * square + -0x1.812746b0379e6p-2;
    near = near * square + 0x1.06eba8214db68p-3;
    const double b = a - 1.0, b_square = b * b;
    double even = -0x1.2472643064e8dp-40;
    even = even * b_square + -0x1.94dc45e9ea3b0p-32;
    even = even * b_square + -0x1.0029e8e33fa3ep-26;
    even = even * b_square + -0x1.a2f1870129215p-24;
    even = even * b_square + 0x1.14757a56d27dap-19;
    even = even * b_square + 0x1.c7a7832257cc8p-16;
    even = even * b_square + -0x1.f1b3896e6a7cfp-13;
    even = even * b_square + -0x1.48c9d3eb1bd88p-7;
    even = even * b_square + 0x1.afabc11a295f5p-1;
    even = even * b_square + 0x1.d97fbf27aa2a1p+0;
    double odd = 0x1.fae112aa0a6a4p-36;
    odd = odd * b_square + 0x1.899af42b2dc4cp-29;
    odd = odd * b_square + 0x1.befbb37db4315p-25;
    odd = odd * b_square + -0x1.32d644afb8992p-23;
    odd = odd * b_square + -0x1.426bdfac14d27p-17;
    odd = odd * b_square + -0x1.b8de9ea1c9716p-16;
    odd = odd * b_square + 0x1.033f65afd7392p-9;
    odd = odd * b_square + 0x1.5477f09c03591p-5;
    odd = odd * b_square + 0x1.51c9b0006c236p+1;
    const double far = 1.0 - k_exp_f64(-(even + b * odd));
    return k_with_sign_f64(a < 1.0 ? a + a * near : far, x);
}

/* -- two arguments ----------------------------------------------------------------------------- */

/* x - y floor(x / y): the sign of y, as Julia's mod. NaN for y = 0 and infinite x; for infinite
 * y: x where the signs agree, else y. Exact before the last rounding while |x / y| < 2^52; beyond
 * that, some number between 0 and y. Computed for |y| and mirrored; large arguments are scaled,
 * since k_minus_product must not overflow; |x| < |y| needs no quotient, which might underflow. */
static inline double k_mod_f64(double x, double y) {
    const double size = k_abs_f64(y);
    const double u = k_from_bits_f64(k_bits_f64(x) ^ (k_bits_f64(y) & 0x8000000000000000u));
    const double u_size = k_abs_f64(u);
    const int huge = (u_size > 0x1p960) | (size > 0x1p960);
    const double down = huge ? 0x1p-64 : 1.0, up = huge ? 0x1p64 : 1.0;
    const double a = u * down, b = size * down, q = k_floor_f64(a / b), q_size = k_abs_f64(q);
    const double r = k_minus_product(a, q, b),
                 r_up = r < 0 ? r + b : r; /* a / b was rounded up to q */
    const double far = size > 0 ? u - u : WB_K_NAN_F64;
    const double many = ((q_size > 0x1p60) | (r_up < 0) | (r_up > b)) ? far : r_up * up;
    const double few = u < 0 ? u + size : u;
    return k_with_sign_f64(k_abs_f64(u_size < size ? few : many), y);
}

/* As k_mod_f64; exact before the last rounding while |x / y| < 2^29. */
static inline float k_mod_f32(float x, float y) {
    const double size = (double)k_abs_f32(y);
    const double u = (double)k_from_bits_f32(k_bits_f32(x) ^ (k_bits_f32(y) & 0x80000000u));
    const double r = u - size * k_floor_f64(u / size), r_up = r < 0 ? r + size : r;
    const double many = ((r_up < 0) | (r_up > size)) ? 0.0 : r_up;
    const double few = u < 0 ? u + size : u;
    return k_with_sign_f32((float)k_abs_f64(k_abs_f64(u) < size ? few : many), y);
}

/* What C's pow (Annex F) asks of the result, given size = |x|^y for finite x and y other than 0. */
static inline float k_pow_edges_f32(float x, float y, float size) {
    const int whole = k_floor_f32(y) == y;
    const float half = y * 0.5f;
    const int odd = whole & (k_floor_f32(half) != half);
    const float signed_size = odd ? k_with_sign_f32(size, x) : size;
    const float real = ((x < 0) & (x > -WB_K_INF_F32) & !whole) ? WB_K_NAN_F32 : signed_size;
    const int one = (y == 0) | (x == 1.0f) | ((x == -1.0f) & (k_abs_f32(y) == WB_K_INF_F32));
    return one ? 1.0f : real;
}

static inline double k_pow_edges_f64(double x, double y, double size) {
    const int whole = k_floor_f64(y) == y;
    const double half = y * 0.5;
    const int odd = whole & (k_floor_f64(half) != half);
    const double signed_size = odd ? k_with_sign_f64(size, x) : size;
    const double real = ((x < 0) & (x > -WB_K_INF_F64) & !whole) ? WB_K_NAN_F64 : signed_size;
    const int one = (y == 0) | (x == 1.0) | ((x == -1.0) & (k_abs_f64(y) == WB_K_INF_F64));
    return one ? 1.0 : real;
}

/* log2(x) to 2^-35 for x >= 0, in double so that pow needs no second word. */
static inline double k_log2_wide(double x) {
    const uint64_t low = 0x3fe5555555555555u; /* 2/3 */
    const uint64_t biased = k_bits_f64(x) + (0x3ff0000000000000u - low);
    const double f = k_log_mantissa_f64(biased, low) - 1.0;
    double p = 0x1.42a9475c09637p-3;
    p = p * f + -0x1.5434c03f6a44bp-3;
    p = p * f + 0x1.fa1ab28c68774p-4;
    p = p * f + -0x1.19839b452c1ddp-3;
    p = p * f + 0x1.49817552dc36bp-3;
    p = p * f + -0x1.724a9c1cd7e19p-3;
    p = p * f + 0x1.a60b27a455e0bp-3;
    p = p * f + -0x1.ec6879de4a4e4p-3;
    p = p * f + 0x1.2776e22a0dbddp-2;
    p = p * f + -0x1.715484fe86717p-2;
    p = p * f + 0x1.ec709d900ec9fp-2;
    p = p * f + -0x1.7154764b319e5p-1;
    p = p * f + 0x1.71547652bbe36p+0;
    const double y = f * p + k_log_exponent_f64(biased);
    return x == 0 ? -WB_K_INF_F64 : x < WB_K_INF_F64 ? y : x;
}

/* 2^x to 2^-29, held inside 2^-160 and 2^160. */
static inline double k_exp2_wide(double x) {
    x = k_clamp_f64(x, -160.0, 160.0);
    const double n = (x + WB_K_ROUND_F64) - WB_K_ROUND_F64, r = x - n;
    double p = 0x1.41d37a08c1e8dp-13;
    p = p * r + 0x1.5f45954f26946p-10;
    p = p * r + 0x1.3b2dbbbcb02a3p-7;
    p = p * r + 0x1.c6aed4656db82p-5;
    p = p * r + 0x1.ebfbdadc06411p-3;
    p = p * r + 0x1.62e430c82507ap-1;
    p = p * r + 0x1.00000002626edp+0;
    return p * k_power2_f64(n);
}

/* clang calls what is long and used often, and a loop with a call has no vectors. */
#if defined(__GNUC__)
#define WB_K_INLINED __attribute__((always_inline))
#else
#define WB_K_INLINED
#endif

WB_K_INLINED static inline float k_pow_f32(float x, float y) {
    const double size = k_exp2_wide((double)y * k_log2_wide((double)k_abs_f32(x)));
    return k_pow_edges_f32(x, y, (float)size);
}

/* An unevaluated sum, |low| below one unit in the last place of high. */
typedef struct k_pair {
    double high, low;
} k_pair;

static inline k_pair k_pair_product(k_pair a, k_pair b) {
    const double high = a.high * b.high;
    return (k_pair){high,
                    (a.high * b.low + a.low * b.high) - k_minus_product(high, a.high, b.high)};
}

/* log(x) to 2^-64 for finite x > 0: 2 atanh(s) with s, s^2 and the terms up to s^3 in pairs. */
static inline k_pair k_log_pair(double x) {
    const double scaled = x < 0x1p-1022 ? x * 0x1p54 : x;
    const uint64_t biased = k_bits_f64(scaled) + WB_K_LOG_BIAS_F64;
    const double n = k_log_exponent_f64(biased) - (x < 0x1p-1022 ? 54.0 : 0.0);
    const double f = k_log_mantissa_f64(biased, WB_K_LOG_LOW_F64) - 1.0;
    const double base = 2.0 + f, base_low = f - (base - 2.0), inverse = 1.0 / base;
    k_pair s = {f * inverse, 0};
    s.low = (k_minus_product(f, s.high, base) - s.high * base_low) * inverse;
    const k_pair z = k_pair_product(s, s);
    double p = 0x1.eb5aabe7f8acfp-4;
    p = p * z.high + 0x1.de2a9bda0970dp-4;
    p = p * z.high + 0x1.1120ed527f7d8p-3;
    p = p * z.high + 0x1.3b1361437749fp-3;
    p = p * z.high + 0x1.745d1837c12bap-3;
    p = p * z.high + 0x1.c71c71c575142p-3;
    p = p * z.high + 0x1.2492492493094p-2;
    p = p * z.high + 0x1.9999999999995p-2;
    const double third = 0x1.5555555555555p-1, tail = z.high * p; /* 2/3 = third + third 2^-54 */
    k_pair c = {third + tail, 0};
    c.low = ((third - c.high) + tail) + 0x1.5555555555555p-55;
    const k_pair rest = k_pair_product(z, c);
    k_pair sum = {2.0 + rest.high, 0};
    sum.low = ((2.0 - sum.high) + rest.high) + rest.low;
    const k_pair y = k_pair_product(s, sum);
    const double whole = n * WB_K_LN2_HI_F64, high = whole + y.high;
    return (k_pair){high, ((whole - high) + y.high) + (y.low + n * WB_K_LN2_LO_F64)};
}

WB_K_INLINED static inline double k_pow_f64(double x, double y) {
    const double size = k_abs_f64(x);
    const k_pair log = k_log_pair(size);
    const double edge = size == 0 ? -WB_K_INF_F64 : size < WB_K_INF_F64 ? log.high : size;
    const double high = y * edge;
    const double low = y * log.low - k_minus_product(high, y, edge);
    const int usable = (k_abs_f64(high) < 800.0) & (low == low);
    return k_pow_edges_f64(x, y, k_exp_sum_f64(high, usable ? low : 0.0));
}

#endif
