/* Vectors of float and double, as wide as the instruction set that a file is compiled for.
 *
 * For both R = f32 and f64: the type wb_Rv of WB_R_LANES elements, and
 *
 *     wb_Rv_load(p), wb_Rv_store(p, v)                      no alignment wanted
 *     wb_Rv_load_part(p, count), wb_Rv_store_part(p, v, count)
 *                                                           the first 1 .. lanes elements; nothing
 *                                                           beyond is touched, missing ones are 0
 *     wb_Rv_load_edge(p, count)                             load_part, fast where count is often
 *                                                           all
 *     wb_Rv_load_four(p, v)                                 v[0] .. v[3], one after the other
 *     wb_Rv_set(s)                                          s in every lane
 *     wb_Rv_sum(v)                                          of the lanes, halves first
 *     wb_Rv_total(v)                                        the same in f64
 *     wb_Rv_largest(v)                                      of the lanes, none of which is NaN
 *     wb_Rv_max(v, w)                                       the larger of each lane; NaN where
 *                                                           either is
 *     wb_Rv_maximum(v)                                      of the lanes; NaN where one is
 *
 * + - * on vectors are C's operators (GCC and clang vector extensions). With WB_SIMD == 0 a vector
 * is one scalar and everything still compiles as plain C. */
#ifndef WB_CPU_SIMD_H
#define WB_CPU_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if !defined(WB_SIMD)
#if defined(__GNUC__) || defined(__clang__)
#define WB_SIMD 1
#else
#define WB_SIMD 0
#endif
#endif

/* WB_NEON: the kernels of ARM's instruction sets; without it ARM gets what the compiler makes of
 * plain C. */
#if !WB_SIMD || !defined(WB_NEON)
#undef WB_NEON
#define WB_NEON 0
#endif

#if WB_SIMD && (defined(__AVX512F__) || defined(__AVX2__))
#include <immintrin.h>
#elif WB_NEON
#include <arm_neon.h>
#endif

/* A multiply-add may take one lane of a vector for all of another one's. */
#define WB_BY_LANE WB_NEON

/* Forces a value to be loaded again where it is used again, because registers are scarce. */
#define WB_FORGET_LOADS() __asm__ volatile("" ::: "memory")

/* A vector that was loaded stays in a register: gcc would load it again for each use. */
#if WB_SIMD && defined(__x86_64__)
#define WB_IN_REGISTER(v) __asm__("" : "+v"(v))
#elif WB_SIMD && defined(__aarch64__)
#define WB_IN_REGISTER(v) __asm__("" : "+w"(v))
#else
#define WB_IN_REGISTER(v) ((void)0)
#endif

/* bytes of a vector, and how many the machine holds in registers */
#if !WB_SIMD
#define WB_VECTOR_REGISTERS 16
#elif defined(__AVX512F__)
#define WB_VECTOR_BYTES     64
#define WB_VECTOR_REGISTERS 32
#elif defined(__AVX2__)
#define WB_VECTOR_BYTES     32
#define WB_VECTOR_REGISTERS 16
#elif defined(__aarch64__)
#define WB_VECTOR_BYTES     16
#define WB_VECTOR_REGISTERS 32
#else
#define WB_VECTOR_BYTES     16
#define WB_VECTOR_REGISTERS 16
#endif

#if WB_SIMD
#define WB_F32_LANES (WB_VECTOR_BYTES / 4)
#define WB_F64_LANES (WB_VECTOR_BYTES / 8)
typedef float wb_f32v __attribute__((vector_size(WB_VECTOR_BYTES)));
typedef double wb_f64v __attribute__((vector_size(WB_VECTOR_BYTES)));
typedef float wb_f32v_any __attribute__((vector_size(WB_VECTOR_BYTES), aligned(4), may_alias));
typedef double wb_f64v_any __attribute__((vector_size(WB_VECTOR_BYTES), aligned(8), may_alias));
#define WB_INLINE static inline __attribute__((always_inline, unused))
#else
#define WB_F32_LANES 1
#define WB_F64_LANES 1
typedef float wb_f32v, wb_f32v_any;
typedef double wb_f64v, wb_f64v_any;
#define WB_INLINE    static inline
#endif

