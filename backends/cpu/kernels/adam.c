/* One step of Adam (Kingma and Ba 2015) for n elements of f32 in a single loop, so that gradient,
 * parameter and both moments are read once. With decay it is AdamW (Loshchilov and Hutter 2019). */
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

void WB_ISA_NAME(adam)(int64_t n, const wb_adam_numbers *a, const float *g, const float *p,
                       const float *m, const float *v, float *new_p, float *new_m, float *new_v) {
    const wb_adam_numbers c = *a;
    if (c.decay != 0)
        STEP(old - old * c.decay)
    else
        STEP(old)
}
