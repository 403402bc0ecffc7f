/* src/show/show_array.c and number.c */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber/ops.h>
#include <weber/show.h>

#include "support/scoped.h"

/* What is wanted says "on CPU" for the device of the tests. */
static void assert_shown(wb_array *x, const char *wanted) {
    const char *place = strstr(wanted, " on CPU");
    char here[1024];
    assert_non_null(place);
    (void)snprintf(here, sizeof here, "%.*s on %s%s", (int)(place - wanted), wanted,
                   wb_device_name(wb_default_device()), place + strlen(" on CPU"));
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(wb_show_array(file, x), WB_OK);
    (void)fclose(file);
    assert_string_equal(text, here);
    free(text);
}

static void columns_are_aligned_at_the_point(void **state) {
    (void)state;
    const float x[] = {0.433884f, -0.459193f, -0.541064f, 0.229779f, -1.95972f, -1.40102f};
    assert_shown(wb_from(WB_F32, x, 3, 2), "3×2 Array{f32} on CPU:\n"
                                           "  0.433884   0.229779\n"
                                           " -0.459193  -1.95972\n"
                                           " -0.541064  -1.40102\n");
    assert_shown(wb_vector(1, 10, 0.5f, NAN), "4-element Array{f32} on CPU:\n"
                                              "   1.0\n"
                                              "  10.0\n"
                                              "   0.5\n"
                                              " NaN\n");
    assert_shown(wb_from(WB_I64, ((const int64_t[]){1, -20, INT64_MIN, 4}), 2, 2),
                 "2×2 Array{i64} on CPU:\n"
                 "   1  -9223372036854775808\n"
                 " -20                     4\n");
}

static void numbers_look_as_in_julia(void **state) {
    (void)state;
    const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.333333"},
        {-1.5, "-1.5"},
        {123456, "123456.0"},
        {1234567, "1.23457e6"},
        {1e6, "1.0e6"},
        {999999.7, "1.0e6"},
        {1e-4, "0.0001"},
        {1e-5, "1.0e-5"},
        {1.25e-10, "1.25e-10"},
        {1e300, "1.0e300"},
        {HUGE_VAL, "Inf"},
        {-HUGE_VAL, "-Inf"},
        {(double)NAN, "NaN"},
        {12345.678, "12345.7"},
        {0.00123456789, "0.00123457"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[128];
        (void)snprintf(wanted, sizeof wanted, "0-dimensional Array{f64} on CPU: %s\n",
                       rows[i].text);
        assert_shown(wb_scalar(WB_F64, rows[i].value), wanted);
    }
}

static void narrow_types_show_the_digits_they_have(void **state) {
    (void)state;
    assert_shown(
        wb_from(WB_F16, ((const uint16_t[]){0x2E66, 0x3C00, 0x7BFF, 0x0001, 0xFC00}), 5),
        "5-element Array{f16} on CPU:\n     0.1\n     1.0\n 65500.0\n     6.0e-8\n  -Inf\n");
    assert_shown(wb_from(WB_BF16, ((const uint16_t[]){0x3DCD, 0x4049, 0x8000}), 3),
                 "3-element Array{bf16} on CPU:\n"
                 "  0.1\n"
                 "  3.14\n"
                 " -0.0\n");
    assert_shown(wb_from(WB_BOOL, ((const uint8_t[]){1, 0}), 1, 2),
                 "1×2 Array{bool} on CPU:\n 1  0\n");
    assert_shown(wb_from(WB_U8, ((const uint8_t[]){255, 7}), 2),
                 "2-element Array{u8} on CPU:\n 255\n   7\n");
}

static void the_middle_of_long_columns_is_left_out(void **state) {
    (void)state;
    assert_shown(wb_iota(WB_I32, 0, 100), "100-element Array{i32} on CPU:\n"
                                          "  0\n  1\n  2\n  3\n  4\n  5\n  6\n  7\n  8\n  9\n  ⋮\n"
                                          " 91\n 92\n 93\n 94\n 95\n 96\n 97\n 98\n 99\n");
}

