/* The stand-in for Apple's runtime itself: a kernel runs, and each rule that it holds programs to,
 * broken on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include <unistd.h>

#include "runtime.h"

/* ---- what most of them begin with ---- */

static void *pool;
static mtl_id device, queue;

static void begin(void) {
    open_runtime();
    pool = mtl.objc_autoreleasePoolPush();
    const mtl_id devices = mtl.MTLCopyAllDevices();
    device = mtl_retain(mtl_object_at(devices, 0));
    mtl_release(devices);
    queue = mtl_new_queue(device, 64);
}

static void end(void) {
    mtl_release(queue);
    mtl_release(device);
    mtl.objc_autoreleasePoolPop(pool);
}

static mtl_id string(const char *text) { return mtl_string(mtl.objc_getClass("NSString"), text); }

static mtl_id exact_options(void) {
    const mtl_id options = mtl_new(mtl.objc_getClass("MTLCompileOptions"));
    mtl_set_math_mode(options, MTL_MATH_SAFE);
    mtl_set_math_functions(options, MTL_FUNCTIONS_PRECISE);
    mtl_set_language(options, MTL_LANGUAGE_2_4);
    return options;
}

static mtl_id library_of(const char *text, mtl_id *error) {
    const mtl_id options = exact_options();
    const mtl_id library = mtl_new_library(device, string(text), options, error);
    mtl_release(options);
    return library;
}

static mtl_id pipeline_of(const char *text, const char *name) {
    mtl_id error = NULL, library = library_of(text, &error);
    if (!library) (void)fprintf(stderr, "%s\n", mtl_utf8(mtl_description(error)));
    const mtl_id function = mtl_new_function(library, string(name));
    const mtl_id recipe = mtl_new(mtl.objc_getClass("MTLComputePipelineDescriptor"));
    mtl_set_function(recipe, function);
    const mtl_id pipeline = mtl_new_pipeline(device, recipe, 0, NULL, &error);
    mtl_release(recipe), mtl_release(function), mtl_release(library);
    return pipeline;
}

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n"

/* y = 2 x + offset */
static const char doubling[] =
    HEAD "[[max_total_threads_per_threadgroup(64)]] kernel void twice(device const float *x "
         "[[buffer(0)]], device float *y [[buffer(2)]], constant float &offset [[buffer(1)]], uint "
         "group [[threadgroup_position_in_grid]], uint lane [[thread_position_in_threadgroup]]) {\n"
         "    y[group * 64 + lane] = 2 * x[group * 64 + lane] + offset;\n"
         "}\n";

enum { COUNT = 256, BYTES = COUNT * sizeof(float) };

static mtl_id encode_doubling(mtl_id commands, mtl_id pipeline, mtl_id x, mtl_id y) {
    const float offset = 0.5f;
    const mtl_id encoder = mtl_compute_encoder(commands);
    mtl_set_pipeline(encoder, pipeline);
    mtl_set_buffer(encoder, x, 0, 0);
    mtl_set_bytes(encoder, &offset, sizeof offset, 1);
    mtl_set_buffer(encoder, y, 0, 2);
    mtl_dispatch(encoder, (mtl_size){COUNT / 64, 1, 1}, (mtl_size){64, 1, 1});
    return encoder;
}

/* ---- what works ---- */

static int a_kernel_runs_when_it_is_waited_for(void) {
    begin();
    const mtl_id pipeline = pipeline_of(doubling, "twice");
    const mtl_id x = mtl_new_buffer(device, BYTES, MTL_STORAGE_SHARED);
    const mtl_id y = mtl_new_buffer(device, BYTES, MTL_STORAGE_SHARED);
    float *const from = mtl_contents(x), *const to = mtl_contents(y);
    for (int i = 0; i < COUNT; i++) from[i] = (float)i;
    const mtl_id commands = mtl_command_buffer(queue);
    mtl_end_encoding(encode_doubling(commands, pipeline, x, y));
    mtl_release(pipeline), mtl_release(x); /* the command buffer keeps them */
    mtl_commit(commands);
    const bool was_put_off = to[0] != to[0] && mtl_status(commands) < MTL_STATUS_COMPLETED;
    mtl_wait_completed(commands);
    int wrong = !was_put_off + (mtl_status(commands) != MTL_STATUS_COMPLETED);
    for (int i = 0; i < COUNT; i++) wrong += to[i] != 2 * (float)i + 0.5f;
    mtl_release(y);
    end();
    const fake_counts c = fake_count_now();
    return wrong + (c.objects || c.pools || c.references || c.buffers || c.complaints);
}

