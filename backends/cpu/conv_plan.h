/* The plan of a convolution: every kind of it is one loop.
 *
 * Forward and data both gather: position i of a grid meets tap t of the kernel at position
 * i * step + offset + t * offset_step of the source plane, for each axis alone. Forward has one
 * grid, y. The data gradient with stride s has s grids per axis, the positions of dx that are equal
 * modulo s: inside one of them the taps that count are an arithmetic progression and the step is 1,
 * so that nothing is multiplied by the zeros between the strides. The filter gradient runs over the
 * grid of forward and sums over it.
 *
 * A piece of work copies what it reads of the source into a box: zeros where there is padding, and
 * along each axis the positions sorted by their remainder modulo step, so that neighbours on the
 * grid are neighbours in the box for every tap. */
#ifndef WB_CPU_CONV_PLAN_H
#define WB_CPU_CONV_PLAN_H

#include "isa.h"
#include "pool.h"
#include "window.h"

enum {
    WB_CONV_PANEL_BYTES = 192,    /* positions of a packed panel: three vectors of the widest set */
    WB_CONV_STRIP = 8,            /* output channels of a packed strip of weights */
    WB_CONV_DEPTH = 160,          /* most rows of a panel: it stays in L1 beside a strip */
    WB_CONV_BOX_BYTES = 1 << 19,  /* a box should be no larger: a part of L2 */
    WB_CONV_TILE_BYTES = 1 << 15, /* results that go to `done` at once: they are in cache then */
    WB_CONV_COLUMN_BYTES = 256,   /* most filters of a block of the filter gradient */
    WB_CONV_ROWS = 576,           /* about the most rows of such a block */
    WB_CONV_STRETCH = 96,         /* positions between two visits of a block */
    WB_CONV_SMALL = 500000,       /* flops that are not worth a thread */
    WB_CONV_FLAT_BYTES = 512,     /* positions of a panel of few channels that is not packed */
    WB_CONV_FLAT_OUTER = 2,       /* channels that are few */
    WB_CONV_WEIGHTS = 1 << 19,    /* bytes of weights that stay in L2 from panel to panel */
    WB_CONV_PANELS = 8,           /* that share the parts of larger ones */
    WB_CONV_VECTOR_BYTES = 64,    /* of the widest set */
    WB_CONV_SLACK = 576           /* bytes beyond a buffer that a vector may touch */
};

typedef struct wb_conv_axis {
    int64_t in;                  /* size of the source plane */
    int64_t grid;                /* positions */
    int64_t step;                /* of the source, from one position to the next */
    int64_t taps;                /* that meet this grid; may be 0 */
    int64_t offset, offset_step; /* source of position 0 at the first tap, and from tap to tap */
    int64_t tap, tap_step;       /* places of the taps in the stored kernel */
    int64_t kernel;              /* size of the stored kernel */
    int64_t out, first,
        out_step; /* size of the result, place of position 0, and from one to the next */
} wb_conv_axis;

typedef struct wb_conv_plan {
    size_t size; /* bytes of an element */
    wb_conv_axis axis[3];
    int64_t positions;    /* of the grid */
    int64_t taps;         /* that meet it */
    int64_t inner, outer; /* channels summed over and computed, of one group */
    int64_t groups, batch;
    int64_t inner_stride, outer_stride; /* of their channels in the stored weights */
    int64_t source_plane, source_image; /* elements */
    int64_t out_plane, out_image;
} wb_conv_plan;

/* The source of grid positions first .. first + count - 1 of one image, see above. */
typedef struct wb_conv_box {
    int64_t low[3];    /* first grid position */
    int64_t origin[3]; /* first source position, may lie in the padding */
    int64_t extent[3]; /* source positions */
    int64_t part[3];   /* source positions with the same remainder */
    int64_t block;     /* elements with the same remainders, and room for a vector, where they
                        * are not all */
    int64_t volume;    /* elements of one channel */
} wb_conv_box;

/* Positions of a panel that are neighbours in the box, and in a row of the result. */
typedef struct wb_conv_run {
    int64_t at;     /* position inside the panel */
    int64_t source; /* in the box, without the tap's offset */
    int64_t target; /* in the result, from the piece's plane on */
    int64_t length;
} wb_conv_run;

/* Positions first .. first + count - 1 of some images, of some output channels of one group, or of
 * all of some groups. More than one image only with the whole grid. */
typedef struct wb_conv_piece {
    const wb_conv_plan *plan;
    const void *source;  /* its first plane in the first image */
    const void *weights; /* packed, from its first strip on */
    void *out;           /* its first plane in the first image */
    int64_t images, first, count, outer, groups;
    int64_t panels;           /* that share a part of the weights while it is in cache */
    int64_t column;           /* for done: the first plane of out */
    void *box, *panel, *tile; /* scratch */
    int64_t *offsets;
    wb_tile_fn *done; /* may be NULL */
    void *context;
    int worker;
} wb_conv_piece;

/* A block of the filter gradient: channels channel .. and filters filter .. of one group, summed
 * over some images into rows (channel, tap) of `pitch` filters. */
