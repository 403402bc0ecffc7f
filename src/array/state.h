/* Writes of state: arrays of a model that a loss or a forward function changes, and kept arrays
 * that leave a loss pending. They are computed with the next wb_update, when the scope closes, or
 * before a whole model is copied, moved or saved, and lose their recipes then. */
#ifndef WB_ARRAY_STATE_H
#define WB_ARRAY_STATE_H

#include "array/array.h"

/* The slot, a place in a model, holds value from now on. Until the write is settled the old array
 * is held, too, so that the write can be taken back. */
wb_status wb_state_write(wb_array **slot, wb_array *value);
/* The slot holds NULL from now on. */
wb_status wb_state_clear(wb_array **slot);

/* A number of a model that changes with such arrays, and is taken back with them. */
wb_status wb_state_write_number(int64_t *number, int64_t value);

/* Whether a write to the slot, or to any slot, is not settled yet. */
bool wb_state_is_written(wb_array **slot);
bool wb_state_is_any_written(void);

/* Writes between the two can be taken back: wb_state_end, with keep false, puts back into each slot
 * what it held at wb_state_begin. It needs the result of wb_state_begin. Pairs nest. */
int64_t wb_state_begin(void);
void wb_state_end(int64_t begin, bool keep);
/* Whether such a pair is open: in a loss, or in a layer that is applied. */
bool wb_state_is_open(void);

/* The slot is at another address from now on. */
void wb_state_moved(wb_array **from, wb_array **to);

/* A kept array that leaves its scope pending is computed with the writes. */
wb_status wb_state_survive(wb_array *x);

/* For a slot that was written: before is what it held, now what it holds; either may be NULL.
 * Returns what it should hold; NULL: leave it. */
typedef wb_array *wb_state_fn(void *context, wb_array *before, wb_array *now);
/* Calls f for each such slot. Returns how many writes were left as they are, written numbers
 * included; -1 with an error. */
int64_t wb_state_rewrite(wb_state_fn *f, void *context);
/* Takes back the writes that were not settled. */
void wb_state_undo_rest(void);

/* Forgets the writes to a slot that is released, or gets another array. */
void wb_state_forget(wb_array **slot);
void wb_state_forget_number(int64_t *number);

/* Lists the pending arrays among these, at most capacity, for a plan that computes them with its
 * own roots; they lose their recipes then. Returns how many there are. */
int wb_state_pending(int capacity, wb_array **values);

/* Computes the pending arrays in one plan and settles the writes; on failure takes all writes
 * back. */
wb_status wb_state_settle(void);
/* Takes all writes back. */
void wb_state_undo(void);

#endif
