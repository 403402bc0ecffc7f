/* The transport "local": memory that the processes of one machine share.
 *
 * Each rank has a counter of the steps that it has come to, and two windows, which are used in
 * turn: a rank writes its window, increases its counter, and waits until all ranks have done so;
 * then it may read the other windows. A window is written again two steps later, when the counters
 * show that every rank has come one step further, and so has read it.
 *
 * A rank that dies is noticed by the lock that it holds on its byte of the segment, which the
 * system releases; one that is stopped, by a heartbeat, which a separate thread of each rank makes;
 * one that leaves reports it. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "platform/files.h"
#include "platform/threads.h"
#include "ranks/pace.h"
#include "ranks/segment.h"
#include "ranks/transport.h"

enum {
    LOOKS = 200, /* how often the counter is read before the clock is */
    NAP_MS = 20, /* then looks for ranks that have died */
    BEAT_MS = 500,
    SILENCE_MS = 5000, /* a rank whose heartbeat stands still for this long counts as stopped */
    LONGEST_LOOK_SECONDS = 1,
    WARNING_SECONDS = 10,
};

/* Longer than a sleeping thread needs to wake up. Otherwise, once both sides have slept, both would
 * sleep at each step, because each finds the other one still waking up. */
#define SPIN_SECONDS  100e-6
#define YIELD_SECONDS 5e-6
#define PART_SECONDS  10e-3

/* What is known of a rank that others wait for. Times count only while this process runs, too:
 * ranks that are all stopped for a while (Ctrl-Z) do not count as dead. */
typedef struct watch {
    double last, waited, silent;
    uint32_t beats;
    bool has_warned;
} watch;

typedef struct local {
    int rank, size;
    uint32_t step;
    wb_segment segment;
    wb_rank_line *lines; /* of the segment */
    double timeout;
    bool may_spin;
    const char *name; /* of the segment, until all are there */
    pthread_t heart;
    bool has_heart;
    _Atomic uint32_t ends; /* its heart sleeps on it */
    watch *watches;        /* of look, for each rank */
    wb_pace pace;
    double port_free; /* when */
    double parted;    /* when it last went away from another rank's core */
} local;

/* ---- waiting ---- */

static bool has_come(const wb_rank_line *line, uint32_t step) {
    return (int32_t)(atomic_load_explicit(&line->step, memory_order_acquire) - step) >= 0;
}

static void tick(watch *w, uint32_t beats) {
    const double now = wb_clock(), more = now - w->last;
    const double longest = LONGEST_LOOK_SECONDS, counted = more < longest ? more : longest;
    w->last = now;
    w->waited += counted;
    w->silent = beats == w->beats ? w->silent + counted : 0;
    w->beats = beats;
}

static wb_status fail_silent(int rank) {
    return wb_fail(WB_ERROR_LOST,
                   "distributed: rank %d has stopped: it has shown no sign of life for %d s", rank,
                   SILENCE_MS / 1000);
}

/* Fails if waiting for the rank would not end. The rank may come and leave during this check, so
 * whether it has come is asked last. */
