/* The table of the checked backend: each call takes the lock, is checked, and is queued. */
#include "checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/locks.h"

device *wb_checked_devices;

static uint64_t steps;

static void lock(void) { wb_lock_take(WB_LOCK_CHECKED); }
static void unlock(void) { wb_lock_give(WB_LOCK_CHECKED); }

uint64_t wb_checked_step(void) { return ++steps; }

void wb_checked_keep(kept_error *kept, wb_status status, const char *format, ...) {
    if (kept->status != WB_OK) return;
    kept->status = status;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(kept->text, sizeof kept->text, format, arguments);
    va_end(arguments);
}

/* ---- questions ---- */

static bool load(char *reason, size_t reason_bytes) {
    if (wb_host_cpu()) return true;
    (void)snprintf(reason, reason_bytes, "it needs the CPU backend, which is missing");
    return false;
}

static int count_devices(char *reason, size_t reason_bytes) {
    (void)reason, (void)reason_bytes;
    return DEVICES;
}

static wb_status check_index(int index) {
    if (index >= 0 && index < DEVICES) return WB_OK;
    return wb_host_fail(WB_ERROR_ARGUMENT, "checked: there is no device %d; there are 0 .. %d",
                        index, DEVICES - 1);
}

static wb_status info(int index, wb_device_info *info) {
    if (check_index(index) != WB_OK) return WB_ERROR_ARGUMENT;
    const wb_status status = wb_host_cpu()->info(0, info);
    if (status != WB_OK) return status;
    (void)snprintf(info->name, sizeof info->name, "CPU as a device, number %d", index);
    info->is_gpu = info->is_host_memory = false;
    info->has_f64 = true;
    return WB_OK;
}

/* ---- one device ---- */

static bool open_parts(device *d) {
    d->cpu = wb_host_cpu()->open(0);
    if (!d->cpu) return false;
    d->own = wb_checked_queue_new(d);
    if (d->own) return true;
    wb_host_cpu()->close(d->cpu);
    return false;
}

static void *open_device(int index) {
    if (check_index(index) != WB_OK) return NULL;
    device *d = wb_host_alloc(sizeof *d);
    if (!d) return NULL;
    d->index = index;
    if (!open_parts(d)) {
        wb_host_release(d);
        return NULL;
    }
    lock();
    d->next = wb_checked_devices;
    wb_checked_devices = d;
    unlock();
    return d;
}

/* What other devices have queued may read its memory. */
static void do_peer_copies(const device *closing) {
    for (const device *d = wb_checked_devices; d; d = d->next)
        for (queue *q = d->queues; q && d != closing; q = q->next) wb_checked_do(q, UINT64_MAX);
}

static void close_device(void *any) {
    device *d = any;
    lock();
    while (d->queues) wb_checked_queue_free(d, d->queues);
    do_peer_copies(d);
    const int alive = wb_checked_drop_memory(d);
    if (alive)
        wb_checked_keep(&d->error, WB_ERROR_DEVICE,
                        "checked(%d): close: memory was never freed: %d times", d->index, alive);
    device **at = &wb_checked_devices;
    while (*at != d) at = &(*at)->next;
    *at = d->next;
    unlock();
    wb_host_cpu()->close(d->cpu);
    if (d->error.status != WB_OK) (void)wb_host_fail(d->error.status, "%s", d->error.text);
    wb_host_release(d);
}

static void *alloc(void *d, size_t size_bytes) {
    lock();
    void *handle = wb_checked_alloc(d, size_bytes);
    unlock();
    return handle;
}

static void free_memory(void *d, void *handle, size_t size_bytes) {
    if (!handle) return;
    lock();
    wb_checked_free(d, handle, size_bytes);
    unlock();
}

static void *alloc_pinned(void *d, size_t size_bytes) {
    lock();
    void *memory = wb_checked_alloc_pinned(d, size_bytes);
    unlock();
    return memory;
}

static void free_pinned(void *d, void *memory, size_t size_bytes) {
    if (!memory) return;
    lock();
    wb_checked_free_pinned(d, memory, size_bytes);
    unlock();
}

/* ---- kernels ---- */

static void *kernel_of_program(void *d, const wb_program *program) {
    lock();
    void *k = wb_checked_kernel(d, program);
    unlock();
    return k;
}

static void *lower(void *d, const wb_call *call, const wb_program *epilogue, int split) {
    lock();
    void *k = wb_checked_lower(d, call, epilogue, split);
    unlock();
    return k;
}

static bool takes(void *d, const char *name, const wb_call *call) {
    return wb_host_cpu()->takes(((device *)d)->cpu, name, call);
}

static size_t scratch_bytes(const void *any) {
    return wb_host_cpu()->scratch_bytes(((const kernel *)any)->inner);
}

