/* Rule 17: a parameter is a place in a model, with a path; a tie has one gradient and one state. */
#include "device/device.h"
#include "optimise/optimiser.h"
#include "values/modes.h"

/* The gradient of the sum of x g is g. */
static wb_array *along(wb_layer *model, const char *path, wb_array *g) {
    return wb_sum(wb_mul(wb_get(model, path), g));
}
static wb_status step(wb_optimiser *o, wb_layer *model, wb_array *l) {
    return wb_update(o, model, wb_gradient(l, model));
}

static void what_a_getter_returns_belongs_to_the_scope(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(3, 2), wb_dense(2, 1));
    const wb_live_counts before = live_now();
    wb_scope_open();
    for (int i = 0; i < 100; i++) assert_non_null(wb_get(model, "layers.2.weight"));
    wb_array *w = wb_get(model, "layers.1.weight");
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(live_now().arrays, before.arrays);
    wb_scope_open();
    assert_ptr_equal(wb_get(model, "layers.1.weight"), w); /* the slot has it still */
    wb_free(wb_get(model, "layers.1.weight")); /* leaves the scope early, not the slot */
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_parameter_count(model), 3 * 2 + 2 + 2 + 1);
    wb_free(model);
}

static void a_getter_outlives_the_model(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_array *x = wb_get(model, "1");
    wb_free(model);
    assert_values(wb_add_number(x, 1), 0, 2, 3);
}

static void an_unknown_path_lists_the_valid_ones(void **state) {
    (void)state;
    wb_layer *model =
        wb_chain_named({"encoder", wb_dense(3, 2)}, {"decoder", wb_dense(2, 3, .bias = false)});
    assert_non_null(wb_get(model, "layers.encoder.bias"));
    assert_null(wb_get(model, "layers.encoder.weights"));
    assert_true(strstr(wb_error_message(), "layers.decoder.weight") != NULL);
    assert_error(WB_ERROR_ARGUMENT, "layers.encoder.weight");
    assert_null(wb_get(model, "layers.decoder.bias"));
    assert_true(wb_failed());
    wb_clear_error();
    wb_free(model);
}

typedef struct Pair {
    wb_layer layer;
    wb_array *a, *b, *turned, *c;
} Pair;
WB_FUNCTOR(Pair, NULL, WB_ARRAY_FIELD(Pair, a), WB_ARRAY_FIELD(Pair, b),
           WB_ARRAY_FIELD(Pair, turned), WB_ARRAY_FIELD(Pair, c));

/* Equal recipes are computed once; what they give are parameters of their own all the same. */
static void equal_beginnings_are_no_tie(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_from(WB_F32, ((const float[]){1, 2, 3, 4, 5, 6}), 2, 3);
    Pair *p = wb_new(Pair), *q = wb_new(Pair);
    p->a = wb_keep(wb_zeros(WB_F32, 2, 3)), p->b = wb_keep(wb_zeros(WB_F32, 2, 3));
    p->turned = wb_keep(wb_transpose(p->a)), p->c = wb_keep(wb_zeros(WB_F32, 2, 3));
    q->a = wb_keep(wb_matmul(x, wb_transpose(x))), q->b = wb_keep(wb_matmul(x, wb_transpose(x)));
    q->turned = wb_keep(wb_transpose(q->a)), q->c = wb_keep(wb_exp(wb_matmul(x, wb_transpose(x))));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(q->b, 0, 35, 44, 44, 56);
    wb_optimiser *of_p = wb_setup(wb_descent(.eta = 1), &p->layer);
    wb_optimiser *of_q = wb_setup(wb_descent(.eta = 1), &q->layer);
    assert_int_equal(of_p->group_count, 3); /* a and turned are one */
    assert_int_equal(of_q->group_count, 3);
    wb_array *l =
        wb_add(wb_sum(wb_get(&p->layer, "a")), wb_mul_number(wb_sum(wb_get(&p->layer, "b")), 2));
    assert_int_equal(step(of_p, &p->layer, l), WB_OK);
    assert_values(p->a, 0, -1, -1, -1, -1, -1, -1);
    assert_values(p->b, 0, -2, -2, -2, -2, -2, -2);
    assert_values(p->c, 0, 0, 0, 0, 0, 0, 0);
    wb_free(of_p), wb_free(of_q), wb_free(p), wb_free(q);
}

/* An encoder and a decoder that uses its weight transposed, against the same by hand: g = g1 +
 * g2'. */
