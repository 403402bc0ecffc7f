/* Rows of every length: short ones side by side in a tile, whole ones, those that a tile cannot
 * hold; what is computed of a row's number and its elements; a NaN wherever it is. */
#include "device/device.h"
#include "loops.h"
#include "support/support.h"

_Static_assert((int)WB_CPU_SIDE_SUM_ROW <= (int)WB_WHOLE_ROW, "side sums see whole rows");

enum { MOST = 9000, ROW_COUNT = 3, LARGEST = 1228800 };

typedef wb_array *formula(wb_array *x, wb_array *mean, wb_array *largest);
typedef double reference(double x, double mean, double largest);

static wb_array *yes(wb_array *x, wb_array *mean, wb_array *largest) {
    return wb_select(wb_gt(x, mean), mean, largest);
}
static double yes_ref(double x, double mean, double largest) { return x > mean ? mean : largest; }

static wb_array *below(wb_array *x, wb_array *mean, wb_array *largest) {
    return wb_mul(wb_sub(largest, x), wb_sub(x, mean));
}
static double below_ref(double x, double mean, double largest) {
    return (largest - x) * (x - mean);
}

static wb_array *fused(wb_array *x, wb_array *mean, wb_array *largest) {
    return wb_sub(wb_add(wb_mul(x, mean), largest), wb_mul(x, wb_number(2)));
}
static double fused_ref(double x, double mean, double largest) {
    return x * mean + largest - 2 * x;
}

/* Row values alone, which are nevertheless wanted at each element. */
static wb_array *numbers(wb_array *x, wb_array *mean, wb_array *largest) {
    return wb_add(wb_mul(mean, largest), wb_mul(x, wb_number(0)));
}
static double numbers_ref(double x, double mean, double largest) {
    (void)x;
    return mean * largest;
}

static wb_array *other_type(wb_array *x, wb_array *mean, wb_array *largest) {
    return wb_add(wb_cast(wb_cast(largest, WB_I32), WB_F32), wb_add(wb_exp(mean), x));
}
static double other_type_ref(double x, double mean, double largest) {
    return (double)(int)largest + (exp(mean) + x);
}

static const struct row {
    const char *name;
    formula *formula;
    reference *reference;
} rows[] = {
    {"a row's numbers as the choices of a select", yes, yes_ref},
    {"a row's numbers before and behind", below, below_ref},
    {"a row's numbers in products and sums", fused, fused_ref},
    {"a row's numbers by each other", numbers, numbers_ref},
    {"a row's numbers in another type", other_type, other_type_ref},
};

static const int64_t lengths[] = {1,    2,    15,   16,   17,   64,   100,  511,  512, 513,
                                  1000, 1024, 1025, 2047, 2048, 4095, 4096, 4097, MOST};

static void fill(int64_t count, float *x) {
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i * 37 % 101) / 16 - (float)(i % 7);
}

static void want(const struct row *row, int64_t n, const float *x, double *wanted) {
    double sum = 0, largest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i];
        largest = fmax(largest, (double)x[i]);
    }
    for (int64_t i = 0; i < n; i++)
        wanted[i] = row->reference((double)x[i], sum / (double)n, largest);
}

static void gives_what_it_says(void **state) {
    static float x[MOST * ROW_COUNT];
    static double wanted[MOST * ROW_COUNT], got[MOST * ROW_COUNT];
    const struct row *row = *state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const int64_t n = lengths[l], count = n * ROW_COUNT;
        fill(count, x);
        for (int64_t r = 0; r < ROW_COUNT; r++) want(row, n, x + r * n, wanted + r * n);
        wb_array *a = wb_from(WB_F32, x, n, ROW_COUNT);
        wb_array *y = row->formula(a, wb_mean_dims(a, 0), wb_maximum_dims(a, 0));
        assert_int_equal(wb_read_f64(y, got, count), WB_OK);
        for (int64_t i = 0; i < count; i++)
            if (!(fabs(got[i] - wanted[i]) < 1e-4))
                fail_msg("rows of %lld: number %lld is %.9g, not %.9g", (long long)n, (long long)i,
                         got[i], wanted[i]);
    }
}

/* The other rows do not see it. */
static void a_nan_is_kept(void **state) {
    enum { LONGEST = 70 };
    float x[ROW_COUNT * LONGEST];
    (void)state;
    for (int64_t n = 1; n <= LONGEST; n++)
        for (int64_t place = 0; place < n; place++) {
            for (int64_t i = 0; i < ROW_COUNT * n; i++) x[i] = (float)(i % 7) - 9;
            x[n + place] = NAN;
            double got[ROW_COUNT];
            wb_array *largest = wb_maximum_dims(wb_from(WB_F32, x, n, ROW_COUNT), 0);
            assert_int_equal(wb_read_f64(largest, got, ROW_COUNT), WB_OK);
            assert_true(!isnan(got[0]) && isnan(got[1]) && !isnan(got[2]));
        }
}

