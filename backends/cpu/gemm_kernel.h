/* What the code per instruction set (kernels/gemm.c) gives to gemm.c: one rectangle of one product,
 * on the calling thread. */
#ifndef WB_CPU_GEMM_KERNEL_H
#define WB_CPU_GEMM_KERNEL_H

#include "gemm.h"
#include "isa.h"

enum {
    WB_GEMV_STREAM = 1 << 18, /* bytes of a matrix that is read once, from front to back, ... */
    WB_GEMV_COLUMNS = 8,      /* ... so many columns at once */
    WB_GEMM_ROWS = 256,       /* most rows of a piece: its packed A and its B share the L2 cache */
    WB_GEMM_DEPTH = 512,      /* most k of one pass over a piece: a strip of B stays in L1 */
    WB_GEMM_DEPTH_PACKED = 256, /* the same with a packed B, which is less dense there */
    WB_GEMM_ROW_UNIT = 64,      /* pieces begin at multiples of this: whole tiles for every set */
    WB_GEMM_COLUMN_UNIT = 48,   /* and of this */
    WB_GEMM_STRIP = 16,         /* most columns of a strip of tiles */
    WB_GEMM_GROUP = 48,         /* columns in a block of a packed B */
    WB_GEMM_SHEET = 192,        /* columns of B that are packed at once */
    WB_GEMM_DONE_BYTES = 16384  /* of C that are gathered for one call of done */
};

typedef struct wb_gemm_piece {
    const wb_gemm *gemm;
    const void *a, *b; /* the whole matrices of this product */
    void *c;
    int64_t product;
    int64_t row, rows, column, columns; /* the rectangle of C */
    bool packs_a, packs_b;              /* copied into panels and strips, or read in place */
    bool keeps;                         /* packs A for later, and computes nothing */
    bool swaps;                         /* computes the transpose: for few rows */
    void *scratch;                      /* for these three; aligned to 64 */
    wb_tile_fn *done;                   /* may be NULL */
    void *context;
    int worker;
} wb_gemm_piece;

#define WB_DECLARE(enumerator, suffix)                                                             \
    void wb_gemm_f32_##suffix(const wb_gemm_piece *piece);                                         \
    void wb_gemm_f64_##suffix(const wb_gemm_piece *piece);
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE

/* Of the products of bf16: k of one pass, columns whose sums are in scratch memory, and the k up to
 * which a piece packs its A once and keeps it. */
enum { WB_GEMM_DEPTH_BF16 = 512, WB_GEMM_SHEET_BF16 = 192, WB_GEMM_KEPT_BF16 = 2048 };

/* Whether A and B are multiplied as bf16: they are, or may be rounded and are large enough for that
 * to pay. */
bool wb_gemm_takes_bf16(const wb_gemm *gemm);
/* Whether these are multiplied by AMX: the processor has it, and the product fills tiles. */
bool wb_gemm_takes_tiles(const wb_gemm *gemm);

enum { WB_GEMM_TILE = 16 }; /* sums in a row and in a column of a tile of AMX, and pairs of k */

/* Room for the pairs of k that are packed. */
static inline int64_t wb_gemm_pairs(int64_t k) {
    return (k + 2 * WB_GEMM_TILE - 1) / (2 * WB_GEMM_TILE) * WB_GEMM_TILE;
}

/* k of A that lie packed at once. */
static inline int64_t wb_gemm_kept_bf16(int64_t k) {
    return k <= WB_GEMM_KEPT_BF16 ? k : WB_GEMM_DEPTH_BF16;
}

#define WB_DECLARE(enumerator, suffix, feature)                                                    \
    void wb_gemm_bf16_##suffix(const wb_gemm_piece *piece);
WB_ISA_BF16_LIST(WB_DECLARE)
#undef WB_DECLARE

#endif
