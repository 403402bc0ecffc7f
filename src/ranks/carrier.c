/* The thread that runs collectives while the plan runs: one job after another, in the order in
 * which they were begun.
 *
 * A job of device memory counts as done once it is on the device's queue. Until it has finished
 * there, the thread checks it between jobs, since nothing else would notice an error. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "platform/locks.h"
#include "platform/threads.h"
#include "ranks/transport.h"

enum { LOOK_NS = 50000 };

typedef struct job {
    wb_collective collective;
    wb_memory from, to; /* of the host: handles are addresses */
    void *ready;        /* of a device: the event that it waits for */
} job;

/* A job of a device that is under way. */
typedef struct flight {
    int64_t number; /* of the job, from 1 */
    void *done;     /* the event after it */
    double since;
} flight;

static struct {
    pthread_cond_t change;
    pthread_t thread;
    bool is_there, ends;
    pid_t process; /* the process that has the thread */
    job *jobs;     /* those that are not done, the oldest first */
    int64_t begun, done, capacity;
    flight *flights; /* the oldest first; room for all jobs begun */
    int64_t flight_count, flight_capacity;
    wb_status status; /* of the first that failed since the last wait */
    char text[WB_MESSAGE_BYTES];
} carrier = {.change = PTHREAD_COND_INITIALIZER};

/* The first error is kept for the thread that waits. */
static void keep_error(wb_status status) {
    char text[WB_MESSAGE_BYTES];
    (void)wb_take_error(text, sizeof text);
    if (carrier.status != WB_OK) return;
    carrier.status = status;
    (void)snprintf(carrier.text, sizeof carrier.text, "%s", text);
}

/* ---- on a device ---- */

static void drop_flights(int64_t count) {
    for (int64_t i = 0; i < count; i++) wb_ranks_release_event(carrier.flights[i].done);
    carrier.flight_count -= count;
    for (int64_t i = 0; i < carrier.flight_count; i++)
        carrier.flights[i] = carrier.flights[i + count];
}

/* Ends with the pending error: no job is under way any more. */
static void abort_flights(wb_status status) {
    wb_ranks_give_up_devices(carrier.flight_count > 0);
    drop_flights(carrier.flight_count);
    keep_error(status);
}

/* Checks whether the oldest one has finished; the lock is held, except during a wait. */
static void look_after_flights(void) {
    const flight oldest = carrier.flights[0];
    bool is_done = false;
    wb_lock_give(WB_LOCK_CARRIER);
    const wb_status status = wb_ranks_look_at(oldest.done, oldest.since, &is_done);
    if (status == WB_OK && !is_done) (void)nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    wb_lock_take(WB_LOCK_CARRIER);
    if (status != WB_OK)
        abort_flights(status);
    else if (is_done)
        drop_flights(1);
}

static wb_status post(const job *j, void **done) {
    *done = NULL;
    const wb_status status =
        wb_ranks_carry_on_device(&j->collective, j->from, j->to, j->ready, done);
    wb_ranks_release_event(j->ready);
    return status;
}

/* ---- the thread ---- */

static char *address_of(wb_memory m) { return (char *)m.handle + m.offset_bytes; }

static void carry_next(void) {
    const job next = carrier.jobs[0];
    void *done = NULL;
    wb_lock_give(WB_LOCK_CARRIER);
    const wb_status status = next.ready
                                 ? post(&next, &done)
                                 : wb_ranks_carry_out(&next.collective, address_of(next.from),
                                                      next.to.handle ? address_of(next.to) : NULL);
    wb_lock_take(WB_LOCK_CARRIER);
    carrier.done++;
    if (status != WB_OK && next.ready)
        abort_flights(status);
    else if (status != WB_OK)
        keep_error(status);
    else if (done)
        carrier.flights[carrier.flight_count++] = (flight){carrier.done, done, wb_clock()};
    for (int64_t i = 0; i < carrier.begun - carrier.done; i++)
        carrier.jobs[i] = carrier.jobs[i + 1];
    (void)pthread_cond_broadcast(&carrier.change);
}

