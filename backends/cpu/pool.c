/* One job at a time. Each worker has a range of its pieces, the same in every job of as many
 * pieces: what it wrote in one job, a part of a weight matrix, say, is still in its cache in the
 * next. Who is done with its own range helps with the others'.
 *
 * Pieces are claimed by compare-and-swap on one word per range that holds the job's number and the
 * next piece, so that a late worker can never take a piece of a job whose task it has not read. The
 * caller takes pieces like any worker and waits only for those that were begun. */
#include "pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "platform/locks.h"
#include "platform/threads.h"

enum { MAX_THREADS = 256, SPIN_NANOSECONDS = 40000, SPINS_PER_CLOCK = 16 };

/* next piece of a job that cannot be claimed from; and so the most pieces of one job: a call with
 * more is run as several jobs */
#define CLOSED UINT32_MAX

enum { CACHE_LINE = 64 };

typedef struct range {
    _Alignas(CACHE_LINE) uint64_t claim; /* job number << 32 | next piece */
    int64_t end;
} range;

static struct pool {
    /* the job: written by the caller while the last one is closed, read with atomics */
    wb_task_fn *task;
    void *context;
    int64_t first;
    int ranges;                     /* a worker's at its index, the caller's at 0 */
    int held;                       /* what wb_cpu_threads answers to its tasks */
    _Alignas(8) int64_t unfinished; /* pieces of the job not yet done */
    range range[MAX_THREADS];

    bool busy;        /* a caller owns the pool */
    bool waiting;     /* that caller sleeps on `finished` */
    bool stopping;    /* the workers are to end */
    bool ended;       /* the library is being unloaded: the pool is not unlocked */
    int sleeping;     /* workers asleep on `begun` */
    int threads;      /* asked for or found, 0: not yet known */
    int workers;      /* running threads of the pool */
    int callers_core; /* when it began the job; -1: unknown */
    pthread_t thread[MAX_THREADS];
    pthread_cond_t begun, finished;
} pool = {.begun = PTHREAD_COND_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};

/* the worker that this thread is while it runs a task; -1 outside */
static _Thread_local int running_as = -1;
/* the number of threads that this thread's plan was made for, whatever is set meanwhile; 0: none */
static _Thread_local int held;

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- the number of threads --- */

static int default_threads(void) {
    const char *asked = getenv("WEBER_NUM_THREADS");
    long threads = asked ? strtol(asked, NULL, 10) : 0;
    if (threads < 1) threads = wb_platform_cores();
    return threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : (int)threads;
}

int wb_cpu_hold_threads(int threads) {
    const int before = held;
    held = threads;
    return before;
}

int wb_cpu_threads(void) {
    if (held) return held;
    int threads = __atomic_load_n(&pool.threads, __ATOMIC_RELAXED);
    if (threads == 0) {
        threads = default_threads(); /* threads that race here store the same number */
        __atomic_store_n(&pool.threads, threads, __ATOMIC_RELAXED);
    }
    return threads;
}

/* --- claiming and running pieces --- */

static uint64_t current_claim(const range *r) {
    return __atomic_load_n(&r->claim, __ATOMIC_ACQUIRE);
}

static uint32_t job_of(uint64_t claim) { return (uint32_t)(claim >> 32); }

/* Wakes a caller that sleeps. The fences of this store and of the caller's make sure that one of
 * the two sees the other's. */
static void finish_piece(void) {
    if (__atomic_sub_fetch(&pool.unfinished, 1, __ATOMIC_SEQ_CST) > 0) return;
    if (!__atomic_load_n(&pool.waiting, __ATOMIC_SEQ_CST)) return;
    wb_lock_take(WB_LOCK_POOL);
    pthread_cond_signal(&pool.finished);
    wb_lock_give(WB_LOCK_POOL);
}

