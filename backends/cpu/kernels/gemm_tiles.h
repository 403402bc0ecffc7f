/* Sums of products of bf16 by tiles of 16 by 16: two by two of them at once, each over all k. What
 * a tile does is in tiles_amx.h, or, without such a processor, in a test
 * (tests/backends/cpu/emulated_tiles.h). */
enum { TILE_SIDE = 16 };

typedef struct tile_block {
    const float *a; /* pair p of row i: a[i + p * step_a] */
    const float *b; /* pair p of column j: b[p + j * step_b] */
    float *c;       /* of row i and column j: c[i + j * ldc] */
    int64_t step_a, step_b, ldc;
    int64_t pairs;         /* of k, a multiple of TILE_SIDE */
    int64_t rows, columns; /* of C, at most 2 TILE_SIDE; A and B have whole tiles of them */
    bool add;              /* to what C has */
} tile_block;

/* Which of the second tiles there are is a constant where this is expanded. */
WB_INLINE void tile_block_sum(const tile_block *t, bool two_rows, bool two_columns) {
    const int64_t step_a = t->step_a * 4, step_b = t->step_b * 4, step_c = t->ldc * 4;
    float *c = t->c, *right = c + TILE_SIDE * t->ldc;
    TILE_ZERO(0);
    if (two_rows) TILE_ZERO(1);
    if (two_columns) TILE_ZERO(2);
    if (two_rows && two_columns) TILE_ZERO(3);
    if (t->add) {
        TILE_LOAD(0, c, step_c);
        if (two_rows) TILE_LOAD(1, c + TILE_SIDE, step_c);
        if (two_columns) TILE_LOAD(2, right, step_c);
        if (two_rows && two_columns) TILE_LOAD(3, right + TILE_SIDE, step_c);
    }
    const float *a = t->a, *b = t->b, *b_right = b + TILE_SIDE * t->step_b;
    for (int64_t p = 0; p < t->pairs; p += TILE_SIDE, a += TILE_SIDE * t->step_a) {
        TILE_LOAD(4, a, step_a);
        TILE_LOAD(6, b + p, step_b);
        TILE_DOTS(0, 6, 4);
        if (two_rows) {
            TILE_LOAD(5, a + TILE_SIDE, step_a);
            TILE_DOTS(1, 6, 5);
        }
        if (two_columns) {
            TILE_LOAD(7, b_right + p, step_b);
            TILE_DOTS(2, 7, 4);
            if (two_rows) TILE_DOTS(3, 7, 5);
        }
    }
    TILE_STORE(0, c, step_c);
    if (two_rows) TILE_STORE(1, c + TILE_SIDE, step_c);
    if (two_columns) TILE_STORE(2, right, step_c);
    if (two_rows && two_columns) TILE_STORE(3, right + TILE_SIDE, step_c);
}

static void tile_block_whole(const tile_block *t) {
    const bool two_rows = t->rows > TILE_SIDE, two_columns = t->columns > TILE_SIDE;
    if (two_rows && two_columns)
        tile_block_sum(t, true, true);
    else if (two_rows)
        tile_block_sum(t, true, false);
    else if (two_columns)
        tile_block_sum(t, false, true);
    else
        tile_block_sum(t, false, false);
}

static void tile_block_copy(const tile_block *t, const float *from, int64_t ld, float *to,
                            int64_t ld_to) {
    for (int64_t j = 0; j < t->columns; j++)
        memcpy(to + j * ld_to, from + j * ld, (size_t)t->rows * sizeof *to);
}

/* Tiles that C does not fill are summed beside it. */
static void tile_block_run(const tile_block *t) {
    float beside[4 * TILE_SIDE * TILE_SIDE];
    if (t->rows % TILE_SIDE == 0 && t->columns % TILE_SIDE == 0) {
        tile_block_whole(t);
        return;
    }
    tile_block edge = *t;
    edge.c = beside, edge.ldc = 2 * TILE_SIDE;
    if (t->add) {
        memset(beside, 0, sizeof beside);
        tile_block_copy(t, t->c, t->ldc, beside, edge.ldc);
    }
    tile_block_whole(&edge);
    tile_block_copy(t, beside, edge.ldc, t->c, t->ldc);
}
