/* Truncated normal numbers, categorical samples, permutations. */
#include "support/support.h"

enum { COUNT = 20000 };

static void read_all(wb_array *x, double *out) {
    if (!x) fail_msg("no array: %s", wb_error_message());
    assert_int_equal(wb_read_f64(x, out, COUNT), WB_OK);
}

/* Mean and deviation of what is left of N(0, 1): computed values. */
static const struct truncated_row {
    const char *name;
    double mean, std, low, high, wanted_mean, wanted_std;
} truncated[] = {
    {"cut at two deviations", 0, 1, -2, 2, 0, 0.8796256610},
    {"cut on one side", 0, 1, 0, (double)INFINITY, 0.7978845608, 0.6028102750},
    {"moved and stretched", 5, 2, 1, 9, 5, 1.7592513220},
    {"not cut", 1, 0.5, -(double)INFINITY, (double)INFINITY, 1, 0.5},
    {"hardly cut", 0, 0.05, -2, 2, 0, 0.05},
    {"the tail alone", 0, 1, 2, 3, 2.3158, 0.2557},
    {"nothing left but a point", 0, 1, 0.5, 0.5, 0.5, 0},
    {"no deviation", 3, 0, -2, 2, 2, 0},
};

static void numbers_stay_inside(void **state) {
    const struct truncated_row *r = *state;
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16};
    static double x[COUNT];
    for (int t = 0; t < 3; t++) {
        double sum = 0, squares = 0;
        wb_array *y = wb_truncated_normal(types[t], r->mean, r->std, r->low, r->high, COUNT);
        assert_int_equal(wb_dtype_of(y), types[t]);
        read_all(y, x);
        for (int i = 0; i < COUNT; i++) {
            assert_true(x[i] >= r->low && x[i] <= r->high);
            sum += x[i], squares += (x[i] - r->wanted_mean) * (x[i] - r->wanted_mean);
        }
        const double error = 5 * (r->wanted_std + 1e-3) / sqrt((double)COUNT);
        assert_true(fabs(sum / COUNT - r->wanted_mean) < error);
        assert_true(fabs(sqrt(squares / COUNT) - r->wanted_std) < error + 1e-3);
    }
}

/* Shares of the numbers below some places are those of the distribution. */
static void shares_are_right(void **state) {
    (void)state;
    static double x[COUNT];
    read_all(wb_truncated_normal(WB_F32, 0, 1, -2, 2, COUNT), x);
    static const double places[][2] = {{-0.639111911, 0.25}, {0, 0.5}, {1.184032467, 0.9}};
    for (int k = 0; k < 3; k++) {
        int below = 0;
        for (int i = 0; i < COUNT; i++) below += x[i] < places[k][0];
        assert_true(fabs((double)below / COUNT - places[k][1]) < 0.015);
    }
}

static void samples_follow_logits(void **state) {
    (void)state;
    static double x[COUNT];
    const double p[4] = {0.1, 0, 0.6, 0.3};
    int64_t found[4] = {0};
    wb_array *logits = wb_log(array_of(WB_F32, p, 1, (const int64_t[]){4}));
    wb_array *at = wb_categorical(wb_expand(wb_reshape(logits, 4, 1), 4, COUNT), 0);
    assert_sizes(at, 1, COUNT);
    assert_int_equal(wb_dtype_of(at), WB_I64);
    read_all(at, x);
    for (int i = 0; i < COUNT; i++) found[(int)x[i]]++;
    for (int k = 0; k < 4; k++) assert_true(fabs((double)found[k] / COUNT - p[k]) < 0.02);
    assert_int_equal(found[1], 0);
    assert_sizes(wb_categorical(wb_zeros(WB_F16, 2, 3), -1), 2, 1);
    assert_values(wb_categorical(wb_vector_of(WB_I32, 0, 1000, 0), 0), 0, 1);
    wb_array *bad = wb_categorical(wb_vector(0, (float)NAN, 1), 0);
    if (bad) assert_true(isnan(wb_item(bad))); /* with WEBER_EAGER=1 nothing is pending */
    assert_error(WB_ERROR_ARGUMENT, "categorical: a logit is NaN: class");
    assert_null(wb_categorical(logits, 1));
    assert_error(WB_ERROR_ARGUMENT, "categorical: dimension 1 is outside an array of 1 dimensions");
}

static void permutations_have_every_place_once(void **state) {
    (void)state;
    static double x[COUNT], y[COUNT];
    static bool seen[COUNT];
    wb_seed(7);
    read_all(wb_permutation(COUNT), x);
    read_all(wb_permutation(COUNT), y);
    assert_true(memcmp(x, y, sizeof x) != 0);
    memset(seen, 0, sizeof seen);
    int fixed = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_false(seen[(int)x[i]]);
        seen[(int)x[i]] = true;
        fixed += (int)x[i] == i;
    }
    assert_true(fixed < 10); /* one on average */
    wb_seed(7);
    read_all(wb_permutation(COUNT), y);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(wb_dtype_of(wb_permutation(3)), WB_I64);
    assert_values(wb_permutation(1), 0, 0);
    assert_int_equal(wb_count(wb_permutation(0)), 0);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {TEST(shares_are_right), TEST(samples_follow_logits),
                                        TEST(permutations_have_every_place_once)};
    ADD_ROWS(&tests, truncated, numbers_stay_inside);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_sample", &tests, NULL, NULL);
}
