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

/* Whether this convolution is computed so: by shape alone. */
bool wb_winograd_takes(wb_conv_kind kind, const wb_window *window);

size_t wb_winograd_scratch(wb_conv_kind kind, const wb_window *window);

/* As wb_cpu_conv. */
void wb_winograd(wb_conv_kind kind, const wb_window *window, const void *a, const void *b,
                 void *out, void *scratch, wb_tile_fn *done, void *context);

/* ---- what the code per instruction set (kernels/winograd_real.h) gives to winograd.c ---- */

enum {
    WB_WINOGRAD_POINTS = 16,  /* elements of a transformed tile */
    WB_WINOGRAD_COLUMNS = 12, /* output channels between two visits of the transformed tiles */
    WB_WINOGRAD_DEPTH =
        64 /* input channels of a sum, so that errors do not grow with their number */
};

/* From `source` planes, `inner` an image, to `out` planes, `outer` an image. */
typedef struct wb_winograd_plan {
    int64_t inner, outer, batch;
    int64_t in[2], out[2], pad[2];
    int64_t tiles[2];                   /* of a plane */
    int64_t inner_stride, outer_stride; /* of the channels in the stored weights */
    bool turned;                        /* tap t of the sum is the last but t that is stored */
} wb_winograd_plan;

/* Tile rows first .. first + rows - 1 of some images. */
typedef struct wb_winograd_piece {
    const wb_winograd_plan *plan;
    const void *source, *weights; /* of the first image; transformed (inner, outer, points) */
    void *out;                    /* of the first image */
    int64_t images, first, rows;
    int64_t column; /* for done: the first plane of out */
    int64_t height; /* tiles of a piece, and some: from one channel to the next */
    int64_t pitch;  /* of a line */
    /* scratch: (height, inner, points), (height, WB_WINOGRAD_COLUMNS, points), 4 lines, zeros */
    void *transformed, *products, *lines;
    const void *zeros;
    wb_tile_fn *done;
    void *context;
    int worker;
} wb_winograd_piece;

/* Elements between the points of transformed tiles: a vector may be written beyond the last. */
static inline int64_t wb_winograd_point(int64_t height, int64_t channels) {
    return height * channels + 16;
}

/* weights(): the filters of `count` output channels from `first` on. */
#define WB_DECLARE(enumerator, suffix)                                                             \
    void wb_winograd_weights_f32_##suffix(const wb_winograd_plan *plan, const void *w,             \
                                          int64_t first, int64_t count, void *transformed);        \
    void wb_winograd_weights_f64_##suffix(const wb_winograd_plan *plan, const void *w,             \
                                          int64_t first, int64_t count, void *transformed);        \
    void wb_winograd_piece_f32_##suffix(const wb_winograd_piece *piece);                           \
    void wb_winograd_piece_f64_##suffix(const wb_winograd_piece *piece);
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE

#endif
