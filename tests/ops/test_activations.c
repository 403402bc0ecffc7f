/* Activations at known places: cases C1 to C5, C10 and C11 (C6 to C8: test_softmax.c); those that
 * are no functions of one number alone. */
#include "support/functions.h"
#include "support/support.h"

#define NOT_A_NUMBER ((double)NAN)
#define LN_2         0.69314718055994531

static const struct activation {
    const char *name;
    unary_fn *fn;
    double x, y;
} activations[] = {{"C1: gelu(1), by tanh", wb_gelu, 1, 0.8411919906082768},
                   {"C1: gelu(1), by erf", wb_gelu_erf, 1, 0.8413447460685429},
                   {"C1: gelu(-1), by erf", wb_gelu_erf, -1, -0.15865525393145707},
                   {"C3: tanhshrink(1)", wb_tanhshrink, 1, 0.23840584404423515},
                   {"C3: tanhshrink(-1)", wb_tanhshrink, -1, -0.23840584404423515},
                   {"C3: softshrink(1)", wb_softshrink, 1, 0.5},
                   {"C3: softshrink(-1)", wb_softshrink, -1, -0.5},
                   {"C3: softsign(1)", wb_softsign, 1, 0.5},
                   {"C3: softsign(-1)", wb_softsign, -1, -0.5},
                   {"C3: hardswish(-1)", wb_hardswish, -1, -1.0 / 3},
                   {"C3: hardswish(1)", wb_hardswish, 1, 2.0 / 3},
                   {"C3: hardsigmoid(1)", wb_hardsigmoid, 1, 2.0 / 3},
                   {"C4: selu(1)", wb_selu, 1, 1.0507009873554805},
                   {"C4: selu(-10)", wb_selu, -10, -1.7580195},
                   {"C4: elu(-1)", wb_elu, -1, -0.63212055882855767},
                   {"C4: elu(-10)", wb_elu, -10, -0.99995460007023751},
                   {"C4: leakyrelu(-1)", wb_leakyrelu, -1, -0.01},
                   {"C4: relu6(7)", wb_relu6, 7, 6},
                   {"C4: trelu(1)", wb_trelu, 1, 0},
                   {"C4: celu(-1)", wb_celu, -1, -0.63212055882855767},
                   {"C4: swish(1)", wb_swish, 1, 0.7310585786300049},
                   {"C4: softplus(1)", wb_softplus, 1, 1.3132616875182228},
                   {"C4: softplus(-1)", wb_softplus, -1, 0.31326168751822286},
                   {"C4: logsigmoid(-1)", wb_logsigmoid, -1, -1.3132616875182228},
                   {"C4: logcosh(1)", wb_logcosh, 1, 0.4337808304830272},
                   {"C5: sigmoid(0)", wb_sigmoid, 0, 0.5},
                   {"C5: hardsigmoid(0)", wb_hardsigmoid, 0, 0.5},
                   {"C5: softplus(0)", wb_softplus, 0, LN_2},
                   {"C5: logsigmoid(0)", wb_logsigmoid, 0, -LN_2},
                   {"C5: relu(0)", wb_relu, 0, 0},
                   {"C5: leakyrelu(0)", wb_leakyrelu, 0, 0},
                   {"C5: relu6(0)", wb_relu6, 0, 0},
                   {"C5: rrelu(0)", wb_rrelu, 0, 0},
                   {"C5: elu(0)", wb_elu, 0, 0},
                   {"C5: celu(0)", wb_celu, 0, 0},
                   {"C5: selu(0)", wb_selu, 0, 0},
                   {"C5: gelu(0), by tanh", wb_gelu, 0, 0},
                   {"C5: gelu(0), by erf", wb_gelu_erf, 0, 0},
                   {"C5: swish(0)", wb_swish, 0, 0},
                   {"C5: hardswish(0)", wb_hardswish, 0, 0},
                   {"C5: hardtanh(0)", wb_hardtanh, 0, 0},
                   {"C5: tanh(0)", wb_tanh, 0, 0},
                   {"C5: mish(0)", wb_mish, 0, 0},
                   {"C5: softsign(0)", wb_softsign, 0, 0},
                   {"C5: logcosh(0)", wb_logcosh, 0, 0},
                   {"C5: lisht(0)", wb_lisht, 0, 0},
                   {"C5: trelu(0)", wb_trelu, 0, 0},
                   {"C5: softshrink(0)", wb_softshrink, 0, 0},
                   {"C5: tanhshrink(0)", wb_tanhshrink, 0, 0},
                   {"C11: relu(NaN)", wb_relu, NOT_A_NUMBER, NOT_A_NUMBER},
                   {"C11: xlogx(0)", wb_xlogx, 0, 0},
                   {"C11: xlogx(NaN)", wb_xlogx, NOT_A_NUMBER, NOT_A_NUMBER},
                   {"rrelu(-1) in test mode", wb_rrelu, -1, -11.0 / 48},
                   {"xlogx(2)", wb_xlogx, 2, 2 * LN_2}};

