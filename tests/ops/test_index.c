/* src/ops/index.c: gather and scatter_add, of all types and layouts; one-hot products of J10;
 * positions out of range. */
#include "ops/ops.h"
#include "support/naive.h"
#include "support/support.h"

/* 0, 1, 2 ... */
static wb_array *counting(wb_dtype dtype, int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    return wb_reshape_make(wb_iota(dtype, 0, count), ndim, sizes);
}

static wb_array *positions(wb_dtype dtype, int64_t count, const double *list) {
    return array_of(dtype, list, 1, &count);
}

typedef struct row {
    const char *name;
    int dim;
    int64_t count;
    double index[6];
    int64_t wanted_count;
    double wanted[24];
} row;

/* of x (2, 3) = [0 2 4; 1 3 5] */
static const row rows[] = {
    {"columns at positions", 1, 3, {2, 0, 2}, 6, {4, 5, 0, 1, 4, 5}},
    {"rows at positions", 0, 3, {1, 1, 0}, 9, {1, 1, 0, 3, 3, 2, 5, 5, 4}},
    {"the last dimension, counted from the end", -1, 1, {1}, 2, {2, 3}},
    {"no positions", 1, 0, {0}, 0, {0}},
};

static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};

static void gathers(void **state) {
    const row *r = *state;
    for (int t = 0; t < 7; t++)
        for (int i = 0; i < 3; i++) {
            const wb_dtype index_types[] = {WB_I32, WB_I64, WB_U8};
            wb_array *x = counting(types[t], 2, (int64_t[]){2, 3});
            wb_array *y = wb_gather(x, positions(index_types[i], r->count, r->index), r->dim);
            assert_int_equal(wb_dtype_of(y), types[t]);
            assert_numbers(y, r->wanted_count, r->wanted, 0);
        }
}

static void bools_are_gathered(void **state) {
    (void)state;
    wb_array *x = wb_from(WB_BOOL, ((uint8_t[]){1, 0, 1}), 3);
    wb_array *y = wb_gather(x, positions(WB_I64, 4, (double[]){1, 2, 2, 0}), 0);
    assert_int_equal(wb_dtype_of(y), WB_BOOL);
    assert_values(y, 0, 0, 1, 1, 1);
}

static void an_index_of_two_dimensions_gives_both(void **state) {
    (void)state;
    wb_array *x = counting(WB_F32, 3, (int64_t[]){2, 3, 2});
    wb_array *index = wb_from(WB_I32, ((int32_t[]){2, 0, 1, 1}), 2, 2);
    wb_array *y = wb_gather(x, index, 1);
    assert_sizes(y, 2, 2, 2, 2);
    assert_values(y, 0, 4, 5, 0, 1, 2, 3, 2, 3, 10, 11, 6, 7, 8, 9, 8, 9);
    assert_sizes(wb_gather(x, wb_scalar(WB_I64, 1), 1), 2, 2);
    assert_values(wb_gather(x, wb_scalar(WB_I64, 1), 1), 0, 2, 3, 8, 9);
}

static void views_and_pending_arrays_are_operands(void **state) {
    (void)state;
    wb_array *x =
        wb_transpose(wb_copy(counting(widest(), 2, (int64_t[]){3, 2}))); /* [0 1 2; 3 4 5] */
    wb_array *index =
        wb_flip(wb_slice(positions(WB_I32, 5, (double[]){0, 9, 1, 9, 2}), 0, 0, 5, 2), 0);
    assert_values(wb_gather(x, index, 1), 0, 2, 5, 1, 4, 0, 3);
    assert_values(wb_gather(wb_add_number(x, 1), wb_sub(wb_number(2), index), 1), 0, 1, 4, 2, 5, 3,
                  6);
    wb_array *base = wb_transpose(wb_copy(wb_ones(widest(), 3, 2)));
    assert_values(wb_scatter_add(base, index, wb_flip(wb_copy(x), 0), 1), 0, 6, 3, 5, 2, 4, 1);
}

