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

static wb_array *leaf(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    mistake();
    return x;
}

static wb_array *of_model(void *context, wb_layer *m) {
    mistake();
    return wb_apply(m, context);
}

static bool wrong_when; /* of gradients alone, or of values alone */
static void watch(void *user, const char *path, wb_array *x, bool is_gradient) {
    (void)user, (void)path, (void)x;
    if (is_gradient == wrong_when) mistake();
}

static bool load_filter(void *user, const char *path) {
    (void)user, (void)path;
    mistake();
    return true;
}

static bool layer_filter(void *user, const wb_load_layer *layer) {
    (void)user, (void)layer;
    mistake();
    return true;
}

static wb_status host(void *context, int count, const void *const *x, void *result) {
    (void)context, (void)count, (void)x, (void)result;
    mistake();
    return WB_OK;
}

static wb_status good_host(void *context, int count, const void *const *x, void *result) {
    (void)context, (void)count, (void)x, (void)result;
    return WB_OK;
}

static wb_status host_pullback(void *context, int count, const void *const *x, const void *y,
                               const void *g, void *const *cotangents) {
    (void)context, (void)count, (void)x, (void)y, (void)g, (void)cotangents;
    mistake();
    return WB_OK;
}

static void release(void *context) {
    (void)context;
    mistake();
}

static void release_memory(void *context, void *data) {
    (void)context, (void)data;
    mistake();
}

static wb_status getobs(const wb_observation *observation, void *user) {
    (void)observation, (void)user;
    mistake();
    return WB_OK;
}

static wb_status prepare(const wb_batch_memory *memory, void *user) {
    (void)memory, (void)user;
    mistake();
    return WB_OK;
}

static wb_status observe(int64_t place, wb_array **arrays, void *user) {
    (void)place, (void)user;
    arrays[0] = wb_ones(WB_F32, 2);
    mistake();
    return WB_OK;
}

static wb_status good_observe(int64_t place, wb_array **arrays, void *user) {
    (void)place, (void)user;
    arrays[0] = wb_ones(WB_F32, 2);
    return WB_OK;
}

static wb_status collate(wb_batch *b, wb_array *const *const *lists, void *user) {
    (void)user;
    b->x = lists[0][0];
    mistake();
    return WB_OK;
}

static wb_array *init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    wb_array *x = wb_ones_init(ndim, sizes, dtype);
    mistake();
    return x;
}

static double rate(int64_t t, void *user) {
    (void)t, (void)user;
    mistake();
    return .1;
}

static void derive(wb_layer *layer) {
    (void)layer;
    mistake();
}

static bool complete(wb_layer *layer) {
    (void)layer;
    mistake();
    return true;
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    (void)layer, (void)brief;
    (void)snprintf(text, size, "Described");
    mistake();
}

static int64_t most_positions(const wb_layer *layer) {
    (void)layer;
    mistake();
    return 4;
}

/* A struct whose class has one of these functions, and the settings of a row. */
typedef struct Whole {
    wb_layer layer;
    wb_positions positions;
    int number;
} Whole;
static wb_array *whole_forward(wb_layer *layer, wb_array *x) {
    (void)layer;
    return x;
}
WB_FUNCTOR(Whole, whole_forward, WB_VALUE_FIELD(Whole, number));

