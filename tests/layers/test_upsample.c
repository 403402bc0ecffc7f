/* src/layers/upsample.c */
#include <weber/gradient.h>

#include "models/flux_structs.h"
#include "support/support.h"

/* Lines of a channel, one image. */
typedef struct line_row {
    const char *name;
    wb_upsample_desc desc;
    int count, wanted_count;
    double x[4], wanted[10];
} line_row;

/* clang-format off */
#pragma GCC diagnostic ignored "-Woverride-init" /* WB_INIT */
#define LINEAR(...) WB_INIT(upsample, WB_UPSAMPLE_LINEAR, __VA_ARGS__)
static const line_row lines[] = {
    {"linear by 2.5 (E25)", LINEAR(.scale = {2.5}), 4, 10, {1, 2, 3, 4},
     {1, 4. / 3, 5. / 3, 2, 7. / 3, 8. / 3, 3, 10. / 3, 11. / 3, 4}},
    {"linear to a size", LINEAR(.size = {4}), 2, 4, {1, 3},
     {1, 5. / 3, 7. / 3, 3}},
    {"pixels are areas, as in PyTorch",
     LINEAR(.size = {4}, .align_corners = false), 2, 4, {1, 3},
     {1, 1.5, 2.5, 3}},
    {"the sizes say where pixels lie, as in NNlib", /* and in PyTorch with recompute_scale_factor */
     LINEAR(.scale = {1.7}, .align_corners = false), 4, 6, {1, 4, 2, 8},
     {1, 2.5, 11. / 3, 7. / 3, 5, 8}},
    {"by_scale: the scale says where, as in PyTorch's default",
     LINEAR(.scale = {1.7}, .align_corners = false, .by_scale = true),
     4, 6, {1, 4, 2, 8},
     {1, 2.147058823529412, 3.9117647058823533, 2.8823529411764706, 2.88235294117647,
      6.411764705882353}},
    {"by_scale: smaller",
     LINEAR(.scale = {.8}, .align_corners = false, .by_scale = true),
     4, 3, {1, 4, 2, 8}, {1.375, 3.25, 5.75}},
    {"linear to one pixel", LINEAR(.size = {1}), 3, 1, {5, 6, 7}, {5}},
    {"linear from one pixel", LINEAR(.size = {3}), 1, 3, {5}, {5, 5, 5}},
    {"nearest by 3", WB_INIT(upsample, .scale = {3}), 2, 6, {1, 2}, {1, 1, 1, 2, 2, 2}},
    {"nearest to a size", WB_INIT(upsample, .size = {4}), 2, 4, {1, 2}, {1, 1, 2, 2}},
};
/* clang-format on */

static void a_line_becomes(void **state) {
    const line_row *r = *state;
    wb_layer *layer = wb_upsample_make(r->desc);
    wb_array *y = wb_apply(layer, wb_reshape(wb_from(WB_F64, r->x, r->count), r->count, 1, 1));
    assert_sizes(y, r->wanted_count, 1, 1);
    for (int i = 0; i < r->wanted_count; i++)
        assert_true(fabs(wb_at(y, i, 0, 0) - r->wanted[i]) < 1e-12);
    wb_free(layer);
}

static void pixels_become_blocks(void **state) { /* E26 */
    (void)state;
    wb_layer *layer = wb_upsample(.scale = {2, 3}), *sized = wb_upsample(.size = {4, 6});
    wb_array *x = wb_reshape(wb_vector_of(WB_F64, 1, 3, 2, 4), 2, 2, 1, 1), *g[1];
    wb_array *y = wb_apply(layer, x);
    assert_values(y, 0, 1, 1, 3, 3, 1, 1, 3, 3, 1, 1, 3, 3, 2, 2, 4, 4, 2, 2, 4, 4, 2, 2, 4, 4);
    assert_same_bits(wb_apply(sized, x), y, "size (4, 6)");
    assert_int_equal(wb_pullback(y, wb_stop_gradient(y), 1, &x, g), WB_OK);
    assert_values(g[0], 0, 6, 18, 12, 24);
    wb_layer *uneven = wb_upsample(.size = {3, 4});
    assert_null(wb_apply(uneven, x));
    assert_error(WB_ERROR_SHAPE, "Upsample(:nearest): size must be a positive multiple of the "
                                 "input's, got 3 for dimension 0 of (2, 2, 1, 1)");
    wb_free(layer), wb_free(sized), wb_free(uneven);
}

