/* Derivatives that the user gives: functions of arrays and on host memory, straight-through values,
 * hooks. */
#include "support/support.h"

static wb_array *one_gradient(wb_array *loss, wb_array *x) {
    wb_array *g = NULL;
    assert_int_equal(wb_gradient_of(loss, 1, &x, &g), WB_OK);
    return g;
}

/* ---- functions of arrays: x^2 y, whose value hides its recipe ---- */

static wb_array *value(void *context, int count, wb_array *const *arrays) {
    int *calls = context;
    (void)count;
    if (calls) ++*calls;
    return wb_mul(wb_square(wb_stop_gradient(arrays[0])), wb_stop_gradient(arrays[1]));
}

static wb_status pullback(void *context, wb_array *result, wb_array *cotangent, int count,
                          wb_array *const *arrays, wb_array **cotangents) {
    (void)context, (void)result, (void)count;
    wb_array *x = arrays[0], *y = arrays[1];
    cotangents[0] = wb_mul(cotangent, wb_mul_number(wb_mul(x, y), 2));
    cotangents[1] = wb_mul(cotangent, wb_square(x));
    return WB_OK;
}

static wb_array *own(void *context, int count, wb_array *const *arrays) {
    return wb_sin(
        wb_function(count, arrays, .value = value, .pullback = pullback, .context = context));
}

/* Once inside of what is computed again, and in the body of a scan. */
static wb_array *own_again(void *context, int count, wb_array *const *arrays) {
    return wb_recompute(own, context, count, arrays);
}

static void own_step(void *context, wb_array **carries, wb_array *const *inputs,
                     wb_array **outputs) {
    wb_array *both[] = {carries[0], inputs[0]};
    carries[0] = outputs[0] = own(context, 2, both);
}

static wb_array *own_in_scan(void *context, int count, wb_array *const *arrays) {
    wb_array *h = wb_slice(arrays[0], 0, 0, 2, 1), *x = arrays[1], *y;
    (void)count;
    return wb_scan(own_step, context, 1, &h, 1, &x, 1, &y) == WB_OK ? y : NULL;
}

/* The pullback takes a gradient of its own: that of what it was given, by walking inside a walk. */
static wb_array *logistic(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return wb_mul(wb_sigmoid(arrays[0]), arrays[1]);
}

static wb_status pull_by_gradient(void *context, wb_array *result, wb_array *cotangent, int count,
                                  wb_array *const *arrays, wb_array **cotangents) {
    (void)result;
    return wb_pullback(logistic(context, count, arrays), cotangent, count, arrays, cotangents);
}

static wb_array *by_gradient(void *context, int count, wb_array *const *arrays) {
    wb_array *y = wb_function(count, arrays, .value = logistic, .pullback = pull_by_gradient,
                              .context = context);
    return wb_mul(wb_tanh(y), arrays[0]);
}

static const struct function_row {
    const char *name;
    wb_array_fn *fn;
    int64_t rows, steps;
} functions[] = {
    {"a function with a pullback, in both orders", own, 3, 2},
    {"a function with a pullback, computed again", own_again, 3, 2},
    {"a function with a pullback as a scan's step", own_in_scan, 2, 3},
    {"a pullback that takes a gradient itself", by_gradient, 3, 2},
};

static void function_agrees(void **state) {
    const struct function_row *f = *state;
    test_random r = {test_seed()};
    const int64_t x_sizes[] = {f->rows, 2}, y_sizes[] = {f->rows, f->steps};
    const bool scans = f->fn == own_in_scan;
    wb_array *arrays[2] = {array_random(&r, WB_F64, 0.3, 1, scans ? 1 : 2, x_sizes),
                           array_random(&r, WB_F64, 0.3, 1, 2, y_sizes)};
    if (wb_gradient_check(f->fn, NULL, 2, arrays, 2, 1e-5) != WB_OK)
        fail_msg("%s", wb_error_message());
    wb_array *y = f->fn(NULL, 2, arrays), *pulled[2], *tangents[2];
    for (int i = 0; i < 2; i++)
        tangents[i] = array_random(&r, WB_F64, -1, 1, wb_ndim(arrays[i]), wb_sizes(arrays[i]));
    wb_array *u = array_random(&r, WB_F64, -1, 1, wb_ndim(y), wb_sizes(y));
    assert_int_equal(wb_pullback(y, u, 2, arrays, pulled), WB_OK);
    double reverse = 0;
    for (int i = 0; i < 2; i++) reverse += wb_item(wb_sum(wb_mul(pulled[i], tangents[i])));
    assert_float_equal(wb_item(wb_sum(wb_mul(u, wb_jvp(y, 2, arrays, tangents)))), reverse, 1e-9);
}

static void count_release(void *context) { ++*(int *)context; }

static void a_function_is_called_once_and_released_once(void **state) {
    (void)state;
    int calls = 0;
    wb_scope_open();
    wb_array *arrays[] = {wb_vector(1, 2), wb_vector(3, 4)};
    wb_array *y = wb_function(2, arrays, .value = value, .pullback = pullback, .context = &calls,
                              .release = count_release);
    assert_int_equal(calls, 1);
    wb_array *g = one_gradient(wb_sum(y), arrays[0]);
    assert_float_equal(wb_at(g, 1), 16, 1e-6);
    assert_int_equal(calls, 1);
    wb_scope_close();
    assert_int_equal(calls, 2);
}

