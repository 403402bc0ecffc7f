/* Rule 1: evaluation never removes edges; a gradient that meets a detached array says so. */
#include "values/modes.h"

typedef enum when { NOTHING_READ, LOSS_READ, MIDDLE_READ, ALL_READ } when;

static void gradients(when read, double *out) {
    const double numbers[6] = {0.1, -0.5, 0.7, 1.5, -1.1, 0.3};
    wb_array *w = array_of(WB_F64, numbers, 2, (const int64_t[]){3, 2});
    wb_array *x = array_of(WB_F64, numbers, 2, (const int64_t[]){2, 3});
    wb_array *h = wb_relu(wb_matmul(w, x));
    if (read == MIDDLE_READ || read == ALL_READ) assert_int_equal(wb_eval(h), WB_OK);
    wb_array *pooled = wb_maxpool_op(wb_reshape(h, 3, 3, 1, 1), .kernel = {2, 2}, .stride = {1, 1});
    if (read == ALL_READ) assert_int_equal(wb_eval(pooled), WB_OK);
    wb_array *p = wb_softmax(wb_reshape(pooled, 2, 2));
    if (read == ALL_READ) assert_int_equal(wb_eval(p), WB_OK);
    wb_array *l = wb_sum(wb_square(wb_add(p, wb_maximum_dims(h, 0, 1))));
    if (read == LOSS_READ || read == ALL_READ) (void)wb_item(l);
    wb_array *g[2];
    assert_int_equal(wb_gradient_of(l, 2, (wb_array *[]){w, x}, g), WB_OK);
    for (int i = 0; i < 2; i++) {
        if (!g[i]) fail_msg("gradient %d is missing", i);
        assert_int_equal(wb_read_f64(g[i], out + 6 * i, 6), WB_OK);
    }
}

static void reading_first_leaves_the_same_gradients(void **state) {
    (void)state;
    double wanted[12], got[12];
    gradients(NOTHING_READ, wanted);
    for (when read = LOSS_READ; read <= ALL_READ; read++) {
        gradients(read, got);
        for (int i = 0; i < 12; i++)
            if (!(fabs(got[i] - wanted[i]) <= 1e-12))
                fail_msg("read %d: gradient %d is %.17g, not %.17g", read, i, got[i], wanted[i]);
    }
}

static void a_gradient_may_be_taken_twice(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *l = wb_sum(wb_exp(wb_square(x))), *g[1], *h[1];
    (void)wb_item(l);
    assert_int_equal(wb_gradient_of(l, 1, &x, g), WB_OK);
    assert_int_equal(wb_eval(g[0]), WB_OK);
    assert_int_equal(wb_gradient_of(l, 1, &x, h), WB_OK);
    assert_true(wb_approx(g[0], h[0], 1e-6, 0, NULL, 0));
    assert_int_equal(wb_gradient_of(wb_sum(g[0]), 1, &x, h), WB_OK);
    assert_non_null(h[0]);
    for (int i = 0; i < 3; i++) {
        const double v = i + 1.0;
        assert_true(fabs(wb_at(h[0], i) / ((2 + 4 * v * v) * exp(v * v)) - 1) < 1e-4);
    }
}

static void a_detached_array_is_named(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *g[1];
    wb_scope_open();
    wb_array *y = wb_keep(wb_reshape(wb_square(x), 3, 1));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &x, g), WB_ERROR_GRADIENT);
    assert_null(g[0]);
    assert_error(WB_ERROR_GRADIENT, "(3, 1) of type f32 lost its recipe when its scope was closed, "
                                    "so the gradient does not reach array 0 (3)");
    wb_free(y);
}

static wb_array *times_kept(void *context, int count, wb_array *const *arrays) {
    (void)count;
    return wb_mul(arrays[0], (wb_array *)context);
}

