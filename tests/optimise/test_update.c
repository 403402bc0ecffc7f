/* src/optimise/update.c, rules.c, optimiser.c */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weber/device.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>

#include "support/numbers.h"
#include "support/sanitized.h"
#include "support/scoped.h"

/* The gradient of sum(x g) is g. */
static wb_array *along(wb_layer *model, const char *path, wb_array *g) {
    return wb_sum(wb_mul(wb_get(model, path), g));
}

static wb_status step(wb_optimiser *o, wb_layer *model, wb_array *l) {
    return wb_update(o, model, wb_gradient(l, model));
}

static void take_three_steps(const char *name, wb_rule rule, double x1, double x2, double x3) {
    const double g[3] = {0.5, -0.3, 0.8}, wanted[3] = {x1, x2, x3};
    wb_layer *model = wb_tree(wb_ones(WB_F64, 1));
    wb_optimiser *o = wb_setup(rule, model);
    for (int t = 0; t < 3; t++) {
        assert_int_equal(step(o, model, along(model, "1", wb_scalar(WB_F64, g[t]))), WB_OK);
        const double x = wb_item(wb_get(model, "1"));
        if (!(fabs(x - wanted[t]) < 1e-9))
            fail_msg("%s: step %d gives %.12g, not %.12g", name, t + 1, x, wanted[t]);
    }
    assert_int_equal(wb_step_count(o), 3);
    wb_free(o), wb_free(model);
}

static void three_steps_of_each_rule(void **state) { /* A1, A2, A7, A8, A9 */
    (void)state;
    take_three_steps("Descent", wb_descent(), 0.95, 0.98, 0.90);
    take_three_steps("Momentum", wb_momentum(), 0.995, 0.9935, 0.98415);
    take_three_steps("Adam", wb_adam(), 0.99900000002, 0.998808501989, 0.998204965637);
    take_three_steps("AdamW, coupled", wb_adamw(.lambda = 0.01), 0.99899000002, 0.998788512089,
                     0.998174987852);
    take_three_steps("AdamW, decoupled", wb_adamw(.lambda = 0.01, .decoupled = true), 0.98900000002,
                     0.978918501989, 0.968525780617);
}

static void a_held_array_keeps_its_value(void **state) { /* A35, values 7 */
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_array *old = wb_keep(wb_get(model, "1"));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(25, 33))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, -1.5, -1.3);
    assert_values(old, 0, 1, 2);
    wb_free(old), wb_free(o), wb_free(model);
}

static void ties_have_one_state(void **state) { /* A30 */
    (void)state;
    wb_array *t = wb_vector(1, 2);
    wb_layer *model = wb_tree(t, wb_vector(1, 2), t);
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
    wb_array *l =
        wb_add(wb_add(along(model, "1", wb_vector(3, 3)), along(model, "2", wb_vector(10, 10))),
               along(model, "3", wb_vector(7, 7)));
    assert_int_equal(step(o, model, l), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 0, 1);
    assert_values(wb_get(model, "2"), 1e-6, 0, 1);
    assert_true(wb_get(model, "1") == wb_get(model, "3"));
    wb_free(o), wb_free(model);

    model = wb_tree(t, wb_vector(1, 2), t);
    o = wb_setup(wb_momentum(.eta = 0.1), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(3, 3))), WB_OK);
    assert_values(wb_get(model, "3"), 1e-6, 0.7, 1.7);
    assert_values(wb_get(model, "2"), 0, 1, 2);
    wb_free(o), wb_free(model);
}

static void a_transpose_is_a_tie(void **state) { /* values 17 */
    (void)state;
    const float numbers[] = {1, 2, 3, 4, 5, 6}, steps[] = {1, 0, 0, 0, 0, 0};
    wb_array *w = wb_from(WB_F32, numbers, 2, 3), *one = wb_from(WB_F32, steps, 2, 3);
    wb_layer *model = wb_tree(w, wb_transpose(w));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    for (int i = 0; i < 2; i++) {
        wb_array *l =
            wb_add(along(model, "1", one), along(model, "2", wb_transpose(wb_mul_number(one, 2))));
        assert_int_equal(step(o, model, l), WB_OK);
    }
    assert_values(wb_get(model, "1"), 1e-6, -5, 2, 3, 4, 5, 6);
    assert_true(wb_approx(wb_transpose(wb_get(model, "1")), wb_get(model, "2"), 0, 0, NULL, 0));
    assert_values(wb_get(model, "2"), 1e-6, -5, 3, 5, 2, 4, 6);
    wb_free(o), wb_free(model);
}

