#include "onednn.h"

#include <string.h>

#include "host.h"
#include "isa.h"
#include "onednn_library.h"
#include "platform/memory.h"
#include "pool.h"

static const wb_dnnl *const dnnl = &wb_dnnl_api;

/* Its compiler ends the process where it finds no memory (2.6). */
enum { MADE_IN = 64 << 20 };

bool wb_onednn_is_open(void) { return wb_dnnl_open(); }

/* ---- where it wins ---- */

enum {
    IN_FORWARD = 1 << WB_CONV_FORWARD,
    IN_DATA = 1 << WB_CONV_DATA,
    IN_FILTER = 1 << WB_CONV_FILTER
};
enum { BOTH = IN_FORWARD | IN_DATA, ALL = BOTH | IN_FILTER };

enum { ANY_SIZE = 1 << 30 };

/* Square kernels and strides, in f32, that minimal filtering (winograd.h) does not take;
 * bench/results/conv-2026-11.md has the measurements. outer are the channels of a group of the
 * result. */
static const struct {
    unsigned kinds;
    int kernel, stride;
    bool depthwise;
    int64_t most_positions; /* of a plane of y */
    int64_t most_outer;
    bool outer_is_less; /* no more than inner */
} wins[] = {
    {ALL, 3, 1, true, 28 * 28, ANY_SIZE, false},
    {ALL, 3, 2, true, 14 * 14, ANY_SIZE, false},
    {ALL, 3, 2, false, 14 * 14, ANY_SIZE, false},
    {BOTH, 1, 1, false, 28 * 28, 64, true},
    {IN_FILTER, 1, 1, false, 28 * 28, ANY_SIZE, false},
    {ALL, 1, 2, false, 14 * 14, ANY_SIZE, false},
};

enum { LEAST_IMAGES = 16, LEAST_CHANNELS = 16 }; /* of what was measured */
static const double least_flops = 3e6;

static int64_t inner_of(wb_conv_kind kind, const wb_window *w) {
    return (kind == WB_CONV_DATA ? w->filters : w->channels) / w->groups;
}

static int64_t outer_of(wb_conv_kind kind, const wb_window *w) {
    return (kind == WB_CONV_DATA ? w->channels : w->filters) / w->groups;
}

static bool is_depthwise(const wb_window *w) {
    return w->groups == w->channels && w->groups == w->filters;
}

static double flops_of(const wb_window *w) {
    return 2. * (double)(w->out[0] * w->out[1] * w->filters * w->batch) *
           (double)(w->kernel[0] * w->kernel[1] * w->channels / w->groups);
}

static bool was_measured(const wb_window *w) {
    return w->kernel[0] == w->kernel[1] && w->stride[0] == w->stride[1] && w->dilation[0] == 1 &&
           w->dilation[1] == 1 && w->batch >= LEAST_IMAGES && w->channels >= LEAST_CHANNELS &&
           w->filters >= LEAST_CHANNELS && flops_of(w) >= least_flops &&
           (w->groups == 1 || is_depthwise(w));
}

bool wb_onednn_is_faster(wb_conv_kind kind, const wb_window *w) {
    const int64_t inner = inner_of(kind, w), outer = outer_of(kind, w);
    for (size_t i = 0; i < sizeof wins / sizeof *wins; i++)
        if ((wins[i].kinds >> kind & 1) && wins[i].depthwise == (w->groups > 1) &&
            wins[i].kernel == w->kernel[0] && wins[i].stride == w->stride[0] &&
            w->out[0] * w->out[1] <= wins[i].most_positions && outer <= wins[i].most_outer &&
            (!wins[i].outer_is_less || outer <= inner))
            return was_measured(w);
    return false;
}

static bool is_possible(const wb_window *w) {
    bool fits = w->dtype == WB_F32 && w->in[2] == 1 && w->out[2] == 1 && w->kernel[2] == 1 &&
                w->batch > 0 && w->channels > 0 && w->filters > 0;
    for (int d = 0; d < 2; d++)
        fits = fits && w->in[d] > 0 && w->out[d] > 0 && w->pad[d] < w->kernel[d] * w->dilation[d];
    return fits;
}

