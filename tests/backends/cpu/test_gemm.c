/* Matrix products against three loops. The whole file runs once for each instruction set of the
 * machine and once over OpenBLAS, each in a process of its own: the choice is made once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "blas.h"
#include "gemm_kernel.h"
#include "half.h"
#include "isa.h"
#include "pool.h"
#include "support/sanitized.h"

/* --- one product with its memory --- */

typedef struct product {
    wb_gemm gemm;
    int64_t offset[3][4];
    int64_t size[3]; /* elements of a, b, c with all of the batch */
    char *matrix[3];
    double *factors[2]; /* a and b as the product takes them */
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
    const void *matrix = p->matrix[which];
    if (p->gemm.dtype == WB_F64) return ((const double *)matrix)[at];
    if (p->gemm.dtype == WB_BF16) return (double)k_bf16_to_f32(((const uint16_t *)matrix)[at]);
    return (double)((const float *)matrix)[at];
}

static bool rounds(const wb_gemm *g) { return g->dtype == WB_F32 && wb_gemm_takes_bf16(g); }

static void set(product *p, int which, int64_t at, double value) {
    if (p->gemm.dtype == WB_F64)
        ((double *)(void *)p->matrix[which])[at] = value;
    else if (p->gemm.dtype == WB_BF16)
        ((uint16_t *)(void *)p->matrix[which])[at] = k_f32_to_bf16((float)value);
    else
        ((float *)(void *)p->matrix[which])[at] = (float)value;
    if (which == C) return;
    p->factors[which][at] =
        rounds(&p->gemm) ? (double)k_bf16_to_f32(k_f32_to_bf16((float)value)) : get(p, which, at);
}

/* Numbers with more digits than bf16 has where they are to be rounded. What lies between the
 * columns of A and B is NaN: it must not count. */
static void make_matrix(product *p, int which, int64_t rows, int64_t columns, int64_t *ld) {
    const int extra[] = {0, 0, 1, 3, 515};
    *ld = rows + extra[random_below(5)];
    if (*ld < 1) *ld = 1;
    const int64_t stride = *ld * columns + random_below(3);
    for (int i = 0; i < 4; i++) p->offset[which][i] = i * stride;
    p->size[which] = p->gemm.batch * stride;
    p->matrix[which] = malloc((size_t)p->size[which] * element(&p->gemm) + 1);
    if (which != C) p->factors[which] = malloc((size_t)p->size[which] * sizeof(double) + 1);
    for (int64_t i = 0; i < p->size[which]; i++) {
        const double number = random_below(201) / 64.0 - 1.5 + (rounds(&p->gemm) ? 0.001 : 0);
        const bool is_between = i % stride % *ld >= rows || i % stride >= *ld * columns;
        set(p, which, i, which == C ? untouched : is_between ? (double)NAN : number);
    }
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
    for (int i = 0; i < 2; i++) free(p->factors[i]);
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
        sum += p->factors[A][p->offset[A][number] + a] * p->factors[B][p->offset[B][number] + b];
    }
    return sum;
}

/* Of sums of products below 3; a bf16 is rounded to 8 bits in the end. */
static double tolerance(const wb_gemm *g, double expected) {
    const double sum = (g->dtype == WB_F64 ? 1e-14 : 4e-6) * (double)(g->k + 4);
    return g->dtype == WB_BF16 ? sum + 0x1p-8 * fabs(expected) : sum;
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
        const double expected = want(p, number, row, column);
        good = near(c, expected, tolerance(g, expected));
    }
    if (!good) __atomic_add_fetch(&p->faults, 1, __ATOMIC_RELAXED);
}

static void run(product *p, bool tiles) {
    const size_t bytes = (size_t)wb_cpu_gemm_scratch(&p->gemm);
    free(p->scratch);
    p->scratch = bytes ? aligned_alloc(64, bytes) : NULL; /* bytes is a multiple of 64 */
    if (bytes) memset(p->scratch, 0xff, bytes);
    wb_cpu_gemm(&p->gemm, p->matrix[A], p->matrix[B], p->matrix[C], p->scratch,
                tiles ? see_tile : NULL, p);
}

