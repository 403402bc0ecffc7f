/* src/array/scope.c, thread.c: who owns what, and for how long */
#include <pthread.h>

#include "array/thread.h"
#include "support/support.h"

static bool is_eager(void) {
    const char *text = getenv("WEBER_EAGER");
    return text && strcmp(text, "1") == 0;
}

static int64_t live_arrays(void) { return live_now().arrays; }

static void a_scope_releases_what_was_made_in_it(void **state) {
    (void)state;
    const int64_t before = live_arrays();
    assert_int_equal(wb_scope_open(), WB_OK);
    wb_array *x = wb_vector(1, 2, 3);
    assert_value(wb_sum(wb_mul(x, x)), 14, 0);
    (void)wb_exp(x);
    assert_true(live_arrays() >= before + 4);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(live_arrays(), before);
}

static void scopes_nest(void **state) {
    (void)state;
    const int64_t before = live_arrays();
    wb_array *outer = wb_vector(1, 2);
    for (int depth = 0; depth < 100; depth++) {
        assert_int_equal(wb_scope_open(), WB_OK);
        (void)wb_add(outer, outer);
    }
    for (int depth = 100; depth > 0; depth--) {
        assert_int_equal(live_arrays(), before + 1 + depth);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_values(outer, 0, 1, 2);
}

/* The recipe of an outer array may reach into what an inner scope made. */
static void a_recipe_keeps_its_inputs(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *y = NULL;
    wb_scope_open();
    y = wb_keep(wb_mul_number(wb_exp(wb_mul_number(x, 0)), 5));
    wb_free(x);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(y, 0, 5, 5);
    wb_free(y);
}

static void what_is_kept_leaves_as_numbers(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_vector(1, 2), *y = wb_keep(wb_add(x, x));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_true(wb_is_evaluated(y));
    assert_int_equal(y->ninputs, 0);
    assert_int_equal(y->op, WB_OP_data);
    assert_int_equal(y->refs, 1);
    assert_values(y, 0, 2, 4);
    wb_free(y);
}

static void each_keep_wants_a_free(void **state) {
    (void)state;
    const int64_t before = live_arrays();
    wb_scope_open();
    wb_array *x = wb_vector(1, 2);
    assert_ptr_equal(wb_keep(wb_keep(x)), x);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(live_arrays(), before + 1);
    wb_free(x);
    assert_values(x, 0, 1, 2);
    wb_free(x);
    assert_int_equal(live_arrays(), before);
}

static void kept_in_an_inner_scope_outlives_all(void **state) {
    (void)state;
    wb_scope_open(), wb_scope_open(), wb_scope_open();
    wb_array *x = wb_keep(wb_square(wb_vector(3)));
    for (int i = 0; i < 3; i++) assert_int_equal(wb_scope_close(), WB_OK);
    assert_value(x, 9, 0);
    wb_free(x);
}

static void a_free_takes_out_of_the_scope(void **state) {
    (void)state;
    const int64_t before = live_arrays();
    wb_array *x = wb_vector(1, 2), *y = wb_add(x, x);
    wb_free(x);
    assert_int_equal(live_arrays(), before + 2); /* y's recipe reads it */
    assert_values(y, 0, 2, 4);
    wb_free(y);
    assert_int_equal(live_arrays(), before);
    for (int i = 0; i < 10000; i++) wb_free(wb_mul_number(wb_number(i), 2));
    assert_true(live_arrays() < before + 10001);
}

static void a_free_of_what_was_kept_leaves_it_to_the_scope(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_keep(wb_vector(1, 2));
    wb_free(x);
    assert_values(x, 0, 1, 2); /* still the scope's */
    wb_free(x);
    assert_int_equal(wb_scope_close(), WB_OK);
}

/* Frees in an inner scope of what an outer one owns. */
static void an_outer_array_is_freed_within(void **state) {
    (void)state;
    const int64_t before = live_arrays();
    wb_array *x = wb_vector(1, 2);
    wb_scope_open();
    (void)wb_exp(x);
    wb_free(x);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(live_arrays(), before);
}

static void objects_of_a_scope_go_with_it(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    wb_scope_open();
    wb_layer *dense = wb_dense(2, 3);
    wb_array *loss = wb_sum(wb_apply(dense, wb_vector(1, 2)));
    wb_gradients *early = wb_gradient(loss, dense), *late = wb_gradient(loss, dense);
    assert_non_null(late);
    wb_free(early);
    assert_values(wb_gradients_get(late, "bias"), 0, 1, 1, 1);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(live_now().objects, before.objects + 1);
    assert_values(wb_get(dense, "bias"), 0, 0, 0,
                  0); /* a model outlives the scope it was made in */
    wb_free(dense);
    assert_int_equal(live_now().objects, before.objects);
}

static void a_closing_scope_makes_one_plan(void **state) {
    (void)state;
    wb_array *kept[8];
    wb_array *x = wb_copy(wb_iota(WB_F32, 0, 100));
    const int64_t plans = wb_plan_status().evaluations;
    wb_scope_open();
    for (int i = 0; i < 8; i++) kept[i] = wb_keep(wb_add_number(wb_mul_number(x, i), 1));
    for (int i = 0; i < 50; i++) (void)wb_exp(x); /* nobody will read these */
    assert_int_equal(wb_scope_close(), WB_OK);
    if (!is_eager()) assert_int_equal(wb_plan_status().evaluations, plans + 1);
    for (int i = 0; i < 8; i++) {
        assert_true(wb_at(kept[i], 9) == 9.0 * i + 1);
        wb_free(kept[i]);
    }
}

static void a_scope_with_nothing_kept_computes_nothing(void **state) {
    (void)state;
    if (is_eager()) return;
    const int64_t plans = wb_plan_status().evaluations;
    wb_scope_open();
    (void)wb_sum(wb_exp(wb_vector(1, 2, 3)));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_plan_status().evaluations, plans);
}

