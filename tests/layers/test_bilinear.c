/* src/layers/bilinear.c */

#include "models/flux_structs.h"
#include "support/support.h"

/* z_k = x' W_k y, term by term. */
static void each_output_is_a_form_of_both_inputs(void **state) {
    (void)state;
    wb_layer *layer = wb_bilinear(2, 3, 2, .dtype = WB_F64);
    wb_array *w = wb_get(layer, "weight"), *z[1];
    wb_array *xs[] = {wb_normal(WB_F64, 2, 4), wb_normal(WB_F64, 3, 4)};
    assert_int_equal(wb_set(layer, "bias", wb_vector_of(WB_F64, 5, 7)), WB_OK);
    assert_int_equal(wb_apply_many(layer, 2, xs, 1, z), 1);
    assert_sizes(z[0], 2, 4);
    for (int64_t n = 0; n < 4; n++)
        for (int64_t k = 0; k < 2; k++) {
            double sum = k ? 7 : 5;
            for (int64_t i = 0; i < 2; i++)
                for (int64_t j = 0; j < 3; j++)
                    sum += wb_at(xs[0], i, n) * wb_at(w, k, i, j) * wb_at(xs[1], j, n);
            assert_true(fabs(wb_at(z[0], k, n) - sum) < 1e-12);
        }
    wb_free(layer);
}

static void zeros_give_the_bias(void **state) { /* D11 */
    (void)state;
    wb_layer *layer = wb_bilinear(10, 2, 3), *square = wb_bilinear(4, .out = 2, .bias = false);
    wb_array *xs[] = {wb_zeros(WB_F32, 10, 9), wb_zeros(WB_F32, 2, 9)}, *z[1];
    assert_int_equal(wb_apply_many(layer, 2, xs, 1, z), 1);
    assert_sizes(z[0], 3, 9);
    assert_value(wb_sum(z[0]), 0, 0);
    assert_sizes(wb_apply(square, wb_ones(WB_F32, 4)), 2); /* one array is both */
    assert_structure(layer, "Bilinear((10, 2) => 3)");
    assert_structure(square, "Bilinear(4 => 2; bias=false)");
    wb_free(layer), wb_free(square);
}

static void sizes_that_are_not_given_are_those_of_the_weight(void **state) {
    (void)state;
    wb_layer *layer = wb_bilinear(3, .given_weight = wb_ones(WB_F32, 4, 3, 2));
    assert_structure(layer, "Bilinear((3, 2) => 4)");
    wb_free(layer);
}

static void a_chain_passes_two_arrays_on(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_skip(wb_dense(3, 4), NULL), wb_bilinear(4, 3, 2, wb_tanh));
    assert_sizes(wb_apply(model, wb_ones(WB_F32, 3, 5)), 2, 5);
    wb_free(model);
}

#define W3 ARRAY("Float32", "2, 1, 1", ONE " " TWO)
static const flux_row structs[] = {
    FLUX("a Bilinear of Flux 0.12 and later",
         MODEL(STRUCT("Flux", "Bilinear", W3 ", " B ", " RELU)), "Bilinear(1 => 2, relu)",
         "weight"),
    FLUX("one without bias", MODEL(STRUCT("Flux", "Bilinear", W3 ", false, " IDENTITY)),
         "Bilinear(1 => 2; bias=false)", "weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(each_output_is_a_form_of_both_inputs),
        TEST(zeros_give_the_bias),
        TEST(sizes_that_are_not_given_are_those_of_the_weight),
        TEST(a_chain_passes_two_arrays_on),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_bilinear", &tests, make_folder, drop_folder);
}
