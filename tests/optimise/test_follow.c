/* src/optimise/optimiser.c, src/layers/list.c: a model that grows while it is trained */
#include <weber/device.h>
#include <weber/layers.h>
#include <weber/optimise.h>
#include <weber/show.h>

#include <stdlib.h>
#include <string.h>

#include "support/numbers.h"
#include "support/scoped.h"

typedef struct Gains {
    wb_layer layer;
    wb_layer_list first, second;
} Gains;

WB_FUNCTOR(Gains, NULL, WB_LIST_FIELD(Gains, first), WB_LIST_FIELD(Gains, second));

enum { COUNT = 2, MANY = 20 };

static void append(wb_layer *model, const char *list, double value) {
    assert_int_equal(wb_list_append(model, list, NULL, wb_full(WB_F32, value, 2)), WB_OK);
}

static wb_layer *new_gains(void) {
    wb_layer *model = (wb_layer *)(void *)wb_new(Gains);
    for (int i = 0; i < COUNT; i++) append(model, "first", 1), append(model, "second", 2);
    return model;
}

/* Both lists move, the second perhaps to where the first was. */
static void grow(wb_layer *model) {
    for (int i = 0; i < MANY; i++) append(model, "first", 3);
    for (int i = 0; i < MANY; i++) append(model, "second", 4);
}

static wb_array *sum_of_all(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    wb_array *sum = wb_scalar(WB_F32, 0);
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) sum = wb_add(sum, wb_sum(p.array));
    return sum;
}

static void take_step(wb_optimiser *o, wb_layer *model) {
    const wb_batch batch = {.x = NULL};
    assert_non_null(wb_train_step(sum_of_all, model, &batch, NULL, o));
}

static void update(wb_optimiser *o, wb_layer *model) {
    wb_gradients *g;
    assert_non_null(wb_withgradient_for(o, sum_of_all, model, NULL, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
}

static void settings_stay_when_a_list_grows(void (*step)(wb_optimiser *, wb_layer *)) {
    wb_layer *model = new_gains();
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
    assert_int_equal(wb_freeze(o, "first.2"), WB_OK);
    assert_int_equal(wb_adjust_path(o, "second.1", "eta", 0.5), WB_OK);
    step(o, model);
    assert_values(wb_get(model, "first.1"), 1e-6, 0.9, 0.9);
    assert_values(wb_get(model, "second.1"), 1e-6, 1.5, 1.5);
    grow(model);
    step(o, model);
    assert_values(wb_get(model, "first.1"), 1e-6, 0.71, 0.71); /* with its momentum */
    assert_values(wb_get(model, "first.2"), 0, 1, 1);
    assert_values(wb_get(model, "first.3"), 1e-6, 2.9, 2.9);
    assert_values(wb_get(model, "second.1"), 1e-6, 0.55, 0.55);
    assert_values(wb_get(model, "second.2"), 1e-6, 1.71, 1.71);
    assert_true(wb_optimiser_setting(o, "second.1", "eta") == 0.5);
    wb_free(o), wb_free(model);
}

static void a_step_follows(void **state) {
    (void)state;
    settings_stay_when_a_list_grows(take_step);
}
static void an_update_follows(void **state) {
    (void)state;
    settings_stay_when_a_list_grows(update);
}

static void moving_showing_and_handing_over_follow(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        wb_layer *model = new_gains();
        wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
        assert_int_equal(wb_freeze(o, "first.2"), WB_OK);
        take_step(o, model);
        grow(model);
        char text[8192];
        if (way == 0) assert_int_equal(wb_move(wb_cpu_device(), o), WB_OK);
        if (way == 1) assert_int_equal(wb_show_text(o, text, sizeof text), WB_OK);
        if (way == 1) assert_non_null(strstr(text, "first.20 = Leaf"));
        if (way == 2) assert_int_equal(wb_hand_over(o), WB_OK);
        take_step(o, model);
        assert_values(wb_get(model, "first.1"), 1e-6, 0.71, 0.71);
        assert_values(wb_get(model, "first.2"), 0, 1, 1);
        wb_free(o), wb_free(model);
    }
}

/* Its states no longer fit, and begin anew. */
static void settings_stay_with_another_element_type(void **state) {
    (void)state;
    for (int with_states = 0; with_states < 2; with_states++) {
        wb_layer *model = new_gains();
        wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.1), model);
        assert_int_equal(wb_freeze(o, "first.2"), WB_OK);
        assert_int_equal(wb_adjust_path(o, "second.1", "eta", 0.5), WB_OK);
        take_step(o, model);
        void *moved = with_states ? (void *)o : model;
        assert_int_equal(wb_move(wb_cpu_device(), moved, .eltype = WB_ELTYPE_F64), WB_OK);
        assert_int_equal(wb_thaw(o, "second"), WB_OK);
        take_step(o, model);
        assert_values(wb_get(model, "first.2"), 0, 1, 1);
        const double first = with_states ? 0.71 : 0.8, second = with_states ? 0.55 : 1;
        assert_values(wb_get(model, "first.1"), 1e-6, first, first);
        assert_values(wb_get(model, "second.1"), 1e-6, second, second);
        wb_free(o), wb_free(model);
    }
}

static wb_array *set_and_grow(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch;
    if (wb_set(model, "second.1", wb_full(WB_F32, 7, 2)) != WB_OK) return NULL;
    grow(model);
    return wb_sum(wb_get(model, user));
}

static void what_a_loss_sets_is_set_where_a_list_grew(void **state) {
    (void)state;
    char path[] = "first.1";
    wb_gradients *g;
    wb_layer *model = new_gains();
    assert_non_null(wb_withgradient(set_and_grow, model, NULL, path, &g));
    assert_values(wb_get(model, "second.1"), 0, 7, 7);
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(a_step_follows),
        TEST(an_update_follows),
        TEST(moving_showing_and_handing_over_follow),
        TEST(settings_stay_with_another_element_type),
        TEST(what_a_loss_sets_is_set_where_a_list_grew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