typedef struct Subset {
    wb_layer layer;
    wb_array *a, *b, *c;
} Subset;
WB_FUNCTOR(Subset, NULL, WB_ARRAY_FIELD(Subset, a), WB_FIXED_FIELD(Subset, b),
           WB_STATE_FIELD(Subset, c));

static void only_trainable_fields_are_trained(void **state) { /* A33 */
    (void)state;
    Subset *m = wb_new(Subset);
    m->a = wb_keep(wb_vector(1, 2)), m->b = wb_keep(wb_vector(3, 4)),
    m->c = wb_keep(wb_vector(5, 6));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), &m->layer);
    wb_array *l = wb_add(wb_sum(wb_square(m->a)), wb_mul_number(wb_sum(wb_square(m->b)), 100));
    assert_int_equal(step(o, &m->layer, l), WB_OK);
    assert_values(m->a, 1e-6, 0.8, 1.6);
    assert_values(m->b, 0, 3, 4);
    assert_values(m->c, 0, 5, 6);
    wb_free(o), wb_free(m);
}

static void missing_gradients_leave_their_parameters(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1), wb_vector(1));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.1), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1))), WB_OK);
    assert_int_equal(
        step(o, model, wb_add(along(model, "1", wb_vector(1)), along(model, "2", wb_vector(1)))),
        WB_OK);
    assert_values(wb_get(model, "1"), 1e-5, 0.8);
    assert_values(wb_get(model, "2"), 1e-5, 0.9); /* its own first step */
    wb_free(o), wb_free(model);
}

static void count_lines(void *count, wb_log_level level, const char *line) {
    (void)level;
    *(int *)count += strstr(line, "the loss depends on no parameter of Tree") != NULL;
}

static void a_loss_without_parameters_warns_once(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_ones(WB_F32, 2), wb_ones(WB_F32, 2));
    wb_optimiser *o = wb_setup(wb_descent(), model), *some = wb_setup(wb_descent(), model);
    int lines = 0;
    wb_log_to(count_lines, &lines);
    for (int i = 0; i < 2; i++)
        assert_int_equal(step(o, model, wb_sum(wb_normal(WB_F32, 2))), WB_OK);
    assert_int_equal(lines, 1);
    assert_int_equal(step(some, model, along(model, "2", wb_ones(WB_F32, 2))), WB_OK);
    wb_log_to(NULL, NULL);
    assert_int_equal(lines, 1);
    wb_free(o), wb_free(some), wb_free(model);
}

static void count_turns(void *count, wb_log_level level, const char *line) {
    (void)level;
    *(int *)count += strstr(line, "layers.2.weight of Chain is trained by two optimisers in turn, "
                                  "each with its own state") != NULL;
}

static wb_array *all_of(wb_layer *model) {
    return wb_add(along(model, "layers.1.weight", wb_ones(WB_F32, 1, 1)),
                  along(model, "layers.2.weight", wb_ones(WB_F32, 1, 1)));
}

