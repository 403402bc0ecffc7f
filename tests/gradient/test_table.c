/* Every row of ops.def that has a derivative, against differences in f64: the gradient and the
 * gradient of the gradient. */
#include "support/functions.h"
#include "support/support.h"

enum { ROUNDS = 3 };

static wb_array *apply(void *context, int count, wb_array *const *arrays) {
    const wb_op op = *(const wb_op *)context;
    return binary[op] ? binary[op](arrays[0], arrays[count - 1]) : unary[op](arrays[0]);
}

typedef struct sizes {
    int ndim;
    int64_t sizes[3];
} sizes;

static void check(wb_array_fn *fn, void *context, int count, wb_array *const *arrays,
                  const char *what) {
    if (wb_gradient_check(fn, context, count, arrays, 2, 0) != WB_OK)
        fail_msg("%s: %s", what, wb_error_message());
}

/* The lists of sizes that are checked: all, or one of the first two where each has kernels of its
 * own. */
static size_t first_of(wb_op op) { return compiles_kernels() ? op % 2 : 0; }
static size_t end_of(wb_op op, size_t count) {
    return compiles_kernels() ? first_of(op) + 1 : count;
}

static void check_unary(test_random *r, wb_op op, const wb_op_row *row) {
    static const sizes lists[] = {{2, {3, 2}}, {1, {1}}, {0, {0}}, {1, {0}}, {3, {2, 1, 3}}};
    enum { LISTS = sizeof lists / sizeof *lists };
    for (size_t i = first_of(op); i < end_of(op, LISTS); i++) {
        wb_array *x = array_random(r, WB_F64, row->lo, row->hi, lists[i].ndim, lists[i].sizes);
        check(apply, &op, 1, &x, row->name);
    }
}

static void check_binary(test_random *r, wb_op op, const wb_op_row *row) {
    static const sizes lists[][2] = {
        {{2, {3, 2}}, {2, {3, 2}}},    {{2, {3, 1}}, {2, {1, 2}}}, {{1, {2}}, {0, {0}}},
        {{0, {0}}, {2, {2, 3}}},       {{1, {3}}, {2, {3, 2}}},    {{2, {3, 2}}, {1, {1}}},
        {{3, {2, 1, 2}}, {2, {1, 3}}}, {{0, {0}}, {0, {0}}},       {{1, {1}}, {2, {1, 1}}},
        {{2, {0, 2}}, {2, {1, 2}}},    {{1, {1}}, {1, {0}}}};
    enum { LISTS = sizeof lists / sizeof *lists };
    for (size_t i = first_of(op); i < end_of(op, LISTS); i++) {
        wb_array *inputs[2];
        for (int k = 0; k < 2; k++)
            inputs[k] =
                array_random(r, WB_F64, row->lo, row->hi, lists[i][k].ndim, lists[i][k].sizes);
        check(apply, &op, 2, inputs, row->name);
        wb_array *twice[1] = {inputs[0]};
        check(apply, &op, 1, twice, row->name);
    }
}

static void check_example(test_random *r, const wb_op_row *row) {
    const wb_check *c = row->check();
    wb_array *inputs[3];
    for (int k = 0; k < c->count; k++)
        inputs[k] = array_random(r, WB_F64, c->lo, c->hi, c->inputs[k].ndim, c->inputs[k].sizes);
    check(c->call, NULL, c->count, inputs, row->name);
}

static void derivative_agrees(void **state) {
    const wb_op_row *row = *state;
    const wb_op op = (wb_op)(row - wb_op_rows);
    test_random r = {test_seed() + (uint64_t)op};
    for (int i = 0; i < ROUNDS; i++) {
        if (row->check)
            check_example(&r, row);
        else if (row->arity == 1 || row->expand)
            check_unary(&r, op, row);
        else if (row->arity == 2)
            check_binary(&r, op, row);
        else
            fail_msg("row %s has a derivative and no example", row->name);
    }
}

/* Rows that take bool are no functions of numbers; `part` is checked with max pooling. */
static bool is_checked(const wb_op_row *row) {
    return row->vjp && row->type_class != WB_CLASS_LOGIC && row != &wb_op_rows[WB_OP_result];
}

