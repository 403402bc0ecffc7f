/* Host memory of the library. All allocations go through here, so that a test can let the n-th one
 * fail. */
#ifndef WB_BASE_MEMORY_H
#define WB_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/count.h"

/* Zeroed memory, aligned for any type; NULL with WB_ERROR_MEMORY recorded. Release with wb_release
 * (NULL is fine). */
void *wb_alloc(size_t size_bytes);

/* The same for a list: the product of count and size does not wrap around, as it would in a size_t
 * of 32 bits. */
void *wb_alloc_list(int64_t count, size_t item_bytes);

/* No piece of memory is larger: differences of addresses are signed, and some callers round sizes
 * up. */
#define WB_MOST_BYTES ((int64_t)PTRDIFF_MAX - 0xffff)

/* bytes as a size_t for allocators: SIZE_MAX, which no allocator grants, if they are too many. A
 * cast would cut off the high bits on a 32-bit machine. */
static inline size_t wb_bytes(int64_t bytes) {
    return bytes < 0 || bytes > WB_MOST_BYTES ? SIZE_MAX : (size_t)bytes;
}

/* Whether a piece of memory can have this many bytes; else WB_ERROR_MEMORY. */
int wb_check_bytes(int64_t bytes);

/* Resizes; the old block stays valid on failure. New bytes are not zeroed. */
void *wb_resize(void *block, size_t size_bytes);
void wb_release(void *block);

/* Memory for arrays: aligned to 64 bytes, not zeroed. NULL with WB_ERROR_MEMORY recorded. */
void *wb_alloc_aligned(size_t size_bytes);
void wb_release_aligned(void *block);

char *wb_copy_text(const char *text);
/* "folder/name", of the folder's first folder_bytes bytes; the same. */
char *wb_path_in(const char *folder, size_t folder_bytes, const char *name);

/* For tests: makes the n-th allocation from now on (1: the next one) and all after it fail; 0 ends
 * that. Returns the number of allocations since the last call. */
int64_t wb_fail_allocation(int64_t n);

/* Allocations asked of the system so far, by all threads. */
int64_t wb_allocation_count(void);

/* Makes room for one more element in a growing list: items, count, capacity. False when out of
 * memory. */
#define WB_GROW(items, count, capacity)                                                            \
    ((count) < (capacity) ||                                                                       \
     wb_grow_list((void **)&(items), &(capacity), sizeof *(items), (int64_t)(count) + 1))
/* The same for `wanted` elements at once. A list that is long enough stays as it is, another one
 * becomes at least twice as long. */
int wb_grow_list(void **items, int64_t *capacity, size_t item_bytes, int64_t wanted);

static inline int wb_reserve(void **items, int64_t *capacity, size_t item_bytes, int64_t wanted) {
    return wanted <= *capacity || wb_grow_list(items, capacity, item_bytes, wanted);
}

#endif
