/* src/layers/instancenorm.c */
#include <math.h>

#include "models/flux_structs.h"
#include "support/support.h"

/* Channel 1 of image 1 is 1, 3, of image 2 5, 7; channel 2 the double. */
static wb_array *images(void) {
    return wb_reshape(wb_vector_of(WB_F64, 1, 3, 2, 6, 5, 7, 10, 14), 2, 2, 2);
}

static void each_channel_of_each_image_is_normalised(void **state) {
    (void)state;
    wb_layer *norm = wb_instancenorm(2, .dtype = WB_F64);
    const double a = 1 / sqrt(1 + 1e-5), b = 2 / sqrt(4 + 1e-5);
    assert_values(wb_apply(norm, images()), 1e-12, -a, a, -b, b, -a, a, -b, b);
    assert_int_equal(wb_parameter_count(norm), 0);
    wb_train_mode(norm);
    assert_values(wb_apply(norm, images()), 1e-12, -a, a, -b, b, -a, a, -b, b);
    assert_structure(norm, "InstanceNorm(2, active=true)");
    wb_free(norm);
}

/* μ is the mean over the images, σ² too, over one number less: 2 for channel 1, 8 for channel 2. */
static void running_statistics_are_means_over_the_images(void **state) {
    (void)state;
    wb_layer *norm = wb_instancenorm(2, .track_stats = true, .momentum = 0.5, .dtype = WB_F64);
    wb_train_mode(norm);
    assert_non_null(wb_apply(norm, images()));
    assert_values(wb_get(norm, "μ"), 1e-12, 2, 4);
    assert_values(wb_get(norm, "σ²"), 1e-12, 1.5, 4.5);
    wb_test_mode(norm);
    wb_array *y = wb_apply(norm, wb_full(WB_F64, 3, 1, 2, 1));
    assert_values(y, 1e-12, 1 / sqrt(1.5 + 1e-5), -1 / sqrt(4.5 + 1e-5));
    assert_structure(norm, "InstanceNorm(2, track_stats=true, momentum=0.5, active=false)");
    wb_free(norm);
}

static void without_spatial_dimensions_it_gives_the_shift(void **state) {
    (void)state;
    wb_layer *norm = wb_instancenorm(.given_beta = wb_vector(5, 7), .given_gamma = wb_vector(2, 2));
    assert_values(wb_apply(norm, wb_normal(WB_F32, 2, 2)), 1e-6, 5, 7, 5, 7);
    assert_structure(norm, "InstanceNorm(2, affine=true)");
    wb_free(norm);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_instancenorm(3, .track_stats = true));
    assert_null(wb_apply(model, wb_ones(WB_F32, 4, 2, 5)));
    assert_error(WB_ERROR_SHAPE, "InstanceNorm(3), layer 1 of Chain: the last dimension but one "
                                 "must be the 3 channels, got (4, 2, 5)");
    wb_train_mode(model);
    assert_null(wb_apply(model, wb_ones(WB_F32, 1, 3, 5)));
    assert_error(WB_ERROR_ARGUMENT, "input (1, 3, 5) has 1 number for each channel");
    wb_free(model);
}

#define NORM(data) MODEL(STRUCT("Flux", "InstanceNorm", data))
static const flux_row structs[] = {
    FLUX("an InstanceNorm of Flux 0.8 to 0.11",
         NORM(RELU ", " B ", " W1 ", " B ", " B ", 1.0e-5, " F32_TENTH ", null"),
         "InstanceNorm(2, relu, affine=true, track_stats=true)", "γ"),
    FLUX("an InstanceNorm of Flux 0.12 to 0.16",
         NORM(IDENTITY ", null, null, null, null, 1.0e-5, 0.1, false, false, null, 2"),
         "InstanceNorm(2)", NULL),
    FLUX("one with its arrays",
         NORM(IDENTITY ", " B ", " W1 ", " B ", " B ", 1.0e-5, 0.1, true, true, null, 2"),
         "InstanceNorm(2, affine=true, track_stats=true)", "γ"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(each_channel_of_each_image_is_normalised),
        TEST(running_statistics_are_means_over_the_images),
        TEST(without_spatial_dimensions_it_gives_the_shift),
        TEST(mistakes),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_instancenorm", &tests, make_folder, drop_folder);
}
