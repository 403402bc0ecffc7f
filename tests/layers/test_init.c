/* src/layers/init.c */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

typedef struct row {
    const char *name;
    wb_init *init;
    int ndim;
    int64_t sizes[4];
    double bound; /* 0: normal */
    double deviation;
} row;

static void spread_follows_the_fans(void **state) { /* K5, K6 */
    (void)state;
    const row rows[] = {
        {"glorot uniform", wb_glorot_uniform, 2, {100, 200}, sqrt(6.0 / 300), sqrt(2.0 / 300)},
        {"glorot normal", wb_glorot_normal, 2, {100, 200}, 0, sqrt(2.0 / 300)},
        {"kaiming uniform", wb_kaiming_uniform, 2, {100, 200}, sqrt(6.0 / 200), sqrt(2.0 / 200)},
        {"kaiming normal", wb_kaiming_normal, 2, {100, 200}, 0, sqrt(2.0 / 200)},
        {"a convolution", wb_glorot_uniform, 4, {2, 3, 40, 50}, sqrt(6.0 / 540), sqrt(2.0 / 540)},
        {"a vector", wb_kaiming_normal, 1, {10000}, 0, sqrt(2.0)},
        {"lecun normal", wb_lecun_normal, 2, {100, 200}, 2, sqrt(1.0 / 200)},
        {"truncated normal", wb_truncated_normal_init, 2, {100, 100}, 2, 0.8796256610},
        {"normal", wb_normal_init, 2, {100, 200}, 0, 1},
        {"K6: glorot uniform", wb_glorot_uniform, 2, {100, 100}, sqrt(6.0 / 200), 0.1},
        {"K6: kaiming normal", wb_kaiming_normal, 2, {100, 100}, 0, sqrt(2.0 / 100)},
        {"K6: kaiming uniform", wb_kaiming_uniform, 2, {100, 100}, sqrt(6.0 / 100), sqrt(0.02)},
    };
    wb_seed(3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        wb_array *w = r->init(r->ndim, r->sizes, WB_F32);
        if (!w) fail_msg("%s: %s", r->name, wb_error_message());
        assert_int_equal(wb_dtype_of(w), WB_F32);
        const double deviation = sqrt(wb_item(wb_var(w, false)));
        if (!(fabs(deviation / r->deviation - 1) < 0.05))
            fail_msg("%s: deviation %g, not %g", r->name, deviation, r->deviation);
        if (r->bound > 0) assert_true(wb_item(wb_maximum(wb_abs(w))) <= r->bound * 1.00001);
        assert_true(fabs(wb_item(wb_mean(w))) < 0.05 * r->deviation);
    }
}

static void fans(void **state) { /* K5 */
    (void)state;
    static const struct {
        int ndim;
        int64_t sizes[4], in, out;
    } list[] = {{0, {0}, 1, 1},
                {1, {100}, 1, 100},
                {2, {100, 200}, 200, 100},
                {3, {2, 30, 40}, 60, 80},
                {4, {2, 3, 40, 50}, 240, 300},
                {4, {3, 3, 2, 10}, 18, 90},
                {3, {INT64_MAX, 2, 1}, INT64_MAX, INT64_MAX}, /* sizes that no array has */
                {4, {(int64_t)1 << 40, (int64_t)1 << 40, 2, 3}, INT64_MAX, INT64_MAX},
                {4, {(int64_t)1 << 40, 1 << 20, 2, 3}, (int64_t)1 << 61, 3 * ((int64_t)1 << 60)}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int64_t in, out;
        wb_nfan(list[i].ndim, list[i].sizes, &in, &out);
        assert_int_equal(in, list[i].in);
        assert_int_equal(out, list[i].out);
        wb_nfan(list[i].ndim, list[i].sizes, NULL, NULL);
    }
}

