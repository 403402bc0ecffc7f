/* tools/weber: what people and programs read. */
#include <sys/stat.h>
#include <unistd.h>

#include "support/tool.h"

/* The library without the plugins that the build puts beside it. */
static void copy_library(void) {
    char command[4096];
    (void)snprintf(command, sizeof command, "mkdir -p lib && chmod 755 . lib && cp -P '%s'* lib/",
                   stage_build("libweber.so"));
    expect(system(command) == 0);
}

static void set_scene(void) {
    copy_library();
    (void)setenv("LD_LIBRARY_PATH", stage_path("lib"), 1);
    stage_install("cuda", "plugins/libweber_cuda.so");
    (void)setenv("WEBER_BACKENDS", "cuda,amdgpu,metal", 1);
}

static void help_and_version(void) {
    expect(weber("--help") == 0);
    expect_part(output, "usage: weber devices [--json]");
    static const char *const commands[] = {"devices", "backend", "show", "convert", "evaluate"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[32];
        (void)snprintf(arguments, sizeof arguments, "%s --help", commands[i]);
        expect(weber(arguments) == 0);
        expect_part(output, "usage: weber ");
    }
    expect(weber("help") == 0);
    expect_part(output, "usage: weber devices [--json]");
    expect(weber("help show") == 0);
    expect_part(output, "usage: weber show FILE");
    expect(weber("--version") == 0);
    expect_part(output, "weber 0.");
}

