/* Depthwise convolutions (depthwise.h): positions of a row side by side in vectors, some rows at a
 * time, for one element type (REAL, see conv.c). */

/* Rows of a plane; where there is one row only, its vectors are taken for rows. */
typedef struct TYPE(plane) {
    const wb_depthwise_grid *grid;
    int64_t columns, pitch; /* of taps; from row to row in the box */
    const REAL *box, *weights;
    REAL *out;        /* the plane; filter gradient: the sums, a vector for each tap */
    const REAL *y;    /* of the filter gradient, or NULL */
    int64_t at, step; /* the first row in out, or y, and from row to row */
    int exact;        /* last rows of some beyond whose end nothing is written: what a whole vector
                   * writes beyond the others, the rows after them overwrite */
} TYPE(plane);

/* As many positions of some rows as a vector has, or the last `lanes` of them. */
typedef struct TYPE(stretch) {
    const REAL *box; /* of the first row */
    int64_t at;      /* likewise, in out or y */
    int lanes;
} TYPE(stretch);

/* out = sum over taps of weight * x. n rows and the height of a column are constants where this is
 * expanded, as in all that follow. */
WB_INLINE void TYPE(plane_gather)(const TYPE(plane) * p, TYPE(stretch) s, const int n,
                                  const int height) {
    VEC sum[8];
    UNROLL for (int i = 0; i < n; i++) sum[i] = SET(0);
    const int64_t *places = p->grid->places;
    for (int64_t c = 0; c < p->columns; c++, places += height) {
        const REAL *from = s.box + p->grid->starts[c];
        VEC factor[7];
        UNROLL for (int t = 0; t < height; t++) factor[t] = SET(p->weights[places[t]]);
        UNROLL for (int i = 0; i < n + height - 1; i++, from += p->pitch) {
            VEC x = LOAD(from);
            WB_IN_REGISTER(x);
            UNROLL for (int t = 0; t < height; t++) {
                if (i >= t && i - t < n) sum[i - t] += x * factor[t];
            }
        }
    }
    REAL *out = p->out + s.at;
    UNROLL for (int i = 0; i < n; i++, out += p->step) {
        if (s.lanes == LANES || i < n - p->exact)
            STORE(out, sum[i]);
        else
            STORE_PART(out, sum[i], s.lanes);
    }
}

/* sum of each tap += x * y; elements of the box beyond the row are not used */
WB_INLINE void TYPE(plane_sum)(const TYPE(plane) * p, TYPE(stretch) s, const int n,
                               const int height, const bool is_whole) {
    VEC y[8];
    const REAL *row = p->y + s.at;
    UNROLL for (int i = 0; i < n; i++, row += p->step) {
        y[i] = is_whole ? LOAD(row) : LOAD_PART(row, s.lanes);
    }
    REAL *to = p->out;
    for (int64_t c = 0; c < p->columns; c++, to += height * LANES) {
        const REAL *from = s.box + p->grid->starts[c];
        VEC sum[7];
        UNROLL for (int t = 0; t < height; t++) sum[t] = LOAD(to + t * LANES);
        UNROLL for (int i = 0; i < n + height - 1; i++, from += p->pitch) {
            VEC x = is_whole ? LOAD(from) : LOAD_PART(from, s.lanes);
            WB_IN_REGISTER(x);
            UNROLL for (int t = 0; t < height; t++) {
                if (i >= t && i - t < n) sum[t] += x * y[i - t];
            }
        }
        UNROLL for (int t = 0; t < height; t++) STORE(to + t * LANES, sum[t]);
    }
}

WB_INLINE void TYPE(plane_rows)(const TYPE(plane) * p, TYPE(stretch) s, int64_t width, const int n,
                                const int height) {
    for (; width > 0; width -= LANES, s.box += LANES, s.at += LANES) {
        s.lanes = (int)wb_conv_least(width, LANES);
        if (!p->y)
            TYPE(plane_gather)(p, s, n, height);
        else if (s.lanes == LANES)
            TYPE(plane_sum)(p, s, n, height, true);
        else
            TYPE(plane_sum)(p, s, n, height, false);
    }
}

