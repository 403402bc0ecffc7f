#include "base/object.h"

#include <weber/array.h>

static wb_live_counts live; /* __atomic */

void wb_live_arrays(int64_t change) {
    (void)__atomic_add_fetch(&live.arrays, change, __ATOMIC_RELAXED);
}
void wb_live_buffers(int64_t change) {
    (void)__atomic_add_fetch(&live.buffers, change, __ATOMIC_RELAXED);
}
void wb_live_objects(int64_t change) {
    (void)__atomic_add_fetch(&live.objects, change, __ATOMIC_RELAXED);
}

wb_live_counts wb_live_shared(void) {
    return (wb_live_counts){.arrays = __atomic_load_n(&live.arrays, __ATOMIC_RELAXED),
                            .buffers = __atomic_load_n(&live.buffers, __ATOMIC_RELAXED),
                            .objects = __atomic_load_n(&live.objects, __ATOMIC_RELAXED)};
}
