/* Products with a vector, for one element type (see gemm.c): y (count) = M (count, k) * x (k),
 * where M is A and y a column of C, or M is the transpose of B and y a row of C. */

typedef struct TYPE(gemv) {
    const REAL *matrix, *x;
    REAL *y;
    int64_t count, k, ld, step_x, step_y;
} TYPE(gemv);

/* Outputs side by side: `vectors` of them, fours or one, stay in registers while M streams by. */
WB_INLINE void TYPE(gemv_down)(const TYPE(gemv) * g, int64_t at, int vectors, int rows) {
    VEC sum[16];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = SET(0);
    const REAL *a = g->matrix + at, *x = g->x;
    const int64_t ld = g->ld, step_x = g->step_x;
    const int last = vectors - 1;
    for (int64_t p = 0; p < g->k; p++, a += ld, x += step_x) {
        const VEC factor = SET(*x);
        UNROLL for (int v = 0; v < last; v += 4) {
            VEC part[4];
            LOAD_FOUR(a + v * LANES, part);
            UNROLL for (int i = 0; i < 4; i++) sum[v + i] += part[i] * factor;
        }
        if (last == 0) sum[0] += LOAD_EDGE(a, rows) * factor;
    }
    REAL *y = g->y + at * g->step_y;
    if (g->step_y == 1) {
        UNROLL for (int v = 0; v < last; v++) STORE(y + v * LANES, sum[v]);
        STORE_PART(y + last * LANES, sum[last], rows);
        return;
    }
    REAL lane[16 * LANES];
    UNROLL for (int v = 0; v < vectors; v++) STORE(lane + v * LANES, sum[v]);
    for (int i = 0; i < last * LANES + rows; i++) y[i * g->step_y] = lane[i];
}

/* The sums so far, plus the products with so many columns of M. */
WB_INLINE VEC TYPE(gemv_sum)(VEC sum, const REAL *a, int64_t ld, const VEC *factors, int columns,
                             int rows) {
    UNROLL for (int i = 0; i < columns; i++) {
        sum += (rows == LANES ? LOAD(a + i * ld) : LOAD_EDGE(a + i * ld, rows)) * factors[i];
    }
    return sum;
}

WB_INLINE void TYPE(gemv_across)(const TYPE(gemv) * g, int64_t p, int columns) {
    const REAL *a = g->matrix + p * g->ld;
    VEC factors[WB_GEMV_COLUMNS];
    UNROLL for (int i = 0; i < columns; i++) factors[i] = SET(g->x[(p + i) * g->step_x]);
    int64_t at = 0;
    for (; g->count - at >= LANES; at += LANES) {
        const VEC sum = p ? LOAD(g->y + at) : SET(0);
        STORE(g->y + at, TYPE(gemv_sum)(sum, a + at, g->ld, factors, columns, LANES));
    }
    if (at == g->count) return;
    const int rows = (int)(g->count - at);
    const VEC sum = p ? LOAD_PART(g->y + at, rows) : SET(0);
    STORE_PART(g->y + at, TYPE(gemv_sum)(sum, a + at, g->ld, factors, columns, rows), rows);
}

/* A matrix that no cache holds is read from front to back, with the sums in y; they are added up in
 * the same order. */
static void TYPE(gemv_stream)(const TYPE(gemv) * g) {
    int64_t p = 0;
    for (; g->k - p >= WB_GEMV_COLUMNS; p += WB_GEMV_COLUMNS)
        TYPE(gemv_across)(g, p, WB_GEMV_COLUMNS);
    for (; p < g->k; p++) TYPE(gemv_across)(g, p, 1);
}

static void TYPE(gemv_columns)(const TYPE(gemv) * g) {
    int64_t at = 0;
    if (g->step_y == 1 && g->count * g->k * (int64_t)sizeof(REAL) > WB_GEMV_STREAM) {
        TYPE(gemv_stream)(g);
        return;
    }
    if (WB_VECTOR_REGISTERS >= 32)
        for (; g->count - at >= 16 * LANES; at += 16 * LANES) TYPE(gemv_down)(g, at, 16, LANES);
    for (; g->count - at >= 8 * LANES; at += 8 * LANES) TYPE(gemv_down)(g, at, 8, LANES);
    for (; g->count - at >= 4 * LANES; at += 4 * LANES) TYPE(gemv_down)(g, at, 4, LANES);
    for (; g->count - at >= LANES; at += LANES) TYPE(gemv_down)(g, at, 1, LANES);
    if (at < g->count) TYPE(gemv_down)(g, at, 1, (int)(g->count - at));
}

