/* src/train/watch.c and what wb_train does after an epoch: validation, early stopping, plateau, the
 * best model. */
#include <weber.h>

#include "base/memory.h"
#include "support/files.h"
#include "support/support.h"

enum { MOST = 8 };

/* ---- pieces ---- */

typedef struct row {
    const char *name;
    int64_t n;
    double min_delta;
    int count;
    double scores[MOST];
    bool ends[MOST];
} row;

/* Numbers of Flux's callbacks. */
static const row rows[] = {
    {"a score that becomes better", 2, 0, 6, {5, 4, 4, 4.5, 4.2, 3}, {0, 0, 0, 0, 1, 0}},
    {"by too little", 2, .5, 4, {5, 4.8, 4.6, 4.4}, {0, 0, 1, 1}},
    {"a constant score never ends it", 2, 0, 4, {1, 1, 1, 1}, {0}},
    {"but with min_delta it does", 2, 1e-3, 4, {1, 1, 1, 1}, {0, 0, 1, 1}},
    {"no number is bad", 1, 0, 3, {1, (double)NAN, 1}, {0, 1, 0}},
    {"NaN at first is bad, and not what is compared with",
     2,
     0,
     5,
     {(double)NAN, 3, 4, (double)NAN, 2},
     {0, 0, 0, 1, 0}},
    {"nothing but NaN ends it", 2, 0, 3, {(double)NAN, (double)NAN, (double)NAN}, {0, 1, 1}},
    {"equal infinities stay the same", 1, 0, 3, {INFINITY, INFINITY, 2}, {0, 0, 0}},
    {"no patience, no end", 0, 0, 3, {1, 2, 3}, {0}},
};

static void early_stopping_follows_the_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_early_stopping watch = {.patience = rows[i].n, .min_delta = rows[i].min_delta};
        for (int k = 0; k < rows[i].count; k++)
            if (wb_early_stopping_ends(&watch, rows[i].scores[k]) != rows[i].ends[k])
                fail_msg("%s: at %d", rows[i].name, k);
    }
}

static void patience(void **state) { /* K2 */
    (void)state;
    wb_patience three = {.n = 3}, again = {.n = 3};
    const bool ends[] = {false, false, true, true};
    for (int i = 0; i < 4; i++) assert_int_equal(wb_patience_is_over(&three, true), ends[i]);
    const bool bad[] = {false, true, false, true, true, true};
    for (int i = 0; i < 6; i++) assert_int_equal(wb_patience_is_over(&again, bad[i]), i == 5);
    wb_patience last = {.n = 3, .count = INT64_MAX}; /* stays at the largest number */
    assert_true(wb_patience_is_over(&last, true) && last.count == INT64_MAX);
}

/* K1, with a wait that is long for a test to be held up in, and one that is over at once. */
static void a_standstill_is_told(void **state) { /* the scores of Flux's docstring */
    (void)state;
    wb_standstill watch = {.width = 3, .min_dist = 18, .init_score = 10}, none = {.width = 0};
    for (int i = 0; i < 10; i++) {
        const double v = i % 2 ? 8 - i / 2 * 2 : -9 + i / 2 * 2;
        const bool is_over = wb_standstill_is_over(&watch, v);
        assert_int_equal(is_over, i >= 3);
        assert_false(wb_standstill_is_over(&none, 0));
    }
    wb_standstill usual = {.width = 2, .init_score = 5};
    const double scores[] = {1, 1, 1, NAN, NAN, 1, 1, 1 + 2e-6, 1, 1 + 1e-7, 1, INFINITY, INFINITY};
    const bool over[] = {false, false, true,  false, false, false, false,
                         false, false, false, true,  false, false};
    for (int i = 0; i < 13; i++)
        if (wb_standstill_is_over(&usual, scores[i]) != over[i]) fail_msg("score %d", i);
}