/* ---- moments ---- */

/* Of (n, 3, 2): mean and variance of each row, of each column, of each plane. */
static const struct dims {
    int ndim;
    int64_t dims[2];
} moments_over[] = {{1, {0}}, {1, {1}}, {2, {0, 1}}, {2, {0, 2}}};

static void wanted_moments(const struct dims *d, int64_t n, const double *x, double *variances) {
    const int64_t sizes[3] = {n, 3, 2};
    int64_t strides[3] = {1, n, 3 * n}, kept = 0;
    bool reduced[3] = {false};
    for (int i = 0; i < d->ndim; i++) reduced[d->dims[i]] = true;
    for (int64_t place = 0; place < 6 * n; place++) {
        int64_t at[3] = {place % n, place / n % 3, place / (3 * n)};
        bool is_first = true;
        for (int k = 0; k < 3; k++) is_first = is_first && (!reduced[k] || at[k] == 0);
        if (!is_first) continue;
        double sum = 0, squares = 0, count = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < (reduced[0] ? n : 1); i++)
                for (int64_t j = 0; j < (reduced[1] ? sizes[1] : 1); j++)
                    for (int64_t l = 0; l < (reduced[2] ? sizes[2] : 1); l++) {
                        const double v =
                            x[place + i * strides[0] + j * strides[1] + l * strides[2]];
                        if (pass == 0)
                            sum += v, count++;
                        else
                            squares += (v - sum / count) * (v - sum / count);
                    }
        variances[kept++] = squares / count;
    }
}

static void moments_are_those_of_the_definition(void **state) {
    static double x[MOST * 6], wanted[MOST * 3], got[MOST * 3];
    const wb_dtype dtypes[] = {WB_F32, WB_F64};
    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (int t = 0; t < 2; t++)
            for (size_t k = 0; k < sizeof moments_over / sizeof *moments_over; k++) {
                const int64_t n = lengths[l], sizes[3] = {n, 3, 2};
                for (int64_t i = 0; i < 6 * n; i++) x[i] = 1000 + (double)(i * 37 % 101) / 16;
                wb_array *v = wb_var_make(array_of(dtypes[t], x, 3, sizes), false,
                                          moments_over[k].ndim, moments_over[k].dims);
                wanted_moments(&moments_over[k], n, x, wanted);
                assert_int_equal(wb_read_f64(v, got, wb_count(v)), WB_OK);
                for (int64_t i = 0; i < wb_count(v); i++)
                    if (!(fabs(got[i] - wanted[i]) <= 1e-6 * (1 + wanted[i])))
                        fail_msg("(%lld, 3, 2), dims %d: variance %lld is %.9g, not %.9g",
                                 (long long)n, (int)k, (long long)i, got[i], wanted[i]);
            }
}

/* ---- sums beside the rows: of all elements, and over all rows, of what the rows' numbers make of
 * x ---- */

typedef struct beside {
    wb_dtype dtype;
    int64_t length, rows, others;
    double tolerance;
} beside;

static const beside besides[] = {
    {WB_F64, 1, 5, 3, 1e-12},     {WB_F64, 7, 1, 1, 1e-12},     {WB_F64, 100, 33, 2, 1e-12},
    {WB_F64, 4096, 3, 2, 1e-12},  {WB_F64, 4097, 3, 2, 1e-12},  {WB_F32, 64, 700, 3, 1e-5},
    {WB_F32, 1000, 130, 1, 1e-5}, {WB_F32, 4096, 300, 1, 1e-5}, {WB_BF16, 48, 9, 2, 1e-2},
    {WB_I32, 100, 40, 3, 0},      {WB_F32, 20, 0, 2, 0},
};

static wb_array *of_rows(wb_array *x) {
    return wb_mul(wb_sub(x, wb_maximum_dims(x, 0)), wb_add(x, wb_sum_dims(x, 0)));
}

static void assert_close(const beside *b, wb_array *have, wb_array *wanted) {
    static double got[MOST], want[MOST];
    const int64_t n = wb_count(have);
    assert_int_equal(wb_read_f64(have, got, n), WB_OK);
    assert_int_equal(wb_read_f64(wanted, want, n), WB_OK);
    double scale = 1;
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= b->tolerance * scale))
            fail_msg("rows of %lld, %lld of them: number %lld is %.9g, not %.9g",
                     (long long)b->length, (long long)(b->rows * b->others), (long long)i, got[i],
                     want[i]);
}