static void repeated_positions_add_up(void **state) {
    (void)state;
    static const wb_dtype index_types[] = {WB_I32, WB_I64, WB_U8};
    for (int t = 0; t < 7; t++)
        for (int i = 0; i < 3; i++) {
            const wb_dtype type = types[t] == WB_F64 ? widest() : types[t];
            wb_array *base = wb_full(type, 100, 2, 3),
                     *updates = counting(type, 2, (int64_t[]){2, 4});
            wb_array *y = wb_scatter_add(base, positions(index_types[i], 4, (double[]){2, 0, 2, 2}),
                                         updates, 1);
            assert_int_equal(wb_dtype_of(y), type);
            assert_values(y, 0, 102, 103, 100, 100, 110, 113);
            assert_values(base, 0, 100, 100, 100, 100, 100, 100);
        }
}

static void scattering_into_memory_leaves_the_base_alone(void **state) {
    (void)state;
    wb_array *base = wb_vector(1, 2, 3);
    wb_array *y =
        wb_scatter_add(base, positions(WB_I64, 2, (double[]){1, 1}), wb_vector(10, 100), 0);
    assert_values(y, 0, 1, 112, 3);
    assert_values(base, 0, 1, 2, 3);
    assert_values(wb_scatter_add(base, positions(WB_I64, 0, NULL), wb_zeros(WB_F32, 0), 0), 0, 1, 2,
                  3);
}

static void updates_take_the_type_of_the_base(void **state) {
    (void)state;
    wb_array *y = wb_scatter_add(wb_zeros(WB_I32, 2), positions(WB_I32, 2, (double[]){1, 1}),
                                 wb_vector(1.5f, 2.5f), 0);
    assert_int_equal(wb_dtype_of(y), WB_I32);
    assert_values(y, 0, 0, 3);
    assert_values(wb_scatter_add(wb_full(WB_U8, 250, 1), positions(WB_I32, 1, (double[]){0}),
                                 wb_full(WB_U8, 10, 1), 0),
                  0, 4);
    assert_null(wb_scatter_add(wb_zeros(WB_BOOL, 2), positions(WB_I32, 1, (double[]){1}),
                               wb_zeros(WB_BOOL, 1), 0));
    assert_error(WB_ERROR_DTYPE, "scatter_add: base must not be bool");
}

static void gradients_go_back_to_their_positions(void **state) {
    (void)state;
    wb_array *table = wb_copy(counting(widest(), 2, (int64_t[]){2, 3})), *g = NULL;
    wb_array *y = wb_gather(table, positions(WB_I32, 3, (double[]){2, 0, 2}), 1);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(y)), 1, &table, &g), WB_OK);
    assert_values(g, coarse(1e-15, 1e-6), 0, 2, 0, 0, 16, 20);
    wb_array *updates = wb_copy(wb_ones(widest(), 2, 2));
    y = wb_scatter_add(wb_zeros(widest(), 2, 3), positions(WB_I32, 2, (double[]){1, 1}), updates,
                       1);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(y)), 1, &updates, &g), WB_OK);
    assert_values(g, coarse(1e-15, 1e-6), 4, 4, 4, 4);
}