/* k side by side, LANES dot products at once: their sums are turned, so that adding the lanes of
 * each is adding vectors. */
static void TYPE(gemv_dots)(const TYPE(gemv) * g, int64_t at) {
    VEC sum[LANES];
    UNROLL for (int i = 0; i < LANES; i++) sum[i] = SET(0);
    const REAL *a = g->matrix + at * g->ld, *x = g->x;
    const int64_t k = g->k, ld = g->ld;
    int64_t p = 0;
    for (; k - p >= LANES; p += LANES) {
        const VEC factor = LOAD(x + p);
        UNROLL for (int i = 0; i < LANES; i++) sum[i] += LOAD(a + i * ld + p) * factor;
    }
    if (p < k) {
        const VEC factor = LOAD_PART(x + p, (int)(k - p));
        UNROLL for (int i = 0; i < LANES; i++) {
            sum[i] += LOAD_PART(a + i * ld + p, (int)(k - p)) * factor;
        }
    }
    TRANSPOSE(sum);
    UNROLL for (int width = LANES / 2; width > 0; width /= 2) {
        UNROLL for (int i = 0; i < width; i++) sum[i] += sum[i + width];
    }
    REAL lane[LANES];
    STORE(lane, sum[0]);
    for (int i = 0; i < LANES; i++) g->y[(at + i) * g->step_y] = lane[i];
}

/* One dot product, in four sums. */
static void TYPE(gemv_dot)(const TYPE(gemv) * g, int64_t at) {
    VEC sum[4] = {SET(0), SET(0), SET(0), SET(0)};
    const REAL *a = g->matrix + at * g->ld, *x = g->x;
    int64_t p = 0;
    for (; g->k - p >= 4 * LANES; p += 4 * LANES) {
        UNROLL for (int u = 0; u < 4; u++) {
            sum[u] += LOAD(a + p + u * LANES) * LOAD(x + p + u * LANES);
        }
    }
    for (; p < g->k; p += LANES) {
        const int left = g->k - p < LANES ? (int)(g->k - p) : LANES;
        sum[0] += LOAD_PART(a + p, left) * LOAD_PART(x + p, left);
    }
    g->y[at * g->step_y] = SUM((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static void TYPE(gemv_rows)(const TYPE(gemv) * g) {
    int64_t at = 0;
    for (; g->count - at >= LANES; at += LANES) TYPE(gemv_dots)(g, at);
    for (; at < g->count; at++) TYPE(gemv_dot)(g, at);
}

static void TYPE(gemv_run)(const wb_gemm_piece *piece) {
    const wb_gemm *g = piece->gemm;
    const bool column = g->n == 1;
    const int64_t at = column ? piece->row : piece->column;
    const int64_t ld = column ? g->lda : g->ldb;
    const bool outputs_adjacent = column ? !g->transpose_a : g->transpose_b;
    const REAL *matrix = column ? piece->a : piece->b;

    TYPE(gemv)
    v = {.matrix = matrix + at * (outputs_adjacent ? 1 : ld),
         .x = column ? piece->b : piece->a,
         .y = (REAL *)piece->c + at * (column ? 1 : g->ldc),
         .count = column ? piece->rows : piece->columns,
         .k = g->k,
         .ld = ld,
         .step_x = column           ? (g->transpose_b ? g->ldb : 1)
                   : g->transpose_a ? 1
                                    : g->lda,
         .step_y = column ? 1 : g->ldc};
    if (outputs_adjacent) {
        TYPE(gemv_columns)(&v);
        return;
    }
    if (v.step_x != 1) {
        REAL *x = piece->scratch;
        for (int64_t p = 0; p < v.k; p++) x[p] = v.x[p * v.step_x];
        v.x = x;
    }
    TYPE(gemv_rows)(&v);
}
