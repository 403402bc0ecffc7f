/* weber/metrics.h: how good a model is on data.
 *
 *     wb_evaluation e = wb_evaluate(model, held_out, .loss = loss);
 *     printf("loss %.4f, accuracy %.2f%%\n", e.loss, 100 * e.accuracy);
 *
 * Sums are kept where the data is; numbers are read once, at the end. Errors: weber/error.h. */
#ifndef WEBER_METRICS_H
#define WEBER_METRICS_H

#include "optimise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the model's output p and the batch's y are. */
typedef enum wb_task {
    WB_TASK_BY_TARGET, /* classes for integer labels and for bool y of p's sizes with several rows;
                          yes or no for other bool y; else numbers */
    WB_TASK_CLASSES,   /* p (K, ...); y labels (...), integers, or one-hot (K, ...) */
    WB_TASK_YES_OR_NO, /* p and y have as many elements; y is yes above 0.5 */
    WB_TASK_NUMBERS    /* p and y have as many elements */
} wb_task;

typedef struct wb_evaluate_desc {
    WB_START_MEMBER;
    wb_layer *model;
    wb_loader *loader;
    wb_loss_fn *loss;    /* of all as one batch: its mean over what it was divided by
                            (wb_divided_by), else observations; default: none */
    wb_loss_fn *predict; /* p; default: wb_apply(model, batch->x) */
    void *user;          /* handed to both */
    wb_task task;
    int64_t k WB_DEFAULT(5);              /* classes: top k, at least 1 */
    int64_t ignore WB_DEFAULT(INT64_MIN); /* classes: a label that does not count; default: none */
    double threshold WB_DEFAULT(0.5); /* yes or no: p above it is yes; 0 for logits, never NaN */
} wb_evaluate_desc;

/* Numbers that the task does not have are NaN. */
typedef struct wb_evaluation {
    wb_status status;
    wb_task task;            /* never WB_TASK_BY_TARGET */
    int64_t observations;    /* of the loader */
    int64_t count;           /* labels, or elements, that count */
    double loss, perplexity; /* exp(loss): of a cross-entropy */
    /* of classes, and of yes or no */
    double accuracy; /* share of right answers, the first of the largest p being the answer; a NaN
                        among the scores is no answer: wrong here and in all below */
    double top_k;    /* classes: share of labels among the k largest p */
    double precision, recall, f1; /* of yes; of classes the mean over those that occur as label or
                                     answer, each 0 where its divisor is */
    double auc; /* yes or no: area under the receiver's curve, ties by half; NaN without both */
    /* of numbers, over all elements */
    double mse, mae, r2; /* r2: 1 - sum (y - p)^2 / sum (y - mean y)^2 */
    /* (answer, label), i64: how often this answer was given for this label. In C's order that is
     * confusion[label][answer]. Observations without an answer are left out. Owned by the scope.
     * NULL for numbers, and for more than 1024 classes, when precision, recall and f1 are NaN */
    wb_array *confusion;
} wb_evaluation;

/* wb_evaluate(model, loader, .loss = loss, .k = 3): one pass over the loader, with automatic layers
 * in test mode. Hidden states (wb_recur) start afresh and are then as they were. Over a loader with
 * .shard the numbers are over all ranks together, and each rank has to call it. Yes or no keeps all
 * scores until the end, on each rank the scores of all ranks. Fails on labels in host memory that
 * are not a class, on a loader without batches, and where predictions and targets fit no task: then
 * all numbers are NaN, and status says why. */
#define wb_evaluate(...) WB_MAKE(wb_evaluate_make, evaluate, __VA_ARGS__)
WB_API wb_evaluation wb_evaluate_make(wb_evaluate_desc desc);

#ifdef __cplusplus
}
#endif
#endif