/* Stage of a group, SIMD group of 32, product of 8 by 8, atomics. */
static const char together[] =
    "#include <metal_simdgroup_matrix>\n" HEAD
    "kernel void together(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], "
    "device atomic_int *count [[buffer(2)]], uint lane [[thread_index_in_simdgroup]], uint at "
    "[[thread_position_in_threadgroup]]) {\n"
    "    threadgroup float tile[64];\n"
    "    tile[63 - at] = x[at];\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    y[at] = simd_sum(tile[at]) + 1000 * simd_shuffle_xor(tile[at], ushort(1));\n"
    "    if (lane == 5) atomic_fetch_add_explicit(count, 7, memory_order_relaxed);\n"
    "    simdgroup_float8x8 a, b(1), c = make_filled_simdgroup_matrix<float, 8, 8>(0.25);\n"
    "    simdgroup_load(a, tile, 8, ulong2(0), true);\n"
    "    simdgroup_multiply_accumulate(c, a, b, c);\n"
    "    if (at < 32) simdgroup_store(c, y + 64);\n"
    "}\n";

static int threads_of_a_group_work_together(void) {
    begin();
    int wrong = 0;
    const mtl_id pipeline = pipeline_of(together, "together");
    const mtl_id x = mtl_new_buffer(device, 64 * sizeof(float), MTL_STORAGE_SHARED);
    const mtl_id y = mtl_new_buffer(device, 128 * sizeof(float), MTL_STORAGE_SHARED);
    const mtl_id n = mtl_new_buffer(device, sizeof(int), MTL_STORAGE_SHARED);
    float *const from = mtl_contents(x), *const to = mtl_contents(y);
    for (int i = 0; i < 64; i++) from[i] = (float)i;
    *(int *)mtl_contents(n) = 0;
    for (int round = 0; round < 2; round++) { /* the second one in the reverse order */
        const mtl_id commands = mtl_command_buffer(queue), encoder = mtl_compute_encoder(commands);
        const mtl_id buffers[] = {x, y, n};
        mtl_set_pipeline(encoder, pipeline);
        for (mtl_uint i = 0; i < 3; i++) mtl_set_buffer(encoder, buffers[i], 0, i);
        mtl_dispatch(encoder, (mtl_size){1, 1, 1}, (mtl_size){64, 1, 1});
        mtl_end_encoding(encoder);
        mtl_commit(commands);
        mtl_wait_completed(commands);
        for (int i = 0; i < 64; i++) {
            const float sum = i < 32 ? 32 * 47.5f : 32 * 15.5f;
            wrong += to[i] != sum + 1000 * (float)(63 - (i ^ 1));
            wrong += to[64 + i] != (float)(63 - (i % 8 * 8 + i / 8)) + 0.25f;
        }
    }
    wrong += *(int *)mtl_contents(n) != 4 * 7;
    mtl_release(x), mtl_release(y), mtl_release(n), mtl_release(pipeline);
    end();
    return wrong + (fake_count_now().complaints != 0) + (fake_count_now().objects != 0);
}

