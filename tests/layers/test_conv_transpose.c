/* src/layers/conv_transpose.c */
#include <weber/gradient.h>

#include "models/flux_structs.h"
#include "support/support.h"

/* Result sizes of one dimension, F7 to F9 and E18. */
typedef struct size_row {
    const char *name;
    int64_t kernel, size, wanted;
    wb_conv_transpose_desc desc;
} size_row;
static const size_row sizes[] = {
    {"a kernel of 3 adds 2", 3, 8, 10, WB_INIT(conv_transpose, {0})},
    {"a stride of 2 doubles", 3, 2, 5, WB_INIT(conv_transpose, .stride = {2})},
    {"padding takes away", 3, 5, 5, WB_INIT(conv_transpose, .stride = {2}, .pad = {3})},
    {"dilation adds", 3, 4, 5, WB_INIT(conv_transpose, .stride = {2}, .pad = {3}, .dilation = {2})},
    {"outpad adds one", 3, 10, 31, WB_INIT(conv_transpose, .stride = {3}, .outpad = {1})},
};

static void a_result_has_the_size(void **state) {
    const size_row *r = *state;
    wb_conv_transpose_desc desc = r->desc;
    desc.kernel[0] = r->kernel, desc.in = 3, desc.out = 6;
    wb_layer *layer = wb_conv_transpose_make(desc);
    assert_sizes(wb_apply(layer, wb_ones(WB_F32, r->size, 3, 2)), r->wanted, 6, 2);
    wb_free(layer);
}

static void same_padding_multiplies_the_size(void **state) { /* E17 */
    (void)state;
    for (int64_t k = 3; k <= 8; k++)
        for (int64_t stride = 1; stride <= 3; stride++) {
            wb_layer *layer = wb_conv_transpose({k}, 1, 2, .stride = {stride}, .same_pad = true);
            assert_sizes(wb_apply(layer, wb_ones(WB_F32, 10, 1, 1)), 10 * stride, 2, 1);
            wb_free(layer);
        }
}

static void sizes_beyond_all_numbers_are_refused(void **state) {
    (void)state;
    NEEDS_64_BITS();
    wb_layer *layer = wb_conv_transpose({3}, 1, 1, .stride = {1 << 19});
    wb_array *x = wb_expand(wb_scalar(WB_F32, 1), (int64_t)1 << 45, 1, 1);
    assert_null(wb_apply(layer, x));
    assert_error(WB_ERROR_SHAPE, "has more elements than memory can hold");
    wb_free(layer);
}

static void outpad_is_for_each_dimension(void **state) { /* E18 */
    (void)state;
    wb_layer *plain = wb_conv_transpose({3, 5}, 3, 6, .stride = {3});
    wb_layer *more = wb_conv_transpose({3, 5}, 3, 6, .stride = {3}, .outpad = {1, 0});
    wb_layer *first = wb_conv_transpose({3, 5}, 3, 6, .stride = {3}, .outpad = {1, 0});
    wb_array *x = wb_ones(WB_F32, 10, 11, 3, 1);
    assert_sizes(wb_apply(plain, x), 30, 35, 6, 1);
    assert_sizes(wb_apply(more, x), 31, 35, 6, 1);
    assert_sizes(wb_apply(first, x), 31, 35, 6, 1); /* a 0 after a number is a 0 */
    wb_free(plain), wb_free(more), wb_free(first);
}

/* Numbers of torch 1.13's conv_transpose1d(x, w, b, stride, padding, output_padding, 1, dilation),
 * of x 1 2, w 1 10 100 and a bias of .5. */
typedef struct outpad_row {
    const char *name;
    int64_t stride, pad, outpad, dilation, count;
    double wanted[12];
} outpad_row;
static const outpad_row outpads[] = {
    {"outpad below the stride", 3, 0, 2, 1, 8, {1.5, 10.5, 100.5, 2.5, 20.5, 200.5, .5, .5}},
    {"outpad below the dilation",
     1,
     0,
     2,
     3,
     10,
     {1.5, 2.5, .5, 10.5, 20.5, .5, 100.5, 200.5, .5, .5}},
    {"outpad out of the padding", 1, 2, 1, 2, 3, {10.5, 20.5, 100.5}},
    {"outpad out of the padding, and zeros",
     1,
     1,
     2,
     3,
     8,
     {2.5, .5, 10.5, 20.5, .5, 100.5, 200.5, .5}},
    {"outpad out of the padding with a stride",
     2,
     1,
     3,
     4,
     12,
     {.5, 2.5, .5, 10.5, .5, 20.5, .5, 100.5, .5, 200.5, .5, .5}},
};

