/* src/device/registry.c, plugin.c, questions.c: what is found, what is refused, and what is said
 * about it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/plugin.h"
#include "platform/processor.h"
#include "support/stage.h"

#define CUDA_FILE "plugins/libweber_cuda.so"

static void join(const char *const *list, char *text, size_t size_bytes) {
    text[0] = 0;
    for (; *list; list++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, size_bytes - used, "%s%s", used ? ", " : "", *list);
    }
}

static void expect_list(const char *const *list, const char *wanted) {
    char text[2048];
    join(list, text, sizeof text);
    expect_text(text, wanted);
}

/* ---- what is loaded when ---- */

static void a_program_that_asks_nothing_opens_nothing(void) {
    stage_install("cuda", CUDA_FILE);
    wb_scope_open();
    wb_array *x = wb_ones(WB_F32, 3, 3);
    float sum = 0;
    expect(wb_read(wb_sum(wb_matmul(x, x)), &sum, sizeof sum) == WB_OK && sum == 27);
    expect(wb_scope_close() == WB_OK);
    expect_text(wb_device_name(wb_cpu_device()), "CPU");
    expect(wb_threads() > 0);
    (void)wb_memory_status(wb_cpu_device());
    expect(wb_plugins_opened() == 0);
}

static void wb_use_loads_one(void) {
    stage_install("cuda", CUDA_FILE);
    stage_install("opencl", "plugins/libweber_opencl.so");
    expect(wb_use("OpenCL") == WB_OK);
    expect(wb_plugins_opened() == 1);
    expect(wb_use("opencl") == WB_OK);
    expect(wb_plugins_opened() == 1);
    expect(wb_use("CPU") == WB_OK);
    expect(wb_use("Metal") == WB_ERROR_DEVICE);
    expect_error(WB_ERROR_DEVICE, "Unavailable backend: Metal. libweber_metal.so is not installed");
    expect(wb_plugins_opened() == 1);
    expect(wb_loaded("CUDA"));
    expect(wb_plugins_opened() == 2);
}

static void the_first_question_loads_all(void) {
    stage_install("cuda", CUDA_FILE);
    stage_install("amdgpu", "plugins/libweber_amdgpu.so");
    expect(wb_loaded("CPU"));
    expect(wb_plugins_opened() == 2);
    expect(wb_loaded("CUDA") && wb_functional("CUDA") && wb_loaded("AMDGPU"));
    expect(wb_plugins_opened() == 2);
    expect_text(wb_reason(), "");
}

static void weber_backends_limits(void) {
    stage_install("cuda", CUDA_FILE);
    stage_install("opencl", "plugins/libweber_opencl.so");
    (void)setenv("WEBER_BACKENDS", "CPU,openCL", 1);
    expect(!wb_loaded("CUDA"));
    expect_text(wb_reason(), "left out by WEBER_BACKENDS=CPU,openCL");
    expect(wb_loaded("OpenCL"));
    expect(wb_plugins_opened() == 1);
    expect(wb_use("CUDA") == WB_ERROR_DEVICE);
    expect_error(WB_ERROR_DEVICE, "left out by WEBER_BACKENDS");
    expect(!wb_loaded("Metal"));
    expect_text(wb_reason(), "left out by WEBER_BACKENDS=CPU,openCL");
}

static void the_cpu_cannot_be_left_out(void) {
    (void)setenv("WEBER_BACKENDS", "opencl, cudda", 1);
    expect(wb_functional("CPU"));
    expect_log("warning: WEBER_BACKENDS names cudda, but there is no such backend. Did you mean "
               "CUDA?\n");
    expect(wb_get_device() == wb_cpu_device());
}

static void a_plugin_under_another_name_is_limited_too(void) {
    stage_install("cuda", "plugins/libweber_other.so");
    (void)setenv("WEBER_BACKENDS", "cpu,other", 1);
    expect(!wb_loaded("CUDA"));
    (void)stage_log();
}

