/* Loaders (src/data) between devices, each test with the loader's thread and without it. M13: a row
 * of the acceptance list. */
#include <unistd.h>

#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/train.h>

#include "array/array.h"
#include "base/memory.h"

#include "support/places.h"

static bool alone; /* the variant that runs */

enum { N = 23, SIZE = 4, BATCHES = 6 };

/* first, first + 1, ... as (per, N), on the CPU */
static wb_array *counting(wb_dtype dtype, int per, int start) {
    double numbers[8 * N];
    for (int i = 0; i < per * N; i++) numbers[i] = start + i;
    return put(cpu, array_of(dtype, numbers, 2, (int64_t[]){per, N}));
}

/* Labels 100, 101, ... as (N), on the CPU. */
static wb_array *labels(void) {
    int32_t numbers[N];
    for (int i = 0; i < N; i++) numbers[i] = 100 + i;
    return put(cpu, wb_from(WB_I32, numbers, N));
}

/* The labels of an epoch in order of appearance; each observation belongs to its label, and lies on
 * the device. */
static void read_epoch(wb_loader *loader, const wb_device *device, int32_t *seen) {
    wb_batch batch = {0};
    int count = 0;
    while (wb_next(loader, &batch)) {
        assert_ptr_equal(wb_device_of(batch.x), device);
        assert_ptr_equal(wb_device_of(batch.y), device);
        assert_int_equal(wb_dtype_of(batch.y), WB_I32);
        double x[3 * SIZE], y[SIZE];
        assert_int_equal(wb_read_f64(batch.x, x, 3 * batch.size), WB_OK);
        assert_int_equal(wb_read_f64(batch.y, y, batch.size), WB_OK);
        for (int64_t i = 0; i < batch.size; i++) {
            assert_true(x[3 * i + 2] == 3 * (y[i] - 100) + 2);
            seen[count++] = (int32_t)y[i];
        }
    }
    if (wb_failed()) fail_msg("%s", wb_error_message());
    assert_int_equal(count, N);
}

/* ---- routes ---- */

/* Whatever way the batches go, they are those of the CPU. */
static void batches_are_the_same_on_every_route(void **state) { /* M13 */
    (void)state;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        int32_t wanted[3][N], seen[N];
        wb_array *x = counting(WB_F32, 3, 0), *y = labels();
        wb_loader *home = wb_loader_new(.x = x, .y = y, .batchsize = SIZE, .shuffle = shuffle != 0,
                                        .seed = 5, .background = !alone);
        for (int epoch = 0; epoch < 3; epoch++) read_epoch(home, cpu, wanted[epoch]);
        for (int from = 0; from < PLACES; from++)
            for (int to = 0; to < PLACES; to++) {
                wb_loader *loader =
                    wb_loader_new(.x = put(places[from], x), .y = put(places[from], y),
                                  .batchsize = SIZE, .shuffle = shuffle != 0, .seed = 5,
                                  .device = places[to], .background = !alone);
                assert_ptr_equal(wb_device_of(loader), places[to]);
                for (int epoch = 0; epoch < 3; epoch++) {
                    read_epoch(loader, places[to], seen);
                    assert_memory_equal(seen, wanted[epoch], sizeof seen);
                }
                wb_free(loader);
            }
        wb_free(home);
    }
}

static void a_loader_is_sent_elsewhere(void **state) {
    (void)state;
    int32_t wanted[2][N], seen[N];
    wb_loader *here = wb_loader_new(.x = counting(WB_F32, 3, 0), .y = labels(), .batchsize = SIZE,
                                    .shuffle = true, .seed = 7, .background = !alone);
    wb_loader *there = wb_loader_to(first, here), *further = wb_loader_to(second, there);
    for (int epoch = 0; epoch < 2; epoch++) read_epoch(here, cpu, wanted[epoch]);
    for (int epoch = 0; epoch < 2; epoch++) {
        read_epoch(there, first, seen);
        assert_memory_equal(seen, wanted[epoch], sizeof seen);
        read_epoch(further, second, seen);
        assert_memory_equal(seen, wanted[epoch], sizeof seen);
    }
    assert_null(wb_loader_to(NULL, here));
    assert_error(WB_ERROR_ARGUMENT, "wb_loader_to: the device is NULL");
    wb_free(here), wb_free(there), wb_free(further);
}

