/* src/layers/conv.c, pool.c, flatten.c */
#include <string.h>

#include <weber/layers.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *counting(int64_t w, int64_t h, int64_t c, int64_t n) {
    return wb_reshape(wb_add_number(wb_iota(widest(), 0, w * h * c * n), 1), w, h, c, n);
}

static wb_layer *filled(wb_layer *conv) {
    const wb_array *w = wb_get(conv, "weight");
    (void)wb_set(conv, "weight",
                 counting(wb_size(w, 0), wb_size(w, 1), wb_size(w, 2), wb_size(w, 3)));
    return conv;
}

static void conv_flips_its_kernel(void **state) { /* E5 */
    (void)state;
    wb_layer *conv = filled(wb_conv(.kernel = {2, 2}, .in = 1, .out = 1, .dtype = widest()));
    wb_array *y = wb_apply(conv, counting(5, 4, 1, 1));
    assert_sizes(y, 4, 3, 1, 1);
    assert_values(y, 1e-12, 29, 39, 49, 59, 79, 89, 99, 109, 129, 139, 149, 159);
    wb_free(conv);
}

static void cross_cor_does_not(void **state) { /* E7 */
    (void)state;
    wb_layer *conv = filled(wb_cross_cor(.kernel = {2, 2}, .in = 1, .out = 1, .dtype = widest()));
    wb_array *y = wb_apply(conv, counting(5, 4, 1, 1));
    assert_values(y, 1e-12, 51, 61, 71, 81, 101, 111, 121, 131, 151, 161, 171, 181);
    wb_free(conv);
}

static void padding_may_be_uneven(void **state) { /* E15 */
    (void)state;
    wb_layer *conv = wb_conv(.kernel = {3, 3}, .in = 1, .out = 1, .pad = {0, 1}, .pad_more = {1, 1},
                             .init = wb_ones_init);
    wb_array *y = wb_apply(conv, wb_ones(WB_F32, 28, 28, 1, 1));
    assert_sizes(y, 27, 29, 1, 1);
    const int64_t places[][2] = {{0, 0}, {1, 1}, {26, 0}, {0, 28}, {0, 27}, {26, 28}};
    const double wanted[] = {6, 9, 4, 3, 6, 2};
    for (int i = 0; i < 6; i++)
        assert_true(wb_at(y, places[i][0], places[i][1], 0, 0) == wanted[i]);
    wb_free(conv);
}

static void groups_divide_channels(void **state) { /* E16 */
    (void)state;
    wb_layer *conv = wb_conv(.kernel = {3, 3}, .in = 100, .out = 25, .groups = 5);
    assert_sizes(wb_get(conv, "weight"), 3, 3, 20, 25);
    assert_sizes(wb_apply(conv, wb_ones(WB_F32, 28, 28, 100, 2)), 26, 26, 25, 2);
    wb_free(conv);
}

static void a_depthwise_one_has_a_group_for_each_channel(void **state) { /* F10 */
    (void)state;
    wb_layer *depthwise = wb_depthwise_conv({3, 3}, 3, 6, wb_relu);
    wb_array *w = wb_get(depthwise, "weight"), *x = wb_normal(WB_F32, 10, 10, 3, 1);
    wb_layer *conv = wb_conv({3, 3}, 3, 6, wb_relu, .groups = 3, .given_weight = w);
    wb_array *y = wb_apply(depthwise, x);
    assert_sizes(y, 8, 8, 6, 1);
    assert_true(wb_approx(y, wb_apply(conv, x), 0, 0, NULL, 0));
    wb_free(depthwise), wb_free(conv);
}

static void same_padding_keeps_the_size(void **state) { /* E17 */
    (void)state;
    for (int64_t k = 1; k <= 8; k++) {
        wb_layer *conv = wb_conv(.kernel = {k}, .in = 1, .out = 2, .same_pad = true);
        assert_sizes(wb_apply(conv, wb_ones(WB_F32, 10, 1, 1)), 10, 2, 1);
        wb_free(conv);
        conv = wb_conv(.kernel = {k}, .in = 1, .out = 2, .same_pad = true, .stride = {3});
        assert_sizes(wb_apply(conv, wb_ones(WB_F32, 10, 1, 1)), 4, 2, 1);
        wb_free(conv);
        conv = wb_conv(.kernel = {k}, .in = 1, .out = 2, .same_pad = true, .dilation = {1 + k / 2});
        assert_sizes(wb_apply(conv, wb_ones(WB_F32, 10, 1, 1)), 10, 2, 1);
        wb_free(conv);
    }
}

