/* Kernels, queues and devices of the checked backend: what is done when, and what comes of
 * errors. */
#include "calls.h"

#include <pthread.h>

/* ---- kernels ---- */

static void a_kernel_lives_until_its_commands_are_done(void **state) {
    (void)state;
    void *x = new_memory(), *kernel = new_scale(checked, device);
    static float found[N];
    assert_true(checked->scratch_bytes(kernel) <= 1 << 16);
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    assert_int_equal(run(NULL, kernel, "scale", (void *[]){x, x, NULL}, 2), WB_OK);
    checked->release(kernel);
    assert_int_equal(download(NULL, found, x), WB_OK);
    assert_int_equal(run(NULL, kernel, "late scale", (void *[]){x, x, NULL}, 2), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "late scale: its kernel was released, or never made");
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_numbers(found, 2);
    drop(x);
}

/* Two products of 1 by 1, whose offsets end with the kernel. */
static void offsets_of_a_batch_end_with_the_kernel(void **state) {
    (void)state;
    void *x = new_memory(), *y = new_memory();
    int64_t *offsets = malloc(2 * sizeof *offsets);
    offsets[0] = 0, offsets[1] = 1;
    const wb_call call = {.kind = WB_CALL_matmul,
                          .dtype = WB_F32,
                          .matmul = {.m = 1,
                                     .n = 1,
                                     .k = 1,
                                     .lda = 1,
                                     .ldb = 1,
                                     .ldc = 1,
                                     .batch = 2,
                                     .offset_a = offsets,
                                     .offset_b = offsets,
                                     .offset_c = offsets}};
    void *kernel = checked->lower(device, &call, NULL, 0);
    static float found[N];
    assert_true(kernel && checked->scratch_bytes(kernel) <= 1 << 16);
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    assert_int_equal(run(NULL, kernel, "matmul", (void *[]){x, x, y}, 0), WB_OK);
    assert_int_equal(download(NULL, found, y), WB_OK);
    checked->release(kernel);
    free(offsets);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_true(found[0] == 1 && found[1] == 4 && isnan(found[2]));
    drop(x), drop(y);
}

