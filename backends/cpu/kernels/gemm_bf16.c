/* Matrix products of bf16, and of f32 that is rounded to it, by an instruction that adds two
 * products to a sum in f32 (dots_avx512.h, dots_neon.h):
 *
 *     sum[i] += a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1]
 *
 * An element of what is packed is a pair of bf16, of two neighbouring k (an odd k gets a 0); the
 * tiles are those of f32, or those of AMX, of 16 by 16 sums (gemm_tiles.h). The instructions take
 * denormals for zero, in and out.
 *
 * B is read where it lies if its pairs do (k side by side, and whole words; with AMX, whole tiles),
 * or else packed, and so is A; f32 is rounded on the way, to nearest even. Columns of C come in
 * sheets, whose sums over k, in order, are in C, or in scratch memory until they are rounded: the
 * cut of the work never shows in the bits. */
#include "gemm_kernel.h"

#if defined(__AVX512BW__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include "half.h"
#include "transpose.h"

#if defined(__AVX512BW__)
#include "dots_avx512.h"
#include "tiles_amx.h"

#include "gemm_tiles.h"
#else
#include "dots_neon.h"
#endif

#define REAL         float
#define TYPE(name)   name##_bf16
#define VEC          wb_f32v
#define LANES        WB_F32_LANES
#define LOAD         wb_f32v_load
#define LOAD_PART    wb_f32v_load_part
#define LOAD_EDGE    wb_f32v_load_edge
#define STORE        wb_f32v_store
#define STORE_PART   wb_f32v_store_part
#define SET          set_pair
#define MULTIPLY_ADD add_dots
#define ADD_BY_LANE  add_dots_by_lane
#include "gemm_tile.h"

enum { PANEL = TILE_VECTORS * LANES, AHEAD = 8 /* pairs of k that are prefetched */ };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t round_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }
static int64_t whole_vectors(int64_t rows) { return round_up(rows, LANES); }

/* ---- packing ---- */

/* Rows of A or columns of B: element k of row i at first[i * step + k * step_k]; one step is 1.
 * Packed, in panels of `height` rows, pair p of row i of a panel lies at [i + p * its height]; if
 * height is 0, the pairs of a column of B lie side by side. Zeros fill up the pairs to a multiple
 * of `unit`, and for AMX the columns of B, too. */
typedef struct matrix {
    const void *first; /* bf16, or f32 if is_wide */
    int64_t step, step_k;
    int64_t rows, height, unit;
    bool is_wide;
} matrix;

static int64_t stored_pairs(const matrix *m, int64_t k) { return round_up((k + 1) / 2, m->unit); }

/* is_wide is a constant where these are expanded, once for each type. */
WB_INLINE const void *at(const void *elements, int64_t i, bool is_wide) {
    return is_wide ? (const void *)((const float *)elements + i)
                   : (const void *)((const uint16_t *)elements + i);
}

/* Prefetches a pair of k of all rows. */
WB_INLINE void ask_for(const void *first, const void *second, int64_t rows, bool is_wide) {
    for (int64_t i = 0; i < rows; i += is_wide ? 16 : 32) {
        __builtin_prefetch(at(first, i, is_wide));
        if (second) __builtin_prefetch(at(second, i, is_wide));
    }
}

/* Rows side by side: all of each pair in turn, because each k may lie on a page of its own, where
 * the processor does not prefetch. */
WB_INLINE void pack_across(const matrix *m, int64_t k, REAL *to, bool is_wide) {
    const int64_t pairs = (k + 1) / 2, stored = stored_pairs(m, k), ahead = 2 * AHEAD * m->step_k;
    for (int64_t p = 0; p < pairs; p++) {
        const void *first = at(m->first, 2 * p * m->step_k, is_wide);
        const void *second = 2 * p + 1 < k ? at(first, m->step_k, is_wide) : NULL;
        if (p + AHEAD < pairs)
            ask_for(at(first, ahead, is_wide), second ? at(second, ahead, is_wide) : NULL, m->rows,
                    is_wide);
        for (int64_t panel = 0; panel < m->rows; panel += m->height) {
            const int64_t end = smaller(m->rows, panel + m->height);
            REAL *place = to + panel * stored + p * whole_vectors(end - panel);
            for (int64_t i = panel; i < end; i += LANES, place += LANES)
                STORE(place, pair_up(at(first, i, is_wide), second ? at(second, i, is_wide) : NULL,
                                     smaller(end - i, LANES), is_wide));
        }
    }
    for (int64_t panel = 0; pairs < stored && panel < m->rows; panel += m->height) {
        const int64_t height = whole_vectors(smaller(m->rows - panel, m->height));
        memset(to + panel * stored + pairs * height, 0,
               (size_t)((stored - pairs) * height) * sizeof(REAL));
    }
}

