/* The Metal plugin through its table, on the stand-in for Apple's runtime: what it asks of it, what
 * it gives back, and what it makes of errors. */
#define BACKEND "Metal"
#define PLUGIN  "metal"

#include "stand_in.h"

#include "backends/contract.h"
#include "support/metal_cpp.h"

/* ---- texts ---- */

static void a_text_that_does_not_compile_is_reported(void **state) {
    NEED_DEVICE();
    (void)state;
    recipe broken = scale;
    broken.text = "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, a)) { no_such_thing = 1; }\n";
    assert_null(make_kernel(&broken));
    assert_non_null(strstr(wb_error_message(), "k_0: newLibraryWithSource"));
    assert_error(WB_ERROR_DEVICE, "no_such_thing");
    broken.text = "WB_KERNEL(k_other, GROUP)(WB_BUFFER(0, a)) { a[0] = 1; }\n";
    assert_null(make_kernel(&broken));
    assert_error(WB_ERROR_DEVICE, "k_0: newFunctionWithName");
    assert_int_equal(live_sources, 0);
    void *kernel = make_kernel(&scale); /* the device goes on */
    assert_non_null(kernel);
    backend->release(kernel);
}

/* Without clang no text on the stand-in is checked for them. */
static void address_spaces_are_checked(void **state) {
    NEED_DEVICE();
    (void)state;
    if (!metal_cpp_has_clang()) {
        print_message("clang++ is missing: address spaces of texts are not checked\n");
        skip();
    }
    recipe broken = scale;
    broken.text = "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, a)) { uchar *b = a; b[0] = 1; }\n";
    assert_null(make_kernel(&broken));
    assert_error(WB_ERROR_DEVICE, "address_space");
}

static bool has_simd(void) {
    const char *family = getenv("FAKE_METAL_FAMILY");
    return !family || strtol(family, NULL, 10) < 2000;
}

/* Texts that exchange values between 32 items would be wrong. */
static void simd_groups_are_as_wide_as_the_text_says(void **state) {
    NEED_DEVICE();
    (void)state;
    recipe other = scale;
    other.text = "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, a)) { a[0] = 3; }\n";
    (void)setenv("FAKE_METAL_SIMD", "16", 1);
    void *kernel = make_kernel(&other);
    (void)unsetenv("FAKE_METAL_SIMD");
    assert_int_equal(!kernel, has_simd());
    if (has_simd())
        assert_error(WB_ERROR_DEVICE,
                     "k_0: expected SIMD groups of 32 items, but the device's have 16");
    backend->release(kernel);
}

/* ---- a life ---- */

enum { ROUNDS = 4 };

typedef struct life {
    void *a, *b, *scaling, *checking, *queue, *event, *pinned;
    float x[N], y[N];
    int32_t places[4];
} life;

/* b = late * a + 1, a = late * b + 1, with indices that are checked between. */
static wb_status run_rounds(life *l) {
    static const wb_argument there[] = {{0, 0}, {1, 0}, {2, 0}};
    static const wb_argument back[] = {{1, 0}, {0, 0}, {2, 0}};
    static const wb_argument check[] = {{3, 0}, {2, 0}};
    const wb_command commands[] = {
        {.kernel = l->scaling, .narguments = 3, .arguments = there, .what = "there"},
        {.kernel = l->checking, .narguments = 2, .arguments = check, .what = "check"},
        {.kernel = l->scaling, .narguments = 3, .arguments = back, .what = "back"}};
    const wb_memory memory[] = {at(l->a, 0), at(l->b, 0), at(NULL, 0), at(l->pinned, 0)};
    wb_status status = WB_OK;
    for (int i = 0; i < ROUNDS && status == WB_OK; i++) {
        const uint64_t late = late_number((float)(i + 1) / 4);
        status = backend->run(device, NULL, commands, 3, memory, &late);
    }
    return status;
}

