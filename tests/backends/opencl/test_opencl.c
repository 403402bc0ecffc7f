/* The OpenCL plugin through its table, on its first device; in a child process with the texts of
 * the other flavour, too. */
#include "host.h"

#include "backends/contract.h"

static void a_text_that_does_not_compile_is_reported(void **state) {
    NEED_DEVICE();
    (void)state;
    recipe broken = scale;
    broken.text = "WB_KERNEL(k_0, GROUP)(WB_BUFFER(0, a)) { no_such_thing = 1; }\n";
    assert_null(make_kernel(&broken));
    assert_non_null(strstr(wb_error_message(), "clBuildProgram: CL_BUILD_PROGRAM_FAILURE"));
    assert_non_null(strstr(wb_error_message(), "k_0"));
    assert_error(WB_ERROR_DEVICE, "no_such_thing");
    broken.text = "WB_KERNEL(k_other, GROUP)(WB_BUFFER(0, a)) { a[0] = 1; }\n";
    assert_null(make_kernel(&broken));
    assert_error(WB_ERROR_DEVICE, "k_0: clCreateKernel: CL_INVALID_KERNEL_NAME");
    assert_int_equal(live_sources, 0);
    void *kernel = make_kernel(&scale); /* the device goes on */
    assert_non_null(kernel);
    backend->release(kernel);
}

static int run_device_tests(void) {
    const struct CMUnitTest tests[] = {CONTRACT_TESTS,
                                       DEVICE_TEST(a_text_that_does_not_compile_is_reported)};
    (void)open_device(0);
    const int result = cmocka_run_group_tests(tests, NULL, NULL);
    if (device) backend->close(device);
    return result;
}

int main(void) {
    (void)unsetenv("WEBER_DEVICE"); /* the plugin has one host: this file */
    const int failed = run_with("WEBER_OPENCL_FLAVOUR", "parallel", run_device_tests);
    return run_device_tests() + failed;
}
