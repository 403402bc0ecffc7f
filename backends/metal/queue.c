/* Queues: command buffers under way, their outcomes, and events between queues.
 *
 * A command buffer is open only within one entry of the table, which commits it before it returns.
 */
#include "device.h"

#include <string.h>

wb_metal_queue *wb_metal_queue_of(wb_metal_device *device, void *queue) {
    return queue ? (wb_metal_queue *)queue : &device->own;
}

bool wb_metal_queue_init(wb_metal_device *device, wb_metal_queue *queue) {
    (void)pthread_mutex_init(&queue->lock, NULL);
    queue->queue = mtl_new_queue(device->id, 2 * WB_METAL_FLIGHT);
    queue->event = mtl_new_shared_event(device->id);
    if (!queue->queue || !queue->event)
        (void)wb_metal_host->fail(WB_ERROR_DEVICE, "Metal: no command queue or no shared event");
    return queue->queue && queue->event;
}

void wb_metal_queue_release(wb_metal_queue *queue) {
    wb_metal_settle(queue);
    for (int i = 0; i < WB_METAL_SLOTS; i++) mtl_release(queue->slots[i].words);
    mtl_release(queue->event);
    mtl_release(queue->queue);
    (void)pthread_mutex_destroy(&queue->lock);
}

void *wb_metal_queue_new(void *device) {
    WB_METAL_POOL(pool);
    wb_metal_queue *queue = wb_metal_host->alloc(sizeof *queue);
    if (queue && wb_metal_queue_init(device, queue)) return queue;
    if (queue) wb_metal_queue_free(device, queue);
    return NULL;
}

void wb_metal_queue_free(void *device, void *any) {
    WB_METAL_POOL(pool);
    (void)device;
    if (!any) return;
    wb_metal_queue_release(any);
    wb_metal_host->release(any);
}

/* ---- what is on its way ---- */

/* As in the names of MTLCommandBufferError. */
static const char *error_name(mtl_int code) {
    static const char *const names[] = {"",
                                        "internal",
                                        "timeout",
                                        "page fault",
                                        "access revoked",
                                        "",
                                        "",
                                        "not permitted",
                                        "out of memory",
                                        "invalid resource",
                                        "memoryless",
                                        "device removed",
                                        "stack overflow"};
    return code > 0 && code < (mtl_int)(sizeof names / sizeof *names) ? names[code] : "";
}

static void keep_error(wb_metal_queue *queue, const wb_metal_flight *flight) {
    const mtl_id error = mtl_error(flight->commands);
    const mtl_int code = mtl_code(error);
    const char *domain = wb_metal_text(mtl_domain(error));
    const bool is_known = strcmp(domain, "MTLCommandBufferErrorDomain") == 0;
    wb_late_error_keep(&queue->error, WB_ERROR_DEVICE,
                       "%s: the device could not finish it: %s %ld %s: %s", flight->what,
                       is_known ? "MTLCommandBufferError" : domain, code,
                       is_known ? error_name(code) : "", wb_metal_error_text(error));
}

/* A command buffer that fails does not signal, so a wait for it would never end. */
static void signal_failed(mtl_id commands, mtl_id event, uint64_t value) {
    if (mtl_status(commands) == MTL_STATUS_ERROR && mtl_signaled(event) < value)
        mtl_set_signaled(event, value);
}

/* Events that command buffers signal, as they were recorded: one can only depend on those before
 * it. */
static struct {
    pthread_mutex_t lock; /* guards the list and the references of events */
    wb_metal_event *first, *last;
} recorded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_recorded(wb_metal_event *e) {
    pthread_mutex_lock(&recorded.lock);
    e->before = recorded.last;
    *(e->before ? &e->before->after : &recorded.first) = e;
    recorded.last = e;
    pthread_mutex_unlock(&recorded.lock);
}

static void remove_recorded(wb_metal_event *e) { /* (locked) */
    *(e->before ? &e->before->after : &recorded.first) = e->after;
    *(e->after ? &e->after->before : &recorded.last) = e->before;
}

static void retain_event(wb_metal_event *e) {
    pthread_mutex_lock(&recorded.lock);
    e->references++;
    pthread_mutex_unlock(&recorded.lock);
}

/* The oldest event up to `last` that was not signalled yet, retained. Those whose command buffers
 * have failed are signalled. NULL: none. */
