/* What a program with Weber sees of Metal, on the stand-in for Apple's runtime: arrays that move
 * between Metal and other devices, and an error, with its reason, for all that can go wrong there.
 * Each row is a process of its own, since libraries are opened once. */
#include "stand_in.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

enum { COUNT = 1000 };

typedef struct row {
    const char *name, *variable, *value; /* variable: NULL: none */
    int (*run)(void);
} row;

/* ---- a step of a program ---- */

/* y = 3 x + 1 on the device, read. */
static wb_status step(const wb_device *device, float y[COUNT]) {
    float x[COUNT];
    for (int i = 0; i < COUNT; i++) x[i] = (float)i;
    (void)wb_scope_open();
    wb_array *there = wb_to(device, wb_from(WB_F32, x, COUNT));
    (void)wb_read(wb_add_number(wb_mul_number(there, 3), 1), y, COUNT * sizeof *y);
    (void)wb_scope_close();
    return wb_error_status();
}

static bool is_right(const float y[COUNT]) {
    for (int i = 0; i < COUNT; i++)
        if (y[i] != 3 * (float)i + 1) return false;
    return true;
}

static bool works(const wb_device *device) {
    float y[COUNT] = {0};
    return step(device, y) == WB_OK && is_right(y);
}

/* The pending error is this one and says all of it; then it is taken away. */
static bool is_told(wb_status status, const char *first, const char *second) {
    char message[1024] = "";
    const wb_status found = wb_error_status();
    (void)wb_take_error(message, sizeof message);
    if (found == status && strstr(message, first) && strstr(message, second)) return true;
    print_error("status %d instead of %d, \"%s\" without \"%s\" or \"%s\"\n", (int)found,
                (int)status, message, first, second);
    return false;
}

/* ---- what goes wrong ---- */

static int a_device_vanishes(void) {
    const wb_device *gpu = wb_get_device("Metal", 0);
    float y[COUNT];
    if (!gpu || !works(gpu)) return 1;
    fake_remove(true);
    for (int i = 0; i < 2; i++) { /* the second one hangs no more than the first */
        if (step(gpu, y) == WB_OK) return 2;
        if (!is_told(WB_ERROR_DEVICE, "the device could not finish it", "device removed")) return 3;
    }
    if (!works(wb_cpu_device())) return 4;
    fake_remove(false);
    return fake_count_now().complaints ? 5 : 0;
}

/* It vanishes while work of the program is on its way. */
static int a_device_vanishes_in_the_middle(void) {
    const wb_device *gpu = wb_get_device("Metal", 0);
    float y[COUNT];
    if (!gpu || !works(gpu)) return 1;
    wb_array *x = wb_to(gpu, wb_zeros(WB_F32, COUNT)), *sum = wb_exp(x);
    if (wb_eval(sum) != WB_OK) return 2;
    fake_remove(true); /* what was committed has not run yet */
    if (wb_read(sum, y, sizeof y) == WB_OK) return 3;
    if (!is_told(WB_ERROR_DEVICE, "exp: ", "MTLCommandBufferError 11 device removed")) return 4;
    wb_free(sum), wb_free(x);
    return works(wb_cpu_device()) ? 0 : 5;
}

static int memory_runs_out(void) {
    const wb_device *gpu = wb_get_device("Metal", 0);
    if (!gpu || !works(gpu)) return 1;
    (void)wb_scope_open();
    float *much = calloc(1 << 22, sizeof *much);
    wb_array *x = wb_to(gpu, wb_from(WB_F32, much, 1 << 22));
    free(much);
    if (wb_eval(x) == WB_OK) return 2;
    (void)wb_scope_close();
    if (!is_told(WB_ERROR_MEMORY, "Metal", "out of memory: 16777216 bytes cannot be allocated"))
        return 3;
    return works(gpu) ? 0 : 4; /* the device goes on */
}

static int a_text_does_not_compile(void) {
    const wb_device *gpu = wb_get_device("Metal", 0);
    float y[COUNT];
    if (!gpu) return 1;
    fake_fail("newLibraryWithSource:options:error:", 1, 3);
    if (step(gpu, y) == WB_OK) return 2;
    if (!is_told(WB_ERROR_DEVICE, "newLibraryWithSource", "was told to fail")) return 3;
    return works(gpu) ? 0 : 4;
}

