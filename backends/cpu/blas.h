/* OpenBLAS, or Accelerate on macOS, opened at run time where it is present: an optional way to
 * compute a piece of a product.
 *
 * WEBER_BLAS=own uses neither, openblas or accelerate uses that one for every product of matrices,
 * auto (the default) uses one where it is known to be faster than Weber's kernels (blas.c).
 * OpenBLAS runs single-threaded inside Weber's pool, so its number of threads is set to 1 for the
 * whole process; Accelerate is given whole products. */
#ifndef WB_CPU_BLAS_H
#define WB_CPU_BLAS_H

#include "gemm_kernel.h"

/* True if the pieces of this product are to be computed by wb_blas_piece. Depends on the shape, the
 * machine and the environment, never on time. */
bool wb_blas_wins(const wb_gemm *gemm);

/* True if they are not to be cut further. */
bool wb_blas_takes_whole(const wb_gemm *gemm);

void wb_blas_piece(const wb_gemm_piece *piece);

#endif