static void a_tie_has_one_gradient_and_one_state(void **state) {
    (void)state;
    const double w0[] = {1, 2, 3, 4, 5, 6}, g1[] = {1, 0, 2, 0, 3, 0}, g2[] = {0, 0, 1, 5, 0, 0};
    wb_array *w = array_of(WB_F64, w0, 2, (int64_t[]){2, 3});
    wb_layer *model = wb_tree(w, wb_transpose(w), w);
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.5, .rho = 0.5), model);
    assert_int_equal(o->group_count, 1);
    double x[6], v[6] = {0};
    memcpy(x, w0, sizeof x);
    for (int t = 0; t < 3; t++) {
        wb_array *first = array_of(WB_F64, g1, 2, (int64_t[]){2, 3});
        wb_array *second = array_of(WB_F64, g2, 2, (int64_t[]){3, 2});
        wb_array *l = wb_add(wb_add(along(model, "1", first), along(model, "2", second)),
                             along(model, "3", first));
        assert_int_equal(step(o, model, l), WB_OK);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++) {
                const int k = i + 2 * j;
                v[k] = 0.5 * v[k] + 0.5 * (2 * g1[k] + g2[j + 3 * i]);
                x[k] -= v[k];
            }
        assert_numbers(wb_get(model, "1"), 6, x, 1e-12);
        assert_numbers(wb_transpose(wb_get(model, "2")), 6, x, 1e-12);
        assert_ptr_equal(wb_get(model, "1"), wb_get(model, "3"));
    }
    wb_free(o), wb_free(model);
}

static void the_gradient_of_a_tie_is_summed_over_its_places(void **state) {
    (void)state;
    wb_array *w = wb_vector(1, 2);
    wb_layer *model = wb_tree(w, wb_vector(5, 5), w);
    wb_array *l =
        wb_add(along(model, "1", wb_vector(1, 10)), along(model, "3", wb_vector(100, 1000)));
    wb_gradients *g = wb_gradient(l, model);
    assert_values(wb_gradients_get(g, "1"), 0, 101, 1010);
    assert_values(wb_gradients_get(g, "3"), 0, 101, 1010);
    assert_null(wb_gradients_get(g, "2"));
    assert_false(wb_failed());
    wb_free(model);
}

/* Ties are looked at anew at each update: made by wb_tie, and parted by wb_set. */
static void ties_are_checked_at_each_update(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1), wb_vector(2));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1))), WB_OK);
    assert_values(wb_get(model, "2"), 0, 2);
    assert_int_equal(wb_tie(model, "2", wb_get(model, "1")), WB_OK);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(3))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, -3);
    assert_values(wb_get(model, "2"), 1e-6, -3);
    assert_int_equal(wb_set(model, "2", wb_vector(-3)), WB_OK); /* equal, but no tie */
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1))), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, -4);
    assert_values(wb_get(model, "2"), 0, -3);
    wb_free(o), wb_free(model);
}

/* ---- what is set is a copy ---- */

typedef wb_array *source_fn(wb_layer *model);

static wb_array *of_another_place(wb_layer *model) { return wb_get(model, "2"); }
static wb_array *a_view_of_it(wb_layer *model) { return wb_reshape(wb_get(model, "2"), 2); }
static wb_array *a_transpose_of_it(wb_layer *model) {
    return wb_reshape(wb_transpose(wb_unsqueeze(wb_get(model, "2"), 1)), 2);
}
static wb_array *a_cast_of_it(wb_layer *model) { return wb_cast(wb_get(model, "2"), WB_F32); }

/* An array of the caller's, set into both places. */
static wb_array *set_already(wb_layer *model, wb_array *x) {
    assert_int_equal(wb_set(model, "2", x), WB_OK);
    return x;
}
static wb_array *numbers_of_two(wb_layer *model) { return set_already(model, wb_vector(5, 6)); }
static wb_array *numbers_of_two_pending(wb_layer *model) {
    return set_already(model, wb_add_number(wb_vector(4, 5), 1));
}
static wb_array *a_view_of_pending(wb_layer *model) {
    wb_array *x = wb_add_number(wb_vector(4, 5), 1);
    (void)set_already(model, wb_reshape(x, 2));
    return x;
}

static const struct copy_row {
    const char *name;
    source_fn *source;
} copy_rows[] = {
    {"an array of another place", of_another_place},
    {"a view of one", a_view_of_it},
    {"a transpose of one", a_transpose_of_it},
    {"a cast that changes nothing", a_cast_of_it},
    {"one array for two places", numbers_of_two},
    {"one array that is not yet computed", numbers_of_two_pending},
    {"a view of one that is not yet computed", a_view_of_pending},
};