/* The checker makes what it differentiates: a kept array cannot depend on it. */
static void a_kept_array_is_a_constant_for_the_checker(void **state) {
    (void)state;
    wb_array *x = wb_from(WB_F64, ((const double[]){1, 2, 3}), 3), *g[1], *h[1];
    wb_scope_open();
    wb_array *c = wb_keep(wb_add_number(wb_ones(WB_F64, 3), 1));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_gradient_check(times_kept, c, 1, &x, 2, 0), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(wb_mul(x, c)), 1, &x, g), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(g[0]), 1, &x, h), WB_OK);
    assert_null(h[0]);
    wb_free(c);
}

static void the_detached_array_itself_has_a_gradient(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *g[1];
    wb_scope_open();
    wb_array *y = wb_keep(wb_square(x));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(y)), 1, &y, g), WB_OK);
    assert_values(g[0], 1e-6, 2, 8, 18);
    wb_free(y);
}

static void null_means_that_nothing_depends(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *other = wb_vector(1), *g[2];
    assert_int_equal(wb_gradient_of(wb_sum(x), 2, (wb_array *[]){other, x}, g), WB_OK);
    assert_null(g[0]);
    assert_values(g[1], 0, 1, 1, 1);
    assert_int_equal(wb_gradient_of(wb_sum(wb_stop_gradient(x)), 1, &x, g), WB_OK);
    assert_null(g[0]);
    assert_false(wb_failed());
}

/* What lost its recipe stands for an error only where it may have been made of what is wanted. */
static void a_detached_array_of_others_is_no_error(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *other = wb_normal(WB_F32, 2), *g[2];
    wb_scope_open();
    wb_array *y = wb_keep(wb_square(x));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_array *newer = wb_vector(3, 4), *loss = wb_sum(wb_mul(y, newer));
    assert_int_equal(wb_gradient_of(loss, 2, (wb_array *[]){other, newer}, g), WB_OK);
    assert_null(g[0]);
    assert_values(g[1], 0, 1, 4);
    assert_int_equal(wb_pullback(wb_square(y), y, 1, &other, g), WB_OK);
    assert_null(g[0]);
    assert_int_equal(wb_gradient_of(loss, 2, (wb_array *[]){other, x}, g), WB_ERROR_GRADIENT);
    assert_error(
        WB_ERROR_GRADIENT,
        "lost its recipe when its scope was closed, so the gradient does not reach array 1");
    wb_array *z = wb_mul(x, other); /* made of x, but is none of what y is made of */
    assert_int_equal(wb_gradient_of(loss, 1, &z, g), WB_OK);
    assert_null(g[0]);
    wb_free(y);
}

static void a_stop_before_a_detached_array_is_no_error(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *g[1];
    wb_scope_open();
    wb_array *y = wb_keep(wb_square(x));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(wb_add(wb_stop_gradient(y), x)), 1, &x, g), WB_OK);
    assert_values(g[0], 0, 1, 1);
    wb_free(y);
}

/* ---- a model: an evaluation in the middle of the forward pass ---- */

static bool reads_in_the_middle, closes_in_the_middle;

static wb_array *watched_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *h = wb_apply(wb_get_layer(model, "layers.1"), batch->x);
    if (reads_in_the_middle) (void)wb_item(wb_sum(h));
    if (closes_in_the_middle) { /* a scope that closes is no reason to cut what lies outside it */
        wb_scope_open();
        (void)wb_item(wb_mean(wb_square(h)));
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    wb_array *l = wb_mse(wb_apply(wb_get_layer(model, "layers.2"), h), batch->y);
    if (reads_in_the_middle) (void)wb_item(l);
    return l;
}

