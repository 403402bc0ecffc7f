/* bench_conv [--smoke] [THREADS]: the three kinds of convolution in f32, (W, H, C, N) in and out:
 * Weber's kernels; and oneDNN on its own channels-last arrays, where its library and header are
 * there (Debian: libdnnl-dev). Rounds alternate between them; a cell is a median in ms, with
 * GFLOP/s, a ratio above 1 means that oneDNN is faster. */
#include "isa.h"
#include "pool.h"
#include "window.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__has_include)
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#define HAVE_ONEDNN (DNNL_VERSION_MAJOR == 2)
#endif
#endif
#ifndef HAVE_ONEDNN
#define HAVE_ONEDNN 0
#endif

enum { ROUNDS = 21, KINDS = 3 };

typedef struct layer {
    const char *name;
    int batch, channels, in, filters, kernel, pad, stride, groups;
} layer;

/* 3x3 with padding 1 but for the first two, or as it says */
static const layer layers[] = {
    {"64x1x28x28 -> 32", 64, 1, 28, 32, 3, 0, 1, 1},
    {"64x32x26x26 -> 64", 64, 32, 26, 64, 3, 0, 1, 1},
    {"8x64x56x56 -> 64", 8, 64, 56, 64, 3, 1, 1, 1},
    {"8x64x56x56 -> 128 stride 2", 8, 64, 56, 128, 3, 1, 2, 1},
    {"8x256x14x14 -> 256", 8, 256, 14, 256, 3, 1, 1, 1},
    {"8x256x14x14 -> 64, 1x1", 8, 256, 14, 64, 1, 0, 1, 1},
    {"16x16x28x28 -> 16", 16, 16, 28, 16, 3, 1, 1, 1},
    {"64x16x28x28 -> 32", 64, 16, 28, 32, 3, 1, 1, 1},
    {"64x32x28x28 -> 32", 64, 32, 28, 32, 3, 1, 1, 1},
    {"16x64x28x28 -> 64", 16, 64, 28, 64, 3, 1, 1, 1},
    {"64x16x28x28 -> 32, pad 0", 64, 16, 28, 32, 3, 0, 1, 1},
    {"16x64x28x28 -> 64, pad 0", 16, 64, 28, 64, 3, 0, 1, 1},
    {"16x128x14x14 -> 128, pad 0", 16, 128, 14, 128, 3, 0, 1, 1},
    {"16x32x14x14 -> 32", 16, 32, 14, 32, 3, 1, 1, 1},
    {"16x64x14x14 -> 64", 16, 64, 14, 64, 3, 1, 1, 1},
    {"64x64x14x14 -> 64", 64, 64, 14, 64, 3, 1, 1, 1},
    {"16x128x14x14 -> 128", 16, 128, 14, 128, 3, 1, 1, 1},
    {"16x256x14x14 -> 256", 16, 256, 14, 256, 3, 1, 1, 1},
    {"64x64x7x7 -> 64", 64, 64, 7, 64, 3, 1, 1, 1},
    {"16x128x7x7 -> 128", 16, 128, 7, 128, 3, 1, 1, 1},
    {"16x256x7x7 -> 256", 16, 256, 7, 256, 3, 1, 1, 1},
    {"64x256x7x7 -> 256", 64, 256, 7, 256, 3, 1, 1, 1},
    {"64x16x28x28 -> 32 stride 2", 64, 16, 28, 32, 3, 1, 2, 1},
    {"16x32x28x28 -> 64 stride 2", 16, 32, 28, 64, 3, 1, 2, 1},
    {"16x64x28x28 -> 128 stride 2", 16, 64, 28, 128, 3, 1, 2, 1},
    {"64x64x14x14 -> 128 stride 2", 64, 64, 14, 128, 3, 1, 2, 1},
    {"16x128x14x14 -> 256 stride 2", 16, 128, 14, 256, 3, 1, 2, 1},
    {"16x16x28x28 -> 64, 1x1", 16, 16, 28, 64, 1, 0, 1, 1},
    {"16x64x28x28 -> 16, 1x1", 16, 64, 28, 16, 1, 0, 1, 1},
    {"16x64x28x28 -> 64, 1x1", 16, 64, 28, 64, 1, 0, 1, 1},
    {"16x64x14x14 -> 256, 1x1", 16, 64, 14, 256, 1, 0, 1, 1},
    {"16x256x14x14 -> 64, 1x1", 16, 256, 14, 64, 1, 0, 1, 1},
    {"16x256x14x14 -> 256, 1x1", 16, 256, 14, 256, 1, 0, 1, 1},
    {"64x128x7x7 -> 128, 1x1", 64, 128, 7, 128, 1, 0, 1, 1},
    {"16x256x7x7 -> 256, 1x1", 16, 256, 7, 256, 1, 0, 1, 1},
    {"16x64x28x28 -> 128, 1x1 stride 2", 16, 64, 28, 128, 1, 0, 2, 1},
    {"16x128x14x14 -> 256, 1x1 stride 2", 16, 128, 14, 256, 1, 0, 2, 1},
    {"16x3x64x64 -> 64, 7x7 stride 2", 16, 3, 64, 64, 7, 3, 2, 1},
    {"16x128x8x8 -> 256 stride 2", 16, 128, 8, 256, 3, 1, 2, 1},
    {"16x256x4x4 -> 256", 16, 256, 4, 256, 3, 1, 1, 1},
    {"16x256x4x4 -> 512 stride 2", 16, 256, 4, 512, 3, 1, 2, 1},
    {"16x512x2x2 -> 512", 16, 512, 2, 512, 3, 1, 1, 1},
    {"8x64x56x56, depthwise", 8, 64, 56, 64, 3, 1, 1, 64},
    {"16x32x28x28, depthwise", 16, 32, 28, 32, 3, 1, 1, 32},
    {"64x64x14x14, depthwise", 64, 64, 14, 64, 3, 1, 1, 64},
    {"16x128x14x14, depthwise", 16, 128, 14, 128, 3, 1, 1, 128},
    {"16x256x7x7, depthwise", 16, 256, 7, 256, 3, 1, 1, 256},
    {"16x64x28x28, depthwise stride 2", 16, 64, 28, 64, 3, 1, 2, 64},
    {"16x64x28x28 -> 64, 4 groups", 16, 64, 28, 64, 3, 1, 1, 4},
};

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *ms, int count) {
    qsort(ms, (size_t)count, sizeof *ms, ascending);
    return ms[count / 2];
}

