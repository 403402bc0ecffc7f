/* src/data/getobs.c: loaders over a function. */
#include <time.h>

#include <weber/data.h>
#include <weber/device.h>

#include "support/support.h"

enum { COUNT = 23, WIDE = 3 };

typedef struct origin {
    int64_t fails_at;
    uint64_t seeds[COUNT];
    int64_t calls, arrays;
    bool is_alone;
} origin;

/* Later places are ready first. */
static wb_status give(const wb_observation *o, void *user) {
    origin *from = user;
    float *x = o->data[0];
    int32_t *y = o->data[1];
    const struct timespec pause = {.tv_nsec = (COUNT - o->place) * 20000};
    (void)nanosleep(&pause, NULL);
    (void)__atomic_fetch_add(&from->calls, 1, __ATOMIC_RELAXED);
    if (from->fails_at == o->place) return WB_ERROR_IO;
    from->seeds[o->place] = o->seed;
    for (int i = 0; i < WIDE - 1; i++) x[i] = (float)(10 * o->place + i);
    y[0] = (int32_t)o->place;
    return WB_OK;
}

static wb_loader *loader_of(origin *from, int threads, bool shuffle) {
    return wb_loader_new(.x = wb_full(WB_F32, 7, WIDE, 1), .y = wb_zeros(WB_I32, 1),
                         .numobs = COUNT, .getobs = give, .user = from, .threads = threads,
                         .batchsize = 5, .shuffle = shuffle, .seed = 4);
}

static void the_same_batches_for_any_number_of_threads(void **state) {
    (void)state;
    wb_array *seen[3][5];
    uint64_t seeds[2][COUNT];
    const int threads[] = {0, 1, 4};
    for (int t = 0; t < 3; t++) {
        origin from = {.fails_at = -1};
        wb_loader *data = loader_of(&from, threads[t], true);
        assert_int_equal(wb_loader_length(data), 5);
        wb_batch batch = {0};
        int count = 0;
        while (wb_next(data, &batch)) {
            for (int64_t i = 0; i < batch.size; i++) {
                const double place = wb_at(batch.y, i);
                assert_float_equal(wb_at(batch.x, 1, i), (float)(10 * place + 1), 0);
                assert_float_equal(wb_at(batch.x, WIDE - 1, i), 7, 0); /* was not written */
            }
            seen[t][count++] = wb_keep(wb_copy(batch.y));
        }
        assert_int_equal(count, 5);
        assert_int_equal(from.calls, COUNT);
        if (t < 2) memcpy(seeds[t], from.seeds, sizeof from.seeds);
        wb_free(data);
    }
    for (int i = 0; i < 5; i++) {
        for (int t = 1; t < 3; t++) assert_same_bits(seen[0][i], seen[t][i], "a batch");
        for (int t = 0; t < 3; t++) wb_free(seen[t][i]);
    }
    assert_memory_equal(seeds[0], seeds[1], sizeof seeds[0]);
    assert_true(seeds[0][0] != seeds[0][1]);
}

static void a_failure_names_the_observation(void **state) {
    (void)state;
    origin from = {.fails_at = 7};
    wb_loader *data = loader_of(&from, 3, false);
    wb_batch batch = {0};
    assert_true(wb_next(data, &batch));
    assert_false(wb_next(data, &batch));
    assert_error(WB_ERROR_IO, "loader: batch 1 of epoch 0: observation 7:");
    wb_free(data);
}

static void turn_sign(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_neg(batch->x);
}

static void loaders_are_made_of_them(void **state) {
    (void)state;
    origin from = {.fails_at = -1};
    wb_loader *data = loader_of(&from, 2, false), *other = wb_mapobs(turn_sign, NULL, data);
    wb_batch batch;
    assert_true(wb_first(other, &batch));
    assert_float_equal(wb_at(batch.x, 0, 3), -30, 0);
    assert_int_equal(wb_size(batch.x, 1), 5);
    wb_free(other);
    wb_free(data);
}

