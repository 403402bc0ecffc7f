/* Every elementwise row against libm, in f32 and f64: on its range, on zeros, infinities, NaN,
 * denormals and large numbers; integers; broadcasting. */
#include "support/functions.h"
#include "support/naive.h"
#include "support/support.h"

static const double specials[] = {0.0,
                                  -0.0,
                                  (double)INFINITY,
                                  -(double)INFINITY,
                                  (double)NAN,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2,
                                  -2,
                                  1e-3,
                                  -1e-3,
                                  1e-40,
                                  -1e-40,
                                  1e-310,
                                  -1e-310,
                                  1e-20,
                                  -1e-20,
                                  3,
                                  -3,
                                  88,
                                  -88,
                                  100,
                                  -100,
                                  710,
                                  -746,
                                  1e9,
                                  -1e9,
                                  1e30,
                                  -1e30,
                                  20.5,
                                  -20.5,
                                  0.999999,
                                  1.000001};
enum { SPECIALS = sizeof specials / sizeof *specials, RANDOM = 200 };

/* Rows that take numbers; f64 values are computed by naive_of in long double and rounded once. */
static bool takes_numbers(int op) {
    const wb_type_class type_class = wb_op_rows[op].type_class;
    return type_class != WB_CLASS_NONE && type_class != WB_CLASS_LOGIC;
}

static double step_of(wb_dtype dtype, double x) {
    const double size = fabs(x);
    if (dtype == WB_F32) return size < 0x1p-126 ? 0x1p-149 : size * 0x1p-23;
    return size < 0x1p-1022 ? 0x1p-1074 : size * 0x1p-52;
}

/* Compositions lose some steps of what they are made of: of the largest number on the way, which is
 * about 1 or x. */
static double allowed(const wb_op_row *row, wb_dtype dtype, double x, double wanted) {
    const double steps = row->expand ? 12 : 5;
    double size = fabs(wanted);
    if (row->expand) size = fmax(size, fmin(fabs(x), 2));
    if (row == &wb_op_rows[WB_OP_logcosh]) size = fmax(size, 1); /* log 2 is taken off */
    return steps * step_of(dtype, size);
}

static void assert_row(const wb_op_row *row, wb_array *x, wb_array *y) {
    const wb_dtype dtype = wb_dtype_of(x);
    const wb_op op = (wb_op)(row - wb_op_rows);
    wb_array *o = y ? binary[op](x, y) : unary[op](x);
    if (!o) fail_msg("%s: %s", row->name, wb_error_message());
    const int64_t count = wb_count(o);
    naive_table *table = naive_new();
    const naive *n = naive_of(table, o), *nx = naive_of(table, x);
    double *got = calloc((size_t)count + 1, sizeof *got);
    assert_non_null(got);
    if (wb_read_f64(o, got, count) != WB_OK) fail_msg("%s: %s", row->name, wb_error_message());
    for (int64_t i = 0; i < count; i++) {
        const double wanted = (double)n->values[i], in = (double)nx->values[i % nx->count];
        const bool same = isnan(wanted) ? isnan(got[i])
                          : isinf(wanted)
                              ? got[i] == wanted
                              : fabs(got[i] - wanted) <= allowed(row, dtype, in, wanted);
        if (!same)
            fail_msg("%s of %s: element %lld, of %.9g%s, is %.17g, not %.17g", row->name,
                     wb_dtype_name(dtype), (long long)i, in, y ? " and another" : "", got[i],
                     wanted);
    }
    free(got);
    naive_free(table);
}

static void agrees_with_libm(void **state) {
    const wb_op_row *row = *state;
    test_random r = {test_seed()};
    const bool pairs = row->arity == 2;
    for (int k = 0; k < 2; k++) {
        const wb_dtype dtype = k ? WB_F64 : WB_F32;
        const int64_t many = RANDOM, few = SPECIALS, row_of[2] = {1, SPECIALS};
        wb_array *x = array_random(&r, dtype, row->lo, row->hi, 1, &many);
        assert_row(row, x, pairs ? array_random(&r, dtype, row->lo, row->hi, 1, &many) : NULL);
        wb_array *s = array_of(dtype, specials, 1, &few);
        /* sums of large numbers and quotients by small ones leave the range where a step is a
         * step */
        if (pairs && row != &wb_op_rows[WB_OP_mod])
            assert_row(row, s, array_of(dtype, specials, 2, row_of));
        else if (!pairs)
            assert_row(row, s, NULL);
    }
}

