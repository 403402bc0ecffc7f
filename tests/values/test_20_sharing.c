/* Rule 20: a recipe belongs to one thread; wb_share and the loader hand over memory. */
#include <pthread.h>

#include "values/modes.h"

enum { SERVERS = 3, ROUNDS = 40 };

/* ---- one model, several threads ---- */

typedef struct server {
    wb_layer *model;
    const float *x; /* (4, 6) */
    float y[2 * 6];
    int failures;
} server;

static bool predict(server *s, float *y) {
    wb_scope_open();
    wb_array *x = wb_to(wb_device_of(s->model), wb_borrow(WB_F32, s->x, NULL, NULL, 4, 6));
    wb_array *p = wb_softmax(wb_apply(s->model, x));
    const bool good = wb_read_f32(p, y, 2 * 6) == WB_OK;
    return wb_scope_close() == WB_OK && good;
}

static void *serve(void *context) {
    server *s = context;
    float y[2 * 6];
    if (!predict(s, s->y)) s->failures++;
    for (int i = 0; i < ROUNDS; i++)
        if (!predict(s, y) || memcmp(y, s->y, sizeof y) != 0) s->failures++;
    wb_free(s->model);
    return NULL;
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_square(wb_apply(model, batch->x)));
}

static void step(wb_optimiser *o, wb_layer *model, wb_array *x) {
    wb_scope_open();
    const wb_batch batch = {.x = x};
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss, model, &batch, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
}

/* Other threads serve the model while its own trains it: they see what it was when it was
 * shared. */
static void threads_serve_a_model_that_is_being_trained(void **state) {
    (void)state;
    wb_seed(1);
    wb_layer *model = wb_chain(wb_dense(4, 16, wb_tanh), wb_dropout(.p = 0.5), wb_dense(16, 2));
    wb_array *x = wb_keep(wb_uniform(WB_F32, 4, 6));
    float numbers[4 * 6], wanted[2 * 6];
    assert_int_equal(wb_read_f32(x, numbers, 4 * 6), WB_OK);
    assert_int_equal(wb_read_f32(wb_softmax(wb_apply(model, x)), wanted, 2 * 6), WB_OK);
    server servers[SERVERS];
    pthread_t threads[SERVERS];
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = (server){.model = wb_share(model), .x = numbers};
        assert_non_null(servers[i].model);
        assert_int_equal(pthread_create(&threads[i], NULL, serve, &servers[i]), 0);
    }
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.1), model);
    for (int i = 0; i < ROUNDS; i++) step(o, model, x);
    for (int i = 0; i < SERVERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(servers[i].failures, 0);
        assert_memory_equal(servers[i].y, wanted, sizeof wanted);
    }
    assert_false(wb_approx(wb_softmax(wb_apply(model, x)), wb_from(WB_F32, wanted, 2, 6), 1e-3,
                           1e-3, NULL, 0));
    wb_free(o), wb_free(x), wb_free(model);
}

static void a_shared_model_has_the_same_memory_and_is_not_trained(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 2), *shared = wb_share(model);
    wb_array *own = wb_get(model, "weight"), *other = wb_get(shared, "weight");
    assert_ptr_not_equal(own, other);
    assert_ptr_equal(own->buffer, other->buffer);
    assert_null(wb_setup(wb_adam(), shared));
    assert_error(WB_ERROR_ARGUMENT, "the model comes from wb_share");
    wb_free(model);
    assert_true(isfinite(wb_item(wb_sum(wb_apply(shared, wb_ones(WB_F32, 3, 2))))));
    wb_free(shared);
}

/* ---- what each thread has for itself ---- */

typedef struct observed {
    bool failed;
    double random;
    wb_plan_counts counts;
} observed;

static void *look_around(void *context) {
    observed *o = context;
    o->failed = wb_failed();
    wb_seed(9);
    wb_scope_open();
    o->random = wb_item(wb_sum(wb_uniform(WB_F64, 10)));
    (void)wb_scope_close();
    (void)wb_add(NULL, NULL);
    o->counts = wb_plan_status();
    wb_clear_error();
    return NULL;
}

static void errors_plans_and_random_numbers_are_the_threads_own(void **state) {
    (void)state;
    wb_seed(9);
    const double random = wb_item(wb_sum(wb_uniform(WB_F64, 10)));
    wb_seed(5);
    wb_array *before = wb_uniform(WB_F64, 3);
    wb_seed(5);
    const int64_t evaluations = wb_plan_status().evaluations;
    (void)wb_transpose(NULL);
    observed o;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_around, &o), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_error(WB_ERROR_ARGUMENT, "transpose"); /* ours, not the thread's */
    assert_false(o.failed);
    assert_true(o.random == random);
    assert_true(o.counts.misses >= 1); /* a cache of its own */
    assert_int_equal(wb_plan_status().evaluations, evaluations);
    assert_same_bits(wb_uniform(WB_F64, 3), before, "our sequence went on undisturbed");
}

/* Arrays go to a thread and come back. */
typedef struct request {
    wb_array *x, *y;
    bool is_good;
} request;

static void *square(void *context) {
    request *r = context;
    wb_scope_open();
    r->y = wb_share_array(wb_square(r->x));
    r->is_good = wb_scope_close() == WB_OK && r->y;
    wb_free(r->x);
    return NULL;
}