WB_INLINE void TYPE(plane_walk)(const TYPE(plane) * p, int64_t rows, int64_t width,
                                const int height) {
    TYPE(stretch) s = {.box = p->box, .at = p->at};
    for (int64_t n; rows > 0; rows -= n) {
        n = rows == MOST_ROWS + 1 ? 4
            : rows >= MOST_ROWS   ? MOST_ROWS
            : rows >= 4           ? 4
            : rows >= 2           ? 2
                                  : 1;
        if (n == MOST_ROWS)
            TYPE(plane_rows)(p, s, width, MOST_ROWS, height);
        else if (n == 4)
            TYPE(plane_rows)(p, s, width, 4, height);
        else if (n == 2)
            TYPE(plane_rows)(p, s, width, 2, height);
        else
            TYPE(plane_rows)(p, s, width, 1, height);
        s.box += n * p->pitch;
        s.at += n * p->step;
    }
}

static void TYPE(plane_part)(const TYPE(plane) * p, int64_t rows, int64_t width) {
    switch (p->grid->height) {
    case 3:
        TYPE(plane_walk)(p, rows, width, 3);
        return;
    case 5:
        TYPE(plane_walk)(p, rows, width, 5);
        return;
    case 7:
        TYPE(plane_walk)(p, rows, width, 7);
        return;
    default:
        TYPE(plane_walk)(p, rows, width, 1);
        return;
    }
}

/* A slice of rows, or the one row that it is. */
static void TYPE(plane_run)(const TYPE(plane) * p, int64_t rows, int64_t width) {
    if (rows != 1) {
        TYPE(plane_part)(p, rows, width);
        return;
    }
    const int64_t whole = width / LANES, at = whole * LANES;
    TYPE(plane) line = *p;
    line.pitch = line.step = LANES;
    TYPE(plane_part)(&line, whole, LANES);
    line.box += at;
    line.at += at;
    TYPE(plane_part)(&line, width > at, width - at);
}

/* All slices of the grid; slice: from one to the next in out, or y. */
static void TYPE(plane_slices)(TYPE(plane) * p, int64_t slice) {
    const wb_depthwise_grid *grid = p->grid;
    const wb_conv_axis *axis = grid->plan.axis;
    for (int64_t i2 = 0; i2 < axis[2].grid; i2++) {
        TYPE(plane_run)(p, axis[1].grid, axis[0].grid);
        p->box += grid->box.part[0] * grid->box.part[1];
        p->at += slice;
    }
}

/* Rows of the phases of the first axis, which wait side by side, to their places. */
static void TYPE(plane_mix)(const wb_conv_axis *axis, int64_t pitch, const REAL *rows, REAL *out) {
    const int64_t step = axis[0].out_step, phase = pitch * axis[1].grid * axis[2].grid,
                  width = axis[0].out;
    for (int64_t i = 0; i < axis[1].grid * axis[2].grid; i++, rows += pitch) {
        const int64_t i1 = axis[1].first + i % axis[1].grid * axis[1].out_step,
                      i2 = axis[2].first + i / axis[1].grid * axis[2].out_step;
        REAL *to = out + width * (i1 + axis[1].out * i2);
        if (step != 2) {
            for (int64_t k = 0; k < width; k++) to[k] = rows[k / step + k % step * phase];
            continue;
        }
        for (int64_t k = 0; k < width; k += 2 * LANES) {
            const VEC even = LOAD(rows + k / 2), odd = LOAD(rows + phase + k / 2);
            const int64_t left = width - k;
            const int low = (int)wb_conv_least(left, LANES),
                      high = (int)wb_conv_least(left - low, LANES);
            STORE_PART(to + k, MIX_LOW(even, odd), low);
            if (high > 0) STORE_PART(to + k + LANES, MIX_HIGH(even, odd), high);
        }
    }
}

/* What is the same for all planes. */
static TYPE(plane) TYPE(plane_of)(const wb_depthwise_grid *grid, int64_t step) {
    return (TYPE(plane)){.grid = grid,
                         .columns = grid->plan.taps / grid->height,
                         .pitch = grid->box.part[0],
                         .step = step};
}

