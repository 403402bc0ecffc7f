/* src/device/preferences.c, toml.c: the preference file is found, read, and changed in one place
 * only. */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/preferences.h"
#include "device/toml.h"
#include "support/stage.h"

#define FILE_NAME "preferences.toml"

/* ---- edits: what the file was, one change, what it is ---- */

typedef struct edit {
    const char *name, *before; /* before NULL: there is no file */
    const char *key, *value;   /* value NULL: it is removed; "true" and "false": a bool */
    const char *after;
} edit;

/* clang-format off */
static const edit edits[] = {
    {"a new file", NULL, "gpu_backend", "CUDA", "[Weber]\ngpu_backend = \"CUDA\"\n"},
    {"an empty file", "", "gpu_backend", "CUDA", "[Weber]\ngpu_backend = \"CUDA\"\n"},
    {"a value in its place", "[Weber]\ngpu_backend = \"CPU\"\nx = 1\n", "gpu_backend", "CUDA",
     "[Weber]\ngpu_backend = \"CUDA\"\nx = 1\n"},
    {"spaces and comments stay",
     "# mine\n\n  [ Weber ] # ours\n\tgpu_backend=  'CPU'  # why\n\n# end\n", "gpu_backend", "CUDA",
     "# mine\n\n  [ Weber ] # ours\n\tgpu_backend=  \"CUDA\"  # why\n\n# end\n"},
    {"a key behind the last of its table",
     "[A]\nx = 1\n[Weber]\na = 1 # one\n\n# of B\n[B]\ny = 2\n", "gpu_backend", "CUDA",
     "[A]\nx = 1\n[Weber]\na = 1 # one\ngpu_backend = \"CUDA\"\n\n# of B\n[B]\ny = 2\n"},
    {"a key in an empty table", "[Weber]\n[B]\n", "gpu_backend", "CUDA",
     "[Weber]\ngpu_backend = \"CUDA\"\n[B]\n"},
    {"a table behind the others", "[Flux]\ngpu_backend = \"AMDGPU\"\n", "gpu_backend", "CUDA",
     "[Flux]\ngpu_backend = \"AMDGPU\"\n\n[Weber]\ngpu_backend = \"CUDA\"\n"},
    {"the last line has no end", "[Flux]\nx = 1", "gpu_backend", "CUDA",
     "[Flux]\nx = 1\n\n[Weber]\ngpu_backend = \"CUDA\"\n"},
    {"the table's name has no end", "[Weber]", "gpu_backend", "CUDA",
     "[Weber]\ngpu_backend = \"CUDA\"\n"},
    {"the last value has no end", "[Weber]\ngpu_backend = \"CPU\"", "gpu_backend", "CUDA",
     "[Weber]\ngpu_backend = \"CUDA\""},
    {"lines that end as on other systems", "[Weber]\r\na = 1\r\n", "gpu_backend", "CUDA",
     "[Weber]\r\na = 1\r\ngpu_backend = \"CUDA\"\r\n"},
    {"a mark at the beginning", "\xEF\xBB\xBF[Weber]\na = 1\n", "a", "b",
     "\xEF\xBB\xBF[Weber]\na = \"b\"\n"},
    {"the same key of another table stays",
     "[A]\ngpu_backend = \"x\"\n[Weber]\ngpu_backend = \"y\"\n", "gpu_backend", "CUDA",
     "[A]\ngpu_backend = \"x\"\n[Weber]\ngpu_backend = \"CUDA\"\n"},
    {"tables below it are others", "[Weber.more]\na = 1\n[\"Weber\"]\na = 2\n", "a", "b",
     "[Weber.more]\na = 1\n[\"Weber\"]\na = \"b\"\n"},
    {"a quoted key", "[Weber]\n\"a\" = 'x'\n", "a", "b", "[Weber]\n\"a\" = \"b\"\n"},
    {"values over several lines",
     "[A]\nx = [ # ]\n  \"[Weber]\",\n  { y = ']' } ]\n"
     "s = \"\"\"\n[Weber]\na = 1\n\"\"\"\n[Weber]\na = 2\n", "a", "b",
     "[A]\nx = [ # ]\n  \"[Weber]\",\n  { y = ']' } ]\n"
     "s = \"\"\"\n[Weber]\na = 1\n\"\"\"\n[Weber]\na = \"b\"\n"},
    {"a value over several lines in its place", "[Weber]\na = [\n  1,\n  2 ] # two\nb = 1\n", "a",
     "x", "[Weber]\na = \"x\" # two\nb = 1\n"},
    {"a bool", "[Weber]\n", "fast", "true", "[Weber]\nfast = true\n"},
    {"a bool in its place", "[Weber]\nfast = true # ?\n", "fast", "false",
     "[Weber]\nfast = false # ?\n"},
    {"quotes and backslashes", "", "path", "C:\\\"a\"", "[Weber]\npath = \"C:\\\\\\\"a\\\"\"\n"},
    {"removed with its line", "[Weber]\na = 1\ngpu_backend = \"CUDA\" # x\nb = 2\n", "gpu_backend",
     NULL, "[Weber]\na = 1\nb = 2\n"},
    {"removed, and the table stays", "[Weber]\ngpu_backend = \"CUDA\"\n", "gpu_backend", NULL,
     "[Weber]\n"},
    {"nothing to remove", "[A]\nx = 1\n", "gpu_backend", NULL, "[A]\nx = 1\n"},
    {"nothing to remove and no file", NULL, "gpu_backend", NULL, "(none)"},
    {"dates, numbers and dotted keys of others",
     "a.b.\"c.d\" = 1979-05-27T07:32:00Z\nn = -1_000.5e+3\n[[list]]\nx = 0xFF\n[Weber]\n", "k", "v",
     "a.b.\"c.d\" = 1979-05-27T07:32:00Z\nn = -1_000.5e+3\n[[list]]\nx = 0xFF\n[Weber]\nk = "
     "\"v\"\n"},
};
/* clang-format on */

