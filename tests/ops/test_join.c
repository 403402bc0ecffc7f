/* src/ops/join.c: concat, stack, pad */
#include "support/support.h"

static wb_array *counting(wb_dtype dtype, double first, int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    return wb_cast(wb_add_number(wb_reshape_make(wb_iota(WB_F64, 0, count), ndim, sizes), first),
                   dtype);
}
#define COUNTING(first, ...) counting(WB_F32, first, WB_INTS(__VA_ARGS__))

static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};

static void joins_along_each_dimension(void **state) {
    (void)state;
    for (int t = 0; t < 7; t++) {
        wb_array *a = counting(types[t], 1, 2, (int64_t[]){2, 2}),
                 *b = counting(types[t], 5, 2, (int64_t[]){2, 2});
        assert_int_equal(wb_dtype_of(wb_concat(0, a, b)), types[t]);
        assert_sizes(wb_concat(0, a, b), 4, 2);
        assert_values(wb_concat(0, a, b), 0, 1, 2, 5, 6, 3, 4, 7, 8);
        assert_values(wb_concat(1, a, b), 0, 1, 2, 3, 4, 5, 6, 7, 8);
        assert_values(wb_concat(-1, b, a), 0, 5, 6, 7, 8, 1, 2, 3, 4);
    }
}

static void bools_join(void **state) {
    (void)state;
    wb_array *x = wb_gt(wb_vector(1, -1, 2), wb_number(0));
    wb_array *y = wb_concat(0, x, wb_not(x));
    assert_int_equal(wb_dtype_of(y), WB_BOOL);
    assert_values(y, 0, 1, 0, 1, 0, 1, 0);
}

static void types_meet(void **state) {
    (void)state;
    wb_array *y = wb_concat(0, wb_ones(WB_BOOL, 1), wb_full(WB_I32, 3, 1), wb_full(WB_F16, 0.5, 2));
    assert_int_equal(wb_dtype_of(y), WB_F16);
    assert_values(y, 0, 1, 3, .5, .5);
    y = wb_stack(0, wb_full(WB_I64, 7, 2), wb_full(WB_U8, 9, 2));
    assert_int_equal(wb_dtype_of(y), WB_I64);
    assert_values(y, 0, 7, 9, 7, 9);
}

static void empty_parts_add_nothing(void **state) {
    (void)state;
    wb_array *a = COUNTING(1, 2, 1), *nothing = wb_zeros(WB_F32, 2, 0);
    assert_values(wb_concat(1, nothing, a, nothing), 0, 1, 2);
    assert_sizes(wb_concat(1, nothing, nothing), 2, 0);
    assert_int_equal(wb_eval(wb_concat(1, nothing, nothing)), WB_OK);
    assert_sizes(wb_concat(0, nothing, nothing), 4, 0);
    assert_values(wb_concat(0, a), 0, 1, 2);
}

static void thousands_join(void **state) {
    (void)state;
    enum { MANY = 3000 };
    wb_array *parts[MANY];
    for (int i = 0; i < MANY; i++)
        parts[i] = i % 2 ? wb_full(WB_F32, i, 3) : wb_mul_number(wb_ones(WB_F32, 3), i);
    wb_array *y = wb_concat_make(0, MANY, parts), *z = wb_stack_make(0, MANY, parts);
    assert_sizes(y, 3 * MANY);
    assert_sizes(z, MANY, 3);
    const float *joined = wb_read_begin(y), *stacked = wb_read_begin(z);
    for (int i = 0; i < 3 * MANY; i++)
        if (joined[i] != (float)(i / 3) || stacked[i] != (float)(i % MANY))
            fail_msg("number %d is %g and %g", i, (double)joined[i], (double)stacked[i]);
    wb_read_end(y), wb_read_end(z);
}