/* ---- names and lists ---- */

static void lists_are_in_order_of_preference(void) {
    stage_install("opencl", "plugins/libweber_opencl.so");
    expect_list(wb_supported_devices(), "CUDA, AMDGPU, Metal, OpenCL, CPU");
    expect_list(wb_supported_gpu_backends(), "CUDA, AMDGPU, Metal, OpenCL");
    expect(wb_supported_devices() == wb_supported_devices());
}

static void an_unknown_plugin_is_listed_before_the_cpu(void) {
    stage_install("vulkan", "plugins/libweber_vulkan.so");
    expect_list(wb_supported_devices(), "CUDA, AMDGPU, Metal, OpenCL, Vulkan, CPU");
    expect_list(wb_supported_gpu_backends(), "CUDA, AMDGPU, Metal, OpenCL, Vulkan");
    expect(wb_functional("vulkan"));
    (void)setenv("FAKE_Vulkan_LOAD", "no loader", 1);
}

static void an_unknown_plugin_that_does_not_load_is_listed(void) {
    stage_install("vulkan", "plugins/libweber_vulkan.so");
    (void)setenv("FAKE_Vulkan_LOAD", "libvulkan.so.1 is missing", 1);
    expect(wb_use("Vulkan") == WB_ERROR_DEVICE);
    expect_error(WB_ERROR_DEVICE, "libvulkan.so.1 is missing");
    expect(!wb_loaded("Vulkan"));
    expect_text(wb_reason(), "libvulkan.so.1 is missing");
    expect_list(wb_supported_devices(), "CUDA, AMDGPU, Metal, OpenCL, Vulkan, CPU");
    expect_list(wb_skipped_plugins(), "");
    (void)unlink(stage_path("plugins/libweber_vulkan.so"));
    expect(wb_use("Vulkan") == WB_ERROR_DEVICE);
    expect_error(WB_ERROR_DEVICE, "libweber_vulkan.so is not installed");
}

static void lists_that_were_given_stay(void) {
    const char *const *before = wb_supported_devices();
    stage_install("vulkan", "plugins/libweber_vulkan.so");
    expect(wb_use("Vulkan") == WB_OK);
    expect_list(before, "CUDA, AMDGPU, Metal, OpenCL, CPU");
    expect_list(wb_supported_devices(), "CUDA, AMDGPU, Metal, OpenCL, Vulkan, CPU");
}

