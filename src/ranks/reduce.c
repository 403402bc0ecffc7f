/* Sums over ranks in the canonical order: a tree over the numbers of the ranks, so that neither the
 * transport nor the sizes of pieces change a bit. */
#include "base/half.h"
#include "ranks/transport.h"

enum { TILE = 512 };

/* max and min: a NaN is the result if there is one, and of equal numbers the first counts, as in
 * the operations of that name. Whole numbers are added as unsigned ones, so that an overflow wraps
 * as it does in programs. */
#define FLOATS_ADD(a, b) ((a) + (b))
#define WHOLE_ADD(a, b)  ((NUMBER)((uint64_t)(a) + (uint64_t)(b)))
#define LARGER(a, b)     ((a) < (b) || (b) != (b) ? (b) : (a))
#define SMALLER(a, b)    ((a) > (b) || (b) != (b) ? (b) : (a))

#define NUMBER     float
#define TYPE(name) reduce_f32##name
#define ADD        FLOATS_ADD
#include "ranks/reduce_type.h"

#define NUMBER     double
#define TYPE(name) reduce_f64##name
#define ADD        FLOATS_ADD
#include "ranks/reduce_type.h"

#define NUMBER     int32_t
#define TYPE(name) reduce_i32##name
#define ADD        WHOLE_ADD
#include "ranks/reduce_type.h"

#define NUMBER     int64_t
#define TYPE(name) reduce_i64##name
#define ADD        WHOLE_ADD
#include "ranks/reduce_type.h"

#define NUMBER     uint8_t
#define TYPE(name) reduce_u8##name
#define ADD        WHOLE_ADD
#include "ranks/reduce_type.h"

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
