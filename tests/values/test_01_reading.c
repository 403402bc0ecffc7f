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
            if (!(fabs(got[i] - wanted[i]) <= 1e-12)) fail_msg("read %d: gradient %d is %.17g, not %.17g", read, i, got[i], wanted[i]);
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
    assert_error(WB_ERROR_GRADIENT, "the walk met (3, 1) of type f32, which lost its recipe when its scope closed, before array 0 (3)");
    wb_free(y);
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

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(reading_first_leaves_the_same_gradients), TEST(a_gradient_may_be_taken_twice), TEST(a_detached_array_is_named),
        TEST(the_detached_array_itself_has_a_gradient), TEST(null_means_that_nothing_depends),
        TEST(a_stop_before_a_detached_array_is_no_error)};
    return cmocka_run_group_tests_name("values 1", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
