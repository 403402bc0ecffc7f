/* The sizes of a window as definitions for a text. */
#ifndef WB_PROGRAM_CALL_GEOMETRY_H
#define WB_PROGRAM_CALL_GEOMETRY_H

#include "program/call_source.h"

/* IN_0 ..., OUT_0 ..., PAD_0 ..., KERNEL_0 ..., STRIDE_0 ..., DILATION_0 ..., FLIP. is_special:
 * unused dimensions are constants, and so are the sizes of a small kernel, since a model has few
 * different ones: loops over the kernel can be unrolled, and divisions are cheap. */
void wb_call_geometry(wb_call_source *source, const wb_window_call *window, bool is_special);

static inline int64_t wb_call_volume(const int64_t sizes[3]) {
    return sizes[0] * sizes[1] * sizes[2];
}

#endif