static const char *describe(const wb_gemm *g) {
    static char text[160];
    snprintf(text, sizeof text, "%s%s %c%c m %d n %d k %d lda %d ldb %d ldc %d batch %d",
             wb_dtype_name(g->dtype), rounds(g) ? " rounded" : "", g->transpose_a ? 'T' : 'N',
             g->transpose_b ? 'T' : 'N', (int)g->m, (int)g->n, (int)g->k, (int)g->lda, (int)g->ldb,
             (int)g->ldc, (int)g->batch);
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
                if (!near(get(p, C, at), expected, inside ? tolerance(g, expected) : 0))
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

/* What the set in use multiplies. */
static const struct {
    wb_dtype dtype;
    bool may_round;
} types[] = {{WB_F32, false}, {WB_F64, false}, {WB_F32, true}, {WB_BF16, false}};
static bool is_emulated(void) { return getenv("WEBER_TEST_BRIEF") != NULL; }

/* may_round is for processors that multiply bf16; others are seen to leave it alone. */
static int type_count(void) { return wb_cpu_multiplies_bf16() ? 4 : is_emulated() ? 2 : 3; }

/* each in all types and all transpositions */
static const row rows[] = {
    {"an empty C is left alone", 0, 5, 3, 1},
    {"no columns, nothing to do", 5, 0, 3, 1},
    {"a sum of nothing is zero", 5, 3, 0, 1},
    {"one by one", 1, 1, 1, 1},
    {"an outer product", 257, 16, 1, 1},
    {"a dot product", 1, 1, 1000, 1},
    {"a sum of two", 33, 17, 2, 1},
    {"an odd sum of more than one pass", 50, 100, 1025, 1},
    {"a row times a matrix", 1, 259, 130, 1},
    {"a matrix times a column", 301, 1, 130, 1},
    {"few rows and many columns", 10, 300, 64, 1},
    {"few rows of a long sum", 3, 70, 1100, 1},
    {"a tile and a bit in both directions", 65, 49, 33, 1},
    {"a sum of more than one pass", 70, 20, 1100, 1},
    {"more rows than a piece", 300, 200, 300, 1},
    {"a packed B, and more rows than a piece of it", 530, 515, 130, 1},
    {"columns of more than one sheet", 80, 400, 140, 1},
    {"enough work for several pieces", 200, 230, 150, 1},
    {"a batch of small products", 20, 10, 7, 4},
    {"a batch with enough work for all threads", 90, 70, 80, 4},
    {"a batch of vectors", 33, 1, 20, 3},
    {"a vector, and a matrix that is read once", 1031, 1, 77, 1},
    {"a row, and a matrix that is read once", 1, 1031, 77, 1},
};

/* Under qemu, where a large product takes seconds, each type of these has one transposition. */
static int way_step(const row *r) {
    return is_emulated() && r->m * r->n * r->k * r->batch > 500000 ? 5 : 1;
}

static void products_agree_with_three_loops(void **state) {
    (void)state;
    wb_cpu_set_threads(3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int way = 0; way < 4 * type_count(); way += way_step(&rows[i]))
            run_and_check((wb_gemm){.dtype = types[way / 4].dtype,
                                    .may_round = types[way / 4].may_round,
                                    .transpose_a = way & 1,
                                    .transpose_b = way & 2,
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
    const char *seed = getenv("WEBER_TEST_SEED"), *asked = getenv("WEBER_TEST_PRODUCTS");
    const int count = asked ? atoi(asked) : 400;
    random_state = seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL);
    print_message("WEBER_TEST_SEED=%u\n", random_state);
    for (int i = 0; i < count; i++) {
        wb_cpu_set_threads(1 + random_below(3));
        const int type = random_below(type_count());
        run_and_check((wb_gemm){.dtype = types[type].dtype,
                                .may_round = types[type].may_round,
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
        for (int way = 0; way < 4 * type_count(); way += way_step(&sizes[i])) {
            product *p = product_new((wb_gemm){.dtype = types[way / 4].dtype,
                                               .may_round = types[way / 4].may_round,
                                               .transpose_a = way & 1,
                                               .transpose_b = way & 2,
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

/* Packs A beforehand and compares, if that is taken: 1, else 0. */
static int pack_and_compare(product *p, const char *name) {
    const size_t bytes = (size_t)p->size[C] * element(&p->gemm);
    p->gemm.keeps_a = true;
    const size_t kept = (size_t)wb_cpu_gemm_kept(&p->gemm);
    if (kept == 0) return 0;
    char *expected = malloc(bytes);
    run(p, false);
    memcpy(expected, p->matrix[C], bytes);
    p->gemm.kept_a = aligned_alloc(64, kept);
    for (int threads = 1; threads <= 3; threads++) {
        wb_cpu_set_threads(threads);
        memset(p->gemm.kept_a, 0xff, kept);
        wb_cpu_gemm_keep(&p->gemm, p->matrix[A]);
        for (int64_t at = 0; at < p->size[C]; at++) set(p, C, at, untouched);
        run(p, false);
        if (memcmp(expected, p->matrix[C], bytes) != 0)
            fail_msg("%s (%s): %d threads", name, describe(&p->gemm), threads);
    }
    free(p->gemm.kept_a);
    free(expected);
    return 1;
}

/* As scans have it. */
static void a_packed_beforehand_gives_the_same_bits(void **state) {
    (void)state;
    const row sizes[] = {{"no whole panel", 515, 3, 130, 1}, {"a tile", 64, 6, 2, 1},
                         {"passes", 700, 40, 1100, 1},       {"many columns", 70, 800, 30, 1},
                         {"a vector", 600, 1, 600, 1},       {"a batch", 600, 40, 60, 3},
                         {"one k", 600, 40, 1, 1},           {"none", 600, 40, 0, 1}};
    int packed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < 4 * type_count(); way += way_step(&sizes[i])) {
            product *p = product_new((wb_gemm){.dtype = types[way / 4].dtype,
                                               .may_round = types[way / 4].may_round,
                                               .transpose_a = way & 1,
                                               .transpose_b = way & 2,
                                               .m = sizes[i].m,
                                               .n = sizes[i].n,
                                               .k = sizes[i].k,
                                               .batch = sizes[i].batch});
            packed += pack_and_compare(p, sizes[i].name);
            product_free(p);
        }
    if (strcmp(getenv("WEBER_BLAS"), "own") == 0) assert_true(packed > 8);
}

/* As docs/accuracy.md has it; the last k, which has no second of its pair, included. */
static void special_numbers_of_bf16(void **state) {
    (void)state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    const struct {
        double a[3], b[3], c;
    } products[] = {
        {{1, inf, 2}, {1, 1, 1}, inf},
        {{1, 1, -inf}, {1, 1, 1}, -inf},
        {{1, 1, inf}, {1, 1, 0}, nan},
        {{inf, 1, -inf}, {1, 1, 1}, nan},
        {{nan, 1, 1}, {0, 1, 1}, nan},
        {{1, 1, 1}, {1, 1, nan}, nan},
        {{0x1p100, 1, 1}, {0x1p100, 1, 1}, inf},
        {{0x1p-130, 1, 0}, {0x1p10, 0, 0}, 0}, /* a denormal counts as zero, */
        {{0x1p-70, 1, 0}, {0x1p-60, 0, 0}, 0}, /* and is not given, either */
        {{0x1p-70, 1, 0}, {0x1p-56, 0, 0}, 0x1p-126},
    };
    for (size_t i = 0; wb_cpu_multiplies_bf16() && i < sizeof products / sizeof *products; i++) {
        product *p = product_new((wb_gemm){.dtype = WB_BF16, .m = 1, .n = 1, .k = 3, .batch = 1});
        for (int k = 0; k < 3; k++) {
            set(p, A, k * p->gemm.lda, products[i].a[k]);
            set(p, B, k, products[i].b[k]);
        }
        run(p, false);
        const double c = get(p, C, 0), expected = products[i].c;
        if (c != expected && !(isnan(c) && isnan(expected)))
            fail_msg("product %d is %g, want %g", (int)i, c, expected);
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
        cmocka_unit_test(a_packed_beforehand_gives_the_same_bits),
        cmocka_unit_test(special_numbers_of_bf16),
    };
    char title[64];
    snprintf(title, sizeof title, "cpu gemm %s", name);
    return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

static bool has_blas(void) { return dlopen("libopenblas.so.0", RTLD_LAZY) != NULL; }

/* Whether the library is used that is named, as it is to be. */
static bool is_as_asked(const char *blas) {
    const wb_gemm large = {
        .dtype = WB_F32, .m = 64, .n = 64, .k = 64, .batch = 1, .lda = 64, .ldb = 64, .ldc = 64};
    const bool is_there = strcmp(blas, "own") != 0 && has_blas();
    return wb_blas_wins(&large) == is_there &&
           wb_blas_takes_whole(&large) == (is_there && strcmp(blas, "accelerate") == 0);
}

static int run_child(const char *isa, const char *blas) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (isa) setenv("WEBER_ISA", isa, 1);
        setenv("WEBER_BLAS", blas, 1);
        const char *taken = wb_cpu_isa_name(wb_cpu_isa());
        if (isa && strcmp(taken, isa) != 0) exit(1);
        const bool repeats = strcmp(blas, "own") != 0 && !has_blas();
        exit(!is_as_asked(blas) + (repeats ? 0 : run_all(isa ? isa : blas)));
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* All sets of the machine, or the one that WEBER_ISA names. */
int main(void) {
    const char *only = getenv("WEBER_ISA");
    if (only) return run_child(only, "own");
    int failed = run_child(NULL, "openblas");
    (void)setenv("WEBER_BLAS_LIBRARY", "libopenblas.so.0", 1); /* whose calls are the same */
    failed += run_child(NULL, "accelerate");
    (void)unsetenv("WEBER_BLAS_LIBRARY");
    for (int isa = 0; isa < WB_ISA_COUNT; isa++)
        if (wb_cpu_has_isa((wb_isa)isa)) failed += run_child(wb_cpu_isa_name((wb_isa)isa), "own");
    return failed;
}
