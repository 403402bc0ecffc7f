/* Conversion of 16-bit floats by ARM's instructions, with the rounding and the NaNs of half.h (Arm
 * Architecture Reference Manual, FCVTL, FCVTN, BFCVTN). */
#include <arm_neon.h>

static void f16_to_f32(int64_t n, const uint16_t *x, float *o) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(x + i));
        vst1q_f32(o + i, vcvt_f32_f16(vget_low_f16(halves)));
        vst1q_f32(o + i + 4, vcvt_high_f32_f16(halves));
    }
    for (; i < n; i++) o[i] = k_f16_to_f32(x[i]);
}

static void f32_to_f16(int64_t n, const float *x, uint16_t *o) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float16x4_t low = vcvt_f16_f32(vld1q_f32(x + i));
        const float16x8_t halves = vcvt_high_f16_f32(low, vld1q_f32(x + i + 4));
        vst1q_u16(o + i, vreinterpretq_u16_f16(halves));
    }
    for (; i < n; i++) o[i] = k_f32_to_f16(x[i]);
}

static void bf16_to_f32(int64_t n, const uint16_t *x, float *o) {
    WB_INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = k_bf16_to_f32(x[i]);
}

static void f32_to_bf16(int64_t n, const float *x, uint16_t *o) {
    int64_t i = 0;
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    for (; i + 8 <= n; i += 8) {
        const bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(x + i));
        const bfloat16x8_t halves = vcvtq_high_bf16_f32(low, vld1q_f32(x + i + 4));
        vst1q_u16(o + i, vreinterpretq_u16_bf16(halves));
    }
#endif
    WB_INDEPENDENT for (int64_t j = i; j < n; j++) o[j] = k_f32_to_bf16(x[j]);
}