static const edit *now;

static void play_edit(void) {
    const bool is_bool =
        now->value && (strcmp(now->value, "true") == 0 || strcmp(now->value, "false") == 0);
    if (now->before) stage_write(FILE_NAME, now->before);
    const wb_status status = is_bool ? wb_preference_set_bool(now->key, now->value[0] == 't')
                                     : wb_preference_set(now->key, now->value);
    expect(status == WB_OK);
    expect_text(stage_read(FILE_NAME), now->after);
    if (now->value)
        expect_text(wb_preference_get(now->key), now->value);
    else
        expect(wb_preference_get(now->key) == NULL);
    expect_log("");
}

static void check_edit(void **state) {
    now = *state;
    assert_int_equal(on_stage(play_edit), 0);
}

/* ---- reading ---- */

static void values_are_strings_and_bools(void) {
    stage_write(FILE_NAME,
                "[Weber]\na = \"x \\\"y\\\" \\\\ \\t.\"\nb = 'C:\\n'\nyes = true\nno = false\n"
                "empty = \"\"\nodd = \"yes\"\n");
    expect_text(wb_preference_get("a"), "x \"y\" \\ \t.");
    expect_text(wb_preference_get("b"), "C:\\n");
    expect_text(wb_preference_get("yes"), "true");
    expect_text(wb_preference_get("empty"), "");
    expect(wb_preference_get("nothing") == NULL);
    expect(wb_preference_get_bool("yes", false) && !wb_preference_get_bool("no", true));
    expect(wb_preference_get_bool("nothing", true) && !wb_preference_get_bool("nothing", false));
    expect_log("");
    expect(wb_preference_get_bool("odd", true));
    expect_part(stage_log(), "odd must be true or false, but is \"yes\"");
}

static void other_values_are_a_warning(void) {
    stage_write(FILE_NAME, "[Weber]\ngpu_backend = CUDA\nn = 5\nl = [1]\nu = \"\\u0041\"\n");
    expect(wb_gpu_backend() == NULL);
    expect_part(stage_log(), "gpu_backend = CUDA must be a string, true or false");
    expect(wb_preference_get("n") == NULL && wb_preference_get("l") == NULL);
    expect(wb_preference_get("u") == NULL);
    (void)stage_log();
    expect(wb_get_device() == wb_cpu_device());
}

static void names_and_values_are_checked(void) {
    expect(wb_preference_get(NULL) == NULL);
    expect_error(WB_ERROR_ARGUMENT, "name is NULL");
    expect(wb_preference_set("a b", "x") == WB_ERROR_ARGUMENT);
    expect_error(WB_ERROR_ARGUMENT, "got \"a b\"");
    expect(wb_preference_set("", "x") == WB_ERROR_ARGUMENT);
    expect_error(WB_ERROR_ARGUMENT, "got \"\"");
    expect(wb_preference_set("a", "two\nlines") == WB_ERROR_ARGUMENT);
    expect_error(WB_ERROR_ARGUMENT, "a value must be one line");
    char text[300];
    memset(text, 'x', sizeof text);
    text[256] = 0;
    expect(wb_preference_set("a", text) == WB_ERROR_ARGUMENT);
    expect_error(WB_ERROR_ARGUMENT, "at most 255 bytes");
    text[255] = 0;
    expect(wb_preference_set("a", text) == WB_OK);
    expect_text(wb_preference_get("a"), text);
    memset(text, '"', 255);
    expect(wb_preference_set("a", text) == WB_OK);
    expect_text(wb_preference_get("a"), text);
}

