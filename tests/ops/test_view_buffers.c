/* Views copy nothing: they show the buffer of what they look at; joins, pads and borrowed
 * memory. */
#include "array/array.h"
#include "support/naive.h"
#include "support/support.h"

static wb_array *counting(void) { return wb_copy(wb_reshape(wb_iota(WB_F32, 0, 24), 2, 3, 4)); }

typedef wb_array *view_fn(wb_array *x);
static wb_array *reshaped(wb_array *x) { return wb_reshape(x, 6, 4); }
static wb_array *flattened(wb_array *x) { return wb_flatten_batch(x); }
static wb_array *permuted(wb_array *x) { return wb_permute(x, 2, 0, 1); }
static wb_array *transposed(wb_array *x) { return wb_transpose(x); }
static wb_array *sliced(wb_array *x) { return wb_slice(x, 2, 1, 3, 1); }
static wb_array *stepped(wb_array *x) { return wb_slice(x, 2, 3, -1, -2); }
static wb_array *flipped(wb_array *x) { return wb_flip(x, 1); }
static wb_array *expanded(wb_array *x) { return wb_expand(wb_slice(x, 0, 0, 1, 1), 5, 3, 4, 2); }
static wb_array *unsqueezed(wb_array *x) { return wb_unsqueeze(x, 1); }
static wb_array *squeezed(wb_array *x) { return wb_squeeze(wb_slice(x, 1, 2, 3, 1), 1); }
static wb_array *many(wb_array *x) {
    return wb_flip(wb_transpose(wb_slice(wb_permute(x, 1, 2, 0), 0, 2, -1, -2)), 1);
}
static wb_array *reshaped_slice(wb_array *x) {
    return wb_reshape(wb_slice(x, 2, 1, 4, 1), 3, 2, 3);
}
static wb_array *split(wb_array *x) { return wb_reshape(wb_slice(x, 2, 0, 4, 2), 2, 3, 1, 2); }
static wb_array *nothing(wb_array *x) { return wb_slice(x, 1, 1, 1, 1); }

static const struct row {
    const char *name;
    view_fn *fn;
} rows[] = {{"reshape", reshaped},
            {"flatten", flattened},
            {"permute", permuted},
            {"transpose", transposed},
            {"slice", sliced},
            {"slice with a negative step", stepped},
            {"flip", flipped},
            {"expand", expanded},
            {"unsqueeze", unsqueezed},
            {"squeeze", squeezed},
            {"a view of a view", many},
            {"reshape of a slice", reshaped_slice},
            {"reshape along strides", split},
            {"an empty slice", nothing}};

static void shows_the_same_buffer(void **state) {
    const struct row *row = *state;
    wb_array *x = counting(), *later = wb_exp(wb_mul_number(x, 0.1));
    const int64_t pieces = live_now().buffers;
    wb_array *view = row->fn(x);
    if (!view) fail_msg("%s", wb_error_message());
    assert_true(view->buffer == x->buffer);
    assert_int_equal(live_now().buffers, pieces);
    naive_table *t = naive_new();
    assert_as_naive(t, view, 0, "a view of data");
    assert_as_naive(t, wb_add_number(view, 1), 0, "a view in a program");
    wb_array *pending =
        row->fn(later); /* a view of what is not computed yet shows it when both are */
    assert_int_equal(wb_eval(pending, later), WB_OK);
    assert_true(pending->buffer == later->buffer);
    assert_as_naive(t, pending, 1e-6, "a view of something pending");
    naive_free(t);
}

static void what_strides_cannot_say_is_copied(void **state) {
    (void)state;
    wb_array *x = counting(), *y = wb_reshape(wb_flip(x, 0), 3, 2, 4),
             *z = wb_reshape(wb_transpose(x), 4, 6);
    naive_table *t = naive_new();
    assert_as_naive(t, y, 0, "a flip reshaped");
    assert_as_naive(t, z, 0, "a transpose reshaped");
    assert_as_naive(t, wb_reshape(wb_flip(wb_exp(wb_mul_number(x, 0.1)), 0), 24), 1e-6,
                    "in one plan");
    assert_true(y->buffer != x->buffer);
    naive_free(t);
}