static void reading_inside_a_loss_leaves_the_same_gradients(void **state) {
    (void)state;
    wb_seed(3);
    wb_layer *model = wb_chain(wb_dense(3, 5, wb_tanh), wb_dense(5, 2));
    const wb_batch batch = {.x = wb_uniform(WB_F32, 3, 7), .y = wb_uniform(WB_F32, 2, 7)};
    wb_array *wanted = NULL;
    for (int i = 0; i < 4; i++) {
        reads_in_the_middle = (i & 1) != 0, closes_in_the_middle = (i & 2) != 0;
        wb_gradients *g;
        wb_array *l = wb_withgradient(watched_loss, model, &batch, NULL, &g);
        assert_non_null(l);
        if (i & 1) assert_true(isfinite(wb_item(l)));
        wb_array *got = wb_gradients_get(g, "layers.1.weight");
        assert_non_null(got);
        if (i == 0) wanted = got;
        char where[128] = "";
        if (!wb_approx(got, wanted, 1e-5, 1e-7, where, sizeof where)) fail_msg("%d: %s", i, where);
    }
    wb_free(model);
}

static void reading_keeps_the_recipe(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *y = wb_exp(x), *z = wb_keep(wb_square(y));
    assert_int_equal(wb_eval(z, y), WB_OK);
    assert_int_equal(y->ninputs, 1);
    assert_int_equal(z->ninputs, 1);
    assert_false(z->flags & WB_NODE_DETACHED);
    wb_free(z);
}

static void a_closing_scope_takes_the_recipe(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *y = wb_keep(wb_exp(wb_vector(1, 2, 3)));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(y->ninputs, 0);
    assert_true(y->flags & WB_NODE_DETACHED);
    wb_free(y);
}

/* ---- largest ones ---- */

/* The gradient of a largest one finds its place again in another plan, which may round sums of the
 * recipe in another way: b, which is added to all, gets a share of one from each column. */
static void share_is(wb_array *most, wb_array *b, double wanted, const char *what) {
    wb_array *loss = wb_sum(most), *g;
    assert_true(isfinite(wb_item(loss)));
    assert_int_equal(wb_gradient_of(loss, 1, &b, &g), WB_OK);
    if (!(fabs(wb_item(g) - wanted) < 1e-3)) fail_msg("%s: %g, not %g", what, wb_item(g), wanted);
}

/* Into three places, one of which may stay as it is. */
static wb_array *most_of_three(wb_array *y, bool is_least) {
    const int64_t count = wb_count(y);
    wb_array *place = wb_mod(wb_iota(WB_I64, 0, count), wb_number(3));
    wb_array *base = wb_full(WB_F32, is_least ? 100 : -100, 3);
    y = wb_reshape(y, count);
    return is_least ? wb_scatter_min(base, place, y, 0) : wb_scatter_max(base, place, y, 0);
}

static void the_place_of_a_maximum_is_found_again(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int i = 0; i < 60; i++) {
        wb_scope_open();
        const int64_t sizes[] = {1 + random_below(&r, 70), 1 + random_below(&r, 9)};
        char what[64];
        wb_array *x = array_random(&r, WB_F32, -2, 2, 2, sizes);
        wb_array *w = array_random(&r, WB_F32, -2, 2, 2, sizes), *b = wb_copy(wb_vector(0.3));
        wb_array *y = wb_mul(x, w);
        if (i % 3 == 1) y = wb_mul(wb_softmax_dims(y, i % 2), w);
        if (i % 3 == 2) y = wb_mul(wb_normalise(y, 1e-5, i % 2), w);
        y = wb_add(y, b);
        const int dim = i / 3 % 2;
        wb_array *most = i % 4 ? wb_maximum_dims(y, dim) : wb_minimum_dims(y, dim);
        (void)snprintf(what, sizeof what, "case %d of (%d, %d)", i, (int)sizes[0], (int)sizes[1]);
        share_is(most, b, (double)sizes[1 - dim], what);
        share_is(most_of_three(y, i % 4 == 0), b, fmin(3, (double)wb_count(y)), what);
        wb_scope_close();
    }
}

/* ---- bits ---- */

enum { VALUES = 24, ELEMENTS = 300 };

