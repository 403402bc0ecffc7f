/* Curves through gnuplot: a script in a temporary file, run without a shell. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weber/show.h>

#include "base/error.h"

extern char **environ;

static void write_quoted(FILE *script, const char *text) {
    (void)fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'') (void)fputc('\'', script); /* doubled: gnuplot's way to say ' */
        if (*text != '\n') (void)fputc(*text, script);
    }
    (void)fputc('\'', script);
}

static void write_data(FILE *script, const wb_series *s, int i) {
    (void)fprintf(script, "$series%d << END_OF_SERIES\n", i);
    for (int64_t k = 0; k < s->count; k++)
        (void)fprintf(script, "%lld %.9g\n", (long long)k + 1, s->values[k]);
    (void)fprintf(script, "END_OF_SERIES\n");
}

static void write_script(FILE *script, const char *path, bool svg, int count,
                         const wb_series *series) {
    (void)fprintf(script, "set terminal %s size 800,500%s\nset output ", svg ? "svg" : "png",
                  svg ? " background 'white'" : "");
    write_quoted(script, path);
    (void)fprintf(script,
                  "\nset grid\nset key outside bottom center horizontal\nset xtics autofreq\n");
    bool right = false;
    for (int i = 0; i < count; i++) {
        write_data(script, &series[i], i);
        right |= series[i].right;
    }
    if (right) (void)fprintf(script, "set ytics nomirror\nset y2tics\n");
    for (int i = 0; i < count; i++) {
        (void)fprintf(script,
                      "%s $series%d using 1:2 axes x1y%d with linespoints linewidth 2 title ",
                      i ? "," : "plot", i, series[i].right ? 2 : 1);
        write_quoted(script, series[i].name);
    }
    (void)fprintf(script, "\n");
}

/* Exit status of gnuplot, or -1 with errno set where it could not be started. */
static int run_gnuplot(const char *script) {
    char program[] = "gnuplot", *argument = strdup(script);
    if (!argument) return -1;
    char *arguments[] = {program, argument, NULL};
    posix_spawn_file_actions_t quiet;
    (void)posix_spawn_file_actions_init(&quiet);
    (void)posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child;
    const int failure = posix_spawnp(&child, program, &quiet, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&quiet);
    free(argument);
    int status = 0;
    errno = failure;
    if (failure) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static bool ends_in(const char *path, const char *ending) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ending) == 0;
}

static wb_status check_arguments(const char *path, int count, const wb_series *series) {
    if (!path) return wb_fail(WB_ERROR_ARGUMENT, "plot: path is NULL");
    if (!ends_in(path, ".png") && !ends_in(path, ".svg"))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "plot: the name of a picture must end in .png or "
                       ".svg, got %s",
                       path);
    int64_t points = 0;
    for (int i = 0; i < count; i++) {
        if (!series[i].name || (!series[i].values && series[i].count))
            return wb_fail(WB_ERROR_ARGUMENT, "plot: series %d lacks its %s", i,
                           series[i].name ? "values" : "name");
        points += series[i].count;
    }
    return points > 0
               ? WB_OK
               : wb_fail(WB_ERROR_ARGUMENT, "plot: %s: %d series without a point", path, count);
}

static wb_status draw(const char *path, const char *script_path) {
    const int status = run_gnuplot(script_path);
    if (status == 0) return WB_OK;
    if (status < 0 || status == 127)
        return wb_fail(WB_ERROR_UNSUPPORTED,
                       "plot: %s needs the program gnuplot; install the Debian package gnuplot-nox",
                       path);
    return wb_fail(WB_ERROR_IO, "plot: gnuplot could not draw %s (exit status %d)", path, status);
}

wb_status wb_plot_curves_make(const char *path, int count, const wb_series *series) {
    const wb_status checked = check_arguments(path, count, series);
    if (checked != WB_OK) return checked;
    const char *folder = getenv("TMPDIR");
    char script_path[4096];
    (void)snprintf(script_path, sizeof script_path, "%s/weber-plot-XXXXXX",
                   folder && *folder ? folder : "/tmp");
    const int file = mkstemp(script_path);
    FILE *script = file < 0 ? NULL : fdopen(file, "w");
    if (!script) {
        if (file >= 0) (void)close(file), (void)unlink(script_path);
        return wb_fail(WB_ERROR_IO, "plot: %s: %s", script_path, strerror(errno));
    }
    write_script(script, path, ends_in(path, ".svg"), count, series);
    const bool written = !ferror(script);
    const wb_status status = fclose(script) == 0 && written
                                 ? draw(path, script_path)
                                 : wb_fail(WB_ERROR_IO, "plot: writing %s failed", script_path);
    (void)unlink(script_path);
    return status;
}
