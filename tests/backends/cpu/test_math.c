/* The elementwise functions of the CPU backend against libm in a wider type, for every
 * instruction set that this machine has. f32: every 997th bit pattern (WEBER_MATH_STRIDE=1 tries
 * all, in an hour), and all near the places where something changes; f64: the same places, and
 * random numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../backends/cpu/half.h"
#include "../../../backends/cpu/math_table.h"
#include "../../../backends/cpu/philox.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 4096 };

#define INF          ((double)INFINITY)
#define NOT_A_NUMBER ((double)NAN)

/* -- references: one text for double and long double ------------------------------------------- */

#define REFERENCES(T, L, suffix)                                                                   \
    static T ref_sigmoid_##suffix(T x) { return 1 / (1 + exp##L(-x)); }                            \
    static T ref_softplus_##suffix(T x) {                                                          \
        return x > 0 ? x + log1p##L(exp##L(-x)) : log1p##L(exp##L(x));                             \
    }                                                                                              \
    static T ref_rsqrt_##suffix(T x) { return 1 / sqrt##L(x); }                                    \
    static T ref_recip_##suffix(T x) { return 1 / x; }                                             \
    static T ref_sign_##suffix(T x) { return x > 0 ? 1 : x < 0 ? -1 : x; }                         \
    static T ref_max_##suffix(T x, T y) { return isnan(x) || isnan(y) ? x + y : x < y ? y : x; }   \
    static T ref_min_##suffix(T x, T y) { return isnan(x) || isnan(y) ? x + y : y < x ? y : x; }   \
    static T ref_mod_##suffix(T x, T y) {                                                          \
        const T r = fmod##L(x, y);                                                                 \
        return r == 0 ? copysign##L(0, y) : (r < 0) == (y < 0) ? r : r + y;                        \
    }
REFERENCES(double, , f32)
REFERENCES(long double, l, f64)

/* -- the table of expectations ----------------------------------------------------------------- */

enum {
#define ITEM(name) FN_##name,
    WB_MATH_UNARY(ITEM) WB_MATH_BINARY(ITEM)
#undef ITEM
        FN_COUNT
};

typedef struct row {
    const char *name;
    double (*unary_f32)(double);
    long double (*unary_f64)(long double);
    double (*binary_f32)(double, double);
    long double (*binary_f64)(long double, long double);
    double limit_f32,
        limit_f64;    /* ulp; 0.5 is correct rounding, as double rounding of the reference */
    double low, high; /* bounds that no result may leave; both 0: none */
    double worst_f32[WB_ISA_COUNT], worst_f64[WB_ISA_COUNT]; /* measured */
} row;