static wb_metal_event *oldest_unsignalled(const wb_metal_event *last) {
    wb_metal_event *oldest = NULL;
    pthread_mutex_lock(&recorded.lock);
    for (wb_metal_event *e = recorded.first; e && !oldest; e = e == last ? NULL : e->after) {
        signal_failed(e->commands, e->event, e->value);
        if (mtl_signaled(e->event) < e->value) oldest = e;
    }
    if (oldest) oldest->references++;
    pthread_mutex_unlock(&recorded.lock);
    return oldest;
}

/* Waits until an event has happened. Its command buffer may wait for another queue, and that for a
 * third one whose command buffer fails: so earlier events are waited for first. */
static void await(const wb_metal_event *last) {
    if (!last->commands) return;
    for (wb_metal_event *e; (e = oldest_unsignalled(last));) {
        mtl_wait_completed(e->commands);
        signal_failed(e->commands, e->event, e->value);
        wb_metal_release_event(NULL, e);
    }
}

/* The oldest one, when it is done. */
static void look_at_oldest(wb_metal_queue *queue) {
    wb_metal_flight *oldest = &queue->flights[queue->first_flight];
    if (oldest->awaited) await(oldest->awaited);
    mtl_wait_completed(oldest->commands);
    if (mtl_status(oldest->commands) == MTL_STATUS_ERROR) keep_error(queue, oldest);
    if (oldest->signals) signal_failed(oldest->commands, queue->event, oldest->signals);
    mtl_release(oldest->commands);
    wb_metal_release_event(NULL, oldest->awaited);
    queue->first_flight = (queue->first_flight + 1) % WB_METAL_FLIGHT;
    queue->flight_count--;
}

bool wb_metal_is_idle(wb_metal_queue *queue) {
    while (queue->flight_count > 0 &&
           mtl_status(queue->flights[queue->first_flight].commands) >= MTL_STATUS_COMPLETED)
        look_at_oldest(queue);
    return queue->flight_count == 0;
}

/* ---- encoding ---- */

/* macOS ends a command buffer that takes seconds: what is too much for one begins another. */
static void make_room(wb_metal_queue *queue, int64_t cost) {
    enum { MOST_COST = 64 };
    if (queue->open && queue->open_cost + cost > MOST_COST) wb_metal_commit(queue);
    queue->open_cost += cost;
}

mtl_id wb_metal_commands(wb_metal_queue *queue, const char *what, int64_t cost) {
    make_room(queue, cost);
    if (queue->encoder) mtl_end_encoding(queue->encoder);
    queue->encoder = NULL;
    queue->what = what;
    if (queue->open) return queue->open;
    if (queue->flight_count == WB_METAL_FLIGHT) look_at_oldest(queue);
    queue->open = mtl_retain(mtl_command_buffer(queue->queue));
    if (!queue->open)
        (void)wb_metal_host->fail(WB_ERROR_DEVICE, "%s: Metal gives no command buffer", what);
    return queue->open;
}

mtl_id wb_metal_encoder(wb_metal_queue *queue, const char *what, int64_t cost) {
    make_room(queue, cost);
    if (queue->encoder) {
        queue->what = what;
        return queue->encoder;
    }
    queue->encoder = mtl_compute_encoder(wb_metal_commands(queue, what, 0));
    if (!queue->encoder && queue->open)
        (void)wb_metal_host->fail(WB_ERROR_DEVICE, "%s: Metal gives no encoder", what);
    return queue->encoder;
}

static wb_metal_flight *commit(wb_metal_queue *queue) {
    if (!queue->open) return NULL;
    if (queue->encoder) mtl_end_encoding(queue->encoder);
    wb_metal_flight *flight =
        &queue->flights[(queue->first_flight + queue->flight_count++) % WB_METAL_FLIGHT];
    *flight = (wb_metal_flight){.commands = queue->open, .what = queue->what};
    mtl_commit(queue->open);
    queue->open = queue->encoder = NULL;
    queue->open_cost = 0;
    return flight;
}

void wb_metal_commit(wb_metal_queue *queue) { (void)commit(queue); }

/* ---- status words ---- */

void wb_metal_settle(wb_metal_queue *queue) {
    while (queue->flight_count > 0) look_at_oldest(queue);
    for (int i = 0; i < queue->used_slots; i++)
        wb_late_error_note(&queue->error, queue->slots[i].what,
                           mtl_contents(queue->slots[i].words));
    queue->used_slots = 0;
}

