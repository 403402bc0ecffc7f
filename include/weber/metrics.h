/* weber/metrics.h: how good a model is on data.
 *
 *     wb_evaluation e = wb_evaluate(model, held_out, .loss = loss);
 *     printf("loss %.4f, accuracy %.2f%%\n", e.loss, 100 * e.accuracy);
 *
 * Sums stay on the device of the data; numbers are read once, at the end. Errors: weber/error.h. */
#ifndef WEBER_METRICS_H
#define WEBER_METRICS_H

#include "optimise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the model's output p and the batch's y are. */
typedef enum wb_task {
    WB_TASK_BY_TARGET, /* default: CLASSES for integer labels and for bool y of p's sizes with
                          several rows; YES_OR_NO for other bool y; else NUMBERS */
    WB_TASK_CLASSES,   /* p (K, ...); y labels (...), integers, or one-hot (K, ...) */
    WB_TASK_YES_OR_NO, /* p and y have equally many elements; y above 0.5 is yes */
    WB_TASK_NUMBERS    /* p and y have equally many elements */
} wb_task;

typedef struct wb_evaluate_desc {
    WB_START_MEMBER;
    wb_layer *model;
    wb_loader *loader;
    wb_loss_fn *loss;    /* averaged over batches as in one big batch, weighted by the losses'
                            divisors (wb_divided_by), else by observations; default: none */
    wb_loss_fn *predict; /* returns p; default: wb_apply(model, batch->x) */
    void *user;          /* handed to both */
    wb_task task;
    int64_t k WB_DEFAULT(5);              /* classes: top k, at least 1 */
    int64_t ignore WB_DEFAULT(INT64_MIN); /* classes: a label to leave out; default: none */
    double threshold WB_DEFAULT(0.5);     /* yes or no: p above it is yes (0 for logits); not NaN */
} wb_evaluate_desc;

/* Numbers that the task does not have are NaN. */
typedef struct wb_evaluation {
    wb_status status;
    wb_task task;            /* never WB_TASK_BY_TARGET */
    int64_t observations;    /* of the loader */
    int64_t count;           /* labels, or elements, except ignored ones */
    double loss, perplexity; /* exp(loss), for a cross-entropy */
    /* for classes, and for yes or no */
    double accuracy; /* fraction of right answers; the answer is the first of the largest p. If a
                        score is NaN there is no answer, which counts as wrong here and below */
    double top_k;    /* classes: fraction of labels that are among the k largest p */
    double precision, recall, f1; /* of yes; for classes the mean over those that occur as label
                                     or answer; 0 for a class whose divisor is 0 */
    double auc; /* yes or no: area under the ROC curve, ties count half; NaN unless y has both */
    /* for numbers, over all elements */
    double mse, mae, r2; /* r2: 1 - sum (y - p)^2 / sum (y - mean y)^2 */
    /* (answer, label), i64: how often this answer was given for this label. In C's order that is
     * confusion[label][answer]. Observations without an answer are left out. Owned by the scope.
     * NULL for numbers, and for more than 1024 classes, when precision, recall and f1 are NaN */
    wb_array *confusion;
} wb_evaluation;

/* wb_evaluate(model, loader, .loss = loss, .k = 3): one pass over the loader, with automatic layers
 * in test mode. Hidden states (wb_recur) start as in a new sequence, and are restored afterwards.
 * With a loader with .shard the numbers are over all ranks together, and each rank must call this.
 * For yes or no all scores are kept until the end, on each rank those of all ranks. Fails on labels
 * in host memory that are not a class, on a loader without batches, and if predictions and targets
 * fit no task: then all numbers are NaN, and status says why. */
#define wb_evaluate(...) WB_MAKE(wb_evaluate_make, evaluate, __VA_ARGS__)
WB_API wb_evaluation wb_evaluate_make(wb_evaluate_desc desc);

#ifdef __cplusplus
}
#endif
#endif