/* Along one dimension after the other, and so the same as linear ones of lines. */
static void bilinear_is_linear_twice(void **state) {
    (void)state;
    wb_layer *both = wb_upsample(WB_UPSAMPLE_BILINEAR, {2, 3});
    wb_layer *three = wb_upsample(WB_UPSAMPLE_TRILINEAR, {2});
    wb_layer *first = wb_upsample(WB_UPSAMPLE_LINEAR, {2});
    wb_layer *second = wb_upsample(WB_UPSAMPLE_LINEAR, {3});
    wb_array *x = wb_normal(WB_F64, 3, 4, 2, 5), *y = wb_apply(both, x);
    wb_array *a = wb_reshape(wb_apply(first, wb_reshape(x, 3, 8, 5)), 6, 4, 10);
    wb_array *b = wb_permute(wb_apply(second, wb_permute(a, 1, 0, 2)), 1, 0, 2);
    assert_true(wb_approx(wb_reshape(y, 6, 12, 10), b, 1e-12, 1e-12, NULL, 0));
    assert_sizes(wb_apply(three, wb_ones(WB_F32, 2, 3, 4, 1, 2)), 4, 6, 8, 1, 2);
    wb_free(both), wb_free(three), wb_free(first), wb_free(second);
}

static void the_function_is_the_layer(void **state) {
    (void)state;
    wb_layer *layer = wb_upsample(WB_UPSAMPLE_BILINEAR, {2, 3}, .align_corners = false);
    wb_array *x = wb_normal(WB_F32, 3, 2, 2, 2), *g[2];
    wb_array *y = wb_upsample_op(x, WB_UPSAMPLE_BILINEAR, {2, 3}, .align_corners = false);
    assert_same_bits(y, wb_apply(layer, x), "upsample");
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(y)), 1, &x, &g[0]), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(wb_apply(layer, x))), 1, &x, &g[1]), WB_OK);
    assert_same_bits(g[0], g[1], "gradients of upsample");
    assert_values(wb_upsample_op(wb_reshape(wb_vector(1, 2), 2, 1, 1), .scale = {2}), 0, 1, 1, 2,
                  2);
    assert_null(wb_upsample_op(x, WB_UPSAMPLE_NEAREST));
    assert_error(WB_ERROR_ARGUMENT, "Upsample: ");
    wb_free(layer);
}

static void it_is_printed_as_in_flux(void **state) {
    (void)state;
    wb_layer *model =
        wb_chain(wb_upsample(.scale = {2, 3}), wb_upsample(WB_UPSAMPLE_BILINEAR, {2.5}),
                 wb_upsample(WB_UPSAMPLE_LINEAR, .size = {4}));
    assert_structure(model, "Chain(Upsample(:nearest, scale = (2, 3)), Upsample(:bilinear, scale = "
                            "2.5), Upsample(:linear, size = 4))");
    wb_free(model);
}

#define UPSAMPLE(mode, data)                                                                       \
    MODEL("{tag: 'struct', type: {tag: 'datatype', params: [{tag: 'symbol', name: '" mode          \
          "'}], name: ['Flux', 'Upsample']}, data: [" data "]}")
static const flux_row structs[] = {
    FLUX("an Upsample of Flux", UPSAMPLE("nearest", TUPLE("2, 3") ", null"),
         "Upsample(:nearest, scale = (2, 3))", NULL),
    FLUX("a linear one of Flux", UPSAMPLE("bilinear", "2, null"), "Upsample(:bilinear, scale = 2)",
         NULL),
    FLUX("one with a size", UPSAMPLE("trilinear", "null, " TUPLE("2, 3, 4")),
         "Upsample(:trilinear, size = (2, 3, 4))", NULL),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(pixels_become_blocks),
        TEST(bilinear_is_linear_twice),
        TEST(the_function_is_the_layer),
        TEST(it_is_printed_as_in_flux),
    };
    ADD_ROWS(&tests, lines, a_line_becomes);
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_upsample", &tests, make_folder, drop_folder);
}
