/* The smallest kernel that a backend can be given, and what it costs to start it. */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include "device/device.h"

/* y = x, one element, with its memory. */
typedef struct bench_launch {
    const wb_device *device;
    void *kernel;
    wb_memory memory[3]; /* x, y, scratch */
    size_t scratch_bytes;
} bench_launch;

/* False, with Weber's error pending, on failure; bench_launch_close is to be called all the
 * same. */
bool bench_launch_open(const wb_device *device, bench_launch *launch);
bool bench_launch_queue(const bench_launch *launch);
void bench_launch_close(bench_launch *launch);

#endif
