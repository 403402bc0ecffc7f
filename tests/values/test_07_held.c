/* Rule 7: a held array keeps its value: an update gives a slot another array. */
#include "values/steps.h"

/* Each step halves the array. */
static void halve(wb_optimiser *o, wb_layer *model) {
    assert_int_equal(scoped_step(o, model, squares_of_one), WB_OK);
}

typedef struct holder_row {
    const char *name;
    wb_array *(*hold)(wb_array *x); /* something that shows x, kept */
    double wanted[4];
} holder_row;

static wb_array *kept(wb_array *x) { return wb_keep(x); }
static wb_array *kept_reshape(wb_array *x) { return wb_keep(wb_reshape(x, 4)); }
static wb_array *kept_transpose(wb_array *x) { return wb_keep(wb_transpose(x)); }
static wb_array *kept_flip(wb_array *x) { return wb_keep(wb_flip(x, 0)); }
static wb_array *kept_slice(wb_array *x) { return wb_keep(wb_concat(1, wb_slice(x, 1, 0, 2, 1))); }
static wb_array *kept_stop(wb_array *x) { return wb_keep(wb_stop_gradient(x)); }
static wb_array *kept_sum_with_zero(wb_array *x) { return wb_keep(wb_add(x, wb_number(0))); }
static wb_array *kept_copy(wb_array *x) { return wb_keep(wb_copy(x)); }
static wb_array *evaluated_view(wb_array *x) {
    wb_array *view = wb_keep(wb_permute(x, 1, 0));
    (void)wb_item(wb_sum(view));
    return view;
}

static const holder_row rows[] = {
    {"a kept array keeps its value", kept, {1, 2, 4, 8}},
    {"a kept reshape keeps its value", kept_reshape, {1, 2, 4, 8}},
    {"a kept transpose keeps its value", kept_transpose, {1, 4, 2, 8}},
    {"a kept flip keeps its value", kept_flip, {2, 1, 8, 4}},
    {"a kept part keeps its value", kept_slice, {1, 2, 4, 8}},
    {"a stopped gradient keeps its value", kept_stop, {1, 2, 4, 8}},
    {"an operation that changes nothing keeps it", kept_sum_with_zero, {1, 2, 4, 8}},
    {"a copy keeps its value", kept_copy, {1, 2, 4, 8}},
    {"a view that was evaluated keeps its value", evaluated_view, {1, 4, 2, 8}},
};

static void held_values_stay(void **state) {
    const holder_row *row = *state;
    const float numbers[] = {1, 2, 4, 8};
    wb_layer *model = wb_tree(wb_from(WB_F32, numbers, 2, 2));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    wb_scope_open();
    wb_array *held = row->hold(wb_get(model, "1"));
    assert_int_equal(wb_scope_close(), WB_OK);
    for (int i = 0; i < 3; i++) halve(o, model);
    assert_numbers(held, 4, row->wanted, 0);
    assert_values(wb_get(model, "1"), 1e-6, 0.125, 0.25, 0.5, 1);
    wb_free(held), wb_free(o), wb_free(model);
}

static void borrowed_numbers_stay_until_they_are_given_back(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 4));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    wb_array *x = wb_get(model, "1");
    const float *numbers = wb_read_begin(x);
    assert_non_null(numbers);
    for (int i = 0; i < 3; i++) halve(o, model);
    for (int i = 0; i < 3; i++) assert_true(numbers[i] == (float)(1 << i));
    wb_read_end(x);
    wb_free(o), wb_free(model);
}

static void states_of_all_steps_can_be_held(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 4));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    wb_array *held[6];
    for (int i = 0; i < 6; i++) {
        held[i] = wb_keep(wb_get(model, "1"));
        halve(o, model);
    }
    for (int i = 0; i < 6; i++) {
        const double scale = 1.0 / (1 << i);
        assert_values(held[i], 1e-6, scale, 2 * scale, 4 * scale);
        wb_free(held[i]);
    }
    wb_free(o), wb_free(model);
}

static wb_array *times_ten(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return wb_mul_number(x, 10);
}

static void setting_and_walking_leave_the_old_array(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_array *first = wb_keep(wb_get(model, "1"));
    assert_int_equal(wb_walk(times_ten, NULL, model), WB_OK);
    wb_array *second = wb_keep(wb_get(model, "1"));
    assert_int_equal(wb_set(model, "1", wb_vector(7, 7)), WB_OK);
    assert_values(first, 0, 1, 2);
    assert_values(second, 0, 10, 20);
    assert_values(wb_get(model, "1"), 0, 7, 7);
    wb_free(first), wb_free(second), wb_free(model);
}

static void a_clone_does_not_follow(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 4)), *copy = wb_clone(model);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    halve(o, model);
    assert_values(wb_get(copy, "1"), 0, 1, 2, 4);
    wb_free(o), wb_free(copy), wb_free(model);
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(borrowed_numbers_stay_until_they_are_given_back),
        TEST(states_of_all_steps_can_be_held),
        TEST(setting_and_walking_leave_the_old_array),
        TEST(a_clone_does_not_follow),
    };
    ADD_ROWS(&tests, rows, held_values_stay);
    ADD_TESTS(&tests, others);
    return run_test_list("values 7", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
