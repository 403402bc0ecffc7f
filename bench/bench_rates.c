/* bench_rates [--smoke]: each operation below once, at the size of its example.
 * bench_rates --serve: steered by lines on the standard input, so that somebody can run it in turn
 * with others:
 *
 *     warm KIND TYPE N...     computes what time and check ask for, once: kernels are compiled
 *     time KIND TYPE N...     answers median, least and mean microseconds for one, with many on
 *                             their way
 *     check KIND TYPE N...    answers the sum of |x| over its results
 *     card                    answers device, name, driver, megabytes, in a line
 *
 * The device is that of WEBER_DEVICE. peer_rates.py answers the same lines for torch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "clock.h"
#include "launch.h"
#include "ops/step.h"

enum { MOST_NUMBERS = 6, MOST_ARRAYS = 5 };

typedef struct kind kind;

typedef struct work {
    const kind *kind;
    wb_dtype dtype;
    int64_t n[MOST_NUMBERS];
    wb_array *in[MOST_ARRAYS];
    bench_launch launch;
    wb_memory from, to;
} work;

/* What is timed. It is arrays (input makes number i of them, NULL: no more; build gives results
 * that are evaluated), or it goes to the backend directly. */
struct kind {
    const char *name;
    const char *numbers; /* what N... are */
    const char *example;
    wb_array *(*input)(const work *w, int i);
    int (*build)(const work *w, wb_array **out);
    bool (*open)(work *w);
    bool (*queue)(const work *w);
    void (*close)(work *w);
};

/* ---- inputs ---- */

static wb_array *values(const work *w, int i, int ndim, const int64_t *sizes) {
    return wb_cast(bench_array(SEQUENCE_INPUT + (uint32_t)i, -1, 1, ndim, sizes), w->dtype);
}

static wb_array *three_vectors(const work *w, int i) {
    return i < 3 ? values(w, i, 1, w->n) : NULL;
}

static wb_array *one_vector(const work *w, int i) { return i < 1 ? values(w, i, 1, w->n) : NULL; }

static wb_array *two_matrices(const work *w, int i) { return i < 2 ? values(w, i, 2, w->n) : NULL; }

/* x, a gradient, gain, bias */
static wb_array *rows_with_gain(const work *w, int i) {
    return i < 2 ? values(w, i, 2, w->n) : i < 4 ? values(w, i, 1, w->n) : NULL;
}

static wb_array *logits_and_labels(const work *w, int i) {
    if (i != 1) return i < 1 ? values(w, i, 2, w->n) : NULL;
    int32_t *labels = malloc((size_t)w->n[1] * sizeof *labels);
    if (!labels) return NULL;
    bench_labels(SEQUENCE_LABEL, w->n[0], w->n[1], labels);
    wb_array *y = wb_from(WB_I32, labels, w->n[1]);
    free(labels);
    return y;
}

/* parameter, gradient, and moments of which the second is not negative */
static wb_array *adam_arrays(const work *w, int i) {
    wb_array *x = i < 4 ? values(w, i, 1, w->n) : NULL;
    return i == 3 ? wb_square(x) : x;
}

static wb_array *matrices_of_product(const work *w, int i) {
    const int64_t m = w->n[0], n = w->n[1], k = w->n[2], batch = w->n[3];
    if (i >= 2) return NULL;
    return values(w, i, 3, i ? (const int64_t[]){k, n, batch} : (const int64_t[]){m, k, batch});
}

static wb_array *square_matrices(const work *w, int i) {
    return i < 2 ? values(w, i, 2, (const int64_t[]){4, 4}) : NULL;
}

typedef struct convolution {
    int64_t x[4], w[4], y[4];
    wb_window_desc desc;
} convolution;

static convolution convolution_of(const work *w) {
    const int64_t side = w->n[0], channels = w->n[1], filters = w->n[2], kernel = w->n[3],
                  batch = w->n[4], pad = kernel / 2, out = side + 2 * pad - kernel + 1;
    return (convolution){{side, side, channels, batch},
                         {kernel, kernel, channels, filters},
                         {out, out, filters, batch},
                         {.pad = {pad, pad}, .cross_correlation = true}};
}

