/* The order in which an epoch visits the observations. */
#ifndef WB_DATA_ORDER_H
#define WB_DATA_ORDER_H

#include <stdint.h>

/* order[0 .. count - 1] = a permutation of 0 .. count - 1 that depends on (seed, epoch) alone:
 * Fisher and Yates (Durstenfeld 1964) over SplitMix64 (Steele et al. 2014), in integers, so that it
 * is the same on every machine. */
void wb_order_shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch);

/* 0, 1, 2, ... */
void wb_order_natural(int64_t *order, int64_t count);

/* The seed of the random numbers that preparing batch index of an epoch may draw. */
uint64_t wb_order_seed(uint64_t seed, int64_t epoch, int64_t index);

#endif
