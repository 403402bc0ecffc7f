/* Sums over ranks of memory of a device, by programs of the device, in the order of reduce.c. */
#ifndef WB_RANKS_DEVICE_SUMS_H
#define WB_RANKS_DEVICE_SUMS_H

#include <weber/device.h>
#include <weber/distributed.h>
#include <weber/plugin.h>

typedef struct wb_device_sums {
    const wb_device *device;
    void *queue; /* NULL: the device's own */
    int ranks;
    void *room; /* what the ranks give, a slot each, and their sum */
    struct wb_sum_kernel *kernels;
    int64_t kernel_count, kernel_capacity;
} wb_device_sums;

/* False with an error recorded. Close it in any case. */
bool wb_device_sums_open(wb_device_sums *s, const wb_device *device, void *queue, int ranks);
void wb_device_sums_close(wb_device_sums *s);

/* The most elements of each rank that are added up at once. */
int64_t wb_device_sums_most(const wb_device_sums *s, wb_dtype dtype);
/* Where the `count` elements that rank 0 gives belong, and by how many bytes further on those of
 * the next one do. */
wb_memory wb_device_sums_slots(const wb_device_sums *s, wb_dtype dtype, int64_t count,
                               size_t *stride_bytes);
/* Queues the reduction of what is in the slots. *sum: where it lies until the next one. */
wb_status wb_device_sums_add(wb_device_sums *s, wb_dtype dtype, wb_reduction reduction,
                             int64_t count, wb_memory *sum);

#endif
