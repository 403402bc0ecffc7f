/* Convolutions of one group as one product of matrices.
 *
 * A convolution of one tap, without stride and padding, is a product for each image: y = x w, and
 * dx = dy w'. Any other one is a product of columns, one for each tap of each channel, with the
 * elements that it meets at all positions of all images (Chellapilla, Puri, Simard 2006: High
 * Performance Convolutional Neural Networks for Document Processing):
 *
 *     y  (positions batch, filters)  = columns of x (positions batch, taps channels) w
 *     dx (positions batch, channels) = columns of dy (positions batch, taps filters) w turned
 *     dw (taps channels, filters)    = (columns of x)' dy (positions batch, filters)
 *
 * Columns are copied out of what was laid into zeros before: x between its padding, or dy with
 * stride - 1 zeros between its elements. That wants memory and time, of which small planes take
 * little. */
#include "product.h"

#include <string.h>

#include "../copy.h"
#include "../lt/lt.h"

enum { MOST_STEPS = 6, MOST_ARGUMENTS = 4 };

/* Arrays of steps: the call's, then parts of the scratch memory. */
enum { LAID = WB_CONV_TENSORS, COLUMNS, TURNED, RESULT, REST, ARRAYS };

/* Without a kernel: the array is filled with zeros. */
typedef struct step {
    wb_gpu_kernel *kernel;
    int narrays;
    int arrays[MOST_ARGUMENTS];
} step;

typedef struct product_kernel {
    wb_gpu_kernel kernel;
    int32_t kind;
    int count;
    step steps[MOST_STEPS];
    int64_t bytes[ARRAYS], offsets[ARRAYS]; /* of parts of the scratch memory */
    bool is_refused;                        /* the way does not suit the call; not an error */
} product_kernel;

/* ---- running ---- */

static wb_argument argument_of(const product_kernel *k, const wb_command *command, int array) {
    if (array < WB_CONV_TENSORS) return command->arguments[wb_conv_argument(k->kind, array)];
    return wb_gpu_scratch(command, k->offsets[array]);
}

static wb_gpu_outcome run_step(const product_kernel *k, const step *s, const wb_gpu_run *run,
                               const wb_command *command) {
    wb_argument arguments[MOST_ARGUMENTS];
    for (int i = 0; i < s->narrays; i++) arguments[i] = argument_of(k, command, s->arrays[i]);
    const wb_command one = {.kernel = s->kernel,
                            .narguments = s->narrays,
                            .arguments = arguments,
                            .what = command->what};
    if (s->kernel) return s->kernel->run(s->kernel, run, &one);
    return GPU_TRY(MemsetD8Async, wb_gpu_address(run, &one, 0), 0, (size_t)k->bytes[s->arrays[0]],
                   run->stream);
}

static wb_gpu_outcome run_product(const wb_gpu_kernel *kernel, const wb_gpu_run *run,
                                  const wb_command *command) {
    const product_kernel *k = (const product_kernel *)kernel;
    wb_gpu_outcome o = {.error = NULL};
    for (int i = 0; i < k->count && !o.error; i++) o = run_step(k, &k->steps[i], run, command);
    return o;
}

static void release_product(wb_gpu_kernel *kernel) {
    product_kernel *k = (product_kernel *)kernel;
    for (int i = 0; i < k->count; i++)
        if (k->steps[i].kernel) k->steps[i].kernel->release(k->steps[i].kernel);
    wb_gpu_host->release(k);
}

/* ---- steps: false where it is refused, or an error is recorded ---- */

static bool refuse(product_kernel *k) {
    k->is_refused = true;
    return false;
}

static bool add_step(product_kernel *k, wb_gpu_kernel *kernel, step s) {
    s.kernel = kernel;
    if (kernel) k->steps[k->count++] = s;
    return kernel;
}

static bool add_copy(product_kernel *k, const wb_conv_shape *s, int from, int to,
                     const wb_gpu_box *copy) {
    return add_step(k, wb_gpu_box_copy(k->kernel.device, (wb_dtype)s->dtype, copy),
                    (step){.narrays = 3, .arrays = {from, to, REST}});
}

