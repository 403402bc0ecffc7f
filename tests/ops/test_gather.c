/* gather and scatter_add, of all types and layouts; one-hot products of J10; positions out of
 * range. */
#include "support/naive.h"
#include "support/support.h"

static void rows_of_a_table(void **state) {
    (void)state;
    wb_array *table = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 2, 3);
    const int64_t tokens[4] = {2, 0, 2, 1};
    wb_array *y = wb_gather(table, wb_from(WB_I64, tokens, 2, 2), 1);
    assert_sizes(y, 2, 2, 2);
    assert_values(y, 0, 5, 6, 1, 2, 5, 6, 3, 4);
    assert_values(wb_gather(table, wb_scalar(WB_I32, 1), 0), 0, 2, 4, 6);
    assert_int_equal(wb_count(wb_gather(table, wb_zeros(WB_I32, 0), 1)), 0);
    const uint8_t small[2] = {1, 1};
    assert_values(wb_gather(table, wb_from(WB_U8, small, 2), 1), 0, 3, 4, 3, 4);
}

static void a_one_hot_product_is_a_column(void **state) { /* J10 */
    (void)state;
    wb_array *a = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 2, 3),
             *hot = wb_onehot(wb_scalar(WB_I32, 1), 3);
    assert_values(wb_matmul(a, wb_cast(hot, WB_F32)), 0, 3, 4);
}

static void repeated_positions_add_up(void **state) {
    (void)state;
    const int32_t index[4] = {1, 1, 0, 1};
    assert_values(
        wb_scatter_add(wb_vector(10, 20, 30), wb_from(WB_I32, index, 4), wb_vector(1, 2, 3, 4), 0),
        0, 13, 27, 30);
    wb_array *x = wb_vector(10, 20, 30),
             *y = wb_scatter_add(x, wb_from(WB_I32, index, 4), wb_vector(1, 2, 3, 4), 0);
    assert_values(y, 0, 13, 27, 30);
    assert_values(x, 0, 10, 20, 30);
    assert_values(
        wb_scatter_add(wb_full(WB_U8, 250, 2), wb_from(WB_I32, index, 4), wb_full(WB_U8, 3, 4), 0),
        0, 253, 3);
    assert_values(
        wb_scatter_add(wb_ones(WB_F16, 2), wb_from(WB_I32, index, 4), wb_full(WB_F32, 0.5, 4), 0),
        0, 1.5, 2.5);
}

static void all_types_and_layouts(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int i = 0; i < cases_of(160); i++) {
        const wb_dtype dtype = (wb_dtype)(i % WB_DTYPE_COUNT);
        const int64_t sizes[3] = {1 + random_below(&r, 4), 1 + random_below(&r, 4),
                                  1 + random_below(&r, 4)};
        const int dim = (int)random_below(&r, 3);
        wb_array *x = array_random(&r, dtype, 0, 9, 3, sizes);
        if (random_below(&r, 2)) x = wb_flip(x, (int)random_below(&r, 3));
        const int64_t many[2] = {random_below(&r, 4), 2};
        wb_array *index = wb_cast(array_random(&r, WB_F64, 0, (double)sizes[dim], 2, many),
                                  random_below(&r, 2) ? WB_I32 : WB_I64);
        if (random_below(&r, 2)) index = wb_transpose(index);
        naive_table *t = naive_new();
        wb_array *y = wb_gather(x, index, dim);
        assert_as_naive(t, y, 0, "a gather");
        if (dtype != WB_BOOL)
            assert_as_naive(t, wb_scatter_add(x, index, y, dim), dtype == WB_BF16 ? 0.05 : 1e-2,
                            "a scatter");
        naive_free(t);
    }
}

static void positions_out_of_range(void **state) {
    (void)state;
    static const int64_t bad[] = {3, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
    for (int i = 0; i < 5; i++) {
        float out[2];
        wb_array *index = wb_from(WB_I64, &bad[i], 1);
        assert_int_not_equal(wb_read_f32(wb_gather(wb_vector(1, 2, 3), index, 0), out, 1), WB_OK);
        char text[256], wanted[64];
        (void)wb_take_error(text, sizeof text);
        (void)snprintf(wanted, sizeof wanted, "%lld", (long long)bad[i]);
        if (!strstr(text, "gather") || !strstr(text, wanted))
            fail_msg("\"%s\" does not name %s", text, wanted);
        wb_array *base = wb_vector(1, 2, 3), *y = wb_scatter_add(base, index, wb_vector(1), 0);
        assert_int_not_equal(with_late(wb_eval(y)), WB_OK);
        (void)wb_take_error(text, sizeof text);
        if (!strstr(text, "scatter_add") || !strstr(text, wanted))
            fail_msg("\"%s\" does not name %s", text, wanted);
        assert_values(base, 0, 1, 2, 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(rows_of_a_table), TEST(a_one_hot_product_is_a_column),
                                       TEST(repeated_positions_add_up), TEST(all_types_and_layouts),
                                       TEST(positions_out_of_range)};
    return cmocka_run_group_tests_name("ops/test_gather", tests, NULL, NULL);
}
