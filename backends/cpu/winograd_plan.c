/* Which convolutions are computed by minimal filtering, as sums of what, and how planes are cut
 * into pieces: by shape only. */
#include "conv_plan.h"
#include "winograd.h"

enum {
    LEAST_CHANNELS = 16,    /* of both sides; fewer do not pay for the tiles' transforms, */
    LEAST_FILTERS = 512,    /* channels times filters, neither, */
    LEAST_TILES = 16,       /* and fewer tiles not for the filters' */
    LEAST_SUMMED = 32,      /* channels of both sides for the filter gradient, */
    LEAST_ROW = 7,          /* and tiles of a row: both sides are transformed there */
    MOST_TILES = 128,       /* of a piece */
    TILE_STEP = 16,         /* a vector of the widest set */
    MOST_ROW = 256,         /* tiles of a row */
    CACHE_BYTES = 512 << 10 /* for the transformed tiles of a piece */
};

/* ---- what is computed ---- */

wb_winograd_plan wb_winograd_plan_of(wb_conv_kind kind, const wb_window *w) {
    const bool is_data = kind == WB_CONV_DATA;
    wb_winograd_plan p = {.inner = is_data ? w->call.filters : w->call.channels,
                          .outer = is_data ? w->call.channels : w->call.filters,
                          .batch = w->call.batch,
                          .inner_stride = is_data ? 9 * w->call.channels : 9,
                          .outer_stride = is_data ? 9 : 9 * w->call.channels,
                          .turned = w->call.flip != is_data};
    for (int d = 0; d < 2; d++) {
        p.in[d] = is_data ? w->call.out[d] : w->call.in[d];
        p.out[d] = is_data ? w->call.in[d] : w->call.out[d];
        p.pad[d] = is_data ? 2 - w->call.pad[d] : w->call.pad[d];
        p.tiles[d] = wb_conv_ceil(p.out[d], 2);
    }
    return p;
}

bool wb_winograd_takes(wb_conv_kind kind, const wb_window *w) {
    if (w->call.groups != 1 || w->call.channels < LEAST_CHANNELS ||
        w->call.filters < LEAST_CHANNELS || w->call.channels * w->call.filters < LEAST_FILTERS ||
        w->call.in[2] != 1 || w->call.out[2] != 1 || w->call.kernel[2] != 1)
        return false;
    for (int d = 0; d < 2; d++)
        if (w->call.kernel[d] != 3 || w->call.stride[d] != 1 || w->call.dilation[d] != 1 ||
            w->call.pad[d] < 0 || w->call.pad[d] > 2 || w->call.in[d] < 2 || w->call.out[d] < 2)
            return false;
    const wb_winograd_plan p = wb_winograd_plan_of(kind, w);
    if (kind == WB_CONV_FILTER &&
        (p.inner < LEAST_SUMMED || p.outer < LEAST_SUMMED || p.tiles[0] < LEAST_ROW))
        return false;
    return p.tiles[0] <= MOST_ROW && p.tiles[0] * p.tiles[1] * p.batch >= LEAST_TILES;
}

/* ---- how it is cut ---- */

static int64_t whole(int64_t tiles) { return wb_conv_ceil(tiles, TILE_STEP) * TILE_STEP; }

/* How many units of this many tiles fill vectors best. */
static int64_t best_of(int64_t unit, int64_t units, int64_t most) {
    int64_t best = 1;
    for (int64_t n = 2; n <= units && n * unit <= most; n++)
        if (n * whole(best * unit) >= best * whole(n * unit)) best = n;
    return best;
}

wb_winograd_cut wb_winograd_cut_of(const wb_winograd_plan *p, int64_t channels, size_t size) {
    const int64_t fit = CACHE_BYTES / (WB_WINOGRAD_POINTS * channels * (int64_t)size),
                  most = wb_conv_most(TILE_STEP, wb_conv_least(fit, MOST_TILES)),
                  plane = p->tiles[0] * p->tiles[1],
                  widest = wb_conv_most(p->out[0], p->in[0] + p->pad[0]);
    wb_winograd_cut c = {.images = 1, .rows = p->tiles[1], .pitch = whole(widest) + 4 * TILE_STEP};
    if (plane <= most)
        c.images = best_of(plane, p->batch, most);
    else
        c.rows = best_of(p->tiles[0], p->tiles[1], most);
    c.image_parts = wb_conv_ceil(p->batch, c.images);
    c.row_parts = wb_conv_ceil(p->tiles[1], c.rows);
    c.height = whole(c.images * c.rows * p->tiles[0]);
    return c;
}
