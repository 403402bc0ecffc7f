/* Walks inside walks: the derivative of an operation that has a graph of its own. */
#ifndef WB_GRADIENT_WALK_H
#define WB_GRADIENT_WALK_H

#include "array/array.h"

/* gradients[i] = sum over the results of their cotangent times d result / d arrays[i]; NULL if no
 * result depends on arrays[i]. Results whose cotangent is NULL are left out. The walk ends at the
 * arrays. The nodes up to the arrays must not be part of the outer walk, because both walks would
 * use the same scratch fields. */
wb_status wb_walk_inside(int nresults, wb_array *const *results, wb_array *const *cotangents,
                         int count, wb_array *const *arrays, wb_array **gradients);

/* Between the two calls, arrays can be evaluated in the middle of a walk; pass the result of
 * wb_walk_pause to wb_walk_go_on. */
bool wb_walk_pause(void);
void wb_walk_go_on(bool was_walking);

/* wb_gradient_of for arrays that are newer than every array that has lost its recipe, so that none
 * of those can depend on them. */
wb_status wb_gradient_of_newer(wb_array *loss, int count, wb_array *const *arrays,
                               wb_array **gradients);
wb_status wb_pullback_newer(wb_array *result, wb_array *cotangent, int count,
                            wb_array *const *arrays, wb_array **gradients);

/* The derivative of a scan: out[i] = cotangent of input i where want[i]. cotangents has one for
 * each result, or NULL. False with an error recorded. */
bool wb_pull_scan(wb_array *scan, wb_array *const *cotangents, const bool *want, wb_array **out);

#endif
