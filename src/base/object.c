#include "base/object.h"

#include <pthread.h>

#include <weber/array.h>

#include "base/error.h"
#include "base/memory.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(HAS_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

/* ---- counters ---- */

static wb_live_counts live; /* __atomic */

void wb_live_arrays(int64_t change) {
    (void)__atomic_add_fetch(&live.arrays, change, __ATOMIC_RELAXED);
}
void wb_live_buffers(int64_t change) {
    (void)__atomic_add_fetch(&live.buffers, change, __ATOMIC_RELAXED);
}
static void count_object(int64_t change) {
    (void)__atomic_add_fetch(&live.objects, change, __ATOMIC_RELAXED);
}

wb_live_counts wb_live_shared(void) {
    return (wb_live_counts){.arrays = __atomic_load_n(&live.arrays, __ATOMIC_RELAXED),
                            .buffers = __atomic_load_n(&live.buffers, __ATOMIC_RELAXED),
                            .objects = __atomic_load_n(&live.objects, __ATOMIC_RELAXED)};
}

/* ---- released objects ---- */

static const wb_class released_class = {.name = "released object"};

void wb_object_mark_released(wb_object *object, const char *name) {
    object->klass = &released_class;
    object->released_name = name;
}

bool wb_object_is_released(const void *object) {
    return object && ((const wb_object *)object)->klass == &released_class;
}

void wb_object_guard(void *object, size_t size_bytes, bool guarded) {
    char *body = (char *)object + sizeof(wb_object);
    if (guarded)
        ASAN_POISON_MEMORY_REGION(body, size_bytes - sizeof(wb_object));
    else
        ASAN_UNPOISON_MEMORY_REGION(body, size_bytes - sizeof(wb_object));
}

/* The memory of released objects, until others take its place. */
enum { RESTING = 1024 };

static struct {
    pthread_mutex_t mutex;
    struct {
        void *object;
        size_t size_bytes;
    } list[RESTING];
    int64_t next;
} resting = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void wb_object_delete(void *object, size_t size_bytes, const char *name) {
    if (!object) return;
    count_object(-1);
    wb_object_mark_released(object, name);
    wb_object_guard(object, size_bytes, true);
    pthread_mutex_lock(&resting.mutex);
    const int64_t place = resting.next++ % RESTING;
    void *oldest = resting.list[place].object;
    const size_t oldest_bytes = resting.list[place].size_bytes;
    resting.list[place].object = object;
    resting.list[place].size_bytes = size_bytes;
    pthread_mutex_unlock(&resting.mutex);
    if (oldest) wb_object_guard(oldest, oldest_bytes, false);
    wb_release(oldest);
}

void wb_object_rest(wb_object *object, const char *name) {
    count_object(-1);
    wb_object_mark_released(object, name);
}

void wb_object_wake(wb_object *object, const wb_class *klass) {
    *object = (wb_object){.klass = klass};
    count_object(1);
}

void *wb_object_new(const wb_class *klass, size_t size_bytes) {
    wb_object *object = wb_alloc(size_bytes);
    if (!object) return NULL;
    object->klass = klass;
    count_object(1);
    return object;
}

bool wb_object_check(const char *function, const void *object, const wb_class *klass,
                     const char *what) {
    const wb_object *any = object;
    if (any && any->klass == klass) return true;
    if (!any && wb_failed()) return false;
    if (!any)
        (void)wb_fail_argument_null(function, what);
    else if (any->klass == &released_class)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: %s was released already, by wb_free or with the scope that owned it",
                      function, what);
    else
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is a %s", function, what,
                      any->klass && any->klass->name ? any->klass->name : "thing of another kind");
    return false;
}
