/* weber/vision.h: numbers of parameters as the papers' code has them, sizes of results, and what is
 * refused. python/tests/test_vision.py compares numbers with torchvision's. */
#include <stdio.h>

#include <weber/device.h>
#include <weber/layers.h>
#include <weber/ops.h>
#include <weber/state.h>
#include <weber/vision.h>

#include "base/memory.h"
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
                {wb_vit(), 86567656},
                {wb_vit(.patch = 32, .classes = 0), 88224232 - 769000},
                {wb_convnext(), 28589128},
                {wb_convnext(.depths = {3, 3, 27, 3}), 50223688},
                {wb_unet(), 7763041}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_non_null(rows[i].model);
        assert_int_equal(wb_parameter_count(rows[i].model), rows[i].count);
        wb_free(rows[i].model);
    }
}

static wb_layer *small_vit(int64_t classes, int64_t channels) {
    return wb_vit(.image = 32, .patch = 8, .features = 12, .layers = 2, .heads = 3,
                  .classes = classes, .channels = channels);
}

static wb_layer *small_convnext(int64_t classes, int64_t channels) {
    return wb_convnext(.depths = {1, 1, 2, 1}, .width = 4, .classes = classes,
                       .channels = channels);
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
    assert_result(small_vit(7, 1), 32, 1, 2, (int64_t[]){7, 2});
    assert_result(small_vit(0, 3), 32, 3, 2, (int64_t[]){12, 2});
    assert_result(small_convnext(7, 1), 32, 1, 2, (int64_t[]){7, 2});
    assert_result(small_convnext(0, 3), 32, 3, 2, (int64_t[]){32, 2});
    assert_result(wb_unet(.classes = 2, .width = 4, .levels = 2), 12, 3, 4,
                  (int64_t[]){12, 12, 2, 2});
}

static void another_head_is_one_line(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_resnet(18, .classes = 0), wb_dense(512, 10));
    assert_result(model, 32, 3, 2, (int64_t[]){10, 2});
}

static void assert_comes_back(wb_layer *model) {
    assert_non_null(model);
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

static void a_saved_model_comes_back(void **state) {
    (void)state;
    assert_comes_back(wb_mobilenet_v3(.small = true, .classes = 3));
    assert_comes_back(small_vit(3, 3));
    assert_comes_back(small_convnext(3, 3));
}

/* Of the first block none; the last one is always left out. */
static void blocks_of_a_convnext_are_left_out(void **state) {
    (void)state;
    wb_layer *model = wb_convnext(.depths = {1, 1, 1, 1}, .width = 4, .block_dropout = 1);
    const char *last = "layers.8.layers.1.layers.layers.2.layer.layers.3.bias";
    const char *first = "layers.2.layers.1.layers.layers.3.scale";
    wb_train_mode(model);
    wb_array *x = wb_normal(WB_F32, 32, 32, 3, 1);
    wb_array *y = wb_apply(model, x);
    wb_set(model, last, wb_full(WB_F32, 1e7, 32));
    char where[128];
    assert_true(wb_approx(wb_apply(model, x), y, 1e-6, 1e-6, where, sizeof where));
    wb_set(model, first, wb_full(WB_F32, 1, 1, 1, 4));
    assert_false(wb_approx(wb_apply(model, x), y, 1e-6, 1e-6, where, sizeof where));
    wb_free(model);
}

/* Of the makers, and of what the layers compute. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 32, 32, 3, 1);
    for (int kind = 0; kind < 2; kind++)
        for (int64_t n = 1;; n++) {
            wb_scope_open();
            (void)wb_fail_allocation(n);
            wb_layer *model = kind ? small_vit(3, 3) : small_convnext(3, 3);
            const wb_array *y = model ? wb_apply(model, x) : NULL;
            (void)wb_fail_allocation(0);
            if (y) assert_int_equal(wb_error_status(), WB_OK);
            if (!y) assert_error(WB_ERROR_MEMORY, "");
            wb_free(model);
            (void)wb_scope_leave();
            if (y) break;
        }
}

static void images_of_another_size_are_refused(void **state) {
    (void)state;
    wb_layer *model = small_vit(3, 3);
    assert_null(wb_apply(model, wb_ones(WB_F32, 40, 40, 3, 1)));
    assert_error(WB_ERROR_SHAPE, "images must be (32, 32), got (40, 40, 3, 1)");
    wb_free(model);
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
    assert_null(wb_vit(.image = 225));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_vit: image must be from 1 to 1048575 and a multiple of patch, got 225 and 16");
    assert_null(wb_vit(.patch = 0));
    assert_error(WB_ERROR_ARGUMENT, "and a multiple of patch, got 224 and 0");
    assert_null(wb_vit(.heads = 5));
    assert_error(WB_ERROR_ARGUMENT, "wb_vit: heads must divide features, got 5 and 768");
    assert_null(wb_vit(.features = -1));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_vit: features and heads must be positive and hidden not negative, got -1, 12 "
                 "and 0");
    assert_null(wb_vit(.layers = 0));
    assert_error(WB_ERROR_ARGUMENT, "wb_vit: layers must be from 1 to 1024, got 0");
    assert_null(wb_vit(.dropout = 2));
    assert_error(WB_ERROR_ARGUMENT, "wb_vit: dropout must be from 0 to 1, got 2");
    assert_null(wb_vit(.classes = -1));
    assert_error(WB_ERROR_ARGUMENT, "wb_vit: channels must be positive and classes not negative");
    assert_null(wb_convnext(.depths = {3, 3, 9}));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_convnext: depths must be 4 numbers from 1 to 1024, got (3, 3, 9, 0)");
    assert_null(wb_convnext(.width = 0));
    assert_error(WB_ERROR_ARGUMENT, "wb_convnext: width must be from 1 to 65536, got 0");
    assert_null(wb_convnext(.block_dropout = -1));
    assert_error(WB_ERROR_ARGUMENT, "wb_convnext: block_dropout must be from 0 to 1, got -1");
    assert_null(wb_efficientnet_make((wb_efficientnet_desc){.classes = 3}));
    assert_error(WB_ERROR_ARGUMENT, "wb_efficientnet");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(parameters_are_as_many_as_in_torchvision),
        TEST(results_are_numbers_of_classes_or_features),
        TEST(another_head_is_one_line),
        TEST(a_saved_model_comes_back),
        TEST(blocks_of_a_convnext_are_left_out),
        TEST(every_allocation_may_fail),
        TEST(images_of_another_size_are_refused),
        TEST(what_is_not_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
