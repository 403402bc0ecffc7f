/* Why a GPU's backend does not work: each reason by the library that gives it, where there is such
 * a library. */
#include <dlfcn.h>
#include <unistd.h>

#include "support/stage.h"

#define STUB "/usr/local/cuda/lib64/stubs/libcuda.so"

typedef struct row {
    const char *name, *backend;
    const char *variables[4]; /* name, value, name, value */
    bool (*applies)(void);    /* NULL: everywhere */
    const char *reason;
} row;

/* ---- what this machine has ---- */

static bool opens(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL) != NULL; }
static bool has_no_driver(void) { return !opens("libcuda.so.1") && !opens("libcuda.so"); }
static bool has_stub(void) { return access(STUB, R_OK) == 0; }
static bool has_stub_and_compiler(void) { return has_stub() && opens("libnvrtc.so.13"); }
static bool has_hip_alone(void) {
    return opens("libamdhip64.so.5") && !opens("libhiprtc.so.6") && access("/dev/kfd", F_OK) != 0;
}

/* ---- rows ---- */

static const row rows[] = {
    {"a_library_that_is_not_there",
     "CUDA",
     {"WEBER_CUDA_LIBRARY", "/no/such.so"},
     NULL,
     "WEBER_CUDA_LIBRARY=/no/such.so cannot be opened: /no/such.so: cannot open"},
    {"a_library_that_is_no_driver",
     "CUDA",
     {"WEBER_CUDA_LIBRARY", "libz.so.1"},
     NULL,
     "the driver's library has no cuInit: CUDA 11.4 or later is needed"},
    {"no_driver",
     "CUDA",
     {NULL},
     has_no_driver,
     "there is no libcuda.so.1: no NVIDIA driver is installed (Debian: "},
    {"the_toolkits_stub",
     "CUDA",
     {"WEBER_CUDA_LIBRARY", STUB},
     has_stub_and_compiler,
     "the driver does not work: cuInit: CUDA_ERROR_STUB_LIBRARY: this is the toolkit's stub"},
    {"no_compiler",
     "CUDA",
     {"WEBER_CUDA_LIBRARY", STUB, "WEBER_NVRTC_LIBRARY", "/no/such.so"},
     has_stub,
     "WEBER_NVRTC_LIBRARY=/no/such.so cannot be opened"},
    {"another_library_that_is_no_driver",
     "AMDGPU",
     {"WEBER_HIP_LIBRARY", "libz.so.1"},
     NULL,
     "the driver's library has no hipInit: ROCm 5.0 or later is needed"},
    {"a_driver_without_devices",
     "AMDGPU",
     {NULL},
     has_hip_alone,
     "the driver sees no GPU (hipGetDeviceCount: hipErrorNoDevice)"},
    {"devices_that_are_hidden",
     "AMDGPU",
     {"HIP_VISIBLE_DEVICES", "-1"},
     has_hip_alone,
     "hidden by HIP_VISIBLE_DEVICES=-1 (hipGetDeviceCount: hipErrorNoDevice)"},
};

/* ---- the test ---- */

static const row *current;

/* In a process of its own, since libraries are opened once. */
static void ask(void) {
    static const char *const hiding[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                         "ROCR_VISIBLE_DEVICES"};
    for (size_t i = 0; i < sizeof hiding / sizeof *hiding; i++) (void)unsetenv(hiding[i]);
    (void)setenv("WEBER_PLUGIN_PATH", stage_build("../weber"), 1);
    (void)setenv("WEBER_BACKENDS", current->backend, 1);
    for (int i = 0; i < 4 && current->variables[i]; i += 2)
        (void)setenv(current->variables[i], current->variables[i + 1], 1);
    expect(!wb_functional(current->backend));
    expect_part(wb_reason(), current->reason);
    (void)stage_log();
}

static void the_reason_is_given(void **state) {
    current = *state;
    if (current->applies && !current->applies()) skip();
    assert_int_equal(on_stage(ask), 0);
}

int main(void) {
    enum { COUNT = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, the_reason_is_given, NULL, NULL,
                                       (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests_name("backends/cuda/test_reasons", tests, NULL, NULL);
}