/* Sums of what the program computes, of its products, and of what it only reads, beside the same
 * sums of arrays that are there. */
static void check_beside(const beside *b, wb_array *x, bool is_all) {
    static const int64_t dims[2][3] = {{1, 2}, {0, 1, 2}};
    const int count = is_all ? 3 : 2;
    wb_array *y = of_rows(x), *product = wb_mul(y, x);
    wb_array *sum = wb_sum_make(y, count, dims[is_all]),
             *of_products = wb_sum_make(product, count, dims[is_all]),
             *of_x = wb_sum_make(x, count, dims[is_all]);
    assert_int_equal(wb_eval(y, sum, of_products, of_x), WB_OK);
    wb_array *there = of_rows(x);
    assert_int_equal(wb_eval(there), WB_OK);
    assert_close(b, sum, wb_sum_make(there, count, dims[is_all]));
    assert_close(b, of_x, wb_sum_make(x, count, dims[is_all]));
    there = wb_mul(there, x);
    assert_int_equal(wb_eval(there), WB_OK);
    assert_close(b, of_products, wb_sum_make(there, count, dims[is_all]));
}

static float x_data[LARGEST];

static void sums_beside_the_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof besides / sizeof *besides; i++) {
        const beside *b = &besides[i];
        fill(b->length * b->rows * b->others, x_data);
        wb_array *x = wb_from(WB_F32, x_data, b->length, b->rows, b->others);
        x = wb_cast(x, b->dtype);
        assert_int_equal(wb_eval(x), WB_OK);
        check_beside(b, x, false);
        check_beside(b, x, true);
    }
}

/* Pieces are cut by shape, and their sums meet in order. */
static void sums_beside_the_rows_have_the_same_bits_on_any_number_of_threads(void **state) {
    enum { LENGTH = 300, MANY = LARGEST / LENGTH };
    static float got[2][LENGTH + 1];
    const int threads = wb_threads();
    (void)state;
    fill(LENGTH * MANY, x_data);
    wb_array *x = wb_from(WB_F32, x_data, LENGTH, MANY);
    for (int t = 0; t < 2; t++) {
        wb_set_threads(t ? 3 : 1);
        wb_array *y = of_rows(x), *columns = wb_sum_dims(y, 1), *all = wb_sum(y);
        assert_int_equal(wb_eval(columns, all), WB_OK);
        assert_int_equal(wb_read(columns, got[t], LENGTH * sizeof(float)), WB_OK);
        assert_int_equal(wb_read(all, got[t] + LENGTH, sizeof(float)), WB_OK);
    }
    wb_set_threads(threads);
    assert_memory_equal(got[0], got[1], sizeof got[0]);
}

/* ---- rows that are parts of what is reduced: a channel's planes ---- */

static const int64_t planes[][3] = {{1, 40, 5},  {2, 1, 3},    {4, 960, 16},
                                    {15, 7, 4},  {16, 384, 9}, {17, 33, 2},
                                    {49, 70, 8}, {256, 24, 3}, {1000, 5, 2}};

/* (P, C, N): by each channel's mean, largest and squares' sum, and a number for each channel. */
static void want_of_planes(const int64_t *size, const float *x, double *wanted) {
    const int64_t plane = size[0], channels = size[1], step = plane * channels;
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0, largest = -INFINITY, squares = 0;
        const double count = (double)(plane * size[2]);
        for (int64_t i = 0; i < plane * size[2]; i++) {
            const double v = (double)x[i / plane * step + c * plane + i % plane];
            sum += v, largest = fmax(largest, v);
        }
        for (int64_t i = 0; i < plane * size[2]; i++) {
            const double v = (double)x[i / plane * step + c * plane + i % plane] - sum / count;
            squares += v * v;
        }
        for (int64_t i = 0; i < plane * size[2]; i++) {
            const int64_t at = i / plane * step + c * plane + i % plane;
            wanted[at] =
                ((double)x[at] - sum / count) / sqrt(squares / count + 1) * (double)(c % 5) +
                largest;
        }
    }
}

