/* One rectangle of C for one element type (see gemm.c).
 *
 * Passes over k (WB_GEMM_DEPTH), in each strips of columns, in each panels of rows: a strip of B
 * stays in L1 while the panels of A come from L2. Every element of C is summed over k in order,
 * whatever rectangle or tile it falls into, so the cut of the work never shows in the bits. */
#include "gemm_pack.h"
#include "gemm_tile.h"
#include "gemv.h"

typedef struct TYPE(pass) {
    const wb_gemm_piece *piece;
    int64_t first, depth; /* of k */
    const REAL *a, *b;    /* their elements (row, first) and (first, column) */
    REAL *c;
    REAL *packed_a, *packed_b; /* NULL: read in place */
    bool last;
} TYPE(pass);

static void TYPE(pack_a)(const TYPE(pass) * pass) {
    const wb_gemm *g = pass->piece->gemm;
    const int64_t rows = pass->piece->rows, height = TILE_VECTORS * LANES;
    if (!g->transpose_a) {
        TYPE(pack_straight)(pass->depth, rows, pass->a, g->lda, pass->packed_a, height);
        return;
    }
    for (int64_t row = 0; row < rows; row += LANES) {
        const int64_t panel = row / height * height;
        const int64_t left = rows - panel < height ? rows - panel : height;
        const int count = rows - row < LANES ? (int)(rows - row) : LANES;
        TYPE(pack_turned)
        (pass->depth, count, pass->a + row * g->lda, g->lda,
         pass->packed_a + panel * pass->depth + (row - panel), (left + LANES - 1) / LANES * LANES);
    }
}

/* The columns column .. column + width - 1 of the piece, all rows; b: their first element. */
static void TYPE(strip_run)(const TYPE(pass) * pass, int64_t column, int width, const REAL *b,
                            int64_t step_b) {
    const wb_gemm *g = pass->piece->gemm;
    TYPE(tile)
    tile = {.b = b,
            .k = pass->depth,
            .step_a = g->lda,
            .step_b = step_b,
            .ldc = g->ldc,
            .add = pass->first > 0};
    for (int64_t row = 0; row < pass->piece->rows; row += TILE_VECTORS * LANES) {
        int64_t rows = pass->piece->rows - row;
        if (rows > TILE_VECTORS * LANES) rows = TILE_VECTORS * LANES;
        const int vectors = (int)((rows + LANES - 1) / LANES);
        tile.rows = (int)rows - (vectors - 1) * LANES;
        tile.a = pass->a + row;
        tile.c = pass->c + row + column * g->ldc;
        if (pass->packed_a) {
            tile.a = pass->packed_a + row * pass->depth;
            tile.step_a = vectors * LANES;
        }
        TYPE(tiles)[g->transpose_b][vectors - 1][width](&tile);
    }
}

/* Gives the columns that are final to done, a part of the L1 cache at a time. */
static int64_t TYPE(hand_over)(const wb_gemm_piece *piece, int64_t from, int64_t to) {
    const int64_t bytes = piece->rows * (to - from) * (int64_t)sizeof(REAL);
    if (!piece->done || (bytes < WB_GEMM_DONE_BYTES && to < piece->columns)) return from;
    piece->done(piece->context, piece->product, piece->row, piece->rows, piece->column + from,
                to - from, piece->worker);
    return to;
}

/* B of the columns that begin at `group`, packed if it is to be: then the blocks of a sheet are
 * filled together. */
static const REAL *TYPE(group_b)(const TYPE(pass) * pass, int64_t group) {
    const wb_gemm *g = pass->piece->gemm;
    const REAL *b = pass->b + group * (g->transpose_b ? 1 : g->ldb);
    if (!pass->packed_b) return b;

    const int64_t place = group % WB_GEMM_SHEET;
    int64_t columns = pass->piece->columns - group;
    if (columns > WB_GEMM_SHEET) columns = WB_GEMM_SHEET;
    if (place == 0) TYPE(pack_columns)(pass->depth, columns, b, g->ldb, pass->packed_b);
    return pass->packed_b + place * pass->depth;
}

static void TYPE(pass_run)(const TYPE(pass) * pass) {
    const wb_gemm_piece *piece = pass->piece;
    const wb_gemm *g = piece->gemm;
    const int64_t most = (piece->rows + LANES - 1) / LANES;
    const int vectors = most < TILE_VECTORS ? (int)most : TILE_VECTORS;
    const int64_t step_b = pass->packed_b ? WB_GEMM_GROUP : g->ldb;
    int64_t handed = 0; /* columns before this one were given to done */

    if (pass->packed_a && !g->kept_a) TYPE(pack_a)(pass);
    for (int64_t group = 0; group < piece->columns; group += WB_GEMM_GROUP) {
        const REAL *b = TYPE(group_b)(pass, group);
        int64_t end = group + WB_GEMM_GROUP;
        if (end > piece->columns) end = piece->columns;
        for (int64_t column = group; column < end;) {
            const int width = TYPE(tile_width)(vectors, end - column);
            TYPE(strip_run)(pass, column, width, b, step_b);
            column += width;
            b += width * (g->transpose_b ? 1 : step_b);
            if (pass->last) handed = TYPE(hand_over)(piece, handed, column);
        }
    }
}