static int events_order_two_queues(void) {
    begin();
    const mtl_id other = mtl_new_queue(device, 64), event = mtl_new_shared_event(device);
    const mtl_id pipeline = pipeline_of(doubling, "twice");
    const mtl_id x = mtl_new_buffer(device, BYTES, MTL_STORAGE_SHARED);
    const mtl_id y = mtl_new_buffer(device, BYTES, MTL_STORAGE_SHARED);
    for (int i = 0; i < COUNT; i++) ((float *)mtl_contents(x))[i] = 1;
    const mtl_id later = mtl_command_buffer(other), first = mtl_command_buffer(queue);
    mtl_wait_for_event(later, event, 3);
    mtl_end_encoding(encode_doubling(later, pipeline, y, x));
    mtl_commit(later);
    mtl_end_encoding(encode_doubling(first, pipeline, x, y));
    mtl_signal_event(first, event, 3);
    mtl_commit(first);
    mtl_wait_completed(later); /* which runs the first */
    int wrong = ((float *)mtl_contents(x))[9] != 5.5f;
    wrong += 2 * (mtl_signaled(event) != 3) + 4 * (mtl_status(first) == MTL_STATUS_ERROR);
    mtl_release(other), mtl_release(event), mtl_release(pipeline), mtl_release(x), mtl_release(y);
    end();
    return wrong + 8 * (fake_count_now().objects != 0);
}

static int a_message_to_nil_gives_nothing(void) {
    begin();
    const int wrong = mtl_new_queue(NULL, 1) || mtl_count(NULL) || mtl_utf8(NULL);
    mtl_release(NULL);
    end();
    return wrong;
}

static int errors_come_on_demand_and_late(void) {
    begin();
    int wrong = 0;
    mtl_id error = NULL;
    fake_fail("newLibraryWithSource:options:error:", 1, 5);
    wrong += library_of(doubling, &error) != NULL || mtl_code(error) != 5;
    fake_fail(NULL, 2, 5);
    const mtl_id buffer = mtl_new_buffer(device, 64, MTL_STORAGE_SHARED);
    wrong += !buffer || mtl_new_shared_event(device) != NULL;
    wrong += strcmp(fake_failed(), "newSharedEvent") != 0;
    fake_fail("commit", 1, MTL_ERROR_OUT_OF_MEMORY);
    const mtl_id commands = mtl_command_buffer(queue);
    mtl_commit(commands);
    mtl_wait_completed(commands);
    wrong += mtl_status(commands) != MTL_STATUS_ERROR;
    wrong += mtl_code(mtl_error(commands)) != MTL_ERROR_OUT_OF_MEMORY;
    wrong += strstr(mtl_utf8(mtl_description(mtl_error(commands))), "Insufficient Memory") == NULL;
    fake_remove(true);
    const mtl_id lost = mtl_command_buffer(queue);
    mtl_commit(lost);
    mtl_wait_completed(lost);
    wrong += mtl_code(mtl_error(lost)) != 11 || mtl_new_buffer(device, 64, 0) != NULL;
    mtl_release(buffer);
    end();
    return wrong + (fake_count_now().objects != 0);
}

/* ---- what ends a process, or is complained about ---- */

static mtl_id new_buffer(void) { return mtl_new_buffer(device, BYTES, MTL_STORAGE_SHARED); }

static void released(void) {
    const mtl_id buffer = new_buffer();
    mtl_release(buffer);
    (void)mtl_contents(buffer);
}
static void released_twice(void) {
    const mtl_id buffer = new_buffer();
    mtl_release(buffer);
    mtl_release(buffer);
}
static void borrowed_and_released(void) {
    mtl_release(mtl_command_buffer(queue));
    end();
}
static void used_after_its_pool(void) {
    void *inner = mtl.objc_autoreleasePoolPush();
    const mtl_id text = string("gone");
    mtl.objc_autoreleasePoolPop(inner);
    (void)mtl_utf8(text);
}
static void without_a_pool(void) {
    mtl.objc_autoreleasePoolPop(pool);
    (void)string("lost");
}
static void pops_in_the_wrong_order(void) {
    (void)mtl.objc_autoreleasePoolPush();
    mtl.objc_autoreleasePoolPop(pool);
}
static void pops_twice(void) {
    mtl.objc_autoreleasePoolPop(pool);
    mtl.objc_autoreleasePoolPop(pool);
}
static void too_many_releases_of_a_device(void) {
    mtl_release(device);
    mtl_release(device);
}
static void unknown_selector(void) { (void)mtl_contents(queue); }
static void wrong_argument(void) { (void)mtl_new_library(device, queue, NULL, NULL); }
static void beyond_an_array(void) {
    (void)mtl_object_at(mtl_array_of(mtl.objc_getClass("NSArray"), queue), 1);
}

