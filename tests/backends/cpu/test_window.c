/* Pools, unfold and fold of the CPU backend, for every instruction set of the machine. */
#include "window_maker.h"

/* ---- pools ---- */

typedef struct pool_row {
    const char *name;
    shape shape;
    double wanted[MOST], gradient[MOST]; /* of y upstream, where there is one */
} pool_row;

static const pool_row max_rows[] = {
    {"2-D", {PLANE, STRIDE(2)}, {7, 9, 17, 19}, {[6] = 7, [8] = 9, [16] = 17, [18] = 19}},
    {"2-D with stride 1", {PLANE}, {7, 8, 9, 10, 12, 13, 14, 15, 17, 18, 19, 20}, {0}},
    {"2-D with padding", {PLANE, STRIDE(2), PAD(1)}, {1, 3, 5, 11, 13, 15, 16, 18, 20}, {0}},
    {"1-D", {LINE, .stride = {2}}, {2, 4}, {0, 2, 0, 4, 0}},
    {"1-D with stride 1", {LINE}, {2, 3, 4, 5}, {0, 2, 3, 4, 5}},
    {"1-D with padding", {LINE, .stride = {2}, PAD_1}, {1, 3, 5}, {1, 0, 3, 0, 5}},
};

static void maxpool_has_the_values_of_the_table(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * sizeof max_rows / sizeof *max_rows; i++) {
        const pool_row *row = &max_rows[i / 2];
        const wb_dtype dtype = i % 2 ? WB_F64 : WB_F32;
        const wb_window w = window_of(&row->shape, dtype);
        void *x = memory_counting(dtype, x_size(&w)), *y = memory_new(dtype, y_size(&w));
        void *back = memory_new(dtype, y_size(&w));
        int32_t index[MOST];
        print_message("  %s\n", row->name);
        wb_cpu_maxpool(&w, x, y, index);
        check_equal(dtype, y, row->wanted, y_size(&w));
        wb_cpu_pool_gather(&w, x, index, back);
        check_equal(dtype, back, row->wanted, y_size(&w));
        wb_cpu_pool_scatter(&w, y, index, x);
        if (row->gradient[1] + row->gradient[0] + row->gradient[6] > 0)
            check_equal(dtype, x, row->gradient, x_size(&w));
        free(x);
        free(y);
        free(back);
    }
}

static const pool_row mean_rows[] = {
    {"2-D", {PLANE, STRIDE(2)}, {4, 6, 14, 16}, {1,   1,   1.5, 1.5, 0, 1,   1,   1.5, 1.5, 0,
                                                 3.5, 3.5, 4,   4,   0, 3.5, 3.5, 4,   4,   0}},
    {"2-D with stride 1", {PLANE}, {4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17}, {0}},
    {"2-D with padding",
     {PLANE, STRIDE(2), PAD(1)},
     {.25, 1.25, 2.25, 4.25, 10, 12, 4, 8.75, 9.75},
     {0}},
};

static void meanpool_has_the_values_of_the_table(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * sizeof mean_rows / sizeof *mean_rows; i++) {
        const pool_row *row = &mean_rows[i / 2];
        const wb_dtype dtype = i % 2 ? WB_F64 : WB_F32;
        const wb_window w = window_of(&row->shape, dtype);
        void *x = memory_counting(dtype, x_size(&w)), *y = memory_new(dtype, y_size(&w));
        print_message("  %s\n", row->name);
        wb_cpu_meanpool(&w, x, y);
        check_equal(dtype, y, row->wanted, y_size(&w));
        wb_cpu_meanpool_data(&w, y, x);
        if (row->gradient[0] > 0) check_equal(dtype, x, row->gradient, x_size(&w));
        free(x);
        free(y);
    }
}

/* Windows of two by two side by side, one window for the whole plane, others. */
static shape some_pool(int i) {
    shape s = {.batch = 2};
    if (i % 3 == 0) {
        s.kernel[0] = s.kernel[1] = s.stride[0] = s.stride[1] = 2;
        s.in[0] = random_int(2, 80), s.in[1] = random_int(2, 7);
    } else if (i % 3 == 1) {
        for (int d = 0; d < 2; d++) s.in[d] = s.kernel[d] = random_int(1, 12);
    } else {
        s = random_shape();
    }
    s.filters = s.channels;
    s.groups = 1;
    return s;
}

/* Ties and NaNs: few different values, some of them not numbers. */
static void fill_with_ties(wb_dtype dtype, void *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int value = random_int(-3, 3);
        const double special = random_int(0, 1) ? NAN : -INFINITY;
        memory_set(dtype, x, i, value == -3 && random_int(0, 3) == 0 ? special : value);
    }
}