static void the_status_is_that_of_the_evaluation(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_vector(1, 2), *bad = wb_keep(wb_gather(x, wb_full(WB_I32, 9, 1), 0));
    assert_non_null(bad);
    assert_int_equal(with_late(wb_scope_close()), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "gather: index 9 at place 0 is not in 0 .. 1");
    wb_free(bad);
}

static void no_open_scope_cannot_be_closed(void **state) {
    (void)state;
    assert_int_equal(wb_scope_close(), WB_OK); /* the test's own */
    assert_int_equal(wb_scope_close(), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_scope_close: no scope is open on this thread");
    assert_int_equal(wb_scope_open(), WB_OK);
}

/* ---- threads ---- */

static void *outside_any_scope(void *unused) {
    (void)unused;
    wb_array *x = wb_vector(1, 2, 3), *g = NULL;
    if (!(wb_item(wb_sum(wb_exp(x))) > 30)) return "a wrong sum";
    if (wb_gradient_of(wb_sum(wb_square(x)), 1, &x, &g) != WB_OK || wb_item(wb_sum(g)) != 12)
        return "a wrong gradient";
    (void)wb_mul_number(wb_normal(WB_F32, 100),
                        0.123); /* never computed; a number that the thread caches */
    return NULL;
}

static void *with_scopes_left_open(void *unused) {
    (void)unused;
    if (wb_scope_open() != WB_OK || wb_scope_open() != WB_OK) return "no scope";
    wb_array *x = wb_add(wb_vector(1, 2), wb_number(0.5));
    return wb_at(x, 1) == 2.5 ? NULL : "a wrong number";
}

static void *with_an_error_pending(void *unused) {
    (void)unused;
    return wb_add(wb_vector(1, 2), wb_vector(1, 2, 3)) ? "an error was wanted" : NULL;
}

static void *closing_too_often(void *unused) {
    (void)unused;
    return wb_scope_close() == WB_ERROR_ARGUMENT ? NULL : "a scope was open";
}

/* What a thread made outside any scope belongs to the thread, and ends with it. */
static void ended_threads_leave_nothing(void **state) {
    (void)state;
    static void *(*const bodies[])(void *) = {outside_any_scope, with_scopes_left_open,
                                              with_an_error_pending, closing_too_often};
    const wb_live_counts before = live_now();
    for (int round = 0; round < 5; round++)
        for (int b = 0; b < 4; b++) {
            pthread_t thread;
            void *fault = NULL;
            assert_int_equal(pthread_create(&thread, NULL, bodies[b], NULL), 0);
            assert_int_equal(pthread_join(thread, &fault), 0);
            if (fault) fail_msg("%s", (const char *)fault);
            const wb_live_counts after = live_now();
            assert_int_equal(after.arrays, before.arrays);
            assert_int_equal(after.buffers, before.buffers);
            assert_int_equal(after.objects, before.objects);
        }
    assert_false(wb_failed()); /* errors belong to their threads */
}

static void *keeps_one(void *place) {
    wb_scope_open();
    *(wb_array **)place = wb_keep(wb_square(wb_vector(1, 2, 3)));
    return wb_scope_close() == WB_OK ? NULL : "not closed";
}

static void a_kept_array_outlives_its_thread(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    pthread_t thread;
    wb_array *x = NULL;
    void *fault = NULL;
    assert_int_equal(pthread_create(&thread, NULL, keeps_one, &x), 0);
    assert_int_equal(pthread_join(thread, &fault), 0);
    assert_null(fault);
    assert_int_equal(live_now().arrays, before.arrays + 1);
    assert_values(wb_add_number(x, 1), 0, 2, 5, 10);
    wb_free(x);
}

/* ---- arrays that were released ---- */

enum { ROUNDS = 20 }; /* fewer arrays than rest */

/* With WEBER_DEBUG=mem: though thousands have been made since. */
static void what_was_released_says_so(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_vector(1, 2, 3), *y = wb_exp(x);
    assert_int_equal(wb_scope_close(), WB_OK);
    for (int i = 0; i < ROUNDS; i++) {
        wb_scope_open();
        for (int k = 0; k < 500; k++) (void)wb_add(wb_vector(4, 5, 6), wb_number(k));
        assert_int_equal(wb_scope_close(), WB_OK);
        assert_null(wb_add(wb_vector(1, 2, 3), x));
        assert_error(WB_ERROR_ARGUMENT, "add: an array was released: its scope was closed");
        float numbers[3];
        assert_int_equal(wb_read_f32(y, numbers, 3), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "an array was released");
    }
}

/* ---- mistakes ---- */

static void a_freed_array_is_not_another_at_once(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2);
    wb_free(x);
    for (int i = 0; i < 1000; i++) wb_free(wb_vector(3, 4));
    assert_null(wb_add(x, x));
    assert_error(WB_ERROR_ARGUMENT, "add: an array was released");
}

