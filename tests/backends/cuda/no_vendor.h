/* The GPU plugin's sources without a driver: a vendor whose memory is the process's, and no
 * parts. */
#ifndef WB_TESTS_CUDA_NO_VENDOR_H
#define WB_TESTS_CUDA_NO_VENDOR_H

#include "device/device.h"
#include "kernel.h"
#include "support/leaks.h"

static wb_gpu_outcome enter_nothing(int ordinal, gpu_context context) {
    (void)ordinal, (void)context;
    return (wb_gpu_outcome){.error = NULL};
}

const wb_gpu_vendor wb_gpu_vendor_table = {.backend = "CUDA", .enter = enter_nothing};

const wb_gpu_part *const wb_gpu_parts[] = {NULL};

LEAKS_OF_OTHERS(LEAKS_OF_VENDORS);

#endif