static void unknown_names_are_errors_with_the_nearest(void) {
    static const struct {
        const char *name, *hint;
    } rows[] = {{"CUDDA", " Did you mean CUDA?"},
                {"opncl", " Did you mean OpenCL?"},
                {"Mteal", " Did you mean Metal?"},
                {"amdgp", " Did you mean AMDGPU?"},
                {"gpu", " wb_gpu_device() takes the first GPU that works."},
                {"x", ""},
                {"CP", " Did you mean CPU?"},
                {"cudaa", " Did you mean CUDA?"},
                {"open", " Did you mean OpenCL?"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[256];
        expect(!wb_loaded(rows[i].name));
        (void)snprintf(wanted, sizeof wanted,
                       "Unsupported backend: %s. Supported backends are: CUDA, AMDGPU, Metal, "
                       "OpenCL, CPU.%s",
                       rows[i].name, rows[i].hint);
        expect_text(wb_reason(), wanted);
        expect_text(wb_error_message(), wanted);
        wb_clear_error();
        expect(!wb_functional(rows[i].name) && wb_device_count(rows[i].name) == 0);
        expect(!wb_functional_part(rows[i].name, "cuDNN") && !wb_devices(rows[i].name));
        expect(wb_use(rows[i].name) == WB_ERROR_ARGUMENT);
        wb_clear_error();
    }
    expect(wb_use(NULL) == WB_ERROR_ARGUMENT && !wb_loaded(NULL));
    expect_error(WB_ERROR_ARGUMENT, "NULL");
    expect(!wb_functional_part("CUDA", NULL));
    expect_error(WB_ERROR_ARGUMENT, "part is NULL");
    wb_reset_gpu_device();
    char long_name[5000];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    expect(wb_use(long_name) == WB_ERROR_ARGUMENT && !wb_loaded("../../cuda"));
    wb_clear_error();
    expect(wb_plugins_opened() == 0);
}

static void checked_comes_by_name_only(void) {
    expect(wb_loaded("checked") && wb_functional("checked"));
    const wb_device *device = wb_get_device("checked", 0);
    expect_text(wb_device_name(device), "checked(0)");
    expect(device == wb_get_device("checked", 0));
    expect_list(wb_supported_devices(), "CUDA, AMDGPU, Metal, OpenCL, CPU");
    expect(wb_get_device() == wb_cpu_device());
}

/* ---- reasons ---- */

static void what_is_not_installed_says_what_it_needs(void) {
    static const char *const wanted[][2] = {{"CUDA", "Debian: libcuda1"},
                                            {"AMDGPU", "Debian: libamdhip64-5"},
                                            {"Metal", "Debian: no package"},
                                            {"OpenCL", "ocl-icd-libopencl1"}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        expect(!wb_loaded(wanted[i][0]));
        expect_part(wb_reason(), "is not installed; it needs ");
        expect_part(wb_reason(), wanted[i][1]);
        expect(!wb_functional(wanted[i][0]));
        expect_part(wb_reason(), "is not installed; it needs ");
        expect(!wb_functional_part(wanted[i][0], "cuDNN"));
        expect_part(wb_reason(), "is not installed; it needs ");
        expect(wb_device_count(wanted[i][0]) == 0);
        const wb_device *const *none = wb_devices(wanted[i][0]);
        expect(none && !none[0]);
    }
    expect(wb_functional("CPU"));
    expect_text(wb_reason(), "");
}

static void a_failing_load_is_tried_again(void) {
    stage_install("cuda", CUDA_FILE);
    (void)setenv("FAKE_CUDA_LOAD", "no driver", 1);
    expect(!wb_loaded("CUDA") && !wb_functional("CUDA"));
    expect_text(wb_reason(), "no driver");
    (void)setenv("FAKE_CUDA_LOAD", "still none", 1);
    expect(wb_use("CUDA") == WB_ERROR_DEVICE);
    expect_error(WB_ERROR_DEVICE, "still none");
    (void)unsetenv("FAKE_CUDA_LOAD");
    expect(wb_use("CUDA") == WB_OK);
    expect(wb_loaded("CUDA"));
    expect_text(wb_reason(), "");
}

static void a_sound_plugin_has_the_reason(void) {
    static const char *const orders[] = {"plugins", "second"};
    char path[4096];
    (void)mkdir(stage_path("second"), 0755);
    stage_install("cuda", CUDA_FILE);
    stage_install("other_abi", "second/libweber_cuda.so");
    (void)setenv("FAKE_CUDA_LOAD", "no driver", 1);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s:%s/%s", stage_folder(), orders[i], stage_folder(),
                       orders[1 - i]);
        (void)setenv("WEBER_PLUGIN_PATH", path, 1);
        wb_reset_gpu_device();
        expect(!wb_loaded("CUDA"));
        expect_text(wb_reason(), "no driver");
        const char *const *skipped = wb_skipped_plugins();
        expect(skipped[0] && !skipped[1]);
        expect_part(skipped[0], "/second/libweber_cuda.so: the plugin is for ABI 1");
    }
}

