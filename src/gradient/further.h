/* Shared by the functions for Jacobians, Hessians and forward mode. */
#ifndef WB_GRADIENT_FURTHER_H
#define WB_GRADIENT_FURTHER_H

#include <weber/gradient.h>

#include "array/array.h"

/* True if x can be differentiated, or differentiated with respect to; else with the error
 * recorded. */
bool wb_check_differentiable(const char *function, const char *what, wb_array *x);

wb_array *wb_zeros_like(const wb_array *x);

/* An array of x's type and sizes with 1 at element `place` (an i64 number), and 0 elsewhere. */
wb_array *wb_unit_vector(const wb_array *x, wb_array *place);

/* 0 ... count - 1, i64, for a scan over the elements of something. */
wb_array *wb_element_places(int64_t count);

#endif