/* ---- functions on host memory ---- */

static wb_status host_value(void *context, int count, const void *const *arrays, void *result) {
    const double *x = arrays[0], *y = arrays[1];
    double *out = result;
    (void)context, (void)count;
    for (int i = 0; i < 4; i++) out[i] = exp(x[i]) * y[i];
    return WB_OK;
}

static wb_status host_pullback(void *context, int count, const void *const *arrays,
                               const void *result, const void *cotangent, void *const *cotangents) {
    const double *x = arrays[0], *y = result, *g = cotangent;
    double *to_x = cotangents[0], *to_y = cotangents[1];
    (void)context, (void)count;
    for (int i = 0; to_x && i < 4; i++) to_x[i] = g[i] * y[i];
    for (int i = 0; to_y && i < 4; i++) to_y[i] = g[i] * exp(x[i]);
    return WB_OK;
}

static wb_array *on_host(void *context, int count, wb_array *const *arrays) {
    (void)context;
    wb_array *y = wb_host_function(count, arrays, .value = host_value, .pullback = host_pullback,
                                   .ndim = 2, .sizes = {2, 2}, .dtype = WB_F64, .name = "warp");
    return wb_mul(wb_square(y), arrays[1]);
}

static wb_array *on_host_twice(void *context, int count, wb_array *const *arrays) {
    wb_array *h = wb_tanh(on_host(context, count, arrays)), *both[] = {h, arrays[1]};
    return wb_add(on_host(context, 2, both), h);
}

static void host_functions_agree(void **state) {
    (void)state;
    test_random r = {test_seed()};
    wb_array *arrays[2];
    for (int i = 0; i < 2; i++)
        arrays[i] = array_random(&r, WB_F64, 0.3, 1, 2, (const int64_t[]){2, 2});
    assert_int_equal(wb_gradient_check(on_host, NULL, 2, arrays, 1, 0), WB_OK);
    assert_int_equal(wb_gradient_check(on_host_twice, NULL, 2, arrays, 1, 1e-5), WB_OK);
    wb_array *x = wb_mul(arrays[0], arrays[1]), *other[2] = {wb_sub(x, wb_number(1)), arrays[1]};
    wb_array *y = wb_sum(on_host_twice(NULL, 2, other)), *g = one_gradient(y, arrays[1]);
    assert_int_equal(wb_gradient_check(on_host_twice, NULL, 2, other, 1, 1e-5), WB_OK);
    assert_int_equal(wb_count(g), 4);
}

static void no_second_derivative_on_the_host(void **state) {
    (void)state;
    wb_array *arrays[2] = {wb_full(WB_F64, 0.5, 2, 2), wb_full(WB_F64, 0.7, 2, 2)}, *gg;
    wb_array *x = arrays[0], *y = on_host(NULL, 2, arrays);
    wb_array *g = one_gradient(wb_sum(y), x);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(g)), 1, &x, &gg), WB_ERROR_GRADIENT);
    assert_error(WB_ERROR_GRADIENT, "warp: a function on host memory has only a first derivative");
    assert_null(wb_jvp(y, 1, &x, &x));
    assert_error(WB_ERROR_GRADIENT, "warp: a function on host memory has only a first derivative");
}

static void constant_without_pullback(void **state) {
    (void)state;
    wb_array *arrays[2] = {wb_full(WB_F64, 0.5, 2, 2), wb_full(WB_F64, 0.7, 2, 2)}, *g = arrays[0];
    wb_array *y = wb_host_function(2, arrays, .value = host_value, .ndim = 2, .sizes = {2, 2},
                                   .dtype = WB_F64);
    assert_float_equal(wb_at(y, 1, 1), exp(0.5) * 0.7, 1e-12);
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, arrays, &g), WB_OK);
    assert_null(g);
}

static wb_status refuse(void *context, int count, const void *const *arrays, void *result) {
    (void)context, (void)count, (void)arrays, (void)result;
    return WB_ERROR_NUMBER;
}

/* ---- straight-through, hooks ---- */

static void rounding_is_passed_over(void **state) {
    (void)state;
    wb_array *x = wb_vector_of(WB_F64, 0.2, 1.7, -2.4), *y = wb_straight_through(wb_round(x), x);
    wb_array *g = one_gradient(wb_sum(wb_mul(y, wb_vector_of(WB_F64, 1, 2, 3))), x);
    const double values[] = {0, 2, -2};
    for (int i = 0; i < 3; i++) {
        assert_float_equal(wb_at(y, i), values[i], 0);
        assert_float_equal(wb_at(g, i), i + 1, 0);
    }
}

typedef struct seen {
    int calls;
    double scale;
    wb_array *cotangent;
} seen;

