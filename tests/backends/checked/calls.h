/* For tests that drive the checked backend through its table. */
#ifndef WB_TESTS_CHECKED_CALLS_H
#define WB_TESTS_CHECKED_CALLS_H

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/device.h"

enum { N = 8, BYTES = N * sizeof(float) };

static const wb_backend *const checked = &wb_checked_backend;

/* ---- one test: both devices, and a kernel for each of two kinds ---- */

static void *device, *other;
static void *scale;  /* y = late x */
static void *gather; /* of single numbers: x, index, y */

static inline void *new_scale(const wb_backend *backend, void *on) {
    /* clang-format off */
    wb_instruction instructions[] = {
        {.code = WB_CODE_load, .type = WB_R_F32, .index = 0},
        {.code = WB_CODE_late, .type = WB_R_F32, .index = 0},
        {.code = WB_CODE_mul, .type = WB_R_F32, .from = WB_R_F32, .in = {0, 1, WB_NO_VALUE}},
        {.code = WB_CODE_store, .type = WB_R_F32, .in = {2, WB_NO_VALUE, WB_NO_VALUE}, .index = 1},
    };
    /* clang-format on */
    wb_access accesses[] = {{.dtype = WB_F32, .argument = 0, .strides = {1}},
                            {.dtype = WB_F32, .argument = 1, .strides = {1}}};
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

static inline void *new_gather(void *on) {
    const wb_call call = {
        .kind = WB_CALL_gather,
        .dtype = WB_F32,
        .index = {.inner = 1, .size = N, .outer = 1, .count = N, .index_dtype = WB_I32}};
    return checked->lower(on, &call, NULL, 0);
}

/* The pending error has this status, and its message these words; it is taken. */
static inline void assert_error(wb_status status, const char *words) {
    char text[1024];
    const wb_status found = wb_take_error(text, sizeof text);
    if (!strstr(text, words)) fail_msg("\"%s\" has no \"%s\"", text, words);
    assert_int_equal(found, status);
}

static inline int setup(void **state) {
    (void)state;
    wb_clear_error();
    device = checked->open(0), other = checked->open(1);
    scale = new_scale(checked, device), gather = new_gather(device);
    return device && other && scale && gather && !wb_failed() ? 0 : -1;
}

static inline int teardown(void **state) {
    (void)state;
    checked->release(scale), checked->release(gather);
    checked->close(device), checked->close(other);
    if (wb_failed()) print_error("left behind: %s\n", wb_error_message());
    return wb_failed() ? -1 : 0;
}

/* ---- the calls, shorter ---- */

static inline void *new_memory(void) { return checked->alloc(device, BYTES); }
static inline void drop(void *handle) { checked->free(device, handle, BYTES); }

static inline wb_status upload(void *queue, void *to, const void *from) {
    union {
        const void *from;
        void *to;
    } cast = {.from = from};
    return checked->copy(device, queue, WB_COPY_UPLOAD, (wb_memory){to, 0}, (wb_memory){cast.to, 0},
                         BYTES);
}

static inline wb_status download(void *queue, void *to, void *from) {
    return checked->copy(device, queue, WB_COPY_DOWNLOAD, (wb_memory){to, 0}, (wb_memory){from, 0},
                         BYTES);
}

/* y = factor x, or with a last argument the gather */
static inline wb_status run(void *queue, void *kernel, const char *what, void *const handles[3],
                            double factor) {
    void *scratch = checked->alloc(device, 1 << 16);
    const wb_memory memory[] = {{handles[0], 0}, {handles[1], 0}, {handles[2], 0}, {scratch, 0}};
    const bool is_gather = handles[2] != NULL;
    const wb_argument arguments[] = {{0, 0}, {1, 0}, {is_gather ? 2 : 3, 0}, {3, 0}};
    const wb_command command = {
        .kernel = kernel, .narguments = is_gather ? 4 : 3, .arguments = arguments, .what = what};
    uint64_t late;
    memcpy(&late, &factor, sizeof late);
    const wb_status status = checked->run(device, queue, &command, 1, memory, &late);
    checked->free(device, scratch, 1 << 16); /* lives until the command is done */
    return status;
}

static inline wb_status run_scale(void *queue, void *y, void *x, double factor) {
    return run(queue, scale, "scale", (void *[]){x, y, NULL}, factor);
}

static inline wb_status sync_queue(void *queue) { return checked->sync(device, queue); }

static const float numbers[N] = {1, 2, 3, 4, 5, 6, 7, 8};

static inline void assert_number(float found, float wanted) {
    if (!(found == wanted)) fail_msg("%g, not %g", (double)found, (double)wanted);
}

static inline void assert_numbers(const float *found, float factor) {
    for (int i = 0; i < N; i++) assert_number(found[i], factor * numbers[i]);
}

static inline void assert_nan(const float *found) {
    for (int i = 0; i < N; i++) assert_true(isnan(found[i]));
}

/* Places for downloads are static: one that a failed test leaves behind is done when the device
 * closes. */

static inline void assert_program_runs(void) {
    void *x = new_memory(), *y = new_memory();
    static float found[N];
    assert_int_equal(upload(NULL, x, numbers), WB_OK);
    /* the late value is gone when this returns */
    assert_int_equal(run_scale(NULL, y, x, 2), WB_OK);
    assert_int_equal(download(NULL, found, y), WB_OK);
    assert_nan(found);
    assert_int_equal(sync_queue(NULL), WB_OK);
    assert_numbers(found, 2);
    drop(x), drop(y);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#endif
