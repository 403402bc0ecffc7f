/* src/train/training.c: trainings that are stopped end in the bits of the one that was not. */
#include "interrupted.h"

/* ---- loops by hand ---- */

static const char *file_of(const kind *k, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "%s%s", name, k->extension);
    return path_of(text);
}

/* Trains to the end; with cut, a number of steps, it stops there, in the middle of the turn, after
 * saving. */
static void loop(run *r, int64_t cut, const char *path) {
    for (int64_t epoch = wb_loader_epoch(r->loader); epoch < EPOCHS; epoch++) {
        wb_batch batch = {0};
        while (wb_next(r->loader, &batch)) {
            wb_gradients *g;
            wb_array *l = wb_withgradient(loss, r->model, &batch, NULL, &g);
            assert_int_equal(wb_update(r->optimiser, r->model, g), WB_OK);
            assert_true(isfinite(wb_item(l)));
            if (wb_step_count(r->optimiser) != cut) continue;
            leave(r, path);
            assert_int_equal(wb_batch_end(&batch), WB_OK);
            return;
        }
        assert_false(wb_failed());
    }
}

/* Another model, another seed: all that matters comes from the file. */
static void go_on(const kind *k, const char *path) {
    run r = begin(k, 99);
    wb_seed(1234);
    assert_int_equal(wb_load_named(path, {"model", r.model}, {"optimiser", r.optimiser},
                                   {"loader", r.loader}, {"random", wb_random_state()}),
                     WB_OK);
    loop(&r, 0, NULL);
    leave(&r, file_of(k, "resumed"));
    end(&r);
}

static void a_loop_goes_on_with_the_same_bits(void **state) {
    const kind *k = *state;
    run r = begin(k, 5);
    loop(&r, 0, NULL);
    leave(&r, file_of(k, "whole"));
    end(&r);
    const int steps = k->drop_partial ? STEPS - EPOCHS : STEPS;
    for (int cut = 1; cut <= steps; cut += compiles_kernels() ? 5 : 1) {
        r = begin(k, 5);
        loop(&r, cut, file_of(k, "cut"));
        end(&r);
        go_on(k, file_of(k, "cut"));
        assert_same_files(file_of(k, "whole"), file_of(k, "resumed"));
    }
}

/* ---- wb_train ---- */

static void a_training_goes_on_where_it_was_stopped(void **state) {
    (void)state;
    static const int rests[] = {0, 1, 4};
    (void)whole();
    for (int i = 0; i < 3; i++)
        for (int stop = 1; stop < STEPS; stop += compiles_kernels() ? 7 : 1 + i) {
            const char *checkpoint = fresh_folder();
            run r = begin(adam, 5);
            r.stop_at = stop;
            assert_int_equal(train(&r, checkpoint, rests[i], 0), WB_OK);
            assert_int_equal(wb_step_count(r.optimiser), stop);
            end(&r);
            r = begin(adam, 99);
            assert_int_equal(train(&r, checkpoint, rests[i], 0), WB_OK);
            assert_int_equal(r.calls, STEPS - stop);
            assert_int_equal(wb_step_count(r.optimiser), STEPS);
            leave(&r, path_of("now.npz"));
            assert_same_files(path_of("whole.npz"), path_of("now.npz"));
            for (int k = stop / BATCHES; k < EPOCHS; k++)
                assert_true(r.means[k] == whole_means[k] && r.aux[k] == whole_aux[k]);
            end(&r);
        }
}

/* ---- schedules ---- */

static double falling(int64_t t, void *user) {
    (void)user;
    return 0.99 - 0.01 * (double)t;
}

static wb_status train_scheduled(run *r, const char *checkpoint) {
    r->rate = wb_schedule_sequence({wb_schedule_warm_up(1e-3, 0.02, 5), 5},
                                   {wb_schedule_cosine(0.02, 1e-3, 13), 13});
    r->decay = wb_schedule_of(falling, NULL);
    r->bias = wb_schedule_exp(0.1, 0.8);
    return wb_train(loss, r->model, r->loader, r->optimiser, .epochs = EPOCHS,
                    .on_step = count_step, .user = r, .checkpoint = checkpoint, .every = 1,
                    .schedules = {{"eta", r->rate, NULL},
                                  {"beta1", r->decay, NULL},
                                  {"eta", r->bias, "*.bias"}});
}

static void scheduled_trainings_go_on_with_the_same_bits(void **state) {
    (void)state;
    run r = begin(adam, 5);
    assert_int_equal(train_scheduled(&r, NULL), WB_OK);
    leave(&r, path_of("whole.npz"));
    end(&r);
    for (int stop = 1; stop < STEPS; stop += compiles_kernels() ? 7 : 3) {
        const char *checkpoint = fresh_folder();
        r = begin(adam, 5);
        r.stop_at = stop;
        assert_int_equal(train_scheduled(&r, checkpoint), WB_OK);
        end(&r);
        r = begin(adam, 99);
        assert_int_equal(train_scheduled(&r, checkpoint), WB_OK);
        assert_int_equal(r.calls, STEPS - stop);
        leave(&r, path_of("now.npz"));
        assert_same_files(path_of("whole.npz"), path_of("now.npz"));
        end(&r);
    }
}

