/* Copies of a box of elements from one array to another, by a program. */
#ifndef WB_CUDA_COPY_H
#define WB_CUDA_COPY_H

#include "kernel.h"

enum { WB_COPY_DIMENSIONS = 8 };

/* A box of elements: its sizes, and where it lies in both arrays (strides, offsets), in elements.
 * Begin with {.ndim = 0}. */
typedef struct wb_gpu_box {
    int ndim;
    int64_t sizes[WB_COPY_DIMENSIONS], from[WB_COPY_DIMENSIONS], to[WB_COPY_DIMENSIONS];
    int64_t from_offset, to_offset;
} wb_gpu_box;

/* A dimension of the box, after those that are there; at most 8. */
void wb_gpu_box_add(wb_gpu_box *box, int64_t size, int64_t from_stride, int64_t to_stride);

/* A kernel of two arguments, from and to. NULL with an error recorded. */
wb_gpu_kernel *wb_gpu_box_copy(wb_gpu_device *device, wb_dtype dtype, const wb_gpu_box *box);
/* Runs it for the command, whose last argument is scratch memory. */
wb_gpu_outcome wb_gpu_box_run(const wb_gpu_kernel *copy, const wb_gpu_run *run,
                              const wb_command *command, wb_argument from, wb_argument to);

#endif
