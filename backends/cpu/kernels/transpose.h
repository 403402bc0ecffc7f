/* Transposes squares of vectors: wb_R_transpose(v) makes element j of v[i] element i of v[j], R =
 * f32 or f64. A stage takes the elements of v[i] and v[i + lanes / 2] in turn, which rotates the
 * bits of (row, column) by one; log2(lanes) of them exchange the two. */
#ifndef WB_CPU_TRANSPOSE_H
#define WB_CPU_TRANSPOSE_H

#include "../simd.h"

/* Before a loop whose count is a constant where it is expanded. clang up to 16 leaves nested loops
 * rolled where it is only asked to unroll: sums that should be registers then stay in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif WB_SIMD
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

#define WB_LOW_2   0, 2
#define WB_HIGH_2  1, 3
#define WB_LOW_4   0, 4, 1, 5
#define WB_HIGH_4  2, 6, 3, 7
#define WB_LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define WB_HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define WB_LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define WB_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#if !WB_SIMD
#define WB_TRANSPOSE(R, LOW, HIGH)                                                                 \
    WB_INLINE void wb_##R##_transpose(wb_##R##v *v) { (void)v; }
#else
#define WB_TRANSPOSE(R, LOW, HIGH)                                                                 \
    WB_INLINE void wb_##R##_transpose(wb_##R##v *v) {                                              \
        enum { lanes = sizeof *v / sizeof(*v)[0] };                                                \
        UNROLL for (int stage = lanes; stage > 1; stage /= 2) {                                    \
            wb_##R##v old[lanes];                                                                  \
            UNROLL for (int i = 0; i < lanes; i++) old[i] = v[i];                                  \
            UNROLL for (int i = 0; i < lanes / 2; i++) {                                           \
                v[2 * i] = __builtin_shufflevector(old[i], old[i + lanes / 2], LOW);               \
                v[2 * i + 1] = __builtin_shufflevector(old[i], old[i + lanes / 2], HIGH);          \
            }                                                                                      \
        }                                                                                          \
    }
#endif

#if WB_SIMD && WB_VECTOR_BYTES == 64
WB_TRANSPOSE(f32, WB_LOW_16, WB_HIGH_16)
WB_TRANSPOSE(f64, WB_LOW_8, WB_HIGH_8)
#elif WB_SIMD && WB_VECTOR_BYTES == 32
WB_TRANSPOSE(f32, WB_LOW_8, WB_HIGH_8)
WB_TRANSPOSE(f64, WB_LOW_4, WB_HIGH_4)
#else
WB_TRANSPOSE(f32, WB_LOW_4, WB_HIGH_4)
WB_TRANSPOSE(f64, WB_LOW_2, WB_HIGH_2)
#endif

#endif
