/* src/layers/scale.c */

#include "models/flux_structs.h"
#include "support/support.h"

static void numbers_of_the_documentation(void **state) { /* D7 */
    (void)state;
    wb_layer *plain = wb_scale({2}), *squares = wb_scale({2}, wb_square, .bias = false);
    wb_layer *wide = wb_scale({1, 4});
    assert_values(wb_apply(plain, wb_reshape(wb_vector(1, 2), 1, 2)), 0, 1, 1, 2, 2);
    assert_values(wb_apply(squares, wb_reshape(wb_vector(1, 3, 2, 4), 2, 2)), 0, 1, 9, 4, 16);
    assert_sizes(wb_apply(wide, wb_vector(1, 2)), 2, 4);
    assert_null(wb_apply(plain, wb_vector(1, 2, 3)));
    assert_error(WB_ERROR_SHAPE, "Scale(2): mul");
    wb_free(plain), wb_free(squares), wb_free(wide);
}

static void a_scale_may_have_all_dimensions(void **state) {
    (void)state;
    wb_layer *given = wb_scale(.given_scale = wb_full(WB_F32, 2, 1, 2, 1, 2, 1, 3), .bias = false);
    assert_sizes(wb_apply(given, wb_ones(WB_F32, 4)), 4, 2, 1, 2, 1, 3);
    assert_structure(given, "Scale(1, 2, 1, 2, 1, 3; bias=false)");
    wb_free(given);
}

static const flux_row structs[] = {
    FLUX("a Diagonal of Flux 0.12", MODEL(STRUCT("Flux", "Diagonal", W1 ", " B)), "Scale(2)",
         "scale"),
    FLUX("a Scale of Flux 0.13", MODEL(STRUCT("Flux", "Scale", W1 ", false, " RELU)),
         "Scale(2, relu; bias=false)", "scale"),
    FLUX("a Scale of two dimensions", MODEL(STRUCT("Flux", "Scale", W ", " W ", " IDENTITY)),
         "Scale(2, 1)", "bias"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {TEST(numbers_of_the_documentation),
                                        TEST(a_scale_may_have_all_dimensions)};
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_scale", &tests, make_folder, drop_folder);
}
