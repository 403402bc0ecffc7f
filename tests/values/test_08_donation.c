/* Rule 8: memory is taken over only with the same index map, element size, an exclusive range,
 * owned and writable. */
#include "values/steps.h"

enum { SIDE = 96 }; /* 9216 elements: many tiles, shared by threads */

typedef wb_array *function(wb_array *x);

/* Functions of x (SIDE, SIDE) that read other elements than the one they write. */
static wb_array *plus_flip(wb_array *x) { return wb_add(x, wb_flip(x, 0)); }
static wb_array *plus_flip_columns(wb_array *x) { return wb_add(x, wb_flip(x, 1)); }
static wb_array *plus_turned(wb_array *x) { return wb_add(x, wb_transpose(x)); }
static wb_array *plus_its_first_column(wb_array *x) { return wb_add(x, wb_slice(x, 1, 0, 1, 1)); }
static wb_array *plus_its_first_row(wb_array *x) { return wb_mul(x, wb_slice(x, 0, 0, 1, 1)); }
static wb_array *plus_its_last_element(wb_array *x) {
    return wb_sub(x, wb_slice(wb_slice(x, 0, SIDE - 1, SIDE, 1), 1, SIDE - 1, SIDE, 1));
}
static wb_array *plus_its_sum(wb_array *x) { return wb_add(x, wb_mul_number(wb_sum(x), 1e-3)); }
static wb_array *plus_its_column_sums(wb_array *x) {
    return wb_add(x, wb_mul_number(wb_sum_dims(x, 1), 1e-2));
}
static wb_array *of_its_softmax(wb_array *x) { return wb_mul(x, wb_softmax(x)); }
static wb_array *normalised(wb_array *x) { return wb_normalise(x, 1e-3, 0); }
static wb_array *shifted(wb_array *x) {
    return wb_add(x, wb_slice(wb_pad(x, 0, 1, 0, 0), 0, 0, SIDE, 1));
}
static wb_array *times_itself(wb_array *x) {
    return wb_add(wb_mul_number(wb_matmul(x, x), 1e-2), x);
}
static wb_array *gathered(wb_array *x) {
    return wb_add(x, wb_gather(x, wb_sub(wb_number(SIDE - 1), wb_iota(WB_I32, 0, SIDE)), 1));
}
static wb_array *reshaped_crosswise(wb_array *x) {
    return wb_add(x, wb_reshape(wb_transpose(wb_reshape(x, SIDE * 2, SIDE / 2)), SIDE, SIDE));
}
static wb_array *plain(wb_array *x) { return wb_sin(wb_add_number(x, 0.5)); }
static wb_array *convolved(wb_array *x) {
    wb_array *image = wb_reshape(x, SIDE, SIDE, 1, 1), *w = wb_full(WB_F32, 0.1, 3, 3, 1, 1);
    return wb_reshape(wb_add(wb_conv_op(image, w, .pad = {1, 1}), image), SIDE, SIDE);
}

static const struct row {
    const char *name;
    function *fn;
} rows[] = {
    {"x + flip(x)", plus_flip},
    {"x + flip(x) along columns", plus_flip_columns},
    {"x + transpose(x)", plus_turned},
    {"x + a broadcast of its column", plus_its_first_column},
    {"x times a broadcast of its row", plus_its_first_row},
    {"x - a broadcast of its last number", plus_its_last_element},
    {"x + its sum", plus_its_sum},
    {"x + its sums along columns", plus_its_column_sums},
    {"x softmax(x)", of_its_softmax},
    {"x normalised", normalised},
    {"x + x moved by one", shifted},
    {"x x + x as matrices", times_itself},
    {"x + its columns in another order", gathered},
    {"x + x reshaped crosswise", reshaped_crosswise},
    {"x convolved, plus x", convolved},
    {"sin(x + 0.5), which may", plain},
};

static float numbers[SIDE * SIDE];

static void fill_numbers(void) {
    test_random r = {test_seed()};
    for (int i = 0; i < SIDE * SIDE; i++) numbers[i] = (float)random_between(&r, -1, 1);
}

