/* Rule 10: where the loss is not finite, parameters and state keep their values; wb_train stops there and names the batch. */
#include "support/support.h"

static double factor;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *y = wb_matmul(wb_get(model, "1"), batch ? batch->x : wb_vector(1, 1));
    return wb_mul(wb_sum(wb_square(y)), wb_late(factor));
}

static void bad_losses_change_nothing(void **state) {
    (void)state;
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const wb_rule rules[] = {wb_descent(), wb_momentum(), wb_adam(), wb_adamw(.lambda = 0.1)};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        wb_layer *models[2];
        wb_optimiser *o[2];
        for (int i = 0; i < 2; i++) {
            models[i] = wb_tree(wb_reshape(wb_vector(1, 2, 3, 4), 2, 2));
            o[i] = wb_setup(rules[r], models[i]);
            for (int step = 0; step < 4; step++) {
                wb_gradients *g;
                if (i == 1 && step == 2) { /* the second model also sees bad losses */
                    for (int k = 0; k < 3; k++) {
                        factor = bad[k];
                        assert_non_null(wb_withgradient(loss, models[i], NULL, NULL, &g));
                        assert_int_equal(wb_update(o[i], models[i], g), WB_OK);
                    }
                }
                factor = 1;
                assert_non_null(wb_withgradient(loss, models[i], NULL, NULL, &g));
                assert_int_equal(wb_update(o[i], models[i], g), WB_OK);
            }
        }
        assert_true(wb_approx(wb_get(models[0], "1"), wb_get(models[1], "1"), r < 2 ? 1e-6 : 2e-3, 0, NULL, 0));
        for (int i = 0; i < 2; i++) wb_free(o[i]), wb_free(models[i]);
    }
}

static void training_stops_at_the_batch(void **state) {
    (void)state;
    float numbers[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    numbers[7] = NAN; /* observation 3 of two features each */
    wb_layer *model = wb_tree(wb_reshape(wb_vector(1, 2, 3, 4), 2, 2));
    wb_loader *data = wb_loader_new(.x = wb_from(WB_F32, numbers, 2, 5));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.001), model);
    factor = 1;
    assert_int_equal(wb_train(loss, model, data, o, .epochs = 2), WB_ERROR_NUMBER);
    assert_error(WB_ERROR_NUMBER, "loss is nan at batch 4 of epoch 1");
    assert_true(isfinite(wb_item(wb_sum(wb_get(model, "1")))));
    wb_free(o), wb_free(data), wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(bad_losses_change_nothing), TEST(training_stops_at_the_batch)};
    return cmocka_run_group_tests_name("values 10", tests, NULL, NULL);
}
