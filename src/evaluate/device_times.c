/* For WEBER_TRACE: measures when an asynchronous device finishes its commands. An event is queued
 * after each command, and a separate thread polls it until it has happened. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "evaluate/plan.h"
#include "platform/locks.h"
#include "platform/threads.h"

enum { DEVICES = 64, MOST_SECONDS = 60 };

typedef struct waiting {
    const wb_device *device;
    void *event;
    wb_event_info info; /* texts that are never released */
    double queued;
} waiting;

/* Guarded by the lock, but for `done`, which is the thread's. */
static struct {
    waiting *items;
    int64_t first, count, capacity; /* those from first on wait */
    bool has_started, has_failed;
    pid_t process;
    double done[DEVICES]; /* by each device, its latest command */
} times;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* ---- the thread ---- */

/* False: the command will not be in the trace. */
static bool wait_until_done(const waiting *w) {
    const wb_backend *backend = w->device->backend;
    bool is_done = false;
    wb_status status = WB_OK;
    while (status == WB_OK && !is_done && wb_clock() - w->queued < (double)MOST_SECONDS) {
        status = backend->is_done(w->device->context, w->event, &is_done);
        if (!is_done) (void)sched_yield();
    }
    const bool good = status == WB_OK && is_done;
    if (status != WB_OK) wb_clear_error();
    backend->release_event(w->device->context, w->event);
    return good;
}

/* A command begins when it is queued, or when the one before it has ended. */
static void tell(const waiting *w) {
    const double now = wb_clock();
    double *last = &times.done[w->device->number % DEVICES];
    wb_event_told(&w->info, w->queued > *last ? w->queued : *last, now);
    *last = now;
}

static void *look_on(void *unused) {
    (void)unused;
    wb_lock_take(WB_LOCK_DEVICE_TIMES);
    for (;;) {
        while (times.first == times.count)
            (void)pthread_cond_wait(&changed, wb_lock_mutex(WB_LOCK_DEVICE_TIMES));
        const waiting w = times.items[times.first];
        wb_lock_give(WB_LOCK_DEVICE_TIMES);
        if (wait_until_done(&w)) tell(&w);
        wb_lock_take(WB_LOCK_DEVICE_TIMES);
        if (++times.first == times.count) times.first = times.count = 0;
        (void)pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* ---- what it waits for ---- */

/* At the end of the program this waits for what was queued, so that the file has it. */
static void finish(void) {
    if (times.process != getpid()) return;
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 2;
    wb_lock_take(WB_LOCK_DEVICE_TIMES);
    while (times.first != times.count &&
           pthread_cond_timedwait(&changed, wb_lock_mutex(WB_LOCK_DEVICE_TIMES), &end) == 0)
        continue;
    wb_lock_give(WB_LOCK_DEVICE_TIMES);
}

/* A child of fork has no such thread. */
static bool is_there(void) {
    pthread_t thread;
    if (!times.has_started && !times.has_failed) {
        times.process = getpid();
        times.has_started = wb_platform_start_thread(&thread, look_on, NULL);
        times.has_failed = !times.has_started;
        if (times.has_started) (void)pthread_detach(thread), (void)atexit(finish);
    }
    return times.has_started && times.process == getpid();
}

/* Makes room for one more. The places of finished commands are used again, since on a busy device
 * some command is always waiting. If there is no memory, the command is not in the trace. */
static bool has_room(void) {
    if (times.count < times.capacity) return true;
    if (times.first > times.capacity / 2) {
        times.count -= times.first;
        memmove(times.items, times.items + times.first, (size_t)times.count * sizeof *times.items);
        times.first = 0;
        return true;
    }
    const int64_t capacity = 2 * times.capacity + 64;
    waiting *items = realloc(times.items, (size_t)capacity * sizeof *items);
    if (!items) return false;
    times.items = items, times.capacity = capacity;
    return true;
}

void wb_note_device_time(const wb_device *device, const wb_event_info *info, double queued) {
    const wb_backend *backend = device->backend;
    if (queued <= 0 || !backend->record || !backend->is_done) return;
    void *event = backend->record(device->context, NULL);
    if (!event) wb_clear_error(); /* the command itself was queued */
    wb_lock_take(WB_LOCK_DEVICE_TIMES);
    const bool is_kept = event && is_there() && has_room();
    if (is_kept) {
        waiting *w = &times.items[times.count++];
        *w = (waiting){device, event, *info, queued};
        w->info.kind = "device command";
        (void)pthread_cond_broadcast(&changed);
    }
    wb_lock_give(WB_LOCK_DEVICE_TIMES);
    if (event && !is_kept) backend->release_event(device->context, event);
}
