/* Memory of devices, pinned memory of the host, copies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_driver.h"

/* Addresses are taken up in turn, so that what was released is not soon somebody else's. */
enum { ALIGNMENT = 256, ROUNDS = 16, WIPE_BYTES = 64 << 10 };

typedef struct piece {
    size_t offset, bytes;
} piece;

/* A device's memory: one range of addresses. */
typedef struct arena {
    char *base;
    size_t range, limit, used, cursor;
    piece *pieces; /* in use, by offset */
    int count, capacity;
} arena;

static arena arenas[FAKE_MOST_DEVICES];

/* ---- who may touch it ---- */

static int protection_key = -1;

static void protect(void *memory, size_t bytes) {
    static bool is_asked;
    if (!is_asked) protection_key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    is_asked = true;
    if (protection_key >= 0)
        (void)pkey_mprotect(memory, bytes, PROT_READ | PROT_WRITE, protection_key);
}

void fake_memory_open(void) {
    if (protection_key >= 0) (void)pkey_set(protection_key, 0);
}

void fake_memory_close(void) {
    if (protection_key >= 0) (void)pkey_set(protection_key, PKEY_DISABLE_ACCESS);
}

/* ---- allocation ---- */

static arena *arena_of(int device) {
    arena *a = &arenas[device];
    if (a->base) return a;
    a->limit = (size_t)fake_number("FAKE_CUDA_MEMORY", 1 << 30);
    a->range = ROUNDS * a->limit;
    void *memory = mmap(NULL, a->range, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    protect(memory, a->range);
    a->base = memory;
    return a;
}

/* The place of the first piece at or after an offset. */
static int place_of(const arena *a, size_t offset) {
    int low = 0, high = a->count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (a->pieces[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* An offset that starts so many free bytes, with a gap on both sides; looked for from the cursor
 * on, then from the beginning. */
static bool find_room(arena *a, size_t bytes, size_t *offset) {
    const size_t wanted = bytes + 3 * ALIGNMENT; /* with what rounding takes */
    for (int round = 0; round < 2; round++) {
        size_t from = round == 0 ? a->cursor : 0;
        int i = place_of(a, from);
        if (i > 0 && a->pieces[i - 1].offset + a->pieces[i - 1].bytes > from)
            from = a->pieces[i - 1].offset + a->pieces[i - 1].bytes;
        for (; i < a->count && a->pieces[i].offset < from + wanted; i++)
            from = a->pieces[i].offset + a->pieces[i].bytes;
        *offset = (from + ALIGNMENT + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (*offset + bytes + ALIGNMENT <= a->range) return true;
    }
    return false;
}

static bool insert(arena *a, piece p) {
    if (a->count == a->capacity) {
        const int capacity = a->capacity ? 2 * a->capacity : 64;
        piece *pieces = realloc(a->pieces, (size_t)capacity * sizeof *pieces);
        if (!pieces) return false;
        a->pieces = pieces, a->capacity = capacity;
    }
    const int place = place_of(a, p.offset);
    memmove(a->pieces + place + 1, a->pieces + place,
            (size_t)(a->count - place) * sizeof *a->pieces);
    a->pieces[place] = p;
    a->count++;
    return true;
}

static void *take(int device, size_t bytes) {
    arena *a = arena_of(device);
    size_t offset;
    if (!a || bytes > a->limit - a->used || !find_room(a, bytes, &offset)) return NULL;
    if (!insert(a, (piece){offset, bytes})) return NULL;
    a->used += bytes;
    a->cursor = offset + bytes;
    fake_memory_open();
    memset(a->base + offset - ALIGNMENT, 0xff, bytes + 2 * ALIGNMENT);
    if (fake_is_idle()) memset(a->base + offset, 0, bytes);
    fake_memory_close();
    return a->base + offset;
}

/* What lies around a piece is as it was. */
static bool is_intact(const char *memory, size_t bytes) {
    const unsigned char *own = (const unsigned char *)memory; /* char has no sign on Linux ARM */
    bool intact = true;
    fake_memory_open();
    for (int i = 0; i < ALIGNMENT; i++)
        intact = intact && own[-1 - i] == 0xff && own[bytes + (size_t)i] == 0xff;
    fake_memory_close();
    return intact;
}

/* Large pieces go back to the system, which would give zeros: the edges are wiped, and who reads
 * the middle reads no old numbers. */
static void wipe(char *memory, size_t bytes) {
    fake_memory_open();
    memset(memory, 0xff, bytes < WIPE_BYTES ? bytes : WIPE_BYTES);
    if (bytes > 2 * WIPE_BYTES) {
        const size_t page = 4096;
        char *from = (char *)(((uintptr_t)memory + WIPE_BYTES + page - 1) / page * page);
        (void)madvise(from, (size_t)(memory + bytes - from) / page * page, MADV_DONTNEED);
    }
    fake_memory_close();
}

static bool give_back(char *pointer) {
    for (int d = 0; d < FAKE_MOST_DEVICES; d++) {
        arena *a = &arenas[d];
        if (!a->base || pointer < a->base || pointer >= a->base + a->range) continue;
        const int place = place_of(a, (size_t)(pointer - a->base));
        if (place == a->count || a->base + a->pieces[place].offset != pointer) return false;
        const piece p = a->pieces[place];
        a->used -= p.bytes;
        a->count--;
        memmove(a->pieces + place, a->pieces + place + 1,
                (size_t)(a->count - place) * sizeof *a->pieces);
        if (!is_intact(pointer, p.bytes))
            fake_complain("something wrote beside an allocation of %zu bytes", p.bytes);
        wipe(pointer, p.bytes);
        return true;
    }
    return false;
}

int fake_memory_device(gpu_pointer pointer, size_t bytes) {
    for (int d = 0; d < FAKE_MOST_DEVICES; d++) {
        const arena *a = &arenas[d];
        const size_t offset = pointer - (uintptr_t)a->base;
        if (!a->base || offset >= a->range) continue;
        const int place = place_of(a, offset + 1) - 1;
        if (place < 0 || offset + bytes > a->pieces[place].offset + a->pieces[place].bytes)
            return -1;
        return d;
    }
    return -1;
}

bool fake_memory_is_devices(const void *memory) {
    for (int d = 0; d < FAKE_MOST_DEVICES; d++)
        if (arenas[d].base && (uintptr_t)memory - (uintptr_t)arenas[d].base < arenas[d].range)
            return true;
    return false;
}

gpu_code fake_MemAlloc(gpu_pointer *pointer, size_t bytes) {
    FAKE_ENTER_CONTEXT(FAKE_MemAlloc);
    const gpu_code unsafe = fake_check_unsafe();
    if (unsafe) return unsafe;
    if (bytes == 0) return FAKE_INVALID_VALUE;
    void *memory = take(context->ordinal, bytes);
    if (!memory) return GPU_OUT_OF_MEMORY;
    *pointer = (gpu_pointer)memory;
    fake_count.allocations++;
    return GPU_SUCCESS;
}

/* Waits for all that the devices have to do, as drivers do. */
gpu_code fake_MemFree(gpu_pointer pointer) {
    FAKE_LOCKED(FAKE_MemFree);
    gpu_code wrong;
    if (pointer == 0) return refused;
    fake_context *context = fake_current(&wrong);
    const gpu_code unsafe = fake_check_unsafe();
    if (unsafe) return unsafe;
    fake_check_capture("MemFree");
    if (context) fake_drain_context(NULL);
    if (!give_back((char *)pointer)) {
        fake_complain("MemFree of %p, which is not there", (void *)pointer);
        return FAKE_INVALID_VALUE;
    }
    fake_count.allocations--;
    return refused ? refused : wrong;
}

/* ---- pinned memory ---- */

typedef struct pinned {
    struct pinned *next;
    char *memory;
    size_t bytes;
} pinned;

static pinned *all_pinned;

bool fake_is_pinned(const void *memory, size_t bytes) {
    const char *from = memory;
    for (const pinned *p = all_pinned; p; p = p->next)
        if (from >= p->memory && from + bytes <= p->memory + p->bytes) return true;
    return false;
}

gpu_code fake_MemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    FAKE_ENTER_CONTEXT(FAKE_MemHostAlloc);
    (void)context, (void)flags;
    const gpu_code unsafe = fake_check_unsafe();
    if (unsafe) return unsafe;
    if (bytes == 0) return FAKE_INVALID_VALUE;
    pinned *p = calloc(1, sizeof *p);
    if (p) p->memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!p || !p->memory) {
        free(p);
        return GPU_OUT_OF_MEMORY;
    }
    memset(p->memory, 0xff, bytes);
    p->bytes = bytes;
    p->next = all_pinned;
    all_pinned = p;
    *memory = p->memory;
    fake_count.pinned++;
    return GPU_SUCCESS;
}

gpu_code fake_MemFreeHost(void *memory) {
    FAKE_LOCKED(FAKE_MemFreeHost);
    gpu_code wrong;
    pinned **link = &all_pinned;
    if (!memory) return refused;
    fake_check_capture("MemFreeHost");
    (void)fake_current(&wrong);
    while (*link && (*link)->memory != memory) link = &(*link)->next;
    pinned *p = *link;
    if (!p) {
        fake_complain("MemFreeHost of %p, which is not pinned", memory);
        return FAKE_INVALID_VALUE;
    }
    if (fake_is_in_use(p->memory, p->bytes)) {
        fake_complain("MemFreeHost of memory that queued copies use");
        fake_drain_context(NULL);
    }
    *link = p->next;
    free(p->memory);
    free(p);
    fake_count.pinned--;
    return refused ? refused : wrong;
}

/* ---- copies ---- */

static bool is_there(gpu_pointer pointer, size_t bytes) {
    return fake_memory_device(pointer, bytes) >= 0;
}

/* Pageable memory is read before the call returns, unless a graph reads it later. */
gpu_code fake_MemcpyHtoDAsync(gpu_pointer to, const void *from, size_t bytes, gpu_stream handle) {
    FAKE_ENTER_CONTEXT(FAKE_MemcpyHtoDAsync);
    fake_stream *stream = fake_stream_of(context, handle);
    if (!stream) return FAKE_INVALID_HANDLE;
    if (bytes == 0) return GPU_SUCCESS;
    if (!from || !is_there(to, bytes)) return FAKE_INVALID_VALUE;
    fake_op op = {.kind = FAKE_OP_COPY, .what = "upload", .to = (void *)to, .bytes = bytes};
    op.from = from;
    if (!stream->capture && !fake_is_pinned(from, bytes)) {
        op.from = op.staged = malloc(bytes);
        if (!op.staged) return GPU_OUT_OF_MEMORY;
        memcpy(op.staged, from, bytes);
    }
    return fake_enqueue(stream, op);
}

/* Pageable memory is written before the call returns. */
gpu_code fake_MemcpyDtoHAsync(void *to, gpu_pointer from, size_t bytes, gpu_stream handle) {
    FAKE_ENTER_CONTEXT(FAKE_MemcpyDtoHAsync);
    fake_stream *stream = fake_stream_of(context, handle);
    if (!stream) return FAKE_INVALID_HANDLE;
    if (bytes == 0) return GPU_SUCCESS;
    if (!to || !is_there(from, bytes)) return FAKE_INVALID_VALUE;
    const fake_op op = {.kind = FAKE_OP_COPY,
                        .what = "download",
                        .to = to,
                        .from = (const void *)from,
                        .bytes = bytes};
    const gpu_code code = fake_enqueue(stream, op);
    if (code != GPU_SUCCESS || stream->capture || fake_is_pinned(to, bytes)) return code;
    return fake_drain(stream);
}

gpu_code fake_MemcpyDtoDAsync(gpu_pointer to, gpu_pointer from, size_t bytes, gpu_stream handle) {
    FAKE_ENTER_CONTEXT(FAKE_MemcpyDtoDAsync);
    fake_stream *stream = fake_stream_of(context, handle);
    if (!stream) return FAKE_INVALID_HANDLE;
    if (bytes == 0) return GPU_SUCCESS;
    if (!is_there(to, bytes) || !is_there(from, bytes)) return FAKE_INVALID_VALUE;
    if (from < to + bytes && to < from + bytes)
        fake_complain("MemcpyDtoDAsync of %zu bytes overlaps", bytes);
    const fake_op op = {.kind = FAKE_OP_COPY,
                        .what = "copy",
                        .to = (void *)to,
                        .from = (const void *)from,
                        .bytes = bytes};
    return fake_enqueue(stream, op);
}

gpu_code fake_MemsetD8Async(gpu_pointer to, unsigned char value, size_t bytes, gpu_stream handle) {
    FAKE_ENTER_CONTEXT(FAKE_MemsetD8Async);
    fake_stream *stream = fake_stream_of(context, handle);
    if (!stream) return FAKE_INVALID_HANDLE;
    if (bytes == 0) return GPU_SUCCESS;
    if (!is_there(to, bytes)) return FAKE_INVALID_VALUE;
    const fake_op op = {
        .kind = FAKE_OP_FILL, .what = "fill", .to = (void *)to, .value = value, .bytes = bytes};
    return fake_enqueue(stream, op);
}
