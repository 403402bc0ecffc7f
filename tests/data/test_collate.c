/* src/data/collate.c: observations of any size. */
#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

enum { COUNT = 7 };

/* Observation i: x of i + 1 numbers i, y the number 10 i. */
static wb_status text(int64_t place, wb_array **arrays, void *user) {
    (void)user;
    arrays[0] = wb_full(WB_F32, (double)place, place + 1);
    arrays[1] = wb_scalar(WB_I32, 10 * (double)place);
    return WB_OK;
}

static wb_status pad(wb_batch *batch, wb_array *const *const *lists, void *user) {
    (void)user;
    if (lists[2]) return WB_ERROR_ARGUMENT;
    batch->x = wb_batchseq((int)batch->size, lists[0], -1);
    batch->y = wb_stack_make(-1, (int)batch->size, lists[1]);
    return WB_OK;
}

static wb_status pair(int64_t place, wb_array **arrays, void *user) {
    (void)user;
    arrays[0] = wb_full(WB_F32, (double)place, 2, 3);
    arrays[2] = wb_scalar(WB_F32, (double)place);
    return WB_OK;
}

static void sequences_are_padded(void **state) {
    (void)state;
    wb_loader *data =
        wb_loader_new(.numobs = COUNT, .observe = text, .collate = pad, .batchsize = 3);
    assert_int_equal(wb_loader_length(data), 3);
    wb_batch batch = {0};
    assert_true(wb_next(data, &batch));
    assert_values(batch.x, 0, 0, -1, -1, 1, 1, -1, 2, 2, 2);
    assert_sizes(batch.x, 3, 3);
    assert_values(batch.y, 0, 0, 10, 20);
    assert_ptr_equal(wb_batch_get(&batch, "x"), batch.x);
    assert_ptr_equal(wb_batch_get(&batch, "y"), batch.y);
    assert_true(wb_next(data, &batch));
    assert_sizes(batch.x, 6, 3);
    assert_true(wb_next(data, &batch));
    assert_sizes(batch.x, 7, 1);
    assert_int_equal(batch.size, 1);
    assert_false(wb_next(data, &batch));
    wb_free(data);
}

static void orders_are_those_of_other_loaders(void **state) {
    (void)state;
    wb_loader *data = wb_loader_new(.numobs = COUNT, .observe = text, .collate = pad,
                                    .batchsize = 2, .shuffle = true, .seed = 5);
    wb_loader *plain =
        wb_loader_new(.x = wb_iota(WB_I32, 0, COUNT), .batchsize = 2, .shuffle = true, .seed = 5);
    wb_batch a = {0}, b = {0};
    for (int i = 0; i < 4; i++) {
        assert_true(wb_next(data, &a) && wb_next(plain, &b));
        const int64_t count = a.size;
        int32_t ys[2], xs[2];
        assert_int_equal(wb_read(a.y, ys, (size_t)count * sizeof *ys), WB_OK);
        assert_int_equal(wb_read(b.x, xs, (size_t)count * sizeof *xs), WB_OK);
        for (int64_t k = 0; k < count; k++) assert_int_equal(ys[k], 10 * xs[k]);
    }
    assert_true(wb_batch_end(&a) == WB_OK && wb_batch_end(&b) == WB_OK);
    wb_free(data), wb_free(plain);
}

static void without_collate_they_are_stacked(void **state) {
    (void)state;
    wb_loader *data = wb_loader_new(.numobs = COUNT, .observe = pair, .batchsize = 4);
    wb_batch batch = {0};
    assert_true(wb_first(data, &batch));
    assert_sizes(batch.x, 2, 3, 4);
    assert_null(batch.y);
    assert_values(batch.more[0], 0, 0, 1, 2, 3);
    wb_free(data);
    data = wb_loader_new(.numobs = COUNT, .observe = text, .batchsize = 2);
    batch = (wb_batch){0};
    assert_false(wb_next(data, &batch));
    assert_error(WB_ERROR_SHAPE, "without .collate the observations of a batch must have one size, "
                                 "but array 0 has (1) and (2)");
    wb_free(data);
}