static void any_table_is_as_plain_loops(void **state) {
    (void)state;
    test_random r = {test_seed()};
    for (int round = 0; round < 60; round++) {
        const int64_t sizes[3] = {1 + random_below(&r, 9), 1 + random_below(&r, 9),
                                  1 + random_below(&r, 9)},
                      n = random_below(&r, 30);
        const int dim = (int)random_below(&r, 3);
        double list[30];
        for (int64_t i = 0; i < n; i++) list[i] = (double)random_below(&r, sizes[dim]);
        wb_array *x = array_random(&r, widest(), -1, 1, 3, sizes),
                 *index = positions(WB_I32, n, list), *parts[30];
        if (n == 0) continue;
        for (int64_t i = 0; i < n; i++)
            parts[i] = wb_slice(x, dim, (int64_t)list[i], (int64_t)list[i] + 1, 1);
        wb_array *y = wb_gather(x, index, dim);
        assert_true(wb_approx(y, wb_concat_make(dim, (int)n, parts), 0, 0, NULL, 0));
        /* <gather x, u> = <x, scatter u> */
        wb_array *u = array_random(&r, widest(), -1, 1, 3, wb_sizes(y));
        const double left = wb_item(wb_sum(wb_mul(y, u)));
        const double right = wb_item(wb_sum(wb_mul(
            x, wb_scatter_add(wb_zeros(widest(), sizes[0], sizes[1], sizes[2]), index, u, dim))));
        assert_true(fabs(left - right) < coarse(1e-11, 1e-4));
    }
}

/* ---- refusals ---- */

/* Which nobody can look at before it is computed. */
static wb_array *computed(wb_array *index) { return wb_add_number(index, 0); }

