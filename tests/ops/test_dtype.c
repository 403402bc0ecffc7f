/* How types meet (values 14): the promotion table, weak numbers, sums, means, casts, comparisons,
 * halves. */
#include "array/array.h"
#include "device/device.h"
#include "support/naive.h"
#include "support/support.h"

enum {
    F = WB_F32,
    D = WB_F64,
    H = WB_F16,
    B = WB_BF16,
    I = WB_I32,
    L = WB_I64,
    U = WB_U8,
    O = WB_BOOL
};

/* Julia's promote_type; rows and columns f32 f64 f16 bf16 i32 i64 u8 bool. */
static const int table[8][8] = {{F, D, F, F, F, F, F, F}, {D, D, D, D, D, D, D, D},
                                {F, D, H, F, H, H, H, H}, {F, D, F, B, B, B, B, B},
                                {F, D, H, B, I, L, I, I}, {F, D, H, B, L, L, L, L},
                                {F, D, H, B, I, L, U, U}, {F, D, H, B, I, L, U, O}};

static wb_array *ones(int dtype) { return wb_ones((wb_dtype)dtype, 3); }

static void what_is_no_type_meets_none(void **state) {
    (void)state;
    assert_int_equal(wb_promote((wb_dtype)99, WB_F32), WB_DTYPE_COUNT);
    assert_int_equal(wb_promote(WB_F32, (wb_dtype)-1), WB_DTYPE_COUNT);
}

static void two_types_meet_by_the_table(void **state) {
    (void)state;
    for (int a = 0; a < WB_DTYPE_COUNT; a++)
        for (int b = 0; b < WB_DTYPE_COUNT; b++) {
            assert_int_equal(wb_promote((wb_dtype)a, (wb_dtype)b), table[a][b]);
            const int sum = table[a][b] == O ? L : table[a][b]; /* arithmetic of bool is i64 */
            wb_array *made[3] = {wb_add(ones(a), ones(b)), wb_mul(ones(a), ones(b)),
                                 wb_max(ones(a), ones(b))};
            for (int k = 0; k < 3; k++) {
                if (!made[k]) fail_msg("%d and %d: %s", a, b, wb_error_message());
                assert_int_equal(wb_dtype_of(made[k]), sum);
            }
            assert_values(made[0], 0, 2, 2, 2);
            const int quotient = wb_dtype_is_float((wb_dtype)sum) ? sum : F;
            assert_int_equal(wb_dtype_of(wb_div(ones(a), ones(b))), quotient);
            assert_int_equal(wb_dtype_of(wb_lt(ones(a), ones(b))), O);
            assert_int_equal(wb_dtype_of(wb_select(wb_lt(ones(a), ones(b)), ones(a), ones(b))),
                             table[a][b]);
            assert_int_equal(wb_dtype_of(wb_concat(0, ones(a), ones(b))), table[a][b]);
            assert_values(wb_concat(0, ones(a), ones(b)), 0, 1, 1, 1, 1, 1, 1);
        }
}

static void numbers_are_weak(void **state) {
    (void)state;
    for (int a = 0; a < WB_DTYPE_COUNT; a++) {
        const bool real = wb_dtype_is_float((wb_dtype)a);
        assert_int_equal(wb_dtype_of(wb_add_number(ones(a), 1)), real ? a : a == O ? L : a);
        assert_int_equal(wb_dtype_of(wb_mul_number(ones(a), 0.5)), real ? a : F);
        assert_int_equal(wb_dtype_of(wb_mul(wb_number(2), ones(a))), real ? a : a == O ? L : a);
        assert_int_equal(wb_dtype_of(wb_mul(wb_late(2), ones(a))), real ? a : F);
        assert_values(wb_mul_number(ones(a), 0.5), 0, 0.5, 0.5, 0.5);
    }
    assert_int_equal(wb_dtype_of(wb_add(wb_number(1), wb_number(2))), D);
}

