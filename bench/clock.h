/* Time, medians and the counters of the process. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>

double bench_us(void); /* microseconds of a steady clock */

typedef struct bench_times {
    double median, least, mean;
} bench_times;
/* Sorts the list. */
bench_times bench_times_of(int64_t count, double *us);

int64_t bench_minor_faults(void);
int64_t bench_peak_kb(void); /* VmHWM */

#endif
