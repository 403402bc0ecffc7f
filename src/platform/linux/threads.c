/* Linux: cores by affinity masks, waiting and waking by futex(2), sleeping until a given time. */
#include "platform/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static cpu_set_t noted;

int wb_platform_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : (int)cores;
}

/* The system ignores cores that do not exist. */
void wb_platform_use_all_cores(void) {
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    (void)sched_setaffinity(0, sizeof all, &all);
}

int wb_platform_current_core(void) { return sched_getcpu(); }

void wb_platform_note_cores(void) {
    if (sched_getaffinity(0, sizeof noted, &noted) != 0) CPU_ZERO(&noted);
}

void wb_platform_leave_core(int core) {
    if (core < 0 || sched_getcpu() != core) return;
    cpu_set_t others = noted;
    CPU_CLR((size_t)core, &others);
    if (CPU_COUNT(&others) > 0) (void)sched_setaffinity(0, sizeof others, &others);
}

void wb_platform_change_core(void) {
    cpu_set_t all, others;
    const int core = sched_getcpu();
    if (core < 0 || sched_getaffinity(0, sizeof all, &all) != 0) return;
    others = all;
    CPU_CLR((size_t)core, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
    (void)sched_setaffinity(0, sizeof all, &all);
}

void wb_platform_begin_work(const char *name) { (void)pthread_setname_np(pthread_self(), name); }

/* The system may delay a thread's wake-up, by 50 us unless told otherwise. */
void wb_platform_sleep_until(double seconds) {
    static _Thread_local bool is_told;
    if (!is_told) (void)prctl(PR_SET_TIMERSLACK, 1UL);
    is_told = true;
    const struct timespec end = {(time_t)seconds,
                                 (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
}

void wb_platform_sleep_on(_Atomic uint32_t *word, uint32_t seen, int ms) {
    const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
}

void wb_platform_wake(_Atomic uint32_t *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}
