/* Convolutions, pools, unfold and fold on the CPU: wb_window_call of weber/calls.h says what of
 * which sizes. Dense arrays, first dimension fastest: x (W, H, D, C, N), w (kw, kh, kd, C / groups,
 * K), y (W', H', D', K, N); W' = floor((W + pad_lo + pad_hi - dilation (kw - 1) - 1) / stride) + 1.
 */
#ifndef WB_CPU_WINDOW_H
#define WB_CPU_WINDOW_H

#include <weber/calls.h>

#include "gemm.h"

typedef struct wb_window {
    wb_window_call call;
    wb_dtype dtype; /* WB_F32 or WB_F64 */
    bool keeps;     /* wb_cpu_conv_keep makes the weights ready, where it takes them */
    void *kept;     /* where it did, or NULL */
} wb_window;

/* y = conv(x, w); dx = adjoint in x of it applied to y; dw = adjoint in w of it. scratch: see
 * _scratch. done (may be NULL) is called as in gemm.h with product = 0, rows = positions inside one
 * output plane (W' H' D' of them) and columns = channel + K * image, for forward; for data the
 * planes are x's. filter never calls done. */
typedef enum wb_conv_kind { WB_CONV_FORWARD, WB_CONV_DATA, WB_CONV_FILTER } wb_conv_kind;
int64_t wb_cpu_conv_scratch(wb_conv_kind kind, const wb_window *window);
void wb_cpu_conv(wb_conv_kind kind, const wb_window *window, const void *a, const void *b,
                 void *out, void *scratch, wb_tile_fn *done, void *context);
/* (a, b, out) is (x, w, y) for forward, (y, w, x) for data, (x, y, w) for filter */

/* Bytes that wb_cpu_conv_keep fills, aligned to 64, of a convolution with keeps; 0: the weights
 * meet many positions, so that it does not pay. */
int64_t wb_cpu_conv_kept(wb_conv_kind kind, const wb_window *window);
/* Brings weights into the form that the loops read, in window->kept, for any number of calls. */
void wb_cpu_conv_keep(wb_conv_kind kind, const wb_window *window, const void *weights);

/* Max pooling: y and the position (inside the plane of x: w + W (h + H d)) of the first maximum in
 * memory order; padding never wins; a NaN wins. index is i32. */
void wb_cpu_maxpool(const wb_window *window, const void *x, void *y, int32_t *index);
/* x = zeros, then x[index[p]] += y[p] for each plane; and its adjoint y[p] = x[index[p]]. */
void wb_cpu_pool_scatter(const wb_window *window, const void *y, const int32_t *index, void *x);
void wb_cpu_pool_gather(const wb_window *window, const void *x, const int32_t *index, void *y);

/* Mean over the full window, padding counted as zeros (Flux), and its adjoint. */
void wb_cpu_meanpool(const wb_window *window, const void *x, void *y);
void wb_cpu_meanpool_data(const wb_window *window, const void *y, void *x);

/* unfold (im2col): columns (W' H' D', kw kh kd C, N); fold is its adjoint. flip reverses the order
 * of the taps. groups is 1. */
void wb_cpu_unfold(const wb_window *window, const void *x, void *columns);
void wb_cpu_fold(const wb_window *window, const void *columns, void *x);

#endif
