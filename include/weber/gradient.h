/* weber/gradient.h: derivatives.
 *
 * The recipe of a loss is visible, so a gradient walks it backwards and gives ordinary arrays,
 * which can be differentiated again, to any order.
 *
 *     wb_array *l = wb_sum(wb_square(wb_sub(wb_add(wb_matmul(W, x), b), y)));
 *     wb_array *g[2];
 *     wb_gradient_of(l, 2, (wb_array *[]){W, b}, g);
 *
 * A gradient that does not exist because l does not depend on the array is NULL, without an
 * error. */
#ifndef WEBER_GRADIENT_H
#define WEBER_GRADIENT_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients[i] = d loss / d arrays[i], sizes and type of arrays[i], owned by the scope; NULL where
 * loss does not depend on it. loss has one element and a floating type. Fails if the walk meets an
 * array that was detached from its recipe by a closed scope before a wanted one, naming it; then
 * all are NULL. */
WB_API wb_status wb_gradient_of(wb_array *loss, int count, wb_array *const *arrays,
                                wb_array **gradients);

/* The same with a cotangent of result's sizes instead of 1: the vector-Jacobian product. */
WB_API wb_status wb_pullback(wb_array *result, wb_array *cotangent, int count,
                             wb_array *const *arrays, wb_array **gradients);

/* A function of arrays for the numeric checker. */
typedef wb_array *wb_array_fn(void *context, int count, wb_array *const *arrays);

/* Compares the gradient of a random projection of fn at arrays (f64) with central differences, and,
 * for order 2, the gradient of a projection of that gradient too. WB_OK if all agree within
 * tolerance (relative to the largest component; 0: 1e-6); else WB_ERROR_NUMBER with the worst place
 * in the message. */
WB_API wb_status wb_gradient_check(wb_array_fn *fn, void *context, int count,
                                   wb_array *const *arrays, int order, double tolerance);

#ifdef __cplusplus
}
#endif
#endif
