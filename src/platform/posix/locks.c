/* The mutexes of locks.h in one array, in the order in which they may be taken. A fork takes all of
 * them first, so that the child finds none held by a thread that it does not have, unless the
 * forking thread holds one itself: such a fork waits for nothing. */
#include "platform/locks.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {
#define X(name, file, what) [WB_LOCK_##name] = #name,
    WB_LOCK_LIST(X)
#undef X
};

static pthread_mutex_t mutexes[] = {
#define X(name, file, what) [WB_LOCK_##name] = PTHREAD_MUTEX_INITIALIZER,
    WB_LOCK_LIST(X)
#undef X
};

static const wb_fork_hooks *hooks[WB_LOCK_COUNT]; /* __atomic */

/* Of this thread: the locks that it holds, a bit each; how often it has taken REGISTRY; how much of
 * its work a fork in another thread would wait for; whether its own fork waits for nothing. */
static _Thread_local struct {
    uint32_t taken;
    int depth, exempt;
    bool is_hasty;
} own __attribute__((tls_model("initial-exec")));

/* ---- taking ---- */

static void check_order(wb_lock lock) {
#ifndef NDEBUG
    if (own.taken >> lock == 0) return;
    int last = WB_LOCK_COUNT - 1;
    while (!(own.taken >> last & 1)) last--;
    (void)fprintf(stderr, "weber: lock %s is taken after %s: the order is that of locks.h\n",
                  names[lock], names[last]);
    abort();
#else
    (void)lock, (void)names;
#endif
}

/* The log hook that gets a backend's line may call the registry, so a thread may take this lock
 * twice. */
void wb_lock_take(wb_lock lock) {
    if (lock == WB_LOCK_REGISTRY && own.depth++ > 0) return;
    check_order(lock);
    (void)pthread_mutex_lock(&mutexes[lock]);
    own.taken |= 1u << lock;
}

void wb_lock_give(wb_lock lock) {
    if (lock == WB_LOCK_REGISTRY && --own.depth > 0) return;
    own.taken &= ~(1u << lock);
    (void)pthread_mutex_unlock(&mutexes[lock]);
}

pthread_mutex_t *wb_lock_mutex(wb_lock lock) { return &mutexes[lock]; }

/* ---- fork ---- */

void wb_lock_on_fork(wb_lock lock, const wb_fork_hooks *what) {
    __atomic_store_n(&hooks[lock], what, __ATOMIC_RELEASE);
}

void wb_fork_exempt_begin(void) { own.exempt++; }
void wb_fork_exempt_end(void) { own.exempt--; }

static const wb_fork_hooks *hooks_of(int lock) {
    static const wb_fork_hooks none = {NULL, NULL, NULL};
    const wb_fork_hooks *of = __atomic_load_n(&hooks[lock], __ATOMIC_ACQUIRE);
    return of ? of : &none;
}

static void before_fork(void) {
    own.is_hasty = own.taken || own.exempt;
    for (int i = 0; i < WB_LOCK_COUNT && !own.is_hasty; i++) {
        (void)pthread_mutex_lock(&mutexes[i]);
        if (hooks_of(i)->before) hooks_of(i)->before();
    }
}

static void after_fork(void) {
    for (int i = WB_LOCK_COUNT - 1; i >= 0 && !own.is_hasty; i--) {
        if (hooks_of(i)->after) hooks_of(i)->after();
        (void)pthread_mutex_unlock(&mutexes[i]);
    }
}

/* A mutex that a fork did not wait for may be held by a thread that the child does not have: it is
 * made again. One that this thread holds stays locked. */
static void in_child(void) {
    for (int i = WB_LOCK_COUNT - 1; i >= 0; i--) {
        if (!own.is_hasty)
            (void)pthread_mutex_unlock(&mutexes[i]);
        else if (!(own.taken >> i & 1))
            (void)pthread_mutex_init(&mutexes[i], NULL);
        if (hooks_of(i)->in_child) hooks_of(i)->in_child();
    }
}

__attribute__((constructor)) static void hook_into_fork(void) {
    (void)pthread_atfork(before_fork, after_fork, in_child);
}
