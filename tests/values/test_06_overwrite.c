/* Rule 6: a plan overwrites a buffer only if no live pending node outside it reads the old
 * value. */
#include "support/sanitized.h"
#include "values/steps.h"

static wb_layer *two_arrays(void) {
    return wb_tree(wb_full(WB_F32, 2, 100), wb_full(WB_F32, 4, 3, 5));
}

/* The memory of a slot's array, looked at without holding it. */
static const void *memory_of(wb_layer *model, const char *path) {
    wb_scope_open();
    wb_array *x = wb_get(model, path);
    const void *memory = x->buffer;
    assert_int_equal(wb_scope_close(), WB_OK);
    return memory;
}

typedef struct rule_row {
    const char *name;
    wb_rule (*rule)(void);
} rule_row;

static wb_rule descent(void) { return wb_descent(); }
static wb_rule momentum(void) { return wb_momentum(); }
static wb_rule adam(void) { return wb_adam(); }
static wb_rule adamw(void) { return wb_adamw(.lambda = 0.1); }

static const rule_row rule_rows[] = {
    {"descent works in place", descent},
    {"momentum works in place", momentum},
    {"Adam works in place", adam},
    {"AdamW works in place", adamw},
};

static void updates_work_in_place(void **state) {
    const rule_row *row = *state;
    wb_layer *model = two_arrays();
    wb_optimiser *o = wb_setup(row->rule(), model);
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK);
    const void *first = memory_of(model, "1"), *second = memory_of(model, "2");
    const int64_t missed = wb_plan_status().missed_donations;
    for (int i = 0; i < 10; i++) assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK);
    assert_int_equal(wb_plan_status().missed_donations, missed);
    if (!is_eager()) { /* eagerly a parameter and its state may exchange their memory */
        assert_ptr_equal(memory_of(model, "1"), first);
        assert_ptr_equal(memory_of(model, "2"), second);
    }
    wb_free(o), wb_free(model);
}

typedef struct reader_row {
    const char *name;
    wb_array *(*reads)(wb_array *x);
    double wanted; /* of each element where x is 2 */
} reader_row;

static wb_array *directly(wb_array *x) { return wb_mul_number(x, 3); }
static wb_array *through_others(wb_array *x) {
    return wb_add_number(wb_mul_number(wb_neg(wb_sqrt(wb_square(x))), 2), 1);
}
static wb_array *through_a_view(wb_array *x) { return wb_flip(wb_reshape(x, 10, 10), 1); }
static wb_array *through_a_sum(wb_array *x) { return wb_sum(x); }

static const reader_row reader_rows[] = {
    {"a pending node reads the old value", directly, 6},
    {"a pending node reads the old value through others", through_others, -3},
    {"a pending view shows the old value", through_a_view, 2},
    {"a pending sum is of the old values", through_a_sum, 200},
};

static void a_pending_reader_outside_keeps_the_old_value(void **state) {
    const reader_row *row = *state;
    wb_layer *model = two_arrays();
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK); /* 1 and 2 */
    assert_int_equal(wb_set(model, "1", wb_copy(wb_full(WB_F32, 2, 100))), WB_OK);
    wb_array *later = row->reads(wb_get(model, "1"));
    const int64_t missed = wb_plan_status().missed_donations;
    assert_int_equal(step(o, model, squares_of_two), WB_OK);
    assert_int_equal(wb_plan_status().missed_donations, missed + 1); /* and the other one's not */
    assert_value(wb_mean(wb_get(model, "1")), 1, 1e-6);
    assert_value(wb_mean(later), row->wanted, 1e-5);
    wb_free(o), wb_free(model);
}

static void a_reader_that_is_gone_forbids_nothing(void **state) {
    (void)state;
    wb_layer *model = two_arrays();
    wb_optimiser *o = wb_setup(wb_descent(), model);
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK);
    wb_scope_open();
    (void)directly(wb_get(model, "1"));
    assert_int_equal(wb_scope_close(), WB_OK);
    const int64_t missed = wb_plan_status().missed_donations;
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK);
    assert_int_equal(wb_plan_status().missed_donations, missed);
    wb_free(o), wb_free(model);
}

static wb_array *half_squares(wb_layer *model, const wb_batch *batch, void *user) {
    return wb_mul_number(squares_of_two(model, batch, user), 0.5);
}

/* What the step itself hands out must not lie in memory that it writes over. */
static wb_array *product(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_mul(wb_get(model, "1"), wb_get(model, "2")));
}
static wb_array *the_array_itself(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_reshape_make(wb_get(model, "1"), 0, NULL);
}
static wb_array *sum_of_one(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_get(model, "1"));
}
static wb_array *turned_product(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_mul(wb_flip(wb_get(model, "1"), 0), wb_reshape(wb_get(model, "2"), 3)));
}

typedef struct step_row {
    const char *name;
    wb_loss_fn *loss;
    double eta, value; /* of the loss */
    double gradients[2][3];
} step_row;

static const step_row step_rows[] = {
    {"a gradient that is its parameter stays", half_squares, 0.5, 707, {{1, 2, 3}, {10, 20, 30}}},
    {"gradients that are parameters stay", product, 1, 140, {{10, 20, 30}, {1, 2, 3}}},
    {"gradients that are views of parameters stay",
     turned_product,
     1,
     100,
     {{30, 20, 10}, {3, 2, 1}}},
};