static void types_arrive_as_by_a_move(void **state) { /* M2 */
    (void)state;
    const struct {
        wb_dtype from, to;
    } rows[] = {
        {WB_F64, WB_F32}, {WB_F32, WB_F32}, {WB_F16, WB_F16}, {WB_U8, WB_U8}, {WB_I64, WB_I64}};
    for (int i = 0; i < 5; i++) {
        wb_array *x = counting(rows[i].from, 2, 1);
        wb_loader *loader = wb_loader_new(.x = x, .more = {{"also", x}}, .batchsize = SIZE,
                                          .device = first, .background = !alone);
        wb_batch batch = {0};
        while (wb_next(loader, &batch)) {
            assert_int_equal(wb_dtype_of(batch.x), rows[i].to);
            assert_ptr_equal(wb_device_of(wb_batch_get(&batch, "also")), first);
            assert_int_equal(wb_dtype_of(wb_batch_get(&batch, "also")), rows[i].to);
            assert_true(wb_at(batch.x, 1, 0) == 2 * SIZE * (double)batch.index + 2);
        }
        assert_false(wb_failed());
        wb_free(loader);
    }
}

static void views_are_sent(void **state) {
    (void)state;
    wb_array *x = wb_flip(counting(WB_F32, 3, 0), 1), *y = wb_transpose(counting(WB_F32, 3, 0));
    for (int from = 0; from < PLACES; from++) {
        wb_loader *backwards = wb_loader_new(.x = put(places[from], x), .batchsize = SIZE,
                                             .device = second, .background = !alone);
        wb_loader *turned =
            wb_loader_new(.x = wb_transpose(put(places[from], y)), .batchsize = SIZE,
                          .device = first, .shuffle = true, .background = !alone);
        wb_batch batch;
        assert_true(wb_first(backwards, &batch));
        assert_values(batch.x, 0, 66, 67, 68, 63, 64, 65, 60, 61, 62, 57, 58, 59);
        assert_ptr_equal(wb_device_of(batch.x), second);
        wb_batch turn = {0};
        while (wb_next(turned, &turn)) assert_true(wb_at(turn.x, 2, 0) == wb_at(turn.x, 0, 0) + 2);
        assert_false(wb_failed());
        wb_free(backwards), wb_free(turned);
    }
}

/* ---- the whole data on a device ---- */

static void data_that_is_there_is_not_copied(void **state) {
    (void)state;
    wb_array *x = put(first, counting(WB_F32, 3, 0));
    assert_int_equal(wb_eval(x), WB_OK);
    wb_loader *loader = wb_loader_new(.x = x, .batchsize = SIZE, .background = !alone);
    wb_batch batch = {0};
    while (wb_next(loader, &batch)) {
        assert_ptr_equal(wb_device_of(batch.x), first);
        assert_ptr_equal(batch.x->buffer, x->buffer); /* a view */
    }
    assert_false(wb_failed());
    wb_loader *shuffled =
        wb_loader_new(.x = x, .batchsize = SIZE, .shuffle = true, .background = !alone);
    while (wb_next(shuffled, &batch)) {
        assert_ptr_equal(wb_device_of(batch.x), first);
        assert_string_equal(wb_op_name(batch.x->op), "gather"); /* there */
    }
    assert_false(wb_failed());
    wb_free(loader), wb_free(shuffled);
}

static wb_status nothing(const wb_batch_memory *batch, void *user) {
    (void)batch, (void)user;
    return WB_OK;
}

static wb_status add_a_thousand(const wb_batch_memory *batch, void *user) {
    float *x = batch->data[0];
    for (int64_t i = 0; i < 2 * batch->size; i++) x[i] += 1000;
    (void)user;
    return WB_OK;
}

static void prepare_wants_host_memory(void **state) {
    (void)state;
    assert_null(wb_loader_new(.x = put(first, counting(WB_F32, 2, 0)), .prepare = nothing,
                              .background = !alone));
    assert_error(WB_ERROR_ARGUMENT,
                 "loader: prepare changes the host's memory, but the data is on");
    wb_loader *loader =
        wb_loader_new(.x = counting(WB_F32, 2, 0), .batchsize = SIZE, .prepare = add_a_thousand,
                      .device = first, .background = !alone); /* before it is sent */
    for (int epoch = 0; epoch < 2; epoch++) {
        wb_batch batch = {0};
        while (wb_next(loader, &batch)) {
            assert_ptr_equal(wb_device_of(batch.x), first);
            assert_true(wb_at(batch.x, 1, 0) == 1001 + 2 * SIZE * (double)batch.index);
        }
        assert_false(wb_failed());
    }
    wb_free(loader);
}

static void all_arrays_are_in_one_place(void **state) {
    (void)state;
    assert_null(wb_loader_new(.x = put(first, counting(WB_F32, 2, 0)),
                              .y = put(second, counting(WB_F32, 2, 0)), .background = !alone));
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted, "loader: x is on %s, but y on %s", wb_device_name(first),
                   wb_device_name(second));
    assert_error(WB_ERROR_ARGUMENT, wanted);
}

/* ---- functions of batches ---- */

