/* Rule 10: a step has a guard: where the loss is not finite, parameters and state keep their
 * values. */
#include "values/modes.h"

/* sum of p . x: the gradient is x. */
static wb_array *along(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_mul(wb_get(model, "1"), batch->x));
}

static wb_status step(wb_optimiser *o, wb_layer *model, double x1, double x2) {
    wb_scope_open();
    const wb_batch batch = {.x = wb_vector((float)x1, (float)x2)};
    wb_gradients *g;
    wb_array *l = wb_withgradient(along, model, &batch, NULL, &g);
    const wb_status status = l ? wb_update(o, model, g) : wb_error_status();
    const wb_status closed = wb_scope_close();
    return status == WB_OK ? closed : status;
}

static const struct row {
    const char *name;
    double x1, x2, clip_norm;
} rows[] = {
    {"nan in one place stops the whole step", NAN, 1, 0},
    {"an infinite loss stops the step", INFINITY, 1, 0},
    {"minus infinity does, too", -INFINITY, 1, 0},
    {"opposite infinities do, too", INFINITY, -INFINITY, 0},
    {"the guard holds when clipping", NAN, 1, 1},
    {"a norm that overflows stops the step", 1e30, -1e30, 1},
};

static wb_rule rule_of(int i) {
    return i == 0   ? wb_descent()
           : i == 1 ? wb_momentum(.eta = 0.5)
           : i == 2 ? wb_adam(.eta = 0.5)
                    : wb_adamw(.eta = 0.5, .lambda = 0.5);
}

/* The same for all rules, and for the state: after the bad step, momentum goes on as if it had not
 * been. */
static void a_bad_step_changes_nothing(void **state) {
    const struct row *row = *state;
    for (int i = 0; i < 4; i++) {
        wb_layer *model = wb_tree(wb_vector(1, 1)), *spared = wb_clone(model);
        wb_optimiser *o = wb_setup(rule_of(i), model, .clip_norm = row->clip_norm);
        wb_optimiser *of_spared = wb_setup(rule_of(i), spared, .clip_norm = row->clip_norm);
        assert_int_equal(step(o, model, 0.5, -2), WB_OK);
        assert_int_equal(step(of_spared, spared, 0.5, -2), WB_OK);
        assert_int_equal(step(o, model, row->x1, row->x2), WB_OK);
        assert_same_bits(wb_get(model, "1"), wb_get(spared, "1"), row->name);
        assert_int_equal(step(o, model, 0.25, 3), WB_OK);
        assert_int_equal(step(of_spared, spared, 0.25, 3), WB_OK);
        assert_same_bits(wb_get(model, "1"), wb_get(spared, "1"), row->name);
        assert_int_equal(wb_skipped(o), 1);
        assert_int_equal(wb_step(o), 2);
        assert_int_equal(step(o, model, 0.25, 3), WB_OK);
        assert_true(isfinite(wb_item(wb_sum(wb_get(model, "1")))));
        wb_free(o), wb_free(of_spared), wb_free(model), wb_free(spared);
    }
}

/* ---- wb_train reads the guard ---- */

static bool note_step(const wb_train_event *event) {
    *(int *)event->user = (int)event->step;
    return true;
}

static void train_until(double bad, const char *message) {
    float x[2 * 6];
    for (int i = 0; i < 12; i++) x[i] = (float)(i % 3) + 1;
    x[7] = (float)
        bad; /* observation 3, of the third epoch's fourth batch if nothing stops it before */
    wb_layer *model = wb_tree(wb_vector(1, 1));
    wb_loader *data = wb_loader_new(.x = wb_from(WB_F32, x, 2, 6));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.125), model);
    wb_layer *wanted = wb_clone(model);
    wb_optimiser *of_wanted = wb_setup(wb_momentum(.eta = 0.125), wanted);
    for (int i = 0; i < 3; i++)
        assert_int_equal(step(of_wanted, wanted, (double)x[2 * i], (double)x[2 * i + 1]), WB_OK);
    int steps = 0;
    assert_int_equal(
        wb_train(along, model, data, o, .epochs = 3, .on_step = note_step, .user = &steps),
        WB_ERROR_NUMBER);
    assert_error(WB_ERROR_NUMBER, message);
    assert_int_equal(steps, 3);
    assert_int_equal(wb_step(o), 3);
    assert_same_bits(wb_get(model, "1"), wb_get(wanted, "1"), "parameters before the bad batch");
    wb_free(of_wanted), wb_free(wanted), wb_free(o), wb_free(data), wb_free(model);
}

static void training_stops_and_names_the_batch(void **state) {
    (void)state;
    train_until((double)NAN, "loss is nan at batch 4 of epoch 1");
    train_until((double)INFINITY, "loss is infinite at batch 4 of epoch 1");
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(training_stops_and_names_the_batch),
    };
    ADD_ROWS(&tests, rows, a_bad_step_changes_nothing);
    ADD_TESTS(&tests, others);
    return run_test_list("values 10", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