#define LIBM(name, limit_f32, limit_f64, low, high)                                                \
    [FN_##name] = {#name, name, name##l, NULL, NULL, limit_f32, limit_f64, low, high, {0}, {0}}
#define OWN(name, limit_f32, limit_f64, low, high)                                                 \
    [FN_##name] = {#name,                                                                          \
                   ref_##name##_f32,                                                               \
                   ref_##name##_f64,                                                               \
                   NULL,                                                                           \
                   NULL,                                                                           \
                   limit_f32,                                                                      \
                   limit_f64,                                                                      \
                   low,                                                                            \
                   high,                                                                           \
                   {0},                                                                            \
                   {0}}
#define TWO(name, f32, f64, limit_f32, limit_f64)                                                  \
    [FN_##name] = {#name, NULL, NULL, f32, f64, limit_f32, limit_f64, 0, 0, {0}, {0}}

static row rows[FN_COUNT] = {
    LIBM(exp, 1.3, 1.3, 0, INF),
    LIBM(expm1, 2.0, 2.0, -1, INF),
    LIBM(log, 1.0, 1.0, 0, 0),
    LIBM(log1p, 1.7, 1.7, 0, 0),
    LIBM(tanh, 2.75, 2.75, -1, 1),
    LIBM(erf, 1.7, 1.7, -1, 1),
    OWN(sigmoid, 2.75, 2.75, 0, 1),
    OWN(softplus, 2.0, 2.0, 0, INF),
    LIBM(sqrt, 0.5001, 0.501, 0, 0),
    OWN(rsqrt, 1.5, 1.5, 0, 0),
    LIBM(floor, 0, 0, 0, 0),
    [FN_abs] = {"abs", fabs, fabsl, NULL, NULL, 0, 0, 0, INF, {0}, {0}},
    OWN(sign, 0, 0, -1, 1),
    OWN(recip, 0.5001, 0.501, 0, 0),
    LIBM(sin, 2.75, 2.75, -1, 1),
    LIBM(cos, 2.75, 2.75, -1, 1),
    TWO(max, ref_max_f32, ref_max_f64, 0, 0),
    TWO(min, ref_min_f32, ref_min_f64, 0, 0),
    TWO(mod, ref_mod_f32, ref_mod_f64, 0.5001, 0.501),
    TWO(pow, pow, powl, 1.0, 1.1),
};

typedef void unary_f32(int64_t n, const float *x, float *o);
typedef void unary_f64(int64_t n, const double *x, double *o);
typedef void binary_f32(int64_t n, const float *x, const float *y, float *o);
typedef void binary_f64(int64_t n, const double *x, const double *y, double *o);

#define GETTER(list, kind)                                                                         \
    static kind##_f32 *get_##kind##_f32(wb_isa isa, int function) {                                \
        const wb_math_table *table = wb_cpu_math(isa);                                             \
        kind##_f32 *const all[FN_COUNT] = {list(F32)};                                             \
        return all[function];                                                                      \
    }                                                                                              \
    static kind##_f64 *get_##kind##_f64(wb_isa isa, int function) {                                \
        const wb_math_table *table = wb_cpu_math(isa);                                             \
        kind##_f64 *const all[FN_COUNT] = {list(F64)};                                             \
        return all[function];                                                                      \
    }
#define F32(name) [FN_##name] = table->name##_f32,
#define F64(name) [FN_##name] = table->name##_f64,
GETTER(WB_MATH_UNARY, unary)
GETTER(WB_MATH_BINARY, binary)

/* -- errors ------------------------------------------------------------------------------------ */

/* Distance in units of the last place of the f32 result; 1e9 for a wrong NaN, infinity or sign of
 * 0. */
static double error_f32(float got, double want) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1e9;
    if (want == 0) return got == 0 && !signbit(got) == !signbit(want) ? 0 : 1e9;
    if ((double)got == want) return 0;
    if (isinf(want)) return 1e9;
    const double top = copysign(0x1p128, want);
    const double value = isinf(got) ? copysign(0x1p128, (double)got) : (double)got;
    const double wanted = fabs(want) > 0x1p128 ? top : want;
    const uint64_t exponent = k_bits_f64(wanted) >> 52 & 0x7ff; /* of the unit: exponent - 1046 */
    const uint64_t floor_exponent = exponent < 897 ? 897 : exponent > 1150 ? 1150 : exponent;
    return fabs(value - wanted) * k_from_bits_f64((uint64_t)(1023 + 1046 - floor_exponent) << 52);
}

static double error_f64(double got, long double want) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1e9;
    if (want == 0) return got == 0 && !signbit(got) == !signbit(want) ? 0 : 1e9;
    if ((long double)got == want) return 0;
    if (isinf(want)) return 1e9;
    const long double value =
        isinf(got) ? copysignl(0x1p1024L, (long double)got) : (long double)got;
    const long double wanted = fabsl(want) > 0x1p1024L ? copysignl(0x1p1024L, want) : want;
    int exponent;
    (void)frexpl(wanted, &exponent);
    exponent = exponent < -1021 ? -1021 : exponent > 1024 ? 1024 : exponent;
    return (double)ldexpl(fabsl(value - wanted), 53 - exponent);
}

static void report(const char *name, wb_isa isa, double x, double y, double got, double want) {
    print_error("%s, %s: at (%.17g, %.17g) got %.17g, want %.17g\n", name, wb_cpu_isa_name(isa), x,
                y, got, want);
}

/* -- inputs ------------------------------------------------------------------------------------ */

