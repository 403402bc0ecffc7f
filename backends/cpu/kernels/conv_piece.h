/* Forward and data: positions of the grid side by side in vectors, for one element type (REAL, see
 * conv.c).
 *
 *     out (positions, outer) = panel (positions, depth) * weights (depth, outer)
 *
 * where depth runs over (tap, inner channel). A panel is packed from the box, which costs as
 * much as a few output channels; or it is read where it lies, flat, and then has positions that
 * are not on the grid, those between the end of a row and the begin of the next. The cheaper way
 * is taken. */

/* Tiles of the result that stay in registers: V vectors of positions, N output channels. */
typedef struct TYPE(gather_tile) {
    const REAL *panel, *weights;
    const int64_t *offsets; /* flat: from panel to each depth */
    REAL *out;
    int64_t depth, out_step; /* from one output channel to the next */
    int64_t next;            /* from these weights to those that are multiplied next */
    int rows;                /* of the last vector: 1 .. LANES */
    int columns;             /* at most N; the rest is not stored */
    bool add;                /* to what out holds */
} TYPE(gather_tile);

enum { TYPE(panel_width) = WB_CONV_PANEL_BYTES / sizeof(REAL) };

WB_INLINE void TYPE(gather_store)(const TYPE(gather_tile) * t, REAL *out, VEC sum, int rows) {
    if (rows == LANES) {
        if (t->add) sum += LOAD(out);
        STORE(out, sum);
    } else {
        if (t->add) sum += LOAD_PART(out, rows);
        STORE_PART(out, sum, rows);
    }
}

/* sum += row * weights' of one depth, which lie side by side */
WB_INLINE void TYPE(gather_step)(const VEC *row, const REAL *weights, int vectors, int columns,
                                 VEC (*sum)[8]) {
#if WB_BY_LANE
    VEC factor[8];
    UNROLL for (int j = 0; j < columns; j += LANES) {
        const int left = columns - j;
        factor[j / LANES] = left < LANES ? LOAD_PART(weights + j, left) : LOAD(weights + j);
    }
    UNROLL for (int j = 0; j < columns; j++) {
        UNROLL for (int v = 0; v < vectors; v++) {
            sum[j][v] = ADD_BY_LANE(sum[j][v], row[v], factor[j / LANES], j % LANES);
        }
    }
#else
    UNROLL for (int j = 0; j < columns; j++) {
        const VEC factor = SET(weights[j]);
        UNROLL for (int v = 0; v < vectors; v++) { sum[j][v] += row[v] * factor; }
    }
#endif
}

/* vectors, columns and flat are constants where this is expanded: all loops but the one over depth
 * unroll and sum stays in registers. */
WB_INLINE void TYPE(gather_run)(const TYPE(gather_tile) * t, const int vectors, const int columns,
                                const bool flat) {
    VEC sum[8][8];
    UNROLL for (int j = 0; j < columns; j++) {
        UNROLL for (int v = 0; v < vectors; v++) { sum[j][v] = SET(0); }
    }
    const REAL *panel = t->panel, *weights = t->weights;
    const int64_t *offsets = t->offsets;
    for (int64_t p = 0; p < t->depth; p++, weights += WB_CONV_STRIP) {
        const REAL *from = flat ? panel + offsets[p] : panel + p * TYPE(panel_width);
        VEC row[8];
        UNROLL for (int v = 0; v < vectors; v++) { row[v] = LOAD(from + v * LANES); }
        __builtin_prefetch(weights + t->next); /* which the processor does not prefetch */
        TYPE(gather_step)(row, weights, vectors, columns, sum);
    }
    const int last = vectors - 1;
    UNROLL for (int j = 0; j < columns; j++) {
        if (j >= t->columns) return;
        REAL *out = t->out + j * t->out_step;
        UNROLL for (int v = 0; v < last; v++) {
            TYPE(gather_store)(t, out + v * LANES, sum[j][v], LANES);
        }
        TYPE(gather_store)(t, out + last * LANES, sum[j][last], t->rows);
    }
}

