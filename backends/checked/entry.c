/* Entries of queues: what was asked for, with copies of everything that the call was given. */
#include <stdio.h>
#include <string.h>

#include "checked.h"

/* One block: the entry, followed by its lists. */
entry *wb_checked_entry(entry_kind kind, int count, int late_count) {
    const size_t n = (size_t)count,
                 each = sizeof(wb_memory) + sizeof(wb_argument) + sizeof(piece *);
    entry *e = wb_host_alloc(sizeof *e + n * each + (size_t)late_count * sizeof(uint64_t));
    if (!e) return NULL;
    e->kind = kind;
    e->count = count;
    e->memory = (wb_memory *)(void *)(e + 1);
    e->arguments = (wb_argument *)(void *)(e->memory + n);
    e->pieces = (piece **)(void *)(e->arguments + n);
    e->late = (uint64_t *)(void *)(e->pieces + n);
    return e;
}

void wb_checked_entry_free(entry *e) {
    for (int i = 0; i < e->count; i++) wb_checked_unuse(e->pieces[i]);
    wb_checked_unuse_kernel(e->kernel);
    if (e->event) wb_checked_unref_event(e->event);
    wb_host_release(e);
}

/* ---- commands ---- */

static wb_status bind(const device *d, entry *e, int i, wb_memory memory) {
    char use[32];
    (void)snprintf(use, sizeof use, "argument %d", i);
    if (!memory.handle) return WB_OK; /* nothing, as it is on the CPU */
    const wb_memory begin = {memory.handle, e->kernel->is_empty ? 0 : memory.offset_bytes};
    const wb_status status = wb_checked_piece(d, e->what, use, begin, 0, &e->pieces[i]);
    if (status != WB_OK) return status;
    e->pieces[i]->uses++;
    e->memory[i] = (wb_memory){e->pieces[i]->bytes, memory.offset_bytes};
    return WB_OK;
}

static wb_status bind_all(const device *d, entry *e, const wb_command *command,
                          const wb_memory *memory) {
    wb_status status = WB_OK;
    for (int i = 0; i < command->narguments && status == WB_OK; i++) {
        const wb_argument *a = &command->arguments[i];
        wb_memory place = memory[a->memory];
        place.offset_bytes += a->offset_bytes;
        e->arguments[i].memory = (uint32_t)i;
        status = bind(d, e, i, place);
    }
    return status;
}

wb_status wb_checked_entry_of_command(const device *d, const wb_command *command,
                                      const wb_memory *memory, const uint64_t *late, entry **made) {
    const char *what = command->what ? command->what : "a kernel without a name";
    if (!wb_checked_is_kernel(command->kernel))
        return wb_host_fail(WB_ERROR_DEVICE,
                            "checked(%d): %s: its kernel was released, or never made", d->index,
                            what);
    kernel *k = command->kernel;
    if (k->late_count && !late)
        return wb_host_fail(WB_ERROR_DEVICE,
                            "checked(%d): %s: the kernel reads %d late values, but none are given",
                            d->index, what, k->late_count);
    entry *e = wb_checked_entry(ENTRY_RUN, command->narguments, k->late_count);
    if (!e) return WB_ERROR_MEMORY;
    e->what = what;
    e->kernel = k;
    k->uses++;
    if (k->late_count) memcpy(e->late, late, sizeof *late * (size_t)k->late_count);
    const wb_status status = bind_all(d, e, command, memory);
    if (status == WB_OK)
        *made = e;
    else
        wb_checked_entry_free(e);
    return status;
}

/* Moves the error that was just recorded into `kept`, without what the thread puts in front of all
 * its errors. */
static void take_error(kept_error *kept, const char *what, wb_status status) {
    char text[TEXT_BYTES], front[TEXT_BYTES];
    (void)wb_take_error(text, sizeof text);
    (void)wb_host_fail(status, "%s", "");
    (void)wb_take_error(front, sizeof front);
    const size_t skip = strncmp(text, front, strlen(front)) == 0 ? strlen(front) : 0;
    const char *rest = text + skip;
    const bool is_named = strncmp(rest, what, strlen(what)) == 0;
    wb_checked_keep(kept, status, "%s%s%s", is_named ? "" : what, is_named ? "" : ": ", rest);
}

static void do_command(queue *q, const entry *e) {
    const bool failed_before = wb_failed();
    const wb_command command = {.kernel = e->kernel->inner,
                                .narguments = e->count,
                                .arguments = e->arguments,
                                .what = e->what};
    const wb_status status =
        wb_host_cpu()->run(q->device->cpu, NULL, &command, 1, e->memory, e->late);
    if (status == WB_OK) return;
    if (failed_before) /* the thread has an earlier error, which hides the words of this one */
        wb_checked_keep(&q->error, status, "%s: %s", e->what, wb_status_text(status));
    else
        take_error(&q->error, e->what, status);
}

void wb_checked_entry_do(queue *q, entry *e) {
    device *d = q->device;
    if (d->gone.status != WB_OK || e->is_dropped) return;
    if (e->fails)
        wb_checked_keep(&d->gone, WB_ERROR_DEVICE,
                        "checked(%d): %s: the device failed (WEBER_CHECKED_FAIL)", d->index,
                        e->what);
    else if (e->kind == ENTRY_RUN)
        do_command(q, e);
    else if (e->kind == ENTRY_COPY)
        (void)wb_host_cpu()->copy(d->cpu, NULL, WB_COPY_LOCAL, e->memory[TO], e->memory[FROM],
                                  e->size_bytes);
    else
        wb_checked_do(e->event->queue, e->event->position);
}

/* ---- pending copies ---- */

const char *wb_checked_host_side(const entry *e) {
    if (e->kind != ENTRY_COPY || e->is_dropped) return NULL;
    const int host = e->pieces[TO] ? FROM : TO;
    return e->pieces[host] ? NULL
                           : (const char *)e->memory[host].handle + e->memory[host].offset_bytes;
}

static entry *pending_in(const queue *q, const void *host, size_t size_bytes) {
    const uintptr_t first = (uintptr_t)host;
    for (entry *e = q->first; e; e = e->next) {
        const uintptr_t side = (uintptr_t)wb_checked_host_side(e);
        if (side && side < first + size_bytes && first < side + e->size_bytes) return e;
    }
    return NULL;
}

entry *wb_checked_pending(const void *host, size_t size_bytes) {
    for (const device *d = wb_checked_devices; d; d = d->next)
        for (const queue *q = d->queues; q; q = q->next) {
            entry *e = pending_in(q, host, size_bytes);
            if (e) return e;
        }
    return NULL;
}

void wb_checked_describe(const entry *e, char *text, size_t size_bytes) {
    const bool is_upload = !e->pieces[FROM];
    const piece *p = e->pieces[is_upload ? TO : FROM];
    (void)snprintf(text, size_bytes, "the %s of %zu bytes %s memory %llu (queued at step %llu%s%s)",
                   e->what, e->size_bytes, is_upload ? "to" : "from", (unsigned long long)p->number,
                   (unsigned long long)e->step, e->after ? ", after " : "",
                   e->after ? e->after : "");
}