/* ---- integers ---- */

static const double whole[] = {0,  1,  2,  3,    5,     7,      100,          200,          255,
                               -1, -2, -7, -128, 70000, -70000, 2147483647.0, -2147483648.0};

static void integers_are_exact(void **state) {
    const wb_op_row *row = *state;
    static const wb_dtype types[] = {WB_I32, WB_I64, WB_U8, WB_BOOL};
    const wb_op op = (wb_op)(row - wb_op_rows);
    for (int k = 0; k < 4; k++) {
        const int64_t first = k < 2 ? 17 : k == 2 ? 9 : 2, sizes[2] = {1, first};
        wb_array *x = array_of(types[k], whole, 1, &first),
                 *y = array_of(types[k], whole, 2, sizes);
        wb_array *o = row->arity == 2 ? binary[op](x, y) : unary[op](x);
        if (!o) fail_msg("%s of %s: %s", row->name, wb_dtype_name(types[k]), wb_error_message());
        assert_int_equal(wb_dtype_of(o), row->type_class == WB_CLASS_COMPARE ? WB_BOOL
                                         : k == 3                            ? WB_I64
                                                                             : types[k]);
        naive_table *table = naive_new();
        assert_as_naive(table, o, 0, row->name);
        naive_free(table);
    }
}

static void integers_become_f32(void **state) {
    const wb_op_row *row = *state;
    static const wb_dtype types[] = {WB_I32, WB_I64, WB_U8, WB_BOOL};
    const wb_op op = (wb_op)(row - wb_op_rows);
    for (int k = 0; k < 4; k++) {
        const int64_t first = k < 3 ? 6 : 2;
        wb_array *x = array_of(types[k], whole, 1, &first), *f = wb_cast(x, WB_F32);
        wb_array *o = row->arity == 2 ? binary[op](x, x) : unary[op](x);
        wb_array *wanted = row->arity == 2 ? binary[op](f, f) : unary[op](f);
        if (!o || !wanted) fail_msg("%s: %s", row->name, wb_error_message());
        assert_int_equal(wb_dtype_of(o), WB_F32);
        char where[128] = "";
        if (!wb_approx(o, wanted, 1e-6, 0, where, sizeof where))
            fail_msg("%s of %s: %s", row->name, wb_dtype_name(types[k]), where);
    }
}

static void parameters_are_used(void **state) {
    (void)state;
    wb_array *x = wb_vector(-3, -0.4f, 0.4f, 3);
    assert_values(wb_leakyrelu_with(x, 0.5), 1e-6, -1.5, -0.2, 0.4, 3);
    assert_values(wb_elu_with(x, 2), 1e-6, 2 * expm1(-3), 2 * expm1(-0.4), 0.4, 3);
    assert_values(wb_relu6_with(x, 1), 1e-6, 0, 0, 0.4, 1);
    assert_values(wb_hardtanh_with(x, 0.5), 1e-6, -0.5, -0.4, 0.4, 0.5);
    assert_values(wb_trelu_with(x, 0.3), 1e-6, 0, 0, 0.4, 3);
    assert_values(wb_softshrink_with(x, 0.1), 1e-6, -2.9, -0.3, 0.3, 2.9);
}

/* ---- broadcasting ---- */

