/* Finds ranks on this machine that have died or stopped, by looking at their processes, so that the
 * others fail at once instead of waiting for the timeout. While ranks join, MPI blocks: a thread
 * looks meanwhile, and ends the process if a rank is lost. */
#include "watch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "platform/threads.h"

#define LOOK_SECONDS 0.25
#define LONGEST_LOOK 1.0 /* after all ranks were stopped for a while, they count as alive */
enum { SILENCE_SECONDS = 5, WARNING_SECONDS = 10, MORE_CHILDREN = 64, NAP_NS = 50000000 };
enum { SAY_NS = 500000000 }; /* so that the others see what this one saw, not its end */

/* ---- beginning and end ---- */

static bool is_launcher(const wb_process *one) {
    static const char *const names[] = {"mpirun",  "mpiexec", "orterun", "orted",
                                        "prterun", "prted",   "hydra_",  "slurmstepd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(one->name, names[i], strlen(names[i])) == 0) return true;
    return false;
}

/* A rank may be started by a script, which is then the launcher's child. In a container of its own
 * a rank sees another parent, and nothing of the others. */
static void find_launcher(watch *w) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    char number[16];
    wb_process about;
    for (size_t i = 0; !w->variable && i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i])) w->variable = variables[i];
    pid_t one = w->variable ? getppid() : 0;
    while (one > 1 && wb_platform_variable_of(one, w->variable, number, sizeof number))
        one = wb_platform_look_at_process(one, &about) ? about.parent : 0;
    if (one > 1 && wb_platform_look_at_process(one, &about) && is_launcher(&about))
        w->launcher = one;
}

bool watch_open(watch *w, const wb_host *host, const wb_seat *seat, double timeout) {
    *w = (watch){.seat = seat, .host = host, .timeout = timeout};
    w->most_children = seat->size + MORE_CHILDREN;
    (void)pthread_mutex_init(&w->mutex, NULL);
    w->lines = host->alloc(sizeof *w->lines * (size_t)seat->size);
    w->children = host->alloc(sizeof *w->children * (size_t)w->most_children);
    if (w->lines && w->children) find_launcher(w);
    return w->lines && w->children;
}

void watch_close(watch *w) {
    w->host->release(w->lines);
    w->host->release(w->children);
    w->lines = NULL, w->children = NULL;
}

watched watch_own(void) {
    watched own = {.process = getpid()};
    wb_process about;
    if (!wb_platform_look_at_process(getpid(), &about)) return (watched){.process = 0};
    own.born = about.born;
    if (gethostname(own.machine, sizeof own.machine - 1) != 0) own.machine[0] = 0;
    return own;
}

static bool is_there(const watched *one, wb_process *about) {
    return wb_platform_look_at_process((pid_t)one->process, about) && about->born == one->born;
}

/* The ranks whose processes are visible from here: those of this machine that are not in another
 * container. */
void watch_joined(watch *w, const watched *all) {
    const watched own = watch_own();
    wb_process about;
    pthread_mutex_lock(&w->mutex);
    for (int r = 0; r < w->seat->size; r++) {
        const bool is_seen = r != w->seat->rank && all[r].process > 0 &&
                             memcmp(all[r].machine, own.machine, sizeof own.machine) == 0 &&
                             is_there(&all[r], &about);
        w->lines[r] = (watch_line){.known = is_seen ? all[r] : (watched){.process = 0}};
    }
    w->has_joined = true;
    pthread_mutex_unlock(&w->mutex);
}

double watch_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- looking ---- */

/* Finds ranks that have come since; the launcher's children name their ranks once their programs
 * run. */
static void find_children(watch *w) {
    const int count = wb_platform_children(w->launcher, w->children, w->most_children);
    for (int i = 0; i < count; i++) {
        char number[16];
        wb_process about;
        if (!wb_platform_look_at_process(w->children[i], &about) ||
            !wb_platform_variable_of(w->children[i], w->variable, number, sizeof number))
            continue;
        const long r = strtol(number, NULL, 10);
        if (r >= 0 && r < w->seat->size && r != w->seat->rank && !w->lines[r].known.process)
            w->lines[r].known = (watched){.process = w->children[i], .born = about.born};
    }
}

static bool is_lost(const watch *w, int rank, watch_line *line, double more, char *text) {
    wb_process about = {.is_stopped = false};
    const bool is_known = line->known.process;
    const bool is_gone = is_known && !is_there(&line->known, &about);
    line->absent_seconds = is_known ? 0 : line->absent_seconds + more;
    line->stopped_seconds = about.is_stopped ? line->stopped_seconds + more : 0;
    if (is_gone && w->has_joined)
        (void)snprintf(text, WATCH_TEXT_BYTES, "rank %d has died", rank);
    else if (is_gone || (!w->has_joined && w->seat->local_size == w->seat->size &&
                         line->absent_seconds > SILENCE_SECONDS))
        (void)snprintf(text, WATCH_TEXT_BYTES, "rank %d of %d has ended before it joined the group",
                       rank, w->seat->size);
    else if (line->stopped_seconds > SILENCE_SECONDS)
        (void)snprintf(text, WATCH_TEXT_BYTES,
                       "rank %d has stopped: it has shown no sign of life for %d s", rank,
                       SILENCE_SECONDS);
    else
        return false;
    return true;
}

bool watch_finds_lost(watch *w, char *text) {
    bool is_found = false;
    pthread_mutex_lock(&w->mutex);
    const double now = watch_now();
    const double more = w->last > 0 ? now - w->last : 0;
    if ((w->has_joined || w->launcher) && (w->last == 0 || more >= LOOK_SECONDS)) {
        w->last = now;
        if (!w->has_joined) find_children(w);
        for (int r = 0; !is_found && r < w->seat->size; r++)
            if (r != w->seat->rank && (!w->has_joined || w->lines[r].known.process))
                is_found =
                    is_lost(w, r, &w->lines[r], more < LONGEST_LOOK ? more : LONGEST_LOOK, text);
    }
    pthread_mutex_unlock(&w->mutex);
    return is_found;
}

/* ---- while they join ---- */

static void *guard(void *of) {
    watch *w = of;
    char text[WATCH_TEXT_BYTES];
    bool has_warned = false;
    for (const double begin = watch_now(); !atomic_load(&w->guard_ends);) {
        const bool is_late = watch_now() - begin > w->timeout;
        if (is_late)
            (void)snprintf(text, sizeof text,
                           "not all ranks have joined the group within %g s (WEBER_TIMEOUT)",
                           w->timeout);
        if (is_late || watch_finds_lost(w, text)) {
            if (atomic_load(&w->guard_ends)) break;
            (void)fprintf(stderr, "rank %d: distributed: %s\n", w->seat->rank, text);
            (void)nanosleep(&(struct timespec){0, SAY_NS}, NULL);
            _exit(EXIT_FAILURE);
        }
        if (!has_warned && watch_now() - begin > WARNING_SECONDS) {
            has_warned = true;
            w->host->log(WB_LOG_WARN, "rank %d: waiting for other ranks to join, for %d s so far",
                         w->seat->rank, WARNING_SECONDS);
        }
        (void)nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
    return NULL;
}

bool watch_begin_guard(watch *w) {
    if (wb_platform_start_thread(&w->guard, guard, w)) return true;
    (void)w->host->fail(WB_ERROR_MEMORY, "distributed: a thread cannot be started");
    return false;
}

void watch_end_guard(watch *w) {
    atomic_store(&w->guard_ends, true);
    (void)pthread_join(w->guard, NULL);
}
