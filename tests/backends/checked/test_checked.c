/* The checked backend, driven through its table: what it does as a device does, and each misuse that it finds. */
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "device/device.h"

enum { N = 8, BYTES = N * sizeof(float), MOST_QUEUED = 512 };

static const wb_backend *const checked = &wb_checked_backend;

/* ---- one test: both devices, and a kernel for each of two kinds ---- */

static void *device, *other;
static void *scale;  /* y = late x */
static void *gather; /* of single numbers: x, index, y */

static void *new_scale(const wb_backend *backend, void *on) {
    wb_instruction instructions[] = {
        {.code = WB_CODE_load,                 .type = WB_R_F32, .index = 0},
        {                     .code = WB_CODE_late,                    .type = WB_R_F32,       .index = 0          },
        {   .code = WB_CODE_mul,                    .type = WB_R_F32,           .from = WB_R_F32,           .in = {0, 1, WB_NO_VALUE}},
        { .code = WB_CODE_store, .type = WB_R_F32,       .in = {2, WB_NO_VALUE, WB_NO_VALUE},           .index = 1},
    };
    wb_access accesses[] = {
        {.dtype = WB_F32, .argument = 0, .strides = {1}},
        {.dtype = WB_F32, .argument = 1, .strides = {1}}
    };
    const wb_program program = {.ndim = 1,
                                .sizes = {N},
                                .phases = 1,
                                .ninstructions = 4,
                                .naccesses = 2,
                                .narguments = 2,
                                .instructions = instructions,
                                .accesses = accesses};
    return backend->kernel(on, &program);
}

static void *new_gather(void *on) {
    const wb_call call = {
        .kind = WB_CALL_gather,
        .dtype = WB_F32,
        .index = {.inner = 1, .size = N, .outer = 1, .count = N, .index_dtype = WB_I32}
    };
    return checked->lower(on, &call, NULL, 0);
}

/* The pending error has this status, and its message these words; it is taken. */
static void assert_error(wb_status status, const char *words) {
    char text[1024];
    const wb_status found = wb_take_error(text, sizeof text);
    if (!strstr(text, words)) fail_msg("\"%s\" has no \"%s\"", text, words);
    assert_int_equal(found, status);
}

static int setup(void **state) {
    (void)state;
    wb_clear_error();
    device = checked->open(0), other = checked->open(1);
    scale = new_scale(checked, device), gather = new_gather(device);
    return device && other && scale && gather && !wb_failed() ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    checked->release(scale), checked->release(gather);
    checked->close(device), checked->close(other);
    if (wb_failed()) print_error("left behind: %s\n", wb_error_message());
    return wb_failed() ? -1 : 0;
}

/* ---- the calls, shorter ---- */

static void *new_memory(void) { return checked->alloc(device, BYTES); }
static void drop(void *handle) { checked->free(device, handle, BYTES); }

static wb_status upload(void *queue, void *to, const void *from) {
    union {
        const void *from;
        void *to;
    } cast = {.from = from};
    return checked->copy(device, queue, WB_COPY_UPLOAD, (wb_memory){to, 0}, (wb_memory){cast.to, 0},
                         BYTES);
}

static wb_status download(void *queue, void *to, void *from) {
    return checked->copy(device, queue, WB_COPY_DOWNLOAD, (wb_memory){to, 0}, (wb_memory){from, 0},
                         BYTES);
}

/* y = factor x, or with a last argument the gather */
static wb_status run(void *queue, void *kernel, const char *what, void *const handles[3],
                     double factor) {
    void *scratch = checked->alloc(device, 1 << 16);
    const wb_memory memory[] = {
        {handles[0], 0},
        {handles[1], 0},
        {handles[2], 0},
        {scratch,    0}
    };
    const bool is_gather = handles[2] != NULL;
    const wb_argument arguments[] = {
        {0,                 0},
        {1,                 0},
        {is_gather ? 2 : 3, 0},
        {3,                 0}
    };
    const wb_command command = {
        .kernel = kernel, .narguments = is_gather ? 4 : 3, .arguments = arguments, .what = what};
    uint64_t late;
    memcpy(&late, &factor, sizeof late);
    const wb_status status = checked->run(device, queue, &command, 1, memory, &late);
    checked->free(device, scratch, 1 << 16); /* lives until the command is done */
    return status;
}

static wb_status run_scale(void *queue, void *y, void *x, double factor) {
    return run(queue, scale, "scale", (void *[]){x, y, NULL}, factor);
}

static wb_status sync_queue(void *queue) { return checked->sync(device, queue); }