static wb_status look_after(const local *l, int rank, watch *w) {
    const wb_rank_line *line = &l->lines[rank];
    const bool has_failed = wb_segment_is_told(&l->segment),
               has_died = !wb_segment_is_held(&l->segment, rank);
    const bool has_left = atomic_load(&line->has_left);
    tick(w, atomic_load(&line->beats));
    if (has_come(line, l->step)) return WB_OK;
    if (has_failed) return wb_segment_fail_as_told(&l->segment);
    if (has_left)
        return wb_fail(WB_ERROR_LOST,
                       "distributed: rank %d has ended, but rank %d waits for it in a collective",
                       rank, l->rank);
    if (has_died) return wb_fail(WB_ERROR_LOST, "distributed: rank %d has died", rank);
    if (w->silent > (double)SILENCE_MS / 1000.0) return fail_silent(rank);
    if (w->waited > l->timeout)
        return wb_fail(WB_ERROR_LOST,
                       "distributed: rank %d is alive, but has not entered the collective in which "
                       "rank %d has waited for %g s (WEBER_TIMEOUT)",
                       rank, l->rank, l->timeout);
    if (!w->has_warned && w->waited > (double)WARNING_SECONDS) {
        w->has_warned = true;
        wb_log_line(WB_LOG_WARN, "rank %d: waiting for rank %d, for %d s so far", l->rank, rank,
                    WARNING_SECONDS);
    }
    return WB_OK;
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* The system may leave two ranks on one core for a long time, since they yield to each other. The
 * one with the larger number moves to another core. */
static void part(local *l, int rank, double now) {
    const int core = wb_platform_current_core() + 1;
    atomic_store_explicit(&l->lines[l->rank].core, core, memory_order_relaxed);
    if (rank > l->rank || core != atomic_load(&l->lines[rank].core)) return;
    if (now - l->parted < PART_SECONDS) return;
    l->parted = now;
    wb_platform_change_core();
}

static bool comes_soon(local *l, int rank) {
    const wb_rank_line *line = &l->lines[rank];
    double begin = 0;
    for (;;) {
        for (int i = 0; i < LOOKS; i++, relax())
            if (has_come(line, l->step)) return true;
        const double now = wb_clock();
        if (begin == 0) begin = now;
        if (!l->may_spin || now - begin > SPIN_SECONDS) return false;
        if (now - begin < YIELD_SECONDS) continue;
        part(l, rank, now);
        (void)sched_yield(); /* it may want this core */
    }
}

static wb_status wait_for(local *l, int rank) {
    wb_rank_line *line = &l->lines[rank];
    if (comes_soon(l, rank)) return WB_OK;
    watch w = {.last = wb_clock(), .beats = atomic_load(&line->beats)};
    wb_status status = WB_OK;
    (void)atomic_fetch_add(&line->sleepers, 1);
    while (status == WB_OK && !has_come(line, l->step)) {
        const uint32_t seen = atomic_load(&line->step);
        if ((int32_t)(seen - l->step) < 0) wb_platform_sleep_on(&line->step, seen, NAP_MS);
        if (!has_come(line, l->step)) status = look_after(l, rank, &w);
    }
    (void)atomic_fetch_sub(&line->sleepers, 1);
    return status;
}

/* The next step: says that this rank has come to it, and waits for the others. */
static wb_status meet(local *l) {
    wb_rank_line *own = &l->lines[l->rank];
    l->step++;
    atomic_store_explicit(&own->core, wb_platform_current_core() + 1, memory_order_relaxed);
    atomic_store(&own->step, l->step);
    if (atomic_load(&own->sleepers)) wb_platform_wake(&own->step);
    wb_status status = WB_OK;
    for (int r = 0; status == WB_OK && r < l->size; r++)
        if (r != l->rank) status = wait_for(l, r);
    return status;
}

/* ---- a pace ----
 *
 * Each rank sends to the next one first, so that equal messages never reach one rank at the same
 * time. */

/* This rank's messages of the next step, one to each of the others. */
static void depart(local *l, bool sends, size_t bytes) {
    const double now = wb_clock(), from = now > l->port_free ? now : l->port_free;
    if (!wb_has_pace(&l->pace)) return;
    l->lines[l->rank].leaves[(l->step + 1) & 1] = from;
    if (sends) l->port_free = from + (l->size - 1) * wb_pace_message(&l->pace, bytes);
}

/* The messages to this rank, of all or of the root alone. */
static void await_messages(const local *l, int root, size_t bytes) {
    double last = 0;
    if (!wb_has_pace(&l->pace) || root == l->rank) return;
    for (int r = 0; r < l->size; r++) {
        const int turn = (l->rank - r + l->size) % l->size;
        const double at = l->lines[r].leaves[l->step & 1] + turn * wb_pace_message(&l->pace, bytes);
        if (turn && (root < 0 || root == r) && at > last) last = at;
    }
    /* the others' times are limited, so that a wrong one cannot make this rank wait for ever */
    const double latest = wb_clock() + l->timeout;
    wb_platform_sleep_until(last < latest ? last : latest);
}

/* ---- what ranks give ---- */

static char *window(const local *l, int rank, uint32_t step) {
    return wb_segment_window(&l->segment, rank, step);
}

static size_t piece_bytes(const void *state) {
    (void)state;
    return WB_WINDOW_BYTES;
}

static wb_status scatter(void *state, const void *own, size_t part_bytes, const void **parts) {
    local *l = state;
    char *to = window(l, l->rank, l->step + 1);
    const char *from = own;
    const size_t before = part_bytes * (size_t)l->rank, behind = before + part_bytes;
    memcpy(to, from, before); /* its own part stays where it is */
    memcpy(to + behind, from + behind, part_bytes * (size_t)l->size - behind);
    depart(l, true, part_bytes);
    const wb_status status = meet(l);
    if (status == WB_OK) await_messages(l, -1, part_bytes);
    for (int r = 0; r < l->size; r++)
        parts[r] = r == l->rank ? from + before : window(l, r, l->step) + before;
    return status;
}

static wb_status gather(void *state, int root, const void *own, size_t bytes, const void **all) {
    local *l = state;
    char *to = window(l, l->rank, l->step + 1);
    if (own != to && (root < 0 || root == l->rank)) memcpy(to, own, bytes);
    depart(l, root < 0 || root == l->rank, bytes);
    const wb_status status = meet(l);
    if (status == WB_OK) await_messages(l, root, bytes);
    for (int r = 0; r < l->size; r++) all[r] = window(l, r, l->step);
    return status;
}

static void *next(void *state) {
    const local *l = state;
    return window(l, l->rank, l->step + 1);
}

static void fail(void *state, const char *text) {
    const local *l = state;
    wb_segment_tell(&l->segment, text);
}

/* For ranks that meet by another transport: fails if a rank has left. */
static wb_status look(void *state) {
    const local *l = state;
    if (wb_segment_is_told(&l->segment)) return wb_segment_fail_as_told(&l->segment);
    for (int r = 0; r < l->size; r++) {
        const wb_rank_line *line = &l->lines[r];
        watch *w = &l->watches[r];
        if (r == l->rank || atomic_load(&line->has_left)) continue;
        const bool has_died = !wb_segment_is_held(&l->segment, r);
        tick(w, atomic_load(&line->beats));
        if (atomic_load(&line->has_left)) continue;
        if (has_died) return wb_fail(WB_ERROR_LOST, "distributed: rank %d has died", r);
        if (w->silent > (double)SILENCE_MS / 1000.0) return fail_silent(r);
    }
    return WB_OK;
}

/* ---- the heart ---- */

static void *beat(void *state) {
    local *l = state;
    while (!atomic_load(&l->ends)) {
        (void)atomic_fetch_add(&l->lines[l->rank].beats, 1);
        wb_platform_sleep_on(&l->ends, 0, BEAT_MS);
    }
    return NULL;
}

static bool start_heart(local *l) {
    l->has_heart = wb_platform_start_thread(&l->heart, beat, l);
    if (!l->has_heart) (void)wb_fail(WB_ERROR_MEMORY, "distributed: a thread cannot be started");
    return l->has_heart;
}

/* ---- beginning and end ---- */

static bool open_segment(local *l) {
    if (!wb_segment_open(&l->segment, l->name, l->rank, l->size)) return false;
    l->lines = l->segment.shared->lines;
    return true;
}

static void release(local *l) {
    if (l->has_heart) {
        atomic_store(&l->ends, 1);
        wb_platform_wake(&l->ends);
        (void)pthread_join(l->heart, NULL);
    }
    wb_segment_close(&l->segment);
    wb_release(l->watches);
    wb_release(l);
}

/* Why the rank will not join, as weber run has noted it; NULL: nothing is noted. */
static const char *fate_of(const local *l, int rank) {
    static const char *const fates[] = {NULL, "ended", "stopped"};
    char name[128];
    unsigned char byte = 0;
    (void)snprintf(name, sizeof name, "%s-ended", l->name);
    const int file = wb_platform_open_shared(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    const bool is_told = pread(file, &byte, 1, rank) == 1;
    (void)close(file);
    return is_told && byte < sizeof fates / sizeof *fates ? fates[byte] : NULL;
}

static wb_status fail_to_join(const local *l, int rank, const char *what) {
    wb_platform_unlink_shared(l->name);
    return wb_fail(WB_ERROR_LOST, "distributed: rank %d of %d has %s", rank, l->size, what);
}

/* The others can see the lock only once the rank has joined: until then a missing rank does not
 * count as dead. */
static wb_status await_all(local *l) {
    const double begin = wb_clock();
    bool has_warned = false;
    wb_rank_line *own = &l->lines[l->rank];
    l->step = 1;
    atomic_store(&own->step, 1);
    for (int r = 0; r < l->size; r++)
        while (!has_come(&l->lines[r], 1)) {
            const double waited = wb_clock() - begin;
            if (wb_segment_is_told(&l->segment)) return wb_segment_fail_as_told(&l->segment);
            if (!has_warned && waited > (double)WARNING_SECONDS) {
                has_warned = true;
                wb_log_line(WB_LOG_WARN,
                            "rank %d: waiting for rank %d to join the group, for %d s so far",
                            l->rank, r, WARNING_SECONDS);
            }
            if (waited > l->timeout) {
                char what[96];
                (void)snprintf(what, sizeof what,
                               "not joined the group within %g s (WEBER_TIMEOUT)", l->timeout);
                return fail_to_join(l, r, what);
            }
            for (int k = 0; k < l->size; k++) {
                const char *fate = fate_of(l, k);
                char what[48];
                (void)snprintf(what, sizeof what, "%s before it joined the group",
                               fate ? fate : "");
                if (fate && !has_come(&l->lines[k], 1)) return fail_to_join(l, k, what);
            }
            (void)usleep(1000);
        }
    return WB_OK;
}

static void *start(const wb_seat *seat, double timeout) {
    local *l = wb_alloc(sizeof *l);
    if (!l) return NULL;
    l->rank = seat->rank, l->size = seat->size, l->segment.file = -1;
    l->name = seat->run, l->timeout = timeout;
    l->may_spin = wb_platform_cores() >= seat->size;
    l->watches = wb_alloc(sizeof *l->watches * (size_t)l->size);
    if (l->watches && wb_pace_read(&l->pace) && open_segment(l) && start_heart(l) &&
        await_all(l) == WB_OK) {
        if (l->rank == 0) wb_platform_unlink_shared(l->name); /* all have mapped it */
        return l;
    }
    release(l);
    return NULL;
}

/* The process ends, and the memory with it: another of its threads may still be in a collective. */
static void stop(void *state, bool is_whole) {
    (void)is_whole;
    const local *l = state;
    wb_rank_line *own = &l->lines[l->rank];
    atomic_store(&own->has_left, 1);
    wb_platform_wake(&own->step);
}

const wb_transport wb_transport_local = {.abi = WB_TRANSPORT_ABI,
                                         .size_bytes = sizeof wb_transport_local,
                                         .name = "local",
                                         .start = start,
                                         .stop = stop,
                                         .piece_bytes = piece_bytes,
                                         .scatter = scatter,
                                         .gather = gather,
                                         .next = next,
                                         .fail = fail,
                                         .look = look};