WB_INLINE wb_f32v wb_f32v_load(const float *p) { return *(const wb_f32v_any *)p; }
WB_INLINE wb_f64v wb_f64v_load(const double *p) { return *(const wb_f64v_any *)p; }
WB_INLINE void wb_f32v_store(float *p, wb_f32v v) { *(wb_f32v_any *)p = v; }
WB_INLINE void wb_f64v_store(double *p, wb_f64v v) { *(wb_f64v_any *)p = v; }

#if WB_NEON
/* One instruction: of loads that stand apart, each before its use, gcc makes no pairs. */
WB_INLINE void wb_f32v_load_four(const float *p, wb_f32v *v) {
    const float32x4x4_t four = vld1q_f32_x4(p);
    for (int i = 0; i < 4; i++) v[i] = four.val[i];
}
WB_INLINE void wb_f64v_load_four(const double *p, wb_f64v *v) {
    const float64x2x4_t four = vld1q_f64_x4(p);
    for (int i = 0; i < 4; i++) v[i] = four.val[i];
}
#else
WB_INLINE void wb_f32v_load_four(const float *p, wb_f32v *v) {
    for (int i = 0; i < 4; i++) v[i] = wb_f32v_load(p + i * WB_F32_LANES);
}
WB_INLINE void wb_f64v_load_four(const double *p, wb_f64v *v) {
    for (int i = 0; i < 4; i++) v[i] = wb_f64v_load(p + i * WB_F64_LANES);
}
#endif

#if WB_SIMD
WB_INLINE wb_f32v wb_f32v_set(float s) { return s - (wb_f32v){0}; }
WB_INLINE wb_f64v wb_f64v_set(double s) { return s - (wb_f64v){0}; }
#else
WB_INLINE wb_f32v wb_f32v_set(float s) { return s; }
WB_INLINE wb_f64v wb_f64v_set(double s) { return s; }
#endif

#if WB_SIMD && defined(__AVX512F__)
WB_INLINE float wb_f32v_sum(wb_f32v v) { return _mm512_reduce_add_ps(v); }
WB_INLINE double wb_f64v_sum(wb_f64v v) { return _mm512_reduce_add_pd(v); }
WB_INLINE float wb_f32v_largest(wb_f32v v) { return _mm512_reduce_max_ps(v); }
WB_INLINE double wb_f64v_largest(wb_f64v v) { return _mm512_reduce_max_pd(v); }
WB_INLINE double wb_f32v_total(wb_f32v v) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    return _mm512_reduce_add_pd(low + _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
}
WB_INLINE wb_f32v wb_f32v_max(wb_f32v v, wb_f32v w) { /* of the instruction NaN gives v */
    return _mm512_mask_max_ps(w, _mm512_cmp_ps_mask(w, w, _CMP_ORD_Q), w, v);
}
WB_INLINE wb_f64v wb_f64v_max(wb_f64v v, wb_f64v w) {
    return _mm512_mask_max_pd(w, _mm512_cmp_pd_mask(w, w, _CMP_ORD_Q), w, v);
}
WB_INLINE float wb_f32v_maximum(wb_f32v v) {
    const bool is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) != 0;
    return is_nan ? __builtin_nanf("") : _mm512_reduce_max_ps(v);
}
WB_INLINE double wb_f64v_maximum(wb_f64v v) {
    const bool is_nan = _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q) != 0;
    return is_nan ? __builtin_nan("") : _mm512_reduce_max_pd(v);
}
#else
/* wb_Rv_name, with `step` applied to a, a lane, and b, one of the other half. */
#define WB_HALVES(name, R, REAL, LANES, TYPE, step)                                                \
    WB_INLINE TYPE wb_##R##v_##name(wb_##R##v v) {                                                 \
        REAL from[LANES];                                                                          \
        TYPE lane[LANES];                                                                          \
        memcpy(from, &v, sizeof from);                                                             \
        for (int i = 0; i < LANES; i++) lane[i] = (TYPE)from[i];                                   \
        for (int width = LANES / 2; width > 0; width /= 2)                                         \
            for (int i = 0; i < width; i++) {                                                      \
                const TYPE a = lane[i], b = lane[i + width];                                       \
                lane[i] = step;                                                                    \
            }                                                                                      \
        return lane[0];                                                                            \
    }
