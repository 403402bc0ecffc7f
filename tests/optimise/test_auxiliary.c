/* src/optimise/auxiliary.c */
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

/* Hands out the prediction, its mean, the data itself, and a number. */
static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *p = wb_aux("p", wb_apply(model, batch->x));
    (void)wb_aux("mean", wb_mean(p)), (void)wb_aux("x", batch->x);
    (void)wb_aux("number", wb_number(0.5));
    return wb_mse(p, batch->y);
}

static wb_layer *ones(void) { return wb_dense(2, 1, .init = wb_ones_init); }

static wb_batch batch_of_ones(void) {
    return (wb_batch){.x = wb_ones(WB_F32, 2, 3), .y = wb_ones(WB_F32, 1, 3)};
}

typedef wb_array *get_fn(void *from, const char *name);
static wb_array *of_gradients(void *from, const char *name) {
    return wb_gradients_aux((wb_gradients *)from, name);
}
static wb_array *of_optimiser(void *from, const char *name) {
    return wb_optimiser_aux((wb_optimiser *)from, name);
}

static void assert_handed_out(get_fn *get, void *from) {
    assert_values(get(from, "p"), 1e-6, 2, 2, 2);
    assert_value(get(from, "mean"), 2, 1e-6);
    assert_values(get(from, "x"), 0, 1, 1, 1, 1, 1, 1);
    assert_value(get(from, "number"), 0.5, 0);
}

static void with_the_gradients(void **state) {
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        wb_layer *model = ones();
        wb_optimiser *o = wb_setup(wb_descent(), model);
        const wb_batch batch = batch_of_ones();
        wb_gradients *g;
        wb_scope_open();
        assert_non_null(wb_withgradient(loss, model, &batch, NULL, &g));
        if (kept) (void)wb_gradients_keep(g);
        assert_int_equal(wb_update(o, model, g), WB_OK);
        assert_handed_out(of_gradients, g);
        assert_handed_out(of_optimiser, o);
        assert_int_equal(wb_scope_close(), WB_OK);
        if (kept) assert_handed_out(of_gradients, g), wb_free(g);
        assert_handed_out(of_optimiser, o); /* until the next step */
        wb_free(o), wb_free(model);
    }
}

static void with_a_step(void **state) {
    (void)state;
    wb_layer *model = ones();
    wb_optimiser *o = wb_setup(wb_descent(), model);
    wb_scope_open();
    const wb_batch batch = batch_of_ones();
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_handed_out(of_optimiser, o);
    wb_free(o), wb_free(model);
}

/* In one plan, with every update in place. */
static void it_costs_no_plan_and_no_memory(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip();
    for (int whole = 0; whole < 2; whole++) {
        wb_layer *model = wb_chain(wb_dense(2, 8, wb_tanh), wb_dense(8, 1));
        wb_optimiser *o = wb_setup(wb_adam(), model);
        int64_t live = 0;
        for (int i = 0; i < 6; i++) {
            wb_scope_open();
            const wb_batch batch = batch_of_ones();
            wb_eval(batch.x, batch.y);
            const wb_plan_counts before = wb_plan_status();
            wb_gradients *g;
            if (whole)
                (void)wb_train_step(loss, model, &batch, NULL, o);
            else if (wb_withgradient(loss, model, &batch, NULL, &g))
                assert_int_equal(wb_update(o, model, g), WB_OK);
            (void)wb_item(wb_optimiser_aux(o, "mean"));
            assert_int_equal(wb_scope_close(), WB_OK);
            const wb_plan_counts after = wb_plan_status();
            assert_int_equal(after.evaluations - before.evaluations, 1);
            assert_int_equal(after.missed_donations, before.missed_donations);
            if (i > 1) assert_int_equal(after.misses, before.misses);
            if (i == 2) live = wb_memory_status(wb_default_device()).live;
        }
        assert_int_equal(wb_memory_status(wb_default_device()).live, live);
        wb_free(o), wb_free(model);
    }
}

/* ---- where it goes ---- */

static wb_array *inner(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_aux("inner", wb_sum(wb_apply(model, batch->x)));
}

/* A gradient within a loss has a list of its own. */
static wb_array *outer(wb_layer *model, const wb_batch *batch, void *user) {
    wb_gradients *g;
    wb_array *l = wb_withgradient(inner, model, batch, user, &g);
    assert_non_null(wb_gradients_aux(g, "inner"));
    return wb_aux("outer", l);
}

static void lists_nest(void **state) {
    (void)state;
    wb_layer *model = ones();
    const wb_batch batch = batch_of_ones();
    wb_gradients *g;
    assert_non_null(wb_withgradient(outer, model, &batch, NULL, &g));
    assert_value(wb_gradients_aux(g, "outer"), 6, 1e-6);
    assert_null(wb_gradients_aux(g, "inner"));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_gradients_aux: the loss handed out no \"inner\"; there are: outer");
    wb_free(model);
}

static void elsewhere_it_is_passed_on(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2);
    assert_ptr_equal(wb_aux("x", x), x);
    wb_layer *model = ones();
    wb_optimiser *o = wb_setup(wb_descent(), model);
    assert_null(wb_optimiser_aux(o, "x"));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_optimiser_aux: the loss handed out no \"x\"; there are: none");
    wb_free(o), wb_free(model);
}

static void a_moved_optimiser_leaves_it_behind(void **state) {
    (void)state;
    wb_layer *model = ones();
    wb_optimiser *o = wb_setup(wb_descent(), model);
    const wb_batch batch = batch_of_ones();
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    assert_int_equal(wb_move(wb_cpu_device(), o), WB_OK);
    assert_null(wb_optimiser_aux(o, "p"));
    wb_clear_error();
    wb_free(o), wb_free(model);
}

/* ---- mistakes ---- */

typedef struct row {
    const char *name;
    const char *names[10];
    const char *message;
} row;

static wb_array *with_names(wb_layer *model, const wb_batch *batch, void *user) {
    const row *r = user;
    for (int i = 0; i < 10 && r->names[i]; i++)
        if (!wb_aux(r->names[i], batch->x)) return NULL;
    return wb_sum(wb_apply(model, batch->x));
}

static void mistakes(void **state) {
    (void)state;
    const row rows[] = {
        {"an empty name", {""}, "wb_aux: the name must have 1 to 31 bytes, got \"\""},
        {"a long name", {"0123456789012345678901234567890123"}, "1 to 31 bytes, got \"0123"},
        {"twice", {"a", "b", "a"}, "wb_aux: \"a\" was handed out already"},
        {"too many",
         {"1", "2", "3", "4", "5", "6", "7", "8", "9"},
         "wb_aux: a loss can hand out 8 arrays, \"9\" is one more"},
    };
    wb_layer *model = ones();
    wb_optimiser *o = wb_setup(wb_descent(), model);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        row r = rows[i];
        const wb_batch batch = batch_of_ones();
        assert_null(wb_train_step(with_names, model, &batch, &r, o));
        assert_error(WB_ERROR_ARGUMENT, r.message);
    }
    assert_null(wb_optimiser_aux(o, NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_optimiser_aux: the name is NULL");
    wb_free(o), wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(with_the_gradients),
        TEST(with_a_step),
        TEST(it_costs_no_plan_and_no_memory),
        TEST(lists_nest),
        TEST(elsewhere_it_is_passed_on),
        TEST(a_moved_optimiser_leaves_it_behind),
        TEST(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
