/* A rank whose shard is at its end: 10 observations in batches of 4 are a step of 4 and 4 on two
 * ranks, and one of 2 and 0; on three one step of 4, 4 and 2, on four one of 4, 4, 2 and 0. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/files.h"
#include "support/ranks.h"

enum { OBSERVATIONS = 10, BATCH = 4 };

static wb_array *numbers(int rows, double step) {
    wb_array *i = wb_iota_make(WB_F32, 1, 2, (int64_t[]){rows, OBSERVATIONS});
    wb_array *j = wb_iota_make(WB_F32, 0, 2, (int64_t[]){rows, OBSERVATIONS});
    return wb_sin(wb_add(wb_mul(i, wb_number(step)), j));
}

/* ---- what a batch holds ---- */

static int64_t prepared;

static wb_status count_prepared(const wb_batch_memory *batch, void *user) {
    (void)user;
    prepared += batch->size;
    return batch->size > 0 ? WB_OK : WB_ERROR_ARGUMENT;
}

static wb_status write_one(const wb_observation *o, void *user) {
    (void)user;
    for (int i = 0; i < 3; i++) ((float *)o->data[0])[i] = (float)o->place;
    return WB_OK;
}

static wb_status make_one(int64_t place, wb_array **arrays, void *user) {
    (void)user;
    arrays[0] = wb_full(WB_F32, (double)place, 3), arrays[1] = wb_full(WB_F32, (double)place, 2);
    arrays[2] = wb_ones(WB_F32, 5); /* of the whole batch */
    return WB_OK;
}

static wb_status collate(wb_batch *batch, wb_array *const *const *lists, void *user) {
    (void)user;
    batch->x = wb_stack_make(-1, (int)batch->size, lists[0]);
    batch->y = wb_stack_make(-1, (int)batch->size, lists[1]);
    batch->more[0] = lists[2][0];
    return batch->x && batch->y ? WB_OK : wb_error_status();
}

static void halve(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_mul_number(batch->x, 0.5);
}

static void checks_batches(wb_loader *data, bool has_y) {
    wb_batch batch = {0};
    int64_t count = 0;
    CHECK(data);
    while (wb_next(data, &batch)) {
        count += batch.size;
        CHECK(wb_ndim(batch.x) == 2 && wb_size(batch.x, 0) == 3);
        CHECK(wb_numobs(batch.x) == batch.size && isfinite(wb_item(wb_sum(batch.x))));
        if (has_y) CHECK(wb_size(batch.y, 0) == 2 && wb_numobs(batch.y) == batch.size);
        if (batch.more[0]) CHECK(wb_count(batch.more[0]) == 5);
    }
    CHECK(!wb_failed());
    wb_array *all = wb_allreduce(wb_scalar(WB_I64, (double)count), WB_REDUCE_SUM);
    CHECK(wb_item(all) == OBSERVATIONS);
    wb_free(data);
}

static void holds_nothing(void) {
    wb_scope_open();
    wb_array *x = numbers(3, 0.7), *y = numbers(2, 0.3);
    checks_batches(wb_loader_new(.x = x, .y = y, .batchsize = BATCH, .shard = true), true);
    checks_batches(wb_loader_new(.x = x, .y = y, .batchsize = BATCH, .shard = true, .map = halve,
                                 .shuffle = true, .background = false),
                   true);
    checks_batches(
        wb_loader_new(.x = x, .batchsize = BATCH, .shard = true, .prepare = count_prepared), false);
    wb_array *own = wb_scalar(WB_I64, (double)prepared);
    CHECK(wb_item(wb_allreduce(own, WB_REDUCE_SUM)) == OBSERVATIONS);
    checks_batches(wb_loader_new(.x = wb_zeros(WB_F32, 3, 1), .numobs = OBSERVATIONS,
                                 .getobs = write_one, .batchsize = BATCH, .shard = true),
                   false);
    checks_batches(wb_loader_new(.numobs = OBSERVATIONS, .observe = make_one, .collate = collate,
                                 .batchsize = BATCH, .shard = true),
                   true);
    const wb_device *checked = wb_get_device("checked", 0);
    CHECK(checked);
    checks_batches(
        wb_loader_new(.x = x, .y = y, .batchsize = BATCH, .shard = true, .device = checked), true);
    checks_batches(wb_loader_new(.x = wb_to(checked, x), .y = wb_to(checked, y), .shuffle = true,
                                 .batchsize = BATCH, .shard = true),
                   true);
    CHECK(wb_scope_close() == WB_OK);
}

static void a_batch_holds_its_own_observations(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) assert_int_equal(ranks_run(n, holds_nothing), 0);
}

/* ---- loops by hand ---- */

