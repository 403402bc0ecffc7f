/* Convolutions: cases E1 to E16 of the acceptance list (x = 1, 2, 3 ..., w likewise, upstream
 * gradient = the result), and random ones against the naive evaluator. */
#include "support/naive.h"
#include "support/support.h"

static wb_array *counting(int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    return wb_reshape_make(wb_add_number(wb_iota(WB_F64, 0, count), 1), ndim, sizes);
}

typedef struct conv_row {
    const char *name;
    int64_t x[2], w[2]; /* spatial sizes; x[1] 0: one dimension */
    wb_window_desc desc;
    int count;
    double wanted[32];
    enum { FORWARD, DX, DW } what;
} conv_row;

/* wb_conv_op(x, w) without settings is no standard C11. */
#define CONV(x, w) wb_conv_op_make(x, w, (wb_window_desc){.start_ = 0})

#define PLAIN                                                                                      \
    { .start_ = 0 }
#define STRIDE_2                                                                                   \
    {                                                                                              \
        .stride = { 2, 2 }                                                                         \
    }
#define PAD_1                                                                                      \
    {                                                                                              \
        .pad = { 1, 1 }                                                                            \
    }
#define DILATED                                                                                    \
    {                                                                                              \
        .dilation = { 2, 2 }                                                                       \
    }
#define UNFLIPPED                                                                                  \
    { .cross_correlation = true }

static const conv_row rows[] = {
    {"E1 1-D with padding 1", {5}, {2}, PAD_1, 6, {1, 4, 7, 10, 13, 10}, FORWARD},
    {"E2 1-D", {5}, {2}, PLAIN, 4, {4, 7, 10, 13}, FORWARD},
    {"E2 1-D with stride 2", {5}, {2}, STRIDE_2, 2, {4, 10}, FORWARD},
    {"E2 1-D dilated", {5}, {2}, DILATED, 3, {5, 8, 11}, FORWARD},
    {"E2 1-D not flipped", {5}, {2}, UNFLIPPED, 4, {5, 8, 11, 14}, FORWARD},
    {"E3 dx", {5}, {2}, PLAIN, 5, {8, 18, 27, 36, 13}, DX},
    {"E3 dx with stride 2", {5}, {2}, STRIDE_2, 5, {8, 4, 20, 10, 0}, DX},
    {"E3 dx with padding 1", {5}, {2}, PAD_1, 5, {9, 18, 27, 36, 33}, DX},
    {"E3 dx dilated", {5}, {2}, DILATED, 5, {10, 16, 27, 8, 11}, DX},
    {"E3 dx not flipped", {5}, {2}, UNFLIPPED, 5, {5, 18, 27, 36, 28}, DX},
    {"E4 dw", {5}, {2}, PLAIN, 2, {134, 100}, DW},
    {"E4 dw with stride 2", {5}, {2}, STRIDE_2, 2, {48, 34}, DW},
    {"E4 dw with padding 1", {5}, {2}, PAD_1, 2, {135, 150}, DW},
    {"E4 dw dilated", {5}, {2}, DILATED, 2, {102, 54}, DW},
    {"E4 dw not flipped", {5}, {2}, UNFLIPPED, 2, {110, 148}, DW},
    {"E5 2-D with padding 1",
     {5, 4},
     {2, 2},
     PAD_1,
     30,
     {1,  4,   7,  10, 13,  10,  9,   29,  39,  49, 59,  40,  29,  79,  89,
      99, 109, 70, 49, 129, 139, 149, 159, 100, 48, 115, 122, 129, 136, 80},
     FORWARD},
    {"E5 2-D",
     {5, 4},
     {2, 2},
     PLAIN,
     12,
     {29, 39, 49, 59, 79, 89, 99, 109, 129, 139, 149, 159},
     FORWARD},
    {"E5 2-D with stride 2", {5, 4}, {2, 2}, STRIDE_2, 4, {29, 49, 129, 149}, FORWARD},
    {"E7 2-D not flipped",
     {5, 4},
     {2, 2},
     UNFLIPPED,
     12,
     {51, 61, 71, 81, 101, 111, 121, 131, 151, 161, 171, 181},
     FORWARD},
    {"E9 2-D dx with stride 2",
     {5, 4},
     {2, 2},
     STRIDE_2,
     20,
     {116, 87, 196, 147, 0, 58, 29, 98, 49, 0, 516, 387, 596, 447, 0, 258, 129, 298, 149, 0},
     DX},
    {"E12 2-D dw", {5, 4}, {2, 2}, PLAIN, 4, {17378, 16250, 11738, 10610}, DW},
    {"E12 2-D dw with stride 2", {5, 4}, {2, 2}, STRIDE_2, 4, {5668, 5312, 3888, 3532}, DW},
    {"E12 2-D dw with padding 1", {5, 4}, {2, 2}, PAD_1, 4, {18670, 19850, 22550, 23430}, DW},
    {"E12 2-D dw dilated", {5, 4}, {2, 2}, DILATED, 4, {8632, 7636, 3652, 2656}, DW},
    {"E12 2-D dw not flipped", {5, 4}, {2, 2}, UNFLIPPED, 4, {12590, 13982, 19550, 20942}, DW},
};

