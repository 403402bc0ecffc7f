/* src/layers/pixelwise.c */
#include "models/flux_structs.h"
#include "support/support.h"

static void a_dense_is_a_convolution_with_a_kernel_of_1(void **state) {
    (void)state;
    wb_array *w = wb_keep(wb_normal(WB_F64, 4, 3)), *x = wb_normal(WB_F64, 5, 2, 3, 2);
    wb_layer *p = wb_pixelwise(wb_dense(.given_weight = w));
    wb_layer *conv =
        wb_cross_cor(.given_weight = wb_reshape(wb_transpose(w), 1, 1, 3, 4), .bias = false);
    char where[128];
    assert_true(wb_approx(wb_apply(p, x), wb_apply(conv, x), 1e-12, 1e-12, where, sizeof where));
    assert_sizes(wb_apply(p, wb_ones(WB_F64, 7, 3, 2)), 7, 4, 2);
    assert_structure(p, "Pixelwise(Dense(3 => 4))");
    wb_free(p), wb_free(conv), wb_free(w);
}

static void a_norm_is_over_the_channels(void **state) {
    (void)state;
    wb_layer *p = wb_pixelwise(wb_layernorm({2}, .eps = 1e-12));
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 0), 2, 2, 1);
    assert_values(wb_apply(p, x), 1e-5, -1, 1, 1, -1);
    wb_free(p);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {TEST(a_dense_is_a_convolution_with_a_kernel_of_1),
                                        TEST(a_norm_is_over_the_channels)};
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_pixelwise", &tests, make_folder, drop_folder);
}
