/* The mutexes of the library, in one table. fork takes them all, so that in the child none is held
 * by a thread that does not exist there, and no data is half changed.
 *
 * A thread that holds a lock may take only later ones in the list; debug builds abort otherwise. A
 * backend in a shared object, or a transport, has mutexes of its own, which are not in the table: a
 * child never calls what its parent has opened there (src/device/gone.c, check_process in
 * src/ranks/group.c). scripts/check_locks finds a mutex that is neither in the list nor in the
 * table of members below. */
#ifndef WB_PLATFORM_LOCKS_H
#define WB_PLATFORM_LOCKS_H

#include <pthread.h>
#include <stdbool.h>

/* The name, where it is taken, what it guards. */
#define WB_LOCK_LIST(X)                                                                            \
    X(FILLS, "src/data/prefetch.c", "loaders with a thread, and batches that are being filled")    \
    X(CARRIER, "src/ranks/carrier.c", "collectives that are on their way")                         \
    X(GROUP, "src/ranks/group.c", "the group of ranks, while it is joined, too")                   \
    X(REGISTRY, "src/device/registry.c", "backends, which open libraries; may be taken twice")     \
    X(PREFERENCES, "src/device/preferences.c", "changes of the file")                              \
    X(DEVICES, "src/device/device.c", "devices that are open; a fork holds the mutex of each")     \
    X(DEVICE_TIMES, "src/evaluate/device_times.c", "commands whose end is waited for")             \
    X(LOANS, "src/evaluate/read.c", "arrays that are being read")                                  \
    X(NAMES, "src/layers/classes.c", "layers and functions that programs register")                \
    X(ORIGINS, "src/array/origin.c", "names of layers")                                            \
    X(THREADS, "src/array/thread.c", "threads, and what they free for each other")                 \
    X(OBJECTS, "src/base/object.c", "live layers; with WEBER_DEBUG=leak all objects")              \
    X(RESTING, "src/base/object.c", "released objects")                                            \
    X(CHECKED, "backends/checked/checked.c", "the devices of the backend `checked`")               \
    X(POOL, "backends/cpu/pool.c", "who sleeps")                                                   \
    X(LIBRARIES, "src/base/library.c", "libraries that a program needs late, which are opened")    \
    X(EVENTS, "src/base/events.c", "the file of WEBER_TRACE")

/* Mutexes that are members, or belong to a plugin:
 *
 *     src/device/device.h       device: DEVICES' hooks hold it and remake it; relay: a copy's,
 *                               which a child of fork does not make
 *     src/data/prefetch.h       a loader's: FILLS' hooks hold it and remake it
 *     src/data/getobs.c         of one fill, on its stack: no fill is in progress during a fork
 *     backends/common/          plugins
 *     backends/cuda/            a plugin
 *     backends/metal/           a plugin
 *     backends/mpi/             a transport
 *     backends/opencl/          a plugin */

typedef enum wb_lock {
#define X(name, file, what) WB_LOCK_##name,
    WB_LOCK_LIST(X)
#undef X
        WB_LOCK_COUNT
} wb_lock;

void wb_lock_take(wb_lock lock);
void wb_lock_give(wb_lock lock);
/* For pthread_cond_wait, by the thread that has taken it. */
pthread_mutex_t *wb_lock_mutex(wb_lock lock);

/* Further work of a fork, with the lock held: before it, and after it in the parent and in the
 * child, whose only thread is the one that forked. NULL: nothing. */
typedef struct wb_fork_hooks {
    void (*before)(void), (*after)(void), (*in_child)(void);
} wb_fork_hooks;

/* Sets the hooks, which must stay valid. May be called again with the same hooks. */
void wb_lock_on_fork(wb_lock lock, const wb_fork_hooks *hooks);

/* Between the two, this thread does work that a fork in another thread waits for. If this thread
 * forks then, or with a lock taken, the fork waits for nothing, and the child may not call what
 * another thread was in the middle of. */
void wb_fork_exempt_begin(void);
void wb_fork_exempt_end(void);

#endif
