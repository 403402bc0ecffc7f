/* Values that bring their derivative along. */
#ifndef WB_OPS_CUSTOM_H
#define WB_OPS_CUSTOM_H

#include "array/custom.h"
#include "ops/ops.h"

/* y with this derivative in the inputs. context is taken over, also on failure: release (or NULL)
 * gets it. NULL inputs are not allowed. */
wb_array *wb_custom_node(wb_array *y, int count, wb_array *const *inputs, wb_custom_pull *pull,
                         void *context, void (*release)(void *context));

#endif
