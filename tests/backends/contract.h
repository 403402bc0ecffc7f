/* What every plugin does, shown through its table, for the device that host.h opened:
 *
 *     const struct CMUnitTest tests[] = {CONTRACT_TESTS,
 *                                       DEVICE_TEST(something_of_this_backend)}; */
#ifndef WB_TESTS_BACKENDS_CONTRACT_H
#define WB_TESTS_BACKENDS_CONTRACT_H

#include "backends/host.h"

#include <pthread.h>

#include "support/support.h"

/* ---- memory ---- */

static void bytes_come_back_from_any_offset(void **state) {
    NEED_DEVICE();
    (void)state;
    unsigned char out[4096], back[4096];
    for (int i = 0; i < 4096; i++) out[i] = (unsigned char)(i * 7);
    void *memory = upload(out, sizeof out);
    for (size_t size = 1; size < 300; size += 37) {
        memset(back, 0, sizeof back);
        download(back, memory, 4096 - 299, size);
        assert_memory_equal(back, out + 4096 - 299, size);
    }
    void *other = backend->alloc(device, 5000);
    assert_ok(backend->copy(device, NULL, WB_COPY_LOCAL, at(other, 3), at(memory, 100), 333));
    download(back, other, 3, 333);
    assert_memory_equal(back, out + 100, 333);
    /* overlaps */
    assert_ok(backend->copy(device, NULL, WB_COPY_LOCAL, at(memory, 10), at(memory, 0), 1000));
    download(back, memory, 10, 1000);
    assert_memory_equal(back, out, 1000);
    assert_ok(backend->copy(device, NULL, WB_COPY_UPLOAD, at(memory, 0), at(out, 0), 0));
    backend->free(device, memory, sizeof out);
    backend->free(device, other, 5000);
    backend->free(device, NULL, 0);
}

static void too_much_memory_is_null_without_an_error(void **state) {
    NEED_DEVICE();
    (void)state;
    enum { MOST = 512 };
    wb_device_info info;
    void *blocks[MOST];
    int count = 0;
    assert_null(backend->alloc(device, (size_t)1 << 60));
    assert_ok(backend->info(0, &info));
    const size_t piece = (size_t)info.memory_bytes / 8;
    while (count < MOST && (blocks[count] = backend->alloc(device, piece))) count++;
    assert_in_range(count, 1, 9);
    assert_false(wb_failed());
    for (int i = 0; i < count; i++) backend->free(device, blocks[i], piece);
    void *again = backend->alloc(device, piece);
    assert_non_null(again);
    backend->free(device, again, piece);
}

static void pinned_memory_serves_copies(void **state) {
    NEED_DEVICE();
    (void)state;
    if (!backend->alloc_pinned) return; /* it is optional */
    int *pinned = backend->alloc_pinned(device, N * sizeof *pinned), back[N] = {0};
    assert_non_null(pinned);
    for (int i = 0; i < N; i++) pinned[i] = i * i;
    void *memory = upload(pinned, N * sizeof *pinned);
    assert_ok(backend->sync(device, NULL));
    memset(pinned, 0, N * sizeof *pinned);
    download(back, memory, 0, sizeof back);
    download(pinned, memory, 0, sizeof back);
    for (int i = 0; i < N; i++) assert_int_equal(pinned[i], i * i);
    assert_memory_equal(back, pinned, sizeof back);
    backend->free_pinned(device, pinned, N * sizeof *pinned);
    backend->free_pinned(device, NULL, 0);
    backend->free(device, memory, sizeof back);
}

/* ---- kernels ---- */

static void kernels_take_offsets_and_late_values(void **state) {
    NEED_DEVICE();
    (void)state;
    float x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = (float)i;
    void *a = upload(x, sizeof x), *b = backend->alloc(device, 2 * sizeof y);
    void *kernel = make_kernel(&scale);
    if (!kernel) fail_msg("%s", wb_error_message());
    for (int run = 1; run <= 3; run++) {
        const wb_memory memory[] = {at(a, 4), at(b, 64 * run), at(NULL, 0)};
        const uint64_t late = late_number((float)run);
        assert_ok(run_on(NULL, kernel, 3, memory, "scale", &late));
        download(y, b, 64 * run, (N - 1) * sizeof *y);
        for (int i = 0; i < N - 1; i++)
            if (y[i] != (float)run * x[i + 1] + 1) fail_msg("run %d: y[%d] = %g", run, i, y[i]);
    }
    assert_int_equal(backend->scratch_bytes(kernel), 0);
    backend->release(kernel);
    backend->free(device, a, sizeof x);
    backend->free(device, b, 2 * sizeof y);
    assert_int_equal(live_sources, 0);
}