/* The whole step of all ranks in one: the first of them in one process. */
static wb_array *step_of_all(wb_array *all, int64_t step) {
    const int64_t size = (int64_t)BATCH * wb_total_workers(), begin = step * size;
    return wb_getobs(all, begin, begin + size < OBSERVATIONS ? begin + size : OBSERVATIONS);
}

static bool is_near(wb_array *a, wb_array *b) {
    return wb_item(wb_maximum(wb_abs(wb_sub(a, b)))) < 1e-6;
}

/* Sums of squares, and their gradients, added up by collectives. */
static void adds_sums(void) {
    wb_scope_open();
    wb_seed(3);
    wb_array *x = numbers(3, 0.7), *y = numbers(2, 0.3);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = BATCH, .shard = true);
    wb_layer *model = wb_chain(wb_dense(3, 4, wb_tanh), wb_dense(4, 2));
    CHECK(wb_synchronize(model) == WB_OK);
    wb_batch b = {0};
    while (wb_next(data, &b)) {
        wb_array *own = wb_sum(wb_square(wb_sub(wb_apply(model, b.x), b.y)));
        wb_array *from = step_of_all(x, b.index), *to = step_of_all(y, b.index);
        wb_array *all = wb_sum(wb_square(wb_sub(wb_apply(model, from), to)));
        wb_gradients *g = wb_gradient(own, model), *whole = wb_gradient(all, model);
        CHECK(g && whole);
        for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
            CHECK(is_near(wb_allreduce(wb_gradients_get(g, p.path), WB_REDUCE_SUM),
                          wb_gradients_get(whole, p.path)));
        CHECK(is_near(wb_allreduce(own, WB_REDUCE_SUM), all));
        wb_array *count = wb_scalar(WB_I64, (double)wb_numobs(b.x));
        CHECK(wb_item(wb_allreduce(count, WB_REDUCE_SUM)) == (double)wb_numobs(from));
    }
    CHECK(!wb_failed());
    wb_free(data), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void sums_by_hand_are_those_of_one_process(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) assert_int_equal(ranks_run(n, adds_sums), 0);
}

/* ---- steps ---- */

/* A mean of one's own, which is NaN of nothing, beside a decay, and what it hands out. */
static wb_array *own_loss(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *l = wb_mean(wb_square(wb_sub(wb_apply(model, batch->x), batch->y)));
    (void)user;
    wb_array *w = wb_get(model, "layers.1.weight");
    return wb_add(wb_aux("error", l), wb_mul_number(wb_sum(wb_square(w)), 0.01));
}

/* y = x; in training the mean of x is kept, as it comes. */
typedef struct Tracker {
    wb_layer layer;
    wb_array *mean;
} Tracker;

static wb_array *track(wb_layer *layer, wb_array *x) {
    if (wb_is_active(layer) && wb_set(layer, "mean", wb_cast(wb_mean(x), WB_F32)) != WB_OK)
        return NULL;
    return x;
}

WB_FUNCTOR(Tracker, track, WB_STATE_FIELD(Tracker, mean));

static wb_layer *tracker(void) {
    Tracker *t = wb_new(Tracker);
    t->mean = wb_keep(wb_scalar(WB_F32, 0));
    return &t->layer;
}

enum { BY_STEP, BY_GRADIENTS, BY_SHARES, BY_TRAIN, BY_PARTS, WAYS };
static int way;

static bool shows_numbers(const wb_train_event *event) {
    CHECK(isfinite(event->mean_loss) && event->aux_count == 1 && isfinite(event->aux[0].mean));
    return true;
}

static wb_layer *model_of_way(void) {
    if (way == BY_PARTS) return wb_chain(wb_dense(3, 4, wb_tanh), wb_dense(4, 2), tracker());
    /* of two observations it makes much of rounding */
    return wb_chain(wb_dense(3, 4, .dtype = WB_F64),
                    wb_batchnorm(4, wb_tanh, .sync = true, .dtype = WB_F64),
                    wb_dense(4, 2, .dtype = WB_F64), tracker());
}

static wb_array *loss_by_hand(wb_layer *model, const wb_batch *b, wb_optimiser *o,
                              wb_gradients **g) {
    return way == BY_SHARES ? wb_withgradient_for(o, own_loss, model, b, NULL, g)
                            : wb_withgradient(own_loss, model, b, NULL, g);
}

static void step(wb_layer *model, const wb_batch *b, wb_optimiser *o) {
    wb_gradients *g = NULL;
    if (way == BY_STEP) {
        CHECK(isfinite(wb_item(wb_train_step(own_loss, model, b, NULL, o))));
        return;
    }
    wb_array *l = loss_by_hand(model, b, o, &g);
    CHECK(l && (b->size > 0 ? wb_item(l) > 0 : wb_item(l) == 0));
    CHECK(wb_update(o, model, g) == WB_OK);
}