/* A comparison of numbers is a bool like any other, not a number. */
static void comparisons_of_numbers_are_bools(void **state) {
    (void)state;
    wb_array *is_more = wb_gt(wb_vector(1, 2), wb_number(1));
    wb_array *is_so = wb_ge(wb_number(2), wb_number(2));
    assert_int_equal(wb_dtype_of(wb_and(is_so, is_more)), WB_BOOL);
    assert_values(wb_and(is_so, is_more), 0, 0, 1);
    assert_values(wb_or(is_more, wb_lt(wb_number(2), wb_number(1))), 0, 0, 1);
}

static void sums_and_means(void **state) {
    (void)state;
    for (int a = 0; a < WB_DTYPE_COUNT; a++) {
        const bool real = wb_dtype_is_float((wb_dtype)a);
        assert_int_equal(wb_dtype_of(wb_sum(ones(a))), real ? a : L);
        assert_int_equal(wb_dtype_of(wb_mean(ones(a))), real ? a : F);
        assert_int_equal(wb_dtype_of(wb_maximum(ones(a))), a);
        assert_int_equal(wb_dtype_of(wb_argmax(ones(a), 0)), L);
        assert_int_equal(wb_dtype_of(wb_softmax(ones(a))), real ? a : F);
        assert_value(wb_sum(ones(a)), 3, 0);
        assert_value(wb_mean(ones(a)), 1, 0);
        assert_value(wb_maximum(ones(a)), 1, 0);
    }
    assert_value(wb_sum(wb_full(WB_U8, 200, 100)), 20000, 0);
    assert_value(wb_mean(wb_full(WB_U8, 200, 100)), 200, 1e-6);
    assert_value(wb_sum(wb_full(WB_I32, 2000000000, 10)), 2e10, 0);
    assert_value(wb_sum(wb_gt(wb_iota(WB_I32, 0, 10), wb_number(3))), 6, 0);
}

static void u8_wraps(void **state) {
    (void)state;
    wb_array *x = wb_full(WB_U8, 200, 2);
    assert_values(wb_add(x, x), 0, 144, 144);
    assert_values(wb_neg(x), 0, 56, 56);
    assert_values(wb_cast(wb_add(x, x), WB_I32), 0, 144, 144);
    assert_values(wb_cast(wb_sub(wb_full(WB_U8, 1, 2), x), WB_F32), 0, 57, 57);
    assert_values(wb_square(x), 0, 64, 64);
}

/* What is compared is the numbers, not what a narrow type makes of one of them. */
static void comparisons_with_numbers_out_of_range(void **state) {
    (void)state;
    const double bytes[2] = {0, 255}, words[2] = {-2147483648.0, 2147483647.0};
    const int64_t two = 2;
    wb_array *x = array_of(WB_U8, bytes, 1, &two), *y = array_of(WB_I32, words, 1, &two),
             *z = array_of(WB_BOOL, bytes, 1, &two);
    assert_values(wb_lt(x, wb_number(256)), 0, 1, 1);
    assert_values(wb_gt(x, wb_number(-1)), 0, 1, 1);
    assert_values(wb_eq(x, wb_number(-1)), 0, 0, 0);
    assert_values(wb_lt(y, wb_number(3e9)), 0, 1, 1);
    assert_values(wb_ge(y, wb_number(-3e9)), 0, 1, 1);
    assert_values(wb_lt(y, wb_number((double)INFINITY)), 0, 1, 1);
    assert_values(wb_ne(y, wb_number((double)NAN)), 0, 1, 1);
    assert_values(wb_lt(z, wb_number(2)), 0, 1, 1);
    assert_values(wb_lt(wb_number(-1), x), 0, 1, 1);
    assert_values(wb_lt(x, wb_number(0.5)), 0, 1, 0);
}