WB_INLINE void TYPE(gather_columns)(const TYPE(gather_tile) * t, const int vectors,
                                    const bool flat) {
    if (t->columns > 4)
        TYPE(gather_run)(t, vectors, TILE_COLUMNS, flat);
    else if (t->columns > 2)
        TYPE(gather_run)(t, vectors, 4, flat);
    else
        TYPE(gather_run)(t, vectors, 2, flat);
}

/* `positions` of a packed panel times one strip, whatever fits the registers at a time. */
static void TYPE(gather_packed)(TYPE(gather_tile) * t, int64_t positions) {
    const REAL *panel = t->panel;
    REAL *out = t->out;
    for (int64_t i = 0; i < positions; i += 3 * LANES) {
        const int rows = (int)wb_conv_least(positions - i, 3 * LANES);
        const int vectors = (rows + LANES - 1) / LANES;
        t->panel = panel + i;
        t->out = out + i;
        t->rows = rows - (vectors - 1) * LANES;
        if (vectors == 3) TYPE(gather_columns)(t, 3, false);
        if (vectors == 2) TYPE(gather_columns)(t, 2, false);
        if (vectors == 1) TYPE(gather_columns)(t, 1, false);
    }
}

/* The same, flat: whole vectors only, as tile and box have room for them. */
static void TYPE(gather_flat)(TYPE(gather_tile) * t, int64_t positions) {
    const REAL *panel = t->panel;
    REAL *out = t->out;
    t->rows = LANES;
    for (int64_t i = 0; i < positions; i += 3 * LANES) {
        t->panel = panel + i;
        t->out = out + i;
        TYPE(gather_columns)(t, 3, true);
    }
}

/* At most WB_CONV_FLAT_OUTER channels: more vectors, so that the sums do not wait for each
 * other. */
static void TYPE(gather_few)(TYPE(gather_tile) * t, int64_t positions) {
    enum { each = WB_VECTOR_REGISTERS == 32 ? 8 : 4 };
    const REAL *panel = t->panel;
    REAL *out = t->out;
    t->rows = LANES;
    for (int64_t i = 0; i < positions; i += each * LANES) {
        t->panel = panel + i;
        t->out = out + i;
        if (t->columns == 1)
            TYPE(gather_run)(t, each, 1, true);
        else
            TYPE(gather_run)(t, each, 2, true);
    }
}

typedef void TYPE(gather_fn)(TYPE(gather_tile) * t, int64_t positions);

/* What is the same for all panels of a piece. */
typedef struct TYPE(gather) {
    const wb_conv_piece *piece;
    wb_conv_box box;
    int64_t depth;
    bool flat, few; /* few: flat, with few channels */
    bool dense;     /* tiles go straight to the result */
    int64_t width;  /* positions of a panel, and places of a tile */
    REAL *tile;     /* the one to copy from, unless dense */
    wb_conv_run runs[WB_CONV_FLAT_BYTES / sizeof(REAL)];
    int run_count;
    struct {
        int64_t source, at;
    } moves[TYPE(panel_width)];
    int move_count;
} TYPE(gather);

static void TYPE(gather_plan_moves)(TYPE(gather) * g) {
    g->move_count = 0;
    for (int r = 0; r < g->run_count; r++)
        for (int64_t i = 0; i < g->runs[r].length; i += LANES) {
            g->moves[g->move_count].source = g->runs[r].source + i;
            g->moves[g->move_count++].at = g->runs[r].at + i;
        }
}

