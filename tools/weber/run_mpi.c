/* weber run --mpi, --hosts: the same program by the mpiexec of Open MPI or MPICH, with the options
 * that it needs. */
#include "run_mpi.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORDS = 4096, NOT_FOUND = 127 };

extern char **environ;

/* ---- which mpiexec ---- */

typedef enum launcher { NONE, OPEN_MPI, MPICH } launcher;

static const char *program(void) {
    const char *chosen = getenv("WEBER_MPIEXEC");
    return chosen && *chosen ? chosen : "mpiexec";
}

/* What it says of itself. */
static launcher ask(void) {
    char command[1024], text[2048];
    (void)snprintf(command, sizeof command, "'%s' --version 2>/dev/null", program());
    FILE *answer = popen(command, "r");
    const size_t bytes = answer ? fread(text, 1, sizeof text - 1, answer) : 0;
    text[bytes] = 0;
    if (answer) (void)pclose(answer);
    if (strstr(text, "OpenRTE") || strstr(text, "Open MPI")) return OPEN_MPI;
    return strstr(text, "HYDRA") ? MPICH : NONE;
}

/* ---- its command line ---- */

typedef struct words {
    char *list[MOST_WORDS + 1];
    int count;
} words;

static void add(words *w, const char *text) {
    if (w->count < MOST_WORDS) w->list[w->count++] = strdup(text);
}

/* Open MPI hands its own variables to other hosts, and those that are named. */
static void add_variables(words *w) {
    for (char **v = environ; *v; v++) {
        char name[128];
        const size_t length = strcspn(*v, "=");
        if (strncmp(*v, "WEBER_", 6) != 0 || length >= sizeof name) continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, *v);
        add(w, "-x"), add(w, name);
    }
}

static void write_words(words *w, const mpi_run *r, launcher which) {
    char number[16];
    (void)snprintf(number, sizeof number, "%d", r->count);
    add(w, program()), add(w, "-n"), add(w, number);
    if (which == OPEN_MPI) {
        add(w, "--bind-to"), add(w, "none"), add(w, "--oversubscribe"), add(w, "--tag-output");
        if (r->hosts) add(w, "--host"), add(w, r->hosts);
        add_variables(w);
    } else {
        add(w, "-l");
        if (r->hosts) add(w, "-hosts"), add(w, r->hosts);
    }
    for (char *const *word = r->command; *word; word++) add(w, *word);
}

/* ---- running it ---- */

static volatile sig_atomic_t asked_to_end;
static void ask_to_end(int number) { asked_to_end = number; }

/* What a rank of another run has, its children must not take for theirs. */
static void set_environment(const mpi_run *r, int restart) {
    static const char *const others[] = {"WEBER_RANK", "WEBER_SIZE", "WEBER_LOCAL_RANK",
                                         "WEBER_LOCAL_SIZE", "WEBER_RUN"};
    char number[16];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) (void)unsetenv(others[i]);
    (void)snprintf(number, sizeof number, "%d", restart);
    (void)setenv("WEBER_RESTART", number, 1);
    if (r->timeout) (void)setenv("WEBER_TIMEOUT", r->timeout, 1);
    if (geteuid() != 0) return;
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

static int run_once(const mpi_run *r, launcher which, int restart) {
    set_environment(r, restart);
    words w = {.count = 0};
    write_words(&w, r, which);
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)execvp(w.list[0], w.list);
        (void)fprintf(stderr, "weber run: %s cannot be started: %s\n", w.list[0], strerror(errno));
        _exit(NOT_FOUND);
    }
    for (int i = 0; i < w.count; i++) free(w.list[i]);
    int raw = 0;
    while (child > 0 && waitpid(child, &raw, 0) < 0 && errno == EINTR)
        if (asked_to_end) (void)kill(child, asked_to_end);
    if (child < 0) return 1;
    return WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
}

int tool_run_by_mpi(const mpi_run *r) {
    const struct sigaction ends = {.sa_handler = ask_to_end};
    const launcher which = ask();
    if (which == NONE) {
        (void)fprintf(stderr,
                      "weber run: %s is neither Open MPI's nor MPICH's (Debian: openmpi-bin, "
                      "mpich); WEBER_MPIEXEC names another one\n",
                      program());
        return NOT_FOUND;
    }
    (void)sigaction(SIGTERM, &ends, NULL);
    (void)sigaction(SIGINT, &ends, NULL);
    (void)sigaction(SIGHUP, &ends, NULL);
    for (int k = 0;; k++) {
        const int status = run_once(r, which, k);
        if (!status || status == NOT_FOUND || k == r->restarts || asked_to_end) return status;
        (void)fprintf(stderr, "weber run: starts again, %d of %d\n", k + 1, r->restarts);
    }
}