/* Places where functions or formats change; their neighbours are tried too, with both signs. */
/* clang-format off */
static const double centres[] = {
    0, 0x1p-149, 0x1p-126, 0x1p-1074, 0x1p-1022, 0x1p-54, 0x1p-27, 0x1p-25, 0x1p-24, 0x1p-13,
    0x1p-12, 0.25, 1.0 / 3, 0.34657359027997264, 0.41421356237309503, 0.5, 2.0 / 3,
    0.7071067811865476, 0.9, 1, 1.0397207708399179, 4.0 / 3, 1.4142135623730951,
    1.5707963267948966, 2, 2.5, 3.141592653589793, 3.95, 5.95, 9, 10, 17.32867951399863, 20, 22,
    40, 87.33654475055310, 88.02969193111305, 88.72283905206835, 103.27892990343184,
    103.97207708399179, 708.3964185322641, 709.0895657128241, 709.782712893384,
    744.4400719213812, 745.1332191019412, 0x1p20, 0x1p23, 0x1p24, 0x1p52, 0x1p53, 0x1p60, 0x1p64,
    0x1p127, (double)FLT_MAX, 0x1p960, DBL_MAX, INF};
/* clang-format on */
enum { CENTRES = sizeof centres / sizeof *centres, NEIGHBOURS = 512 };

static uint64_t state;

static uint64_t random_bits(void) { /* splitmix64 (Steele, Lea and Flood 2014) */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double random_unit(void) { return (double)(random_bits() >> 11) * 0x1p-53; }

/* Input number k of the f64 run: by turns any bits, ordinary sizes, any moderate exponent. */
static double random_f64(uint64_t k) {
    const double sign = random_bits() & 1 ? -1 : 1;
    if (k % 4 == 0) return k_from_bits_f64(random_bits());
    if (k % 4 == 1) return sign * random_unit() * 8;
    if (k % 4 == 2) return sign * random_unit() * 800;
    return sign * exp2(random_unit() * 80 - 60);
}

static double neighbour_f64(uint64_t k) {
    const uint64_t centre = k / (2 * NEIGHBOURS) % CENTRES, offset = k % (2 * NEIGHBOURS);
    const uint64_t sign = k / (2 * NEIGHBOURS * CENTRES) << 63;
    return k_from_bits_f64((k_bits_f64(centres[centre]) + offset - NEIGHBOURS) ^ sign);
}

static float neighbour_f32(uint64_t k) {
    const uint64_t centre = k / (2 * NEIGHBOURS) % CENTRES, offset = k % (2 * NEIGHBOURS);
    const uint32_t sign = (uint32_t)(k / (2 * NEIGHBOURS * CENTRES)) << 31;
    const double value = centres[centre] > (double)FLT_MAX ? INF : centres[centre];
    return k_from_bits_f32((k_bits_f32((float)value) + (uint32_t)offset - NEIGHBOURS) ^ sign);
}

static const uint64_t neighbours = (uint64_t)2 * 2 * NEIGHBOURS * CENTRES;

static uint64_t stride(void) {
    const char *asked = getenv("WEBER_MATH_STRIDE");
    const uint64_t number = asked ? strtoull(asked, NULL, 10) : 0;
    return number ? number : 997;
}

/* -- functions of one argument ----------------------------------------------------------------- */

static bool outside(const row *r, double got) {
    return (r->low != 0 || r->high != 0) && (got < r->low || got > r->high);
}

static int check_unary_f32(row *r, int64_t n, const float *x) {
    static double want[BATCH];
    static float got[BATCH];
    int failures = 0;
    for (int64_t i = 0; i < n; i++) want[i] = r->unary_f32((double)x[i]);
    for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
        if (!wb_cpu_has_isa((wb_isa)isa)) continue;
        get_unary_f32((wb_isa)isa, (int)(r - rows))(n, x, got);
        for (int64_t i = 0; i < n; i++) {
            const double error = error_f32(got[i], want[i]);
            if (error > r->worst_f32[isa]) r->worst_f32[isa] = error;
            if (error <= r->limit_f32 && !outside(r, (double)got[i])) continue;
            if (failures++ < 3)
                report(r->name, (wb_isa)isa, (double)x[i], 0, (double)got[i], want[i]);
        }
    }
    return failures;
}