/* image, filter, and a gradient of the result */
static wb_array *arrays_of_convolution(const work *w, int i) {
    const convolution c = convolution_of(w);
    return i < 3 ? values(w, i, 4, i == 0 ? c.x : i == 1 ? c.w : c.y) : NULL;
}

/* ---- operations ---- */

#define BUILD(name, expression)                                                                    \
    static int build_##name(const work *w, wb_array **out) {                                       \
        wb_array *x = w->in[0], *y = w->in[1], *z = w->in[2];                                      \
        (void)x, (void)y, (void)z;                                                                 \
        out[0] = expression;                                                                       \
        return 1;                                                                                  \
    }
BUILD(map, wb_add_number(wb_mul_number(x, 2), 1))
BUILD(fma, wb_add(wb_mul(x, y), z))
BUILD(gelu, wb_gelu(x))
BUILD(sum, wb_sum(x))
BUILD(columns, wb_sum_dims(x, 1))
BUILD(softmax, wb_softmax(x))
BUILD(softmax_gradient, wb_mul(x, wb_sub(y, wb_sum_dims(wb_mul(x, y), 0))))
BUILD(layernorm, wb_add(wb_mul(wb_normalise(x, 1e-5, 0), z), w->in[3]))
BUILD(tiny, wb_add_number(x, 1))
BUILD(matmul, wb_matmul(x, y))
BUILD(conv, wb_conv_op_make(x, y, convolution_of(w).desc))
BUILD(conv_data, wb_conv_data_make(z, y, convolution_of(w).x, convolution_of(w).desc))
BUILD(conv_filter, wb_conv_filter_make(x, z, convolution_of(w).w, convolution_of(w).desc))
#undef BUILD

static int build_layernorm_gradient(const work *w, wb_array **out) {
    wb_array *x = w->in[0], *y = wb_mul(wb_normalise(x, 1e-5, 0), w->in[2]);
    wb_pullback(y, w->in[1], 1, &x, out);
    return 1;
}

/* Loss and gradient. */
static int build_crossentropy(const work *w, wb_array **out) {
    wb_array *x = w->in[0];
    out[0] = wb_logitcrossentropy(x, w->in[1]);
    wb_gradient_of(out[0], 1, &x, out + 1);
    return 2;
}

static int build_adam(const work *w, wb_array **out) {
    const wb_rule rule = wb_adam();
    wb_array *all[1 + WB_RULE_ALL_STATES], *states[] = {w->in[2], w->in[3]};
    wb_array *numbers = wb_step_numbers(&rule, wb_scalar(WB_F32, 1), wb_scalar(WB_I32, 1000));
    wb_step_make(numbers, w->in[0], w->in[1], 2, states, all);
    for (int k = 0; k < 3; k++) out[k] = all[k];
    return 3;
}

/* n[0] products, each of the last one's result. */
static int build_chain(const work *w, wb_array **out) {
    wb_array *y = w->in[1];
    for (int64_t i = 0; i < w->n[0]; i++) y = wb_matmul(w->in[0], y);
    out[0] = y;
    return 1;
}

/* ---- past the library ---- */

static bool open_launch(work *w) { return bench_launch_open(wb_default_device(), &w->launch); }

static bool queue_launch(const work *w) { return bench_launch_queue(&w->launch); }

static void close_launch(work *w) { bench_launch_close(&w->launch); }

static size_t copied_bytes(const work *w) { return (size_t)w->n[0] * wb_dtype_size(w->dtype); }

static bool open_copy(work *w) {
    w->from.handle = wb_device_alloc(wb_default_device(), copied_bytes(w));
    w->to.handle = wb_device_alloc(wb_default_device(), copied_bytes(w));
    return w->from.handle && w->to.handle;
}

static bool queue_copy(const work *w) {
    const wb_device *device = wb_default_device();
    return device->backend->copy(device->context, NULL, WB_COPY_LOCAL, w->to, w->from,
                                 copied_bytes(w)) == WB_OK;
}

