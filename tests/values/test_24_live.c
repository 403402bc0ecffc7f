/* Rule 24: everything has one release, wb_free; nothing is left behind, by our own counters. */
#include "optimise/optimiser.h"
#include "values/modes.h"

static void assert_live(wb_live_counts before, int64_t arrays, int64_t buffers, int64_t objects) {
    const wb_live_counts now = live_now();
    assert_int_equal(now.arrays - before.arrays, arrays);
    assert_int_equal(now.buffers - before.buffers, buffers);
    assert_int_equal(now.objects - before.objects, objects);
}

static void the_counters_count(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    wb_array *x = wb_vector(1, 2, 3);
    assert_live(before, 1, 1, 0);
    wb_array *y = wb_exp(x);
    assert_live(before, 2, 1, 0);
    assert_int_equal(wb_eval(y), WB_OK);
    assert_live(before, 2, 2, 0);
    wb_array *view = wb_reshape(x, 1, 3); /* no memory of its own */
    assert_live(before, 3, 2, 0);
    wb_free(view), wb_free(y), wb_free(x);
    assert_live(before, 0, 0, 0);
    wb_layer *layer = wb_dense(2, 2);
    assert_live(before, 2, 2, 1);
    wb_free(layer);
    assert_live(before, 0, 0, 0);
}

static void freeing_nothing_is_fine(void **state) {
    (void)state;
    wb_free(NULL);
    assert_false(wb_failed());
}

/* ---- one of everything ---- */

typedef struct row {
    const char *name;
    void *(*make)(void);
} row;

static void *array(void) { return wb_vector(1, 2); }
static void *pending_array(void) { return wb_exp(wb_vector(1, 2)); }
static void *kept_array(void) { return wb_keep(wb_exp(wb_vector(1, 2))); }
static void *borrowed_array(void) {
    static const float numbers[2] = {1, 2};
    return wb_borrow(WB_F32, numbers, NULL, NULL, 2);
}
static void *number(void) { return wb_number(0.123); }
static void *late(void) { return wb_late(2); }
static void *dense(void) { return wb_dense(2, 3, wb_relu); }
static void *conv(void) { return wb_conv({3, 3}, 2, 3); }
static void *dropout(void) { return wb_dropout(.p = 0.5); }
static void *pool(void) { return wb_maxpool({2, 2}); }
static void *function(void) { return wb_fn(wb_tanh); }
static void *named_function(void) { return wb_fn_named("mine", wb_tanh); }
static void *chain(void) {
    return wb_chain(wb_dense(2, 3), wb_chain(wb_flatten(), wb_dense(3, 1)));
}
static void *named_chain(void) {
    return wb_chain_named({"a", wb_dense(2, 3)}, {"b", wb_flatten()});
}
static void *tree(void) { return wb_tree(wb_vector(1), wb_dense(1, 1), wb_tree()); }
static void *clone(void) {
    wb_layer *model = chain(), *copy = wb_clone(model);
    wb_free(model);
    return copy;
}
static void *shared(void) {
    wb_layer *model = chain(), *copy = wb_share(model);
    wb_free(model);
    return copy;
}
static void *optimiser(void) { /* keeps the model alive */
    wb_layer *model = chain();
    wb_optimiser *o = wb_setup(wb_adam(), model);
    wb_free(model);
    return o;
}
static void *loader(void) {
    return wb_loader_new(.x = wb_ones(WB_F32, 2, 10), .y = wb_ones(WB_I32, 10), .batchsize = 3);
}
static void *loader_under_way(void) {
    wb_loader *data = loader();
    wb_batch batch = {0};
    assert_true(wb_next(data, &batch));
    assert_true(wb_next(data, &batch));
    return data;
}
static void *gradients(void) {
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_gradients *g = wb_gradient(wb_sum(wb_square(wb_get(model, "1"))), model);
    wb_free(model);
    return g;
}

static const row rows[] = {
    {"an array", array},
    {"a pending array", pending_array},
    {"a kept array", kept_array},
    {"a borrowed array", borrowed_array},
    {"a number", number},
    {"a late number", late},
    {"a dense layer", dense},
    {"a convolution", conv},
    {"dropout", dropout},
    {"a pool", pool},
    {"a function", function},
    {"a named function", named_function},
    {"a chain", chain},
    {"a named chain", named_chain},
    {"a tree", tree},
    {"a clone", clone},
    {"a shared model", shared},
    {"an optimiser", optimiser},
    {"a loader", loader},
    {"a loader in its epoch", loader_under_way},
    {"gradients", gradients},
};