/* Whole vectors, in order: elements that one writes beyond its end are overwritten by the next. */
WB_INLINE void TYPE(gather_move)(const TYPE(gather) * g, int64_t first, int64_t depth,
                                 const int moves) {
    const REAL *box = g->piece->box;
    const int64_t *offsets = g->piece->offsets + first;
    REAL *panel = g->piece->panel;
    int64_t source[8], at[8];
    UNROLL for (int m = 0; m < moves; m++) {
        source[m] = g->moves[m].source;
        at[m] = g->moves[m].at;
    }
    for (int64_t p = 0; p < depth; p++, panel += TYPE(panel_width)) {
        const REAL *from = box + offsets[p];
        UNROLL for (int m = 0; m < moves; m++) { STORE(panel + at[m], LOAD(from + source[m])); }
    }
}

static void TYPE(gather_pack)(const TYPE(gather) * g, int64_t first, int64_t depth) {
    switch (g->move_count) {
    case 3:
        TYPE(gather_move)(g, first, depth, 3);
        return;
    case 4:
        TYPE(gather_move)(g, first, depth, 4);
        return;
    case 5:
        TYPE(gather_move)(g, first, depth, 5);
        return;
    case 6:
        TYPE(gather_move)(g, first, depth, 6);
        return;
    default:
        break;
    }
    REAL *panel = g->piece->panel;
    for (int64_t p = first; p < first + depth; p++, panel += TYPE(panel_width)) {
        const REAL *from = (const REAL *)g->piece->box + g->piece->offsets[p];
        for (int m = 0; m < g->move_count; m++)
            STORE(panel + g->moves[m].at, LOAD(from + g->moves[m].source));
    }
}

/* From a tile to where its positions lie in the result. */
static void TYPE(gather_scatter)(const TYPE(gather) * g) {
    const wb_conv_piece *piece = g->piece;
    const int64_t step = piece->plan->axis[0].out_step;
    for (int64_t j = 0; j < piece->outer; j++) {
        const REAL *tile = g->tile + j * g->width;
        REAL *out = (REAL *)piece->out + j * piece->plan->out_plane;
        for (int r = 0; r < g->run_count; r++) {
            const wb_conv_run *run = &g->runs[r];
            if (step == 1)
                TYPE(copy)(out + run->target, tile + run->at, run->length);
            else
                for (int64_t i = 0; i < run->length; i++)
                    out[run->target + i * step] = tile[run->at + i];
        }
    }
}

/* Depth first .. first + depth - 1 of the panel whose runs are known, for all output channels. */
static void TYPE(gather_sweep)(const TYPE(gather) * g, TYPE(gather_tile) tile, const REAL *panel,
                               int64_t first, int64_t positions) {
    const wb_conv_piece *piece = g->piece;
    TYPE(gather_fn) *run = g->few    ? TYPE(gather_few)
                           : g->flat ? TYPE(gather_flat)
                                     : TYPE(gather_packed);
    REAL *out = tile.out;
    tile.add = first > 0;
    tile.offsets = piece->offsets + first;
    tile.next = g->depth * WB_CONV_STRIP;
    for (int64_t j = 0; j < piece->outer; j += TILE_COLUMNS) {
        const int64_t strip = j / WB_CONV_STRIP * WB_CONV_STRIP;
        tile.columns = (int)wb_conv_least(TILE_COLUMNS, piece->outer - j);
        tile.panel = panel;
        tile.out = out + j * tile.out_step;
        tile.weights = (const REAL *)piece->weights + strip * g->depth + first * WB_CONV_STRIP +
                       j % WB_CONV_STRIP;
        run(&tile, positions);
    }
}

/* A group of panels, positions (flat: places) from .. to - 1; returns how many positions they had.
 * All of them see a part of the weights before the next part does. */