static void all_sizes_broadcast_as_julia_does(void **state) {
    (void)state;
    static const int64_t some[] = {0, 1, 2, 3};
    test_random r = {test_seed()};
    for (int64_t i = 0; i < cases_of(400); i++) {
        int64_t a[3], b[3], both[3];
        const int an = (int)random_below(&r, 4), bn = (int)random_below(&r, 4),
                  n = an > bn ? an : bn;
        bool fits = true;
        for (int d = 0; d < an; d++) a[d] = some[random_below(&r, 4)];
        for (int d = 0; d < bn; d++)
            b[d] = random_below(&r, 2) && d < an ? a[d] : some[random_below(&r, 4)];
        for (int d = 0; d < n; d++) {
            const int64_t x = d < an ? a[d] : 1, y = d < bn ? b[d] : 1;
            fits = fits && (x == y || x == 1 || y == 1);
            both[d] = x == 1 ? y : x;
        }
        wb_array *x = array_random(&r, WB_F64, -1, 1, an, a),
                 *y = array_random(&r, WB_F64, -1, 1, bn, b), *o = wb_sub(x, y);
        if (!fits) {
            char text[200];
            assert_null(o);
            (void)snprintf(text, sizeof text, "sub: sizes %s and %s do not broadcast",
                           wb_text_of(x), wb_text_of(y));
            assert_error(WB_ERROR_SHAPE, text);
            continue;
        }
        assert_sizes_make(o, n, both);
        naive_table *table = naive_new();
        assert_as_naive(table, o, 1e-15, "a difference");
        assert_as_naive(table, wb_select(wb_gt(x, wb_number(0)), x, y), 0, "a choice");
        naive_free(table);
    }
}

static void logic(void **state) {
    (void)state;
    const uint8_t t[4] = {0, 0, 1, 1}, u[4] = {0, 1, 0, 1};
    wb_array *x = wb_from(WB_BOOL, t, 4), *y = wb_from(WB_BOOL, u, 4);
    assert_values(wb_and(x, y), 0, 0, 0, 0, 1);
    assert_values(wb_or(x, y), 0, 0, 1, 1, 1);
    assert_values(wb_not(x), 0, 1, 1, 0, 0);
    assert_values(wb_eq(x, y), 0, 1, 0, 0, 1);
    assert_values(wb_lt(x, y), 0, 0, 1, 0, 0);
    assert_values(wb_add(x, y), 0, 0, 1, 1, 2);
    assert_int_equal(wb_dtype_of(wb_and(x, y)), WB_BOOL);
}

static void numbers_are_kept_between_two(void **state) {
    (void)state;
    const double inf = (double)INFINITY;
    wb_array *x = wb_vector(-3, -1, 0.5f, 2, NAN, INFINITY);
    assert_values(wb_clamp(x, -1, 1), 0, -1, -1, 0.5, 1, NAN, 1);
    assert_values(wb_clamp(x, -inf, 1), 0, -3, -1, 0.5, 1, NAN, 1);
    assert_values(wb_clamp(x, 0, inf), 0, 0, 0, 0.5, 2, NAN, INFINITY);
    assert_values(wb_clamp(x, 1, 1), 0, 1, 1, 1, 1, NAN, 1);
    wb_array *n = wb_clamp(wb_vector_of(WB_I32, -3, 5, 300), 0, 255);
    assert_values(n, 0, 0, 5, 255);
    assert_int_equal(wb_dtype_of(n), WB_I32);
    wb_array *ends = wb_vector(-2, -1, 0, 1, 2), *g[1];
    assert_int_equal(wb_gradient_of(wb_sum(wb_clamp(ends, -1, 1)), 1, &ends, g), WB_OK);
    assert_values(g[0], 0, 0, 1, 1, 1, 0);
    assert_null(wb_clamp(x, 2, 1));
    assert_error(WB_ERROR_ARGUMENT, "clamp: low must not be above high, got low 2, high 1");
    assert_null(wb_clamp(x, (double)NAN, 1));
    assert_error(WB_ERROR_ARGUMENT, "clamp: low must not be above high, got low nan, high 1");
}

static void numbers_that_are_none(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        static const wb_dtype types[4] = {WB_F32, WB_F64, WB_F16, WB_BF16};
        wb_array *x = wb_cast(wb_vector(1, NAN, INFINITY, -INFINITY, 0), types[k]);
        assert_values(wb_isnan(x), 0, 0, 1, 0, 0, 0);
        assert_values(wb_isinf(x), 0, 0, 0, 1, 1, 0);
        assert_values(wb_isfinite(x), 0, 1, 0, 0, 0, 1);
        assert_int_equal(wb_dtype_of(wb_isinf(x)), WB_BOOL);
    }
    wb_array *n = wb_vector_of(WB_I64, 1, INT64_MAX);
    assert_values(wb_isnan(n), 0, 0, 0);
    assert_values(wb_isinf(n), 0, 0, 0);
    assert_values(wb_isfinite(n), 0, 1, 1);
}

