/* src/ops/views.c, src/array/view.c: views share the memory of what they show */
#include "array/array.h"
#include "support/support.h"

/* 0, 1, 2 ... in memory */
static wb_array *stored(wb_dtype dtype, int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    return wb_copy(wb_reshape_make(wb_iota(dtype, 0, count), ndim, sizes));
}
#define STORED(...) stored(WB_F32, WB_INTS(__VA_ARGS__))

typedef wb_array *view_fn(wb_array *x); /* of x (4, 3) */

static wb_array *reshaped(wb_array *x) { return wb_reshape(x, 2, -1); }
static wb_array *with_one(wb_array *x) { return wb_unsqueeze(x, 1); }
static wb_array *turned(wb_array *x) { return wb_transpose(x); }
static wb_array *third_dimension(wb_array *x) {
    return wb_permute(wb_reshape(x, 2, 2, 3), 2, 0, -2);
}
static wb_array *columns(wb_array *x) { return wb_slice(x, 1, 1, 3, 1); }
static wb_array *every_second_row(wb_array *x) { return wb_slice(x, 0, 1, 4, 2); }
static wb_array *backwards(wb_array *x) { return wb_slice(x, 0, 3, -1, -1); }
static wb_array *backwards_by_two(wb_array *x) { return wb_slice(x, 0, 2, -1, -2); }
static wb_array *backwards_to_a_stop(wb_array *x) { return wb_slice(x, 0, 3, 1, -1); }
static wb_array *flipped(wb_array *x) { return wb_flip(x, -1); }
static wb_array *repeated(wb_array *x) { return wb_expand(wb_slice(x, 1, 0, 1, 1), 4, 2, 2); }
static wb_array *all_of_it(wb_array *x) { return wb_slice(x, 0, 0, 4, 7); }
static wb_array *nothing(wb_array *x) { return wb_slice(x, 1, 2, 2, 1); }
static wb_array *row_of_a_slice(wb_array *x) { return wb_squeeze(wb_slice(x, 0, 2, 3, 1), 0); }
static wb_array *flattened(wb_array *x) { return wb_flatten_batch(wb_reshape(x, 2, 2, 3)); }
static wb_array *reshaped_slice(wb_array *x) { return wb_reshape(wb_slice(x, 1, 1, 3, 1), 8); }
static wb_array *split_strided_rows(wb_array *x) {
    return wb_reshape(wb_slice(x, 0, 0, 4, 2), 1, 2, 3, 1);
}
static wb_array *reshaped_in_the_other_order(wb_array *x) {
    return wb_reshape(wb_transpose(x), 12);
}
static wb_array *joined_strided_columns(wb_array *x) {
    return wb_reshape(wb_slice(x, 0, 0, 2, 1), 6);
}

typedef struct row {
    const char *name;
    view_fn *view;
    int ndim;
    int64_t sizes[4], count;
    double wanted[16];
    bool is_copy;
} row;

static const row rows[] = {
    {"reshape", reshaped, 2, {2, 6}, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, false},
    {"unsqueeze", with_one, 3, {4, 1, 3}, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, false},
    {"transpose", turned, 2, {3, 4}, 12, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, false},
    {"permute", third_dimension, 3, {3, 2, 2}, 12, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, false},
    {"slice of columns", columns, 2, {4, 2}, 8, {4, 5, 6, 7, 8, 9, 10, 11}, false},
    {"slice with a step", every_second_row, 2, {2, 3}, 6, {1, 3, 5, 7, 9, 11}, false},
    {"slice backwards to the first element",
     backwards,
     2,
     {4, 3},
     12,
     {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8},
     false},
    {"slice backwards by two", backwards_by_two, 2, {2, 3}, 6, {2, 0, 6, 4, 10, 8}, false},
    {"slice backwards to a stop", backwards_to_a_stop, 2, {2, 3}, 6, {3, 2, 7, 6, 11, 10}, false},
    {"flip", flipped, 2, {4, 3}, 12, {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}, false},
    {"expand", repeated, 3, {4, 2, 2}, 16, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, false},
    {"a step beyond the end takes one", all_of_it, 2, {1, 3}, 3, {0, 4, 8}, false},
    {"an empty slice", nothing, 2, {4, 0}, 0, {0}, false},
    {"one row", row_of_a_slice, 1, {3}, 3, {2, 6, 10}, false},
    {"flatten", flattened, 2, {4, 3}, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, false},
    {"reshape of whole columns", reshaped_slice, 1, {8}, 8, {4, 5, 6, 7, 8, 9, 10, 11}, false},
    {"reshape that only adds ones",
     split_strided_rows,
     4,
     {1, 2, 3, 1},
     6,
     {0, 2, 4, 6, 8, 10},
     false},
    {"reshape across a transpose copies",
     reshaped_in_the_other_order,
     1,
     {12},
     12,
     {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11},
     true},
    {"reshape of cut columns copies", joined_strided_columns, 1, {6}, 6, {0, 1, 4, 5, 8, 9}, true},
};