static void parameters_of_two_optimisers_are_said(void **state) {
    (void)state;
    wb_layer *inner = wb_dense(1, 1), *model = wb_chain(wb_dense(1, 1), inner);
    wb_optimiser *all = wb_setup(wb_adam(), model), *part = wb_setup(wb_adam(), inner);
    int lines = 0;
    wb_log_to(count_turns, &lines);
    for (int i = 0; i < 3; i++) { /* one after the other: two phases */
        assert_int_equal(step(all, model, all_of(model)), WB_OK);
        assert_int_equal(lines, 0);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(step(part, inner, along(inner, "weight", wb_ones(WB_F32, 1, 1))), WB_OK);
    assert_int_equal(lines, 0);
    for (int i = 0; i < 3; i++) { /* in turn */
        assert_int_equal(step(all, model, all_of(model)), WB_OK);
        assert_int_equal(step(part, inner, along(inner, "weight", wb_ones(WB_F32, 1, 1))), WB_OK);
    }
    assert_int_equal(lines, 1);
    wb_log_to(NULL, NULL);
    wb_free(all), wb_free(part), wb_free(model);
}

static void what_another_optimiser_leaves_alone_is_not_said(void **state) {
    (void)state;
    wb_layer *inner = wb_dense(1, 1), *model = wb_chain(wb_dense(1, 1), inner);
    wb_optimiser *all = wb_setup(wb_adam(), model), *part = wb_setup(wb_adam(), inner);
    int lines = 0;
    wb_log_to(count_turns, &lines);
    for (int i = 0; i < 3; i++) {
        wb_array *first = along(model, "layers.1.weight", wb_ones(WB_F32, 1, 1));
        assert_int_equal(step(all, model, first), WB_OK);
        assert_int_equal(step(part, inner, along(inner, "weight", wb_ones(WB_F32, 1, 1))), WB_OK);
    }
    wb_log_to(NULL, NULL);
    assert_int_equal(lines, 0);
    wb_free(all), wb_free(part), wb_free(model);
}

static void settings_are_read_back(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1), wb_vector(1));
    wb_optimiser *o = wb_setup(wb_rule_chain(wb_clip_norm(.omega = 2), wb_adam(.eta = 0.1)), model,
                               .paths = {{"2", wb_momentum(.eta = 0.5, .rho = 0.25)}});
    assert_true(wb_optimiser_setting(o, NULL, "eta") == 0.1);
    assert_true(wb_optimiser_setting(o, "2", "eta") == 0.5);
    assert_true(wb_optimiser_setting(o, "*", "omega") == 2);
    assert_true(wb_optimiser_setting(o, NULL, "rho") == 0.25);
    assert_int_equal(wb_adjust_path(o, "1", "eta", 0.3), WB_OK);
    assert_true(wb_optimiser_setting(o, "1", "eta") == 0.3);
    assert_int_equal(wb_adjust(o, 0.7), WB_OK);
    assert_true(wb_optimiser_setting(o, NULL, "eta") == 0.7);
    assert_true(wb_optimiser_setting(o, "2", "eta") == 0.7);
    assert_true(isnan(wb_optimiser_setting(o, "2", "omega")));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_optimiser_setting: there is no setting \"omega\"; there are: ");
    assert_true(isnan(wb_optimiser_setting(o, "3", "eta")));
    assert_error(WB_ERROR_ARGUMENT, "wb_optimiser_setting: ");
    wb_free(o), wb_free(model);
}

static void the_guard_keeps_everything(void **state) { /* values 10 */
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1, 1))), WB_OK);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++)
        assert_int_equal(step(o, model, along(model, "1", wb_vector(bad[i], 1))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 0.9, 1.9);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(0, 0))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 0.81, 1.81);
    wb_free(o), wb_free(model);
}

/* Steps with a loss that is nan are as if they had not been. */
static void skipped_steps_do_not_count(void **state) { /* values 10 */
    (void)state;
    const wb_rule rules[] = {wb_descent(), wb_momentum(.eta = 0.1), wb_adam(.eta = 0.1),
                             wb_adamw(.eta = 0.1, .lambda = 0.1)};
    for (int r = 0; r < 4; r++) {
        wb_layer *model = wb_tree(wb_vector(1, 2), wb_vector(3)), *spared = wb_clone(model);
        wb_optimiser *o = wb_setup(rules[r], model), *of_spared = wb_setup(rules[r], spared);
        for (int i = 1; i <= 10; i++) {
            const bool is_bad = i == 3 || i == 7;
            wb_array *g = wb_vector(is_bad ? (float)NAN : (float)sin(i), 1);
            wb_array *second = wb_vector((float)i); /* has no gradient at each third step */
            wb_array *l = along(model, "1", g), *s = along(spared, "1", g);
            if (i % 3) l = wb_add(l, along(model, "2", second));
            if (i % 3) s = wb_add(s, along(spared, "2", second));
            assert_int_equal(step(o, model, l), WB_OK);
            if (!is_bad) assert_int_equal(step(of_spared, spared, s), WB_OK);
            assert_int_equal(wb_skipped(o), (i >= 3) + (i >= 7));
        }
        assert_int_equal(wb_step_count(o), 8);
        assert_int_equal(wb_step_count(of_spared), 8);
        assert_int_equal(wb_skipped(of_spared), 0);
        assert_true(wb_approx(wb_get(model, "1"), wb_get(spared, "1"), 0, 0, NULL, 0));
        assert_true(wb_approx(wb_get(model, "2"), wb_get(spared, "2"), 0, 0, NULL, 0));
        wb_free(o), wb_free(of_spared), wb_free(model), wb_free(spared);
    }
}