/* A step over the first alone leaves the second, and the average of each is its own. */
static void what_is_set_is_a_copy(void **state) {
    const struct copy_row *r = *state;
    enum { UNREAD, READ_BEFORE, READ_AFTER, WAYS };
    for (int way = 0; way < WAYS; way++) {
        wb_layer *model = wb_tree(wb_vector(1, 2), wb_vector(5, 6));
        wb_optimiser *o =
            wb_setup(wb_rule_chain(wb_descent(.eta = 0.5), wb_ema(.decay = 0.5)), model);
        wb_array *x = r->source(model);
        if (way == READ_BEFORE) assert_values(x, 0, 5, 6);
        assert_int_equal(wb_set(model, "1", x), WB_OK);
        if (way == READ_BEFORE) assert_values(wb_get(model, "2"), 0, 5, 6);
        if (way == READ_AFTER) assert_values(x, 0, 5, 6);
        assert_int_equal(wb_parameter_count(model), 4);
        assert_int_equal(step(o, model, along(model, "1", wb_vector(2, 2))), WB_OK);
        assert_values(wb_get(model, "1"), 1e-6, 4, 5);
        assert_values(wb_get(model, "2"), 0, 5, 6);
        assert_values(x, 0, 5, 6);
        wb_layer *average = wb_averaged(o);
        assert_values(wb_get(average, "2"), 0, 5, 6);
        wb_free(average), wb_free(o), wb_free(model);
    }
}

/* Nor has what it was made of a gradient of its losses; what a loss sets has, until the step. */
static wb_array *generated(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    wb_array *w = wb_mul_number(wb_get(model, "2"), 3);
    return wb_set(model, "1", w) == WB_OK ? wb_sum(wb_get(model, "1")) : NULL;
}

static void a_parameter_that_was_set_begins_a_recipe(void **state) {
    (void)state;
    for (int is_read = 0; is_read < 2; is_read++) {
        wb_layer *model = wb_tree(wb_vector(1, 2), wb_vector(5, 6));
        wb_array *x = wb_mul_number(wb_get(model, "2"), 2);
        if (is_read) assert_int_equal(wb_eval(x), WB_OK);
        assert_int_equal(wb_set(model, "1", x), WB_OK);
        wb_gradients *g = wb_gradient(wb_sum(wb_get(model, "1")), model);
        assert_values(wb_gradients_get(g, "1"), 0, 1, 1);
        assert_null(wb_gradients_get(g, "2"));
        assert_values(wb_get(model, "1"), 0, 10, 12);
        assert_non_null(wb_withgradient(generated, model, NULL, NULL, &g));
        assert_values(wb_gradients_get(g, "2"), 0, 3, 3);
        wb_free(model);
    }
}

static void an_array_that_is_set_where_it_stands_stays_tied(void **state) {
    (void)state;
    wb_array *w = wb_vector(1, 2);
    wb_layer *model = wb_tree(w, w);
    assert_int_equal(wb_set(model, "1", wb_get(model, "1")), WB_OK);
    assert_int_equal(wb_parameter_count(model), 2);
    wb_free(model);
}

static void ties_are_made_of_what_stands_elsewhere(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_ones(WB_F32, 2, 3), wb_ones(WB_F32, 3, 2), wb_ones(WB_F64, 2, 3));
    assert_int_equal(wb_tie(model, "2", wb_transpose(wb_get(model, "1"))), WB_OK);
    assert_int_equal(wb_parameter_count(model), 12);
    assert_int_equal(wb_tie(model, "3", wb_get(model, "1")), WB_ERROR_DTYPE);
    assert_error(WB_ERROR_DTYPE, "wb_tie: 3 is f64, so it cannot be tied to f32");
    assert_int_equal(wb_tie(model, "1", wb_mul_number(wb_get(model, "1"), 2)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_tie: x must be the array of another place");
    assert_int_equal(wb_tie(model, "1", wb_get(model, "2")), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "wb_tie: 1 has sizes (2, 3), the new array (3, 2)");
    wb_free(model);
}

static void what_is_no_tie_is_refused(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_ones(WB_F32, 2, 3), wb_ones(WB_F32, 2, 3), wb_ones(WB_F32, 1, 3),
                              wb_ones(WB_F32, 4, 3));
    for (int computed = 0; computed < 2; computed++) {
        wb_array *views[] = {wb_flip(wb_get(model, "1"), 0), wb_expand(wb_get(model, "3"), 2, 3),
                             wb_slice(wb_get(model, "4"), 0, 1, 3, 1)};
        for (int i = 0; i < 3; i++) {
            if (computed) assert_int_equal(wb_eval(views[i]), WB_OK);
            assert_int_equal(wb_tie(model, "2", views[i]), WB_ERROR_ARGUMENT);
            assert_error(WB_ERROR_ARGUMENT, "wb_tie: x must be a whole array, perhaps transposed");
        }
    }
    assert_int_equal(wb_parameter_count(model), 6 + 6 + 3 + 12);
    wb_free(model);
}

