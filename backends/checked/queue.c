/* Queues and events: entries wait here until somebody waits for them. */
#include "checked.h"

static table events;

queue *wb_checked_queue(const device *d, const char *what, void *any) {
    if (!any) return d->own;
    queue *q = d->queues;
    while (q && q != any) q = q->next;
    if (!q)
        (void)wb_host_fail(WB_ERROR_DEVICE, "checked(%d): %s: this is not a queue of the device",
                           d->index, what);
    return q;
}

queue *wb_checked_queue_new(device *d) {
    queue *q = wb_host_alloc(sizeof *q);
    if (!q) return NULL;
    q->device = d;
    q->refs = 1;
    q->next = d->queues;
    return d->queues = q;
}

static void unref(queue *q) {
    if (--q->refs == 0) wb_host_release(q);
}

static void report_pending(device *d, const queue *q) {
    for (const entry *e = q->first; e; e = e->next) {
        if (!wb_checked_host_side(e)) continue;
        char copy[TEXT_BYTES / 2];
        wb_checked_describe(e, copy, sizeof copy);
        wb_checked_keep(&d->error, WB_ERROR_DEVICE,
                        "checked(%d): missing sync: the queue was freed before %s was done",
                        d->index, copy);
    }
}

void wb_checked_queue_free(device *d, queue *q) {
    report_pending(d, q);
    wb_checked_do(q, UINT64_MAX);
    if (q->error.status != WB_OK) wb_checked_keep(&d->error, q->error.status, "%s", q->error.text);
    queue **at = &d->queues;
    while (*at != q) at = &(*at)->next;
    *at = q->next;
    q->device = NULL;
    unref(q);
}

void wb_checked_push(queue *q, entry *e) {
    if (q->pushed - q->done >= MOST_QUEUED) wb_checked_do(q, UINT64_MAX);
    e->step = wb_checked_step();
    e->after = q->device->last_what;
    if (e->kind != ENTRY_WAIT) q->device->last_what = e->what;
    q->pushed++;
    if (q->last)
        q->last->next = e;
    else
        q->first = e;
    q->last = e;
}

/* A wait for an event runs another queue, up to the entry of the event. Cycles cannot arise,
 * because an event stands only for entries queued before it. */
void wb_checked_do(queue *q, uint64_t position) {
    while (q->first && q->done < position) {
        entry *e = q->first;
        q->first = e->next;
        if (!q->first) q->last = NULL;
        wb_checked_entry_do(q, e);
        q->done++;
        wb_checked_entry_free(e);
    }
}

/* ---- events ---- */

void *wb_checked_record(queue *q) {
    event *e = wb_host_alloc(sizeof *e);
    if (!e) return NULL;
    *e = (event){.queue = q, .position = q->pushed, .refs = 1};
    q->refs++;
    wb_checked_put(&events, &e->known, e);
    return e;
}

wb_status wb_checked_wait(queue *q, void *any) {
    const int index = q->device->index;
    event *e = (event *)wb_checked_find(&events, any);
    if (!e)
        return wb_host_fail(WB_ERROR_DEVICE,
                            "checked(%d): wait: the event was released, or never recorded", index);
    entry *waits = wb_checked_entry(ENTRY_WAIT, 0, 0);
    if (!waits) return WB_ERROR_MEMORY;
    waits->what = "wait";
    waits->event = e;
    e->refs++;
    wb_checked_push(q, waits);
    return WB_OK;
}

bool wb_checked_is_done(void *any, bool *is_done) {
    const event *e = (const event *)wb_checked_find(&events, any);
    *is_done = e && e->queue->done >= e->position;
    return e != NULL;
}

void wb_checked_unref_event(event *e) {
    if (--e->refs > 0) return;
    unref(e->queue);
    wb_host_release(e);
}

bool wb_checked_release_event(void *any) {
    event *e = (event *)wb_checked_find(&events, any);
    if (!e) return false;
    wb_checked_take(&events, &e->known);
    wb_checked_unref_event(e);
    return true;
}
