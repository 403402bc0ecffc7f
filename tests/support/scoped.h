/* Setup and teardown of tests: each runs in a scope and leaves nothing behind.
 *
 *     cmocka_unit_test_setup_teardown(test, open_scope, close_scope) */
#ifndef WB_TESTS_SCOPED_H
#define WB_TESTS_SCOPED_H

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <weber/device.h>

static wb_live_counts live_before;

/* WEBER_DEVICE=backend[:index] puts the arrays of every test there. */
static inline bool choose_device(void) {
    static bool chosen;
    if (chosen || !getenv("WEBER_DEVICE")) return true;
    const wb_device *device = wb_get_device();
    if (!device) return false;
    wb_set_default_device(device);
    return chosen = true;
}

/* wb_live without memory that waits for the device. */
static inline wb_live_counts live_now(void) {
    (void)wb_device_sync(wb_default_device());
    return wb_live();
}

/* True where the arrays of the tests are in the host's memory, computed when asked: for what only
 * holds there. */
static inline bool is_on_host(void) { return wb_default_device() == wb_cpu_device(); }

/* True where what stands around an operation changes none of its bits ("the same bits" in
 * weber/device.h): the CPU computes, perhaps as the device `checked`. */
static inline bool is_computed_by_cpu(void) {
    const char *backend = wb_device_backend_name(wb_default_device());
    return strcmp(backend, "CPU") == 0 || strcmp(backend, "checked") == 0;
}

/* The status, or else that of what came late: on a device a bad index is an error of the next
 * sync. */
static inline wb_status with_late(wb_status status) {
    return status == WB_OK ? wb_device_sync(wb_default_device()) : status;
}

/* True where every other program is compiled, which takes long: what runs in many forms elsewhere
 * runs in fewer there, unless WEBER_TEST_ALL is set. */
static inline bool compiles_kernels(void) {
    const char *text = getenv("WEBER_DEVICE");
    return text && strncmp(text, "checked", 7) != 0 && strncmp(text, "CPU", 3) != 0 &&
           !getenv("WEBER_TEST_ALL");
}

/* How many of so many random cases run. */
static inline int64_t cases_of(int64_t usual) {
    return compiles_kernels() ? (usual + 9) / 10 : usual;
}

/* ---- devices without f64 ---- */

/* The type of tests that have no other reason for f64 than exact results. */
static inline wb_dtype widest(void) {
    return wb_device_properties(wb_default_device()).has_f64 ? WB_F64 : WB_F32;
}

/* A tolerance: of f64, and where that is not to be had. */
static inline double coarse(double of_f64, double of_f32) {
    return widest() == WB_F64 ? of_f64 : of_f32;
}

/* What a device cannot have is no failure there: where a message says so, the rest of the test is
 * skipped. */
void skip_without_f64(const char *message, const char *file, int line);
extern bool is_skipped_without_f64; /* the test that runs */

/* cmocka's functions with that, for all assertions. */
void scoped_fail(const char *file, int line);
void scoped_true(LargestIntegralType holds, const char *what, const char *file, int line);
void scoped_equal(LargestIntegralType a, LargestIntegralType b, const char *file, int line);
void scoped_float(float a, float b, float epsilon, const char *file, int line);
void scoped_string(const char *a, const char *b, const char *file, int line);
void scoped_memory(const void *a, const void *b, size_t bytes, const char *file, int line);
void scoped_range(LargestIntegralType x, LargestIntegralType low, LargestIntegralType high,
                  const char *file, int line);
#define _fail                scoped_fail
#define _assert_true         scoped_true
#define _assert_int_equal    scoped_equal
#define _assert_float_equal  scoped_float
#define _assert_string_equal scoped_string
#define _assert_memory_equal scoped_memory
#define _assert_in_range     scoped_range

/* For a test of arrays that are larger than what addresses of 32 bits reach: it skips there. */
#define NEEDS_64_BITS()                                                                            \
    if (sizeof(void *) < 8) skip()

/* ---- a test ---- */

static inline int open_scope(void **state) {
    (void)state;
    wb_clear_error();
    is_skipped_without_f64 = false;
    if (!choose_device()) {
        print_error("%s\n", wb_error_message());
        return 1;
    }
    live_before = live_now();
    wb_scope_open();
    return 0;
}

static inline int close_scope(void **state) {
    (void)state;
    if (is_skipped_without_f64) {
        (void)wb_scope_close();
        wb_clear_error();
        return 0;
    }
    if (wb_failed()) print_error("left behind: %s\n", wb_error_message());
    if (wb_failed() || wb_scope_close() != WB_OK) return 1;
    if (wb_device_sync(wb_default_device()) != WB_OK)
        return 1; /* what came late, and memory in flight */
    const wb_live_counts live = live_now();
    if (live.arrays == live_before.arrays && live.buffers == live_before.buffers &&
        live.objects == live_before.objects)
        return 0;
    print_error("left behind: %lld arrays, %lld buffers, %lld objects\n",
                (long long)(live.arrays - live_before.arrays),
                (long long)(live.buffers - live_before.buffers),
                (long long)(live.objects - live_before.objects));
    return 1;
}

/* The pending error has this status and its message contains text; it is taken. */
#define assert_error(status, text)                                                                 \
    do {                                                                                           \
        char message_[1024];                                                                       \
        const wb_status status_ = wb_take_error(message_, sizeof message_);                        \
        if (!strstr(message_, text)) skip_without_f64(message_, __FILE__, __LINE__);               \
        if (!strstr(message_, text))                                                               \
            fail_msg("message \"%s\" does not say \"%s\"", message_, text);                        \
        assert_int_equal(status_, status);                                                         \
    } while (0)

#endif
