/* What a loss was divided by. A loss with ignored labels or weights is a mean over what counts; in
 * a mean over several batches its weight is this divisor, not its number of observations. Losses
 * note it while they are made; steps and evaluations read it. */
#ifndef WB_ARRAY_DIVISOR_H
#define WB_ARRAY_DIVISOR_H

#include "array/array.h"

/* Of one call of a loss function. */
typedef struct wb_divisor {
    wb_array *noted; /* a reference: the divisor of the library's last loss */
    int notes; /* how many losses noted one; if several did, none is the divisor of the whole */
    /* a reference: the divisor of the whole (wb_divided_by); comes before `noted` */
    wb_array *told;
} wb_divisor;

/* From now on the thread's losses note their divisors in *divisor, which must be empty; NULL:
 * nowhere. Returns the one that was used before, so that the caller can put it back. */
wb_divisor *wb_divisor_to(wb_divisor *divisor);
/* Notes that a loss was divided by x. */
void wb_divisor_note(wb_array *x);
/* Notes that the whole result of the loss function was divided by x (wb_divided_by). */
void wb_divisor_tell(wb_array *x);
/* The divisor of the whole, else the only one that was noted, as a reference that the caller owns.
 * NULL: there is none, and the number of observations counts. *divisor is empty afterwards. */
wb_array *wb_divisor_take(wb_divisor *divisor);

#endif
