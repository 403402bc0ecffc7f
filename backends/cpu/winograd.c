/* Hands the pieces of the planes to the threads. */
#include "winograd.h"

#include <string.h>

#include "conv_plan.h"

typedef void weights_fn(const wb_winograd_plan *plan, const void *w, int64_t count, void *to,
                        int64_t point);
typedef void tiles_fn(const wb_winograd_piece *piece);
typedef void columns_fn(const wb_winograd_piece *piece, int64_t first, int64_t count);

static weights_fn *const weights_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(winograd_weights);
static tiles_fn *const tiles_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(winograd_tiles);
static columns_fn *const columns_table[WB_ISA_COUNT][2] = WB_ISA_PAIRS(winograd_columns);

/* Bytes of scratch memory. Weights that are not kept are transformed first, then workers have
 * pieces. If there is one piece, its tiles come first, then workers have output channels, whose
 * weights they transform where they multiply them: those are in the cache then. */
typedef struct layout {
    bool is_one;
    int64_t weights, tiles, products, lines, zeros;
    int64_t shared, worker; /* of all workers, and of each */
} layout;

static int64_t points_of(int64_t rows, int64_t columns, size_t size) {
    return wb_conv_aligned(WB_WINOGRAD_POINTS * wb_winograd_point(rows, columns) * (int64_t)size);
}

static int64_t all_weights(const wb_winograd_plan *p, size_t size) {
    return points_of(p->inner, p->outer, size);
}

static layout layout_of(const wb_winograd_plan *p, const wb_winograd_cut *c, size_t size,
                        bool is_kept) {
    layout l = {.is_one = c->image_parts * c->row_parts == 1,
                .tiles = points_of(c->height, p->inner, size),
                .products = points_of(c->height, WB_WINOGRAD_COLUMNS, size),
                .lines = wb_conv_aligned(4 * c->pitch * (int64_t)size),
                .zeros = wb_conv_aligned(p->in[0] * (int64_t)size)};
    l.weights = is_kept    ? 0
                : l.is_one ? points_of(p->inner, WB_WINOGRAD_COLUMNS, size)
                           : all_weights(p, size);
    const int64_t tiles = l.tiles + l.lines + l.zeros;
    l.shared = l.is_one ? tiles : l.weights;
    l.worker = l.products + (l.is_one ? l.weights : tiles);
    return l;
}

int64_t wb_winograd_scratch(wb_conv_kind kind, const wb_window *window, bool is_kept) {
    const size_t size = wb_dtype_size(window->dtype);
    const wb_winograd_plan plan = wb_winograd_plan_of(kind, window);
    if (kind == WB_CONV_FILTER) return wb_winograd_filter_scratch(&plan, size);
    const wb_winograd_cut cut = wb_winograd_cut_of(&plan, plan.inner, size);
    const layout l = layout_of(&plan, &cut, size, is_kept);
    return l.shared + l.worker * wb_cpu_threads();
}

/* ---- the work ---- */

typedef struct job {
    wb_winograd_plan plan;
    wb_winograd_cut cut;
    layout layout;
    size_t size; /* bytes of an element */
    const char *source, *weights;
    char *transformed; /* weights */
    char *out, *shared, *scratch;
    wb_tile_fn *done;
    void *context;
} job;

/* Those of `count` output channels from `first` on. */
static void transform_weights(const job *j, int64_t first, int64_t count, char *to, int64_t point) {
    weights_table[wb_cpu_isa()][j->size == 8](
        &j->plan, j->weights + (size_t)(first * j->plan.outer_stride) * j->size, count, to, point);
}

/* Output channels whose filters are transformed together. */
enum { FILTERS = 8 };

static void weights_task(void *context, int64_t index, int worker) {
    const job *j = context;
    const wb_winograd_plan *p = &j->plan;
    const int64_t first = index * FILTERS;
    (void)worker;
    transform_weights(j, first, wb_conv_least(FILTERS, p->outer - first),
                      j->transformed + (size_t)(first * p->inner) * j->size,
                      wb_winograd_point(p->inner, p->outer));
}

static void transform_all_weights(job *j) {
    wb_conv_share(wb_conv_ceil(j->plan.outer, FILTERS), (double)all_weights(&j->plan, j->size),
                  weights_task, j);
}

