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

/* A function of arrays. */
typedef wb_array *wb_array_fn(void *context, int count, wb_array *const *arrays);

/* gradients[i] = d loss / d arrays[i], sizes and type of arrays[i], owned by the scope; NULL where
 * loss does not depend on it. loss has one element and a floating type. Fails if the walk meets an
 * array that was detached from its recipe by a closed scope before a wanted one, naming it; then
 * all are NULL. */
WB_API wb_status wb_gradient_of(wb_array *loss, int count, wb_array *const *arrays,
                                wb_array **gradients);

/* The same with a cotangent of result's sizes instead of 1: the vector-Jacobian product. */
WB_API wb_status wb_pullback(wb_array *result, wb_array *cotangent, int count,
                             wb_array *const *arrays, wb_array **gradients);

/* Compares the gradient of a random projection of fn at arrays (f64) with central differences, and,
 * for order 2, the gradient of a projection of that gradient too. WB_OK if all agree within
 * tolerance (relative to the largest component; 0: 1e-6); else WB_ERROR_NUMBER with the worst place
 * in the message. */
WB_API wb_status wb_gradient_check(wb_array_fn *fn, void *context, int count,
                                   wb_array *const *arrays, int order, double tolerance);

/* ---- further derivatives ----
 *
 * Arrays of which a derivative is taken are differentiated as wb_gradient_of does it, and fail as
 * it does. Where nothing depends on them the result is zeros. Results belong to the scope, and are
 * recipes that can be differentiated again. */

/* J v, the change of y where the arrays change by the tangents: sum over i of dy / d arrays[i]
 * times tangents[i], of y's sizes. Forward mode, by walking backwards twice (Townsend 2017): the
 * cotangent of the arrays is linear in that of y, and its derivative along the tangents is J v.
 * The cost is that of some two walks; y is not computed again. y and the arrays have floating
 * types; tangents[i] has the sizes of arrays[i]. */
WB_API wb_array *wb_jvp(wb_array *y, int count, wb_array *const *arrays, wb_array *const *tangents);

/* J (count(y), count(x)): element (k, i) is d y_k / d x_i, elements counted in memory's order,
 * first dimension fastest. Rows are vector-Jacobian products, or, where x has fewer elements than
 * y, columns are Jacobian-vector products: min(count(x), count(y)) of them, as the steps of a scan
 * (weber/scan.h), so that the plan does not grow with their number. */
WB_API wb_array *wb_jacobian(wb_array *y, wb_array *x);

/* H (n, n) of a loss of one element: element (i, k) is d^2 loss / d x_i d x_k. The Jacobian of the
 * gradient: n products of wb_hvp. */
WB_API wb_array *wb_hessian(wb_array *loss, wb_array *x);

/* The diagonal of that matrix in x's sizes. As many products; H itself is never in memory. */
WB_API wb_array *wb_hessian_diagonal(wb_array *loss, wb_array *x);

/* H v: products[i] = sum over k of d^2 loss / d arrays[i] d arrays[k] times vectors[k], of the
 * sizes of arrays[i], as vectors[i] is: the gradient of <gradient, v> (Pearlmutter 1994; reverse
 * over reverse). On failure all are NULL. */
WB_API wb_status wb_hvp(wb_array *loss, int count, wb_array *const *arrays,
                        wb_array *const *vectors, wb_array **products);

/* Gradients for each observation alone: gradients[i] (sizes of arrays[i]..., N), where inputs[k]
 * (..., N) have N observations in their last dimension. loss(context, ninputs, inputs) is called
 * once, with inputs of one observation, (..., 1), as the body of a scan (weber/scan.h says what is
 * not allowed there), and gives one number; layers in it are in training mode. arrays are what it
 * uses of outside: wb_get(model, "layers.1.weight"). An array of 8 dimensions is an error, since
 * there is no room for N; so is a layer that writes a state, as BatchNorm does in training: its
 * result for one observation depends on the others.
 *
 *     wb_gradient_each(loss, model, 2, (wb_array *[]){x, y}, 1, &weight, &each);
 *     wb_array *norms = wb_norm_dims(each, 2, 0, 1);      // of differentially private training */
WB_API wb_status wb_gradient_each(wb_array_fn *loss, void *context, int ninputs,
                                  wb_array *const *inputs, int count, wb_array *const *arrays,
                                  wb_array **gradients);

#ifdef __cplusplus
}
#endif
#endif
