/* Depthwise convolutions of small planes (depthwise.h): channels side by side in vectors, for one
 * element type (REAL, see conv.c). */

/* Up to LANES planes become vectors: in the boxes, which begin at `to`, or there one by one. */
WB_INLINE void TYPE(lanes_load)(const wb_lanes_piece *piece, const REAL *planes, int64_t plane,
                                int64_t channels, REAL *to, const bool in_boxes) {
    for (int64_t p = 0; p < plane; p += LANES) {
        const int count = (int)wb_conv_least(LANES, plane - p);
        VEC square[LANES];
        UNROLL for (int i = 0; i < LANES; i++) {
            square[i] = i < channels ? LOAD_PART(planes + i * plane + p, count) : SET(0);
        }
        TRANSPOSE(square);
        if (!in_boxes) {
            UNROLL for (int i = 0; i < LANES; i++) {
                if (i < count) STORE(to + (p + i) * LANES, square[i]);
            }
            continue;
        }
        for (int64_t g = 0; g < piece->phases; g++) {
            const wb_lanes_grid *grid = &piece->grids[g];
            const int64_t *source = grid->source + p;
            REAL *box = to + grid->box_at * LANES;
            if (wb_conv_is_empty(&grid->plan)) continue;
            UNROLL for (int i = 0; i < LANES; i++) {
                if (i < count && source[i] >= 0) STORE(box + source[i] * LANES, square[i]);
            }
        }
    }
}

static void TYPE(lanes_store)(const REAL *from, int64_t plane, int64_t channels, REAL *planes) {
    for (int64_t p = 0; p < plane; p += LANES) {
        const int count = (int)wb_conv_least(LANES, plane - p);
        VEC square[LANES];
        UNROLL for (int i = 0; i < LANES; i++) {
            square[i] = i < count ? LOAD(from + (p + i) * LANES) : SET(0);
        }
        TRANSPOSE(square);
        UNROLL for (int i = 0; i < LANES; i++) {
            if (i < channels) STORE_PART(planes + i * plane + p, square[i], count);
        }
    }
}

/* n positions of a row, a constant where this is expanded: results that are `step` vectors apart,
 * or with sums the part of these that comes from n positions of y. */
WB_INLINE void TYPE(lanes_few)(const wb_lanes_grid *grid, const REAL *box, REAL *taps, REAL *result,
                               int64_t step, const int n, const bool sums) {
    VEC value[8];
    UNROLL for (int i = 0; i < n; i++) value[i] = sums ? LOAD(result + i * step * LANES) : SET(0);
    for (int64_t t = 0; t < grid->plan.taps; t++, taps += LANES) {
        const REAL *from = box + grid->offsets[t] * LANES;
        VEC tap = LOAD(taps);
        UNROLL for (int i = 0; i < n; i++) {
            const VEC x = LOAD(from + i * LANES);
            if (sums)
                tap += x * value[i];
            else
                value[i] += x * tap;
        }
        if (sums) STORE(taps, tap);
    }
    if (sums) return;
    UNROLL for (int i = 0; i < n; i++) STORE(result + i * step * LANES, value[i]);
}

WB_INLINE void TYPE(lanes_row)(const wb_lanes_grid *grid, const REAL *box, REAL *taps, REAL *result,
                               const bool sums) {
    const int64_t step = grid->plan.axis[0].out_step;
    int64_t left = grid->plan.axis[0].grid;
    for (int64_t n; left > 0; left -= n, box += n * LANES, result += n * step * LANES) {
        n = left == MOST_ROWS ? MOST_ROWS : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (n == MOST_ROWS)
            TYPE(lanes_few)(grid, box, taps, result, step, MOST_ROWS, sums);
        else if (n == 4)
            TYPE(lanes_few)(grid, box, taps, result, step, 4, sums);
        else if (n == 2)
            TYPE(lanes_few)(grid, box, taps, result, step, 2, sums);
        else
            TYPE(lanes_few)(grid, box, taps, result, step, 1, sums);
    }
}

