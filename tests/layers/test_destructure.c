/* src/layers/destructure.c: parameters as one vector, models with other arrays, other types. */
#include <weber/parameters.h>

#include "support/support.h"

/* ---- D15, D17: a struct with two arrays ---- */

typedef struct Two {
    wb_layer layer;
    wb_array *a, *b;
} Two;

/* a + 2 b, or the product of a matrix with x and then with its transpose. */
static wb_array *sum_of_both(wb_layer *layer, wb_array *x) {
    const Two *two = (const Two *)(const void *)layer;
    return wb_add(wb_mul(two->a, x), wb_mul_number(two->b, 2));
}
WB_FUNCTOR(Two, sum_of_both, WB_ARRAY_FIELD(Two, a), WB_ARRAY_FIELD(Two, b));

static Two *two_of(wb_array *a, wb_array *b) {
    Two *two = wb_new(Two);
    two->a = wb_keep(a), two->b = wb_keep(b);
    return two;
}

static void assert_elements(wb_array *x, int64_t count, const double *expected) {
    double given[16];
    assert_non_null(x);
    assert_int_equal(wb_count(x), count);
    assert_int_equal(wb_read_f64(x, given, count), WB_OK);
    for (int64_t i = 0; i < count; i++) assert_true(fabs(given[i] - expected[i]) < 1e-6);
}

static void a_transpose_counts_once(void **state) {
    (void)state;
    wb_array *m = wb_matrix(2, {1, 2}, {3, 4}); /* columns (1, 3) and (2, 4) */
    wb_eval(m);
    Two *two = two_of(m, wb_transpose(m));
    wb_eval(two->b);
    wb_array *flat = wb_destructure(&two->layer); /* D15 */
    assert_elements(flat, 4, (double[]){1, 3, 2, 4});
    assert_int_equal(wb_parameter_count(&two->layer), 4);
    wb_array *other = wb_vector(5, 7, 6, 8), *x = wb_ones(WB_F32, 2, 2), *g;
    wb_array *y = wb_apply_with(&two->layer, other, x);
    assert_elements(y, 4, (double[]){15, 19, 20, 24}); /* a + 2 a' */
    assert_elements(wb_apply(&two->layer, x), 4, (double[]){3, 7, 8, 12});
    wb_array *weights = wb_reshape(wb_vector(1, 10, 100, 1000), 2, 2);
    assert_int_equal(wb_gradient_of(wb_sum(wb_mul(y, weights)), 1, &other, &g), WB_OK);
    assert_elements(g, 4, (double[]){3, 210, 120, 3000}); /* the sum of both places */
    wb_layer *made = wb_rebuild(&two->layer, other);
    const Two *twin = (const Two *)(const void *)made;
    assert_elements(wb_transpose(twin->b), 4, (double[]){5, 7, 6, 8});
    assert_int_equal(wb_parameter_count(made), 4);
    wb_free(made);
    wb_free(two);
}

static void gradients_reach_the_arrays(void **state) {
    (void)state;
    Two *two = two_of(wb_vector(1, 2, 3), wb_vector(4, 5, 6)); /* D17 */
    wb_array *arrays[] = {wb_get(&two->layer, "a"), wb_get(&two->layer, "b")}, *g[2];
    wb_array *flat = wb_destructure(&two->layer);
    assert_int_equal(wb_gradient_of(wb_sum(wb_slice(flat, 0, 1, 2, 1)), 2, arrays, g), WB_OK);
    assert_elements(g[0], 3, (double[]){0, 1, 0});
    if (g[1]) assert_elements(g[1], 3, (double[]){0, 0, 0});
    wb_free(two);
}

/* ---- models ---- */

static wb_layer *small_model(void) {
    wb_seed(3);
    return wb_chain(wb_dense(2, 3, wb_tanh, .dtype = WB_F64), wb_dense(3, 1, .dtype = WB_F64));
}

static wb_array *loss_with(void *context, int count, wb_array *const *arrays) {
    (void)count;
    return wb_square(wb_apply_with(context, arrays[0], arrays[1]));
}

static void models_are_functions_of_a_vector(void **state) {
    (void)state;
    wb_layer *model = small_model();
    wb_array *flat = wb_copy(wb_destructure(model)), *x = wb_normal(WB_F64, 2, 4);
    wb_array *both[] = {flat, x};
    assert_int_equal(wb_count(flat), 13);
    assert_same_bits(wb_apply_with(model, flat, x), wb_apply(model, x), "the same parameters");
    if (wb_gradient_check(loss_with, model, 2, both, 2, 1e-5) != WB_OK)
        fail_msg("%s", wb_error_message());
    wb_layer *made = wb_rebuild(model, wb_mul_number(flat, 2));
    assert_true(wb_approx(wb_get(made, "layers.2.weight"),
                          wb_mul_number(wb_get(model, "layers.2.weight"), 2), 1e-12, 0, NULL, 0));
    assert_null(wb_rebuild(model, wb_zeros(WB_F64, 5)));
    assert_error(WB_ERROR_SHAPE, "rebuild: the vector must have 13 numbers, as the model has "
                                 "parameters, got (5)");
    assert_null(wb_apply_with(model, flat, wb_zeros(WB_F64, 3, 1)));
    assert_error(WB_ERROR_SHAPE, "Dense(2 => 3");
    assert_same_bits(wb_destructure(model), flat, "the model is as it was");
    wb_free(made);
    wb_free(model);
}

