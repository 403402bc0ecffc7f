/* src/optimise/params.c */
#include <math.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

enum { STEPS = 6 };

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_layer *network(void) {
    wb_seed(4);
    return wb_chain(wb_dense(2, 8, wb_tanh), wb_dense(8, 1));
}

static wb_batch batch_of(int k) {
    const float x[2][2] = {{(float)k, 1}, {2, (float)(k % 3)}}, y[2] = {1, -1};
    return (wb_batch){.x = wb_from(WB_F32, x, 2, 2), .y = wb_from(WB_F32, y, 1, 2)};
}

static double rate_of(int k) { return k < 3 ? 0.01 : 0.003; }

/* The same steps with an optimiser, as the implicit style has them. */
static void it_is_an_optimiser(void **state) {
    (void)state;
    const struct {
        const char *name, *without;
        wb_rule rules[2];
    } rows[] = {
        {"Adam", NULL, {wb_adam(.eta = 0.01), wb_adam(.eta = 0.003)}},
        {"a chain",
         NULL,
         {wb_rule_chain(wb_weight_decay(), wb_momentum(.eta = 0.01)),
          wb_rule_chain(wb_weight_decay(), wb_momentum(.eta = 0.003))}},
        {"without the first bias", "layers.1.bias", {wb_adam(.eta = 0.01), wb_adam(.eta = 0.003)}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_layer *a = network(), *b = network();
        wb_parameters *ps = wb_params(a);
        wb_optimiser *o = wb_setup(rows[i].rules[0], b);
        assert_null(wb_params_optimiser(ps));
        if (rows[i].without) {
            assert_int_equal(wb_params_delete(ps, rows[i].without), WB_OK);
            assert_int_equal(wb_freeze(o, rows[i].without), WB_OK);
        }
        for (int k = 0; k < STEPS; k++) {
            wb_scope_open();
            const wb_batch batch = batch_of(k);
            wb_gradients *gs;
            assert_non_null(wb_withgradient(loss, a, &batch, NULL, &gs));
            assert_int_equal(wb_update_params(rows[i].rules[k >= 3], ps, gs), WB_OK);
            if (k == 3) assert_int_equal(wb_adjust(o, rate_of(k)), WB_OK);
            assert_non_null(wb_train_step(loss, b, &batch, NULL, o));
            assert_int_equal(wb_scope_close(), WB_OK);
        }
        assert_int_equal(wb_step_count(wb_params_optimiser(ps)), STEPS);
        for (wb_parameter p = {0}; wb_next_parameter(a, &p);)
            if (!wb_approx(p.array, wb_get(b, p.path), 1e-5, 1e-6, NULL, 0))
                fail_msg("%s: %s", rows[i].name, p.path);
        wb_free(ps), wb_free(o), wb_free(a), wb_free(b);
    }
}

/* Another rate is no new plan but at the first change, and updates work in place. */
static void another_rate_is_no_new_plan(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER") || getenv("WEBER_FUSE")) skip();
    wb_layer *model = network();
    wb_parameters *ps = wb_params(model);
    wb_plan_counts before = {0};
    for (int k = 0; k < 8; k++) {
        if (k == 3) before = wb_plan_status();
        wb_scope_open();
        const wb_batch batch = batch_of(k);
        wb_gradients *gs;
        assert_non_null(wb_withgradient(loss, model, &batch, NULL, &gs));
        assert_int_equal(wb_update_params(wb_adam(.eta = 0.001 * (k + 1)), ps, gs), WB_OK);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_int_equal(wb_plan_status().misses, before.misses);
    assert_int_equal(wb_plan_status().missed_donations, before.missed_donations);
    wb_free(ps), wb_free(model);
}

/* Loose arrays, as the guides' first pages have them. */
static void arrays_without_a_layer(void **state) {
    (void)state;
    wb_layer *pair = wb_tree_named({"W", wb_vector(2, 3)}, {"b", wb_vector(1)});
    wb_parameters *ps = wb_params(pair);
    wb_array *l = wb_add(wb_sum(wb_get(pair, "W")), wb_sum(wb_get(pair, "b")));
    wb_gradients *gs = wb_gradient(l, pair);
    assert_int_equal(wb_update_params(wb_descent(.eta = 0.5), ps, gs), WB_OK);
    assert_int_equal(wb_params_delete(ps, "b"), WB_OK); /* after an update, too */
    l = wb_add(wb_sum(wb_get(pair, "W")), wb_sum(wb_get(pair, "b")));
    assert_int_equal(wb_update_params(wb_descent(.eta = 1), ps, wb_gradient(l, pair)), WB_OK);
    assert_values(wb_get(pair, "W"), 0, 0.5, 1.5);
    assert_values(wb_get(pair, "b"), 0, 0.5);
    wb_free(ps), wb_free(pair);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = network(), *other = network();
    wb_parameters *ps = wb_params(model);
    wb_gradients *gs = wb_gradient(wb_sum(wb_apply(model, batch_of(0).x)), model);
    wb_gradients *theirs = wb_gradient(wb_sum(wb_apply(other, batch_of(0).x)), other);
    assert_int_equal(wb_params_delete(ps, "layers.3"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_params_delete: \"layers.3\" matches no trainable array of Chain");
    assert_int_equal(wb_params_delete(ps, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_params_delete: the path is NULL");
    assert_int_equal(wb_update_params(wb_adam(.eta = -1), ps, gs), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "Adam: eta must be at least 0, and finite, got -1");
    assert_int_equal(wb_update_params(wb_adam(), ps, theirs), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the gradients belong to another model");
    assert_int_equal(wb_update_params(wb_adam(), ps, gs), WB_OK);
    assert_int_equal(wb_update_params(wb_momentum(), ps, gs), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_update_params: the parameters keep the state of Adam, and "
                                    "the rule is Momentum now");
    assert_int_equal(wb_update_params(wb_adam(.beta1 = 2), ps, gs), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "Adam: beta1 must be at least 0 and below 1, got 2");
    assert_int_equal(wb_update_params(wb_adam(), NULL, gs), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_update_params: the list of parameters is NULL");
    assert_int_equal(wb_update_params(wb_adam(), ps, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_update_params: the gradients object is NULL");
    wb_free(ps), wb_free(model), wb_free(other);
}

/* What an optimiser, parameters or gradients hold is no reference of the caller's. */
static void their_reference_is_not_taken_over(void **state) {
    (void)state;
    wb_layer *d = wb_dense(2, 2);
    wb_parameters *ps = wb_params(d);
    wb_layer *twice = wb_chain(d, d);
    wb_free(twice);
    assert_non_null(wb_get(d, "weight")); /* alive by ps */
    assert_null(wb_chain(d));
    assert_error(WB_ERROR_ARGUMENT, "belongs to");
    wb_free(ps);

    d = wb_dense(2, 2);
    wb_optimiser *o = wb_setup(wb_adam(), d);
    assert_null(wb_parallel(wb_connect_add, d, NULL));
    assert_error(WB_ERROR_ARGUMENT, "layer 2");
    assert_non_null(wb_get(d, "weight"));
    wb_free(o);
}

static void freed_once_more_is_an_error(void **state) {
    (void)state;
    wb_layer *d = wb_dense(2, 2);
    wb_optimiser *o = wb_setup(wb_adam(), d);
    wb_free(d);
    wb_free(d);
    assert_error(WB_ERROR_ARGUMENT, "wb_free: Dense(2 => 2) belongs to");
    wb_free(o);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(it_is_an_optimiser),
        TEST(another_rate_is_no_new_plan),
        TEST(arrays_without_a_layer),
        TEST(mistakes),
        TEST(their_reference_is_not_taken_over),
        TEST(freed_once_more_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
