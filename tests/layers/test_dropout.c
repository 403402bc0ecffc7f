/* src/layers/dropout.c, and modes */
#include <math.h>
#include <string.h>

#include <weber/gradient.h>
#include <weber/layers.h>

#include "support/numbers.h"
#include "support/scoped.h"

static void probabilities_of_the_ends(void **state) { /* G10 */
    (void)state;
    wb_layer *none = wb_dropout(.p = 0), *all = wb_dropout(.p = 1);
    wb_train_mode(none), wb_train_mode(all);
    wb_array *x = wb_vector(1, 2, NAN);
    assert_true(wb_apply(none, x) == x);
    assert_values(wb_apply(all, x), 0, 0, 0, 0);
    wb_free(none), wb_free(all);
}

static void survivors_are_scaled(void **state) { /* G10 */
    (void)state;
    wb_seed(7);
    wb_layer *dropout = wb_dropout(.p = 0.1f);
    wb_train_mode(dropout);
    wb_array *y = wb_apply(dropout, wb_ones(WB_F32, 10000));
    assert_true(fabs(wb_item(wb_mean(y)) - 1) < 0.05);
    assert_value(wb_maximum(y), 1 / 0.9, 1e-6);
    wb_array *good = wb_or(wb_eq(y, wb_number(0)), wb_gt(y, wb_number(1)));
    assert_value(wb_sum(good), 10000, 0);
    wb_free(dropout);
}

static void the_mask_is_shared(void **state) { /* G10 */
    (void)state;
    wb_layer *dropout = wb_dropout(.p = 0.5, .dims = WB_DIM(1));
    wb_train_mode(dropout);
    wb_array *y = wb_apply(dropout, wb_ones(WB_F32, 4, 100, 3));
    wb_array *first = wb_slice(wb_slice(y, 0, 0, 1, 1), 2, 0, 1, 1);
    assert_true(wb_approx(y, wb_expand(first, 4, 100, 3), 0, 0, NULL, 0));
    const double sum = wb_item(wb_sum(first));
    assert_true(sum > 40 && sum < 160);
    wb_free(dropout);
}

static void modes(void **state) { /* values 18 */
    (void)state;
    wb_layer *model = wb_chain(wb_dropout(.p = 1), wb_chain(wb_dropout(.p = 1)));
    wb_array *x = wb_add_number(wb_vector(1, 2), 0);
    assert_true(wb_apply(model, x) == x);
    assert_false(wb_training(true));
    assert_values(wb_apply(model, x), 0, 0, 0);
    wb_test_mode(model);
    assert_true(wb_apply(model, x) == x);
    assert_true(wb_training(false));
    wb_train_mode(model);
    assert_values(wb_apply(model, x), 0, 0, 0);
    wb_auto_mode(model);
    assert_true(wb_apply(model, x) == x);
    wb_free(model);
}

static void the_function_draws_always(void **state) {
    (void)state;
    wb_layer *layer = wb_dropout(0.25, .dims = WB_DIM(1));
    wb_train_mode(layer);
    wb_array *x = wb_ones(WB_F32, 3, 500), *g[1];
    wb_seed(3);
    wb_array *y = wb_dropout_op(x, 0.25, .dims = WB_DIM(1));
    wb_seed(3);
    assert_true(wb_approx(y, wb_apply(layer, x), 0, 0, NULL, 0));
    assert_true(wb_item(wb_minimum(y)) == 0);
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &x, g), WB_OK);
    assert_true(wb_approx(g[0], y, 0, 0, NULL, 0));
    assert_true(wb_dropout_op(x, 0) == x);
    assert_values(wb_dropout_op(wb_vector(1, NAN), 1), 0, 0, 0);
    assert_null(wb_dropout_op(x, 1.5));
    assert_error(WB_ERROR_ARGUMENT, "dropout: p must be from 0 to 1, got 1.5");
    wb_free(layer);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(probabilities_of_the_ends), TEST(survivors_are_scaled),
        TEST(the_mask_is_shared),        TEST(modes),
        TEST(the_function_draws_always),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
