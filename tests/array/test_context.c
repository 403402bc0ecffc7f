/* src/array/context.c: contexts that threads use in turn. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

static wb_context *context;

static int open_context(void **state) {
    if (open_scope(state) != 0) return 1;
    context = wb_context_new();
    return context ? 0 : 1;
}

static int close_context(void **state) {
    wb_free(context);
    return close_scope(state);
}

static void enter(void) { assert_int_equal(wb_context_enter(context), WB_OK); }
static void leave(void) { assert_int_equal(wb_context_leave(), WB_OK); }

/* On another thread, to its end. */
static void *elsewhere(void *(*fn)(void *), void *argument) {
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, fn, argument), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return result;
}

/* ---- turns ---- */

enum { THREADS = 4, TURNS = 50 };

typedef struct common {
    pthread_mutex_t mutex;
    wb_layer *model;
    wb_optimiser *optimiser;
    wb_array *sum;
    int failures;
} common;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_get(model, "layers.1.weight"));
}

static bool take_turn(common *c) {
    const wb_batch batch = {.x = NULL};
    if (wb_context_enter(context) != WB_OK) return false;
    wb_scope_open();
    wb_array *sum = wb_keep(wb_add_number(c->sum, 1));
    wb_free(c->sum);
    c->sum = sum;
    wb_array *l = wb_train_step(loss, c->model, &batch, NULL, c->optimiser);
    const bool good = l && wb_scope_close() == WB_OK;
    return wb_context_leave() == WB_OK && good;
}

static void *take_turns(void *argument) {
    common *c = argument;
    for (int i = 0; i < TURNS; i++) {
        (void)pthread_mutex_lock(&c->mutex);
        c->failures += !take_turn(c);
        (void)pthread_mutex_unlock(&c->mutex);
    }
    return NULL;
}

static void threads_train_one_model_in_turn(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    common c = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    enter();
    c.model = wb_chain(wb_dense(1, 1, .init = wb_zeros_init));
    c.optimiser = wb_setup(wb_descent(1), c.model);
    c.sum = wb_keep(wb_scalar(WB_F32, 0));
    leave();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &c), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(c.failures, 0);
    enter();
    assert_true(wb_item(c.sum) == THREADS * TURNS);
    assert_true(wb_item(wb_get(c.model, "layers.1.weight")) == -THREADS * TURNS);
    wb_free(c.sum), wb_free(c.optimiser), wb_free(c.model);
    leave();
}

static void *try_to_enter(void *text) {
    const bool refused = wb_context_enter(context) != WB_OK;
    (void)wb_take_error(text, 200);
    if (!refused) (void)wb_context_leave();
    return refused ? text : NULL;
}

static void a_context_in_use_is_refused_on_another_thread(void **state) {
    (void)state;
    char text[200];
    enter();
    enter();
    assert_non_null(elsewhere(try_to_enter, text));
    assert_non_null(strstr(text, "wb_context_enter: the context is in use on another thread"));
    leave();
    assert_non_null(elsewhere(try_to_enter, text));
    leave();
    assert_null(elsewhere(try_to_enter, text));
}

static void *enter_and_end(void *unused) {
    (void)unused;
    const bool good = wb_context_enter(context) == WB_OK && wb_context_enter(context) == WB_OK &&
                      wb_item(wb_ones(WB_F32, 1)) == 1;
    return good ? context : NULL;
}

static void a_thread_that_ends_leaves_all(void **state) {
    (void)state;
    assert_non_null(elsewhere(enter_and_end, NULL));
    enter();
    leave();
}

/* ---- what belongs to it ---- */

static void what_is_made_in_a_context_belongs_to_it(void **state) {
    (void)state;
    wb_array *outer = wb_vector(1, 2);
    enter();
    wb_array *inner = wb_keep(wb_vector(3, 4));
    assert_null(wb_neg(outer));
    assert_error(WB_ERROR_ARGUMENT, "belongs to this thread's own context, but the thread has");
    leave();
    assert_null(wb_neg(inner));
    assert_error(WB_ERROR_ARGUMENT,
                 "belongs to a context that this thread is not in: call wb_context_enter first");
    assert_values(wb_neg(outer), 0, -1, -2);
    enter();
    assert_values(wb_neg(inner), 0, -3, -4);
    wb_free(inner);
    leave();
}

static void contexts_nest_and_come_back(void **state) {
    (void)state;
    wb_context *other = wb_context_new();
    assert_int_equal(wb_context_leave(), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "this thread has not entered a context");
    enter();
    wb_array *x = wb_keep(wb_vector(1));
    assert_int_equal(wb_context_enter(other), WB_OK);
    wb_array *y = wb_keep(wb_vector(2));
    enter();
    assert_values(wb_neg(x), 0, -1);
    leave();
    assert_values(wb_neg(y), 0, -2);
    wb_free(y);
    leave();
    wb_free(x);
    leave();
    wb_free(other);
}

static void scopes_stay_open_in_their_context(void **state) {
    (void)state;
    enter();
    wb_scope_open();
    wb_array *x = wb_vector(1, 2);
    leave();
    wb_scope_open();
    assert_int_equal(wb_scope_close(), WB_OK);
    enter();
    assert_values(wb_neg(x), 0, -1, -2);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_scope_close(), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "no scope is open");
    leave();
}

static void *draw(void *unused) {
    (void)unused;
    static double x;
    wb_scope_open();
    wb_seed(3);
    x = wb_item(wb_uniform(WB_F32, 1));
    wb_scope_close();
    return &x;
}

static int layers_seen;

static void look_on(void *user, const char *path, wb_array *x, bool is_gradient) {
    (void)user, (void)path, (void)x, (void)is_gradient;
    layers_seen++;
}