static void casts_of_constants_are_those_of_arrays(void **state) {
    (void)state;
    assert_values(wb_cast(wb_full(WB_F32, 2.7, 1), WB_I32), 0, 2);
    assert_values(wb_cast(wb_cast(wb_full(WB_F32, 2.7, 1), WB_I32), WB_F32), 0, 2);
    assert_values(wb_cast(wb_cast(wb_full(WB_I32, 300, 1), WB_U8), WB_I32), 0, 44);
    assert_values(wb_full(WB_F16, 0.1, 1), 0,
                  0.0999755859375); /* halves are rounded where they are stored */
    assert_values(wb_full(WB_BF16, 0.1, 1), 0, 0.10009765625);
    assert_values(wb_cast(wb_full(WB_F32, 0.1, 1), WB_F64), 0, (double)0.1f);
    assert_values(wb_cast(wb_full(WB_BOOL, 3, 1), WB_F64), 0, 1);
    assert_values(wb_add(wb_full(WB_BOOL, 3, 1), wb_full(WB_F32, 1, 1)), 0, 2);
    /* what no integer holds is the smallest one; a sanitizer sees casts that C leaves open */
    const double one = 1;
    wb_array *i = array_of(WB_I32, &one, 1, &(int64_t){1}),
             *l = array_of(WB_I64, &one, 1, &(int64_t){1});
    assert_values(wb_add(i, wb_cast(wb_number((double)NAN), WB_I32)), 0, -2147483647.0);
    assert_values(wb_add(i, wb_cast(wb_number(1e20), WB_I32)), 0, -2147483647.0);
    assert_values(wb_add(l, wb_cast(wb_number(1e30), WB_I64)), 0, -0x1p63);
}

static void casts(void **state) {
    (void)state;
    const double numbers[] = {0, 1, -1, 2.5, -2.5, 100.75, 0.1};
    const int64_t n = 7;
    naive_table *t = naive_new();
    for (int a = 0; a < WB_DTYPE_COUNT; a++)
        for (int b = 0; b < WB_DTYPE_COUNT; b++) {
            wb_array *x = array_of((wb_dtype)a, numbers, 1, &n);
            if (b == U) x = wb_abs(x); /* negative numbers have no u8 */
            if (a == O && b == U) continue;
            wb_array *y = wb_cast(x, (wb_dtype)b);
            assert_int_equal(wb_dtype_of(y), b);
            assert_as_naive(t, y, 0, "a cast");
            assert_as_naive(t, wb_add(wb_cast(y, WB_F64), wb_scalar(WB_F64, 1)), 0,
                            "a cast inside a program");
        }
    naive_free(t);
}

/* More numbers than a vector has. */
static void floats_are_cut_to_long_integers(void **state) {
    (void)state;
    const double numbers[] = {0, -0.75, 2.5, -16777216, 0x1.8p40, -0x1p62, 0x1.fffffep62, -0x1p63};
    enum { N = 8, TIMES = 10 };
    double x[N * TIMES];
    int64_t got[N * TIMES];
    const int64_t n = N * TIMES;
    for (int i = 0; i < N * TIMES; i++) x[i] = numbers[i % N];
    wb_array *y = wb_cast(array_of(WB_F32, x, 1, &n), WB_I64);
    assert_int_equal(wb_read(y, got, sizeof got), WB_OK);
    for (int i = 0; i < N * TIMES; i++) assert_true(got[i] == (int64_t)numbers[i % N]);
}

static void halves_round_to_nearest_even(void **state) {
    (void)state;
    const double numbers[] = {2049, 2051,    65504, 65519, 65520,        1e-8,
                              6e-8, 0x1p-25, 1e6,   -0.0,  1.0009765625, 1.00048828125};
    const int64_t n = (int64_t)(sizeof numbers / sizeof *numbers);
    wb_array *x = array_of(WB_F32, numbers, 1, &n);
    for (int k = 0; k < 2; k++) {
        const wb_dtype half = k ? WB_BF16 : WB_F16;
        assert_same_bits(wb_cast(x, half), array_of(half, numbers, 1, &n), wb_dtype_name(half));
    }
}