static void expect_rounds(life *l) {
    for (int k = 0; k < N; k++) {
        float a = (float)k;
        for (int i = 0; i < ROUNDS; i++) {
            const float late = (float)(i + 1) / 4, b = a * late + 1;
            a = b * late + 1;
        }
        if (l->y[k] != a) fail_msg("y[%d] is %g, not %g", k, (double)l->y[k], (double)a);
    }
}

static bool copy_to(void *queue, void *to, void *from, size_t size) {
    return backend->copy(device, queue, WB_COPY_UPLOAD, at(to, 0), at(from, 0), size) == WB_OK;
}

/* From open to close; the first error ends it. True: there was none. */
static bool live(life *l) {
    device = backend->open(0);
    if (!device) return false;
    l->a = backend->alloc(device, sizeof l->x), l->b = backend->alloc(device, sizeof l->x);
    l->pinned = backend->alloc(device, sizeof l->places);
    l->scaling = l->a && l->b && l->pinned ? make_kernel(&scale) : NULL;
    l->checking = l->scaling ? make_kernel(&checking) : NULL;
    l->queue = l->checking ? backend->queue_new(device) : NULL;
    bool ok = l->queue && copy_to(l->queue, l->a, l->x, sizeof l->x) &&
              copy_to(l->queue, l->pinned, l->places, sizeof l->places);
    ok = ok && backend->copy(device, l->queue, WB_COPY_LOCAL, at(l->b, 0), at(l->a, 0),
                             sizeof l->x) == WB_OK;
    l->event = ok ? backend->record(device, l->queue) : NULL;
    ok = l->event && backend->wait(device, NULL, l->event) == WB_OK;
    ok = ok && run_rounds(l) == WB_OK && copy_to(NULL, l->b, l->x, sizeof l->x);
    ok = ok && backend->copy(device, NULL, WB_COPY_DOWNLOAD, at(l->y, 0), at(l->a, 0),
                             sizeof l->y) == WB_OK;
    const bool synced = l->queue && backend->sync(device, l->queue) == WB_OK &&
                        backend->sync(device, NULL) == WB_OK;
    return ok && synced;
}

static void end_life(life *l) {
    if (!device) return;
    backend->release_event(device, l->event);
    if (l->queue) backend->queue_free(device, l->queue);
    backend->release(l->scaling);
    backend->release(l->checking);
    backend->free(device, l->a, sizeof l->x);
    backend->free(device, l->b, sizeof l->x);
    backend->free(device, l->pinned, sizeof l->places);
    backend->close(device);
    device = NULL;
}

static void begin_life(life *l) {
    *l = (life){.a = NULL};
    for (int i = 0; i < N; i++) l->x[i] = (float)i;
    for (int i = 0; i < 4; i++) l->places[i] = i;
}

/* Nothing of the runtime's is there any more, but for devices. */
static bool is_nothing_left(const char *when) {
    static long complaints;
    const fake_counts c = fake_count_now();
    const long new_complaints = c.complaints - complaints;
    complaints = c.complaints;
    if (c.objects == 0 && c.pools == 0 && live_sources == 0 && new_complaints == 0) return true;
    print_error("%s: left behind are %ld objects, %ld pools, %d sources; %ld complaints\n", when,
                c.objects, c.pools, (int)live_sources, new_complaints);
    fake_print_objects();
    return false;
}

static int without_device(void **state) {
    forget_cache();
    if (device) backend->close(device);
    device = NULL;
    return open_scope(state);
}

static int with_device_again(void **state) {
    device = backend->open(0);
    return close_scope(state) || !device;
}

