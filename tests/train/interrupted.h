/* A training with everything that has a state, for tests that interrupt it. */
#ifndef TESTS_TRAIN_INTERRUPTED_H
#define TESTS_TRAIN_INTERRUPTED_H

#include <dirent.h>
#include <sys/resource.h>

#include <weber.h>

#include "support/files.h"
#include "support/support.h"

enum { POINTS = 43, BATCH = 8, BATCHES = 6, EPOCHS = 3, STEPS = BATCHES * EPOCHS };

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

static inline wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *p = wb_aux("scores", wb_apply(model, batch->x));
    (void)wb_aux("largest", wb_maximum(p));
    return wb_logitcrossentropy(p, batch->y);
}

/* Noise from the caller's sequence: it goes on where the file says. */
static inline void add_noise(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_add(batch->x, wb_mul_number(wb_uniform(WB_F32, 4, batch->size), 0.01));
}

/* Noise from the batch's own sequence, on the loader's thread. */
static inline wb_status scale_one(const wb_batch_memory *batch, void *user) {
    (void)user;
    float *x = batch->data[0];
    x[0] *= (float)wb_item(wb_uniform(WB_F32, 1));
    return wb_failed() ? wb_error_status() : WB_OK;
}

static inline run begin(const kind *k, uint64_t seed) {
    run r = {.kind = k};
    wb_seed(7); /* the data is the same in each run */
    wb_array *x = wb_normal(WB_F32, 4, POINTS);
    int32_t labels[POINTS];
    for (int i = 0; i < POINTS; i++) labels[i] = i % 3;
    r.loader = wb_loader_new(.x = x, .y = wb_from(WB_I32, labels, POINTS), .batchsize = BATCH,
                             .shuffle = true, .seed = seed, .background = !k->no_background,
                             .drop_partial = k->drop_partial, .map = add_noise,
                             .prepare = is_on_host() ? scale_one : NULL);
    wb_seed(seed);
    wb_layer *inner = wb_dense(6, 6, wb_tanh);
    r.model = k->tied
                  ? wb_chain(wb_dense(4, 6), inner, wb_dropout(.p = 0.3), wb_keep_layer(inner),
                             wb_dense(6, 3))
                  : wb_chain(wb_dense(4, 6, wb_tanh), wb_dropout(.p = 0.3), inner, wb_dense(6, 3));
    r.optimiser = k->in_parts
                      ? wb_setup(k->rule(), r.model, .paths = {{"*.bias", wb_adam(.eta = 3e-3)}})
                      : wb_setup(k->rule(), r.model, .clip_total_norm = k->clip_norm);
    assert_false(wb_failed());
    return r;
}

static inline void end(run *r) {
    wb_free(r->optimiser), wb_free(r->loader), wb_free(r->model);
    wb_free(r->rate), wb_free(r->decay), wb_free(r->bias);
    *r = (run){.kind = r->kind};
}

/* Everything that a training leaves behind, as bytes. */
static inline void leave(const run *r, const char *path) {
    assert_int_equal(wb_save_named(path, {"model", r->model}, {"optimiser", r->optimiser},
                                   {"loader", r->loader}, {"random", wb_random_state()}),
                     WB_OK);
}

static inline wb_rule descent(void) { return wb_descent(.eta = 0.1); }
static inline wb_rule momentum(void) { return wb_momentum(.eta = 0.1); }
static inline wb_rule adam_rule(void) { return wb_adam(.eta = 0.01); }
static inline wb_rule adamw(void) { return wb_adamw(.eta = 0.01, .lambda = 0.02); }
static inline wb_rule chained(void) {
    return wb_rule_chain(wb_clip_grad(.delta = 0.1), wb_weight_decay(.lambda = 1e-2), wb_adam());
}

static inline wb_rule averaged(void) {
    return wb_mixed_precision(wb_rule_chain(wb_adam(), wb_ema()));
}

static inline wb_rule schedule_free(void) { return wb_schedule_free(.warm_up = 5); }

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

static const kind *const adam = &kinds[2];

static inline bool count_step(const wb_train_event *event) {
    run *r = event->user;
    return ++r->calls != r->stop_at;
}

static inline bool note_mean(const wb_train_event *event) {
    run *r = event->user;
    assert_int_equal(event->step, BATCHES);
    r->means[event->epoch - 1] = event->mean_loss;
    assert_int_equal(event->aux_count, 1);
    assert_string_equal(event->aux[0].name, "largest");
    r->aux[event->epoch - 1] = event->aux[0].mean;
    return true;
}

/* The folder; a run of its own each time. */
static inline const char *fresh_folder(void) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "run%d/", ++number);
    return path_of(name);
}

static inline wb_status train(run *r, const char *checkpoint, int64_t every, int64_t keep) {
    return wb_train(loss, r->model, r->loader, r->optimiser, .epochs = EPOCHS,
                    .on_step = count_step, .on_epoch = note_mean, .user = r,
                    .checkpoint = checkpoint, .every = every, .keep = keep ? keep : 3);
}

static double whole_means[EPOCHS], whole_aux[EPOCHS];

/* What the training leaves that nothing interrupts and that has no checkpoints. */
static inline const char *whole(void) {
    run r = begin(adam, 5);
    assert_int_equal(train(&r, NULL, 0, 0), WB_OK);
    assert_int_equal(r.calls, STEPS);
    leave(&r, path_of("whole.npz"));
    memcpy(whole_means, r.means, sizeof whole_means);
    memcpy(whole_aux, r.aux, sizeof whole_aux);
    end(&r);
    return path_of("whole.npz");
}

static inline void assert_whole(const run *r) {
    leave(r, path_of("now.npz"));
    assert_same_files(whole(), path_of("now.npz"));
}

static inline bool has_file(const char *checkpoint, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", checkpoint, name);
    return access(path, F_OK) == 0;
}

static inline int count_files(const char *checkpoint) {
    DIR *open = opendir(checkpoint);
    int count = 0;
    assert_non_null(open);
    for (const struct dirent *e; (e = readdir(open));) count += *e->d_name != '.';
    closedir(open);
    return count;
}

/* From here on; gives what they could have before. */
static inline rlim_t files_may_have(rlim_t bytes) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return before;
}

#endif
