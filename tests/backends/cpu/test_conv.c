/* Convolutions of the CPU backend, for every instruction set of the machine. */
#include "pool.h"
#include "support/sanitized.h"
#include "window_maker.h"

/* ---- the convolution under test, and the definition ---- */

static int64_t size_of(wb_conv_kind kind, const wb_window *w) {
    return kind == WB_CONV_FORWARD ? y_size(w) : kind == WB_CONV_DATA ? x_size(w) : w_size(w);
}

/* elements of a and b */
static int64_t first_size(wb_conv_kind kind, const wb_window *w) {
    return kind == WB_CONV_DATA ? y_size(w) : x_size(w);
}
static int64_t second_size(wb_conv_kind kind, const wb_window *w) {
    return kind == WB_CONV_FILTER ? y_size(w) : w_size(w);
}

/* Scratch memory is full of NaNs: reading what nobody wrote shows. */
static void run(wb_conv_kind kind, const wb_window *w, const void *a, const void *b, void *out,
                wb_tile_fn *done, void *context) {
    const size_t bytes = ((size_t)wb_cpu_conv_scratch(kind, w) + 63) & ~(size_t)63;
    void *scratch = aligned_alloc(64, bytes + 64);
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes);
    wb_cpu_conv(kind, w, a, b, out, scratch, done, context);
    free(scratch);
}

/* Where the form in which weights are kept has more bytes than 32 bits tell. */
static void scratch_memory_is_counted_in_full(void **state) {
    (void)state;
    const wb_window w = {.dtype = WB_F64,
                         .call.in = {4, 4, 1},
                         .call.out = {4, 4, 1},
                         .call.kernel = {3, 3, 1},
                         .call.stride = {1, 1, 1},
                         .call.pad = {1, 1, 0},
                         .call.dilation = {1, 1, 1},
                         .call.channels = 1 << 13,
                         .call.filters = 1 << 13,
                         .call.batch = 64,
                         .call.groups = 1};
    assert_true(wb_cpu_conv_scratch(WB_CONV_FORWARD, &w) > (int64_t)1 << 32);
}

/* Adds a * b to sum[i] and |a b| to size[i] for every product of the convolution. */
typedef struct naive {
    wb_conv_kind kind;
    const double *a, *b;
    double *sum, *size;
    int64_t plane, taps; /* elements of a plane of x, and of a kernel */
} naive;

UNWATCHED static void naive_product(const naive *n, int64_t x, int64_t w, int64_t y) {
    const int64_t a = n->kind == WB_CONV_DATA ? y : x, b = n->kind == WB_CONV_FILTER ? y : w;
    const int64_t out = n->kind == WB_CONV_FORWARD ? y : n->kind == WB_CONV_DATA ? x : w;
    const double product = n->a[a] * n->b[b];
    n->sum[out] += product;
    n->size[out] += fabs(product);
}

/* All taps of y[p, k, image] in channel c of the group. */
UNWATCHED static void naive_taps(const naive *n, const wb_window *w, const int64_t p[3], int64_t k,
                                 int64_t c, int64_t image) {
    const int64_t inner = w->call.channels / w->call.groups,
                  group = k / (w->call.filters / w->call.groups);
    const int64_t y =
        p[0] +
        w->call.out[0] *
            (p[1] + w->call.out[1] * (p[2] + w->call.out[2] * (k + w->call.filters * image)));
    int64_t t[3];
    for (t[2] = 0; t[2] < w->call.kernel[2]; t[2]++)
        for (t[1] = 0; t[1] < w->call.kernel[1]; t[1]++)
            for (t[0] = 0; t[0] < w->call.kernel[0]; t[0]++) {
                int64_t x = 0, tap = 0, at[3];
                bool inside = true;
                for (int d = 2; d >= 0; d--) {
                    at[d] = p[d] * w->call.stride[d] + t[d] * w->call.dilation[d] - w->call.pad[d];
                    inside = inside && at[d] >= 0 && at[d] < w->call.in[d];
                    x = x * w->call.in[d] + at[d];
                    tap = tap * w->call.kernel[d] +
                          (w->call.flip ? w->call.kernel[d] - 1 - t[d] : t[d]);
                }
                x += n->plane * (group * inner + c + w->call.channels * image);
                if (inside) naive_product(n, x, tap + n->taps * (c + inner * k), y);
            }
}

