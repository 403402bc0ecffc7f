/* Values with a derivative of their own. */
#ifndef WB_OPS_CUSTOM_H
#define WB_OPS_CUSTOM_H

#include "array/custom.h"
#include "ops/ops.h"

/* A node with the value of y and this derivative by the inputs, none of which may be NULL. Takes
 * over context, also on failure: release (may be NULL) gets it at the end. */
wb_array *wb_custom_node(wb_array *y, int count, wb_array *const *inputs, wb_custom_pull *pull,
                         void *context, void (*release)(void *context));

#endif
