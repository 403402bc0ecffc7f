/* A function run by several ranks, each a process of its own.
 *
 *     static void sums(void) { CHECK(wb_total_workers() == 3); ... }
 *     assert_int_equal(ranks_run(3, sums), 0); // exit statuses of the ranks, or-ed
 *
 * The processes are made by fork, so the test itself must not use the library before. */
#ifndef WB_TESTS_RANKS_H
#define WB_TESTS_RANKS_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_SECONDS = 120, RANKS_MOST = 16 };

/* Ends the rank with a line that says where. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (condition) break;                                                                      \
        (void)fprintf(stderr, "rank %d: %s:%d: %s; %s\n", wb_rank(), __FILE__, __LINE__,           \
                      #condition, wb_error_message());                                             \
        exit(1);                                                                                   \
    } while (0)

static pid_t ranks_started[RANKS_MOST];

static inline void ranks_set(const char *name, int value) {
    char text[16];
    (void)snprintf(text, sizeof text, "%d", value);
    (void)setenv(name, text, 1);
}

/* Begins the processes; the name of their run. */
static inline const char *ranks_start(int count, void (*body)(void)) {
    static char run[64];
    static int number;
    (void)snprintf(run, sizeof run, "/weber-test-%d-%d", (int)getpid(), number++);
    (void)fflush(NULL);
    for (int r = 0; r < count; r++) {
        ranks_started[r] = fork();
        if (ranks_started[r]) continue;
        ranks_set("WEBER_RANK", r), ranks_set("WEBER_SIZE", count);
        ranks_set("WEBER_LOCAL_RANK", r), ranks_set("WEBER_LOCAL_SIZE", count);
        (void)setenv("WEBER_RUN", run, 1);
        (void)alarm(RANKS_SECONDS);
        body();
        exit(0);
    }
    return run;
}

/* Exit status of a rank; 128 and its signal. */
static inline int ranks_wait(int rank) {
    int status = 0;
    (void)waitpid(ranks_started[rank], &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline int ranks_run(int count, void (*body)(void)) {
    const char *run = ranks_start(count, body);
    int statuses = 0;
    for (int r = 0; r < count; r++) statuses |= ranks_wait(r);
    (void)shm_unlink(run);
    return statuses;
}

#endif