static void naive_conv(const naive *n, const wb_window *w) {
    int64_t p[3];
    for (int64_t image = 0; image < w->call.batch; image++)
        for (int64_t k = 0; k < w->call.filters; k++)
            for (int64_t c = 0; c < w->call.channels / w->call.groups; c++)
                for (p[2] = 0; p[2] < w->call.out[2]; p[2]++)
                    for (p[1] = 0; p[1] < w->call.out[1]; p[1]++)
                        for (p[0] = 0; p[0] < w->call.out[0]; p[0]++)
                            naive_taps(n, w, p, k, c, image);
}

static void check_against_naive(wb_conv_kind kind, const wb_window *w, const void *a,
                                const void *b) {
    const int64_t count = size_of(kind, w);
    const double epsilon = w->dtype == WB_F32 ? 1.2e-7 : 2.3e-16;
    void *out = memory_new(w->dtype, count);
    double *const first = memory_doubles(w->dtype, a, first_size(kind, w)),
                  *const second = memory_doubles(w->dtype, b, second_size(kind, w));
    naive n = {kind,
               first,
               second,
               calloc((size_t)count + 1, sizeof(double)),
               calloc((size_t)count + 1, sizeof(double)),
               area(w->call.in),
               area(w->call.kernel)};
    memset(out, 0xff, (size_t)count * wb_dtype_size(w->dtype));
    naive_conv(&n, w);
    run(kind, w, a, b, out, NULL, NULL);
    for (int64_t i = 0; i < count; i++) {
        const double got = memory_get(w->dtype, out, i);
        if (fabs(got - n.sum[i]) <= 16 * epsilon * n.size[i] + 1e-300) continue;
        show(w);
        fail_msg("kind %d, element %d: %.17g, wanted %.17g", (int)kind, (int)i, got, n.sum[i]);
    }
    free(first);
    free(second);
    free(n.sum);
    free(n.size);
    free(out);
}

/* x, w and y of a window, with random elements */
typedef struct arrays {
    void *x, *w, *y;
} arrays;

static arrays arrays_new(const wb_window *w) {
    return (arrays){memory_random(w->dtype, x_size(w)), memory_random(w->dtype, w_size(w)),
                    memory_random(w->dtype, y_size(w))};
}

static void arrays_free(arrays *r) {
    free(r->x);
    free(r->w);
    free(r->y);
}

/* (a, b) of a kind */
static const void *first_of(wb_conv_kind kind, const arrays *r) {
    return kind == WB_CONV_DATA ? r->y : r->x;
}
static const void *second_of(wb_conv_kind kind, const arrays *r) {
    return kind == WB_CONV_FILTER ? r->y : r->w;
}

/* An infinity reaches the tile that holds it, and no further: 2 x 2 outputs, of which a direct sum
 * would have written fewer. */
static void what_is_not_finite_stays_in_its_tiles(void **state) {
    (void)state;
    const shape s = {{12, 12}, {3, 3}, PAD(1), .channels = 32, .filters = 16};
    const wb_window w = window_of(&s, WB_F32);
    arrays r = arrays_new(&w);
    ((float *)r.x)[5 + 12 * 5] = INFINITY; /* seen by outputs 4 to 6, in tiles of 4 to 7 */
    run(WB_CONV_FORWARD, &w, r.x, r.w, r.y, NULL, NULL);
    for (int64_t i = 0; i < y_size(&w); i++) {
        const int64_t x = i % 12, y = i / 12 % 12;
        const bool is_hit = x >= 4 && x <= 6 && y >= 4 && y <= 6,
                   is_near = x >= 4 && x <= 7 && y >= 4 && y <= 7;
        const bool is_good = isfinite(((float *)r.y)[i]);
        if (is_good ? is_hit : !is_near) fail_msg("(%d, %d)", (int)x, (int)y);
    }
    arrays_free(&r);
}

/* ---- rows: x = 1, 2, 3 ..., w = 1, 2, 3 ..., and y = conv(x, w) for the gradients ---- */

typedef struct conv_row {
    const char *name;
    shape shape;
    wb_conv_kind kind;
    double wanted[MOST];
} conv_row;

