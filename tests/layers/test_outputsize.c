/* src/layers/outputsize.c: section F of the acceptance cases */
#include "support/support.h"

static void assert_shape(wb_shape shape, wb_shape wanted, const char *name) {
    if (shape.ndim < 0) fail_msg("%s: %s", name, wb_error_message());
    assert_int_equal(shape.ndim, wanted.ndim);
    for (int d = 0; d < wanted.ndim; d++) assert_int_equal(shape.sizes[d], wanted.sizes[d]);
}

static wb_layer *conv(void) { return wb_conv({3, 3}, 3, 16); }
static wb_layer *stride_2(void) { return wb_conv({3, 3}, 3, 16, .stride = {2}); }
static wb_layer *pad_3(void) { return wb_conv({3, 3}, 3, 16, .stride = {2}, .pad = {3, 3}); }
static wb_layer *dilated(void) {
    return wb_conv({3, 3}, 3, 16, .stride = {2}, .pad = {3, 3}, .dilation = {2});
}
static wb_layer *back(void) { return wb_conv_transpose({3, 3}, 3, 16); }
static wb_layer *back_2(void) { return wb_conv_transpose({3, 3}, 3, 16, .stride = {2}); }
static wb_layer *back_pad_3(void) {
    return wb_conv_transpose({3, 3}, 3, 16, .stride = {2}, .pad = {3, 3});
}
static wb_layer *back_dilated(void) {
    return wb_conv_transpose({3, 3}, 3, 16, .stride = {2}, .pad = {3, 3}, .dilation = {2});
}
static wb_layer *depthwise(void) { return wb_depthwise_conv({3, 3}, 3, 6); }
static wb_layer *pool(void) { return wb_maxpool({2, 2}); }
static wb_layer *pool_1(void) { return wb_maxpool({2, 2}, .stride = {1}); }
static wb_layer *pool_pad(void) { return wb_maxpool({2, 2}, .stride = {2}, .pad = {3, 3}); }
static wb_layer *adaptive(void) { return wb_adaptive_maxpool({2, 2}); }
static wb_layer *around(void) {
    return wb_skip(wb_conv({3, 3}, 3, 16, .pad = {1, 1}), wb_connect_channels);
}
static wb_layer *network(void) {
    return wb_chain(conv(), wb_batchnorm(16), wb_flatten(), wb_dense(1024, 10));
}
static wb_layer *two(void) { return wb_parallel(wb_connect_vcat, wb_dense(2, 4), wb_dense(3, 6)); }

static const struct row {
    const char *name;
    wb_layer *(*make)(void);
    wb_outputsize_desc desc;
    wb_shape wanted;
} rows[] = {
    {"F1 Conv", conv, {.inputs = {{10, 10, 3, 1}}}, {4, {8, 8, 16, 1}}},
    {"F2 stride 2", stride_2, {.inputs = {{5, 5, 3, 1}}}, {4, {2, 2, 16, 1}}},
    {"F3 and padding 3", pad_3, {.inputs = {{5, 5, 3, 1}}}, {4, {5, 5, 16, 1}}},
    {"F4 and dilation 2", dilated, {.inputs = {{5, 5, 3, 1}}}, {4, {4, 4, 16, 1}}},
    {"F5 ConvTranspose", back, {.inputs = {{8, 8, 3, 1}}}, {4, {10, 10, 16, 1}}},
    {"F6 stride 2", back_2, {.inputs = {{2, 2, 3, 1}}}, {4, {5, 5, 16, 1}}},
    {"F7 and padding 3", back_pad_3, {.inputs = {{5, 5, 3, 1}}}, {4, {5, 5, 16, 1}}},
    {"F8 and dilation 2", back_dilated, {.inputs = {{4, 4, 3, 1}}}, {4, {5, 5, 16, 1}}},
    {"F9 DepthwiseConv", depthwise, {.inputs = {{10, 10, 3, 1}}}, {4, {8, 8, 6, 1}}},
    {"F10 MaxPool", pool, {.inputs = {{10, 10, 3, 1}}}, {4, {5, 5, 3, 1}}},
    {"F11 stride 1", pool_1, {.inputs = {{5, 5, 3, 1}}}, {4, {4, 4, 3, 1}}},
    {"F13 AdaptiveMaxPool", adaptive, {.inputs = {{10, 10, 3, 1}}}, {4, {2, 2, 3, 1}}},
    {"F14 GlobalMeanPool", wb_global_meanpool, {.inputs = {{10, 10, 3, 1}}}, {4, {1, 1, 3, 1}}},
    {"F15 flatten", wb_flatten, {.inputs = {{5, 5, 3, 10}}}, {2, {75, 10}}},
    {"F16 a network", network, {.inputs = {{10, 10, 3, 50}}}, {2, {10, 50}}},
    {"F16 a network, the batch added",
     network,
     {.inputs = {{10, 10, 3}}, .pad_batch = true},
     {2, {10, 1}}},
    {"F17 SkipConnection", around, {.inputs = {{10, 10, 3, 1}}}, {4, {10, 10, 19, 1}}},
    {"F18 Parallel", two, {.inputs = {{2}, {3}}}, {1, {10}}},
    {"F18 with padbatch", two, {.inputs = {{2}, {3}}, .pad_batch = true}, {2, {10, 1}}},
};

