/* Convolutions and their gradients. */
#include "base/memory.h"
#include "program/call_geometry.h"
#include "program/call_source.h"
#include "program/call_tile.h"
#include <src/program/call_common.txt.h>
#include <src/program/call_conv_serial.txt.h>
#include <src/program/call_tile.txt.h>
#include <src/program/call_tile_conv.txt.h>
#include <src/program/call_vector.txt.h>

static int64_t x_count(const wb_window_call *w) {
    return wb_call_volume(w->in) * w->channels * w->batch;
}
static int64_t y_count(const wb_window_call *w) {
    return wb_call_volume(w->out) * w->filters * w->batch;
}
static int64_t w_count(const wb_window_call *w) {
    return wb_call_volume(w->kernel) * (w->channels / w->groups) * w->filters;
}

static wb_call_source source_new(const wb_call *call, const wb_dialect *dialect) {
    const wb_window_call *w = &call->window;
    wb_call_source s = wb_call_source_new(call, dialect);
    wb_call_reaches(&s, x_count(w));
    wb_call_reaches(&s, y_count(w));
    wb_call_reaches(&s, w_count(w));
    wb_call_constant(&s, "FORWARD", call->kind == WB_CALL_conv_forward);
    wb_call_constant(&s, "DATA", call->kind == WB_CALL_conv_data);
    wb_call_constant(&s, "FILTER", call->kind == WB_CALL_conv_filter);
    wb_call_geometry(&s, w, !dialect->is_serial);
    wb_call_word(&s, "CHANNELS", w->channels);
    wb_call_word(&s, "FILTERS", w->filters);
    wb_call_word(&s, "BATCH", w->batch);
    return s;
}

/* ---- with shared memory ---- */

static wb_source *render_tiles(const wb_call *call, const wb_dialect *dialect) {
    const wb_window_call *w = &call->window;
    const int64_t taps = wb_call_volume(w->kernel), channels = w->channels / w->groups,
                  filters = w->filters / w->groups;
    const int64_t out = wb_call_volume(w->out) * w->batch, in = wb_call_volume(w->in) * w->batch;
    wb_call_source s = source_new(call, dialect);
    wb_call_word(&s, "INNER_X", channels);
    wb_call_word(&s, "INNER_Y", filters);
    if (call->kind == WB_CALL_conv_forward)
        wb_call_tile(&s, out, filters, taps * channels, w->groups);
    else if (call->kind == WB_CALL_conv_data)
        wb_call_tile(&s, in, channels, taps * filters, w->groups);
    else
        wb_call_tile(&s, taps * channels, filters, out, w->groups);
    return wb_call_source_finish(
        &s, 3, (const char *const[]){call_common_text, call_tile_conv_text, call_tile_text, NULL});
}

/* ---- on wide cores ---- */

enum {
    COLUMNS = 8,         /* of a block of the result */
    VECTORS = 3,         /* of places in it */
    MANY = 8,            /* filters of a block of the filter gradient */
    FEW = 3,             /* taps and channels of it */
    CHUNK_BYTES = 4096,  /* of a plane, that are read again and again from the first cache */
    PIECES = 64,         /* pieces wanted, and groups that run them */
    PARTS = 16,          /* most parts of a sum over places */
    MOST_SUMS = 1 << 23, /* about the most elements of such parts */
    MOST_COLUMNS = 96    /* filters of a piece of the filter gradient */
};

/* The arrays as boxes, see the text. */
typedef struct boxes {
    int64_t grid[3], first[3], up[3], phases[3], box[3]; /* of what is gathered */
    int64_t inner, outer, depth; /* channels summed over and computed, of a group; terms of a sum */
    int64_t places, pitch, slack;
    int64_t width; /* of a vector */
} boxes;

/* The size of a box along a dimension: the span of the taps, less the zeros that a row shares with
 * the next one. */
static int64_t box_size(int64_t span, int64_t size, int64_t first, int64_t grid, int64_t phases) {
    if (phases > 1) return wb_call_ceil(span, phases);
    if (first < 0) return span;
    return wb_call_least(span, wb_call_most(wb_call_most(size + first, span - first), grid));
}

static void set_dimension(const wb_call *call, int d, boxes *b) {
    const wb_window_call *w = &call->window;
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d];
    const bool is_data = call->kind == WB_CALL_conv_data;
    b->grid[d] = is_data ? w->in[d] : w->out[d];
    b->first[d] = is_data ? reach - w->pad[d] : w->pad[d];
    b->up[d] = is_data ? w->stride[d] : 1;
    b->phases[d] = is_data ? 1 : w->stride[d];
    const int64_t span = wb_call_most(0, (b->grid[d] - 1) * b->phases[d] + reach + 1);
    const int64_t size = is_data ? (w->out[d] - 1) * w->stride[d] + 1 : w->in[d];
    b->box[d] = box_size(span, size, b->first[d], b->grid[d], b->phases[d]);
}