static void gains_scale(void **state) {
    (void)state;
    static wb_init_with *const makers[] = {wb_glorot_uniform_with,  wb_glorot_normal_with,
                                           wb_kaiming_uniform_with, wb_kaiming_normal_with,
                                           wb_lecun_normal_with,    wb_orthogonal_with};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        const int64_t sizes[2] = {40, 40}; /* lecun_normal's cut is far away */
        wb_seed(1);
        wb_array *one = makers[i](2, sizes, WB_F32, 0.1);
        wb_seed(1);
        wb_array *three = makers[i](2, sizes, WB_F32, 0.3);
        char where[128];
        if (!wb_approx(wb_mul_number(one, 3), three, 1e-5, 1e-6, where, sizeof where))
            fail_msg("maker %d: %s", (int)i, where);
        assert_null(makers[i](2, sizes, WB_F32, (double)NAN));
        assert_error(WB_ERROR_ARGUMENT, "gain must be finite, got nan");
        assert_null(makers[i](2, sizes, WB_I32, 1));
        assert_error(WB_ERROR_DTYPE, "the type must be floating, got i32");
    }
}

/* Of W as a matrix, W' W, or W W' where it is wide. */
static void columns_are_orthogonal(void **state) { /* K6 */
    (void)state;
    static const struct {
        int ndim;
        int64_t sizes[4], rows, columns;
    } list[] = {{2, {5, 5}, 5, 5},          {2, {30, 12}, 30, 12}, {2, {12, 30}, 12, 30},
                {4, {3, 3, 2, 10}, 18, 10}, {2, {1, 1}, 1, 1},     {2, {0, 3}, 0, 3}};
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int t = 0; t < 3; t++) {
            const int64_t rows = list[i].rows, columns = list[i].columns;
            const bool is_wide = rows < columns;
            const int64_t n = is_wide ? rows : columns;
            wb_array *w = wb_orthogonal_with(list[i].ndim, list[i].sizes, types[t], 2);
            if (!w) fail_msg("%s", wb_error_message());
            assert_int_equal(wb_dtype_of(w), types[t]);
            assert_int_equal(wb_ndim(w), list[i].ndim);
            wb_array *m = wb_cast(wb_reshape(w, rows, columns), WB_F64);
            wb_array *square = wb_matmul_transposed(m, m, !is_wide, is_wide);
            char where[128];
            if (!wb_approx(square, wb_mul_number(wb_eye(WB_F64, n, n), 4), 0,
                           t == 2   ? 0.02
                           : t == 1 ? 1e-13
                                    : 2e-6,
                           where, sizeof where))
                fail_msg("row %d: %s", (int)i, where);
        }
    const int64_t size = 3;
    assert_null(wb_orthogonal(1, &size, WB_F32));
    assert_error(WB_ERROR_SHAPE, "orthogonal: at least 2 dimensions are expected, got 1");
}

static void identities(void **state) { /* K6 */
    (void)state;
    const int64_t square[2] = {3, 3}, kernel[4] = {3, 1, 2, 2}, right[2] = {0, 1}, far[2] = {-4, 0};
    assert_values(wb_identity_init_with(2, square, WB_F32, 3, NULL), 0, 3, 0, 0, 0, 3, 0, 0, 0, 3);
    assert_values(wb_identity_init(2, (const int64_t[]){2, 3}, WB_F64), 0, 1, 0, 0, 1, 0, 0);
    assert_values(wb_identity_init_with(2, square, WB_F16, 1, right), 0, 0, 0, 1, 1, 0, 0, 0, 1, 0);
    assert_values(wb_identity_init_with(2, square, WB_F32, 1, far), 0, 0, 0, 1, 1, 0, 0, 0, 1, 0);
    assert_values(wb_identity_init(4, kernel, WB_F32), 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0);
    assert_values(wb_identity_init(1, square, WB_F32), 0, 0, 0, 0);
    assert_values(wb_identity_init(0, NULL, WB_F32), 0, 0);
    assert_int_equal(wb_count(wb_identity_init(2, (const int64_t[]){0, 2}, WB_F32)), 0);
    wb_array *x = wb_uniform(WB_F32, 7, 3, 2, 1);
    wb_array *y = wb_conv_op(x, wb_identity_init(4, kernel, WB_F32), .pad = WB_EACH(1, 0));
    assert_true(wb_approx(x, y, 0, 0, NULL, 0));
    assert_null(wb_identity_init_with(2, square, WB_F32, (double)INFINITY, NULL));
    assert_error(WB_ERROR_ARGUMENT, "identity_init: gain must be finite, got inf");
}

