/* What was committed is run, in the order of each queue, when somebody waits for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_metal.h"

static fake_queue *queues;

void fake_queue_add(fake_queue *queue) {
    queue->older = queues;
    queues = queue;
}

/* Command buffers keep their queue, so that it has none. */
void fake_end_queue(void *object) {
    fake_queue **place = &queues;
    while (*place != object) place = &(*place)->older;
    *place = (*place)->older;
}

void fake_queue_commit(fake_commands *c) {
    fake_queue *q = c->queue;
    c->status = FAKE_COMMITTED;
    fake_keep(c);
    if (q->last)
        q->last->next = c;
    else
        q->first = c;
    q->last = c;
}

/* ---- ends ---- */

static const char *const texts[] = {
    [1] = "Internal Error (00000001:kIOGPUCommandBufferCallbackErrorInternal)",
    [2] = "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)",
    [3] = "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)",
    [4] = "Ignored (for causing prior/excessive GPU errors) "
          "(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)",
    [8] = "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
    [9] = "Invalid Resource (00000009:kIOGPUCommandBufferCallbackErrorInvalidResource)",
    [11] = "Device was removed (0000000b:kIOGPUCommandBufferCallbackErrorDeviceRemoved)",
};

static mtl_id error_of(long code) {
    const bool is_known = code > 0 && code < (long)(sizeof texts / sizeof *texts) && texts[code];
    fake_error *e = fake_new(FAKE_NSError);
    if (!e) abort();
    e->code = code;
    e->domain = strdup("MTLCommandBufferErrorDomain");
    e->text = strdup(is_known ? texts[code] : "an error without a text");
    return &e->object;
}

/* The first of its queue is done; one that fails leaves out what it had still to do. */
static void end(fake_commands *c, long failure) {
    fake_queue *q = c->queue;
    q->first = c->next;
    if (!q->first) q->last = NULL;
    q->unfinished--;
    c->status = failure ? MTL_STATUS_ERROR : MTL_STATUS_COMPLETED;
    if (failure) c->error = error_of(failure);
    while (c->first) {
        fake_op *op = c->first;
        c->first = op->next;
        fake_op_release(op);
    }
    c->last = NULL;
    fake_drop(c);
}

/* ---- one piece of work ---- */

static bool run_launch(const fake_launch *l) {
    void *buffers[METAL_CPP_BUFFERS] = {NULL};
    const metal_cpp_entry *entry = l->pipeline->function->entry;
    for (int i = 0; i <= 30; i++)
        buffers[i] = l->bound[i].buffer ? l->bound[i].buffer->memory + l->bound[i].offset
                                        : l->bound[i].bytes;
    const bool is_reversed = fake_count.launches++ % 2;
    if (metal_cpp_launch(l->pipeline->function->library->handle, entry, l->groups, l->threads,
                         buffers, is_reversed))
        return true;
    fake_complain("%s: its threads do not meet at the same barriers", entry->name);
    return false;
}

/* Some command buffer that is committed will signal it. */
static fake_queue *who_signals(const fake_event *event, uint64_t value) {
    for (fake_queue *q = queues; q; q = q->older)
        for (const fake_commands *c = q->first; c; c = c->next)
            for (const fake_op *op = c->first; op; op = op->next)
                if (op->kind == FAKE_SIGNAL && op->event == event && op->value >= value) return q;
    return NULL;
}

/* True if the queue got on, or one that it waits for. */
static bool step(fake_queue *q, int depth) {
    enum { MOST_QUEUES = 64 };
    fake_commands *c = q->first;
    if (!c) return false;
    const long failure = fake_is_removed() ? FAKE_REMOVED : c->failure;
    fake_op *op = c->first;
    if (failure || !op) {
        end(c, failure);
        return true;
    }
    if (op->kind == FAKE_WAIT && op->event->value < op->value) {
        fake_queue *other = who_signals(op->event, op->value);
        return other && other != q && depth < MOST_QUEUES && step(other, depth + 1);
    }
    c->first = op->next;
    if (!c->first) c->last = NULL;
    bool ran = true;
    if (op->kind == FAKE_LAUNCH) ran = run_launch(op->launch);
    if (op->kind == FAKE_PRODUCT) fake_run_product(&op->multiply);
    if (op->kind == FAKE_SIGNAL && op->event->value < op->value) op->event->value = op->value;
    fake_op_release(op);
    if (!ran) c->failure = FAKE_PAGE_FAULT;
    if (!c->first) end(c, c->failure);
    return true;
}

bool fake_run_some(fake_queue *queue) { return step(queue, 0); }

void fake_run_until_done(fake_commands *c) {
    enum { MOST_PAUSES = 200000 }; /* ten seconds and more */
    for (long pauses = 0; c->status < MTL_STATUS_COMPLETED;) {
        if (step(c->queue, 0)) {
            pauses = 0;
            continue;
        }
        if (++pauses > MOST_PAUSES)
            fake_abort("a command buffer waits for an event that nobody signals");
        fake_pause();
    }
}

uint64_t send_signaled(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    fake_event *event = (void *)self;
    if (++event->asked % FAKE_PATIENCE == 0) {
        fake_queue *q = who_signals(event, event->value + 1);
        if (q) (void)step(q, 0);
    }
    return event->value;
}