static void the_norm_is_clipped_over_all(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(0), wb_vector(0));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model, .clip_total_norm = 1);
    wb_array *l = wb_add(along(model, "1", wb_vector(3)), along(model, "2", wb_vector(4)));
    assert_int_equal(step(o, model, l), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, -0.6);
    assert_values(wb_get(model, "2"), 1e-6, -0.8);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(0.5f))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, -1.1);
    wb_free(o), wb_free(model);
}

static void adjust_is_literal(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1))), WB_OK);
    assert_int_equal(wb_adjust(o, 0), WB_OK);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 0.81);
    assert_int_equal(wb_adjust(o, -1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "Momentum: eta must be at least 0, and finite, got -1");
    assert_null(wb_setup(wb_adam(.eta = -1), model));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: Adam: eta must be at least 0, and finite, got -1");
    wb_free(o), wb_free(model);
}

static void what_is_frozen_stays(void **state) { /* A29 */
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2), wb_vector(3, 4));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    for (int i = 0; i < 2; i++) {
        wb_array *l =
            wb_add(along(model, "1", wb_vector(1, 10)), along(model, "2", wb_vector(100, 1000)));
        assert_int_equal(i == 0 ? wb_freeze(o, "2") : wb_thaw(o, "*"), WB_OK);
        if (i) assert_int_equal(wb_adjust(o, 0.2), WB_OK);
        assert_int_equal(step(o, model, l), WB_OK);
        if (i == 0) assert_values(wb_get(model, "1"), 1e-6, 0.9, 1);
        if (i == 0) assert_values(wb_get(model, "2"), 0, 3, 4);
    }
    assert_values(wb_get(model, "1"), 1e-6, 0.7, -1);
    assert_values(wb_get(model, "2"), 1e-4, -17, -196);
    assert_int_equal(wb_freeze(o, "3"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_freeze: \"3\" matches no trainable array of Tree");
    wb_free(o), wb_free(model);
}

static void a_path_is_whole_names(void **state) {
    (void)state;
    wb_layer *model =
        wb_tree_named({"a", wb_tree(wb_vector(1))}, {"ab", wb_vector(2)}, {"b", wb_vector(3)});
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    wb_array *one = wb_vector(1);
    assert_int_equal(wb_freeze(o, "a"), WB_OK);
    wb_array *l = wb_add(along(model, "a.1", one), along(model, "ab", one));
    assert_int_equal(step(o, model, l), WB_OK);
    assert_values(wb_get(model, "a.1"), 0, 1);
    assert_values(wb_get(model, "ab"), 0, 1);
    wb_free(o), wb_free(model);
}

