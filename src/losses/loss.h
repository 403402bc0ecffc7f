/* What losses share: private side of weber/losses.h. */
#ifndef WB_LOSSES_LOSS_H
#define WB_LOSSES_LOSS_H

#include <weber/losses.h>

#include "array/array.h"
#include "base/error.h"
#include "ops/build.h"

/* Members of wb_loss_desc that not every loss uses. */
enum {
    WB_LOSS_CLASS_WEIGHTS = 1 << 0,
    WB_LOSS_IGNORE = 1 << 1,
    WB_LOSS_SMOOTHING = 1 << 2,
    WB_LOSS_DIM = 1 << 3,
    WB_LOSS_EPS = 1 << 4,
    WB_LOSS_DELTA = 1 << 5,
    WB_LOSS_BETA = 1 << 6,
    WB_LOSS_GAMMA = 1 << 7,
    WB_LOSS_MARGIN = 1 << 8,
    WB_LOSS_SMOOTH = 1 << 9,
    WB_LOSS_TEMPERATURE = 1 << 10,
    WB_LOSS_NEGATIVE = 1 << 11,
    WB_LOSS_VARIANCE = 1 << 12,
    WB_LOSS_AGG = 1 << 13,
    WB_LOSS_WEIGHTS = 1 << 14,
    WB_LOSS_CTC = 1 << 15, /* lengths, blank, zero_infinity */
    /* what most losses use */
    WB_LOSS_TERMS = WB_LOSS_AGG | WB_LOSS_WEIGHTS,
    WB_LOSS_ELEMENTS = WB_LOSS_TERMS | WB_LOSS_CLASS_WEIGHTS | WB_LOSS_IGNORE | WB_LOSS_DIM
};

/* A loss that is being made. */
typedef struct wb_loss {
    const char *name;
    const wb_loss_desc *desc;
    wb_array *p, *y; /* in the type in which the loss is computed; y as given while it is labels */
    wb_dtype dtype;  /* of the result */
    int dim;
    double eps;
    /* in addition to those of the desc; may be NULL: mask (bool) which terms count, weights how
     * much */
    wb_array *mask, *weights;
} wb_loss;

/* Defines the two functions of a loss: the one with a desc, which calls make, and the one with two
 * arrays. */
#define WB_LOSS_FUNCTIONS(name, members, make)                                                     \
    wb_array *wb_##name##_make(wb_loss_desc desc) {                                                \
        wb_loss loss;                                                                              \
        return wb_loss_begin(&loss, #name, &desc, members) ? make(&loss) : NULL;                   \
    }                                                                                              \
    wb_array *(wb_##name)(wb_array * p, wb_array * y) {                                            \
        return wb_##name##_make(WB_DESC(loss, p, y));                                              \
    }

/* Checks the prediction and the settings, but not y's sizes. False with the error recorded. */
bool wb_loss_begin(wb_loss *loss, const char *name, const wb_loss_desc *desc, unsigned members);

/* Converts y to p's type; it must have p's sizes or no dimensions. False with the error
 * recorded. */
bool wb_loss_target(wb_loss *loss);

/* Checks another array: p's sizes, or 1 in some dimensions. Returns it in p's type; NULL with the
 * error recorded. */
wb_array *wb_loss_other(const wb_loss *loss, const char *what, wb_array *x);

/* The class weights along dim; NULL if there are none, or, with the error recorded, on failure. */
wb_array *wb_loss_class_weights(const wb_loss *loss);
/* For a loss with a term for each element: prepares target, class weights and mask. Elements that
 * the mask leaves out become 0.5 in prediction and target, where each loss has a finite slope, so
 * that values there that are not finite do not reach the gradient. False with the error
 * recorded. */
bool wb_loss_begin_elements(wb_loss *loss);
/* Bool: where y is not the ignored label; NULL: everywhere. */
wb_array *wb_loss_not_ignored(const wb_loss *loss, wb_array *y);

/* w x, or x where a mask w is true; 0 if w is 0 and x infinite or NaN. The derivative by w is x,
 * also where w is 0. */
wb_array *wb_loss_times(wb_array *w, wb_array *x);

/* Multiplies the terms l by all weights and aggregates them. inside: weights that are in l already,
 * and belong into the mean's divisor; or NULL. */
wb_array *wb_loss_aggregate(const wb_loss *loss, wb_array *l, wb_array *inside);
/* The sum of the terms times all weights, for losses without agg. */
wb_array *wb_loss_sum(const wb_loss *loss, wb_array *l);

#endif