static int check_unary_f64(row *r, int64_t n, const double *x) {
    static long double want[BATCH];
    static double got[BATCH];
    int failures = 0;
    for (int64_t i = 0; i < n; i++) want[i] = r->unary_f64((long double)x[i]);
    for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
        if (!wb_cpu_has_isa((wb_isa)isa)) continue;
        get_unary_f64((wb_isa)isa, (int)(r - rows))(n, x, got);
        for (int64_t i = 0; i < n; i++) {
            const double error = error_f64(got[i], want[i]);
            if (error > r->worst_f64[isa]) r->worst_f64[isa] = error;
            if (error <= r->limit_f64 && !outside(r, got[i])) continue;
            if (failures++ < 3) report(r->name, (wb_isa)isa, x[i], 0, got[i], (double)want[i]);
        }
    }
    return failures;
}

static void test_unary_f32(void **context) {
    static float x[BATCH];
    row *r = *context;
    const uint64_t step = stride(), patterns = ((UINT64_C(1) << 32) + step - 1) / step;
    int failures = 0;
    for (uint64_t k = 0; k < patterns + neighbours && failures == 0; k += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++)
            x[i] = k + i < patterns ? k_from_bits_f32((uint32_t)((k + i) * step))
                                    : neighbour_f32((k + i - patterns) % neighbours);
        failures += check_unary_f32(r, BATCH, x);
    }
    assert_int_equal(failures, 0);
}

static void test_unary_f64(void **context) {
    static double x[BATCH];
    row *r = *context;
    const uint64_t randoms = UINT64_C(200000000) / stride();
    int failures = 0;
    for (uint64_t k = 0; k < randoms + neighbours && failures == 0; k += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++)
            x[i] =
                k + i < randoms ? random_f64(k + i) : neighbour_f64((k + i - randoms) % neighbours);
        failures += check_unary_f64(r, BATCH, x);
    }
    assert_int_equal(failures, 0);
}

/* -- functions of two arguments ---------------------------------------------------------------- */

/* clang-format off */
static const double edges[] = {
    0, 1, 2, 3, 0.5, 1.5, 0.75, 0x1p-149, 1e-30, 1e30, 7, 8, 15, 0x1p23, 0x1p24 - 1, 0x1p24,
    0x1p53 - 1, 0x1p53, 0x1p-1074, DBL_MAX, 0x1p1000, INF, NOT_A_NUMBER, 100.25, 1023, 1074.5,
    0x1p-126, 1 - 0x1p-24};
/* clang-format on */
enum { EDGES = sizeof edges / sizeof *edges };

/* Pair number k: all pairs of edges with all signs, then four kinds of random pairs. */
static void pair_f64(uint64_t k, double *x, double *y) {
    if (k < 4 * EDGES * EDGES) {
        *x = copysign(edges[k / 4 % EDGES], k & 1 ? -1 : 1);
        *y = copysign(edges[k / 4 / EDGES], k & 2 ? -1 : 1);
        return;
    }
    *x = random_f64(random_bits());
    *y = random_f64(random_bits());
    if (k % 4 == 1) *x = fabs(*x);
    if (k % 4 == 2) *y = floor(random_unit() * 64) - 32;
    if (k % 4 == 3) { /* pow: results over the whole range from bases near 1 on */
        *x = exp2((random_unit() - 0.5) * exp2(-20 * random_unit()));
        *y = (random_unit() * 2 - 1) * 1080 / log2(*x);
    }
}

/* mod is exact only up to this |x / y|; beyond it the result must still lie between 0 and y. */
static bool far_mod(const row *r, double x, double y, double limit) {
    return r == &rows[FN_mod] && isfinite(x) && isfinite(y) && y != 0 && fabs(x / y) >= limit;
}

static double far_mod_error(double got, double y) {
    return !signbit(got) == !signbit(y) && fabs(got) <= fabs(y) ? 0 : 1e9;
}

