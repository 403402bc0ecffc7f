/* The filter gradient, for one element type (REAL, see conv.c).
 *
 *     sum (filters, rows) += over positions: lines (filters, positions) * box (rows, positions)
 *
 * where a row is (tap, channel). y is transposed into lines first, so that vectors run over
 * filters and x is read, one element at a time, straight from the box: no stride or padding
 * costs anything. With one or two filters vectors run over positions instead, and their lanes
 * are added at the end. */

/* Rows of a sum that stay in registers while all positions of a stretch pass. */
typedef struct TYPE(block_tile) {
    const REAL *lines; /* (pitch, positions); narrow: y itself */
    const REAL *box;
    const int64_t *offsets; /* of the rows */
    const wb_conv_run *runs;
    int run_count;
    REAL *sum; /* (pitch, rows) */
    int64_t pitch, rows;
} TYPE(block_tile);

#if WB_BY_LANE
/* Rows first .. first + group - 1 for LANES positions from i on: vectors of x, of which each
 * multiply-add takes a lane. */
WB_INLINE void TYPE(block_lanes)(const REAL *line, int64_t pitch, const REAL *const *x, int64_t i,
                                 int vectors, int first, int group, VEC (*sum)[4]) {
    VEC factor[9];
    UNROLL for (int j = 0; j < group; j++) factor[j] = LOAD(x[first + j] + i);
    UNROLL for (int lane = 0; lane < LANES; lane++, line += pitch) {
        VEC y[4];
        UNROLL for (int v = 0; v < vectors; v++) y[v] = LOAD(line + v * LANES);
        UNROLL for (int j = 0; j < group; j++) {
            UNROLL for (int v = 0; v < vectors; v++) {
                sum[first + j][v] = ADD_BY_LANE(sum[first + j][v], y[v], factor[j], lane);
            }
        }
    }
}

/* Four vectors leave room for half of six rows. Returns the first position that was not done. */
WB_INLINE int64_t TYPE(block_along)(const REAL *line, int64_t pitch, const REAL *const *x,
                                    int64_t i, int64_t end, int vectors, int rows, VEC (*sum)[4]) {
    const int group = vectors == 4 ? rows / 2 : rows;
    for (; i + LANES <= end; i += LANES, line += LANES * pitch) {
        TYPE(block_lanes)(line, pitch, x, i, vectors, 0, group, sum);
        if (group < rows) WB_FORGET_LOADS();
        if (group < rows) TYPE(block_lanes)(line, pitch, x, i, vectors, group, group, sum);
    }
    return i;
}
#else
WB_INLINE int64_t TYPE(block_along)(const REAL *line, int64_t pitch, const REAL *const *x,
                                    int64_t i, int64_t end, int vectors, int rows, VEC (*sum)[4]) {
    (void)line, (void)pitch, (void)x, (void)end, (void)vectors, (void)rows, (void)sum;
    return i;
}
#endif

/* vectors and rows are constants where this is expanded; rows beyond t->rows repeat the last one
 * and are not stored. */
WB_INLINE void TYPE(block_run)(const TYPE(block_tile) * t, const int vectors, const int rows) {
    VEC sum[9][4];
    const REAL *x[9];
    const int64_t pitch = t->pitch;
    UNROLL for (int j = 0; j < rows; j++) {
        const int64_t row = wb_conv_least(j, t->rows - 1);
        x[j] = t->box + t->offsets[row];
        UNROLL for (int v = 0; v < vectors; v++) {
            sum[j][v] = LOAD(t->sum + row * pitch + v * LANES);
        }
    }
    for (int r = 0; r < t->run_count; r++) {
        const wb_conv_run run = t->runs[r];
        const REAL *line = t->lines + run.at * pitch;
        const int64_t end = run.source + run.length;
        int64_t i = TYPE(block_along)(line, pitch, x, run.source, end, vectors, rows, sum);
        line += (i - run.source) * pitch;
        for (; i < end; i++, line += pitch) {
            VEC y[4];
            UNROLL for (int v = 0; v < vectors; v++) { y[v] = LOAD(line + v * LANES); }
            UNROLL for (int j = 0; j < rows; j++) {
                const VEC factor = SET(x[j][i]);
                UNROLL for (int v = 0; v < vectors; v++) { sum[j][v] += y[v] * factor; }
            }
        }
    }
    UNROLL for (int j = 0; j < rows; j++) {
        if (j >= t->rows) return;
        UNROLL for (int v = 0; v < vectors; v++) {
            STORE(t->sum + j * pitch + v * LANES, sum[j][v]);
        }
    }
}

