/* Sampling at places between elements, beside its definition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

enum { SAMPLES = 1000 };

/* ---- the definition ---- */

typedef struct row {
    int64_t in[3], out[3], channels, batch;
    int dims;
    wb_grid_sample_desc desc;
} row;

/* x's place, or NaN */
static double place_of(const row *r, double g, int64_t size) {
    const double last = (double)size - 1;
    double p = r->desc.align_corners ? (g + 1) / 2 * last : ((g + 1) * (double)size - 1) / 2;
    if (r->desc.padding == WB_GRID_REFLECTION) {
        const double low = r->desc.align_corners ? 0 : -0.5, high = last - low;
        if (high == low) p = 0;
        while (p < low || p > high) p = p < low ? 2 * low - p : 2 * high - p;
    }
    return r->desc.padding == WB_GRID_ZEROS || isnan(p) ? p : fmin(fmax(p, 0), last);
}

/* How much element i counts at place p. */
static double weight_of(const row *r, double p, int64_t i) {
    if (isnan(p)) return p;
    if (r->desc.nearest) return (double)i == nearbyint(p);
    return fmax(0, 1 - fabs(p - (double)i));
}

static double sampled(const row *r, const double *x, const double *g) {
    double sum = 0;
    for (int64_t i = 0; i < r->in[0] * r->in[1] * r->in[2]; i++) {
        int64_t rest = i;
        double weight = 1;
        for (int d = 0; d < r->dims; d++) {
            weight *= weight_of(r, place_of(r, g[d], r->in[d]), rest % r->in[d]);
            rest /= r->in[d];
        }
        sum += weight == 0 ? 0 : weight * x[i];
    }
    return sum;
}

/* ---- rows ---- */

static int64_t product(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static const row rows[] = {
    {{5, 1, 1}, {9, 1, 1}, 2, 3, 1, {.align_corners = true}},
    {{4, 5, 1}, {3, 7, 1}, 3, 2, 2, {.align_corners = true}},
    {{4, 5, 1}, {3, 7, 1}, 3, 2, 2, {.align_corners = false}},
    {{3, 4, 2}, {5, 2, 3}, 2, 2, 3, {.align_corners = true}},
    {{3, 4, 2}, {5, 2, 3}, 2, 2, 3, {.align_corners = false}},
    {{6, 5, 1}, {9, 11, 1}, 9, 1, 2, {.align_corners = false}}, /* more than one piece */
    {{1, 3, 1}, {2, 2, 1}, 1, 1, 2, {.align_corners = true}},   /* one element along W */
    {{4, 3, 1}, {0, 2, 1}, 2, 2, 2, {.align_corners = true}},
};

/* Coordinates from -1.8 to 1.8, far outside, and at corners. */
static double coordinate(int64_t i) {
    if (i % 13 == 5) return i % 2 ? 7.25 : -9.5;
    if (i % 11 == 3) return i % 2 ? 1 : -1;
    return 1.8 * sin(12.9898 * (double)i);
}

static wb_array *grid_of(const row *r) {
    double numbers[SAMPLES];
    const int64_t count = product(r->out) * r->dims * r->batch;
    assert_true(count <= SAMPLES);
    for (int64_t i = 0; i < count; i++) numbers[i] = coordinate(i);
    int64_t sizes[WB_MAX_DIMS] = {r->dims};
    for (int d = 0; d < r->dims; d++) sizes[1 + d] = r->out[d];
    sizes[r->dims + 1] = r->batch;
    return wb_from_make(WB_F64, numbers, r->dims + 2, sizes);
}

static wb_array *x_of(const row *r) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < r->dims; d++) sizes[d] = r->in[d];
    sizes[r->dims] = r->channels, sizes[r->dims + 1] = r->batch;
    return wb_normal_make(WB_F64, r->dims + 2, sizes);
}

static void expect(const row *r, wb_array *x, wb_array *grid, double *wanted) {
    double numbers[SAMPLES], places[SAMPLES];
    assert_int_equal(wb_read_f64(x, numbers, wb_count(x)), WB_OK);
    assert_int_equal(wb_read_f64(grid, places, wb_count(grid)), WB_OK);
    const int64_t in = product(r->in), out = product(r->out);
    for (int64_t plane = 0; plane < r->channels * r->batch; plane++)
        for (int64_t p = 0; p < out; p++)
            wanted[plane * out + p] = sampled(r, numbers + plane * in,
                                              places + (plane / r->channels * out + p) * r->dims);
}

/* Each row with each padding, linear and nearest. */
static bool variant_of(int number, row *r) {
    if (number >= 6 * (int)(sizeof rows / sizeof *rows)) return false;
    *r = rows[number / 6];
    r->desc.start_ = WB_MADE_, r->desc.padding = number % 3, r->desc.nearest = number % 6 >= 3;
    return true;
}

