/* One step of an optimiser's rule (weber/rules.h): a macro operation with several results, planned
 * as one pass in place.
 *
 * `numbers` is a node for what the steps of many parameters share: whether the step is good, how
 * many good steps came before, and the rule's settings as late numbers. It is only an input of
 * steps and has no value. */
#ifndef WB_OPS_STEP_H
#define WB_OPS_STEP_H

#include <weber/rules.h>

#include "array/array.h"

/* The step is good if the watched number (a loss, say) is finite. count: the number of good steps
 * so far, i32, without dimensions. The scope owns the result. */
wb_array *wb_step_numbers(const wb_rule *rule, wb_array *watched, wb_array *count);
/* The number of good steps after this step. */
wb_array *wb_step_counted(wb_array *numbers);

/* out[0]: the new x; out[1] ..: the new states of the rule's rows in order, `count` of them, of x's
 * sizes. If the step is not good, all keep their values. The scope owns the results. */
wb_status wb_step_make(wb_array *numbers, wb_array *x, wb_array *g, int count,
                       wb_array *const *states, wb_array **out);

/* The row of wb_mixed_precision, the first of its chain. Later rows see its state (f32) instead of
 * x; the state takes the step unrounded. */
extern const wb_rule_row wb_mixed_precision_row;

int wb_rule_settings(const wb_rule_row *row); /* how many */
int wb_rule_row_states(const wb_rule_row *row);

#endif