static void the_list_of_a_scope_has_no_gaps_for_long(void **state) {
    (void)state;
    const wb_thread *thread = wb_thread_get();
    const int64_t before = thread->entry_count;
    wb_array *stays[3];
    assert_int_equal(wb_scope_open(), WB_OK);
    for (int i = 0; i < 30000; i++) {
        if (i % 10000 == 0) stays[i / 10000] = wb_vector(5, (float)i);
        wb_free(wb_vector(1, 2));
    }
    assert_true(thread->entry_count < before + 4096);
    for (int i = 0; i < 3; i++) assert_values(stays[i], 0, 5, 10000.0 * i);
    wb_free(stays[1]);
    assert_null(wb_add(stays[1], stays[0]));
    assert_error(WB_ERROR_ARGUMENT, "add: an array was released");
    assert_values(wb_add(stays[0], stays[2]), 0, 10, 20000);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(thread->entry_count, before);
}

static int warnings;
static char warning[200];
static void keep_warning(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level != WB_LOG_WARN) return;
    warnings++;
    snprintf(warning, sizeof warning, "%s", line);
}

static void *make_many(void *state) {
    (void)state;
    wb_log_to(keep_warning, NULL);
    for (int i = 0; i < 99999; i++) (void)wb_number(i);
    assert_int_equal(warnings, 0);
    for (int i = 0; i < 300000; i++) (void)wb_number(i);
    wb_log_to(NULL, NULL);
    return NULL;
}

static void a_large_scope_is_told_once(void **state) {
    (void)state;
    pthread_t thread;
    warnings = 0;
    assert_int_equal(pthread_create(&thread, NULL, make_many, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "without a scope the thread holds 100000 arrays"));
    assert_non_null(strstr(warning, "wb_scope_open"));
}