static float *floats(int64_t count) {
    float *array = aligned_alloc(64, ((size_t)count * sizeof *array + 127) & ~(size_t)63);
    if (!array) abort();
    for (int64_t i = 0; i < count; i++) array[i] = (float)(i * 7919 % 1009) / 1009 - .5f;
    return array;
}

static wb_window window_of(const layer *l) {
    const int out = (l->in + 2 * l->pad - l->kernel) / l->stride + 1;
    return (wb_window){.dtype = WB_F32,
                       .call.in = {l->in, l->in, 1},
                       .call.out = {out, out, 1},
                       .call.kernel = {l->kernel, l->kernel, 1},
                       .call.stride = {l->stride, l->stride, 1},
                       .call.dilation = {1, 1, 1},
                       .call.pad = {l->pad, l->pad, 0},
                       .call.channels = l->channels,
                       .call.filters = l->filters,
                       .call.groups = l->groups,
                       .call.batch = l->batch,
                       .call.flip = true};
}

/* ---- one convolution of ours ---- */

typedef struct own {
    wb_conv_kind kind;
    const wb_window *window;
    const float *a, *b;
    float *out, *scratch;
} own;

static own own_of(wb_conv_kind kind, const wb_window *w, float *x, float *k, float *y) {
    const size_t bytes = (size_t)wb_cpu_conv_scratch(kind, w);
    return (own){.kind = kind,
                 .window = w,
                 .a = kind == WB_CONV_DATA ? y : x,
                 .b = kind == WB_CONV_FILTER ? y : k,
                 .out = kind == WB_CONV_FORWARD ? y
                        : kind == WB_CONV_DATA  ? x
                                                : k,
                 .scratch = floats((int64_t)(bytes / sizeof(float)) + 1)};
}

static double run_own(const own *o) {
    const double start = now_ms();
    wb_cpu_conv(o->kind, o->window, o->a, o->b, o->out, o->scratch, NULL, NULL);
    return now_ms() - start;
}

/* ---- the same of oneDNN ---- */

#if HAVE_ONEDNN

