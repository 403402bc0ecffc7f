/* Convolutions with one channel and one filter to each group ("depthwise"): each plane of the
 * result comes from one plane of the source.
 *
 * A grid is what wb_conv_plan describes: forward and the filter gradient have one, the data
 * gradient one for each remainder modulo the stride. The source plane is copied into a box; a
 * column is those taps of the kernel that read the same places of neighbouring rows of the box, so
 * that each of these is loaded once for several rows of the result. */
#ifndef WB_CPU_DEPTHWISE_H
#define WB_CPU_DEPTHWISE_H

#include "conv_plan.h"

typedef struct wb_depthwise_grid {
    wb_conv_plan plan;
    wb_conv_box box;       /* of the whole grid */
    int64_t height;        /* taps of a column: 1, 3, 5 or 7 */
    const int64_t *places; /* of the taps in the stored kernel, (height, columns) */
    const int64_t *starts; /* of the columns in the box */
} wb_depthwise_grid;

/* Planes of the result, or of the source for the filter gradient, in a row. */
typedef struct wb_depthwise_piece {
    const wb_depthwise_grid *grids;
    int64_t phases; /* grids */
    int64_t planes, first;
    const void *source; /* all planes */
    const void *other;  /* the weights; filter gradient: all planes of y */
    void *out;          /* all planes; filter gradient: of the weights */
    void *box;
    void *rows; /* results that wait for the other phases; filter gradient: sums, in vectors */
} wb_depthwise_piece;

/* The same with small planes, whose rows would leave most of a vector empty, and with strides:
 * positions are vectors of channels, in boxes and results, and squares are turned on the way. */
typedef struct wb_lanes_grid {
    wb_conv_plan plan;
    const int64_t *offsets, *places; /* of the taps in the box and in the stored kernel */
    const int64_t *rows;             /* where the rows of the grid begin in the box */
    const int64_t *source;           /* where a position of the source is in the box, or -1 */
    int64_t box_at, taps_at;         /* vectors in front of its box, and of its weights */
} wb_lanes_grid;

typedef struct wb_lanes_piece {
    const wb_lanes_grid *grids;
    int64_t phases, boxes; /* grids; vectors of all boxes */
    int64_t channel, channels, image, images;
    const void *source, *other; /* as above */
    void *out;
    void *box, *weights, *result; /* vectors; the filter gradient has sums, and y */
} wb_lanes_piece;

bool wb_depthwise_takes(const wb_window *window);
int64_t wb_depthwise_scratch(wb_conv_kind kind, const wb_window *window);
void wb_depthwise(wb_conv_kind kind, const wb_window *window, const void *a, const void *b,
                  void *out, void *scratch, wb_tile_fn *done, void *context);

/* depthwise_lanes.c */
bool wb_lanes_takes(const wb_window *window);
int64_t wb_lanes_scratch(wb_conv_kind kind, const wb_window *window);
void wb_lanes(wb_conv_kind kind, const wb_window *window, const void *a, const void *b, void *out,
              void *scratch, wb_tile_fn *done, void *context);

/* Bytes between the rows that wait for the other phases: a vector may be written beyond a row. */
static inline int64_t wb_depthwise_pitch(const wb_conv_plan *plan) {
    return wb_conv_ceil(plan->axis[0].grid * (int64_t)plan->size, 64) * 64 / (int64_t)plan->size;
}

/* gather(): planes first .. of all images. filter(): the weights' gradient of channels first .. */
#define WB_DECLARE(enumerator, suffix)                                                             \
    void wb_depthwise_gather_f32_##suffix(const wb_depthwise_piece *piece);                        \
    void wb_depthwise_gather_f64_##suffix(const wb_depthwise_piece *piece);                        \
    void wb_depthwise_filter_f32_##suffix(const wb_depthwise_piece *piece);                        \
    void wb_depthwise_filter_f64_##suffix(const wb_depthwise_piece *piece);
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE
#define WB_DECLARE(enumerator, suffix)                                                             \
    void wb_lanes_gather_f32_##suffix(const wb_lanes_piece *piece);                                \
    void wb_lanes_gather_f64_##suffix(const wb_lanes_piece *piece);                                \
    void wb_lanes_filter_f32_##suffix(const wb_lanes_piece *piece);                                \
    void wb_lanes_filter_f64_##suffix(const wb_lanes_piece *piece);
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE

#endif
