#include "support/stage.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/process.h"

static void (*scene_of_child)(void);
static char folder[PATH_MAX];
static int failures;

/* ---- the log ---- */

static char caught[16384], given[16384];

static void catch_line(void *context, wb_log_level level, const char *line) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    (void)context;
    const size_t used = strlen(caught);
    (void)snprintf(caught + used, sizeof caught - used, "%s: %s\n", names[level], line);
}

const char *stage_log(void) {
    memcpy(given, caught, sizeof given);
    caught[0] = 0;
    return given;
}

/* ---- files ---- */

const char *stage_folder(void) { return folder; }

const char *stage_path(const char *name) {
    static char paths[4][2 * PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *stage_build(const char *name) {
    static char path[2 * PATH_MAX];
    if (!wb_platform_program(path, PATH_MAX)) path[0] = 0;
    char *tests = path; /* <build>/tests/FOLDER/PROGRAM */
    for (int i = 0; i < 3 && (tests = strrchr(path, '/')); i++) *tests = 0;
    (void)snprintf(tests ? tests : path, PATH_MAX, "/%s", name);
    return path;
}

static void copy_file(const char *from, const char *to) {
    static char bytes[1 << 22];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    const size_t count = in ? fread(bytes, 1, sizeof bytes, in) : 0;
    stage_expect(out && count > 0 && count < sizeof bytes && fwrite(bytes, 1, count, out) == count,
                 from, __FILE__, __LINE__);
    if (in) (void)fclose(in);
    if (out) (void)fclose(out);
}

void stage_install(const char *plugin, const char *to) {
    char name[128];
    (void)snprintf(name, sizeof name, "tests/device/plugins/%s.so", plugin);
    copy_file(stage_build(name), stage_path(to));
    (void)chmod(stage_path(to), 0644);
}

void stage_write(const char *name, const char *text) {
    FILE *file = fopen(stage_path(name), "wb");
    stage_expect(file && fputs(text, file) >= 0, name, __FILE__, __LINE__);
    if (file) (void)fclose(file);
}

const char *stage_read(const char *name) {
    static char text[16384];
    FILE *file = fopen(stage_path(name), "rb");
    if (!file) return "(none)";
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    (void)fclose(file);
    return text;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status, (void)type, (void)walk;
    return remove(path);
}

/* ---- the child ---- */

static void set_stage(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_DFL); /* a crash ends the child, and not in cmocka */
    static const char *const unwanted[] = {"WEBER_DEVICE", "WEBER_BACKENDS", "WEBER_LOG",
                                           "XDG_CONFIG_HOME"};
    (void)snprintf(folder, sizeof folder, "/tmp/weber-stage-XXXXXX");
    stage_expect(mkdtemp(folder) != NULL && chdir(folder) == 0, "a folder", __FILE__, __LINE__);
    (void)mkdir(stage_path("plugins"), 0755);
    (void)chmod(stage_path("plugins"), 0755);
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) (void)unsetenv(unwanted[i]);
    (void)setenv("WEBER_PLUGIN_PATH", stage_path("plugins"), 1);
    (void)setenv("WEBER_PREFERENCES", stage_path("preferences.toml"), 1);
    (void)setenv("HOME", folder, 1);
    wb_log_to(catch_line, NULL);
}

static int play(void) {
    set_stage();
    scene_of_child();
    stage_expect(!wb_failed(), wb_error_message(), __FILE__, __LINE__);
    wb_log_to(NULL, NULL);
    (void)chdir("/");
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failures;
}

int on_stage(void (*scene)(void)) {
    scene_of_child = scene;
    return run_with(NULL, NULL, play);
}

void check_scene(void **state) {
    const stage_scene *scene = *state;
    assert_int_equal(on_stage(scene->play), 0);
}

/* ---- expectations ---- */

void stage_expect(bool holds, const char *what, const char *file, int line) {
    if (holds) return;
    failures++;
    (void)fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

void stage_expect_text(const char *found, const char *wanted, bool is_whole, const char *file,
                       int line) {
    if (!found) found = "(null)";
    const bool holds = is_whole ? strcmp(found, wanted) == 0 : strstr(found, wanted) != NULL;
    if (holds) return;
    failures++;
    (void)fprintf(stderr, "%s:%d: wanted:\n%s\nfound:\n%s\n", file, line, wanted, found);
}

void stage_expect_error(wb_status status, const char *wanted, const char *file, int line) {
    char message[1024];
    const wb_status found = wb_take_error(message, sizeof message);
    if (found != status) {
        failures++;
        (void)fprintf(stderr, "%s:%d: wanted: %s; found: %s\n", file, line, wb_status_text(status),
                      wb_status_text(found));
    }
    stage_expect_text(message, wanted, false, file, line);
}
