/* Memory: pages that nobody may touch stand for bytes that lie elsewhere. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "checked.h"
#include "platform/memory.h"

enum { MOST_FREED = 1024 }; /* freed pieces that are still known */

static table pieces;
static piece *freed[MOST_FREED];
static int next_freed;
static uint64_t made;

static void *map_pages(size_t size_bytes, int protection) {
    void *pages = mmap(NULL, size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED) return pages;
    (void)wb_host_fail(WB_ERROR_MEMORY, "checked: out of memory: %zu bytes of pages", size_bytes);
    return NULL;
}

static size_t whole_pages(size_t size_bytes) {
    const size_t page = wb_platform_page_bytes();
    return (size_bytes / page + 1) * page;
}

/* ---- pieces ---- */

static void free_bytes(piece *p) {
    if (p->bytes) wb_host_cpu()->free(p->device->cpu, p->bytes, p->size_bytes);
    p->bytes = NULL;
}

static void forget(piece *p) {
    free_bytes(p);
    wb_checked_take(&pieces, &p->known);
    (void)munmap(p->handle, p->reserved_bytes);
    wb_host_release(p);
}

/* Its bytes are not used any more; its handle stays known until this many others were freed after
 * it. */
static void retire(piece *p) {
    free_bytes(p);
    if (freed[next_freed]) forget(freed[next_freed]);
    freed[next_freed] = p;
    next_freed = (next_freed + 1) % MOST_FREED;
}

static bool fill(piece *p) {
    p->bytes = wb_host_cpu()->alloc(p->device->cpu, p->size_bytes);
    p->handle = p->bytes ? map_pages(p->reserved_bytes, PROT_NONE) : NULL;
    if (!p->handle) return false;
    memset(p->bytes, 0xFF, p->size_bytes);
    return true;
}

void *wb_checked_alloc(device *d, size_t size_bytes) {
    piece *p = wb_host_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (piece){.device = d, .size_bytes = size_bytes, .reserved_bytes = whole_pages(size_bytes)};
    if (!fill(p)) {
        free_bytes(p);
        wb_host_release(p);
        return NULL;
    }
    p->number = ++made;
    (void)wb_checked_step();
    wb_checked_put(&pieces, &p->known, p->handle);
    return p->handle;
}

void wb_checked_unuse(piece *p) {
    if (p && --p->uses == 0 && p->freed_at) retire(p);
}

/* ---- finding them ---- */

bool wb_checked_is_handle(const void *address) { return wb_checked_find(&pieces, address) != NULL; }

static const piece *around(const void *address) {
    for (int b = 0; b < BUCKETS; b++)
        for (const known *k = pieces.buckets[b]; k; k = k->next) {
            const piece *p = (const piece *)k;
            if ((uintptr_t)address - (uintptr_t)p->handle < p->reserved_bytes) return p;
        }
    return NULL;
}

static void say_unknown(const void *handle, char *why, size_t why_bytes) {
    const piece *p = around(handle);
    if (p)
        (void)snprintf(
            why, why_bytes, "lies %zu bytes inside memory %llu: a handle is not an address",
            (size_t)((uintptr_t)handle - (uintptr_t)p->handle), (unsigned long long)p->number);
    else
        (void)snprintf(why, why_bytes, "is not memory of a checked device");
}

/* The piece, alive and on this device; NULL: "is memory 3 (64 bytes), which was freed at step 9,
 * after relu". */
static piece *look_up(const device *d, const void *handle, char *why, size_t why_bytes) {
    piece *p = (piece *)wb_checked_find(&pieces, handle);
    if (!p) {
        say_unknown(handle, why, why_bytes);
        return NULL;
    }
    if (p->device == d && !p->freed_at) return p;
    const unsigned long long number = p->number;
    if (p->device != d)
        (void)snprintf(why, why_bytes, "is memory %llu (%zu bytes) of checked(%d)", number,
                       p->size_bytes, p->device->index);
    else
        (void)snprintf(why, why_bytes,
                       "is memory %llu (%zu bytes), which was freed at step %llu%s%s", number,
                       p->size_bytes, (unsigned long long)p->freed_at,
                       p->freed_after ? ", after " : "", p->freed_after ? p->freed_after : "");
    return NULL;
}

