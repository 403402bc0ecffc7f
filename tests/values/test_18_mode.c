/* Rule 18: a layer is in training, in test, or automatic; automatic ones follow a flag of the
 * thread. */
#include <pthread.h>

#include "gradient/mode.h"
#include "values/modes.h"

static int warnings;
static void count_warnings(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_WARN && strstr(line, "test mode")) warnings++;
}

static bool drops(wb_layer *dropout) {
    wb_array *x = wb_ones(WB_F32, 1000);
    return wb_item(wb_minimum(wb_apply(dropout, x))) == 0;
}

/* Once per process, so it comes first. */
static void a_gradient_through_test_mode_warns_once(void **state) {
    (void)state;
    wb_log_to(count_warnings, NULL);
    wb_layer *model = wb_chain(wb_dense(3, 4, wb_tanh), wb_dropout(.p = 0.5), wb_dense(4, 1));
    wb_array *x = wb_ones(WB_F32, 3, 2);
    wb_array *l = wb_sum(wb_apply(model, x));
    (void)wb_item(l); /* a prediction is no reason to warn */
    assert_int_equal(warnings, 0);
    assert_non_null(wb_gradient(l, model));
    assert_int_equal(warnings, 1);
    assert_non_null(wb_gradient(wb_sum(wb_apply(model, x)), model));
    assert_int_equal(warnings, 1);
    wb_log_to(NULL, NULL);
    wb_free(model);
}

static void automatic_layers_follow_the_flag(void **state) {
    (void)state;
    wb_layer *d = wb_dropout(.p = 0.5);
    assert_false(wb_is_training());
    assert_false(drops(d));
    assert_false(wb_training(true));
    assert_true(drops(d));
    assert_true(wb_training(false));
    assert_false(drops(d));
    wb_free(d);
}

static void others_do_not(void **state) {
    (void)state;
    wb_layer *d = wb_dropout(.p = 0.5), *model = wb_chain(wb_tree(wb_chain(wb_keep_layer(d))));
    for (int flag = 0; flag < 2; flag++) {
        (void)wb_training(flag != 0);
        assert_int_equal(wb_train_mode(model), WB_OK);
        assert_true(drops(d));
        assert_int_equal(wb_test_mode(model), WB_OK);
        assert_false(drops(d));
        assert_int_equal(wb_auto_mode(model), WB_OK);
        assert_int_equal(drops(d), flag);
    }
    (void)wb_training(false);
    wb_free(d), wb_free(model);
}

static bool seen_in_loss;
static wb_array *watching(wb_layer *model, const wb_batch *batch, void *user) {
    seen_in_loss = wb_is_training();
    if (user) return NULL; /* a loss that fails */
    return wb_sum(wb_apply(model, batch->x));
}

static void withgradient_sets_the_flag_and_puts_it_back(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 1);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 2)};
    wb_gradients *g;
    for (int before = 0; before < 2; before++)
        for (int fails = 0; fails < 2; fails++) {
            (void)wb_training(before != 0);
            seen_in_loss = false;
            wb_array *l = wb_withgradient(watching, model, &batch, fails ? &fails : NULL, &g);
            assert_int_equal(l == NULL, fails);
            assert_int_equal(wb_failed(), fails);
            wb_clear_error();
            assert_true(seen_in_loss);
            assert_int_equal(wb_is_training(), before);
        }
    (void)wb_training(false);
    wb_free(model);
}

static bool seen_in_callback;
static bool look(const wb_train_event *event) {
    (void)event;
    seen_in_callback = wb_is_training();
    return true;
}

static void train_sets_the_flag_and_puts_it_back(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 1);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 3, 4));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    seen_in_loss = false, seen_in_callback = true;
    assert_int_equal(wb_train(watching, model, data, o, .on_step = look), WB_OK);
    assert_true(seen_in_loss);
    assert_false(seen_in_callback); /* a callback may evaluate the model */
    assert_false(wb_is_training());
    int fails = 1;
    assert_int_not_equal(wb_train(watching, model, data, o, .user = &fails), WB_OK);
    wb_clear_error();
    assert_false(wb_is_training());
    wb_free(o), wb_free(data), wb_free(model);
}

static void *flag_of_another_thread(void *result) {
    *(bool *)result = wb_training(true);
    return NULL;
}

static void the_flag_is_the_threads_own(void **state) {
    (void)state;
    bool there = true;
    pthread_t thread;
    (void)wb_training(true);
    assert_int_equal(pthread_create(&thread, NULL, flag_of_another_thread, &there), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(there);
    assert_true(wb_training(false));
}

/* The mode is that of the call, not of the evaluation. */
static void the_mode_is_that_of_the_call(void **state) {
    (void)state;
    wb_layer *d = wb_dropout(.p = 0.5);
    (void)wb_training(true);
    wb_array *trained = wb_apply(d, wb_ones(WB_F32, 1000));
    (void)wb_training(false);
    wb_array *tested = wb_apply(d, wb_ones(WB_F32, 1000));
    (void)wb_training(true);
    assert_true(wb_item(wb_minimum(tested)) == 1);
    (void)wb_training(false);
    assert_true(wb_item(wb_minimum(trained)) == 0);
    wb_free(d);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_gradient_through_test_mode_warns_once),
        TEST(automatic_layers_follow_the_flag),
        TEST(others_do_not),
        TEST(withgradient_sets_the_flag_and_puts_it_back),
        TEST(train_sets_the_flag_and_puts_it_back),
        TEST(the_flag_is_the_threads_own),
        TEST(the_mode_is_that_of_the_call),
    };
    return cmocka_run_group_tests_name("values 18", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
