/* src/layers/fn.c: functions with a context as layers (wb_fn_with) */
#include <pthread.h>

#include "support/support.h"

/* A context that knows how often it was released. */
typedef struct factor {
    double value;
    int released;
} factor;

static void release_factor(void *context) { ((factor *)context)->released++; }

static int scaled(void *context, int count, wb_array *const *x, wb_array **y) {
    if (count != 1) return (void)wb_fail(WB_ERROR_ARGUMENT, "takes one array, got %d", count), 0;
    y[0] = wb_mul_number(x[0], ((const factor *)context)->value);
    return y[0] ? 1 : 0;
}

static wb_layer *scale_by(factor *f) {
    return wb_fn_with(scaled, f, release_factor, .name = "scaled");
}

/* x1 + value x2 */
static int joined(void *context, int count, wb_array *const *x, wb_array **y) {
    if (count != 2) return (void)wb_fail(WB_ERROR_ARGUMENT, "takes two arrays"), 0;
    y[0] = wb_add(x[0], wb_mul_number(x[1], ((const factor *)context)->value));
    return y[0] ? 1 : 0;
}

static int exchanged(void *context, int count, wb_array *const *x, wb_array **y) {
    (void)context;
    for (int i = 0; i < count; i++) y[i] = x[count - 1 - i];
    return count;
}

static void two_layers_of_one_function_have_a_context_each(void **state) {
    (void)state;
    factor two = {.value = 2}, three = {.value = 3};
    wb_layer *model = wb_chain(scale_by(&two), wb_fn(wb_square), scale_by(&three));
    assert_values(wb_apply(model, wb_vector(1, -2)), 1e-6, 12, 48);
    wb_free(model);
    assert_int_equal(two.released, 1);
    assert_int_equal(three.released, 1);
}

static void a_closure_after_a_container_is_its_connection(void **state) {
    (void)state;
    factor half = {.value = 0.5};
    wb_layer *skip = wb_chain(wb_skip(wb_fn(wb_square), NULL), wb_fn_with(joined, &half));
    wb_layer *both =
        wb_chain(wb_parallel(NULL, wb_fn(wb_neg), wb_fn(wb_square)), wb_fn_with(joined, &half));
    assert_values(wb_apply(skip, wb_vector(3, 4)), 1e-6, 10.5, 18);
    assert_values(wb_apply(both, wb_vector(3, 4)), 1e-6, 1.5, 4);
    wb_free(skip), wb_free(both);
}

/* h = 2 tanh(Wi x + Wh h + b) / 2 by a closure is what the RNN computes itself. */
static int halved_tanh(void *context, int count, wb_array *const *x, wb_array **y) {
    if (count != 1) return (void)wb_fail(WB_ERROR_ARGUMENT, "takes one array, got %d", count), 0;
    y[0] = wb_mul_number(wb_tanh(x[0]), ((const factor *)context)->value / 2);
    return y[0] ? 1 : 0;
}

static void a_closure_after_a_cell_is_the_activation_of_its_steps(void **state) {
    (void)state;
    factor two = {.value = 2};
    wb_array *wi = wb_normal(WB_F32, 3, 2), *wh = wb_normal(WB_F32, 3, 3);
    wb_layer *rnn = wb_rnn(2, 3, .given_wi = wi, .given_wh = wh);
    wb_layer *cell = wb_rnn_cell(2, 3, wb_identity, .given_wi = wi, .given_wh = wh);
    wb_layer *model = wb_recurrence(wb_chain(cell, wb_fn_with(halved_tanh, &two)));
    wb_array *x = wb_normal(WB_F32, 2, 5, 4);
    assert_true(wb_approx(wb_apply(model, x), wb_apply(rnn, x), 1e-6, 1e-6, NULL, 0));
    wb_free(model), wb_free(rnn);
}

static void a_closure_may_give_several_arrays(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_fn_with(exchanged, NULL), wb_fn(wb_neg));
    wb_array *xs[2] = {wb_vector(1), wb_vector(2)}, *ys[2];
    assert_int_equal(wb_apply_many(model, 2, xs, 2, ys), 2);
    assert_values(ys[0], 1e-6, -2);
    assert_values(ys[1], 1e-6, 1);
    wb_free(model);
}

