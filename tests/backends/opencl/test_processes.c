/* What a process decides once: which OpenCL library, which devices. Each row is a process of its own. */
#include "host.h"

#include <sys/wait.h>

/* The copy comes behind the kernel of the other device, and what that does next behind the copy. */
static int copy_both_ways(void *first, void *second) {
    uint32_t x[N], y[N] = {0}, junk[N];
    for (uint32_t i = 0; i < N; i++) x[i] = i, junk[i] = 0xdeadbeef;
    void *a = upload(x, sizeof x), *b = cl->alloc(second, sizeof x);
    void *c = cl->alloc(first, sizeof x + 64), *kernel = make_kernel(&slow);
    if (!a || !b || !c || !kernel) return 1;
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    assert_ok(cl->sync(second, NULL));
    for (int run = 0; run < 3; run++) {
        assert_ok(cl->copy(second, NULL, WB_COPY_UPLOAD, at(b, 0), at(junk, 0), sizeof junk));
        assert_ok(run_on(NULL, kernel, 3, memory, "slow", NULL));
        assert_ok(cl->copy_peer(first, NULL, at(c, 64), second, at(b, 0), sizeof x));
        assert_ok(cl->copy(first, NULL, WB_COPY_DOWNLOAD, at(y, 0), at(c, 64), sizeof y));
        assert_ok(cl->sync(first, NULL));
        for (uint32_t i = 0; i < N; i += 37)
            if (y[i] != slow_result(i)) return 2;
    }
    assert_ok(run_on(NULL, kernel, 3, memory, "slow", NULL)); /* the second device is busy */
    assert_ok(cl->copy_peer(second, NULL, at(a, 0), first, at(c, 64), sizeof x));
    assert_ok(cl->copy(first, NULL, WB_COPY_UPLOAD, at(c, 64), at(junk, 0), sizeof junk));
    assert_ok(cl->sync(first, NULL));
    download(y, a, 0, sizeof y);
    if (y[37] != slow_result(37)) return 3;
    cl->release(kernel);
    cl->free(second, a, sizeof x), cl->free(second, b, sizeof x), cl->free(first, c, sizeof x + 64);
    return 0;
}

/* Events of one device order another. */
static int wait_for_each_other(void *first, void *second) {
    uint32_t x[N] = {0}, y[N] = {0};
    void *a = upload(x, sizeof x), *b = cl->alloc(second, sizeof x), *kernel = make_kernel(&slow);
    const wb_memory memory[] = {at(a, 0), at(b, 0), at(NULL, 0)};
    assert_ok(run_on(NULL, kernel, 3, memory, "slow", NULL));
    assert_ok(cl->copy(second, NULL, WB_COPY_DOWNLOAD, at(y, 0), at(b, 0), sizeof y));
    void *event = cl->record(second, NULL);
    assert_ok(cl->wait(first, NULL, event));
    cl->release_event(second, event);
    assert_ok(cl->sync(first, NULL)); /* hence what came before the event is done */
    const bool right = y[0] == slow_result(0);
    assert_ok(cl->sync(second, NULL));
    cl->release(kernel);
    cl->free(second, a, sizeof x), cl->free(second, b, sizeof x);
    return right ? 0 : 4;
}

static int two_devices(void) {
    if (!open_device(1)) return SKIPPED;
    void *second = device, *first = cl->open(0);
    if (!first) return 5;
    int fault = copy_both_ways(first, second);
    if (!fault) fault = wait_for_each_other(first, second);
    device = first; /* compiles for itself: binaries are told apart */
    if (!fault) fault = copy_both_ways(second, first);
    cl->close(first), cl->close(second);
    return fault;
}

/* No device, and the reason says `text`. Skipped where it is for want of a loader or of PoCL. */
static int no_device_because(const char *text, bool loads) {
    char reason[256] = "";
    cl = open_plugin();
    if (cl->load(reason, sizeof reason) != loads) return loads ? SKIPPED : 1;
    if (loads && cl->count(reason, sizeof reason) != 0) return SKIPPED; /* another driver's */
    if (!strstr(reason, text)) print_message("\"%s\" does not say \"%s\"\n", reason, text);
    if (!strstr(reason, text)) return strstr(reason, "CL_PLATFORM_NOT_FOUND_KHR") ? SKIPPED : 2;
    if (cl->open(0)) return 3;
    if (wb_error_status() != WB_ERROR_DEVICE || !strstr(wb_error_message(), text)) return 4;
    return 0;
}

static int all_hidden(void) { return no_device_because("POCL_DEVICES", true); }
static int no_driver(void) { return no_device_because("CL_PLATFORM_NOT_FOUND_KHR", true); }
static int no_library(void) { return no_device_because("/no/such/library.so", false); }
static int library_of_something_else(void) {
    return no_device_because("no clGetPlatformIDs", false);
}

typedef struct child {
    const char *name, *variable, *value;
    int (*run)(void);
} child;

static void run_child(void **state) {
    const child *c = *state;
    int result = 1;
    (void)fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        (void)setenv(c->variable, c->value, 1);
        const int failed = c->run();
        (void)fflush(NULL);
        exit(failed);
    }
    assert_int_equal(waitpid(process, &result, 0), process);
    if (WIFEXITED(result) && WEXITSTATUS(result) == SKIPPED) skip();
    assert_int_equal(result, 0);
}

int main(void) {
    (void)unsetenv("WEBER_DEVICE"); /* the plugin has one host: this file */
    static child children[] = {
        {"two devices copy from each other", "POCL_DEVICES",         "pthread basic",       two_devices},
        {"hidden devices are a reason",      "POCL_DEVICES",         "",                    all_hidden },
        {"no driver is a reason",            "OCL_ICD_VENDORS",      "/no/such/folder",     no_driver  },
        {"no library is a reason",           "WEBER_OPENCL_LIBRARY", "/no/such/library.so", no_library },
        {"another library is a reason",      "WEBER_OPENCL_LIBRARY", "libm.so.6",
         library_of_something_else                                                                     },
    };
    struct CMUnitTest tests[sizeof children / sizeof *children];
    for (size_t i = 0; i < sizeof children / sizeof *children; i++)
        tests[i] = (struct CMUnitTest){children[i].name, run_child, NULL, NULL, &children[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
