/* weber/train.h: the training loop.
 *
 *     wb_train(loss, model, data, adam, .epochs = 50, .validation = held_out, .keep_best = true,
 *              .early_stopping = {.patience = 5}, .schedules = {{"eta", rate}});
 *
 * For a loop by hand, each part can also be called by itself: wb_train_step (weber/optimise.h),
 * wb_evaluate (weber/metrics.h), wb_schedule_at (weber/schedules.h), and the functions below.
 * Errors: weber/error.h. */
#ifndef WEBER_TRAIN_H
#define WEBER_TRAIN_H

#include "metrics.h"
#include "schedules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- watching a score ---- */

/* True when is_bad was true in at least the last n calls; n 0: never. */
typedef struct wb_patience {
    int64_t n;
    int64_t count; /* 0 at first */
} wb_patience;
WB_API bool wb_patience_is_over(wb_patience *patience, bool is_bad);

/* Lets at most one call pass in `seconds`: wb_throttle_passes is true for the first call, and then
 * for the first call that is at least so long after the last true one. wb_throttle_has_rest, for
 * the end of a loop: true, once, if calls have returned false since the last true one. */
typedef struct wb_throttle {
    double seconds;
    double last; /* this and the following members are 0 at first */
    bool has_begun, has_rest;
} wb_throttle;
WB_API bool wb_throttle_passes(wb_throttle *throttle);
WB_API bool wb_throttle_has_rest(wb_throttle *throttle);

/* True when a score (smaller is better) has not become smaller by min_delta for `patience` calls in
 * a row. The first score that is not NaN is good. NaN is bad, and later scores are never compared
 * with it. As in Flux, with min_delta 0 an equal score counts as smaller, and later scores are
 * compared with the smallest so far. */
typedef struct wb_early_stopping {
    int64_t patience; /* calls; 0: never true */
    double min_delta; /* at least 0 */
    double best;      /* this and the following members are 0 at first */
    int64_t bad;
    bool has_begun;
} wb_early_stopping;
WB_API bool wb_early_stopping_ends(wb_early_stopping *watch, double score);

/* True when a score, in either direction, has changed by less than min_dist from the one before it
 * for `width` calls in a row: Flux's plateau. The first call compares with init_score; a score of
 * NaN counts as a change. (wb_plateau is PyTorch's, which lowers the rate.) */
typedef struct wb_standstill {
    int64_t width;     /* calls; 0: never true */
    double min_dist;   /* above 0; default 1e-6 */
    double init_score; /* default 0 */
    double last;       /* this and the following members are 0 at first */
    int64_t still;
    bool has_begun;
} wb_standstill;
WB_API bool wb_standstill_is_over(wb_standstill *watch, double score);

/* Multiplies the learning rates of all rules by factor when for more than `patience` calls no score
 * was below best - threshold |best|, where best is the smallest score so far; NaN is not below. The
 * next `cooldown` calls are not counted. As PyTorch's ReduceLROnPlateau, except that for negative
 * scores PyTorch compares with (1 - threshold) best. wb_plateau p = WB_PLATEAU(.patience = 3). */
typedef struct wb_plateau {
    WB_START_MEMBER;
    double factor WB_DEFAULT(0.1); /* above 0 and below 1 */
    int64_t patience WB_DEFAULT(10);
    double threshold WB_DEFAULT(1e-4);
    int64_t cooldown; /* default 0 */
    double least;     /* lower limit of the rates; default 0 */
    double best;      /* this and the following members are 0 at first */
    int64_t bad, waiting;
    bool has_begun;
} wb_plateau;
#define WB_PLATEAU(...) WB_QUIET_(WB_VALUE_(wb_plateau, WB_DEFAULTS_plateau, __VA_ARGS__))
WB_API wb_status wb_plateau_step(wb_plateau *plateau, wb_optimiser *optimiser, double score);

/* ---- the loop ---- */

/* A number that the loss hands out by wb_aux. */
typedef struct wb_train_aux {
    char name[WB_AUX_NAME_BYTES];
    double value; /* of the last batch */
    double mean;  /* over the observations of the epoch so far */
} wb_train_aux;

/* The argument of callbacks. A callback that returns false ends the training, with WB_OK. */
typedef struct wb_train_event {
    wb_layer *model;
    wb_optimiser *optimiser;
    const wb_batch *batch; /* NULL at the end of an epoch */
    wb_array *loss;        /* of the batch; NULL at the end of an epoch */
    double mean_loss;      /* of the epoch so far, as for one big batch: losses weighted by their
                         divisors (wb_divided_by), else by observations */
    int64_t epoch, step;   /* from 1; the step is counted within the epoch */
    const wb_evaluation *validation; /* at an epoch's end, with a validation loader; else NULL */
    double score;                    /* at the end of an epoch: smaller is better */
    int64_t best_epoch;              /* the one with the smallest score so far; 0: none */
    int aux_count; /* numbers that the loss hands out; other arrays: wb_optimiser_aux */
    const wb_train_aux *aux;
    void *user;
} wb_train_event;
typedef bool wb_train_fn(const wb_train_event *event);

