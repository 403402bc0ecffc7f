/* The check that every public function makes of each object that it is given: it is of this class,
 * was not released, and belongs to this thread. For arrays, wb_is_usable (array.h) is the same.
 * tests/calls/test_misuse.c finds a function that does not ask. */
#ifndef WB_ARRAY_USE_H
#define WB_ARRAY_USE_H

#include "array/array.h"

/* True if so; else the error has the function and `what`, "the loader". An object without an owner
 * belongs to this thread afterwards. NULL gives false, and an error only if none is pending. */
bool wb_may_use(const char *function, const void *object, const wb_class *klass, const char *what);

/* The same check of an array. */
bool wb_may_use_array(const char *function, const wb_array *x, const char *what);
/* The same, but NULL gives true: the argument was not given. */
static inline bool wb_may_use_given(const char *function, const wb_array *x, const char *what) {
    return !x || wb_may_use_array(function, x, what);
}
/* For functions that answer a question: for NULL false without an error. */
static inline bool wb_may_ask(const char *function, const wb_array *x) {
    return x && wb_may_use_array(function, x, "x");
}
/* The same check of a list of arrays, none of them NULL; messages say "array 3". */
bool wb_may_use_arrays(const char *function, int64_t count, wb_array *const *arrays);

/* Records the error that an object belongs to another context. remedy: how another thread's object
 * can be brought to this thread, or NULL. Returns NULL. */
void *wb_fail_foreign(const char *function, uint32_t owner, const char *what, const char *remedy);

/* The same check of an object of any class; `what` NULL: messages name its class. */
bool wb_may_use_any(const char *function, const void *object, const char *what);

#endif