/* First NaN, else first maximum, of window p of a plane; -1 in the padding. */
static int64_t naive_maximum(const wb_window *w, const void *plane, const int64_t p[3]) {
    int64_t best = -1;
    for (int64_t t = 0; t < area(w->call.kernel); t++) {
        const int64_t tap[3] = {t % w->call.kernel[0], t / w->call.kernel[0] % w->call.kernel[1],
                                t / w->call.kernel[0] / w->call.kernel[1]};
        int64_t at = 0;
        bool inside = true;
        for (int d = 2; d >= 0; d--) {
            const int64_t q =
                p[d] * w->call.stride[d] + tap[d] * w->call.dilation[d] - w->call.pad[d];
            inside = inside && q >= 0 && q < w->call.in[d];
            at = at * w->call.in[d] + q;
        }
        if (!inside) continue;
        const double value = memory_get(w->dtype, plane, at);
        const double old = best < 0 ? 0 : memory_get(w->dtype, plane, best);
        if (best < 0 || (!isnan(old) && (isnan(value) || value > old))) best = at;
    }
    return best;
}

static void check_maximum(const wb_window *w, const void *x, const void *y, const int32_t *index) {
    const int64_t plane = area(w->call.in) * (int64_t)wb_dtype_size(w->dtype);
    for (int64_t i = 0; i < y_size(w); i++) {
        const int64_t p[3] = {i % w->call.out[0], i / w->call.out[0] % w->call.out[1],
                              i / w->call.out[0] / w->call.out[1] % w->call.out[2]};
        const char *from = (const char *)x + i / area(w->call.out) * plane;
        const int64_t wanted = naive_maximum(w, from, p);
        const double value = wanted < 0 ? -INFINITY : memory_get(w->dtype, from, wanted);
        const double got = memory_get(w->dtype, y, i);
        if (index[i] == wanted && (got == value || (isnan(got) && isnan(value)))) continue;
        show(w);
        fail_msg("position %d: index %d, wanted %d", (int)i, index[i], (int)wanted);
    }
}

static void the_first_maximum_wins_and_a_nan_before_it(void **state) {
    (void)state;
    for (int i = 0, count = random_cases(); i < count; i++) {
        const shape s = some_pool(i);
        const wb_window w = window_of(&s, i % 2 ? WB_F64 : WB_F32);
        void *x = memory_new(w.dtype, x_size(&w)), *y = memory_new(w.dtype, y_size(&w));
        int32_t *index = malloc((size_t)y_size(&w) * sizeof *index);
        fill_with_ties(w.dtype, x, x_size(&w));
        wb_cpu_maxpool(&w, x, y, index);
        check_maximum(&w, x, y, index);
        free(index);
        free(x);
        free(y);
    }
}

typedef void pair_fn(const wb_window *w, const void *in, void *out);

/* <forward(x), y> = <x, back(y)> where y has y_count elements */
static void check_adjoint(const wb_window *w, int64_t y_count, pair_fn *forward, pair_fn *back) {
    void *x = memory_random(WB_F64, x_size(w)), *y = memory_random(WB_F64, y_count);
    void *fx = memory_new(WB_F64, y_count), *by = memory_new(WB_F64, x_size(w));
    memset(fx, 0xff, (size_t)y_count * sizeof(double));
    memset(by, 0xff, (size_t)x_size(w) * sizeof(double));
    forward(w, x, fx);
    back(w, y, by);
    assert_near(dot(fx, y, y_count), dot(x, by, x_size(w)));
    free(x);
    free(y);
    free(fx);
    free(by);
}

static int32_t *some_index; /* of the max pool whose scatter and gather are compared */
static void gather(const wb_window *w, const void *x, void *y) {
    wb_cpu_pool_gather(w, x, some_index, y);
}
static void scatter(const wb_window *w, const void *y, void *x) {
    wb_cpu_pool_scatter(w, y, some_index, x);
}

static void pools_and_unfold_have_their_adjoints(void **state) {
    (void)state;
    for (int i = 0, count = random_cases(); i < count; i++) {
        const shape s = some_pool(i);
        const wb_window w = window_of(&s, WB_F64);
        void *x = memory_random(WB_F64, x_size(&w)), *y = memory_new(WB_F64, y_size(&w));
        some_index = malloc((size_t)y_size(&w) * sizeof *some_index);
        wb_cpu_maxpool(&w, x, y, some_index);
        check_adjoint(&w, y_size(&w), gather, scatter);
        check_adjoint(&w, y_size(&w), wb_cpu_meanpool, wb_cpu_meanpool_data);
        check_adjoint(&w, y_size(&w) * area(w.call.kernel), wb_cpu_unfold, wb_cpu_fold);
        free(some_index);
        free(x);
        free(y);
    }
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maxpool_has_the_values_of_the_table),
        cmocka_unit_test(meanpool_has_the_values_of_the_table),
        cmocka_unit_test(the_first_maximum_wins_and_a_nan_before_it),
        cmocka_unit_test(pools_and_unfold_have_their_adjoints),
    };
    return cmocka_run_group_tests_name("backends/cpu/test_window", tests, NULL, NULL);
}

int main(void) { return run_in_each_set(run); }