#define ONEDNN_LIST(X)                                                                             \
    X(engine_create)                                                                               \
    X(stream_create)                                                                               \
    X(stream_wait)                                                                                 \
    X(memory_desc_init_by_tag)                                                                     \
    X(memory_desc_get_size)                                                                        \
    X(memory_create)                                                                               \
    X(memory_destroy)                                                                              \
    X(convolution_forward_desc_init)                                                               \
    X(convolution_backward_data_desc_init)                                                         \
    X(convolution_backward_weights_desc_init)                                                      \
    X(primitive_desc_create)                                                                       \
    X(primitive_desc_query_md)                                                                     \
    X(primitive_desc_destroy)                                                                      \
    X(primitive_create)                                                                            \
    X(primitive_execute)                                                                           \
    X(primitive_destroy)

static struct {
#define X(name) __typeof__(dnnl_##name) *name;
    ONEDNN_LIST(X)
#undef X
    dnnl_engine_t engine;
    dnnl_stream_t stream;
} dnnl;

typedef struct peer {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
    float *array[3];
    dnnl_exec_arg_t args[3];
} peer;

static bool peer_open(void) {
    void *library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define X(name)                                                                                    \
    *(void **)&dnnl.name = dlsym(library, "dnnl_" #name);                                          \
    if (!dnnl.name) return false;
    ONEDNN_LIST(X)
#undef X
    return dnnl.engine_create(&dnnl.engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl.stream_create(&dnnl.stream, dnnl.engine, dnnl_stream_default_flags) == dnnl_success;
}

static void describe(dnnl_memory_desc_t md[3], const layer *l, const wb_window *w) {
    const dnnl_dim_t c = l->channels / l->groups, f = l->filters / l->groups;
    const dnnl_dims_t x = {l->batch, l->channels, l->in, l->in};
    const dnnl_dims_t y = {l->batch, l->filters, w->out[1], w->out[0]};
    const dnnl_dims_t dense = {f, c, l->kernel, l->kernel};
    const dnnl_dims_t grouped = {l->groups, f, c, l->kernel, l->kernel};
    dnnl.memory_desc_init_by_tag(&md[0], 4, x, dnnl_f32, dnnl_nhwc);
    if (l->groups == 1)
        dnnl.memory_desc_init_by_tag(&md[1], 4, dense, dnnl_f32, dnnl_format_tag_any);
    else
        dnnl.memory_desc_init_by_tag(&md[1], 5, grouped, dnnl_f32, dnnl_format_tag_any);
    dnnl.memory_desc_init_by_tag(&md[2], 4, y, dnnl_f32, dnnl_nhwc);
}

/* The descriptor of one kind; the gradients want the forward one as a hint. */
static dnnl_primitive_desc_t peer_desc(wb_conv_kind kind, const layer *l,
                                       const dnnl_memory_desc_t md[3], dnnl_primitive_desc_t hint) {
    const dnnl_dims_t stride = {l->stride, l->stride}, pad = {l->pad, l->pad};
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t made = NULL;
    if (kind == WB_CONV_FORWARD)
        dnnl.convolution_forward_desc_init(&desc, dnnl_forward_training, direct, &md[0], &md[1],
                                           NULL, &md[2], stride, pad, pad);
    else if (kind == WB_CONV_DATA)
        dnnl.convolution_backward_data_desc_init(&desc, direct, &md[0], &md[1], &md[2], stride, pad,
                                                 pad);
    else
        dnnl.convolution_backward_weights_desc_init(&desc, direct, &md[0], &md[1], NULL, &md[2],
                                                    stride, pad, pad);
    dnnl.primitive_desc_create(&made, &desc, NULL, dnnl.engine, hint);
    return made;
}

static bool peer_make(peer *p, wb_conv_kind kind, const layer *l, const wb_window *w) {
    static const int arg[KINDS][3] = {
        [WB_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [WB_CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [WB_CONV_FILTER] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    dnnl_memory_desc_t md[3];
    describe(md, l, w);
    dnnl_primitive_desc_t forward = peer_desc(WB_CONV_FORWARD, l, md, NULL);
    dnnl_primitive_desc_t desc = peer_desc(kind, l, md, forward);
    if (!desc || dnnl.primitive_create(&p->primitive, desc) != dnnl_success) return false;
    const dnnl_query_t weights =
        kind == WB_CONV_FILTER ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    for (int i = 0; i < 3; i++) {
        const dnnl_memory_desc_t *m =
            i == 1 ? dnnl.primitive_desc_query_md(desc, weights, 0) : &md[i];
        p->array[i] = floats((int64_t)(dnnl.memory_desc_get_size(m) / sizeof(float)));
        dnnl.memory_create(&p->memory[i], m, dnnl.engine, p->array[i]);
        p->args[i] = (dnnl_exec_arg_t){arg[kind][i], p->memory[i]};
    }
    dnnl.primitive_desc_destroy(desc);
    dnnl.primitive_desc_destroy(forward);
    return true;
}

static double peer_run(const peer *p) {
    const double start = now_ms();
    dnnl.primitive_execute(p->primitive, dnnl.stream, 3, p->args);
    dnnl.stream_wait(dnnl.stream);
    return now_ms() - start;
}

static void peer_free(peer *p) {
    dnnl.primitive_destroy(p->primitive);
    for (int i = 0; i < 3; i++) {
        dnnl.memory_destroy(p->memory[i]);
        free(p->array[i]);
    }
}

#else

typedef struct peer {
    int none;
} peer;
static bool peer_open(void) { return false; }
static bool peer_make(peer *p, wb_conv_kind kind, const layer *l, const wb_window *w) {
    (void)p, (void)kind, (void)l, (void)w;
    return false;
}
static double peer_run(const peer *p) { return p->none; }
static void peer_free(peer *p) { (void)p; }

#endif

/* ---- the table ---- */

static void show(double ms, double flops, double ours) {
    if (ms > 0)
        printf(" %.3f (%.0f) | %.2f |", ms, flops / ms * 1e-6, ours / ms);
    else
        printf(" - | - |");
}

static void compare(const own *o, const layer *l, bool has_peer, int rounds) {
    static const char *const names[KINDS] = {"forward", "data", "filter"};
    const wb_window *w = o->window;
    double ours[ROUNDS], theirs[ROUNDS];
    peer p;
    const double flops =
        2. * (double)(w->call.out[0] * w->call.out[1] * w->call.filters * w->call.batch) *
        (double)(w->call.kernel[0] * w->call.kernel[1] * w->call.channels / w->call.groups);
    has_peer = has_peer && peer_make(&p, o->kind, l, w);
    for (int i = -1; i < rounds; i++) { /* the first round warms up */
        const int at = i < 0 ? 0 : i;
        ours[at] = run_own(o);
        theirs[at] = has_peer ? peer_run(&p) : 0;
    }
    const double ms = median(ours, rounds);
    printf("| %s | %s | %.3f (%.0f) |", l->name, names[o->kind], ms, flops / ms * 1e-6);
    show(median(theirs, rounds), flops, ms);
    printf("\n");
    fflush(stdout);
    if (has_peer) peer_free(&p);
}

static void run_layer(const layer *l, bool has_peer, int rounds) {
    const wb_window w = window_of(l);
    float *x = floats(w.call.in[0] * w.call.in[1] * w.call.channels * w.call.batch);
    float *y = floats(w.call.out[0] * w.call.out[1] * w.call.filters * w.call.batch);
    float *k = floats(w.call.kernel[0] * w.call.kernel[1] * w.call.channels / w.call.groups *
                      w.call.filters);
    for (wb_conv_kind kind = WB_CONV_FORWARD; kind <= WB_CONV_FILTER; kind++) {
        own ours = own_of(kind, &w, x, k, y);
        compare(&ours, l, has_peer, rounds);
        free(ours.scratch);
    }
    free(x);
    free(y);
    free(k);
}

int main(int count, char **arguments) {
    const bool smoke = count > 1 && strcmp(arguments[1], "--smoke") == 0;
    const char *threads = count > 1 + smoke ? arguments[1 + smoke] : "1";
    setenv("OMP_NUM_THREADS", threads, 1);
    wb_cpu_set_threads(atoi(threads));
    const bool has_peer = peer_open();
    printf("%s, %s threads\n", wb_cpu_isa_name(wb_cpu_isa()), threads);
    printf("| batch x channels x plane -> filters | kind | Weber ms (GF/s) | oneDNN, nhwc | ratio "
           "|\n|-|-|-|-|-|\n");
    const size_t used = smoke ? 1 : sizeof layers / sizeof *layers;
    for (size_t i = 0; i < used; i++) run_layer(&layers[i], has_peer, smoke ? 1 : ROUNDS);
    return 0;
}
