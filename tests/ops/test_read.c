/* src/evaluate/read.c: getting numbers out of arrays */
#include "support/support.h"

typedef struct row {
    const char *name;
    wb_dtype dtype;
    uint64_t bits[3];
    double wanted[3];
} row;

/* The numbers in memory, and what they say. */
static const row rows[] = {
    {"f32", WB_F32, {0x3f800000, 0xc0200000, 0x00000001}, {1, -2.5, 0x1p-149}},
    {"f64", WB_F64, {0x3ff0000000000000, 0xc004000000000000, 1}, {1, -2.5, 0x1p-1074}},
    {"f16", WB_F16, {0x3c00, 0xc100, 0x0001}, {1, -2.5, 0x1p-24}},
    {"largest and infinite f16",
     WB_F16,
     {0x7bff, 0x7c00, 0xfc00},
     {65504, (double)INFINITY, -(double)INFINITY}},
    {"bf16", WB_BF16, {0x3f80, 0xc020, 0x0001}, {1, -2.5, 0x1p-133}},
    {"i32", WB_I32, {1, 0x80000000, 0xffffffff}, {1, -0x1p31, -1}},
    {"i64", WB_I64, {1, 1ull << 63, ~0ull}, {1, -0x1p63, -1}},
    {"u8", WB_U8, {0, 128, 255}, {0, 128, 255}},
    {"bool", WB_BOOL, {0, 1, 1}, {0, 1, 1}},
};

static wb_array *of_bits(const row *r) {
    const size_t size = wb_dtype_size(r->dtype);
    char memory[3 * 8];
    for (size_t i = 0; i < 3; i++) memcpy(memory + i * size, &r->bits[i], size); /* little-endian */
    return wb_from(r->dtype, memory, 3);
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void every_way_of_reading(void **state) {
    const row *r = *state;
    wb_array *x = of_bits(r);
    const size_t size = wb_dtype_size(r->dtype);
    double wide[3];
    float narrow[3];
    char bytes[3 * 8], backwards[3 * 8];
    assert_int_equal(wb_read_f64(x, wide, 3), WB_OK);
    assert_int_equal(wb_read_f32(x, narrow, 3), WB_OK);
    assert_int_equal(wb_read(x, bytes, 3 * size), WB_OK);
    assert_int_equal(wb_read(wb_flip(x, 0), backwards, 3 * size), WB_OK);
    const char *borrowed = wb_read_begin(x);
    for (int i = 0; i < 3; i++) {
        assert_true(same(wide[i], r->wanted[i]));
        assert_true(same((double)narrow[i], (double)(float)r->wanted[i]));
        assert_true(same(wb_at(x, i), r->wanted[i]));
        assert_true(same(wb_item(wb_slice(x, 0, i, i + 1, 1)), r->wanted[i]));
        assert_memory_equal(bytes + i * (int)size, &r->bits[i], size);
        assert_memory_equal(backwards + (2 - i) * (int)size, &r->bits[i], size);
    }
    assert_memory_equal(borrowed, bytes, 3 * size);
    wb_read_end(x);
}

static void strided_arrays_are_read_in_order(void **state) {
    (void)state;
    wb_array *x = wb_copy(wb_reshape(wb_iota(WB_I32, 0, 24), 2, 3, 4));
    wb_array *y = wb_slice(wb_permute(x, 2, 0, 1), 0, 3, -1,
                           -2); /* (2, 2, 3): element (i, j, k) is x(j, k, 3 - 2 i) */
    int32_t bytes[12];
    float numbers[12];
    assert_int_equal(wb_read(y, bytes, sizeof bytes), WB_OK);
    assert_int_equal(wb_read_f32(y, numbers, 12), WB_OK);
    const int32_t *borrowed = wb_read_begin(y);
    for (int i = 0; i < 12; i++) {
        const int32_t wanted = (i / 2) % 2 + 2 * (i / 4) + 6 * (3 - 2 * (i % 2));
        assert_int_equal(bytes[i], wanted);
        assert_int_equal(borrowed[i], wanted);
        assert_true(numbers[i] == (float)wanted);
        assert_true(wb_at(y, i % 2, i / 2 % 2, i / 4) == wanted);
    }
    wb_read_end(y);
}

static void a_borrowed_pointer_is_the_array_itself(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3, 4);
    wb_array *tail = wb_slice(x, 0, 2, 4, 1);
    const float *all = wb_read_begin(x), *last = wb_read_begin(tail);
    if (is_on_host()) assert_ptr_equal(last, all + 2); /* elsewhere copies are read */
    assert_true(all[1] == 2 && all[2] == 3 && last[0] == 3 && last[1] == 4);
    wb_read_end(x), wb_read_end(tail);
    wb_scope_open();
    wb_array *y = wb_mul_number(x, 3);
    const float *tripled = wb_read_begin(y);
    assert_int_equal(wb_scope_close(), WB_OK); /* what is being read outlives its scope */
    assert_true(tripled[0] == 3 && tripled[3] == 12);
    wb_read_end(y);
}

