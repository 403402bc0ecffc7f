/* weber/losses.h: losses, and accuracy.
 *
 * A loss compares a prediction p with a target y and is one number, of p's floating type, which
 * wb_gradient_of differentiates.
 *
 *     wb_array *l = wb_logitcrossentropy(wb_apply(model, x), labels);  // (10, N), integers (N)
 *
 * Sizes of p and y agree, nothing is broadcast (WB_ERROR_SHAPE names both); y may also be a number
 * without dimensions. y is converted to p's type. An empty batch is an error. eps keeps logarithms
 * finite: the distance from 1 to the next number of p's type. */
#ifndef WEBER_LOSSES_H
#define WEBER_LOSSES_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mean (p - y)^2, and mean |p - y|, over all elements. */
WB_API wb_array *wb_mse(wb_array *p, wb_array *y);
WB_API wb_array *wb_mae(wb_array *p, wb_array *y);

/* Classes lie along dimension 0; the mean is over all others. y is one-hot or probabilities, of p's
 * sizes (K, ...), or integer labels 0 to K - 1 of sizes (...). Labels that are in memory are
 * checked at the call: one out of range is an error that names its position; others make the loss
 * NaN.
 *
 * crossentropy:      mean of -sum_k y log(p + eps), with 0 log 0 = 0
 * logitcrossentropy: mean of -sum_k y logsoftmax(p): of logits, and the stable one */
WB_API wb_array *wb_crossentropy(wb_array *p, wb_array *y);
WB_API wb_array *wb_logitcrossentropy(wb_array *p, wb_array *y);

/* binarycrossentropy:      mean of -y log(p + eps) - (1 - y) log(1 - p + eps)
 * logitbinarycrossentropy: mean of (1 - y) p - logsigmoid(p) */
WB_API wb_array *wb_binarycrossentropy(wb_array *p, wb_array *y);
WB_API wb_array *wb_logitbinarycrossentropy(wb_array *p, wb_array *y);

/* Share of columns whose largest entry of p (K, ...) is that of y (K, ...), or is the label y
 * (...): one number, f32. Read it by wb_item, or sum several first: it is computed when it is read.
 * */
WB_API wb_array *wb_accuracy(wb_array *p, wb_array *y);

#ifdef __cplusplus
}
#endif
#endif