static wb_array *random_element(test_random *r, wb_array *const *made, int count) {
    wb_array *x = made[random_below(r, count)], *y = made[random_below(r, count)];
    switch (random_below(r, 9)) {
    case 0:
        return wb_add(x, y);
    case 1:
        return wb_sub(x, y);
    case 2:
    case 3:
    case 4:
        return wb_mul(x, y);
    case 5:
        return wb_mul_number(x, 0.37);
    case 6:
        return wb_add_number(x, 0.1);
    case 7:
        return wb_sin(x);
    default:
        return wb_neg(x);
    }
}

/* An elementwise expression, the same for the same seed; in the middle some values are read, or
 * have further users. */
static void bits_of_expression(uint64_t seed, wb_dtype dtype, int reads, void *bits) {
    test_random r = {seed}, more = {seed + (uint64_t)reads};
    wb_array *made[VALUES];
    const int64_t count = ELEMENTS;
    wb_scope_open();
    int n = 0;
    for (; n < 3; n++) made[n] = array_random(&r, dtype, -2, 2, 1, &count);
    for (; n < VALUES; n++) {
        made[n] = random_element(&r, made, n);
        if (reads == 1 && random_below(&more, 3) == 0) assert_int_equal(wb_eval(made[n]), WB_OK);
        if (reads == 2 && random_below(&more, 3) == 0)
            assert_false(isnan(wb_item(wb_maximum(wb_mul(made[n], made[random_below(&more, n)])))));
    }
    assert_int_equal(wb_read(made[n - 1], bits, ELEMENTS * wb_dtype_size(dtype)), WB_OK);
    wb_scope_close();
}

static void an_elementwise_value_has_the_same_bits_in_every_plan(void **state) {
    (void)state;
    for (int i = 0; i < cases_of(200); i++) {
        const wb_dtype dtype = i % 2 ? WB_F32 : widest();
        double bits[3][ELEMENTS];
        for (int reads = 0; reads < 3; reads++)
            bits_of_expression(test_seed() + (uint64_t)i, dtype, reads, bits[reads]);
        const size_t size = ELEMENTS * wb_dtype_size(dtype);
        assert_memory_equal(bits[0], bits[1], size);
        assert_memory_equal(bits[0], bits[2], size);
    }
}

/* ---- numbers without an array ---- */

static void by_item(wb_array *x) { assert_true(isfinite(wb_item(x))); }
static void by_evaluation(wb_array *x) { assert_int_equal(wb_eval(x), WB_OK); }
static void by_keeping(wb_array *x) { wb_free(wb_keep(x)); }
static void by_copy(wb_array *x) { assert_true(isfinite(wb_item(wb_copy(x)))); }
static void by_comparison(wb_array *x) { assert_true(wb_approx(x, x, 0, 0, NULL, 0)); }
static void by_reading(wb_array *x) {
    double number;
    assert_int_equal(wb_read_f64(x, &number, 1), WB_OK);
}
static void by_lending(wb_array *x) {
    assert_non_null(wb_read_begin(x));
    wb_read_end(x);
}
static void by_showing(wb_array *x) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(wb_show_array(file, x), WB_OK);
    (void)fclose(file);
    free(text);
}
static void (*const readers[])(wb_array *x) = {
    by_item, by_evaluation, by_keeping, by_copy, by_comparison, by_reading, by_lending, by_showing};