/* What is read is a copy of what does not lie densely, or not with the host. */
static void what_is_being_read_outlives_its_scope(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3, 4);
    wb_scope_open();
    wb_array *y = wb_flip(wb_exp(x), 0);
    const float *first = wb_read_begin(y), *second = wb_read_begin(y);
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_scope_open();
    (void)wb_eval(wb_zeros(WB_F32, 4), wb_zeros(WB_F32, 4)); /* takes what was let go */
    assert_true(fabsf(first[0] - expf(4)) < 1e-4f && fabsf(second[3] - expf(1)) < 1e-5f);
    wb_read_end(y);
    assert_true(fabsf(first[1] - expf(3)) < 1e-4f && fabsf(second[2] - expf(2)) < 1e-5f);
    wb_read_end(y);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void empty_arrays_are_read(void **state) {
    (void)state;
    wb_array *x = wb_zeros(WB_F64, 3, 0);
    double nothing;
    assert_int_equal(wb_read_f64(x, &nothing, 0), WB_OK);
    assert_int_equal(wb_read(x, NULL, 0), WB_OK);
    assert_true(wb_approx(x, wb_ones(WB_F64, 3, 0), 0, 0, NULL, 0));
    assert_int_equal(wb_count(wb_copy(x)), 0);
}

static void reading_twice_computes_once(void **state) {
    (void)state;
    wb_array *x = wb_exp(wb_vector(1, 2, 3));
    const double first = wb_at(x, 1);
    const int64_t plans = wb_plan_status().evaluations;
    assert_true(wb_at(x, 1) == first);
    assert_true(wb_item(wb_slice(x, 0, 1, 2, 1)) == first);
    assert_int_equal(wb_plan_status().evaluations, plans);
}

static void a_copy_has_memory_of_its_own(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *y = wb_copy(x);
    assert_true(wb_read_begin(x) != wb_read_begin(y));
    wb_read_end(x), wb_read_end(y);
    assert_values(wb_copy(wb_expand(wb_scalar(WB_F64, 7), 3)), 0, 7, 7, 7);
    assert_values(wb_copy(wb_flip(x, 0)), 0, 3, 2, 1);
}

/* ---- comparing ---- */

typedef struct approx_row {
    const char *name;
    double a[2], b[2], relative, absolute;
    bool close;
    const char *where;
} approx_row;

static const approx_row approx_rows[] = {
    {"equal numbers are close", {1, 2}, {1, 2}, 0, 0, true, ""},
    {"within the relative tolerance", {1, 200}, {1, 201}, 0.01, 0, true, ""},
    {"beyond the relative tolerance", {1, 200}, {1, 203}, 0.01, 0, false, "(1): 200 and 203"},
    {"within the absolute tolerance", {0, 2}, {0.5, 2}, 0, 0.5, true, ""},
    {"beyond the absolute tolerance", {0, 2}, {0.5, 2}, 0, 0.25, false, "(0): 0 and 0.5"},
    {"NaN equals NaN", {(double)NAN, 2}, {(double)NAN, 2}, 0, 0, true, ""},
    {"NaN is no number", {(double)NAN, 2}, {1, 2}, 1, 1e9, false, "(0): nan and 1"},
    {"a number is not NaN", {1, 2}, {1, (double)NAN}, 1, 1e9, false, "(1): 2 and nan"},
    {"equal infinities are equal", {(double)INFINITY, 2}, {(double)INFINITY, 2}, 0, 0, true, ""},
    {"opposite infinities are not",
     {(double)INFINITY, 2},
     {-(double)INFINITY, 2},
     1,
     1e9,
     false,
     "(0): inf and -inf"},
    {"an infinity is no number",
     {1e308, 2},
     {(double)INFINITY, 2},
     1,
     1e9,
     false,
     "(0): 1e+308 and inf"},
    {"zeros of both signs are equal", {0, 2}, {-0.0, 2}, 0, 0, true, ""},
};

