/* Checks the arguments of public functions: the class is right, the object was not released, and it
 * belongs to this thread. An object that no thread owns, as after wb_hand_over, belongs to the
 * thread that uses it next. */
#include "array/use.h"

#include <stdio.h>

#include "array/thread.h"

static void *mutable(const void *object) {
    union {
        const void *from;
        void *to;
    } cast = {.from = object};
    return cast.to;
}

void *wb_fail_foreign(const char *function, uint32_t owner, const char *what, const char *remedy) {
    const wb_thread *own = wb_thread_own();
    if (own && own->number == owner)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "%s: %s belongs to this thread's own context, but the thread has "
                            "entered another one: call wb_context_leave first",
                            function, what);
    if (wb_is_to_enter(owner))
        return wb_fail_null(
            WB_ERROR_ARGUMENT,
            "%s: %s belongs to a context that this thread is not in: call wb_context_enter first",
            function, what);
    return wb_fail_null(WB_ERROR_ARGUMENT, "%s: %s belongs to another thread%s%s", function, what,
                        remedy ? ": " : "", remedy ? remedy : "");
}

static bool is_own(const char *function, const void *object, const char *what) {
    const wb_class *klass = ((const wb_object *)object)->klass;
    uint32_t *owner = klass->owner ? klass->owner(mutable(object)) : NULL;
    if (!owner || wb_claim_owner(owner)) return true;
    return wb_fail_foreign(function, *owner, what, klass->to_other_threads) != NULL;
}

bool wb_may_use(const char *function, const void *object, const wb_class *klass, const char *what) {
    return wb_object_check(function, object, klass, what) && is_own(function, object, what);
}

bool wb_may_use_array(const char *function, const wb_array *x, const char *what) {
    return wb_is_usable(x) || wb_refuse(function, x, what) != NULL;
}

bool wb_may_use_arrays(const char *function, int64_t count, wb_array *const *arrays) {
    if (!wb_check_list(function, count, arrays)) return false;
    for (int64_t i = 0; i < count; i++) {
        char what[32];
        if (wb_is_usable(arrays[i])) continue;
        (void)snprintf(what, sizeof what, "array %lld", (long long)i);
        return wb_refuse(function, arrays[i], what) != NULL;
    }
    return true;
}

bool wb_may_use_any(const char *function, const void *object, const char *what) {
    const wb_class *klass = wb_known_class(object);
    char name[80];
    if (klass == &wb_array_class && wb_is_usable(object)) return true;
    if (!object) return wb_object_check(function, NULL, NULL, what ? what : "the object");
    if (!what) {
        (void)snprintf(name, sizeof name, "the %s",
                       wb_object_is_released(object) ? wb_object_released_name(object)
                       : klass                       ? klass->name
                                                     : "argument");
        what = name;
    }
    if (wb_object_is_released(object)) return wb_object_check(function, object, NULL, what);
    if (klass == &wb_array_class) return wb_may_use_array(function, object, what);
    if (klass) return is_own(function, object, what);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s is not an object of Weber", function, what);
    return false;
}
