/* src/data/loader.c, prefetch.c and order.c, each test with the loader's thread and without it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weber/data.h>
#include <weber/device.h>
#include <weber/ops.h>

#include "array/thread.h"
#include "base/memory.h"
#include "data/prefetch.h"
#include "support/numbers.h"
#include "support/scoped.h"

static bool alone; /* the variant that runs: no thread of the loader's own */

/* first, first + 1, ... as (per, n), or (n) for per 0; i32 */
static wb_array *counting(int per, int n, int first) {
    const int count = per ? per * n : n;
    int32_t *values = malloc((size_t)count * sizeof *values);
    for (int i = 0; i < count; i++) values[i] = first + i;
    wb_array *x = per ? wb_from(WB_I32, values, per, n) : wb_from(WB_I32, values, n);
    free(values);
    return x;
}

/* x holds first, first + 1, ... */
static void assert_counting(wb_array *x, int count, int first) {
    assert_non_null(x);
    assert_int_equal(wb_count(x), count);
    const int32_t *values = wb_read_begin(x);
    assert_non_null(values);
    for (int i = 0; i < count; i++) assert_int_equal(values[i], first + i);
    wb_read_end(x);
}

/* The first number of each observation of an epoch, in order of appearance; the epoch has to end
 * well. */
static void read_epoch(wb_loader *loader, int32_t *seen) {
    wb_batch batch = {0};
    while (wb_next(loader, &batch)) {
        const int64_t per = wb_count(batch.x) / batch.size;
        const int32_t *values = wb_read_begin(batch.x);
        for (int64_t i = 0; i < batch.size; i++) *seen++ = values[i * per];
        wb_read_end(batch.x);
    }
    assert_false(wb_failed());
}

/* As a binding does: each call in a scope of its own, nothing open between them. What is open
 * outside of the call is another number each time, and stays open. */
static bool next_of_binding(wb_loader *loader, wb_batch *batch, wb_array **x) {
    const int outside = batch->loader_ ? 3 : 0;
    for (int i = 0; i < outside; i++) wb_scope_open();
    wb_scope_open();
    const bool goes_on = wb_next(loader, batch);
    if (goes_on) *x = wb_take(batch->x);
    if (goes_on) assert_int_equal(wb_scope_leave(), WB_OK); /* the turn's */
    for (int i = 0; i <= outside; i++) assert_int_equal(wb_scope_leave(), WB_OK);
    return goes_on;
}

static void a_turn_whose_scope_is_left_goes_on(void **state) {
    (void)state;
    enum { BATCHES = 3 };
    wb_loader *loader = wb_loader_new(.x = counting(2, 5, 1), .batchsize = 2, .background = !alone);
    for (int epoch = 0; epoch < 2; epoch++) {
        wb_array *x[BATCHES + 1] = {NULL};
        wb_batch batch = {0};
        int turns = 0;
        while (turns <= BATCHES && next_of_binding(loader, &batch, &x[turns])) turns++;
        assert_int_equal(turns, BATCHES);
        assert_false(wb_failed());
        for (int i = 0; i < BATCHES; i++) { /* all at once: none took another one's memory */
            assert_counting(x[i], i < 2 ? 4 : 2, 4 * i + 1);
            wb_free(x[i]);
        }
    }
    assert_int_equal(wb_scope_close(), WB_OK); /* the test's own is the innermost */
    wb_scope_open();
    wb_free(loader);
}

static void a_matrix_comes_in_columns(void **state) { /* J1 */
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(2, 5, 1), .batchsize = 2, .background = !alone);
    assert_int_equal(wb_loader_length(loader), 3);
    wb_batch batch = {0};
    int turns = 0;
    for (; wb_next(loader, &batch); turns++) {
        assert_int_equal(batch.index, turns);
        assert_int_equal(batch.size, turns < 2 ? 2 : 1);
        assert_int_equal(wb_ndim(batch.x), 2);
        assert_int_equal(wb_dtype_of(batch.x), WB_I32);
        assert_null(batch.y);
        assert_counting(batch.x, 2 * (int)batch.size, 1 + 4 * turns);
    }
    assert_int_equal(turns, 3);
    assert_null(batch.x);
    wb_free(loader);
}