WB_INLINE void TYPE(lanes_grid)(const wb_lanes_piece *piece, const wb_lanes_grid *grid,
                                const bool sums) {
    const wb_conv_axis *axis = grid->plan.axis;
    const REAL *box = (const REAL *)piece->box + grid->box_at * LANES;
    REAL *taps = (REAL *)piece->weights + grid->taps_at * LANES;
    for (int64_t r = 0; r < axis[1].grid * axis[2].grid; r++) {
        const int64_t i1 = axis[1].first + r % axis[1].grid * axis[1].out_step,
                      i2 = axis[2].first + r / axis[1].grid * axis[2].out_step;
        REAL *result =
            (REAL *)piece->result + (axis[0].first + axis[0].out * (i1 + axis[1].out * i2)) * LANES;
        const bool has_taps = grid->plan.taps > 0;
        TYPE(lanes_row)(grid, has_taps ? box + grid->rows[r] * LANES : box, taps, result, sums);
    }
}

/* Weights of LANES channels, a vector for each tap. */
static void TYPE(lanes_weights)(const wb_lanes_piece *piece, int64_t first, int64_t channels) {
    REAL *to = piece->weights;
    for (int64_t g = 0; g < piece->phases; g++) {
        const wb_lanes_grid *grid = &piece->grids[g];
        const wb_conv_axis *axis = grid->plan.axis;
        const int64_t kernel = axis[0].kernel * axis[1].kernel * axis[2].kernel;
        for (int64_t t = 0; t < grid->plan.taps; t++)
            for (int64_t i = 0; i < LANES; i++)
                *to++ = i < channels
                            ? ((const REAL *)piece->other)[(first + i) * kernel + grid->places[t]]
                            : 0;
    }
}

void WB_ISA_NAME(TYPE(lanes_gather))(const wb_lanes_piece *piece) {
    const wb_conv_plan *plan = &piece->grids->plan;
    for (int64_t c = 0; c < piece->channels; c += LANES) {
        const int64_t first = piece->channel + c,
                      channels = wb_conv_least(LANES, piece->channels - c);
        TYPE(zero)(piece->box, piece->boxes * LANES);
        TYPE(lanes_weights)(piece, first, channels);
        for (int64_t n = piece->image; n < piece->image + piece->images; n++) {
            const int64_t plane = first + n * plan->groups;
            TYPE(lanes_load)
            (piece, (const REAL *)piece->source + plane * plan->source_plane, plan->source_plane,
             channels, piece->box, true);
            for (int64_t g = 0; g < piece->phases; g++)
                TYPE(lanes_grid)(piece, &piece->grids[g], false);
            TYPE(lanes_store)
            (piece->result, plan->out_plane, channels,
             (REAL *)piece->out + plane * plan->out_plane);
        }
    }
}

void WB_ISA_NAME(TYPE(lanes_filter))(const wb_lanes_piece *piece) {
    const wb_lanes_grid *grid = piece->grids;
    const wb_conv_plan *plan = &grid->plan;
    for (int64_t c = 0; c < piece->channels; c += LANES) {
        const int64_t first = piece->channel + c,
                      channels = wb_conv_least(LANES, piece->channels - c);
        REAL *sums = piece->weights, *dw = (REAL *)piece->out + first * plan->taps;
        TYPE(zero)(piece->box, piece->boxes * LANES);
        TYPE(zero)(sums, plan->taps * LANES);
        for (int64_t n = 0; n < piece->images; n++) {
            const int64_t plane = first + n * plan->groups;
            TYPE(lanes_load)
            (piece, (const REAL *)piece->source + plane * plan->source_plane, plan->source_plane,
             channels, piece->box, true);
            TYPE(lanes_load)
            (piece, (const REAL *)piece->other + plane * plan->out_plane, plan->out_plane, channels,
             piece->result, false);
            TYPE(lanes_grid)(piece, grid, true);
        }
        for (int64_t t = 0; t < plan->taps; t++)
            for (int64_t i = 0; i < channels; i++)
                dw[i * plan->taps + grid->places[t]] = sums[t * LANES + i];
    }
}