WB_HALVES(sum, f32, float, WB_F32_LANES, float, a + b)
WB_HALVES(sum, f64, double, WB_F64_LANES, double, a + b)
WB_HALVES(total, f32, float, WB_F32_LANES, double, a + b)
WB_HALVES(largest, f32, float, WB_F32_LANES, float, b > a ? b : a)
WB_HALVES(largest, f64, double, WB_F64_LANES, double, b > a ? b : a)
WB_HALVES(maximum, f32, float, WB_F32_LANES, float, ((a < b) | (b != b)) ? b : a)
WB_HALVES(maximum, f64, double, WB_F64_LANES, double, ((a < b) | (b != b)) ? b : a)
#undef WB_HALVES
#if WB_SIMD && defined(__AVX2__) /* of the instruction NaN gives v */
WB_INLINE wb_f32v wb_f32v_max(wb_f32v v, wb_f32v w) {
    return _mm256_blendv_ps(_mm256_max_ps(w, v), w, _mm256_cmp_ps(w, w, _CMP_UNORD_Q));
}
WB_INLINE wb_f64v wb_f64v_max(wb_f64v v, wb_f64v w) {
    return _mm256_blendv_pd(_mm256_max_pd(w, v), w, _mm256_cmp_pd(w, w, _CMP_UNORD_Q));
}
#elif WB_NEON
WB_INLINE wb_f32v wb_f32v_max(wb_f32v v, wb_f32v w) { return vmaxq_f32(v, w); }
WB_INLINE wb_f64v wb_f64v_max(wb_f64v v, wb_f64v w) { return vmaxq_f64(v, w); }
#elif WB_SIMD
#define WB_MAX(R, INTEGER)                                                                         \
    typedef INTEGER wb_##R##_bits __attribute__((vector_size(WB_VECTOR_BYTES)));                   \
    WB_INLINE wb_##R##v wb_##R##v_max(wb_##R##v v, wb_##R##v w) {                                  \
        const wb_##R##_bits take = (wb_##R##_bits)(v < w) | (wb_##R##_bits)(w != w);               \
        return (wb_##R##v)(((wb_##R##_bits)w & take) | ((wb_##R##_bits)v & ~take));                \
    }
WB_MAX(f32, int32_t)
WB_MAX(f64, int64_t)
#undef WB_MAX
#else
WB_INLINE float wb_f32v_max(float v, float w) { return (v < w) | (w != w) ? w : v; }
WB_INLINE double wb_f64v_max(double v, double w) { return (v < w) | (w != w) ? w : v; }
#endif
#endif
WB_INLINE double wb_f64v_total(wb_f64v v) { return wb_f64v_sum(v); }

#if WB_SIMD && defined(__AVX512F__)

WB_INLINE __mmask16 wb_f32_mask(int count) { return (__mmask16)((1u << count) - 1); }
WB_INLINE __mmask8 wb_f64_mask(int count) { return (__mmask8)((1u << count) - 1); }
WB_INLINE wb_f32v wb_f32v_load_part(const float *p, int count) {
    return _mm512_maskz_loadu_ps(wb_f32_mask(count), p);
}
WB_INLINE wb_f64v wb_f64v_load_part(const double *p, int count) {
    return _mm512_maskz_loadu_pd(wb_f64_mask(count), p);
}
WB_INLINE void wb_f32v_store_part(float *p, wb_f32v v, int count) {
    _mm512_mask_storeu_ps(p, wb_f32_mask(count), v);
}
WB_INLINE void wb_f64v_store_part(double *p, wb_f64v v, int count) {
    _mm512_mask_storeu_pd(p, wb_f64_mask(count), v);
}

#elif WB_SIMD && defined(__AVX2__)