static void add_one(wb_batch *batch, void *user) {
    if (wb_device_of(batch->x) != user) (void)wb_fail(WB_ERROR_DEVICE, "not where it was sent");
    batch->x = wb_add_number(batch->x, 1);
}

static void twice(wb_batch *batch, void *user) {
    ++*(int *)user;
    batch->x = wb_mul_number(batch->x, 2);
}

static void functions_see_batches_where_they_go(void **state) {
    (void)state;
    int calls = 0;
    union {
        const wb_device *from;
        void *to;
    } place = {.from = first};
    wb_loader *plain =
        wb_loader_new(.x = counting(WB_F32, 2, 0), .batchsize = SIZE, .device = first,
                      .map = add_one, .user = place.to, .background = !alone);
    wb_loader *mapped = wb_mapobs(twice, &calls, plain);
    wb_loader *again = wb_loader_to(second, mapped);
    wb_batch batch = {0};
    while (wb_next(mapped, &batch))
        assert_true(wb_at(batch.x, 0, 1) == 2 * (2 * SIZE * (double)batch.index + 2 + 1));
    assert_false(wb_failed());
    assert_int_equal(calls, BATCHES);
    assert_false(wb_next(again, &batch)); /* the same functions, which look where the batch is */
    assert_error(WB_ERROR_DEVICE, "not where it was sent");
    wb_free(plain), wb_free(mapped), wb_free(again);
}

/* ---- batches ---- */