static void gradients_flow_through_a_closure(void **state) {
    (void)state;
    factor three = {.value = 3};
    wb_layer *model =
        wb_chain(wb_dense(1, 1, .init = wb_ones_init, .bias = false), scale_by(&three));
    wb_array *w = wb_get(model, "layers.1.weight"), *g;
    assert_int_equal(wb_gradient_of(wb_sum(wb_apply(model, wb_ones(WB_F32, 1, 4))), 1, &w, &g),
                     WB_OK);
    assert_values(g, 1e-6, 12);
    wb_free(model);
}

static int silent(void *context, int count, wb_array *const *x, wb_array **y) {
    (void)context, (void)count, (void)x, (void)y;
    return 0;
}

static void errors_name_the_closure_and_its_place(void **state) {
    (void)state;
    factor two = {.value = 2};
    wb_layer *model = wb_chain(wb_skip(wb_fn(wb_neg), NULL), scale_by(&two));
    assert_null(wb_apply(model, wb_vector(1)));
    assert_error(WB_ERROR_ARGUMENT, "scaled, layer 2 of Chain: takes one array, got 2");
    wb_layer *nameless = wb_fn_with(silent, NULL);
    assert_null(wb_apply(nameless, wb_vector(1)));
    assert_error(WB_ERROR_ARGUMENT, "function: the forward function must give 1 to 16 arrays");
    wb_free(model), wb_free(nameless);
}

static void no_function_is_an_error_and_releases_the_context(void **state) {
    (void)state;
    factor two = {.value = 2};
    assert_null(wb_fn_with(NULL, &two, release_factor));
    assert_error(WB_ERROR_ARGUMENT, "wb_fn_with: the function is NULL");
    assert_int_equal(two.released, 1);
}

static wb_array *same(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return x;
}

static void the_context_lives_as_long_as_the_last_copy(void **state) {
    (void)state;
    factor two = {.value = 2};
    wb_layer *model = wb_chain(wb_dense(1, 1), scale_by(&two));
    wb_layer *copies[] = {wb_clone(model), wb_map(same, NULL, model), wb_clone(model)};
    wb_free(model);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(two.released, 0);
        assert_non_null(wb_apply(copies[i], wb_ones(WB_F32, 1, 2)));
        wb_free(copies[i]);
    }
    assert_int_equal(two.released, 1);
}

static void *serve(void *model) {
    wb_scope_open();
    const bool good = wb_item(wb_sum(wb_apply(model, wb_ones(WB_F32, 1, 4)))) == 8;
    wb_scope_close();
    wb_free(model);
    return good ? model : NULL;
}

static void a_closure_is_shared_with_other_threads(void **state) {
    (void)state;
    factor two = {.value = 2};
    wb_layer *model = wb_chain(wb_scale({1}), scale_by(&two));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, serve, wb_share(model)), 0);
    wb_free(model);
    for (int i = 0; i < 4; i++) {
        void *good;
        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_non_null(good);
    }
    assert_int_equal(two.released, 1);
}

/* ---- wb_fail ---- */

static wb_array *failing(void *context, int count, wb_array *const *arrays) {
    (void)count, (void)arrays;
    return (void)wb_fail(WB_ERROR_NUMBER, "%s of %d", (const char *)context, 7), NULL;
}

static void a_function_of_the_user_fails_with_its_own_words(void **state) {
    (void)state;
    char what[] = "no logarithm";
    assert_null(wb_recompute(failing, what, 0, NULL));
    assert_error(WB_ERROR_NUMBER, "no logarithm of 7");
    assert_int_equal(wb_fail(WB_OK, "nothing"), WB_OK);
    assert_string_equal(wb_error_message(), "");
    assert_false(wb_failed());
    assert_int_equal(wb_fail(WB_ERROR_IO, "first"), WB_ERROR_IO);
    assert_int_equal(wb_fail(WB_ERROR_SHAPE, "second"), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_IO, "first");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(two_layers_of_one_function_have_a_context_each),
        TEST(a_closure_after_a_container_is_its_connection),
        TEST(a_closure_after_a_cell_is_the_activation_of_its_steps),
        TEST(a_closure_may_give_several_arrays),
        TEST(gradients_flow_through_a_closure),
        TEST(errors_name_the_closure_and_its_place),
        TEST(no_function_is_an_error_and_releases_the_context),
        TEST(the_context_lives_as_long_as_the_last_copy),
        TEST(a_closure_is_shared_with_other_threads),
        TEST(a_function_of_the_user_fails_with_its_own_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