wb_status wb_checked_piece(const device *d, const char *what, const char *use, wb_memory memory,
                           size_t size_bytes, piece **found) {
    char why[TEXT_BYTES];
    piece *p = look_up(d, memory.handle, why, sizeof why);
    if (!p)
        return wb_host_fail(WB_ERROR_DEVICE, "checked(%d): %s: %s %s", d->index, what, use, why);
    const size_t offset = (size_t)memory.offset_bytes;
    if (memory.offset_bytes < 0 || offset > p->size_bytes || size_bytes > p->size_bytes - offset)
        return wb_host_fail(
            WB_ERROR_DEVICE,
            "checked(%d): %s: %s is %zu bytes at offset %lld of memory %llu, which has %zu",
            d->index, what, use, size_bytes, (long long)memory.offset_bytes,
            (unsigned long long)p->number, p->size_bytes);
    *found = p;
    return WB_OK;
}

void wb_checked_free(device *d, void *handle, size_t size_bytes) {
    char why[TEXT_BYTES];
    piece *p = look_up(d, handle, why, sizeof why);
    const uint64_t step = wb_checked_step();
    if (!p) {
        wb_checked_keep(&d->error, WB_ERROR_DEVICE, "checked(%d): free: the handle %s", d->index,
                        why);
        return;
    }
    if (size_bytes != p->size_bytes)
        wb_checked_keep(&d->error, WB_ERROR_DEVICE,
                        "checked(%d): free: memory %llu has %zu bytes, not %zu", d->index,
                        (unsigned long long)p->number, p->size_bytes, size_bytes);
    p->freed_at = step;
    p->freed_after = d->last_what;
    if (p->uses == 0) retire(p);
}

/* ---- pinned memory ---- */

void *wb_checked_alloc_pinned(device *d, size_t size_bytes) {
    pinned *p = wb_host_alloc(sizeof *p);
    if (!p) return NULL;
    p->size_bytes = size_bytes;
    p->memory = map_pages(whole_pages(size_bytes), PROT_READ | PROT_WRITE);
    if (!p->memory) {
        wb_host_release(p);
        return NULL;
    }
    memset(p->memory, 0xFF, size_bytes);
    p->next = d->pinned;
    d->pinned = p;
    return p->memory;
}

static void unpin(pinned **at) {
    pinned *p = *at;
    *at = p->next;
    (void)munmap(p->memory, whole_pages(p->size_bytes));
    wb_host_release(p);
}

/* Cancels copies that use the memory, which is gone. */
static void drop_copies(device *d, const pinned *p) {
    entry *e;
    while ((e = wb_checked_pending(p->memory, p->size_bytes))) {
        char copy[TEXT_BYTES / 2];
        wb_checked_describe(e, copy, sizeof copy);
        wb_checked_keep(
            &d->error, WB_ERROR_DEVICE,
            "checked(%d): missing sync: pinned memory (%zu bytes) was freed before %s was done",
            d->index, p->size_bytes, copy);
        e->is_dropped = true;
    }
}

void wb_checked_free_pinned(device *d, void *memory, size_t size_bytes) {
    pinned **at = &d->pinned;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    if (!*at) {
        wb_checked_keep(&d->error, WB_ERROR_DEVICE,
                        "checked(%d): free_pinned: this is not pinned memory", d->index);
        return;
    }
    if ((*at)->size_bytes != size_bytes)
        wb_checked_keep(&d->error, WB_ERROR_DEVICE,
                        "checked(%d): free_pinned: the memory has %zu bytes, not %zu", d->index,
                        (*at)->size_bytes, size_bytes);
    drop_copies(d, *at);
    unpin(at);
}

/* ---- the end of a device ---- */

static int drop_bucket(const device *d, known *k) {
    int alive = 0;
    while (k) {
        piece *p = (piece *)k;
        k = k->next;
        if (p->device != d) continue;
        alive += !p->freed_at;
        forget(p);
    }
    return alive;
}

int wb_checked_drop_memory(device *d) {
    while (d->pinned) unpin(&d->pinned);
    for (int i = 0; i < MOST_FREED; i++)
        if (freed[i] && freed[i]->device == d) freed[i] = NULL;
    int alive = 0;
    for (int b = 0; b < BUCKETS; b++) alive += drop_bucket(d, pieces.buckets[b]);
    return alive;
}
