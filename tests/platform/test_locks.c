/* The mutexes of the library, and forks. */
#include "platform/locks.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

enum { MOST_SECONDS = 20 };

static struct {
    wb_lock lock;
    pthread_barrier_t taken;
} other;

static void *hold_for_a_moment(void *unused) {
    wb_lock_take(other.lock);
    (void)pthread_barrier_wait(&other.taken);
    (void)usleep(20000); /* while the main thread forks */
    wb_lock_give(other.lock);
    return unused;
}

static void take_all(void) {
    for (int i = 0; i < WB_LOCK_COUNT; i++) wb_lock_take((wb_lock)i);
    for (int i = WB_LOCK_COUNT - 1; i >= 0; i--) wb_lock_give((wb_lock)i);
}

/* A child that hangs is ended by the alarm. */
static void assert_ends(pid_t child) {
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_child_finds_every_lock_free(void **state) {
    (void)state;
    for (int i = 0; i < WB_LOCK_COUNT; i++) {
        pthread_t thread;
        other.lock = (wb_lock)i;
        assert_int_equal(pthread_barrier_init(&other.taken, NULL, 2), 0);
        assert_int_equal(pthread_create(&thread, NULL, hold_for_a_moment, NULL), 0);
        (void)pthread_barrier_wait(&other.taken);
        const pid_t child = fork();
        if (child == 0) {
            (void)alarm(MOST_SECONDS);
            take_all();
            _exit(0);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_ends(child);
        take_all();
        (void)pthread_barrier_destroy(&other.taken);
    }
}

static void who_forks_with_a_lock_has_it_in_the_child(void **state) {
    (void)state;
    wb_lock_take(WB_LOCK_REGISTRY);
    wb_lock_take(WB_LOCK_REGISTRY); /* a log line's reader asks */
    wb_lock_take(WB_LOCK_THREADS);
    const pid_t child = fork();
    if (child == 0) (void)alarm(MOST_SECONDS);
    wb_lock_give(WB_LOCK_THREADS);
    wb_lock_give(WB_LOCK_REGISTRY);
    wb_lock_give(WB_LOCK_REGISTRY);
    take_all();
    if (child == 0) _exit(0);
    assert_ends(child);
}

/* ---- what a fork has to do ---- */

static int before, after, in_child;
static void count_before(void) { before++; }
static void count_after(void) { after++; }
static void count_in_child(void) { in_child++; }

static void hooks_run_unless_the_fork_would_wait_for_itself(void **state) {
    static const wb_fork_hooks hooks = {count_before, count_after, count_in_child},
                               none = {NULL, NULL, NULL};
    (void)state;
    wb_lock_on_fork(WB_LOCK_ORIGINS, &hooks);
    for (int exempt = 0; exempt < 2; exempt++) {
        if (exempt) wb_fork_exempt_begin();
        const pid_t child = fork();
        if (child == 0) _exit(before == 1 && after == exempt && in_child == 1 ? 0 : 1);
        assert_ends(child);
        if (exempt) wb_fork_exempt_end();
        assert_int_equal(before, 1);
        assert_int_equal(after, 1);
        assert_int_equal(in_child, 0);
    }
    wb_lock_on_fork(WB_LOCK_ORIGINS, &none);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(a_child_finds_every_lock_free),
                                       TEST(who_forks_with_a_lock_has_it_in_the_child),
                                       TEST(hooks_run_unless_the_fork_would_wait_for_itself)};
    return cmocka_run_group_tests_name("platform/test_locks", tests, NULL, NULL);
}