static void sizes_are_those_of_the_result(void **state) {
    const struct row *r = *state;
    wb_layer *model = r->make();
    const wb_plan_counts before = wb_plan_status();
    assert_shape(wb_outputsize_make(model, r->desc), r->wanted, r->name);
    assert_int_equal(wb_plan_status().kernels, before.kernels);
    assert_int_equal(wb_plan_status().evaluations, before.evaluations);
    wb_free(model);
}

static void states_and_random_numbers_stay(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_recur(wb_lstm_cell(3, 4)), wb_dropout(0.5), wb_batchnorm(4));
    wb_train_mode(model);
    wb_seed(3);
    wb_array *first = wb_uniform(WB_F32, 4);
    wb_seed(3);
    assert_shape(wb_outputsize(model, {{3, 1}}), (wb_shape){2, {4, 1}}, "a chain in training");
    assert_same_bits(wb_uniform(WB_F32, 4), first, "random numbers");
    wb_clear_error();
    assert_null(wb_get(model, "layers.1.hidden"));
    wb_clear_error();
    assert_values(wb_get(model, "layers.3.μ"), 0, 0, 0, 0, 0);
    wb_layer *words = wb_chain(wb_embedding(10, 4), wb_lstm(4, 5));
    assert_shape(wb_outputsize(words, {{7, 2}}, .dtype = WB_I64), (wb_shape){3, {5, 7, 2}},
                 "words");
    wb_free(model), wb_free(words);
}

/* In Flux that is (5, 5, 3, 1), with -Inf at the corners. */
static void a_window_in_the_padding_alone_is_refused(void **state) { /* F12 */
    (void)state;
    wb_layer *model = pool_pad();
    assert_int_equal(wb_outputsize(model, {{5, 5, 3, 1}}).ndim, -1);
    assert_error(WB_ERROR_SHAPE, "padding 3 must be smaller than window 2");
    wb_free(model);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(10, 8), wb_dense(8, 4), wb_dense(5, 2));
    assert_int_equal(wb_outputsize(model, {{10, 1}}).ndim, -1);
    assert_error(WB_ERROR_SHAPE, "Dense(5 => 2), layer 3 of Chain: input has 4 features in (4, 1)");
    assert_int_equal(wb_outputsize(model, {{5, 2}}).ndim, -1);
    assert_error(WB_ERROR_SHAPE, "Dense(10 => 8), layer 1 of Chain: input has 5 features");
    assert_int_equal(wb_outputsize(model, {{0}}).ndim, -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_outputsize: the sizes of the input are missing");
    assert_int_equal(wb_outputsize(model, {{10, -1}}).ndim, -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_outputsize: sizes must be positive, got -1");
    assert_int_equal(wb_outputsize(NULL, {{10}}).ndim, -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_outputsize: the model is NULL");
    wb_layer *several = wb_parallel(NULL, wb_flatten(), wb_flatten());
    assert_int_equal(wb_outputsize(several, {{3, 2}}).ndim, -1);
    assert_error(WB_ERROR_ARGUMENT, "Parallel: gives 2 arrays, expected 1");
    wb_free(model), wb_free(several);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {TEST(states_and_random_numbers_stay),
                                        TEST(a_window_in_the_padding_alone_is_refused),
                                        TEST(mistakes)};
    ADD_ROWS(&tests, rows, sizes_are_those_of_the_result);
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_outputsize", &tests, NULL, NULL);
}
