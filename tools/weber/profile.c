/* weber profile: where a program's time goes, by layer and operation. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

static const char help[] =
    "usage: weber profile [--rows=N] [--layers] [--skip=N] [--peak=GFLOPS,GBS] [--] PROGRAM\n"
    "                     [ARGUMENT...]\n"
    "\n"
    "Runs PROGRAM with WEBER_TRACE, and then shows on the standard error what its plans' commands\n"
    "took, by direction, layer and operation, the longest first:\n"
    "  ms, share  milliseconds, and their share of all commands\n"
    "  Gflop/s    operations on numbers, those that the command has to do at least\n"
    "  GB/s       bytes of arrays, each of them read and written once\n"
    "  of peak    the time that the device would need, by its operations or by its bytes, "
    "whichever\n"
    "             is longer, divided by the time that it took. Above 100% when the bytes came "
    "from\n"
    "             caches\n"
    "  MiB        memory of the arrays that one call makes\n"
    "Before it, what libraries chose for convolutions is told as it is chosen (WEBER_LOG=info).\n"
    "A command of several operations has the name of the last one. Of several ranks (weber run) "
    "it\n"
    "shows the first one's. On a device that works by\n"
    "itself, a command takes from the end of the one before it, or from when it was queued, to "
    "its\n"
    "own end; where the backend does not tell of that, the table shows what queueing took.\n"
    "  --rows=N   how many rows (40)\n"
    "  --layers   a row for each layer and direction, not for each operation\n"
    "  --skip=N   leaves out the first N runs of each plan (1): in a training the first step, in\n"
    "             which kernels are compiled, and libraries choose theirs\n"
    "  --peak=GFLOPS,GBS  of the device: 1e9 operations and bytes a second. Default: what a "
    "product\n"
    "             of f32 matrices and a sum of two arrays reach on the default device afterwards\n"
    "WEBER_TRACE=file.json itself keeps the events, for ui.perfetto.dev. The exit status is the\n"
    "program's, 128 and its signal if one ended it.\n";

enum { LINE_BYTES = 4096, KEY_BYTES = 1200, ROWS = 40, NOT_FOUND = 127 };

typedef struct row {
    char *key; /* direction, tab, layer, tab, operation */
    double ms, operations, bytes, made_bytes;
    double least_ms; /* at the device's peak */
    long calls;
} row;

typedef struct profile {
    row *rows;
    size_t count, capacity;
    double ms; /* of all */
    long calls, left_out;
    long skip; /* runs of each plan */
    bool by_layer, is_queued, has_peak;
    tool_peak peak; /* 0: it could not be measured */
} profile;

/* ---- the file, one event in each line ---- */

/* The text after "name":", without its escapes; false if it is not there. */
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

/* The number after "name":; 0 if it is not there. */
static double number_of(const char *line, const char *name) {
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "\"%s\":", name);
    const char *at = strstr(line, wanted);
    return at ? strtod(at + strlen(wanted), NULL) : 0;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* The peak is measured after the program has ended, and not at all if the program computes
 * nothing. */
static void add(profile *p, row *r, const char *line) {
    if (!p->has_peak) p->has_peak = true, p->peak = tool_measure_peak();
    const double ms = 1e-3 * number_of(line, "dur"), written = number_of(line, "written_bytes");
    const double operations = number_of(line, "operations");
    const double bytes = number_of(line, "read_bytes") + written;
    r->ms += ms, r->calls++;
    r->operations += operations, r->bytes += bytes, r->made_bytes += written;
    if (p->peak.gflops > 0)
        r->least_ms += 1e-6 * larger(operations / p->peak.gflops, bytes / p->peak.gbs);
    p->ms += ms, p->calls++;
}

/* The time of a command: if the device does not report it, the time that queueing took. */
static bool counts(const profile *p, const char *kind) {
    return strcmp(kind, "command") == 0 || strstr(kind, "collective") ||
           strcmp(kind, p->is_queued ? "queued command" : "device command") == 0;
}