/* One phase of all planes of a piece. */
static void TYPE(gather_phase)(const wb_depthwise_piece *piece, const wb_depthwise_grid *grid,
                               int64_t phase) {
    const wb_conv_plan *plan = &grid->plan;
    const wb_conv_axis *axis = plan->axis;
    const int64_t taps = axis[0].kernel * axis[1].kernel * axis[2].kernel, width = axis[0].out;
    const int64_t steps = axis[0].out_step, pitch = wb_depthwise_pitch(&piece->grids->plan),
                  slice = pitch * axis[1].grid, waiting = slice * axis[2].grid;
    const int64_t first = width * (axis[1].first + axis[1].out * axis[2].first);
    const REAL *source = (const REAL *)piece->source + piece->first * plan->source_plane;
    REAL *out = (REAL *)piece->out + piece->first * plan->out_plane, *rows = piece->rows;
    TYPE(plane) p = TYPE(plane_of)(grid, steps > 1 ? pitch : width * axis[1].out_step);
    p.exact = steps > 1                                ? 0
              : width > LANES || axis[1].out_step != 1 ? MOST_ROWS
                                                       : (int)wb_conv_ceil(LANES - width, width);
    if (grid->box.volume > 0) TYPE(load_box)(plan, &grid->box, source, piece->planes, piece->box);
    for (int64_t i = 0; i < piece->planes; i++, out += plan->out_plane) {
        p.box = (const REAL *)piece->box + i * grid->box.volume;
        p.weights = (const REAL *)piece->other + (piece->first + i) % plan->groups * taps;
        if (steps == 1) {
            p.out = out, p.at = first;
            TYPE(plane_slices)(&p, width * axis[1].out * axis[2].out_step);
            continue;
        }
        p.out = rows, p.at = phase % steps * waiting;
        TYPE(plane_slices)(&p, slice);
        if (phase % steps == steps - 1) TYPE(plane_mix)(axis, pitch, rows, out);
        rows += steps * waiting;
    }
}

void WB_ISA_NAME(TYPE(depthwise_gather))(const wb_depthwise_piece *piece) {
    if (piece->grids->plan.out_plane == 0) return;
    for (int64_t phase = 0; phase < piece->phases; phase++)
        TYPE(gather_phase)(piece, &piece->grids[phase], phase);
}

/* dw of a channel from its sums. */
static void TYPE(put_sums)(const wb_depthwise_grid *grid, const REAL *sums, REAL *dw) {
    for (int64_t t = 0; t < grid->plan.taps; t++) dw[grid->places[t]] = SUM(LOAD(sums + t * LANES));
}

void WB_ISA_NAME(TYPE(depthwise_filter))(const wb_depthwise_piece *piece) {
    const wb_depthwise_grid *grid = piece->grids;
    const wb_conv_plan *plan = &grid->plan;
    const int64_t taps = plan->taps, row = plan->axis[0].grid;
    TYPE(plane) p = TYPE(plane_of)(grid, row);
    REAL *sums = piece->rows, *dw = (REAL *)piece->out + piece->first * taps;
    TYPE(zero)(sums, piece->planes * taps * LANES);
    for (int64_t n = 0; plan->positions > 0 && n < plan->batch; n++) {
        const int64_t first = piece->first + n * plan->groups;
        const REAL *x = (const REAL *)piece->source + first * plan->source_plane;
        TYPE(load_box)(plan, &grid->box, x, piece->planes, piece->box);
        for (int64_t i = 0; i < piece->planes; i++) {
            p.box = (const REAL *)piece->box + i * grid->box.volume;
            p.y = (const REAL *)piece->other + (first + i) * plan->out_plane;
            p.out = sums + i * taps * LANES, p.at = 0;
            TYPE(plane_slices)(&p, row * plan->axis[1].grid);
        }
    }
    for (int64_t i = 0; i < piece->planes; i++, sums += taps * LANES, dw += taps)
        TYPE(put_sums)(grid, sums, dw);
}