/* A loop by hand comes to the same, and no value makes a plan. */
static void a_loop_follows_schedules(void **state) {
    (void)state;
    run r = begin(adam, 5);
    assert_int_equal(train_scheduled(&r, NULL), WB_OK);
    leave(&r, path_of("whole.npz"));
    end(&r);
    r = begin(adam, 5);
    r.rate = wb_schedule_sequence({wb_schedule_warm_up(1e-3, 0.02, 5), 5},
                                  {wb_schedule_cosine(0.02, 1e-3, 13), 13});
    r.bias = wb_schedule_exp(0.1, 0.8);
    int64_t t = 1, misses = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        wb_batch batch = {0};
        for (; wb_next(r.loader, &batch); t++) {
            assert_int_equal(wb_adjust(r.optimiser, wb_schedule_at(r.rate, t)), WB_OK);
            assert_int_equal(wb_adjust_named(r.optimiser, "beta1", falling(t, NULL)), WB_OK);
            assert_int_equal(
                wb_adjust_path(r.optimiser, "*.bias", "eta", wb_schedule_at(r.bias, t)), WB_OK);
            assert_non_null(wb_train_step(loss, r.model, &batch, NULL, r.optimiser));
        }
        if (epoch == 0) misses = wb_plan_status().misses;
    }
    if (!getenv("WEBER_EAGER")) assert_int_equal(wb_plan_status().misses, misses);
    leave(&r, path_of("now.npz"));
    assert_same_files(path_of("whole.npz"), path_of("now.npz"));
    end(&r);
}

static void what_cannot_be_scheduled(void **state) {
    (void)state;
    run r = begin(adam, 5);
    r.rate = wb_schedule_constant(-1);
    assert_int_equal(
        wb_train(loss, r.model, r.loader, r.optimiser, .schedules = {{"eta", r.rate, NULL}}),
        WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "Adam: eta must be at least 0, and finite, got -1");
    assert_int_equal(
        wb_train(loss, r.model, r.loader, r.optimiser, .schedules = {{"zeta", r.rate, NULL}}),
        WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "there is no setting \"zeta\"; there are: eta, beta1");
    assert_int_equal(
        wb_train(loss, r.model, r.loader, r.optimiser, .schedules = {{"eta", NULL, NULL}}),
        WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_schedule_at: the schedule is NULL");
    end(&r);
}

static void a_training_that_is_done_is_only_loaded(void **state) {
    (void)state;
    const char *checkpoint = fresh_folder();
    run r = begin(adam, 5);
    assert_int_equal(train(&r, checkpoint, 0, 2), WB_OK);
    end(&r);
    assert_int_equal(count_files(checkpoint), 2);
    assert_true(has_file(checkpoint, "checkpoint-000000000012.npz"));
    assert_true(has_file(checkpoint, "checkpoint-000000000018.npz"));
    r = begin(adam, 99);
    assert_int_equal(train(&r, checkpoint, 0, 2), WB_OK);
    assert_int_equal(r.calls, 0);
    assert_whole(&r);
    end(&r);
}

static void the_path_may_name_the_files(void **state) {
    (void)state;
    run r = begin(adam, 5);
    r.stop_at = 5;
    assert_int_equal(train(&r, path_of("deep/er/net.bson"), 2, 2), WB_OK);
    assert_int_equal(count_files(path_of("deep/er/")), 2);
    assert_true(has_file(path_of("deep/er/"), "net-000000000004.bson"));
    assert_true(has_file(path_of("deep/er/"), "net-000000000005.bson"));
    end(&r);
    /* a checkpoint is a file as any other */
    const char *file = path_of("deep/er/net-000000000005.bson");
    r = begin(adam, 99);
    assert_int_equal(wb_load(file, r.model), WB_OK);
    wb_layer *made = wb_load_model(file, "model");
    assert_non_null(made);
    assert_same_bits(wb_get(made, "layers.4.weight"), wb_get(r.model, "layers.4.weight"), "made");
    wb_free(made);
    end(&r);
}

/* ---- more objects ---- */

static bool keep_best(const wb_train_event *event) {
    wb_layer *best = event->user;
    wb_scope_open();
    const double value = wb_item(event->loss);
    if (value < wb_item(wb_get(best, "loss"))) wb_set(best, "loss", wb_scalar(WB_F32, value));
    wb_scope_close();
    return event->step != 4 || event->epoch != 2;
}

static bool stop(const wb_train_event *event) { return event->loss == NULL; }

static void more_objects_come_along(void **state) {
    (void)state;
    const char *checkpoint = fresh_folder();
    double lowest[2];
    for (int part = 0; part < 2; part++) {
        run r = begin(adam, 5);
        wb_layer *best = wb_tree_named({"loss", wb_scalar(WB_F32, 1e9)});
        assert_int_equal(wb_train(loss, r.model, r.loader, r.optimiser, .epochs = EPOCHS,
                                  .on_step = part ? stop : keep_best, .user = best,
                                  .checkpoint = checkpoint, .more = {{"best", best}}),
                         WB_OK);
        assert_int_equal(wb_step_count(r.optimiser), BATCHES + 4 + part);
        lowest[part] = wb_item(wb_get(best, "loss"));
        end(&r);
        wb_free(best);
    }
    assert_true(lowest[0] < 1e8);
    assert_true(lowest[0] == lowest[1]);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(a_training_goes_on_where_it_was_stopped),
        TEST(a_training_that_is_done_is_only_loaded),
        TEST(scheduled_trainings_go_on_with_the_same_bits),
        TEST(a_loop_follows_schedules),
        TEST(what_cannot_be_scheduled),
        TEST(the_path_may_name_the_files),
        TEST(more_objects_come_along),
    };
    ADD_ROWS(&tests, kinds, a_loop_goes_on_with_the_same_bits);
    ADD_TESTS(&tests, others);
    return run_test_list("train/test_training", &tests, make_folder, drop_folder);
}
