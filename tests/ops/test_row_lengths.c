/* Rows of many lengths and types: short ones, such as do not divide into vectors, and such as fill
 * a group's registers; aligned, or not; few of them or many. */
#include "support/support.h"

enum { MANY = 1100, MOST_COLUMNS = 8192 };

typedef struct rows {
    wb_dtype dtype;
    int64_t columns, count;
    bool is_shifted; /* begins one element later than its memory */
} rows;

static double number_at(const rows *r, int64_t column, int64_t row) {
    const double x = (double)((column * 37 + row * 101) % 257) / 32 - 4;
    return r->dtype == WB_BF16 ? floor(x * 8) / 8 : x; /* exact in each type */
}

static wb_array *rows_make(const rows *r) {
    const int64_t count = r->columns * r->count;
    float *numbers = malloc((size_t)(count + 1) * sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i + r->is_shifted] = (float)number_at(r, i % r->columns, i / r->columns);
    if (r->is_shifted) numbers[0] = 0;
    wb_array *x = wb_cast(wb_from(WB_F32, numbers, count + r->is_shifted), r->dtype);
    free(numbers);
    wb_eval(x);
    return wb_reshape(r->is_shifted ? wb_slice(x, 0, 1, WB_END, 1) : x, r->columns, r->count);
}

/* Of one row: its maximum, sum, sum of exponentials, mean and variance. */
typedef struct facts {
    double most, sum, exponentials, mean, variance;
} facts;

static facts facts_of(const rows *r, int64_t row) {
    facts f = {.most = -INFINITY};
    const double n = (double)r->columns;
    for (int64_t c = 0; c < r->columns; c++) {
        f.most = fmax(f.most, number_at(r, c, row));
        f.sum += number_at(r, c, row);
    }
    f.mean = f.sum / n;
    for (int64_t c = 0; c < r->columns; c++) {
        f.exponentials += exp(number_at(r, c, row) - f.most);
        f.variance += pow(number_at(r, c, row) - f.mean, 2) / n;
    }
    return f;
}

typedef enum result { SOFTMAX, NORMALISED, MAXIMUM, SUM, LOGSUMEXP, RESULTS } result;

static double wanted(const rows *r, result which, const facts *f, int64_t column, int64_t row) {
    const double x = number_at(r, column, row);
    return which == SOFTMAX      ? exp(x - f->most) / f->exponentials
           : which == NORMALISED ? (x - f->mean) / sqrt(f->variance + 1e-3)
           : which == MAXIMUM    ? f->most
           : which == SUM        ? f->sum
                                 : f->most + log(f->exponentials);
}

static wb_array *result_of(wb_array *x, result which) {
    return which == SOFTMAX      ? wb_softmax(x)
           : which == NORMALISED ? wb_normalise(x, 1e-3, 0)
           : which == MAXIMUM    ? wb_maximum_dims(x, 0)
           : which == SUM        ? wb_sum_dims(x, 0)
                                 : wb_logsumexp(x);
}

/* Softmax gives small numbers: what f16 rounds to denormals, too. */
static double margin(const rows *r, result which, double want) {
    static const double tolerances[WB_DTYPE_COUNT] = {
        [WB_F32] = 2e-5, [WB_F64] = 1e-12, [WB_F16] = 2e-3, [WB_BF16] = 1.6e-2};
    return tolerances[r->dtype] * (which == SOFTMAX ? want + 5e-5 : 1 + fabs(want));
}

static void check_result(const rows *r, wb_array *x, result which) {
    wb_array *y = result_of(x, which);
    if (!y) fail_msg("no array: %s", wb_error_message());
    const int64_t count = wb_count(y), columns = count / r->count;
    double *values = malloc((size_t)count * sizeof *values);
    assert_int_equal(wb_read_f64(y, values, count), WB_OK);
    for (int64_t row = 0; row < r->count; row++) {
        const facts f = facts_of(r, row);
        for (int64_t c = 0; c < columns; c++) {
            const double have = values[row * columns + c], want = wanted(r, which, &f, c, row);
            if (!(fabs(have - want) <= margin(r, which, want)))
                fail_msg("result %d of %s, row %lld of %lld with %lld columns%s: element %lld is "
                         "%.9g, not %.9g",
                         which, wb_dtype_name(r->dtype), (long long)row, (long long)r->count,
                         (long long)r->columns, r->is_shifted ? ", shifted" : "", (long long)c,
                         have, want);
        }
    }
    free(values);
}