/* One filter: lines is its y from the first position of the stretch on. */
WB_INLINE void TYPE(block_dot)(const TYPE(block_tile) * t, const int rows) {
    VEC sum[9];
    const REAL *x[9];
    UNROLL for (int j = 0; j < rows; j++) {
        const int64_t row = wb_conv_least(j, t->rows - 1);
        x[j] = t->box + t->offsets[row];
        sum[j] = LOAD(t->sum + row * t->pitch);
    }
    for (int r = 0; r < t->run_count; r++) {
        const wb_conv_run run = t->runs[r];
        const REAL *line = t->lines + run.at;
        int64_t i = 0;
        for (; i + LANES <= run.length; i += LANES) {
            const VEC y = LOAD(line + i);
            UNROLL for (int j = 0; j < rows; j++) { sum[j] += y * LOAD(x[j] + run.source + i); }
        }
        if (i < run.length) {
            const int rest = (int)(run.length - i);
            const VEC y = LOAD_PART(line + i, rest);
            UNROLL for (int j = 0; j < rows; j++) {
                sum[j] += y * LOAD_PART(x[j] + run.source + i, rest);
            }
        }
    }
    UNROLL for (int j = 0; j < rows; j++) {
        if (j < t->rows) STORE(t->sum + j * t->pitch, sum[j]);
    }
}

/* All rows of `vectors` vectors of filters, in groups that fit the registers. */
WB_INLINE void TYPE(block_rows)(TYPE(block_tile) t, int64_t rows, const int vectors,
                                const int group) {
    for (int64_t j = 0; j < rows; j += group) {
        t.rows = wb_conv_least(group, rows - j);
        TYPE(block_run)(&t, vectors, group);
        t.offsets += group;
        t.sum += group * t.pitch;
    }
}

static void TYPE(block_wide)(TYPE(block_tile) t, int64_t rows) {
    int64_t left = t.pitch / LANES;
    for (int64_t taken; left > 0; left -= taken) {
        if (WB_VECTOR_REGISTERS == 32 && left >= 4) {
            taken = 4;
            TYPE(block_rows)(t, rows, 4, 6);
        } else if (left >= 2) {
            taken = 2;
            TYPE(block_rows)(t, rows, 2, WB_VECTOR_REGISTERS == 32 ? 9 : 6);
        } else {
            taken = 1;
            TYPE(block_rows)(t, rows, 1, 9);
        }
        t.lines += taken * LANES;
        t.sum += taken * LANES;
    }
}

static void TYPE(block_narrow)(TYPE(block_tile) t, int64_t rows) {
    for (int64_t j = 0; j < rows; j += 9) {
        t.rows = wb_conv_least(9, rows - j);
        TYPE(block_dot)(&t, 9);
        t.offsets += 9;
        t.sum += 9 * t.pitch;
    }
}

/* lines[filter + pitch * position] = y[position + plane * filter]; filters beyond the last are 0 */
static void TYPE(block_lines)(const REAL *y, int64_t plane, int64_t filters, int64_t positions,
                              REAL *lines, int64_t pitch) {
    for (int64_t f = 0; f < pitch; f += LANES) {
        for (int64_t p = 0; p < positions; p += LANES) {
            const int count = (int)wb_conv_least(LANES, positions - p);
            VEC square[LANES];
            UNROLL for (int i = 0; i < LANES; i++) {
                const REAL *row = y + p + plane * (f + i);
                square[i] = f + i >= filters ? SET(0)
                            : count == LANES ? LOAD(row)
                                             : LOAD_PART(row, count);
            }
            TRANSPOSE(square);
            REAL *line = lines + f + p * pitch;
            UNROLL for (int i = 0; i < LANES; i++) {
                if (i < count) STORE(line + i * pitch, square[i]);
            }
        }
    }
}

/* Positions first .. first + count - 1 of some images, whose boxes follow each other; plan: of the
 * block's channels alone. */
static void TYPE(block_stretch)(const wb_conv_block *block, const wb_conv_plan *plan,
                                const wb_conv_box *box, TYPE(block_tile) t, const REAL *y,
                                int64_t images, int64_t first, int64_t count) {
    const wb_conv_piece piece = {.plan = plan, .images = images, .first = first, .count = count};
    const int64_t rows = plan->inner * plan->taps, plane = plan->out_plane;
    REAL *lines = block->lines;
    wb_conv_run runs[WB_CONV_STRETCH];
    t.run_count = wb_conv_runs(&piece, box, 0, images * count, runs);
    t.runs = runs;
    if (!block->narrow) {
        for (int64_t i = 0; i < images; i++) TYPE(block_lines)
        (y + first + i * plan->out_image, plane, block->filters, count, lines + i * count * t.pitch,
         t.pitch);
        t.lines = lines;
        TYPE(block_wide)(t, rows);
        return;
    }
    for (int64_t f = 0; f < block->filters; f++, t.sum += t.pitch / block->filters) {
        t.lines = y + first + f * plane;
        TYPE(block_narrow)(t, rows);
    }
}

