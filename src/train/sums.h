/* Sums over the batches of an evaluation, kept where they are computed. */
#ifndef WB_TRAIN_SUMS_H
#define WB_TRAIN_SUMS_H

#include <weber/metrics.h>

enum { WB_MOST_CLASSES = 1024 }; /* of a confusion matrix */

typedef enum wb_sum_name {
    WB_SUM_COUNT,     /* labels or elements that count */
    WB_SUM_RIGHT,     /* classes */
    WB_SUM_TOP,       /* classes */
    WB_SUM_CONFUSION, /* classes, yes or no */
    WB_SUM_LOSS,      /* times what it was divided by */
    WB_SUM_WEIGHT,    /* of that */
    WB_SUM_SQUARES,   /* numbers: of the differences */
    WB_SUM_SIZES,     /* numbers: of the differences' absolute values */
    WB_SUM_TARGETS,   /* numbers: y - shift */
    WB_SUM_TARGET_SQUARES,
    WB_SUM_SHIFT, /* the first batch's mean of y, of rank 0's; not added up */
    WB_SUMS
} wb_sum_name;

typedef struct wb_sums {
    const wb_evaluate_desc *desc;
    wb_task task;
    wb_array *of[WB_SUMS];       /* kept; NULL: nothing yet */
    wb_array **scores, **labels; /* kept, yes or no: p and y of each batch */
    int64_t batches, score_room, label_room;
} wb_sums;

/* False with the error recorded where a label is to be ignored and the task has none. */
bool wb_sums_take_ignore(const char *function, wb_task task, int64_t ignore);
/* The settings that are not objects; false with the error recorded. */
bool wb_evaluate_check(const char *function, const wb_evaluate_desc *desc);

/* Adds what the batch's prediction p says of the target y; chooses the task at the first. False
 * with an error. The scope that closes next computes it. */
bool wb_sums_add(wb_sums *sums, wb_array *p, wb_array *y);
/* A loss and what it was divided by; NULL: so many observations. */
bool wb_sums_add_loss(wb_sums *sums, wb_array *loss, wb_array *divisor, int64_t observations);
/* Takes back what was added: the sums are there, and 0. */
bool wb_sums_empty(wb_sums *sums);
/* The sums of all ranks, each of which has called it. */
bool wb_sums_join_ranks(wb_sums *sums);
/* The mean of the losses; 0 where nothing counts. */
double wb_sums_loss(const wb_sums *sums);
/* The numbers of the result but loss and observations. */
void wb_sums_read(wb_sums *sums, wb_evaluation *result);
void wb_sums_free(wb_sums *sums);

#endif
