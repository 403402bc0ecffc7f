/* Maps over long rows that are not dense, which devices walk row by row (src/program/layout.c). */
#include "support/support.h"

enum { LONG = 300, MANY = 261 };

/* 2 x(i, j) + b(i) + c(j) + y(j, i), of a part of x and a transposed y. */
static void strided_operands_are_found(void **state) {
    static const wb_dtype types[] = {WB_F32, WB_BF16, WB_I32};
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        wb_scope_open();
        wb_array *whole = wb_cast(wb_iota(WB_I32, 0, LONG + 7, MANY), types[t]);
        wb_array *x = wb_slice(wb_copy(whole), 0, 5, LONG + 5, 1);
        wb_array *b = wb_copy(wb_cast(wb_iota(WB_I32, 0, LONG), types[t]));
        wb_array *c = wb_copy(wb_cast(wb_iota(WB_I32, 1, 1, MANY), types[t]));
        wb_array *y = wb_transpose(wb_copy(wb_cast(wb_iota(WB_I32, 0, MANY, LONG), types[t])));
        wb_array *sum = wb_add(wb_mul_number(x, 2), wb_add(wb_add(b, c), y));
        double *got = malloc(sizeof *got * LONG * MANY);
        assert_int_equal(wb_read_f64(wb_cast(sum, WB_F64), got, LONG * MANY), WB_OK);
        for (int64_t j = 0; j < MANY; j++)
            for (int64_t i = 0; i < LONG; i++) {
                const double wanted = 2.0 * (double)(i + 5) + (double)i + 2.0 * (double)j;
                assert_float_equal(got[i + LONG * j], wanted, types[t] == WB_BF16 ? 16 : 0);
            }
        free(got);
        (void)wb_scope_close();
    }
}

/* Written where it lies: a part of each column. */
static void parts_of_rows_are_written(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_copy(wb_zeros(WB_F32, LONG + 9, MANY));
    wb_array *y = wb_slice_set(x, wb_copy(wb_iota(WB_F32, 0, LONG, MANY)), 0, 4, LONG + 4, 1);
    double first[LONG + 9], sum = 0;
    assert_int_equal(
        wb_read_f64(wb_cast(wb_slice(y, 1, MANY - 1, MANY, 1), WB_F64), first, LONG + 9), WB_OK);
    for (int i = 0; i < LONG + 9; i++)
        assert_float_equal(first[i], i >= 4 && i < LONG + 4 ? i - 4 : 0, 0);
    assert_int_equal(wb_read_f64(wb_sum(wb_cast(y, WB_F64)), &sum, 1), WB_OK);
    assert_float_equal(sum, MANY * (LONG * (LONG - 1) / 2.0), 0);
    (void)wb_scope_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(strided_operands_are_found),
                                       cmocka_unit_test(parts_of_rows_are_written)};
    return cmocka_run_group_tests_name("ops/test_long_rows", tests, NULL, NULL);
}