static void an_outpad_up_to_the_dilation_is_that_of_torch(void **state) {
    const outpad_row *r = *state;
    wb_array *w = wb_reshape(wb_vector(100, 10, 1), 3, 1, 1); /* flipped */
    wb_layer *layer =
        wb_conv_transpose(.given_weight = w, .given_bias = wb_vector(.5), .stride = {r->stride},
                          .pad = WB_EACH(r->pad), .outpad = {r->outpad}, .dilation = {r->dilation});
    wb_array *x = wb_reshape(wb_vector(1, 2), 2, 1, 1), *g;
    wb_array *y = wb_apply(layer, x);
    assert_numbers(y, r->count, r->wanted, 1e-6);
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &x, &g), WB_OK);
    assert_true(isfinite(wb_item(wb_sum(g))));
    wb_free(layer);
}

/* <conv(x), y> = <x, transpose(y)> for the same weight. */
static void it_is_the_adjoint_of_conv(void **state) {
    (void)state;
    wb_array *w = wb_normal(widest(), 3, 2, 2, 6), *x = wb_normal(widest(), 9, 8, 4, 2);
    wb_layer *conv =
        wb_conv(.given_weight = w, .bias = false, .groups = 2, .stride = {2, 3}, .pad = {1, 2});
    wb_layer *back = wb_conv_transpose(.given_weight = w, .bias = false, .groups = 2,
                                       .stride = {2, 3}, .pad = {1, 2}, .outpad = {0, 1});
    wb_array *c = wb_apply(conv, x), *y = wb_normal_make(widest(), c->ndim, c->sizes);
    wb_array *z = wb_apply(back, y);
    assert_sizes(z, 9, 8, 4, 2);
    assert_values(wb_sub(wb_sum(wb_mul(c, y)), wb_sum(wb_mul(x, z))), coarse(1e-9, 1e-3), 0);
    wb_free(conv), wb_free(back);
}

static void sizes_that_do_not_fit_are_named(void **state) {
    (void)state;
    wb_layer *layer =
        wb_conv_transpose({3, 5}, 3, 6, wb_relu, .stride = {3}, .outpad = {1, 0}, .bias = false);
    assert_null(wb_apply(layer, wb_ones(WB_F32, 4, 4, 2, 1)));
    assert_error(WB_ERROR_SHAPE, "ConvTranspose((3, 5), 3 => 6): input has 2 channels in (4, 4, "
                                 "2, 1), expected 3");
    assert_structure(layer, "ConvTranspose((3, 5), 3 => 6, relu, stride=3, bias=false, "
                            "outpad=(1, 0))");
    wb_free(layer);
}

#define BEFORE RELU ", " KERNEL ", " B1 ", " TUPLE("1, 2") ", " TUPLE("0, 0, 0, 0") ", "
static const flux_row structs[] = {
    FLUX("one of Flux 0.12.7", MODEL(STRUCT("Flux", "ConvTranspose", BEFORE TUPLE("1, 1"))),
         "ConvTranspose((2, 1), 1 => 1, relu, stride=(1, 2))", "weight"),
    FLUX("one of Flux 0.13", MODEL(STRUCT("Flux", "ConvTranspose", BEFORE TUPLE("1, 1") ", 1")),
         "ConvTranspose((2, 1), 1 => 1, relu, stride=(1, 2))", "weight"),
    FLUX("one of Flux 0.16",
         MODEL(STRUCT("Flux", "ConvTranspose", BEFORE TUPLE("0, 1") ", " TUPLE("1, 1") ", 1")),
         "ConvTranspose((2, 1), 1 => 1, relu, stride=(1, 2), outpad=(0, 1))", "weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(same_padding_multiplies_the_size), TEST(sizes_beyond_all_numbers_are_refused),
        TEST(outpad_is_for_each_dimension),     TEST(it_is_the_adjoint_of_conv),
        TEST(sizes_that_do_not_fit_are_named),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, sizes, a_result_has_the_size);
    ADD_ROWS(&tests, outpads, an_outpad_up_to_the_dilation_is_that_of_torch);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_conv_transpose", &tests, make_folder, drop_folder);
}