static void a_throttle_drops_calls(void **state) {
    (void)state;
    wb_throttle t = {.seconds = 3600};
    int ran[3], count = 0;
    for (int i = 1; i <= 3; i++)
        if (wb_throttle_passes(&t)) ran[count++] = i;
    assert_int_equal(count, 1);
    if (wb_throttle_has_rest(&t)) ran[count++] = 3;
    assert_int_equal(count, 2);
    assert_int_equal(ran[0], 1);
    assert_int_equal(ran[1], 3);
    assert_false(wb_throttle_has_rest(&t));
    t.last -= 3600; /* later */
    assert_true(wb_throttle_passes(&t));
    assert_false(wb_throttle_passes(&t));
    wb_throttle none = {.seconds = 0};
    for (int i = 0; i < 3; i++) assert_true(wb_throttle_passes(&none));
}

static void assert_rate(wb_optimiser *o, wb_layer *model, double wanted) {
    const double before = wb_item(wb_get(model, "1"));
    wb_array *l = wb_sum(wb_get(model, "1"));
    assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
    const double rate = before - wb_item(wb_get(model, "1"));
    if (fabs(rate - wanted) > 1e-6) fail_msg("the rate is %g, not %g", rate, wanted);
}

static void a_plateau_lowers_the_rate(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector_of(WB_F64, 1));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    wb_plateau p = WB_PLATEAU(.factor = .5, .patience = 2, .cooldown = 1, .least = .2);
    const double scores[] = {3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1},
                 rates[] = {1, 1, 1, 1, .5, .5, .5, .5, .25, .25, .25, .25, .2, .2};
    for (int i = 0; i < 14; i++) {
        assert_int_equal(wb_plateau_step(&p, o, scores[i]), WB_OK);
        assert_rate(o, model, rates[i]);
    }
    wb_plateau usual = WB_PLATEAU();
    for (int i = 0; i < 12; i++) { /* the 11th bad one */
        assert_int_equal(wb_plateau_step(&usual, o, 1), WB_OK);
        assert_rate(o, model, i < 11 ? .2 : .02);
    }
    wb_plateau bad = WB_PLATEAU(.factor = 2);
    assert_int_equal(wb_plateau_step(&bad, o, 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_plateau_step: factor must be above 0 and below 1, got 2");
    bad = WB_PLATEAU(.cooldown = -1);
    assert_int_equal(wb_plateau_step(&bad, o, 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "must not be negative, got 10, -1, 0.0001 and 0");
    wb_free(o), wb_free(model);
}

/* What is better than infinity is better, and NaN is not. */
static void a_plateau_begins_with_scores_that_are_not_finite(void **state) {
    (void)state;
    static const double firsts[] = {INFINITY, (double)NAN};
    for (int i = 0; i < 2; i++) {
        wb_layer *model = wb_tree(wb_vector_of(WB_F64, 1));
        wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
        wb_plateau p = WB_PLATEAU(.factor = .5, .patience = 1);
        const double scores[] = {firsts[i], 9, 8, 7, (double)NAN, (double)NAN},
                     rates[] = {1, 1, 1, 1, 1, .5};
        for (int k = 0; k < 6; k++) {
            assert_int_equal(wb_plateau_step(&p, o, scores[k]), WB_OK);
            assert_rate(o, model, rates[k]);
        }
        wb_free(o), wb_free(model);
    }
}

/* ---- wb_train ---- */

enum { POINTS = 30, BATCH = 6, EPOCHS = 8 };

typedef struct run {
    wb_layer *model;
    wb_loader *loader, *held_out;
    wb_optimiser *optimiser;
    wb_train_desc desc;
    int steps, epochs, stop_at;
    double accuracy[EPOCHS + 1], score[EPOCHS + 1];
    int64_t best[EPOCHS + 1];
    wb_layer *copies[EPOCHS + 1]; /* of the model after each epoch */
} run;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static bool stop_there(const wb_train_event *event) {
    run *r = event->user;
    return ++r->steps != r->stop_at;
}

static bool note(const wb_train_event *event) {
    run *r = event->user;
    assert_non_null(event->validation);
    r->epochs++;
    r->accuracy[event->epoch] = event->validation->accuracy;
    r->score[event->epoch] = event->score;
    r->best[event->epoch] = event->best_epoch;
    wb_free(r->copies[event->epoch]);
    r->copies[event->epoch] = wb_clone(event->model);
    return true;
}

/* Better until epoch 3, then worse. */
static double valley(const wb_train_event *event) { return fabs((double)event->epoch - 3); }

static run begin(uint64_t seed) {
    run r = {.steps = 0};
    int32_t y[POINTS];
    for (int i = 0; i < POINTS; i++) y[i] = i % 3;
    wb_seed(7);
    wb_array *x = wb_normal(WB_F32, 4, POINTS), *labels = wb_from(WB_I32, y, POINTS);
    r.loader =
        wb_loader_new(.x = x, .y = labels, .batchsize = BATCH, .shuffle = true, .seed = seed);
    r.held_out = wb_loader_new(.x = wb_normal(WB_F32, 4, POINTS), .y = labels, .batchsize = 7);
    wb_seed(seed);
    r.model = wb_chain(wb_dense(4, 6, wb_tanh), wb_dropout(.p = 0.3), wb_dense(6, 3));
    r.optimiser = wb_setup(wb_adam(.eta = 0.05), r.model);
    r.desc = WB_DESC(train, .loss = loss, .model = r.model, .loader = r.loader,
                     .optimiser = r.optimiser, .validation = r.held_out, .on_step = stop_there,
                     .on_epoch = note, .epochs = EPOCHS);
    return r;
}

static wb_status train(run *r) {
    r->desc.user = r;
    return wb_train_make(r->desc);
}

static void end(run *r) {
    for (int i = 0; i <= EPOCHS; i++) wb_free(r->copies[i]);
    wb_free(r->optimiser), wb_free(r->loader), wb_free(r->held_out), wb_free(r->model);
}

static void assert_same_model(wb_layer *a, wb_layer *b) {
    static const char *const paths[] = {"layers.1.weight", "layers.1.bias", "layers.3.weight",
                                        "layers.3.bias"};
    for (int i = 0; i < 4; i++)
        assert_same_bits(wb_get(a, paths[i]), wb_get(b, paths[i]), paths[i]);
}

static void validation_is_that_of_wb_evaluate(void **state) {
    (void)state;
    run r = begin(5);
    assert_int_equal(train(&r), WB_OK);
    assert_int_equal(r.epochs, EPOCHS);
    for (int i = 1; i <= EPOCHS; i++) {
        const wb_evaluation e = wb_evaluate(r.copies[i], r.held_out, .loss = loss);
        assert_true(e.accuracy == r.accuracy[i] && e.loss == r.score[i]);
    }
    end(&r);
}

static void steps_are_told_at_most_once_in_a_time(void **state) {
    (void)state;
    run r = begin(5);
    r.desc.throttle = 3600;
    assert_int_equal(train(&r), WB_OK);
    assert_int_equal(r.steps, 1);
    r.desc.throttle = -1;
    assert_int_equal(train(&r), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: throttle must not be negative, got -1");
    end(&r);
}

static void the_best_model_is_kept_and_early_stopping_ends(void **state) {
    (void)state;
    run r = begin(5);
    r.desc.score = valley, r.desc.keep_best = true;
    r.desc.early_stopping = (wb_early_stopping){.patience = 2};
    assert_int_equal(train(&r), WB_OK);
    assert_int_equal(r.epochs, 5); /* 4 and 5 are worse than 3 */
    assert_int_equal(r.best[5], 3);
    assert_same_model(r.model, r.copies[3]);
    end(&r);
}

/* NaN, 2, 1, NaN, NaN. */
static double with_gaps(const wb_train_event *event) {
    return event->epoch == 2 ? 2 : event->epoch == 3 ? 1 : (double)NAN;
}

static void a_score_of_nan_is_never_the_best(void **state) {
    (void)state;
    run r = begin(5);
    r.desc.score = with_gaps, r.desc.keep_best = true;
    r.desc.early_stopping = (wb_early_stopping){.patience = 2};
    assert_int_equal(train(&r), WB_OK);
    assert_int_equal(r.epochs, 5);
    const int64_t best[] = {0, 0, 2, 3, 3, 3};
    assert_memory_equal(r.best, best, sizeof best);
    assert_same_model(r.model, r.copies[3]);
    end(&r);
}

static const char *fresh_folder(void) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "watch%d/", ++number);
    return path_of(name);
}

static void with_everything(run *r, const char *checkpoint) {
    r->desc.score = valley, r->desc.keep_best = true;
    r->desc.early_stopping = (wb_early_stopping){.patience = 4};
    r->desc.plateau = WB_PLATEAU(.factor = .5, .patience = 0, .cooldown = 1);
    r->desc.checkpoint = checkpoint, r->desc.every = checkpoint ? 2 : 0;
}

/* Stopped at any batch, the same call comes to the same bits. */
static void what_watches_goes_on_from_a_checkpoint(void **state) {
    (void)state;
    run whole = begin(5);
    with_everything(&whole, NULL);
    assert_int_equal(train(&whole), WB_OK);
    assert_int_equal(whole.epochs, 7);
    for (int stop = 1; stop < 7 * POINTS / BATCH; stop += compiles_kernels() ? 16 : 3) {
        const char *folder = fresh_folder();
        run r = begin(5);
        with_everything(&r, folder), r.stop_at = stop;
        assert_int_equal(train(&r), WB_OK);
        end(&r);
        r = begin(99);
        with_everything(&r, folder);
        assert_int_equal(train(&r), WB_OK);
        assert_same_model(r.model, whole.model);
        assert_same_model(r.copies[7], whole.copies[7]); /* after both changes of the rate */
        end(&r);
        r = begin(98); /* it has ended: nothing is trained */
        with_everything(&r, folder);
        assert_int_equal(train(&r), WB_OK);
        assert_int_equal(r.steps, 0);
        assert_same_model(r.model, whole.model);
        end(&r);
    }
    end(&whole);
}

static bool clone_nothing(const wb_train_event *event) { return event->epoch > 0; }

static void every_allocation_may_fail(void **state) {
    (void)state;
    wb_status status = WB_ERROR_MEMORY;
    for (int64_t n = 1; status != WB_OK; n += 1 + n / 12) {
        run r = begin(5);
        with_everything(&r, NULL);
        r.desc.on_epoch = clone_nothing, r.desc.epochs = 2;
        (void)wb_fail_allocation(n);
        status = train(&r);
        (void)wb_fail_allocation(0);
        if (status != WB_OK) assert_error(status, "");
        end(&r);
    }
}

static void mistakes(void **state) {
    (void)state;
    run r = begin(5);
    wb_schedule *rate = wb_schedule_constant(0.1);
    r.desc.plateau = WB_PLATEAU(.factor = .5);
    r.desc.schedules[0] = (wb_scheduled){"eta", rate, NULL};
    assert_int_equal(train(&r), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: eta must follow either a schedule or a plateau");
    r.desc.schedules[0] = (wb_scheduled){NULL, NULL, NULL};
    r.desc.early_stopping.min_delta = -1;
    assert_int_equal(train(&r), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: early_stopping: patience and min_delta must not be");
    r.desc.early_stopping.min_delta = 0;
    r.desc.metrics.task = WB_TASK_NUMBERS;
    assert_int_equal(train(&r), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: metrics lacks its defaults");
    r.desc.metrics = WB_DESC(evaluate, .task = WB_TASK_NUMBERS);
    assert_int_equal(train(&r), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "wb_evaluate: expected floating numbers and as many targets");
    wb_free(rate);
    end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(early_stopping_follows_the_rows),
        TEST(patience),
        TEST(a_standstill_is_told),
        TEST(a_throttle_drops_calls),
        TEST(a_plateau_lowers_the_rate),
        TEST(a_plateau_begins_with_scores_that_are_not_finite),
        TEST(validation_is_that_of_wb_evaluate),
        TEST(steps_are_told_at_most_once_in_a_time),
        TEST(the_best_model_is_kept_and_early_stopping_ends),
        TEST(a_score_of_nan_is_never_the_best),
        TEST(what_watches_goes_on_from_a_checkpoint),
        TEST(every_allocation_may_fail),
        TEST(mistakes),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
