/* Cards that the compiler knows, does not know yet, or knows no more: on the fake driver, each in a
 * process of its own. */
#include "gpu.h"

#include <weber.h>

#include "support/support.h"

/* ---- what a process looks at ---- */

static const char *reason; /* wanted of the backend; NULL: it works */

static int fail_with(const char *what, const char *found) {
    print_error("%s: %s\n", what, found);
    return 1;
}

static int look(void) {
    static const float numbers[3] = {1, 2, 4};
    use_fake_driver();
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    if (reason) {
        if (wb_functional(BACKEND)) return fail_with("it works", BACKEND);
        return strstr(wb_reason(), reason) ? 0 : fail_with("another reason", wb_reason());
    }
    const wb_device *device = wb_get_device(BACKEND, 0);
    wb_scope_open();
    const double sum =
        device ? wb_item(wb_sum(wb_exp(wb_to(device, wb_from(WB_F32, numbers, 3))))) : 0;
    (void)wb_scope_close();
    if (wb_report("architectures") != 0) return 1;
    return sum > 64.7 && sum < 64.8 ? 0 : fail_with("the sum is wrong", "");
}

static void expect_of(const char *architecture, const char *wanted) {
    reason = wanted;
    assert_int_equal(run_with("FAKE_CUDA_ARCHITECTURE", architecture, look), 0);
}

/* ---- tests ---- */

#ifdef TEST_AMDGPU

static void what_the_compiler_knows(void **state) {
    (void)state;
    expect_of("gfx90a", NULL);
    expect_of("gfx90a:sramecc+:xnack-", NULL);
}

/* It would end the process. */
static void what_the_compiler_does_not_know(void **state) {
    (void)state;
    expect_of("gfx942", "does not support gfx942: a newer ROCm is needed");
    expect_of("gfx90", "does not support gfx90: a newer ROCm is needed");
    expect_of("", "does not tell its architecture");
}

#else

static void what_the_compiler_knows(void **state) {
    (void)state;
    expect_of("sm_90", NULL);
    expect_of("sm_75", NULL);
}

/* The driver is given PTX for the newest that there is. */
static void what_the_compiler_does_not_know(void **state) {
    (void)state;
    expect_of("sm_120", NULL);
    expect_of("sm_70", "no longer supports sm_70: an older one is needed");
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_compiler_knows),
                                       cmocka_unit_test(what_the_compiler_does_not_know)};
    (void)unsetenv("WEBER_DEVICE");
    return cmocka_run_group_tests_name("backends/" PLUGIN "/test_architectures", tests, NULL, NULL);
}
