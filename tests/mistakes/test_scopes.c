/* A function of the user's closes each scope that it opens, and no other: else the call that it is
 * given to fails, and as many scopes are open as before. */
#include <weber.h>

#include "array/thread.h"
#include "support/support.h"

typedef void scope_fn(void);
static scope_fn *mistake;
static wb_layer *model;
static wb_optimiser *optimiser;
static wb_batch batch;

static void opens(void) { wb_scope_open(); }
static void closes(void) { (void)wb_scope_close(); }

/* ---- functions with the mistake ---- */

static wb_array *loss(wb_layer *m, const wb_batch *b, void *user) {
    (void)user;
    wb_array *y = wb_sum(wb_apply(m, b->x));
    mistake();
    return y;
}

static wb_array *good_loss(wb_layer *m, const wb_batch *b, void *user) {
    (void)user;
    return wb_sum(wb_apply(m, b->x));
}

typedef struct Own {
    wb_layer layer;
    int number;
} Own;
static wb_array *forward(wb_layer *layer, wb_array *x) {
    (void)layer;
    mistake();
    return wb_square(x);
}
WB_FUNCTOR(Own, forward, WB_VALUE_FIELD(Own, number));

static void map(wb_batch *b, void *user) {
    (void)user, (void)b;
    mistake();
}

static bool keep(void *user, int64_t place, wb_array *observation) {
    (void)user, (void)place, (void)observation;
    mistake();
    return true;
}

static bool callback(const wb_train_event *event) {
    (void)event;
    mistake();
    return true;
}

static double score(const wb_train_event *event) {
    mistake();
    return event->mean_loss;
}

static wb_array *square(void *context, int count, wb_array *const *x) {
    (void)context, (void)count;
    mistake();
    return wb_square(x[0]);
}

static wb_array *good_square(void *context, int count, wb_array *const *x) {
    (void)context, (void)count;
    return wb_square(x[0]);
}

static wb_status pullback(void *context, wb_array *y, wb_array *g, int count, wb_array *const *x,
                          wb_array **cotangents) {
    (void)context, (void)y, (void)count, (void)x;
    cotangents[0] = g;
    mistake();
    return WB_OK;
}

static wb_array *hook(void *context, wb_array *g) {
    (void)context;
    mistake();
    return g;
}

/* ---- what calls them ---- */

static wb_loader *new_loader(void) {
    return wb_loader_new(.x = wb_ones(WB_F32, 2, 4), .y = wb_ones(WB_F32, 1, 4), .batchsize = 2);
}

static void train_step(void) { assert_null(wb_train_step(loss, model, &batch, NULL, optimiser)); }
static void withgradient(void) {
    wb_gradients *g;
    assert_null(wb_withgradient(loss, model, &batch, NULL, &g));
}
static void apply(void) {
    wb_layer *chain = wb_chain(wb_fn(wb_tanh), &wb_new(Own)->layer);
    assert_null(wb_apply(chain, batch.x));
    wb_free(chain);
}
static void evaluate(void) {
    wb_loader *loader = new_loader();
    assert_int_not_equal(wb_evaluate(model, loader, .loss = loss).status, WB_OK);
    wb_free(loader);
}
static void predict(void) {
    wb_loader *loader = new_loader();
    assert_int_not_equal(wb_evaluate(model, loader, .predict = loss).status, WB_OK);
    wb_free(loader);
}
static void map_batches(void) {
    wb_loader *loader = wb_loader_new(.x = batch.x, .map = map);
    wb_batch b = {0};
    assert_false(wb_next(loader, &b));
    wb_free(loader);
}
static void filter(void) { assert_null(wb_filterobs(keep, NULL, batch.x)); }
static void on_step(void) {
    wb_loader *loader = new_loader();
    assert_int_not_equal(wb_train(good_loss, model, loader, optimiser, .on_step = callback), WB_OK);
    wb_free(loader);
}
static void on_epoch(void) {
    wb_loader *loader = new_loader();
    assert_int_not_equal(wb_train(good_loss, model, loader, optimiser, .on_epoch = callback),
                         WB_OK);
    wb_free(loader);
}
static void scores(void) {
    wb_loader *loader = new_loader();
    assert_int_not_equal(wb_train(good_loss, model, loader, optimiser, .score = score), WB_OK);
    wb_free(loader);
}
static void recompute(void) { assert_null(wb_recompute(square, NULL, 1, &batch.x)); }
static void function(void) {
    assert_null(wb_function(1, &batch.x, .value = square, .pullback = pullback));
}
static void pull(void) {
    wb_array *y = wb_function(1, &batch.x, .value = good_square, .pullback = pullback), *g;
    assert_int_not_equal(wb_gradient_of(wb_sum(y), 1, &batch.x, &g), WB_OK);
}
static void pull_hook(void) {
    wb_array *y = wb_hook(batch.x, hook, NULL), *g;
    assert_int_not_equal(wb_gradient_of(wb_sum(y), 1, &batch.x, &g), WB_OK);
}
static void check(void) {
    wb_array *x = wb_cast(batch.x, WB_F64);
    if (widest() != WB_F64) skip();
    assert_int_not_equal(wb_gradient_check(square, NULL, 1, &x, 1, 0), WB_OK);
}