static const float numbers[N] = {1, 2, 3, 4, 5, 6, 7, 8};

static void assert_number(float found, float wanted) {
    if (!(found == wanted)) fail_msg("%g, not %g", (double)found, (double)wanted);
}

static void assert_numbers(const float *found, float factor) {
    for (int i = 0; i < N; i++) assert_number(found[i], factor * numbers[i]);
}

static void assert_nan(const float *found) {
    for (int i = 0; i < N; i++) assert_true(isnan(found[i]));
}

/* Places for downloads are static: one that a failed test leaves behind is done when the device closes. */

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
    void *x = new_memory(), *y = new_memory();
    static float found[N];
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    assert_int_equal(run_scale(NULL, y, x, 2),
                     WB_OK); /* the late value is gone when this returns */
    assert_int_equal(download(NULL, found, y), WB_OK);
    assert_nan(found);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_numbers(found, 2);
    drop(x), drop(y);
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
    assert_error(WB_ERROR_DEVICE, "the source is no memory of a checked device");
    assert_int_equal(download(NULL, found, there), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "(32 bytes) of checked(1)");
    assert_int_equal(upload(NULL, x, x), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "the source is a handle, no host memory");
    assert_int_equal(upload(NULL, x, NULL), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "the source is NULL");
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
    } rows[] = {
        {0,         BYTES + 1   },
        {1,         BYTES       },
        {-1,        4           },
        {BYTES + 1, 1           },
        {8,         SIZE_MAX - 4}
    };
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
                 "missing sync: a download of 32 bytes to where the download of 32");
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_int_equal(upload(NULL, x, place), WB_OK);
    assert_int_equal(download(NULL, place, y), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "to where the upload of 32 bytes to memory ");
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
    assert_error(WB_ERROR_DEVICE, "upload: this is no queue of the device");
    drop(x);
    void *third = checked->open(1), *y = checked->alloc(third, BYTES);
    assert_int_equal(checked->copy(third, NULL, WB_COPY_DOWNLOAD, (wb_memory){found, 0},
                                   (wb_memory){y, 0}, BYTES),
                     WB_OK);
    checked->free(third, y, BYTES);
    checked->close(third);
    assert_error(WB_ERROR_DEVICE, "checked(1): missing sync: the queue was freed");
}

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
    const wb_call call = {
        .kind = WB_CALL_matmul,
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
                   .offset_c = offsets}
    };
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
    assert_int_equal(run_scale(NULL, x, x, 5), WB_OK); /* comes behind it, and is done */
    assert_int_equal(download(NULL, found, x), WB_OK);
    assert_false(wb_failed());
    assert_int_equal(sync_queue(NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "embedding: gather: index 8 at place 2 is not in 0 .. 7");
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
    assert_error(WB_ERROR_DEVICE, "run: nothing is done after an error: checked(0): second:");
    assert_int_equal(download(NULL, found, x), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "download: nothing is done");
    assert_int_equal(sync_queue(NULL), WB_ERROR_DEVICE);
    wb_clear_error();
    assert_int_equal(unsetenv("WEBER_CHECKED_FAIL"), 0);
    drop(x);
    checked->close(device);
    device = third;
    a_program_runs(state); /* other devices go on */
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
 * A host that doubles numbers on a device, right or with one thing forgotten. All of them are right on the CPU. */

typedef enum fault { NONE, NO_SYNC, KEPT_POINTER, EARLY_REUSE } fault;

static bool doubles(const wb_backend *backend, fault f) {
    void *on = backend->open(0), *kernel = new_scale(backend, on);
    const size_t scratch_bytes = backend->scratch_bytes(kernel);
    void *x = backend->alloc(on, BYTES), *scratch = backend->alloc(on, scratch_bytes);
    float given[N], found[N], seen[N];
    memcpy(given, numbers, sizeof given);
    (void)backend->copy(on, NULL, WB_COPY_UPLOAD, (wb_memory){x, 0}, (wb_memory){given, 0}, BYTES);
    if (f == EARLY_REUSE) memset(given, 0, sizeof given);
    const wb_memory memory[] = {
        {x,       0},
        {scratch, 0}
    };
    const wb_argument arguments[] = {
        {0, 0},
        {0, 0},
        {1, 0}
    };
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

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
        TEST(without_memory_nothing_is_lost),
        TEST(a_sound_host_passes),
        TEST(a_forgotten_sync_is_found),
        TEST(a_kept_pointer_is_found),
        TEST(an_early_reuse_is_found),
    };
    return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