static void a_bad_index_comes_at_the_sync(void **state) {
    (void)state;
    void *x = new_memory(), *y = new_memory(), *index = new_memory();
    const int32_t places[N] = {0, 1, N, 0, 0, 0, 0, 0};
    static float found[N];
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    assert_int_equal(upload(NULL, index, places), WB_OK);
    assert_int_equal(run(NULL, gather, "embedding", (void *[]){x, index, y}, 0), WB_OK);
    assert_int_equal(run_scale(NULL, x, x, 5), WB_OK); /* comes after it, and is done */
    assert_int_equal(download(NULL, found, x), WB_OK);
    assert_false(wb_failed());
    assert_int_equal(sync_queue(NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "embedding: index 8 at place 2 is not in 0 .. 7");
    assert_numbers(found, 5);
    assert_int_equal(sync_queue(NULL), WB_OK);
    drop(x), drop(y), drop(index);
}

static void an_earlier_error_stays(void **state) {
    (void)state;
    void *x = new_memory(), *index = new_memory();
    const int32_t places[N] = {-1};
    assert_int_equal(upload(NULL, index, places), WB_OK);
    assert_int_equal(run(NULL, gather, "gather", (void *[]){x, index, x}, 0), WB_OK);
    (void)(wb_builtin_host.fail)(WB_ERROR_IO, "something else");
    assert_int_equal(sync_queue(NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_IO, "something else");
    drop(x), drop(index);
}

static void the_nth_command_fails(void **state) {
    (void)state;
    void *third = device;
    device = checked->open(0);
    void *x = new_memory();
    static float found[N];
    assert_int_equal(setenv("WEBER_CHECKED_FAIL", "2", 1), 0);
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    assert_int_equal(run(NULL, scale, "first", (void *[]){x, x, NULL}, 1), WB_OK);
    assert_int_equal(run(NULL, scale, "second", (void *[]){x, x, NULL}, 1), WB_OK);
    assert_int_equal(run(NULL, scale, "third", (void *[]){x, x, NULL}, 1), WB_OK);
    assert_int_equal(download(NULL, found, x), WB_OK);
    assert_int_equal(sync_queue(NULL), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "checked(0): second: the device failed");
    assert_nan(found);
    assert_int_equal(run_scale(NULL, x, x, 1), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE,
                 "run: not run, since an earlier command failed: checked(0): second:");
    assert_int_equal(download(NULL, found, x), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "download: not run");
    assert_int_equal(sync_queue(NULL), WB_ERROR_DEVICE);
    wb_clear_error();
    assert_int_equal(unsetenv("WEBER_CHECKED_FAIL"), 0);
    drop(x);
    checked->close(device);
    device = third;
    assert_program_runs(); /* other devices go on */
}

/* ---- queues ---- */

static void a_queue_waits_for_an_event(void **state) {
    (void)state;
    void *first = checked->queue_new(device), *second = checked->queue_new(device);
    void *x = new_memory(), *y = new_memory();
    static float found[N], behind[N];
    assert_int_equal(upload(first, x, numbers), WB_OK);
    void *event = checked->record(device, first);
    assert_int_equal(download(first, behind, x), WB_OK); /* comes after the event */
    assert_int_equal(checked->wait(device, second, event), WB_OK);
    checked->release_event(device, event);
    assert_int_equal(run_scale(second, y, x, 2), WB_OK);
    assert_int_equal(download(second, found, y), WB_OK);
    assert_int_equal(sync_queue(second), WB_OK);
    assert_numbers(found, 2);
    assert_nan(behind);
    assert_int_equal(sync_queue(first), WB_OK);
    assert_numbers(behind, 1);
    assert_int_equal(checked->wait(device, second, event), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "wait: the event was released, or never recorded");
    checked->queue_free(device, first), checked->queue_free(device, second);
    drop(x), drop(y);
}

static void without_the_wait_it_reads_nan(void **state) {
    (void)state;
    void *first = checked->queue_new(device), *x = new_memory();
    static float found[N];
    assert_int_equal(upload(first, x, numbers), WB_OK);
    assert_int_equal(download(NULL, found, x), WB_OK);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_nan(found);
    assert_int_equal(sync_queue(first), WB_OK);
    checked->queue_free(device, first);
    drop(x);
}

static void queues_wait_for_each_other(void **state) {
    (void)state;
    void *queues[] = {checked->queue_new(device), checked->queue_new(device)}, *x = new_memory();
    static float found[N];
    assert_int_equal(upload(queues[0], x, numbers), WB_OK);
    for (int i = 0; i < 100; i++) {
        void *event = checked->record(device, queues[i % 2]);
        assert_int_equal(checked->wait(device, queues[(i + 1) % 2], event), WB_OK);
        assert_int_equal(run_scale(queues[(i + 1) % 2], x, x, i % 2 ? 2 : 0.5), WB_OK);
        checked->release_event(device, event);
    }
    assert_int_equal(download(queues[0], found, x), WB_OK);
    assert_int_equal(sync_queue(queues[0]), WB_OK);
    assert_numbers(found, 1);
    checked->queue_free(device, queues[0]), checked->queue_free(device, queues[1]);
    drop(x);
}

static void devices_copy_to_each_other(void **state) {
    (void)state;
    void *x = new_memory(), *y = checked->alloc(other, BYTES);
    static float found[N];
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    void *event = checked->record(device, NULL);
    assert_int_equal(checked->wait(other, NULL, event), WB_OK);
    assert_int_equal(
        checked->copy_peer(other, NULL, (wb_memory){y, 0}, device, (wb_memory){x, 0}, BYTES),
        WB_OK);
    checked->release_event(device, event);
    drop(x);
    assert_int_equal(checked->copy(other, NULL, WB_COPY_DOWNLOAD, (wb_memory){found, 0},
                                   (wb_memory){y, 0}, BYTES),
                     WB_OK);
    assert_int_equal(checked->sync(other, NULL), WB_OK);
    assert_numbers(found, 1);
    assert_int_equal(
        checked->copy_peer(other, NULL, (wb_memory){y, 0}, device, (wb_memory){y, 0}, BYTES),
        WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "peer copy: the source is memory ");
    checked->free(other, y, BYTES);
}

static void *work_alone(void *faults) {
    void *queue = checked->queue_new(device), *x = new_memory();
    for (int i = 0; i < 50; i++) {
        float found[N];
        bool good = upload(queue, x, numbers) == WB_OK && run_scale(queue, x, x, 2) == WB_OK &&
                    download(queue, found, x) == WB_OK && sync_queue(queue) == WB_OK;
        for (int n = 0; n < N; n++) good = good && found[n] == 2 * numbers[n];
        if (!good) (void)__atomic_add_fetch((int *)faults, 1, __ATOMIC_RELAXED);
    }
    drop(x);
    checked->queue_free(device, queue);
    return NULL;
}

static void threads_have_queues_of_their_own(void **state) {
    (void)state;
    pthread_t threads[4];
    int faults = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_alone, &faults), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(faults, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_kernel_lives_until_its_commands_are_done),
        TEST(offsets_of_a_batch_end_with_the_kernel),
        TEST(a_bad_index_comes_at_the_sync),
        TEST(an_earlier_error_stays),
        TEST(the_nth_command_fails),
        TEST(a_queue_waits_for_an_event),
        TEST(without_the_wait_it_reads_nan),
        TEST(queues_wait_for_each_other),
        TEST(devices_copy_to_each_other),
        TEST(threads_have_queues_of_their_own),
    };
    return cmocka_run_group_tests_name("checked/queues", tests, NULL, NULL);
}