static void test_binary_f32(void **context) {
    static float x[BATCH], y[BATCH], got[BATCH];
    row *r = *context;
    int failures = 0;
    for (uint64_t k = 0; k < UINT64_C(1000000000) / stride() && failures == 0; k += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++) {
            double wide_x, wide_y;
            pair_f64(k + i, &wide_x, &wide_y);
            if (k > 100000) wide_y *= k % 3 ? 1 : 0.125;
            x[i] = (float)(fabs(wide_x) > 1e38 && isfinite(wide_x) ? (double)FLT_MAX : wide_x);
            y[i] = (float)(fabs(wide_y) > 1e38 && isfinite(wide_y) ? (double)FLT_MAX : wide_y);
        }
        for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
            if (!wb_cpu_has_isa((wb_isa)isa)) continue;
            get_binary_f32((wb_isa)isa, (int)(r - rows))(BATCH, x, y, got);
            for (int64_t i = 0; i < BATCH; i++) {
                const double a = (double)x[i], b = (double)y[i], want = r->binary_f32(a, b);
                const double error = far_mod(r, a, b, 0x1p29) ? far_mod_error((double)got[i], b)
                                                              : error_f32(got[i], want);
                if (error > r->worst_f32[isa]) r->worst_f32[isa] = error;
                if (error > r->limit_f32 && failures++ < 3)
                    report(r->name, (wb_isa)isa, a, b, (double)got[i], want);
            }
        }
    }
    assert_int_equal(failures, 0);
}

static void test_binary_f64(void **context) {
    static double x[BATCH], y[BATCH], got[BATCH];
    row *r = *context;
    int failures = 0;
    for (uint64_t k = 0; k < UINT64_C(400000000) / stride() && failures == 0; k += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++) pair_f64(k + i, &x[i], &y[i]);
        for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
            if (!wb_cpu_has_isa((wb_isa)isa)) continue;
            get_binary_f64((wb_isa)isa, (int)(r - rows))(BATCH, x, y, got);
            for (int64_t i = 0; i < BATCH; i++) {
                const long double want = r->binary_f64((long double)x[i], (long double)y[i]);
                const double error = far_mod(r, x[i], y[i], 0x1p52) ? far_mod_error(got[i], y[i])
                                                                    : error_f64(got[i], want);
                if (error > r->worst_f64[isa]) r->worst_f64[isa] = error;
                if (error > r->limit_f64 && failures++ < 3)
                    report(r->name, (wb_isa)isa, x[i], y[i], got[i], (double)want);
            }
        }
    }
    assert_int_equal(failures, 0);
}

/* -- loops ------------------------------------------------------------------------------------- */

static void loops_of_any_length_work_in_place(void **context) {
    (void)context;
    for (int isa = 0; isa < WB_ISA_COUNT; isa++)
        for (int function = 0; wb_cpu_has_isa((wb_isa)isa) && function < FN_COUNT; function++) {
            unary_f32 *loop = get_unary_f32((wb_isa)isa, function);
            for (int64_t n = 0; loop && n < 70; n++) {
                float x[80], o[80];
                for (int i = 0; i < 80; i++) x[i] = o[i] = 0.25f * (float)(i + 1);
                loop(n, x, o);
                loop(n, x, x);
                assert_memory_equal(x, o, sizeof x);
                for (int64_t i = n; i < 80; i++) assert_true(o[i] == 0.25f * (float)(i + 1));
            }
        }
}

/* exp of what is below 88; denormal numbers become 0. */
static void exp_low_is_exp_without_denormals(void **context) {
    (void)context;
    double worst = 0;
    for (float x = 20; x > -87.3f; x -= 0.00137f) {
        const double error = error_f32(k_exp_low_f32(x), exp((double)x));
        if (error > worst) worst = error;
    }
    print_message("%.3f ulp\n", worst);
    assert_true(worst < 1.3);
    assert_true(k_exp_low_f32(0) == 1);
    assert_true(k_exp_low_f32(-87.5f) < 1.2e-38f);
    const float far[] = {-87.7f, -88, -104, -1e30f, -(float)INF};
    for (int i = 0; i < 5; i++) assert_true(k_exp_low_f32(far[i]) == 0);
    assert_true(isnan(k_exp_low_f32((float)NOT_A_NUMBER)));
}

static void of_equals_max_and_min_take_the_first(void **context) {
    (void)context;
    const float plus = 0.0f, minus = -0.0f;
    assert_true(!signbit(k_max_f32(plus, minus)) && signbit(k_max_f32(minus, plus)));
    assert_true(!signbit(k_min_f32(plus, minus)) && signbit(k_min_f32(minus, plus)));
}