static void heirs_are_read_and_not_written(void) {
    static const char *const tables[] = {"Flux", "MLDataDevices", "LuxDeviceUtils"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "[%s]\ngpu_backend = \"Metal\"\nother = \"x\"\n",
                       tables[i]);
        stage_write(FILE_NAME, text);
        expect_text(wb_gpu_backend(), "Metal");
        expect(wb_preference_get("other") == NULL);
        expect(wb_gpu_backend_set("CPU") == WB_OK);
        expect_part(stage_read(FILE_NAME), text);
        expect_text(wb_gpu_backend(), "CPU");
    }
    stage_write(FILE_NAME,
                "[LuxDeviceUtils]\ngpu_backend = \"CUDA\"\n[Flux]\ngpu_backend = \"CPU\"\n");
    expect_text(wb_gpu_backend(), "CPU");
    stage_write(FILE_NAME, "[Weber]\n[Flux]\ngpu_backend = \"CPU\"\n");
    expect(wb_gpu_backend() == NULL);
}

/* What Flux says of MPI stands in its table, and is read by the same scan. */
static void other_tables_have_bools_and_strings(void) {
    char text[] = "[Flux]\ngpu_backend = \"CUDA\"\n\nFluxDistributedMPICUDAAware = true # MPI\n"
                  "[Flux.extras]\nFluxDistributedMPIROCMAware = true\n",
         value[WB_PREFERENCE_BYTES];
    wb_toml toml = {.text = text, .size_bytes = sizeof text - 1};
    expect(wb_toml_check(&toml));
    expect(wb_toml_get(&toml, "Flux", "FluxDistributedMPICUDAAware", value, sizeof value) ==
           WB_TOML_BOOL);
    expect_text(value, "true");
    expect(wb_toml_get(&toml, "Flux", "FluxDistributedMPIROCMAware", value, sizeof value) ==
           WB_TOML_ABSENT);
    expect(wb_toml_get(&toml, "Flux", "gpu_backend", value, sizeof value) == WB_TOML_STRING);
}

static void a_broken_file_is_a_warning(void) {
    static const char *const rows[][2] = {
        {"gpu_backend\n", "line 1: a table or name = value is expected"},
        {"[Weber]\ngpu_backend = \"CUDA\n", "line 2: a string or a bracket is not closed"},
        {"[Weber]\ngpu_backend =\n", "line 2: a value is expected"},
        {"[Weber\ngpu_backend = \"CUDA\"\n", "line 1: a string or a bracket is not closed"},
        {"[Weber]\nx = [1, 2\n", "line 2: a string or a bracket is not closed"},
        {"[A]\n= 1\n", "line 2: a table or name = value is expected"},
        {"[Weber]\nx = \"\"\"\nno end\n", "line 2: a string or a bracket is not closed"},
        {"x = \"a\\", "line 1: a string or a bracket is not closed"},
        {"[Weber] x\n", "line 1: unexpected text after the table's name"},
    };
    stage_install("cuda", "plugins/libweber_cuda.so");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stage_write(FILE_NAME, rows[i][0]);
        expect_text(wb_device_name(wb_get_device()), "CUDA(0)");
        const char *log = stage_log();
        expect_part(log, "preferences.toml is ignored: ");
        expect_part(log, rows[i][1]);
        expect(wb_gpu_backend() == NULL && wb_preference_get("x") == NULL);
        expect(wb_gpu_backend_set("CPU") == WB_ERROR_FORMAT);
        expect(!wb_failed());
        expect_text(stage_read(FILE_NAME), rows[i][0]);
        (void)stage_log();
    }
}

static void a_file_with_a_zero_is_no_text(void) {
    FILE *file = fopen(stage_path(FILE_NAME), "wb");
    expect(file && fwrite("[Weber]\n\0x = 1\n", 1, 15, file) == 15 && fclose(file) == 0);
    expect(wb_gpu_backend() == NULL);
    expect_part(stage_log(), "line 2: this is not a text");
}

