/* Jacobians, Hessians, products with them in both modes, and gradients of single observations:
 * against each other, against differences, and numbers worked out by hand. */
#include "support/functions.h"
#include "support/support.h"

/* ---- forward and reverse mode agree, for every row of ops.def with a derivative ---- */

static wb_array *inner(wb_array *a, wb_array *b) { return wb_sum(wb_mul(a, b)); }

typedef struct problem {
    wb_array_fn *fn;
    void *context;
    int count;
    wb_array *arrays[3], *tangents[3];
} problem;

static wb_array *along(const problem *p, double t) {
    wb_array *moved[3];
    for (int i = 0; i < p->count; i++)
        moved[i] = wb_add(p->arrays[i], wb_mul_number(p->tangents[i], t));
    return p->fn(p->context, p->count, moved);
}

static void check_directions(test_random *r, problem *p, const char *what) {
    for (int i = 0; i < p->count; i++)
        p->tangents[i] =
            array_random(r, WB_F64, -1, 1, wb_ndim(p->arrays[i]), wb_sizes(p->arrays[i]));
    wb_array *y = p->fn(p->context, p->count, p->arrays), *pulled[3];
    wb_array *u = array_random(r, WB_F64, -1, 1, wb_ndim(y), wb_sizes(y));
    assert_int_equal(wb_pullback(y, u, p->count, p->arrays, pulled), WB_OK);
    wb_array *tangent = wb_jvp(y, p->count, p->arrays, p->tangents);
    double reverse = 0;
    for (int i = 0; i < p->count; i++)
        if (pulled[i]) reverse += wb_item(inner(pulled[i], p->tangents[i]));
    const double forward = wb_item(inner(u, tangent));
    const double h = 1e-6, slope = wb_item(inner(u, wb_sub(along(p, h), along(p, -h)))) / (2 * h);
    const double size = fmax(1, fabs(reverse));
    if (wb_failed()) fail_msg("%s: %s", what, wb_error_message());
    if (!(fabs(forward - reverse) <= 1e-9 * size))
        fail_msg("%s: %.12g forward, %.12g in reverse", what, forward, reverse);
    if (!(fabs(forward - slope) <= 1e-5 * size))
        fail_msg("%s: %.12g forward, %.12g by differences", what, forward, slope);
}

static void check_jacobian(const problem *p, const char *what) {
    wb_array *y = p->fn(p->context, p->count, p->arrays), *x = p->arrays[0];
    wb_array *J = wb_jacobian(y, x);
    if (!J) fail_msg("%s: %s", what, wb_error_message());
    assert_int_equal(wb_ndim(J), 2);
    assert_int_equal(wb_size(J, 0), wb_count(y));
    assert_int_equal(wb_size(J, 1), wb_count(x));
    wb_array *expected = wb_reshape(wb_jvp(y, 1, &x, p->tangents), -1);
    if (wb_count(y) == 0 || wb_count(x) == 0) return;
    wb_array *given = wb_matmul(J, wb_reshape(p->tangents[0], -1));
    char where[128] = "";
    if (!wb_approx(given, expected, 1e-9, 1e-9, where, sizeof where))
        fail_msg("%s: J v at %s %s", what, where, wb_error_message());
}

static wb_array *apply(void *context, int count, wb_array *const *arrays) {
    const wb_op op = *(const wb_op *)context;
    return binary[op] ? binary[op](arrays[0], arrays[count - 1]) : unary[op](arrays[0]);
}

static void modes_agree(void **state) {
    const wb_op_row *row = *state;
    wb_op op = (wb_op)(row - wb_op_rows);
    test_random r = {test_seed() + (uint64_t)op};
    if (op == WB_OP_move && !is_on_host()) return; /* its result is elsewhere than its input */
    if (compiles_kernels() && op % 4 != 0) return;
    const wb_check *c = row->check ? row->check() : NULL;
    problem p = {.fn = c ? c->call : apply, .context = &op};
    p.count = c ? c->count : row->arity == 2 ? 2 : 1;
    const double lo = c ? c->lo : row->lo, hi = c ? c->hi : row->hi;
    for (int i = 0; i < p.count; i++)
        p.arrays[i] = c ? array_random(&r, WB_F64, lo, hi, c->inputs[i].ndim, c->inputs[i].sizes)
                        : array_random(&r, WB_F64, lo, hi, 2, (const int64_t[]){3, 2});
    check_directions(&r, &p, row->name);
    check_jacobian(&p, row->name);
}

static bool is_checked(const wb_op_row *row) {
    return row->vjp && row->type_class != WB_CLASS_LOGIC && row->type_class != WB_CLASS_COMPARE &&
           row != &wb_op_rows[WB_OP_result];
}

