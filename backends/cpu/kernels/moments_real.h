/* The sums of x - mean and of (x - mean)^2, for one element type (REAL, see loops.c): the same bits
 * that reduce.h and dot_real.h give of the differences, in one pass. Of arrays gcc would take the
 * numbers one by one here, so that partial sums are vectors. */

enum { TYPE(vectors) = WB_LANES / LANES };

/* A fourth of the partial sums of a row. */
typedef struct TYPE(part) {
    VECTOR() sum[TYPE(vectors)], square[TYPE(vectors)];
} TYPE(part);

WB_INLINE void TYPE(add)(TYPE(part) * part, const REAL *x, VECTOR() mean) {
    for (int v = 0; v < TYPE(vectors); v++) {
        const VECTOR() c = VECTOR(_load)(x + v * LANES) - mean;
        part->sum[v] += c, part->square[v] += c * c;
    }
}

#if WB_SIMD
typedef double TYPE(wide) __attribute__((vector_size(8 * LANES)));
#define WIDE(v) __builtin_convertvector(v, TYPE(wide))
#else
typedef double TYPE(wide);
#define WIDE(v) (double)(v)
#endif

WB_INLINE double TYPE(meet)(const VECTOR() * a, const VECTOR() * b, const VECTOR() * c,
                            const VECTOR() * d) {
    double all[WB_LANES];
    for (int v = 0; v < TYPE(vectors); v++) {
        const TYPE(wide) sum = (WIDE(a[v]) + WIDE(b[v])) + (WIDE(c[v]) + WIDE(d[v]));
        memcpy(all + v * LANES, &sum, sizeof sum);
    }
    return meet_f64(all);
}

/* What is left of a rounded mean is small, and its sum needs no more digits. */
WB_INLINE REAL TYPE(meet_rest)(const VECTOR() * a, const VECTOR() * b, const VECTOR() * c,
                               const VECTOR() * d) {
    VECTOR() all = VECTOR(_set)(0);
    for (int v = 0; v < TYPE(vectors); v++) all += (a[v] + b[v]) + (c[v] + d[v]);
    return VECTOR(_sum)(all);
}

static void TYPE(row)(int64_t inner, const REAL *x, REAL m, wb_accumulator *sum,
                      wb_accumulator *square) {
    enum { L = WB_LANES };
    const VECTOR() mean = VECTOR(_set)(m);
    TYPE(part) a, b, c, d;
    for (int v = 0; v < TYPE(vectors); v++) a.sum[v] = a.square[v] = VECTOR(_set)(0);
    b = c = d = a;
    int64_t i = 0;
    for (; i + 4 * L <= inner; i += 4 * L) {
        TYPE(add)(&a, x + i, mean), TYPE(add)(&b, x + i + L, mean);
        TYPE(add)(&c, x + i + 2 * L, mean), TYPE(add)(&d, x + i + 3 * L, mean);
    }
    for (; i + L <= inner; i += L) TYPE(add)(&a, x + i, mean);
    if (i < inner) {
        REAL rest[L] = {0};
        for (int k = 0; i < inner; i++, k++) rest[k] = x[i] - m;
        TYPE(add)(&a, rest, VECTOR(_set)(0));
    }
    sum->f += (double)TYPE(meet_rest)(a.sum, b.sum, c.sum, d.sum);
    square->f += TYPE(meet)(a.square, b.square, c.square, d.square);
}

/* Not longer than WB_LANES. */
static void TYPE(short_row)(int64_t inner, const REAL *x, REAL m, wb_accumulator *sum,
                            wb_accumulator *square) {
    double sums[2] = {sum->f, 0}, squares[2] = {square->f, 0};
    for (int64_t i = 0; i < inner; i++) {
        const double c = (double)(REAL)(x[i] - m);
        sums[1 - i % 2] += c, squares[1 - i % 2] += c * c;
    }
    sum->f = sums[0] + sums[1], square->f = squares[0] + squares[1];
}

static void TYPE(rows)(int64_t inner, int64_t outer, const void *xs, const void *means,
                       wb_accumulator *sums, wb_accumulator *squares) {
    const REAL *x = xs, *m = means;
    for (int64_t o = 0; o < outer; o++, x += inner)
        if (inner <= WB_LANES)
            TYPE(short_row)(inner, x, m[o], &sums[o], &squares[o]);
        else
            TYPE(row)(inner, x, m[o], &sums[o], &squares[o]);
}

/* The first `count` columns, at most WB_LANES. */
WB_INLINE void TYPE(block)(int64_t inner, int64_t outer, int64_t count, const REAL *x,
                           const REAL *means, wb_accumulator *sums, wb_accumulator *squares) {
    REAL sum[WB_LANES] = {0}, square[WB_LANES] = {0};
    for (int64_t o = 0; o < outer; o++, x += inner) {
        for (int64_t k = 0; k < count; k++) sum[k] += x[k] - means[k];
        for (int64_t k = 0; k < count; k++) square[k] += (x[k] - means[k]) * (x[k] - means[k]);
    }
    for (int64_t k = 0; k < count; k++)
        sums[k].f += (double)sum[k], squares[k].f += (double)square[k];
}

static void TYPE(columns)(int64_t inner, int64_t outer, const void *xs, const void *means,
                          wb_accumulator *sums, wb_accumulator *squares) {
    const REAL *x = xs, *m = means;
    int64_t i = 0;
    for (; i + WB_LANES <= inner; i += WB_LANES)
        TYPE(block)(inner, outer, WB_LANES, x + i, m + i, sums + i, squares + i);
    TYPE(block)(inner, outer, inner - i, x + i, m + i, sums + i, squares + i);
}

#undef REAL
#undef TYPE
#undef VECTOR
#undef LANES
#undef WIDE
