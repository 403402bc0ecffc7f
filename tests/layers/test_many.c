/* Layers of several arrays: wb_apply_many, WB_FUNCTOR_MANY, and chains of them. */
#include <weber/gradient.h>
#include <weber/layers.h>

#include "support/numbers.h"
#include "support/scoped.h"

/* (x, y) to (w x + y, x y, ...): the sum goes on; after it come as many products as asked. */
typedef struct Mix {
    wb_layer layer;
    wb_array *weight, *seen;
    int products;
} Mix;

static int mix(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    Mix *m = (Mix *)(void *)layer;
    wb_array *last = inputs[count - 1];
    results[0] = wb_add(wb_mul(inputs[0], m->weight), last);
    for (int i = 0; i < m->products; i++) results[i + 1] = wb_mul(inputs[0], last);
    if (wb_is_active(layer) && wb_set(layer, "seen", wb_add_number(m->seen, count)) != WB_OK)
        return 0;
    return m->products + 1;
}
WB_FUNCTOR_MANY(Mix, mix, WB_ARRAY_FIELD(Mix, weight), WB_STATE_FIELD(Mix, seen));

static wb_layer *mixed(double weight, int products) {
    Mix *m = wb_new(Mix);
    m->weight = wb_keep(wb_vector_of(WB_F64, weight, weight));
    m->seen = wb_keep(wb_zeros(WB_F64, 1));
    m->products = products;
    return &m->layer;
}

static wb_array *of(double a, double b) { return wb_vector_of(WB_F64, a, b); }

static void several_results_pass_through_a_chain(void **state) {
    (void)state;
    wb_layer *model = wb_chain(mixed(2, 1), wb_chain(), wb_chain(mixed(1, 0)), wb_fn(wb_square));
    wb_array *xs[] = {of(1, 2), of(3, 4)}, *ys[3];
    assert_int_equal(wb_apply_many(model, 2, xs, 3, ys), 1);
    assert_values(ys[0], 0, 64, 256);                  /* (2x + y) + x y = 5 + 3, 8 + 8 */
    assert_values(wb_apply(model, xs[0]), 0, 16, 100); /* one array: 3x + x^2 */
    wb_free(model);
}

static void all_results_are_given(void **state) {
    (void)state;
    wb_layer *model = wb_chain(mixed(2, 2));
    wb_array *xs[] = {of(1, 2), of(3, 4)}, *ys[3];
    assert_int_equal(wb_apply_many(model, 2, xs, 3, ys), 3);
    assert_values(ys[0], 0, 5, 8);
    assert_values(ys[2], 0, 3, 8);
    wb_layer *nothing = wb_chain();
    assert_int_equal(wb_apply_many(nothing, 2, xs, 2, ys), 2);
    wb_free(model), wb_free(nothing);
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_layer *model = wb_chain(mixed(2, 1), wb_fn(wb_relu));
    wb_layer *open = wb_chain(mixed(2, 1)), *broken = mixed(1, WB_MOST_ARRAYS - 1);
    wb_array *xs[] = {of(1, 2), of(3, 4)}, *ys[WB_MOST_ARRAYS];
    assert_int_equal(wb_apply_many(model, 2, xs, 2, ys), 2); /* the second goes past wb_relu */
    assert_int_equal(wb_apply_many(wb_chain_at(model, 2), 2, xs, 2, ys), 0);
    assert_error(WB_ERROR_ARGUMENT, "takes one array, got 2");
    assert_null(wb_apply(open, xs[0]));
    assert_error(WB_ERROR_ARGUMENT,
                 "Chain: gives 2 arrays, expected 1; wb_apply_many returns several");
    assert_int_equal(wb_apply_many(broken, 2, xs, WB_MOST_ARRAYS, ys), WB_MOST_ARRAYS);
    xs[1] = NULL;
    assert_int_equal(wb_apply_many(model, 2, xs, 2, ys), 0);
    assert_error(WB_ERROR_ARGUMENT, "wb_apply_many: array 1 is NULL");
    assert_int_equal(wb_apply_many(model, 0, xs, 2, ys), 0);
    assert_error(WB_ERROR_ARGUMENT, "count must be from 1 to 16, got 0");
    wb_free(model), wb_free(open), wb_free(broken);
}

/* As with one array: the field has the new value, and not where the forward function failed. */
static void a_state_is_written(void **state) {
    (void)state;
    wb_layer *model = wb_chain(mixed(2, 1), mixed(1, 0));
    wb_layer *bad = wb_chain(mixed(1, 1), wb_skip(wb_flatten(), NULL));
    wb_array *xs[] = {of(1, 2), of(3, 4)}, *ys[2];
    assert_int_equal(wb_train_mode(model), WB_OK);
    assert_int_equal(wb_train_mode(bad), WB_OK);
    assert_int_equal(wb_apply_many(model, 2, xs, 2, ys), 1);
    assert_values(wb_get(model, "layers.1.seen"), 0, 2);
    assert_values(wb_get(model, "layers.2.seen"), 0, 2);
    assert_int_equal(wb_apply_many(bad, 2, xs, 2, ys), 0);
    wb_clear_error();
    assert_values(wb_get(bad, "layers.1.seen"), 0, 0);
    wb_free(model), wb_free(bad);
}

static wb_array *apply(void *model, int count, wb_array *const *inputs) {
    wb_array *ys[2];
    return wb_apply_many(model, count, inputs, 2, ys) == 2 ? wb_mul(ys[0], ys[1]) : NULL;
}

static void gradients(void **state) {
    (void)state;
    wb_layer *model = wb_chain(mixed(2, 1), mixed(0.5, 1));
    wb_array *xs[] = {of(1, 2), of(3, -4)};
    assert_int_equal(wb_gradient_check(apply, model, 2, xs, 2, 0), WB_OK);
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(several_results_pass_through_a_chain),
        TEST(all_results_are_given),
        TEST(mistakes_are_named),
        TEST(a_state_is_written),
        TEST(gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
