/* Sums over ranks of arrays in device memory, computed on the device in the order of reduce.c. */
#ifndef WB_RANKS_DEVICE_SUMS_H
#define WB_RANKS_DEVICE_SUMS_H

#include <weber/device.h>
#include <weber/distributed.h>
#include <weber/plugin.h>

typedef struct wb_device_sums {
    const wb_device *device;
    void *queue; /* NULL: the device's own */
    int ranks;
    void *room; /* memory for the ranks' data, a slot each, and their sum */
    struct wb_sum_kernel *kernels;
    int64_t kernel_count, kernel_capacity;
} wb_device_sums;

/* Opens it. False with an error recorded; close it in any case. */
bool wb_device_sums_open(wb_device_sums *s, const wb_device *device, void *queue, int ranks);
void wb_device_sums_close(wb_device_sums *s);

/* The largest number of elements of each rank that can be added up at once. */
int64_t wb_device_sums_most(const wb_device_sums *s, wb_dtype dtype);
/* Where to put `count` elements of rank 0, and the distance in bytes to the slot of the next
 * rank. */
wb_memory wb_device_sums_slots(const wb_device_sums *s, wb_dtype dtype, int64_t count,
                               size_t *stride_bytes);
/* Queues the reduction of the slots. *sum: where the result is, until the next reduction. */
wb_status wb_device_sums_add(wb_device_sums *s, wb_dtype dtype, wb_reduction reduction,
                             int64_t count, wb_memory *sum);

#endif
