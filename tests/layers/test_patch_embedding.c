/* src/layers/patch_embedding.c, beside a convolution. */
#include "models/flux_structs.h"
#include "support/support.h"

/* Patches along the width first. */
static void each_patch_is_a_token(void **state) {
    (void)state;
    wb_layer *p = wb_patch_embedding({2, 1}, 1, 1, .given_weight = wb_ones(WB_F32, 2, 1, 1, 1),
                                     .given_bias = wb_vector(100));
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 4, 10, 20, 30, 40), 4, 2, 1, 1);
    wb_array *y = wb_apply(p, x);
    assert_sizes(y, 1, 4, 1);
    assert_values(y, 0, 103, 107, 130, 170);
    assert_structure(p, "PatchEmbedding((2, 1), 1 => 1)");
    wb_free(p);
}

static void it_is_a_convolution_turned(void **state) {
    (void)state;
    wb_array *w = wb_keep(wb_normal(WB_F64, 3, 2, 4, 5)), *x = wb_normal(WB_F64, 6, 6, 4, 2);
    wb_layer *p = wb_patch_embedding(.given_weight = w, .image = {6, 6});
    wb_layer *conv = wb_cross_cor(.given_weight = w, .stride = {3, 2});
    wb_array *y = wb_permute(wb_reshape(wb_apply(conv, x), 6, 5, 2), 1, 0, 2);
    char where[128];
    assert_true(wb_approx(wb_apply(p, x), y, 1e-12, 1e-12, where, sizeof where));
    assert_structure(p, "PatchEmbedding((3, 2), 4 => 5; image=6)");
    wb_free(p), wb_free(conv), wb_free(w);
}

/* A signal, and a video. */
static void there_may_be_one_or_three_dimensions(void **state) {
    (void)state;
    wb_layer *one = wb_patch_embedding({4}, 2, 3), *three = wb_patch_embedding({2, 2, 1}, 1, 3);
    assert_sizes(wb_apply(one, wb_ones(WB_F32, 12, 2, 5)), 3, 3, 5);
    assert_sizes(wb_apply(three, wb_ones(WB_F32, 4, 6, 2, 1, 2)), 3, 12, 2);
    wb_free(one), wb_free(three);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {TEST(each_patch_is_a_token),
                                        TEST(it_is_a_convolution_turned),
                                        TEST(there_may_be_one_or_three_dimensions)};
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_patch_embedding", &tests, make_folder, drop_folder);
}