static void an_empty_domain_launches_nothing(void **state) {
    NEED_DEVICE();
    (void)state;
    recipe nothing = scale;
    const wb_memory memory[] = {at(NULL, 0), at(NULL, 0), at(NULL, 0)};
    const uint64_t late = 0;
    for (int launches = 0; launches < 2; launches++) {
        nothing.launches = launches, nothing.items = 0;
        void *kernel = make_kernel(&nothing);
        assert_non_null(kernel);
        assert_ok(run_on(NULL, kernel, 3, memory, "nothing", &late));
        assert_ok(backend->sync(device, NULL));
        backend->release(kernel);
    }
}

static void calls_without_a_text_are_refused_without_an_error(void **state) {
    NEED_DEVICE();
    (void)state;
    const wb_call call = {.kind = WB_CALL_gather}; /* the host here has no texts of calls */
    assert_null(backend->lower(device, &call, NULL, 0));
    assert_false(wb_failed());
}

static void what_queued_commands_use_outlives_its_release(void **state) {
    NEED_DEVICE();
    (void)state;
    uint32_t x[N], y[N];
    for (uint32_t i = 0; i < N; i++) x[i] = i;
    void *a = upload(x, sizeof x), *b = backend->alloc(device, sizeof y);
    void *kernel = make_kernel(&slow);
    if (!kernel) fail_msg("%s", wb_error_message());
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    for (int run = 0; run < 4; run++) assert_ok(run_on(NULL, kernel, 3, memory, "slow", NULL));
    backend->release(kernel);
    backend->free(device, a, sizeof x);
    uint32_t ones[N];
    memset(ones, 0xff, sizeof ones);
    void *others[16]; /* would take the freed memory's place */
    for (int i = 0; i < 16; i++) others[i] = upload(ones, sizeof ones);
    download(y, b, 0, sizeof y);
    for (uint32_t i = 0; i < N; i += 37) assert_int_equal(y[i], slow_result(i));
    for (int i = 0; i < 16; i++) backend->free(device, others[i], sizeof x);
    backend->free(device, b, sizeof y);
}

/* ---- status words ---- */

static const recipe checking = {
    .text = "WB_WORDS(k_words, 3)\n"
            "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, index), WB_BUFFER(1, c), WB_STATUS(2, status),"
            " WB_BLOCK(3, k_words, w)) {\n"
            "    const wb_i64 i = (wb_i64)WB_GROUP * GROUP + WB_LANE;\n"
            "    if (i >= w.v[0]) return;\n"
            "    const wb_i64 at = WB_POINTER(i32, index, OFFSET(0))[i];\n"
            "    if (at >= 0 && at < 4) return;\n"
            "    status[0] = 1, status[1] = at, status[2] = i, status[3] = 4;\n"
            "}\n",
    .buffers = 2,
    .extra_words = 1,
    .launches = 1,
    .uses_status = true,
    .items = 4};

/* Of several bad indices between two syncs the first one is told, unless the backend has them in no
 * order. */
static bool forgets_order;

