/* weber run: one program in several processes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/files.h"
#include "platform/process.h"
#include "platform/threads.h"
#include "run_mpi.h"
#include "tool.h"

static const char help[] =
    "usage: weber run -n N [--restarts K] [--timeout SECONDS] [--mpi | --hosts HOST,...] [--]\n"
    "                 PROGRAM [ARGUMENT...]\n"
    "       weber run -n N [OPTION...] --self-test\n"
    "\n"
    "Starts PROGRAM in N processes of this machine, which train together (weber/distributed.h).\n"
    "What they print has the number of the rank before each line; rank 0 has the standard input.\n"
    "  -n N               how many\n"
    "  --restarts K       starts all of them again after a failure, at most K times, unless the\n"
    "                     program is not there (127); WEBER_RESTART says which start it is, from "
    "0 on\n"
    "  --timeout SECONDS  how long a rank waits for another one that is alive (600)\n"
    "  --mpi              starts them by mpiexec of Open MPI or MPICH, on the machines that it "
    "has\n"
    "                     (WEBER_MPIEXEC: its name)\n"
    "  --hosts HOST,...   the same, on these machines\n"
    "  --self-test        in place of PROGRAM: does it work here? (weber ranks --help)\n"
    "When one fails the others are ended. The exit status is that of the rank that failed first,\n"
    "128 and its signal if one was killed.\n";

enum { MOST = 1024, LINE_BYTES = 4096, GRACE_MS = 5000, NOT_FOUND = 127 };

typedef struct rank {
    pid_t process;  /* 0: ended */
    double stopped; /* when it was; 0: it runs */
    pid_t group;    /* its own and its children's; 0: weber run's, which has the terminal */
    struct stream {
        int file; /* -1: closed */
        FILE *to;
        size_t used;
        char line[LINE_BYTES];
    } streams[2];
} rank;

typedef struct run {
    pid_t own; /* weber run's process */
    int count, restarts;
    const char *timeout;
    char **command;
    char name[64]; /* of the shared memory */
    rank *ranks;
    char ended_name[80]; /* of more of it: a byte for each rank, which says what became of it */
    char *ended;         /* or NULL */
    int ended_file;      /* held while the run goes on */
    bool is_mpi;
    const char *hosts;
} run;

static volatile sig_atomic_t asked_to_end;
static void ask_to_end(int number) { asked_to_end = number; }

static volatile sig_atomic_t asked_to_stop;
static void ask_to_stop(int number) { asked_to_stop = number; }

/* What ends a run. What is ignored from the start (nohup, jobs of scripts) stays so. */
static void on_each_end(void (*handler)(int)) {
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (signal(numbers[i], handler) == SIG_IGN) (void)signal(numbers[i], SIG_IGN);
}

static double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- one rank ---- */

static bool set_number(const char *name, int64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    return setenv(name, text, 1) == 0;
}

/* Divides the cores among the ranks, unless the user has set a number of threads. */
static bool share_cores(int count) {
    const int cores = wb_platform_cores();
    return getenv("WEBER_NUM_THREADS") ||
           set_number("WEBER_NUM_THREADS", cores > count ? cores / count : 1);
}

/* Sets variables so that one process reads what all ranks would read at the same time. */
static bool take_input(int number) {
    if (number == 0) return true;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0;
}

static void close_pipe(const int ends[2]) { (void)close(ends[0]), (void)close(ends[1]); }