/* ---- what is made once ---- */

enum {
    X,
    W,
    Y,
    OPERANDS,
    PRIMITIVES = OPERANDS + 1 /* a conversion of each, and the convolution */
};
enum {
    PIECES = 8,             /* wanted at least */
    PIECE_BYTES = 600000,   /* of x and y that stay in L2 with their conversions */
    SUMMED_BYTES = 6000000, /* the same for the filter gradient */
    SUM_ELEMENTS = 1 << 14, /* of a piece of work that is only memory */
    ALIGNMENT = 64
};

typedef struct worker {
    handle stream;
    handle dense[OPERANDS]; /* memory objects: as Weber holds the array */
    handle own[OPERANDS];   /* as the primitive wants it; unused if that is the same */
    handle scratch[PRIMITIVES];
} worker;

struct wb_onednn {
    wb_conv_kind kind;
    wb_window window;
    int64_t images; /* of a piece: they divide the batch */
    handle primitive[PRIMITIVES];
    bool converts[OPERANDS];
    size_t own_bytes[OPERANDS], dense_bytes[OPERANDS]; /* of a piece; of all weights */
    size_t scratch_bytes;
    int workers;
    worker worker[];
};

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static int output_of(wb_conv_kind kind) {
    static const int output[] = {[WB_CONV_FORWARD] = Y, [WB_CONV_DATA] = X, [WB_CONV_FILTER] = W};
    return output[kind];
}

/* As oneDNN numbers what the convolution takes: a gradient's number is 128 above its array's. */
static int argument_of(wb_conv_kind kind, int operand, const int numbers[OPERANDS]) {
    const bool is_gradient = operand == output_of(kind) || operand == Y;
    return numbers[operand] + (kind != WB_CONV_FORWARD && is_gradient ? 128 : 0);
}

static int query_of(wb_conv_kind kind, int operand) {
    static const int number[OPERANDS] = {[X] = 129, [W] = 131, [Y] = 133};
    const bool is_gradient = operand == output_of(kind) || operand == Y;
    return number[operand] + (kind != WB_CONV_FORWARD && is_gradient ? 1 : 0);
}

/* Those of the filter gradient are added: they are few. */
static int64_t images_of(wb_conv_kind kind, const wb_window *w) {
    const int64_t most = kind == WB_CONV_FILTER ? SUMMED_BYTES : PIECE_BYTES;
    const int64_t image =
        (w->in[0] * w->in[1] * w->channels + w->out[0] * w->out[1] * w->filters) * 4;
    int64_t images = w->batch / PIECES;
    if (images > most / image) images = most / image;
    if (images < 1) images = 1;
    while (w->batch % images != 0) images--;
    return images;
}

static bool describe(const wb_onednn *c, int layout, int weights, description of[OPERANDS]) {
    const wb_window *w = &c->window;
    const int64_t filters = w->filters / w->groups, channels = w->channels / w->groups;
    const dims x = {c->images, w->channels, w->in[1], w->in[0]};
    const dims y = {c->images, w->filters, w->out[1], w->out[0]};
    const dims k = {w->groups, filters, channels, w->kernel[1], w->kernel[0]};
    const int first = w->groups == 1; /* without groups the weights have four dimensions */
    return dnnl->memory_desc_init_by_tag(&of[X], 4, x, F32, layout) == SUCCESS &&
           dnnl->memory_desc_init_by_tag(&of[W], 5 - first, k + first, F32, weights) == SUCCESS &&
           dnnl->memory_desc_init_by_tag(&of[Y], 4, y, F32, layout) == SUCCESS;
}

