/* src/layers/parallel.c, skip.c, connections.c */
#include <math.h>

#include "models/flux_structs.h"
#include "support/support.h"

static wb_array *quotient(int count, wb_array *const *arrays) {
    return count == 2 ? wb_div(arrays[0], arrays[1]) : NULL;
}

static int connections;
static wb_array *counted(int count, wb_array *const *arrays) {
    connections++;
    return wb_connect_add(count, arrays);
}

static void the_connection_is_called_once(void **state) { /* D9 */
    (void)state;
    wb_layer *layer = wb_parallel(counted, wb_fn(wb_sin), wb_fn(wb_cos), wb_fn(wb_tanh));
    wb_array *xs[3] = {wb_vector(1), wb_vector(2), wb_vector(3)}, *ys[1];
    connections = 0;
    assert_non_null(wb_apply(layer, xs[0]));
    assert_int_equal(connections, 1);
    assert_int_equal(wb_apply_many(layer, 3, xs, 1, ys), 1);
    assert_int_equal(connections, 2);
    wb_free(layer);
}

static void numbers_of_the_documentation(void **state) { /* D9 */
    (void)state;
    wb_layer *both = wb_parallel(wb_connect_add, wb_fn(wb_sin), wb_fn(wb_cos));
    wb_layer *one = wb_parallel(quotient, wb_fn(wb_abs));
    wb_array *xs[3] = {wb_vector(3), wb_vector(-4), wb_vector(1)}, *ys[3];
    assert_values(wb_apply(both, wb_vector(acos(0))), 1e-6, 1);
    assert_int_equal(wb_apply_many(one, 2, xs, 1, ys), 1);
    assert_values(ys[0], 1e-6, 0.75);
    assert_int_equal(wb_apply_many(both, 3, xs, 3, ys), 0);
    assert_error(WB_ERROR_ARGUMENT, "Parallel: 2 layers take one array or 2, got 3");
    wb_free(both), wb_free(one);
}

static void layers_of_several_sizes_are_joined(void **state) { /* F16 */
    (void)state;
    wb_layer *layer = wb_parallel(wb_connect_vcat, wb_dense(2, 4), wb_dense(3, 6));
    wb_array *xs[] = {wb_ones(WB_F32, 2), wb_ones(WB_F32, 3)}, *ys[1];
    assert_int_equal(wb_apply_many(layer, 2, xs, 1, ys), 1);
    assert_sizes(ys[0], 10);
    wb_free(layer);
}

/* Without a connection all results go on, to a Parallel with as many layers. */
static void several_results_go_on(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_parallel(NULL, wb_fn(wb_square), wb_fn(wb_neg)),
                               wb_parallel(wb_connect_mul, wb_fn(wb_neg), wb_fn(wb_square)));
    assert_values(wb_apply(model, wb_vector(2, 3)), 0, -16, -81);
    wb_free(model);
}

static void a_way_around_a_layer(void **state) { /* D10, F15 */
    (void)state;
    wb_layer *dense = wb_skip(wb_dense(10, 10), wb_connect_hcat);
    wb_layer *conv = wb_skip(wb_conv({3, 3}, 3, 16, .pad = {1, 1}), wb_connect_channels);
    wb_layer *first = wb_skip(wb_fn(wb_square), quotient);
    assert_sizes(wb_apply(dense, wb_ones(WB_F32, 10, 2)), 10, 4);
    assert_sizes(wb_apply(conv, wb_ones(WB_F32, 10, 10, 3, 1)), 10, 10, 19, 1);
    assert_values(wb_apply(first, wb_vector(3, 4)), 1e-6, 3, 4); /* layer(x) is the first */
    wb_free(dense), wb_free(conv), wb_free(first);
}

static void they_are_printed_as_in_flux(void **state) {
    (void)state;
    char text[1000];
    wb_layer *model = wb_chain(wb_skip(wb_dense(2, 2), wb_connect_add),
                               wb_parallel(wb_connect_vcat, wb_dense(2, 3), wb_fn(wb_relu)));
    assert_int_equal(wb_show_text(model, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "Chain(\n"
                                 "  SkipConnection(\n"
                                 "    Dense(2 => 2),                      # 6 parameters\n"
                                 "    +,\n"
                                 "  ),\n"
                                 "  Parallel(\n"
                                 "    vcat,\n"
                                 "    Dense(2 => 3),                      # 9 parameters\n"
                                 "    relu,\n"
                                 "  ),\n"));
    assert_structure(model, "Chain(SkipConnection(Dense(2 => 2), +), "
                            "Parallel(vcat, Dense(2 => 3), relu))");
    assert_non_null(wb_get(model, "layers.1.layers.weight"));
    assert_non_null(wb_get(model, "layers.2.layers.1.weight"));
    wb_free(model);
}

static void a_layer_has_one_container(void **state) {
    (void)state;
    wb_layer *layer = wb_dense(2, 2), *chain = wb_chain(layer);
    assert_null(wb_skip(layer, wb_connect_add));
    assert_error(WB_ERROR_ARGUMENT, "SkipConnection: layer 1, Dense(2 => 2), belongs to another");
    wb_free(chain);
    layer = wb_dense(2, 2);
    wb_layer *skip = wb_skip(layer, wb_connect_add);
    assert_null(wb_skip(layer, wb_connect_mul));
    assert_error(WB_ERROR_ARGUMENT, "SkipConnection: layer 1, Dense(2 => 2), belongs to another");
    assert_null(wb_chain(layer));
    assert_error(WB_ERROR_ARGUMENT, "wb_chain: layer 1, Dense(2 => 2), belongs to another");
    wb_free(layer);
    assert_error(WB_ERROR_ARGUMENT, "wb_free: Dense(2 => 2) belongs to a container");
    wb_layer *shared = wb_skip(wb_keep_layer(layer), wb_connect_add), *copy = wb_clone(shared);
    wb_free(wb_get_layer(copy, "layers"));
    assert_error(WB_ERROR_ARGUMENT, "wb_free: Dense(2 => 2) belongs to a container");
    wb_free(skip), wb_free(shared), wb_free(copy);
}

static void channels_are_the_last_dimension_but_one(void **state) {
    (void)state;
    wb_array *x[] = {wb_ones(WB_F32, 2, 3), wb_ones(WB_F32, 2, 3)}, *v[] = {x[0], wb_vector(1)};
    assert_sizes(wb_connect_channels(2, x), 4, 3);
    v[0] = wb_vector(1, 2);
    assert_null(wb_connect_channels(2, v));
    assert_error(WB_ERROR_SHAPE, "channels: arrays must have at least 2 dimensions, got (2)");
}

static const flux_row structs[] = {
    FLUX("a SkipConnection of Flux",
         MODEL(STRUCT("Flux", "SkipConnection", DENSE(W, B, RELU) ", " FUNCTION("Base", "+"))),
         "SkipConnection(Dense(1 => 2, relu), +)", "layers.weight"),
    FLUX("a Parallel of Flux",
         MODEL(STRUCT("Flux", "Parallel",
                      FUNCTION("Base", "vcat") ", " TUPLE(DENSE(W, B, RELU) ", " RELU))),
         "Parallel(vcat, Dense(1 => 2, relu), relu)", "layers.1.weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(numbers_of_the_documentation),
        TEST(the_connection_is_called_once),
        TEST(layers_of_several_sizes_are_joined),
        TEST(several_results_go_on),
        TEST(a_way_around_a_layer),
        TEST(they_are_printed_as_in_flux),
        TEST(a_layer_has_one_container),
        TEST(channels_are_the_last_dimension_but_one),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_parallel", &tests, make_folder, drop_folder);
}
