/* 16-bit floats as storage: IEEE binary16 (f16) and bfloat16 (bf16), kept in uint16_t.
 *
 * To f32 exactly; from f32 rounded to nearest even, with denormals; beyond the largest number:
 * infinity. A NaN becomes quiet and keeps its sign and leading payload bits, both ways, as the
 * conversion instructions of x86 and ARM do. Branch-free, so loops over them become vector code:
 *
 *     for (int64_t i = 0; i < n; i++) o[i] = k_f16_to_f32(x[i]); */
#ifndef WB_CPU_HALF_H
#define WB_CPU_HALF_H

#include "math_simple.h"

/* Normal numbers need 112 more in the exponent. A denormal m 2^-24 is (2^-14 + m 2^-24) - 2^-14:
 * the subtraction, which is exact, does the shifting. */
static inline float k_f16_to_f32(uint16_t half) {
    const uint32_t size = (uint32_t)(half & 0x7fffu) << 13, sign = (uint32_t)(half & 0x8000u) << 16;
    const float denormal = k_from_bits_f32(size + (113u << 23)) - 0x1p-14f;
    const uint32_t normal = size + (112u << 23);
    const uint32_t special = size + (224u << 23); /* infinity; NaN below */
    const uint32_t quiet = size > (31u << 23) ? 0x400000u : 0u;
    uint32_t bits = size < (1u << 23) ? k_bits_f32(denormal) : normal;
    bits = size >= (31u << 23) ? (special | quiet) : bits;
    return k_from_bits_f32(bits | sign);
}

/* Adding 0.5 to |x| < 2^-14 leaves x in units of 2^-24, the smallest denormal, in the low bits,
 * rounded by the addition. Larger ones are rounded by adding half a unit to the bits: a carry
 * into the exponent is right, up to infinity. */
static inline uint16_t k_f32_to_f16(float x) {
    const uint32_t bits = k_bits_f32(x), size = bits & 0x7fffffffu;
    const uint32_t denormal = k_bits_f32(k_from_bits_f32(size) + 0.5f) - k_bits_f32(0.5f);
    const uint32_t normal = (size - (112u << 23) + 0xfffu + ((size >> 13) & 1u)) >> 13;
    const uint32_t nan = 0x7e00u | ((size >> 13) & 0x3ffu);
    uint32_t half = size < (113u << 23) ? denormal : normal;
    half = size >= 0x47800000u ? 0x7c00u
                               : half; /* 2^16; from 65520 on the rounding gets there itself */
    half = size > 0x7f800000u ? nan : half;
    return (uint16_t)(half | ((bits >> 16) & 0x8000u));
}

static inline float k_bf16_to_f32(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    return k_from_bits_f32(bits | ((bits & 0x7fffffffu) > 0x7f800000u ? 0x400000u : 0u));
}

static inline uint16_t k_f32_to_bf16(float x) {
    const uint32_t bits = k_bits_f32(x);
    const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const uint32_t nan = bits | 0x400000u;
    return (uint16_t)(((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded) >> 16);
}

#endif