static void *carry(void *unused) {
    (void)unused;
    wb_lock_take(WB_LOCK_CARRIER);
    for (;;) {
        if (carrier.begun > carrier.done)
            carry_next();
        else if (carrier.flight_count)
            look_after_flights();
        else if (carrier.ends)
            break;
        else
            (void)pthread_cond_wait(&carrier.change, wb_lock_mutex(WB_LOCK_CARRIER));
    }
    wb_lock_give(WB_LOCK_CARRIER);
    return NULL;
}

static bool start_thread(void) {
    carrier.is_there = wb_platform_start_thread(&carrier.thread, carry, NULL);
    carrier.process = getpid();
    if (!carrier.is_there)
        (void)wb_fail(WB_ERROR_MEMORY, "distributed: a thread cannot be started");
    return carrier.is_there;
}

static wb_status begin(const job *j) {
    wb_lock_take(WB_LOCK_CARRIER);
    int64_t waiting = carrier.begun - carrier.done, most = carrier.flight_count + waiting;
    const bool ready = (carrier.is_there || start_thread()) &&
                       WB_GROW(carrier.jobs, waiting, carrier.capacity) &&
                       (!j->ready || WB_GROW(carrier.flights, most, carrier.flight_capacity));
    if (ready) carrier.jobs[waiting] = *j;
    carrier.begun += ready;
    (void)pthread_cond_broadcast(&carrier.change);
    wb_lock_give(WB_LOCK_CARRIER);
    return ready ? WB_OK : wb_error_status();
}

static bool is_child(void) { return carrier.is_there && carrier.process != getpid(); }

wb_status wb_ranks_begin(const wb_collective *c, const void *from, void *to) {
    if (is_child()) return wb_ranks_carry_out(c, from, to); /* which refuses it */
    union {
        const void *read;
        void *any; /* only read */
    } cast = {.read = from};
    return begin(&(job){*c, {cast.any, 0}, {to, 0}, NULL});
}

wb_status wb_ranks_begin_on_device(const wb_collective *c, wb_memory from, wb_memory to) {
    job j = {*c, from, to, NULL};
    j.collective.by_device = 1;
    if (is_child()) return wb_ranks_carry_out(&j.collective, NULL, NULL);
    j.ready = wb_ranks_mark();
    if (!j.ready) return wb_error_status();
    const wb_status status = begin(&j);
    if (status != WB_OK) wb_ranks_release_event(j.ready);
    return status;
}

/* Makes the device's later work wait for the last of the jobs that were waited for, if it is still
 * under way. */
static wb_status order_device(int64_t last) {
    int64_t i = carrier.flight_count;
    while (i > 0 && carrier.flights[i - 1].number > last) i--;
    return i > 0 ? wb_ranks_wait_for(carrier.flights[i - 1].done) : WB_OK;
}

/* In a child made by fork no collective is under way. */
wb_status wb_ranks_finish(int64_t left) {
    if (is_child()) return WB_OK;
    wb_lock_take(WB_LOCK_CARRIER);
    while (carrier.begun - carrier.done > left)
        (void)pthread_cond_wait(&carrier.change, wb_lock_mutex(WB_LOCK_CARRIER));
    wb_status status = carrier.status;
    if (status != WB_OK)
        (void)wb_fail(status, "%s", carrier.text);
    else
        status = order_device(carrier.begun - left);
    carrier.status = WB_OK;
    wb_lock_give(WB_LOCK_CARRIER);
    return status;
}

wb_status wb_ranks_run(const wb_collective *c, const void *from, void *to) {
    const wb_status status = wb_ranks_finish(0);
    return status == WB_OK ? wb_ranks_carry_out(c, from, to) : status;
}

void wb_ranks_end_carrier(void) {
    if (!carrier.is_there) return;
    wb_lock_take(WB_LOCK_CARRIER);
    carrier.ends = true;
    (void)pthread_cond_broadcast(&carrier.change);
    wb_lock_give(WB_LOCK_CARRIER);
    (void)pthread_join(carrier.thread, NULL);
    carrier.is_there = false;
    wb_release(carrier.jobs);
    wb_release(carrier.flights);
    carrier.jobs = NULL, carrier.capacity = 0;
    carrier.flights = NULL, carrier.flight_capacity = 0;
}