static void parts_are_asked_of_the_backend(void) {
    stage_install("cuda", CUDA_FILE);
    expect(wb_functional_part("CUDA", "cuDNN"));
    expect_text(wb_reason(), "");
    expect(!wb_functional_part("CUDA", "MIOpen"));
    expect_text(wb_reason(), "there is no part MIOpen");
    expect(!wb_functional_part("CPU", "cuDNN"));
    expect_text(wb_reason(), "CPU has no part cuDNN");
    (void)setenv("FAKE_CUDA_COUNT", "0", 1);
    (void)setenv("FAKE_CUDA_WHY", "hidden by CUDA_VISIBLE_DEVICES=-1", 1);
    wb_reset_gpu_device();
    expect(!wb_functional_part("CUDA", "cuDNN"));
    expect_text(wb_reason(), "hidden by CUDA_VISIBLE_DEVICES=-1");
}

/* ---- plugins that are passed over ---- */

static void is_refused(const char *why) {
    const int64_t opened = wb_plugins_opened();
    wb_reset_gpu_device();
    expect(!wb_loaded("CUDA"));
    expect_part(wb_reason(), "/plugins/libweber_cuda.so: ");
    expect_part(wb_reason(), why);
    char skipped[4096];
    join(wb_skipped_plugins(), skipped, sizeof skipped);
    expect_text(skipped, wb_reason()[0] ? wb_reason() : skipped);
    expect(wb_plugins_opened() <= opened + 1);
    expect(wb_get_device() == wb_cpu_device());
}

static void is_not_even_opened(const char *why) {
    const int64_t opened = wb_plugins_opened();
    is_refused(why);
    expect(wb_plugins_opened() == opened);
}

static void a_plugin_with_a_fault_is_refused(void) {
    static const char *const rows[][2] = {
        {"other_abi", "the plugin is for ABI 1, but this Weber needs ABI "},
        {"short_table", "its table has 64 bytes, but needs "},
        {"no_entry", "its table lacks run"},
        {"refuses", "does not accept this version of Weber: too old for me"},
        {"no_symbol", "is not a plugin of Weber: it lacks the symbol weber_plugin"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)unlink(stage_path(CUDA_FILE)); /* a new file: the old one stays open */
        stage_install(rows[i][0], CUDA_FILE);
        is_refused(rows[i][1]);
    }
}

static void a_file_that_is_cut_is_refused(void) {
    stage_install("cuda", CUDA_FILE);
    struct stat status;
    expect(stat(stage_path(CUDA_FILE), &status) == 0);
    const off_t sizes[] = {0, 1, 16, 63, 64, 100, 500, 1000, 4096, 8192, status.st_size / 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        (void)unlink(stage_path(CUDA_FILE));
        stage_install("cuda", CUDA_FILE);
        if (sizes[i] >= status.st_size) continue;
        expect(truncate(stage_path(CUDA_FILE), sizes[i]) == 0);
        is_refused("");
    }
    stage_write(CUDA_FILE,
                "this is a text, and rather a long one, so that there is room for a header ...");
    is_refused("invalid ELF header");
}

static void what_others_can_change_is_refused(void) {
    stage_install("cuda", CUDA_FILE);
    (void)chmod(stage_path(CUDA_FILE), 0646);
    is_not_even_opened("others may write to the file; remove that right (chmod go-w)");
    (void)chmod(stage_path(CUDA_FILE), 0664);
    is_not_even_opened("others may write to the file; remove that right (chmod go-w)");
    (void)chmod(stage_path(CUDA_FILE), 0644);
    (void)chmod(stage_path("plugins"), 0777);
    is_not_even_opened("/plugins; remove that right (chmod go-w)");
    (void)chmod(stage_path("plugins"), 01777);
    is_not_even_opened("/plugins; remove that right (chmod go-w)");
    (void)chmod(stage_path("plugins"), 0755);
    wb_reset_gpu_device();
    expect(wb_loaded("CUDA"));
}

static void a_link_to_what_others_can_change_is_refused(void) {
    (void)mkdir(stage_path("open"), 0777);
    (void)chmod(stage_path("open"), 0777);
    stage_install("cuda", "open/real.so");
    expect(symlink(stage_path("open/real.so"), stage_path(CUDA_FILE)) == 0);
    is_not_even_opened("/open; remove that right (chmod go-w)");
    (void)chmod(stage_path("open"), 0755);
    (void)chmod(stage_path("open/real.so"), 0666);
    is_not_even_opened("/open/real.so; remove that right (chmod go-w)");
    (void)chmod(stage_path("open/real.so"), 0644);
    wb_reset_gpu_device();
    expect(wb_loaded("CUDA"));
}

