/* Copies a part of the source planes into a box (conv_plan.h), for one element type (REAL, see
 * conv.c). */

WB_INLINE void TYPE(zero)(REAL *dst, int64_t count) {
    for (; count >= LANES; count -= LANES, dst += LANES) STORE(dst, SET(0));
    if (count > 0) STORE_PART(dst, SET(0), (int)count);
}

WB_INLINE void TYPE(copy)(REAL *dst, const REAL *src, int64_t count) {
    for (; count >= LANES; count -= LANES, dst += LANES, src += LANES) STORE(dst, LOAD(src));
    if (count > 0) STORE_PART(dst, LOAD_PART(src, (int)count), (int)count);
}

/* dst[i] = src[i * step] */
WB_INLINE void TYPE(copy_every)(REAL *dst, const REAL *src, int64_t count, int64_t step) {
    if (step == 1)
        TYPE(copy)(dst, src, count);
    else if (step == 2)
        for (int64_t i = 0; i < count; i++) dst[i] = src[2 * i];
    else
        for (int64_t i = 0; i < count; i++) dst[i] = src[i * step];
}

/* One row of the box: element e of it is src[origin + e], 0 outside the plane. */
static void TYPE(load_row)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *src,
                           REAL *dst) {
    const int64_t step = plan->axis[0].step, origin = box->origin[0], part = box->part[0];
    const int64_t low = wb_conv_most(0, -origin);
    const int64_t high = wb_conv_least(box->extent[0], plan->axis[0].in - origin);
    for (int64_t phase = 0; phase < step; phase++, dst += box->block) {
        const int64_t from = low <= phase ? 0 : (low - phase + step - 1) / step;
        const int64_t to = high <= phase ? 0 : (high - phase + step - 1) / step;
        if (from >= to) {
            TYPE(zero)(dst, part);
            continue;
        }
        TYPE(zero)(dst, from);
        TYPE(copy_every)(dst + from, src + origin + phase + from * step, to - from, step);
        TYPE(zero)(dst + to, part - to);
    }
}

/* Planes whose rows are all there, in order, need no rows. */
static bool TYPE(load_whole)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *source,
                             int64_t channels, REAL *dst) {
    const wb_conv_axis *axis = plan->axis;
    if (box->block != box->volume || box->origin[0] != 0 || box->extent[0] != axis[0].in)
        return false;
    for (int d = 1; d < 3; d++)
        if (box->origin[d] < 0 || box->origin[d] + box->extent[d] > axis[d].in) return false;
    const int64_t plane = axis[0].in * axis[1].in, part = axis[0].in * box->extent[1];
    source += axis[0].in * box->origin[1] + plane * box->origin[2];
    for (int64_t c = 0; c < channels; c++, source += plan->source_plane)
        for (int64_t i2 = 0; i2 < box->extent[2]; i2++, dst += part)
            TYPE(copy)(dst, source + i2 * plane, part);
    return true;
}

/* Without strides, with padding: no divisions, and one sweep of zeros. */
static void TYPE(load_padded)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *source,
                              int64_t channels, REAL *dst) {
    const wb_conv_axis *axis = plan->axis;
    const int64_t *origin = box->origin, *extent = box->extent, part = box->part[0];
    const int64_t low = wb_conv_least(part, wb_conv_most(0, -origin[0]));
    const int64_t high = wb_conv_most(low, wb_conv_least(part, axis[0].in - origin[0]));
    TYPE(zero)(dst, box->volume * channels);
    for (int64_t c = 0; c < channels; c++, source += plan->source_plane)
        for (int64_t i2 = origin[2]; i2 < origin[2] + extent[2]; i2++)
            for (int64_t i1 = origin[1]; i1 < origin[1] + extent[1]; i1++, dst += part) {
                if (i1 < 0 || i1 >= axis[1].in || i2 < 0 || i2 >= axis[2].in) continue;
                const REAL *row = source + axis[0].in * (i1 + axis[1].in * i2) + origin[0];
                /* rows are too short for the hardware to see */
                __builtin_prefetch(row + low + 2048);
                __builtin_prefetch(row + low + 2048 + 64 / sizeof *row);
                TYPE(copy)(dst + low, row + low, high - low);
            }
}

/* dst: part of each axis, remainders of each axis, channels */
static void TYPE(load_strided)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *source,
                               int64_t channels, REAL *dst) {
    const wb_conv_axis *axis = plan->axis;
    for (int64_t c = 0; c < channels; c++, source += plan->source_plane, dst += box->volume)
        for (int64_t e2 = 0; e2 < box->extent[2]; e2++)
            for (int64_t e1 = 0; e1 < box->extent[1]; e1++) {
                const int64_t i1 = box->origin[1] + e1, i2 = box->origin[2] + e2;
                const int64_t remainder = e1 % axis[1].step + axis[1].step * (e2 % axis[2].step);
                REAL *row = dst + box->block * axis[0].step * remainder +
                            box->part[0] * (e1 / axis[1].step + box->part[1] * (e2 / axis[2].step));
                if (i1 >= 0 && i1 < axis[1].in && i2 >= 0 && i2 < axis[2].in)
                    TYPE(load_row)(plan, box, source + axis[0].in * (i1 + axis[1].in * i2), row);
                else
                    for (int64_t r = 0; r < axis[0].step; r++)
                        TYPE(zero)(row + r * box->block, box->part[0]);
            }
}

static void TYPE(load_box)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *source,
                           int64_t channels, REAL *dst) {
    if (TYPE(load_whole)(plan, box, source, channels, dst)) return;
    if (box->block == box->volume)
        TYPE(load_padded)(plan, box, source, channels, dst);
    else
        TYPE(load_strided)(plan, box, source, channels, dst);
}