static void what_it_does_not_understand(void) {
    static const char *const rows[][2] = {
        {"", "weber needs a COMMAND\n"},
        {"help a b", "weber help: takes one COMMAND, got 2 words\n"},
        {"devices --xml", "weber devices: does not take \"--xml\"\n"},
        {"devices a b", "weber devices: does not take \"b\"\n"},
        {"backend a b", "weber backend: does not take \"b\"\n"},
        {"backend --delete", "weber backend: does not take \"--delete\"\n"},
        {"layers x", "weber layers: does not take \"x\"\n"},
        {"--version x", "weber --version: does not take \"x\"\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect(weber(rows[i][0]) == 2);
        expect_part(output, rows[i][1]);
        expect_part(output, "usage: weber devices [--json]");
    }
    expect(weber("device") == 2);
    expect_part(output, "weber: there is no command \"device\"; weber help lists them\n");
    expect(weber("help device") == 2);
    expect_part(output, "weber: there is no command \"device\"; weber help lists them\n");
}

static void devices_for_people(void) {
    char wanted[512];
    set_scene();
    (void)setenv("FAKE_CUDA_COUNT", "2", 1);
    (void)setenv("FAKE_CUDA_NAMES", "GeForce RTX 2080 Ti|TITAN X (Pascal)", 1);
    stage_install("other_abi", "plugins/libweber_metal.so");
    expect(weber("devices") == 0);
    expect_part(output, "\n  CUDA    works\n");
    expect_part(output,
                "\n  AMDGPU  not loaded      libweber_amdgpu.so is not installed; it needs an "
                "AMD GPU and ROCm (Debian:\n"
                "                          libamdhip64-5, libhiprtc-builtins5)\n");
    expect_part(output, "libweber_metal.so: the plugin is for ABI");
    expect_part(output,
                "\n  OpenCL  not loaded      left out by WEBER_BACKENDS=cuda,amdgpu,metal\n");
    expect_part(output, "\n  CPU     works\n");
    const int cpu_width = (int)strlen(wb_device_properties(wb_cpu_device()).name);
    const int width = cpu_width > 19 ? cpu_width : 19;
    (void)snprintf(wanted, sizeof wanted,
                   "\n  CUDA(0)  %-*s  GPU        4.0 GiB   14 units  fake driver 1.0\n"
                   "  CUDA(1)  %-*s  GPU        4.0 GiB   14 units  fake driver 1.0\n",
                   width, "GeForce RTX 2080 Ti", width, "TITAN X (Pascal)");
    expect_part(output, wanted);
    expect_part(output, "\nChoice       CUDA(0) (automatic: the first GPU)\n");
    expect_part(output, "\nPreference   none\n");
    expect_part(output, "/preferences.toml (not there)\n");
    expect_part(output, "\nPlugins in   ");
    expect_part(output, "\nPassed over  ");
}

static void what_does_not_work_says_why(void) {
    set_scene();
    (void)setenv("FAKE_CUDA_COUNT", "0", 1);
    (void)setenv("FAKE_CUDA_WHY", "hidden by CUDA_VISIBLE_DEVICES=-1", 1);
    expect(weber("devices") == 0);
    expect_part(output, "\n  CUDA    not functional  hidden by CUDA_VISIBLE_DEVICES=-1\n");
    expect_part(output, "\nChoice       CPU (automatic: there is no GPU)\n");
    (void)setenv("FAKE_CUDA_LOAD", "there is no libcuda.so.1: no NVIDIA driver is installed", 1);
    expect(weber("devices") == 0);
    expect_part(output, "\n  CUDA    not loaded      there is no libcuda.so.1: no NVIDIA driver is "
                        "installed\n");
    expect(strstr(output, "Passed over") == NULL);
}

static void the_choice_and_where_it_comes_from(void) {
    char line[512];
    set_scene();
    stage_write("preferences.toml", "[Weber]\ngpu_backend = \"CPU\"\n");
    expect(weber("devices") == 0);
    expect_part(output, "\nChoice       CPU (the preference gpu_backend in ");
    (void)snprintf(line, sizeof line, "\nPreference   CPU\n  in         %s/preferences.toml\n",
                   stage_folder());
    expect_part(output, line);
    (void)setenv("WEBER_DEVICE", "CUDA", 1);
    expect(weber("devices") == 0);
    expect_part(output,
                "\nChoice       CUDA(0) (WEBER_DEVICE=CUDA, which overrides the preference CPU)\n");
    expect_part(output, "\nVariable     WEBER_DEVICE=CUDA\n");
    expect_part(output, "\nVariable     WEBER_BACKENDS=cuda,amdgpu,metal\n");
    (void)setenv("WEBER_DEVICE", "CUDDA", 1);
    expect(weber("devices") == 1);
    expect_part(output, "\nChoice       none: WEBER_DEVICE=CUDDA: Unsupported backend: CUDDA.");
}

static void devices_for_programs(void) {
    char wanted[2048];
    set_scene();
    (void)setenv("FAKE_CUDA_NAMES", "a \"quoted\" \\ name\t\x01 \xC3\xA9 \xFF\xC3.", 1);
    expect(weber("devices --json") == 0);
    expect_part(output, "{\n  \"version\": \"0.");
    expect_part(
        output,
        "{\"name\": \"CUDA\", \"loaded\": true, \"functional\": true, \"reason\": \"\",\n"
        "      \"devices\": [\n"
        "        {\"index\": 0, \"name\": \"a \\\"quoted\\\" \\\\ name\\u0009\\u0001 \xC3\xA9 "
        "\\ufffd\\ufffd.\", \"driver\": \"fake driver 1.0\", \"memory_bytes\": 4294967296, "
        "\"compute_units\": 14, \"is_gpu\": true, \"has_f64\": true}]},\n");
    expect_part(output,
                "{\"name\": \"AMDGPU\", \"loaded\": false, \"functional\": false, \"reason\": "
                "\"libweber_amdgpu.so is not installed");
    expect_part(output,
                "\"choice\": {\"device\": \"CUDA(0)\", \"backend\": \"CUDA\", \"automatic\": true, "
                "\"why\": \"automatic: the first GPU\"},\n");
    (void)snprintf(wanted, sizeof wanted,
                   "\"preference\": {\"file\": \"%s/preferences.toml\", \"file_exists\": false, "
                   "\"gpu_backend\": null},\n  \"plugin_folders\": [\n    \"%s/plugins\",",
                   stage_folder(), stage_folder());
    expect_part(output, wanted);
    expect_part(output, "\"passed_over\": []\n}\n");
    (void)setenv("WEBER_DEVICE", "CUDA:1", 1);
    expect(weber("devices --json") == 1);
    expect_part(
        output,
        "\"choice\": {\"error\": \"WEBER_DEVICE=CUDA:1: CUDA(1): there is 1 CUDA device, 0\"},");
}

/* The JSON is one for others too. */
static void json_is_json(void) {
    char command[2048];
    set_scene();
    stage_install("other_abi", "plugins/libweber_metal.so");
    stage_write("preferences.toml", "[Weber]\ngpu_backend = \"CPU\"\n");
    (void)setenv("FAKE_CUDA_NAMES", "a \"quoted\" \\ name\t\x01 \xC3\xA9 \xFF\xC3.|b", 1);
    (void)setenv("FAKE_CUDA_COUNT", "2", 1);
    if (system("python3 -c 1 2>/dev/null") != 0) return;
    (void)snprintf(command, sizeof command,
                   "'%s' devices --json | python3 -c 'import json, sys; d = json.load(sys.stdin); "
                   "assert [len(b[\"devices\"]) for b in d[\"backends\"]] == [2, 0, 0, 0, 1]; "
                   "assert d[\"preference\"][\"gpu_backend\"] == \"CPU\"; "
                   "assert len(d[\"passed_over\"]) == 1'",
                   stage_build("bin/weber"));
    expect(system(command) == 0);
}

static void backends_are_preferred_and_forgotten(void) {
    char line[512];
    set_scene();
    expect(weber("backend") == 0);
    expect_text(output,
                "none: the choice is automatic\nnow used: CUDA(0) (automatic: the first GPU)\n");
    expect(weber("backend --reset") == 0);
    expect_text(output, "There is no preference.\n");

    expect(weber("backend cpu") == 0);
    (void)snprintf(line, sizeof line, "New GPU backend set: CPU (%s/preferences.toml).\n",
                   stage_folder());
    expect_text(output, line);
    expect_text(stage_read("preferences.toml"), "[Weber]\ngpu_backend = \"CPU\"\n");
    expect(weber("backend") == 0);
    (void)snprintf(line, sizeof line, "CPU (%s/preferences.toml)\n", stage_folder());
    expect_part(output, line);
    expect_part(output, "now used: CPU (the preference gpu_backend in ");

    expect(weber("backend AMDGPU") == 0);
    expect_part(output, "It does not work here: libweber_amdgpu.so is not installed");
    expect(weber("backend --reset") == 0);
    expect_part(output, "Deleted the preference from ");
    expect_text(stage_read("preferences.toml"), "[Weber]\n");
}

static void backends_that_cannot_be_preferred(void) {
    set_scene();
    expect(weber("backend CUDDA") == 1);
    expect_text(output,
                "weber error: weber backend: Unsupported backend: CUDDA. Supported backends are: "
                "CUDA, AMDGPU, Metal, OpenCL, CPU. Did you mean CUDA?\n");
    (void)setenv("WEBER_PREFERENCES", "/dev/null/preferences.toml", 1);
    expect(weber("backend CUDA") == 1);
    expect_part(output,
                "weber warning: preferences: /dev/null/preferences.toml cannot be written: ");
    (void)setenv("WEBER_PREFERENCES", stage_path("preferences.toml"), 1);
    (void)setenv("WEBER_DEVICE", "CPU", 1);
    expect(weber("backend CUDA") == 0);
    expect_part(output,
                "weber warning: New GPU backend set: CUDA. WEBER_DEVICE=CPU overrides it.\n");
}

/* Copies the library and the tool to lib/ and bin/ of the scene, and a plugin to where it is asked
 * for. */
static void set_moved_scene(const char *plugin) {
    char command[4096];
    (void)snprintf(command, sizeof command,
                   "mkdir -p lib/weber bin && cp '%s' bin/weber && chmod 755 lib/weber",
                   stage_build("bin/weber"));
    copy_library();
    expect(system(command) == 0);
    stage_install("cuda", plugin);
    (void)unsetenv("WEBER_PLUGIN_PATH");
    (void)setenv("WEBER_BACKENDS", "cuda", 1);
}

static bool finds_cuda(const char *from, const char *library_path) {
    char command[4096];
    (void)snprintf(command, sizeof command,
                   "cd '%s' && LD_LIBRARY_PATH='%s' '%s' devices | grep -q 'CUDA  *works'",
                   stage_path(from), library_path, stage_path("bin/weber"));
    return system(command) == 0;
}

static void plugins_are_found_in_weber_beside_the_library(void) {
    set_moved_scene("lib/weber/libweber_cuda.so");
    expect(finds_cuda("bin", stage_path("lib")));
}

static void plugins_are_found_beside_the_library(void) {
    set_moved_scene("lib/libweber_cuda.so");
    expect(finds_cuda("lib", stage_path("lib")));
    (void)chmod(stage_path("lib"), 0777);
    expect(!finds_cuda("lib", stage_path("lib")));
}

/* The library was found through the current directory: that one is not searched. */
static void a_library_with_a_relative_path_has_no_folder(void) {
    set_moved_scene("lib/libweber_cuda.so");
    stage_install("cuda", "lib/weber/libweber_cuda.so");
    expect(!finds_cuda("lib", "."));
    expect(!finds_cuda("bin", "../lib"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(help_and_version),
        SCENE(what_it_does_not_understand),
        SCENE(devices_for_people),
        SCENE(what_does_not_work_says_why),
        SCENE(the_choice_and_where_it_comes_from),
        SCENE(devices_for_programs),
        SCENE(json_is_json),
        SCENE(backends_are_preferred_and_forgotten),
        SCENE(backends_that_cannot_be_preferred),
        SCENE(plugins_are_found_in_weber_beside_the_library),
        SCENE(plugins_are_found_beside_the_library),
        SCENE(a_library_with_a_relative_path_has_no_folder),
    };
    return cmocka_run_group_tests_name("device/test_tool", tests, NULL, NULL);
}