static void a_context_has_its_own_sequence_flag_and_watcher(void **state) {
    (void)state;
    const double expected = *(const double *)draw(NULL);
    wb_seed(3);
    (void)wb_training(true);
    wb_watch_layers(look_on, NULL);
    enter();
    assert_false(wb_training(true));
    wb_layer *model = wb_chain();
    assert_non_null(wb_apply(model, wb_uniform(WB_F32, 2)));
    assert_int_equal(layers_seen, 0);
    wb_free(model);
    leave();
    assert_true(wb_item(wb_uniform(WB_F32, 1)) == expected);
    assert_true(wb_training(false));
    wb_watch_layers(NULL, NULL);
}

static void a_context_has_a_default_device_of_its_own(void **state) {
    (void)state;
    const wb_device *usual = wb_default_device(), *other = wb_get_device("checked", 1);
    assert_non_null(other);
    enter();
    assert_null(wb_set_context_device(other));
    assert_ptr_equal(wb_default_device(), other);
    wb_array *x = wb_keep(wb_vector(1, 2));
    assert_ptr_equal(wb_device_of(x), other);
    assert_values(wb_add(x, wb_ones(WB_F32, 2)), 0, 2, 3);
    leave();
    assert_ptr_equal(wb_default_device(), usual);
    assert_ptr_equal(wb_device_of(wb_vector(1)), usual);
    enter();
    assert_ptr_equal(wb_default_device(), other);
    wb_free(x);
    assert_ptr_equal(wb_set_context_device(NULL), other);
    assert_ptr_equal(wb_default_device(), usual);
    leave();
}

/* ---- wb_free ---- */

static void *free_it(void *object) {
    wb_free(object);
    return NULL;
}

static void what_is_freed_outside_is_released_by_the_next_use(void **state) {
    (void)state;
    enter();
    wb_array *x = wb_keep(wb_vector(1));
    wb_layer *model = wb_dense(1, 1);
    leave();
    const int64_t before = wb_live().objects;
    (void)elsewhere(free_it, x);
    (void)elsewhere(free_it, model);
    assert_int_equal(wb_live().objects, before);
    enter();
    wb_scope_open();
    assert_int_equal(wb_live().objects, before - 1);
    assert_int_equal(wb_scope_close(), WB_OK);
    leave();
}

static void a_context_in_use_is_not_freed(void **state) {
    (void)state;
    enter();
    wb_free(context);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_free: the context is in use on this thread; call wb_context_leave first");
    leave();
    assert_int_equal(wb_context_enter(NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_context_enter: the context is NULL");
}

static void the_end_of_a_context_releases_what_its_scopes_own(void **state) {
    (void)state;
    wb_context *other = wb_context_new();
    assert_int_equal(wb_context_enter(other), WB_OK);
    wb_array *kept = wb_keep(wb_vector(1, 2));
    wb_scope_open();
    for (int i = 0; i < 100; i++) (void)wb_exp(kept);
    leave();
    (void)elsewhere(free_it, other);
    assert_values(wb_neg(kept), 0, -1, -2); /* this thread's from now on */
    wb_free(kept);
}

/* ---- functions that Weber calls ---- */

static wb_array *wander(wb_array *x) {
    wb_context *other = wb_context_new();
    assert_int_equal(wb_context_enter(other), WB_ERROR_ARGUMENT);
    assert_error(
        WB_ERROR_ARGUMENT,
        "wb_context_enter: the forward function must end in the context that it was called in");
    wb_free(other);
    assert_int_equal(wb_context_leave(), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_context_leave: the forward function must end in the context");
    assert_int_equal(wb_context_enter(context), WB_OK);
    wb_array *y = wb_neg(x);
    assert_int_equal(wb_context_leave(), WB_OK);
    return y;
}

static void a_function_that_weber_calls_stays_in_its_context(void **state) {
    (void)state;
    enter();
    wb_layer *model = wb_fn_named("wander", wander);
    assert_values(wb_apply(model, wb_vector(1)), 0, -1);
    wb_free(model);
    leave();
}

static void a_forked_child_has_the_contexts(void **state) {
    (void)state;
    if (!is_on_host()) skip();
    enter();
    wb_array *x = wb_keep(wb_vector(1, 2));
    leave();
    const pid_t child = fork();
    if (child == 0) {
        const bool is_refused = !wb_neg(x) && wb_failed();
        wb_clear_error();
        const bool good = is_refused && wb_context_enter(context) == WB_OK &&
                          wb_item(wb_sum(x)) == 3 && wb_context_leave() == WB_OK &&
                          wb_item(wb_ones(WB_F32, 1)) == 1;
        _exit(good ? 0 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    enter();
    wb_free(x);
    leave();
}

int main(void) {
#define IN_TURN(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
    const struct CMUnitTest tests[] = {
        IN_TURN(threads_train_one_model_in_turn),
        IN_TURN(a_context_in_use_is_refused_on_another_thread),
        IN_TURN(a_thread_that_ends_leaves_all),
        IN_TURN(what_is_made_in_a_context_belongs_to_it),
        IN_TURN(contexts_nest_and_come_back),
        IN_TURN(scopes_stay_open_in_their_context),
        IN_TURN(a_context_has_its_own_sequence_flag_and_watcher),
        IN_TURN(a_context_has_a_default_device_of_its_own),
        IN_TURN(what_is_freed_outside_is_released_by_the_next_use),
        IN_TURN(a_context_in_use_is_not_freed),
        IN_TURN(the_end_of_a_context_releases_what_its_scopes_own),
        IN_TURN(a_function_that_weber_calls_stays_in_its_context),
        IN_TURN(a_forked_child_has_the_contexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
