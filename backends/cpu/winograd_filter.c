/* The filter gradient by minimal filtering: blocks of channels x filters, each summed over parts of
 * the tiles; the parts are added in their order. Where there is one part, a block's sum goes to
 * its place while it is in the cache. */
#include <string.h>

#include "conv_plan.h"
#include "winograd.h"

typedef void block_fn(const wb_winograd_block *block);
typedef void total_fn(const wb_winograd_total *total);

static block_fn *const block_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(winograd_block);
static total_fn *const total_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(winograd_total);

enum { TASKS = 8 /* wanted at least */ };

typedef struct job {
    const wb_winograd_plan *plan;
    wb_winograd_cut cut;
    int64_t channel_parts, filter_parts;
    int64_t pieces, parts;                                /* of tiles; of their sums */
    size_t size;                                          /* bytes of an element */
    int64_t transformed, turned, products, lines, worker; /* bytes of scratch */
    const char *x, *y;
    char *dw, *sums, *scratch;
} job;

static job job_of(const wb_winograd_plan *p, size_t size) {
    const int64_t block = WB_WINOGRAD_BLOCK;
    job j = {.plan = p,
             .cut = wb_winograd_cut_of(p, 2 * block, size),
             .channel_parts = wb_conv_ceil(p->inner, block),
             .filter_parts = wb_conv_ceil(p->outer, block),
             .size = size};
    j.pieces = j.cut.image_parts * j.cut.row_parts;
    j.parts = wb_conv_least(j.pieces, wb_conv_ceil(TASKS, j.channel_parts * j.filter_parts));
    j.parts = wb_conv_ceil(j.pieces, wb_conv_ceil(j.pieces, j.parts)); /* none is empty */
    const int64_t tiles = WB_WINOGRAD_POINTS * wb_winograd_point(j.cut.height, block);
    j.transformed = j.products = wb_conv_aligned(tiles * (int64_t)size);
    j.turned = wb_conv_aligned(j.cut.height * block * (int64_t)size);
    j.lines = wb_conv_aligned(4 * j.cut.pitch * (int64_t)size);
    const int64_t zeros = wb_conv_aligned(wb_conv_most(p->in[0], p->out[0]) * (int64_t)size);
    j.worker = j.transformed + j.products + j.turned + j.lines + zeros;
    return j;
}

static int64_t blocks_of(const job *j) { return j->channel_parts * j->filter_parts; }

static int64_t sums_bytes(const job *j) {
    const int64_t sums = j->parts == 1 ? wb_cpu_threads() : blocks_of(j) * j->parts;
    return sums * WB_WINOGRAD_SUM * (int64_t)j->size;
}

int64_t wb_winograd_filter_scratch(const wb_winograd_plan *plan, size_t size) {
    const job j = job_of(plan, size);
    return sums_bytes(&j) + j.worker * wb_cpu_threads();
}

/* dw of a block from its sum, or the first of its sums. */
static void put_total(const job *j, int64_t number, const char *sum) {
    const wb_winograd_plan *p = j->plan;
    const int64_t channel = number % j->channel_parts * WB_WINOGRAD_BLOCK,
                  filter = number / j->channel_parts * WB_WINOGRAD_BLOCK;
    total_table[wb_cpu_isa()][j->size == 8](&(wb_winograd_total){
        .plan = p,
        .sum = sum,
        .parts = j->parts,
        .channels = wb_conv_least(WB_WINOGRAD_BLOCK, p->inner - channel),
        .filters = wb_conv_least(WB_WINOGRAD_BLOCK, p->outer - filter),
        .dw = j->dw + (size_t)(channel * p->inner_stride + filter * p->outer_stride) * j->size});
}

static char *sum_of(const job *j, int64_t number) {
    return j->sums + (size_t)(number * WB_WINOGRAD_SUM) * j->size;
}

/* Task: part + parts * block. */
static void block_task(void *context, int64_t index, int worker) {
    const job *j = context;
    const wb_winograd_plan *p = j->plan;
    const wb_winograd_cut *c = &j->cut;
    const int64_t number = index / j->parts, each = wb_conv_ceil(j->pieces, j->parts),
                  begin = index % j->parts * each, end = wb_conv_least(begin + each, j->pieces),
                  channel = number % j->channel_parts * WB_WINOGRAD_BLOCK,
                  filter = number / j->channel_parts * WB_WINOGRAD_BLOCK;
    char *scratch = j->scratch + worker * j->worker,
         *lines = scratch + j->transformed + j->products + j->turned;
    wb_winograd_block block = {
        .piece = {.plan = p,
                  .channels = wb_conv_least(WB_WINOGRAD_BLOCK, p->inner - channel),
                  .height = c->height,
                  .pitch = c->pitch,
                  .transformed = scratch,
                  .lines = lines,
                  .zeros = lines + j->lines},
        .filters = wb_conv_least(WB_WINOGRAD_BLOCK, p->outer - filter),
        .products = scratch + j->transformed,
        .turned = scratch + j->transformed + j->products,
        .sum = sum_of(j, j->parts == 1 ? worker : index)};
    memset(lines, 0, (size_t)(j->worker - j->transformed - j->products - j->turned));
    memset(block.sum, 0, (size_t)WB_WINOGRAD_SUM * j->size);
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / c->row_parts * c->images;
        const size_t x = (size_t)((channel + image * p->inner) * p->in[0] * p->in[1]),
                     y = (size_t)((filter + image * p->outer) * p->out[0] * p->out[1]);
        block.piece.first = i % c->row_parts * c->rows;
        block.piece.images = wb_conv_least(c->images, p->batch - image);
        block.piece.rows = wb_conv_least(c->rows, p->tiles[1] - block.piece.first);
        block.piece.source = j->x + x * j->size;
        block.y = j->y + y * j->size;
        block_table[wb_cpu_isa()][j->size == 8](&block);
    }
    if (j->parts == 1) put_total(j, number, block.sum);
}

static void total_task(void *context, int64_t number, int worker) {
    const job *j = context;
    (void)worker;
    put_total(j, number, sum_of(j, number * j->parts));
}

void wb_winograd_filter(const wb_winograd_plan *plan, size_t size, const void *x, const void *y,
                        void *dw, void *scratch) {
    job j = job_of(plan, size);
    j.x = x, j.y = y, j.dw = dw, j.sums = scratch;
    j.scratch = j.sums + sums_bytes(&j);
    const double flops = 2. * (double)WB_WINOGRAD_POINTS * (double)(plan->inner * plan->outer) *
                         (double)(plan->tiles[0] * plan->tiles[1] * plan->batch);
    wb_conv_share(blocks_of(&j) * j.parts, flops, block_task, &j);
    if (j.parts != 1) wb_conv_share(blocks_of(&j), (double)sums_bytes(&j), total_task, &j);
}
