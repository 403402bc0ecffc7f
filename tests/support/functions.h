/* The public functions of elementwise rows, by their operations; NULL for others. */
#ifndef WB_TESTS_FUNCTIONS_H
#define WB_TESTS_FUNCTIONS_H

#include "ops/ops.h"

typedef wb_array *unary_fn(wb_array *);
typedef wb_array *binary_fn(wb_array *, wb_array *);

extern unary_fn *const unary[];
extern binary_fn *const binary[];

#endif
