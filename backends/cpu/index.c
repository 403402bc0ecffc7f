/* Gather and scatter_add on the host. scatter_add adds in the order of the index, so that the sum
 * for a position that comes several times is the same in every run. */
#include "index.h"

#include <string.h>

int64_t wb_cpu_index_at(const wb_index_call *call, const void *index, int64_t place) {
    return call->index_dtype == WB_I32 ? ((const int32_t *)index)[place]
                                       : ((const int64_t *)index)[place];
}

int64_t wb_cpu_find_bad_index(const wb_index_call *call, const void *index) {
    for (int64_t p = 0; p < call->count; p++) {
        const int64_t i = wb_cpu_index_at(call, index, p);
        if (i < 0 || i >= call->size) return p;
    }
    return -1;
}

void wb_cpu_gather(const wb_index_call *call, wb_dtype dtype, const char *x, const void *index,
                   char *y) {
    static const uint8_t sizes[WB_DTYPE_COUNT] = {4, 8, 2, 2, 4, 8, 1, 1};
    const int64_t row = call->inner * sizes[dtype];
    for (int64_t o = 0; o < call->outer; o++) {
        const char *plane = x + o * call->size * row;
        for (int64_t p = 0; p < call->count; p++, y += row)
            memcpy(y, plane + wb_cpu_index_at(call, index, p) * row, (size_t)row);
    }
}

#define SCATTER(T)                                                                                 \
    for (int64_t o = 0; o < call->outer; o++)                                                      \
        for (int64_t p = 0; p < call->count; p++) {                                                \
            T *to =                                                                                \
                (T *)(void *)x + (o * call->size + wb_cpu_index_at(call, index, p)) * call->inner; \
            const T *from = (const T *)(const void *)y + (o * call->count + p) * call->inner;      \
            for (int64_t i = 0; i < call->inner; i++) to[i] = (T)(to[i] + from[i]);                \
        }                                                                                          \
    break

void wb_cpu_scatter_add(const wb_index_call *call, wb_dtype dtype, const void *index, const char *y,
                        char *x) {
    switch (dtype) {
    case WB_F32:
        SCATTER(float);
    case WB_F64:
        SCATTER(double);
    case WB_I32:
        SCATTER(uint32_t); /* integers wrap */
    case WB_I64:
        SCATTER(uint64_t);
    default:
        SCATTER(uint8_t);
    }
}