static boxes boxes_of(const wb_call *call) {
    const wb_window_call *w = &call->window;
    boxes b = {.width = 64 / wb_call_real_bytes(call)};
    const bool is_data = call->kind == WB_CALL_conv_data;
    b.inner = (is_data ? w->filters : w->channels) / w->groups;
    b.outer = (is_data ? w->channels : w->filters) / w->groups;
    b.depth = b.inner * wb_call_volume(w->kernel);
    int64_t step = 1, reach = 0; /* the farthest tap, at most */
    for (int d = 0; d < 3; d++) {
        set_dimension(call, d, &b);
        reach += ((w->kernel[d] - 1) * w->dilation[d] / b.phases[d] + 1) * step;
        step *= b.box[d];
    }
    b.places = step * w->batch;
    b.pitch = wb_call_ceil(b.places, b.width) * b.width;
    b.slack = reach + VECTORS * b.width;
    return b;
}

static void add_boxes(wb_call_source *s, const boxes *b) {
    const wb_window_call *w = &s->call->window;
    const bool is_data = s->call->kind == WB_CALL_conv_data;
    const int64_t channels = b->inner * w->groups * wb_call_volume(b->phases);
    const int64_t count = channels * b->pitch + b->slack;
    for (int d = 0; d < 3; d++) {
        wb_call_word_at(s, "BOX", d, b->box[d]);
        wb_call_word_at(s, "GRID", d, b->grid[d]);
        wb_call_word_at(s, "SOURCE", d, is_data ? w->out[d] : w->in[d]);
        wb_call_word_at(s, "FIRST", d, b->first[d]);
        wb_call_word_at(s, "UP", d, b->up[d]);
        wb_call_word_at(s, "PHASES", d, b->phases[d]);
    }
    wb_call_word(s, "PHASES", wb_call_volume(b->phases));
    wb_call_word(s, "SOURCE_CHANNELS", b->inner * w->groups);
    wb_call_word(s, "RESULT_CHANNELS", b->outer * w->groups);
    wb_call_reaches(s, count);
    wb_call_scratch(s, "BOX", count * wb_call_real_bytes(s->call));
    wb_call_scratch(s, "DISTANCES", b->depth * (int64_t)sizeof(int64_t));
}

/* Pieces: parts of the places times parts of the columns, at least PIECES together where there are
 * this many. */
static int64_t cut(wb_call_source *s, int64_t places, int64_t unit, int64_t columns,
                   int64_t matrices, int64_t most_parts, int64_t most_columns) {
    const int64_t units = wb_call_most(1, wb_call_ceil(places, unit));
    const int64_t wanted = wb_call_most(1, PIECES / wb_call_most(matrices, 1));
    const int64_t part =
        wb_call_ceil(units, wb_call_least(wb_call_least(units, wanted), most_parts));
    const int64_t parts = wb_call_ceil(units, part);
    const int64_t column_part = wb_call_most(
        1, wb_call_least(most_columns, wb_call_ceil(columns, wb_call_ceil(wanted, parts))));
    const int64_t column_parts = wb_call_most(1, wb_call_ceil(columns, column_part));
    wb_call_word(s, "PLACE_PART", part * unit);
    wb_call_word(s, "PLACE_PARTS", parts);
    wb_call_word(s, "SUM_PARTS", places > 0 ? parts : 0);
    wb_call_word(s, "STRIP_PART", column_part);
    wb_call_word(s, "STRIP_PARTS", column_parts);
    wb_call_word(s, "PIECES", parts * column_parts * matrices);
    return column_part;
}

static void add_gather(wb_call_source *s, const boxes *b) {
    const wb_window_call *w = &s->call->window;
    const int64_t bytes = wb_call_real_bytes(s->call), rows = VECTORS * b->width;
    const int64_t strips = wb_call_ceil(b->outer, COLUMNS),
                  weights = strips * w->groups * b->depth * COLUMNS;
    wb_call_word(s, "STRIPS", strips);
    wb_call_reaches(s, weights);
    wb_call_scratch(s, "WEIGHTS", weights * bytes);
    wb_call_scratch(s, "BLOCKS", PIECES * rows * COLUMNS * bytes);
    wb_call_constant(s, "COLUMNS", COLUMNS);
    (void)cut(s, b->places, rows, strips, w->groups, PIECES, strips);
    wb_call_launch(s, "k_conv", PIECES);
}