static void planes_are_rows_of_their_channel(void **state) {
    static double wanted[MOST * ROW_COUNT * 4], got[MOST * ROW_COUNT * 4];
    const int64_t dims[2] = {0, 2};
    (void)state;
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
        const int64_t *size = planes[i], count = size[0] * size[1] * size[2];
        float scales[1000];
        fill(count, x_data);
        for (int64_t c = 0; c < size[1]; c++) scales[c] = (float)(c % 5);
        want_of_planes(size, x_data, wanted);
        wb_array *x = wb_from(WB_F32, x_data, size[0], size[1], size[2]),
                 *scale = wb_from(WB_F32, scales, 1, size[1]);
        wb_array *centred = wb_sub(x, wb_mean_make(x, 2, dims));
        wb_array *variance = wb_mean_make(wb_square(centred), 2, dims);
        wb_array *norm = wb_mul(centred, wb_rsqrt(wb_add(variance, wb_number(1))));
        wb_array *y = wb_add(wb_mul(norm, scale), wb_maximum_make(x, 2, dims));
        assert_int_equal(wb_read_f64(y, got, count), WB_OK);
        for (int64_t k = 0; k < count; k++)
            if (!(fabs(got[k] - wanted[k]) < 1e-4))
                fail_msg("(%lld, %lld, %lld): number %lld is %.9g, not %.9g", (long long)size[0],
                         (long long)size[1], (long long)size[2], (long long)k, got[k], wanted[k]);
    }
}

/* Many images of few channels: the threads share the images of a tile. */
static void planes_of_many_images(void **state) {
    enum { PLANE = 4, CHANNELS = 8, IMAGES = 20000 };
    const int64_t dims[2] = {0, 2};
    double wanted[2][CHANNELS] = {{0}}, got[CHANNELS];
    (void)state;
    fill(PLANE * CHANNELS * IMAGES, x_data);
    for (int c = 0; c < CHANNELS; c++) wanted[1][c] = -INFINITY;
    for (int64_t i = 0; i < PLANE * CHANNELS * IMAGES; i++) {
        const int64_t c = i / PLANE % CHANNELS;
        wanted[0][c] += (double)x_data[i];
        wanted[1][c] = fmax(wanted[1][c], (double)x_data[i]);
    }
    wb_array *x = wb_from(WB_F32, x_data, PLANE, CHANNELS, IMAGES);
    for (int k = 0; k < 2; k++) {
        wb_array *y = k ? wb_maximum_make(x, 2, dims) : wb_sum_make(x, 2, dims);
        assert_int_equal(wb_read_f64(y, got, CHANNELS), WB_OK);
        for (int c = 0; c < CHANNELS; c++)
            assert_true(fabs(got[c] - wanted[k][c]) <= 1e-6 * fabs(wanted[k][c]));
    }
}

/* The channels of a part begin at the short end of a dimension: what is the same for all of them is
 * made for the longest. */
static void parts_begin_with_a_short_tile(void **state) {
    enum { FIRST = 100, MIDDLE = 13, LAST = 600, ALL = 16 };
    const int64_t dims[2] = {1, 2};
    double wanted[FIRST] = {0}, got[FIRST];
    float shifts[FIRST];
    (void)state;
    fill(FIRST * ALL * LAST, x_data);
    for (int c = 0; c < FIRST; c++) shifts[c] = (float)(5 * (c % 7));
    for (int64_t i = 0; i < FIRST * ALL * LAST; i++) {
        const double shifted = (double)x_data[i] - (double)shifts[i % FIRST];
        if (i / FIRST % ALL < MIDDLE) wanted[i % FIRST] += shifted * shifted;
    }
    wb_array *x = wb_slice(wb_from(WB_F32, x_data, FIRST, ALL, LAST), 1, 0, MIDDLE, 1);
    wb_array *shift = wb_from(WB_F32, shifts, FIRST, 1, 1);
    for (int threads = 1; threads <= 3; threads++) {
        wb_set_threads(threads);
        wb_array *y = wb_sum_make(wb_square(wb_sub(x, shift)), 2, dims);
        assert_int_equal(wb_read_f64(y, got, FIRST), WB_OK);
        for (int c = 0; c < FIRST; c++)
            assert_true(fabs(got[c] - wanted[c]) <= 1e-5 * fabs(wanted[c]));
    }
    wb_set_threads(0);
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[ROWS + 7];
    for (int i = 0; i < ROWS; i++) tests[i] = TEST_ROW(&rows[i], gives_what_it_says);
    tests[ROWS] = (struct CMUnitTest)TEST(a_nan_is_kept);
    tests[ROWS + 1] = (struct CMUnitTest)TEST(sums_beside_the_rows);
    tests[ROWS + 2] =
        (struct CMUnitTest)TEST(sums_beside_the_rows_have_the_same_bits_on_any_number_of_threads);
    tests[ROWS + 3] = (struct CMUnitTest)TEST(planes_are_rows_of_their_channel);
    tests[ROWS + 4] = (struct CMUnitTest)TEST(planes_of_many_images);
    tests[ROWS + 5] = (struct CMUnitTest)TEST(parts_begin_with_a_short_tile);
    tests[ROWS + 6] = (struct CMUnitTest)TEST(moments_are_those_of_the_definition);
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
