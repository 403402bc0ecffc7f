/* Matrix products on the CPU, column-major as everything in Weber:
 *
 *     C (m, n) = op(A) (m, k) * op(B) (k, n)        op(A) is A or its transpose
 *
 * Element (i, j) of a stored matrix lies at [i + j * ld]. A batch repeats the product with the
 * given strides (elements; 0 repeats one matrix). */
#ifndef WB_CPU_GEMM_H
#define WB_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weber/dtype.h>

typedef struct wb_gemm {
    wb_dtype dtype;          /* WB_F32 or WB_F64, of A, B and C; WB_BF16, added up in f32, where
                                wb_cpu_multiplies_bf16 */
    bool may_round;          /* f32: A and B may be rounded to bf16, sums stay f32 */
    void *kept_a;            /* where wb_cpu_gemm_keep packed A, or NULL */
    bool keeps_a;            /* A is packed by wb_cpu_gemm_keep, where that takes it */
    bool transpose_a;        /* A is stored (k, m) */
    bool transpose_b;        /* B is stored (n, k) */
    int64_t m, n, k;         /* any may be 0; k = 0 gives zeros */
    int64_t lda, ldb, ldc;   /* elements from one stored column to the next */
    int64_t batch;           /* number of products, at least 1 */
    const int64_t *offset_a; /* batch offsets in elements, or NULL for batch == 1 */
    const int64_t *offset_b;
    const int64_t *offset_c;
} wb_gemm;

/* Called once for each tile of C as soon as its elements are final and still in cache, from any
 * pool thread, tiles never overlapping and covering C: rows row .. row + rows - 1 of columns column
 * .. column + columns - 1 of product number `product`. Fused elementwise programs run here. */
typedef void wb_tile_fn(void *context, int64_t product, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, int worker);

/* Bytes of scratch memory that wb_cpu_gemm needs for this product, aligned to 64; depends on the
 * call and on wb_cpu_threads(). */
int64_t wb_cpu_gemm_scratch(const wb_gemm *gemm);

/* Bytes that wb_cpu_gemm_keep fills, aligned to 64, of a product with keeps_a; 0: the product does
 * not pack A beforehand. */
int64_t wb_cpu_gemm_kept(const wb_gemm *gemm);
/* Packs A into kept_a, for any number of these products. */
void wb_cpu_gemm_keep(const wb_gemm *gemm, const void *a);

/* done may be NULL. Never fails; allocates nothing. */
void wb_cpu_gemm(const wb_gemm *gemm, const void *a, const void *b, void *c, void *scratch,
                 wb_tile_fn *done, void *context);

#endif
