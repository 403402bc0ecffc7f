/* src/train/training.c: trainings that are interrupted in every way end in the bits of the one
 * that was not. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <weber.h>

#include "platform/process.h"
#include "support/files.h"
#include "support/support.h"

enum { POINTS = 43, BATCH = 8, BATCHES = 6, EPOCHS = 3, STEPS = BATCHES * EPOCHS };

/* ---- a training with everything that has a state ---- */

typedef struct kind {
    const char *name;
    wb_rule (*rule)(void);
    double clip_norm;
    bool tied, no_background, drop_partial;
    bool in_parts; /* biases have a rule of their own */
    const char *extension;
} kind;

typedef struct run {
    const kind *kind;
    wb_layer *model;
    wb_loader *loader;
    wb_optimiser *optimiser;
    int calls, stop_at;   /* of on_step, 0: never */
    double means[EPOCHS]; /* losses of the epochs */
    double aux[EPOCHS];   /* means of what the loss hands out */
    wb_schedule *rate, *decay, *bias;
} run;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *p = wb_aux("scores", wb_apply(model, batch->x));
    (void)wb_aux("largest", wb_maximum(p));
    return wb_logitcrossentropy(p, batch->y);
}

/* Noise from the caller's sequence: it goes on where the file says. */
static void add_noise(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_add(batch->x, wb_mul_number(wb_uniform(WB_F32, 4, batch->size), 0.01));
}

/* Noise from the batch's own sequence, on the loader's thread. */
static wb_status scale_one(const wb_batch_memory *batch, void *user) {
    (void)user;
    float *x = batch->data[0];
    x[0] *= (float)wb_item(wb_uniform(WB_F32, 1));
    return wb_failed() ? wb_error_status() : WB_OK;
}

static run begin(const kind *k, uint64_t seed) {
    run r = {.kind = k};
    wb_seed(7); /* the data is the same in each run */
    wb_array *x = wb_normal(WB_F32, 4, POINTS);
    int32_t labels[POINTS];
    for (int i = 0; i < POINTS; i++) labels[i] = i % 3;
    r.loader = wb_loader_new(.x = x, .y = wb_from(WB_I32, labels, POINTS), .batchsize = BATCH,
                             .shuffle = true, .seed = seed, .no_background = k->no_background,
                             .drop_partial = k->drop_partial, .map = add_noise,
                             .prepare = is_on_host() ? scale_one : NULL);
    wb_seed(seed);
    wb_layer *inner = wb_dense(6, 6, wb_tanh);
    r.model = k->tied
                  ? wb_chain(wb_dense(4, 6), inner, wb_dropout(.p = 0.3), wb_retain(inner),
                             wb_dense(6, 3))
                  : wb_chain(wb_dense(4, 6, wb_tanh), wb_dropout(.p = 0.3), inner, wb_dense(6, 3));
    r.optimiser = k->in_parts
                      ? wb_setup(k->rule(), r.model, .paths = {{"*.bias", wb_adam(.eta = 3e-3)}})
                      : wb_setup(k->rule(), r.model, .clip_norm = k->clip_norm);
    assert_false(wb_failed());
    return r;
}

static void end(run *r) {
    wb_free(r->optimiser), wb_free(r->loader), wb_free(r->model);
    wb_free(r->rate), wb_free(r->decay), wb_free(r->bias);
    *r = (run){.kind = r->kind};
}

/* Everything that a training leaves behind, as bytes. */
static void leave(const run *r, const char *path) {
    assert_int_equal(wb_save_named(path, {"model", r->model}, {"optimiser", r->optimiser},
                                   {"loader", r->loader}, {"random", wb_random_state()}),
                     WB_OK);
}

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
            if (wb_step(r->optimiser) != cut) continue;
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

static wb_rule descent(void) { return wb_descent(.eta = 0.1); }
static wb_rule momentum(void) { return wb_momentum(.eta = 0.1); }
static wb_rule adam_rule(void) { return wb_adam(.eta = 0.01); }
static wb_rule adamw(void) { return wb_adamw(.eta = 0.01, .lambda = 0.02); }
static wb_rule chained(void) {
    return wb_rule_chain(wb_clip_grad(.delta = 0.1), wb_weight_decay(.lambda = 1e-2), wb_adam());
}

static wb_rule averaged(void) { return wb_mixed_precision(wb_rule_chain(wb_adam(), wb_ema())); }
static wb_rule schedule_free(void) { return wb_schedule_free(.warm_up = 5); }