static const conv_row conv_rows[] = {
    {"1-D with padding", {LINE, PAD_1}, WB_CONV_FORWARD, {1, 4, 7, 10, 13, 10}},
    {"1-D plain", {LINE}, WB_CONV_FORWARD, {4, 7, 10, 13}},
    {"1-D with stride 2", {LINE, .stride = {2}}, WB_CONV_FORWARD, {4, 10}},
    {"1-D with dilation 2", {LINE, .dilation = {2}}, WB_CONV_FORWARD, {5, 8, 11}},
    {"1-D unflipped", {LINE, .unflipped = true}, WB_CONV_FORWARD, {5, 8, 11, 14}},
    {"dx of 1-D plain", {LINE}, WB_CONV_DATA, {8, 18, 27, 36, 13}},
    {"dx of 1-D with stride 2", {LINE, .stride = {2}}, WB_CONV_DATA, {8, 4, 20, 10, 0}},
    {"dx of 1-D with padding", {LINE, PAD_1}, WB_CONV_DATA, {9, 18, 27, 36, 33}},
    {"dx of 1-D with dilation 2", {LINE, .dilation = {2}}, WB_CONV_DATA, {10, 16, 27, 8, 11}},
    {"dx of 1-D unflipped", {LINE, .unflipped = true}, WB_CONV_DATA, {5, 18, 27, 36, 28}},
    {"dw of 1-D plain", {LINE}, WB_CONV_FILTER, {134, 100}},
    {"dw of 1-D with stride 2", {LINE, .stride = {2}}, WB_CONV_FILTER, {48, 34}},
    {"dw of 1-D with padding", {LINE, PAD_1}, WB_CONV_FILTER, {135, 150}},
    {"dw of 1-D with dilation 2", {LINE, .dilation = {2}}, WB_CONV_FILTER, {102, 54}},
    {"dw of 1-D unflipped", {LINE, .unflipped = true}, WB_CONV_FILTER, {110, 148}},
    {"2-D with padding", {PLANE, PAD(1)}, WB_CONV_FORWARD, {1,   4,   7,   10,  13,  10,  9,   29,
                                                            39,  49,  59,  40,  29,  79,  89,  99,
                                                            109, 70,  49,  129, 139, 149, 159, 100,
                                                            48,  115, 122, 129, 136, 80}},
    {"2-D plain", {PLANE}, WB_CONV_FORWARD, {29, 39, 49, 59, 79, 89, 99, 109, 129, 139, 149, 159}},
    {"2-D with stride 2", {PLANE, STRIDE(2)}, WB_CONV_FORWARD, {29, 49, 129, 149}},
    {"2-D unflipped",
     {PLANE, .unflipped = true},
     WB_CONV_FORWARD,
     {51, 61, 71, 81, 101, 111, 121, 131, 151, 161, 171, 181}},
    {"dx of 2-D with stride 2",
     {PLANE, STRIDE(2)},
     WB_CONV_DATA,
     {116, 87, 196, 147, 0, 58, 29, 98, 49, 0, 516, 387, 596, 447, 0, 258, 129, 298, 149, 0}},
    {"dw of 2-D plain", {PLANE}, WB_CONV_FILTER, {17378, 16250, 11738, 10610}},
    {"dw of 2-D with stride 2", {PLANE, STRIDE(2)}, WB_CONV_FILTER, {5668, 5312, 3888, 3532}},
    {"dw of 2-D with padding", {PLANE, PAD(1)}, WB_CONV_FILTER, {18670, 19850, 22550, 23430}},
    {"dw of 2-D with dilation 2",
     {PLANE, .dilation = {2, 2}},
     WB_CONV_FILTER,
     {8632, 7636, 3652, 2656}},
    {"dw of 2-D unflipped",
     {PLANE, .unflipped = true},
     WB_CONV_FILTER,
     {12590, 13982, 19550, 20942}},
};