static _Noreturn void become(const run *r, int number, int restart, const int pipes[2][2]) {
    if (!wb_platform_end_with_parent(r->own)) _exit(EXIT_FAILURE);
    on_each_end(SIG_DFL);
    (void)signal(SIGTSTP, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    const bool is_set =
        set_number("WEBER_RANK", number) && set_number("WEBER_SIZE", r->count) &&
        set_number("WEBER_LOCAL_RANK", number) && set_number("WEBER_LOCAL_SIZE", r->count) &&
        set_number("WEBER_RESTART", restart) && setenv("WEBER_RUN", r->name, 1) == 0 &&
        (!r->timeout || setenv("WEBER_TIMEOUT", r->timeout, 1) == 0) && share_cores(r->count) &&
        take_input(number);
    if (is_set && dup2(pipes[0][1], STDOUT_FILENO) >= 0 && dup2(pipes[1][1], STDERR_FILENO) >= 0) {
        for (int i = 0; i < 2; i++) close_pipe(pipes[i]);
        (void)execvp(r->command[0], r->command);
    }
    (void)fprintf(stderr, "weber run: %s cannot be started: %s\n", r->command[0], strerror(errno));
    _exit(NOT_FOUND);
}

static bool open_pipes(int pipes[2][2]) {
    if (pipe(pipes[0]) != 0) return false;
    if (pipe(pipes[1]) == 0) return true;
    const int cause = errno;
    close_pipe(pipes[0]);
    errno = cause;
    return false;
}

/* False with errno set. */
static bool start_rank(run *r, int number, int restart) {
    int pipes[2][2];
    if (!open_pipes(pipes)) return false;
    (void)fflush(NULL);
    rank *k = &r->ranks[number];
    const bool has_terminal = number == 0 && isatty(STDIN_FILENO);
    k->process = fork();
    if (k->process < 0) {
        const int cause = errno;
        for (int i = 0; i < 2; i++) close_pipe(pipes[i]);
        errno = cause;
        return false;
    }
    if (!has_terminal) (void)setpgid(k->process, 0); /* set by both, in either order */
    k->group = has_terminal ? 0 : k->process;
    if (k->process == 0) become(r, number, restart, (const int(*)[2])pipes);
    for (int i = 0; i < 2; i++) {
        (void)close(pipes[i][1]);
        (void)fcntl(pipes[i][0], F_SETFD, FD_CLOEXEC);
        k->streams[i] = (struct stream){.file = pipes[i][0], .to = i ? stderr : stdout};
    }
    return true;
}

/* ---- what they print ---- */

static void put_line(struct stream *s, int number, size_t bytes) {
    (void)fprintf(s->to, "[%d] ", number);
    (void)fwrite(s->line, 1, bytes, s->to);
    (void)fputc('\n', s->to);
    if (fflush(s->to) != 0 && errno == EPIPE && !asked_to_end) asked_to_end = SIGPIPE;
}

/* Also a last line without an end. */
static void close_stream(struct stream *s, int number) {
    if (s->file < 0) return;
    if (s->used) put_line(s, number, s->used);
    (void)close(s->file);
    s->file = -1, s->used = 0;
}

/* Passes on whole lines, and pieces of lines that are too long. */
static void pass_on(struct stream *s, int number) {
    const ssize_t more = read(s->file, s->line + s->used, sizeof s->line - s->used);
    if (more < 0 && errno == EINTR) return;
    if (more <= 0) {
        close_stream(s, number);
        return;
    }
    s->used += (size_t)more;
    for (char *end; (end = memchr(s->line, '\n', s->used)) || s->used == sizeof s->line;) {
        const size_t bytes = end ? (size_t)(end - s->line) : s->used,
                     taken = end ? bytes + 1 : bytes;
        put_line(s, number, bytes);
        s->used -= taken;
        memmove(s->line, s->line + taken, s->used);
    }
}

/* Waits a little for something to pass on, and notes when it came. False: all have closed. */
static bool listen_to_all(run *r, struct pollfd *polled, double *heard) {
    const int streams = 2 * r->count;
    bool is_any = false;
    for (int i = 0; i < streams; i++) { /* poll passes over those that are closed: -1 */
        polled[i] = (struct pollfd){.fd = r->ranks[i / 2].streams[i % 2].file, .events = POLLIN};
        is_any = is_any || polled[i].fd >= 0;
    }
    if (poll(polled, (nfds_t)streams, 20) > 0) {
        for (int i = 0; i < streams; i++)
            if (polled[i].revents) pass_on(&r->ranks[i / 2].streams[i % 2], i / 2);
        *heard = now_ms();
    }
    return is_any;
}

/* ---- all of them ---- */

static void signal_all(const run *r, int number) {
    for (int k = 0; k < r->count; k++) {
        const rank *one = &r->ranks[k];
        if (one->group)
            (void)kill(-one->group, number); /* processes that they have started, too */
        else if (one->process > 0)
            (void)kill(one->process, number);
    }
}

static int status_of(int raw) { return WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw); }

static void tell(int number, int raw) {
    if (WIFSIGNALED(raw))
        (void)fprintf(stderr, "weber run: rank %d was ended by signal %d (%s)\n", number,
                      WTERMSIG(raw), strsignal(WTERMSIG(raw)));
    else
        (void)fprintf(stderr, "weber run: rank %d ended with status %d\n", number,
                      WEXITSTATUS(raw));
}

/* The number of a process group without processes may be given to another group. */
static void forget_group(rank *one) {
    if (one->group && kill(-one->group, 0) != 0 && errno == ESRCH) one->group = 0;
}

/* For those that wait for it to join; local.c reads it. */
enum { RUNS, ENDED, STOPPED };
static void note(const run *r, int k, char what) {
    if (r->ended) r->ended[k] = what;
}