static mtl_id encoder_of(mtl_id commands) { return mtl_compute_encoder(commands); }
static void second_encoder(void) {
    const mtl_id commands = mtl_command_buffer(queue);
    (void)encoder_of(commands);
    (void)encoder_of(commands);
}
static void encoder_not_ended(void) {
    (void)encoder_of(mtl_command_buffer(queue));
    end();
}
static void encoder_used_after_its_end(void) {
    const mtl_id encoder = encoder_of(mtl_command_buffer(queue));
    mtl_end_encoding(encoder);
    mtl_set_buffer(encoder, NULL, 0, 0);
}
static void commit_with_an_open_encoder(void) {
    const mtl_id commands = mtl_command_buffer(queue);
    (void)encoder_of(commands);
    mtl_commit(commands);
}
static void commit_twice(void) {
    const mtl_id commands = mtl_command_buffer(queue);
    mtl_commit(commands);
    mtl_commit(commands);
}
static void wait_without_commit(void) { mtl_wait_completed(mtl_command_buffer(queue)); }
static void too_many_command_buffers(void) {
    for (int i = 0; i < 65; i++) (void)mtl_command_buffer(queue);
}
static void index_too_large(void) {
    mtl_set_buffer(encoder_of(mtl_command_buffer(queue)), new_buffer(), 0, 31);
}
static void too_many_bytes(void) {
    static const char bytes[4096];
    mtl_set_bytes(encoder_of(mtl_command_buffer(queue)), bytes, sizeof bytes, 0);
}
static void launch(mtl_size groups, mtl_size threads, bool is_bound) {
    const mtl_id encoder = encoder_of(mtl_command_buffer(queue)),
                 pipeline = pipeline_of(doubling, "twice");
    mtl_set_pipeline(encoder, pipeline);
    for (mtl_uint i = 0; i < 3 && is_bound; i++) mtl_set_buffer(encoder, new_buffer(), 0, i);
    mtl_dispatch(encoder, groups, threads);
}
static void buffer_not_bound(void) { launch((mtl_size){1, 1, 1}, (mtl_size){64, 1, 1}, false); }
static void no_groups(void) { launch((mtl_size){0, 1, 1}, (mtl_size){64, 1, 1}, true); }
static void too_many_threads(void) { launch((mtl_size){1, 1, 1}, (mtl_size){65, 1, 1}, true); }

static void fast_math(void) {
    const mtl_id options = mtl_new(mtl.objc_getClass("MTLCompileOptions"));
    (void)mtl_new_library(device, string(doubling), options, NULL);
}
static void write_behind_a_buffer(void) {
    const mtl_id buffer = new_buffer();
    ((float *)mtl_contents(buffer))[COUNT] = 1;
    mtl_release(buffer);
}

/* An event that a failed command buffer does not signal; the host does, 20 ms later. */
static int failed_command_buffers_do_not_signal(void) {
    begin();
    const mtl_id event = mtl_new_shared_event(device), commands = mtl_command_buffer(queue);
    fake_fail("commit", 1, 1);
    mtl_signal_event(commands, event, 1);
    mtl_commit(commands);
    mtl_wait_completed(commands);
    const int wrong = mtl_signaled(event) != 0;
    mtl_set_signaled(event, 1);
    const mtl_id waiting = mtl_command_buffer(queue);
    mtl_wait_for_event(waiting, event, 1);
    mtl_commit(waiting);
    mtl_wait_completed(waiting);
    return wrong + (mtl_status(waiting) != MTL_STATUS_COMPLETED);
}

/* ---- texts ---- */

typedef struct text {
    const char *name, *text, *log; /* a part of the message */
} text;