static void check_conv_row(const conv_row *row, wb_dtype dtype) {
    const wb_window w = window_of(&row->shape, dtype);
    arrays r = {memory_counting(dtype, x_size(&w)), memory_counting(dtype, w_size(&w)),
                memory_new(dtype, y_size(&w))};
    void *out = memory_new(dtype, size_of(row->kind, &w));
    run(WB_CONV_FORWARD, &w, r.x, r.w, r.y, NULL, NULL);
    run(row->kind, &w, first_of(row->kind, &r), second_of(row->kind, &r), out, NULL, NULL);
    check_equal(dtype, out, row->wanted, size_of(row->kind, &w));
    free(out);
    arrays_free(&r);
}

static void conv_has_the_values_of_the_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof conv_rows / sizeof *conv_rows; i++) {
        print_message("  %s\n", conv_rows[i].name);
        check_conv_row(&conv_rows[i], WB_F32);
        check_conv_row(&conv_rows[i], WB_F64);
    }
}

static void uneven_padding_of_ones_counts_the_taps(void **state) {
    (void)state;
    const shape s = {{28, 28}, {3, 3}, .pad = {0, 1}, .pad_end = {1, 2}};
    const wb_window w = window_of(&s, WB_F32);
    const int64_t at[][3] = {{1, 1, 6}, {2, 2, 9}, {27, 1, 4}, {1, 29, 3}, {1, 28, 6}, {27, 29, 2}};
    float x[28 * 28], k[9], y[27 * 29];
    assert_int_equal(w.call.out[0], 27);
    assert_int_equal(w.call.out[1], 29);
    for (int i = 0; i < 28 * 28; i++) x[i] = 1;
    for (int i = 0; i < 9; i++) k[i] = 1;
    run(WB_CONV_FORWARD, &w, x, k, y, NULL, NULL);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_true(y[at[i][0] - 1 + 27 * (at[i][1] - 1)] == (float)at[i][2]);
}

/* ---- shapes ---- */