/* A step of all ranks together has 8 observations, whatever their number. */
static void trains(void) {
    wb_scope_open();
    wb_seed(3);
    const int n = wb_total_workers();
    const wb_dtype dtype = way == BY_PARTS ? WB_F32 : WB_F64;
    wb_array *x = wb_cast(numbers(3, 0.7), dtype), *y = wb_cast(numbers(2, 0.3), dtype);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 8 / n, .shard = true);
    wb_layer *model = model_of_way();
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.05), model, .distributed = true,
                               .micro_batches = way == BY_PARTS ? 4 / n : 0);
    wb_batch b = {0};
    if (way >= BY_TRAIN)
        CHECK(wb_train(own_loss, model, data, o, .epochs = 3, .on_step = shows_numbers,
                       .on_epoch = shows_numbers) == WB_OK);
    for (int e = 0; e < 3 && way < BY_TRAIN; e++)
        while (wb_next(data, &b)) step(model, &b, o);
    CHECK(!wb_failed() && wb_step_count(o) == 6 && wb_skipped(o) == 0);
    char name[64];
    (void)snprintf(name, sizeof name, "%d-%d.npz", way, n);
    if (wb_rank() == 0) CHECK(wb_save(path_of(name), model) == WB_OK);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

/* Of each number of ranks with that of one. */
static void compares(void) {
    char name[64];
    wb_scope_open();
    for (int n = 2; n <= 4; n *= 2) {
        wb_layer *a = model_of_way(), *b = model_of_way();
        (void)snprintf(name, sizeof name, "%d-1.npz", way);
        CHECK(wb_load(path_of(name), a) == WB_OK);
        (void)snprintf(name, sizeof name, "%d-%d.npz", way, n);
        CHECK(wb_load(path_of(name), b) == WB_OK);
        for (wb_parameter p = {0}; wb_next_parameter(a, &p);)
            CHECK(is_near(p.array, wb_get(b, p.path)));
        wb_free(a), wb_free(b);
    }
    CHECK(wb_scope_close() == WB_OK);
}

static void steps_are_those_of_one_process(void **state) {
    (void)state;
    for (way = 0; way < WAYS; way++) {
        for (int n = 1; n <= 4; n *= 2) assert_int_equal(ranks_run(n, trains), 0);
        assert_int_equal(ranks_run(1, compares), 0);
    }
}

static wb_array *recurrent_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* Steps of sequences that go on, of which the last ranks have no more. */
static void goes_on(void) {
    wb_scope_open();
    wb_seed(3);
    wb_array *x = numbers(3, 0.7), *y = numbers(2, 0.3);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 2, .shard = true);
    wb_layer *model = wb_chain(wb_dense(3, 4), wb_recur(wb_lstm_cell(4, 2)));
    wb_optimiser *o = wb_setup(wb_descent(), model, .distributed = true, .compare_every = 1);
    wb_batch b = {0};
    while (wb_next(data, &b)) {
        CHECK(wb_train_step(recurrent_loss, model, &b, NULL, o));
        CHECK(wb_size(wb_get(model, "layers.2.hidden"), 1) == 2);
    }
    CHECK(!wb_failed() && wb_step_count(o) > 0);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

static void hidden_states_stay(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) assert_int_equal(ranks_run(n, goes_on), 0);
}

/* ---- scores ---- */

static void evaluates(void) {
    wb_scope_open();
    wb_seed(3);
    wb_array *x = numbers(3, 0.7), *y = numbers(2, 0.3);
    wb_loader *part = wb_loader_new(.x = wb_getobs(x, 0, 3), .y = wb_getobs(y, 0, 3),
                                    .batchsize = 2, .shard = true),
              *whole =
                  wb_loader_new(.x = wb_getobs(x, 0, 3), .y = wb_getobs(y, 0, 3), .batchsize = 3);
    wb_layer *model = wb_chain(wb_dense(3, 4), wb_dense(4, 2));
    CHECK(wb_synchronize(model) == WB_OK);
    const wb_evaluation a = wb_evaluate(model, part, .loss = own_loss),
                        b = wb_evaluate(model, whole, .loss = own_loss);
    CHECK(a.observations == 3 && fabs(a.loss - b.loss) < 1e-6 && fabs(a.mse - b.mse) < 1e-6);
    wb_free(part), wb_free(whole), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void scores_leave_ranks_without_any_out(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) assert_int_equal(ranks_run(n, evaluates), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_holds_its_own_observations),
        cmocka_unit_test(sums_by_hand_are_those_of_one_process),
        cmocka_unit_test(steps_are_those_of_one_process),
        cmocka_unit_test(hidden_states_stay),
        cmocka_unit_test(scores_leave_ranks_without_any_out),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
