/* Simulates a slower link: WEBER_PACE=1000us,100MB/s. */
#ifndef WB_RANKS_PACE_H
#define WB_RANKS_PACE_H

#include <stdbool.h>
#include <stddef.h>

/* A message of b bytes arrives alpha + b * beta seconds after its sender's port is free, and keeps
 * the port busy until then. 0 and 0: no delay. */
typedef struct wb_pace {
    double alpha; /* seconds */
    double beta;  /* seconds per byte */
} wb_pace;

/* Reads WEBER_PACE. False with an error recorded if it is not a pace. */
bool wb_pace_read(wb_pace *pace);

static inline bool wb_has_pace(const wb_pace *pace) { return pace->alpha > 0 || pace->beta > 0; }

/* Seconds for which one message keeps a port busy. */
static inline double wb_pace_message(const wb_pace *pace, size_t bytes) {
    return pace->alpha + (double)bytes * pace->beta;
}

#endif