mtl_id wb_metal_slot_take(wb_metal_device *device, wb_metal_queue *queue, const char *what) {
    if (queue->used_slots == WB_METAL_SLOTS) {
        wb_metal_commit(queue);
        wb_metal_settle(queue);
    }
    wb_metal_slot *slot = &queue->slots[queue->used_slots];
    if (!slot->words) slot->words = wb_metal_shared(device, WB_STATUS_BYTES, what);
    if (!slot->words) return NULL;
    memset(mtl_contents(slot->words), 0, WB_STATUS_BYTES);
    slot->what = what;
    queue->used_slots++;
    return slot->words;
}

/* ---- waiting ---- */

/* The newest command buffer, retained. NULL: there is none, or one waits for another queue, for
 * which look_at_oldest is used. */
static mtl_id newest_of(const wb_metal_queue *queue) {
    mtl_id newest = NULL;
    for (int i = 0; i < queue->flight_count; i++) {
        const wb_metal_flight *f = &queue->flights[(queue->first_flight + i) % WB_METAL_FLIGHT];
        if (f->awaited) return NULL;
        newest = f->commands;
    }
    return mtl_retain(newest);
}

/* Waits without the lock first, so that other threads are not held up by a long computation. */
wb_status wb_metal_sync(void *any, void *which) {
    WB_METAL_POOL(pool);
    wb_metal_queue *queue = wb_metal_queue_of(any, which);
    pthread_mutex_lock(&queue->lock);
    const mtl_id newest = newest_of(queue);
    pthread_mutex_unlock(&queue->lock);
    mtl_wait_completed(newest);
    mtl_release(newest);
    pthread_mutex_lock(&queue->lock);
    wb_metal_settle(queue);
    const wb_late_error error = queue->error;
    queue->error.status = WB_OK;
    pthread_mutex_unlock(&queue->lock);
    return error.status ? wb_metal_host->fail(error.status, "%s", error.text) : WB_OK;
}

/* ---- events ---- */

/* Queues wait for the event of a shared event's value; one that is idle signals at once. */
void *wb_metal_record(void *any, void *which) {
    WB_METAL_POOL(pool);
    wb_metal_queue *queue = wb_metal_queue_of(any, which);
    wb_metal_event *e = wb_metal_host->alloc(sizeof *e);
    if (!e) return NULL;
    pthread_mutex_lock(&queue->lock);
    *e = (wb_metal_event){.references = 1, .value = ++queue->last_value};
    e->event = mtl_retain(queue->event);
    bool is_made = true;
    if (wb_metal_is_idle(queue)) {
        mtl_set_signaled(queue->event, e->value);
    } else {
        const mtl_id commands = wb_metal_commands(queue, "event", 0);
        is_made = commands;
        if (is_made) {
            mtl_signal_event(commands, queue->event, e->value);
            e->commands = mtl_retain(commands);
            commit(queue)->signals = e->value;
            add_recorded(e);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    if (is_made) return e;
    wb_metal_release_event(any, e);
    return NULL;
}

wb_status wb_metal_wait(void *any, void *which, void *what) {
    WB_METAL_POOL(pool);
    wb_metal_queue *queue = wb_metal_queue_of(any, which);
    wb_metal_event *e = what;
    wb_status status = WB_OK;
    if (e->event == queue->event || mtl_signaled(e->event) >= e->value) return WB_OK;
    pthread_mutex_lock(&queue->lock);
    const mtl_id commands = wb_metal_commands(queue, "wait for an event", 0);
    if (commands) {
        mtl_wait_for_event(commands, e->event, e->value);
        retain_event(e);
        commit(queue)->awaited = e;
    } else {
        status = WB_ERROR_DEVICE;
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

void wb_metal_release_event(void *any, void *what) {
    WB_METAL_POOL(pool);
    (void)any;
    wb_metal_event *e = what;
    if (!e) return;
    pthread_mutex_lock(&recorded.lock);
    const bool is_last = --e->references == 0;
    if (is_last && e->commands) remove_recorded(e);
    pthread_mutex_unlock(&recorded.lock);
    if (!is_last) return;
    mtl_release(e->commands);
    mtl_release(e->event);
    wb_metal_host->release(e);
}

wb_status wb_metal_is_done(void *any, void *what, bool *is_done) {
    WB_METAL_POOL(pool);
    (void)any;
    const wb_metal_event *e = what;
    *is_done = mtl_signaled(e->event) >= e->value;
    if (*is_done) return WB_OK;
    wb_metal_release_event(any, oldest_unsignalled(e));
    *is_done = mtl_signaled(e->event) >= e->value;
    return WB_OK;
}
