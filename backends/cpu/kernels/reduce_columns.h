/* Each column to one value, for one kind of reduction and one type (loops.c); the results of a
 * block of columns stay in registers. The end of reduce.h and reduce_max_real.h. */

/* The first `count` columns, at most WB_LANES. */
static inline void TYPE(block)(int64_t inner, int64_t outer, int64_t count, const NUMBER *x,
                               wb_accumulator *sums) {
    NUMBER lanes[WB_LANES];
    for (int64_t k = 0; k < count; k++) lanes[k] = x[k];
    for (int64_t o = 1; o < outer; o++) {
        EACH_LANE for (int64_t k = 0; k < count; k++) {
            lanes[k] = COMBINE(lanes[k], x[o * inner + k]);
        }
    }
    WB_INDEPENDENT for (int64_t k = 0; k < count; k++) {
        sums[k].FIELD = COMBINE(sums[k].FIELD, (TOTAL)lanes[k]);
    }
}

static void TYPE(columns)(int64_t inner, int64_t outer, const void *x, wb_accumulator *sums) {
    int64_t i = 0;
    for (; i + WB_LANES <= inner; i += WB_LANES)
        TYPE(block)(inner, outer, WB_LANES, (const NUMBER *)x + i, sums + i);
    TYPE(block)(inner, outer, inner - i, (const NUMBER *)x + i, sums + i);
}

#undef TYPE
#undef NUMBER
#undef TOTAL
#undef FIELD
