/* Positions of the largest and smallest elements, beside plain loops. */
#include "array/array.h"
#include "support/support.h"

/* The first place of a row whose number no other one exceeds; a NaN is above all. */
static int64_t first_largest(const double *x, int64_t count, int64_t step) {
    int64_t best = 0;
    for (int64_t i = 1; i < count && !isnan(x[best * step]); i++)
        if (x[i * step] > x[best * step] || isnan(x[i * step])) best = i;
    return best;
}

static double *read_all(wb_array *x) {
    double *numbers = malloc(sizeof *numbers * (size_t)(wb_count(x) + 1));
    assert_non_null(numbers);
    assert_int_equal(wb_read_f64(x, numbers, wb_count(x)), WB_OK);
    return numbers;
}

/* positions, asked for before x is computed, are those of x's numbers. */
static void check(wb_array *positions, wb_array *x, int dim, const char *what) {
    assert_non_null(positions);
    double *found = read_all(positions), *numbers = read_all(x);
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < dim; d++) inner *= wb_size(x, d);
    for (int d = dim + 1; d < wb_ndim(x); d++) outer *= wb_size(x, d);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const double *row = numbers + o * inner * wb_size(x, dim) + i;
            const int64_t wanted = first_largest(row, wb_size(x, dim), inner);
            const double got = found[o * inner + i];
            if (got != (double)wanted)
                fail_msg("%s, dimension %d of %s: %g, not %lld", what, dim, wb_text_of(x), got,
                         (long long)wanted);
        }
    free(found), free(numbers);
}

static const int64_t sizes[][3] = {{7, 16, 1}, {16, 7, 1},   {10, 64, 1},  {3, 5, 7},
                                   {1, 1, 1},  {100, 3, 2},  {1000, 8, 1}, {2, 1300, 3},
                                   {0, 4, 2},  {5000, 2, 1}, {3, 2, 1025}};

static void positions_of_every_type(void **state) {
    static const wb_dtype dtypes[] = {WB_F32, WB_F64, WB_F16, WB_BF16,
                                      WB_I32, WB_I64, WB_U8,  WB_BOOL};
    test_random r = {test_seed()};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
            for (int dim = 0; dim < 3; dim++) {
                if (sizes[s][dim] == 0 || (dtypes[t] == WB_F64 && widest() != WB_F64)) continue;
                wb_scope_open();
                /* few different numbers: ties */
                const double low = dtypes[t] == WB_U8 || dtypes[t] == WB_BOOL ? 0 : -40;
                wb_array *x =
                    wb_cast(wb_round(array_random(&r, WB_F32, low, 40, 3, sizes[s])), dtypes[t]);
                check(wb_argmax(x, dim), x, dim, wb_dtype_name(dtypes[t]));
                wb_scope_close();
            }
}

/* What a fused program would round in one way for the largest, and in another for the place. */
static wb_array *product_and_sum(wb_array *x, wb_array *w, wb_array *b) {
    return wb_add(wb_mul(x, w), b);
}
static wb_array *difference_of_products(wb_array *x, wb_array *w, wb_array *b) {
    (void)w, (void)b;
    return wb_sub(wb_mul_number(x, 0.7), wb_square(x));
}
static wb_array *shares(wb_array *x, wb_array *w, wb_array *b) {
    return wb_mul(wb_softmax(product_and_sum(x, w, b)), w);
}

static void positions_of_recipes(void **state) {
    static wb_array *(*const recipes[])(wb_array *, wb_array *, wb_array *) = {
        product_and_sum, difference_of_products, shares};
    test_random r = {test_seed() + 1};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t k = 0; k < 3; k++)
            for (int dim = 0; dim < 3; dim++)
                for (int reads = 0; reads < 3; reads++) {
                    if (sizes[s][dim] == 0) continue;
                    wb_scope_open();
                    wb_array *x = array_random(&r, WB_F32, -1, 1, 3, sizes[s]);
                    wb_array *w = array_random(&r, WB_F32, -1, 1, 3, sizes[s]);
                    wb_array *y = recipes[k](x, w, array_random(&r, WB_F32, -1, 1, 0, NULL));
                    if (reads == 1) assert_int_equal(wb_eval(wb_maximum_dims(y, dim)), WB_OK);
                    if (reads == 2 && wb_count(y)) assert_true(isfinite(wb_item(wb_maximum(y))));
                    wb_array *place = wb_argmax(y, dim);
                    /* numbers at the places, in one plan with them */
                    wb_array *gap = wb_sub(wb_take_along(y, place, dim), wb_maximum_dims(y, dim));
                    double *gaps = read_all(wb_abs(gap));
                    for (int64_t i = 0; i < wb_count(gap); i++) assert_true(gaps[i] < 1e-5);
                    free(gaps);
                    check(place, y, dim, "a recipe");
                    wb_scope_close();
                }
}

static void the_smallest_too(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(3, NAN, -1, 2, 5, -7), 3, 2);
    assert_values(wb_argmin(x, 0), 0, 1, 2);
    assert_values(wb_argmin(x, 1), 0, 1, 0, 1);
    const uint8_t bytes[] = {3, 0, 255};
    assert_values(wb_argmin(wb_from(WB_U8, bytes, 3), 0), 0, 1);
    const int32_t whole[] = {5, INT32_MIN, 7};
    assert_values(wb_argmin(wb_from(WB_I32, whole, 3), 0), 0, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(positions_of_every_type), TEST(positions_of_recipes),
                                       TEST(the_smallest_too)};
    return cmocka_run_group_tests_name("ops/test_argmax", tests, NULL, NULL);
}