WB_INLINE __m256i wb_f32_mask(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
WB_INLINE __m256i wb_f64_mask(int count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
WB_INLINE wb_f32v wb_f32v_load_part(const float *p, int count) {
    return _mm256_maskload_ps(p, wb_f32_mask(count));
}
WB_INLINE wb_f64v wb_f64v_load_part(const double *p, int count) {
    return _mm256_maskload_pd(p, wb_f64_mask(count));
}
WB_INLINE void wb_f32v_store_part(float *p, wb_f32v v, int count) {
    _mm256_maskstore_ps(p, wb_f32_mask(count), v);
}
WB_INLINE void wb_f64v_store_part(double *p, wb_f64v v, int count) {
    _mm256_maskstore_pd(p, wb_f64_mask(count), v);
}

#elif WB_NEON

/* Powers of two at a time; of a constant count the compiler keeps what is needed. */
WB_INLINE wb_f32v wb_f32v_load_part(const float *p, int count) {
    if (count >= 4) return wb_f32v_load(p);
    const float32x4_t none = vdupq_n_f32(0);
    if (count == 1) return vld1q_lane_f32(p, none, 0);
    const float32x4_t two = vcombine_f32(vld1_f32(p), vget_low_f32(none));
    return count == 2 ? two : vld1q_lane_f32(p + 2, two, 2);
}
WB_INLINE wb_f64v wb_f64v_load_part(const double *p, int count) {
    if (count >= 2) return wb_f64v_load(p);
    return vld1q_lane_f64(p, vdupq_n_f64(0), 0);
}
WB_INLINE void wb_f32v_store_part(float *p, wb_f32v v, int count) {
    if (count >= 4) {
        wb_f32v_store(p, v);
        return;
    }
    if (count & 2) vst1_f32(p, vget_low_f32(v));
    if (count == 1) vst1q_lane_f32(p, v, 0);
    if (count == 3) vst1q_lane_f32(p + 2, v, 2);
}
WB_INLINE void wb_f64v_store_part(double *p, wb_f64v v, int count) {
    if (count >= 2)
        wb_f64v_store(p, v);
    else
        vst1q_lane_f64(p, v, 0);
}

#else

WB_INLINE wb_f32v wb_f32v_load_part(const float *p, int count) {
    float lane[WB_F32_LANES] = {0};
    wb_f32v v;
    for (int i = 0; i < WB_F32_LANES && i < count; i++) lane[i] = p[i];
    memcpy(&v, lane, sizeof v);
    return v;
}
WB_INLINE wb_f64v wb_f64v_load_part(const double *p, int count) {
    double lane[WB_F64_LANES] = {0};
    wb_f64v v;
    for (int i = 0; i < WB_F64_LANES && i < count; i++) lane[i] = p[i];
    memcpy(&v, lane, sizeof v);
    return v;
}
WB_INLINE void wb_f32v_store_part(float *p, wb_f32v v, int count) {
    float lane[WB_F32_LANES];
    memcpy(lane, &v, sizeof v);
    for (int i = 0; i < WB_F32_LANES && i < count; i++) p[i] = lane[i];
}
WB_INLINE void wb_f64v_store_part(double *p, wb_f64v v, int count) {
    double lane[WB_F64_LANES];
    memcpy(lane, &v, sizeof v);
    for (int i = 0; i < WB_F64_LANES && i < count; i++) p[i] = lane[i];
}

#endif

#if WB_BY_LANE
/* sum + row * factor[lane]; lane is a constant where this is expanded. By name, since gcc takes the
 * lane out first, into a register of its own, where more than one multiply-add wants it. */
#define WB_ADD_LANE(lane, shape)                                                                   \
    __asm__("fmla %0." shape ", %1." shape ", %2." #lane : "+w"(sum) : "w"(row), "w"(factor))
WB_INLINE wb_f32v wb_f32v_add_by_lane(wb_f32v sum, wb_f32v row, wb_f32v factor, int lane) {
    if (lane == 0) WB_ADD_LANE(s[0], "4s");
    if (lane == 1) WB_ADD_LANE(s[1], "4s");
    if (lane == 2) WB_ADD_LANE(s[2], "4s");
    if (lane == 3) WB_ADD_LANE(s[3], "4s");
    return sum;
}
WB_INLINE wb_f64v wb_f64v_add_by_lane(wb_f64v sum, wb_f64v row, wb_f64v factor, int lane) {
    if (lane == 0) WB_ADD_LANE(d[0], "2d");
    if (lane == 1) WB_ADD_LANE(d[1], "2d");
    return sum;
}
#undef WB_ADD_LANE
#endif

/* A masked load costs nothing with AVX-512; elsewhere it does, and a branch is predicted well. */
WB_INLINE wb_f32v wb_f32v_load_edge(const float *p, int count) {
#if !defined(__AVX512F__)
    if (count == WB_F32_LANES) return wb_f32v_load(p);
#endif
    return wb_f32v_load_part(p, count);
}
WB_INLINE wb_f64v wb_f64v_load_edge(const double *p, int count) {
#if !defined(__AVX512F__)
    if (count == WB_F64_LANES) return wb_f64v_load(p);
#endif
    return wb_f64v_load_part(p, count);
}

#endif
