/* weber/vision.h: numbers of parameters as the papers' code has them, sizes of results, and what is
 * refused. python/tests/test_vision.py compares numbers with torchvision's. */
#include <stdio.h>

#include <weber/device.h>
#include <weber/layers.h>
#include <weber/ops.h>
#include <weber/state.h>
#include <weber/vision.h>

#include "support/scoped.h"
#include "support/support.h"

/* Counted by torchvision 0.14, and for the U-Net by mateuszbuda's. */
static void parameters_are_as_many_as_in_torchvision(void **state) {
    (void)state;
    struct {
        wb_layer *model;
        int64_t count;
    } rows[] = {{wb_resnet(18), 11689512},
                {wb_resnet(34), 21797672},
                {wb_resnet(50), 25557032},
                {wb_resnet(50, .classes = 0), 25557032 - 2049000},
                {wb_mobilenet_v2(), 3504872},
                {wb_mobilenet_v3(), 5483032},
                {wb_mobilenet_v3(.small = true), 2542856},
                {wb_efficientnet(), 5288548},
                {wb_unet(), 7763041}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_non_null(rows[i].model);
        assert_int_equal(wb_parameter_count(rows[i].model), rows[i].count);
        wb_free(rows[i].model);
    }
}

/* A chain of few channels, so that its sizes can be asked for. */
static void assert_result(wb_layer *model, int64_t side, int64_t channels, int ndim,
                          const int64_t *sizes) {
    assert_non_null(model);
    wb_array *y = wb_apply(model, wb_normal(WB_F32, side, side, channels, 2));
    assert_non_null(y);
    assert_int_equal(wb_ndim(y), ndim);
    for (int d = 0; d < ndim; d++) assert_int_equal(wb_size(y, d), sizes[d]);
    wb_free(model);
}

static void results_are_numbers_of_classes_or_features(void **state) {
    (void)state;
    assert_result(wb_resnet(18, .classes = 7, .channels = 1), 32, 1, 2, (int64_t[]){7, 2});
    assert_result(wb_resnet(18, .classes = 0), 32, 3, 2, (int64_t[]){512, 2});
    assert_result(wb_mobilenet_v2(.classes = 0), 32, 3, 2, (int64_t[]){1280, 2});
    assert_result(wb_mobilenet_v3(.small = true, .classes = 0), 32, 3, 2, (int64_t[]){1024, 2});
    assert_result(wb_efficientnet(.classes = 5), 32, 3, 2, (int64_t[]){5, 2});
    assert_result(wb_unet(.classes = 2, .width = 4, .levels = 2), 12, 3, 4,
                  (int64_t[]){12, 12, 2, 2});
}

static void another_head_is_one_line(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_resnet(18, .classes = 0), wb_dense(512, 10));
    assert_result(model, 32, 3, 2, (int64_t[]){10, 2});
}

static void a_saved_model_comes_back(void **state) {
    (void)state;
    wb_layer *model = wb_mobilenet_v3(.small = true, .classes = 3);
    const wb_status saved = wb_save("vision.safetensors", model);
    wb_layer *back = wb_load_model("vision.safetensors", NULL);
    (void)remove("vision.safetensors");
    assert_int_equal(saved, WB_OK);
    assert_non_null(back);
    wb_array *x = wb_normal(WB_F32, 32, 32, 3, 1);
    char where[128];
    assert_true(wb_approx(wb_apply(model, x), wb_apply(back, x), 1e-6, 1e-6, where, sizeof where));
    wb_free(model);
    wb_free(back);
}

static void what_is_not_is_refused(void **state) {
    (void)state;
    assert_null(wb_resnet(20));
    assert_error(WB_ERROR_ARGUMENT, "wb_resnet: depth must be 18, 34, 50, 101 or 152, got 20");
    assert_null(wb_vgg(18));
    assert_error(WB_ERROR_ARGUMENT, "wb_vgg: depth must be 11, 13, 16 or 19, got 18");
    assert_null(wb_mobilenet_v2(.channels = 0));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_mobilenet_v2: channels must be positive and classes not negative, got 0");
    assert_null(wb_unet(.levels = 0));
    assert_error(WB_ERROR_ARGUMENT, "levels from 1 to 10, got 32 and 0");
    assert_null(wb_efficientnet_make((wb_efficientnet_desc){.classes = 3}));
    assert_error(WB_ERROR_ARGUMENT, "wb_efficientnet");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(parameters_are_as_many_as_in_torchvision),
        TEST(results_are_numbers_of_classes_or_features),
        TEST(another_head_is_one_line),
        TEST(a_saved_model_comes_back),
        TEST(what_is_not_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
