/* weber/initialisers.h: initial values of parameters.
 *
 * Functions that return an array of the given sizes, computed at once: for .init of a layer, or to
 * be called. fan_in and fan_out are in and out for sizes (out, in), prod(kernel) in and
 * prod(kernel) out for (kernel..., in, out), 1 and n for (n), 1 and 1 for a number (wb_nfan). std:
 * standard deviation.
 *
 *   glorot_uniform   uniform in [-a, a), a = gain sqrt(6 / (fan_in + fan_out)); gain 1
 *                                                               (Glorot and Bengio 2010)
 *   glorot_normal    normal with std gain sqrt(2 / (fan_in + fan_out)); gain 1
 *   kaiming_uniform  uniform in [-a, a), a = gain sqrt(3 / fan_in); gain sqrt(2)  (He et al. 2015);
 *                    PyTorch's Linear and Conv have gain 1 / sqrt(3)
 *   kaiming_normal   normal with std gain / sqrt(fan_in); gain sqrt(2)
 *   lecun_normal     normal with std gain / sqrt(fan_in), within [-2, 2]; gain 1
 *                                                               (LeCun et al. 1998)
 *   truncated_normal_init   normal with std 1, within [-2, 2]
 *   orthogonal       the matrix (product of all sizes but the last, last) has orthogonal columns,
 *                    or rows where these are fewer, of length gain; gain 1; at least 2 dimensions;
 *                    computed on the host              (Saxe, McClelland and Ganguli 2013)
 *   sparse_init      (rows, columns) only: normal with the given std, and in each column
 *                    ceil(min(1, sparsity) rows) zeros at random places; std 0.01; sparsity 0.1,
 *                    as in the examples of Flux and PyTorch, which have no default (Martens 2010)
 *   identity_init    gain at (i, i), for a convolution's weight in the middle of the kernel, so
 *                    that a convolution that keeps sizes returns its input; then shifted by
 *                    shift[d] along dimension d (NULL: not shifted); gain 1. A vector is zeros.
 *   uniform_init, normal_init, zeros_init, ones_init   uniform in [0, 1), normal with std 1
 *
 * To use other settings as .init, write a function that calls one of the wb_NAME_with below. They
 * fail with WB_ERROR_ARGUMENT on settings that are not finite and on a negative sparsity. */
#ifndef WEBER_INITIALISERS_H
#define WEBER_INITIALISERS_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A new array of these sizes, filled as the table at the top of this file says. It is computed at
 * once, and owned by the scope. */
typedef wb_array *wb_init(int ndim, const int64_t *sizes, wb_dtype dtype);
WB_API wb_init wb_glorot_uniform, wb_glorot_normal, wb_kaiming_uniform, wb_kaiming_normal,
    wb_lecun_normal, wb_truncated_normal_init, wb_orthogonal, wb_identity_init, wb_uniform_init,
    wb_normal_init, wb_zeros_init, wb_ones_init, wb_sparse_init;

/* The same with the given gain, by which the numbers are multiplied. */
typedef wb_array *wb_init_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain);
WB_API wb_init_with wb_glorot_uniform_with, wb_glorot_normal_with, wb_kaiming_uniform_with,
    wb_kaiming_normal_with, wb_lecun_normal_with, wb_orthogonal_with;

/* wb_sparse_init with the given fraction of zeros in each column, and standard deviation of the
 * rest. */
WB_API wb_array *wb_sparse_init_with(int ndim, const int64_t *sizes, wb_dtype dtype,
                                     double sparsity, double std);

/* wb_identity_init with the given gain, shifted by shift[d] along dimension d (NULL: not
 * shifted). */
WB_API wb_array *wb_identity_init_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain,
                                       const int64_t *shift);

/* The fans of an array of these sizes, by the rule at the top of this file: each output depends on
 * *fan_in numbers, each input reaches *fan_out outputs. Either pointer may be NULL. */
WB_API void wb_nfan(int ndim, const int64_t *sizes, int64_t *fan_in, int64_t *fan_out);

#ifdef __cplusplus
}
#endif
#endif
