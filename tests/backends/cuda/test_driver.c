/* The CUDA plugin (and AMD's, tests/backends/amdgpu) through its table, on the fake driver: what it
 * asks of a driver, what it gives back, and what it makes of errors. */
#include "gpu.h"

#include "backends/contract.h"

/* ---- kernels ---- */

static void a_text_that_does_not_compile_is_reported(void **state) {
    NEED_DEVICE();
    (void)state;
    recipe broken = scale;
    broken.text = "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, a)) { no_such_thing = 1; }\n";
    assert_null(make_kernel(&broken));
    assert_non_null(strstr(wb_error_message(), "k_0"));
    assert_non_null(strstr(wb_error_message(),
                           GPU_NAME("NVRTC_ERROR_COMPILATION", "HIPRTC_ERROR_COMPILATION")));
    assert_error(WB_ERROR_DEVICE, "no_such_thing");
    broken.text = "WB_KERNEL(k_other, GROUP)(WB_BUFFER(0, a)) { a[0] = 1; }\n";
    assert_null(make_kernel(&broken));
    assert_non_null(
        strstr(wb_error_message(), GPU_NAME("cuModuleGetFunction", "hipModuleGetFunction")));
    assert_error(WB_ERROR_DEVICE, GPU_NAME("CUDA_ERROR_NOT_FOUND", "hipErrorNotFound"));
    assert_int_equal(live_sources, 0);
    void *kernel = make_kernel(&scale); /* the device goes on */
    assert_non_null(kernel);
    backend->release(kernel);
}

/* ---- pinned memory of the plugin's own ---- */

/* Memory that is not pinned is copied into a ring of pinned memory, which is smaller than all this:
 * pieces of it are written again only when their copies have read them. */
static void uploads_share_pinned_memory(void **state) {
    NEED_DEVICE();
    (void)state;
    enum { PIECES = 24, WORDS = (1 << 20) / 4 };
    void *memory = backend->alloc(device, (size_t)PIECES * WORDS * 4);
    uint32_t *words = malloc(WORDS * sizeof *words);
    assert_non_null(memory);
    for (uint32_t piece = 0; piece < PIECES; piece++) {
        for (uint32_t i = 0; i < WORDS; i++) words[i] = piece << 20 | i;
        assert_ok(backend->copy(device, NULL, WB_COPY_UPLOAD,
                                at(memory, (int64_t)piece * WORDS * 4), at(words, 0),
                                WORDS * sizeof *words));
    }
    for (uint32_t piece = 0; piece < PIECES; piece++) {
        download(words, memory, (int64_t)piece * WORDS * 4, WORDS * sizeof *words);
        for (uint32_t i = 0; i < WORDS; i++)
            if (words[i] != (piece << 20 | i))
                fail_msg("piece %u has %x at %u", piece, words[i], i);
    }
    free(words);
    backend->free(device, memory, (size_t)PIECES * WORDS * 4);
}

/* ---- a life ---- */

enum { ROUNDS = 6 };

typedef struct life {
    void *a, *b, *scaling, *checking, *queue, *event, *pinned;
    float x[N], y[N];
} life;

/* A list that comes again and again, so that it becomes a graph: b = late * a + 1, a = late * b +
 * 1. */
