/* src/optimise/arithmetic.c */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

/* l = s (3 w1 + 4 w2 + b): gradients s (3, 4) and s. */
static wb_gradients *gradients_of(wb_layer *model, double s) {
    return wb_gradient(wb_mul_number(wb_sum(wb_apply(model, wb_vector(3, 4))), s), model);
}

static wb_layer *ones(void) { return wb_dense(2, 1, .init = wb_ones_init); }

/* ---- each by itself ---- */

static wb_array *weights_doubled(void *user, const char *path, wb_array *x) {
    ++*(int *)user;
    return strcmp(path, "weight") == 0 ? wb_mul_number(x, 2) : x;
}

static wb_status scale(wb_gradients *g) { return wb_gradients_scale(g, -2); }
static wb_status clip(wb_gradients *g) { return wb_gradients_clip(g, 3.5); }
static wb_status clip_to_nothing(wb_gradients *g) { return wb_gradients_clip(g, 0); }
static wb_status map(wb_gradients *g) {
    int calls = 0;
    const wb_status status = wb_gradients_map(weights_doubled, &calls, g);
    assert_int_equal(calls, 2);
    return status;
}
static wb_status twice(wb_gradients *g) { return wb_gradients_add(g, g); }
static wb_status shorten(wb_gradients *g) {
    assert_value(wb_gradients_clip_total_norm(g, 1), sqrt(26), 1e-6);
    return WB_OK;
}
static wb_status not_shorten(wb_gradients *g) {
    assert_value(wb_gradients_clip_total_norm(g, 6), sqrt(26), 1e-6);
    return WB_OK;
}

/* Parameters that were replaced are released, and another array is in their memory. */
static void a_norm_after_parameters_were_replaced(void **state) {
    (void)state;
    wb_layer *model = ones();
    wb_gradients *g = wb_gradients_keep(gradients_of(model, 1));
    assert_int_equal(wb_set(model, "weight", wb_full(WB_F32, 7, 1, 2)), WB_OK);
    assert_int_equal(wb_set(model, "bias", wb_full(WB_F32, 7, 1)), WB_OK);
    for (int i = 0; i < 100; i++) (void)wb_eval(wb_full(WB_F32, i, 1, 2));
    assert_value(wb_gradients_norm(g), sqrt(26), 1e-6);
    assert_value(wb_gradients_clip_total_norm(g, 1), sqrt(26), 1e-6);
    wb_free(g), wb_free(model);
}

static void what_becomes_of_them(void **state) {
    (void)state;
    const struct {
        const char *name;
        wb_status (*change)(wb_gradients *g);
        double weight[2], bias;
    } rows[] = {
        {"scaled", scale, {-6, -8}, -2},
        {"clipped by value", clip, {3, 3.5}, 1},
        {"clipped to nothing", clip_to_nothing, {0, 0}, 0},
        {"through a function", map, {6, 8}, 1},
        {"added to themselves", twice, {6, 8}, 2},
        {"a norm above the limit", shorten, {3 / sqrt(26), 4 / sqrt(26)}, 1 / sqrt(26)},
        {"a norm below it", not_shorten, {3, 4}, 1},
    };
    wb_layer *model = ones();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int kept = 0; kept < 2; kept++) {
            wb_gradients *g = gradients_of(model, 1);
            if (kept) assert_ptr_equal(wb_gradients_keep(g), g);
            assert_int_equal(rows[i].change(g), WB_OK);
            float weight[2];
            assert_int_equal(wb_read_f32(wb_gradients_get(g, "weight"), weight, 2), WB_OK);
            for (int k = 0; k < 2; k++)
                if (!(fabs((double)weight[k] - rows[i].weight[k]) < 1e-6))
                    fail_msg("%s: %g, not %g", rows[i].name, (double)weight[k], rows[i].weight[k]);
            assert_value(wb_gradients_get(g, "bias"), rows[i].bias, 1e-6);
            wb_free(g);
        }
    wb_free(model);
}

