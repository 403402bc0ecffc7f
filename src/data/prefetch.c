/* Fills batch i into slot i modulo WB_PREFETCH_SLOTS, at most that many ahead of the batch being
 * taken. All prefetchers of the process are in one list, so that a fork can wait for fills that
 * run, and the child can start threads of its own. */
#include "data/prefetch.h"

#include "base/events.h"
#include "platform/locks.h"
#include "platform/threads.h"

/* ---- fork ---- */

/* What follows is guarded by the lock FILLS. */
static wb_prefetch *running;
static int64_t fills; /* that are being filled by threads */
static bool is_forking;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* No fill may run during a fork: a half filled slot would stay half filled in the child. A fill may
 * need the lock (a loader within a loader's function), which is free meanwhile. */
static void before_fork(void) {
    is_forking = true;
    while (fills) (void)pthread_cond_wait(&changed, wb_lock_mutex(WB_LOCK_FILLS));
    for (wb_prefetch *p = running; p; p = p->next) pthread_mutex_lock(&p->mutex);
}

static void after_fork(void) {
    for (wb_prefetch *p = running; p; p = p->next) pthread_mutex_unlock(&p->mutex);
    is_forking = false;
    (void)pthread_cond_broadcast(&changed);
}

static void in_child(void) {
    for (wb_prefetch *p = running; p; p = p->next) {
        p->has_thread = p->busy = false;
        pthread_mutex_init(&p->mutex, NULL);
        pthread_cond_init(&p->changed, NULL);
    }
    fills = 0, is_forking = false;
    (void)pthread_cond_init(&changed, NULL);
}

static void enlist(wb_prefetch *p) {
    static const wb_fork_hooks hooks = {before_fork, after_fork, in_child};
    wb_lock_on_fork(WB_LOCK_FILLS, &hooks);
    wb_lock_take(WB_LOCK_FILLS);
    p->next = running, p->link = &running;
    if (running) running->link = &p->next;
    running = p;
    wb_lock_give(WB_LOCK_FILLS);
}

static void delist(wb_prefetch *p) {
    wb_lock_take(WB_LOCK_FILLS);
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
    wb_lock_give(WB_LOCK_FILLS);
}

static void begin_fill(void) {
    wb_lock_take(WB_LOCK_FILLS);
    while (is_forking) (void)pthread_cond_wait(&changed, wb_lock_mutex(WB_LOCK_FILLS));
    fills++;
    wb_lock_give(WB_LOCK_FILLS);
    wb_fork_exempt_begin();
}

static void end_fill(void) {
    wb_fork_exempt_end();
    wb_lock_take(WB_LOCK_FILLS);
    if (--fills == 0) (void)pthread_cond_broadcast(&changed);
    wb_lock_give(WB_LOCK_FILLS);
}

/* ---- the thread ---- */

static bool has_work(const wb_prefetch *p) {
    return !p->paused && p->filled < p->count && p->filled < p->taken + WB_PREFETCH_SLOTS;
}

static void fill_slot(const wb_prefetch *p, int64_t index, int slot) {
    const double began = wb_event_begin();
    p->fill(p->owner, index, slot);
    wb_event("loader", "fill a batch", began, NULL, NULL);
}

static void *work(void *argument) {
    wb_prefetch *p = argument;
    pthread_mutex_lock(&p->mutex);
    while (!p->stop) {
        if (!has_work(p)) {
            pthread_cond_wait(&p->changed, &p->mutex);
            continue;
        }
        const int64_t index = p->filled;
        p->busy = true;
        pthread_mutex_unlock(&p->mutex);
        begin_fill();
        fill_slot(p, index, (int)(index % WB_PREFETCH_SLOTS));
        end_fill();
        pthread_mutex_lock(&p->mutex);
        p->busy = false;
        p->filled++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

void wb_prefetch_start(wb_prefetch *p, wb_fill_fn *fill, void *owner, bool alone) {
    *p = (wb_prefetch){.fill = fill, .owner = owner, .alone = alone, .paused = true};
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    enlist(p);
    p->has_thread = !alone && wb_platform_start_thread(&p->thread, work, p);
}

bool wb_prefetch_pause(wb_prefetch *p) {
    pthread_mutex_lock(&p->mutex);
    const bool ran = !p->paused;
    p->paused = true;
    while (p->busy) pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    return ran;
}

void wb_prefetch_resume(wb_prefetch *p) {
    pthread_mutex_lock(&p->mutex);
    p->paused = false;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

void wb_prefetch_begin(wb_prefetch *p, int64_t first, int64_t count) {
    pthread_mutex_lock(&p->mutex);
    p->filled = p->taken = first;
    p->count = count;
    pthread_mutex_unlock(&p->mutex);
    if (!p->alone && !p->has_thread) /* in a forked child */
        p->has_thread = wb_platform_start_thread(&p->thread, work, p);
    wb_prefetch_resume(p);
}

int wb_prefetch_take(wb_prefetch *p) {
    pthread_mutex_lock(&p->mutex);
    while (p->has_thread && p->filled <= p->taken) pthread_cond_wait(&p->changed, &p->mutex);
    const int64_t index = p->taken;
    const bool missing = p->filled <= index;
    pthread_mutex_unlock(&p->mutex);
    const int slot = (int)(index % WB_PREFETCH_SLOTS);
    if (missing) {
        fill_slot(p, index, slot);
        p->filled++;
    }
    return slot;
}

void wb_prefetch_give(wb_prefetch *p) {
    pthread_mutex_lock(&p->mutex);
    p->taken++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

void wb_prefetch_end(wb_prefetch *p) {
    delist(p);
    pthread_mutex_lock(&p->mutex);
    p->stop = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    if (p->has_thread) pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
}
