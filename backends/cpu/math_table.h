/* Loops over the functions of math_functions.h, half.h and philox.h, one build per instruction set.
 *
 *     const wb_math_table *math = wb_cpu_math(wb_cpu_isa());
 *     math->exp_f32(n, x, o);           // o[i] = exp(x[i]), 0 <= i < n
 *     math->pow_f64(n, x, y, o);        // o[i] = x[i] ^ y[i]
 *
 * o may be x or y itself; otherwise they must not overlap. Any alignment; any n >= 0; nothing
 * fails. Values at the edges: math_functions.h. sin and cos hold for all finite arguments here. */
#ifndef WB_CPU_MATH_TABLE_H
#define WB_CPU_MATH_TABLE_H

#include "isa.h"

#include <stdint.h>

/* clang-format off */
/* X(name) for every function of one argument but sin and cos. */
#define WB_MATH_PLAIN(X)                                                                           \
    X(exp) X(expm1) X(log) X(log1p) X(tanh) X(erf) X(sigmoid) X(softplus)                          \
    X(sqrt) X(rsqrt) X(recip) X(floor) X(abs) X(sign)

/* Those that need a second way for large arguments. */
#define WB_MATH_PERIODIC(X) X(sin) X(cos)

#define WB_MATH_UNARY(X)  WB_MATH_PLAIN(X) WB_MATH_PERIODIC(X)
#define WB_MATH_BINARY(X) X(max) X(min) X(mod) X(pow)

/* X(name, type of the argument, type of the result). */
#define WB_MATH_CONVERT(X)                                                                         \
    X(f16_to_f32, uint16_t, float)  X(f32_to_f16, float, uint16_t)                                 \
    X(bf16_to_f32, uint16_t, float) X(f32_to_bf16, float, uint16_t)

/* X(name, type): void fill_name(type *out, first, n, key, counter), see philox.h. */
#define WB_MATH_FILL(X)                                                                            \
    X(bits_u32, uint32_t)                                                                          \
    X(uniform_f32, float) X(uniform_f64, double)                                                   \
    X(normal_f32, float)  X(normal_f64, double)
/* clang-format on */

typedef struct wb_math_table {
#define FIELD(name)                                                                                \
    void (*name##_f32)(int64_t n, const float *x, float *o);                                       \
    void (*name##_f64)(int64_t n, const double *x, double *o);
    WB_MATH_UNARY(FIELD)
#undef FIELD
#define FIELD(name)                                                                                \
    void (*name##_f32)(int64_t n, const float *x, const float *y, float *o);                       \
    void (*name##_f64)(int64_t n, const double *x, const double *y, double *o);
    WB_MATH_BINARY(FIELD)
#undef FIELD
#define FIELD(name, from, to) void (*name)(int64_t n, const from *x, to *o);
    WB_MATH_CONVERT(FIELD)
#undef FIELD
#define FIELD(name, type)                                                                          \
    void (*fill_##name)(type * out, int64_t first, int64_t n, uint64_t key, uint64_t counter);
    WB_MATH_FILL(FIELD)
#undef FIELD
} wb_math_table;

#define WB_MATH_DECLARE(isa, suffix) extern const wb_math_table wb_math_##suffix;
WB_ISA_LIST(WB_MATH_DECLARE)
#undef WB_MATH_DECLARE

/* The table of an instruction set that this build has. */
static inline const wb_math_table *wb_cpu_math(wb_isa isa) {
#define ROW(isa, suffix) [isa] = &wb_math_##suffix,
    static const wb_math_table *const tables[WB_ISA_COUNT] = {WB_ISA_LIST(ROW)};
#undef ROW
    return tables[isa];
}

#endif
