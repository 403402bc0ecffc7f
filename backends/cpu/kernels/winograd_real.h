/* Minimal filtering for one element type (see winograd.h). Vectors run along a row of tiles. */

#include "lanes.h"

/* ---- filters: G g G' ---- */

/* (1, 0, 0; 1/2, 1/2, 1/2; 1/2, -1/2, 1/2; 0, 0, 1) g */
WB_INLINE void TYPE(filter_points)(VEC g0, VEC g1, VEC g2, VEC *u) {
    const VEC half = SET((REAL)0.5), outer = (g0 + g2) * half, middle = g1 * half;
    u[0] = g0, u[1] = outer + middle, u[2] = outer - middle, u[3] = g2;
}

/* `lanes` inner channels of one output channel */
static void TYPE(transform_filters)(const wb_winograd_plan *p, const REAL *w, int lanes, REAL *to,
                                    int64_t point) {
    VEC g[9], square[LANES], rows[3][4], u[4];
    for (int first = 0; first < 9; first += LANES) {
        const int taps = 9 - first < LANES ? 9 - first : LANES;
        UNROLL for (int i = 0; i < LANES; i++) {
            if (first == 0) /* rows of the data gradient are far from each other */
                __builtin_prefetch(w + i * p->inner_stride + 4 * p->outer_stride);
            square[i] = i < lanes ? LOAD_PART(w + i * p->inner_stride + first, taps) : SET(0);
        }
        TRANSPOSE(square);
        UNROLL for (int t = 0; t < LANES; t++) {
            if (t < taps) g[p->turned ? 8 - first - t : first + t] = square[t];
        }
    }
    for (int i = 0; i < 3; i++) TYPE(filter_points)(g[3 * i], g[3 * i + 1], g[3 * i + 2], rows[i]);
    for (int j = 0; j < 4; j++) {
        TYPE(filter_points)(rows[0][j], rows[1][j], rows[2][j], u);
        for (int i = 0; i < 4; i++) STORE_PART(to + (4 * i + j) * point, u[i], lanes);
    }
}

static void TYPE(winograd_weights)(const wb_winograd_plan *p, const REAL *w, int64_t count,
                                   REAL *to, int64_t point) {
    for (int64_t k = 0; k < count; k++, w += p->outer_stride, to += p->inner)
        for (int64_t c = 0; c < p->inner; c += LANES) {
            const int lanes = p->inner - c < LANES ? (int)(p->inner - c) : LANES;
            TYPE(transform_filters)(p, w + c * p->inner_stride, lanes, to + c, point);
        }
}

/* ---- tiles: B' d B ---- */

/* B' of the four rows of a row of tiles, into four lines. */
static void TYPE(transform_rows)(const wb_winograd_piece *piece, const REAL *plane, int64_t row) {
    const wb_winograd_plan *p = piece->plan;
    const int64_t pitch = piece->pitch, reach = 2 * p->tiles[0] + 2 - p->pad[0],
                  end = reach < p->in[0] ? reach : p->in[0];
    REAL *line = (REAL *)piece->lines + p->pad[0];
    const REAL *d[4];
    for (int i = 0; i < 4; i++) {
        const int64_t at = 2 * row + i - p->pad[1];
        d[i] = at >= 0 && at < p->in[1] ? plane + at * p->in[0] : piece->zeros;
    }
    for (int64_t x = 0; x < end; x += LANES) {
        const int n = end - x < LANES ? (int)(end - x) : LANES;
        const VEC d0 = LOAD_EDGE(d[0] + x, n), d1 = LOAD_EDGE(d[1] + x, n),
                  d2 = LOAD_EDGE(d[2] + x, n), d3 = LOAD_EDGE(d[3] + x, n);
        STORE(line + x, d0 - d2);
        STORE(line + pitch + x, d1 + d2);
        STORE(line + 2 * pitch + x, d2 - d1);
        STORE(line + 3 * pitch + x, d1 - d3);
    }
}

/* The lines times B, to the places of their tiles. */
static void TYPE(transform_lines)(const wb_winograd_piece *piece, REAL *to, int64_t point) {
    for (int64_t t = 0; t < piece->plan->tiles[0]; t += LANES) UNROLL for (int i = 0; i < 4; i++) {
            const REAL *line = (const REAL *)piece->lines + i * piece->pitch + 2 * t;
            const VEC a = LOAD(line), b = LOAD(line + LANES), c = LOAD(line + 2),
                      d = LOAD(line + 2 + LANES);
            const VEC d0 = EVEN(a, b), d1 = ODD(a, b), d2 = EVEN(c, d), d3 = ODD(c, d);
            REAL *v = to + 4 * i * point + t;
            STORE(v, d0 - d2);
            STORE(v + point, d1 + d2);
            STORE(v + 2 * point, d2 - d1);
            STORE(v + 3 * point, d1 - d3);
        }
}

