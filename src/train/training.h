/* Where wb_train is, as files hold it. */
#ifndef WB_OPTIMISE_TRAINING_H
#define WB_OPTIMISE_TRAINING_H

#include <weber/train.h>

#include "base/object.h"

typedef struct wb_training_progress {
    wb_object object;
    int64_t epoch; /* the one it is in, or the last; from 1 */
    int64_t step;  /* batches of that epoch */
    int64_t steps; /* batches in all */
    /* of that epoch's batches: what the losses were divided by, and the losses times that */
    double total_weight, total_loss;
    int64_t observations; /* of those batches */
    bool in_epoch;
    wb_early_stopping stopping; /* settings, which are the description's, and how far it is */
    wb_plateau plateau;
    double best_score;
    int64_t best_epoch; /* 0: none */
    wb_layer *best;     /* owned; NULL unless the best model is kept */
    int64_t aux_count;  /* numbers that the loss hands out, in the order of its first batch */
    wb_train_aux aux[WB_AUX];
    double aux_totals[WB_AUX]; /* of that epoch's observations */
} wb_training_progress;

/* The settings of a plateau, which a macro has made. */
wb_status wb_plateau_check(const char *function, const wb_plateau *plateau);

/* True where early stopping has ended it. */
bool wb_training_is_over(const wb_training_progress *progress);

/* Of several ranks one prints and writes. */
bool wb_training_leads(const wb_train_desc *desc);

/* The newest checkpoint into the objects of the description and *progress, or a first one where
 * there is none; neither without desc->checkpoint. */
wb_status wb_training_resume(wb_training_progress *progress, const wb_train_desc *desc);

/* Sends rank 0's file of the series at path to all. copy: the name of a file that the other ranks
 * are to unlink, or ""; PATH_MAX bytes. A collective. */
wb_status wb_training_share(const char *path, int64_t number, char *copy);

/* Ranks that do not mean the same training are told apart, before it begins. */
wb_status wb_training_compare(const wb_train_desc *desc);

/* A checkpoint. Failing is an error if it is the last one, else a warning. */
wb_status wb_training_save(wb_training_progress *progress, const wb_train_desc *desc, bool is_last);

#endif
