/* Rule 14: one promotion table, Julia's; C numbers are weak; layers convert their input; halves are
 * added in f32. */
#include "optimise/optimiser.h"
#include "values/steps.h"

/* ---- how two types meet ---- */

#define F32  WB_F32
#define F64  WB_F64
#define F16  WB_F16
#define BF   WB_BF16
#define I32  WB_I32
#define I64  WB_I64
#define U8   WB_U8
#define BOOL WB_BOOL

/* promote_type of Julia 1.10, for bf16 of BFloat16s.jl. */
static const uint8_t meets[WB_DTYPE_COUNT][WB_DTYPE_COUNT] = {
    [F32] = {F32, F64, F32, F32, F32, F32, F32, F32},
    [F64] = {F64, F64, F64, F64, F64, F64, F64, F64},
    [F16] = {F32, F64, F16, F32, F16, F16, F16, F16},
    [BF] = {F32, F64, F32, BF, BF, BF, BF, BF},
    [I32] = {F32, F64, F16, BF, I32, I64, I32, I32},
    [I64] = {F32, F64, F16, BF, I64, I64, I64, I64},
    [U8] = {F32, F64, F16, BF, I32, I64, U8, U8},
    [BOOL] = {F32, F64, F16, BF, I32, I64, U8, BOOL},
};

static wb_array *ones_of(int dtype) {
    return array_of((wb_dtype)dtype, (const double[]){1, 0, 1}, 1, (const int64_t[]){3});
}

static void two_types_meet_as_in_the_table(void **state) {
    (void)state;
    for (int a = 0; a < WB_DTYPE_COUNT; a++)
        for (int b = 0; b < WB_DTYPE_COUNT; b++) {
            const wb_dtype wanted = (wb_dtype)meets[a][b];
            if (wb_promote((wb_dtype)a, (wb_dtype)b) != wanted)
                fail_msg("%s and %s", wb_dtype_name((wb_dtype)a), wb_dtype_name((wb_dtype)b));
            wb_array *sum = wb_add(ones_of(a), ones_of(b));
            const wb_dtype of_sum = wanted == WB_BOOL ? WB_I64 : wanted; /* true + true = 2 */
            assert_int_equal(wb_dtype_of(sum), of_sum);
            assert_values(sum, 0, 2, 0, 2);
            assert_int_equal(wb_dtype_of(wb_lt(ones_of(a), ones_of(b))), WB_BOOL);
        }
}

/* ---- numbers of C ---- */

static const struct number_row {
    const char *name;
    wb_dtype dtype;
    double number;
    wb_dtype sum;
    double wanted; /* of 1 + number */
} number_rows[] = {
    {"a number takes f16", F16, 0.5, F16, 1.5},
    {"a number takes bf16", BF, 0.5, BF, 1.5},
    {"a number takes f32", F32, 0.1, F32, 1.1},
    {"a number takes f64", F64, 0.1, F64, 1.1},
    {"a whole number takes i32", I32, 2, I32, 3},
    {"a whole number takes i64", I64, 2, I64, 3},
    {"a whole number takes u8", U8, 2, U8, 3},
    {"a whole number beside bool is i64", BOOL, 2, I64, 3},
    {"a broken number beside i32 is f32", I32, 0.5, F32, 1.5},
    {"a broken number beside u8 is f32", U8, 0.5, F32, 1.5},
    {"a broken number beside bool is f32", BOOL, 0.5, F32, 1.5},
};

static void numbers_are_weak(void **state) {
    const struct number_row *row = *state;
    wb_array *sum = wb_add(ones_of((int)row->dtype), wb_number(row->number));
    assert_int_equal(wb_dtype_of(sum), row->sum);
    assert_true(fabs(wb_at(sum, 0) - row->wanted) < 1e-7);
    assert_int_equal(wb_dtype_of(wb_add(wb_number(row->number), ones_of((int)row->dtype))),
                     row->sum);
    /* arithmetic among numbers stays weak; wb_scalar is not */
    wb_array *twice = wb_mul(wb_number(row->number), wb_number(1));
    if (wb_dtype_is_float(row->dtype))
        assert_int_equal(wb_dtype_of(wb_add(ones_of((int)row->dtype), twice)), row->sum);
    assert_int_equal(wb_dtype_of(wb_add(ones_of((int)row->dtype), wb_scalar(WB_F64, 1))), WB_F64);
}