/* tiles: memory for them, followed by memory for lines. */
static wb_winograd_piece piece_of(const job *j, int64_t index, char *tiles, int worker) {
    const wb_winograd_plan *p = &j->plan;
    const wb_winograd_cut *c = &j->cut;
    const int64_t image = index / c->row_parts * c->images, first = index % c->row_parts * c->rows;
    const size_t source = (size_t)(image * p->inner * p->in[0] * p->in[1]),
                 out = (size_t)(image * p->outer * p->out[0] * p->out[1]);
    char *lines = tiles + j->layout.tiles;
    return (wb_winograd_piece){.plan = p,
                               .source = j->source + source * j->size,
                               .weights = j->transformed,
                               .weights_point = wb_winograd_point(p->inner, p->outer),
                               .out = j->out + out * j->size,
                               .images = wb_conv_least(c->images, p->batch - image),
                               .first = first,
                               .rows = wb_conv_least(c->rows, p->tiles[1] - first),
                               .channels = p->inner,
                               .column = image * p->outer,
                               .height = c->height,
                               .pitch = c->pitch,
                               .transformed = tiles,
                               .lines = lines,
                               .zeros = lines + j->layout.lines,
                               .done = j->done,
                               .context = j->context,
                               .worker = worker};
}

static void transform_tiles(const job *j, const wb_winograd_piece *piece) {
    memset(piece->lines, 0, (size_t)(j->layout.lines + j->layout.zeros));
    tiles_table[wb_cpu_isa()][j->size == 8](piece);
}

static void piece_task(void *context, int64_t index, int worker) {
    const job *j = context;
    const layout *l = &j->layout;
    char *scratch = j->scratch + worker * l->worker;
    wb_winograd_piece piece = piece_of(j, index, scratch + l->products, worker);
    piece.products = scratch;
    transform_tiles(j, &piece);
    columns_table[wb_cpu_isa()][j->size == 8](&piece, 0, j->plan.outer);
}

static void tiles_task(void *context, int64_t index, int worker) {
    const job *j = context;
    const wb_winograd_piece piece = piece_of(j, index, j->shared, worker);
    transform_tiles(j, &piece);
}

static void columns_task(void *context, int64_t index, int worker) {
    const job *j = context;
    const wb_winograd_plan *p = &j->plan;
    const int64_t first = index * WB_WINOGRAD_COLUMNS,
                  count = wb_conv_least(WB_WINOGRAD_COLUMNS, p->outer - first);
    char *scratch = j->scratch + worker * j->layout.worker, *weights = scratch + j->layout.products;
    wb_winograd_piece piece = piece_of(j, 0, j->shared, worker);
    piece.products = scratch;
    if (j->layout.weights) {
        piece.weights = weights;
        piece.weights_point = wb_winograd_point(p->inner, WB_WINOGRAD_COLUMNS);
        transform_weights(j, first, count, weights, piece.weights_point);
    } else
        piece.weights = j->transformed + (size_t)(first * p->inner) * j->size;
    columns_table[wb_cpu_isa()][j->size == 8](&piece, first, count);
}

int64_t wb_winograd_kept(wb_conv_kind kind, const wb_window *window) {
    const wb_winograd_plan plan = wb_winograd_plan_of(kind, window);
    return all_weights(&plan, wb_dtype_size(window->dtype));
}

void wb_winograd_keep(wb_conv_kind kind, const wb_window *window, const void *weights, void *kept) {
    transform_all_weights(&(job){.plan = wb_winograd_plan_of(kind, window),
                                 .size = wb_dtype_size(window->dtype),
                                 .weights = weights,
                                 .transformed = kept});
}

void wb_winograd(wb_conv_kind kind, const wb_window *window, const void *a, const void *b,
                 void *out, void *scratch, wb_tile_fn *done, void *context) {
    job j = {.plan = wb_winograd_plan_of(kind, window),
             .size = wb_dtype_size(window->dtype),
             .source = a,
             .weights = b,
             .transformed = window->kept ? window->kept : scratch,
             .out = out,
             .shared = scratch,
             .done = done,
             .context = context};
    if (kind == WB_CONV_FILTER) {
        wb_winograd_filter(&j.plan, j.size, a, b, out, scratch);
        return;
    }
    const wb_winograd_plan *p = &j.plan;
    j.cut = wb_winograd_cut_of(p, p->inner, j.size);
    j.layout = layout_of(p, &j.cut, j.size, window->kept);
    j.scratch = j.shared + j.layout.shared;
    const double flops = 2. * (double)WB_WINOGRAD_POINTS * (double)(p->inner * p->outer) *
                         (double)(p->tiles[0] * p->tiles[1] * p->batch);
    if (j.layout.is_one) {
        wb_conv_share(1, 0, tiles_task, &j);
        wb_conv_share(wb_conv_ceil(p->outer, WB_WINOGRAD_COLUMNS), flops, columns_task, &j);
        return;
    }
    if (!window->kept) transform_all_weights(&j);
    wb_conv_share(j.cut.image_parts * j.cut.row_parts, flops, piece_task, &j);
}