/* Takes the job's pieces of a range until none is left unclaimed. */
static void run_range(range *r, uint32_t job, int worker) {
    uint64_t claim = current_claim(r);
    while (job_of(claim) == job) {
        wb_task_fn *task = __atomic_load_n(&pool.task, __ATOMIC_ACQUIRE);
        void *context = __atomic_load_n(&pool.context, __ATOMIC_ACQUIRE);
        const int64_t first = __atomic_load_n(&pool.first, __ATOMIC_ACQUIRE);
        const int64_t end = __atomic_load_n(&r->end, __ATOMIC_ACQUIRE);
        const int64_t piece = (int64_t)(uint32_t)claim;
        if (piece >= end) return;

        /* Success means that the job had not been closed, so the task read above belongs to it: a
         * thread that reads a word of the next job (acquire, release) also sees that this one is
         * closed. */
        if (!__atomic_compare_exchange_n(&r->claim, &claim, claim + 1, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            continue;
        if (worker > 0) held = __atomic_load_n(&pool.held, __ATOMIC_ACQUIRE);
        task(context, first + piece, worker);
        finish_piece();
        claim = current_claim(r);
    }
}

/* The worker's own range, then what is left of the others in the same job, whose number is
 * returned. */
static uint32_t run_pieces(int worker) {
    const uint32_t job = job_of(current_claim(&pool.range[worker]));
    run_range(&pool.range[worker], job, worker);
    const int ranges = __atomic_load_n(&pool.ranges, __ATOMIC_ACQUIRE);
    for (int other = 1; other < ranges; other++)
        run_range(&pool.range[(worker + other) % ranges], job, worker);
    return job;
}

/* --- workers --- */

static bool stop_asked(void) { return __atomic_load_n(&pool.stopping, __ATOMIC_SEQ_CST); }

/* A job that the calling worker has a range of. */
static bool new_job(uint32_t seen) {
    return job_of(__atomic_load_n(&pool.range[running_as].claim, __ATOMIC_SEQ_CST)) != seen;
}

static void sleep_until_job(uint32_t seen) {
    wb_lock_take(WB_LOCK_POOL);
    __atomic_add_fetch(&pool.sleeping, 1, __ATOMIC_SEQ_CST);
    while (!new_job(seen) && !stop_asked())
        pthread_cond_wait(&pool.begun, wb_lock_mutex(WB_LOCK_POOL));
    __atomic_sub_fetch(&pool.sleeping, 1, __ATOMIC_SEQ_CST);
    wb_lock_give(WB_LOCK_POOL);
}

static void wait_for_job(uint32_t seen) {
    const int64_t end = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int spin = 0; spin < SPINS_PER_CLOCK; spin++) {
            if (new_job(seen) || stop_asked()) return;
            relax();
        }
    } while (nanoseconds() < end);
    sleep_until_job(seen);
}

/* A thread that is woken while every core is busy is often put on the core of the thread that wakes
 * it, and stays there for milliseconds: then two threads are as slow as one. */
static void leave_callers_core(void) {
    wb_platform_leave_core(__atomic_load_n(&pool.callers_core, __ATOMIC_RELAXED));
}

static void note_callers_core(void) {
    __atomic_store_n(&pool.callers_core, wb_platform_current_core(), __ATOMIC_RELAXED);
}

static void *work(void *index) {
    const int worker = (int)(intptr_t)index;
    running_as = worker;
    wb_platform_begin_work("weber");
    while (!stop_asked()) {
        leave_callers_core();
        wait_for_job(run_pieces(worker));
    }
    return NULL;
}

static void wake_sleepers(void) {
    if (__atomic_load_n(&pool.sleeping, __ATOMIC_SEQ_CST) == 0) return;
    wb_lock_take(WB_LOCK_POOL);
    pthread_cond_broadcast(&pool.begun);
    wb_lock_give(WB_LOCK_POOL);
}

/* --- start and end --- */

/* A forked child has none of the threads: it begins afresh. */
static void forget_threads(void) {
    pthread_cond_init(&pool.begun, NULL);
    pthread_cond_init(&pool.finished, NULL);
    pool.busy = pool.waiting = pool.stopping = false;
    pool.sleeping = pool.workers = 0;
    pool.unfinished = 0;
    const uint64_t closed = (uint64_t)(job_of(pool.range[0].claim) + 1) << 32 | CLOSED;
    for (int r = 0; r < MAX_THREADS; r++) pool.range[r].claim = closed;
}

/* It is no error if a thread cannot be started: the caller does the work of missing workers. */
static void start_workers(int wanted) {
    static const wb_fork_hooks hooks = {.in_child = forget_threads};
    wb_lock_on_fork(WB_LOCK_POOL, &hooks);
    if (pool.workers == 0) wb_platform_note_cores(); /* which workers read */
    while (pool.workers < wanted) {
        void *index = (void *)(intptr_t)(pool.workers + 1);
        if (!wb_platform_start_thread(&pool.thread[pool.workers], work, index)) break;
        pool.workers++;
    }
}

/* The owner of the pool only. Also when the library is unloaded: no thread may stay in its code. */
static void stop_workers(void) {
    __atomic_store_n(&pool.stopping, true, __ATOMIC_SEQ_CST);
    wb_lock_take(WB_LOCK_POOL);
    pthread_cond_broadcast(&pool.begun);
    wb_lock_give(WB_LOCK_POOL);
    for (; pool.workers > 0; pool.workers--) pthread_join(pool.thread[pool.workers - 1], NULL);
    __atomic_store_n(&pool.stopping, false, __ATOMIC_SEQ_CST);
}

static bool take_pool(void) {
    return running_as < 0 && !__atomic_load_n(&pool.busy, __ATOMIC_RELAXED) &&
           !__atomic_exchange_n(&pool.busy, true, __ATOMIC_ACQUIRE);
}

