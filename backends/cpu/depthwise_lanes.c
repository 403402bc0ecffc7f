/* Cuts small planes into groups of channels and of images, by shape only. */
#include "depthwise.h"

typedef void piece_fn(const wb_lanes_piece *piece);

static piece_fn *const gather_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(lanes_gather);
static piece_fn *const filter_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(lanes_filter);

enum {
    SHORT_BYTES = WB_CONV_VECTOR_BYTES / 2, /* of a row; longer ones fill vectors themselves */
    MOST_POSITIONS = 4096,                  /* of a plane: boxes stay in the caches near the core */
    PIECES = 16                             /* wanted at least, if there are this many images */
};

typedef struct cut {
    int64_t phases, channels, images;   /* of a piece */
    int64_t channel_parts, image_parts; /* numbers of pieces */
    int64_t boxes, taps, positions;     /* vectors of a worker: boxes, weights, results */
    int64_t tables;                     /* bytes */
    double flops;
} cut;

typedef struct job {
    wb_conv_kind kind;
    cut cut;
    wb_lanes_piece piece; /* what all have in common */
    int64_t filters, batch;
    char *scratch;
    wb_tile_fn *done;
    void *context;
} job;

/* Also with a stride: otherwise rows would be taken apart and put together again. */
bool wb_lanes_takes(const wb_window *w) {
    const int64_t row =
        wb_conv_most(w->call.in[0], w->call.out[0]) * (int64_t)wb_dtype_size(w->dtype);
    return (row <= SHORT_BYTES || w->call.stride[0] > 1) &&
           w->call.in[0] * w->call.in[1] * w->call.in[2] <= MOST_POSITIONS &&
           w->call.out[0] * w->call.out[1] * w->call.out[2] <= MOST_POSITIONS;
}

static int64_t table_of(const wb_conv_plan *plan) {
    return 2 * plan->taps + plan->axis[1].grid * plan->axis[2].grid + plan->source_plane;
}

static cut cut_of(wb_conv_kind kind, const wb_window *window) {
    cut c = {.phases = kind == WB_CONV_DATA ? wb_conv_phases(window) : 1};
    wb_conv_plan plan = wb_conv_plan_of(kind, window, 0);
    for (int64_t phase = 0; phase < c.phases; phase++) {
        plan = wb_conv_plan_of(kind, window, phase);
        c.boxes += wb_conv_is_empty(&plan) ? 0 : wb_conv_box_bound(&plan, plan.positions);
        c.taps += plan.taps;
        c.tables += (int64_t)sizeof(wb_lanes_grid) + (int64_t)sizeof(int64_t) * table_of(&plan);
        c.flops += 2. * (double)(plan.taps * plan.positions) * (double)(plan.groups * plan.batch);
    }
    c.tables = wb_conv_aligned(c.tables);
    c.channels = WB_CONV_VECTOR_BYTES / (int64_t)plan.size;
    c.channel_parts = wb_conv_ceil(plan.groups, c.channels);
    c.image_parts = kind == WB_CONV_FILTER ? 1 : wb_conv_ceil(PIECES, c.channel_parts);
    c.images = wb_conv_most(1, wb_conv_ceil(plan.batch, c.image_parts));
    c.image_parts = kind == WB_CONV_FILTER ? 1 : wb_conv_ceil(plan.batch, c.images);
    c.positions = plan.out_plane;
    return c;
}

static int64_t worker_bytes(const cut *c) {
    return WB_CONV_VECTOR_BYTES * (c->boxes + c->taps + c->positions);
}

int64_t wb_lanes_scratch(wb_conv_kind kind, const wb_window *window) {
    const cut c = cut_of(kind, window);
    return c.tables + worker_bytes(&c) * wb_cpu_threads();
}

/* Along one axis: the place in the box of a position of the source, or -1. */
static int64_t position_in_box(const wb_conv_plan *plan, const wb_conv_box *box, int d,
                               int64_t at) {
    const int64_t step = plan->axis[d].step, place = at - box->origin[d];
    if (place < 0 || place >= box->part[d] * step) return -1;
    int64_t remainders = box->block, stride = 1;
    for (int e = 0; e < d; e++) {
        remainders *= plan->axis[e].step;
        stride *= box->part[e];
    }
    return place % step * remainders + place / step * stride;
}