static void what_others_can_change_further_up_is_refused(void) {
    (void)mkdir(stage_path("up"), 0755);
    (void)mkdir(stage_path("up/plugins"), 0755);
    stage_install("cuda", "up/plugins/real.so");
    expect(symlink(stage_path("up/plugins/real.so"), stage_path(CUDA_FILE)) == 0);
    (void)chmod(stage_path("up"), 0777);
    is_not_even_opened("/up; remove that right (chmod go-w)");
    (void)chmod(stage_path("up"), 01777); /* there nobody takes another's folder away */
    wb_reset_gpu_device();
    expect(wb_loaded("CUDA"));
}

static void what_belongs_to_another_is_refused(void) {
    stage_install("cuda", CUDA_FILE);
    if (geteuid() != 0) return; /* only root can give a file away */
    expect(chown(stage_path(CUDA_FILE), 65534, 65534) == 0);
    is_not_even_opened("the file belongs to user 65534");
    expect(chown(stage_path(CUDA_FILE), 0, 0) == 0);
    expect(chown(stage_path("plugins"), 65534, 65534) == 0);
    is_not_even_opened("/plugins belongs to user 65534");
}

static void what_is_no_file_is_refused(void) {
    (void)mkdir(stage_path(CUDA_FILE), 0755);
    is_not_even_opened("is not a regular file");
    (void)rmdir(stage_path(CUDA_FILE));
    expect(mkfifo(stage_path(CUDA_FILE), 0644) == 0);
    is_not_even_opened("is not a regular file");
    (void)unlink(stage_path(CUDA_FILE));
    expect(symlink("/nowhere/at/all", stage_path(CUDA_FILE)) == 0);
    is_not_even_opened("No such file");
}

static void the_current_directory_is_never_searched(void) {
    static const char *const paths[] = {".", "", ":", "::", "./", "plugins", "..", "./plugins:."};
    stage_install("cuda", "libweber_cuda.so");
    stage_install("cuda", CUDA_FILE);
    (void)mkdir(stage_path("weber"), 0755);
    stage_install("cuda", "weber/libweber_cuda.so");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        (void)setenv("WEBER_PLUGIN_PATH", paths[i], 1);
        wb_reset_gpu_device();
        expect(!wb_loaded("CUDA"));
        expect(wb_use("CUDA") == WB_ERROR_DEVICE);
        wb_clear_error();
    }
    expect(wb_plugins_opened() == 0);
    expect_list(wb_skipped_plugins(), "./plugins: in WEBER_PLUGIN_PATH, must be an absolute path, "
                                      ".: in WEBER_PLUGIN_PATH, must be an absolute path");
    (void)unsetenv("WEBER_PLUGIN_PATH");
    wb_reset_gpu_device();
    expect(!wb_loaded("CUDA"));
    expect(wb_plugins_opened() == 0);
}

static void folders_are_searched_in_order(void) {
    char path[8192], skipped[4096];
    (void)mkdir(stage_path("second"), 0755);
    (void)mkdir(stage_path("third"), 0755);
    stage_install("other_abi", CUDA_FILE);
    stage_install("cuda", "second/libweber_cuda.so");
    stage_install("cuda", "third/libweber_cuda.so");
    (void)snprintf(path, sizeof path, "%s/missing:%s/plugins:%s/second:%s/third", stage_folder(),
                   stage_folder(), stage_folder(), stage_folder());
    (void)setenv("WEBER_PLUGIN_PATH", path, 1);
    expect(wb_loaded("CUDA"));
    expect(wb_plugins_opened() == 2); /* the faulty one, and the first good one */
    join(wb_skipped_plugins(), skipped, sizeof skipped);
    expect_part(skipped, "/plugins/libweber_cuda.so: the plugin is for ABI 1");
    expect_text(wb_plugin_folders()[0], stage_path("missing"));
    expect_text(wb_plugin_folders()[3], stage_path("third"));
}