static void close_copy(work *w) {
    wb_memory *const both[] = {&w->from, &w->to};
    for (int i = 0; i < 2; i++)
        if (both[i]->handle) wb_device_free(wb_default_device(), both[i]->handle, copied_bytes(w));
}

/* ---- the list ---- */

#define ARRAYS(name, numbers, example, input)                                                      \
    { #name, numbers, example, input, build_##name, NULL, NULL, NULL }
static const kind kinds[] = {
    {"copy", "count", "1000", NULL, NULL, open_copy, queue_copy, close_copy},
    {"empty", "", "", NULL, NULL, open_launch, queue_launch, close_launch},
    ARRAYS(tiny, "1", "1", one_vector),
    ARRAYS(chain, "products", "4", square_matrices),
    ARRAYS(map, "count", "1000", one_vector),
    ARRAYS(fma, "count", "1000", three_vectors),
    ARRAYS(gelu, "count", "1000", one_vector),
    ARRAYS(sum, "count", "1000", one_vector),
    ARRAYS(columns, "rows columns", "10 20", two_matrices),
    ARRAYS(softmax, "classes rows", "10 20", two_matrices),
    ARRAYS(softmax_gradient, "classes rows", "10 20", two_matrices),
    ARRAYS(layernorm, "features rows", "10 20", rows_with_gain),
    ARRAYS(layernorm_gradient, "features rows", "10 20", rows_with_gain),
    ARRAYS(crossentropy, "classes rows", "10 20", logits_and_labels),
    ARRAYS(adam, "count", "1000", adam_arrays),
    ARRAYS(matmul, "m n k batch", "8 9 10 2", matrices_of_product),
    ARRAYS(conv, "side channels filters kernel batch", "8 3 4 3 2", arrays_of_convolution),
    ARRAYS(conv_data, "side channels filters kernel batch", "8 3 4 3 2", arrays_of_convolution),
    ARRAYS(conv_filter, "side channels filters kernel batch", "8 3 4 3 2", arrays_of_convolution),
};
#undef ARRAYS

static void close_work(work *w) {
    for (int i = 0; i < MOST_ARRAYS; i++) wb_free(w->in[i]);
    if (w->kind->close) w->kind->close(w);
}

static bool open_inputs(work *w) {
    wb_scope_open();
    for (int i = 0; w->kind->input && i < MOST_ARRAYS; i++)
        w->in[i] = wb_keep(w->kind->input(w, i));
    return wb_scope_close() == WB_OK && !wb_failed();
}

/* "softmax f32 1024 8192". False, with the reason pending as Weber's error or, for a line that says
 * nothing, without. */
static bool open_work(work *w, const char *line) {
    char name[32] = "", type[8] = "";
    long long n[MOST_NUMBERS] = {0};
    *w = (work){.dtype = WB_DTYPE_COUNT};
    (void)sscanf(line, "%31s %7s %lld %lld %lld %lld %lld %lld", name, type, &n[0], &n[1], &n[2],
                 &n[3], &n[4], &n[5]);
    for (int i = 0; i < MOST_NUMBERS; i++) w->n[i] = n[i];
    for (int i = 0; i < WB_DTYPE_COUNT; i++)
        if (strcmp(type, wb_dtype_name((wb_dtype)i)) == 0) w->dtype = (wb_dtype)i;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, kinds[i].name) == 0) w->kind = &kinds[i];
    if (!w->kind || w->dtype == WB_DTYPE_COUNT) return false;
    return open_inputs(w) && (!w->kind->open || w->kind->open(w));
}

static bool queue(const work *w) {
    wb_array *out[MOST_ARRAYS] = {NULL};
    if (w->kind->queue) return w->kind->queue(w);
    wb_scope_open();
    const int count = w->kind->build(w, out);
    wb_eval_make(count, out);
    return wb_scope_close() == WB_OK && !wb_failed();
}

/* ---- answers ---- */

