/* weber/train.h: the training loop.
 *
 *     wb_train(loss, model, data, adam, .epochs = 50, .validation = held_out, .keep_best = true,
 *              .early_stopping = {.patience = 5}, .schedules = {{"eta", rate}});
 *
 * Each part is there for a loop by hand, too: wb_train_step (weber/optimise.h), wb_evaluate
 * (weber/metrics.h), wb_schedule_at (weber/schedules.h), and the functions below. Errors:
 * weber/error.h. */
#ifndef WEBER_TRAIN_H
#define WEBER_TRAIN_H

#include "metrics.h"
#include "schedules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- watching a score ---- */

/* True once is_bad was true in at least n calls in a row; n 0: never. */
typedef struct wb_patience {
    int64_t n;
    int64_t count; /* begins as 0 */
} wb_patience;
WB_API bool wb_patience_is_over(wb_patience *patience, bool is_bad);

/* At most one call in so many seconds: true for the first, and then for the first one after the
 * seconds have passed since the last true. wb_throttle_has_rest, for the end of a loop: true once
 * if calls gave false since then. */
typedef struct wb_throttle {
    double seconds;
    double last; /* these begin as 0 */
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
    double best;      /* these begin as 0 */
    int64_t bad;
    bool has_begun;
} wb_early_stopping;
WB_API bool wb_early_stopping_ends(wb_early_stopping *watch, double score);

/* True when a score, whichever way is better, has moved by less than min_dist from the one before
 * it for `width` calls in a row: Flux's plateau. The first call compares with init_score; a score
 * of NaN has moved. (wb_plateau is PyTorch's, which lowers the rate.) */
typedef struct wb_standstill {
    int64_t width;     /* calls; 0: never true */
    double min_dist;   /* above 0; default 1e-6 */
    double init_score; /* default 0 */
    double last;       /* these begin as 0 */
    int64_t still;
    bool has_begun;
} wb_standstill;
WB_API bool wb_standstill_is_over(wb_standstill *watch, double score);

/* Multiplies the learning rates of all rules by factor when for more than `patience` calls no score
 * was below best - threshold |best|, where best is the smallest score so far; NaN is not below.
 * The `cooldown` calls after that do not count. As PyTorch's ReduceLROnPlateau, except for negative
 * scores, for which that compares with (1 - threshold) best. wb_plateau p = WB_PLATEAU(.patience =
 * 3). */