/* A number is read; then expressions are made in which the library uses the same one. */
static void a_number_that_was_read_is_as_good_as_before(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        readers[i](wb_number(0)), readers[i](wb_number(1)), readers[i](wb_number(2));
        wb_array *x = wb_vector(-1, 2, 3), *loss = wb_sum(wb_square(wb_relu(x))), *g;
        readers[i](wb_sum(wb_number(0)));
        assert_int_equal(wb_gradient_of(loss, 1, &x, &g), WB_OK);
        double numbers[3];
        assert_int_equal(wb_read_f64(g, numbers, 3), WB_OK);
        assert_true(numbers[0] == 0 && numbers[1] == 4 && numbers[2] == 6);
        assert_int_equal(wb_gradient_of(loss, 1, &loss, &g), WB_OK);
        readers[i](g);
        assert_true(wb_item(wb_sum(wb_selu(wb_vector(0, 0)))) == 0);
        assert_true(wb_item(wb_sum(wb_sigmoid(wb_mul_number(wb_vector(0, 0), 1)))) == 1);
    }
}

/* A copy, a move and a held array are the same value, and pass the gradient on. */
static wb_array *copied(wb_array *x) { return wb_copy(x); }
static wb_array *copied_strided(wb_array *x) { return wb_transpose(wb_copy(wb_transpose(x))); }
static wb_array *copied_number(wb_array *x) {
    return wb_mul(x, wb_copy(wb_maximum(wb_stop_gradient(wb_mul_number(x, 0.5)))));
}
static wb_array *moved(wb_array *x) {
    return wb_to(wb_default_device(), x, .eltype = WB_ELTYPE_PRESERVE);
}
static wb_array *read_first(wb_array *x) { return wb_eval(x) == WB_OK ? x : NULL; }

static void copies_pass_gradients_on(void **state) {
    (void)state;
    wb_array *(*const same[])(wb_array *) = {copied, copied_strided, moved, read_first};
    for (int i = 0; i < 4; i++)
        for (int is_pending = 0; is_pending < 2; is_pending++) {
            wb_array *x = wb_reshape(wb_vector(1, 2, 3, 4), 2, 2), *g, *h;
            wb_array *y = same[i](is_pending ? wb_mul_number(x, 3) : x);
            const double factor = is_pending ? 18 : 2; /* of the square's derivative */
            assert_int_equal(wb_gradient_of(wb_sum(wb_square(y)), 1, &x, &g), WB_OK);
            assert_values(g, 1e-6, factor, 2 * factor, 3 * factor, 4 * factor);
            assert_int_equal(wb_gradient_of(wb_sum(wb_square(g)), 1, &x, &h), WB_OK);
            assert_values(h, 1e-6, 2 * factor * factor, 4 * factor * factor, 6 * factor * factor,
                          8 * factor * factor);
        }
    wb_array *x = wb_vector(1, 4), *g;
    assert_int_equal(wb_gradient_of(wb_sum(copied_number(x)), 1, &x, &g), WB_OK);
    assert_values(g, 1e-6, 2, 2); /* a number too, and stop_gradient stops */
    wb_array *stopped = wb_stop_gradient(wb_copy(x));
    assert_int_equal(wb_gradient_of(wb_sum(stopped), 1, &x, &g), WB_OK);
    assert_null(g);
}

static int run(void) {
    const struct CMUnitTest tests[] = {TEST(an_elementwise_value_has_the_same_bits_in_every_plan),
                                       TEST(copies_pass_gradients_on),
                                       TEST(the_place_of_a_maximum_is_found_again),
                                       TEST(a_number_that_was_read_is_as_good_as_before),
                                       TEST(reading_first_leaves_the_same_gradients),
                                       TEST(a_gradient_may_be_taken_twice),
                                       TEST(a_detached_array_is_named),
                                       TEST(a_kept_array_is_a_constant_for_the_checker),
                                       TEST(the_detached_array_itself_has_a_gradient),
                                       TEST(null_means_that_nothing_depends),
                                       TEST(a_detached_array_of_others_is_no_error),
                                       TEST(a_stop_before_a_detached_array_is_no_error),
                                       TEST(reading_inside_a_loss_leaves_the_same_gradients),
                                       TEST(reading_keeps_the_recipe),
                                       TEST(a_closing_scope_takes_the_recipe)};
    return cmocka_run_group_tests_name("values 1", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
