/* Matrix products: Weber's kernels against OpenBLAS (when it can be opened), GF/s at 1 and 2
 * threads.
 *
 *     bench_gemm [--smoke] [--double | --bf16] [part of a name]
 *
 * --bf16 stops where the processor does not multiply bf16; OpenBLAS is not asked then.
 *
 * Rounds of the two are interleaved and the median round is printed, because other work on the
 * machine comes and goes; ratio is own / OpenBLAS. Matrices stay in the caches that they fit. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gemm.h"
#include "half.h"
#include "isa.h"
#include "pool.h"

typedef struct shape {
    const char *name;
    bool transpose_a, transpose_b;
    int m, n, k;
} shape;

static const shape shapes[] = {
    {"784-256 forward, batch 64", false, false, 256, 64, 784},
    {"784-256 weight gradient", false, true, 256, 784, 64},
    {"256-10 forward, batch 64", false, false, 10, 64, 256},
    {"256-10 input gradient", true, false, 256, 64, 10},
    {"256-10 weight gradient", false, true, 10, 256, 64},
    {"784-1024 forward, batch 256", false, false, 1024, 256, 784},
    {"784-1024 weight gradient", false, true, 1024, 784, 256},
    {"1024-1024 forward, batch 256", false, false, 1024, 256, 1024},
    {"1024-1024 weight gradient", false, true, 1024, 1024, 256},
    {"1024-1024 input gradient", true, false, 1024, 256, 1024},
    {"1024-10 forward, batch 256", false, false, 10, 256, 1024},
    {"1024-10 input gradient", true, false, 1024, 256, 10},
    {"1024-10 weight gradient", false, true, 10, 1024, 256},
    {"1-256 forward, batch 16", false, false, 256, 16, 1},
    {"256-1 forward, batch 16", false, false, 1, 16, 256},
    {"1-256 weight gradient", false, true, 256, 1, 16},
    {"256-1 weight gradient", false, true, 1, 256, 16},
    {"256-1 input gradient", true, false, 256, 16, 1},
    {"784-256 inference", false, false, 256, 1, 784},
    {"784-256 transposed vector", true, false, 784, 1, 256},
    {"lstm step, batch 32", false, false, 1024, 32, 256},
    {"lstm step, 128 cells", false, false, 512, 64, 128},
    {"lstm step, state gradient", true, false, 128, 64, 512},
    {"lstm weight gradient", false, true, 512, 128, 2048},
    {"attention scores", true, false, 128, 128, 64},
    {"attention values", false, false, 64, 128, 128},
    {"transformer block", false, false, 1024, 2048, 256},
    {"transformer weight gradient", false, true, 1024, 256, 2048},
    {"square 16", false, false, 16, 16, 16},
    {"square 32", false, false, 32, 32, 32},
    {"square 64", false, false, 64, 64, 64},
    {"square 128", false, false, 128, 128, 128},
    {"square 256", false, false, 256, 256, 256},
    {"square 512", false, false, 512, 512, 512},
    {"square 512, first transposed", true, false, 512, 512, 512},
    {"square 512, both transposed", true, true, 512, 512, 512},
    {"square 1024", false, false, 1024, 1024, 1024},
    {"square 2048", false, false, 2048, 2048, 2048},
};

enum { ROUNDS = 15, ROW_MAJOR = 101, COLUMN_MAJOR = 102, STRAIGHT = 111, TRANSPOSED = 112 };

typedef void sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
typedef void dgemm_fn(int, int, int, int, int, int, double, const double *, int, const double *,
                      int, double, double *, int);

static struct {
    sgemm_fn *sgemm;
    dgemm_fn *dgemm;
    void (*set_threads)(int);
} blas;

typedef struct setting {
    wb_gemm gemm;
    void *a, *b, *c, *scratch;
} setting;

typedef void run_fn(const setting *s);

static void open_blas(void) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    /* ISO C has no cast from an object pointer to a function pointer; POSIX promises this way */
    *(void **)&blas.sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&blas.dgemm = dlsym(library, "cblas_dgemm");
    *(void **)&blas.set_threads = dlsym(library, "openblas_set_num_threads");
}

static void run_own(const setting *s) {
    wb_cpu_gemm(&s->gemm, s->a, s->b, s->c, s->scratch, NULL, NULL);
}

static void run_blas(const setting *s) {
    const wb_gemm *g = &s->gemm;
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    const int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const int ta = g->transpose_a ? TRANSPOSED : STRAIGHT;
    const int tb = g->transpose_b ? TRANSPOSED : STRAIGHT;
    if (g->dtype == WB_F64)
        blas.dgemm(COLUMN_MAJOR, ta, tb, m, n, k, 1, s->a, lda, s->b, ldb, 0, s->c, ldc);
    else
        blas.sgemm(COLUMN_MAJOR, ta, tb, m, n, k, 1, s->a, lda, s->b, ldb, 0, s->c, ldc);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double time_of(run_fn *run, const setting *s, int repeats) {
    const double begin = seconds();
    for (int i = 0; i < repeats; i++) run(s);
    return (seconds() - begin) / repeats;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *numbers(const wb_gemm *gemm, int64_t count) {
    void *memory = aligned_alloc(64, (size_t)(count * 8 + 63) / 64 * 64);
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)(i * 37 % 101) / 50 - 1;
        if (gemm->dtype == WB_F64)
            ((double *)memory)[i] = x;
        else if (gemm->dtype == WB_BF16)
            ((uint16_t *)memory)[i] = k_f32_to_bf16((float)x);
        else
            ((float *)memory)[i] = (float)x;
    }
    return memory;
}

