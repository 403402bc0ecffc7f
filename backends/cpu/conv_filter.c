/* The filter gradient: cut into blocks of channels x filters, and the images into parts, by shape
 * only; the parts are added in their order. Where there is one part, a block's sum goes to its
 * place while it is in the cache. */
#include "conv_plan.h"

typedef void block_fn(const wb_conv_block *block);
typedef void total_fn(const wb_conv_total *total);

static block_fn *const block_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(conv_block);
static total_fn *const total_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(conv_total);

enum { PIECES = 16, LANE_BYTES = 64 /* sums are laid out for the widest vectors */, NARROW = 2 };

typedef struct cut {
    bool narrow;
    int64_t images, image_parts;
    int64_t channels, channel_parts; /* of a block; blocks of a group */
    int64_t filters, filter_parts;
    int64_t pitch, chunk, together;
    int64_t sum;                 /* elements of a block's sum */
    int64_t box, lines, offsets; /* bytes of scratch of a worker */
    double flops;
} cut;

typedef struct job {
    wb_conv_plan plan;
    cut cut;
    const char *x, *y;
    char *dw, *sums, *scratch;
} job;

static int64_t blocks_of(const wb_conv_plan *plan, const cut *c) {
    return plan->groups * c->channel_parts * c->filter_parts;
}

static void cut_filters(const wb_conv_plan *plan, cut *c) {
    const int64_t lanes = LANE_BYTES / (int64_t)plan->size;
    const int64_t most = WB_CONV_COLUMN_BYTES / (int64_t)plan->size;
    c->narrow = plan->outer <= NARROW;
    c->filters = wb_conv_least(plan->outer, most);
    c->filter_parts = wb_conv_ceil(plan->outer, c->filters);
    c->pitch = c->narrow ? lanes * c->filters : wb_conv_ceil(c->filters, lanes) * lanes;
}

static void cut_channels(const wb_conv_plan *plan, cut *c) {
    const int64_t parts = wb_conv_ceil(plan->inner * plan->taps, WB_CONV_ROWS);
    c->channels = wb_conv_ceil(plan->inner, wb_conv_least(parts, plan->inner));
    c->channel_parts = wb_conv_ceil(plan->inner, c->channels);
    c->sum = c->channels * plan->taps * c->pitch;
    const int64_t one = c->channels * (int64_t)plan->size;
    c->chunk = plan->positions;
    while (c->chunk > WB_CONV_STRETCH &&
           wb_conv_box_bound(plan, c->chunk) * one > WB_CONV_BOX_BYTES)
        c->chunk = wb_conv_ceil(c->chunk / 2, WB_CONV_STRETCH) * WB_CONV_STRETCH;
    const int64_t box = wb_conv_box_bound(plan, c->chunk) * one;
    const int64_t fit = wb_conv_least(WB_CONV_STRETCH / plan->positions, WB_CONV_BOX_BYTES / box);
    c->together = c->narrow ? 1 : wb_conv_most(1, wb_conv_least(fit, plan->batch));
    c->box = wb_conv_aligned(c->together * box + WB_CONV_SLACK);
}

static cut cut_of(const wb_conv_plan *plan) {
    cut c = {0};
    if (plan->inner == 0 || plan->outer == 0) return c;
    cut_filters(plan, &c);
    if (plan->positions == 0 || plan->batch == 0) {
        c.channels = plan->inner;
        c.channel_parts = 1;
        return c;
    }
    cut_channels(plan, &c);
    c.flops = 2. * (double)(plan->positions * plan->batch * plan->groups) *
              (double)(plan->inner * plan->taps * plan->outer);
    const int64_t affordable = (int64_t)(c.flops / (double)WB_CONV_SMALL) + 1;
    const int64_t wanted = wb_conv_ceil(wb_conv_least(PIECES, affordable), blocks_of(plan, &c));
    c.images = wb_conv_ceil(plan->batch, wb_conv_least(wanted, plan->batch));
    c.image_parts = wb_conv_ceil(plan->batch, c.images);
    c.lines = wb_conv_aligned(WB_CONV_STRETCH * c.pitch * (int64_t)plan->size);
    c.offsets = wb_conv_aligned(c.channels * plan->taps * (int64_t)sizeof(int64_t));
    return c;
}

static int64_t sums_bytes(const wb_conv_plan *plan, const cut *c) {
    const int64_t sums =
        c->image_parts == 1 ? wb_cpu_threads() : c->image_parts * blocks_of(plan, c);
    return wb_conv_aligned(c->sum * sums * (int64_t)plan->size);
}