static bool take_line(profile *p, const char *line) {
    char kind[32], name[128], layer[768] = "", direction[32] = "", key[KEY_BYTES];
    if (!text_of(line, "cat", kind, sizeof kind) || !text_of(line, "name", name, sizeof name))
        return true;
    if (!counts(p, kind)) return true;
    const double run = number_of(line, "run");
    if (run > 0 && run <= (double)p->skip) {
        p->left_out++;
        return true;
    }
    (void)text_of(line, "layer", layer, sizeof layer);
    (void)text_of(line, "direction", direction, sizeof direction);
    (void)snprintf(key, sizeof key, "%s\t%s\t%s", direction, layer, p->by_layer ? "" : name);
    row *r = row_of(p, key);
    if (r) add(p, r, line);
    return r != NULL;
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

static void show_rates(const profile *p, const row *r) {
    const double seconds = 1e-3 * r->ms;
    char peak[24] = "-";
    if (r->least_ms > 0 && r->ms > 0)
        (void)snprintf(peak, sizeof peak, "%.1f%%", 100 * r->least_ms / r->ms);
    (void)fprintf(stderr, "%12.3f %6.1f%% %9ld %9.2f %8.2f %8s %9.2f", r->ms,
                  p->ms > 0 ? 100 * r->ms / p->ms : 0, r->calls,
                  seconds > 0 ? 1e-9 * r->operations / seconds : 0,
                  seconds > 0 ? 1e-9 * r->bytes / seconds : 0, peak,
                  r->made_bytes / (double)(r->calls ? r->calls : 1) / (1 << 20));
}

static void show_row(const profile *p, row *r) {
    const char *direction = strtok(r->key, "\t");
    char *layer = r->key + strlen(direction) + 1, *operation = strchr(layer, '\t');
    *operation++ = 0;
    show_rates(p, r);
    (void)fprintf(stderr, "  %-8s  %-16s  %s\n", direction, operation, *layer ? layer : "-");
}

static void show(const profile *p, size_t most) {
    row all = {.ms = p->ms, .calls = p->calls};
    if (p->count) qsort(p->rows, p->count, sizeof *p->rows, by_time);
    (void)fprintf(stderr, "%12s %7s %9s %9s %8s %8s %9s  %-8s  %-16s  %s\n",
                  p->is_queued ? "queued, ms" : "ms", "share", "calls", "Gflop/s", "GB/s",
                  "of peak", "MiB", "", p->by_layer ? "" : "operation", "layer");
    for (size_t i = 0; i < p->count; i++) {
        const row *r = &p->rows[i];
        all.operations += r->operations, all.bytes += r->bytes;
        all.made_bytes += r->made_bytes, all.least_ms += r->least_ms;
    }
    for (size_t i = 0; i < p->count && i < most; i++) show_row(p, &p->rows[i]);
    if (p->count > most) (void)fprintf(stderr, "%zu more rows\n", p->count - most);
    show_rates(p, &all);
    if (p->peak.gflops > 0)
        (void)fprintf(stderr, "  all; peak: %.1f Gflop/s, %.1f GB/s\n", p->peak.gflops,
                      p->peak.gbs);
    else
        (void)fputs("  all; the device's peak is not known\n", stderr);
    if (p->left_out)
        (void)fprintf(stderr, "without %ld calls in the first %ld run%s of each plan (--skip)\n",
                      p->left_out, p->skip, p->skip == 1 ? "" : "s");
}

/* ---- the program ---- */

static int run_program(char **command, const char *file) {
    (void)fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        if (setenv("WEBER_TRACE", file, 1) == 0 && setenv("WEBER_LOG", "info", 0) == 0)
            (void)execvp(command[0], command);
        (void)fprintf(stderr, "weber profile: %s cannot be started: %s\n", command[0],
                      strerror(errno));
        _exit(NOT_FOUND);
    }
    int status = 0;
    while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    if (process < 0) return 1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool show_file(FILE *file, profile p, size_t most) {
    bool done = !file || take_file(&p, file);
    if (done && file && !p.calls && !p.left_out) {
        p.is_queued = true;
        rewind(file);
        done = take_file(&p, file);
    }
    if (done && p.calls)
        show(&p, most);
    else if (done && p.left_out)
        (void)fprintf(stderr,
                      "weber profile: no plan ran more than %ld time%s; --skip=0 shows all runs\n",
                      p.skip, p.skip == 1 ? "" : "s");
    else if (done)
        (void)fputs("weber profile: the program ran no plans\n", stderr);
    else
        (void)fputs("weber profile: out of memory\n", stderr);
    for (size_t i = 0; i < p.count; i++) free(p.rows[i].key);
    free(p.rows);
    return done;
}

/* With the files of all ranks. */
static void remove_folder(const char *path) {
    DIR *folder = opendir(path);
    for (const struct dirent *e; folder && (e = readdir(folder));)
        (void)unlinkat(dirfd(folder), e->d_name, 0); /* "." and ".." stay */
    if (folder) (void)closedir(folder);
    (void)rmdir(path);
}

static int profile_program(char **command, profile p, size_t most) {
    char folder[] = "/tmp/weber-profile-XXXXXX", name[64];
    if (!mkdtemp(folder)) {
        (void)fprintf(stderr, "weber profile: %s: %s\n", folder, strerror(errno));
        return 1;
    }
    (void)snprintf(name, sizeof name, "%s/trace.json", folder);
    const int status = run_program(command, name);
    FILE *file = fopen(name, "r");
    remove_folder(folder);
    const bool done = status == NOT_FOUND || show_file(file, p, most);
    if (file) (void)fclose(file);
    return done || status ? status : 1;
}

static bool read_number(const char *text, long least, long *number) {
    char *rest;
    *number = strtol(text, &rest, 10);
    return *text && !*rest && *number >= least;
}

static bool read_peak(const char *text, tool_peak *peak) {
    char *rest;
    peak->gflops = strtod(text, &rest);
    if (rest == text || *rest != ',') return false;
    peak->gbs = strtod(text = rest + 1, &rest);
    return rest != text && !*rest && peak->gflops > 0 && peak->gbs > 0;
}

static int wrong_value(int letter, const char *value) {
    if (letter == 'p')
        return tool_wrong(help, "profile: --peak must be two numbers above 0, GFLOPS,GBS, got %s",
                          value);
    return tool_wrong(help, "profile: --%s must be a whole number from %d on, got %s",
                      letter == 'r' ? "rows" : "skip", letter == 'r', value);
}

int tool_profile(int count, char **arguments) {
    static const struct option options[] = {
        {"rows", required_argument, NULL, 'r'}, {"layers", no_argument, NULL, 'l'},
        {"skip", required_argument, NULL, 's'}, {"peak", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    profile p = {.skip = 1};
    long most = ROWS;
    /* "+": arguments after PROGRAM are the program's */
    for (int letter; (letter = getopt_long(count + 1, arguments - 1, "+", options, NULL)) != -1;) {
        bool good = letter == 'l';
        if (letter == 'r') good = read_number(optarg, 1, &most);
        if (letter == 's') good = read_number(optarg, 0, &p.skip);
        if (letter == 'p') good = p.has_peak = read_peak(optarg, &p.peak);
        if (letter == 'l') p.by_layer = true;
        if (!good && (letter == 'h' || letter == '?')) return tool_help(help, letter == 'h');
        if (!good) return wrong_value(letter, optarg);
    }
    if (optind - 1 >= count) return tool_wrong(help, "profile: PROGRAM is missing");
    (void)unsetenv("WEBER_TRACE"); /* it is the program's */
    return profile_program(arguments + optind - 1, p, (size_t)most);
}
