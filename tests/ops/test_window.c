/* src/ops/window.c: what windows have in common: limits that are refused, halves, and the ties
 * between the operations. */
#include "support/support.h"

#define DESC(...)  ((wb_window_desc){.start_ = 0, __VA_ARGS__})
#define F(...)     wb_zeros(WB_F32, __VA_ARGS__)
#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

typedef wb_array *call_fn(void);

static wb_array *empty_kernel(void) { return wb_conv_op(F(4, 1, 1), F(0, 1, 1), .stride = {1}); }
static wb_array *empty_kernel_of_data(void) {
    return wb_conv_data_make(F(4, 1, 1), F(0, 1, 1), SIZES(4, 1, 1), DESC(.stride = {1}));
}
static wb_array *empty_kernel_of_filter(void) {
    return wb_conv_filter_make(F(4, 1, 1), F(4, 1, 1), SIZES(0, 1, 1), DESC(.stride = {1}));
}
static wb_array *far_padding(void) {
    return wb_conv_op(F(4, 1, 1), F(3, 1, 1), .pad = {1}, .pad_more = {INT64_MAX});
}
static wb_array *negative_total(void) {
    return wb_maxpool_op(F(4, 1, 1), .kernel = {2}, .pad = {1}, .pad_more = {-2});
}
static wb_array *many_groups(void) {
    return wb_conv_op(F(4, 2, 1), F(3, 2, 1), .groups = INT64_MAX);
}
static wb_array *negative_groups(void) { return wb_conv_op(F(4, 2, 1), F(3, 2, 1), .groups = -1); }
static wb_array *far_stride(void) {
    return wb_meanpool_op(F(4, 2, 1), .kernel = {2}, .stride = {1 << 20});
}
static wb_array *negative_kernel(void) { return wb_unfold(F(4, 2, 1), .kernel = {-2}); }
static wb_array *dilated_beyond(void) {
    return wb_conv_op(F(4, 1, 1), F(3, 1, 1), .dilation = {2});
}
static wb_array *data_of_other_sizes(void) {
    return wb_conv_data_make(F(4, 1, 1), F(3, 1, 1), SIZES(5, 1, 1), DESC(.groups = 1));
}
static wb_array *filter_of_other_sizes(void) {
    return wb_conv_filter_make(F(5, 1, 1), F(4, 1, 1), SIZES(3, 1, 1), DESC(.groups = 1));
}
static wb_array *columns_of_other_sizes(void) {
    return wb_fold_make(F(3, 2, 2), 3, SIZES(5, 1, 2), DESC(.kernel = {2}));
}

static const struct row {
    const char *name;
    call_fn *call;
    wb_status status;
    const char *message;
} rows[] = {
    {"an empty kernel", empty_kernel, WB_ERROR_ARGUMENT,
     "conv: kernel size must be at "
     "least 1, got 0"},
    {"an empty kernel of the data", empty_kernel_of_data, WB_ERROR_ARGUMENT,
     "conv_data: kernel size must be at least 1, got 0"},
    {"an empty kernel asked for", empty_kernel_of_filter, WB_ERROR_ARGUMENT,
     "conv_filter: kernel size must be at least 1, got 0"},
    {"a padding that overflows", far_padding, WB_ERROR_ARGUMENT,
     "conv: more padding after must be below 1048576, got 9223372036854775807"},
    {"a padding below nothing", negative_total, WB_ERROR_ARGUMENT,
     "maxpool: padding after "
     "must be at least 0, got -1"},
    {"too many groups", many_groups, WB_ERROR_ARGUMENT,
     "conv: groups must be below 1048576, got 9223372036854775807"},
    {"negative groups", negative_groups, WB_ERROR_ARGUMENT,
     "conv: groups must be at least "
     "1, got -1"},
    {"a stride beyond the limit", far_stride, WB_ERROR_ARGUMENT,
     "meanpool: stride must be "
     "below 1048576, got 1048576"},
    {"a negative kernel", negative_kernel, WB_ERROR_ARGUMENT,
     "unfold: kernel size must be "
     "at least 1, got -2"},
    {"a kernel dilated beyond x", dilated_beyond, WB_ERROR_SHAPE,
     "conv: the window covers 5 elements of dimension 0, but x is (4, 1, 1) with 0 elements of "
     "padding"},
    {"a result of other sizes", data_of_other_sizes, WB_ERROR_SHAPE,
     "conv_data: y must be (3, 1, 1), got (4, 1, 1)"},
    {"a result of other sizes for the filter", filter_of_other_sizes, WB_ERROR_SHAPE,
     "conv_filter: y must be (3, 1, 1), got (4, 1, 1)"},
    {"columns of other sizes", columns_of_other_sizes, WB_ERROR_SHAPE,
     "fold: columns must be (4, 2, 2), got (3, 2, 2)"},
};

static void is_refused(void **state) {
    const struct row *r = *state;
    assert_null(r->call());
    assert_int_equal(wb_error_status(), r->status);
    assert_string_equal(wb_error_message(), r->message);
    wb_clear_error();
}

