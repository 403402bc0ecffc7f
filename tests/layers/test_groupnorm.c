/* src/layers/groupnorm.c */

#include "models/flux_structs.h"
#include "support/support.h"

/* Groups of all channels are a LayerNorm, groups of one a BatchNorm for each image. */
static void groups_of_all_channels_are_one_observation(void **state) {
    (void)state;
    wb_layer *group = wb_groupnorm(4, 1, .dtype = WB_F64);
    wb_layer *norm = wb_layernorm({3, 2, 4}, .affine = false);
    wb_array *x = wb_normal(WB_F64, 3, 2, 4, 5);
    assert_true(wb_approx(wb_apply(group, x), wb_apply(norm, x), 1e-12, 1e-12, NULL, 0));
    wb_free(group), wb_free(norm);
}

static void groups_are_of_consecutive_channels(void **state) {
    (void)state;
    wb_layer *group = wb_groupnorm(4, 2, wb_relu, .dtype = WB_F64);
    wb_set(group, "γ", wb_vector_of(WB_F64, 1, 2, 3, 4));
    wb_set(group, "β", wb_vector_of(WB_F64, 0, 1, 0, -1));
    const double s = 1 / sqrt(1 + 1e-5), t = 5 / sqrt(25 + 1e-5);
    wb_array *x = wb_reshape(wb_vector_of(WB_F64, 1, 3, 0, 10), 4, 1);
    assert_values(wb_apply(group, x), 1e-12, 0, 2 * s + 1, 0, 4 * t - 1);
    assert_null(wb_apply(group, wb_ones(WB_F32, 3, 2)));
    assert_error(WB_ERROR_SHAPE, "GroupNorm(4, 2): the last dimension but one must be the 4");
    wb_free(group);
}

#define NORM(data) MODEL(STRUCT("Flux", "GroupNorm", data))
static const flux_row structs[] = {
    FLUX("a GroupNorm of Flux 0.12",
         NORM("2, " RELU ", " B ", " W1 ", null, null, 1.0e-5, 0.1, true, false, null, 2"),
         "GroupNorm(2, 2, relu)", "γ"),
    FLUX("a GroupNorm without numbers",
         NORM("2, " IDENTITY ", null, null, null, null, 0.25, 0.1, false, false, null, 4"),
         "GroupNorm(4, 2, affine=false, eps=0.25)", NULL),
};

static void running_statistics_are_refused(void **state) {
    (void)state;
    const char *old = NORM("2, " IDENTITY ", " B ", " W1 ", " B ", " B ", 1.0e-5, 0.1, true");
    assert_null(wb_load_model(write_bson(old), NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "GroupNorm: running statistics, which Flux had before 0.14");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(groups_of_all_channels_are_one_observation),
        TEST(groups_are_of_consecutive_channels),
        TEST(running_statistics_are_refused),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_groupnorm", &tests, make_folder, drop_folder);
}