static void assert_row(const row *r, wb_array *y) {
    assert_sizes_make(y, r->ndim, r->sizes);
    assert_numbers(y, r->count, r->wanted, 0);
}

static void of_numbers_in_memory(void **state) {
    const row *r = *state;
    wb_array *x = STORED(4, 3), *y = r->view(x);
    if (!r->is_copy) assert_ptr_equal(y->buffer, x->buffer);
    assert_row(r, y);
    assert_int_equal(y->buffer == x->buffer, !r->is_copy);
}

/* After its input was evaluated, also by the same plan, a view of it has the same memory. */
static void of_a_pending_array(void **state) {
    const row *r = *state;
    wb_array *x = wb_add_number(STORED(4, 3), 0), *y = r->view(x);
    assert_int_equal(wb_eval(x, y), WB_OK);
    assert_row(r, y);
    assert_int_equal(y->buffer == x->buffer, !r->is_copy);
    x = wb_add_number(STORED(4, 3), 0), y = r->view(x);
    assert_int_equal(wb_eval(x), WB_OK);
    assert_row(r, y);
    assert_int_equal(y->buffer == x->buffer, !r->is_copy);
}

static void inside_a_program(void **state) {
    const row *r = *state;
    wb_array *x = wb_add_number(STORED(4, 3), 1);
    assert_row(r, wb_add_number(r->view(x), -1));
    assert_row(r, wb_sub(wb_mul_number(r->view(x), 2), wb_add_number(r->view(x), 1)));
}

static void of_every_type(void **state) {
    const row *r = *state;
    static const wb_dtype types[] = {WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};
    for (int t = 0; t < 6; t++) {
        wb_array *x = stored(types[t], 2, (int64_t[]){4, 3}), *y = r->view(x);
        assert_int_equal(wb_dtype_of(y), types[t]);
        assert_row(r, y);
        assert_row(r, wb_copy(y));
    }
}

static void the_pullback_puts_back(void **state) {
    const row *r = *state;
    wb_array *x = stored(WB_F64, 2, (int64_t[]){4, 3}), *y = r->view(x), *g = NULL;
    wb_array *cotangent =
        wb_reshape_make(wb_add_number(wb_iota(WB_F64, 0, r->count), 1), r->ndim, r->sizes);
    assert_int_equal(wb_pullback(y, cotangent, 1, &x, &g), WB_OK);
    double wanted[12] = {0};
    for (int64_t i = 0; i < r->count; i++) wanted[(int)r->wanted[i]] += (double)(i + 1);
    assert_sizes(g, 4, 3);
    assert_numbers(g, 12, wanted, 0);
}

static void a_view_outlives_what_it_shows(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *y = wb_keep(wb_transpose(STORED(4, 3)));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(wb_slice(y, 1, 1, 2, 1), 0, 1, 5, 9);
    wb_free(y);
}