static void a_life_leaves_nothing_behind(void **state) {
    (void)state;
    char folder[] = "/tmp/weber-test.XXXXXX";
    life l;
    assert_non_null(mkdtemp(folder));
    (void)setenv("TMPDIR", folder, 1);
    for (int round = 0; round < 2; round++) { /* the second one with a cache */
        const long hits = fake_count_now().archive_hits;
        begin_life(&l);
        if (!live(&l)) fail_msg("%s", wb_error_message());
        end_life(&l);
        expect_rounds(&l);
        assert_int_equal(fake_count_now().archive_hits > hits, round);
        assert_true(is_nothing_left("a life"));
    }
    (void)unsetenv("TMPDIR");
    assert_int_equal(rmdir(folder), 0); /* it is empty */
}

/* ---- errors ---- */

/* The first error says which call failed: by its selector, by what it makes, or by the error's
 * text. */
static bool is_told(const char *selector, const char *when) {
    static const struct {
        const char *selector, *said;
    } rows[] = {
        {"newCommandQueueWithMaxCommandBufferCount:", "no command queue"},
        {"newSharedEvent", "no shared event"},
        {"newBufferWithLength:options:", "no memory for"},
        {"newLibraryWithSource:options:error:", "newLibraryWithSource"},
        {"newFunctionWithName:", "newFunctionWithName"},
        {"newComputePipelineStateWithDescriptor:options:reflection:error:",
         "newComputePipelineState"},
        {"commandBuffer", "no command buffer"},
        {"computeCommandEncoder", "no encoder"},
        {"commit", "MTLCommandBufferError 1 internal"},
    };
    char message[512] = "";
    const wb_status status = wb_error_status();
    (void)wb_take_error(message, sizeof message);
    bool is_listed = false, is_said = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].selector, selector) != 0) continue;
        is_listed = true;
        is_said = strstr(message, rows[i].said);
    }
    if (status != WB_OK && (is_said || (!is_listed && message[0]))) return true;
    print_error("%s: the message is \"%s\"\n", when, message);
    return false;
}

/* One life, whose n-th call that may fail does. Memory that cannot be had is NULL without an
 * error. */
static bool fails_well(long n, long *told) {
    life l;
    char when[160];
    begin_life(&l);
    fake_fail(NULL, n, 1);
    const bool lived = live(&l);
    const char *selector = fake_failed();
    const bool is_alloc = device && (!l.a || !l.b || !l.pinned);
    (void)snprintf(when, sizeof when, "call %ld, %s", n, selector);
    bool well = true;
    if (lived) expect_rounds(&l);
    if (!lived && !is_alloc) well = is_told(selector, when);
    wb_clear_error();
    end_life(&l);
    wb_clear_error();
    *told += !lived;
    return is_nothing_left(when) && well;
}

/* The n-th call of all that may fail does, for every n of a life. */
static void any_call_may_fail(void **state) {
    (void)state;
    long n = 0, told = 0, faults = 0;
    do {
        faults += !fails_well(++n, &told);
    } while (fake_failed()[0] && faults < 10);
    fake_fail(NULL, 0, 0);
    print_message("%ld calls, %ld of which end the life that they fail in\n", n - 1, told);
    assert_true(n > 20 && told > 15);
    assert_int_equal(faults, 0);
}

/* The same with a cache of pipelines: without it the life goes on. */
static void the_cache_may_fail(void **state) {
    (void)state;
    static const char *const calls[] = {
        "newBinaryArchiveWithDescriptor:error:", "addComputePipelineFunctionsWithDescriptor:error:",
        "serializeToURL:error:", "fileURLWithPath:", "arrayWithObject:"};
    life l;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (long n = 1; n <= 2; n++) {
            begin_life(&l);
            if (n == 1) forget_cache();
            fake_fail(calls[i], n, 1);
            if (!live(&l)) fail_msg("%s: %s", calls[i], wb_error_message());
            end_life(&l);
            expect_rounds(&l);
            assert_true(is_nothing_left(calls[i]));
        }
    fake_fail(NULL, 0, 0);
}

