/* What wb_free can release: the first member of every public object. */
#ifndef WB_BASE_OBJECT_H
#define WB_BASE_OBJECT_H

#include <stdint.h>

#include <weber/device.h>

/* What is not there is NULL. */
typedef struct wb_class {
    const char *name;
    void (*free)(void *object);
    wb_status (*move)(const wb_to_desc *desc); /* wb_move on it */
    const wb_device *(*device_of)(const void *object);
    const struct wb_saved *saved; /* numbers for files (base/saved.h) */
} wb_class;

typedef struct wb_object {
    const wb_class *klass;
    int64_t scope_slot; /* 1 + its place among what the thread's scopes own; 0: none */
} wb_object;

/* Counters of weber/array.h's wb_live; nodes of running threads are counted by the threads
 * themselves. */
wb_live_counts wb_live_shared(void);
void wb_live_arrays(int64_t change);
void wb_live_buffers(int64_t change);
void wb_live_objects(int64_t change);

#endif