/* A layer in two places answers to either path. */
static void a_tie_answers_to_each_of_its_paths(void **state) {
    (void)state;
    wb_layer *shared = wb_dense(2, 2, .bias = false);
    wb_layer *model = wb_chain(shared, wb_keep_layer(shared), wb_dense(2, 2, .bias = false));
    wb_optimiser *o = wb_setup(wb_adam(), model, .paths = {{"layers.2", wb_descent(.eta = 1)}});
    assert_int_equal(wb_set(model, "layers.1.weight", wb_zeros(WB_F32, 2, 2)), WB_OK);
    wb_array *w = wb_ones(WB_F32, 2, 2);
    assert_int_equal(step(o, model, along(model, "layers.2.weight", w)), WB_OK);
    assert_values(wb_get(model, "layers.1.weight"), 0, -1, -1, -1, -1); /* Descent, not Adam */
    assert_int_equal(wb_freeze(o, "layers.2.weight"), WB_OK);
    assert_int_equal(step(o, model, along(model, "layers.1.weight", w)), WB_OK);
    assert_values(wb_get(model, "layers.2.weight"), 0, -1, -1, -1, -1);
    assert_int_equal(wb_thaw(o, "layers.2"), WB_OK);
    assert_int_equal(wb_adjust_path(o, "layers.2", "eta", 0.5), WB_OK);
    assert_int_equal(step(o, model, along(model, "layers.1.weight", w)), WB_OK);
    assert_values(wb_get(model, "layers.2.weight"), 0, -1.5, -1.5, -1.5, -1.5);
    wb_free(o), wb_free(model);
}

static void step_twice(wb_optimiser *o, wb_layer *model) {
    for (int i = 0; i < 2; i++) {
        wb_array *l =
            wb_add(along(model, "1", wb_vector(1, 10)), along(model, "2", wb_vector(1, 10)));
        assert_int_equal(step(o, model, l), WB_OK);
    }
}

static void parts_have_rules_of_their_own(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2), wb_vector(3, 4));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.1), model,
                               .paths = {{"2", wb_momentum(.eta = 1, .rho = 0.5)}});
    step_twice(o, model);
    assert_values(wb_get(model, "1"), 1e-5, 0.8, 0);
    assert_values(wb_get(model, "2"), 1e-5, 0.5, -21); /* 3 - 1 - 1.5, 4 - 10 - 15 */
    wb_free(o);
    o = wb_setup(wb_descent(.eta = 0.1), model,
                 .paths = {{"1", wb_descent(.eta = 1)}, {"*", wb_descent(.eta = 0.5)}});
    step_twice(o, model);
    assert_values(wb_get(model, "1"), 1e-5, -1.2, -20);
    assert_values(wb_get(model, "2"), 1e-5, -0.5, -31);
    assert_int_equal(wb_adjust(o, 0), WB_OK); /* in all rules */
    step_twice(o, model);
    assert_values(wb_get(model, "2"), 1e-5, -0.5, -31);
    wb_free(o);
    assert_null(wb_setup(wb_descent(), model, .paths = {{"layers.9", wb_descent()}}));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: \"layers.9\" matches no trainable array of Tree");
    assert_null(wb_setup(wb_descent(), model, .paths = {{"*", wb_adam()}, {"1", wb_descent()}}));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: \"1\" matches no trainable array of Tree that an "
                                    "earlier path left");
    assert_null(wb_setup(wb_descent(), model, .paths = {{"1", wb_adam(.eta = -1)}}));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: Adam: eta must be at least 0, and finite, got -1");
    wb_free(model);
}

/* Adam's corrections are those of a parameter's own steps. */
static void a_frozen_step_does_not_count(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1), wb_vector(1));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.1), model);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(i % 2 ? wb_thaw(o, NULL) : wb_freeze(o, "2"), WB_OK);
        wb_array *l = wb_add(along(model, "1", wb_vector(1)), along(model, "2", wb_vector(1)));
        assert_int_equal(step(o, model, l), WB_OK);
    }
    assert_values(wb_get(model, "1"), 1e-5, 0.6);
    assert_values(wb_get(model, "2"), 1e-5, 0.8);
    wb_free(o), wb_free(model);
}

/* Nor does it after the rule of a part that was frozen with another is adjusted. */
static void a_part_that_is_adjusted_keeps_its_count(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1), wb_vector(1), wb_vector(1));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.1), model);
    for (int i = 0; i < 4; i++) {
        for (int k = 2; k <= 3; k++) {
            const char *path = k == 2 ? "2" : "3";
            assert_int_equal(i < 2 ? wb_freeze(o, path) : wb_thaw(o, path), WB_OK);
        }
        if (i == 2) assert_int_equal(wb_adjust_path(o, "3", "eta", 0.2), WB_OK);
        wb_array *l = wb_add(along(model, "1", wb_vector(1)), along(model, "2", wb_vector(1)));
        assert_int_equal(step(o, model, wb_add(l, along(model, "3", wb_vector(1)))), WB_OK);
    }
    assert_values(wb_get(model, "2"), 1e-5, 0.8);
    assert_values(wb_get(model, "3"), 1e-5, 0.6);
    wb_free(o), wb_free(model);
}