/* k side by side, of at most LANES rows. */
WB_INLINE void pack_along(const matrix *m, int64_t row, int64_t rows, int64_t k, REAL *to,
                          int64_t step, bool is_wide) {
    const void *from = at(m->first, row * m->step, is_wide);
    const int64_t stored = stored_pairs(m, k);
    for (int64_t p = 0; p < stored; p += LANES) {
        wb_f32v r[LANES];
        for (int i = 0; i < LANES; i++)
            r[i] = i < rows ? load_pairs(at(from, i * m->step + 2 * p, is_wide), k - 2 * p, is_wide)
                            : (wb_f32v){0};
        wb_f32_transpose(r);
        const int64_t left = smaller(stored - p, LANES);
        for (int i = 0; i < left; i++) STORE(to + (p + i) * step, r[i]);
    }
}

WB_INLINE void pack_in_order(const matrix *m, int64_t k, REAL *to, bool is_wide) {
    const int64_t pairs = stored_pairs(m, k);
    for (int64_t row = 0; row < m->rows; row++, to += pairs)
        for (int64_t p = 0; p < pairs; p += LANES)
            STORE_PART(to + p,
                       load_pairs(at(m->first, row * m->step + 2 * p, is_wide), k - 2 * p, is_wide),
                       (int)smaller(pairs - p, LANES));
    const int64_t rows = m->unit == 1 ? m->rows : whole_vectors(m->rows);
    memset(to, 0, (size_t)((rows - m->rows) * pairs) * sizeof(REAL));
}

/* Rows side by side, of which each gets its pairs together: for AMX. */
WB_INLINE void pack_turned(const matrix *m, int64_t k, REAL *to, bool is_wide) {
    const int64_t pairs = stored_pairs(m, k);
    for (int64_t row = 0; row < m->rows; row += LANES, to += LANES * pairs)
        for (int64_t p = 0; p < pairs; p += LANES) {
            wb_f32v r[LANES];
            for (int i = 0; i < LANES; i++) {
                const int64_t first = 2 * (p + i);
                r[i] = (wb_f32v){0};
                if (first >= k) continue;
                const void *from = at(m->first, row + first * m->step_k, is_wide);
                r[i] = pair_up(from, first + 1 < k ? at(from, m->step_k, is_wide) : NULL,
                               smaller(m->rows - row, LANES), is_wide);
            }
            wb_f32_transpose(r);
            for (int i = 0; i < LANES; i++) STORE(to + i * pairs + p, r[i]);
        }
}

WB_INLINE void pack_as(const matrix *m, int64_t k, REAL *to, bool is_wide) {
    if (m->height == 0 || m->step == 1) {
        if (m->height)
            pack_across(m, k, to, is_wide);
        else if (m->step == 1)
            pack_turned(m, k, to, is_wide);
        else
            pack_in_order(m, k, to, is_wide);
        return;
    }
    for (int64_t row = 0; row < m->rows; row += LANES) {
        const int64_t panel = row / m->height * m->height;
        const int64_t end = smaller(m->rows, panel + m->height);
        pack_along(m, row, smaller(end - row, LANES), k,
                   to + panel * stored_pairs(m, k) + row - panel, whole_vectors(end - panel),
                   is_wide);
    }
}

static void pack(const matrix *m, int64_t k, REAL *to) {
    if (m->is_wide)
        pack_as(m, k, to, true);
    else
        pack_as(m, k, to, false);
}

/* ---- one sheet ---- */

typedef struct sheet {
    matrix a, b;
    REAL *packed_a, *packed_b, *sums;
    int64_t ld; /* of sums */
    bool packs_b, has_tiles;
} sheet;