static wb_status run_rounds(life *l) {
    static const wb_argument there[] = {{0, 0}, {1, 0}, {2, 0}};
    static const wb_argument back[] = {{1, 0}, {0, 0}, {2, 0}};
    const wb_command commands[] = {
        {.kernel = l->scaling, .narguments = 3, .arguments = there, .what = "there"},
        {.kernel = l->scaling, .narguments = 3, .arguments = back, .what = "back"}};
    const wb_memory memory[] = {at(l->a, 0), at(l->b, 0), at(NULL, 0)};
    wb_status status = WB_OK;
    for (int i = 0; i < ROUNDS && status == WB_OK; i++) {
        const uint64_t late = late_number((float)(i + 1) / 4);
        status = backend->run(device, NULL, commands, 2, memory, &late);
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

/* From open to close; the first error ends it. True: there was none. */
static bool live(life *l) {
    const wb_memory host = at(l->x, 0), target = at(l->y, 0);
    device = backend->open(0);
    if (!device) return false;
    l->a = backend->alloc(device, sizeof l->x), l->b = backend->alloc(device, sizeof l->x);
    l->scaling = l->a && l->b ? make_kernel(&scale) : NULL;
    l->queue = l->scaling ? backend->queue_new(device) : NULL;
    l->pinned = l->queue ? backend->alloc_pinned(device, sizeof l->x) : NULL;
    bool ok = l->queue;
    void *from = l->pinned ? l->pinned : l->x; /* who gets none does without */
    if (l->pinned) memcpy(l->pinned, l->x, sizeof l->x);
    ok = ok && backend->copy(device, l->queue, WB_COPY_UPLOAD, at(l->a, 0), at(from, 0),
                             sizeof l->x) == WB_OK;
    ok = ok && backend->copy(device, NULL, WB_COPY_UPLOAD, at(l->b, 0), host, sizeof l->x) == WB_OK;
    l->event = ok ? backend->record(device, l->queue) : NULL;
    ok = l->event && backend->wait(device, NULL, l->event) == WB_OK;
    ok = ok && run_rounds(l) == WB_OK;
    ok = ok &&
         backend->copy(device, NULL, WB_COPY_DOWNLOAD, target, at(l->a, 0), sizeof l->y) == WB_OK;
    return ok && backend->sync(device, NULL) == WB_OK && backend->sync(device, l->queue) == WB_OK;
}

static void end_life(life *l) {
    if (!device) return;
    backend->release_event(device, l->event);
    backend->free_pinned(device, l->pinned, sizeof l->x);
    if (l->queue) backend->queue_free(device, l->queue);
    backend->release(l->scaling);
    backend->free(device, l->a, sizeof l->x);
    backend->free(device, l->b, sizeof l->x);
    backend->close(device);
    device = NULL;
}

static void begin_life(life *l) {
    *l = (life){.a = NULL};
    for (int i = 0; i < N; i++) l->x[i] = (float)i;
}

/* Nothing of the driver's is there any more. */
static bool is_nothing_left(const char *when) {
    const fake_counts c = fake_count_now();
    const long left = c.allocations + c.pinned + c.contexts + c.streams + c.events + c.modules +
                      c.graphs + c.executables + c.programs + live_sources;
    if (left || c.complaints)
        print_error("%s: left behind are %ld allocations, %ld pinned, %ld contexts, %ld streams, "
                    "%ld events, %ld modules, %ld graphs, %ld executables, %ld programs, %d "
                    "sources; %ld complaints\n",
                    when, c.allocations, c.pinned, c.contexts, c.streams, c.events, c.modules,
                    c.graphs, c.executables, c.programs, (int)live_sources, c.complaints);
    return left == 0 && c.complaints == 0;
}

static int without_device(void **state) {
    forget_cache();
    host.cache_read = nothing_cached,
    host.cache_write = nothing_kept; /* the compiler is asked each time */
    if (device) backend->close(device);
    device = NULL;
    return open_scope(state);
}

static int with_device_again(void **state) {
    host.cache_read = cache_read, host.cache_write = cache_write;
    device = backend->open(0);
    return close_scope(state) || !device;
}

static void a_life_leaves_nothing_behind(void **state) {
    (void)state;
    life l;
    begin_life(&l);
    const fake_counts before = fake_count_now();
    if (!live(&l)) fail_msg("%s", wb_error_message());
    end_life(&l);
    expect_rounds(&l);
    const fake_counts after = fake_count_now();
    const char *graphs = getenv("WEBER_GRAPHS");
    const bool has_graphs = graphs ? strcmp(graphs, "0") != 0 : GPU_NAME(true, false);
    assert_int_equal(after.graph_launches > before.graph_launches, has_graphs);
    assert_true(is_nothing_left("a life"));
}

/* ---- errors ---- */

enum { OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719 };

/* The first error names the call that failed, and its code; the compiler has no such code. */
static bool is_named(const char *call, const char *when) {
    const char *code = GPU_NAME("CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure");
    char message[512];
    (void)wb_take_error(message, sizeof message);
    if (strstr(message, call) && (strstr(message, code) || strstr(call, "rtc"))) return true;
    print_error("%s: the message \"%s\" does not name the call and its code\n", when, message);
    return false;
}

/* One life, whose n-th call fails. What runs out of memory need not name a call: the library says
 * how much of it is where. */
static bool fails_well(long n, int code, long *told) {
    life l;
    char when[96];
    begin_life(&l);
    fake_fail(NULL, n, code);
    const bool lived = live(&l);
    const char *call = fake_failed();
    (void)snprintf(when, sizeof when, "call %ld, %s", n, call);
    bool well = true;
    if (lived) expect_rounds(&l);
    if (!lived && code != OUT_OF_MEMORY) well = is_named(call, when);
    wb_clear_error();
    end_life(&l);
    wb_clear_error();
    *told += !lived;
    return is_nothing_left(when) && well;
}

/* The n-th call of all fails, for every n of a life. */
static void every_call_may_fail(void **state, int code) {
    (void)state;
    long n = 0, told = 0, faults = 0;
    do {
        faults += !fails_well(++n, code, &told);
    } while (fake_failed()[0] && faults < 10);
    fake_fail(NULL, 0, 0);
    print_message("%ld calls, %ld of which end the life that they fail in\n", n - 1, told);
    assert_true(n > 40 && told > 20);
    assert_int_equal(faults, 0);
}

static void any_call_may_fail(void **state) { every_call_may_fail(state, LAUNCH_FAILED); }
static void memory_may_run_out_at_any_call(void **state) {
    every_call_may_fail(state, OUT_OF_MEMORY);
}

/* A kernel that faults: all that follows fails with what happened, until the device is opened
 * again. */
static void a_fault_is_the_queues_end(void **state) {
    (void)state;
    life l;
    begin_life(&l);
    fake_fault(3);
    assert_false(live(&l));
    assert_non_null(strstr(wb_error_message(),
                           GPU_NAME("CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress")));
    assert_error(WB_ERROR_DEVICE, "");
    assert_int_not_equal(backend->sync(device, NULL), WB_OK);
    wb_clear_error();
    end_life(&l);
    wb_clear_error();
    assert_true(is_nothing_left("a fault"));
#ifndef TEST_AMDGPU /* HIP has no context that could be made anew */
    begin_life(&l);
    if (!live(&l)) fail_msg("%s", wb_error_message());
    end_life(&l);
    expect_rounds(&l);
    assert_true(is_nothing_left("the life after"));
#endif
}

static int run_device_tests(void) {
#define ALONE_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, without_device, with_device_again)
    const struct CMUnitTest tests[] = {CONTRACT_TESTS,
                                       DEVICE_TEST(a_text_that_does_not_compile_is_reported),
                                       DEVICE_TEST(uploads_share_pinned_memory),
                                       ALONE_TEST(a_life_leaves_nothing_behind),
                                       ALONE_TEST(any_call_may_fail),
                                       ALONE_TEST(memory_may_run_out_at_any_call)};
    const struct CMUnitTest last[] = {
        cmocka_unit_test_setup_teardown(a_fault_is_the_queues_end, without_device, close_scope)};
    trusts_images = true;
    forgets_order = true; /* status words are found by name, so that graphs may hold them */
    use_fake_driver();
    if (!open_device(0)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(last, NULL, NULL);
}

int main(void) {
    (void)unsetenv("WEBER_DEVICE"); /* the plugin has one host: this file */
    int failed = run_with("WEBER_GRAPHS", "1", run_device_tests);
    failed += run_with("WEBER_GRAPHS", "0", run_device_tests);
    return failed + run_with("FAKE_CUDA_EAGER", "1", run_device_tests);
}
