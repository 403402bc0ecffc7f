/* Forward and data: cuts the result into pieces, by shape only, and hands them to the threads. */
#include "conv_plan.h"

typedef void piece_fn(const wb_conv_piece *piece);
typedef void strip_fn(const wb_conv_plan *plan, const void *weights, int64_t columns, void *packed);

static piece_fn *const piece_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(conv_piece);
static strip_fn *const strip_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(conv_strip);

enum { PIECES = 16 /* wanted at least, if each is worth a thread */, OUTER = 128, DEEP = 512 };

/* How the result is cut: groups of images, groups of channels, parts of the plane, parts of the
 * output channels. Several phases share a piece, and its planes are whole. */
typedef struct cut {
    int64_t phases;
    int64_t images, count, outer, groups, panels;               /* of a piece */
    int64_t image_parts, count_parts, outer_parts, group_parts; /* numbers of pieces */
    int64_t box, tile, offsets;                                 /* bytes of scratch of a worker */
    int64_t weights;                                            /* bytes of packed weights */
    double flops;
} cut;

typedef struct gather {
    const wb_window *window;
    wb_conv_kind kind;
    cut cut;
    const void *source, *weights;
    void *out;
    char *packed, *scratch; /* scratch: one part for each worker */
    wb_tile_fn *done;
    void *context;
} gather;

static int64_t strips_of(const wb_conv_plan *plan) {
    return wb_conv_ceil(plan->outer, WB_CONV_STRIP);
}

static int64_t strip_bytes(const wb_conv_plan *plan) {
    return plan->inner * plan->taps * WB_CONV_STRIP * (int64_t)plan->size;
}

static int64_t packed_bytes(const wb_conv_plan *plan) {
    return wb_conv_aligned(strip_bytes(plan) * strips_of(plan) * plan->groups);
}

static int64_t box_bytes(const wb_conv_plan *plan, int64_t count) {
    return plan->taps ? wb_conv_box_bound(plan, count) * plan->inner * (int64_t)plan->size : 0;
}

/* Cuts into parts of at least `least` units, as many as wanted. */
static int64_t part_size(int64_t total, int64_t wanted, int64_t unit, int64_t least) {
    const int64_t size = wb_conv_ceil(wb_conv_ceil(total, wb_conv_most(wanted, 1)), unit) * unit;
    return wb_conv_least(total, wb_conv_most(size, least));
}

/* Positions of a piece: a box in L2, and parts enough for the threads. */
static int64_t count_of(const wb_conv_plan *plan, int64_t wanted) {
    const int64_t panel = wb_conv_panel(plan);
    int64_t count = part_size(plan->positions, wanted, panel, 4 * panel);
    while (count > 4 * panel && box_bytes(plan, count) > WB_CONV_BOX_BYTES)
        count = wb_conv_ceil(count / 2, panel) * panel;
    return count;
}

/* Small planes go together, so that panels are full; few channels need none. */
static int64_t images_of(const wb_conv_plan *plan) {
    if (plan->outer <= WB_CONV_FLAT_OUTER) return 1;
    const int64_t panels = plan->inner * plan->taps < DEEP ? 4 : 8; /* copies cost less then */
    const int64_t wanted = wb_conv_ceil(panels * wb_conv_panel(plan), plan->positions);
    const int64_t fit = WB_CONV_BOX_BYTES / wb_conv_most(1, box_bytes(plan, plan->positions));
    return wb_conv_least(wb_conv_most(1, wb_conv_least(wanted, fit)), plan->batch);
}

