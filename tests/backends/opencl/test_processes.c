/* What a process decides once: which OpenCL library, which devices. Each row is a process of its
 * own. */
#include "host.h"

#include "backends/processes.h"

static const char without_driver[] = "CL_PLATFORM_NOT_FOUND_KHR";

static int all_hidden(void) { return no_device_because("POCL_DEVICES", true, without_driver); }
static int no_driver(void) { return no_device_because(without_driver, true, NULL); }
static int no_library(void) { return no_device_because("/no/such/library.so", false, NULL); }
static int library_of_something_else(void) {
    return no_device_because("no clGetPlatformIDs", false, NULL);
}

int main(void) {
    (void)unsetenv("WEBER_DEVICE"); /* the plugin has one host: this file */
    orders_peers = true;
    static child children[] = {
        {"two devices copy from each other", "POCL_DEVICES", "pthread basic", two_devices},
        {"hidden devices are a reason", "POCL_DEVICES", "", all_hidden},
        {"no driver is a reason", "OCL_ICD_VENDORS", "/no/such/folder", no_driver},
        {"no library is a reason", "WEBER_OPENCL_LIBRARY", "/no/such/library.so", no_library},
        {"another library is a reason", "WEBER_OPENCL_LIBRARY", "libm.so.6",
         library_of_something_else},
    };
    struct CMUnitTest tests[sizeof children / sizeof *children];
    for (size_t i = 0; i < sizeof children / sizeof *children; i++)
        tests[i] = (struct CMUnitTest){children[i].name, run_child, NULL, NULL, &children[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