static void fill_source(const wb_conv_plan *plan, const wb_conv_box *box, int64_t *source) {
    const wb_conv_axis *axis = plan->axis;
    for (int64_t i2 = 0; i2 < axis[2].in; i2++)
        for (int64_t i1 = 0; i1 < axis[1].in; i1++)
            for (int64_t i0 = 0; i0 < axis[0].in; i0++) {
                const int64_t p0 = position_in_box(plan, box, 0, i0),
                              p1 = position_in_box(plan, box, 1, i1),
                              p2 = position_in_box(plan, box, 2, i2);
                *source++ = p0 < 0 || p1 < 0 || p2 < 0 ? -1 : p0 + p1 + p2;
            }
}

/* The grid of a plan; its tables from `table` on. */
static wb_lanes_grid grid_of(const wb_conv_plan *plan, int64_t *table) {
    int64_t *places = table + plan->taps, *rows = places + plan->taps,
            *source = rows + plan->axis[1].grid * plan->axis[2].grid;
    for (int64_t t = 0; t < plan->taps; t++) places[t] = wb_conv_tap(plan, t);
    if (!wb_conv_is_empty(plan)) {
        const wb_conv_box box = wb_conv_box_of(plan, 0, plan->positions);
        wb_conv_offsets(plan, &box, 1, table);
        for (int64_t r = 0; r < plan->axis[1].grid * plan->axis[2].grid; r++)
            rows[r] =
                box.part[0] * (r % plan->axis[1].grid + box.part[1] * (r / plan->axis[1].grid));
        fill_source(plan, &box, source);
    }
    return (wb_lanes_grid){
        .plan = *plan, .offsets = table, .places = places, .rows = rows, .source = source};
}

static void prepare(job *j, const wb_window *window, void *tables) {
    wb_lanes_grid *grids = tables;
    int64_t *table = (int64_t *)(grids + j->cut.phases);
    int64_t box = 0, taps = 0;
    for (int64_t phase = 0; phase < j->cut.phases; phase++) {
        const wb_conv_plan plan = wb_conv_plan_of(j->kind, window, phase);
        grids[phase] = grid_of(&plan, table);
        grids[phase].box_at = box, grids[phase].taps_at = taps;
        table += table_of(&plan);
        box += wb_conv_is_empty(&plan) ? 0 : wb_conv_box_bound(&plan, plan.positions);
        taps += plan.taps;
    }
    j->piece.grids = grids;
    j->piece.phases = j->cut.phases, j->piece.boxes = box;
}

static void piece_task(void *context, int64_t index, int worker) {
    const job *j = context;
    const cut *c = &j->cut;
    const bool is_double = j->piece.grids->plan.size == 8;
    wb_lanes_piece piece = j->piece;
    piece.channel = index % c->channel_parts * c->channels;
    piece.channels = wb_conv_least(c->channels, j->filters - piece.channel);
    piece.image = index / c->channel_parts * c->images;
    piece.images =
        j->kind == WB_CONV_FILTER ? j->batch : wb_conv_least(c->images, j->batch - piece.image);
    piece.box = j->scratch + worker_bytes(c) * worker;
    piece.weights = (char *)piece.box + WB_CONV_VECTOR_BYTES * (size_t)c->boxes;
    piece.result = (char *)piece.weights + WB_CONV_VECTOR_BYTES * (size_t)c->taps;
    (j->kind == WB_CONV_FILTER ? filter_table : gather_table)[wb_cpu_isa()][is_double](&piece);
    for (int64_t i = 0; j->done && j->kind != WB_CONV_FILTER && i < piece.images; i++)
        j->done(j->context, 0, 0, c->positions, piece.channel + j->filters * (piece.image + i),
                piece.channels, worker);
}

void wb_lanes(wb_conv_kind kind, const wb_window *w, const void *a, const void *b, void *out,
              void *scratch, wb_tile_fn *done, void *context) {
    job j = {.kind = kind,
             .cut = cut_of(kind, w),
             .piece = {.source = a, .other = b, .out = out},
             .filters = w->call.groups,
             .batch = w->call.batch,
             .done = done,
             .context = context};
    prepare(&j, w, scratch);
    j.scratch = (char *)scratch + j.cut.tables;
    wb_conv_share(j.cut.channel_parts * j.cut.image_parts, j.cut.flops, piece_task, &j);
}