static const struct {
    const char *name;
    shape shape;
} large_shapes[] = {
    {"groups of a hundred channels",
     {{28, 28}, {3, 3}, .channels = 100, .filters = 25, .groups = 5, .batch = 2}},
    {"more inner channels than a panel is deep",
     {{7, 7}, {3, 3}, .pad = {1, 1}, .pad_end = {1, 1}, .channels = 70, .filters = 9, .batch = 5}},
    {"more filters than a block", {{5, 3}, {2, 2}, .channels = 17, .filters = 140, .batch = 3}},
    {"a plane too large for one box", {{301, 203}, {3, 2}, .channels = 3, .filters = 3}},
    {"a volume too large for one box",
     {{61, 43, 37}, {2, 2, 3}, .pad = {1, 0, 1}, .channels = 2, .filters = 2}},
    {"a long line",
     {{20011}, {7}, .dilation = {3}, .pad = {9}, .pad_end = {9}, .channels = 2, .filters = 3}},
    {"a channel for each group",
     {{19, 17},
      {3, 3},
      .pad = {1, 1},
      .pad_end = {1, 1},
      .channels = 33,
      .filters = 33,
      .groups = 33,
      .batch = 2}},
    {"two filters for each channel",
     {{19, 17}, {3, 3}, .stride = {2, 2}, .channels = 9, .filters = 18, .groups = 9, .batch = 2}},
    {"one position and many channels",
     {{4, 4}, {4, 4}, .channels = 40, .filters = 130, .batch = 21}},
    {"a kernel that is larger than its stride is long",
     {{40, 9}, {1, 1}, .stride = {3, 2}, .channels = 24, .filters = 20, .batch = 2}},
    {"a batch that is cut into pairs of images",
     {{9, 9},
      {3, 3},
      .pad = {1, 1},
      .pad_end = {1, 1},
      .channels = 16,
      .filters = 20,
      .batch = 18}},
    {"a kernel of one element and many images",
     {{7, 5}, {1, 1}, .channels = 24, .filters = 17, .batch = 25}},
    {"a channel for each group, many images, every second position",
     {{9, 8},
      {3, 3},
      .stride = {2, 2},
      .pad = {1, 1},
      .channels = 20,
      .filters = 20,
      .groups = 20,
      .batch = 16}},
    {"depthwise: a kernel of seven rows",
     {{30, 23},
      {7, 7},
      .pad = {3, 3},
      .pad_end = {3, 3},
      .channels = 9,
      .filters = 9,
      .groups = 9,
      .batch = 2}},
    {"depthwise: a kernel of five rows, positions apart",
     {{21, 16},
      {3, 5},
      .dilation = {2, 1},
      .pad = {2, 2},
      .pad_end = {2, 1},
      .channels = 8,
      .filters = 8,
      .groups = 8,
      .batch = 3,
      .unflipped = true}},
    {"depthwise: a line",
     {{333},
      {31},
      .pad = {15},
      .pad_end = {15},
      .channels = 12,
      .filters = 12,
      .groups = 12,
      .batch = 2}},
    {"depthwise: a volume",
     {{9, 8, 7},
      {3, 3, 3},
      .stride = {2, 1, 2},
      .pad = {1, 1, 1},
      .pad_end = {1, 1, 1},
      .channels = 8,
      .filters = 8,
      .groups = 8,
      .batch = 2}},
    {"depthwise: strides that a kernel does not reach over",
     {{40, 22},
      {2, 3},
      .stride = {3, 4},
      .pad = {1, 0},
      .channels = 11,
      .filters = 11,
      .groups = 11,
      .batch = 2}},
    {"depthwise: a stride that is longer than the plane is wide",
     {{1, 9},
      {2, 3},
      .stride = {3, 1},
      .pad = {1, 1},
      .pad_end = {1, 1},
      .channels = 8,
      .filters = 8,
      .groups = 8}},
    {"depthwise: planes too large for one box",
     {{401, 390}, {3, 3}, .channels = 8, .filters = 8, .groups = 8}},
    {"depthwise: more padding than a vector is long",
     {{5, 40},
      {3, 3},
      .stride = {2, 1},
      .pad = {40, 1},
      .pad_end = {40, 1},
      .channels = 10,
      .filters = 10,
      .groups = 10,
      .batch = 2}},
    {"the second layer of a small network", {{26, 26}, {3, 3}, .channels = 32, .filters = 64}},
    /* minimal filtering: tiles that are cut off, rows in parts, images together, all pads */
    {"a plane of odd sizes in several pieces",
     {{37, 51}, {3, 3}, .pad = {1, 1}, .pad_end = {1, 1}, .channels = 19, .filters = 29}},
    {"channels and filters of several blocks",
     {{29, 9},
      {3, 3},
      .pad = {1, 0},
      .pad_end = {1, 1},
      .channels = 70,
      .filters = 35,
      .batch = 3}},
    {"few tiles an image, the last group is not full",
     {{7, 5}, {3, 3}, .pad = {1, 1}, .pad_end = {1, 1}, .channels = 32, .filters = 16, .batch = 9}},
    {"rows longer than a piece",
     {{301, 5}, {3, 3}, .pad = {0, 2}, .pad_end = {2, 0}, .channels = 16, .filters = 32}},
    {"the widest padding",
     {{9, 6},
      {3, 3},
      .pad = {2, 2},
      .pad_end = {2, 2},
      .channels = 23,
      .filters = 24,
      .batch = 3,
      .unflipped = true}},
    {"the first layer of a large one",
     {{65, 65},
      {7, 7},
      .stride = {2, 2},
      .pad = {3, 3},
      .pad_end = {3, 3},
      .channels = 3,
      .filters = 24}},
};

static void check_all_kinds(const wb_window *w) {
    arrays r = arrays_new(w);
    for (wb_conv_kind kind = WB_CONV_FORWARD; kind <= WB_CONV_FILTER; kind++)
        check_against_naive(kind, w, first_of(kind, &r), second_of(kind, &r));
    arrays_free(&r);
}

static void large_shapes_agree_with_the_definition(void **state) {
    (void)state;
    if (is_brief() && !is_best_set()) skip(); /* the definition takes longer than what it checks */
    for (size_t i = 0; i < sizeof large_shapes / sizeof *large_shapes; i++) {
        const wb_window w = window_of(&large_shapes[i].shape, WB_F32);
        print_message("  %s\n", large_shapes[i].name);
        check_all_kinds(&w);
    }
}

static void random_shapes_agree_with_the_definition(void **state) {
    (void)state;
    for (int i = 0, count = random_cases(); i < count; i++) {
        const shape s = random_shape();
        const wb_window w = window_of(&s, i % 2 ? WB_F64 : WB_F32);
        check_all_kinds(&w);
    }
}

