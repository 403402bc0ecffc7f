/* src/layers/maxout.c, pairwise_fusion.c */

#include "models/flux_structs.h"
#include "support/support.h"

static void the_largest_of_several_layers(void **state) {
    (void)state;
    wb_layer *layer = wb_maxout(wb_fn(wb_neg), wb_fn(wb_square), wb_fn(wb_tanh));
    assert_values(wb_apply(layer, wb_vector(-0.5, 3, 0)), 0, 0.5, 9, 0);
    wb_free(layer);
}

static void each_layer_takes_the_result_before(void **state) {
    (void)state;
    wb_layer *layer = wb_pairwise_fusion(wb_connect_add, wb_fn(wb_square), wb_fn(wb_neg));
    wb_array *xs[] = {wb_vector(2, 3), wb_vector(10, 20), wb_vector(1)}, *ys[2];
    assert_int_equal(wb_apply_many(layer, 2, xs, 2, ys), 2);
    assert_values(ys[0], 0, 4, 9);
    assert_values(ys[1], 0, -14, -29);
    assert_int_equal(wb_apply_many(layer, 1, xs, 2, ys), 2); /* x at every place */
    assert_values(ys[1], 0, -6, -12);
    assert_int_equal(wb_apply_many(layer, 3, xs, 2, ys), 0);
    assert_error(WB_ERROR_ARGUMENT, "PairwiseFusion: 2 layers take one array or 2, got 3");
    wb_free(layer);
}

static int times(void *context, int count, wb_array *const *x, wb_array **y) {
    if (count != 2) return (void)wb_fail(WB_ERROR_ARGUMENT, "takes two arrays, got %d", count), 0;
    y[0] = wb_mul(wb_mul_number(x[0], *(const double *)context), x[1]);
    return y[0] ? 1 : 0;
}

/* Without a connection a layer gets the result before and its own array. */
static void a_closure_before_a_layer_is_a_connection(void **state) {
    (void)state;
    double half = 0.5;
    wb_layer *second = wb_chain(wb_fn_with(times, &half), wb_fn(wb_neg));
    wb_layer *layer = wb_pairwise_fusion(NULL, wb_fn(wb_square), second);
    wb_array *xs[] = {wb_vector(2, 3), wb_vector(10, 20)}, *ys[2];
    assert_int_equal(wb_apply_many(layer, 2, xs, 2, ys), 2);
    assert_values(ys[0], 0, 4, 9);
    assert_values(ys[1], 0, -20, -90);
    wb_free(layer);

    layer = wb_pairwise_fusion(NULL, wb_fn(wb_square), wb_fn(wb_neg));
    assert_int_equal(wb_apply_many(layer, 2, xs, 2, ys), 0);
    assert_error(WB_ERROR_ARGUMENT, "takes one array");
    wb_free(layer);
}

static const flux_row structs[] = {
    FLUX("a Maxout of Flux",
         MODEL(STRUCT("Flux", "Maxout", TUPLE(DENSE(W, B, RELU) ", " DENSE(W, B, IDENTITY)))),
         "Maxout(Dense(1 => 2, relu), Dense(1 => 2))", "layers.2.weight"),
    FLUX("a PairwiseFusion of Flux",
         MODEL(STRUCT("Flux", "PairwiseFusion",
                      FUNCTION("Base", "+") ", " TUPLE(DENSE(W, B, RELU) ", " RELU))),
         "PairwiseFusion(+, Dense(1 => 2, relu), relu)", "layers.1.weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(the_largest_of_several_layers),
        TEST(each_layer_takes_the_result_before),
        TEST(a_closure_before_a_layer_is_a_connection),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_maxout", &tests, make_folder, drop_folder);
}