static void has_the_known_numbers(void **state) {
    const conv_row *row = *state;
    const bool two = row->x[1] != 0;
    wb_window_desc desc = row->desc;
    if (!two) desc.stride[1] = desc.pad[1] = desc.dilation[1] = 0;
    const int64_t x_sizes[4] = {row->x[0], two ? row->x[1] : 1, 1, 1},
                  w_sizes[4] = {row->w[0], two ? row->w[1] : 1, 1, 1};
    for (int k = 0; k < 2; k++) {
        wb_array *x = counting(two ? 4 : 3, x_sizes), *w = counting(two ? 4 : 3, w_sizes), *g[2];
        if (k) x = wb_cast(x, WB_F32), w = wb_cast(w, WB_F32);
        wb_array *y = wb_conv_op_make(x, w, desc);
        if (!y) fail_msg("%s", wb_error_message());
        assert_int_equal(wb_pullback(y, wb_stop_gradient(y), 2, (wb_array *[]){x, w}, g), WB_OK);
        assert_numbers(row->what == FORWARD ? y : g[row->what == DX ? 0 : 1], row->count,
                       row->wanted, 1e-7);
    }
}

static void twice_the_result_less_an_old_one(void **state) { /* E14 */
    (void)state;
    const int64_t sizes[3] = {5, 1, 1}, filter[3] = {2, 1, 1};
    wb_array *y = CONV(counting(3, sizes), counting(3, filter)), *old = wb_ones(WB_F64, 4, 1, 1);
    assert_values(wb_sub(wb_mul_number(y, 2), old), 1e-12, 7, 13, 19, 25);
}

static void uneven_padding(void **state) { /* E15 */
    (void)state;
    wb_array *y = wb_conv_op(wb_ones(WB_F32, 28, 28, 1, 1), wb_ones(WB_F32, 3, 3, 1, 1),
                             .pad = {0, 1}, .pad_more = {1, 1});
    assert_sizes(y, 27, 29, 1, 1);
    assert_true(wb_at(y, 0, 0, 0, 0) == 6 && wb_at(y, 1, 1, 0, 0) == 9 &&
                wb_at(y, 26, 0, 0, 0) == 4);
    assert_true(wb_at(y, 0, 28, 0, 0) == 3 && wb_at(y, 0, 27, 0, 0) == 6 &&
                wb_at(y, 26, 28, 0, 0) == 2);
}

static void groups(void **state) { /* E16 */
    (void)state;
    wb_array *x = wb_ones(WB_F32, 28, 28, 100, 2);
    assert_sizes(wb_conv_op(x, wb_ones(WB_F32, 3, 3, 20, 25), .groups = 5), 26, 26, 25, 2);
    assert_true(wb_at(wb_conv_op(x, wb_ones(WB_F32, 3, 3, 20, 25), .groups = 5), 0, 0, 7, 1) ==
                180);
}

