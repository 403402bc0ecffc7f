/* Libraries that cannot be in one process: PoCL and AMD's code generator bring a Clang each, over
 * one libLLVM, and the second ends the process. Whoever comes second says so instead. With the fake
 * driver, but the system's code generator. */
#define TEST_AMDGPU
#include "backends/cuda/gpu.h"

#include <sys/mman.h>
#include <weber.h>

#include "platform/process.h"
#include "support/support.h"

static bool is_there(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL) != NULL; }

/* In a child, since nothing is to be loaded before. */
static int look_for_both(void) { return is_there("libamd_comgr.so.2") ? 0 : 1; }

static const char *first, *second;
static bool *first_works; /* as the child saw it */

static int ask(void) {
    char path[512], fake[1024];
    if (!wb_platform_program(path, sizeof path)) path[0] = 0;
    for (int up = 0; up < 2 && strrchr(path, '/'); up++) *strrchr(path, '/') = 0;
    (void)snprintf(fake, sizeof fake, "%s/cuda/fake_amdgpu.so", path);
    (void)setenv(DRIVER_VARIABLE, fake, 1);
    (void)setenv(OTHER_VARIABLE, fake, 1);
    (void)setenv("WEBER_BACKENDS", "amdgpu,opencl", 1);
    *first_works = wb_functional(first);
    if (!*first_works) {
        print_message("%s: %s\n", first, wb_reason());
        return 0;
    }
    if (wb_functional(second)) return 0; /* they do go together here */
    if (strstr(wb_reason(), "conflicts with another library")) return 0;
    print_message("%s: %s\n", second, wb_reason());
    return 1;
}

static void ask_in_order(const char *one, const char *other) {
    if (run_with("WEBER_TEST", "beside", look_for_both) != 0) skip();
    first = one, second = other;
    assert_int_equal(run_with("WEBER_TEST", "beside", ask), 0);
    if (!*first_works) skip();
}

static void after_opencl(void **state) {
    (void)state;
    ask_in_order("OpenCL", "AMDGPU");
}

static void before_opencl(void **state) {
    (void)state;
    ask_in_order("AMDGPU", "OpenCL");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(after_opencl),
                                       cmocka_unit_test(before_opencl)};
    (void)unsetenv("WEBER_DEVICE");
    first_works =
        mmap(NULL, sizeof *first_works, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (first_works == MAP_FAILED) return 1;
    return cmocka_run_group_tests_name("backends/amdgpu/test_beside", tests, NULL, NULL);
}
