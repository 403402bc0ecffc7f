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
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/process.h"

enum { MOST_OPTIONS = 16, NOT_FOUND = 127 };

/* ---- which mpiexec ---- */

typedef enum launcher { NONE, OPEN_MPI, MPICH } launcher;

static const char *program(void) {
    const char *chosen = wb_platform_trusted_variable("WEBER_MPIEXEC");
    return chosen && *chosen ? chosen : "mpiexec";
}

/* Its kind, by what it prints about itself. */
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
    char **list; /* ends with NULL, for which there is room, too */
    int count;
    bool is_whole; /* memory has not run out */
} words;

static void add(words *w, const char *text) {
    char *own = w->is_whole ? strdup(text) : NULL;
    w->is_whole = own != NULL;
    if (own) w->list[w->count++] = own;
}

static words open_words(const mpi_run *r) {
    size_t most = MOST_OPTIONS + 1;
    for (char **v = wb_platform_environment(); *v; v++) most += 2;
    for (char *const *word = r->command; *word; word++) most++;
    words w = {.list = calloc(most, sizeof *w.list)};
    w.is_whole = w.list != NULL;
    return w;
}

static void close_words(words *w) {
    for (int i = 0; i < w->count; i++) free(w->list[i]);
    free(w->list);
}

/* Open MPI passes its own variables to other hosts, and others only if they are named. */
static void add_variables(words *w) {
    for (char **v = wb_platform_environment(); *v; v++) {
        char name[128];
        const size_t length = strcspn(*v, "=");
        if (strncmp(*v, "WEBER_", 6) != 0 || length >= sizeof name) continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, *v);
        add(w, "-x"), add(w, name);
    }
}

/* At most MOST_OPTIONS, beside variables and command. */
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

/* What ends a run, blocked and waited for together with the end of mpiexec, so that none is missed.
 * What is ignored from the start (nohup, jobs of scripts) stays so. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { END_COUNT = sizeof ends / sizeof *ends };

typedef struct awaited {
    sigset_t signals, before; /* the mask that mpiexec is given */
    bool is_to_end;
} awaited;

static void block(awaited *a) {
    a->is_to_end = false;
    (void)sigemptyset(&a->signals);
    (void)sigaddset(&a->signals, SIGCHLD);
    for (size_t i = 0; i < END_COUNT; i++) {
        struct sigaction now;
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)sigaddset(&a->signals, ends[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &a->signals, &a->before);
}

/* The terminal's signals reach mpiexec anyway: the system sends them to both. */
static int wait_for(awaited *a, pid_t child) {
    int raw = 0;
    for (;;) {
        bool is_from_terminal;
        const int number = wb_platform_await_signal(&a->signals, &is_from_terminal);
        if (number == SIGCHLD && waitpid(child, &raw, WNOHANG) == child) return raw;
        if (number < 0 || number == SIGCHLD) continue;
        a->is_to_end = true;
        if (!is_from_terminal) (void)kill(child, number);
    }
}

/* A signal may have come after mpiexec had ended. */
static bool is_to_end(const awaited *a) {
    sigset_t pending;
    if (a->is_to_end || sigpending(&pending) != 0) return a->is_to_end;
    for (size_t i = 0; i < END_COUNT; i++)
        if (sigismember(&a->signals, ends[i]) && sigismember(&pending, ends[i])) return true;
    return false;
}

bool tool_make_secret(void) {
    uint64_t key[2];
    char text[2 * 16 + 1];
    if (getentropy(key, sizeof key) != 0) return false;
    (void)snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)key[0],
                   (unsigned long long)key[1]);
    return setenv("WEBER_SECRET", text, 1) == 0;
}

/* If this process is a rank of another run, its children must not use that rank's variables. */
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

static _Noreturn void become(const words *w, const awaited *a, pid_t parent) {
    if (!wb_platform_end_with_parent(parent)) _exit(EXIT_FAILURE);
    (void)sigprocmask(SIG_SETMASK, &a->before, NULL);
    (void)execvp(w->list[0], w->list);
    (void)fprintf(stderr, "weber run: %s cannot be started: %s\n", w->list[0], strerror(errno));
    _exit(NOT_FOUND);
}

static int run_once(const mpi_run *r, launcher which, int restart, awaited *a) {
    set_environment(r, restart);
    if (!tool_make_secret()) {
        (void)fprintf(stderr, "weber run: no secret can be made: %s\n", strerror(errno));
        return 1;
    }
    words w = open_words(r);
    write_words(&w, r, which);
    (void)fflush(NULL);
    const pid_t own = getpid(), child = w.is_whole ? fork() : -1;
    if (child == 0) become(&w, a, own);
    if (child < 0)
        (void)fprintf(stderr, "weber run: no process can be made: %s\n", strerror(errno));
    close_words(&w);
    if (child < 0) return 1;
    int raw = wait_for(a, child);
    return WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
}

int tool_run_by_mpi(const mpi_run *r) {
    awaited a;
    const launcher which = ask();
    if (which == NONE) {
        (void)fprintf(stderr,
                      "weber run: %s is neither Open MPI's nor MPICH's (Debian: openmpi-bin, "
                      "mpich); WEBER_MPIEXEC names another one\n",
                      program());
        return NOT_FOUND;
    }
    block(&a);
    for (int k = 0;; k++) {
        const int status = run_once(r, which, k, &a);
        if (!status || status == NOT_FOUND || k == r->restarts || is_to_end(&a)) return status;
        (void)fprintf(stderr, "weber run: starts again, %d of %d\n", k + 1, r->restarts);
    }
}
