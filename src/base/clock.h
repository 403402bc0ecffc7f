/* A monotonic clock. */
#ifndef WB_BASE_CLOCK_H
#define WB_BASE_CLOCK_H

#include <time.h>

/* Seconds since an arbitrary moment; never decreases. */
static inline double wb_clock(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
