/* src/layers/walk.c, and structs of the user's own */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weber/layers.h>
#include <weber/optimise.h>

#include "support/numbers.h"
#include "support/scoped.h"

/* the guides' example: all fields, and only one */
typedef struct ActorCritic {
    wb_layer layer;
    wb_array *actor;
    wb_array *critic;
    float discount;
} ActorCritic;
WB_FUNCTOR(ActorCritic, NULL, WB_ARRAY_FIELD(ActorCritic, actor),
           WB_ARRAY_FIELD(ActorCritic, critic));

typedef struct ActorOnly {
    wb_layer layer;
    wb_array *actor;
    wb_array *critic;
} ActorOnly;
WB_FUNCTOR(ActorOnly, NULL, WB_ARRAY_FIELD(ActorOnly, actor), WB_FIXED_FIELD(ActorOnly, critic));

typedef struct Pair {
    wb_layer layer;
    wb_layer *first, *second;
} Pair;
static wb_array *apply_pair(wb_layer *layer, wb_array *x) {
    Pair *pair = (Pair *)(void *)layer;
    return wb_add(wb_apply(pair->first, x), wb_apply(pair->second, x));
}
WB_FUNCTOR(Pair, apply_pair, WB_CHILD_FIELD(Pair, first), WB_CHILD_FIELD(Pair, second));

static wb_array *to_f64(void *user, const char *path, wb_array *x) {
    (void)path;
    ++*(int *)user;
    return wb_cast(x, WB_F64);
}

static void all_fields_of_a_struct_are_mapped(void **state) {
    (void)state;
    int calls = 0;
    ActorCritic *m = wb_new(ActorCritic);
    m->actor = wb_keep(wb_ones(WB_F32, 2, 2));
    m->critic = wb_keep(wb_ones(WB_F32, 2));
    m->discount = 0.5f;
    ActorCritic *n = (ActorCritic *)(void *)wb_map(to_f64, &calls, &m->layer);
    assert_int_equal(calls, 2);
    assert_int_equal(wb_dtype_of(n->actor), WB_F64);
    assert_int_equal(wb_dtype_of(n->critic), WB_F64);
    assert_true(n->discount == 0.5f);
    assert_int_equal(wb_dtype_of(m->actor), WB_F32);
    assert_int_equal(wb_parameter_count(&n->layer), 6);
    wb_free(m), wb_free(n);
}

static void fields_left_out_stay(void **state) {
    (void)state;
    int calls = 0;
    ActorOnly *m = wb_new(ActorOnly);
    m->actor = wb_keep(wb_ones(WB_F32, 2, 2));
    m->critic = wb_keep(wb_ones(WB_F32, 2));
    ActorOnly *n = (ActorOnly *)(void *)wb_map(to_f64, &calls, &m->layer);
    assert_int_equal(calls, 1);
    assert_int_equal(wb_dtype_of(n->actor), WB_F64);
    assert_true(n->critic == m->critic);
    assert_int_equal(wb_parameter_count(&n->layer), 4);
    wb_free(m);
    assert_values(n->critic, 0, 1, 1);
    wb_free(n);
}

static void a_struct_without_a_table_is_refused(void **state) {
    (void)state;
    const wb_layer_class undeclared = {.name = "ActorCritic", .size_bytes = sizeof(ActorCritic)};
    assert_null(wb_layer_new(&undeclared));
    assert_error(WB_ERROR_ARGUMENT, "ActorCritic has no field table: declare it with WB_FUNCTOR");
    ActorCritic m = {.actor = wb_vector(1)};
    assert_null(wb_map(to_f64, NULL, &m.layer));
    assert_error(WB_ERROR_ARGUMENT, "wb_map: this is not a layer; a struct of your own must have a "
                                    "wb_layer as its first member");
    assert_null(wb_chain(&m.layer));
    assert_error(WB_ERROR_ARGUMENT, "wb_chain: layer 1 is not a layer");
}