static void TYPE(winograd_tiles)(const wb_winograd_piece *piece) {
    const wb_winograd_plan *p = piece->plan;
    const int64_t plane = p->in[0] * p->in[1],
                  point = wb_winograd_point(piece->height, piece->channels);
    REAL *to = piece->transformed;
    for (int64_t c = 0; c < piece->channels; c++, to += piece->height)
        for (int64_t image = 0; image < piece->images; image++)
            for (int64_t r = 0; r < piece->rows; r++) {
                TYPE(transform_rows)
                (piece, (const REAL *)piece->source + (c + image * p->inner) * plane,
                 piece->first + r);
                TYPE(transform_lines)
                (piece, to + (image * piece->rows + r) * p->tiles[0], point);
            }
}

/* ---- outputs: A' m A ---- */

/* count of the elements of low and high in turn */
WB_INLINE void TYPE(store_pairs)(REAL *y, VEC low, VEC high, int64_t count) {
    const VEC first = MIX_LOW(low, high), second = MIX_HIGH(low, high);
    if (count >= 2 * LANES) {
        STORE(y, first);
        STORE(y + LANES, second);
        return;
    }
    STORE_PART(y, first, count < LANES ? (int)count : LANES);
    if (count > LANES) STORE_PART(y + LANES, second, (int)count - LANES);
}

/* One row of tiles; m: its first tile in the first point. */
static void TYPE(finish_row)(const wb_winograd_plan *p, const REAL *m, int64_t point, int64_t row,
                             REAL *plane) {
    REAL *y = plane + 2 * row * p->out[0];
    const bool has_second = 2 * row + 1 < p->out[1];
    for (int64_t t = 0; t < p->tiles[0]; t += LANES) {
        const int64_t count = p->out[0] - 2 * t;
        VEC upper[4], lower[4];
        UNROLL for (int j = 0; j < 4; j++) {
            const REAL *at = m + j * point + t;
            const VEC m0 = LOAD(at), m1 = LOAD(at + 4 * point), m2 = LOAD(at + 8 * point),
                      m3 = LOAD(at + 12 * point);
            upper[j] = m0 + (m1 + m2);
            lower[j] = (m1 - m2) - m3;
        }
        TYPE(store_pairs)
        (y + 2 * t, upper[0] + (upper[1] + upper[2]), (upper[1] - upper[2]) - upper[3], count);
        if (has_second) TYPE(store_pairs)
        (y + p->out[0] + 2 * t, lower[0] + (lower[1] + lower[2]), (lower[1] - lower[2]) - lower[3],
         count);
    }
}

/* Output channels first .. first + count - 1 of one image of the piece. */
static void TYPE(finish_planes)(const wb_winograd_piece *piece, int64_t image, int64_t first,
                                int64_t count) {
    const wb_winograd_plan *p = piece->plan;
    const int64_t point = wb_winograd_point(piece->height, WB_WINOGRAD_COLUMNS);
    const int64_t size = p->out[0] * p->out[1], row = 2 * piece->first, left = p->out[1] - row,
                  rows = left < 2 * piece->rows ? left : 2 * piece->rows;
    for (int64_t k = 0; k < count; k++)
        for (int64_t r = 0; r < piece->rows; r++) TYPE(finish_row)
    (p, (const REAL *)piece->products + k * piece->height + (image * piece->rows + r) * p->tiles[0],
     point, piece->first + r, (REAL *)piece->out + (first + k + image * p->outer) * size);
    if (piece->done)
        piece->done(piece->context, 0, row * p->out[0], rows * p->out[0],
                    piece->column + first + image * p->outer, count, piece->worker);
}