static wb_array *the_same_for_all(void *user, const char *path, wb_array *x) {
    (void)path, (void)x;
    return user;
}

/* Nor does a function tie what it gives for two arrays. */
static void a_function_that_gives_one_array_ties_nothing(void **state) {
    (void)state;
    wb_array *w = wb_vector(1, 2);
    wb_layer *model = wb_tree(wb_vector(3, 4), wb_vector(5, 6));
    wb_layer *mapped = wb_map(the_same_for_all, w, model);
    assert_int_equal(wb_parameter_count(mapped), 4);
    assert_int_equal(wb_walk(the_same_for_all, w, model), WB_OK);
    assert_int_equal(wb_parameter_count(model), 4);
    assert_values(wb_get(model, "2"), 0, 1, 2);
    wb_free(mapped), wb_free(model);
}

static void a_part_of_an_array_is_no_tie(void **state) {
    (void)state;
    wb_array *w = wb_vector(1, 2, 3, 4);
    wb_layer *model = wb_tree(w, wb_slice(w, 0, 0, 2, 1), wb_flip(w, 0));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model);
    if (o) { /* either parted, or refused with a reason */
        assert_int_equal(step(o, model, along(model, "1", wb_vector(1, 1, 1, 1))), WB_OK);
        assert_values(wb_get(model, "1"), 1e-6, 0, 1, 2, 3);
        assert_values(wb_get(model, "2"), 0, 1, 2);
        assert_values(wb_get(model, "3"), 0, 4, 3, 2, 1);
    } else
        wb_clear_error();
    wb_free(o), wb_free(model);
}

static void a_layer_in_two_places_is_one(void **state) {
    (void)state;
    wb_layer *dense = wb_dense(2, 2, .init = wb_ones_init);
    wb_layer *model = wb_chain(dense, wb_keep_layer(dense));
    assert_int_equal(wb_parameter_count(model), 6);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.125), model);
    wb_array *x = wb_reshape(wb_vector(1, 2), 2, 1);
    assert_int_equal(step(o, model, wb_sum(wb_apply(model, x))), WB_OK);
    assert_ptr_equal(wb_get(model, "layers.1.weight"), wb_get(model, "layers.2.weight"));
    /* d/dW of 1' W (W x): 1 (W x)' + W' 1 x' */
    assert_values(wb_get(model, "layers.2.weight"), 1e-6, 1 - 0.625, 1 - 0.625, 1 - 0.875,
                  1 - 0.875);
    wb_free(o), wb_free(model);
}

static void a_state_on_another_device_names_both(void **state) {
    (void)state;
    static const wb_device elsewhere = {.name = "Elsewhere", .backend = &wb_cpu_backend};
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_optimiser *o = wb_setup(wb_momentum(), model);
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1, 1))), WB_OK);
    wb_array *velocity = o->groups[0].states[0], *before = wb_copy(wb_get(model, "1"));
    velocity->device = &elsewhere;
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1, 1))), WB_ERROR_ARGUMENT);
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted, "a parameter (2) is on %s, its state on Elsewhere",
                   wb_device_name(wb_default_device()));
    assert_error(WB_ERROR_ARGUMENT, wanted);
    assert_same_bits(wb_get(model, "1"), before, "after a refused update");
    velocity->device = wb_default_device();
    assert_int_equal(step(o, model, along(model, "1", wb_vector(1, 1))), WB_OK);
    wb_free(o), wb_free(model);
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(what_a_getter_returns_belongs_to_the_scope),
        TEST(a_getter_outlives_the_model),
        TEST(an_unknown_path_lists_the_valid_ones),
        TEST(equal_beginnings_are_no_tie),
        TEST(a_tie_has_one_gradient_and_one_state),
        TEST(the_gradient_of_a_tie_is_summed_over_its_places),
        TEST(ties_are_checked_at_each_update),
        TEST(a_parameter_that_was_set_begins_a_recipe),
        TEST(an_array_that_is_set_where_it_stands_stays_tied),
        TEST(ties_are_made_of_what_stands_elsewhere),
        TEST(what_is_no_tie_is_refused),
        TEST(a_function_that_gives_one_array_ties_nothing),
        TEST(a_part_of_an_array_is_no_tie),
        TEST(a_layer_in_two_places_is_one),
        TEST(a_state_on_another_device_names_both),
    };
    ADD_ROWS(&tests, copy_rows, what_is_set_is_a_copy);
    ADD_TESTS(&tests, others);
    return run_test_list("values 17", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
