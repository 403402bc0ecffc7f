#include "blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_MAJOR = 102, STRAIGHT = 111, TRANSPOSED = 112 }; /* of cblas.h */

typedef void sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
typedef void dgemm_fn(int, int, int, int, int, int, double, const double *, int, const double *,
                      int, double, double *, int);
typedef void set_threads_fn(int);

typedef enum policy { AUTO, OWN, OPENBLAS } policy;

static struct {
    policy policy;
    sgemm_fn *sgemm; /* NULL: not wanted, or not there */
    dgemm_fn *dgemm;
} blas;

/* Multiply-adds from which OpenBLAS is faster (bench/results), per instruction set; 0: nowhere.
 * Baseline is SSE2 without a fused multiply-add on x86-64, where OpenBLAS has kernels for what the
 * machine really is. */
static const double wins_from[WB_ISA_COUNT] = {
    [WB_ISA_BASELINE] = 1e5, [WB_ISA_AVX2] = 0, [WB_ISA_AVX512] = 0};

static policy asked_policy(void) {
    const char *asked = getenv("WEBER_BLAS");
    if (asked && strcmp(asked, "own") == 0) return OWN;
    return asked && strcmp(asked, "openblas") == 0 ? OPENBLAS : AUTO;
}

static void open_library(void) {
    blas.policy = asked_policy();
    if (blas.policy == OWN || (blas.policy == AUTO && wins_from[wb_cpu_isa()] == 0)) return;

    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    void *sgemm = dlsym(library, "cblas_sgemm"), *dgemm = dlsym(library, "cblas_dgemm");
    void *set = dlsym(library, "openblas_set_num_threads");
    if (!sgemm || !dgemm || !set) return;

    /* ISO C has no cast from an object pointer to a function pointer; POSIX promises the same
     * size */
    set_threads_fn *set_threads;
    memcpy(&set_threads, &set, sizeof set);
    set_threads(1);
    memcpy(&blas.sgemm, &sgemm, sizeof sgemm);
    memcpy(&blas.dgemm, &dgemm, sizeof dgemm);
}

static bool fits(const wb_gemm *g) {
    return g->lda <= INT_MAX && g->ldb <= INT_MAX && g->ldc <= INT_MAX && g->k <= INT_MAX &&
           g->m <= INT_MAX && g->n <= INT_MAX;
}

bool wb_blas_wins(const wb_gemm *g) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    if (!blas.sgemm || g->k == 0 || !fits(g)) return false;
    const double work = (double)g->m * (double)g->n * (double)g->k;
    return blas.policy == OPENBLAS || work >= wins_from[wb_cpu_isa()];
}

void wb_blas_piece(const wb_gemm_piece *piece) {
    const wb_gemm *g = piece->gemm;
    const int m = (int)piece->rows, n = (int)piece->columns, k = (int)g->k;
    const int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const int turn_a = g->transpose_a ? TRANSPOSED : STRAIGHT;
    const int turn_b = g->transpose_b ? TRANSPOSED : STRAIGHT;
    const int64_t a = piece->row * (g->transpose_a ? g->lda : 1);
    const int64_t b = piece->column * (g->transpose_b ? 1 : g->ldb);
    const int64_t c = piece->row + piece->column * g->ldc;

    if (g->dtype == WB_F64)
        blas.dgemm(COLUMN_MAJOR, turn_a, turn_b, m, n, k, 1, (const double *)piece->a + a, lda,
                   (const double *)piece->b + b, ldb, 0, (double *)piece->c + c, ldc);
    else
        blas.sgemm(COLUMN_MAJOR, turn_a, turn_b, m, n, k, 1, (const float *)piece->a + a, lda,
                   (const float *)piece->b + b, ldb, 0, (float *)piece->c + c, ldc);
    if (piece->done)
        piece->done(piece->context, piece->product, piece->row, piece->rows, piece->column,
                    piece->columns, piece->worker);
}
