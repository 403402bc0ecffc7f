/* src/layers/global_pool.c, adaptive_pool.c, pixel_shuffle.c */

#include "models/flux_structs.h"
#include "support/support.h"

static void one_number_for_each_channel(void **state) { /* F12 */
    (void)state;
    wb_layer *mean = wb_global_meanpool(), *max = wb_global_maxpool();
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 6, 5, 4, 3, 0), 2, 2, 2, 1);
    assert_sizes(wb_apply(mean, wb_ones(WB_F32, 10, 10, 3, 1)), 1, 1, 3, 1);
    assert_values(wb_apply(mean, x), 0, 3, 3);
    assert_values(wb_apply(max, x), 0, 6, 5);
    assert_null(wb_apply(mean, wb_ones(WB_F32, 3, 1)));
    assert_error(WB_ERROR_SHAPE, "GlobalMeanPool(): input must have 1 to 3 spatial dimensions");
    wb_free(mean), wb_free(max);
}

static void a_given_size_is_that_of_a_pool(void **state) { /* E23, F11 */
    (void)state;
    wb_layer *five = wb_adaptive_maxpool({5, 5}), *ten = wb_adaptive_meanpool({10, 5});
    wb_layer *pool = wb_maxpool({2, 2}), *mean = wb_meanpool({2, 4});
    wb_array *x = wb_normal(WB_F32, 10, 10, 3, 2), *y = wb_normal(WB_F32, 20, 20, 3, 2);
    assert_same_bits(wb_apply(five, x), wb_apply(pool, x), "AdaptiveMaxPool((5, 5))");
    assert_same_bits(wb_apply(ten, y), wb_apply(mean, y), "AdaptiveMeanPool((10, 5))");
    assert_sizes(wb_apply(five, wb_ones(WB_F32, 13, 7, 1, 1)), 5, 5, 1, 1);
    assert_null(wb_apply(ten, wb_ones(WB_F32, 9, 9, 1)));
    assert_error(WB_ERROR_SHAPE, "AdaptiveMeanPool((10, 5)): input must have 2 spatial "
                                 "dimensions that are not empty, channels and batch for a result "
                                 "of (10, 5), got");
    assert_null(wb_apply(ten, wb_ones(WB_F32, 0, 9, 1, 1)));
    assert_error(WB_ERROR_SHAPE, "that are not empty");
    wb_free(five), wb_free(ten), wb_free(pool), wb_free(mean);
}

/* Numbers of torch.nn.AdaptiveAvgPool1d and AdaptiveMaxPool1d of [1, 2, 4]. */
static void a_larger_size_has_windows_that_overlap(void **state) {
    (void)state;
    wb_layer *mean = wb_adaptive_meanpool({5}), *max = wb_adaptive_maxpool({5});
    wb_layer *both = wb_adaptive_meanpool({4, 2});
    wb_array *x = wb_reshape(wb_vector(1, 2, 4), 3, 1, 1);
    assert_values(wb_apply(mean, x), 0, 1, 1.5, 2, 3, 4);
    assert_values(wb_apply(max, x), 0, 1, 2, 2, 4, 4);
    wb_array *y = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6, 7, 8), 2, 4, 1, 1);
    assert_values(wb_apply(both, y), 0, 2, 2, 3, 3, 6, 6, 7, 7);
    wb_free(mean), wb_free(max), wb_free(both);
}

static void norms_are_those_of_the_function(void **state) {
    (void)state;
    wb_layer *usual = wb_lppool({2, 2}), *third = wb_lppool({2}, .p = 3, .stride = {1}, .pad = {1});
    wb_array *x = wb_normal(WB_F32, 4, 6, 2, 3), *y = wb_normal(WB_F32, 5, 2, 3);
    assert_same_bits(wb_apply(usual, x), wb_lppool_op(x, 2, .kernel = {2, 2}), "LPPool((2, 2))");
    assert_same_bits(wb_apply(third, y),
                     wb_lppool_op(y, 3, .kernel = {2}, .stride = {1}, .pad = {1}), "LPPool((2,))");
    char text[100];
    assert_int_equal(wb_show_text(third, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "LPPool((2,), pad=1, stride=1, p=3"));
    wb_layer *again = wb_parse("LPPool((2,), pad=1, stride=1, p=3.0)");
    assert_same_bits(wb_apply(third, y), wb_apply(again, y), "LPPool, parsed");
    wb_free(usual), wb_free(third), wb_free(again);
}

/* y[r i + a, r j + b, c] = x[i, j, a + r b + r^2 c] */
static void channels_become_pixels(void **state) {
    (void)state;
    const int64_t r = 3;
    wb_layer *shuffle = wb_pixel_shuffle(r);
    wb_array *x = wb_normal(WB_F32, 2, 4, 18, 2), *y = wb_apply(shuffle, x);
    assert_sizes(y, 6, 12, 2, 2);
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < 12; j++)
            for (int64_t c = 0; c < 2; c++)
                assert_true(wb_at(y, i, j, c, 1) ==
                            wb_at(x, i / r, j / r, i % r + r * (j % r) + r * r * c, 1));
    assert_null(wb_apply(shuffle, wb_ones(WB_F32, 2, 2, 8, 1)));
    assert_error(WB_ERROR_SHAPE, "PixelShuffle(3): input must have");
    wb_free(shuffle);
}

static const flux_row structs[] = {
    FLUX("pools of Flux",
         MODEL(CHAIN(STRUCT("Flux", "GlobalMeanPool", "") ", " STRUCT(
             "Flux", "GlobalMaxPool", "") ", " STRUCT("Flux", "AdaptiveMeanPool", TUPLE("2, 3")))),
         "Chain(GlobalMeanPool(), GlobalMaxPool(), AdaptiveMeanPool((2, 3)))", NULL),
    FLUX("a PixelShuffle of Flux", MODEL(STRUCT("Flux", "PixelShuffle", "2")), "PixelShuffle(2)",
         NULL),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(one_number_for_each_channel),
        TEST(a_given_size_is_that_of_a_pool),
        TEST(a_larger_size_has_windows_that_overlap),
        TEST(norms_are_those_of_the_function),
        TEST(channels_become_pixels),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_pools", &tests, make_folder, drop_folder);
}
