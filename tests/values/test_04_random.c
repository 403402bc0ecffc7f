/* Rule 4: the bits of a random array depend on seed and order of the calls alone. Reference: Philox
 * written down again. */
#include "values/modes.h"

static void philox(uint32_t w[4], uint64_t counter, uint64_t key) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    w[0] = (uint32_t)counter, w[1] = (uint32_t)(counter >> 32), w[2] = w[3] = 0;
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * w[0], b = (uint64_t)0xCD9E8D57u * w[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ w[1] ^ k0, (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ w[3] ^ k1, (uint32_t)a};
        memcpy(w, next, sizeof next);
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
}

static double uniform_f32(uint64_t seed, int64_t i) {
    uint32_t w[4];
    philox(w, (uint64_t)i / 4, seed);
    return (double)(w[i % 4] >> 8) * 0x1p-24;
}

static double uniform_f64(uint64_t seed, int64_t i) {
    uint32_t w[4];
    philox(w, (uint64_t)i / 2, seed);
    return ((double)(w[i % 2 * 2] >> 5) * 0x1p26 + (double)(w[i % 2 * 2 + 1] >> 6)) * 0x1p-53;
}

static void uniforms_are_philox(void **state) {
    (void)state;
    enum { N = 1003 };
    static double values[N];
    wb_seed(42);
    assert_int_equal(wb_read_f64(wb_uniform(WB_F32, 17, 59), values, N), WB_OK);
    for (int i = 0; i < N; i++)
        if (values[i] != uniform_f32(42, i)) fail_msg("f32 number %d", i);
    wb_seed(7);
    assert_int_equal(wb_read_f64(wb_uniform(WB_F64, 17, 59), values, N), WB_OK);
    for (int i = 0; i < N; i++)
        if (values[i] != uniform_f64(7, i)) fail_msg("f64 number %d", i);
}

/* A view, a part of a program, a broadcast: always the numbers of the whole. */
static void computing_in_parts_changes_nothing(void **state) {
    (void)state;
    wb_seed(3);
    wb_array *u = wb_uniform(WB_F32, 6, 5);
    assert_true(fabs(wb_item(wb_sum(u)) - wb_item(wb_sum(wb_uniform(WB_F32, 6, 5)))) >
                1e-4); /* two calls, two arrays */
    wb_array *flipped = wb_flip(u, 0), *shifted = wb_add_number(u, 0),
             *wide = wb_mul(u, wb_ones(WB_F32, 1, 1, 3));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 5; j++) {
            const double wanted = uniform_f32(3, i + 6 * j);
            assert_true(wb_at(flipped, 5 - i, j) == wanted);
            assert_true(wb_at(shifted, i, j) == wanted);
            assert_true(wb_at(wide, i, j, 2) == wanted);
            assert_true(wb_at(u, i, j) == wanted);
        }
}

static void the_backward_pass_sees_the_same_mask(void **state) {
    (void)state;
    wb_seed(11);
    wb_array *x = wb_full(WB_F32, 1.5, 40, 30), *g[1];
    wb_array *y = wb_select(wb_bernoulli(0.4, 40, 30), wb_mul_number(x, 2.5), wb_number(0));
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &x, g), WB_OK);
    assert_true(wb_approx(wb_mul_number(g[0], 1.5), y, 0, 0, NULL, 0));
    const double share = wb_item(wb_mean(wb_cast(wb_gt(y, wb_number(0)), WB_F64)));
    assert_true(share > 0.35 && share < 0.45);
}

static void the_mask_is_the_same_where_the_gradient_is_another_plan(void **state) {
    (void)state;
    wb_seed(12);
    wb_array *x = wb_full(WB_F32, 1.5, 40, 30), *g[1];
    wb_array *y = wb_mul(x, wb_cast(wb_bernoulli(0.4, 40, 30), WB_F32));
    wb_array *l = wb_sum(y);
    const double before = wb_item(l); /* the forward pass runs by itself */
    assert_int_equal(wb_gradient_of(l, 1, &x, g), WB_OK);
    assert_true(fabs(wb_item(wb_sum(g[0])) * 1.5 - before) < 1e-2);
    assert_true(wb_approx(wb_mul_number(g[0], 1.5), y, 0, 0, NULL, 0));
}

static void seeds_repeat_and_differ(void **state) {
    (void)state;
    wb_array *first[3];
    for (int i = 0; i < 3; i++) {
        wb_seed(i == 2 ? 6 : 5);
        (void)wb_normal(WB_F32, 3);
        first[i] = wb_normal(WB_F32, 1000);
    }
    assert_same_bits(first[0], first[1], "same seed");
    assert_false(wb_approx(first[0], first[2], 0, 0, NULL, 0));
    assert_true(fabs(wb_item(wb_mean(first[0]))) < 0.15);
    assert_true(fabs(wb_item(wb_var(first[0], true)) - 1) < 0.15);
}

/* What one call takes, no later call takes again: none of its numbers returns, at whatever
 * place. */
static void calls_take_ranges_of_their_own(void **state) {
    (void)state;
    enum { N = 501, CALLS = 4 };
    static double numbers[CALLS][N];
    for (int i = 0; i < CALLS; i++) {
        wb_array *made = i % 2 ? wb_normal(WB_F64, N) : wb_uniform(WB_F64, N);
        assert_int_equal(wb_read_f64(made, numbers[i], N), WB_OK);
    }
    for (int i = 0; i < CALLS - 2; i++)
        for (int a = 0; a < N; a++)
            for (int b = 0; b < N; b++)
                if (numbers[i][a] == numbers[i + 2][b]) fail_msg("call %d, %d and %d", i, a, b);
}

static void threads_change_nothing(void **state) {
    (void)state;
    wb_array *made[3][3];
    for (int threads = 1; threads <= 3; threads++) {
        wb_set_threads(threads);
        wb_seed(9);
        made[threads - 1][0] = wb_uniform(WB_F32, 300, 1001);
        made[threads - 1][1] = wb_normal(WB_F32, 300, 1001);
        made[threads - 1][2] = wb_add(wb_normal(WB_F64, 300, 1001), wb_uniform(WB_F64, 300, 1));
        assert_int_equal(wb_eval_make(3, made[threads - 1]), WB_OK);
    }
    wb_set_threads(0);
    for (int threads = 2; threads <= 3; threads++)
        for (int i = 0; i < 3; i++)
            assert_same_bits(made[0][i], made[threads - 1][i], "other threads");
}

static void ends_of_bernoulli(void **state) {
    (void)state;
    assert_true(wb_item(wb_sum(wb_bernoulli(1, 1000))) == 1000);
    assert_true(wb_item(wb_sum(wb_bernoulli(0, 1000))) == 0);
    assert_null(wb_bernoulli(1.1, 3));
    assert_error(WB_ERROR_ARGUMENT, "bernoulli: p must be between 0 and 1, got 1.1");
    assert_null(wb_uniform(WB_I32, 3));
    assert_error(WB_ERROR_DTYPE, "uniform: the type must be floating, got i32");
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(uniforms_are_philox),
        TEST(computing_in_parts_changes_nothing),
        TEST(the_backward_pass_sees_the_same_mask),
        TEST(the_mask_is_the_same_where_the_gradient_is_another_plan),
        TEST(seeds_repeat_and_differ),
        TEST(calls_take_ranges_of_their_own),
        TEST(threads_change_nothing),
        TEST(ends_of_bernoulli)};
    return cmocka_run_group_tests_name("values 4", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
