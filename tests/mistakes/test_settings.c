/* Settings that cannot be are told, not taken for others: zeros, lists with gaps or too many
 * numbers, numbers that are none. */
#include <math.h>

#include <weber.h>

#include "support/support.h"

static void assert_refused(const void *made, const char *says) {
    assert_null(made);
    assert_error(WB_ERROR_ARGUMENT, says);
}

/* They are not taken for the default. */
static void zeros_that_cannot_be_are_refused(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_ones(WB_F32, 8, 3), *labels = wb_vector_of(WB_I32, 0, 1, 1);
    wb_layer *model = wb_dense(2, 2);
    assert_refused(wb_lppool({2, 2}, .p = 0), "LPPool: p must be above 0, got 0");
    assert_refused(wb_multi_head_attention(8, .heads = 0),
                   "MultiHeadAttention: nheads must be positive, got 0");
    assert_refused(wb_transformer_encoder(8, .heads = 0), "nheads must be positive, got 0");
    assert_refused(wb_rotary_positions(.heads = 0), "heads must be positive, got 0");
    assert_refused(wb_rotary_positions(.base = 0), "base must be above 0, got 0");
    assert_refused(wb_attention(x, x, x, .heads = 0),
                   "heads must be a multiple of kv_heads, got 0");
    assert_refused(wb_rotary(x, .heads = 0), "features must be even for each of 0 heads");
    assert_refused(wb_rotary(x, .base = 0), "rotary: base must be positive and finite, got 0");
    assert_refused(wb_rotary(x, .base = (double)INFINITY), "base must be positive and finite");
    assert_refused(wb_rotary(x, .heads = INT64_MAX), "features must be even for each of");
    assert_refused(wb_setup(wb_accum_grad(.n = 0), model),
                   "AccumGrad: n must be a whole number from 1 to 2^53, got 0");
    assert_refused(wb_setup(wb_descent(), model, .loss_scale_interval = 0),
                   "wb_setup: loss_scale_interval must be positive, got 0");
    assert_refused(wb_loader_new(.x = x, .batchsize = 0), "batchsize must be from 1 to");
    assert_refused(wb_oversample(labels, .fraction = 0), "above 0 and at most 1, got 0");
    assert_non_null(wb_undersample(labels));
    wb_free(model);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void a_momentum_of_zero_keeps_what_was(void **state) {
    (void)state;
    wb_layer *norms[] = {wb_batchnorm(2, .momentum = 0),
                         wb_instancenorm(2, .momentum = 0, .track_stats = true)};
    for (int i = 0; i < 2; i++) {
        const bool before = wb_training(true);
        wb_scope_open();
        assert_non_null(wb_apply(norms[i], wb_normal(WB_F32, 5, 2, 3)));
        assert_int_equal(wb_scope_close(), WB_OK);
        wb_training(before);
        assert_true(wb_item(wb_sum(wb_abs(wb_get(norms[i], "μ")))) == 0);
        assert_true(wb_item(wb_sum(wb_get(norms[i], "σ²"))) == 2);
        wb_free(norms[i]);
    }
}

static void lists_have_a_number_for_each_dimension(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_ones(WB_F32, 6, 6, 1, 1), *w = wb_ones(WB_F32, 3, 3, 1, 1);
    assert_refused(wb_conv({3, 0, 3}, 1, 1),
                   "Conv: kernel must be from 1 to 1048575, got (3, 0, 3)");
    assert_refused(wb_conv({0, 3}, 1, 1), "Conv: kernel must be from 1 to 1048575, got (0, 3)");
    assert_refused(wb_maxpool({2, 0, 2}),
                   "MaxPool: kernel must be from 1 to 1048575, got (2, 0, 2)");
    assert_refused(wb_conv({3, 3, 3}, 1, 1, .stride = {2, 0, 2}),
                   "stride must be from 1 to 1048575, "
                   "got (2, 0, 2)");
    assert_refused(wb_layernorm({4, 0, 2}), "LayerNorm: size must be positive, got (4, 0, 2)");
    assert_refused(wb_adaptive_meanpool({4, 0, 2}), "out must be positive, got (4, 0, 2)");
    assert_refused(wb_upsample(.scale = {2, 0, 2}), "scale must not have a 0 before number 3");
    assert_refused(
        wb_conv(WB_ALL(3), 1, 1),
        "Conv: kernel says how many dimensions there are: write its numbers alone, as {3, "
        "3}, not WB_ALL or WB_EACH");
    assert_refused(wb_conv(WB_EACH(3, 3), 1, 1), "not WB_ALL or WB_EACH");
    assert_refused(wb_conv_op(x, w, .pad = WB_EACH(1, 1, 1)),
                   "conv: pad must have at most 2 numbers, got (1, 1, 1)");
    assert_refused(wb_conv_op(x, w, .pad_more = WB_EACH(0, 0, 2)),
                   "conv: pad_more must have at most 2 numbers, got (0, 0, 2)");
    assert_refused(wb_conv_op(x, w, .stride = {1, 1, 2}), "stride must have at most 2 numbers");
    assert_refused(wb_conv_op(x, w, .dilation = {1, 1, 2}), "dilation must have at most 2 numbers");
    assert_refused(wb_maxpool_op(x, .kernel = {2, 2, 2}), "kernel must have at most 2 numbers");
    assert_refused(wb_maxpool_op(x, .kernel = {0, 2}), "kernel must be positive, got (0, 2)");
    assert_non_null(wb_conv_op(x, w, .pad = WB_ALL(1), .stride = WB_ALL(2)));
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void numbers_that_are_none(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 2);
    const double not_a_number = (double)NAN;
    assert_refused(wb_lstm(2, 3, .forget_bias = not_a_number), "forget_bias must be finite, got");
    assert_refused(wb_setup(wb_descent(), model, .clip_total_norm = not_a_number),
                   "wb_setup: clip_total_norm must be at least 0, got");
    assert_refused(wb_setup(wb_rprop(.gamma1 = 2, .gamma2 = 1), model),
                   "Rprop: gamma1, the least size, must be at most gamma2, got 2 and 1");
    assert_refused(wb_setup(wb_accum_grad(.n = INT64_MAX), model),
                   "AccumGrad: n must be a whole number from 1 to 2^53, got 9.22337e+18");
    assert_refused(wb_dropout(.p = 1.0000001), "Dropout: p must be from 0 to 1, got 1.0000001");
    assert_refused(wb_embedding(3, 2, .padding_idx = 3),
                   "from 0 to 2 in C and from 1 to 3 in text");
    assert_refused(wb_parse("Embedding(3 => 2, padding_idx=4)"),
                   "from 0 to 2 in C and from 1 to 3 in text, got 3, which is 4 in text");
    wb_free(model);
    wb_array *x = wb_ones(WB_F32, 2, 4);
    assert_refused(wb_loader_new(.x = x, .threads = -1), ".threads must be from 0 to 64, got -1");
    assert_refused(
        wb_loader_new(.x = x, .more = {{NULL, x}}),
        "loader: array 0 of .more has no name, and the list ends at the first entry without one");
    assert_refused(wb_loader_new(.x = x, .more = {{"a", x}, {NULL, NULL}, {NULL, x}}),
                   "loader: array 2 of .more has no name");
    const int threads = wb_threads();
    wb_set_threads(-1);
    assert_error(WB_ERROR_ARGUMENT, "wb_set_threads: must not be negative, got -1");
    assert_int_equal(wb_threads(), threads);
    wb_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(zeros_that_cannot_be_are_refused),
        TEST(a_momentum_of_zero_keeps_what_was),
        TEST(lists_have_a_number_for_each_dimension),
        TEST(numbers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
