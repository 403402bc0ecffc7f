/* Copies of a box of elements from one array to another, by a program. */
#ifndef WB_CONV_COPY_H
#define WB_CONV_COPY_H

#include "../kernel.h"

enum { WB_COPY_DIMENSIONS = 8 };

/* Begin with zeros. In elements. */
typedef struct wb_conv_copy {
    int ndim;
    int64_t sizes[WB_COPY_DIMENSIONS], from[WB_COPY_DIMENSIONS], to[WB_COPY_DIMENSIONS];
    int64_t from_offset, to_offset;
} wb_conv_copy;

/* A dimension of the box, after those that are there; at most 8. */
void wb_conv_copy_add(wb_conv_copy *copy, int64_t size, int64_t from_stride, int64_t to_stride);

/* A kernel of two arguments, from and to. NULL with an error recorded. */
wb_gpu_kernel *wb_conv_copy_new(wb_gpu_device *device, wb_dtype dtype, const wb_conv_copy *copy);

#endif