/* No device, a reason that says `why`, an error for who insists, and the CPU for who does not. */
static int none_because(const char *why) {
    if (wb_functional("Metal") || wb_device_count("Metal") != 0) return 1;
    if (!strstr(wb_reason(), why)) return print_error("\"%s\"\n", wb_reason()), 2;
    if (wb_functional_part("Metal", "MPS") || !strstr(wb_reason(), why)) return 3;
    if (wb_get_device("Metal", 0)) return 4;
    if (!is_told(WB_ERROR_DEVICE, "Metal", why)) return 5;
    return works(wb_cpu_device()) ? 0 : 6;
}

static int no_library(void) { return none_because("/no/such/library.so cannot be opened"); }
static int a_bad_library(void) { return none_because("libobjc has no objc_getClass"); }
static int no_device(void) { return none_because("macOS shows no Metal device"); }

/* Apple's own libraries are asked for; on a Mac they are there. */
static int no_mac(void) {
    (void)unsetenv("WEBER_METAL_LIBRARY");
    (void)unsetenv("WEBER_MPS_LIBRARY");
    return wb_functional("Metal") ? 0 : none_because("needs an Apple computer with macOS");
}

/* ---- what goes right ---- */

static int arrays_move_between_devices(void) {
    const wb_device *places[] = {wb_get_device("Metal", 0), wb_get_device("Metal", 1),
                                 wb_get_device("checked", 0), wb_cpu_device()};
    enum { PLACES = sizeof places / sizeof *places };
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) x[i] = (float)i / 7;
    for (int from = 0; from < PLACES; from++)
        for (int to = 0; to < PLACES; to++) {
            if (!places[from] || !places[to]) return 1;
            (void)wb_scope_open();
            wb_array *here = wb_to(places[from], wb_from(WB_F32, x, COUNT));
            wb_array *there = wb_to(places[to], wb_mul_number(here, 2));
            const bool is_there = wb_device_of(there) == places[to];
            memset(y, 0, sizeof y);
            (void)wb_read(wb_add_number(there, 1), y, sizeof y);
            if (wb_scope_close() != WB_OK || !is_there) return 2;
            for (int i = 0; i < COUNT; i++)
                if (y[i] != 2 * x[i] + 1) return 3;
        }
    return fake_count_now().complaints ? 4 : 0;
}

/* ---- each in a process of its own ---- */

static const row rows[] = {
    {"a device vanishes", NULL, NULL, a_device_vanishes},
    {"a device vanishes in the middle", NULL, NULL, a_device_vanishes_in_the_middle},
    {"memory runs out", "FAKE_METAL_MEMORY", "8388608", memory_runs_out},
    {"a text does not compile", NULL, NULL, a_text_does_not_compile},
    {"a library is missing", "WEBER_METAL_LIBRARY", "/no/such/library.so", no_library},
    {"a library is another one", "WEBER_METAL_LIBRARY", "libm.so.6", a_bad_library},
    {"there is no Mac", NULL, NULL, no_mac},
    {"a Mac has no device", "FAKE_METAL_DEVICES", "0", no_device},
    {"arrays move between devices", "FAKE_METAL_DEVICES", "2", arrays_move_between_devices},
};

static void row_holds(void **state) {
    const row *r = *state;
    int result = 1;
    (void)fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        if (r->variable) (void)setenv(r->variable, r->value, 1);
        const int fault = r->run();
        if (fault) print_error("%s: fault %d, \"%s\"\n", r->name, fault, wb_error_message());
        (void)fflush(NULL);
        _exit(fault);
    }
    assert_int_equal(waitpid(process, &result, 0), process);
    assert_int_equal(result, 0);
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[ROWS];
    use_stand_in();
    (void)setenv("WEBER_DEVICE", "CPU", 1);
    (void)setenv("WEBER_CACHE", "", 1); /* else a text may be compiled already */
    for (size_t i = 0; i < ROWS; i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, row_holds, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