/* Where the tiles find B of the columns from `column` on: in words, which are pairs. */
static void place_b(const sheet *s, int64_t pairs, int64_t column, const REAL **b,
                    int64_t *step_b) {
    if (s->b.height) {
        const int64_t group = column / WB_GEMM_GROUP * WB_GEMM_GROUP;
        *b = s->packed_b + group * pairs + (column - group);
        *step_b = whole_vectors(smaller(s->b.rows - group, WB_GEMM_GROUP));
        return;
    }
    *step_b = s->packs_b ? pairs : s->b.step / 2;
    *b = (s->packs_b ? s->packed_b : (const REAL *)s->b.first) + column * *step_b;
}

/* All rows of the `width` columns from `column` on. */
static void run_strip(const sheet *s, const REAL *a, int64_t pairs, bool add, int64_t column,
                      int width) {
    tile_bf16 tile = {.k = pairs, .ldc = s->ld, .add = add};
    place_b(s, pairs, column, &tile.b, &tile.step_b);
    for (int64_t row = 0; row < s->a.rows; row += PANEL) {
        const int64_t rows = smaller(s->a.rows - row, PANEL);
        tile.a = a + row * pairs;
        tile.step_a = whole_vectors(rows);
        tile.rows = (int)(rows - tile.step_a) + LANES;
        tile.c = s->sums + row + column * s->ld;
        tiles_bf16[s->b.height != 0][tile.step_a / LANES - 1][width](&tile);
    }
}

#if defined(__AVX512BW__)
/* The tiles of a strip of B stay in L1 while those of A come from L2. */
static void multiply_tiles(const sheet *s, const REAL *a, int64_t pairs, bool add) {
    tile_block block = {.pairs = pairs, .ldc = s->ld, .add = add};
    tiles_begin();
    for (int64_t column = 0; column < s->b.rows; column += 2 * TILE_SIDE) {
        place_b(s, pairs, column, &block.b, &block.step_b);
        block.columns = smaller(s->b.rows - column, 2 * TILE_SIDE);
        for (int64_t row = 0; row < s->a.rows; row += 2 * TILE_SIDE) {
            const int64_t panel = row / PANEL * PANEL;
            block.step_a = whole_vectors(smaller(s->a.rows - panel, PANEL));
            block.a = a + panel * pairs + (row - panel);
            block.rows = smaller(s->a.rows - row, 2 * TILE_SIDE);
            block.c = s->sums + row + column * s->ld;
            tile_block_run(&block);
        }
    }
    tiles_end();
}
#endif

static void multiply(const sheet *s, const REAL *a, int64_t pairs, bool add) {
#if defined(__AVX512BW__)
    if (s->has_tiles) {
        multiply_tiles(s, a, pairs, add);
        return;
    }
#endif
    const int vectors = (int)(smaller(whole_vectors(s->a.rows), PANEL) / LANES);
    for (int64_t group = 0; group < s->b.rows; group += WB_GEMM_GROUP) {
        const int64_t end = smaller(s->b.rows, group + WB_GEMM_GROUP);
        for (int64_t column = group; column < end;) {
            const int width = tile_width_bf16(vectors, end - column);
            run_strip(s, a, pairs, add, column, width);
            column += width;
        }
    }
}

/* The sums of `count` columns from `column` on of C, rounded. */
static void round_into(const wb_gemm_piece *piece, const REAL *sums, int64_t ld, int64_t column,
                       int64_t count) {
    for (int64_t j = 0; j < count; j++, sums += ld) {
        uint16_t *c = (uint16_t *)piece->c + piece->row + (column + j) * piece->gemm->ldc;
        for (int64_t i = 0; i < piece->rows; i += LANES)
            store_rounded(c + i, sums + i, (int)smaller(piece->rows - i, LANES));
    }
}

/* Finishes the columns, and gives them to done, a part of the cache at a time. */
static void hand_over(const wb_gemm_piece *piece, const sheet *s, int64_t column) {
    const int64_t size = piece->gemm->dtype == WB_BF16 ? 2 : 4;
    const int64_t most = WB_GEMM_DONE_BYTES / (size * piece->rows) + 1;
    for (int64_t from = 0; from < s->b.rows; from += most) {
        const int64_t count = smaller(s->b.rows - from, most);
        if (piece->gemm->dtype == WB_BF16)
            round_into(piece, s->sums + from * s->ld, s->ld, column + from, count);
        if (piece->done)
            piece->done(piece->context, piece->product, piece->row, piece->rows, column + from,
                        count, piece->worker);
    }
}

