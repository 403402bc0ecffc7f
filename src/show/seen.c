/* A set of arrays by address. It holds a reference to each, so that no later array can get the same
 * address. */
#include "show/seen.h"

#include <string.h>

#include "base/memory.h"

static uint64_t key_of(const wb_array *x) { return (uint64_t)(uintptr_t)x; }

bool wb_seen_add(wb_seen *seen, wb_array *x) {
    const int64_t number = seen->table.count;
    if (!WB_GROW(seen->arrays, number, seen->capacity)) return false;
    if (!wb_table_add(&seen->table, key_of(x))) return false;
    seen->arrays[number] = wb_ref(x);
    return true;
}

int64_t wb_seen_find(const wb_seen *seen, const wb_array *x) {
    return wb_table_find(&seen->table, key_of(x));
}

void wb_seen_release(wb_seen *seen) {
    for (int64_t i = 0; i < seen->table.count; i++) wb_unref(seen->arrays[i]);
    wb_table_release(&seen->table);
    wb_release(seen->arrays);
    *seen = (wb_seen){.capacity = 0};
}

bool wb_path_is_inside(const char *inner, const char *outer) {
    const size_t length = strlen(outer);
    return length == 0 ? *inner != 0 : strncmp(inner, outer, length) == 0 && inner[length] == '.';
}