static void children_are_named_in_errors(void **state) {
    (void)state;
    Pair *pair = wb_new(Pair);
    pair->first = wb_dense(2, 3, .init = wb_ones_init),
    pair->second = wb_dense(2, 3, .init = wb_ones_init);
    assert_values(wb_apply(&pair->layer, wb_vector(1, 2)), 1e-6, 6, 6, 6);
    wb_layer *model = wb_chain(&pair->layer);
    wb_free(pair->second);
    pair->second = wb_dense(4, 3);
    assert_null(wb_apply(model, wb_vector(1, 2)));
    assert_error(WB_ERROR_SHAPE,
                 "Dense(4 => 3), second of Pair, layer 1 of Chain: input has 2 features in (2)");
    wb_free(model);
}

static void ties_are_kept(void **state) {
    (void)state;
    int calls = 0;
    wb_array *w = wb_ones(WB_F32, 2, 2);
    wb_layer *shared = wb_dense(2, 2);
    wb_layer *model = wb_chain(wb_dense(.given_weight = w, .bias = false), shared,
                               wb_dense(.given_weight = w, .bias = false), wb_keep_layer(shared));
    assert_int_equal(wb_parameter_count(model), 10);
    wb_layer *copy = wb_map(to_f64, &calls, model);
    assert_int_equal(calls, 3);
    assert_true(wb_get(copy, "layers.1.weight") == wb_get(copy, "layers.3.weight"));
    assert_true(wb_get_layer(copy, "layers.2") == wb_get_layer(copy, "layers.4"));
    assert_int_equal(wb_walk(to_f64, &calls, model), WB_OK);
    assert_int_equal(calls, 6);
    assert_true(wb_get(model, "layers.1.weight") == wb_get(model, "layers.3.weight"));
    assert_int_equal(wb_parameter_count(copy), 10);
    wb_free(copy), wb_free(model);
}

static void a_transpose_is_a_tie(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3, .bias = false), wb_dense(3, 2, .bias = false));
    assert_int_equal(
        wb_tie(model, "layers.2.weight", wb_transpose(wb_get(model, "layers.1.weight"))), WB_OK);
    assert_int_equal(wb_parameter_count(model), 6);
    wb_layer *copy = wb_clone(model);
    assert_int_equal(wb_parameter_count(copy), 6);
    wb_array *w = wb_get(copy, "layers.1.weight"), *v = wb_get(copy, "layers.2.weight");
    assert_true(wb_approx(wb_transpose(w), v, 0, 0, NULL, 0));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), copy);
    wb_gradients *g = wb_gradient(wb_sum(w), copy);
    assert_int_equal(wb_update(o, copy, g), WB_OK);
    assert_true(wb_approx(wb_transpose(wb_get(copy, "layers.1.weight")),
                          wb_get(copy, "layers.2.weight"), 0, 0, NULL, 0));
    wb_free(o), wb_free(copy), wb_free(model);
}

static wb_array *refuse_bias(void *user, const char *path, wb_array *x) {
    (void)user;
    return strstr(path, "bias") ? NULL : wb_mul_number(x, 2);
}

static void a_walk_that_fails_changes_nothing(void **state) {
    (void)state;
    wb_layer *dense = wb_dense(2, 2, .init = wb_ones_init);
    assert_int_not_equal(wb_walk(refuse_bias, NULL, dense), WB_OK);
    assert_error(WB_ERROR_ARGUMENT, "the function gave NULL for bias");
    assert_values(wb_get(dense, "weight"), 0, 1, 1, 1, 1);
    assert_null(wb_map(refuse_bias, NULL, dense));
    wb_clear_error();
    wb_free(dense);
}

static void a_clone_has_arrays_of_its_own(void **state) {
    (void)state;
    wb_layer *dense = wb_dense(2, 2, wb_relu), *copy = wb_clone(dense);
    assert_true(wb_approx(wb_get(dense, "weight"), wb_get(copy, "weight"), 0, 0, NULL, 0));
    assert_int_equal(wb_set(dense, "weight", wb_zeros(WB_F32, 2, 2)), WB_OK);
    assert_true(wb_item(wb_sum(wb_abs(wb_get(copy, "weight")))) > 0);
    wb_free(dense);
    assert_sizes(wb_apply(copy, wb_vector(1, 2)), 2);
    wb_free(copy);
}