/* fn(x), evaluated when nobody but its recipe refers to x, and nobody will ask for the recipe: as
 * an update leaves a step. */
static wb_array *leave_alone(function *fn, wb_array *x) {
    assert_int_equal(wb_scope_open(), WB_OK);
    wb_array *y = fn(x);
    assert_int_equal(wb_scope_close_leaving(1, &y), WB_OK);
    wb_free(x);
    assert_int_equal(wb_eval(y), WB_OK);
    return y;
}

/* fn of an array that nobody else holds is what it is of one that must stay. */
static void a_donated_argument_gives_the_same_bits(void **state) {
    const struct row *row = *state;
    fill_numbers();
    for (int threads = 1; threads <= 3; threads += 2) {
        wb_set_threads(threads);
        wb_array *held = wb_keep(wb_from(WB_F32, numbers, SIDE, SIDE));
        wb_array *wanted = row->fn(held);
        assert_int_equal(wb_eval(wanted), WB_OK);
        wb_array *alone = wb_from(WB_F32, numbers, SIDE, SIDE);
        wb_array *got = leave_alone(row->fn, alone);
        assert_same_bits(got, wanted, row->name);
        assert_memory_equal(wb_read_begin(held), numbers, sizeof numbers);
        wb_read_end(held);
        wb_free(held);
    }
    wb_set_threads(0);
}

/* The user's bytes stay: borrowed memory is read, never written. */
static void borrowed_bytes_stay(void **state) {
    const struct row *row = *state;
    fill_numbers();
    static float borrowed[SIDE * SIDE];
    memcpy(borrowed, numbers, sizeof numbers);
    (void)leave_alone(row->fn, wb_borrow(WB_F32, borrowed, NULL, NULL, SIDE, SIDE));
    assert_memory_equal(borrowed, numbers, sizeof numbers);
}

static void an_exclusive_buffer_is_taken_over(void **state) {
    (void)state;
    wb_array *x = wb_from(WB_F32, numbers, SIDE, SIDE);
    const void *memory = x->buffer;
    wb_array *y = leave_alone(plain, x);
    if (is_planned()) assert_ptr_equal(y->buffer, memory);
}

/* A result that keeps its recipe may be asked for a gradient: what it was made of is still
 * there. */
static void the_argument_of_a_live_recipe_stays(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3), *y = wb_square(x), *g[1];
    wb_array *l = wb_sum(wb_mul_number(y, 2));
    assert_int_equal(wb_eval(y, l), WB_OK);
    assert_int_equal(wb_gradient_of(l, 1, &x, g), WB_OK);
    assert_values(g[0], 1e-6, 4, 8, 12);
    assert_values(x, 0, 1, 2, 3);
}

static void a_range_that_a_view_shares_is_not_taken(void **state) {
    (void)state;
    wb_array *x = wb_from(WB_F32, numbers, SIDE, SIDE);
    wb_array *view = wb_keep(wb_slice(x, 1, 0, 1, 1)), *before = wb_keep(wb_copy(view));
    assert_int_equal(wb_eval(view), WB_OK);
    (void)leave_alone(plain, x);
    assert_same_bits(view, before, "a view of what was an argument");
    wb_free(view), wb_free(before);
}

/* A sum beside the rows reads the argument before the result is written over it. */
static void two_results_of_one_argument(void **state) {
    wb_array *ys[2][2], *xs[2];
    (void)state;
    fill_numbers();
    for (int alone = 0; alone < 2; alone++) {
        xs[alone] = wb_from(WB_F32, numbers, SIDE, SIDE);
        if (!alone) wb_keep(xs[alone]);
        assert_int_equal(wb_scope_open(), WB_OK);
        ys[alone][0] = wb_softmax(xs[alone]);
        ys[alone][1] = wb_sum(wb_mul(xs[alone], ys[alone][0]));
        assert_int_equal(wb_scope_close_leaving(2, ys[alone]), WB_OK);
        if (alone) wb_free(xs[alone]);
        assert_int_equal(wb_eval(ys[alone][0], ys[alone][1]), WB_OK);
    }
    for (int r = 0; r < 2; r++) assert_same_bits(ys[1][r], ys[0][r], r ? "the sum" : "softmax");
    wb_free(xs[0]);
}