/* Gradients of halves are added in f32 and rounded once: 1 + 64 / 4096 in f16, whose step at 1 is 1
 * / 1024. */
static void gradients_of_halves_are_rounded_once(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F16, 3), *l = wb_sum(x), *g[1];
    for (int i = 0; i < 64; i++) l = wb_add(l, wb_sum(wb_mul_number(x, 1.0 / 4096)));
    assert_int_equal(wb_gradient_of(l, 1, &x, g), WB_OK);
    assert_int_equal(wb_dtype_of(g[0]), WB_F16);
    assert_values(g[0], 1e-9, 1.015625, 1.015625, 1.015625);
}

static void sums_of_halves_are_rounded_once(void **state) {
    (void)state;
    assert_value(wb_sum(wb_full(WB_F16, 0.25, 40000)), 10000, 0);
    assert_value(wb_sum(wb_full(WB_BF16, 1, 1000)), 1000, 0);
    assert_value(wb_mean(wb_full(WB_F16, 100, 4000)), 100, 0);
}

static void f64_stays_f64(void **state) {
    (void)state;
    wb_array *x = wb_full(WB_F64, 1.0 / 3, 1);
    assert_value(wb_mul_number(x, 0.1), 0.1 / 3, 1e-16);
    assert_value(wb_add(x, wb_number(1e-12)), 1.0 / 3 + 1e-12, 1e-16);
    assert_value(wb_mul(x, wb_late(0.1)), 0.1 / 3, 1e-16);
    assert_value(wb_mul(wb_number(0.1), wb_number(3)), 0.1 * 3, 1e-16);
    assert_value(wb_add(wb_full(WB_I64, 4503599627370497.0, 1), wb_scalar(WB_I64, 1)),
                 4503599627370498.0, 0);
}

/* The checked device, as one that has no f64. */
static void two_numbers_of_a_select_have_a_type_of_the_device(void **state) {
    (void)state;
    const wb_device *device = wb_get_device("checked", 0);
    wb_array *x = wb_to(device, wb_vector(1, 2)), *mask = wb_gt(x, wb_number(1.5));
    assert_int_equal(wb_dtype_of(wb_select(mask, wb_number(3), wb_number(4))), WB_F64);
    union {
        const wb_device *given;
        wb_device *changed;
    } d = {.given = wb_node_device(x)};
    d.changed->info.has_f64 = false;
    wb_array *y = wb_select(mask, wb_number(3), wb_number(4));
    wb_array *z = wb_select(mask, x, wb_number(4));
    assert_null(wb_cast(x, WB_F64));
    assert_error(WB_ERROR_DTYPE, "cast of f64: checked(0) has no f64; use f32 (wb_cast, or wb_to "
                                 "where the data is moved), or the CPU");
    d.changed->info.has_f64 = true;
    assert_int_equal(wb_dtype_of(y), WB_F32);
    assert_int_equal(wb_dtype_of(z), WB_F32);
    assert_value(wb_sum(y), 7, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(what_is_no_type_meets_none),
                                       TEST(two_types_meet_by_the_table),
                                       TEST(numbers_are_weak),
                                       TEST(comparisons_of_numbers_are_bools),
                                       TEST(sums_and_means),
                                       TEST(u8_wraps),
                                       TEST(comparisons_with_numbers_out_of_range),
                                       TEST(casts_of_constants_are_those_of_arrays),
                                       TEST(casts),
                                       TEST(floats_are_cut_to_long_integers),
                                       TEST(halves_round_to_nearest_even),
                                       TEST(gradients_of_halves_are_rounded_once),
                                       TEST(sums_of_halves_are_rounded_once),
                                       TEST(f64_stays_f64),
                                       TEST(two_numbers_of_a_select_have_a_type_of_the_device)};
    return cmocka_run_group_tests_name("ops/test_dtype", tests, NULL, NULL);
}
