/* Copies a part of the source planes into a box (conv_plan.h), for one element type (REAL, see
 * conv.c). */
#include "lanes.h"

WB_INLINE void TYPE(zero)(REAL *dst, int64_t count) {
    for (; count >= LANES; count -= LANES, dst += LANES) STORE(dst, SET(0));
    if (count > 0) STORE_PART(dst, SET(0), (int)count);
}

WB_INLINE void TYPE(copy)(REAL *dst, const REAL *src, int64_t count) {
    for (; count >= LANES; count -= LANES, dst += LANES, src += LANES) STORE(dst, LOAD(src));
    if (count > 0) STORE_PART(dst, LOAD_PART(src, (int)count), (int)count);
}

/* dst[i] = src[2 * i]; nothing behind the last of them is read */
WB_INLINE void TYPE(copy_even)(REAL *dst, const REAL *src, int64_t count) {
    for (; count > LANES; count -= LANES, dst += LANES, src += 2 * LANES)
        STORE(dst, EVEN(LOAD(src), LOAD(src + LANES)));
    const int last = 2 * (int)count - 1;
    if (last > LANES)
        STORE_PART(dst, EVEN(LOAD(src), LOAD_PART(src + LANES, last - LANES)), (int)count);
    else if (last > 0)
        STORE_PART(dst, EVEN(LOAD_PART(src, last), SET(0)), (int)count);
}

/* dst[i] = src[i * step] */
WB_INLINE void TYPE(copy_every)(REAL *dst, const REAL *src, int64_t count, int64_t step) {
    if (step == 1)
        TYPE(copy)(dst, src, count);
    else if (step == 2)
        TYPE(copy_even)(dst, src, count);
    else
        for (int64_t i = 0; i < count; i++) dst[i] = src[i * step];
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

/* Whether a tap reads positions of the box with this remainder modulo the axis's step. */
static bool TYPE(is_read)(const wb_conv_plan *plan, const wb_conv_box *box, int d,
                          int64_t remainder) {
    const wb_conv_axis *axis = &plan->axis[d];
    int64_t at = axis->offset - (box->origin[d] - box->low[d] * axis->step);
    for (int64_t t = 0; t < axis->taps; t++, at += axis->offset_step)
        if (at % axis->step == remainder) return true;
    return false;
}

/* The positions with remainders r, of one channel. */
WB_INLINE void TYPE(load_part)(const wb_conv_plan *plan, const wb_conv_box *box, const int64_t r[3],
                               const REAL *source, REAL *dst) {
    const wb_conv_axis *axis = plan->axis;
    const int64_t step = axis[0].step, part = box->part[0], begin = box->origin[0] + r[0],
                  from = begin < 0 ? wb_conv_least(part, wb_conv_ceil(-begin, step)) : 0,
                  to = begin < axis[0].in ? wb_conv_ceil(axis[0].in - begin, step) : 0,
                  count = wb_conv_least(part, to) - from;
    TYPE(zero)(dst, box->block);
    for (int64_t k2 = 0; k2 < box->part[2]; k2++)
        for (int64_t k1 = 0; k1 < box->part[1]; k1++, dst += part) {
            const int64_t i1 = box->origin[1] + r[1] + k1 * axis[1].step,
                          i2 = box->origin[2] + r[2] + k2 * axis[2].step;
            if (i1 < 0 || i1 >= axis[1].in || i2 < 0 || i2 >= axis[2].in) continue;
            const REAL *row = source + axis[0].in * (i1 + axis[1].in * i2) + begin;
            TYPE(copy_every)(dst + from, row + from * step, count, step);
        }
}

/* dst: part of each axis, remainders of each axis, channels; remainders that no tap reads are left
 * out. */
static void TYPE(load_strided)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *source,
                               int64_t channels, REAL *dst) {
    const wb_conv_axis *axis = plan->axis;
    int64_t r[3];
    for (r[2] = 0; r[2] < axis[2].step; r[2]++)
        for (r[1] = 0; r[1] < axis[1].step; r[1]++)
            for (r[0] = 0; r[0] < axis[0].step; r[0]++, dst += box->block) {
                bool is_read = true;
                for (int d = 0; d < 3; d++) is_read = is_read && TYPE(is_read)(plan, box, d, r[d]);
                for (int64_t c = 0; is_read && c < channels; c++) TYPE(load_part)
                (plan, box, r, source + c * plan->source_plane, dst + c * box->volume);
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