static void arrays_go_to_threads(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    assert_null(wb_share_array(NULL));
    wb_scope_open();
    wb_array *x = wb_exp(wb_vector(0, 1, 2));
    for (int i = 0; i < 20; i++) {
        request r = {.x = wb_share_array(x)};
        pthread_t thread;
        assert_true(r.x && r.x != x);
        assert_int_equal(pthread_create(&thread, NULL, square, &r), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(r.is_good);
        assert_values(wb_div(r.y, x), 1e-5, 1, 2.718282, 7.389056);
        wb_free(r.y);
    }
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(live_now().arrays, before.arrays);
    assert_int_equal(live_now().buffers, before.buffers);
}

static void *leave_things_behind(void *context) {
    (void)context;
    wb_scope_open(); /* a thread may end with scopes open */
    (void)wb_exp(wb_ones(WB_F32, 100));
    (void)wb_item(wb_sum(wb_uniform(WB_F32, 100)));
    (void)wb_vector(1, 2, 3);
    return NULL;
}

static void a_thread_that_ends_leaves_nothing(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, leave_things_behind, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_int_equal(live_now().arrays, before.arrays);
    assert_int_equal(live_now().buffers, before.buffers);
}

/* ---- the loader's thread ---- */

enum { OBSERVATIONS = 37 };

/* Sums up an epoch so that order and contents tell. */
static void epoch_of(wb_loader *data, double *sums, int64_t *count) {
    wb_batch batch = {0};
    *count = 0;
    while (wb_next(data, &batch)) {
        wb_array *weights = wb_iota(WB_F64, 0, batch.size);
        sums[(*count)++] = wb_item(wb_sum(wb_mul(wb_cast(batch.x, WB_F64), weights)));
    }
    assert_false(wb_failed());
}

static void the_order_follows_from_seed_and_epoch(void **state) {
    (void)state;
    double sums[2][3][16];
    int64_t count;
    for (int background = 0; background < 2; background++) {
        wb_seed((uint64_t)background); /* the thread's own numbers have no part in it */
        wb_array *x = wb_iota(WB_F32, 0, OBSERVATIONS);
        wb_loader *data = wb_loader_new(.x = x, .batchsize = 5, .shuffle = true, .seed = 3,
                                        .background = !(background == 0));
        for (int epoch = 0; epoch < 3; epoch++) epoch_of(data, sums[background][epoch], &count);
        wb_free(data);
    }
    assert_int_equal(count, 8);
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0; i < 8; i++) assert_true(sums[0][epoch][i] == sums[1][epoch][i]);
    assert_false(memcmp(sums[0][0], sums[0][1], 8 * sizeof(double)) == 0);
}

/* Noise added on the loader's thread: from seed, epoch and index alone. */
static wb_status add_noise(const wb_batch_memory *batch, void *user) {
    wb_array *noise = wb_uniform(WB_F32, batch->size);
    float numbers[OBSERVATIONS];
    if (wb_read_f32(noise, numbers, batch->size) != WB_OK) return wb_error_status();
    float *x = batch->data[0];
    for (int64_t i = 0; i < batch->size; i++) x[i] += numbers[i];
    (void)user;
    return WB_OK;
}

static void random_numbers_there_follow_from_seed_epoch_and_index(void **state) {
    (void)state;
    double sums[2][2][16];
    int64_t count;
    for (int background = 0; background < 2; background++) {
        wb_seed(100 + (uint64_t)background);
        wb_loader *data = wb_loader_new(.x = wb_cpu(wb_iota(WB_F32, 0, OBSERVATIONS)),
                                        .batchsize = 5, .shuffle = true, .seed = 3,
                                        .prepare = add_noise, .background = !(background == 0));
        for (int epoch = 0; epoch < 2; epoch++) epoch_of(data, sums[background][epoch], &count);
        wb_free(data);
    }
    for (int epoch = 0; epoch < 2; epoch++)
        for (int i = 0; i < count; i++)
            if (sums[0][epoch][i] != sums[1][epoch][i])
                fail_msg("epoch %d, batch %d: %.9g and %.9g", epoch, i, sums[0][epoch][i],
                         sums[1][epoch][i]);
}

static wb_status fail_at_three(const wb_batch_memory *batch, void *user) {
    (void)user;
    if (batch->index < 3) return WB_OK;
    (void)wb_add(NULL, NULL); /* an error of the thread that prepares */
    return WB_ERROR_FORMAT;
}

static void an_error_there_comes_with_its_batch(void **state) {
    (void)state;
    for (int background = 0; background < 2; background++) {
        wb_loader *data =
            wb_loader_new(.x = wb_cpu(wb_iota(WB_F32, 0, OBSERVATIONS)), .batchsize = 5,
                          .prepare = fail_at_three, .background = !(background == 0));
        wb_batch batch = {0};
        int turns = 0;
        while (wb_next(data, &batch)) {
            turns++;
            assert_true(isfinite(wb_item(wb_sum(batch.x))));
        }
        assert_int_equal(turns, 3);
        assert_true(strstr(wb_error_message(), "3") != NULL);
        assert_true(wb_failed());
        wb_clear_error();
        wb_free(data);
    }
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(threads_serve_a_model_that_is_being_trained),
        TEST(a_shared_model_has_the_same_memory_and_is_not_trained),
        TEST(errors_plans_and_random_numbers_are_the_threads_own),
        TEST(arrays_go_to_threads),
        TEST(a_thread_that_ends_leaves_nothing),
        TEST(the_order_follows_from_seed_and_epoch),
        TEST(random_numbers_there_follow_from_seed_epoch_and_index),
        TEST(an_error_there_comes_with_its_batch),
    };
    return cmocka_run_group_tests_name("values 20", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