/* Whether the rank still runs, perhaps stopped; else how it ended. */
static bool runs(run *r, int k, int *raw) {
    enum { SILENCE_MS = 5000 };
    rank *one = &r->ranks[k];
    const pid_t heard = waitpid(one->process, raw, WNOHANG | WUNTRACED | WCONTINUED);
    if (heard > 0 && !WIFSTOPPED(*raw) && !WIFCONTINUED(*raw)) return false;
    if (heard > 0) one->stopped = WIFSTOPPED(*raw) ? now_ms() : 0;
    const bool is_silent = one->stopped > 0 && now_ms() - one->stopped > (double)SILENCE_MS;
    note(r, k, is_silent ? STOPPED : RUNS);
    return true;
}

/* Notes which ranks have ended, and returns how many still run. A killed rank, which may be writing
 * a core file, can be noticed after the ranks that failed because of it: then the killed one counts
 * as the first, unless we sent the signal. */
static int reap(run *r, int *status, bool is_told) {
    int running = 0;
    for (int k = 0; k < r->count; k++) {
        int raw;
        if (r->ranks[k].process <= 0) {
            forget_group(&r->ranks[k]);
            continue;
        }
        if (runs(r, k, &raw)) {
            running++;
            continue;
        }
        r->ranks[k].process = 0;
        note(r, k, ENDED);
        const bool is_cause = WIFSIGNALED(raw) && !is_told && *status < 128;
        if (status_of(raw) && (!*status || is_cause)) {
            tell(k, raw);
            *status = status_of(raw);
        }
    }
    return running;
}

/* Ctrl-Z: they do not belong to the terminal's group, so they stop and go on with this process. */
static void stop_all(const run *r) {
    asked_to_stop = 0;
    signal_all(r, SIGSTOP);
    (void)raise(SIGSTOP);
    signal_all(r, SIGCONT);
}

/* Runs until all have ended. Processes that they left behind may hold a pipe, and are waited for
 * while they print. After a failure the other ranks have a moment to print what they saw. */
static int watch(run *r, struct pollfd *polled) {
    enum { SAY_MS = 1500, QUIET_MS = 2000 };
    int status = 0;
    double failed = 0, heard = now_ms();
    bool is_told = false;
    for (;;) {
        const bool is_open = listen_to_all(r, polled, &heard);
        if (asked_to_stop) stop_all(r);
        const int running = reap(r, &status, is_told);
        if (running) heard = now_ms();
        if (running == 0 && (!is_open || now_ms() - heard > (double)QUIET_MS)) break;
        if (asked_to_end && !status) status = 128 + asked_to_end;
        if (!status) continue;
        if (failed == 0) failed = now_ms();
        const double waited = now_ms() - failed;
        if (!is_told && (asked_to_end || waited > (double)SAY_MS)) {
            signal_all(r, SIGTERM), signal_all(r, SIGCONT); /* stopped ones, too */
            is_told = true;
        }
        if (waited > (double)GRACE_MS) signal_all(r, SIGKILL);
    }
    for (int i = 0; i < 2 * r->count; i++) close_stream(&r->ranks[i / 2].streams[i % 2], i / 2);
    return status;
}

/* The memory is accessible to the user alone; its name is random, so that no one else can make it
 * first. */
static bool name_run(run *r) {
    uint64_t random = 0;
    if (getentropy(&random, sizeof random) != 0) return false;
    (void)snprintf(r->name, sizeof r->name, "/weber-%d-%016llx", (int)getpid(),
                   (unsigned long long)random);
    return tool_make_secret();
}

/* Memory by which ranks that wait for others to join learn that one never will. They work without
 * it if it cannot be made. */