static void *serve(void *argument) {
    wb_layer *model = argument;
    double *sum = calloc(1, sizeof *sum);
    for (int i = 0; i < 100; i++) {
        wb_scope_open();
        *sum += wb_item(wb_sum(wb_apply(model, wb_ones(WB_F32, 4, 3))));
        (void)wb_scope_close();
    }
    wb_free(model);
    return sum;
}

static void two_threads_serve_one_model(void **state) { /* values 20 */
    (void)state;
    wb_layer *model =
        wb_chain(wb_dense(4, 2, .init = wb_ones_init), wb_dense(2, 1, .init = wb_ones_init));
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, serve, wb_share(model)), 0);
    assert_int_equal(wb_set(model, "layers.1.weight", wb_zeros(WB_F32, 2, 4)), WB_OK);
    for (int i = 0; i < 2; i++) {
        void *sum;
        assert_int_equal(pthread_join(threads[i], &sum), 0);
        assert_true(*(double *)sum == 2400);
        free(sum);
    }
    wb_layer *shared = wb_share(model);
    assert_null(wb_setup(wb_adam(), shared));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: the model comes from wb_share");
    wb_free(shared), wb_free(model);
}

/* ---- what a struct owns that no row lists ---- */

static int texts; /* in memory */
static bool refuses_copies;

typedef struct Named {
    wb_layer layer;
    wb_array *weight;
    wb_layer *inner;
    char *text;
} Named;

static char *new_text(const char *text) {
    texts++;
    return strdup(text);
}

static bool copy_text(wb_layer *copy) {
    Named *n = (Named *)(void *)copy;
    if (refuses_copies) return false;
    assert_null(n->weight);
    assert_null(n->inner);
    n->text = n->text ? new_text(n->text) : NULL;
    return true;
}

static void free_text(wb_layer *layer) {
    Named *n = (Named *)(void *)layer;
    if (n->text) texts--;
    free(n->text);
}

static const wb_field Named_fields[] = {WB_ARRAY_FIELD(Named, weight), WB_CHILD_FIELD(Named, inner),
                                        WB_VALUE_FIELD(Named, text)};
static const wb_layer_class Named_functor = {.name = "Named",
                                             .size_bytes = sizeof(Named),
                                             .fields = Named_fields,
                                             .field_count = 3,
                                             .copied = copy_text,
                                             .released = free_text};

static Named *named(const char *text, wb_layer *inner) {
    Named *n = wb_new(Named);
    n->weight = wb_keep(wb_ones(WB_F32, 2));
    n->inner = inner;
    n->text = new_text(text);
    return n;
}

static void hooks_copy_and_release_what_no_row_lists(void **state) {
    (void)state;
    Named *m = named("outer", &named("inner", NULL)->layer);
    Named *copy = (Named *)(void *)wb_clone(&m->layer);
    const Named *inner = (const Named *)(const void *)copy->inner;
    assert_int_equal(texts, 4);
    assert_true(copy->text != m->text);
    wb_free(wb_keep_layer(&m->layer)); /* one reference of two */
    assert_int_equal(texts, 4);
    wb_free(m);
    assert_int_equal(texts, 2);
    assert_string_equal(copy->text, "outer");
    assert_string_equal(inner->text, "inner");
    wb_free(copy);
    wb_free(wb_new(Named));
    assert_int_equal(texts, 0);
}

static void a_copy_that_its_hook_refuses_owns_nothing(void **state) {
    (void)state;
    Named *m = named("outer", &named("inner", NULL)->layer);
    refuses_copies = true;
    assert_null(wb_clone(&m->layer));
    refuses_copies = false;
    assert_error(WB_ERROR_ARGUMENT, "Named: the hook `copied` gave false without an error");
    assert_int_equal(texts, 2);
    wb_free(m);
    assert_int_equal(texts, 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(all_fields_of_a_struct_are_mapped),
        TEST(fields_left_out_stay),
        TEST(a_struct_without_a_table_is_refused),
        TEST(children_are_named_in_errors),
        TEST(ties_are_kept),
        TEST(a_transpose_is_a_tie),
        TEST(a_walk_that_fails_changes_nothing),
        TEST(a_clone_has_arrays_of_its_own),
        TEST(two_threads_serve_one_model),
        TEST(hooks_copy_and_release_what_no_row_lists),
        TEST(a_copy_that_its_hook_refuses_owns_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