static void the_same_array_joins_itself(void **state) {
    (void)state;
    wb_array *a = wb_square(wb_vector(1, 2)), *g = NULL;
    assert_values(wb_concat(0, a, a, a), 0, 1, 4, 1, 4, 1, 4);
    wb_array *x = wb_vector(3, 5);
    assert_int_equal(wb_pullback(wb_concat(0, x, x), wb_vector(1, 2, 30, 40), 1, &x, &g), WB_OK);
    assert_values(g, 0, 31, 42);
}

static void stacks_along_a_new_dimension(void **state) {
    (void)state;
    wb_array *a = COUNTING(1, 2, 2), *b = COUNTING(5, 2, 2);
    assert_sizes(wb_stack(0, a, b), 2, 2, 2);
    assert_values(wb_stack(0, a, b), 0, 1, 5, 2, 6, 3, 7, 4, 8);
    assert_values(wb_stack(1, a, b), 0, 1, 2, 5, 6, 3, 4, 7, 8);
    assert_values(wb_stack(2, a, b), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    assert_values(wb_stack(-1, a, b), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    assert_sizes(wb_stack(0, wb_scalar(WB_F32, 1), wb_scalar(WB_F32, 2), wb_scalar(WB_F32, 3)), 3);
    assert_values(wb_stack(0, wb_scalar(WB_F32, 1), wb_scalar(WB_F32, 2), wb_scalar(WB_F32, 3)), 0,
                  1, 2, 3);
    assert_sizes(wb_stack(1, a), 2, 1, 2);
}

static void unstacks_what_was_stacked(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, 6}), *parts[3];
    assert_int_equal(wb_unstack(x, 1, 3, parts), WB_OK);
    assert_sizes(parts[2], 2);
    assert_values(parts[2], 0, 3, 6);
    assert_true(wb_approx(wb_stack_make(1, 3, parts), x, 0, 0, NULL, 0));
    assert_int_equal(wb_unstack(x, -2, 2, parts), WB_OK);
    assert_values(parts[1], 0, 4, 5, 6);
    assert_int_equal(wb_unstack(wb_zeros(WB_F32, 0, 3), 0, 0, parts), WB_OK);
    assert_int_equal(wb_unstack(wb_zeros(WB_F32, 0, 1), 1, 1, parts), WB_OK);
    assert_sizes(parts[0], 0);
    assert_int_equal(wb_unstack(x, 1, 2, parts), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "unstack: count must be 3, dimension 1 of (2, 3), got 2");
    assert_null(parts[0]);
    assert_int_equal(wb_unstack(x, 2, 2, parts), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "unstack: dimension 2 is outside an array of 2 dimensions");
}

static void pads_with_a_value(void **state) {
    (void)state;
    for (int t = 0; t < 7; t++) {
        wb_array *x = counting(types[t], 1, 2, (int64_t[]){2, 2}), *y = wb_pad(x, 0, 1, 2, 7);
        assert_int_equal(wb_dtype_of(y), types[t]);
        assert_sizes(y, 5, 2);
        assert_values(y, 0, 7, 1, 2, 7, 7, 7, 3, 4, 7, 7);
        assert_values(wb_pad(x, -1, 1, 0, 0), 0, 0, 0, 1, 2, 3, 4);
        assert_values(wb_pad(x, 1, 0, 0, 5), 0, 1, 2, 3, 4);
    }
    assert_values(wb_pad(wb_zeros(WB_F32, 0), 0, 1, 2, -1), 0, -1, -1, -1);
    assert_true(isinf(wb_at(wb_pad(wb_vector(1), 0, 1, 0, -(double)INFINITY), 0)));
    assert_values(wb_pad(wb_ones(WB_BOOL, 1), 0, 1, 1, 0), 0, 0, 1, 0);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    NEEDS_64_BITS(); /* the sum of fewer does not overflow */
    wb_array *huge = wb_expand(wb_scalar(WB_F32, 1), INT64_MAX / 16), *parts[40];
    for (int i = 0; i < 40; i++) parts[i] = huge;
    assert_null(wb_concat_make(0, 40, parts));
    assert_error(WB_ERROR_SHAPE,
                 "concat: (9223372036854775807) has more elements than memory can hold");
}

