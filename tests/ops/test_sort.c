/* sort, argsort, top_k, take_along: against a stable sort of the C library's kind, of all types,
 * dimensions and sizes; NaN, -0 and equal numbers. */
#include "support/support.h"

static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};

static void orders_by_hand(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {3, 1, 2}, {0, 5, 4}); /* in memory 3 0 1 5 2 4 */
    assert_values(wb_sort(x, 0, false), 0, 0, 3, 1, 5, 2, 4);
    assert_values(wb_sort(x, 1, false), 0, 1, 0, 2, 4, 3, 5);
    assert_values(wb_sort(x, -1, true), 0, 3, 5, 2, 4, 1, 0);
    assert_values(wb_argsort(x, 1, false), 0, 1, 0, 2, 2, 0, 1);
    assert_int_equal(wb_dtype_of(wb_argsort(x, 1, false)), WB_I64);
    assert_values(wb_sort(wb_transpose(x), 0, false), 0, 1, 2, 3, 0, 4, 5);
    for (int t = 0; t < 7; t++) {
        wb_array *y = wb_cast(wb_vector(3, 1, 2, 1, 0), types[t]);
        assert_values(wb_sort(y, 0, false), 0, 0, 1, 1, 2, 3);
        assert_values(wb_argsort(y, 0, true), 0, 0, 2, 1, 3, 4);
        assert_int_equal(wb_dtype_of(wb_sort(y, 0, true)), types[t]);
    }
    wb_array *b = wb_vector_of(WB_BOOL, 1, 0, 1, 0);
    assert_values(wb_argsort(b, 0, false), 0, 1, 3, 0, 2);
    assert_values(wb_sort(b, 0, true), 0, 1, 1, 0, 0);
    wb_array *wide = wb_vector_of(WB_I64, INT64_MAX, INT64_MIN, 0, INT64_MAX - 1);
    assert_values(wb_argsort(wide, 0, false), 0, 1, 2, 3, 0);
}

static void what_is_no_number_is_largest(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        wb_array *x = wb_cast(wb_vector(NAN, 1, INFINITY, -NAN, -INFINITY, 0, -0.0f), types[t]);
        assert_values(wb_argsort(x, 0, false), 0, 4, 5, 6, 1, 2, 0, 3);
        assert_values(wb_argsort(x, 0, true), 0, 0, 3, 2, 1, 5, 6, 4);
        assert_values(wb_argsort(wb_vector(-0.0f, 0, -0.0f), 0, false), 0, 0, 1, 2);
    }
}

static void nothing_and_one_are_sorted(void **state) {
    (void)state;
    assert_sizes(wb_sort(wb_zeros(WB_F32, 0, 3), 0, false), 0, 3);
    assert_int_equal(wb_eval(wb_argsort(wb_zeros(WB_F32, 3, 0), 0, true)), WB_OK);
    assert_values(wb_sort(wb_vector(7), 0, true), 0, 7);
    assert_values(wb_argsort(wb_ones(WB_F32, 1, 2), 0, false), 0, 0, 0);
}

/* ---- against insertion ---- */

typedef struct pair {
    double key;
    int64_t place;
} pair;

static bool is_before(const pair *a, const pair *b, bool is_descending) {
    return is_descending ? a->key > b->key : a->key < b->key;
}

static void insert_all(int64_t n, pair *list, bool is_descending) {
    for (int64_t i = 1; i < n; i++) {
        const pair x = list[i];
        int64_t at = i;
        for (; at > 0 && is_before(&x, &list[at - 1], is_descending); at--) list[at] = list[at - 1];
        list[at] = x;
    }
}

static void check_lines(wb_array *x, const double *numbers, const int64_t *sizes,
                        bool is_descending) {
    const int64_t count = sizes[0] * sizes[1] * sizes[2], n = sizes[1];
    double *values = malloc(sizeof *values * (size_t)count * 2), *places = values + count;
    pair *list = malloc(sizeof *list * (size_t)n);
    assert_true(values && list);
    assert_int_equal(wb_read_f64(wb_sort(x, 1, is_descending), values, count), WB_OK);
    assert_int_equal(wb_read_f64(wb_argsort(x, 1, is_descending), places, count), WB_OK);
    for (int64_t line = 0; line < sizes[0] * sizes[2]; line++) {
        const int64_t first = line % sizes[0] + line / sizes[0] * sizes[0] * n;
        for (int64_t i = 0; i < n; i++) list[i] = (pair){numbers[first + i * sizes[0]], i};
        insert_all(n, list, is_descending);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = first + i * sizes[0];
            if (values[at] != list[i].key || (int64_t)places[at] != list[i].place)
                fail_msg("(%lld, %lld, %lld): place %lld is %g from %g, not %g from %lld",
                         (long long)sizes[0], (long long)n, (long long)sizes[2], (long long)i,
                         values[at], places[at], list[i].key, (long long)list[i].place);
        }
    }
    free(values);
    free(list);
}

static void lines_of_all_lengths(void **state) {
    (void)state;
    static const int64_t lists[][3] = {{1, 31, 1},   {1, 32, 2},   {3, 33, 2},  {1, 255, 3},
                                       {2, 256, 1},  {1, 257, 1},  {70, 5, 3},  {1, 2049, 1},
                                       {2, 2500, 2}, {1, 5000, 1}, {5000, 3, 1}};
    test_random r = {test_seed()};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const int64_t count = lists[k][0] * lists[k][1] * lists[k][2];
        double *numbers = malloc(sizeof *numbers * (size_t)count);
        assert_non_null(numbers);
        for (int64_t i = 0; i < count; i++) /* with many equal ones */
            numbers[i] = (double)random_below(&r, k % 2 ? 20 : 100000);
        wb_array *x = array_of(k % 3 ? WB_F32 : WB_I32, numbers, 3, lists[k]);
        check_lines(x, numbers, lists[k], false);
        check_lines(x, numbers, lists[k], true);
        free(numbers);
    }
}