/* ---- compositions that are no rows ---- */

#define COMPOSED(name, expression)                                                                 \
    static wb_array *name(void *context, int count, wb_array *const *arrays) {                     \
        wb_array *x = arrays[0], *y = count > 1 ? arrays[1] : NULL;                                \
        (void)context, (void)y;                                                                    \
        return expression;                                                                         \
    }
COMPOSED(variance, wb_var_dims(x, true, 1))
COMPOSED(total_variance, wb_square(wb_var(x, false)))
COMPOSED(normalised, wb_normalise(x, 1e-3, 0))
COMPOSED(smallest, wb_minimum_dims(wb_square(x), 0))
COMPOSED(smallest_of_all, wb_square(wb_minimum(x)))
COMPOSED(stacked, wb_square(wb_stack(1, x, y, wb_mul(x, y))))
COMPOSED(turned, wb_mul(wb_transpose(wb_square(x)), y))
COMPOSED(flipped, wb_mul(wb_flip(x, -1), wb_square(x)))
COMPOSED(vector_product, wb_square(wb_matmul_transposed(x, y, true, false)))
COMPOSED(both_turned, wb_square(wb_matmul_transposed(x, y, true, true)))
COMPOSED(one_turned, wb_square(wb_matmul_transposed(x, wb_square(y), false, true)))
COMPOSED(quotient_of_itself, wb_div(x, wb_sum(wb_square(x))))
COMPOSED(fourth_power, wb_pow_number(x, 4))
COMPOSED(cut_and_back, wb_mul(wb_cast(wb_cast(x, WB_F64), WB_F64), x))
COMPOSED(numbers_left, wb_sub(wb_number(1), wb_div(wb_number(2), x)))
COMPOSED(late_scale, wb_mul(wb_late(0.3), wb_square(x)))
COMPOSED(with_parameters, wb_add(wb_elu_with(x, 0.7), wb_celu_with(x, 0.7)))
COMPOSED(sum_of_a_row_times_itself, wb_mul(wb_sum_dims(wb_square(x), 0), x))
COMPOSED(largest_twice, wb_mul(wb_maximum_dims(x, 0), wb_maximum(wb_square(x))))
COMPOSED(gathered_turned,
         wb_gather(wb_square(x), wb_from(WB_I32, ((const int32_t[]){1, 1, 0}), 3), 0))
COMPOSED(softmax_of_rows, wb_square(wb_softmax_dims(wb_square(x), 0, 1)))
COMPOSED(clamped, wb_clamp(wb_square(x), 0.5, 2))
COMPOSED(power_of_two, wb_number_pow(2, wb_number_div(3, wb_number_sub(4, x))))
COMPOSED(product_with_log, wb_add(wb_xlogy(x, y), wb_xlogx(x)))
COMPOSED(random_slopes_at_rest, wb_rrelu(wb_mul(x, wb_square(x))))
COMPOSED(gated, wb_glu_dim(wb_square(x), 1))
COMPOSED(deviation, wb_square(wb_std_dims(x, true, 1)))
COMPOSED(norms, wb_add(wb_norm_dims(x, 2, 0), wb_mul(wb_norm(x, 3), wb_norm(x, 1))))
COMPOSED(largest_size, wb_square(wb_norm_dims(x, INFINITY, 0)))
COMPOSED(dotted, wb_square(wb_dot(wb_square(x), y)))
COMPOSED(products, wb_mul(wb_prod_dims(wb_sin(x), 1), wb_prod(y)))
COMPOSED(running_products, wb_square(wb_cumprod(wb_sin(x), 1)))
COMPOSED(triangle, wb_mul(wb_tril(wb_square(x), 1), wb_triu(x, -1)))
COMPOSED(diagonal, wb_square(wb_diag(wb_square(x), 1)))
COMPOSED(spread_diagonal, wb_square(wb_diag(wb_square(x), -1)))
COMPOSED(outer_product, wb_square(wb_outer(wb_square(x), y)))
COMPOSED(repeated, wb_mul(wb_repeat(wb_square(x), 2, 0), wb_tile(x, 2, 1)))
COMPOSED(rolled, wb_mul(wb_roll(wb_square(x), 1, 0), x))
COMPOSED(largest_three, wb_square(wb_top_k(wb_square(x), 3, 0, NULL)))
COMPOSED(taken, wb_square(wb_take_along(wb_square(x), wb_argsort(y, 1, false), 1)))
COMPOSED(assigned, wb_mul(wb_slice_set(wb_square(x), wb_square(y), 1, 3, WB_END, -2), x))
COMPOSED(einstein, wb_square(wb_einsum("ijb,jkb->kb", wb_square(x), y)))
COMPOSED(einstein_trace, wb_square(wb_einsum("iij,kj", wb_square(x), y)))
COMPOSED(pool_three,
         wb_square(wb_maxpool_op(wb_reshape(x, 2, 3, 1, 1), .kernel = {2, 2}, .stride = {1, 1})))