static const struct row {
    const char *name;
    scope_fn *call;
    const char *function, *what; /* whose mistake it is */
} rows[] = {
    {"a loss in a step", train_step, "wb_train_step: ", "the loss function"},
    {"a loss with its gradient", withgradient, "wb_withgradient: ", "the loss function"},
    {"a forward function", apply, "Own, layer 2 of Chain: ", "the forward function"},
    {"a loss that is evaluated", evaluate, "wb_evaluate: ", "the loss function"},
    {"predict", predict, "wb_evaluate: ", "predict"},
    {"a map of a loader", map_batches, "loader: ", "a function of the loader's"},
    {"a filter", filter, "filterobs: ", "the function"},
    {"a callback of each step", on_step, "wb_train: ", "the callback"},
    {"a callback of each epoch", on_epoch, "wb_train: ", "the callback"},
    {"a score", scores, "wb_train: ", "the score's function"},
    {"a function that is computed again", recompute, "recompute: ", "the function"},
    {"a function with a derivative", function, "function: ", "the function"},
    {"its derivative", pull, "function: ", "the pullback"},
    {"a hook", pull_hook, "hook: ", "the function"},
    {"a function whose gradient is checked", check, "gradient_check: ", "fn"},
};

static void calls_and_says(const struct row *row, scope_fn *what, const char *message) {
    const wb_thread *thread = wb_thread_get();
    const int64_t scopes = thread->scope_count;
    mistake = what;
    row->call();
    assert_error(WB_ERROR_ARGUMENT, message);
    assert_int_equal(thread->scope_count, scopes);
}

static void fails_and_leaves_scopes(void **state) {
    const struct row *row = *state;
    char message[200];
    model = wb_chain(wb_dense(2, 1));
    optimiser = wb_setup(wb_descent(.1), model);
    batch = (wb_batch){.x = wb_ones(WB_F32, 2, 4), .size = 4};
    (void)snprintf(message, sizeof message, "%s%s opened a scope and did not close it",
                   row->function, row->what);
    calls_and_says(row, opens, message);
    (void)snprintf(message, sizeof message,
                   "wb_scope_close: no scope is open in %s; those of its caller stay open",
                   row->what);
    calls_and_says(row, closes, message);
    assert_non_null(wb_train_step(good_loss, model, &batch, NULL, optimiser));
    wb_free(optimiser), wb_free(model);
}

/* ---- loops over loaders ---- */

static wb_loader *other;

/* A plain break leaves the scope of the batch open, which is allowed. */
static wb_array *loss_with_a_break(wb_layer *m, const wb_batch *b, void *user) {
    wb_batch own = {0};
    wb_array *y = good_loss(m, b, user);
    while (wb_next(other, &own)) break;
    return y;
}

static wb_array *loss_that_goes_on(wb_layer *m, const wb_batch *b, void *user) {
    wb_batch next = {0};
    return wb_next(other, &next) ? good_loss(m, b, user) : NULL;
}

static void a_loop_may_be_left_by_a_break(void **state) {
    (void)state;
    const wb_thread *thread = wb_thread_get();
    model = wb_chain(wb_dense(2, 1)), other = new_loader();
    optimiser = wb_setup(wb_descent(.1), model);
    batch = (wb_batch){.x = wb_ones(WB_F32, 2, 4), .size = 4};
    for (int i = 0; i < 3; i++) {
        const int64_t scopes = thread->scope_count;
        assert_non_null(wb_train_step(loss_with_a_break, model, &batch, NULL, optimiser));
        assert_int_equal(thread->scope_count, scopes);
    }
    wb_free(optimiser), wb_free(model), wb_free(other);
}

static void a_loss_does_not_go_on_with_the_loop_around_it(void **state) {
    (void)state;
    model = wb_chain(wb_dense(2, 1)), other = new_loader();
    optimiser = wb_setup(wb_descent(.1), model);
    assert_int_not_equal(wb_train(loss_that_goes_on, model, other, optimiser), WB_OK);
    assert_error(WB_ERROR_ARGUMENT, "wb_next: the loader is in a loop outside of the loss "
                                    "function; make another loader over the data");
    wb_free(optimiser), wb_free(model), wb_free(other);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {TEST(a_loop_may_be_left_by_a_break),
                                        TEST(a_loss_does_not_go_on_with_the_loop_around_it)};
    ADD_ROWS(&tests, rows, fails_and_leaves_scopes);
    ADD_TESTS(&tests, others);
    return run_test_list("mistakes/test_scopes", &tests, NULL, NULL);
}