/* ---- a piece ---- */

static matrix matrix_of(const wb_gemm *g, bool rows_adjacent, int64_t ld, int64_t height,
                        int64_t unit) {
    return (matrix){.step = rows_adjacent ? 1 : ld,
                    .step_k = rows_adjacent ? ld : 1,
                    .height = height,
                    .unit = unit,
                    .is_wide = g->dtype == WB_F32};
}

/* The last pair of an odd k would be read from two columns. */
static bool lies_in_pairs(const wb_gemm_piece *piece) {
    const wb_gemm *g = piece->gemm;
    return g->dtype == WB_BF16 && !g->transpose_b && g->k % 2 == 0 && g->ldb % 2 == 0 &&
           (uintptr_t)piece->b % 4 == 0;
}

/* The k first .. first + depth - 1 of a sheet. A is packed with the first sheet, and kept if there
 * is room for all k. */
static void run_pass(const wb_gemm_piece *piece, sheet *s, int64_t column, int64_t first,
                     int64_t depth) {
    const bool keeps = piece->gemm->k <= WB_GEMM_KEPT_BF16, is_wide = s->a.is_wide;
    REAL *a = s->packed_a + (keeps ? whole_vectors(piece->rows) * (first / 2) : 0);
    s->a.first = at(piece->a, piece->row * s->a.step + first * s->a.step_k, is_wide);
    s->b.first = at(piece->b, column * s->b.step + first * s->b.step_k, is_wide);
    if (column == piece->column || !keeps) pack(&s->a, depth, a);
    if (s->packs_b) pack(&s->b, depth, s->packed_b);
    multiply(s, a, stored_pairs(&s->a, depth), first > 0);
}

static sheet sheet_of(const wb_gemm_piece *piece, int64_t columns) {
    const wb_gemm *g = piece->gemm;
    const bool has_tiles = wb_gemm_takes_tiles(g);
    const int64_t unit = has_tiles ? WB_GEMM_TILE : 1;
    const int64_t height = g->transpose_b && !has_tiles ? WB_GEMM_GROUP : 0;
    const int64_t rows = whole_vectors(piece->rows);
    sheet s = {.a = matrix_of(g, !g->transpose_a, g->lda, PANEL, unit),
               .b = matrix_of(g, g->transpose_b, g->ldb, height, unit),
               .packed_a = piece->scratch,
               .packs_b = !lies_in_pairs(piece),
               .has_tiles = has_tiles,
               .ld = g->dtype == WB_BF16 ? rows : g->ldc};
    s.a.rows = piece->rows;
    s.packed_b = s.packed_a + rows * wb_gemm_pairs(wb_gemm_kept_bf16(g->k));
    s.sums = s.packed_b + whole_vectors(columns) * wb_gemm_pairs(smaller(g->k, WB_GEMM_DEPTH_BF16));
    return s;
}

void WB_ISA_NAME(gemm_bf16)(const wb_gemm_piece *piece) {
    const wb_gemm *g = piece->gemm;
    const int64_t most = smaller(piece->columns, WB_GEMM_SHEET_BF16);
    sheet s = sheet_of(piece, most);
    const bool fills = s.has_tiles && g->k % (2 * WB_GEMM_TILE) != 0;
    if (g->k == 0) memset(s.sums, 0, (size_t)(s.ld * most) * sizeof(REAL));
    const int64_t end = piece->column + piece->columns;
    for (int64_t column = piece->column; column < end; column += most) {
        s.b.rows = smaller(end - column, most);
        s.packs_b = !lies_in_pairs(piece) || fills || (s.has_tiles && s.b.rows % WB_GEMM_TILE);
        if (g->dtype == WB_F32) s.sums = (REAL *)piece->c + piece->row + column * g->ldc;
        for (int64_t k = 0; k < g->k; k += WB_GEMM_DEPTH_BF16)
            run_pass(piece, &s, column, k, smaller(g->k - k, WB_GEMM_DEPTH_BF16));
        hand_over(piece, &s, column);
    }
}
#endif
