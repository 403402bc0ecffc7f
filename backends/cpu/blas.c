/* Opens OpenBLAS or Accelerate and passes products on to it. A table says for each library and each
 * instruction set from how many multiply-adds on it is faster than Weber's own kernels. */
#include "blas.h"
#include "platform/process.h"

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

typedef struct library {
    const char *name; /* in WEBER_BLAS */
    const char *file;
    const char *set_threads; /* makes it use one thread; NULL: it takes products whole */
    /* multiply-adds from which it is faster, per instruction set; 0: nowhere */
    double wins_from[WB_ISA_COUNT];
} library;

/* OpenBLAS (bench/results): baseline is SSE2 without a fused multiply-add on x86-64, while OpenBLAS
 * has kernels for the actual machine. Accelerate has Apple's matrix units, which nothing else
 * reaches; they are few and all cores share them, so that one thread is enough (its number is not
 * measured: Weber has not run on a Mac). */
static const library libraries[] = {
    {"accelerate",
     "/System/Library/Frameworks/Accelerate.framework/Accelerate",
     NULL,
     {[WB_ISA_BASELINE] = 1e5, [WB_ISA_NEON] = 1e5, [WB_ISA_NEON_BF16] = 1e5}},
    {"openblas", "libopenblas.so.0", "openblas_set_num_threads", {[WB_ISA_BASELINE] = 1e5}},
};

static struct {
    const library *library;
    bool is_asked;   /* for every product */
    sgemm_fn *sgemm; /* NULL: not used, or not there */
    dgemm_fn *dgemm;
} blas;

/* WEBER_BLAS_LIBRARY is another file in its place. */
static bool open_library(const library *l) {
    const char *file = wb_platform_trusted_variable("WEBER_BLAS_LIBRARY");
    void *handle = dlopen(file && file[0] ? file : l->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    void *sgemm = dlsym(handle, "cblas_sgemm"), *dgemm = dlsym(handle, "cblas_dgemm");
    void *set = l->set_threads ? dlsym(handle, l->set_threads) : NULL;
    if (!sgemm || !dgemm || (l->set_threads && !set)) return false;

    /* ISO C has no cast from an object pointer to a function pointer; POSIX promises the same
     * size */
    set_threads_fn *set_threads;
    memcpy(&set_threads, &set, sizeof set);
    if (set_threads) set_threads(1);
    memcpy(&blas.sgemm, &sgemm, sizeof sgemm);
    memcpy(&blas.dgemm, &dgemm, sizeof dgemm);
    blas.library = l;
    return true;
}

static void choose_library(void) {
    enum { COUNT = sizeof libraries / sizeof *libraries };
    const char *asked = getenv("WEBER_BLAS");
    if (asked && strcmp(asked, "own") == 0) return;
    for (int i = 0; i < COUNT && asked && !blas.is_asked; i++)
        if ((blas.is_asked = strcmp(asked, libraries[i].name) == 0))
            (void)open_library(&libraries[i]);
    for (int i = 0; i < COUNT && !blas.is_asked && !blas.library; i++)
        if (libraries[i].wins_from[wb_cpu_isa()] > 0) (void)open_library(&libraries[i]);
}

static bool fits(const wb_gemm *g) {
    return g->lda <= INT_MAX && g->ldb <= INT_MAX && g->ldc <= INT_MAX && g->k <= INT_MAX &&
           g->m <= INT_MAX && g->n <= INT_MAX;
}

bool wb_blas_wins(const wb_gemm *g) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_library);
    if (!blas.sgemm || wb_gemm_takes_bf16(g) || g->k == 0 || !fits(g)) return false;
    const double work = (double)g->m * (double)g->n * (double)g->k;
    return blas.is_asked || work >= blas.library->wins_from[wb_cpu_isa()];
}

bool wb_blas_takes_whole(const wb_gemm *g) { return wb_blas_wins(g) && !blas.library->set_threads; }

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