/* The library's: its scratch memory is the last part. */
static bool add_product(product_kernel *k, const wb_call *call, const wb_matmul_call *p, int a,
                        int b, int c) {
    const wb_call product = {.kind = WB_CALL_matmul,
                             .dtype = call->dtype,
                             .is_fast = call->is_fast,
                             .is_aligned = call->is_aligned,
                             .matmul = *p};
    wb_gpu_kernel *kernel = NULL;
    if (wb_lt_lower(k->kernel.device, &product, NULL, 0, &kernel) != WB_GPU_TAKEN) return refuse(k);
    if (!kernel) return false;
    k->bytes[REST] = (int64_t)kernel->scratch_bytes;
    return add_step(k, kernel, (step){.narrays = 4, .arrays = {a, b, c, REST}});
}

/* ---- one tap ---- */

static bool is_one_tap(const wb_conv_shape *s) {
    bool is = s->groups == 1 && s->kind != WB_CALL_conv_filter;
    for (int d = 0; d < 3; d++)
        is =
            is && s->kernel[d] == 1 && s->stride[d] == 1 && s->pad[d] == 0 && s->in[d] == s->out[d];
    return is;
}

/* offsets has room for 3 batch. */
static bool add_images(product_kernel *k, const wb_call *call, const wb_conv_shape *s,
                       int64_t *offsets) {
    const bool is_data = s->kind == WB_CALL_conv_data;
    const int64_t places = wb_conv_volume(s->in), inner = is_data ? s->filters : s->channels,
                  outer = is_data ? s->channels : s->filters, batch = s->batch;
    for (int64_t i = 0; i < batch; i++) {
        offsets[i] = i * places * inner;
        offsets[batch + i] = 0;
        offsets[2 * batch + i] = i * places * outer;
    }
    const wb_matmul_call p = {.transpose_b = is_data,
                              .m = places,
                              .n = outer,
                              .k = inner,
                              .lda = places,
                              .ldb = s->channels,
                              .ldc = places,
                              .batch = batch,
                              .offset_a = offsets,
                              .offset_b = offsets + batch,
                              .offset_c = offsets + 2 * batch};
    return add_product(k, call, &p, is_data ? WB_CONV_Y : WB_CONV_X, WB_CONV_W,
                       is_data ? WB_CONV_X : WB_CONV_Y);
}

static bool by_images(product_kernel *k, const wb_call *call, const wb_conv_shape *s) {
    int64_t *offsets = wb_gpu_host->alloc(3 * (size_t)s->batch * sizeof *offsets);
    const bool done = offsets && add_images(k, call, s, offsets);
    wb_gpu_host->release(offsets);
    return done;
}

/* ---- columns ---- */

/* The gathered array, x or dy: element i of dimension d goes to place i up + offset of `length`
 * places, and there tap t at a position reads place position step + t dilation. */
typedef struct gathering {
    int64_t size[3], up[3], offset[3], length[3], positions[3], step[3];
    int64_t planes, others; /* channels and filters, or the other way round */
    bool is_reversed;       /* the columns of the last tap come first */
} gathering;

static gathering gathering_of(const wb_call *call, const wb_conv_shape *s) {
    const bool is_data = s->kind == WB_CALL_conv_data;
    gathering g = {.planes = is_data ? s->filters : s->channels,
                   .others = is_data ? s->channels : s->filters,
                   .is_reversed = (call->window.flip != 0) != is_data};
    for (int d = 0; d < 3; d++) {
        const int64_t reach = s->dilation[d] * (s->kernel[d] - 1);
        g.size[d] = is_data ? s->out[d] : s->in[d];
        g.up[d] = is_data ? s->stride[d] : 1;
        g.offset[d] = is_data ? reach - s->pad[d] : s->pad[d];
        g.positions[d] = is_data ? s->in[d] : s->out[d];
        g.step[d] = is_data ? 1 : s->stride[d];
        g.length[d] = (g.positions[d] - 1) * g.step[d] + reach + 1;
    }
    return g;
}

