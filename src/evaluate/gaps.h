/* The free stretches of the workspace. */
#ifndef WB_EVALUATE_GAPS_H
#define WB_EVALUATE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wb_gaps {
    struct wb_gap *nodes;
    int64_t count, capacity;
    int32_t root, unused;
    uint32_t random;
} wb_gaps;

/* Starts with one gap from 0 on, without an end. False when out of memory, as for wb_gaps_give. */
bool wb_gaps_begin(wb_gaps *gaps);
void wb_gaps_end(wb_gaps *gaps);
/* The offset of the first stretch of this size, which is not 0. */
int64_t wb_gaps_take(wb_gaps *gaps, int64_t size);
bool wb_gaps_give(wb_gaps *gaps, int64_t offset, int64_t size);

#endif