static void one_and_three_dimensions(void **state) {
    (void)state;
    wb_layer *one = wb_conv(.kernel = {3}, .in = 2, .out = 4),
             *three = wb_conv({2, 2, 2}, 2, 4, wb_relu);
    assert_sizes(wb_apply(one, wb_ones(WB_F32, 9, 2, 3)), 7, 4, 3);
    assert_sizes(wb_apply(three, wb_ones(WB_F32, 5, 4, 3, 2, 1)), 4, 3, 2, 4, 1);
    wb_free(one), wb_free(three);
}

static void pools(void **state) { /* E19, E22 */
    (void)state;
    wb_layer *max = wb_maxpool({2, 2}), *mean = wb_meanpool(.kernel = {2, 2}),
             *slow = wb_maxpool(.kernel = {2, 2}, .stride = {1, 1});
    wb_array *x = counting(5, 4, 1, 1);
    assert_values(wb_apply(max, x), 0, 7, 9, 17, 19);
    assert_values(wb_apply(mean, x), 1e-12, 4, 6, 14, 16);
    assert_values(wb_apply(slow, x), 0, 7, 8, 9, 10, 12, 13, 14, 15, 17, 18, 19, 20);
    assert_null(wb_apply(max, wb_ones(WB_F32, 4, 4, 1)));
    assert_error(WB_ERROR_SHAPE, "MaxPool((2, 2)): input has 3 dimensions");
    assert_null(wb_conv({3, 1, 16})); /* wb_conv(3, 1, 16), which compilers may warn of */
    assert_error(WB_ERROR_ARGUMENT,
                 "Conv: in must be positive, got 0; the kernel is (3, 1, 16): write "
                 "its sizes in braces, ({3, 3}, 1, 16)");
    assert_null(wb_conv({3, 3, 1}, 16)); /* wb_conv(3, 3, 1, 16) */
    assert_error(WB_ERROR_ARGUMENT, "Conv: out must be positive, got 0; the kernel is (3, 3, 1): "
                                    "write its sizes in braces, ({3, 3}, 1, 16)");
    assert_null(wb_conv({3, 3}, 16)); /* the channels of the result are missing, no brace */
    assert_string_equal(wb_error_message(), "Conv: out must be positive, got 0");
    wb_clear_error();
    wb_free(max), wb_free(mean), wb_free(slow);
}

static void a_small_network(void **state) { /* E27 */
    (void)state;
    wb_layer *model =
        wb_chain(wb_conv({2, 2}, 1, 16), wb_maxpool({2, 2}), wb_conv({2, 2}, 16, 8),
                 wb_maxpool({2, 2}), wb_flatten(), wb_dense(288, 10), wb_fn(wb_softmax));
    wb_array *y = wb_apply(model, wb_uniform(WB_F32, 28, 28, 1, 5));
    assert_sizes(y, 10, 5);
    assert_values(wb_sum_dims(y, 0), 1e-5, 1, 1, 1, 1, 1);
    wb_free(model);
}

static void a_weight_may_be_given(void **state) {
    (void)state;
    wb_array *w = wb_normal(widest(), 2, 3, 2, 4), *b = wb_ones(widest(), 4);
    wb_layer *conv = wb_conv({2, 3}, 4, 4, .groups = 2, .given_weight = w, .given_bias = b);
    assert_ptr_equal(wb_get(conv, "weight"), w);
    assert_ptr_equal(wb_get(conv, "bias"), b);
    wb_free(conv);
    conv = wb_cross_cor({2, 3}, 2, 4, .given_weight = w);
    assert_int_equal(wb_dtype_of(wb_get(conv, "bias")), widest());
    wb_free(conv);
    assert_null(wb_conv({2, 3}, 4, 4, .given_weight = w));
    assert_error(WB_ERROR_SHAPE, "Conv: weight must be (2, 3, 4, 4), got (2, 3, 2, 4)");
    assert_null(wb_conv({2, 3}, 2, 4, .given_weight = wb_cast(w, WB_I32)));
    assert_error(WB_ERROR_DTYPE, "Conv: weight must be floating, got i32");
    assert_null(wb_cross_cor({2, 3}, 2, 4, .given_weight = w, .given_bias = wb_ones(widest(), 3)));
    assert_error(WB_ERROR_SHAPE, "CrossCor: bias must be (4), got (3)");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(conv_flips_its_kernel),
        TEST(cross_cor_does_not),
        TEST(padding_may_be_uneven),
        TEST(groups_divide_channels),
        TEST(a_weight_may_be_given),
        TEST(a_depthwise_one_has_a_group_for_each_channel),
        TEST(same_padding_keeps_the_size),
        TEST(one_and_three_dimensions),
        TEST(pools),
        TEST(a_small_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