static cut cut_of(wb_conv_kind kind, const wb_window *window) {
    wb_conv_plan plan = wb_conv_plan_of(kind, window, 0);
    cut c = {.phases = kind == WB_CONV_FORWARD ? 1 : wb_conv_phases(window)};
    if (plan.positions == 0 || plan.batch == 0 || plan.outer == 0) return (cut){0};
    const double plane = 2. * (double)(plan.inner * plan.outer * plan.taps * plan.positions);
    c.flops = plane * (double)(plan.groups * plan.batch * c.phases);
    const int64_t affordable = (int64_t)(c.flops / (double)WB_CONV_SMALL) + 1;
    const int64_t wanted = wb_conv_least(PIECES, affordable);
    c.image_parts = wb_conv_ceil(plan.batch, images_of(&plan));
    c.images = wb_conv_ceil(plan.batch, c.image_parts);
    int64_t pieces = c.image_parts * plan.groups;
    c.count = c.images > 1 ? plan.positions : count_of(&plan, wb_conv_ceil(wanted, pieces));
    c.count_parts = c.phases > 1 ? 1 : wb_conv_ceil(plan.positions, c.count);
    pieces *= c.count_parts;
    c.outer = part_size(plan.outer, wb_conv_ceil(wanted, pieces), WB_CONV_STRIP, OUTER);
    c.outer_parts = wb_conv_ceil(plan.outer, c.outer);
    const int64_t enough = wb_conv_most(1, pieces * c.outer_parts / wanted);
    c.groups = c.outer_parts == 1 ? wb_conv_least(plan.groups, enough) : 1;
    c.group_parts = wb_conv_ceil(plan.groups, c.groups);
    const int64_t weights = plan.inner * plan.taps * c.outer * (int64_t)plan.size;
    c.panels = weights > WB_CONV_WEIGHTS ? WB_CONV_PANELS : 1;
    const int64_t tile =
        wb_conv_most(c.outer * WB_CONV_PANEL_BYTES, WB_CONV_FLAT_OUTER * WB_CONV_FLAT_BYTES);
    c.tile = wb_conv_aligned(c.panels * tile);
    for (int64_t phase = 0; phase < c.phases; phase++) {
        plan = wb_conv_plan_of(kind, window, phase);
        const int64_t box = box_bytes(&plan, c.count) * c.images + WB_CONV_SLACK;
        const int64_t offsets = plan.inner * plan.taps * (int64_t)sizeof(int64_t);
        if (c.box < wb_conv_aligned(box)) c.box = wb_conv_aligned(box);
        if (c.offsets < wb_conv_aligned(offsets)) c.offsets = wb_conv_aligned(offsets);
        c.weights += packed_bytes(&plan);
    }
    return c;
}

static int64_t panel_bytes(void) {
    return wb_conv_aligned(WB_CONV_DEPTH * WB_CONV_PANEL_BYTES + WB_CONV_SLACK);
}

static int64_t worker_bytes(const cut *c) { return c->box + c->tile + c->offsets + panel_bytes(); }

int64_t wb_conv_gather_scratch(wb_conv_kind kind, const wb_window *window) {
    const cut c = cut_of(kind, window);
    return c.weights + worker_bytes(&c) * wb_cpu_threads();
}

/* Piece: strip + strips * group, of all phases. */
static void pack_task(void *context, int64_t piece, int worker) {
    const gather *g = context;
    char *packed = g->packed;
    (void)worker;
    for (int64_t phase = 0; phase < g->cut.phases; phase++) {
        const wb_conv_plan plan = wb_conv_plan_of(g->kind, g->window, phase);
        const int64_t strips = strips_of(&plan), first = piece % strips * WB_CONV_STRIP;
        const wb_conv_axis *axis = plan.axis;
        const int64_t kernel = axis[0].kernel * axis[1].kernel * axis[2].kernel;
        const int64_t start = piece / strips * kernel * plan.inner * plan.outer;
        strip_table[wb_cpu_isa()][plan.size == 8](
            &plan,
            (const char *)g->weights + (size_t)(start + first * plan.outer_stride) * plan.size,
            wb_conv_least(WB_CONV_STRIP, plan.outer - first), packed + piece * strip_bytes(&plan));
        packed += packed_bytes(&plan);
    }
}

/* All positions of a piece on the grid of one phase, a box at a time. */
static void run_phase(const gather *g, wb_conv_piece piece, int64_t first, int64_t end) {
    for (; first < end; first += g->cut.count) {
        piece.first = first;
        piece.count = wb_conv_least(g->cut.count, end - first);
        piece_table[wb_cpu_isa()][piece.plan->size == 8](&piece);
    }
}

