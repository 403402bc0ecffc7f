/* What a process decides once: each row is a process of its own. */
#ifndef WB_TESTS_BACKENDS_PROCESSES_H
#define WB_TESTS_BACKENDS_PROCESSES_H

#include "backends/host.h"

#include <sys/wait.h>

/* ---- rows ---- */

typedef struct child {
    const char *name, *variable, *value; /* variable: NULL: none */
    int (*run)(void);
} child;

static inline void run_child(void **state) {
    const child *c = *state;
    int result = 1;
    (void)fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        if (c->variable) (void)setenv(c->variable, c->value, 1);
        const int failed = c->run();
        (void)fflush(NULL);
        exit(failed);
    }
    assert_int_equal(waitpid(process, &result, 0), process);
    if (WIFEXITED(result) && WEXITSTATUS(result) == SKIPPED) skip();
    assert_int_equal(result, 0);
}

/* ---- two devices ---- */

/* The library syncs both sides around a copy between them; a backend may order them by itself. */
static bool orders_peers;

static inline void keep_step(void *one, void *other) {
    if (orders_peers) return;
    assert_ok(backend->sync(one, NULL));
    assert_ok(backend->sync(other, NULL));
}

/* The copy comes after the kernel of the other device, and that device's next work after the
 * copy. */
static inline int copy_both_ways(void *first, void *second) {
    uint32_t x[N], y[N] = {0}, junk[N];
    for (uint32_t i = 0; i < N; i++) x[i] = i, junk[i] = 0xdeadbeef;
    void *a = upload(x, sizeof x), *b = backend->alloc(second, sizeof x);
    void *c = backend->alloc(first, sizeof x + 64), *kernel = make_kernel(&slow);
    if (!a || !b || !c || !kernel) return 1;
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    assert_ok(backend->sync(second, NULL));
    for (int run = 0; run < 3; run++) {
        assert_ok(backend->copy(second, NULL, WB_COPY_UPLOAD, at(b, 0), at(junk, 0), sizeof junk));
        assert_ok(run_on(NULL, kernel, 3, memory, "slow", NULL));
        keep_step(first, second);
        assert_ok(backend->copy_peer(first, NULL, at(c, 64), second, at(b, 0), sizeof x));
        assert_ok(backend->copy(first, NULL, WB_COPY_DOWNLOAD, at(y, 0), at(c, 64), sizeof y));
        assert_ok(backend->sync(first, NULL));
        for (uint32_t i = 0; i < N; i += 37)
            if (y[i] != slow_result(i)) return 2;
    }
    assert_ok(run_on(NULL, kernel, 3, memory, "slow", NULL)); /* the second device is busy */
    keep_step(first, second);
    assert_ok(backend->copy_peer(second, NULL, at(a, 0), first, at(c, 64), sizeof x));
    keep_step(first, second);
    assert_ok(backend->copy(first, NULL, WB_COPY_UPLOAD, at(c, 64), at(junk, 0), sizeof junk));
    assert_ok(backend->sync(first, NULL));
    download(y, a, 0, sizeof y);
    if (y[37] != slow_result(37)) return 3;
    backend->release(kernel);
    backend->free(second, a, sizeof x), backend->free(second, b, sizeof x),
        backend->free(first, c, sizeof x + 64);
    return 0;
}

/* Events of one device order another. */
static inline int wait_for_each_other(void *first, void *second) {
    uint32_t x[N] = {0}, y[N] = {0};
    void *a = upload(x, sizeof x), *b = backend->alloc(second, sizeof x),
         *kernel = make_kernel(&slow);
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    assert_ok(run_on(NULL, kernel, 3, memory, "slow", NULL));
    assert_ok(backend->copy(second, NULL, WB_COPY_DOWNLOAD, at(y, 0), at(b, 0), sizeof y));
    void *event = backend->record(second, NULL);
    assert_ok(backend->wait(first, NULL, event));
    backend->release_event(second, event);
    assert_ok(backend->sync(first, NULL)); /* hence what came before the event is done */
    const bool right = y[0] == slow_result(0);
    assert_ok(backend->sync(second, NULL));
    backend->release(kernel);
    backend->free(second, a, sizeof x), backend->free(second, b, sizeof x);
    return right ? 0 : 4;
}

static inline int two_devices(void) {
    if (!open_device(1)) return SKIPPED;
    void *second = device, *first = backend->open(0);
    if (!first) return 5;
    int fault = copy_both_ways(first, second);
    if (!fault) fault = wait_for_each_other(first, second);
    device = first; /* compiles for itself: binaries are told apart */
    if (!fault) fault = copy_both_ways(second, first);
    backend->close(first), backend->close(second);
    return fault;
}

/* ---- none ---- */

/* No device, and the reason says `text`; skipped where there is a device, or the reason says
 * `unless` (NULL: nothing). */
static inline int no_device_because(const char *text, bool loads, const char *unless) {
    char reason[256] = "";
    backend = open_plugin();
    if (backend->load(reason, sizeof reason) != loads) return loads ? SKIPPED : 1;
    if (loads && backend->count(reason, sizeof reason) != 0) return SKIPPED; /* another driver's */
    if (!strstr(reason, text)) {
        print_message("\"%s\" does not say \"%s\"\n", reason, text);
        return unless && strstr(reason, unless) ? SKIPPED : 2;
    }
    if (backend->open(0)) return 3;
    if (wb_error_status() != WB_ERROR_DEVICE || !strstr(wb_error_message(), text)) return 4;
    return 0;
}

#endif
