/* oneDNN, opened at run time where it is present: an optional way to compute a convolution.
 *
 * WEBER_CONV=own never uses it, nor does direct (conv.c), onednn uses it for every f32 convolution
 * of one or two dimensions, auto (the default) uses it where a measurement says that it is faster
 * than Weber's kernels, with the conversion of the arrays from and to (W, H, C, N) counted
 * (onednn.c, bench/results). Only version 2 is opened, libdnnl.so.2: version 3 has another C
 * interface.
 *
 * A batch is cut into groups of images, by shape only. Each is converted, computed by one primitive
 * on one thread of Weber's pool, and converted back while it is in cache. The thread's number of
 * OpenMP threads is 1 during that and what it was before afterwards. */
#ifndef WB_CPU_ONEDNN_H
#define WB_CPU_ONEDNN_H

#include <weber/plugin.h>

#include "window.h"

/* Primitives and their memory objects for each of the wb_cpu_threads() of when it was made. */
typedef struct wb_onednn wb_onednn;

/* True if it may be used at all: there, of the right version, and not switched off. */
bool wb_onednn_is_open(void);

/* True where auto takes it, if it is open. */
bool wb_onednn_is_faster(wb_conv_kind kind, const wb_window *window);

/* NULL if wb_cpu_conv is to be called instead: that depends on the shape, the machine and the
 * environment, never on time. Belongs to the caller. */
wb_onednn *wb_onednn_new(wb_conv_kind kind, const wb_window *window);
void wb_onednn_free(wb_onednn *conv);

/* Bytes of scratch memory, aligned to 64, that the call below needs. */
size_t wb_onednn_scratch(const wb_onednn *conv);

/* As wb_cpu_conv, one call at a time; WB_ERROR_DEVICE if oneDNN fails. */
wb_status wb_onednn_conv(wb_onednn *conv, const void *a, const void *b, void *out, void *scratch,
                         wb_tile_fn *done, void *context);

#endif