/* Pipelines that are on the disk but cannot be had from there are made of their texts. */
static void a_kept_pipeline_may_be_of_no_use(void **state) {
    (void)state;
    life l;
    for (int round = 0; round < 2; round++) {
        begin_life(&l);
        if (round == 1)
            fake_fail("newComputePipelineStateWithDescriptor:options:reflection:error:", 2, 1);
        if (!live(&l)) fail_msg("%s", wb_error_message());
        end_life(&l);
        expect_rounds(&l);
        assert_true(is_nothing_left("a kept pipeline"));
    }
    assert_true(fake_failed()[0]);
    fake_fail(NULL, 0, 0);
}

/* macOS ends a command buffer that takes seconds: of products of 7e10 multiply-adds three go into
 * one. They do not run here: the device is removed first. */
static void large_products_are_spread_over_command_buffers(void **state) {
    (void)state;
    enum { SIDE = 4096, PRODUCTS = 8, PER_BUFFER = 3 };
    const wb_call call = {
        .kind = WB_CALL_matmul,
        .dtype = WB_F16,
        .matmul = {
            .m = SIDE, .n = SIDE, .k = SIDE, .lda = SIDE, .ldb = SIDE, .ldc = SIDE, .batch = 1}};
    static const wb_argument arguments[] = {{0, 0}, {0, 0}, {1, 0}};
    const size_t bytes = (size_t)SIDE * SIDE * 2;
    device = backend->open(0);
    assert_non_null(device);
    const wb_memory memory[] = {at(backend->alloc(device, bytes), 0),
                                at(backend->alloc(device, bytes), 0)};
    void *kernel = backend->lower(device, &call, NULL, 0);
    assert_non_null(kernel);
    wb_command commands[PRODUCTS];
    for (int i = 0; i < PRODUCTS; i++)
        commands[i] = (wb_command){
            .kernel = kernel, .narguments = 3, .arguments = arguments, .what = "product"};
    const long before = fake_count_now().commits;
    assert_ok(backend->run(device, NULL, commands, PRODUCTS, memory, NULL));
    assert_int_equal(fake_count_now().commits - before, (PRODUCTS + PER_BUFFER - 1) / PER_BUFFER);
    fake_remove(true);
    assert_int_not_equal(backend->sync(device, NULL), WB_OK);
    wb_clear_error();
    backend->release(kernel);
    for (int i = 0; i < 2; i++) backend->free(device, memory[i].handle, bytes);
    backend->close(device);
    fake_remove(false);
    device = NULL;
    assert_true(is_nothing_left("large products"));
}

typedef struct late {
    long code;
    const char *said;
} late;