static void has_the_known_value(void **state) {
    const struct activation *a = *state;
    const double tolerance = a->x == -10 ? 1e-6 : 1e-13;
    assert_value(a->fn(wb_scalar(WB_F64, a->x)), a->y, tolerance);
    assert_value(a->fn(wb_scalar(WB_F32, a->x)), a->y, 1e-6);
}

static void logarithms_beside_zero(void **state) { /* C11 */
    (void)state;
    wb_array *x = wb_vector(0, 0, 0, NAN, 0, 2, 0),
             *y = wb_vector(1, 0, NAN, 1, -1, INFINITY, INFINITY);
    assert_values(wb_xlogy(x, y), 0, 0, 0, NAN, NAN, 0, INFINITY, 0);
    wb_array *p[2] = {wb_vector(0, 2), wb_vector(3, 4)}, *g[2];
    assert_int_equal(wb_gradient_of(wb_sum(wb_xlogy(p[0], p[1])), 2, p, g), WB_OK);
    assert_values(g[0], 1e-6, log(3), log(4));
    assert_values(g[1], 1e-6, 0, 0.5);
    assert_null(wb_xlogy(p[0], NULL));
    assert_error(WB_ERROR_ARGUMENT, "xlogy: y is NULL");
}

static void gates_halve_a_dimension(void **state) { /* C10 */
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12});
    wb_array *y = wb_glu(x);
    assert_sizes(y, 2, 3);
    assert_values(wb_ceil(y), 0, 1, 4, 2, 5, 3, 6);
    assert_sizes(wb_glu_dim(x, -2), 2, 3);
    assert_values(wb_glu(wb_vector(3, 0)), 0, 1.5);
    assert_null(wb_glu_dim(x, 1));
    assert_error(WB_ERROR_SHAPE, "glu: dimension 1 of (4, 3) must have an even size");
    assert_null(wb_glu_dim(x, 2));
    assert_error(WB_ERROR_ARGUMENT, "glu: dimension 2 is outside an array of 2 dimensions");
}

static void slopes_are_random_in_training(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    double y[COUNT], again[COUNT], sum = 0;
    wb_array *x = wb_full(WB_F32, -1, COUNT);
    const bool before = wb_training(true);
    wb_array *once = wb_rrelu(x), *twice = wb_rrelu(x);
    assert_values(wb_rrelu(wb_vector(0, 2)), 0, 0, 2);
    (void)wb_training(before);
    assert_int_equal(wb_read_f64(once, y, COUNT), WB_OK);
    assert_int_equal(wb_read_f64(twice, again, COUNT), WB_OK);
    for (int i = 0; i < COUNT; i++) {
        assert_true(y[i] <= -0.125 && y[i] >= -1.0 / 3);
        sum += y[i];
    }
    assert_true(fabs(sum / COUNT + 11.0 / 48) < 0.01);
    assert_true(memcmp(y, again, sizeof y) != 0);
    assert_values(wb_rrelu_with(wb_vector(-2, 2), 0.5, 0.5), 0, -1, 2);
    assert_null(wb_rrelu_with(x, 0.5, 0.25));
    assert_error(WB_ERROR_ARGUMENT, "low not above high, got low 0.5, high 0.25");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {TEST(logarithms_beside_zero), TEST(gates_halve_a_dimension),
                                        TEST(slopes_are_random_in_training)};
    ADD_ROWS(&tests, activations, has_the_known_value);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_activations", &tests, NULL, NULL);
}