static void a_position_out_of_range_is_named(void **state) {
    (void)state;
    wb_array *x = counting(WB_F32, 2, (int64_t[]){2, 3});
    wb_array *y = wb_gather(x, computed(positions(WB_I32, 4, (double[]){0, 2, 3, 1})), 1);
    assert_non_null(y);
    assert_int_equal(with_late(wb_eval(y)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "gather: index 3 at place 2 is not in 0 .. 2");
    y = wb_gather(x, computed(positions(WB_I64, 2, (double[]){1, -1})), 0);
    assert_true(isnan(wb_item(wb_sum(y))));
    assert_error(WB_ERROR_ARGUMENT, "gather: index -1 at place 1 is not in 0 .. 1");
    wb_array *base = wb_copy(wb_zeros(WB_F32, 3));
    y = wb_scatter_add(base, computed(positions(WB_I64, 2, (double[]){1, 7})), wb_ones(WB_F32, 2),
                       0);
    assert_int_equal(with_late(wb_eval(y)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "scatter_add: index 7 at place 1 is not in 0 .. 2");
    assert_values(base, 0, 0, 0, 0);
}

static wb_array *first_rows(wb_array *x) {
    return wb_gather(x, wb_to(wb_default_device(), wb_cast(wb_slice(x, 1, 0, 1, 1), WB_I32)), 1);
}

/* Which computes within the layer. */
static wb_array *computed_rows(wb_array *x) {
    wb_array *y = first_rows(x);
    return y && wb_eval(y) == WB_OK ? y : NULL;
}

/* The message of a position that is found when it is computed, or, with WEBER_EAGER=1, at once. */
static void expect_late(wb_array *y, const char *wanted) {
    char text[400];
    if (y) assert_int_equal(with_late(wb_eval(y)), WB_ERROR_ARGUMENT);
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_ARGUMENT);
    if (strncmp(text, wanted, strlen(wanted)) != 0) fail_msg("\"%s\": %s", wanted, text);
}

static void a_computed_position_names_layer_or_loss(void **state) {
    (void)state;
    wb_layer *words = wb_chain(wb_embedding(2, 4), wb_dense(4, 2)), *bag = wb_embedding_bag(2, 4),
             *own = wb_chain(wb_fn(first_rows), wb_fn(wb_tanh)),
             *eager = wb_chain(wb_fn(computed_rows));
    wb_array *bad = positions(WB_I64, 3, (double[]){1, 2, 0}), *two[2] = {bad, NULL}, *y = NULL;
    expect_late(wb_apply(words, computed(bad)), "Embedding(2 => 4), layer 1 of Chain: word");
    expect_late(wb_apply(bag, computed(bad)), "EmbeddingBag(2 => 4): word");
    two[0] = computed(bad), two[1] = wb_vector_of(WB_I32, 0, 1);
    (void)wb_apply_many(bag, 2, two, 1, &y);
    expect_late(y, "EmbeddingBag(2 => 4): word");
    expect_late(wb_apply(own, wb_full(WB_F32, 7, 2, 3)), "function, layer 1 of Chain: gather");
    expect_late(wb_apply(eager, wb_full(WB_F32, 7, 2, 3)),
                "function, layer 1 of Chain: gather: index");
    expect_late(wb_logitcrossentropy(wb_ones(WB_F32, 2, 3), computed(bad)),
                "logitcrossentropy: label");
    wb_array *w = wb_ones(WB_F32, 2, 2), *base = wb_ones(WB_F32, 2), *ones = wb_ones(WB_F32, 3), *g;
    wb_array *rows = wb_gather_named("row", w, computed(bad), 1);
    const bool has_failed = !rows || wb_gradient_of(wb_sum(rows), 1, &w, &g) != WB_OK;
    expect_late(has_failed ? NULL : g, "row"); /* the rows themselves are not needed */
    expect_late(wb_scatter_max(base, computed(bad), ones, 0), "scatter_max: index 2 at place 1");
    expect_late(wb_scatter_min(base, computed(bad), ones, 0), "scatter_min: index 2 at place 1");
    expect_late(wb_scatter_mul(base, computed(bad), ones, 0), "scatter_mul: index 2 at place 1");
    wb_array *square = wb_reshape(wb_vector_of(WB_I32, 0, 1, 1, 2), 2, 2);
    expect_late(wb_take_along(wb_ones(WB_F32, 2, 2), computed(square), 0),
                "take_along: index 2 at ");
    wb_free(words), wb_free(bag), wb_free(own), wb_free(eager);
}

static void a_readable_position_out_of_range_is_refused_at_once(void **state) {
    (void)state;
    if (wb_default_device() != wb_cpu_device()) skip();
    wb_array *x = wb_ones(WB_F32, 2, 3), *ones = wb_ones(WB_F32, 2);
    const int32_t square[] = {0, 1, 1, 0, 2, 1};
    assert_null(wb_gather(x, wb_from(WB_I32, square, 2, 3), 0));
    assert_error(WB_ERROR_ARGUMENT, "gather: index 2 at (0, 2) is not in 0 .. 1");
    assert_null(wb_take_along(x, wb_from(WB_I32, square, 2, 3), 0));
    assert_error(WB_ERROR_ARGUMENT, "take_along: index 2 at (0, 2) is not in 0 .. 1");
    assert_null(wb_scatter_add(ones, positions(WB_I64, 2, (double[]){1, 7}), ones, 0));
    assert_error(WB_ERROR_ARGUMENT, "scatter_add: index 7 at place 1 is not in 0 .. 1");
    wb_layer *model = wb_chain(wb_embedding(2, 4), wb_dense(4, 2));
    assert_null(wb_apply(model, wb_from(WB_I32, square, 2, 3)));
    assert_error(WB_ERROR_ARGUMENT, "Embedding(2 => 4), layer 1 of Chain: word 2 at (0, 2) is not "
                                    "in 0 .. 1");
    wb_free(model);
}

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

static void repeated_positions_of_several_types_add_up(void **state) {
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
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(rows_of_a_table),
        TEST(a_one_hot_product_is_a_column),
        TEST(repeated_positions_of_several_types_add_up),
        TEST(all_types_and_layouts),
        TEST(positions_out_of_range),
        TEST(bools_are_gathered),
        TEST(an_index_of_two_dimensions_gives_both),
        TEST(views_and_pending_arrays_are_operands),
        TEST(repeated_positions_add_up),
        TEST(scattering_into_memory_leaves_the_base_alone),
        TEST(updates_take_the_type_of_the_base),
        TEST(gradients_go_back_to_their_positions),
        TEST(any_table_is_as_plain_loops),
        TEST(a_position_out_of_range_is_named),
        TEST(a_computed_position_names_layer_or_loss),
        TEST(a_readable_position_out_of_range_is_refused_at_once),
    };
    ADD_ROWS(&tests, rows, gathers);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_index", &tests, NULL, NULL);
}