static void half(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_mul_number(batch->x, 0.5);
}

static void maps_come_behind_it(void **state) {
    (void)state;
    wb_loader *data = wb_loader_new(.numobs = COUNT, .observe = text, .collate = pad,
                                    .batchsize = 2, .map = half);
    wb_loader *quarter = wb_mapobs(half, NULL, data);
    wb_batch batch = {0};
    assert_true(wb_first(quarter, &batch));
    assert_values(batch.x, 0, 0, -.25, .25, .25);
    wb_loader *there = wb_loader_to(wb_get_device(), quarter);
    assert_true(wb_first(there, &batch));
    assert_values(batch.x, 0, 0, -.25, .25, .25);
    wb_free(data), wb_free(quarter), wb_free(there);
}

static wb_status bad(int64_t place, wb_array **arrays, void *user) {
    const int how = *(const int *)user;
    arrays[0] = wb_ones(WB_F32, 2);
    if (place == 1 && how == 0) return WB_ERROR_IO;
    if (place == 1 && how == 1) arrays[0] = NULL;
    if (how == 5) arrays[0] = NULL, arrays[1] = wb_ones(WB_F32, 2);
    if (place == 1 && how == 2) arrays[0] = wb_add(wb_ones(WB_F32, 2), wb_ones(WB_F32, 3));
    return WB_OK;
}

static wb_status nothing(wb_batch *batch, wb_array *const *const *lists, void *user) {
    (void)batch, (void)lists;
    return *(const int *)user == 3 ? WB_OK : WB_ERROR_UNSUPPORTED;
}

static void mistakes_are_named(void **state) {
    (void)state;
    const struct {
        int how;
        wb_collate_fn *collate;
        wb_status status;
        const char *message;
    } rows[] = {
        {0, NULL, WB_ERROR_IO, "loader: observation 1: "},
        {1, NULL, WB_ERROR_ARGUMENT, "observation 1 lacks array 0, but the first of its batch has"},
        {2, NULL, WB_ERROR_SHAPE, "loader: observation 1: add: sizes (2) and (3)"},
        {3, nothing, WB_ERROR_ARGUMENT, "loader: collate must set the batch's x"},
        {4, nothing, WB_ERROR_UNSUPPORTED, "loader: collate: "},
        {5, NULL, WB_ERROR_ARGUMENT, "without .collate, observe must set arrays[0], the batch's x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int how = rows[i].how;
        wb_loader *data = wb_loader_new(.numobs = 3, .observe = bad, .collate = rows[i].collate,
                                        .user = &how, .batchsize = 2);
        wb_batch batch = {0};
        assert_false(wb_next(data, &batch));
        assert_error(rows[i].status, rows[i].message);
        wb_free(data);
    }
    assert_null(wb_loader_new(.observe = text));
    assert_error(WB_ERROR_ARGUMENT, "observe needs .numobs of at least 1, got 0");
    assert_null(wb_loader_new(.numobs = 2, .observe = text, .y = wb_ones(WB_F32, 2)));
    assert_error(WB_ERROR_ARGUMENT, "observe makes all arrays, so y must not be given");
    assert_null(wb_loader_new(.numobs = 2, .observe = text, .x = wb_ones(WB_F32, 2)));
    assert_error(WB_ERROR_ARGUMENT, "observe makes all arrays, so x must not be given");
    assert_null(wb_loader_new(.x = wb_ones(WB_F32, 2), .collate = pad));
    assert_error(WB_ERROR_ARGUMENT, "loader: collate needs .observe");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(sequences_are_padded),
        TEST(orders_are_those_of_other_loaders),
        TEST(without_collate_they_are_stacked),
        TEST(maps_come_behind_it),
        TEST(mistakes_are_named),
    };
    return cmocka_run_group_tests_name("data/test_collate", tests, NULL, NULL);
}