static int64_t TYPE(gather_panels)(TYPE(gather) * g, int64_t from, int64_t to) {
    const wb_conv_piece *piece = g->piece;
    const int64_t depth = g->depth, blocks = wb_conv_most(1, wb_conv_ceil(depth, WB_CONV_DEPTH));
    const int64_t most = wb_conv_most(1, wb_conv_ceil(depth, blocks));
    TYPE(gather_tile) tile = {.out_step = g->dense ? piece->plan->out_plane : g->width};
    int64_t positions = 0;
    for (int64_t p = 0; p == 0 || p < depth; p += most) {
        tile.depth = wb_conv_least(most, depth - p);
        tile.out = g->tile = piece->tile;
        for (int64_t at = from; at < to; at += g->width) {
            const int64_t count = wb_conv_least(g->width, to - at);
            g->run_count =
                (g->flat ? wb_conv_flat_runs : wb_conv_runs)(piece, &g->box, at, count, g->runs);
            if (!g->flat) TYPE(gather_plan_moves)(g);
            if (!g->flat) TYPE(gather_pack)(g, p, tile.depth);
            if (g->dense) tile.out = (REAL *)piece->out + piece->first + at;
            TYPE(gather_sweep)
            (g, tile, g->flat ? (const REAL *)piece->box + at : piece->panel, p, count);
            if (p + most < depth) {
                tile.out += piece->outer * g->width;
                continue;
            }
            g->tile = tile.out;
            if (!g->dense) TYPE(gather_scatter)(g);
            for (int r = 0; r < g->run_count; r++) positions += g->runs[r].length;
            tile.out += piece->outer * g->width;
        }
    }
    return positions;
}

static void TYPE(gather_done)(const wb_conv_piece *piece, int64_t from, int64_t to) {
    const int64_t columns = piece->plan->outer * piece->plan->groups;
    for (int64_t i = from, part; i < to; i += part) {
        const int64_t image = i / piece->count, position = i % piece->count;
        part = wb_conv_least(to - i, piece->count - position);
        piece->done(piece->context, 0, piece->first + position, part,
                    piece->column + image * columns, piece->outer, piece->worker);
    }
}

/* Costs in units of the work itself, measured: packing is worth six output channels, the copy of a
 * tile five of depth, and vectors across cache lines make a flat panel slower. */
static bool TYPE(gather_is_flat)(const wb_conv_piece *piece, int64_t depth, int64_t places) {
    const double flat = 1.12 * (double)places / (double)piece->count + 5. / (double)depth;
    return piece->images == 1 && depth > 0 && flat < 1 + 6. / (double)piece->outer;
}

static void TYPE(gather_start)(TYPE(gather) * g, const wb_conv_piece *piece, int64_t *first,
                               int64_t *end) {
    const wb_conv_plan *plan = piece->plan;
    const wb_conv_axis *axis = plan->axis;
    g->piece = piece;
    g->depth = plan->inner * plan->taps;
    g->box = wb_conv_box_of(plan, piece->first, piece->count);
    wb_conv_span(piece, &g->box, first, end);
    g->flat = TYPE(gather_is_flat)(piece, g->depth, *end - *first);
    g->few = g->flat && piece->outer <= WB_CONV_FLAT_OUTER;
    g->dense = !g->flat && piece->images == 1 && axis[0].out_step == 1 && axis[1].out_step == 1 &&
               axis[2].out_step == 1;
    g->width = g->few ? WB_CONV_FLAT_BYTES / (int64_t)sizeof(REAL) : TYPE(panel_width);
    if (g->flat) return;
    *first = 0;
    *end = piece->images * piece->count;
}

/* One group of channels: its box, then its panels. */
static void TYPE(gather_group)(TYPE(gather) * g, int64_t first, int64_t end) {
    const wb_conv_piece *piece = g->piece;
    const wb_conv_plan *plan = piece->plan;
    const REAL *source = piece->source;
    REAL *box = piece->box;
    int64_t from = 0, to = 0;
    for (int64_t n = 0; g->depth > 0 && n < piece->images; n++) {
        TYPE(load_box)(plan, &g->box, source, plan->inner, box);
        source += plan->source_image;
        box += plan->inner * g->box.volume;
    }
    /* panels whose results are in cache together go to `done` in one call */
    const int64_t most = WB_CONV_TILE_BYTES / ((int64_t)sizeof(REAL) * piece->outer);
    const int64_t group = g->width * piece->panels;
    for (int64_t at = first; at < end; at += group) {
        to += TYPE(gather_panels)(g, at, wb_conv_least(at + group, end));
        if (!piece->done || (to - from < most && at + group < end)) continue;
        TYPE(gather_done)(piece, from, to);
        from = to;
    }
}

