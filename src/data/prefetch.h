/* A thread that fills a ring of slots in order, ahead of the thread that takes them. It knows
 * nothing of arrays.
 *
 * A fork waits for running fills; the child starts threads of its own.
 *
 * Between wb_prefetch_pause and wb_prefetch_begin or _resume no fill runs, and the owner may change
 * what fills read. Without a thread (not wanted, or it could not be started) wb_prefetch_take fills
 * the slot itself. */
#ifndef WB_DATA_PREFETCH_H
#define WB_DATA_PREFETCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { WB_PREFETCH_SLOTS = 3 };

/* Fills slot with number index of the epoch. */
typedef void wb_fill_fn(void *owner, int64_t index, int slot);

typedef struct wb_prefetch {
    wb_fill_fn *fill;
    void *owner;
    struct wb_prefetch *next, **link; /* list of all prefetchers, for fork */
    pthread_t thread;
    bool alone, has_thread;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    /* fills are numbered: the next fill, the next slot to be given back, fills of the epoch */
    int64_t filled, taken, count;
    bool busy, paused, stop;
} wb_prefetch;

/* Starts the thread unless `alone`; paused until wb_prefetch_begin. */
void wb_prefetch_start(wb_prefetch *prefetch, wb_fill_fn *fill, void *owner, bool alone);

/* Waits for a running fill; true unless it was paused before. */
bool wb_prefetch_pause(wb_prefetch *prefetch);
void wb_prefetch_resume(wb_prefetch *prefetch);

/* Ends a pause with a new epoch of count fills, from number first on. */
void wb_prefetch_begin(wb_prefetch *prefetch, int64_t first, int64_t count);

/* The slot of the next number, once it is filled; wb_prefetch_give hands it back to be filled
 * again. */
int wb_prefetch_take(wb_prefetch *prefetch);
void wb_prefetch_give(wb_prefetch *prefetch);

/* Waits for a running fill, and ends the thread. */
void wb_prefetch_end(wb_prefetch *prefetch);

#endif