static void samples_are_as_defined(void **state) {
    (void)state;
    double wanted[SAMPLES];
    row r;
    for (int number = 0; variant_of(number, &r); number++) {
        (void)wb_scope_open();
        wb_array *x = x_of(&r), *grid = grid_of(&r);
        expect(&r, x, grid, wanted);
        wb_array *y = wb_grid_sample_make(x, grid, r.desc);
        if (!y) fail_msg("variant %d: %s", number, wb_error_message());
        assert_numbers(y, product(r.out) * r.channels * r.batch, wanted, 1e-12);
        if (!r.desc.nearest) { /* where f32 rounds to another element */
            y = wb_grid_sample_make(wb_cast(x, WB_F32), wb_cast(grid, WB_F32), r.desc);
            assert_numbers(y, product(r.out) * r.channels * r.batch, wanted, 1e-5);
        }
        (void)wb_scope_close();
    }
}

static wb_array *sample(void *context, int count, wb_array *const *arrays) {
    (void)count;
    return wb_square(wb_grid_sample_make(arrays[0], arrays[1], *(wb_grid_sample_desc *)context));
}

/* Of x and the grid, of both orders; no coordinate is at an element, where slopes jump. */
static void derivatives_are_right(void **state) {
    (void)state;
    row r;
    for (int number = 0; variant_of(number, &r); number++) {
        if (product(r.out) > 60) continue;
        (void)wb_scope_open();
        wb_array *arrays[] = {x_of(&r),
                              wb_add(wb_mul(grid_of(&r), wb_number(0.987)), wb_number(0.0123))};
        if (wb_gradient_check(sample, &r.desc, 2, arrays, 2, 1e-5) != WB_OK)
            fail_msg("variant %d: %s", number, wb_error_message());
        (void)wb_scope_close();
    }
}

/* The example of NNlib's documentation of grid_sample. */
static void nnlib_says_the_same(void **state) {
    (void)state;
    const double numbers[] = {1, 2, 3, 4};
    const double places[] = {-3, -1, 0, -1, 1, -1, -1, 1, 0, 1, 3, 1};
    wb_array *x = wb_from(WB_F64, numbers, 2, 2, 1, 1);
    wb_array *grid = wb_from(WB_F64, places, 2, 3, 2, 1);
    assert_values(wb_grid_sample(x, grid), 1e-15, 0, 1.5, 2, 3, 3.5, 0);
    assert_values(wb_grid_sample(x, grid, .padding = WB_GRID_BORDER), 1e-15, 1, 1.5, 2, 3, 3.5, 4);
}

/* A place that is none gives no number, and takes none back. */
static void no_place_is_no_number(void **state) {
    (void)state;
    const float numbers[] = {1, 2, 3}, places[] = {NAN, 0, INFINITY};
    wb_array *x = wb_from(WB_F32, numbers, 3, 1, 1), *grid = wb_from(WB_F32, places, 1, 3, 1);
    wb_array *y = wb_grid_sample(x, grid), *g = NULL;
    assert_values(y, 0, NAN, 2, 0);
    assert_values(wb_grid_sample(x, grid, .nearest = true), 0, NAN, 2, 0);
    assert_values(wb_grid_sample(x, grid, .padding = WB_GRID_BORDER), 0, NAN, 2, 3);
    wb_array *c = wb_full(WB_F32, 1, 3, 1, 1), *of_c = NULL;
    assert_int_equal(wb_pullback(y, c, 1, &x, &g), WB_OK);
    assert_values(g, 0, 0, 1, 0);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(g)), 1, &c, &of_c), WB_OK);
    assert_values(of_c, 0, 0, 2, 0);
    wb_array *one = wb_ones(WB_F32, 1, 1, 1);
    assert_values(wb_grid_sample(one, grid, .padding = WB_GRID_BORDER), 0, NAN, 1, 1);
}

static void the_nearest_has_no_slope(void **state) {
    (void)state;
    wb_array *x = wb_normal(WB_F32, 4, 5, 2, 1), *grid = wb_uniform(WB_F32, 2, 3, 3, 1), *g = NULL;
    wb_array *y = wb_sum(wb_grid_sample(x, grid, .nearest = true));
    assert_int_equal(wb_gradient_of(y, 1, &grid, &g), WB_OK);
    assert_non_null(g);
    assert_value(wb_sum(wb_square(g)), 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples_are_as_defined, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(derivatives_are_right, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(nnlib_says_the_same, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(no_place_is_no_number, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(the_nearest_has_no_slope, open_scope, close_scope)};
    return cmocka_run_group_tests_name("ops/test_grid", tests, NULL, NULL);
}