/* -- halves ------------------------------------------------------------------------------------ */

/* A 16-bit format with `digits` mantissa bits below the leading one and smallest exponent
 * `least`. */
typedef struct format {
    int digits, least;
    double largest;
    size_t to, from; /* offsets in wb_math_table */
} format;

#define AT(name) offsetof(wb_math_table, name)
static const format formats[] = {
    {10, -14, 65504, AT(f32_to_f16), AT(f16_to_f32)},
    {7, -126, 0x1.fep127, AT(f32_to_bf16), AT(bf16_to_f32)},
};

static double decode(const format *f, uint16_t half) {
    const int exponent = (half & 0x7fff) >> f->digits, top = 0x7fff >> f->digits;
    const double mantissa = half & ((1 << f->digits) - 1), unit = ldexp(1, -f->digits);
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == top) return mantissa != 0 ? NOT_A_NUMBER : sign * INF;
    if (exponent == 0) return sign * ldexp(mantissa * unit, f->least);
    return sign * ldexp(1 + mantissa * unit, exponent - 1 + f->least);
}

/* x rounded to the format: to a multiple of its last place, in double, which is exact. */
static double rounded(const format *f, double x) {
    if (isnan(x) || isinf(x) || x == 0) return x;
    int exponent = ilogb(x);
    exponent = (exponent < f->least ? f->least : exponent) - f->digits;
    const double y = ldexp(nearbyint(ldexp(x, -exponent)), exponent);
    return fabs(y) > f->largest ? copysign(INF, x) : copysign(y, x);
}

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

typedef void to_half(int64_t n, const float *x, uint16_t *o);
typedef void from_half(int64_t n, const uint16_t *x, float *o);

static void check_format(wb_isa isa, const format *f) {
    static uint16_t half[65536], back[65536];
    static float value[65536], shifted[65536];
    to_half *to;
    from_half *from;
    memcpy(&to, (const char *)wb_cpu_math(isa) + f->to, sizeof to);
    memcpy(&from, (const char *)wb_cpu_math(isa) + f->from, sizeof from);
    for (int i = 0; i < 65536; i++) half[i] = (uint16_t)i;
    from(65536, half, value);
    to(65536, value, back);
    const uint32_t quiet = 1u << (f->digits - 1);
    for (int i = 0; i < 65536; i++) {
        const double exact = decode(f, half[i]);
        assert_true(same((double)value[i], exact));
        assert_int_equal(back[i], isnan(exact) ? half[i] | quiet : half[i]);
        if (isnan(exact)) assert_true(k_bits_f32(value[i]) & 0x400000u);
    }
    /* around every number and every middle between two: offsets in f32 bits */
    const uint32_t gap = 1u << (23 - f->digits);
    const uint32_t offsets[] = {1, gap / 4, gap / 2 - 1, gap / 2, gap / 2 + 1, gap - 1};
    for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
        for (int i = 0; i < 65536; i++)
            shifted[i] =
                k_from_bits_f32(k_bits_f32(value[i]) + (isfinite(value[i]) ? offsets[k] : 0));
        to(65536, shifted, back);
        for (int i = 0; i < 65536; i++)
            assert_true(same(decode(f, back[i]), rounded(f, (double)shifted[i])));
    }
}

static void halves_convert_and_round_to_nearest_even(void **context) {
    (void)context;
    for (int isa = 0; isa < WB_ISA_COUNT; isa++)
        for (size_t k = 0; wb_cpu_has_isa((wb_isa)isa) && k < sizeof formats / sizeof *formats; k++)
            check_format((wb_isa)isa, &formats[k]);
}

static void each_set_rounds_any_float_as_the_definition_does(void **context) {
    (void)context;
    enum { N = 61 }; /* whole vectors and a rest */
    for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
        if (!wb_cpu_has_isa((wb_isa)isa)) continue;
        const wb_math_table *table = wb_cpu_math((wb_isa)isa);
        for (uint64_t bits = 0; bits >> 32 == 0;) {
            float x[N];
            uint16_t f16[N], bf16[N];
            for (int i = 0; i < N; i++, bits += 7919) x[i] = k_from_bits_f32((uint32_t)bits);
            table->f32_to_f16(N, x, f16);
            table->f32_to_bf16(N, x, bf16);
            for (int i = 0; i < N; i++) {
                assert_int_equal(f16[i], k_f32_to_f16(x[i]));
                assert_int_equal(bf16[i], k_f32_to_bf16(x[i]));
            }
        }
    }
}