typedef struct wb_conv_block {
    const wb_conv_plan *plan; /* of forward */
    const void *x, *y;        /* their first planes in the first image */
    void *sum;
    int64_t images, channels, filters, pitch;
    bool narrow;      /* pitch holds a vector of partial sums for each filter, not the filters */
    int64_t chunk;    /* positions of a box, a multiple of WB_CONV_STRETCH unless it is all */
    int64_t together; /* images of a stretch, more than one only with whole planes */
    void *box, *lines;
    int64_t *offsets;
} wb_conv_block;

/* The last step of the filter gradient: dw of a block from `parts` partial sums in their order. */
typedef struct wb_conv_total {
    const wb_conv_plan *plan;
    const void *sum;
    int64_t parts, part_stride; /* elements */
    int64_t channels, filters, pitch;
    bool narrow;
    void *dw; /* at the block's first channel and filter */
} wb_conv_total;

wb_conv_plan wb_conv_forward_plan(const wb_window *window);

/* phase: 0 .. wb_conv_phases() - 1 */
int64_t wb_conv_phases(const wb_window *window);
wb_conv_plan wb_conv_data_plan(const wb_window *window, int64_t phase);

/* The data gradient's plan of a phase, or the one of forward and the filter gradient. */
wb_conv_plan wb_conv_plan_of(wb_conv_kind kind, const wb_window *window, int64_t phase);

wb_conv_box wb_conv_box_of(const wb_conv_plan *plan, int64_t first, int64_t count);

/* Elements of the largest box of `count` positions. */
int64_t wb_conv_box_bound(const wb_conv_plan *plan, int64_t count);

/* Where the taps begin in the box: offsets[tap + taps * channel]. */
void wb_conv_offsets(const wb_conv_plan *plan, const wb_conv_box *box, int64_t channels,
                     int64_t *offsets);

/* Runs of the `count` positions from `at` on among images x piece positions; returns their number,
 * at most count. A box and its runs may also be seen flat, positions that are not on the grid among
 * them: then at and count are places in the box. */
int wb_conv_runs(const wb_conv_piece *piece, const wb_conv_box *box, int64_t at, int64_t count,
                 wb_conv_run *runs);

int wb_conv_flat_runs(const wb_conv_piece *piece, const wb_conv_box *box, int64_t at, int64_t count,
                      wb_conv_run *runs);

/* The places in the box of a piece's first position, and one past its last. */
void wb_conv_span(const wb_conv_piece *piece, const wb_conv_box *box, int64_t *first, int64_t *end);

/* Place of a tap in the stored kernel. */
int64_t wb_conv_tap(const wb_conv_plan *plan, int64_t tap);

/* No tap meets the grid, or it has no positions. */
static inline bool wb_conv_is_empty(const wb_conv_plan *plan) {
    return plan->taps == 0 || plan->positions == 0;
}

static inline int64_t wb_conv_panel(const wb_conv_plan *plan) {
    return WB_CONV_PANEL_BYTES / (int64_t)plan->size;
}

static inline int64_t wb_conv_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t wb_conv_most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t wb_conv_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* Sizes of scratch memory are counted in int64_t also where size_t has 32 bits: the backend tells
 * those that no memory has. */
static inline int64_t wb_conv_aligned(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* The two families of kinds: conv_gather.c and conv_filter.c. */
int64_t wb_conv_gather_scratch(wb_conv_kind kind, const wb_window *window);
void wb_conv_gather(wb_conv_kind kind, const wb_window *window, const void *source,
                    const void *weights, void *out, void *scratch, wb_tile_fn *done, void *context);
int64_t wb_conv_gather_kept(wb_conv_kind kind, const wb_window *window);
void wb_conv_gather_keep(wb_conv_kind kind, const wb_window *window, const void *weights,
                         void *kept);
int64_t wb_conv_filter_scratch(const wb_window *window);
void wb_conv_filter(const wb_window *window, const void *x, const void *y, void *dw, void *scratch);

/* wb_cpu_parallel, or a loop on the calling thread when the work is too small to share. */
static inline void wb_conv_share(int64_t pieces, double flops, wb_task_fn *task, void *context) {
    if (flops < (double)WB_CONV_SMALL)
        wb_cpu_alone(pieces, task, context);
    else
        wb_cpu_parallel(pieces, task, context);
}

/* The code per instruction set, kernels/conv.c. _strip packs the weights of at most WB_CONV_STRIP
 * output channels, from the first of them on: packed (WB_CONV_STRIP, taps, inner). */
#define WB_DECLARE(enumerator, suffix)                                                             \
    void wb_conv_piece_f32_##suffix(const wb_conv_piece *piece);                                   \
    void wb_conv_piece_f64_##suffix(const wb_conv_piece *piece);                                   \
    void wb_conv_strip_f32_##suffix(const wb_conv_plan *plan, const void *weights,                 \
                                    int64_t columns, void *packed);                                \
    void wb_conv_strip_f64_##suffix(const wb_conv_plan *plan, const void *weights,                 \
                                    int64_t columns, void *packed);                                \
    void wb_conv_block_f32_##suffix(const wb_conv_block *block);                                   \
    void wb_conv_block_f64_##suffix(const wb_conv_block *block);                                   \
    void wb_conv_total_f32_##suffix(const wb_conv_total *total);                                   \
    void wb_conv_total_f64_##suffix(const wb_conv_total *total);
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE

#endif