static int64_t worker_bytes(const cut *c) { return c->box + c->lines + c->offsets; }

int64_t wb_conv_filter_scratch(const wb_window *window) {
    const wb_conv_plan plan = wb_conv_forward_plan(window);
    const cut c = cut_of(&plan);
    return sums_bytes(&plan, &c) + worker_bytes(&c) * wb_cpu_threads();
}

/* A block by its number: channels fastest, then filters, then groups. */
typedef struct place {
    int64_t channel, channels, filter, filters; /* in the group */
    int64_t group;
} place;

static place block_at(const job *j, int64_t block) {
    const cut *c = &j->cut;
    place p = {.channel = block % c->channel_parts * c->channels,
               .filter = block / c->channel_parts % c->filter_parts * c->filters,
               .group = block / c->channel_parts / c->filter_parts};
    p.channels = wb_conv_least(c->channels, j->plan.inner - p.channel);
    p.filters = wb_conv_least(c->filters, j->plan.outer - p.filter);
    return p;
}

/* dw of a block from its sum, or the first of its sums. */
static void put_total(const job *j, int64_t block, const char *sum) {
    const wb_conv_plan *plan = &j->plan;
    const cut *c = &j->cut;
    const place p = block_at(j, block);
    const int64_t dw =
        (p.group * plan->outer + p.filter) * plan->outer_stride + p.channel * plan->inner_stride;
    const wb_conv_total total = {.plan = plan,
                                 .sum = sum,
                                 .parts = c->image_parts,
                                 .part_stride = c->sum * blocks_of(plan, c),
                                 .channels = p.channels,
                                 .filters = p.filters,
                                 .pitch = c->pitch,
                                 .narrow = c->narrow,
                                 .dw = j->dw + (size_t)dw * plan->size};
    total_table[wb_cpu_isa()][plan->size == 8](&total);
}

/* Piece: block + blocks * part of the images. */
static void block_task(void *context, int64_t piece, int worker) {
    const job *j = context;
    const wb_conv_plan *plan = &j->plan;
    const cut *c = &j->cut;
    const int64_t blocks = blocks_of(plan, c), image = piece / blocks * c->images;
    const place p = block_at(j, piece % blocks);
    const int64_t x =
        image * plan->source_image + (p.group * plan->inner + p.channel) * plan->source_plane;
    const int64_t y =
        image * plan->out_image + (p.group * plan->outer + p.filter) * plan->out_plane;
    const int64_t number = c->image_parts == 1 ? worker : piece;
    char *scratch = j->scratch + worker_bytes(c) * worker,
         *sum = j->sums + (size_t)(number * c->sum) * plan->size;
    const wb_conv_block block = {.plan = plan,
                                 .x = j->x + (size_t)x * plan->size,
                                 .y = j->y + (size_t)y * plan->size,
                                 .sum = sum,
                                 .images = wb_conv_least(c->images, plan->batch - image),
                                 .channels = p.channels,
                                 .filters = p.filters,
                                 .pitch = c->pitch,
                                 .narrow = c->narrow,
                                 .chunk = c->chunk,
                                 .together = c->together,
                                 .box = scratch,
                                 .lines = scratch + c->box,
                                 .offsets = (void *)(scratch + c->box + c->lines)};
    block_table[wb_cpu_isa()][plan->size == 8](&block);
    if (c->image_parts == 1) put_total(j, piece, sum);
}

static void total_task(void *context, int64_t block, int worker) {
    const job *j = context;
    (void)worker;
    put_total(j, block, j->sums + (size_t)(block * j->cut.sum) * j->plan.size);
}

void wb_conv_filter(const wb_window *window, const void *x, const void *y, void *dw,
                    void *scratch) {
    job j = {.plan = wb_conv_forward_plan(window), .x = x, .y = y, .dw = dw, .sums = scratch};
    j.cut = cut_of(&j.plan);
    const int64_t blocks = blocks_of(&j.plan, &j.cut);
    const int64_t sums = sums_bytes(&j.plan, &j.cut);
    j.scratch = j.sums + sums;
    if (j.cut.image_parts > 0)
        wb_conv_share(blocks * j.cut.image_parts, j.cut.flops, block_task, &j);
    if (j.cut.image_parts != 1) wb_conv_share(blocks, (double)sums, total_task, &j);
}