static void a_partial_batch_is_dropped_where_asked(void **state) { /* J1, J2 */
    (void)state;
    wb_loader *matrix = wb_loader_new(.x = counting(2, 5, 1), .batchsize = 2, .drop_partial = true,
                                      .background = !alone);
    assert_int_equal(wb_loader_length(matrix), 2);
    wb_loader *vector = wb_loader_new(.x = counting(0, 12, 1), .batchsize = 5, .drop_partial = true,
                                      .background = !alone);
    wb_batch batch = {0};
    assert_true(wb_next(vector, &batch));
    assert_counting(batch.x, 5, 1);
    assert_true(wb_next(vector, &batch));
    assert_int_equal(wb_ndim(batch.x), 1);
    assert_counting(batch.x, 5, 6);
    assert_false(wb_next(vector, &batch));
    wb_free(vector), wb_free(matrix);
}

static void the_default_batch_is_one_observation(void **state) { /* J1 */
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(2, 3, 0), .background = !alone);
    assert_int_equal(wb_loader_length(loader), 3);
    wb_batch batch = {0};
    assert_true(wb_next(loader, &batch));
    assert_int_equal(wb_ndim(batch.x), 2);
    assert_int_equal(wb_size(batch.x, 1), 1);
    assert_int_equal(wb_batch_end(&batch), WB_OK);
    wb_free(loader);
}

static void further_arrays_are_found_by_name(void **state) { /* J1 */
    (void)state;
    wb_loader *loader =
        wb_loader_new(.x = counting(2, 5, 0), .y = counting(0, 5, 50), .batchsize = 2,
                      .more = {{"mask", counting(3, 5, 100)}, {"id", counting(0, 5, 7)}},
                      .background = !alone);
    wb_batch batch = {0};
    for (int i = 0; wb_next(loader, &batch); i++) {
        assert_counting(batch.y, (int)batch.size, 50 + 2 * i);
        assert_ptr_equal(wb_batch_get(&batch, "y"), batch.y);
        assert_counting(wb_batch_get(&batch, "mask"), 3 * (int)batch.size, 100 + 6 * i);
        assert_counting(wb_batch_get(&batch, "id"), (int)batch.size, 7 + 2 * i);
        assert_ptr_equal(batch.more[1], wb_batch_get(&batch, "id"));
    }
    assert_true(wb_first(loader, &batch));
    assert_null(wb_batch_get(&batch, "weight"));
    assert_error(WB_ERROR_ARGUMENT, "no array is named \"weight\"; there are x, y, mask, id");
    wb_free(loader);

    loader = wb_loader_new(.x = counting(2, 5, 0), .more = {{"mask", counting(0, 5, 9)}},
                           .background = !alone);
    assert_true(wb_first(loader, &batch));
    assert_null(batch.y);
    assert_counting(batch.more[0], 1, 9);
    wb_free(loader);
}

/* A dictionary of arrays is a list of names, a range an array that counts. */
static void names_mean_one_array(void **state) {
    (void)state;
    wb_array *x = counting(0, 5, 1);
    assert_null(wb_loader_new(.x = x, .more = {{"mask", x}, {"id", x}, {"mask", x}}));
    assert_error(WB_ERROR_ARGUMENT, "loader: names in .more must differ from x, y and each other, "
                                    "got \"mask\" twice");
    assert_null(wb_loader_new(.x = x, .more = {{"y", x}}));
    assert_error(WB_ERROR_ARGUMENT, "got \"y\" there");
}

