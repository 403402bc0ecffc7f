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
 *     wb_Rv_set(s)                                          s in every lane
 *     wb_Rv_sum(v)                                          of the lanes, halves first
 *
 * + - * on vectors are C's operators (GCC and clang vector extensions). With WB_SIMD == 0 a vector
 * is one scalar and everything still compiles as plain C. */
#ifndef WB_CPU_SIMD_H
#define WB_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#if !defined(WB_SIMD)
#if defined(__GNUC__) || defined(__clang__)
#define WB_SIMD 1
#else
#define WB_SIMD 0
#endif
#endif

#if WB_SIMD && (defined(__AVX512F__) || defined(__AVX2__))
#include <immintrin.h>
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

#if WB_SIMD
WB_INLINE wb_f32v wb_f32v_set(float s) { return s - (wb_f32v){0}; }
WB_INLINE wb_f64v wb_f64v_set(double s) { return s - (wb_f64v){0}; }
#else
WB_INLINE wb_f32v wb_f32v_set(float s) { return s; }
WB_INLINE wb_f64v wb_f64v_set(double s) { return s; }
#endif

WB_INLINE float wb_f32v_sum(wb_f32v v) {
    float lane[WB_F32_LANES];
    memcpy(lane, &v, sizeof lane);
    for (int width = WB_F32_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

WB_INLINE double wb_f64v_sum(wb_f64v v) {
    double lane[WB_F64_LANES];
    memcpy(lane, &v, sizeof lane);
    for (int width = WB_F64_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

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

/* A masked load costs nothing with AVX-512; elsewhere it does, and a branch is foreseen. */
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
