/* The checked backend, driven through its table: what it does as a device does, and each misuse of
 * memory that it finds. */
#include "calls.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_QUEUED = 512 };

/* ---- a device ---- */

static void there_are_two_devices(void **state) {
    (void)state;
    char reason[64] = "";
    assert_true(checked->load(reason, sizeof reason));
    assert_int_equal(checked->count(reason, sizeof reason), 2);
    wb_device_info info;
    assert_int_equal(checked->info(1, &info), WB_OK);
    assert_false(info.is_host_memory);
    assert_false(info.is_gpu);
    assert_true(info.has_f64);
    assert_int_equal(checked->info(2, &info), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "no device 2; there are 0 .. 1");
    assert_null(checked->open(-1));
    assert_error(WB_ERROR_ARGUMENT, "no device -1");
}

static void new_memory_is_nan(void **state) {
    (void)state;
    void *x = new_memory();
    static float found[N];
    assert_int_equal(download(NULL, found, x), WB_OK);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_nan(found);
    drop(x);
}

static void a_program_runs(void **state) {
    (void)state;
    assert_program_runs();
}

static void an_upload_reads_at_the_sync(void **state) {
    (void)state;
    void *x = new_memory();
    static float given[N], found[N];
    assert_int_equal(upload(NULL, x, given), WB_OK);
    memcpy(given, numbers, sizeof given); /* too early */
    assert_int_equal(download(NULL, found, x), WB_OK);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_numbers(found, 1);
    drop(x);
}

static void a_full_queue_is_done(void **state) {
    (void)state;
    void *x = new_memory();
    static float found[N];
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    assert_int_equal(download(NULL, found, x), WB_OK);
    for (int i = 0; i < MOST_QUEUED - 2; i++) assert_int_equal(run_scale(NULL, x, x, 1), WB_OK);
    assert_nan(found);
    assert_int_equal(run_scale(NULL, x, x, 1), WB_OK);
    assert_numbers(found, 1);
    assert_int_equal(sync_queue(NULL), WB_OK);
    drop(x);
}

static void offsets_count(void **state) {
    (void)state;
    void *x = new_memory(), *y = new_memory();
    static float given[N], found[N];
    memcpy(given, numbers, sizeof given);
    assert_int_equal(upload(NULL, x, given), WB_OK);
    assert_int_equal(
        checked->copy(device, NULL, WB_COPY_LOCAL, (wb_memory){y, 4}, (wb_memory){x, 8}, BYTES - 8),
        WB_OK);
    assert_int_equal(download(NULL, found, y), WB_OK);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_true(isnan(found[0]) && isnan(found[N - 1]));
    for (int i = 1; i < N - 1; i++) assert_number(found[i], numbers[i + 1]);
    drop(x), drop(y);
}

/* ---- memory that is none ---- */

static void touched(int number) {
    (void)number;
    _exit(42);
}

