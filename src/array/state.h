/* Writes of state: arrays of a model that a loss or a forward function changes, and kept arrays
 * that leave a loss pending. They are computed with the next wb_update, when the scope closes, or
 * before a whole model is copied, moved or saved, and lose their recipes then. */
#ifndef WB_ARRAY_STATE_H
#define WB_ARRAY_STATE_H

#include "array/array.h"

/* The slot, a place in a model, holds value from now on. Until the write is settled the old array
 * is held, too, so that the write can be taken back. */
wb_status wb_state_write(wb_array **slot, wb_array *value);
/* The same with NULL for a value. */
wb_status wb_state_clear(wb_array **slot);

/* A number in a model that goes with such arrays, which is taken back with them. */
wb_status wb_state_write_number(int64_t *number, int64_t value);

/* Whether a write to the slot, or any, is not settled yet. */
bool wb_state_is_written(wb_array **slot);
bool wb_state_is_any_written(void);

/* What is written between the two can be taken back: with keep false, wb_state_end gives each slot
 * what it held at wb_state_begin, whose result it gets. Pairs nest. */
int64_t wb_state_begin(void);
void wb_state_end(int64_t begin, bool keep);
bool wb_state_is_open(void); /* whether one has begun: a loss, or a layer that is applied */

/* A kept array that leaves its scope pending is computed with the writes. */
wb_status wb_state_survive(wb_array *x);

/* Of each slot that was written: what it held before, and holds now, either of which may be NULL.
 * What it is to hold from now on; NULL: as it is. */
typedef wb_array *wb_state_fn(void *context, wb_array *before, wb_array *now);
/* Calls f for each; how many stay as they are, with the numbers that were written; -1 with an
 * error. */
int64_t wb_state_rewrite(wb_state_fn *f, void *context);
/* Takes back those that stayed as they were. */
void wb_state_undo_rest(void);

/* The slot goes, or gets another array: its writes are forgotten. */
void wb_state_forget(wb_array **slot);
void wb_state_forget_number(int64_t *number);

/* What is pending of all that, at most capacity arrays, for a plan that computes them with its own
 * roots: they lose their recipes then. Returns how many there are. */
int wb_state_pending(int capacity, wb_array **values);

/* Computes what is pending, in one plan, and settles the writes; on failure all are taken back. */
wb_status wb_state_settle(void);
/* Takes all writes back. */
void wb_state_undo(void);

#endif