static void approx(void **state) {
    const approx_row *r = *state;
    wb_array *a = wb_from(WB_F64, r->a, 2), *b = wb_from(WB_F64, r->b, 2);
    char where[64] = "";
    assert_int_equal(wb_approx(a, b, r->relative, r->absolute, where, sizeof where), r->close);
    assert_string_equal(where, r->where);
    assert_int_equal(wb_approx(a, b, r->relative, r->absolute, NULL, 0), r->close);
}

static void the_first_differing_index_is_named(void **state) {
    (void)state;
    wb_array *a = wb_from(WB_F32, ((float[]){0, 0, 1.5f, 0, 0, 9}), 3, 2);
    wb_array *b = wb_from(WB_F64, ((double[]){0, 0, 1.25, 0, 0, 7}), 3, 2);
    char where[64] = "";
    assert_false(wb_approx(a, b, 0, 0, where, sizeof where));
    assert_string_equal(where, "(2, 0): 1.5 and 1.25");
    assert_false(wb_approx(wb_transpose(a), wb_transpose(b), 0, 0.5, where, sizeof where));
    assert_string_equal(where, "(1, 2): 9 and 7");
    char tiny[4];
    assert_false(wb_approx(a, b, 0, 0, tiny, sizeof tiny));
    assert_string_equal(tiny, "(2,");
    assert_false(wb_approx(a, wb_transpose(b), 0, 0, where, sizeof where));
    assert_string_equal(where, "sizes (3, 2) and (2, 3)");
    assert_false(wb_approx(a, wb_scalar(WB_F32, 0), 9, 9, where, sizeof where));
    assert_string_equal(where, "sizes (3, 2) and ()");
}

/* ---- refusals ---- */

static void wrong_places_are_refused(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3);
    double wide[8];
    float narrow[8];
    assert_int_equal(wb_read(x, narrow, 23), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read: (2, 3) of f32 needs 24 bytes, but there is room for 23");
    assert_int_equal(wb_read_f64(x, wide, 5), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_f64: (2, 3) has 6 elements, but there is room for 5");
    assert_int_equal(wb_read_f32(x, narrow, 7), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_f32: (2, 3) has 6 elements, but there is room for 7");
    assert_true(isnan(wb_item(x)));
    assert_error(WB_ERROR_SHAPE, "item: the array must have one element, but (2, 3) has 6");
    assert_true(isnan(wb_at(x, 2, 0)));
    assert_error(WB_ERROR_ARGUMENT, "at: there is no element (2, 0) in (2, 3)");
    assert_true(isnan(wb_at(x, -3, 0)));
    assert_error(WB_ERROR_ARGUMENT, "at: there is no element (-3, 0) in (2, 3)");
    assert_true(isnan(wb_at(x, 1)));
    assert_error(WB_ERROR_ARGUMENT, "at: there is no element (1) in (2, 3)");
}

static void nothing_is_read_from_null(void **state) {
    (void)state;
    double number;
    float narrow;
    assert_true(isnan(wb_item(NULL)));
    assert_error(WB_ERROR_ARGUMENT, "item: x is NULL");
    assert_true(isnan(wb_at(NULL, 0)));
    assert_error(WB_ERROR_ARGUMENT, "at: x is NULL");
    wb_read_end(NULL);
    assert_int_equal(wb_read(NULL, &number, 8), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read: x is NULL");
    assert_int_equal(wb_read_f64(NULL, &number, 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_f64: x is NULL");
    assert_int_equal(wb_read_f32(NULL, &narrow, 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_f32: x is NULL");
    char where[64] = "";
    assert_false(wb_approx(wb_vector(1), NULL, 0, 0, where, sizeof where));
    assert_string_equal(where, "approx: x is NULL");
    assert_error(WB_ERROR_ARGUMENT, "approx: x is NULL");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(strided_arrays_are_read_in_order),
        TEST(empty_arrays_are_read),
        TEST(reading_twice_computes_once),
        TEST(a_copy_has_memory_of_its_own),
        TEST(the_first_differing_index_is_named),
        TEST(wrong_places_are_refused),
        TEST(nothing_is_read_from_null),
        TEST(a_borrowed_pointer_is_the_array_itself),
        TEST(what_is_being_read_outlives_its_scope),
    };
    ADD_ROWS(&tests, rows, every_way_of_reading);
    ADD_ROWS(&tests, approx_rows, approx);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_read", &tests, NULL, NULL);
}
