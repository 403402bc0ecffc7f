/* src/layers/layernorm.c */
#include <math.h>

#include "models/flux_structs.h"
#include "support/support.h"

static void an_observation_gets_mean_0_and_variance_1(void **state) { /* G8 */
    (void)state;
    wb_layer *norm = wb_layernorm({5}, .dtype = WB_F64);
    /* a product and a difference in one instruction leave 1e-14 of a mean of 100 */
    const double tolerance = is_computed_by_cpu() ? 1e-15 : 1e-13;
    wb_array *x = wb_reshape(wb_vector_of(WB_F64, 90, 100, 110, 130, 70, 1, 1, 1, 1, 1), 5, 2);
    assert_values(wb_apply(norm, x), tolerance, -0.4999999937500001, 0, 0.4999999937500001,
                  1.4999999812500002, -1.4999999812500002, 0, 0, 0, 0, 0);
    assert_int_equal(wb_parameter_count(norm), 10);
    wb_free(norm);
}

static void leading_dimensions_are_normalised_as_one(void **state) { /* G9 */
    (void)state;
    wb_layer *norm = wb_layernorm({2, 3, 4}, .affine = false), *flat = wb_layernorm({24});
    wb_array *x = wb_normal(WB_F32, 2, 3, 4, 5);
    wb_array *y = wb_apply(flat, wb_reshape(x, 24, 5));
    assert_true(wb_approx(wb_reshape(wb_apply(norm, x), 24, 5), y, 1e-5, 1e-5, NULL, 0));
    assert_int_equal(wb_parameter_count(norm), 0);
    wb_free(norm), wb_free(flat);
}

static void settings(void **state) {
    (void)state;
    wb_layer *norm = wb_layernorm({2}, wb_relu, .eps = 3, .dtype = WB_F64);
    wb_set(norm, "diag.scale", wb_vector_of(WB_F64, 4, 2));
    wb_set(norm, "diag.bias", wb_vector_of(WB_F64, 3, 0.5));
    assert_values(wb_apply(norm, wb_vector_of(WB_F64, 1, 3)), 1e-15, 1, 1.5);
    assert_structure(norm, "LayerNorm(2, relu, eps=3)");
    wb_free(norm);
}

static void all_dimensions_can_be_normalised(void **state) {
    (void)state;
    wb_layer *norm = wb_layernorm({2, 1, 3, 1, 2, 2, 1, 2}), *flat = wb_layernorm({48});
    wb_array *x = wb_normal(WB_F32, 2, 1, 3, 1, 2, 2, 1, 2), *y = wb_apply(norm, x);
    assert_structure(norm, "LayerNorm(2, 1, 3, 1, 2, 2, 1, 2)");
    wb_array *wanted = wb_apply(flat, wb_reshape(x, 48));
    assert_true(wb_approx(wb_reshape(y, 48), wanted, 1e-5, 1e-5, NULL, 0));
    wb_free(norm), wb_free(flat);
}

#define NORM(data)      MODEL(STRUCT("Flux", "LayerNorm", data))
#define DIAGONAL        STRUCT("Flux", "Diagonal", W1 ", " B)
#define SCALE(function) STRUCT("Flux", "Scale", W1 ", " B ", " function)
static const flux_row structs[] = {
    FLUX("a LayerNorm of Flux 0.11", NORM(DIAGONAL), "LayerNorm(2)", "diag.scale"),
    FLUX("a LayerNorm of Flux 0.12", NORM(RELU ", " DIAGONAL ", 1.0e-5, " TUPLE("2,") ", true"),
         "LayerNorm(2, relu)", "diag.scale"),
    FLUX("one of Flux 0.12 without numbers",
         NORM(IDENTITY ", null, " F32_TENTH ", " TUPLE("3, 4") ", false"),
         "LayerNorm(3, 4, affine=false, eps=0.1f0)", NULL),
    FLUX("a LayerNorm of Flux 0.13 to 0.16",
         NORM(RELU ", " SCALE(RELU) ", 1.0e-5, " TUPLE("2,") ", true"), "LayerNorm(2, relu)",
         "diag.scale"),
    FLUX("one of Flux 0.13 without numbers",
         NORM(RELU ", " STRUCT(
             "Base", "Fix1",
             FUNCTION("Base", "broadcast") ", " RELU) ", 1.0e-5, " TUPLE("7,") ", false"),
         "LayerNorm(7, relu, affine=false)", NULL),
};

/* tanh, which is held twice, is applied once. */
static void the_activation_of_flux_is_applied_once(void **state) {
    (void)state;
    const char *tanh_ = FUNCTION("Base", "tanh") ", " SCALE(FUNCTION("Base", "tanh"));
    char bson[4000];
    snprintf(bson, sizeof bson, NORM("%s, 3.0, " TUPLE("2,") ", true"), tanh_);
    wb_layer *norm = wb_load_model(write_bson(bson), NULL);
    assert_values(wb_apply(norm, wb_vector(1, 3)), 1e-6, tanh(1.5), tanh(3));
    wb_free(norm);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(an_observation_gets_mean_0_and_variance_1),
        TEST(leading_dimensions_are_normalised_as_one),
        TEST(settings),
        TEST(all_dimensions_can_be_normalised),
        TEST(the_activation_of_flux_is_applied_once),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_layernorm", &tests, make_folder, drop_folder);
}
