#include "data/prefetch.h"

#include "base/events.h"
#include "platform/threads.h"

/* ---- fork ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static wb_prefetch *running;

/* No fill runs while the process is copied: a half filled slot would stay so in the child. */
static void before_fork(void) {
    pthread_mutex_lock(&list_mutex);
    for (wb_prefetch *p = running; p; p = p->next) {
        pthread_mutex_lock(&p->mutex);
        while (p->busy) pthread_cond_wait(&p->changed, &p->mutex);
    }
}

static void after_fork(void) {
    for (wb_prefetch *p = running; p; p = p->next) pthread_mutex_unlock(&p->mutex);
    pthread_mutex_unlock(&list_mutex);
}

static void in_child(void) {
    for (wb_prefetch *p = running; p; p = p->next) {
        p->has_thread = false;
        pthread_mutex_init(&p->mutex, NULL);
        pthread_cond_init(&p->changed, NULL);
    }
    pthread_mutex_init(&list_mutex, NULL);
}

static void register_fork(void) { (void)pthread_atfork(before_fork, after_fork, in_child); }

static void enlist(wb_prefetch *p) {
    (void)pthread_once(&once, register_fork);
    pthread_mutex_lock(&list_mutex);
    p->next = running, p->link = &running;
    if (running) running->link = &p->next;
    running = p;
    pthread_mutex_unlock(&list_mutex);
}

static void delist(wb_prefetch *p) {
    pthread_mutex_lock(&list_mutex);
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
    pthread_mutex_unlock(&list_mutex);
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
        fill_slot(p, index, (int)(index % WB_PREFETCH_SLOTS));
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