static void TYPE(gather_piece)(const wb_conv_piece *piece) {
    const wb_conv_plan *plan = piece->plan;
    const int64_t strips = wb_conv_ceil(plan->outer, WB_CONV_STRIP);
    wb_conv_piece now = *piece;
    int64_t first, end;
    TYPE(gather) g;
    TYPE(gather_start)(&g, &now, &first, &end);
    if (g.depth > 0) wb_conv_offsets(plan, &g.box, plan->inner, piece->offsets);
    for (int64_t i = 0; i < piece->groups; i++) {
        TYPE(gather_group)(&g, first, end);
        now.source = (const REAL *)now.source + plan->inner * plan->source_plane;
        now.weights = (const REAL *)now.weights + strips * g.depth * WB_CONV_STRIP;
        now.out = (REAL *)now.out + plan->outer * plan->out_plane;
        now.column += plan->outer;
    }
}

/* strip[j + WB_CONV_STRIP * c] = weights[c + j * stride], j < WB_CONV_STRIP, by squares of them. */
WB_INLINE void TYPE(gather_squares)(const REAL *weights, int64_t stride, int64_t columns,
                                    int64_t inner, REAL *strip) {
    enum { SIDE = LANES < WB_CONV_STRIP ? LANES : WB_CONV_STRIP };
    for (int64_t c = 0; c < inner; c += LANES, strip += LANES * WB_CONV_STRIP) {
        const int count = (int)wb_conv_least(LANES, inner - c);
        for (int j = 0; j < WB_CONV_STRIP; j += LANES) {
            VEC square[LANES];
            UNROLL for (int i = 0; i < LANES; i++) {
                const REAL *row = weights + c + (j + i) * stride;
                square[i] = i >= SIDE || j + i >= columns ? SET(0)
                            : count == LANES              ? LOAD(row)
                                                          : LOAD_PART(row, count);
            }
            TRANSPOSE(square);
            UNROLL for (int i = 0; i < LANES; i++) {
                if (i < count) STORE_PART(strip + j + i * WB_CONV_STRIP, square[i], SIDE);
            }
        }
    }
}

static void TYPE(gather_weights)(const wb_conv_plan *plan, const REAL *weights, int64_t columns,
                                 REAL *packed) {
    if (plan->taps == 1 && plan->inner_stride == 1) {
        TYPE(gather_squares)(weights, plan->outer_stride, columns, plan->inner, packed);
        return;
    }
    for (int64_t t = 0; t < plan->taps; t++) {
        const REAL *tap = weights + wb_conv_tap(plan, t);
        REAL *strip = packed + t * WB_CONV_STRIP;
        for (int64_t c = 0; c < plan->inner; c++, tap += plan->inner_stride) {
            if (plan->outer_stride == 1 && columns == WB_CONV_STRIP)
                memcpy(strip, tap, WB_CONV_STRIP * sizeof *strip);
            else
                for (int64_t j = 0; j < WB_CONV_STRIP; j++)
                    strip[j] = j < columns ? tap[j * plan->outer_stride] : 0;
            strip += plan->taps * WB_CONV_STRIP;
        }
    }
}

void WB_ISA_NAME(TYPE(conv_strip))(const wb_conv_plan *plan, const void *weights, int64_t columns,
                                   void *packed) {
    TYPE(gather_weights)(plan, weights, columns, packed);
}

void WB_ISA_NAME(TYPE(conv_piece))(const wb_conv_piece *piece) { TYPE(gather_piece)(piece); }
