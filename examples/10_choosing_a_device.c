/* Which device is taken: by preference, automatically, by name and number, by WEBER_DEVICE.
 *
 *     Flux.supported_devices()                   wb_supported_devices()
 *     CUDA.functional()                          wb_functional("CUDA"), and wb_reason() why not
 *     device = Flux.get_device(; verbose=true)   wb_get_device(.verbose = true)
 *     Flux.gpu_backend!("CPU")                   wb_gpu_backend_set("CPU"), effective at once
 *     Flux.GPU_BACKEND                           wb_gpu_backend()
 *     gpu_device()                               wb_gpu_device(), .force = true
 *     Flux.get_device("CUDA", 0)                 wb_get_device("CUDA", 0)
 *     $ export CUDA_VISIBLE_DEVICES='-1'         the same, or WEBER_BACKENDS=cpu for all backends
 *
 * | CUDA AMDGPU Metal OpenCL CPU
 * | CUDA does not work: left out by WEBER_BACKENDS=cpu
 * | -- no preference
 * | info: Using backend: CPU.
 * | CPU
 * | -- preference checked
 * | info: Using backend set in preferences: checked.
 * | checked(0)
 * | -- preference CPU
 * | info: Using backend set in preferences: CPU.
 * | CPU
 * | -- preference CUDA
 * | info: Using backend set in preferences: CUDA.
 * | warning: Trying to use backend: CUDA but its plugin is not loaded: left out by WEBER_BACKENDS=cpu.
 * | warning: Please name it in WEBER_BACKENDS and call this function again to respect the preferences backend.
 * | info: Using backend: CPU.
 * | CPU
 * | -- WEBER_DEVICE=checked:1
 * | info: Using backend set in WEBER_DEVICE: checked.
 * | info: WEBER_DEVICE=checked:1 overrides the preference CUDA.
 * | checked(1)
 * | -- by name and number
 * | checked(1) is number 1 of checked
 * | Unsupported backend: CUDDA. Supported backends are: CUDA, AMDGPU, Metal, OpenCL, CPU. Did you mean CUDA?
 * | checked(2): there are 2 checked devices, 0 to 1
 * */
#define _XOPEN_SOURCE 700 /* setenv, mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weber.h>

/* Lines of the log go to stderr, unless a program takes them. */
static void print_line(void *context, wb_log_level level, const char *line) {
    (void)context;
    printf("%s: %s\n", level == WB_LOG_INFO ? "info" : "warning", line);
}

static void show_choice(const char *title) {
    printf("-- %s\n", title);
    printf("%s\n", wb_device_name(wb_get_device(.verbose = true)));
}

static void show_error(const char *backend, int index) {
    char message[256];
    if (wb_get_device(backend, index)) return;
    wb_take_error(message, sizeof message);
    printf("%s\n", message);
}

int main(void) {
    /* a machine without plugins and preferences, wherever this runs: a real program leaves these
     * five lines out */
    char folder[] = "/tmp/weber-example-XXXXXX", file[64];
    if (!mkdtemp(folder)) return 1;
    snprintf(file, sizeof file, "%s/preferences.toml", folder);
    setenv("WEBER_PREFERENCES", file, 1), setenv("WEBER_BACKENDS", "cpu", 1);
    unsetenv("WEBER_DEVICE"), unsetenv("WEBER_LOG");
    wb_log_to(print_line, NULL);

    for (const char *const *name = wb_supported_devices(); *name; name++)
        printf("%s%c", *name, name[1] ? ' ' : '\n');
    if (!wb_functional("CUDA")) printf("CUDA does not work: %s\n", wb_reason());

    show_choice("no preference");
    wb_gpu_backend_set("checked"); /* in the place of "CUDA": the built-in device for tests */
    show_choice("preference checked");
    wb_gpu_backend_set("CPU"); /* valid, and no warning, also where there is a GPU */
    show_choice("preference CPU");
    wb_gpu_backend_set("CUDA"); /* with AMDGPU at work, the last line would name that */
    show_choice("preference CUDA");
    setenv("WEBER_DEVICE", "checked:1", 1);
    show_choice("WEBER_DEVICE=checked:1");

    printf("-- by name and number\n");
    const wb_device *device = wb_get_device("checked", 1);
    printf("%s is number %d of %s\n", wb_device_name(device), wb_device_id(device),
           wb_device_backend_name(device));
    show_error("CUDDA", 0);
    show_error("checked", 2);

    wb_log_to(NULL, NULL);
    unlink(file), rmdir(folder);
    return wb_report("10_choosing_a_device");
}