static void a_dictionary_and_a_range(void **state) { /* J11 */
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(0, 10, 1), .more = {{"a", counting(2, 10, 0)}},
                                      .batchsize = 2, .background = !alone);
    wb_batch batch = {0};
    for (int i = 0; wb_next(loader, &batch); i++) {
        assert_counting(batch.x, 2, 1 + 2 * i);
        assert_counting(wb_batch_get(&batch, "a"), 4, 4 * i);
    }
    wb_free(loader);
}

/* Collated is one array; what is not are the observations of a batch, one by one, as views. */
static void observations_of_a_batch(void **state) { /* J5 */
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(2, 4, 0), .batchsize = 2, .background = !alone);
    wb_batch batch = {0};
    for (int i = 0; wb_next(loader, &batch); i++) {
        assert_sizes(batch.x, 2, 2);
        for (int k = 0; k < 2; k++) {
            wb_array *one = wb_squeeze(wb_getobs(batch.x, k, k + 1), 1);
            assert_sizes(one, 2);
            assert_counting(one, 2, 4 * i + 2 * k);
        }
    }
    wb_free(loader);
}

static void shuffled_epochs_differ_and_repeat_by_seed(void **state) { /* J3 */
    (void)state;
    enum { N = 101 };
    int32_t seen[3][2][N];
    for (int l = 0; l < 3; l++) {
        wb_loader *loader = wb_loader_new(.x = counting(3, N, 0), .batchsize = 8, .shuffle = true,
                                          .seed = l == 2 ? 2 : 1, .background = !alone);
        for (int epoch = 0; epoch < 2; epoch++) read_epoch(loader, seen[l][epoch]);
        wb_free(loader);
    }
    bool found[N] = {false};
    for (int i = 0; i < N; i++) found[seen[0][0][i] / 3] = true;
    for (int i = 0; i < N; i++) assert_true(found[i]);
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
    assert_memory_not_equal(seen[0][0], seen[0][1], sizeof seen[0][0]);
    assert_memory_not_equal(seen[0][0], seen[2][0], sizeof seen[0][0]);
}

static void the_order_is_the_same_on_every_machine(void **state) {
    (void)state;
    int32_t seen[10];
    wb_loader *loader = wb_loader_new(.x = counting(0, 10, 0), .batchsize = 4, .shuffle = true,
                                      .seed = 1, .background = !alone);
    read_epoch(loader, seen);
    const int32_t wanted[10] = {1, 9, 6, 5, 7, 4, 3, 2, 8, 0};
    assert_memory_equal(seen, wanted, sizeof wanted);
    wb_free(loader);
}

static void unequal_lengths_are_refused(void **state) { /* J4 */
    (void)state;
    assert_null(
        wb_loader_new(.x = counting(2, 10, 0), .y = counting(0, 9, 0), .background = !alone));
    assert_error(WB_ERROR_SHAPE, "loader: x has 10 observations in (2, 10), but y has 9 in (9)");
    assert_null(wb_loader_new(.x = counting(2, 10, 0), .more = {{"mask", counting(2, 11, 0)}},
                              .background = !alone));
    assert_error(WB_ERROR_SHAPE, "mask has 11 in (2, 11)");
}