/* The descriptor of a kind, or NULL; the gradients want that of forward as a hint. */
static handle describe_kind(const wb_onednn *c, wb_conv_kind kind, const description d[OPERANDS],
                            handle hint) {
    const wb_window *w = &c->window;
    dims stride, dilation, low, high;
    for (int i = 0; i < 2; i++) { /* the slowest dimension first */
        const int from = 1 - i;
        stride[i] = w->stride[from];
        dilation[i] = w->dilation[from] - 1;
        low[i] = w->pad[from];
        high[i] = (w->out[from] - 1) * w->stride[from] + (w->kernel[from] - 1) * w->dilation[from] +
                  1 - w->in[from] - w->pad[from];
    }
    operation o;
    int status;
    if (kind == WB_CONV_FORWARD)
        status = dnnl->dilated_convolution_forward_desc_init(
            &o, FORWARD_TRAINING, DIRECT, &d[X], &d[W], NULL, &d[Y], stride, dilation, low, high);
    else if (kind == WB_CONV_DATA)
        status = dnnl->dilated_convolution_backward_data_desc_init(&o, DIRECT, &d[X], &d[W], &d[Y],
                                                                   stride, dilation, low, high);
    else
        status = dnnl->dilated_convolution_backward_weights_desc_init(
            &o, DIRECT, &d[X], &d[W], NULL, &d[Y], stride, dilation, low, high);
    handle made = NULL;
    if (status == SUCCESS)
        dnnl->primitive_desc_create(&made, &o, dnnl->attributes, dnnl->engine, hint);
    return made;
}

/* The primitive of a descriptor, and memory objects for its scratch memory. */
static bool make_primitive(wb_onednn *c, int number, handle descriptor) {
    const description *d = dnnl->primitive_desc_query_md(descriptor, QUERY_SCRATCH, 0);
    const size_t bytes = d ? dnnl->memory_desc_get_size(d) : 0;
    if (c->scratch_bytes < aligned(bytes)) c->scratch_bytes = aligned(bytes);
    if (!wb_platform_has_address_space(MADE_IN)) return false;
    if (dnnl->primitive_create(&c->primitive[number], descriptor) != SUCCESS) return false;
    for (int i = 0; i < c->workers && bytes > 0; i++)
        if (dnnl->memory_create(&c->worker[i].scratch[number], d, dnnl->engine, NULL) != SUCCESS)
            return false;
    return true;
}

static bool make_memories(wb_onednn *c, int operand, const description *dense,
                          const description *own) {
    for (int i = 0; i < c->workers; i++) {
        worker *w = &c->worker[i];
        if (dnnl->memory_create(&w->dense[operand], dense, dnnl->engine, NULL) != SUCCESS ||
            (c->converts[operand] &&
             dnnl->memory_create(&w->own[operand], own, dnnl->engine, NULL) != SUCCESS))
            return false;
    }
    return true;
}

static bool make_operand(wb_onednn *c, int operand, const description *dense,
                         const description *own) {
    if (!own) return false;
    c->converts[operand] = !dnnl->memory_desc_equal(dense, own);
    c->dense_bytes[operand] = dnnl->memory_desc_get_size(dense);
    c->own_bytes[operand] = dnnl->memory_desc_get_size(own);
    if (!make_memories(c, operand, dense, own)) return false;
    if (!c->converts[operand]) return true;
    const bool is_output = operand == output_of(c->kind);
    handle made = NULL;
    if (dnnl->reorder_primitive_desc_create(&made, is_output ? own : dense, dnnl->engine,
                                            is_output ? dense : own, dnnl->engine,
                                            dnnl->attributes) != SUCCESS)
        return false;
    const bool succeeds = make_primitive(c, operand, made);
    dnnl->primitive_desc_destroy(made);
    return succeeds;
}

static bool make_operands(wb_onednn *c, handle descriptor) {
    description dense[OPERANDS];
    bool succeeds = describe(c, DENSE_4, c->window.groups == 1 ? DENSE_4 : DENSE_5, dense) &&
                    make_primitive(c, OPERANDS, descriptor);
    for (int i = 0; i < OPERANDS && succeeds; i++)
        succeeds = make_operand(c, i, &dense[i],
                                dnnl->primitive_desc_query_md(descriptor, query_of(c->kind, i), 0));
    for (int i = 0; i < c->workers && succeeds; i++)
        succeeds = dnnl->stream_create(&c->worker[i].stream, dnnl->engine, IN_ORDER) == SUCCESS;
    return succeeds;
}

