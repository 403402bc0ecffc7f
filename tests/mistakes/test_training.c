/* Mistakes with losses, rules and training: a call, its status, and words of its message. */
#include <weber.h>

#include "mistakes/refused.h"

static void calls_alone(void **state) {
    (void)state;
    REFUSED(wb_hessian(wb_ones(WB_F64, 2), wb_ones(WB_F64, 2)), GRADIENT,
            "hessian: the loss must be one number, got 2 elements in (2)");
    REFUSED(
        wb_mse(wb_ones(WB_F32, 0, 3), wb_ones(WB_F32, 0, 3)), SHAPE,
        "mse: an observation of the prediction must have at least one element, got sizes (0, 3)");
    REFUSED(wb_mse(wb_ones(WB_I32, 3), wb_ones(WB_I32, 3)), DTYPE,
            "mse: the prediction (3) is i32");
    REFUSED(wb_mae(NULL, wb_ones(WB_F32, 3)), ARGUMENT, "mae: the prediction is NULL");
    REFUSED(wb_crossentropy(wb_ones(WB_F32, 3), NULL), ARGUMENT,
            "crossentropy: the target is NULL");
    REFUSED(wb_accuracy(wb_ones(WB_F32, 3, 2), wb_ones(WB_I32, 3)), SHAPE,
            "accuracy: the prediction has sizes (3, 2), so the target must have these");
    REFUSED(wb_mse(wb_ones(WB_F32, 3, 1), wb_ones(WB_F32, 3)), SHAPE,
            "mse: the prediction has sizes (3, 1), the target (3); losses do not broadcast");
    REFUSED(wb_mse(wb_ones(WB_F32, 1, 4), wb_ones(WB_F32, 4)), SHAPE,
            "losses do not broadcast: wb_reshape(y, 1, -1)");
    REFUSED(wb_mse(wb_ones(WB_F32, 4), wb_ones(WB_F32, 1, 4)), SHAPE,
            "losses do not broadcast: wb_reshape(y, -1)");
    REFUSED(wb_logitcrossentropy(wb_ones(WB_F32, 5, 4), wb_ones(WB_F32, 4)), DTYPE,
            "logitcrossentropy: labels must be integers, got f32: wb_cast(y, WB_I32)");
    REFUSED(wb_gradients_keep(NULL), ARGUMENT, "wb_gradients_keep: the gradients object is NULL");
    REFUSED(wb_aux("x", NULL), ARGUMENT, "wb_aux: x is NULL");
    REFUSED(wb_aux(NULL, wb_vector(1)), ARGUMENT, "wb_aux: the name is NULL");
    REFUSED(wb_gradients_aux(NULL, "x"), ARGUMENT,
            "wb_gradients_aux: the gradients object is NULL");
    REFUSED(wb_params(NULL), ARGUMENT, "wb_params: the model is NULL");
    REFUSED(wb_loss_scale(NULL), ARGUMENT, "wb_loss_scale: the optimiser is NULL");
    REFUSED(wb_schedule_cosine(0, 1, 4, .halves = true), ARGUMENT,
            "wb_schedule_cosine: this schedule has no setting halves; it has first, last, period "
            "and back");
    REFUSED(wb_schedule_cosine(0, 1, 4, .decay = 0.5), ARGUMENT,
            "wb_schedule_cosine: this schedule has no setting decay");
    REFUSED(wb_schedule_triangle(0, 1, 4, .back = true), ARGUMENT,
            "wb_schedule_triangle: this schedule has no setting back; it has first, last, period, "
            "halves and decay");
    REFUSED(wb_schedule_sin(0, 1, 4, .back = true), ARGUMENT,
            "wb_schedule_sin: this schedule has no setting back");
    REFUSED(wb_schedule_step(1, .5, 0), ARGUMENT, "wb_schedule_step: size must be above 0, got 0");
    REFUSED(wb_schedule_stages(1, .5, 2, -1), ARGUMENT,
            "wb_schedule_stages: each size must be above 0, got -1");
    REFUSED(wb_schedule_exp((double)NAN, .5), ARGUMENT,
            "wb_schedule_exp: start must be finite, got nan");
    REFUSED(wb_schedule_cosine(0, 1), ARGUMENT,
            "wb_schedule_cosine: period must be above 0, got 0");
    REFUSED(wb_schedule_one_cycle(8, 1, .percent = 1), ARGUMENT,
            "one_cycle: percent must be at least 0 and below 1");
    REFUSED(wb_schedule_sequence({wb_schedule_constant(1), 1}, {NULL, 1}), ARGUMENT,
            "wb_schedule_sequence: a schedule is NULL");
    REFUSED(wb_schedule_loop(wb_schedule_constant(1), 0), ARGUMENT,
            "wb_schedule_loop: the number of steps must be above 0, got 0");
    REFUSED(wb_schedule_of(NULL, NULL), ARGUMENT, "wb_schedule_of: the function is NULL");
    REFUSED(wb_standstill_is_over(NULL, 1), ARGUMENT, "wb_standstill_is_over: the watch is NULL");
}

static void of_rules(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1));
    REFUSED(wb_setup(wb_adam(.lambda = 0.01), model), ARGUMENT,
            "Adam: has no lambda and no decoupled: use wb_adamw");
    REFUSED(wb_setup(wb_nadam(.decoupled = true), model), ARGUMENT,
            "NAdam: has no lambda and no decoupled: use wb_adamw");
    wb_free(model);
}

static void of_rules_too(void **state) {
    (void)state;
    const wb_rule_at own = {.g = wb_vector(1, 2)};
    REFUSED(wb_setting(NULL, "eta"), ARGUMENT, "wb_setting: at is NULL");
    REFUSED(wb_setting_unbiased(&own, "beta"), ARGUMENT,
            "wb_setting: at must be the pointer that the rule's function");
    REFUSED(wb_setting_rest(NULL, "beta"), ARGUMENT, "wb_setting: at is NULL");
    REFUSED(wb_setting_is(NULL, "centred"), ARGUMENT, "wb_setting: at is NULL");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {TEST(calls_alone), TEST(of_rules), TEST(of_rules_too)};
    ADD_TESTS(&tests, all);
    return run_test_list("mistakes/test_training", &tests, NULL, NULL);
}
