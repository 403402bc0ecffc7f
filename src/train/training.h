/* The progress of wb_train, as it is saved in files. */
#ifndef WB_OPTIMISE_TRAINING_H
#define WB_OPTIMISE_TRAINING_H

#include <weber/train.h>

#include "base/object.h"

typedef struct wb_training_progress {
    wb_object object;
    int64_t epoch; /* the current or last one; from 1 */
    int64_t step;  /* number of batches done in that epoch */
    int64_t steps; /* batches in all */
    /* over that epoch's batches: sum of the divisors of losses, and of losses times divisors */
    double total_weight, total_loss;
    int64_t observations; /* of those batches */
    bool in_epoch;
    wb_early_stopping stopping; /* settings, from the desc, and progress */
    wb_plateau plateau;
    double best_score;
    int64_t best_epoch; /* 0: none */
    wb_layer *best;     /* owned; NULL unless the best model is kept */
    /* number of auxiliary outputs of the loss, in the order of its first batch */
    int64_t aux_count;
    wb_train_aux aux[WB_AUX];
    double aux_totals[WB_AUX]; /* sums over that epoch's observations */
} wb_training_progress;

/* Checks the settings of a plateau, which a macro must have made. */
wb_status wb_plateau_check(const char *function, const wb_plateau *plateau);

/* True if early stopping has ended the training. */
bool wb_training_is_over(const wb_training_progress *progress);

/* True if this rank prints and writes: of several ranks only one does. */
bool wb_training_leads(const wb_train_desc *desc);

/* Loads the newest checkpoint into the objects of desc and *progress, or writes a first one if
 * there is none. Does nothing without desc->checkpoint. */
wb_status wb_training_resume(wb_training_progress *progress, const wb_train_desc *desc);

/* Sends file `number` of rank 0's series at path to all ranks. copy (PATH_MAX bytes): the name of a
 * file that the other ranks must unlink afterwards, or "". A collective. */
wb_status wb_training_share(const char *path, int64_t number, char *copy);

/* Fails, before the training begins, if the ranks' trainings differ. */
wb_status wb_training_compare(const wb_train_desc *desc);

/* Writes a checkpoint. A failure is an error for the last one, else a warning. */
wb_status wb_training_save(wb_training_progress *progress, const wb_train_desc *desc, bool is_last);

#endif
