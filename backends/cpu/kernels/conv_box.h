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

/* count elements, then zeros up to `room`, in whole vectors: up to LANES - 1 elements more are
 * written, which is faster than writing a part of a vector. */
WB_INLINE void TYPE(copy_over)(REAL *dst, const REAL *src, int64_t count, int64_t room) {
    for (; count >= LANES; count -= LANES, room -= LANES, dst += LANES, src += LANES)
        STORE(dst, LOAD(src));
    if (count > 0) {
        STORE(dst, LOAD_PART(src, (int)count));
        dst += LANES;
        room -= LANES;
    }
    VEC none = SET(0);
    WB_IN_REGISTER(none); /* or it becomes a call of memset, which is long for a row */
    for (; room > 0; room -= LANES, dst += LANES) STORE(dst, none);
}

/* dst[i] = src[2 * i], likewise; nothing after the last of them is read */
WB_INLINE void TYPE(copy_even)(REAL *dst, const REAL *src, int64_t count, int64_t room) {
    for (; count > LANES; count -= LANES, room -= LANES, dst += LANES, src += 2 * LANES)
        STORE(dst, EVEN(LOAD(src), LOAD(src + LANES)));
    const int last = 2 * (int)count - 1;
    if (last > LANES)
        STORE(dst, EVEN(LOAD(src), LOAD_PART(src + LANES, last - LANES)));
    else if (last > 0)
        STORE(dst, EVEN(LOAD_PART(src, last), SET(0)));
    if (last > 0) {
        dst += LANES;
        room -= LANES;
    }
    TYPE(copy_over)(dst, src, 0, room);
}

/* Rows of a box. Each row's numbers begin `from` elements after the row's start; the row reaches up
 * to where the numbers of the next row begin. */
typedef struct TYPE(rows) {
    int64_t part, from, count; /* elements of a row, zeros in front, numbers */
    int64_t step, next;        /* in the source: to the next number, and to the next row */
    const REAL *end;           /* where the last row of the block has its numbers */
} TYPE(rows);

WB_INLINE void TYPE(load_rows)(const TYPE(rows) * r, REAL *dst, const REAL *src, int64_t rows,
                               const int64_t step) {
    for (; rows > 0; rows--, dst += r->part, src += r->next) {
        __builtin_prefetch(src + 2048); /* rows are too short for the hardware to see */
        __builtin_prefetch(src + 2048 + 64 / sizeof *src);
        const int64_t room = r->part - (dst == r->end ? r->from : 0);
        if (step == 1) {
            TYPE(copy_over)(dst, src, r->count, room);
        } else if (step == 2) {
            TYPE(copy_even)(dst, src, r->count, room);
        } else {
            for (int64_t i = 0; i < r->count; i++) dst[i] = src[i * r->step];
            TYPE(copy_over)(dst + r->count, src, 0, room - r->count);
        }
    }
}

/* Each row is one vector. */
WB_INLINE void TYPE(load_short)(const TYPE(rows) * r, REAL *dst, const REAL *src, int64_t rows,
                                const int64_t step) {
    const int64_t part = r->part, next = r->next, last = step * (r->count - 1) + 1;
    const int low = (int)wb_conv_least(last, LANES), high = (int)last - LANES;
    for (; rows > 0; rows--, dst += part, src += next) {
        __builtin_prefetch(src + 2048);
        const VEC v = LOAD_PART(src, low);
        if (step == 1)
            STORE(dst, v);
        else
            STORE(dst, EVEN(v, high > 0 ? LOAD_PART(src + LANES, high) : SET(0)));
    }
}