static void the_hold_of_a_model_is_not_the_callers(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3));
    wb_array *a = wb_get(model, "layers.1.weight"), *b = wb_get(model, "layers.1.weight");
    assert_ptr_equal(a, b);
    wb_free(a);
    wb_free(b);
    assert_false(wb_failed());
    wb_free(b);
    assert_error(WB_ERROR_ARGUMENT, "wb_free: the array (3, 2) is not yours to free");
    for (int i = 0; i < 2000; i++) wb_free(wb_vector(3, 4));
    assert_int_equal(wb_count(wb_get(model, "layers.1.weight")), 6);
    assert_non_null(wb_apply(model, wb_vector(1, 2)));
    wb_free(model);
}

typedef struct Scaled {
    wb_layer layer;
    wb_array *a;
} Scaled;
WB_FUNCTOR(Scaled, NULL, WB_ARRAY_FIELD(Scaled, a));

static wb_array *squares(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_square(((Scaled *)(void *)model)->a));
}

static wb_array *twice(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return wb_mul_number(x, 2);
}

/* What came into its place by training, wb_set or wb_walk is the caller's too. */
static void a_structs_kept_array_is_the_callers(void **state) {
    (void)state;
    Scaled *s = wb_new(Scaled);
    s->a = wb_keep(wb_vector(1, 2, 3));
    wb_optimiser *o = wb_setup(wb_adam(), &s->layer);
    assert_non_null(wb_train_step(squares, &s->layer, NULL, NULL, o));
    wb_free(s->a);
    s->a = wb_keep(wb_vector(1, 2));
    assert_int_equal(wb_set(&s->layer, "a", wb_vector(3, 4)), WB_OK);
    wb_free(s->a);
    s->a = wb_keep(wb_vector(5));
    assert_int_equal(wb_walk(twice, NULL, &s->layer), WB_OK);
    wb_array *snapshot = wb_keep(s->a);
    wb_free(snapshot);
    wb_free(s->a);
    s->a = wb_keep(wb_vector(6, 7));
    assert_false(wb_failed());
    wb_free(o), wb_free(s);
}

static void *read_it(void *x) {
    assert_true(isnan(wb_item(x)));
    assert_error(WB_ERROR_ARGUMENT, "belongs to another thread");
    assert_null(wb_read_begin(x));
    assert_error(WB_ERROR_ARGUMENT, "belongs to another thread");
    return NULL;
}

static void another_threads_recipe_is_refused(void **state) {
    (void)state;
    wb_array *x = wb_mul_number(wb_ones(WB_F32, 1), 3);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_it, x), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_value(x, 3, 0);
}

static int run_debugging(void) {
    const struct CMUnitTest tests[] = {TEST(what_was_released_says_so)};
    return cmocka_run_group_tests_name("array/test_scope with WEBER_DEBUG=mem", tests, NULL, NULL);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_freed_array_is_not_another_at_once),
        TEST(the_list_of_a_scope_has_no_gaps_for_long),
        TEST(a_large_scope_is_told_once),
        TEST(the_hold_of_a_model_is_not_the_callers),
        TEST(a_structs_kept_array_is_the_callers),
        TEST(another_threads_recipe_is_refused),
        TEST(a_scope_releases_what_was_made_in_it),
        TEST(scopes_nest),
        TEST(a_recipe_keeps_its_inputs),
        TEST(what_is_kept_leaves_as_numbers),
        TEST(each_keep_wants_a_free),
        TEST(kept_in_an_inner_scope_outlives_all),
        TEST(a_free_takes_out_of_the_scope),
        TEST(a_free_of_what_was_kept_leaves_it_to_the_scope),
        TEST(an_outer_array_is_freed_within),
        TEST(objects_of_a_scope_go_with_it),
        TEST(a_closing_scope_makes_one_plan),
        TEST(a_scope_with_nothing_kept_computes_nothing),
        TEST(the_status_is_that_of_the_evaluation),
        TEST(no_open_scope_cannot_be_closed),
        TEST(ended_threads_leave_nothing),
        TEST(a_kept_array_outlives_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_with(NULL, NULL, run) + run_with("WEBER_DEBUG", "mem", run_debugging); }
