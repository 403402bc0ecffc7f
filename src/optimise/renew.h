/* What a step renews (renew.c). */
#ifndef WB_OPTIMISE_RENEW_H
#define WB_OPTIMISE_RENEW_H

#include "optimise/optimiser.h"

/* Puts what the slots will hold in front of the step's roots, and gives how many. Parameters and
 * states are flagged as data that is written in place; counts alternate between two places, so that
 * a device error leaves the old one. */
int wb_renewals_list(wb_optimiser *o);

/* Puts into the scope what is needed if the step is taken back: old views, which are not inputs of
 * the new ones, and counts, so that they are not written in place. */
bool wb_renewals_keep_old(const wb_optimiser *o);

/* Exchanges what slots hold with what is fresh; calling it again takes that back. */
void wb_renewals_swap(wb_optimiser *o);

#endif
