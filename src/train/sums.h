/* Sums over the batches of an evaluation, kept on the device that computes them. */
#ifndef WB_TRAIN_SUMS_H
#define WB_TRAIN_SUMS_H

#include <weber/metrics.h>

enum { WB_MOST_CLASSES = 1024 }; /* of a confusion matrix */

typedef enum wb_sum_name {
    WB_SUM_COUNT,     /* labels or elements that count */
    WB_SUM_RIGHT,     /* classes */
    WB_SUM_TOP,       /* classes */
    WB_SUM_CONFUSION, /* classes, yes or no */
    WB_SUM_LOSS,      /* sum of losses times their divisors */
    WB_SUM_WEIGHT,    /* sum of these divisors */
    WB_SUM_SQUARES,   /* numbers: squares of the differences */
    WB_SUM_SIZES,     /* numbers: absolute values of the differences */
    WB_SUM_TARGETS,   /* numbers: y - shift */
    WB_SUM_TARGET_SQUARES,
    WB_SUM_SHIFT, /* mean of y in rank 0's first batch; not added up */
    WB_SUMS
} wb_sum_name;

typedef struct wb_sums {
    const wb_evaluate_desc *desc;
    wb_task task;
    wb_array *of[WB_SUMS];       /* kept; NULL: nothing yet */
    wb_array **scores, **labels; /* kept, for yes-or-no tasks: p and y of each batch */
    int64_t batches, score_room, label_room;
} wb_sums;

/* False with the error recorded if a label is to be ignored but the task has no labels. */
bool wb_sums_take_ignore(const char *function, wb_task task, int64_t ignore);
/* Checks the settings that are not objects; false with the error recorded. */
bool wb_evaluate_check(const char *function, const wb_evaluate_desc *desc);

/* Adds a batch: prediction p and target y; the first one decides the task. False with an error. The
 * sums are computed when the scope closes. */
bool wb_sums_add(wb_sums *sums, wb_array *p, wb_array *y);
/* Adds a loss and its divisor; NULL: this number of observations. */
bool wb_sums_add_loss(wb_sums *sums, wb_array *loss, wb_array *divisor, int64_t observations);
/* Sets all sums that exist to 0. */
bool wb_sums_empty(wb_sums *sums);
/* Adds up the sums of all ranks, which must all call it. */
bool wb_sums_join_ranks(wb_sums *sums);
/* The mean of the losses; 0 where nothing counts. */
double wb_sums_loss(const wb_sums *sums);
/* Fills in the numbers of the result except loss and observations. */
void wb_sums_read(wb_sums *sums, wb_evaluation *result);
void wb_sums_free(wb_sums *sums);

#endif