static void bad_descriptions_are_refused(void **state) {
    (void)state;
    assert_null(wb_loader_new(.x = wb_zeros(WB_F32, 28, 28, 0), .background = !alone));
    assert_error(WB_ERROR_SHAPE, "loader: x is empty, its sizes are (28, 28, 0)");
    assert_null(wb_loader_new(.x = wb_scalar(WB_F32, 1), .background = !alone));
    assert_error(WB_ERROR_SHAPE, "x is a scalar");
    assert_null(wb_loader_new(.x = counting(2, 5, 0), .batchsize = -3, .background = !alone));
    assert_error(WB_ERROR_ARGUMENT, "batchsize must be from 1 to 1099511627776, got -3");
    assert_null(
        wb_loader_new(.x = counting(2, 5, 0), .batchsize = INT64_MAX, .background = !alone));
    assert_error(WB_ERROR_ARGUMENT, "1099511627776, got 9223372036854775807");
    assert_null(wb_loader_new(.x = counting(2, 5, 0), .batchsize = 6, .drop_partial = true,
                              .background = !alone));
    assert_error(WB_ERROR_ARGUMENT, "no batch: 5 observations, batchsize 6");
    assert_null(wb_loader_new(.background = !alone));
    assert_error(WB_ERROR_ARGUMENT, "x is NULL");
    assert_null(
        wb_loader_new(.x = counting(2, 5, 0), .more = {{"mask", NULL}}, .background = !alone));
    assert_error(WB_ERROR_ARGUMENT, "mask is NULL");
    wb_batch batch = {0};
    assert_false(wb_next(NULL, &batch));
    assert_error(WB_ERROR_ARGUMENT, "loader is NULL");
}

static void a_break_is_followed_by_the_beginning(void **state) { /* J12 */
    (void)state;
    wb_loader *loader =
        wb_loader_new(.x = counting(2, 20, 0), .batchsize = 2, .background = !alone);
    const wb_live_counts before = live_now();
    for (int epoch = 0; epoch < 3; epoch++) {
        wb_batch batch = {0};
        while (wb_next(loader, &batch))
            if (batch.index == 4) break;
        assert_int_equal(batch.index, 4);
        assert_int_equal(batch.epoch, epoch);
        assert_int_equal(live_now().arrays,
                         before.arrays + 1); /* x of the turn left open, of no other */
    }
    wb_batch batch = {0};
    assert_true(wb_next(loader, &batch));
    assert_counting(batch.x, 4, 0);
    assert_int_equal(wb_batch_end(&batch), WB_OK);
    assert_null(batch.x);
    assert_int_equal(live_now().arrays, before.arrays);
    wb_free(loader);
}

static void freeing_a_loader_closes_the_turn_left_open(void **state) {
    (void)state;
    wb_loader *loader =
        wb_loader_new(.x = counting(2, 20, 0), .batchsize = 2, .background = !alone);
    wb_batch batch = {0};
    assert_true(wb_next(loader, &batch));
    wb_free(loader); /* teardown closes its own scope, not the turn's */
}

static void a_scope_opened_after_a_break_is_respected(void **state) {
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(0, 6, 0), .batchsize = 2, .background = !alone);
    wb_batch batch = {0};
    assert_true(wb_next(loader, &batch));
    wb_scope_open();
    wb_array *mine = counting(0, 3, 0);
    batch = (wb_batch){0};
    assert_true(wb_next(loader, &batch));
    assert_counting(mine, 3, 0);
    assert_int_equal(wb_batch_end(&batch), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK); /* the turn's, left open by the break */
    wb_free(loader);
}

static void scopes_left_open_by_the_body_are_closed(void **state) {
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(0, 6, 0), .batchsize = 2, .background = !alone);
    const wb_live_counts before = live_now();
    wb_batch batch = {0};
    while (wb_next(loader, &batch)) {
        wb_scope_open();
        (void)counting(0, 3, 0);
    }
    assert_int_equal(live_now().arrays, before.arrays);
    wb_free(loader);
}

static void an_error_in_the_body_ends_the_loop(void **state) {
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(0, 6, 0), .batchsize = 2, .background = !alone);
    wb_batch batch = {0};
    int turns = 0;
    while (wb_next(loader, &batch)) {
        turns++;
        (void)wb_add(counting(0, 3, 0), counting(0, 4, 0));
    }
    assert_int_equal(turns, 1);
    assert_error(WB_ERROR_SHAPE, "(3)");
    assert_true(wb_next(loader, &batch)); /* and the loader still works */
    assert_int_equal(batch.index, 0);
    assert_int_equal(wb_batch_end(&batch), WB_OK);
    wb_free(loader);
}

