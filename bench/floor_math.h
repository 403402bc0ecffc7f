/* exp and tanh that a compiler turns into vector code: 1e-7 relative, good for a floor. */
#ifndef BENCH_FLOOR_MATH_H
#define BENCH_FLOOR_MATH_H

#include <stdint.h>
#include <string.h>

static inline float floor_power_of_2(float whole) {
    const int32_t bits = ((int32_t)whole + 127) * (1 << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline float floor_exp(float x) {
    x = x < -87 ? -87 : x > 88 ? 88 : x;
    const float shift = 12582912.0f; /* 1.5 * 2^23: rounds to a whole number */
    const float whole = (x * 1.44269504f + shift) - shift;
    const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return (p * r * r + r + 1) * floor_power_of_2(whole);
}

static inline float floor_tanh(float x) { return 1 - 2 / (floor_exp(2 * x) + 1); }

/* One element of Adam; rate and correction hold the step's bias corrections. */
static inline void floor_adam(float *p, float g, float *m, float *v, float rate, float correction) {
    *m = 0.9f * *m + 0.1f * g;
    *v = 0.999f * *v + 0.001f * g * g;
    *p -= rate * *m / (__builtin_sqrtf(*v * correction) + 1e-8f);
}

#endif
