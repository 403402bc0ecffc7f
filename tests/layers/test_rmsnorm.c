/* src/layers/rmsnorm.c, alpha_dropout.c */

#include "models/flux_structs.h"
#include "support/support.h"

static void the_mean_square_becomes_1(void **state) {
    (void)state;
    wb_layer *norm = wb_rmsnorm({2}, .eps = 0.5, .dtype = WB_F64);
    wb_set(norm, "scale", wb_vector_of(WB_F64, 1, 2));
    const double r = sqrt((9 + 16) / 2.0 + 0.5);
    assert_values(wb_apply(norm, wb_vector_of(WB_F64, 3, 4)), 1e-15, 3 / r, 8 / r);
    assert_structure(norm, "RMSNorm(2, eps=0.5)");
    assert_null(wb_apply(norm, wb_ones(WB_F32, 3, 2)));
    assert_error(WB_ERROR_SHAPE, "RMSNorm(2): input must begin with the sizes (2), got (3, 2)");
    wb_free(norm);
}

static void four_dimensions_are_one_mean(void **state) {
    (void)state;
    wb_layer *norm = wb_rmsnorm({2, 3, 2, 2}), *flat = wb_rmsnorm({24});
    wb_array *x = wb_normal(WB_F32, 2, 3, 2, 2, 5);
    wb_array *y = wb_apply(flat, wb_reshape(x, 24, 5));
    assert_true(wb_approx(wb_reshape(wb_apply(norm, x), 24, 5), y, 1e-5, 1e-5, NULL, 0));
    wb_free(norm), wb_free(flat);
}

/* At p = 0.2 A is 0.878903583 and B 0.309039962 (catalogue). */
static void alpha_dropout_keeps_mean_and_variance(void **state) {
    (void)state;
    wb_seed(1);
    wb_layer *layer = wb_alpha_dropout(0.2), *all = wb_alpha_dropout(1);
    wb_array *x = wb_normal(WB_F32, 100000), *ones = wb_ones(WB_F32, 1000);
    assert_ptr_equal(wb_apply(layer, x), x);
    wb_train_mode(layer), wb_train_mode(all);
    wb_array *y = wb_apply(layer, x), *z = wb_apply(layer, ones);
    assert_values(wb_mean(y), 0.02, 0);
    assert_values(wb_var(y, false), 0.03, 1);
    assert_values(wb_maximum(z), 1e-6, 0.878903583 + 0.309039962);
    assert_values(wb_minimum(z), 1e-6, -1.7580993408473766 * 0.878903583 + 0.309039962);
    assert_values(wb_sum(wb_abs(wb_apply(all, ones))), 0, 0);
    wb_free(layer), wb_free(all);
}

static const flux_row structs[] = {
    FLUX("an AlphaDropout of Flux 0.12", MODEL(STRUCT("Flux", "AlphaDropout", "0.25, null")),
         "AlphaDropout(0.25)", NULL),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(the_mean_square_becomes_1),
        TEST(four_dimensions_are_one_mean),
        TEST(alpha_dropout_keeps_mean_and_variance),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_rmsnorm", &tests, make_folder, drop_folder);
}