static void gather_task(void *context, int64_t index, int worker) {
    const gather *g = context;
    const cut *c = &g->cut;
    wb_conv_plan plan = wb_conv_plan_of(g->kind, g->window, 0);
    const int64_t part = index % c->count_parts, channels = index / c->count_parts;
    const int64_t outer = channels % c->outer_parts * c->outer;
    const int64_t group = channels / c->outer_parts % c->group_parts * c->groups;
    const int64_t image = channels / c->outer_parts / c->group_parts * c->images;
    const int64_t column = group * plan.outer + outer;
    const int64_t source = image * plan.source_image + group * plan.inner * plan.source_plane;
    const int64_t out = image * plan.out_image + column * plan.out_plane;
    char *scratch = g->scratch + worker_bytes(c) * worker, *packed = g->packed;
    wb_conv_piece piece = {.plan = &plan,
                           .source = (const char *)g->source + (size_t)source * plan.size,
                           .out = (char *)g->out + (size_t)out * plan.size,
                           .images = wb_conv_least(c->images, plan.batch - image),
                           .outer = wb_conv_least(c->outer, plan.outer - outer),
                           .groups = wb_conv_least(c->groups, plan.groups - group),
                           .panels = c->panels,
                           .column = column + image * plan.outer * plan.groups,
                           .panel = scratch,
                           .box = scratch + panel_bytes(),
                           .tile = scratch + panel_bytes() + c->box,
                           .offsets = (void *)(scratch + panel_bytes() + c->box + c->tile),
                           .done = c->phases == 1 ? g->done : NULL,
                           .context = g->context,
                           .worker = worker};
    for (int64_t phase = 0; phase < c->phases; phase++) {
        plan = wb_conv_plan_of(g->kind, g->window, phase);
        const int64_t strip = group * strips_of(&plan) + outer / WB_CONV_STRIP;
        piece.weights = packed + strip * strip_bytes(&plan);
        packed += packed_bytes(&plan);
        if (c->phases > 1)
            run_phase(g, piece, 0, plan.positions);
        else
            run_phase(g, piece, part * c->count,
                      wb_conv_least(plan.positions, (part + 1) * c->count));
    }
    for (int64_t i = 0; c->phases > 1 && g->done && i < piece.images; i++)
        g->done(g->context, 0, 0, plan.out_plane, piece.column + i * plan.outer * plan.groups,
                piece.outer * piece.groups, worker);
}

static void pack(gather *g) {
    const wb_conv_plan plan = wb_conv_plan_of(g->kind, g->window, 0);
    wb_conv_share(strips_of(&plan) * plan.groups, (double)g->cut.weights, pack_task, g);
}

int64_t wb_conv_gather_kept(wb_conv_kind kind, const wb_window *window) {
    return cut_of(kind, window).weights;
}

void wb_conv_gather_keep(wb_conv_kind kind, const wb_window *window, const void *weights,
                         void *kept) {
    pack(&(gather){.window = window,
                   .kind = kind,
                   .cut = cut_of(kind, window),
                   .weights = weights,
                   .packed = kept});
}

void wb_conv_gather(wb_conv_kind kind, const wb_window *window, const void *source,
                    const void *weights, void *out, void *scratch, wb_tile_fn *done,
                    void *context) {
    gather g = {.window = window,
                .kind = kind,
                .cut = cut_of(kind, window),
                .source = source,
                .weights = weights,
                .out = out,
                .packed = window->kept ? window->kept : scratch,
                .done = done,
                .context = context};
    const cut *c = &g.cut;
    if (c->phases == 0) return;
    g.scratch = window->kept ? scratch : g.packed + c->weights;
    if (!window->kept) pack(&g);
    wb_conv_share(c->image_parts * c->count_parts * c->outer_parts * c->group_parts, c->flops,
                  gather_task, &g);
}