static void views_of_views(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int round = 0; round < 200; round++) {
        int64_t sizes[3] = {1 + random_below(&r, 6), 1 + random_below(&r, 6),
                            1 + random_below(&r, 6)};
        wb_array *x = stored(WB_I64, 3, sizes), *y = x,
                 *z = wb_sub(wb_add_number(x, 5), wb_number(5));
        for (int step = 0; step < 4; step++) {
            const int dim = (int)random_below(&r, 3);
            const int64_t size = wb_size(y, dim), order[3] = {dim, (dim + 1) % 3, (dim + 2) % 3};
            const int64_t start = size ? random_below(&r, size) : 0, by = 1 + random_below(&r, 3);
            switch (random_below(&r, 4)) {
            case 0:
                y = wb_permute_make(y, 3, order), z = wb_permute_make(z, 3, order);
                break;
            case 1:
                y = wb_flip(y, dim), z = wb_flip(z, dim);
                break;
            case 2:
                y = wb_slice(y, dim, start, size, by), z = wb_slice(z, dim, start, size, by);
                break;
            default:
                if (size)
                    y = wb_slice(y, dim, start, -1, -by), z = wb_slice(z, dim, start, -1, -by);
            }
        }
        assert_ptr_equal(y->buffer, x->buffer);
        assert_same_bits(y, z, "a view of memory and one within a program");
        assert_same_bits(wb_reshape(y, -1), wb_reshape(z, -1), "reshaped");
    }
}

static void empty_and_eight_dimensional_arrays(void **state) {
    (void)state;
    assert_sizes(wb_reshape(wb_zeros(WB_F32, 0, 3), 7, 0), 7, 0);
    assert_sizes(wb_flip(wb_zeros(WB_F32, 0, 3), 0), 0, 3);
    assert_int_equal(wb_eval(wb_add_number(wb_flip(wb_zeros(WB_F32, 0, 3), 0), 1)), WB_OK);
    assert_sizes(wb_expand(wb_zeros(WB_F32, 1, 3), 0, 3), 0, 3);
    assert_int_equal(wb_eval(wb_add_number(wb_expand(wb_ones(WB_F32, 1, 3), 0, 3), 1)), WB_OK);
    wb_array *x = STORED(2, 1, 2, 1, 2, 1, 2, 1);
    wb_array *y = wb_permute(x, 7, 6, 5, 4, 3, 2, 1, 0);
    assert_sizes(y, 1, 2, 1, 2, 1, 2, 1, 2);
    assert_values(y, 0, 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15);
    assert_sizes(wb_transpose(wb_vector(1, 2, 3)), 1, 3);
    assert_sizes(wb_transpose(wb_scalar(WB_F32, 1)), 1, 1);
    assert_sizes(wb_transpose(wb_ones(WB_F32, 2, 3, 4)), 3, 2, 4);
    assert_sizes(wb_expand(wb_scalar(WB_F32, 2), 2, 3), 2, 3);
    assert_value(wb_sum(wb_expand(wb_scalar(WB_F32, 2), 2, 3)), 12, 0);
}

/* 2^40 elements that are one number (2^26 where addresses have 32 bits): nothing may be allocated
 * for them. */
static void a_huge_expansion_costs_nothing(void **state) {
    (void)state;
    const int64_t size = sizeof(void *) < 8 ? 1 << 13 : 1 << 20;
    wb_array *x = wb_copy(wb_scalar(WB_F64, 3)), *y = wb_expand(x, size, size);
    assert_int_equal(wb_eval(y), WB_OK);
    assert_ptr_equal(y->buffer, x->buffer);
    assert_true(wb_at(y, 7777, 999) == 3);
}

static void sizes_as_in_mlutils(void **state) { /* J9 */
    (void)state;
    assert_sizes(wb_unsqueeze(STORED(2, 3, 2), 1), 2, 1, 3, 2);
    assert_sizes(wb_flatten_batch(STORED(10, 10, 3, 2)), 300, 2);
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows, WAYS = 5 };
    static const CMUnitTestFunction ways[WAYS] = {of_numbers_in_memory, of_a_pending_array,
                                                  inside_a_program, of_every_type,
                                                  the_pullback_puts_back};
    const struct CMUnitTest others[] = {
        TEST(a_view_outlives_what_it_shows),
        TEST(views_of_views),
        TEST(empty_and_eight_dimensional_arrays),
        TEST(a_huge_expansion_costs_nothing),
        TEST(sizes_as_in_mlutils),
    };
    struct CMUnitTest tests[WAYS * ROWS + sizeof others / sizeof *others];
    for (int i = 0; i < WAYS * ROWS; i++) tests[i] = TEST_ROW(&rows[i % ROWS], ways[i / ROWS]);
    memcpy(tests + WAYS * ROWS, others, sizeof others);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