static void TYPE(filter_block)(const wb_conv_block *block) {
    wb_conv_plan plan = *block->plan;
    plan.inner = block->channels;
    TYPE(block_tile)
    t = {.box = block->box, .offsets = block->offsets, .sum = block->sum, .pitch = block->pitch};
    TYPE(zero)((REAL *)block->sum, plan.inner * plan.taps * block->pitch);
    for (int64_t n = 0; n < block->images; n += block->together) {
        const int64_t images = wb_conv_least(block->together, block->images - n);
        const REAL *x = (const REAL *)block->x + n * plan.source_image;
        const REAL *y = (const REAL *)block->y + n * plan.out_image;
        for (int64_t at = 0; at < plan.positions; at += block->chunk) {
            const int64_t end = wb_conv_least(plan.positions, at + block->chunk);
            const wb_conv_box box = wb_conv_box_of(&plan, at, end - at);
            wb_conv_offsets(&plan, &box, plan.inner, block->offsets);
            for (int64_t i = 0; i < images; i++) TYPE(load_box)
            (&plan, &box, x + i * plan.source_image, plan.inner,
             (REAL *)block->box + i * plan.inner * box.volume);
            for (int64_t p = at; p < end; p += WB_CONV_STRETCH) TYPE(block_stretch)
            (block, &plan, &box, t, y, images, p, wb_conv_least(WB_CONV_STRETCH, end - p));
        }
    }
}

/* The parts, of which there may be none, of a vector of a row's sums, added in their order. */
WB_INLINE VEC TYPE(total_of)(const wb_conv_total *total, const REAL *sum) {
    VEC all = SET(0);
    for (int64_t part = 0; part < total->parts; part++)
        all += LOAD(sum + part * total->part_stride);
    return all;
}

/* Filters first .. first + LANES - 1 of `rows` rows from `row` on: rows of one filter are
 * neighbours in dw, filters of one row are far from each other. place: of each row in dw; NULL if
 * that is its number. */
static void TYPE(total_square)(const wb_conv_total *total, int64_t row, int64_t first, int rows,
                               const int64_t *place) {
    const REAL *sum = (const REAL *)total->sum + row * total->pitch + first;
    VEC square[LANES];
    UNROLL for (int i = 0; i < LANES; i++) {
        square[i] = i < rows ? TYPE(total_of)(total, sum + i * total->pitch) : SET(0);
    }
    TRANSPOSE(square);
    const int64_t end = wb_conv_least(first + LANES, total->filters);
    for (int64_t f = first; f < end; f++) {
        REAL *dw = (REAL *)total->dw + f * total->plan->outer_stride, line[LANES];
        if (!place) {
            STORE_PART(dw + row, square[f - first], rows);
            continue;
        }
        STORE(line, square[f - first]);
        for (int i = 0; i < rows; i++) dw[place[i]] = line[i];
    }
}

static void TYPE(total_wide)(const wb_conv_total *total) {
    const wb_conv_plan *plan = total->plan;
    const int64_t count = total->channels * plan->taps;
    const bool is_turned = wb_conv_tap(plan, plan->taps - 1) != plan->taps - 1;
    for (int64_t row = 0; row < count; row += LANES) {
        const int rows = (int)wb_conv_least(LANES, count - row);
        int64_t place[LANES];
        for (int i = 0; is_turned && i < rows; i++)
            place[i] = (row + i) / plan->taps * plan->inner_stride +
                       wb_conv_tap(plan, (row + i) % plan->taps);
        for (int64_t f = 0; f < total->filters; f += LANES)
            TYPE(total_square)(total, row, f, rows, is_turned ? place : NULL);
    }
}

static void TYPE(total_narrow)(const wb_conv_total *total, int64_t row) {
    const wb_conv_plan *plan = total->plan;
    const REAL *sum = (const REAL *)total->sum + row * total->pitch;
    REAL *dw = (REAL *)total->dw + wb_conv_tap(plan, row % plan->taps) +
               row / plan->taps * plan->inner_stride;
    const int64_t each = total->pitch / total->filters;
    for (int64_t f = 0; f < total->filters; f++, sum += each) {
        REAL value = 0;
        for (int64_t i = 0; i < each; i++) {
            REAL lane = 0;
            for (int64_t part = 0; part < total->parts; part++)
                lane += sum[i + part * total->part_stride];
            value += lane;
        }
        dw[f * plan->outer_stride] = value;
    }
}

static void TYPE(filter_total)(const wb_conv_total *total) {
    const int64_t rows = total->channels * total->plan->taps;
    if (!total->narrow)
        TYPE(total_wide)(total);
    else
        for (int64_t row = 0; row < rows; row++) TYPE(total_narrow)(total, row);
}

void WB_ISA_NAME(TYPE(conv_block))(const wb_conv_block *block) { TYPE(filter_block)(block); }
void WB_ISA_NAME(TYPE(conv_total))(const wb_conv_total *total) { TYPE(filter_total)(total); }