static void numbers_stand_on_the_left(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 4);
    assert_values(wb_number_sub(1, x), 0, 0, -1, -3);
    assert_values(wb_number_div(8, x), 0, 8, 4, 2);
    assert_values(wb_number_pow(2, x), 1e-6, 2, 4, 16);
    assert_int_equal(wb_dtype_of(wb_number_sub(1, wb_vector_of(WB_I32, 5))), WB_I32);
}

/* The ends of the type as well: backends may divide in floating point. */
static void remainders_of_any_integers(void **state) {
    (void)state;
    const double ends[] = {INT32_MIN, INT32_MIN + 1, -65537,    -7,       -2, -1, 0, 1, 3,
                           10,        65536,         715827883, INT32_MAX};
    enum { N = sizeof ends / sizeof *ends };
    const int64_t down = N, across[] = {1, N};
    int32_t got[N][N];
    wb_array *x = array_of(WB_I32, ends, 1, &down), *y = array_of(WB_I32, ends, 2, across);
    assert_int_equal(wb_read(wb_mod(x, y), got, sizeof got), WB_OK);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            const int64_t a = (int64_t)ends[i], b = (int64_t)ends[j], rest = b ? a % b : 0;
            assert_int_equal(got[j][i], rest && (rest < 0) != (b < 0) ? rest + b : rest);
        }
}

static void powers_of_one_number(void **state) {
    (void)state;
    enum { N = 40 };
    const double bases[] = {2, 0.3, -1.5, 0, 1};
    const int64_t n = N;
    double exponents[N], got[N];
    for (int i = 0; i < N; i++) exponents[i] = i % 2 ? i - 20 : (i - 20) / 8.0;
    wb_array *x = wb_cast(array_of(WB_F32, exponents, 1, &n), widest());
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        wb_array *powers = wb_cast(wb_number_pow(bases[b], x), widest());
        assert_int_equal(wb_read_f64(powers, got, N), WB_OK);
        for (int i = 0; i < N; i++) {
            const double wanted = pow(bases[b], exponents[i]);
            if (isfinite(wanted))
                assert_true(fabs(got[i] - wanted) <= 1e-5 * fabs(wanted));
            else
                assert_true(isnan(wanted) ? isnan(got[i]) : got[i] == wanted);
        }
    }
}

int main(void) {
    static char names[3 * WB_OP_COUNT][80];
    struct CMUnitTest tests[3 * WB_OP_COUNT + 8];
    size_t count = 0;
    (void)test_seed();
    for (int op = 0; op < WB_OP_COUNT; op++) {
        const wb_op_row *row = &wb_op_rows[op];
        if (!takes_numbers(op)) continue;
        static const struct {
            const char *text;
            CMUnitTestFunction function;
        } kinds[3] = {{"%s agrees with libm", agrees_with_libm},
                      {"%s of integers is exact", integers_are_exact},
                      {"%s of integers is f32", integers_become_f32}};
        for (int k = 0; k < 3; k++) {
            if (k > 0 && (row->type_class == WB_CLASS_FLOAT) != (k == 2)) continue;
            (void)snprintf(names[3 * op + k], sizeof names[0], kinds[k].text, row->name);
            tests[count++] = (struct CMUnitTest){names[3 * op + k], kinds[k].function, open_row,
                                                 close_row, (void *)(uintptr_t)row};
        }
    }
    tests[count++] = (struct CMUnitTest)TEST(parameters_are_used);
    tests[count++] = (struct CMUnitTest)TEST(all_sizes_broadcast_as_julia_does);
    tests[count++] = (struct CMUnitTest)TEST(logic);
    tests[count++] = (struct CMUnitTest)TEST(numbers_are_kept_between_two);
    tests[count++] = (struct CMUnitTest)TEST(numbers_that_are_none);
    tests[count++] = (struct CMUnitTest)TEST(numbers_stand_on_the_left);
    tests[count++] = (struct CMUnitTest)TEST(remainders_of_any_integers);
    tests[count++] = (struct CMUnitTest)TEST(powers_of_one_number);
    return _cmocka_run_group_tests("ops/test_elementwise", tests, count, NULL, NULL);
}