/* One point of the tiles times the filters of `columns` output channels, whose first is weights. */
static void TYPE(multiply_point)(const wb_winograd_piece *piece, int64_t point, const REAL *weights,
                                 int64_t columns) {
    const wb_winograd_plan *p = piece->plan;
    const int64_t tiles = piece->images * piece->rows * p->tiles[0];
    TYPE(tile)
    t = {.a = (const REAL *)piece->transformed + point * wb_winograd_point(piece->height, p->inner),
         .b = weights + point * piece->weights_point,
         .c = (REAL *)piece->products +
              point * wb_winograd_point(piece->height, WB_WINOGRAD_COLUMNS),
         .step_a = piece->height,
         .step_b = p->inner,
         .ldc = piece->height};
    for (int64_t c = 0; c < p->inner; c += WB_WINOGRAD_DEPTH) {
        const int64_t left = p->inner - c;
        t.k = left < WB_WINOGRAD_DEPTH ? left : WB_WINOGRAD_DEPTH;
        t.add = c > 0;
        TYPE(product)(t, tiles, columns, false, false);
        t.a += t.k * piece->height;
        t.b += t.k;
    }
}

static void TYPE(winograd_columns)(const wb_winograd_piece *piece, int64_t first, int64_t count) {
    const REAL *weights = piece->weights;
    for (int64_t k = 0; k < count; k += WB_WINOGRAD_COLUMNS) {
        const int64_t columns = count - k < WB_WINOGRAD_COLUMNS ? count - k : WB_WINOGRAD_COLUMNS;
        for (int64_t i = 0; i < WB_WINOGRAD_POINTS; i++)
            TYPE(multiply_point)(piece, i, weights + k * piece->plan->inner, columns);
        for (int64_t image = 0; image < piece->images; image++)
            TYPE(finish_planes)(piece, image, first + k, columns);
    }
}

/* ---- the filter gradient ---- */

/* (1, 0; 1, 1; 1, -1; 0, -1) of the two rows of a row of tiles, into four lines; y: its plane. */
static void TYPE(spread_rows)(const wb_winograd_piece *piece, const REAL *y, int64_t row) {
    const wb_winograd_plan *p = piece->plan;
    const int64_t pitch = piece->pitch, width = p->out[0];
    REAL *line = piece->lines;
    const REAL *upper = y + 2 * row * width,
               *lower = 2 * row + 1 < p->out[1] ? upper + width : piece->zeros;
    for (int64_t x = 0; x < width; x += LANES) {
        const int n = width - x < LANES ? (int)(width - x) : LANES;
        const VEC a = LOAD_EDGE(upper + x, n), b = LOAD_EDGE(lower + x, n);
        STORE(line + x, a);
        STORE(line + pitch + x, a + b);
        STORE(line + 2 * pitch + x, a - b);
        STORE(line + 3 * pitch + x, -b);
    }
}

static void TYPE(spread_lines)(const wb_winograd_piece *piece, REAL *to, int64_t point) {
    for (int64_t t = 0; t < piece->plan->tiles[0]; t += LANES) UNROLL for (int i = 0; i < 4; i++) {
            const REAL *line = (const REAL *)piece->lines + i * piece->pitch + 2 * t;
            const VEC a = LOAD(line), b = LOAD(line + LANES);
            const VEC even = EVEN(a, b), odd = ODD(a, b);
            REAL *v = to + 4 * i * point + t;
            STORE(v, even);
            STORE(v + point, even + odd);
            STORE(v + 2 * point, even - odd);
            STORE(v + 3 * point, -odd);
        }
}

static void TYPE(spread_tiles)(const wb_winograd_block *block) {
    const wb_winograd_piece *piece = &block->piece;
    const wb_winograd_plan *p = piece->plan;
    const int64_t plane = p->out[0] * p->out[1],
                  point = wb_winograd_point(piece->height, WB_WINOGRAD_BLOCK);
    REAL *to = block->products;
    for (int64_t k = 0; k < block->filters; k++, to += piece->height)
        for (int64_t image = 0; image < piece->images; image++)
            for (int64_t r = 0; r < piece->rows; r++) {
                TYPE(spread_rows)
                (piece, (const REAL *)block->y + (k + image * p->outer) * plane, piece->first + r);
                TYPE(spread_lines)
                (piece, to + (image * piece->rows + r) * p->tiles[0], point);
            }
}

