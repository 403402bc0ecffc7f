/* Matrix products against three loops. The whole file runs once for each instruction set of the
 * machine and once over OpenBLAS, each in a process of its own: the choice is made once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gemm.h"
#include "isa.h"
#include "pool.h"
#include "support/sanitized.h"

/* --- one product with its memory --- */

typedef struct product {
    wb_gemm gemm;
    int64_t offset[3][4];
    int64_t size[3]; /* elements of a, b, c with all of the batch */
    char *matrix[3];
    char *scratch;
    unsigned char *covered; /* calls of done for each element of c */
    int faults;             /* tiles out of place */
} product;

enum { A, B, C };
static const double untouched = 7;

static unsigned random_state = 1;
static int random_below(int limit) {
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (unsigned)limit);
}

static size_t element(const wb_gemm *g) { return wb_dtype_size(g->dtype); }

UNWATCHED static double get(const product *p, int which, int64_t at) {
    return p->gemm.dtype == WB_F64 ? ((const double *)(const void *)p->matrix[which])[at]
                                   : (double)((const float *)(const void *)p->matrix[which])[at];
}

static void set(product *p, int which, int64_t at, double value) {
    if (p->gemm.dtype == WB_F64)
        ((double *)(void *)p->matrix[which])[at] = value;
    else
        ((float *)(void *)p->matrix[which])[at] = (float)value;
}

static void make_matrix(product *p, int which, int64_t rows, int64_t columns, int64_t *ld) {
    const int extra[] = {0, 0, 1, 3, 515};
    *ld = rows + extra[random_below(5)];
    if (*ld < 1) *ld = 1;
    const int64_t stride = *ld * columns + random_below(3);
    for (int i = 0; i < 4; i++) p->offset[which][i] = i * stride;
    p->size[which] = p->gemm.batch * stride;
    p->matrix[which] = malloc((size_t)p->size[which] * element(&p->gemm) + 1);
    for (int64_t i = 0; i < p->size[which]; i++)
        set(p, which, i, which == C ? untouched : random_below(201) / 64.0 - 1.5);
}

static product *product_new(wb_gemm gemm) {
    product *p = calloc(1, sizeof *p);
    p->gemm = gemm;
    wb_gemm *g = &p->gemm;
    make_matrix(p, A, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, &g->lda);
    make_matrix(p, B, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, &g->ldb);
    make_matrix(p, C, g->m, g->n, &g->ldc);
    if (g->batch > 1) {
        g->offset_a = p->offset[A];
        g->offset_b = p->offset[B];
        g->offset_c = p->offset[C];
    }
    p->covered = calloc((size_t)p->size[C] + 1, 1);
    return p;
}

static void product_free(product *p) {
    for (int i = 0; i < 3; i++) free(p->matrix[i]);
    free(p->scratch);
    free(p->covered);
    free(p);
}

/* --- what is expected --- */

UNWATCHED static double want(const product *p, int64_t number, int64_t i, int64_t j) {
    const wb_gemm *g = &p->gemm;
    double sum = 0;
    for (int64_t l = 0; l < g->k; l++) {
        const int64_t a = g->transpose_a ? l + i * g->lda : i + l * g->lda;
        const int64_t b = g->transpose_b ? j + l * g->ldb : l + j * g->ldb;
        sum += get(p, A, p->offset[A][number] + a) * get(p, B, p->offset[B][number] + b);
    }
    return sum;
}

static double tolerance(const wb_gemm *g) {
    return (g->dtype == WB_F64 ? 1e-14 : 4e-6) * (double)(g->k + 4);
}

static bool near(double x, double y, double most) { return x - y <= most && y - x <= most; }

