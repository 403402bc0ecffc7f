/* The thread that carries collectives while the plan goes on: one job after another, in the order
 * in which they were begun. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "ranks/ranks.h"

typedef struct job {
    wb_collective collective;
    const void *from;
    void *to;
} job;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t change;
    pthread_t thread;
    bool is_there, ends;
    pid_t process; /* that has the thread */
    job *jobs;     /* those that are not done, the oldest first */
    int64_t begun, done, capacity;
    wb_status status; /* of the first that failed since the last wait */
    char text[WB_MESSAGE_BYTES];
} carrier = {.mutex = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* The first error is kept for who waits. */
static void keep_error(wb_status status) {
    char text[WB_MESSAGE_BYTES];
    (void)wb_take_error(text, sizeof text);
    if (carrier.status != WB_OK) return;
    carrier.status = status;
    (void)snprintf(carrier.text, sizeof carrier.text, "%s", text);
}

static void *carry(void *unused) {
    (void)unused;
    pthread_mutex_lock(&carrier.mutex);
    for (;;) {
        while (carrier.begun == carrier.done && !carrier.ends)
            (void)pthread_cond_wait(&carrier.change, &carrier.mutex);
        if (carrier.begun == carrier.done) break;
        const job next = carrier.jobs[0];
        pthread_mutex_unlock(&carrier.mutex);
        const wb_status status = wb_ranks_carry_out(&next.collective, next.from, next.to);
        pthread_mutex_lock(&carrier.mutex);
        if (status != WB_OK) keep_error(status);
        carrier.done++;
        for (int64_t i = 0; i < carrier.begun - carrier.done; i++)
            carrier.jobs[i] = carrier.jobs[i + 1];
        (void)pthread_cond_broadcast(&carrier.change);
    }
    pthread_mutex_unlock(&carrier.mutex);
    return NULL;
}

/* Signals are for the program's threads. */
static bool start_thread(void) {
    sigset_t all, old;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    carrier.is_there = pthread_create(&carrier.thread, NULL, carry, NULL) == 0;
    carrier.process = getpid();
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!carrier.is_there) (void)wb_fail(WB_ERROR_MEMORY, "distributed: no thread can be made");
    return carrier.is_there;
}

wb_status wb_ranks_begin(const wb_collective *c, const void *from, void *to) {
    if (carrier.is_there && carrier.process != getpid())
        return wb_ranks_carry_out(c, from, to); /* which refuses a child of fork */
    pthread_mutex_lock(&carrier.mutex);
    int64_t waiting = carrier.begun - carrier.done;
    const bool ready =
        (carrier.is_there || start_thread()) && WB_GROW(carrier.jobs, waiting, carrier.capacity);
    if (ready) carrier.jobs[waiting] = (job){*c, from, to};
    carrier.begun += ready;
    (void)pthread_cond_broadcast(&carrier.change);
    pthread_mutex_unlock(&carrier.mutex);
    return ready ? WB_OK : wb_error_status();
}

wb_status wb_ranks_finish(int64_t left) {
    pthread_mutex_lock(&carrier.mutex);
    while (carrier.begun - carrier.done > left)
        (void)pthread_cond_wait(&carrier.change, &carrier.mutex);
    const wb_status status = carrier.status;
    if (status != WB_OK) (void)wb_fail(status, "%s", carrier.text);
    carrier.status = WB_OK;
    pthread_mutex_unlock(&carrier.mutex);
    return status;
}

wb_status wb_ranks_run(const wb_collective *c, const void *from, void *to) {
    const wb_status status = wb_ranks_finish(0);
    return status == WB_OK ? wb_ranks_carry_out(c, from, to) : status;
}

void wb_ranks_end_carrier(void) {
    if (!carrier.is_there) return;
    pthread_mutex_lock(&carrier.mutex);
    carrier.ends = true;
    (void)pthread_cond_broadcast(&carrier.change);
    pthread_mutex_unlock(&carrier.mutex);
    (void)pthread_join(carrier.thread, NULL);
    carrier.is_there = false;
    wb_release(carrier.jobs);
    carrier.jobs = NULL, carrier.capacity = 0;
}