static void random_reshapes(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int i = 0; i < 300; i++) {
        int64_t sizes[4], next[4] = {1, 1, 1, 1}, order[4];
        int64_t count = 1;
        for (int d = 0; d < 4; d++) sizes[d] = 1 + random_below(&r, 4), order[d] = (d + i) % 4;
        wb_array *x = wb_permute_make(array_random(&r, WB_F32, -1, 1, 4, sizes), 4, order);
        for (int k = 0; k < 2; k++) {
            const int dim = (int)random_below(&r, 4);
            const int64_t step = random_below(&r, 2) ? 1 : -1, n = wb_size(x, dim);
            x = step > 0 ? wb_slice(x, dim, 0, n - random_below(&r, n), 1 + random_below(&r, 2))
                         : wb_flip(x, dim);
        }
        if (i % 2) x = wb_mul_number(x, 2);
        count = wb_count(x);
        for (int64_t f = 2; count > 1; f++)
            while (count % f == 0) next[random_below(&r, 4)] *= f, count /= f;
        wb_array *y = wb_reshape_make(i % 3 ? x : wb_flip(x, i % 4), 4, next);
        naive_table *t = naive_new();
        assert_as_naive(t, y, 0, "a reshape");
        assert_as_naive(
            t, wb_sum_dims(wb_reshape_make(wb_flip(y, 0), 2, (const int64_t[]){wb_count(y), 1}), 1),
            1e-6, "and another");
        naive_free(t);
    }
}

static void joins(void **state) {
    (void)state;
    wb_array *a = wb_vector(1, 2), *b = wb_vector(3, 4, 5);
    assert_values(wb_concat(0, a, b, a), 0, 1, 2, 3, 4, 5, 1, 2);
    assert_values(wb_concat(0, a), 0, 1, 2);
    assert_values(wb_stack(0, a, wb_neg(a)), 0, 1, -1, 2, -2);
    assert_values(wb_stack(-1, a, wb_neg(a)), 0, 1, 2, -1, -2);
    assert_values(wb_pad(a, 0, 1, 2, 9), 0, 9, 1, 2, 9, 9);
    assert_values(wb_concat(0, wb_zeros(WB_F32, 0), b), 0, 3, 4, 5);
    assert_values(wb_pad(wb_zeros(WB_F32, 0), 0, 1, 1, (double)7), 0, 7, 7);
    wb_array *hundred[100];
    for (int i = 0; i < 100; i++) hundred[i] = wb_full(WB_I32, i, 1);
    assert_value(wb_sum(wb_concat_make(0, 100, hundred)), 4950, 0);
}

static int released;
static void release(void *context, void *data) {
    (void)data;
    released += *(int *)context;
}

static void borrowed_memory(void **state) {
    (void)state;
    static float numbers[6] = {1, 2, 3, 4, 5, 6};
    int one = 1;
    released = 0;
    wb_scope_open();
    wb_array *x = wb_borrow(WB_F32, numbers, release, &one, 2, 3), *view = wb_keep(wb_flip(x, 1));
    const float *inside = wb_read_begin(x);
    assert_ptr_equal(inside, numbers);
    wb_read_end(x);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(released, 0); /* the view still reads it */
    assert_values(view, 0, 5, 6, 3, 4, 1, 2);
    wb_free(view);
    assert_int_equal(released, 1);
}

static void arrays_of_foreign_memory_that_fail_still_release(void **state) {
    (void)state;
    static float numbers[1] = {1};
    int one = 1;
    released = 0;
    assert_null(wb_borrow(WB_F32, NULL, release, &one, 3));
    assert_int_equal(released, 0); /* nothing was handed over */
    wb_clear_error();
    wb_free(wb_borrow(WB_F32, numbers, release, &one, 1));
    assert_int_equal(released, 1);
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[ROWS + 5];
    static char names[ROWS][64];
    for (int i = 0; i < ROWS; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s shows the same buffer", rows[i].name);
        tests[i] = TEST_ROW(&rows[i], shows_the_same_buffer);
        tests[i].name = names[i];
    }
    const struct CMUnitTest more[] = {TEST(what_strides_cannot_say_is_copied),
                                      TEST(random_reshapes), TEST(joins), TEST(borrowed_memory),
                                      TEST(arrays_of_foreign_memory_that_fail_still_release)};
    memcpy(tests + ROWS, more, sizeof more);
    return cmocka_run_group_tests_name("ops/test_view_buffers", tests, NULL, NULL);
}
