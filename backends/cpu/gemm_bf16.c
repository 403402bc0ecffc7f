/* Which products the processor multiplies as bf16, and which of these by its tiles. */
#include "gemm_kernel.h"

bool wb_gemm_takes_bf16(const wb_gemm *g) {
    if (g->dtype == WB_BF16) return true;
    const bool pays = g->m >= 32 && g->n >= 16 && g->k >= 32;
    return g->may_round && g->dtype == WB_F32 && pays && wb_cpu_multiplies_bf16();
}

bool wb_gemm_takes_tiles(const wb_gemm *g) {
    const bool fills = g->m >= WB_GEMM_TILE && g->n >= WB_GEMM_TILE && g->k >= 2 * WB_GEMM_TILE;
    return fills && wb_gemm_takes_bf16(g) && wb_cpu_has_tiles();
}