/* ---- compositions ---- */

static void decay(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    wb_array *const *w = context;
    carries[0] = wb_tanh(wb_add(wb_matmul(*w, carries[0]), inputs[0]));
    outputs[0] = wb_square(carries[0]);
}

/* A scan: carry, input and an array of outside. */
static wb_array *scanned(void *context, int count, wb_array *const *arrays) {
    wb_array *h = arrays[0], *w = arrays[1], *x = arrays[2], *y;
    (void)context, (void)count;
    if (wb_scan(decay, &w, 1, &h, 1, &x, 1, &y) != WB_OK) return NULL;
    return wb_add(wb_sum_dims(y, 1), h);
}

static void a_scan_in_both_modes(void **state) {
    (void)state;
    test_random r = {test_seed()};
    problem p = {.fn = scanned, .count = 3};
    p.arrays[0] = array_random(&r, WB_F64, -1, 1, 1, (const int64_t[]){3});
    p.arrays[1] = array_random(&r, WB_F64, -1, 1, 2, (const int64_t[]){3, 3});
    p.arrays[2] = array_random(&r, WB_F64, -1, 1, 2, (const int64_t[]){3, 4});
    check_directions(&r, &p, "scan");
    check_jacobian(&p, "scan");
    assert_int_equal(wb_gradient_check(scanned, NULL, 3, p.arrays, 2, 1e-5), WB_OK);
}

static wb_array *attended(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return wb_attention(arrays[0], arrays[1], arrays[2], .heads = 2);
}

static void attention_in_both_modes(void **state) {
    (void)state;
    test_random r = {test_seed()};
    problem p = {.fn = attended, .count = 3};
    for (int i = 0; i < 3; i++)
        p.arrays[i] = array_random(&r, WB_F64, -1, 1, 3, (const int64_t[]){4, 3, 1});
    check_directions(&r, &p, "attention");
    check_jacobian(&p, "attention");
}

/* Third order: the Jacobian of a Hessian, x^4 at 2 has 48. */
static void a_jacobian_of_a_hessian(void **state) {
    (void)state;
    wb_array *x = wb_vector_of(WB_F64, 2, 1);
    wb_array *H = wb_hessian(wb_sum(wb_square(wb_square(x))), x);
    wb_array *J = wb_jacobian(H, x); /* (4, 2) */
    assert_float_equal(wb_at(J, 0, 0), 48, 1e-9);
    assert_float_equal(wb_at(J, 3, 1), 24, 1e-9);
    assert_float_equal(wb_at(J, 1, 0), 0, 1e-9);
}

/* ---- numbers by hand: f = x0^2 x1 + sin x1 at (2, 3) ---- */

static wb_array *by_hand(wb_array *x) {
    wb_array *a = wb_slice(x, 0, 0, 1, 1), *b = wb_slice(x, 0, 1, 2, 1);
    return wb_sum(wb_add(wb_mul(wb_square(a), b), wb_sin(b)));
}

static void hessian_by_hand(void **state) {
    (void)state;
    wb_array *x = wb_vector_of(WB_F64, 2, 3), *v = wb_vector_of(WB_F64, 1, 1), *product;
    wb_array *f = by_hand(x), *H = wb_hessian(f, x), *d = wb_hessian_diagonal(f, x);
    const double expected[4] = {6, 4, 4, -0.141120008059867};
    for (int i = 0; i < 4; i++) assert_float_equal(wb_at(H, i % 2, i / 2), expected[i], 1e-12);
    for (int i = 0; i < 2; i++) assert_float_equal(wb_at(d, i), expected[3 * i], 1e-12);
    assert_int_equal(wb_hvp(f, 1, &x, &v, &product), WB_OK);
    assert_float_equal(wb_at(product, 0), 10, 1e-12);
    assert_float_equal(wb_at(product, 1), 3.858879991940133, 1e-12);
    wb_array *g;
    assert_int_equal(wb_gradient_of(f, 1, &x, &g), WB_OK);
    wb_array *forward = wb_jvp(g, 1, &x, &v);
    assert_true(wb_approx(forward, product, 1e-12, 0, NULL, 0));
}