static void another_factor_is_no_new_plan(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip();
    wb_layer *model = ones();
    int64_t made = 0;
    for (int i = 0; i < 4; i++) {
        wb_gradients *g = gradients_of(model, 1);
        wb_gradients_scale(g, 1.0 / (i + 1)), wb_gradients_clip(g, i + 1);
        assert_value(wb_gradients_get(g, "bias"), 1.0 / (i + 1), 1e-6);
        if (i == 1) made = wb_plan_status().misses;
        wb_free(g);
    }
    assert_int_equal(wb_plan_status().misses, made);
    wb_free(model);
}

/* ---- loops ---- */

static void one_after_another(void **state) {
    (void)state;
    wb_layer *model = wb_chain(ones(), wb_batchnorm(1), wb_dense(1, 1));
    wb_layer *first = wb_get_layer(model, "layers.1");
    wb_gradients *g = wb_gradient(wb_sum(wb_apply(first, wb_vector(3, 4))), model);
    int with = 0, without = 0;
    for (wb_parameter p = {0}; wb_next_gradient(g, &p);) {
        assert_true(p.is_trainable);
        assert_ptr_equal(p.array, wb_get(model, p.path));
        assert_ptr_equal(p.gradient, wb_gradients_get(g, p.path));
        *(p.gradient ? &with : &without) += 1;
    }
    assert_int_equal(with, 2);
    assert_int_equal(without, 4);
    wb_free(model);
}

static void a_tied_gradient_comes_once(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(1, 1, .bias = false, .init = wb_ones_init),
                               wb_dense(1, 1, .bias = false));
    wb_tie(model, "layers.2.weight", wb_get(model, "layers.1.weight"));
    wb_gradients *g = wb_gradient(wb_sum(wb_apply(model, wb_vector(3))), model);
    int count = 0;
    for (wb_parameter p = {0}; wb_next_gradient(g, &p); count++) assert_value(p.gradient, 6, 0);
    assert_int_equal(count, 1);
    wb_free(model);
}

/* d of sum(W x) + sum(2 Wᵀ y): the parts of a tie are one gradient. */
static void the_norm_of_a_tied_transpose(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *w = wb_ones(WB_F32, 2, 2);
    wb_eval(w);
    wb_layer *pair = wb_tree_named({"a", w}, {"b", wb_transpose(w)});
    wb_scope_close();
    wb_array *l = wb_add(wb_sum(wb_get(pair, "a")), wb_sum(wb_mul_number(wb_get(pair, "b"), 2)));
    assert_value(wb_gradients_norm(wb_gradient(l, pair)), 6, 1e-6); /* 4 times 3 */
    wb_free(pair);
}

static void no_gradients_have_no_norm(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 1), *other = wb_flatten();
    assert_value(wb_gradients_norm(wb_gradient(wb_scalar(WB_F32, 1), model)), 0, 0);
    assert_value(wb_gradients_norm(wb_gradient(wb_scalar(WB_F32, 1), other)), 0, 0);
    wb_free(model), wb_free(other);
}

/* ---- sums ---- */

static void pending_sums(void **state) {
    (void)state;
    wb_layer *model = ones();
    wb_gradients *a = gradients_of(model, 1), *b = gradients_of(model, 10);
    assert_int_equal(wb_gradients_add(a, b), WB_OK);
    assert_values(wb_gradients_get(a, "weight"), 1e-5, 33, 44);
    assert_values(wb_gradients_get(b, "weight"), 1e-5, 30, 40);
    wb_free(model);
}

static void what_one_has_and_the_other_not(void **state) {
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        wb_layer *model = ones();
        wb_gradients *a = gradients_of(model, 1), *b = gradients_of(model, 10);
        wb_gradients_set(a, "weight", NULL), wb_gradients_set(b, "bias", NULL);
        if (kept) (void)wb_gradients_keep(a);
        assert_int_equal(wb_gradients_add(a, b), WB_OK);
        assert_values(wb_gradients_get(a, "weight"), 1e-5, 30, 40);
        assert_value(wb_gradients_get(a, "bias"), 1, 0);
        if (kept) wb_free(a);
        wb_free(model);
    }
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

