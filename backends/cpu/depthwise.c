/* Cuts the planes into pieces, by shape only, and hands them to the threads. */
#include "depthwise.h"

typedef void piece_fn(const wb_depthwise_piece *piece);

static piece_fn *const gather_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(depthwise_gather);
static piece_fn *const filter_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(depthwise_filter);

enum {
    LEAST_CHANNELS = 8,   /* the filter gradient's pieces are channels */
    PIECES = 16,          /* wanted at least, if there are this many planes */
    PIECE_BYTES = 1 << 14 /* of boxes: a part of L1 */
};

typedef struct cut {
    int64_t phases, units, each; /* units: planes, or channels of the filter gradient */
    int64_t tables, box, rows;   /* bytes; box and rows for each worker */
    double flops;
} cut;

typedef struct job {
    wb_conv_kind kind;
    cut cut;
    wb_depthwise_piece piece; /* what all have in common */
    int64_t channels, positions;
    char *scratch;
    wb_tile_fn *done;
    void *context;
} job;

static int64_t box_bytes(const wb_conv_plan *plan) {
    if (wb_conv_is_empty(plan)) return 0;
    return wb_conv_box_bound(plan, plan->positions) * (int64_t)plan->size;
}

bool wb_depthwise_takes(const wb_window *w) {
    if (w->call.groups < LEAST_CHANNELS || w->call.channels != w->call.groups ||
        w->call.filters != w->call.groups)
        return false;
    for (wb_conv_kind kind = WB_CONV_FORWARD; kind <= WB_CONV_DATA; kind++) {
        const wb_conv_plan plan = wb_conv_plan_of(kind, w, 0);
        if (box_bytes(&plan) > WB_CONV_BOX_BYTES) return false;
    }
    return true;
}

static cut cut_of(wb_conv_kind kind, const wb_window *window) {
    cut c = {.phases = kind == WB_CONV_DATA ? wb_conv_phases(window) : 1};
    int64_t bytes = 1, tables = 0, rows = 0;
    wb_conv_plan plan = wb_conv_plan_of(kind, window, 0);
    const int64_t size = (int64_t)plan.size, steps = plan.axis[0].out_step;
    for (int64_t phase = 0; phase < c.phases; phase++) {
        plan = wb_conv_plan_of(kind, window, phase);
        bytes = wb_conv_most(bytes, box_bytes(&plan));
        tables += 3 * plan.taps * (int64_t)sizeof(int64_t) + (int64_t)sizeof(wb_depthwise_grid);
        rows = wb_conv_most(rows, plan.axis[1].grid * plan.axis[2].grid);
        c.flops += 2. * (double)(plan.taps * plan.positions) * (double)(plan.groups * plan.batch);
    }
    plan = wb_conv_plan_of(kind, window, 0);
    c.units = kind == WB_CONV_FILTER ? plan.groups : plan.groups * plan.batch;
    c.each = wb_conv_least(wb_conv_ceil(c.units, PIECES), PIECE_BYTES / bytes);
    c.each = wb_conv_most(1, c.each);
    if (kind == WB_CONV_FILTER)
        rows = plan.taps * WB_CONV_VECTOR_BYTES / size;
    else
        rows *= steps > 1 ? steps * wb_depthwise_pitch(&plan) : 0;
    c.tables = wb_conv_aligned(tables);
    c.box = wb_conv_aligned(c.each * bytes + WB_CONV_SLACK);
    c.rows = wb_conv_aligned(c.each * rows * size);
    return c;
}

int64_t wb_depthwise_scratch(wb_conv_kind kind, const wb_window *window) {
    if (wb_lanes_takes(window)) return wb_lanes_scratch(kind, window);
    const cut c = cut_of(kind, window);
    return c.tables + (c.box + c.rows) * wb_cpu_threads();
}

/* Taps of an axis ordered by where they read. */
static int64_t tap_at(const wb_conv_axis *axis, int64_t i) {
    return axis->offset_step < 0 ? axis->taps - 1 - i : i;
}