typedef struct wb_plateau {
    WB_START_MEMBER;
    double factor WB_DEFAULT(0.1); /* above 0 and below 1 */
    int64_t patience WB_DEFAULT(10);
    double threshold WB_DEFAULT(1e-4);
    int64_t cooldown; /* default 0 */
    double least;     /* rates do not become smaller than this; default 0 */
    double best;      /* these begin as 0 */
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

/* What callbacks see. Returning false ends the training, with WB_OK. */
typedef struct wb_train_event {
    wb_layer *model;
    wb_optimiser *optimiser;
    const wb_batch *batch; /* NULL at the end of an epoch */
    wb_array *loss;        /* of the batch; NULL at the end of an epoch */
    double mean_loss; /* of the epoch so far, as one batch would have it: over what the losses were
                         divided by (wb_divided_by), else observations */
    int64_t epoch, step;             /* from 1: the epoch of the run; the step within the epoch */
    const wb_evaluation *validation; /* at the end of an epoch, with a validation loader; or NULL */
    double score;                    /* at the end of an epoch: smaller is better */
    int64_t best_epoch;              /* the one with the smallest score so far; 0: none */
    int aux_count; /* numbers that the loss hands out; other arrays: wb_optimiser_aux */
    const wb_train_aux *aux;
    void *user;
} wb_train_event;
typedef bool wb_train_fn(const wb_train_event *event);

/* The score of an epoch, from what callbacks see; smaller is better, NaN is worst. */
typedef double wb_score_fn(const wb_train_event *event);

enum { WB_MORE_OBJECTS = 6, WB_SCHEDULES = 4 };

/* A setting that follows a schedule. */
typedef struct wb_scheduled {
    const char *setting;         /* "eta" */
    const wb_schedule *schedule; /* weber/schedules.h; it stays the caller's */
    const char *path;            /* as for wb_adjust_path; NULL: all */
} wb_scheduled;

typedef struct wb_train_desc {
    WB_START_MEMBER;
    wb_loss_fn *loss;
    wb_layer *model;
    wb_loader *loader;
    wb_optimiser *optimiser;
    int64_t epochs WB_DEFAULT(1); /* 0 trains nothing, and says so */
    bool progress;   /* on stderr, a bar per epoch with its mean loss; a line without a terminal */
    wb_train_fn *cb; /* Flux's callbacks, not supported: on_step and on_epoch take their place */
    wb_train_fn *on_step;  /* after each update */
    double throttle;       /* seconds: on_step is called at most once in this time; default 0 */
    wb_train_fn *on_epoch; /* after each epoch */
    void *user;            /* handed to loss and callbacks */
    /* a folder, "run/", or its files' begin and format, "run/net.bson"; a name with another ending
     * of letters, "run.txt", is an error, and "run.txt/" a folder */
    const char *checkpoint;
    bool share_checkpoint;      /* distributed: the newest that rank 0 finds is sent to all */
    int64_t every;              /* batches from one checkpoint to the next; default: an epoch */
    int64_t keep WB_DEFAULT(3); /* files that stay, the newest; at least 1 */
    wb_scheduled schedules[WB_SCHEDULES]; /* by batches since the training began, from 1 */
    wb_loader *validation;                /* the model is evaluated on it after each epoch */
    /* for validation: WB_DESC(evaluate, .k = 3); model, loader, loss and user are the ones here */
    wb_evaluate_desc metrics WB_DEFAULT(WB_NOT_GIVEN_(wb_evaluate_desc));
    wb_score_fn *score; /* default: the loss of the validation, else the mean loss of the epoch */
    wb_early_stopping early_stopping; /* {.patience = 5}; default: all epochs */
    /* WB_PLATEAU(.factor = 0.1); default: no change of the rate */
    wb_plateau plateau WB_DEFAULT(WB_NOT_GIVEN_(wb_plateau));
    bool keep_best; /* the model ends with the arrays of the epoch of the smallest score */
    wb_named more[WB_MORE_OBJECTS]; /* also in a checkpoint: {{"average", tree}} */
} wb_train_desc;

/* wb_train(loss, model, loader, optimiser, .epochs = 5, .progress = true). A loss that is not
 * finite ends it with WB_ERROR_NUMBER and "loss is nan at batch 51 of epoch 1"; that step has
 * changed nothing.
 *
 * With .checkpoint = "run/" it can be killed at any instant: the same call in the same program goes
 * on from the newest whole file, and comes to the same bits as if nothing had happened. A file
 * (weber/state.h: wb_checkpoint_save) holds model, optimiser, the loader's place, this thread's
 * random sequence, the sum of the epoch's losses, and `more`. The first is written before the first
 * step, so that what cannot be saved is an error then; the last at the end, also when a callback
 * ends the training, which the same call then continues. The others are written after on_step or
 * on_epoch, so these may be called again for steps that were done after the last file. A later file
 * that cannot be written is a warning, and the training goes on; if it is the last one, wb_train
 * returns the error, and model and optimiser are as trained. A training that has come to its end is
 * only loaded.
 *
 * Hidden states of layers (wb_recur) are not in a checkpoint: a training that is continued within a
 * sequence begins a new one, and comes to other bits. With wb_reset in the loss function the bits
 * are the same.
 *
 * With a distributed optimiser, a callback that returns false on one rank ends the training on all;
 * ranks need not have the same callbacks. The score is rank 0's: it decides on all what is best,
 * when to stop and how the rate changes.
 *
 * Distributed ranks must mean one training. Before it begins they compare what must be the same on
 * all: size, batchsize, seed, order and .shard of loaders with .shard, the number of batches of
 * others, epochs, early stopping and plateau. Rank 0 writes checkpoints, and each rank reads them
 * for itself, so all must see one folder: then they compare step, parameters and states, and if
 * these differ all fail with a message that says what each has. With .share_checkpoint = true rank
 * 0's file is sent to all, and the others need no folder; a copy lies in TMPDIR, else
 * /tmp, while it is read. At the end they compare parameters and states again.
 *
 * After each epoch come validation, score, the best model, early stopping, the plateau, and
 * on_epoch, in this order; what they keep is in a checkpoint, too, as "best" and in "training". A
 * training that early stopping has ended is not continued by the same call. */
#define wb_train(...) WB_MAKE(wb_train_make, train, __VA_ARGS__)
WB_API wb_status wb_train_make(wb_train_desc desc);

#ifdef __cplusplus
}
#endif
#endif
