/* The arrays that a step replaces (renew.c). */
#ifndef WB_OPTIMISE_RENEW_H
#define WB_OPTIMISE_RENEW_H

#include "optimise/optimiser.h"

/* Puts the new values of slots in front of the step's roots. Returns how many. Parameters and
 * states are flagged as data that is written in place; counts alternate between two pieces of
 * memory, so that the old one survives a device error. */
int wb_renewals_list(wb_optimiser *o);

/* Gives the scope references to what is needed if the step is taken back: old views, which are not
 * inputs of the new ones, and counts. So they are not written in place. */
bool wb_renewals_keep_old(const wb_optimiser *o);

/* Swaps the arrays in the slots with the new ones; a second call swaps them back. */
void wb_renewals_swap(wb_optimiser *o);

#endif
