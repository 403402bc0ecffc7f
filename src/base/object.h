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
    /* Gives it, and the arrays that it holds, to the first thread that uses them: wb_hand_over. */
    wb_status (*hand_over)(void *object);
    /* Where the number of its thread stands; NULL: any thread may use it. */
    uint32_t *(*owner)(const void *object);
    const char *to_other_threads; /* for messages: what brings it to one */
    bool ends_with_scope;         /* a scope that begins with it may be left open */
    const char *maker;            /* the function that made it, for lists of leaks */
    /* For lists of leaks: what it is, as "Dense(2 => 3)"; false: another object owns it. Arrays
     * that it owns are no longer counted as kept. */
    bool (*describe_leak)(void *object, char *text, size_t size_bytes);
} wb_class;

typedef struct wb_object {
    const wb_class *klass;
    union {
        int64_t scope_slot;        /* 1 + its place among what the thread's scopes own; 0: none */
        const char *released_name; /* of a released object: what it was */
        struct wb_object *next;    /* of a released node: in the list of those that rest */
    };
} wb_object;

/* The class of whatever was given, which may be of another kind than its type says, and so aligned
 * for that. */
static inline const wb_class *wb_class_of(const void *object) {
    return ((const wb_object *)object)->klass;
}

/* The class of whatever was given to a function that takes a void *, as far as its first bytes say:
 * NULL for what is not Weber's, as a text or a number. Classes are known once an object of them was
 * made; those that stand within others are noted. */
const wb_class *wb_known_class(const void *object);
void wb_note_class(const wb_class *klass);

/* Zeroed memory for an object of the class, which counts as live. NULL when out of memory. */
void *wb_object_new(const wb_class *klass, size_t size_bytes);
/* Releases it. The memory rests for a while, with a header that says what it was, so that a later
 * use of the object is an error instead of a crash; the address sanitizer guards the rest of it. */
void wb_object_delete(void *object, size_t size_bytes, const char *name);

/* The same for an object whose memory stays, to be used again: until wb_object_wake it is no longer
 * live, and its header says so. */
void wb_object_rest(wb_object *object, const char *name);
void wb_object_wake(wb_object *object, const wb_class *klass);
/* The header of a released node, which is not counted here. */
void wb_object_mark_node(wb_object *object);
bool wb_object_is_released(const void *object);
/* What a released object was. */
const char *wb_object_released_name(const void *object);
/* Tells the address sanitizer that what follows the header must not be touched, or may be again. */
void wb_object_guard(void *object, size_t size_bytes, bool guarded);

/* True if the object is there and of the class. Otherwise an error names the function and `what`
 * was wanted: NULL (unless an error is pending), released, or something else. */
bool wb_object_check(const char *function, const void *object, const wb_class *klass,
                     const char *what);

/* With WEBER_DEBUG=leak: logs what is live and owned by nobody else. */
bool wb_lists_leaks(void);
void wb_objects_list_leaks(void);

/* Counters of weber/array.h's wb_live; nodes of running threads are counted by the threads
 * themselves. */
wb_live_counts wb_live_shared(void);
void wb_live_arrays(int64_t change);
void wb_live_buffers(int64_t change);

#endif
