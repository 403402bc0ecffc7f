/* The thread pool: every piece once, whatever the number of threads, callers and processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_THREADS_AFTER_FORK 1 /* a limit of the sanitizer */
#endif
#elif defined(__SANITIZE_THREAD__)
#define NO_THREADS_AFTER_FORK 1
#endif

enum { MOST_PIECES = 5000, MOST_WORKERS = 256 };

typedef struct tally {
    int runs[MOST_PIECES];    /* of each piece */
    int inside[MOST_WORKERS]; /* tasks that run as this worker now */
    int faults;
} tally;

static void expect(tally *t, bool holds) {
    if (!holds) __atomic_add_fetch(&t->faults, 1, __ATOMIC_RELAXED);
}

static void count(void *context, int64_t piece, int worker) {
    tally *t = context;
    expect(t, worker >= 0 && worker < wb_cpu_threads());
    expect(t, __atomic_add_fetch(&t->inside[worker], 1, __ATOMIC_RELAXED) == 1);
    __atomic_add_fetch(&t->runs[piece], 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&t->inside[worker], 1, __ATOMIC_RELAXED);
}

/* Faults of a job: 0 if every piece ran once and no worker was two tasks at a time. */
static int faults_of(int64_t pieces) {
    tally *t = calloc(1, sizeof *t);
    wb_cpu_parallel(pieces, count, t);
    for (int64_t piece = 0; piece < MOST_PIECES; piece++)
        expect(t, t->runs[piece] == (piece < pieces));
    const int faults = t->faults;
    free(t);
    return faults;
}

static void rest(void) {
    const struct timespec pause = {.tv_nsec = 2000000};
    nanosleep(&pause, NULL);
}

typedef struct row {
    const char *name;
    int threads;
    int64_t pieces;
    int jobs;
    bool rests; /* long enough for the workers to fall asleep */
} row;

static const row rows[] = {
    {"no piece is no work", 2, 0, 10, false},
    {"one piece runs on the caller", 2, 1, 10, false},
    {"two pieces on two threads", 2, 2, 500, false},
    {"fewer pieces than threads", 5, 3, 200, false},
    {"many pieces on two threads", 2, 5000, 20, false},
    {"more threads than cores", 16, 777, 20, false},
    {"one thread does everything", 1, 100, 20, false},
    {"sleeping workers are waked", 3, 64, 20, true},
    {"as many threads as the default, many times", 0, 8, 500, false},
};

static void every_piece_runs_once(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        wb_cpu_set_threads(r->threads);
        int faults = 0;
        for (int job = 0; job < r->jobs; job++) {
            if (r->rests) rest();
            faults += faults_of(r->pieces);
        }
        if (faults) fail_msg("%s: %d faults", r->name, faults);
    }
}

static void the_number_of_threads_is_what_was_asked_for(void **state) {
    (void)state;
    setenv("WEBER_NUM_THREADS", "3", 1);
    wb_cpu_set_threads(0);
    assert_int_equal(wb_cpu_threads(), 3);
    setenv("WEBER_NUM_THREADS", "no number", 1);
    wb_cpu_set_threads(0);
    assert_true(wb_cpu_threads() >= 1);
    unsetenv("WEBER_NUM_THREADS");
    wb_cpu_set_threads(7);
    assert_int_equal(wb_cpu_threads(), 7);
    wb_cpu_set_threads(0);
}

/* Three workers with two pieces each: the first of each waits for those of the others, so that
 * nobody can do two. */
enum { RANGES = 3, EACH = 2 };

static void meet(void *context, int64_t piece, int worker) {
    tally *t = context;
    if (piece % EACH != 0) return;
    expect(t, worker == piece / EACH);
    __atomic_add_fetch(&t->runs[0], 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&t->runs[0], __ATOMIC_SEQ_CST) < RANGES) sched_yield();
}

static void a_worker_begins_with_its_own_pieces(void **state) {
    (void)state;
    int faults = 0;
    wb_cpu_set_threads(RANGES);
    for (int job = 0; job < 300; job++) {
        tally *t = calloc(1, sizeof *t);
        wb_cpu_parallel(RANGES * EACH, meet, t);
        faults += t->faults;
        free(t);
    }
    assert_int_equal(faults, 0);
}

static void nest(void *context, int64_t piece, int worker) {
    (void)piece;
    int *inner = context;
    __atomic_add_fetch(&inner[worker], 1, __ATOMIC_RELAXED);
}