static void hessian_of_a_model(void **state) {
    (void)state;
    wb_seed(3);
    wb_layer *model =
        wb_chain(wb_dense(3, 4, wb_tanh, .dtype = WB_F64), wb_dense(4, 2, .dtype = WB_F64));
    wb_array *w = wb_get(model, "layers.1.weight"), *v = wb_get(model, "layers.2.weight");
    wb_array *loss = wb_sum(wb_square(wb_apply(model, wb_normal(WB_F64, 3, 5))));
    wb_array *H = wb_hessian(loss, w), *d = wb_hessian_diagonal(loss, w), *arrays[] = {w, v};
    assert_true(wb_approx(H, wb_transpose(H), 1e-9, 1e-9, NULL, 0));
    assert_true(wb_approx(wb_reshape(d, -1), wb_diag(H, 0), 1e-9, 1e-9, NULL, 0));
    wb_array *vectors[] = {wb_normal(WB_F64, 4, 3), wb_zeros(WB_F64, 2, 4)}, *products[2];
    assert_int_equal(wb_hvp(loss, 2, arrays, vectors, products), WB_OK);
    wb_array *product = wb_matmul(H, wb_reshape(vectors[0], -1));
    assert_true(wb_approx(wb_reshape(products[0], -1), product, 1e-9, 1e-9, NULL, 0));
    wb_free(model);
}

static void what_does_not_depend_is_zero(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *other = wb_vector(3, 4, 5), *v = wb_vector(1, 1), *product;
    wb_array *linear = wb_sum(wb_mul_number(x, 3));
    const double zeros[6] = {0};
    wb_array *z = array_of(WB_F32, zeros, 1, (const int64_t[]){2});
    assert_true(wb_approx(wb_jvp(other, 1, &x, &v), wb_zeros(WB_F32, 3), 0, 0, NULL, 0));
    assert_true(wb_approx(wb_jacobian(other, x), wb_zeros(WB_F32, 3, 2), 0, 0, NULL, 0));
    assert_true(wb_approx(wb_hessian(linear, x), wb_zeros(WB_F32, 2, 2), 0, 0, NULL, 0));
    assert_true(wb_approx(wb_hessian(wb_sum(other), x), wb_zeros(WB_F32, 2, 2), 0, 0, NULL, 0));
    assert_true(wb_approx(wb_hessian_diagonal(linear, x), z, 0, 0, NULL, 0));
    assert_int_equal(wb_hvp(linear, 1, &x, &v, &product), WB_OK);
    assert_true(wb_approx(product, z, 0, 0, NULL, 0));
}

/* ---- single observations ---- */

static wb_array *squared_error(void *context, int count, wb_array *const *inputs) {
    wb_layer *model = context;
    (void)count;
    return wb_sum(wb_square(wb_sub(wb_apply(model, inputs[0]), inputs[1])));
}

static void each_observation_alone(void **state) {
    (void)state;
    wb_seed(5);
    wb_layer *model = wb_chain(wb_conv(.kernel = {2, 2}, .in = 1, .out = 2), wb_flatten(),
                               wb_dense(8, 3, wb_tanh), wb_dense(3, 1, .bias = false));
    wb_array *x = wb_normal(WB_F32, 3, 3, 1, 4), *y = wb_normal(WB_F32, 1, 4);
    wb_array *inputs[] = {x, y}, *each[3], *sum[3];
    wb_array *arrays[] = {wb_get(model, "layers.1.weight"), wb_get(model, "layers.3.bias"),
                          wb_get(model, "layers.4.weight")};
    assert_int_equal(wb_gradient_each(squared_error, model, 2, inputs, 3, arrays, each), WB_OK);
    (void)wb_training(true);
    wb_array *loss = squared_error(model, 2, inputs);
    (void)wb_training(false);
    assert_int_equal(wb_gradient_of(loss, 3, arrays, sum), WB_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_size(each[i], wb_ndim(arrays[i])), 4);
        wb_array *total = wb_sum_dims(each[i], -1);
        total = wb_reshape_make(total, wb_ndim(sum[i]), wb_sizes(sum[i]));
        assert_true(wb_approx(total, sum[i], 1e-4, 1e-4, NULL, 0));
    }
    for (int n = 0; n < 4; n++) {
        wb_array *one[] = {wb_getobs(x, n, n + 1), wb_getobs(y, n, n + 1)}, *g[3];
        (void)wb_training(true);
        wb_array *own = squared_error(model, 2, one);
        (void)wb_training(false);
        assert_int_equal(wb_gradient_of(own, 3, arrays, g), WB_OK);
        wb_array *slice = wb_reshape(wb_getobs(each[1], n, n + 1), -1);
        assert_true(wb_approx(slice, g[1], 1e-4, 1e-5, NULL, 0));
    }
    wb_free(model);
}

/* ---- mistakes ---- */