/* The score of an epoch, from the argument of callbacks; smaller is better, NaN is worst. */
typedef double wb_score_fn(const wb_train_event *event);

enum { WB_MORE_OBJECTS = 6, WB_SCHEDULES = 4 };

/* A setting that follows a schedule. */
typedef struct wb_scheduled {
    const char *setting;         /* "eta" */
    const wb_schedule *schedule; /* weber/schedules.h; remains the caller's */
    const char *path;            /* as for wb_adjust_path; NULL: all */
} wb_scheduled;

typedef struct wb_train_desc {
    WB_START_MEMBER;
    wb_loss_fn *loss;
    wb_layer *model;
    wb_loader *loader;
    wb_optimiser *optimiser;
    int64_t epochs WB_DEFAULT(1); /* 0 trains nothing, with a message */
    bool progress;   /* on stderr, for each epoch: a bar, or one line if it is not a terminal */
    wb_train_fn *cb; /* Flux's callbacks; not supported, use on_step and on_epoch */
    wb_train_fn *on_step;  /* after each update */
    double throttle;       /* seconds between calls of on_step, at least; default 0 */
    wb_train_fn *on_epoch; /* after each epoch */
    void *user;            /* passed to loss and callbacks */
    /* a folder, "run/", or name and format of its files, "run/net.bson" (weber/state.h,
     * checkpoints) */
    const char *checkpoint;
    bool share_checkpoint;      /* distributed: rank 0 sends the file that it loads to all ranks */
    int64_t every;              /* batches between checkpoints; default: one epoch */
    int64_t keep WB_DEFAULT(3); /* how many files are kept, the newest; at least 1 */
    wb_scheduled schedules[WB_SCHEDULES]; /* t counts all batches of the training, from 1 */
    wb_loader *validation;                /* the model is evaluated on it after each epoch */
    /* for validation: WB_DESC(evaluate, .k = 3); model, loader, loss and user are the ones here */
    wb_evaluate_desc metrics WB_DEFAULT(WB_NOT_GIVEN_(wb_evaluate_desc));
    wb_score_fn *score;               /* default: the validation loss, else the epoch's mean loss */
    wb_early_stopping early_stopping; /* {.patience = 5}; default: none */
    /* WB_PLATEAU(.factor = 0.1); default: no change of the rate */
    wb_plateau plateau WB_DEFAULT(WB_NOT_GIVEN_(wb_plateau));
    bool keep_best; /* the model ends with the arrays of the epoch with the smallest score */
    wb_named more[WB_MORE_OBJECTS]; /* more objects for checkpoints: {{"average", tree}} */
} wb_train_desc;

/* wb_train(loss, model, loader, optimiser, .epochs = 5, .progress = true). A loss that is not
 * finite ends the training with WB_ERROR_NUMBER and "loss is nan at batch 51 of epoch 1"; that step
 * changes nothing.
 *
 * With .checkpoint = "run/" the program can be killed at any instant: the same call in the same
 * program continues from the newest complete file, with the same bits as without the interruption.
 * A file (weber/state.h: wb_checkpoint_save) has the model, the optimiser, the loader's position,
 * this thread's random sequence, the sum of the epoch's losses, and `more`. The first file is
 * written before the first step, so that an object that cannot be saved is an error at once. The
 * last one is written at the end, also when a callback ends the training; then the same call
 * continues it. The others are written after on_step or on_epoch, so after an interruption these
 * are called again for the steps since the last file. If a file cannot be written, the training
 * continues with a warning; if it is the last file, wb_train returns the error, and model and
 * optimiser are trained. If the training is already complete, the same call only loads its last
 * file.
 *
 * Hidden states of layers (wb_recur) are not in a checkpoint: a training that is continued in the
 * middle of a sequence starts a new one, and gives other bits. If the loss function calls wb_reset,
 * the bits are the same.
 *
 * With a distributed optimiser, a callback that returns false on one rank ends the training on all;
 * ranks need not have the same callbacks. The score of rank 0 decides for all ranks which epoch is
 * best, when to stop and how the rate changes.
 *
 * Distributed ranks must have the same training. Before it begins they compare size, batchsize,
 * seed, order and .shard of loaders with .shard, the number of batches of other loaders, epochs,
 * early stopping and plateau. Rank 0 writes checkpoints, and each rank reads them by itself, so all
 * must see the same folder. Then the ranks compare step, parameters and states; if these differ,
 * all fail with a message that says what each rank has. With .share_checkpoint = true rank 0 sends
 * its file to all, and the others need no folder; while it is read, they have a copy in TMPDIR,
 * else /tmp. At the end the ranks compare parameters and states again.
 *
 * The order after each epoch is: validation, score, the best model, early stopping, the plateau,
 * on_epoch. Checkpoints have their data, too, in "best" and "training". After early stopping the
 * same call does not continue the training. */
#define wb_train(...) WB_MAKE(wb_train_make, train, __VA_ARGS__)
WB_API wb_status wb_train_make(wb_train_desc desc);

#ifdef __cplusplus
}
#endif
#endif