static void a_bad_index_is_named_at_the_next_sync(void **state) {
    NEED_DEVICE();
    (void)state;
    const int32_t good[] = {0, 1, 2, 3}, bad[] = {0, 1, 7, 3}, worse[] = {-1, 1, 1, 3};
    void *kernel = make_kernel(&checking);
    if (!kernel) fail_msg("%s", wb_error_message());
    void *lists[] = {upload(good, sizeof good), upload(bad, sizeof bad),
                     upload(worse, sizeof worse)};
    const wb_memory memory[][2] = {{at(lists[0], 0), at(NULL, 0)},
                                   {at(lists[1], 0), at(NULL, 0)},
                                   {at(lists[2], 0), at(NULL, 0)}};
    assert_ok(run_on(NULL, kernel, 2, memory[0], "gather", NULL));
    assert_ok(backend->sync(device, NULL));
    assert_ok(run_on(NULL, kernel, 2, memory[0], "fine", NULL));
    assert_ok(run_on(NULL, kernel, 2, memory[1], "gather", NULL));
    assert_ok(run_on(NULL, kernel, 2, memory[2], "scatter_add", NULL));
    assert_int_equal(backend->sync(device, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "gather: index 7 at place 2 is not in 0 .. 3");
    assert_ok(backend->sync(device, NULL)); /* said once, and the queue goes on */
    for (int i = 0; i < 200; i++) /* more than there are slots: the first bad one is remembered */
        assert_ok(run_on(NULL, kernel, 2,
                         memory[i == 30    ? 2
                                : i == 150 ? 1
                                           : 0],
                         i == 30 ? "scatter_add" : "gather", NULL));
    assert_int_equal(backend->sync(device, NULL), WB_ERROR_ARGUMENT);
    if (forgets_order)
        assert_error(WB_ERROR_ARGUMENT, "is not in 0 .. 3");
    else
        assert_error(WB_ERROR_ARGUMENT, "scatter_add: index -1 at place 0 is not in 0 .. 3");
    assert_ok(run_on(NULL, kernel, 2, memory[0], "gather", NULL));
    assert_ok(backend->sync(device, NULL));
    for (int i = 0; i < 3; i++) backend->free(device, lists[i], sizeof good);
    backend->release(kernel);
}

/* ---- queues ---- */

static void events_order_two_queues(void **state) {
    NEED_DEVICE();
    (void)state;
    uint32_t x[N], y[N];
    for (uint32_t i = 0; i < N; i++) x[i] = i;
    void *a = upload(x, sizeof x), *b = backend->alloc(device, sizeof y),
         *c = backend->alloc(device, sizeof y);
    void *kernel = make_kernel(&slow), *queue = backend->queue_new(device);
    assert_non_null(kernel);
    assert_non_null(queue);
    assert_ok(backend->sync(device, NULL));
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    assert_ok(run_on(queue, kernel, 3, memory, "slow", NULL));
    void *event = backend->record(device, queue);
    assert_non_null(event);
    assert_ok(backend->wait(device, NULL, event));
    backend->release_event(device, event);
    assert_ok(backend->copy(device, NULL, WB_COPY_LOCAL, at(c, 0), at(b, 0), sizeof y));
    download(y, c, 0, sizeof y);
    for (uint32_t i = 0; i < N; i += 37) assert_int_equal(y[i], slow_result(i));
    assert_ok(backend->sync(device, queue));
    backend->queue_free(device, queue);
    backend->queue_free(device, NULL);
    backend->release_event(device, NULL);
    backend->release(kernel);
    backend->free(device, a, sizeof x), backend->free(device, b, sizeof y),
        backend->free(device, c, sizeof y);
}

static void many_commands_without_a_sync(void **state) {
    NEED_DEVICE();
    (void)state;
    float x[N] = {0}, y[N];
    void *a = upload(x, sizeof x), *b = upload(x, sizeof x), *kernel = make_kernel(&scale);
    const wb_memory memory[][3] = {{at(a, 0), at(b, 0), at(NULL, 0)},
                                   {at(b, 0), at(a, 0), at(NULL, 0)}};
    const uint64_t late = late_number(1);
    for (int i = 0; i < 3000; i++)
        assert_ok(run_on(NULL, kernel, 3, memory[i % 2], "scale", &late));
    download(y, a, 0, sizeof y);
    for (int i = 0; i < N; i++) assert_true(y[i] == 3000);
    backend->release(kernel);
    backend->free(device, a, sizeof x), backend->free(device, b, sizeof x);
}

static void *one_thread(void *result) {
    float x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = (float)i;
    void *a = backend->alloc(device, sizeof x), *b = backend->alloc(device, sizeof y);
    void *kernel = make_kernel(&scale);
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    int wrong = !kernel;
    for (int run = 0; run < 50 && !wrong; run++) {
        const uint64_t late = late_number((float)run);
        wrong += backend->copy(device, NULL, WB_COPY_UPLOAD, at(a, 0), at(x, 0), sizeof x) != WB_OK;
        wrong += run_on(NULL, kernel, 3, memory, "scale", &late) != WB_OK;
        wrong +=
            backend->copy(device, NULL, WB_COPY_DOWNLOAD, at(y, 0), at(b, 0), sizeof y) != WB_OK;
        wrong += backend->sync(device, NULL) != WB_OK;
        for (int i = 0; i < N; i++) wrong += y[i] != (float)run * x[i] + 1;
    }
    backend->release(kernel);
    backend->free(device, a, sizeof x), backend->free(device, b, sizeof y);
    *(int *)result = wrong;
    return NULL;
}

static bool nothing_cached(const char *name, const char *entry, void **data, size_t *size_bytes) {
    (void)name, (void)entry, (void)data, (void)size_bytes;
    return false;
}

static void nothing_kept(const char *name, const char *entry, const void *data, size_t size_bytes) {
    (void)name, (void)entry, (void)data, (void)size_bytes;
}

static void threads_share_a_device(void **state) {
    NEED_DEVICE();
    (void)state;
    pthread_t threads[4];
    int wrong[4] = {1, 1, 1, 1};
    host.cache_read = nothing_cached,
    host.cache_write = nothing_kept; /* host.h's is not for threads */
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, one_thread, &wrong[i]), 0);
    for (int i = 0; i < 4; i++) (void)pthread_join(threads[i], NULL);
    host.cache_read = cache_read, host.cache_write = cache_write;
    for (int i = 0; i < 4; i++) assert_int_equal(wrong[i], 0);
}

