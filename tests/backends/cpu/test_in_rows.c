/* Operands and results that lie in rows with others between them: slices, and parts of a concat.
 * Rows of every length, some of which are read and written where they lie. */
#include "support/support.h"

enum { MOST = 1100, COLUMNS = 7, BEFORE = 3, BEHIND = 2 };

typedef wb_array *formula(wb_array *x, wb_array *row);
typedef double reference(double x, double row);

static wb_array *of_a_row(wb_array *x, wb_array *row) { return wb_add(wb_mul(x, row), row); }
static double of_a_row_ref(double x, double row) { return x * row + row; }

static wb_array *with_numbers(wb_array *x, wb_array *row) {
    return wb_sub(wb_number(3), wb_mul(wb_max(x, wb_number(1)), wb_sub(row, wb_number(2))));
}
static double with_numbers_ref(double x, double row) { return 3 - fmax(x, 1) * (row - 2); }

static wb_array *by_comparison(wb_array *x, wb_array *row) {
    return wb_select(wb_gt(x, row), wb_neg(x), wb_mul(x, x));
}
static double by_comparison_ref(double x, double row) { return x > row ? -x : x * x; }

static wb_array *as_it_is(wb_array *x, wb_array *row) {
    (void)row;
    return x;
}
static double as_it_is_ref(double x, double row) {
    (void)row;
    return x;
}

static const struct row {
    const char *name;
    formula *formula;
    reference *reference;
} rows[] = {
    {"with a row that all share", of_a_row, of_a_row_ref},
    {"with numbers before and behind", with_numbers, with_numbers_ref},
    {"with another type between", by_comparison, by_comparison_ref},
    {"without anything done", as_it_is, as_it_is_ref},
};

static const int64_t lengths[] = {1, 15, 16, 48, 63, 64, 65, 80, 128, 200, 512, 1008, 1024, 1040};
static const wb_dtype types[] = {WB_F32, WB_F64, WB_I32, WB_I64};

static double number(int64_t i) { return (double)(i * 37 % 11 - 4); }

/* x: the rows between BEFORE and BEHIND others. */
static wb_array *slice_of(wb_dtype dtype, int64_t n) {
    static double numbers[(MOST + BEFORE + BEHIND) * COLUMNS];
    const int64_t all = n + BEFORE + BEHIND;
    for (int64_t i = 0; i < all * COLUMNS; i++) numbers[i] = number(i);
    wb_array *whole = array_of(dtype, numbers, 2, (const int64_t[]){all, COLUMNS});
    return wb_slice(whole, 0, BEFORE, BEFORE + n, 1);
}

static double element(int64_t n, int64_t i, int64_t column) {
    return number(BEFORE + i + column * (n + BEFORE + BEHIND));
}

static void check(const struct row *row, wb_dtype dtype, int64_t n) {
    static double first[MOST], got[(2 * MOST) * COLUMNS];
    for (int64_t i = 0; i < n; i++) first[i] = number(i * 3 + 1);
    wb_array *x = slice_of(dtype, n), *r = array_of(dtype, first, 2, (const int64_t[]){n, 1});
    wb_array *y = wb_concat(0, row->formula(x, r), row->formula(wb_neg(x), r));
    assert_int_equal(wb_read_f64(y, got, 2 * n * COLUMNS), WB_OK);
    for (int64_t c = 0; c < COLUMNS; c++)
        for (int64_t i = 0; i < 2 * n; i++) {
            const double at = element(n, i % n, c),
                         wanted = row->reference(i < n ? at : -at, first[i % n]);
            if (got[c * 2 * n + i] != wanted)
                fail_msg("%s, rows of %d: (%d, %d) is %g, not %g", row->name, (int)n, (int)i,
                         (int)c, got[c * 2 * n + i], wanted);
        }
}

static void gives_what_it_says(void **state) {
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            check(*state, types[t], lengths[l]);
}

/* A product whose tiles are parts of columns: what follows reads and writes a part of its rows. */
static void behind_a_product(void **state) {
    enum { ROWS_ = 320, INNER = 3, N = 9 };
    static double a[ROWS_ * INNER], b[INNER * N], bias[ROWS_], got[2 * ROWS_ * N];
    (void)state;
    for (int i = 0; i < ROWS_ * INNER; i++) a[i] = number(i);
    for (int i = 0; i < INNER * N; i++) b[i] = number(i + 5);
    for (int i = 0; i < ROWS_; i++) bias[i] = number(i + 2);
    wb_array *w = array_of(WB_F32, a, 2, (const int64_t[]){ROWS_, INNER});
    wb_array *x = array_of(WB_F32, b, 2, (const int64_t[]){INNER, N});
    wb_array *c = array_of(WB_F32, bias, 1, (const int64_t[]){ROWS_});
    wb_array *z = slice_of(WB_F32, ROWS_);
    wb_array *y = wb_add(wb_add(wb_matmul(w, x), c), wb_pad(z, 1, 0, N - COLUMNS, 0));
    assert_int_equal(wb_read_f64(wb_concat(0, y, y), got, 2 * ROWS_ * N), WB_OK);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < 2 * ROWS_; i++) {
            const int row = i % ROWS_;
            double wanted = bias[row] + (j < COLUMNS ? element(ROWS_, row, j) : 0);
            for (int k = 0; k < INNER; k++) wanted += a[row + k * ROWS_] * b[k + j * INNER];
            assert_true(got[j * 2 * ROWS_ + i] == wanted);
        }
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[ROWS + 1];
    for (int i = 0; i < ROWS; i++) tests[i] = TEST_ROW(&rows[i], gives_what_it_says);
    tests[ROWS] = (struct CMUnitTest)TEST(behind_a_product);
    return cmocka_run_group_tests_name("in rows", tests, NULL, NULL);
}