/* What the function draws is the observation's own, and the user's generator is as before. */
static wb_status draw(const wb_observation *o, void *user) {
    origin *from = user;
    float *x = o->data[0];
    const int64_t arrays = wb_live().arrays;
    if (from->calls++ == 0) from->arrays = arrays;
    if (from->is_alone && arrays != from->arrays) return WB_ERROR_MEMORY; /* of calls before */
    x[0] = (float)wb_item(wb_uniform(WB_F32, 1));
    return WB_OK;
}

static void draws_are_the_observations_own(void **state) {
    (void)state;
    wb_array *seen[2];
    for (int t = 0; t < 2; t++) {
        origin from = {.fails_at = -1, .is_alone = t == 1};
        wb_seed(t == 0 ? 1 : 2);
        wb_array *expected = wb_uniform(WB_F32, 1);
        wb_eval(expected);
        wb_seed(t == 0 ? 1 : 2);
        wb_loader *data =
            wb_loader_new(.x = wb_zeros(WB_F32, 1), .numobs = COUNT, .getobs = draw, .user = &from,
                          .threads = 1, .batchsize = COUNT, .background = t != 1);
        wb_batch batch = {0};
        assert_true(wb_next(data, &batch));
        assert_int_equal(from.calls, COUNT);
        seen[t] = wb_keep(wb_copy(batch.x));
        assert_false(wb_next(data, &batch));
        wb_array *drawn = wb_uniform(WB_F32, 1);
        assert_same_bits(drawn, expected, "the user's next number");
        wb_free(data);
    }
    assert_same_bits(seen[0], seen[1], "what was drawn");
    assert_true(wb_at(seen[0], 0) != wb_at(seen[0], 1));
    for (int t = 0; t < 2; t++) wb_free(seen[t]);
}

static void mistakes_are_named(void **state) {
    (void)state;
    origin from = {.fails_at = -1};
    wb_array *x = wb_zeros(WB_F32, 3, 1);
    assert_null(wb_loader_new(.x = x, .getobs = give, .user = &from));
    assert_error(WB_ERROR_ARGUMENT, "getobs needs .numobs of at least 1, got 0");
    assert_null(wb_loader_new(.x = x, .numobs = 3));
    assert_error(WB_ERROR_ARGUMENT,
                 "loader: .numobs needs .getobs or .observe, and .threads needs .getobs");
    assert_null(wb_loader_new(.x = x, .getobs = give, .numobs = 3, .threads = 65));
    assert_error(WB_ERROR_ARGUMENT, "loader: .threads must be from 0 to 64, got 65");
    assert_null(wb_loader_new(.x = wb_zeros(WB_F32, 3, 2), .getobs = give, .numobs = 3));
    assert_error(WB_ERROR_SHAPE, "with getobs x must be one observation, (..., 1), got (3, 2)");
    const wb_device *there = wb_get_device("checked", 1);
    wb_array *wide = wb_zeros(WB_F64, 3, 1);
    assert_null(wb_loader_new(.x = wide, .getobs = give, .numobs = 3, .device = there));
    assert_error(WB_ERROR_DTYPE, "with getobs x must have the type that it has on");
    wb_array *whole = wb_to(wb_cpu_device(), wb_zeros(WB_F64, 3, 3));
    assert_null(wb_loader_new(.x = whole, .getobs = give, .numobs = 3, .device = there));
    assert_error(WB_ERROR_DTYPE, "expected f32, got f64");
    wb_array *moved = wb_to(there, wide, WB_ELTYPE_PRESERVE);
    assert_null(wb_loader_new(.x = moved, .getobs = give, .numobs = 3));
    assert_error(WB_ERROR_DTYPE, "expected f32, got f64");
    assert_null(wb_loader_new(.x = wb_number(1), .getobs = give, .numobs = 3));
    assert_error(WB_ERROR_SHAPE, "with getobs x must be one observation");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_same_batches_for_any_number_of_threads), TEST(a_failure_names_the_observation),
        TEST(loaders_are_made_of_them), TEST(draws_are_the_observations_own),
        TEST(mistakes_are_named)};
    return cmocka_run_group_tests_name("data/test_getobs", tests, NULL, NULL);
}