static void columns_have_zeros(void **state) { /* K7 */
    (void)state;
    static const struct {
        double sparsity;
        int64_t rows, columns, zeros;
    } list[] = {{0.1, 10, 20, 1}, {0.25, 10, 20, 3}, {0.5, 7, 5, 4},
                {0, 7, 5, 0},     {1, 7, 5, 7},      {2, 7, 5, 7}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const int64_t sizes[2] = {list[i].rows, list[i].columns};
        wb_array *w = wb_sparse_init_with(2, sizes, WB_F32, list[i].sparsity, 0.01);
        wb_array *zeros = wb_sum_dims(wb_eq(w, wb_number(0)), 0);
        assert_true(wb_item(wb_all(wb_eq(zeros, wb_number((double)list[i].zeros)))) == 1);
        assert_int_equal(wb_dtype_of(w), WB_F32);
    }
    const int64_t sizes[3] = {100, 100, 1};
    wb_array *w = wb_sparse_init_with(2, sizes, WB_F64, 0.5, 3);
    assert_true(fabs(wb_item(wb_std(w, false)) - 3 * sqrt(0.5)) < 0.1);
    wb_array *places = wb_mean_dims(wb_eq(w, wb_number(0)), 1); /* rows have as many as columns */
    assert_true(wb_item(wb_maximum(places)) < 0.75 && wb_item(wb_minimum(places)) > 0.25);
    assert_null(wb_sparse_init_with(3, sizes, WB_F32, 0.1, 1));
    assert_error(WB_ERROR_SHAPE, "sparse_init: 2 dimensions are expected, got 3");
    assert_null(wb_sparse_init_with(2, sizes, WB_F32, -0.1, 1));
    assert_error(WB_ERROR_ARGUMENT, "sparse_init: sparsity must be at least 0, got -0.1");
    assert_null(wb_sparse_init_with(2, sizes, WB_F32, 0.1, (double)NAN));
    assert_error(WB_ERROR_ARGUMENT, "sparse_init: std must be finite, got nan");
}

static void layers_take_them(void **state) {
    (void)state;
    static wb_init *const all[] = {wb_glorot_normal,         wb_kaiming_normal, wb_lecun_normal,
                                   wb_truncated_normal_init, wb_orthogonal,     wb_identity_init,
                                   wb_uniform_init,          wb_normal_init,    wb_sparse_init};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wb_layer *dense = wb_dense(10, 20, .init = all[i]);
        assert_sizes(wb_apply(dense, wb_ones(WB_F32, 10, 3)), 20, 3);
        if (all[i] == wb_sparse_init) /* two of 20 rows */
            assert_values(wb_sum(wb_eq(wb_get(dense, "weight"), wb_number(0))), 0, 20);
        wb_free(dense);
        if (all[i] == wb_sparse_init) continue;
        wb_layer *conv = wb_conv({3, 3}, 2, 4, .init = all[i]);
        assert_sizes(wb_apply(conv, wb_ones(WB_F32, 5, 5, 2, 1)), 3, 3, 4, 1);
        wb_free(conv);
    }
}

static void constants(void **state) {
    (void)state;
    const int64_t sizes[9] = {2};
    assert_values(wb_zeros_init(1, sizes, WB_F64), 0, 0, 0);
    assert_values(wb_ones_init(1, sizes, WB_BF16), 0, 1, 1);
    assert_null(wb_glorot_uniform(9, sizes, WB_F32));
    wb_clear_error();
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(spread_follows_the_fans), TEST(fans),       TEST(gains_scale),
        TEST(columns_are_orthogonal),  TEST(identities), TEST(columns_have_zeros),
        TEST(layers_take_them),        TEST(constants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