enum { PARTS = 4, STEPS = 3 };

static wb_batch part_of(int first, int count) {
    float x[STEPS * PARTS][2], y[STEPS * PARTS];
    for (int i = 0; i < count; i++) {
        x[i][0] = (float)((first + i) % 5), x[i][1] = (float)((first + i) % 3);
        y[i] = x[i][0] - 2 * x[i][1];
    }
    return (wb_batch){.x = wb_from(WB_F32, x, 2, count), .y = wb_from(WB_F32, y, 1, count)};
}

static double weight_of(wb_layer *model) { return wb_at(wb_get(model, "weight"), 0, 0); }

/* Four batches of one observation are a batch of four. */
static void accumulation_by_hand(void **state) {
    (void)state;
    wb_layer *whole = ones(), *apart = ones();
    wb_optimiser *a = wb_setup(wb_adam(.eta = 0.1), whole),
                 *b = wb_setup(wb_adam(.eta = 0.1), apart);
    for (int i = 0; i < STEPS; i++) {
        const wb_batch batch = part_of(PARTS * i, PARTS);
        assert_non_null(wb_train_step(loss, whole, &batch, NULL, a));
    }
    wb_gradients *g, *sum = NULL;
    for (int i = 1; i <= STEPS * PARTS; i++) {
        wb_scope_open();
        const wb_batch batch = part_of(i - 1, 1);
        wb_array *l = wb_withgradient(loss, apart, &batch, NULL, &g);
        if (!sum)
            sum = wb_gradients_keep(g);
        else
            assert_int_equal(wb_gradients_add(sum, g), WB_OK);
        assert_true(isfinite(wb_item(l)));
        if (i % PARTS == 0) {
            wb_gradients_scale(sum, 1.0 / PARTS);
            assert_int_equal(wb_update(b, apart, sum), WB_OK);
            wb_free(sum), sum = NULL;
        }
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_int_equal(wb_step_count(b), STEPS);
    assert_true(fabs(weight_of(whole) - weight_of(apart)) < 1e-5);
    wb_free(a), wb_free(b), wb_free(whole), wb_free(apart);
}

/* What is kept is one set of gradients, however many are added, and each takes one plan. */
static void sums_stay_in_their_memory(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip();
    wb_layer *model = wb_dense(64, 64);
    wb_batch batch = {.x = wb_ones(WB_F32, 64, 4), .y = wb_ones(WB_F32, 64, 4)};
    wb_gradients *g, *sum = NULL;
    int64_t live[6], runs[6];
    for (int i = 0; i < 6; i++) {
        wb_scope_open();
        const int64_t before = wb_plan_status().evaluations;
        wb_array *l = wb_withgradient(loss, model, &batch, NULL, &g);
        if (sum)
            assert_int_equal(wb_gradients_add(sum, g), WB_OK);
        else
            sum = wb_gradients_keep(g);
        (void)wb_item(l);
        assert_int_equal(wb_scope_close(), WB_OK);
        runs[i] = wb_plan_status().evaluations - before;
        live[i] = wb_memory_status(wb_default_device()).live;
    }
    assert_int_equal(runs[5], 1);
    assert_int_equal(live[5], live[1]);
    wb_free(sum), wb_free(model);
}

/* A loss that was not finite makes no step of the sum. */
static void a_bad_part_skips_the_step(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        wb_layer *model = ones();
        wb_optimiser *o = wb_setup(wb_descent(), model);
        wb_gradients *sum = wb_gradients_keep(gradients_of(model, bad == 0 ? (double)NAN : 1));
        assert_int_equal(wb_gradients_add(sum, gradients_of(model, bad ? (double)NAN : 1)), WB_OK);
        assert_int_equal(wb_update(o, model, sum), WB_OK);
        assert_int_equal(wb_skipped(o), 1);
        assert_values(wb_get(model, "weight"), 0, 1, 1);
        wb_free(sum), wb_free(o), wb_free(model);
    }
}