static void open_ended(run *r) {
    (void)snprintf(r->ended_name, sizeof r->ended_name, "%s-ended", r->name);
    const int file = wb_platform_open_shared(r->ended_name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC);
    void *memory = MAP_FAILED;
    if (file >= 0 && tool_hold(file) && wb_platform_grow_shared(file, (size_t)r->count) == 0)
        memory = mmap(NULL, (size_t)r->count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    r->ended_file = file;
    r->ended = memory == MAP_FAILED ? NULL : memory;
}

static void close_ended(run *r) {
    if (r->ended) (void)munmap(r->ended, (size_t)r->count);
    wb_platform_unlink_shared(r->ended_name);
    if (r->ended_file >= 0) (void)close(r->ended_file);
    r->ended = NULL;
}

static int run_once(run *r, int restart, struct pollfd *polled) {
    if (!name_run(r)) {
        (void)fprintf(stderr, "weber run: no secret can be made: %s\n", strerror(errno));
        return 1;
    }
    open_ended(r);
    memset(r->ranks, 0, sizeof *r->ranks * (size_t)r->count);
    for (int k = 0; k < r->count; k++)
        for (int i = 0; i < 2; i++) r->ranks[k].streams[i].file = -1;
    bool started = true;
    for (int k = 0; started && k < r->count; k++) started = start_rank(r, k, restart);
    if (!started) {
        (void)fprintf(stderr, "weber run: no process can be made: %s\n", strerror(errno));
        signal_all(r, SIGKILL);
    }
    const int status = watch(r, polled);
    wb_platform_unlink_shared(r->name); /* if the ranks ended before they could do it */
    close_ended(r);
    return started ? status : 1;
}

static int run_all(run *r) {
    r->ranks = malloc(sizeof *r->ranks * (size_t)r->count);
    struct pollfd *polled = malloc(sizeof *polled * 2 * (size_t)r->count);
    on_each_end(ask_to_end);
    if (signal(SIGTSTP, ask_to_stop) == SIG_IGN) (void)signal(SIGTSTP, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN); /* put_line checks this */
    int status = 1;
    tool_clear_leftovers();
    for (int k = 0; r->ranks && polled; k++) {
        status = run_once(r, k, polled);
        if (!status || status == NOT_FOUND || k == r->restarts || asked_to_end) break;
        (void)fprintf(stderr, "weber run: starts again, %d of %d\n", k + 1, r->restarts);
    }
    free(r->ranks);
    free(polled);
    return status;
}

/* A whole number from least on; -1: it is not one. */
static int number_of(const char *text, int least, int most) {
    char *end;
    const long value = text ? strtol(text, &end, 10) : -1;
    return text && *text && !*end && value >= least && value <= most ? (int)value : -1;
}

static bool is_duration(const char *text) {
    char *end;
    const double seconds = strtod(text, &end);
    return *text && !*end && seconds > 0;
}

/* One option and its value; false with a line that says what is wrong. */
static bool take_option(run *r, const char *name, const char *value) {
    const char *wanted;
    bool is_good;
    if (strcmp(name, "-n") == 0) {
        wanted = "a whole number from 1 to 1024";
        is_good = (r->count = number_of(value, 1, MOST)) >= 0;
    } else if (strcmp(name, "--restarts") == 0) {
        wanted = "a whole number from 0 to 1000000";
        is_good = (r->restarts = number_of(value, 0, 1000000)) >= 0;
    } else if (strcmp(name, "--timeout") == 0) {
        wanted = "a number of seconds above 0";
        is_good = value && is_duration(r->timeout = value);
    } else if (strcmp(name, "--hosts") == 0) {
        wanted = "names of machines with commas between them";
        r->hosts = value;
        is_good = r->is_mpi = value && *value && *value != '-';
    } else {
        (void)fprintf(stderr, "weber run: there is no option %s\n", name);
        return false;
    }
    if (!is_good)
        (void)fprintf(stderr, "weber run: %s must be %s, got %s\n", name, wanted,
                      value ? value : "nothing");
    return is_good;
}

/* The options in front of the program. The number of words; -1: one is wrong. */
static int take_options(run *r, int count, char **arguments, bool *is_test) {
    int i = 0;
    for (; i < count && arguments[i][0] == '-' && strcmp(arguments[i], "--") != 0; i++) {
        if (strcmp(arguments[i], "--mpi") == 0)
            r->is_mpi = true;
        else if (strcmp(arguments[i], "--self-test") == 0)
            *is_test = true;
        else if (take_option(r, arguments[i], i + 1 < count ? arguments[i + 1] : NULL))
            i++;
        else
            return -1;
    }
    return i < count && strcmp(arguments[i], "--") == 0 ? i + 1 : i;
}

/* What is wrong with the command line as a whole; NULL: nothing. */
static const char *fault_of(const run *r, int left, bool is_test) {
    if (r->count < 1) return "-n N is missing";
    if (is_test && left > 0) return "--self-test takes no PROGRAM";
    return is_test || left > 0 ? NULL : "PROGRAM is missing";
}

int tool_run(int count, char **arguments) {
    run r = {.own = getpid()};
    bool is_test = false;
    char own[PATH_MAX], check[] = "ranks";
    char *test[] = {own, check, NULL};
    (void)signal(SIGCHLD, SIG_DFL); /* if SIGCHLD is ignored, ended processes leave no status */
    if (count == 1 && strcmp(arguments[0], "--help") == 0) return tool_help(help, true);
    const int words = take_options(&r, count, arguments, &is_test);
    if (words < 0) return tool_help(help, false);
    const char *fault = fault_of(&r, count - words, is_test);
    if (!fault && is_test && !wb_platform_program(own, sizeof own))
        fault = "the tool's own file cannot be found";
    if (fault) return tool_wrong(help, "run: %s", fault);
    r.command = is_test ? test : arguments + words;
    return r.is_mpi
               ? tool_run_by_mpi(&(mpi_run){r.count, r.restarts, r.timeout, r.hosts, r.command})
               : run_all(&r);
}