static void sums_and_means(void **state) {
    (void)state;
    for (int t = 0; t < WB_DTYPE_COUNT; t++) {
        const wb_dtype dtype = (wb_dtype)t;
        wb_array *x = ones_of(t);
        if (dtype == WB_BOOL || dtype == WB_U8) assert_int_equal(wb_dtype_of(wb_sum(x)), WB_I64);
        if (wb_dtype_is_float(dtype)) assert_int_equal(wb_dtype_of(wb_sum(x)), dtype);
        assert_value(wb_sum(x), 2, 0);
        wb_array *mean = wb_mean(x);
        assert_true(wb_dtype_is_float(wb_dtype_of(mean)));
        assert_true(fabs(wb_item(mean) - 2.0 / 3) < 3e-3);
        assert_int_equal(wb_dtype_of(wb_maximum(x)), dtype);
    }
    wb_array *many = wb_eq(wb_full(WB_U8, 200, 1000), wb_number(200));
    assert_value(wb_sum(many), 1000, 0); /* a sum in u8 would be 232 */
    assert_value(wb_sum(wb_full(WB_U8, 200, 1000)), 200000, 0);
}

static void integers_divide_to_floats(void **state) {
    (void)state;
    wb_array *x = wb_full(WB_I32, 1, 2), *y = wb_full(WB_I32, 4, 2);
    wb_array *quotient = wb_div(x, y);
    assert_int_equal(wb_dtype_of(quotient), WB_F32);
    assert_values(quotient, 0, 0.25, 0.25);
    assert_true(wb_dtype_is_float(wb_dtype_of(wb_exp(x))));
}

/* 2^53 + 1 and 2^24 + 1 are what they are: integers do not pass through floats. */
static void integers_are_exact(void **state) {
    (void)state;
    const int64_t large[] = {((int64_t)1 << 53) + 1, -((int64_t)1 << 60)};
    int64_t out[2];
    wb_array *x = wb_from(WB_I64, large, 2);
    assert_int_equal(wb_read(wb_add(wb_mul(x, wb_number(3)), wb_number(1)), out, sizeof out),
                     WB_OK);
    assert_true(out[0] == 3 * large[0] + 1 && out[1] == 3 * large[1] + 1);
    wb_array *i = wb_add(wb_full(WB_I32, 1 << 24, 2), wb_number(1));
    assert_values(i, 0, 16777217, 16777217);
}

/* ---- layers ---- */

static int warnings;
static void count_warnings(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_WARN && strstr(line, "converts")) warnings++;
}

static void a_layer_converts_its_input_and_says_so_once(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(3, 2, wb_relu), wb_dense(2, 1));
    wb_log_to(count_warnings, NULL);
    for (int t = 0; t < WB_DTYPE_COUNT; t++) {
        wb_array *y = wb_apply(model, ones_of(t));
        assert_int_equal(wb_dtype_of(y), WB_F32);
    }
    wb_log_to(NULL, NULL);
    assert_int_equal(warnings, 1);
    wb_free(model);
}

/* ---- halves ---- */

static const struct half_row {
    const char *name;
    wb_dtype dtype;
    double large; /* its neighbours are 2 away: ones added to it one by one are lost */
} half_rows[] = {
    {"gradients of f16 are added in f32", F16, 2048},
    {"gradients of bf16 are added in f32", BF, 256},
};

/* One large contribution and ten ones on either side of it: whatever the order, ones meet the large
 * sum one by one. */
static void gradients_of_halves_are_added_in_f32(void **state) {
    const struct half_row *row = *state;
    enum { TERMS = 21 };
    wb_array *x = wb_full(row->dtype, 0.5, 3), *g[1], *l = wb_number(0);
    for (int i = 0; i < TERMS; i++) {
        const double factor = i == TERMS / 2 ? row->large : 1;
        l = wb_add(l, wb_sum(wb_mul(x, wb_copy(wb_full(row->dtype, factor, 3)))));
    }
    assert_int_equal(wb_gradient_of(l, 1, &x, g), WB_OK);
    assert_int_equal(wb_dtype_of(g[0]), row->dtype);
    const double wanted = row->large + TERMS - 1;
    assert_values(g[0], 0, wanted, wanted, wanted);
}

/* A sum of halves does not lose what is small beside it. */
static void halves_are_summed_in_f32(void **state) {
    (void)state;
    double numbers[1001] = {2048};
    for (int i = 1; i < 1001; i++) numbers[i] = 1;
    assert_value(wb_sum(array_of(WB_F16, numbers, 1, (const int64_t[]){1001})), 3048, 0);
}

/* ---- what rounds to halves ---- */