static void what_is_no_file_is_a_warning(void) {
    (void)mkdir(stage_path(FILE_NAME), 0755);
    expect(wb_gpu_backend() == NULL);
    expect_part(stage_log(), "preferences.toml cannot be read");
    expect(wb_gpu_backend_set("CPU") == WB_ERROR_IO);
    expect_part(stage_log(), "preferences.toml cannot be read");
    expect(rmdir(stage_path(FILE_NAME)) == 0 && mkfifo(stage_path(FILE_NAME), 0600) == 0);
    expect(wb_gpu_backend() == NULL); /* and does not wait for a writer */
    expect_part(stage_log(), "preferences.toml cannot be read: it is not a regular file");
}

/* ---- which file ---- */

static void files_are_looked_for_in_order(void) {
    (void)mkdir(stage_path("a"), 0755);
    (void)mkdir(stage_path("a/b"), 0755);
    (void)unsetenv("WEBER_PREFERENCES");
    expect(chdir(stage_path("a/b")) == 0);
    expect_text(wb_preference_file(), stage_path(".config/weber/preferences.toml"));
    (void)setenv("XDG_CONFIG_HOME", stage_path("settings"), 1);
    expect_text(wb_preference_file(), stage_path("settings/weber/preferences.toml"));

    expect(wb_gpu_backend_set("CUDA") == WB_OK); /* its folders are made */
    expect_text(stage_read("settings/weber/preferences.toml"), "[Weber]\ngpu_backend = \"CUDA\"\n");

    stage_write("LocalPreferences.toml", "[Weber]\ngpu_backend = \"AMDGPU\"\n");
    expect_text(wb_preference_file(), stage_path("LocalPreferences.toml"));
    expect_text(wb_gpu_backend(), "AMDGPU");
    stage_write("a/LocalPreferences.toml", "[Weber]\ngpu_backend = \"Metal\"\n");
    expect_text(wb_gpu_backend(), "Metal");
    stage_write("a/b/LocalPreferences.toml", "");
    expect_text(wb_preference_file(), stage_path("a/b/LocalPreferences.toml"));
    expect(wb_gpu_backend() == NULL);
    expect(wb_gpu_backend_set("CPU") == WB_OK);
    expect_text(stage_read("a/b/LocalPreferences.toml"), "[Weber]\ngpu_backend = \"CPU\"\n");
    expect_text(stage_read("a/LocalPreferences.toml"), "[Weber]\ngpu_backend = \"Metal\"\n");

    (void)setenv("WEBER_PREFERENCES", stage_path("own.toml"), 1);
    expect_text(wb_preference_file(), stage_path("own.toml"));
    expect(wb_gpu_backend() == NULL);
}

static void no_place_for_a_file_is_a_warning(void) {
    (void)unsetenv("WEBER_PREFERENCES");
    (void)unsetenv("HOME");
    expect_text(wb_preference_file(), "");
    expect(wb_gpu_backend() == NULL);
    expect_log("");
    expect(wb_gpu_backend_set("CUDA") == WB_ERROR_IO);
    expect_log("warning: preferences: there is no folder for the file; set WEBER_PREFERENCES or "
               "HOME\n");
}

/* ---- writing ---- */

static int files_in(const char *name) {
    char command[512], count[16] = "";
    (void)snprintf(command, sizeof command, "ls -A '%s' | wc -l", stage_path(name));
    FILE *pipe = popen(command, "r");
    if (pipe && fgets(count, sizeof count, pipe)) (void)pclose(pipe);
    return atoi(count);
}

static void permissions_and_links_stay(void) {
    struct stat status;
    (void)mkdir(stage_path("d"), 0755);
    stage_write("d/real.toml", "[Weber]\n");
    (void)chmod(stage_path("d/real.toml"), 0640);
    expect(symlink("real.toml", stage_path("d/link.toml")) == 0);
    (void)setenv("WEBER_PREFERENCES", stage_path("d/link.toml"), 1);
    expect(wb_preference_set("a", "b") == WB_OK);
    expect(lstat(stage_path("d/link.toml"), &status) == 0 && S_ISLNK(status.st_mode));
    expect(stat(stage_path("d/real.toml"), &status) == 0 && (status.st_mode & 07777) == 0640);
    expect_text(stage_read("d/real.toml"), "[Weber]\na = \"b\"\n");
    expect(files_in("d") == 2);
}