static const struct composition {
    const char *name;
    wb_array_fn *fn;
    int count;
    sizes inputs[2];
    double low, high;
} compositions[] = {
    {"the gradient of a corrected variance along a dimension", variance, 1, {{2, {2, 4}}}, -2, 2},
    {"the gradient of a squared variance of everything", total_variance, 1, {{2, {2, 3}}}, -2, 2},
    {"the gradient of normalised columns", normalised, 1, {{2, {4, 2}}}, -2, 2},
    {"the gradient of the smallest of each column", smallest, 1, {{2, {3, 2}}}, 0.2, 2},
    {"the gradient of the smallest of all", smallest_of_all, 1, {{2, {3, 2}}}, 0.2, 2},
    {"the gradient of a stack", stacked, 2, {{1, {3}}, {1, {3}}}, -2, 2},
    {"the gradient of a transpose times a matrix", turned, 2, {{2, {3, 2}}, {2, {2, 3}}}, -2, 2},
    {"the gradient of x times its mirror image", flipped, 1, {{2, {2, 3}}}, -2, 2},
    {"the gradient of a transposed matrix times a vector",
     vector_product,
     2,
     {{2, {3, 2}}, {1, {3}}},
     -2,
     2},
    {"the gradient of a product of two transposes",
     both_turned,
     2,
     {{2, {3, 2}}, {2, {4, 3}}},
     -2,
     2},
    {"the gradient of a product with a transpose",
     one_turned,
     2,
     {{2, {2, 3}}, {2, {4, 3}}},
     -2,
     2},
    {"the gradient of x over a sum of x", quotient_of_itself, 1, {{1, {4}}}, 0.5, 2},
    {"the gradient of a power by a number, of negative numbers too",
     fourth_power,
     1,
     {{1, {4}}},
     -2,
     2},
    {"the gradient through casts to the same type", cut_and_back, 1, {{1, {4}}}, -2, 2},
    {"the gradient with numbers on the left", numbers_left, 1, {{1, {4}}}, 0.5, 2},
    {"the gradient with a late number", late_scale, 1, {{1, {4}}}, -2, 2},
    {"the gradient of elu and celu with another parameter",
     with_parameters,
     1,
     {{1, {4}}},
     -2,
     -0.2},
    {"the gradient of a sum that is spread again",
     sum_of_a_row_times_itself,
     1,
     {{2, {3, 2}}},
     -2,
     2},
    {"the gradient of two largest", largest_twice, 1, {{2, {3, 2}}}, 0.2, 2},
    {"the gradient of a gather with repetitions", gathered_turned, 1, {{2, {2, 3}}}, -2, 2},
    {"the gradient of a softmax over everything", softmax_of_rows, 1, {{2, {2, 3}}}, -1, 1},
    {"the gradient of clamp", clamped, 1, {{2, {3, 2}}}, -2, 2},
    {"the gradient of a number's power, quotient, difference", power_of_two, 1, {{1, {4}}}, -2, 2},
    {"the gradient of xlogy and xlogx", product_with_log, 2, {{1, {4}}, {1, {4}}}, 0.5, 2},
    {"the gradient of rrelu in test mode", random_slopes_at_rest, 1, {{1, {4}}}, -2, 2},
    {"the gradient of glu", gated, 1, {{2, {3, 4}}}, -2, 2},
    {"the gradient of std", deviation, 1, {{2, {2, 4}}}, -2, 2},
    {"the gradient of norms", norms, 1, {{2, {3, 2}}}, 0.2, 2},
    {"the gradient of the largest size", largest_size, 1, {{2, {3, 2}}}, 0.2, 2},
    {"the gradient of dot", dotted, 2, {{2, {3, 2}}, {2, {3, 2}}}, -2, 2},
    {"the gradient of prod", products, 2, {{2, {2, 5}}, {1, {3}}}, -2, 2},
    {"the gradient of cumprod", running_products, 1, {{2, {2, 5}}}, -2, 2},
    {"the gradient of triangles", triangle, 1, {{2, {3, 2}}}, -2, 2},
    {"the gradient of a diagonal", diagonal, 1, {{2, {2, 4}}}, -2, 2},
    {"the gradient of a diagonal's matrix", spread_diagonal, 1, {{1, {3}}}, -2, 2},
    {"the gradient of outer", outer_product, 2, {{1, {3}}, {1, {2}}}, -2, 2},
    {"the gradient of repeat and tile", repeated, 1, {{2, {2, 3}}}, -2, 2},
    {"the gradient of roll", rolled, 1, {{2, {3, 2}}}, -2, 2},
    {"the gradient of top_k", largest_three, 1, {{2, {5, 2}}}, 0.2, 4},
    {"the gradient of values at positions", taken, 2, {{2, {2, 4}}, {2, {2, 4}}}, -2, 2},
    {"the gradient of an assignment", assigned, 2, {{2, {2, 4}}, {2, {2, 2}}}, -2, 2},
    {"the gradient of einsum", einstein, 2, {{3, {2, 3, 2}}, {3, {3, 2, 2}}}, -2, 2},
    {"the gradient of a trace", einstein_trace, 2, {{3, {2, 2, 3}}, {2, {2, 3}}}, -2, 2},
    {"the gradient of overlapping max pools", pool_three, 1, {{2, {2, 3}}}, 0.2, 2},
};

