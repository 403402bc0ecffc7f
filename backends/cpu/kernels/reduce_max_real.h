/* The largest of each row, and of each column, for one floating type: as reduce.h, by vectors. The
 * compiler's own vector code breaks the rule for NaN, or stays scalar. */

static void TYPE(rows)(int64_t inner, int64_t outer, const void *x, wb_accumulator *max) {
    for (int64_t o = 0; o < outer; o++) {
        const NUMBER *row = (const NUMBER *)x + o * inner;
        VECTOR() a = VECTOR(_set)(-(NUMBER)__builtin_inf()), b = a, c = a, d = a;
        int64_t i = 0;
        for (; i + 4 * LANES <= inner; i += 4 * LANES) {
            a = VECTOR(_max)(a, VECTOR(_load)(row + i));
            b = VECTOR(_max)(b, VECTOR(_load)(row + i + LANES));
            c = VECTOR(_max)(c, VECTOR(_load)(row + i + 2 * LANES));
            d = VECTOR(_max)(d, VECTOR(_load)(row + i + 3 * LANES));
        }
        for (; i + LANES <= inner; i += LANES) a = VECTOR(_max)(a, VECTOR(_load)(row + i));
        NUMBER most = VECTOR(_maximum)(VECTOR(_max)(VECTOR(_max)(a, b), VECTOR(_max)(c, d)));
        for (; i < inner; i++) most = COMBINE(most, row[i]);
        max[o].FIELD = COMBINE(max[o].FIELD, (TOTAL)most);
    }
}

#undef VECTOR
#undef LANES

#include "reduce_columns.h"