/* Taps of a column: those that read one row after the other, where there are rows. */
static int64_t height_of(const wb_conv_axis *rows) {
    const bool is_close =
        rows->grid > 1 && rows->step == 1 && (rows->offset_step == 1 || rows->offset_step == -1);
    return is_close && (rows->taps == 3 || rows->taps == 5 || rows->taps == 7) ? rows->taps : 1;
}

/* The grid of a plan; table has room for 3 * taps numbers. */
static wb_depthwise_grid grid_of(const wb_conv_plan *plan, int64_t *table) {
    const wb_conv_axis *axis = plan->axis;
    int64_t *offsets = table, *places = offsets + plan->taps, *starts = places + plan->taps;
    wb_depthwise_grid grid = {
        .plan = *plan, .height = height_of(&axis[1]), .places = places, .starts = starts};
    if (wb_conv_is_empty(plan)) return grid;
    grid.box = wb_conv_box_of(plan, 0, plan->positions);
    wb_conv_offsets(plan, &grid.box, 1, offsets);
    const int64_t columns = axis[0].taps, height = grid.height, taps = axis[0].taps * axis[1].taps;
    for (int64_t i = 0; i < plan->taps / height; i++) {
        const int64_t row = i / columns * height, i2 = row / axis[1].taps;
        for (int64_t k = 0; k < height; k++) {
            const int64_t tap = tap_at(&axis[0], i % columns) +
                                columns * tap_at(&axis[1], row % axis[1].taps + k) +
                                taps * tap_at(&axis[2], i2);
            if (k == 0) *starts++ = offsets[tap];
            *places++ = wb_conv_tap(plan, tap);
        }
    }
    return grid;
}

static void prepare(job *j, const wb_window *window, void *tables) {
    wb_depthwise_grid *grids = tables;
    int64_t *table = (int64_t *)(grids + j->cut.phases);
    for (int64_t phase = 0; phase < j->cut.phases; phase++) {
        const wb_conv_plan plan = wb_conv_plan_of(j->kind, window, phase);
        grids[phase] = grid_of(&plan, table);
        table += 3 * plan.taps;
    }
    j->piece.grids = grids;
    j->piece.phases = j->cut.phases;
}

/* `done` for planes of one image at a time. */
static void tell(const job *j, int64_t first, int64_t planes, int worker) {
    for (int64_t to = first + planes, part; first < to; first += part) {
        part = wb_conv_least(to - first, j->channels - first % j->channels);
        j->done(j->context, 0, 0, j->positions, first, part, worker);
    }
}

static void piece_task(void *context, int64_t index, int worker) {
    const job *j = context;
    const cut *c = &j->cut;
    const bool is_double = j->piece.grids->plan.size == 8;
    wb_depthwise_piece piece = j->piece;
    piece.first = index * c->each;
    piece.planes = wb_conv_least(c->each, c->units - piece.first);
    piece.box = j->scratch + (c->box + c->rows) * worker;
    piece.rows = (char *)piece.box + c->box;
    (j->kind == WB_CONV_FILTER ? filter_table : gather_table)[wb_cpu_isa()][is_double](&piece);
    if (j->kind != WB_CONV_FILTER && j->done) tell(j, piece.first, piece.planes, worker);
}

void wb_depthwise(wb_conv_kind kind, const wb_window *w, const void *a, const void *b, void *out,
                  void *scratch, wb_tile_fn *done, void *context) {
    if (wb_lanes_takes(w)) {
        wb_lanes(kind, w, a, b, out, scratch, done, context);
        return;
    }
    const int64_t *sizes = kind == WB_CONV_DATA ? w->call.in : w->call.out;
    job j = {.kind = kind,
             .cut = cut_of(kind, w),
             .piece = {.source = a, .other = b, .out = out},
             .channels = w->call.groups,
             .positions = sizes[0] * sizes[1] * sizes[2],
             .done = done,
             .context = context};
    prepare(&j, w, scratch);
    j.scratch = (char *)scratch + j.cut.tables;
    wb_conv_share(wb_conv_ceil(j.cut.units, j.cut.each), j.cut.flops, piece_task, &j);
}