static void settings_are_adjusted_by_name(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(4, 3, 2)); /* A27 */
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
    const float g[] = {1, 10, 100};
    wb_array *gradient = wb_from(WB_F32, g, 3);
    assert_int_equal(step(o, model, along(model, "1", gradient)), WB_OK);
    assert_values(wb_get(model, "1"), 1e-5, 3.9, 2, -8);
    assert_int_equal(wb_adjust_named(o, "eta", 0.3), WB_OK);
    assert_int_equal(wb_adjust_named(o, "rho", 0.7), WB_OK);
    assert_int_equal(step(o, model, along(model, "1", gradient)), WB_OK);
    assert_values(wb_get(model, "1"), 1e-4, 3.53, -1.7, -45);
    const int64_t misses = wb_plan_status().misses;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_adjust_named(o, "rho", 0.1 * i), WB_OK);
        assert_int_equal(wb_adjust(o, 0.01 * i), WB_OK);
        assert_int_equal(step(o, model, along(model, "1", gradient)), WB_OK);
    }
    if (!getenv("WEBER_EAGER")) assert_int_equal(wb_plan_status().misses - misses, 0);
    assert_int_equal(wb_adjust_named(o, "zeta", 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_adjust_named: there is no setting \"zeta\"; there are: eta, rho");
    assert_int_equal(wb_adjust_named(o, "rho", 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "Momentum: rho must be at least 0 and below 1, got 1");
    wb_free(o), wb_free(model);
}

static void state_is_read_and_set(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(4, 3, 2)); /* A27 */
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1, 10, 100))), WB_OK);
    wb_array *v = wb_optimiser_get(o, "1", "v");
    assert_values(v, 1e-6, 0.1, 1, 10);
    wb_array *own = wb_vector(1, 2, 3);
    assert_int_equal(wb_optimiser_set(o, "1", "v", own), WB_OK);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(0, 0, 0))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-5, 3, 0.2, -10.7);
    assert_values(own, 0, 1, 2, 3); /* as they were */
    assert_values(v, 1e-6, 0.1, 1, 10);
    assert_values(wb_optimiser_get(o, "1", "v"), 1e-6, 0.9, 1.8, 2.7);
    assert_int_equal(wb_optimiser_set(o, "1", "v", wb_ones(WB_F64, 3)), WB_OK);
    assert_int_equal(wb_dtype_of(wb_optimiser_get(o, "1", "v")), WB_F32);
    assert_null(wb_optimiser_get(o, "1", "w"));
    assert_error(WB_ERROR_ARGUMENT, "wb_optimiser_get: there is no state \"w\" of 1; there are: v");
    assert_null(wb_optimiser_get(o, "2", "v"));
    assert_error(WB_ERROR_ARGUMENT, "wb_optimiser_get: ");
    assert_int_equal(wb_optimiser_set(o, "1", "v", wb_ones(WB_F32, 2)), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "wb_optimiser_set: v of 1 has sizes (3), the new array (2)");
    assert_int_equal(wb_optimiser_set(o, "1", "v", NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_optimiser_set: x is NULL");
    wb_free(o), wb_free(model);
}

static void step_three(wb_optimiser *o, wb_layer *model) {
    wb_array *l = wb_add(along(model, "1", wb_vector(1)), along(model, "2", wb_vector(1)));
    assert_int_equal(step(o, model, wb_add(l, along(model, "3", wb_vector(1)))), WB_OK);
}

static void settings_are_adjusted_by_path(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1), wb_vector(1), wb_vector(1));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1, .rho = 0), model,
                               .paths = {{"3", wb_descent(.eta = 0.5)}});
    step_three(o, model);
    assert_int_equal(wb_adjust_path(o, "2", "eta", 0.2), WB_OK);
    step_three(o, model);
    assert_values(wb_get(model, "1"), 1e-6, 0.8);
    assert_values(wb_get(model, "2"), 1e-6, 0.7);
    assert_values(wb_get(model, "3"), 1e-6, 0);
    const int64_t misses = wb_plan_status().misses;
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(wb_adjust_path(o, "2", "eta", 0.1 * i), WB_OK);
        step_three(o, model);
    }
    if (!getenv("WEBER_EAGER")) assert_int_equal(wb_plan_status().misses - misses, 0);
    assert_values(wb_get(model, "1"), 1e-6, 0.5);
    assert_values(wb_get(model, "2"), 1e-6, 0.1);
    assert_int_equal(wb_adjust_path(o, "*", "eta", 0), WB_OK); /* of two rules */
    step_three(o, model);
    assert_values(wb_get(model, "1"), 1e-6, 0.5);
    assert_values(wb_get(model, "3"), 1e-6, -1.5);
    assert_int_equal(wb_adjust_path(o, "3", "rho", 0.2), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_adjust_path: there is no setting \"rho\"; there are: eta");
    assert_int_equal(wb_adjust_path(o, "4", "eta", 0.2), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_adjust_path: \"4\" matches no trainable array of Tree");
    assert_int_equal(wb_adjust_path(o, "1", "eta", -1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "Momentum: eta must be at least 0, and finite, got -1");
    assert_int_equal(wb_adjust_path(o, NULL, "eta", 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_adjust_path: the path is NULL");
    wb_free(o), wb_free(model);
}

static void element_types_are_kept(void **state) { /* A34 */
    (void)state;
    const wb_dtype types[] = {WB_F16, WB_BF16, WB_F32, WB_F64};
    const wb_rule rules[] = {wb_descent(), wb_momentum(), wb_adam(.eta = 0.1),
                             wb_adamw(.eta = 0.1, .lambda = 0.1)};
    for (int t = 0; t < 4; t++)
        for (int r = 0; r < 4; r++) {
            wb_layer *model = wb_tree(wb_ones(types[t], 3));
            wb_optimiser *o = wb_setup(rules[r], model);
            for (int i = 0; i < 3; i++)
                assert_int_equal(step(o, model, wb_sum(wb_square(wb_get(model, "1")))), WB_OK);
            wb_array *x = wb_get(model, "1");
            assert_int_equal(wb_dtype_of(x), types[t]);
            const double value = wb_at(x, 1);
            assert_true(isfinite(value) && value < 1 && value > 0);
            wb_free(o), wb_free(model);
        }
}

static void wrong_partners_are_refused(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1)), *other = wb_tree(wb_vector(1));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    wb_gradients *g = wb_gradient(along(other, "1", wb_vector(1)), other);
    assert_int_equal(wb_update(o, model, g), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_update: the gradients belong to another model");
    assert_int_equal(wb_update(o, other, g), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_update: the optimiser belongs to another model");
    assert_int_equal(wb_update(o, model, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_update: the gradients object is NULL");
    assert_values(wb_get(model, "1"), 0, 1);
    wb_free(o), wb_free(model), wb_free(other);
}

static void a_replaced_array_is_trained(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1), wb_vector(2));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1))), WB_OK);
    assert_int_equal(wb_set(model, "1", wb_vector(5)), WB_OK);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 4.81); /* the velocity stayed */
    assert_int_equal(wb_tie(model, "2", wb_get(model, "1")), WB_OK);
    assert_int_equal(step(o, model, along(model, "2", wb_vector(0))), WB_OK);
    assert_true(wb_get(model, "1") == wb_get(model, "2"));
    wb_free(o), wb_free(model);
}

