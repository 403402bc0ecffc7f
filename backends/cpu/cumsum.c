/* y(i, s, o) = x(i, 0, o) + ... + x(i, s, o): floats in f64, integers wrap. */
#include "calls.h"
#include "pool.h"

enum { LANES = 64 /* neighbours that are added up together */ };

#define RUN(T, SUM)                                                                                \
    {                                                                                              \
        const T *x = (const T *)(const void *)c->a[0] + plane;                                     \
        T *y = (T *)(void *)c->a[1] + plane;                                                       \
        for (int64_t first = 0; first < inner; first += LANES) {                                   \
            const int64_t end = first + LANES < inner ? first + LANES : inner;                     \
            SUM sums[LANES] = {0};                                                                 \
            for (int64_t s = 0; s < k->size; s++)                                                  \
                for (int64_t i = first; i < end; i++)                                              \
                    y[s * inner + i] = (T)(sums[i - first] += (SUM)x[s * inner + i]);              \
        }                                                                                          \
    }                                                                                              \
    break

static void run_plane(void *context, int64_t o, int worker) {
    const wb_cpu_call *c = context;
    const wb_index_call *k = &c->call->index;
    const int64_t inner = k->inner, plane = o * inner * k->size;
    (void)worker;
    switch (c->call->dtype) {
    case WB_F32:
        RUN(float, double);
    case WB_F64:
        RUN(double, double);
    case WB_I32:
        RUN(uint32_t, uint32_t);
    default:
        RUN(uint64_t, uint64_t);
    }
}

wb_status wb_cpu_call_cumsum(const wb_cpu_call *c) {
    wb_cpu_parallel(c->call->index.outer, run_plane, (void *)(uintptr_t)c);
    return WB_OK;
}