static void data_and_filter_are_the_adjoints(void **state) {
    (void)state;
    for (int i = 0, count = random_cases(); i < count; i++) {
        const shape s = random_shape();
        const wb_window w = window_of(&s, WB_F64);
        arrays r = arrays_new(&w), out = arrays_new(&w);
        run(WB_CONV_FORWARD, &w, r.x, r.w, out.y, NULL, NULL);
        run(WB_CONV_DATA, &w, r.y, r.w, out.x, NULL, NULL);
        run(WB_CONV_FILTER, &w, r.x, r.y, out.w, NULL, NULL);
        const double forward = dot(out.y, r.y, y_size(&w));
        assert_near(dot(out.x, r.x, x_size(&w)), forward);
        assert_near(dot(out.w, r.w, w_size(&w)), forward);
        arrays_free(&r);
        arrays_free(&out);
    }
}

/* What the tile callback sees: it doubles each element, which commutes with nothing unfinished. */
typedef struct doubling {
    float *out;
    unsigned char *visits;
    int64_t plane;
} doubling;

static void double_tile(void *context, int64_t product, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, int worker) {
    const doubling *d = context;
    assert_int_equal(product, 0);
    assert_in_range(worker, 0, wb_cpu_threads() - 1);
    for (int64_t c = column; c < column + columns; c++)
        for (int64_t i = c * d->plane + row; i < c * d->plane + row + rows; i++) {
            d->out[i] = 2 * d->out[i] + 1;
            d->visits[i]++;
        }
}

static void check_tiles(wb_conv_kind kind, const wb_window *w, const arrays *r) {
    const int64_t count = size_of(kind, w);
    float *plain = memory_new(WB_F32, count), *out = memory_new(WB_F32, count);
    doubling d = {out, calloc((size_t)count, 1),
                  area(kind == WB_CONV_DATA ? w->call.in : w->call.out)};
    run(kind, w, first_of(kind, r), second_of(kind, r), plain, NULL, NULL);
    run(kind, w, first_of(kind, r), second_of(kind, r), out, double_tile, &d);
    for (int64_t i = 0; i < count; i++) {
        if (d.visits[i] == 1 && out[i] == 2 * plain[i] + 1) continue;
        show(w);
        fail_msg("kind %d, element %d: %d visits", (int)kind, (int)i, d.visits[i]);
    }
    free(d.visits);
    free(plain);
    free(out);
}

static void check_shape_tiles(const shape *s) {
    const wb_window w = window_of(s, WB_F32);
    arrays r = arrays_new(&w);
    check_tiles(WB_CONV_FORWARD, &w, &r);
    check_tiles(WB_CONV_DATA, &w, &r);
    arrays_free(&r);
}

static void tiles_cover_each_element_once(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof large_shapes / sizeof *large_shapes; i++)
        check_shape_tiles(&large_shapes[i].shape);
    for (int i = 0, count = random_cases(); i < count; i++) {
        const shape s = random_shape();
        check_shape_tiles(&s);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof large_shapes / sizeof *large_shapes; i++) {
        const wb_window w = window_of(&large_shapes[i].shape, WB_F32);
        arrays r = arrays_new(&w);
        for (wb_conv_kind kind = WB_CONV_FORWARD; kind <= WB_CONV_FILTER; kind++) {
            const size_t bytes = (size_t)size_of(kind, &w) * sizeof(float);
            void *first = malloc(bytes), *out = malloc(bytes);
            for (int threads = 1; threads <= 3; threads++) {
                wb_cpu_set_threads(threads);
                run(kind, &w, first_of(kind, &r), second_of(kind, &r), threads == 1 ? first : out,
                    NULL, NULL);
                if (threads > 1) assert_memory_equal(first, out, bytes);
            }
            free(first);
            free(out);
        }
        arrays_free(&r);
    }
    wb_cpu_set_threads(0);
}

