/* Windows for tests of the CPU backend: shapes, arrays of either type, and a program's tests in
 * every instruction set of the machine. */
#ifndef WB_TESTS_WINDOW_MAKER_H
#define WB_TESTS_WINDOW_MAKER_H

#include "isa.h"
#include "support/support.h"
#include "window.h"

enum { MOST = 32 /* elements of an expected result */ };

static inline int random_cases(void) { return is_brief() ? 15 : 150; }

/* ---- windows ---- */

/* Zeros stand for the usual: size 1, stride 1, dilation 1, one channel, one image, no padding. */
typedef struct shape {
    int in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    int channels, filters, groups, batch;
    bool unflipped;
} shape;

static inline int64_t or_one(int value) { return value ? value : 1; }

static inline wb_window window_of(const shape *s, wb_dtype dtype) {
    wb_window w = {.dtype = dtype,
                   .call.channels = or_one(s->channels),
                   .call.filters = or_one(s->filters),
                   .call.groups = or_one(s->groups),
                   .call.batch = or_one(s->batch),
                   .call.flip = !s->unflipped};
    for (int d = 0; d < 3; d++) {
        w.call.in[d] = or_one(s->in[d]);
        w.call.kernel[d] = or_one(s->kernel[d]);
        w.call.stride[d] = or_one(s->stride[d]);
        w.call.dilation[d] = or_one(s->dilation[d]);
        w.call.pad[d] = s->pad[d];
        const int64_t room =
            w.call.in[d] + s->pad[d] + s->pad_end[d] - w.call.dilation[d] * (w.call.kernel[d] - 1);
        w.call.out[d] = (room - 1) / w.call.stride[d] + 1;
        assert_true(room > 0);
    }
    return w;
}

static inline int64_t area(const int64_t size[3]) { return size[0] * size[1] * size[2]; }
static inline int64_t x_size(const wb_window *w) {
    return area(w->call.in) * w->call.channels * w->call.batch;
}
static inline int64_t y_size(const wb_window *w) {
    return area(w->call.out) * w->call.filters * w->call.batch;
}
static inline int64_t w_size(const wb_window *w) {
    return area(w->call.kernel) * w->call.channels / w->call.groups * w->call.filters;
}

static inline void show_sizes(const char *name, const int64_t size[3]) {
    print_message(" %s %d %d %d", name, (int)size[0], (int)size[1], (int)size[2]);
}

static inline void show(const wb_window *w) {
    print_message("%s", wb_dtype_name(w->dtype));
    show_sizes("in", w->call.in);
    show_sizes("out", w->call.out);
    show_sizes("kernel", w->call.kernel);
    show_sizes("stride", w->call.stride);
    show_sizes("dilation", w->call.dilation);
    show_sizes("pad", w->call.pad);
    print_message(" channels %d filters %d groups %d batch %d flip %d\n", (int)w->call.channels,
                  (int)w->call.filters, (int)w->call.groups, (int)w->call.batch, (int)w->call.flip);
}

/* ---- arrays of either type; made with malloc one by one, so that a sanitizer sees their ends
 * ---- */

static inline void *memory_new(wb_dtype dtype, int64_t count) {
    void *array = malloc((size_t)count * wb_dtype_size(dtype) + (count == 0));
    assert_non_null(array);
    return array;
}

static inline double memory_get(wb_dtype dtype, const void *array, int64_t i) {
    return dtype == WB_F32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static inline double *memory_doubles(wb_dtype dtype, const void *array, int64_t count) {
    double *doubles = memory_new(WB_F64, count);
    for (int64_t i = 0; i < count; i++) doubles[i] = memory_get(dtype, array, i);
    return doubles;
}

static inline void memory_set(wb_dtype dtype, void *array, int64_t i, double value) {
    if (dtype == WB_F32)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

static inline void *memory_counting(wb_dtype dtype, int64_t count) {
    void *array = memory_new(dtype, count);
    for (int64_t i = 0; i < count; i++) memory_set(dtype, array, i, (double)(i + 1));
    return array;
}

static test_random source;

static inline int random_int(int low, int high) {
    return low + (int)random_below(&source, high - low + 1);
}

static inline void *memory_random(wb_dtype dtype, int64_t count) {
    void *array = memory_new(dtype, count);
    for (int64_t i = 0; i < count; i++)
        memory_set(dtype, array, i, (double)(random_bits(&source) >> 40) / (1 << 23) - 1);
    return array;
}

static inline shape random_shape(void) {
    static const int channels[] = {1, 1, 2, 3, 5, 8, 17};
    shape s = {.unflipped = random_int(0, 1), .batch = random_int(1, 5), .groups = 1};
    const int dims = random_int(1, 3);
    for (int d = 0; d < dims; d++) {
        s.kernel[d] = random_int(1, 4);
        s.stride[d] = random_int(0, 2) ? 1 : random_int(1, 4);
        s.dilation[d] = random_int(0, 2) ? 1 : random_int(1, 4);
        s.pad[d] = random_int(0, 3);
        s.pad_end[d] = random_int(0, 3);
        const int reach = s.dilation[d] * (s.kernel[d] - 1) + 1 - s.pad[d] - s.pad_end[d];
        const int least = reach > 1 ? reach : 1;
        s.in[d] = random_int(0, 4) ? random_int(least, least + (dims == 1 ? 60 : 14)) : least;
    }
    if (random_int(0, 3) == 0) s.groups = random_int(1, 4);
    s.channels = s.groups * channels[random_int(0, 6)];
    s.filters = s.groups * channels[random_int(0, 6)];
    if (random_int(0, 3) == 0) s.channels = s.filters = s.groups = random_int(8, 20);
    return s;
}

#define LINE      .in = {5}, .kernel = {2}
#define PLANE     .in = {5, 4}, .kernel = {2, 2}
#define STRIDE(n) .stride = {n, n}
#define PAD(n)    .pad = {n, n}, .pad_end = {n, n}
#define PAD_1     .pad = {1}, .pad_end = {1}

/* ---- comparing ---- */

static inline void check_equal(wb_dtype dtype, const void *got, const double *wanted,
                               int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const double value = memory_get(dtype, got, i);
        if (fabs(value - wanted[i]) <= 1e-7 * fabs(wanted[i])) continue;
        fail_msg("element %d: %g, wanted %g", (int)i, value, wanted[i]);
    }
}

static inline double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static inline void assert_near(double a, double b) {
    assert_true(fabs(a - b) <= 1e-11 * (1 + fabs(b)));
}

/* ---- programs ---- */

/* True in the process of the best set that the machine has. */
static inline bool is_best_set(void) {
    for (int isa = (int)wb_cpu_isa() + 1; isa < WB_ISA_COUNT; isa++)
        if (wb_cpu_has_isa((wb_isa)isa)) return false;
    return true;
}

static int (*tests_of_a_set)(void);

static inline int run_if_taken(void) {
    const bool is_taken = strcmp(wb_cpu_isa_name(wb_cpu_isa()), getenv("WEBER_ISA")) == 0;
    return is_taken ? tests_of_a_set() : 1;
}

/* Runs the tests in a process for each instruction set of the machine; for WEBER_ISA alone where it
 * is set. */
static inline int run_in_each_set(int (*run)(void)) {
    int failed = 0;
    source.state = test_seed();
    if (getenv("WEBER_ISA")) return run();
    tests_of_a_set = run;
    for (int isa = 0; isa < WB_ISA_COUNT; isa++)
        if (wb_cpu_has_isa((wb_isa)isa))
            failed |= run_with("WEBER_ISA", wb_cpu_isa_name((wb_isa)isa), run_if_taken);
    return failed;
}

#endif
