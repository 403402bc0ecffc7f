/* src/array/reference.c: what a binding's objects hold. */
#include <pthread.h>

#include "support/support.h"

/* As a binding calls an operation. */
static wb_array *called(wb_array *(*operation)(wb_array *), wb_array *x, bool forgets) {
    wb_scope_open();
    wb_array *y = wb_take(operation(x));
    if (forgets) (void)wb_forget_recipe(y);
    assert_int_equal(wb_scope_leave(), WB_OK);
    return y;
}

static wb_array *add_one(wb_array *x) { return wb_add_number(x, 1); }

static void what_is_taken_outlives_its_scope_and_stays_a_recipe(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *g;
    wb_array *y = called(wb_square, x, false), *l = called(wb_sum, y, false);
    assert_int_equal(wb_gradient_of(l, 1, &x, &g), WB_OK);
    assert_values(g, 1e-6, 2, 4);
    assert_values(y, 1e-6, 1, 4);
    assert_int_equal(wb_gradient_of(l, 1, &x, &g), WB_OK); /* reading cut nothing off */
    assert_values(g, 1e-6, 2, 4);
    wb_free(y), wb_free(l);
}

static void leaving_a_scope_computes_nothing(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip();
    wb_layer *model = wb_batchnorm(2);
    (void)wb_training(true);
    wb_array *x = wb_normal(WB_F32, 2, 8);
    assert_int_equal(wb_eval(x), WB_OK);
    const int64_t before = wb_live().buffers;
    wb_scope_open();
    wb_array *kept = wb_keep(wb_exp(x)), *y = wb_take(wb_apply(model, x));
    assert_int_equal(wb_scope_leave(), WB_OK);
    assert_int_equal(wb_live().buffers, before);
    assert_true(wb_approx(kept, wb_exp(x), 1e-5, 0, NULL, 0));
    assert_true(wb_item(wb_sum(wb_abs(wb_get(model, "μ")))) > 0); /* the state was written */
    (void)wb_training(false);
    wb_free(kept), wb_free(y), wb_free(model);
}

typedef struct Holder {
    wb_layer layer;
    wb_array *x;
} Holder;
WB_FUNCTOR(Holder, NULL, WB_ARRAY_FIELD(Holder, x));

/* A field of a struct has kept an array that another language has, too. */
static void what_is_taken_is_given_back_before_what_is_kept(void **state) {
    (void)state;
    Holder *h = wb_new(Holder);
    wb_scope_open();
    h->x = wb_take(wb_keep(wb_vector(1, 2)));
    assert_int_equal(wb_scope_leave(), WB_OK);
    wb_free(h->x); /* the other language's */
    assert_int_equal(wb_parameter_count(&h->layer), 2);
    wb_free(h);
}

static void a_loop_of_taken_arrays_needs_no_more_memory(void **state) {
    (void)state;
    wb_array *x = called(wb_exp, wb_vector(1, 2), true);
    wb_live_counts before = {.arrays = 0};
    for (int i = 0; i < 1000; i++) {
        wb_array *next = called(wb_sqrt, x, true), *sum = called(wb_sum, next, true);
        (void)wb_item(sum); /* the plan is of the sum, and computes next as well */
        wb_free(x), wb_free(sum);
        x = next;
        if (i == 0) before = wb_live();
    }
    assert_int_equal(wb_live().arrays, before.arrays);
    assert_int_equal(wb_live().buffers, before.buffers);
    wb_free(x);
}

static void each_taken_reference_wants_one_wb_free(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 2);
    wb_scope_open();
    wb_array *a = wb_take(wb_get(model, "weight")), *b = wb_take(wb_get(model, "weight"));
    assert_ptr_equal(a, b);
    assert_int_equal(wb_scope_leave(), WB_OK);
    wb_free(a), wb_free(b);
    wb_free(a);
    assert_error(WB_ERROR_ARGUMENT, "belongs to a model");
    assert_non_null(wb_apply(model, wb_ones(WB_F32, 2, 1)));
    wb_array *kept = wb_take(wb_keep(wb_get(model, "weight")));
    wb_free(model);
    wb_free(kept);
    assert_non_null(wb_neg(kept));
    wb_free(kept);
}