static void stale_and_foreign_batches_are_refused(void **state) {
    (void)state;
    wb_loader *a = wb_loader_new(.x = counting(0, 6, 0), .batchsize = 2, .background = !alone);
    wb_loader *b = wb_loader_new(.x = counting(0, 6, 0), .batchsize = 2, .background = !alone);
    wb_batch first = {0}, second = {0};
    assert_true(wb_next(a, &first));
    second = first;
    assert_false(wb_next(b, &second));
    assert_error(WB_ERROR_ARGUMENT, "belongs to another loader");
    assert_null(second.x);
    assert_true(wb_next(a, &second));
    assert_false(wb_next(a, &first));
    assert_error(WB_ERROR_ARGUMENT, "a new one was started");
    assert_int_equal(wb_batch_end(&second), WB_OK);
    wb_free(a), wb_free(b);
}

static void loaders_nest(void **state) {
    (void)state;
    wb_loader *outer = wb_loader_new(.x = counting(0, 6, 0), .batchsize = 2, .background = !alone);
    wb_loader *inner = wb_loader_new(.x = counting(0, 4, 10), .batchsize = 3, .background = !alone);
    wb_batch a = {0};
    int turns = 0;
    while (wb_next(outer, &a)) {
        wb_batch b = {0};
        while (wb_next(inner, &b)) turns++;
        assert_counting(a.x, 2, 2 * (int)a.index);
    }
    assert_int_equal(turns, 6);
    wb_free(outer), wb_free(inner);
}

static void a_kept_array_outlives_its_turn(void **state) {
    (void)state;
    wb_loader *loader =
        wb_loader_new(.x = counting(0, 40, 0), .batchsize = 2, .background = !alone);
    wb_array *kept = NULL;
    wb_batch batch = {0};
    while (wb_next(loader, &batch))
        if (batch.index == 1) kept = wb_keep(batch.x);
    wb_free(loader);
    assert_counting(kept, 2, 2);
    wb_free(kept);
}

/* A device that keeps graphs of its work by their addresses then makes few. */
static void batches_come_from_few_places(void **state) {
    (void)state;
    enum { EPOCHS = 3, MOST = WB_PREFETCH_SLOTS + 1 };
    const void *places[MOST] = {NULL};
    int count = 0;
    wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(100, 50, 0)), .batchsize = 4,
                                      .device = wb_default_device(), .background = !alone);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        wb_array *other = wb_copy(wb_iota(WB_I32, 0, 100, 4)); /* of their size, in between */
        assert_int_equal(wb_eval(other), WB_OK);
        for (wb_batch batch = {0}; wb_next(loader, &batch);) {
            const void *at = batch.x->buffer->handle;
            int i = 0;
            while (i < count && places[i] != at) i++;
            if (i == MOST) fail_msg("epoch %d, batch %d: a fifth place", epoch, (int)batch.index);
            places[i] = at, count = i == count ? count + 1 : count;
        }
    }
    wb_free(loader);
}

static void what_is_kept_of_batches_is_not_written_over(void **state) {
    (void)state;
    enum { BATCHES = 20 };
    wb_array *kept[2 * BATCHES];
    wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(0, 2 * BATCHES, 0)), .batchsize = 2,
                                      .device = wb_default_device(), .background = !alone);
    for (int epoch = 0; epoch < 2; epoch++)
        for (wb_batch batch = {0}; wb_next(loader, &batch);)
            kept[epoch * BATCHES + batch.index] = wb_keep(batch.x);
    wb_free(loader);
    for (int i = 0; i < 2 * BATCHES; i++) {
        assert_counting(kept[i], 2, 2 * (i % BATCHES));
        wb_free(kept[i]);
    }
}

