/* Copies of a block of A in panels of tile height, for one element type (see gemm.c): element (i,
 * p) of a panel of V vectors lies at [i + p * V * LANES], rows that are missing are 0. */

/* rows <= LANES of the transposed matrix a, k of them long; panel: the vector's place in it */
static void TYPE(pack_turned)(int64_t k, int rows, const REAL *a, int64_t lda, REAL *panel,
                              int64_t step) {
    VEC r[LANES];
    for (int64_t p = 0; p < k; p += LANES) {
        const int depth = k - p < LANES ? (int)(k - p) : LANES;
        if (depth == LANES && rows == LANES) {
            UNROLL for (int i = 0; i < LANES; i++) r[i] = LOAD(a + i * lda + p);
        } else {
            for (int i = 0; i < LANES; i++)
                r[i] = i < rows ? LOAD_PART(a + i * lda + p, depth) : SET(0);
        }
        TRANSPOSE(r);
        if (depth == LANES) {
            UNROLL for (int i = 0; i < LANES; i++) STORE(panel + (p + i) * step, r[i]);
        } else {
            for (int i = 0; i < depth; i++) STORE(panel + (p + i) * step, r[i]);
        }
    }
}

/* All rows of each k in turn: a k may lie on a page of its own, which the processor does not
 * prefetch; so one some way ahead is prefetched here. */
static void TYPE(pack_straight)(int64_t k, int64_t rows, const REAL *a, int64_t lda, REAL *to,
                                int64_t height) {
    enum { AHEAD = 8 };
    for (int64_t p = 0; p < k; p++, a += lda) {
        for (int64_t panel = 0; panel < rows; panel += height) {
            const int64_t left = rows - panel < height ? rows - panel : height;
            const int64_t step = (left + LANES - 1) / LANES * LANES;
            REAL *column = to + panel * k + p * step;
            for (int64_t i = 0; i < left; i += 64 / (int64_t)sizeof(REAL))
                __builtin_prefetch(a + AHEAD * lda + panel + i);
            for (int64_t row = 0; row < left; row += LANES) {
                const int count = left - row < LANES ? (int)(left - row) : LANES;
                STORE(column + row, LOAD_EDGE(a + panel + row, count));
            }
        }
    }
}

/* Columns of a B that has its columns side by side, in blocks of WB_GEMM_GROUP: element (p, j)
 * of a block lies at [j + p * WB_GEMM_GROUP]. Many at once, because each k may lie on a page of
 * its own. */
static void TYPE(pack_columns)(int64_t k, int64_t columns, const REAL *b, int64_t ldb, REAL *to) {
    for (int64_t p = 0; p < k; p++, b += ldb, to += WB_GEMM_GROUP) {
        REAL *block = to;
        for (int64_t column = 0; column < columns; column += WB_GEMM_GROUP) {
            const int64_t left = columns - column;
            const int width = left < WB_GEMM_GROUP ? (int)left : WB_GEMM_GROUP;
            int j = 0;
            for (; j + LANES <= width; j += LANES) STORE(block + j, LOAD(b + column + j));
            if (j < width) STORE(block + j, LOAD_PART(b + column + j, width - j));
            block += k * WB_GEMM_GROUP;
        }
    }
}

/* to (rows, columns) = the transpose of from (columns, rows) */
static void TYPE(copy_turned)(int64_t columns, int64_t rows, const REAL *from, int64_t ld, REAL *to,
                              int64_t ld_to) {
    VEC r[LANES];
    for (int64_t row = 0; row < rows; row += LANES) {
        const int height = rows - row < LANES ? (int)(rows - row) : LANES;
        for (int64_t column = 0; column < columns; column += LANES) {
            const int width = columns - column < LANES ? (int)(columns - column) : LANES;
            for (int i = 0; i < LANES; i++)
                r[i] = i < height ? LOAD_PART(from + (row + i) * ld + column, width) : SET(0);
            TRANSPOSE(r);
            for (int i = 0; i < width; i++)
                STORE_PART(to + row + (column + i) * ld_to, r[i], height);
        }
    }
}