static void any_float_rounds_to_its_nearest_half(void **context) {
    (void)context;
    for (uint64_t bits = 0; bits >> 32 == 0; bits += 7919) {
        const float x = k_from_bits_f32((uint32_t)bits);
        assert_true(same(decode(&formats[0], k_f32_to_f16(x)), rounded(&formats[0], (double)x)));
        assert_true(same(decode(&formats[1], k_f32_to_bf16(x)), rounded(&formats[1], (double)x)));
    }
}

/* -- random numbers ---------------------------------------------------------------------------- */

static void philox_gives_the_known_answers(void **context) {
    (void)context;
    const uint64_t zero = 0;
    const uint64_t pi[] = {0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822};
    const struct { /* from kat_vectors of Random123, the authors' library */
        uint64_t low, high, key;
        uint32_t want[4];
    } answers[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {~zero, ~zero, ~zero, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {pi[0], pi[1], pi[2], {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        uint32_t got[4];
        wb_philox(got, answers[k].low, answers[k].high, answers[k].key);
        assert_memory_equal(got, answers[k].want, sizeof got);
    }
}

enum { MANY = 3000 };
static const uint64_t test_key = 0x0123456789abcdef, test_counter = 0xfffffffff0;

/* Element i straight from the definition in philox.h. */
static double uniform_f64_by_definition(int64_t i) {
    uint32_t w[4];
    wb_philox(w, test_counter + (uint64_t)(i >> 1), 0, test_key);
    return ldexp((double)(w[2 * (i & 1)] >> 5) * 0x1p26 + (double)(w[2 * (i & 1) + 1] >> 6), -53);
}

static uint32_t bits_by_definition(int64_t i) {
    uint32_t w[4];
    wb_philox(w, test_counter + (uint64_t)(i >> 2), 0, test_key);
    return w[i & 3];
}

static void fills_follow_their_definition(void **context) {
    (void)context;
    static uint32_t bits[MANY];
    static float uniform[MANY], normal[MANY];
    static double uniform_wide[MANY], normal_wide[MANY];
    for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
        if (!wb_cpu_has_isa((wb_isa)isa)) continue;
        const wb_math_table *table = wb_cpu_math((wb_isa)isa);
        table->fill_bits_u32(bits, 0, MANY, test_key, test_counter);
        table->fill_uniform_f32(uniform, 0, MANY, test_key, test_counter);
        table->fill_uniform_f64(uniform_wide, 0, MANY, test_key, test_counter);
        table->fill_normal_f32(normal, 0, MANY, test_key, test_counter);
        table->fill_normal_f64(normal_wide, 0, MANY, test_key, test_counter);
        for (int64_t i = 0; i < MANY; i++) {
            assert_int_equal(bits[i], bits_by_definition(i));
            assert_true((double)uniform[i] == (double)(bits[i] >> 8) * 0x1p-24);
            assert_true(uniform_wide[i] == uniform_f64_by_definition(i));
            const int64_t even = i & ~(int64_t)1, odd = even + 1;
            const double pi = 3.14159265358979323846;
            const double r = sqrt(-2 * log1p(-(double)uniform[even])),
                         t = 2 * pi * (double)uniform[odd];
            assert_true(fabs((double)normal[i] - r * (i & 1 ? sin(t) : cos(t))) < 5e-7 * r);
            const double s = sqrt(-2 * log1p(-uniform_wide[even])), v = 2 * pi * uniform_wide[odd];
            assert_true(fabs(normal_wide[i] - s * (i & 1 ? sin(v) : cos(v))) < 3e-15 * s);
        }
    }
}

#define SPLIT_TEST(name, type)                                                                     \
    static void split_##name(const wb_math_table *table) {                                         \
        static type whole[MANY], parts[MANY];                                                      \
        const int64_t far = (int64_t)1 << 40;                                                      \
        table->fill_##name(whole, far, MANY, test_key, 7);                                         \
        for (int64_t i = 0, n; i < MANY; i += n) {                                                 \
            n = 1 + (int64_t)(random_bits() % 300);                                                \
            n = n < MANY - i ? n : MANY - i;                                                       \
            table->fill_##name(parts + i, far + i, n, test_key, 7);                                \
        }                                                                                          \
        assert_memory_equal(parts, whole, sizeof whole);                                           \
    }
WB_MATH_FILL(SPLIT_TEST)

static void any_split_of_a_fill_gives_the_same_bits(void **context) {
    (void)context;
    for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
        if (!wb_cpu_has_isa((wb_isa)isa)) continue;
#define CALL(name, type) split_##name(wb_cpu_math((wb_isa)isa));
        WB_MATH_FILL(CALL)
#undef CALL
    }
}