static void TYPE(load_numbers)(const TYPE(rows) * r, REAL *dst, const REAL *src, int64_t rows) {
    const bool is_short = r->part <= LANES && r->count > 0;
    if (r->step == 1 && is_short)
        TYPE(load_short)(r, dst, src, rows, 1);
    else if (r->step == 2 && is_short)
        TYPE(load_short)(r, dst, src, rows, 2);
    else if (r->step == 1)
        TYPE(load_rows)(r, dst, src, rows, 1);
    else if (r->step == 2)
        TYPE(load_rows)(r, dst, src, rows, 2);
    else
        TYPE(load_rows)(r, dst, src, rows, 0);
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
    if (part * box->extent[2] == plan->source_plane) { /* and so are the channels */
        TYPE(copy)(dst, source, plan->source_plane * channels);
        return true;
    }
    for (int64_t c = 0; c < channels; c++, source += plan->source_plane)
        for (int64_t i2 = 0; i2 < box->extent[2]; i2++, dst += part)
            TYPE(copy)(dst, source + i2 * plane, part);
    return true;
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

/* Which positions with remainder r on axis d of the box are inside the source: from to to - 1. */
WB_INLINE void TYPE(inside)(const wb_conv_plan *plan, const wb_conv_box *box, int d, int64_t r,
                            int64_t *from, int64_t *to) {
    const int64_t step = plan->axis[d].step, begin = box->origin[d] + r,
                  left = plan->axis[d].in - begin;
    const int64_t first = step == 1 ? -begin : wb_conv_ceil(-begin, step),
                  end = step == 1 ? left : wb_conv_ceil(left, step);
    *from = wb_conv_most(0, wb_conv_least(box->part[d], first));
    *to = wb_conv_most(*from, wb_conv_least(box->part[d], end));
}

/* The positions with remainders r, of all channels. */
static void TYPE(load_part)(const wb_conv_plan *plan, const wb_conv_box *box, const int64_t r[3],
                            const REAL *source, int64_t channels, REAL *dst) {
    const wb_conv_axis *axis = plan->axis;
    const int64_t part = box->part[0], slice = part * box->part[1], width = axis[0].in;
    int64_t from[3], to[3];
    for (int d = 0; d < 3; d++) TYPE(inside)(plan, box, d, r[d], &from[d], &to[d]);
    TYPE(rows)
    numbers = {.part = part,
               .from = from[0],
               .count = to[0] - from[0],
               .step = axis[0].step,
               .next = axis[1].step * width,
               .end = dst + from[0] + slice * box->part[2] - part};
    source += box->origin[0] + r[0] + from[0] * axis[0].step +
              (box->origin[1] + r[1] + from[1] * axis[1].step) * width;
    const int64_t step = axis[2].step * width * axis[1].in,
                  first = (box->origin[2] + r[2]) * width * axis[1].in;
    for (int64_t c = 0; c < channels; c++, source += plan->source_plane) {
        TYPE(copy_over)(dst, source, 0, from[0]);
        REAL *to_slice = dst + from[0];
        const REAL *slice_of = source + first;
        for (int64_t k2 = 0; k2 < box->part[2]; k2++, to_slice += slice, slice_of += step) {
            const bool is_inside = k2 >= from[2] && k2 < to[2];
            const int64_t begin = is_inside ? from[1] : box->part[1],
                          end = is_inside ? to[1] : box->part[1];
            const int64_t after = slice - end * part;
            TYPE(copy_over)(to_slice, source, 0, begin * part);
            TYPE(load_numbers)(&numbers, to_slice + begin * part, slice_of, end - begin);
            const int64_t spare = k2 == box->part[2] - 1 ? from[0] : 0;
            TYPE(copy_over)(to_slice + end * part, source, 0, after - spare);
        }
        dst += box->volume;
        numbers.end += box->volume;
    }
}

/* dst: part of each axis, remainders of each axis, channels; remainders that no tap reads are left
 * out. */
static void TYPE(load_parts)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *source,
                             int64_t channels, REAL *dst) {
    const wb_conv_axis *axis = plan->axis;
    int64_t r[3];
    for (r[2] = 0; r[2] < axis[2].step; r[2]++)
        for (r[1] = 0; r[1] < axis[1].step; r[1]++)
            for (r[0] = 0; r[0] < axis[0].step; r[0]++, dst += box->block) {
                bool is_read = true;
                for (int d = 0; d < 3; d++) is_read = is_read && TYPE(is_read)(plan, box, d, r[d]);
                if (is_read) TYPE(load_part)(plan, box, r, source, channels, dst);
            }
}

static void TYPE(load_box)(const wb_conv_plan *plan, const wb_conv_box *box, const REAL *source,
                           int64_t channels, REAL *dst) {
    if (!TYPE(load_whole)(plan, box, source, channels, dst))
        TYPE(load_parts)(plan, box, source, channels, dst);
}
