/* src/ops/pad_self.c: paddings by the array's own elements, as NumPy's pad. */
#include <weber/gradient.h>

#include "support/support.h"

typedef wb_array *pad_fn(wb_array *x, int dim, int64_t lo, int64_t hi);

static const struct row {
    const char *name;
    pad_fn *pad;
    double wanted[12]; /* of (1, 2, 3) by 5 and 4 */
} rows[] = {
    {"edge", wb_pad_edge, {1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3}},
    {"reflect", wb_pad_reflect, {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3}},
    {"symmetric", wb_pad_symmetric, {2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1}},
    {"wrap", wb_pad_wrap, {2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};

static void elements_of_its_own_are_around_it(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++)
        for (int t = 0; t < 7; t++) {
            wb_array *x = wb_cast(wb_vector(1, 2, 3), types[t]);
            wb_array *y = rows[i].pad(x, 0, 5, 4), *wanted = wb_from(WB_F64, rows[i].wanted, 12);
            char where[100] = "";
            assert_int_equal(wb_dtype_of(y), types[t]);
            if (!wb_approx(y, wanted, 0, 0, where, sizeof where))
                fail_msg("%s: %s %s", rows[i].name, where, wb_error_message());
            y = rows[i].pad(wb_reshape(x, 1, 3, 1), -2, 5, 0);
            assert_sizes(y, 1, 8, 1);
            assert_true(wb_approx(wb_reshape(y, -1), wb_slice(wanted, 0, 0, 8, 1), 0, 0, NULL, 0));
        }
}

static void one_element_is_repeated_and_none_refused(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        char message[100];
        wb_array *one = wb_vector(7), *none = wb_zeros(WB_F32, 2, 0);
        assert_values(rows[i].pad(one, 0, 2, 1), 0, 7, 7, 7, 7);
        assert_true(rows[i].pad(one, 0, 0, 0) == one);
        assert_sizes(rows[i].pad(none, 1, 0, 0), 2, 0);
        assert_sizes(rows[i].pad(none, 0, 1, 0), 3, 0);
        assert_null(rows[i].pad(none, 1, 1, 2));
        snprintf(message, sizeof message,
                 "pad_%s: dimension 1 of (2, 0) is empty, so that no element can fill 1 places "
                 "before and 2",
                 rows[i].name);
        assert_error(WB_ERROR_SHAPE, message);
        assert_null(rows[i].pad(one, 0, -1, 2));
        assert_error(WB_ERROR_ARGUMENT, "paddings must not be negative, got -1 before and 2 after");
        assert_null(rows[i].pad(one, 0, INT64_MAX, 2));
        assert_error(WB_ERROR_SHAPE, rows[i].name);
        assert_null(rows[i].pad(one, 1, 1, 1));
        assert_error(WB_ERROR_ARGUMENT, "dimension 1 is outside an array of 1 dimensions");
        assert_null(rows[i].pad(NULL, 0, 1, 1));
        assert_error(WB_ERROR_ARGUMENT, "x is NULL");
    }
}

static wb_array *padded(void *row, int count, wb_array *const *arrays) {
    (void)count;
    return wb_square(((const struct row *)row)->pad(wb_square(arrays[0]), 1, 4, 3));
}

static void gradients_add_up(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *g[1];
    assert_int_equal(wb_gradient_of(wb_sum(wb_pad_edge(x, 0, 2, 3)), 1, &x, g), WB_OK);
    assert_values(g[0], 0, 3, 1, 4);
    for (int i = 0; i < ROWS; i++) {
        struct row row = rows[i];
        wb_array *y = wb_normal(WB_F64, 2, 3);
        if (wb_gradient_check(padded, &row, 1, &y, 2, 0) != WB_OK)
            fail_msg("%s: %s", row.name, wb_error_message());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(elements_of_its_own_are_around_it),
                                       TEST(one_element_is_repeated_and_none_refused),
                                       TEST(gradients_add_up)};
    return cmocka_run_group_tests_name("ops/test_pad_self", tests, NULL, NULL);
}
