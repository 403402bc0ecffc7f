/* Walks inside walks: the derivative of an operation that has a graph of its own. */
#ifndef WB_GRADIENT_WALK_H
#define WB_GRADIENT_WALK_H

#include "array/array.h"

/* gradients[i] = sum over the results of their cotangent times d result / d arrays[i]; NULL where
 * none of them depends on it. Results whose cotangent is NULL are left out. The walk ends at the
 * arrays. The nodes up to them must not belong to the walk around this one, because both would use
 * the same scratch fields. */
wb_status wb_walk_inside(int nresults, wb_array *const *results, wb_array *const *cotangents,
                         int count, wb_array *const *arrays, wb_array **gradients);

/* Between the two, arrays can be evaluated while walks are under way; wb_walk_go_on gets what
 * wb_walk_pause returned. */
bool wb_walk_pause(void);
void wb_walk_go_on(bool was_walking);

/* wb_gradient_of for arrays that were made after all that is detached from a recipe, which then
 * cannot depend on them. */
wb_status wb_gradient_of_newer(wb_array *loss, int count, wb_array *const *arrays,
                               wb_array **gradients);
wb_status wb_pullback_newer(wb_array *result, wb_array *cotangent, int count,
                            wb_array *const *arrays, wb_array **gradients);

/* The derivative of a scan: out[i] = cotangent of input i where want[i]. cotangents has one for
 * each result, or NULL. False with an error recorded. */
bool wb_pull_scan(wb_array *scan, wb_array *const *cotangents, const bool *want, wb_array **out);

#endif