/* Microseconds for each of so many; negative: it failed. */
static double flow(const work *w, int64_t times) {
    const double begin = bench_us();
    for (int64_t i = 0; i < times; i++)
        if (!queue(w)) return -1;
    return wb_device_sync(wb_default_device()) == WB_OK ? (bench_us() - begin) / (double)times : -1;
}

static bench_times timed(const work *w, bool smoke) {
    enum { ROUNDS = 15 };
    const double least_us = smoke ? 0 : 4000;
    double us[ROUNDS], trial = flow(w, 1);
    for (int i = 0; i < 2 && trial >= 0; i++) trial = flow(w, 1); /* the first ones compile */
    const int64_t times = trial > 0 && trial < least_us ? (int64_t)(least_us / trial) + 1 : 1;
    for (int i = 0; i < ROUNDS && trial >= 0; i++) us[i] = trial = flow(w, times);
    return trial >= 0 ? bench_times_of(ROUNDS, us) : (bench_times){-1, -1, -1};
}

static double sum_of(const work *w) {
    wb_array *out[MOST_ARRAYS] = {NULL};
    double sum = 0;
    if (!w->kind->build) return NAN;
    wb_scope_open();
    const int count = w->kind->build(w, out);
    const wb_dtype type = wb_device_properties(wb_default_device()).has_f64 ? WB_F64 : WB_F32;
    for (int i = 0; i < count; i++) sum += wb_item(wb_sum(wb_cast(wb_abs(out[i]), type)));
    wb_scope_close();
    return sum;
}

static void print_card(void) {
    const wb_device *device = wb_default_device();
    const wb_properties p = wb_device_properties(device);
    printf("%s, %s, %s, %lld MB\n", wb_device_name(device), p.name, p.driver,
           (long long)(p.memory_bytes >> 20));
}

static void print_failure(void) {
    char message[512];
    (void)wb_take_error(message, sizeof message);
    printf("failed %s\n", *message ? message : "no such thing");
}

static void answer(const char *line, bool smoke) {
    char command[8] = "";
    int length = 0;
    work w;
    if (sscanf(line, "%7s %n", command, &length) == 1 && strcmp(command, "card") == 0) {
        print_card();
        return;
    }
    const bool opened = open_work(&w, line + length);
    if (opened && strcmp(command, "warm") == 0) {
        if (flow(&w, 1) >= 0) (void)sum_of(&w);
        if (wb_failed())
            print_failure();
        else
            printf("0\n");
    } else if (opened && strcmp(command, "time") == 0) {
        const bench_times t = timed(&w, smoke);
        if (t.median >= 0)
            printf("%.3f %.3f %.3f\n", t.median, t.least, t.mean);
        else
            print_failure();
    } else if (opened && strcmp(command, "check") == 0) {
        const double sum = sum_of(&w);
        if (wb_failed())
            print_failure();
        else
            printf("%.9g\n", sum);
    } else {
        print_failure();
    }
    if (w.kind) close_work(&w);
    wb_memory_reclaim(wb_default_device());
}

static int serve(bool smoke) {
    char line[256];
    printf("weber\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        answer(line, smoke);
        fflush(stdout);
    }
    return wb_report("bench_rates");
}

static int show(bool smoke) {
    char line[256];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *type = "f32";
        for (int check = 0; check < 2; check++) {
            if (check && !kinds[i].build) continue;
            (void)snprintf(line, sizeof line, "%s %s %s %s", check ? "check" : "time",
                           kinds[i].name, type, kinds[i].example);
            printf("%s (%s): ", line, kinds[i].numbers);
            answer(line, smoke);
        }
    }
    return wb_report("bench_rates");
}

int main(int argc, char **argv) {
    bool smoke = false, serving = false;
    for (int i = 1; i < argc; i++) {
        smoke = smoke || strcmp(argv[i], "--smoke") == 0;
        serving = serving || strcmp(argv[i], "--serve") == 0;
    }
    if (!bench_choose_device()) {
        if (serving) printf("absent %s\n", wb_error_message());
        return wb_report("bench_rates");
    }
    return serving ? serve(smoke) : show(smoke);
}