static const kind kinds[] = {
    {.name = "descent, BSON", .rule = descent, .extension = ".bson"},
    {.name = "momentum, tied layers, npz", .rule = momentum, .tied = true, .extension = ".npz"},
    {.name = "Adam, clipped, no thread of the loader's own, npz",
     .rule = adam_rule,
     .clip_norm = 0.5,
     .no_background = true,
     .extension = ".npz"},
    {.name = "AdamW, tied layers, full batches only, BSON",
     .rule = adamw,
     .tied = true,
     .drop_partial = true,
     .extension = ".bson"},
    {.name = "AdamW, and Adam for biases, BSON",
     .rule = adamw,
     .in_parts = true,
     .extension = ".bson"},
    {.name = "a chain of rules, npz", .rule = chained, .extension = ".npz"},
    {.name = "an average in mixed precision, BSON", .rule = averaged, .extension = ".bson"},
    {.name = "schedule-free, npz", .rule = schedule_free, .extension = ".npz"},
};

/* ---- wb_train ---- */

static const kind *const adam = &kinds[2];

static bool count_step(const wb_train_event *event) {
    run *r = event->user;
    return ++r->calls != r->stop_at;
}

static bool note_mean(const wb_train_event *event) {
    run *r = event->user;
    assert_int_equal(event->step, BATCHES);
    r->means[event->epoch - 1] = event->mean_loss;
    assert_int_equal(event->aux_count, 1);
    assert_string_equal(event->aux[0].name, "largest");
    r->aux[event->epoch - 1] = event->aux[0].mean;
    return true;
}

/* The folder; a run of its own each time. */
static const char *fresh_folder(void) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "run%d/", ++number);
    return path_of(name);
}

static wb_status train(run *r, const char *checkpoint, int64_t every, int64_t keep) {
    return wb_train(loss, r->model, r->loader, r->optimiser, .epochs = EPOCHS,
                    .on_step = count_step, .on_epoch = note_mean, .user = r,
                    .checkpoint = checkpoint, .every = every, .keep = keep);
}

static double whole_means[EPOCHS], whole_aux[EPOCHS];

/* What the training leaves that nothing interrupts and that has no checkpoints. */
static const char *whole(void) {
    run r = begin(adam, 5);
    assert_int_equal(train(&r, NULL, 0, 0), WB_OK);
    assert_int_equal(r.calls, STEPS);
    leave(&r, path_of("whole.npz"));
    memcpy(whole_means, r.means, sizeof whole_means);
    memcpy(whole_aux, r.aux, sizeof whole_aux);
    end(&r);
    return path_of("whole.npz");
}

static void assert_whole(const run *r) {
    leave(r, path_of("now.npz"));
    assert_same_files(whole(), path_of("now.npz"));
}

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
            assert_int_equal(wb_step(r.optimiser), stop);
            end(&r);
            r = begin(adam, 99);
            assert_int_equal(train(&r, checkpoint, rests[i], 0), WB_OK);
            assert_int_equal(r.calls, STEPS - stop);
            assert_int_equal(wb_step(r.optimiser), STEPS);
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

static bool has_file(const char *checkpoint, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", checkpoint, name);
    return access(path, F_OK) == 0;
}

static int count_files(const char *checkpoint) {
    DIR *open = opendir(checkpoint);
    int count = 0;
    assert_non_null(open);
    for (const struct dirent *e; (e = readdir(open));) count += *e->d_name != '.';
    closedir(open);
    return count;
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

/* ---- files that are damaged, that do not fit, that cannot be written ---- */

static int warnings;
static void count_warnings(void *context, wb_log_level level, const char *line) {
    (void)context, (void)line;
    warnings += level == WB_LOG_WARN;
}

typedef enum damage { CUT_SHORT, EMPTY, FLIPPED } damage;

static void do_damage(const char *path, damage how) {
    size_t size = 0;
    unsigned char *bytes = read_file(path, &size);
    assert_non_null(bytes);
    for (size_t i = 0; i < 200 && how == FLIPPED; i++) bytes[size / 2 + i] ^= 4;
    write_file(path, bytes, how == CUT_SHORT ? size - size / 3 : how == EMPTY ? 0 : size);
    free(bytes);
}

static void a_damaged_file_is_passed_over(void **state) {
    (void)state;
    for (damage how = CUT_SHORT; how <= FLIPPED; how++) {
        const char *checkpoint = fresh_folder();
        char path[256];
        run r = begin(adam, 5);
        r.stop_at = 11;
        assert_int_equal(train(&r, checkpoint, 3, 3), WB_OK);
        end(&r);
        snprintf(path, sizeof path, "%scheckpoint-000000000011.npz", checkpoint);
        do_damage(path, how);
        r = begin(adam, 99);
        warnings = 0;
        wb_log_to(count_warnings, NULL);
        assert_int_equal(train(&r, checkpoint, 3, 3), WB_OK);
        wb_log_to(NULL, NULL);
        assert_int_equal(warnings, 1);
        assert_int_equal(r.calls, STEPS - 9);
        assert_true(has_file(checkpoint, "checkpoint-000000000011.npz.damaged"));
        assert_whole(&r);
        end(&r);
    }
}

static void nothing_starts_over_damaged_files(void **state) {
    (void)state;
    const char *checkpoint = fresh_folder();
    char path[256];
    run r = begin(adam, 5);
    r.stop_at = 1;
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%scheckpoint-00000000000%d.npz", checkpoint, i);
        do_damage(path, CUT_SHORT);
    }
    wb_log_to(count_warnings, NULL);
    r.calls = 0;
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_ERROR_FORMAT);
    wb_log_to(NULL, NULL);
    assert_error(WB_ERROR_FORMAT, "none of 2 checkpoints can be read");
    assert_int_equal(r.calls, 0);
    assert_true(has_file(checkpoint, "checkpoint-000000000001.npz"));
    end(&r);
}

