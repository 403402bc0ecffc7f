/* Sums over ranks in the canonical order: a tree over the numbers of the ranks, so that neither the
 * transport nor the sizes of pieces change a bit. */
#include "base/half.h"
#include "ranks/transport.h"

enum { TILE = 512 };

/* max and min: NaN wins, and of equals the first, as in the operations of that name. Whole numbers
 * are added as unsigned ones, so that an overflow wraps as it does in programs. */
#define FLOATS_ADD(T, a, b) ((a) + (b))
#define WHOLE_ADD(T, a, b)  ((T)((uint64_t)(a) + (uint64_t)(b)))
#define LARGER(a, b)        ((a) < (b) || (b) != (b) ? (b) : (a))
#define SMALLER(a, b)       ((a) > (b) || (b) != (b) ? (b) : (a))

#define DEFINE(T, name, ADD)                                                                       \
    static void name##_two(wb_reduction reduction, const T *a, const T *b, int count, T *out) {    \
        if (reduction == WB_REDUCE_MAX)                                                            \
            for (int i = 0; i < count; i++) out[i] = LARGER(a[i], b[i]);                           \
        else if (reduction == WB_REDUCE_MIN)                                                       \
            for (int i = 0; i < count; i++) out[i] = SMALLER(a[i], b[i]);                          \
        else                                                                                       \
            for (int i = 0; i < count; i++) out[i] = ADD(T, a[i], b[i]);                           \
    }                                                                                              \
    /* what ranks lo .. hi - 1 give together; one alone is not copied */                           \
    static const T *name##_tile(wb_reduction reduction, int lo, int hi, const void *const *parts,  \
                                int64_t at, int count, T *out) {                                   \
        if (hi - lo == 1) return (const T *)parts[lo] + at;                                        \
        T room[TILE];                                                                              \
        const int middle = lo + wb_power_below(hi - lo);                                           \
        const T *a = name##_tile(reduction, lo, middle, parts, at, count, out);                    \
        const T *b = name##_tile(reduction, middle, hi, parts, at, count, room);                   \
        name##_two(reduction, a, b, count, out);                                                   \
        return out;                                                                                \
    }                                                                                              \
    static void name(wb_reduction reduction, int ranks, const void *const *parts, int64_t count,   \
                     void *to) {                                                                   \
        for (int64_t at = 0; at < count; at += TILE) {                                             \
            const int n = (int)(count - at < TILE ? count - at : TILE);                            \
            T *out = (T *)to + at;                                                                 \
            (void)name##_tile(reduction, 0, ranks, parts, at, n, out); /* two or more */           \
            if (reduction == WB_REDUCE_MEAN)                                                       \
                for (int i = 0; i < n; i++) out[i] = (T)(out[i] / (T)ranks);                       \
        }                                                                                          \
    }

DEFINE(float, reduce_f32, FLOATS_ADD)
DEFINE(double, reduce_f64, FLOATS_ADD)
DEFINE(int32_t, reduce_i32, WHOLE_ADD)
DEFINE(int64_t, reduce_i64, WHOLE_ADD)
DEFINE(uint8_t, reduce_u8, WHOLE_ADD)

/* ---- bf16, added in f32 and rounded once ---- */

static const float *bf16_tile(wb_reduction reduction, int lo, int hi, const void *const *parts,
                              int64_t at, int count, float *out) {
    if (hi - lo == 1) {
        const uint16_t *part = (const uint16_t *)parts[lo] + at;
        for (int i = 0; i < count; i++) out[i] = wb_of_bf16(part[i]);
        return out;
    }
    float room[TILE];
    const int middle = lo + wb_power_below(hi - lo);
    const float *a = bf16_tile(reduction, lo, middle, parts, at, count, out);
    const float *b = bf16_tile(reduction, middle, hi, parts, at, count, room);
    reduce_f32_two(reduction, a, b, count, out);
    return out;
}

static void reduce_bf16(wb_reduction reduction, int ranks, const void *const *parts, int64_t count,
                        void *to) {
    for (int64_t at = 0; at < count; at += TILE) {
        const int n = (int)(count - at < TILE ? count - at : TILE);
        float sum[TILE];
        (void)bf16_tile(reduction, 0, ranks, parts, at, n, sum);
        const float by = reduction == WB_REDUCE_MEAN ? (float)ranks : 1;
        for (int i = 0; i < n; i++) ((uint16_t *)to)[at + i] = wb_to_bf16(sum[i] / by);
    }
}

void wb_reduce_parts(wb_dtype dtype, wb_reduction reduction, int ranks, const void *const *parts,
                     int64_t count, void *to) {
    switch (dtype) {
    case WB_F32:
        reduce_f32(reduction, ranks, parts, count, to);
        break;
    case WB_F64:
        reduce_f64(reduction, ranks, parts, count, to);
        break;
    case WB_I32:
        reduce_i32(reduction, ranks, parts, count, to);
        break;
    case WB_I64:
        reduce_i64(reduction, ranks, parts, count, to);
        break;
    case WB_BF16:
        reduce_bf16(reduction, ranks, parts, count, to);
        break;
    default: /* f16 comes as f32 */
        reduce_u8(reduction, ranks, parts, count, to);
        break;
    }
}