/* Whether that kind keeps weights, which then give the bits that it has without. */
static bool check_kept(wb_conv_kind kind, wb_window w, const arrays *r) {
    const size_t bytes = (size_t)size_of(kind, &w) * wb_dtype_size(w.dtype);
    w.keeps = true;
    const size_t kept = (size_t)wb_cpu_conv_kept(kind, &w);
    if (kept == 0) return false;
    void *expected = malloc(bytes), *out = malloc(bytes);
    w.keeps = false;
    run(kind, &w, first_of(kind, r), second_of(kind, r), expected, NULL, NULL);
    w.keeps = true, w.kept = aligned_alloc(64, kept);
    memset(w.kept, 0xff, kept);
    wb_cpu_conv_keep(kind, &w, second_of(kind, r));
    for (int time = 0; time < 2; time++) {
        memset(out, 0xff, bytes);
        run(kind, &w, first_of(kind, r), second_of(kind, r), out, NULL, NULL);
        assert_memory_equal(expected, out, bytes);
    }
    free(w.kept);
    free(expected);
    free(out);
    return true;
}

static void kept_weights_give_the_same_bits(void **state) {
    (void)state;
    int kept = 0;
    for (size_t i = 0; i < sizeof large_shapes / sizeof *large_shapes; i++) {
        const wb_window w = window_of(&large_shapes[i].shape, i % 2 ? WB_F64 : WB_F32);
        arrays r = arrays_new(&w);
        kept += check_kept(WB_CONV_FORWARD, w, &r) + check_kept(WB_CONV_DATA, w, &r);
        assert_false(check_kept(WB_CONV_FILTER, w, &r));
        arrays_free(&r);
    }
    assert_true(kept > 10);
}

/* conv is unfold times the weights: columns (P, taps C, N), w (taps C, K) */
static void unfold_times_the_weights_is_the_convolution(void **state) {
    (void)state;
    for (int i = 0, count = random_cases(); i < count; i++) {
        shape s = random_shape();
        s.channels /= s.groups;
        s.groups = 1;
        const wb_window w = window_of(&s, WB_F64);
        const int64_t rows = area(w.call.out), depth = area(w.call.kernel) * w.call.channels;
        arrays r = arrays_new(&w);
        double *columns = memory_new(WB_F64, rows * depth * w.call.batch);
        wb_cpu_unfold(&w, r.x, columns);
        run(WB_CONV_FORWARD, &w, r.x, r.w, r.y, NULL, NULL);
        for (int64_t j = 0; j < y_size(&w); j++) {
            const int64_t k = j / rows % w.call.filters, image = j / rows / w.call.filters;
            const double *from = columns + image * rows * depth + j % rows;
            double sum = 0;
            for (int64_t p = 0; p < depth; p++)
                sum += from[p * rows] * ((const double *)r.w)[p + depth * k];
            assert_near(((const double *)r.y)[j], sum);
        }
        free(columns);
        arrays_free(&r);
    }
}

/* ---- each way to compute: the choice is made once in a process ---- */

#define CONV_TESTS                                                                                 \
    cmocka_unit_test(conv_has_the_values_of_the_table),                                            \
        cmocka_unit_test(uneven_padding_of_ones_counts_the_taps),                                  \
        cmocka_unit_test(large_shapes_agree_with_the_definition),                                  \
        cmocka_unit_test(random_shapes_agree_with_the_definition),                                 \
        cmocka_unit_test(tiles_cover_each_element_once),                                           \
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),                               \
        cmocka_unit_test(kept_weights_give_the_same_bits)

static int run_own(void) {
    const struct CMUnitTest tests[] = {
        CONV_TESTS,
        cmocka_unit_test(data_and_filter_are_the_adjoints),
        cmocka_unit_test(what_is_not_finite_stays_in_its_tiles),
        cmocka_unit_test(unfold_times_the_weights_is_the_convolution),
        cmocka_unit_test(scratch_memory_is_counted_in_full),
    };
    return cmocka_run_group_tests_name("backends/cpu/test_conv", tests, NULL, NULL);
}

/* What minimal filtering takes otherwise. */
static int run_direct(void) {
    const struct CMUnitTest tests[] = {CONV_TESTS};
    return cmocka_run_group_tests_name("backends/cpu/direct", tests, NULL, NULL);
}

int main(void) {
    source.state = test_seed();
    const int failed = is_brief() ? 0 : run_with("WEBER_CONV", "direct", run_direct);
    return run_in_each_set(run_own) || failed;
}
