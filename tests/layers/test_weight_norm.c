/* src/layers/weight_norm.c, replace.c */

#include "models/flux_structs.h"
#include "support/support.h"

static wb_array *given(void) { return wb_reshape(wb_vector_of(WB_F64, 3, 6, 4, 8), 2, 2); }

static void a_layer_stays_as_it_was(void **state) {
    (void)state;
    wb_layer *plain = wb_conv({3}, 2, 4, wb_tanh), *norm = wb_weight_norm(wb_clone(plain));
    wb_array *x = wb_normal(WB_F32, 7, 2, 3);
    assert_true(wb_approx(wb_apply(norm, x), wb_apply(plain, x), 1e-5, 1e-6, NULL, 0));
    assert_sizes(wb_get(norm, "g"), 3, 2, 1); /* over the last, the output */
    assert_int_equal(wb_parameter_count(norm), wb_parameter_count(plain) + 6);
    assert_structure(norm, "WeightNorm(Conv((3,), 2 => 4, tanh), :weight, dims=3)");
    wb_free(plain), wb_free(norm);
}

static const struct norm_row {
    const char *name;
    unsigned dims;
    int count;
    double wanted[4]; /* norms of (3 4; 6 8) */
    const char *structure;
} norms[] = {
    {"over the last dimension", 0, 2, {5, 10}, "WeightNorm(Dense(2 => 2), :weight, dims=2)"},
    {"over the first",
     WB_DIM(0),
     2,
     {6.708203932499369, 8.94427190999916},
     "WeightNorm(Dense(2 => 2), :weight, dims=1)"},
    {"over all",
     WB_DIM(0) | WB_DIM(1),
     1,
     {11.180339887498949},
     "WeightNorm(Dense(2 => 2), :weight, dims=(1, 2))"},
};

static void g_is_the_norm(void **state) {
    const struct norm_row *r = *state;
    wb_layer *norm = wb_weight_norm(wb_dense(.given_weight = given()), .dims = r->dims);
    wb_array *g = wb_get(norm, "g");
    double got[4];
    assert_int_equal(wb_count(g), r->count);
    assert_int_equal(wb_read_f64(g, got, r->count), WB_OK);
    for (int i = 0; i < r->count; i++) assert_true(fabs(got[i] - r->wanted[i]) < 1e-12);
    assert_structure(norm, r->structure);
    wb_free(norm);
}

static void length_and_direction_are_apart(void **state) {
    (void)state;
    wb_layer *norm = wb_weight_norm(wb_dense(.given_weight = given(), .bias = false));
    wb_array *x = wb_vector_of(WB_F64, 1, 0), *y = wb_apply(norm, x);
    assert_values(y, 1e-12, 3, 6);
    (void)wb_set(norm, "layer.weight", wb_mul_number(given(), 7)); /* another length of v */
    assert_values(wb_apply(norm, x), 1e-12, 3, 6);
    (void)wb_set(norm, "g", wb_mul_number(wb_get(norm, "g"), 2));
    assert_values(wb_apply(norm, x), 1e-12, 6, 12);
    wb_free(norm);
}

static void norms_are_removed(void **state) {
    (void)state;
    wb_layer *shared = wb_weight_norm(wb_dense(2, 2, .dtype = WB_F64));
    wb_layer *lstm = wb_weight_norm(wb_lstm(2, 2, .dtype = WB_F64), "cell.Wh");
    wb_layer *inner = wb_weight_norm(wb_dense(2, 2, .dtype = WB_F64));
    wb_layer *model = wb_chain(lstm, shared, wb_skip(inner, wb_connect_add), wb_keep_layer(shared));
    (void)wb_set(model, "layers.2.g", wb_reshape(wb_vector_of(WB_F64, 2, 3), 2, 1));
    wb_array *x = wb_normal(WB_F64, 2, 3), *y = wb_apply(model, x);
    model = wb_remove_weight_norms(model);
    assert_structure(model, "Chain(LSTM(2 => 2), Dense(2 => 2), SkipConnection(Dense(2 => 2), +), "
                            "Dense(2 => 2))");
    assert_ptr_equal(wb_chain_at(model, 2), wb_chain_at(model, 4));
    assert_true(wb_approx(wb_apply(model, x), y, 1e-12, 1e-12, NULL, 0));
    wb_free(model);
    model = wb_remove_weight_norms(wb_weight_norm(wb_dense(2, 3)));
    assert_structure(model, "Dense(2 => 3)");
    wb_free(model);
}

#define SYMBOL "{tag: 'symbol', name: 'weight'}"
#define NORM(g, dims)                                                                              \
    MODEL(STRUCT("Flux", "WeightNorm", DENSE(W, B, RELU) ", " g ", " SYMBOL ", " dims))
static const flux_row structs[] = {
    FLUX("a WeightNorm of Flux", NORM(W, "2"), "WeightNorm(Dense(1 => 2, relu), :weight, dims=2)",
         "g"),
    FLUX("one over all", NORM(ARRAY("Float32", "1, 1", ONE), STRUCT("Base", "Colon", "")),
         "WeightNorm(Dense(1 => 2, relu), :weight, dims=(1, 2))", "layer.weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(a_layer_stays_as_it_was),
        TEST(length_and_direction_are_apart),
        TEST(norms_are_removed),
    };
    ADD_ROWS(&tests, norms, g_is_the_norm);
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_weight_norm", &tests, make_folder, drop_folder);
}