static void a_batch_is_moved(void **state) {
    (void)state;
    wb_batch batch = {.x = put(cpu, wb_vector(1, 2)),
                      .y = put(first, wb_from(WB_I32, ((int32_t[]){3, 4}), 2)),
                      .more = {put(second, wb_vector(5, 6))},
                      .index = 3,
                      .size = 2};
    wb_array *y = batch.y;
    assert_int_equal(wb_batch_to(first, &batch), WB_OK);
    wb_array *const all[] = {batch.x, batch.y, batch.more[0]};
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(wb_device_of(all[i]), first);
        assert_values(all[i], 0, 2 * i + 1, 2 * i + 2);
    }
    assert_ptr_equal(batch.y, y);
    assert_null(batch.more[1]);
    assert_true(batch.index == 3 && batch.size == 2);
    wb_batch none = {0};
    assert_int_equal(wb_batch_to(first, &none), WB_OK);
    assert_int_equal(wb_batch_to(first, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_batch_to: batch is NULL");
    assert_int_equal(wb_batch_to(NULL, &batch), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_batch_to: the device is NULL");
}

static void a_batch_that_cannot_be_moved_stays(void **state) {
    (void)state;
    wb_batch batch = {.x = put(cpu, wb_vector(1)), .y = put(cpu, wb_vector(2))};
    wb_array *x = batch.x, *y = batch.y;
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        assert_true(n < 100);
        (void)wb_fail_allocation(n);
        done = wb_batch_to(first, &batch) == WB_OK;
        (void)wb_fail_allocation(0);
        if (done) break;
        assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        assert_true(batch.x == x && batch.y == y);
    }
    assert_values(batch.x, 0, 1);
}

/* ---- life and death ---- */

/* What a turn took is free again when it ends: memory there is the same at each turn, and
 * afterwards as before. */
static void turns_give_their_memory_back(void **state) { /* M13 */
    (void)state;
    wb_array *x = counting(WB_F32, 8, 0), *y = labels();
    assert_int_equal(wb_eval(x, y), WB_OK);
    const int64_t before = wb_memory_status(first).live;
    wb_loader *loader = wb_loader_new(.x = x, .y = y, .batchsize = SIZE, .device = first,
                                      .shuffle = true, .background = !alone);
    int64_t live = 0;
    for (int epoch = 0; epoch < 4; epoch++) {
        wb_batch batch = {0};
        while (wb_next(loader, &batch)) {
            assert_true(isfinite(wb_item(wb_sum(wb_square(batch.x)))));
            if (epoch == 1 && batch.index == 0) live = wb_memory_status(first).live;
            if (epoch > 1 && batch.index == 0) assert_int_equal(wb_memory_status(first).live, live);
        }
        assert_false(wb_failed());
    }
    wb_free(loader);
    assert_int_equal(sync_places(), WB_OK);
    assert_int_equal(wb_memory_status(first).live, before);
}

static void a_kept_batch_outlives_its_loader(void **state) {
    (void)state;
    wb_array *kept[BATCHES];
    wb_loader *loader = wb_loader_new(.x = counting(WB_F32, 3, 0), .batchsize = SIZE,
                                      .device = first, .background = !alone);
    wb_batch batch = {0};
    while (wb_next(loader, &batch)) kept[batch.index] = wb_keep(batch.x);
    for (int epoch = 0; epoch < 2; epoch++)
        while (wb_next(loader, &batch)) assert_true(wb_at(batch.x, 0, 0) >= 0);
    wb_free(loader);
    for (int i = 0; i < BATCHES; i++) {
        assert_true(wb_at(kept[i], 2, 0) == 3 * SIZE * i + 2);
        wb_free(kept[i]);
    }
}

static wb_status slowly(const wb_batch_memory *batch, void *user) {
    (void)batch, (void)user;
    usleep(1000);
    return WB_OK;
}

static void a_loader_is_freed_at_any_time(void **state) {
    (void)state;
    for (int turns = 0; turns < BATCHES; turns++) {
        wb_loader *loader =
            wb_loader_new(.x = counting(WB_F32, 3, 0), .batchsize = SIZE, .device = first,
                          .prepare = slowly, .shuffle = true, .background = !alone);
        wb_batch batch = {0};
        for (int i = 0; i < turns; i++) assert_true(wb_next(loader, &batch));
        if (turns % 2) assert_int_equal(wb_batch_end(&batch), WB_OK);
        wb_free(loader);
    }
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    for (int on_device = 0; on_device < 2; on_device++) {
        wb_array *x = put(on_device ? first : cpu, counting(WB_F32, 3, 0));
        assert_int_equal(wb_eval(x), WB_OK);
        bool passed = false;
        for (int64_t n = 1; !passed; n++) {
            assert_true(n < 1000);
            for (int i = 0; i < PLACES; i++) wb_memory_reclaim(places[i]);
            (void)wb_fail_allocation(n);
            wb_scope_open();
            wb_loader *loader = wb_loader_new(.x = x, .batchsize = 8, .device = first,
                                              .shuffle = true, .background = !alone);
            wb_batch batch = {0};
            int turns = 0;
            while (loader && wb_next(loader, &batch)) turns++;
            if (loader) (void)wb_first(loader, &batch);
            wb_free(loader);
            (void)wb_fail_allocation(0);
            passed = !wb_failed();
            if (passed) assert_int_equal(turns, 3);
            if (!passed) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
            (void)wb_scope_close();
            wb_clear_error();
            assert_int_equal(sync_places(), WB_OK);
        }
    }
}

/* ---- training ---- */

static wb_array *regression(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* Everything there: the same losses as here. */
static void training_goes_elsewhere(void **state) {
    (void)state;
    test_random r = {test_seed()};
    wb_array *x = put(cpu, array_random(&r, WB_F32, -1, 1, 2, (int64_t[]){3, 64}));
    wb_array *y = wb_sum_dims(x, 0);
    double losses[PLACES];
    for (int i = 0; i < PLACES; i++) {
        wb_seed(3);
        wb_layer *model = wb_chain(wb_dense(3, 16, wb_tanh), wb_dense(16, 1));
        wb_optimiser *o = wb_setup(wb_adam(.eta = 0.02), model);
        assert_int_equal(wb_move(places[i], o), WB_OK);
        wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 16, .shuffle = true,
                                        .device = places[i], .background = !alone);
        assert_int_equal(wb_train(regression, model, data, o, .epochs = 40), WB_OK);
        losses[i] = wb_item(wb_mse(wb_apply(model, put(places[i], x)), put(places[i], y)));
        assert_true(losses[i] < 0.05);
        assert_true(fabs(losses[i] - losses[0]) < 1e-3);
        assert_ptr_equal(wb_device_of(o), places[i]);
        wb_free(data), wb_free(o), wb_free(model);
    }
}

static int with_thread(void **state) {
    alone = false;
    return find_places(state);
}

static int without_thread(void **state) {
    alone = true;
    return find_places(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        MOVES(batches_are_the_same_on_every_route),
        MOVES(a_loader_is_sent_elsewhere),
        MOVES(types_arrive_as_by_a_move),
        MOVES(views_are_sent),
        MOVES(data_that_is_there_is_not_copied),
        MOVES(prepare_wants_host_memory),
        MOVES(all_arrays_are_in_one_place),
        MOVES(functions_see_batches_where_they_go),
        MOVES(a_batch_is_moved),
        MOVES(a_batch_that_cannot_be_moved_stays),
        MOVES(turns_give_their_memory_back),
        MOVES(a_kept_batch_outlives_its_loader),
        MOVES(a_loader_is_freed_at_any_time),
        MOVES(every_failed_allocation_is_an_error),
        MOVES(training_goes_elsewhere),
    };
    const int failed =
        cmocka_run_group_tests_name("device/test_move_data", tests, with_thread, NULL);
    return failed + cmocka_run_group_tests_name("device/test_move_data without a thread", tests,
                                                without_thread, NULL);
}