static wb_array *apply_to_ones(void *context, wb_layer *model) {
    return context ? NULL : wb_apply(model, wb_ones(WB_F64, 2, 1));
}

static wb_array *set_bias(void *context, wb_layer *model) {
    assert_int_equal(wb_set(model, "layers.2.bias", wb_full(WB_F64, 9, 1)), WB_OK);
    return apply_to_ones(context, model);
}

static void arrays_of_the_caller(void **state) {
    (void)state;
    wb_layer *model = small_model();
    wb_array *arrays[4] = {wb_zeros(WB_F64, 3, 2), wb_ones(WB_F64, 3), wb_ones(WB_F64, 1, 3),
                           wb_full(WB_F64, 0.5, 1)};
    wb_array *y = wb_call_with(model, 4, arrays, apply_to_ones, NULL), *g[4];
    assert_elements(y, 1, (double[]){3 * tanh(1) + 0.5});
    assert_int_equal(wb_gradient_of(wb_sum(y), 4, arrays, g), WB_OK);
    assert_elements(g[2], 3, (double[]){tanh(1), tanh(1), tanh(1)});
    wb_array *own[4];
    int count = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) own[count++] = p.array;
    assert_same_bits(wb_call_with(model, 4, own, apply_to_ones, NULL), apply_to_ones(NULL, model),
                     "its own arrays");
    assert_null(wb_call_with(model, 3, arrays, apply_to_ones, NULL));
    assert_error(WB_ERROR_ARGUMENT, "call_with: the model has 4 parameters, got 3 arrays");
    assert_null(wb_call_with(model, 4, arrays, apply_to_ones, model));
    assert_error(WB_ERROR_ARGUMENT, "call_with: the function returned NULL");
    assert_null(wb_call_with(model, 4, arrays, NULL, NULL));
    assert_error(WB_ERROR_ARGUMENT, "call_with: the function is NULL");
    arrays[1] = wb_ones(WB_F64, 2);
    assert_null(wb_call_with(model, 4, arrays, apply_to_ones, NULL));
    assert_error(WB_ERROR_SHAPE, "call_with: parameter 1, layers.1.bias, is (3), got (2)");
    arrays[1] = wb_ones(WB_F64, 3);
    assert_non_null(wb_call_with(model, 4, arrays, set_bias, NULL));
    assert_elements(wb_get(model, "layers.2.bias"), 1, (double[]){9});
    wb_free(model);
}

static void nothing_to_destructure(void **state) {
    (void)state;
    wb_layer *model = wb_flatten();
    wb_array *flat = wb_destructure(model), *x = wb_ones(WB_F32, 2, 2, 3);
    assert_int_equal(wb_count(flat), 0);
    assert_int_equal(wb_size(wb_apply_with(model, flat, x), 0), 4);
    wb_free(model);
}

/* ---- types ---- */

static const struct type_row {
    const char *name;
    wb_dtype dtype, dense, norm;
} type_rows[] = {
    {"f16 leaves batch norms in f32", WB_F16, WB_F16, WB_F32},
    {"bf16 leaves batch norms in f32", WB_BF16, WB_BF16, WB_F32},
    {"f64 is everywhere", WB_F64, WB_F64, WB_F64},
    {"f32 is everywhere", WB_F32, WB_F32, WB_F32},
};

static void models_in_other_types(void **state) {
    const struct type_row *row = *state;
    wb_layer *model = wb_chain(wb_dense(2, 3), wb_batchnorm(3), wb_layernorm({3}));
    wb_layer *other = (wb_model_as)(model, row->dtype);
    assert_non_null(other);
    assert_int_equal(wb_dtype_of(wb_get(other, "layers.1.weight")), row->dense);
    assert_int_equal(wb_dtype_of(wb_get(other, "layers.2.μ")), row->norm);
    assert_int_equal(wb_dtype_of(wb_get(other, "layers.3.diag.scale")), row->dense);
    assert_int_equal(wb_dtype_of(wb_get(model, "layers.1.weight")), WB_F32);
    wb_free(other);
    wb_free(model);
}

static void whole_numbers_are_no_model_type(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 3);
    assert_null((wb_model_as)(model, WB_I32));
    assert_error(WB_ERROR_DTYPE, "model_as: the type must be floating, got i32");
    wb_free(model);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, type_rows, models_in_other_types);
    const struct CMUnitTest others[] = {
        TEST(a_transpose_counts_once),          TEST(gradients_reach_the_arrays),
        TEST(models_are_functions_of_a_vector), TEST(arrays_of_the_caller),
        TEST(nothing_to_destructure),           TEST(whole_numbers_are_no_model_type)};
    ADD_TESTS(&tests, others);
    return run_test_list("layers/test_destructure", &tests, NULL, NULL);
}