static void other_files_are_no_plugins(void) {
    stage_install("cuda", "plugins/libother_cuda.so");
    stage_install("cuda", "plugins/libweber_cuda.so.1");
    stage_install("cuda", "plugins/libweber_.so");
    stage_install("cuda", "plugins/libweber_CUDA.so");
    stage_install("cuda", "plugins/libweber_a name.so");
    expect(!wb_loaded("CUDA"));
    expect(wb_plugins_opened() == 0);
}

static void a_second_plugin_of_a_backend_is_passed_over(void) {
    char skipped[4096];
    stage_install("cuda", CUDA_FILE);
    stage_install("cuda", "plugins/libweber_cuda2.so");
    stage_install("cpu", "plugins/libweber_mycpu.so");
    expect(wb_loaded("CUDA"));
    join(wb_skipped_plugins(), skipped, sizeof skipped);
    expect_part(skipped, "libweber_cuda2.so: another plugin of this backend is loaded already");
    expect_part(skipped, "libweber_mycpu.so: another plugin of this backend is loaded already");
    expect(wb_get_device("CPU", 0) == wb_cpu_device());
}

/* ---- devices ---- */

/* As the system gives it, where it does. */
static void the_cpu_has_its_makers_name(void) {
    char name[256];
    wb_platform_processor_name(name, sizeof name);
    const wb_properties properties = wb_device_properties(wb_cpu_device());
    expect(properties.name[0]);
    if (name[0]) expect_text(properties.name, name);
}

static void devices_are_made_once(void) {
    stage_install("cuda", CUDA_FILE);
    (void)setenv("FAKE_CUDA_COUNT", "3", 1);
    (void)setenv("FAKE_CUDA_NAMES", "GeForce RTX 2080 Ti|GeForce RTX 2080 Ti|TITAN X (Pascal)", 1);
    const wb_device *second = wb_get_device("CUDA", 1);
    const wb_device *const *all = wb_devices("CUDA");
    expect(all && all[0] && all[1] == second && all[2] && !all[3]);
    expect(wb_devices("CUDA") == all && wb_get_device("CUDA", 2) == all[2]);
    expect(wb_device_count("CUDA") == 3);
    expect_text(wb_device_name(second), "CUDA(1)");
    expect_text(wb_device_backend_name(second), "CUDA");
    expect(wb_device_id(second) == 1);
    const wb_device *const *cpus = wb_devices("CPU");
    expect(cpus && cpus[0] == wb_cpu_device() && !cpus[1]);
    expect(wb_device_id(wb_cpu_device()) == -1 && wb_device_id(NULL) == -1);
    expect_text(wb_device_backend_name(wb_cpu_device()), "CPU");
    expect_text(wb_device_backend_name(NULL), "");
}

static void a_list_with_a_device_that_cannot_be_opened(void) {
    stage_install("cuda", CUDA_FILE);
    (void)setenv("FAKE_CUDA_COUNT", "2", 1);
    (void)setenv("FAKE_CUDA_CLOSED", "1", 1);
    expect(wb_devices("CUDA") == NULL);
    expect_error(WB_ERROR_DEVICE, "the driver is busy");
    expect(wb_get_device("CUDA", 0) != NULL);
}

