/* malloc with errors that are recorded and sizes that are checked for overflow. New blocks
 * (wb_alloc) are zeroed; lists grow by doubling. A test can make the n-th allocation fail. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int64_t allocations; /* __atomic */
static int64_t failing_at;  /* 0: never */

static int refused(size_t size_bytes) {
    const int64_t number = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    const int64_t limit = __atomic_load_n(&failing_at, __ATOMIC_RELAXED);
    if (limit == 0 || number < limit) return 0;
    (void)wb_fail(WB_ERROR_MEMORY,
                  "out of memory: %zu bytes cannot be allocated (a test asked for this failure)",
                  size_bytes);
    return 1;
}

static void *or_error(void *block, size_t size_bytes) {
    if (!block)
        (void)wb_fail(WB_ERROR_MEMORY, "out of memory: %zu bytes cannot be allocated", size_bytes);
    return block;
}

void *wb_alloc(size_t size_bytes) {
    if (refused(size_bytes)) return NULL;
    return or_error(calloc(1, size_bytes ? size_bytes : 1), size_bytes);
}

/* How many items one piece of memory can have. */
static int64_t most_items(size_t item_bytes) {
    return (int64_t)((size_t)PTRDIFF_MAX / (item_bytes ? item_bytes : 1));
}

static void *too_long(int64_t count, size_t item_bytes) {
    return wb_fail_null(WB_ERROR_MEMORY, "out of memory: %lld times %zu bytes cannot be allocated",
                        (long long)count, item_bytes);
}

int wb_check_bytes(int64_t bytes) {
    if (wb_bytes(bytes) != SIZE_MAX) return 1;
    (void)wb_fail(WB_ERROR_MEMORY, "out of memory: %lld bytes cannot be allocated",
                  (long long)bytes);
    return 0;
}

void *wb_alloc_list(int64_t count, size_t item_bytes) {
    const bool fits = count >= 0 && count <= most_items(item_bytes);
    return fits ? wb_alloc((size_t)count * item_bytes) : too_long(count, item_bytes);
}

void *wb_resize(void *block, size_t size_bytes) {
    if (refused(size_bytes)) return NULL;
    return or_error(realloc(block, size_bytes ? size_bytes : 1), size_bytes);
}

void wb_release(void *block) { free(block); }

void *wb_alloc_aligned(size_t size_bytes) {
    if (refused(size_bytes)) return NULL;
    const size_t rounded = (size_bytes + 63) & ~(size_t)63;
    if (rounded < size_bytes) return or_error(NULL, size_bytes);
    return or_error(aligned_alloc(64, rounded ? rounded : 64), size_bytes);
}

void wb_release_aligned(void *block) { free(block); }

char *wb_copy_text(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = wb_alloc(size);
    if (copy) memcpy(copy, text, size);
    return copy;
}

char *wb_path_in(const char *folder, size_t folder_bytes, const char *name) {
    const size_t length = strlen(name);
    char *path = wb_alloc(folder_bytes + 1 + length + 1);
    if (!path) return NULL;
    memcpy(path, folder, folder_bytes);
    if (folder_bytes && folder[folder_bytes - 1] != '/') path[folder_bytes++] = '/';
    memcpy(path + folder_bytes, name, length + 1);
    return path;
}

int64_t wb_fail_allocation(int64_t n) {
    static int64_t last;
    const int64_t now = __atomic_load_n(&allocations, __ATOMIC_RELAXED), since = now - last;
    last = now;
    __atomic_store_n(&failing_at, n > 0 ? now + n : 0, __ATOMIC_RELAXED);
    return since;
}

int64_t wb_allocation_count(void) { return __atomic_load_n(&allocations, __ATOMIC_RELAXED); }

/* Twice as long, at least 16, unless there can be no piece so large. */
static int64_t next_capacity(int64_t capacity, int64_t most) {
    if (capacity >= most / 2 || most < 16) return most;
    return capacity < 8 ? 16 : capacity * 2;
}

int wb_grow_list(void **items, int64_t *capacity, size_t item_bytes, int64_t wanted) {
    const int64_t most = most_items(item_bytes), next = next_capacity(*capacity, most);
    if (wanted <= *capacity) return 1;
    if (wanted > most) return too_long(wanted, item_bytes) != NULL;
    const int64_t grown = wanted > next ? wanted : next;
    void *larger = wb_resize(*items, (size_t)grown * item_bytes);
    if (!larger) return 0;
    *items = larger, *capacity = grown;
    return 1;
}
