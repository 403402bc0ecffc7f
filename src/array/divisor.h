/* What a loss was divided by: a mean over what counts, as a loss with an ignored label is, is one
 * part of the mean over several batches in proportion to it, not to its observations. Losses note
 * it while they are made; steps and evaluations ask. */
#ifndef WB_ARRAY_DIVISOR_H
#define WB_ARRAY_DIVISOR_H

#include "array/array.h"

/* Of one call of a loss function. */
typedef struct wb_divisor {
    wb_array *noted; /* a reference: the divisor of the library's last loss */
    int notes;       /* losses that noted theirs; if several did, none is the whole's */
    wb_array *told;  /* a reference: of the whole, which counts before that */
} wb_divisor;

/* From now on the thread's losses note their divisors there, which is empty; NULL: nowhere. What
 * was before, for the way back. */
wb_divisor *wb_divisor_to(wb_divisor *divisor);
/* x is what a loss, a mean over what counts, was divided by. */
void wb_divisor_note(wb_array *x);
/* The same of all that the loss function makes (wb_divided_by). */
void wb_divisor_tell(wb_array *x);
/* What the call of a loss function has told or noted, a reference of the caller's, without a
 * gradient; NULL: nothing, so that observations count. *divisor is empty then. */
wb_array *wb_divisor_take(wb_divisor *divisor);

#endif