/* ---- the cache of binaries ---- */

/* A kernel made, launched and synced on a device opened anew, as a new process would. */
static void use_once(int *hits, int *writes) {
    void *old = device;
    cache_hits = cache_writes = 0;
    device = backend->open(0);
    assert_non_null(device);
    float x[N] = {1}, y[N];
    void *a = upload(x, sizeof x), *b = backend->alloc(device, sizeof y);
    void *first = make_kernel(&scale), *second = make_kernel(&scale); /* one program */
    if (!first || !second) fail_msg("%s", wb_error_message());
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    const uint64_t late = late_number(2);
    assert_ok(run_on(NULL, second, 3, memory, "scale", &late));
    download(y, b, 0, sizeof y);
    assert_true(y[0] == 3 && y[1] == 1);
    assert_ok(backend->sync(device, NULL));
    backend->release(first), backend->release(second);
    backend->free(device, a, sizeof x), backend->free(device, b, sizeof y);
    backend->close(device);
    device = old;
    *hits = cache_hits, *writes = cache_writes;
}

/* The driver is given a binary without its size, and believes what stands at its beginning. */
static bool trusts_images;

static void binaries_come_from_the_cache(void **state) {
    NEED_DEVICE();
    (void)state;
    int hits, writes;
    forget_cache();
    use_once(&hits, &writes);
    const int programs = writes; /* those that copy, where a backend has some, too */
    assert_int_equal(hits, 0), assert_in_range(programs, 1, 2);
    use_once(&hits, &writes);
    assert_int_equal(hits, programs), assert_int_equal(writes, 0);
    memset(cached[0].data, 'x', 64); /* damaged: compiled again, and mended */
    use_once(&hits, &writes);
    assert_int_equal(hits, programs), assert_int_equal(writes, 1);
    use_once(&hits, &writes);
    assert_int_equal(hits, programs), assert_int_equal(writes, 0);
    cached[0].size = 10;
    if (trusts_images) memset(cached[0].data, 'x', cached[0].size);
    use_once(&hits, &writes);
    assert_int_equal(hits, programs), assert_int_equal(writes, 1);
    forget_cache();
}

#define DEVICE_TEST(function) cmocka_unit_test_setup_teardown(function, need_device, leave)
#define CONTRACT_TESTS                                                                             \
    DEVICE_TEST(bytes_come_back_from_any_offset),                                                  \
        DEVICE_TEST(too_much_memory_is_null_without_an_error),                                     \
        DEVICE_TEST(pinned_memory_serves_copies),                                                  \
        DEVICE_TEST(kernels_take_offsets_and_late_values),                                         \
        DEVICE_TEST(an_empty_domain_launches_nothing),                                             \
        DEVICE_TEST(calls_without_a_text_are_refused_without_an_error),                            \
        DEVICE_TEST(what_queued_commands_use_outlives_its_release),                                \
        DEVICE_TEST(a_bad_index_is_named_at_the_next_sync), DEVICE_TEST(events_order_two_queues),  \
        DEVICE_TEST(many_commands_without_a_sync), DEVICE_TEST(threads_share_a_device),            \
        DEVICE_TEST(binaries_come_from_the_cache)

#endif