static void two_optimisers_in_one_program(void **state) {
    (void)state;
    wb_layer *a = wb_tree(wb_vector(1)), *b = wb_tree(wb_vector(1));
    wb_optimiser *of_a = wb_setup(wb_descent(), a), *of_b = wb_setup(wb_descent(.eta = 0.2), b);
    wb_array *l = wb_mul(along(a, "1", wb_vector(1)), along(b, "1", wb_vector(1)));
    wb_gradients *grads_of_a = wb_gradient(l, a), *grads_of_b = wb_gradient(l, b);
    assert_int_equal(wb_update(of_a, a, grads_of_a), WB_OK);
    assert_int_equal(wb_update(of_b, b, grads_of_b), WB_OK);
    assert_values(wb_get(a, "1"), 1e-6, 0.9);
    assert_values(wb_get(b, "1"), 1e-6, 0.8);
    wb_free(of_a), wb_free(of_b), wb_free(a), wb_free(b);
}

/* Of 1e20 in f32: g / sqrt(inf) is 0, and the loss is finite. */
static void a_gradient_whose_square_overflows_moves_nothing(void **state) {
    (void)state;
    const wb_rule rules[] = {wb_adam(.eta = 0.1),    wb_adamw(.eta = 0.1),   wb_nadam(.eta = 0.1),
                             wb_rmsprop(.eta = 0.1), wb_adagrad(.eta = 0.1), wb_lamb(.eta = 0.1)};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        wb_layer *model = wb_tree(wb_vector(1, 1));
        wb_optimiser *o = wb_setup(rules[i], model);
        assert_int_equal(step(o, model, along(model, "1", wb_vector(1e20f, 1))), WB_OK);
        const double first = wb_at(wb_get(model, "1"), 0), second = wb_at(wb_get(model, "1"), 1);
        assert_true(first == 1 && second < 1);
        assert_int_equal(wb_skipped(o), 0);
        wb_free(o), wb_free(model);
    }
}