static void release(void *k) {
    if (!k) return;
    lock();
    wb_checked_release(k);
    unlock();
}

/* ---- queues ---- */

/* The device's queue (NULL: its own). NULL with an error; if the device is gone, the error says
 * why. */
static queue *working_queue(const device *d, const char *what, void *any) {
    if (d->gone.status == WB_OK) return wb_checked_queue(d, what, any);
    (void)wb_host_fail(d->gone.status,
                       "checked(%d): %s: not run, since an earlier command failed: %s", d->index,
                       what, d->gone.text);
    return NULL;
}

static void *queue_new(void *d) {
    lock();
    queue *q = wb_checked_queue_new(d);
    unlock();
    return q;
}

static void queue_free(void *d, void *any) {
    if (!any) return;
    lock();
    queue *q = wb_checked_queue(d, "queue_free", any);
    if (q) wb_checked_queue_free(d, q);
    unlock();
}

static void *record(void *d, void *any) {
    lock();
    queue *q = wb_checked_queue(d, "record", any);
    void *made = q ? wb_checked_record(q) : NULL;
    unlock();
    return made;
}

static wb_status wait_event(void *d, void *any, void *any_event) {
    lock();
    queue *q = wb_checked_queue(d, "wait", any);
    const wb_status status = q ? wb_checked_wait(q, any_event) : WB_ERROR_DEVICE;
    unlock();
    return status;
}

static void release_event(void *any, void *any_event) {
    if (!any_event) return;
    device *d = any;
    lock();
    if (!wb_checked_release_event(any_event))
        wb_checked_keep(&d->error, WB_ERROR_DEVICE,
                        "checked(%d): release_event: the event was released, or never recorded",
                        d->index);
    unlock();
}

static wb_status is_done(void *any, void *any_event, bool *done) {
    const device *d = any;
    lock();
    const bool is_known = wb_checked_is_done(any_event, done);
    unlock();
    if (is_known) return WB_OK;
    return wb_host_fail(WB_ERROR_DEVICE,
                        "checked(%d): is_done: the event was released, or never recorded",
                        d->index);
}

/* ---- commands ---- */

/* True at the n-th call after WEBER_CHECKED_FAIL has become n. */
static bool fails_now(void) {
    static char seen[24];
    static long left;
    const char *asked = getenv("WEBER_CHECKED_FAIL");
    if (!asked) asked = "";
    if (strncmp(seen, asked, sizeof seen - 1) != 0) {
        (void)snprintf(seen, sizeof seen, "%s", asked);
        left = strtol(asked, NULL, 10);
    }
    return left > 0 && --left == 0;
}

typedef struct job {
    const wb_command *commands;
    int count;
    const wb_memory *memory;
    const uint64_t *late;
} job;

static wb_status make_entries(const device *d, const job *j, entry **first) {
    entry **end = first;
    for (int c = 0; c < j->count; c++) {
        const wb_status status =
            wb_checked_entry_of_command(d, &j->commands[c], j->memory, j->late, end);
        if (status != WB_OK) return status;
        end = &(*end)->next;
    }
    return WB_OK;
}

/* All or none is queued. */
static wb_status queue_commands(queue *q, const job *j) {
    entry *next = NULL;
    const wb_status status = make_entries(q->device, j, &next);
    while (next) {
        entry *e = next;
        next = e->next;
        e->next = NULL;
        if (status == WB_OK) {
            e->fails = fails_now();
            wb_checked_push(q, e);
        } else
            wb_checked_entry_free(e);
    }
    return status;
}

static wb_status run(void *d, void *any, const wb_command *commands, int count,
                     const wb_memory *memory, const uint64_t *late) {
    const job j = {commands, count, memory, late};
    lock();
    queue *q = working_queue(d, "run", any);
    const wb_status status = q ? queue_commands(q, &j) : WB_ERROR_DEVICE;
    unlock();
    return status;
}

/* ---- copies ---- */

typedef struct side {
    const device *device; /* NULL: the host's */
    wb_memory memory;
} side;

static wb_status check_side(const device *d, const char *what, const char *use, side s,
                            size_t size_bytes, piece **found) {
    if (s.device) return wb_checked_piece(s.device, what, use, s.memory, size_bytes, found);
    if (s.memory.handle && !wb_checked_is_handle(s.memory.handle)) return WB_OK;
    return wb_host_fail(WB_ERROR_DEVICE, "checked(%d): %s: %s must be host memory, but is %s",
                        d->index, what, use, s.memory.handle ? "a handle" : "NULL");
}

