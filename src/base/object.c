/* What public objects have in common: classes, counters, the list of leaks, released objects. The
 * memory of a released object is not reused at once, so that a later use is an error that names
 * it. */
#include "base/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber/array.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/switch.h"
#include "platform/locks.h"

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

/* 32-bit x86 aligns numbers of 64 bits to 4 bytes, and a locked one that lies in two lines of the
 * cache costs milliseconds there: those that threads share are aligned to 8. */
static _Alignas(8) wb_live_counts live; /* __atomic */

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

/* ---- leaks ---- */

bool wb_lists_leaks(void) {
    static wb_switch leak = {.variable = "WEBER_DEBUG", .word = "leak"};
    return wb_is_on(&leak);
}

static struct {
    wb_object **list; /* all live objects, in the order in which they were made; NULL: released */
    int64_t count, capacity;
} registry;

static void note_object(wb_object *object, bool is_live) {
    if (!wb_lists_leaks()) return;
    wb_lock_take(WB_LOCK_OBJECTS);
    if (is_live && WB_GROW(registry.list, registry.count, registry.capacity))
        registry.list[registry.count++] = object;
    for (int64_t i = registry.count - 1; !is_live && i >= 0; i--) {
        if (registry.list[i] != object) continue;
        registry.list[i] = NULL;
        break;
    }
    while (registry.count > 0 && !registry.list[registry.count - 1]) registry.count--;
    wb_lock_give(WB_LOCK_OBJECTS);
}

void wb_objects_list_leaks(void) {
    for (int64_t i = 0; i < registry.count; i++) {
        wb_object *object = registry.list[i];
        char text[256];
        if (!object || object->scope_slot != 0) continue;
        const wb_class *klass = object->klass;
        (void)snprintf(text, sizeof text, "%s", klass->name);
        if (klass->describe_leak && !klass->describe_leak(object, text, sizeof text)) continue;
        wb_log_always("leak: %s%s%s%s was never freed", text, klass->maker ? ", made by " : "",
                      klass->maker ? klass->maker : "", klass->maker ? "," : "");
    }
}

/* ---- classes ---- */

static const wb_class released_class = {.name = "released object"},
                      released_node_class = {.name = "array"};

enum { MOST_CLASSES = 32 };
static const wb_class *classes[MOST_CLASSES]; /* __atomic; NULL after the last; never removed */

void wb_note_class(const wb_class *klass) {
    for (int i = 0; klass && i < MOST_CLASSES; i++) {
        const wb_class *there = NULL;
        if (__atomic_load_n(&classes[i], __ATOMIC_ACQUIRE) == klass) return;
        if (__atomic_compare_exchange_n(&classes[i], &there, klass, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            there == klass)
            return;
    }
}

/* For objects that may be shorter than the header: an aligned word never crosses a page. */
__attribute__((no_sanitize("address"))) static const void *first_word(const void *object) {
    return *(const void *const volatile *)object;
}

const wb_class *wb_known_class(const void *object) {
    if (!object || (uintptr_t)object % sizeof(void *) != 0) return NULL;
    const wb_class *klass = first_word(object);
    if (!klass || klass == &released_class || klass == &released_node_class) return klass;
    for (int i = 0; i < MOST_CLASSES; i++) {
        const wb_class *there = __atomic_load_n(&classes[i], __ATOMIC_ACQUIRE);
        if (!there || there == klass) return there;
    }
    return NULL;
}

/* ---- released objects ---- */

static void mark_released(wb_object *object, const char *name) {
    object->klass = &released_class;
    object->released_name = name;
}

void wb_object_mark_node(wb_object *object) {
    object->klass = &released_node_class;
    object->next = NULL;
}

bool wb_object_is_released(const void *object) {
    const wb_class *klass = wb_known_class(object);
    return klass == &released_class || klass == &released_node_class;
}

const char *wb_object_released_name(const void *object) {
    const wb_object *any = object;
    return any->klass == &released_class ? any->released_name : any->klass->name;
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
    struct {
        void *object;
        size_t size_bytes;
    } list[RESTING];
    int64_t next;
} resting;

void wb_object_delete(void *object, size_t size_bytes, const char *name) {
    if (!object) return;
    count_object(-1);
    note_object(object, false);
    mark_released(object, name);
    wb_object_guard(object, size_bytes, true);
    wb_lock_take(WB_LOCK_RESTING);
    const int64_t place = resting.next++ % RESTING;
    void *oldest = resting.list[place].object;
    const size_t oldest_bytes = resting.list[place].size_bytes;
    resting.list[place].object = object;
    resting.list[place].size_bytes = size_bytes;
    wb_lock_give(WB_LOCK_RESTING);
    if (oldest) wb_object_guard(oldest, oldest_bytes, false);
    wb_release(oldest);
}

void wb_object_rest(wb_object *object, const char *name) {
    count_object(-1);
    note_object(object, false);
    mark_released(object, name);
}

void wb_object_wake(wb_object *object, const wb_class *klass) {
    *object = (wb_object){.klass = klass};
    wb_note_class(klass);
    count_object(1);
    note_object(object, true);
}

void *wb_object_new(const wb_class *klass, size_t size_bytes) {
    wb_object *object = wb_alloc(size_bytes);
    if (!object) return NULL;
    object->klass = klass;
    wb_note_class(klass);
    count_object(1);
    note_object(object, true);
    return object;
}

static const char *article_of(const char *noun) { return strchr("aeiou", noun[0]) ? "an" : "a"; }

static void fail_kind(const char *function, const char *what, const char *is, const char *wanted) {
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is %s %s, not %s %s", function, what, article_of(is),
                  is, article_of(wanted), wanted);
}

bool wb_object_check(const char *function, const void *object, const wb_class *klass,
                     const char *what) {
    const bool is_aligned = object && (uintptr_t)object % sizeof(void *) == 0;
    if (klass && is_aligned && first_word(object) == klass) return true;
    const wb_class *is = wb_known_class(object);
    if (!object && wb_failed()) return false;
    if (!object)
        (void)wb_fail_argument_null(function, what);
    else if (wb_object_is_released(object))
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: %s was released already, by wb_free or with the scope that owned it",
                      function, what);
    else
        fail_kind(function, what, is && is->name ? is->name : "thing of another kind", klass->name);
    return false;
}