static void late_errors_are_told_by_the_next_sync(void **state) {
    (void)state;
    static const late rows[] = {
        {1, "MTLCommandBufferError 1 internal: Internal Error"},
        {2, "MTLCommandBufferError 2 timeout: Caused GPU Timeout Error"},
        {8, "MTLCommandBufferError 8 out of memory: Insufficient Memory"},
        {9, "MTLCommandBufferError 9 invalid resource: Invalid Resource"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (long n = 1; n <= 3; n++) {
            life l;
            begin_life(&l);
            fake_fail("commit", n, rows[i].code);
            assert_false(live(&l));
            assert_error(WB_ERROR_DEVICE, rows[i].said);
            end_life(&l);
            wb_clear_error();
            assert_true(is_nothing_left("a late error"));
        }
    fake_fail(NULL, 0, 0);
}

/* A device that is removed in the middle: an error each, and nothing hangs. */
static void a_device_may_vanish(void **state) {
    (void)state;
    life l;
    begin_life(&l);
    if (!live(&l)) fail_msg("%s", wb_error_message());
    assert_ok(backend->sync(device, NULL));
    assert_ok(run_rounds(&l));
    fake_remove(true);
    assert_int_not_equal(backend->sync(device, NULL), WB_OK);
    assert_error(WB_ERROR_DEVICE, "MTLCommandBufferError 11 device removed: Device was removed");
    assert_null(backend->alloc(device, 64));
    (void)run_rounds(&l);
    assert_int_not_equal(backend->sync(device, NULL), WB_OK);
    assert_error(WB_ERROR_DEVICE, "device removed");
    end_life(&l);
    wb_clear_error();
    fake_remove(false);
    assert_true(is_nothing_left("a removed device"));
    begin_life(&l); /* it is back */
    if (!live(&l)) fail_msg("%s", wb_error_message());
    end_life(&l);
    expect_rounds(&l);
}

/* The third queue waits for the second, and that for the first, whose event is never signalled, as
 * its command buffer fails: all come to an end, and the first tells it. */
static void queues_wait_for_none_that_failed(void **state) {
    NEED_DEVICE();
    (void)state;
    enum { QUEUES = 3 };
    uint32_t x[N] = {0};
    void *a = upload(x, sizeof x), *b = backend->alloc(device, sizeof x);
    void *kernel = make_kernel(&slow), *queues[QUEUES], *events[QUEUES];
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    assert_non_null(kernel);
    assert_ok(backend->sync(device, NULL));
    for (int asks = 0; asks < 2; asks++) {
        fake_fail("commit", 2, 1); /* the first is the kernel, the second signals */
        for (int i = 0; i < QUEUES; i++) {
            queues[i] = backend->queue_new(device);
            if (i > 0) assert_ok(backend->wait(device, queues[i], events[i - 1]));
            assert_ok(run_on(queues[i], kernel, 3, memory, "slow", NULL));
            events[i] = backend->record(device, queues[i]);
            assert_non_null(events[i]);
        }
        assert_string_equal(fake_failed(), "commit");
        for (bool is_done = !asks; !is_done;)
            assert_ok(backend->is_done(device, events[QUEUES - 1], &is_done));
        for (int i = QUEUES - 1; i > 0; i--) assert_ok(backend->sync(device, queues[i]));
        assert_int_not_equal(backend->sync(device, queues[0]), WB_OK);
        assert_error(WB_ERROR_DEVICE, "MTLCommandBufferError 1 internal");
        for (int i = 0; i < QUEUES; i++) {
            backend->release_event(device, events[i]);
            backend->queue_free(device, queues[i]);
        }
    }
    backend->release(kernel);
    backend->free(device, a, sizeof x), backend->free(device, b, sizeof x);
}

static int run_device_tests(void) {
#define ALONE_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, without_device, with_device_again)
    const struct CMUnitTest tests[] = {CONTRACT_TESTS,
                                       DEVICE_TEST(a_text_that_does_not_compile_is_reported),
                                       DEVICE_TEST(address_spaces_are_checked),
                                       DEVICE_TEST(simd_groups_are_as_wide_as_the_text_says),
                                       DEVICE_TEST(queues_wait_for_none_that_failed),
                                       ALONE_TEST(a_life_leaves_nothing_behind),
                                       ALONE_TEST(any_call_may_fail),
                                       ALONE_TEST(the_cache_may_fail),
                                       ALONE_TEST(a_kept_pipeline_may_be_of_no_use),
                                       ALONE_TEST(large_products_are_spread_over_command_buffers),
                                       ALONE_TEST(late_errors_are_told_by_the_next_sync),
                                       ALONE_TEST(a_device_may_vanish)};
    use_stand_in();
    if (!open_device(0)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    backend->close(device);
    return failed + !is_nothing_left("all tests");
}

int main(void) {
    static const char *const kinds[][2] = {
        {"FAKE_METAL_UNIFIED", "1"},   /* Apple's own GPUs */
        {"FAKE_METAL_UNIFIED", "0"},   /* memory of its own */
        {"FAKE_METAL_FAMILY", "2002"}, /* of Intel's Macs */
        {"FAKE_METAL_OLD", "1"},       /* before macOS 15 */
    };
    int failed = 0;
    (void)unsetenv("WEBER_DEVICE"); /* the plugin has one host: this file */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        failed += run_with(kinds[i][0], kinds[i][1], run_device_tests);
    return failed;
}
