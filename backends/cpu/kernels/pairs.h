/* Loops that do two steps: each is rounded as it would be by itself, so that a value is the same
 * number in every program. pairs.c is therefore built without contraction (-ffp-contract=off). */
#ifndef WB_CPU_KERNELS_PAIRS_H
#define WB_CPU_KERNELS_PAIRS_H

#include "loops.h"
#include "vectorise.h"

/* Y, Z: yp[i], zp[i], or y0, z0 where one number serves all elements. */
#define WB_LOOP_OF_TWO(name, T, Y, Z, expression)                                                  \
    void name(int64_t n, void *o, const void *xs, const void *ys, const void *zs) {                \
        const T *xp = xs, *yp = ys, *zp = zs, y0 = yp[0], z0 = zp[0];                              \
        T *op = o;                                                                                 \
        (void)y0, (void)z0;                                                                        \
        WB_INDEPENDENT for (int64_t i = 0; i < n / WB_LANES * WB_LANES; i++) {                     \
            const T x = xp[i], y = Y, z = Z;                                                       \
            (void)z;                                                                               \
            op[i] = expression;                                                                    \
        }                                                                                          \
    }

/* X(name, expression) for each pair of loops.h that takes no functions. */
#define WB_PAIR_LIST(X)                                                                            \
    X(product_added, z + x * y)                                                                    \
    X(product_subtracted, z - x * y)                                                               \
    X(product_negated, y * -x)                                                                     \
    X(difference_times, (x - y) * z)

/* The loops of a pair for f32 or f64: of arrays, and with y, z, or both as numbers. */
#define WB_PAIR_NAME(type, name, form) WB_ISA_NAME(type##_##name##form)
#define WB_PAIR_DECLARE(name, expression)                                                          \
    wb_element_loop WB_PAIR_NAME(f32, name, ), WB_PAIR_NAME(f32, name, _by),                       \
        WB_PAIR_NAME(f32, name, _to), WB_PAIR_NAME(f32, name, _by_to), WB_PAIR_NAME(f64, name, ),  \
        WB_PAIR_NAME(f64, name, _by), WB_PAIR_NAME(f64, name, _to),                                \
        WB_PAIR_NAME(f64, name, _by_to);
WB_PAIR_LIST(WB_PAIR_DECLARE)
#undef WB_PAIR_DECLARE

#define WB_PAIR_ROW(name, form)                                                                    \
    { WB_PAIR_NAME(f32, name, form), WB_PAIR_NAME(f64, name, form) }
#define WB_PAIR_ROWS(name)                                                                         \
    {                                                                                              \
        WB_PAIR_ROW(name, ), WB_PAIR_ROW(name, _by), WB_PAIR_ROW(name, _to),                       \
            WB_PAIR_ROW(name, _by_to)                                                              \
    }

#endif