static wb_array *plain(wb_array *x, wb_array *w) {
    return wb_conv_op_make(x, w, (wb_window_desc){.start_ = 0});
}

static void groups_are_convolutions_side_by_side(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int t = 0; t < 2; t++) {
        const wb_dtype dtype = t ? WB_F32 : WB_F64;
        wb_array *x = array_random(&r, dtype, -1, 1, 4, SIZES(28, 28, 100, 2));
        wb_array *w = array_random(&r, dtype, -1, 1, 4, SIZES(3, 3, 20, 25));
        wb_array *y = wb_conv_op(x, w, .groups = 5), *parts[5];
        for (int g = 0; g < 5; g++)
            parts[g] =
                plain(wb_slice(x, 2, 20 * g, 20 * g + 20, 1), wb_slice(w, 3, 5 * g, 5 * g + 5, 1));
        char where[128];
        if (!wb_approx(y, wb_concat_make(2, 5, parts), 1e-4, t ? 1e-4 : 1e-10, where, sizeof where))
            fail_msg("%s", where);
    }
}

static void unfold_and_matmul_make_a_convolution(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int round = 0; round < 8; round++) {
        const wb_window_desc desc = {.kernel = {3, 2},
                                     .stride = {2, 1},
                                     .pad = {1, padding(round >> 1 & 1)},
                                     .dilation = {1, 1 + (round >> 2)},
                                     .cross_correlation = round & 1};
        wb_array *x = array_random(&r, WB_F64, -1, 1, 4, SIZES(7, 6, 3, 2));
        wb_array *w = array_random(&r, WB_F64, -1, 1, 4, SIZES(3, 2, 3, 4));
        wb_array *y = wb_conv_op_make(x, w, desc), *columns = wb_unfold_make(x, desc);
        wb_array *product = wb_matmul(columns, wb_reshape(w, 18, 4));
        char where[128];
        if (!wb_approx(y, wb_reshape_make(product, 4, wb_sizes(y)), 1e-12, 1e-12, where,
                       sizeof where))
            fail_msg("round %d: %s", round, where);
    }
}

/* <A x, y> = <x, A' y> for each operation and its adjoint. */
static void adjoints_are_adjoint(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int round = 0; round < 40; round++) {
        const wb_window_desc desc = {.kernel = {1 + round % 3, 2},
                                     .stride = {1 + random_below(&r, 2), 1 + random_below(&r, 3)},
                                     .pad = {padding(round % 3 > 0), 1},
                                     .cross_correlation = round & 1};
        const int64_t sizes[4] = {4 + random_below(&r, 9), 3 + random_below(&r, 9), 2, 3},
                      filter[4] = {desc.kernel[0], 2, 2, 5};
        wb_array *x = array_random(&r, WB_F64, -1, 1, 4, sizes),
                 *w = array_random(&r, WB_F64, -1, 1, 4, filter);
        wb_array *y = wb_conv_op_make(x, w, desc),
                 *u = array_random(&r, WB_F64, -1, 1, 4, wb_sizes(y));
        const double conv = wb_item(wb_sum(wb_mul(y, u)));
        assert_true(fabs(conv - wb_item(wb_sum(wb_mul(x, wb_conv_data_make(u, w, sizes, desc))))) <
                    1e-10);
        assert_true(fabs(conv - wb_item(wb_sum(
                                    wb_mul(w, wb_conv_filter_make(x, u, filter, desc))))) < 1e-10);
        wb_array *columns = wb_unfold_make(x, desc),
                 *c = array_random(&r, WB_F64, -1, 1, 3, wb_sizes(columns));
        assert_true(fabs(wb_item(wb_sum(wb_mul(columns, c))) -
                         wb_item(wb_sum(wb_mul(x, wb_fold_make(c, 4, sizes, desc))))) < 1e-10);
    }
}

static void halves_are_rounded_once(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int t = 0; t < 2; t++) {
        const wb_dtype dtype = t ? WB_F16 : WB_BF16;
        wb_array *x = array_random(&r, dtype, -1, 1, 4, SIZES(9, 7, 3, 2)),
                 *wide = wb_cast(x, WB_F32);
        wb_array *w = array_random(&r, dtype, -1, 1, 4, SIZES(3, 3, 3, 8));
        assert_int_equal(wb_dtype_of(plain(x, w)), dtype);
        assert_same_bits(plain(x, w), wb_cast(plain(wide, wb_cast(w, WB_F32)), dtype), "conv");
        assert_same_bits(wb_maxpool_op(x, .kernel = {2, 2}),
                         wb_cast(wb_maxpool_op(wide, .kernel = {2, 2}), dtype), "maxpool");
        assert_same_bits(wb_meanpool_op(x, .kernel = {3, 2}),
                         wb_cast(wb_meanpool_op(wide, .kernel = {3, 2}), dtype), "meanpool");
    }
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(groups_are_convolutions_side_by_side),
        TEST(unfold_and_matmul_make_a_convolution),
        TEST(adjoints_are_adjoint),
        TEST(halves_are_rounded_once),
    };
    ADD_ROWS(&tests, rows, is_refused);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_window", &tests, NULL, NULL);
}
