/* The tiles of C that stay in registers, for one element type (see gemm.c).
 *
 *     C (V vectors of rows, N columns) (+)= A (rows, k) * B (k, N)
 *
 * A has its rows side by side and `step_a` from one k to the next: a packed panel, or the matrix
 * itself. B is read as it lies: either its columns are side by side and `step_b` leads to the next
 * k, or its k are side by side and `step_b` leads to the next column. */

typedef struct TYPE(tile) {
    const REAL *a, *b;
    REAL *c;
    int64_t k, step_a, step_b, ldc;
    int rows; /* of the last vector: 1 .. LANES */
    bool add; /* to what C holds */
} TYPE(tile);

typedef void TYPE(tile_fn)(const TYPE(tile) * tile);

/* vectors, columns and adjacent are constants where these are expanded: all loops but the one over
 * k unroll, and sum stays in registers. */
WB_INLINE void TYPE(tile_store)(const TYPE(tile) * t, int vectors, int columns, VEC (*sum)[4]) {
    const int last = vectors - 1, rows = t->rows;
    REAL *c = t->c;
    const int64_t ldc = t->ldc;
    const bool add = t->add;
    UNROLL for (int j = 0; j < columns; j++, c += ldc) {
        UNROLL for (int v = 0; v < last; v++) {
            if (add) sum[j][v] += LOAD(c + v * LANES);
            STORE(c + v * LANES, sum[j][v]);
        }
        if (add) sum[j][last] += LOAD_PART(c + last * LANES, rows);
        STORE_PART(c + last * LANES, sum[j][last], rows);
    }
}

/* The k from first on. */
WB_INLINE void TYPE(tile_each_k)(const TYPE(tile) * t, int64_t first, int vectors, int columns,
                                 bool adjacent, VEC (*sum)[4]) {
    const int64_t k = t->k, step_a = t->step_a, step_b = t->step_b;
    const REAL *a = t->a + first * step_a, *b = t->b + first * (adjacent ? step_b : 1);
    const int last = vectors - 1, rows = t->rows;
    for (int64_t p = first; p < k; p++) {
        VEC row[4];
        UNROLL for (int v = 0; v < last; v++) row[v] = LOAD(a + v * LANES);
        row[last] = LOAD_EDGE(a + last * LANES, rows);
        UNROLL for (int j = 0; j < columns; j++) {
            const VEC factor = SET(adjacent ? b[j] : b[j * step_b]);
            UNROLL for (int v = 0; v < vectors; v++) {
                sum[j][v] = MULTIPLY_ADD(sum[j][v], row[v], factor);
            }
        }
        a += step_a;
        b += adjacent ? step_b : 1;
    }
}

WB_INLINE void TYPE(tile_run)(const TYPE(tile) * t, int vectors, int columns, bool adjacent) {
    VEC sum[WB_GEMM_STRIP][4];
    UNROLL for (int j = 0; j < columns; j++) {
        UNROLL for (int v = 0; v < vectors; v++) sum[j][v] = SET(0);
    }
    TYPE(tile_each_k)(t, 0, vectors, columns, adjacent, sum);
    TYPE(tile_store)(t, vectors, columns, sum);
}

#if WB_BY_LANE
#include "gemm_tile_lane.h"
#define TILE_RUN TYPE(tile_run_by_lane)
#else
#define TILE_RUN TYPE(tile_run)
#endif

/* X(vectors, columns): the tiles that fit into the registers; a panel of few vectors has wide
 * ones. */
#define TILE_NARROW(X, V) X(V, 1) X(V, 2) X(V, 3) X(V, 4) X(V, 5) X(V, 6)
#define TILE_WIDE_1(X)    X(1, 8) X(1, 12)
#define TILE_LIST_2(X)    TILE_NARROW(X, 1) TILE_WIDE_1(X) TILE_NARROW(X, 2)
#if WB_VECTOR_REGISTERS >= 32
#define TILE_VECTORS 4
#define TILE_WIDE(X) X(1, 16) X(2, 8) X(2, 12) X(3, 8)
#define TILE_LIST(X) TILE_LIST_2(X) TILE_NARROW(X, 3) TILE_NARROW(X, 4) TILE_WIDE(X)
#else
#define TILE_VECTORS 2
#define TILE_LIST(X) TILE_LIST_2(X)
#endif

#define TILE(V, N)                                                                                 \
    static void TYPE(tile_##V##x##N##_rows)(const TYPE(tile) * t) { TILE_RUN(t, V, N, true); }     \
    static void TYPE(tile_##V##x##N##_columns)(const TYPE(tile) * t) { TILE_RUN(t, V, N, false); }
TILE_LIST(TILE)
#undef TILE

/* [columns of B adjacent][vectors - 1][columns]; NULL where there is no such tile */
static TYPE(tile_fn) *const TYPE(tiles)[2][TILE_VECTORS][WB_GEMM_STRIP + 1] = {
#define TILE(V, N) [0][V - 1][N] = TYPE(tile_##V##x##N##_columns),
    TILE_LIST(TILE)
#undef TILE
#define TILE(V, N) [1][V - 1][N] = TYPE(tile_##V##x##N##_rows),
        TILE_LIST(TILE)
#undef TILE
};

#undef TILE_RUN
#undef TILE_LIST
#undef TILE_LIST_2
#undef TILE_NARROW
#undef TILE_WIDE
#undef TILE_WIDE_1

/* The widest tile of a panel with this many vectors that `left` columns fill. */
static int TYPE(tile_width)(int vectors, int64_t left) {
    int width = left < WB_GEMM_STRIP ? (int)left : WB_GEMM_STRIP;
    while (!TYPE(tiles)[0][vectors - 1][width]) width--;
    return width;
}
