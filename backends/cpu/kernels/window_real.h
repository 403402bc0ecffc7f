/* One plane of a pool, an unfold or a fold, for one element type (REAL, see window.c).
 *
 * All but scatter and gather are rows of one walk: for each row of y and each tap that meets the
 * plane of x there, y[i] and x[start + i * step] for low <= i < high. Taps come in memory order. */

typedef struct TYPE(row) {
    REAL *out;      /* the row of y when it is written, else x; unfold: the row of a column */
    const REAL *in; /* the row of y when it is read, else x; fold: the row of a column */
    int32_t *index; /* of this row of y */
    int64_t low, high, start;
    REAL scale;
} TYPE(row);

/* step is a constant where this is expanded, if it is 1 or 2. */
typedef void TYPE(row_fn)(const TYPE(row) * row, int64_t step);

WB_INLINE void TYPE(row_step)(TYPE(row_fn) * run, const TYPE(row) * row, int64_t step) {
    if (row->low >= row->high) return;
    if (step == 1)
        run(row, 1);
    else if (step == 2)
        run(row, 2);
    else
        run(row, step);
}

WB_INLINE int64_t TYPE(up)(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

/* Taps of one row of y: to_x says that x is written, columns that y has a plane for each tap. */
WB_INLINE void TYPE(walk_row)(const wb_window_plane *plane, TYPE(row_fn) * run, int64_t i1,
                              int64_t i2, const bool to_x, const bool columns) {
    const wb_window *w = plane->window;
    const int64_t at = w->call.out[0] * (i1 + w->call.out[1] * i2), area = wb_window_plane_out(w);
    const int64_t taps = wb_window_taps(w), step = w->call.stride[0];
    for (int64_t t = 0; t < taps; t++) {
        const int64_t t0 = t % w->call.kernel[0], t1 = t / w->call.kernel[0] % w->call.kernel[1];
        const int64_t t2 = t / w->call.kernel[0] / w->call.kernel[1];
        const int64_t h = i1 * w->call.stride[1] + t1 * w->call.dilation[1] - w->call.pad[1];
        const int64_t d = i2 * w->call.stride[2] + t2 * w->call.dilation[2] - w->call.pad[2];
        if (h < 0 || h >= w->call.in[1] || d < 0 || d >= w->call.in[2]) continue;
        const int64_t column = t0 * w->call.dilation[0] - w->call.pad[0];
        const int64_t y = at + (columns ? area * (w->call.flip ? taps - 1 - t : t) : 0);
        TYPE(row)
        row = {.out = (REAL *)plane->out + (to_x ? 0 : y),
               .in = (const REAL *)plane->in + (to_x ? y : 0),
               .index = plane->index_out ? plane->index_out + at : NULL,
               .low = TYPE(up)(-column, step),
               .high = TYPE(up)(w->call.in[0] - column, step),
               .start = column + w->call.in[0] * (h + w->call.in[1] * d),
               .scale = (REAL)taps};
        if (row.high > w->call.out[0]) row.high = w->call.out[0];
        TYPE(row_step)(run, &row, step);
    }
}

WB_INLINE void TYPE(walk)(const wb_window_plane *plane, TYPE(row_fn) * run, const bool to_x,
                          const bool columns) {
    for (int64_t i2 = 0; i2 < plane->window->call.out[2]; i2++)
        for (int64_t i1 = 0; i1 < plane->window->call.out[1]; i1++)
            TYPE(walk_row)(plane, run, i1, i2, to_x, columns);
}

static void TYPE(fill)(REAL *out, int64_t count, REAL value) {
    for (int64_t i = 0; i < count; i++) out[i] = value;
}

/* index -1: no tap yet. Later equals lose, and so does everything against a NaN. */
WB_INLINE void TYPE(max_row)(const TYPE(row) * row, int64_t step) {
    REAL *restrict y = row->out;
    int32_t *restrict index = row->index;
    const REAL *restrict x = row->in + row->start;
    const int32_t start = (int32_t)row->start, by = (int32_t)step;
    for (int64_t i = row->low; i < row->high; i++) {
        const REAL value = x[i * step], best = y[i];
        const int32_t old = index[i], here = start + (int32_t)i * by;
        const int take = (old < 0) | (!(value <= best) & (best == best));
        y[i] = take ? value : best;
        index[i] = take ? here : old;
    }
}

/* The usual pool: windows of two by two side by side, which need no walk. */
WB_INLINE bool TYPE(is_two_by_two)(const wb_window *w) {
    return w->call.kernel[0] == 2 && w->call.kernel[1] == 2 && w->call.kernel[2] == 1 &&
           w->call.stride[0] == 2 && w->call.stride[1] == 2 && w->call.dilation[0] == 1 &&
           w->call.dilation[1] == 1 && w->call.in[2] == 1 && w->call.pad[0] == 0 &&
           w->call.pad[1] == 0 && 2 * w->call.out[0] <= w->call.in[0] &&
           2 * w->call.out[1] <= w->call.in[1];
}

/* A value takes the place of an earlier one if it is larger, or the first NaN. Written as
 * arithmetic, here and on indices, because gcc makes jumps of comparisons joined by "and" and of
 * nested choices. */
WB_INLINE int TYPE(takes)(REAL value, REAL best) { return (best == best) - (value <= best); }

/* n windows of two rows that are `width` apart, and `first` from the beginning of the plane. */
WB_INLINE void TYPE(max_block)(int64_t begin, int count, int32_t width, int32_t first,
                               const REAL *restrict above, REAL *restrict y,
                               int32_t *restrict index) {
    const REAL *below = above + width;
    WB_INDEPENDENT for (int64_t i = begin; i < begin + count; i++) {
        const REAL a = above[2 * i], b = above[2 * i + 1], c = below[2 * i], d = below[2 * i + 1];
        const int upper = TYPE(takes)(b, a), lower = TYPE(takes)(d, c);
        const REAL high = upper ? b : a, low = lower ? d : c;
        const int down = TYPE(takes)(low, high);
        y[i] = down ? low : high;
        index[i] = first + 2 * (int32_t)i + upper + down * (width + lower - upper);
    }
}

/* block_16(i), block_8(i), block_4(i) or block_1(i) for all of 0 .. n - 1. The last one goes back
 * over what is done already: rows are short, and without vectors most of their time is in the rest.
 * Each is a function of its own: inside another loop, or one after the other, gcc makes jumps of
 * their choices instead of vectors. */
#define IN_BLOCKS(n, block, ...)                                                                   \
    do {                                                                                           \
        const int64_t size_ = (n) >= 16 ? 16 : (n) >= 8 ? 8 : (n) >= 4 ? 4 : 1;                    \
        for (int64_t at_ = 0; at_ < (n); at_ += size_) {                                           \
            const int64_t i_ = at_ + size_ <= (n) ? at_ : (n)-size_;                               \
            if (size_ == 16)                                                                       \
                TYPE(block##_16)(i_, __VA_ARGS__);                                                 \
            else if (size_ == 8)                                                                   \
                TYPE(block##_8)(i_, __VA_ARGS__);                                                  \
            else if (size_ == 4)                                                                   \
                TYPE(block##_4)(i_, __VA_ARGS__);                                                  \
            else                                                                                   \
                TYPE(block##_1)(i_, __VA_ARGS__);                                                  \
        }                                                                                          \
    } while (0)

#define MAX_BLOCK(count)                                                                           \
    WB_APART static void TYPE(max_##count)(int64_t begin, int32_t width, int32_t first,            \
                                           const REAL *restrict above, REAL *restrict y,           \
                                           int32_t *restrict index) {                              \
        TYPE(max_block)(begin, count, width, first, above, y, index);                              \
    }
MAX_BLOCK(16)
MAX_BLOCK(8)
MAX_BLOCK(4)
MAX_BLOCK(1)
#undef MAX_BLOCK

WB_APART static void TYPE(max_pairs)(int64_t n, int32_t width, int32_t first,
                                     const REAL *restrict above, REAL *restrict y,
                                     int32_t *restrict index) {
    IN_BLOCKS(n, max, width, first, above, y, index);
}

/* Each place of a window gets the number or 0, so that nothing is added up. */
WB_INLINE void TYPE(scatter_block)(int64_t begin, int count, int32_t width, int32_t first,
                                   const REAL *restrict y, const int32_t *restrict index,
                                   REAL *restrict above) {
    REAL *below = above + width;
    WB_INDEPENDENT for (int64_t i = begin; i < begin + count; i++) {
        const int32_t place = index[i] - first - 2 * (int32_t)i;
        const REAL value = y[i];
        above[2 * i] = place == 0 ? value : 0;
        above[2 * i + 1] = place == 1 ? value : 0;
        below[2 * i] = place == width ? value : 0;
        below[2 * i + 1] = place == width + 1 ? value : 0;
    }
}

#define SCATTER_BLOCK(count)                                                                       \
    WB_APART static void TYPE(scatter_##count)(                                                    \
        int64_t begin, int32_t width, int32_t first, const REAL *restrict y,                       \
        const int32_t *restrict index, REAL *restrict above) {                                     \
        TYPE(scatter_block)(begin, count, width, first, y, index, above);                          \
    }
SCATTER_BLOCK(16)
SCATTER_BLOCK(8)
SCATTER_BLOCK(4)
SCATTER_BLOCK(1)
#undef SCATTER_BLOCK

WB_APART static void TYPE(scatter_pairs)(int64_t n, int32_t width, int32_t first,
                                         const REAL *restrict y, const int32_t *restrict index,
                                         REAL *restrict above) {
    IN_BLOCKS(n, scatter, width, first, y, index, above);
}

void WB_ISA_NAME(TYPE(maxpool))(const wb_window_plane *plane) {
    const wb_window *w = plane->window;
    const int32_t width = (int32_t)w->call.in[0];
    if (TYPE(is_two_by_two)(plane->window)) {
        for (int64_t r = 0; r < w->call.out[1]; r++) {
            const int64_t from = 2 * r * w->call.in[0], to = r * w->call.out[0];
            const REAL *x = (const REAL *)plane->in + from;
            REAL *y = (REAL *)plane->out + to;
            TYPE(max_pairs)(w->call.out[0], width, (int32_t)from, x, y, plane->index_out + to);
        }
        return;
    }
    const int64_t count = wb_window_plane_out(plane->window);
    TYPE(fill)(plane->out, count, -(REAL)__builtin_inf());
    for (int64_t i = 0; i < count; i++) plane->index_out[i] = -1;
    TYPE(walk)(plane, TYPE(max_row), false, false);
}

/* A window that lies in the padding has no index. */
void WB_ISA_NAME(TYPE(pool_scatter))(const wb_window_plane *plane) {
    const wb_window *w = plane->window;
    const int32_t width = (int32_t)w->call.in[0];
    REAL *restrict x = plane->out;
    const REAL *restrict y = plane->in;
    const int64_t count = wb_window_plane_out(plane->window);
    if (TYPE(is_two_by_two)(plane->window)) {
        if (wb_window_plane_in(plane->window) > 4 * count)
            TYPE(fill)(x, wb_window_plane_in(plane->window), 0);
        for (int64_t r = 0; r < w->call.out[1]; r++) {
            const int64_t from = r * w->call.out[0], to = 2 * r * w->call.in[0];
            const int32_t *index = plane->index_in + from;
            TYPE(scatter_pairs)(w->call.out[0], width, (int32_t)to, y + from, index, x + to);
        }
        return;
    }
    TYPE(fill)(x, wb_window_plane_in(plane->window), 0);
    for (int64_t i = 0; i < count; i++)
        if (plane->index_in[i] >= 0) x[plane->index_in[i]] += y[i];
}

void WB_ISA_NAME(TYPE(pool_gather))(const wb_window_plane *plane) {
    REAL *restrict y = plane->out;
    const REAL *restrict x = plane->in;
    const int64_t count = wb_window_plane_out(plane->window);
    for (int64_t i = 0; i < count; i++) y[i] = plane->index_in[i] >= 0 ? x[plane->index_in[i]] : 0;
}

/* The pool whose result is one number for each plane. */
WB_INLINE bool TYPE(is_whole)(const wb_window *w) {
    for (int d = 0; d < 3; d++)
        if (w->call.out[d] != 1 || w->call.kernel[d] != w->call.in[d] || w->call.pad[d] != 0)
            return false;
    return true;
}

/* In sixteen sums on every instruction set, so that all give the same bits. */
WB_INLINE REAL TYPE(sum)(int64_t count, const REAL *x) {
    enum { SUMS = 16 };
    REAL sums[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (int k = 0; k < SUMS; k++) sums[k] += x[i + k];
    for (int k = 0; i < count; i++, k++) sums[k] += x[i];
    for (int width = SUMS / 2; width > 0; width /= 2)
        for (int k = 0; k < width; k++) sums[k] += sums[k + width];
    return sums[0];
}

WB_INLINE void TYPE(sum_row)(const TYPE(row) * row, int64_t step) {
    REAL *restrict y = row->out;
    const REAL *restrict x = row->in + row->start;
    for (int64_t i = row->low; i < row->high; i++) y[i] += x[i * step];
}

void WB_ISA_NAME(TYPE(meanpool))(const wb_window_plane *plane) {
    REAL *y = plane->out;
    const int64_t count = wb_window_plane_out(plane->window);
    const REAL taps = (REAL)wb_window_taps(plane->window);
    if (TYPE(is_whole)(plane->window)) {
        *y = TYPE(sum)(wb_window_plane_in(plane->window), plane->in) / taps;
        return;
    }
    TYPE(fill)(y, count, 0);
    TYPE(walk)(plane, TYPE(sum_row), false, false);
    for (int64_t i = 0; i < count; i++) y[i] /= taps;
}

WB_INLINE void TYPE(spread_row)(const TYPE(row) * row, int64_t step) {
    REAL *restrict x = row->out + row->start;
    const REAL *restrict y = row->in;
    for (int64_t i = row->low; i < row->high; i++) x[i * step] += y[i] / row->scale;
}

void WB_ISA_NAME(TYPE(meanpool_data))(const wb_window_plane *plane) {
    const wb_window *w = plane->window;
    if (TYPE(is_whole)(w)) {
        const REAL share = *(const REAL *)plane->in / (REAL)wb_window_taps(w);
        TYPE(fill)(plane->out, wb_window_plane_in(w), share);
        return;
    }
    TYPE(fill)(plane->out, wb_window_plane_in(w), 0);
    TYPE(walk)(plane, TYPE(spread_row), true, false);
}

WB_INLINE void TYPE(copy_row)(const TYPE(row) * row, int64_t step) {
    REAL *restrict y = row->out;
    const REAL *restrict x = row->in + row->start;
    for (int64_t i = row->low; i < row->high; i++) y[i] = x[i * step];
}

void WB_ISA_NAME(TYPE(unfold))(const wb_window_plane *plane) {
    const wb_window *w = plane->window;
    TYPE(fill)(plane->out, wb_window_plane_out(w) * wb_window_taps(w), 0);
    TYPE(walk)(plane, TYPE(copy_row), false, true);
}

WB_INLINE void TYPE(add_row)(const TYPE(row) * row, int64_t step) {
    REAL *restrict x = row->out + row->start;
    const REAL *restrict y = row->in;
    for (int64_t i = row->low; i < row->high; i++) x[i * step] += y[i];
}

void WB_ISA_NAME(TYPE(fold))(const wb_window_plane *plane) {
    TYPE(fill)(plane->out, wb_window_plane_in(plane->window), 0);
    TYPE(walk)(plane, TYPE(add_row), true, true);
}

#undef REAL
#undef TYPE
#undef IN_BLOCKS