static void a_new_file_is_as_the_mask_says(void) {
    struct stat status;
    (void)umask(027);
    expect(wb_preference_set("a", "b") == WB_OK);
    expect(stat(stage_path(FILE_NAME), &status) == 0 && (status.st_mode & 07777) == 0640);
}

static void readers_find_a_whole_file_at_any_time(void) {
    (void)setenv("WEBER_LOG", "warn", 1);
    expect(wb_preference_set("a", "0") == WB_OK);
    const pid_t writer = fork();
    if (writer == 0) {
        for (int i = 0; i < 200; i++) {
            char text[200];
            memset(text, 'x', sizeof text);
            text[i] = 0;
            if (wb_preference_set("a", text) != WB_OK) _exit(1);
        }
        _exit(0);
    }
    int result = 0;
    for (int i = 0; waitpid(writer, &result, WNOHANG) == 0; i++)
        expect(wb_preference_get("a") != NULL);
    expect(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    expect_log("");
}

static void a_folder_that_cannot_be_written_is_a_warning(void) {
    stage_install("cuda", "plugins/libweber_cuda.so");
    stage_write(FILE_NAME, "[Weber]\ngpu_backend = \"CPU\"\n");
    (void)chmod(stage_folder(), 0555);
    const bool is_root = geteuid() == 0; /* root may write anywhere */
    if (is_root) expect(seteuid(65534) == 0);
    expect(wb_gpu_backend_set("CUDA") == WB_ERROR_IO);
    expect(!wb_failed());
    expect_part(stage_log(), "preferences.toml cannot be written: Permission denied");
    expect_text(wb_gpu_backend(), "CPU");
    expect(wb_gpu_backend_reset() == WB_ERROR_IO);
    if (is_root) expect(seteuid(0) == 0);
    (void)chmod(stage_folder(), 0755);
    expect_text(stage_read(FILE_NAME), "[Weber]\ngpu_backend = \"CPU\"\n");
    (void)stage_log();
}

static void a_file_that_cannot_be_read_is_a_warning(void) {
    stage_write(FILE_NAME, "[Weber]\ngpu_backend = \"CPU\"\n");
    (void)chmod(stage_path(FILE_NAME), 0);
    const bool is_root = geteuid() == 0;
    if (is_root) {
        (void)chmod(stage_folder(), 0755);
        expect(seteuid(65534) == 0);
    }
    expect(wb_gpu_backend() == NULL);
    expect_part(stage_log(), "preferences.toml cannot be read: Permission denied");
    if (is_root) expect(seteuid(0) == 0);
}

static void the_file_is_read_at_each_question(void) {
    static const char *const names[] = {"CPU", "XYZ", "ABC"}; /* as long as each other */
    for (int i = 0; i < 30; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "[Weber]\ngpu_backend = \"%s\"\n", names[i % 3]);
        stage_write(FILE_NAME, text);
        expect_text(wb_gpu_backend(), names[i % 3]);
    }
}

int main(void) {
    enum { EDITS = sizeof edits / sizeof *edits };
    const struct CMUnitTest scenes[] = {
        SCENE(values_are_strings_and_bools),
        SCENE(other_values_are_a_warning),
        SCENE(names_and_values_are_checked),
        SCENE(heirs_are_read_and_not_written),
        SCENE(other_tables_have_bools_and_strings),
        SCENE(a_broken_file_is_a_warning),
        SCENE(a_file_with_a_zero_is_no_text),
        SCENE(what_is_no_file_is_a_warning),
        SCENE(files_are_looked_for_in_order),
        SCENE(no_place_for_a_file_is_a_warning),
        SCENE(permissions_and_links_stay),
        SCENE(a_new_file_is_as_the_mask_says),
        SCENE(readers_find_a_whole_file_at_any_time),
        SCENE(a_folder_that_cannot_be_written_is_a_warning),
        SCENE(a_file_that_cannot_be_read_is_a_warning),
        SCENE(the_file_is_read_at_each_question),
    };
    enum { SCENES = sizeof scenes / sizeof *scenes };
    struct CMUnitTest tests[EDITS + SCENES];
    for (int i = 0; i < EDITS; i++)
        tests[i] = (struct CMUnitTest){edits[i].name, check_edit, NULL, NULL,
                                       (void *)(uintptr_t)&edits[i]};
    memcpy(tests + EDITS, scenes, sizeof scenes);
    return cmocka_run_group_tests_name("device/test_preferences", tests, NULL, NULL);
}