static void outer(void *context, int64_t piece, int worker) {
    (void)piece;
    int inner[MOST_WORKERS] = {0};
    wb_cpu_parallel(10, nest, inner);
    expect(context, inner[worker] == 10); /* in line, as the same worker */
}

static void a_call_from_inside_a_task_runs_in_line(void **state) {
    (void)state;
    static tally t;
    wb_cpu_set_threads(3);
    for (int job = 0; job < 50; job++) wb_cpu_parallel(20, outer, &t);
    assert_int_equal(t.faults, 0);
}

static void *call_often(void *faults) {
    for (int job = 0; job < 300; job++)
        __atomic_add_fetch((int *)faults, faults_of(10), __ATOMIC_RELAXED);
    return NULL;
}

static void two_threads_may_call_at_once(void **state) {
    (void)state;
    int faults = 0;
    pthread_t other;
    wb_cpu_set_threads(3);
    assert_int_equal(pthread_create(&other, NULL, call_often, &faults), 0);
    call_often(&faults);
    pthread_join(other, NULL);
    assert_int_equal(faults, 0);
}

static void a_forked_child_has_a_pool_of_its_own(void **state) {
    (void)state;
#if defined(NO_THREADS_AFTER_FORK)
    skip();
#endif
    wb_cpu_set_threads(3);
    assert_int_equal(faults_of(100), 0);
    const pid_t child = fork();
    if (child == 0) _exit(faults_of(100) + faults_of(1000));
    int status = -1;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(faults_of(100), 0);
}

static pid_t parent;
static int strays; /* pieces of the parent's job in the child */

static void belong_to_the_parent(void *context, int64_t piece, int worker) {
    (void)context, (void)piece, (void)worker;
    if (getpid() != parent) __atomic_add_fetch(&strays, 1, __ATOMIC_RELAXED);
    rest();
}

static void *run_for_a_while(void *context) {
    wb_cpu_parallel(600, belong_to_the_parent, NULL);
    return context;
}

static void what_a_fork_interrupts_stays_with_the_parent(void **state) {
    (void)state;
#if defined(NO_THREADS_AFTER_FORK)
    skip();
#endif
    pthread_t other;
    parent = getpid();
    wb_cpu_set_threads(16);
    assert_int_equal(pthread_create(&other, NULL, run_for_a_while, NULL), 0);
    for (int i = 0; i < 5; i++) rest();
    const pid_t child = fork();
    if (child == 0) {
        const int faults = faults_of(4);
        rest();
        _exit(faults + strays);
    }
    int status = -1;
    waitpid(child, &status, 0);
    pthread_join(other, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The scratch memory of a plan is for the number of threads that it began with. */
static void a_number_of_threads_is_held(void **state) {
    (void)state;
    wb_cpu_set_threads(3);
    const int before = wb_cpu_hold_threads(2);
    wb_cpu_set_threads(16);
    assert_int_equal(wb_cpu_threads(), 2);
    assert_int_equal(faults_of(1000), 0); /* no worker but 0 and 1, which see 2 */
    assert_int_equal(wb_cpu_hold_threads(before), 2);
    assert_int_equal(wb_cpu_threads(), 16);
    assert_int_equal(faults_of(1000), 0);
}

/* piece 0 ends only when all the others are done */
static void wait_for_rest(void *context, int64_t piece, int worker) {
    (void)worker;
    int *done = context;
    if (piece > 0)
        __atomic_add_fetch(done, 1, __ATOMIC_RELEASE);
    else
        while (__atomic_load_n(done, __ATOMIC_ACQUIRE) < 49) rest();
}

static void a_thread_that_is_held_up_costs_its_piece_only(void **state) {
    (void)state;
    int done = 0;
    wb_cpu_set_threads(2);
    wb_cpu_parallel(50, wait_for_rest, &done);
    assert_int_equal(done, 49);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_runs_once),
        cmocka_unit_test(a_worker_begins_with_its_own_pieces),
        cmocka_unit_test(the_number_of_threads_is_what_was_asked_for),
        cmocka_unit_test(a_call_from_inside_a_task_runs_in_line),
        cmocka_unit_test(two_threads_may_call_at_once),
        cmocka_unit_test(a_forked_child_has_a_pool_of_its_own),
        cmocka_unit_test(what_a_fork_interrupts_stays_with_the_parent),
        cmocka_unit_test(a_number_of_threads_is_held),
        cmocka_unit_test(a_thread_that_is_held_up_costs_its_piece_only),
    };
    return cmocka_run_group_tests_name("cpu pool", tests, NULL, NULL);
}