/* ---- the largest, and values at positions ---- */

static void the_largest_and_where_they_are(void **state) {
    (void)state;
    wb_array *x = wb_matrix(4, {3, 1, 2, 3}, {0, NAN, 4, -1}), *at;
    assert_values(wb_top_k(x, 2, 1, &at), 0, 3, NAN, 3, 4);
    assert_values(at, 0, 0, 1, 3, 2);
    assert_sizes(at, 2, 2);
    assert_values(wb_top_k(x, 1, 0, NULL), 0, 3, NAN, 4, 3);
    assert_sizes(wb_top_k(x, 0, 1, &at), 2, 0);
    wb_array *y = wb_vector(1, 5, 3), *g[1];
    wb_array *l = wb_sum(wb_mul(wb_top_k(y, 2, 0, NULL), wb_vector(10, 20)));
    assert_int_equal(wb_gradient_of(l, 1, &y, g), WB_OK);
    assert_values(g[0], 0, 0, 10, 20);
    l = wb_sum(wb_mul(wb_sort(y, 0, false), wb_vector(1, 2, 3)));
    assert_int_equal(wb_gradient_of(l, 1, &y, g), WB_OK);
    assert_values(g[0], 0, 1, 3, 2);
}

static void values_are_taken_along_a_dimension(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, 6});
    wb_array *index = wb_matrix_of(WB_I32, 2, {2, 0}, {1, 1});
    assert_values(wb_take_along(x, index, 1), 0, 3, 5, 1, 5);
    assert_values(wb_take_along(x, wb_matrix_of(WB_I64, 3, {1, 0, 1}), -2), 0, 4, 2, 6);
    assert_values(wb_take_along(x, wb_argmax(x, 0), 0), 0, 4, 5, 6);
    assert_sizes(wb_take_along(x, wb_zeros(WB_I32, 2, 0), 1), 2, 0);
    wb_array *late = wb_add_number(wb_matrix_of(WB_I32, 1, {0}, {3}), 0);
    wb_array *bad = wb_take_along(x, late, 1);
    assert_int_equal(with_late(wb_eval(bad)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "take_along: index 3 at place 1 is not in 0 .. 2");
}

static void sort_step(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    (void)context;
    outputs[0] = carries[0] = wb_sort(wb_add(carries[0], inputs[0]), 0, false);
}

/* The loop written by hand, and its gradient. */
static void steps_of_a_scan_are_sorted(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {3, 1, 2}, {0, 5, 4}), *h = wb_zeros(WB_F32, 2), *y[1], *g[2];
    wb_array *carry = h, *by_hand[3];
    for (int t = 0; t < 3; t++) {
        wb_array *step = wb_reshape(wb_slice(x, 1, t, t + 1, 1), 2);
        by_hand[t] = carry = wb_sort(wb_add(carry, step), 0, false);
    }
    assert_int_equal(wb_scan(sort_step, NULL, 1, &h, 1, &x, 1, y), WB_OK);
    assert_values(y[0], 0, 0, 3, 1, 8, 3, 12);
    wb_array *weight = wb_vector(1, 2);
    assert_int_equal(wb_gradient_of(wb_sum(wb_mul(weight, h)), 1, &x, g), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(wb_mul(weight, by_hand[2])), 1, &x, g + 1), WB_OK);
    assert_true(wb_approx(g[0], g[1], 0, 0, NULL, 0));
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3), *at = x;
    assert_null(wb_sort(x, 2, false));
    assert_error(WB_ERROR_ARGUMENT, "sort: dimension 2 is outside an array of 2 dimensions");
    assert_null(wb_argsort(x, -3, false));
    assert_error(WB_ERROR_ARGUMENT, "argsort: dimension -3 is outside an array of 2 dimensions");
    assert_null(wb_top_k(x, 4, 1, &at));
    assert_null(at);
    assert_error(WB_ERROR_ARGUMENT,
                 "top_k: k must be between 0 and 3, the size of dimension 1 of (2, 3), got 4");
    assert_null(wb_top_k(x, -1, 0, NULL));
    assert_error(WB_ERROR_ARGUMENT, "got -1");
    assert_null(wb_take_along(x, wb_zeros(WB_F32, 2, 3), 0));
    assert_error(WB_ERROR_DTYPE, "take_along: the index must have an integer type, got f32");
    assert_null(wb_take_along(x, wb_zeros(WB_I32, 1, 3), 1));
    assert_error(WB_ERROR_SHAPE, "take_along: the index must have the sizes of x (2, 3) but for "
                                 "dimension 1, got (1, 3)");
    assert_null(wb_take_along(x, NULL, 1));
    assert_error(WB_ERROR_ARGUMENT, "take_along: index is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(orders_by_hand),
                                       TEST(what_is_no_number_is_largest),
                                       TEST(nothing_and_one_are_sorted),
                                       TEST(lines_of_all_lengths),
                                       TEST(the_largest_and_where_they_are),
                                       TEST(values_are_taken_along_a_dimension),
                                       TEST(steps_of_a_scan_are_sorted),
                                       TEST(mistakes_are_named)};
    return cmocka_run_group_tests_name("ops/test_sort", tests, NULL, NULL);
}
