/* Each row to one value, and each column, for one kind of reduction and one type (loops.c).
 *
 * Sixteen partial results on every instruction set, four times as many of a long row, so that all
 * give the same bits and no addition waits for the one before it; partial sums meet in f64. Rows
 * that are shorter are many, and do not wait for each other. */

static inline void TYPE(short)(int64_t inner, int64_t outer, const NUMBER *x,
                               wb_accumulator *sums) {
    for (int64_t o = 0; o < outer; o++, x += inner) {
        TOTAL even = sums[o].FIELD, odd = (TOTAL)x[0];
        for (int64_t i = 1; i < inner; i += 2) even = COMBINE(even, (TOTAL)x[i]);
        for (int64_t i = 2; i < inner; i += 2) odd = COMBINE(odd, (TOTAL)x[i]);
        sums[o].FIELD = COMBINE(even, odd);
    }
}

static inline void TYPE(lanes)(NUMBER *lanes, const NUMBER *x) {
    for (int k = 0; k < WB_LANES; k++) lanes[k] = COMBINE(lanes[k], x[k]);
}

static void TYPE(rows)(int64_t inner, int64_t outer, const void *x, wb_accumulator *sums) {
    if (inner <= WB_LANES && inner > 0) {
        TYPE(short)(inner, outer, x, sums);
        return;
    }
    for (int64_t o = 0; o < outer; o++) {
        const NUMBER *row = (const NUMBER *)x + o * inner;
        NUMBER a[WB_LANES], b[WB_LANES], c[WB_LANES], d[WB_LANES];
        for (int k = 0; k < WB_LANES; k++) a[k] = b[k] = c[k] = d[k] = START;
        int64_t i = 0;
        for (; i + 4 * WB_LANES <= inner; i += 4 * WB_LANES) {
            TYPE(lanes)(a, row + i), TYPE(lanes)(b, row + i + WB_LANES);
            TYPE(lanes)(c, row + i + 2 * WB_LANES), TYPE(lanes)(d, row + i + 3 * WB_LANES);
        }
        for (; i + WB_LANES <= inner; i += WB_LANES) TYPE(lanes)(a, row + i);
        for (; i < inner; i++) a[i % WB_LANES] = COMBINE(a[i % WB_LANES], row[i]);
        TOTAL part[WB_LANES];
        for (int k = 0; k < WB_LANES; k++) part[k] = (TOTAL)a[k];
        for (int k = 0; inner >= 4 * WB_LANES && k < WB_LANES; k++)
            part[k] = COMBINE(COMBINE(part[k], (TOTAL)b[k]), COMBINE((TOTAL)c[k], (TOTAL)d[k]));
        sums[o].FIELD = COMBINE(sums[o].FIELD, MEET(part));
    }
}

#undef START
#undef MEET

#include "reduce_columns.h"