static wb_dtype wanted_type;
static wb_array *converted(wb_array *x) { return wb_cast(x, wanted_type); }

/* Other element sizes, through every pair of types. */
static void other_element_sizes_are_not_mixed(void **state) {
    (void)state;
    for (int from = 0; from < WB_DTYPE_COUNT; from++)
        for (int to = 0; to < WB_DTYPE_COUNT; to++) {
            const double values[] = {0, 1, 1, 0, 1, 0, 0, 1};
            wanted_type = (wb_dtype)to;
            wb_array *x = array_of((wb_dtype)from, values, 1, (const int64_t[]){8});
            assert_numbers(leave_alone(converted, x), 8, values, 0);
        }
}

/* ---- memory of the user in a model ---- */

static void count_release(void *context, void *data) {
    (void)data;
    ++*(int *)context;
}

static void the_first_update_of_borrowed_memory_copies(void **state) {
    (void)state;
    static float bytes[64];
    for (int i = 0; i < 64; i++) bytes[i] = 1;
    int releases = 0;
    wb_scope_open();
    wb_layer *model = wb_tree(wb_borrow(WB_F32, bytes, count_release, &releases, 64));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    const int64_t missed = wb_plan_status().missed_donations;
    assert_int_equal(scoped_step(o, model, squares_of_one), WB_OK);
    assert_int_equal(wb_plan_status().missed_donations, missed + 1);
    assert_int_equal(releases, 1); /* nobody reads it any more */
    assert_int_equal(scoped_step(o, model, squares_of_one), WB_OK);
    assert_int_equal(wb_plan_status().missed_donations, missed + 1);
    for (int i = 0; i < 64; i++) assert_true(bytes[i] == 1);
    assert_value(wb_mean(wb_get(model, "1")), 0.25, 1e-6);
    wb_free(o), wb_free(model);
}

static void adopted_memory_may_be_written(void **state) {
    (void)state;
    static float bytes[64];
    for (int i = 0; i < 64; i++) bytes[i] = 1;
    int releases = 0;
    wb_scope_open();
    wb_layer *model = wb_tree(wb_adopt(WB_F32, bytes, count_release, &releases, 64));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    for (int i = 0; i < 2; i++) assert_int_equal(scoped_step(o, model, squares_of_one), WB_OK);
    wb_scope_open();
    assert_value(wb_mean(wb_get(model, "1")), 0.25, 1e-6);
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_free(o), wb_free(model);
    assert_int_equal(releases, 1);
}

/* Two slots over parts of one buffer: neither step may reach into the other's part. */
static void parts_of_one_buffer_do_not_meet(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_vector(1, 2, 3, 4, 5, 6);
    assert_int_equal(wb_eval(x), WB_OK);
    wb_layer *model = wb_tree(wb_slice(x, 0, 0, 4, 1));
    wb_layer *other = wb_tree(wb_slice(x, 0, 2, 6, 1));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    assert_int_equal(scoped_step(o, model, squares_of_one), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 0.5, 1, 1.5, 2);
    assert_values(wb_get(other, "1"), 0, 3, 4, 5, 6);
    wb_free(o), wb_free(model), wb_free(other);
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(an_exclusive_buffer_is_taken_over), TEST(the_argument_of_a_live_recipe_stays),
        TEST(two_results_of_one_argument),       TEST(a_range_that_a_view_shares_is_not_taken),
        TEST(other_element_sizes_are_not_mixed), TEST(the_first_update_of_borrowed_memory_copies),
        TEST(adopted_memory_may_be_written),     TEST(parts_of_one_buffer_do_not_meet),
    };
    ADD_ROWS(&tests, rows, a_donated_argument_gives_the_same_bits);
    ADD_ROWS(&tests, rows, borrowed_bytes_stay);
    ADD_TESTS(&tests, others);
    return run_test_list("values 8", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