/* One point: (tiles, channels) turned, times (tiles, filters), added to the sum. */
static void TYPE(add_point)(const wb_winograd_block *block, int64_t point) {
    const wb_winograd_piece *piece = &block->piece;
    const int64_t tiles = piece->images * piece->rows * piece->plan->tiles[0];
    const REAL *from = (const REAL *)piece->transformed +
                       point * wb_winograd_point(piece->height, piece->channels);
    REAL *turned = block->turned;
    for (int64_t c = 0; c < piece->channels; c += LANES) {
        const int64_t left = piece->channels - c;
        TYPE(pack_turned)
        (tiles, left < LANES ? (int)left : LANES, from + c * piece->height, piece->height,
         turned + c, WB_WINOGRAD_BLOCK);
    }
    TYPE(product)
    ((TYPE(tile)){.a = turned,
                  .b = (const REAL *)block->products +
                       point * wb_winograd_point(piece->height, WB_WINOGRAD_BLOCK),
                  .c = (REAL *)block->sum + point * WB_WINOGRAD_BLOCK * WB_WINOGRAD_BLOCK,
                  .k = tiles,
                  .step_a = WB_WINOGRAD_BLOCK,
                  .step_b = piece->height,
                  .ldc = WB_WINOGRAD_BLOCK,
                  .add = true},
     piece->channels, block->filters, false, false);
}

static void TYPE(winograd_block)(const wb_winograd_block *block) {
    TYPE(winograd_tiles)(&block->piece);
    memset(block->piece.lines, 0, 4 * (size_t)block->piece.pitch * sizeof(REAL));
    TYPE(spread_tiles)(block);
    for (int64_t i = 0; i < WB_WINOGRAD_POINTS; i++) TYPE(add_point)(block, i);
    memset(block->piece.lines, 0, 4 * (size_t)block->piece.pitch * sizeof(REAL));
}

/* (1, 1/2, 1/2, 0; 0, 1/2, -1/2, 0; 0, 1/2, 1/2, 1) u */
WB_INLINE void TYPE(taps_of)(const VEC *u, VEC *g) {
    const VEC half = SET((REAL)0.5), sum = (u[1] + u[2]) * half;
    g[0] = u[0] + sum, g[1] = (u[1] - u[2]) * half, g[2] = sum + u[3];
}

/* `lanes` channels of one filter; sum: their first point. */
static void TYPE(finish_taps)(const wb_winograd_total *total, const REAL *sum, int lanes,
                              REAL *dw) {
    const wb_winograd_plan *p = total->plan;
    VEC rows[4][3], column[4], u[4], taps[3];
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            const REAL *at = sum + (4 * i + j) * WB_WINOGRAD_BLOCK * WB_WINOGRAD_BLOCK;
            u[j] = LOAD_PART(at, lanes);
            for (int64_t part = 1; part < total->parts; part++)
                u[j] += LOAD_PART(at + part * WB_WINOGRAD_SUM, lanes);
        }
        TYPE(taps_of)(u, rows[i]);
    }
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 4; i++) column[i] = rows[i][j];
        TYPE(taps_of)(column, taps);
        for (int i = 0; i < 3; i++) {
            REAL lane[LANES];
            STORE(lane, taps[i]);
            const int tap = 3 * i + j;
            for (int c = 0; c < lanes; c++)
                dw[c * p->inner_stride + (p->turned ? 8 - tap : tap)] = lane[c];
        }
    }
}

static void TYPE(winograd_total)(const wb_winograd_total *total) {
    const wb_winograd_plan *p = total->plan;
    for (int64_t k = 0; k < total->filters; k++)
        for (int64_t c = 0; c < total->channels; c += LANES) {
            const int64_t left = total->channels - c;
            TYPE(finish_taps)
            (total, (const REAL *)total->sum + c + k * WB_WINOGRAD_BLOCK,
             left < LANES ? (int)left : LANES,
             (REAL *)total->dw + c * p->inner_stride + k * p->outer_stride);
        }
}

/* ---- what winograd.c and winograd_filter.c call ---- */

void WB_ISA_NAME(TYPE(winograd_weights))(const wb_winograd_plan *plan, const void *w, int64_t count,
                                         void *to, int64_t point) {
    TYPE(winograd_weights)(plan, w, count, to, point);
}
void WB_ISA_NAME(TYPE(winograd_tiles))(const wb_winograd_piece *piece) {
    TYPE(winograd_tiles)(piece);
}
void WB_ISA_NAME(TYPE(winograd_columns))(const wb_winograd_piece *piece, int64_t first,
                                         int64_t count) {
    TYPE(winograd_columns)(piece, first, count);
}
void WB_ISA_NAME(TYPE(winograd_block))(const wb_winograd_block *block) {
    TYPE(winograd_block)(block);
}
void WB_ISA_NAME(TYPE(winograd_total))(const wb_winograd_total *total) {
    TYPE(winograd_total)(total);
}