#define BODY(parameters, body) HEAD "kernel void k(" parameters ") {\n" body "\n}\n"
#define POINTER                "device float *x [[buffer(0)]]"
static const text texts[] = {
    {"an unknown name", BODY(POINTER, "x[0] = no_such_thing;"), "no_such_thing"},
    {"a pointer without an address space", BODY(POINTER, "float *y = x; y[0] = 1;"),
     "cannot initialize"},
    {"a pointer of another address space",
     BODY(POINTER, "threadgroup float t[4]; device float *y = t; y[0] = 1;"), "cannot initialize"},
    {"a function that takes another address space",
     HEAD "static inline float f(threadgroup float *p) { return *p; }\nkernel void k(" POINTER
          ") { x[0] = f(x); }\n",
     "no matching function"},
    {"a constant that is written", BODY("constant float *x [[buffer(0)]]", "x[0] = 1;"),
     "read-only"},
    {"double", BODY(POINTER, "double y = 1; x[0] = y;"), "'double' is not supported"},
    {"long long", BODY(POINTER, "long long y = 1; x[0] = y;"), "'long long' is not supported"},
    {"a parameter without an attribute", BODY("device float *x", "x[0] = 1;"), "has no attribute"},
    {"a buffer above 30", BODY("device float *x [[buffer(31)]]", "x[0] = 1;"), "above 30"},
    {"positions of two widths",
     BODY("uint a [[thread_position_in_grid]], uint3 b [[threads_per_threadgroup]]", ""),
     "different widths"},
    {"compare and exchange of floats",
     BODY("device atomic_float *x [[buffer(0)]]",
          "float a = 0; while (!atomic_compare_exchange_weak_explicit(x, &a, 1.0f, "
          "memory_order_relaxed, memory_order_relaxed)) {}"),
     "compares floats"},
    {"matrices without their header", BODY(POINTER, "simdgroup_float8x8 m; x[0] = 1;"),
     "simdgroup_float8x8"},
    {"a matrix of another type",
     "#include <metal_simdgroup_matrix>\n" BODY(POINTER,
                                                "simdgroup_half8x8 m; simdgroup_load(m, x);"),
     "its own type"},
};

static const text *current_text;

static int a_text_is_refused(void) {
    begin();
    mtl_id error = NULL;
    const mtl_id library = library_of(current_text->text, &error);
    const char *found = error ? mtl_utf8(mtl_description(error)) : "";
    if (!library && strstr(found, current_text->log)) return 0;
    (void)fprintf(stderr, "%s: the message \"%s\" has no \"%s\"\n", current_text->name, found,
                  current_text->log);
    return 1;
}

/* Groups whose threads part at a barrier end their command buffer. */
static int threads_that_part_are_noticed(void) {
    static const char parting[] =
        HEAD "kernel void part(device float *x [[buffer(0)]], uint at "
             "[[thread_position_in_threadgroup]]) {\n"
             "    if (at < 32) threadgroup_barrier(mem_flags::mem_threadgroup);\n"
             "    else threadgroup_barrier(mem_flags::mem_threadgroup); x[at] = 1;\n}\n";
    begin();
    const mtl_id commands = mtl_command_buffer(queue), encoder = mtl_compute_encoder(commands);
    mtl_set_pipeline(encoder, pipeline_of(parting, "part"));
    mtl_set_buffer(encoder, new_buffer(), 0, 0);
    mtl_dispatch(encoder, (mtl_size){1, 1, 1}, (mtl_size){64, 1, 1});
    mtl_end_encoding(encoder);
    mtl_commit(commands);
    mtl_wait_completed(commands);
    return mtl_status(commands) != MTL_STATUS_ERROR || fake_count_now().complaints != 1;
}

/* ---- each in a process of its own ---- */

typedef struct row {
    const char *name;
    int (*works)(void);   /* or */
    void (*breaks)(void); /* after begin */
    const char *said;     /* by the stand-in */
    bool is_complaint;    /* else the process ends */
} row;

static const row *current;

static int run_row(void) {
    if (current->works) return current->works();
    begin();
    current->breaks();
    return fake_count_now().complaints == 1 ? 0 : 3;
}

