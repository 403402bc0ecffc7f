/* Evaluation: from nodes to numbers. See docs/architecture.md, section 4. */
#ifndef WB_EVALUATE_EVALUATE_H
#define WB_EVALUATE_EVALUATE_H

#include "array/array.h"

/* Computes the roots in one plan, found by key or made; NULL entries and evaluated arrays are
 * skipped. */
wb_status wb_evaluate(int count, wb_array *const *roots);

/* State writes of the thread (running statistics): slot is a place in a model that is to hold
 * value. They are evaluated, and put into their slots, with the next wb_update, when the scope
 * closes, or before a whole model is copied, moved or saved; two writes to one slot chain:
 * wb_state_read gives the pending value or what the slot holds. The value loses its recipe then. */
wb_status wb_state_write(wb_array **slot, wb_array *value);
wb_array *wb_state_read(wb_array **slot);
/* Drops the writes to a slot that goes away with its model. */
void wb_state_forget(wb_array **slot);
/* The pending written values, at most capacity of them, for an update that evaluates them with its
 * own roots; how many there are. */
int wb_state_pending(int capacity, wb_array **values);

#endif