static wb_array *scale(void *context, wb_array *cotangent) {
    seen *s = context;
    s->calls++;
    s->cotangent = cotangent;
    return s->scale == 1 ? cotangent : wb_mul_number(cotangent, s->scale);
}

static void hooks_see_and_change_cotangents(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2);
    seen looks = {.scale = 1}, turns = {.scale = -1};
    wb_array *h = wb_hook(wb_square(x), scale, &looks);
    wb_array *g = one_gradient(wb_sum(wb_mul_number(h, 3)), x);
    assert_int_equal(looks.calls, 1);
    assert_float_equal(wb_at(looks.cotangent, 0), 3, 0);
    assert_float_equal(wb_at(g, 1), 12, 1e-6);
    g = one_gradient(wb_sum(wb_square(wb_hook(x, scale, &turns))), x); /* gradient reversal */
    assert_float_equal(wb_at(g, 1), -4, 1e-6);
    assert_float_equal(wb_at(wb_hook(x, scale, &turns), 1), 2, 0);
}

/* ---- mistakes ---- */

static wb_status wrong_size(void *context, wb_array *result, wb_array *cotangent, int count,
                            wb_array *const *arrays, wb_array **cotangents) {
    (void)result, (void)count, (void)arrays, (void)cotangent;
    cotangents[0] = context ? wb_ones(WB_F64, 2) : wb_vector(1, 2, 3);
    return WB_OK;
}

static wb_status failing(void *context, wb_array *result, wb_array *cotangent, int count,
                         wb_array *const *arrays, wb_array **cotangents) {
    (void)context, (void)result, (void)count, (void)arrays, (void)cotangent, (void)cotangents;
    return WB_ERROR_NUMBER;
}

static wb_array *nothing(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count, (void)arrays;
    return NULL;
}

static wb_array *no_cotangent(void *context, wb_array *cotangent) {
    (void)context, (void)cotangent;
    return NULL;
}

static void host_step(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    (void)outputs;
    wb_array *both[] = {carries[0], inputs[0]};
    carries[0] = on_host(context, 2, both);
}

static void expect(wb_array *y, wb_array *x, wb_status status, const char *text) {
    wb_array *g;
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &x, &g), status);
    assert_error(status, text);
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *both[] = {x, x}, *three = wb_vector(1, 2, 3);
    assert_null(wb_function(2, both, .pullback = pullback));
    assert_error(WB_ERROR_ARGUMENT, "function: .value must be given");
    assert_null(wb_function(2, both, .value = value, .name = "warp"));
    assert_error(WB_ERROR_ARGUMENT, "warp: .pullback must be given");
    assert_null(wb_function(2, both, .value = nothing, .pullback = pullback));
    assert_error(WB_ERROR_ARGUMENT, "function: the function returned NULL");
    expect(wb_function(2, both, .value = value, .pullback = wrong_size), x, WB_ERROR_SHAPE,
           "function: cotangent 0 must be f32 (2), as its array is, got f32 (3)");
    expect(wb_function(2, both, .value = value, .pullback = wrong_size, .context = &(int){0}), x,
           WB_ERROR_DTYPE, "function: cotangent 0 must be f32 (2), as its array is, got f64 (2)");
    expect(wb_function(2, both, .value = value, .pullback = failing), x, WB_ERROR_NUMBER,
           "function: the pullback failed");
    expect(wb_hook(x, no_cotangent, NULL), x, WB_ERROR_ARGUMENT,
           "hook: the function returned NULL");
    assert_null(wb_hook(x, NULL, NULL));
    assert_error(WB_ERROR_ARGUMENT, "hook: the function is NULL");
    assert_null(wb_straight_through(three, x));
    assert_error(WB_ERROR_SHAPE, "straight_through: x must have y's sizes (3), got (2)");
    assert_null(wb_host_function(1, &x, .ndim = 1, .sizes = {2}));
    assert_error(WB_ERROR_ARGUMENT, "host_function: .value must be given");
    assert_null(wb_host_function(1, &x, .value = refuse, .ndim = 1, .sizes = {2}));
    assert_error(WB_ERROR_NUMBER, "host_function: the function failed");
    assert_null(wb_host_function(1, &x, .value = refuse, .ndim = 1, .sizes = {-2}));
    assert_error(WB_ERROR_SHAPE, "host_function");
    wb_array *h = wb_ones(WB_F64, 2, 2), *steps = wb_ones(WB_F64, 2, 2, 3);
    assert_int_not_equal(wb_scan(host_step, NULL, 1, &h, 1, &steps, 0, NULL), WB_OK);
    assert_error(WB_ERROR_ARGUMENT, "warp: cannot be called inside the body of a scan");
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, functions, function_agrees);
    const struct CMUnitTest others[] = {TEST(a_function_is_called_once_and_released_once),
                                        TEST(host_functions_agree),
                                        TEST(no_second_derivative_on_the_host),
                                        TEST(constant_without_pullback),
                                        TEST(rounding_is_passed_over),
                                        TEST(hooks_see_and_change_cotangents),
                                        TEST(mistakes_are_named)};
    ADD_TESTS(&tests, others);
    return run_test_list("gradient/test_function", &tests, NULL, NULL);
}
