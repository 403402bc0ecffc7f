/* Convolutions of 3 x 3 with stride 1 by minimal filtering, F(2x2, 3x3): 16 products for each 2 x 2
 * outputs instead of 36 (Winograd 1980; Lavin and Gray 2016). Planes are cut into tiles of 4 x 4
 * that overlap by two. With d a tile, g a filter and * element by element,
 *
 *     y = A' ((G g G') * (B' d B)) A        summed over channels between the two transforms,
 *
 * which is one matrix product for each of the 16 elements. The data gradient is the same with the
 * filter turned; the filter gradient sums over tiles instead of channels:
 *
 *     dg = G' ((B' d B) * (A dy A')) G
 *
 * Errors are of the size of the direct sum's (docs/accuracy.md), but an infinity or a NaN in x
 * reaches all outputs of the tiles that hold it. */
#ifndef WB_CPU_WINOGRAD_H
#define WB_CPU_WINOGRAD_H

#include "isa.h"
#include "window.h"

/* Whether this convolution is computed in this way; depends on its shape only. */
bool wb_winograd_takes(wb_conv_kind kind, const wb_window *window);

/* is_kept: with weights that wb_winograd_keep made ready. */
int64_t wb_winograd_scratch(wb_conv_kind kind, const wb_window *window, bool is_kept);

/* As wb_cpu_conv_kept and _keep; not for the filter gradient. */
int64_t wb_winograd_kept(wb_conv_kind kind, const wb_window *window);
void wb_winograd_keep(wb_conv_kind kind, const wb_window *window, const void *weights, void *kept);

/* As wb_cpu_conv. */
void wb_winograd(wb_conv_kind kind, const wb_window *window, const void *a, const void *b,
                 void *out, void *scratch, wb_tile_fn *done, void *context);

/* ---- winograd_plan.c: what is computed, and in which pieces ---- */

/* From `source` planes, `inner` an image, to `out` planes, `outer` an image. */
typedef struct wb_winograd_plan {
    int64_t inner, outer, batch;
    int64_t in[2], out[2], pad[2];
    int64_t tiles[2];                   /* of a plane */
    int64_t inner_stride, outer_stride; /* of the channels in the stored weights */
    bool turned;                        /* tap t of the sum is the last but t that is stored */
} wb_winograd_plan;

/* How planes are cut into pieces of tiles, by shape only. */
typedef struct wb_winograd_cut {
    int64_t images, rows; /* of a piece: whole images, or rows of tiles of one */
    int64_t image_parts, row_parts;
    int64_t height, pitch;
} wb_winograd_cut;

wb_winograd_plan wb_winograd_plan_of(wb_conv_kind kind, const wb_window *window);
wb_winograd_cut wb_winograd_cut_of(const wb_winograd_plan *plan, int64_t channels, size_t size);

/* ---- winograd_filter.c ---- */

int64_t wb_winograd_filter_scratch(const wb_winograd_plan *plan, size_t size);
void wb_winograd_filter(const wb_winograd_plan *plan, size_t size, const void *x, const void *y,
                        void *dw, void *scratch);

/* ---- from the code for each instruction set (kernels/winograd_real.h) to winograd.c ---- */

enum {
    WB_WINOGRAD_POINTS = 16,  /* elements of a transformed tile */
    WB_WINOGRAD_BLOCK = 64,   /* channels and filters of a block of the filter gradient */
    WB_WINOGRAD_COLUMNS = 12, /* output channels between two visits of the transformed tiles */
    WB_WINOGRAD_DEPTH =
        64 /* input channels of a sum, so that errors do not grow with their number */
};

/* Tile rows first .. first + rows - 1 of some images. */
typedef struct wb_winograd_piece {
    const wb_winograd_plan *plan;
    const void *source;    /* of the first image */
    const void *weights;   /* transformed: (inner, output channels, points), */
    int64_t weights_point; /* and from one point to the next */
    void *out;             /* of the first image */
    int64_t images, first, rows;
    int64_t channels; /* of the source, from its first plane on */
    int64_t column;   /* for done: the first plane of out */
    int64_t height;   /* tiles of a piece, and some: from one channel to the next */
    int64_t pitch;    /* of a line */
    /* scratch: (height, channels, points), (height, WB_WINOGRAD_COLUMNS, points), 4 lines, zeros */
    void *transformed, *products, *lines;
    const void *zeros;
    wb_tile_fn *done;
    void *context;
    int worker;
} wb_winograd_piece;

/* The filter gradient of some channels and filters from the tiles of a piece, whose source is x. */
typedef struct wb_winograd_block {
    wb_winograd_piece piece;
    const void *y; /* of the first image, from the first filter on */
    int64_t filters;
    void *turned;   /* scratch (WB_WINOGRAD_BLOCK, height, points) */
    void *products; /* scratch (height, WB_WINOGRAD_BLOCK, points): of y */
    void *sum;      /* (WB_WINOGRAD_BLOCK channels, WB_WINOGRAD_BLOCK filters, points) */
} wb_winograd_block;

/* dw of a block from `parts` sums in their order. */
typedef struct wb_winograd_total {
    const wb_winograd_plan *plan;
    const void *sum;
    int64_t parts, channels, filters;
    void *dw; /* at the block's first channel and filter */
} wb_winograd_total;

/* Elements of a sum. */
enum { WB_WINOGRAD_SUM = WB_WINOGRAD_POINTS * WB_WINOGRAD_BLOCK * WB_WINOGRAD_BLOCK };

/* Elements between the points of `rows` x `columns` transformed tiles or filters: a vector may be
 * written beyond the last, and the points of one tile do not meet in one set of a cache. */
static inline int64_t wb_winograd_point(int64_t rows, int64_t columns) {
    return rows * columns + 16;
}

/* weights(): the filters of `count` output channels, of which w and `to` are the first, transformed
 * with `point` elements from one point to the next. tiles(): the source's. columns(): results of
 * `count` output channels from `first` on, whose weights are the piece's. */
#define WB_DECLARE(enumerator, suffix)                                                             \
    void wb_winograd_weights_f32_##suffix(const wb_winograd_plan *plan, const void *w,             \
                                          int64_t count, void *to, int64_t point);                 \
    void wb_winograd_weights_f64_##suffix(const wb_winograd_plan *plan, const void *w,             \
                                          int64_t count, void *to, int64_t point);                 \
    void wb_winograd_tiles_f32_##suffix(const wb_winograd_piece *piece);                           \
    void wb_winograd_tiles_f64_##suffix(const wb_winograd_piece *piece);                           \
    void wb_winograd_columns_f32_##suffix(const wb_winograd_piece *piece, int64_t first,           \
                                          int64_t count);                                          \
    void wb_winograd_columns_f64_##suffix(const wb_winograd_piece *piece, int64_t first,           \
                                          int64_t count);                                          \
    void wb_winograd_block_f32_##suffix(const wb_winograd_block *block);                           \
    void wb_winograd_block_f64_##suffix(const wb_winograd_block *block);                           \
    void wb_winograd_total_f32_##suffix(const wb_winograd_total *total);                           \
    void wb_winograd_total_f64_##suffix(const wb_winograd_total *total);
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE

#endif