static bool is_laid(const gathering *g) {
    bool is = false;
    for (int d = 0; d < 3; d++)
        is = is || g->up[d] != 1 || g->offset[d] != 0 || g->length[d] > g->size[d];
    return is;
}

/* Elements first to last of dimension d are met by some tap. */
static bool range_of(const gathering *g, int d, int64_t *first, int64_t *last) {
    const int64_t before = -g->offset[d], room = g->length[d] - 1 - g->offset[d];
    *first = before > 0 ? (before + g->up[d] - 1) / g->up[d] : 0;
    *last = room < 0 ? -1 : room / g->up[d];
    if (*last >= g->size[d]) *last = g->size[d] - 1;
    return *first <= *last;
}

static bool lay(product_kernel *k, const wb_conv_shape *s, const gathering *g, int from) {
    wb_gpu_box c = {.ndim = 0};
    int64_t from_stride = 1, to_stride = 1, first, last;
    for (int d = 0; d < 3; d++) {
        if (!range_of(g, d, &first, &last)) return refuse(k);
        c.from_offset += first * from_stride;
        c.to_offset += (first * g->up[d] + g->offset[d]) * to_stride;
        wb_gpu_box_add(&c, last - first + 1, from_stride, g->up[d] * to_stride);
        from_stride *= g->size[d], to_stride *= g->length[d];
    }
    wb_gpu_box_add(&c, g->planes * s->batch, from_stride, to_stride);
    k->steps[k->count++] = (step){.narrays = 1, .arrays = {LAID}};
    return add_copy(k, s, from, LAID, &c);
}

static bool gather(product_kernel *k, const wb_conv_shape *s, const gathering *g, int from) {
    const int64_t *sizes = from == LAID ? g->length : g->size;
    const int64_t plane = wb_conv_volume(sizes), strides[3] = {1, sizes[0], sizes[0] * sizes[1]};
    const int sign = g->is_reversed ? -1 : 1;
    wb_gpu_box c = {.ndim = 0};
    int64_t to = 1;
    for (int d = 0; d < 3; d++, to *= g->positions[d - 1])
        wb_gpu_box_add(&c, g->positions[d], g->step[d] * strides[d], to);
    wb_gpu_box_add(&c, s->batch, plane * g->planes, to);
    to *= s->batch;
    for (int d = 0; d < 3; d++, to *= s->kernel[d - 1]) {
        if (g->is_reversed) c.from_offset += (s->kernel[d] - 1) * s->dilation[d] * strides[d];
        wb_gpu_box_add(&c, s->kernel[d], sign * s->dilation[d] * strides[d], to);
    }
    wb_gpu_box_add(&c, g->planes, plane, to);
    return add_copy(k, s, from, COLUMNS, &c);
}

/* From (inner, middle, outer) to (inner, outer, middle). */
static bool turn(product_kernel *k, const wb_conv_shape *s, int from, int to, int64_t inner,
                 int64_t middle, int64_t outer) {
    wb_gpu_box c = {.ndim = 0};
    wb_gpu_box_add(&c, inner, 1, 1);
    wb_gpu_box_add(&c, outer, inner * middle, inner);
    wb_gpu_box_add(&c, middle, inner, inner * outer);
    return add_copy(k, s, from, to, &c);
}