static void TYPE(piece_zero)(const wb_gemm_piece *piece) {
    const int64_t ldc = piece->gemm->ldc;
    REAL *c = (REAL *)piece->c + piece->row + piece->column * ldc;
    for (int64_t j = 0; j < piece->columns; j++)
        memset(c + j * ldc, 0, (size_t)piece->rows * sizeof(REAL));
}

/* Where a pass finds the panels that were packed beforehand: those of all rows, pass by pass. */
static REAL *TYPE(kept_a)(const wb_gemm_piece *piece, int64_t first, int64_t depth) {
    const int64_t rows = (piece->gemm->m + LANES - 1) / LANES * LANES;
    return (REAL *)piece->gemm->kept_a + first * rows + piece->row * depth;
}

static void TYPE(piece_passes)(const wb_gemm_piece *piece) {
    const wb_gemm *g = piece->gemm;
    const int64_t most = piece->packs_b ? WB_GEMM_DEPTH_PACKED : WB_GEMM_DEPTH;
    const int64_t passes = (g->k + most - 1) / most;
    const int64_t depth = (g->k + passes - 1) / passes;
    TYPE(pass) pass = {.piece = piece, .c = (REAL *)piece->c + piece->row + piece->column * g->ldc};
    REAL *scratch = piece->scratch;
    if (piece->packs_b) {
        pass.packed_b = scratch;
        scratch += WB_GEMM_SHEET * WB_GEMM_DEPTH_PACKED;
    }
    if (piece->packs_a) pass.packed_a = scratch;

    const REAL *a = (const REAL *)piece->a + piece->row * (g->transpose_a ? g->lda : 1);
    const REAL *b = (const REAL *)piece->b + piece->column * (g->transpose_b ? 1 : g->ldb);
    for (int64_t first = 0; first < g->k; first += depth) {
        pass.first = first;
        pass.depth = g->k - first < depth ? g->k - first : depth;
        pass.last = first + pass.depth == g->k;
        pass.a = a + first * (g->transpose_a ? 1 : g->lda);
        pass.b = b + first * (g->transpose_b ? g->ldb : 1);
        if (g->kept_a) pass.packed_a = TYPE(kept_a)(piece, first, pass.depth);
        if (piece->keeps)
            TYPE(pack_a)(&pass);
        else
            TYPE(pass_run)(&pass);
    }
}

/* The transposed product into scratch memory, and from there turned into C: for few rows, which
 * would leave most lanes of a vector empty, and a B that has its columns side by side. */
static void TYPE(piece_swapped)(const wb_gemm_piece *piece) {
    const wb_gemm *g = piece->gemm;
    const wb_gemm swapped = {.dtype = g->dtype,
                             .transpose_b = !g->transpose_a,
                             .m = g->n,
                             .n = g->m,
                             .k = g->k,
                             .lda = g->ldb,
                             .ldb = g->lda,
                             .ldc = WB_GEMM_ROWS,
                             .batch = 1};
    wb_gemm_piece part = {.gemm = &swapped,
                          .b = (const REAL *)piece->a + piece->row * (g->transpose_a ? g->lda : 1),
                          .c = piece->scratch,
                          .columns = piece->rows};
    for (int64_t column = 0; column < piece->columns; column += WB_GEMM_ROWS) {
        const int64_t left = piece->columns - column, first = piece->column + column;
        part.a = (const REAL *)piece->b + first;
        part.rows = left < WB_GEMM_ROWS ? left : WB_GEMM_ROWS;
        TYPE(piece_passes)(&part);
        TYPE(copy_turned)
        (part.rows, piece->rows, piece->scratch, WB_GEMM_ROWS,
         (REAL *)piece->c + piece->row + first * g->ldc, g->ldc);
        if (piece->done)
            piece->done(piece->context, piece->product, piece->row, piece->rows, first, part.rows,
                        piece->worker);
    }
}

/* A vector, or zeros: small enough to be given to done as a whole. */
static void TYPE(piece_vector)(const wb_gemm_piece *piece) {
    if (piece->gemm->k == 0)
        TYPE(piece_zero)(piece);
    else
        TYPE(gemv_run)(piece);
    if (piece->done)
        piece->done(piece->context, piece->product, piece->row, piece->rows, piece->column,
                    piece->columns, piece->worker);
}

static void TYPE(piece_run)(const wb_gemm_piece *piece) {
    const wb_gemm *g = piece->gemm;
    if (g->k == 0 || g->m == 1 || g->n == 1)
        TYPE(piece_vector)(piece);
    else if (piece->swaps)
        TYPE(piece_swapped)(piece);
    else
        TYPE(piece_passes)(piece);
}