/* Checks that the elements of a tile are final: the last rounding may differ from the loops. */
static void see_tile(void *context, int64_t number, int64_t row, int64_t rows, int64_t column,
                     int64_t columns, int worker) {
    product *p = context;
    const wb_gemm *g = &p->gemm;
    bool good = worker >= 0 && worker < wb_cpu_threads() && rows > 0 && columns > 0 && row >= 0 &&
                column >= 0 && row + rows <= g->m && column + columns <= g->n;
    for (int64_t j = column; good && j < column + columns; j++)
        for (int64_t i = row; i < row + rows; i++)
            p->covered[p->offset[C][number] + i + j * g->ldc]++;
    if (good) {
        const double c = get(p, C, p->offset[C][number] + row + column * g->ldc);
        good = near(c, want(p, number, row, column), tolerance(g));
    }
    if (!good) __atomic_add_fetch(&p->faults, 1, __ATOMIC_RELAXED);
}

static void run(product *p, bool tiles) {
    const size_t bytes = wb_cpu_gemm_scratch(&p->gemm);
    free(p->scratch);
    p->scratch = bytes ? aligned_alloc(64, bytes) : NULL; /* bytes is a multiple of 64 */
    if (bytes) memset(p->scratch, 0xff, bytes);
    wb_cpu_gemm(&p->gemm, p->matrix[A], p->matrix[B], p->matrix[C], p->scratch,
                tiles ? see_tile : NULL, p);
}

static const char *describe(const wb_gemm *g) {
    static char text[160];
    snprintf(text, sizeof text, "%s %c%c m %d n %d k %d lda %d ldb %d ldc %d batch %d",
             wb_dtype_name(g->dtype), g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N',
             (int)g->m, (int)g->n, (int)g->k, (int)g->lda, (int)g->ldb, (int)g->ldc, (int)g->batch);
    return text;
}

/* Every element of every product, and that nothing between the columns was touched. */
static void check(product *p, const char *name) {
    const wb_gemm *g = &p->gemm;
    for (int64_t number = 0; number < g->batch; number++)
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->ldc; i++) {
                const int64_t at = p->offset[C][number] + i + j * g->ldc;
                const bool inside = i < g->m;
                const double expected = inside ? want(p, number, i, j) : untouched;
                if (!near(get(p, C, at), expected, inside ? tolerance(g) : 0))
                    fail_msg("%s (%s): C(%d, %d) of product %d is %g, want %g", name, describe(g),
                             (int)i, (int)j, (int)number, get(p, C, at), expected);
                if (p->covered[at] != inside)
                    fail_msg("%s (%s): tiles saw C(%d, %d) %d times", name, describe(g), (int)i,
                             (int)j, p->covered[at]);
            }
    if (p->faults) fail_msg("%s (%s): %d tiles not final", name, describe(g), p->faults);
}

static void run_and_check(wb_gemm gemm, const char *name) {
    product *p = product_new(gemm);
    run(p, true);
    check(p, name);
    product_free(p);
}

/* --- tests --- */

typedef struct row {
    const char *name;
    int m, n, k, batch;
} row;

/* each in both types and all transpositions */
static const row rows[] = {
    {"an empty C is left alone", 0, 5, 3, 1},
    {"no columns, nothing to do", 5, 0, 3, 1},
    {"a sum of nothing is zero", 5, 3, 0, 1},
    {"one by one", 1, 1, 1, 1},
    {"an outer product", 257, 16, 1, 1},
    {"a dot product", 1, 1, 1000, 1},
    {"a row times a matrix", 1, 259, 130, 1},
    {"a matrix times a column", 301, 1, 130, 1},
    {"few rows and many columns", 10, 300, 64, 1},
    {"few rows of a long sum", 3, 70, 1100, 1},
    {"a tile and a bit in both directions", 65, 49, 33, 1},
    {"a sum of more than one pass", 70, 20, 1100, 1},
    {"more rows than a piece, and a packed B", 300, 200, 300, 1},
    {"columns of more than one sheet", 80, 400, 140, 1},
    {"enough work for several pieces", 200, 230, 150, 1},
    {"a batch of small products", 20, 10, 7, 4},
    {"a batch with enough work for all threads", 90, 70, 80, 4},
    {"a batch of vectors", 33, 1, 20, 3},
};

