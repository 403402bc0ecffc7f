/* Sums of products, of rows and of columns, for one element type (REAL, see loops.c), added up as
 * reduce.h does. */

static inline void TYPE(lanes)(REAL *lanes, const REAL *x, const REAL *y) {
    for (int k = 0; k < WB_LANES; k++) lanes[k] += x[k] * y[k];
}

static inline void TYPE(short)(int64_t inner, int64_t outer, const REAL *x, const REAL *y,
                               wb_accumulator *sums) {
    for (int64_t o = 0; o < outer; o++, x += inner, y += inner) {
        double even = sums[o].f, odd = (double)x[0] * (double)y[0];
        for (int64_t i = 1; i < inner; i += 2) even += (double)x[i] * (double)y[i];
        for (int64_t i = 2; i < inner; i += 2) odd += (double)x[i] * (double)y[i];
        sums[o].f = even + odd;
    }
}

static void TYPE(rows)(int64_t inner, int64_t outer, const void *xs, const void *ys,
                       wb_accumulator *sums) {
    enum { L = WB_LANES };
    if (inner <= L && inner > 0) {
        TYPE(short)(inner, outer, xs, ys, sums);
        return;
    }
    for (int64_t o = 0; o < outer; o++) {
        const REAL *x = (const REAL *)xs + o * inner, *y = (const REAL *)ys + o * inner;
        REAL a[L] = {0}, b[L] = {0}, c[L] = {0}, d[L] = {0};
        int64_t i = 0;
        for (; i + 4 * L <= inner; i += 4 * L) {
            TYPE(lanes)(a, x + i, y + i), TYPE(lanes)(b, x + i + L, y + i + L);
            TYPE(lanes)(c, x + i + 2 * L, y + i + 2 * L);
            TYPE(lanes)(d, x + i + 3 * L, y + i + 3 * L);
        }
        for (; i + L <= inner; i += L) TYPE(lanes)(a, x + i, y + i);
        for (; i < inner; i++) a[i % L] += x[i] * y[i];
        double part[L];
        for (int k = 0; k < L; k++)
            part[k] = ((double)a[k] + (double)b[k]) + ((double)c[k] + (double)d[k]);
        sums[o].f += meet_f64(part);
    }
}

static inline void TYPE(block)(int64_t inner, int64_t outer, int64_t count, const REAL *x,
                               const REAL *y, wb_accumulator *sums) {
    REAL lanes[WB_LANES] = {0};
    for (int64_t o = 0; o < outer; o++, x += inner, y += inner)
        for (int64_t k = 0; k < count; k++) lanes[k] += x[k] * y[k];
    WB_INDEPENDENT for (int64_t k = 0; k < count; k++) { sums[k].f += (double)lanes[k]; }
}

static void TYPE(columns)(int64_t inner, int64_t outer, const void *xs, const void *ys,
                          wb_accumulator *sums) {
    const REAL *x = xs, *y = ys;
    int64_t i = 0;
    for (; i + WB_LANES <= inner; i += WB_LANES)
        TYPE(block)(inner, outer, WB_LANES, x + i, y + i, sums + i);
    TYPE(block)(inner, outer, inner - i, x + i, y + i, sums + i);
}

#undef REAL
#undef TYPE
