#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "platform/memory.h"

double bench_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_times bench_times_of(int64_t count, double *us) {
    bench_times t = {0};
    if (count == 0) return t;
    qsort(us, (size_t)count, sizeof *us, ascending);
    for (int64_t i = 0; i < count; i++) t.mean += us[i] / (double)count;
    t.median = us[count / 2];
    t.least = us[0];
    return t;
}

int64_t bench_minor_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

int64_t bench_peak_kb(void) { return wb_platform_peak_bytes() / 1024; }