static bool multiply(product_kernel *k, const wb_call *call, const wb_conv_shape *s,
                     const gathering *g) {
    const int64_t places = wb_conv_volume(g->positions), rows = places * s->batch,
                  taps = wb_conv_volume(s->kernel), terms = taps * g->planes;
    const wb_matmul_call p = {
        .m = rows, .n = g->others, .k = terms, .lda = rows, .ldb = terms, .ldc = rows, .batch = 1};
    const wb_matmul_call of_filter = {.transpose_a = 1,
                                      .m = terms,
                                      .n = g->others,
                                      .k = rows,
                                      .lda = rows,
                                      .ldb = rows,
                                      .ldc = terms,
                                      .batch = 1};
    switch (s->kind) {
    case WB_CALL_conv_forward:
        return add_product(k, call, &p, COLUMNS, WB_CONV_W, RESULT) &&
               turn(k, s, RESULT, WB_CONV_Y, places, s->batch, s->filters);
    case WB_CALL_conv_data:
        return turn(k, s, WB_CONV_W, TURNED, taps, s->channels, s->filters) &&
               add_product(k, call, &p, COLUMNS, TURNED, RESULT) &&
               turn(k, s, RESULT, WB_CONV_X, places, s->batch, s->channels);
    default:
        return turn(k, s, WB_CONV_Y, TURNED, places, s->filters, s->batch) &&
               add_product(k, call, &of_filter, COLUMNS, TURNED, WB_CONV_W);
    }
}

static void set_bytes(product_kernel *k, const wb_conv_shape *s, const gathering *g) {
    const int64_t each = wb_gpu_element_bytes(s->dtype),
                  rows = wb_conv_volume(g->positions) * s->batch,
                  terms = wb_conv_volume(s->kernel) * g->planes;
    if (is_laid(g)) k->bytes[LAID] = wb_conv_volume(g->length) * g->planes * s->batch * each;
    k->bytes[COLUMNS] = rows * terms * each;
    if (s->kind == WB_CALL_conv_data) k->bytes[TURNED] = terms * g->others * each;
    if (s->kind == WB_CALL_conv_filter) k->bytes[TURNED] = rows * g->others * each;
    if (s->kind != WB_CALL_conv_filter) k->bytes[RESULT] = rows * g->others * each;
}

static bool by_columns(product_kernel *k, const wb_call *call, const wb_conv_shape *s) {
    const gathering g = gathering_of(call, s);
    const int from = s->kind == WB_CALL_conv_data ? WB_CONV_Y : WB_CONV_X;
    set_bytes(k, s, &g);
    if (k->bytes[LAID] + k->bytes[COLUMNS] + k->bytes[TURNED] + k->bytes[RESULT] >
        WB_CONV_MOST_WORKSPACE_BYTES)
        return refuse(k);
    if (!is_laid(&g)) return gather(k, s, &g, from) && multiply(k, call, s, &g);
    return lay(k, s, &g, from) && gather(k, s, &g, LAID) && multiply(k, call, s, &g);
}

/* ---- making ---- */

static void place_parts(product_kernel *k) {
    int64_t at = 0;
    for (int i = WB_CONV_TENSORS; i < ARRAYS; i++) {
        k->offsets[i] = at;
        at += wb_gpu_scratch_rounded(k->bytes[i]);
    }
    k->kernel.scratch_bytes = (size_t)at;
}

wb_gpu_answer wb_conv_product_new(wb_gpu_device *device, const wb_call *call,
                                  const wb_conv_shape *s, wb_conv_way way, wb_gpu_kernel **kernel) {
    char reason[256];
    const bool fits = way == WB_CONV_PRODUCT ? is_one_tap(s) : s->groups == 1;
    *kernel = NULL;
    if (!fits || !wb_lt_load(reason, sizeof reason)) return WB_GPU_PASS;
    product_kernel *k = wb_gpu_host->alloc(sizeof *k);
    if (!k) return WB_GPU_TAKEN;
    wb_gpu_kernel_init(&k->kernel, device);
    k->kernel.run = run_product, k->kernel.release = release_product;
    k->kind = s->kind;
    if (way == WB_CONV_PRODUCT ? by_images(k, call, s) : by_columns(k, call, s)) {
        place_parts(k);
        *kernel = &k->kernel;
        return WB_GPU_TAKEN;
    }
    const bool is_refused = k->is_refused;
    release_product(&k->kernel);
    return is_refused ? WB_GPU_PASS : WB_GPU_TAKEN;
}