static void another_model_is_refused(void **state) {
    (void)state;
    const char *checkpoint = fresh_folder();
    run r = begin(adam, 5);
    r.stop_at = 2;
    assert_int_equal(train(&r, checkpoint, 0, 0), WB_OK);
    end(&r);
    r = begin(&kinds[3], 5); /* tied, and AdamW */
    leave(&r, path_of("before.bson"));
    assert_true(train(&r, checkpoint, 0, 0) != WB_OK);
    assert_int_equal(r.calls, 0);
    char message[1024];
    (void)wb_take_error(message, sizeof message);
    assert_non_null(strstr(message, "checkpoint-000000000002.npz"));
    leave(&r, path_of("after.bson"));
    assert_same_files(path_of("before.bson"), path_of("after.bson"));
    end(&r);
}

static void a_folder_that_cannot_be_is_told_first(void **state) {
    (void)state;
    write_file(path_of("file"), "x", 1);
    run r = begin(adam, 5);
    assert_int_equal(train(&r, path_of("file/run/"), 0, 0), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "file/run/");
    assert_int_equal(r.calls, 0);
    assert_int_equal(train(&r, path_of("run.npy"), 0, 0), WB_ERROR_ARGUMENT); /* one array each */
    wb_clear_error();
    assert_int_equal(r.calls, 0);
    assert_int_equal(wb_train(loss, r.model, r.loader, r.optimiser, .checkpoint = path_of("r/"),
                              .more = {{"x", wb_ones(WB_F32, 2)}}),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "\"x\" is an array, which keeps its numbers");
    assert_int_equal(train(&r, path_of("r/"), -1, 0), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "every and keep must not be negative, got -1 and");
    end(&r);
}

static rlim_t files_may_have(rlim_t bytes) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return before;
}

/* From one step to another files cannot grow beyond some bytes, as on a full disk. */
typedef struct full_disk {
    run *run;
    int from, to;
    rlim_t limit;
} full_disk;

static bool fill_disk(const wb_train_event *event) {
    full_disk *d = event->user;
    const int step = ++d->run->calls;
    if (step == d->from) d->limit = files_may_have(700);
    if (step == d->to) (void)files_may_have(d->limit);
    return true;
}

static void a_full_disk_costs_no_training(void **state) {
    (void)state;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN); /* an error of write instead */
    const char *checkpoint = fresh_folder();
    run r = begin(adam, 5);
    full_disk d = {.run = &r, .from = 4, .to = 8};
    warnings = 0;
    wb_log_to(count_warnings, NULL);
    assert_int_equal(wb_train(loss, r.model, r.loader, r.optimiser, .epochs = EPOCHS,
                              .on_step = fill_disk, .user = &d, .checkpoint = checkpoint,
                              .every = 1),
                     WB_OK);
    assert_int_equal(warnings, 4);
    assert_int_equal(count_files(checkpoint), 3); /* no halves */
    assert_whole(&r);
    end(&r);

    r = begin(adam, 5);
    d = (full_disk){.run = &r, .from = STEPS - 1, .to = -1};
    const wb_status status =
        wb_train(loss, r.model, r.loader, r.optimiser, .epochs = EPOCHS, .on_step = fill_disk,
                 .user = &d, .checkpoint = fresh_folder(), .every = 1);
    (void)files_may_have(d.limit);
    wb_log_to(NULL, NULL);
    assert_int_equal(status, WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "all is trained, but the last checkpoint failed");
    assert_whole(&r);
    end(&r);
    signal(SIGXFSZ, before);
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
        assert_int_equal(wb_step(r.optimiser), BATCHES + 4 + part);
        lowest[part] = wb_item(wb_get(best, "loss"));
        end(&r);
        wb_free(best);
    }
    assert_true(lowest[0] < 1e8);
    assert_true(lowest[0] == lowest[1]);
}

/* ---- killed ---- */

static char self[256];

/* What a child does: trains in the folder, one checkpoint per step, and leaves path; from step `at`
 * on files end at `bytes`. */