static void joins_of_joins(void **state) {
    (void)state;
    wb_array *a = wb_vector(1, 2), *b = wb_mul_number(a, 10), *c = wb_pad(b, 0, 1, 0, 5);
    wb_array *inner = wb_concat(0, a, c),
             *y = wb_concat(0, wb_flip(inner, 0), wb_pad(inner, 0, 0, 1, -1), b);
    assert_values(y, 0, 20, 10, 5, 2, 1, 1, 2, 5, 10, 20, -1, 10, 20);
    assert_values(wb_exp(wb_mul_number(wb_stack(1, inner, inner), 0)), 0, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                  1);
    assert_values(wb_sum_dims(wb_stack(1, inner, wb_flip(inner, 0)), 1), 0, 21, 12, 10, 12, 21);
    wb_array *rows = wb_concat(0, wb_transpose(a), wb_transpose(b)); /* [1 2; 10 20] */
    assert_values(wb_concat(1, rows, wb_transpose(rows)), 0, 1, 10, 2, 20, 1, 2, 10, 20);
    assert_values(wb_matmul(wb_concat(1, rows, rows), wb_concat(0, a, b)), 0, 55, 550);
}

static void views_and_numbers_in_memory_join(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int round = 0; round < 150; round++) {
        const int dim = (int)random_below(&r, 3), count = 1 + (int)random_below(&r, 5);
        int64_t sizes[3] = {random_below(&r, 5), 1 + random_below(&r, 5), 1 + random_below(&r, 5)},
                total = 0;
        wb_array *parts[5];
        for (int i = 0; i < count; i++) {
            sizes[dim] = random_below(&r, 5), total += sizes[dim];
            wb_array *x =
                array_random(&r, WB_F32, -1, 1, 3, (int64_t[]){sizes[2], sizes[1], sizes[0]});
            x = wb_permute(x, 2, 1, 0);
            parts[i] = random_below(&r, 2)   ? x
                       : random_below(&r, 2) ? wb_flip(x, 1)
                                             : wb_mul_number(x, 2);
        }
        wb_array *y = wb_concat_make(dim, count, parts);
        assert_int_equal(wb_size(y, dim), total);
        int64_t start = 0;
        for (int i = 0; i < count; i++) {
            wb_array *part = wb_slice(y, dim, start, start + wb_size(parts[i], dim), 1);
            assert_same_bits(part, parts[i], "a part of a join");
            start += wb_size(parts[i], dim);
        }
    }
}

static void gradients_go_back_to_the_parts(void **state) {
    (void)state;
    wb_array *a = wb_copy(COUNTING(1, 2, 1)), *b = wb_copy(COUNTING(3, 2, 2)), *g[2];
    wb_array *y = wb_concat(1, a, wb_square(b));
    assert_int_equal(wb_pullback(y, COUNTING(1, 2, 3), 2, (wb_array *[]){a, b}, g), WB_OK);
    assert_values(g[0], 0, 1, 2);
    assert_values(g[1], 0, 18, 32, 50, 72);
    assert_int_equal(wb_pullback(wb_pad(a, 0, 1, 1, 9), COUNTING(1, 4, 1), 1, &a, g), WB_OK);
    assert_values(g[0], 0, 2, 3);
    assert_int_equal(wb_pullback(wb_stack(0, a, a), COUNTING(1, 2, 2, 1), 1, &a, g), WB_OK);
    assert_values(g[0], 0, 3, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(joins_along_each_dimension),
        TEST(bools_join),
        TEST(types_meet),
        TEST(empty_parts_add_nothing),
        TEST(thousands_join),
        TEST(the_same_array_joins_itself),
        TEST(stacks_along_a_new_dimension),
        TEST(unstacks_what_was_stacked),
        TEST(pads_with_a_value),
        TEST(sizes_that_overflow_are_refused),
        TEST(joins_of_joins),
        TEST(views_and_numbers_in_memory_join),
        TEST(gradients_go_back_to_the_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