/* Products of matrices need no conversion; everything else is several times slower without one. */
static bool make_all(wb_onednn *c) {
    const wb_window *w = &c->window;
    const bool is_product = w->kernel[0] * w->kernel[1] == 1 && w->groups == 1;
    description wanted[OPERANDS];
    if (!describe(c, is_product ? DENSE_4 : ANY, is_product ? DENSE_4 : ANY, wanted)) return false;
    handle forward = describe_kind(c, WB_CONV_FORWARD, wanted, NULL);
    handle descriptor = c->kind == WB_CONV_FORWARD ? forward
                        : forward                  ? describe_kind(c, c->kind, wanted, forward)
                                                   : NULL;
    const bool succeeds = descriptor && make_operands(c, descriptor);
    if (descriptor && descriptor != forward) dnnl->primitive_desc_destroy(descriptor);
    if (forward) dnnl->primitive_desc_destroy(forward);
    return succeeds;
}

wb_onednn *wb_onednn_new(wb_conv_kind kind, const wb_window *window) {
    for (int i = 0; i < 3; i++) /* a border around a dimension that is not there */
        if (window->in[i] == 1 && window->kernel[i] == 1 && window->pad[i] != 0) return NULL;
    if (!is_possible(window) || !wb_onednn_is_open()) return NULL;
    if (wb_conv_asked() == WB_CONV_AUTO && !wb_onednn_is_faster(kind, window)) return NULL;
    const int workers = wb_cpu_threads();
    wb_onednn *c = wb_host_alloc(sizeof *c + (size_t)workers * sizeof c->worker[0]);
    if (!c) return NULL;
    c->kind = kind, c->window = *window, c->workers = workers;
    c->images = images_of(kind, window);
    const int before = wb_dnnl_take_one_thread();
    const bool succeeds = make_all(c);
    wb_dnnl_give_threads(before);
    if (succeeds) return c;
    wb_onednn_free(c);
    return NULL;
}

static void free_memory(handle memory) {
    if (memory) dnnl->memory_destroy(memory);
}

void wb_onednn_free(wb_onednn *c) {
    if (!c) return;
    for (int i = 0; i < c->workers; i++) {
        worker *w = &c->worker[i];
        for (int o = 0; o < OPERANDS; o++) free_memory(w->dense[o]), free_memory(w->own[o]);
        for (int p = 0; p < PRIMITIVES; p++) free_memory(w->scratch[p]);
        if (w->stream) dnnl->stream_destroy(w->stream);
    }
    for (int p = 0; p < PRIMITIVES; p++)
        if (c->primitive[p]) dnnl->primitive_destroy(c->primitive[p]);
    wb_host_release(c);
}

/* ---- running ---- */

typedef struct job {
    wb_onednn *conv;
    const char *array[OPERANDS]; /* whole, as Weber holds them */
    char *out;                   /* one of them */
    char *flipped;               /* weights that are read forwards, if ours are read backwards */
    char *weights;               /* in the primitive's layout; filter: a sum for each piece */
    char *scratch;               /* of the workers */
    const char *sum_from, *flip_from;
    char *sum_to, *flip_to;
    bool failed;
    wb_tile_fn *done;
    void *context;
} job;

static int64_t taps_of(const wb_onednn *c) { return c->window.kernel[0] * c->window.kernel[1]; }
static bool is_flipped(const wb_onednn *c) { return c->window.flip && taps_of(c) > 1; }
static int64_t pieces_of(const wb_onednn *c) { return c->window.batch / c->images; }

static size_t flipped_bytes(const wb_onednn *c) {
    return is_flipped(c) ? aligned(c->dense_bytes[W]) : 0;
}

static size_t weights_bytes(const wb_onednn *c) {
    const int64_t count = c->kind == WB_CONV_FILTER ? pieces_of(c) : 1;
    return aligned(c->own_bytes[W]) * (size_t)count;
}

static size_t worker_bytes(const wb_onednn *c) {
    return aligned(c->own_bytes[X]) + aligned(c->own_bytes[Y]) + c->scratch_bytes;
}

size_t wb_onednn_scratch(const wb_onednn *c) {
    return flipped_bytes(c) + weights_bytes(c) + worker_bytes(c) * (size_t)c->workers;
}