/* first to last: of the results. */
static void check_some(wb_dtype dtype, int64_t columns, int64_t count, bool is_shifted, int first,
                       int last) {
    if (dtype == WB_F64 && !wb_device_properties(wb_default_device()).has_f64) return;
    const rows r = {dtype, columns, count, is_shifted};
    wb_scope_open();
    wb_array *x = rows_make(&r);
    for (int which = first; which <= last; which++) check_result(&r, x, (result)which);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void check(wb_dtype dtype, int64_t columns, int64_t count, bool is_shifted) {
    check_some(dtype, columns, count, is_shifted, 0, RESULTS - 1);
}

static const wb_dtype dtypes[] = {WB_F32, WB_BF16, WB_F16, WB_F64};

static void rows_of_each_length_have_their_sums_and_maxima(void **state) {
    (void)state;
    static const int64_t lengths[] = {1,   2,   17,  31,   32,   33,   64,
                                      100, 250, 768, 1000, 1024, 1025, 4096};
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int shifted = 0; shifted < 2; shifted++) check(dtypes[d], lengths[i], 5, shifted);
}

static void many_rows_do(void **state) {
    (void)state;
    for (int d = 0; d < 4; d++)
        for (int shifted = 0; shifted < 2; shifted++) {
            check(dtypes[d], 1000, MANY, shifted);
            check(dtypes[d], 264, MANY, shifted);
            check(dtypes[d], 33, MANY, shifted);
        }
}

static void long_rows_do(void **state) {
    (void)state;
    check(WB_F32, 50257, 3, false);
    check(WB_F32, 8200, MANY, false); /* of larger groups */
    /* each item holds more than a block */
    check_some(WB_F32, 36001, 520, true, NORMALISED, NORMALISED);
    check_some(WB_F32, 36001, 520, true, SUM, SUM);
    check(WB_BF16, MOST_COLUMNS, 600, true);
}

/* 2 x + 1, and its sum: exact in each type, and so is the sum in f64 of whole numbers of 1/32. */
static void check_elements(wb_dtype dtype, int64_t count, bool is_shifted) {
    if (dtype == WB_F64 && !wb_device_properties(wb_default_device()).has_f64) return;
    const rows r = {dtype, count, 1, is_shifted};
    wb_scope_open();
    wb_array *x = wb_reshape(rows_make(&r), count);
    wb_array *y = wb_add(wb_mul(x, 2), 1);
    double *values = malloc((size_t)count * sizeof *values), sum = 0;
    if (!values || wb_read_f64(y, values, count) != WB_OK) fail_msg("%s", wb_error_message());
    for (int64_t i = 0; i < count; i++) {
        const double want = 2 * number_at(&r, i, 0) + 1;
        sum += number_at(&r, i, 0) + 8; /* so that each chunk matters */
        if (fabs(values[i] - want) > (dtype == WB_BF16 ? 0.04 : 0))
            fail_msg("element %lld of %lld, %s%s, is %.9g, not %.9g", (long long)i,
                     (long long)count, wb_dtype_name(dtype), is_shifted ? ", shifted" : "",
                     values[i], want);
    }
    const double have = wb_item(wb_sum(wb_add(wb_cast(x, dtype == WB_F64 ? WB_F64 : WB_F32), 8)));
    if (fabs(have - sum) > 1e-5 * (double)count) fail_msg("the sum is %.9g, not %.9g", have, sum);
    free(values);
    assert_int_equal(wb_scope_close(), WB_OK);
}

/* Pieces end with the row though the next one begins with a piece. */
static void rows_of_a_wider_matrix_end_where_they_do(void **state) {
    (void)state;
    static const int64_t lengths[] = {127, 250, 381, 1001};
    for (int d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            const rows whole = {dtypes[d], 1024, 6, false},
                       part = {dtypes[d], lengths[i], 6, false};
            wb_scope_open();
            wb_array *x = wb_slice(rows_make(&whole), 0, 0, lengths[i], 1);
            for (int which = 0; which < RESULTS; which++) check_result(&part, x, (result)which);
            assert_int_equal(wb_scope_close(), WB_OK);
        }
}

static void many_elements_do(void **state) {
    (void)state;
    static const int64_t counts[] = {70001, 131072, 300000, 1100003};
    for (int d = 0; d < 4; d++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int shifted = 0; shifted < 2; shifted++)
                check_elements(dtypes[d], counts[i], shifted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_of_each_length_have_their_sums_and_maxima),
        TEST(many_rows_do),
        TEST(long_rows_do),
        TEST(rows_of_a_wider_matrix_end_where_they_do),
        TEST(many_elements_do),
    };
    return cmocka_run_group_tests_name("ops/test_row_lengths", tests, NULL, NULL);
}
