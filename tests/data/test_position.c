/* src/data/position.c: a loader's place in a file, at every batch, whatever the loader is. */
#include <weber.h>

#include "support/files.h"
#include "support/support.h"

enum { POINTS = 11, BATCH = 3, EPOCHS = 2 };

typedef struct row {
    const char *name;
    bool shuffle, drop_partial, no_background;
    const char *device, *data_device; /* where batches go, where the data is; NULL: here */
} row;
static const row rows[] = {
    {.name = "in order"},
    {.name = "shuffled", .shuffle = true},
    {.name = "shuffled, without a thread of its own", .shuffle = true, .no_background = true},
    {.name = "shuffled, full batches only", .shuffle = true, .drop_partial = true},
    {.name = "shuffled, sent to a device", .shuffle = true, .device = "checked"},
    {.name = "shuffled, gathered on a device", .shuffle = true, .data_device = "checked"},
};

static wb_loader *loader_of(const row *r, uint64_t seed) {
    wb_array *x = wb_reshape(wb_iota(WB_F32, 0, POINTS), 1, POINTS);
    if (r->data_device) x = wb_to(wb_get_device(r->data_device, 0), x);
    return wb_loader_new(.x = x, .batchsize = BATCH, .shuffle = r->shuffle, .seed = seed,
                         .drop_partial = r->drop_partial, .background = !r->no_background,
                         .device = r->device ? wb_get_device(r->device, 0) : NULL);
}

/* The observations that came, one after another. */
typedef struct seen {
    float points[EPOCHS * POINTS];
    int count;
} seen;

static void note(seen *s, const wb_batch *batch) {
    const float *x = wb_read_begin(batch->x);
    assert_non_null(x);
    for (int64_t i = 0; i < batch->size; i++) s->points[s->count++] = x[i];
    wb_read_end(batch->x);
}

/* Reads on; after `cut` batches of all epochs it saves the place and leaves the batch as it is. */
static void read_on(wb_loader *loader, seen *s, int cut) {
    for (int64_t epoch = wb_loader_epoch(loader); epoch < EPOCHS; epoch++) {
        wb_batch batch = {0};
        while (wb_next(loader, &batch)) {
            assert_int_equal(batch.epoch, epoch);
            note(s, &batch);
            if (--cut) continue;
            assert_int_equal(wb_save_named(path_of("place.bson"), {"data", loader}), WB_OK);
            return;
        }
        assert_false(wb_failed());
    }
}

static void another_loader_goes_on_there(void **state) {
    const row *r = *state;
    seen whole = {.count = 0};
    wb_loader *loader = loader_of(r, 5);
    read_on(loader, &whole, 0);
    const int batches = EPOCHS * (int)wb_loader_length(loader);
    wb_free(loader);
    for (int cut = 1; cut <= batches; cut++) {
        seen parts = {.count = 0};
        loader = loader_of(r, 5);
        read_on(loader, &parts, cut);
        wb_free(loader);
        loader = loader_of(r, 6);
        assert_int_equal(wb_load_named(path_of("place.bson"), {"data", loader}), WB_OK);
        read_on(loader, &parts, 0);
        wb_free(loader);
        assert_int_equal(parts.count, whole.count);
        assert_memory_equal(parts.points, whole.points, sizeof *whole.points * (size_t)whole.count);
    }
    if (r->device || r->data_device) (void)wb_device_sync(wb_get_device("checked", 0));
}

static void save_and_load(wb_loader *from, wb_loader *to) {
    assert_int_equal(wb_save_named(path_of("place.npz"), {"data", from}), WB_OK);
    assert_int_equal(wb_load_named(path_of("place.npz"), {"data", to}), WB_OK);
}

static void between_epochs_the_next_one_comes(void **state) {
    (void)state;
    wb_loader *loader = loader_of(&rows[1], 5), *other = loader_of(&rows[1], 6);
    wb_batch batch = {0};
    assert_int_equal(wb_loader_epoch(loader), 0);
    save_and_load(loader, other); /* before the first one */
    assert_int_equal(wb_loader_epoch(other), 0);
    while (wb_next(loader, &batch)) assert_int_equal(wb_loader_epoch(loader), 1);
    save_and_load(loader, other);
    assert_int_equal(wb_loader_epoch(other), 1);
    assert_true(wb_next(other, &batch));
    assert_int_equal(batch.epoch, 1);
    assert_int_equal(batch.index, 0);
    assert_int_equal(wb_batch_end(&batch), WB_OK); /* left early: that epoch is over */
    save_and_load(other, loader);
    assert_int_equal(wb_loader_epoch(loader), 2);
    wb_free(loader), wb_free(other);
}

/* Saved in the turn of the last batch, the epoch has still to end. */
static void an_epoch_without_batches_left_still_ends(void **state) {
    (void)state;
    wb_loader *loader = loader_of(&rows[0], 5), *other = loader_of(&rows[0], 5);
    wb_batch batch = {0};
    while (wb_next(loader, &batch))
        if (batch.index == wb_loader_length(loader) - 1) save_and_load(loader, other);
    assert_int_equal(wb_loader_epoch(other), 0);
    assert_false(wb_first(other, &batch));
    assert_error(WB_ERROR_ARGUMENT, "nothing is left of epoch 0");
    assert_false(wb_next(other, &batch));
    assert_false(wb_failed());
    assert_int_equal(wb_loader_epoch(other), 1);
    wb_free(loader), wb_free(other);
}

static void the_first_batch_is_the_one_to_come(void **state) {
    (void)state;
    wb_loader *loader = loader_of(&rows[1], 5), *other = loader_of(&rows[1], 6);
    wb_batch batch = {0}, first, next = {0};
    assert_true(wb_next(loader, &batch));
    save_and_load(loader, other);
    assert_true(wb_first(other, &first));
    assert_true(wb_next(other, &next));
    assert_int_equal(first.index, 1);
    assert_int_equal(next.index, 1);
    assert_same_bits(first.x, next.x, "the batch to come");
    assert_int_equal(wb_batch_end(&next), WB_OK);
    assert_int_equal(wb_batch_end(&batch), WB_OK);
    wb_free(loader), wb_free(other);
}

/* A loader that is in use takes a place, too: its batch is of an epoch that is over. */
static void loading_ends_the_epoch_that_runs(void **state) {
    (void)state;
    wb_loader *loader = loader_of(&rows[1], 5);
    wb_batch batch = {0}, again = {0};
    assert_true(wb_next(loader, &batch));
    assert_int_equal(wb_save_named(path_of("place.npz"), {"data", loader}), WB_OK);
    assert_true(wb_next(loader, &batch));
    assert_int_equal(wb_load_named(path_of("place.npz"), {"data", loader}), WB_OK);
    assert_false(wb_next(loader, &batch));
    assert_error(WB_ERROR_ARGUMENT, "belongs to an epoch that ended");
    assert_true(wb_next(loader, &again));
    assert_int_equal(again.epoch, 0);
    assert_int_equal(again.index, 1);
    assert_int_equal(wb_batch_end(&again), WB_OK);
    wb_free(loader);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(between_epochs_the_next_one_comes),
        TEST(an_epoch_without_batches_left_still_ends),
        TEST(the_first_batch_is_the_one_to_come),
        TEST(loading_ends_the_epoch_that_runs),
    };
    ADD_ROWS(&tests, rows, another_loader_goes_on_there);
    ADD_TESTS(&tests, others);
    return run_test_list("data/test_position", &tests, make_folder, drop_folder);
}
