/* Products by tiles of 16 by 16 (kernels/gemm_tiles.h), on any processor over tiles that are
 * emulated; where the processor has AMX, its own give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_kernel.h"
#include "half.h"
#include "isa.h"
#include "simd.h"

#include "emulated_tiles.h"
#include "kernels/gemm_tiles.h"

enum { SIDE = 32, MOST = 1024 };

static unsigned random_state;

static unsigned next_random(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* A (SIDE, k) and B (k, SIDE), numbers that are bf16, and the same packed in pairs. */
typedef struct operands {
    int k;
    float a[SIDE * MOST], b[MOST * SIDE];
    float packed_a[SIDE * MOST / 2], packed_b[SIDE * MOST / 2];
} operands;

static float pair_of(float first, float second) {
    const uint32_t bits = k_f32_to_bf16(first) | (uint32_t)k_f32_to_bf16(second) << 16;
    float pair;
    memcpy(&pair, &bits, sizeof pair);
    return pair;
}

static void pack(operands *o) {
    for (int i = 0; i < SIDE; i++)
        for (int p = 0; p < o->k / 2; p++) {
            const float *a = o->a + 2 * p * SIDE + i, *b = o->b + 2 * p + i * o->k;
            o->packed_a[i + p * SIDE] = pair_of(a[0], a[SIDE]);
            o->packed_b[p + i * o->k / 2] = pair_of(b[0], b[1]);
        }
}

static operands *operands_new(int k) {
    operands *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->k = k;
    for (int i = 0; i < SIDE * k; i++) {
        o->a[i] = k_bf16_to_f32(k_f32_to_bf16((float)next_random() / 0x1p23f - 1));
        o->b[i] = k_bf16_to_f32(k_f32_to_bf16((float)next_random() / 0x1p23f - 1));
    }
    pack(o);
    return o;
}

static void multiply(const operands *o, int first, int k, int rows, int columns, bool add,
                     float *c) {
    const tile_block block = {.a = o->packed_a + first / 2 * SIDE,
                              .b = o->packed_b + first / 2,
                              .c = c,
                              .step_a = SIDE,
                              .step_b = o->k / 2,
                              .ldc = SIDE + 3,
                              .pairs = k / 2,
                              .rows = rows,
                              .columns = columns,
                              .add = add};
    tile_block_run(&block);
}

/* Every number of rows and columns; what lies beside them in C is left alone. */
static void blocks_agree_with_three_loops(void **state) {
    (void)state;
    operands *o = operands_new(64);
    for (int rows = 1; rows <= SIDE; rows++)
        for (int columns = 1; columns <= SIDE; columns++) {
            float c[SIDE * (SIDE + 3)];
            for (int i = 0; i < SIDE * (SIDE + 3); i++) c[i] = 77;
            multiply(o, 0, 32, rows, columns, false, c);
            multiply(o, 32, 32, rows, columns, true, c);
            for (int j = 0; j < SIDE; j++)
                for (int i = 0; i < SIDE + 3; i++) {
                    double sum = 0;
                    for (int k = 0; k < o->k && i < SIDE; k++)
                        sum += (double)o->a[i + k * SIDE] * (double)o->b[k + j * o->k];
                    if (i >= rows || j >= columns) sum = 77;
                    assert_true(fabs(sum - (double)c[i + j * (SIDE + 3)]) < 1e-5);
                }
        }
    free(o);
}

/* The emulated sums, in passes as gemm_bf16.c makes them, and the processor's: bit for bit. */
static void compare(const operands *o, const char *what) {
    float expected[SIDE * (SIDE + 3)], c[SIDE * SIDE];
    for (int k = 0; k < o->k; k += WB_GEMM_DEPTH_BF16)
        multiply(o, k, o->k - k < WB_GEMM_DEPTH_BF16 ? o->k - k : WB_GEMM_DEPTH_BF16, SIDE, SIDE,
                 k > 0, expected);
    const wb_gemm gemm = {.dtype = WB_F32,
                          .may_round = true,
                          .m = SIDE,
                          .n = SIDE,
                          .k = o->k,
                          .lda = SIDE,
                          .ldb = o->k,
                          .ldc = SIDE,
                          .batch = 1};
    assert_true(wb_gemm_takes_tiles(&gemm));
    void *scratch = aligned_alloc(64, (size_t)wb_cpu_gemm_scratch(&gemm));
    wb_cpu_gemm(&gemm, o->a, o->b, c, scratch, NULL, NULL);
    free(scratch);
    for (int j = 0; j < SIDE; j++)
        for (int i = 0; i < SIDE; i++) {
            const float x = expected[i + j * (SIDE + 3)], y = c[i + j * SIDE];
            if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
                fail_msg("%s, k = %d, (%d, %d): emulated %.9g, AMX %.9g", what, o->k, i, j,
                         (double)x, (double)y);
        }
}

static void the_processor_gives_the_same_bits(void **state) {
    (void)state;
    if (!wb_cpu_has_tiles()) skip();
    const int sizes[] = {32, 64, 480, 512, 544, 1024};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        operands *o = operands_new(sizes[s]);
        compare(o, "random numbers");
        free(o);
    }
}

static void special_numbers_have_the_same_bits(void **state) {
    (void)state;
    if (!wb_cpu_has_tiles()) skip();
    const float specials[] = {INFINITY,  -INFINITY, NAN,       0x1p-130f, 0x1p-126f, 0x1p-70f,
                              -0x1p-60f, 0x1p100f,  -0x1p120f, 0,         -0.0f,     1};
    for (int round = 0; round < 50; round++) {
        operands *o = operands_new(64);
        for (int i = 0; i < 20 + 40 * round; i++) {
            const float x = specials[next_random() % (sizeof specials / sizeof *specials)];
            (i % 2 ? o->a : o->b)[next_random() % (unsigned)(SIDE * o->k)] = x;
        }
        pack(o);
        compare(o, "special numbers");
        free(o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_agree_with_three_loops),
        cmocka_unit_test(the_processor_gives_the_same_bits),
        cmocka_unit_test(special_numbers_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
