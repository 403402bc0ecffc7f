#include "adam.h"

#include "vectorise.h"

#define STEP(kept)                                                                                 \
    WB_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                               \
        const float slope = g[i], old = p[i];                                                      \
        const float mean = m[i] * c.beta1 + slope * c.rest1;                                       \
        const float square = v[i] * c.beta2 + slope * slope * c.rest2;                             \
        new_m[i] = mean;                                                                           \
        new_v[i] = square;                                                                         \
        new_p[i] = (kept)-mean * c.rate / (__builtin_sqrtf(square * c.correction) + c.epsilon);    \
    }

__attribute__((noinline)) static void step(int64_t n, const wb_adam_numbers *a, const float *g,
                                           const float *p, const float *m, const float *v,
                                           float *new_p, float *new_m, float *new_v) {
    const wb_adam_numbers c = *a;
    if (c.decay != 0)
        STEP(old - old * c.decay)
    else
        STEP(old)
}

void WB_ISA_NAME(adam)(int64_t n, const wb_adam_numbers *a, const float *g, const float *p,
                       const float *m, const float *v, float *new_p, float *new_m, float *new_v) {
#if defined(__x86_64__)
    enum { DENORMALS_ARE_ZEROS = 0x0040, FLUSH_TO_ZERO = 0x8000 };
    const unsigned saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved | DENORMALS_ARE_ZEROS | FLUSH_TO_ZERO);
    step(n, a, g, p, m, v, new_p, new_m, new_v);
    __builtin_ia32_ldmxcsr(saved);
#else
    step(n, a, g, p, m, v, new_p, new_m, new_v);
#endif
}