static setting setting_for(const shape *size, wb_dtype dtype) {
    const wb_gemm gemm = {.dtype = dtype,
                          .transpose_a = size->transpose_a,
                          .transpose_b = size->transpose_b,
                          .m = size->m,
                          .n = size->n,
                          .k = size->k,
                          .lda = size->transpose_a ? size->k : size->m,
                          .ldb = size->transpose_b ? size->n : size->k,
                          .ldc = size->m,
                          .batch = 1};
    const size_t scratch = (size_t)wb_cpu_gemm_scratch(&gemm);
    return (setting){.gemm = gemm,
                     .a = numbers(&gemm, gemm.m * gemm.k),
                     .b = numbers(&gemm, gemm.k * gemm.n),
                     .c = numbers(&gemm, gemm.m * gemm.n),
                     .scratch = aligned_alloc(64, scratch ? scratch : 64)};
}

/* OpenBLAS's idle threads keep a core busy for some 30 ms; ours sleep after 40 us and are waked
 * here. */
static void settle(run_fn *run, const setting *s) {
    const struct timespec pause = {.tv_nsec = 40000000};
    nanosleep(&pause, NULL);
    for (int i = 0; i < 3; i++) run(s);
}

/* median seconds of a call, own and OpenBLAS */
static void measure(const setting *s, int threads, bool smoke, double median[2]) {
    run_fn *const run[2] = {run_own, blas.sgemm ? run_blas : run_own};
    double times[2][ROUNDS];
    const int rounds = smoke ? 1 : ROUNDS;
    int repeats = 1;

    wb_cpu_set_threads(threads);
    if (blas.set_threads) blas.set_threads(threads);
    for (int which = 0; which < 2; which++) run[which](s); /* pages, threads, buffers */
    const double flops = 2.0 * (double)s->gemm.m * (double)s->gemm.n * (double)s->gemm.k;
    if (!smoke) repeats = 1 + (int)(0.004 / (flops / 1e11 + 1e-7));
    for (int round = 0; round < rounds; round++)
        for (int which = 0; which < 2; which++) {
            if (threads > 1 && !smoke) settle(run[which], s);
            times[which][round] = time_of(run[which], s, repeats);
        }
    for (int which = 0; which < 2; which++) {
        qsort(times[which], (size_t)rounds, sizeof(double), by_size);
        median[which] = times[which][rounds / 2];
    }
}

static void print_row(const shape *size, wb_dtype dtype, bool smoke) {
    enum { MOST_THREADS = 2 };
    wb_cpu_set_threads(MOST_THREADS); /* scratch for the most */
    setting s = setting_for(size, dtype);
    const double flops = 2.0 * size->m * size->n * size->k;
    printf("%-30s %5d %5d %5d %c%c", size->name, size->m, size->n, size->k,
           size->transpose_a ? 'T' : 'N', size->transpose_b ? 'T' : 'N');
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        double median[2];
        measure(&s, threads, smoke, median);
        printf(" | %9.2f us %6.1f", median[0] * 1e6, flops / median[0] * 1e-9);
        if (blas.sgemm) printf(" %6.1f %5.2f", flops / median[1] * 1e-9, median[1] / median[0]);
    }
    printf("\n");
    fflush(stdout);
    free(s.a);
    free(s.b);
    free(s.c);
    free(s.scratch);
}

int main(int argc, char **argv) {
    bool smoke = false;
    wb_dtype dtype = WB_F32;
    const char *wanted = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--smoke") == 0)
            smoke = true;
        else if (strcmp(argv[i], "--double") == 0)
            dtype = WB_F64;
        else if (strcmp(argv[i], "--bf16") == 0)
            dtype = WB_BF16;
        else
            wanted = argv[i];
    }
    if (dtype == WB_BF16 && !wb_cpu_multiplies_bf16()) {
        printf("no products of bf16 here\n");
        return 0;
    }
    if (dtype != WB_BF16) open_blas();
    printf("kernels %s, OpenBLAS %s\n", wb_cpu_isa_name(wb_cpu_isa()),
           blas.sgemm ? "present" : "absent");
    printf("%-30s %5s %5s %5s    | 1 thread: time, own GF/s, OpenBLAS GF/s, ratio | 2 threads\n",
           "shape", "m", "n", "k");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strstr(shapes[i].name, wanted)) print_row(&shapes[i], dtype, smoke);
    return 0;
}