static void normals_have_mean_0_variance_1_and_fourth_moment_3(void **context) {
    (void)context;
    enum { N = 1 << 20 };
    float *x = malloc(N * sizeof *x);
    assert_non_null(x);
    wb_cpu_math(wb_cpu_isa())->fill_normal_f32(x, 0, N, 1, 0);
    double sums[5] = {0};
    for (int i = 0; i < N; i++)
        for (int k = 1; k <= 4; k++) sums[k] += pow((double)x[i], k) / N;
    free(x);
    assert_true(fabs(sums[1]) < 5 * sqrt(1.0 / N)); /* five standard deviations */
    assert_true(fabs(sums[2] - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(sums[3]) < 5 * sqrt(15.0 / N));
    assert_true(fabs(sums[4] - 3) < 5 * sqrt(96.0 / N));
}

/* -- main -------------------------------------------------------------------------------------- */

static void print_worst(void) {
    print_message("largest errors in ulp, f32 and f64, for each instruction set\n");
    for (int i = 0; i < FN_COUNT; i++) {
        print_message("%-9s", rows[i].name);
        for (int isa = 0; isa < WB_ISA_COUNT; isa++)
            if (wb_cpu_has_isa((wb_isa)isa))
                print_message("  %9s %.3f %.3f", wb_cpu_isa_name((wb_isa)isa),
                              rows[i].worst_f32[isa], rows[i].worst_f64[isa]);
        print_message("\n");
    }
}

int main(void) {
    static char names[2 * FN_COUNT][64];
    const struct CMUnitTest others[] = {
        cmocka_unit_test(loops_of_any_length_work_in_place),
        cmocka_unit_test(exp_low_is_exp_without_denormals),
        cmocka_unit_test(of_equals_max_and_min_take_the_first),
        cmocka_unit_test(halves_convert_and_round_to_nearest_even),
        cmocka_unit_test(any_float_rounds_to_its_nearest_half),
        cmocka_unit_test(each_set_rounds_any_float_as_the_definition_does),
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(fills_follow_their_definition),
        cmocka_unit_test(any_split_of_a_fill_gives_the_same_bits),
        cmocka_unit_test(normals_have_mean_0_variance_1_and_fourth_moment_3),
    };
    struct CMUnitTest tests[2 * FN_COUNT] = {{0}};
    for (int i = 0; i < FN_COUNT; i++) {
        row *r = &rows[i];
        snprintf(names[2 * i], sizeof *names, "%s f32 is right to %.2f ulp", r->name, r->limit_f32);
        snprintf(names[2 * i + 1], sizeof *names, "%s f64 is right to %.2f ulp", r->name,
                 r->limit_f64);
        tests[2 * i] = (struct CMUnitTest){
            names[2 * i], r->unary_f32 ? test_unary_f32 : test_binary_f32, NULL, NULL, r};
        tests[2 * i + 1] = (struct CMUnitTest){
            names[2 * i + 1], r->unary_f64 ? test_unary_f64 : test_binary_f64, NULL, NULL, r};
    }
    print_message("seed %llu\n", (unsigned long long)state);
    int failures = cmocka_run_group_tests_name("math", tests, NULL, NULL);
    failures += cmocka_run_group_tests_name("halves and random numbers", others, NULL, NULL);
    print_worst();
    return failures;
}