static wb_array *there_and_back(void) {
    return wb_cast(wb_cast(wb_vector(1.0001, 70000, 1e-9), WB_F16), WB_F32);
}
static wb_array *there_and_back_bf16(void) {
    return wb_cast(wb_cast(wb_vector(1.001, 1e39, 257), WB_BF16), WB_F32);
}
static wb_array *and_further(void) {
    return wb_add_number(wb_cast(wb_cast(wb_vector(1.0001, 70000), WB_F16), WB_F32), 1);
}
static wb_array *sum_of_constants(void) {
    return wb_sum(wb_cast(wb_full(WB_F16, 1.0004, 1000), WB_F32));
}
static wb_array *sum_of_casts(void) {
    return wb_cast(wb_sum(wb_cast(wb_full(WB_F32, 1.0004, 1000), WB_F16)), WB_F32);
}
static wb_array *constants(void) {
    return wb_cast(wb_mul(wb_full(WB_BF16, 257, 2), wb_full(WB_BF16, 1.001, 2)), WB_F32);
}
static wb_array *of_late_numbers(void) { return wb_cast(wb_cast(wb_late(70000), WB_F16), WB_F32); }
static wb_array *of_integers(void) {
    return wb_cast(wb_cast(wb_from(WB_I32, ((int32_t[]){2049, 70000}), 2), WB_F16), WB_I32);
}
static wb_array *repeated(void) {
    wb_array *half = wb_cast(wb_add(wb_vector(1.0001), wb_zeros(WB_F32, 2, 1)), WB_F16);
    return wb_sum_dims(wb_mul(wb_cast(half, WB_F32), wb_ones(WB_F32, 2, 3)), 1);
}
static wb_array *infinities(void) {
    return wb_cast(wb_isinf(wb_cast(wb_vector(1, 70000), WB_F16)), WB_F32);
}
/* 2048 + 1 is a tie in f16: it is compared as it would be stored. */
static wb_array *compared(void) {
    wb_array *x = wb_cast(wb_vector(2048, 2050), WB_F16);
    wb_array *y = wb_add(x, wb_cast(wb_vector(1, 1), WB_F16));
    return wb_cast(wb_eq(y, x), WB_F32);
}
/* A number counts as itself where it meets halves: the result alone is rounded. */
static wb_array *by_number(void) {
    return wb_mul_number(wb_cast(wb_vector(1000, 256), WB_BF16), 1.003);
}

static const struct rounding_row {
    const char *name;
    wb_array *(*make)(void);
    int count;
    double wanted[3];
} rounding_rows[] = {
    {"a cast to f16 and back rounds", there_and_back, 3, {1, INFINITY, 0}},
    {"a cast to bf16 and back rounds", there_and_back_bf16, 3, {1, INFINITY, 256}},
    {"what is computed of it knows nothing else", and_further, 2, {2, INFINITY}},
    {"a constant in f16 is a number of f16", sum_of_constants, 1, {1000}},
    {"a cast constant too", sum_of_casts, 1, {1000}},
    {"constants in bf16", constants, 2, {256, 256}},
    {"late numbers round", of_late_numbers, 1, {INFINITY}},
    {"integers round", of_integers, 2, {2048, INT32_MIN}},
    {"before they are repeated", repeated, 2, {3, 3}},
    {"infinity is one", infinities, 2, {0, 1}},
    {"halves are compared as they are stored", compared, 2, {1, 0}},
    {"a number that meets halves is not rounded", by_number, 2, {1004, 256}},
};

static void halves_round(void **state) {
    const struct rounding_row *row = *state;
    double numbers[3];
    wb_array *x = row->make();
    assert_int_equal(wb_read_f64(x, numbers, row->count), WB_OK);
    for (int i = 0; i < row->count; i++)
        if (numbers[i] != row->wanted[i])
            fail_msg("number %d is %.10g, not %g", i, numbers[i], row->wanted[i]);
}

static void the_state_of_halves_is_f32(void **state) {
    (void)state;
    const wb_dtype types[] = {WB_F16, WB_BF16, WB_F32, WB_F64};
    const wb_rule rules[] = {wb_momentum(), wb_adam(), wb_adamw()};
    for (int t = 0; t < 4; t++)
        for (int r = 0; r < 3; r++) {
            wb_layer *model = wb_tree(wb_ones(types[t], 3));
            wb_optimiser *o = wb_setup(rules[r], model);
            assert_int_equal(step(o, model, squares_of_one), WB_OK);
            for (int k = 0; k < wb_rule_states(&rules[r]); k++) {
                const wb_array *s = o->groups[0].states[k];
                assert_int_equal(wb_dtype_of(s), types[t] == WB_F64 ? WB_F64 : WB_F32);
            }
            assert_int_equal(wb_dtype_of(wb_get(model, "1")), types[t]);
            wb_free(o), wb_free(model);
        }
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(two_types_meet_as_in_the_table),
        TEST(sums_and_means),
        TEST(integers_divide_to_floats),
        TEST(integers_are_exact),
        TEST(a_layer_converts_its_input_and_says_so_once),
        TEST(halves_are_summed_in_f32),
        TEST(the_state_of_halves_is_f32),
    };
    ADD_ROWS(&tests, number_rows, numbers_are_weak);
    ADD_ROWS(&tests, half_rows, gradients_of_halves_are_added_in_f32);
    ADD_ROWS(&tests, rounding_rows, halves_round);
    ADD_TESTS(&tests, others);
    return run_test_list("values 14", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