static void give_pool(void) { __atomic_store_n(&pool.busy, false, __ATOMIC_RELEASE); }

/* The pool stays locked, so a thread that still computes works without it. */
__attribute__((destructor)) static void end_pool(void) {
    __atomic_store_n(&pool.ended, true, __ATOMIC_SEQ_CST);
    if (take_pool()) stop_workers();
}

static void pause_a_moment(void) {
    const struct timespec time = {.tv_nsec = 20000};
    (void)nanosleep(&time, NULL);
}

void wb_cpu_set_threads(int threads) {
    if (threads < 1) threads = default_threads();
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    while (!take_pool()) {
        if (running_as >= 0 || __atomic_load_n(&pool.ended, __ATOMIC_SEQ_CST)) return;
        pause_a_moment();
    }
    if (pool.workers != threads - 1) stop_workers();
    __atomic_store_n(&pool.threads, threads, __ATOMIC_RELAXED);
    give_pool();
}

/* --- the caller --- */

static bool job_done(void) { return __atomic_load_n(&pool.unfinished, __ATOMIC_SEQ_CST) <= 0; }

/* Sleeping after a bounded spin leaves the core to a worker that was held up inside a piece. */
static void wait_for_others(void) {
    const int64_t end = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int spin = 0; spin < SPINS_PER_CLOCK; spin++) {
            if (job_done()) return;
            relax();
        }
    } while (nanoseconds() < end);

    wb_lock_take(WB_LOCK_POOL);
    __atomic_store_n(&pool.waiting, true, __ATOMIC_SEQ_CST);
    while (!job_done()) pthread_cond_wait(&pool.finished, wb_lock_mutex(WB_LOCK_POOL));
    __atomic_store_n(&pool.waiting, false, __ATOMIC_SEQ_CST);
    wb_lock_give(WB_LOCK_POOL);
}

static int64_t range_start(int r, int ranges, int64_t pieces) {
    return (r * pieces + ranges - 1) / ranges;
}

/* No piece can be taken between this and open_ranges. */
static void close_ranges(int ranges, uint32_t job) {
    for (int r = 0; r < ranges; r++)
        __atomic_store_n(&pool.range[r].claim, (uint64_t)job << 32 | CLOSED, __ATOMIC_RELEASE);
}

static void open_ranges(int ranges, uint32_t job, int64_t pieces) {
    for (int r = 0; r < ranges; r++)
        __atomic_store_n(&pool.range[r].end, range_start(r + 1, ranges, pieces), __ATOMIC_RELEASE);
    for (int r = 0; r < ranges; r++)
        __atomic_store_n(&pool.range[r].claim,
                         (uint64_t)job << 32 | (uint64_t)range_start(r, ranges, pieces),
                         __ATOMIC_SEQ_CST);
}

/* If the number of threads was raised meanwhile, the additional workers have no range, and take no
 * part. */
static void run_job(int threads, int64_t first, int64_t pieces, wb_task_fn *task, void *context) {
    note_callers_core();
    const uint32_t job = job_of(current_claim(&pool.range[0]));
    const int ranges = pool.workers < threads ? pool.workers + 1 : threads;
    close_ranges(ranges, job);
    __atomic_store_n(&pool.task, task, __ATOMIC_RELEASE);
    __atomic_store_n(&pool.context, context, __ATOMIC_RELEASE);
    __atomic_store_n(&pool.first, first, __ATOMIC_RELEASE);
    __atomic_store_n(&pool.ranges, ranges, __ATOMIC_RELEASE);
    __atomic_store_n(&pool.held, threads, __ATOMIC_RELEASE);
    __atomic_store_n(&pool.unfinished, pieces, __ATOMIC_RELEASE);
    open_ranges(ranges, job + 1, pieces);
    wake_sleepers();

    run_pieces(0);
    if (!job_done()) wait_for_others();
}

void wb_cpu_alone(int64_t pieces, wb_task_fn *task, void *context) {
    const int before = running_as;
    const int worker = before < 0 ? 0 : before;
    running_as = worker;
    for (int64_t piece = 0; piece < pieces; piece++) task(context, piece, worker);
    running_as = before;
}

void wb_cpu_parallel(int64_t pieces, wb_task_fn *task, void *context) {
    const int threads = wb_cpu_threads();
    if (pieces <= 1 || threads == 1 || !take_pool()) {
        wb_cpu_alone(pieces, task, context);
        return;
    }
    if (pool.workers < threads - 1) start_workers(threads - 1);
    running_as = 0;
    for (int64_t first = 0; first < pieces; first += (int64_t)CLOSED) {
        const int64_t left = pieces - first;
        run_job(threads, first, left < (int64_t)CLOSED ? left : (int64_t)CLOSED, task, context);
    }
    running_as = -1;
    give_pool();
}