typedef struct child {
    run run;
    int at;
    rlim_t bytes;
} child;

static bool limit_files(const wb_train_event *event) {
    const child *c = event->user;
    if (wb_step(event->optimiser) == c->at) (void)files_may_have(c->bytes);
    return true;
}

static int be_a_child(char **words) {
    if (open_scope(NULL)) return 2;
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    child c = {begin(adam, (uint64_t)atoi(words[2])), atoi(words[3]), (rlim_t)atoll(words[4])};
    const wb_status status =
        wb_train(loss, c.run.model, c.run.loader, c.run.optimiser, .epochs = EPOCHS,
                 .on_step = limit_files, .user = &c, .checkpoint = words[0], .every = 1, .keep = 2);
    if (status == WB_OK) leave(&c.run, words[1]);
    end(&c.run);
    return status == WB_OK ? close_scope(NULL) : wb_report("a child");
}

static bool has_checkpoint(const char *checkpoint) {
    DIR *open = opendir(checkpoint);
    bool found = false;
    for (const struct dirent *e; open && (e = readdir(open));)
        found = found || (strlen(e->d_name) > 4 && !strcmp(strrchr(e->d_name, '.'), ".npz"));
    if (open) closedir(open);
    return found;
}

/* Who goes on has another seed: all comes from the file. */
static pid_t start_child(const char *checkpoint, const char *path, int at, long long bytes) {
    char numbers[3][24];
    snprintf(numbers[0], sizeof numbers[0], "%d", has_checkpoint(checkpoint) ? 99 : 5);
    snprintf(numbers[1], sizeof numbers[1], "%d", at);
    snprintf(numbers[2], sizeof numbers[2], "%lld", bytes);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(self, self, "--child", checkpoint, path, numbers[0], numbers[1], numbers[2],
              (char *)NULL);
        _exit(3);
    }
    return pid;
}

static int wait_for(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* After the n-th byte of the file that follows a step, for many steps and bytes. */
static void killed_within_a_file_it_goes_on(void **state) {
    (void)state;
    static const struct {
        int at;
        long long bytes;
    } deaths[] = {{1, 0}, {2, 1}, {3, 64}, {6, 200}, {7, 1000}, {9, 2000}, {12, 2900}, {18, 0}};
    const char *checkpoint = fresh_folder(), *left = path_of("left.npz");
    (void)whole();
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        const int status = wait_for(start_child(checkpoint, left, deaths[i].at, deaths[i].bytes));
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
        assert_true(count_files(checkpoint) <= 4); /* two, the half, and one that was to go */
    }
    assert_int_equal(wait_for(start_child(checkpoint, left, 0, 0)), 0);
    assert_int_equal(count_files(checkpoint), 2);
    assert_same_files(path_of("whole.npz"), left);
}

/* After some microseconds, again and again and ever later, until it comes to its end. */
static void killed_at_any_instant_it_goes_on(void **state) {
    (void)state;
    const char *left = path_of("left.npz");
    double life = 2000;
    int kills = 0;
    (void)whole();
    for (int round = 0; round < (compiles_kernels() ? 1 : 6); round++, life /= 5) {
        const char *checkpoint = fresh_folder();
        int status = -1;
        (void)unlink(left);
        for (; status != 0; life *= 1.2) {
            const pid_t pid = start_child(checkpoint, left, 0, 0);
            usleep((useconds_t)life);
            (void)kill(pid, SIGKILL);
            status = wait_for(pid);
            assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
            kills += status != 0;
        }
        assert_same_files(path_of("whole.npz"), left);
    }
    assert_true(kills > 0);
}

int main(int count, char **words) {
    if (count == 7 && strcmp(words[1], "--child") == 0) return be_a_child(words + 2);
    if (!wb_platform_program(self, sizeof self)) return 1;
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(a_training_goes_on_where_it_was_stopped),
        TEST(a_training_that_is_done_is_only_loaded),
        TEST(scheduled_trainings_go_on_with_the_same_bits),
        TEST(a_loop_follows_schedules),
        TEST(what_cannot_be_scheduled),
        TEST(the_path_may_name_the_files),
        TEST(a_damaged_file_is_passed_over),
        TEST(nothing_starts_over_damaged_files),
        TEST(another_model_is_refused),
        TEST(a_folder_that_cannot_be_is_told_first),
        TEST(a_full_disk_costs_no_training),
        TEST(more_objects_come_along),
        TEST(killed_within_a_file_it_goes_on),
        TEST(killed_at_any_instant_it_goes_on),
    };
    ADD_ROWS(&tests, kinds, a_loop_goes_on_with_the_same_bits);
    ADD_TESTS(&tests, others);
    return run_test_list("train/test_training", &tests, make_folder, drop_folder);
}