static wb_layer *new_whole(wb_layer_class *own) {
    *own = Whole_functor;
    own->positions = offsetof(Whole, positions);
    return wb_layer_new(own);
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

static void map_arrays(void) { assert_null(wb_map(leaf, NULL, model)); }
static void walk(void) { assert_int_not_equal(wb_walk(leaf, NULL, model), WB_OK); }
static void map_gradients(void) {
    wb_gradients *g = NULL;
    assert_non_null(wb_withgradient(good_loss, model, &batch, NULL, &g));
    assert_int_not_equal(wb_gradients_map(leaf, NULL, g), WB_OK);
    wb_free(g);
}
static void call_with(void) {
    wb_array *arrays[] = {wb_ones(WB_F32, 1, 2), wb_ones(WB_F32, 1)};
    assert_null(wb_call_with(model, 2, arrays, of_model, batch.x));
}
static void watch_values(void) {
    wrong_when = false;
    wb_watch_layers(watch, NULL);
    assert_null(wb_apply(model, batch.x));
    wb_watch_layers(NULL, NULL);
}
static void watch_gradients(void) {
    wb_gradients *g = NULL;
    wrong_when = true;
    wb_watch_layers(watch, NULL);
    assert_null(wb_withgradient(good_loss, model, &batch, NULL, &g));
    wb_watch_layers(NULL, NULL);
}
static void filter_places(void) {
    wb_layer *copy = wb_clone(model);
    assert_int_not_equal(wb_load_from(model, copy, .filter = load_filter), WB_OK);
    wb_free(copy);
}
static void filter_layers(void) {
    wb_layer *copy = wb_clone(model);
    assert_int_not_equal(wb_load_from(model, copy, .layers = layer_filter), WB_OK);
    wb_free(copy);
}
static void host_function(void) {
    assert_null(wb_host_function(1, &batch.x, .value = host, .ndim = 1, .sizes = {2}));
}
static void pull_host(void) {
    wb_array *y = wb_host_function(1, &batch.x, .value = good_host, .pullback = host_pullback,
                                   .ndim = 1, .sizes = {2});
    wb_array *g;
    assert_int_not_equal(wb_gradient_of(wb_sum(y), 1, &batch.x, &g), WB_OK);
}
static void release_function(void) {
    wb_scope_open();
    assert_non_null(
        wb_function(1, &batch.x, .value = good_square, .pullback = pullback, .release = release));
    assert_int_equal(wb_scope_close(), WB_OK);
}
static void release_borrowed(void) {
    static const float numbers[2];
    wb_free(wb_borrow(WB_F32, numbers, release_memory, NULL, 2));
}
static bool next_of(wb_loader *loader) {
    wb_batch b = {0};
    const bool has_next = wb_next(loader, &b);
    wb_free(loader);
    return has_next;
}
static void get_here(void) {
    assert_false(next_of(wb_loader_new(.numobs = 4, .x = wb_ones(WB_F32, 2, 1), .getobs = getobs,
                                       .background = false)));
}
static void get_ahead(void) {
    assert_false(next_of(wb_loader_new(.numobs = 4, .x = wb_ones(WB_F32, 2, 1), .getobs = getobs)));
}
static void prepare_here(void) {
    assert_false(next_of(wb_loader_new(.x = batch.x, .prepare = prepare, .background = false)));
}
static void prepare_ahead(void) {
    assert_false(next_of(wb_loader_new(.x = batch.x, .prepare = prepare)));
}
static void observe_one(void) {
    assert_false(next_of(wb_loader_new(.observe = observe, .numobs = 2)));
}
static void collate_batch(void) {
    assert_false(next_of(wb_loader_new(.observe = good_observe, .collate = collate, .numobs = 2)));
}
static void fill(void) { assert_null(wb_dense(2, 3, .init = init)); }
static void follow_schedule(void) {
    wb_schedule *s = wb_schedule_of(rate, NULL);
    (void)wb_schedule_at(s, 1);
    wb_free(s);
}
static void derive_settings(void) {
    wb_layer_class own;
    wb_layer *layer = new_whole(&own);
    own.derive = derive;
    assert_null(wb_layer_complete(layer));
}
static void complete_settings(void) {
    wb_layer_class own;
    wb_layer *layer = new_whole(&own);
    own.complete = complete;
    assert_null(wb_layer_complete(layer));
}
static void describe_layer(void) {
    wb_layer_class own;
    char text[64];
    wb_layer *layer = new_whole(&own);
    own.describe = describe;
    (void)wb_show_text(layer, text, sizeof text);
    wb_free(layer);
}
static void ask_positions(void) {
    wb_layer_class own;
    wb_layer *layer = new_whole(&own);
    own.most_positions = most_positions;
    assert_int_not_equal(wb_cache(layer, 4), WB_OK);
    wb_free(layer);
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
    {"a function of a model's arrays", map_arrays, "wb_map: ", "the function"},
    {"a function of arrays in place", walk, "wb_walk: ", "the function"},
    {"a function of gradients", map_gradients, "wb_gradients_map: ", "the function"},
    {"a function of a model with other arrays", call_with, "call_with: ", "the function"},
    {"a watcher of values", watch_values,
     "Dense(2 => 1), layer 1 of Chain: wb_watch_layers: ", "the function"},
    {"a watcher of gradients", watch_gradients, "wb_watch_layers: ", "the function"},
    {"a filter of places", filter_places, "wb_load: ", ".filter"},
    {"a filter of layers", filter_layers, "wb_load: ", ".layers"},
    {"a function on host memory", host_function, "host_function: ", "the function"},
    {"its derivative on host memory", pull_host, "host_function: ", "the pullback"},
    {"the release of a function", release_function, "function: ", "its release"},
    {"the release of borrowed memory", release_borrowed, "the memory of an array: ", "its release"},
    {"a getobs on the caller's thread", get_here, "loader: ", ".getobs"},
    {"a getobs ahead", get_ahead, "loader: ", ".getobs"},
    {"a prepare on the caller's thread", prepare_here, "loader: ", ".prepare"},
    {"a prepare ahead", prepare_ahead, "loader: ", ".prepare"},
    {"an observe", observe_one, "loader: ", "a function of the loader's"},
    {"a collate", collate_batch, "loader: ", "a function of the loader's"},
    {"an initialiser", fill, "Dense: ", ".init"},
    {"a schedule", follow_schedule, "wb_schedule_of: ", "the function"},
    {"a class that derives settings", derive_settings, "Whole: ", "its derive function"},
    {"a class that checks settings", complete_settings, "Whole: ", "its complete function"},
    {"a class that describes", describe_layer, "Whole: ", "its describe function"},
    {"a class with positions", ask_positions, "Whole: ", "its most_positions function"},
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
                   "wb_scope_close: %s has no scope open, and cannot close its caller's",
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
    assert_error(WB_ERROR_ARGUMENT, "wb_next: the loader is in use by a loop outside of the loss "
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