static void a_norm_that_is_not_finite_skips_the_step(void **state) {
    (void)state;
    wb_layer *model = ones();
    wb_optimiser *o = wb_setup(wb_descent(), model);
    wb_gradients *g = gradients_of(model, 1);
    wb_gradients_set(g, "bias", wb_vector((float)INFINITY));
    assert_non_null(wb_gradients_clip_total_norm(g, 1));
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_int_equal(wb_skipped(o), 1);
    wb_free(o), wb_free(model);
}

/* ---- decay by hand ---- */

static wb_array *decayed(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *l = loss(model, batch, user);
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
        if (p.is_trainable) l = wb_add(l, wb_mul_number(wb_sum(wb_square(p.array)), 0.5));
    return l;
}

static void decay_by_hand(void **state) {
    (void)state;
    wb_layer *a = ones(), *b = ones();
    wb_optimiser *by_hand = wb_setup(wb_descent(.eta = 0.1), a);
    wb_optimiser *by_rule =
        wb_setup(wb_rule_chain(wb_weight_decay(.lambda = 1), wb_descent(.eta = 0.1)), b);
    for (int i = 0; i < STEPS; i++) {
        const wb_batch batch = part_of(i, PARTS);
        assert_non_null(wb_train_step(decayed, a, &batch, NULL, by_hand));
        assert_non_null(wb_train_step(loss, b, &batch, NULL, by_rule));
    }
    assert_true(fabs(weight_of(a) - weight_of(b)) < 1e-5);
    wb_free(by_hand), wb_free(by_rule), wb_free(a), wb_free(b);
}

/* ---- mistakes ---- */

static wb_array *nothing(void *user, const char *path, wb_array *x) {
    (void)user, (void)path, (void)x;
    return NULL;
}
static wb_array *too_long(void *user, const char *path, wb_array *x) {
    (void)user, (void)path, (void)x;
    return wb_ones(WB_F32, 7);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = ones(), *other = ones();
    wb_gradients *g = gradients_of(model, 1), *h = gradients_of(other, 1);
    assert_int_equal(wb_gradients_add(g, h), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_gradients_add: the gradients must be of the same model");
    assert_int_equal(wb_gradients_add(NULL, h), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_gradients_add: the gradients object is NULL");
    assert_int_equal(wb_gradients_add(g, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_gradients_add: the gradients object is NULL");
    assert_int_equal(wb_gradients_scale(g, (double)NAN), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_gradients_scale: factor must be finite, got nan");
    assert_int_equal(wb_gradients_clip(g, -1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_gradients_clip: limit must be at least 0, got -1");
    assert_null(wb_gradients_clip_total_norm(g, (double)NAN));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_gradients_clip_total_norm: limit must be at least 0, got nan");
    assert_int_equal(wb_gradients_map(NULL, NULL, g), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_gradients_map: the function is NULL");
    assert_int_not_equal(wb_gradients_map(nothing, NULL, g), WB_OK);
    assert_error(WB_ERROR_ARGUMENT, "wb_gradients_map: the function gave NULL for weight");
    assert_int_equal(wb_gradients_map(too_long, NULL, g), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "wb_gradients_map: weight has sizes (1, 2), the function's "
                                 "result (7)");
    assert_values(wb_gradients_get(g, "weight"), 0, 3, 4);
    assert_false(wb_next_gradient(g, NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_next_gradient: the parameter is NULL");
    wb_free(model), wb_free(other);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(what_becomes_of_them),
        TEST(a_norm_after_parameters_were_replaced),
        TEST(another_factor_is_no_new_plan),
        TEST(one_after_another),
        TEST(a_tied_gradient_comes_once),
        TEST(the_norm_of_a_tied_transpose),
        TEST(no_gradients_have_no_norm),
        TEST(pending_sums),
        TEST(what_one_has_and_the_other_not),
        TEST(accumulation_by_hand),
        TEST(sums_stay_in_their_memory),
        TEST(a_bad_part_skips_the_step),
        TEST(a_norm_that_is_not_finite_skips_the_step),
        TEST(decay_by_hand),
        TEST(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
