/* Runs another program, such as gnuplot, on a temporary file of text and writes what it prints to
 * the picture's file. No shell is involved. */
#include "show/program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/replace.h"
#include "platform/process.h"

enum { MOST_ARGUMENTS = 6, PATH_BYTES = 4096, UNKNOWN = 256 };

bool wb_ends_in(const char *path, const char *ending) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ending) == 0;
}

/* Starts it with its standard output going to `output`. Returns 0 or an errno. */
static int start(const char *program, char **arguments, int output, pid_t *child) {
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int failure =
        posix_spawnp(child, program, &actions, NULL, arguments, wb_platform_environment());
    (void)posix_spawn_file_actions_destroy(&actions);
    return failure;
}

/* Reads a pipe to its end, even if there is no memory for it. */
static void read_all(int pipe_end, wb_text *bytes) {
    char piece[4096];
    for (ssize_t size; (size = read(pipe_end, piece, sizeof piece)) != 0;) {
        if (size < 0 && errno != EINTR) return;
        if (size > 0) wb_text_bytes(bytes, piece, (size_t)size);
    }
}

/* Its exit status; UNKNOWN where this process ignores SIGCHLD, and it has ended; -1 with errno set
 * where it could not be started. A posix_spawn that returns before the child runs the program, as
 * POSIX allows and emulators do, cannot tell: then the child's exit status is 127. */
static int run(const char *program, char **arguments, wb_text *printed) {
    int ends[2], status = 0;
    pid_t child;
    if (pipe(ends) != 0) return -1;
    for (int i = 0; i < 2; i++) (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    const int failure = start(program, arguments, ends[1], &child);
    (void)close(ends[1]);
    if (!failure) read_all(ends[0], printed);
    (void)close(ends[0]);
    errno = failure;
    if (failure) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return UNKNOWN;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int run_over(const wb_picture *p, int count, const char *const *arguments,
                    const char *text_path, wb_text *printed) {
    char *list[MOST_ARGUMENTS + 2] = {NULL};
    bool good = (list[0] = strdup(p->program)) != NULL;
    for (int i = 0; good && i < count; i++)
        good = (list[i + 1] = strdup(*arguments[i] ? arguments[i] : text_path)) != NULL;
    const int status = good ? run(p->program, list, printed) : -1;
    for (int i = 0; i <= count; i++) free(list[i]);
    return status;
}

static wb_status draw(const wb_picture *p, int count, const char *const *arguments,
                      const char *text_path, wb_text *printed) {
    const int status = run_over(p, count, arguments, text_path, printed), why = errno;
    if ((status == 0 || status == UNKNOWN) && (printed->size || printed->failed))
        return wb_write_picture(p, printed);
    if (status == 127 || status < 0)
        return wb_fail(WB_ERROR_UNSUPPORTED,
                       "%s: %s needs the program %s, which could not be started (%s); "
                       "it is in the Debian package %s",
                       p->function, p->path, p->program,
                       status < 0 ? strerror(why) : "exit status 127", p->package);
    char number[16] = "unknown";
    if (status != UNKNOWN) (void)snprintf(number, sizeof number, "%d", status);
    return wb_fail(WB_ERROR_IO, "%s: %s could not draw %s (exit status %s)", p->function,
                   p->program, p->path, number);
}

wb_status wb_write_picture(const wb_picture *p, const wb_text *bytes) {
    wb_replacement file;
    if (bytes->failed) return wb_text_status(bytes);
    bool good = wb_replace_begin(&file, p->path);
    if (good) {
        good = fwrite(bytes->data, 1, bytes->size, file.stream) == bytes->size;
        good = wb_replace_end(&file, good) && good;
    }
    return good ? WB_OK
                : wb_fail(WB_ERROR_IO, "%s: %s: cannot be written: %s", p->function, p->path,
                          wb_replace_words(errno));
}

wb_status wb_draw_picture(const wb_picture *p, int count, const char *const *arguments,
                          void (*write)(wb_text *text, void *user), void *user) {
    const char *folder = wb_platform_trusted_variable("TMPDIR");
    char text_path[PATH_BYTES];
    (void)snprintf(text_path, sizeof text_path, "%s/weber-picture-XXXXXX",
                   folder && *folder ? folder : "/tmp");
    const int file = mkstemp(text_path);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream) {
        if (file >= 0) (void)close(file), (void)unlink(text_path);
        return wb_fail(WB_ERROR_IO, "%s: %s: %s", p->function, text_path, strerror(errno));
    }
    wb_text text = {.file = stream, .path = text_path};
    wb_text printed = {.file = NULL};
    write(&text, user);
    const wb_status status =
        fclose(stream) == 0 && !text.failed
            ? draw(p, count, arguments, text_path, &printed)
            : wb_fail(WB_ERROR_IO, "%s: writing %s failed", p->function, text_path);
    (void)unlink(text_path);
    wb_text_release(&printed);
    return status;
}
