/* What losses share: private side of weber/losses.h. */
#ifndef WB_LOSSES_LOSS_H
#define WB_LOSSES_LOSS_H

#include <weber/losses.h>

#include "array/array.h"
#include "base/error.h"
#include "ops/build.h"

/* Members of wb_loss_desc that not every loss has. */
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
    /* what most have */
    WB_LOSS_TERMS = WB_LOSS_AGG | WB_LOSS_WEIGHTS,
    WB_LOSS_ELEMENTS = WB_LOSS_TERMS | WB_LOSS_CLASS_WEIGHTS | WB_LOSS_IGNORE | WB_LOSS_DIM
};

/* A loss that is being made. */
typedef struct wb_loss {
    const char *name;
    const wb_loss_desc *desc;
    wb_array *p, *y; /* in the type of computing; y as given while it is labels */
    wb_dtype dtype;  /* of the result */
    int dim;
    double eps;
    /* beside those of the desc, each of which may be NULL: where terms count, bool, and how much */
    wb_array *mask, *weights;
} wb_loss;

/* The defining functions of a loss: that of a desc, which calls make, and that of two arrays. */
#define WB_LOSS_FUNCTIONS(name, members, make)                                                     \
    wb_array *wb_##name##_make(wb_loss_desc desc) {                                                \
        wb_loss loss;                                                                              \
        return wb_loss_begin(&loss, #name, &desc, members) ? make(&loss) : NULL;                   \
    }                                                                                              \
    wb_array *(wb_##name)(wb_array * p, wb_array * y) {                                            \
        return wb_##name##_make(WB_DESC(loss, p, y));                                              \
    }

/* Checks prediction and settings: all but y's sizes. False with the error. */
bool wb_loss_begin(wb_loss *loss, const char *name, const wb_loss_desc *desc, unsigned members);

/* y in p's type, of p's sizes or without dimensions; false with the error. */
bool wb_loss_target(wb_loss *loss);

/* Another array of p's sizes, or with 1 in some dimensions, in p's type; NULL with the error. */
wb_array *wb_loss_other(const wb_loss *loss, const char *what, wb_array *x);

/* The class weights along dim; NULL where there are none and, with the error, on failure. */
wb_array *wb_loss_class_weights(const wb_loss *loss);
/* For a loss with a term for each element: the target, class weights, the mask. Elements that the
 * mask leaves out become 0.5 in prediction and target, where each loss has a slope, so that what is
 * not finite there stays out of the gradient. False with the error. */
bool wb_loss_begin_elements(wb_loss *loss);
/* Where y is not the label that is ignored, bool; NULL: everywhere. */
wb_array *wb_loss_not_ignored(const wb_loss *loss, wb_array *y);

/* w x, or x where a mask w is true; 0 where w is 0 and x infinite or NaN. A weight of 0 has the
 * derivative of any other, x. */
wb_array *wb_loss_times(wb_array *w, wb_array *x);

/* The terms l by all weights, and agg of them. inside: weights that l is already multiplied by,
 * which the mean's divisor has, too; or NULL. */
wb_array *wb_loss_aggregate(const wb_loss *loss, wb_array *l, wb_array *inside);
/* The sum of the terms by all weights, for losses without agg. */
wb_array *wb_loss_sum(const wb_loss *loss, wb_array *l);

#endif