static void first_leaves_the_epoch_alone(void **state) {
    (void)state;
    wb_loader *loader = wb_loader_new(.x = counting(2, 50, 0), .batchsize = 4, .shuffle = true,
                                      .seed = 3, .background = !alone);
    wb_batch first, batch = {0};
    assert_true(wb_first(loader, &first));
    assert_int_equal(wb_size(first.x, 1), 4);
    assert_true(wb_next(loader, &batch));
    assert_true(wb_approx(first.x, batch.x, 0, 0, NULL, 0));
    assert_true(wb_first(loader, &first)); /* of the next epoch, in the middle of this one */
    assert_true(wb_next(loader, &batch));
    assert_int_equal(batch.index, 1);
    assert_int_equal(wb_batch_end(&batch), WB_OK);
    wb_free(loader);
}

static void views_are_data_too(void **state) {
    (void)state;
    wb_array *x = counting(3, 4, 0), *parts[2];
    wb_loader *turned = wb_loader_new(.x = wb_transpose(x), .batchsize = 2,
                                      .background = !alone); /* rows 0 3 6 9, 1 4 7 10 */
    wb_batch batch = {0};
    assert_true(wb_next(turned, &batch));
    const double wanted[8] = {0, 3, 6, 9, 1, 4, 7, 10};
    double seen[8];
    assert_int_equal(wb_read_f64(batch.x, seen, 8), WB_OK);
    assert_memory_equal(seen, wanted, sizeof seen);
    assert_int_equal(wb_batch_end(&batch), WB_OK);

    assert_int_equal(wb_splitobs(x, parts, 0.25), WB_OK);
    wb_loader *rest = wb_loader_new(.x = parts[1], .y = wb_slice(counting(0, 6, 20), 0, 5, 2, -1),
                                    .batchsize = 3, .background = !alone);
    assert_true(wb_next(rest, &batch));
    assert_counting(batch.x, 9, 3);
    assert_true(wb_at(batch.y, 0) == 25 && wb_at(batch.y, 2) == 23);
    assert_int_equal(wb_batch_end(&batch), WB_OK);
    wb_free(turned), wb_free(rest);
}

static void to_float(wb_batch *batch, void *user) {
    batch->x = wb_mul_number(wb_cast(batch->x, WB_F32), *(double *)user);
}

static void map_changes_batches(void **state) {
    (void)state;
    double scale = 0.5;
    wb_loader *loader = wb_loader_new(.x = counting(0, 6, 0), .batchsize = 4, .map = to_float,
                                      .user = &scale, .background = !alone);
    wb_batch batch = {0};
    while (wb_next(loader, &batch)) {
        assert_int_equal(wb_dtype_of(batch.x), WB_F32);
        assert_true(wb_at(batch.x, 1) == 0.5 * (4 * (double)batch.index + 1));
    }
    wb_free(loader);
}

static wb_status spoil_batch_three(const wb_batch_memory *batch, void *user) {
    (void)user;
    usleep(300);
    int32_t *x = batch->data[0];
    for (int64_t i = 0; i < batch->size; i++) x[i] += 1000 + (int32_t)batch->order[i];
    return batch->index == 3 ? WB_ERROR_NUMBER : WB_OK;
}

static void errors_of_the_thread_come_with_their_batch(void **state) {
    (void)state;
    wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(0, 20, 0)), .batchsize = 2,
                                      .prepare = spoil_batch_three, .background = !alone);
    for (int epoch = 0; epoch < 2; epoch++) {
        wb_batch batch = {0};
        int turns = 0;
        for (; wb_next(loader, &batch); turns++)
            assert_true(wb_at(batch.x, 1) == 1000 + 2 * (2 * turns + 1));
        assert_int_equal(turns, 3);
        assert_error(WB_ERROR_NUMBER, epoch ? "loader: batch 3 of epoch 1: not a finite number"
                                            : "batch 3 of epoch 0");
    }
    wb_free(loader);
}

