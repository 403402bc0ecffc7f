/* What a process decides once: which library stands for Apple's, which devices it has. Each row is
 * a process of its own. */
#define BACKEND "Metal"
#define PLUGIN  "metal"

#include "stand_in.h"

#include "backends/processes.h"

static int no_devices(void) {
    return no_device_because("macOS shows no Metal device (MTLCopyAllDevices: none)", true, NULL);
}
static int no_library(void) { return no_device_because("/no/such/library.so", false, NULL); }
static int library_of_something_else(void) {
    return no_device_because("libobjc has no objc_getClass", false, NULL);
}

/* A pipeline says how many threads its groups may have. */
static int small_groups(void) {
    if (!open_device(0)) return 1;
    if (make_kernel(&scale)) return 2;
    const char *wanted = "k_0: expected groups of 256 items, but the device takes at most 128";
    if (!strstr(wb_error_message(), wanted)) print_message("\"%s\"\n", wb_error_message());
    const bool is_told = strstr(wb_error_message(), wanted);
    wb_clear_error();
    backend->close(device);
    return is_told ? 0 : 3;
}

int main(void) {
    (void)unsetenv("WEBER_DEVICE"); /* the plugin has one host: this file */
    use_stand_in();
    static child children[] = {
        {"two devices copy from each other", "FAKE_METAL_DEVICES", "2", two_devices},
        {"no devices are a reason", "FAKE_METAL_DEVICES", "0", no_devices},
        {"groups that are too large are named", "FAKE_METAL_THREADS", "128", small_groups},
        {"no library is a reason", "WEBER_METAL_LIBRARY", "/no/such/library.so", no_library},
        {"another library is a reason", "WEBER_METAL_LIBRARY", "libm.so.6",
         library_of_something_else},
    };
    struct CMUnitTest tests[sizeof children / sizeof *children];
    for (size_t i = 0; i < sizeof children / sizeof *children; i++)
        tests[i] = (struct CMUnitTest){children[i].name, run_child, NULL, NULL, &children[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