static void composition_agrees(void **state) {
    const struct composition *c = *state;
    test_random r = {test_seed() ^ (uint64_t)(c - compositions)};
    wb_array *inputs[2];
    for (int k = 0; k < c->count; k++)
        inputs[k] =
            array_random(&r, WB_F64, c->low, c->high, c->inputs[k].ndim, c->inputs[k].sizes);
    check(c->fn, NULL, c->count, inputs, c->name);
}

static void wrong_derivatives_are_noticed(void **state) {
    (void)state;
    const double numbers[2] = {0.5, 1.5};
    wb_array *x = array_of(WB_F64, numbers, 1, (const int64_t[]){2});
    wb_op op = WB_OP_square;
    assert_int_equal(wb_gradient_check(apply, &op, 1, &x, 1, 0), WB_OK);
    assert_int_equal(wb_gradient_check(apply, &op, 1, &x, 1, 1e-14),
                     WB_ERROR_GRADIENT); /* tighter than differences are */
    wb_clear_error();
}

static bool run_group(const char *name, struct CMUnitTest *tests, size_t count) {
    return _cmocka_run_group_tests(name, tests, count, NULL, NULL) == 0;
}

int main(void) {
    static char names[WB_OP_COUNT][64];
    struct CMUnitTest tests[WB_OP_COUNT + sizeof compositions / sizeof *compositions + 1];
    size_t count = 0;
    (void)test_seed();
    for (int op = 0; op < WB_OP_COUNT; op++) {
        if (!is_checked(&wb_op_rows[op])) continue;
        (void)snprintf(names[op], sizeof names[op], "the derivative of %s agrees with differences",
                       wb_op_rows[op].name);
        tests[count++] = (struct CMUnitTest){names[op], derivative_agrees, open_row, close_row,
                                             (void *)(uintptr_t)&wb_op_rows[op]};
    }
    for (size_t i = 0; i < sizeof compositions / sizeof *compositions; i++)
        tests[count++] = TEST_ROW(&compositions[i], composition_agrees);
    tests[count++] = (struct CMUnitTest)TEST(wrong_derivatives_are_noticed);
    return run_group("gradient/test_table", tests, count) ? 0 : 1;
}