static wb_status fail_in_the_library(const wb_batch_memory *batch, void *user) {
    (void)batch, (void)user;
    (void)wb_scalar(WB_F32, 1);
    return wb_add(NULL, NULL) ? WB_OK : wb_error_status();
}

static void messages_cross_from_thread_to_thread(void **state) {
    (void)state;
    wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(0, 4, 0)),
                                      .prepare = fail_in_the_library, .background = !alone);
    wb_batch batch = {0};
    assert_false(wb_next(loader, &batch));
    assert_error(WB_ERROR_ARGUMENT, "batch 0 of epoch 0: ");
    assert_false(wb_first(loader, &batch));
    assert_error(WB_ERROR_ARGUMENT, "batch 0 of epoch 1: ");
    wb_free(loader);
}

static wb_status slowly(const wb_batch_memory *batch, void *user) {
    (void)batch, (void)user;
    usleep(2000);
    return WB_OK;
}

static void a_loader_is_freed_at_any_time(void **state) {
    (void)state;
    for (int turns = 0; turns < 6; turns++) {
        wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(2, 30, 0)), .batchsize = 2,
                                          .prepare = slowly, .background = !alone);
        wb_batch batch = {0};
        for (int i = 0; i < turns; i++) assert_true(wb_next(loader, &batch));
        wb_free(loader);
    }
}

static void abandoned_epochs_leave_no_trace(void **state) {
    (void)state;
    wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(2, 30, 0)), .batchsize = 2,
                                      .shuffle = true, .prepare = slowly, .background = !alone);
    for (int epoch = 0; epoch < 4; epoch++) {
        wb_batch batch = {0};
        for (int i = 0; i <= epoch; i++) assert_true(wb_next(loader, &batch));
        assert_int_equal(wb_batch_end(&batch), WB_OK);
    }
    int32_t seen[30];
    read_epoch(loader, seen);
    int sum = 0;
    for (int i = 0; i < 30; i++) sum += seen[i] / 2;
    assert_int_equal(sum, 29 * 30 / 2);
    wb_free(loader);
}

/* What one array costs: nothing, except where each is taken from malloc (sanitizer builds). */
static int64_t allocations_per_array(void) {
    wb_scope_open();
    static const int32_t numbers[4];
    const int64_t before = wb_allocation_count();
    (void)wb_borrow(WB_I32, numbers, NULL, NULL, 4);
    const int64_t count = wb_allocation_count() - before;
    (void)wb_scope_close();
    return count;
}

/* Where released nodes rest, as many as may: from now on each that is released makes one free
 * again. */
static void fill_quarantine(void) {
    static const int32_t number;
    wb_scope_open();
    for (int i = 0; i <= WB_QUARANTINE; i++) (void)wb_borrow(WB_I32, &number, NULL, NULL, 1);
    (void)wb_scope_close();
}

static void batches_need_no_allocation_after_the_first_epoch(void **state) {
    (void)state;
    int32_t seen[50];
    wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(100, 50, 0)), .batchsize = 4,
                                      .shuffle = true, .background = !alone);
    fill_quarantine();
    for (int epoch = 0; epoch < 2; epoch++) read_epoch(loader, seen);
    const int64_t expected = 5 * wb_loader_length(loader) * allocations_per_array();
    const int64_t before = wb_allocation_count();
    for (int epoch = 0; epoch < 5; epoch++) read_epoch(loader, seen);
    assert_int_equal(wb_allocation_count() - before, expected);
    wb_free(loader);
}

