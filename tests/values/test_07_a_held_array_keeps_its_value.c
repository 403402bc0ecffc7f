/* Rule 7: an update gives the slot a new node; who held the old array reads the old numbers. */
#include "support/support.h"

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_get(model, "1"));
}

static void step(wb_optimiser *o, wb_layer *model) {
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss, model, NULL, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
}

static void kept_arrays_and_views_stay(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 3));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    wb_array *kept = wb_keep(wb_get(model, "1")), *view = wb_keep(wb_flip(wb_get(model, "1"), 0));
    for (int i = 0; i < 3; i++) step(o, model);
    assert_values(wb_get(model, "1"), 0, -2, -1, 0);
    assert_values(kept, 0, 1, 2, 3);
    assert_values(view, 0, 3, 2, 1);
    wb_free(kept), wb_free(view);
    wb_free(o), wb_free(model);
}

static void a_getter_of_an_outer_scope_stays(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 3));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    wb_array *before = wb_get(model, "1");
    const float *numbers = wb_read_begin(before);
    wb_scope_open();
    step(o, model);
    step(o, model);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(before, 0, 1, 2, 3);
    assert_true(numbers[0] == 1 && numbers[2] == 3);
    wb_read_end(before);
    wb_free(o), wb_free(model);
}

static void borrowed_numbers_stay_with_their_reader(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 3));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    wb_scope_open();
    wb_array *p = wb_get(model, "1");
    const float *numbers = wb_read_begin(p);
    assert_int_equal(wb_scope_close(), WB_OK);
    step(o, model); /* the reader's reference keeps the memory from being taken over */
    assert_true(numbers[0] == 1 && numbers[2] == 3);
    wb_read_end(p);
    assert_values(wb_get(model, "1"), 0, 0, 1, 2);
    wb_free(o), wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(kept_arrays_and_views_stay), TEST(a_getter_of_an_outer_scope_stays),
                                       TEST(borrowed_numbers_stay_with_their_reader)};
    return cmocka_run_group_tests_name("values 7", tests, NULL, NULL);
}
