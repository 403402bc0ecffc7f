/* A stage for tests about plugins and preferences: a child process in a fresh folder, with chosen
 * plugins, an environment of its own and its log caught.
 *
 *     static void cuda_is_found(void) {
 *         stage_install("cuda", "plugins/libweber_cuda.so");
 *         expect(wb_loaded("CUDA"));
 *     }
 *     ...
 *     const struct CMUnitTest tests[] = {SCENE(cuda_is_found)};
 *
 * In the child nothing of cmocka is called: expect... counts what fails. WEBER_PLUGIN_PATH is
 * FOLDER/plugins, WEBER_PREFERENCES FOLDER/preferences.toml, HOME and the current directory FOLDER;
 * no other variable of Weber is set. */
#ifndef WB_TESTS_STAGE_H
#define WB_TESTS_STAGE_H

#include "support/support.h"

/* Runs the scene in a child; the number of failed expectations, or 1 where it crashed. */
int on_stage(void (*scene)(void));

/* A scene as a test. */
#define SCENE(scene)                                                                               \
    (struct CMUnitTest) {                                                                          \
#scene, check_scene, NULL, NULL, &(stage_scene) { scene }                                  \
    }
typedef struct stage_scene {
    void (*play)(void);
} stage_scene;
void check_scene(void **state);

/* The folder of the scene, absolute. */
const char *stage_folder(void);

/* A path in it. Lives until the fourth next call. */
const char *stage_path(const char *name);

/* Copies <build>/tests/device/plugins/PLUGIN.so to a file in the folder, which only its owner can
 * write. */
void stage_install(const char *plugin, const char *to);

void stage_write(const char *name, const char *text);
/* The file's text; "(none)" where there is none. Lives until the next call. */
const char *stage_read(const char *name);

/* What came to the log since the last call, a line each: "info: Using backend: CPU.\n". Lives until
 * the next call. */
const char *stage_log(void);

/* <build>/bin/weber or another file of the build. Lives until the next call. */
const char *stage_build(const char *name);

/* ---- expectations ---- */

#define expect(condition)          stage_expect((condition), #condition, __FILE__, __LINE__)
#define expect_text(found, wanted) stage_expect_text((found), (wanted), true, __FILE__, __LINE__)
#define expect_part(found, wanted) stage_expect_text((found), (wanted), false, __FILE__, __LINE__)
#define expect_log(wanted)         expect_text(stage_log(), wanted)

/* The pending error has this status and text; it is taken. */
#define expect_error(status, wanted) stage_expect_error((status), (wanted), __FILE__, __LINE__)

void stage_expect(bool holds, const char *what, const char *file, int line);
void stage_expect_text(const char *found, const char *wanted, bool is_whole, const char *file,
                       int line);
void stage_expect_error(wb_status status, const char *wanted, const char *file, int line);

#endif