/* Fails if the host memory is that of a pending copy, which must not be touched before a sync. */
static wb_status check_landing(const device *d, const void *host, size_t size_bytes) {
    const entry *e = wb_checked_pending(host, size_bytes);
    if (!e) return WB_OK;
    char copy[TEXT_BYTES / 2];
    wb_checked_describe(e, copy, sizeof copy);
    return wb_host_fail(
        WB_ERROR_DEVICE,
        "checked(%d): missing sync: a download of %zu bytes into host memory that %s still uses",
        d->index, size_bytes, copy);
}

static wb_status make_copy(const device *d, const char *what, side to, side from, size_t size_bytes,
                           entry **made) {
    piece *pieces[2] = {NULL, NULL};
    char *host = to.device ? NULL : (char *)to.memory.handle + to.memory.offset_bytes;
    wb_status status = check_side(d, what, "the source", from, size_bytes, &pieces[FROM]);
    if (status == WB_OK)
        status = check_side(d, what, "the destination", to, size_bytes, &pieces[TO]);
    if (status == WB_OK && host) status = check_landing(d, host, size_bytes);
    if (status != WB_OK) return status;
    entry *e = wb_checked_entry(ENTRY_COPY, 2, 0);
    if (!e) return WB_ERROR_MEMORY;
    const wb_memory memory[2] = {[TO] = to.memory, [FROM] = from.memory};
    for (int i = 0; i < 2; i++) {
        e->pieces[i] = pieces[i];
        e->memory[i] = memory[i];
        if (!pieces[i]) continue;
        pieces[i]->uses++;
        e->memory[i].handle = pieces[i]->bytes;
    }
    e->what = what, e->size_bytes = size_bytes;
    if (host) memset(host, 0xFF, size_bytes);
    *made = e;
    return WB_OK;
}

static wb_status queue_copy(device *d, void *any, const char *what, side to, side from,
                            size_t size_bytes) {
    if (size_bytes == 0) return WB_OK;
    lock();
    entry *e = NULL;
    queue *q = working_queue(d, what, any);
    const wb_status status = q ? make_copy(d, what, to, from, size_bytes, &e) : WB_ERROR_DEVICE;
    if (e) wb_checked_push(q, e);
    unlock();
    return status;
}

static wb_status copy(void *any, void *any_queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                      size_t size_bytes) {
    static const char *const names[] = {[WB_COPY_UPLOAD] = "upload",
                                        [WB_COPY_DOWNLOAD] = "download",
                                        [WB_COPY_LOCAL] = "local copy"};
    device *d = any;
    return queue_copy(d, any_queue, names[kind], (side){kind == WB_COPY_DOWNLOAD ? NULL : d, to},
                      (side){kind == WB_COPY_UPLOAD ? NULL : d, from}, size_bytes);
}

static wb_status copy_peer(void *d, void *any_queue, wb_memory to, void *from_device,
                           wb_memory from, size_t size_bytes) {
    return queue_copy(d, any_queue, "peer copy", (side){d, to}, (side){from_device, from},
                      size_bytes);
}

/* ---- sync ---- */

/* The first late error: the queue's, else one that no call could return, else that of a device that
 * is gone. */
static kept_error next_error(device *d, queue *q) {
    kept_error *const kept[] = {&q->error, &d->error};
    for (int i = 0; i < 2; i++) {
        if (kept[i]->status == WB_OK) continue;
        const kept_error error = *kept[i];
        kept[i]->status = WB_OK;
        return error;
    }
    return d->gone;
}

static wb_status sync_queue(void *any, void *any_queue) {
    device *d = any;
    lock();
    queue *q = wb_checked_queue(d, "sync", any_queue);
    kept_error error = {.status = WB_OK};
    if (q) {
        wb_checked_do(q, UINT64_MAX);
        error = next_error(d, q);
    }
    unlock();
    if (!q) return WB_ERROR_DEVICE;
    return error.status == WB_OK ? WB_OK : wb_host_fail(error.status, "%s", error.text);
}

extern const wb_backend wb_checked_backend;
const wb_backend wb_checked_backend = {.abi = WB_PLUGIN_ABI,
                                       .size_bytes = sizeof(wb_backend),
                                       .name = "checked",
                                       .load = load,
                                       .count = count_devices,
                                       .info = info,
                                       .open = open_device,
                                       .close = close_device,
                                       .alloc = alloc,
                                       .free = free_memory,
                                       .alloc_pinned = alloc_pinned,
                                       .free_pinned = free_pinned,
                                       .kernel = kernel_of_program,
                                       .lower = lower,
                                       .takes = takes,
                                       .scratch_bytes = scratch_bytes,
                                       .release = release,
                                       .queue_new = queue_new,
                                       .queue_free = queue_free,
                                       .record = record,
                                       .wait = wait_event,
                                       .release_event = release_event,
                                       .copy = copy,
                                       .copy_peer = copy_peer,
                                       .run = run,
                                       .sync = sync_queue,
                                       .is_done = is_done};