static wb_array *regression(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void steps_work_in_place(void **state) { /* architecture 4, values 6 */
    (void)state;
    wb_layer *model = wb_chain(wb_dense(1, 256, wb_tanh), wb_dense(256, 1));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    wb_array *x = wb_uniform(WB_F32, 1, 16);
    wb_batch batch = {.x = x, .y = wb_mul(x, wb_square(x))};
    (void)wb_eval(batch.x, batch.y);
    wb_plan_counts before = {0};
    double first = 0, last = 0;
    for (int i = 0; i < 200; i++) {
        if (i == 100) before = wb_plan_status();
        wb_scope_open();
        wb_gradients *g;
        wb_array *l = wb_withgradient(regression, model, &batch, NULL, &g);
        assert_int_equal(wb_update(o, model, g), WB_OK);
        *(i ? &last : &first) = wb_item(l);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    const wb_plan_counts after = wb_plan_status();
    assert_true(last < first / 2);
    assert_int_equal(after.misses - before.misses, 0);
    assert_int_equal(after.missed_donations - before.missed_donations, 0);
    /* where nodes rest, and on devices that queue, each step allocates */
    if (!NODES_REST && is_on_host()) assert_int_equal(after.allocations - before.allocations, 0);
    if (!getenv("WEBER_EAGER")) assert_int_equal(after.evaluations - before.evaluations, 100);
    wb_free(o), wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(three_steps_of_each_rule),
        TEST(a_held_array_keeps_its_value),
        TEST(ties_have_one_state),
        TEST(a_transpose_is_a_tie),
        TEST(only_trainable_fields_are_trained),
        TEST(missing_gradients_leave_their_parameters),
        TEST(a_loss_without_parameters_warns_once),
        TEST(parameters_of_two_optimisers_are_said),
        TEST(what_another_optimiser_leaves_alone_is_not_said),
        TEST(settings_are_read_back),
        TEST(the_guard_keeps_everything),
        TEST(skipped_steps_do_not_count),
        TEST(the_norm_is_clipped_over_all),
        TEST(adjust_is_literal),
        TEST(what_is_frozen_stays),
        TEST(a_path_is_whole_names),
        TEST(a_tie_answers_to_each_of_its_paths),
        TEST(parts_have_rules_of_their_own),
        TEST(a_frozen_step_does_not_count),
        TEST(a_part_that_is_adjusted_keeps_its_count),
        TEST(settings_are_adjusted_by_name),
        TEST(settings_are_adjusted_by_path),
        TEST(state_is_read_and_set),
        TEST(element_types_are_kept),
        TEST(wrong_partners_are_refused),
        TEST(a_replaced_array_is_trained),
        TEST(two_optimisers_in_one_program),
        TEST(a_gradient_whose_square_overflows_moves_nothing),
        TEST(steps_work_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
