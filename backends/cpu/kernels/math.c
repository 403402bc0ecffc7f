/* The functions of math_functions.h as loops over arrays, for one instruction set. Sine and cosine
 * of large arguments need a slower reduction (Payne and Hanek 1983); only blocks that contain such
 * an argument take it. */
#include "../half.h"
#include "../math_functions.h"
#include "../math_table.h"
#include "../philox.h"
#include "vectorise.h"

#define LOOP(name, T, suffix)                                                                      \
    static void name##_##suffix(int64_t n, const T *x, T *o) {                                     \
        WB_INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = k_##name##_##suffix(x[i]);           \
    }
#define LOOPS(name) LOOP(name, float, f32) LOOP(name, double, f64)
WB_MATH_PLAIN(LOOPS)
#undef LOOP

#define LOOP(name, T, suffix)                                                                      \
    static void name##_##suffix(int64_t n, const T *x, const T *y, T *o) {                         \
        WB_INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = k_##name##_##suffix(x[i], y[i]);     \
    }
WB_MATH_BINARY(LOOPS)
#undef LOOP

#if defined(WB_NEON)
#include "half_neon.h"
#else
#define LOOP(name, from, to)                                                                       \
    static void name(int64_t n, const from *x, to *o) {                                            \
        WB_INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = k_##name(x[i]);                      \
    }
WB_MATH_CONVERT(LOOP)
#undef LOOP
#endif

/* -- sin and cos beyond WB_K_SIN_LIMIT --------------------------------------------------------- */

/* The upper half of the product. Machines of 32 bits have no type for all of it. */
static uint64_t upper_product(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)((u128)a * b >> 64);
#else
    const uint64_t low = UINT32_MAX, al = a & low, ah = a >> 32, bl = b & low, bh = b >> 32;
    const uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (middle & low);
    return ah * bh + (middle >> 32) + (other >> 32);
#endif
}

/* x = quarter pi / 2 + rest, |rest| <= pi / 4, quarter modulo 4, for finite |x| >= 1: Payne and
 * Hanek 1983. x = m 2^e with a 53-bit m; of 2 / pi only the 192 bits from weight 2^(1 - e) on
 * matter, as higher ones make multiples of 4 and lower ones are too small. */
static double reduce_large(double x, uint32_t *quarter) {
    static const uint64_t two_over_pi[] = {0,
                                           0xa2f9836e4e441529,
                                           0xfc2757d1f534ddc0,
                                           0xdb6295993c439041,
                                           0xfe5163abdebbc561,
                                           0xb7246e3a424dd2e0,
                                           0x06492eea09d1921c,
                                           0xfe1deb1cb129a73e,
                                           0xe88235f52ebb4484,
                                           0xe99c7026b45f7e41,
                                           0x3991d639835339f4,
                                           0x9c845f8bbdf9283b,
                                           0x1ff897ffde05980f,
                                           0xef2f118b5a0a6d1f,
                                           0x6d367ecf27cb09b7,
                                           0x4f463f669e5fea2d,
                                           0x7527bac7ebe5f17b,
                                           0x3d0739f78a5292ea,
                                           0x6bfb5fb11f8d5d08,
                                           0x56033046fc7b6bab,
                                           0xf0cfbc209af4361d};
    const uint64_t bits = k_bits_f64(x) & 0x7fffffffffffffffu;
    const uint64_t m = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    const unsigned place =
        (unsigned)(bits >> 52) - 1075u + 62u; /* e + 62: the table begins with 64 zeros */
    uint64_t w[3];
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t *word = two_over_pi + place / 64 + i;
        w[i] = place % 64 ? word[0] << place % 64 | word[1] >> (64 - place % 64) : word[0];
    }
    /* the product's 128 bits: upper, lower */
    uint64_t lower = w[1] * m, upper = w[0] * m + upper_product(w[1], m);
    const uint64_t more = upper_product(w[2], m);
    lower += more;
    upper += lower < more;
    const uint32_t near = (uint32_t)(upper >> 62) + ((uint32_t)(upper >> 61) & 1u);
    /* the fraction; its upper half belongs to the next quarter */
    upper = upper << 2 | lower >> 62, lower <<= 2;
    const int above = (int)(upper >> 63);
    if (above) upper = ~upper + (lower == 0), lower = -lower;
    const double high = (double)upper * 0x1p-64;
    const double low = (double)lower * 0x1p-128;
    const double rest = (high + low) * 0x1.921fb54442d18p0;
    const int negative = above != (x < 0);
    *quarter = x < 0 ? 0u - near : near;
    return negative ? -rest : rest;
}

static double sin_quarter(double rest, uint32_t quarter) {
    const double y = quarter & 1u ? k_cos_f64(rest) : k_sin_f64(rest);
    return quarter & 2u ? -y : y;
}

static double large_sin(double x) {
    uint32_t quarter;
    const double rest = reduce_large(x, &quarter);
    return sin_quarter(rest, quarter);
}

static double large_cos(double x) {
    uint32_t quarter;
    const double rest = reduce_large(x, &quarter);
    return sin_quarter(rest, quarter + 1u);
}

enum { BLOCK = 256 };

/* WB_K_SIN_LIMIT <= |x| < infinity, by the leading bits: 64-bit comparisons need more than SSE2. */
static inline int is_large_f32(float x) {
    const int32_t top = (int32_t)(k_bits_f32(x) & 0x7fffffffu);
    return (top >= 0x49800000) & (top < 0x7f800000);
}

static inline int is_large_f64(double x) {
    const int32_t top = (int32_t)(k_bits_f64(x) >> 32 & 0x7fffffffu);
    return (top >= 0x41300000) & (top < 0x7ff00000);
}

#define SLOW(name, T, suffix)                                                                      \
    static void slow_##name##_##suffix(int64_t n, const T *x, T *o) {                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            o[i] = is_large_##suffix(x[i]) ? (T)large_##name((double)x[i])                         \
                                           : k_##name##_##suffix(x[i]);                            \
    }
#define LOOP(name, T, suffix)                                                                      \
    static void fast_##name##_##suffix(int64_t n, const T *x, T *o) {                              \
        WB_INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = k_##name##_##suffix(x[i]);           \
    }                                                                                              \
    static void name##_##suffix(int64_t n, const T *x, T *o) {                                     \
        for (int64_t i = 0, count; i < n; i += count) {                                            \
            int any_large = 0;                                                                     \
            count = n - i < BLOCK ? n - i : BLOCK;                                                 \
            for (int64_t j = i; j < i + count; j++) any_large |= is_large_##suffix(x[j]);          \
            (any_large ? slow_##name##_##suffix : fast_##name##_##suffix)(count, x + i, o + i);    \
        }                                                                                          \
    }
#define SLOWS(name) SLOW(name, float, f32) SLOW(name, double, f64)
WB_MATH_PERIODIC(SLOWS)
WB_MATH_PERIODIC(LOOPS)

/* -- the table --------------------------------------------------------------------------------- */

const wb_math_table WB_ISA_NAME(math) = {
#define ROW(name) .name##_f32 = name##_f32, .name##_f64 = name##_f64,
    WB_MATH_UNARY(ROW) WB_MATH_BINARY(ROW)
#undef ROW
#define ROW(name, from, to) .name = name,
        WB_MATH_CONVERT(ROW)
#undef ROW
#define ROW(name, type) .fill_##name = fill_##name,
            WB_MATH_FILL(ROW)
#undef ROW
};
