/* The header of every public object, its first member: what wb_free needs to release it. */
#ifndef WB_BASE_OBJECT_H
#define WB_BASE_OBJECT_H

#include <stdint.h>

#include <weber/device.h>

/* What every object of a class has in common. A member that a class lacks is NULL. */
typedef struct wb_class {
    const char *name;
    void (*free)(void *object);
    wb_status (*move)(const wb_to_desc *desc); /* moves the object's arrays, for wb_move */
    const wb_device *(*device_of)(const void *object);
    const struct wb_saved *saved; /* numbers for files (base/saved.h) */
    /* wb_hand_over: gives the object and the arrays that it holds to the first thread that uses
     * them. */
    wb_status (*hand_over)(void *object);
    /* Where the number of its owner (a context) is; NULL: any thread may use it. */
    uint32_t *(*owner)(const void *object);
    const char *to_other_threads; /* for messages: how to bring it to another thread */
    bool ends_with_scope; /* a scope whose first entry it is may be left open (a loader's turn) */
    const char *maker;    /* the function that made it, for lists of leaks */
    /* For lists of leaks: what it is, as "Dense(2 => 3)"; false: another object owns it. Arrays
     * that it owns are no longer counted as kept. */
    bool (*describe_leak)(void *object, char *text, size_t size_bytes);
} wb_class;

typedef struct wb_object {
    const wb_class *klass;
    union {
        int64_t scope_slot;        /* 1 + its place among what the thread's scopes own; 0: none */
        const char *released_name; /* of a released object: what it was */
        struct wb_object *next; /* of a released node: the next one that waits to be used again */
    };
} wb_object;

/* The class of an object, which may be of another kind than the type that the caller gives it. */
static inline const wb_class *wb_class_of(const void *object) {
    return ((const wb_object *)object)->klass;
}

/* The class of what was given as a void *, judged by its first bytes: NULL if it is not an object
 * of Weber's (a text, a number). A class is known once an object of it was made; wb_note_class
 * makes one known whose objects are inside others. */
const wb_class *wb_known_class(const void *object);
void wb_note_class(const wb_class *klass);

/* Zeroed memory for an object of the class, which counts as live. NULL when out of memory. */
void *wb_object_new(const wb_class *klass, size_t size_bytes);
/* Releases the object. Its memory stays for a while, with a header that says what it was, so that a
 * later use of the object is an error instead of a crash. The address sanitizer guards the rest. */
void wb_object_delete(void *object, size_t size_bytes, const char *name);

/* The same for an object whose memory is used again: until wb_object_wake it does not count as
 * live, and its header says what it was. */
void wb_object_rest(wb_object *object, const char *name);
void wb_object_wake(wb_object *object, const wb_class *klass);
/* Marks the header of a node as released; nodes are not counted here. */
void wb_object_mark_node(wb_object *object);
bool wb_object_is_released(const void *object);
/* What a released object was. */
const char *wb_object_released_name(const void *object);
/* Tells the address sanitizer that what follows the header must not be touched, or may be again. */
void wb_object_guard(void *object, size_t size_bytes, bool guarded);

/* True if the object is not NULL and of the class. Otherwise an error says that the function
 * expected `what`, and got NULL (no new error if one is pending), a released object, or something
 * else. */
bool wb_object_check(const char *function, const void *object, const wb_class *klass,
                     const char *what);

/* With WEBER_DEBUG=leak: logs the live objects that no other object owns. */
bool wb_lists_leaks(void);
void wb_objects_list_leaks(void);

/* Counters of weber/array.h's wb_live; nodes of running threads are counted by the threads
 * themselves. */
wb_live_counts wb_live_shared(void);
void wb_live_arrays(int64_t change);
void wb_live_buffers(int64_t change);

#endif
