/* 16-bit floats: IEEE binary16 (f16) and bfloat16 (bf16) as bits, one at a time. Kernels have loops
 * of their own (backends/cpu/half.h). */
#ifndef WB_BASE_HALF_H
#define WB_BASE_HALF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline double wb_of_f16(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static inline float wb_of_bf16(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* To nearest, ties to even; a NaN stays one. */
static inline uint16_t wb_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)((value != value ? bits | 0x400000u : rounded) >> 16);
}

/* The f16 next to value, ties to even; infinity from 65520 on. */
static inline double wb_rounded_to_f16(float value) {
    const double size = fabs((double)value);
    if (!(size < 65520)) return size == size ? copysign((double)INFINITY, (double)value) : size;
    /* size = fraction * 2^exponent, fraction in [0.5, 1); an f16 has 11 bits of it, or steps of
     * 2^-24 */
    int exponent;
    (void)frexp(size, &exponent);
    const double step = ldexp(1, exponent > -13 ? exponent - 11 : -24);
    return copysign(nearbyint(size / step) * step, (double)value);
}

static inline uint16_t wb_to_f16(float value) {
    const double size = fabs(wb_rounded_to_f16(value));
    const int sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    if (!(size < 65536)) return (uint16_t)(sign | (size == size ? 0x7c00 : 0x7e00));
    const double fraction = frexp(size, &exponent); /* from 0.5 to 1 */
    const bool is_small = size == 0 || exponent < -13;
    const int bits =
        is_small ? (int)ldexp(size, 24) : (exponent + 13) * 1024 + (int)ldexp(fraction, 11);
    return (uint16_t)(sign | bits);
}

#endif