static bool set(handle memory, const void *array) {
    void *writable; /* oneDNN has one kind of memory for what it reads and what it writes */
    memcpy(&writable, &array, sizeof array);
    return !memory || dnnl->memory_set_data_handle(memory, writable) == SUCCESS;
}

/* The last of arguments is free for the scratch memory. */
static bool execute(const wb_onednn *c, const worker *w, int number, argument *arguments,
                    int count) {
    if (w->scratch[number]) arguments[count++] = (argument){ARG_SCRATCH, w->scratch[number]};
    return dnnl->primitive_execute(c->primitive[number], w->stream, count, arguments) == SUCCESS &&
           dnnl->stream_wait(w->stream) == SUCCESS;
}

static bool convert(const wb_onednn *c, const worker *w, int operand) {
    const bool is_output = operand == output_of(c->kind);
    argument arguments[3] = {{ARG_FROM, is_output ? w->own[operand] : w->dense[operand]},
                             {ARG_TO, is_output ? w->dense[operand] : w->own[operand]}};
    return !c->converts[operand] || execute(c, w, operand, arguments, 2);
}

static bool convolve(const wb_onednn *c, const worker *w) {
    static const int numbers[OPERANDS] = {[X] = 1, [W] = 33, [Y] = 17};
    argument arguments[OPERANDS + 1];
    for (int i = 0; i < OPERANDS; i++)
        arguments[i] =
            (argument){argument_of(c->kind, i, numbers), c->converts[i] ? w->own[i] : w->dense[i]};
    return execute(c, w, OPERANDS, arguments, OPERANDS);
}

static bool set_scratch(const job *j, int number) {
    const wb_onednn *c = j->conv;
    const worker *w = &c->worker[number];
    char *scratch = j->scratch + worker_bytes(c) * (size_t)number;
    bool succeeds = set(w->own[X], scratch);
    scratch += aligned(c->own_bytes[X]);
    succeeds = succeeds && set(w->own[Y], scratch);
    scratch += aligned(c->own_bytes[Y]);
    for (int p = 0; p < PRIMITIVES; p++) succeeds = succeeds && set(w->scratch[p], scratch);
    return succeeds;
}

/* The weights that the primitive of a piece reads or writes. */
static const char *weights_of_piece(const job *j, int64_t piece) {
    const wb_onednn *c = j->conv;
    if (c->kind == WB_CONV_FILTER) return j->weights + aligned(c->own_bytes[W]) * (size_t)piece;
    if (c->converts[W]) return j->weights;
    return is_flipped(c) ? j->flipped : j->array[W];
}

static bool run_piece(const job *j, int64_t piece, int number) {
    const wb_onednn *c = j->conv;
    const worker *w = &c->worker[number];
    const int output = output_of(c->kind);
    return set_scratch(j, number) &&
           set(c->converts[W] ? w->own[W] : w->dense[W], weights_of_piece(j, piece)) &&
           set(w->dense[X], j->array[X] + c->dense_bytes[X] * (size_t)piece) &&
           set(w->dense[Y], j->array[Y] + c->dense_bytes[Y] * (size_t)piece) &&
           (output == X || convert(c, w, X)) && (output == Y || convert(c, w, Y)) &&
           convolve(c, w) && (output == W || convert(c, w, output));
}

static void note(job *j, bool succeeds) {
    if (!succeeds) __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
}

static void piece_task(void *context, int64_t piece, int number) {
    job *j = context;
    const wb_onednn *c = j->conv;
    const int before = wb_dnnl_take_one_thread();
    const bool succeeds = run_piece(j, piece, number);
    wb_dnnl_give_threads(before);
    note(j, succeeds);
    if (!succeeds || !j->done) return;
    const wb_window *w = &c->window;
    const bool is_data = c->kind == WB_CONV_DATA;
    const int64_t plane = is_data ? w->in[0] * w->in[1] : w->out[0] * w->out[1];
    const int64_t planes = c->images * (is_data ? w->channels : w->filters);
    j->done(j->context, 0, 0, plane, piece * planes, planes, number);
}