static void a_forgotten_recipe_is_there_until_it_is_computed(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip(); /* which computes it before it is used */
    wb_array *x = wb_vector(1, 2), *g = x;
    wb_array *y = called(add_one, x, true), *l = wb_sum(wb_square(y));
    assert_int_equal(wb_gradient_of(l, 1, &x, &g), WB_OK);
    assert_values(g, 1e-6, 4, 6);
    assert_int_equal(wb_eval(y), WB_OK);
    l = wb_sum(wb_square(y));
    assert_int_equal(wb_gradient_of(l, 1, &x, &g), WB_OK);
    assert_null(g); /* as of data: without an error */
    wb_array *z = wb_exp(x);
    assert_int_equal(wb_eval(z), WB_OK);
    assert_ptr_equal(wb_forget_recipe(z), z);
    assert_int_equal(wb_gradient_of(wb_sum(z), 1, &x, &g), WB_OK);
    assert_null(g);
    wb_free(y);
}

static void what_is_given_goes_with_the_scope(void **state) {
    (void)state;
    const wb_live_counts before = wb_live();
    wb_scope_open();
    wb_array *x = wb_take(wb_vector(1, 2)), *y = wb_keep(wb_vector(3));
    wb_scope_open();
    assert_ptr_equal(wb_give(x), x);
    assert_ptr_equal(wb_give(y), y);
    assert_ptr_equal(wb_give(wb_take(x)), x);
    wb_layer *model = wb_give(wb_dense(2, 2));
    assert_non_null(wb_apply(model, x));
    assert_null(wb_give(model));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_give: the layer is not yours to give: it belongs to a scope");
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_null(wb_give(x));
    assert_error(WB_ERROR_ARGUMENT, "wb_give: the array is not yours to give: call wb_take");
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_live().arrays, before.arrays);
    assert_int_equal(wb_live().objects, before.objects);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    wb_scope_open();
    wb_array *l = wb_take(wb_sum(wb_square(wb_get(model, "weight"))));
    (void)wb_scope_leave();
    return wb_give(l);
}

static void gradients_and_a_loss_leave_their_scope(void **state) {
    (void)state;
    wb_layer *model = wb_dense(1, 1, .init = wb_ones_init);
    const wb_batch batch = {.x = NULL};
    wb_gradients *g;
    wb_scope_open();
    wb_array *l = wb_take(wb_withgradient(loss, model, &batch, NULL, &g));
    assert_ptr_equal(wb_take(g), g);
    assert_ptr_equal(wb_take(g), g);
    assert_int_equal(wb_scope_leave(), WB_OK);
    assert_values(wb_gradients_get(g, "weight"), 1e-6, 2);
    assert_true(wb_item(l) == 1);
    wb_free(l), wb_free(g), wb_free(model);
}

static wb_array *left_in_body;

static void body(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context, (void)outputs;
    wb_scope_open();
    left_in_body = wb_take(wb_add(carries[0], inputs[0]));
    (void)wb_scope_leave();
    carries[0] = wb_give(wb_take(left_in_body));
}

static void a_body_may_take_but_its_arrays_have_no_values(void **state) {
    (void)state;
    wb_array *sum = wb_scalar(WB_F32, 0), *x = wb_vector(1, 2, 3);
    assert_int_equal(wb_scan(body, NULL, 1, &sum, 1, &x, 0, NULL), WB_OK);
    assert_true(wb_item(sum) == 6);
    wb_array *after = wb_neg(left_in_body);
    assert_true(!after || wb_eval(after) != WB_OK);
    assert_true(wb_failed());
    wb_clear_error();
    wb_free(left_in_body);
}

static void *free_it(void *object) {
    wb_free(object);
    return NULL;
}

static void a_finaliser_may_run_on_another_thread(void **state) {
    (void)state;
    pthread_t thread;
    wb_array *x = called(wb_exp, wb_vector(1), true);
    const int64_t before = wb_live().arrays;
    assert_int_equal(pthread_create(&thread, NULL, free_it, x), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    wb_scope_open();
    assert_true(wb_live().arrays < before);
    assert_int_equal(wb_scope_close(), WB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_taken_outlives_its_scope_and_stays_a_recipe),
        TEST(leaving_a_scope_computes_nothing),
        TEST(what_is_taken_is_given_back_before_what_is_kept),
        TEST(a_loop_of_taken_arrays_needs_no_more_memory),
        TEST(each_taken_reference_wants_one_wb_free),
        TEST(a_forgotten_recipe_is_there_until_it_is_computed),
        TEST(what_is_given_goes_with_the_scope),
        TEST(gradients_and_a_loss_leave_their_scope),
        TEST(a_body_may_take_but_its_arrays_have_no_values),
        TEST(a_finaliser_may_run_on_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
