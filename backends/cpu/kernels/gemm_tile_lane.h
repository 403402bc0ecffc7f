/* Tiles for processors that can multiply a vector by one lane of another (ARM; gemm_tile.h): B is
 * loaded as vectors, and no register holds a broadcast number.
 *
 * If the rows do not fill the last vector, it is loaded from further up, so that it is full and
 * overlaps the one before; the shared rows are computed twice, with the same bits. So no loop needs
 * a case for the edge. */

/* The A of one k; edge: from it to its last vector. */
WB_INLINE void TYPE(tile_rows)(const REAL *a, int vectors, int64_t edge, VEC *row) {
    UNROLL for (int v = 0; v < vectors - 1; v++) row[v] = LOAD(a + v * LANES);
    row[vectors - 1] = LOAD(a + edge);
}

/* B's columns side by side: a vector runs along them. */
WB_INLINE void TYPE(tile_across)(const TYPE(tile) * t, int vectors, int columns, int64_t edge,
                                 VEC (*sum)[4]) {
    const REAL *a = t->a, *b = t->b;
    for (int64_t p = 0; p < t->k; p++, a += t->step_a, b += t->step_b) {
        VEC row[4], factor[WB_GEMM_STRIP / LANES];
        TYPE(tile_rows)(a, vectors, edge, row);
        UNROLL for (int j = 0; j < columns; j += LANES) {
            const int left = columns - j;
            factor[j / LANES] = left < LANES ? LOAD_PART(b + j, left) : LOAD(b + j);
        }
        UNROLL for (int j = 0; j < columns; j++) {
            UNROLL for (int v = 0; v < vectors; v++) {
                sum[j][v] = ADD_BY_LANE(sum[j][v], row[v], factor[j / LANES], j % LANES);
            }
        }
    }
}

/* LANES k from p on, the columns from first to first + group. */
WB_INLINE void TYPE(tile_group)(const TYPE(tile) * t, int64_t p, int vectors, int first, int group,
                                int64_t edge, VEC (*sum)[4]) {
    const REAL *b = t->b + p + first * t->step_b;
    VEC factor[8];
    UNROLL for (int j = 0; j < group; j++, b += t->step_b) factor[j] = LOAD(b);
    const REAL *a = t->a + p * t->step_a;
    UNROLL for (int lane = 0; lane < LANES; lane++, a += t->step_a) {
        VEC row[4];
        TYPE(tile_rows)(a, vectors, edge, row);
        UNROLL for (int j = 0; j < group; j++) {
            UNROLL for (int v = 0; v < vectors; v++) {
                sum[first + j][v] = ADD_BY_LANE(sum[first + j][v], row[v], factor[j], lane);
            }
        }
    }
}

/* B's k side by side: a vector runs along LANES of them, for as many columns at a time as find room
 * beside the sums and A. Returns how many k were done. */
WB_INLINE int64_t TYPE(tile_along)(const TYPE(tile) * t, int vectors, int columns, int64_t edge,
                                   VEC (*sum)[4]) {
    const int room = WB_VECTOR_REGISTERS - 1 - vectors * (columns + 1);
    const int half = columns / 2 <= room ? columns / 2 : columns / 3;
    const int group = columns <= room && columns <= 8 ? columns : half;
    int64_t p = 0;
    for (; p + LANES <= t->k; p += LANES) {
        TYPE(tile_group)(t, p, vectors, 0, group, edge, sum);
        if (columns > group) WB_FORGET_LOADS();
        if (columns > group) TYPE(tile_group)(t, p, vectors, group, group, edge, sum);
        if (columns > 2 * group) WB_FORGET_LOADS();
        if (columns > 2 * group) TYPE(tile_group)(t, p, vectors, 2 * group, group, edge, sum);
    }
    return p;
}

/* The k from first on, one at a time. */
WB_INLINE void TYPE(tile_rest)(const TYPE(tile) * t, int64_t first, int vectors, int columns,
                               int64_t edge, VEC (*sum)[4]) {
    for (int64_t p = first; p < t->k; p++) {
        VEC row[4];
        TYPE(tile_rows)(t->a + p * t->step_a, vectors, edge, row);
        UNROLL for (int j = 0; j < columns; j++) {
            const VEC factor = SET(t->b[p + j * t->step_b]);
            UNROLL for (int v = 0; v < vectors; v++) {
                sum[j][v] = MULTIPLY_ADD(sum[j][v], row[v], factor);
            }
        }
    }
}

/* The last vector's C is read before a store of the others changes it. */
WB_INLINE void TYPE(tile_store_all)(const TYPE(tile) * t, int vectors, int columns, int64_t edge,
                                    VEC (*sum)[4]) {
    REAL *c = t->c;
    UNROLL for (int j = 0; j < columns; j++, c += t->ldc) {
        if (t->add) {
            UNROLL for (int v = 0; v < vectors - 1; v++) sum[j][v] += LOAD(c + v * LANES);
            sum[j][vectors - 1] += LOAD(c + edge);
        }
        UNROLL for (int v = 0; v < vectors - 1; v++) STORE(c + v * LANES, sum[j][v]);
        STORE(c + edge, sum[j][vectors - 1]);
    }
}

WB_INLINE void TYPE(tile_run_by_lane)(const TYPE(tile) * t, int vectors, int columns,
                                      bool adjacent) {
    if (vectors == 1 && t->rows < LANES) {
        TYPE(tile_run)(t, 1, columns, adjacent);
        return;
    }
    const int64_t edge = (vectors - 2) * LANES + t->rows;
    VEC sum[WB_GEMM_STRIP][4];
    UNROLL for (int j = 0; j < columns; j++) {
        UNROLL for (int v = 0; v < vectors; v++) sum[j][v] = SET(0);
    }
    if (adjacent) {
        TYPE(tile_across)(t, vectors, columns, edge, sum);
    } else {
        const int64_t done = TYPE(tile_along)(t, vectors, columns, edge, sum);
        TYPE(tile_rest)(t, done, vectors, columns, edge, sum);
    }
    TYPE(tile_store_all)(t, vectors, columns, edge, sum);
}