static void a_handle_cannot_be_touched(void **state) {
    (void)state;
    void *x = new_memory();
    const pid_t child = fork();
    if (child == 0) {
        (void)signal(SIGSEGV, touched);
        (void)signal(SIGBUS, touched);
        _exit(*(volatile char *)x);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    drop(x);
}

static void use_after_free_is_named(void **state) {
    (void)state;
    void *x = new_memory(), *y = new_memory();
    static float found[N];
    assert_int_equal(run_scale(NULL, y, x, 1), WB_OK);
    drop(x);
    assert_int_equal(run(NULL, scale, "add relu", (void *[]){x, y, NULL}, 1), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "checked(0): add relu: argument 0 is memory ");
    assert_int_equal(run_scale(NULL, x, y, 1), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "scale: argument 1 is memory ");
    assert_int_equal(download(NULL, found, x), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, ", after scale");
    assert_int_equal(upload(NULL, x, numbers), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "upload: the destination is memory ");
    assert_int_equal(sync_queue(NULL), WB_OK); /* nothing of it was queued */
    drop(y);
}

static void what_was_queued_before_may_use_it(void **state) {
    (void)state;
    void *x = new_memory(), *y = new_memory();
    static float found[N];
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    assert_int_equal(run_scale(NULL, y, x, 3), WB_OK);
    drop(x);
    assert_int_equal(download(NULL, found, y), WB_OK);
    drop(y);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_numbers(found, 3);
}

static void what_is_no_handle_is_refused(void **state) {
    (void)state;
    void *x = new_memory(), *there = checked->alloc(other, BYTES);
    static float found[N];
    assert_int_equal(download(NULL, found, (char *)x + 4), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "download: the source lies 4 bytes inside memory ");
    assert_int_equal(download(NULL, found, found), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "the source is not memory of a checked device");
    assert_int_equal(download(NULL, found, there), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "(32 bytes) of checked(1)");
    assert_int_equal(upload(NULL, x, x), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "the source must be host memory, but is a handle");
    assert_int_equal(upload(NULL, x, NULL), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "the source must be host memory, but is NULL");
    checked->free(other, there, BYTES);
    drop(x);
}

static void copies_stay_inside(void **state) {
    (void)state;
    void *x = new_memory();
    static float found[N + 1];
    static const struct {
        int64_t offset;
        size_t size;
    } rows[] = {{0, BYTES + 1}, {1, BYTES}, {-1, 4}, {BYTES + 1, 1}, {8, SIZE_MAX - 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(checked->copy(device, NULL, WB_COPY_DOWNLOAD, (wb_memory){found, 0},
                                       (wb_memory){x, rows[i].offset}, rows[i].size),
                         WB_ERROR_DEVICE);
        assert_error(WB_ERROR_DEVICE, ", which has 32");
    }
    drop(x);
}

static void errors_of_free_come_at_the_sync(void **state) {
    (void)state;
    void *x = new_memory();
    drop(x), drop(x);
    assert_false(wb_failed());
    assert_int_equal(sync_queue(NULL), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "free: the handle is memory ");
    void *y = new_memory();
    checked->free(device, y, BYTES - 1);
    assert_int_equal(sync_queue(NULL), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "has 32 bytes, not 31");
    assert_int_equal(sync_queue(NULL), WB_OK);
}

static void memory_that_is_left_is_told_at_the_end(void **state) {
    (void)state;
    void *third = checked->open(0);
    assert_non_null(checked->alloc(third, BYTES));
    checked->close(third);
    assert_error(WB_ERROR_DEVICE, "close: memory was never freed: 1 times");
}

static void ten_thousand_sizes_pass(void **state) {
    (void)state;
    static float found[N];
    char before[1024], after[1024];
    void *first = new_memory();
    drop(first);
    assert_int_equal(download(NULL, found, first), WB_ERROR_DEVICE);
    assert_int_equal(wb_take_error(before, sizeof before), WB_ERROR_DEVICE);
    for (size_t i = 0; i < 10000; i++) {
        void *x = checked->alloc(device, i);
        assert_non_null(x);
        checked->free(device, x, i);
    }
    assert_int_equal(download(NULL, found, first), WB_ERROR_DEVICE);
    assert_int_equal(wb_take_error(after, sizeof after), WB_ERROR_DEVICE);
    assert_string_not_equal(before, after); /* it is forgotten: what is freed does not pile up */
    assert_int_equal(sync_queue(NULL), WB_OK);
}

/* ---- missing syncs ---- */

static void pinned_memory_of_a_pending_copy_is_missed(void **state) {
    (void)state;
    void *x = new_memory();
    float *pinned = checked->alloc_pinned(device, BYTES);
    assert_int_equal((uintptr_t)pinned % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
    assert_nan(pinned);
    assert_int_equal(run_scale(NULL, x, x, 1), WB_OK);
    assert_int_equal(download(NULL, pinned, x), WB_OK);
    checked->free_pinned(device, pinned, BYTES);
    assert_int_equal(sync_queue(NULL), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE,
                 "missing sync: pinned memory (32 bytes) was freed before the download "
                 "of 32 bytes from memory ");
    pinned = checked->alloc_pinned(device, BYTES);
    assert_int_equal(upload(NULL, x, pinned), WB_OK);
    assert_int_equal(sync_queue(NULL), WB_OK);
    checked->free_pinned(device, pinned, BYTES);
    assert_int_equal(sync_queue(NULL), WB_OK);
    drop(x);
}

static void the_host_side_of_a_pending_copy_stays(void **state) {
    (void)state;
    void *x = new_memory(), *y = new_memory();
    static float place[N + 1];
    assert_int_equal(download(NULL, place, x), WB_OK);
    assert_int_equal(download(NULL, place + 1, y), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE,
                 "missing sync: a download of 32 bytes into host memory that the download of 32");
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_int_equal(upload(NULL, x, place), WB_OK);
    assert_int_equal(download(NULL, place, y), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "into host memory that the upload of 32 bytes to memory ");
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_int_equal(download(NULL, place, y), WB_OK);
    assert_int_equal(sync_queue(NULL), WB_OK);
    drop(x), drop(y);
}

static void a_queue_is_freed_after_its_copies(void **state) {
    (void)state;
    void *x = new_memory(), *queue = checked->queue_new(device);
    static float found[N];
    assert_int_equal(download(queue, found, x), WB_OK);
    checked->queue_free(device, queue);
    assert_int_equal(sync_queue(NULL), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE,
                 "missing sync: the queue was freed before the download of 32 bytes");
    assert_int_equal(upload(queue, x, numbers), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "upload: this is not a queue of the device");
    drop(x);
    void *third = checked->open(1), *y = checked->alloc(third, BYTES);
    assert_int_equal(checked->copy(third, NULL, WB_COPY_DOWNLOAD, (wb_memory){found, 0},
                                   (wb_memory){y, 0}, BYTES),
                     WB_OK);
    checked->free(third, y, BYTES);
    checked->close(third);
    assert_error(WB_ERROR_DEVICE, "checked(1): missing sync: the queue was freed");
}

/* ---- without memory ---- */

static bool everything(void) {
    static float found[N];
    void *x = new_memory();
    if (!x) return false;
    void *event = NULL, *queue = checked->queue_new(device), *kernel = new_scale(checked, device);
    const bool good = queue && kernel && upload(queue, x, numbers) == WB_OK &&
                      run(queue, kernel, "scale", (void *[]){x, x, NULL}, 2) == WB_OK &&
                      (event = checked->record(device, queue)) &&
                      checked->wait(device, NULL, event) == WB_OK &&
                      download(NULL, found, x) == WB_OK && sync_queue(NULL) == WB_OK &&
                      sync_queue(queue) == WB_OK;
    if (good) assert_numbers(found, 2);
    if (queue) (void)sync_queue(queue);
    checked->release(kernel);
    checked->release_event(device, event);
    checked->queue_free(device, queue);
    drop(x);
    return good;
}

static void without_memory_nothing_is_lost(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        assert_true(n < 200);
        (void)wb_fail_allocation(n);
        done = everything();
        (void)wb_fail_allocation(0);
        if (done) continue;
        assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        assert_int_equal(sync_queue(NULL), WB_OK);
    }
}

/* ---- hosts with a fault ----
 *
 * A host that doubles numbers on a device, right or with one thing forgotten. All of them are right
 * on the CPU. */

typedef enum fault { NONE, NO_SYNC, KEPT_POINTER, EARLY_REUSE } fault;

static bool doubles(const wb_backend *backend, fault f) {
    void *on = backend->open(0), *kernel = new_scale(backend, on);
    const size_t scratch_bytes = backend->scratch_bytes(kernel);
    void *x = backend->alloc(on, BYTES), *scratch = backend->alloc(on, scratch_bytes);
    float given[N], found[N], seen[N];
    memcpy(given, numbers, sizeof given);
    (void)backend->copy(on, NULL, WB_COPY_UPLOAD, (wb_memory){x, 0}, (wb_memory){given, 0}, BYTES);
    if (f == EARLY_REUSE) memset(given, 0, sizeof given);
    const wb_memory memory[] = {{x, 0}, {scratch, 0}};
    const wb_argument arguments[] = {{0, 0}, {0, 0}, {1, 0}};
    const wb_command command = {
        .kernel = kernel, .narguments = 3, .arguments = arguments, .what = "double"};
    const double factor = 2;
    uint64_t late;
    memcpy(&late, &factor, sizeof late);
    (void)backend->run(on, NULL, &command, 1, memory, &late);
    if (f == KEPT_POINTER) backend->free(on, x, BYTES); /* and goes on with it */
    (void)backend->copy(on, NULL, WB_COPY_DOWNLOAD, (wb_memory){found, 0}, (wb_memory){x, 0},
                        BYTES);
    if (f != NO_SYNC) (void)backend->sync(on, NULL);
    memcpy(seen, found, sizeof seen);
    (void)backend->sync(on, NULL);
    if (f != KEPT_POINTER) backend->free(on, x, BYTES);
    backend->free(on, scratch, scratch_bytes);
    backend->release(kernel);
    backend->close(on);
    bool good = !wb_failed();
    for (int n = 0; n < N; n++) good = good && seen[n] == 2 * numbers[n];
    return good;
}

static void a_sound_host_passes(void **state) {
    (void)state;
    assert_true(doubles(&wb_cpu_backend, NONE));
    assert_true(doubles(checked, NONE));
}

static void a_forgotten_sync_is_found(void **state) {
    (void)state;
    assert_true(doubles(&wb_cpu_backend, NO_SYNC));
    assert_false(doubles(checked, NO_SYNC)); /* NaN */
    assert_false(wb_failed());
}

static void a_kept_pointer_is_found(void **state) {
    (void)state;
    assert_false(doubles(checked, KEPT_POINTER)); /* on the CPU it reads what is freed */
    assert_error(WB_ERROR_DEVICE, "download: the source is memory ");
}

static void an_early_reuse_is_found(void **state) {
    (void)state;
    assert_true(doubles(&wb_cpu_backend, EARLY_REUSE));
    assert_false(doubles(checked, EARLY_REUSE));
    assert_false(wb_failed());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(there_are_two_devices),
        TEST(new_memory_is_nan),
        TEST(a_program_runs),
        TEST(an_upload_reads_at_the_sync),
        TEST(a_full_queue_is_done),
        TEST(offsets_count),
        TEST(a_handle_cannot_be_touched),
        TEST(use_after_free_is_named),
        TEST(what_was_queued_before_may_use_it),
        TEST(what_is_no_handle_is_refused),
        TEST(copies_stay_inside),
        TEST(errors_of_free_come_at_the_sync),
        TEST(memory_that_is_left_is_told_at_the_end),
        TEST(ten_thousand_sizes_pass),
        TEST(pinned_memory_of_a_pending_copy_is_missed),
        TEST(the_host_side_of_a_pending_copy_stays),
        TEST(a_queue_is_freed_after_its_copies),
        TEST(without_memory_nothing_is_lost),
        TEST(a_sound_host_passes),
        TEST(a_forgotten_sync_is_found),
        TEST(a_kept_pointer_is_found),
        TEST(an_early_reuse_is_found),
    };
    return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