/* Any geometry, f32 and f64, views as inputs, followed by bias and activation. */
static void random_convolutions(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int i = 0; i < cases_of(120); i++) {
        const int spatial = 1 + (int)random_below(&r, 3), ndim = spatial + 2;
        const int64_t groups = 1 + random_below(&r, 3);
        int64_t x[5], w[5];
        wb_window_desc desc = {.groups = groups, .cross_correlation = random_below(&r, 2) != 0};
        for (int d = 0; d < spatial; d++) {
            w[d] = 1 + random_below(&r, 3);
            desc.stride[d] = 1 + random_below(&r, 3);
            desc.dilation[d] = 1 + random_below(&r, 2);
            desc.pad[d] = random_below(&r, 3);
            desc.pad_more[d] = random_below(&r, 2) - (desc.pad[d] > 0 ? 1 : 0);
            x[d] = desc.dilation[d] * (w[d] - 1) + 1 + random_below(&r, spatial == 3 ? 3 : 7);
        }
        w[spatial] = random_below(&r, 12) ? 1 + random_below(&r, 3) : 0;
        w[spatial + 1] = groups * (random_below(&r, 12) ? 1 + random_below(&r, 3) : 0);
        x[spatial] = groups * w[spatial],
        x[spatial + 1] = random_below(&r, 8) == 0 ? 0 : 1 + random_below(&r, 2);
        const wb_dtype dtype = random_below(&r, 2) ? WB_F32 : WB_F64;
        wb_array *a = array_random(&r, dtype, -1, 1, ndim, x),
                 *f = array_random(&r, dtype, -1, 1, ndim, w), *g[2];
        if (random_below(&r, 3) == 0) a = wb_flip(a, (int)random_below(&r, ndim));
        if (random_below(&r, 3) == 0) f = wb_flip(f, (int)random_below(&r, ndim));
        wb_array *y = wb_conv_op_make(a, f, desc);
        if (!y) { /* more taken off at the end than there is */
            wb_clear_error();
            continue;
        }
        if (random_below(&r, 2)) {
            int64_t bias[5] = {1, 1, 1, 1, 1};
            bias[spatial] = w[spatial + 1];
            y = wb_relu(wb_add(y, array_random(&r, dtype, -1, 1, spatial + 1, bias)));
        }
        naive_table *t = naive_new();
        const double tolerance = dtype == WB_F32 ? 2e-5 : 1e-12;
        assert_as_naive(t, y, tolerance, "a convolution");
        assert_int_equal(wb_gradient_of(wb_sum(wb_square(y)), 2, (wb_array *[]){a, f}, g), WB_OK);
        assert_as_naive(t, g[0], 10 * tolerance, "its gradient in x");
        assert_as_naive(t, g[1], 20 * tolerance, "its gradient in w");
        naive_free(t);
    }
}

static void bad_input_is_named(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 32, 32, 4, 8);
    assert_null(CONV(x, wb_ones(WB_F32, 3, 3, 3, 2)));
    assert_error(WB_ERROR_SHAPE, "conv: the filter takes 3 input channels, but x has 4 in "
                                 "(32, 32, 4, 8)");
    assert_null(CONV(x, wb_ones(WB_F32, 3, 4, 2)));
    assert_error(WB_ERROR_SHAPE,
                 "conv: x is (32, 32, 4, 8), so the filter needs as many dimensions, but is "
                 "(3, 4, 2)");
    assert_null(CONV(x, wb_ones(WB_F32, 40, 3, 4, 2)));
    assert_error(WB_ERROR_SHAPE, "conv: the window covers 40 elements of dimension 0, but x is "
                                 "(32, 32, 4, 8) with 0 elements of padding");
    assert_null(wb_conv_op(x, wb_ones(WB_F32, 3, 3, 4, 2), .stride = {-1}));
    assert_error(WB_ERROR_ARGUMENT, "conv: stride must be at least 1, got -1");
    assert_null(wb_conv_op(x, wb_ones(WB_F32, 3, 3, 4, 2), .pad = {0, -1}));
    assert_error(WB_ERROR_ARGUMENT, "conv: padding must be at least 0, got -1");
    assert_null(wb_conv_op(x, wb_ones(WB_F32, 3, 3, 4, 2), .groups = -1));
    assert_true(wb_failed());
    wb_clear_error();
    assert_null(CONV(wb_ones(WB_I32, 8, 1, 1), wb_ones(WB_I32, 2, 1, 1)));
    assert_error(WB_ERROR_DTYPE, "conv: the type must be floating, got i32");
    assert_null(CONV(wb_ones(WB_F32, 8, 1), wb_ones(WB_F32, 2, 1)));
    assert_error(WB_ERROR_SHAPE, "1 to 3 spatial dimensions, channels and batch, got");
    assert_null(CONV(NULL, x));
    assert_error(WB_ERROR_ARGUMENT, "conv: x is NULL");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(twice_the_result_less_an_old_one),
        TEST(uneven_padding),
        TEST(groups),
        TEST(random_convolutions),
        TEST(bad_input_is_named),
    };
    ADD_ROWS(&tests, rows, has_the_known_numbers);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_conv", &tests, NULL, NULL);
}