static void one_release_serves_it(void **state) {
    const row *r = *state;
    const wb_live_counts before = live_now();
    wb_scope_open();
    for (int i = 0; i < 3; i++) {
        void *object = r->make();
        assert_non_null(object);
        wb_free(object);
    }
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_live(before, 0, 0, 0);
}

/* A scope may own models and loaders, too. */
static void a_scope_releases_what_it_owns(void **state) {
    const row *r = *state;
    if (r->make == loader_under_way) skip(); /* its turn is the innermost scope */
    const wb_live_counts before = live_now();
    wb_scope_open();
    wb_object *object = r->make();
    assert_non_null(object);
    if (object->klass != &wb_array_class && object->scope_slot == 0)
        assert_ptr_equal(wb_scope_own(object), object);
    if (r->make == kept_array) wb_free(object);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_live(before, 0, 0, 0);
}

/* Freed early, an owned object leaves its scope. */
static void freed_early_it_leaves_its_scope(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    wb_scope_open();
    wb_layer *model = wb_scope_own(wb_dense(2, 2));
    wb_array *x = wb_vector(1, 2);
    wb_free(model), wb_free(x);
    assert_live(before, 0, 0, 0);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_live(before, 0, 0, 0);
}

/* Each wb_keep wants one wb_free, in any order with scopes that close. */
static void holds_are_counted(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    wb_scope_open();
    wb_array *x = wb_keep(wb_keep(wb_exp(wb_vector(1, 2))));
    wb_free(x);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(x, 1e-6, exp(1), exp(2));
    (void)wb_keep(x);
    wb_free(x);
    assert_live(before, 1, 1, 0);
    wb_free(x);
    assert_live(before, 0, 0, 0);
}

/* wb_free of what a getter returned takes nothing from the model. */
static void a_getters_result_is_not_the_models(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 2);
    const wb_live_counts before = live_now();
    for (int i = 0; i < 5; i++) wb_free(wb_get(model, "weight"));
    wb_array *held = wb_keep(wb_get(model, "weight"));
    wb_free(held);
    assert_live(before, 0, 0, 0);
    assert_true(isfinite(wb_item(wb_sum(wb_apply(model, wb_ones(WB_F32, 2, 1))))));
    wb_free(model);
}

/* ---- a whole program, and errors in the middle of it ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    if (user && batch->index == *(int64_t *)user)
        return wb_mse(wb_apply(model, batch->y), batch->y);
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void a_program_leaves_nothing(void **state) {
    (void)state;
    for (int64_t fails_at = 0; fails_at < 6; fails_at++) { /* 5: it does not */
        const wb_live_counts before = live_now();
        wb_scope_open();
        wb_layer *model = wb_chain(wb_dense(3, 8, wb_tanh), wb_dropout(.p = 0.1), wb_dense(8, 1));
        wb_loader *data =
            wb_loader_new(.x = wb_uniform(WB_F32, 3, 20), .y = wb_uniform(WB_F32, 1, 20),
                          .batchsize = 4, .shuffle = true);
        wb_optimiser *o = wb_setup(wb_adam(), model, .clip_total_norm = 1);
        const wb_status status = wb_train(loss, model, data, o, .epochs = 2, .user = &fails_at);
        assert_int_equal(status, fails_at < 5 ? WB_ERROR_SHAPE : WB_OK);
        wb_clear_error();
        wb_free(model), wb_free(data), wb_free(o);
        assert_int_equal(wb_scope_close(), WB_OK);
        assert_live(before, 0, 0, 0);
    }
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(the_counters_count),
        TEST(freeing_nothing_is_fine),
        TEST(freed_early_it_leaves_its_scope),
        TEST(holds_are_counted),
        TEST(a_getters_result_is_not_the_models),
        TEST(a_program_leaves_nothing),
    };
    ADD_ROWS(&tests, rows, one_release_serves_it);
    ADD_ROWS(&tests, rows, a_scope_releases_what_it_owns);
    ADD_TESTS(&tests, others);
    return run_test_list("values 24", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
