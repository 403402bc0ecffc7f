/* macOS: only the fast cores are counted, and a quality of service keeps threads on them. Waiting
 * looks at the word now and then, because there is no futex on older systems. */
#include "platform/threads.h"

#include <pthread/qos.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

static int number(const char *name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

int wb_platform_cores(void) {
    const int fast = number("hw.perflevel0.physicalcpu"), all = number("hw.physicalcpu");
    return fast > 0 ? fast : all > 0 ? all : 1;
}

/* Threads cannot be bound to cores. */
void wb_platform_use_all_cores(void) {}
int wb_platform_current_core(void) { return -1; }
void wb_platform_note_cores(void) {}
void wb_platform_leave_core(int core) { (void)core; }

void wb_platform_change_core(void) {}

/* Without a class of its own a thread may be kept on the slow cores. Never together with
 * pthread_setschedparam, which takes a thread out of all classes for good (pthread/qos.h). */
void wb_platform_begin_work(const char *name) {
    (void)pthread_setname_np(name);
    (void)pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(double seconds) {
    const struct timespec time = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};
    (void)nanosleep(&time, NULL);
}

void wb_platform_sleep_until(double seconds) {
    for (double left; (left = seconds - now()) > 0;) nap(left);
}

/* The system's own way for words that processes share came with macOS 14.4; this one works in all:
 * a look every 50 us at first, then less often. */
void wb_platform_sleep_on(_Atomic uint32_t *word, uint32_t seen, int ms) {
    const double end = now() + 1e-3 * ms;
    for (double time = 50e-6; atomic_load(word) == seen && now() < end;) {
        nap(time);
        if (time < 1e-3) time *= 1.25;
    }
}

void wb_platform_wake(_Atomic uint32_t *word) { (void)word; }