static void add_filter(wb_call_source *s, const boxes *b) {
    const wb_window_call *w = &s->call->window;
    const int64_t bytes = wb_call_real_bytes(s->call), sums = b->depth * b->outer * w->groups;
    const int64_t parts = wb_call_least(PARTS, MOST_SUMS / wb_call_most(1, sums) + 1);
    const int64_t chunk = CHUNK_BYTES / bytes;
    wb_call_constant(s, "COLUMNS", COLUMNS);
    wb_call_constant(s, "MANY", MANY);
    wb_call_constant(s, "FEW", FEW);
    wb_call_word(s, "CHUNK", chunk);
    const int64_t blocks = cut(s, b->pitch, chunk, wb_call_ceil(b->outer, MANY), w->groups, parts,
                               MOST_COLUMNS / MANY);
    wb_call_reaches(s, sums * parts);
    const int64_t slice = MANY * (blocks * chunk + FEW * b->width); /* of y, and a block of sums */
    wb_call_word(s, "SLICE", slice);
    wb_call_scratch(s, "SLICES", PIECES * slice * bytes);
    wb_call_scratch(s, "SUMS", sums * parts * bytes);
    wb_call_launch(s, "k_filter", PIECES);
    wb_call_launch_items(s, "k_total", sums, 4096);
}

static wb_source *render_serial(const wb_call *call, const wb_dialect *dialect) {
    const wb_window_call *w = &call->window;
    const boxes b = boxes_of(call);
    const bool is_filter = call->kind == WB_CALL_conv_filter;
    wb_call_source s = source_new(call, dialect);
    wb_call_constant(&s, "REAL_BYTES", wb_call_real_bytes(call));
    wb_call_constant(&s, "VECTORS", VECTORS);
    wb_call_constant(&s, "PLAIN", call->dtype == wb_call_real(call));
    wb_call_word(&s, "CONV_GROUPS", w->groups);
    wb_call_word(&s, "INNER", b.inner);
    wb_call_word(&s, "OUTER", b.outer);
    wb_call_word(&s, "DEPTH", b.depth);
    wb_call_word(&s, "PITCH", b.pitch);
    wb_call_word(&s, "SLACK", b.slack);
    add_boxes(&s, &b);
    wb_call_launch_items(&s, "k_prepare", b.inner * w->groups * b.pitch, 4096);
    if (is_filter)
        add_filter(&s, &b);
    else
        add_gather(&s, &b);
    return wb_call_source_finish(
        &s, 3,
        (const char *const[]){call_common_text, call_vector_text, call_conv_serial_text, NULL});
}

/* ---- kernels of one tap: matrix products of planes and weights ---- */

enum { LEAST_PLACES = 128 /* of a plane; smaller planes are computed together */ };

static bool is_product(const wb_call *call) {
    const wb_window_call *w = &call->window;
    bool is_one = call->kind != WB_CALL_conv_filter && wb_call_volume(w->out) >= LEAST_PLACES;
    for (int d = 0; d < 3; d++)
        is_one = is_one && w->kernel[d] == 1 && w->stride[d] == 1 && w->pad[d] == 0 &&
                 w->in[d] == w->out[d];
    return is_one;
}

/* One product for each group and image. */
static void set_offsets(const wb_call *call, int64_t places, int64_t *offsets) {
    const wb_window_call *w = &call->window;
    const bool is_data = call->kind == WB_CALL_conv_data;
    const int64_t batch = w->groups * w->batch, channels = w->channels / w->groups,
                  filters = w->filters / w->groups;
    const int64_t inner = is_data ? filters : channels, outer = is_data ? channels : filters;
    for (int64_t b = 0; b < batch; b++) { /* group + groups * image */
        offsets[b] = b * inner * places;
        offsets[batch + b] = b % w->groups * channels * filters;
        offsets[2 * batch + b] = b * outer * places;
    }
}

static wb_source *render_product(const wb_call *call, const wb_dialect *dialect) {
    const wb_window_call *w = &call->window;
    const bool is_data = call->kind == WB_CALL_conv_data;
    const int64_t places = wb_call_volume(w->out), channels = w->channels / w->groups,
                  filters = w->filters / w->groups;
    const int64_t batch = w->groups * w->batch;
    int64_t *offsets = wb_alloc_list(batch + 1, 3 * sizeof *offsets);
    if (!offsets) return NULL;
    set_offsets(call, places, offsets);
    const wb_call product = {.kind = WB_CALL_matmul,
                             .dtype = call->dtype,
                             .matmul = {.transpose_b = is_data,
                                        .m = places,
                                        .n = is_data ? channels : filters,
                                        .k = is_data ? filters : channels,
                                        .lda = places,
                                        .ldb = channels,
                                        .ldc = places,
                                        .batch = batch,
                                        .offset_a = offsets,
                                        .offset_b = offsets + batch,
                                        .offset_c = offsets + 2 * batch}};
    wb_source *source = wb_call_render_matmul(&product, dialect);
    wb_release(offsets);
    return source;
}

wb_source *wb_call_render_conv(const wb_call *call, const wb_dialect *dialect) {
    if (is_product(call)) return render_product(call, dialect);
    return dialect->is_serial ? render_serial(call, dialect) : render_tiles(call, dialect);
}