/* All weights between Weber's layout and the primitive's. */
static void weights_task(void *context, int64_t piece, int number) {
    job *j = context;
    const wb_onednn *c = j->conv;
    const worker *w = &c->worker[number];
    const char *dense = is_flipped(c) ? j->flipped : j->array[W];
    (void)piece;
    const int before = wb_dnnl_take_one_thread();
    note(j, set_scratch(j, number) && set(w->own[W], j->weights) && set(w->dense[W], dense) &&
                convert(c, w, W));
    wb_dnnl_give_threads(before);
}

static void flip_task(void *context, int64_t piece, int number) {
    const job *j = context;
    const int64_t taps = taps_of(j->conv), each = SUM_ELEMENTS / taps + 1;
    const int64_t filters = (int64_t)(j->conv->dense_bytes[W] / sizeof(float)) / taps;
    const int64_t end = (piece + 1) * each < filters ? (piece + 1) * each : filters;
    const float *from = (const void *)j->flip_from;
    float *to = (void *)j->flip_to;
    (void)number;
    for (int64_t i = piece * each * taps; i < end * taps; i += taps)
        for (int64_t t = 0; t < taps; t++) to[i + t] = from[i + taps - 1 - t];
}

static void flip(job *j, const char *from, char *to) {
    const int64_t taps = taps_of(j->conv), each = SUM_ELEMENTS / taps + 1;
    const int64_t filters = (int64_t)(j->conv->dense_bytes[W] / sizeof(float)) / taps;
    j->flip_from = from, j->flip_to = to;
    wb_cpu_parallel((filters + each - 1) / each, flip_task, j);
}

/* to = the sums of all pieces, added in their order */
static void sum_task(void *context, int64_t piece, int number) {
    const job *j = context;
    const wb_onednn *c = j->conv;
    const size_t part = aligned(c->own_bytes[W]) / sizeof(float);
    const size_t count = c->own_bytes[W] / sizeof(float), first = (size_t)piece * SUM_ELEMENTS;
    const size_t end = first + SUM_ELEMENTS < count ? first + SUM_ELEMENTS : count;
    const float *from = (const void *)j->sum_from;
    float *to = (void *)j->sum_to;
    (void)number;
    if (from != to) memcpy(to + first, from + first, (end - first) * sizeof(float));
    for (int64_t p = 1; p < pieces_of(c); p++) {
        from += part;
        for (size_t i = first; i < end; i++) to[i] += from[i];
    }
}

static void finish_filter(job *j) {
    const wb_onednn *c = j->conv;
    const int64_t count = (int64_t)(c->own_bytes[W] / sizeof(float));
    j->sum_from = j->weights;
    j->sum_to = c->converts[W] ? j->weights : is_flipped(c) ? j->flipped : j->out;
    wb_cpu_parallel((count + SUM_ELEMENTS - 1) / SUM_ELEMENTS, sum_task, j);
    if (c->converts[W]) wb_cpu_parallel(1, weights_task, j);
    if (is_flipped(c)) flip(j, j->flipped, j->out);
}

wb_status wb_onednn_conv(wb_onednn *c, const void *a, const void *b, void *out, void *scratch,
                         wb_tile_fn *done, void *context) {
    static const int operands[][2] = {
        [WB_CONV_FORWARD] = {X, W}, [WB_CONV_DATA] = {Y, W}, [WB_CONV_FILTER] = {X, Y}};
    const bool is_filter = c->kind == WB_CONV_FILTER;
    job j = {.conv = c,
             .out = out,
             .flipped = scratch,
             .done = is_filter ? NULL : done,
             .context = context};
    j.array[operands[c->kind][0]] = a;
    j.array[operands[c->kind][1]] = b;
    j.array[output_of(c->kind)] = out;
    j.weights = j.flipped + flipped_bytes(c);
    j.scratch = j.weights + weights_bytes(c);
    if (!is_filter && is_flipped(c)) flip(&j, j.array[W], j.flipped);
    if (!is_filter && c->converts[W]) wb_cpu_parallel(1, weights_task, &j);
    wb_cpu_parallel(pieces_of(c), piece_task, &j);
    if (is_filter) finish_filter(&j);
    return j.failed ? wb_host_fail(WB_ERROR_DEVICE, "conv: oneDNN failed") : WB_OK;
}
