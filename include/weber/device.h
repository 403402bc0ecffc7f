/* weber/device.h: where arrays live. */
#ifndef WEBER_DEVICE_H
#define WEBER_DEVICE_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU, always there. */
WB_API const wb_device *wb_cpu_device(void);

/* "CPU". */
WB_API const char *wb_device_name(const wb_device *device);

/* Threads that the CPU computes with: WEBER_NUM_THREADS, else the cores this process may use; results do not depend on it.
 * wb_set_threads(0) returns to the default. */
WB_API int wb_threads(void);
WB_API void wb_set_threads(int threads);

/* Memory of a device, in bytes. */
typedef struct wb_memory_info {
    int64_t live;   /* in arrays */
    int64_t cached; /* free, kept for the next array */
    int64_t peak;   /* largest live + workspace so far */
    int64_t workspace;
} wb_memory_info;
WB_API wb_memory_info wb_memory_status(const wb_device *device);

/* Gives cached memory back to the system. */
WB_API void wb_memory_reclaim(const wb_device *device);

/* What evaluation did so far on this thread; differences over a step are what benchmarks and tests look at. */
typedef struct wb_plan_counts {
    int64_t evaluations;      /* plans run */
    int64_t misses;           /* plans made because none was in the cache */
    int64_t kernels;          /* commands run */
    int64_t missed_donations; /* updates that could not work in place */
    int64_t allocations;      /* pieces of memory asked of the system, on all threads */
    int64_t cache_bytes;      /* size of the plan cache */
} wb_plan_counts;
WB_API wb_plan_counts wb_plan_status(void);

#ifdef __cplusplus
}
#endif
#endif