static void mistakes_are_named(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *whole = wb_vector_of(WB_I32, 1, 2), *v = wb_vector(1, 2, 3);
    wb_array *y = wb_square(x), *none = NULL, *product = x;
    assert_null(wb_jvp(NULL, 1, &x, &x));
    assert_error(WB_ERROR_ARGUMENT, "jvp: y is NULL");
    assert_null(wb_jvp(y, 1, &x, &v));
    assert_error(WB_ERROR_SHAPE, "jvp: tangent 0 must have the sizes of array 0, (2), got (3)");
    assert_null(wb_jvp(y, 0, &x, &x));
    assert_error(WB_ERROR_ARGUMENT, "jvp: at least one array is needed, got 0");
    assert_null(wb_jvp(y, 1, &x, &none));
    assert_error(WB_ERROR_ARGUMENT, "jvp: tangent 0 is NULL");
    assert_null(wb_jacobian(whole, x));
    assert_error(WB_ERROR_DTYPE, "jacobian: y must have a floating type, got i32");
    assert_null(wb_jacobian(y, whole));
    assert_error(WB_ERROR_DTYPE, "jacobian: x must have a floating type, got i32");
    assert_null(wb_hessian(y, x));
    assert_error(WB_ERROR_GRADIENT, "the loss must be one number");
    assert_null(wb_hessian_diagonal(NULL, x));
    assert_error(WB_ERROR_ARGUMENT, "hessian_diagonal: the loss is NULL");
    assert_int_equal(wb_hvp(wb_sum(y), 1, &x, &v, &product), WB_ERROR_SHAPE);
    assert_null(product);
    assert_error(WB_ERROR_SHAPE, "hvp: vector 0 must have the sizes of array 0");
    assert_int_equal(wb_gradient_each(NULL, NULL, 1, &x, 1, &x, &product), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "gradient_each: the loss function is NULL");
    assert_int_equal(wb_gradient_each(squared_error, NULL, 0, &x, 1, &x, &product),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "at least one input and one array are needed, got 0 and 1");
}

static void norms_over_a_batch_have_no_single_gradients(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 2), wb_batchnorm(2), wb_dense(2, 1));
    wb_array *inputs[] = {wb_ones(WB_F32, 2, 4), wb_ones(WB_F32, 1, 4)}, *each;
    wb_array *weight = wb_get(model, "layers.1.weight");
    assert_int_not_equal(wb_gradient_each(squared_error, model, 2, inputs, 1, &weight, &each),
                         WB_OK);
    assert_null(each);
    assert_error(WB_ERROR_ARGUMENT, "training needs two or more");
    wb_free(model);
}

/* Also where the cotangent is one number everywhere, which is as much an array as any other. */
static void a_pullback_is_differentiated_by_its_cotangent(void **state) {
    (void)state;
    const double numbers[] = {0, 1};
    wb_array *x = wb_from(WB_F64, numbers, 2), *c = wb_ones(WB_F64, 2), *gx, *gc;
    assert_int_equal(wb_pullback(wb_exp(x), c, 1, &x, &gx), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(gx), 1, &c, &gc), WB_OK);
    assert_values(gc, 1e-12, 1, exp(1));
    c = wb_full(WB_F64, 3, 1);
    assert_int_equal(wb_pullback(wb_reshape(wb_sum(wb_exp(x)), 1), c, 1, &x, &gx), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(gx), 1, &c, &gc), WB_OK);
    assert_values(gc, 1e-12, 1 + exp(1));
}

int main(void) {
    static char names[WB_OP_COUNT][80];
    static test_list tests;
    (void)test_seed();
    for (int op = 0; op < WB_OP_COUNT; op++) {
        if (!is_checked(&wb_op_rows[op])) continue;
        (void)snprintf(names[op], sizeof names[op], "J v, its transpose and J of %s agree",
                       wb_op_rows[op].name);
        add_test(&tests, (struct CMUnitTest){names[op], modes_agree, open_row, close_row,
                                             (void *)(uintptr_t)&wb_op_rows[op]});
    }
    const struct CMUnitTest others[] = {TEST(a_scan_in_both_modes),
                                        TEST(attention_in_both_modes),
                                        TEST(a_jacobian_of_a_hessian),
                                        TEST(hessian_by_hand),
                                        TEST(hessian_of_a_model),
                                        TEST(what_does_not_depend_is_zero),
                                        TEST(a_pullback_is_differentiated_by_its_cotangent),
                                        TEST(each_observation_alone),
                                        TEST(mistakes_are_named),
                                        TEST(norms_over_a_batch_have_no_single_gradients)};
    ADD_TESTS(&tests, others);
    return run_test_list("gradient/test_further", &tests, NULL, NULL);
}