static void the_middle_of_long_rows_is_left_out(void **state) {
    (void)state;
    assert_shown(wb_iota(WB_I32, 1, 2, 100),
                 "2×100 Array{i32} on CPU:\n"
                 " 0  1  2  3  4  5  6  7  8  9  10  …  91  92  93  94  95  96  97  98  99\n"
                 " 0  1  2  3  4  5  6  7  8  9  10     91  92  93  94  95  96  97  98  99\n");
    assert_shown(wb_iota(WB_I32, 1, 1, 26),
                 "1×26 Array{i32} on CPU:\n"
                 " 0  1  2  3  4  5  6  7  8  9  10  …  17  18  19  20  21  22  23  24  25\n");
    assert_shown(wb_iota(WB_I32, 1, 1, 22),
                 "1×22 Array{i32} on CPU:\n"
                 " 0  1  2  3  4  5  6  7  8  9  10  11  12  13  14  15  16  17  18  19  20  21\n");
}

static void large_matrices_have_dots_both_ways(void **state) {
    (void)state;
    char text[8192] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_int_equal(wb_show_array(file, wb_zeros(WB_F32, 1000, 1000)), WB_OK);
    (void)fclose(file);
    assert_non_null(strstr(text, "\n ⋮                        ⋮         ⋱  "));
    int lines = 0;
    for (const char *at = text; *at; at++) lines += *at == '\n';
    assert_int_equal(lines, 21);
}

static void slices_are_numbered_from_one(void **state) {
    (void)state;
    assert_shown(wb_reshape(wb_vector(1, 2, 3, 4, 5, 6, 7, 8), 2, 2, 1, 2),
                 "2×2×1×2 Array{f32} on CPU:\n"
                 "[:, :, 1, 1] =\n 1.0  3.0\n 2.0  4.0\n\n"
                 "[:, :, 1, 2] =\n 5.0  7.0\n 6.0  8.0\n");
    assert_shown(wb_iota(WB_I32, 2, 1, 1, 9),
                 "1×1×9 Array{i32} on CPU:\n"
                 "[:, :, 1] =\n 0\n\n[:, :, 2] =\n 1\n\n[:, :, 3] =\n 2\n\n⋮\n\n"
                 "[:, :, 8] =\n 7\n\n[:, :, 9] =\n 8\n");
}

static void empty_arrays_have_a_header_only(void **state) {
    (void)state;
    assert_shown(wb_zeros(WB_F32, 3, 0), "3×0 Array{f32} on CPU\n");
    assert_shown(wb_zeros(WB_U8, 0), "0-element Array{u8} on CPU\n");
}

static void views_and_pending_arrays_are_computed(void **state) {
    (void)state;
    wb_array *x = wb_add(wb_vector(1, 2, 3), wb_vector(1, 1, 1));
    assert_shown(wb_flip(x, 0), "3-element Array{f32} on CPU:\n 4.0\n 3.0\n 2.0\n");
    assert_shown(wb_transpose(x), "1×3 Array{f32} on CPU:\n 2.0  3.0  4.0\n");
}

static void null_is_an_error(void **state) {
    (void)state;
    assert_int_equal(wb_show_array(stdout, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "x is NULL");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(columns_are_aligned_at_the_point),       TEST(numbers_look_as_in_julia),
        TEST(narrow_types_show_the_digits_they_have), TEST(the_middle_of_long_columns_is_left_out),
        TEST(the_middle_of_long_rows_is_left_out),    TEST(large_matrices_have_dots_both_ways),
        TEST(slices_are_numbered_from_one),           TEST(empty_arrays_have_a_header_only),
        TEST(views_and_pending_arrays_are_computed),  TEST(null_is_an_error),
    };
    return cmocka_run_group_tests_name("show_array", tests, NULL, NULL);
}