static void what_a_step_hands_out_stays(void **state) {
    const step_row *row = *state;
    wb_layer *model = wb_tree(wb_vector(1, 2, 3), wb_vector(10, 20, 30));
    wb_optimiser *o = wb_setup(wb_descent(.eta = row->eta), model);
    wb_gradients *g;
    const wb_batch batch = {0};
    wb_array *l = wb_withgradient(row->loss, model, &batch, NULL, &g);
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_value(l, row->value, 1e-6);
    for (int p = 0; p < 2; p++) {
        const char *path = p ? "2" : "1";
        double after[3];
        for (int i = 0; i < 3; i++)
            after[i] = (p ? 10 : 1) * (i + 1) - row->eta * row->gradients[p][i];
        assert_numbers(wb_get(model, path), 3, after, 1e-6);
        assert_numbers(wb_gradients_get(g, path), 3, row->gradients[p], 1e-6);
    }
    wb_free(o), wb_free(model);
}

static void a_loss_that_is_a_parameter_stays(void **state) {
    (void)state;
    wb_loss_fn *const losses[] = {the_array_itself, sum_of_one};
    for (int i = 0; i < 2; i++) {
        wb_layer *model = wb_tree(wb_vector(5));
        wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
        wb_gradients *g;
        const wb_batch batch = {0};
        wb_array *l = wb_withgradient(losses[i], model, &batch, NULL, &g);
        assert_int_equal(wb_update(o, model, g), WB_OK);
        assert_values(wb_get(model, "1"), 1e-6, 4);
        assert_value(l, 5, 1e-6);
        wb_free(o), wb_free(model);
    }
}

/* The middle of a network, looked at after the step: computed again from the old weights. */
static void a_middle_read_after_the_update_is_of_the_old_weights(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(3, 6, wb_tanh), wb_dense(6, 2));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.5), model);
    wb_array *x = wb_uniform(WB_F32, 3, 9);
    wb_array *before = wb_copy(wb_apply(wb_get_layer(model, "layers.1"), x));
    wb_array *h = wb_apply(wb_get_layer(model, "layers.1"), x);
    wb_array *l = wb_mean(wb_square(wb_apply(wb_get_layer(model, "layers.2"), h)));
    assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
    assert_true(wb_approx(h, before, 1e-6, 1e-7, NULL, 0));
    assert_false(
        wb_approx(wb_apply(wb_get_layer(model, "layers.1"), x), before, 1e-3, 1e-3, NULL, 0));
    wb_free(o), wb_free(model);
}

/* The same where nothing but a node of the step's own plan still refers to the parameter. */
static void a_node_of_the_plan_read_later_is_of_the_old_value(void **state) {
    (void)state;
    wb_scope_open();
    wb_layer *model = wb_tree(wb_vector(0, 1, 2));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.5), model);
    wb_array *x = wb_get(model, "1"), *y = wb_mul_number(wb_neg(x), 2), *l = wb_sum(wb_exp(y));
    wb_free(x); /* from here on y alone reads it */
    assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 1, 1 + exp(-2), 2 + exp(-4));
    assert_values(y, 1e-6, 0, -2, -4);
    wb_free(o), wb_free(model);
}

/* x = x - 0.1 x by hand: two pooled buffers at most, and nothing asked of the system. */
static void a_loop_by_hand_alternates_between_two_buffers(void **state) {
    (void)state;
    wb_array *x = wb_keep(wb_uniform(WB_F32, 1000));
    assert_int_equal(wb_eval(x), WB_OK);
    const void *seen[2] = {NULL, NULL};
    int64_t allocations = 0;
    for (int i = 0; i < 50; i++) {
        wb_scope_open();
        wb_array *fresh = wb_keep(wb_sub(x, wb_mul_number(x, 0.1)));
        wb_free(x);
        x = fresh;
        assert_int_equal(wb_scope_close(), WB_OK);
        if (i < 3) allocations = wb_plan_status().allocations;
        if (i < 2)
            seen[i] = x->buffer;
        else if (!is_eager())
            assert_true(x->buffer == seen[0] || x->buffer == seen[1]);
    }
    /* where nodes rest, and on devices that queue, each step allocates */
    if (!NODES_REST && !is_eager() && is_on_host())
        assert_int_equal(wb_plan_status().allocations, allocations);
    wb_free(x);
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(a_reader_that_is_gone_forbids_nothing),
        TEST(a_loss_that_is_a_parameter_stays),
        TEST(a_middle_read_after_the_update_is_of_the_old_weights),
        TEST(a_node_of_the_plan_read_later_is_of_the_old_value),
        TEST(a_loop_by_hand_alternates_between_two_buffers),
    };
    ADD_ROWS(&tests, rule_rows, updates_work_in_place);
    ADD_ROWS(&tests, reader_rows, a_pending_reader_outside_keeps_the_old_value);
    ADD_ROWS(&tests, step_rows, what_a_step_hands_out_stays);
    ADD_TESTS(&tests, others);
    return run_test_list("values 6", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
