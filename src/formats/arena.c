/* Memory of records, taken in pieces from large blocks and released all at once. A limit makes a
 * damaged file that claims huge counts an error before memory is full. */
#include <string.h>

#include "base/memory.h"
#include "formats/record.h"

enum { BLOCK_BYTES = 64 << 10, ALIGN = WB_ARENA_ALIGN };

struct wb_arena_block {
    struct wb_arena_block *older;
    size_t used, size;
    _Alignas(16) char bytes[];
};

static struct wb_arena_block *new_block(wb_arena *arena, size_t size_bytes) {
    const size_t size = size_bytes > BLOCK_BYTES ? size_bytes : BLOCK_BYTES;
    struct wb_arena_block *block = wb_alloc(sizeof *block + size);
    if (!block) return NULL;
    block->size = size;
    block->older = arena->blocks;
    return arena->blocks = block;
}

void *wb_arena_take(wb_arena *arena, size_t size_bytes) {
    if (!wb_check_bytes(size_bytes > PTRDIFF_MAX ? INT64_MAX : (int64_t)size_bytes)) return NULL;
    const size_t size = (size_bytes + ALIGN - 1) / ALIGN * ALIGN;
    arena->used_bytes += (int64_t)size;
    if (arena->limit_bytes && arena->used_bytes > arena->limit_bytes)
        return wb_fail_null(WB_ERROR_FORMAT, "its sizes need more data than the file has");
    struct wb_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < size) block = new_block(arena, size);
    if (!block) return NULL;
    void *taken = block->bytes + block->used;
    block->used += size;
    return taken;
}

void *wb_arena_list(wb_arena *arena, int64_t count, size_t item_bytes) {
    int64_t bytes;
    const bool fits = !__builtin_mul_overflow(count, (int64_t)item_bytes, &bytes);
    return wb_arena_take(arena, fits ? wb_bytes(bytes) : SIZE_MAX);
}

char *wb_arena_text(wb_arena *arena, const char *text, size_t length) {
    char *copy = wb_arena_take(arena, length + 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}

void wb_arena_release(wb_arena *arena) {
    while (arena->blocks) {
        struct wb_arena_block *block = arena->blocks;
        arena->blocks = block->older;
        wb_release(block);
    }
    *arena = (wb_arena){.blocks = NULL};
}

wb_record *wb_record_new(wb_arena *arena, wb_record_kind kind) {
    wb_record *record = wb_arena_take(arena, sizeof *record);
    if (!record) return NULL;
    record->kind = (uint8_t)kind;
    record->offset = -1;
    return record;
}

bool wb_record_room(wb_arena *arena, wb_record *record, int64_t count, bool has_names) {
    record->children = wb_arena_list(arena, count, sizeof *record->children);
    record->names = has_names ? wb_arena_list(arena, count, sizeof *record->names) : NULL;
    record->count = record->children && (record->names || !has_names) ? count : 0;
    return record->count == count;
}