/* The batch that is prepared after the failure has no memory. */
static void an_epoch_after_one_without_memory_is_whole(void **state) {
    (void)state;
    int32_t seen[40];
    wb_loader *loader = wb_loader_new(.x = wb_cpu(counting(1000, 40, 0)), .background = !alone);
    wb_array *kept[4];
    wb_batch batch = {0};
    for (int i = 0; i < 4; i++) {
        assert_true(wb_next(loader, &batch));
        kept[i] = wb_keep(batch.x);
    }
    wb_memory_limit(wb_cpu_device(), 1);
    assert_false(wb_next(loader, &batch));
    assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
    (void)usleep(20000); /* in which the thread comes to it */
    assert_false(wb_next(loader, &batch));
    assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
    wb_memory_limit(wb_cpu_device(), 0);
    for (int i = 0; i < 4; i++) wb_free(kept[i]);
    read_epoch(loader, seen);
    for (int i = 0; i < 40; i++) assert_int_equal(seen[i], 1000 * i);
    wb_free(loader);
}

static void every_failed_allocation_is_an_error_without_a_leak(void **state) {
    (void)state;
    wb_array *x = counting(2, 20, 0), *y = wb_transpose(counting(20, 3, 0));
    bool passed = false;
    for (int64_t n = 1; !passed; n++) {
        assert_true(n < 1000);
        const wb_live_counts before = live_now();
        wb_memory_reclaim(wb_cpu_device());
        (void)wb_fail_allocation(n);
        wb_scope_open();
        wb_loader *loader = wb_loader_new(.x = x, .y = y, .batchsize = 8, .background = !alone);
        wb_batch batch = {0};
        int turns = 0;
        while (loader && wb_next(loader, &batch)) turns++;
        if (loader) (void)wb_first(loader, &batch);
        wb_free(loader);
        (void)wb_fail_allocation(0);
        passed = !wb_failed();
        if (!passed)
            assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        else
            assert_int_equal(turns, 3);
        (void)wb_scope_close();
        wb_clear_error();
        const wb_live_counts after = live_now();
        assert_int_equal(after.buffers, before.buffers);
        assert_int_equal(after.objects, before.objects);
        assert_int_equal(after.arrays, before.arrays);
    }
}

static int with_thread(void **state) {
    (void)state;
    alone = false;
    return 0;
}

static int without_thread(void **state) {
    (void)state;
    alone = true;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_matrix_comes_in_columns),
        TEST(a_partial_batch_is_dropped_where_asked),
        TEST(the_default_batch_is_one_observation),
        TEST(further_arrays_are_found_by_name),
        TEST(names_mean_one_array),
        TEST(a_dictionary_and_a_range),
        TEST(observations_of_a_batch),
        TEST(shuffled_epochs_differ_and_repeat_by_seed),
        TEST(the_order_is_the_same_on_every_machine),
        TEST(unequal_lengths_are_refused),
        TEST(bad_descriptions_are_refused),
        TEST(a_break_is_followed_by_the_beginning),
        TEST(freeing_a_loader_closes_the_turn_left_open),
        TEST(a_scope_opened_after_a_break_is_respected),
        TEST(scopes_left_open_by_the_body_are_closed),
        TEST(an_error_in_the_body_ends_the_loop),
        TEST(stale_and_foreign_batches_are_refused),
        TEST(loaders_nest),
        TEST(a_kept_array_outlives_its_turn),
        TEST(batches_come_from_few_places),
        TEST(what_is_kept_of_batches_is_not_written_over),
        TEST(first_leaves_the_epoch_alone),
        TEST(views_are_data_too),
        TEST(map_changes_batches),
        TEST(errors_of_the_thread_come_with_their_batch),
        TEST(messages_cross_from_thread_to_thread),
        TEST(a_loader_is_freed_at_any_time),
        TEST(abandoned_epochs_leave_no_trace),
        TEST(a_turn_whose_scope_is_left_goes_on),
        TEST(batches_need_no_allocation_after_the_first_epoch),
        TEST(an_epoch_after_one_without_memory_is_whole),
        TEST(every_failed_allocation_is_an_error_without_a_leak),
    };
    const int failed = cmocka_run_group_tests_name("loader", tests, with_thread, NULL);
    return failed +
           cmocka_run_group_tests_name("loader without a thread", tests, without_thread, NULL);
}