/* Its exit status, or 1000 and the signal; what it wrote to stderr. */
static int in_child(int (*run)(void), char *said, size_t said_bytes) {
    int ends[2], status = -1;
    (void)fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        _exit(run());
    }
    (void)close(ends[1]);
    size_t used = 0;
    for (ssize_t more; (more = read(ends[0], said + used, said_bytes - 1 - used)) > 0;)
        used += (size_t)more;
    said[used] = 0;
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void row_holds(void **state) {
    static char said[1 << 16];
    current = *state;
    const int wanted = current->works || current->is_complaint ? 0 : 1000 + SIGABRT;
    const int found = in_child(run_row, said, sizeof said);
    if (found != wanted || (current->said && !strstr(said, current->said)))
        fail_msg("%d instead of %d; it said \"%s\"", found, wanted, said);
}

static void text_is_refused(void **state) {
    static char said[1 << 16];
    current_text = *state;
    if (in_child(a_text_is_refused, said, sizeof said) != 0) fail_msg("%s", said);
}

#define WORKS(function)                                                                            \
    { #function, function, NULL, NULL, false }
#define ENDS(function, said)                                                                       \
    { #function " ends the process", NULL, function, said, false }
#define COMPLAINT(function, said)                                                                  \
    { #function " is complained about", NULL, function, said, true }

static row rows[] = {
    WORKS(a_kernel_runs_when_it_is_waited_for),
    WORKS(threads_of_a_group_work_together),
    WORKS(events_order_two_queues),
    WORKS(a_message_to_nil_gives_nothing),
    WORKS(errors_come_on_demand_and_late),
    WORKS(failed_command_buffers_do_not_signal),
    WORKS(threads_that_part_are_noticed),
    ENDS(released, "contents to a released MTLBuffer"),
    ENDS(released_twice, "release to a released MTLBuffer"),
    ENDS(borrowed_and_released, "release to a released MTLCommandBuffer"),
    ENDS(used_after_its_pool, "UTF8String to a released NSString"),
    ENDS(pops_twice, "a pool that this thread does not have"),
    ENDS(too_many_releases_of_a_device, "a device that has no reference left"),
    ENDS(unknown_selector, "-[MTLCommandQueue contents]: unrecognized selector"),
    ENDS(wrong_argument, "MTLCommandQueue instead of NSString"),
    ENDS(beyond_an_array, "objectAtIndex: 1 of an array of 1"),
    ENDS(second_encoder, "while an encoder of the command buffer is open"),
    ENDS(encoder_not_ended, "without endEncoding"),
    ENDS(encoder_used_after_its_end, "to an encoder that has ended"),
    ENDS(commit_with_an_open_encoder, "commit while an encoder"),
    ENDS(commit_twice, "commit to a command buffer that is committed"),
    ENDS(wait_without_commit, "waitUntilCompleted without a commit"),
    ENDS(too_many_command_buffers, "all 64 of the queue are there and none is committed"),
    ENDS(index_too_large, "index 31 is above 30"),
    ENDS(too_many_bytes, "4096 bytes; 1 to 4095"),
    ENDS(buffer_not_bound, "twice: buffer 0 is not bound"),
    ENDS(no_groups, "twice: a launch without threads"),
    ENDS(too_many_threads, "65 threads in a group, which may have 64"),
    COMPLAINT(without_a_pool, "an autoreleased NSString without a pool"),
    COMPLAINT(pops_in_the_wrong_order, "a pool ends before one that was opened later"),
    COMPLAINT(fast_math, "compiled with fast math"),
    COMPLAINT(write_behind_a_buffer, "byte 0 behind a buffer of 1024 bytes was written"),
};

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows, TEXTS = sizeof texts / sizeof *texts };
    struct CMUnitTest tests[ROWS + TEXTS];
    for (size_t i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, row_holds, NULL, NULL, &rows[i]};
    for (size_t i = 0; i < TEXTS; i++)
        tests[ROWS + i] = (struct CMUnitTest){texts[i].name, text_is_refused, NULL, NULL,
                                              (void *)(uintptr_t)&texts[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