static void properties_are_the_drivers(void) {
    wb_properties p;
    stage_install("cuda", CUDA_FILE);
    (void)setenv("FAKE_CUDA_CLOSED", "0", 1); /* it is not opened for this */
    expect(wb_device_properties_at("CUDA", 0, &p) == WB_OK);
    expect_text(p.name, "NVIDIA GeForce GTX 1650");
    expect_text(p.driver, "fake driver 1.0");
    expect(p.memory_bytes == (int64_t)4 << 30 && p.compute_units == 14 && p.is_gpu && p.has_f64);
    (void)unsetenv("FAKE_CUDA_CLOSED");
    const wb_properties opened = wb_device_properties(wb_get_device("CUDA", 0));
    expect_text(opened.name, p.name);
    expect(opened.memory_bytes == p.memory_bytes && opened.is_gpu);
    expect(wb_device_properties_at("CUDA", 1, &p) == WB_ERROR_ARGUMENT && p.name[0] == 0);
    expect_error(WB_ERROR_ARGUMENT, "CUDA(1): there is 1 CUDA device, 0");
    const wb_properties cpu = wb_device_properties(wb_cpu_device());
    expect(cpu.name[0] && cpu.memory_bytes > 0 && cpu.compute_units == wb_threads() && !cpu.is_gpu);
    expect(wb_device_properties(NULL).name[0] == 0);
}

static void show_devices_prints_a_line_each(void) {
    stage_install("cuda", CUDA_FILE);
    stage_install("opencl", "plugins/libweber_opencl.so");
    (void)setenv("FAKE_CUDA_COUNT", "2", 1);
    (void)setenv("FAKE_OpenCL_NAMES", "a processor", 1);
    (void)fflush(stdout);
    const int out = dup(1), file = open(stage_path("out"), O_CREAT | O_RDWR, 0644);
    expect(out >= 0 && file >= 0 && dup2(file, 1) == 1);
    wb_show_devices();
    (void)fflush(stdout);
    expect(dup2(out, 1) == 1);
    char wanted[1024];
    (void)snprintf(wanted, sizeof wanted,
                   "CUDA(0): NVIDIA GeForce GTX 1650\nCUDA(1): NVIDIA GeForce GTX 1650\n"
                   "OpenCL(0): a processor\nCPU: %s\n",
                   wb_device_properties(wb_cpu_device()).name);
    expect_text(stage_read("out"), wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(a_program_that_asks_nothing_opens_nothing),
        SCENE(wb_use_loads_one),
        SCENE(the_first_question_loads_all),
        SCENE(weber_backends_limits),
        SCENE(the_cpu_cannot_be_left_out),
        SCENE(a_plugin_under_another_name_is_limited_too),
        SCENE(lists_are_in_order_of_preference),
        SCENE(an_unknown_plugin_is_listed_before_the_cpu),
        SCENE(an_unknown_plugin_that_does_not_load_is_listed),
        SCENE(lists_that_were_given_stay),
        SCENE(unknown_names_are_errors_with_the_nearest),
        SCENE(checked_comes_by_name_only),
        SCENE(what_is_not_installed_says_what_it_needs),
        SCENE(a_failing_load_is_tried_again),
        SCENE(a_sound_plugin_has_the_reason),
        SCENE(parts_are_asked_of_the_backend),
        SCENE(a_plugin_with_a_fault_is_refused),
        SCENE(a_file_that_is_cut_is_refused),
        SCENE(what_others_can_change_is_refused),
        SCENE(a_link_to_what_others_can_change_is_refused),
        SCENE(what_others_can_change_further_up_is_refused),
        SCENE(what_belongs_to_another_is_refused),
        SCENE(what_is_no_file_is_refused),
        SCENE(the_current_directory_is_never_searched),
        SCENE(folders_are_searched_in_order),
        SCENE(other_files_are_no_plugins),
        SCENE(a_second_plugin_of_a_backend_is_passed_over),
        SCENE(the_cpu_has_its_makers_name),
        SCENE(devices_are_made_once),
        SCENE(a_list_with_a_device_that_cannot_be_opened),
        SCENE(properties_are_the_drivers),
        SCENE(show_devices_prints_a_line_each),
    };
    return cmocka_run_group_tests_name("device/test_registry", tests, NULL, NULL);
}
