/* weber profile: where a program's time goes, by layer and operation. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

static const char help[] =
    "usage: weber profile [--rows N] [--] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs PROGRAM with WEBER_TRACE, and then shows on the standard error what its plans' commands\n"
    "took, by direction, layer and operation, the longest first: milliseconds, their share of all\n"
    "commands, and how many there were. A command of several operations has the name of the last\n"
    "one. Of a device that works by itself the table shows what queueing took; WEBER_SYNC=1 lets\n"
    "CUDA and AMDGPU wait behind each.\n"
    "  --rows N   how many rows (40)\n"
    "WEBER_TRACE=file.json itself keeps the events, for ui.perfetto.dev. The exit status is the\n"
    "program's, 128 and its signal if one ended it.\n";

enum { LINE_BYTES = 4096, KEY_BYTES = 1200, ROWS = 40, NOT_FOUND = 127 };

typedef struct row {
    char *key; /* direction, tab, layer, tab, operation */
    double ms;
    long calls;
} row;

typedef struct profile {
    row *rows;
    size_t count, capacity;
    double ms; /* of all */
    long calls;
    bool is_queued;
} profile;

/* ---- the file, one event in each line ---- */

/* The text behind "name":", without its escapes; false if it is not there. */
static bool text_of(const char *line, const char *name, char *out, size_t size) {
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
    const char *at = strstr(line, wanted);
    if (!at) return false;
    size_t used = 0;
    for (at += strlen(wanted); *at && *at != '"' && used + 1 < size; at++) {
        if (*at == '\\' && at[1]) at++;
        out[used++] = *at;
    }
    out[used] = 0;
    return true;
}

/* NULL: out of memory. */
static row *row_of(profile *p, const char *key) {
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->rows[i].key, key) == 0) return &p->rows[i];
    if (p->count == p->capacity) {
        const size_t capacity = 2 * p->capacity + 64;
        row *rows = realloc(p->rows, capacity * sizeof *rows);
        if (!rows) return NULL;
        p->rows = rows, p->capacity = capacity;
    }
    row *r = &p->rows[p->count];
    *r = (row){.key = strdup(key)};
    if (!r->key) return NULL;
    p->count++;
    return r;
}

static bool take_line(profile *p, const char *line) {
    char kind[32], name[128], layer[768] = "", direction[32] = "", key[KEY_BYTES];
    const char *duration = strstr(line, "\"dur\":");
    if (!duration || !text_of(line, "cat", kind, sizeof kind) ||
        !text_of(line, "name", name, sizeof name))
        return true;
    const bool is_queued = strcmp(kind, "queued command") == 0;
    if (!is_queued && strcmp(kind, "command") != 0 && !strstr(kind, "collective")) return true;
    (void)text_of(line, "layer", layer, sizeof layer);
    (void)text_of(line, "direction", direction, sizeof direction);
    (void)snprintf(key, sizeof key, "%s\t%s\t%s", direction, layer, name);
    row *r = row_of(p, key);
    if (!r) return false;
    const double ms = 1e-3 * strtod(duration + strlen("\"dur\":"), NULL);
    r->ms += ms, r->calls++;
    p->ms += ms, p->calls++;
    p->is_queued = p->is_queued || is_queued;
    return true;
}

static bool take_file(profile *p, FILE *file) {
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, file))
        if (!take_line(p, line)) return false;
    return true;
}

/* ---- the table ---- */

static int by_time(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->ms != y->ms) return x->ms < y->ms ? 1 : -1;
    return strcmp(x->key, y->key);
}

static void show_row(const profile *p, row *r) {
    const char *direction = strtok(r->key, "\t");
    char *layer = r->key + strlen(direction) + 1, *operation = strchr(layer, '\t');
    *operation++ = 0;
    (void)fprintf(stderr, "%12.3f %6.1f%% %9ld  %-8s  %-16s  %s\n", r->ms,
                  p->ms > 0 ? 100 * r->ms / p->ms : 0, r->calls, direction, operation,
                  *layer ? layer : "-");
}

static void show(const profile *p, size_t most) {
    if (p->count) qsort(p->rows, p->count, sizeof *p->rows, by_time);
    (void)fprintf(stderr, "%12s %7s %9s  %-8s  %-16s  %s\n", p->is_queued ? "queued, ms" : "ms",
                  "share", "calls", "", "operation", "layer");
    for (size_t i = 0; i < p->count && i < most; i++) show_row(p, &p->rows[i]);
    if (p->count > most) (void)fprintf(stderr, "%zu more rows\n", p->count - most);
    (void)fprintf(stderr, "%12.3f %6.1f%% %9ld  all\n", p->ms, 100.0, p->calls);
}

/* ---- the program ---- */

static int run_program(char **command, const char *file) {
    (void)fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        if (setenv("WEBER_TRACE", file, 1) == 0) (void)execvp(command[0], command);
        (void)fprintf(stderr, "weber profile: %s cannot be started: %s\n", command[0],
                      strerror(errno));
        _exit(NOT_FOUND);
    }
    int status = 0;
    while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    if (process < 0) return 1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool show_file(int descriptor, size_t most) {
    profile p = {.count = 0};
    FILE *file = fdopen(descriptor, "r");
    const bool done = file && take_file(&p, file);
    if (done && p.calls)
        show(&p, most);
    else if (done)
        (void)fputs("weber profile: the program ran no plans\n", stderr);
    else
        (void)fputs("weber profile: out of memory\n", stderr);
    if (file) (void)fclose(file);
    for (size_t i = 0; i < p.count; i++) free(p.rows[i].key);
    free(p.rows);
    return done;
}

int tool_profile(int count, char **arguments) {
    int at = 0;
    long most = ROWS;
    if (count == 1 && strcmp(arguments[0], "--help") == 0) return tool_help(help, true);
    if (count > 1 && strcmp(arguments[0], "--rows") == 0) {
        char *rest;
        most = strtol(arguments[1], &rest, 10);
        if (*rest || most < 1) return tool_help(help, false);
        at = 2;
    }
    if (at < count && strcmp(arguments[at], "--") == 0)
        at++;
    else if (at < count && arguments[at][0] == '-')
        return tool_help(help, false);
    if (at >= count) return tool_help(help, false);
    char name[] = "/tmp/weber-profile-XXXXXX";
    const int file = mkstemp(name);
    if (file < 0) {
        (void)fprintf(stderr, "weber profile: %s: %s\n", name, strerror(errno));
        return 1;
    }
    const int status = run_program(arguments + at, name);
    (void)unlink(name);
    if (status == NOT_FOUND) {
        (void)close(file);
        return status;
    }
    return show_file(file, (size_t)most) || status ? status : 1;
}