static void products_agree_with_three_loops(void **state) {
    (void)state;
    wb_cpu_set_threads(3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int way = 0; way < 8; way++)
            run_and_check((wb_gemm){.dtype = way & 1 ? WB_F64 : WB_F32,
                                    .transpose_a = way & 2,
                                    .transpose_b = way & 4,
                                    .m = rows[i].m,
                                    .n = rows[i].n,
                                    .k = rows[i].k,
                                    .batch = rows[i].batch},
                          rows[i].name);
}

static int random_size(void) {
    const int often[] = {0, 1, 1, 2, 6, 16, 64};
    return random_below(3) == 0 ? often[random_below(7)] : random_below(140);
}

static void random_products_agree_with_three_loops(void **state) {
    (void)state;
    const char *seed = getenv("WEBER_TEST_SEED");
    random_state = seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL);
    print_message("WEBER_TEST_SEED=%u\n", random_state);
    for (int i = 0; i < 400; i++) {
        wb_cpu_set_threads(1 + random_below(3));
        run_and_check((wb_gemm){.dtype = random_below(2) ? WB_F64 : WB_F32,
                                .transpose_a = random_below(2),
                                .transpose_b = random_below(2),
                                .m = random_size(),
                                .n = random_size(),
                                .k = random_size(),
                                .batch = 1 + random_below(4) / 2},
                      "random");
    }
}

static void a_stride_of_zero_repeats_a_matrix(void **state) {
    (void)state;
    product *p = product_new((wb_gemm){.m = 40, .n = 9, .k = 30, .batch = 3});
    for (int i = 0; i < 4; i++) p->offset[A][i] = 0;
    run(p, true);
    check(p, "one A for all");
    product_free(p);
}

static void the_bits_are_the_same_for_any_number_of_threads(void **state) {
    (void)state;
    const row sizes[] = {{"square", 257, 250, 300, 1}, {"tall", 1500, 33, 90, 1},
                         {"wide", 33, 1500, 90, 1},    {"deep", 40, 40, 2000, 1},
                         {"vector", 2500, 1, 1100, 1}, {"row", 1, 2500, 1100, 1},
                         {"batch", 60, 60, 120, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < 8; way++) {
            product *p = product_new((wb_gemm){.dtype = way & 1 ? WB_F64 : WB_F32,
                                               .transpose_a = way & 2,
                                               .transpose_b = way & 4,
                                               .m = sizes[i].m,
                                               .n = sizes[i].n,
                                               .k = sizes[i].k,
                                               .batch = sizes[i].batch});
            const size_t bytes = (size_t)p->size[C] * element(&p->gemm);
            char *first = malloc(bytes);
            for (int threads = 1; threads <= 3; threads++) {
                wb_cpu_set_threads(threads);
                run(p, false);
                if (threads == 1) memcpy(first, p->matrix[C], bytes);
                if (memcmp(first, p->matrix[C], bytes) != 0)
                    fail_msg("%s (%s): %d threads", sizes[i].name, describe(&p->gemm), threads);
            }
            free(first);
            product_free(p);
        }
}

/* --- one process for each way to compute --- */

static int run_all(const char *name) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_agree_with_three_loops),
        cmocka_unit_test(random_products_agree_with_three_loops),
        cmocka_unit_test(a_stride_of_zero_repeats_a_matrix),
        cmocka_unit_test(the_bits_are_the_same_for_any_number_of_threads),
    };
    char title[64];
    snprintf(title, sizeof title, "cpu gemm %s", name);
    return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

static int run_child(const char *isa, const char *blas) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (isa) setenv("WEBER_ISA", isa, 1);
        setenv("WEBER_BLAS", blas, 1);
        const char *taken = wb_cpu_isa_name(wb_cpu_isa());
        if (isa && strcmp(taken, isa) != 0) exit(0); /* the machine has no such instructions */
        exit(run_all(isa ? isa : blas));
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void) {
    int failed = run_child(NULL, "openblas");
    for (int isa = 0; isa < WB_ISA_COUNT; isa++)
        failed += run_child(wb_cpu_isa_name((wb_isa)isa), "own");
    return failed;
}
